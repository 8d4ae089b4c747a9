/*
 * counts.c
 *	  Counters of queues and groups in shared memory.
 *
 * Each queue has gauges (how many rows there are), totals since the last reset
 * (how often something has happened), histograms, and rates.  A group has
 * counters once group_progress() has found it large.  A transaction applies its
 * changes (count_changes.c) right after its commit, so that rolled back work
 * costs nothing and is never counted.  Gauges and groups begin with a count of
 * the rows; count_snapshot.c says why that and the changes make the true
 * number.
 *
 * A database whose gauges have not been counted since the server was started,
 * or whose tables were changed by other statements than those of tq, has no
 * gauges: readers count the rows, and the maintenance worker counts them once
 * for all.  The identity of a table changes when it is truncated or rewritten.
 *
 * One lock protects everything.  Changes of queues are applied with it in share
 * mode, by atomic operations; new entries and groups need it in exclusive mode.
 * With the lock held, ProcArrayLock is taken, and nothing else.
 *
 * Totals are saved when the server is shut down, and lost in a crash, as the
 * server's own statistics are.  So are the names of the groups that had
 * counters: the maintenance worker counts these again.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/transam.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

#include "../util/clock.h"
#include "../util/guc.h"
#include "count_prepared.h"
#include "count_snapshot.h"
#include "counts.h"

#define DATABASES 128
#define GROUPS 1024

/* A rate is measured in periods; the last one is not over yet. */
#define PERIOD_S 5
#define PERIODS (60 / PERIOD_S + 1)

#define TOTALS (TQ_QUEUE_COUNTERS - TQ_QUEUE_GAUGES)

typedef enum State
{
	STATE_NONE,     /* to be counted */
	STATE_COUNTING, /* by a session, with a stored snapshot */
	STATE_EXACT
} State;

/* Of something that is counted. */
typedef struct Gauges
{
	State state;
	int snapshot;    /* while counting */
	bool is_spoiled; /* the count is not to be used */
} Gauges;

typedef struct Database
{
	Oid oid;           /* InvalidOid: free */
	Oid extension;     /* another one after DROP and CREATE EXTENSION */
	uint64 identity;   /* of the tables when they were counted */
	TimestampTz since; /* the totals; 0: no change yet */
	Gauges gauges;
	bool is_full; /* some queues have no entry */
	int groups;   /* that have counters */
} Database;

typedef struct Key
{
	Oid database;
	Oid extension;
	int64 id;
} Key;

typedef struct Period
{
	pg_atomic_uint32 number;
	pg_atomic_uint32 events[TQ_RATES];
} Period;

typedef struct Queue
{
	Key key;
	pg_atomic_uint64 counters[TQ_QUEUE_COUNTERS];
	Period periods[PERIODS];
} Queue;

typedef struct Group
{
	Key key;
	Gauges gauges;
	uint64 used;
	int64 counters[TQ_GROUP_COUNTERS];
} Group;

typedef struct Shared
{
	LWLock *lock;
	uint64 uses;
	Database databases[DATABASES];
} Shared;

static Shared *shared = NULL;
static HTAB *queues = NULL;
static HTAB *groups = NULL;

/* The count that this session makes. */
static struct
{
	bool is_running;
	int snapshot;
	SubTransactionId subid;
	TqCounted what;
	Key key;
} build;

/* ---- start and end of the server ---- */

static Size
size(void)
{
	return sizeof(Shared);
}

static Size
tables(void)
{
	return add_size(hash_estimate_size(Max(tq_counted_queues, 1),
									   sizeof(Queue)),
					hash_estimate_size(GROUPS, sizeof(Group)));
}

static HTAB *
make_table(const char *name, int n, Size entry)
{
	HASHCTL control = {.keysize = sizeof(Key), .entrysize = entry};

	return ShmemInitHash(name, n, n, &control,
						 HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
}

static void load(void);
static void save(int code, Datum arg);
static void abandon_build(SubTransactionId id);

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	shared = memory;
	queues = make_table("tq queue counters", Max(tq_counted_queues, 1),
						sizeof(Queue));
	groups = make_table("tq group counters", GROUPS, sizeof(Group));
	if (!is_new)
		return;
	shared->lock = &locks->lock;
	load();
	on_shmem_exit(save, (Datum) 0);
}

const TqShmemPart tq_counts_shmem = {.name = "tq counts",
									 .tranche = "TqCounts",
									 .locks = 1,
									 .size = size,
									 .tables = tables,
									 .startup = startup};

/* ---- entries; the caller holds the lock ---- */

static Key
make_key(Oid extension, int64 id)
{
	return (Key){MyDatabaseId, extension, id};
}

static Database *
find_database(void)
{
	static int place = 0;

	if (shared->databases[place].oid == MyDatabaseId)
		return &shared->databases[place];
	for (int i = 0; i < DATABASES; i++)
	{
		if (shared->databases[i].oid != MyDatabaseId)
			continue;
		place = i;
		return &shared->databases[i];
	}
	return NULL;
}

/* Removes an entry, and makes find_queue() forget it. */
static bool
remove_entry(HTAB *table, const Key *key)
{
	Key *removed = hash_search(table, key, HASH_REMOVE, NULL);

	if (removed != NULL)
		memset(removed, 0, sizeof(Key));
	return removed != NULL;
}

/* Removes the entries of queues or groups of a database. */
static void
remove_entries(HTAB *table, Oid database)
{
	HASH_SEQ_STATUS scan;
	const Key *key;

	hash_seq_init(&scan, table);
	while ((key = hash_seq_search(&scan)) != NULL)
	{
		if (key->database == database)
			(void) remove_entry(table, key);
	}
}

static void
clear_database(Database *database, Oid oid, Oid extension)
{
	remove_entries(queues, database->oid);
	remove_entries(groups, database->oid);
	*database = (Database){.oid = oid, .extension = extension};
}

/*
 * Returns the entry of this database and extension, which is made if there is
 * none; NULL if there is no room.  The lock is exclusive.
 */
static Database *
enter_database(Oid extension)
{
	Database *database = find_database();

	for (int i = 0; database == NULL && i < DATABASES; i++)
	{
		if (!OidIsValid(shared->databases[i].oid))
			database = &shared->databases[i];
	}
	if (database != NULL && database->extension != extension)
		clear_database(database, MyDatabaseId, extension);
	return database;
}

static Queue *
find_queue(const Key *key)
{
	static Queue *last = NULL; /* changes of one queue follow each other */

	if (last == NULL || memcmp(&last->key, key, sizeof(Key)) != 0)
		last = hash_search(queues, key, HASH_FIND, NULL);
	return last;
}

static Queue *
enter_queue(const Key *key)
{
	bool found;
	Queue *queue = tq_counted_queues == 0
					   ? NULL
					   : hash_search(queues, key, HASH_ENTER_NULL, &found);

	if (queue == NULL || found)
		return queue;
	for (int i = 0; i < TQ_QUEUE_COUNTERS; i++)
		pg_atomic_init_u64(&queue->counters[i], 0);
	for (int i = 0; i < PERIODS; i++)
	{
		pg_atomic_init_u32(&queue->periods[i].number, 0);
		for (int rate = 0; rate < TQ_RATES; rate++)
			pg_atomic_init_u32(&queue->periods[i].events[rate], 0);
	}
	return queue;
}

static void
remove_group(Database *database, const Key *key)
{
	if (remove_entry(groups, key))
		database->groups--;
}

/* ---- changes ---- */

/* Returns which rate an event belongs to, or -1. */
static int
rate_of(int counter)
{
	if (counter == TQ_QUEUE_CREATED)
		return 0;
	if (counter == TQ_QUEUE_CLAIMED)
		return 1;
	return counter >= TQ_QUEUE_ENDED && counter < TQ_QUEUE_WAITED ? 2 : -1;
}

/* Counts events of this moment. */
static void
count_rate(Queue *queue, int rate, int64 events)
{
	uint32 now = (uint32) (tq_clock_real_seconds() / PERIOD_S);
	Period *period = &queue->periods[now % PERIODS];
	uint32 before = pg_atomic_read_u32(&period->number);

	/* An event that is counted just then may be lost. */
	if (before != now &&
		pg_atomic_compare_exchange_u32(&period->number, &before, now))
	{
		for (int i = 0; i < TQ_RATES; i++)
			pg_atomic_write_u32(&period->events[i], 0);
	}
	pg_atomic_fetch_add_u32(&period->events[rate], (int32) events);
}

/* Returns whether gauges count the changes of this transaction. */
static bool
counts(const Gauges *gauges, TransactionId xid)
{
	switch (gauges->state)
	{
		case STATE_NONE:
			return false;
		case STATE_COUNTING:
			return !tq_count_snapshot_shows(gauges->snapshot, xid);
		case STATE_EXACT:
			return true;
	}
	return false;
}

/* Makes gauges be counted again. */
static void
doubt(Gauges *gauges)
{
	if (gauges->state == STATE_COUNTING)
		gauges->is_spoiled = true;
	else
		gauges->state = STATE_NONE;
}

static void
change_queue(const Database *database, Queue *queue,
			 const TqCountChange *change, TransactionId xid)
{
	int rate = rate_of(change->counter);

	if (change->counter >= TQ_QUEUE_GAUGES || counts(&database->gauges, xid))
		pg_atomic_fetch_add_u64(&queue->counters[change->counter],
								change->value);
	if (rate >= 0)
		count_rate(queue, rate, change->value);
}

/* Returns whether a change takes away what the times of a group are from. */
static bool
takes_times_away(const Group *group, const TqCountChange *change)
{
	const int64 *counters = group->counters;

	switch (change->counter)
	{
		case TQ_GROUP_GONE:
			return true;
		case TQ_GROUP_UNDONE_RESOLVED:
			return change->value >= counters[TQ_GROUP_LAST_RESOLVED];
		case TQ_GROUP_UNDONE_BAD:
			return change->value != TQ_COUNT_NO_TIME &&
				   (counters[TQ_GROUP_FIRST_BAD] == TQ_COUNT_NO_TIME ||
					change->value <= counters[TQ_GROUP_FIRST_BAD]);
		default:
			return false;
	}
}

static void
change_group(Database *database, const Key *key, const TqCountChange *change,
			 TransactionId xid)
{
	Group *group = hash_search(groups, key, HASH_FIND, NULL);

	if (group == NULL || !counts(&group->gauges, xid))
		return;
	if (change->counter < TQ_GROUP_COUNTERS)
		tq_count_merge(TQ_COUNTED_GROUP, change->counter,
					   &group->counters[change->counter], change->value);
	else if (group->gauges.state == STATE_COUNTING)
		group->gauges.is_spoiled = true;
	else if (takes_times_away(group, change))
		remove_group(database, key);
}

/*
 * Applies a change; returns false if that needs the lock in exclusive mode, and
 * it is held in share mode.
 */
static bool
apply(Database *database, Oid extension, const TqCountChange *change,
	  TransactionId xid, bool is_exclusive)
{
	Key key = make_key(extension, change->id);
	Queue *queue;

	if (change->what == TQ_COUNTED_GROUP)
	{
		if (database->groups > 0 && is_exclusive)
			change_group(database, &key, change, xid);
		return database->groups == 0 || is_exclusive;
	}
	if (change->counter == TQ_QUEUE_DOUBT)
		doubt(&database->gauges);
	if (change->counter == TQ_QUEUE_GONE && is_exclusive)
		(void) remove_entry(queues, &key);
	if (change->counter >= TQ_QUEUE_COUNTERS)
		return is_exclusive || change->counter == TQ_QUEUE_DOUBT;
	queue = find_queue(&key);
	if (queue == NULL && !is_exclusive && !database->is_full)
		return false;
	if (queue == NULL && is_exclusive)
		queue = enter_queue(&key);
	if (queue == NULL)
		database->is_full = true;
	else
		change_queue(database, queue, change, xid);
	return true;
}

/* Applies changes from one on; the lock is exclusive. */
static void
apply_exclusively(Oid extension, const TqCountChange *changes, int n,
				  TransactionId xid)
{
	Database *database = enter_database(extension);

	for (int i = 0; database != NULL && i < n; i++)
		(void) apply(database, extension, &changes[i], xid, true);
}

/* Applies the changes of this transaction, which has committed. */
static void
counts_commit(void)
{
	int n;
	Oid extension;
	const TqCountChange *changes = tq_count_changes(&n, &extension);
	TransactionId xid = GetTopTransactionIdIfAny();
	Database *database;
	int done = 0;

	if (n == 0 || shared == NULL)
		return;
	LWLockAcquire(shared->lock, LW_SHARED);
	database = find_database();
	if (database != NULL && database->extension == extension)
	{
		while (done < n &&
			   apply(database, extension, &changes[done], xid, false))
			done++;
	}
	LWLockRelease(shared->lock);
	if (done < n)
	{
		LWLockAcquire(shared->lock, LW_EXCLUSIVE);
		apply_exclusively(extension, changes + done, n - done, xid);
		LWLockRelease(shared->lock);
	}
}

/* ---- prepared transactions ---- */

/* Applies the changes of prepared transactions that have committed. */
static void
apply_prepared(void)
{
	const TqCountPrepared *entry;
	int place = 0;

	if (max_prepared_xacts == 0)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	while ((entry = tq_count_prepared_next(&place)) != NULL)
	{
		Database *database = enter_database(entry->extension);

		if (!TransactionIdIsInProgress(entry->xid))
		{
			if (TransactionIdDidCommit(entry->xid) && entry->n >= 0)
				apply_exclusively(entry->extension, entry->changes, entry->n,
								  entry->xid);
			else if (TransactionIdDidCommit(entry->xid) && database != NULL)
			{
				doubt(&database->gauges);
				remove_entries(groups, MyDatabaseId);
				database->groups = 0;
			}
			tq_count_prepared_remove(place);
		}
		place++;
	}
	LWLockRelease(shared->lock);
}

/* Removes what has ended from the list, so that there is room. */
static void
counts_before_prepare(void)
{
	if (shared != NULL)
		apply_prepared();
}

/* Keeps the changes of this transaction, which is prepared. */
static void
counts_prepared(void)
{
	int n;
	Oid extension;
	const TqCountChange *changes = tq_count_changes(&n, &extension);
	Database *database;

	if (n == 0 || shared == NULL)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	database = enter_database(extension);
	if (!tq_count_prepared_add(extension, GetTopTransactionIdIfAny(), changes,
							   n) &&
		database != NULL)
		doubt(&database->gauges);
	LWLockRelease(shared->lock);
}

/* ---- the end of a transaction ---- */

/* This process has noted that it commits. */
static bool is_noted = false;

static void
counts_before_commit(void)
{
	int n;
	Oid extension;

	(void) tq_count_changes(&n, &extension);
	is_noted = n > 0;
	if (is_noted)
		tq_count_commit_begins(GetTopTransactionIdIfAny());
}

static void
counts_abort(SubTransactionId id)
{
	abandon_build(id);
	tq_count_changes_abort(id);
}

static void
counts_subcommit(SubTransactionId id, SubTransactionId parent)
{
	if (build.is_running && build.subid == id)
		build.subid = parent;
	tq_count_changes_subcommit(id, parent);
}

static void
counts_reset(void)
{
	if (is_noted)
		tq_count_commit_ends();
	is_noted = false;
	tq_count_changes_reset();
}

const TqXactEnd tq_counts_xact_end = {.before_commit = counts_before_commit,
									  .commit = counts_commit,
									  .abort = counts_abort,
									  .reset = counts_reset,
									  .before_prepare = counts_before_prepare,
									  .prepared = counts_prepared,
									  .subcommit = counts_subcommit};

/* ---- readers ---- */

/*
 * Waits until what is committed by now is counted.
 */
void
tq_counts_settle(void)
{
	if (shared == NULL)
		return;
	apply_prepared();
	tq_count_commits_wait();
}

/* Returns where gauges are read; the caller holds the lock. */
static TqCountSource
source_of(const Database *database, Oid extension, uint64 identity)
{
	if (RecoveryInProgress() || tq_counted_queues == 0)
		return TQ_COUNT_TABLES;
	if (database == NULL || database->extension != extension ||
		database->gauges.state != STATE_EXACT ||
		database->identity != identity)
		return TQ_COUNT_REBUILDING;
	return TQ_COUNT_MEMORY;
}

/* Adds the changes of this transaction to counters of a queue. */
static bool
add_own_queue(Oid extension, int32 queue, int64 *counters, int last)
{
	int n;
	Oid own;
	const TqCountChange *changes = tq_count_changes(&n, &own);

	for (int i = 0; i < n && own == extension; i++)
	{
		if (changes[i].what != TQ_COUNTED_QUEUE)
			continue;
		if (changes[i].counter == TQ_QUEUE_DOUBT)
			return false;
		if (changes[i].id == queue && changes[i].counter < last)
			counters[changes[i].counter] += changes[i].value;
	}
	return true;
}

/*
 * Reads the gauges of a queue as this transaction sees them.  If the result is
 * not TQ_COUNT_MEMORY, the caller counts the rows.
 */
TqCountSource
tq_counts_read_gauges(Oid extension, uint64 identity, int32 queue,
					  int64 *gauges)
{
	Key key = make_key(extension, queue);
	TqCountSource source;
	const Database *database;
	Queue *entry;

	memset(gauges, 0, sizeof(int64) * TQ_QUEUE_GAUGES);
	if (shared == NULL)
		return TQ_COUNT_TABLES;
	LWLockAcquire(shared->lock, LW_SHARED);
	database = find_database();
	source = source_of(database, extension, identity);
	entry = find_queue(&key);
	for (int i = 0; entry != NULL && i < TQ_QUEUE_GAUGES; i++)
		gauges[i] = (int64) pg_atomic_read_u64(&entry->counters[i]);
	if (source == TQ_COUNT_MEMORY && entry == NULL && database->is_full)
		source = TQ_COUNT_TABLES;
	LWLockRelease(shared->lock);
	if (!add_own_queue(extension, queue, gauges, TQ_QUEUE_GAUGES))
		return TQ_COUNT_REBUILDING;
	return source;
}

/* Adds up the events of the last minute, without the present period. */
static void
read_rates(Queue *queue, int64 *last_minute)
{
	uint32 now = (uint32) (tq_clock_real_seconds() / PERIOD_S);

	memset(last_minute, 0, sizeof(int64) * TQ_RATES);
	for (int i = 0; i < PERIODS; i++)
	{
		Period *period = &queue->periods[i];
		uint32 age = now - pg_atomic_read_u32(&period->number);

		for (int rate = 0; rate < TQ_RATES && age > 0 && age < PERIODS; rate++)
			last_minute[rate] += pg_atomic_read_u32(&period->events[rate]);
	}
}

static void
read_queue(Queue *queue, TqQueueCounts *counts)
{
	counts->queue = (int32) queue->key.id;
	for (int i = 0; i < TQ_QUEUE_COUNTERS; i++)
		counts->counters[i] = (int64) pg_atomic_read_u64(&queue->counters[i]);
	read_rates(queue, counts->last_minute);
}

/* Returns room for the queues that only this transaction has changed. */
static int
own_queues(void)
{
	int n;
	Oid extension;

	(void) tq_count_changes(&n, &extension);
	return n + 1;
}

/* Adds empty counters of the queues that only this transaction has changed. */
static void
add_own_queues(Oid extension, TqQueueCounts *found, int *n)
{
	int nchanges;
	Oid own;
	const TqCountChange *changes = tq_count_changes(&nchanges, &own);

	for (int i = 0; i < nchanges && own == extension; i++)
	{
		bool is_there = changes[i].what != TQ_COUNTED_QUEUE ||
						changes[i].id == 0;

		for (int j = 0; j < *n && !is_there; j++)
			is_there = found[j].queue == changes[i].id;
		if (is_there)
			continue;
		memset(&found[*n], 0, sizeof(TqQueueCounts));
		found[(*n)++].queue = (int32) changes[i].id;
	}
}

/*
 * Reads the counters of all queues of this database as this transaction sees
 * them.  The gauges count only if the result is TQ_COUNT_MEMORY; a queue that is
 * not among them has none.
 */
TqCountSource
tq_counts_read_queues(Oid extension, uint64 identity, TqQueueCounts **found,
					  int *n)
{
	TqCountSource source;
	HASH_SEQ_STATUS scan;
	Queue *queue;
	int room;

	*n = 0;
	if (shared == NULL)
		return TQ_COUNT_TABLES;
	LWLockAcquire(shared->lock, LW_SHARED);
	room = (int) hash_get_num_entries(queues);
	*found = palloc_extended(sizeof(TqQueueCounts) * (room + own_queues()),
							 MCXT_ALLOC_HUGE);
	source = source_of(find_database(), extension, identity);
	if (source == TQ_COUNT_MEMORY && find_database()->is_full)
		source = TQ_COUNT_TABLES;
	hash_seq_init(&scan, queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		if (queue->key.database == MyDatabaseId &&
			queue->key.extension == extension && *n < room)
			read_queue(queue, &(*found)[(*n)++]);
	}
	LWLockRelease(shared->lock);
	add_own_queues(extension, *found, n);
	for (int i = 0; i < *n; i++)
	{
		if (!add_own_queue(extension, (*found)[i].queue, (*found)[i].counters,
						   TQ_QUEUE_COUNTERS))
			source = TQ_COUNT_REBUILDING;
	}
	return source;
}

/* Returns whether this transaction has changed a group otherwise than by sums. */
static bool
add_own_group(Oid extension, int64 id, int64 *counters)
{
	int n;
	Oid own;
	const TqCountChange *changes = tq_count_changes(&n, &own);

	for (int i = 0; i < n && own == extension; i++)
	{
		if (changes[i].what != TQ_COUNTED_GROUP || changes[i].id != id)
			continue;
		if (changes[i].counter >= TQ_GROUP_COUNTERS)
			return false;
		tq_count_merge(TQ_COUNTED_GROUP, changes[i].counter,
					   &counters[changes[i].counter], changes[i].value);
	}
	return true;
}

/*
 * Reads the counters of a group as this transaction sees them; returns false
 * if there are none.
 */
bool
tq_counts_read_group(Oid extension, uint64 identity, int64 id, int64 *counters)
{
	Key key = make_key(extension, id);
	Group *group;
	bool found;

	if (shared == NULL)
		return false;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	group = hash_search(groups, &key, HASH_FIND, NULL);
	found = group != NULL && group->gauges.state == STATE_EXACT &&
			source_of(find_database(), extension, identity) == TQ_COUNT_MEMORY;
	if (found)
	{
		group->used = ++shared->uses;
		memcpy(counters, group->counters, sizeof(group->counters));
	}
	LWLockRelease(shared->lock);
	return found && add_own_group(extension, id, counters);
}

/* Returns since when totals are counted, or 0. */
TimestampTz
tq_counts_since(Oid extension)
{
	const Database *database;
	TimestampTz since = 0;

	if (shared == NULL)
		return 0;
	LWLockAcquire(shared->lock, LW_SHARED);
	database = find_database();
	if (database != NULL && database->extension == extension)
		since = database->since;
	LWLockRelease(shared->lock);
	return since;
}

static void
clear_totals(Queue *queue)
{
	for (int i = TQ_QUEUE_GAUGES; i < TQ_QUEUE_COUNTERS; i++)
		pg_atomic_write_u64(&queue->counters[i], 0);
	for (int i = 0; i < PERIODS; i++)
		pg_atomic_write_u32(&queue->periods[i].number, 0);
}

/*
 * Sets all totals of this database to zero, and makes its gauges be counted
 * again.
 */
void
tq_counts_reset(Oid extension)
{
	Database *database;
	HASH_SEQ_STATUS scan;
	Queue *queue;

	if (shared == NULL)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		if (queue->key.database == MyDatabaseId)
			clear_totals(queue);
	}
	database = enter_database(extension);
	if (database != NULL)
	{
		doubt(&database->gauges);
		database->since = tq_clock_real_now();
	}
	LWLockRelease(shared->lock);
}

/* Removes what is kept of a database, which was dropped. */
void
tq_counts_forget_database(Oid oid)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < DATABASES; i++)
	{
		if (shared->databases[i].oid == oid)
			clear_database(&shared->databases[i], InvalidOid, InvalidOid);
	}
	LWLockRelease(shared->lock);
}

/* ---- counting ---- */

/*
 * Returns whether the gauges of this database are to be counted.  For the
 * maintenance worker.
 */
bool
tq_counts_must_build(Oid extension, uint64 identity)
{
	const Database *database;
	bool must;

	if (shared == NULL || tq_counted_queues == 0)
		return false;
	apply_prepared();
	LWLockAcquire(shared->lock, LW_SHARED);
	database = find_database();
	must = database == NULL || database->extension != extension ||
		   database->gauges.state == STATE_NONE ||
		   (database->gauges.state == STATE_EXACT &&
			database->identity != identity);
	LWLockRelease(shared->lock);
	return must;
}

/* Returns a group that had counters before the server was started, or 0. */
int64
tq_counts_group_to_build(Oid extension)
{
	HASH_SEQ_STATUS scan;
	Group *group;
	int64 id = 0;

	if (shared == NULL)
		return 0;
	LWLockAcquire(shared->lock, LW_SHARED);
	hash_seq_init(&scan, groups);
	while ((group = hash_seq_search(&scan)) != NULL)
	{
		if (group->key.database == MyDatabaseId &&
			group->key.extension == extension &&
			group->gauges.state == STATE_NONE)
			id = group->key.id;
	}
	LWLockRelease(shared->lock);
	return id;
}

/* Sets the gauges of all queues of this database to zero. */
static void
clear_gauges(Oid extension)
{
	HASH_SEQ_STATUS scan;
	Queue *queue;

	hash_seq_init(&scan, queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		if (queue->key.database != MyDatabaseId ||
			queue->key.extension != extension)
			continue;
		for (int i = 0; i < TQ_QUEUE_GAUGES; i++)
			pg_atomic_write_u64(&queue->counters[i], 0);
	}
}

/* Removes the group that was read least recently, to make room. */
static void
remove_oldest_group(void)
{
	HASH_SEQ_STATUS scan;
	Group *group;
	Group *oldest = NULL;
	Database *database = NULL;

	hash_seq_init(&scan, groups);
	while ((group = hash_seq_search(&scan)) != NULL)
	{
		if (group->gauges.state != STATE_COUNTING &&
			(oldest == NULL || group->used < oldest->used))
			oldest = group;
	}
	for (int i = 0; oldest != NULL && i < DATABASES; i++)
	{
		if (shared->databases[i].oid == oldest->key.database)
			database = &shared->databases[i];
	}
	if (database != NULL)
		remove_group(database, &oldest->key);
}

/* Returns the entry of a group that is to be counted, or NULL. */
static Group *
enter_group(Database *database, const Key *key)
{
	bool found;
	Group *group;

	if (hash_get_num_entries(groups) >= GROUPS)
		remove_oldest_group();
	group = hash_search(groups, key, HASH_ENTER_NULL, &found);
	if (group == NULL || (found && group->gauges.state != STATE_NONE))
		return NULL;
	if (!found)
		database->groups++;
	memset(&group->gauges, 0, sizeof(Gauges));
	memset(group->counters, 0, sizeof(group->counters));
	group->used = ++shared->uses;
	return group;
}

/* Returns whether this transaction has changed what is to be counted. */
static bool
is_changed_here(TqCounted what, int64 id)
{
	int n;
	Oid extension;
	const TqCountChange *changes = tq_count_changes(&n, &extension);

	for (int i = 0; i < n; i++)
	{
		if (changes[i].what != what || what == TQ_COUNTED_QUEUE ||
			changes[i].id == id)
			return true;
	}
	return false;
}

/* Returns the gauges that are to be counted, or NULL. */
static Gauges *
begin_gauges(Oid extension, uint64 identity, TqCounted what, int64 id)
{
	Key key = make_key(extension, id);
	Database *database = enter_database(extension);
	Group *group;

	if (database == NULL)
		return NULL;
	if (what == TQ_COUNTED_GROUP)
	{
		if (database->gauges.state != STATE_EXACT ||
			database->identity != identity)
			return NULL;
		group = enter_group(database, &key);
		return group == NULL ? NULL : &group->gauges;
	}
	if (database->gauges.state == STATE_COUNTING)
		return NULL;
	if (database->since == 0)
		database->since = tq_clock_real_now();
	database->identity = identity;
	database->is_full = false;
	clear_gauges(extension);
	return &database->gauges;
}

/* Makes a transaction known that was prepared before the server started. */
static void
note_prepared(Oid extension, const TransactionId *prepared, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (!tq_count_prepared_has(prepared[i]))
			(void) tq_count_prepared_add(extension, prepared[i], NULL, -1);
	}
}

/*
 * Begins to count the gauges of this database, or the tasks of a group; returns
 * false if that is not possible.  `prepared` are the transactions that were
 * prepared before.  The caller pushes *snapshot at once, counts by it, and sets
 * the counters.
 */
bool
tq_counts_build_begin(Oid extension, uint64 identity, TqCounted what, int64 id,
					  const TransactionId *prepared, int nprepared,
					  Snapshot *snapshot)
{
	Gauges *gauges;

	if (shared == NULL || RecoveryInProgress() || build.is_running ||
		is_changed_here(what, id))
		return false;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	note_prepared(extension, prepared, nprepared);
	gauges = begin_gauges(extension, identity, what, id);
	if (gauges != NULL)
	{
		gauges->snapshot = tq_count_snapshot_take(snapshot);
		gauges->state = gauges->snapshot < 0 ? STATE_NONE : STATE_COUNTING;
		gauges->is_spoiled = false;
		build.is_running = gauges->state == STATE_COUNTING;
		build.snapshot = gauges->snapshot;
		build.subid = GetCurrentSubTransactionId();
		build.what = what;
		build.key = make_key(extension, id);
	}
	LWLockRelease(shared->lock);
	return build.is_running;
}

/* Adds to a counter what was counted; id is that of a queue, or the group. */
void
tq_counts_build_set(int64 id, int counter, int64 value)
{
	Key key = make_key(build.key.extension, id);

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (build.what == TQ_COUNTED_QUEUE)
	{
		Queue *queue = enter_queue(&key);

		if (queue != NULL)
			pg_atomic_fetch_add_u64(&queue->counters[counter], value);
		else
			find_database()->is_full = true;
	}
	else
	{
		Group *group = hash_search(groups, &key, HASH_FIND, NULL);

		if (group != NULL)
			tq_count_merge(TQ_COUNTED_GROUP, counter,
						   &group->counters[counter], value);
	}
	LWLockRelease(shared->lock);
}

/*
 * Returns the gauges that this session counts, or NULL if they are no longer
 * there.  The caller holds the lock.
 */
static Gauges *
find_counted(void)
{
	Database *database = find_database();
	Group *group;

	if (database == NULL || database->extension != build.key.extension)
		return NULL;
	if (build.what == TQ_COUNTED_QUEUE)
		return &database->gauges;
	group = hash_search(groups, &build.key, HASH_FIND, NULL);
	return group == NULL ? NULL : &group->gauges;
}

/* Ends the count; returns whether its result is to be used. */
static bool
end_build(bool is_done)
{
	Gauges *gauges;
	bool is_used = false;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	tq_count_snapshot_free(build.snapshot);
	gauges = find_counted();
	if (gauges != NULL && gauges->state == STATE_COUNTING &&
		gauges->snapshot == build.snapshot)
	{
		is_used = is_done && !gauges->is_spoiled;
		gauges->state = is_used ? STATE_EXACT : STATE_NONE;
		if (!is_used && build.what == TQ_COUNTED_GROUP)
			remove_group(find_database(), &build.key);
	}
	build.is_running = false;
	LWLockRelease(shared->lock);
	return is_used;
}

/* Ends the count: from now on the counters are exact, if it returns true. */
bool
tq_counts_build_end(void)
{
	tq_count_snapshot_wait(build.snapshot);
	return end_build(true);
}

/* Gives up the count of a transaction or subtransaction that is aborted. */
static void
abandon_build(SubTransactionId id)
{
	if (build.is_running && (id == TopSubTransactionId || id == build.subid))
		(void) end_build(false);
}

/* ---- statistics that outlive a shutdown ---- */

#define FILE_NAME PGSTAT_STAT_PERMANENT_DIRECTORY "/tq.stat"
#define FILE_MAGIC 0x74713031

/* What begins a record of the file, which its kind determines. */
typedef enum Kind
{
	KIND_END,
	KIND_DATABASE,
	KIND_QUEUE,
	KIND_GROUP
} Kind;

typedef struct Header
{
	uint32 magic;
	uint32 counters; /* of a queue, in this version */
} Header;

static bool
write_record(FILE *file, Kind kind, const void *record, size_t bytes)
{
	int32 number = kind;

	return fwrite(&number, sizeof(number), 1, file) == 1 &&
		   (bytes == 0 || fwrite(record, bytes, 1, file) == 1);
}

/* A saved queue: its totals, behind its key. */
typedef struct SavedQueue
{
	Key key;
	int64 totals[TOTALS];
} SavedQueue;

/* Writes all records; returns whether that succeeded. */
static bool
write_all(FILE *file)
{
	Header header = {FILE_MAGIC, TQ_QUEUE_COUNTERS};
	bool ok = fwrite(&header, sizeof(header), 1, file) == 1;
	HASH_SEQ_STATUS scan;
	Queue *queue;
	Group *group;

	for (int i = 0; i < DATABASES && ok; i++)
	{
		if (OidIsValid(shared->databases[i].oid))
			ok = write_record(file, KIND_DATABASE, &shared->databases[i],
							  sizeof(Database));
	}
	hash_seq_init(&scan, queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		SavedQueue saved = {.key = queue->key};

		for (int i = 0; i < TOTALS; i++)
			saved.totals[i] = (int64) pg_atomic_read_u64(
				&queue->counters[TQ_QUEUE_GAUGES + i]);
		ok = ok && write_record(file, KIND_QUEUE, &saved, sizeof(saved));
	}
	hash_seq_init(&scan, groups);
	while ((group = hash_seq_search(&scan)) != NULL)
		ok = ok && write_record(file, KIND_GROUP, &group->key, sizeof(Key));
	return ok && write_record(file, KIND_END, NULL, 0);
}

/* Saves the totals when the server is shut down, unless it has crashed. */
static void
save(int code, Datum arg)
{
	FILE *file;
	bool ok;

	if (code != 0 || shared == NULL)
		return;
	file = AllocateFile(FILE_NAME ".tmp", PG_BINARY_W);
	ok = file != NULL && write_all(file);
	if (file != NULL && FreeFile(file) != 0)
		ok = false;
	if (ok && durable_rename(FILE_NAME ".tmp", FILE_NAME, LOG) == 0)
		return;
	ereport(LOG, (errcode_for_file_access(),
				  errmsg("could not write file \"%s\": %m", FILE_NAME)));
	unlink(FILE_NAME ".tmp");
}

static void
load_database(const Database *saved)
{
	for (int i = 0; i < DATABASES; i++)
	{
		Database *database = &shared->databases[i];

		if (OidIsValid(database->oid))
			continue;
		*database = (Database){.oid = saved->oid,
							   .extension = saved->extension,
							   .since = saved->since};
		return;
	}
}

static void
load_queue(const SavedQueue *saved)
{
	Queue *queue = enter_queue(&saved->key);

	for (int i = 0; queue != NULL && i < TOTALS; i++)
		pg_atomic_write_u64(&queue->counters[TQ_QUEUE_GAUGES + i],
							saved->totals[i]);
}

/* Makes the maintenance worker count a group. */
static void
load_group(const Key *key)
{
	for (int i = 0; i < DATABASES; i++)
	{
		if (shared->databases[i].oid == key->database)
			(void) enter_group(&shared->databases[i], key);
	}
}

/* Reads the records up to the end; returns whether they are complete. */
static bool
read_all(FILE *file)
{
	union
	{
		Database database;
		SavedQueue queue;
		Key group;
	} record;
	Header header;
	int32 kind;

	if (fread(&header, sizeof(header), 1, file) != 1 ||
		header.magic != FILE_MAGIC || header.counters != TQ_QUEUE_COUNTERS)
		return false;
	while (fread(&kind, sizeof(kind), 1, file) == 1)
	{
		if (kind == KIND_END)
			return true;
		if (kind == KIND_DATABASE &&
			fread(&record.database, sizeof(Database), 1, file) == 1)
			load_database(&record.database);
		else if (kind == KIND_QUEUE &&
				 fread(&record.queue, sizeof(SavedQueue), 1, file) == 1)
			load_queue(&record.queue);
		else if (kind == KIND_GROUP &&
				 fread(&record.group, sizeof(Key), 1, file) == 1)
			load_group(&record.group);
		else
			return false;
	}
	return false;
}

/*
 * Loads what the last shutdown has saved, and removes the file, so that it is
 * not loaded after a crash.
 */
static void
load(void)
{
	FILE *file = AllocateFile(FILE_NAME, PG_BINARY_R);

	if (file == NULL)
		return;
	if (!read_all(file))
		ereport(LOG,
				(errmsg("ignoring invalid data in file \"%s\"", FILE_NAME)));
	FreeFile(file);
	unlink(FILE_NAME);
}
