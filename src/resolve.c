/*
 * resolve.c
 *	  The end of a run: final, or followed by another (spec/taskcluster.md 2.11,
 *	  2.12, 3.2).
 *
 * Room 4.  Every way in which a run ends comes through follow_end() or, where
 * no retry is possible, tq_resolve_final(): reports of workers, expired
 * claims, cancel, deadline.  A report writes the row of the run that it ends,
 * which waits for other transitions of the task as a lock would; the other
 * callers hold the locks of the runs' rows.
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

/* What follows the ends of one call, collected and then written together. */
typedef struct Ending
{
	TqRun *finals; /* those that no retry follows */
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

/* The run in its row, as it ends. */
static void
end_row(TqRun *run, TqResolved reason, TimestampTz now)
{
	run->state = tq_resolved_state(reason);
	run->reason = reason;
	run->resolved = now;
}

/* What follows the end of a run whose row is written; true when a retry does. */
static bool
follow_end(Ending *ending, const TqRun *run, const TqTask *task,
		   TimestampTz now)
{
	TqCreated retry = tq_resolved_retry(run->reason);
	TqRun next = {.run_id = run->run_id + 1,
				  .state = TQ_STATE_PENDING,
				  .created = retry};

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
	tq_pending_insert(ending->retries, ending->nretries);
	tq_publish(ending->messages, ending->nmessages);
	tq_depend_release(ending->finals, ending->nfinals, now);
}

/* ---- reports ---- */

/*
 * Is more to be known of a task that ends so than its number?  Not when
 * nothing can follow and nobody is told.
 */
static bool
is_more_needed(TqResolved reason)
{
	return tq_resolved_retry(reason) != TQ_CREATED_NONE ||
		   tq_publish_is_wanted(tq_state_exchange(tq_resolved_state(reason)));
}

/*
 * Find the tasks that the reports name.  Of one that this session has claimed
 * the number is known, by which it is found sooner, if it has to be found at
 * all: that its run is there tells that it is.
 */
static void
find_tasks(TqReport *reports, int n, TqResolved reason)
{
	TqTask *tasks = palloc0(sizeof(TqTask) * n);
	int recalled = 0;

	for (int i = 0; i < n; i++)
	{
		tasks[i].task_id = reports[i].task_id;
		tasks[i].id = tq_runs_recall(&tasks[i].task_id);
		recalled += tasks[i].id != 0;
	}
	if (recalled > 0 && is_more_needed(reason))
		recalled = tq_tasks_find_by_id(tasks, n);
	if (recalled < n)
		tq_tasks_find(tasks, n);
	for (int i = 0; i < n; i++)
		reports[i].task = tasks[i].id == 0 ? NULL : &tasks[i];
}

/* Of two places in an array of reports, which is the third argument. */
static int
compare_place(const void *a, const void *b, void *reports)
{
	const TqReport *x = (const TqReport *) reports + *(const int *) a;
	const TqReport *y = (const TqReport *) reports + *(const int *) b;
	int64 task = x->task == NULL ? 0 : x->task->id;
	int64 other = y->task == NULL ? 0 : y->task->id;

	if (task != other)
		return task < other ? -1 : 1;
	if (x->run_id != y->run_id)
		return x->run_id < y->run_id ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The order of locks: by task id, then run id. */
static int *
places_by_run(TqReport *reports, int n)
{
	int *places = palloc(sizeof(int) * Max(n, 1));

	for (int i = 0; i < n; i++)
		places[i] = i;
	qsort_arg(places, n, sizeof(int), compare_place, reports);
	return places;
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

/*
 * Write the end of a running run, or lock one that is resolved: either way it
 * is as in report->run from here on.  A run that is running is its task's
 * last.
 */
static void
end_or_lock(TqReport *report, TqRunWriter *writer, TqResolved reason,
			TimestampTz now)
{
	TqRun *run = &report->run;
	int32 run_id = report->run_id;
	int64 recalled;
	int found;

	while (tq_run_writer_read(writer,
							  &report->task_id,
							  report->task->id,
							  run_id,
							  run))
	{
		report->state = run->state;
		if (tq_state_verdict(run->state, TQ_EVENT_REPORT) != TQ_VERDICT_APPLY)
		{
			(void) tq_runs_lock(&report->task->id, &run_id, 1, &found);
			return;
		}
		end_row(run, reason, now);
		report->is_ended = tq_run_writer_write(writer, run);
		if (report->is_ended)
			return;
	}
	run->place = TQ_PLACE_NONE;
	/* The task of a number that was recalled may have expired. */
	if (report->task->deadline != 0)
		return;
	recalled = report->task->id;
	if (!tq_task_find(report->task))
		report->task = NULL;
	else if (report->task->id != recalled)
		end_or_lock(report, writer, reason, now);
}

/* Each run that is named, once, in the order of locks. */
static void
end_or_lock_all(TqReport *reports, int n, TqResolved reason, TimestampTz now)
{
	TqRunWriter *writer = tq_run_writer_begin();
	int *places = places_by_run(reports, n);
	TqReport *before = NULL;

	for (int i = 0; i < n; i++)
	{
		TqReport *report = &reports[places[i]];

		if (report->task == NULL)
			continue;
		if (before != NULL && before->task->id == report->task->id &&
			before->run_id == report->run_id)
		{
			report->first = before;
			continue;
		}
		end_or_lock(report, writer, reason, now);
		if (report->task != NULL)
			before = report;
	}
	tq_run_writer_end(writer);
}

static TqOutcome
judge(TqReport *report, TqResolved reason, TimestampTz now, Ending *ending)
{
	const TqReport *first = report->first == NULL ? report : report->first;

	if (report->task == NULL)
		return TQ_OUTCOME_NOT_FOUND;
	if (report->is_ended)
		return follow_end(ending, &report->run, report->task, now)
				   ? TQ_OUTCOME_RETRIED
				   : TQ_OUTCOME_RESOLVED;
	if (first->is_ended)
		return TQ_OUTCOME_REPEATED;
	if (first->run.place == TQ_PLACE_NONE)
		return judge_without_row(report);
	report->state = first->state;
	return is_repeat(report->task, &first->run, reason, ending)
			   ? TQ_OUTCOME_REPEATED
			   : TQ_OUTCOME_CONFLICT;
}

/*
 * Reports by workers, all for one reason.  Each report gets its outcome; those
 * that do not apply change nothing.  The rows are written in the order of
 * locks, what follows in the order of the reports.
 */
void
tq_resolve_reports(TqReport *reports, int n, TqResolved reason,
				   TimestampTz now)
{
	Ending ending;

	if (n == 0)
		return;
	find_tasks(reports, n, reason);
	end_or_lock_all(reports, n, reason, now);
	begin_ending(&ending, n);
	for (int i = 0; i < n; i++)
		reports[i].outcome = judge(&reports[i], reason, now, &ending);
	write_ending(&ending, now);
}

/* ---- without a report ---- */

/* Claims that have expired (3.6); runs and tasks are parallel. */
void
tq_resolve_expired(TqRun *runs, const TqTask *tasks, int n, TimestampTz now)
{
	Ending ending;

	for (int i = 0; i < n; i++)
		end_row(&runs[i], TQ_RESOLVED_CLAIM_EXPIRED, now);
	tq_runs_update(runs, n);
	begin_ending(&ending, n);
	for (int i = 0; i < n; i++)
		(void) follow_end(&ending, &runs[i], &tasks[i], now);
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
		end_row(&runs[i], reason, now);
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
