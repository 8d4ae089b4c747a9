-- doc/spec/taskcluster.md 2.9: claimTask.
BEGIN;
\ir helper.psql

SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('nobody'), 0, 'wg', 'w1')$$, 'TQ404', '2.9 no such task');
SELECT pg_temp.create('a', '{"payload": {"x": 1}}');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('a'), 1, 'wg', 'w1')$$, 'TQ404', '2.9 no such run');
SELECT pg_temp.create('u', '{"$deps": ["u"]}');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('u'), 0, 'wg', 'w1')$$, 'TQ404', '2.9 an unscheduled task has no run');

-- pending
CREATE TEMP TABLE claimed AS SELECT * FROM tq.claim_task(pg_temp.id('a'), 0, 'wg', 'w1');
SELECT is(count(*), 1::bigint, '2.9 one row') FROM claimed;
SELECT is(task_id::text || run_id || worker_group || worker_id, pg_temp.id('a') || '0wgw1', '2.9 the task, the run and the worker') FROM claimed;
SELECT is(payload, '{"x": 1}', '2.9 the payload') FROM claimed;
SELECT is(credentials, NULL, '5.7 no credentials for a role that needs none') FROM claimed;
SELECT is(pg_temp.iso(taken_until), pg_temp.run('a') ->> 'takenUntil', '2.9 takenUntil is the run''s') FROM claimed;
SELECT is(pg_temp.look('a'), 'running 5: scheduled>running', '2.9 pending: the run is running');
SELECT is(pg_temp.claims('test/q-a'), '', '2.9 the pending row is deleted');
SELECT is((tq.task_queue_counts('test/q-a') -> 'pendingTasks')::bigint, 0::bigint, '2.9 it is not counted as pending');

-- repeat
SET tq.clock_offset = '5 minutes';
CREATE TEMP TABLE before AS SELECT tq.status(pg_temp.id('a')) AS status;
SELECT is(c.taken_until, claimed.taken_until, '2.9 a repeat by the same worker: takenUntil does not change') FROM tq.claim_task(pg_temp.id('a'), 0, 'wg', 'w1') AS c, claimed;
SELECT is(tq.status(pg_temp.id('a')), status, '2.9 a repeat changes nothing') FROM before;
SELECT is((SELECT payload FROM tq.claim_task(pg_temp.id('a'), 0, 'wg', 'w1')), '{"x": 1}'::jsonb, '2.9 a repeat gives the payload again');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('a'), 0, 'wg', 'w2')$$, 'TQ409', '2.9 another worker');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('a'), 0, 'wh', 'w1')$$, 'TQ409', '2.9 another group');
SELECT lives_ok($$SELECT tq.reclaim_task(pg_temp.id('a'), 0)$$, '2.9 a reclaim');
SELECT ok(c.taken_until > claimed.taken_until + interval '4 minutes', '2.9 a repeat after a reclaim gives the later takenUntil') FROM tq.claim_task(pg_temp.id('a'), 0, 'wg', 'w1') AS c, claimed;
RESET tq.clock_offset;
SELECT pg_temp.report('a', 'completed');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('a'), 0, 'wg', 'w1')$$, 'TQ409', '2.9 resolved, also for the same worker');

-- not the last run
SELECT pg_temp.resolved('r', 'worker-shutdown');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('r'), 0, 'wg', 'w1')$$, 'TQ409', '2.9 not the last run');
SELECT is((SELECT run_id FROM tq.claim_task(pg_temp.id('r'), 1, 'wg', 'w1')), 1, '2.9 the last run');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('r'), 2, 'wg', 'w1')$$, 'TQ404', '2.9 there is no run after it');

-- claimed by claimWork
SELECT pg_temp.running('w');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('w'), 0, 'wg', 'w1')$$, 'TQ409', '2.9 claimed by claim_work, also for the same worker');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('w'), 0, 'wg', 'w2')$$, 'TQ409', '2.9 claimed by claim_work, another worker');

-- deadline
SELECT pg_temp.create('d');
SELECT pg_temp.create('d2');
SELECT lives_ok($$SELECT tq.claim_task(pg_temp.id('d2'), 0, 'wg', 'w1')$$, '2.9 before the deadline');
SET tq.clock_offset = '60 minutes 1 second';
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('d'), 0, 'wg', 'w1')$$, 'TQ409', '2.9 past the deadline');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('d2'), 0, 'wg', 'w1')$$, 'TQ409', '2.9 past the deadline, a repeat');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('d'), 7, 'wg', 'w1')$$, 'TQ409', '2.9 past the deadline, which is asked before the run');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
