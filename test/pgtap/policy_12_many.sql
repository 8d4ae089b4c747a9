-- doc/spec/policy.md 12: cancel_tasks, move_tasks.  They end transactions, so that this file has none around it.
-- Other sessions: test/isolation/specs/cancel-tasks-vs-claim.spec, move-tasks-vs-claim.spec, move-vs-create.spec.
\ir policy.psql
SET tq.expire_batch = 3;

CREATE FUNCTION pg_temp.of(queue text) RETURNS text
LANGUAGE sql AS $$
	SELECT coalesce(string_agg(left(state, 1) || ' ' || name, ', ' ORDER BY name), '')
	FROM (SELECT state, pg_temp.name(task_id) AS name FROM tq.task_overview WHERE task_queue_id = queue) AS t
$$;
CREATE FUNCTION pg_temp.gauges(queue text) RETURNS text
LANGUAGE sql AS $$ SELECT concat_ws(' ', pending, delayed, running) FROM tq.queue_stats WHERE task_queue_id = queue $$;

-- ---------------------------------------------------------------------------
-- cancel_tasks
-- ---------------------------------------------------------------------------

SELECT pg_temp.create(name, '{"taskQueueId": "test/c"}'::jsonb || more::jsonb)
FROM (VALUES ('run', '{"priority": "highest"}'), ('a1', '{"tags": {"x": "1", "y": "2"}}'), ('a2', '{"tags": {"x": "1"}}'), ('a3', '{}'), ('a4', '{"priority": "high"}'),
	('a5', '{"priority": "lowest"}'), ('u1', '{"$deps": ["u1"]}'), ('u2', '{"$deps": ["u2"], "tags": {"x": "1"}}'),
	('dep', '{"$deps": ["a3"], "requires": "all-resolved"}')) AS v (name, more) \g /dev/null
SELECT tq.enqueue('test/c', task_id => pg_temp.id(n), name => n, delay => '1 hour') FROM unnest('{d1,d2}'::text[]) AS n \g /dev/null
SELECT pg_temp.create('other', '{"taskQueueId": "test/other"}') \g /dev/null
SELECT pg_temp.claims('test/c', 1) \g /dev/null
CALL tq.cancel_tasks('test/c', tags => '{"x": "1"}') \gset
SELECT is(:tasks, 3, '12.3 those with the tag');
SELECT is(pg_temp.of('test/c'), 'e a1, e a2, p a3, p a4, p a5, p d1, p d2, u dep, r run, u u1, e u2', '12.3 and no others');
SELECT is(pg_temp.look('a1'), 'exception 5: scheduled>exception/canceled', '12.6 a pending task');
SELECT is(pg_temp.look('u2'), 'exception 5: exception>exception/canceled', '12.6 an unscheduled task');
CALL tq.cancel_tasks('test/c', 'd1') \gset
SELECT is(:tasks, 1, '12.3 the one of that name');
SELECT is(pg_temp.look('d1'), 'exception 5: scheduled>exception/canceled', '12.6 a delayed task');
CALL tq.cancel_tasks('test/c', 'a3', '{"x": "1"}') \gset
SELECT is(:tasks, 0, '12.3 name and tags');
CALL tq.cancel_tasks('test/c', states => '{unscheduled}', max => 1) \gset
SELECT is(:tasks, 1, '12.4 at most one');
SELECT is(pg_temp.of('test/c'), 'e a1, e a2, p a3, p a4, p a5, e d1, p d2, u dep, r run, e u1, e u2', '12.4 the first one that is unscheduled');
CALL tq.cancel_tasks('test/c', states => '{pending}', max => 2) \gset
SELECT is(:tasks, 2, '12.4 at most two');
SELECT is(pg_temp.of('test/c'), 'e a1, e a2, p a3, e a4, p a5, e d1, e d2, u dep, r run, e u1, e u2', '12.4 delayed, then by priority');
CALL tq.cancel_tasks('test/c', states => '{running}') \gset
SELECT is(:tasks || ' ' || pg_temp.look('run'), '1 exception 5: scheduled>exception/canceled', '12.3 running');
SELECT is(tq.resolve(ARRAY[pg_temp.id('run')], '{0}')::text, format('(%s,0,conflict)', pg_temp.id('run')), '12.6 its worker');
CALL tq.cancel_tasks('test/c') \gset
SELECT is(:tasks, 3, '12.6 a dependent that becomes pending by it is canceled, too');
SELECT is(pg_temp.gauges('test/c'), '0 0 0', '12 the gauges');
CALL tq.cancel_tasks('test/c') \gset
SELECT is(:tasks, 0, '12 a repeat');
SELECT is(pg_temp.state('other'), 'pending', '12.3 another queue');
CALL tq.cancel_tasks('test/none') \gset
SELECT is(:tasks, 0, '12.3 a queue that does not exist');
SELECT is((SELECT count(*) FROM tq.task_overview WHERE task_queue_id = 'test/none'), 0::bigint, 'is not made');
SELECT is(array(SELECT arguments::text FROM tq.audit WHERE function = 'cancel_tasks' ORDER BY id LIMIT 2),
	'{"{\"states\": [\"unscheduled\", \"pending\"], \"task_queue_id\": \"test/c\"}","{\"states\": [\"unscheduled\", \"pending\"], \"task_queue_id\": \"test/c\"}"}',
	'8.6 a row for each call, without names and tags');
SELECT is((SELECT arguments -> 'max' FROM tq.audit WHERE function = 'cancel_tasks' AND arguments ? 'max' ORDER BY id LIMIT 1), '1', '8.6 max');

-- past the deadline
SELECT pg_temp.create('late', '{"taskQueueId": "test/late", "$deadline": "1 minute"}') \g /dev/null
SET tq.maintenance = off;
SET tq.clock_offset = '2 minutes';
CALL tq.cancel_tasks('test/late') \gset
SELECT is(:tasks, 0, '12.3 past its deadline');
RESET tq.clock_offset;
-- created later
SET tq.clock_offset = '-1 hour';
CALL tq.cancel_tasks('test/other') \gset
SELECT is(:tasks, 0, '12.3 created after the call began');
RESET tq.clock_offset;

-- many, in batches
SELECT tq.enqueue_tasks('test/many', array_fill('{}'::jsonb, '{100}')) IS NOT NULL AS done \g /dev/null
SELECT tq.enqueue_tasks('test/many', array_fill('{}'::jsonb, '{20}'), name => 'n') IS NOT NULL AS done \g /dev/null
CALL tq.cancel_tasks('test/many', 'n', max => 7) \gset
SELECT is(:tasks, 7, '12.2 more than a batch, and a limit');
CALL tq.cancel_tasks('test/many', 'test/many') \gset
SELECT is(:tasks, 100, '12.9 a task without a name has that of its queue');
CALL tq.cancel_tasks('test/many') \gset
SELECT is(:tasks, 13, '12.2 the others');

DO $$ DECLARE n bigint; BEGIN CALL tq.cancel_tasks('test/other', tasks => n); PERFORM set_config('test.n', n::text, false); END $$;
SELECT is(current_setting('test.n'), '1', '12 in a DO block');

SELECT matches(pg_temp.refusal(call), wanted, '12.3 ' || call)
FROM (VALUES ($$CALL tq.cancel_tasks(NULL)$$, 'task_queue_id must not be NULL'), ($$CALL tq.cancel_tasks('x/y/z')$$, 'invalid task_queue_id'), ($$CALL tq.cancel_tasks('a/b', tags => '[]')$$, 'tags must be an object'),
	($$CALL tq.cancel_tasks('a/b', states => '{completed}')$$, 'invalid states'), ($$CALL tq.cancel_tasks('a/b', states => '{delayed}')$$, 'invalid states'),
	($$CALL tq.cancel_tasks('a/b', states => '{NULL}')$$, 'must not contain NULL'), ($$CALL tq.cancel_tasks('a/b', states => NULL)$$, 'states must not be NULL'),
	($$CALL tq.cancel_tasks('a/b', max => 0)$$, 'max is out of range'), ($$CALL tq.cancel_tasks('a/b')$$, 'cannot run inside a transaction block'),
	($$CALL tq.move_tasks('a/b', 'a/b')$$, 'are the same'), ($$CALL tq.move_tasks('a/b', 'a/b/c')$$, 'invalid to_task_queue_id "a/b/c"'), ($$CALL tq.move_tasks('a/b', NULL)$$, 'to_task_queue_id must not be NULL'),
	($$CALL tq.move_tasks('a/b', 'a/c', -1)$$, 'max is out of range'), ($$CALL tq.move_tasks('a/b', 'a/c')$$, 'tq.move_tasks\(\) cannot run inside a transaction block')) AS v (call, wanted);

-- ---------------------------------------------------------------------------
-- move_tasks
-- ---------------------------------------------------------------------------

SELECT tq.set_queue('test/m', '{"policy": {"retries": 2}}') \g /dev/null
SELECT pg_temp.create(name, '{"taskQueueId": "test/m"}'::jsonb || more::jsonb)
FROM (VALUES ('m0', '{"priority": "highest", "retries": 1}'), ('m1', '{}'), ('m2', '{"priority": "high"}'), ('m3', '{"retries": 4}'), ('md', '{"$deps": ["m0"]}'), ('mu', '{"$deps": ["mu"]}')) AS v (name, more) \g /dev/null
SELECT tq.enqueue('test/m', task_id => pg_temp.id('ml'), name => 'ml', delay => '1 hour') \g /dev/null
SELECT pg_temp.create('n1', '{"taskQueueId": "test/n"}') \g /dev/null
SELECT is(pg_temp.claims('test/m', 1), 'm0', 'one is running');
CREATE TEMP TABLE before AS SELECT n, tq.task(pg_temp.id(n)) AS task, tq.status(pg_temp.id(n)) AS status FROM unnest('{m1,m2,m3,md,mu,ml}'::text[]) AS n;
CALL tq.move_tasks('test/m', 'test/n') \gset
SELECT is(:tasks, 6, '12.7 all but the one that is running');
SELECT is(pg_temp.of('test/m') || '; ' || pg_temp.of('test/n'), 'r m0; p m1, p m2, p m3, u md, p ml, u mu, p n1', '12.7 where they are');
SELECT is(pg_temp.gauges('test/m') || ', ' || pg_temp.gauges('test/n'), '0 0 1, 4 1 0', '12.7 the gauges');
SELECT is(tq.task(pg_temp.id(n)), task || '{"taskQueueId": "test/n", "workerType": "n"}', '12.9 the definition: ' || n) FROM before;
SELECT is(tq.status(pg_temp.id(n)), status || '{"taskQueueId": "test/n", "provisionerId": "test", "workerType": "n"}', '12.7 the status: ' || n) FROM before;
SELECT is(pg_temp.claims('test/m'), '', '12.8 nothing in the old queue');
SELECT is(pg_temp.claims('test/n'), 'm2 m1 m3 n1', '12.7 by priority, then in their old order');
SELECT is(pg_temp.report('m0', 'worker-shutdown'), 'pending 0: scheduled>exception/worker-shutdown retry>pending', '12.7 a running task is retried');
SELECT is(pg_temp.claims('test/m'), 'm0', '12.7 in its queue');
SELECT pg_temp.report('m0', 'completed') \g /dev/null
SELECT is(pg_temp.claims('test/n'), 'md', '12.7 a dependent is released in its new queue');
SELECT is(pg_temp.report('m1', 'worker-shutdown'), 'pending 1: scheduled>exception/worker-shutdown retry>pending', '12.7 what the old queue gave a task stays');
SELECT is(pg_temp.claims('test/n'), 'm1', '12.7 a moved task is retried in its new queue');
SELECT is((SELECT tq.schedule_task(pg_temp.id('mu')) ->> 'taskQueueId'), 'test/n', '12.7 scheduled there');
SELECT is(pg_temp.claims('test/n'), 'mu', '12.7 claimed there');
SELECT is((SELECT outcome FROM tq.resolve(ARRAY[pg_temp.id('m2')], '{0}', 'failed')), 'resolved', '12.7 a failure');
SELECT is((SELECT task_queue_id FROM tq.failure_overview WHERE task_id = pg_temp.id('m2')), 'test/n', '12.7 of the new queue');
CALL tq.move_tasks('test/n', 'test/m') \gset
SELECT is(:tasks, 1, '12.7 the delayed one');
SELECT is(pg_temp.gauges('test/m') || ', ' || pg_temp.gauges('test/n'), '0 1 0, 0 0 5', '12.7 the gauges');
CALL tq.cancel_tasks('test/m') \gset
SELECT is(:tasks, 1, '12 canceled where it is');

-- a task with scopes that the caller has not: a worker of the other queue would get them
CREATE ROLE test_mover;
SELECT tq.grant_queue('test_mover', 'test/*', 'manage'), tq.grant_scopes('test_mover', '{app:read:*}') \g /dev/null
SELECT pg_temp.create(n, jsonb_build_object('taskQueueId', 'test/s', 'scopes', scopes)) FROM (VALUES ('s0', '[]'::jsonb), ('s1', '["app:read:x"]'), ('s2', '["app:write:x"]')) AS v (n, scopes) \g /dev/null
SET ROLE test_mover;
CALL tq.move_tasks('test/s', 'test/t') \gset
RESET ROLE;
SELECT is(:tasks, 2, '12.7 tasks whose scopes the caller has');
SELECT is(pg_temp.of('test/s') || '; ' || pg_temp.of('test/t'), 'p s2; p s0, p s1', '12.7 the other one stays');
CALL tq.move_tasks('test/s', 'test/t') \gset
SELECT is(:tasks, 1, '12.7 an admin has all');
CALL tq.cancel_tasks('test/t') \gset
SELECT tq.revoke_queue('test_mover', 'test/*', 'manage'), tq.revoke_scopes('test_mover', '{app:read:*}') \g /dev/null
DROP ROLE test_mover;

-- a claim, its deferral, a move, a claim by another worker, and the report of the
-- first session, which has cached the queue; a completed task is not read again
SELECT tq.unbind('tq_task_completed', 'task-completed') \g /dev/null
SELECT pg_temp.create(n, '{"taskQueueId": "test/f"}') FROM unnest('{f,g}'::text[]) AS n \g /dev/null
SELECT is(pg_temp.claims('test/f', 2), 'f g', 'two claims');
SELECT tq.defer_task(pg_temp.id(n), 0, '0') FROM unnest('{f,g}'::text[]) AS n \g /dev/null
CALL tq.move_tasks('test/f', 'test/g') \gset
SELECT is((SELECT count(*) FROM unnest('{f,g}'::text[]) AS n, tq.claim_task(pg_temp.id(n), 0, 'wg', 'w2')), 2::bigint, '12.8 claimed in their new queue');
SELECT is(pg_temp.gauges('test/f') || ', ' || pg_temp.gauges('test/g'), '0 0 0, 0 0 2', '12.8 the gauges');
SELECT is((SELECT outcome FROM tq.resolve(ARRAY[pg_temp.id('g')], '{0}')), 'resolved', '12.8 a report by the session that had it before');
SELECT is(pg_temp.gauges('test/f') || ', ' || pg_temp.gauges('test/g'), '0 0 0, 0 0 1', '12.8 is counted in the new queue');
SELECT is((SELECT outcome FROM tq.resolve(ARRAY[pg_temp.id('f')], '{0}', 'intermittent-task')), 'retried', '12.8 and a retry');
SELECT is(pg_temp.gauges('test/f') || ', ' || pg_temp.gauges('test/g'), '0 0 0, 1 0 0', '12.8 too');
SELECT tq.bind('tq_task_completed', 'task-completed') \g /dev/null

-- limits and pause of the other queue
SELECT tq.set_queue('test/l', '{"maxPending": 1, "paused": true}') \g /dev/null
CALL tq.move_tasks('test/g', 'test/l') \gset
SELECT tq.enqueue_tasks('test/g', array_fill('{}'::jsonb, '{10}')) IS NOT NULL AS done \g /dev/null
CALL tq.move_tasks('test/g', 'test/l', 4) \gset
SELECT is(:tasks, 4, '12.7 the limits of creation do not refuse a move');
SELECT is(pg_temp.claims('test/l'), '', '12.7 a paused queue hands out nothing');
SELECT is(pg_temp.gauges('test/g') || ', ' || pg_temp.gauges('test/l'), '6 0 0, 5 0 0', '12.4 at most so many');

-- keys belong to a queue
SELECT tq.enqueue('test/key', name => 'k' || n, policy => v.policy::jsonb) FROM (VALUES (1, '{"serialKey": "a"}'), (2, '{"concurrencyKey": "a"}'), (3, NULL)) AS v (n, policy) \g /dev/null
CALL tq.move_tasks('test/key', 'test/key2') \gset
SELECT is(:tasks || ' ' || pg_temp.of('test/key'), '1 p k1, p k2', '12.7 tasks with keys stay');
-- the maintenance worker has k1 locked while it admits it, and the call would leave it
DO $$
BEGIN
	WHILE EXISTS (SELECT FROM tq_internal.delayed AS d JOIN tq_internal.task AS t ON t.id = d.task WHERE t.task_id = pg_temp.id('k1')) LOOP
		PERFORM tq.upkeep();
		COMMIT;
	END LOOP;
END
$$;
CALL tq.cancel_tasks('test/key') \gset
SELECT is(:tasks, 2, '12.6 and can be canceled');

-- definitions and messages
SELECT pg_temp.create('rep', '{"taskQueueId": "test/r"}') \g /dev/null
DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM tq.messages(max => 1000) WHERE exchange = 'task-pending' AND routing_key ~ '\.test\.r\.') LOOP PERFORM tq.upkeep(); COMMIT; END LOOP; END $$;
CALL tq.move_tasks('test/r', 'test/s') \gset
SELECT pg_temp.throws(format('SELECT tq.create_task(%L, %L)', pg_temp.id('rep'), tq.task(pg_temp.id('rep')) || '{"taskQueueId": "test/r", "workerType": "r"}'), 'TQ409', '12.9 the definition with the old queue');
SELECT is(pg_temp.line(tq.create_task(pg_temp.id('rep'), tq.task(pg_temp.id('rep')))), 'pending 5: scheduled>pending', '12.9 with the new one: a repeat');
DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM tq.messages(max => 1000) WHERE exchange = 'task-pending' AND routing_key ~ '\.test\.s\.') LOOP PERFORM tq.upkeep(); COMMIT; END LOOP; END $$;
SELECT pass('12.8 task-pending with the new queue');

-- scopes
CREATE ROLE mover;
SELECT tq.grant_queue('mover', 'test/r', 'manage'), tq.grant_queue('mover', 'test/s', 'manage'), tq.grant_queue('mover', 'test/t', 'produce') \g /dev/null
SET ROLE mover;
CALL tq.move_tasks('test/s', 'test/r') \gset
SELECT is(:tasks, 1, '7.2 manage of both queues');
CALL tq.cancel_tasks('test/r') \gset
SELECT is(:tasks, 1, '7.2 manage of the queue');
\set ON_ERROR_STOP off
CALL tq.move_tasks('test/r', 'test/t');
SELECT is(:'SQLSTATE'::text, 'TQ403', '7.2 not of the other queue');
CALL tq.move_tasks('test/t', 'test/r');
SELECT is(:'SQLSTATE'::text, 'TQ403', '7.2 not of the first');
CALL tq.cancel_tasks('test/t');
SELECT is(:'SQLSTATE'::text, 'TQ403', '7.2 not of the queue');
\set ON_ERROR_STOP on
RESET ROLE;
SELECT tq.revoke_queue('mover', q, a) FROM (VALUES ('test/r', 'manage'), ('test/s', 'manage'), ('test/t', 'produce')) AS v (q, a) \g /dev/null
DROP ROLE mover;

SELECT * FROM finish();
