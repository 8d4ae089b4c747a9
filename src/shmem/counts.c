/*
 * counts.c
 *	  Counters of queues and groups in shared memory.
 *
 * Each queue has gauges (how many rows there are), totals since the last reset
 * (how often something has happened), histograms, and rates.  A transaction
 * applies its changes (count_changes.c) right after its commit, so that rolled
 * back work costs nothing and is never counted.  Gauges begin with a count of
 * the rows; count_snapshot.c says why that and the changes make the true number.
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
 * One lock protects everything.  Changes are applied with it in share mode, by
 * atomic operations.  It is held in exclusive mode to make and remove entries,
 * to take back the end of a task of a group, and to read the counters of a
 * group, which must be of one moment.
 * With the lock held, ProcArrayLock is taken, and nothing else.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

#include "../util/util.h"
#include "shmem.h"

/* What was applied last has ended runs of a queue whose claims are limited. */
static bool frees_slots = false;

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
count_rate(TqCountQueue *queue, int rate, int64 events)
{
	uint32 now = (uint32) (tq_clock_real_seconds() / TQ_COUNT_PERIOD_S);
	TqCountPeriod *period = &queue->periods[now % TQ_COUNT_PERIODS];
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
counts(const TqCountGauges *gauges, TransactionId xid)
{
	switch (gauges->state)
	{
		case TQ_GAUGES_NONE:
			return false;
		case TQ_GAUGES_COUNTING:
			return !tq_count_snapshot_shows(gauges->snapshot, xid);
		case TQ_GAUGES_EXACT:
			return true;
	}
	return false;
}

static void
change_queue(const TqCountDatabase *database, TqCountQueue *queue,
			 const TqCountChange *change, TransactionId xid)
{
	int rate = rate_of(change->counter);

	if (change->counter >= TQ_QUEUE_GAUGES || counts(&database->gauges, xid))
		pg_atomic_fetch_add_u64(&queue->counters[change->counter],
								change->value);
	/* not before it is counted: limit_room.c */
	if (change->counter == TQ_QUEUE_RUNNING && change->value < 0 &&
		pg_atomic_read_u32(&queue->is_limited) != 0)
		frees_slots = true;
	if (rate >= 0)
		count_rate(queue, rate, change->value);
}

/* Changes a counter of a group, as tq_count_merge() does. */
static void
add_to_group(TqCountGroup *group, int counter, int64 by)
{
	pg_atomic_uint64 *shared = &group->counters[counter];
	uint64 before = pg_atomic_read_u64(shared);
	int64 value;

	if (counter < TQ_GROUP_SUMS)
	{
		pg_atomic_fetch_add_u64(shared, by);
		return;
	}
	do
	{
		value = (int64) before;
		tq_count_merge(TQ_COUNTED_GROUP, counter, &value, by);
	} while (value != (int64) before &&
			 !pg_atomic_compare_exchange_u64(shared, &before, (uint64) value));
}

/* Returns whether a change takes away what the times of a group are from. */
static bool
takes_times_away(TqCountGroup *group, const TqCountChange *change)
{
	int64 last = (int64) pg_atomic_read_u64(
		&group->counters[TQ_GROUP_LAST_RESOLVED]);
	int64 bad = (int64) pg_atomic_read_u64(
		&group->counters[TQ_GROUP_FIRST_BAD]);

	switch (change->counter)
	{
		case TQ_GROUP_GONE:
			return true;
		case TQ_GROUP_UNDONE_RESOLVED:
			return change->value >= last;
		case TQ_GROUP_UNDONE_BAD:
			return change->value != TQ_COUNT_NO_TIME &&
				   (bad == TQ_COUNT_NO_TIME || change->value <= bad);
		default:
			return false;
	}
}

/*
 * Applies a change of a group; returns false if that needs the lock in
 * exclusive mode, and it is held in share mode.
 */
static bool
change_group(TqCountDatabase *database, const TqCountKey *key,
			 const TqCountChange *change, TransactionId xid, bool is_exclusive)
{
	TqCountGroup *group = hash_search(tq_count_groups, key, HASH_FIND, NULL);

	if (group == NULL || change->counter == TQ_GROUP_NEW ||
		!counts(&group->gauges, xid))
		return true;
	if (change->counter < TQ_GROUP_COUNTERS)
	{
		group->used = (uint32) tq_clock_real_seconds();
		add_to_group(group, change->counter, change->value);
		return true;
	}
	if (!is_exclusive)
		return false;
	if (group->gauges.state == TQ_GAUGES_COUNTING)
		group->gauges.is_spoiled = true;
	else if (takes_times_away(group, change))
		tq_count_remove_group(database, key);
	return true;
}

/* Has the gauges and the groups counted again. */
static void
doubt_all(TqCountDatabase *database)
{
	tq_count_doubt_gauges(&database->gauges);
	tq_count_remove_groups(database);
}

/*
 * Applies a change; returns false if that needs the lock in exclusive mode, and
 * it is held in share mode.
 */
static bool
apply(TqCountDatabase *database, Oid extension, const TqCountChange *change,
	  TransactionId xid, bool is_exclusive)
{
	TqCountKey key = tq_count_key(extension, change->id);
	TqCountQueue *queue;

	if (change->what == TQ_COUNTED_GROUP)
		return database->groups == 0 ||
			   change_group(database, &key, change, xid, is_exclusive);
	if (change->counter == TQ_QUEUE_DOUBT && is_exclusive)
		doubt_all(database);
	if (change->counter == TQ_QUEUE_GONE && is_exclusive)
		tq_count_remove_queue(&key);
	if (change->counter >= TQ_QUEUE_RESERVED)
		return true; /* given back at last */
	if (change->counter >= TQ_QUEUE_COUNTERS)
		return is_exclusive;
	queue = tq_count_find_queue(&key);
	if (queue == NULL && !is_exclusive && !database->is_full)
		return false;
	/* Where some queues have none, this one may have rows that do not count. */
	if (queue == NULL && is_exclusive && !database->is_full)
		queue = tq_count_enter_queue(&key);
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
	TqCountDatabase *database = tq_count_enter_database(extension);

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
	TqCountDatabase *database;
	int done = 0;

	if (n == 0 || tq_count_shared == NULL)
		return;
	tq_count_lock(LW_SHARED);
	database = tq_count_find_database();
	if (database != NULL && database->extension == extension)
	{
		while (done < n &&
			   apply(database, extension, &changes[done], xid, false))
			done++;
	}
	tq_count_unlock();
	if (done < n)
	{
		tq_count_lock(LW_EXCLUSIVE);
		apply_exclusively(extension, changes + done, n - done, xid);
		tq_count_unlock();
	}
	if (tq_count_changes_have_reserved())
		tq_room_release(extension, changes, n, false);
	if (frees_slots || tq_count_changes_have_reserved())
		tq_room_wake(extension, changes, n);
	frees_slots = false;
}

/* ---- prepared transactions ---- */

/* Applies the changes of prepared transactions that have committed. */
void
tq_counts_apply_prepared(void)
{
	const TqCountPrepared *entry;
	bool has_ended = false;
	int place = 0;

	if (max_prepared_xacts == 0)
		return;
	tq_count_lock(LW_EXCLUSIVE);
	while ((entry = tq_count_prepared_next(&place)) != NULL)
	{
		TqCountDatabase *database = tq_count_enter_database(entry->extension);

		if (!TransactionIdIsInProgress(entry->xid))
		{
			has_ended = true;
			if (TransactionIdDidCommit(entry->xid) && entry->n >= 0)
				apply_exclusively(entry->extension, entry->changes, entry->n,
								  entry->xid);
			else if (TransactionIdDidCommit(entry->xid) && database != NULL)
				doubt_all(database);
			if (entry->n > 0)
				tq_room_release_locked(entry->extension, entry->changes,
									   entry->n);
			tq_count_prepared_remove(place);
		}
		place++;
	}
	tq_count_unlock();
	if (has_ended && frees_slots)
		tq_wait_wake_all();
	frees_slots = false;
}

/*
 * Raises an error if what this transaction has reserved could not be kept until
 * it ends.
 */
static void
check_reserved(void)
{
	int n;
	Oid extension;

	(void) tq_count_changes(&n, &extension);
	if (!tq_count_changes_have_reserved() ||
		(n <= TQ_PREPARED_CHANGES && tq_count_prepared_has_room()))
		return;
	ereport(
		ERROR,
		(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
		 errmsg(
			 "cannot prepare a transaction that has changed so much in queues with limits"),
		 errdetail("It has changed %d counters, and may change %d.", n,
				   TQ_PREPARED_CHANGES),
		 errhint("Claim or create in smaller transactions.")));
}

/* Removes what has ended from the list, so that there is room. */
static void
counts_before_prepare(void)
{
	if (tq_count_shared == NULL)
		return;
	tq_counts_apply_prepared();
	check_reserved();
}

/* Keeps the changes of this transaction, which is prepared. */
static void
counts_prepared(void)
{
	int n;
	Oid extension;
	const TqCountChange *changes = tq_count_changes(&n, &extension);
	TqCountDatabase *database;

	if (n == 0 || tq_count_shared == NULL)
		return;
	tq_count_lock(LW_EXCLUSIVE);
	database = tq_count_enter_database(extension);
	if (!tq_count_prepared_add(extension, GetTopTransactionIdIfAny(), changes,
							   n) &&
		database != NULL)
		tq_count_doubt_gauges(&database->gauges);
	tq_count_unlock();
}

/* ---- the end of a transaction ---- */

/* This process has noted that it commits. */
static bool is_noted = false;

/*
 * Gives the groups whose rows this transaction has inserted counters of zero.
 * The transaction is not visible yet, so that no other can have changed them.
 */
static void
enter_new_groups(Oid extension, const TqCountChange *changes, int n)
{
	bool is_locked = false;

	for (int i = 0; i < n; i++)
	{
		TqCountKey key = tq_count_key(extension, changes[i].id);
		TqCountDatabase *database;
		TqCountGroup *group = NULL;

		if (changes[i].what != TQ_COUNTED_GROUP ||
			changes[i].counter != TQ_GROUP_NEW)
			continue;
		if (!is_locked)
			tq_count_lock(LW_EXCLUSIVE);
		is_locked = true;
		database = tq_count_enter_database(extension);
		if (database != NULL)
			group = tq_count_enter_group(database, &key);
		if (group != NULL)
			group->gauges.state = TQ_GAUGES_EXACT;
	}
	if (is_locked)
		tq_count_unlock();
}

static void
counts_before_commit(void)
{
	int n;
	Oid extension;
	const TqCountChange *changes = tq_count_changes(&n, &extension);

	is_noted = n > 0;
	if (!is_noted || tq_count_shared == NULL)
		return;
	enter_new_groups(extension, changes, n);
	tq_count_commit_begins(GetTopTransactionIdIfAny());
}

/* Gives back what an aborted subtransaction has reserved. */
static void
release_aborted(SubTransactionId id)
{
	int n;
	Oid extension;
	const TqCountChange *changes = tq_count_changes(&n, &extension);
	int first = n;

	while (first > 0 && changes[first - 1].subid == id)
		first--;
	tq_room_release(extension, changes + first, n - first, true);
}

static void
counts_abort(SubTransactionId id)
{
	tq_count_build_abandon(id);
	do
	{
		if (tq_count_changes_have_reserved())
			release_aborted(id);
	} while (tq_count_changes_abort(id));
}

static void
counts_subcommit(SubTransactionId id, SubTransactionId parent)
{
	tq_count_build_move(id, parent);
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
 * not TQ_COUNT_MEMORY, the caller counts the rows.
 */
TqCountSource
tq_counts_read_gauges(Oid extension, uint64 identity, int32 queue,
					  int64 *gauges)
{
	TqCountKey key = tq_count_key(extension, queue);
	TqCountSource source;
	const TqCountDatabase *database;
	TqCountQueue *entry;

	memset(gauges, 0, sizeof(int64) * TQ_QUEUE_GAUGES);
	if (tq_count_shared == NULL)
		return TQ_COUNT_TABLES;
	tq_count_lock(LW_SHARED);
	database = tq_count_find_database();
	source = tq_counts_source(database, extension, identity);
	entry = tq_count_find_queue(&key);
	for (int i = 0; entry != NULL && i < TQ_QUEUE_GAUGES; i++)
		gauges[i] = (int64) pg_atomic_read_u64(&entry->counters[i]);
	if (source == TQ_COUNT_MEMORY && entry == NULL && database->is_full)
		source = TQ_COUNT_TABLES;
	tq_count_unlock();
	if (!add_own_queue(extension, queue, gauges, TQ_QUEUE_GAUGES))
		return TQ_COUNT_REBUILDING;
	return source;
}

/* Adds up the events of the last minute, without the present period. */
static void
read_rates(TqCountQueue *queue, int64 *last_minute)
{
	uint32 now = (uint32) (tq_clock_real_seconds() / TQ_COUNT_PERIOD_S);

	memset(last_minute, 0, sizeof(int64) * TQ_RATES);
	for (int i = 0; i < TQ_COUNT_PERIODS; i++)
	{
		TqCountPeriod *period = &queue->periods[i];
		uint32 age = now - pg_atomic_read_u32(&period->number);

		for (int rate = 0;
			 rate < TQ_RATES && age > 0 && age < TQ_COUNT_PERIODS; rate++)
			last_minute[rate] += pg_atomic_read_u32(&period->events[rate]);
	}
}

static void
read_queue(TqCountQueue *queue, TqQueueCounts *counts)
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
	TqCountQueue *queue;
	int room;

	*n = 0;
	if (tq_count_shared == NULL)
		return TQ_COUNT_TABLES;
	tq_count_lock(LW_SHARED);
	room = (int) hash_get_num_entries(tq_count_queues);
	*found = palloc_extended(sizeof(TqQueueCounts) * (room + own_queues()),
							 MCXT_ALLOC_HUGE);
	source = tq_counts_source(tq_count_find_database(), extension, identity);
	if (source == TQ_COUNT_MEMORY && tq_count_find_database()->is_full)
		source = TQ_COUNT_TABLES;
	hash_seq_init(&scan, tq_count_queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		if (queue->key.database == MyDatabaseId &&
			queue->key.extension == extension && *n < room)
			read_queue(queue, &(*found)[(*n)++]);
	}
	tq_count_unlock();
	add_own_queues(extension, *found, n);
	for (int i = 0; i < *n; i++)
	{
		if (!add_own_queue(extension, (*found)[i].queue, (*found)[i].counters,
						   TQ_QUEUE_COUNTERS))
			source = TQ_COUNT_REBUILDING;
	}
	return source;
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
 * Adds the changes of this transaction to the counters of a group; returns false
 * if one of them takes something away that only a count of the rows can give.
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

static void
clear_totals(TqCountQueue *queue)
{
	for (int i = TQ_QUEUE_GAUGES; i < TQ_QUEUE_COUNTERS; i++)
		pg_atomic_write_u64(&queue->counters[i], 0);
	for (int i = 0; i < TQ_COUNT_PERIODS; i++)
		pg_atomic_write_u32(&queue->periods[i].number, 0);
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
			clear_totals(queue);
	}
	database = tq_count_enter_database(extension);
	if (database != NULL)
	{
		doubt_all(database);
		database->since = tq_clock_real_now();
	}
	tq_count_unlock();
}
