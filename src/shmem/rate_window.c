/*
 * rate_window.c
 *	  How many claims of a queue there were within an interval.
 *
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
 * table, together with the rows for the gauges (count_build.c); nothing is
 * handed out before.
 *
 * The lock of the counters protects the table of windows; each window has a lock
 * of its own.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/hsearch.h"

#include "../util/util.h"
#include "shmem.h"

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
tables(void)
{
	return hash_estimate_size(entries(), sizeof(Window));
}

static Size
size(void)
{
	return sizeof(int);
}

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	HASHCTL control = {.keysize = sizeof(TqCountKey),
					   .entrysize = sizeof(Window)};

	windows = ShmemInitHash("tq rate windows", entries(), entries(), &control,
							HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
}

const TqShmemPart tq_rate_shmem = {.name = "tq rates",
								   .size = size,
								   .tables = tables,
								   .startup = startup};

/* ---- windows ---- */

static int64
width_of(const TqRate *rate)
{
	return Max((rate->interval + PERIODS - 1) / PERIODS, 1);
}

/* Returns the period of a number, emptied if it was used for another one. */
static Period *
period_at(Window *window, int64 number)
{
	Period *period = &window->periods[number % (PERIODS + 1)];

	if (period->number != number)
		*period = (Period){.number = number};
	return period;
}

/* Uncounts claims of a period, unless it is over for long. */
static void
uncount(Window *window, int64 number, int n)
{
	Period *period = &window->periods[number % (PERIODS + 1)];

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

/* Returns when the first claims of the interval that ends now are over. */
static TimestampTz
next_at(const Window *window, int64 now)
{
	int64 first = now + 1;

	for (int i = 0; i <= PERIODS; i++)
	{
		const Period *period = &window->periods[i];

		if (period->claims > 0 && period->number >= now - PERIODS)
			first = Min(first, period->number);
	}
	return (first + PERIODS + 1) * window->width;
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

/* Makes the window of a queue; the lock is exclusive.  NULL: there is no room. */
static Window *
enter_window(const TqRate *rate)
{
	TqCountKey key = tq_count_key(rate->extension, rate->queue);
	bool found;
	Window *window = hash_search(windows, &key, HASH_ENTER_NULL, &found);

	if (window == NULL || found)
		return window;
	SpinLockInit(&window->lock);
	window->refused = 0;
	window->width = 0;
	memset(window->periods, 0, sizeof(window->periods));
	return window;
}

/* Returns the window of a queue, and holds the lock in share mode. */
static Window *
lock_window(const TqRate *rate)
{
	Window *window;

	tq_count_lock(LW_SHARED);
	window = find_window(rate);
	if (window != NULL)
		return window;
	tq_count_unlock();
	tq_count_lock(LW_EXCLUSIVE);
	(void) enter_window(rate);
	tq_count_unlock();
	tq_count_lock(LW_SHARED);
	return find_window(rate);
}

/* ---- claims ---- */

/* Returns how many claims are allowed, and counts them if they are made. */
static int
allow(const TqRate *rate, int max, bool are_made, TimestampTz now,
	  TimestampTz *next)
{
	Window *window = lock_window(rate);
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
			*next = next_at(window, number);
		SpinLockRelease(&window->lock);
	}
	tq_count_unlock();
	return n;
}

/*
 * Counts up to max claims at this time; returns how many are allowed.  If it is
 * less than max, sets *next to when there may be more.  Returns TQ_RATE_NO_ROOM
 * if there are too many queues with limits.
 */
int
tq_rate_take(const TqRate *rate, int max, TimestampTz now, TimestampTz *next)
{
	return allow(rate, max, true, now, next);
}

/* Returns how many claims, up to one, would be allowed, and counts none. */
int
tq_rate_look(const TqRate *rate, TimestampTz now, TimestampTz *next)
{
	return allow(rate, 1, false, now, next);
}

/*
 * Of claims that were allowed at a time, counts n as made at a later time, and
 * uncounts the others.
 */
void
tq_rate_use(const TqRate *rate, int allowed, TimestampTz then, int n,
			TimestampTz now)
{
	Window *window;
	int refused = 0;

	tq_count_lock(LW_SHARED);
	window = find_window(rate);
	if (window != NULL)
	{
		SpinLockAcquire(&window->lock);
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

/* ---- after a start of the server ---- */

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

/* Removes the windows of this database, into which the claims are loaded. */
void
tq_rates_begin_load(Oid extension)
{
	HASH_SEQ_STATUS scan;
	Window *window;

	tq_count_lock(LW_EXCLUSIVE);
	hash_seq_init(&scan, windows);
	while ((window = hash_seq_search(&scan)) != NULL)
	{
		if (window->key.database == MyDatabaseId)
			(void) hash_search(windows, &window->key, HASH_REMOVE, NULL);
	}
	tq_count_unlock();
}

/* Counts a claim that was made before. */
void
tq_rate_load(const TqRate *rate, TimestampTz claimed)
{
	Window *window = lock_window(rate);

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
