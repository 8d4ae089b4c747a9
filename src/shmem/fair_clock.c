/*
 * fair_clock.c
 *	  Virtual time: where a queue that is fair has got to, and each of its keys.
 *
 * This is start-time fair queueing (doc/spec/policy.md 11.4).  A run gets a tag
 * when it becomes pending, and claims take the lowest tag first.  The tag is the
 * later of two times, plus one turn divided by the weight of its key: the last
 * tag of its key, and the time of the queue and priority, which is the tag that
 * was claimed last.  So the tasks of a key are one turn apart, and those of two
 * keys lie between each other.  A key that comes later, or comes back, begins
 * one turn behind what is claimed now: it is neither behind the backlog of
 * others nor ahead of all of them, so that ever new keys do not hold up the old
 * ones.
 *
 * A tag in bits, from the highest: the turn, 10 bits of a turn, and a number of
 * 12 bits, by which keys that begin at the same time are in the order in which
 * they come.  After 4096 of these the next ones are a 1024th of a turn later.
 * Two tags may be equal all the same: tq_internal.pending does not take the
 * second, which then gets another (fair_position.c).
 *
 * Times and last tags are kept in shared memory, as many as there is room for;
 * those used least recently go.  What is not here is read from the table
 * (fair_position.c).  A last tag is also read again, at most once a second,
 * while it is ahead of the time: it may be that of a run that was cancelled, or
 * never committed.  So the numbers here are hints, as everything in shared
 * memory.
 *
 * Locks: those of lru_set.c, always in exclusive mode.  A tag depends on two
 * entries, a key's and the time of its queue and priority, so a backend may hold
 * two of them, taken in the order of their addresses, and nothing else.
 */
#include "postgres.h"

#include <math.h>

#include "common/hashfn.h"

#include "shmem.h"

#define NUMBER_BITS 12
#define TURN_BITS 10
#define NUMBERS (INT64CONST(1) << NUMBER_BITS)
#define SPAN (-(TQ_FAIR_FIRST + 1)) /* tags that there are */

#define LONGEST_STRIDE (INT64CONST(1) << 20)
#define CHECK_US 1000000 /* between two checks of a last tag */

#define SETS 1024
#define SET_SIZE 8

#define TIME_HASH 0 /* in place of that of a key */

StaticAssertDecl(TQ_FAIR_TURN == INT64CONST(1) << (NUMBER_BITS + TURN_BITS),
				 "a turn has that many tags");

/* The time of a queue and priority, or the last tag of a key there. */
typedef struct FairClockEntry
{
	TqLruEntry head;
	int64 at;            /* less TQ_FAIR_FIRST */
	int64 begun;         /* of a time: keys that began since it is this */
	int64 others;        /* of a time: numbers of other tags */
	TimestampTz checked; /* of a last tag */
} FairClockEntry;

static TqLruSets clocks = {.nsets = SETS,
						   .nentries = SET_SIZE,
						   .entry_size = sizeof(FairClockEntry)};

static Size
fair_clock_size(void)
{
	return tq_lru_size(&clocks);
}

static void
fair_clock_startup(void *memory, bool is_new, LWLockPadded *locks)
{
	tq_lru_attach(&clocks, memory, locks);
}

const TqShmemPart tq_fair_shmem = {.name = "tq fairness",
								   .tranche = "TqFairness",
								   .locks = TQ_LRU_LOCKS,
								   .size = fair_clock_size,
								   .startup = fair_clock_startup};

/* Returns whether there is shared memory for times. */
bool
tq_fair_is_kept(void)
{
	return clocks.memory != NULL;
}

/* Returns the hash of a key, which is that of no time. */
uint64
tq_fair_hash(const char *key)
{
	uint64 hash = hash_bytes_extended((const unsigned char *) key, strlen(key),
									  0);

	return hash == TIME_HASH ? TIME_HASH + 1 : hash;
}

/* ---- entries ---- */

static TqLruKey
fair_clock_key_of(const TqFairKey *key, uint64 hash)
{
	return tq_lru_key(&clocks, key->pending, key->queue, key->priority, hash);
}

/* Takes the locks of two keys, in an order that all sessions keep. */
static void
fair_clock_lock(const TqLruKey *a, const TqLruKey *b)
{
	LWLock *first = Min(tq_lru_lock(&clocks, a), tq_lru_lock(&clocks, b));
	LWLock *second = Max(tq_lru_lock(&clocks, a), tq_lru_lock(&clocks, b));

	LWLockAcquire(first, LW_EXCLUSIVE);
	if (second != first)
		LWLockAcquire(second, LW_EXCLUSIVE);
}

static void
fair_clock_unlock(const TqLruKey *a, const TqLruKey *b)
{
	LWLock *first = tq_lru_lock(&clocks, a);
	LWLock *second = tq_lru_lock(&clocks, b);

	LWLockRelease(first);
	if (second != first)
		LWLockRelease(second);
}

/* Locks the set of a key, and returns the entry of the key, or NULL. */
static FairClockEntry *
fair_clock_lock_entry(const TqLruKey *key)
{
	LWLockAcquire(tq_lru_lock(&clocks, key), LW_EXCLUSIVE);
	return tq_lru_find(&clocks, key);
}

/* ---- tags ---- */

/* Returns the tag that follows, as a distance from TQ_FAIR_FIRST. */
static int64
fair_clock_next_at(const FairClockEntry *last, FairClockEntry *time,
				   int64 stride)
{
	int64 begin = Max(last->at, time->at) / NUMBERS * NUMBERS + stride;
	int64 number;

	if (last->at > time->at)
		return begin + time->others++ % NUMBERS;
	number = time->begun++;
	return begin + number / NUMBERS * NUMBERS + number % NUMBERS;
}

/*
 * Takes the next tag of a key, which follows the tag `after`, unless that is 0.
 * If it says that the time or the last tag is not known, or that the latter is
 * to be checked, the caller sets it first.
 */
TqFair
tq_fair_take(const TqFairKey *key, double weight, TimestampTz now, int64 after,
			 int64 *tag)
{
	TqLruKey time_key = fair_clock_key_of(key, TIME_HASH);
	TqLruKey last_key = fair_clock_key_of(key, key->hash);
	/* The distance of two tags of a key of that weight. */
	double blocks = rint((1 << TURN_BITS) / weight);
	int64 stride = (int64) Max(1, Min(blocks, LONGEST_STRIDE)) * NUMBERS;
	TqFair result = TQ_FAIR_TAKEN;
	FairClockEntry *time;
	FairClockEntry *last;

	fair_clock_lock(&last_key, &time_key);
	time = tq_lru_find(&clocks, &time_key);
	last = tq_lru_find(&clocks, &last_key);
	if (time == NULL)
		result = TQ_FAIR_NO_TIME;
	else if (last == NULL ||
			 (last->at > time->at + stride && now - last->checked > CHECK_US))
		result = TQ_FAIR_NO_LAST;
	else
	{
		int64 at;

		if (after != 0)
			last->at = Max(last->at, after - TQ_FAIR_FIRST);
		at = fair_clock_next_at(last, time, stride);
		if (at >= SPAN - TQ_FAIR_TURN)
			result = TQ_FAIR_NO_ROOM;
		else
			last->at = at;
		*tag = TQ_FAIR_FIRST + at;
	}
	fair_clock_unlock(&last_key, &time_key);
	return result;
}

/*
 * Returns a tag in place of one that another run has; `tries` is how often that
 * was so before.
 */
int64
tq_fair_take_other(const TqFairKey *key, int64 tag, int tries)
{
	TqLruKey last_key = fair_clock_key_of(key, key->hash);
	FairClockEntry *last = fair_clock_lock_entry(&last_key);

	tag += (INT64CONST(2) << Min(tries, 30)) - 1;
	if (last != NULL)
		last->at = Max(last->at, tag - TQ_FAIR_FIRST);
	LWLockRelease(tq_lru_lock(&clocks, &last_key));
	return tag;
}

/*
 * Notes that a tag is claimed, or the first one there is: the time of a queue
 * and priority does not go back.
 */
void
tq_fair_set_time(const TqFairKey *key, int64 tag)
{
	TqLruKey time_key = fair_clock_key_of(key, TIME_HASH);
	int64 at = tag - TQ_FAIR_FIRST;
	FairClockEntry *time;

	if (!tq_fair_is_kept())
		return;
	time = fair_clock_lock_entry(&time_key);
	if (time == NULL)
		time = tq_lru_make(&clocks, &time_key);
	if (at / NUMBERS > time->at / NUMBERS)
		time->begun = 0;
	time->at = Max(time->at, at);
	LWLockRelease(tq_lru_lock(&clocks, &time_key));
}

/* Returns the last tag of a key; 0 if it is not known. */
int64
tq_fair_last(const TqFairKey *key)
{
	TqLruKey last_key = fair_clock_key_of(key, key->hash);
	FairClockEntry *last = fair_clock_lock_entry(&last_key);
	int64 tag = 0;

	if (last != NULL)
		tag = last->at + TQ_FAIR_FIRST;
	LWLockRelease(tq_lru_lock(&clocks, &last_key));
	return tag;
}

/* Sets the last tag of a key to that which a row has; 0: none has one. */
void
tq_fair_set_last(const TqFairKey *key, int64 tag, TimestampTz now)
{
	TqLruKey last_key = fair_clock_key_of(key, key->hash);
	FairClockEntry *last = fair_clock_lock_entry(&last_key);

	if (last == NULL)
		last = tq_lru_make(&clocks, &last_key);
	last->at = tag == 0 ? 0 : tag - TQ_FAIR_FIRST;
	last->checked = now;
	LWLockRelease(tq_lru_lock(&clocks, &last_key));
}
