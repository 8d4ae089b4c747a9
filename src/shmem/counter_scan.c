/*
 * counter_scan.c
 *	  Readers of the counters, and the counts of rows with which they begin.
 *
 * A session, mostly the maintenance worker, counts all gauges of a database, or
 * the tasks of a group, and from then on changes keep the counters exact.
 * counters.c says which transactions the count includes.  A session makes one
 * count at a time.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"

#include "shmem.h"

/* ---- counts of rows ---- */

/* The count that this session makes. */
static struct
{
	bool is_running;
	int snapshot;
	SubTransactionId subid;
	TqCounted what;
	TqCountKey key;
} build;

/*
 * Returns whether the gauges of this database are to be counted, also because
 * there is room again for queues that had none.  For the maintenance worker.
 */
bool
tq_count_must_build(Oid extension, uint64 identity)
{
	const TqCountDatabase *database;
	bool must;

	if (tq_count_shared == NULL || tq_counted_queues == 0)
		return false;
	tq_count_lock(LW_SHARED);
	database = tq_count_find_database();
	must = database == NULL || database->extension != extension ||
		   database->gauges.state == TQ_GAUGES_NONE ||
		   (database->gauges.state == TQ_GAUGES_EXACT &&
			(database->identity != identity ||
			 (database->is_full &&
			  hash_get_num_entries(tq_count_queues) < tq_counted_queues)));
	tq_count_unlock();
	return must;
}

/* Returns a group that had counters before the server was started, or 0. */
int64
tq_count_group_to_build(Oid extension)
{
	HASH_SEQ_STATUS scan;
	TqCountGroup *group;
	int64 id = 0;

	if (tq_count_shared == NULL)
		return 0;
	tq_count_lock(LW_SHARED);
	hash_seq_init(&scan, tq_count_groups);
	while ((group = hash_seq_search(&scan)) != NULL)
	{
		if (group->key.database == MyDatabaseId &&
			group->key.extension == extension &&
			group->gauges.state == TQ_GAUGES_NONE)
			id = group->key.id;
	}
	tq_count_unlock();
	return id;
}

/*
 * Returns whether this transaction has changed what is to be counted.  Room that
 * it has reserved is for rows that it has not written.
 */
static bool
is_changed_here(TqCounted what, int64 id)
{
	int n;
	Oid extension;
	const TqCountChange *changes = tq_count_changes(&n, &extension);

	for (int i = 0; i < n; i++)
	{
		if (changes[i].what != what ||
			(what == TQ_COUNTED_QUEUE ? changes[i].counter < TQ_QUEUE_RESERVED
									  : changes[i].id == id))
			return true;
	}
	return false;
}

static void
set_to_zero(TqCountQueue *queue)
{
	for (int i = 0; i < TQ_QUEUE_GAUGES; i++)
		pg_atomic_write_u64(&queue->counters[i], 0);
}

/* Returns the gauges of all queues of this database. */
static TqCountGauges *
begin_all(TqCountDatabase *database, uint64 identity)
{
	HASH_SEQ_STATUS scan;
	TqCountQueue *queue;

	if (database->gauges.state == TQ_GAUGES_COUNTING)
		return NULL;
	if (database->since == 0)
		database->since = tq_clock_real_now();
	if (database->identity != 0 && database->identity != identity)
		tq_count_remove_groups(database);
	database->identity = identity;
	database->is_full = false;
	for (int i = 0; i < TQ_QUEUE_GAUGES; i++)
		pg_atomic_write_u64(&database->others[i], 0);
	hash_seq_init(&scan, tq_count_queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		if (queue->key.database != MyDatabaseId ||
			queue->key.extension != database->extension)
			continue;
		set_to_zero(queue);
		queue->gauges.state = TQ_GAUGES_EXACT;
	}
	return &database->gauges;
}

/* Returns the gauges that are to be counted, or NULL. */
static TqCountGauges *
begin_gauges(Oid extension, uint64 identity, TqCounted what, int64 id)
{
	TqCountKey key = tq_count_key(extension, id);
	TqCountDatabase *database = tq_count_enter_database(extension);
	bool is_exact = tq_counts_source(database, extension, identity) ==
					TQ_COUNT_MEMORY;
	TqCountGroup *group;
	TqCountQueue *queue;

	if (database == NULL)
		return NULL;
	if (what == TQ_COUNTED_GROUP)
	{
		group = is_exact ? tq_count_enter_group(database, &key) : NULL;
		return group == NULL ? NULL : &group->gauges;
	}
	queue = is_exact && id != 0 ? tq_count_find_queue(&key) : NULL;
	if (queue == NULL || queue->gauges.state == TQ_GAUGES_EXACT)
		return begin_all(database, identity);
	if (queue->gauges.state == TQ_GAUGES_COUNTING)
		return NULL;
	set_to_zero(queue);
	return &queue->gauges;
}

/* Returns whether a prepared transaction has an entry. */
static bool
is_known(TransactionId xid)
{
	const TqCountPrepared *entry;

	for (int i = 0; (entry = tq_count_prepared_next(&i)) != NULL; i++)
	{
		if (entry->xid == xid)
			return true;
	}
	return false;
}

/*
 * Begins to count the gauges of this database, or the tasks of a group; returns
 * false if that is not possible.  If the others are counted, only those of the
 * queue with that id are, unless it is 0.  `prepared` are the transactions that were
 * prepared before.  The caller reads by *snapshot at once (tq_spi_open_at()),
 * and sets the counters.
 */
bool
tq_count_build_begin(Oid extension, uint64 identity, TqCounted what, int64 id,
					 const TransactionId *prepared, int nprepared,
					 Snapshot *snapshot)
{
	TqCountGauges *gauges;

	if (tq_count_shared == NULL || RecoveryInProgress() || build.is_running ||
		is_changed_here(what, id))
		return false;
	tq_count_lock(LW_EXCLUSIVE);
	/* Make a transaction known that was prepared before the server started. */
	for (int i = 0; i < nprepared; i++)
	{
		if (!is_known(prepared[i]))
			(void) tq_count_prepared_add(extension, prepared[i], NULL,
										 TQ_PREPARED_UNKNOWN);
	}
	gauges = begin_gauges(extension, identity, what, id);
	if (gauges != NULL)
	{
		gauges->snapshot = tq_count_snapshot_take(snapshot);
		gauges->state = gauges->snapshot < 0 ? TQ_GAUGES_NONE
											 : TQ_GAUGES_COUNTING;
		gauges->is_spoiled = false;
		build.is_running = gauges->state == TQ_GAUGES_COUNTING;
		build.snapshot = gauges->snapshot;
		build.subid = GetCurrentSubTransactionId();
		build.what = what;
		build.key = tq_count_key(extension, id);
		if (gauges == &tq_count_find_database()->gauges)
			build.key.id = 0;
	}
	tq_count_unlock();
	return build.is_running;
}

/* Changes a counter of a group that nothing else changes just then. */
static void
merge_into(pg_atomic_uint64 *shared, int counter, int64 by)
{
	int64 value = (int64) pg_atomic_read_u64(shared);

	tq_count_merge(TQ_COUNTED_GROUP, counter, &value, by);
	pg_atomic_write_u64(shared, (uint64) value);
}

/* Makes the counters of a queue with limits, before rows of others take them. */
void
tq_count_build_keep(int32 queue)
{
	TqCountKey key = tq_count_key(build.key.extension, queue);

	if (build.key.id != 0)
		return;
	tq_count_lock(LW_EXCLUSIVE);
	(void) tq_count_enter_limited(&key);
	tq_count_unlock();
}

/* Adds to a counter of a queue what was counted. */
static void
set_queue(const TqCountKey *key, int counter, int64 value)
{
	TqCountDatabase *database = tq_count_find_database();
	bool is_one = build.key.id != 0; /* it has an entry, and no other counts */
	TqCountQueue *queue = database->is_full || is_one
							  ? tq_count_find_queue(key)
							  : tq_count_enter_queue(key);

	if (is_one && (key->id != build.key.id || queue == NULL ||
				   queue->gauges.state != TQ_GAUGES_COUNTING ||
				   queue->gauges.snapshot != build.snapshot))
		return;
	/* One of whose counts a part was left out gets no entry later. */
	if (!is_one && queue != NULL && queue->gauges.state != TQ_GAUGES_EXACT)
		queue = NULL;
	database->is_full |= queue == NULL;
	if (queue != NULL)
		pg_atomic_fetch_add_u64(&queue->counters[counter], value);
	if (queue == NULL || is_one)
		pg_atomic_fetch_add_u64(&database->others[counter],
								is_one ? -value : value);
}

/* Adds to a counter what was counted; id is that of a queue, or the group. */
void
tq_count_build_set(int64 id, int counter, int64 value)
{
	TqCountKey key = tq_count_key(build.key.extension, id);

	tq_count_lock(LW_EXCLUSIVE);
	if (build.what == TQ_COUNTED_QUEUE)
		set_queue(&key, counter, value);
	else
	{
		TqCountGroup *group = hash_search(tq_count_groups, &key, HASH_FIND,
										  NULL);

		if (group != NULL)
			merge_into(&group->counters[counter], counter, value);
	}
	tq_count_unlock();
}

/*
 * Returns the gauges that this session counts, or NULL if they are no longer
 * there.  The caller holds the lock.
 */
static TqCountGauges *
find_counted(void)
{
	TqCountDatabase *database = tq_count_find_database();
	TqCountGroup *group;
	TqCountQueue *queue;

	if (database == NULL || database->extension != build.key.extension)
		return NULL;
	if (build.what == TQ_COUNTED_QUEUE && build.key.id == 0)
		return &database->gauges;
	if (build.what == TQ_COUNTED_QUEUE)
	{
		queue = tq_count_find_queue(&build.key);
		return queue == NULL ? NULL : &queue->gauges;
	}
	group = hash_search(tq_count_groups, &build.key, HASH_FIND, NULL);
	return group == NULL ? NULL : &group->gauges;
}

/* Ends the count; returns whether its result is to be used. */
static bool
end_build(bool is_done)
{
	TqCountGauges *gauges;
	bool is_used = false;

	tq_count_lock(LW_EXCLUSIVE);
	tq_count_snapshot_free(build.snapshot);
	gauges = find_counted();
	if (gauges != NULL && gauges->state == TQ_GAUGES_COUNTING &&
		gauges->snapshot == build.snapshot)
	{
		is_used = is_done && !gauges->is_spoiled;
		gauges->state = is_used ? TQ_GAUGES_EXACT : TQ_GAUGES_NONE;
		if (!is_used && build.what == TQ_COUNTED_GROUP)
			tq_count_remove_group(tq_count_find_database(), &build.key);
		else if (!is_used && build.key.id != 0)
			tq_count_remove_queue(&build.key);
	}
	build.is_running = false;
	tq_count_unlock();
	return is_used;
}

/* Ends the count: from now on the counters are exact, if it returns true. */
bool
tq_count_build_end(void)
{
	tq_count_snapshot_wait(build.snapshot);
	return end_build(true);
}

/* Gives up the count of a transaction or subtransaction that is aborted. */
static void
build_abort(SubTransactionId id)
{
	if (build.is_running && (id == TopSubTransactionId || id == build.subid))
		(void) end_build(false);
}

/* Gives the count of a subtransaction that is committed to its parent. */
static void
build_subcommit(SubTransactionId id, SubTransactionId parent)
{
	if (build.is_running && build.subid == id)
		build.subid = parent;
}

const TqXactEnd tq_count_build_xact_end = {.has_work = &build.is_running,
										   .abort = build_abort,
										   .subcommit = build_subcommit};

/* ---- readers ---- */

/*
 * Waits until what is committed by now is counted.
 */
void
tq_counts_settle(void)
{
	if (tq_count_shared == NULL)
		return;
	tq_counts_apply_prepared();
	tq_count_commits_wait();
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
 * not TQ_COUNT_MEMORY, the caller counts the rows.  Those of a queue that has no
 * counters in a full database are at most what is read then.
 */
TqCountSource
tq_counts_read_gauges(Oid extension, uint64 identity, int32 queue,
					  int64 *gauges)
{
	TqCountKey key = tq_count_key(extension, queue);
	TqCountSource source;
	TqCountDatabase *database;
	TqCountQueue *entry;

	memset(gauges, 0, sizeof(int64) * TQ_QUEUE_GAUGES);
	if (tq_count_shared == NULL)
		return TQ_COUNT_TABLES;
	tq_count_lock(LW_SHARED);
	database = tq_count_find_database();
	source = tq_counts_source(database, extension, identity);
	entry = tq_count_find_queue(&key);
	if (entry != NULL && entry->gauges.state != TQ_GAUGES_EXACT)
		entry = NULL;
	if (source == TQ_COUNT_MEMORY && entry == NULL && database->is_full)
		source = TQ_COUNT_TABLES;
	for (int i = 0; source != TQ_COUNT_REBUILDING && i < TQ_QUEUE_GAUGES; i++)
		if (entry != NULL)
			gauges[i] = (int64) pg_atomic_read_u64(&entry->counters[i]);
		else if (source == TQ_COUNT_TABLES && database != NULL)
			gauges[i] = (int64) pg_atomic_read_u64(&database->others[i]);
	tq_count_unlock();
	if (!add_own_queue(extension, queue, gauges, TQ_QUEUE_GAUGES))
		return TQ_COUNT_REBUILDING;
	return source;
}

static void
counter_scan_read_queue(TqCountQueue *queue, TqQueueCounts *counts)
{
	counts->queue = (int32) queue->key.id;
	counts->has_gauges = queue->gauges.state == TQ_GAUGES_EXACT;
	counts->looked = pg_atomic_read_u32(&queue->looked);
	counts->entry = queue->entry;
	counts->oldest = (TimestampTz) pg_atomic_read_u64(&queue->oldest);
	for (int i = 0; i < TQ_QUEUE_COUNTERS; i++)
		counts->counters[i] = (int64) pg_atomic_read_u64(&queue->counters[i]);
	memset(counts->last_minute, 0, sizeof(int64) * TQ_RATES);
}

/* Adds up the events of the last minute, without the present period. */
static void
add_rates(TqCountQueue *queue, uint32 now, int64 *rates)
{
	for (int i = 0; i < TQ_COUNT_PERIODS; i++)
	{
		TqCountPeriod *period = &queue->periods[i];
		uint32 age = now - pg_atomic_read_u32(&period->number);

		for (int rate = 0;
			 rate < TQ_RATES && age > 0 && age < TQ_COUNT_PERIODS; rate++)
			rates[rate] += pg_atomic_read_u32(&period->events[rate]);
	}
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

/*
 * Reads the counters of all queues of this database, with room for so many more;
 * without their rates if there is no `now`, a number of a period.  The caller
 * holds the lock.
 */
static TqQueueCounts *
read_entries(Oid extension, uint32 now, int more, int *n)
{
	int room = (int) hash_get_num_entries(tq_count_queues);
	TqQueueCounts *found = palloc_extended(sizeof(TqQueueCounts) *
											   (room + more),
										   MCXT_ALLOC_HUGE);
	HASH_SEQ_STATUS scan;
	TqCountQueue *queue;

	*n = 0;
	hash_seq_init(&scan, tq_count_queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		if (queue->key.database != MyDatabaseId ||
			queue->key.extension != extension || *n >= room)
			continue;
		counter_scan_read_queue(queue, &found[*n]);
		if (now != 0)
			add_rates(queue, now, found[*n].last_minute);
		(*n)++;
	}
	return found;
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
	int nchanges;
	Oid own;
	const TqCountChange *changes;

	*n = 0;
	if (tq_count_shared == NULL)
		return TQ_COUNT_TABLES;
	tq_count_lock(LW_SHARED);
	source = tq_counts_source(tq_count_find_database(), extension, identity);
	if (source == TQ_COUNT_MEMORY && tq_count_find_database()->is_full)
		source = TQ_COUNT_TABLES;
	*found =
		read_entries(extension,
					 (uint32) (tq_clock_real_seconds() / TQ_COUNT_PERIOD_S),
					 own_queues(), n);
	tq_count_unlock();
	/*
	 * Add empty counters of the queues that only this transaction has changed.
	 */
	changes = tq_count_changes(&nchanges, &own);
	for (int i = 0; i < nchanges && own == extension; i++)
	{
		bool is_there = changes[i].what != TQ_COUNTED_QUEUE ||
						changes[i].id == 0;

		for (int j = 0; j < *n && !is_there; j++)
			is_there = (*found)[j].queue == changes[i].id;
		if (is_there)
			continue;
		memset(&(*found)[*n], 0, sizeof(TqQueueCounts));
		(*found)[(*n)++].queue = (int32) changes[i].id;
	}
	for (int i = 0; i < *n; i++)
	{
		if (!add_own_queue(extension, (*found)[i].queue, (*found)[i].counters,
						   TQ_QUEUE_COUNTERS))
			source = TQ_COUNT_REBUILDING;
	}
	return source;
}

/*
 * Reads the counters of all queues of this database as they are, without what
 * this transaction has changed, and without waiting for what commits.  Adds to
 * *others the gauges of those that have no entry; without has_gauges none of
 * the gauges is known.  NULL without shared memory.
 */
TqQueueCounts *
tq_counts_read_totals(Oid extension, uint64 identity, int *n,
					  TqQueueCounts *others)
{
	TqQueueCounts *found;
	TqCountDatabase *database;

	*n = 0;
	memset(others, 0, sizeof(TqQueueCounts));
	if (tq_count_shared == NULL)
		return NULL;
	tq_counts_apply_prepared();
	tq_count_lock(LW_SHARED);
	database = tq_count_find_database();
	others->has_gauges = tq_counts_source(database, extension, identity) ==
						 TQ_COUNT_MEMORY;
	others->is_full = database != NULL && database->is_full;
	for (int i = 0; others->has_gauges && i < TQ_QUEUE_GAUGES; i++)
		others->counters[i] = (int64) pg_atomic_read_u64(&database->others[i]);
	found = read_entries(extension, 0, 0, n);
	tq_count_unlock();
	for (int i = 0; i < *n; i++)
		found[i].has_gauges &= others->has_gauges;
	return found;
}

/*
 * Keeps since when a run has been pending in each of these queues, and when that
 * was read.  It is a hint.
 */
void
tq_counts_note_oldest(Oid extension, const TqQueueCounts *counts, int n)
{
	tq_count_lock(LW_SHARED);
	for (int i = 0; i < n; i++)
	{
		TqCountKey key = tq_count_key(extension, counts[i].queue);
		TqCountQueue *queue = tq_count_find_queue(&key);

		if (queue == NULL)
			continue;
		pg_atomic_write_u64(&queue->oldest, (uint64) counts[i].oldest);
		pg_atomic_write_u32(&queue->looked, counts[i].looked);
	}
	tq_count_unlock();
}

/*
 * Returns whether the log may have a line about a failure in a queue, because the
 * last one was that long ago, and how many failures had none since; of two
 * sessions one may.  A queue without counters has no limit.
 */
bool
tq_counts_log_due(Oid extension, int32 queue, int64 ms, uint32 *left_out)
{
	TqCountKey key = tq_count_key(extension, queue);
	uint64 now = (uint64) tq_clock_real_now() / 1000;
	TqCountQueue *entry = NULL;
	bool due = true;

	*left_out = 0;
	if (tq_count_shared == NULL)
		return true;
	tq_count_lock(LW_SHARED);
	entry = tq_count_find_queue(&key);
	if (entry != NULL)
	{
		uint64 last = pg_atomic_read_u64(&entry->logged);

		/* A clock that was set back makes one due, too. */
		due = (now < last || now - last >= (uint64) ms) &&
			  pg_atomic_compare_exchange_u64(&entry->logged, &last, now);
		if (due)
			*left_out = pg_atomic_exchange_u32(&entry->left_out, 0);
		else
			pg_atomic_fetch_add_u32(&entry->left_out, 1);
	}
	tq_count_unlock();
	return due;
}

/*
 * Returns about how many runs of this database are running; 0 without counters.
 */
int64
tq_counts_read_running(Oid extension)
{
	HASH_SEQ_STATUS scan;
	TqCountQueue *queue;
	int64 running = 0;

	if (tq_count_shared == NULL)
		return 0;
	tq_count_lock(LW_SHARED);
	hash_seq_init(&scan, tq_count_queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		if (queue->key.database == MyDatabaseId &&
			queue->key.extension == extension)
			running += (int64) pg_atomic_read_u64(
				&queue->counters[TQ_QUEUE_RUNNING]);
	}
	tq_count_unlock();
	return running;
}

/*
 * Adds the changes of this transaction to the counters of a group; returns
 * false if one of them takes something away that only a count of the rows can
 * give.
 */
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
	TqCountKey key = tq_count_key(extension, id);
	TqCountGroup *group;
	bool found;

	if (tq_count_shared == NULL)
		return false;
	tq_count_lock(LW_EXCLUSIVE);
	group = hash_search(tq_count_groups, &key, HASH_FIND, NULL);
	found = group != NULL && group->gauges.state == TQ_GAUGES_EXACT &&
			tq_counts_source(tq_count_find_database(), extension, identity) ==
				TQ_COUNT_MEMORY;
	if (found)
	{
		group->used = (uint32) tq_clock_real_seconds();
		for (int i = 0; i < TQ_GROUP_COUNTERS; i++)
			counters[i] = (int64) pg_atomic_read_u64(&group->counters[i]);
	}
	tq_count_unlock();
	return found && add_own_group(extension, id, counters);
}

/* Returns since when totals are counted, or 0. */
TimestampTz
tq_counts_since(Oid extension)
{
	const TqCountDatabase *database;
	TimestampTz since = 0;

	if (tq_count_shared == NULL)
		return 0;
	tq_count_lock(LW_SHARED);
	database = tq_count_find_database();
	if (database != NULL && database->extension == extension)
		since = database->since;
	tq_count_unlock();
	return since;
}

/*
 * Sets all totals of this database to zero, and makes its gauges be counted
 * again.
 */
void
tq_counts_reset(Oid extension)
{
	TqCountDatabase *database;
	HASH_SEQ_STATUS scan;
	TqCountQueue *queue;

	if (tq_count_shared == NULL)
		return;
	tq_count_lock(LW_EXCLUSIVE);
	hash_seq_init(&scan, tq_count_queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		if (queue->key.database == MyDatabaseId)
		{
			for (int i = TQ_QUEUE_GAUGES; i < TQ_QUEUE_COUNTERS; i++)
				pg_atomic_write_u64(&queue->counters[i], 0);
			for (int i = 0; i < TQ_COUNT_PERIODS; i++)
				pg_atomic_write_u32(&queue->periods[i].number, 0);
		}
	}
	database = tq_count_enter_database(extension);
	if (database != NULL)
	{
		tq_count_doubt_all(database);
		database->since = tq_clock_real_now();
	}
	tq_count_unlock();
}
