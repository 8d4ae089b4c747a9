/*
 * counters.c
 *	  Counters of queues and groups in shared memory.
 *
 * Each queue has gauges (how many rows there are), totals since the last reset
 * (how often something has happened), histograms, and rates.  A transaction
 * applies its changes (counter_changes.c) right after its commit, so that
 * rolled back work costs nothing and is never counted.  Gauges begin with a
 * count of the rows; below is why that and the changes make the true number.
 *
 * A group begins with counters of zero: the transaction that inserts its row
 * makes them before it commits, when no other transaction can have changed the
 * group.  A large group that has lost its counters begins with a count, as
 * gauges do.
 *
 * A database whose gauges have not been counted since the server was started,
 * or whose tables were changed by other statements than those of tq, has no
 * gauges: readers count the rows, and the maintenance worker counts them once
 * for all.  The identity of a table changes when it is truncated or rewritten.
 *
 * There is an entry for each database, each queue in which something has
 * happened, and each group that was found large.  Of databases there is a fixed
 * number, of queues tq.counted_queues; a queue without an entry makes its
 * database "full", and readers count the rows there.  All queues of a full
 * database that have no entry share gauges, which bound those of each.  A queue with limits takes
 * the entry of one without, of any database: what others do in queues without
 * limits never makes limits fail.  If its database was full before, the queue may
 * have rows, and its gauges alone are counted.  A group gets an entry when
 * its row is inserted, or later when a reader finds that it is large.  Small
 * groups that have not been used for a while make room for others.
 *
 * Totals are saved when the server is shut down, and lost in a crash, as the
 * server's own statistics are.  So are the names of the large groups: the
 * maintenance worker counts these again.
 *
 * A prepared transaction ends in another session, without any code of tq.  So
 * its changes stay here, and a session that reads the counters applies them
 * when it finds that the transaction has committed.  What is not kept, because
 * there were too many changes, or the server was restarted since, is unknown:
 * then the gauges are counted again.
 *
 * Locks ----- One lock protects everything: the entries, the stored snapshots,
 * the list of prepared transactions, and the windows of limit_room.c.  Changes
 * are applied with it in share mode, by atomic operations.  It is held in
 * exclusive mode to make and remove entries, to take back the end of a task of
 * a group, and to read the counters of a group, which must be of one
 * moment.  With the lock held, ProcArrayLock or the spinlock of a window is
 * taken, and nothing else.  A note is written by its process alone, without the
 * lock.
 *
 * Which transactions a count of rows includes
 * -------------------------------------------
 * Counters begin with a count of rows, which takes a while, and go on with the
 * changes of each transaction, which it applies after its commit.  Each
 * transaction must be in one of the two, and in one only.  So a session that
 * begins to count stores its snapshot here, and a transaction that commits
 * applies its changes if that snapshot does not show it.
 *
 *	counting session					committing transaction
 *	S1	lock the counters				T1	note its xid here
 *	S2	take a snapshot, store it		T2	commit: its rows are visible
 *	S3	unlock							T3	lock the counters, apply what the
 *	S4	count							    stored snapshot does not show
 *	S5	wait for the noted xids that	T4	remove its note
 *		the snapshot shows
 *	S6	lock, remove the snapshot
 *
 * If T3 comes before S1, T2 does too, so that the count includes it, and S2
 * clears what T3 has applied.  If it comes between S3 and S6, the snapshot
 * decides.  If it comes after S6, T2 was not visible at S2, or else S5 would
 * have waited for T4: a transaction that the snapshot shows made its note
 * before.  So its changes are not in the count.
 *
 * A reader waits in the same way for the transactions that have become visible
 * before it began.  Then a change cannot be missing of which the reader has
 * seen a consequence, such as the end of a run whose creation is not applied
 * yet.  A process is in that state for microseconds.  A commit that waits for a
 * synchronous standby is not visible, and is not waited for.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/twophase.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "utils/snapmgr.h"

#include "shmem.h"

#define GROUPS 8192
#define SNAPSHOTS 8
#define WAIT_US 100

#define TOTALS (TQ_QUEUE_COUNTERS - TQ_QUEUE_GAUGES)

TqCountShared *tq_count_shared = NULL;
HTAB *tq_count_queues = NULL;
HTAB *tq_count_groups = NULL;

typedef struct Stored
{
	bool is_used;
	TransactionId xmin;
	TransactionId xmax;
	int nxip;
	TransactionId *xip; /* in shared memory */
} Stored;

static Stored *stored = NULL;

/* The transaction that a process commits; in a cache line of its own. */
typedef union CountersNote
{
	pg_atomic_uint32 xid; /* 0: none */
	char pad[PG_CACHE_LINE_SIZE];
} CountersNote;

static CountersNote *notes = NULL; /* by number of PGPROC */

static TqCountPrepared *prepared = NULL;

/* ---- start and end of the server ---- */

/* Entries of transactions that have ended may not be removed yet. */
static int
prepared_entries(void)
{
	return 2 * max_prepared_xacts;
}

static Size
prepared_size(void)
{
	return MAXALIGN(
		mul_size(Max(prepared_entries(), 1), sizeof(TqCountPrepared)));
}

/* The transactions that a snapshot can have in progress, and its own. */
static int
xids(void)
{
	return MaxBackends + max_prepared_xacts + 1;
}

static Size
snapshots_size(void)
{
	Size total = mul_size(SNAPSHOTS, sizeof(Stored));

	total = add_size(total,
					 mul_size(SNAPSHOTS * sizeof(TransactionId), xids()));
	return add_size(total, mul_size(MaxBackends, sizeof(CountersNote)));
}

static Size
counters_size(void)
{
	return add_size(MAXALIGN(sizeof(TqCountShared)),
					add_size(prepared_size(), snapshots_size()));
}

static Size
counters_tables(void)
{
	return add_size(hash_estimate_size(Max(tq_counted_queues, 1),
									   sizeof(TqCountQueue)),
					hash_estimate_size(GROUPS, sizeof(TqCountGroup)));
}

static HTAB *
counters_make_table(const char *name, int n, Size entry)
{
	HASHCTL control = {.keysize = sizeof(TqCountKey), .entrysize = entry};

	return TqShmemHash(name, n, &control,
					   HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
}

static void counters_load(void);
static void save(int code, Datum arg);

static void
start_snapshots(void *memory, bool is_new)
{
	TransactionId *xip = (TransactionId *) ((Stored *) memory + SNAPSHOTS);

	stored = memory;
	notes = (CountersNote *) (xip + SNAPSHOTS * xids());
	for (int i = 0; is_new && i < SNAPSHOTS; i++)
		stored[i].xip = xip + i * xids();
	for (int i = 0; is_new && i < MaxBackends; i++)
		pg_atomic_init_u32(&notes[i].xid, InvalidTransactionId);
}

static void
counters_startup(void *memory, bool is_new, LWLockPadded *locks)
{
	char *rest = (char *) memory + MAXALIGN(sizeof(TqCountShared));

	tq_count_shared = memory;
	prepared = (TqCountPrepared *) rest;
	start_snapshots(rest + prepared_size(), is_new);
	tq_count_queues = counters_make_table("tq queue counters",
										  Max(tq_counted_queues, 1),
										  sizeof(TqCountQueue));
	tq_count_groups = counters_make_table("tq group counters", GROUPS,
										  sizeof(TqCountGroup));
	if (!is_new)
		return;
	tq_count_shared->lock = &locks->lock;
	counters_load();
	on_shmem_exit(save, (Datum) 0);
}

const TqShmemPart tq_counters_shmem = {.name = "tq counters",
									   .tranche = "TqCounts",
									   .locks = 1,
									   .size = counters_size,
									   .tables = counters_tables,
									   .startup = counters_startup};

/* ---- entries; the caller holds the lock ---- */

/* Returns the entry of this database, or NULL. */
TqCountDatabase *
tq_count_find_database(void)
{
	static int position = 0;

	if (tq_count_shared->databases[position].oid == MyDatabaseId)
		return &tq_count_shared->databases[position];
	for (int i = 0; i < TQ_COUNT_DATABASES; i++)
	{
		if (tq_count_shared->databases[i].oid != MyDatabaseId)
			continue;
		position = i;
		return &tq_count_shared->databases[i];
	}
	return NULL;
}

/* Removes an entry, and makes tq_count_find_queue() forget it. */
static bool
remove_entry(HTAB *table, const TqCountKey *key)
{
	TqCountKey *removed = hash_search(table, key, HASH_REMOVE, NULL);

	if (removed != NULL)
		memset(removed, 0, sizeof(TqCountKey));
	return removed != NULL;
}

/* Removes the entries of queues or groups of a database. */
static void
remove_entries(HTAB *table, Oid database)
{
	HASH_SEQ_STATUS scan;
	const TqCountKey *key;

	hash_seq_init(&scan, table);
	while ((key = hash_seq_search(&scan)) != NULL)
	{
		if (key->database == database)
			(void) remove_entry(table, key);
	}
}

static void
counters_clear_database(TqCountDatabase *database, Oid oid, Oid extension)
{
	remove_entries(tq_count_queues, database->oid);
	remove_entries(tq_count_groups, database->oid);
	*database = (TqCountDatabase){.oid = oid, .extension = extension};
}

/*
 * Returns the entry of this database and extension, which is made if there is
 * none; NULL if there is no room.  The lock is exclusive.
 */
TqCountDatabase *
tq_count_enter_database(Oid extension)
{
	TqCountDatabase *database = tq_count_find_database();

	for (int i = 0; database == NULL && i < TQ_COUNT_DATABASES; i++)
	{
		if (!OidIsValid(tq_count_shared->databases[i].oid))
			database = &tq_count_shared->databases[i];
	}
	if (database != NULL && database->extension != extension)
		counters_clear_database(database, MyDatabaseId, extension);
	return database;
}

/* Returns the entry of a queue, or NULL. */
TqCountQueue *
tq_count_find_queue(const TqCountKey *key)
{
	/* Changes of one queue follow each other. */
	static TqCountQueue *last = NULL;

	if (last == NULL || memcmp(&last->key, key, sizeof(TqCountKey)) != 0)
		last = hash_search(tq_count_queues, key, HASH_FIND, NULL);
	return last;
}

/*
 * Returns the entry of a queue, which is made if there is none; NULL if there
 * is no room.  The lock is exclusive.
 */
TqCountQueue *
tq_count_enter_queue(const TqCountKey *key)
{
	bool found;
	TqCountQueue *queue = tq_counted_queues == 0
							  ? NULL
							  : hash_search(tq_count_queues, key,
											HASH_ENTER_NULL, &found);

	if (queue == NULL || found)
		return queue;
	queue->gauges = (TqCountGauges){.state = TQ_GAUGES_EXACT};
	queue->entry = ++tq_count_shared->entries;
	for (int i = 0; i < TQ_QUEUE_COUNTERS; i++)
		pg_atomic_init_u64(&queue->counters[i], 0);
	for (int i = 0; i < TQ_QUEUE_GAUGES; i++)
		pg_atomic_init_u64(&queue->reserved[i], 0);
	pg_atomic_init_u32(&queue->has_limits, 0);
	pg_atomic_init_u32(&queue->is_limited, 0);
	pg_atomic_init_u32(&queue->refused, 0);
	pg_atomic_init_u32(&queue->limit, 0);
	pg_atomic_init_u32(&queue->looked, 0);
	pg_atomic_init_u64(&queue->oldest, 0);
	pg_atomic_init_u64(&queue->logged, 0);
	pg_atomic_init_u32(&queue->left_out, 0);
	for (int i = 0; i < TQ_COUNT_PERIODS; i++)
	{
		pg_atomic_init_u32(&queue->periods[i].number, 0);
		for (int rate = 0; rate < TQ_RATES; rate++)
			pg_atomic_init_u32(&queue->periods[i].events[rate], 0);
	}
	return queue;
}

/* Returns whether the counters of a queue are not needed for limits. */
static bool
may_evict(TqCountQueue *queue)
{
	bool may = pg_atomic_read_u32(&queue->has_limits) == 0;

	for (int i = 0; i < TQ_QUEUE_GAUGES; i++)
		may &= TQ_ROOM_ROWS(pg_atomic_read_u64(&queue->reserved[i])) == 0;
	return may;
}

/* Removes a queue, if it is there; its gauges go to those without an entry. */
void
tq_count_remove_queue(const TqCountKey *key)
{
	TqCountQueue *queue = tq_count_find_queue(key);

	for (int i = 0; queue != NULL && i < TQ_COUNT_DATABASES; i++)
	{
		TqCountDatabase *database = &tq_count_shared->databases[i];

		if (database->oid != key->database)
			continue;
		for (int gauge = 0; gauge < TQ_QUEUE_GAUGES; gauge++)
			pg_atomic_fetch_add_u64(&database->others[gauge],
									pg_atomic_read_u64(
										&queue->counters[gauge]));
	}
	(void) remove_entry(tq_count_queues, key);
}

/*
 * Removes the entry of a queue without limits, in which the fewest tasks were
 * created, and makes its database full; returns false if there is none.
 */
static bool
evict_queue(void)
{
	HASH_SEQ_STATUS scan;
	TqCountQueue *queue;
	TqCountKey victim;
	uint64 least = PG_UINT64_MAX;

	hash_seq_init(&scan, tq_count_queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		uint64 created = pg_atomic_read_u64(
			&queue->counters[TQ_QUEUE_CREATED]);

		if (created >= least || !may_evict(queue))
			continue;
		least = created;
		victim = queue->key;
	}
	if (least == PG_UINT64_MAX)
		return false;
	for (int i = 0; i < TQ_COUNT_DATABASES; i++)
	{
		if (tq_count_shared->databases[i].oid == victim.database)
			tq_count_shared->databases[i].is_full = true;
	}
	tq_count_remove_queue(&victim);
	return true;
}

/*
 * Returns the entry of a queue with limits, which is made if there is none;
 * NULL if all entries are those of queues with limits.  The lock is exclusive.
 */
TqCountQueue *
tq_count_enter_limited(const TqCountKey *key)
{
	TqCountQueue *queue = tq_count_enter_queue(key);

	if (queue == NULL && tq_counted_queues > 0 && evict_queue())
		queue = tq_count_enter_queue(key);
	if (queue != NULL)
		pg_atomic_write_u32(&queue->has_limits, 1);
	return queue;
}

/* Removes a group, if it is there. */
void
tq_count_remove_group(TqCountDatabase *database, const TqCountKey *key)
{
	if (remove_entry(tq_count_groups, key))
		database->groups--;
}

/* Removes all groups of a database. */
void
tq_count_remove_groups(TqCountDatabase *database)
{
	remove_entries(tq_count_groups, database->oid);
	database->groups = 0;
}

/* Returns how many tasks a group has, by its counters. */
static int64
tasks_counted(TqCountGroup *group)
{
	int64 tasks = 0;

	for (int i = TQ_GROUP_UNSCHEDULED; i <= TQ_GROUP_EXCEPTION; i++)
		tasks += (int64) pg_atomic_read_u64(&group->counters[i]);
	return tasks;
}

/* Removes a group of any database. */
static void
remove_any_group(const TqCountGroup *group)
{
	TqCountKey key = group->key;

	for (int i = 0; i < TQ_COUNT_DATABASES; i++)
	{
		if (tq_count_shared->databases[i].oid == key.database)
			tq_count_remove_group(&tq_count_shared->databases[i], &key);
	}
}

/*
 * Removes the small groups that have not been used for so many seconds, and
 * returns the group that was used least recently of those that are left, or
 * NULL.
 */
static TqCountGroup *
remove_small_groups(uint32 seconds)
{
	uint32 now = (uint32) tq_clock_real_seconds();
	HASH_SEQ_STATUS scan;
	TqCountGroup *group;
	TqCountGroup *oldest = NULL;

	hash_seq_init(&scan, tq_count_groups);
	while ((group = hash_seq_search(&scan)) != NULL)
	{
		if (group->gauges.state == TQ_GAUGES_COUNTING)
			continue;
		if (group->gauges.state == TQ_GAUGES_EXACT &&
			now - group->used >= seconds &&
			tasks_counted(group) < tq_counted_group)
			remove_any_group(group);
		else if (oldest == NULL || now - group->used > now - oldest->used)
			oldest = group;
	}
	return oldest;
}

/*
 * Returns the entry of a group with counters of zero, or NULL if it is being
 * counted, or has been.  The lock is exclusive.
 */
TqCountGroup *
tq_count_enter_group(TqCountDatabase *database, const TqCountKey *key)
{
	bool found;
	TqCountGroup *group;
	static const uint32 ages[] = {60, 5, 0};
	TqCountGroup *oldest = NULL;

	/*
	 * Make room for a group.  Many groups are small and go at once, so that
	 * the next ones find room.  Only if there are none, a large one goes.
	 */
	for (int i = 0;
		 i < lengthof(ages) && hash_get_num_entries(tq_count_groups) >= GROUPS;
		 i++)
		oldest = remove_small_groups(ages[i]);
	if (oldest != NULL && hash_get_num_entries(tq_count_groups) >= GROUPS)
		remove_any_group(oldest);
	group = hash_search(tq_count_groups, key, HASH_ENTER_NULL, &found);
	if (group == NULL || (found && group->gauges.state != TQ_GAUGES_NONE))
		return NULL;
	if (!found)
		database->groups++;
	memset(&group->gauges, 0, sizeof(TqCountGauges));
	for (int i = 0; i < TQ_GROUP_COUNTERS; i++)
		pg_atomic_init_u64(&group->counters[i], 0);
	group->used = (uint32) tq_clock_real_seconds();
	return group;
}

/* Returns where gauges are read; the caller holds the lock. */
TqCountSource
tq_counts_source(const TqCountDatabase *database, Oid extension,
				 uint64 identity)
{
	if (RecoveryInProgress() || tq_counted_queues == 0)
		return TQ_COUNT_TABLES;
	if (database == NULL || database->extension != extension ||
		database->gauges.state != TQ_GAUGES_EXACT ||
		database->identity != identity)
		return TQ_COUNT_REBUILDING;
	return TQ_COUNT_MEMORY;
}

/* Has the gauges and the groups of a database counted again. */
void
tq_count_doubt_all(TqCountDatabase *database)
{
	if (database->gauges.state == TQ_GAUGES_COUNTING)
		database->gauges.is_spoiled = true;
	else
		database->gauges.state = TQ_GAUGES_NONE;
	tq_count_remove_groups(database);
}

/*
 * Removes the counters of a database, which was dropped, or of one extension of
 * it, which was; returns whether there were some.
 */
bool
tq_counts_forget(Oid oid, Oid extension)
{
	bool found = false;

	if (tq_count_shared == NULL)
		return false;
	LWLockAcquire(tq_count_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < TQ_COUNT_DATABASES; i++)
	{
		TqCountDatabase *database = &tq_count_shared->databases[i];

		if (database->oid != oid ||
			(OidIsValid(extension) && database->extension != extension))
			continue;
		counters_clear_database(database, InvalidOid, InvalidOid);
		found = true;
	}
	LWLockRelease(tq_count_shared->lock);
	return found;
}

/* ---- snapshots ---- */

static void
counters_store(Stored *into, Snapshot snapshot)
{
	TransactionId own = GetTopTransactionIdIfAny();

	into->is_used = true;
	into->xmin = snapshot->xmin;
	into->xmax = snapshot->xmax;
	into->nxip = (int) snapshot->xcnt;
	memcpy(into->xip, snapshot->xip, sizeof(TransactionId) * into->nxip);
	if (!TransactionIdIsValid(own))
		return;
	/* A snapshot does not list its own transaction, which goes on. */
	into->xip[into->nxip++] = own;
	if (TransactionIdPrecedes(own, into->xmin))
		into->xmin = own;
}

/*
 * Takes and stores a snapshot, and returns its number, or -1 if there is no
 * room.  The caller holds the lock of the counters, and pushes the snapshot.
 */
int
tq_count_snapshot_take(Snapshot *snapshot)
{
	for (int i = 0; i < SNAPSHOTS; i++)
	{
		if (stored[i].is_used)
			continue;
		*snapshot = GetLatestSnapshot();
		counters_store(&stored[i], *snapshot);
		return i;
	}
	return -1;
}

/* Returns whether a snapshot shows this transaction, which has committed. */
bool
tq_count_snapshot_shows(int number, TransactionId xid)
{
	const Stored *snapshot = &stored[number];

	if (TransactionIdPrecedes(xid, snapshot->xmin))
		return true;
	if (TransactionIdFollowsOrEquals(xid, snapshot->xmax))
		return false;
	for (int i = 0; i < snapshot->nxip; i++)
	{
		if (snapshot->xip[i] == xid)
			return false;
	}
	return true;
}

/* Removes a snapshot.  The caller holds the lock of the counters. */
void
tq_count_snapshot_free(int number)
{
	stored[number].is_used = false;
}

/* ---- notes of transactions that commit ---- */

/* Notes that this process commits a transaction that changes counters. */
void
tq_count_commit_begins(TransactionId xid)
{
	if (notes != NULL)
		pg_atomic_write_u32(&notes[TqMyProcNumber()].xid, xid);
}

/* Notes that the changes are applied, or that there are none. */
void
tq_count_commit_ends(void)
{
	if (notes == NULL)
		return;
	pg_memory_barrier();
	pg_atomic_write_u32(&notes[TqMyProcNumber()].xid, InvalidTransactionId);
}

/* Waits until a process has removed its note of a transaction. */
static void
counters_wait_for(int process, TransactionId xid)
{
	while (pg_atomic_read_u32(&notes[process].xid) == xid)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(WAIT_US);
	}
	pg_memory_barrier();
}

/*
 * Waits until the transactions that a snapshot shows have applied their
 * changes.
 */
void
tq_count_snapshot_wait(int number)
{
	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
	{
		TransactionId xid = pg_atomic_read_u32(&notes[i].xid);

		if (TransactionIdIsValid(xid) && tq_count_snapshot_shows(number, xid))
			counters_wait_for(i, xid);
	}
}

/*
 * Waits until the transactions that are visible by now have applied their
 * changes.
 */
void
tq_count_commits_wait(void)
{
	if (notes == NULL)
		return;
	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
	{
		TransactionId xid = pg_atomic_read_u32(&notes[i].xid);

		if (TransactionIdIsValid(xid) &&
			!TransactionIdIsCurrentTransactionId(xid) &&
			!TransactionIdIsInProgress(xid))
			counters_wait_for(i, xid);
	}
}

/* ---- changes by prepared transactions ---- */

/*
 * Keeps the changes of a transaction; returns false if there is no room.  n is
 * TQ_PREPARED_UNKNOWN if they are not known.
 */
bool
tq_count_prepared_add(Oid extension, TransactionId xid,
					  const TqCountChange *changes, int n)
{
	for (int i = 0; i < prepared_entries(); i++)
	{
		TqCountPrepared *entry = &prepared[i];

		if (OidIsValid(entry->database))
			continue;
		entry->database = MyDatabaseId;
		entry->extension = extension;
		entry->xid = xid;
		entry->n = n > TQ_PREPARED_CHANGES ? TQ_PREPARED_MANY : n;
		if (entry->n > 0)
			memcpy(entry->changes, changes, sizeof(TqCountChange) * n);
		return true;
	}
	return false;
}

/*
 * Returns the first entry of this database from a position on, and sets
 * *position to where it is; NULL if there is none.
 */
const TqCountPrepared *
tq_count_prepared_next(int *position)
{
	for (; *position < prepared_entries(); (*position)++)
	{
		if (prepared[*position].database == MyDatabaseId)
			return &prepared[*position];
	}
	return NULL;
}

/* Returns whether there is room for another transaction. */
bool
tq_count_prepared_has_room(void)
{
	for (int i = 0; i < prepared_entries(); i++)
	{
		if (!OidIsValid(prepared[i].database))
			return true;
	}
	return false;
}

/* Removes the entry at a position. */
void
tq_count_prepared_remove(int position)
{
	prepared[position].database = InvalidOid;
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

typedef struct CountersHeader
{
	uint32 magic;
	uint32 counters; /* of a queue, in this version */
} CountersHeader;

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
	TqCountKey key;
	int64 totals[TOTALS];
} SavedQueue;

/* Writes all records; returns whether that succeeded. */
static bool
write_all(FILE *file)
{
	CountersHeader header = {FILE_MAGIC, TQ_QUEUE_COUNTERS};
	bool ok = fwrite(&header, sizeof(header), 1, file) == 1;
	HASH_SEQ_STATUS scan;
	TqCountQueue *queue;
	TqCountGroup *group;

	for (int i = 0; i < TQ_COUNT_DATABASES && ok; i++)
	{
		if (OidIsValid(tq_count_shared->databases[i].oid))
			ok = write_record(file, KIND_DATABASE,
							  &tq_count_shared->databases[i],
							  sizeof(TqCountDatabase));
	}
	hash_seq_init(&scan, tq_count_queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		SavedQueue saved = {.key = queue->key};

		for (int i = 0; i < TOTALS; i++)
			saved.totals[i] = (int64) pg_atomic_read_u64(
				&queue->counters[TQ_QUEUE_GAUGES + i]);
		ok = ok && write_record(file, KIND_QUEUE, &saved, sizeof(saved));
	}
	hash_seq_init(&scan, tq_count_groups);
	while ((group = hash_seq_search(&scan)) != NULL)
		ok = ok &&
			 write_record(file, KIND_GROUP, &group->key, sizeof(TqCountKey));
	return ok && write_record(file, KIND_END, NULL, 0);
}

/* Saves the totals when the server is shut down, unless it has crashed. */
static void
save(int code, Datum arg)
{
	FILE *file;
	bool ok;

	if (code != 0 || tq_count_shared == NULL)
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
load_database(const TqCountDatabase *saved)
{
	for (int i = 0; i < TQ_COUNT_DATABASES; i++)
	{
		TqCountDatabase *database = &tq_count_shared->databases[i];

		if (OidIsValid(database->oid))
			continue;
		*database = (TqCountDatabase){.oid = saved->oid,
									  .extension = saved->extension,
									  .since = saved->since};
		return;
	}
}

static void
load_queue(const SavedQueue *saved)
{
	TqCountQueue *queue = tq_count_enter_queue(&saved->key);

	for (int i = 0; queue != NULL && i < TOTALS; i++)
		pg_atomic_write_u64(&queue->counters[TQ_QUEUE_GAUGES + i],
							saved->totals[i]);
}

/* Reads the records up to the end; returns whether they are complete. */
static bool
read_all(FILE *file)
{
	union
	{
		TqCountDatabase database;
		SavedQueue queue;
		TqCountKey group;
	} record;
	CountersHeader header;
	int32 kind;

	if (fread(&header, sizeof(header), 1, file) != 1 ||
		header.magic != FILE_MAGIC || header.counters != TQ_QUEUE_COUNTERS)
		return false;
	while (fread(&kind, sizeof(kind), 1, file) == 1)
	{
		if (kind == KIND_END)
			return true;
		if (kind == KIND_DATABASE &&
			fread(&record.database, sizeof(TqCountDatabase), 1, file) == 1)
			load_database(&record.database);
		else if (kind == KIND_QUEUE &&
				 fread(&record.queue, sizeof(SavedQueue), 1, file) == 1)
			load_queue(&record.queue);
		else if (kind == KIND_GROUP &&
				 fread(&record.group, sizeof(TqCountKey), 1, file) == 1)
		{
			/* Make the maintenance worker count a group. */
			for (int i = 0; i < TQ_COUNT_DATABASES; i++)
			{
				if (tq_count_shared->databases[i].oid == record.group.database)
					(void) tq_count_enter_group(&tq_count_shared->databases[i],
												&record.group);
			}
		}
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
counters_load(void)
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
