-- doc/spec/taskcluster.md 2.4: rerunTask.
BEGIN;
\ir helper.psql

SELECT pg_temp.throws($$SELECT tq.rerun_task(pg_temp.id('nobody'))$$, 'TQ404', '2.4 no such task');

-- pending, running
SELECT pg_temp.create('a');
SELECT pg_temp.keeps($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'a', '2.4 pending: no change');
SELECT pg_temp.take('a');
SELECT pg_temp.keeps($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'a', '2.4 running: no change');

-- unscheduled
SELECT pg_temp.create('u', '{"$deps": ["a"]}');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('u'))), 'pending 5: rerun>pending', '2.4 unscheduled: run 0 is created by rerun, ignoring dependencies');
SELECT pg_temp.create('u49', '{"$deps": ["a"], "retries": 49}');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('u49'))), 'pending 49: rerun>pending', '2.4 unscheduled: 49 retries are left');

-- resolved
SELECT pg_temp.report('a', 'completed');
CREATE TEMP TABLE answer AS SELECT tq.rerun_task(pg_temp.id('a')) AS status;
SELECT is(status, tq.status(pg_temp.id('a')), '2.4 returns the status') FROM answer;
SELECT is(pg_temp.look('a'), 'pending 5: scheduled>completed/completed rerun>pending', '2.4 completed: a new run');
SELECT is(pg_temp.keys(pg_temp.run('a')), 'reasonCreated runId scheduled state', '2.4 the new run has no worker, no takenUntil');
SELECT pg_temp.keeps($$SELECT tq.rerun_task(pg_temp.id('a'))$$, 'a', '2.4 a repeat: pending, no change');
SELECT is(pg_temp.take('a'), 1, '2.4 the new run can be claimed');
SELECT is(pg_temp.report('a', 'failed'), 'failed 5: scheduled>completed/completed rerun>failed/failed', '2.4 and resolved');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('a'))), 'pending 5: scheduled>completed/completed rerun>failed/failed rerun>pending', '2.4 failed: a new run');
SELECT pg_temp.resolved('e', 'internal-error');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('e'))), 'pending 5: scheduled>exception/internal-error rerun>pending', '2.4 exception: a new run');
SELECT pg_temp.create('c', '{"$deps": ["c"]}');
SELECT pg_temp.report('c', 'canceled');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('c'))), 'pending 5: exception>exception/canceled rerun>pending', '2.4 canceled before it was scheduled: a new run');

-- retriesLeft is reset
SELECT pg_temp.resolved('ret', 'worker-shutdown', '{"retries": 1}');
SELECT is(pg_temp.work('ret', 'worker-shutdown'), 'exception 0: scheduled>exception/worker-shutdown retry>exception/worker-shutdown', '2.4 no retries are left');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('ret'))), 'pending 1: scheduled>exception/worker-shutdown retry>exception/worker-shutdown rerun>pending', '2.4 retriesLeft is retries again');
SELECT is(pg_temp.work('ret', 'intermittent-task'), 'pending 0: scheduled>exception/worker-shutdown retry>exception/worker-shutdown rerun>exception/intermittent-task task-retry>pending',
	'2.4 and can be used again');

-- a canceled task that is past its deadline etc.
SELECT pg_temp.create('p');
SELECT pg_temp.running('r');
SELECT pg_temp.resolved('d', 'completed');
SELECT pg_temp.create('n', '{"$deps": ["n"]}');
SET tq.clock_offset = '61 minutes';
SELECT pg_temp.throws(format('SELECT tq.rerun_task(pg_temp.id(%L))', n), 'TQ409', format('2.4 past the deadline, %s: conflict', pg_temp.state(n)))
FROM unnest('{p,r,d,n}'::text[]) AS n;
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
