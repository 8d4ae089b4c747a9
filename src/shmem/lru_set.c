/*
 * lru_set.c
 *	  Entries in shared memory by key, of which the least recently used one goes.
 *
 * What the sessions of a server remember for each other about queues, keys and
 * workers are hints: each can be lost, and is then found out again.  So a key
 * has no entry until it is used, and there are as many entries as were allocated
 * at the start.  A key belongs to one set, in which it can be in any of a few
 * entries; a new one takes a free entry, or else that which was used least
 * recently.  The caller of tq_lru_make() fills in what it stands for.
 *
 * Locks
 * -----
 * Each set has one of TQ_LRU_LOCKS locks.  The entries of a set are made and
 * changed with it in exclusive mode, and read with it in share mode; the clock
 * of the set, and when an entry was last used, are atomic and move in share
 * mode, too.  A backend holds one of these locks at a time, except in
 * fair_clock.c, and takes nothing else meanwhile.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "storage/shmem.h"

#include "shmem.h"

/* Returns the size of the memory that tq_lru_attach() is given. */
Size
tq_lru_size(const TqLruSets *sets)
{
	return mul_size(sets->nsets,
					TQ_LRU_SET_SIZE(sets->nentries, sets->entry_size));
}

/* Keeps the address of the memory, which was zeroed when it was made. */
void
tq_lru_attach(TqLruSets *sets, void *memory, LWLockPadded *locks)
{
	sets->memory = memory;
	sets->locks = locks;
}

/* Returns a key of this database, with the set that it belongs to. */
TqLruKey
tq_lru_key(const TqLruSets *sets, Oid table, int32 id, int32 priority,
		   uint64 hash)
{
	uint32 words[] = {MyDatabaseId,      table,         (uint32) id,
					  (uint32) priority, (uint32) hash, (uint32) (hash >> 32)};

	return (TqLruKey){.database = MyDatabaseId,
					  .table = table,
					  .id = id,
					  .priority = priority,
					  .hash = hash,
					  .set = hash_bytes((const unsigned char *) words,
										sizeof(words)) %
							 sets->nsets};
}

/* Returns the first entry of a set, and its clock, which is before them. */
static char *
entries_of_set(const TqLruSets *sets, uint32 set, pg_atomic_uint32 **clock)
{
	char *memory = sets->memory +
				   set * TQ_LRU_SET_SIZE(sets->nentries, sets->entry_size);

	*clock = (pg_atomic_uint32 *) memory;
	return memory + TQ_LRU_SET_HEAD;
}

/*
 * Returns an entry by its number, from 0, used or free; NULL if there are no more.
 */
TqLruEntry *
tq_lru_entry(const TqLruSets *sets, int n)
{
	pg_atomic_uint32 *clock;
	uint32 set = (uint32) (n / sets->nentries);

	if (sets->memory == NULL || set >= (uint32) sets->nsets)
		return NULL;
	return (TqLruEntry *) (entries_of_set(sets, set, &clock) +
						   n % sets->nentries * sets->entry_size);
}

/*
 * Returns the entry of a key, which is used by that, or NULL.  The caller holds
 * the lock.
 */
void *
tq_lru_find(const TqLruSets *sets, const TqLruKey *key)
{
	pg_atomic_uint32 *clock;
	char *entries = entries_of_set(sets, key->set, &clock);

	for (int i = 0; i < sets->nentries; i++)
	{
		TqLruEntry *entry = (TqLruEntry *) (entries + i * sets->entry_size);

		if (entry->key.id != key->id || entry->key.hash != key->hash ||
			entry->key.priority != key->priority ||
			entry->key.table != key->table ||
			entry->key.database != key->database)
			continue;
		/* The one that was used last need not be moved. */
		if (pg_atomic_read_u32(&entry->used) != pg_atomic_read_u32(clock))
			pg_atomic_write_u32(&entry->used,
								pg_atomic_add_fetch_u32(clock, 1));
		return entry;
	}
	return NULL;
}

/*
 * Makes the entry of a key that has none, with zeros after its head.  The caller
 * holds the lock exclusively.
 */
void *
tq_lru_make(const TqLruSets *sets, const TqLruKey *key)
{
	pg_atomic_uint32 *clock;
	char *entries = entries_of_set(sets, key->set, &clock);
	uint32 now = pg_atomic_read_u32(clock);
	TqLruEntry *oldest = NULL;

	for (int i = 0; i < sets->nentries; i++)
	{
		TqLruEntry *entry = (TqLruEntry *) (entries + i * sets->entry_size);

		if (oldest == NULL || entry->key.database == InvalidOid ||
			now - pg_atomic_read_u32(&entry->used) >
				now - pg_atomic_read_u32(&oldest->used))
			oldest = entry;
		if (entry->key.database == InvalidOid)
			break;
	}
	memset(oldest, 0, sets->entry_size);
	oldest->key = *key;
	pg_atomic_init_u32(&oldest->used, pg_atomic_add_fetch_u32(clock, 1));
	return oldest;
}

/* Frees an entry.  The caller holds the lock exclusively. */
void
tq_lru_free(TqLruEntry *entry)
{
	entry->key.database = InvalidOid;
}

/* Frees all entries of this database. */
void
tq_lru_free_database(const TqLruSets *sets)
{
	for (int set = 0; set < sets->nsets; set++)
	{
		LWLock *lock = &sets->locks[set % TQ_LRU_LOCKS].lock;
		pg_atomic_uint32 *clock;
		char *entries = entries_of_set(sets, set, &clock);

		LWLockAcquire(lock, LW_EXCLUSIVE);
		for (int i = 0; i < sets->nentries; i++)
		{
			TqLruEntry *entry = (TqLruEntry *) (entries +
												i * sets->entry_size);

			if (entry->key.database == MyDatabaseId)
				tq_lru_free(entry);
		}
		LWLockRelease(lock);
	}
}
