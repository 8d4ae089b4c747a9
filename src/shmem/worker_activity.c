/*
 * worker_activity.c
 *	  What workers have done since it was last stored in their rows.
 *
 * A claim notes here that its worker was seen, and what it has claimed, so that
 * the row of the worker need not be written for each claim.  A claim is noted
 * before its transaction ends: whether it was committed is for the reader to
 * find out from the run.
 *
 * A worker is looked for in a set of entries that its key determines, and
 * replaces the one of the set that was used least recently.  What is replaced,
 * or lost in a crash, is what the worker did since its row was last written.
 * Without shared memory a backend has one set of its own.
 *
 * Locks
 * -----
 * Each set has one of LOCKS locks, which protects all of it: in exclusive mode
 * to note a claim or to empty an entry, in share mode to read one.  A backend
 * holds one of them at a time, and takes nothing else meanwhile.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "storage/shmem.h"

#include "shmem.h"

#define SETS 512
#define WAYS 8
#define LOCKS 64

/* The worker of a row, in a table of a database. */
typedef struct WorkerActivityKey
{
	Oid database;
	Oid table; /* another one after DROP and CREATE EXTENSION */
	int32 worker;
} WorkerActivityKey;

typedef struct WorkerActivityEntry
{
	WorkerActivityKey key; /* database InvalidOid: free */
	uint32 used;
	int next; /* where the next claim goes */
	TqWorkerActivity activity;
} WorkerActivityEntry;

typedef struct Set
{
	uint32 uses;
	WorkerActivityEntry entries[WAYS];
} Set;

static Set own_set;
static Set *sets = &own_set;
static LWLockPadded *locks = NULL; /* NULL: no shared memory */

static Size
worker_activity_size(void)
{
	return mul_size(SETS, sizeof(Set));
}

static void
worker_activity_startup(void *memory, bool is_new, LWLockPadded *new_locks)
{
	sets = memory;
	locks = new_locks;
}

const TqShmemPart tq_activity_shmem = {.name = "tq worker activity",
									   .tranche = "tq_worker_activity",
									   .locks = LOCKS,
									   .size = worker_activity_size,
									   .startup = worker_activity_startup};

/* Locks the set of a key and returns it. */
static Set *
lock_set(const WorkerActivityKey *key, LWLockMode mode)
{
	uint32 hash = hash_bytes((const unsigned char *) key,
							 sizeof(WorkerActivityKey));

	if (locks == NULL)
		return sets;
	LWLockAcquire(&locks[hash % SETS % LOCKS].lock, mode);
	return &sets[hash % SETS];
}

static void
unlock_set(const Set *set)
{
	if (locks != NULL)
		LWLockRelease(&locks[(set - sets) % LOCKS].lock);
}

/* Returns the entry of a key, or NULL. */
static WorkerActivityEntry *
worker_activity_find_entry(Set *set, const WorkerActivityKey *key)
{
	for (int i = 0; i < WAYS; i++)
	{
		if (memcmp(&set->entries[i].key, key, sizeof(WorkerActivityKey)) == 0)
			return &set->entries[i];
	}
	return NULL;
}

/* Returns the entry of a key, after making one if necessary. */
static WorkerActivityEntry *
use_entry(Set *set, const WorkerActivityKey *key)
{
	WorkerActivityEntry *entry = worker_activity_find_entry(set, key);

	if (entry == NULL)
	{
		WorkerActivityEntry *oldest = &set->entries[0];

		/* Empty the entry that was used least recently, for another key. */
		for (int i = 1; i < WAYS; i++)
		{
			if (set->uses - set->entries[i].used > set->uses - oldest->used)
				oldest = &set->entries[i];
		}
		memset(oldest, 0, sizeof(WorkerActivityEntry));
		oldest->key = *key;
		entry = oldest;
	}
	entry->used = ++set->uses;
	return entry;
}

/* Forgets what a worker has done: it begins as a new one. */
void
tq_activity_forget(Oid table, int32 worker)
{
	WorkerActivityKey key = {MyDatabaseId, table, worker};
	Set *set = lock_set(&key, LW_EXCLUSIVE);
	WorkerActivityEntry *entry = worker_activity_find_entry(set, &key);

	if (entry != NULL)
		memset(entry, 0, sizeof(WorkerActivityEntry));
	unlock_set(set);
}

/*
 * Notes that a worker was seen, unless that is 0, and its claims, oldest first.
 */
void
tq_activity_note(Oid table, int32 worker, TimestampTz seen,
				 const TqRecentClaim *claims, int n)
{
	WorkerActivityKey key = {MyDatabaseId, table, worker};
	Set *set = lock_set(&key, LW_EXCLUSIVE);
	WorkerActivityEntry *entry = use_entry(set, &key);
	TqWorkerActivity *activity = &entry->activity;

	if (seen != 0)
		activity->seen = seen;
	for (int i = Max(n - TQ_RECENT_MAX, 0); i < n; i++)
	{
		activity->claims[entry->next] = claims[i];
		entry->next = (entry->next + 1) % TQ_RECENT_MAX;
		activity->n = Min(activity->n + 1, TQ_RECENT_MAX);
	}
	unlock_set(set);
}

/* Returns what a worker has done, as far as it is known here. */
void
tq_activity_read(Oid table, int32 worker, TqWorkerActivity *activity)
{
	WorkerActivityKey key = {MyDatabaseId, table, worker};
	Set *set = lock_set(&key, LW_SHARED);
	const WorkerActivityEntry *entry = worker_activity_find_entry(set, &key);

	if (entry != NULL)
	{
		int n = entry->activity.n;
		int first = entry->next + TQ_RECENT_MAX - n;

		/* Copy an entry, with its claims from the oldest one on. */
		activity->seen = entry->activity.seen;
		activity->n = n;
		for (int i = 0; i < n; i++)
			activity->claims[i] =
				entry->activity.claims[(first + i) % TQ_RECENT_MAX];
	}
	else
		*activity = (TqWorkerActivity){0};
	unlock_set(set);
}
