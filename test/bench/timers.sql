-- timers.sql: many tasks for which something is due later, for timers.sh.
--
-- Written by statements, as a restore would: a million by the functions of tq
-- would take minutes.  All times are given; those of a span are spread over it.
CREATE SCHEMA timers;

-- n tasks, while no other session creates any; those from a to b.
CREATE FUNCTION timers.tasks(n int, deadline timestamptz, span interval, OUT a bigint, OUT b bigint)
LANGUAGE plpgsql AS $$
BEGIN
	a := nextval('tq_internal.id_seq') + 1;
	b := a + n - 1;
	PERFORM setval('tq_internal.id_seq', b);
	INSERT INTO tq_internal.task (id, created, deadline, expires, queue, priority, retries, all_resolved, task_id, payload)
	SELECT i, clock_timestamp(), date_trunc('milliseconds', deadline + span * ((i - a) / n::float8)), deadline + interval '1 year',
		q.id, 1, 5, false, gen_random_uuid()::tq.slugid, jsonb_build_object('command', repeat('x', 185))
	FROM generate_series(a, b) AS i, tq_internal.queue AS q WHERE q.task_queue_id = 'bench/timers';
END $$;

-- n claimed runs, with a claim timer for so many; resolved since, or not.
CREATE FUNCTION timers.claims(n int, per int, due timestamptz, span interval, stale bool DEFAULT false) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE t record;
BEGIN
	SELECT * INTO t FROM timers.tasks(n, due + interval '1 day', '0');
	INSERT INTO tq_internal.run (task, scheduled, started, taken_until, resolved, run_id, state, reason_created, reason_resolved, retries_left)
	SELECT i, clock_timestamp(), clock_timestamp(), date_trunc('milliseconds', due + span * ((i - t.a) / per * per / n::float8)),
		CASE WHEN stale THEN clock_timestamp() END, 0, CASE WHEN stale THEN 3 ELSE 2 END, 1, stale::int, 5
	FROM generate_series(t.a, t.b) AS i;
	INSERT INTO tq_internal.claim_timer (due, tasks)
	SELECT date_trunc('milliseconds', due + span * ((i - t.a) / n::float8)), array(SELECT generate_series(i, i + per - 1))
	FROM generate_series(t.a, t.b, per) AS i;
END $$;

-- n tasks with a deadline each; pending, or resolved since.
CREATE FUNCTION timers.deadlines(n int, due timestamptz, span interval, stale bool DEFAULT false) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE t record;
BEGIN
	SELECT * INTO t FROM timers.tasks(n, due, span);
	IF stale THEN
		INSERT INTO tq_internal.run (task, scheduled, started, resolved, run_id, state, reason_created, reason_resolved, retries_left)
		SELECT i, clock_timestamp(), clock_timestamp(), clock_timestamp(), 0, 3, 1, 1, 5 FROM generate_series(t.a, t.b) AS i;
	ELSE
		INSERT INTO tq_internal.pending (seq, task, scheduled, queue, priority, run_id, retries_left, reason_created)
		SELECT id, id, created, queue, priority, 0, retries, 1 FROM tq_internal.task WHERE id BETWEEN t.a AND t.b;
	END IF;
	INSERT INTO tq_internal.timer (due, kind, tasks) SELECT deadline, 1, ARRAY[id] FROM tq_internal.task WHERE id BETWEEN t.a AND t.b;
END $$;

-- n runs that are delayed.
CREATE FUNCTION timers.delays(n int, due timestamptz, span interval) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE t record;
BEGIN
	SELECT * INTO t FROM timers.tasks(n, due + interval '1 day', '0');
	INSERT INTO tq_internal.delayed (visible_at, task, scheduled, queue, priority, run_id, retries_left, reason_created)
	SELECT date_trunc('milliseconds', due + span * ((id - t.a) / n::float8)), id, created, queue, priority, 0, retries, 1
	FROM tq_internal.task WHERE id BETWEEN t.a AND t.b;
END $$;

-- Waits until nothing is due any more that was by then; seconds since.
CREATE PROCEDURE timers.done(due timestamptz, INOUT seconds float8 DEFAULT NULL)
LANGUAGE plpgsql AS $$
BEGIN
	COMMIT;
	PERFORM pg_sleep(extract(epoch FROM due - clock_timestamp()) - 0.01);
	WHILE clock_timestamp() < due
		OR EXISTS (SELECT FROM tq_internal.claim_timer AS l WHERE l.due <= done.due)
		OR EXISTS (SELECT FROM tq_internal.timer AS t WHERE t.due <= done.due AND kind = 1)
		OR EXISTS (SELECT FROM tq_internal.delayed WHERE visible_at <= done.due)
	LOOP
		COMMIT;
		PERFORM pg_sleep(0.005);
	END LOOP;
	seconds := extract(epoch FROM clock_timestamp() - due);
END $$;

-- Lets the maintenance worker run n cycles, in each of which one task meets its deadline.
CREATE PROCEDURE timers.turns(n int)
LANGUAGE plpgsql AS $$
DECLARE id tq.slugid;
BEGIN
	FOR i IN 1..n LOOP
		id := tq.enqueue('bench/timers', deadline => '1 ms');
		COMMIT;
		WHILE tq.status(id) ->> 'state' <> 'exception' LOOP
			COMMIT;
			PERFORM pg_sleep(0.001);
		END LOOP;
	END LOOP;
END $$;
