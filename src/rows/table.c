/*
 * table.c
 *	  Writes rows through the table access method.
 *
 * A statement costs more than the row that it writes, so the tables that every
 * transition of a task touches are written here, and read in index_scan.c,
 * without the executor.  What the executor would do is done as follows:
 *
 *	- Locks: RowExclusiveLock on the table and on each index that is used, or
 *	  AccessShareLock in a call that only reads.  They are kept until the
 *	  transaction ends, except for those that ExecOpenIndices() takes, which
 *	  the executor also releases early.
 *	- Indexes: the entries are made below, or the executor if an
 *	  administrator has added an index of another kind.
 *	- Commands: the command counter is incremented after each write, so that
 *	  later statements and scans see it.
 *	- Privileges: not checked.  Only the functions of tq can access the tables,
 *	  and the privileges of their callers were checked.
 *	- Constraints: checked, in case an administrator added some.
 *	- Triggers: not fired.  Those of tq are for rows that SQL writes (tables.sql).  A table that has other triggers for the operation is refused.
 *	- Concurrent updates: the result of a delete or update is returned to the
 *	  caller, which has to handle each.  Under REPEATABLE READ and above the
 *	  executor raises a serialization failure; tq_table_changed_under_us() does
 *	  the same.
 *	- SERIALIZABLE: the heap checks inserts, updates and deletes for conflicts.
 *	  Scans with a non-MVCC snapshot take no predicate locks, because the rows
 *	  that they find are locked before a decision relies on them.
 */
#include "postgres.h"

#include "access/multixact.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/pg_list.h"
#include "optimizer/optimizer.h"
#include "storage/procarray.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "rows.h"

/*
 * ---- index entries, without the executor ----
 *
 * For every statement the executor reads the list of a table's indexes, builds
 * an IndexInfo for each, and compiles the predicates of partial ones.  For a
 * call that inserts one row that costs more than the entries themselves.  So a
 * backend caches what it has built, by table, until the server invalidates the
 * table or one of its indexes.
 *
 * That is possible for immediate btree indexes, as those of tq are.
 * If an administrator has added an index of another kind, the table is left to
 * the executor.
 *
 * The list is looked up after the table has been locked, as the executor does.
 * Locking processes the invalidations that other sessions have sent.  CREATE
 * INDEX CONCURRENTLY and DROP INDEX CONCURRENTLY wait for those that hold the
 * lock, so an index that is missing in a list that is in use, or has been
 * dropped since, is not needed by any other session yet, or any more.
 *
 * An index is opened for its first entry, so that a partial one costs a row
 * that does not belong into it only its predicate: a create with its three of
 * them took 4 % more instructions.  Until then a session knows a partial index by
 * its row in pg_index alone, and builds no description of it in its relcache:
 * first calls of sessions took 7 % more.  What is in the list stays there until
 * then, because the lock on the table is kept: DROP INDEX and REINDEX,
 * CONCURRENTLY too, wait for it before they remove an index, or expect entries in
 * one that is not in the list or was not ready; and the predicate of an index
 * never changes.  ALTER INDEX, which may move an index and locks nothing else,
 * waits for those that have opened it, or is over when we open it.  A change of the
 * row in pg_index invalidates the relation of the index, and so what is cached
 * here.
 *
 * Rows that are inserted in the order of another unique index, the arbiter
 * (insert_new.c), have their primary keys in no order.  The entries of those are
 * inserted last, in order: they then go to the last pages of the index, which
 * leaf_batch.c fills page by page, as it does all indexes in whose order the rows
 * are.  Indexes are filled one after the other, the arbiter first.
 *
 * An entry of the cache that is invalidated while it is in use must stay until
 * the call ends; it is freed at the end of the transaction.
 */

/* What is cached of the indexes of a table, in a memory context of its own. */
typedef struct Shape
{
	Oid table;
	MemoryContext context;
	bool is_simple; /* false: the executor is needed */
	int n;
	int primary; /* primary key, if it is a bigint; -1: none */
	Oid *oids;
	bool *ready;            /* for inserts */
	ExprState **predicates; /* NULL: the index is not partial */
	IndexInfo **infos;      /* NULL: partial, and not opened yet */
	ExprContext *tuple; /* in which predicates and expressions are evaluated */
	EState *state; /* as FormIndexDatum() wants it: has this context only */
	struct Shape *next; /* in the list of those to be freed */
} Shape;

/* An entry of the primary key that is not inserted yet. */
typedef struct Late
{
	int64 key;
	ItemPointerData tid;
} Late;

struct TqEntries
{
	Relation table;
	const Shape *shape;
	Late *late;
	int nlate;
	int room;                                /* for late entries */
	Relation indexes[FLEXIBLE_ARRAY_MEMBER]; /* NULL: not open */
};

/* An element of the hash table by oid. */
typedef struct Cached
{
	Oid table;
	Shape *shape;
} Cached;

static HTAB *cache = NULL;
static Shape *invalidated = NULL; /* to be freed */
static bool has_invalidated = false;
static uint64 invalidations = 0; /* counts calls of index_entries_forget() */

static bool
index_entries_is_about(const Shape *shape, Oid relid)
{
	if (relid == InvalidOid || relid == shape->table)
		return true;
	for (int i = 0; i < shape->n; i++)
	{
		if (shape->oids[i] == relid)
			return true;
	}
	return false;
}

/* Has a shape freed at the end of the transaction. */
static void
free_later(Shape *shape)
{
	shape->next = invalidated;
	invalidated = shape;
	has_invalidated = true;
}

/* Relcache callback: forgets the shapes that a relation belongs to. */
static void
index_entries_forget(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS scan;
	Cached *cached;

	invalidations++;
	hash_seq_init(&scan, cache);
	while ((cached = hash_seq_search(&scan)) != NULL)
	{
		Shape *shape = cached->shape;

		if (shape == NULL || !index_entries_is_about(shape, relid))
			continue;
		free_later(shape);
		cached->shape = NULL;
	}
}

/* Frees the shapes that have been invalidated. */
static void
free_invalidated(void)
{
	while (invalidated != NULL)
	{
		Shape *shape = invalidated;

		invalidated = shape->next;
		MemoryContextDelete(shape->context);
	}
	has_invalidated = false;
}

const TqXactEnd tq_entries_xact_end = {.has_work = &has_invalidated,
									   .reset = free_invalidated};

/* Opens an index, and adds it to a shape, unless it is not simple. */
static void
add_index(Shape *shape, int i)
{
	Relation index = index_open(shape->oids[i], RowExclusiveLock);
	IndexInfo *info = BuildIndexInfo(index);

	if (index->rd_rel->relam != BTREE_AM_OID ||
		!index->rd_index->indimmediate || info->ii_ExclusionOps != NULL)
		shape->is_simple = false;
	else
		info->ii_ExpressionsState = ExecInitExprList(info->ii_Expressions,
													 NULL);
	if (index->rd_index->indisprimary && info->ii_NumIndexAttrs == 1 &&
		index->rd_opcintype[0] == INT8OID)
		shape->primary = i;
	shape->ready[i] = info->ii_ReadyForInserts;
	shape->infos[i] = info;
	index_close(index, NoLock);
}

/*
 * Returns whether the index of a row of pg_index is a btree.  The class of most
 * first columns says so without the row in pg_class.
 */
static bool
is_btree(HeapTuple index)
{
	bool isnull;
	Datum classes = SysCacheGetAttr(INDEXRELID, index, Anum_pg_index_indclass,
									&isnull);
	Oid id = ((Form_pg_index) GETSTRUCT(index))->indexrelid;
	HeapTuple tuple;
	bool answer;

	if (((oidvector *) DatumGetPointer(classes))->values[0] ==
		INT8_BTREE_OPS_OID)
		return true;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(id));
	if (!HeapTupleIsValid(tuple))
		return false;
	answer = ((Form_pg_class) GETSTRUCT(tuple))->relam == BTREE_AM_OID;
	ReleaseSysCache(tuple);
	return answer;
}

/*
 * Adds a partial index to a shape by its row in pg_index, and returns true; or
 * returns false if the index is not partial.  The predicate is prepared as
 * RelationGetIndexPredicate() does it.
 */
static bool
add_partial_index(Shape *shape, int i)
{
	HeapTuple tuple = SearchSysCache1(INDEXRELID,
									  ObjectIdGetDatum(shape->oids[i]));
	Form_pg_index index;
	Datum predicate;
	bool is_whole = true;

	if (!HeapTupleIsValid(tuple))
		return false;
	index = (Form_pg_index) GETSTRUCT(tuple);
	predicate = SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indpred,
								&is_whole);
	if (!is_whole)
	{
		Node *node = stringToNode(TextDatumGetCString(predicate));
		Expr *qual = canonicalize_qual(expression_planner((Expr *) node),
									   false);

		shape->predicates[i] = ExecInitQual(make_ands_implicit(qual), NULL);
		shape->ready[i] = index->indisready;
		if (!is_btree(tuple) || !index->indimmediate || index->indisexclusion)
			shape->is_simple = false;
	}
	ReleaseSysCache(tuple);
	return !is_whole;
}

/* Returns what is to be cached of the indexes of a table. */
static Shape *
build(Relation table)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "tq indexes of a table",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(context);
	List *oids = RelationGetIndexList(table);
	Shape *shape = palloc0(sizeof(Shape));
	ListCell *cell;
	int n;

	shape->table = RelationGetRelid(table);
	shape->context = context;
	shape->is_simple = true;
	shape->primary = -1;
	n = Max(list_length(oids), 1);
	shape->oids = palloc(sizeof(Oid) * n);
	shape->ready = palloc0(sizeof(bool) * n);
	shape->predicates = palloc0(sizeof(ExprState *) * n);
	shape->infos = palloc0(sizeof(IndexInfo *) * n);
	shape->tuple = CreateStandaloneExprContext();
	shape->state = makeNode(EState);
	shape->state->es_per_tuple_exprcontext = shape->tuple;
	foreach(cell, oids)
	{
		int i = shape->n++;

		shape->oids[i] = lfirst_oid(cell);
		if (!add_partial_index(shape, i))
			add_index(shape, i);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextSetParent(context, CacheMemoryContext);
	return shape;
}

/*
 * Returns the shape of a table.  Building it opens indexes, which may process
 * an invalidation of the table; then this call uses the shape, as the executor
 * would, and the next one builds another.
 */
static const Shape *
shape_of(Relation table)
{
	Oid oid = RelationGetRelid(table);
	uint64 before;
	bool found;
	Cached *cached;
	Shape *shape;

	if (cache == NULL)
	{
		HASHCTL control = {.keysize = sizeof(Oid),
						   .entrysize = sizeof(Cached),
						   .hcxt = CacheMemoryContext};

		cache = hash_create("tq indexes", 16, &control,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		CacheRegisterRelcacheCallback(index_entries_forget, (Datum) 0);
	}
	cached = hash_search(cache, &oid, HASH_ENTER, &found);
	if (!found)
		cached->shape = NULL;
	if (cached->shape != NULL)
		return cached->shape;
	before = invalidations;
	shape = build(table);
	if (invalidations == before)
		cached->shape = shape;
	else
		free_later(shape);
	return shape;
}

/* Keeps the entry of the primary key of a row until the indexes are closed. */
static void
keep_late(TqEntries *entries, TupleTableSlot *slot, int column)
{
	bool isnull;

	if (entries->nlate == entries->room)
	{
		entries->room = Max(64, 2 * entries->room);
		entries->late = entries->nlate == 0
							? palloc(sizeof(Late) * entries->room)
							: repalloc(entries->late,
									   sizeof(Late) * entries->room);
	}
	entries->late[entries->nlate++] =
		(Late){.key = DatumGetInt64(slot_getattr(slot, column, &isnull)),
			   .tid = slot->tts_tid};
}

static int
compare_late(const void *a, const void *b)
{
	int64 x = ((const Late *) a)->key;
	int64 y = ((const Late *) b)->key;

	return x < y ? -1 : x > y;
}

/*
 * Opens an index for entries, unless it is open, and returns what is cached of
 * it, which is completed when a row first belongs into a partial index.
 */
static IndexInfo *
open_for_entry(TqEntries *entries, int i)
{
	const Shape *shape = entries->shape;

	if (entries->indexes[i] == NULL)
		entries->indexes[i] = index_open(shape->oids[i], RowExclusiveLock);
	if (shape->infos[i] == NULL)
	{
		MemoryContext outer = MemoryContextSwitchTo(shape->context);
		IndexInfo *info = BuildIndexInfo(entries->indexes[i]);

		info->ii_ExpressionsState = ExecInitExprList(info->ii_Expressions,
													 NULL);
		shape->infos[i] = info;
		MemoryContextSwitchTo(outer);
	}
	return shape->infos[i];
}

/*
 * Inserts the entry of a row in an index; with an arbiter, that of the primary
 * key when the indexes are closed.  Raises an error if a unique index has the
 * key; only for the arbiter, returns false if that may have it.
 */
static bool
insert_entry(TqEntries *entries, int i, TupleTableSlot *slot, Oid arbiter)
{
	const Shape *shape = entries->shape;
	IndexInfo *info;
	IndexUniqueCheck check = UNIQUE_CHECK_NO;
	Datum values[INDEX_MAX_KEYS];
	bool isnull[INDEX_MAX_KEYS];
	bool is_free;

	shape->tuple->ecxt_scantuple = slot;
	/* The row may not belong into a partial index. */
	if (!shape->ready[i] ||
		(shape->predicates[i] != NULL &&
		 !ExecQualAndReset(shape->predicates[i], shape->tuple)))
		return true;
	info = open_for_entry(entries, i);
	if (i == shape->primary && OidIsValid(arbiter))
	{
		keep_late(entries, slot, info->ii_IndexAttrNumbers[0]);
		return true;
	}
	if (info->ii_Unique)
		check = shape->oids[i] == arbiter ? UNIQUE_CHECK_PARTIAL
										  : UNIQUE_CHECK_YES;
	FormIndexDatum(info, slot, shape->state, values, isnull);
	is_free = index_insert(entries->indexes[i], values, isnull, &slot->tts_tid,
						   entries->table, check, false, info) ||
			  check != UNIQUE_CHECK_PARTIAL;
	ResetExprContext(shape->tuple);
	return is_free;
}

/* Inserts all index entries of a row, in the same way. */
static bool
entries_insert(TqEntries *entries, TupleTableSlot *slot, Oid arbiter)
{
	bool is_free = true;

	for (int i = 0; i < entries->shape->n; i++)
		is_free = insert_entry(entries, i, slot, arbiter) && is_free;
	return is_free;
}

/*
 * Returns whether leaf_batch.c can insert entries of an index.  A page takes each
 * key of fixed length.
 */
static bool
takes_batches(const TqEntries *entries, int i)
{
	TupleDesc columns = RelationGetDescr(entries->table);
	const IndexInfo *info = entries->shape->infos[i];

	if (entries->shape->predicates[i] != NULL || !entries->shape->ready[i] ||
		!info->ii_Unique || info->ii_Expressions != NIL ||
		info->ii_NumIndexAttrs != info->ii_NumIndexKeyAttrs ||
		info->ii_NumIndexAttrs > TQ_MAX_KEYS)
		return false;
	for (int column = 0; column < info->ii_NumIndexAttrs; column++)
	{
		int number = info->ii_IndexAttrNumbers[column];

		if (TupleDescAttr(columns, number - 1)->attlen < 0)
			return false;
	}
	return true;
}

/* Reads the keys of rows in an index; returns false if one is null. */
static bool
read_keys(TqEntries *entries, int i, TupleTableSlot **slots, int n,
		  TqKeys *keys)
{
	IndexInfo *info = entries->shape->infos[i];
	int ncolumns = info->ii_NumIndexKeyAttrs;

	*keys = (TqKeys){.heap = entries->table, .n = n, .ncolumns = ncolumns};
	keys->values = palloc(sizeof(Datum) * n * ncolumns);
	keys->tids = palloc(sizeof(ItemPointerData) * n);
	for (int row = 0; row < n; row++)
	{
		keys->tids[row] = slots[row]->tts_tid;
		for (int column = 0; column < ncolumns; column++)
		{
			bool isnull;

			keys->values[row * ncolumns + column] =
				slot_getattr(slots[row], info->ii_IndexAttrNumbers[column],
							 &isnull);
			if (isnull)
				return false;
		}
	}
	(void) open_for_entry(entries, i);
	keys->index = entries->indexes[i];
	return true;
}

static int
insert_keys(TqEntries *entries, int i, TqKeys *keys, IndexUniqueCheck check)
{
	int done = tq_keys_insert(keys, check, entries->shape->infos[i]);

	if (keys->scan_key != NULL)
		pfree(keys->scan_key);
	pfree(keys->values);
	pfree(keys->tids);
	return done;
}

/*
 * Inserts the entries of rows in an index.  Returns how many of them have a key
 * that is free; after the first that has not, no other row has got its entry.
 */
static int
insert_column(TqEntries *entries, int i, TupleTableSlot **slots, int n,
			  Oid arbiter)
{
	bool is_arbiter = entries->shape->oids[i] == arbiter;
	bool is_late = i == entries->shape->primary && OidIsValid(arbiter);
	TqKeys keys;

	if (!is_late && takes_batches(entries, i) &&
		read_keys(entries, i, slots, n, &keys))
		return insert_keys(entries, i, &keys,
						   is_arbiter ? UNIQUE_CHECK_PARTIAL
									  : UNIQUE_CHECK_YES);
	for (int row = 0; row < n; row++)
	{
		if (!insert_entry(entries, i, slots[row], arbiter))
			return row;
	}
	return n;
}

/*
 * Inserts the index entries of rows, index by index, those of the arbiter first.
 * Returns how many rows have a key that is free there.  The first that has not
 * has its entries, too; those after it have none, because this session may wait
 * for another one before it inserts them.
 */
static int
insert_columns(TqEntries *entries, TupleTableSlot **slots, int n, Oid arbiter)
{
	int nfree = n;

	for (int i = 0; OidIsValid(arbiter) && i < entries->shape->n; i++)
	{
		if (entries->shape->oids[i] == arbiter)
			nfree = insert_column(entries, i, slots, n, arbiter);
	}
	for (int i = 0; i < entries->shape->n; i++)
	{
		if (entries->shape->oids[i] != arbiter)
			(void) insert_column(entries, i, slots, Min(nfree + 1, n),
								 arbiter);
	}
	return nfree;
}

/* Inserts the entries of the primary key that were kept. */
static void
insert_late(TqEntries *entries)
{
	int n = entries->nlate;
	TqKeys keys = {.heap = entries->table,
				   .index = entries->indexes[entries->shape->primary],
				   .n = n,
				   .ncolumns = 1,
				   .values = palloc(sizeof(Datum) * n),
				   .tids = palloc(sizeof(ItemPointerData) * n)};

	qsort(entries->late, n, sizeof(Late), compare_late);
	for (int i = 0; i < n; i++)
	{
		keys.values[i] = Int64GetDatum(entries->late[i].key);
		keys.tids[i] = entries->late[i].tid;
	}
	(void) insert_keys(entries, entries->shape->primary, &keys,
					   UNIQUE_CHECK_YES);
	pfree(entries->late);
}

/*
 * Inserts the entries that were kept, and closes the indexes; keeps the locks
 * on them.
 */
static void
entries_close(TqEntries *entries)
{
	if (entries->nlate > 0)
		insert_late(entries);
	for (int i = 0; i < entries->shape->n; i++)
	{
		if (entries->indexes[i] != NULL)
			index_close(entries->indexes[i], NoLock);
	}
	pfree(entries);
}

/* ---- rows ---- */

/* ---- names ---- */

/* Those that have an oid, in no particular order. */
static TqRelation *known = NULL;

/*
 * Relcache callback: forgets all oids if one of these relations may have
 * changed.
 */
static void
table_forget(Datum arg, Oid relid)
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

/* Returns the oid of a table or index of tq. */
Oid
tq_relation_oid(TqRelation *relation)
{
	static bool watching = false;
	Oid oid;

	if (OidIsValid(relation->oid))
		return relation->oid;
	if (!watching)
		CacheRegisterRelcacheCallback(table_forget, (Datum) 0);
	watching = true;
	oid = get_relname_relid(relation->name,
							get_namespace_oid(TQ_SCHEMA, false));
	if (!OidIsValid(oid))
		ereport(
			ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("relation \"tq_internal.%s\" does not exist",
					relation->name),
			 errdetail("It belongs to the extension tq."),
			 errhint(
				 "Restore the database from a backup; DROP EXTENSION tq and CREATE EXTENSION tq make an empty schema.")));
	relation->oid = oid;
	relation->nkeys = 0;
	relation->next = known;
	known = relation;
	return oid;
}

/*
 * The sequence for internal ids and for the order in queues; sessions of this
 * database share its numbers (numbers.c).
 */
static TqRelation id_sequence = TQ_RELATION("id_seq");

/* Returns the next number. */
int64
tq_id_next(void)
{
	PreventCommandIfReadOnly("nextval()");
	return tq_numbers_next(tq_relation_oid(&id_sequence));
}

/* The same, and opens it for the publisher if possible. */
int64
tq_id_open(bool *opened)
{
	PreventCommandIfReadOnly("nextval()");
	return tq_numbers_open(tq_relation_oid(&id_sequence), opened);
}

/* Reads which numbers are open, as tq_numbers_read_open() does. */
bool
tq_id_read_open(TqOpenNumbers *numbers)
{
	return tq_numbers_read_open(tq_relation_oid(&id_sequence), numbers);
}

/* ---- tables ---- */

/*
 * Opens a table for reading and writing rows; in a call that only reads,
 * perhaps on a standby, with the lock of readers.
 */
TqTable *
tq_table_open(TqRelation *which)
{
	TqTable *table = palloc0(sizeof(TqTable));

	table->lock_mode = tq_spi_is_reading ? AccessShareLock : RowExclusiveLock;
	table->rel = table_open(tq_relation_oid(which), table->lock_mode);
	return table;
}

/*
 * Inserts the rows that are not inserted yet, and closes the table; keeps the
 * lock.
 */
void
tq_table_close(TqTable *table)
{
	tq_table_flush(table);
	for (int i = 0; i < table->room; i++)
		ExecDropSingleTupleTableSlot(table->slots[i]);
	if (table->entries != NULL)
		entries_close(table->entries);
	if (table->has_executor_indexes)
		ExecCloseIndices(table->result);
	if (table->estate != NULL)
		FreeExecutorState(table->estate);
	table_close(table->rel, NoLock);
}

/* Creates what the executor needs, unless it exists. */
static void
begin_executor(TqTable *table)
{
	if (table->estate != NULL)
		return;
	table->estate = CreateExecutorState();
	table->result = makeNode(ResultRelInfo);
	InitResultRelInfo(table->result, table->rel, 0, NULL, 0);
}

/*
 * Prepares new entries in the indexes of a table, unless that was done; if they are
 * not simple, by the executor, which then inserts the entries.
 */
static void
prepare_entries(TqTable *table)
{
	const Shape *shape;
	TqEntries *entries;

	if (table->entries != NULL || table->has_executor_indexes)
		return;
	shape = shape_of(table->rel);
	if (!shape->is_simple)
	{
		begin_executor(table);
		ExecOpenIndices(table->result, false);
		table->has_executor_indexes = true;
		return;
	}
	entries = palloc0(offsetof(TqEntries, indexes) +
					  sizeof(Relation) * shape->n);
	entries->table = table->rel;
	entries->shape = shape;
	table->entries = entries;
}

/*
 * Returns a new row, whose columns the caller fills in.  It is inserted by
 * tq_table_flush(), which tq_table_close() also calls.  The caller keeps the
 * memory that its columns point to until then.
 */
TupleTableSlot *
tq_table_new_row(TqTable *table)
{
	TupleTableSlot *slot;

	if (table->filled == TQ_TABLE_BATCH)
		tq_table_flush(table);
	if (table->filled == table->room)
	{
		if (table->slots == NULL)
			table->slots = palloc(sizeof(TupleTableSlot *) * TQ_TABLE_BATCH);
		table->slots[table->room++] = table_slot_create(table->rel, NULL);
	}
	slot = table->slots[table->filled++];
	ExecClearTuple(slot);
	ExecStoreAllNullTuple(slot);
	return slot;
}

/*
 * Returns a trigger of a user for this event; NULL if the table has none.  The
 * others are tq's, which are for rows of SQL.
 */
static const Trigger *
find_trigger(Relation rel, int16 event)
{
	TriggerDesc *triggers = rel->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if ((trigger->tgtype & event) != 0 &&
			(trigger->tgenabled == TRIGGER_FIRES_ON_ORIGIN ||
			 trigger->tgenabled == TRIGGER_FIRES_ALWAYS) &&
			!(strcmp(trigger->tgname, "guard_rows") == 0 ||
			  strncmp(trigger->tgname, "track_", 6) == 0 ||
			  strcmp(trigger->tgname, "stamp_message") == 0))
			return trigger;
	}
	return NULL;
}

/* Refuses a table that has a trigger of a user, because it would not be fired. */
static void
refuse_trigger(Relation rel, const Trigger *trigger)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		 errmsg("table \"tq_internal.%s\" must not have triggers",
				RelationGetRelationName(rel)),
		 errdetail("Trigger \"%s\" would not be fired.", trigger->tgname),
		 errhint(
			 "Drop the trigger; listen to messages, or subscribe to them, to learn what happens.")));
}

/*
 * Returns whether a user's trigger wants to know of rows that are deleted, so
 * that the executor has to delete them.
 */
bool
tq_table_has_delete_trigger(const TqTable *table)
{
	return find_trigger(table->rel, TRIGGER_TYPE_DELETE) != NULL;
}

/* Checks NOT NULL, and lets the executor check what else there is. */
static void
check_constraints(TqTable *table, TupleTableSlot *slot)
{
	TupleDesc columns = RelationGetDescr(table->rel);
	bool may_fail;

	if (columns->constr == NULL)
		return;
	may_fail = columns->constr->num_check > 0;
	for (int i = 0; !may_fail && i < columns->natts; i++)
		may_fail = slot->tts_isnull[i] &&
				   TupleDescAttr(columns, i)->attnotnull;
	if (!may_fail)
		return;
	begin_executor(table);
	ExecConstraints(table->result, slot, table->estate);
}

/*
 * Inserts the rows into the table, without index entries.  Rows that are
 * inserted together need only one WAL record per page.
 *
 * Inserting a slot makes a tuple of its columns, out of which they would be
 * read again for the index entries.  But the slot has them still.
 */
void
tq_table_insert_rows(TqTable *table)
{
	AttrNumber columns = RelationGetDescr(table->rel)->natts;
	CommandId cid = GetCurrentCommandId(true);
	const Trigger *trigger = find_trigger(table->rel, TRIGGER_TYPE_INSERT);

	PreventCommandIfReadOnly("INSERT");
	if (trigger != NULL)
		refuse_trigger(table->rel, trigger);
	prepare_entries(table);
	for (int i = 0; i < table->filled; i++)
	{
		table->slots[i]->tts_tableOid = RelationGetRelid(table->rel);
		check_constraints(table, table->slots[i]);
	}
	if (table->filled == 1)
		table_tuple_insert(table->rel, table->slots[0], cid, 0, NULL);
	else
		table_multi_insert(table->rel, table->slots, table->filled, cid, 0,
						   NULL);
	for (int i = 0; i < table->filled; i++)
		table->slots[i]->tts_nvalid = columns;
}

/*
 * Inserts the index entries of a row.  Returns false if the arbiter, unless it
 * is InvalidOid, may have the key already; any other unique index raises an
 * error.
 */
static bool
insert_row_entries(TqTable *table, TupleTableSlot *slot, Oid arbiter)
{
	bool conflict = false;

	if (table->entries != NULL)
		return entries_insert(table->entries, slot, arbiter);
	TqInsertEntries(table->result, slot, table->estate,
					OidIsValid(arbiter) ? &conflict : NULL,
					OidIsValid(arbiter) ? list_make1_oid(arbiter) : NIL);
	ResetPerTupleExprContext(table->estate);
	return !conflict;
}

/*
 * Inserts the index entries of rows.  Returns how many of them have a key that is
 * free in the arbiter.  The first that has not has its entries, unlike those
 * after it.
 */
int
tq_table_insert_entries(TqTable *table, TupleTableSlot **slots, int n,
						Oid arbiter)
{
	int i = 0;

	if (n > 1 && table->entries != NULL)
		return insert_columns(table->entries, slots, n, arbiter);
	while (i < n && insert_row_entries(table, slots[i], arbiter))
		i++;
	return i;
}

/* Inserts the new rows, and makes them visible to later commands. */
void
tq_table_flush(TqTable *table)
{
	if (table->filled == 0)
		return;
	tq_table_insert_rows(table);
	(void) tq_table_insert_entries(table, table->slots, table->filled,
								   InvalidOid);
	table->filled = 0;
	CommandCounterIncrement();
}

/* Gives a row the values of another, which must live as long. */
void
tq_table_copy_values(TupleTableSlot *copy, TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	ExecClearTuple(copy);
	memcpy(copy->tts_values, slot->tts_values,
		   sizeof(Datum) * slot->tts_nvalid);
	memcpy(copy->tts_isnull, slot->tts_isnull,
		   sizeof(bool) * slot->tts_nvalid);
	ExecStoreVirtualTuple(copy);
}

/*
 * Returns a row with the values of another, which the caller changes and
 * drops.
 */
TupleTableSlot *
tq_table_copy_row(TqTable *table, TupleTableSlot *slot)
{
	TupleTableSlot *copy = table_slot_create(table->rel, NULL);

	tq_table_copy_values(copy, slot);
	return copy;
}

/* Raises an error for a result that the locking rules exclude. */
void
tq_table_error(const TqTable *table, TM_Result result)
{
	elog(ERROR, "unexpected result %d of a change in table \"%s\"",
		 (int) result, RelationGetRelationName(table->rel));
}

/*
 * Handles a row that was updated or deleted concurrently: raises a
 * serialization failure under an isolation level with a single snapshot;
 * otherwise returns, and the caller reads again.
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
			tq_table_error(table, result);
	}
}

/*
 * Deletes a row.  Without `wait`, returns TM_BeingModified if the row is
 * locked.
 */
TM_Result
tq_table_delete(TqTable *table, ItemPointer tid, bool wait)
{
	TM_FailureData failure;
	TM_Result result;
	const Trigger *trigger = find_trigger(table->rel, TRIGGER_TYPE_DELETE);

	PreventCommandIfReadOnly("DELETE");
	if (trigger != NULL)
		refuse_trigger(table->rel, trigger);
	result = TqTableDelete(table->rel, tid, GetCurrentCommandId(true), wait,
						   &failure);

	if (result == TM_Ok)
		CommandCounterIncrement();
	return result;
}

/* Locks the version of a row that is in the slot. */
TM_Result
tq_table_lock(TqTable *table, TupleTableSlot *slot, LockTupleMode mode,
			  LockWaitPolicy policy)
{
	TM_FailureData failure;

	PreventCommandIfReadOnly("SELECT FOR UPDATE");
	return table_tuple_lock(table->rel, &slot->tts_tid, SnapshotSelf, slot,
							GetCurrentCommandId(true), mode, policy,
							TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS, &failure);
}

/*
 * Locks the row in the slot.  Returns false if it has changed or is gone, or,
 * under TQ_LOCK_SKIP, if another session has locked it.
 */
bool
tq_table_lock_row(TqTable *table, TupleTableSlot *slot, TqLock mode)
{
	TM_Result result =
		tq_table_lock(table, slot,
					  mode == TQ_LOCK_SHARE ? LockTupleShare
											: LockTupleExclusive,
					  mode == TQ_LOCK_SKIP ? LockWaitSkip : LockWaitBlock);

	switch (result)
	{
		case TM_Ok:
			return true;
		case TM_WouldBlock:
			return false;
		case TM_Updated:
		case TM_Deleted:
			if (mode != TQ_LOCK_SKIP)
				tq_table_changed_under_us(table, result);
			return false;
		case TM_Invisible:
		case TM_SelfModified:
		case TM_BeingModified:
			break;
	}
	tq_table_error(table, result);
}

/*
 * Deletes the row in the slot unless another session has locked or changed it.
 *
 * The row may be locked only by this transaction, from an earlier statement.
 * table_tuple_delete() reports such a lock, too.  So the row is locked again,
 * exclusively and without waiting, which succeeds if no other session holds a
 * lock on it.
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

/* Replaces a row by a new version; waits for a concurrent writer. */
TM_Result
tq_table_update(TqTable *table, ItemPointer tid, TupleTableSlot *slot)
{
	TM_FailureData failure;
	LockTupleMode mode;
	TqUpdateIndexes indexes;
	TM_Result result;
	const Trigger *trigger = find_trigger(table->rel, TRIGGER_TYPE_UPDATE);

	PreventCommandIfReadOnly("UPDATE");
	if (trigger != NULL)
		refuse_trigger(table->rel, trigger);
	if (table->rel->rd_att->constr != NULL &&
		table->rel->rd_att->constr->num_check > 0)
		check_constraints(table, slot);
	result = TqTableUpdate(table->rel, tid, slot, GetCurrentCommandId(true),
						   &failure, &mode, &indexes);

	if (result != TM_Ok)
		return result;
	if (TqNeedsEntries(indexes))
	{
		/*
		 * Insert the index entries of a new version of a row, of those indexes
		 * that need one.
		 */
		prepare_entries(table);
		if (table->entries != NULL)
			(void) entries_insert(table->entries, slot, InvalidOid);
		else
		{
			TqInsertUpdatedEntries(table->result, slot, table->estate,
								   indexes);
			ResetPerTupleExprContext(table->estate);
		}
	}
	CommandCounterIncrement();
	return TM_Ok;
}
