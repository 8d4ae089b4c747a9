/*
 * resolve.c
 *	  The end of a run: final, or followed by another run
 *	  (doc/spec/taskcluster.md 2.11, 2.12, 3.2; doc/spec/policy.md 4).
 *
 * Room 4.  Every end of a run comes through follow_end(), which asks policy.c:
 * reports of workers, expired claims, timeouts, cancel, skip, deadline.  A
 * report writes the row of the run that it ends, and that write waits for
 * other transitions of the task as a lock would.  The other callers hold the
 * locks of the rows with the locations of their tasks.
 *
 * A run that ends and is retried gets its successor in the same transaction,
 * so at every commit a task has exactly one location.
 */
#include "rules.h"

#include "common/pg_prng.h"

/* Returns the name of an outcome, as report functions return it. */
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

/*
 * What follows the ends of one call.  It is collected first, then written
 * together.
 */
typedef struct Ending
{
	int n;         /* capacity of each array */
	TqRun *finals; /* runs that no run follows */
	int nfinals;
	TqTask
		*tasks; /* tasks of those, where they have a policy; NULL: none has */
	TqStart *starts; /* runs that follow the others; NULL: none */
	int nstarts;
	TqMessage *messages;
	int nmessages;
} Ending;

static void
begin_ending(Ending *ending, int n)
{
	memset(ending, 0, sizeof(*ending));
	ending->n = n;
	ending->finals = palloc(sizeof(TqRun) * Max(n, 1));
	ending->messages = palloc(sizeof(TqMessage) * 2 * Max(n, 1));
}

/*
 * Appends a message about a run.  `last` is the last run of the task at the
 * time of the message.
 */
static void
tell(Ending *ending, TqExchange exchange, const TqTask *task, int run_id,
	 const TqRun *last)
{
	ending->messages[ending->nmessages++] =
		tq_publish_make(exchange, task, run_id, last);
}

/*
 * Appends the messages of a run that is followed by another.  When the run is
 * retried, only the new run is published, and only if it is pending, unless
 * tq.publish_retried_exceptions is on (doc/spec/taskcluster.md D-05).
 */
static void
tell_followed(Ending *ending, const TqTask *task, const TqRun *run,
			  const TqRun *next)
{
	bool is_retry = tq_created_is_retry(next->created);

	if (!is_retry || tq_publish_retried_exceptions)
		tell(ending, tq_state_exchange(run->state), task, run->run_id, next);
	if (is_retry && next->state == TQ_STATE_PENDING)
		tell(ending, TQ_EXCHANGE_TASK_PENDING, task, next->run_id, next);
}

/* Sets the state, reason and time of the end of a run. */
static void
end_row(TqRun *run, TqResolved reason, TimestampTz now)
{
	run->state = tq_resolved_state(reason);
	run->reason = reason;
	run->resolved = now;
}

/*
 * Returns the policy with the retry delay that a worker gave in place of its
 * backoff.
 */
static TqPolicy
delayed_by_worker(const TqPolicy *policy, int64 delay)
{
	TqPolicy delayed = *policy;

	delayed.backoff = TQ_BACKOFF_FIXED;
	delayed.retry_delay = delay;
	delayed.max_delay = delayed.jitter = 0;
	return delayed;
}

/*
 * Finds what follows a run that ends for this reason, by the policy of its
 * task.
 */
static void
find_next(const TqRun *run, const TqTask *task, TqResolved reason,
		  TimestampTz now, TqNext *next)
{
	TqPolicy policy = *tq_policy_get(task->policy);
	TqRun filled = *run;
	TqBudget budget;

	tq_run_fill(&filled, &policy);
	if (run->retry_delay != TQ_OFF)
		policy = delayed_by_worker(&policy, run->retry_delay);
	budget = (TqBudget){.run_id = run->run_id,
						.attempt = filled.attempt,
						.retries_left = run->retries_left,
						.lost_left = filled.lost_left,
						.visible_at = filled.visible_at,
						.pending_until = filled.pending_until};
	tq_policy_follow(&policy,
					 &budget,
					 reason,
					 now,
					 task->deadline,
					 tq_max_runs,
					 policy.jitter > 0 ? pg_prng_double(&pg_global_prng_state)
									   : 0,
					 next);
}

/*
 * Returns whether this run would be the last of its task if it ended now for
 * this reason.  The caller has read the details of the run.
 */
static bool
is_final_by_policy(const TqRun *run, const TqTask *task, TqResolved reason,
				   TimestampTz now)
{
	TqNext next;

	find_next(run, task, reason, now, &next);
	return next.follow == TQ_FOLLOW_NONE;
}

/* Adds a run that no run follows, and its message. */
static void
add_final(Ending *ending, const TqRun *run, const TqTask *task)
{
	TqRun *final = &ending->finals[ending->nfinals];

	*final = *run;
	final->policy = task->policy;
	if (task->policy != 0)
	{
		if (ending->tasks == NULL)
			ending->tasks = palloc(sizeof(TqTask) * ending->n);
		ending->tasks[ending->nfinals] = *task;
	}
	ending->nfinals++;
	tell(ending, tq_state_exchange(run->state), task, run->run_id, run);
}

/* Adds the run that follows this one, and the messages of both. */
static void
add_start(Ending *ending, const TqRun *run, const TqTask *task,
		  const TqNext *next, TimestampTz now)
{
	TqRun retry = {.run_id = next->budget.run_id,
				   .state = TQ_STATE_PENDING,
				   .created = next->created};

	if (ending->starts == NULL)
		ending->starts = palloc(sizeof(TqStart) * ending->n);
	tell_followed(ending, task, run, &retry);
	ending->starts[ending->nstarts++] =
		(TqStart){.task = task,
				  .created = next->created,
				  .budget = next->budget,
				  .retry_delay = run->retry_delay,
				  .scheduled = now};
}

/*
 * Adds what follows the end of a run whose row is written.  Returns true if
 * the run is retried.
 */
static bool
follow_end(Ending *ending, const TqRun *run, const TqTask *task,
		   TimestampTz now)
{
	TqNext next = {.follow = TQ_FOLLOW_NONE};

	if (tq_resolved_retry(run->reason) != TQ_CREATED_NONE)
		find_next(run, task, run->reason, now, &next);
	switch (next.follow)
	{
		case TQ_FOLLOW_NONE:
			add_final(ending, run, task);
			return false;
		case TQ_FOLLOW_LOST:
		case TQ_FOLLOW_RETRY:
			add_start(ending, run, task, &next, now);
			return true;
	}
	return false;
}

/*
 * Writes the dead letters of tasks that ended without success, and cancels the
 * rest of their groups where their policies say so.
 */
static void
act_on_failures(const Ending *ending, TimestampTz now)
{
	TqRun *dead = palloc(sizeof(TqRun) * Max(ending->nfinals, 1));
	TqTask *tasks = palloc(sizeof(TqTask) * Max(ending->nfinals, 1));
	TqTask *fatal = palloc(sizeof(TqTask) * Max(ending->nfinals, 1));
	int ndead = 0;
	int nfatal = 0;

	for (int i = 0; i < ending->nfinals; i++)
	{
		const TqRun *run = &ending->finals[i];
		const TqPolicy *policy = tq_policy_get(run->policy);

		if (!tq_policy_applies(run->reason))
			continue;
		if (policy->dead_letter &&
			run->reason != TQ_RESOLVED_CANCELED_BY_WORKER)
		{
			dead[ndead] = *run;
			tasks[ndead++] = ending->tasks[i];
		}
		if (policy->on_unsuccessful == TQ_UNSUCCESSFUL_CANCEL_GROUP)
			fatal[nfatal++] = ending->tasks[i];
	}
	tq_dead_letters_write(dead, tasks, ndead, now);
	tq_group_cancel_rest(fatal, nfatal, now);
}

/*
 * Writes what follows the ends.  Dependents are released before groups are
 * canceled: the release waits for locks of rows in unscheduled, and takes them
 * in their order, while the cancellation skips locked rows and never waits.
 */
static void
write_ending(Ending *ending, TimestampTz now)
{
	tq_schedule(ending->starts, ending->nstarts, now);
	tq_publish(ending->messages, ending->nmessages);
	tq_depend_release(ending->finals, ending->nfinals, now);
	for (int i = 0; i < ending->nfinals; i++)
	{
		if (ending->finals[i].policy != 0 &&
			tq_policy_applies(ending->finals[i].reason))
		{
			act_on_failures(ending, now);
			return;
		}
	}
}

/* ---- reports ---- */

/*
 * Returns whether more than the id of a task is needed to resolve it for this
 * reason.  A completed task needs no more unless task-completed is published,
 * because policies apply only to other ends.
 */
static bool
is_more_needed(TqResolved reason)
{
	return reason != TQ_RESOLVED_COMPLETED ||
		   tq_publish_is_wanted(TQ_EXCHANGE_TASK_COMPLETED);
}

/*
 * Finds the tasks that the reports name.  The session caches the ids of tasks
 * that it has claimed; the lookup by id is faster than by slug, and it is
 * skipped when no more than the id is needed, because the row of the run
 * proves that the task exists.
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

/* Compares two indexes into an array of reports, the third argument. */
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

/* Returns the reports in the order of locks: by task id, then by run id. */
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
 * Returns whether a report on a resolved run repeats an earlier one: it has
 * the same reason and the run is the last one.  After an exception one further
 * run may exist, after a failure only its retry.  For a repeat the same
 * messages are appended again.
 */
static bool
is_repeat(const TqTask *task, const TqRun *run, TqResolved reason,
		  Ending *ending)
{
	TqRun last;

	if (run->reason != reason || !tq_run_peek(run->task, &last) ||
		last.run_id > run->run_id + 1)
		return false;
	if (last.run_id > run->run_id && run->state != TQ_STATE_EXCEPTION &&
		!tq_created_is_retry(last.created))
		return false;
	if (last.run_id > run->run_id)
		tell_followed(ending, task, run, &last);
	else
		tell(ending, tq_state_exchange(run->state), task, run->run_id, run);
	return true;
}

/*
 * Returns the outcome of a report on a run that has no row: the run is
 * pending, or does not exist.
 */
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
 * Ends a running run, or locks the row of a resolved one; either way the run
 * stays as report->run until this transaction ends.  A running run is the last
 * run of its task.
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
		report->had_detail = run->has_detail;
		run->has_detail = run->has_detail || report->error != NULL ||
						  report->result != NULL;
		report->is_ended = tq_run_writer_write(writer, run);
		if (report->is_ended)
			return;
	}
	run->place = TQ_PLACE_NONE;
	/* The task of a cached id may have expired. */
	if (report->task->deadline != 0)
		return;
	recalled = report->task->id;
	if (!tq_task_find(report->task))
		report->task = NULL;
	else if (report->task->id != recalled)
		end_or_lock(report, writer, reason, now);
}

/* Returns whether two reports name the same run. */
static bool
is_same_run(const TqReport *a, const TqReport *b)
{
	return a->run_id == b->run_id &&
		   tq_slug_compare(&a->task_id, &b->task_id) == 0;
}

/*
 * Ends or locks each run that the reports name, once, in the order of locks.
 * A cached id that is no longer the task's is corrected in one report at a
 * time, so reports are compared by the task ids and run ids that were given.
 */
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
		if (before != NULL && is_same_run(before, report))
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

static bool
has_words(const TqReport *report)
{
	return report->is_ended &&
		   (report->error != NULL || report->result != NULL);
}

/*
 * Reads the details of a run that has just ended, and writes the error and the
 * result that the report gave.
 */
static void
look_at_detail(TqReport *report)
{
	TqRun *run = &report->run;

	if (!report->is_ended || !(report->had_detail || has_words(report)))
		return;
	run->has_detail = report->had_detail;
	tq_details_read(run, 1);
	tq_run_fill(run, tq_policy_get(report->task->policy));
	run->has_detail = true;
	if (!has_words(report))
		return;
	run->error = report->error;
	run->result = report->result;
	tq_details_write(run, 1);
}

/*
 * Applies the retry delay and the retries left that the worker gave.  They
 * count for the next run only: the row of the ended run is written already,
 * and keeps the values that messages have shown.
 */
static void
heed_worker(TqReport *report)
{
	if (report->has_retry_delay)
		report->run.retry_delay = report->retry_delay;
	if (report->has_retries_left)
		report->run.retries_left = report->retries_left;
}

/*
 * Returns the outcome of a report whose run has been ended or locked, and adds
 * what follows the end.
 */
static TqOutcome
judge(TqReport *report, TqResolved reason, TimestampTz now, Ending *ending)
{
	const TqReport *first = report->first == NULL ? report : report->first;

	if (report->task == NULL)
		return TQ_OUTCOME_NOT_FOUND;
	if (report->is_ended)
	{
		heed_worker(report);
		return follow_end(ending, &report->run, report->task, now)
				   ? TQ_OUTCOME_RETRIED
				   : TQ_OUTCOME_RESOLVED;
	}
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
 * Resolves runs by reports of workers, all for the same reason.  Each report
 * gets its outcome; a report that does not apply changes nothing.  The runs
 * are ended in the order of locks, their follow-ups are written in the order
 * of the reports.
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
	for (int i = 0; i < n; i++)
		look_at_detail(&reports[i]);
	begin_ending(&ending, n);
	for (int i = 0; i < n; i++)
		reports[i].outcome = judge(&reports[i], reason, now, &ending);
	write_ending(&ending, now);
}

/* ---- without a report ---- */

/* ---- locked tasks that are about to end ---- */

/*
 * Leaves out the tasks that would be finally resolved while another session
 * has one of their dependents locked.
 */
void
tq_resolve_drop_blocked(TqHeld *held, TqResolved reason, TimestampTz now)
{
	bool *is_final = palloc(sizeof(bool) * Max(held->n, 1));

	tq_details_read(held->runs, held->n);
	for (int i = 0; i < held->n; i++)
		is_final[i] =
			is_final_by_policy(&held->runs[i], &held->tasks[i], reason, now);
	tq_depend_drop_blocked(held, is_final);
}

/*
 * Leaves out the tasks that are past their deadline, which the deadline step
 * resolves.
 */
void
tq_resolve_drop_overdue(TqHeld *held, TimestampTz now)
{
	int n = held->n;

	held->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (held->tasks[i].deadline > now)
			tq_held_keep(held, i);
	}
}

/*
 * Gives a task that had no run a run that is resolved at its creation
 * (doc/spec/taskcluster.md 3.3).
 */
static void
give_birth_resolved(TqRun *run, const TqTask *task, TqResolved reason,
					TimestampTz now)
{
	run->run_id = 0;
	run->created = reason == TQ_RESOLVED_SKIPPED ? TQ_CREATED_SKIP
												 : TQ_CREATED_EXCEPTION;
	run->retries_left = task->retries;
	run->scheduled = now;
}

/* The rows to write for runs that end in any location. */
typedef struct Moves
{
	int64 *left[TQ_PLACE_RUN + 1]; /* by the location that is left */
	int nleft[TQ_PLACE_RUN + 1];
	TqRun *moved;
	int nmoved;
	TqRun *updated;
	int nupdated;
} Moves;

static void
begin_moves(Moves *moves, int n)
{
	memset(moves, 0, sizeof(*moves));
	for (int place = 0; place <= TQ_PLACE_RUN; place++)
		moves->left[place] = palloc(sizeof(int64) * n);
	moves->moved = palloc(sizeof(TqRun) * n);
	moves->updated = palloc(sizeof(TqRun) * n);
}

static void
add_move(Moves *moves, const TqRun *run)
{
	moves->left[run->place][moves->nleft[run->place]++] = run->task;
	if (run->place == TQ_PLACE_RUN)
		moves->updated[moves->nupdated++] = *run;
	else
		moves->moved[moves->nmoved++] = *run;
}

static void
write_moves(const Moves *moves)
{
	tq_unscheduled_delete(moves->left[TQ_PLACE_UNSCHEDULED],
						  moves->nleft[TQ_PLACE_UNSCHEDULED]);
	tq_pending_delete(moves->left[TQ_PLACE_PENDING],
					  moves->nleft[TQ_PLACE_PENDING]);
	tq_delayed_delete(moves->left[TQ_PLACE_DELAYED],
					  moves->nleft[TQ_PLACE_DELAYED]);
	tq_runs_insert(moves->moved, moves->nmoved);
	tq_runs_update(moves->updated, moves->nupdated);
}

/*
 * Ends runs in any location, for a reason that is not reported by a worker.
 * Runs and tasks are parallel arrays, and the rows are locked.
 */
void
tq_resolve_runs(TqRun *runs, const TqTask *tasks, int n, TqResolved reason,
				TimestampTz now)
{
	Moves moves;
	Ending ending;

	if (n == 0)
		return;
	tq_details_read(runs, n);
	begin_moves(&moves, n);
	for (int i = 0; i < n; i++)
	{
		if (runs[i].place == TQ_PLACE_UNSCHEDULED)
			give_birth_resolved(&runs[i], &tasks[i], reason, now);
		end_row(&runs[i], reason, now);
		add_move(&moves, &runs[i]);
	}
	write_moves(&moves);
	begin_ending(&ending, n);
	for (int i = 0; i < n; i++)
		(void) follow_end(&ending, &runs[i], &tasks[i], now);
	write_ending(&ending, now);
}
