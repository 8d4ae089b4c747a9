-- doc/spec/taskcluster.md 2.13: status and definition reads; 10.12.
BEGIN;
\ir helper.psql

SELECT pg_temp.create(n, format('{"$group": "g", "retries": %s}', length(n))::jsonb) FROM unnest('{a,bb,ccc,dddd,eeeee}'::text[]) AS n;
SELECT pg_temp.take('bb');

-- statuses, tasks
SELECT is((SELECT string_agg(pg_temp.name(task_id), ' ' ORDER BY pg_temp.name(task_id)) FROM tq.statuses(pg_temp.ids('a', 'nobody', 'ccc'))), 'a ccc', '2.13 statuses: unknown ids are left out');
SELECT is(status, tq.status(task_id), '2.13 statuses: the status of ' || pg_temp.name(task_id)) FROM tq.statuses(pg_temp.ids('a', 'bb'));
SELECT is(task, tq.task(task_id), '2.13 tasks: the definition of ' || pg_temp.name(task_id)) FROM tq.tasks(pg_temp.ids('a', 'bb'));
SELECT is((SELECT count(*) FROM tq.tasks(pg_temp.ids('nobody', 'bb', 'none'))), 1::bigint, '2.13 tasks: unknown ids are left out');
SELECT is((SELECT count(*) FROM tq.statuses('{}')) + (SELECT count(*) FROM tq.tasks('{}')), 0::bigint, '2.13 of no ids: no rows');

-- listTaskGroup
SELECT is((SELECT array_agg(task_id::text) FROM tq.list_task_group(pg_temp.id('g'))),
	(SELECT array_agg(i::text ORDER BY i) FROM unnest(pg_temp.ids('a', 'bb', 'ccc', 'dddd', 'eeeee')) AS i), '2.13 listTaskGroup: every task, ordered by task id');
SELECT is(jsonb_build_array(status, task), jsonb_build_array(tq.status(task_id), tq.task(task_id)), '2.13 listTaskGroup: status and definition of ' || pg_temp.name(task_id))
FROM tq.list_task_group(pg_temp.id('g'));
SELECT is((SELECT array_agg(task_id::text) FROM tq.list_task_group(pg_temp.id('g'), NULL, 2)),
	(SELECT (array_agg(i::text ORDER BY i))[1:2] FROM unnest(pg_temp.ids('a', 'bb', 'ccc', 'dddd', 'eeeee')) AS i), '2.13 listTaskGroup: max');
SELECT is((SELECT array_agg(task_id::text) FROM tq.list_task_group(pg_temp.id('g'), after =>
		(SELECT (array_agg(i ORDER BY i))[2] FROM unnest(pg_temp.ids('a', 'bb', 'ccc', 'dddd', 'eeeee')) AS i), max => 2)),
	(SELECT (array_agg(i::text ORDER BY i))[3:4] FROM unnest(pg_temp.ids('a', 'bb', 'ccc', 'dddd', 'eeeee')) AS i), '2.13 listTaskGroup: the next page');
SELECT is((SELECT count(*) FROM tq.list_task_group(pg_temp.id('g'), after => (SELECT max(i) FROM (SELECT (array_agg(i ORDER BY i DESC))[1]::text AS i
	FROM unnest(pg_temp.ids('a', 'bb', 'ccc', 'dddd', 'eeeee')) AS i) AS l)::tq.slugid)), 0::bigint, '2.13 listTaskGroup: after the last');
SELECT pg_temp.create('g');
SELECT is((SELECT count(*) FROM tq.list_task_group(pg_temp.id('g'))), 6::bigint, '2.13 listTaskGroup: with the task whose id is the group''s');
SELECT is((SELECT array_agg(task_id::text) FROM tq.list_task_group(pg_temp.id('g'))),
	(SELECT array_agg(i::text ORDER BY i) FROM unnest(pg_temp.ids('a', 'bb', 'ccc', 'dddd', 'eeeee', 'g')) AS i), '2.13 listTaskGroup: in its place of the order');
SELECT is((WITH RECURSIVE page AS (
		(SELECT task_id, 1 AS n FROM tq.list_task_group(pg_temp.id('g'), NULL, 1))
		UNION ALL
		SELECT next.task_id, n + 1 FROM page, LATERAL tq.list_task_group(pg_temp.id('g'), page.task_id, 1) AS next)
	SELECT array_agg(task_id::text ORDER BY n) FROM page),
	(SELECT array_agg(i::text ORDER BY i) FROM unnest(pg_temp.ids('a', 'bb', 'ccc', 'dddd', 'eeeee', 'g')) AS i), '2.13 listTaskGroup: page by page, each once');
SELECT pg_temp.create('lone');
SELECT is((SELECT string_agg(pg_temp.name(task_id), ' ') FROM tq.list_task_group(pg_temp.id('lone'))), 'lone', '2.13 listTaskGroup: the group of a task alone');
SELECT is((SELECT count(*) FROM tq.list_task_group(pg_temp.id('lone'), pg_temp.id('lone'))), 0::bigint, '2.13 listTaskGroup: after its only task');
SELECT pg_temp.throws($$SELECT tq.list_task_group(pg_temp.id('a'))$$, 'TQ404', '2.13 listTaskGroup: the id of a task is no group if the task is in another');
SELECT pg_temp.throws($$SELECT tq.get_task_group(pg_temp.id('a'))$$, 'TQ404', '2.7 get: nor is it for getTaskGroup');
SELECT pg_temp.throws($$SELECT tq.seal_task_group(pg_temp.id('a'))$$, 'TQ404', '2.7 seal: nor for sealTaskGroup');

-- listDependentTasks
SELECT pg_temp.create('r');
SELECT is((SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id('r'))), 0::bigint, '2.13 listDependentTasks: none');
SELECT pg_temp.create('d' || n, '{"$deps": ["r"]}') FROM generate_series(1, 5) AS n;
SELECT is((SELECT array_agg(task_id::text) FROM tq.list_dependent_tasks(pg_temp.id('r'))),
	(SELECT array_agg(i::text ORDER BY i) FROM unnest(pg_temp.ids('d1', 'd2', 'd3', 'd4', 'd5')) AS i), '2.13 listDependentTasks: ordered by dependent');
SELECT is(jsonb_build_array(status, task), jsonb_build_array(tq.status(task_id), tq.task(task_id)), '2.13 listDependentTasks: status and definition of ' || pg_temp.name(task_id))
FROM tq.list_dependent_tasks(pg_temp.id('r'));
SELECT is((WITH RECURSIVE page AS (
		(SELECT task_id, 1 AS n FROM tq.list_dependent_tasks(pg_temp.id('r'), NULL, 1))
		UNION ALL
		SELECT next.task_id, n + 1 FROM page, LATERAL tq.list_dependent_tasks(pg_temp.id('r'), page.task_id, 1) AS next)
	SELECT array_agg(task_id::text ORDER BY n) FROM page),
	(SELECT array_agg(i::text ORDER BY i) FROM unnest(pg_temp.ids('d1', 'd2', 'd3', 'd4', 'd5')) AS i), '2.13 listDependentTasks: page by page, each once');
SELECT is((SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id('r'), NULL, 3)), 3::bigint, '2.13 listDependentTasks: max');
SELECT pg_temp.work('r', 'completed');
SELECT is((SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id('r'))), 5::bigint, '2.13 listDependentTasks: satisfied ones included');
SELECT pg_temp.create('self', '{"$deps": ["self"]}');
SELECT is((SELECT string_agg(pg_temp.name(task_id), ' ') FROM tq.list_dependent_tasks(pg_temp.id('self'))), 'self', '4.3 listDependentTasks: a self-dependent task lists itself');
SELECT pg_temp.create('short', '{"$deps": ["r"], "$deadline": "10 minutes", "$expires": "20 minutes"}');
SELECT is((SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id('r'))), 6::bigint, '2.13 listDependentTasks: one that expires soon');
SET tq.clock_offset = '21 minutes';
SELECT is((SELECT string_agg(pg_temp.name(task_id), ' ' ORDER BY pg_temp.name(task_id)) FROM tq.list_dependent_tasks(pg_temp.id('r'))), 'd1 d2 d3 d4 d5', '2.13 listDependentTasks: dependents that have expired are excluded');
SELECT is(pg_temp.pass('51 minutes'), 'deadline 1 claim-expired 1 expired 1', '8.4 the dependent is deleted');
SELECT is((SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id('r'))), 5::bigint, '10.12 listDependentTasks: works after a dependent is deleted');
RESET tq.clock_offset;

-- status and task work until the task is deleted: 8.4
SELECT * FROM finish();
ROLLBACK;
