/*
 * slot_release.c
 *	  Gives back the slots of queues when a transaction ends.
 *
 * The other half of slots.c, which says why the order matters.
 */
#include "postgres.h"

#include "port/atomics.h"
#include "storage/lwlock.h"

#include "shmem.h"

/* Changes the reserved room of a queue by that much. */
void
tq_slots_change(TqCountQueue *queue, int gauge, int64 by)
{
	pg_atomic_uint64 *reserved = &queue->reserved[gauge];
	uint64 before = pg_atomic_read_u64(reserved);
	uint64 after;

	do
	{
		after = TQ_SLOTS_NEXT(before, Max(TQ_SLOTS_ROWS(before) + by, 0));
	} while (!pg_atomic_compare_exchange_u64(reserved, &before, after));
}

/*
 * Gives back what these changes have reserved, once the rows are counted, or
 * will never be.  The caller holds the lock.
 */
void
tq_slots_release_locked(Oid extension, const TqCountChange *changes, int n)
{
	for (int i = 0; i < n; i++)
	{
		TqCountKey key = tq_count_key(extension, changes[i].id);
		TqCountQueue *queue;

		if (changes[i].what != TQ_COUNTED_QUEUE ||
			changes[i].counter < TQ_QUEUE_RESERVED || changes[i].value == 0)
			continue;
		queue = tq_count_find_queue(&key);
		if (queue != NULL)
			tq_slots_change(queue, changes[i].counter - TQ_QUEUE_RESERVED,
							-changes[i].value);
	}
}

/*
 * The same, when the lock is not held.  If the rows were not written, it wakes
 * a waiter for each slot.
 */
void
tq_slots_release(Oid extension, const TqCountChange *changes, int n,
				 bool is_aborted)
{
	if (tq_count_shared == NULL)
		return;
	tq_count_lock(LW_SHARED);
	tq_slots_release_locked(extension, changes, n);
	tq_count_unlock();
	for (int i = 0; i < n && is_aborted; i++)
	{
		if (changes[i].what == TQ_COUNTED_QUEUE &&
			changes[i].counter == TQ_QUEUE_RESERVED + TQ_QUEUE_RUNNING)
			tq_wait_wake((int32) changes[i].id, (int) changes[i].value);
	}
}

/* Returns how many slots of a queue are free, by the limit that was seen last. */
static int64
free_slots(Oid extension, int32 id)
{
	TqCountKey key = tq_count_key(extension, id);
	TqCountQueue *queue;
	int64 room = 0;

	tq_count_lock(LW_SHARED);
	queue = tq_count_find_queue(&key);
	if (queue != NULL)
		room = (int64) pg_atomic_read_u32(&queue->limit) -
			   TQ_SLOTS_ROWS(
				   pg_atomic_read_u64(&queue->reserved[TQ_QUEUE_RUNNING])) -
			   (int64) pg_atomic_read_u64(&queue->counters[TQ_QUEUE_RUNNING]);
	tq_count_unlock();
	return room;
}

/*
 * Returns how many slots of a queue this transaction has held, and holds no
 * longer now that it has committed.
 */
static int64
freed_slots(Oid extension, int32 queue)
{
	int64 more = tq_count_changes_own(extension, queue, TQ_QUEUE_RUNNING);
	int64 freed = tq_count_changes_own(extension, queue,
									   TQ_QUEUE_RESERVED + TQ_QUEUE_RUNNING) -
				  more;

	if (freed <= 0 || more < 0)
		return freed;
	return Min(freed, free_slots(extension, queue));
}

/*
 * Wakes a waiter for each slot that this transaction, which has made these
 * changes, has freed.
 */
void
tq_slots_wake(Oid extension, const TqCountChange *changes, int n)
{
	pg_memory_barrier();
	for (int i = 0; i < n; i++)
	{
		int32 queue = (int32) changes[i].id;

		if (changes[i].what == TQ_COUNTED_QUEUE &&
			(changes[i].counter == TQ_QUEUE_RUNNING ||
			 changes[i].counter == TQ_QUEUE_RESERVED + TQ_QUEUE_RUNNING))
			tq_wait_wake(queue, (int) freed_slots(extension, queue));
	}
}
