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

#include "datatype/timestamp.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"

#include "../storage/pending_table.h"
#include "../storage/postponed_table.h"
#include "../storage/task_table.h"
#include "../storage/timer_table.h"
#include "../util/clock.h"
#include "../util/errors.h"
#include "../util/slugid.h"
#include "bisect.h"
#include "step.h"

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
	int64 tasks; /* changed by the step */
	int successes;
	Failure *failures;
	int nfailures;
} Bisection;

/* ---- one attempt ---- */

/* A step for some tasks, and how many of them it changed. */
typedef struct Attempt
{
	TqRunStep run;
	const TqWork *work;
	int64 tasks;
} Attempt;

static void
run_attempt(void *arg)
{
	Attempt *attempt = (Attempt *) arg;

	attempt->tasks = attempt->run(attempt->work);
}

/*
 * Runs a step in a subtransaction.  Returns NULL, or the error for which that
 * was rolled back.
 */
static ErrorData *
attempt(TqRunStep run, const TqWork *work, int64 *tasks)
{
	Attempt one = {.run = run, .work = work};
	ErrorData *error = tq_attempt(run_attempt, &one);

	*tasks = one.tasks;
	return error;
}

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

/*
 * Reads the id of a task into work->arg; returns 0 if there is no such task.
 */
static int64
read_name(const TqWork *work)
{
	int n;
	TqTask *task = tq_tasks_by_id(work->tasks, 1, &n);

	if (n == 1)
		*(TqSlug *) work->arg = task->task_id;
	return n;
}

/*
 * Returns the id of a task as text, or its number if its row cannot be read.
 */
static const char *
name_of(const TqWork *failed)
{
	TqSlug slug;
	TqWork work = *failed;
	int64 n = 0;

	work.arg = &slug;
	if (attempt(read_name, &work, &n) != NULL || n == 0)
		return psprintf("number " INT64_FORMAT, failed->tasks[0]);
	return psprintf("\"%s\"", tq_slug_text(&slug));
}

/* Logs a warning that a step failed for a task. */
static void
report(const TqWork *work, const ErrorData *error)
{
	ereport(
		WARNING,
		(errcode(error->sqlerrcode),
		 errmsg("maintenance step \"%s\" failed for task %s: %s",
				tq_step_name(work->step), name_of(work), clip(error->message)),
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

/* ---- bisection ---- */

static void bisect(Bisection *bisection, const TqWork *work);

static void
bisect_half(Bisection *bisection, const TqWork *work, int from, int n)
{
	TqWork half = *work;

	half.tasks += from;
	half.n = n;
	if (work->rows != NULL)
		half.rows += from;
	bisect(bisection, &half);
}

/*
 * Runs a step for these tasks, and if that fails for each half of them.  The
 * recursion is as deep as the logarithm of the number of tasks.
 */
static void
bisect(Bisection *bisection, const TqWork *work)
{
	int64 tasks = 0;
	ErrorData *error = attempt(bisection->run, work, &tasks);

	CHECK_FOR_INTERRUPTS();
	if (error == NULL)
	{
		bisection->tasks += tasks;
		bisection->successes++;
	}
	else if (work->n > 1)
	{
		bisect_half(bisection, work, 0, work->n / 2);
		bisect_half(bisection, work, work->n / 2, work->n - work->n / 2);
	}
	else if (bisection->successes == 0 && bisection->nfailures == FAILURES_MAX)
		ReThrowError(error);
	else
		bisection->failures[bisection->nfailures++] = (Failure){*work, error};
}

/*
 * Runs a step for these tasks, and postpones those for which it fails.
 * Returns how many tasks it has changed.
 */
int64
tq_bisect(const TqWork *work, TqRunStep run)
{
	Bisection bisection = {.run = run,
						   .failures = palloc(sizeof(Failure) *
											  Max(work->n, 1))};

	if (work->n > 0)
		bisect(&bisection, work);
	for (int i = 0; i < bisection.nfailures; i++)
		postpone(&bisection.failures[i].work, bisection.failures[i].error);
	return bisection.tasks;
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
take_delayed(TqWork *work, TqPending *row)
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
	ErrorData *error = NULL;

	if (run != NULL && take_delayed(&work, &row))
		error = attempt(run, &work, &tasks);
	if (error == NULL)
		tq_postponed_delete(postponed->task, postponed->step);
	else
		postpone(&work, error);
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
