/*
 * pending_table.c
 *	  Rows of tq_internal.pending and tq_internal.delayed: runs that wait for a
 *	  worker.
 *
 * A row of pending is claimable; a row of delayed moves to pending when it is
 * due.  A claim deletes the row through the access methods, without waiting. It
 * skips rows that another session has locked or changed, so claims never wait
 * for each other, nor for a cancel.
 *
 * A claim scans the index pending_order, priority by priority, from the
 * position of the claim cursor (claim_cursor.c).  It reads the current version
 * of each row rather than the one of a snapshot: it takes a row that exists
 * and is free by deleting it, and the delete fails if the row has changed
 * meanwhile.  Every row is recorded for the claim cursor before it is inserted
 * or deleted here; a trigger records rows that SQL writes, as in a restore
 * (trigger.c).
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "columns.h"
#include "tasks.h"

static TqStatement delete_delayed =
	TQ_STATEMENT("DELETE FROM tq_internal.delayed WHERE task = ANY ($1)",
				 INT8ARRAYOID);

static TqStatement set_delayed_priority = TQ_STATEMENT(
	"UPDATE tq_internal.delayed SET priority = $2 WHERE task = ANY ($1)",
	INT8ARRAYOID, INT2OID);

static TqStatement set_delayed_queue = TQ_STATEMENT(
	"UPDATE tq_internal.delayed SET queue = $2 WHERE task = ANY ($1)",
	INT8ARRAYOID, INT4OID);

static TqRelation delayed = TQ_RELATION("delayed");
static TqRelation delayed_by_task = TQ_RELATION("delayed_pkey");
static TqRelation pending = TQ_RELATION("pending");
static TqRelation pending_order = TQ_RELATION("pending_order");
static TqRelation pending_moved = TQ_RELATION("pending_moved");

TQ_NUMBERS(TQ_PENDING_COLUMNS, pending);
TQ_NUMBERS(TQ_DELAYED_COLUMNS, delayed);

/* ---- insert, move and delete ---- */

static void
track_insert(TqTable *table, int32 queue, int priority, int64 seq)
{
	tq_cursor_track_insert(RelationGetRelid(table->rel), queue, priority, seq);
}

static void
track_delete_locked(TqTable *table, TupleTableSlot *slot)
{
	tq_cursor_track_delete_locked(RelationGetRelid(table->rel),
								  tq_row_int32(slot, Anum_pending_queue),
								  tq_row_int16(slot, Anum_pending_priority),
								  tq_row_int64(slot, Anum_pending_seq));
}

static void
put_pending(TqTable *table, const TqPending *row)
{
	TupleTableSlot *slot = tq_table_new_row(table);

	TQ_PENDING_COLUMNS(TQ_PUT, pending);
	track_insert(table, row->queue, row->priority, row->seq);
}

static void
put_delayed(TqTable *table, const TqPending *row)
{
	TupleTableSlot *slot = tq_table_new_row(table);

	TQ_DELAYED_COLUMNS(TQ_PUT, delayed);
	if (row->visible_at != TQ_PARKED)
		tq_request_cycle(row->visible_at);
}

/* Gives a row another tag, because another row has its own. */
static void
renumber(TupleTableSlot *slot, int tries)
{
	Oid table = tq_relation_oid(&pending);
	TqFairRun run = {.task = tq_row_int64(slot, Anum_pending_task),
					 .queue = tq_row_int32(slot, Anum_pending_queue),
					 .priority = tq_row_int16(slot, Anum_pending_priority),
					 .seq = tq_row_int64(slot, Anum_pending_seq)};

	tq_fair_position_again(table, &run, tries);
	tq_put(slot, Anum_pending_seq, Int64GetDatum(run.seq));
	tq_cursor_track_insert(table, run.queue, run.priority, run.seq);
}

/* Inserts rows of queues that are fair, each at the position that its key has. */
static void
put_fair(TqTable *table, TqPending *rows, int n)
{
	TqFairRun *runs = palloc(sizeof(TqFairRun) * n);

	/* Set the seq of rows of queues that are fair, by their keys. */
	for (int i = 0; i < n; i++)
		runs[i] = (TqFairRun){.task = rows[i].task,
							  .queue = rows[i].queue,
							  .priority = rows[i].priority};
	tq_fair_position(RelationGetRelid(table->rel), runs, n);
	for (int i = 0; i < n; i++)
		rows[i].seq = runs[i].seq;
	pfree(runs);
	tq_table_flush(table);
	for (int i = 0; i < n; i++)
	{
		put_pending(table, &rows[i]);
		if (table->filled == TQ_TABLE_BATCH || i == n - 1)
			tq_table_flush_renumbered(table, &pending_order, renumber);
	}
}

/*
 * Makes runs claimable.  A run with a seq of 0 goes to the back of its queue, in
 * the order of rows[].  In a queue that is fair, each goes behind those of its
 * key.
 */
void
tq_pending_insert(const TqPending *rows, int n)
{
	TqTable *table;
	TqPending *fair = NULL;
	int nfair = 0;

	if (n == 0)
		return;
	table = tq_table_open(&pending);
	if (tq_fair_is_used())
		fair = palloc(sizeof(TqPending) * n);
	for (int i = 0; i < n; i++)
	{
		TqPending row = rows[i];

		if (row.seq == 0)
			row.seq = tq_id_next();
		if (fair != NULL && tq_fair_applies(row.queue))
			fair[nfair++] = row;
		else
			put_pending(table, &row);
	}
	if (nfair > 0)
		put_fair(table, fair, nfair);
	tq_table_close(table);
}

/* Makes runs claimable later. */
void
tq_delayed_insert(const TqPending *rows, int n)
{
	TqTable *table;

	if (n == 0)
		return;
	table = tq_table_open(&delayed);
	for (int i = 0; i < n; i++)
		put_delayed(table, &rows[i]);
	tq_table_close(table);
}

/*
 * Look-up of the row of a task, like TQ_PENDING_OF(), through the access
 * methods.  If the priority of the task can change concurrently, the snapshot
 * must be an MVCC snapshot, because a change writes the rows of task and
 * pending in one transaction.
 */
struct TqPendingScan
{
	Snapshot snapshot;
	TqTable *table;
	TqScan *tasks;
	TqScan *order;
	TqScan *moved;
	TqScan *delayed; /* NULL: not needed yet */
};

/* Begins to look up pending runs by their tasks. */
TqPendingScan *
tq_pending_scan_begin(Snapshot snapshot)
{
	TqPendingScan *by = palloc(sizeof(TqPendingScan));

	by->snapshot = snapshot;
	by->table = tq_table_open(&pending);
	by->tasks = tq_task_scan_begin(snapshot);
	by->order = tq_scan_begin(by->table, &pending_order, 3, snapshot);
	by->moved = tq_scan_begin(by->table, &pending_moved, 1, snapshot);
	by->delayed = NULL;
	return by;
}

/* Goes on with another snapshot. */
void
tq_pending_scan_renew(TqPendingScan *by, Snapshot snapshot)
{
	by->snapshot = snapshot;
	tq_scan_renew(by->tasks, snapshot);
	tq_scan_renew(by->order, snapshot);
	tq_scan_renew(by->moved, snapshot);
	if (by->delayed != NULL)
		tq_scan_renew(by->delayed, snapshot);
}

/* Ends the look-ups. */
void
tq_pending_scan_end(TqPendingScan *by)
{
	if (by->delayed != NULL)
		tq_scan_close(by->delayed);
	tq_scan_end(by->moved);
	tq_scan_end(by->order);
	tq_scan_close(by->tasks);
	tq_table_close(by->table);
}

static TupleTableSlot *
row_or_null(TqScan *scan, int64 task)
{
	return tq_scan_find(scan, Int64GetDatum(task), 0, 0) ? scan->slot : NULL;
}

/* Returns the row of a task in pending, or NULL. */
static TupleTableSlot *
find_by_task(TqPendingScan *by, int64 task)
{
	int32 queue;
	int priority;

	if (tq_task_for_order(by->tasks, task, &queue, &priority) &&
		tq_scan_find(by->order, Int32GetDatum(queue), Int16GetDatum(priority),
					 Int64GetDatum(task)))
		return by->order->slot;
	return row_or_null(by->moved, task);
}

/*
 * Reads a row of pending or delayed, whose columns have the same numbers, as
 * the run that it stands for.
 */
void
tq_pending_read(TupleTableSlot *slot, TqRun *row)
{
	slot_getallattrs(slot);
	*row = (TqRun){.task = tq_row_int64(slot, Anum_pending_task),
				   .location = TQ_LOCATION_PENDING,
				   .state = TQ_STATE_PENDING,
				   .scheduled = tq_row_time(slot, Anum_pending_scheduled)};
	TQ_WAITING_RUN(TQ_GET, pending);
}

/* Reads a row of delayed; the caller gives it a seq. */
void
tq_delayed_read(TupleTableSlot *slot, TqPending *row)
{
	TQ_DELAYED_COLUMNS(TQ_GET, delayed);
}

/*
 * Reads the pending run of a task, delayed or not; returns false if there is
 * none.
 */
bool
tq_pending_scan_read(TqPendingScan *by, int64 task, TqRun *run)
{
	TupleTableSlot *slot = find_by_task(by, task);
	bool is_delayed = slot == NULL;

	if (is_delayed)
	{
		/* The row of a task in delayed, or NULL. */
		if (by->delayed == NULL)
			by->delayed = tq_scan_open(&delayed, &delayed_by_task, 1,
									   by->snapshot);
		slot = row_or_null(by->delayed, task);
	}
	if (slot == NULL)
		return false;
	tq_pending_read(slot, run);
	if (is_delayed)
		run->location = TQ_LOCATION_DELAYED;
	return true;
}

/*
 * Sets are_first[] for the tasks whose first run is pending, delayed or not.
 * The result is the same as that of tq_run_peek() for each of them.
 */
void
tq_pending_are_first(const int64 *tasks, int n, bool *are_first)
{
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());
	TqPendingScan *by = tq_pending_scan_begin(snapshot);

	for (int i = 0; i < n; i++)
	{
		TqRun run;

		are_first[i] = tq_pending_scan_read(by, tasks[i], &run) &&
					   run.run_id == 0;
	}
	tq_pending_scan_end(by);
	UnregisterSnapshot(snapshot);
}

/*
 * Locks the row of a task in pending; returns false if it is gone or, under
 * TQ_LOCK_SKIP, if another session has locked or changed it.
 */
bool
tq_pending_scan_lock(TqPendingScan *by, int64 task, TqLock mode)
{
	TupleTableSlot *slot = find_by_task(by, task);
	bool locked = slot != NULL && tq_table_lock_row(by->table, slot, mode);

	if (locked)
		tq_cursor_track_lock(RelationGetRelid(by->table->rel),
							 tq_row_int32(slot, Anum_pending_queue),
							 tq_row_int16(slot, Anum_pending_priority));
	return locked;
}

static bool
pending_lock(int64 task, TqLock mode)
{
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());
	TqPendingScan *by = tq_pending_scan_begin(snapshot);
	bool locked = tq_pending_scan_lock(by, task, mode);

	tq_pending_scan_end(by);
	UnregisterSnapshot(snapshot);
	return locked;
}

/* Deletes rows of pending that the caller has locked. */
void
tq_pending_delete(const int64 *tasks, int n)
{
	TqPendingScan *by;

	if (n == 0)
		return;
	by = tq_pending_scan_begin(SnapshotSelf);
	for (int i = 0; i < n; i++)
	{
		TupleTableSlot *slot = find_by_task(by, tasks[i]);
		TM_Result result;

		if (slot == NULL)
			elog(ERROR, "task " INT64_FORMAT " is not in tq_internal.pending",
				 tasks[i]);
		track_delete_locked(by->table, slot);
		result = tq_table_delete(by->table, &slot->tts_tid, true);
		if (result != TM_Ok)
			tq_table_error(by->table, result);
	}
	tq_pending_scan_end(by);
}

/* Deletes the rows of these tasks from delayed. */
void
tq_delayed_delete(const int64 *tasks, int n)
{
	if (n > 0)
		tq_spi_run(&delete_delayed, TQ_VALUES(tq_array_int64(tasks, n)), NULL);
}

/*
 * Moves a row, which the caller has locked, to the back of its key, or of its
 * queue, in a priority and perhaps another queue.  A session that waits for its
 * lock looks for it again, as if it had been claimed.
 */
static void
move_to_back(TqPendingScan *by, TupleTableSlot *slot, int32 queue,
			 int priority)
{
	TqPending moved;
	TqPending *row = &moved;
	TM_Result result;

	TQ_PENDING_COLUMNS(TQ_GET, pending);
	moved.queue = queue;
	moved.priority = (int16) priority;
	track_delete_locked(by->table, slot);
	result = tq_table_delete(by->table, &slot->tts_tid, true);
	if (result != TM_Ok)
		tq_table_error(by->table, result);
	if (tq_fair_applies(moved.queue))
		put_fair(by->table, &moved, 1);
	else
	{
		moved.seq = tq_id_next();
		put_pending(by->table, &moved);
		tq_table_flush(by->table);
	}
}

/*
 * Moves the run of a task to the back of its key, or of its queue, in a
 * priority.  Returns false if it is not pending, or if another session has
 * locked or changed it.
 */
bool
tq_pending_move(int64 task, int priority)
{
	TqPendingScan *by;
	TupleTableSlot *slot;

	if (!pending_lock(task, TQ_LOCK_SKIP))
		return false;
	by = tq_pending_scan_begin(SnapshotSelf);
	slot = find_by_task(by, task);
	if (slot == NULL)
		elog(ERROR, "task " INT64_FORMAT " is not in tq_internal.pending",
			 task);
	move_to_back(by, slot, tq_row_int32(slot, Anum_pending_queue), priority);
	tq_pending_scan_end(by);
	return true;
}

/*
 * Gives a row a new queue or priority, and records both its positions for the
 * cursor.
 */
static void
move_row(TqTable *table, TupleTableSlot *slot, int32 queue, int priority)
{
	TupleTableSlot *moved = tq_table_copy_row(table, slot);
	TM_Result result;

	tq_put(moved, Anum_pending_queue, Int32GetDatum(queue));
	tq_put(moved, Anum_pending_priority, Int16GetDatum(priority));
	track_delete_locked(table, slot);
	track_insert(table, queue, priority, tq_row_int64(slot, Anum_pending_seq));
	result = tq_table_update(table, &slot->tts_tid, moved);
	if (result != TM_Ok)
		tq_table_error(table, result);
	ExecDropSingleTupleTableSlot(moved);
}

/*
 * Gives those of these tasks that are pending or delayed a new priority.  Their
 * order by seq remains, except where it is one of tags, which differ from
 * priority to priority.  The caller has locked all the rows, and the rows of
 * task still have the old priority.
 */
void
tq_pending_set_priority(const int64 *tasks, int n, int priority)
{
	Datum values[2] = {tq_array_int64(tasks, n), Int16GetDatum(priority)};
	TqPendingScan *by;

	if (n == 0)
		return;
	by = tq_pending_scan_begin(SnapshotSelf);
	for (int i = 0; i < n; i++)
	{
		TupleTableSlot *slot = find_by_task(by, tasks[i]);

		if (slot == NULL)
			continue;
		if (tq_row_int64(slot, Anum_pending_seq) < 0)
			move_to_back(by, slot, tq_row_int32(slot, Anum_pending_queue),
						 priority);
		else
			move_row(by->table, slot, tq_row_int32(slot, Anum_pending_queue),
					 priority);
	}
	tq_pending_scan_end(by);
	tq_spi_run(&set_delayed_priority, values, NULL);
}

/*
 * Moves these tasks, which are pending, to another queue; their order by seq
 * remains, unless one of the queues is fair.  The caller has locked all the
 * rows, and the rows of task still have the old queue.
 */
void
tq_pending_set_queue(const int64 *tasks, int n, int32 queue)
{
	TqPendingScan *by;

	if (n == 0)
		return;
	by = tq_pending_scan_begin(SnapshotSelf);
	for (int i = 0; i < n; i++)
	{
		TupleTableSlot *slot = find_by_task(by, tasks[i]);

		if (slot == NULL)
			elog(ERROR, "task " INT64_FORMAT " is not in tq_internal.pending",
				 tasks[i]);
		if (tq_row_int64(slot, Anum_pending_seq) < 0 || tq_fair_applies(queue))
			move_to_back(by, slot, queue,
						 tq_row_int16(slot, Anum_pending_priority));
		else
			move_row(by->table, slot, queue,
					 tq_row_int16(slot, Anum_pending_priority));
	}
	tq_pending_scan_end(by);
}

/* Moves these tasks, which are delayed, to another queue. */
void
tq_delayed_set_queue(const int64 *tasks, int n, int32 queue)
{
	Datum values[2] = {tq_array_int64(tasks, n), Int32GetDatum(queue)};

	if (n > 0)
		tq_spi_run(&set_delayed_queue, values, NULL);
}

/* ---- claims ---- */

/* The maximum number of index entries that one pass reads. */
#define PASS_ENTRIES 1000

/*
 * The first pass of a claim of n tasks reads so many ids.  Creating a task
 * alone takes two, and other queues take some of them.  Of tags it reads those
 * of n turns.
 */
#define NEAR_IDS(n) (32 + INT64CONST(4) * (n))
#define NEAR_TAGS(n) (TQ_FAIR_TURN * (n))

/* The state of a claim, or of a check whether a run is claimable. */
typedef struct PendingWalk
{
	int32 queue;
	TimestampTz now;
	TqMayClaim *may_claim;
	int max;
	bool taking; /* false: only check */
	TqTable *table;
	TqScan *order;
	SnapshotData dirty;
	TqScan *tasks;
	TqClaimed *started; /* room for max */
	int found;
	/* the rest is about the current priority */
	int priority;
	TqCursor cursor;
	int64 from;   /* where the next pass begins */
	bool is_near; /* that pass ends soon */
	/* no lower entry is claimable; one that becomes so lowers the cursor */
	int64 passed;
	bool may_raise; /* the cursor may be raised, so far */
	int64 taken;    /* the last seq that was taken; 0: none */
} PendingWalk;

/* What a claim found at an index entry. */
typedef enum Sight
{
	SIGHT_PASSABLE, /* dead, or its end will be recorded; cursor may pass */
	SIGHT_OTHERS,   /* not claimable by this claim, perhaps by a later one */
	SIGHT_TAKEN     /* taken by this claim, or found to be claimable */
} Sight;

/* Reads a row of pending, but not its detail. */
static void
read_claimed(TupleTableSlot *slot, TqClaimed *row)
{
	row->scheduled = tq_row_time(slot, Anum_pending_scheduled);
	row->claimable = row->scheduled;
	row->started = 0;
	row->taken_until = 0;
	row->pending_until = 0;
	TQ_WAITING_RUN(TQ_GET, pending);
}

/* Reads what a claim needs of the detail of a run. */
static void
read_detail(TupleTableSlot *slot, TqClaimed *started)
{
	TqRun run;
	TqRunDetail detail;

	tq_pending_read(slot, &run);
	if (!tq_detail_read(&run, &detail))
		return;
	started->started = detail.started;
	started->pending_until = detail.budget.pending_until;
	started->claimable = detail.budget.visible_at;
}

/*
 * Takes a row that exists, unless the caller does not want the run, or another
 * session has locked or changed the row.
 * The payload is read only when the row has been taken, because it may be
 * large.
 */
static Sight
pending_take_row(PendingWalk *walk, TupleTableSlot *slot)
{
	TqClaimed *started = &walk->started[walk->found];

	slot_getallattrs(slot);
	if (!tq_task_for_claim(walk->tasks, tq_row_int64(slot, Anum_pending_task),
						   started))
		return SIGHT_OTHERS;
	read_claimed(slot, started);
	if (started->has_detail)
		read_detail(slot, started);
	if (!walk->may_claim(started, walk->now))
		return SIGHT_OTHERS;
	if (!walk->taking)
		return tq_row_is_locked(slot) ? SIGHT_OTHERS : SIGHT_TAKEN;
	tq_cursor_track_delete(RelationGetRelid(walk->table->rel), walk->queue,
						   walk->priority,
						   tq_row_int64(slot, Anum_pending_seq));
	switch (tq_table_delete_if_free(walk->table, slot))
	{
		case TM_Ok:
			break;
		case TM_BeingModified:
		case TM_WouldBlock:
		case TM_Updated:
		case TM_Deleted:
		case TM_SelfModified:
			return SIGHT_OTHERS;
		case TM_Invisible:
			tq_table_error(walk->table, TM_Invisible);
	}
	tq_task_payload_for_claim(walk->tasks, started);
	return SIGHT_TAKEN;
}

/*
 * Checks the row of an index entry.  The cursor may pass a row that a
 * transaction in progress has inserted or deleted, because the end of that
 * transaction will be recorded.  It may not where transactions can be
 * prepared, because a prepared transaction ends in another session
 * (claim_cursor.c).
 */
static Sight
visit_pending(PendingWalk *walk)
{
	if (!tq_scan_fetch(walk->order))
		return SIGHT_PASSABLE;
	if (TransactionIdIsValid(walk->dirty.xmin) ||
		TransactionIdIsValid(walk->dirty.xmax))
		return tq_cursor_is_strict() ? SIGHT_OTHERS : SIGHT_PASSABLE;
	return pending_take_row(walk, walk->order->slot);
}

/*
 * Starts a pass at walk->from, and returns where it ends.  The first pass of a
 * priority ends soon, because the first entries are mostly those to claim.
 */
static int64
begin_pass(PendingWalk *walk)
{
	int64 below = PG_INT64_MAX;
	int64 near = walk->from < 0 ? NEAR_TAGS(walk->max) : NEAR_IDS(walk->max);

	if (walk->is_near)
		below = Min(walk->from, PG_INT64_MAX - near) + near;
	walk->is_near = false;
	tq_scan_seek_range(walk->order, Int32GetDatum(walk->queue),
					   Int16GetDatum(walk->priority), walk->from, below);
	return below;
}

/* Notes that the run of a number was taken, or could be. */
static void
note_taken(PendingWalk *walk, int64 seq)
{
	walk->found++;
	walk->taken = seq;
	if (walk->may_raise)
		walk->passed = seq + 1;
}

/*
 * Checks up to PASS_ENTRIES entries from walk->from on, and the others of the
 * last number; returns false after the last entry.
 *
 * A task that was moved and moved back has several entries of one number, of
 * which one shows it.  So a number is passed only when all its entries are, or
 * the one that is taken.  A pass that ends without another entry has passed all
 * numbers up to its end, not only those of entries: a row that is inserted
 * meanwhile may have any of them, and read_on() must see that the cursor was
 * lowered to it.
 */
static bool
visit_some(PendingWalk *walk)
{
	int64 below = begin_pass(walk);

	for (int i = 0; walk->found < walk->max; i++)
	{
		int64 seq;
		Sight sight;
		bool more;

		CHECK_FOR_INTERRUPTS();
		more = tq_scan_next_entry(walk->order, &seq);
		if (!more)
			walk->from = below;
		if (walk->may_raise && (!more || seq >= walk->from))
			walk->passed = walk->from;
		if (!more)
			return below != PG_INT64_MAX;
		if (i >= PASS_ENTRIES && seq >= walk->from)
			break;
		walk->from = seq + 1;
		sight = visit_pending(walk);
		if (sight == SIGHT_OTHERS || !walk->taking)
			walk->may_raise = walk->may_raise && sight == SIGHT_PASSABLE;
		if (sight == SIGHT_TAKEN)
			note_taken(walk, seq);
	}
	return true;
}

/*
 * Reads the cursor again for the next pass of this priority.  What was passed
 * so far remains valid, unless another session has lowered the cursor below it
 * meanwhile (claim_cursor.c).
 */
static void
read_on(PendingWalk *walk)
{
	int64 *low = walk->cursor.low;

	tq_cursor_read(walk->cursor.pending, walk->queue, &walk->cursor);
	if (low[walk->priority] >= walk->passed)
		return;
	walk->may_raise = false;
	walk->passed = low[walk->priority];
}

/* Scans the entries of one priority in passes; each may raise the cursor. */
static void
walk_priority(PendingWalk *walk)
{
	bool more = true;

	walk->taken = 0;
	walk->from = walk->passed = walk->cursor.low[walk->priority];
	walk->may_raise = true;
	walk->is_near = true;
	while (more && walk->found < walk->max && walk->from != TQ_CURSOR_END)
	{
		more = visit_some(walk);
		if (!more && walk->may_raise)
			walk->passed = TQ_CURSOR_END;
		tq_cursor_raise(&walk->cursor, walk->priority, walk->passed);
		if (more && walk->found < walk->max)
			read_on(walk);
	}
	if (walk->taken < 0 && walk->taking)
	{
		TqFairKey key = {.pending = walk->cursor.pending,
						 .queue = walk->queue,
						 .priority = walk->priority};

		/* Note how far the claims of a queue that is fair have got. */
		tq_fair_set_time(&key, walk->taken);
	}
}

/* Scans a queue, highest priority first, until enough was found. */
static void
walk_queue(PendingWalk *walk)
{
	walk->table = tq_table_open(&pending);
	InitDirtySnapshot(walk->dirty);
	tq_cursor_read(RelationGetRelid(walk->table->rel), walk->queue,
				   &walk->cursor);
	walk->order = tq_scan_begin_range(walk->table, &pending_order, 3,
									  &walk->dirty);
	walk->tasks = tq_task_scan_begin(SnapshotSelf);
	for (walk->priority = TQ_PRIORITY_HIGHEST;
		 walk->priority >= TQ_PRIORITY_LOWEST && walk->found < walk->max;
		 walk->priority--)
		walk_priority(walk);
	tq_scan_close(walk->tasks);
	tq_scan_end(walk->order);
	tq_table_close(walk->table);
}

/*
 * Claims up to max runs of a queue in their order, skipping those that
 * may_claim() refuses and those that another session has locked.
 */
TqClaimed *
tq_pending_claim(int32 queue, int max, TimestampTz now, TqMayClaim *may_claim,
				 int *found)
{
	PendingWalk walk = {.queue = queue,
						.now = now,
						.may_claim = may_claim,
						.max = max,
						.taking = true,
						.started = palloc(sizeof(TqClaimed) * max)};

	walk_queue(&walk);
	*found = walk.found;
	return walk.started;
}

/* Returns whether a run of a queue could be claimed now. */
bool
tq_pending_is_claimable(int32 queue, TimestampTz now, TqMayClaim *may_claim)
{
	TqClaimed started;
	PendingWalk walk = {.queue = queue,
						.now = now,
						.may_claim = may_claim,
						.max = 1,
						.started = &started};

	walk_queue(&walk);
	return walk.found > 0;
}

/* ---- look from the front ---- */

/*
 * Looks at the pending runs of a queue from the front.
 *
 * Unlike a claim, it takes none of them, and sees what its snapshot shows.  It
 * begins where claims begin.
 */

/* Reads a run, of whose task only the priority is read. */
static bool
pending_read_waiting(TupleTableSlot *slot, TqScan *tasks, TqWalkedRun *waiting)
{
	TqRun run;
	TqRunDetail detail;
	int32 queue;

	tq_pending_read(slot, &run);
	*waiting = (TqWalkedRun){.task = run.task,
							 .seq = tq_row_int64(slot, Anum_pending_seq),
							 .priority = tq_row_int16(slot,
													  Anum_pending_priority),
							 .since = run.scheduled};
	if (run.has_detail && tq_detail_read(&run, &detail))
		waiting->since = Max(run.scheduled, detail.budget.visible_at);
	return tq_task_for_order(tasks, run.task, &queue, &waiting->own_priority);
}

/*
 * Visits the runs of a queue and priority in their order, from a seq on, until
 * the visitor ends it.
 */
void
tq_pending_walk(int32 queue, int priority, int64 from, TqVisit *visit,
				void *arg)
{
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());
	TqTable *table = tq_table_open(&pending);
	TqScan *order = tq_scan_begin_range(table, &pending_order, 3, snapshot);
	TqScan *tasks = tq_task_scan_begin(snapshot);
	bool more = true;
	TqCursor cursor;
	int64 seq;

	tq_cursor_read(RelationGetRelid(table->rel), queue, &cursor);
	tq_scan_seek_range(order, Int32GetDatum(queue), Int16GetDatum(priority),
					   Max(from, cursor.low[priority]), PG_INT64_MAX);
	while (more && tq_scan_next_entry(order, &seq))
	{
		TqWalkedRun run;

		CHECK_FOR_INTERRUPTS();
		if (tq_scan_fetch(order) &&
			pending_read_waiting(order->slot, tasks, &run))
			more = visit(&run, arg);
	}
	tq_scan_close(tasks);
	tq_scan_end(order);
	tq_table_close(table);
	UnregisterSnapshot(snapshot);
}

/* Returns when the first run of a priority was scheduled, from `low` on; 0: none. */
static TimestampTz
first_scheduled(TqScan *order, int32 queue, int priority, int64 low)
{
	/* Where claims have been, the first pass mostly finds it near. */
	int64 below = low == TQ_CURSOR_BEGIN || low < 0
					  ? PG_INT64_MAX
					  : Min(low, PG_INT64_MAX - NEAR_IDS(1)) + NEAR_IDS(1);
	int64 seq;

	while (low < below)
	{
		tq_scan_seek_range(order, Int32GetDatum(queue),
						   Int16GetDatum(priority), low, below);
		while (tq_scan_next_entry(order, &seq))
		{
			CHECK_FOR_INTERRUPTS();
			if (tq_scan_fetch(order))
				return tq_row_time(order->slot, Anum_pending_scheduled);
		}
		low = below;
		below = PG_INT64_MAX;
	}
	return 0;
}

/*
 * Sets oldest[] to since when the first run of each queue has been scheduled, of
 * any priority; 0: none is pending.
 */
void
tq_pending_oldest(const int32 *queues, int n, TimestampTz *oldest)
{
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());
	TqTable *table = tq_table_open(&pending);
	TqScan *order = tq_scan_begin_range(table, &pending_order, 3, snapshot);

	for (int i = 0; i < n; i++)
	{
		TqCursor cursor;

		oldest[i] = 0;
		tq_cursor_read(RelationGetRelid(table->rel), queues[i], &cursor);
		for (int priority = TQ_PRIORITY_HIGHEST;
			 priority >= TQ_PRIORITY_LOWEST; priority--)
		{
			TimestampTz first = first_scheduled(order, queues[i], priority,
												cursor.low[priority]);

			if (first != 0 && (oldest[i] == 0 || first < oldest[i]))
				oldest[i] = first;
		}
	}
	tq_scan_end(order);
	tq_table_close(table);
	UnregisterSnapshot(snapshot);
}
