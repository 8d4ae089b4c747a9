/*
 * priority.c
 *	  Changes the priority of unresolved tasks (doc/spec/taskcluster.md 2.14).
 *
 * Decides which tasks may get another priority, and appends the messages.  A
 * change locks the row with the location of the task, as every transition does,
 * and reads the task only then.  So two changes of one task exclude each other.
 * A run that is pending or delayed moves to its new position at once; a running
 * one is left alone, and its retry gets the new priority (pending_table.c).
 */
#include "postgres.h"

#include "../core/names.h"
#include "../core/state.h"
#include "lifecycle.h"

/* Returns the number of a priority, or raises TQ400. */
int
tq_priority_check(const char *name)
{
	int priority = tq_priority_parse(name);

	if (priority == 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid priority \"%s\"", tq_error_clip(name)),
			 errdetail("There is no priority of that name."),
			 errhint(
				 "Give highest, very-high, high, medium, low, very-low or lowest.")));
	return priority;
}

/*
 * Returns whether the task was ever finally resolved: its last run is
 * resolved, or one of its runs is a rerun.  The caller holds the lock of the
 * row with the location of the task.
 */
static bool
was_resolved(const TqRun *last)
{
	TqHistoryRun *runs;
	int n;

	if (tq_state_is_resolved(last->state) ||
		(last->state == TQ_STATE_UNSCHEDULED && last->run_id >= 0))
		return true;
	if (last->run_id <= 0)
		return false;
	runs = tq_runs_history(&last->task, 1, false, &n);
	for (int i = 0; i < n; i++)
	{
		if (runs[i].run.run_id > 0 && tq_created_is_rerun(runs[i].run.created))
			return true;
	}
	return false;
}

/*
 * Returns what task-priority-changed has in addition to the status
 * (doc/spec/taskcluster.md 6.1).
 */
static Jsonb *
change_json(int from, int to)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_text(&state, "oldPriority", tq_priority_name(from));
	tq_json_add_text(&state, "newPriority", tq_priority_name(to));
	return tq_json_end(&state);
}

/*
 * Writes the new priority of locked tasks and of their pending or delayed
 * runs.
 */
static void
write_priority(const int64 *tasks, int n, int priority, TimestampTz now)
{
	tq_pending_set_priority(tasks, n, priority);
	tq_tasks_set_priority(tasks, n, priority);
	tq_gates_priority_changed(tasks, n, now);
}

/* Changes the priority of a task whose current row is locked. */
void
tq_priority_set(TqTask *task, const TqRun *last, int priority, TimestampTz now)
{
	int from = task->priority;

	task->priority = priority;
	write_priority(&task->id, 1, priority, now);
	tq_outbox_append_detail(TQ_EXCHANGE_TASK_PRIORITY_CHANGED, task, -1, last,
							change_json(from, priority));
}

/*
 * Changes the priority of one task; returns the task with the change applied.
 */
TqNamedTask *
tq_priority_change(const TqSlug *task_id, int priority, TimestampTz now)
{
	TqNamedTask *named = tq_task_get(task_id);
	TqTask *task = &named->task;
	TqRun last;
	int found = 0;

	tq_require_priority(named);
	if (task->deadline <= now)
		tq_error_past_deadline(task);
	if (tq_run_lock(task->id, TQ_LOCK_UPDATE, &last))
		named = tq_tasks_by_id(&task->id, 1, &found);
	if (found == 0)
		tq_error_missing_task(task_id);
	task = &named->task;
	if (was_resolved(&last))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task \"%s\" has been resolved",
					tq_slug_text(&task->task_id)),
			 errdetail("Its state is %s, and run %d is its last.",
					   tq_state_name(last.state), last.run_id),
			 errhint(
				 "The priority of a task can be changed until it is resolved for the first time; create another task with this one.")));
	if (task->priority == priority)
		ereport(ERROR, (errcode(ERRCODE_TQ_CONFLICT),
						errmsg("task \"%s\" has that priority already",
							   tq_slug_text(&task->task_id)),
						errdetail("Its priority is %s.",
								  tq_priority_name(task->priority)),
						errhint("There is nothing to do.")));
	tq_priority_set(task, &last, priority, now);
	return named;
}

/* ---- groups ---- */

static int
priority_compare_slug(const void *a, const void *b)
{
	return tq_slug_compare(&((const TqTask *) a)->task_id,
						   &((const TqTask *) b)->task_id);
}

static void
report_left(int n)
{
	ereport(NOTICE, (errmsg_plural("%d task keeps its priority",
								   "%d tasks keep their priority", n, n),
					 errdetail("The priority of a task can be changed until "
							   "it is resolved for the first time.")));
}

/*
 * Locks and returns the tasks of a group that are to change, in order of task
 * id.
 */
static TqTask *
lock_group(const TqGroup *group, int priority, TimestampTz now, int *found)
{
	int n;
	int64 *ids = tq_group_unresolved(group, &n);
	TqTaskLock *locks = tq_task_lock_wait(ids, n, TQ_LOCK_UPDATE, NULL, false);
	int nlocked = 0;
	int nleft = 0;
	TqTask *tasks;

	for (int i = 0; i < n; i++)
	{
		if (locks[i].is_locked && !was_resolved(&locks[i].run))
			ids[nlocked++] = locks[i].task;
		else
			nleft += locks[i].is_locked &&
					 !tq_state_is_resolved(locks[i].run.state);
	}
	if (nleft > 0)
		report_left(nleft);
	tasks = tq_tasks_core(ids, nlocked, &n);
	*found = 0;
	for (int i = 0; i < n; i++)
	{
		if (tasks[i].deadline > now && tasks[i].priority != priority)
			tasks[(*found)++] = tasks[i];
	}
	qsort(tasks, *found, sizeof(TqTask), priority_compare_slug);
	return tasks;
}

/*
 * Begins the JSON that the result and the message of a change of a group have
 * in common.
 */
static JsonbParseState *
begin_group_json(const TqGroup *group, int priority, int affected)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_slug(&state, "taskGroupId", &group->task_group_id);
	tq_json_add_text(&state, "schedulerId", group->scheduler_id);
	tq_json_add_text(&state, "newPriority", tq_priority_name(priority));
	tq_json_add_int(&state, "tasksAffected", affected);
	return state;
}

/*
 * Appends one message for the whole group, even if no task has changed
 * (doc/spec/taskcluster.md 6.3).
 */
static void
announce_group(const TqGroup *group, int priority, int affected)
{
	JsonbParseState *state = begin_group_json(group, priority, affected);

	tq_json_add_int(&state, "version", 1);
	tq_outbox_append_detail(TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED, NULL, -1,
							NULL, tq_json_end(&state));
}

/*
 * Changes the priority of every task of a group that was never finally
 * resolved.
 */
Jsonb *
tq_priority_change_group(const TqSlug *slug, int priority, TimestampTz now)
{
	TqGroup group;
	TqTask *tasks;
	TqSlug *slugs;
	int64 *ids;
	int n;
	JsonbParseState *state;

	tq_group_get_to("change-task-group-priority", slug, &group);
	tq_require_group("change-task-group-priority", &group);
	tasks = lock_group(&group, priority, now, &n);
	ids = palloc(sizeof(int64) * Max(n, 1));
	slugs = palloc(sizeof(TqSlug) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		ids[i] = tasks[i].id;
		slugs[i] = tasks[i].task_id;
	}
	write_priority(ids, n, priority, now);
	announce_group(&group, priority, n);
	state = begin_group_json(&group, priority, n);
	tq_json_add_slugs(&state, "taskIds", slugs, n);
	return tq_json_end(&state);
}
