/*
 * resolve.c
 *	  The end of a run: final, or followed by another run
 *	  (doc/spec/taskcluster.md 2.11, 2.12, 3.2; doc/spec/policy.md 4).
 *
 * Every end of a run comes through tq_resolution_follow(), which asks policy.c:
 * reports of workers, expired claims, timeouts, cancel, skip, deadline.  A
 * report writes the row of the run that it ends, and that write waits for
 * other transitions of the task as a lock would.  The other callers hold the
 * locks of the rows with the locations of their tasks.
 *
 * A run that ends and is retried gets its successor in the same transaction,
 * so at every commit a task has exactly one location.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "datatype/timestamp.h"
#include "lib/qunique.h"
#include "utils/snapmgr.h"
#include "utils/snapshot.h"

#include "../core/policy.h"
#include "../core/state.h"
#include "../core/types.h"
#include "../events/outbox.h"
#include "../storage/dependency_table.h"
#include "../storage/group_table.h"
#include "../storage/outbox_table.h"
#include "../storage/pending_table.h"
#include "../storage/policy_table.h"
#include "../storage/run_detail_table.h"
#include "../storage/run_table.h"
#include "../storage/task_lock.h"
#include "../storage/task_table.h"
#include "../storage/timer_table.h"
#include "../util/clock.h"
#include "../util/guc.h"
#include "../util/slugid.h"
#include "../util/spi.h"
#include "dead_letter.h"
#include "dependency.h"
#include "pending_run.h"
#include "resolve.h"

void
tq_resolution_begin(TqResolution *resolution, int n)
{
	memset(resolution, 0, sizeof(*resolution));
	resolution->n = n;
	resolution->finals = palloc(sizeof(TqRun) * Max(n, 1));
}

/*
 * Appends the messages of a run that is followed by another.  When the run is
 * retried, only the new run is published, and only if it is pending, unless
 * tq.publish_retried_exceptions is on (doc/spec/taskcluster.md D-05).
 */
void
tq_resolution_announce_followed(TqResolution *resolution, const TqTask *task,
								const TqRun *run, const TqRun *next)
{
	bool is_retry = tq_created_is_retry(next->created);

	if (!is_retry || tq_publish_retried_exceptions)
		tq_outbox_add(&resolution->outbox,
					  tq_state_exchange(run->state),
					  task,
					  run->run_id,
					  next);
	if (is_retry && next->state == TQ_STATE_PENDING)
		tq_outbox_add(&resolution->outbox,
					  TQ_EXCHANGE_TASK_PENDING,
					  task,
					  next->run_id,
					  next);
}

/* Sets the state, reason and time of the end of a run. */
void
tq_resolution_end_run(TqRun *run, TqResolved reason, TimestampTz now)
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
						.lost_retries_left = filled.lost_retries_left,
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
add_final(TqResolution *resolution, const TqRun *run, const TqTask *task)
{
	TqRun *final = &resolution->finals[resolution->nfinals];

	*final = *run;
	final->policy = task->policy;
	if (task->policy != 0)
	{
		if (resolution->tasks == NULL)
			resolution->tasks = palloc(sizeof(TqTask) * resolution->n);
		resolution->tasks[resolution->nfinals] = *task;
	}
	resolution->nfinals++;
	tq_outbox_add(&resolution->outbox,
				  tq_state_exchange(run->state),
				  task,
				  run->run_id,
				  run);
}

/* Adds the run that follows this one, and the messages of both. */
static void
add_start(TqResolution *resolution, const TqRun *run, const TqTask *task,
		  const TqNext *next, TimestampTz now)
{
	TqRun retry = {.run_id = next->budget.run_id,
				   .state = TQ_STATE_PENDING,
				   .created = next->created};

	if (resolution->starts == NULL)
		resolution->starts = palloc(sizeof(TqStart) * resolution->n);
	tq_resolution_announce_followed(resolution, task, run, &retry);
	resolution->starts[resolution->nstarts++] =
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
bool
tq_resolution_follow(TqResolution *resolution, const TqRun *run,
					 const TqTask *task, TimestampTz now)
{
	TqNext next = {.follow = TQ_FOLLOW_NONE};

	if (tq_resolved_retry(run->reason) != TQ_CREATED_NONE)
		find_next(run, task, run->reason, now, &next);
	switch (next.follow)
	{
		case TQ_FOLLOW_NONE:
			add_final(resolution, run, task);
			return false;
		case TQ_FOLLOW_LOST:
		case TQ_FOLLOW_RETRY:
			add_start(resolution, run, task, &next, now);
			return true;
	}
	return false;
}

/*
 * Writes the dead letters of tasks that ended without success, and cancels the
 * rest of their groups where their policies say so.
 */
static void
act_on_failures(const TqResolution *resolution, TimestampTz now)
{
	TqRun *dead = palloc(sizeof(TqRun) * Max(resolution->nfinals, 1));
	TqTask *tasks = palloc(sizeof(TqTask) * Max(resolution->nfinals, 1));
	TqTask *fatal = palloc(sizeof(TqTask) * Max(resolution->nfinals, 1));
	int ndead = 0;
	int nfatal = 0;

	for (int i = 0; i < resolution->nfinals; i++)
	{
		const TqRun *run = &resolution->finals[i];
		const TqPolicy *policy = tq_policy_get(run->policy);

		if (!tq_policy_applies(run->reason))
			continue;
		if (policy->dead_letter &&
			run->reason != TQ_RESOLVED_CANCELED_BY_WORKER)
		{
			dead[ndead] = *run;
			tasks[ndead++] = resolution->tasks[i];
		}
		if (policy->on_unsuccessful == TQ_UNSUCCESSFUL_CANCEL_GROUP)
			fatal[nfatal++] = resolution->tasks[i];
	}
	tq_dead_letters_write(dead, tasks, ndead, now);
	tq_group_cancel_rest(fatal, nfatal, now);
}

/*
 * Writes what follows the ends.  Dependents are released before groups are
 * canceled: the release waits for locks of rows in unscheduled, and takes them
 * in their order, while the cancellation skips locked rows and never waits.
 */
void
tq_resolution_write(TqResolution *resolution, TimestampTz now)
{
	tq_pending_runs_add(resolution->starts, resolution->nstarts, now);
	tq_outbox_append(&resolution->outbox);
	tq_dependency_release(resolution->finals, resolution->nfinals, now);
	for (int i = 0; i < resolution->nfinals; i++)
	{
		if (resolution->finals[i].policy != 0 &&
			tq_policy_applies(resolution->finals[i].reason))
		{
			act_on_failures(resolution, now);
			return;
		}
	}
}

/* ---- without a report ---- */

/* ---- locked tasks that are about to end ---- */

/*
 * Leaves out the tasks that would be finally resolved while another session
 * has one of their dependents locked.
 */
void
tq_resolve_drop_blocked(TqLockedTasks *locked, TqResolved reason,
						TimestampTz now)
{
	bool *is_final = palloc(sizeof(bool) * Max(locked->n, 1));

	tq_details_read(locked->runs, locked->n);
	for (int i = 0; i < locked->n; i++)
		is_final[i] = is_final_by_policy(&locked->runs[i],
										 &locked->tasks[i],
										 reason,
										 now);
	tq_dependency_drop_blocked(locked, is_final);
}

/*
 * Leaves out the tasks that are past their deadline, which the deadline step
 * resolves.
 */
void
tq_resolve_drop_overdue(TqLockedTasks *locked, TimestampTz now)
{
	int n = locked->n;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (locked->tasks[i].deadline > now)
			tq_locked_tasks_keep(locked, i);
	}
}

/*
 * Gives a task that had no run a run that is resolved at its creation
 * (doc/spec/taskcluster.md 3.3).
 */
static void
create_resolved_run(TqRun *run, const TqTask *task, TqResolved reason,
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
	int64 *left[TQ_LOCATION_RUN + 1]; /* by the location that is left */
	int nleft[TQ_LOCATION_RUN + 1];
	TqRun *moved;
	int nmoved;
	TqRun *updated;
	int nupdated;
} Moves;

static void
begin_moves(Moves *moves, int n)
{
	memset(moves, 0, sizeof(*moves));
	for (int location = 0; location <= TQ_LOCATION_RUN; location++)
		moves->left[location] = palloc(sizeof(int64) * n);
	moves->moved = palloc(sizeof(TqRun) * n);
	moves->updated = palloc(sizeof(TqRun) * n);
}

static void
add_move(Moves *moves, const TqRun *run)
{
	moves->left[run->location][moves->nleft[run->location]++] = run->task;
	if (run->location == TQ_LOCATION_RUN)
		moves->updated[moves->nupdated++] = *run;
	else
		moves->moved[moves->nmoved++] = *run;
}

static void
write_moves(const Moves *moves)
{
	tq_unscheduled_delete(moves->left[TQ_LOCATION_UNSCHEDULED],
						  moves->nleft[TQ_LOCATION_UNSCHEDULED]);
	tq_pending_delete(moves->left[TQ_LOCATION_PENDING],
					  moves->nleft[TQ_LOCATION_PENDING]);
	tq_delayed_delete(moves->left[TQ_LOCATION_DELAYED],
					  moves->nleft[TQ_LOCATION_DELAYED]);
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
	TqResolution resolution;

	if (n == 0)
		return;
	tq_details_read(runs, n);
	begin_moves(&moves, n);
	for (int i = 0; i < n; i++)
	{
		if (runs[i].location == TQ_LOCATION_UNSCHEDULED)
			create_resolved_run(&runs[i], &tasks[i], reason, now);
		tq_resolution_end_run(&runs[i], reason, now);
		add_move(&moves, &runs[i]);
	}
	write_moves(&moves);
	tq_resolution_begin(&resolution, n);
	for (int i = 0; i < n; i++)
		(void) tq_resolution_follow(&resolution, &runs[i], &tasks[i], now);
	tq_resolution_write(&resolution, now);
}

/* ---- groups canceled by the failure of a task (doc/spec/policy.md 2) ---- */

/* Leaves out the tasks that were rerun after that time. */
static void
drop_rerun(TqLockedTasks *locked, TimestampTz canceled)
{
	int n = locked->n;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (locked->runs[i].created != TQ_CREATED_RERUN ||
			locked->runs[i].scheduled <= canceled)
			tq_locked_tasks_keep(locked, i);
	}
}

/*
 * Cancels the unresolved ones of these tasks without waiting for any lock.
 * Tasks that another session has locked get a timer, and the maintenance
 * worker tries them again.  So there is no order of locks to keep, and no
 * deadlock, however many tasks there are and however many sessions report on
 * them.  A task that was rerun after the group was canceled is meant to run,
 * and is left alone.
 */
int64
tq_group_cancel_held(const int64 *tasks, int n, TimestampTz canceled,
					 TimestampTz now)
{
	TqLockedTasks locked;

	tq_task_lock_unresolved(tasks, n, &locked);
	tq_resolve_drop_overdue(&locked, now);
	drop_rerun(&locked, canceled);
	tq_dependency_drop_blocked(&locked, NULL);
	tq_timer_insert(TQ_TIMER_CANCEL,
					tq_clock_add_ms(now, TQ_AGAIN_MS),
					locked.others,
					locked.nothers);
	tq_resolve_runs(locked.runs,
					locked.tasks,
					locked.n,
					TQ_RESOLVED_CANCELED,
					now);
	return locked.n;
}

/*
 * Returns the slug of the group of a task that was loaded without its
 * group_slug.
 */
static TqSlug
slug_of_group(const TqTask *task)
{
	Snapshot snapshot;
	TqSlug slug;

	if (task->group_id == 0)
		return task->task_id;
	snapshot = RegisterSnapshot(tq_spi_snapshot());
	slug = tq_group_slug(task->group_id, snapshot);
	UnregisterSnapshot(snapshot);
	return slug;
}

static int
compare_slugs(const void *a, const void *b)
{
	return tq_slug_compare(a, b);
}

/*
 * Cancels the remaining tasks of the groups of these tasks, whether the groups
 * are sealed or not.  It covers the tasks that exist by now.
 */
void
tq_group_cancel_rest(const TqTask *tasks, int n, TimestampTz now)
{
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));

	for (int i = 0; i < n; i++)
		slugs[i] = slug_of_group(&tasks[i]);
	qsort(slugs, n, sizeof(TqSlug), compare_slugs);
	n = (int) qunique(slugs, n, sizeof(TqSlug), compare_slugs);
	for (int i = 0; i < n; i++)
	{
		TqGroup group;
		int64 *ids;
		int found;

		if (!tq_group_find(&slugs[i], &group))
			continue;
		ids = tq_group_unresolved(&group, &found);
		(void) tq_group_cancel_held(ids, found, DT_NOEND, now);
	}
}
