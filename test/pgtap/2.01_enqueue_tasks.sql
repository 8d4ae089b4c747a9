-- doc/spec/taskcluster.md 2.1: enqueue_tasks, many tasks that differ in their
-- payload.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.numbers(n int) RETURNS jsonb[] LANGUAGE sql AS $$ SELECT array_agg(jsonb_build_object('n', i) ORDER BY i) FROM generate_series(1, n) AS i $$;

-- ids in the order of the payloads, and claims in the same
SELECT tq.enqueue_tasks('many/q', pg_temp.numbers(150)) AS ids \gset
SELECT is(cardinality(:'ids'::tq.slugid[]), 150, 'an id for each payload');
SELECT is((SELECT count(DISTINCT i::text) FROM unnest(:'ids'::tq.slugid[]) AS i), 150::bigint, 'each id is different');
SELECT is((SELECT array_agg((tq.task(i) #>> '{payload,n}')::int ORDER BY o) FROM unnest(:'ids'::tq.slugid[]) WITH ORDINALITY AS x (i, o)),
	(SELECT array_agg(n) FROM generate_series(1, 150) AS n), 'in the order of the payloads');
SELECT is((SELECT count(*) FROM unnest(:'ids'::tq.slugid[]) AS i WHERE tq.status(i) ->> 'taskGroupId' = i::text), 150::bigint, 'each in the group of its own id');
SELECT is((SELECT array_agg((payload ->> 'n')::int) FROM tq.claim_work('many/q', 'g', 'w', 150)),
	(SELECT array_agg(n) FROM generate_series(1, 150) AS n), '5.1 claimed in that order');
SELECT is(tq.enqueue_tasks('many/q', '{}'), '{}', 'no payload, no task');
SELECT is(pg_typeof(tq.enqueue_tasks('many/q', '{}'))::text, 'text[]', '2.1 a list of texts, which every driver reads');
SELECT is((SELECT count(*) FROM tq.statuses(tq.enqueue_tasks('many/p', pg_temp.numbers(3)))), 3::bigint, '2.1 which functions take as ids');

-- common arguments
SELECT tq.enqueue('many/q', task_id => pg_temp.id('base')) IS NOT NULL;
SELECT tq.enqueue_tasks('many/q', pg_temp.numbers(2), ARRAY[pg_temp.id('x1'), pg_temp.id('x2')], pg_temp.id('g'), ARRAY[pg_temp.id('base')], 'all-resolved', 'high',
	3, '2 hours', '1 day', '0', '{r.a}', '{s:b}', '{"t": "u"}', '{"e": 1}', 'a name', 'sched', 'proj') AS ids \gset
SELECT is(:'ids'::tq.slugid[], ARRAY[pg_temp.id('x1'), pg_temp.id('x2')], 'ids that were given');
SELECT is(tq.task(pg_temp.id('x1')) - 'payload', tq.task(pg_temp.id('x2')) - 'payload', 'alike in all but the payload');
SELECT is(tq.status(pg_temp.id('x2')) ->> 'taskGroupId', pg_temp.id('g')::text, 'in one group');
SELECT is(tq.task(pg_temp.id('x2')) - '{payload,created,deadline,expires,metadata,dependencies}'::text[], jsonb_build_object('taskQueueId', 'many/q', 'provisionerId', 'many',
	'workerType', 'q', 'schedulerId', 'sched', 'projectId', 'proj', 'taskGroupId', pg_temp.id('g'), 'requires', 'all-resolved', 'priority', 'high', 'retries', 3,
	'routes', '["r.a"]'::jsonb, 'scopes', '["s:b"]'::jsonb, 'tags', '{"t": "u"}'::jsonb, 'extra', '{"e": 1}'::jsonb), 'every argument is in the definition');
SELECT is(tq.task(pg_temp.id('x2')) -> 'dependencies', jsonb_build_array(pg_temp.id('base')), 'the dependencies too');
SELECT is(tq.task(pg_temp.id('x2')) #>> '{metadata,name}', 'a name', 'and the name');
SELECT is(tq.status(pg_temp.id('x1')) ->> 'state', 'unscheduled', '4.2 they wait for what they require');
SELECT is((SELECT count(*) FROM tq.list_task_group(pg_temp.id('g'))), 2::bigint, 'the group has both');

-- repeated, and not
SELECT is(tq.enqueue_tasks('many/r', pg_temp.numbers(2), ARRAY[pg_temp.id('r1'), pg_temp.id('r2')]),
	tq.enqueue_tasks('many/r', pg_temp.numbers(2), ARRAY[pg_temp.id('r1'), pg_temp.id('r2')]), '2.1 a repeat is the same');
SELECT is((tq.task_queue_counts('many/r') -> 'pendingTasks')::bigint, 2::bigint, '2.1 and creates no task');
SELECT is(tq.enqueue_tasks('many/r', pg_temp.numbers(3), ARRAY[pg_temp.id('r1'), pg_temp.id('r2'), pg_temp.id('r3')]),
	ARRAY[pg_temp.id('r1'), pg_temp.id('r2'), pg_temp.id('r3')]::text[], '2.1 one more, and two repeats');
SELECT throws_ok($$SELECT tq.enqueue_tasks('many/r', ARRAY['{"n": 9}', '{"n": 2}']::jsonb[], ARRAY[pg_temp.id('r9'), pg_temp.id('r1')])$$,
	'TQ409', NULL, '2.1 another payload is a conflict');
SELECT throws_ok($$SELECT tq.status(pg_temp.id('r9'))$$, 'TQ404', NULL, 'and nothing is created');
SELECT throws_ok($$SELECT tq.enqueue_tasks('many/r', pg_temp.numbers(2), ARRAY[pg_temp.id('s1'), pg_temp.id('s1')])$$, 'TQ400', NULL, 'one id twice');
SELECT throws_ok($$SELECT tq.enqueue_tasks('many/r', ARRAY['{}', NULL]::jsonb[])$$, 'TQ400', NULL, 'a payload that is NULL');
SELECT * FROM finish();
ROLLBACK;
