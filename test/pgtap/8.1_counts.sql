-- doc/spec/taskcluster.md 8.1: counts.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.counts() RETURNS text
LANGUAGE sql AS $$
	SELECT format('%s pending, %s claimed', c ->> 'pendingTasks', c ->> 'claimedTasks') || CASE WHEN (tq.task_queue_counts('test/q') -> 'pendingTasks')::bigint <> (c ->> 'pendingTasks')::bigint THEN ', pending_tasks differs' ELSE '' END
	FROM tq.task_queue_counts('test/q') AS c
$$;

SELECT is(pg_temp.counts(), '0 pending, 0 claimed', '8.1 an unknown queue gives 0');
SELECT pg_temp.create('a' || n, '{"taskQueueId": "test/q", "$deadline": "2 hours"}') FROM generate_series(1, 6) AS n;
SELECT pg_temp.create('x1', '{"taskQueueId": "test/other"}');
SELECT pg_temp.create('u1', '{"taskQueueId": "test/q", "$deps": ["u1"]}');
SELECT is(pg_temp.counts(), '6 pending, 0 claimed', '8.1 pending: tasks whose last run is pending, of that queue');
SELECT is(pg_temp.claims('test/q', 4), 'a1 a2 a3 a4', '8.1 four are claimed');
SELECT is(pg_temp.counts(), '2 pending, 4 claimed', '8.1 claimed: running runs');
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('a1'), 0)$$, '8.1 a reclaim');
SELECT is(pg_temp.counts(), '2 pending, 4 claimed', '8.1 claimed: each run once');
SELECT pg_temp.report('a1', 'completed');
SELECT is(pg_temp.counts(), '2 pending, 3 claimed', '8.1 a report');
SELECT pg_temp.report('a2', 'worker-shutdown');
SELECT is(pg_temp.counts(), '3 pending, 2 claimed', '8.1 a retry is pending');
SELECT pg_temp.report('a3', 'canceled');
SELECT pg_temp.report('a5', 'canceled');
SELECT is(pg_temp.counts(), '2 pending, 1 claimed', '8.1 canceled ones are neither');
SELECT tq.schedule_task(pg_temp.id('u1')) ->> 'state';
SELECT is(pg_temp.counts(), '3 pending, 1 claimed', '8.1 scheduled');
SELECT tq.rerun_task(pg_temp.id('a1')) ->> 'state';
SELECT is(pg_temp.counts(), '4 pending, 1 claimed', '8.1 rerun');

SET tq.clock_offset = '20 minutes 30 seconds';
SELECT is(pg_temp.counts(), '4 pending, 0 claimed', '8.1 claims past takenUntil are not counted, though not yet expired');
SELECT is(pg_temp.state('a4'), 'running', '8.1 (it is running still)');
SELECT is(pg_temp.pass(), 'claim-expired 1', '8.1 the claim expires');
SELECT is(pg_temp.counts(), '5 pending, 0 claimed', '8.1 and is pending again');
SET tq.clock_offset = '61 minutes';
SELECT is(pg_temp.counts(), '4 pending, 0 claimed', '8.1 past the deadline it is not counted, though not yet resolved');
SELECT is(pg_temp.state('u1'), 'pending', '8.1 (it is pending still)');
SET tq.clock_offset = '121 minutes';
SELECT is(pg_temp.counts(), '0 pending, 0 claimed', '8.1 all past their deadline');
RESET tq.clock_offset;

-- group size
SELECT pg_temp.create('g' || n, '{"$group": "g"}') FROM generate_series(1, 3) AS n;
SELECT is((SELECT tasks FROM tq.group_progress(pg_temp.id('g'))), 3::bigint, '8.1 group size is the number of its tasks');
SELECT pg_temp.report('g1', 'canceled');
SELECT is((SELECT tasks FROM tq.group_progress(pg_temp.id('g'))), 3::bigint, '8.1 whatever their state');

SELECT * FROM finish();
ROLLBACK;
