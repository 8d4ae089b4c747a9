/*
 * lifecycle.c
 *	  What is asked of one task from outside: schedule, rerun, cancel.
 *
 * Room 4.  Follows spec/taskcluster.md 2.3 to 2.5.  Each locks the row in
 * which the task stands, asks state.c whether the event is legal there, and
 * makes the transition; the deadline never changes, so it is looked at first.
 */
#include "rules.h"

void
tq_refuse_missing_task(const TqSlug *task_id)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_NOT_FOUND),
		 errmsg("task \"%s\" does not exist", tq_slug_text(task_id)),
		 errdetail("It was never created, or it has expired."),
		 errhint(
			 "Check the task id, and that its transaction was committed.")));
}

/* The task, or TQ404. */
TqTask *
tq_task_get(const TqSlug *task_id, bool whole)
{
	TqTask *task = whole ? tq_task_whole_by_slug(task_id)
						 : tq_task_by_slug(task_id);

	if (task == NULL)
		tq_refuse_missing_task(task_id);
	return task;
}

void
tq_refuse_past_deadline(const TqTask *task)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task \"%s\" is past its deadline",
					tq_slug_text(&task->task_id)),
			 errdetail("Its deadline was %s.", tq_clock_text(task->deadline)),
			 errhint("Create a new task.")));
}

void
tq_refuse_missing_run(const TqTask *task, int run_id)
{
	TqRun last = {.run_id = -1};

	(void) tq_run_peek(task->id, &last);
	ereport(ERROR,
			(errcode(ERRCODE_TQ_NOT_FOUND),
			 errmsg("task \"%s\" has no run %d",
					tq_slug_text(&task->task_id),
					run_id),
			 errdetail_plural("It has %d run.",
							  "It has %d runs.",
							  last.run_id + 1,
							  last.run_id + 1),
			 errhint("tq.status() shows the runs of a task.")));
}

/* Lock the task where it stands; it has just been found, but may expire any time. */
static void
lock_task(const TqTask *task, TimestampTz now, TqRun *run)
{
	if (task->deadline < now)
		tq_refuse_past_deadline(task);
	if (!tq_run_lock(task->id, TQ_LOCK_UPDATE, run))
		tq_refuse_missing_task(&task->task_id);
}

/* Say in which state the task's last run is, for the first time or again. */
static void
announce(const TqTask *task, const TqRun *last)
{
	TqMessage message = tq_publish_make(tq_state_exchange(last->state),
										task,
										last->run_id,
										last);

	tq_publish(&message, 1);
}

/* Add a pending run that follows this one, at the back of the queue. */
static void
add_run(const TqTask *task, const TqRun *last, TqCreated reason,
		int retries_left, TimestampTz now)
{
	TqRun run = {.run_id = last->run_id + 1, .state = TQ_STATE_PENDING};
	TqPending pending = {.task = task->id,
						 .queue = task->queue,
						 .priority = task->priority,
						 .run_id = run.run_id,
						 .retries_left = retries_left,
						 .created = reason,
						 .scheduled = now};

	if (last->place == TQ_PLACE_UNSCHEDULED)
		tq_unscheduled_delete(&task->id, 1);
	tq_pending_insert(&pending, 1);
	announce(task, &run);
}

/* 2.3: whatever its dependencies are. */
void
tq_lifecycle_schedule(const TqTask *task, TimestampTz now)
{
	TqRun last;

	lock_task(task, now, &last);
	if (tq_state_verdict(last.state, TQ_EVENT_SCHEDULE) == TQ_VERDICT_APPLY)
		add_run(task, &last, TQ_CREATED_SCHEDULED, task->retries, now);
}

/*
 * 2.4: one more run, with fresh retries as far as the limit of runs allows.
 * It gets a timer of its own: the task's may have been taken while the task
 * was resolved, when the deadline comes between our look at it and our commit.
 */
void
tq_lifecycle_rerun(const TqTask *task, TimestampTz now)
{
	TqRun last;

	lock_task(task, now, &last);
	if (tq_state_verdict(last.state, TQ_EVENT_RERUN) != TQ_VERDICT_APPLY)
	{
		if (last.state == TQ_STATE_PENDING)
			announce(task, &last);
		return;
	}
	if (last.run_id + 1 >= tq_max_runs)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("task \"%s\" has reached the maximum number of runs",
						tq_slug_text(&task->task_id)),
				 errdetail("It has %d runs, and may have %d (tq.max_runs).",
						   last.run_id + 1,
						   tq_max_runs),
				 errhint("Create a new task.")));
	tq_timer_insert(TQ_TIMER_DEADLINE,
					tq_clock_add_ms(task->deadline, tq_deadline_delay),
					&task->id,
					1);
	add_run(task,
			&last,
			TQ_CREATED_RERUN,
			tq_rerun_retries(task->retries, tq_max_runs, last.run_id + 1),
			now);
}

/* 2.5: never retried, whatever is left. */
void
tq_lifecycle_cancel(const TqTask *task, TimestampTz now)
{
	TqRun last;

	lock_task(task, now, &last);
	if (tq_state_verdict(last.state, TQ_EVENT_CANCEL) == TQ_VERDICT_APPLY)
		tq_resolve_final(&last, task, 1, TQ_RESOLVED_CANCELED, now);
	else if (last.reason == TQ_RESOLVED_CANCELED)
		announce(task, &last);
}
