/*
 * limit_room.c
 *	  Limits of queues: room for rows to be written, and for claims.
 *
 * Room for rows ------------- A queue may have a limit of how many of its tasks
 * run, or of how many are pending or delayed.  The counters (counters.c) say how
 * many rows there are that committed transactions have written.  A transaction
 * that is about to write such rows reserves room for them first, so that two
 * transactions cannot both take the last slot:
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
 * A claim that takes more slots than it needs may have others refused
 * meanwhile. It wakes as many waiters as there were refusals, and no more: two
 * claims that find nothing do not wake each other.
 *
 * Room for claims within an interval
 * ----------------------------------
 * A queue may have a limit of so many claims in each interval, wherever the
 * interval begins.  Claims are counted in periods of a 64th of the interval.  A
 * claim is allowed if those of its period and of the 64 periods before, which
 * last longer than the interval, are not too many.  So the limit is never
 * exceeded, and up to one claim in 65 is lost to it.
 *
 * A claim is counted before it looks for runs, and again at the time at which
 * its runs have started.  A claim that is allowed more than it finds may have
 * others refused meanwhile; it wakes as many waiters as there were refusals.
 *
 * A claim counts from when it is made, also if its transaction is rolled back:
 * the limit is there for what workers do, and a worker may have begun.  After a
 * start of the server the claims of the last interval are counted from the
 * table, together with the rows for the gauges (counter_scan.c); nothing is
 * handed out before.
 *
 * There is room for as many windows as queues are counted.  That of a queue goes
 * with the queue, and where there is no room for another one, those that had no
 * claim for their interval go, which are like new ones.
 *
 * Locks ----- The lock of the counters (counters.c) is held at least in share
 * mode wherever room is taken, used or given back: the words of a queue are
 * atomic, and follow the protocol above.  It is held in exclusive mode to make
 * the counters of a queue, and to make or remove a window.  Each window has a
 * spinlock of its own, which is taken with the lock of the counters
 * held.  Waiters are woken without any of them.
 *
 * test/model/limit_room.pml is the protocol for rows, for spin.
 */
#include "postgres.h"

#include "storage/shmem.h"
#include "storage/spin.h"

#include "shmem.h"

/* A reserved number of rows in the lower half, its version in the upper one. */
#define ROWS TQ_ROOM_ROWS
#define NEXT(word, rows)                                                      \
	((((word) >> 32) + 1) << 32 | (uint64) (uint32) (rows))

#define PERIODS 64 /* of an interval */

typedef struct Period
{
	int64 number; /* time divided by the width */
	int claims;
} Period;

typedef struct Window
{
	TqCountKey key;
	slock_t lock; /* of the rest */
	int refused;  /* claims, since some were last given back */
	int64 width;  /* of a period, us */
	Period periods[PERIODS + 1];
} Window;

static HTAB *windows = NULL;

static int
entries(void)
{
	return Max(tq_counted_queues, 1);
}

static Size
limit_room_tables(void)
{
	return hash_estimate_size(entries(), sizeof(Window));
}

static Size
limit_room_size(void)
{
	return sizeof(int);
}

static void
limit_room_startup(void *memory, bool is_new, LWLockPadded *locks)
{
	HASHCTL control = {.keysize = sizeof(TqCountKey),
					   .entrysize = sizeof(Window)};

	windows = TqShmemHash("tq rate windows", entries(), &control,
						  HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
}

const TqShmemPart tq_limit_shmem = {.name = "tq limits",
									.size = limit_room_size,
									.tables = limit_room_tables,
									.startup = limit_room_startup};

/* ---- taking room for rows ---- */

/*
 * Returns the rows and the reserved room of a queue as this transaction is to
 * count them: without the rows that it ends itself.
 */
static int64
rows_of(const TqRoomRequest *request, TqCountQueue *queue, uint64 word)
{
	int64 own = tq_count_changes_own(request->extension, request->queue,
									 request->gauge) -
				tq_count_changes_own(request->extension, request->queue,
									 TQ_QUEUE_RESERVED + request->gauge);

	pg_read_barrier();
	return ROWS(word) + own +
		   (int64) pg_atomic_read_u64(&queue->counters[request->gauge]);
}

/* Tries once or more to reserve room; returns how many slots it has got. */
static int
reserve(const TqRoomRequest *request, TqCountQueue *queue)
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
										   NEXT(before, ROWS(before) + n)))
			return n;
	}
}

/*
 * Returns whether there is a prepared transaction of this database that may have
 * added rows to queues with limits, and it is not known how many.
 */
static bool
is_unknown(void)
{
	const TqCountPrepared *entry;

	for (int i = 0; (entry = tq_count_prepared_next(&i)) != NULL; i++)
	{
		if (entry->n == TQ_PREPARED_UNKNOWN)
			return true;
	}
	return false;
}

/* Finds the counters of a queue; the caller holds the lock in share mode. */
static TqRoom
find_queue(const TqRoomRequest *request, TqCountQueue **queue)
{
	TqCountKey key = tq_count_key(request->extension, request->queue);
	const TqCountDatabase *database = tq_count_find_database();

	*queue = NULL;
	if (tq_counts_source(database, request->extension, request->identity) !=
			TQ_COUNT_MEMORY ||
		is_unknown())
		return TQ_ROOM_UNKNOWN;
	*queue = tq_count_find_queue(&key);
	if (*queue == NULL)
		return TQ_ROOM_UNCOUNTED;
	if ((*queue)->gauges.state == TQ_GAUGES_EXACT)
		return TQ_ROOM_TAKEN;
	*queue = NULL;
	return TQ_ROOM_UNKNOWN;
}

/*
 * Keeps the counters of a queue from being those of another one; returns whether
 * this is their first use for limits.  The caller holds the lock.
 */
static bool
keep_queue(TqCountQueue *queue)
{
	return pg_atomic_read_u32(&queue->has_limits) == 0 &&
		   pg_atomic_exchange_u32(&queue->has_limits, 1) == 0;
}

/* Notes the first use of counters for limits, which an abort undoes. */
static void
note_first(const TqRoomRequest *request, bool is_first)
{
	if (is_first)
		tq_count_change(request->extension, TQ_COUNTED_QUEUE, request->queue,
						TQ_QUEUE_ENTERED, 1);
}

/* Lets the counters of a queue, which has no limits, go to queues that have. */
static void
forget_queue(Oid extension, int32 id)
{
	TqCountKey key = tq_count_key(extension, id);
	TqCountQueue *queue;

	tq_count_lock(LW_SHARED);
	queue = tq_count_find_queue(&key);
	if (queue != NULL)
		pg_atomic_write_u32(&queue->has_limits, 0);
	tq_count_unlock();
}

/*
 * Makes and keeps the counters of a queue; returns false if there is no room.
 * If other queues of this database have no counters, this one may have rows, and
 * hands out nothing until they are counted.
 */
static bool
enter_queue(const TqRoomRequest *request)
{
	TqCountKey key = tq_count_key(request->extension, request->queue);
	TqCountDatabase *database;
	TqCountQueue *queue;
	bool is_first;

	tq_count_changes_make_room();
	tq_count_lock(LW_EXCLUSIVE);
	database = tq_count_find_database();
	queue = tq_count_find_queue(&key);
	is_first = queue != NULL && keep_queue(queue);
	if (queue == NULL)
	{
		bool may_have_rows = database != NULL && database->is_full;

		queue = tq_count_enter_limited(&key);
		is_first = queue != NULL;
		if (is_first && may_have_rows)
			queue->gauges.state = TQ_GAUGES_NONE;
	}
	tq_count_unlock();
	note_first(request, is_first);
	tq_count_changes_make_room(); /* for what the caller takes */
	return queue != NULL;
}

/*
 * Makes and keeps the counters of a queue that has limits, or lets them go to
 * others; returns false if there is no room.
 */
bool
tq_room_keep(const TqRoomRequest *request, bool has_limits)
{
	if (has_limits)
		return enter_queue(request);
	forget_queue(request->extension, request->queue);
	return true;
}

/* Notes that a claim is about to be refused; it looks once more after that. */
static void
limit_room_note_refusal(TqCountQueue *queue)
{
	pg_atomic_write_u32(&queue->is_limited, 1);
	pg_atomic_fetch_add_u32(&queue->refused, 1);
}

/* Reserves room, and looks again after it has set the flag. */
static TqRoom
limit_room_take(const TqRoomRequest *request, int *taken)
{
	TqCountQueue *queue;
	TqRoom result;
	bool is_first = false;

	tq_count_lock(LW_SHARED);
	result = find_queue(request, &queue);
	if (result == TQ_ROOM_TAKEN)
	{
		is_first = keep_queue(queue);
		if (request->gauge == TQ_QUEUE_RUNNING)
			pg_atomic_write_u32(&queue->limit, request->limit);
		*taken = reserve(request, queue);
		if (*taken == 0)
		{
			limit_room_note_refusal(queue);
			*taken = reserve(request, queue);
		}
		if (*taken == 0)
			result = TQ_ROOM_FULL;
	}
	tq_count_unlock();
	if (*taken > 0)
		tq_count_change(request->extension, TQ_COUNTED_QUEUE, request->queue,
						TQ_QUEUE_RESERVED + request->gauge, *taken);
	note_first(request, is_first);
	return result;
}

/*
 * Takes up to request->max slots, and at least request->min, or none.  The end
 * of the transaction gives them back.  The caller has applied the changes of
 * prepared transactions that have ended.
 */
TqRoom
tq_room_take(const TqRoomRequest *request, int *taken)
{
	TqRoom result;

	*taken = 0;
	tq_count_changes_make_room();
	result = limit_room_take(request, taken);
	if (result == TQ_ROOM_UNCOUNTED && enter_queue(request))
		result = limit_room_take(request, taken);
	return result;
}

/* Reads how many slots are taken, and looks again after it has set the flag. */
static TqRoom
limit_room_read(const TqRoomRequest *request, int64 *rows)
{
	TqCountQueue *queue;
	TqRoom result;
	bool is_first = false;

	tq_count_lock(LW_SHARED);
	result = find_queue(request, &queue);
	if (queue != NULL)
	{
		pg_atomic_uint64 *reserved = &queue->reserved[request->gauge];

		is_first = keep_queue(queue);
		*rows = rows_of(request, queue, pg_atomic_read_u64(reserved));
		if (*rows >= request->limit)
		{
			limit_room_note_refusal(queue);
			*rows = rows_of(request, queue, pg_atomic_read_u64(reserved));
		}
	}
	tq_count_unlock();
	note_first(request, is_first);
	return result;
}

/*
 * Sets *rows to how many slots of a queue are taken; takes none.  The caller has
 * applied the changes of prepared transactions that have ended.
 */
TqRoom
tq_room_read(const TqRoomRequest *request, int64 *rows)
{
	TqRoom result;

	*rows = 0;
	result = limit_room_read(request, rows);
	if (result == TQ_ROOM_UNCOUNTED && enter_queue(request))
		result = limit_room_read(request, rows);
	return result;
}

/* ---- giving it back ---- */

/* Changes the reserved room of a queue by that much. */
static void
change_reserved(TqCountQueue *queue, int gauge, int64 by)
{
	pg_atomic_uint64 *reserved = &queue->reserved[gauge];
	uint64 before = pg_atomic_read_u64(reserved);
	uint64 after;

	do
	{
		after = NEXT(before, Max(ROWS(before) + by, 0));
	} while (!pg_atomic_compare_exchange_u64(reserved, &before, after));
}

/*
 * Gives back slots that were taken and that are not needed, and wakes a waiter
 * for each claim that was refused because of them.
 */
void
tq_room_give_back(const TqRoomRequest *request, int n)
{
	TqCountKey key = tq_count_key(request->extension, request->queue);
	TqCountQueue *queue;
	uint32 refused = 0;

	tq_count_changes_make_room();
	tq_count_lock(LW_SHARED);
	queue = tq_count_find_queue(&key);
	if (queue != NULL)
	{
		change_reserved(queue, request->gauge, -n);
		if (pg_atomic_read_u32(&queue->refused) != 0)
			refused = pg_atomic_exchange_u32(&queue->refused, 0);
	}
	tq_count_unlock();
	tq_count_change(request->extension, TQ_COUNTED_QUEUE, request->queue,
					TQ_QUEUE_RESERVED + request->gauge, -n);
	if (request->gauge == TQ_QUEUE_RUNNING)
		tq_wait_wake(request->queue, Min((int) Min(refused, PG_INT16_MAX), n));
}

/* Whether a change is that the counters of a queue were made, or kept. */
#define HAS_ENTERED(change)                                                   \
	((change)->what == TQ_COUNTED_QUEUE &&                                    \
	 (change)->counter == TQ_QUEUE_ENTERED)

/*
 * Removes the counters of a queue if nothing was counted, or else lets them go
 * to queues with limits; the lock is exclusive.
 */
static void
remove_unused(const TqCountKey *key)
{
	TqCountQueue *queue = tq_count_find_queue(key);
	bool is_used = false;

	if (queue == NULL)
		return;
	for (int i = 0; i < TQ_QUEUE_COUNTERS; i++)
		is_used |= pg_atomic_read_u64(&queue->counters[i]) != 0;
	for (int i = 0; i < TQ_QUEUE_GAUGES; i++)
		is_used |= ROWS(pg_atomic_read_u64(&queue->reserved[i])) != 0;
	if (!is_used)
		tq_count_remove_queue(key);
	else
		pg_atomic_write_u32(&queue->has_limits, 0);
}

/*
 * Gives back what these changes have reserved, once the rows are counted, or
 * will never be.  The caller holds the lock, in exclusive mode if the
 * transaction has aborted.
 */
void
tq_room_release_locked(Oid extension, const TqCountChange *changes, int n,
					   bool is_aborted)
{
	for (int i = 0; i < n; i++)
	{
		TqCountKey key = tq_count_key(extension, changes[i].id);
		TqCountQueue *queue;

		if (changes[i].what != TQ_COUNTED_QUEUE ||
			changes[i].counter < TQ_QUEUE_RESERVED || changes[i].value == 0 ||
			changes[i].counter == TQ_QUEUE_ENTERED)
			continue;
		queue = tq_count_find_queue(&key);
		if (queue != NULL)
			change_reserved(queue, changes[i].counter - TQ_QUEUE_RESERVED,
							-changes[i].value);
	}
	for (int i = 0; i < n && is_aborted; i++)
	{
		TqCountKey key = tq_count_key(extension, changes[i].id);

		if (HAS_ENTERED(&changes[i]))
			remove_unused(&key);
	}
}

/*
 * The same, when the lock is not held.  If the rows were not written, it wakes
 * a waiter for each slot.
 */
void
tq_room_release(Oid extension, const TqCountChange *changes, int n,
				bool is_aborted)
{
	LWLockMode mode = LW_SHARED;

	if (tq_count_shared == NULL)
		return;
	for (int i = 0; i < n && is_aborted && mode == LW_SHARED; i++)
		mode = HAS_ENTERED(&changes[i]) ? LW_EXCLUSIVE : LW_SHARED;
	tq_count_lock(mode);
	tq_room_release_locked(extension, changes, n, is_aborted);
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
			   ROWS(pg_atomic_read_u64(&queue->reserved[TQ_QUEUE_RUNNING])) -
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
tq_room_wake(Oid extension, const TqCountChange *changes, int n)
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

/* ---- windows ---- */

static int64
width_of(const TqRate *rate)
{
	return Max((rate->interval + PERIODS - 1) / PERIODS, 1);
}

/* Where a window has a period; the number of one before 2000 is negative. */
#define PERIOD_OF(window, number)                                             \
	(&(window)->periods[(uint64) (number) % (PERIODS + 1)])

/* Returns the period of a number, emptied if it was used for another one. */
static Period *
period_at(Window *window, int64 number)
{
	Period *period = PERIOD_OF(window, number);

	if (period->number != number)
		*period = (Period){.number = number};
	return period;
}

/* Uncounts claims of a period, unless it is over for long. */
static void
uncount(Window *window, int64 number, int n)
{
	Period *period = PERIOD_OF(window, number);

	if (period->number == number)
		period->claims = Max(period->claims - n, 0);
}

/*
 * Returns how many claims there were in the interval that ends now, or later,
 * as when the clock was set back a little.
 */
static int
claims_at(const Window *window, int64 now)
{
	int64 claims = 0;

	for (int i = 0; i <= PERIODS; i++)
	{
		const Period *period = &window->periods[i];

		if (period->number >= now - PERIODS && period->number <= now + PERIODS)
			claims += period->claims;
	}
	return (int) Min(claims, PG_INT32_MAX);
}

/*
 * Sets the width of the periods.  If the interval of the queue has changed, all
 * claims of the old one count as made now.
 */
static void
set_width(Window *window, int64 width, TimestampTz now)
{
	int claims = 0;

	if (window->width == width)
		return;
	if (window->width != 0)
		claims = claims_at(window, now / window->width);
	memset(window->periods, 0, sizeof(window->periods));
	window->width = width;
	period_at(window, now / width)->claims = claims;
}

/* Returns the window of a queue, or NULL.  The caller holds the lock. */
static Window *
find_window(const TqRate *rate)
{
	TqCountKey key = tq_count_key(rate->extension, rate->queue);

	return hash_search(windows, &key, HASH_FIND, NULL);
}

/*
 * Removes the windows of queues that had no claim for an interval, which are
 * like new ones; the lock is exclusive.
 */
static void
remove_idle_windows(TimestampTz now)
{
	HASH_SEQ_STATUS scan;
	Window *window;

	hash_seq_init(&scan, windows);
	while ((window = hash_seq_search(&scan)) != NULL)
	{
		if (window->width == 0 || claims_at(window, now / window->width) == 0)
			(void) hash_search(windows, &window->key, HASH_REMOVE, NULL);
	}
}

/* Makes the window of a queue, unless there is no room; the lock is exclusive. */
static void
enter_window(const TqRate *rate, TimestampTz now)
{
	TqCountKey key = tq_count_key(rate->extension, rate->queue);
	bool found;
	Window *window = hash_search(windows, &key, HASH_ENTER_NULL, &found);

	if (window == NULL)
	{
		remove_idle_windows(now);
		window = hash_search(windows, &key, HASH_ENTER_NULL, &found);
	}
	if (window == NULL || found)
		return;
	SpinLockInit(&window->lock);
	window->refused = 0;
	window->width = 0;
	memset(window->periods, 0, sizeof(window->periods));
}

/* Removes the window of a queue that is deleted; the lock is exclusive. */
void
tq_rate_remove_queue(const TqCountKey *key)
{
	(void) hash_search(windows, key, HASH_REMOVE, NULL);
}

/* Returns the window of a queue, and holds the lock in share mode. */
static Window *
lock_window(const TqRate *rate, TimestampTz now)
{
	Window *window;

	tq_count_lock(LW_SHARED);
	window = find_window(rate);
	if (window != NULL)
		return window;
	tq_count_unlock();
	tq_count_lock(LW_EXCLUSIVE);
	enter_window(rate, now);
	tq_count_unlock();
	tq_count_lock(LW_SHARED);
	return find_window(rate);
}

/* ---- claims within an interval ---- */

/*
 * Returns how many claims, up to max, are allowed at this time, and counts them
 * if they are made.  If it is less than max, sets *next to when there may be
 * more.  Returns TQ_RATE_NO_ROOM if there are too many queues with limits.
 */
int
tq_rate_take(const TqRate *rate, int max, bool are_made, TimestampTz now,
			 TimestampTz *next)
{
	Window *window = lock_window(rate, now);
	int n = TQ_RATE_NO_ROOM;

	if (window != NULL)
	{
		int64 number;

		SpinLockAcquire(&window->lock);
		set_width(window, width_of(rate), now);
		number = now / window->width;
		n = Min(max, rate->claims - claims_at(window, number));
		n = Max(n, 0);
		if (are_made && n > 0)
			period_at(window, number)->claims += n;
		if (n == 0)
			window->refused++;
		if (n < max)
		{
			int64 first = number + 1;

			/* When the first claims of the interval that ends now are over. */
			for (int i = 0; i <= PERIODS; i++)
			{
				const Period *period = &window->periods[i];

				if (period->claims > 0 && period->number >= number - PERIODS)
					first = Min(first, period->number);
			}
			*next = (first + PERIODS + 1) * window->width;
		}
		SpinLockRelease(&window->lock);
	}
	tq_count_unlock();
	return n;
}

/*
 * Of claims that were allowed at a time, counts n as made at a later time, and
 * uncounts the others.
 */
void
tq_rate_use(const TqRate *rate, int allowed, TimestampTz then, int n,
			TimestampTz now)
{
	Window *window = lock_window(rate, now);
	int refused = 0;

	if (window != NULL)
	{
		SpinLockAcquire(&window->lock);
		if (window->width == 0) /* new: it was removed meanwhile */
			set_width(window, width_of(rate), now);
		uncount(window, then / window->width, allowed);
		if (n > 0)
			period_at(window, now / window->width)->claims += n;
		refused = window->refused;
		window->refused = 0;
		SpinLockRelease(&window->lock);
	}
	tq_count_unlock();
	tq_wait_wake(rate->queue, Min(refused, allowed - n));
}

/* ---- claims before the start of the server ---- */

/* Returns whether the claims before the start of the server are counted. */
bool
tq_rates_are_loaded(Oid extension)
{
	const TqCountDatabase *database;
	bool loaded;

	tq_count_lock(LW_SHARED);
	database = tq_count_find_database();
	loaded = database != NULL && database->extension == extension &&
			 database->has_rates;
	tq_count_unlock();
	return loaded;
}

/* Removes the windows of a database. */
static void
remove_windows(Oid oid)
{
	HASH_SEQ_STATUS scan;
	Window *window;

	tq_count_lock(LW_EXCLUSIVE);
	hash_seq_init(&scan, windows);
	while ((window = hash_seq_search(&scan)) != NULL)
	{
		if (window->key.database == oid)
			(void) hash_search(windows, &window->key, HASH_REMOVE, NULL);
	}
	tq_count_unlock();
}

/* Removes the windows of this database, into which the claims are loaded. */
void
tq_rates_begin_load(Oid extension)
{
	remove_windows(MyDatabaseId);
}

/*
 * Removes counters and windows of a database, which was dropped, or of one
 * extension of it, which was.
 */
void
tq_limits_forget(Oid oid, Oid extension)
{
	if (tq_counts_forget(oid, extension))
		remove_windows(oid);
}

/* Counts a claim that was made before. */
void
tq_rate_load(const TqRate *rate, TimestampTz claimed)
{
	Window *window = lock_window(rate, tq_clock_now());

	if (window != NULL)
	{
		SpinLockAcquire(&window->lock);
		set_width(window, width_of(rate), claimed);
		if (period_at(window, claimed / window->width)->claims < PG_INT32_MAX)
			period_at(window, claimed / window->width)->claims++;
		SpinLockRelease(&window->lock);
	}
	tq_count_unlock();
}

/* Notes that all claims are loaded. */
void
tq_rates_end_load(Oid extension)
{
	TqCountDatabase *database;

	tq_count_lock(LW_EXCLUSIVE);
	database = tq_count_enter_database(extension);
	if (database != NULL)
		database->has_rates = true;
	tq_count_unlock();
}
