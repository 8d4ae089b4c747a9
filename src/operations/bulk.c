/*
 * bulk.c
 *	  Operations on many unresolved tasks of a queue, batch by batch
 *	  (doc/spec/policy.md 12).
 *
 * A batch is a transaction.  It reads a page of a list of the queue, locks the
 * tasks that are wanted, and applies the operation to them.  It waits for no
 * lock, so there is no order of locks to keep; tasks that other sessions have
 * locked are tried again, once, at the end.
 *
 * The lists are read in the order in which tasks go through them: unscheduled,
 * delayed, pending by priority, running.  A task that becomes pending meanwhile
 * gets a position after those that were read, so the pending ones are read on
 * from there, until there are no more that are wanted.  In a queue that is fair,
 * whose positions are tags, which are negative, they are read from the
 * beginning.  Tasks that were created after the operation has begun are not, so
 * it ends however fast others are created.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "../core/names.h"
#include "operations.h"

/* The lists; those between are the priorities of pending, from the highest. */
#define LIST_UNSCHEDULED 0
#define LIST_DELAYED 1
#define LIST_PENDING 2
#define LIST_RUNNING (TQ_BULK_LISTS - 1)

static TqTaskLocation
location_of(int list)
{
	if (list == LIST_UNSCHEDULED)
		return TQ_LOCATION_UNSCHEDULED;
	if (list == LIST_DELAYED)
		return TQ_LOCATION_DELAYED;
	return list == LIST_RUNNING ? TQ_LOCATION_RUN : TQ_LOCATION_PENDING;
}

/* Returns whether tasks of a list are wanted. */
static bool
bulk_is_wanted(const TqBulk *bulk, int list)
{
	if (list == LIST_UNSCHEDULED)
		return bulk->of[TQ_STATE_UNSCHEDULED];
	return list == LIST_RUNNING ? bulk->of[TQ_STATE_RUNNING]
								: bulk->of[TQ_STATE_PENDING];
}

/* Begins an operation, in the memory context that is to keep its lists. */
void
tq_bulk_begin(TqBulk *bulk)
{
	bulk->locked.memory = CurrentMemoryContext;
	bulk->list = LIST_UNSCHEDULED;
	for (int i = LIST_PENDING; i < LIST_RUNNING; i++)
		bulk->after[i] = PG_INT64_MIN;
}

/* ---- batches ---- */

/*
 * Keeps the locked tasks that are wanted still: a task that was moved or has
 * changed its state is not, nor one that is past its deadline.
 */
static void
keep_wanted(const TqBulk *bulk, TqLockedTasks *locked, TimestampTz now)
{
	int n = locked->n;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (locked->tasks[i].queue == bulk->filter.queue &&
			locked->tasks[i].deadline > now && bulk->of[locked->runs[i].state])
			tq_locked_tasks_keep(locked, i);
	}
}

/* Applies the operation to those of these tasks that can be locked. */
static void
bulk_apply(TqBulk *bulk, int64 *tasks, int n, TimestampTz now)
{
	TqLockedTasks locked;

	if (n == 0)
		return;
	qsort(tasks, n, sizeof(int64), tq_compare_ids);
	tq_task_lock_unresolved(tasks, n, &locked);
	keep_wanted(bulk, &locked, now);
	bulk->done += bulk->apply(bulk, &locked, now);
	if (bulk->is_again)
		bulk->skipped += locked.nothers;
	else
		tq_ids_add(&bulk->locked, locked.others, locked.nothers);
}

/*
 * Goes on to the next list; after the last one, to the pending tasks again if
 * there may be more that are wanted, or else to those that were locked.
 */
static void
next_list(TqBulk *bulk)
{
	if (++bulk->list < TQ_BULK_LISTS)
		return;
	bulk->is_again = !bulk->has_found;
	bulk->has_found = false;
	bulk->list = LIST_PENDING;
	for (int i = LIST_PENDING; i < LIST_RUNNING; i++)
	{
		if (bulk->after[i] < 0)
			bulk->after[i] = PG_INT64_MIN;
	}
}

/* Applies the operation to a page of a list. */
static void
apply_page(TqBulk *bulk, TimestampTz now)
{
	int64 *tasks = palloc(sizeof(int64) * tq_expire_batch);
	int n = 0;
	int i = 0;
	int found;
	TqUnresolvedRow *rows = tq_unresolved_page(&bulk->filter,
											   location_of(bulk->list),
											   LIST_RUNNING - bulk->list,
											   bulk->after[bulk->list],
											   tq_expire_batch, &found);

	for (; i < found && n < bulk->max - bulk->done; i++)
	{
		bulk->after[bulk->list] = rows[i].position;
		if (rows[i].is_wanted)
			tasks[n++] = rows[i].task;
	}
	bulk->has_found = bulk->has_found || n > 0;
	bulk_apply(bulk, tasks, n, now);
	if (i == found && found < tq_expire_batch)
		next_list(bulk);
}

/*
 * Applies the operation to a batch of tasks; returns false if there may be no
 * more.
 */
bool
tq_bulk_next(TqBulk *bulk, TimestampTz now)
{
	while (!bulk->is_again && !bulk_is_wanted(bulk, bulk->list))
		next_list(bulk);
	if (bulk->is_again)
	{
		int n = (int) Min(Min(bulk->locked.n - bulk->tried, tq_expire_batch),
						  bulk->max - bulk->done);

		/* Try some of the tasks again that were locked. */
		bulk_apply(bulk, bulk->locked.ids + bulk->tried, n, now);
		bulk->tried += n;
	}
	else
		apply_page(bulk, now);
	return bulk->done < bulk->max &&
		   (!bulk->is_again || bulk->tried < bulk->locked.n);
}

/* ---- cancel ---- */

/*
 * Cancels locked tasks, except for those that have a dependent which another
 * session has locked: the end of the task would wait for it.
 */
int
tq_bulk_cancel(TqBulk *bulk, TqLockedTasks *locked, TimestampTz now)
{
	tq_dependency_drop_blocked(locked, NULL);
	return tq_transitions_end(locked, TQ_EVENT_CANCEL, TQ_TIMER_NONE, now);
}

/* ---- move ---- */

/* Writes the new queue of locked tasks, in one pass over each table. */
static void
write_queue(const TqLockedTasks *locked, int32 queue)
{
	int64 *tasks[TQ_LOCATION_RUN + 1]; /* by location; 0: all of them */
	int n[TQ_LOCATION_RUN + 1] = {0};

	for (int location = 0; location <= TQ_LOCATION_RUN; location++)
		tasks[location] = palloc(sizeof(int64) * Max(locked->n, 1));
	for (int i = 0; i < locked->n; i++)
	{
		TqTaskLocation location = locked->runs[i].location;

		tasks[location][n[location]++] = locked->tasks[i].id;
		tasks[TQ_LOCATION_NONE][n[TQ_LOCATION_NONE]++] = locked->tasks[i].id;
	}
	tq_pending_set_queue(tasks[TQ_LOCATION_PENDING], n[TQ_LOCATION_PENDING],
						 queue);
	tq_delayed_set_queue(tasks[TQ_LOCATION_DELAYED], n[TQ_LOCATION_DELAYED],
						 queue);
	tq_unscheduled_touch(tasks[TQ_LOCATION_UNSCHEDULED],
						 n[TQ_LOCATION_UNSCHEDULED]);
	tq_tasks_set_queue(tasks[TQ_LOCATION_NONE], n[TQ_LOCATION_NONE], queue);
}

/*
 * Leaves the tasks that have keys, which tie them to other tasks of their
 * queue.
 */
static void
keep_without_keys(TqBulk *bulk, TqLockedTasks *locked)
{
	int n = locked->n;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (tq_policy_get(locked->tasks[i].policy)->keys == 0)
			tq_locked_tasks_keep(locked, i);
	}
	bulk->left += n - locked->n;
}

/*
 * Leaves the tasks whose scopes the caller has not: a worker of the other queue
 * would get them with its claim, as if the caller had created them there.
 */
static void
keep_with_scopes(TqBulk *bulk, TqLockedTasks *locked)
{
	int n = locked->n;

	if (tq_access_is_unlimited())
		return;
	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (tq_may_give_scopes(tq_definition_get(&locked->tasks[i].task_id)))
			tq_locked_tasks_keep(locked, i);
	}
	bulk->forbidden += n - locked->n;
}

/*
 * Moves locked tasks, none of which is running, to another queue.  Each keeps
 * its priority and its position in the order of runs.  The row with its location
 * changes in any case, so that a session that read the task before finds out
 * when it locks that row.  task-pending is appended for those that are pending,
 * so that workers are provided in the new queue.
 */
int
tq_bulk_move(TqBulk *bulk, TqLockedTasks *locked, TimestampTz now)
{
	int32 queue = tq_queue_intern(bulk->to_queue);
	TqOutboxBatch batch = {0};

	keep_without_keys(bulk, locked);
	keep_with_scopes(bulk, locked);
	write_queue(locked, queue);
	for (int i = 0; i < locked->n; i++)
	{
		TqTask *task = &locked->tasks[i];
		const TqRun *run = &locked->runs[i];

		tq_count_moved(task, run->location, queue);
		task->queue = queue;
		if (run->location != TQ_LOCATION_UNSCHEDULED)
			tq_outbox_add_run(&batch, task, run, run);
	}
	tq_outbox_append(&batch);
	return locked->n;
}

/* ---- the runs of a worker that was removed (doc/spec/taskcluster.md 3.1, rule 33) ---- */

/*
 * Notifies a worker of the runs that these reports have ended, because it has
 * not made them itself.
 */
static void
note_removed(const TqReport *reports, int n)
{
	TqOutboxBatch batch = {0};

	if (!tq_worker_channel_is_listened())
		return;
	for (int i = 0; i < n; i++)
	{
		TqRun run = {.run_id = reports[i].run_id, .worker = reports[i].holder};

		if (reports[i].is_ended)
			tq_worker_channel_add(&batch, &reports[i].task_id, &run,
								  tq_resolved_name(reports[i].reason));
	}
	tq_outbox_append(&batch);
}

/*
 * Resolves the running runs of these workers as worker-shutdown, with that error,
 * so that they are retried as after a report of it; all of them as one report,
 * which has an order of locks.  Returns the reports, with their outcomes.
 */
TqReport *
tq_workers_remove(ArrayType *workers, Jsonb *error, TimestampTz now, int *n)
{
	TqHeldRun *runs = tq_runs_held(workers, n);
	TqReport *reports = palloc0(sizeof(TqReport) * Max(*n, 1));

	for (int i = 0; i < *n; i++)
		reports[i] = (TqReport){.task_id = runs[i].task_id,
								.run_id = runs[i].run_id,
								.reason = TQ_RESOLVED_WORKER_SHUTDOWN,
								.holder = runs[i].worker,
								.error = error};
	tq_resolve_reports(reports, *n, now);
	note_removed(reports, *n);
	return reports;
}
