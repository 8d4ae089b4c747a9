/*
 * transition.c
 *	  The ends of runs: what they write, and what follows from them
 *	  (doc/spec/taskcluster.md 2.11, 2.12, 3.2; doc/spec/policy.md 4).
 *
 * Every end of a run comes through here: reports of workers, expired claims,
 * timeouts, cancel, skip, deadlines.  A call makes its transitions in five
 * steps:
 *	1 lock		the rows with the locations of the tasks, in the order that
 *				task_lock.c gives.  Clients wait; maintenance skips what
 *				another session has locked, and inserts its timer again.  A
 *				report writes the row of the run that it ends, and that write
 *				waits for other transitions of the task as a lock would.
 *	2 decide	by state.c whether the event applies, and by policy.c whether
 *				another run follows.
 *	3 write		the ends, in one pass over each table.
 *	4 follow	next runs, released dependents, dead letters.  Groups that a
 *				policy cancels go to the work list, and the steps are repeated
 *				for their tasks until the list is empty.
 *	5 append	the messages of all to the outbox.
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
#include "transition.h"

/* Begins a round of at most n ends. */
static void
begin_round(TqTransitions *transitions, int n)
{
	transitions->n = n;
	transitions->finals = palloc(sizeof(TqRun) * Max(n, 1));
	transitions->tasks = NULL;
	transitions->starts = NULL;
	transitions->nfinals = transitions->nstarts = 0;
}

/* Begins a call whose first round has at most n ends. */
void
tq_transitions_begin(TqTransitions *transitions, int n, TimestampTz now)
{
	memset(transitions, 0, sizeof(*transitions));
	transitions->now = now;
	begin_round(transitions, n);
}

/* ---- decide ---- */

/*
 * Adds the messages of a run that is followed by another.  When the run is
 * retried, only the new run is published, and only if it is pending, unless
 * tq.publish_retried_exceptions is on (doc/spec/taskcluster.md D-05).
 */
void
tq_transition_announce_followed(TqTransitions *transitions, const TqTask *task,
								const TqRun *run, const TqRun *next)
{
	bool is_retry = tq_created_is_retry(next->created);

	if (!is_retry || tq_publish_retried_exceptions)
		tq_outbox_add_run(&transitions->outbox, task, run, next);
	if (is_retry && next->state == TQ_STATE_PENDING)
		tq_outbox_add_run(&transitions->outbox, task, next, next);
}

/*
 * Keeps the locked tasks to which an event applies and whose deadline is after
 * that time.
 */
static void
keep_applicable(TqLockedTasks *locked, TqEvent event, TimestampTz after)
{
	int n = locked->n;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (locked->tasks[i].deadline > after &&
			tq_state_verdict(locked->runs[i].state, event) == TQ_VERDICT_APPLY)
			tq_locked_tasks_keep(locked, i);
	}
}

/* Sets the state, reason and time of the end of a run. */
void
tq_transition_end_run(TqRun *run, TqResolved reason, TimestampTz now)
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
	tq_policy_follow(&policy, &budget, reason, now, task->deadline,
					 tq_max_runs,
					 policy.jitter > 0 ? pg_prng_double(&pg_global_prng_state)
									   : 0,
					 next);
}

/* Adds a run that no run follows, and its message. */
static void
add_final(TqTransitions *transitions, const TqRun *run, const TqTask *task)
{
	TqRun *final = &transitions->finals[transitions->nfinals];

	*final = *run;
	final->policy = task->policy;
	if (task->policy != 0)
	{
		if (transitions->tasks == NULL)
			transitions->tasks = palloc(sizeof(TqTask) * transitions->n);
		transitions->tasks[transitions->nfinals] = *task;
	}
	transitions->nfinals++;
	tq_outbox_add_run(&transitions->outbox, task, run, run);
}

/* Adds the run that follows this one, and the messages of both. */
static void
add_start(TqTransitions *transitions, const TqRun *run, const TqTask *task,
		  const TqNext *next)
{
	TqRun retry = {.run_id = next->budget.run_id,
				   .state = TQ_STATE_PENDING,
				   .created = next->created};

	if (transitions->starts == NULL)
		transitions->starts = palloc(sizeof(TqStart) * transitions->n);
	tq_transition_announce_followed(transitions, task, run, &retry);
	transitions->starts[transitions->nstarts++] =
		(TqStart){.task = task,
				  .created = next->created,
				  .budget = next->budget,
				  .retry_delay = run->retry_delay,
				  .scheduled = transitions->now};
}

/*
 * Adds what follows the end of a run whose row is written.  Returns true if
 * the run is retried.
 */
bool
tq_transition_follow(TqTransitions *transitions, const TqRun *run,
					 const TqTask *task)
{
	TqNext next = {.follow = TQ_FOLLOW_NONE};

	if (tq_resolved_retry(run->reason) != TQ_CREATED_NONE)
		find_next(run, task, run->reason, transitions->now, &next);
	switch (next.follow)
	{
		case TQ_FOLLOW_NONE:
			add_final(transitions, run, task);
			return false;
		case TQ_FOLLOW_LOST:
		case TQ_FOLLOW_RETRY:
			add_start(transitions, run, task, &next);
			return true;
	}
	return false;
}

/* ---- follow ---- */

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

/* Adds the groups of these tasks to the work list, each once. */
static void
add_groups(TqTransitions *transitions, const TqTask *tasks, int n)
{
	Size size = sizeof(TqSlug) * (transitions->ngroups + n);
	TqSlug *added;

	if (n == 0)
		return;
	transitions->groups = transitions->groups == NULL
							  ? palloc(size)
							  : repalloc(transitions->groups, size);
	added = transitions->groups + transitions->ngroups;
	for (int i = 0; i < n; i++)
		added[i] = slug_of_group(&tasks[i]);
	qsort(added, n, sizeof(TqSlug), compare_slugs);
	transitions->ngroups += (int) qunique(added, n, sizeof(TqSlug),
										  compare_slugs);
}

/*
 * Writes the dead letters of tasks that ended without success, and adds their
 * groups to the work list where their policies say so.
 */
static void
follow_failures(TqTransitions *transitions)
{
	TqTask *dead = palloc(sizeof(TqTask) * transitions->nfinals);
	TqTask *fatal = palloc(sizeof(TqTask) * transitions->nfinals);
	int ndead = 0;
	int nfatal = 0;

	for (int i = 0; i < transitions->nfinals; i++)
	{
		const TqRun *run = &transitions->finals[i];
		const TqPolicy *policy = tq_policy_get(run->policy);

		if (!tq_policy_applies(run->reason))
			continue;
		if (policy->dead_letter &&
			run->reason != TQ_RESOLVED_CANCELED_BY_WORKER)
			dead[ndead++] = transitions->tasks[i];
		if (policy->on_unsuccessful == TQ_UNSUCCESSFUL_CANCEL_GROUP)
			fatal[nfatal++] = transitions->tasks[i];
	}
	tq_dead_letters_write(dead, ndead, transitions->now);
	add_groups(transitions, fatal, nfatal);
}

/*
 * Writes what follows the ends of a round.  Dependents are released before
 * groups are canceled: the release waits for locks of rows in unscheduled, and
 * takes them in their order, while the cancellation skips locked rows and
 * never waits.
 */
static void
end_round(TqTransitions *transitions)
{
	tq_pending_runs_add(transitions->starts, transitions->nstarts,
						transitions->now);
	tq_dependency_release(transitions->finals, transitions->nfinals,
						  transitions->now, &transitions->outbox);
	for (int i = 0; i < transitions->nfinals; i++)
	{
		if (transitions->finals[i].policy != 0 &&
			tq_policy_applies(transitions->finals[i].reason))
		{
			follow_failures(transitions);
			return;
		}
	}
}

/* ---- write ---- */

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

/*
 * Writes these ended runs, in one pass over each table: moves them from the
 * tables that they leave to run, or updates them there.
 */
static void
write_ends(const TqRun *runs, int n)
{
	int64 *left[TQ_LOCATION_RUN + 1]; /* by the location that is left */
	int nleft[TQ_LOCATION_RUN + 1] = {0};
	TqRun *moved = palloc(sizeof(TqRun) * n);
	TqRun *updated = palloc(sizeof(TqRun) * n);
	int nmoved = 0;

	for (int location = 0; location <= TQ_LOCATION_RUN; location++)
		left[location] = palloc(sizeof(int64) * n);
	for (int i = 0; i < n; i++)
	{
		TqTaskLocation from = runs[i].location;

		if (from == TQ_LOCATION_RUN)
			updated[nleft[from]] = runs[i];
		else
			moved[nmoved++] = runs[i];
		left[from][nleft[from]++] = runs[i].task;
	}
	tq_unscheduled_delete(left[TQ_LOCATION_UNSCHEDULED],
						  nleft[TQ_LOCATION_UNSCHEDULED]);
	tq_pending_delete(left[TQ_LOCATION_PENDING], nleft[TQ_LOCATION_PENDING]);
	tq_delayed_delete(left[TQ_LOCATION_DELAYED], nleft[TQ_LOCATION_DELAYED]);
	tq_runs_insert(moved, nmoved);
	tq_runs_update(updated, nleft[TQ_LOCATION_RUN]);
}

/*
 * Makes one round: ends these locked tasks, in any location, for a reason that
 * is not reported by a worker.
 */
static void
make_round(TqTransitions *transitions, const TqLockedTasks *locked,
		   TqResolved reason)
{
	begin_round(transitions, locked->n);
	if (locked->n == 0)
		return;
	tq_details_read(locked->runs, locked->n);
	for (int i = 0; i < locked->n; i++)
	{
		TqRun *run = &locked->runs[i];

		if (run->location == TQ_LOCATION_UNSCHEDULED)
			create_resolved_run(run, &locked->tasks[i], reason,
								transitions->now);
		tq_transition_end_run(run, reason, transitions->now);
		(void) tq_transition_follow(transitions, run, &locked->tasks[i]);
	}
	write_ends(locked->runs, locked->n);
}

/* ---- without waiting ---- */

/*
 * Leaves out the tasks that would be finally resolved while another session
 * has one of their dependents locked.
 */
static void
drop_blocked(TqLockedTasks *locked, TqResolved reason, TimestampTz now)
{
	bool *is_final;

	if (tq_resolved_retry(reason) == TQ_CREATED_NONE)
	{
		tq_dependency_drop_blocked(locked, NULL);
		return;
	}
	is_final = palloc(sizeof(bool) * Max(locked->n, 1));
	tq_details_read(locked->runs, locked->n);
	for (int i = 0; i < locked->n; i++)
	{
		TqNext next;

		find_next(&locked->runs[i], &locked->tasks[i], reason, now, &next);
		is_final[i] = next.follow == TQ_FOLLOW_NONE;
	}
	tq_dependency_drop_blocked(locked, is_final);
}

/*
 * Makes one round without waiting for any lock: ends those of the locked tasks
 * to which the event applies.  Tasks that are locked by another session, or
 * have a dependent that is, get a timer, and the maintenance worker tries them
 * again.
 */
static void
make_round_free(TqTransitions *transitions, TqLockedTasks *locked,
				TqEvent event, TqTimer timer)
{
	TqResolved reason = tq_event_resolved(event);

	/* a task that is past its deadline is left to the deadline step */
	keep_applicable(locked, event,
					event == TQ_EVENT_DEADLINE ? DT_NOBEGIN
											   : transitions->now);
	drop_blocked(locked, reason, transitions->now);
	tq_timer_insert(timer, tq_clock_add_ms(transitions->now, TQ_AGAIN_MS),
					locked->others, locked->nothers);
	make_round(transitions, locked, reason);
}

/*
 * Cancels the remaining tasks of a group (doc/spec/policy.md 2), whether it is
 * sealed or not.  It covers the tasks that exist by now.  Because it waits for
 * no lock, there is no order of locks to keep, and no deadlock, however many
 * tasks there are and however many sessions report on them.
 */
static void
cancel_group(TqTransitions *transitions, TqSlug slug)
{
	TqGroup group;
	TqLockedTasks locked;
	int64 *ids;
	int n;

	if (!tq_group_find(&slug, &group))
		return;
	ids = tq_group_unresolved(&group, &n);
	tq_task_lock_unresolved(ids, n, &locked);
	make_round_free(transitions, &locked, TQ_EVENT_CANCEL, TQ_TIMER_CANCEL);
	end_round(transitions);
}

/* ---- calls ---- */

/*
 * Writes what follows the ends of the round, makes the rounds of the work
 * list, and appends the messages.
 */
void
tq_transitions_finish(TqTransitions *transitions)
{
	end_round(transitions);
	for (int i = 0; i < transitions->ngroups; i++)
		cancel_group(transitions, transitions->groups[i]);
	tq_outbox_append(&transitions->outbox);
}

/*
 * Ends those of these locked tasks to which the event applies, and returns how
 * many.
 */
int
tq_transitions_end(TqLockedTasks *locked, TqEvent event, TimestampTz now)
{
	TqTransitions transitions = {.now = now};

	keep_applicable(locked, event, DT_NOBEGIN);
	make_round(&transitions, locked, tq_event_resolved(event));
	tq_transitions_finish(&transitions);
	return locked->n;
}

/*
 * The same, without waiting for any lock.  Tasks that have to wait get a timer
 * of that kind.
 */
int
tq_transitions_end_free(TqLockedTasks *locked, TqEvent event, TqTimer timer,
						TimestampTz now)
{
	TqTransitions transitions = {.now = now};

	make_round_free(&transitions, locked, event, timer);
	tq_transitions_finish(&transitions);
	return locked->n;
}
