/*
 * index_scan.c
 *	  Finds rows by an index, and returns their columns.
 *
 * A scan looks for equal values of the first columns of an index, and is
 * repeated with other values by tq_scan_seek().  A range scan looks for a range
 * of the last of these columns, a bigint.  tq_scan_open() is for scans that
 * also open their table; tq_scan_begin() is for those in a table that the
 * caller has open.  A scan to which no snapshot is given uses that of the
 * statement.
 *
 * A range scan should have an end even where the caller stops before it: the
 * access method reads all entries of a leaf page that match, which is up to
 * four hundred, before it returns the first.  Claiming one task of many takes
 * a sixth fewer instructions since its scans end soon.
 *
 * A scan of ascending values goes once through the entries between the first
 * and the last of them.  It descends again only where many entries are between
 * two values, hence once for a table that has none of them.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_opfamily.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "rows.h"

/* A value follows another closely if it is at most so much greater. */
#define NEAR 16

/* Values that are read together when they follow each other closely. */
#define RANGE 128

/*
 * Returns the equality function of a column of an index.  Those of the types
 * that most indexes of tq have are known without a look-up in the catalogs.
 */
static Oid
equality_function(Oid opfamily, Oid type)
{
	switch (opfamily)
	{
		case INTEGER_BTREE_FAM_OID:
			if (type == INT8OID)
				return F_INT8EQ;
			if (type == INT4OID)
				return F_INT4EQ;
			if (type == INT2OID)
				return F_INT2EQ;
			break;
		case TEXT_BTREE_FAM_OID:
			if (type == TEXTOID)
				return F_TEXTEQ;
			break;
	}
	return get_opcode(
		get_opfamily_member(opfamily, type, type, BTEqualStrategyNumber));
}

/*
 * Opens an index for a scan by its first ncolumns columns with equal values, and
 * registers the snapshot of the statement if *snapshot is NULL.
 */
static TqScan *
open_index(TqTable *table, TqRelation *index, int ncolumns, Snapshot *snapshot)
{
	TqScan *scan = palloc0(sizeof(TqScan));

	if (*snapshot == NULL)
		*snapshot = scan->registered = RegisterSnapshot(tq_spi_snapshot());
	scan->table = table;
	scan->index = index_open(tq_relation_oid(index), table->lock_mode);
	scan->nkeys = ncolumns;
	scan->slot = table_slot_create(table->rel, NULL);
	if (index->nkeys == 0)
	{
		/*
		 * Look up the equality functions of an index, which are kept until the
		 * index changes.
		 */
		index->nkeys = Min(IndexRelationGetNumberOfKeyAttributes(scan->index),
						   TQ_MAX_KEYS);
		for (int i = 0; i < index->nkeys; i++)
			fmgr_info_cxt(equality_function(scan->index->rd_opfamily[i],
											scan->index->rd_opcintype[i]),
						  &index->equal[i], CacheMemoryContext);
	}
	for (int i = 0; i < ncolumns; i++)
		ScanKeyEntryInitializeWithInfo(&scan->keys[i], 0, i + 1,
									   BTEqualStrategyNumber, InvalidOid,
									   scan->index->rd_indcollation[i],
									   &index->equal[i], (Datum) 0);
	return scan;
}

/* Begins a scan for equal values of the first nkeys columns of an index. */
TqScan *
tq_scan_begin(TqTable *table, TqRelation *index, int nkeys, Snapshot snapshot)
{
	TqScan *scan = open_index(table, index, nkeys, &snapshot);

	scan->desc = TqIndexBeginScan(table->rel, scan->index, snapshot, nkeys);
	return scan;
}

/*
 * Begins a scan for a range of column `ncolumns` of an index, a bigint, and for
 * equal values of the columns before it.  The scan also returns the index
 * entries.
 */
TqScan *
tq_scan_begin_range(TqTable *table, TqRelation *index, int ncolumns,
					Snapshot snapshot)
{
	TqScan *scan = open_index(table, index, ncolumns, &snapshot);

	ScanKeyInit(&scan->keys[ncolumns - 1], ncolumns,
				BTGreaterEqualStrategyNumber, F_INT8GE, (Datum) 0);
	ScanKeyInit(&scan->keys[ncolumns], ncolumns, BTLessStrategyNumber,
				F_INT8LT, (Datum) 0);
	scan->nkeys = ncolumns + 1;
	scan->at = PG_INT64_MAX; /* nothing follows it */
	scan->desc = TqIndexBeginScan(table->rel, scan->index, snapshot,
								  scan->nkeys);
	scan->desc->xs_want_itup = true;
	return scan;
}

/*
 * Has a scan that is about to be restarted use another snapshot, which outlives
 * it.
 */
void
tq_scan_renew(TqScan *scan, Snapshot snapshot)
{
	scan->desc->xs_snapshot = snapshot;
	scan->at = PG_INT64_MAX; /* nothing that was read counts any more */
}

/*
 * Restarts a scan with these values; those beyond the number of keys are
 * ignored.
 */
void
tq_scan_seek(TqScan *scan, Datum a, Datum b, Datum c)
{
	Datum values[TQ_MAX_KEYS] = {a, b, c};

	for (int i = 0; i < scan->nkeys; i++)
		scan->keys[i].sk_argument = values[i];
	index_rescan(scan->desc, scan->keys, scan->nkeys, NULL, 0);
}

/*
 * Restarts a range scan at the values from `from` on and below `below`; a and b
 * are those of the columns before.
 */
void
tq_scan_seek_range(TqScan *scan, Datum a, Datum b, int64 from, int64 below)
{
	Datum values[TQ_MAX_KEYS - 1] = {a, b};
	int last = scan->nkeys - 2;

	for (int i = 0; i < last; i++)
		scan->keys[i].sk_argument = values[i];
	scan->keys[last].sk_argument = Int64GetDatum(from);
	scan->keys[last + 1].sk_argument = Int64GetDatum(below);
	index_rescan(scan->desc, scan->keys, scan->nkeys, NULL, 0);
}

/*
 * Moves a range scan to the next index entry, and sets *value to its value in
 * the range; returns false if there is none.
 */
bool
tq_scan_next_entry(TqScan *scan, int64 *value)
{
	IndexScanDesc desc = scan->desc;
	bool isnull;

	if (index_getnext_tid(desc, ForwardScanDirection) == NULL)
		return false;
	*value = DatumGetInt64(index_getattr(desc->xs_itup, scan->nkeys - 1,
										 desc->xs_itupdesc, &isnull));
	return true;
}

/* Moves to the row of the present index entry; returns false if it is gone. */
bool
tq_scan_fetch(TqScan *scan)
{
	return index_fetch_heap(scan->desc, scan->slot);
}

/*
 * Moves a range scan that has an end to the row of this value, which is greater
 * than those that it has returned; returns false if there is none.
 */
static bool
advance_to(TqScan *scan, int64 value)
{
	while (tq_scan_next_entry(scan, &scan->at))
	{
		if (scan->at == value && tq_scan_fetch(scan))
			return true;
		if (scan->at > value)
			return false;
	}
	scan->at = scan->below;
	return false;
}

/*
 * Returns whether there is a row with this value, and moves to it, in a range
 * scan of one column.  Values that follow each other closely are found in one
 * scan, which takes a quarter of the instructions of a descent for each.
 */
bool
tq_scan_find_near(TqScan *scan, int64 value)
{
	bool follows = value > scan->at && value - scan->at <= NEAR;

	if (follows && value < scan->below && advance_to(scan, value))
		return true;
	scan->at = value - 1;
	scan->below = value + (follows ? RANGE : 1);
	tq_scan_seek_range(scan, 0, 0, value, scan->below);
	return advance_to(scan, value);
}

/* Moves to the entries from this value on. */
static void
seek_ascending(TqScan *scan, int64 from)
{
	tq_scan_seek_range(scan, 0, 0, from, scan->below);
	scan->at = from - 1;
	scan->is_ahead = false;
}

/*
 * Opens a table for tq_scan_next_of() with these values, which ascend, of the
 * first column of an index, a bigint.
 */
TqScan *
tq_scan_open_ascending(TqRelation *which, TqRelation *index,
					   const int64 *values, int n, Snapshot snapshot)
{
	TqScan *scan = tq_scan_begin_range(tq_table_open(which), index, 1,
									   snapshot);

	scan->below = n == 0 ? 0 : values[n - 1] + 1;
	seek_ascending(scan, n == 0 ? 0 : values[0]);
	return scan;
}

/* Begins again at the first value, with another snapshot, which outlives it. */
void
tq_scan_restart(TqScan *scan, int64 first, Snapshot snapshot)
{
	tq_scan_renew(scan, snapshot);
	seek_ascending(scan, first);
}

/*
 * Moves to the next row with this value, which is not less than that of the call
 * before; returns false if there is none.
 */
bool
tq_scan_next_of(TqScan *scan, int64 value)
{
	for (int passed = 0;; passed++)
	{
		if (!scan->is_ahead && !tq_scan_next_entry(scan, &scan->at))
			scan->at = PG_INT64_MAX;
		scan->is_ahead = scan->at > value;
		if (scan->is_ahead)
			return false;
		if (scan->at == value && tq_scan_fetch(scan))
			return true;
		if (scan->at < value && passed == NEAR)
			seek_ascending(scan, value);
	}
}

/*
 * Marks those of these values, which ascend, that a row has in the first column
 * of an index, a bigint.
 */
void
tq_scan_mark(TqRelation *which, TqRelation *index, const int64 *values, int n,
			 bool *marked)
{
	TqTable *table = tq_table_open(which);
	bool is_empty = RelationGetNumberOfBlocks(table->rel) == 0;
	TqScan *scan;

	tq_table_close(table);
	if (is_empty || n == 0)
		return;
	scan = tq_scan_open_ascending(which, index, values, n, NULL);
	for (int i = 0; i < n && scan->at < PG_INT64_MAX; i++)
		marked[i] = tq_scan_next_of(scan, values[i]) || marked[i];
	tq_scan_close(scan);
}

/* Returns those of these values, in the same way. */
int64 *
tq_scan_those_in(TqRelation *which, TqRelation *index, const int64 *values,
				 int n, int *found)
{
	bool *marked = palloc0(sizeof(bool) * Max(n, 1));
	int64 *those = palloc(sizeof(int64) * Max(n, 1));

	tq_scan_mark(which, index, values, n, marked);
	*found = 0;
	for (int i = 0; i < n; i++)
	{
		if (marked[i])
			those[(*found)++] = values[i];
	}
	pfree(marked);
	return those;
}

/* Moves to the next row; returns false if there is none. */
bool
tq_scan_next(TqScan *scan)
{
	return index_getnext_slot(scan->desc, ForwardScanDirection, scan->slot);
}

/* Returns whether there is a row with these values, and moves to it. */
bool
tq_scan_find(TqScan *scan, Datum a, Datum b, Datum c)
{
	tq_scan_seek(scan, a, b, c);
	return tq_scan_next(scan);
}

/* Like tq_scan_find(), for the last row in the order of the index. */
bool
tq_scan_find_last(TqScan *scan, Datum a, Datum b, Datum c)
{
	tq_scan_seek(scan, a, b, c);
	return tq_scan_previous(scan);
}

/* Moves to the row before; returns false if there is none. */
bool
tq_scan_previous(TqScan *scan)
{
	return index_getnext_slot(scan->desc, BackwardScanDirection, scan->slot);
}

/* Ends a scan; keeps the lock on the index. */
void
tq_scan_end(TqScan *scan)
{
	index_endscan(scan->desc);
	ExecDropSingleTupleTableSlot(scan->slot);
	index_close(scan->index, NoLock);
	if (scan->registered != NULL)
		UnregisterSnapshot(scan->registered);
}

/* Ends a scan that was begun with its table; keeps the locks. */
void
tq_scan_close(TqScan *scan)
{
	TqTable *table = scan->table;

	tq_scan_end(scan);
	tq_table_close(table);
}

/*
 * Reads the row with these values and closes the scan; returns false if there
 * is none.
 */
bool
tq_scan_read(TqScan *scan, Datum a, Datum b, Datum c, TqReader *read,
			 void *row)
{
	bool found = tq_scan_find(scan, a, b, c);

	if (found)
		read(scan->slot, row);
	tq_scan_close(scan);
	return found;
}

/* ---- columns of a row ---- */

/* Returns a column as it is stored; 0 for NULL. */
Datum
tq_row_value(TupleTableSlot *slot, int column)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);

	return isnull ? (Datum) 0 : value;
}

/* Returns a bigint or time; 0 for NULL. */
int64
tq_row_int64(TupleTableSlot *slot, int column)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

/* Returns a copy of a text, or NULL. */
char *
tq_row_text(TupleTableSlot *slot, int column)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

/* Returns a copy of a text, or of if_null for NULL. */
char *
tq_row_text_or(TupleTableSlot *slot, int column, const char *if_null)
{
	char *text = tq_row_text(slot, column);

	return text != NULL ? text : pstrdup(if_null);
}

/*
 * Returns a copy of a jsonb or array, neither compressed nor out of line; or
 * NULL.
 */
void *
tq_row_varlena(TupleTableSlot *slot, int column)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);

	return isnull ? NULL : PG_DETOAST_DATUM_COPY(value);
}

/*
 * Returns whether another transaction in progress holds a lock on the current
 * row.
 */
bool
tq_row_is_locked(TupleTableSlot *slot)
{
	HeapTuple tuple = ExecFetchSlotHeapTuple(slot, false, NULL);
	TransactionId xmax = HeapTupleHeaderGetRawXmax(tuple->t_data);
	uint16 mask = tuple->t_data->t_infomask;

	if ((mask & HEAP_XMAX_INVALID) != 0 || !HEAP_XMAX_IS_LOCKED_ONLY(mask))
		return false;
	if ((mask & HEAP_XMAX_IS_MULTI) != 0)
	{
		MultiXactMember *members;
		int n = GetMultiXactIdMembers(xmax, &members, false, true);
		bool found = false;

		/* One of the members of a multixact is another transaction. */
		for (int i = 0; i < n && !found; i++)
			found = !TransactionIdIsCurrentTransactionId(members[i].xid) &&
					TransactionIdIsInProgress(members[i].xid);
		if (n > 0)
			pfree(members);
		return found;
	}
	return !TransactionIdIsCurrentTransactionId(xmax) &&
		   TransactionIdIsInProgress(xmax);
}

/*
 * ---- all rows of a small table, without a statement ----
 *
 * Every session reads some tables of a few rows in its first call, and seldom
 * again.  To parse and plan a statement for that costs far more than to read
 * the rows, and opens their indexes in addition: three such statements were
 * two thirds of the instructions of a session's first enqueue().
 */

/* Begins to read a table with the snapshot of a statement. */
TqTableScan *
tq_table_scan_open(TqRelation *which)
{
	TqTableScan *scan = palloc(sizeof(TqTableScan));

	scan->rel = table_open(tq_relation_oid(which), AccessShareLock);
	scan->snapshot = RegisterSnapshot(tq_spi_snapshot());
	scan->slot = table_slot_create(scan->rel, NULL);
	scan->desc = TqTableBeginScan(scan->rel, scan->snapshot);
	return scan;
}

/* Moves to the next row; returns false if there is none. */
bool
tq_table_scan_next(TqTableScan *scan)
{
	return table_scan_getnextslot(scan->desc, ForwardScanDirection,
								  scan->slot);
}

/* Ends the scan; keeps the lock on the table. */
void
tq_table_scan_close(TqTableScan *scan)
{
	table_endscan(scan->desc);
	ExecDropSingleTupleTableSlot(scan->slot);
	UnregisterSnapshot(scan->snapshot);
	table_close(scan->rel, NoLock);
	pfree(scan);
}
