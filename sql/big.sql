-- Large things: a definition of 10 MB, deep JSON, many dependencies, many tasks in one call.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

-- 10 MB come back as they went in
CREATE TEMP TABLE large AS SELECT jsonb_build_object('text', repeat('0123456789abcdef', 10 * 65536)) AS p;
SELECT pg_temp.brief(tq.create_task(pg_temp.id('large'), d)), length(d::text) > 10000000 AS over_10_mb FROM large, pg_temp.def(jsonb_build_object('payload', p)) d;
SELECT pg_temp.brief(tq.create_task(pg_temp.id('large'), tq.task(pg_temp.id('large')))) AS repeated;
SELECT payload = p AS the_same FROM large, tq.claim_work('regress/w', 'g', 'w');
SELECT tq.task(pg_temp.id('large')) -> 'payload' = p AS the_same FROM large;
SELECT tq.enqueue('regress/w', p, task_id => pg_temp.id('large2'), extra => p) FROM large;
SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('large3'), 'task', pg_temp.def(jsonb_build_object('payload', p, 'extra', p))))) FROM large;
SELECT task_id, payload = p AS the_same FROM large, tq.claim_work('regress/w', 'g', 'w', 10);

-- Deep JSON
SELECT tq.enqueue('regress/w', ('{"a": ' || repeat('[', 2000) || repeat(']', 2000) || '}')::jsonb, task_id => pg_temp.id('deep'));
SELECT length(payload::text) FROM tq.claim_work('regress/w', 'g', 'w');
SELECT code FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', ('{"a": ' || repeat('[', 100000) || repeat(']', 100000) || '}')::jsonb)$$);

-- Many keys and elements
SELECT tq.enqueue('regress/w', jsonb_object_agg('k' || n, n), task_id => pg_temp.id('wide'), scopes => array_agg('scope:' || n), tags => jsonb_object_agg('t' || n, 't')) FROM generate_series(1, 10000) n;
SELECT jsonb_array_length(d -> 'scopes') AS scopes, (SELECT count(*) FROM jsonb_object_keys(d -> 'tags')) AS tags FROM tq.task(pg_temp.id('wide')) d;

-- 10,000 dependencies, made in one call with what they need
SELECT tq.create_tasks(jsonb_agg(jsonb_build_object('taskId', pg_temp.id(n), 'task', pg_temp.def('{"taskQueueId": "regress/f"}')))
	|| jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('fan'), 'task', pg_temp.def(jsonb_build_object('taskQueueId', 'regress/g', 'dependencies', jsonb_agg(pg_temp.id(n)))))))
FROM generate_series(1, 10000) n;
SELECT unmet FROM tq.task_overview WHERE task_id = pg_temp.id('fan');
SELECT tq.pending_tasks('regress/f');
WITH c AS MATERIALIZED (SELECT c.* FROM generate_series(1, 10) n, LATERAL tq.claim_work('regress/f', 'g', 'w' || n, 1000) c),
	a AS (SELECT array_agg(task_id) AS t, array_agg(run_id) AS r FROM c)
SELECT outcome, count(*) FROM a, tq.resolve(t, r) GROUP BY 1;
SELECT pg_temp.brief(tq.status(pg_temp.id('fan')));
SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id(1));
SELECT count(*) FROM tq.statuses((SELECT array_agg(pg_temp.id(n)) FROM generate_series(1, 10000) n));
