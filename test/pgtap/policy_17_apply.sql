-- doc/spec/policy.md 17.3: apply.  It ends transactions, so that this file has none around it.
-- Other sessions: apply-vs-claim and apply-vs-expiry of test/isolation/specs.
\ir policy.psql
\set SHOW_CONTEXT never
SET tq.expire_batch = 3;
SET tq.audit = operators;

CREATE FUNCTION pg_temp.of(queue text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(left(state, 1) || ' ' || name, ', ' ORDER BY name), '') FROM tq.task_overview WHERE task_queue_id = queue
$$;
CREATE FUNCTION pg_temp.add(queue text, VARIADIC names text[]) RETURNS void LANGUAGE sql AS $$
	SELECT count(tq.enqueue(queue, task_id => pg_temp.id(n), name => n)) FROM unnest(names) AS n
$$;
CREATE FUNCTION pg_temp.fails(queue text, n int) RETURNS bigint LANGUAGE sql AS $$
	SELECT count(tq.report_failed(c.task_id, c.run_id, error_message => 'out of paper')) FROM tq.claim_work(queue, 'wg', 'w1', n) AS c
$$;

-- cancel, and what a dry run says
SELECT pg_temp.add('ap/c', 'a1', 'a2', 'a3', 'a4', 'a5'), pg_temp.add('ap/d', 'b1') \g /dev/null
CALL tq.apply('{"queue": "ap/*"}', 'cancel', dry_run => true) \gset
SELECT is(:tasks, 6, '17.3.7 a dry run: tasks');
SELECT is(:'found'::jsonb, '{"ap/c": {"pending": 5}, "ap/d": {"pending": 1}}', '17.3.7 a dry run: found');
SELECT is(pg_temp.of('ap/c'), 'p a1, p a2, p a3, p a4, p a5', '17.3.7 a dry run changes nothing');
SELECT is((SELECT count(*) FROM tq.audit WHERE function = 'apply'), 0::bigint, '17.3.8 nor does the audit trail have it');
CALL tq.apply('{"queue": "ap/c"}', 'cancel', max => 2) \gset
SELECT is(:'tasks' || :'refused', '2{}'::text, '17.3.2 at most two');
SELECT is(pg_temp.of('ap/c'), 'p a1, p a2, p a3, e a4, e a5', '17.3.2 the newest');
CALL tq.apply('{"queue": "ap/c"}', 'cancel') \gset
SELECT is(:'tasks' || :'refused', '3{"it is resolved or deleted": 2}'::text, '17.3.3 what is resolved is refused');
SELECT is(pg_temp.look('a1'), 'exception 5: scheduled>exception/canceled', '17.3 cancel is as cancel_task');
SELECT is(pg_temp.of('ap/d'), 'p b1', '17.3 another queue');
SELECT is((SELECT jsonb_agg(arguments ORDER BY id) FROM tq.audit WHERE function = 'apply'),
	'[{"action": "cancel", "arguments": {}, "dry_run": false, "filter": {"queue": "ap/c"}, "max": 2}, {"action": "cancel", "arguments": {}, "dry_run": false, "filter": {"queue": "ap/c"}}]', '17.3.8 a row for each call');
CALL tq.apply('{"queue": "ap/none"}', 'cancel') \gset
SELECT is(:'tasks' || :'refused', '0{}'::text, '17.3 nothing is found');
SELECT is((SELECT count(*) FROM tq.audit WHERE function = 'apply'), 3::bigint, '17.3.8 which has a row, too');

-- rerun; more than a batch
SELECT pg_temp.add('ap/r', 'r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7'), pg_temp.fails('ap/r', 5) \g /dev/null
CALL tq.apply('{"queue": "ap/r", "error": "out of paper"}', 'rerun') \gset
SELECT is(:'tasks' || :'refused', '5{}'::text, '17.3 rerun of what failed');
SELECT is(pg_temp.look('r1'), 'pending 5: scheduled>failed/failed rerun>pending', '17.3 rerun is as rerun_task');
CALL tq.apply('{"queue": "ap/r"}', 'rerun') \gset
SELECT is(:'tasks' || :'refused', '7{}'::text, '17.3 a rerun of a pending task does nothing');
SELECT pg_temp.add('ap/up', 'up'), pg_temp.create('down', '{"taskQueueId": "ap/down", "$deps": ["up"]}'), pg_temp.take('up'), pg_temp.report('up', 'completed'), pg_temp.take('down'), pg_temp.report('down', 'completed') \g /dev/null
CALL tq.apply('{"queue": "ap/up"}', 'rerun', '{"downstream": true, "deadline": "2 days"}') \gset
SELECT is(:'tasks' || pg_temp.state('up') || pg_temp.state('down'), '1pendingunscheduled'::text, '17.3 rerun: downstream');

-- schedule, priority, delay, move
SELECT tq.define_task(pg_temp.id(n), pg_temp.def(n, '{"taskQueueId": "ap/s"}')) FROM unnest('{s1,s2}'::text[]) AS n \g /dev/null
CALL tq.apply('{"queue": "ap/s", "state": "unscheduled"}', 'schedule', max => 1) \gset
SELECT is(:'tasks' || ' ' || pg_temp.of('ap/s'), '1 u s1, p s2'::text, '17.3 schedule');
CALL tq.apply('{"queue": "ap/s"}', 'priority', '{"priority": "high"}') \gset
SELECT is(:'tasks' || :'refused', '2{}'::text, '17.3 priority');
CALL tq.apply('{"queue": "ap/s"}', 'priority', '{"priority": "high"}') \gset
SELECT is(:'tasks' || :'refused', '0{"task \"<id>\" has that priority already": 2}'::text, '17.3.3 refusals of a kind are counted together');
CALL tq.apply('{"queue": "ap/s"}', 'delay', jsonb_build_object('until', pg_temp.clock() + interval '30 minutes')) \gset
SELECT is(:'tasks' || :'refused', '1{"task \"<id>\" cannot be rescheduled": 1}'::text, '17.3 delay');
SELECT is((SELECT delayed FROM tq.queue_stats WHERE task_queue_id = 'ap/s'), 1::bigint, '17.3 which is delayed');
CALL tq.apply('{"queue": "ap/s"}', 'move', '{"queue": "ap/s2"}') \gset
SELECT is(:'tasks' || :'refused' || pg_temp.of('ap/s2'), '2{}u s1, p s2'::text, '17.3 move');
CALL tq.apply('{"queue": "ap/s2"}', 'move', '{"queue": "ap/s2"}') \gset
SELECT is(:'tasks' || :'refused', '0{"it is in that queue": 2}'::text, '17.3 to the same queue');
SELECT pg_temp.create('k', '{"taskQueueId": "ap/k", "policy": {"uniqueKey": "u"}}'), pg_temp.add('ap/k', 'k2'), pg_temp.add('ap/k', 'k3'), pg_temp.take('k') \g /dev/null
CALL tq.apply('{"queue": "ap/k"}', 'move', '{"queue": "ap/k2"}') \gset
SELECT is(:'tasks' || :'refused', '2{"it is running": 1}'::text, '17.3 not one that is running');

-- redrive, discard
SELECT tq.enqueue('ap/l', task_id => pg_temp.id(n), name => n, policy => '{"deadLetter": true}') FROM unnest('{l1,l2,l3}'::text[]) AS n \g /dev/null
SELECT pg_temp.fails('ap/l', 2) \g /dev/null
CALL tq.apply('{"name": "l1"}', 'discard') \gset
SELECT is(:tasks, 1, '17.3 discard');
CALL tq.apply('{"queue": "ap/l"}', 'redrive') \gset
SELECT is(:'tasks' || :'refused' || pg_temp.of('ap/l'), '1{"task \"<id>\" has no dead letter": 2}f l1, p l2, p l3'::text, '17.3 redrive');

-- expire, delete
CALL tq.apply('{"queue": "ap/l"}', 'expire') \gset
SELECT is(:'tasks' || :'refused' || pg_temp.of('ap/l'), '1{"task \"<id>\" does not expire now": 2}p l2, p l3'::text, '17.3 expire');
CALL tq.apply('{"queue": "ap/l"}', 'delete') \gset
SELECT is(:'tasks' || :'refused' || pg_temp.of('ap/l'), '2{}'::text, '17.3 delete');

-- At most 10,000,000 tasks: here three.
SELECT pg_temp.add('ap/many', 'n1', 'n2', 'n3', 'n4', 'n5') \g /dev/null
SELECT pg_get_functiondef('tq_internal.apply_find'::regproc) AS apply_find \gset
SELECT replace(:'apply_find', '10000000', '3') \gexec
SELECT is(pg_temp.call_as('none', $$CALL tq.apply('{"queue": "ap/many"}', 'cancel', dry_run => true)$$), 'TQ400 It finds more than 3.', '17.3.2 a filter that finds too many');
SELECT is(pg_temp.call_as('none', $$CALL tq.apply('{"queue": "ap/many"}', 'cancel', dry_run => true, max => 4)$$), 'TQ400 It finds more than 3.', '17.3.2 and a max that is too large');
CALL tq.apply('{"queue": "ap/many"}', 'cancel', max => 3) \gset
SELECT is(:'tasks' || ' ' || pg_temp.of('ap/many'), '3 p n1, p n2, e n3, e n4, e n5'::text, '17.3.2 the newest of them');
:apply_find \g

-- What expires now is read by messages still, as at any expiry; what is deleted or purged is not.
SELECT tq.subscribe('ap', 'task-completed', '#'), pg_temp.add('ap/m', 'm1', 'm2', 'm3') \g /dev/null
SELECT count(tq.report_completed(c.task_id, c.run_id)) FROM tq.claim_work('ap/m', 'wg', 'w1', 3) AS c \g /dev/null
CALL tq.apply('{"name": "m1"}', 'expire') \gset
SELECT is(:'tasks' || :'refused' || pg_temp.of('ap/m'), '1{}c m2, c m3'::text, '17.3 expire of what is resolved');
CALL tq.apply('{"name": "m2"}', 'delete') \gset
SELECT is(tq.purge('ap/m', older_than => '0'), 1::bigint, '2.18 purge');
SELECT is((SELECT count(*) FROM tq.upkeep()) > 0, true, '17.3 messages are published');
SELECT is((SELECT array_agg(payload #>> '{status,taskId}') FROM tq.fetch('ap')), ARRAY[pg_temp.id('m1')::text], '17.3 expire leaves the messages, 2.17 and 2.18 a deletion does not');
SELECT is((SELECT array_agg(d.task_id) FROM tq_internal.departed d JOIN tq_internal.queue q ON q.id = d.queue WHERE q.task_queue_id = 'ap/m'), ARRAY[pg_temp.id('m1')], '17.3 from a row that has departed');
SELECT tq.unsubscribe('ap') \g /dev/null

-- An error of the server ends the call; what was committed before stays.
SELECT pg_temp.add('ap/e', 'e1', 'e2', 'e3', 'e4', 'e5') \g /dev/null
CREATE FUNCTION public.fail_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF OLD.metadata ->> 'name' = 'e4' THEN RAISE 'out of order' USING ERRCODE = current_setting('test.code'); END IF;
	RETURN OLD;
END
$$;
CREATE TRIGGER fail BEFORE DELETE ON tq_internal.task FOR EACH ROW EXECUTE FUNCTION fail_delete();
SET test.code = 'TQ409';
CALL tq.apply('{"name": "e4"}', 'delete') \gset
SELECT is(:'tasks' || :'refused', '0{"out of order": 1}'::text, '17.3.3 an error of tq is a refusal');
\set ON_ERROR_STOP off
SET test.code = 'XX001';
CALL tq.apply('{"queue": "ap/e"}', 'delete');
SELECT is(:'LAST_ERROR_SQLSTATE' || ' ' || pg_temp.of('ap/e'), 'XX001 p e4, p e5'::text, '17.3.5 an error of the server ends the call');
SET test.code = '53200';
CALL tq.apply('{"queue": "ap/e"}', 'delete');
SELECT is(:'LAST_ERROR_SQLSTATE', '53200'::text, '17.3.5 so does a lack of memory');
SET test.code = '40001';
CALL tq.apply('{"queue": "ap/e"}', 'delete');
SELECT is(:'LAST_ERROR_SQLSTATE', '40001'::text, '17.3.5 and a serialization failure');
SET test.code = '57014';
CALL tq.apply('{"queue": "ap/e"}', 'delete');
SELECT is(:'LAST_ERROR_SQLSTATE', '57014'::text, '17.3.5 and a cancel');
\set ON_ERROR_STOP on
SET test.code = '40P01';
CALL tq.apply('{"queue": "ap/e"}', 'delete') \gset
SELECT is(:'tasks' || :'refused', '1{"another session has it, or a dependent, locked": 1}'::text, '17.3.4 a deadlock is a lock of another session');
DROP FUNCTION public.fail_delete CASCADE;

-- What the arguments may be.
CREATE FUNCTION pg_temp.apply_refusal(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	EXECUTE 'CALL tq.apply(' || call || ', dry_run => true)';
	RETURN 'none';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN SQLSTATE || ' ' || SQLERRM || ': ' || detail;
END
$$;
SELECT is(pg_temp.apply_refusal(a.call), a.expected, '17.3.1 ' || a.call)
FROM (VALUES
	($$'{}', 'canel'$$, 'TQ400 invalid action "canel": There is no action of that name, but "cancel".'),
	($$'{}', 'everything'$$, 'TQ400 invalid action "everything": There is no action of that name.'),
	($$'{}', NULL$$, 'TQ400 action must not be NULL: The argument action is NULL.'),
	($$'{}', 'cancel', '[]'$$, 'TQ400 invalid arguments of the action "cancel": They are [].'),
	($$'{}', 'cancel', '{"x": 1}'$$, 'TQ400 invalid arguments of the action "cancel": They must not have the key "x".'),
	($$'{}', 'rerun', '{"downstream": "yes"}'$$, 'TQ400 invalid arguments of the action "rerun": "downstream" is "yes".'),
	($$'{}', 'rerun', '{"deadline": "soon"}'$$, 'TQ400 invalid arguments of the action "rerun": "deadline" is "soon".'),
	($$'{}', 'delay'$$, 'TQ400 invalid arguments of the action "delay": "until" is not given.'),
	($$'{}', 'delay', '{"until": "soon"}'$$, 'TQ400 invalid arguments of the action "delay": "until" is "soon".'),
	($$'{}', 'delay', '{"until": "now"}'$$, 'TQ400 invalid arguments of the action "delay": "until" is "now".'),
	($$'{}', 'delay', '{"until": 2026}'$$, 'TQ400 invalid arguments of the action "delay": "until" is 2026.'),
	($$'{}', 'priority', '{"priority": 7}'$$, 'TQ400 invalid arguments of the action "priority": "priority" is 7.'),
	($$'{}', 'move'$$, 'TQ400 invalid arguments of the action "move": "queue" is not given.'),
	($$'{"x": 1}', 'cancel'$$, 'TQ400 invalid filter: It must not have the key "x".'),
	($$'{}', 'cancel', max => 0$$, 'TQ400 max is out of range: It is 0.'),
	($$'{}', 'expire'$$, 'none')) AS a (call, expected);
\set ON_ERROR_STOP off
BEGIN;
CALL tq.apply('{}', 'cancel');
ROLLBACK;
\set ON_ERROR_STOP on
SELECT is(pg_temp.of('ap/d'), 'p b1', '17.3.1 in a transaction block it does nothing');

-- A role of one queue.
CREATE ROLE applier;
SELECT tq.grant_queue('applier', 'ap/x', 'manage'), tq.grant_queue('applier', 'ap/y', 'read') \g /dev/null
SELECT pg_temp.add('ap/x', 'x1', 'x2'), pg_temp.add('ap/y', 'y1'), pg_temp.add('ap/z', 'z1') \g /dev/null
SET ROLE applier;
CALL tq.apply('{}', 'cancel', dry_run => true) \gset
SELECT is(:'found'::jsonb, '{"ap/x": {"pending": 2}, "ap/y": {"pending": 1}}', '17.3.7 a role finds what it may see');
CALL tq.apply('{}', 'priority', '{"priority": "high"}') \gset
SELECT is(:tasks, 2, '17.3.6 and changes what it may');
CALL tq.apply('{}', 'delete', max => 1) \gset
SELECT is(:tasks, 0, '17.3.6 and nothing else');
CALL tq.apply('{}', 'move', '{"queue": "ap/z"}') \gset
SELECT is(:'tasks' || :'refused', '0{"the caller has no right to it": 3}'::text, '17.3.6 moves need the right to both queues');
CALL tq.apply('{}', 'cancel') \gset
SELECT is(:'tasks' || :'refused', '2{"the caller has no right to it": 1}'::text, '17.3.6 a cancel');
RESET ROLE;
SELECT is(pg_temp.of('ap/x') || ' ' || pg_temp.of('ap/y') || ' ' || pg_temp.of('ap/z'), 'e x1, e x2 p y1 p z1', '17.3.6 the others are as they were');

SELECT * FROM finish();
SELECT tq.revoke_queue('applier', 'ap/x', 'manage'), tq.revoke_queue('applier', 'ap/y', 'read') \g /dev/null
DROP ROLE applier;
