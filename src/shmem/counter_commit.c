/*
 * counter_commit.c
 *	  Applies the changes of counters when a transaction ends.
 *
 * A transaction applies its changes (counter_changes.c) right after its commit.
 * Those of a prepared transaction are stored, and applied by the next session
 * that finds that it has committed.  The room that a transaction has reserved is
 * given back after that, or at its abort (limit_room.c).  counters.c has the
 * argument, and the locks.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "storage/procarray.h"

#include "shmem.h"

/* What was applied last has ended runs of a queue whose claims are limited. */
static bool frees_slots = false;

/* ---- changes ---- */

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
change_queue(TqCountDatabase *database, TqCountQueue *queue,
			 const TqCountChange *change, TransactionId xid)
{
	int rate = -1; /* which rate the event belongs to */

	if (change->counter == TQ_QUEUE_CREATED)
		rate = 0;
	else if (change->counter == TQ_QUEUE_CLAIMED)
		rate = 1;
	else if (change->counter >= TQ_QUEUE_ENDED &&
			 change->counter < TQ_QUEUE_WAITED)
		rate = 2;
	if (change->counter >= TQ_QUEUE_GAUGES)
		pg_atomic_fetch_add_u64(&queue->counters[change->counter],
								change->value);
	else if (counts(&database->gauges, xid))
		pg_atomic_fetch_add_u64(counts(&queue->gauges, xid)
									? &queue->counters[change->counter]
									: &database->others[change->counter],
								change->value);
	/* not before it is counted: limit_room.c */
	if (change->counter == TQ_QUEUE_RUNNING && change->value < 0 &&
		pg_atomic_read_u32(&queue->is_limited) != 0)
		frees_slots = true;
	if (rate >= 0)
	{
		uint32 now = (uint32) (tq_clock_real_seconds() / TQ_COUNT_PERIOD_S);
		TqCountPeriod *period = &queue->periods[now % TQ_COUNT_PERIODS];
		uint32 before = pg_atomic_read_u32(&period->number);

		/*
		 * Count events of this moment.  An event that is counted just then may
		 * be lost.
		 */
		if (before != now &&
			pg_atomic_compare_exchange_u32(&period->number, &before, now))
		{
			for (int i = 0; i < TQ_RATES; i++)
				pg_atomic_write_u32(&period->events[i], 0);
		}
		pg_atomic_fetch_add_u32(&period->events[rate], (int32) change->value);
	}
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

/*
 * Applies a change; returns false if that needs the lock in exclusive mode, and
 * it is held in share mode.
 */
static bool
counter_commit_apply(TqCountDatabase *database, Oid extension,
					 const TqCountChange *change, TransactionId xid,
					 bool is_exclusive)
{
	TqCountKey key = tq_count_key(extension, change->id);
	TqCountQueue *queue;

	if (change->what == TQ_COUNTED_GROUP)
		return database->groups == 0 ||
			   change_group(database, &key, change, xid, is_exclusive);
	if (change->counter == TQ_QUEUE_DOUBT && is_exclusive)
		tq_count_doubt_all(database);
	if (change->counter == TQ_QUEUE_GONE && is_exclusive)
	{
		tq_count_remove_queue(&key);
		tq_rate_remove_queue(&key);
	}
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
	if (queue != NULL)
		change_queue(database, queue, change, xid);
	else
	{
		database->is_full = true;
		if (change->counter < TQ_QUEUE_GAUGES &&
			counts(&database->gauges, xid))
			pg_atomic_fetch_add_u64(&database->others[change->counter],
									change->value);
	}
	return true;
}

/* Applies changes from one on; the lock is exclusive. */
static void
apply_exclusively(Oid extension, const TqCountChange *changes, int n,
				  TransactionId xid)
{
	TqCountDatabase *database = tq_count_enter_database(extension);

	for (int i = 0; database != NULL && i < n; i++)
		(void) counter_commit_apply(database, extension, &changes[i], xid,
									true);
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
		while (done < n && counter_commit_apply(database, extension,
												&changes[done], xid, false))
			done++;
	}
	tq_count_unlock();
	if (done < n)
	{
		tq_count_lock(LW_EXCLUSIVE);
		apply_exclusively(extension, changes + done, n - done, xid);
		tq_count_unlock();
	}
	if (tq_count_changed.reserved)
		tq_room_release(extension, changes, n, false);
	if (frees_slots || tq_count_changed.reserved)
		tq_room_wake(extension, changes, n);
	frees_slots = false;
}

/* ---- prepared transactions ---- */

/* Returns whether a prepared transaction of this database has ended. */
static bool
has_ended_prepared(void)
{
	const TqCountPrepared *entry;
	bool found = false;

	tq_count_lock(LW_SHARED);
	for (int i = 0; (entry = tq_count_prepared_next(&i)) != NULL; i++)
		found |= !TransactionIdIsInProgress(entry->xid);
	tq_count_unlock();
	return found;
}

/* Applies the changes of prepared transactions that have committed. */
void
tq_counts_apply_prepared(void)
{
	const TqCountPrepared *entry;
	bool has_ended = false;
	int position = 0;

	if (max_prepared_xacts == 0 || !has_ended_prepared())
		return;
	tq_count_lock(LW_EXCLUSIVE);
	while ((entry = tq_count_prepared_next(&position)) != NULL)
	{
		TqCountDatabase *database = tq_count_enter_database(entry->extension);

		if (!TransactionIdIsInProgress(entry->xid))
		{
			has_ended = true;
			if (TransactionIdDidCommit(entry->xid) && entry->n >= 0)
				apply_exclusively(entry->extension, entry->changes, entry->n,
								  entry->xid);
			else if (TransactionIdDidCommit(entry->xid) && database != NULL)
				tq_count_doubt_all(database);
			if (entry->n > 0)
				tq_room_release_locked(entry->extension, entry->changes,
									   entry->n,
									   !TransactionIdDidCommit(entry->xid));
			tq_count_prepared_remove(position);
		}
		position++;
	}
	tq_count_unlock();
	if (has_ended && frees_slots)
		tq_wait_wake_all(MyDatabaseId);
	frees_slots = false;
}

/* Removes what has ended from the list, so that there is room. */
static void
counts_before_prepare(void)
{
	int n;
	Oid extension;

	if (tq_count_shared == NULL)
		return;
	tq_counts_apply_prepared();
	/*
	 * Raise an error if what this transaction has reserved could not be kept
	 * until it ends.
	 */
	(void) tq_count_changes(&n, &extension);
	if (!tq_count_changed.reserved ||
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
		tq_count_doubt_all(database);
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
	if (tq_count_changed.new_groups)
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
	do
	{
		if (tq_count_changed.reserved)
			release_aborted(id);
	} while (tq_count_changes_abort(id));
}

static void
counts_reset(void)
{
	if (is_noted)
		tq_count_commit_ends();
	is_noted = false;
	tq_count_changes_reset();
}

const TqXactEnd tq_counts_xact_end = {.has_work = &tq_count_changed.any,
									  .before_commit = counts_before_commit,
									  .commit = counts_commit,
									  .abort = counts_abort,
									  .reset = counts_reset,
									  .before_prepare = counts_before_prepare,
									  .prepared = counts_prepared,
									  .subcommit = tq_count_changes_subcommit};
