-- ---------------------------------------------------------------------------
-- The history of queues
--
-- The step "history" of maintenance writes what has happened in each queue every ten
-- seconds, sums that up by the minute and the hour, and deletes what is over.  Only the
-- maintenance worker does (src/api/history_api.c says why), so it waits for no lock: the
-- rows of tq_internal.queue_history have no other writer, but set_times_back(), which it
-- calls itself.  A step that nothing happened in writes nothing.
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_internal.history_changes(only_begin bool DEFAULT false) RETURNS TABLE (queue int,
	created int, claimed int, retried int, completed int, failed int, exception int, expired_claims int,
	blocked int, delayed int, pending int, running int, waited bytea, ran bytea)
	AS 'MODULE_PATHNAME', 'tq_history_changes' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION tq_internal.history_changes(bool) IS 'what the counters of queues have gained since this process called it last; the first call of a process has no rows; only_begin: nothing else is done';

CREATE FUNCTION tq_internal.exact_gauges(queue int) RETURNS int[]
	AS 'MODULE_PATHNAME', 'tq_exact_gauges' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION tq_internal.exact_gauges(int) IS 'unscheduled, delayed, pending and running tasks of a queue by its counters; NULL if they are not exact';

CREATE FUNCTION tq_internal.histogram_add(internal, bytea) RETURNS internal
	AS 'MODULE_PATHNAME', 'tq_histogram_add' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.histogram_add(internal, bytea) IS 'adds a stored distribution to a sum';
CREATE FUNCTION tq_internal.histogram_bytes(internal) RETURNS bytea
	AS 'MODULE_PATHNAME', 'tq_histogram_bytes' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.histogram_bytes(internal) IS 'a sum of distributions as it is stored';
CREATE AGGREGATE tq_internal.histogram_sum(bytea) (
	SFUNC = tq_internal.histogram_add, STYPE = internal, FINALFUNC = tq_internal.histogram_bytes);
COMMENT ON AGGREGATE tq_internal.histogram_sum(bytea) IS 'sum of stored distributions; NULL: of none';
CREATE FUNCTION tq_internal.histogram_of(duration interval) RETURNS bytea
	AS 'MODULE_PATHNAME', 'tq_histogram_of' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION tq_internal.histogram_of(interval) IS 'the distribution of one duration';
CREATE FUNCTION tq_internal.histogram_part(histogram bytea, part float8) RETURNS interval
	AS 'MODULE_PATHNAME', 'tq_histogram_part' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION tq_internal.histogram_part(bytea, float8) IS 'the duration that this part of a stored distribution does not exceed';

-- What is summed up from finer rows lasts at least as long, and those until then.
CREATE FUNCTION tq_internal.history_kept(seconds int) RETURNS interval LANGUAGE plpgsql STABLE AS $$
DECLARE
	kept interval := current_setting('tq.history_seconds')::interval;
BEGIN
	IF kept = '0' THEN
		RETURN kept;
	END IF;
	kept := greatest(kept, '2 minutes');
	IF seconds >= 60 THEN
		kept := greatest(kept, '2 hours', current_setting('tq.history_minutes')::interval);
	END IF;
	IF seconds >= 3600 THEN
		kept := greatest(kept, current_setting('tq.history_hours')::interval);
	END IF;
	RETURN kept;
END
$$;
COMMENT ON FUNCTION tq_internal.history_kept(int) IS 'how long the history of queues is kept in steps of so many seconds: 10, 60 or 3600; 0: there is none';

-- Rows of a step that has been summed up come no later: ten seconds are written before
-- their minute, and minutes before their hour.
CREATE FUNCTION tq_internal.sum_history(fine int, coarse int, ended timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	step interval := make_interval(secs => coarse);
	first timestamptz := coalesce((SELECT max(h.at) + step FROM tq_internal.queue_history h WHERE h.seconds = coarse), '-infinity');
	last timestamptz := date_bin(step, ended, 'epoch');
	written bigint;
BEGIN
	INSERT INTO tq_internal.queue_history
		SELECT coarse, s.at, s.queue, s.created, s.claimed, s.retried, s.completed, s.failed, s.exception, s.expired_claims,
			s.gauges[2], s.gauges[3], s.gauges[4], s.gauges[5], s.waited, s.ran
		FROM (SELECT date_bin(step, h.at, 'epoch') AS at, h.queue, least(sum(h.created), 2147483647) AS created, least(sum(h.claimed), 2147483647) AS claimed,
				least(sum(h.retried), 2147483647) AS retried, least(sum(h.completed), 2147483647) AS completed, least(sum(h.failed), 2147483647) AS failed,
				least(sum(h.exception), 2147483647) AS exception, least(sum(h.expired_claims), 2147483647) AS expired_claims,
				max(ARRAY[extract(epoch FROM h.at)::bigint, h.blocked, h.delayed, h.pending, h.running]) FILTER (WHERE h.pending IS NOT NULL) AS gauges,
				tq_internal.histogram_sum(h.waited) AS waited, tq_internal.histogram_sum(h.ran) AS ran
			FROM tq_internal.queue_history h WHERE h.seconds = fine AND h.at >= first AND h.at < last GROUP BY 1, 2) AS s
		ON CONFLICT DO NOTHING;
	GET DIAGNOSTICS written = ROW_COUNT;
	RETURN written;
END
$$;
COMMENT ON FUNCTION tq_internal.sum_history(int, int, timestamptz) IS 'sums the history of queues up to larger steps, of those that have ended; returns how many rows';

-- A worker that comes twice in ten seconds leaves what has happened in between to the
-- next ones: the minute that has ended may be summed up already.
CREATE FUNCTION tq_internal.history_is_written(began timestamptz) RETURNS bool LANGUAGE sql STABLE AS $$
	SELECT EXISTS (SELECT FROM tq_internal.queue_history h WHERE h.seconds = 10 AND h.at = began)
		OR EXISTS (SELECT FROM tq_internal.queue_history h WHERE h.seconds = 60 AND h.at = date_bin('1 min', began, 'epoch'))
		OR EXISTS (SELECT FROM tq_internal.queue_history h WHERE h.seconds = 3600 AND h.at = date_bin('1 hour', began, 'epoch'))
$$;
COMMENT ON FUNCTION tq_internal.history_is_written(timestamptz) IS 'whether the step of ten seconds that began then, or what it is summed up to, is written';

CREATE FUNCTION tq_internal.write_history() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	ended timestamptz := date_bin('10 s', tq_internal.clock_now(), 'epoch');
	ends_minute bool := ended = date_bin('1 min', ended, 'epoch');
	is_kept bool := tq_internal.history_kept(10) > '0';
	written bigint := 0;
	size int;
BEGIN
	IF is_kept AND tq_internal.history_is_written(ended - interval '10 s') THEN
		PERFORM tq_internal.history_changes(only_begin => true);
	ELSIF is_kept THEN
		INSERT INTO tq_internal.queue_history SELECT 10, ended - interval '10 s', c.* FROM tq_internal.history_changes() c ON CONFLICT DO NOTHING;
		GET DIAGNOSTICS written = ROW_COUNT;
	END IF;
	IF is_kept AND ends_minute THEN
		written := written + tq_internal.sum_history(10, 60, ended) + tq_internal.sum_history(60, 3600, ended);
	END IF;
	FOREACH size IN ARRAY CASE WHEN ends_minute THEN '{10,60,3600}'::int[] ELSE '{}' END LOOP
		DELETE FROM tq_internal.queue_history h WHERE h.seconds = size AND h.at < ended - tq_internal.history_kept(size);
	END LOOP;
	IF ends_minute THEN
		DELETE FROM tq_internal.task_name_history h WHERE h.day < ended - least(tq_internal.history_kept(3600), '14 days');
	END IF;
	RETURN written;
END
$$;
COMMENT ON FUNCTION tq_internal.write_history() IS 'writes what has happened in queues in the last ten seconds, and what is summed up of it; deletes what is over; returns how many rows it has written';

-- ---- by the names of tasks ----
--
-- Counters by name would make each end of a run dearer.  So step "names" of maintenance
-- looks for the runs that have ended: a pass over the table of runs, a part of it in each
-- step, counts what transactions since the pass before have ended, each run once,
-- because what has ended stays where it is.  A pass counts up to the oldest transaction
-- that is open or prepared when it begins; what that one and later ones end is left to the
-- next pass.  How far a pass has come is written together with what it has counted.

-- Begins a pass if one is over, and if the history shows that runs have ended since; a step
-- of ten seconds may have begun twenty before it is written.
CREATE FUNCTION tq_internal.begin_names(pass tq_internal.task_name_pass) RETURNS tq_internal.task_name_pass LANGUAGE plpgsql STABLE AS $$
DECLARE
	now CONSTANT timestamptz := tq_internal.clock_now();
	snapshot CONSTANT pg_snapshot := pg_current_snapshot();
	upto CONSTANT xid8 := pg_snapshot_xmin(snapshot);
BEGIN
	IF pass.since IS NULL THEN
		pass := ROW ('0', '0', NULL, now - interval '1 hour', '0', now - interval '1 hour');
	END IF;
	IF pass.block IS NOT NULL OR upto <= pass.upto
		OR NOT (pass.upto < pass.next AND pass.seen < now - tq_internal.history_kept(10))
			AND NOT EXISTS (SELECT FROM tq_internal.queue_history h WHERE h.seconds = 10 AND h.at >= pass.seen - interval '20 s' AND h.completed + h.failed + h.exception > 0) THEN
		RETURN pass;
	END IF;
	IF upto >= pass.next THEN
		pass := ROW (pass.upto, upto, 0, pass.next_seen, pg_snapshot_xmax(snapshot), now);
	ELSE
		pass := ROW (pass.upto, upto, 0, pass.seen, pass.next, pass.next_seen);
	END IF;
	RETURN pass;
END
$$;
COMMENT ON FUNCTION tq_internal.begin_names(tq_internal.task_name_pass) IS 'how far runs are counted by name, with a pass that begins if it is time';

-- A queue has a thousand names a day: those that come first, of several at once those with
-- most runs.
CREATE FUNCTION tq_internal.count_names(pass tq_internal.task_name_pass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	own CONSTANT numeric := pg_current_xact_id()::text::numeric;		-- age() counts back from it
	youngest CONSTANT int := greatest(own - pass.upto::text::numeric, -2147483648);
	eldest CONSTANT int := least(own - pass.since::text::numeric, 2147483647);
	block CONSTANT bigint := pass.block;
	blocks CONSTANT int := 64;
	first tid := format('(%s,0)', block)::tid;
	last tid := format('(%s,0)', block + blocks)::tid;
BEGIN
	WITH found AS MATERIALIZED (
		SELECT date_bin('1 day', r.resolved, 'epoch') AS day, t.queue, coalesce(left(t.metadata ->> 'name', 100), '') AS name, count(*) AS runs,
			count(*) FILTER (WHERE r.state = 3) AS completed, count(*) FILTER (WHERE r.state = 4) AS failed, count(*) FILTER (WHERE r.state = 5) AS exception,
			tq_internal.histogram_sum(tq_internal.histogram_of(r.started - r.scheduled)) AS waited, tq_internal.histogram_sum(tq_internal.histogram_of(r.resolved - r.started)) AS ran
		FROM tq_internal.run r JOIN tq_internal.task t ON t.id = r.task
		WHERE r.ctid >= first AND r.ctid < last AND age(r.xmin) <= eldest AND age(r.xmin) > youngest
			AND r.resolved >= pass.seen - interval '1 day'		-- a row that is older has a number which others have got again
		GROUP BY 1, 2, 3
	), known AS (
		SELECT d.day, d.queue, (SELECT count(*) FROM tq_internal.task_name_history k WHERE k.day = d.day AND k.queue = d.queue AND NOT k.is_rest) AS names
		FROM (SELECT DISTINCT f.day, f.queue FROM found f) AS d
	), placed AS (
		SELECT f.*, h.name IS NULL AND coalesce(k.names, 0) + row_number() OVER (PARTITION BY f.day, f.queue, h.name IS NULL ORDER BY f.runs DESC, f.name) > 1000 AS is_rest
		FROM found f LEFT JOIN tq_internal.task_name_history h ON h.day = f.day AND h.queue = f.queue AND NOT h.is_rest AND h.name = f.name
			LEFT JOIN known k ON k.day = f.day AND k.queue = f.queue
	)
	INSERT INTO tq_internal.task_name_history AS h
		SELECT p.day, p.queue, p.is_rest, CASE WHEN p.is_rest THEN '' ELSE p.name END, sum(p.completed), sum(p.failed), sum(p.exception),
			tq_internal.histogram_sum(p.waited), tq_internal.histogram_sum(p.ran)
		FROM placed p GROUP BY 1, 2, 3, 4
		ON CONFLICT (day, queue, is_rest, name) DO UPDATE SET completed = h.completed + excluded.completed, failed = h.failed + excluded.failed, exception = h.exception + excluded.exception,
			waited = (SELECT tq_internal.histogram_sum(v.x) FROM (VALUES (h.waited), (excluded.waited)) AS v (x)), ran = (SELECT tq_internal.histogram_sum(v.x) FROM (VALUES (h.ran), (excluded.ran)) AS v (x));
	RETURN CASE WHEN (block + blocks) * current_setting('block_size')::bigint < pg_relation_size('tq_internal.run') THEN block + blocks END;
END
$$;
COMMENT ON FUNCTION tq_internal.count_names(tq_internal.task_name_pass) IS 'counts the runs of a part of a pass by the name of their task; returns the block at which the next part begins, NULL: that was the end';

CREATE FUNCTION tq_internal.write_names() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	ends CONSTANT timestamptz := clock_timestamp() + interval '40 ms';
	pass tq_internal.task_name_pass;
	parts bigint := 0;
BEGIN
	IF tq_internal.history_kept(10) = '0' THEN
		RETURN 0;
	END IF;
	SELECT p.* INTO pass FROM tq_internal.task_name_pass p;
	pass := tq_internal.begin_names(pass);
	WHILE pass.block IS NOT NULL AND (parts = 0 OR clock_timestamp() < ends) LOOP
		pass.block := tq_internal.count_names(pass);
		parts := parts + 1;
	END LOOP;
	IF parts > 0 THEN
		UPDATE tq_internal.task_name_pass SET since = pass.since, upto = pass.upto, block = pass.block, seen = pass.seen, next = pass.next, next_seen = pass.next_seen;
		INSERT INTO tq_internal.task_name_pass SELECT pass.* WHERE NOT FOUND;
	END IF;
	RETURN parts;
END
$$;
COMMENT ON FUNCTION tq_internal.write_names() IS 'counts runs that have ended by the name of their task, for 40 ms; returns how many parts of the table it has read';

-- ---- readers ----

CREATE FUNCTION tq_internal.history_queues(queue text) RETURNS int[] LANGUAGE plpgsql STABLE AS $$
DECLARE
	name text := tq_internal.arg_queues(queue);
	sees_all bool := has_table_privilege(tq_internal.caller(), 'tq_internal.all_queue_stats', 'SELECT');
BEGIN
	RETURN coalesce((SELECT array_agg(q.id) FROM tq_internal.queue q
		WHERE (q.task_queue_id = name OR right(name, 1) = '*' AND starts_with(q.task_queue_id, left(name, -1)))
			AND (sees_all OR tq_internal.has_scope('queue:pending-count:' || q.task_queue_id) AND tq_internal.has_scope('queue:claimed-count:' || q.task_queue_id)
				AND tq_internal.has_scope('queue:get-task-queue:' || q.task_queue_id))), '{}');
END
$$;
COMMENT ON FUNCTION tq_internal.history_queues(text) IS 'queues that an argument stands for, and that the caller sees in tq.queue_stats';

-- By few queues the index is asked for each step of each, and else for all of a time.
CREATE FUNCTION tq_internal.history_rows(step int, first timestamptz, last timestamptz, queues int[]) RETURNS SETOF tq_internal.queue_history LANGUAGE plpgsql STABLE AS $$
DECLARE
	size int;
	upto timestamptz;
BEGIN
	FOREACH size IN ARRAY '{3600,60,10}'::int[] LOOP
		CONTINUE WHEN step % size <> 0;
		upto := CASE WHEN size = 10 THEN last
			ELSE least(last, (SELECT max(h.at) + make_interval(secs => size) FROM tq_internal.queue_history h WHERE h.seconds = size)) END;
		CONTINUE WHEN upto <= first OR upto IS NULL;
		IF cardinality(queues) <= 20 THEN
			RETURN QUERY SELECT h.* FROM generate_series(first, upto - interval '1 us', make_interval(secs => size)) AS g (at)
				JOIN tq_internal.queue_history h ON h.seconds = size AND h.at = g.at AND h.queue = ANY (queues);
		ELSE
			RETURN QUERY SELECT h.* FROM tq_internal.queue_history h WHERE h.seconds = size AND h.at >= first AND h.at < upto AND h.queue + 0 = ANY (queues);	-- not one scan for each of them
		END IF;
		first := upto;
	END LOOP;
END
$$;
COMMENT ON FUNCTION tq_internal.history_rows(int, timestamptz, timestamptz, int[]) IS 'rows of the history of queues, in the largest steps that a step of so many seconds is made of, and in smaller ones where these are not summed up yet';

CREATE FUNCTION tq_internal.bad_history(what text, detail text, hint text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION '%', what USING ERRCODE = 'TQ400', DETAIL = detail, HINT = hint;
END
$$;
COMMENT ON FUNCTION tq_internal.bad_history(text, text, text) IS 'raises TQ400';

-- The step of a history: that which was given, but no finer than what is kept from
-- the first time on; or one of these, so that there are at most 500.
CREATE FUNCTION tq_internal.history_step(step interval, first timestamptz, last timestamptz, now timestamptz) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
	least_seconds int := CASE WHEN first >= now - tq_internal.history_kept(10) THEN 10 WHEN first >= now - tq_internal.history_kept(60) THEN 60 ELSE 3600 END;
	seconds numeric := extract(epoch FROM step);
BEGIN
	IF step IS NULL THEN
		RETURN (SELECT min(s) FROM unnest('{10,30,60,300,900,3600,10800,21600,43200,86400}'::int[]) AS s
			WHERE s >= least_seconds AND (s = 86400 OR s * 500 >= extract(epoch FROM last - first)));
	END IF;
	IF extract(month FROM step) <> 0 OR extract(year FROM step) <> 0 OR seconds < 10 OR seconds % 10 <> 0 OR seconds > 31536000 THEN
		PERFORM tq_internal.bad_history(format('invalid step of %s s', trim_scale(seconds)), 'A step is a multiple of 10 seconds, at most 365 days, without months.', 'Leave it out for a step that suits the times.');
	END IF;
	RETURN ceil(seconds / least_seconds) * least_seconds;
END
$$;
COMMENT ON FUNCTION tq_internal.history_step(interval, timestamptz, timestamptz, timestamptz) IS 'seconds of a step of the history of queues between these times';

CREATE FUNCTION tq.queue_history(queue text DEFAULT '*', since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL, step interval DEFAULT NULL)
	RETURNS TABLE (task_queue_id text, at timestamptz, seconds int, created_per_s float8, claimed_per_s float8, completed_per_s float8, failed_per_s float8,
		exception_per_s float8, retried_per_s float8, expired_claims_per_s float8, pending bigint, delayed bigint, blocked bigint, running bigint,
		wait_p50 interval, wait_p95 interval, wait_p99 interval, run_p50 interval, run_p95 interval, run_p99 interval)
	LANGUAGE tq_read AS $$
DECLARE
	now timestamptz := tq_internal.clock_now();
	ended timestamptz := date_bin('10 s', now - interval '2 s', 'epoch');	-- the maintenance worker has written by then
	queues int[];
	last timestamptz;
	first timestamptz;
	stride interval;
	steps bigint;
BEGIN
	PERFORM tq_internal.not_null(queue, 'queue');
	queues := tq_internal.history_queues(queue);
	last := least(coalesce(until, now), now);
	first := coalesce(since, last - interval '1 hour');
	IF NOT isfinite(since) THEN
		PERFORM tq_internal.bad_history(format('invalid since "%s"', since), 'It is not finite.', 'Give a time, or leave it out for the last hour.');
	ELSIF until < first OR NOT isfinite(until) THEN
		PERFORM tq_internal.bad_history(format('invalid until "%s"', until), format('It is before since, %s, or not finite.', first), 'Give a later time, or leave it out for now.');
	END IF;
	stride := make_interval(secs => tq_internal.history_step(step, first, last, now));
	first := date_bin(stride, first, 'epoch');
	last := least(last, ended);
	steps := ceil(extract(epoch FROM last - first) / extract(epoch FROM stride));
	IF steps > 11000 OR steps * cardinality(queues) > 1000000 THEN
		PERFORM tq_internal.bad_history('a history of too many rows', format('It would have %s steps of %s for each of %s queues; the limits are 11000 steps and 1000000 rows.', steps, stride, cardinality(queues)),
			'Give a larger step, later times or fewer queues.');
	END IF;
	RETURN QUERY
		WITH stored AS MATERIALIZED (
			SELECT h.* FROM tq_internal.history_rows(extract(epoch FROM stride)::int, first, last, queues) AS h
		), active AS MATERIALIZED (
			SELECT DISTINCT s.queue AS id FROM stored s
		), shown AS (	-- where nothing has happened since then, there is what there was
			SELECT q.id, q.task_queue_id, NULL::bigint[] AS level FROM tq_internal.queue q WHERE q.id IN (SELECT a.id FROM active a)
			UNION ALL
			SELECT i.id, i.task_queue_id, i.level
			FROM (SELECT q.id, q.task_queue_id, 0 || tq_internal.exact_gauges(q.id)::bigint[] AS level FROM tq_internal.queue q
				WHERE q.id = ANY (queues) AND last = ended AND q.id NOT IN (SELECT a.id FROM active a)) AS i
			WHERE 0 < ANY (i.level)
		), part AS (	-- each step has a row without anything; statements of tq join by nested loops
			SELECT s.queue AS id, date_bin(stride, s.at, 'epoch') AS began, s.created, s.claimed, s.completed, s.failed, s.exception, s.retried, s.expired_claims, s.waited, s.ran,
				CASE WHEN s.pending IS NOT NULL THEN ARRAY[extract(epoch FROM s.at)::bigint, s.blocked, s.delayed, s.pending, s.running] END AS gauges, NULL AS name
			FROM stored s
			UNION ALL
			SELECT w.id, g.at, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, w.level, w.task_queue_id FROM shown w CROSS JOIN generate_series(first, last - interval '1 us', stride) AS g (at)
		), whole AS (
			SELECT p.id, p.began, max(p.name) AS name, sum(p.created) AS created, sum(p.claimed) AS claimed, sum(p.completed) AS completed, sum(p.failed) AS failed,
				sum(p.exception) AS exception, sum(p.retried) AS retried, sum(p.expired_claims) AS expired_claims, max(p.gauges) AS gauges,
				tq_internal.histogram_sum(p.waited) AS waited, tq_internal.histogram_sum(p.ran) AS ran
			FROM part p GROUP BY 1, 2
		)
		SELECT l.name, l.began, l.length::int, l.created / l.length, l.claimed / l.length, l.completed / l.length, l.failed / l.length, l.exception / l.length,
			l.retried / l.length, l.expired_claims / l.length, l.level[4], l.level[3], l.level[2], l.level[5],
			tq_internal.histogram_part(l.waited, 0.5), tq_internal.histogram_part(l.waited, 0.95), tq_internal.histogram_part(l.waited, 0.99),
			tq_internal.histogram_part(l.ran, 0.5), tq_internal.histogram_part(l.ran, 0.95), tq_internal.histogram_part(l.ran, 0.99)
		FROM (SELECT h.*, extract(epoch FROM least(stride, last - h.began))::float8 AS length, max(h.gauges) OVER (PARTITION BY h.id ORDER BY h.began) AS level FROM whole h) AS l
		ORDER BY 1, 2;
END
$$;
COMMENT ON FUNCTION tq.queue_history(text, timestamptz, timestamptz, interval) IS
	'what has happened in queues, a row for each step of each queue: rates, what there was at its end, and how long runs waited and took';

CREATE FUNCTION tq.task_name_stats(queue text DEFAULT '*', since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL)
	RETURNS TABLE (task_queue_id text, name text, completed bigint, failed bigint, exception bigint,
		wait_p50 interval, wait_p95 interval, wait_p99 interval, run_p50 interval, run_p95 interval, run_p99 interval)
	LANGUAGE tq_read AS $$
DECLARE
	first timestamptz := date_bin('1 day', coalesce(since, tq_internal.clock_now()), 'epoch');
	sees_all bool := has_table_privilege(tq_internal.caller(), 'tq_internal.all_task_overview', 'SELECT');
	pattern text;
BEGIN
	PERFORM tq_internal.not_null(queue, 'queue');
	pattern := tq_internal.arg_queues(queue);
	IF NOT isfinite(since) THEN
		PERFORM tq_internal.bad_history(format('invalid since "%s"', since), 'It is not finite.', 'Give a time, or leave it out for today.');
	END IF;
	RETURN QUERY
		SELECT s.task_queue_id, CASE WHEN NOT s.is_rest THEN s.name END, s.completed, s.failed, s.exception,
			tq_internal.histogram_part(s.waited, 0.5), tq_internal.histogram_part(s.waited, 0.95), tq_internal.histogram_part(s.waited, 0.99),
			tq_internal.histogram_part(s.ran, 0.5), tq_internal.histogram_part(s.ran, 0.95), tq_internal.histogram_part(s.ran, 0.99)
		FROM (SELECT q.task_queue_id, h.is_rest, h.name, sum(h.completed) AS completed, sum(h.failed) AS failed, sum(h.exception) AS exception,
				tq_internal.histogram_sum(h.waited) AS waited, tq_internal.histogram_sum(h.ran) AS ran
			FROM tq_internal.task_name_history h JOIN (
				SELECT v.id, v.task_queue_id FROM tq_internal.queue v
				WHERE (v.task_queue_id = pattern OR right(pattern, 1) = '*' AND starts_with(v.task_queue_id, left(pattern, -1)))
					AND (sees_all OR tq_internal.has_right('get-task', '*', v.task_queue_id))
				OFFSET 0) AS q ON q.id = h.queue
			WHERE h.day >= first AND (until IS NULL OR h.day < until)
			GROUP BY q.task_queue_id, h.is_rest, h.name) AS s
		ORDER BY s.task_queue_id, s.completed + s.failed + s.exception DESC, s.name;
END
$$;
COMMENT ON FUNCTION tq.task_name_stats(text, timestamptz, timestamptz) IS
	'runs that have ended, by queue and name of their task, on the days between these times: how many, and how long they waited and took; name is NULL for all further names of a queue together';
