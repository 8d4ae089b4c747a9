/*
 * bisect.c
 *	  Steps of maintenance go on although they fail for some task.
 *
 * Room 4.  A step is run for a batch of tasks without any precaution.  If
 * that fails, its transaction is rolled back, and the next batch of the step
 * is bisected (tq_bisect): the step is run for it in a subtransaction, after
 * an error for each half of it, and so on.  A task for which the step fails
 * alone is postponed: a row of tq.postponed says when to try again, and with
 * each failure that is later.  Postponed tasks are a step of their own
 * (tq_bisect_retry), one subtransaction a task, so that they never disturb a
 * batch again.
 *
 * An error that is not the task's own fails the step: what an operator or
 * another transaction brings about, a full disk, and whatever every one of
 * many tasks meets.  Nothing is postponed then, and the step is tried again
 * a moment later.
 *
 * What a step writes in a subtransaction that is rolled back is gone,
 * notes for the claim cursor (cursor.c) included.  The timers that named the
 * tasks were taken before, so a task is postponed in the same transaction
 * that deletes its timer, and neither can be lost without the other.  Locks
 * on postponed rows are never waited for.
 */
#include "rules.h"

#include "mb/pg_wchar.h"
#include "upkeep.h"

#define FIRST_DELAY_MS 1000        /* doubled with each failure ... */
#define LAST_DELAY_MS (300 * 1000) /* ... up to this */
#define FAILURES_MAX 20 /* without a success: not the tasks' fault */
#define RETRY_BATCH 100 /* postponed tasks of one transaction */
#define ERROR_BYTES 1000

/*
 * A delayed run that is postponed stays in delayed, with a time that the step
 * for delayed runs does not reach before the attempt.
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
	int64 tasks; /* that the step has changed */
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

/* Runs a step; NULL, or the error for which it was rolled back. */
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

/* The id of a task; its number where that cannot be read. */
static int64
read_name(const TqWork *work)
{
	int n;
	TqTask *task = tq_tasks_by_id(work->tasks, 1, &n);

	if (n == 1)
		*(TqSlug *) work->arg = task->task_id;
	return n;
}

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

static void
report(const TqWork *work, const ErrorData *error)
{
	ereport(
		WARNING,
		(errcode(error->sqlerrcode),
		 errmsg("maintenance step \"%s\" failed for task %s: %s",
				tq_step_name(work->step),
				name_of(work),
				clip(error->message)),
		 errdetail("The task was postponed; other tasks are not affected."),
		 errhint(
			 "View tq.postponed_overview shows when the step is tried again; tq.delete_task() removes a task in any state.")));
}

/* Puts the run back from which a step was to move it on. */
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

/* Tries a step for this task again later; logged when it fails first. */
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

/* Recursion is as deep as the logarithm of the number of tasks. */
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
 * Runs a step for these tasks but for those for which it fails, which are
 * postponed; returns how many tasks it changed.
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
	return TQ_STEP_PUBLISH; /* of another version: there is nothing to run */
}

/*
 * Takes a delayed run that was postponed.  False when it is no longer delayed,
 * or another session holds it, which moves it on.
 */
static bool
take_delayed(TqWork *work, TqPending *row)
{
	if (work->step != TQ_STEP_DELAYED)
		return true;
	work->rows = row;
	return tq_delayed_take_one(work->tasks[0], row);
}

/* Runs a step again for a postponed task; returns how many tasks it changed. */
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
 * The step for tasks that were postponed and are due; returns how many tasks
 * were changed.  *more when others may be due.
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
