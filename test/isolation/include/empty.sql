-- No task, and nothing that belongs to one.
TRUNCATE tq_internal.task, tq_internal.task_group, tq_internal.unscheduled,
	tq_internal.dependency_counter, tq_internal.pending, tq_internal.delayed, tq_internal.run,
	tq_internal.run_detail, tq_internal.dependency, tq_internal.claim_timer, tq_internal.timer,
	tq_internal.dead_letter, tq_internal.failure, tq_internal.task_key, tq_internal.unique_key,
	tq_internal.gate_member, tq_internal.artifact;
