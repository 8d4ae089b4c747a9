-- no() returns the number of a task.
CREATE OR REPLACE FUNCTION no(name text) RETURNS bigint LANGUAGE sql STABLE AS
	$$ SELECT t.id FROM tq_internal.task t WHERE task_id = id(name) $$;
