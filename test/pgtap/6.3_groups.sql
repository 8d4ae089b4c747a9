-- doc/spec/taskcluster.md 4.5, 6.3: task-group-resolved.
\ir messages.psql

INSERT INTO known SELECT 'g' || n FROM generate_series(1, 40) AS n;
INSERT INTO known SELECT 'six' || n FROM generate_series(1, 6) AS n;

-- Tasks of a group, running.
CREATE FUNCTION pg_temp.members(g text, VARIADIC names text[]) RETURNS void
LANGUAGE sql AS $$
	SELECT pg_temp.running(n, jsonb_build_object('$group', g)) FROM unnest(names) WITH ORDINALITY AS u (n, i) ORDER BY i
$$;

-- ---------------------------------------------------------------------------
-- The message
-- ---------------------------------------------------------------------------

SELECT pg_temp.running('lone', '{"schedulerId": "sched", "tags": {"a": "b"}, "routes": ["r"]}');
SELECT pg_temp.forget();
SELECT pg_temp.report('lone', 'completed');
CREATE TEMP TABLE news OF tq.exchange_message;
INSERT INTO news SELECT * FROM pg_temp.news();
SELECT is(string_agg(pg_temp.notified(n), ', ' ORDER BY id), 'COMP lone completed 0.wg.w1, GROUP lone', '4.5 a task that is alone: after its own message') FROM news AS n;
SELECT is(payload, jsonb_build_object('version', 1, 'taskGroupId', pg_temp.id('lone')::text, 'schedulerId', 'sched',
	'expires', pg_temp.iso((tq.task(pg_temp.id('lone')) ->> 'expires')::timestamptz + interval '1 hour')), '6.3 the whole message') FROM news WHERE exchange = 'task-group-resolved';
SELECT is(routing_key || cc::text, format('primary.%s.sched._{}', pg_temp.id('lone')), '6.3 its routing key, and no CC') FROM news WHERE exchange = 'task-group-resolved';
SELECT is(payload - 'version', tq.get_task_group(pg_temp.id('lone')), '6.3 the group as get_task_group() shows it') FROM news WHERE exchange = 'task-group-resolved';
SELECT ok((SELECT published FROM news WHERE exchange = 'task-group-resolved') >= (SELECT published FROM news WHERE exchange = 'task-completed'), '6.3 published at that time or later');
SELECT pg_temp.create(n, o::jsonb) FROM (VALUES (1, 's1', '{"$group": "g1", "schedulerId": "s-1", "$expires": "2 days"}'), (2, 's2', '{"$group": "g1", "schedulerId": "s-1", "$expires": "3 days"}')) AS v (i, n, o) ORDER BY i;
SELECT pg_temp.cancel('s1', 's2');
SELECT is(payload, jsonb_build_object('version', 1, 'taskGroupId', pg_temp.id('g1')::text, 'schedulerId', 's-1', 'expires', pg_temp.iso(pg_temp.base() + interval '3 days 1 hour')), '6.3 of several tasks: the latest expires')
FROM pg_temp.news() WHERE exchange = 'task-group-resolved';
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('g1'))$$, '6.3 sealed');
SELECT pg_temp.cancel('s1');
SELECT is(payload, jsonb_build_object('version', 1, 'taskGroupId', pg_temp.id('g1')::text, 'schedulerId', 's-1', 'expires', pg_temp.iso(pg_temp.base() + interval '3 days 1 hour'),
	'sealed', tq.get_task_group(pg_temp.id('g1')) ->> 'sealed'), '6.3 sealed: the message has its time, ' || exchange)
FROM pg_temp.news() WHERE exchange LIKE 'task-group-%' ORDER BY id;
SELECT is(string_agg((payload ? 'sealed')::text, ' ' ORDER BY id), 'false true true', '6.3 but not the earlier message')
FROM pg_temp.messages_after(0) WHERE payload ->> 'taskGroupId' = pg_temp.id('g1')::text;

-- A message that has been sent stays as it is.
SELECT pg_temp.members('g2', 'k1', 'k2');
SELECT pg_temp.cancel('k1', 'k2');
CREATE TEMP TABLE kept AS SELECT * FROM pg_temp.messages_after(0) WHERE exchange LIKE 'task-group-%';
SELECT pg_temp.create('k3', '{"$group": "g2", "$expires": "1000 days"}');
SELECT is(tq.get_task_group(pg_temp.id('g2')) ->> 'expires', pg_temp.iso(pg_temp.base() + interval '1000 days 1 hour'), '4.5 a task prolongs its group');
SELECT is((SELECT m.payload ->> 'expires' FROM tq.message(k.id) AS m), k.payload ->> 'expires', '6.3 the earlier message has not changed')
FROM kept AS k WHERE payload ->> 'taskGroupId' = pg_temp.id('g2')::text;
-- The same for a group that had only the task with its own id.
SELECT pg_temp.running('k5'), pg_temp.running('k6');
SELECT pg_temp.cancel('k5', 'k6');
INSERT INTO kept SELECT * FROM pg_temp.messages_after((SELECT max(id) FROM kept)) WHERE exchange LIKE 'task-group-%';
SELECT pg_temp.create('k7', '{"$group": "k5", "$expires": "1000 days"}');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('k6'))$$, '6.3 a group of one is sealed');
SELECT is((SELECT m.payload FROM tq.message(k.id) AS m), k.payload, '6.3 the earlier message has not changed: ' || n)
FROM unnest('{k5,k6}'::text[]) AS n JOIN kept AS k ON k.payload ->> 'taskGroupId' = pg_temp.id(n)::text;
SELECT pg_temp.forget();
SELECT pg_temp.cancel('k6');
SELECT is(m.payload - 'version', tq.get_task_group(pg_temp.id('k6')), '6.3 the later message shows it as it is')
FROM pg_temp.news() AS m WHERE exchange = 'task-group-resolved';
SELECT is((SELECT tq.get_task_group(pg_temp.id('k6')) ? 'sealed'), true, '6.3 which is sealed');
SELECT pg_temp.members('g3', 'k4');
SELECT pg_temp.id('g3') AS g3
\gset
-- A seal that is called before the resolution and commits after it.
BEGIN;
SELECT tq.seal_task_group(:'g3');
PREPARE TRANSACTION 'tq_seal';
SELECT pg_temp.cancel('k4');
CREATE TEMP TABLE before AS SELECT * FROM pg_temp.messages_after(0) WHERE exchange = 'task-group-resolved' AND payload ->> 'taskGroupId' = :'g3';
SELECT is(string_agg((payload ? 'sealed')::text, ' '), 'false', '6.3 resolved before a seal commits, which is not yet shown') FROM before;
COMMIT PREPARED 'tq_seal';
SELECT is((SELECT m.payload ? 'sealed' FROM tq.message(before.id) AS m), false, '6.3 nor when the message is read again') FROM before;
SELECT pg_temp.forget();

-- ---------------------------------------------------------------------------
-- When it is sent: with the last task, whatever the order
-- ---------------------------------------------------------------------------

SELECT pg_temp.members('six' || n, 'a' || n, 'b' || n, 'c' || n) FROM generate_series(1, 6) AS n;
SELECT pg_temp.forget();
CREATE TEMP TABLE orders AS SELECT row_number() OVER ()::text AS n, x, y, z FROM unnest('{a,b,c}'::text[]) AS x, unnest('{a,b,c}'::text[]) AS y, unnest('{a,b,c}'::text[]) AS z WHERE x <> y AND y <> z AND x <> z;
SELECT pg_temp.report(x || n, 'completed') FROM orders;
SELECT is(count(*) || ' ' || count(*) FILTER (WHERE exchange = 'task-group-resolved'), '6 0', '4.5 three tasks, one of them resolved: their own messages and no other') FROM pg_temp.news();
SELECT pg_temp.report(y || n, 'failed') FROM orders;
SELECT is(count(*) || ' ' || count(*) FILTER (WHERE exchange = 'task-group-resolved'), '6 0', '4.5 three tasks, two of them resolved: their own messages and no other') FROM pg_temp.news();
SELECT pg_temp.report(z || n, 'internal-error') FROM orders;
TRUNCATE news;
INSERT INTO news SELECT * FROM pg_temp.news();
SELECT is((SELECT string_agg(pg_temp.notified(m), ', ' ORDER BY id) FROM news AS m WHERE payload #>> '{status,taskGroupId}' = g OR payload ->> 'taskGroupId' = g),
	format('EXC %s exception 0.wg.w1, GROUP six%s', z || n, n), format('4.5 three tasks, resolved in the order %s %s %s', x, y, z))
FROM orders, LATERAL (SELECT pg_temp.id('six' || n)::text) AS v (g);
SELECT is(count(*), 12::bigint, '4.5 and nothing else') FROM news;

-- a group of many, in the order of their ids and in the other; and one that
-- comes first is added when only the last is left
CREATE TEMP TABLE many AS SELECT g, name, row_number() OVER (PARTITION BY g ORDER BY pg_temp.id(name)) AS place
FROM (SELECT 'g' || (4 + i % 4) AS g, 'many' || i AS name FROM generate_series(1, 80) AS i) AS v;
SELECT pg_temp.members(g, name) FROM many WHERE NOT (g = 'g7' AND place = 1);
SELECT pg_temp.forget();
SELECT pg_temp.report(name, 'completed') FROM (SELECT * FROM many WHERE g = 'g4' AND place < 20 ORDER BY place) AS v;
SELECT is(count(*) FILTER (WHERE exchange = 'task-group-resolved'), 0::bigint, '4.5 19 of 20 tasks in one transaction') FROM pg_temp.news();
SELECT pg_temp.report(name, 'completed') FROM many WHERE g = 'g4' AND place = 20;
SELECT is(count(*) FILTER (WHERE exchange = 'task-group-resolved'), 1::bigint, '4.5 and the last') FROM pg_temp.news();
DO $$
DECLARE
	member text;
BEGIN
	FOR member IN SELECT name FROM many WHERE g = 'g5' ORDER BY place LOOP
		PERFORM pg_temp.report(member, 'completed');
		COMMIT;
		PERFORM pg_temp.last_id();
	END LOOP;
	FOR member IN SELECT name FROM many WHERE g = 'g6' ORDER BY place DESC LOOP
		PERFORM pg_temp.report(member, 'completed');
		COMMIT;
		PERFORM pg_temp.last_id();
	END LOOP;
	FOR member IN SELECT name FROM many WHERE g = 'g7' AND place BETWEEN 2 AND 19 ORDER BY place LOOP
		PERFORM pg_temp.report(member, 'completed');
		COMMIT;
		PERFORM pg_temp.last_id();
	END LOOP;
END
$$;
TRUNCATE news;
INSERT INTO news SELECT * FROM pg_temp.news();
SELECT is((SELECT string_agg(exchange, ' ' ORDER BY id) FROM (SELECT exchange, id FROM news AS m WHERE payload #>> '{status,taskGroupId}' = v.id OR payload ->> 'taskGroupId' = v.id ORDER BY id OFFSET 19) AS o),
	expected, format('4.5 20 tasks, each in a transaction, %s', what))
FROM (VALUES ('g5', 'in the order of their ids', 'task-completed task-group-resolved'), ('g6', 'in the other order', 'task-completed task-group-resolved'), ('g7', 'but for two', NULL)) AS w (g, what, expected),
	LATERAL (SELECT pg_temp.id(g)::text) AS v (id);
SELECT pg_temp.create(name, '{"$group": "g7"}') FROM many WHERE g = 'g7' AND place = 1;
SELECT pg_temp.forget();
SELECT pg_temp.report(name, 'completed') FROM many WHERE g = 'g7' AND place = 20;
SELECT is(count(*) FILTER (WHERE exchange = 'task-group-resolved'), 0::bigint, '4.5 one with a lower id was added, and the last of the others is resolved') FROM pg_temp.news();
SELECT pg_temp.cancel(name) FROM many WHERE g = 'g7' AND place = 1;
SELECT is(count(*) FILTER (WHERE exchange = 'task-group-resolved'), 1::bigint, '4.5 and now it, too') FROM pg_temp.news();

-- in one transaction, or by one call: once
SELECT pg_temp.members('g8', 'o1', 'o2', 'o3');
SELECT pg_temp.members('g9', 'o4', 'o5');
SELECT pg_temp.create('o6', '{"$group": "g9"}');
SELECT pg_temp.forget();
SELECT is(string_agg(outcome, ' '), 'resolved resolved resolved', '4.5 resolve() of a whole group') FROM tq.resolve(pg_temp.ids('o1', 'o2', 'o3'), '{0,0,0}');
SELECT is(pg_temp.sent(), 'COMP o1 completed 0.wg.w1, COMP o2 completed 0.wg.w1, COMP o3 completed 0.wg.w1, GROUP g8', '4.5 once, after all its tasks');
SELECT is(string_agg(outcome, ' '), 'repeated repeated repeated', '4.5 again') FROM tq.resolve(pg_temp.ids('o1', 'o2', 'o3'), '{0,0,0}');
SELECT is(pg_temp.sent(), 'COMP o1 completed 0.wg.w1, COMP o2 completed 0.wg.w1, COMP o3 completed 0.wg.w1, GROUP g8', '4.5 and so it is sent again');
BEGIN;
SELECT pg_temp.report('o4', 'completed');
SELECT pg_temp.report('o5', 'failed');
SELECT pg_temp.report('o5', 'failed');
SELECT pg_temp.cancel('o6');
COMMIT;
SELECT is(pg_temp.sent(), 'COMP o4 completed 0.wg.w1, FAIL o5 failed 0.wg.w1, FAIL o5 failed 0.wg.w1, EXC o6 exception 0._._, GROUP g9', '4.5 several calls of one transaction: once');
BEGIN;
SELECT pg_temp.create('o7', '{"$group": "g10"}');
SELECT pg_temp.cancel('o7');
SELECT pg_temp.create('o8', '{"$group": "g10"}');
COMMIT;
SELECT is(pg_temp.sent(), 'DEF o7 unscheduled _._._, PEND o7 pending 0._._, EXC o7 exception 0._._, DEF o8 unscheduled _._._, PEND o8 pending 0._._', '4.5 a task that is added in the same transaction');
BEGIN;
SELECT pg_temp.cancel('o8');
SELECT tq.rerun_task(pg_temp.id('o8'));
COMMIT;
SELECT is(pg_temp.sent(), 'EXC o8 exception 0._._, PEND o8 pending 1._._, GROUP g10', '4.5 a rerun in the same transaction does not make it active');
BEGIN;
SELECT pg_temp.cancel('o8');
SAVEPOINT s;
SELECT pg_temp.create('o9', '{"$group": "g11"}');
SELECT pg_temp.cancel('o9');
ROLLBACK TO s;
COMMIT;
SELECT is(pg_temp.sent(), 'EXC o8 exception 1._._, GROUP g10', '4.5 not of a group whose savepoint was rolled back');

-- ---------------------------------------------------------------------------
-- 4.5 (b): after a rerun
-- ---------------------------------------------------------------------------

SELECT pg_temp.members('g12', 'r1', 'r2');
SELECT pg_temp.report('r1', 'completed');
SELECT pg_temp.report('r2', 'failed');
SELECT pg_temp.forget();
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('r1'))$$, '4.5 (b) a rerun in a resolved group');
SELECT pg_temp.take('r1');
SELECT is(pg_temp.sent(), 'PEND r1 pending 1._._, RUN r1 running 1.wg.w1', '4.5 (b) as such sends nothing of the group');
SELECT pg_temp.report('r1', 'completed');
SELECT is(pg_temp.sent(), 'COMP r1 completed 1.wg.w1, GROUP g12', '4.5 (b) sent again when the rerun is resolved');
SELECT tq.rerun_task(pg_temp.id(n)) FROM unnest('{r1,r2}'::text[]) AS n;
SELECT pg_temp.take('r2');
SELECT pg_temp.forget();
SELECT pg_temp.report('r2', 'completed');
SELECT is(pg_temp.sent(), 'COMP r2 completed 1.wg.w1, GROUP g12', '4.5 (b) also while another rerun is pending');
SELECT pg_temp.take('r1');
SELECT pg_temp.report('r2', 'completed');
SELECT is(pg_temp.sent(), 'RUN r1 running 2.wg.w1, COMP r2 completed 1.wg.w1, GROUP g12', '4.5 (b) or running');
SELECT pg_temp.report('r1', 'worker-shutdown');
SELECT is(pg_temp.sent(), 'PEND r1 pending 3._._', '4.5 (b) a retry of the rerun is not a resolution');
SELECT pg_temp.report('r2', 'completed');
SELECT is(pg_temp.sent(), 'COMP r2 completed 1.wg.w1, GROUP g12', '4.5 (b) nor does it make the group active');
SELECT pg_temp.cancel('r1');
SELECT is(pg_temp.sent(), 'EXC r1 exception 3._._, GROUP g12', '4.5 (b) the resolution of the retry');
-- a run that was retried is not a resolution, nor is a run 0 that was created by a rerun
SELECT pg_temp.members('g13', 'r3', 'r4');
SELECT pg_temp.create('r5', '{"$group": "g13", "$deps": ["r5"]}');
SELECT tq.rerun_task(pg_temp.id('r5'));
SELECT pg_temp.work('r5', 'worker-shutdown');
SELECT pg_temp.report('r3', 'worker-shutdown');
SELECT pg_temp.forget();
SET tq.publish_retried_exceptions = on;
SELECT pg_temp.report('r4', 'completed');
SELECT pg_temp.report('r3', 'worker-shutdown', 0);
SELECT is(pg_temp.sent(), 'COMP r4 completed 0.wg.w1, EXC r3 pending 0.wg.w1, PEND r3 pending 1._._', '4.5 a task whose run was retried keeps the group active');
RESET tq.publish_retried_exceptions;
SELECT pg_temp.cancel('r3');
SELECT is(pg_temp.sent(), 'EXC r3 exception 1._._', '4.5 so does one whose first run was created by a rerun, and was retried');
SELECT pg_temp.cancel('r5');
SELECT is(pg_temp.sent(), 'EXC r5 exception 1._._, GROUP g13', '4.5 until it is resolved');

-- ---------------------------------------------------------------------------
-- 4.5 (c), (d): new tasks, unscheduled tasks
-- ---------------------------------------------------------------------------

SELECT pg_temp.members('g14', 'x1');
SELECT pg_temp.report('x1', 'completed');
SELECT is((SELECT string_agg(pg_temp.notified(m), ', ' ORDER BY id) FROM pg_temp.news() AS m WHERE exchange LIKE '%group%'), 'GROUP g14', '4.5 (c) resolved');
SELECT pg_temp.create('x2', '{"$group": "g14", "$deps": ["x2"]}');
SELECT pg_temp.forget();
SELECT pg_temp.report('x1', 'completed');
SELECT is(pg_temp.sent(), 'COMP x1 completed 0.wg.w1', '4.5 (c) a new task makes it active; (d) an unscheduled one, too');
SELECT tq.schedule_task(pg_temp.id('x2'));
SELECT pg_temp.take('x2');
SELECT pg_temp.forget();
SELECT pg_temp.report('x1', 'completed');
SELECT is(pg_temp.sent(), 'COMP x1 completed 0.wg.w1', '4.5 (c) while it is running');
SELECT pg_temp.report('x2', 'failed');
SELECT is(pg_temp.sent(), 'FAIL x2 failed 0.wg.w1, GROUP g14', '4.5 (c) until that is resolved');
SELECT pg_temp.create('x3', '{"$group": "g14", "$deps": ["x3"], "$deadline": "1 minute"}');
SELECT pg_temp.forget();
SELECT is(pg_temp.pass('2 minutes'), 'deadline 1', '4.5 (d) a deadline');
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), 'EXC x3 exception 0._._, GROUP g14', '4.5 (d) is a resolution');
SELECT pg_temp.members('g15', 'x4');
SELECT pg_temp.create('x5', '{"$group": "g15", "$deps": ["x4"]}');
SELECT pg_temp.forget();
SELECT pg_temp.report('x4', 'failed');
SELECT is(pg_temp.sent(), 'FAIL x4 failed 0.wg.w1', '4.5 (d) a dependent that can never be released');
SELECT pg_temp.cancel('x5');
SELECT is(pg_temp.sent(), 'EXC x5 exception 0._._, GROUP g15', '4.5 (d) until it is canceled');
SELECT pg_temp.members('g16', 'x6');
SELECT pg_temp.create('x7', '{"$group": "g16", "$deps": ["x6"]}');
SELECT pg_temp.forget();
SELECT pg_temp.report('x6', 'completed');
SELECT is(pg_temp.sent(), 'COMP x6 completed 0.wg.w1, PEND x7 pending 0._._', '4.5 a dependent that is released');
SELECT pg_temp.work('x7', 'completed');
SELECT is(pg_temp.sent(), 'RUN x7 running 0.wg.w1, COMP x7 completed 0.wg.w1, GROUP g16', '4.5 and is the last');
SELECT pg_temp.create('x8', '{"$group": "g17"}');
INSERT INTO tq_internal.delayed SELECT clock_timestamp() + interval '1 hour', task, scheduled, queue, priority, run_id, retries_left, reason_created FROM tq_internal.pending
	WHERE task = (SELECT id FROM tq_internal.task WHERE task_id = pg_temp.id('x8'));
DELETE FROM tq_internal.pending WHERE task = (SELECT id FROM tq_internal.task WHERE task_id = pg_temp.id('x8'));
SELECT pg_temp.members('g17', 'x9');
SELECT pg_temp.forget();
SELECT pg_temp.report('x9', 'completed');
SELECT is(pg_temp.sent(), 'COMP x9 completed 0.wg.w1', '4.5 a delayed one keeps it active');
SELECT pg_temp.cancel('x8');
SELECT is(pg_temp.sent(), 'EXC x8 exception 0._._, GROUP g17', '4.5 until it is canceled');

-- ---------------------------------------------------------------------------
-- The task with the id of the group
-- ---------------------------------------------------------------------------

SELECT pg_temp.running('n1');
SELECT pg_temp.members('n1', 'n1a');
SELECT pg_temp.forget();
SELECT pg_temp.report('n1', 'completed');
SELECT is(pg_temp.sent(), 'COMP n1 completed 0.wg.w1', '4.5 the task with the group''s id, and another that is running');
SELECT pg_temp.report('n1a', 'completed');
SELECT is(pg_temp.sent(), 'COMP n1a completed 0.wg.w1, GROUP n1', '4.5 both are resolved');
SELECT pg_temp.members('n2', 'n2a');
SELECT pg_temp.forget();
SELECT pg_temp.report('n2a', 'completed');
SELECT is((SELECT string_agg(m.exchange, ' ' ORDER BY id) FROM pg_temp.news() AS m), 'task-completed task-group-resolved', '4.5 the group of a task that does not exist');
SELECT pg_temp.running('n2');
SELECT pg_temp.forget();
SELECT pg_temp.report('n2a', 'completed');
SELECT is(pg_temp.sent(), 'COMP n2a completed 0.wg.w1', '4.5 (c) it is created afterwards: the group is active');
SELECT pg_temp.report('n2', 'failed');
SELECT is(pg_temp.sent(), 'FAIL n2 failed 0.wg.w1, GROUP n2', '4.5 and resolved with it');
SELECT pg_temp.running('n3');
SELECT pg_temp.members('n3', 'n3a');
SELECT pg_temp.forget();
SELECT pg_temp.report('n3a', 'completed');
SELECT is(pg_temp.sent(), 'COMP n3a completed 0.wg.w1', '4.5 the task with the group''s id is running');
SELECT pg_temp.report('n3', 'completed');
SELECT is(pg_temp.sent(), 'COMP n3 completed 0.wg.w1, GROUP n3', '4.5 and is the last');

-- ---------------------------------------------------------------------------
-- Without the other exchanges, and without this one
-- ---------------------------------------------------------------------------

SELECT pg_temp.members('g18', 'u1', 'u2', 'u3', 'u4', 'u5');
SELECT tq.unbind(channel, exchange, pattern) FROM tq.binding_overview WHERE exchange <> 'task-group-resolved';
SELECT pg_temp.forget();
SELECT is((SELECT count(*) FROM tq.binding_overview), 1::bigint, 'only task-group-resolved is bound');
SELECT pg_temp.report('u1', 'completed');
SELECT pg_temp.report('u2', 'failed');
SELECT pg_temp.report('u3', 'internal-error');
SELECT pg_temp.cancel('u4');
SELECT is(pg_temp.sent(), '', 'only task-group-resolved is bound: nothing before the last');
SELECT pg_temp.report('u5', 'worker-shutdown');
SELECT pg_temp.take('u5');
SELECT is(pg_temp.sent(), '', 'only task-group-resolved is bound: nor at a retry');
SELECT pg_temp.report('u5', 'completed');
SELECT is(pg_temp.sent(), 'GROUP g18', 'only task-group-resolved is bound: with the last');
SELECT pg_temp.report('u5', 'completed');
SELECT is(pg_temp.sent(), 'GROUP g18', 'only task-group-resolved is bound: with a repeat');
SELECT pg_temp.create('u6', '{"$group": "g18", "$deadline": "1 minute"}');
SELECT is(pg_temp.pass('2 minutes'), 'deadline 1', 'only task-group-resolved is bound: a deadline');
RESET tq.clock_offset;
SELECT is(pg_temp.sent(), 'GROUP g18', 'only task-group-resolved is bound: with a deadline');
SELECT is((SELECT count(*) FROM pg_temp.messages_after(current_setting('test.mark')::bigint)), 0::bigint, 'only task-group-resolved is bound: the row written for it has no message id');
BEGIN;
SELECT tq.bind('tq_task_exception', 'task-exception');
SELECT tq.unbind('tq_task_group_resolved', 'task-group-resolved');
COMMIT;
SELECT pg_temp.cancel('u4');
SELECT is(pg_temp.sent(), 'EXC u4 exception 0.wg.w1', 'task-group-resolved is not bound');
SELECT lives_ok($$SELECT tq.subscribe('s', 'task-group-resolved', 'primary.*.sched._')$$, 'but subscribed to');
SELECT pg_temp.report('u1', 'completed');
SELECT pg_temp.report('lone', 'completed');
SELECT is(pg_temp.sent(), 'GROUP g18, GROUP lone', 'so it is sent');
SELECT is((SELECT string_agg(pg_temp.notified(m), ', ' ORDER BY id) FROM tq.fetch('s') AS m), 'GROUP lone', 'the subscription gets its own');

SELECT * FROM finish();
