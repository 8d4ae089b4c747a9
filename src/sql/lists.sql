-- ---------------------------------------------------------------------------
-- Lists of queues and of their runs (doc/spec/taskcluster.md 2.16)
--
-- A list returns a page, each row of which has the position after which the next
-- page begins.  The order does not change while tasks move, so that a task is
-- neither skipped nor returned twice.  A queue that does not exist has empty lists.
-- ---------------------------------------------------------------------------

CREATE FUNCTION tq_internal.arg_page(after text, numbers int) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	page numeric[];
BEGIN
	IF after IS NULL THEN
		RETURN array_fill(-9223372036854775808, ARRAY[numbers]);
	END IF;
	IF after ~ '^[+-]?[0-9]{1,19}([.][+-]?[0-9]{1,19})?$' THEN
		page := string_to_array(after, '.');
	END IF;
	IF cardinality(page) = numbers AND -9223372036854775808 <= ALL (page) AND 9223372036854775807 >= ALL (page) THEN
		RETURN page;
	END IF;
	RAISE EXCEPTION 'invalid after "%"', tq_internal.clip(after)
		USING ERRCODE = 'TQ400', DETAIL = 'No row of this list has it as its page.', HINT = 'Give the page of the last row, or NULL.';
END
$$;
COMMENT ON FUNCTION tq_internal.arg_page(text, int) IS 'the argument after of a list of runs, so many numbers; NULL: those before the first row';

-- No index is kept for the lists of runs alone, because each claim would pay for
-- it.  Pending runs are found by pending_order, in which seq is the order of
-- becoming pending within each priority: a page of each, and then the first of
-- these.  A run that was delayed has become pending when it became claimable.
CREATE FUNCTION tq.list_pending_tasks(task_queue_id text, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.pending_entry
	LANGUAGE tq_read AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
	last bigint[] := tq_internal.arg_page(after, 1);
	page_size int := tq_internal.arg_max(max);
	now timestamptz := tq_internal.clock_now();
BEGIN
	PERFORM tq_internal.require('queue:pending-list:' || name);
	RETURN QUERY
		SELECT unnest(page.task_ids), unnest(page.run_ids), tq_internal.definitions(page.tasks), unnest(page.inserted), unnest(page.pages)
		FROM (SELECT array_agg(r.task_id) AS task_ids, array_agg(r.run_id::int) AS run_ids, array_agg(r.task) AS tasks,
				array_agg(r.inserted) AS inserted, array_agg(r.seq::text) AS pages
			FROM (SELECT p.*, greatest(p.scheduled, d.visible_at) AS inserted
				FROM generate_series(1, 7) AS y (priority)
					CROSS JOIN LATERAL (SELECT w.*, t.task_id
						FROM tq_internal.pending w JOIN tq_internal.task t ON t.id = w.task
						WHERE w.queue = (SELECT q.id FROM tq_internal.queue q WHERE q.task_queue_id = name)
							AND w.priority = y.priority AND w.seq > last[1] AND coalesce(t.effective_deadline, t.deadline) > now
						ORDER BY w.seq LIMIT page_size) AS p
					LEFT JOIN tq_internal.run_detail d ON p.has_detail AND d.task = p.task AND d.run_id = p.run_id
				ORDER BY p.seq LIMIT page_size) AS r) AS page;
END
$$;
COMMENT ON FUNCTION tq.list_pending_tasks(text, text, int) IS 'runs of a queue that can be claimed, in the order in which they became pending; go on after the page of the last row';

-- Running runs are found by the claim timers, due or not: each has one at every
-- commit (storage/timer_table.c).  So the time of a look-up grows with the running
-- tasks and the claims of the last seconds, and not with the number of tasks.
CREATE FUNCTION tq.list_claimed_tasks(task_queue_id text, after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.claimed_entry
	LANGUAGE tq_read AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
	last bigint[] := tq_internal.arg_page(after, 2);
	page_size int := tq_internal.arg_max(max);
	now timestamptz := tq_internal.clock_now();
BEGIN
	PERFORM tq_internal.require('queue:claimed-list:' || name);
	RETURN QUERY
		SELECT unnest(page.task_ids), unnest(page.run_ids), unnest(page.worker_groups), unnest(page.worker_ids), unnest(page.claimed),
			tq_internal.definitions(page.tasks), unnest(page.pages)
		FROM (SELECT array_agg(r.task_id) AS task_ids, array_agg(r.run_id::int) AS run_ids, array_agg(r.worker_group) AS worker_groups,
				array_agg(r.worker_id) AS worker_ids, array_agg(r.started) AS claimed, array_agg(r.task) AS tasks,
				array_agg(tq_internal.microseconds(r.started) || '.' || r.task) AS pages
			FROM (SELECT r.task, r.run_id, r.started, t.task_id, w.worker_group, w.worker_id
				FROM tq_internal.claimed_run r
					JOIN tq_internal.task t ON t.id = r.task
					JOIN tq_internal.worker w ON w.id = r.worker
				WHERE t.queue = (SELECT q.id FROM tq_internal.queue q WHERE q.task_queue_id = name) AND r.taken_until > now
					AND (tq_internal.microseconds(r.started), r.task) > (last[1], last[2])
				ORDER BY r.started, r.task LIMIT page_size) AS r) AS page;
END
$$;
COMMENT ON FUNCTION tq.list_claimed_tasks(text, text, int) IS 'runs of a queue that workers have, in the order in which they were claimed; go on after the page of the last row';

CREATE VIEW tq_internal.listed_queue AS
	SELECT q.task_queue_id, split_part(q.task_queue_id, '/', 1) AS provisioner_id, split_part(q.task_queue_id, '/', 2) AS worker_type,
		q.expires, q.last_date_active, '' AS description, 'experimental' AS stability
	FROM tq_internal.queue q;
COMMENT ON VIEW tq_internal.listed_queue IS 'queues as they are listed until they expire; description and stability are those of a queue of Taskcluster that was not declared';

CREATE FUNCTION tq.list_task_queues(after text DEFAULT NULL, max int DEFAULT 1000) RETURNS SETOF tq.task_queue_entry
	LANGUAGE tq_read AS $$
DECLARE
	page_size int := tq_internal.arg_max(max);
	now timestamptz := tq_internal.clock_now();
BEGIN
	PERFORM tq_internal.require('queue:list-task-queues');
	RETURN QUERY
		SELECT q.*, q.task_queue_id AS page FROM tq_internal.listed_queue q
		WHERE q.task_queue_id > coalesce(after, '') AND q.expires > now
		ORDER BY q.task_queue_id LIMIT page_size;
END
$$;
COMMENT ON FUNCTION tq.list_task_queues(text, int) IS 'queues that workers ask for work, by name; go on after the last name';

CREATE FUNCTION tq_internal.queue_json(name text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
	now timestamptz := tq_internal.clock_now();
	answer jsonb;
BEGIN
	SELECT jsonb_strip_nulls(jsonb_build_object(
			'taskQueueId', q.task_queue_id, 'provisionerId', split_part(name, '/', 1), 'workerType', split_part(name, '/', 2),
			'expires', CASE WHEN q.expires > now THEN tq_internal.json_time(q.expires) END,
			'lastDateActive', CASE WHEN q.expires > now THEN tq_internal.json_time(q.last_date_active) END,
			'description', '', 'stability', 'experimental')) || jsonb_build_object('settings', coalesce(s.settings, '{}'))
		INTO answer
		FROM tq_internal.queue q LEFT JOIN tq_internal.queue_settings s ON s.queue = q.id
		WHERE q.task_queue_id = name AND (q.expires > now OR s.queue IS NOT NULL);
	IF NOT FOUND THEN
		RAISE EXCEPTION 'task queue "%" does not exist', name
			USING ERRCODE = 'TQ404', DETAIL = 'It has no settings, and no worker has asked it for work, or not for a day.',
				HINT = 'A task queue becomes known by the first tq.claim_work() of a worker.';
	END IF;
	RETURN answer;
END
$$;
COMMENT ON FUNCTION tq_internal.queue_json(text) IS 'a queue as get_task_queue() shows it';

CREATE FUNCTION tq.get_task_queue(task_queue_id text) RETURNS jsonb
	LANGUAGE tq_read AS $$
DECLARE
	name text := tq_internal.arg_queue(task_queue_id);
BEGIN
	PERFORM tq_internal.require('queue:get-task-queue:' || name);
	RETURN tq_internal.queue_json(name);
END
$$;
COMMENT ON FUNCTION tq.get_task_queue(text) IS 'a queue: its settings, when a worker last asked it for work, and when it expires';
