-- doc/spec/policy.md 6: limits of a queue: running tasks, claims per interval, tasks that wait.
-- Slots that other transactions take and free: test/isolation/specs/limit-*.spec, test/t/034_limits.pl.
BEGIN;
\ir policy.psql

CREATE FUNCTION pg_temp.claim_all(queue text, n int DEFAULT 1000) RETURNS bigint
LANGUAGE sql AS $$ SELECT count(*) FROM tq.claim_work(queue, 'wg', 'w1', n) $$;

-- concurrentLimit
SELECT tq.set_queue('test/c', '{"concurrentLimit": 3}');
SELECT pg_temp.create('c' || n, '{"taskQueueId": "test/c"}') FROM generate_series(1, 9) AS n;
SELECT is(pg_temp.claims('test/c', 2), 'c1 c2', '6 below the limit');
SELECT is(pg_temp.claims('test/c', 5), 'c3', '6 a claim gets the slots that are left');
SELECT is(pg_temp.claims('test/c', 1), '', '6 at the limit: nothing');
SELECT is((SELECT count(*) FROM tq.claim_task(pg_temp.id('c4'), 0, 'wg', 'w1')), 0::bigint, '6 claim_task: no row');
SELECT is(pg_temp.look('c4'), 'pending 5: scheduled>pending', '6 it stays pending');
SELECT pg_temp.report('c1', 'completed');
SELECT is(pg_temp.claims('test/c', 5), 'c4', '6 the end of a run frees its slot');
SAVEPOINT s;
SELECT pg_temp.report('c2', 'failed'), pg_temp.report('c3', 'completed');
SELECT is(pg_temp.claims('test/c', 5), 'c5 c6', '6 two');
ROLLBACK TO s;
SELECT is(pg_temp.claims('test/c', 5), '', '6 a rollback takes back both: no slot');
SAVEPOINT s;
SELECT pg_temp.report('c2', 'completed');
RELEASE s;
SAVEPOINT s;
SELECT is(pg_temp.claims('test/c', 5), 'c5', '6 a claim');
ROLLBACK TO s;
SELECT is((SELECT count(*) FROM tq.claim_task(pg_temp.id('c9'), 0, 'wg', 'w1')), 1::bigint, '6 whose rollback gives the slot back; claim_task takes it');
SELECT is(pg_temp.claims('test/c', 5), '', '6 and then there is none');
SELECT lives_ok($$SELECT tq.defer_task(pg_temp.id('c9'), 0, '1 hour')$$, '6 defer frees a slot');
SELECT is(pg_temp.claims('test/c', 5), 'c5', '6 for another one');
SELECT tq.set_queue('test/c', '{"concurrentLimit": 5}');
SELECT is(pg_temp.claims('test/c', 5), 'c6 c7', '6 raise the limit');
SELECT tq.set_queue('test/c', '{"concurrentLimit": 2}');
SELECT pg_temp.report('c3', 'completed'), pg_temp.report('c4', 'completed'), pg_temp.report('c5', 'completed');
SELECT is(pg_temp.claims('test/c', 5), '', '6 lower it: what runs goes on');
SELECT pg_temp.report('c6', 'completed');
SELECT is(pg_temp.claims('test/c', 5), 'c8', '6 until there are fewer');
SELECT is(pg_temp.pass('30 minutes'), 'claim-expired 2', '6 two claims expire');
SELECT is(pg_temp.claims('test/c', 5), 'c7 c8', '6 their slots are free');
RESET tq.clock_offset;
SELECT tq.set_queue('test/c', '{"concurrentLimit": null}');
SELECT pg_temp.create('c' || n, '{"taskQueueId": "test/c"}') FROM generate_series(11, 30) AS n;
SELECT is(pg_temp.claim_all('test/c'), 20::bigint, '6 without a limit');
SELECT tq.set_queue('test/c', '{"concurrentLimit": 0}');
SELECT pg_temp.create('c31', '{"taskQueueId": "test/c"}');
SELECT is(pg_temp.claims('test/c', 5), 'c31', '6 a limit of 0 is none');

-- rateCount, rateInterval
SELECT tq.set_queue('test/r', '{"rateCount": 10, "rateInterval": 64}');
SELECT tq.enqueue_tasks('test/r', array_fill('{}'::jsonb, '{100}')) IS NOT NULL;
SELECT is(pg_temp.claim_all('test/r', 4), 4::bigint, '6 claims within the rate');
SELECT is(pg_temp.claim_all('test/r'), 6::bigint, '6 as many as are left');
SELECT is(pg_temp.claim_all('test/r'), 0::bigint, '6 then none');
SET tq.clock_offset = '30 seconds';
SELECT is(pg_temp.claim_all('test/r'), 0::bigint, '6 also later in the interval');
SET tq.clock_offset = '63 seconds';
SELECT is(pg_temp.claim_all('test/r'), 0::bigint, '6 and at its end');
SET tq.clock_offset = '66 seconds';
SELECT is(pg_temp.claim_all('test/r', 7), 7::bigint, '6 after the interval');
SET tq.clock_offset = '100 seconds';
SELECT is(pg_temp.claim_all('test/r'), 3::bigint, '6 the window slides');
SET tq.clock_offset = '132 seconds';
SELECT is(pg_temp.claim_all('test/r'), 7::bigint, '6 the first seven are over');
SELECT is((SELECT count(*) FROM tq.claim_work('test/r', 'wg', 'w1')), 0::bigint, '6 ten again');
SELECT tq.enqueue('test/r', priority => 'highest', task_id => pg_temp.id('r')) IS NOT NULL;
SELECT is((SELECT count(*) FROM tq.claim_task(pg_temp.id('r'), 0, 'wg', 'w1')), 0::bigint, '6 claim_task counts too');
SELECT tq.set_queue('test/r', '{"rateCount": 0}');
SELECT is(pg_temp.claim_all('test/r', 50), 50::bigint, '6 rateCount 0 is no limit');
SELECT tq.set_queue('test/r', '{"rateCount": 1, "rateInterval": "10 minutes"}');
SELECT is(pg_temp.claim_all('test/r', 50), 0::bigint, '6 with another interval the claims of the old one count as new');
SET tq.clock_offset = '15 minutes';
SELECT is(pg_temp.claim_all('test/r', 50), 1::bigint, '6 until it is over');
RESET tq.clock_offset;
-- claims of a clock that was ahead count no longer
SELECT tq.set_queue('test/a', '{"rateCount": 2, "rateInterval": 64}');
SELECT tq.enqueue_tasks('test/a', array_fill('{}'::jsonb, '{9}')) IS NOT NULL;
SET tq.clock_offset = '1 day';
SELECT is(pg_temp.claim_all('test/a'), 2::bigint, '6 two of tomorrow');
RESET tq.clock_offset;
SELECT is(pg_temp.claim_all('test/a'), 2::bigint, '6 and two of today');
-- fewer tasks than the rate allows do not use it up
SELECT tq.set_queue('test/e', '{"rateCount": 5, "rateInterval": 60, "concurrentLimit": 4}');
SELECT is(pg_temp.claim_all('test/e'), 0::bigint, '6 an empty queue');
SELECT tq.enqueue_tasks('test/e', array_fill('{}'::jsonb, '{2}')) IS NOT NULL;
SELECT is(pg_temp.claim_all('test/e'), 2::bigint, '6 two tasks');
SELECT tq.enqueue_tasks('test/e', array_fill('{}'::jsonb, '{8}')) IS NOT NULL;
SELECT is(pg_temp.claim_all('test/e'), 2::bigint, '6 the lower of both limits');
SELECT tq.set_queue('test/e', '{"concurrentLimit": 40}');
SELECT is(pg_temp.claim_all('test/e'), 1::bigint, '6 either of them');

-- maxPending, maxDelayed, maxRunning
SELECT tq.set_queue('test/m', '{"maxPending": 3, "maxDelayed": 2, "maxRunning": 2}');
SELECT lives_ok($$SELECT tq.enqueue_tasks('test/m', array_fill('{}'::jsonb, '{2}'))$$, '6 two pending');
SELECT pg_temp.throws($$SELECT tq.enqueue_tasks('test/m', array_fill('{}'::jsonb, '{2}'))$$, 'TQ409', '6 two more are refused');
SELECT is((tq.task_queue_counts('test/m') -> 'pendingTasks')::bigint, 2::bigint, '6 both of them');
SELECT lives_ok($$SELECT tq.enqueue('test/m')$$, '6 one more is possible');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/m')$$, 'TQ409', '6 then none');
SELECT lives_ok($$SELECT tq.enqueue_tasks('test/m', array_fill('{}'::jsonb, '{2}'), delay => '1 hour')$$, '6 delayed ones have a limit of their own');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/m', delay => '1 hour')$$, 'TQ409', '6 which is reached');
SELECT pg_temp.throws($$SELECT tq.create_tasks(jsonb_agg(jsonb_build_object('taskId', pg_temp.id(name), 'task', pg_temp.def(name, jsonb_build_object('taskQueueId', queue)))))
	FROM (VALUES ('m1', 'test/other'), ('m2', 'test/m')) AS v (name, queue)$$, 'TQ409', '6 a batch with one too many');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('m1'))$$, 'TQ404', '6 creates nothing');
SELECT is(pg_temp.claim_all('test/m', 1), 1::bigint, '6 a claim makes room');
SELECT is(pg_temp.create('m3', '{"taskQueueId": "test/m"}'), 'pending 5: scheduled>pending', '6 for one');
SELECT is(pg_temp.create('m3', '{"taskQueueId": "test/m"}'), 'pending 5: scheduled>pending', '6 a repeat needs no room');
SELECT is(pg_temp.claim_all('test/m', 1), 1::bigint, '6 two run');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/m')$$, 'TQ409', '6 maxRunning refuses creation');
SELECT is(pg_temp.claim_all('test/m'), 2::bigint, '6 it does not limit claims');

-- repairs: not refused, and what they make pending counts for creations that follow
SELECT tq.set_queue('test/repair', '{"maxPending": 2, "maxDelayed": 1, "maxRunning": 2, "concurrentLimit": 1}');
CREATE FUNCTION pg_temp.fail_next() RETURNS text LANGUAGE sql AS $$
	SELECT tq.report_failed(c.task_id, c.run_id) ->> 'state' FROM tq.claim_work('test/repair', 'g', 'w') AS c
$$;
SELECT pg_temp.create(n, '{"taskQueueId": "test/repair", "$group": "rep"}') FROM unnest('{r1,r2}'::text[]) AS n;
SELECT pg_temp.fail_next(), pg_temp.fail_next();
SELECT pg_temp.create(n, '{"taskQueueId": "test/repair", "$group": "rep"}') FROM unnest('{r3,r4}'::text[]) AS n;
SELECT pg_temp.fail_next(), pg_temp.fail_next();
SELECT pg_temp.create('r5', '{"taskQueueId": "test/repair", "$group": "rep", "$deps": ["r1"], "policy": {"delay": 600}}'), pg_temp.create('r6', '{"taskQueueId": "test/repair", "$group": "rep", "$deps": ["r1"], "policy": {"delay": 600}}');
SELECT tq.cancel_task(pg_temp.id(n)) FROM unnest('{r5,r6}'::text[]) AS n;
SAVEPOINT repair;
SELECT is(tq.retry_task_group(pg_temp.id('rep')), 6::bigint, '6 retry_task_group: more than maxPending, and two that wait');
SELECT is((tq.task_queue_counts('test/repair') -> 'pendingTasks')::bigint, 4::bigint, '6 all are pending');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/repair')$$, 'TQ409', '6 which a creation of the same transaction sees');
ROLLBACK TO repair;
SELECT lives_ok($$SELECT tq.enqueue('test/repair', task_id => pg_temp.id('rx'))$$, '6 but not if it is rolled back');
SELECT tq.cancel_task(pg_temp.id('rx'));
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('r1'), downstream => true)) ~ '^pending', true, '6 rerun_task with downstream');
SELECT is(tq.retry_task_group(pg_temp.id('rep')), 3::bigint, '6 the others');
SELECT is(pg_temp.claim_all('test/repair'), 1::bigint, '6 concurrentLimit holds for what a repair made pending');
SELECT tq.report_completed(pg_temp.id('r1'), 1);
SELECT is((SELECT string_agg(tq.status(pg_temp.id(n)) ->> 'state', ' ') FROM unnest('{r5,r6}'::text[]) AS n), 'pending pending', '6 more than maxDelayed by dependencies of a repair');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/repair', delay => '1 hour')$$, 'TQ409', '6 they count as delayed');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/repair')$$, 'TQ409', '6 three are pending');
SELECT pg_temp.fail_next(), pg_temp.fail_next();
SELECT lives_ok($$SELECT tq.enqueue('test/repair', task_id => pg_temp.id('ry'))$$, '6 there is room again');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/repair')$$, 'TQ409', '6 for one');
SELECT is(tq.rerun_task(pg_temp.id(n)) ->> 'state', 'pending', '6 rerun_task of a full queue: ' || n) FROM unnest('{r2,r3}'::text[]) AS n;
SELECT tq.set_queue('test/repair', '{"maxRunning": 1}');
SELECT is(pg_temp.claim_all('test/repair', 1), 1::bigint, '6 one runs');
SELECT is(tq.rerun_task(pg_temp.id('r1')) ->> 'state', 'pending', '6 maxRunning does not refuse a rerun');

SELECT * FROM finish();
ROLLBACK;
