/*
 * resolve.c
 *	  The end of a run: final, or followed by another (spec/taskcluster.md 2.11,
 *	  2.12, 3.2).
 *
 * Room 4.  Every way in which a run ends comes through end_runs() or, where
 * no retry is possible, tq_resolve_final(): reports of workers, expired
 * claims, cancel, deadline.  Callers hold the locks of the runs' rows.
 *
 * A run that ends while it may be retried gets a successor at the back of the
 * queue in the same transaction, so a task is never without a place.  No retry
 * is started at or past the deadline.
 */
#include "rules.h"

const char *
tq_outcome_name(TqOutcome outcome)
{
	switch (outcome)
	{
		case TQ_OUTCOME_RESOLVED:
			return "resolved";
		case TQ_OUTCOME_RETRIED:
			return "retried";
		case TQ_OUTCOME_REPEATED:
			return "repeated";
		case TQ_OUTCOME_CONFLICT:
			return "conflict";
		case TQ_OUTCOME_NOT_FOUND:
			return "not-found";
	}
	return NULL;
}

/* Runs that end in one call, collected and then written in a few statements. */
typedef struct Ending
{
	TqRun *ended; /* rows of run to update */
	int nended;
	TqRun *finals; /* those of them that no retry follows */
	int nfinals;
	TqPending *retries;
	int nretries;
	TqMessage *messages;
	int nmessages;
} Ending;

static void
begin_ending(Ending *ending, int n)
{
	memset(ending, 0, sizeof(*ending));
	ending->ended = palloc(sizeof(TqRun) * Max(n, 1));
	ending->finals = palloc(sizeof(TqRun) * Max(n, 1));
	ending->retries = palloc0(sizeof(TqPending) * Max(n, 1));
	ending->messages = palloc(sizeof(TqMessage) * 2 * Max(n, 1));
}

/* Say something about a run, while the task's last run is that one. */
static void
tell(Ending *ending, TqExchange exchange, const TqTask *task, int run_id,
	 const TqRun *last)
{
	ending->messages[ending->nmessages++] =
		tq_publish_make(exchange, task, run_id, last);
}

/*
 * An exception that another run follows.  If that one is its retry, it is all
 * that is told while it is pending, unless exceptions that are retried are to
 * be told as well (D-05).
 */
static void
tell_followed(Ending *ending, const TqTask *task, int run_id,
			  const TqRun *next)
{
	bool is_retry = tq_created_is_retry(next->created);

	if (!is_retry || tq_publish_retried_exceptions)
		tell(ending, TQ_EXCHANGE_TASK_EXCEPTION, task, run_id, next);
	if (is_retry && next->state == TQ_STATE_PENDING)
		tell(ending, TQ_EXCHANGE_TASK_PENDING, task, next->run_id, next);
}

/*
 * End one running run; true when a retry follows.  A run that this call has
 * ended has no place any more, should it be reported twice.
 */
static bool
end_run(Ending *ending, TqRun *run, const TqTask *task, TqResolved reason,
		TimestampTz now)
{
	TqCreated retry = tq_resolved_retry(reason);
	TqRun next = {.run_id = run->run_id + 1,
				  .state = TQ_STATE_PENDING,
				  .created = retry};

	run->state = tq_resolved_state(reason);
	run->reason = reason;
	run->resolved = now;
	ending->ended[ending->nended++] = *run;
	run->place = TQ_PLACE_NONE;
	if (retry == TQ_CREATED_NONE || run->retries_left <= 0 ||
		run->run_id + 1 >= tq_max_runs || now >= task->deadline)
	{
		ending->finals[ending->nfinals++] = *run;
		tell(ending, tq_state_exchange(run->state), task, run->run_id, run);
		return false;
	}
	tell_followed(ending, task, run->run_id, &next);
	ending->retries[ending->nretries++] =
		(TqPending){.task = task->id,
					.queue = task->queue,
					.priority = task->priority,
					.run_id = next.run_id,
					.retries_left = run->retries_left - 1,
					.created = retry,
					.scheduled = now};
	return true;
}

static void
write_ending(Ending *ending, TimestampTz now)
{
	tq_runs_update(ending->ended, ending->nended);
	tq_pending_insert(ending->retries, ending->nretries);
	tq_publish(ending->messages, ending->nmessages);
	tq_depend_release(ending->finals, ending->nfinals, now);
}

/* ---- reports ---- */

/* Find the tasks that the reports name; both are in the same order. */
static void
find_tasks(TqReport *reports, int n)
{
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));
	TqTask *tasks;
	int found;
	int next = 0;

	for (int i = 0; i < n; i++)
		slugs[i] = reports[i].task_id;
	tasks = tq_tasks_by_slug(slugs, n, false, &found);
	for (int i = 0; i < n; i++)
	{
		bool is_found = next < found &&
						tq_slug_compare(&reports[i].task_id,
										&tasks[next].task_id) == 0;

		reports[i].task = is_found ? &tasks[next++] : NULL;
	}
}

static int
compare_run(const void *a, const void *b)
{
	const TqRun *x = a;
	const TqRun *y = b;

	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return x->run_id - y->run_id;
}

/* Lock the rows of run that the reports name, and drop those asked for twice. */
static TqRun *
lock_reported(const TqReport *reports, int n, int *nruns)
{
	int64 *tasks = palloc(sizeof(int64) * Max(n, 1));
	int32 *run_ids = palloc(sizeof(int32) * Max(n, 1));
	int count = 0;
	int found;
	TqRun *runs;

	for (int i = 0; i < n; i++)
	{
		if (reports[i].task == NULL)
			continue;
		tasks[count] = reports[i].task->id;
		run_ids[count++] = reports[i].run_id;
	}
	runs = tq_runs_lock(tasks, run_ids, count, &found);
	*nruns = 0;
	for (int i = 0; i < found; i++)
	{
		if (*nruns == 0 || compare_run(&runs[*nruns - 1], &runs[i]) != 0)
			runs[(*nruns)++] = runs[i];
	}
	return runs;
}

/*
 * A report on a run that is resolved already is a repeat if it says the same
 * and the run is the last one; after an exception one retry may follow.  Then
 * the same is told again.
 */
static bool
is_repeat(const TqTask *task, const TqRun *run, TqResolved reason,
		  Ending *ending)
{
	int may_follow = run->state == TQ_STATE_EXCEPTION ? 1 : 0;
	TqRun last;

	if (run->place == TQ_PLACE_NONE)
		return true;
	if (run->reason != reason || !tq_run_peek(run->task, &last) ||
		last.run_id > run->run_id + may_follow)
		return false;
	if (last.run_id > run->run_id)
		tell_followed(ending, task, run->run_id, &last);
	else
		tell(ending, tq_state_exchange(run->state), task, run->run_id, run);
	return true;
}

/* A report on a run that has no row: it is pending, or there is none. */
static TqOutcome
judge_without_row(TqReport *report)
{
	TqRun last;

	if (tq_run_peek(report->task->id, &last) &&
		last.run_id == report->run_id && last.state != TQ_STATE_UNSCHEDULED)
	{
		report->state = last.state;
		return TQ_OUTCOME_CONFLICT;
	}
	return TQ_OUTCOME_NOT_FOUND;
}

static TqOutcome
apply_report(TqReport *report, TqRun *run, TqResolved reason, TimestampTz now,
			 Ending *ending)
{
	report->state = run->state;
	switch (tq_state_verdict(run->state, TQ_EVENT_REPORT))
	{
		case TQ_VERDICT_APPLY:
			return end_run(ending, run, report->task, reason, now)
					   ? TQ_OUTCOME_RETRIED
					   : TQ_OUTCOME_RESOLVED;
		case TQ_VERDICT_CONFLICT:
			return is_repeat(report->task, run, reason, ending)
					   ? TQ_OUTCOME_REPEATED
					   : TQ_OUTCOME_CONFLICT;
		case TQ_VERDICT_KEEP:
		case TQ_VERDICT_NO_RUN:
			break;
	}
	return TQ_OUTCOME_NOT_FOUND;
}

/*
 * Reports by workers, all for one reason.  Each report gets its outcome; those
 * that do not apply change nothing.
 */
void
tq_resolve_reports(TqReport *reports, int n, TqResolved reason,
				   TimestampTz now)
{
	Ending ending;
	TqRun *runs;
	int nruns;

	find_tasks(reports, n);
	runs = lock_reported(reports, n, &nruns);
	begin_ending(&ending, n);
	for (int i = 0; i < n; i++)
	{
		TqRun key = {0};
		TqRun *run;

		reports[i].outcome = TQ_OUTCOME_NOT_FOUND;
		if (reports[i].task == NULL)
			continue;
		key.task = reports[i].task->id;
		key.run_id = reports[i].run_id;
		run = bsearch(&key, runs, nruns, sizeof(TqRun), compare_run);
		reports[i].outcome =
			run == NULL ? judge_without_row(&reports[i])
						: apply_report(&reports[i], run, reason, now, &ending);
	}
	write_ending(&ending, now);
}

/* ---- without a report ---- */

/* Claims that have expired (3.6); runs and tasks are parallel. */
void
tq_resolve_expired(TqRun *runs, const TqTask *tasks, int n, TimestampTz now)
{
	Ending ending;

	begin_ending(&ending, n);
	for (int i = 0; i < n; i++)
		(void) end_run(&ending,
					   &runs[i],
					   &tasks[i],
					   TQ_RESOLVED_CLAIM_EXPIRED,
					   now);
	write_ending(&ending, now);
}

/* A task that had no run ends with one that is born resolved (3.3). */
static void
give_birth_resolved(TqRun *run, const TqTask *task, TimestampTz now)
{
	run->run_id = 0;
	run->created = TQ_CREATED_EXCEPTION;
	run->retries_left = task->retries;
	run->scheduled = now;
}

/*
 * End tasks from wherever they stand, with no retry: canceled, or past their
 * deadline.  runs and tasks are parallel; the rows are locked.
 */
void
tq_resolve_final(TqRun *runs, const TqTask *tasks, int n, TqResolved reason,
				 TimestampTz now)
{
	int64 *left[TQ_PLACE_RUN + 1];
	int nleft[TQ_PLACE_RUN + 1] = {0};
	TqRun *moved = palloc(sizeof(TqRun) * Max(n, 1));
	TqRun *updated = palloc(sizeof(TqRun) * Max(n, 1));
	TqMessage *messages = palloc(sizeof(TqMessage) * Max(n, 1));
	int nmoved = 0;
	int nupdated = 0;

	for (int place = 0; place <= TQ_PLACE_RUN; place++)
		left[place] = palloc(sizeof(int64) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		if (runs[i].place == TQ_PLACE_UNSCHEDULED)
			give_birth_resolved(&runs[i], &tasks[i], now);
		runs[i].state = tq_resolved_state(reason);
		runs[i].reason = reason;
		runs[i].resolved = now;
		messages[i] = tq_publish_make(TQ_EXCHANGE_TASK_EXCEPTION,
									  &tasks[i],
									  runs[i].run_id,
									  &runs[i]);
		left[runs[i].place][nleft[runs[i].place]++] = runs[i].task;
		if (runs[i].place == TQ_PLACE_RUN)
			updated[nupdated++] = runs[i];
		else
			moved[nmoved++] = runs[i];
	}
	tq_unscheduled_delete(left[TQ_PLACE_UNSCHEDULED],
						  nleft[TQ_PLACE_UNSCHEDULED]);
	tq_pending_delete(left[TQ_PLACE_PENDING], nleft[TQ_PLACE_PENDING]);
	tq_delayed_delete(left[TQ_PLACE_DELAYED], nleft[TQ_PLACE_DELAYED]);
	tq_runs_insert(moved, nmoved);
	tq_runs_update(updated, nupdated);
	tq_publish(messages, n);
	tq_depend_release(runs, n, now);
}
