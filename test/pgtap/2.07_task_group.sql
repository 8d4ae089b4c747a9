-- doc/spec/taskcluster.md 2.7: sealTaskGroup and getTaskGroup; group_progress.
BEGIN;
\ir helper.psql

SELECT pg_temp.throws($$SELECT tq.get_task_group(pg_temp.id('missing'))$$, 'TQ404', '2.7 get: no such group');
SELECT pg_temp.throws($$SELECT tq.seal_task_group(pg_temp.id('missing'))$$, 'TQ404', '2.7 seal: no such group');
SELECT pg_temp.create('a', '{"$group": "g", "schedulerId": "s"}');
SELECT is(pg_temp.keys(tq.get_task_group(pg_temp.id('g'))), 'expires schedulerId taskGroupId', '2.7 get: no key sealed while it is not');
CREATE TEMP TABLE sealed AS SELECT tq.seal_task_group(pg_temp.id('g')) AS r;
SELECT is(r - 'sealed', jsonb_build_object('taskGroupId', pg_temp.id('g')::text, 'schedulerId', 's',
	'expires', pg_temp.iso(pg_temp.next_year(pg_temp.base() + interval '2 hours'))), '2.7 seal: what it returns') FROM sealed;
SELECT ok(pg_temp.near(r ->> 'sealed', pg_temp.clock()), '2.7 seal: sealed is now') FROM sealed;
SELECT is(tq.get_task_group(pg_temp.id('g')), r, '2.7 get: the same') FROM sealed;
SET tq.clock_offset = '10 minutes';
SELECT is(tq.seal_task_group(pg_temp.id('g')), r, '2.7 seal: a repeat never changes it') FROM sealed;
RESET tq.clock_offset;
SELECT pg_temp.throws($$SELECT pg_temp.create('b', '{"$group": "g", "schedulerId": "s"}')$$, 'TQ409', '2.7 a sealed group refuses create_task');
SELECT pg_temp.throws($$SELECT tq.define_task(pg_temp.id('b'), pg_temp.def('b', '{"$group": "g", "schedulerId": "s"}'))$$, 'TQ409', '2.7 and define_task');
SELECT pg_temp.throws($$SELECT tq.enqueue('test/q', task_group_id => pg_temp.id('g'), scheduler_id => 's')$$, 'TQ409', '2.7 and enqueue');
SELECT is(pg_temp.take('a'), 0, '2.7 its tasks can be claimed');
SELECT is(pg_temp.report('a', 'completed'), 'completed 5: scheduled>completed/completed', '2.7 report');
SELECT is(pg_temp.line(tq.rerun_task(pg_temp.id('a'))), 'pending 5: scheduled>completed/completed rerun>pending', '2.7 rerun');
SELECT pg_temp.create('o', '{"$group": "h"}');
SELECT is(tq.get_task_group(pg_temp.id('h')) ? 'sealed', false, '2.7 another group is not sealed');
SELECT pg_temp.create('lone');
SELECT is(pg_temp.keys(tq.seal_task_group(pg_temp.id('lone'))), 'expires schedulerId sealed taskGroupId', '2.7 seal: the group of a task alone');
SELECT is(pg_temp.keys(tq.get_task_group(pg_temp.id('lone'))), 'expires schedulerId sealed taskGroupId', '2.7 get: it is sealed');
SELECT is(tq.get_task_group(pg_temp.id('lone')) ->> 'schedulerId', '-', '2.7 the schedulerId is - by default');

-- group_tasks: short rows
SELECT pg_temp.create('t1', '{"$group": "t"}'), pg_temp.create('t2', '{"$group": "t", "$deps": ["t1"]}'), pg_temp.create('t3', '{"$group": "t", "policy": {"delay": 600}}'),
	tq.enqueue('test/q-t4', task_group_id => pg_temp.id('t'), name => repeat('long name ', 9)), pg_temp.create('t5', '{"$group": "t"}') \g /dev/null
SELECT pg_temp.take('t1'), pg_temp.report('t1', 'malformed-payload'), pg_temp.take('t5'), tq.report_progress(pg_temp.id('t5'), 0, 1, 4, repeat('m', 200)) \g /dev/null
SELECT is((SELECT string_agg(concat_ws('|', name, state, runs, detail), ', ') FROM tq.group_tasks(pg_temp.id('t'))),
	't1|exception|1|malformed-payload, t2|unscheduled|0, t3|pending|1|delayed, long name long name long ...|pending|1, t5|running|1|25 %, ' || repeat('m', 21) || '...', '2.7 group_tasks');
SELECT pg_temp.throws($$SELECT * FROM tq.group_tasks(pg_temp.id('missing'))$$, 'TQ404', '2.7 group_tasks: no such group');

-- name_task_group, with the right to seal
CREATE FUNCTION pg_temp.named(name text) RETURNS text LANGUAGE sql AS $$ SELECT concat_ws(' ', coalesce(max(o.name), '-'), count(*)) FROM tq.group_overview o WHERE task_group_id = pg_temp.id(named.name) $$;
SELECT pg_temp.create('n1', '{"$group": "n1"}'), pg_temp.create('n2', '{"$group": "nn"}') \g /dev/null
SELECT is(pg_temp.named('n1') || ', ' || pg_temp.named('nn'), '- 0, - 1', '2.7 name: none yet');
SELECT tq.name_task_group(pg_temp.id('n1'), 'first'), tq.name_task_group(pg_temp.id('nn'), 'second') \g /dev/null
SELECT is(pg_temp.named('n1') || ', ' || pg_temp.named('nn'), 'first 1, second 1', '2.7 name: of the group of a task alone, and of another');
SELECT pg_temp.create('n3', '{"$group": "n1"}') \g /dev/null
SELECT is(pg_temp.named('n1') || ' ' || (tq.get_task_group(pg_temp.id('n1')) ? 'sealed'), 'first 1 false', '2.7 name: tasks still join it');
SELECT tq.name_task_group(pg_temp.id('n1'), NULL), tq.name_task_group(pg_temp.id('nn'), NULL), tq.seal_task_group(pg_temp.id('nn')) \g /dev/null
SELECT is(pg_temp.named('n1') || ', ' || pg_temp.named('nn'), 'n1 1, - 1', '2.7 name: without one, that of the task it is named after');
SELECT lives_ok($$SELECT tq.name_task_group(pg_temp.id('nn'), 'sealed')$$, '2.7 name: of a sealed group');
SELECT pg_temp.throws(format('SELECT tq.name_task_group(pg_temp.id(%L), %L)', g, n), code, format('2.7 name: %s of %s', code, g)) FROM (VALUES ('missing', 'x', 'TQ404'), ('nn', '', 'TQ400'), ('nn', repeat('x', 256), 'TQ400')) AS v (g, n, code);
SELECT is((SELECT string_agg(concat_ws(' ', task_id = pg_temp.id('n2'), coalesce(group_name, '-')), ', ' ORDER BY task_id = pg_temp.id('n2')) FROM tq.task_details WHERE task_group_id IN (pg_temp.id('n1'), pg_temp.id('nn'))),
	'f -, f -, t sealed', '2.7 name: task_details, and NULL without one');
DO $$
DECLARE
	line text;
BEGIN
	FOR line IN EXPLAIN SELECT task_id, state, payload FROM tq.task_details LOOP
		IF line LIKE '%task_group%' THEN RAISE 'a plan without the name reads groups: %', line; END IF;
	END LOOP;
END
$$;
CREATE ROLE namer;
SELECT tq.grant_scopes('namer', '{queue:list-task-group:*}') \g /dev/null
SET ROLE namer;
SELECT throws_ok(format('SELECT tq.name_task_group(%L, %L)', (SELECT task_group_id FROM tq.group_overview WHERE name = 'sealed'), 'x'), 'TQ403', NULL, '2.7 name: with the right to list it alone');
RESET ROLE;
SELECT tq.grant_scopes('namer', '{queue:status-in-queue:*}') \g /dev/null
SET ROLE namer;
SELECT is((SELECT concat_ws(' ', state, coalesce(group_name, '-')) FROM tq.task_details WHERE task_id = pg_temp.id('n2')), 'pending -', '2.7 name: task_details, without the right to see the definition');
RESET ROLE;
SELECT tq.grant_scopes('namer', '{queue:get-task-in-queue:*}') \g /dev/null
SET ROLE namer;
SELECT is((SELECT group_name FROM tq.task_details WHERE task_id = pg_temp.id('n2')), 'sealed', '2.7 name: task_details, with it');
RESET ROLE;

-- group_progress
CREATE FUNCTION pg_temp.progress(g text) RETURNS text
LANGUAGE sql AS $$
	SELECT concat_ws(' ', tasks, 'u' || unscheduled, 'd' || delayed, 'p' || pending, 'r' || running, 'c' || completed, 'f' || failed,
		'e' || exception, 't' || tolerated, coalesce(outcome, '-'))
	FROM tq.group_progress(pg_temp.id(g))
$$;
SELECT pg_temp.throws($$SELECT tq.group_progress(pg_temp.id('missing'))$$, 'TQ404', 'group_progress: no such group');
SELECT pg_temp.create('p1', '{"$group": "k"}');
SELECT is(pg_temp.progress('k'), '1 u0 d0 p1 r0 c0 f0 e0 t0 -', 'group_progress: one is pending');
SELECT pg_temp.create('p2', '{"$group": "k", "$deps": ["p1"]}');
SELECT is(pg_temp.progress('k'), '2 u1 d0 p1 r0 c0 f0 e0 t0 -', 'group_progress: one is unscheduled');
SELECT pg_temp.take('p1');
SELECT is(pg_temp.progress('k'), '2 u1 d0 p0 r1 c0 f0 e0 t0 -', 'group_progress: one is running');
SELECT pg_temp.report('p1', 'worker-shutdown');
SELECT is(pg_temp.progress('k'), '2 u1 d0 p1 r0 c0 f0 e0 t0 -', 'group_progress: retried, it is pending again');
SELECT pg_temp.work('p1', 'completed');
SELECT is(pg_temp.progress('k'), '2 u0 d0 p1 r0 c1 f0 e0 t0 -', 'group_progress: one is completed');
SELECT is((SELECT last_resolved FROM tq.group_progress(pg_temp.id('k'))), (pg_temp.run('p1') ->> 'resolved')::timestamptz, 'group_progress: last_resolved');
SELECT is((SELECT first_created FROM tq.group_progress(pg_temp.id('k'))), pg_temp.base(), 'group_progress: first_created');
SELECT pg_temp.work('p2', 'completed');
SELECT is(pg_temp.progress('k'), '2 u0 d0 p0 r0 c2 f0 e0 t0 completed', 'group_progress: the outcome is completed');
SELECT tq.rerun_task(pg_temp.id('p2')) ->> 'state';
SELECT is(pg_temp.progress('k'), '2 u0 d0 p1 r0 c1 f0 e0 t0 -', 'group_progress: no outcome while one is active');
SELECT pg_temp.work('p2', 'failed');
SELECT is(pg_temp.progress('k'), '2 u0 d0 p0 r0 c1 f1 e0 t0 failed', 'group_progress: the outcome is failed');
SELECT is(pg_temp.progress('lone'), '1 u0 d0 p1 r0 c0 f0 e0 t0 -', 'group_progress: of a task alone');
SELECT pg_temp.report('lone', 'canceled');
SELECT is(pg_temp.progress('lone'), '1 u0 d0 p0 r0 c0 f0 e1 t0 canceled', 'group_progress: the outcome is canceled');
SELECT pg_temp.resolved('exc', 'internal-error');
SELECT is(pg_temp.progress('exc'), '1 u0 d0 p0 r0 c0 f0 e1 t0 failed', 'group_progress: an exception is failed');
SELECT pg_temp.create('dead', '{"$deadline": "1 minute"}');
SELECT pg_temp.pass('2 minutes');
SELECT is(pg_temp.progress('dead'), '1 u0 d0 p0 r0 c0 f0 e1 t0 timed-out', 'group_progress: the outcome is timed-out');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
