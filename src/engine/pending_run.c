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

#include "datatype/timestamp.h"

#include "../core/policy.h"
#include "../core/types.h"
#include "../storage/pending_table.h"
#include "../storage/policy_table.h"
#include "../storage/run_detail_table.h"
#include "../storage/run_table.h"
#include "../storage/task_table.h"
#include "../storage/timer_table.h"
#include "../util/clock.h"
#include "../util/guc.h"
#include "pending_run.h"

/*
 * Fills in the attributes of a run without a detail, from its task's policy.
 */
void
tq_run_fill(TqRun *run, const TqPolicy *policy)
{
	TqBudget budget;

	if (run->has_detail)
		return;
	tq_policy_first(policy, run->retries_left, run->scheduled, &budget);
	run->visible_at = budget.visible_at;
	run->attempt = budget.attempt;
	run->lost_retries_left = budget.lost_retries_left;
	run->retry_delay = TQ_OFF;
	run->pending_until = budget.pending_until;
}

/* ---- runs ---- */

/*
 * Returns whether a run has data that its row in pending or delayed cannot
 * hold.
 */
static bool
needs_detail(const TqStart *start)
{
	const TqPolicy *policy = tq_policy_get(start->task->policy);

	if (start->budget.visible_at != start->scheduled || start->started != 0 ||
		start->retry_delay != TQ_OFF)
		return true;
	return start->task->policy != 0 &&
		   (start->budget.attempt > 0 ||
			start->budget.lost_retries_left != policy->lost_retries);
}

static TqRun
detail_of(const TqStart *start)
{
	return (TqRun){.task = start->task->id,
				   .run_id = start->budget.run_id,
				   .visible_at = start->budget.visible_at,
				   .pending_until = start->budget.pending_until,
				   .started = start->started,
				   .worker = start->worker,
				   .attempt = start->budget.attempt,
				   .lost_retries_left = start->budget.lost_retries_left,
				   .retry_delay = start->retry_delay};
}

static TqPending
pending_of(const TqStart *start, bool has_detail)
{
	return (TqPending){.task = start->task->id,
					   .seq = start->seq,
					   .queue = start->task->queue,
					   .priority = start->task->priority,
					   .run_id = start->budget.run_id,
					   .retries_left = start->budget.retries_left,
					   .created = start->created,
					   .scheduled = start->scheduled,
					   .visible_at = start->budget.visible_at,
					   .has_detail = has_detail};
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
		TimestampTz until = starts[i].budget.pending_until;

		if (until != 0 && starts[i].started == 0 &&
			until < starts[i].task->deadline)
			entries[count++] = (TqTimerEntry){until, starts[i].task->id};
	}
	tq_timers_insert(TQ_TIMER_PENDING_TIMEOUT, entries, count);
}

/* The rows to write for runs that become pending; most need only the first. */
typedef struct Places
{
	TqPending *pending;
	int npending;
	TqPending *delayed; /* NULL: none */
	int ndelayed;
	TqRun *details; /* NULL: none */
	int ndetails;
	bool is_watched; /* does any run have a pending timeout */
} Places;

/*
 * Adds the rows that a run needs: one in pending or delayed, and its details
 * if it has any.
 */
static void
add_place(Places *places, const TqStart *start, int n, TimestampTz now)
{
	bool has_detail = needs_detail(start);

	if (has_detail)
	{
		if (places->details == NULL)
			places->details = palloc(sizeof(TqRun) * n);
		places->details[places->ndetails++] = detail_of(start);
	}
	if (start->budget.visible_at > now)
	{
		if (places->delayed == NULL)
			places->delayed = palloc(sizeof(TqPending) * n);
		places->delayed[places->ndelayed++] = pending_of(start, has_detail);
	}
	else
		places->pending[places->npending++] = pending_of(start, has_detail);
	places->is_watched = places->is_watched ||
						 start->budget.pending_until != 0;
}

/* Makes these runs pending, in this order. */
void
tq_pending_runs_add(const TqStart *starts, int n, TimestampTz now)
{
	Places places = {.pending = palloc(sizeof(TqPending) * Max(n, 1))};

	for (int i = 0; i < n; i++)
		add_place(&places, &starts[i], n, now);
	tq_details_write(places.details, places.ndetails);
	tq_pending_insert(places.pending, places.npending);
	tq_delayed_insert(places.delayed, places.ndelayed);
	if (places.is_watched)
		watch_pending(starts, n);
}

/* ---- first runs ---- */

/*
 * Starts the total timeout of these tasks: sets an earlier effective deadline,
 * or inserts the timer of an alert if the policy only alerts
 * (doc/spec/policy.md 2).  A timeout that ends after the deadline has no
 * effect.
 */
void
tq_pending_runs_add_total_timeout(TqTask *const *tasks, int n, TimestampTz now)
{
	int64 *ids = palloc(sizeof(int64) * n);
	TimestampTz *due = palloc(sizeof(TimestampTz) * n);
	TqTimerEntry *deadlines = palloc(sizeof(TqTimerEntry) * n);
	TqTimerEntry *alerts = palloc(sizeof(TqTimerEntry) * n);
	int count = 0;
	int nalerts = 0;

	for (int i = 0; i < n; i++)
	{
		const TqPolicy *policy = tq_policy_get(tasks[i]->policy);
		TimestampTz until;

		if (policy->total_timeout == TQ_OFF)
			continue;
		until = tq_policy_after(now, policy->total_timeout);
		if (until >= tasks[i]->deadline)
			continue;
		if (policy->alert_only)
		{
			alerts[nalerts++] = (TqTimerEntry){until, tasks[i]->id};
			continue;
		}
		tasks[i]->deadline = until;
		ids[count] = tasks[i]->id;
		due[count] = until;
		deadlines[count++] = (TqTimerEntry){tq_clock_add_ms(until,
															tq_deadline_delay),
											tasks[i]->id};
	}
	tq_tasks_set_due(ids, due, count);
	tq_timers_insert(TQ_TIMER_DEADLINE, deadlines, count);
	tq_timers_insert(TQ_TIMER_TOTAL_TIMEOUT, alerts, nalerts);
}

/*
 * Gives these tasks their first run.  A run that is pending from the task's
 * creation has the task's id as its sequence number in the queue.
 */
void
tq_pending_runs_add_first(TqTask *const *tasks, bool at_creation, int n,
						  TimestampTz now)
{
	TqStart *starts = palloc(sizeof(TqStart) * Max(n, 1));
	bool has_policy = false;

	for (int i = 0; i < n; i++)
	{
		TqTask *task = tasks[i];

		starts[i] = (TqStart){.task = task,
							  .created = TQ_CREATED_SCHEDULED,
							  .seq = at_creation ? task->id : 0,
							  .retry_delay = TQ_OFF,
							  .scheduled = now};
		tq_policy_first(tq_policy_get(task->policy), task->retries,
						tq_policy_after(now, task->delay), &starts[i].budget);
		has_policy = has_policy || task->policy != 0;
	}
	if (has_policy)
		tq_pending_runs_add_total_timeout(tasks, n, now);
	tq_pending_runs_add(starts, n, now);
}
