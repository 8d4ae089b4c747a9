/*
 * maintenance.c
 *	  The steps of maintenance: publication, deadlines, timeouts, expired
 *	  claims, delayed runs, order, expiry.
 *
 * Each step takes a bounded number of due rows of tq_internal.claim_timer,
 * tq_internal.timer or tq_internal.delayed, skips tasks that another session
 * has locked (to look at them again soon), and is safe to repeat, at any time,
 * by any number of sessions at once.  A row says only that tasks are to be
 * looked at, and is locked by the session that takes it; whether something is
 * really due is decided by the row of the task, under its lock.  Follows
 * doc/spec/taskcluster.md 3.5 and 3.6 and doc/spec/policy.md 5.  The limits of
 * policies are in timeouts.c, the end of the rows of tasks in expiry.c and
 * sweep_pass.c.
 *
 * Marks
 * -----
 * Rows that have been taken stay in the tables and their indexes as dead
 * tuples until they are vacuumed, which a long transaction may delay for
 * hours.  So a scan for what is due begins behind a mark.
 *
 * Within a pass the mark of a step is the last row that it has read.  Rows
 * that it skipped, because another session had locked them, are left to the
 * next pass.
 *
 * The maintenance worker keeps marks from one cycle to the next.  For each row
 * before a mark that exists, or will exist, its slot (worker_slot.c) must
 * hold a note that it has not read yet.  The marks move in two ways:
 *	up		by tq_maintenance_next_due(), to before the first row that its snapshot
 *			shows, locked or not;
 *	down	by tq_maintenance_timer_added(), to the earliest time that was noted, when a
 *			cycle begins, before it takes any snapshot.
 * Suppose that the snapshot by which a mark moves up does not show a row
 * before it.  Either the row was deleted by a transaction that has committed,
 * and never comes back; or it was inserted by a transaction that had not
 * committed.  The latter makes its note after its rows become visible, hence
 * after that snapshot, hence after the cycle began: a later cycle reads the
 * note, and the maintenance worker does not sleep before that cycle.  A row
 * that is deleted by a transaction in progress is shown, so the mark stays
 * before it in case of a rollback.
 *
 * A note is made for every row: by the functions of tq when they write it, and
 * by a trigger for other statements.  COMMIT PREPARED notes the beginning of
 * time.  Only rows written with triggers disabled have no note; so the
 * maintenance worker resets its marks after a restore, and every five minutes
 * (maintenance_worker.c).
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "miscadmin.h"

#include "../core/policy.h"
#include "../core/types.h"
#include "../engine/engine.h"
#include "../events/events.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "bgworker.h"

/*
 * A batch takes rows of tq_internal.claim_timer or tq_internal.timer up to
 * BATCH_TAKES times, until it has changed BATCH_TASKS tasks.  Most rows are
 * stale: it costs little to find that out, and a transaction for each hundred
 * of them would cost more.  But changes are made by small transactions, so
 * that what is due in another step does not wait for long.
 */
#define BATCH_TASKS 1000
#define BATCH_TAKES 10

/* ---- deadlines (doc/spec/taskcluster.md 3.5) ---- */

/*
 * Removes, from the locked tasks, those whose deadline is still to come, and
 * inserts a timer for each: they have shared one that was due earlier
 * (publisher.c).
 */
static void
leave_to_timers(TqLockedTasks *locked, TimestampTz now)
{
	TqTimerEntry *entries = palloc(sizeof(TqTimerEntry) * Max(locked->n, 1));
	int n = locked->n;
	int count = 0;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		const TqTask *task = &locked->tasks[i];

		if (task->deadline > now)
			entries[count++] = (TqTimerEntry){task->deadline, task->id};
		else
			tq_locked_tasks_keep(locked, i);
	}
	tq_timers_insert(TQ_TIMER_DEADLINE, entries, count);
}

/*
 * Resolves those of the tasks that are unresolved, because their deadline has
 * passed.  Tasks that could not be locked are looked at again soon.
 */
static int64
pass_deadlines(const TqWork *work)
{
	TqLockedTasks locked;
	int64 ended;

	tq_task_lock_unresolved(work->tasks, work->n, &locked);
	leave_to_timers(&locked, work->now);
	tq_expiry_watch(locked.resolved, locked.nresolved);
	ended = tq_transitions_end(&locked, TQ_EVENT_DEADLINE, TQ_TIMER_DEADLINE,
							   work->now);
	tq_expiry_watch(locked.tasks, locked.n);
	return ended;
}

/* ---- expired claims (doc/spec/taskcluster.md 3.6) ---- */

/*
 * Inserts timers for running runs whose claims have not expired.  A row that
 * tasks share may be due early, unless it is for the end of claims.
 */
static void
check_later(const TqRun *runs, int n, TimestampTz now)
{
	TqTimerEntry *checks = palloc(sizeof(TqTimerEntry) * Max(n, 1));
	TqTimerEntry *ends = palloc(sizeof(TqTimerEntry) * Max(n, 1));
	int nchecks = 0;
	int nends = 0;

	for (int i = 0; i < n; i++)
	{
		const TqRun *run = &runs[i];
		TimestampTz due = tq_policy_check_claim(run->started, run->taken_until,
												now);

		if (due < run->taken_until)
			checks[nchecks++] = (TqTimerEntry){due, run->task};
		else
			ends[nends++] = (TqTimerEntry){due, run->task};
	}
	tq_timers_insert_early(TQ_TIMER_CLAIM, checks, nchecks, TQ_EARLY_MS);
	tq_timers_insert(TQ_TIMER_CLAIM, ends, nends);
}

/*
 * Resolves those of the tasks' runs whose claim has expired.  Tasks that could
 * not be locked are looked at again soon, and running ones before their claim
 * expires.
 */
static int64
expire_claims(const TqWork *work)
{
	TqLockedTasks locked;
	int64 ended;

	tq_task_lock_expired(work->tasks, work->n, work->now, &locked);
	check_later(locked.claims, locked.nclaims, work->now);
	ended = tq_transitions_end(&locked, TQ_EVENT_CLAIM_EXPIRED, TQ_TIMER_CLAIM,
							   work->now);
	(void) tq_timeout_inherited(locked.tasks, locked.n, work->now);
	return ended;
}

/* ---- delayed runs ---- */

/*
 * Parks those of the delayed runs that are due whose tasks have gates, and
 * returns the others.
 */
static TqPending *
park(const TqWork *work, int *nothers)
{
	TqPending *others = palloc(sizeof(TqPending) * Max(work->n, 1));
	TqTaskFinder finder = {NULL, NULL};
	int n = work->n;
	int64 *parked = palloc(sizeof(int64) * Max(n, 1));
	int nparked = 0;

	*nothers = 0;
	for (int i = 0; i < n; i++)
	{
		TqPending row = work->rows[i];
		TqTask task;

		if (!tq_task_find_by_id(&finder, row.task, &task) ||
			!tq_gate_applies(&task))
		{
			others[(*nothers)++] = row;
			continue;
		}
		row.visible_at = TQ_PARKED;
		tq_delayed_insert(&row, 1);
		parked[nparked++] = row.task;
	}
	tq_task_finder_end(&finder);
	tq_timer_insert(TQ_TIMER_GATE, work->now, parked, nparked);
	return others;
}

/* Makes delayed runs that are due claimable, unless they wait for a gate. */
static int64
release_delayed(const TqWork *work)
{
	int n;
	TqPending *rows = park(work, &n);

	tq_pending_insert(rows, n);
	for (int i = 0; i < n; i++)
		tq_count_visible(&rows[i]);
	tq_outbox_append_claimable(rows, n);
	return work->n;
}

/* Lets tasks pass that wait for others with the same key. */
static int64
admit(const TqWork *work)
{
	return tq_gates_admit(work->tasks, work->n, work->now);
}

/* ---- a pass ---- */

/* How a step takes the tasks that are due, and what it does with them. */
typedef struct TaskStep
{
	TqRunStep run; /* NULL: the step is not done by task */
	TqTimer timer; /* TQ_TIMER_NONE: takes delayed runs */
	int takes;     /* in a batch */
	int rows;      /* in a take; 0: for tq.expire_batch tasks */
} TaskStep;

static const TaskStep task_steps[TQ_STEPS] = {
	[TQ_STEP_DEADLINE] = {pass_deadlines, TQ_TIMER_DEADLINE, BATCH_TAKES,
						  TQ_TAKE_ROWS},
	[TQ_STEP_TOTAL_TIMEOUT] = {tq_timeout_total, TQ_TIMER_TOTAL_TIMEOUT,
							   BATCH_TAKES, TQ_TAKE_ROWS},
	[TQ_STEP_RUN_TIMEOUT] = {tq_timeout_end, TQ_TIMER_RUN_TIMEOUT, BATCH_TAKES,
							 TQ_TAKE_ROWS},
	[TQ_STEP_PENDING_TIMEOUT] = {tq_timeout_end, TQ_TIMER_PENDING_TIMEOUT,
								 BATCH_TAKES, TQ_TAKE_ROWS},
	[TQ_STEP_CLAIM_EXPIRED] = {expire_claims, TQ_TIMER_CLAIM, BATCH_TAKES,
							   TQ_TAKE_ROWS},
	[TQ_STEP_DELAYED] = {release_delayed, TQ_TIMER_NONE, 1, BATCH_TASKS},
	[TQ_STEP_ADMIT] = {admit, TQ_TIMER_GATE, 1, TQ_TAKE_ROWS},
	/* each row has a time of its own */
	[TQ_STEP_CANCEL] = {tq_timeout_cancel, TQ_TIMER_CANCEL, BATCH_TAKES, 1},
	[TQ_STEP_CALLBACK] = {tq_callbacks_run, TQ_TIMER_CALLBACK, 1,
						  TQ_TAKE_ROWS},
	[TQ_STEP_EXPIRE] = {tq_expiry_tasks, TQ_TIMER_EXPIRE, 1, 0},
};

/*
 * Returns the function that does a step for given tasks; NULL for a step that
 * is not done by task.
 */
static TqRunStep
run_of(TqStep step)
{
	return step == TQ_STEP_SWEEP ? tq_sweep_run : task_steps[step].run;
}

/* Takes delayed runs that are due; the tasks of the work are theirs. */
static void
take_delayed(TqWork *work, int max, TqDue *due)
{
	TqPending *rows = tq_delayed_take(work->now, max, due);

	due->ids = palloc(sizeof(int64) * Max(due->n, 1));
	for (int i = 0; i < due->n; i++)
		due->ids[i] = rows[i].task;
	work->rows = rows;
}

/* Takes some of the rows that are due for a step. */
static void
take_due(TqWork *work, const TaskStep *step, TqDue *due)
{
	int rows = step->rows == 0 ? Max(1, tq_expire_batch / TQ_TIMER_TASKS)
							   : step->rows;

	if (step->timer == TQ_TIMER_NONE)
		take_delayed(work, rows, due);
	else
		tq_timer_take(step->timer, work->now, rows, due);
	work->tasks = due->ids;
	work->n = due->n;
	work->due = due->position.due;
	work->more = &due->more;
}

/* Does one batch of a step: takes due rows until that is enough for a batch. */
static void
do_some(TqStep step, bool bisect, TqScanPosition *position, TqBatch *batch)
{
	TqWork work = {.step = step, .now = tq_clock_now()};
	const TaskStep *how = &task_steps[step];
	TqDue due = {.position = *position, .more = true};

	for (int takes = 0;
		 due.more && takes < how->takes && batch->tasks < BATCH_TASKS; takes++)
	{
		int64 tasks;

		take_due(&work, how, &due);
		if (work.n == 0)
			continue;
		tasks = bisect ? tq_bisect(&work, how->run) : how->run(&work);
		if (tasks > 0)
			batch->since = Min(batch->since, due.first);
		batch->tasks += tasks;
	}
	*position = due.position;
	batch->more = due.more;
}

/*
 * Does one bounded batch of a step in the caller's transaction; see
 * bgworker.h.
 */
void
tq_maintenance_step(TqStep step, bool bisect, TqScanPosition *position,
					TqBatch *batch)
{
	TimestampTz now = tq_clock_now();

	*batch = (TqBatch){.since = DT_NOEND};
	tq_call_begin(false);
	if (task_steps[step].run != NULL)
		do_some(step, bisect, position, batch);
	else if (step == TQ_STEP_PUBLISH)
	{
		batch->tasks = tq_publisher_pass(&batch->more);
		if (MyBackendType != B_BG_WORKER)
			tq_publisher_watch_unpublished();
	}
	else if (step == TQ_STEP_REORDER)
		batch->tasks = tq_reorder_pass(now, MyBackendType != B_BG_WORKER,
									   &batch->more);
	else if (step == TQ_STEP_POSTPONED)
		batch->tasks = tq_bisect_retry(run_of, now, &batch->more);
	else if (step == TQ_STEP_SWEEP)
		batch->tasks = tq_sweep_batch(bisect, position, now, &batch->more);
	else
	{
		tq_expiry_sweep(now);
		batch->tasks = tq_retention_pass(now);
		(void) tq_access_forget_dropped_roles();
	}
	tq_call_end();
}

/* ---- marks ---- */

/* Resets the marks, so that all rows are looked at. */
void
tq_maintenance_positions_begin(TqScanPositions *positions)
{
	TqScanPosition begin = TQ_SCAN_BEGIN;

	positions->delayed = begin;
	for (int kind = 0; kind < TQ_TIMERS; kind++)
		positions->timer[kind] = begin;
}

/* Returns the mark at which the scan of a step begins. */
TqScanPosition
tq_maintenance_position(TqStep step, const TqScanPositions *positions)
{
	TqScanPosition begin = TQ_SCAN_BEGIN;
	TqTimer timer = task_steps[step].timer;

	if (task_steps[step].run == NULL)
		return begin;
	return timer == TQ_TIMER_NONE ? positions->delayed
								  : positions->timer[timer];
}

static void
move_down(TqScanPosition *position, TimestampTz due)
{
	if (due <= position->due)
		*position = (TqScanPosition){due, PG_INT64_MIN};
}

/* Moves marks down, because a commit has noted that something is due then. */
void
tq_maintenance_timer_added(TqScanPositions *positions, TimestampTz due)
{
	move_down(&positions->delayed, due);
	for (int kind = 0; kind < TQ_TIMERS; kind++)
		move_down(&positions->timer[kind], due);
}

/*
 * Returns when the next row behind the marks is due, or DT_NOEND; moves the
 * marks up to it.
 */
TimestampTz
tq_maintenance_next_due(TqScanPositions *positions)
{
	TimestampTz now = tq_clock_now();
	TimestampTz due;

	tq_call_begin(false);
	due = Min(tq_timer_next_due(now, positions), tq_postponed_next_due());
	due = Min(due, tq_reorder_next(now));
	tq_call_end();
	return due;
}

/* Returns when rows are to be counted for the counters, or DT_NOEND. */
TimestampTz
tq_maintenance_count_due(TimestampTz now)
{
	TimestampTz due;

	tq_call_begin(true);
	due = tq_count_pass_due(now);
	tq_call_end();
	return due;
}
