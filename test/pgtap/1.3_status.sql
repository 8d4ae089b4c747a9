-- doc/spec/taskcluster.md 1.3 and 1.4: the status structure and the run object,
-- key by key.
BEGIN;
\ir helper.psql

\set status_keys '''deadline expires priority projectId provisionerId retriesLeft runs schedulerId state taskGroupId taskId taskQueueId workerType'''

SELECT pg_temp.create('pend', '{"$group": "grp", "schedulerId": "sched", "projectId": "proj", "priority": "high", "retries": 3, "$expires": "3 hours"}');
SELECT pg_temp.create('unsch', '{"$deps": ["unsch"]}');
SELECT pg_temp.running('runn');
SELECT pg_temp.resolved('comp', 'completed');
SELECT pg_temp.resolved('fail', 'failed');
SELECT pg_temp.resolved('exc', 'malformed-payload');
SELECT pg_temp.resolved('retr', 'worker-shutdown');
SELECT pg_temp.create('born', '{"$deps": ["born"]}');
SELECT pg_temp.report('born', 'canceled');
SELECT pg_temp.create('canc');
SELECT pg_temp.report('canc', 'canceled');
SELECT pg_temp.resolved('runcanc', 'canceled');

-- 1.3
SELECT is(pg_temp.keys(tq.status(pg_temp.id(name))), :status_keys, '1.3 keys of the status of ' || name)
FROM unnest('{pend,unsch,runn,comp,fail,exc,retr,born,canc,runcanc}'::text[]) AS name;
SELECT is(tq.status(pg_temp.id('pend')) - 'runs', jsonb_build_object(
	'taskId', pg_temp.id('pend')::text, 'provisionerId', 'test', 'workerType', 'q-pend', 'taskQueueId', 'test/q-pend',
	'schedulerId', 'sched', 'projectId', 'proj', 'taskGroupId', pg_temp.id('grp')::text, 'priority', 'high',
	'deadline', pg_temp.iso(pg_temp.base() + interval '1 hour'), 'expires', pg_temp.iso(pg_temp.base() + interval '3 hours'),
	'retriesLeft', 3, 'state', 'pending'), '1.3 the values come from the definition');
SELECT is(tq.status(pg_temp.id('unsch')) - 'runs', jsonb_build_object(
	'taskId', pg_temp.id('unsch')::text, 'provisionerId', 'test', 'workerType', 'q-unsch', 'taskQueueId', 'test/q-unsch',
	'schedulerId', '-', 'projectId', 'none', 'taskGroupId', pg_temp.id('unsch')::text, 'priority', 'lowest',
	'deadline', pg_temp.iso(pg_temp.base() + interval '1 hour'),
	'expires', pg_temp.iso(pg_temp.next_year(pg_temp.base() + interval '1 hour')),
	'retriesLeft', 5, 'state', 'unscheduled'), '1.3 the values of a task with defaults');
SELECT is(tq.status(pg_temp.id('unsch')) -> 'runs', '[]', '1.3 runs of an unscheduled task is an empty array');
SELECT is(pg_temp.state(name), state, format('1.3 state of %s is that of its last run', name))
FROM (VALUES ('pend', 'pending'), ('unsch', 'unscheduled'), ('runn', 'running'), ('comp', 'completed'), ('fail', 'failed'),
	('exc', 'exception'), ('retr', 'pending'), ('born', 'exception'), ('canc', 'exception'), ('runcanc', 'exception')) AS v (name, state);
SELECT is((SELECT string_agg(key || ' ' || jsonb_typeof(value), ', ' ORDER BY key COLLATE "C") FROM jsonb_each(tq.status(pg_temp.id('pend')))),
	'deadline string, expires string, priority string, projectId string, provisionerId string, retriesLeft number, runs array, schedulerId string, state string, taskGroupId string, taskId string, taskQueueId string, workerType string',
	'1.3 types');

-- 1.4
SELECT is(pg_temp.keys(pg_temp.run(name, n)), keys, format('1.4 keys of run %s of %s', n, name))
FROM (VALUES
	('pend', 0, 'reasonCreated runId scheduled state'),
	('runn', 0, 'reasonCreated runId scheduled started state takenUntil workerGroup workerId'),
	('comp', 0, 'reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId'),
	('fail', 0, 'reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId'),
	('exc', 0, 'reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId'),
	('retr', 0, 'reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId'),
	('retr', 1, 'reasonCreated runId scheduled state'),
	('born', 0, 'reasonCreated reasonResolved resolved runId scheduled state'),
	('canc', 0, 'reasonCreated reasonResolved resolved runId scheduled state'),
	('runcanc', 0, 'reasonCreated reasonResolved resolved runId scheduled started state takenUntil workerGroup workerId')) AS v (name, n, keys);
SELECT is(pg_temp.look(name), line, format('1.4 states and reasons of %s', name))
FROM (VALUES
	('pend', 'pending 3: scheduled>pending'),
	('unsch', 'unscheduled 5:'),
	('runn', 'running 5: scheduled>running'),
	('comp', 'completed 5: scheduled>completed/completed'),
	('fail', 'failed 5: scheduled>failed/failed'),
	('exc', 'exception 5: scheduled>exception/malformed-payload'),
	('retr', 'pending 4: scheduled>exception/worker-shutdown retry>pending'),
	('born', 'exception 5: exception>exception/canceled'),
	('canc', 'exception 5: scheduled>exception/canceled'),
	('runcanc', 'exception 5: scheduled>exception/canceled')) AS v (name, line);
SELECT is((SELECT string_agg(run ->> 'runId', ',' ORDER BY n) FROM jsonb_array_elements(tq.status(pg_temp.id('retr')) -> 'runs')
	WITH ORDINALITY AS u (run, n)), '0,1', '1.4 runId is the index in the array');
SELECT is(jsonb_typeof(pg_temp.run('pend') -> 'runId'), 'number', '1.4 runId is a number');
SELECT is(pg_temp.run('runn') ->> 'workerGroup', 'wg', '1.4 workerGroup of a running run');
SELECT is(pg_temp.run('runn') ->> 'workerId', 'w1', '1.4 workerId of a running run');
SELECT is(pg_temp.run('comp') ->> 'workerId', 'w1', '1.4 workerId is kept after resolution');
SELECT ok(pg_temp.near(pg_temp.run(name, n) ->> key, pg_temp.clock() + plus), format('1.4 %s of run %s of %s, to the millisecond', key, n, name))
FROM (VALUES ('pend', 0, 'scheduled', '0'::interval), ('runn', 0, 'scheduled', '0'), ('runn', 0, 'started', '0'),
	('runn', 0, 'takenUntil', '20 minutes'), ('comp', 0, 'resolved', '0'), ('comp', 0, 'takenUntil', '20 minutes'), ('retr', 0, 'resolved', '0'),
	('retr', 1, 'scheduled', '0'), ('born', 0, 'scheduled', '0'), ('canc', 0, 'resolved', '0'), ('runcanc', 0, 'takenUntil', '20 minutes')) AS v (name, n, key, plus);
SELECT ok((r ->> 'scheduled') <= (r ->> 'started') AND (r ->> 'started') <= (r ->> 'resolved'), '1.4 scheduled, started, resolved are in order')
FROM pg_temp.run('comp') AS r;
SELECT is((r ->> 'takenUntil')::timestamptz - (r ->> 'started')::timestamptz, interval '20 minutes', '1.4 takenUntil is started and the claim timeout')
FROM pg_temp.run('comp') AS r;
SELECT is(pg_temp.run('born') ->> 'scheduled', pg_temp.run('born') ->> 'resolved', '1.4 scheduled equals resolved of a run that is created resolved');
SELECT ok((pg_temp.run('retr', 0) ->> 'resolved') <= (pg_temp.run('retr', 1) ->> 'scheduled'), '1.4 the retry is scheduled when the run before is resolved');
SELECT is((SELECT count(*) FROM unnest('{pend,unsch,runn,comp,fail,exc,retr,born,canc,runcanc}'::text[]) AS name
	WHERE tq.status(pg_temp.id(name))::text LIKE '%null%'), 0::bigint, '1.4 absent values are omitted, not null');

-- 1.4 keys stay the same when more time has passed, and after a reclaim the last takenUntil is kept
SELECT pg_temp.running('recl');
SET tq.clock_offset = '10 minutes';
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('recl'), 0)$$, '1.4 a reclaim');
SELECT pg_temp.report('recl', 'completed');
SELECT ok(pg_temp.near(pg_temp.run('recl') ->> 'takenUntil', now() + interval '30 minutes'), '1.4 takenUntil keeps its last value after resolution');
SELECT ok(pg_temp.near(pg_temp.run('recl') ->> 'started', now()), '1.4 a reclaim does not move started');
RESET tq.clock_offset;

-- 1.4 what Taskcluster's runs have not is in runDetails, whichever function returns the status
CREATE FUNCTION pg_temp.details(status jsonb) RETURNS text
LANGUAGE sql AS $$
	SELECT concat_ws(' | ',
		(SELECT string_agg(DISTINCT key, ' ') FROM jsonb_array_elements(status -> 'runs') AS run, jsonb_object_keys(run) AS key
			WHERE key <> ALL ('{reasonCreated,reasonResolved,resolved,runId,scheduled,started,state,takenUntil,workerGroup,workerId}')),
		coalesce((SELECT string_agg((d ->> 'runId') || ': ' || pg_temp.keys(d - 'runId'), ', ' ORDER BY n)
			FROM jsonb_array_elements(status -> 'runDetails') WITH ORDINALITY AS u (d, n)), '-' || coalesce(status ->> 'runDetails', '')))
$$;
SELECT is(pg_temp.details(tq.create_task(pg_temp.id('late'), pg_temp.def('late', '{"delay": 60, "policy": {"retries": 2, "retryOn": ["failed"]}}'))),
	'0: visibleAt', '1.4 details of create_task');
SELECT is(pg_temp.details(tq.reschedule_task(pg_temp.id('late'), now())), '0: visibleAt', '1.4 of reschedule_task');
SELECT is(pg_temp.details(status), '0: visibleAt', '1.4 of a claim with its definition') FROM tq.claim_work('test/q-late', 'wg', 'w1', definition => true);
SELECT is(pg_temp.details(tq.report_progress(pg_temp.id('late'), 0, 1, 2)), '0: progress visibleAt', '1.4 of report_progress');
SELECT is(pg_temp.details(tq.report_failed(pg_temp.id('late'), 0, error => '"no"', retry_delay => '1 hour')), '0: error progress visibleAt, 1: attempt visibleAt', '1.4 of report_failed');
SELECT is(pg_temp.details(tq.cancel_task(pg_temp.id('late'))), '0: error progress visibleAt, 1: attempt visibleAt', '1.4 of cancel_task');
SELECT is(pg_temp.details(tq.rerun_task(pg_temp.id('late'))), '0: error progress visibleAt, 1: attempt visibleAt, 2: attempt', '1.4 of rerun_task');
SELECT is(pg_temp.details(status), '0: error progress visibleAt, 1: attempt visibleAt, 2: attempt', '1.4 of the claim of a rerun')
FROM tq.claim_work('test/q-late', 'wg', 'w1', definition => true);
SELECT is(pg_temp.details(tq.report_completed(pg_temp.id('late'), 2, result => '1')), '0: error progress visibleAt, 1: attempt visibleAt, 2: attempt', '1.4 of report_completed');
SELECT is(pg_temp.details(status), '0: error progress visibleAt, 1: attempt visibleAt, 2: attempt', '1.4 of ' || f)
FROM (SELECT 'status' AS f, tq.status(pg_temp.id('late')) AS status UNION ALL SELECT 'statuses', status FROM tq.statuses(pg_temp.ids('late'))
	UNION ALL SELECT 'list_task_group', status FROM tq.list_task_group(pg_temp.id('late'))) AS s;
SELECT pg_temp.running('plain') \g /dev/null
SELECT is(pg_temp.details(tq.report_completed(pg_temp.id('plain'), 0, result => '1')), '-', '1.4 no details of a run that has a result only');
SELECT is(pg_temp.details(tq.status(pg_temp.id('plain'))), '-', '1.4 nor later');
SELECT is(tq.status(pg_temp.id('late')) #> '{runDetails,0,error}', '"no"', '1.4 the error, as it was given');
SELECT is(tq.status(pg_temp.id('late')) #> '{runDetails,1,attempt}', '1', '1.4 and the attempt');

SELECT * FROM finish();
ROLLBACK;
