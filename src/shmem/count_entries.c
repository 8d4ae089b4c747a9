/*
 * count_entries.c
 *	  The counters in shared memory, by database, queue and group.
 *
 * There is an entry for each database, each queue in which something has
 * happened, and each group that was found large.  One lock protects everything
 * (counts.c).  Of databases there is a fixed number, of queues
 * tq.counted_queues; a queue without an entry makes its database "full", and
 * readers count the rows there.  A group gets an entry when its row is inserted,
 * or later when a reader finds that it is large.  Small groups that have not
 * been used for a while make room for others.
 *
 * Totals are saved when the server is shut down, and lost in a crash, as the
 * server's own statistics are.  So are the names of the large groups: the maintenance worker counts these again.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"

#include "../util/util.h"
#include "shmem.h"

#define GROUPS 8192

#define TOTALS (TQ_QUEUE_COUNTERS - TQ_QUEUE_GAUGES)

TqCountShared *tq_count_shared = NULL;
HTAB *tq_count_queues = NULL;
HTAB *tq_count_groups = NULL;

/* ---- start and end of the server ---- */

static Size
size(void)
{
	return sizeof(TqCountShared);
}

static Size
tables(void)
{
	return add_size(hash_estimate_size(Max(tq_counted_queues, 1),
									   sizeof(TqCountQueue)),
					hash_estimate_size(GROUPS, sizeof(TqCountGroup)));
}

static HTAB *
make_table(const char *name, int n, Size entry)
{
	HASHCTL control = {.keysize = sizeof(TqCountKey), .entrysize = entry};

	return ShmemInitHash(name, n, n, &control,
						 HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
}

static void load(void);
static void save(int code, Datum arg);

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	tq_count_shared = memory;
	tq_count_queues = make_table("tq queue counters",
								 Max(tq_counted_queues, 1),
								 sizeof(TqCountQueue));
	tq_count_groups = make_table("tq group counters", GROUPS,
								 sizeof(TqCountGroup));
	if (!is_new)
		return;
	tq_count_shared->lock = &locks->lock;
	load();
	on_shmem_exit(save, (Datum) 0);
}

const TqShmemPart tq_counts_shmem = {.name = "tq counts",
									 .tranche = "TqCounts",
									 .locks = 1,
									 .size = size,
									 .tables = tables,
									 .startup = startup};

/* ---- the lock ---- */

/* Takes the lock of the counters; there are some. */
void
tq_count_lock(LWLockMode mode)
{
	LWLockAcquire(tq_count_shared->lock, mode);
}

/* Releases it. */
void
tq_count_unlock(void)
{
	LWLockRelease(tq_count_shared->lock);
}

/* ---- entries; the caller holds the lock ---- */

/* Returns the key of a queue or group of this database. */
TqCountKey
tq_count_key(Oid extension, int64 id)
{
	return (TqCountKey){MyDatabaseId, extension, id};
}

/* Returns the entry of this database, or NULL. */
TqCountDatabase *
tq_count_find_database(void)
{
	static int place = 0;

	if (tq_count_shared->databases[place].oid == MyDatabaseId)
		return &tq_count_shared->databases[place];
	for (int i = 0; i < TQ_COUNT_DATABASES; i++)
	{
		if (tq_count_shared->databases[i].oid != MyDatabaseId)
			continue;
		place = i;
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
clear_database(TqCountDatabase *database, Oid oid, Oid extension)
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
		clear_database(database, MyDatabaseId, extension);
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
	for (int i = 0; i < TQ_QUEUE_COUNTERS; i++)
		pg_atomic_init_u64(&queue->counters[i], 0);
	for (int i = 0; i < TQ_QUEUE_GAUGES; i++)
		pg_atomic_init_u64(&queue->reserved[i], 0);
	pg_atomic_init_u32(&queue->is_limited, 0);
	pg_atomic_init_u32(&queue->refused, 0);
	pg_atomic_init_u32(&queue->limit, 0);
	for (int i = 0; i < TQ_COUNT_PERIODS; i++)
	{
		pg_atomic_init_u32(&queue->periods[i].number, 0);
		for (int rate = 0; rate < TQ_RATES; rate++)
			pg_atomic_init_u32(&queue->periods[i].events[rate], 0);
	}
	return queue;
}

/* Returns whether another queue can have an entry. */
bool
tq_count_has_room(void)
{
	return hash_get_num_entries(tq_count_queues) < tq_counted_queues;
}

/* Removes a group, if it is there. */
void
tq_count_remove_group(TqCountDatabase *database, const TqCountKey *key)
{
	if (remove_entry(tq_count_groups, key))
		database->groups--;
}

/* Removes a queue, if it is there. */
void
tq_count_remove_queue(const TqCountKey *key)
{
	(void) remove_entry(tq_count_queues, key);
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
 * Makes room for a group.  Many groups are small and go at once, so that the
 * next ones find room.  Only if there are none, a large one goes.
 */
static void
make_room(void)
{
	static const uint32 ages[] = {60, 5, 0};
	TqCountGroup *oldest = NULL;

	for (int i = 0;
		 i < lengthof(ages) && hash_get_num_entries(tq_count_groups) >= GROUPS;
		 i++)
		oldest = remove_small_groups(ages[i]);
	if (oldest != NULL && hash_get_num_entries(tq_count_groups) >= GROUPS)
		remove_any_group(oldest);
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

	make_room();
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

/* Makes gauges be counted again. */
void
tq_count_doubt_gauges(TqCountGauges *gauges)
{
	if (gauges->state == TQ_GAUGES_COUNTING)
		gauges->is_spoiled = true;
	else
		gauges->state = TQ_GAUGES_NONE;
}

/* Removes what is kept of a database, which was dropped. */
void
tq_counts_forget_database(Oid oid)
{
	LWLockAcquire(tq_count_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < TQ_COUNT_DATABASES; i++)
	{
		if (tq_count_shared->databases[i].oid == oid)
			clear_database(&tq_count_shared->databases[i], InvalidOid,
						   InvalidOid);
	}
	LWLockRelease(tq_count_shared->lock);
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
	TqCountKey key;
	int64 totals[TOTALS];
} SavedQueue;

/* Writes all records; returns whether that succeeded. */
static bool
write_all(FILE *file)
{
	Header header = {FILE_MAGIC, TQ_QUEUE_COUNTERS};
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

/* Makes the maintenance worker count a group. */
static void
load_group(const TqCountKey *key)
{
	for (int i = 0; i < TQ_COUNT_DATABASES; i++)
	{
		if (tq_count_shared->databases[i].oid == key->database)
			(void) tq_count_enter_group(&tq_count_shared->databases[i], key);
	}
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
			fread(&record.database, sizeof(TqCountDatabase), 1, file) == 1)
			load_database(&record.database);
		else if (kind == KIND_QUEUE &&
				 fread(&record.queue, sizeof(SavedQueue), 1, file) == 1)
			load_queue(&record.queue);
		else if (kind == KIND_GROUP &&
				 fread(&record.group, sizeof(TqCountKey), 1, file) == 1)
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
