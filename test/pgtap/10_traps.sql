-- doc/spec/taskcluster.md 10: the pitfalls, by number.  Elsewhere: 1 and 7 in
-- 2.01, 2 in 2.10, 3 in 2.12, 6 in 4.2, 8, 9, 14 and 20 in 6.0 and 6.1, 10 in
-- 2.15, 12 in 2.13, 13 in 2.08, 15 and 16 in 2.14, 17 in 5.5.  11 is not built yet.
BEGIN;
\ir helper.psql

-- 4: expiry of a claim processed again must not resolve the task
SELECT pg_temp.running('a', '{"$deadline": "3 hours"}');
SELECT pg_temp.create('after', '{"$deps": ["a"], "requires": "all-resolved", "$deadline": "3 hours"}');
SET tq.clock_offset = '21 minutes';
SAVEPOINT s;
SELECT is(pg_temp.pass(), 'claim-expired 1', '10.4 a claim expires');
ROLLBACK TO SAVEPOINT s;
SELECT is(pg_temp.pass(), 'claim-expired 1', '10.4 the pass was rolled back: it succeeds once more');
INSERT INTO tq_internal.claim_timer (due, tasks) SELECT (pg_temp.run('a', 0) ->> 'takenUntil')::timestamptz, ARRAY[id] FROM tq_internal.task WHERE task_id::text = pg_temp.id('a')::text;
SELECT is(pg_temp.pass(), '', '10.4 the claim timer is processed again while the retry is pending: nothing');
SELECT pg_temp.take('a');
INSERT INTO tq_internal.claim_timer (due, tasks) SELECT (pg_temp.run('a', 0) ->> 'takenUntil')::timestamptz, ARRAY[id] FROM tq_internal.task WHERE task_id::text = pg_temp.id('a')::text;
SELECT is(pg_temp.pass(), '', '10.4 while it is running: nothing');
SELECT is(pg_temp.look('a') || ', ' || pg_temp.look('after'), 'running 4: scheduled>exception/claim-expired retry>running, unscheduled 5:', '10.4 the dependent waits');
RESET tq.clock_offset;

-- 5: the cleanup of a reported exception is that of the run itself, not of run 0
SELECT pg_temp.resolved('b', 'worker-shutdown', '{"$deadline": "3 hours"}');
SELECT pg_temp.work('b', 'internal-error');
SELECT is(tq.task_queue_counts('test/q-b') ->> 'claimedTasks', '0', '10.5 run 1, reported as exception, is not claimed any more');
SELECT is(pg_temp.pass('21 minutes'), '', '10.5 nor does its claim expire');
RESET tq.clock_offset;

-- 18: times in milliseconds, UTC, Z; advancing within a transaction
SET timezone = 'Asia/Kolkata';
SELECT pg_temp.running('c');
SELECT pg_temp.report('c', 'completed');
SELECT is((SELECT count(*) FROM regexp_matches(tq.status(pg_temp.id('c'))::text, '"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"', 'g')), 6::bigint, '10.18 six times of one form in a status, whatever the time zone');
SELECT is((SELECT count(*) FROM regexp_matches(tq.task(pg_temp.id('c'))::text, '"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"', 'g')), 3::bigint, '10.18 three in a definition');
SELECT ok(pg_temp.near(pg_temp.run('c') ->> 'started', clock_timestamp()), '10.18 and they are right');
SET timezone = 'UTC';
SET datestyle = 'German';
SET intervalstyle = 'iso_8601';
SELECT is(pg_temp.create('c2'), 'pending 5: scheduled>pending', '10.18 other styles of dates do not matter');
SELECT ok(pg_temp.run('c2') ->> 'scheduled' ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$', '10.18 nor change the output');
RESET datestyle;
RESET intervalstyle;
DO $$
DECLARE
	start timestamptz := clock_timestamp();
BEGIN
	WHILE clock_timestamp() < start + interval '2 ms' LOOP	-- until the clock has advanced by a millisecond
		NULL;
	END LOOP;
END
$$;
SELECT ok((pg_temp.run('c') ->> 'scheduled')::timestamptz > date_trunc('milliseconds', now()), '10.18 scheduled is the time of the call, not of the transaction');
SELECT pg_temp.create('c3');
SELECT ok(pg_temp.run('c3') ->> 'scheduled' > pg_temp.run('c') ->> 'scheduled', '10.18 it advances within a transaction');

-- 19: the state follows from the runs, everywhere the same
SELECT pg_temp.create('p');
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.running('r');
SELECT pg_temp.resolved('rt', 'intermittent-task');
SELECT pg_temp.resolved('f', 'failed');
SELECT pg_temp.resolved('e', 'internal-error');
SELECT is(s ->> 'state', coalesce(s #>> '{runs,-1,state}', 'unscheduled'), '10.19 the state is that of the last run: ' || n)
FROM unnest('{a,after,b,c,c2,p,u,r,rt,f,e}'::text[]) AS n, tq.status(pg_temp.id(n)) AS s;
SELECT is(o.state, pg_temp.state(n), '10.19 task_overview shows the same: ' || n)
FROM unnest('{a,after,b,c,c2,p,u,r,rt,f,e}'::text[]) AS n JOIN tq.task_details AS o ON o.task_id::text = pg_temp.id(n)::text;
SELECT is((SELECT string_agg(concat_ws('/', o.run_id, o.state, o.reason_created, o.reason_resolved, o.worker_id), ' ' ORDER BY o.run_id) FROM tq.run_overview AS o WHERE o.task_id::text = pg_temp.id(n)::text),
	(SELECT string_agg(concat_ws('/', r ->> 'runId', r ->> 'state', r ->> 'reasonCreated', r ->> 'reasonResolved', r ->> 'workerId'), ' ' ORDER BY (r ->> 'runId')::int)
		FROM jsonb_array_elements(tq.status(pg_temp.id(n)) -> 'runs') AS r), '10.19 run_overview too: ' || n)
FROM unnest('{a,after,b,c,c2,p,u,r,rt,f,e}'::text[]) AS n;
-- and is stored once
SELECT is((SELECT count(*) FROM (
		SELECT task FROM tq_internal.unscheduled UNION ALL SELECT task FROM tq_internal.pending UNION ALL SELECT task FROM tq_internal.delayed UNION ALL
		SELECT r.task FROM tq_internal.run r WHERE NOT EXISTS (SELECT FROM tq_internal.run l WHERE l.task = r.task AND l.run_id > r.run_id)
			AND NOT EXISTS (SELECT FROM tq_internal.pending p WHERE p.task = r.task) AND NOT EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = r.task)) AS s),
	(SELECT count(*) FROM tq_internal.task), '10.19 each task has exactly one state');

SELECT * FROM finish();
ROLLBACK;
