-- doc/spec/taskcluster.md 2.1: createTask.
BEGIN;
\ir helper.psql

-- The result is the status
CREATE TEMP TABLE answer AS SELECT tq.create_task(pg_temp.id('a'), pg_temp.def('a')) AS status;
SELECT is(status, tq.status(pg_temp.id('a')), '2.1 returns the status') FROM answer;
SELECT is(status ->> 'state', 'pending', '2.1 (8) without dependencies run 0 is pending at once') FROM answer;

-- (2) and 10.1: the limit of dependencies is enforced
SELECT pg_temp.create(n) FROM unnest('{r1,r2,r3}'::text[]) AS n;
SET tq.max_dependencies = 2;
SELECT is(pg_temp.create('b2', '{"$deps": ["r1", "r2"]}'), 'unscheduled 5:', '2.1 (2) as many dependencies as allowed');
SELECT pg_temp.refuses('{"$deps": ["r1", "r2", "r3"]}', '10.1 more dependencies than tq.max_dependencies, all known');
SET tq.max_dependencies = 0;
SELECT pg_temp.refuses('{"$deps": ["r1"]}', '2.1 (2) none allowed');
RESET tq.max_dependencies;
SELECT is(pg_temp.create('b3', '{"$deps": ["r1", "r2", "r3"]}'), 'unscheduled 5:', '2.1 (2) by default they may be more');
SELECT is(tq.create_tasks((SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id('many' || n)::text, 'task', pg_temp.def('many')))
	FROM generate_series(1, 10001) AS n)), 10001::bigint, '2.1 (2) 10,001 tasks');
SELECT pg_temp.refuses(jsonb_build_object('dependencies', (SELECT jsonb_agg(pg_temp.id('many' || n)::text) FROM generate_series(1, 10001) AS n)),
	'2.1 (2) 10,001 dependencies are refused');
SELECT pg_temp.accepts(jsonb_build_object('dependencies', (SELECT jsonb_agg(pg_temp.id('many' || n)::text) FROM generate_series(1, 10000) AS n)),
	'2.1 (2) 10,000 dependencies are not');
DELETE FROM tq_internal.dependency WHERE required IN (SELECT id FROM tq_internal.task WHERE metadata ->> 'name' = 'many');	-- keep the rest quick
DELETE FROM tq_internal.pending WHERE task IN (SELECT id FROM tq_internal.task WHERE metadata ->> 'name' = 'many');
DELETE FROM tq_internal.timer;
DELETE FROM tq_internal.task WHERE metadata ->> 'name' = 'many';

-- (6) groups
SELECT pg_temp.create('g1', '{"$group": "g", "schedulerId": "s1"}');
SELECT pg_temp.throws($$SELECT pg_temp.create('g2', '{"$group": "g", "schedulerId": "s2"}')$$, 'TQ409', '2.1 (6) another schedulerId in the group');
SELECT pg_temp.throws($$SELECT pg_temp.create('g2', '{"$group": "g"}')$$, 'TQ409', '2.1 (6) the default is another schedulerId too');
SELECT lives_ok($$SELECT pg_temp.create('g2', '{"$group": "g", "schedulerId": "s1"}')$$, '2.1 (6) the same schedulerId');
SELECT pg_temp.create('h', '{"schedulerId": "s1"}');
SELECT pg_temp.throws($$SELECT pg_temp.create('h2', '{"$group": "h", "schedulerId": "s2"}')$$, 'TQ409', '2.1 (6) another schedulerId than that of the group''s only task');
SELECT lives_ok($$SELECT pg_temp.create('h2', '{"$group": "h", "schedulerId": "s1"}')$$, '2.1 (6) the same schedulerId as the group''s only task');
SELECT pg_temp.create('i1', '{"$group": "i", "schedulerId": "s1"}');
SELECT pg_temp.throws($$SELECT pg_temp.create('i', '{"schedulerId": "s2"}')$$, 'TQ409', '2.1 (6) a task whose own group exists, with another schedulerId');
SELECT lives_ok($$SELECT pg_temp.create('i', '{"schedulerId": "s1"}')$$, '2.1 (6) a task whose own group exists');
SELECT is(tq.task(pg_temp.id('i')) ->> 'taskGroupId', pg_temp.id('i')::text, '2.1 (5) the group is the task''s own id by default');
SELECT is((SELECT count(*) FROM tq.list_task_group(pg_temp.id('i'))), 2::bigint, '2.1 (6) both are in it');
SELECT lives_ok(format('SELECT tq.seal_task_group(pg_temp.id(%L))', g), '2.1 (6) seal ' || g) FROM unnest('{g,h,a}'::text[]) AS g;
SELECT pg_temp.throws($$SELECT pg_temp.create('g3', '{"$group": "g", "schedulerId": "s1"}')$$, 'TQ409', '2.1 (6) a sealed group takes no new task');
SELECT pg_temp.throws($$SELECT pg_temp.create('g1', '{"$group": "g", "schedulerId": "s1"}')$$, 'TQ409', '10.7 nor a repeat of one it has');
SELECT pg_temp.throws($$SELECT pg_temp.create('a2', '{"$group": "a"}')$$, 'TQ409', '2.1 (6) a sealed group of one takes no new task');
SELECT pg_temp.throws($$SELECT pg_temp.create('a')$$, 'TQ409', '10.7 nor its repeat');
SELECT pg_temp.throws($$SELECT pg_temp.create('h')$$, 'TQ409', '10.7 nor a repeat of the task whose id is the group''s');

-- (7) repeats
SELECT pg_temp.create('full', $${"provisionerId": "test", "workerType": "q-full", "taskQueueId": "test/q-full", "schedulerId": "s",
	"projectId": "p", "$group": "fg", "$deps": ["r1", "r2"], "requires": "all-resolved", "routes": ["x", "y"], "priority": "low",
	"retries": 7, "$expires": "2 days", "scopes": ["a", "b"], "payload": {"p": [1, 2], "q": {"r": 1}}, "tags": {"t": "1"}, "extra": {"e": 1}}$$);
CREATE TEMP TABLE full_task AS SELECT tq.task(pg_temp.id('full')) AS task;
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('full'), (SELECT task FROM full_task))$$, 'full', '2.1 (7) a repeat by what task() gives');
SELECT pg_temp.keeps(format($$SELECT tq.create_task(pg_temp.id('full'), (SELECT task FROM full_task) - %L::text[])$$, keys), 'full',
	'2.1 (7) a repeat without ' || keys)
FROM unnest('{"{provisionerId,workerType}","{taskQueueId}"}'::text[]) AS keys;
SELECT pg_temp.throws(format($$SELECT tq.create_task(pg_temp.id('full'), (SELECT task FROM full_task) || %L)$$, jsonb_build_object(key, value)), 'TQ409',
	'2.1 (7) conflict: other ' || key)
FROM (VALUES
	('schedulerId', '"t"'::jsonb), ('projectId', '"q"'), ('taskGroupId', to_jsonb(pg_temp.id('other')::text)), ('dependencies', '[]'),
	('dependencies', to_jsonb(ARRAY[pg_temp.id('r1')::text])), ('dependencies', to_jsonb(ARRAY[pg_temp.id('r2')::text, pg_temp.id('r1')::text])),
	('requires', '"all-completed"'), ('routes', '["x"]'), ('routes', '["y", "x"]'), ('routes', '["x", "y", "z"]'), ('routes', '[]'),
	('priority', '"lowest"'), ('retries', '5'), ('retries', '8'), ('scopes', '["a"]'), ('scopes', '["b", "a"]'), ('scopes', '["a", "b", "b"]'),
	('payload', '{}'), ('payload', '{"p": [1, 2], "q": {"r": 2}}'), ('payload', '{"p": [2, 1], "q": {"r": 1}}'), ('payload', '{"p": [1, 2], "q": {"r": 1}, "s": null}'),
	('tags', '{}'), ('tags', '{"t": "2"}'), ('extra', '{}'), ('extra', '{"e": "1"}'),
	('created', to_jsonb(pg_temp.iso(pg_temp.base() + interval '1 ms'))),
	('deadline', to_jsonb(pg_temp.iso(pg_temp.base() + interval '1 hour 1 ms'))),
	('expires', to_jsonb(pg_temp.iso(pg_temp.base() + interval '2 days 1 ms')))) AS v (key, value);
SELECT pg_temp.throws(format($$SELECT tq.create_task(pg_temp.id('full'), jsonb_set((SELECT task FROM full_task), '{metadata,%s}', '"https://other"'))$$, key), 'TQ409',
	'2.1 (7) conflict: other metadata.' || key) FROM unnest('{name,description,owner,source}'::text[]) AS key;
SELECT pg_temp.throws($$SELECT tq.create_task(pg_temp.id('full'), (SELECT task FROM full_task)
	- '{provisionerId,workerType}'::text[] || '{"taskQueueId": "test/other"}')$$, 'TQ409', '2.1 (7) conflict: other task queue');
SELECT is(tq.task(pg_temp.id('full')), task, '2.1 (7) the definition has not changed') FROM full_task;
SELECT is(pg_temp.create('def'), 'pending 5: scheduled>pending', '2.1 (7) a task by its defaults');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('def'), tq.task(pg_temp.id('def')))$$, 'def', '2.1 (7) defaults are applied before comparing');
SELECT pg_temp.keeps(format($$SELECT tq.create_task(pg_temp.id('def'), pg_temp.def('def', %L))$$, v), 'def', '2.1 (7) the same with ' || v)
FROM unnest(ARRAY['{"retries": 5}', '{"dependencies": []}', '{"priority": "lowest", "requires": "all-completed"}', '{"schedulerId": "-"}',
	'{"projectId": "none"}', '{"tags": {}, "extra": {}}', '{"routes": [], "scopes": []}', '{"$group": "def"}']) AS v;
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('def'), pg_temp.def('def'))$$, 'def', '2.1 (7) a repeat while pending');
SELECT is((SELECT count(*) FROM tq_internal.pending WHERE task = (SELECT id FROM tq_internal.task WHERE task_id::text = pg_temp.id('def')::text)), 1::bigint,
	'2.1 the pending queue keeps a single row');
SELECT pg_temp.take('def');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('def'), pg_temp.def('def'))$$, 'def', '2.1 (8) a repeat while running schedules nothing');
SELECT pg_temp.report('def', 'failed');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('def'), pg_temp.def('def'))$$, 'def', '2.1 (8) nor when resolved');
SELECT lives_ok($$SELECT tq.rerun_task(pg_temp.id('def'))$$, '2.1 a rerun');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('def'), pg_temp.def('def'))$$, 'def', '2.1 (8) nor while a later run is pending');
SELECT pg_temp.resolved('ret', 'worker-shutdown');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('ret'), pg_temp.def('ret'))$$, 'ret', '2.1 (7) retriesLeft is not compared');
SELECT pg_temp.create('can', '{"$deps": ["can"]}');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('can'), pg_temp.def('can', '{"$deps": ["can"]}'))$$, 'can', '2.1 a repeat while unscheduled');
SELECT pg_temp.report('can', 'canceled');
SELECT pg_temp.keeps($$SELECT tq.create_task(pg_temp.id('can'), pg_temp.def('can', '{"$deps": ["can"]}'))$$, 'can', '2.1 a repeat of a canceled task');

-- Dates are checked on a repeat too
CREATE TEMP TABLE early AS SELECT pg_temp.def('def') AS task;
SET tq.clock_offset = '16 minutes';
SELECT pg_temp.throws($$SELECT tq.create_task(pg_temp.id('def'), (SELECT task FROM early))$$, 'TQ400', '1.2.1 a repeat that comes too late');
RESET tq.clock_offset;

SELECT * FROM finish();
ROLLBACK;
