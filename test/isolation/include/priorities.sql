-- task and run are the priorities of the task and of its pending run.
include empty id
CREATE OR REPLACE VIEW priorities AS
	SELECT rtrim(left(o.task_id::text, 8), '_') AS name, o.state, o.priority AS task,
		tq_internal.priority_name(p.priority) AS run, o.last_run_id AS run_id
	FROM tq.task_details o JOIN tq_internal.task t ON t.task_id = o.task_id
		LEFT JOIN tq_internal.pending p ON p.task = t.id
	ORDER BY o.task_id;
