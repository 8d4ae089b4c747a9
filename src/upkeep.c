/*
 * upkeep.c
 *	  What time brings about: publication, deadlines, timeouts, expired claims,
 *	  delayed runs, expiry.
 *
 * Room 4.  Each step takes a bounded number of due rows of lease or timer,
 * passes over tasks that others have locked (to be looked at again soon), and
 * is safe to repeat, at any time, by any number of sessions at once: the rows
 * that say "look" are locked by the session that takes them, and whether
 * something is really due is decided by the task's own row under its lock.
 * Follows spec/taskcluster.md 3.5, 3.6, 8.4 and spec/policy.md section 5.  The
 * limits of policies are timeout.c's.
 *
 * Marks
 * -----
 * Rows that have been taken stay in the way, in the tables and their indexes,
 * until they are vacuumed, which a long transaction of anybody may put off for
 * hours.  So a walk over what is due begins behind a mark.
 *
 * Within a pass the mark of a step is the last row that it came by.  What it
 * passed over, because somebody else had his hand on it, is for the next pass.
 *
 * From one turn to the next the worker remembers marks, of which must be
 * true: a row before the mark that is there, or will
 * be, has a note in the worker's shared memory (shmem.c) that the worker has
 * not read.  They move in two ways:
 *	up		by tq_upkeep_next_due(), to before the first row that its snapshot
 *			shows, whoever has his hand on it;
 *	down	by tq_upkeep_noted(), to the earliest time that was noted, when the
 *			worker's turn begins, before it takes any snapshot.
 * Let a row before the mark not be shown by the snapshot by which the mark
 * moved up.  Then it has been deleted by a transaction that has committed, and
 * never comes back; or it was inserted by one that had not committed.  That
 * one makes its note after its rows can be seen, hence after that snapshot,
 * hence after the turn began: it is read by a later turn, before which the
 * worker does not sleep.  A row that is deleted by a transaction that is still
 * running is shown, so the mark stays before it, should that be rolled back.
 *
 * Notes are made for every row: by the functions of tq as they write it, and
 * by a trigger for statements.  COMMIT PREPARED notes the beginning of time.
 * Only with triggers disabled there is none; so the worker forgets its marks
 * after a restore, and every five minutes (worker.c).
 */
#include "message.h"

#include "upkeep.h"

/*
 * A batch takes rows of lease or timer in so many takes of so many, until it
 * has that much to do.  Most rows are stale: to tell so costs little, and a
 * transaction of its own for each hundred of them would cost more than that.
 * But what is to be done is done by small transactions, so that what is due in
 * another step does not have to wait for long.
 */
#define BATCH_TASKS 1000
#define BATCH_TAKES 10

#define EXPIRY_SLACK_MS (30 * 60 * 1000)

/* The last message about a task comes no later than this after its deadline. */
#define MESSAGE_SLACK_MS (60 * 1000)

const char *
tq_step_name(TqStep step)
{
	switch (step)
	{
		case TQ_STEP_PUBLISH:
			return "publish";
		case TQ_STEP_DEADLINE:
			return "deadline";
		case TQ_STEP_TOTAL_TIMEOUT:
			return "total-timeout";
		case TQ_STEP_RUN_TIMEOUT:
			return "run-timeout";
		case TQ_STEP_PENDING_TIMEOUT:
			return "pending-timeout";
		case TQ_STEP_CLAIM_EXPIRED:
			return "claim-expired";
		case TQ_STEP_DELAYED:
			return "delayed";
		case TQ_STEP_CANCEL:
			return "cancel";
		case TQ_STEP_POSTPONED:
			return "postponed";
		case TQ_STEP_RETAIN:
			return "retain";
		case TQ_STEP_EXPIRE:
			return "expired";
	}
	return NULL;
}

/* ---- when a task expires ---- */

static int
compare_expires(const void *a, const void *b)
{
	TimestampTz x = (*(const TqTask *const *) a)->expires;
	TimestampTz y = (*(const TqTask *const *) b)->expires;

	return x < y ? -1 : x > y;
}

/*
 * Look at these tasks again so long after they expire.  Those that expire in
 * the same hour share a row, so that the years in which tasks are kept cost
 * little.
 */
static void
set_expiry(const TqTask *tasks, int n, int64 delay_ms)
{
	const TqTask **sorted = palloc(sizeof(TqTask *) * Max(n, 1));
	int64 ids[TQ_TIMER_TASKS];
	int nids = 0;

	for (int i = 0; i < n; i++)
		sorted[i] = &tasks[i];
	qsort(sorted, n, sizeof(TqTask *), compare_expires);
	for (int i = 0; i < n; i++)
	{
		ids[nids++] = sorted[i]->id;
		if (nids == TQ_TIMER_TASKS || i + 1 == n ||
			sorted[i + 1]->expires / (TQ_HOUR_MS * 1000) !=
				sorted[i]->expires / (TQ_HOUR_MS * 1000))
		{
			tq_timer_insert(TQ_TIMER_EXPIRE,
							tq_clock_add_ms(sorted[i]->expires, delay_ms + 1),
							ids,
							nids);
			nids = 0;
		}
	}
}

/* ---- deadlines (3.5) ---- */

static int64
pass_deadlines(const TqWork *work)
{
	TqHeld held;

	tq_hold_unresolved(work->tasks, work->n, &held);
	set_expiry(held.resolved, held.nresolved, EXPIRY_SLACK_MS);
	tq_depend_drop_blocked(&held, NULL);
	tq_timer_insert(TQ_TIMER_DEADLINE,
					tq_clock_add_ms(work->now, TQ_AGAIN_MS),
					held.others,
					held.nothers);
	set_expiry(held.tasks, held.n, EXPIRY_SLACK_MS);
	tq_resolve_runs(held.runs,
					held.tasks,
					held.n,
					TQ_RESOLVED_DEADLINE_EXCEEDED,
					work->now);
	return held.n;
}

/* ---- expired claims (3.6) ---- */

static int64
expire_claims(const TqWork *work)
{
	TqHeld held;

	tq_hold_expired(work->tasks, work->n, work->now, &held);
	tq_resolve_drop_overdue(&held, work->now);
	tq_resolve_drop_blocked(&held, TQ_RESOLVED_CLAIM_EXPIRED, work->now);
	tq_lease_insert(tq_clock_add_ms(work->now, TQ_AGAIN_MS),
					held.others,
					held.nothers);
	tq_resolve_runs(held.runs,
					held.tasks,
					held.n,
					TQ_RESOLVED_CLAIM_EXPIRED,
					work->now);
	(void) tq_timeout_inherited(held.tasks, held.n, work->now);
	return held.n;
}

/* ---- delayed runs ---- */

static int64
release_delayed(const TqWork *work)
{
	tq_pending_insert(work->rows, work->n);
	tq_publish_claimable(work->rows, work->n);
	return work->n;
}

/* ---- expiry (8.4) ---- */

/* What has no timer of its own is swept once an hour and backend. */
static void
sweep(TimestampTz before)
{
	static TimestampTz last = 0;

	if (last != 0 && before < tq_clock_add_ms(last, TQ_HOUR_MS) &&
		before >= last)
		return;
	while (tq_groups_delete(before, tq_expire_batch) == tq_expire_batch)
		CHECK_FOR_INTERRUPTS();
	while (tq_artifacts_delete_expired(before, tq_expire_batch) ==
		   tq_expire_batch)
		CHECK_FOR_INTERRUPTS();
	tq_workers_forget(before);
	last = before;
}

/*
 * Look at a task again when its end, after what has been told and is no longer
 * kept, will be so too; should that be told of late, look more often.
 */
static void
look_again(int64 task, TimestampTz after_told, TimestampTz now)
{
	int64 ms = Min(after_told / 1000, INT64CONST(1000) * tq_message_retention);

	tq_timer_insert(TQ_TIMER_EXPIRE, tq_clock_add_ms(now, ms + 1), &task, 1);
}

/*
 * Delete expired tasks, as many as one batch may, but for those of whose end
 * somebody may still have to be told; those that another session
 * holds are looked at again soon.
 */
static int
delete_expired(int64 *ids, int n, TimestampTz now, bool *more)
{
	TimestampTz told = tq_retention_told_before(now);
	int batch = Min(n, tq_expire_batch);
	int nheld = 0;
	int nagain = 0;
	int64 *again = palloc(sizeof(int64) * Max(n, 1));

	for (int i = 0; i < batch; i++)
	{
		TqRun run;

		if (tq_run_lock(ids[i], TQ_LOCK_SKIP, &run))
		{
			if (run.resolved < told)
				ids[nheld++] = ids[i];
			else
				look_again(ids[i], run.resolved - told, now);
		}
		else
			again[nagain++] = ids[i];
	}
	tq_timer_insert(TQ_TIMER_EXPIRE,
					tq_clock_add_ms(now, TQ_AGAIN_MS),
					again,
					nagain);
	tq_timer_insert(TQ_TIMER_EXPIRE, now, ids + batch, n - batch);
	*more = *more || n > batch;
	if (nheld == 0)
		return 0;
	tq_artifacts_delete_of_tasks(ids, nheld);
	return tq_tasks_delete(ids, nheld);
}

/*
 * Tasks are deleted half an hour after they have expired, but not while the
 * log may have messages about them: those are told from the task.
 */
static TimestampTz
expired_before(TimestampTz now)
{
	TimestampTz before = tq_clock_add_ms(now, -EXPIRY_SLACK_MS);
	TimestampTz oldest = tq_tick_oldest();

	if (oldest == 0)
		return before;
	oldest = Max(oldest, tq_retention_kept_since(now));
	return Min(before, tq_clock_add_ms(oldest, -MESSAGE_SLACK_MS));
}

static int64
expire_tasks(const TqWork *work)
{
	TimestampTz before = expired_before(work->now);
	int64 *expired = palloc(sizeof(int64) * Max(work->n, 1));
	int nexpired = 0;
	int nkept = 0;
	int n;
	TqTask *tasks = tq_tasks_core(work->tasks, work->n, &n);

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].expires < before)
			expired[nexpired++] = tasks[i].id;
		else
			tasks[nkept++] = tasks[i];
	}
	set_expiry(tasks, nkept, (work->now - before) / 1000);
	return delete_expired(expired, nexpired, work->now, work->more);
}

/* ---- a pass ---- */

/* What a step does for the tasks that are due; NULL where it is not by task. */
static TqRunStep
run_of(TqStep step)
{
	switch (step)
	{
		case TQ_STEP_DEADLINE:
			return pass_deadlines;
		case TQ_STEP_TOTAL_TIMEOUT:
			return tq_timeout_total;
		case TQ_STEP_RUN_TIMEOUT:
			return tq_timeout_runs;
		case TQ_STEP_PENDING_TIMEOUT:
			return tq_timeout_pending;
		case TQ_STEP_CLAIM_EXPIRED:
			return expire_claims;
		case TQ_STEP_DELAYED:
			return release_delayed;
		case TQ_STEP_CANCEL:
			return tq_timeout_cancel;
		case TQ_STEP_EXPIRE:
			return expire_tasks;
		case TQ_STEP_PUBLISH:
		case TQ_STEP_POSTPONED:
		case TQ_STEP_RETAIN:
			break;
	}
	return NULL;
}

/* The timer that a step takes, and how many rows of it at once. */
static TqTimer
timer_of(TqStep step, int *rows)
{
	*rows = TQ_TAKE_ROWS;
	switch (step)
	{
		case TQ_STEP_DEADLINE:
			return TQ_TIMER_DEADLINE;
		case TQ_STEP_TOTAL_TIMEOUT:
			return TQ_TIMER_TOTAL_TIMEOUT;
		case TQ_STEP_RUN_TIMEOUT:
			return TQ_TIMER_RUN_TIMEOUT;
		case TQ_STEP_PENDING_TIMEOUT:
			return TQ_TIMER_PENDING_TIMEOUT;
		case TQ_STEP_CANCEL:
			*rows = 1; /* each has a time of its own */
			return TQ_TIMER_CANCEL;
		case TQ_STEP_EXPIRE:
			*rows = Max(1, tq_expire_batch / TQ_TIMER_TASKS);
			return TQ_TIMER_EXPIRE;
		case TQ_STEP_PUBLISH:
		case TQ_STEP_CLAIM_EXPIRED:
		case TQ_STEP_DELAYED:
		case TQ_STEP_POSTPONED:
		case TQ_STEP_RETAIN:
			break;
	}
	return 0;
}

/* Takes the delayed runs that are due; the tasks are theirs. */
static void
take_delayed(TqWork *work, TqDue *due)
{
	TqPending *rows = tq_delayed_take(work->now, BATCH_TASKS, due);

	due->ids = palloc(sizeof(int64) * Max(due->n, 1));
	for (int i = 0; i < due->n; i++)
		due->ids[i] = rows[i].task;
	work->rows = rows;
}

/* Takes some of what is due for a step. */
static void
take_due(TqWork *work, TqDue *due)
{
	int rows;
	TqTimer timer = timer_of(work->step, &rows);

	if (work->step == TQ_STEP_DELAYED)
		take_delayed(work, due);
	else if (work->step == TQ_STEP_CLAIM_EXPIRED)
		tq_lease_take(work->now, rows, due);
	else
		tq_timer_take(timer, work->now, rows, due);
	work->tasks = due->ids;
	work->n = due->n;
	work->due = due->mark.due;
	work->more = &due->more;
}

/* Some of what is due, up to so many times, until it is enough for a batch. */
static void
do_some(TqStep step, bool bisect, int takes, TqMark *mark, TqBatch *batch)
{
	TqWork work = {.step = step, .now = tq_clock_now()};
	TqRunStep run = run_of(step);
	TqDue due = {.mark = *mark, .more = true};

	for (; due.more && takes > 0 && batch->tasks < BATCH_TASKS; takes--)
	{
		int64 tasks;

		take_due(&work, &due);
		tasks = bisect ? tq_bisect(&work, run) : run(&work);
		if (tasks > 0)
			batch->since = Min(batch->since, due.first);
		batch->tasks += tasks;
	}
	*mark = due.mark;
	batch->more = due.more;
}

/* Is the present pass part of a transaction block of the caller? */
static bool is_in_block = false;

void
tq_upkeep_begin(bool in_block)
{
	is_in_block = in_block;
}

bool
tq_upkeep_is_in_block(void)
{
	return is_in_block;
}

void
tq_upkeep_step(TqStep step, bool bisect, TqMark *mark, TqBatch *batch)
{
	TimestampTz now = tq_clock_now();

	*batch = (TqBatch){.since = DT_NOEND};
	tq_plan_open(false);
	switch (step)
	{
		case TQ_STEP_PUBLISH:
			batch->tasks = tq_deliver_pass(&batch->more);
			break;
		case TQ_STEP_DEADLINE:
		case TQ_STEP_TOTAL_TIMEOUT:
		case TQ_STEP_RUN_TIMEOUT:
		case TQ_STEP_PENDING_TIMEOUT:
		case TQ_STEP_CLAIM_EXPIRED:
		case TQ_STEP_CANCEL:
			do_some(step, bisect, BATCH_TAKES, mark, batch);
			break;
		case TQ_STEP_DELAYED:
			do_some(step, bisect, 1, mark, batch);
			break;
		case TQ_STEP_POSTPONED:
			batch->tasks = tq_bisect_retry(run_of, now, &batch->more);
			break;
		case TQ_STEP_RETAIN:
			sweep(tq_clock_add_ms(now, -EXPIRY_SLACK_MS));
			batch->tasks = tq_retention_pass(now);
			break;
		case TQ_STEP_EXPIRE:
			do_some(step, bisect, 1, mark, batch);
			break;
	}
	tq_plan_close();
}

/* ---- marks ---- */

/* No mark: all is looked at. */
void
tq_upkeep_marks_begin(TqMarks *marks)
{
	TqMark begin = TQ_MARK_BEGIN;

	marks->lease = marks->delayed = begin;
	for (int kind = 0; kind < TQ_TIMERS; kind++)
		marks->timer[kind] = begin;
}

/* Where a step begins that looks from these marks on. */
TqMark
tq_upkeep_mark(TqStep step, const TqMarks *marks)
{
	TqMark begin = TQ_MARK_BEGIN;
	int rows;
	TqTimer timer = timer_of(step, &rows);

	if (timer != 0)
		return marks->timer[timer];
	if (step == TQ_STEP_CLAIM_EXPIRED)
		return marks->lease;
	if (step == TQ_STEP_DELAYED)
		return marks->delayed;
	return begin;
}

static void
move_down(TqMark *mark, TimestampTz due)
{
	if (due <= mark->due)
		*mark = (TqMark){due, PG_INT64_MIN};
}

/* Somebody has noted that something is due then. */
void
tq_upkeep_noted(TqMarks *marks, TimestampTz due)
{
	move_down(&marks->lease, due);
	move_down(&marks->delayed, due);
	for (int kind = 0; kind < TQ_TIMERS; kind++)
		move_down(&marks->timer[kind], due);
}

/* When the next thing behind the marks is due, or DT_NOEND; they move up. */
TimestampTz
tq_upkeep_next_due(TqMarks *marks)
{
	TimestampTz due;

	tq_plan_open(false);
	due = Min(tq_timer_next_due(tq_clock_now(), marks),
			  tq_postponed_next_due());
	tq_plan_close();
	return due;
}
