-- doc/spec/taskcluster.md 7.2: what a role with rights to its own queues can do to
-- the tasks of another application.
BEGIN;
\ir helper.psql

CREATE ROLE bank;
CREATE ROLE teller;
CREATE ROLE spy;
SELECT tq.grant_queue('bank', 'bank/*', 'produce'), tq.grant_queue('bank', 'bank/*', 'work'),
	tq.grant_queue('teller', 'bank/*', 'produce'), tq.grant_queue('spy', 'mine/*', 'produce') \g /dev/null

CREATE FUNCTION pg_temp.state_of(id tq.slugid) RETURNS text LANGUAGE sql AS $$
	SELECT tq.status(id) ->> 'state' || coalesce(' ' || (tq.status(id) #>> '{runs,-1,reasonResolved}'), '')
$$;
\set forbidden 'TQ403 The call requires one of (queue:join-in-queue:<taskQueueId>, queue:create-task:lowest:<taskQueueId>).'
\set to_cancel 'TQ403 The call requires one of (all of (queue:join-in-queue:<taskQueueId>, queue:cancel-task-group-in-queue:<taskQueueId>), queue:create-task:lowest:<taskQueueId>).'
\set cancels '{"onUnsuccessful": "cancel-group"}'

SET ROLE bank;
SELECT tq.enqueue('bank/lone') AS lone, tq.slugid() AS shared \gset
SELECT tq.enqueue('bank/a', task_group_id => :'shared') AS a, tq.enqueue('bank/b', task_group_id => :'shared') AS b \gset
SELECT task_id FROM tq.claim_work('bank/a', 'g', 'w') \g /dev/null
RESET ROLE;

-- No policy of another application reaches a task: its tasks are not in the group.
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L, policy => %L, deadline => ''1 s'')', task_group, :'cancels')), :'to_cancel', what)
FROM (VALUES (:'lone', 'the group of a lone task'), (:'shared', 'a group of several tasks')) AS v (task_group, what);
SELECT is(pg_temp.call_as('spy', format('SELECT tq.create_task(%L, %L)', id, pg_temp.def('x', '{"taskQueueId": "mine/q"}') || jsonb_build_object('taskGroupId', :'shared') - 'schedulerId')), :'forbidden', 'create_task')
FROM tq.slugid() AS id;
SELECT is(pg_temp.call_as('spy', format('SELECT tq.define_task(%L, %L)', id, pg_temp.def('x', '{"taskQueueId": "mine/q"}') || jsonb_build_object('taskGroupId', :'lone') - 'schedulerId')), :'forbidden', 'define_task')
FROM tq.slugid() AS id;
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue_tasks(''mine/q'', ''{"{}","{}"}'', task_group_id => %L)', :'shared')), :'forbidden', 'enqueue_tasks');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.on_group_resolved(%L, ''mine/q'')', :'shared')) ~ '^TQ404 ', true, 'on_group_resolved');
SELECT pg_temp.pass('1 hour') \g /dev/null
RESET tq.clock_offset;
SELECT is(pg_temp.state_of(:'a'), 'pending', 'the claim has expired, and its retry waits');
SELECT is(pg_temp.state_of(:'b'), 'pending', 'pending as before');
SELECT is(pg_temp.state_of(:'lone'), 'pending', 'the lone one, too');

-- Those who produce in the queue of its first task may join it, and what was granted the right.
SELECT is(pg_temp.call_as('teller', format('SELECT tq.enqueue(''bank/c'', task_group_id => %L) IS NOT NULL', :'shared')), 'true', 'a producer of the same queues');
SELECT is(pg_temp.call_as('teller', format('SELECT tq.enqueue(''bank/c'', task_group_id => %L) IS NOT NULL', :'lone')), 'true', 'and of a lone task');
SELECT tq.grant_queue('spy', 'bank/a', 'join') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L) IS NOT NULL', :'shared')), 'true', 'with the right to join');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L)', :'lone')), :'forbidden', 'which is for one queue');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L, policy => %L)', :'shared', :'cancels')), :'to_cancel', 'which is none to cancel the others');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue_tasks(''mine/q'', ''{"{}","{}"}'', task_group_id => %L, policy => %L)', :'shared', :'cancels')), :'to_cancel', 'nor by many');
SELECT tq.set_queue('mine/defaults', '{"policy": {"onUnsuccessful": "cancel-group"}}') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/defaults'', task_group_id => %L)', :'shared')), :'to_cancel', 'nor by the default of a queue');
SELECT tq.revoke_queue('spy', 'bank/a', 'join') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L)', :'shared')), :'forbidden', 'and can be revoked');

-- A policy acts with the rights of the role that created its task, when it acts.
CREATE FUNCTION pg_temp.fail_in(queue text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	claimed record;
BEGIN
	SELECT * INTO STRICT claimed FROM tq.claim_work(queue, 'g', 'w');
	PERFORM tq.report_failed(claimed.task_id, claimed.run_id);
	RETURN claimed.task_id;
END $$;
CREATE FUNCTION pg_temp.rest_after(who name, losing text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	family tq.slugid := tq.slugid();
	rest tq.slugid;
BEGIN
	PERFORM set_config('role', 'bank', true);
	rest := tq.enqueue('bank/rest', task_group_id => family);
	PERFORM set_config('role', who, true);
	PERFORM tq.enqueue('mine/fails', task_group_id => family, policy => '{"onUnsuccessful": "cancel-group"}');
	PERFORM set_config('role', 'none', true);
	EXECUTE losing;
	PERFORM pg_temp.fail_in('mine/fails');
	RETURN pg_temp.state_of(rest);
END $$;
CREATE FUNCTION pg_temp.allow(who name) RETURNS void LANGUAGE sql AS $$
	SELECT tq.grant_queue(who::text::regrole, 'bank/rest', 'join'), tq.grant_scopes(who::text::regrole, '{queue:cancel-task-group-in-queue:bank/rest}')
$$;
CREATE ROLE leaver;
SELECT tq.grant_queue('leaver', 'mine/*', 'produce'), pg_temp.allow('leaver'), pg_temp.allow('spy') \g /dev/null
SELECT is(pg_temp.rest_after('leaver', 'SELECT'), 'exception canceled', 'a role that has the rights');
SELECT is(pg_temp.rest_after('leaver', 'SELECT tq.revoke_scopes(''leaver'', ''{queue:cancel-task-group-in-queue:bank/rest}'')'), 'pending', 'one that has lost one of them');
SELECT is(pg_temp.rest_after('spy', 'SELECT'), 'exception canceled', 'another role with the same policy has its own');
SELECT is(pg_temp.rest_after('spy', 'DO ''BEGIN PERFORM tq.revoke_queue(''''spy'''', ''''bank/rest'''', ''''join''''); END'''), 'exception canceled', 'to join is a right for the moment of joining');
SELECT pg_temp.allow('leaver') \g /dev/null
SELECT is(pg_temp.rest_after('leaver', 'DROP ROLE leaver'), 'pending', 'a role that was dropped has none');
SELECT is(detail, 'cancel-group of dropped roles does nothing: 1', 'which health shows') FROM tq.health() WHERE name = 'policies';
SELECT is((SELECT count(DISTINCT creator)::int FROM tq_internal.policy WHERE policy ->> 'onUnsuccessful' = 'cancel-group'), 2, 'each role has a row of its own');
SELECT is((SELECT count(*)::int FROM tq_internal.policy WHERE creator IS NOT NULL AND policy::text !~ 'cancel-group'), 0, 'for what needs its rights alone');
SELECT tq.revoke_scopes('spy', '{queue:cancel-task-group-in-queue:bank/rest}') \g /dev/null
SET ROLE spy;
SELECT tq.enqueue('mine/first') AS first \gset
SELECT tq.on_group_resolved(:'first', 'mine/then', '{}', policy => :'cancels') AS follower \gset
RESET ROLE;
SELECT tq.cancel_task(:'first') \g /dev/null
SELECT pg_temp.pass('1 minute') \g /dev/null
RESET tq.clock_offset;
SELECT is((SELECT p.creator::text FROM tq_internal.task t JOIN tq_internal.policy p ON p.id = t.policy WHERE t.task_id = :'follower'), 'spy', 'a task of a callback has that of the role that registered it');

-- A task does not become part of a group that another application has begun under its id.
SELECT tq.slugid() AS guessed \gset
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L, policy => %L) IS NOT NULL', :'guessed', :'cancels')), 'true', 'a group of its own');
SELECT is(pg_temp.call_as('bank', format('SELECT tq.enqueue(''bank/q'', task_id => %L)', :'guessed')), :'forbidden', 'its first task decides whose it is');

-- A schedulerId is a right to its groups, as in Taskcluster, and no access gives every one.
SELECT is(pg_temp.call_as('spy', $$SELECT tq.enqueue('mine/q', scheduler_id => 'bank')$$), 'TQ403 The call requires queue:scheduler-id:bank.', 'the schedulerId of another application');
SELECT tq.grant_scopes('bank', '{queue:scheduler-id:bank}'), tq.grant_scopes('spy', '{queue:scheduler-id:bank}') \g /dev/null
SELECT tq.slugid() AS scheduled \gset
SELECT is(pg_temp.call_as('bank', format('SELECT tq.enqueue(''bank/q'', task_group_id => %L, scheduler_id => ''bank'') IS NOT NULL', :'scheduled')), 'true', 'a group of a scheduler');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L, scheduler_id => ''bank'') IS NOT NULL', :'scheduled')), 'true', 'who has its schedulerId may join');
SELECT tq.revoke_scopes('spy', '{queue:scheduler-id:bank}') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L)', :'scheduled')), :'forbidden', 'the schedulerId of its group is not shown to another application');
SELECT tq.grant_scopes('spy', '{queue:scheduler-id:bank}') \g /dev/null

-- A task depends on tasks of queues in which its creator may create, or has the right to depend; others are tasks that do not exist.
SELECT tq.enqueue('bank/lone') AS vault \gset
SELECT task_id, run_id FROM tq.claim_task(:'vault', 0, 'g', 'w') \g /dev/null
SELECT tq.report_completed(:'vault', 0, result => '"secret"') \g /dev/null
SELECT tq.slugid() AS nowhere \gset
CREATE FUNCTION pg_temp.depend(who name, required text, queue text DEFAULT 'mine/q') RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.call_as(who, format('SELECT tq.enqueue(%L, dependencies => ARRAY[%L]::tq.slugid[])', queue, required))
$$;
SELECT is(replace(pg_temp.depend('spy', :'vault'), :'vault', 'T'), replace(pg_temp.depend('spy', :'nowhere'), :'nowhere', 'T'),
	'4.2 a foreign task is one that does not exist');
SELECT is(pg_temp.depend('spy', :'vault'), format('TQ400 missingTaskDependencies: [%s]; expiringTaskDependencies: [].', :'vault'), '4.2 whatever its expiry');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object(''taskId'', tq.slugid(), ''task'', %L::jsonb)))',
	pg_temp.def('x', '{"taskQueueId": "mine/q"}') - '{schedulerId,taskGroupId}'::text[] || jsonb_build_object('dependencies', jsonb_build_array(:'vault')))) ~ '^TQ400 missingTaskDependencies', true, 'create_tasks');
SELECT is(length(pg_temp.depend('teller', :'vault', 'bank/x')), 22, 'a producer of its queue may');
SELECT tq.grant_queue('spy', 'bank/lone', 'depend') \g /dev/null
SELECT pg_temp.depend('spy', :'vault') AS own \gset
SELECT is(length(:'own'), 22, 'and a role with the right to depend');
SELECT is(pg_temp.call_as('spy', format('SELECT state || '' '' || result FROM tq.dependency_results(%L)', :'own')), 'completed "secret"', 'which sees the result');
SELECT is(pg_temp.depend('spy', :'a') ~ '^TQ400 missing', true, 'for one queue');
SELECT tq.revoke_queue('spy', 'bank/lone', 'depend') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT concat_ws('' '', state, result) FROM tq.dependency_results(%L)', :'own')), 'missing', 'as long as it has it');
SELECT is(pg_temp.depend('spy', :'vault') ~ '^TQ400 missing', true, 'and no longer');
SELECT tq.enqueue('bank/lone') AS hidden \gset
SELECT tq.grant_queue('spy', 'bank/lone', 'depend') \g /dev/null
SELECT pg_temp.depend('spy', :'hidden') AS waits \gset
SELECT is(pg_temp.call_as('spy', format('SELECT detail FROM tq.why(%L)', :'waits')) ~ ': pending$', true, 'why() has the state of a required task');
SELECT tq.revoke_queue('spy', 'bank/lone', 'depend') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT detail || ''; '' || advice FROM tq.why(%L)', :'waits')), format('it depends on %s: not visible; ask for the right to depend on it', :'hidden'), 'not of one that the caller may no longer see');

-- The tasks of a group that one may join are its own: a task that creates others lets them depend on itself.
SELECT tq.grant_queue('spy', 'bank/a', 'join') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT length(tq.enqueue(''mine/q'', task_group_id => %L, dependencies => ARRAY[%L]::tq.slugid[])::text)', :'shared', :'a')), '22', 'a member of its group');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L, dependencies => ARRAY[%L]::tq.slugid[])', :'shared', :'vault')) ~ '^TQ400 missing', true, 'but no other');
SELECT tq.revoke_queue('spy', 'bank/a', 'join') \g /dev/null

-- add_dependencies() is the same; tasks of its own queue, a task may depend on.
SELECT tq.grant_queue('spy', 'mine/*', 'manage') \g /dev/null
SELECT tq.slugid() AS waiting, pg_temp.call_as('spy', $$SELECT tq.enqueue('mine/q')$$) AS mine \gset
SELECT pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_id => %L, dependencies => ARRAY[%L]::tq.slugid[], deadline => ''1 day'')', :'waiting', :'mine')) \g /dev/null
SELECT is(replace(pg_temp.call_as('spy', format('SELECT tq.add_dependencies(%L, ARRAY[%L]::tq.slugid[])', :'waiting', r)), r, 'T'),
	'TQ400 missingTaskDependencies: [T]; expiringTaskDependencies: [].', 'add_dependencies') FROM unnest(ARRAY[:'vault', :'nowhere']) AS r;
SELECT is(pg_temp.call_as('spy', format('SELECT tq.add_dependencies(%L, ARRAY[tq.enqueue(''mine/other'')]) ->> ''state''', :'waiting')), 'unscheduled', 'add_dependencies: a task of its own');

-- A team follows, seals, repairs and cancels the groups that its queues began; another one does not learn that they exist.
CREATE ROLE operator;
CREATE ROLE onlooker;
SELECT tq.grant_queue('operator', 'bank/*', 'manage') \g /dev/null
SELECT tq.grant_queue('onlooker', 'mine/*', a) FROM unnest('{produce,read,manage}'::text[]) AS a \g /dev/null
SELECT tq.slugid() AS ours \gset
SELECT tq.enqueue('bank/q', task_group_id => :'ours', payload => '{"a": "secret"}') AS first \gset
SELECT is(pg_temp.call_as('operator', 'SELECT ' || replace(call, 'G', quote_literal(:'ours'))), gets, 'a team: ' || call) FROM (VALUES
	($$tq.get_task_group(G) ? 'sealed'$$, 'false'), ($$count(*) FROM tq.list_task_group(G) WHERE task #>> '{payload,a}' = 'secret'$$, '1'),
	($$pending FROM tq.group_progress(G)$$, '1'),
	($$tq.change_task_group_priority(G, 'high') IS NOT NULL$$, 'true'), ($$tq.seal_task_group(G) ? 'sealed'$$, 'true'),
	($$tq.cancel_task_group(G) ->> 'cancelledCount'$$, '1'), ($$tq.retry_task_group(G, reasons => '{canceled}')$$, '1')) AS v (call, gets);
SELECT is(replace(pg_temp.call_as('onlooker', format(call, :'ours')), :'ours', 'G'), replace(pg_temp.call_as('onlooker', format(call, :'nowhere')), :'nowhere', 'G'), 'another team: ' || call)
FROM unnest(ARRAY[$$SELECT tq.get_task_group(%L)$$, $$SELECT count(*) FROM tq.list_task_group(%L)$$, $$SELECT tq.group_progress(%L)$$, $$SELECT tq.group_tree(%L)$$,
	$$SELECT tq.on_group_resolved(%L, 'mine/q')$$, $$SELECT tq.cancel_group_callbacks(%L)$$]) AS call;
SELECT matches(pg_temp.call_as('onlooker', format(call, :'ours')), '^TQ404 .* the caller has no right to see it', 'another team may not: ' || call)
FROM unnest(ARRAY['SELECT tq.seal_task_group(%L)', 'SELECT tq.cancel_task_group(%L)', 'SELECT tq.retry_task_group(%L)', 'SELECT tq.change_task_group_priority(%L, ''high'')']) AS call;
-- A list shows the definitions of tasks only to those who may get them.
GRANT tq_producer TO onlooker;
SELECT is(pg_temp.call_as('onlooker', format('SELECT (status ->> ''taskQueueId'') || coalesce(task::text, '' NULL'') FROM tq.list_task_group(%L)', :'ours')), 'bank/q NULL', 'a list without the right to get tasks');
REVOKE tq_producer FROM onlooker;
-- Artifacts of its tasks, and of no others.
INSERT INTO tq_internal.artifact (task, run_id, name, storage_type, content_type, details, expires, present)
	SELECT id, 0, 'public/a', 6, 'text/plain', '{"content": "x"}', now() + interval '1 hour', true FROM tq_internal.task WHERE task_id = :'vault';
SELECT is(pg_temp.call_as('operator', format('SELECT tq.get_artifact(%L, 0, ''public/a'') IS NOT NULL', :'vault')), 'true', 'the artifacts of its tasks');
SELECT is(pg_temp.call_as('operator', format('SELECT count(*) FROM tq.list_artifacts(%L, 0)', :'vault')), '1', 'and a list of them');
SELECT is(replace(pg_temp.call_as('onlooker', format(call, :'vault')), :'vault', 'T'), replace(pg_temp.call_as('onlooker', format(call, :'nowhere')), :'nowhere', 'T'), 'another team: ' || call)
FROM unnest(ARRAY['SELECT tq.get_artifact(%L, 0, ''public/a'')', 'SELECT tq.get_latest_artifact(%L, ''public/a'')', 'SELECT count(*) FROM tq.list_artifacts(%L, 0)', 'SELECT tq.artifact_info(%L, 0, ''public/a'')']) AS call;

-- A repair leaves the tasks of others as they are, and they do not keep it from its own.
SELECT tq.grant_queue('spy', 'bank/*', 'depend') \g /dev/null
SELECT tq.slugid() AS mended, tq.slugid() AS below \gset
SELECT tq.enqueue('bank/q', task_group_id => :'mended', retries => 0) AS base \gset
SELECT tq.enqueue('bank/q', dependencies => ARRAY[:'base']::tq.slugid[]) AS own_dependent \gset
SELECT pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_id => %L, dependencies => ARRAY[%L]::tq.slugid[], deadline => ''1 day'')', :'below', :'base')) \g /dev/null
SELECT tq.enqueue('bank/q', dependencies => ARRAY[:'below']::tq.slugid[]) AS behind \gset
CREATE FUNCTION pg_temp.break(base text, VARIADIC others text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq.claim_task(base::tq.slugid, (tq.status(base::tq.slugid) #>> '{runs,-1,runId}')::int, 'g', 'w');
	PERFORM tq.report_failed(base::tq.slugid, (tq.status(base::tq.slugid) #>> '{runs,-1,runId}')::int);
	PERFORM tq.cancel_task(o::tq.slugid) FROM unnest(others) AS o;
END $$;
SELECT is(pg_temp.call_as('operator', format('SELECT string_agg(task_id::text, '' '') FROM tq.list_dependent_tasks(%L, max => %s)', :'base', max)), :'own_dependent', format('list_dependent_tasks: its own, %s at most', max)) FROM unnest('{1,2,1000}'::int[]) AS max;
SELECT is((SELECT count(*) FROM tq.list_dependent_tasks(:'base')), 2::bigint, 'an administrator sees both');
-- completed dependents: those of the other team are left as they are
SELECT tq.enqueue('bank/q', task_group_id => :'mended') AS base2 \gset
SELECT tq.slugid() AS below2, tq.enqueue('bank/q', dependencies => ARRAY[:'base2']::tq.slugid[]) AS own2 \gset
SELECT pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_id => %L, dependencies => ARRAY[%L]::tq.slugid[], deadline => ''1 day'')', :'below2', :'base2')) \g /dev/null
SELECT tq.skip_task(t::tq.slugid) FROM unnest(ARRAY[:'base2', :'own2', :'below2']) AS t \g /dev/null
SELECT is(pg_temp.call_as('operator', format('SELECT string_agg(replace(replace(task_id::text, %L, ''base''), %L, ''own'') || '' '' || action, '', '') FROM tq.rerun_plan(%L)', :'base2', :'own2', :'base2')),
	'base rerun, own wait', 'rerun_plan does not show the other one');
SELECT is(pg_temp.call_as('operator', format('SELECT tq.rerun_task(%L, downstream => true) ->> ''state''', :'base2')), 'pending', 'a completed part is rerun');
SELECT is(concat_ws(', ', pg_temp.state_of(:'own2'), pg_temp.state_of(:'below2')), 'unscheduled skipped, completed skipped', 'the other one stays completed');
SELECT pg_temp.break(:'base', :'own_dependent', :'below', :'behind') \g /dev/null
SELECT is(pg_temp.call_as('operator', format('SELECT tq.rerun_task(%L, downstream => true) ->> ''state''', :'base')), 'pending', 'rerun_task with downstream');
SELECT is(concat_ws(', ', pg_temp.state_of(:'own_dependent'), pg_temp.state_of(:'below'), pg_temp.state_of(:'behind')), 'unscheduled canceled, exception canceled, exception canceled',
	'its own dependent waits again; that of another team stays, and what is behind that');
SELECT pg_temp.break(:'base', :'own_dependent') \g /dev/null
SELECT is(pg_temp.call_as('operator', format('SELECT tq.retry_task_group(%L)', :'mended')), '2', 'retry_task_group');
SELECT is(concat_ws(', ', pg_temp.state_of(:'own_dependent'), pg_temp.state_of(:'below')), 'unscheduled canceled, exception canceled', 'the same');
SELECT is(pg_temp.call_as('operator', format('SELECT tq.retry_task_group(%L, deadline => ''5 days'')', :'mended')), '0', 'nothing is left to repair');
SELECT is((tq.status(:'below') ->> 'deadline')::timestamptz < now() + interval '2 days', true, 'nor does the other one get another deadline');
SELECT tq.revoke_queue('spy', 'bank/*', 'depend') \g /dev/null

-- A key of the database needs the right to all queues, since it holds up creations in all.
SELECT pg_temp.call_as('bank', format('SELECT tq.enqueue(''bank/q'', policy => ''{"uniqueKey": "k", "uniqueScope": "database"}'')')) AS unique_all \gset
SELECT is(:'unique_all'::text, 'TQ403 The call requires queue:unique-in-queue:*.', 'policy 11.1: a key of the database');
SELECT tq.grant_queue('bank', 'bank/*', 'unique') \g /dev/null
SELECT is(pg_temp.call_as('bank', c), :'unique_all', 'with the right for some queues: ' || c) FROM unnest(ARRAY[
	$$SELECT tq.enqueue('bank/q', policy => '{"uniqueKey": "k", "uniqueScope": "database"}')$$,
	$$SELECT tq.enqueue_tasks('bank/q', '{"{}"}', policy => '{"uniqueKey": "k", "uniqueScope": "database", "onConflict": "replace"}')$$,
	$$SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', tq.slugid(), 'task',
		pg_temp.def('x', '{"taskQueueId": "bank/q", "policy": {"uniqueKey": "k", "uniqueScope": "database"}}') - 'schedulerId')))$$]) AS c;
SELECT is(length(pg_temp.call_as('bank', $$SELECT tq.enqueue('bank/q', policy => '{"uniqueKey": "k"}')$$)), 22, 'a key of its own queue');
SELECT is(length(pg_temp.call_as('bank', $$SELECT tq.enqueue('bank/q', policy => '{"uniqueScope": "database"}')$$)), 22, 'no key');
SELECT tq.set_queue('bank/u', '{"policy": {"uniqueScope": "database"}}') \g /dev/null
SELECT is(pg_temp.call_as('bank', $$SELECT tq.enqueue('bank/u', policy => '{"uniqueKey": "k"}')$$), :'unique_all', 'by the default of the queue');
SELECT tq.grant_queue('bank', '*', 'unique') \g /dev/null
SELECT is(length(pg_temp.call_as('bank', $$SELECT tq.enqueue('bank/u', policy => '{"uniqueKey": "k"}')$$)), 22, 'with the right for all queues');
SELECT tq.revoke_queue('bank', '*', 'unique'), tq.revoke_queue('bank', 'bank/*', 'unique'), tq.grant_queue('bank', '*', 'produce') \g /dev/null
SELECT is(length(pg_temp.call_as('bank', $$SELECT tq.enqueue('bank/u', policy => '{"uniqueKey": "k"}')$$)), 22, 'a producer of all queues');
SELECT tq.revoke_queue('bank', '*', 'produce') \g /dev/null

-- A role works as workers of the names that it was given.
CREATE ROLE hand;
SELECT tq.grant_queue('hand', 'mine/*', 'work', 'mine/*') \g /dev/null
SELECT is(pg_temp.call_as('hand', $$SELECT count(*) >= 0 FROM tq.claim_work('mine/q', 'mine', 'w1')$$), 'true', 'workers: of the group');
SELECT is(pg_temp.call_as('hand', $$SELECT count(*) FROM tq.claim_work('mine/q', 'bank', 'w1')$$), 'TQ403 The call requires queue:worker-id:bank/w1.', 'workers: of no other');
SELECT tq.grant_queue('hand', 'mine/*', 'work', 'extra/w7') \g /dev/null
SELECT is(pg_temp.call_as('hand', format('SELECT count(*) >= 0 FROM tq.claim_work(''mine/q'', ''extra'', %L)', w)) ~ '^TQ403', w <> 'w7', 'workers: one more, ' || w) FROM unnest('{w7,w8}'::text[]) AS w;
SELECT tq.revoke_queue('hand', 'mine/*', 'work') \g /dev/null
SELECT is(pg_temp.call_as('hand', 'SELECT tq.current_scopes()'), '{}', 'workers: revoke_queue() takes them all');
SELECT is(pg_temp.error(format('SELECT tq.grant_queue(''hand'', ''mine/*'', %L, %L)', access, workers)) ->> 'sqlstate', 'TQ400', format('workers: %s %s', access, workers))
FROM (VALUES ('work', ''), ('work', 'mine'), ('work', '/x'), ('work', 'a/b/c'), ('work', 'mine/*x'), ('work', '**'), ('work', 'ä/*'), ('read', 'mine/*'), ('work', NULL)) AS v (access, workers);

-- A group may have the id of a task that is in another one, and has no name from it.
SELECT pg_temp.call_as('bank', $$SELECT tq.enqueue('bank/q', name => 'secret', task_group_id => tq.slugid())$$) AS inner \gset
SELECT is(pg_temp.call_as('spy', format('SELECT tq.enqueue(''mine/q'', task_group_id => %L) IS NOT NULL', :'inner')), 'true', 'a group of the id of another task');
SELECT is(pg_temp.call_as('spy', format('SELECT coalesce(name, ''none'') FROM tq.group_overview WHERE task_group_id = %L', :'inner')), 'none', 'names: not in the view');
SELECT is(pg_temp.call_as('spy', format('SELECT count(*) FROM tq.group_tree(%L) AS l WHERE l LIKE ''%%secret%%''', :'inner')), '0', 'names: nor in a picture');

-- Rights are rows: each is revoked by itself.
SELECT tq.grant_queue('spy', 'mine/*', 'work') \g /dev/null
SELECT tq.revoke_queue('spy', 'mine/*', 'work'), tq.revoke_queue('spy', 'mine/*', 'manage') \g /dev/null
SELECT is(pg_temp.call_as('spy', format('SELECT tq.status(%L) ->> ''state''', :'mine')), 'pending', 'what another access gives as well stays');
SELECT is(pg_temp.call_as('spy', format('SELECT tq.cancel_task(%L)', :'mine')) ~ '^TQ403', true, 'what no other gives is gone');
SELECT throws_ok($$SELECT tq.revoke_scopes('spy', '{queue:status-in-queue:mine/*}')$$, 'TQ409', 'scope "queue:status-in-queue:mine/*" cannot be revoked from role "spy"', 'revoke_scopes: what an access gives');
SELECT tq.grant_scopes('spy', '{queue:status-in-queue:mine/*}'), tq.revoke_queue('spy', 'mine/*', 'produce') \g /dev/null
SELECT is(pg_temp.call_as('spy', 'SELECT tq.current_scopes()'), '{queue:scheduler-id:bank,queue:status-in-queue:mine/*}', 'nor does revoke_queue() take what grant_scopes() gave');
SELECT tq.revoke_scopes('spy', '{queue:status-in-queue:mine/*}') \g /dev/null
SELECT is(pg_temp.call_as('spy', 'SELECT tq.current_scopes()'), '{queue:scheduler-id:bank}', 'which revoke_scopes() does');

SELECT * FROM finish();
ROLLBACK;
