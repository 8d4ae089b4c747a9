/*
 * report.c
 *	  Reports of workers: those that end runs, and progress of running ones.
 */
#include "postgres.h"

#include "../core/state.h"
#include "lifecycle.h"

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
		case TQ_OUTCOME_FORBIDDEN:
			return "forbidden";
	}
	return NULL;
}

/* ---- reports ---- */

/*
 * Verifies the credentials of reports, in place of the scopes of the caller.
 * The worker that they belong to must have the run still when it is ended.
 * Credentials that several reports share are verified once.
 */
static void
check_credentials(TqReport *reports, int n, TimestampTz now)
{
	const TqCredentials *before = NULL;
	bool is_valid = false;
	TqClaimRights rights;

	for (int i = 0; i < n; i++)
	{
		TqReport *report = &reports[i];

		if (report->credentials == NULL)
			continue;
		if (report->credentials != before)
			is_valid = tq_credentials_verify(report->credentials, now,
											 &rights);
		before = report->credentials;
		report->is_forbidden = !is_valid ||
							   !tq_claim_rights_are_for(&rights,
														&report->task_id,
														report->run_id);
		if (report->is_forbidden)
			continue;
		report->holder = rights.worker;
		report->is_checked = false;
	}
}

/*
 * Finds the task that a report names.  The session caches the ids of tasks
 * that it has claimed, because the row of the run proves that the task exists.
 * What else is needed of it is read when the run is locked, by read_late(); but
 * before, if the policy decides what is stored.
 */
static void
report_find_task(TqTaskFinder *finder, TqReport *report, TqTask *task)
{
	TqRecalled recalled;

	report->is_found = tq_runs_recall(&report->task_id, report->run_id,
									  &recalled);
	if (report->is_found)
	{
		report->id = recalled.task;
		report->claimer = recalled.worker;
		report->claimed_in = recalled.queue;
		report->owner = (TqCountOwner){recalled.queue, recalled.group_id};
	}
	/*
	 * The end of a task with this policy needs more than its id: its payload
	 * is dropped, or others wait for its keys.
	 */
	if (report->is_found && !(recalled.policy != 0 &&
							  (tq_policy_get(recalled.policy)->drop_payload ||
							   tq_policy_get(recalled.policy)->keys != 0)))
		return;
	report->is_found = (report->is_found &&
						tq_task_find_by_id(finder, report->id, task)) ||
					   tq_task_find_by_slug(finder, &report->task_id, task);
	if (!report->is_found)
		return;
	/*
	 * Set the task of a report, whose result is not stored if it is dropped.
	 */
	report->id = task->id;
	report->owner = tq_count_owner(task);
	report->task = task;
	/* The policy of this number drops payloads and results. */
	if (task->policy != 0 && tq_policy_get(task->policy)->drop_payload)
		report->result = NULL;
}

/* Finds the tasks of reports. */
static void
find_tasks(TqReport *reports, int n)
{
	TqTask *tasks = palloc(sizeof(TqTask) * n);
	TqTaskFinder finder = {NULL, NULL};

	for (int i = 0; i < n; i++)
	{
		if (!reports[i].is_forbidden)
			report_find_task(&finder, &reports[i], &tasks[i]);
	}
	tq_task_finder_end(&finder);
}

/*
 * Reads the tasks of which only the ids are known.  More than the id of a task
 * is needed unless it is completed and task-completed is not published, because
 * policies apply only to other ends.  A task that is not there any more was
 * deleted while its run was not locked, because the caller may not resolve it.
 */
static void
read_late(TqReport *reports, int n)
{
	TqTask *tasks = palloc(sizeof(TqTask) * n);
	TqTaskFinder finder = {NULL, NULL};

	for (int i = 0; i < n; i++)
	{
		TqReport *report = &reports[i];

		if (!report->is_found || report->is_forbidden || report->task != NULL)
			continue;
		if (report->is_answered)
		{
			int found;

			/* Read the task of a report whose run is locked, with its names. */
			report->named = tq_tasks_by_id(&report->id, 1, &found);
			if (found > 0)
				report->task = &report->named->task;
			else
				report->named = NULL;
		}
		else if (report->reason == TQ_RESOLVED_COMPLETED &&
				 !tq_outbox_is_wanted(TQ_EXCHANGE_TASK_COMPLETED))
			continue;
		else if (tq_task_find_by_id(&finder, report->id, &tasks[i]))
			report->task = &tasks[i];
		report->is_found = report->task != NULL;
	}
	tq_task_finder_end(&finder);
}

/* Compares two indexes into an array of reports, the third argument. */
static int
compare_position(const void *a, const void *b, void *reports)
{
	const TqReport *x = (const TqReport *) reports + *(const int *) a;
	const TqReport *y = (const TqReport *) reports + *(const int *) b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->run_id != y->run_id)
		return x->run_id < y->run_id ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Returns the reports in the order of locks: by task id, then by run id. */
static int *
positions_by_run(TqReport *reports, int n)
{
	int *positions = palloc(sizeof(int) * Max(n, 1));

	for (int i = 0; i < n; i++)
		positions[i] = i;
	qsort_arg(positions, n, sizeof(int), compare_position, reports);
	return positions;
}

/*
 * Returns whether a report on a resolved run repeats an earlier one: it has
 * the same reason and the run is the last one.  After an exception one further
 * run may exist, after a failure only its retry.  For a repeat the same
 * messages are appended again.
 */
static bool
report_is_repeat(const TqTask *task, const TqRun *run, TqResolved reason,
				 TqTransitions *transitions)
{
	TqRun last;

	if (run->reason != reason || !tq_run_peek(run->task, &last) ||
		last.run_id > run->run_id + 1)
		return false;
	if (last.run_id > run->run_id && run->state != TQ_STATE_EXCEPTION &&
		!tq_created_is_retry(last.created))
		return false;
	tq_transition_announce(transitions, task, run,
						   last.state == TQ_STATE_UNSCHEDULED ? run : &last);
	return true;
}

/* Returns whether the caller may resolve the run of a report. */
static bool
may_resolve(const TqReport *report)
{
	return !report->is_checked ||
		   tq_may_handle_run("resolve-task", &report->task_id, report->run_id,
							 report->owner.queue);
}

/*
 * Returns whether a report that does not end its run is refused for want of
 * scopes.  Whether a run is in a state in which it cannot be completed or
 * failed is checked before the scopes (doc/spec/taskcluster.md 2.11), all else
 * after them (2.12).
 */
static bool
is_forbidden(const TqReport *report)
{
	TqResolved reason = report->reason;
	TqState state = report->state;

	if (reason == TQ_RESOLVED_COMPLETED && state != TQ_STATE_RUNNING &&
		state != TQ_STATE_COMPLETED)
		return false;
	if (reason == TQ_RESOLVED_FAILED && state != TQ_STATE_RUNNING &&
		state != TQ_STATE_FAILED)
		return false;
	return !may_resolve(report);
}

/*
 * Ends the run of a report if it is running, or locks its row if it is
 * resolved or another worker has it; either way the run stays as report->run
 * until this transaction ends.  A running run is the last run of its task.
 * Does not lock it for a caller that may not resolve it: the report raises no
 * error, so that the lock would last as long as that caller likes.  Returns
 * false if the run has no row.
 */
static bool
end_row(TqReport *report, TqRunWriter *writer, TimestampTz now)
{
	TqRun *run = &report->run;

	while (tq_run_writer_read(writer, &report->task_id, report->id,
							  report->run_id, run))
	{
		report->state = run->state;
		if (tq_state_verdict(run->state, TQ_EVENT_REPORT) !=
				TQ_VERDICT_APPLY ||
			(report->holder != 0 && report->holder != run->worker) ||
			!may_resolve(report))
		{
			if (may_resolve(report))
				(void) tq_run_lock_row(report->id, report->run_id);
			return true;
		}
		tq_transition_end_run(run, report->reason, now);
		report->had_detail = run->has_detail;
		run->has_detail = run->has_detail || report->error != NULL ||
						  report->result != NULL;
		report->is_ended = tq_run_writer_write(writer, run);
		if (report->is_ended)
			return true;
	}
	return false;
}

/*
 * Sets the queue of a report whose run has been ended.  The task may have been
 * moved since it was read, or claimed by this session, and then be claimed by
 * another worker.
 */
static void
set_queue(TqReport *report)
{
	report->owner.queue = report->run.worker == report->claimer
							  ? report->claimed_in
							  : tq_worker_queue(report->run.worker);
	if (report->task != NULL)
		report->task->queue = report->owner.queue;
}

/*
 * Ends or locks the run of a report.  If it has no row, the task of a cached
 * id may have expired; then the task is looked up.
 */
static void
end_or_lock(TqReport *report, TqRunWriter *writer, TimestampTz now)
{
	TqTask *task;

	report->has_row = end_row(report, writer, now);
	if (report->has_row || report->task != NULL)
		return;
	task = palloc(sizeof(TqTask));
	report->is_found = tq_task_find(&report->task_id, task);
	if (!report->is_found)
		return;
	report->task = task;
	report->owner = tq_count_owner(task);
	if (task->id == report->id)
		return;
	report->id = task->id;
	report->has_row = end_row(report, writer, now);
}

/*
 * Ends or locks each run that the reports name, once, in the order of locks.
 * A cached id that is no longer the task's is corrected in one report at a
 * time, so reports are compared by the task ids and run ids that were given.
 */
static void
end_or_lock_all(TqReport *reports, int n, TimestampTz now)
{
	TqRunWriter *writer = tq_run_writer_begin();
	int *positions = positions_by_run(reports, n);
	TqReport *before = NULL;

	for (int i = 0; i < n; i++)
	{
		TqReport *report = &reports[positions[i]];

		if (!report->is_found)
			continue;
		/* Two reports name the same run. */
		if (before != NULL &&
			(before->run_id == report->run_id &&
			 tq_slug_compare(&before->task_id, &report->task_id) == 0))
		{
			report->first = before;
			continue;
		}
		end_or_lock(report, writer, now);
		if (report->is_ended)
			set_queue(report);
		if (report->is_found)
			before = report;
	}
	tq_run_writer_end(writer);
}

/*
 * Reads the detail of a run that has just ended, and writes the error and the
 * result that the report gave.
 *
 * The retries left that the worker gave, and the retry delay, which is set
 * last, count for the next run only: the rows of the ended run keep the values
 * that messages have shown.
 */
static void
look_at_detail(TqReport *report)
{
	TqRun *run = &report->run;
	bool has_words = report->error != NULL || report->result != NULL;

	if (report->has_retries_left)
		run->retries_left = report->retries_left;
	if (!report->had_detail && !has_words && !report->has_retry_delay)
		return;
	report->detail = palloc(sizeof(TqRunDetail));
	run->has_detail = report->had_detail;
	tq_run_detail(run, report->task == NULL ? 0 : report->task->policy,
				  report->detail);
	run->has_detail = report->had_detail || has_words;
	if (has_words)
	{
		report->detail->error = report->error;
		report->detail->result = report->result;
		tq_details_write(report->detail, 1);
	}
	if (report->has_retry_delay)
		report->detail->retry_delay = report->retry_delay;
}

/*
 * Returns the outcome of a report whose run has been ended or locked, and adds
 * what follows the end.
 */
static TqOutcome
decide_report(TqReport *report, TqTransitions *transitions)
{
	const TqReport *first = report->first == NULL ? report : report->first;

	if (report->is_forbidden)
		return TQ_OUTCOME_FORBIDDEN;
	if (report->is_found && !report->is_ended && report->is_checked)
		report->is_found = tq_may_see_run("resolve-task", &report->task_id,
										  report->run_id, report->owner.queue);
	if (!report->is_found)
		return TQ_OUTCOME_NOT_FOUND;
	if (report->is_ended)
	{
		bool is_retried = tq_transition_follow(transitions, &report->run,
											   report->detail, report->task);

		tq_count_end(report->owner, &report->run,
					 report->task == NULL ? 0 : report->task->policy,
					 is_retried);
		if (tq_log_failures >= 0)
			tq_run_log_failed(report->owner.queue, &report->task_id,
							  &report->run, is_retried, report->error);
		return is_retried ? TQ_OUTCOME_RETRIED : TQ_OUTCOME_RESOLVED;
	}
	if (first->is_ended)
		return TQ_OUTCOME_REPEATED;
	if (!first->has_row)
	{
		TqRun last;

		/*
		 * The outcome of a report on a run that has no row: the run is pending, or
		 * does not exist.
		 */
		if (tq_run_peek(report->id, &last) && last.run_id == report->run_id &&
			last.state != TQ_STATE_UNSCHEDULED)
		{
			report->state = last.state;
			return is_forbidden(report) ? TQ_OUTCOME_FORBIDDEN
										: TQ_OUTCOME_CONFLICT;
		}
		return TQ_OUTCOME_NOT_FOUND;
	}
	report->state = first->state;
	if (is_forbidden(report))
		return TQ_OUTCOME_FORBIDDEN;
	return report_is_repeat(report->task, &first->run, report->reason,
							transitions)
			   ? TQ_OUTCOME_REPEATED
			   : TQ_OUTCOME_CONFLICT;
}

/*
 * Resolves runs by reports of workers, each for its reason.  Each report gets
 * its outcome; a report that does not apply changes nothing.  The runs
 * are ended in the order of locks, their follow-ups are written in the order
 * of the reports.
 */
void
tq_resolve_reports(TqReport *reports, int n, TimestampTz now)
{
	TqTransitions transitions = {.now = now, .n = n};

	if (n == 0)
		return;
	check_credentials(reports, n, now);
	find_tasks(reports, n);
	end_or_lock_all(reports, n, now);
	read_late(reports, n);
	for (int i = 0; i < n; i++)
	{
		if (reports[i].is_ended)
			look_at_detail(&reports[i]);
	}
	for (int i = 0; i < n; i++)
		reports[i].outcome = decide_report(&reports[i], &transitions);
	tq_transitions_finish(&transitions);
}

/* ---- progress ---- */

/*
 * What a worker reports of a run while it is running (doc/spec/policy.md
 * 13).
 *
 * Progress is kept in the detail of the run, in columns that no index has.  The
 * first report of a run writes the row of the run, too, because that says that
 * there is a detail.  Later reports lock nothing but the detail: no transition
 * of the task waits for a worker whose transaction is open, unless it writes
 * the detail itself.  A report whose transaction is open when the run ends is
 * stored as if it had come before.
 */

/* The least time between two reports that are stored. */
#define INTERVAL_MS 1000

static bool
report_is_same(const TqRunProgress *a, const TqRunProgress *b)
{
	if (a->done != b->done || a->total != b->total ||
		(a->message == NULL) != (b->message == NULL))
		return false;
	return a->message == NULL || strcmp(a->message, b->message) == 0;
}

/*
 * Returns whether a report is dropped, because one was stored within a second.
 * The last report of a run, by which all is done, is dropped only if it is
 * repeated.
 */
static bool
is_too_soon(const TqRunProgress *stored, const TqRunProgress *progress,
			TimestampTz now)
{
	if (stored == NULL || now < stored->reported ||
		now >= tq_clock_add_ms(stored->reported, INTERVAL_MS))
		return false;
	return progress->done != progress->total ||
		   report_is_same(stored, progress);
}

/*
 * Gives a run that has none a detail, and notes that in its row; returns false
 * if that was changed concurrently.
 */
static bool
report_add_detail(TqRunWriter *writer, const TqTask *task, TqRun *run)
{
	TqRunDetail detail;

	tq_run_detail(run, task->policy, &detail);
	if (task->policy == 0) /* as views show a run without a detail */
		detail.budget.attempt = run->run_id;
	run->has_detail = true;
	if (!tq_run_writer_write(writer, run))
		return false;
	tq_details_write(&detail, 1);
	return true;
}

/*
 * Stores the progress of a run that this worker has.  Reads the run again until
 * that could be written as it was read, and then once more, because the write
 * may have waited for the end of the run.  Returns false if it is too soon.
 */
static bool
report_store(const TqTask *task, int run_id, int32 holder,
			 const TqRunProgress *progress, TqRun *run)
{
	TimestampTz now = progress->reported;
	TqRunWriter *writer = tq_run_writer_begin();
	bool is_lost = false; /* the detail that the row says there is */
	bool is_first = true;
	bool is_dropped = false;
	bool is_stored = false;

	for (;;)
	{
		if (!tq_claim_read(writer, task, run_id, holder, TQ_EVENT_RECLAIM, now,
						   run))
			continue;
		if (is_stored) /* it was running after that, too */
			break;
		if (run->has_detail && !is_lost)
		{
			const TqRunProgress *stored = tq_detail_progress(run);

			is_first = stored == NULL;
			is_dropped = is_too_soon(stored, progress, now);
		}
		else if (!report_add_detail(writer, task, run))
			continue;
		if (is_dropped)
			break;
		is_stored = tq_detail_set_progress(run, progress);
		is_lost = !is_stored; /* with the task, or to a DBA */
		tq_run_writer_renew(writer);
	}
	tq_run_writer_end(writer);
	if (is_stored && is_first)
		tq_count_reported(task);
	return is_stored;
}

/*
 * Stores how far a run is, and appends task-progress if a binding or a
 * subscription wants it.  If holder is not 0, that worker must have the run.
 * Does neither if the last report is less than a second old, unless this one
 * says that all is done.
 */
void
tq_progress_report(const TqSlug *task_id, int run_id, int32 holder,
				   TqRunProgress *progress, TimestampTz now)
{
	TqTask task;
	TqRun run;

	if (!tq_task_find(task_id, &task))
		tq_error_missing_task(task_id);
	progress->reported = now;
	if (report_store(&task, run_id, holder, progress, &run) &&
		tq_outbox_is_wanted(TQ_EXCHANGE_TASK_PROGRESS))
		tq_outbox_append_detail(TQ_EXCHANGE_TASK_PROGRESS, &task, run_id, &run,
								tq_progress_detail_json(progress));
}
