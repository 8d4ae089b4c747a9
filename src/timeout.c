/*
 * timeout.c
 *	  What the time limits of policies bring about: runs that run or are pending
 *	  for too long, and alerts where that is all (spec/policy.md 2, 5, 10).
 *
 * Room 4.  Steps of upkeep.c, under its rules: a row of timer says only "look
 * at these tasks"; what has happened is decided by each task's own row, under
 * its lock, which is never waited for.  That a run was deferred, lost, or
 * retried meanwhile makes a row stale and no more.  Two kinds of rows are
 * orders: to alert of a total time, which leaves no trace in the task's row,
 * and to cancel what is left of a group, but for what was rerun since.
 *
 * Every run that is pending or running has the timers that it needs: one for
 * its pending time is written when it becomes pending, one for its running
 * time when it is started first, by the transaction that does so.
 */
#include "rules.h"

#include "json.h"
#include "upkeep.h"

/* ---- alerts ---- */

/* Say that the last run of a task has come to the end of a time (10.5). */
static void
alert(const TqRun *run, const TqTask *task, const char *timeout)
{
	JsonbParseState *state = NULL;
	TqMessage message =
		tq_publish_make(TQ_EXCHANGE_TASK_ALERT, task, run->run_id, run);

	message.worker = run->worker;
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_text(&state, "timeout", timeout);
	message.detail = tq_json_end(&state);
	tq_publish(&message, 1);
}

/* ---- limits ---- */

/* A limit: when it is over for a run, by the run itself and its policy. */
typedef TimestampTz (*Limit)(const TqRun *run, const TqPolicy *policy);

/* The run was started then, be it running or deferred. */
static TimestampTz
end_of_run(const TqRun *run, const TqPolicy *policy)
{
	if (policy->run_timeout == TQ_OFF || run->started == 0)
		return DT_NOEND;
	return tq_policy_after(run->started, policy->run_timeout);
}

static TimestampTz
end_of_pending(const TqRun *run, const TqPolicy *policy)
{
	return run->state == TQ_STATE_PENDING ? tq_run_pending_until(run, policy)
										  : DT_NOEND;
}

/*
 * Leave of those that are held the ones whose limit is over, and tell of those
 * where nothing else is to be done; returns how many those are.  A task that
 * is past its deadline is for that step.
 *
 * An alert changes nothing, so that nothing tells that it was given; it is
 * given by the run's own timer, which is due when the limit is over.  A run
 * whose limit is later than any timer that was taken, be that past as well, was
 * found by a timer of an earlier run.
 */
static int
keep_over(TqHeld *held, Limit limit, TqResolved reason, TimestampTz taken,
		  TimestampTz now)
{
	int n = held->n;
	int alerts = 0;

	tq_details_read(held->runs, n);
	held->n = 0;
	for (int i = 0; i < n; i++)
	{
		const TqPolicy *policy = tq_policy_get(held->tasks[i].policy);
		TimestampTz end = limit(&held->runs[i], policy);

		if (end > now || held->tasks[i].deadline <= now)
			continue;
		if (!policy->alert_only)
			tq_held_keep(held, i);
		else if (end <= taken)
		{
			alert(&held->runs[i], &held->tasks[i], tq_resolved_name(reason));
			alerts++;
		}
	}
	return alerts;
}

/*
 * End those of these tasks' runs whose limit is over; of their timers, the last
 * was due at that time.
 */
static int64
end_over(const int64 *tasks, int n, TqTimer kind, TimestampTz taken,
		 TimestampTz now)
{
	bool is_run = kind == TQ_TIMER_RUN_TIMEOUT;
	TqResolved reason = is_run ? TQ_RESOLVED_RUN_TIMEOUT
							   : TQ_RESOLVED_PENDING_TIMEOUT;
	TqHeld held;
	int alerts;

	tq_hold_unresolved(tasks, n, &held);
	alerts = keep_over(&held,
					   is_run ? end_of_run : end_of_pending,
					   reason,
					   taken,
					   now);
	tq_resolve_drop_blocked(&held, reason, now);
	tq_timer_insert(kind,
					tq_clock_add_ms(now, TQ_AGAIN_MS),
					held.others,
					held.nothers);
	tq_resolve_runs(held.runs, held.tasks, held.n, reason, now);
	return held.n + alerts;
}

/* ---- steps ---- */

int64
tq_timeout_runs(const TqWork *work)
{
	return end_over(work->tasks,
					work->n,
					TQ_TIMER_RUN_TIMEOUT,
					work->due,
					work->now);
}

int64
tq_timeout_pending(const TqWork *work)
{
	return end_over(work->tasks,
					work->n,
					TQ_TIMER_PENDING_TIMEOUT,
					work->due,
					work->now);
}

/*
 * The runs of these tasks were lost just now, and others follow which inherit
 * how long they may be pending: that may be over already (Taskbroker's order).
 */
int64
tq_timeout_inherited(const TqTask *tasks, int n, TimestampTz now)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		const TqPolicy *policy = tq_policy_get(tasks[i].policy);

		if (policy->lost_retries != TQ_OFF &&
			policy->pending_timeout != TQ_OFF && !policy->alert_only)
			ids[count++] = tasks[i].id;
	}
	return count == 0
			   ? 0
			   : end_over(ids, count, TQ_TIMER_PENDING_TIMEOUT, now, now);
}

/* Total times where the policy only alerts; others are deadlines (schedule.c). */
int64
tq_timeout_total(const TqWork *work)
{
	TqHeld held;

	tq_hold_unresolved(work->tasks, work->n, &held);
	tq_timer_insert(TQ_TIMER_TOTAL_TIMEOUT,
					tq_clock_add_ms(work->now, TQ_AGAIN_MS),
					held.others,
					held.nothers);
	tq_details_read(held.runs, held.n);
	for (int i = 0; i < held.n; i++)
		alert(&held.runs[i], &held.tasks[i], "total-timeout");
	return held.n;
}

/*
 * What is left of groups that are being canceled (group.c).  Row by row, for
 * each says by its time since when.
 */
int64
tq_timeout_cancel(const TqWork *work)
{
	if (work->n == 0)
		return 0;
	return tq_group_cancel_held(work->tasks,
								work->n,
								tq_clock_add_ms(work->due, -TQ_AGAIN_MS),
								work->now);
}
