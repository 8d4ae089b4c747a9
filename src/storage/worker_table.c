/*
 * worker_table.c
 *	  Rows of tq_internal.worker: task workers, interned per queue.
 *
 * A claim needs the number of its worker and whether the worker is in
 * quarantine.  Each backend caches both.  A quarantine invalidates the caches
 * of all backends when it is committed, by the message that a change of the
 * table's definition would send, and each use of the cache processes such
 * messages first.  So a quarantine holds for every claim that begins after its
 * COMMIT has returned.
 *
 * When a worker was seen, and what it claimed last, is in shared memory
 * (worker_activity.c), and stored in the row at most once per
 * tq.seen_interval.  Whether a claim in shared memory was committed is known
 * from the row of the run.
 */
#include "postgres.h"

#include "utils/inval.h"

#include "../rows/rows.h"
#include "columns.h"
#include "registry.h"

#define WORKER_NAME_MAX 132 /* 128, the terminating zero, and padding */

typedef struct WorkerKey
{
	int32 queue;
	char group[WORKER_NAME_MAX];
	char name[WORKER_NAME_MAX];
} WorkerKey;

typedef struct WorkerEntry
{
	WorkerKey key;
	TqWorkerSeat seat;
} WorkerEntry;

typedef struct WorkerName
{
	int32 id;
	int32 queue;
	char group[WORKER_NAME_MAX];
	char name[WORKER_NAME_MAX];
} WorkerName;

static TqRelation worker_table = TQ_RELATION("worker");
static TqRelation worker_by_id = TQ_RELATION("worker_pkey");
static TqRelation worker_by_name = TQ_RELATION(
	"worker_queue_worker_group_worker_id_key");

TQ_NUMBERS(TQ_WORKER_COLUMNS, worker);

static TqNameCache worker_seats = {.purpose = "tq workers",
								   .keysize = sizeof(WorkerKey),
								   .entrysize = sizeof(WorkerEntry),
								   .how = HASH_BLOBS,
								   .watched = TQ_WATCHED(worker_table)};
static TqNameCache worker_names = {.purpose = "tq names of workers",
								   .keysize = sizeof(int32),
								   .entrysize = sizeof(WorkerName),
								   .how = HASH_BLOBS,
								   .watched = TQ_WATCHED(worker_table)};

static TqStatement insert_worker = TQ_STATEMENT(
	"INSERT INTO tq_internal.worker (queue, worker_group, worker_id, creator) VALUES ($1, $2, $3, session_user) ON CONFLICT DO NOTHING",
	INT4OID, TEXTOID, TEXTOID);

/* Skips the row if another session is storing what this worker did. */
static TqStatement store_worker = TQ_STATEMENT(
	"UPDATE tq_internal.worker AS w SET last_date_active = $4, expires = greatest(w.expires, $5),"
	" creator = coalesce(w.creator, session_user), first_claim = CASE WHEN $6 THEN coalesce(w.first_claim, $4) ELSE w.first_claim END,"
	" (recent_tasks, recent_runs) = (SELECT coalesce(array_agg(x.task ORDER BY x.nth), '{}'),"
	" coalesce(array_agg(x.run_id ORDER BY x.nth), '{}')"
	" FROM (SELECT * FROM tq_internal.last_claims(w.id, w.recent_tasks, w.recent_runs, $2, $3) AS c"
	" ORDER BY c.nth DESC LIMIT 20) AS x)"
	" WHERE w.id IN (SELECT id FROM tq_internal.worker WHERE id = $1"
	" AND (last_date_active IS NULL OR last_date_active <= $7 OR expires IS NULL"
	" OR ($6 AND first_claim IS NULL)) FOR UPDATE SKIP LOCKED)",
	INT4OID, INT8ARRAYOID, INT4ARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
	BOOLOID, TIMESTAMPTZOID);

static TqStatement forget_workers = TQ_STATEMENT(
	"UPDATE tq_internal.worker SET expires = NULL, first_claim = NULL, last_date_active = NULL,"
	" quarantine_until = NULL, quarantine_details = NULL, recent_tasks = '{}', recent_runs = '{}', creator = NULL,"
	" capacity = NULL, version = NULL"
	" WHERE id IN (SELECT id FROM tq_internal.worker WHERE expires < $1"
	" AND (quarantine_until IS NULL OR quarantine_until < $1) FOR UPDATE SKIP LOCKED)",
	TIMESTAMPTZOID);

/* ---- what claims need ---- */

/* Makes every backend read the rows of workers again. */
void
tq_workers_changed(void)
{
	tq_name_interning();
	CacheInvalidateRelcacheByRelid(tq_relation_oid(&worker_table));
}

static WorkerKey
worker_key_of(int32 queue, const char *group, const char *name)
{
	WorkerKey key;

	memset(&key, 0, sizeof(key));
	key.queue = queue;
	strlcpy(key.group, group, sizeof(key.group));
	strlcpy(key.name, name, sizeof(key.name));
	return key;
}

static void
read_seat(TupleTableSlot *slot, void *into)
{
	TimestampTz active = tq_row_time(slot, Anum_worker_last_date_active);
	bool has_claimed = tq_row_time(slot, Anum_worker_first_claim) != 0;

	*(TqWorkerSeat *) into = (TqWorkerSeat){
		.id = tq_row_int32(slot, Anum_worker_id),
		.is_retired = !slot_attisnull(slot, Anum_worker_retired),
		.is_known = tq_row_time(slot, Anum_worker_expires) != 0,
		.quarantine_until = tq_row_time(slot, Anum_worker_quarantine_until),
		.store_after = has_claimed ? tq_clock_add_ms(active, tq_seen_interval)
								   : 0};
}

/* A worker by its key; what a claim needs to know of it is set when it is found. */
typedef struct SoughtWorker
{
	WorkerKey key;
	TqWorkerSeat *seat;
} SoughtWorker;

static int32
find_seat(void *value, bool *is_retired)
{
	SoughtWorker *sought = value;
	WorkerEntry *entry;

	AcceptInvalidationMessages();
	entry = tq_name_find(&worker_seats, &sought->key);
	if (entry != NULL)
		*sought->seat = entry->seat;
	else if (!tq_scan_read(tq_scan_open(&worker_table, &worker_by_name, 3,
										NULL),
						   Int32GetDatum(sought->key.queue),
						   CStringGetTextDatum(sought->key.group),
						   CStringGetTextDatum(sought->key.name), read_seat,
						   sought->seat))
		return 0;
	else if (!sought->seat->is_retired &&
			 (entry = tq_name_add(&worker_seats, &sought->key)) != NULL)
		entry->seat = *sought->seat;
	*is_retired = sought->seat->is_retired;
	return sought->seat->id;
}

/*
 * Reads what a claim needs to know of a worker; returns false if there is no
 * row.
 */
bool
tq_worker_seat_find(int32 queue, const char *group, const char *name,
					TqWorkerSeat *seat)
{
	SoughtWorker sought = {.key = worker_key_of(queue, group, name),
						   .seat = seat};
	bool is_retired;

	return find_seat(&sought, &is_retired) != 0;
}

/* The same, after inserting the row, or reviving it, if necessary. */
void
tq_worker_seat_intern(int32 queue, const char *group, const char *name,
					  TqWorkerSeat *seat)
{
	SoughtWorker sought = {.key = worker_key_of(queue, group, name),
						   .seat = seat};
	bool is_retired = false;

	if (find_seat(&sought, &is_retired) != 0 && !is_retired)
		return;
	(void) tq_intern(TQ_INTERNED_WORKER, &insert_worker,
					 TQ_VALUES(Int32GetDatum(queue),
							   CStringGetTextDatum(group),
							   CStringGetTextDatum(name)),
					 find_seat, &sought);
}

static void
worker_read_name(TupleTableSlot *slot, void *into)
{
	WorkerName *name = into;

	name->queue = tq_row_int32(slot, Anum_worker_queue);
	strlcpy(name->group, tq_row_text(slot, Anum_worker_worker_group),
			sizeof(name->group));
	strlcpy(name->name, tq_row_text(slot, Anum_worker_worker_id),
			sizeof(name->name));
}

/* Returns the queue, the group and the name of a worker that exists. */
static WorkerName
worker_name_of(int32 id)
{
	WorkerName *entry = tq_name_find(&worker_names, &id);
	WorkerName name = {.id = id};

	if (entry != NULL)
		return *entry;
	if (!tq_scan_read(tq_scan_open(&worker_table, &worker_by_id, 1, NULL),
					  Int32GetDatum(id), 0, 0, worker_read_name, &name))
		elog(ERROR, "worker %d is not in tq_internal.worker", id);
	entry = tq_name_add(&worker_names, &id);
	if (entry != NULL)
		*entry = name;
	return name;
}

/* Returns the group and the name of a worker that exists. */
void
tq_worker_name(int32 id, char **group, char **name)
{
	WorkerName found = worker_name_of(id);

	*group = pstrdup(found.group);
	*name = pstrdup(found.name);
}

/*
 * Returns the queue of a worker that exists.  A running run is of the queue of
 * its worker, although its task may have been moved before it was claimed.
 */
int32
tq_worker_queue(int32 id)
{
	return worker_name_of(id).queue;
}

/* ---- what is stored about a worker ---- */

/* Reads what a worker has done, as far as shared memory has it. */
void
tq_worker_activity(int32 worker, TqWorkerActivity *activity)
{
	tq_activity_read(tq_relation_oid(&worker_table), worker, activity);
}

/* Returns the claims of an activity as arrays of their tasks and runs. */
void
tq_worker_claims(const TqWorkerActivity *activity, Datum *tasks, Datum *runs)
{
	TQ_COLUMN(activity->claims, activity->n, int64, tq_array_int64, task,
			  *tasks);
	TQ_COLUMN(activity->claims, activity->n, int32, tq_array_int32, run_id,
			  *runs);
}

/*
 * Notes in shared memory that a worker was seen, unless that is 0, and its
 * claims, oldest first.  One that was forgotten begins as a new one.
 */
void
tq_worker_note(int32 queue, const TqWorkerSeat *seat, TimestampTz seen,
			   const TqRecentClaim *claims, int n)
{
	Oid table = tq_relation_oid(&worker_table);

	if (!seat->is_known)
		tq_activity_forget(table, seat->id);
	tq_activity_note(table, seat->id, queue, seen, claims, n);
}

/* Returns the queues of workers that were seen since then; see above. */
int32 *
tq_workers_seen(TimestampTz since, int *n)
{
	return tq_activity_queues(tq_relation_oid(&worker_table), since, n);
}

/*
 * Stores what is noted about a worker, unless another session holds its row or
 * has just done so.  The next transaction reads the row again; one that could
 * not write it tries again in a second.  Returns whether the row was written.
 */
bool
tq_worker_store(int32 queue, const char *group, const char *name,
				TqWorkerSeat *seat, TimestampTz now, bool claims)
{
	WorkerKey key = worker_key_of(queue, group, name);
	TqWorkerActivity activity;
	Datum values[7] = {Int32GetDatum(seat->id)};
	WorkerEntry *entry;

	tq_worker_activity(seat->id, &activity);
	tq_worker_claims(&activity, &values[1], &values[2]);
	values[3] = TimestampTzGetDatum(now);
	values[4] = TimestampTzGetDatum(tq_clock_add_ms(now, TQ_SEEN_DAY_MS));
	values[5] = BoolGetDatum(claims);
	values[6] = TimestampTzGetDatum(tq_clock_add_ms(now, -tq_seen_interval));
	if (tq_spi_run(&store_worker, values, NULL) > 0)
	{
		tq_name_interning();
		tq_name_remove(&worker_seats, &key);
		return true;
	}
	entry = tq_name_find(&worker_seats, &key);
	if (entry != NULL)
		entry->seat.store_after = tq_clock_add_ms(now, 1000);
	return false;
}

/*
 * Clears what is recorded about workers that have expired
 * (doc/spec/taskcluster.md 8.4).
 */
void
tq_workers_forget(TimestampTz before)
{
	if (tq_spi_run(&forget_workers, TQ_VALUES(TimestampTzGetDatum(before)),
				   NULL) > 0)
		tq_workers_changed();
}
