-- Creation of tasks: create_task, create_tasks, define_task, enqueue; what is stored, what a repeat does.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

-- The whole definition, with every default; times are truncated to the millisecond
SELECT pg_temp.stable(jsonb_pretty(tq.create_task(pg_temp.id('a'), pg_temp.def())));
SELECT pg_temp.stable(jsonb_pretty(tq.task(pg_temp.id('a'))));
SELECT pg_temp.brief(tq.create_task(pg_temp.id('b'), pg_temp.def('{"provisionerId": "regress", "workerType": "w", "schedulerId": "s", "projectId": "p/q.r",
	"taskGroupId": "group___QAGAAAAAAAAAAA", "dependencies": ["a_______QAGAAAAAAAAAAA", "b_______QAGAAAAAAAAAAA"], "requires": "all-resolved",
	"routes": ["x", "y.z"], "priority": "very-high", "retries": 0, "scopes": ["s:a", "s:a", "s:*"], "payload": {"z": [1, {"y": null}]},
	"tags": {"kind": "test"}, "extra": {"e": 1.50}}')));
SELECT pg_temp.stable(jsonb_pretty(tq.task(pg_temp.id('b'))));
SELECT tq.create_task(pg_temp.id('c'), pg_temp.def() || jsonb_build_object('created', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || '.123987Z',
	'deadline', to_char(now() AT TIME ZONE 'Asia/Kolkata' + interval '1 hour', 'YYYY-MM-DD"T"HH24:MI:SS') || '.9+05:30')) ->> 'state' AS state;
SELECT right(d ->> 'created', 5) AS created, right(d ->> 'deadline', 5) AS deadline, right(d ->> 'expires', 5) AS expires,
	(d ->> 'deadline')::timestamptz - (d ->> 'created')::timestamptz AS apart,
	(d ->> 'expires')::timestamptz - (d ->> 'deadline')::timestamptz BETWEEN '365 days' AND '366 days' AS a_year
FROM tq.task(pg_temp.id('c')) d;

-- Many elements and members, of different lengths, are read as they were given
CREATE TEMP TABLE many AS SELECT pg_temp.def() || jsonb_build_object(
	'routes', (SELECT jsonb_agg(repeat('r', n % 7) || n ORDER BY n) FROM generate_series(1, 64) n),
	'scopes', (SELECT jsonb_agg(repeat('s', n % 5) || n ORDER BY n) FROM generate_series(1, 100) n),
	'tags', (SELECT jsonb_object_agg(repeat('k', n % 9) || n, repeat('t', n)) FROM generate_series(1, 100) n)) AS d;
SELECT pg_temp.brief(tq.create_task(pg_temp.id('many'), d)) FROM many;
SELECT t -> 'routes' = d -> 'routes' AS routes, t -> 'scopes' = d -> 'scopes' AS scopes, t -> 'tags' = d -> 'tags' AS tags
FROM many, tq.task(pg_temp.id('many')) t;

-- A repeat is harmless, in whatever equal form; a different definition is a conflict
CREATE TEMP TABLE first AS SELECT pg_temp.def('{"payload": {"a": 1, "b": 2}}') || jsonb_build_object(
	'created', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
	'deadline', to_char(now() AT TIME ZONE 'UTC' + interval '1 day', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) AS d;
SELECT pg_temp.brief(tq.create_task(pg_temp.id('d'), d)) FROM first;
SELECT pg_temp.stored() AS before \gset
SELECT pg_temp.brief(tq.create_task(pg_temp.id('d'), d)) FROM first;
SELECT pg_temp.brief(tq.create_task(pg_temp.id('d'), d - 'taskQueueId' || '{"provisionerId": "regress", "workerType": "w", "payload": {"b": 2.0, "a": 1}, "priority": "lowest",
	"dependencies": [], "routes": [], "scopes": [], "tags": {}, "extra": {}, "retries": 5, "projectId": "none", "schedulerId": "-", "requires": "all-completed"}'
	|| jsonb_build_object('taskGroupId', pg_temp.id('d'), 'created', replace(d ->> 'created', 'Z', '999+00:00'),
	'expires', tq.task(pg_temp.id('d')) ->> 'expires'))) FROM first;
SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('d'), 'task', d))) AS new FROM first;
SELECT key, a.code, a.message FROM first, jsonb_each('{"taskQueueId": "regress/v", "schedulerId": "s", "projectId": "p", "taskGroupId": "a_______QAGAAAAAAAAAAA",
	"dependencies": ["d_______QAGAAAAAAAAAAA"], "requires": "all-resolved", "routes": ["r"], "priority": "low", "retries": 4, "scopes": ["s"], "payload": {"a": 1},
	"metadata": {"name": "N", "description": "d", "owner": "o", "source": "https://example.com"}, "tags": {"t": "t"}, "extra": {"e": 1}}') e,
	pg_temp.answer(format('SELECT tq.create_task(pg_temp.id(''d''), %L)', d || jsonb_build_object(key, value))) a ORDER BY key COLLATE "C";
SELECT key, a.code, a.message FROM first, unnest('{created,deadline,expires}'::text[]) key,
	pg_temp.answer(format('SELECT tq.create_task(pg_temp.id(''d''), %L)', d || jsonb_build_object(key, coalesce((d ->> key)::timestamptz, now() + interval '2 days') + interval '1 second'))) a;
SELECT a.* FROM first, pg_temp.answer(format('SELECT tq.define_task(pg_temp.id(''d''), %L)', d)) a;
SELECT pg_temp.stored() = :'before' AS unchanged;

-- create_tasks: one call, any order, all or nothing
SELECT tq.create_tasks('[]') AS new;
SELECT tq.create_tasks(jsonb_agg(jsonb_build_object('taskId', pg_temp.id('q' || n), 'task', pg_temp.def(jsonb_build_object('taskQueueId', 'regress/q' || n % 2))) ORDER BY n)) AS new
FROM generate_series(1, 4) n;
SELECT left(task_id::text, 2) AS task, task_queue_id FROM tq.task_overview WHERE task_queue_id LIKE 'regress/q_' ORDER BY 1;
SELECT tq.create_tasks(jsonb_agg(jsonb_build_object('taskId', pg_temp.id(n), 'task', pg_temp.def(jsonb_build_object('dependencies', deps))) ORDER BY place)) AS new
FROM (VALUES (1, 'top', '["left____QAGAAAAAAAAAAA", "right___QAGAAAAAAAAAAA"]'::jsonb), (2, 'left', '["base____QAGAAAAAAAAAAA"]'),
	(3, 'right', '["base____QAGAAAAAAAAAAA", "d_______QAGAAAAAAAAAAA"]'), (4, 'base', '[]')) x (place, n, deps);
SELECT rtrim(left(task_id::text, 8), '_') AS task, state, unmet FROM tq.task_details
WHERE task_id = ANY (ARRAY[pg_temp.id('top'), pg_temp.id('left'), pg_temp.id('right'), pg_temp.id('base')]) ORDER BY 1;
SELECT rtrim(left(task_id::text, 8), '_') AS dependent, status ->> 'state' AS state, task -> 'dependencies' AS dependencies
FROM tq.list_dependent_tasks(pg_temp.id('base'));
SELECT rtrim(left(task_id::text, 8), '_') AS dependent FROM tq.list_dependent_tasks(pg_temp.id('base'), max => 1);
SELECT rtrim(left(task_id::text, 8), '_') AS dependent FROM tq.list_dependent_tasks(pg_temp.id('base'), after => pg_temp.id('left'));

-- define_task waits for schedule_task, and its status shows that
SELECT pg_temp.brief(tq.define_task(pg_temp.id('def'), d)) FROM first;
SELECT pg_temp.brief(tq.define_task(pg_temp.id('def'), d)) FROM first;
SELECT tq.task(pg_temp.id('def')) -> 'dependencies' AS dependencies;
SELECT pg_temp.brief(tq.define_task(pg_temp.id('def2'), d || '{"dependencies": ["a_______QAGAAAAAAAAAAA"]}')) FROM first;
SELECT tq.task(pg_temp.id('def2')) -> 'dependencies' AS dependencies;
SELECT a.* FROM first, pg_temp.answer(format('SELECT tq.create_task(pg_temp.id(''def''), %L)', d)) a;

-- enqueue: the short form
SELECT tq.enqueue('regress/q') IS NOT NULL AS made;
SELECT tq.enqueue('regress/q', '{"x": 1}', task_id => pg_temp.id('e'), task_group_id => pg_temp.id('group'), scheduler_id => 's',
	dependencies => ARRAY[pg_temp.id('a')], requires => 'all-resolved', priority => 'high', retries => 3, deadline => '2 hours', expires => '1 month',
	routes => '{r}', scopes => '{s}', tags => '{"t": "u"}', extra => '{"e": {}}', name => 'short', project_id => 'p');
SELECT pg_temp.stable(jsonb_pretty(tq.task(pg_temp.id('e'))));
SELECT (d ->> 'deadline')::timestamptz - (d ->> 'created')::timestamptz AS deadline,
	(d ->> 'expires')::timestamptz = (d ->> 'deadline')::timestamptz + interval '1 month' AS expires FROM tq.task(pg_temp.id('e')) d;
SELECT * FROM pg_temp.answer($$SELECT tq.enqueue('regress/q', task_id => pg_temp.id('e'))$$);

-- A queue whose first use was rolled back can be used again
BEGIN;
SELECT tq.enqueue('regress/rolled', task_id => pg_temp.id('r1'));
ROLLBACK;
SELECT tq.enqueue('regress/rolled', task_id => pg_temp.id('r2'), task_group_id => pg_temp.id('g1'));
BEGIN;
SAVEPOINT s;
SELECT tq.enqueue('regress/saved', task_id => pg_temp.id('r3'), task_group_id => pg_temp.id('g2'), scheduler_id => 'x');
ROLLBACK TO s;
SELECT tq.enqueue('regress/saved', task_id => pg_temp.id('r3'), task_group_id => pg_temp.id('g2'), scheduler_id => 'y');
COMMIT;
SELECT rtrim(left(task_id::text, 8), '_') AS task, task_queue_id, rtrim(left(task_group_id::text, 8), '_') AS task_group, state
FROM tq.task_details WHERE task_id = ANY (ARRAY[pg_temp.id('r1'), pg_temp.id('r2'), pg_temp.id('r3')]) ORDER BY 1;
SELECT task_id, run_id FROM tq.claim_work('regress/rolled', 'g', 'w');
SELECT task_id, run_id FROM tq.claim_work('regress/saved', 'g', 'w');

-- A payload that is not used, because a worker has the task already
SELECT tq.enqueue('regress/debounced', '1', task_id => pg_temp.id('kept'), policy => '{"uniqueKey": "k", "onConflict": "replace"}') = pg_temp.id('kept') AS kept;
SELECT tq.enqueue('regress/debounced', '2', policy => '{"uniqueKey": "k", "onConflict": "replace"}') = pg_temp.id('kept') AS kept;
SELECT payload FROM tq.claim_work('regress/debounced', 'g', 'w');
SELECT tq.enqueue('regress/debounced', '3', policy => '{"uniqueKey": "k", "onConflict": "replace"}') = pg_temp.id('kept') AS kept;

-- Errors of tq that lack DETAIL or HINT, or are too long: none
SELECT * FROM poor_errors;
