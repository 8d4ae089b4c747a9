/*
 * watched_table.c
 *	  What each session caches of tables: rows, and numbers of names.
 *
 * A trigger on a table whose rows are cached sends a relcache invalidation, whatever writes it:
 * a function of tq, a restore, replication, a superuser.  So a call that begins
 * after the commit reads the rows again.  The session that changes the table
 * reads them again at once, and once more if its changes are undone.
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/sinval.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "rows.h"

static TqWatched *all = NULL;    /* that this session watches */
static bool has_changed = false; /* one of them, by this transaction */

/* Relcache callback: notes that a table may have changed. */
static void
watched_forget(Datum arg, Oid relid)
{
	for (TqWatched *watched = all; watched != NULL; watched = watched->next)
	{
		if (relid == InvalidOid || relid == watched->oid ||
			watched->oid == InvalidOid)
			watched->generation++;
		if (watched->note_change != NULL &&
			(relid == InvalidOid || relid == watched->oid))
			watched->note_change();
	}
}

/* Changes the generation of a table from now on when that has changed. */
void
tq_watched_begin(TqWatched *watched)
{
	static bool is_registered = false;

	if (watched->is_watched)
		return;
	if (!is_registered)
		CacheRegisterRelcacheCallback(watched_forget, (Datum) 0);
	is_registered = true;
	watched->is_watched = true;
	watched->next = all;
	all = watched;
}

/* Watches a table which is about to be read, and ignores changes of others. */
void
tq_watched_read(TqWatched *watched)
{
	tq_watched_begin(watched);
	watched->oid = tq_relation_oid(watched->table);
}

/*
 * Makes all sessions read a table again once this transaction has committed,
 * and this one at once.
 */
void
tq_watched_changed(TqWatched *watched)
{
	tq_watched_begin(watched);
	CacheInvalidateRelcacheByRelid(tq_relation_oid(watched->table));
	watched->generation++;
	watched->changed_here = has_changed = true;
}

/* Makes this session forget what it has read of changes that are undone. */
static void
undo_changes(SubTransactionId id)
{
	for (TqWatched *watched = all; watched != NULL; watched = watched->next)
		watched->generation += watched->changed_here ? 1 : 0;
}

static void
end_changes(void)
{
	undo_changes(TopSubTransactionId);
	for (TqWatched *watched = all; watched != NULL; watched = watched->next)
		watched->changed_here = false;
	has_changed = false;
}

const TqXactEnd tq_watched_xact_end = {.has_work = &has_changed,
									   .abort = undo_changes,
									   .reset = end_changes};

/*
 * ---- names that tables intern to numbers ----
 *
 * A row with a name is deleted only after every backend has emptied its caches
 * (interned.c).  Each backend caches numbers and names, but only those that it
 * found committed, because a number that the current transaction has inserted
 * may be rolled back.
 */

#define NAMES_KEPT 20000

/* The last transaction of this backend that wrote such a row. */
static TransactionId interning_xid = InvalidTransactionId;

static void
empty(TqNameCache *cache)
{
	if (cache->entries != NULL)
		hash_destroy(cache->entries);
	cache->entries = NULL;
}

/*
 * Returns the hash table of a cache, creating it if necessary.  It is emptied
 * when the table may have changed, as by DROP EXTENSION.
 */
static HTAB *
entries_of(TqNameCache *cache)
{
	HASHCTL control = {.keysize = cache->keysize,
					   .entrysize = cache->entrysize,
					   .hcxt = CacheMemoryContext};

	if (cache->entries != NULL && cache->kept == cache->watched.generation)
		return cache->entries;
	empty(cache);
	tq_watched_read(&cache->watched);
	cache->kept = cache->watched.generation;
	cache->entries = hash_create(cache->purpose, 64, &control,
								 HASH_ELEM | HASH_CONTEXT | cache->how);
	return cache->entries;
}

/* Returns the entry for a key, or NULL. */
void *
tq_name_find(TqNameCache *cache, const void *key)
{
	HTAB *entries = entries_of(cache);

	cache->found_at = SharedInvalidMessageCounter;
	return hash_search(entries, key, HASH_FIND, NULL);
}

/* Removes the entry for a key, if there is one. */
void
tq_name_remove(TqNameCache *cache, const void *key)
{
	(void) hash_search(entries_of(cache), key, HASH_REMOVE, NULL);
}

/* Returns whether this transaction has written such a row. */
bool
tq_name_is_interning(void)
{
	return TransactionIdIsValid(interning_xid) &&
		   TransactionIdEquals(interning_xid, GetTopTransactionIdIfAny());
}

/*
 * Returns whether a row that was read since tq_name_find() may be cached.  It
 * may not if it is perhaps one that this transaction has written, and may
 * roll back.  Nor may it if it was read with a snapshot that may be older than
 * an invalidation message which this backend has processed: nothing would
 * remove the entry then.
 */
static bool
may_add(const TqNameCache *cache)
{
	if (tq_name_is_interning())
		return false;
	return SharedInvalidMessageCounter ==
		   (tq_spi_is_reading ? tq_spi_read_since() : cache->found_at);
}

/*
 * Returns a new entry for a row that was just read, for the caller to fill in,
 * after emptying a cache that has become too large.  Returns NULL if the row
 * must not be cached.
 */
void *
tq_name_add(TqNameCache *cache, const void *key)
{
	if (!may_add(cache))
		return NULL;
	if (hash_get_num_entries(entries_of(cache)) >= NAMES_KEPT)
		empty(cache);
	return hash_search(entries_of(cache), key, HASH_ENTER, NULL);
}

/*
 * Records that this transaction is about to write a row whose columns are
 * cached.
 */
void
tq_name_interning(void)
{
	interning_xid = GetTopTransactionId();
}
