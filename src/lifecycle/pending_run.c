/*
 * pending_run.c
 *	  Makes runs pending: at once or later, with the timers that they need.
 *
 * Every run that becomes pending comes through here: the first run of a task, a
 * rerun, a retry, a deferred run.  Decides whether the run is claimable now or
 * delayed, which of its data needs a row of its own, and when its pending
 * timeout is due.  Follows doc/spec/policy.md 2, 4 and 10.  For a task without
 * a policy and without a delay it writes one row in pending and nothing else.
 *
 * The caller holds the lock of the row with the task's location, or has just
 * created the task.
 */
#include "postgres.h"

#include "lifecycle.h"

/* Fills in what a run without a detail has by its task's policy. */
void
tq_run_fill(const TqRun *run, const TqPolicy *policy, TqRunDetail *detail)
{
	*detail = (TqRunDetail){.task = run->task,
							.budget.run_id = run->run_id,
							.worker = run->worker,
							.retry_delay = TQ_OFF,
							.started = run->started};
	tq_policy_first(policy, run->retries_left, run->scheduled,
					&detail->budget);
}

/* Reads the detail of a run, or fills in what it has by its policy. */
void
tq_run_detail(TqRun *run, int32 policy, TqRunDetail *detail)
{
	if (!tq_detail_read(run, detail))
		tq_run_fill(run, tq_policy_get(policy), detail);
}

/* ---- timers ---- */

/*
 * Starts the total timeouts of those tasks of which this is the first run:
 * sets an earlier effective deadline, or inserts the timer of an alert if the
 * policy only alerts (doc/spec/policy.md 2).  A timeout that ends after the
 * deadline has no effect.
 */
static void
start_total_timeouts(const TqStart *starts, int n, TimestampTz now)
{
	int64 *ids = palloc(sizeof(int64) * n);
	TimestampTz *due = palloc(sizeof(TimestampTz) * n);
	TqTimerEntry *deadlines = palloc(sizeof(TqTimerEntry) * n);
	TqTimerEntry *alerts = palloc(sizeof(TqTimerEntry) * n);
	int count = 0;
	int nalerts = 0;

	for (int i = 0; i < n; i++)
	{
		TqTask *task = starts[i].task;
		const TqPolicy *policy = tq_policy_get(task->policy);
		TimestampTz until;

		if (!starts[i].is_first || policy->total_timeout == TQ_OFF)
			continue;
		until = tq_policy_after(now, policy->total_timeout);
		if (until >= task->deadline)
			continue;
		if (policy->alert_only)
		{
			alerts[nalerts++] = (TqTimerEntry){until, task->id};
			continue;
		}
		ids[count] = task->id;
		task->deadline = due[count] = until;
		until = tq_clock_add_ms(until, tq_deadline_delay);
		deadlines[count++] = (TqTimerEntry){until, task->id};
	}
	tq_tasks_set_due(ids, due, count);
	tq_timers_insert(TQ_TIMER_DEADLINE, deadlines, count);
	tq_timers_insert(TQ_TIMER_TOTAL_TIMEOUT, alerts, nalerts);
}

/*
 * Inserts the timers of the pending timeouts.  A timeout that is not before
 * the task's deadline needs none, because the deadline resolves the task
 * anyway.
 */
static void
watch_pending(const TqStart *starts, int n)
{
	TqTimerEntry *entries = palloc(sizeof(TqTimerEntry) * n);
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		TimestampTz until = starts[i].detail.budget.pending_until;

		if (until != 0 && starts[i].detail.started == 0 &&
			until < starts[i].task->deadline)
			entries[count++] = (TqTimerEntry){until, starts[i].task->id};
	}
	tq_timers_insert(TQ_TIMER_PENDING_TIMEOUT, entries, count);
}

/* ---- runs ---- */

/*
 * Returns whether a run has data that its row in pending or delayed cannot
 * hold.
 */
static bool
needs_detail(const TqStart *start)
{
	const TqRunDetail *detail = &start->detail;
	int32 policy = start->task->policy;

	if (start->has_detail || detail->budget.visible_at != start->scheduled ||
		detail->started != 0 || detail->retry_delay != TQ_OFF)
		return true;
	return policy != 0 && (detail->budget.attempt > 0 ||
						   detail->budget.lost_retries_left !=
							   tq_policy_get(policy)->lost_retries);
}

static TqPending
pending_of(const TqStart *start, bool has_detail)
{
	const TqBudget *budget = &start->detail.budget;

	return (TqPending){.task = start->task->id,
					   .seq = start->seq,
					   .queue = start->task->queue,
					   .priority = start->task->priority,
					   .run_id = budget->run_id,
					   .retries_left = budget->retries_left,
					   .created = start->created,
					   .scheduled = start->scheduled,
					   .visible_at = budget->visible_at,
					   .group_id = start->task->group_id,
					   .has_detail = has_detail};
}

/*
 * Reads the queue and the priority that a task has now: the caller may have read
 * it before it locked the row with its location, and each change needs that
 * lock.
 */
static void
renew_order(TqTask *task)
{
	if (!tq_task_order(task->id, &task->queue, &task->priority))
		task->priority = TQ_PRIORITY_LOWEST;
}

/*
 * Makes these runs pending, in this order: writes for each a row in pending or
 * delayed, its details if it has any, and its timers.
 */
void
tq_pending_runs_add(const TqStart *starts, int n, TimestampTz now)
{
	TqPending *pending = palloc(sizeof(TqPending) * n);
	TqPending *delayed = palloc(sizeof(TqPending) * n);
	TqRunDetail *details = NULL;
	int npending = 0;
	int ndelayed = 0;
	int ndetails = 0;
	bool has_total = false;
	bool is_watched = false;
	TqEntrant *entrants = NULL;
	int nentrants = 0;

	for (int i = 0; i < n; i++)
	{
		const TqBudget *budget = &starts[i].detail.budget;
		bool has_detail = needs_detail(&starts[i]);
		TqPending row;

		if (starts[i].seq == 0)
			renew_order(starts[i].task);
		row = pending_of(&starts[i], has_detail);
		if (has_detail && details == NULL)
			details = palloc(sizeof(TqRunDetail) * n);
		if (has_detail)
			details[ndetails++] = starts[i].detail;
		if (starts[i].task->policy != 0 && tq_gate_applies(starts[i].task))
		{
			if (entrants == NULL)
				entrants = palloc(sizeof(TqEntrant) * n);
			entrants[nentrants++] = (TqEntrant){starts[i].task,
												budget->visible_at};
			row.visible_at = budget->visible_at > now ? budget->visible_at
													  : TQ_PARKED;
		}
		tq_count_start(starts[i].task, row.visible_at > now);
		if (row.visible_at > now)
			delayed[ndelayed++] = row;
		else
			pending[npending++] = row;
		has_total = has_total ||
					(starts[i].is_first && starts[i].task->policy != 0);
		is_watched = is_watched || budget->pending_until != 0;
	}
	if (has_total)
		start_total_timeouts(starts, n, now);
	if (ndetails > 0)
		tq_details_write(details, ndetails);
	tq_pending_insert(pending, npending);
	if (ndelayed > 0)
		tq_delayed_insert(delayed, ndelayed);
	if (is_watched)
		watch_pending(starts, n);
	if (nentrants > 0)
		tq_gates_enter(entrants, nentrants, now);
}

/*
 * Makes a run pending again that waits, which the caller has locked: it takes
 * the place of that row.
 */
void
tq_pending_run_move(TqStart *start, const TqRun *run, TimestampTz now)
{
	start->has_detail = run->has_detail;
	if (run->location == TQ_LOCATION_PENDING)
		tq_pending_delete(&run->task, 1);
	else
		tq_delayed_delete(&run->task, 1);
	tq_count_replaced(start->task, run);
	tq_pending_runs_add(start, 1, now);
}
