-- The tasks with their runs, each with its attempt and its delay.  ok is true if an
-- unresolved task has exactly one row in the view waits and a resolved one none; a running
-- one has a claim timer; each deadline and each timeout of the policy that can still come
-- has a timer; and each run has a detail row if has_detail is true.
include empty id
CREATE OR REPLACE VIEW places AS
	SELECT task, run_id, 'pending' AS place, has_detail FROM tq_internal.pending UNION ALL
	SELECT task, run_id, 'delayed', has_detail FROM tq_internal.delayed UNION ALL
	SELECT task, run_id, CASE WHEN state = 2 THEN 'running' END, has_detail FROM tq_internal.run UNION ALL
	SELECT task, NULL, 'unscheduled', false FROM tq_internal.unscheduled;
CREATE OR REPLACE VIEW waits AS
	SELECT p.task, p.place, y.policy ? 'runTimeout' AND NOT y.policy ? 'timeoutAlertOnly' AND (p.place = 'running' OR d.started IS NOT NULL) AS running,
		y.policy ? 'pendingTimeout' AND NOT y.policy ? 'timeoutAlertOnly' AND p.place IN ('pending', 'delayed') AND d.started IS NULL AS pending
	FROM places p JOIN tq_internal.task t ON t.id = p.task LEFT JOIN tq_internal.policy y ON y.id = t.policy
		LEFT JOIN tq_internal.run_detail d ON d.task = p.task AND d.run_id = p.run_id
	WHERE p.place IS NOT NULL;
CREATE OR REPLACE VIEW lives AS
	SELECT rtrim(left(o.task_id::text, 8), '_') AS task, COALESCE(w.place, o.state) AS state,
		(SELECT count(*) FROM waits WHERE task = t.id) = CASE WHEN o.state IN ('unscheduled', 'pending', 'running') THEN 1 ELSE 0 END
		AND (o.state <> 'running' OR EXISTS (SELECT FROM tq_internal.claim_timer l JOIN tq_internal.run r
			ON r.task = t.id AND r.state = 2 AND l.due <= r.taken_until + interval '3 minutes' WHERE t.id = ANY (l.tasks))
			OR EXISTS (SELECT FROM tq_internal.left_timer m WHERE m.is_claim AND m.task = t.id))
		AND (w.task IS NULL OR EXISTS (SELECT FROM tq_internal.timer m WHERE m.kind = 1 AND t.id = ANY (m.tasks) AND m.due <= o.deadline + interval '3 minutes')
			OR EXISTS (SELECT FROM tq_internal.left_timer m WHERE NOT m.is_claim AND m.task = t.id AND m.due <= o.deadline + interval '3 minutes'))
		AND (w.running IS NOT TRUE OR EXISTS (SELECT FROM tq_internal.timer m WHERE m.kind = 3 AND t.id = ANY (m.tasks)))
		AND (w.pending IS NOT TRUE OR EXISTS (SELECT FROM tq_internal.timer m WHERE m.kind = 4 AND t.id = ANY (m.tasks)))
		AND NOT EXISTS (SELECT FROM (SELECT * FROM places WHERE task = t.id AND run_id IS NOT NULL) p
			FULL JOIN (SELECT task, run_id FROM tq_internal.run_detail WHERE task = t.id) d USING (task, run_id)
			WHERE p.has_detail IS DISTINCT FROM (d.task IS NOT NULL)) AS ok,
		(SELECT tq_internal.reason_resolved_name(l.reason) FROM tq_internal.dead_letter l WHERE l.task = t.id) AS letter,
		(SELECT string_agg(concat_ws(' ', r.run_id, r.state, r.reason_created, r.reason_resolved, r.worker_id,
			'attempt ' || NULLIF(r.attempt, 0), 'after ' || NULLIF(round(extract(epoch FROM r.visible_at - r.scheduled) / 60), 0) || ' min'),
			', ' ORDER BY r.run_id) FROM tq.run_overview r WHERE r.task_id = o.task_id) AS runs
	FROM tq.task_details o JOIN tq_internal.task t ON t.task_id = o.task_id
		LEFT JOIN waits w ON w.task = t.id
	ORDER BY o.task_id;
