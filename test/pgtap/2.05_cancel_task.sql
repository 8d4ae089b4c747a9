-- doc/spec/taskcluster.md 2.5: cancelTask.
BEGIN;
\ir helper.psql

SELECT pg_temp.throws($$SELECT tq.cancel_task(pg_temp.id('nobody'))$$, 'TQ404', '2.5 no such task');

-- pending
SELECT pg_temp.create('p', '{"retries": 3}');
CREATE TEMP TABLE answer AS SELECT tq.cancel_task(pg_temp.id('p')) AS status;
SELECT is(status, tq.status(pg_temp.id('p')), '2.5 returns the status') FROM answer;
SELECT is(pg_temp.look('p'), 'exception 3: scheduled>exception/canceled', '2.5 pending: the run becomes exception, retriesLeft stays');
SELECT is(pg_temp.claims('test/q-p'), '', '2.5 it cannot be claimed any more');
SELECT is((tq.task_queue_counts('test/q-p') -> 'pendingTasks')::bigint, 0::bigint, '2.5 nor is it counted');
SELECT pg_temp.keeps($$SELECT tq.cancel_task(pg_temp.id('p'))$$, 'p', '2.5 a repeat changes nothing');

-- running
SELECT pg_temp.running('r');
SELECT is(pg_temp.report('r', 'canceled'), 'exception 5: scheduled>exception/canceled', '2.5 running: never retried');
SELECT is(pg_temp.run('r') ->> 'workerId', 'w1', '2.5 running: the worker is kept');
SELECT ok(pg_temp.run('r') ?& '{workerGroup,started,takenUntil,resolved}'::text[], '2.5 running: workerGroup and started too');
SELECT pg_temp.throws($$SELECT tq.reclaim_task(pg_temp.id('r'), 0)$$, 'TQ409', '2.5 its worker is refused: reclaim');
SELECT pg_temp.throws($$SELECT tq.report_completed(pg_temp.id('r'), 0)$$, 'TQ409', '2.5 its worker is refused: report');
SELECT is((tq.task_queue_counts('test/q-r') ->> 'claimedTasks'), '0', '2.5 it is not counted as claimed');

-- unscheduled
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT is(pg_temp.report('u', 'canceled'), 'exception 5: exception>exception/canceled', '2.5 no runs: a run that is created as exception');
SELECT is(pg_temp.run('u') ->> 'scheduled', pg_temp.run('u') ->> 'resolved', '2.5 no runs: scheduled is resolved is now');
SELECT ok(pg_temp.near(pg_temp.run('u') ->> 'resolved', pg_temp.clock()), '2.5 resolved is now');

-- a retry that is pending
SELECT pg_temp.resolved('t', 'worker-shutdown');
SELECT is(pg_temp.report('t', 'canceled'), 'exception 4: scheduled>exception/worker-shutdown retry>exception/canceled', '2.5 the last run only');

-- resolved otherwise
SELECT pg_temp.resolved('c', 'completed');
SELECT pg_temp.resolved('f', 'failed');
SELECT pg_temp.resolved('e', 'malformed-payload');
SELECT pg_temp.keeps(format('SELECT tq.cancel_task(pg_temp.id(%L))', n), n, '2.5 already resolved: unchanged, ' || pg_temp.look(n))
FROM unnest('{c,f,e,u,r,t}'::text[]) AS n;

-- deadline
SELECT pg_temp.create('dp');
SELECT pg_temp.running('dr');
SELECT pg_temp.create('du', '{"$deps": ["du"]}');
SET tq.clock_offset = '61 minutes';
SELECT pg_temp.throws(format('SELECT tq.cancel_task(pg_temp.id(%L))', n), 'TQ409', format('2.5 past the deadline, %s: conflict', pg_temp.look(n)))
FROM unnest('{dp,dr,du,c,f,e,p}'::text[]) AS n;
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
