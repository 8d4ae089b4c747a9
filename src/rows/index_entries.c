/*
 * index_entries.c
 *	  Inserts index entries without the executor.
 *
 * For every statement the executor reads the list of a table's indexes, builds
 * an IndexInfo for each, and compiles the predicates of partial ones.  For a
 * call that inserts one row that costs more than the entries themselves.  So a
 * backend caches what it has built, by table, until the server invalidates the
 * table or one of its indexes.
 *
 * That is possible for immediate btree indexes, as those of tq are.
 * If an administrator has added an index of another kind, the table is left to
 * the executor (table.c).
 *
 * The list is looked up after the table has been locked, as the executor does.
 * Locking processes the invalidations that other sessions have sent.  CREATE
 * INDEX CONCURRENTLY and DROP INDEX CONCURRENTLY wait for those that hold the
 * lock, so an index that is missing in a list that is in use, or has been
 * dropped since, is not needed by any other session yet, or any more.
 *
 * Rows that are inserted in the order of another unique index, the arbiter
 * (insert_new.c), have their primary keys in no order.  The entries of those are
 * inserted last, in order: each then goes to the last page of the index, which
 * btree finds without a search.  Of 1,000 tasks in an index of 300,000, without
 * the order 70 % do not, which is 3 K of the 58 K instructions of a task.
 *
 * An entry of the cache that is invalidated while it is in use must stay until
 * the call ends; it is freed at the end of the transaction.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/pg_list.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "rows.h"

/* What is cached of the indexes of a table, in a memory context of its own. */
typedef struct Shape
{
	Oid table;
	MemoryContext context;
	bool is_simple; /* false: the executor is needed */
	int n;
	int primary; /* primary key, if it is a bigint; -1: none */
	Oid *oids;
	IndexInfo **infos;
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
	int room; /* for late entries */
	Relation indexes[FLEXIBLE_ARRAY_MEMBER];
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

/* Adds an index to a shape, whose memory context is the current one. */
static void
add_index(Shape *shape, Relation index)
{
	IndexInfo *info = BuildIndexInfo(index);

	if (index->rd_rel->relam != BTREE_AM_OID ||
		!index->rd_index->indimmediate || info->ii_ExclusionOps != NULL)
		shape->is_simple = false;
	else
	{
		info->ii_PredicateState = ExecInitQual(info->ii_Predicate, NULL);
		info->ii_ExpressionsState = ExecInitExprList(info->ii_Expressions,
													 NULL);
	}
	if (index->rd_index->indisprimary && info->ii_NumIndexAttrs == 1 &&
		index->rd_opcintype[0] == INT8OID)
		shape->primary = shape->n;
	shape->oids[shape->n] = RelationGetRelid(index);
	shape->infos[shape->n++] = info;
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

	shape->table = RelationGetRelid(table);
	shape->context = context;
	shape->is_simple = true;
	shape->primary = -1;
	shape->oids = palloc(sizeof(Oid) * Max(list_length(oids), 1));
	shape->infos = palloc(sizeof(IndexInfo *) * Max(list_length(oids), 1));
	shape->tuple = CreateStandaloneExprContext();
	shape->state = makeNode(EState);
	shape->state->es_per_tuple_exprcontext = shape->tuple;
	foreach(cell, oids)
	{
		Relation index = index_open(lfirst_oid(cell), RowExclusiveLock);

		add_index(shape, index);
		index_close(index, NoLock);
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

/*
 * Opens the indexes of a table; returns NULL if the executor has to insert the
 * entries.
 */
TqEntries *
tq_entries_open(Relation table)
{
	const Shape *shape = shape_of(table);
	TqEntries *entries;

	if (!shape->is_simple)
		return NULL;
	entries = palloc(offsetof(TqEntries, indexes) +
					 sizeof(Relation) * shape->n);
	entries->table = table;
	entries->shape = shape;
	entries->late = NULL;
	entries->nlate = entries->room = 0;
	for (int i = 0; i < shape->n; i++)
		entries->indexes[i] = index_open(shape->oids[i], RowExclusiveLock);
	return entries;
}

/* Returns whether a row belongs into a partial index. */
static bool
satisfies_predicate(const TqEntries *entries, const IndexInfo *info,
					TupleTableSlot *slot)
{
	ExprContext *tuple = entries->shape->tuple;

	if (info->ii_Predicate == NIL)
		return true;
	tuple->ecxt_scantuple = slot;
	return ExecQualAndReset(info->ii_PredicateState, tuple);
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
 * Inserts the index entries of a row; with an arbiter, that of the primary key
 * when the indexes are closed.  Raises an error if a unique index has the key;
 * only for the arbiter, returns false if that may have it.
 */
bool
tq_entries_insert(TqEntries *entries, TupleTableSlot *slot, Oid arbiter)
{
	const Shape *shape = entries->shape;
	bool is_free = true;

	for (int i = 0; i < shape->n; i++)
	{
		IndexInfo *info = shape->infos[i];
		IndexUniqueCheck check = UNIQUE_CHECK_NO;
		Datum values[INDEX_MAX_KEYS];
		bool isnull[INDEX_MAX_KEYS];

		if (!info->ii_ReadyForInserts ||
			!satisfies_predicate(entries, info, slot))
			continue;
		if (i == shape->primary && OidIsValid(arbiter))
		{
			keep_late(entries, slot, info->ii_IndexAttrNumbers[0]);
			continue;
		}
		if (info->ii_Unique)
			check = shape->oids[i] == arbiter ? UNIQUE_CHECK_PARTIAL
											  : UNIQUE_CHECK_YES;
		shape->tuple->ecxt_scantuple = slot;
		FormIndexDatum(info, slot, shape->state, values, isnull);
		if (!index_insert(entries->indexes[i], values, isnull, &slot->tts_tid,
						  entries->table, check, false, info) &&
			check == UNIQUE_CHECK_PARTIAL)
			is_free = false;
		ResetExprContext(shape->tuple);
	}
	return is_free;
}

/*
 * Inserts the entries that were kept, and closes the indexes; keeps the locks
 * on them.
 */
void
tq_entries_close(TqEntries *entries)
{
	if (entries->nlate > 0)
	{
		int primary = entries->shape->primary;

		qsort(entries->late, entries->nlate, sizeof(Late), compare_late);
		for (int i = 0; i < entries->nlate; i++)
		{
			Datum key = Int64GetDatum(entries->late[i].key);
			bool isnull = false;

			(void) index_insert(entries->indexes[primary], &key, &isnull,
								&entries->late[i].tid, entries->table,
								UNIQUE_CHECK_YES, false,
								entries->shape->infos[primary]);
		}
		pfree(entries->late);
	}
	for (int i = 0; i < entries->shape->n; i++)
		index_close(entries->indexes[i], NoLock);
	pfree(entries);
}
