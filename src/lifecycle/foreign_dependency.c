/*
 * foreign_dependency.c
 *	  Dependencies on tasks of other applications (doc/spec/taskcluster.md 4.2).
 *
 * A dependency is foreign if the role that makes it may depend on tasks of the
 * required task's queue, and may not create tasks in it.  It locks nothing of
 * the required task, and the end of that costs the same however many foreign
 * dependents there are: maintenance settles these dependencies, in batches.
 *
 * The call that makes one inserts a row of foreign_dependency, by what it sees of
 * the required task, and a timer of that task, so that maintenance looks at it
 * once the call is committed.  Maintenance then marks the required task: with a
 * row of dependency whose dependent is 0, under the lock of the row with the
 * task's location, for which it does not wait.  The end of a task looks for its
 * dependents under that lock, and leaves a timer if it finds the mark.  The mark
 * stays as long as the task.  For each timer maintenance reads the history of
 * the task, and counts down what that has met.
 *
 * Why no end of a required task is missed:
 *	- Maintenance marks and the end looks for the mark under one lock, each with a
 *	  new snapshot.  If the end is first, maintenance sees it in the history,
 *	  which it reads after it has marked.  If the mark is first, the end sees it
 *	  and leaves a timer.
 *	- A timer is seen when what it is for is committed: both are written in one
 *	  transaction.
 *	- The history decides, and not the last run: a rerun between the end and the
 *	  pass hides nothing.
 *
 * Why none is counted twice: the transaction that counts one down sets settled,
 * under the lock of the row.  A repair that makes a dependent unscheduled again
 * locks its rows here and counts those that are not settled, and leaves a timer
 * (operations/repair.c).
 *
 * Locks, none of which is waited for: the row with the location of the required
 * task, to mark it; rows of foreign_dependency; those of the unscheduled
 * dependents, with their stripes.  What another session has locked is looked at
 * again soon.  Tasks take turns: each gets a share of a batch.
 *
 * A cycle over foreign dependencies that two sessions close at the same time is
 * not seen, because neither locks what is foreign to it.  Its tasks end at their
 * deadlines.
 */
#include "postgres.h"

#include "../core/state.h"
#include "lifecycle.h"

#define BATCH_EDGES 1000
#define LEAST_SHARE 10 /* of a task in a batch */

/* Looks at a task again soon. */
static void
look_again(int64 task, TimestampTz now)
{
	tq_timer_insert(TQ_TIMER_SETTLE, tq_clock_add_ms(now, TQ_AGAIN_MS), &task,
					1);
}

/* Looks at a task again in its next turn. */
static void
go_on(int64 task, TimestampTz now, bool *more)
{
	tq_timer_insert(TQ_TIMER_SETTLE, now, &task, 1);
	*more = true;
}

/* Marks a task; returns false if another session has locked it. */
static bool
mark(int64 task)
{
	TqRun run;

	if (tq_foreign_marked(task) >= 0)
		return true;
	if (!tq_run_lock(task, TQ_LOCK_SKIP, &run))
		return false;
	tq_foreign_mark(task);
	return true;
}

/*
 * Reads what the runs of a task have met, and its last run; returns false if it
 * has none.
 */
static bool
read_met(const TqTask *task, TqForeignMet *met, TqRun *last)
{
	int n;
	TqHistoryRun *runs = tq_runs_history(&task->id, 1, false, &n);

	*met = (TqForeignMet){task->id, -1, -1};
	for (int i = 0; i < n; i++)
	{
		const TqRun *run = &runs[i].run;

		*last = *run;
		if (!tq_state_is_resolved(run->state) ||
			(i + 1 < n && tq_created_is_retry(runs[i + 1].run.created)))
			continue;
		met->final = run->run_id;
		if (tq_dependency_counts(run, task->policy))
			met->completed = run->run_id;
	}
	return n > 0;
}

/*
 * Returns whether what waits for the completion of a task is canceled: by its
 * policy, or because the task was canceled for that reason itself.
 */
static bool
dooms(const TqTask *task, const TqRun *last)
{
	if (!tq_state_is_resolved(last->state) ||
		tq_dependency_counts(last, task->policy))
		return false;
	return tq_foreign_marked(task->id) == last->run_id + 1 ||
		   (tq_policy_applies(last->reason) &&
			tq_policy_get(task->policy)->on_unsuccessful ==
				TQ_UNSUCCESSFUL_CANCEL_DEPENDENTS);
}

/* Settles up to max dependencies that are met; returns how many. */
static int
count_down(const TqForeignMet *met, int max, TimestampTz now, bool *more)
{
	int taken;
	int n;
	TqUnscheduled *waiting = tq_foreign_take(met, max, &taken, &n);

	if (n > 0)
		(void) tq_transitions_release(waiting, n, now);
	if (taken < max)
		n += tq_foreign_take_idle(met, max - taken);
	if (n == max)
		go_on(met->required, now, more);
	else if (tq_foreign_is_met(met))
		look_again(met->required, now);
	return n;
}

/* Cancels up to max dependents of a task that failed; returns how many. */
static int
cancel(const TqForeignMet *met, int max, TimestampTz now, bool *more)
{
	int taken;
	int64 *ids = tq_foreign_take_doomed(met, max, &taken);
	int n = taken == 0 ? 0 : tq_transitions_cancel_waiting(ids, taken, now);

	if (n < taken)
		look_again(met->required, now);
	else if (taken == max)
		go_on(met->required, now, more);
	return n;
}

/* Settles up to max dependencies on a task; returns how many. */
static int
settle_task(const TqTask *task, int max, TimestampTz now, bool *more)
{
	TqForeignMet met;
	TqRun last;
	int n;

	if (!mark(task->id))
	{
		look_again(task->id, now);
		return 0;
	}
	if (!read_met(task, &met, &last))
		return 0;
	n = met.final < 0 ? 0 : count_down(&met, max, now, more);
	if (n < max && dooms(task, &last))
		n += cancel(&met, max - n, now, more);
	return n;
}

/* Deletes up to max dependencies on a task that is gone; returns how many. */
static int64
delete_edges(int64 task, int max, TimestampTz now, bool *more)
{
	int64 n = tq_foreign_delete(task, max);

	if (n == max)
		go_on(task, now, more);
	return n;
}

/*
 * Settles a batch of the foreign dependencies on these tasks, and returns how
 * many; sets *more if more are left.
 */
int64
tq_foreign_settle(const int64 *tasks, int n, TimestampTz now, bool *more)
{
	int max = Max(BATCH_EDGES / Max(n, 1), LEAST_SHARE);
	TqTaskFinder finder = {NULL, NULL};
	int64 settled = 0;

	for (int i = 0; i < n; i++)
	{
		TqTask task;

		settled += tq_task_find_by_id(&finder, tasks[i], &task)
					   ? settle_task(&task, max, now, more)
					   : delete_edges(tasks[i], max, now, more);
	}
	tq_task_finder_end(&finder);
	return settled;
}
