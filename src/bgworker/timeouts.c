/*
 * timeouts.c
 *	  Timeouts of policies: runs that are running or pending for too long, and
 *	  alerts where a policy only alerts (doc/spec/policy.md 2, 5, 10).
 *
 * Steps of maintenance.c, under its rules: a timer only says which tasks to
 * check.  What has happened is decided by the row of each task, under its lock,
 * and a task that is locked is skipped.  A timer whose run was deferred, lost
 * or retried meanwhile is stale and has no effect.  Two kinds of timers do have
 * an effect of their own: the alert of a total timeout, which leaves no trace
 * in the rows of the task, and the cancellation of the rest of a group, except
 * for tasks rerun since.
 *
 * Every pending or running run has the timers that it needs.  The transaction
 * that makes it pending writes the timer of the pending timeout; the one that
 * starts it first writes the timer of the run timeout.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/names.h"
#include "../core/policy.h"
#include "../core/state.h"
#include "../core/types.h"
#include "../engine/engine.h"
#include "../events/events.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "bgworker.h"

/* ---- alerts ---- */

/*
 * Appends an alert that a timeout of the last run is over (doc/spec/policy.md
 * 10.5).
 */
static void
alert(const TqRun *run, const TqTask *task, const char *timeout)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_text(&state, "timeout", timeout);
	tq_outbox_append_detail(TQ_EXCHANGE_TASK_ALERT, task, run->run_id, run,
							tq_json_end(&state));
}

/* ---- limits ---- */

/* Returns when a timeout of this run is over, by the run and its policy. */
typedef TimestampTz (*RunLimit)(const TqRun *run, const TqRunDetail *detail,
								const TqPolicy *policy);

/*
 * Returns the end of the run timeout, which counts from the first start of the
 * run, also while the run is deferred.
 */
static TimestampTz
end_of_run(const TqRun *run, const TqRunDetail *detail, const TqPolicy *policy)
{
	if (policy->run_timeout == TQ_OFF || run->started == 0)
		return DT_NOEND;
	return tq_policy_after(run->started, policy->run_timeout);
}

static TimestampTz
end_of_pending(const TqRun *run, const TqRunDetail *detail,
			   const TqPolicy *policy)
{
	return run->state == TQ_STATE_PENDING
			   ? tq_policy_pending_until(policy, run->scheduled, run->started,
										 detail == NULL
											 ? 0
											 : detail->budget.pending_until)
			   : DT_NOEND;
}

/*
 * Keeps the locked tasks whose timeout is over.  Where the policy only alerts,
 * appends an alert instead, and returns the number of alerts.  A task that is
 * past its deadline is left to the deadline step.
 *
 * An alert changes no row, so no row shows that it was given.  It is given by
 * the run's own timer, which is due when the timeout is over.  If the timeout
 * ends later than any timer that was taken, even if that time is past as well,
 * the run was found by a timer of an earlier run, and its own timer is still
 * to come.
 */
static int
keep_over(TqLockedTasks *locked, RunLimit limit, const char *timeout,
		  TimestampTz taken, TimestampTz now)
{
	int n = locked->n;
	int alerts = 0;

	tq_locked_tasks_read_details(locked);
	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		const TqPolicy *policy = tq_policy_get(locked->tasks[i].policy);
		TimestampTz end = limit(&locked->runs[i], locked->details[i], policy);

		if (end > now || locked->tasks[i].deadline <= now)
			continue;
		if (!policy->alert_only)
			tq_locked_tasks_keep(locked, i);
		else if (end <= taken)
		{
			alert(&locked->runs[i], &locked->tasks[i], timeout);
			alerts++;
		}
	}
	return alerts;
}

/* ---- steps ---- */

/* Ends runs that have reached their run timeout or their pending timeout. */
int64
tq_timeout_end(const TqWork *work)
{
	bool is_run = work->step == TQ_STEP_RUN_TIMEOUT;
	TqEvent event = is_run ? TQ_EVENT_RUN_TIMEOUT : TQ_EVENT_PENDING_TIMEOUT;
	TqLockedTasks locked;
	int alerts;

	tq_task_lock_unresolved(work->tasks, work->n, &locked);
	alerts = keep_over(&locked, is_run ? end_of_run : end_of_pending,
					   tq_resolved_name(tq_event_resolved(event)), work->due,
					   work->now);
	return alerts + tq_transitions_end(&locked, event,
									   is_run ? TQ_TIMER_RUN_TIMEOUT
											  : TQ_TIMER_PENDING_TIMEOUT,
									   work->now);
}

/*
 * Ends those runs that have just replaced lost ones and whose inherited
 * pending timeout is over already.  As in Taskbroker, lost runs are replaced
 * first and checked for their pending timeout then.
 */
int64
tq_timeout_inherited(const TqTask *tasks, int n, TimestampTz now)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	int count = 0;
	TqWork work = {.step = TQ_STEP_PENDING_TIMEOUT,
				   .tasks = ids,
				   .due = now,
				   .now = now};

	for (int i = 0; i < n; i++)
	{
		const TqPolicy *policy = tq_policy_get(tasks[i].policy);

		if (policy->lost_retries != TQ_OFF &&
			policy->pending_timeout != TQ_OFF && !policy->alert_only)
			ids[count++] = tasks[i].id;
	}
	work.n = count;
	return count == 0 ? 0 : tq_timeout_end(&work);
}

/*
 * Alerts of total timeouts where the policy only alerts; otherwise a total
 * timeout is an effective deadline (pending_run.c).
 */
int64
tq_timeout_total(const TqWork *work)
{
	TqLockedTasks locked;

	tq_task_lock_unresolved(work->tasks, work->n, &locked);
	tq_timer_insert(TQ_TIMER_TOTAL_TIMEOUT,
					tq_clock_add_ms(work->now, TQ_AGAIN_MS), locked.others,
					locked.nothers);
	tq_locked_tasks_read_details(&locked);
	for (int i = 0; i < locked.n; i++)
		alert(&locked.runs[i], &locked.tasks[i], "total-timeout");
	return locked.n;
}

/*
 * Cancels the rest of groups that are being canceled (transition.c), except
 * for tasks that were rerun since, which are meant to run.  A timer of a
 * resolved task is for what depends on it.  Works on one timer
 * row at a time, because the due time of each says when its group was
 * canceled.
 */
int64
tq_timeout_cancel(const TqWork *work)
{
	TimestampTz canceled = tq_clock_add_ms(work->due, -TQ_AGAIN_MS);
	TqLockedTasks locked;
	int dependents;
	int n;

	tq_task_lock_unresolved(work->tasks, work->n, &locked);
	dependents = tq_transitions_cancel_dependents(locked.resolved,
												  locked.nresolved, work->now);
	n = locked.n;
	locked.n = 0;
	for (int i = 0; i < n; i++)
	{
		if (!tq_created_is_rerun(locked.runs[i].created) ||
			locked.runs[i].scheduled <= canceled)
			tq_locked_tasks_keep(&locked, i);
	}
	return dependents + tq_transitions_end(&locked, TQ_EVENT_CANCEL,
										   TQ_TIMER_CANCEL, work->now);
}
