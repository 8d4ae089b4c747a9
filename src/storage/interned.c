/*
 * interned.c
 *	  Rows of queues, workers and policies: interns values to their numbers, and
 *	  deletes rows that nothing refers to.
 *
 * Two sessions that intern the same new value meet at its unique index: the
 * second waits for the first, and then reads the row that the first has
 * written.  That is so for queues and workers, whose names belong to those who
 * have rights to them.  A policy may be that of several applications, so its index is not unique, and
 * nothing waits: each session stores a row of its own.
 *
 * Backends cache the numbers of these rows, and hold no lock while they write
 * rows that refer to them.  So a row is deleted in three steps, in different
 * sweeps:
 *
 * 1. It is retired: an invalidation message empties the caches, the numbers that
 *	  sessions share are outdated (database.c), and a retired row is not cached
 *	  again.  A session that needs it revives it first, in its own transaction; in
 *	  place of a policy it stores another row.
 * 2. When every snapshot is newer than the transaction that retired it, no call
 *	  is left that has the number from a cache.  It is settled by another
 *	  transaction.
 * 3. When every snapshot and transaction is newer than that one, every row that
 *	  refers to it is visible.  If there is none, it is deleted.
 *
 * The lock of the row decides between a session that revives it and a sweep
 * that deletes it.  A session that finds it deleted inserts another one.
 *
 * No index says what a row is referred to by, because each task and each claim
 * would pay for it.  The sweep reads the tables that refer to them once, and
 * only if there is a row to retire or to delete; and it looks for such rows
 * once a day.
 */
#include "postgres.h"

#include "storage/procarray.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"

#include "../rows/rows.h"
#include "columns.h"
#include "registry.h"

TQ_NUMBERS(TQ_TASK_COLUMNS, task);
TQ_NUMBERS(TQ_RUN_COLUMNS, run);

/* A table whose rows have a number, and what refers to it. */
typedef struct Interned
{
	TqRelation *table;
	TqStatement *revive;
	TqRelation *large; /* the large table that refers to it, by this column */
	int column;
	TqStatement *others; /* finds those that other tables refer to */
	TqStatement *settle;
	TqStatement *find;
	TqStatement *retire;
	TqStatement *remove;
	const char *quota; /* setting that limits how many a role makes; or NULL */
} Interned;

#define REVIVE(table)                                                         \
	TQ_STATEMENT(                                                             \
		"UPDATE tq_internal." table                                           \
		" SET retired = NULL, settled = NULL, creator = session_user"         \
		" WHERE id = $1 AND retired IS NOT NULL",                             \
		INT4OID)

/*
 * $1 is the horizon, before which no snapshot and no transaction is.  A row that
 * a session is reviving is skipped, as in all of these, so that the sweep does
 * not wait for the end of that transaction.
 */
#define SETTLE(table)                                                         \
	TQ_STATEMENT("UPDATE tq_internal." table                                  \
				 " SET settled = pg_current_xact_id() WHERE id IN ("          \
				 "SELECT id FROM tq_internal." table                          \
				 " WHERE retired < $1 AND settled IS NULL"                    \
				 " FOR UPDATE SKIP LOCKED)",                                  \
				 XID8OID)

/* Rows that have expired before $2, and those that are settled. */
#define FIND(table, expired)                                                  \
	TQ_STATEMENT("SELECT id::bigint FROM tq_internal." table                  \
				 " WHERE settled < $1 OR (retired IS NULL AND " expired ")",  \
				 XID8OID, TIMESTAMPTZOID)

/* Retires those of the rows $1 that are not among the rows $2. */
#define RETIRE(table)                                                         \
	TQ_STATEMENT("UPDATE tq_internal." table                                  \
				 " SET retired = pg_current_xact_id() WHERE id IN ("          \
				 "SELECT id FROM tq_internal." table                          \
				 " WHERE id = ANY ($1) AND id <> ALL ($2)"                    \
				 " AND retired IS NULL FOR UPDATE SKIP LOCKED)",              \
				 INT8ARRAYOID, INT8ARRAYOID)

#define REMOVE(table)                                                         \
	TQ_STATEMENT("DELETE FROM tq_internal." table " WHERE id IN ("            \
				 "SELECT id FROM tq_internal." table                          \
				 " WHERE id = ANY ($1) AND id <> ALL ($2)"                    \
				 " AND settled < $3 FOR UPDATE SKIP LOCKED)"                  \
				 " RETURNING id::bigint",                                     \
				 INT8ARRAYOID, INT8ARRAYOID, XID8OID)

#define EXPIRED "(expires IS NULL OR expires < $2)"

static TqRelation task_table = TQ_RELATION("task");
static TqRelation run_table = TQ_RELATION("run");
static TqRelation queue_table = TQ_RELATION("queue");
static TqRelation worker_table = TQ_RELATION("worker");
static TqRelation policy_table = TQ_RELATION("policy");

static TqStatement begin_sweep = TQ_STATEMENT(
	"UPDATE tq_internal.activation SET swept = $1 WHERE ctid IN (SELECT ctid FROM tq_internal.activation"
	" WHERE coalesce(swept, since) < $1 - interval '1 day' OR swept > $1 + interval '1 day' FOR UPDATE SKIP LOCKED)",
	TIMESTAMPTZOID);

static TqStatement set_times_back =
	TQ_STATEMENT("SELECT WHERE tq_internal.set_times_back($1)", BOOLOID);

static TqStatement revive_worker = REVIVE("worker");
static TqStatement settle_workers = SETTLE("worker");
static TqStatement find_workers =
	FIND("worker",
		 EXPIRED " AND (quarantine_until IS NULL OR quarantine_until < $2)");
static TqStatement retire_workers = RETIRE("worker");
static TqStatement remove_workers = REMOVE("worker");
static TqStatement used_workers = TQ_STATEMENT(
	"SELECT DISTINCT worker::bigint FROM tq_internal.run_detail"
	" UNION ALL SELECT DISTINCT worker FROM tq_internal.departed_run WHERE worker IS NOT NULL"
	" UNION ALL SELECT DISTINCT worker FROM tq_internal.message WHERE worker IS NOT NULL",
	InvalidOid);

static TqStatement revive_queue = REVIVE("queue");
static TqStatement settle_queues = SETTLE("queue");
static TqStatement find_queues = FIND("queue", EXPIRED);
static TqStatement retire_queues = RETIRE("queue");
static TqStatement remove_queues = REMOVE("queue");
static TqStatement used_queues = TQ_STATEMENT(
	"SELECT DISTINCT queue::bigint FROM tq_internal.worker"
	" UNION ALL SELECT DISTINCT queue FROM tq_internal.dead_letter"
	" UNION ALL SELECT queue FROM tq_internal.queue_settings"
	" UNION ALL SELECT DISTINCT queue FROM tq_internal.task_group"
	" UNION ALL SELECT DISTINCT queue FROM tq_internal.departed"
	" UNION ALL SELECT DISTINCT queue FROM tq_internal.foreign_dependency",
	InvalidOid);

static TqStatement settle_policies = SETTLE("policy");
static TqStatement find_policies = FIND("policy", "$2 IS NOT NULL");
static TqStatement retire_policies = RETIRE("policy");
static TqStatement remove_policies = REMOVE("policy");

static const Interned interned[] =
	{[TQ_INTERNED_WORKER] = {&worker_table, &revive_worker, &run_table,
							 Anum_run_worker, &used_workers, &settle_workers,
							 &find_workers, &retire_workers, &remove_workers,
							 "tq.max_workers"},
	 [TQ_INTERNED_QUEUE] = {&queue_table, &revive_queue, &task_table,
							Anum_task_queue, &used_queues, &settle_queues,
							&find_queues, &retire_queues, &remove_queues,
							"tq.max_queues"},
	 [TQ_INTERNED_POLICY] = {&policy_table, NULL, &task_table,
							 Anum_task_policy, NULL, &settle_policies,
							 &find_policies, &retire_policies,
							 &remove_policies}};

/*
 * Numbers are int, because every task and every run has some, and calls that
 * are rolled back burn them: 2^31 in days.  So the sequences begin again after
 * their end.  An insertion that gets a number in use inserts nothing, and the
 * next one gets the next number.  A number that was free again refers to
 * nothing, as above; what shared memory has by it is a hint, or goes with the row
 * or the transaction that made it.
 *
 * Returns the number of a value, after inserting its row, or reviving it, if
 * necessary.  What was read before is read again then.  Only a session that has
 * added the row looks at the quota of its role.
 */
int32
tq_intern(TqInterned kind, TqStatement *insert, const Datum *values,
		  TqFindNumber *find, void *value)
{
	bool is_retired = false;
	int32 id = find(value, &is_retired);

	while (id == 0 || is_retired)
	{
		tq_name_interning();
		if ((id != 0 ? tq_spi_run(interned[kind].revive,
								  TQ_VALUES(Int32GetDatum(id)), NULL)
					 : tq_spi_run(insert, values, NULL)) > 0)
			tq_quota_check(interned[kind].quota);
		is_retired = false;
		id = find(value, &is_retired);
	}
	return id;
}

/* Numbers without duplicates, and in no order. */
typedef struct Numbers
{
	int64 *values;
	int n;
	int room;
	HTAB *seen;
} Numbers;

static void
add_number(Numbers *numbers, int64 value)
{
	bool found;

	(void) hash_search(numbers->seen, &value, HASH_ENTER, &found);
	if (found)
		return;
	if (numbers->n == numbers->room)
	{
		numbers->room *= 2;
		numbers->values = repalloc_huge(numbers->values,
										sizeof(int64) * numbers->room);
	}
	numbers->values[numbers->n++] = value;
}

/* Returns the rows that something refers to, as an array. */
static Datum
rows_in_use(const Interned *which)
{
	HASHCTL control = {.keysize = sizeof(int64), .entrysize = sizeof(int64)};
	Numbers numbers = {.room = 64};
	TqTable *table;
	Snapshot snapshot;
	TableScanDesc scan;
	TupleTableSlot *slot;

	numbers.values = palloc(sizeof(int64) * numbers.room);
	numbers.seen = hash_create("tq rows in use", 1024, &control,
							   HASH_ELEM | HASH_BLOBS);
	/* Add the values of a column, all rows of whose table are read. */
	table = tq_table_open(which->large);
	snapshot = RegisterSnapshot(tq_spi_snapshot());
	scan = TqTableBeginScan(table->rel, snapshot);
	slot = table_slot_create(table->rel, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		add_number(&numbers, tq_row_int32(slot, which->column));
	}
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	tq_table_close(table);
	if (which->others != NULL)
	{
		int n;
		int64 *others = tq_spi_run_ids(which->others, NULL, &n);

		for (int i = 0; i < n; i++)
			add_number(&numbers, others[i]);
	}
	hash_destroy(numbers.seen);
	return tq_array_int64(numbers.values, numbers.n);
}

/* Deletes those of the rows that are settled; returns how many. */
static uint64
remove_rows(const Interned *which, const Datum *values)
{
	int n;
	int64 *removed = tq_spi_run_ids(which->remove, values, &n);

	for (int i = 0; i < n && which->table == &queue_table; i++)
		tq_count(TQ_COUNTED_QUEUE, removed[i], TQ_QUEUE_GONE, 1);
	return n;
}

/* Takes the rows of one table a step further. */
static void
sweep(const Interned *which, Datum horizon, TimestampTz before)
{
	Datum find[2] = {horizon, TimestampTzGetDatum(before)};
	Datum values[3] = {(Datum) 0, (Datum) 0, horizon};
	int64 *candidates;
	uint64 changed;
	int n;

	tq_spi_run(which->settle, &horizon, NULL);
	candidates = tq_spi_run_ids(which->find, find, &n);
	if (n == 0)
		return;
	values[0] = tq_array_int64(candidates, n);
	values[1] = rows_in_use(which);
	changed = tq_spi_run(which->retire, values, NULL);
	changed += remove_rows(which, values);
	if (changed == 0)
		return;
	tq_name_interning();
	CacheInvalidateRelcacheByRelid(tq_relation_oid(which->table));
	if (which->table == &queue_table)
		tq_facts_change_at_commit();
}

/*
 * Sets back times that a clock which was ahead has left, if there are any
 * (src/sql/clock.sql), among them when queues and workers were seen.  The first
 * call of a process looks for more.
 */
void
tq_times_set_back(bool is_first)
{
	if (!tq_spi_exists(&set_times_back, TQ_VALUES(BoolGetDatum(is_first))))
		return;
	tq_name_interning();
	for (int i = 0; i < lengthof(interned); i++)
		CacheInvalidateRelcacheByRelid(tq_relation_oid(interned[i].table));
}

/*
 * Returns a transaction id before which no transaction of this database is
 * running, and which no snapshot precedes.
 */
static FullTransactionId
oldest_needed(void)
{
	TqTable *table = tq_table_open(&queue_table);
	TransactionId oldest = GetOldestNonRemovableTransactionId(table->rel);
	FullTransactionId next = ReadNextFullTransactionId();

	tq_table_close(table);
	return FullTransactionIdFromU64(
		U64FromFullTransactionId(next) -
		(uint32) (XidFromFullTransactionId(next) - oldest));
}

/*
 * Retires and deletes rows that have expired before that time and that nothing
 * refers to, unless that was done within a day.
 */
void
tq_interned_sweep(TimestampTz before, TimestampTz now)
{
	Datum horizon;

	if (tq_spi_run(&begin_sweep, TQ_VALUES(TimestampTzGetDatum(now)), NULL) ==
		0)
		return;
	horizon = FullTransactionIdGetDatum(oldest_needed());
	for (int i = 0; i < lengthof(interned); i++)
		sweep(&interned[i], horizon, before);
}
