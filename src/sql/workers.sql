-- ---------------------------------------------------------------------------
-- Workers: what is known of them (doc/spec/taskcluster.md 2.16, 5.5, 5.6)
--
-- A worker is known by its queue, its group and its id.
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_internal.worker_activity(worker int, OUT seen timestamptz, OUT tasks bigint[], OUT runs int[])
	AS 'MODULE_PATHNAME', 'tq_sql_worker_activity' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION tq_internal.worker_activity(int) IS
	'what shared memory has of a worker: when it was seen, and its last claims, oldest first, whether they were committed or not';

CREATE FUNCTION tq_internal.intern_queue(task_queue_id text) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_sql_intern_queue' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.intern_queue(text) IS 'number of a queue, whose row is inserted or revived if necessary';

CREATE FUNCTION tq_internal.check_quota(setting text) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_check_quota' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.check_quota(text) IS 'raises 53400 if the role has more than that setting allows, after it has made one';

CREATE FUNCTION tq_internal.intern_worker(queue int, worker_group text, worker_id text) RETURNS int
	AS 'MODULE_PATHNAME', 'tq_sql_intern_worker' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.intern_worker(int, text, text) IS 'number of a worker, whose row is inserted or revived if necessary';

CREATE FUNCTION tq_internal.queue_changed(queue int) RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_queue_changed' LANGUAGE C STRICT;
COMMENT ON FUNCTION tq_internal.queue_changed(int) IS 'makes this session read the row of a queue again';

CREATE FUNCTION tq_internal.workers_changed() RETURNS void
	AS 'MODULE_PATHNAME', 'tq_sql_workers_changed' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.workers_changed() IS 'makes every session read the rows of workers again';

CREATE FUNCTION tq_internal.remove_workers(workers int[], error jsonb) RETURNS SETOF tq.resolution
	AS 'MODULE_PATHNAME', 'tq_sql_remove_workers' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.remove_workers(int[], jsonb) IS 'resolves the running runs of these workers as worker-shutdown, with that error';

CREATE FUNCTION tq_internal.arg_worker_name(value text, name text) RETURNS text
	AS 'MODULE_PATHNAME', 'tq_sql_arg_worker_name' LANGUAGE C;
COMMENT ON FUNCTION tq_internal.arg_worker_name(text, text) IS 'an argument of that name, if it may be a group of workers or a worker';

-- The last claims of a worker: those that are stored, and then those that are only
-- in shared memory, if the worker has these runs.
CREATE FUNCTION tq_internal.last_claims(worker int, stored_tasks bigint[], stored_runs int[], tasks bigint[], runs int[])
	RETURNS TABLE (task bigint, run_id int, nth bigint)
	LANGUAGE sql STABLE
	BEGIN ATOMIC
		SELECT u.task, u.run_id, max(u.nth)
		FROM unnest(stored_tasks || tasks, stored_runs || runs) WITH ORDINALITY AS u (task, run_id, nth)
			LEFT JOIN tq_internal.run r ON r.task = u.task AND r.run_id = u.run_id AND r.worker = last_claims.worker
			LEFT JOIN tq_internal.run_detail d ON d.task = u.task AND d.run_id = u.run_id AND d.worker = last_claims.worker
		WHERE u.nth <= cardinality(stored_tasks) OR r.task IS NOT NULL OR d.task IS NOT NULL
		GROUP BY u.task, u.run_id;
	END;
COMMENT ON FUNCTION tq_internal.last_claims(int, bigint[], int[], bigint[], int[]) IS 'last claims of a worker; the greatest nth is that of the last one';

-- Rows are written at most once per tq.seen_interval.
CREATE VIEW tq_internal.seen_worker AS
	SELECT w.id, w.queue, w.worker_group, w.worker_id, w.first_claim, w.quarantine_until, w.quarantine_details,
		greatest(w.expires, a.seen + interval '24 hours') AS expires, greatest(w.last_date_active, a.seen) AS last_date_active,
		w.recent_tasks, w.recent_runs, a.tasks, a.runs, w.capacity, w.version
	FROM tq_internal.worker w LEFT JOIN LATERAL tq_internal.worker_activity(w.id) AS a ON w.expires IS NOT NULL;
COMMENT ON VIEW tq_internal.seen_worker IS 'workers with what they did since their row was written';

CREATE FUNCTION tq_internal.worker_json(worker int) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT jsonb_strip_nulls(jsonb_build_object(
			'taskQueueId', q.task_queue_id, 'provisionerId', split_part(q.task_queue_id, '/', 1), 'workerType', split_part(q.task_queue_id, '/', 2),
			'workerGroup', w.worker_group, 'workerId', w.worker_id,
			'expires', tq_internal.json_time(w.expires), 'firstClaim', tq_internal.json_time(w.first_claim),
			'lastDateActive', tq_internal.json_time(w.last_date_active), 'quarantineUntil', tq_internal.json_time(w.quarantine_until),
			'quarantineDetails', w.quarantine_details, 'capacity', w.capacity, 'version', w.version,
			'recentTasks', (SELECT coalesce(jsonb_agg(jsonb_build_object('taskId', c.task_id, 'runId', c.run_id) ORDER BY c.nth), '[]')
				FROM (SELECT t.task_id, l.run_id, l.nth
					FROM tq_internal.last_claims(w.id, w.recent_tasks, w.recent_runs, w.tasks, w.runs) AS l JOIN tq_internal.task t ON t.id = l.task
					ORDER BY l.nth DESC LIMIT 20) AS c)))
		FROM tq_internal.seen_worker w JOIN tq_internal.queue q ON q.id = w.queue
		WHERE w.id = worker);
END
$$;
COMMENT ON FUNCTION tq_internal.worker_json(int) IS 'a worker as get_worker() shows it';

CREATE FUNCTION tq_internal.known_worker(task_queue_id text, worker_group text, worker_id text) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
	now timestamptz := tq_internal.clock_now();
	worker int;
BEGIN
	SELECT w.id INTO worker
		FROM tq_internal.seen_worker w
		WHERE w.queue = (SELECT q.id FROM tq_internal.queue q WHERE q.task_queue_id = known_worker.task_queue_id AND q.expires > now)
			AND w.worker_group = known_worker.worker_group AND w.worker_id = known_worker.worker_id
			AND (w.expires > now OR w.quarantine_until > now);
	IF NOT FOUND THEN
		RAISE EXCEPTION 'worker "%/%" of task queue "%" does not exist', worker_group, worker_id, task_queue_id
			USING ERRCODE = 'TQ404', DETAIL = 'It has not called tq.claim_work(), or it or its queue has not been seen for a day.',
				HINT = 'A worker becomes known by its first tq.claim_work(), or by tq.declare_worker().';
	END IF;
	RETURN worker;
END
$$;
COMMENT ON FUNCTION tq_internal.known_worker(text, text, text) IS
	'number of a worker that has not expired, or is in quarantine, and whose queue has not expired; or raises TQ404';

CREATE FUNCTION tq.get_worker(task_queue_id text, worker_group text, worker_id text) RETURNS jsonb
	LANGUAGE tq_read AS $$
DECLARE
	queue text := tq_internal.arg_queue(task_queue_id);
	group_name text := tq_internal.arg_worker_name(worker_group, 'worker_group');
	name text := tq_internal.arg_worker_name(worker_id, 'worker_id');
BEGIN
	PERFORM tq_internal.require(format('queue:get-worker:%s/%s/%s', queue, group_name, name));
	RETURN tq_internal.worker_json(tq_internal.known_worker(queue, group_name, name));
END
$$;
COMMENT ON FUNCTION tq.get_worker(text, text, text) IS 'a worker: when it was seen, its recent tasks, and its quarantines with their reasons';

CREATE FUNCTION tq.list_workers(
	task_queue_id text, quarantined bool DEFAULT NULL, after text DEFAULT NULL, max int DEFAULT 1000
) RETURNS SETOF tq.worker_entry
	LANGUAGE tq_read AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
	page_size int := tq_internal.arg_max(max);
	slash int := strpos(coalesce(after, '/'), '/');
	now timestamptz := tq_internal.clock_now();
BEGIN
	IF slash = 0 THEN
		RAISE EXCEPTION 'invalid after "%"', tq_internal.clip(after)
			USING ERRCODE = 'TQ400', DETAIL = 'It is not worker_group/worker_id.', HINT = 'Give the page of the last row, or NULL.';
	END IF;
	PERFORM tq_internal.require('queue:list-workers:' || name);
	RETURN QUERY
		SELECT w.worker_group, w.worker_id, w.first_claim, greatest(w.last_date_active, a.seen), c.task_id, c.run_id,
			CASE WHEN w.quarantine_until > now THEN w.quarantine_until END, w.worker_group || '/' || w.worker_id
		FROM (SELECT l.* FROM tq_internal.worker l
				WHERE l.queue = (SELECT q.id FROM tq_internal.queue q WHERE q.task_queue_id = name)
					AND (l.worker_group, l.worker_id) > (coalesce(left(after, slash - 1), ''), coalesce(substr(after, slash + 1), ''))
					AND (l.expires > now OR l.quarantine_until > now)
					AND (quarantined IS NULL OR coalesce(l.quarantine_until > now, false) = quarantined)
				ORDER BY l.worker_group, l.worker_id LIMIT page_size) AS w
			CROSS JOIN LATERAL tq_internal.worker_activity(w.id) AS a
			LEFT JOIN LATERAL (SELECT t.task_id, x.run_id
				FROM tq_internal.last_claims(w.id, w.recent_tasks, w.recent_runs, a.tasks, a.runs) AS x JOIN tq_internal.task t ON t.id = x.task
				ORDER BY x.nth DESC LIMIT 1) AS c ON true
		ORDER BY w.worker_group, w.worker_id;
END
$$;
COMMENT ON FUNCTION tq.list_workers(text, bool, text, int) IS
	'workers of a queue by group and id, all or only those that are, or are not, in quarantine; go on after the page of the last row';

CREATE FUNCTION tq_internal.arg_time(t timestamptz, name text) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
	PERFORM tq_internal.not_null(t, name);
	IF t = 'infinity' THEN
		RAISE EXCEPTION '% must be finite', name
			USING ERRCODE = 'TQ400', DETAIL = format('The argument %s is infinity.', name), HINT = 'Give a time far in the future.';
	END IF;
	RETURN CASE WHEN t = '-infinity' THEN tq_internal.clock_now() ELSE date_trunc('milliseconds', t) END;
END
$$;
COMMENT ON FUNCTION tq_internal.arg_time(timestamptz, text) IS
	'an argument that is a time, in milliseconds; -infinity, which JSON does not have, is now, and what has no end is refused';

CREATE FUNCTION tq_internal.arg_reason(reason text, name text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF length(reason) > 4000 THEN
		RAISE EXCEPTION '% is too long', name
			USING ERRCODE = 'TQ400', DETAIL = format('It has %s characters, and may have 4000.', length(reason)), HINT = 'Give a shorter text.';
	END IF;
	RETURN reason;
END
$$;
COMMENT ON FUNCTION tq_internal.arg_reason(text, text) IS 'an argument that a person writes, which may be NULL';

CREATE FUNCTION tq.declare_worker(
	task_queue_id text, worker_group text, worker_id text, expires timestamptz, capacity int DEFAULT NULL, version text DEFAULT NULL
) RETURNS jsonb
	LANGUAGE tq_client AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
	now timestamptz := tq_internal.clock_now();
	until timestamptz;
	queue int;
	worker int;
BEGIN
	PERFORM tq_internal.arg_worker_name(worker_group, 'worker_group'), tq_internal.arg_worker_name(worker_id, 'worker_id');
	until := tq_internal.arg_time(expires, 'expires');
	PERFORM tq_internal.arg_int(coalesce(capacity, 1), 'capacity', 1, 1000000), tq_internal.arg_reason(version, 'version');
	PERFORM tq_internal.require(format('queue:declare-worker:%s/%s/%s#expires', name, worker_group, worker_id));
	queue := tq_internal.intern_queue(name);
	worker := tq_internal.intern_worker(queue, worker_group, worker_id);
	UPDATE tq_internal.queue q SET last_date_active = now, expires = greatest(q.expires, until, now + interval '24 hours') WHERE q.id = queue;
	UPDATE tq_internal.worker w SET expires = greatest(w.expires, until), capacity = coalesce(declare_worker.capacity, w.capacity),
		version = coalesce(declare_worker.version, w.version) WHERE w.id = worker;
	PERFORM tq_internal.queue_changed(queue), tq_internal.workers_changed();
	RETURN tq_internal.worker_json(worker);
END
$$;
COMMENT ON FUNCTION tq.declare_worker(text, text, text, timestamptz, int, text) IS
	'make a worker and its queue known until then at least, with how many tasks it works on at a time and the version of its program; returns the worker';

CREATE FUNCTION tq.quarantine_worker(
	task_queue_id text, worker_group text, worker_id text,
	quarantine_until timestamptz, quarantine_info text DEFAULT NULL) RETURNS jsonb
	LANGUAGE tq_operate AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
	now timestamptz := tq_internal.clock_now();
	until timestamptz;
	worker int;
BEGIN
	PERFORM tq_internal.arg_worker_name(worker_group, 'worker_group'), tq_internal.arg_worker_name(worker_id, 'worker_id'),
		tq_internal.arg_reason(quarantine_info, 'quarantine_info');
	until := tq_internal.arg_time(quarantine_until, 'quarantine_until');
	PERFORM tq_internal.require(format('queue:quarantine-worker:%s/%s/%s', name, worker_group, worker_id));
	worker := tq_internal.known_worker(name, worker_group, worker_id);
	UPDATE tq_internal.worker w
		SET quarantine_until = until, expires = greatest(w.expires, now + interval '24 hours'),
			quarantine_details = coalesce(w.quarantine_details, '[]') || jsonb_build_object('clientId', session_user,
				'updatedAt', tq_internal.json_time(now), 'quarantineUntil', tq_internal.json_time(until),
				'quarantineInfo', coalesce(quarantine_info, '[unspecified]'))
		WHERE w.id = worker;
	PERFORM tq_internal.workers_changed();
	RETURN tq_internal.worker_json(worker);
END
$$;
COMMENT ON FUNCTION tq.quarantine_worker(text, text, text, timestamptz, text) IS 'let a worker claim no tasks until then; a past time ends the quarantine';

-- A worker_id that ends in a star is the beginning of those of several workers.
CREATE FUNCTION tq.worker_removed(
	task_queue_id text, worker_group text, worker_id text, reason text DEFAULT NULL
) RETURNS SETOF tq.resolution
	LANGUAGE tq_operate AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
	prefix text := substring(worker_id, '^([a-zA-Z0-9._-]{0,128})\*$');
	workers int[];
BEGIN
	PERFORM tq_internal.arg_worker_name(worker_group, 'worker_group'), tq_internal.arg_reason(reason, 'reason');
	IF prefix IS NULL THEN
		PERFORM tq_internal.arg_worker_name(worker_id, 'worker_id');
	END IF;
	PERFORM tq_internal.require(format('queue:worker-removed:%s/%s/%s', name, worker_group, worker_id));
	SELECT array_agg(w.id) INTO workers
		FROM tq_internal.worker w
		WHERE w.queue = (SELECT q.id FROM tq_internal.queue q WHERE q.task_queue_id = name) AND w.worker_group = worker_removed.worker_group
			AND CASE WHEN prefix IS NULL THEN w.worker_id = worker_removed.worker_id ELSE starts_with(w.worker_id, prefix) END;
	RETURN QUERY SELECT * FROM tq_internal.remove_workers(coalesce(workers, '{}'), CASE WHEN reason IS NOT NULL THEN jsonb_build_object('message', reason) END);
END
$$;
COMMENT ON FUNCTION tq.worker_removed(text, text, text, text) IS
	'resolve the runs of a worker that is gone, or of those whose worker_id begins like that, as worker-shutdown, so that they are retried; the reason becomes their error';
