/*
 * worker_table.c
 *	  Rows of tq_internal.worker: task workers, interned per queue.
 *
 * Rows are never deleted; an expired worker is only no longer listed.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "../util/spi.h"
#include "columns.h"
#include "index_scan.h"
#include "name_cache.h"
#include "table.h"
#include "worker_table.h"

#define WORKER_NAME_MAX 40

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

static TqRelation worker_table = TQ_RELATION("worker");
static TqRelation worker_by_id = TQ_RELATION("worker_pkey");
static TqRelation worker_by_name = TQ_RELATION(
	"worker_queue_worker_group_worker_id_key");

TQ_NUMBERS(TQ_WORKER_COLUMNS, worker);

static TqNameCache worker_cache = {.purpose = "tq workers",
								   .keysize = sizeof(WorkerKey),
								   .entrysize = sizeof(WorkerEntry),
								   .how = HASH_BLOBS,
								   .table = &worker_table};
static TqNameCache worker_names = {.purpose = "tq names of workers",
								   .keysize = sizeof(int32),
								   .entrysize = sizeof(WorkerName),
								   .how = HASH_BLOBS,
								   .table = &worker_table};

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

static TqStatement recent = TQ_STATEMENT(
	"SELECT t.task_id, x.run_id FROM tq_internal.worker w"
	" CROSS JOIN LATERAL unnest(w.recent_tasks, w.recent_runs) WITH ORDINALITY AS x (task, run_id, place)"
	" JOIN tq_internal.task t ON t.id = x.task WHERE w.id = $1 ORDER BY x.place",
	INT4OID);

static TqStatement quarantine = TQ_STATEMENT(
	"UPDATE tq_internal.worker SET quarantine_until = $2, expires = greatest(expires, $3),"
	" quarantine_details = coalesce(quarantine_details, '[]') || $4 WHERE id = $1",
	INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, JSONBOID);

static TqStatement forget_workers = TQ_STATEMENT(
	"UPDATE tq_internal.worker SET expires = NULL, first_claim = NULL, last_date_active = NULL,"
	" quarantine_until = NULL, quarantine_details = NULL, recent_tasks = '{}', recent_runs = '{}'"
	" WHERE id IN (SELECT id FROM tq_internal.worker WHERE expires < $1"
	" AND (quarantine_until IS NULL OR quarantine_until < $1) FOR UPDATE SKIP LOCKED)",
	TIMESTAMPTZOID);

/* Returns the number of elements of an array. */
static int
tq_row_count(TupleTableSlot *slot, int column)
{
	bool isnull;
	ArrayType *array = DatumGetArrayTypeP(slot_getattr(slot, column, &isnull));

	return ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
}

static void
read_row(TupleTableSlot *slot, void *worker)
{
	TqWorker *row = worker;

	TQ_WORKER_SEEN(TQ_GET, worker);
	TQ_WORKER_RECENT(TQ_GET, worker);
}

/* Reads the row of a worker; returns false if there is none. */
static bool
read_worker(int32 id, TqWorker *worker)
{
	return tq_scan_read(tq_scan_open(&worker_table, &worker_by_id, 1, NULL),
						Int32GetDatum(id), 0, 0, read_row, worker);
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
	WorkerName *entry = tq_name_find(&worker_names, &id);
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
	entry = tq_name_add(&worker_names, &id);
	if (entry == NULL)
		return;
	strlcpy(entry->group, worker.group, sizeof(entry->group));
	strlcpy(entry->name, worker.name, sizeof(entry->name));
}

/*
 * Reads the row of a worker by its names, and caches its number; returns false
 * if there is none.
 */
static bool
look_up_worker(const WorkerKey *key, TqWorker *worker)
{
	bool found =
		tq_scan_read(tq_scan_open(&worker_table, &worker_by_name, 3, NULL),
					 Int32GetDatum(key->queue),
					 CStringGetTextDatum(key->group),
					 CStringGetTextDatum(key->name), read_row, worker);
	WorkerEntry *entry;

	if (found && (entry = tq_name_add(&worker_cache, key)) != NULL)
		entry->id = worker->id;
	return found;
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
	entry = tq_name_find(&worker_cache, &key);
	if (entry != NULL && read_worker(entry->id, worker))
		return true;
	return look_up_worker(&key, worker);
}

/* Reads a worker by its names, after inserting it if necessary. */
void
tq_worker_intern(int32 queue, const char *group, const char *id,
				 TqWorker *worker)
{
	while (!tq_worker_find(queue, group, id, worker))
	{
		Datum values[3] = {Int32GetDatum(queue), CStringGetTextDatum(group),
						   CStringGetTextDatum(id)};

		tq_name_interning();
		tq_spi_run(&insert_worker, values, NULL);
	}
}

/* Like tq_queue_seen(), for a worker; always writes a first claim. */
void
tq_worker_seen(int32 worker, TimestampTz now, TimestampTz expires, bool claims)
{
	Datum values[4] = {Int32GetDatum(worker), TimestampTzGetDatum(now),
					   TimestampTzGetDatum(expires), BoolGetDatum(claims)};

	tq_spi_run(&see_worker, values, NULL);
}

/*
 * Returns the last elements, at most TQ_RECENT_MAX, of an array and what is
 * appended to it.
 */
static Datum
append_recent(ArrayType *array, Oid type, Size size, const void *added, int n)
{
	bool is_list = ARR_NDIM(array) == 1 && !ARR_HASNULL(array);
	int old = is_list ? ARR_DIMS(array)[0] : 0;
	int new = Min(n, TQ_RECENT_MAX);
	int kept = Min(old, TQ_RECENT_MAX - new);
	Size length = ARR_OVERHEAD_NONULLS(1) + size * (kept + new);
	ArrayType *result = palloc0(length);
	char *data;

	SET_VARSIZE(result, length);
	result->ndim = 1;
	result->elemtype = type;
	ARR_DIMS(result)[0] = kept + new;
	ARR_LBOUND(result)[0] = 1;
	data = ARR_DATA_PTR(result);
	memcpy(data, ARR_DATA_PTR(array) + size * (old - kept), size * kept);
	memcpy(data + size * kept, (const char *) added + size * (n - new),
		   size * new);
	return PointerGetDatum(result);
}

/* Adds claims to the row of a worker, unless it is locked or changing. */
static void
write_claims(TqTable *table, TupleTableSlot *slot, const int64 *tasks,
			 const int32 *run_ids, int n, TimestampTz now)
{
	TupleTableSlot *row = tq_table_copy_row(table, slot);
	ArrayType *old_tasks = tq_row_varlena(slot, Anum_worker_recent_tasks);
	ArrayType *old_runs = tq_row_varlena(slot, Anum_worker_recent_runs);

	tq_put_time(row, Anum_worker_recent_updated_at, now);
	tq_put(row, Anum_worker_recent_tasks,
		   append_recent(old_tasks, INT8OID, sizeof(int64), tasks, n));
	tq_put(row, Anum_worker_recent_runs,
		   append_recent(old_runs, INT4OID, sizeof(int32), run_ids, n));
	(void) tq_table_update_if_free(table, slot, row);
	ExecDropSingleTupleTableSlot(row);
}

/*
 * Records what a worker has claimed last (doc/spec/taskcluster.md 5.6).
 * Sessions that claim under the name of one worker do not wait for each other
 * here, so that concurrent claims may not be recorded.
 *
 * The row is found by the index on the names, which the first claim of a
 * session has opened, so that it need not open another.
 */
void
tq_worker_record_claims(const TqWorker *worker, const int64 *tasks,
						const int32 *run_ids, int n, TimestampTz now)
{
	TqScan *scan = tq_scan_open(&worker_table, &worker_by_name, 3, NULL);

	if (tq_scan_find(scan, Int32GetDatum(worker->queue),
					 CStringGetTextDatum(worker->group),
					 CStringGetTextDatum(worker->name)) &&
		tq_row_time(scan->slot, Anum_worker_expires) != 0)
		write_claims(scan->table, scan->slot, tasks, run_ids, n, now);
	tq_scan_close(scan);
}

static void
read_recent(TupleTableSlot *slot, void *claim)
{
	*(TqRecent *) claim = (TqRecent){.task_id = tq_row_slug(slot, 1),
									 .run_id = tq_row_int32(slot, 2)};
}

/*
 * Returns the last claims of a worker, oldest first, of tasks that still
 * exist.
 */
TqRecent *
tq_worker_recent(int32 worker, int *found)
{
	return tq_spi_read_all(&recent, TQ_VALUES(Int32GetDatum(worker)),
						   read_recent, sizeof(TqRecent), found);
}

/* Sets the end of a worker's quarantine, and appends the reason. */
void
tq_worker_quarantine(int32 worker, TimestampTz until, TimestampTz expires,
					 Jsonb *detail)
{
	Datum values[4] = {Int32GetDatum(worker), TimestampTzGetDatum(until),
					   TimestampTzGetDatum(expires), JsonbPGetDatum(detail)};

	tq_spi_run(&quarantine, values, NULL);
}

/*
 * Clears what is recorded about workers that have expired
 * (doc/spec/taskcluster.md 8.4).
 */
void
tq_workers_forget(TimestampTz before)
{
	tq_spi_run(&forget_workers, TQ_VALUES(TimestampTzGetDatum(before)), NULL);
}
