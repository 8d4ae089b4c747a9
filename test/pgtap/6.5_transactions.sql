-- doc/spec/taskcluster.md 0.2, 6.5: messages belong to their transaction: they are
-- sent if and when it is committed, in order, and not otherwise.
\ir messages.psql

CREATE FUNCTION pg_temp.publish_step() RETURNS bigint
LANGUAGE sql AS $$
	SELECT tasks FROM tq.upkeep() WHERE step = 'publish'
$$;

-- ---------------------------------------------------------------------------
-- Rollback, savepoints
-- ---------------------------------------------------------------------------

SELECT pg_temp.create('s1', '{"$group": "g"}'), pg_temp.create('s2', '{"$group": "g"}');
SELECT pg_temp.forget();
INSERT INTO known VALUES ('g');
BEGIN;
SELECT pg_temp.create('no');
SELECT pg_temp.take('s1');
SELECT pg_temp.cancel('s2');
ROLLBACK;
SELECT is(pg_temp.sent(), '', 'rolled back: nothing is sent');
BEGIN;
SELECT pg_temp.take('s1');
SAVEPOINT a;
SELECT pg_temp.report('s1', 'failed');
SELECT pg_temp.cancel('s2');
ROLLBACK TO a;
SELECT pg_temp.report('s1', 'completed');
SAVEPOINT b;
SELECT pg_temp.create('s3');
RELEASE b;
SAVEPOINT c;
SELECT pg_temp.create('s4');
SAVEPOINT d;
SELECT pg_temp.create('s5');
RELEASE d;
ROLLBACK TO c;
SELECT pg_temp.create('s6');
COMMIT;
SELECT is(pg_temp.sent(), 'RUN s1 running 0.wg.w1, COMP s1 completed 0.wg.w1, DEF s3 unscheduled _._._, PEND s3 pending 0._._, DEF s6 unscheduled _._._, PEND s6 pending 0._._',
	'savepoints: what was rolled back is not sent, the rest is');
SELECT is(pg_temp.code($$SELECT tq.create_tasks(jsonb_build_array(pg_temp.entry('s7'), pg_temp.entry('s3', '{"priority": "high"}')))$$), 'TQ409', 'an error in the middle of a call');
SELECT is(pg_temp.sent(), '', 'sends nothing of it');
DO $$
BEGIN
	PERFORM pg_temp.create('s7');
	BEGIN
		PERFORM pg_temp.create('s8');
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
		PERFORM pg_temp.create('s9');
	END;
END
$$;
SELECT is(pg_temp.sent(), 'DEF s7 unscheduled _._._, PEND s7 pending 0._._, DEF s9 unscheduled _._._, PEND s9 pending 0._._', 'an exception block is a savepoint');
BEGIN;
SELECT pg_temp.create('s10');
SAVEPOINT a;
SELECT pg_temp.cancel('s10');
ROLLBACK TO a;
COMMIT;
SELECT is(pg_temp.sent(), 'DEF s10 unscheduled _._._, PEND s10 pending 0._._', 'a resolution that was rolled back does not count, for the group either');
BEGIN;
SAVEPOINT a;
SELECT pg_temp.create('s11');
RELEASE a;
ROLLBACK;
SELECT is(pg_temp.sent(), '', 'a savepoint that was released, in a transaction that was rolled back');

-- ---------------------------------------------------------------------------
-- Two phases.  Functions of this file are temporary, and may not be prepared.
-- ---------------------------------------------------------------------------

SELECT pg_temp.id('p1') AS p1, pg_temp.def('p1') AS task1, pg_temp.id('p2') AS p2, pg_temp.def('p2') AS task2, pg_temp.id('s1') AS s1, pg_temp.id('s2') AS s2
\gset
BEGIN;
SELECT tq.create_task(:'p1', :'task1');
SAVEPOINT a;
SELECT tq.create_task(:'p2', :'task2');
ROLLBACK TO a;
SELECT tq.cancel_task(:'s2');
PREPARE TRANSACTION 'tq_messages';
SELECT pg_temp.create('p3');
SELECT is(pg_temp.sent(), 'DEF p3 unscheduled _._._, PEND p3 pending 0._._', 'PREPARE TRANSACTION: nothing is sent, what others commit is');
COMMIT PREPARED 'tq_messages';
SELECT is(pg_temp.sent(), 'DEF p1 unscheduled _._._, PEND p1 pending 0._._, EXC s2 exception 0._._, GROUP g', 'COMMIT PREPARED: now it is, with higher ids');
BEGIN;
SELECT tq.create_task(:'p2', :'task2');
SELECT tq.rerun_task(:'s1');
PREPARE TRANSACTION 'tq_messages';
SELECT pg_temp.create('p4');
ROLLBACK PREPARED 'tq_messages';
SELECT is(pg_temp.sent(), 'DEF p4 unscheduled _._._, PEND p4 pending 0._._', 'ROLLBACK PREPARED: it is never sent');
SELECT pg_temp.create('p2');
SELECT is(pg_temp.sent(), 'DEF p2 unscheduled _._._, PEND p2 pending 0._._', 'ROLLBACK PREPARED: nor does it block others');

-- ---------------------------------------------------------------------------
-- A large transaction
-- ---------------------------------------------------------------------------

DO $$
BEGIN
	FOR i IN 1..400 LOOP
		PERFORM pg_temp.create('t' || i, '{"taskQueueId": "great/q", "retries": 1}');
		PERFORM tq.claim_work('great/q', 'wg', 'w' || i);
		PERFORM pg_temp.report('t' || i, CASE i % 4 WHEN 0 THEN 'completed' WHEN 1 THEN 'failed' WHEN 2 THEN 'worker-shutdown' ELSE 'canceled' END);
		PERFORM tq.rerun_task(pg_temp.id('t' || i));
		PERFORM pg_temp.cancel('t' || i);
	END LOOP;
END
$$;
CREATE TEMP TABLE news OF tq.exchange_message;
INSERT INTO news SELECT * FROM pg_temp.news();
CREATE TEMP TABLE expected AS SELECT row_number() OVER (ORDER BY i, n) AS n, notified
FROM generate_series(1, 400) AS i, unnest(ARRAY[
	format('DEF t%s unscheduled _._._', i), format('PEND t%s pending 0._._', i), format('RUN t%s running 0.wg.w%1$s', i),
	CASE i % 4 WHEN 0 THEN format('COMP t%s completed 0.wg.w%1$s', i) WHEN 1 THEN format('FAIL t%s failed 0.wg.w%1$s', i)
		WHEN 2 THEN format('PEND t%s pending 1._._', i) ELSE format('EXC t%s exception 0.wg.w%1$s', i) END,
	format('PEND t%s pending 1._._', i), format('EXC t%s exception 1._._', i)]) WITH ORDINALITY AS u (notified, n);
SELECT is((SELECT count(*) FROM expected), 2400::bigint, '2,000 transitions in one transaction: 2,400 messages');
SELECT is((SELECT count(*) FROM news WHERE exchange <> 'task-group-resolved'), 2400::bigint, 'as many are sent');
SELECT is((SELECT count(*) FROM expected e FULL JOIN (SELECT row_number() OVER (ORDER BY id) AS n, pg_temp.notified(m) AS notified FROM news AS m WHERE exchange <> 'task-group-resolved') AS m
	USING (n) WHERE m.notified IS DISTINCT FROM e.notified), 0::bigint, 'the expected ones, in order');
SELECT is((SELECT count(DISTINCT published) FROM news WHERE exchange <> 'task-group-resolved'), 1::bigint, 'published at once');
SELECT is((SELECT max(id) - min(id) FROM news WHERE exchange <> 'task-group-resolved'), 2399::bigint, 'with consecutive ids');
SELECT is((SELECT count(*) FROM news WHERE exchange = 'task-group-resolved'), 400::bigint, 'and a message for each group');
SELECT is((SELECT min(id) FROM news WHERE exchange = 'task-group-resolved'), (SELECT max(id) + 1 FROM news WHERE exchange <> 'task-group-resolved'), 'after all of them');

-- the same, but rolled back completely
BEGIN;
DO $$
BEGIN
	FOR i IN 1..2000 LOOP
		PERFORM pg_temp.create('u' || i);
	END LOOP;
END
$$;
ROLLBACK;
SELECT is(pg_temp.sent(), '', '2,000 transitions that were rolled back: nothing is sent');

-- one call, many messages
SELECT is(tq.create_tasks((SELECT jsonb_agg(pg_temp.entry('v' || i, '{"taskQueueId": "great/v"}') ORDER BY i) FROM generate_series(1, 2000) AS i)), 2000::bigint, '2,000 tasks by one call');
SELECT is(array_agg(pg_temp.notified(m) ORDER BY id), (SELECT array_agg(notified ORDER BY i, n) FROM generate_series(1, 2000) AS i,
	unnest(ARRAY[format('DEF v%s unscheduled _._._', i), format('PEND v%s pending 0._._', i)]) WITH ORDINALITY AS u (notified, n)), '4,000 messages, in order') FROM pg_temp.news() AS m;

-- ---------------------------------------------------------------------------
-- upkeep() publishes what others have committed
-- ---------------------------------------------------------------------------

BEGIN;
SELECT pg_temp.create('k1');
SELECT is(pg_temp.publish_step(), 0::bigint, 'upkeep in a transaction that has written: publishes nothing');
SELECT is((SELECT count(*) FROM tq.messages(after => (SELECT max(last_id) FROM tq_internal.tick) - 1) AS m WHERE m.payload #>> '{status,taskId}' = pg_temp.id('k1')::text), 0::bigint, 'nor can its own messages be read');
SELECT pg_temp.create('k2');
COMMIT;
SELECT is(pg_temp.sent(), 'DEF k1 unscheduled _._._, PEND k1 pending 0._._, DEF k2 unscheduled _._._, PEND k2 pending 0._._', 'upkeep in a transaction that has written: loses nothing');
BEGIN;
SELECT pg_temp.publish_step() IS NULL;
SELECT pg_temp.create('k3');
SELECT is(pg_temp.publish_step(), 0::bigint, 'upkeep, a call, upkeep: nothing is published yet');
COMMIT;
SELECT is(pg_temp.sent(), 'DEF k3 unscheduled _._._, PEND k3 pending 0._._', 'upkeep, a call, upkeep: but after the commit');
BEGIN;
SELECT pg_temp.create('k4');
SELECT pg_temp.publish_step() IS NULL;
ROLLBACK;
SELECT is(pg_temp.sent(), '', 'upkeep in a transaction that was rolled back');
CREATE FUNCTION pg_temp.create_and_publish() RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	published bigint;
BEGIN
	PERFORM pg_temp.create('k7');
	published := pg_temp.publish_step();
	PERFORM pg_temp.create('k8');
	RETURN published + pg_temp.publish_step();
END
$$;
SELECT is(pg_temp.create_and_publish(), 0::bigint, 'upkeep() within a statement that has written: publishes nothing');
SELECT is(pg_temp.sent(), 'DEF k7 unscheduled _._._, PEND k7 pending 0._._, DEF k8 unscheduled _._._, PEND k8 pending 0._._', 'upkeep within a statement that has written: loses nothing');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM tq_internal.task;
SELECT pg_temp.publish_step() IS NULL;
SELECT pg_temp.create('k5');
COMMIT;
SELECT is(pg_temp.sent(), 'DEF k5 unscheduled _._._, PEND k5 pending 0._._', 'under REPEATABLE READ');
SELECT pg_temp.create('k6', '{"$deadline": "1 minute"}');
SELECT pg_temp.forget();
BEGIN;
SET LOCAL tq.clock_offset = '2 minutes';
SELECT is(pg_temp.pass(), 'deadline 1', 'upkeep sends messages of its own');
SELECT is(pg_temp.publish_step(), 0::bigint, 'which it does not publish');
COMMIT;
SELECT is(pg_temp.sent(), 'EXC k6 exception 0._._, GROUP k6', 'but they are published');

-- ---------------------------------------------------------------------------
-- Messages of deleted tasks
-- ---------------------------------------------------------------------------

CREATE FUNCTION pg_temp.remove(name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	gone bigint := (SELECT t.id FROM tq_internal.task AS t WHERE task_id = pg_temp.id(name));
BEGIN
	DELETE FROM tq_internal.pending WHERE task = gone;
	DELETE FROM tq_internal.run WHERE task = gone;
	DELETE FROM tq_internal.task WHERE id = gone;
END
$$;

SELECT tq.subscribe('sub', 'task-pending');
BEGIN;
SELECT pg_temp.create('d1');
SELECT pg_temp.resolved('d2', 'completed', '{"$group": "g"}');
SELECT pg_temp.create('d3');
SELECT pg_temp.remove('d2');
COMMIT;
SELECT pg_temp.create('d4');
SELECT is(pg_temp.sent(), 'DEF d1 unscheduled _._._, PEND d1 pending 0._._, DEF d3 unscheduled _._._, PEND d3 pending 0._._, DEF d4 unscheduled _._._, PEND d4 pending 0._._',
	'a task that is deleted before its messages are published: they are left out');
SELECT pg_temp.remove('d3');
SELECT is((SELECT string_agg(pg_temp.notified(m), ', ' ORDER BY id) FROM tq.fetch('sub') AS m), 'PEND d1 pending 0._._, PEND d4 pending 0._._', 'a task that is deleted after its messages were published: the same');
SELECT is((SELECT count(*) FROM pg_temp.messages_after(0) AS m WHERE m.payload #>> '{status,taskId}' = pg_temp.id('d3')::text), 0::bigint, 'messages() has none of them');
SELECT lives_ok($$SELECT tq.ack('sub', (SELECT max(id) FROM tq.fetch('sub')))$$, 'they can be skipped');
SELECT is((SELECT count(*) FROM tq.fetch('sub')), 0::bigint, 'and are not fetched again');

SELECT tq.unsubscribe('sub');

-- by expiry, whose clock is far ahead of the log's
SELECT pg_temp.resolved('d5', 'completed', '{"$deadline": "1 minute", "$expires": "2 hours"}');
SELECT is(pg_temp.sent(), 'DEF d5 unscheduled _._._, PEND d5 pending 0._._, RUN d5 running 0.wg.w1, COMP d5 completed 0.wg.w1, GROUP d5', 'a task that will expire');
SET tq.message_retention = '1h';
SELECT pg_temp.pass('4 hours');
SELECT pg_temp.pass();
RESET tq.clock_offset;
SELECT is(pg_temp.code($$SELECT tq.status(pg_temp.id('d5'))$$), 'TQ404', 'it has expired');
SELECT pg_temp.forget();
SELECT pg_temp.create('d6');
SELECT is(pg_temp.sent(), 'DEF d6 unscheduled _._._, PEND d6 pending 0._._', 'publication goes on');
-- and what the messages of the log need of a task stays as long as the log
SELECT pg_temp.resolved('d7', 'completed', '{"$deadline": "1 minute", "$expires": "2 minutes"}');
SELECT pg_temp.forget();
SET tq.message_retention = '10h';
SELECT pg_temp.pass('4 hours');
RESET tq.clock_offset;
SELECT is(pg_temp.code($$SELECT tq.status(pg_temp.id('d7'))$$), 'TQ404', 'a task expires while the log has messages about it');
SELECT is((SELECT string_agg(concat_ws(' ', pg_temp.short(m.exchange), m.payload #>> '{status,state}', m.payload ->> 'workerId'), ', ' ORDER BY id)
	FROM pg_temp.messages_after(0) AS m WHERE m.payload #>> '{status,taskId}' = pg_temp.id('d7')::text),
	'DEF unscheduled, PEND pending, RUN running w1, COMP completed w1', 'which are as they were');

SELECT * FROM finish();
