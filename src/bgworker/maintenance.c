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
 * doc/spec/taskcluster.md 3.5 and 3.6 and doc/spec/policy.md 5.  Passes over all
 * tasks are in sweep_pass.c.
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
 * before a mark that exists, or will exist, its slot (database.c) must
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

#include "../core/names.h"
#include "../core/state.h"
#include "../operations/operations.h"
#include "bgworker.h"

/*
 * ---- counters in shared memory ----
 *
 * The maintenance worker counts all gauges of its database when it has none:
 * after a start of the server, and after rows were written by other statements
 * than those of tq.  Then it counts the groups that had counters before the
 * start, one in each cycle.  While such statements go on, it counts again after
 * a pause: a second, or twenty times as long as the last count took.
 */

#define PAUSE_MS 1000
#define PAUSE_RATIO 20

/* When the gauges may be counted again. */
static TimestampTz next_count = TQ_LONG_AGO;

/*
 * Returns when there is something to count: now, after the pause, or DT_NOEND.
 * The caller has called tq_call_begin().
 */
static TimestampTz
count_pass_due(TimestampTz now)
{
	Oid extension = tq_locked_table;

	tq_counts_settle();
	/* If the clock was set back, a count does not wait for it. */
	if (next_count > tq_clock_add_ms(now, TQ_HOUR_MS))
		next_count = now;
	if (tq_count_must_build(extension, tq_count_identity()))
		return Max(now, next_count);
	return tq_count_group_to_build(extension) != 0 ? now : DT_NOEND;
}

/* Counts the gauges, or else a group; in a transaction of its own. */
void
tq_count_pass(void)
{
	TimestampTz began = tq_clock_now();
	TimestampTz end;
	Oid extension;

	tq_call_begin(true);
	extension = tq_locked_table;
	if (!tq_count_must_build(extension, tq_count_identity()))
		tq_group_count_again(tq_count_group_to_build(extension));
	else
	{
		/* set before, so that an error is followed by a pause, too */
		next_count = tq_clock_add_ms(began, PAUSE_MS);
		(void) tq_count_build_gauges(0);
		end = tq_clock_now();
		next_count = tq_clock_add_ms(end, Max(PAUSE_MS, (end - began) / 1000 *
															PAUSE_RATIO));
	}
	tq_call_end();
}

/* ---- steps ---- */

/*
 * A batch takes rows of tq_internal.claim_timer or tq_internal.timer up to
 * BATCH_TAKES times, until it has changed BATCH_TASKS tasks.  Most rows are
 * stale: it costs little to find that out, and a transaction for each hundred
 * of them would cost more.  But changes are made by small transactions, so
 * that what is due in another step does not wait for long.
 */
#define BATCH_TASKS 1000
#define BATCH_TAKES 10
#define TAKE_ROWS 100  /* of a timer table, at once */
#define CLOCK_MS 25000 /* between two looks for times that are ahead */

/* ---- expiry ---- */

/*
 * Deletes what has expired: tasks, groups, artifacts, and the state of
 * queues and workers (doc/spec/taskcluster.md 8.4).
 *
 * A task gets a timer at its expiry when its deadline has passed, and a group
 * when a task of it is deleted (task_table.c); timers name both by ids of one
 * sequence.  Messages are built from the rows of their task.  So a task about
 * which the log may have messages departs: what they contain is kept for them
 * (departed_table.c), and the task is deleted like the others.
 *
 * Who else may be at the task in that moment?  Its current row is locked, or
 * the task is skipped and looked at again soon; then it is read again.  So it
 * goes only if it is resolved and has expired by what it is under the lock:
 *	rerun, repair	came before, and the task stays: it is unresolved, or has a
 *		later expires; or they wait for the lock, and find no task (TQ404);
 *	claim	finds no run, as the task is resolved;
 *	new dependent	holds the row in share mode, so that the task stays; or waits
 *		and finds no task (TQ400).  It takes no lock only if the task does not
 *		expire soon (dependency.c);
 *	creation with the same id	waits at the unique index of task, and creates the
 *		task when this transaction has committed; the departed one has no index
 *		by that id;
 *	join of its group	locks the row of the group, or prolongs it, so that the
 *		group is skipped; one that comes later waits for the deletion, and is the
 *		first of a new group, by any scheduler.
 * A row that was skipped because of a transaction that is rolled back is left to
 * the next pass over all groups, within the hour.
 */

/* Artifacts are deleted, and workers forgotten, this long after they expire. */
#define EXPIRY_SLACK_MS (30 * 60 * 1000)

/*
 * Inserts timers at which these resolved tasks expire.  Those of an hour share
 * rows, so that tasks that are kept for years cost little; the session that
 * takes a row inserts the exact ones.
 */
static void
watch_expiry(const TqTask *tasks, int n, int64 early_ms)
{
	TqTimerEntry *entries = palloc(sizeof(TqTimerEntry) * Max(n, 1));

	for (int i = 0; i < n; i++)
		entries[i] = (TqTimerEntry){tasks[i].expires, tasks[i].id};
	tq_timers_insert_early(TQ_TIMER_EXPIRE, entries, n, early_ms);
}

/*
 * Locks up to tq.expire_batch of these tasks and reads them again; returns
 * those that are resolved and have expired, and the last runs of these and maybe
 * others.  A task that another session has locked, or that is unresolved, is
 * looked at again soon, and those beyond the batch at once.
 */
static TqTask *
lock_expired(TqTask *tasks, int n, TqRun *runs, TimestampTz now, int *left)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	int64 *again = palloc(sizeof(int64) * Max(n, 1));
	int batch = Min(n, tq_expire_batch);
	int nlocked;
	int nagain = 0;
	int found;

	for (int i = 0; i < n; i++)
		ids[i] = tasks[i].id;
	nlocked = tq_task_lock_resolved(ids, batch, runs);
	for (int i = 0; i < batch; i++)
	{
		if (i - nagain < nlocked && runs[i - nagain].task == tasks[i].id)
			ids[i - nagain] = tasks[i].id;
		else
			again[nagain++] = tasks[i].id;
	}
	tq_timer_insert(TQ_TIMER_EXPIRE, tq_clock_add_ms(now, TQ_AGAIN_MS), again,
					nagain);
	for (int i = batch; i < n; i++)
		again[i] = tasks[i].id;
	tq_timer_insert(TQ_TIMER_EXPIRE, now, again + batch, n - batch);
	tasks = tq_tasks_core(ids, nlocked, &found);
	*left = 0;
	for (int i = 0; i < found; i++)
	{
		if (tasks[i].expires > now)
			watch_expiry(&tasks[i], 1, 0);
		else
			tasks[(*left)++] = tasks[i];
	}
	return tasks;
}

/* Deletes expired tasks. */
static int
delete_expired(TqTask *tasks, int n, TimestampTz now)
{
	TqRun *runs = palloc(sizeof(TqRun) * Max(n, 1));

	tasks = lock_expired(tasks, n, runs, now, &n);
	return tq_sweep_delete_locked(tasks, n, runs, true, now);
}

/*
 * Returns whether a task that has expired stays, because others wait for a
 * decision about it; then has it looked at again.  An expiry that was given
 * comes first.
 */
static bool
expires_later(const TqTask *task, TimestampTz now)
{
	if (task->expires_given || !tq_gate_keeps_others(task))
		return false;
	tq_timer_insert(TQ_TIMER_EXPIRE, tq_clock_add_ms(now, TQ_HOUR_MS),
					&task->id, 1);
	return true;
}

/* Deletes those of the ids that are expired groups, by what is no task. */
static int
expire_groups(const TqWork *work, const TqTask *tasks, int n)
{
	int64 *others = palloc(sizeof(int64) * Max(work->n, 1));
	int count = 0;

	for (int i = 0; i < work->n; i++)
	{
		int at = i - count;

		if (at >= n || tasks[at].id != work->tasks[i])
			others[count++] = work->tasks[i];
	}
	return tq_groups_delete(work->now, others, count);
}

/*
 * Deletes those of the tasks and groups that have expired.  The other tasks are
 * looked at again when they have.
 */
static int64
expire_tasks(const TqWork *work)
{
	int nexpired = 0;
	int nkept = 0;
	int n;
	TqTask *tasks = tq_tasks_core(work->tasks, work->n, &n);
	TqTask *kept = palloc(sizeof(TqTask) * Max(n, 1));
	int64 deleted = expire_groups(work, tasks, n);

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].expires > work->now)
			kept[nkept++] = tasks[i];
		else if (!expires_later(&tasks[i], work->now))
			tasks[nexpired++] = tasks[i];
	}
	watch_expiry(kept, nkept, 0);
	*work->more = *work->more || nexpired > tq_expire_batch;
	return deleted + delete_expired(tasks, nexpired, work->now);
}

/*
 * Deletes expired groups and artifacts, and clears expired queues and workers,
 * which have no timers of their own.  Does so once an hour in each backend.
 */
static void
sweep_expired(TimestampTz now)
{
	static TimestampTz last = 0;
	TimestampTz before = tq_clock_add_ms(now, -EXPIRY_SLACK_MS);

	if (last != 0 && before < tq_clock_add_ms(last, TQ_HOUR_MS) &&
		before >= last)
		return;
	while (tq_groups_delete(now, NULL, tq_expire_batch) == tq_expire_batch)
		CHECK_FOR_INTERRUPTS();
	while (tq_artifacts_delete_expired(before, tq_expire_batch) ==
		   tq_expire_batch)
		CHECK_FOR_INTERRUPTS();
	tq_queues_forget(before);
	tq_workers_forget(before);
	tq_interned_sweep(before, now);
	last = before;
}

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
	watch_expiry(locked.resolved, locked.nresolved, TQ_HOUR_MS);
	ended = tq_transitions_end(&locked, TQ_EVENT_DEADLINE, TQ_TIMER_DEADLINE,
							   work->now);
	watch_expiry(locked.tasks, locked.n, TQ_HOUR_MS);
	return ended;
}

/* ---- timeouts ---- */

/*
 * Timeouts of policies: runs that are running or pending for too long, and
 * alerts where a policy only alerts (doc/spec/policy.md 2, 5, 10).
 *
 * A timer only says which tasks to check.  What has happened is decided by the
 * row of each task, under its lock, and a task that is locked is skipped.  A
 * timer whose run was deferred, lost or retried meanwhile is stale and has no
 * effect.  Two kinds of timers do have an effect of their own: the alert of a
 * total timeout, which leaves no trace in the rows of the task, and the
 * cancellation of the rest of a group, except for tasks rerun since.
 *
 * Every pending or running run has the timers that it needs.  The transaction
 * that makes it pending writes the timer of the pending timeout; the one that
 * starts it first writes the timer of the run timeout.
 */

/*
 * Appends an alert that a timeout of the last run is over (doc/spec/policy.md
 * 10.5).
 */
static void
alert(const TqRun *run, const TqTask *task, const char *timeout)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_text(&state, "timeout", timeout);
	tq_outbox_append_detail(TQ_EXCHANGE_TASK_ALERT, task, run->run_id, run,
							tq_json_end(&state));
}

/* Returns when a timeout of this run is over, by the run and its policy. */
typedef TimestampTz (*RunLimit)(const TqRun *run, const TqRunDetail *detail,
								const TqPolicy *policy);

/*
 * Returns the end of the run timeout, which counts from the first start of the
 * run, also while the run is deferred.
 */
static TimestampTz
maintenance_end_of_run(const TqRun *run, const TqRunDetail *detail,
					   const TqPolicy *policy)
{
	if (policy->run_timeout == TQ_OFF || run->started == 0)
		return DT_NOEND;
	return tq_policy_after(run->started, policy->run_timeout);
}

static TimestampTz
end_of_pending(const TqRun *run, const TqRunDetail *detail,
			   const TqPolicy *policy)
{
	return run->state == TQ_STATE_PENDING
			   ? tq_policy_pending_until(policy, run->scheduled, run->started,
										 detail == NULL
											 ? 0
											 : detail->budget.pending_until)
			   : DT_NOEND;
}

/*
 * Keeps the locked tasks whose timeout is over.  Where the policy only alerts,
 * appends an alert instead, and returns the number of alerts.  A task that is
 * past its deadline is left to the deadline step.
 *
 * An alert changes no row, so no row shows that it was given.  It is given by
 * the run's own timer, which is due when the timeout is over.  If the timeout
 * ends later than any timer that was taken, even if that time is past as well,
 * the run was found by a timer of an earlier run, and its own timer is still
 * to come.
 */
static int
keep_over(TqLockedTasks *locked, RunLimit limit, const char *timeout,
		  TimestampTz taken, TimestampTz now)
{
	int n = locked->n;
	int alerts = 0;

	tq_locked_tasks_read_details(locked);
	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		const TqPolicy *policy = tq_policy_get(locked->tasks[i].policy);
		TimestampTz end = limit(&locked->runs[i], locked->details[i], policy);

		if (end > now || locked->tasks[i].deadline <= now)
			continue;
		if (!policy->alert_only)
			tq_locked_tasks_keep(locked, i);
		else if (end <= taken)
		{
			alert(&locked->runs[i], &locked->tasks[i], timeout);
			alerts++;
		}
	}
	return alerts;
}

/* Ends runs that have reached their run timeout or their pending timeout. */
static int64
end_timeouts(const TqWork *work)
{
	bool is_run = work->step == TQ_STEP_RUN_TIMEOUT;
	TqEvent event = is_run ? TQ_EVENT_RUN_TIMEOUT : TQ_EVENT_PENDING_TIMEOUT;
	TqLockedTasks locked;
	int alerts;

	tq_task_lock_unresolved(work->tasks, work->n, &locked);
	alerts = keep_over(&locked,
					   is_run ? maintenance_end_of_run : end_of_pending,
					   tq_resolved_name(tq_event_resolved(event)), work->due,
					   work->now);
	return alerts + tq_transitions_end(&locked, event,
									   is_run ? TQ_TIMER_RUN_TIMEOUT
											  : TQ_TIMER_PENDING_TIMEOUT,
									   work->now);
}

/*
 * Ends those runs that have just replaced lost ones and whose inherited
 * pending timeout is over already.  As in Taskbroker, lost runs are replaced
 * first and checked for their pending timeout then.
 */
static int64
end_inherited(const TqTask *tasks, int n, TimestampTz now)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	int count = 0;
	TqWork work = {.step = TQ_STEP_PENDING_TIMEOUT,
				   .tasks = ids,
				   .due = now,
				   .now = now};

	for (int i = 0; i < n; i++)
	{
		const TqPolicy *policy = tq_policy_get(tasks[i].policy);

		if (policy->lost_retries != TQ_OFF &&
			policy->pending_timeout != TQ_OFF && !policy->alert_only)
			ids[count++] = tasks[i].id;
	}
	work.n = count;
	return count == 0 ? 0 : end_timeouts(&work);
}

/*
 * Alerts of total timeouts where the policy only alerts; otherwise a total
 * timeout is an effective deadline (pending_run.c).
 */
static int64
alert_total(const TqWork *work)
{
	TqLockedTasks locked;

	tq_task_lock_unresolved(work->tasks, work->n, &locked);
	tq_timer_insert(TQ_TIMER_TOTAL_TIMEOUT,
					tq_clock_add_ms(work->now, TQ_AGAIN_MS), locked.others,
					locked.nothers);
	tq_locked_tasks_read_details(&locked);
	for (int i = 0; i < locked.n; i++)
		alert(&locked.runs[i], &locked.tasks[i], "total-timeout");
	return locked.n;
}

/*
 * Cancels the rest of groups that are being canceled (transition.c), except
 * for tasks that were rerun since, which are meant to run.  A timer of a
 * resolved task is for what depends on it.  Works on one timer
 * row at a time, because the due time of each says when its group was
 * canceled.
 */
static int64
cancel_rest(const TqWork *work)
{
	TimestampTz canceled = tq_clock_add_ms(work->due, -TQ_AGAIN_MS);
	TqLockedTasks locked;
	int dependents;
	int n;

	tq_task_lock_unresolved(work->tasks, work->n, &locked);
	dependents = tq_transitions_cancel_dependents(locked.resolved,
												  locked.nresolved, work->now);
	n = locked.n;
	locked.n = 0;
	for (int i = 0; i < n; i++)
	{
		if (!tq_created_is_rerun(locked.runs[i].created) ||
			locked.runs[i].scheduled <= canceled)
			tq_locked_tasks_keep(&locked, i);
	}
	return dependents + tq_transitions_end(&locked, TQ_EVENT_CANCEL,
										   TQ_TIMER_CANCEL, work->now);
}

/* ---- expired claims (doc/spec/taskcluster.md 3.6) ---- */

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
	TqTimerEntry *checks;
	TqTimerEntry *ends;
	int nchecks;
	int nends;

	tq_task_lock_expired(work->tasks, work->n, work->now, &locked);
	/*
	 * Insert timers for running runs whose claims have not expired.  A row
	 * that tasks share may be due early, unless it is for the end of claims.
	 */
	checks = palloc(sizeof(TqTimerEntry) * Max(locked.nclaims, 1));
	ends = palloc(sizeof(TqTimerEntry) * Max(locked.nclaims, 1));
	nchecks = 0;
	nends = 0;
	for (int i = 0; i < locked.nclaims; i++)
	{
		const TqRun *run = &locked.claims[i];
		TimestampTz due = tq_policy_check_claim(run->started, run->taken_until,
												work->now);

		if (due < run->taken_until)
			checks[nchecks++] = (TqTimerEntry){due, run->task};
		else
			ends[nends++] = (TqTimerEntry){due, run->task};
	}
	tq_timers_insert_early(TQ_TIMER_CLAIM, checks, nchecks, TQ_EARLY_MS);
	tq_timers_insert(TQ_TIMER_CLAIM, ends, nends);
	ended = tq_transitions_end(&locked, TQ_EVENT_CLAIM_EXPIRED, TQ_TIMER_CLAIM,
							   work->now);
	(void) end_inherited(locked.tasks, locked.n, work->now);
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

/* Settles foreign dependencies on tasks. */
static int64
settle(const TqWork *work)
{
	return tq_foreign_settle(work->tasks, work->n, work->now, work->more);
}

/* ---- callbacks ---- */

/*
 * The step of maintenance that creates tasks of resolved groups
 * (doc/spec/policy.md 14).
 *
 * The "tasks" of the step are callbacks.  A queue that is full refuses all that
 * are for it, and must not hold up the others.  So each of several is tried in a
 * subtransaction, and one that fails is postponed here, without a limit to how
 * many do.
 */

typedef struct CallbackTry
{
	int64 id;
	TimestampTz now;
	bool is_created;
} CallbackTry;

static void
try_callback(void *arg)
{
	CallbackTry *try = (CallbackTry *) arg;

	try->is_created = tq_group_callback_try(try->id, try->now);
}

/*
 * Creates the tasks of those callbacks whose groups are resolved; returns how
 * many.
 */
static int64
run_callbacks(const TqWork *work)
{
	int64 created = 0;

	if (work->n == 1)
		return tq_group_callback_try(work->tasks[0], work->now) ? 1 : 0;
	for (int i = 0; i < work->n; i++)
	{
		CallbackTry try = {.id = work->tasks[i], .now = work->now};
		ErrorData *error = tq_attempt(try_callback, &try);

		if (error != NULL)
			tq_bisect_postpone(work, i, error);
		else
			created += try.is_created;
	}
	return created;
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
						  TAKE_ROWS},
	[TQ_STEP_TOTAL_TIMEOUT] = {alert_total, TQ_TIMER_TOTAL_TIMEOUT,
							   BATCH_TAKES, TAKE_ROWS},
	[TQ_STEP_RUN_TIMEOUT] = {end_timeouts, TQ_TIMER_RUN_TIMEOUT, BATCH_TAKES,
							 TAKE_ROWS},
	[TQ_STEP_PENDING_TIMEOUT] = {end_timeouts, TQ_TIMER_PENDING_TIMEOUT,
								 BATCH_TAKES, TAKE_ROWS},
	[TQ_STEP_CLAIM_EXPIRED] = {expire_claims, TQ_TIMER_CLAIM, BATCH_TAKES,
							   TAKE_ROWS},
	[TQ_STEP_DELAYED] = {release_delayed, TQ_TIMER_NONE, 1, BATCH_TASKS},
	[TQ_STEP_ADMIT] = {admit, TQ_TIMER_GATE, 1, TAKE_ROWS},
	/* each row has a time of its own */
	[TQ_STEP_CANCEL] = {cancel_rest, TQ_TIMER_CANCEL, BATCH_TAKES, 1},
	[TQ_STEP_SETTLE] = {settle, TQ_TIMER_SETTLE, 1, TAKE_ROWS},
	[TQ_STEP_CALLBACK] = {run_callbacks, TQ_TIMER_CALLBACK, 1, TAKE_ROWS},
	[TQ_STEP_EXPIRE] = {expire_tasks, TQ_TIMER_EXPIRE, 1, 0},
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
maintenance_take_delayed(TqWork *work, int max, TqDue *due)
{
	TqPending *rows = tq_delayed_take(work->now, max, due);

	due->ids = palloc(sizeof(int64) * Max(due->n, 1));
	for (int i = 0; i < due->n; i++)
		due->ids[i] = rows[i].task;
	work->rows = rows;
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
		int rows = how->rows == 0 ? Max(1, tq_expire_batch / TQ_TIMER_TASKS)
								  : how->rows;

		/* Take some of the rows that are due for a step. */
		if (how->timer == TQ_TIMER_NONE)
			maintenance_take_delayed(&work, rows, &due);
		else
			tq_timer_take(how->timer, work.now, rows, &due);
		work.tasks = due.ids;
		work.n = due.n;
		work.due = due.position.due;
		work.more = &due.more;
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
 * Sets times back that are ahead of the clock, twice in a minute.  Only the
 * maintenance worker does, and not while a session has another clock.
 */
static void
set_times_back(TimestampTz now)
{
	static TimestampTz last = TQ_LONG_AGO;
	bool is_first = last == TQ_LONG_AGO;

	if (!tq_clock_is_shared() || now < tq_clock_add_ms(last, CLOCK_MS))
		return;
	last = now;
	tq_times_set_back(is_first);
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
	else if (step == TQ_STEP_HISTORY || step == TQ_STEP_NAMES)
		batch->tasks = tq_history_write(step == TQ_STEP_NAMES);
	else
	{
		set_times_back(now);
		sweep_expired(now);
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
	due = count_pass_due(now);
	tq_call_end();
	return due;
}
