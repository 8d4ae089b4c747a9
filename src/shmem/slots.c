/*
 * slots.c
 *	  Limits of queues: room for rows that a transaction is about to write.
 *
 * A queue may have a limit of how many of its tasks run, or of how many are
 * pending or delayed.  The counters (counts.c) say how many rows there are that
 * committed transactions have written.  A transaction that is about to write
 * such rows reserves room for them first, so that two transactions cannot both
 * take the last slot:
 *
 *	reserved room + rows + rows to be written <= limit
 *
 * The room is given back when the transaction ends: after its commit, when its
 * rows are counted, or at its abort, also that of a savepoint.  A transaction
 * may use the slots of the rows that it ends itself: if what it has ended is
 * undone, so is what it has done since.
 *
 *	claim										commit
 *	R1	read the reserved room, a version		C1	count the rows
 *	R2	read the rows							C2	give the room back:
 *	R3	compare and swap: reserve more,				version + 1
 *		version + 1
 *
 * If C2 comes before R1, so does C1, and R2 reads the rows.  If it comes after
 * R3, the room counted.  If it comes between R1 and R3, the version differs, and
 * the claim begins again.  So the rows count twice for a moment, but never not
 * at all.
 *
 * A prepared transaction keeps its room until it is found to have ended; one
 * that was prepared before the server was started has an unknown number of
 * rows, and then nothing is handed out until it ends.  The same holds while the
 * rows are counted after a start.
 *
 * A transaction that frees slots wakes as many waiters as it has freed, if a
 * claim of the queue was ever refused.  The claim sets that flag, and then looks
 * once more; the transaction counts, and then reads the flag.  So one of the two
 * sees the other.  A transaction that has ended runs and claimed others has held
 * more slots than it has runs now, and wakes waiters if the limit leaves room.
 *
 * A claim that takes more slots than it needs may have others refused meanwhile.
 * It wakes as many waiters as there were refusals, and no more: two claims that
 * find nothing do not wake each other.
 *
 * The lock of the counters is held in share mode.  test/model/slots.pml is this
 * protocol for spin.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/lwlock.h"

#include "shmem.h"

/*
 * Returns the rows and the reserved room of a queue as this transaction is to
 * count them: without the rows that it ends itself.
 */
static int64
rows_of(const TqSlotRequest *request, TqCountQueue *queue, uint64 word)
{
	int64 own = tq_count_changes_own(request->extension, request->queue,
									 request->gauge) -
				tq_count_changes_own(request->extension, request->queue,
									 TQ_QUEUE_RESERVED + request->gauge);

	pg_read_barrier();
	return TQ_SLOTS_ROWS(word) + own +
		   (int64) pg_atomic_read_u64(&queue->counters[request->gauge]);
}

/* Tries once or more to reserve room; returns how many slots it has got. */
static int
reserve(const TqSlotRequest *request, TqCountQueue *queue)
{
	pg_atomic_uint64 *reserved = &queue->reserved[request->gauge];
	uint64 before = pg_atomic_read_u64(reserved);

	for (;;)
	{
		int64 room = request->limit - rows_of(request, queue, before);
		int n = (int) Min(room, request->max);

		if (n < request->min)
			return 0;
		if (pg_atomic_compare_exchange_u64(reserved, &before,
										   TQ_SLOTS_NEXT(before, TQ_SLOTS_ROWS(
																	 before) +
																	 n)))
			return n;
	}
}

/* Finds the counters of a queue; the caller holds the lock in share mode. */
static TqSlots
find_queue(const TqSlotRequest *request, TqCountQueue **queue)
{
	TqCountKey key = tq_count_key(request->extension, request->queue);
	const TqCountDatabase *database = tq_count_find_database();

	*queue = NULL;
	if (tq_counts_source(database, request->extension, request->identity) !=
			TQ_COUNT_MEMORY ||
		tq_count_prepared_is_unknown())
		return TQ_SLOTS_UNKNOWN;
	*queue = tq_count_find_queue(&key);
	return *queue != NULL ? TQ_SLOTS_TAKEN : TQ_SLOTS_NO_ROOM;
}

/*
 * Makes the counters of a queue of which nothing was counted yet; returns false
 * if there is no room, or if the queue may have rows that were not counted.
 */
static bool
enter_queue(const TqSlotRequest *request)
{
	TqCountKey key = tq_count_key(request->extension, request->queue);
	bool is_there;

	tq_count_lock(LW_EXCLUSIVE);
	is_there = tq_count_find_queue(&key) != NULL ||
			   (!tq_count_find_database()->is_full &&
				tq_count_enter_queue(&key) != NULL);
	tq_count_unlock();
	return is_there;
}

/* Notes that a claim is about to be refused; it looks once more after that. */
static void
note_refusal(TqCountQueue *queue)
{
	pg_atomic_write_u32(&queue->is_limited, 1);
	pg_atomic_fetch_add_u32(&queue->refused, 1);
}

/* Reserves room, and looks again after it has set the flag. */
static TqSlots
take(const TqSlotRequest *request, int *taken)
{
	TqCountQueue *queue;
	TqSlots result;

	tq_count_lock(LW_SHARED);
	result = find_queue(request, &queue);
	if (result == TQ_SLOTS_TAKEN)
	{
		if (request->gauge == TQ_QUEUE_RUNNING)
			pg_atomic_write_u32(&queue->limit, request->limit);
		*taken = reserve(request, queue);
		if (*taken == 0)
		{
			note_refusal(queue);
			*taken = reserve(request, queue);
		}
		if (*taken == 0)
			result = TQ_SLOTS_FULL;
	}
	tq_count_unlock();
	if (*taken > 0)
		tq_count_change(request->extension, TQ_COUNTED_QUEUE, request->queue,
						TQ_QUEUE_RESERVED + request->gauge, *taken);
	return result;
}

/*
 * Takes up to request->max slots, and at least request->min, or none.  The end
 * of the transaction gives them back.
 */
TqSlots
tq_slots_take(const TqSlotRequest *request, int *taken)
{
	TqSlots result;

	*taken = 0;
	if (max_prepared_xacts > 0)
		tq_counts_apply_prepared();
	tq_count_changes_make_room();
	result = take(request, taken);
	if (result == TQ_SLOTS_NO_ROOM && enter_queue(request))
		result = take(request, taken);
	return result;
}

/* Sets *rows to how many slots of a queue are taken; takes none. */
TqSlots
tq_slots_look(const TqSlotRequest *request, int64 *rows)
{
	TqCountQueue *queue;
	TqSlots result;

	*rows = 0;
	if (max_prepared_xacts > 0)
		tq_counts_apply_prepared();
	tq_count_lock(LW_SHARED);
	result = find_queue(request, &queue);
	if (queue != NULL)
	{
		pg_atomic_uint64 *reserved = &queue->reserved[request->gauge];

		*rows = rows_of(request, queue, pg_atomic_read_u64(reserved));
		if (*rows >= request->limit)
		{
			note_refusal(queue);
			*rows = rows_of(request, queue, pg_atomic_read_u64(reserved));
		}
	}
	tq_count_unlock();
	/* A queue without counters has no rows, unless others took its room. */
	if (result == TQ_SLOTS_NO_ROOM && enter_queue(request))
		result = TQ_SLOTS_TAKEN;
	return result;
}

/*
 * Gives back slots that were taken and that are not needed, and wakes a waiter
 * for each claim that was refused because of them.
 */
void
tq_slots_give_back(const TqSlotRequest *request, int n)
{
	TqCountKey key = tq_count_key(request->extension, request->queue);
	TqCountQueue *queue;
	uint32 refused = 0;

	tq_count_changes_make_room();
	tq_count_lock(LW_SHARED);
	queue = tq_count_find_queue(&key);
	if (queue != NULL)
	{
		tq_slots_change(queue, request->gauge, -n);
		if (pg_atomic_read_u32(&queue->refused) != 0)
			refused = pg_atomic_exchange_u32(&queue->refused, 0);
	}
	tq_count_unlock();
	tq_count_change(request->extension, TQ_COUNTED_QUEUE, request->queue,
					TQ_QUEUE_RESERVED + request->gauge, -n);
	if (request->gauge == TQ_QUEUE_RUNNING)
		tq_wait_wake(request->queue, Min((int) Min(refused, PG_INT16_MAX), n));
}
