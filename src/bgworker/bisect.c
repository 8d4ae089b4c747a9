/*
 * bisect.c
 *	  Keeps a step of maintenance going when it fails for some tasks.
 *
 * A step is run for a batch of tasks without any precaution.  If it fails, its
 * transaction is rolled back, and the next batch of the step is bisected
 * (tq_bisect): the step is run for the batch in a subtransaction, after an
 * error for each half of it, and so on.  A task for which the step fails alone
 * is postponed: a row of tq_internal.postponed says when to retry, with a
 * backoff that grows with each failure.  Postponed tasks are retried by a step
 * of their own (tq_bisect_retry), in one subtransaction each, so that they
 * never disturb a batch again.
 *
 * An error that is not specific to a task fails the step: what an operator or
 * another transaction causes, a full disk, and an error that occurs for each
 * of many tasks.  Then nothing is postponed, and the step is retried a moment
 * later.
 *
 * What a step writes in a subtransaction that is rolled back is gone,
 * including its notes for the claim cursor (claim_cursor.c).  The timers that
 * named the tasks were taken outside of it.  So a task is postponed in the
 * same transaction that deletes its timer, and neither can be lost without the
 * other.  Postponed rows that are locked are skipped.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "bgworker.h"

/* ---- the steps and their names ---- */

static const char *const names[] = {
	[TQ_STEP_PUBLISH] = "publish",
	[TQ_STEP_DEADLINE] = "deadline",
	[TQ_STEP_TOTAL_TIMEOUT] = "total-timeout",
	[TQ_STEP_RUN_TIMEOUT] = "run-timeout",
	[TQ_STEP_PENDING_TIMEOUT] = "pending-timeout",
	[TQ_STEP_CLAIM_EXPIRED] = "claim-expired",
	[TQ_STEP_DELAYED] = "delayed",
	[TQ_STEP_ADMIT] = "admit",
	[TQ_STEP_REORDER] = "reorder",
	[TQ_STEP_CANCEL] = "cancel",
	[TQ_STEP_SETTLE] = "settle",
	[TQ_STEP_CALLBACK] = "callback",
	[TQ_STEP_POSTPONED] = "postponed",
	[TQ_STEP_EXPIRE] = "expired",
	[TQ_STEP_SWEEP] = "sweep",
	[TQ_STEP_RETAIN] = "retain",
	[TQ_STEP_HISTORY] = "history",
	[TQ_STEP_NAMES] = "names",
};

StaticAssertDecl(lengthof(names) == TQ_STEPS, "a name for each step");

/*
 * Returns the name of a step, which upkeep() shows and tq_internal.postponed
 * stores.
 */
const char *
tq_step_name(TqStep step)
{
	return names[step];
}

/* ---- bisection ---- */

#define FIRST_DELAY_MS 1000        /* doubled with each failure ... */
#define LAST_DELAY_MS (300 * 1000) /* ... up to this */
#define FAILURES_MAX 20 /* without a success: the fault is not in the tasks */
#define RETRY_BATCH 100 /* postponed tasks that one transaction retries */
#define ERROR_BYTES 1000

/*
 * A delayed run that is postponed stays in tq_internal.delayed.  It becomes
 * visible this long after the retry, so that the step for delayed runs does
 * not take it before.
 */
#define DELAYED_MARGIN_MS (60 * 1000)

/* ---- a task that fails alone ---- */

static int64
delay_ms(int failures)
{
	int64 delay = (int64) FIRST_DELAY_MS << Min(failures - 1, 20);

	return Min(delay, LAST_DELAY_MS);
}

static char *
clip(const char *text)
{
	return pnstrdup(text, pg_mbcliplen(text, strlen(text), ERROR_BYTES));
}

/* A task, and what a warning calls it. */
typedef struct Named
{
	int64 task;
	const char *name;
} Named;

static void
bisect_read_name(void *arg)
{
	Named *named = (Named *) arg;
	int n;
	TqTask *task = tq_tasks_core(&named->task, 1, &n);

	if (n == 1)
		named->name = psprintf("\"%s\"", tq_slug_text(&task->task_id));
}

/*
 * Returns the id of a task as text, or its number if its row cannot be read.
 */
static const char *
bisect_name_of(int64 task)
{
	Named named = {task, psprintf("number " INT64_FORMAT, task)};

	(void) tq_attempt(bisect_read_name, &named);
	return named.name;
}

/* Logs a warning that a step failed for a task. */
static void
report(const TqWork *work, const ErrorData *error)
{
	ereport(
		WARNING,
		(errcode(error->sqlerrcode),
		 errmsg("maintenance step \"%s\" failed for task %s: %s",
				tq_step_name(work->step), bisect_name_of(work->tasks[0]),
				clip(error->message)),
		 errdetail("The task was postponed; other tasks are not affected."),
		 errhint(
			 "View tq.postponed_overview shows when the step is retried; tq.delete_task() removes a task in any state.")));
}

/* Puts a delayed run back that the step has taken, to become visible later. */
static void
put_back(const TqWork *work, TimestampTz due)
{
	TqPending row;

	if (work->rows == NULL)
		return;
	row = work->rows[0];
	row.visible_at = tq_clock_add_ms(due, DELAYED_MARGIN_MS);
	tq_delayed_insert(&row, 1);
}

/* Postpones a task.  Logs a warning if it is the first failure. */
static void
postpone(const TqWork *work, const ErrorData *error)
{
	TqPostponed row = {.task = work->tasks[0],
					   .step = tq_step_name(work->step),
					   .origin = work->due,
					   .error = clip(error->message)};

	row.failures = tq_postponed_failures(row.task, row.step) + 1;
	row.due = tq_clock_add_ms(work->now, delay_ms(row.failures));
	if (row.failures == 1)
		report(work, error);
	put_back(work, row.due);
	tq_postponed_put(&row, work->now);
}

static TqWork
part_of(const TqWork *work, int from, int n)
{
	TqWork part = *work;

	part.tasks += from;
	part.n = n;
	if (work->rows != NULL)
		part.rows += from;
	return part;
}

/* Postpones one of the tasks of a step that has failed for it. */
void
tq_bisect_postpone(const TqWork *work, int task, const ErrorData *error)
{
	TqWork part = part_of(work, task, 1);

	postpone(&part, error);
}

/* ---- bisection ---- */

/* A task for which a step failed. */
typedef struct Failure
{
	TqWork work;
	ErrorData *error;
} Failure;

/* A batch that is being bisected. */
typedef struct Bisection
{
	TqRunStep run;
	const TqWork *work;
	int64 tasks; /* changed by the step */
	int successes;
	Failure *failures;
	int nfailures;
} Bisection;

static void
bisect_run_part(void *arg, int from, int n)
{
	Bisection *bisection = (Bisection *) arg;
	TqWork part = part_of(bisection->work, from, n);

	bisection->tasks += bisection->run(&part);
	bisection->successes++;
}

static void
add_failure(void *arg, int task, ErrorData *error)
{
	Bisection *bisection = (Bisection *) arg;

	if (bisection->successes == 0 && bisection->nfailures == FAILURES_MAX)
		ReThrowError(error);
	bisection->failures[bisection->nfailures++] =
		(Failure){part_of(bisection->work, task, 1), error};
}

/*
 * Runs a step for these tasks, and postpones those for which it fails.
 * Returns how many tasks it has changed; sets *nfailures to how many failed.
 */
static int64
bisect(const TqWork *work, TqRunStep run, int *nfailures)
{
	Bisection bisection = {.run = run,
						   .work = work,
						   .failures = palloc(sizeof(Failure) *
											  Max(work->n, 1))};
	TqBatchWork batch = {bisect_run_part, add_failure, &bisection};

	tq_attempt_halves(&batch, 0, work->n);
	for (int i = 0; i < bisection.nfailures; i++)
		postpone(&bisection.failures[i].work, bisection.failures[i].error);
	*nfailures = bisection.nfailures;
	return bisection.tasks;
}

/*
 * Runs a step for these tasks, and postpones those for which it fails.
 * Returns how many tasks it has changed.
 */
int64
tq_bisect(const TqWork *work, TqRunStep run)
{
	int nfailures;

	return bisect(work, run, &nfailures);
}

/* ---- tasks that were postponed ---- */

static TqStep
step_by_name(const char *name)
{
	for (int step = 0; step < TQ_STEPS; step++)
	{
		if (strcmp(tq_step_name((TqStep) step), name) == 0)
			return (TqStep) step;
	}
	return TQ_STEP_PUBLISH; /* of another version: nothing to run */
}

/*
 * Takes a delayed run that was postponed.  Returns false if it is no longer
 * delayed, or if another session has locked it, because that session moves it
 * on.
 */
static bool
bisect_take_delayed(TqWork *work, TqPending *row)
{
	if (work->step != TQ_STEP_DELAYED)
		return true;
	work->rows = row;
	return tq_delayed_take_one(work->tasks[0], row);
}

/*
 * Retries a step for a postponed task; returns how many tasks it has changed.
 */
static int64
retry(const TqPostponed *postponed, TqRunStep run, TqStep step,
	  TimestampTz now)
{
	bool more = false;
	TqPending row;
	TqWork work = {.step = step,
				   .tasks = &postponed->task,
				   .n = 1,
				   .due = postponed->origin,
				   .now = now,
				   .more = &more};
	int64 tasks = 0;
	int nfailures = 0;

	if (run != NULL && bisect_take_delayed(&work, &row))
		tasks = bisect(&work, run, &nfailures);
	if (nfailures == 0)
		tq_postponed_delete(postponed->task, postponed->step);
	return tasks;
}

/*
 * Retries postponed tasks that are due.  Returns how many tasks were changed;
 * sets *more if others may be due.
 */
int64
tq_bisect_retry(TqRunStep (*run_of)(TqStep step), TimestampTz now, bool *more)
{
	int n;
	TqPostponed *rows = tq_postponed_take(now, RETRY_BATCH, &n);
	int64 tasks = 0;

	for (int i = 0; i < n; i++)
	{
		TqStep step = step_by_name(rows[i].step);

		tasks += retry(&rows[i], run_of(step), step, now);
		CHECK_FOR_INTERRUPTS();
	}
	*more = n == RETRY_BATCH;
	return tasks;
}
