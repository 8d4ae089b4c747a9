/*
 * insert_new.c
 *	  Inserts rows except those whose key exists already, or with another key.
 *
 * tq_table_flush_new() is INSERT ON CONFLICT DO NOTHING for many rows, whose
 * order is that in which it waits for other sessions.
 *
 * Why two sessions cannot both insert a key: the index looks for the key and
 * inserts the entry under one lock on its page, so the second session finds
 * the entry of the first.  The key is also looked up before the row is
 * inserted at all, so that other sessions rarely wait for a row that will be
 * deleted again.
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "rows.h"

/* Keys that are looked up one by one after one that may be taken. */
#define FEW 8

/* An insertion of the rows of a table that are not inserted yet. */
typedef struct Insertion
{
	TqTable *table;
	Oid arbiter;
	int column;      /* the key */
	Snapshot before; /* by which rows with the key were committed before */
	SnapshotData dirty;
	TqScan *by_key; /* sees rows of transactions in progress, too */
} Insertion;

/*
 * Waits for the transaction that is inserting or deleting the row that the scan
 * has found.  Returns false if there is none.
 */
static bool
wait_for_other(Insertion *insertion, Datum key)
{
	SnapshotData found = insertion->dirty;
	ItemPointerData tid = insertion->by_key->slot->tts_tid;
	TransactionId other = TransactionIdIsValid(found.xmin) ? found.xmin
														   : found.xmax;

	if (!TransactionIdIsValid(other))
		return false;
	tq_scan_seek(insertion->by_key, key, 0, 0); /* holds no page meanwhile */
	ExecClearTuple(insertion->by_key->slot);
	if (TransactionIdIsValid(found.xmin) && found.speculativeToken != 0)
		SpeculativeInsertionWait(found.xmin, found.speculativeToken);
	else
		XactLockTableWait(other, insertion->table->rel, &tid,
						  XLTW_InsertIndex);
	return true;
}

/*
 * Returns whether there is no row with the key of this one; waits for a
 * transaction that is inserting one to end.  Under an isolation level with a
 * single snapshot, raises a serialization failure if the row with the key was
 * committed after `before`, that is, while this call waited.
 */
static bool
key_is_free(Insertion *insertion, TupleTableSlot *slot)
{
	Datum key = slot->tts_values[insertion->column - 1];
	TqTable *table = insertion->table;
	TupleTableSlot *row;

	do
	{
		if (!tq_scan_find(insertion->by_key, key, 0, 0))
			return true;
	} while (wait_for_other(insertion, key));
	if (!IsolationUsesXactSnapshot())
		return false;
	row = table_slot_create(table->rel, NULL);
	if (!table_tuple_fetch_row_version(table->rel,
									   &insertion->by_key->slot->tts_tid,
									   insertion->before, row))
		tq_table_changed_under_us(table, TM_Updated);
	ExecDropSingleTupleTableSlot(row);
	return false;
}

/*
 * Handles a key that another session has inserted between key_is_free() and
 * the insertion of the index entry: deletes the row, waits until the
 * transaction with the key has ended, and tries again.  Returns false if the
 * key is taken.
 */
static bool
insert_again(Insertion *insertion, TupleTableSlot *slot)
{
	TqTable *table = insertion->table;

	do
	{
		CommandCounterIncrement();
		if (tq_table_delete(table, &slot->tts_tid, true) != TM_Ok)
			elog(ERROR, "could not delete a row that was just inserted");
		if (!key_is_free(insertion, slot))
			return false;
		table_tuple_insert(table->rel, slot, GetCurrentCommandId(true), 0,
						   NULL);
	} while (tq_table_insert_entries(table, &slot, 1, insertion->arbiter) ==
			 0);
	return true;
}

/*
 * Inserts the index entries of the new rows from this one on, and returns the
 * first whose key another row may have; the number of rows if there is none.
 */
static int
next_taken(TqTable *table, int from, Oid arbiter)
{
	return from + tq_table_insert_entries(table, &table->slots[from],
										  table->filled - from, arbiter);
}

/* Returns the keys of the new rows. */
static TqKeys
keys_of(const Insertion *insertion)
{
	const TqTable *table = insertion->table;
	TqKeys keys = {.heap = table->rel,
				   .index = insertion->by_key->index,
				   .n = table->filled,
				   .ncolumns = 1,
				   .values = palloc(sizeof(Datum) * table->filled)};

	for (int i = 0; i < table->filled; i++)
		keys.values[i] = table->slots[i]->tts_values[insertion->column - 1];
	return keys;
}

/*
 * Sets taken[] for the new rows whose key is not free.  Keys that ascend are
 * looked up page by page; a page of the index that has one of them already, after
 * some of them one by one.
 */
static void
find_taken(Insertion *insertion, bool *taken)
{
	TqTable *table = insertion->table;
	bool by_page = table->filled >= FEW;
	TqKeys keys = {.n = 0};
	int next = 0; /* where to try a page again */
	int i = 0;

	if (by_page)
		keys = keys_of(insertion);
	while (i < table->filled)
	{
		int absent = by_page && i >= next ? tq_keys_absent(&keys, i) : 0;

		i += absent;
		if (absent > 0)
			continue;
		if (i >= next)
			next = i + FEW;
		taken[i] = !key_is_free(insertion, table->slots[i]);
		i++;
	}
	if (by_page)
		pfree(keys.values);
}

/*
 * Moves the new rows whose key is free to the front, stores their original
 * positions in place[], and returns their number.
 */
static int
put_free_first(Insertion *insertion, int *position)
{
	TqTable *table = insertion->table;
	bool taken[TQ_TABLE_BATCH] = {false};
	int free_rows = 0;

	find_taken(insertion, taken);
	for (int i = 0; i < table->filled; i++)
	{
		TupleTableSlot *slot = table->slots[i];

		if (taken[i])
			continue;
		table->slots[i] = table->slots[free_rows];
		table->slots[free_rows] = slot;
		position[free_rows++] = i;
	}
	return free_rows;
}

/*
 * Inserts the new rows except those whose key, in this column of the table and
 * the first of the arbiter, a committed row has already; waits for transactions
 * that are inserting such a key.  Sets is_new[] for those that were inserted.
 */
void
tq_table_flush_new(TqTable *table, TqRelation *arbiter, int column,
				   bool *is_new)
{
	Insertion insertion = {.table = table,
						   .arbiter = tq_relation_oid(arbiter),
						   .column = column,
						   .before = RegisterSnapshot(GetLatestSnapshot())};
	int position[TQ_TABLE_BATCH];

	InitDirtySnapshot(insertion.dirty);
	insertion.by_key = tq_scan_begin(table, arbiter, 1, &insertion.dirty);
	memset(is_new, 0, sizeof(bool) * table->filled);
	table->filled = put_free_first(&insertion, position);
	if (table->filled > 0)
		tq_table_insert_rows(table);
	for (int i = 0; i < table->filled; i++)
		is_new[position[i]] = true;
	for (int i = 0;
		 (i = next_taken(table, i, insertion.arbiter)) < table->filled; i++)
		is_new[position[i]] = insert_again(&insertion, table->slots[i]);
	table->filled = 0;
	tq_scan_end(insertion.by_key);
	UnregisterSnapshot(insertion.before);
	CommandCounterIncrement();
}

/*
 * Inserts the new rows; those whose key, in the columns of the arbiter, another
 * row has or may get are given another one.  Waits for nothing.
 */
void
tq_table_flush_renumbered(TqTable *table, TqRelation *arbiter,
						  TqRenumber *renumber)
{
	Oid unique = tq_relation_oid(arbiter);

	if (table->filled == 0)
		return;
	tq_table_insert_rows(table);
	for (int i = 0; (i = next_taken(table, i, unique)) < table->filled; i++)
	{
		TupleTableSlot *slot = table->slots[i];
		TupleTableSlot *other = table_slot_create(table->rel, NULL);
		ItemPointerData tid = slot->tts_tid;

		/*
		 * Replace a row that was inserted by one with another key, until the
		 * key is free.
		 */
		for (int tries = 0;; tries++)
		{
			CHECK_FOR_INTERRUPTS();
			CommandCounterIncrement();
			if (tq_table_delete(table, &tid, true) != TM_Ok)
				elog(ERROR, "could not delete a row that was just inserted");
			tq_table_copy_values(other, slot);
			renumber(other, tries);
			table_tuple_insert(table->rel, other, GetCurrentCommandId(true), 0,
							   NULL);
			if (tq_table_insert_entries(table, &other, 1, unique) == 1)
				break;
			tid = other->tts_tid;
		}
		ExecDropSingleTupleTableSlot(other);
	}
	table->filled = 0;
	CommandCounterIncrement();
}
