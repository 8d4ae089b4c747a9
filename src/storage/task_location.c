/*
 * task_location.c
 *	  The location of a task, the runs that it has had, and pages of the tasks
 *	  of a queue by location.
 *
 * All rows are looked up with one snapshot, in which a task has exactly one
 * location.  run keeps the earlier runs of a task, so its last row there counts
 * only if the task has no later row elsewhere.  A task that is unscheduled has
 * rows there if it was resolved before a repair (operations/repair.c).
 */
#include "postgres.h"

#include "utils/snapmgr.h"

#include "../core/state.h"
#include "columns.h"
#include "registry.h"
#include "tasks.h"

/* A table and the index that finds a task in it; for run, also the run. */
typedef struct LocationTable
{
	TqRelation table;
	TqRelation index;
	int nkeys;
} LocationTable;

/* By location; pending has no such index. */
static LocationTable location_tables[] =
	{[TQ_LOCATION_UNSCHEDULED] = {TQ_RELATION("unscheduled"),
								  TQ_RELATION("unscheduled_pkey"), 1},
	 [TQ_LOCATION_DELAYED] = {TQ_RELATION("delayed"),
							  TQ_RELATION("delayed_pkey"), 1},
	 [TQ_LOCATION_RUN] = {TQ_RELATION("run"), TQ_RELATION("run_pkey"), 2}};

TQ_NUMBERS(TQ_UNSCHEDULED_COLUMNS, unscheduled);

/* Reads a row of unscheduled as the state of its task. */
static void
unscheduled_read(TupleTableSlot *slot, TqRun *run)
{
	*run = (TqRun){.task = tq_row_int64(slot, Anum_unscheduled_task),
				   .location = TQ_LOCATION_UNSCHEDULED,
				   .run_id = tq_row_int16(slot, Anum_unscheduled_next_run) - 1,
				   .state = TQ_STATE_UNSCHEDULED};
}

/* Scans that find the current rows of tasks; those not needed are NULL. */
typedef struct Peek
{
	Snapshot snapshot;
	TqScan *runs;
	TqPendingScan *pending;
	TqScan *unscheduled;
} Peek;

static TqScan *
open_location(TqTaskLocation location, int nkeys, Snapshot snapshot)
{
	LocationTable *source = &location_tables[location];

	return tq_scan_open(&source->table, &source->index, nkeys, snapshot);
}

static void
peek_begin(Peek *peek)
{
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());

	*peek = (Peek){.snapshot = snapshot,
				   .runs = open_location(TQ_LOCATION_RUN, 1, snapshot)};
}

/* Has the scans see what has been committed by now. */
static void
peek_renew(Peek *peek)
{
	Snapshot before = peek->snapshot;

	peek->snapshot = RegisterSnapshot(tq_spi_snapshot());
	tq_scan_renew(peek->runs, peek->snapshot);
	if (peek->pending != NULL)
		tq_pending_scan_renew(peek->pending, peek->snapshot);
	if (peek->unscheduled != NULL)
		tq_scan_renew(peek->unscheduled, peek->snapshot);
	UnregisterSnapshot(before);
}

static void
peek_end(Peek *peek)
{
	if (peek->unscheduled != NULL)
		tq_scan_close(peek->unscheduled);
	if (peek->pending != NULL)
		tq_pending_scan_end(peek->pending);
	tq_scan_close(peek->runs);
	UnregisterSnapshot(peek->snapshot);
}

static bool
peek_unscheduled(Peek *peek, int64 task, TqRun *run)
{
	if (peek->unscheduled == NULL)
		peek->unscheduled = open_location(TQ_LOCATION_UNSCHEDULED, 1,
										  peek->snapshot);
	if (!tq_scan_find(peek->unscheduled, Int64GetDatum(task), 0, 0))
		return false;
	unscheduled_read(peek->unscheduled->slot, run);
	return true;
}

/* Reads the current row of a task, to which a scan is moved. */
static bool
peek_find(Peek *peek, int64 task, TqRun *run)
{
	bool has_run = tq_scan_find_last(peek->runs, Int64GetDatum(task), 0, 0);

	if (has_run)
		tq_run_read(peek->runs->slot, run);
	if (has_run && !tq_state_is_resolved(run->state))
		return true;
	if (peek->pending == NULL)
		peek->pending = tq_pending_scan_begin(peek->snapshot);
	return tq_pending_scan_read(peek->pending, task, run) ||
		   peek_unscheduled(peek, task, run) || has_run;
}

/*
 * Reads the current row of a task, without a lock; returns false if it has
 * none.
 */
bool
tq_run_peek(int64 task, TqRun *run)
{
	Peek peek;
	bool found;

	peek_begin(&peek);
	found = peek_find(&peek, task, run);
	peek_end(&peek);
	return found;
}

/* Does the same for many tasks, at one time. */
void
tq_runs_peek(const int64 *tasks, int n, TqRun *runs, bool *found)
{
	Peek peek;

	peek_begin(&peek);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		found[i] = peek_find(&peek, tasks[i], &runs[i]);
	}
	peek_end(&peek);
}

/*
 * Locks a row of unscheduled, delayed or run; returns false if it is gone or
 * has changed or, under TQ_LOCK_SKIP, if another session has locked it.
 */
static bool
lock_location(TqTaskLocation location, int64 task, int run_id, TqLock mode)
{
	LocationTable *source = &location_tables[location];
	TqScan *scan = open_location(location, source->nkeys, NULL);
	bool locked = tq_scan_find(scan, Int64GetDatum(task),
							   Int16GetDatum(run_id), 0) &&
				  tq_table_lock_row(scan->table, scan->slot, mode);

	tq_scan_close(scan);
	return locked;
}

/*
 * Locks a run that has a row in run; returns false if that is gone or has
 * changed meanwhile.
 */
bool
tq_run_lock_row(int64 task, int run_id)
{
	return lock_location(TQ_LOCATION_RUN, task, run_id, TQ_LOCK_UPDATE);
}

/* Locks the row that peek_find() has found. */
static bool
peek_lock_found(Peek *peek, const TqRun *run, TqLock mode)
{
	switch (run->location)
	{
		case TQ_LOCATION_RUN:
			return tq_table_lock_row(peek->runs->table, peek->runs->slot,
									 mode);
		case TQ_LOCATION_UNSCHEDULED:
			return tq_table_lock_row(peek->unscheduled->table,
									 peek->unscheduled->slot, mode);
		case TQ_LOCATION_PENDING:
			return tq_pending_scan_lock(peek->pending, run->task, mode);
		case TQ_LOCATION_DELAYED:
		case TQ_LOCATION_NONE:
			break;
	}
	return lock_location(run->location, run->task, run->run_id, mode);
}

/*
 * Locks the current row of a task, which peek_find() has found, and reads it
 * again; see tq_run_lock().
 */
static bool
peek_lock(Peek *peek, TqLock mode, TqRun *run)
{
	for (;;)
	{
		TqRun seen = *run;
		bool is_locked = peek_lock_found(peek, &seen, mode);

		peek_renew(peek);
		if (!peek_find(peek, seen.task, run))
			return false;
		if (is_locked && run->location == seen.location &&
			run->run_id == seen.run_id)
			return true;
		if (mode == TQ_LOCK_SKIP)
			return false;
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Locks and reads the current row of a task.  Returns false if there is no
 * such task or, under TQ_LOCK_SKIP, if another session has locked or changed
 * it.
 */
bool
tq_run_lock(int64 task, TqLock mode, TqRun *run)
{
	Peek peek;
	bool is_locked;

	peek_begin(&peek);
	is_locked = peek_find(&peek, task, run) && peek_lock(&peek, mode, run);
	peek_end(&peek);
	return is_locked;
}

/* ---- histories ---- */

/* A growing list of runs, and the scans that find them. */
typedef struct History
{
	TqScan *scan;
	TqPendingScan *pending; /* NULL: not needed yet, also the next */
	TqScan *unscheduled;
	TqHistoryRun *runs;
	int n;
	int room;
} History;

/* Returns the position of the next run. */
static TqRun *
task_location_next_run(History *history)
{
	if (history->n == history->room)
		history->runs = repalloc_huge(history->runs, sizeof(TqHistoryRun) *
														 (history->room *= 2));
	return &history->runs[history->n].run;
}

/* Returns whether a task of which the last run is resolved is unscheduled. */
static bool
is_unscheduled(History *history, int64 task)
{
	LocationTable *source = &location_tables[TQ_LOCATION_UNSCHEDULED];

	if (history->unscheduled == NULL)
		history->unscheduled = tq_scan_open(&source->table, &source->index,
											source->nkeys,
											history->scan->registered);
	return tq_scan_find(history->unscheduled, Int64GetDatum(task), 0, 0);
}

/* Adds the runs of a task; the last one may be running, or else pending. */
static void
task_location_add_runs(History *history, int64 task)
{
	bool is_running = false;
	int first = history->n;

	tq_scan_seek(history->scan, Int64GetDatum(task), 0, 0);
	while (!is_running && tq_scan_next(history->scan))
	{
		TqRun *run = task_location_next_run(history);

		tq_run_read(history->scan->slot, run);
		history->runs[history->n].is_left = false;
		is_running = !tq_state_is_resolved(run->state);
		history->n++;
	}
	if (is_running)
		return;
	if (history->pending == NULL)
		history->pending = tq_pending_scan_begin(history->scan->registered);
	if (tq_pending_scan_read(history->pending, task,
							 task_location_next_run(history)))
		history->runs[history->n++].is_left = false;
	else if (history->n > first)
		history->runs[history->n - 1].is_left = is_unscheduled(history, task);
}

/*
 * Adds the details and the names of the workers.  The worker of a run that was
 * deferred is in its detail.
 */
static void
add_details(TqHistoryRun *runs, int n, bool with_errors)
{
	TqDetailReader reader = {NULL, with_errors};

	for (int i = 0; i < n; i++)
	{
		TqHistoryRun *entry = &runs[i];

		entry->detail = tq_detail_reader_read(&reader, &entry->run);
		entry->worker_group = entry->worker_id = NULL;
		if (entry->run.worker != 0)
			tq_worker_name(entry->run.worker, &entry->worker_group,
						   &entry->worker_id);
	}
	tq_detail_reader_end(&reader);
}

/*
 * Returns every run of these tasks, by task id and run id, with the names of
 * the workers and, if requested, the errors.
 */
TqHistoryRun *
tq_runs_history(const int64 *tasks, int n, bool with_errors, int *found)
{
	History history = {.scan = open_location(TQ_LOCATION_RUN, 1, NULL),
					   .room = n + 4};
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));

	memcpy(ids, tasks, sizeof(int64) * n);
	qsort(ids, n, sizeof(int64), tq_compare_ids);
	history.runs = palloc_extended(sizeof(TqHistoryRun) * history.room,
								   MCXT_ALLOC_HUGE);
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || ids[i] != ids[i - 1])
			task_location_add_runs(&history, ids[i]);
	}
	if (history.pending != NULL)
		tq_pending_scan_end(history.pending);
	if (history.unscheduled != NULL)
		tq_scan_close(history.unscheduled);
	tq_scan_close(history.scan);
	add_details(history.runs, history.n, with_errors);
	*found = history.n;
	return history.runs;
}

/*
 * Returns every run of a task, by run id, with the names of the workers and
 * the errors.
 */
TqHistoryRun *
tq_runs_of_task(const TqTask *task, int *found)
{
	return tq_runs_history(&task->id, 1, true, found);
}

/* Returns the index of the first run of a task in a history. */
int
tq_history_first(const TqHistoryRun *runs, int n, int64 task)
{
	int low = 0;
	int high = n;

	while (low < high)
	{
		int middle = (low + high) / 2;

		if (runs[middle].run.task < task)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- pages of unresolved tasks ---- */

/*
 * There is no index on names and tags, nor on the queue of a task that is not
 * pending.  A page has so many rows of an index, whether they are wanted or not,
 * so that a page is short work however few are.
 */

/* Parameters: the page, then the filter. */
#define QUEUE "$1"
#define PRIORITY "$2"
#define AFTER "$3"
#define MAX "$4"
#define PARAMETERS                                                            \
	INT4OID, INT2OID, INT8OID, INT4OID, TIMESTAMPTZOID, BOOLOID, TEXTOID,     \
		JSONBOID, TEXTOID

/*
 * Whether task t is wanted.  A task without metadata is shown with the name of
 * its queue, $9.
 */
#define IS_WANTED                                                               \
	"(t.queue = " QUEUE                                                         \
	" AND t.created <= $5 AND ($6 OR coalesce(t.metadata ->> 'name', $9) = $7)" \
	" AND coalesce(t.tags, '{}') @> $8)"

/* A page of a table in order of its tasks. */
#define BY_TASK(table)                                                        \
	"SELECT p.task, p.task, " IS_WANTED                                       \
	" FROM (SELECT q.task FROM tq_internal." table " q WHERE q.task > " AFTER \
	" ORDER BY q.task LIMIT " MAX                                             \
	") AS p JOIN tq_internal.task t ON t.id = p.task ORDER BY p.task"

static TqStatement unscheduled_page = TQ_STATEMENT(BY_TASK("unscheduled"),
												   PARAMETERS);
static TqStatement delayed_page = TQ_STATEMENT(BY_TASK("delayed"), PARAMETERS);
static TqStatement running_page = TQ_STATEMENT(BY_TASK("claimed_run"),
											   PARAMETERS);
static TqStatement pending_page = TQ_STATEMENT(
	"SELECT p.task, p.seq, " IS_WANTED
	" FROM (SELECT q.task, q.seq FROM tq_internal.pending q WHERE q.queue = " QUEUE
	" AND q.priority = " PRIORITY " AND q.seq > " AFTER
	" ORDER BY q.seq LIMIT " MAX
	") AS p JOIN tq_internal.task t ON t.id = p.task ORDER BY p.seq",
	PARAMETERS);

static TqStatement *
statement_of(TqTaskLocation location)
{
	switch (location)
	{
		case TQ_LOCATION_UNSCHEDULED:
			return &unscheduled_page;
		case TQ_LOCATION_DELAYED:
			return &delayed_page;
		case TQ_LOCATION_RUN:
			return &running_page;
		case TQ_LOCATION_PENDING:
		case TQ_LOCATION_NONE:
			break;
	}
	return &pending_page;
}

static void
task_location_read_page(TupleTableSlot *slot, void *row)
{
	*(TqUnresolvedRow *) row =
		(TqUnresolvedRow){.task = tq_row_int64(slot, 1),
						  .position = tq_row_int64(slot, 2),
						  .is_wanted = tq_row_bool(slot, 3)};
}

/*
 * Returns a page of the tasks at a location, in order of their positions,
 * beginning after that one; of the pending ones, those of a priority.  It is the
 * last page if it has fewer than max rows.
 */
TqUnresolvedRow *
tq_unresolved_page(const TqUnresolvedFilter *filter, TqTaskLocation location,
				   int priority, int64 after, int max, int *found)
{
	const char *name = filter->name == NULL ? "" : filter->name;
	Datum tags = filter->tags == NULL
					 ? DirectFunctionCall1(jsonb_in, CStringGetDatum("{}"))
					 : JsonbPGetDatum(filter->tags);
	Datum values[9] = {Int32GetDatum(filter->queue),
					   Int16GetDatum(priority),
					   Int64GetDatum(after),
					   Int32GetDatum(max),
					   TimestampTzGetDatum(filter->created_by),
					   BoolGetDatum(filter->name == NULL),
					   CStringGetTextDatum(name),
					   tags,
					   CStringGetTextDatum(tq_queue_name(filter->queue))};

	return tq_spi_read_all(statement_of(location), values,
						   task_location_read_page, sizeof(TqUnresolvedRow),
						   found);
}

/*
 * ---- locks on the current rows of many tasks ----
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
 * Without waiting
 * ---------------
 * Maintenance uses the access methods, and waits for no lock.  Most of the tasks
 * that it has to check were resolved long ago: to find that out costs a look-up
 * of the last run, and one in each table where a later run may be.  Waiting in
 * the order above takes 2.4 times the CPU in bench deadline, twice in bench
 * stale, and one lock of a client would hold up all that is due.
 *
 * All rows are looked up with one snapshot, in which the current row of an
 * unresolved task is in exactly one table.  If that version of the row is
 * still the latest and can be locked, it is still the task's current row, and
 * remains so while the lock is held: a row of unscheduled, pending or delayed
 * is deleted when its task leaves the table, and a running run is the last of
 * its task until its row changes.  A row that has a newer version, or that
 * another session has locked, is skipped.
 */

/* ---- with waiting ---- */

/*
 * Locks the tasks that are not done yet; without unscheduled_too leaves those
 * in unscheduled to another pass.  Shows how far it is.
 */
static void
lock_pass(TqTaskLock *locks, int n, TqLock mode,
		  bool (*is_settled)(const TqRun *run), bool unscheduled_too)
{
	Peek peek;

	peek_begin(&peek);
	for (int i = 0; i < n; i++)
	{
		TqTaskLock *lock = &locks[i];

		tq_show_done("locked", i, n);
		if (lock->is_done || !peek_find(&peek, lock->task, &lock->run) ||
			(lock->run.location == TQ_LOCATION_UNSCHEDULED &&
			 !unscheduled_too))
			continue;
		lock->is_done = true;
		lock->is_locked = (is_settled != NULL && is_settled(&lock->run)) ||
						  peek_lock(&peek, mode, &lock->run);
	}
	peek_end(&peek);
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
typedef struct LockTable
{
	TqTaskLocation location;
	TqRelation table;
	TqRelation index;
	int nkeys;
} LockTable;

/* The ways to find the current row of a task. */
typedef enum
{
	BY_RUN,
	BY_MOVED, /* in pending, by task: the row has a seq of its own */
	BY_ORDER, /* in pending, by queue order: seq is the task's id */
	BY_DELAYED,
	BY_UNSCHEDULED,
	LOCK_TABLES
} LockBy;

static LockTable lock_tables[LOCK_TABLES] =
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
typedef struct LockScans
{
	TqScan *tasks;
	TqScan *scans[LOCK_TABLES];
	TqLockedTasks *locked;
} LockScans;

static void
begin_lock_scans(LockScans *lookup, int n, TqLockedTasks *locked)
{
	memset(lookup, 0, sizeof(*lookup));
	lookup->tasks = tq_task_scan_begin(NULL);
	lookup->locked = locked;
	locked->runs = palloc(sizeof(TqRun) * Max(n, 1));
	locked->tasks = palloc(sizeof(TqTask) * Max(n, 1));
	locked->details = NULL;
	locked->others = palloc(sizeof(int64) * Max(n, 1));
	locked->resolved = palloc(sizeof(TqTask) * Max(n, 1));
	locked->n = locked->nothers = locked->nresolved = 0;
}

static void
end_lock_scans(LockScans *lookup)
{
	for (int by = 0; by < LOCK_TABLES; by++)
	{
		if (lookup->scans[by] != NULL)
			tq_scan_close(lookup->scans[by]);
	}
	tq_scan_close(lookup->tasks);
}

/* Returns the scan of a table, opening it if necessary. */
static TqScan *
lock_scan_of(LockScans *lookup, LockBy by)
{
	LockTable *table = &lock_tables[by];

	if (lookup->scans[by] == NULL)
		lookup->scans[by] = tq_scan_open(&table->table, &table->index,
										 table->nkeys,
										 lookup->tasks->registered);
	return lookup->scans[by];
}

/*
 * Finds the row of a task in a table with a single key column; of its runs,
 * the last.  Returns NULL if there is none.
 */
static TqScan *
task_lock_find(LockScans *lookup, LockBy by, int64 task)
{
	TqScan *scan = lock_scan_of(lookup, by);

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
find_first_run(LockScans *lookup, const TqTask *task)
{
	TqScan *scan = lock_scan_of(lookup, BY_ORDER);

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
			unscheduled_read(scan->slot, run);
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
 * later run, which BY_ORDER does not find.
 */
static TqScan *
task_lock_find_unresolved(LockScans *lookup, const TqTask *task, TqRun *run)
{
	TqScan *scan = task_lock_find(lookup, BY_RUN, task->id);
	bool has_run = scan != NULL;
	TqTaskLocation location = TQ_LOCATION_RUN;

	if (has_run)
	{
		task_lock_read_found(scan, TQ_LOCATION_RUN, task->id, run);
		if (!tq_state_is_resolved(run->state))
			return scan;
		scan = NULL;
	}
	for (int by = BY_MOVED; by < LOCK_TABLES && scan == NULL; by++)
	{
		location = lock_tables[by].location;
		if (by == BY_ORDER)
			scan = has_run ? NULL : find_first_run(lookup, task);
		else
			scan = task_lock_find(lookup, (LockBy) by, task->id);
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
lock_found(TqScan *scan)
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
	if (!lock_found(scan))
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
	LockScans lookup;

	begin_lock_scans(&lookup, n, locked);
	for (int i = 0; i < n; i++)
	{
		TqTask task;
		TqRun run;
		TqScan *scan;

		if (!tq_task_core(lookup.tasks, tasks[i], &task))
			continue;
		scan = task_lock_find_unresolved(&lookup, &task, &run);
		if (scan == NULL)
			locked->resolved[locked->nresolved++] = task;
		else
			hold(locked, scan, &task, &run);
	}
	end_lock_scans(&lookup);
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
 * Finds and reads the last run of a task, if that is resolved and the task has no
 * later one; tasks are in order of id.
 */
static bool
find_resolved(TqScan **scans, int64 task, TqRun *run)
{
	bool found = false;

	while (tq_scan_next_of(scans[BY_RUN], task))
	{
		tq_run_read(scans[BY_RUN]->slot, run);
		found = true;
	}
	return found && tq_state_is_resolved(run->state) &&
		   !tq_scan_next_of(scans[BY_MOVED], task) &&
		   !tq_scan_next_of(scans[BY_DELAYED], task) &&
		   !tq_scan_next_of(scans[BY_UNSCHEDULED], task);
}

/* Of these runs, which are locked, keeps those that are still the last ones. */
static int
keep_last(TqScan **scans, TqRun *runs, int n)
{
	int left = 0;

	for (int i = 0; i < n; i++)
	{
		int64 task = runs[i].task;
		int run_id = runs[i].run_id;

		left += find_resolved(scans, task, &runs[left]) &&
				runs[left].run_id == run_id;
	}
	return left;
}

/* Opens the scans of find_resolved() for these tasks. */
static void
open_resolved(TqScan **scans, const int64 *tasks, int n, Snapshot snapshot)
{
	for (int by = 0; by < LOCK_TABLES; by++)
	{
		if (by != BY_ORDER)
			scans[by] = tq_scan_open_ascending(&lock_tables[by].table,
											   &lock_tables[by].index, tasks,
											   n, snapshot);
	}
}

static void
close_resolved(TqScan **scans)
{
	for (int by = 0; by < LOCK_TABLES; by++)
	{
		if (by != BY_ORDER)
			tq_scan_close(scans[by]);
	}
}

/* Returns whether all of these tasks, which are in order of id, are resolved. */
bool
tq_tasks_are_resolved(const int64 *tasks, int n)
{
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());
	TqScan *scans[LOCK_TABLES];
	TqRun run;
	int resolved = 0;

	open_resolved(scans, tasks, n, snapshot);
	while (resolved < n && find_resolved(scans, tasks[resolved], &run))
		resolved++;
	close_resolved(scans);
	UnregisterSnapshot(snapshot);
	return resolved == n;
}

/*
 * Locks and reads the last runs of those of these tasks, which are in order of
 * id, that are resolved; returns how many.  Skips a task that another session
 * has locked or changed.
 *
 * The row of a resolved run remains when the task is run again.  So the tasks are
 * looked up again with a snapshot that is taken after the last lock: a session
 * that adds a run holds the lock on the run before it.
 */
int
tq_task_lock_resolved(const int64 *tasks, int n, TqRun *runs)
{
	Snapshot before = RegisterSnapshot(tq_spi_snapshot());
	Snapshot after;
	TqScan *scans[LOCK_TABLES];
	int locked = 0;

	open_resolved(scans, tasks, n, before);
	for (int i = 0; i < n; i++)
		locked += find_resolved(scans, tasks[i], &runs[locked]) &&
				  lock_found(scans[BY_RUN]);
	after = RegisterSnapshot(tq_spi_snapshot());
	for (int by = 0; by < LOCK_TABLES && locked > 0; by++)
	{
		if (by != BY_ORDER)
			tq_scan_restart(scans[by], runs[0].task, after);
	}
	locked = keep_last(scans, runs, locked);
	close_resolved(scans);
	UnregisterSnapshot(after);
	UnregisterSnapshot(before);
	return locked;
}

/*
 * Locks those of these tasks that are running under a claim that has expired,
 * and lists the running runs whose claim has not.
 */
void
tq_task_lock_expired(const int64 *tasks, int n, TimestampTz now,
					 TqLockedTasks *locked)
{
	LockScans lookup;

	begin_lock_scans(&lookup, n, locked);
	locked->claims = palloc(sizeof(TqRun) * Max(n, 1));
	locked->nclaims = 0;
	for (int i = 0; i < n; i++)
	{
		TqScan *scan = task_lock_find(&lookup, BY_RUN, tasks[i]);
		TqTask task;
		TqRun run;

		if (scan == NULL)
			continue;
		tq_run_read(scan->slot, &run);
		if (run.state != TQ_STATE_RUNNING)
			continue;
		if (run.taken_until <= now)
		{
			if (tq_task_core(lookup.tasks, run.task, &task))
				hold(locked, scan, &task, &run);
		}
		else
			locked->claims[locked->nclaims++] = run;
	}
	end_lock_scans(&lookup);
}
