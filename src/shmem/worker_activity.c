/*
 * worker_activity.c
 *	  What workers have done since it was last stored in their rows.
 *
 * A claim notes here that its worker was seen, and what it has claimed, so that
 * the row of the worker need not be written for each claim.  A claim is noted
 * before its transaction ends: whether it was committed is for the reader to
 * find out from the run.
 *
 * What is replaced by that of another worker (lru_set.c), or lost in a crash, is
 * what the worker did since its row was last written.  Without shared memory a
 * backend has one set of its own.
 *
 * Locks: those of lru_set.c, in exclusive mode to note a claim or to empty an
 * entry, in share mode to read one.  What counts entries takes none: it may miss
 * one that is just being written.
 */
#include "postgres.h"

#include "shmem.h"

#define SETS 512
#define SET_SIZE 8

typedef struct WorkerActivityEntry
{
	TqLruEntry head;
	int next;    /* where the next claim goes */
	int32 queue; /* of the worker */
	TqWorkerActivity activity;
} WorkerActivityEntry;

/* The set of a backend without shared memory. */
static int64 own_set[TQ_LRU_SET_SIZE(SET_SIZE, sizeof(WorkerActivityEntry)) /
					 sizeof(int64)];

static TqLruSets workers = {.nsets = 1,
							.nentries = SET_SIZE,
							.entry_size = sizeof(WorkerActivityEntry),
							.memory = (char *) own_set};

static Size
worker_activity_size(void)
{
	workers.nsets = SETS;
	return tq_lru_size(&workers);
}

static void
worker_activity_startup(void *memory, bool is_new, LWLockPadded *locks)
{
	tq_lru_attach(&workers, memory, locks);
}

const TqShmemPart tq_activity_shmem = {.name = "tq worker activity",
									   .tranche = "tq_worker_activity",
									   .locks = TQ_LRU_LOCKS,
									   .size = worker_activity_size,
									   .startup = worker_activity_startup};

static void
worker_activity_lock(const TqLruKey *key, LWLockMode mode)
{
	if (workers.locks != NULL)
		LWLockAcquire(tq_lru_lock(&workers, key), mode);
}

static void
worker_activity_unlock(const TqLruKey *key)
{
	if (workers.locks != NULL)
		LWLockRelease(tq_lru_lock(&workers, key));
}

/* Forgets what a worker has done: it begins as a new one. */
void
tq_activity_forget(Oid table, int32 worker)
{
	TqLruKey key = tq_lru_key(&workers, table, worker, 0, 0);
	TqLruEntry *entry;

	worker_activity_lock(&key, LW_EXCLUSIVE);
	entry = tq_lru_find(&workers, &key);
	if (entry != NULL)
		tq_lru_free(entry);
	worker_activity_unlock(&key);
}

/*
 * Notes that a worker was seen, unless that is 0, and its claims, oldest first.
 */
void
tq_activity_note(Oid table, int32 worker, int32 queue, TimestampTz seen,
				 const TqRecentClaim *claims, int n)
{
	TqLruKey key = tq_lru_key(&workers, table, worker, 0, 0);
	WorkerActivityEntry *entry;
	TqWorkerActivity *activity;

	worker_activity_lock(&key, LW_EXCLUSIVE);
	entry = tq_lru_find(&workers, &key);
	if (entry == NULL)
		entry = tq_lru_make(&workers, &key);
	entry->queue = queue;
	activity = &entry->activity;
	if (seen != 0)
		activity->seen = seen;
	for (int i = Max(n - TQ_RECENT_MAX, 0); i < n; i++)
	{
		activity->claims[entry->next] = claims[i];
		entry->next = (entry->next + 1) % TQ_RECENT_MAX;
		activity->n = Min(activity->n + 1, TQ_RECENT_MAX);
	}
	worker_activity_unlock(&key);
}

/* Returns what a worker has done, as far as it is known here. */
void
tq_activity_read(Oid table, int32 worker, TqWorkerActivity *activity)
{
	TqLruKey key = tq_lru_key(&workers, table, worker, 0, 0);
	const WorkerActivityEntry *entry;

	worker_activity_lock(&key, LW_SHARED);
	entry = tq_lru_find(&workers, &key);
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
	worker_activity_unlock(&key);
}

/*
 * Returns the queues of the workers that were seen since then, as far as they are
 * known here: one for each worker.
 */
int32 *
tq_activity_queues(Oid table, TimestampTz since, int *n)
{
	int32 *queues = palloc(sizeof(int32) * workers.nsets * workers.nentries);
	const TqLruEntry *head;

	*n = 0;
	for (int i = 0; (head = tq_lru_entry(&workers, i)) != NULL; i++)
	{
		const WorkerActivityEntry *entry = (const WorkerActivityEntry *) head;

		if (head->key.database == MyDatabaseId && head->key.table == table &&
			entry->activity.seen >= since)
			queues[(*n)++] = entry->queue;
	}
	return queues;
}
