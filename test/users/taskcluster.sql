-- A user of Taskcluster: a definition as it is, its claim, its artifact, its group, and a repair.
\ir helper.psql
CREATE ROLE users_ci;
CREATE ROLE users_worker;
SELECT tq.grant_queue('users_ci', 'proj/*', access) FROM unnest('{produce,manage}'::text[]) AS access \g /dev/null
SELECT tq.grant_scopes('users_ci', '{queue:route:index.proj.*,queue:get-artifact:public/*,queue:read-messages:*,queue:bind:ci,queue:subscribe:ci}');
SELECT tq.grant_scopes('users_worker', '{queue:claim-work:proj/linux,queue:worker-id:eu/*}');

-- A definition, and one with other keys.
CREATE FUNCTION pg_temp.definition(name text, more jsonb DEFAULT '{}') RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('provisionerId', 'proj', 'workerType', 'linux', 'created', now(), 'deadline', now() + interval '1 hour',
		'payload', '{"command": ["make"]}'::jsonb, 'metadata', jsonb_build_object('name', name, 'description', '', 'owner', 'a@example.com', 'source', 'https://example.com/')) || more
$$;

-- createTask, defineTask, scheduleTask: twice is once.
SET ROLE users_ci;
SELECT tq.slugid() AS build, tq.slugid() AS test, tq.slugid() AS late \gset
SELECT pg_temp.definition('build', jsonb_build_object('taskGroupId', :'build', 'routes', '["index.proj.linux"]'::jsonb)) AS definition \gset
SELECT users.is(tq.define_task(:'build', :'definition') ->> 'state', 'unscheduled', 'defineTask');
SELECT users.is(tq.define_task(:'build', :'definition') ->> 'state', 'unscheduled', 'again changes nothing');
SELECT users.is(tq.schedule_task(:'build') ->> 'state', 'pending', 'scheduleTask');
SELECT users.is(tq.create_task(:'test', pg_temp.definition('test', jsonb_build_object('taskGroupId', :'build', 'dependencies', jsonb_build_array(:'build')))) ->> 'state',
	'unscheduled', 'createTask of a dependent');
SELECT users.is(tq.task(:'build') ->> 'taskQueueId', 'proj/linux', 'the two names of a queue are one');

-- Two rules for deadlines; what is refused says what is allowed.
SELECT users.fails(format('SELECT tq.create_task(%L, pg_temp.definition(''none'') - ''deadline'')', :'late'), '^TQ400 .*"deadline"', 'createTask requires a deadline');
SELECT users.fails(format('SELECT tq.create_task(%L, pg_temp.definition(''late'', jsonb_build_object(''deadline'', now() + ''6 days'')))', :'late'), '^TQ400 .*deadline.*tq.max_deadline', 'of at most five days');
SELECT users.is(tq.task(tq.enqueue('proj/short')) ? 'deadline', false, 'enqueue requires none, and has no such key');
SELECT users.fails(format('SELECT tq.create_task(%L, pg_temp.definition(''odd'', ''{"priority": "normal"}''))', :'late'), '^TQ400 .*lowest.*"normal"', 'priority normal is refused');
SELECT users.fails(format('SELECT tq.create_task(%L, pg_temp.definition(''other''))', :'build'), '^TQ409 ', 'an id has one definition');

-- claimWork: a worker without more scopes gets credentials, and reclaims and reports with them.
SET ROLE users_worker;
SELECT task_id, run_id, credentials, task, status, taken_until < now() + interval '6 minutes' AS soon
	FROM tq.claim_work('proj/linux', 'eu', 'vm-1', wait => '20 s', claim_for => '5 minutes', definition => true) \gset
SELECT users.is(:'task_id', :'build', 'claimWork');
SELECT users.is(:'task'::jsonb #>> '{metadata,name}', 'build', 'with the definition');
SELECT users.is(:'status'::jsonb #>> '{runs,0,workerId}', 'vm-1', 'and the status');
SELECT users.is(:'soon'::bool, true, 'for the time that the worker asks for');
SELECT users.is(taken_until > now(), true, 'reclaimTask') FROM tq.reclaim_task(:'task_id', :run_id, credentials => :'credentials');
SELECT users.fails(format('SELECT tq.report_completed(%L, %s)', :'task_id', :run_id), '^TQ40[34] ', 'without credentials it may not report');
SELECT users.is(tq.create_artifact(:'task_id', :run_id, 'public/log', jsonb_build_object('storageType', 'inline', 'contentType', 'text/plain',
	'expires', now() + interval '1 minute', 'content', 'ok'), :'credentials') ->> 'storageType', 'inline', 'createArtifact');
SELECT users.is(tq.report_failed(:'task_id', :run_id, credentials => :'credentials') ->> 'state', 'failed', 'reportFailed');
SELECT users.is((SELECT count(*) FROM tq.claim_work('proj/linux', 'eu', 'vm-1')), 0, 'its dependent waits');

-- The artifact, the group, and what each change has published.
SET ROLE users_ci;
SELECT users.is(tq.get_latest_artifact(:'build', 'public/log') ->> 'content', 'ok', 'getLatestArtifact');
SELECT users.is((SELECT count(*) FROM tq.list_task_group(:'build')), 2, 'listTaskGroup');
SELECT users.is((SELECT concat_ws(' ', failed, unscheduled, blocked) FROM tq.group_progress(:'build')), '1 1 t', 'its progress');
RESET ROLE;
CALL users.upkeep_until('SELECT FROM tq.messages(''task-failed'')');
SET ROLE users_ci;
SELECT users.is((SELECT array_agg(DISTINCT exchange) FROM tq.messages() WHERE payload #>> '{status,taskId}' = :'build'),
	'{artifact-created,task-defined,task-failed,task-pending,task-running}', 'the exchanges of a task that has failed');
SELECT users.is((SELECT payload #>> '{status,state}' FROM tq.messages('task-failed', 'route.index.proj.#')), 'failed', 'by its route');

SELECT users.fails('SELECT tq.bind(''ci'', ''task-completed'', ''proj/linux'')', '^TQ400 .*proj\.linux', 'a pattern that can match nothing: the right form');
SELECT tq.bind('ci', 'task-completed', '#.proj.linux.#') \g /dev/null
SELECT tq.subscribe('ci', 'task-completed') \g /dev/null
SELECT users.is((SELECT name FROM tq.subscription_overview), 'ci', 'a subscription is shown to its owner');

-- rerunTask, and the group is completed; then it is sealed.
SELECT users.is(tq.rerun_task(:'build') ->> 'state', 'pending', 'rerunTask');
RESET ROLE;
GRANT tq_worker TO users_worker;
SET ROLE users_worker;
SELECT users.is(users.work('{proj/linux}'), 2, 'a worker of all scopes');
SET ROLE users_ci;
SELECT users.is((SELECT outcome FROM tq.group_progress(:'build')), 'completed', 'the group is completed');
SELECT users.is(tq.seal_task_group(:'build') ? 'sealed', true, 'sealTaskGroup');
SELECT users.fails(format('SELECT tq.enqueue(''proj/linux'', task_group_id => %L)', :'build'), '^TQ409 .*another group', 'a sealed group takes no more');
SELECT users.is(tq.quarantine_worker('proj/linux', 'eu', 'vm-1', now() + interval '1 hour', 'its disk is full') IS NOT NULL, true, 'quarantineWorker');
SELECT users.is((SELECT worker_id FROM tq.list_workers('proj/linux', quarantined => true)), 'vm-1', 'listWorkers');

-- Ids as people write and compare them.
SELECT users.is(:'build'::tq.slugid = :'build'::tq.slugid::uuid, true, 'an id is compared with its UUID');
SELECT users.is((SELECT concat_ws(' ', max(task_id) >= min(task_id), max(length(task_id)), count(*) FILTER (WHERE task_id LIKE :'build' || '%')) FROM tq.task_overview), 't 22 1', 'max, min, length, LIKE');
SELECT '1..' || currval('users.n');
