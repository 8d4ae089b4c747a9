-- doc/spec/taskcluster.md 8.5: runs that have ended, by the name of their task.
BEGIN;
\ir helper.psql

CREATE FUNCTION pg_temp.stats(name text, since timestamptz DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(' ', s.task_queue_id, coalesce(nullif(s.name, ''), CASE s.name WHEN '' THEN '-' ELSE '*' END), s.completed, s.failed, s.exception), ', ' ORDER BY n)
	FROM (SELECT r.*, row_number() OVER () AS n FROM tq.task_name_stats(stats.name, stats.since) AS r) AS s
$$;
-- A number between those of the subtransactions before and after it.
CREATE TEMP TABLE number (n int);
CREATE FUNCTION pg_temp.number() RETURNS xid8 LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		INSERT INTO number VALUES (1);
	EXCEPTION WHEN OTHERS THEN
		RAISE;
	END;
	RETURN (SELECT max(xmin::text::bigint)::text FROM number);
END
$$;
-- A pass that counts what was ended between two numbers, or since the last pass; other
-- sessions count only what they see.
CREATE TEMP TABLE passes (upto xid8);
CREATE FUNCTION pg_temp.count(since xid8, upto xid8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	pass tq_internal.task_name_pass := ROW (since, upto, 0, tq_internal.clock_now(), upto, tq_internal.clock_now());
BEGIN
	WHILE pass.block IS NOT NULL LOOP
		pass.block := tq_internal.count_names(pass);
	END LOOP;
END
$$;
CREATE FUNCTION pg_temp.count() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	upto CONSTANT xid8 := pg_temp.number();
BEGIN
	PERFORM pg_temp.count(coalesce((SELECT max(p.upto::text::bigint) FROM passes p), 0)::text::xid8, upto);
	INSERT INTO passes VALUES (upto);
END
$$;
-- What the day has is read: no other one begins.
SELECT pg_temp.after_midnight('0') \g /dev/null
CREATE TEMP TABLE mark AS SELECT pg_temp.clock() AS begun;

SELECT tq.enqueue('test/n', task_id => pg_temp.id(name || n), name => name, retries => 3) FROM (VALUES ('mail', 3), ('build', 2)) AS v (name, m), generate_series(1, m) AS n \g /dev/null
SELECT tq.enqueue('test/n', task_id => pg_temp.id('plain')), tq.enqueue('test/m', task_id => pg_temp.id('other'), name => 'mail') \g /dev/null
SELECT pg_temp.after_midnight('3 s') \g /dev/null
SELECT count(*) FROM tq.claim_work('test/n', 'g', 'w', 10) AS n, tq.claim_work('test/m', 'g', 'w', 1) AS m \g /dev/null
SELECT pg_temp.after_midnight('10 s') \g /dev/null
SELECT pg_temp.report('mail1', 'completed'), pg_temp.report('mail2', 'failed'), pg_temp.report('mail3', 'worker-shutdown'), pg_temp.report('build1', 'completed'), pg_temp.report('plain', 'completed'), pg_temp.report('other', 'completed') \g /dev/null
SELECT pg_temp.count() \g /dev/null
SELECT is(pg_temp.stats('test/n'), 'test/n mail 1 1 1, test/n - 1 0 0, test/n build 1 0 0', 'runs that have ended, by name, those with most first; tasks without a name have the empty one');
SELECT is(pg_temp.stats('test/m'), 'test/m mail 1 0 0', 'each queue has its own');
SELECT is(pg_temp.stats('test/*'), 'test/m mail 1 0 0, test/n mail 1 1 1, test/n - 1 0 0, test/n build 1 0 0', 'a pattern');
SELECT is((SELECT wait_p50 BETWEEN '2.5 s' AND '4 s' AND wait_p50 <= wait_p99 AND run_p50 BETWEEN '6 s' AND '8 s' AND run_p95 <= run_p99 FROM tq.task_name_stats('test/n') WHERE name = 'mail'), true, 'how long they waited and took');

-- Each run once: a pass begins with the transaction before which the last one ended.
SELECT pg_temp.after_midnight('20 s') \g /dev/null
SAVEPOINT more;
SELECT pg_temp.report('build2', 'failed') \g /dev/null
RELEASE more;
SELECT pg_temp.count() \g /dev/null
SELECT is(pg_temp.stats('test/n'), 'test/n mail 1 1 1, test/n build 1 1 0, test/n - 1 0 0', 'a later pass adds to it');
SELECT pg_temp.count() \g /dev/null
SELECT pg_temp.count(pg_temp.number(), pg_temp.number()) \g /dev/null
SELECT is(pg_temp.stats('test/n'), 'test/n mail 1 1 1, test/n build 1 1 0, test/n - 1 0 0', 'what was counted is not counted again');

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
SELECT pg_temp.after_midnight('30 s') \g /dev/null
SAVEPOINT more;
SELECT pg_temp.finish_all() \g /dev/null
RELEASE more;
SELECT pg_temp.count() \g /dev/null
SELECT is((SELECT format('%s %s %s', count(*), count(name), string_agg(completed::text, ' ') FILTER (WHERE name IS NULL)) FROM tq.task_name_stats('test/many')), '1001 1000 2', 'a queue has a thousand names, and the rest is together');
SELECT is((SELECT completed FROM tq.task_name_stats('test/many') WHERE name = 'often'), 2::bigint, 'those with most runs come first');
SELECT tq.enqueue('test/many', name => name) FROM unnest(ARRAY['n1', 'late', repeat('x', 250)]) AS name \g /dev/null
SELECT pg_temp.after_midnight('40 s') \g /dev/null
SAVEPOINT more;
SELECT pg_temp.finish_all() \g /dev/null
RELEASE more;
SELECT pg_temp.count() \g /dev/null
SELECT is((SELECT format('%s %s %s', count(*), sum(completed), string_agg(completed::text, ' ') FILTER (WHERE name IS NULL)) FROM tq.task_name_stats('test/many')), '1001 1006 4', 'a name that is there is counted by itself, another one is not');

-- ---- rights ----

CREATE ROLE named;
SELECT tq.grant_queue('named', 'test/n', 'depend'), tq.grant_queue('named', 'test/m', 'read') \g /dev/null
SET ROLE named;
SELECT string_agg(DISTINCT task_queue_id, ' ') AS queues FROM tq.task_name_stats('test/*') \gset
RESET ROLE;
SELECT is(:'queues'::text, 'test/m', 'names are of definitions, and shown to those who may read these');

-- ---- the days ----

SELECT pg_temp.after_midnight('2 days') \g /dev/null
SELECT tq.enqueue('test/day', name => repeat('long', 60)) \g /dev/null
SAVEPOINT more;
SELECT tq.report_completed(task_id, run_id) FROM tq.claim_work('test/day', 'g', 'w') \g /dev/null
RELEASE more;
SELECT pg_temp.count() \g /dev/null
SELECT is(pg_temp.stats('test/n'), NULL, 'by default those of today');
SELECT is(pg_temp.stats('test/n', begun), 'test/n mail 1 1 1, test/n build 1 1 0, test/n - 1 0 0', 'or since a day') FROM mark;
SELECT is((SELECT string_agg(length(name)::text, ' ') FROM tq.task_name_stats('test/day')), '100', 'a name is cut');
SELECT is(count(*), 0::bigint, 'until a day') FROM mark, tq.task_name_stats('test/day', begun, begun + interval '1 day');
SELECT matches(pg_temp.call_as('postgres', format('SELECT tq.task_name_stats(%s)', arguments)), '^TQ400', 'refused: ' || arguments) FROM unnest(ARRAY['NULL', $$'a/b/*'$$, $$since => 'infinity'$$]) AS arguments;
SELECT pg_temp.after_midnight('17 days 1 min 1 s') \g /dev/null
SELECT tq_internal.write_history() \g /dev/null
SELECT is(count(*), 0::bigint, 'they are deleted after two weeks') FROM tq_internal.task_name_history h JOIN tq_internal.queue q ON q.id = h.queue WHERE q.task_queue_id ~ '^test/';

-- ---- when a pass begins ----

-- This transaction is open, so that a pass may count up to it.
CREATE FUNCTION pg_temp.begins(pass tq_internal.task_name_pass) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', p.block, p.since, p.upto = pg_snapshot_xmin(pg_current_snapshot()), extract(epoch FROM tq_internal.clock_now() - p.seen)::int, extract(epoch FROM tq_internal.clock_now() - p.next_seen)::int)
	FROM tq_internal.begin_names(pass) AS p
$$;
CREATE FUNCTION pg_temp.ago(seconds int) RETURNS timestamptz LANGUAGE sql AS $$ SELECT tq_internal.clock_now() - make_interval(secs => seconds) $$;
TRUNCATE tq_internal.queue_history;
SELECT is(pg_temp.begins(NULL), '0 f 3600 3600', 'none where nothing has ended');
SELECT is(pg_temp.begins(('5', '7', NULL, pg_temp.ago(7200), '9', pg_temp.ago(60))), '0 7 t 60 0', 'after an hour, if there were transactions open');
SELECT is(pg_temp.begins(('5', '7', NULL, pg_temp.ago(7200), '7', pg_temp.ago(60))), '5 f 7200 60', 'else not');
INSERT INTO tq_internal.queue_history SELECT 10, pg_temp.ago(30), q.id, 0, 0, 0, 0, 1, 0, 0 FROM tq_internal.queue q WHERE q.task_queue_id = 'test/n';
SELECT is(pg_temp.begins(NULL), '0 0 t 3600 0', 'the first one counts all that has ended');
SELECT is(pg_temp.begins(('5', '7', NULL, pg_temp.ago(15), '9', pg_temp.ago(5))), '0 7 t 5 0', 'one that goes on from the last');
SELECT is(pg_temp.begins(('5', '7', NULL, pg_temp.ago(5), '9', pg_temp.ago(5))), '5 f 5 5', 'not if nothing has ended since');
SELECT is(pg_temp.begins(('5', '7', NULL, pg_temp.ago(15), (pg_current_xact_id()::text::bigint + 1000)::text::xid8, pg_temp.ago(5))), '0 7 t 15 5', 'one that leaves out what transactions may end which are open');
SELECT is(pg_temp.begins(('5', '7', 64, pg_temp.ago(15), '9', pg_temp.ago(5))), '64 5 f 15 5', 'one that is not over goes on');
SELECT is(pg_temp.begins(('5', (pg_current_xact_id()::text::bigint + 1000)::text::xid8, NULL, pg_temp.ago(15), '9', pg_temp.ago(5))), '5 f 15 5', 'none before a transaction has ended');
SELECT * FROM finish();
ROLLBACK;
