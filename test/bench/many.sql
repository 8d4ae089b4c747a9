-- many.sql: millions of tasks for the bench, by inserts into the tables, and how
-- long a query takes; loaded by parts overviews and retention.

CREATE SCHEMA many;

CREATE FUNCTION many.queue(name text) RETURNS int LANGUAGE sql AS $$
	WITH added AS (INSERT INTO tq_internal.queue (task_queue_id, expires, last_date_active)
		VALUES (name, clock_timestamp() + interval '5 days', clock_timestamp()) ON CONFLICT DO NOTHING RETURNING id)
	SELECT id FROM added UNION ALL SELECT id FROM tq_internal.queue WHERE task_queue_id = name LIMIT 1
$$;

CREATE FUNCTION many.worker(queue int, name text) RETURNS int LANGUAGE sql AS $$
	INSERT INTO tq_internal.worker (queue, worker_group, worker_id, expires, first_claim, last_date_active)
	VALUES (queue, 'many', name, clock_timestamp() + interval '1 day', clock_timestamp(), clock_timestamp()) RETURNING id
$$;

-- Tasks by number, from 1: how each is, in the order of its creation.  Of n
-- tasks the last 2 % are unresolved if there are such: pending, of these a few
-- delayed, then running, then unscheduled.
CREATE FUNCTION many.draw(n bigint, unresolved bool) RETURNS TABLE (i bigint, state text) LANGUAGE sql ROWS 5000000 AS $$
	SELECT i, CASE WHEN NOT unresolved OR i <= n * 0.98 THEN
			CASE WHEN i % 100 = 0 THEN 'failed' WHEN i % 200 = 1 THEN 'exception' ELSE 'completed' END
		WHEN i <= n * 0.9802 THEN 'delayed' WHEN i <= n * 0.996 THEN 'pending' WHEN i <= n * 0.998 THEN 'running' ELSE 'unscheduled' END
	FROM generate_series(1, n) AS i
$$;

-- Fills empty tables: n tasks, the first created `age` ago, and the last now, or
-- if all are resolved, half as long ago; in ten queues and one that has a task in
-- 500,000.  Half have names, each of 25 tasks;
-- a tenth has tags; a fifth is in groups of 100, a fiftieth in one group; a
-- hundredth depends on the task before.  Of 100 workers one has a task in 500,000.
CREATE PROCEDURE many.fill(n bigint, age interval, unresolved bool) LANGUAGE plpgsql AS $$
DECLARE
	base CONSTANT bigint = 1000000;		-- inner ids of groups are lower
	began CONSTANT timestamptz = clock_timestamp() - age;
	step CONSTANT interval = CASE WHEN unresolved THEN age ELSE age / 2 END / n;
	queues int[] = (SELECT array_agg(many.queue('many/q' || k) ORDER BY k) FROM generate_series(0, 10) AS k);
	workers int[] = (SELECT array_agg(many.worker(queues[1 + k % 10], 'w' || k) ORDER BY k) FROM generate_series(0, 100) AS k);
BEGIN
	SET LOCAL session_replication_role = replica;
	SET LOCAL synchronous_commit = off;
	CREATE TEMP TABLE drawn ON COMMIT DROP AS SELECT d.i, base + d.i AS id, d.state, began + d.i * step AS created,
		CASE WHEN d.i % 500000 = 7 THEN queues[11] ELSE queues[1 + d.i % 10] END AS queue,
		CASE WHEN d.i % 500000 = 3 THEN workers[101] ELSE workers[1 + d.i % 100] END AS worker
		FROM many.draw(n, unresolved) AS d;
	INSERT INTO tq_internal.task_group (id, task_group_id, expires, queue)
		SELECT g + 1, tq.stable_slugid('many group ' || g), clock_timestamp() + interval '1 year', queues[1] FROM generate_series(0, n / 500 + 1) AS g;
	INSERT INTO tq_internal.task (id, created, deadline, expires, queue, priority, retries, all_resolved, task_id, group_id,
			dependencies, payload, metadata, tags)
		SELECT d.id, d.created, clock_timestamp() + interval '1 day', clock_timestamp() + interval '1 year', d.queue, 3, 5, false,
			tq.stable_slugid('many task ' || d.i),
			CASE WHEN d.i % 5 = 0 THEN 2 + d.i / 500 WHEN d.i BETWEEN n * 0.4 AND n * 0.425 THEN 1 END,
			CASE WHEN d.i % 100 = 50 OR d.state = 'unscheduled' THEN ARRAY[tq.stable_slugid('many task ' || d.i - 1)] END,
			'{"command": "make"}',
			CASE WHEN d.i % 2 = 0 THEN jsonb_build_object('name', 'name-' || d.i / 50) END,
			CASE WHEN d.i % 10 = 0 THEN jsonb_build_object('kind', 'kind-' || d.i % 1000, 'number', (d.i / 100)::text) END
		FROM drawn AS d ORDER BY d.i;
	INSERT INTO tq_internal.dependency (required, dependent, from_run)
		SELECT d.id - 1, d.id, 0 FROM drawn AS d WHERE d.i > 1 AND (d.i % 100 = 50 OR d.state = 'unscheduled');
	INSERT INTO tq_internal.run (task, scheduled, started, resolved, worker, run_id, state, reason_created, reason_resolved, retries_left, has_detail)
		SELECT d.id, d.created, d.created, d.created + interval '1 s', d.worker, 0,
			CASE d.state WHEN 'failed' THEN 4 WHEN 'exception' THEN 5 ELSE 3 END, 1,
			CASE d.state WHEN 'failed' THEN 2 WHEN 'exception' THEN 3 ELSE 1 END, 5, d.state = 'failed'
		FROM drawn AS d WHERE d.state IN ('completed', 'failed', 'exception') ORDER BY d.i;
	INSERT INTO tq_internal.run_detail (task, visible_at, worker, run_id, attempt, lost_retries_left, retry_delay, error)
		SELECT d.id, d.created, 0, 0, 0, -1, -1, '{"message": "exit status 1"}' FROM drawn AS d WHERE d.state = 'failed' ORDER BY d.i;
	INSERT INTO tq_internal.failure (resolved, task, queue, state, run_id)
		SELECT d.created + interval '1 s', d.id, d.queue, CASE d.state WHEN 'failed' THEN 4 ELSE 5 END, 0
		FROM drawn AS d WHERE d.state IN ('failed', 'exception') ORDER BY d.i;
	INSERT INTO tq_internal.dead_letter (task_id, task, queue, failed_at, seq, reason, error, definition, runs)
		SELECT tq.stable_slugid('many task ' || d.i), d.id, d.queue, d.created + interval '1 s', d.id, 2, '{"message": "exit status 1"}',
			jsonb_build_object('metadata', jsonb_build_object('name', 'name-' || d.i)), '[{}]'
		FROM drawn AS d WHERE d.state = 'failed' AND d.i % 1000 = 0;
	INSERT INTO tq_internal.pending (seq, task, scheduled, queue, priority, run_id, retries_left, reason_created)
		SELECT d.id, d.id, d.created, d.queue, 3, 0, 5, 1 FROM drawn AS d WHERE d.state = 'pending' ORDER BY d.i;
	INSERT INTO tq_internal.delayed (visible_at, task, scheduled, queue, priority, run_id, retries_left, reason_created)
		SELECT clock_timestamp() + interval '1 day', d.id, d.created, d.queue, 3, 0, 5, 1 FROM drawn AS d WHERE d.state = 'delayed';
	INSERT INTO tq_internal.run (task, scheduled, started, taken_until, worker, run_id, state, reason_created, retries_left)
		SELECT d.id, d.created, clock_timestamp(), clock_timestamp() + interval '1 day', d.worker, 0, 2, 1, 5
		FROM drawn AS d WHERE d.state = 'running' ORDER BY d.i;
	INSERT INTO tq_internal.claim_timer (due, tasks)
		SELECT clock_timestamp() + interval '1 day', ARRAY[d.id] FROM drawn AS d WHERE d.state = 'running';
	INSERT INTO tq_internal.unscheduled (task, unmet, stripes, all_resolved)
		SELECT d.id, 1, 0, false FROM drawn AS d WHERE d.state = 'unscheduled';
	PERFORM setval('tq_internal.id_seq', base + n + 1000);
END
$$;

-- Puts all tasks in so many groups, in the order of their ids.
CREATE PROCEDURE many.add_groups(groups bigint) LANGUAGE plpgsql AS $$
DECLARE
	first CONSTANT bigint = (SELECT min(id) FROM tq_internal.task);
	last CONSTANT bigint = (SELECT max(id) FROM tq_internal.task);
	base CONSTANT bigint = (SELECT max(id) FROM tq_internal.task_group);
BEGIN
	SET LOCAL session_replication_role = replica;
	INSERT INTO tq_internal.task_group (id, task_group_id, expires, queue)
		SELECT base + g, tq.stable_slugid('many added ' || g), clock_timestamp() + interval '1 year', many.queue('many/q' || g % 10) FROM generate_series(1, groups) AS g;
	UPDATE tq_internal.task SET group_id = base + 1 + (id - first) * groups / (last - first + 1);
END
$$;

-- The first task in a state, from the middle of them.
CREATE FUNCTION many.task(n bigint, of text) RETURNS tq.slugid LANGUAGE sql AS $$
	SELECT tq.stable_slugid('many task ' || (percentile_disc(0.5) WITHIN GROUP (ORDER BY i))) FROM many.draw(n, true) WHERE state = of
$$;

-- Milliseconds of a query, planned and executed, all its rows read.
CREATE FUNCTION many.milliseconds(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	began timestamptz;
BEGIN
	SET LOCAL synchronize_seqscans = off;	-- one query would begin where the one before has ended
	began = clock_timestamp();
	EXECUTE query;
	RETURN 1000 * extract(epoch FROM clock_timestamp() - began);
END
$$;

-- Seconds of CPU that this backend has used, in hundredths (utime and stime of Linux).
CREATE FUNCTION many.cpu() RETURNS float8 LANGUAGE sql SECURITY DEFINER AS $$
	SELECT (f[12]::float8 + f[13]::float8) / 100 FROM string_to_array(substring(pg_read_file('/proc/self/stat') FROM '\) (.*)$'), ' ') AS f
$$;

-- Those of a query, all its rows read.
CREATE FUNCTION many.cpu(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	began CONSTANT float8 = many.cpu();
BEGIN
	PERFORM many.milliseconds(query);
	RETURN many.cpu() - began;
END
$$;
