-- doc/spec/taskcluster.md 5.1: the order of claims.
BEGIN;
\ir helper.psql

-- priority, then first in first out
SELECT pg_temp.create(p || n, jsonb_build_object('taskQueueId', 'test/prio', 'priority', p))
FROM (VALUES (1, 'low'), (2, 'highest'), (3, 'lowest'), (4, 'medium'), (5, 'very-high'), (6, 'very-low'), (7, 'high'), (8, 'lowest'), (9, 'highest'), (10, 'medium')) AS v (n, p);
SELECT is(pg_temp.claims('test/prio', 1), 'highest2', '5.1 the highest priority first');
SELECT is(pg_temp.claims('test/prio', 3), 'highest9 very-high5 high7', '5.1 then the next ones');
SELECT is(pg_temp.claims('test/prio'), 'medium4 medium10 low1 very-low6 lowest3 lowest8', '5.1 priority descending, then in order of becoming pending');

-- a later task of higher priority goes first
SELECT pg_temp.create('l1', '{"taskQueueId": "test/late"}');
SELECT pg_temp.create('l2', '{"taskQueueId": "test/late"}');
SELECT is(pg_temp.claims('test/late', 1), 'l1', '5.1 first in, first out');
SELECT pg_temp.create('l3', '{"taskQueueId": "test/late", "priority": "very-low"}');
SELECT is(pg_temp.claims('test/late'), 'l3 l2', '5.1 a later one of higher priority goes first');

-- the time of becoming pending counts, not that of creation
SELECT pg_temp.create('u1', '{"taskQueueId": "test/sched", "$deps": ["u1"]}');
SELECT pg_temp.create('u2', '{"taskQueueId": "test/sched"}');
SELECT pg_temp.create('u3', '{"taskQueueId": "test/sched", "$deps": ["u2"]}');
SELECT pg_temp.create('u4', '{"taskQueueId": "test/sched"}');
SELECT tq.schedule_task(pg_temp.id('u1')) ->> 'state';
SELECT is(pg_temp.claims('test/sched', 1), 'u2', '5.1 created first');
SELECT pg_temp.report('u2', 'completed');
SELECT is(pg_temp.claims('test/sched'), 'u4 u1 u3', '5.1 scheduled later, claimed later');

-- retries and reruns go to the back of their priority
SELECT pg_temp.create('r' || n, '{"taskQueueId": "test/retry", "$deadline": "2 hours"}') FROM generate_series(1, 3) AS n;
SELECT is(pg_temp.claims('test/retry', 1), 'r1', '5.1 the first');
SELECT pg_temp.report('r1', 'worker-shutdown');
SELECT is(pg_temp.claims('test/retry', 1), 'r2', '5.1 worker-shutdown puts it at the back');
SELECT pg_temp.report('r2', 'intermittent-task');
SELECT is(pg_temp.claims('test/retry', 1), 'r3', '5.1 intermittent-task too');
SELECT pg_temp.report('r3', 'completed');
SELECT tq.rerun_task(pg_temp.id('r3')) ->> 'state';
SELECT pg_temp.create('r4', '{"taskQueueId": "test/retry", "$deadline": "2 hours"}');
SELECT is(pg_temp.claims('test/retry'), 'r1 r2 r3 r4', '5.1 and a rerun, but before what comes later');
SET tq.clock_offset = '10 minutes';
SELECT pg_temp.create('r5', '{"taskQueueId": "test/retry", "$deadline": "2 hours"}');
SELECT pg_temp.pass('21 minutes');
SELECT is(left(pg_temp.claims('test/retry', 1), 2), 'r5', '5.1 expired claims go to the back');
RESET tq.clock_offset;
SELECT pg_temp.create('hi' || n, '{"taskQueueId": "test/hi", "priority": "high"}') FROM generate_series(1, 2) AS n;
SELECT pg_temp.create('lo1', '{"taskQueueId": "test/hi"}');
SELECT is(pg_temp.claims('test/hi', 1), 'hi1', '5.1 a high one');
SELECT pg_temp.report('hi1', 'worker-shutdown');
SELECT is(pg_temp.claims('test/hi'), 'hi2 hi1 lo1', '5.1 a retry keeps its priority');

-- canceled in the middle, and past the deadline at the head
SELECT pg_temp.create('d' || n, jsonb_build_object('taskQueueId', 'test/dead', '$deadline', CASE WHEN n IN (1, 2, 5) THEN '5 minutes' ELSE '1 hour' END)) FROM generate_series(1, 7) AS n;
SELECT pg_temp.report('d4', 'canceled');
SET tq.clock_offset = '6 minutes';
SELECT is(pg_temp.claims('test/dead', 1), 'd3', '5.1 expired ones at the head are not handed out, and do not block the rest');
SELECT is(pg_temp.claims('test/dead', 2), 'd6 d7', '5.1 nor in the middle: as many as asked');
SELECT is(pg_temp.claims('test/dead'), '', '5.1 no more');
SELECT is(pg_temp.state(n), 'pending', '5.1 a task past its deadline stays unresolved until upkeep() processes it: ' || n) FROM unnest('{d1,d2,d5}'::text[]) AS n;
RESET tq.clock_offset;
SELECT is(pg_temp.claims('test/dead'), 'd1 d2 d5', '5.1 a task that is not past its deadline keeps its place');

-- two workers never get the same run
SELECT pg_temp.create('t' || n, '{"taskQueueId": "test/two"}') FROM generate_series(1, 4) AS n;
SELECT is(pg_temp.claims('test/two', 2, 'w1') || ' / ' || pg_temp.claims('test/two', 2, 'w2') || ' / ' || pg_temp.claims('test/two', 2, 'w3'), 't1 t2 / t3 t4 / ', '5.1 two workers never get the same run');

-- a rollback puts runs back in their place
SELECT pg_temp.create('b' || n, jsonb_build_object('taskQueueId', 'test/back', 'priority', CASE n WHEN 3 THEN 'high' ELSE 'low' END)) FROM generate_series(1, 4) AS n;
SAVEPOINT s;
SELECT is(pg_temp.claims('test/back', 3), 'b3 b1 b2', '5.1 claimed in a savepoint');
ROLLBACK TO SAVEPOINT s;
SELECT is(pg_temp.claims('test/back'), 'b3 b1 b2 b4', '5.1 rolled back, they keep their place');

SELECT * FROM finish();
ROLLBACK;
