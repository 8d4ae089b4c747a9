-- doc/spec/policy.md 11.2, 11.3: tasks with one serialKey or concurrencyKey.
BEGIN;
\ir policy.psql
-- Limits are set before the transaction writes anything that is counted.
SELECT tq.set_queue('test/m', '{"maxPending": 1, "maxDelayed": 2}');

-- One pass of maintenance, and then what a worker gets.
CREATE FUNCTION pg_temp.next(queue text, n int DEFAULT 10) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_temp.pass();
	RETURN pg_temp.claims(queue, n);
END $$;
CREATE FUNCTION pg_temp.serial(name text, key text, more jsonb DEFAULT '{}', policy jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.create(name, jsonb_build_object('taskQueueId', 'test/s', 'policy', jsonb_build_object('serialKey', key) || policy, '$deadline', '5 hours') || more)
$$;
CREATE FUNCTION pg_temp.keyed(name text, key text, more jsonb DEFAULT '{}', policy jsonb DEFAULT '{}') RETURNS text
LANGUAGE sql AS $$
	SELECT pg_temp.create(name, jsonb_build_object('taskQueueId', 'test/k', 'policy', jsonb_build_object('concurrencyKey', key) || policy, '$deadline', '5 hours') || more)
$$;

-- serialKey: one at a time, in order of creation, whatever the priority
SELECT is(pg_temp.serial('a1', 'a'), 'pending 5: scheduled>pending', '11.2 a task with a key is pending');
SELECT pg_temp.serial('a2', 'a', '{"priority": "highest"}'), pg_temp.serial('b1', 'b'), pg_temp.serial('a3', 'a'), pg_temp.serial('b2', 'b');
SELECT pg_temp.create('free', '{"taskQueueId": "test/s"}');
SELECT is((SELECT pg_temp.claims('test/s', 10)), 'free', '11.2 nothing is claimable before maintenance has looked');
SELECT is(pg_temp.next('test/s'), 'a1 b1', '11.2 the first of each key');
SELECT is(pg_temp.next('test/s'), '', '11.2 no other while it runs');
SELECT is((SELECT count(*) FROM tq.list_pending_tasks('test/s')), 0::bigint, '11.2 the others wait apart');
SELECT pg_temp.throws($$SELECT tq.claim_task(pg_temp.id('a2'), 0, 'wg', 'w1')$$, 'TQ409', '11.2 they cannot be claimed by name');
SELECT pg_temp.report('a1', 'completed');
SELECT is(pg_temp.next('test/s'), 'a2', '11.2 then the next one');
-- a retry keeps its place
SELECT pg_temp.report('a2', 'worker-shutdown');
SELECT is(pg_temp.look('a2'), 'pending 4: scheduled>exception/worker-shutdown retry>pending', '11.2 a retry');
SELECT is(pg_temp.next('test/s'), 'a2', '11.2 comes before the next one');
SELECT lives_ok($$SELECT tq.defer_task(pg_temp.id('a2'), 1, '1 hour')$$, '11.2 defer it');
SELECT is(pg_temp.next('test/s'), '', '11.2 it keeps its place');
SET tq.clock_offset = '61 minutes';
SELECT pg_temp.report('b1', 'completed') \g /dev/null
SELECT is(pg_temp.next('test/s'), 'a2 b2', '11.2 until it is visible again; the claim of b1 had expired: a report late');
-- a lost claim
SET tq.clock_offset = '90 minutes';
SELECT is(pg_temp.next('test/s'), 'a2 b2', '11.2 claims that expire keep their places');
SELECT pg_temp.report('a2', 'failed');
SELECT is(pg_temp.next('test/s'), 'a3', '11.2 a failure lets the next one go on');
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('a2'))$$, '11.2 rerun the failed one');
SELECT is(pg_temp.next('test/s'), '', '11.2 it waits again');
SELECT pg_temp.report('a3', 'completed');
SELECT is(pg_temp.next('test/s'), 'a2', '11.2 for its turn');
SELECT pg_temp.report('a2', 'completed'), pg_temp.report('b2', 'completed');
SELECT pg_temp.pass();
SELECT is((SELECT count(*) FROM tq_internal.gate_member), 0::bigint, '11.2 nothing is left behind');
RESET tq.clock_offset;

-- a delay that is over lets no task pass
SELECT pg_temp.serial('d1', 'd'), pg_temp.serial('d2', 'd', '{"delay": 60}');
SELECT is(pg_temp.next('test/s'), 'd1', '11.2 the second one is delayed');
SET tq.clock_offset = '61 seconds';
SELECT is(pg_temp.next('test/s'), '', '11.2 its delay is over, and it waits');
SELECT pg_temp.report('d1', 'completed') \g /dev/null
SELECT is(pg_temp.next('test/s'), 'd2', '11.2 for the first one');
SELECT pg_temp.report('d2', 'completed') \g /dev/null
RESET tq.clock_offset;

-- what is canceled or deleted holds nothing up
SELECT pg_temp.serial('c' || n, 'c') FROM generate_series(1, 5) AS n;
SELECT is(pg_temp.next('test/s'), 'c1', '11.2 five tasks');
SELECT lives_ok($$SELECT tq.cancel_task(pg_temp.id('c2'))$$, '11.2 cancel one that waits');
SELECT lives_ok($$SELECT tq.delete_task(pg_temp.id('c3'))$$, '11.2 delete one that waits');
SELECT is(pg_temp.next('test/s'), '', '11.2 the first one runs');
SELECT lives_ok($$SELECT tq.delete_task(pg_temp.id('c1'))$$, '11.2 delete it');
SELECT is(pg_temp.next('test/s'), 'c4', '11.2 the next one that is left');
SELECT lives_ok($$SELECT tq.skip_task(pg_temp.id('c5'))$$, '11.2 skip one');
-- an unscheduled task is passed over, a delayed one is not
SELECT pg_temp.serial('u', 'u', '{"$deps": ["c4"]}'), pg_temp.serial('v', 'u'), pg_temp.serial('late', 'l', '{"delay": 600}'), pg_temp.serial('l2', 'l');
SELECT is(pg_temp.next('test/s'), 'v', '11.2 an unscheduled task is passed over, a delayed one is not');
SELECT pg_temp.report('c4', 'completed');
SELECT is(pg_temp.next('test/s'), '', '11.2 it waits for v');
SELECT pg_temp.report('v', 'completed');
SELECT is(pg_temp.next('test/s'), 'u', '11.2 and comes then');
SELECT pg_temp.pass('11 minutes');
SELECT is(pg_temp.next('test/s'), 'late', '11.2 when the delay is over');
RESET tq.clock_offset;
-- serialOnFailure
SELECT pg_temp.serial('h1', 'h', '{}', '{"serialOnFailure": "hold"}'), pg_temp.serial('h2', 'h');
SELECT is(pg_temp.next('test/s'), 'h1', '11.2 hold');
SELECT pg_temp.report('h1', 'failed');
SELECT is(pg_temp.next('test/s'), '', '11.2 a failure holds the key');
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('h1'))$$, '11.2 until it is rerun');
SELECT is(pg_temp.next('test/s'), 'h1', '11.2 which comes first');
SELECT pg_temp.report('h1', 'failed');
SELECT is(pg_temp.next('test/s'), '', '11.2 fails again');
SELECT lives_ok($$SELECT tq.delete_task(pg_temp.id('h1'))$$, '11.2 or is deleted');
SELECT is(pg_temp.next('test/s'), 'h2', '11.2 then the next one goes on');
SELECT pg_temp.report('h2', 'completed') \g /dev/null
-- each end of a task that was admitted, and what becomes of the next one
CREATE FUNCTION pg_temp.held(key text, act text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_temp.serial(key || '1', key, '{}', '{"serialOnFailure": "hold", "retries": 0}'), pg_temp.serial(key || '2', key), pg_temp.serial(key || '3', key);
	PERFORM pg_temp.pass();
	EXECUTE format(act, key || '1');
	PERFORM pg_temp.pass();
	RETURN coalesce(nullif(pg_temp.claims('test/s', 10), ''), 'none');
END $$;
SELECT is(pg_temp.held(key, act), gets, format('11.2 (4) hold: %s: %s', act, gets)) FROM (VALUES
	('ea', 'SELECT pg_temp.work(%L, ''completed'')', 'ea2'), ('eb', 'SELECT pg_temp.work(%L, ''failed'')', 'none'),
	('ec', 'SELECT pg_temp.work(%L, ''malformed-payload'')', 'none'), ('ed', 'SELECT pg_temp.work(%L, ''worker-shutdown'')', 'none'),
	('ee', 'SELECT tq.skip_task(pg_temp.id(%L))', 'ee2'), ('ef', 'SELECT tq.cancel_task(pg_temp.id(%L))', 'ef2'),
	('eg', 'SELECT pg_temp.take(%1$L), tq.cancel_task(pg_temp.id(%1$L))', 'eg2'), ('eh', 'SELECT tq.delete_task(pg_temp.id(%L))', 'eh2'),
	('ei', 'SELECT pg_temp.work(%1$L, ''failed''), tq.rerun_task(pg_temp.id(%1$L)), pg_temp.pass(), tq.cancel_task(pg_temp.id(%1$L))', 'ei2'),
	('ej', 'SELECT pg_temp.work(%1$L, ''failed''), pg_temp.pass(), tq.cancel_task(pg_temp.id(left(%1$L, 2) || ''2'')), tq.delete_task(pg_temp.id(%1$L))', 'ej3'),
	('ek', 'SELECT pg_temp.work(%1$L, ''failed''), pg_temp.pass(), tq.skip_task(pg_temp.id(left(%1$L, 2) || ''2'')), tq.rerun_task(pg_temp.id(%1$L)), pg_temp.pass(), pg_temp.work(%1$L, ''completed'')', 'ek3')
	) AS v (key, act, gets);
-- retention leaves the one about which a decision is due, and what nothing waits for goes
CREATE FUNCTION pg_temp.stays(name text) RETURNS bool LANGUAGE sql AS $$ SELECT EXISTS (SELECT FROM tq_internal.task WHERE task_id = pg_temp.id(name)) $$;
SELECT tq.enqueue('test/s', task_id => pg_temp.id(n), deadline => d, policy => '{"serialKey": "r", "serialOnFailure": "hold", "retries": 0, "retainFailed": "1 hour", "retainCompleted": "1 hour"}')
FROM (VALUES ('r1', interval '1 day'), ('r2', '4 days')) AS v (n, d) \g /dev/null
SELECT tq.enqueue('test/s', task_id => pg_temp.id('given'), deadline => '1 day', expires => '25 hours', policy => '{"serialKey": "g", "serialOnFailure": "hold", "retries": 0}'),
	tq.enqueue('test/s', task_id => pg_temp.id('behind'), name => 'behind', deadline => '4 days', policy => '{"serialKey": "g"}') \g /dev/null
SELECT pg_temp.pass() \g /dev/null
SELECT pg_temp.work('r1', 'failed'), pg_temp.work('given', 'failed') \g /dev/null
SELECT pg_temp.pass('3 hours') \g /dev/null
SELECT ok(pg_temp.stays('r1'), '11.2 (4) retention leaves a task that keeps its key from others');
SELECT pg_temp.pass(i) FROM unnest('{27 hours,28 hours,3 days,73 hours}'::interval[]) AS i \g /dev/null
SELECT ok(pg_temp.stays('r1'), '11.2 (4) also when it has expired');
SELECT is(pg_temp.look('r2') ~ '^pending', true, '11.2 (4) the other one waits');
SELECT ok(NOT pg_temp.stays('given'), '11.2 (4) an expiry that was given counts');
SELECT is(pg_temp.claims('test/s', 10), 'behind', '11.2 (4) and lets the next one go on');
SELECT pg_temp.pass(i) FROM unnest('{97 hours,98 hours,99 hours,100 hours}'::interval[]) AS i \g /dev/null
SELECT ok(NOT pg_temp.stays('r1'), '11.2 (4) it goes when nothing waits for its key');
RESET tq.clock_offset;

-- concurrencyKey
SELECT lives_ok($$SELECT pg_temp.keyed('n' || n, 'x') FROM generate_series(1, 3) AS n$$, '11.3 without settings');
SELECT is(pg_temp.claims('test/k', 10), 'n1 n2 n3', '11.3 the key has no effect');
SELECT tq.set_queue('test/k', '{"keyConcurrentLimit": 2}');
SELECT pg_temp.keyed('x' || n, 'x') FROM generate_series(1, 5) AS n;
SELECT pg_temp.keyed('y' || n, 'y') FROM generate_series(1, 3) AS n;
SELECT is(pg_temp.next('test/k'), 'x1 x2 y1 y2', '11.3 two of each key');
SELECT pg_temp.keyed('x6', 'x', '{"priority": "high"}');
SELECT is(pg_temp.next('test/k'), '', '11.3 no more');
SELECT pg_temp.report('x2', 'completed');
SELECT is(pg_temp.next('test/k'), 'x6', '11.3 then the one of the highest priority');
SELECT pg_temp.report('x1', 'worker-shutdown');
SELECT is(pg_temp.next('test/k'), 'x1', '11.3 a retry keeps its place in the order of creation');
SELECT tq.change_task_priority(pg_temp.id('x5'), 'highest');
SELECT pg_temp.report('x1', 'completed');
SELECT is(pg_temp.next('test/k'), 'x5', '11.3 a change of priority counts');
SELECT lives_ok($$SELECT tq.defer_task(pg_temp.id('x5'), 0, '5 minutes')$$, '11.3 a deferred run');
SELECT is(pg_temp.next('test/k'), 'x3', '11.3 gives its place back');
SELECT tq.set_queue('test/k', '{"keyConcurrentLimit": 4}');
SELECT is(pg_temp.next('test/k'), 'x4 y3', '11.3 a higher limit admits more');
SELECT tq.set_queue('test/k', '{"keyConcurrentLimit": null}');
SELECT is(pg_temp.state('x5'), 'pending', '11.3 without a limit');
SELECT pg_temp.pass('6 minutes');
SELECT is(pg_temp.next('test/k'), 'x5', '11.3 all are admitted');
RESET tq.clock_offset;

-- the rate of a key
SELECT tq.set_queue('test/k', '{"keyRateCount": 2, "keyRateInterval": 60}');
SELECT pg_temp.keyed('r' || n, 'r') FROM generate_series(1, 5) AS n;
SELECT is(pg_temp.next('test/k'), 'r1 r2', '11.3 two in an interval');
SELECT pg_temp.report('r1', 'completed'), pg_temp.report('r2', 'completed');
SELECT is(pg_temp.next('test/k'), '', '11.3 no more, although they have ended');
SET tq.clock_offset = '50 seconds';
SELECT is(pg_temp.next('test/k'), '', '11.3 within it');
SET tq.clock_offset = '62 seconds';
SELECT is(pg_temp.next('test/k'), 'r3 r4', '11.3 after it');
SET tq.clock_offset = '130 seconds';
SELECT is(pg_temp.next('test/k'), 'r5', '11.3 and again, although they run');
SET tq.clock_offset = '200 seconds';
SELECT pg_temp.keyed('t' || n, 't') FROM generate_series(1, 3) AS n;
SELECT is(pg_temp.next('test/k'), 't1 t2', '11.3 two of another key');
SELECT pg_temp.report('t1', 'worker-shutdown');
SELECT is(pg_temp.next('test/k'), '', '11.3 a retry waits, because the claim before it counts');
SELECT pg_temp.report('t2', 'worker-shutdown'), tq.cancel_task(pg_temp.id('t2'));
SELECT is(pg_temp.next('test/k'), '', '11.3 that of a run whose retry was canceled counts, too');
SET tq.clock_offset = '262 seconds';
SELECT is(pg_temp.next('test/k'), 't3 t1', '11.3 after the interval the retry is claimed, behind new runs');
SET tq.clock_offset = '330 seconds';
SELECT is(pg_temp.next('test/k'), '', '11.3 and nothing is left');
SET tq.clock_offset = '1 day';
SELECT pg_temp.keyed('u' || n, 'u') FROM generate_series(1, 3) AS n;
SELECT is(pg_temp.next('test/k'), 'u1 u2', '11.3 two of a clock that is ahead');
SET tq.clock_offset = '340 seconds';
SELECT pg_temp.keyed('u4', 'u');
SELECT is(pg_temp.next('test/k'), 'u3 u4', '11.3 count no longer when it is set back');
RESET tq.clock_offset;

-- both keys
SELECT tq.set_queue('test/k', '{"keyRateCount": null, "keyConcurrentLimit": 1}');
SELECT pg_temp.keyed('s1', 'z', '{}', '{"serialKey": "q1"}'), pg_temp.keyed('s2', 'z', '{}', '{"serialKey": "q2"}'), pg_temp.keyed('s3', 'w', '{}', '{"serialKey": "q1"}');
SELECT is(pg_temp.next('test/k'), 's1', '11.3 serial first, then the limit');
SELECT pg_temp.report('s1', 'completed');
SELECT is(pg_temp.next('test/k'), 's2 s3', '11.3 both go on');

-- progress of others
SELECT is((tq.task_queue_counts('test/k') -> 'pendingTasks')::bigint, 0::bigint, '11.3 nothing is left');

-- a task that waits is delayed, and not pending, also for the limits of creation
SELECT is(tq.enqueue_tasks('test/m', array_fill('{}'::jsonb, '{2}'), policy => '{"serialKey": "m"}') IS NOT NULL, true, '6 two tasks that wait are not too many pending ones');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/m', policy => '{"serialKey": "m"}')$$, 'TQ409', '6 a third one is too many delayed ones');
SELECT lives_ok($$SELECT tq.enqueue('test/m')$$, '6 there is room for one that is pending');

SELECT * FROM finish();
ROLLBACK;
