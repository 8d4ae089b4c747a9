/*
 * task_lock.c
 *	  Locks the current rows of many tasks.
 *
 * Order of locks
 * --------------
 * A call that waits for locks takes them in this order: rows of pending,
 * delayed and run by task id, then rows of unscheduled by task id.  The id of
 * a dependent is greater than the ids of its required tasks, so this is also
 * the order of the graph.  The one exception is a dependent whose session drew
 * its id and then waited until another session had created a required task.
 * There a deadlock is possible; the server detects it and ends one
 * transaction.
 *
 * Without waiting --------------- Maintenance uses the access methods, and
 * waits for no lock.  Most of the tasks that it has to check were resolved long
 * ago: to find that out costs a look-up of the last run, and one in each table
 * where a later run may be. Waiting in the order above takes 2.4 times the CPU
 * in bench deadline, twice in bench stale, and one lock of a client would hold
 * up all that is due.
 *
 * All rows are looked up with one snapshot, in which the current row of an
 * unresolved task is in exactly one table.  If that version of the row is
 * still the latest and can be locked, it is still the task's current row, and
 * remains so while the lock is held: a row of unscheduled, pending or delayed
 * is deleted when its task leaves the table, and a running run is the last of
 * its task until its row changes.  A row that has a newer version, or that
 * another session has locked, is skipped.
 */
#include "postgres.h"

#include "utils/snapmgr.h"

#include "../core/state.h"
#include "tasks.h"

/* ---- with waiting ---- */

/*
 * Locks the tasks that are not done yet; without unscheduled_too leaves those
 * in unscheduled to another pass.
 */
static void
lock_pass(TqTaskLock *locks, int n, TqLock mode,
		  bool (*is_settled)(const TqRun *run), bool unscheduled_too)
{
	for (int i = 0; i < n; i++)
	{
		TqTaskLock *lock = &locks[i];

		if (lock->is_done || !tq_run_peek(lock->task, &lock->run) ||
			(lock->run.location == TQ_LOCATION_UNSCHEDULED &&
			 !unscheduled_too))
			continue;
		lock->is_done = true;
		lock->is_locked = (is_settled != NULL && is_settled(&lock->run)) ||
						  tq_run_lock(lock->task, mode, &lock->run);
	}
}

/*
 * Locks these tasks, which are in order of id, and waits for other sessions.
 * A run for which is_settled() returns true needs no lock.  dependents_too
 * also locks the unscheduled dependents, which the end of the tasks may touch.
 */
TqTaskLock *
tq_task_lock_wait(const int64 *tasks, int n, TqLock mode,
				  bool (*is_settled)(const TqRun *run), bool dependents_too)
{
	TqTaskLock *locks = palloc0(sizeof(TqTaskLock) * Max(n, 1));

	for (int i = 0; i < n; i++)
		locks[i].task = tasks[i];
	lock_pass(locks, n, mode, is_settled, false);
	if (dependents_too)
	{
		int found;
		int64 *near = tq_dependencies_unscheduled(tasks, n, &found);

		(void) tq_unscheduled_lock(near, found, &found);
	}
	lock_pass(locks, n, mode, is_settled, true);
	return locks;
}

/* ---- without waiting ---- */

/* A table and the index that finds a task in it, by one column or by three. */
typedef struct Way
{
	TqTaskLocation location;
	TqRelation table;
	TqRelation index;
	int nkeys;
} Way;

/* The ways to find the current row of a task. */
typedef enum
{
	BY_RUN,
	BY_MOVED, /* in pending, by task: the row has a seq of its own */
	BY_ORDER, /* in pending, by queue order: seq is the task's id */
	BY_DELAYED,
	BY_UNSCHEDULED,
	WAYS
} By;

static Way ways[WAYS] =
	{[BY_RUN] = {TQ_LOCATION_RUN, TQ_RELATION("run"), TQ_RELATION("run_pkey"),
				 1},
	 [BY_MOVED] = {TQ_LOCATION_PENDING, TQ_RELATION("pending"),
				   TQ_RELATION("pending_moved"), 1},
	 [BY_ORDER] = {TQ_LOCATION_PENDING, TQ_RELATION("pending"),
				   TQ_RELATION("pending_order"), 3},
	 [BY_DELAYED] = {TQ_LOCATION_DELAYED, TQ_RELATION("delayed"),
					 TQ_RELATION("delayed_pkey"), 1},
	 [BY_UNSCHEDULED] = {TQ_LOCATION_UNSCHEDULED, TQ_RELATION("unscheduled"),
						 TQ_RELATION("unscheduled_pkey"), 1}};

/* A search for current rows; each table is opened when it is first needed. */
typedef struct Look
{
	TqScan *tasks;
	TqScan *scans[WAYS];
	TqLockedTasks *locked;
} Look;

static void
begin_look(Look *look, int n, TqLockedTasks *locked)
{
	memset(look, 0, sizeof(*look));
	look->tasks = tq_task_scan_begin(NULL);
	look->locked = locked;
	locked->runs = palloc(sizeof(TqRun) * Max(n, 1));
	locked->tasks = palloc(sizeof(TqTask) * Max(n, 1));
	locked->details = NULL;
	locked->others = palloc(sizeof(int64) * Max(n, 1));
	locked->resolved = palloc(sizeof(TqTask) * Max(n, 1));
	locked->n = locked->nothers = locked->nresolved = 0;
}

static void
end_look(Look *look)
{
	for (int by = 0; by < WAYS; by++)
	{
		if (look->scans[by] != NULL)
			tq_scan_close(look->scans[by]);
	}
	tq_scan_close(look->tasks);
}

/* Returns the scan of a table, opening it if necessary. */
static TqScan *
begin_way(Look *look, By by)
{
	Way *way = &ways[by];

	if (look->scans[by] == NULL)
		look->scans[by] = tq_scan_open(&way->table, &way->index, way->nkeys,
									   look->tasks->registered);
	return look->scans[by];
}

/*
 * Finds the row of a task in a table with a single key column; of its runs,
 * the last.  Returns NULL if there is none.
 */
static TqScan *
task_lock_find(Look *look, By by, int64 task)
{
	TqScan *scan = begin_way(look, by);

	tq_scan_seek(scan, Int64GetDatum(task), 0, 0);
	return index_getnext_slot(scan->desc,
							  by == BY_RUN ? BackwardScanDirection
										   : ForwardScanDirection,
							  scan->slot)
			   ? scan
			   : NULL;
}

/* Finds the row of pending of the first run of a task by its queue order. */
static TqScan *
find_first_run(Look *look, const TqTask *task)
{
	TqScan *scan = begin_way(look, BY_ORDER);

	return tq_scan_find(scan, Int32GetDatum(task->queue),
						Int16GetDatum(task->priority), Int64GetDatum(task->id))
			   ? scan
			   : NULL;
}

/* Reads the row that was found as the state of its task. */
static void
task_lock_read_found(const TqScan *scan, TqTaskLocation location, int64 task,
					 TqRun *run)
{
	*run = (TqRun){.task = task, .location = location, .run_id = -1};
	switch (location)
	{
		case TQ_LOCATION_NONE:
			break;
		case TQ_LOCATION_UNSCHEDULED:
			tq_unscheduled_read(scan->slot, run);
			break;
		case TQ_LOCATION_PENDING:
		case TQ_LOCATION_DELAYED:
			tq_pending_read(scan->slot, run);
			run->location = location;
			break;
		case TQ_LOCATION_RUN:
			tq_run_read(scan->slot, run);
			break;
	}
}

/*
 * Finds and reads the current row of an unresolved task; returns NULL if the
 * task is resolved.  A task that has a row in run can be in pending only by a
 * later run, which BY_ORDER does not find, and unscheduled only if that row is
 * one without success.
 */
static TqScan *
task_lock_find_unresolved(Look *look, const TqTask *task, TqRun *run)
{
	TqScan *scan = task_lock_find(look, BY_RUN, task->id);
	bool has_run = scan != NULL;
	bool may_wait = !has_run;
	TqTaskLocation location = TQ_LOCATION_RUN;

	if (has_run)
	{
		task_lock_read_found(scan, TQ_LOCATION_RUN, task->id, run);
		if (!tq_state_is_resolved(run->state))
			return scan;
		may_wait = tq_run_may_be_left(run);
		scan = NULL;
	}
	for (int by = BY_MOVED; by < WAYS && scan == NULL; by++)
	{
		location = ways[by].location;
		if (by == BY_ORDER)
			scan = has_run ? NULL : find_first_run(look, task);
		else if (by != BY_UNSCHEDULED || may_wait)
			scan = task_lock_find(look, (By) by, task->id);
	}
	if (scan != NULL)
		task_lock_read_found(scan, location, task->id, run);
	return scan;
}

/*
 * Locks the row that was found; returns false if it has changed, or another
 * session has locked it.
 */
static bool
task_lock_lock_found(TqScan *scan)
{
	TM_Result result = tq_table_lock(scan->table, scan->slot,
									 LockTupleExclusive, LockWaitSkip);

	switch (result)
	{
		case TM_Ok:
			return true;
		case TM_BeingModified:
		case TM_WouldBlock:
		case TM_Updated:
		case TM_Deleted:
		case TM_SelfModified:
			return false;
		case TM_Invisible:
			break;
	}
	tq_table_error(scan->table, result);
}

/* Locks a task and adds it to the locked ones, or else to `others`. */
static void
hold(TqLockedTasks *locked, TqScan *scan, const TqTask *task, const TqRun *run)
{
	if (!task_lock_lock_found(scan))
	{
		locked->others[locked->nothers++] = task->id;
		return;
	}
	locked->runs[locked->n] = *run;
	locked->tasks[locked->n++] = *task;
}

/*
 * Locks those of these tasks that are not resolved, and lists those that are.
 */
void
tq_task_lock_unresolved(const int64 *tasks, int n, TqLockedTasks *locked)
{
	Look look;

	begin_look(&look, n, locked);
	for (int i = 0; i < n; i++)
	{
		TqTask task;
		TqRun run;
		TqScan *scan;

		if (!tq_task_core(look.tasks, tasks[i], &task))
			continue;
		scan = task_lock_find_unresolved(&look, &task, &run);
		if (scan == NULL)
			locked->resolved[locked->nresolved++] = task;
		else
			hold(locked, scan, &task, &run);
	}
	end_look(&look);
}

/* Reads the details of the locked runs, unless that was done before. */
void
tq_locked_tasks_read_details(TqLockedTasks *locked)
{
	TqDetailReader reader = {NULL, false};

	if (locked->details != NULL)
		return;
	locked->details = palloc(sizeof(TqRunDetail *) * Max(locked->n, 1));
	for (int i = 0; i < locked->n; i++)
		locked->details[i] = tq_detail_reader_read(&reader, &locked->runs[i]);
	tq_detail_reader_end(&reader);
}

/*
 * Locks those of these tasks that are running under a claim that has expired,
 * and lists the running runs whose claim has not.
 */
void
tq_task_lock_expired(const int64 *tasks, int n, TimestampTz now,
					 TqLockedTasks *locked)
{
	Look look;

	begin_look(&look, n, locked);
	locked->claims = palloc(sizeof(TqRun) * Max(n, 1));
	locked->nclaims = 0;
	for (int i = 0; i < n; i++)
	{
		TqScan *scan = task_lock_find(&look, BY_RUN, tasks[i]);
		TqTask task;
		TqRun run;

		if (scan == NULL)
			continue;
		tq_run_read(scan->slot, &run);
		if (run.state != TQ_STATE_RUNNING)
			continue;
		if (run.taken_until <= now)
		{
			if (tq_task_core(look.tasks, run.task, &task))
				hold(locked, scan, &task, &run);
		}
		else
			locked->claims[locked->nclaims++] = run;
	}
	end_look(&look);
}
