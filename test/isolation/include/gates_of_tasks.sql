-- gates_of_tasks shows where each task is, and what it is at its gates: 0 admitted, 1, 2, 4
-- and 5 waiting.  admit() returns how many tasks were admitted.
include empty id
CREATE OR REPLACE FUNCTION admit() RETURNS bigint LANGUAGE sql AS $$ SELECT tasks FROM tq.upkeep() WHERE step = 'admit' $$;
CREATE OR REPLACE VIEW gates_of_tasks AS
	SELECT rtrim(left(o.task_id::text, 8), '_') AS task,
		CASE WHEN d.visible_at = 'infinity' THEN 'parked' WHEN d.task IS NOT NULL THEN 'delayed' ELSE o.state END AS place,
		(SELECT string_agg(CASE m.kind WHEN 1 THEN 'serial ' ELSE 'key ' END || m.state, ', ' ORDER BY m.kind) FROM tq_internal.gate_member m
			WHERE m.task = t.id) AS gates
	FROM tq.task_details o JOIN tq_internal.task t ON t.task_id = o.task_id LEFT JOIN tq_internal.delayed d ON d.task = t.id
	ORDER BY t.id;
