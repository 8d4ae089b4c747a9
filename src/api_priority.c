/*
 * api_priority.c
 *	  SQL functions that change priorities (doc/spec/taskcluster.md 2.14).
 *
 * Room 5.  Raises TQ400 for an invalid priority, TQ404 for a task or group
 * that does not exist, and TQ409 for a task that is resolved, is past its
 * deadline, or already has that priority.
 */
#include "api.h"

PG_FUNCTION_INFO_V1(tq_change_task_priority);
PG_FUNCTION_INFO_V1(tq_change_task_group_priority);

static int
get_priority(FunctionCallInfo fcinfo, int n)
{
	return tq_priority_check(tq_arg_text(fcinfo, n, "priority"));
}

/* change_task_priority(task_id slugid, priority text) -> status */
Datum
tq_change_task_priority(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int priority = get_priority(fcinfo, 1);
	TqTask *task;
	Jsonb *status;

	tq_plan_open(false);
	task = tq_priority_change(task_id, priority, tq_clock_now());
	status = tq_plan_keep(tq_status_of(task));
	tq_plan_close();
	PG_RETURN_JSONB_P(status);
}

/*
 * change_task_group_priority(task_group_id slugid, priority text)
 *	 -> {taskGroupId, schedulerId, newPriority, tasksAffected, taskIds}
 */
Datum
tq_change_task_group_priority(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	int priority = get_priority(fcinfo, 1);
	Jsonb *result;

	tq_plan_open(false);
	result = tq_plan_keep(
		tq_priority_change_group(slug, priority, tq_clock_now()));
	tq_plan_close();
	PG_RETURN_JSONB_P(result);
}
