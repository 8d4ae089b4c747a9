/*
 * run_table.c
 *	  Rows of tq_internal.run, and the location of a task.
 *
 * The location of a task is the table that holds its current row: unscheduled,
 * pending, delayed, or else run, whose last row of the task is current.  Every
 * transition first locks the current row, so two transitions of one task
 * exclude each other.  tq_run_lock() is the only way to do that for a single
 * task:
 *
 *	look up the current row; lock it; look it up again.
 *
 * A row of the first three tables that could be locked is still current,
 * because a task leaves these tables by deleting the row.  A row of run
 * remains when a later run is added.  So the location is looked up again, with
 * a snapshot that is taken after the lock: a session that adds a run holds the
 * lock on the run before it.
 *
 * Order of locks within a call: first rows of pending, delayed and run, by
 * task id; then rows of unscheduled, by task id (dependency.c).
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "columns.h"
#include "tasks.h"

static TqStatement last_taken_until = TQ_STATEMENT(
	"SELECT max(taken_until) FROM tq_internal.run WHERE state = $1", INT2OID);

static TqStatement list_held = TQ_STATEMENT(
	"SELECT t.task_id, r.run_id, r.worker FROM tq_internal.claimed_run r"
	" JOIN tq_internal.task t ON t.id = r.task WHERE r.worker = ANY ($1) ORDER BY r.started, r.task",
	INT4ARRAYOID);

static TqRelation run_table = TQ_RELATION("run");
static TqRelation run_by_key = TQ_RELATION("run_pkey");

TQ_NUMBERS(TQ_RUN_COLUMNS, run);

/* ---- through the access methods ---- */

static void
run_put_run(TupleTableSlot *slot, const TqRun *row)
{
	TQ_RUN_COLUMNS(TQ_PUT, run);
}

/* Reads a row of run. */
void
tq_run_read(TupleTableSlot *slot, TqRun *row)
{
	slot_getallattrs(slot);
	*row = (TqRun){.location = TQ_LOCATION_RUN};
	TQ_RUN_COLUMNS(TQ_GET, run);
}

static void
run_read_run(TupleTableSlot *slot, void *run)
{
	tq_run_read(slot, run);
}

/* Reads a run, by the snapshot of the call; returns false if it has no row. */
bool
tq_run_find(int64 task, int run_id, TqRun *run)
{
	return run_id >= 0 && run_id <= PG_INT16_MAX &&
		   tq_scan_read(tq_scan_open(&run_table, &run_by_key, 2, NULL),
						Int64GetDatum(task), Int16GetDatum(run_id), 0,
						run_read_run, run);
}

/* Returns when the last claim ends of all running runs; 0 if there is none. */
TimestampTz
tq_run_last_taken_until(void)
{
	return tq_spi_run_int64(&last_taken_until,
							TQ_VALUES(Int16GetDatum(TQ_STATE_RUNNING)), 0);
}

/* Inserts runs that have no row in run yet. */
void
tq_runs_insert(const TqRun *runs, int n)
{
	TqTable *table;

	if (n == 0)
		return;
	table = tq_table_open(&run_table);
	for (int i = 0; i < n; i++)
		run_put_run(tq_table_new_row(table), &runs[i]);
	tq_table_close(table);
}

/*
 * The runs that this session has claimed, by task_id, with the TIDs of their
 * rows.  The session that claims a run usually resolves it, and is spared the
 * look-ups in the indexes: an eighth of the CPU of bench claim.100.  An entry
 * is only a hint.  The row at the TID is used only if it is visible and belongs
 * to the run.  The task may have been deleted, and another task may have its
 * task_id; report.c handles both.  A transaction that aborts may also have
 * created the task, so its entries must be removed: all entries are, because
 * such an end is rare.
 */
typedef struct Claim
{
	TqSlug task_id;
	TqRecalled recalled; /* task 0: the entry is not used */
	int32 run_id;
	ItemPointerData location;
} Claim;

#define CLAIMS_KEPT 2048 /* a power of two */

static Claim claims[CLAIMS_KEPT];
static Oid claims_of = InvalidOid; /* oid of the table that they are about */
static bool added_claims = false;  /* by the current transaction */

static Claim *
claim_of(const TqSlug *task_id)
{
	return &claims[TQ_SLUG_HASH(task_id) % CLAIMS_KEPT];
}

/*
 * Forgets the claims, because this transaction has added some.  PREPARE counts as
 * an abort, because any session may still roll the transaction back.
 */
static void
forget_claims(void)
{
	memset(claims, 0, sizeof(claims));
	added_claims = false;
}

static void
claims_abort(SubTransactionId id)
{
	forget_claims();
}

static void
claims_reset(void)
{
	added_claims = false;
}

const TqXactEnd tq_run_xact_end = {.has_work = &added_claims,
								   .abort = claims_abort,
								   .reset = claims_reset,
								   .prepared = forget_claims};

static void
keep_claim(const TqClaimed *claimed, int32 worker, int32 queue,
		   const TupleTableSlot *slot)
{
	*claim_of(&claimed->task_id) =
		(Claim){.task_id = claimed->task_id,
				.recalled = {.task = claimed->task,
							 .group_id = claimed->group_id,
							 .policy = claimed->policy,
							 .queue = queue,
							 .worker = worker},
				.run_id = claimed->run_id,
				.location = slot->tts_tid};
}

/*
 * Returns what is remembered of a run in *recalled; returns false if this
 * session has not claimed that run, or the entry is gone.
 */
bool
tq_runs_recall(const TqSlug *task_id, int run_id, TqRecalled *recalled)
{
	const Claim *claim = claim_of(task_id);

	if (claims_of != tq_relation_oid(&run_table) ||
		claim->recalled.task == 0 || claim->run_id != run_id ||
		tq_slug_compare(&claim->task_id, task_id) != 0)
		return false;
	*recalled = claim->recalled;
	return true;
}

static void
put_started(TqTable *table, const TqClaimed *claimed, int32 worker)
{
	TqRun run = {.task = claimed->task,
				 .run_id = claimed->run_id,
				 .state = TQ_STATE_RUNNING,
				 .created = claimed->created,
				 .retries_left = claimed->retries_left,
				 .worker = worker,
				 .scheduled = claimed->scheduled,
				 .started = claimed->started,
				 .taken_until = claimed->taken_until,
				 .has_detail = claimed->has_detail};

	run_put_run(tq_table_new_row(table), &run);
}

/* Inserts the runs that a worker has claimed, as running. */
void
tq_runs_start(const TqClaimed *claimed, int n, int32 worker, int32 queue)
{
	TqTable *table = tq_table_open(&run_table);
	Oid oid = RelationGetRelid(table->rel);

	/*
	 * Prepare the entries for the claims.  At first they are zero, and memory
	 * that is never used costs nothing.
	 */
	if (claims_of != oid && OidIsValid(claims_of))
		memset(claims, 0, sizeof(claims));
	claims_of = oid;
	added_claims = true;
	for (int done = 0; done < n; done += TQ_TABLE_BATCH)
	{
		int some = Min(n - done, TQ_TABLE_BATCH);

		for (int i = 0; i < some; i++)
			put_started(table, &claimed[done + i], worker);
		tq_table_flush(table);
		for (int i = 0; i < some; i++)
			keep_claim(&claimed[done + i], worker, queue, table->slots[i]);
	}
	tq_table_close(table);
}

/*
 * Reads a run, whose end the caller decides, and writes its row, without a
 * lock in between: the write waits for a concurrent writer and fails if that
 * has changed the row.  The caller then reads again.
 */
struct TqRunWriter
{
	TqTable *table;
	Snapshot snapshot;
	TqScan *by_key;          /* NULL: not needed yet */
	TupleTableSlot *at;      /* a row that was found by its TID */
	TupleTableSlot *found;   /* the row that was read last: at, or by_key's */
	TupleTableSlot *version; /* its new version */
	BlockNumber blocks;      /* of the table; the lock prevents truncation */
};

static void
begin_reading(TqRunWriter *writer)
{
	writer->snapshot = RegisterSnapshot(tq_spi_snapshot());
	writer->by_key = NULL;
}

static void
end_reading(TqRunWriter *writer)
{
	if (writer->by_key != NULL)
		tq_scan_end(writer->by_key);
	UnregisterSnapshot(writer->snapshot);
}

/* Begins to read and write rows of run. */
TqRunWriter *
tq_run_writer_begin(void)
{
	TqRunWriter *writer = palloc0(sizeof(TqRunWriter));

	writer->table = tq_table_open(&run_table);
	writer->blocks = RelationGetNumberOfBlocks(writer->table->rel);
	writer->at = table_slot_create(writer->table->rel, NULL);
	writer->version = table_slot_create(writer->table->rel, NULL);
	begin_reading(writer);
	return writer;
}

/* Ends reading and writing rows of run. */
void
tq_run_writer_end(TqRunWriter *writer)
{
	end_reading(writer);
	ExecDropSingleTupleTableSlot(writer->at);
	ExecDropSingleTupleTableSlot(writer->version);
	tq_table_close(writer->table);
}

/*
 * Takes a new snapshot, so that later reads see what was committed meanwhile.
 */
void
tq_run_writer_renew(TqRunWriter *writer)
{
	end_reading(writer);
	begin_reading(writer);
}

/*
 * Finds the row at the TID where this session inserted it; returns false if
 * that is not the row of this run.
 */
static bool
find_by_position(TqRunWriter *writer, const TqSlug *task_id, int64 task,
				 int run_id)
{
	Claim *claim = claim_of(task_id);
	TupleTableSlot *slot = writer->at;

	if (claim->recalled.task != task || claim->run_id != run_id ||
		claims_of != RelationGetRelid(writer->table->rel) ||
		tq_slug_compare(&claim->task_id, task_id) != 0 ||
		ItemPointerGetBlockNumber(&claim->location) >= writer->blocks)
		return false;
	writer->found = slot;
	return table_tuple_fetch_row_version(writer->table->rel, &claim->location,
										 writer->snapshot, slot) &&
		   tq_row_int64(slot, Anum_run_task) == task &&
		   tq_row_int16(slot, Anum_run_run_id) == run_id;
}

/*
 * Finds a row by task and run.  Does not look for a run id that is out of the
 * range of the column.
 */
static bool
find_by_key(TqRunWriter *writer, int64 task, int run_id)
{
	if (run_id < 0 || run_id > PG_INT16_MAX)
		return false;
	if (writer->by_key == NULL)
		writer->by_key = tq_scan_begin(writer->table, &run_by_key, 2,
									   writer->snapshot);
	writer->found = writer->by_key->slot;
	return tq_scan_find(writer->by_key, Int64GetDatum(task),
						Int16GetDatum(run_id), 0);
}

/* Reads a run; returns false if it has no row. */
bool
tq_run_writer_read(TqRunWriter *writer, const TqSlug *task_id, int64 task,
				   int run_id, TqRun *run)
{
	if (!find_by_position(writer, task_id, task, run_id) &&
		!find_by_key(writer, task, run_id))
		return false;
	tq_run_read(writer->found, run);
	return true;
}

/*
 * Writes the run that was read last; returns false if it has changed and must
 * be read again.
 */
bool
tq_run_writer_write(TqRunWriter *writer, const TqRun *run)
{
	TM_Result result;

	tq_table_copy_values(writer->version, writer->found);
	run_put_run(writer->version, run);
	result = tq_table_update(writer->table, &writer->found->tts_tid,
							 writer->version);
	if (result == TM_Ok)
		return true;
	tq_table_changed_under_us(writer->table, result);
	tq_run_writer_renew(writer);
	return false;
}

/*
 * Deletes the run that was read last; returns false if it has changed and must
 * be read again.
 */
bool
tq_run_writer_delete(TqRunWriter *writer)
{
	TM_Result result = tq_table_delete(writer->table, &writer->found->tts_tid,
									   true);

	if (result == TM_Ok)
		return true;
	tq_table_changed_under_us(writer->table, result);
	tq_run_writer_renew(writer);
	return false;
}

/* Updates runs whose rows are locked. */
void
tq_runs_update(const TqRun *runs, int n)
{
	TqRunWriter *writer;

	if (n == 0)
		return;
	writer = tq_run_writer_begin();
	for (int i = 0; i < n; i++)
	{
		if (!find_by_key(writer, runs[i].task, runs[i].run_id) ||
			!tq_run_writer_write(writer, &runs[i]))
			elog(ERROR, "run %d of task " INT64_FORMAT " was not locked",
				 runs[i].run_id, runs[i].task);
	}
	tq_run_writer_end(writer);
}

/* ---- last runs ---- */

/* Begins to read the last runs of these tasks, or some of them, by id. */
TqRunReader *
tq_run_reader_begin(const int64 *tasks, int n)
{
	return tq_scan_open_ascending(&run_table, &run_by_key, tasks, n, NULL);
}

/*
 * Reads the last row of a task in run, without a lock; returns false if it has
 * none.  The task may have a later run that is pending.
 */
bool
tq_run_reader_last(TqRunReader *reader, int64 task, TqRun *run)
{
	bool found = false;

	while (tq_scan_next_of(reader, task))
	{
		tq_run_read(reader->slot, run);
		found = true;
	}
	return found;
}

/* Ends reading the last runs of tasks. */
void
tq_run_reader_end(TqRunReader *reader)
{
	tq_scan_close(reader);
}

/* ---- runs of a worker ---- */

static void
read_held(TupleTableSlot *slot, void *run)
{
	*(TqHeldRun *) run = (TqHeldRun){.task_id = tq_row_slug(slot, 1),
									 .run_id = tq_row_int16(slot, 2),
									 .worker = tq_row_int32(slot, 3)};
}

/* Returns the running runs of these workers, oldest first. */
TqHeldRun *
tq_runs_held(ArrayType *workers, int *found)
{
	return tq_spi_read_all(&list_held, TQ_VALUES(PointerGetDatum(workers)),
						   read_held, sizeof(TqHeldRun), found);
}
