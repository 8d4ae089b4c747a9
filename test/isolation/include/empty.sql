-- No task, and nothing that belongs to one.  A table that has not been written to since the
-- last time is as it was then.
DO $$ BEGIN
	EXECUTE (SELECT coalesce('TRUNCATE ' || string_agg(oid::regclass::text, ', '), 'SELECT') FROM pg_class
		WHERE relnamespace = 'tq_internal'::regnamespace AND pg_relation_size(oid) > 0
			AND relname IN ('task', 'task_group', 'unscheduled', 'dependency_counter', 'pending', 'delayed', 'run', 'run_detail',
				'dependency', 'foreign_dependency', 'claim_timer', 'timer', 'dead_letter', 'failure', 'task_key', 'unique_key', 'gate_member', 'artifact'));
END $$;
