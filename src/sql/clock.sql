-- ---------------------------------------------------------------------------
-- A clock that was ahead
--
-- The maintenance worker calls set_times_back() (src/bgworker/maintenance.c).
-- Times that users gave stay: deadlines, expiries, quarantines, run_at.
-- doc/internals.md lists every time that is kept.
-- ---------------------------------------------------------------------------

-- By how much the newest of some times is ahead of the clock; every call of a worker,
-- and every publication, leaves one of them.
CREATE VIEW tq_internal.clock_ahead AS
	SELECT greatest((SELECT published FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1), (SELECT max(since) FROM tq_internal.log_segment),
		(SELECT max(last_date_active) FROM tq_internal.queue), (SELECT max(last_fired) FROM tq_internal.cron)) - tq_internal.clock_now() AS ahead;
COMMENT ON VIEW tq_internal.clock_ahead IS 'how far stored times are ahead of the clock, which was set back';

-- Locks rows in no order that matters, because it skips those that are locked, and
-- waits for none.  What it skips is later by no more than the clock was ahead.
CREATE FUNCTION tq_internal.set_times_back(is_first bool) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	now timestamptz := tq_internal.clock_now();
	late timestamptz := now + interval '1 s';
	moved bigint[];
	shifts interval[];
BEGIN
	IF NOT (SELECT coalesce(a.ahead > interval '1 s', false) FROM tq_internal.clock_ahead a)
		AND NOT (is_first AND EXISTS (SELECT FROM tq_internal.tick k WHERE k.published > late)) THEN
		RETURN false;
	END IF;
	RAISE LOG 'tq sets times back that are ahead of the clock';

	-- A claim lasts as if it had been made now.
	WITH claim AS (
		SELECT c.task, c.run_id, now + coalesce(interval '1 s' * coalesce((y.policy -> 'claimTimeout')::float8, (s.settings -> 'claimTimeout')::float8),
			current_setting('tq.claim_timeout')::interval) AS ends
		FROM tq_internal.claimed_run c JOIN tq_internal.task t ON t.id = c.task
			LEFT JOIN tq_internal.policy y ON y.id = t.policy LEFT JOIN tq_internal.queue_settings s ON s.queue = t.queue
	), ahead AS (
		SELECT r.task, r.run_id, c.ends, greatest(r.started - now, interval '0') AS shift
		FROM tq_internal.run r JOIN claim c ON c.task = r.task AND c.run_id = r.run_id
		WHERE r.state = 2 AND (r.taken_until > c.ends + interval '1 s' OR r.started > late) FOR UPDATE OF r SKIP LOCKED
	), cut AS (
		UPDATE tq_internal.run r SET taken_until = least(r.taken_until, a.ends), started = least(r.started, now), scheduled = least(r.scheduled, now)
		FROM ahead a WHERE r.task = a.task AND r.run_id = a.run_id RETURNING r.task, a.shift
	)
	SELECT array_agg(c.task), array_agg(c.shift) INTO moved, shifts FROM cut c;
	IF moved IS NOT NULL THEN	-- a claim timer that is early inserts the right one
		UPDATE tq_internal.claim_timer l SET due = now
			WHERE l.ctid IN (SELECT x.ctid FROM tq_internal.claim_timer x WHERE x.due > late FOR UPDATE SKIP LOCKED);
		WITH hit AS (	-- TQ_TIMER_RUN_TIMEOUT counts from the start
			DELETE FROM tq_internal.timer t
				WHERE t.ctid IN (SELECT x.ctid FROM tq_internal.timer x WHERE x.kind = 3 AND x.due > late FOR UPDATE SKIP LOCKED) RETURNING t.due, t.tasks
		)
		INSERT INTO tq_internal.timer (due, kind, tasks)
			SELECT h.due - coalesce(m.shift, interval '0'), 3, array_agg(u.task)
			FROM hit h CROSS JOIN LATERAL unnest(h.tasks) AS u (task) LEFT JOIN unnest(moved, shifts) AS m (task, shift) ON m.task = u.task
			GROUP BY 1;
	END IF;

	-- What waits to be done now: TQ_TIMER_CANCEL, TQ_TIMER_GATE, TQ_TIMER_CALLBACK, and
	-- what failed; an early one is done again.
	UPDATE tq_internal.timer t SET due = now
		WHERE t.ctid IN (SELECT x.ctid FROM tq_internal.timer x WHERE x.kind IN (6, 7, 8) AND x.due > late FOR UPDATE SKIP LOCKED);
	UPDATE tq_internal.postponed p SET due = now, since = least(p.since, now)
		WHERE p.ctid IN (SELECT x.ctid FROM tq_internal.postponed x WHERE x.due > late FOR UPDATE SKIP LOCKED);

	-- A delay counts from when the run was scheduled, but that of run_at is a time.
	WITH ahead AS (
		SELECT d.task, d.run_id, d.scheduled - now AS shift
		FROM tq_internal.delayed d JOIN tq_internal.task t ON t.id = d.task
		WHERE d.scheduled > late AND isfinite(d.visible_at) AND NOT (d.run_id = 0 AND coalesce(t.delay, 0) < 0) FOR UPDATE OF d SKIP LOCKED
	), detail AS (
		UPDATE tq_internal.run_detail x SET visible_at = x.visible_at - a.shift FROM ahead a WHERE x.task = a.task AND x.run_id = a.run_id
	)
	UPDATE tq_internal.delayed d SET scheduled = now, visible_at = d.visible_at - a.shift FROM ahead a WHERE d.task = a.task;

	-- What is over, from when on it is kept: the most that are written at once.
	UPDATE tq_internal.run r SET resolved = now, started = least(r.started, now), scheduled = least(r.scheduled, now), taken_until = least(r.taken_until, now)
		WHERE r.ctid IN (SELECT x.ctid FROM tq_internal.run x WHERE x.resolved > late LIMIT 100000 FOR UPDATE SKIP LOCKED);
	UPDATE tq_internal.failure f SET resolved = now
		WHERE f.ctid IN (SELECT x.ctid FROM tq_internal.failure x WHERE x.resolved > late LIMIT 100000 FOR UPDATE SKIP LOCKED);
	UPDATE tq_internal.dead_letter d SET failed_at = now
		WHERE d.ctid IN (SELECT x.ctid FROM tq_internal.dead_letter x WHERE x.failed_at > late LIMIT 100000 FOR UPDATE SKIP LOCKED);

	UPDATE tq_internal.tick k SET published = now
		WHERE (k.last_id, k.segment) IN (SELECT x.last_id, x.segment FROM tq_internal.tick x WHERE x.published > late FOR UPDATE SKIP LOCKED);
	UPDATE tq_internal.queue q SET last_date_active = now
		WHERE q.id IN (SELECT x.id FROM tq_internal.queue x WHERE x.last_date_active > late FOR UPDATE SKIP LOCKED);
	UPDATE tq_internal.worker w SET last_date_active = now, first_claim = least(w.first_claim, now)
		WHERE w.id IN (SELECT x.id FROM tq_internal.worker x WHERE x.last_date_active > late FOR UPDATE SKIP LOCKED);
	UPDATE tq_internal.cron c SET last_fired = least(c.last_fired, now), last_skipped = least(c.last_skipped, now), last_scheduled = least(c.last_scheduled, now)
		WHERE c.ctid IN (SELECT x.ctid FROM tq_internal.cron x WHERE greatest(x.last_fired, x.last_skipped, x.last_scheduled) > late FOR UPDATE SKIP LOCKED);
	UPDATE tq_internal.activation a SET since = least(a.since, now), swept = least(a.swept, now)
		WHERE a.ctid IN (SELECT x.ctid FROM tq_internal.activation x WHERE greatest(x.since, x.swept) > late FOR UPDATE SKIP LOCKED);
	DELETE FROM tq_internal.queue_history h WHERE h.seconds IN (10, 60, 3600) AND h.at > now;	-- of times that are still to come
	DELETE FROM tq_internal.task_name_history h WHERE h.day > now;
	UPDATE tq_internal.task_name_pass SET seen = least(seen, now), next_seen = least(next_seen, now) WHERE greatest(seen, next_seen) > late;
	RETURN true;
END
$$;
COMMENT ON FUNCTION tq_internal.set_times_back(bool) IS 'sets times back that a clock which was ahead has left; returns whether there were any, of which the first call looks for more';
