-- redriven shows the tasks with dead letters, and how many letters and heirs (new tasks
-- redriven from it) each has.
include empty id
CREATE OR REPLACE VIEW with_letter AS
	SELECT rtrim(left(task_id::text, 8), '_') AS task FROM tq_internal.dead_letter;
CREATE OR REPLACE VIEW with_heir AS
	SELECT rtrim(left(t.extra ->> 'redriveOf', 8), '_') AS task, o.state
	FROM tq_internal.task t JOIN tq.task_details o ON o.task_id = t.task_id WHERE t.extra ? 'redriveOf';
CREATE OR REPLACE VIEW redriven AS
	SELECT n.task, o.state,
		(SELECT string_agg(concat_ws(' ', r.run_id, r.state, r.reason_created, r.reason_resolved),
			', ' ORDER BY r.run_id) FROM tq.run_overview r WHERE r.task_id = o.task_id) AS runs,
		(SELECT count(*) FROM with_letter l WHERE l.task = n.task) AS letters,
		(SELECT count(*) FROM with_heir h WHERE h.task = n.task AND h.state = 'pending') AS heirs
	FROM (SELECT task FROM with_letter UNION SELECT task FROM with_heir UNION SELECT rtrim(left(t.task_id::text, 8), '_')
			FROM tq_internal.task t WHERE (t.extra ? 'redriveOf') IS NOT TRUE) AS n
		LEFT JOIN tq.task_details o ON o.task_id = id(n.task)
	ORDER BY n.task COLLATE "C";
-- A task that fails finally, perhaps expired since; its deadline is an hour away.
CREATE OR REPLACE PROCEDURE die(name text, is_gone bool DEFAULT false) LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	PERFORM tq.enqueue('iso/w', task_id => id(name), deadline => '1 hour', policy => jsonb_build_object('deadLetter', true));
	PERFORM tq.report_failed(task_id, run_id) FROM tq.claim_work('iso/w', 'g', 'w');
	IF is_gone THEN
		DELETE FROM tq_internal.task WHERE task_id = id(name) RETURNING id INTO n;
		DELETE FROM tq_internal.run WHERE task = n;
	END IF;
END
$$;
