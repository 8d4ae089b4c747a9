-- Large things: a definition of 10 MB, deep JSON, many dependencies, many tasks in one call.
\getenv srcdir PG_ABS_SRCDIR
\set helper :srcdir /sql/helper.psql
\set ECHO none
\i :helper
\set ECHO all

-- 10 MB are read as they were written
CREATE TEMP TABLE large AS SELECT jsonb_build_object('text', repeat('0123456789abcdef', 10 * 65536)) AS p;
SELECT pg_temp.brief(tq.create_task(pg_temp.id('large'), d)), length(d::text) > 10000000 AS over_10_mb FROM large, pg_temp.def(jsonb_build_object('payload', p)) d;
SELECT pg_temp.brief(tq.create_task(pg_temp.id('large'), tq.task(pg_temp.id('large')))) AS repeated;
SELECT payload = p AS the_same FROM large, tq.claim_work('regress/w', 'g', 'w');
SELECT tq.task(pg_temp.id('large')) -> 'payload' = p AS the_same FROM large;
SELECT tq.enqueue('regress/w', p, task_id => pg_temp.id('large2'), extra => '{"x": 1}') FROM large;
SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('large3'), 'task', pg_temp.def(jsonb_build_object('payload', p, 'extra', '{"x": 1}'::jsonb))))) FROM large;
SELECT task_id, payload = p AS the_same FROM large, tq.claim_work('regress/w', 'g', 'w', 10);

-- Larger ones are refused, whichever function is given them, and nothing is created
CREATE FUNCTION pg_temp.text(bytes int) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('t', repeat('x', bytes)) $$;
CREATE TEMP TABLE bound AS
	SELECT key, bytes, setting FROM (VALUES ('payload', 16777216, 'tq.max_payload'), ('tags', 1048576, 'tq.max_tags'), ('extra', 1048576, 'tq.max_extra')) v (key, bytes, setting);
SELECT key, code, message, detail, hint <> '' AS has_hint FROM (SELECT * FROM bound WHERE key <> 'tags') b, LATERAL pg_temp.answer(
	format('SELECT tq.create_task(%L, pg_temp.def(jsonb_build_object(%L, pg_temp.text(%s))))', pg_temp.id('over'), key, bytes)) a;
SELECT key, code, message, detail FROM (SELECT * FROM bound WHERE key <> 'tags') b, LATERAL pg_temp.answer(
	format('SELECT tq.enqueue(%L, task_id => %L, %s => pg_temp.text(%s))', 'regress/w', pg_temp.id('over'), key, bytes)) a;
SELECT code, message, detail FROM pg_temp.answer(
	format('SELECT tq.enqueue_tasks(%L, ARRAY[%L, pg_temp.text(16777216)]::jsonb[], task_ids => %L)', 'regress/w', '{}', ARRAY[pg_temp.id('under'), pg_temp.id('over')]));
SELECT code, message, detail FROM pg_temp.answer(
	format('SELECT tq.create_tasks(jsonb_build_array(jsonb_build_object(%L, %L, %L, pg_temp.def(jsonb_build_object(%L, pg_temp.text(16777216))))))', 'taskId', pg_temp.id('over'), 'task', 'payload'));
SELECT code, message, detail FROM pg_temp.answer(
	format('SELECT tq.define_task(%L, pg_temp.def(jsonb_build_object(%L, pg_temp.text(16777216))))', pg_temp.id('over'), 'payload'));
-- tags may be many, and their keys long
SELECT code, message, detail FROM pg_temp.answer(
	format('SELECT tq.enqueue(%L, task_id => %L, tags => (SELECT jsonb_object_agg(repeat(%L, 100000) || n, n::text) FROM generate_series(1, 20) n))', 'regress/w', pg_temp.id('over'), 'k'));
-- the whole counts scopes, too
SELECT code, message, detail FROM pg_temp.answer(
	format('SELECT tq.enqueue(%L, pg_temp.text(16000000), task_id => %L, scopes => (SELECT array_agg(repeat(%L, 100000)) FROM generate_series(1, 60) n))', 'regress/w', pg_temp.id('over'), 's'));
SELECT code FROM pg_temp.answer(format('SELECT tq.status(%L)', pg_temp.id('over')));
SELECT code FROM pg_temp.answer(format('SELECT tq.status(%L)', pg_temp.id('under')));
-- and the limits are settings; they apply to the size as jsonb
SET tq.max_payload = 2000;
SELECT pg_column_size(pg_temp.text(1983)) AS bytes;
SELECT tq.enqueue('regress/bound', pg_temp.text(1983), task_id => pg_temp.id('equal'));
SELECT code, detail FROM pg_temp.answer(format('SELECT tq.enqueue(%L, pg_temp.text(1984), task_id => %L)', 'regress/bound', pg_temp.id('over')));
RESET tq.max_payload;
SELECT count(*) FROM tq.claim_work('regress/bound', 'g', 'w');
-- a byte may be six as JSON text, which counts
SELECT code, detail FROM pg_temp.answer($$SELECT tq.enqueue('regress/bound', jsonb_build_object('t', repeat(E'\u0001', 2800000)))$$);
SELECT tq.enqueue('regress/bound', jsonb_build_object('t', repeat(E'\u0001', 2700000)), task_id => pg_temp.id('bell'));
SELECT length(payload::text) FROM tq.claim_work('regress/bound', 'g', 'w');

-- Deep JSON
SELECT tq.enqueue('regress/w', ('{"a": ' || repeat('[', 499) || repeat(']', 499) || '}')::jsonb, task_id => pg_temp.id('deep'));
SELECT length(payload::text) FROM tq.claim_work('regress/w', 'g', 'w');
SELECT code FROM pg_temp.answer($$SELECT tq.enqueue('regress/w', ('{"a": ' || repeat('[', 100000) || repeat(']', 100000) || '}')::jsonb)$$);

-- Many keys and elements
SELECT tq.enqueue('regress/w', jsonb_object_agg('k' || n, n), task_id => pg_temp.id('wide'), scopes => array_agg('scope:' || n), tags => jsonb_object_agg('t' || n, 't')) FROM generate_series(1, 10000) n;
SELECT jsonb_array_length(d -> 'scopes') AS scopes, (SELECT count(*) FROM jsonb_object_keys(d -> 'tags')) AS tags FROM tq.task(pg_temp.id('wide')) d;

-- 10,000 dependencies, created in one call with their required tasks
SELECT tq.create_tasks(jsonb_agg(jsonb_build_object('taskId', pg_temp.id(n), 'task', pg_temp.def('{"taskQueueId": "regress/f"}')))
	|| jsonb_build_array(jsonb_build_object('taskId', pg_temp.id('fan'), 'task', pg_temp.def(jsonb_build_object('taskQueueId', 'regress/g', 'dependencies', jsonb_agg(pg_temp.id(n)))))))
FROM generate_series(1, 10000) n;
SELECT unmet FROM tq.task_details WHERE task_id = pg_temp.id('fan');
SELECT (tq.task_queue_counts('regress/f') -> 'pendingTasks')::bigint;
WITH c AS MATERIALIZED (SELECT c.* FROM generate_series(1, 10) n, LATERAL tq.claim_work('regress/f', 'g', 'w' || n, 1000) c),
	a AS (SELECT array_agg(task_id) AS t, array_agg(run_id) AS r FROM c)
SELECT outcome, count(*) FROM a, tq.resolve(t, r) GROUP BY 1;
SELECT pg_temp.brief(tq.status(pg_temp.id('fan')));
SELECT count(*) FROM tq.list_dependent_tasks(pg_temp.id(1));
SELECT count(*) FROM tq.statuses((SELECT array_agg(pg_temp.id(n)) FROM generate_series(1, 10000) n));

-- The peak of memory of a call, in MB, above the earlier peak of the session
CREATE FUNCTION pg_temp.peak(statement text, OUT answer text, OUT mb int) LANGUAGE plpgsql AS $$
BEGIN
	mb := substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+)')::int;
	EXECUTE statement INTO answer;
	mb := (substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+)')::int - mb) / 1024;
END $$;

-- To create 20,000 tasks again takes no more memory than to create them
CREATE TEMP TABLE twice AS SELECT jsonb_agg(jsonb_build_object('taskId', pg_temp.id(100000 + n), 'task', pg_temp.def(jsonb_build_object('taskQueueId', 'regress/twice',
	'payload', jsonb_build_object('text', repeat('x', 200), 'n', 1), 'taskGroupId', pg_temp.id('twice'), 'scopes', jsonb_build_array('a:' || n))))) AS tasks FROM generate_series(1, 20000) AS n;
SELECT tq.create_tasks(tasks) FROM twice;
SELECT answer, mb < 50 AS is_bounded, CASE WHEN mb >= 50 THEN mb END AS mb FROM pg_temp.peak('SELECT tq.create_tasks(tasks) FROM twice');
-- nor if the repeat is equal, but not byte by byte
CREATE TEMP TABLE alike AS SELECT replace(tasks::text, '"n": 1', '"n": 1.0')::jsonb AS tasks FROM twice;
SELECT answer, mb < 50 AS is_bounded, CASE WHEN mb >= 50 THEN mb END AS mb FROM pg_temp.peak('SELECT tq.create_tasks(tasks) FROM alike');
SELECT a.code, a.detail FROM twice, pg_temp.answer(format('SELECT tq.create_tasks(%L)', jsonb_set(tasks, '{19999,task,payload}', '{}'))) AS a;

-- A claim reads no payload of a task that it passes over: 600 tasks of 2 MB that are past their deadline
DO $$
BEGIN
	FOR n IN 1 .. 600 LOOP
		PERFORM tq.enqueue('regress/overdue', jsonb_build_object('text', repeat('0123456789abcdef', 2 * 65536)), deadline => '1 day');
	END LOOP;
	PERFORM tq.enqueue('regress/overdue', '{"n": 1}', deadline => '3 days', priority => 'lowest');
END $$;
SET tq.clock_offset = '25 hours';
SELECT answer, mb < 100 AS is_bounded, CASE WHEN mb >= 100 THEN mb END AS mb FROM pg_temp.peak($$SELECT count(*) || ' ' || min(payload::text) FROM tq.claim_work('regress/overdue', 'g', 'w', 1000)$$);
RESET tq.clock_offset;
