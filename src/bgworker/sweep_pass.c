/*
 * sweep_pass.c
 *	  Passes over all tasks that delete those whose retention is over, old dead
 *	  letters, old rows of the audit trail, and what was kept of departed tasks
 *	  for messages (doc/spec/taskcluster.md 8.4).
 *
 * A pass reads tasks from the lowest id up to those that are too young, a batch
 * in each transaction.  The maintenance worker begins the next pass after a
 * pause, during which the tasks that stayed are not read again: five minutes,
 * or twenty times as long as the pass took.  After a batch it pauses as long as
 * that took if a client of the server is at work in that moment, so that a long
 * pass leaves processor and disk to clients; the busier they are, the more often
 * it pauses.  upkeep() does a whole pass.
 *
 * The maintenance worker does not flush its batches: of a sweep beside nothing
 * else that was a fifth of the time, and clients waited for these flushes, too.  A
 * crash may bring back what was deleted last, which the next pass deletes; what a
 * client commits after it has missed a task is flushed with the deletion.
 *
 * A batch that fails is taken again and bisected (bisect.c); a task whose
 * deletion fails alone is postponed, and left out by the passes while it is.  A
 * batch that fails nevertheless, because each of its tasks fails or at its
 * commit, is left to the next pass, so that it does not hold up what is behind.
 */
#include "postgres.h"

#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#include "../operations/operations.h"
#include "bgworker.h"

#define PAUSE_MS (5 * 60 * 1000) /* the shortest between two passes */
#define PAUSE_RATIO 20           /* pause / time that the pass took */

/*
 * The pass of this process, which a rollback does not change: a batch that is
 * not bisected moves it on when it has succeeded, one that is bisected before.
 */
typedef struct SweepPassPass
{
	TqSweepRule rule; /* as of its beginning */
	int64 after;      /* behind the last task that was read */
	int64 spent_us;   /* in its batches */
	bool is_over;
	TimestampTz next; /* begin of the next batch, or of the next pass */
} SweepPassPass;

static SweepPassPass pass = {.is_over = true, .next = TQ_LONG_AGO};

/* Returns where the next batch of the maintenance worker begins. */
TqScanPosition
tq_sweep_position(void)
{
	TqScanPosition position = TQ_SCAN_BEGIN;

	if (!pass.is_over)
		position.seq = pass.after;
	return position;
}

/*
 * Returns whether the maintenance worker sweeps now: in a pass, and when it is
 * time for the next one.
 */
bool
tq_sweep_is_time(TimestampTz now)
{
	/* If the clock was set back, a pass does not wait for it. */
	return now >= pass.next || pass.next > tq_clock_add_ms(now, TQ_HOUR_MS);
}

/* Returns when to take the next batch of a pass; DT_NOEND if it is over. */
TimestampTz
tq_sweep_next_batch(void)
{
	return pass.is_over ? DT_NOEND : pass.next;
}

/* Rows that are of no task, and go when they are too old. */
typedef struct OldRows
{
	const char *what;
	int (*delete)(TimestampTz before, int max);
	const int *retention; /* s; NULL: as long as messages are kept */
} OldRows;

static const OldRows old_rows[] =
	{{"dead letters", tq_dead_letters_delete, &tq_retain_dead_letters},
	 {"rows of the audit trail", tq_audit_delete, &tq_audit_retention},
	 {"departed tasks", tq_departed_delete, NULL}};

/* A batch of such rows. */
typedef struct OldBatch
{
	const OldRows *rows;
	TimestampTz before; /* those that were written before */
	int deleted;
} OldBatch;

static void
delete_old(void *arg)
{
	OldBatch *batch = (OldBatch *) arg;

	batch->deleted = batch->rows->delete (batch->before, tq_expire_batch);
}

/*
 * Deletes rows that are too old, a batch of them; returns how many.  With
 * `bisect` an error is only logged, because tasks are not to wait for it.
 */
static int
take_old(const OldRows *rows, bool bisect, TimestampTz now)
{
	OldBatch batch = {rows,
					  rows->retention == NULL
						  ? tq_retention_forgotten_before(now)
						  : tq_clock_add_ms(now, INT64CONST(-1000) *
													 *rows->retention),
					  0};
	ErrorData *error = NULL;

	if (bisect)
		error = tq_attempt(delete_old, &batch);
	else
		delete_old(&batch);
	if (error != NULL)
		ereport(WARNING, (errcode(error->sqlerrcode),
						  errmsg("could not delete old %s: %s", rows->what,
								 error->message),
						  errdetail("Tasks are deleted nevertheless.")));
	return error == NULL ? batch.deleted : 0;
}

/*
 * Deletes a batch of old rows of each kind; returns how many.  Sets *more if
 * there may be others.
 */
static int
take_all_old(bool bisect, TimestampTz now, bool *more)
{
	int deleted = 0;

	*more = false;
	for (int i = 0; i < lengthof(old_rows); i++)
	{
		int n = take_old(&old_rows[i], bisect, now);

		*more = *more || n >= tq_expire_batch;
		deleted += n;
	}
	return deleted;
}

/* Deletes those of these tasks that go by retention; returns how many. */
int64
tq_sweep_run(const TqWork *work)
{
	TqSweepRule rule = tq_sweep_by_retention(work->now);

	return tq_sweep_delete_ids(&rule, work->tasks, work->n, work->now);
}

/* Deletes these tasks except those that fail; returns how many. */
static int
bisect_tasks(const TqTask *tasks, int n, TimestampTz now)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	bool more = false;
	TqWork work = {.step = TQ_STEP_SWEEP,
				   .tasks = ids,
				   .n = n,
				   .due = now,
				   .now = now,
				   .more = &more};

	for (int i = 0; i < n; i++)
		ids[i] = tasks[i].id;
	return tq_bisect(&work, tq_sweep_run);
}

/* Deletes the next batch of tasks; returns how many. */
static int
delete_some(bool bisect, TimestampTz now, bool *more)
{
	int64 after = pass.after;
	int n;
	int deleted;
	TqTask *tasks = tq_sweep_find(&pass.rule, tq_expire_batch, now, &after, &n,
								  more);

	if (n > 0)
	{
		int64 *ids = palloc(sizeof(int64) * Max(n, 1));
		int64 *postponed;
		int npostponed;
		int left = 0;

		/* Leave out the tasks that are postponed. */
		for (int i = 0; i < n; i++)
			ids[i] = tasks[i].id;
		postponed = tq_postponed_among(ids, n, tq_step_name(TQ_STEP_SWEEP),
									   &npostponed);
		for (int i = 0; i < n; i++)
		{
			if (bsearch(&ids[i], postponed, npostponed, sizeof(int64),
						tq_compare_ids) == NULL)
				tasks[left++] = tasks[i];
		}
		n = left;
	}
	if (bisect)
		pass.after = after;
	deleted = bisect && n > 0 ? bisect_tasks(tasks, n, now)
							  : tq_sweep_delete(&pass.rule, tasks, n, now);
	pass.after = after;
	return deleted;
}

/*
 * Returns whether a process with this wait event uses the processor or the disk:
 * it does not wait for its client, for time, for a lock or, as a session does
 * that waits for work, for what an extension waits for.
 */
static bool
is_at_work(uint32 wait_event)
{
	uint32 class = wait_event & 0xFF000000U;

	return class != PG_WAIT_CLIENT && class != PG_WAIT_TIMEOUT &&
		   class != PG_WAIT_LOCK && class != PG_WAIT_EXTENSION;
}

/*
 * Returns whether a client of the server is at work.  Takes no lock: the answer
 * is out of date soon anyway.
 */
static bool
are_clients_at_work(void)
{
	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		const PGPROC *proc = &ProcGlobal->allProcs[i];

		if (proc->procgloballist == &ProcGlobal->freeProcs &&
			proc->procLatch.owner_pid != 0 &&
			is_at_work(*(const volatile uint32 *) &proc->wait_event_info))
			return true;
	}
	return false;
}

/* Deletes a batch of tasks, and notes whether it was the last of the pass. */
static int
take_tasks(bool bisect, TimestampTz now)
{
	bool more = true;
	int deleted = delete_some(bisect, now, &more);
	TimestampTz end = tq_clock_now();
	int64 pause = are_clients_at_work() ? (end - now) / 1000 : 0;

	pass.spent_us += end - now;
	pass.is_over = !more;
	if (pass.is_over)
		pause = Max(PAUSE_MS, pass.spent_us / 1000 * PAUSE_RATIO);
	pass.next = tq_clock_add_ms(end, Min(pause, TQ_HOUR_MS));
	return deleted;
}

/* Has the transaction of the maintenance worker not wait for its flush. */
static void
leave_unflushed(void)
{
	if (MyBackendType == B_BG_WORKER)
		(void) set_config_option("synchronous_commit", "off", PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0,
								 false);
}

/*
 * Does one batch of a pass; returns how many tasks, dead letters and rows of
 * the audit trail were deleted.  Begins a new pass if the position is
 * TQ_SCAN_BEGIN, with the rows that are of no task, and reads tasks when there
 * is less than a batch of these.
 */
int64
tq_sweep_batch(bool bisect, TqScanPosition *position, TimestampTz now,
			   bool *more)
{
	int64 deleted = 0;

	leave_unflushed();
	if (position->seq == 0)
	{
		deleted = take_all_old(bisect, now, more);
		if (*more)
			return deleted;
		pass = (SweepPassPass){.rule = tq_sweep_by_retention(now),
							   .next = now};
	}
	deleted += take_tasks(bisect, now);
	*more = !pass.is_over;
	position->seq = pass.after;
	return deleted;
}
