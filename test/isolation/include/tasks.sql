-- The tasks with their runs.  ok is true if an unresolved task has exactly one row in the
-- view holders and a resolved one none, a running one a claim timer, and an unresolved
-- one a timer for its deadline, or a message whose publisher inserts it.
include empty id no holders
CREATE OR REPLACE VIEW tasks AS
	SELECT rtrim(left(o.task_id::text, 8), '_') AS task, o.state, o.unmet,
		h.n = CASE WHEN o.state IN ('unscheduled', 'pending', 'running') THEN 1 ELSE 0 END
		AND (o.state <> 'running' OR EXISTS (SELECT FROM tq_internal.claim_timer l JOIN tq_internal.run r
			ON r.task = t.id AND r.state = 2 AND l.due <= r.taken_until + interval '2 minutes' WHERE t.id = ANY (l.tasks))
			OR EXISTS (SELECT FROM tq_internal.left_timer m WHERE m.is_claim AND m.task = t.id))
		AND (h.n = 0 OR EXISTS (SELECT FROM tq_internal.timer m WHERE m.kind = 1 AND t.id = ANY (m.tasks))
			OR EXISTS (SELECT FROM tq_internal.left_timer m WHERE NOT m.is_claim AND m.task = t.id)) AS ok,
		(SELECT string_agg(concat_ws(' ', r.run_id, r.state, r.reason_created, r.reason_resolved, r.worker_id),
			', ' ORDER BY r.run_id) FROM tq.run_overview r WHERE r.task_id = o.task_id) AS runs
	FROM tq.task_details o JOIN tq_internal.task t ON t.task_id = o.task_id
		CROSS JOIN LATERAL (SELECT count(*) AS n FROM holders WHERE task = t.id) h
	ORDER BY o.task_id;
