-- doc/spec/taskcluster.md 8.5: the history of queues.  The maintenance worker does not see
-- what is not committed; this session writes it, by a clock that begins at a midnight.
-- How much there is in a queue, and the clock of all processes: test/t/033_counts.pl.
BEGIN;
\ir helper.psql

-- Sets the clock to so long after the midnight, and three seconds; step() returns how many rows are written then.
CREATE FUNCTION pg_temp.go(t interval) RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.after_midnight(t + interval '3 s')
$$;
CREATE FUNCTION pg_temp.step(t interval) RETURNS bigint LANGUAGE sql AS $$ SELECT tq_internal.write_history() FROM pg_temp.go(t) $$;
CREATE FUNCTION pg_temp.rows(step int, name text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(' ', h.at - pg_temp.midnight(), h.created, h.claimed, h.completed, h.failed, h.exception, h.retried, h.expired_claims), ', ' ORDER BY h.at)
	FROM tq_internal.queue_history h JOIN tq_internal.queue q ON q.id = h.queue WHERE h.seconds = step AND q.task_queue_id = name
$$;
-- Of the history from and to so long after the midnight.
CREATE FUNCTION pg_temp.history(name text, a interval, z interval, step interval) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(concat_ws(' ', h.at - pg_temp.midnight(), h.seconds, h.created_per_s, h.claimed_per_s, h.completed_per_s), ', ' ORDER BY h.at)
	FROM tq.queue_history(name, pg_temp.midnight() + a, pg_temp.midnight() + z, step) AS h
$$;
CREATE FUNCTION pg_temp.fault(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	what text;
	detail text;
BEGIN
	EXECUTE call;
	RETURN 'none';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS what = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws(': ', SQLSTATE, what, detail);
END
$$;
SET intervalstyle = 'postgres';
SET timezone = 'UTC';

-- ---------------------------------------------------------------------------
-- What a step writes
-- ---------------------------------------------------------------------------

SELECT tq.enqueue('test/old') \g /dev/null
SELECT is(pg_temp.step('0'), 0::bigint, 'the first step of a process only looks');
SELECT tq.enqueue('test/h', task_id => pg_temp.id('t' || n), retries => 3) FROM generate_series(1, 6) AS n \g /dev/null
SELECT pg_temp.go('4 s') \g /dev/null
SELECT count(*) FROM tq.claim_work('test/h', 'g', 'w', 4) \g /dev/null
SELECT pg_temp.report('t1', 'completed'), pg_temp.report('t2', 'completed'), pg_temp.report('t3', 'failed'), pg_temp.report('t4', 'worker-shutdown') \g /dev/null
SELECT is(pg_temp.step('10 s'), 1::bigint, 'one row for each queue in which something has happened');
SELECT is(pg_temp.rows(10, 'test/h'), '00:00:00 6 4 2 1 1 1 0', 'with what has happened in these ten seconds');
SELECT is(pg_temp.rows(10, 'test/old'), NULL, 'none for a queue in which nothing has');
SELECT is(pg_temp.step('20 s'), 0::bigint, 'none if nothing has happened');
SELECT tq.enqueue('test/h') FROM generate_series(1, 3) \g /dev/null

-- ---- what happens between two steps in the same ten seconds ----

SELECT is(pg_temp.step('30 s'), 1::bigint, 'the first one writes');
SELECT tq.enqueue('test/h') FROM generate_series(1, 2) \g /dev/null
SELECT is(pg_temp.step('30 s'), 0::bigint, 'the second one leaves what has happened to the next');
CREATE FUNCTION pg_temp.fail(t interval) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	written bigint;
BEGIN
	written := pg_temp.step(t);
	RAISE division_by_zero;
EXCEPTION WHEN division_by_zero THEN
	RETURN written;
END
$$;
SELECT is(pg_temp.fail('40 s'), 1::bigint, 'a step that is rolled back to a savepoint');
SELECT tq.enqueue('test/h') \g /dev/null
SELECT is(pg_temp.step('50 s'), 1::bigint, 'is part of the next one');
SELECT is(pg_temp.rows(10, 'test/h'), '00:00:00 6 4 2 1 1 1 0, 00:00:20 3 0 0 0 0 0 0, 00:00:40 3 0 0 0 0 0 0', 'nothing is lost, or counted twice');

-- ---- minutes and hours ----

SELECT tq.enqueue('test/h') FROM generate_series(1, 3) \g /dev/null
SELECT is(pg_temp.step('1 min'), 2::bigint, 'ten seconds, and the minute that has ended');
SELECT is(pg_temp.rows(60, 'test/h'), '00:00:00 15 4 2 1 1 1 0', 'it is the sum');
SELECT is(pg_temp.step('2 min'), 0::bigint, 'no row of an idle minute');
SELECT tq.enqueue('test/h') FROM generate_series(1, 12) \g /dev/null
SELECT is(pg_temp.step('59 min 30 s'), 1::bigint, 'a minute is not summed up before its end');
SELECT pg_temp.go('59 min 40 s') \g /dev/null
SELECT count(*) FROM tq.claim_work('test/h', 'g', 'w', 5) \g /dev/null
SELECT is(pg_temp.step('1 hour 10 s'), 1::bigint, 'the step that ends it comes late');
SELECT is(pg_temp.step('1 hour 1 min'), 3::bigint, 'the next one finds both minutes and the hour');
SELECT is(pg_temp.rows(60, 'test/h'), '00:00:00 15 4 2 1 1 1 0, 00:59:00 12 0 0 0 0 0 0, 01:00:00 0 5 0 0 0 0 0', 'minutes');
SELECT is(pg_temp.rows(3600, 'test/h'), '00:00:00 27 4 2 1 1 1 0', 'the hour');
SELECT is(pg_temp.rows(10, 'test/h'), '00:59:20 12 0 0 0 0 0 0, 01:00:00 0 5 0 0 0 0 0', 'ten seconds are deleted after an hour');

-- ---------------------------------------------------------------------------
-- What a reader gets
-- ---------------------------------------------------------------------------

SELECT is(pg_temp.history('test/h', '1 hour', '1 hour 30 s', '10 s'), '01:00:00 10 0 0.5 0, 01:00:10 10 0 0 0, 01:00:20 10 0 0 0', 'a row for each step, with rates');
SELECT is(pg_temp.history('test/h', '59 min 20 s', '59 min 50 s', '30 s'), '00:59:00 30 0.4 0 0, 00:59:30 20 0 0 0', 'the first step may begin earlier; one that has not ended counts as long as it has lasted');
SELECT pg_temp.go('1 hour 1 min 4 s') \g /dev/null
SELECT count(tq.enqueue('test/h')) FROM generate_series(1, 30) \g /dev/null
SELECT pg_temp.step('1 hour 1 min 10 s') \g /dev/null
SELECT is(pg_temp.history('test/h', '0', '2 hours', '1 hour'), (SELECT format('00:00:00 3600 %s %s %s, 01:00:00 70 %s %s 0', 27 / 3600.0::float8, 4 / 3600.0::float8, 2 / 3600.0::float8, 30 / 70.0::float8, 5 / 70.0::float8)),
	'an hour that is summed up, and one that is still made of minutes and ten seconds');
SELECT is(pg_temp.history('test/h', '0', '2 hours', NULL), pg_temp.history('test/h', '0', '2 hours', '1 min'), 'a step that suits the times');
SELECT is((SELECT array_agg(DISTINCT seconds) FROM tq.queue_history('test/h', pg_temp.midnight() - interval '10 min', pg_temp.midnight() + interval '10 min', '20 s')), '{60}', 'no step is finer than what is kept');
SELECT is((SELECT string_agg(DISTINCT task_queue_id, ' ') FROM tq.queue_history('test/*')), 'test/h', 'a pattern; queues in which nothing has happened have no rows') WHERE (SELECT source <> 'memory' FROM tq_internal.count_state());
SELECT is(count(*), 0::bigint, 'nothing is known of another queue') FROM tq.queue_history('other/*');
SELECT is(count(*), 0::bigint, 'nor of the future') FROM tq.queue_history('test/h', pg_temp.midnight() + interval '2 hours', pg_temp.midnight() + interval '3 hours');
-- Runs have waited four seconds here, and then an hour.
SELECT is((SELECT wait_p50 BETWEEN '3 s' AND '5 s' AND wait_p50 <= wait_p95 AND wait_p95 <= wait_p99 AND run_p50 < '1 s' FROM tq.queue_history('test/h', pg_temp.midnight(), pg_temp.midnight() + interval '1 min', '1 min')), true, 'how long runs waited, and took');
SELECT is((SELECT wait_p99 BETWEEN '45 min' AND '75 min' FROM tq.queue_history('test/h', pg_temp.midnight(), step => '1 day')), true, 'of a day, which is the sum of all');
SELECT is((SELECT bool_and(wait_p50 IS NULL AND run_p50 IS NULL) FROM tq.queue_history('test/h', pg_temp.midnight() + interval '59 min', pg_temp.midnight() + interval '1 hour')), true, 'NULL where none was claimed, or ended');

-- ---- arguments ----

SELECT matches(pg_temp.fault($$SELECT tq.queue_history(NULL)$$), '^TQ400: .*queue.*NULL', 'no queue');
SELECT matches(pg_temp.fault($$SELECT tq.queue_history('a/b/*')$$), '^TQ400: invalid task_queue_id "a/b/\*"', 'a pattern of no queue');
SELECT is(pg_temp.fault(format('SELECT tq.queue_history(step => %L)', step)), format('TQ400: invalid step of %s s: A step is a multiple of 10 seconds, at most 365 days, without months.', trim_scale(extract(epoch FROM step))), 'a step of ' || step)
FROM unnest('{00:00:00,-00:00:10,00:00:15,00:00:10.5,1 mon,366 days}'::interval[]) AS step;
SELECT matches(pg_temp.fault($$SELECT tq.queue_history('*', now(), now() - interval '1 min')$$), '^TQ400: invalid until ".*": It is before since, ', 'an end before the beginning');
SELECT matches(pg_temp.fault(format('SELECT tq.queue_history(%s => %L)', argument, t)), format('^TQ400: invalid %s "%s"', argument, t), argument || ' ' || t) FROM unnest('{since,until}'::text[]) AS argument, unnest('{infinity,-infinity}'::text[]) AS t;
SELECT matches(pg_temp.fault($$SELECT tq.queue_history(since => '1990-01-01', step => '1 hour')$$), '^TQ400: a history of too many rows: It would have \d+ steps of 01:00:00 for each of \d+ queues; the limits are 11000 steps and 1000000 rows.', 'too many rows');

-- ---------------------------------------------------------------------------
-- Who may see it
-- ---------------------------------------------------------------------------

CREATE ROLE red;
CREATE ROLE monitor IN ROLE pg_monitor;
CREATE ROLE admin IN ROLE tq_admin;
CREATE FUNCTION pg_temp.seen(who text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	seen text;
BEGIN
	PERFORM set_config('role', who, true);
	SELECT string_agg(DISTINCT h.task_queue_id, ' ' ORDER BY h.task_queue_id) INTO seen FROM tq.queue_history('*', pg_temp.midnight()) AS h WHERE h.task_queue_id ~ '^(test|red)/';
	PERFORM set_config('role', 'none', true);
	RETURN coalesce(seen, 'nothing');
END
$$;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA pg_temp TO PUBLIC;
SELECT count(tq.enqueue('red/h')) \g /dev/null
SELECT is(pg_temp.step('1 hour 1 min 20 s'), 1::bigint, 'another queue');
SELECT is(pg_temp.seen('red'), 'nothing', 'a role without rights sees nothing');
SELECT tq.grant_queue('red', 'red/*', 'read') \g /dev/null
SELECT is(pg_temp.seen('red'), 'red/h', 'with the right to read queues it sees these');
SELECT is(pg_temp.seen(who), 'red/h test/h', who || ' sees all') FROM unnest('{monitor,admin}'::text[]) AS who;

-- ---------------------------------------------------------------------------
-- How long it is kept
-- ---------------------------------------------------------------------------

CREATE FUNCTION pg_temp.kept() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(tq_internal.history_kept(s)::text, ', ' ORDER BY s) FROM unnest('{10,60,3600}'::int[]) AS s $$;
SELECT is(extract(epoch FROM tq_internal.history_kept(seconds)), kept::numeric, 'steps of ' || seconds || ' s are kept by default') FROM (VALUES (10, 3600), (60, 86400), (3600, 90 * 86400)) AS v (seconds, kept);
SET tq.history_minutes = '10 min';
SET tq.history_hours = 0;
SET tq.history_seconds = '3 h';
SELECT is(extract(epoch FROM tq_internal.history_kept(seconds)), 10800::numeric, 'what is summed up is kept as long as that of which it is: ' || seconds) FROM unnest('{10,60,3600}'::int[]) AS seconds;
RESET tq.history_hours;
SET tq.history_seconds = 0;
SELECT tq.enqueue('test/h') \g /dev/null
SELECT is(pg_temp.step('1 hour 2 min'), 0::bigint, 'without a history none is written');
SELECT is(count(*), 0::bigint, 'and what there was is deleted') FROM tq_internal.queue_history h JOIN tq_internal.queue q ON q.id = h.queue WHERE q.task_queue_id ~ '^(test|red)/';
RESET tq.history_seconds;
RESET tq.clock_offset;

-- ---------------------------------------------------------------------------
-- The last ten minutes in tq.top()
-- ---------------------------------------------------------------------------

SELECT is(count(*), 0::bigint, 'no lines without a history') FROM tq.top() AS line WHERE line ~ 'LAST TEN MINUTES';
SELECT pg_temp.go('2 hours') \g /dev/null
INSERT INTO tq_internal.queue_history SELECT 10, date_bin('30 s', tq_internal.clock_now(), 'epoch') - n * interval '30 s', q.id, 30 * (n % 8), 0, 0, 60, 0, 30, 0
	FROM tq_internal.queue q, unnest('{1,2,3,4,5,6,7,16,20}'::int[]) AS n WHERE q.task_queue_id = 'test/h';
CREATE FUNCTION pg_temp.sparks() RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(line, E'\n' ORDER BY n) FROM tq.top() WITH ORDINALITY AS t (line, n) WHERE line ~ '^LAST TEN|^test/h  *[^ 0-9]'
$$;
SET client_encoding = 'UTF8';
SELECT is(pg_temp.sparks(), $$LAST TEN MINUTES                    IN                     MAX/s  OUT                    MAX/s
test/h                              ▅▁▁▁▁▁▁▁▁▁▁▁▁█▇▆▅▄▃▂       7  █▁▁▁█▁▁▁▁▁▁▁▁███████       3$$, 'a line of twenty half minutes, as high as their part of the greatest');
SET client_encoding = 'LATIN1';
SELECT is(pg_temp.sparks(), $$LAST TEN MINUTES                    IN                     MAX/s  OUT                    MAX/s
test/h                              =____________#*+=:-.       7  #___#________#######       3$$, 'in characters that each client has');
RESET client_encoding;
SELECT is((SELECT max(length(line)) <= 98 FROM tq.top() AS line), true, 'at most 98 characters');
SELECT * FROM finish();
ROLLBACK;
