-- doc/spec/taskcluster.md 8.5: runs that have ended, by the name of their task.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.stats(name text, since timestamptz DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(' ', s.task_queue_id, coalesce(nullif(s.name, ''), CASE s.name WHEN '' THEN '-' ELSE '*' END), s.completed, s.failed, s.exception), ', ' ORDER BY n)
	FROM (SELECT r.*, row_number() OVER () AS n FROM tq.task_name_stats(stats.name, stats.since) AS r) AS s
$$;
-- All of the table from that time on; another session counts only what it sees.
CREATE FUNCTION pg_temp.count(since timestamptz, upto timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	block bigint := 0;
BEGIN
	WHILE block >= 0 LOOP
		block := tq_internal.count_names(since, upto, block);
	END LOOP;
END
$$;
CREATE TEMP TABLE mark AS SELECT pg_temp.clock() AS begun;

SELECT tq.enqueue('test/n', task_id => pg_temp.id(name || n), name => name, retries => 3) FROM (VALUES ('mail', 3), ('build', 2)) AS v (name, m), generate_series(1, m) AS n \g /dev/null
SELECT tq.enqueue('test/n', task_id => pg_temp.id('plain')), tq.enqueue('test/m', task_id => pg_temp.id('other'), name => 'mail') \g /dev/null
SET tq.clock_offset = '3 s';
SELECT count(*) FROM tq.claim_work('test/n', 'g', 'w', 10) AS n, tq.claim_work('test/m', 'g', 'w', 1) AS m \g /dev/null
SET tq.clock_offset = '10 s';
SELECT pg_temp.report('mail1', 'completed'), pg_temp.report('mail2', 'failed'), pg_temp.report('mail3', 'worker-shutdown'), pg_temp.report('build1', 'completed'), pg_temp.report('plain', 'completed'), pg_temp.report('other', 'completed') \g /dev/null
SELECT pg_temp.count(begun, pg_temp.clock() + interval '1 s') FROM mark \g /dev/null
SELECT is(pg_temp.stats('test/n'), 'test/n mail 1 1 1, test/n - 1 0 0, test/n build 1 0 0', 'runs that have ended, by name, those with most first; tasks without a name have the empty one');
SELECT is(pg_temp.stats('test/m'), 'test/m mail 1 0 0', 'each queue has its own');
SELECT is(pg_temp.stats('test/*'), 'test/m mail 1 0 0, test/n mail 1 1 1, test/n - 1 0 0, test/n build 1 0 0', 'a pattern');
SELECT is((SELECT wait_p50 BETWEEN '2.5 s' AND '4 s' AND wait_p50 <= wait_p99 AND run_p50 BETWEEN '6 s' AND '8 s' AND run_p95 <= run_p99 FROM tq.task_name_stats('test/n') WHERE name = 'mail'), true, 'how long they waited and took');

-- Each run once: the times of a pass begin where those of the one before ended.
SET tq.clock_offset = '20 s';
SELECT pg_temp.report('build2', 'failed') \g /dev/null
SELECT pg_temp.count(pg_temp.clock() - interval '5 s', pg_temp.clock() + interval '1 s') \g /dev/null
SELECT is(pg_temp.stats('test/n'), 'test/n mail 1 1 1, test/n build 1 1 0, test/n - 1 0 0', 'a later pass adds to it');
SELECT pg_temp.count(pg_temp.clock() + interval '1 s', pg_temp.clock() + interval '1 hour') \g /dev/null
SELECT is(pg_temp.stats('test/n'), 'test/n mail 1 1 1, test/n build 1 1 0, test/n - 1 0 0', 'what is not of its time is not counted');

-- ---- a thousand names ----

SELECT tq.enqueue('test/many', name => 'n' || n) FROM generate_series(1, 999) AS n \g /dev/null
SELECT tq.enqueue('test/many', name => name) FROM unnest('{often,often,rare,rarer}'::text[]) AS name \g /dev/null
CREATE FUNCTION pg_temp.finish_all() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 2 LOOP
		PERFORM tq.resolve(array_agg(c.task_id), array_agg(c.run_id)) FROM tq.claim_work('test/many', 'g', 'w', 1000) AS c HAVING count(*) > 0;
	END LOOP;
END
$$;
SET tq.clock_offset = '30 s';
SELECT pg_temp.finish_all() \g /dev/null
SELECT pg_temp.count(pg_temp.clock() - interval '5 s', pg_temp.clock() + interval '1 s') \g /dev/null
SELECT is((SELECT format('%s %s %s', count(*), count(name), string_agg(completed::text, ' ') FILTER (WHERE name IS NULL)) FROM tq.task_name_stats('test/many')), '1001 1000 2', 'a queue has a thousand names, and the rest is together');
SELECT is((SELECT completed FROM tq.task_name_stats('test/many') WHERE name = 'often'), 2::bigint, 'those with most runs come first');
SELECT tq.enqueue('test/many', name => name) FROM unnest(ARRAY['n1', 'late', repeat('x', 250)]) AS name \g /dev/null
SET tq.clock_offset = '40 s';
SELECT pg_temp.finish_all() \g /dev/null
SELECT pg_temp.count(pg_temp.clock() - interval '5 s', pg_temp.clock() + interval '1 s') \g /dev/null
SELECT is((SELECT format('%s %s %s', count(*), sum(completed), string_agg(completed::text, ' ') FILTER (WHERE name IS NULL)) FROM tq.task_name_stats('test/many')), '1001 1006 4', 'a name that is there is counted by itself, another one is not');

-- ---- rights ----

CREATE ROLE named;
SELECT tq.grant_queue('named', 'test/n', 'depend'), tq.grant_queue('named', 'test/m', 'read') \g /dev/null
SET ROLE named;
SELECT string_agg(DISTINCT task_queue_id, ' ') AS queues FROM tq.task_name_stats('test/*') \gset
RESET ROLE;
SELECT is(:'queues'::text, 'test/m', 'names are of definitions, and shown to those who may read these');

-- ---- the days ----

SET tq.clock_offset = '2 days';
SELECT tq.enqueue('test/day', name => repeat('long', 60)) \g /dev/null
SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('test/day', 'g', 'w') \g /dev/null
SELECT pg_temp.count(pg_temp.clock() - interval '5 s', pg_temp.clock() + interval '1 s') \g /dev/null
SELECT is(pg_temp.stats('test/n'), NULL, 'by default those of today');
SELECT is(pg_temp.stats('test/n', begun), 'test/n mail 1 1 1, test/n build 1 1 0, test/n - 1 0 0', 'or since a day') FROM mark;
SELECT is((SELECT string_agg(length(name)::text, ' ') FROM tq.task_name_stats('test/day')), '100', 'a name is cut');
SELECT is(count(*), 0::bigint, 'until a day') FROM mark, tq.task_name_stats('test/day', begun, begun + interval '1 day');
SELECT matches(pg_temp.call_as('postgres', format('SELECT tq.task_name_stats(%s)', arguments)), '^TQ400', 'refused: ' || arguments) FROM unnest(ARRAY['NULL', $$'a/b/*'$$, $$since => 'infinity'$$]) AS arguments;
SET tq.clock_offset = '17 days';
SELECT set_config('tq.clock_offset', (interval '17 days' + date_bin('1 min', pg_temp.clock(), 'epoch') + interval '1 min 1 s' - pg_temp.clock())::text, false) \g /dev/null
SELECT tq_internal.write_history() \g /dev/null
SELECT is(count(*), 0::bigint, 'they are deleted after two weeks') FROM tq_internal.task_name_history h JOIN tq_internal.queue q ON q.id = h.queue WHERE q.task_queue_id ~ '^test/';

SELECT is(tq_internal.names_upto() BETWEEN pg_temp.clock() - interval '1 hour 2 s' AND pg_temp.clock(), true, 'a pass leaves out what a transaction that is open may have ended');
SELECT * FROM finish();
ROLLBACK;
