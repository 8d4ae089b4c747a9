/*
 * store_row.c
 *	  Rows by way of the access methods: what the hot stores have in common.
 *
 * Room 2.  A statement costs more than the row that it writes; the tables that
 * every turn of a task touches are written and read here without one.  What
 * the executor would do is done by hand:
 *
 *	- Locks: RowExclusiveLock on the table and on each index that is used, kept
 *	  until the transaction ends, but for those of indexes, as the executor has
 *	  it.
 *	- Indexes: entries are made by ExecInsertIndexTuples(), so that predicates,
 *	  unique keys and indexes that an administrator added are respected.
 *	- Commands: after each write the command counter goes up, so that what
 *	  follows sees it, a statement as well as a scan.
 *	- Privileges: none are checked; the tables are closed to all but the
 *	  functions of tq, whose callers were checked.
 *	- Constraints: checked, should an administrator have added some.
 *	- Triggers: none are fired.  Ours, note_*, are for foreign writers (tq.sql);
 *	  a table that has others for what we are about to do is refused.
 *	- Concurrent updates: the result of a delete or update is the caller's,
 *	  who has to handle each; under REPEATABLE READ and above the server would
 *	  raise a serialization failure, and so does tq_table_changed_under_us().
 *	- SERIALIZABLE: inserts, updates and deletes are checked for conflicts by
 *	  the heap; scans with a snapshot that is none of MVCC's take no predicate
 *	  locks, for what they find is locked before it is relied on.
 */
#include "row.h"

#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"

/* ---- names ---- */

/* Those that have an oid; the order is of no matter. */
static TqRelation *known = NULL;

static void
forget(Datum arg, Oid relid)
{
	TqRelation *relation = known;

	while (relation != NULL && relid != InvalidOid && relation->oid != relid)
		relation = relation->next;
	if (relation == NULL)
		return;
	for (relation = known; relation != NULL; relation = relation->next)
		relation->oid = InvalidOid;
	known = NULL;
}

/* The oid of one of our tables or indexes, which is there. */
Oid
tq_relation_oid(TqRelation *relation)
{
	static bool watching = false;
	Oid oid;

	if (OidIsValid(relation->oid))
		return relation->oid;
	if (!watching)
		CacheRegisterRelcacheCallback(forget, (Datum) 0);
	watching = true;
	oid = get_relname_relid(relation->name, get_namespace_oid("tq", false));
	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"tq.%s\" does not exist", relation->name),
				 errdetail("It belongs to the extension tq."),
				 errhint("Drop the extension and create it again.")));
	relation->oid = oid;
	relation->nkeys = 0;
	relation->next = known;
	known = relation;
	return oid;
}

/* ---- tables ---- */

/* A call that only reads, perhaps on a standby, takes the readers' lock. */
static LOCKMODE
lock_mode(void)
{
	return tq_plan_is_reading() ? AccessShareLock : RowExclusiveLock;
}

TqTable *
tq_table_open(TqRelation *which)
{
	TqTable *table = palloc0(sizeof(TqTable));

	table->rel = table_open(tq_relation_oid(which), lock_mode());
	return table;
}

/* Insert what was not yet, and close; the lock stays. */
void
tq_table_close(TqTable *table)
{
	tq_table_flush(table);
	for (int i = 0; i < table->room; i++)
		ExecDropSingleTupleTableSlot(table->slots[i]);
	if (table->result != NULL)
		ExecCloseIndices(table->result);
	if (table->estate != NULL)
		FreeExecutorState(table->estate);
	table_close(table->rel, NoLock);
}

static void
open_indexes(TqTable *table, bool with_arbiter)
{
	if (table->result != NULL)
		return;
	table->estate = CreateExecutorState();
	table->result = makeNode(ResultRelInfo);
	InitResultRelInfo(table->result, table->rel, 0, NULL, 0);
	ExecOpenIndices(table->result, with_arbiter);
}

static void
add_room(TqTable *table)
{
	if (table->slots == NULL)
		table->slots = palloc(sizeof(TupleTableSlot *) * TQ_TABLE_BATCH);
	table->slots[table->room++] = table_slot_create(table->rel, NULL);
}

/*
 * A new row, for the caller to fill in every column of ours.  It is inserted by
 * tq_table_flush(), at the latest when the table is closed; until then the
 * caller keeps what its columns point to.
 */
TupleTableSlot *
tq_table_new_row(TqTable *table)
{
	TupleTableSlot *slot;

	if (table->filled == TQ_TABLE_BATCH)
		tq_table_flush(table);
	if (table->filled == table->room)
		add_room(table);
	slot = table->slots[table->filled++];
	ExecClearTuple(slot);
	ExecStoreAllNullTuple(slot);
	return slot;
}

/* A trigger that somebody else has made would not be fired. */
static void
refuse_triggers(Relation rel, int16 event)
{
	TriggerDesc *triggers = rel->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		Trigger *trigger = &triggers->triggers[i];

		if ((trigger->tgtype & event) != 0 &&
			(trigger->tgenabled == TRIGGER_FIRES_ON_ORIGIN ||
			 trigger->tgenabled == TRIGGER_FIRES_ALWAYS) &&
			strncmp(trigger->tgname, "note_", 5) != 0)
			ereport(
				ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"tq.%s\" must not have triggers",
						RelationGetRelationName(rel)),
				 errdetail("Trigger \"%s\" would not be fired.",
						   trigger->tgname),
				 errhint(
					 "Drop the trigger; listen to messages, or subscribe to them, to learn what happens.")));
	}
}

static void
check_constraints(TqTable *table, TupleTableSlot *slot)
{
	if (table->rel->rd_att->constr != NULL)
		ExecConstraints(table->result, slot, table->estate);
}

/* The rows themselves; those that are written together cost one record a page. */
static void
insert_tuples(TqTable *table)
{
	CommandId cid = GetCurrentCommandId(true);

	PreventCommandIfReadOnly("INSERT");
	refuse_triggers(table->rel, TRIGGER_TYPE_INSERT);
	for (int i = 0; i < table->filled; i++)
	{
		table->slots[i]->tts_tableOid = RelationGetRelid(table->rel);
		check_constraints(table, table->slots[i]);
	}
	if (table->filled == 1)
		table_tuple_insert(table->rel, table->slots[0], cid, 0, NULL);
	else
		table_multi_insert(table->rel,
						   table->slots,
						   table->filled,
						   cid,
						   0,
						   NULL);
}

/* Entries for a row; with an arbiter, false where it has the key already. */
static bool
insert_entries(TqTable *table, TupleTableSlot *slot, List *arbiters)
{
	bool conflict = false;

	TqInsertEntries(table->result,
					slot,
					table->estate,
					arbiters == NIL ? NULL : &conflict,
					arbiters);
	ResetPerTupleExprContext(table->estate);
	return !conflict;
}

/* Insert the new rows, and let them be seen. */
void
tq_table_flush(TqTable *table)
{
	if (table->filled == 0)
		return;
	open_indexes(table, false);
	insert_tuples(table);
	for (int i = 0; i < table->filled; i++)
		(void) insert_entries(table, table->slots[i], NIL);
	table->filled = 0;
	CommandCounterIncrement();
}

/*
 * Is no row there with the key of this one?  Whoever is just inserting one is
 * waited for.  What was committed while we waited cannot be told under an
 * isolation level with one snapshot.
 */
static bool
key_is_free(TqTable *table, TupleTableSlot *slot, List *arbiters,
			Snapshot before)
{
	ItemPointerData other;
	TupleTableSlot *row;

	ItemPointerSetInvalid(&slot->tts_tid);
	if (TqCheckIndexConstraints(table->result,
								slot,
								table->estate,
								&other,
								arbiters))
		return true;
	if (!IsolationUsesXactSnapshot())
		return false;
	row = table_slot_create(table->rel, NULL);
	if (!table_tuple_fetch_row_version(table->rel, &other, before, row))
		tq_table_changed_under_us(table, TM_Updated);
	ExecDropSingleTupleTableSlot(row);
	return false;
}

/*
 * Another session had the same thought between our look and our entry.  Take
 * the row back; then, when whoever has the key has ended, try again.
 */
static bool
insert_again(TqTable *table, TupleTableSlot *slot, List *arbiters,
			 Snapshot before)
{
	do
	{
		CommandCounterIncrement();
		if (tq_table_delete(table, &slot->tts_tid, true) != TM_Ok)
			elog(ERROR, "could not delete a row that was just inserted");
		if (!key_is_free(table, slot, arbiters, before))
			return false;
		table_tuple_insert(table->rel,
						   slot,
						   GetCurrentCommandId(true),
						   0,
						   NULL);
	} while (!insert_entries(table, slot, arbiters));
	return true;
}

/* Those of the new rows whose key is free come first; place[] says who they were. */
static int
put_free_first(TqTable *table, List *arbiters, Snapshot before, int *place)
{
	int free_rows = 0;

	for (int i = 0; i < table->filled; i++)
	{
		TupleTableSlot *slot = table->slots[i];

		if (!key_is_free(table, slot, arbiters, before))
			continue;
		table->slots[i] = table->slots[free_rows];
		table->slots[free_rows] = slot;
		place[free_rows++] = i;
	}
	return free_rows;
}

/*
 * Insert the new rows but those whose key a unique index has already, of a
 * transaction that has committed; one that is still running is waited for.
 * is_new[] tells which were inserted.
 *
 * Why two sessions cannot both insert a key: the index looks for the key and
 * makes the entry under one lock of its page, so the second finds the first.
 * That is looked for before the row is there at all: nobody should come to
 * wait for a row that we are going to take back.
 */
void
tq_table_flush_new(TqTable *table, TqRelation *arbiter, bool *is_new)
{
	List *arbiters = list_make1_oid(tq_relation_oid(arbiter));
	Snapshot before = RegisterSnapshot(GetLatestSnapshot());
	int place[TQ_TABLE_BATCH];

	open_indexes(table, true);
	memset(is_new, 0, sizeof(bool) * table->filled);
	table->filled = put_free_first(table, arbiters, before, place);
	if (table->filled > 0)
		insert_tuples(table);
	for (int i = 0; i < table->filled; i++)
	{
		TupleTableSlot *slot = table->slots[i];

		is_new[place[i]] = insert_entries(table, slot, arbiters) ||
						   insert_again(table, slot, arbiters, before);
	}
	table->filled = 0;
	UnregisterSnapshot(before);
	CommandCounterIncrement();
}

/* Let a row have the values of another, which is kept as long. */
void
tq_table_copy_values(TupleTableSlot *copy, TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	ExecClearTuple(copy);
	memcpy(copy->tts_values,
		   slot->tts_values,
		   sizeof(Datum) * slot->tts_nvalid);
	memcpy(copy->tts_isnull,
		   slot->tts_isnull,
		   sizeof(bool) * slot->tts_nvalid);
	ExecStoreVirtualTuple(copy);
}

/* A row with the values of this one, for the caller to change and to drop. */
TupleTableSlot *
tq_table_copy_row(TqTable *table, TupleTableSlot *slot)
{
	TupleTableSlot *copy = table_slot_create(table->rel, NULL);

	tq_table_copy_values(copy, slot);
	return copy;
}

/* A result that the rules of locking exclude. */
void
tq_table_refuse(const TqTable *table, TM_Result result)
{
	elog(ERROR,
		 "unexpected result %d of a change in table \"%s\"",
		 (int) result,
		 RelationGetRelationName(table->rel));
}

/*
 * What somebody else did to a row that we wanted: under an isolation level
 * that has one snapshot for the transaction it is a serialization failure.
 */
void
tq_table_changed_under_us(const TqTable *table, TM_Result result)
{
	switch (result)
	{
		case TM_Updated:
		case TM_Deleted:
			if (!IsolationUsesXactSnapshot())
				return;
			ereport(
				ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errdetail("A row of table \"%s\" was changed.",
						   RelationGetRelationName(table->rel)),
				 errhint("Try the transaction again.")));
			break;
		case TM_Ok:
		case TM_Invisible:
		case TM_SelfModified:
		case TM_BeingModified:
		case TM_WouldBlock:
			tq_table_refuse(table, result);
	}
}

/* Delete a row; without wait, TM_BeingModified if there is a lock on it. */
TM_Result
tq_table_delete(TqTable *table, ItemPointer tid, bool wait)
{
	TM_FailureData failure;
	TM_Result result;

	PreventCommandIfReadOnly("DELETE");
	refuse_triggers(table->rel, TRIGGER_TYPE_DELETE);
	result = table_tuple_delete(table->rel,
								tid,
								GetCurrentCommandId(true),
								InvalidSnapshot,
								InvalidSnapshot,
								wait,
								&failure,
								false);

	if (result == TM_Ok)
		CommandCounterIncrement();
	return result;
}

/* Lock the row in the slot, this version of it. */
TM_Result
tq_table_lock(TqTable *table, TupleTableSlot *slot, LockTupleMode mode,
			  LockWaitPolicy policy)
{
	TM_FailureData failure;

	PreventCommandIfReadOnly("SELECT FOR UPDATE");
	return table_tuple_lock(table->rel,
							&slot->tts_tid,
							SnapshotSelf,
							slot,
							GetCurrentCommandId(true),
							mode,
							policy,
							TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS,
							&failure);
}

/*
 * Delete the row in the slot, if nobody else has a hand on it: TM_BeingModified
 * then.  A lock that only this transaction has, of an earlier statement, is in
 * nobody's way; to know that, it is taken again, to its full strength.
 */
TM_Result
tq_table_delete_if_free(TqTable *table, TupleTableSlot *slot)
{
	TM_Result result = tq_table_delete(table, &slot->tts_tid, false);

	if (result != TM_BeingModified)
		return result;
	result = tq_table_lock(table, slot, LockTupleExclusive, LockWaitSkip);
	return result == TM_Ok ? tq_table_delete(table, &slot->tts_tid, true)
						   : result;
}

/* Put a new version in the place of a row, which is waited for. */
TM_Result
tq_table_update(TqTable *table, ItemPointer tid, TupleTableSlot *slot)
{
	TM_FailureData failure;
	LockTupleMode mode;
	TqUpdateIndexes indexes;
	TM_Result result;

	PreventCommandIfReadOnly("UPDATE");
	refuse_triggers(table->rel, TRIGGER_TYPE_UPDATE);
	if (table->rel->rd_att->constr != NULL &&
		table->rel->rd_att->constr->num_check > 0)
	{
		open_indexes(table, false);
		check_constraints(table, slot);
	}
	result = table_tuple_update(table->rel,
								tid,
								slot,
								GetCurrentCommandId(true),
								InvalidSnapshot,
								InvalidSnapshot,
								true,
								&failure,
								&mode,
								&indexes);

	if (result != TM_Ok)
		return result;
	if (TqNeedsEntries(indexes))
	{
		open_indexes(table, false);
		TqInsertUpdatedEntries(table->result, slot, table->estate, indexes);
		ResetPerTupleExprContext(table->estate);
	}
	CommandCounterIncrement();
	return TM_Ok;
}

/* ---- scans ---- */

/* How the columns of an index compare, kept until the index changes. */
static void
look_up_equality(TqRelation *which, Relation index)
{
	which->nkeys = Min(IndexRelationGetNumberOfKeyAttributes(index),
					   TQ_MAX_KEYS);
	for (int i = 0; i < which->nkeys; i++)
	{
		Oid type = index->rd_opcintype[i];
		Oid operator= get_opfamily_member(index->rd_opfamily[i],
										  type,
										  type,
										  BTEqualStrategyNumber);

		fmgr_info_cxt(get_opcode(operator),
					  &which->equal[i],
					  CacheMemoryContext);
	}
}

/* Begin a scan for the first nkeys columns of the index. */
TqScan *
tq_scan_begin(TqTable *table, TqRelation *index, int nkeys, Snapshot snapshot)
{
	TqScan *scan = palloc(sizeof(TqScan));

	scan->table = table;
	scan->index = index_open(tq_relation_oid(index), lock_mode());
	scan->nkeys = nkeys;
	scan->slot = table_slot_create(table->rel, NULL);
	if (index->nkeys == 0)
		look_up_equality(index, scan->index);
	for (int i = 0; i < nkeys; i++)
		ScanKeyEntryInitializeWithInfo(&scan->keys[i],
									   0,
									   i + 1,
									   BTEqualStrategyNumber,
									   InvalidOid,
									   scan->index->rd_indcollation[i],
									   &index->equal[i],
									   (Datum) 0);
	scan->desc = TqIndexBeginScan(table->rel, scan->index, snapshot, nkeys);
	return scan;
}

/* Let the last column be a bigint, and its value the least that is looked for. */
void
tq_scan_from(TqScan *scan)
{
	ScanKeyInit(&scan->keys[scan->nkeys - 1],
				scan->nkeys,
				BTGreaterEqualStrategyNumber,
				F_INT8GE,
				(Datum) 0);
}

/* Look for these values; those beyond the number of keys are of no matter. */
void
tq_scan_seek(TqScan *scan, Datum a, Datum b, Datum c)
{
	Datum values[TQ_MAX_KEYS] = {a, b, c};

	for (int i = 0; i < scan->nkeys; i++)
		scan->keys[i].sk_argument = values[i];
	index_rescan(scan->desc, scan->keys, scan->nkeys, NULL, 0);
}

bool
tq_scan_next(TqScan *scan)
{
	return index_getnext_slot(scan->desc, ForwardScanDirection, scan->slot);
}

void
tq_scan_end(TqScan *scan)
{
	index_endscan(scan->desc);
	ExecDropSingleTupleTableSlot(scan->slot);
	index_close(scan->index, NoLock);
}

/* ---- columns ---- */

Datum
tq_row_field(TupleTableSlot *slot, int column, bool *isnull)
{
	return slot_getattr(slot, column, isnull);
}

int64
tq_row_int64(TupleTableSlot *slot, int column)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

int32
tq_row_int32(TupleTableSlot *slot, int column)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);

	return isnull ? 0 : DatumGetInt32(value);
}

int16
tq_row_int16(TupleTableSlot *slot, int column)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);

	return isnull ? 0 : DatumGetInt16(value);
}

bool
tq_row_bool(TupleTableSlot *slot, int column)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);

	return !isnull && DatumGetBool(value);
}

/* Does somebody hold a lock on the row that was found? */
bool
tq_row_is_locked(TupleTableSlot *slot)
{
	HeapTuple tuple = ExecFetchSlotHeapTuple(slot, false, NULL);
	TransactionId xmax = HeapTupleHeaderGetRawXmax(tuple->t_data);
	uint16 mask = tuple->t_data->t_infomask;

	if ((mask & HEAP_XMAX_INVALID) != 0 || !HEAP_XMAX_IS_LOCKED_ONLY(mask))
		return false;
	return (mask & HEAP_XMAX_IS_MULTI) != 0 ? MultiXactIdIsRunning(xmax, true)
											: TransactionIdIsInProgress(xmax);
}
