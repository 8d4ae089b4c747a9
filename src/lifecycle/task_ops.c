/*
 * task_ops.c
 *	  Requests of clients about one task: schedule, rerun, reschedule, skip,
 *	  cancel, delete.
 *
 * Follows doc/spec/taskcluster.md 2.3 to 2.5 and 2.21, and doc/spec/policy.md
 * 5. Each request locks the row with the location of the task; transition.c
 * makes the transition.
 *
 * The deadline is checked before the lock is taken.  Only a concurrent session
 * that schedules the task or repairs it changes the deadline; then this call
 * counts as the earlier of the two.
 */
#include "postgres.h"

#include "../core/names.h"
#include "../core/state.h"
#include "lifecycle.h"

/*
 * Locks the row with the location of the task.  The task has just been found,
 * but may expire at any time, or be moved to another queue.
 */
static void
lock_task(TqTask *task, TimestampTz now, TqRun *run)
{
	if (task->deadline < now)
		tq_error_past_deadline(task);
	if (!tq_run_lock(task->id, TQ_LOCK_UPDATE, run) ||
		!tq_task_order(task->id, &task->queue, &task->priority))
		tq_error_missing_task(&task->task_id);
}

/*
 * Makes an unscheduled task pending, whatever its dependencies are
 * (doc/spec/taskcluster.md 2.3).
 */
void
tq_task_schedule(TqTask *task, TimestampTz now)
{
	TqRun last;

	lock_task(task, now, &last);
	(void) tq_transition_request(task, &last, TQ_EVENT_SCHEDULE, now);
}

/* Raises TQ409 if the payload of a completed task was dropped. */
void
tq_task_check_payload(const TqTask *task)
{
	if (tq_policy_get(task->policy)->drop_payload)
		ereport(ERROR, (errcode(ERRCODE_TQ_CONFLICT),
						errmsg("task \"%s\" has no payload any more",
							   tq_slug_text(&task->task_id)),
						errdetail("It was dropped when the task was completed "
								  "(dropPayload)."),
						errhint("Create a task with the payload again.")));
}

/* Raises TQ409 if a task has so many runs that it cannot get another one. */
void
tq_task_check_runs(const TqTask *task, const TqRun *last)
{
	if (last->run_id + 1 >= tq_max_runs)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task \"%s\" has reached the maximum number of runs",
					tq_slug_text(&task->task_id)),
			 errdetail("It has %d runs, and may have %d (tq.max_runs).",
					   last->run_id + 1, tq_max_runs),
			 errhint(
				 "Create a task with the definition that tq.task() returns, or raise tq.max_runs.")));
}

/*
 * Adds one more run, and deletes the dead letter of the task if it has one
 * (doc/spec/taskcluster.md 2.4).  Its unique key is locked before the task
 * (unique.c).
 */
void
tq_task_rerun(TqTask *task, TimestampTz now)
{
	TqRun last;
	TqUniqueKey unique;
	TqRerunKey key = tq_unique_rerun(task, TQ_LOCK_UPDATE, now, &unique);
	bool applies;

	lock_task(task, now, &last);
	applies = tq_state_verdict(last.state, TQ_EVENT_RERUN) == TQ_VERDICT_APPLY;
	if (key == TQ_RERUN_HELD && applies)
		tq_unique_error_rerun(task, unique.task);
	if (last.state == TQ_STATE_COMPLETED)
		tq_task_check_payload(task);
	if (applies)
	{
		tq_task_check_runs(task, &last);
		tq_unique_take(task, &unique);
	}
	if (tq_transition_request(task, &last, TQ_EVENT_RERUN, now) &&
		tq_policy_get(task->policy)->dead_letter)
		(void) tq_dead_letter_delete(&task->task_id);
}

/*
 * Makes a waiting run claimable at another time.  It keeps its number, its
 * budgets, and the time at which it was scheduled; a pending timeout counts
 * from the new time.
 */
static void
task_ops_move_run(TqTask *task, TqRun *run, TimestampTz visible_at,
				  TimestampTz now)
{
	TqStart start = {.task = task,
					 .created = run->created,
					 .scheduled = run->scheduled};
	TqBudget fresh = {0};

	tq_run_detail(run, task->policy, &start.detail);
	start.detail.budget.visible_at = visible_at;
	tq_policy_first(tq_policy_get(task->policy), 0, visible_at, &fresh);
	if (start.detail.started == 0)
		start.detail.budget.pending_until = fresh.pending_until;
	tq_pending_run_move(&start, run, now);
}

/*
 * Makes the pending or delayed run of a task claimable at a time, or at once if
 * that has passed (doc/spec/taskcluster.md 2.21).  A run that is claimable
 * already keeps its position then.
 */
void
tq_task_reschedule(TqTask *task, TimestampTz run_at, TimestampTz now)
{
	TqRun last;
	TqPending claimable;

	lock_task(task, now, &last);
	if (last.state != TQ_STATE_PENDING)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("task \"%s\" cannot be rescheduled",
						tq_slug_text(&task->task_id)),
				 errdetail("The task is %s.", tq_state_name(last.state)),
				 errhint(
					 "Only a pending task can be rescheduled; "
					 "tq.schedule_task() makes an unscheduled one pending.")));
	/*
	 * Raise TQ400 unless a run can be claimed at a time before the deadline.
	 */
	if (run_at >= task->deadline)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("run_at must be before the deadline of the task"),
				 errdetail("It is %s, and the deadline of task \"%s\" is %s.",
						   tq_clock_text(run_at), tq_slug_text(&task->task_id),
						   tq_clock_text(task->deadline)),
				 errhint("Give an earlier time, or another deadline "
						 "by tq.rerun_task().")));
	if (last.location == TQ_LOCATION_PENDING && run_at <= now)
		return;
	task_ops_move_run(task, &last, Max(run_at, now), now);
	claimable = (TqPending){.queue = task->queue};
	if (run_at <= now && !tq_gate_applies(task))
		tq_outbox_append_claimable(&claimable, 1);
}

/*
 * Completes a task without running it, so that its dependents can proceed
 * (doc/spec/policy.md 5).
 */
void
tq_task_skip(TqTask *task, Jsonb *output, TimestampTz now)
{
	TqRun last;
	TqRunDetail detail;

	lock_task(task, now, &last);
	if (tq_policy_get(task->policy)->drop_payload)
		output = NULL;
	if (tq_state_verdict(last.state, TQ_EVENT_SKIP) != TQ_VERDICT_APPLY &&
		last.reason != TQ_RESOLVED_SKIPPED)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task \"%s\" cannot be skipped",
					tq_slug_text(&task->task_id)),
			 errdetail("The task is %s.", tq_state_name(last.state)),
			 errhint(
				 "Only an unscheduled or pending task can be skipped; tq.cancel_task() ends a running one.")));
	last.has_detail = last.has_detail || output != NULL;
	if (!tq_transition_request(task, &last, TQ_EVENT_SKIP, now) ||
		output == NULL)
		return;
	tq_run_detail(&last, task->policy, &detail);
	detail.result = output;
	tq_details_write(&detail, 1);
}

/*
 * Cancels a task; it is not retried, whatever retries are left
 * (doc/spec/taskcluster.md 2.5).
 */
void
tq_task_cancel(TqTask *task, TimestampTz now)
{
	TqRun last;

	lock_task(task, now, &last);
	(void) tq_transition_request(task, &last, TQ_EVENT_CANCEL, now);
}

/*
 * Makes the publisher check the group of an unresolved task that was deleted.
 * If no unresolved task of the group is left, appends a note that names
 * another task of it.  If another session still sees an unresolved task, the
 * end of that task has the same effect.
 */
static void
note_group_of_deleted(const TqNamedTask *named)
{
	static const TqSlug lowest = {{0}};
	TqRun noted = {.state = TQ_STATE_COMPLETED};
	TqOutboxBatch batch = {0};
	TqGroup group;
	TqTaskDefinition *members;
	int n;

	if (tq_group_find(&named->group_slug, &group) == TQ_GROUP_NONE)
		return;
	(void) tq_group_unresolved(&group, &n);
	if (n > 0)
		return;
	members = tq_definitions_of_group(group.id, &named->group_slug, &lowest, 1,
									  &n);
	if (n == 0)
		return;
	noted.task = members[0].named.task.id;
	tq_outbox_add_note(&batch, &noted);
	tq_outbox_append(&batch);
}

/* Notifies the worker of a running run whose task was deleted. */
static void
note_deleted(const TqTask *task, const TqRun *last)
{
	TqOutboxBatch batch = {0};

	if (last->state != TQ_STATE_RUNNING || !tq_worker_channel_is_listened())
		return;
	tq_worker_channel_add(&batch, &task->task_id, last, "deleted");
	tq_outbox_append(&batch);
}

/*
 * Deletes a task in any state, as its expiry would, together with its dead
 * letter and its postponed maintenance.  The row with the location of the task
 * is locked first, as for a transition, so that a concurrently created
 * dependent either is seen here or does not find the task.  If there is no
 * such row, the task is deleted nevertheless.
 */
void
tq_task_delete(const TqNamedTask *named)
{
	TqTask task = named->task;
	TqRun last = {.state = TQ_STATE_COMPLETED};

	if (tq_run_lock(task.id, TQ_LOCK_UPDATE, &last) &&
		last.location == TQ_LOCATION_PENDING)
		tq_pending_delete(&task.id, 1);
	(void) tq_task_order(task.id, &task.queue, &task.priority);
	tq_artifacts_delete_of_tasks(&task.id, 1);
	(void) tq_dead_letter_delete(&task.task_id);
	if (tq_tasks_delete(&task.id, 1) == 0)
		tq_error_missing_task(&task.task_id);
	tq_count_deleted(&task, &last);
	tq_wait_note_resolved(task.id);
	note_deleted(&task, &last);
	if (!tq_state_is_resolved(last.state))
		note_group_of_deleted(named);
}
