-- A data engineer with a graph of 300: from its creation to its repair.
\ir helper.psql
CREATE ROLE users_data;
SELECT tq.grant_queue('users_data', 'etl/*', access) FROM unnest('{produce,work,manage}'::text[]) AS access \g /dev/null
SET ROLE users_data;
SELECT tq.stable_slugid('night') AS night, tq.stable_slugid('report') AS report \gset

-- 100 files are extracted, each is transformed, 99 of them loaded, and one report made of all.
CREATE FUNCTION pg_temp.task(step text, requires text[]) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('taskId', tq.stable_slugid(step), 'task', jsonb_build_object(
		'taskQueueId', 'etl/' || split_part(step, ' ', 1), 'taskGroupId', tq.stable_slugid('night'), 'created', now(), 'deadline', now() + '1 day',
		'payload', jsonb_build_object('step', step), 'dependencies', (SELECT coalesce(jsonb_agg(tq.stable_slugid(r)), '[]') FROM unnest(requires) AS r),
		'metadata', jsonb_build_object('name', step, 'description', '', 'owner', 'etl', 'source', 'https://example.com/')))
$$;
SELECT users.is(tq.create_tasks(jsonb_agg(task)), 300, 'one call creates the graph') FROM (
	SELECT pg_temp.task('extract ' || n, '{}') AS task FROM generate_series(1, 100) AS n
	UNION ALL SELECT pg_temp.task('transform ' || n, ARRAY['extract ' || n]) FROM generate_series(1, 100) AS n
	UNION ALL SELECT pg_temp.task('load ' || n, ARRAY['transform ' || n, 'transform 100']) FROM generate_series(1, 99) AS n
	UNION ALL SELECT pg_temp.task('report', (SELECT array_agg('load ' || n) FROM generate_series(1, 99) AS n))) AS t;
SELECT users.matches(users.why(:'report'), '^unscheduled: in all 99 are not met; 10 are shown', 'why says for how many a task waits');
SELECT tq.on_group_resolved(:'night', 'etl/summary', '{"step": "summary"}') AS summary \gset

-- The group has a name.
SELECT tq.name_task_group(:'night', 'night of 27 November') \g /dev/null
SELECT users.is((SELECT name FROM tq.group_overview WHERE task_group_id = :'night'), 'night of 27 November', 'a group has a name');

-- Two extracts fail; the rest goes as far as it can, and the group is stuck.
SELECT users.is(users.work('{etl/*}', '{extract 7,extract 100}'), 100 + 98, 'workers do what they can');
SELECT users.is((SELECT concat_ws(' ', failed, unscheduled, blocked, cardinality(blocked_by)) FROM tq.group_progress(:'night')), '2 102 t 2', 'a stuck group is seen, with what it waits for');
SELECT users.is((SELECT array_agg((tq.task(id) #>> '{metadata,name}') || ': ' || (e.error ->> 'message') ORDER BY tq.task(id) #>> '{metadata,name}' COLLATE "C") FROM tq.group_overview AS g, tq.group_progress(g.task_group_id) AS p,
	unnest(p.blocked_by) AS id LEFT JOIN tq.failure_overview AS e ON e.task_id = id WHERE g.outcome IS NULL AND p.blocked), '{extract 100: no space left,extract 7: no space left}', 'the query of the runbook');
CALL tq.wait_for_task_group(:'night', wait => '30 s') \gset
SELECT users.is(:'result', 'blocked', 'a wait for the group ends');
CALL tq.wait_for_task(:'report', wait => '30 s') \gset
SELECT users.is(:'result', 'blocked', 'and one for its last task');
SELECT users.matches(users.why(:'report'), 'at the root: extract 100: failed: SELECT tq.rerun_task.*at the root: extract 7: failed', 'why finds the roots');
SELECT users.is((SELECT count(*) <= 15 FROM tq.why(:'report')), true, 'on one screen');

-- Looking at it.
SELECT users.matches((SELECT string_agg(line, E'\n') FROM tq.group_tree(:'night') AS line), 'extract \* \(100 tasks\).*2 failed', 'the tree of 300 is drawn by kinds');
SELECT users.matches(tq.report_html(:'night'), 'no space left', 'the page has the errors');
SELECT users.matches(tq.group_mermaid(:'night'), 'flowchart LR.*100 tasks', 'Mermaid');
SELECT users.matches(tq.group_dot(:'night'), '^digraph', 'Graphviz');
SELECT users.is((SELECT array_agg(name || ': ' || (error ->> 'message') ORDER BY name COLLATE "C") FROM tq.failure_overview), '{"extract 100: no space left","extract 7: no space left"}', 'the failures');
SELECT users.is((SELECT concat_ws(' ', tasks, failed, outcome) FROM tq.group_overview WHERE task_group_id = :'night'), '300 2', 'the group');
SELECT users.is((SELECT count(*) FROM tq.list_task_group(:'night')), 300, 'its tasks');
SELECT users.is((SELECT count(*) FROM tq.list_dependent_tasks(tq.stable_slugid('transform 100'))), 99, 'what depends on one');
SELECT users.is((SELECT count(*) FROM tq.dependency_results(:'report') WHERE state = 'completed'), 0, 'what the report waits for');

-- The repair, from the step that failed.
SELECT users.is(tq.retry_task_group(:'night'), 2, 'a repair runs what failed');
SELECT users.is(users.work('{etl/extract,etl/transform,etl/load,etl/report}'), 2 + 2 + 99 + 1, 'and the rest follows');
CALL tq.wait_for_task_group(:'night', wait => '30 s') \gset
SELECT users.is(:'result', 'completed', 'the group is completed');
SELECT users.is((SELECT concat_ws(' ', completed, blocked, outcome) FROM tq.group_progress(:'night')), '300 f completed', 'all of it');
RESET ROLE;
SELECT tq.upkeep() \g /dev/null
SET ROLE users_data;
SELECT users.is((SELECT payload #>> '{group,outcome}' FROM tq.claim_work('etl/summary', wait => '30 s')), 'completed', 'the task for its end has the outcome');

-- An input was wrong: a part that is completed runs again, with what depends on it.
SELECT users.is((SELECT array_agg(concat_ws(' ', action, n) ORDER BY action) FROM (SELECT action, count(*) AS n FROM tq.rerun_plan(tq.stable_slugid('extract 1')) GROUP BY action) AS p),
	'{"rerun 1","wait 3"}', 'the plan says which');
SELECT users.is(tq.rerun_task(tq.stable_slugid('extract 1'), downstream => true) ->> 'state', 'pending', 'it runs again');
SELECT users.is((SELECT concat_ws(' ', pending, unscheduled, completed) FROM tq.group_progress(:'night')), '1 3 296', 'and three tasks wait for it');
SELECT users.is(users.work('{etl/extract,etl/transform,etl/load,etl/report}'), 4, 'in order');
SELECT users.is((SELECT outcome FROM tq.group_progress(:'night')), 'completed', 'and the group is completed again');

-- Each night.
RESET ROLE;
SET cron.database_name = 'elsewhere';
SELECT tq.grant_scopes('users_data', '{queue:schedule-cron-in-queue:etl/*}');
SET ROLE users_data;
SELECT users.is(name || ' ' || schedule, 'nightly 0 2 * * *', 'by the clock') FROM tq.schedule_cron('nightly', '0 2 * * *', 'etl/extract', '{"day": "$scheduled"}', overlap => 'skip');
SELECT users.is((SELECT concat_ws(' ', name, task_queue_id, overlap) FROM tq.cron_overview), 'nightly etl/extract skip', 'the overview has it');
SELECT users.is((SELECT count(*) FROM tq.cron_overview, unnest(next_fires) AS f WHERE f > now() AND (f AT TIME ZONE time_zone)::time = '2:00'), 3, 'with its next three times, in its zone');
SELECT '1..' || currval('users.n');
