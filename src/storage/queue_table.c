/*
 * queue_table.c
 *	  Rows of tq_internal.queue and tq_internal.worker: names that are interned to numbers.
 *
 * Rows are never deleted, because runs and tasks refer to them; an
 * expired queue or worker is only no longer listed.  Each backend caches
 * numbers and names, but only those that it found committed, because a number
 * that the current transaction has inserted may be rolled back.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

#include "../shmem/wait_queue.h"
#include "../util/spi.h"
#include "queue_table.h"
#include "table.h"

#define QUEUE_NAME_MAX 80 /* 38 + 1 + 38 and the terminating zero */
#define WORKER_NAME_MAX 40
#define NAMES_KEPT 20000

typedef struct QueueEntry
{
	char name[QUEUE_NAME_MAX];
	int32 id;
} QueueEntry;

typedef struct QueueName
{
	int32 id;
	char name[QUEUE_NAME_MAX];
} QueueName;

typedef struct WorkerKey
{
	int32 queue;
	char group[WORKER_NAME_MAX];
	char name[WORKER_NAME_MAX];
} WorkerKey;

typedef struct WorkerEntry
{
	WorkerKey key;
	int32 id;
} WorkerEntry;

typedef struct WorkerName
{
	int32 id;
	char group[WORKER_NAME_MAX];
	char name[WORKER_NAME_MAX];
} WorkerName;

/*
 * A cache of numbers by name, or of names by number, valid while the table
 * exists.
 */
typedef struct Cache
{
	const char *purpose;
	Size keysize;
	Size entrysize;
	int how; /* flags for comparing its keys */
	TqRelation table;
	Oid oid;       /* of the table when the cache was created */
	HTAB *entries; /* NULL: empty */
} Cache;

static Cache queue_cache = {"tq queues",
							QUEUE_NAME_MAX,
							sizeof(QueueEntry),
							HASH_STRINGS,
							TQ_RELATION("queue"),
							InvalidOid,
							NULL};
static Cache worker_cache = {"tq workers",
							 sizeof(WorkerKey),
							 sizeof(WorkerEntry),
							 HASH_BLOBS,
							 TQ_RELATION("worker"),
							 InvalidOid,
							 NULL};
static Cache queue_names = {"tq names of queues",
							sizeof(int32),
							sizeof(QueueName),
							HASH_BLOBS,
							TQ_RELATION("queue"),
							InvalidOid,
							NULL};
static Cache worker_names = {"tq names of workers",
							 sizeof(int32),
							 sizeof(WorkerName),
							 HASH_BLOBS,
							 TQ_RELATION("worker"),
							 InvalidOid,
							 NULL};

static Cache *const caches[] = {&queue_cache,
								&worker_cache,
								&queue_names,
								&worker_names};

/* The last transaction of this backend that interned a name. */
static TransactionId interning_xid = InvalidTransactionId;

static TqRelation queue_table = TQ_RELATION("queue");
static TqRelation queue_by_id = TQ_RELATION("queue_pkey");
static TqRelation worker_table = TQ_RELATION("worker");
static TqRelation worker_by_id = TQ_RELATION("worker_pkey");

/* The column of tq_internal.queue that has the name, numbered from 1. */
#define QUEUE_NAME 2

/* Columns of tq_internal.worker, from 1. */
enum
{
	WORKER_ID = 1,
	WORKER_QUEUE,
	WORKER_GROUP,
	WORKER_NAME,
	WORKER_EXPIRES,
	WORKER_FIRST_CLAIM,
	WORKER_LAST_ACTIVE,
	WORKER_QUARANTINE,
	WORKER_QUARANTINE_DETAILS,
	WORKER_RECENT_UPDATED_AT,
	WORKER_RECENT_TASKS
};

static TqStatement find_queue =
	TQ_STATEMENT("SELECT id FROM tq_internal.queue WHERE task_queue_id = $1",
				 TEXTOID);

static TqStatement insert_queue = TQ_STATEMENT(
	"INSERT INTO tq_internal.queue (task_queue_id) VALUES ($1) ON CONFLICT DO NOTHING",
	TEXTOID);

static TqStatement see_queue = TQ_STATEMENT(
	"UPDATE tq_internal.queue SET last_date_active = $2, expires = greatest(expires, $3) WHERE id IN ("
	"SELECT id FROM tq_internal.queue WHERE id = $1 AND (last_date_active IS NULL"
	" OR last_date_active < $2 - interval '30 minutes' OR expires IS NULL) FOR UPDATE SKIP LOCKED)",
	INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID);

static TqStatement find_worker = TQ_STATEMENT(
	"SELECT id FROM tq_internal.worker WHERE queue = $1 AND worker_group = $2 AND worker_id = $3",
	INT4OID, TEXTOID, TEXTOID);

static TqStatement insert_worker = TQ_STATEMENT(
	"INSERT INTO tq_internal.worker (queue, worker_group, worker_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
	INT4OID, TEXTOID, TEXTOID);

static TqStatement see_worker = TQ_STATEMENT(
	"UPDATE tq_internal.worker SET last_date_active = $2, expires = greatest(expires, $3),"
	" first_claim = CASE WHEN $4 THEN coalesce(first_claim, $2) ELSE first_claim END,"
	" quarantine_until = coalesce(quarantine_until, $2 - interval '10 years')"
	" WHERE id IN (SELECT id FROM tq_internal.worker WHERE id = $1 AND (last_date_active IS NULL"
	" OR last_date_active < $2 - interval '30 minutes' OR expires IS NULL"
	" OR ($4 AND first_claim IS NULL)) FOR UPDATE SKIP LOCKED)",
	INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, BOOLOID);

/*
 * Skips the row if another session is claiming under the name of this worker;
 * these claims are then not recorded.
 */
static TqStatement remember = TQ_STATEMENT(
	"UPDATE tq_internal.worker SET recent_updated_at = $4, recent_tasks = (recent_tasks || $2)[greatest(1, cardinality(recent_tasks || $2) - 19):],"
	" recent_runs = (recent_runs || $3)[greatest(1, cardinality(recent_runs || $3) - 19):]"
	" WHERE id IN (SELECT id FROM tq_internal.worker WHERE id = $1 AND expires IS NOT NULL FOR UPDATE SKIP LOCKED)",
	INT4OID, INT8ARRAYOID, INT4ARRAYOID, TIMESTAMPTZOID);

static TqStatement recent = TQ_STATEMENT(
	"SELECT t.task_id, x.run_id FROM tq_internal.worker w"
	" CROSS JOIN LATERAL unnest(w.recent_tasks, w.recent_runs) WITH ORDINALITY AS x (task, run_id, place)"
	" JOIN tq_internal.task t ON t.id = x.task WHERE w.id = $1 ORDER BY x.place",
	INT4OID);

static TqStatement quarantine = TQ_STATEMENT(
	"UPDATE tq_internal.worker SET quarantine_until = $2, expires = greatest(expires, $3),"
	" quarantine_details = coalesce(quarantine_details, '[]') || $4 WHERE id = $1",
	INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, JSONBOID);

static TqStatement forget_queues = TQ_STATEMENT(
	"UPDATE tq_internal.queue SET expires = NULL, last_date_active = NULL"
	" WHERE id IN (SELECT id FROM tq_internal.queue WHERE expires < $1 FOR UPDATE SKIP LOCKED)",
	TIMESTAMPTZOID);

static TqStatement forget_workers = TQ_STATEMENT(
	"UPDATE tq_internal.worker SET expires = NULL, first_claim = NULL, last_date_active = NULL,"
	" quarantine_until = NULL, quarantine_details = NULL, recent_tasks = '{}', recent_runs = '{}'"
	" WHERE id IN (SELECT id FROM tq_internal.worker WHERE expires < $1"
	" AND (quarantine_until IS NULL OR quarantine_until < $1) FOR UPDATE SKIP LOCKED)",
	TIMESTAMPTZOID);

static void
close_cache(Cache *cache)
{
	if (cache->entries != NULL)
		hash_destroy(cache->entries);
	cache->entries = NULL;
}

/*
 * Relcache callback: empties the caches of a table that may have changed, as
 * by DROP EXTENSION.
 */
static void
forget_caches(Datum arg, Oid relid)
{
	for (int i = 0; i < lengthof(caches); i++)
	{
		if (relid == InvalidOid || relid == caches[i]->oid)
			close_cache(caches[i]);
	}
}

/* Returns the hash table of a cache, creating it if necessary. */
static HTAB *
open_cache(Cache *cache)
{
	static bool registered = false;
	HASHCTL control = {.keysize = cache->keysize,
					   .entrysize = cache->entrysize,
					   .hcxt = CacheMemoryContext};

	if (cache->entries != NULL)
		return cache->entries;
	if (!registered)
		CacheRegisterRelcacheCallback(forget_caches, (Datum) 0);
	registered = true;
	/*
	 * Look up the oid first: this may process invalidations, which would
	 * destroy the new hash table.
	 */
	cache->oid = tq_relation_oid(&cache->table);
	cache->entries = hash_create(cache->purpose,
								 64,
								 &control,
								 HASH_ELEM | HASH_CONTEXT | cache->how);
	return cache->entries;
}

/* Adds an entry, after emptying a cache that has become too large. */
static void *
enter(Cache *cache, const void *key)
{
	if (hash_get_num_entries(open_cache(cache)) >= NAMES_KEPT)
		close_cache(cache);
	return hash_search(open_cache(cache), key, HASH_ENTER, NULL);
}

/*
 * Returns whether this transaction has inserted names, so that a number it
 * finds may be one of its own.
 */
static bool
is_interning(void)
{
	return TransactionIdIsValid(interning_xid) &&
		   TransactionIdEquals(interning_xid, GetTopTransactionIdIfAny());
}

/* Returns the number of a queue, or 0. */
int32
tq_queue_find(const char *name)
{
	QueueEntry *entry =
		hash_search(open_cache(&queue_cache), name, HASH_FIND, NULL);
	Datum values[1];
	int32 id;

	if (entry != NULL)
		return entry->id;
	values[0] = CStringGetTextDatum(name);
	id = tq_spi_run(&find_queue, values, NULL) > 0 ? tq_spi_int32(0, 1, 0) : 0;
	tq_spi_free_result();
	if (id != 0 && !is_interning())
	{
		entry = enter(&queue_cache, name);
		entry->id = id;
	}
	return id;
}

/* Reads the name of a queue from its row. */
static char *
read_queue_name(int32 id)
{
	TqTable *table = tq_table_open(&queue_table);
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());
	TqScan *scan = tq_scan_begin(table, &queue_by_id, 1, snapshot);
	char *name;
	bool isnull;

	tq_scan_seek(scan, Int32GetDatum(id), 0, 0);
	if (!tq_scan_next(scan))
		elog(ERROR, "queue %d is not in tq_internal.queue", id);
	name = TextDatumGetCString(tq_row_field(scan->slot, QUEUE_NAME, &isnull));
	tq_scan_end(scan);
	UnregisterSnapshot(snapshot);
	tq_table_close(table);
	return name;
}

/* Returns the name of a queue that exists. */
char *
tq_queue_name(int32 id)
{
	QueueName *entry =
		hash_search(open_cache(&queue_names), &id, HASH_FIND, NULL);
	char *name;

	if (entry != NULL)
		return pstrdup(entry->name);
	name = read_queue_name(id);
	if (!is_interning())
	{
		entry = enter(&queue_names, &id);
		strlcpy(entry->name, name, sizeof(entry->name));
	}
	return name;
}

/* Returns the number of a queue, after inserting it if necessary. */
int32
tq_queue_intern(const char *name)
{
	int32 id;

	while ((id = tq_queue_find(name)) == 0)
	{
		Datum values[1] = {CStringGetTextDatum(name)};

		interning_xid = GetTopTransactionId();
		tq_wait_note_queue();
		tq_spi_run(&insert_queue, values, NULL);
	}
	return id;
}

/*
 * Records that a worker has asked this queue for work.  Writes at most every
 * 30 minutes and skips a locked row, because workers call often and the times
 * are only informative (doc/spec/taskcluster.md 5.6).
 */
void
tq_queue_seen(int32 queue, TimestampTz now, TimestampTz expires)
{
	Datum values[3] = {Int32GetDatum(queue),
					   TimestampTzGetDatum(now),
					   TimestampTzGetDatum(expires)};

	tq_spi_run(&see_queue, values, NULL);
}

/* Reads the row of a worker; returns false if there is none. */
static bool
read_worker(int32 id, TqWorker *worker)
{
	TqTable *table = tq_table_open(&worker_table);
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());
	TqScan *scan = tq_scan_begin(table, &worker_by_id, 1, snapshot);
	TupleTableSlot *slot = scan->slot;
	bool found;
	bool isnull;

	tq_scan_seek(scan, Int32GetDatum(id), 0, 0);
	found = tq_scan_next(scan);
	memset(worker, 0, sizeof(*worker));
	if (found)
	{
		ArrayType *recent = DatumGetArrayTypeP(
			tq_row_field(slot, WORKER_RECENT_TASKS, &isnull));

		worker->id = id;
		worker->group = TextDatumGetCString(
			tq_row_field(slot, WORKER_GROUP, &isnull));
		worker->name = TextDatumGetCString(
			tq_row_field(slot, WORKER_NAME, &isnull));
		worker->expires = tq_row_int64(slot, WORKER_EXPIRES);
		worker->first_claim = tq_row_int64(slot, WORKER_FIRST_CLAIM);
		worker->last_date_active = tq_row_int64(slot, WORKER_LAST_ACTIVE);
		worker->quarantine_until = tq_row_int64(slot, WORKER_QUARANTINE);
		worker->recent_updated_at = tq_row_int64(slot,
												 WORKER_RECENT_UPDATED_AT);
		worker->recent = ArrayGetNItems(ARR_NDIM(recent), ARR_DIMS(recent));
	}
	tq_scan_end(scan);
	UnregisterSnapshot(snapshot);
	tq_table_close(table);
	return found;
}

/* Reads the row of a worker that exists. */
void
tq_worker_get_by_number(int32 id, TqWorker *worker)
{
	if (!read_worker(id, worker))
		elog(ERROR, "worker %d is not in tq_internal.worker", id);
}

/* Returns the group and the name of a worker that exists. */
void
tq_worker_name(int32 id, char **group, char **name)
{
	WorkerName *entry =
		hash_search(open_cache(&worker_names), &id, HASH_FIND, NULL);
	TqWorker worker;

	if (entry != NULL)
	{
		*group = pstrdup(entry->group);
		*name = pstrdup(entry->name);
		return;
	}
	tq_worker_get_by_number(id, &worker);
	*group = worker.group;
	*name = worker.name;
	if (is_interning())
		return;
	entry = enter(&worker_names, &id);
	strlcpy(entry->group, worker.group, sizeof(entry->group));
	strlcpy(entry->name, worker.name, sizeof(entry->name));
}

/* Returns the number of a worker from its row, or 0. */
static int32
look_up_worker(const WorkerKey *key)
{
	Datum values[3] = {Int32GetDatum(key->queue),
					   CStringGetTextDatum(key->group),
					   CStringGetTextDatum(key->name)};
	int32 id = tq_spi_run(&find_worker, values, NULL) > 0
				   ? tq_spi_int32(0, 1, 0)
				   : 0;

	tq_spi_free_result();
	if (id != 0 && !is_interning())
	{
		WorkerEntry *entry;

		entry = enter(&worker_cache, key);
		entry->id = id;
	}
	return id;
}

/* Reads a worker by its names; returns false if there is none. */
bool
tq_worker_find(int32 queue, const char *group, const char *name,
			   TqWorker *worker)
{
	WorkerKey key;
	WorkerEntry *entry;

	memset(&key, 0, sizeof(key));
	key.queue = queue;
	strlcpy(key.group, group, sizeof(key.group));
	strlcpy(key.name, name, sizeof(key.name));
	entry = hash_search(open_cache(&worker_cache), &key, HASH_FIND, NULL);
	if (entry != NULL && read_worker(entry->id, worker))
		return true;
	return read_worker(look_up_worker(&key), worker);
}

/* Reads a worker by its names, after inserting it if necessary. */
void
tq_worker_intern(int32 queue, const char *group, const char *id,
				 TqWorker *worker)
{
	while (!tq_worker_find(queue, group, id, worker))
	{
		Datum values[3] = {Int32GetDatum(queue),
						   CStringGetTextDatum(group),
						   CStringGetTextDatum(id)};

		interning_xid = GetTopTransactionId();
		tq_spi_run(&insert_worker, values, NULL);
	}
}

/* Like tq_queue_seen(), for a worker; always writes a first claim. */
void
tq_worker_seen(int32 worker, TimestampTz now, TimestampTz expires, bool claims)
{
	Datum values[4] = {Int32GetDatum(worker),
					   TimestampTzGetDatum(now),
					   TimestampTzGetDatum(expires),
					   BoolGetDatum(claims)};

	tq_spi_run(&see_worker, values, NULL);
}

/*
 * Records what a worker has claimed last (doc/spec/taskcluster.md 5.6).
 * Sessions that claim under the name of one worker do not wait for each other
 * here, so that concurrent claims may not be recorded.
 */
void
tq_worker_record_claims(int32 worker, const int64 *tasks, const int32 *run_ids,
						int n, TimestampTz now)
{
	Datum values[4] = {Int32GetDatum(worker),
					   tq_array_int64(tasks, n),
					   tq_array_int32(run_ids, n),
					   TimestampTzGetDatum(now)};

	if (n > 0)
		tq_spi_run(&remember, values, NULL);
}

/*
 * Returns the last claims of a worker, oldest first, of tasks that still
 * exist.
 */
TqRecent *
tq_worker_recent(int32 worker, int *found)
{
	Datum values[1] = {Int32GetDatum(worker)};
	TqRecent *claims;

	*found = (int) tq_spi_run(&recent, values, NULL);
	claims = palloc(sizeof(TqRecent) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
	{
		claims[i].task_id = tq_spi_slug(i, 1);
		claims[i].run_id = tq_spi_int32(i, 2, 0);
	}
	tq_spi_free_result();
	return claims;
}

/* Sets the end of a worker's quarantine, and appends the reason. */
void
tq_worker_quarantine(int32 worker, TimestampTz until, TimestampTz expires,
					 Jsonb *detail)
{
	Datum values[4] = {Int32GetDatum(worker),
					   TimestampTzGetDatum(until),
					   TimestampTzGetDatum(expires),
					   JsonbPGetDatum(detail)};

	tq_spi_run(&quarantine, values, NULL);
}

/*
 * Clears what is recorded about queues and workers that have expired
 * (doc/spec/taskcluster.md 8.4).
 */
void
tq_workers_forget(TimestampTz before)
{
	Datum values[1] = {TimestampTzGetDatum(before)};

	tq_spi_run(&forget_queues, values, NULL);
	tq_spi_run(&forget_workers, values, NULL);
}
