-- doc/spec/taskcluster.md 4.5: task groups; task-group-resolved is in
-- 6.3_groups.sql.
BEGIN;
\ir helper.psql

-- implicit creation, any id
SELECT pg_temp.create('a', '{"$group": "nobodys-task", "schedulerId": "s"}');
SELECT is(tq.get_task_group(pg_temp.id('nobodys-task')) ->> 'schedulerId', 's', '4.5 the first task creates a group; its id need not be a task''s');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('nobodys-task'))$$, 'TQ404', '4.5 there is no such task');
SELECT is(tq.status(pg_temp.id('a')) ->> 'taskGroupId', pg_temp.id('nobodys-task')::text, '4.5 the status names the group');

-- the scheduler is fixed
SELECT pg_temp.throws($$SELECT pg_temp.create('b', '{"$group": "nobodys-task", "schedulerId": "t"}')$$, 'TQ409', '4.5 another schedulerId');
SELECT pg_temp.report('a', 'canceled');
SELECT pg_temp.throws($$SELECT pg_temp.create('b', '{"$group": "nobodys-task", "schedulerId": "t"}')$$, 'TQ409', '4.5 also when all its tasks are resolved');
SELECT lives_ok($$SELECT pg_temp.create('b', '{"$group": "nobodys-task", "schedulerId": "s"}')$$, '4.5 a resolved group takes new tasks');

-- a large group, listed in pages
SELECT is(tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('g' || n)::text, 'task', pg_temp.def('g', '{"$group": "large", "taskQueueId": "test/large"}')))
	FROM generate_series(1, 2500) AS n)), 2500::bigint, '4.5 2500 tasks in a group');
SELECT is((WITH RECURSIVE page AS (
		SELECT 0 AS n, NULL::tq.slugid AS last, 0 AS rows
		UNION ALL
		SELECT n + 1, (l.ids)[cardinality(l.ids)], cardinality(l.ids)
		FROM page, LATERAL (SELECT array_agg(task_id) AS ids FROM tq.list_task_group(pg_temp.id('large'), page.last)) AS l
		WHERE l.ids IS NOT NULL)
	SELECT string_agg(rows::text, ',' ORDER BY n) FROM page WHERE n > 0), '1000,1000,500', '4.5 pages of 1000 by default, each task once');
SELECT is((SELECT tasks || ' ' || pending FROM tq.group_progress(pg_temp.id('large'))), '2500 2500', '8.1 the group''s size');

-- unscheduled tasks keep it active until deadline or cancel: group_progress
SELECT pg_temp.create('d1', '{"$group": "act", "$deadline": "5 minutes", "$deps": ["d1"]}');
SELECT pg_temp.resolved('d2', 'completed', '{"$group": "act"}');
SELECT is((SELECT outcome FROM tq.group_progress(pg_temp.id('act'))), NULL, '4.5 (d) an unscheduled task keeps the group active');
SELECT pg_temp.pass('6 minutes');
SELECT is((SELECT outcome FROM tq.group_progress(pg_temp.id('act'))), 'timed-out', '4.5 (d) until its deadline');
RESET tq.clock_offset;
SELECT lives_ok($$SELECT pg_temp.create('d3', '{"$group": "act"}')$$, '4.5 (c) a new task');
SELECT is((SELECT outcome FROM tq.group_progress(pg_temp.id('act'))), NULL, '4.5 (c) makes it active again');

-- sealed: one-way
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('act'))$$, '4.5 sealed');
SELECT pg_temp.throws($$SELECT pg_temp.create('d4', '{"$group": "act"}')$$, 'TQ409', '4.5 no new tasks');
SELECT pg_temp.throws($$SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('d4')::text, 'task', pg_temp.def('d4', '{"$group": "act"}'))))$$, 'TQ409', '4.5 nor by create_tasks');

-- expiry: at its expires, which is an hour after the last task's
SELECT pg_temp.create('e1', '{"$group": "exp", "schedulerId": "s1", "$deadline": "10 minutes", "$expires": "40 minutes"}');
SELECT lives_ok($$SELECT tq.seal_task_group(pg_temp.id('exp'))$$, '4.5 a sealed group that expires');
SELECT pg_temp.pass('41 minutes');
SELECT pg_temp.throws($$SELECT tq.status(pg_temp.id('e1'))$$, 'TQ404', '8.4 its task is deleted');
SELECT is(tq.get_task_group(pg_temp.id('exp')) ? 'sealed', true, '4.5 the group still exists');
SELECT pg_temp.throws($$SELECT pg_temp.create('e2', '{"$group": "exp", "schedulerId": "s1"}')$$, 'TQ409', '4.5 and sealed');
SELECT is((SELECT count(*) FROM tq.list_task_group(pg_temp.id('exp'))), 0::bigint, '4.5 with no tasks');
SELECT pg_temp.pass('99 minutes');
SELECT lives_ok($$SELECT tq.get_task_group(pg_temp.id('exp'))$$, '4.5 it stays until its own expires');
SELECT is(pg_temp.pass('100 minutes'), 'expired 1', '4.5 and goes then');
SELECT pg_temp.throws($$SELECT tq.get_task_group(pg_temp.id('exp'))$$, 'TQ404', '4.5 then it is deleted');
SELECT is(pg_temp.create('e2', '{"$group": "exp", "schedulerId": "s2"}'), 'pending 5: scheduled>pending', '4.5 and its id can be used with another scheduler');
SELECT is(tq.get_task_group(pg_temp.id('exp')), jsonb_build_object('taskGroupId', pg_temp.id('exp')::text, 'schedulerId', 's2',
	'expires', pg_temp.iso(pg_temp.next_year(pg_temp.base() + interval '2 hours'))), '4.5 not sealed');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
