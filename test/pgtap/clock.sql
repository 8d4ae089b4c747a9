-- doc/internals.md, "Times": what a clock that was ahead by a day has left is set back, one
-- kind of time after the other.  test/t/049_clock.pl has the clocks of all processes.
BEGIN;
\ir policy.psql

SET cron.database_name = 'elsewhere';

-- How far a time is from now: 'now', within half a minute, or a number of minutes.
CREATE FUNCTION pg_temp.away(t timestamptz) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN abs(m) < 0.5 THEN 'now' ELSE round(m) || ' min' END FROM (SELECT extract(epoch FROM t - pg_temp.clock()) / 60 AS m) AS x
$$;
CREATE FUNCTION pg_temp.number(name text) RETURNS bigint LANGUAGE sql AS $$ SELECT id FROM tq_internal.task WHERE task_id = pg_temp.id(name) $$;
-- Where the timer of a kind of a task is.
CREATE FUNCTION pg_temp.timer(kind int, name text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(pg_temp.away(t.due), ' ' ORDER BY t.due) FROM tq_internal.timer t WHERE t.kind = timer.kind AND pg_temp.number(name) = ANY (t.tasks)
$$;
CREATE FUNCTION pg_temp.make(name text, policy jsonb DEFAULT NULL, run_at timestamptz DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
	SELECT FROM tq.enqueue('test/q-' || name, task_id => pg_temp.id(name), name => name, retries => 3, policy => policy, run_at => run_at)
$$;
CREATE FUNCTION pg_temp.run_times(name text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(', ', pg_temp.away(r.scheduled), pg_temp.away(r.started), pg_temp.away(r.taken_until), pg_temp.away(r.resolved))
	FROM tq_internal.run r WHERE r.task = pg_temp.number(name) AND r.run_id = 0
$$;

SELECT is(tq_internal.set_times_back(true), false, 'nothing is ahead');

-- ---- a day ahead ----

SET tq.clock_offset = '1 day';
SELECT pg_temp.make('runs', '{"runTimeout": 7200, "claimTimeout": 600}'), pg_temp.make('plain'), pg_temp.make('retried', '{"retryBackoff": {"delay": 3600}}'),
	pg_temp.make('failed', '{"deadLetter": true}'), pg_temp.make('at', NULL, pg_temp.clock() + interval '1 hour'), pg_temp.make('waits');
SELECT pg_temp.take(n) FROM unnest('{runs,plain,retried,failed}'::text[]) AS n;
SELECT tq.report_exception(pg_temp.id('retried'), 0, 'worker-shutdown') \g /dev/null
SELECT tq.report_failed(pg_temp.id('failed'), 0, retries_left => 0) \g /dev/null
SELECT tq.schedule_cron('c', '* * * * *', 'test/cron') \g /dev/null
SELECT tq_internal.fire_cron('c') \g /dev/null
UPDATE tq_internal.worker SET last_date_active = pg_temp.clock(), first_claim = pg_temp.clock();
UPDATE tq_internal.activation SET since = pg_temp.clock(), swept = pg_temp.clock();
INSERT INTO tq_internal.timer (due, kind, tasks) SELECT pg_temp.clock(), kind, ARRAY[pg_temp.number('waits')] FROM unnest('{6,7,8}'::int[]) AS kind;
INSERT INTO tq_internal.postponed (task, due, origin, since, failures, step, error)
	VALUES (pg_temp.number('waits'), pg_temp.clock() + interval '1 minute', pg_temp.clock(), pg_temp.clock(), 1, 'deadline', 'x');
INSERT INTO tq_internal.tick (first_id, last_id, published, messages, segments, segment, since, upto, timeline)
	SELECT last_id + 1, last_id + 1, pg_temp.clock(), 0, 0, segment, upto, upto, timeline FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1;
INSERT INTO tq_internal.task_name_pass SELECT '1', '2', NULL, pg_temp.clock() - interval '2 days', '2', pg_temp.clock();
INSERT INTO tq_internal.queue_history SELECT 10, pg_temp.clock() + a, q.id, 1, 0, 0, 0, 0, 0, 0 FROM tq_internal.queue q, unnest('{0,-2 days}'::interval[]) AS a WHERE q.task_queue_id = 'test/q-plain';
RESET tq.clock_offset;

SELECT is(pg_temp.run_times('runs'), '1440 min, 1440 min, 1450 min', 'a run of tomorrow');
SELECT is(pg_temp.timer(3, 'runs'), '1560 min', 'with a timeout then');
SELECT is((SELECT pg_temp.away(d.scheduled) || ', ' || pg_temp.away(d.visible_at) FROM tq_internal.delayed d WHERE d.task = pg_temp.number('retried')), '1440 min, 1500 min', 'a retry');
SELECT is(ahead > interval '23 hours', true, 'the clock was ahead') FROM tq_internal.clock_ahead;

-- ---- set back ----

SELECT is(tq_internal.set_times_back(true), true, 'times are ahead');

SELECT is(pg_temp.run_times('runs'), 'now, now, 10 min', 'a claim lasts as if it had been made now: by its policy');
SELECT is(pg_temp.run_times('plain'), 'now, now, 20 min', 'or by the setting');
SELECT is(pg_temp.timer(3, 'runs'), '120 min', 'and its timeout counts from its start');
SELECT is((SELECT count(*) FROM tq_internal.claim_timer c WHERE c.tasks && ARRAY[pg_temp.number('runs'), pg_temp.number('plain')] AND pg_temp.away(c.due) <> 'now'), 0::bigint, 'its timers are due');
SELECT is((SELECT pg_temp.away(d.scheduled) || ', ' || pg_temp.away(d.visible_at) FROM tq_internal.delayed d WHERE d.task = pg_temp.number('retried')), 'now, 60 min', 'a retry waits for its delay');
SELECT is((SELECT pg_temp.away(x.visible_at) FROM tq_internal.run_detail x WHERE x.task = pg_temp.number('retried') AND x.run_id = 1), '60 min', 'as its detail says');
SELECT is((SELECT pg_temp.away(d.visible_at) FROM tq_internal.delayed d WHERE d.task = pg_temp.number('at')), '1500 min', 'a run_at stays');
SELECT is(pg_temp.timer(6, 'waits'), 'now', 'a cancel is due');
SELECT is(pg_temp.timer(7, 'waits'), 'now', 'so is a gate');
SELECT is(pg_temp.timer(8, 'waits'), 'now', 'and a callback');
SELECT is((SELECT pg_temp.away(due) || ', ' || pg_temp.away(since) || ', ' || pg_temp.away(origin) FROM tq_internal.postponed WHERE task = pg_temp.number('waits')), 'now, now, 1440 min', 'what failed is due');
SELECT is(pg_temp.run_times('failed'), 'now, now, now, now', 'what is over was over now');
SELECT is((SELECT pg_temp.away(resolved) FROM tq_internal.failure WHERE task = pg_temp.number('failed')), 'now', 'so was its failure');
SELECT is((SELECT pg_temp.away(failed_at) FROM tq_internal.dead_letter WHERE task = pg_temp.number('failed')), 'now', 'and its dead letter');
SELECT is((SELECT count(*) FROM tq_internal.tick WHERE published > pg_temp.clock() + interval '1 s'), 0::bigint, 'publications');
SELECT is((SELECT concat_ws(' ', pg_temp.away(seen), pg_temp.away(next_seen)) FROM tq_internal.task_name_pass), '-1440 min now', 'so is how far names are counted');
SELECT is((SELECT string_agg(pg_temp.away(h.at), ' ') FROM tq_internal.queue_history h JOIN tq_internal.queue q ON q.id = h.queue WHERE q.task_queue_id = 'test/q-plain'), '-1440 min', 'the history of times to come is deleted');
SELECT is((SELECT count(*) FROM tq_internal.queue WHERE last_date_active > pg_temp.clock() + interval '1 s'), 0::bigint, 'queues');
SELECT is((SELECT count(*) FROM tq_internal.worker WHERE greatest(last_date_active, first_claim) > pg_temp.clock() + interval '1 s'), 0::bigint, 'workers');
SELECT is((SELECT pg_temp.away(last_fired) || ', ' || pg_temp.away(last_scheduled) FROM tq_internal.cron WHERE name = 'c'), 'now, now', 'a recurring task');
SELECT is((SELECT count(*) FROM tq_internal.activation WHERE greatest(since, swept) > pg_temp.clock() + interval '1 s'), 0::bigint, 'and the use of the database');
SELECT is((SELECT ahead < interval '1 s' FROM tq_internal.clock_ahead), true, 'nothing is ahead any more');
SELECT is(tq_internal.set_times_back(true), false, 'once is enough');

-- ---- each kind by itself ----

CREATE FUNCTION pg_temp.sets_back(statement text, is_first bool DEFAULT false) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN tq_internal.set_times_back(is_first);
END $$;
SELECT is(pg_temp.sets_back(format('UPDATE tq_internal.%s', x)), true, 'alone: ' || x) FROM unnest(ARRAY[
	$$queue SET last_date_active = clock_timestamp() + interval '1 hour'$$, $$cron SET last_fired = clock_timestamp() + interval '1 hour'$$,
	$$tick SET published = clock_timestamp() + interval '1 hour'$$]) AS x;
CREATE FUNCTION pg_temp.older_tick() RETURNS text LANGUAGE sql RETURN
	$$UPDATE tq_internal.tick SET published = clock_timestamp() + interval '1 hour' WHERE last_id < (SELECT max(last_id) FROM tq_internal.tick)$$;
SELECT is(pg_temp.sets_back(pg_temp.older_tick()), false, 'an older publication alone is not looked for each time');
SELECT is(pg_temp.sets_back(pg_temp.older_tick(), true), true, 'but by a process that begins');
SELECT is(pg_temp.sets_back($$UPDATE tq_internal.log_segment SET since = clock_timestamp() + interval '1 hour' WHERE since > '-infinity'$$), true, 'a segment of the log');

SELECT * FROM finish();
ROLLBACK;
