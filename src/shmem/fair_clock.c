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
 * Locks ----- Each bucket has one of LOCKS locks, which protects all of it, and
 * is always taken in exclusive mode, because each use of an entry moves the
 * bucket's clock. A tag depends on two entries, a key's and the time of its
 * queue and priority, so a backend may hold two of these locks, taken in the
 * order of their numbers, and nothing else.
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

#define BUCKETS 1024
#define BUCKET_SIZE 8
#define LOCKS 64

#define TIME_HASH 0 /* in place of that of a key */

StaticAssertDecl(TQ_FAIR_TURN == INT64CONST(1) << (NUMBER_BITS + TURN_BITS),
				 "a turn has that many tags");

/* The time of a queue and priority, or the last tag of a key there. */
typedef struct FairClockEntry
{
	Oid database; /* InvalidOid: the entry is free */
	uint32 used;  /* the bucket's clock at the last use */
	TqFairKey key;
	int64 at;            /* less TQ_FAIR_FIRST */
	int64 begun;         /* of a time: keys that began since it is this */
	int64 others;        /* of a time: numbers of other tags */
	TimestampTz checked; /* of a last tag */
} FairClockEntry;

typedef struct FairClockBucket
{
	uint32 clock;
	FairClockEntry entries[BUCKET_SIZE];
} FairClockBucket;

typedef struct FairClockShared
{
	LWLockPadded *locks;
	FairClockBucket buckets[BUCKETS];
} FairClockShared;

static FairClockShared *shared = NULL;

static Size
fair_clock_size(void)
{
	return sizeof(FairClockShared);
}

static void
fair_clock_startup(void *memory, bool is_new, LWLockPadded *locks)
{
	shared = memory;
	if (is_new)
		shared->locks = locks;
}

const TqShmemPart tq_fair_shmem = {.name = "tq fairness",
								   .tranche = "TqFairness",
								   .locks = LOCKS,
								   .size = fair_clock_size,
								   .startup = fair_clock_startup};

/* Returns whether there is shared memory for times. */
bool
tq_fair_is_kept(void)
{
	return shared != NULL;
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

static TqFairKey
fair_clock_time_of(const TqFairKey *key)
{
	TqFairKey time = *key;

	time.hash = TIME_HASH;
	return time;
}

static uint32
fair_clock_bucket_of(const TqFairKey *key)
{
	uint32 hash = hash_combine(murmurhash32(MyDatabaseId ^ key->pending),
							   murmurhash32((uint32) key->queue * 8 +
											(uint32) key->priority));

	hash = hash_combine(hash, murmurhash32((uint32) key->hash));
	return hash_combine(hash, murmurhash32((uint32) (key->hash >> 32))) %
		   BUCKETS;
}

static int
lock_number(const TqFairKey *key)
{
	return (int) (fair_clock_bucket_of(key) % LOCKS);
}

/* Takes the locks of two keys, in an order that all sessions keep. */
static void
fair_clock_lock(const TqFairKey *a, const TqFairKey *b)
{
	int first = Min(lock_number(a), lock_number(b));
	int second = Max(lock_number(a), lock_number(b));

	LWLockAcquire(&shared->locks[first].lock, LW_EXCLUSIVE);
	if (second != first)
		LWLockAcquire(&shared->locks[second].lock, LW_EXCLUSIVE);
}

static void
fair_clock_unlock(const TqFairKey *a, const TqFairKey *b)
{
	LWLockRelease(&shared->locks[lock_number(a)].lock);
	if (lock_number(b) != lock_number(a))
		LWLockRelease(&shared->locks[lock_number(b)].lock);
}

/* Returns the entry of a key, or NULL.  The caller holds its lock. */
static FairClockEntry *
fair_clock_find(const TqFairKey *key)
{
	FairClockBucket *bucket = &shared->buckets[fair_clock_bucket_of(key)];

	for (int i = 0; i < BUCKET_SIZE; i++)
	{
		FairClockEntry *entry = &bucket->entries[i];

		if (entry->key.hash == key->hash && entry->key.queue == key->queue &&
			entry->key.priority == key->priority &&
			entry->key.pending == key->pending &&
			entry->database == MyDatabaseId)
		{
			entry->used = ++bucket->clock;
			return entry;
		}
	}
	return NULL;
}

/* Makes the entry of a key, in place of the one used least recently. */
static FairClockEntry *
make(const TqFairKey *key)
{
	FairClockBucket *bucket = &shared->buckets[fair_clock_bucket_of(key)];
	FairClockEntry *oldest = &bucket->entries[0];

	for (int i = 0; i < BUCKET_SIZE; i++)
	{
		FairClockEntry *entry = &bucket->entries[i];

		if (entry->database == InvalidOid)
		{
			oldest = entry;
			break;
		}
		if (bucket->clock - entry->used > bucket->clock - oldest->used)
			oldest = entry;
	}
	*oldest = (FairClockEntry){.database = MyDatabaseId,
							   .used = ++bucket->clock,
							   .key = *key};
	return oldest;
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
	TqFairKey time_key = fair_clock_time_of(key);
	/* The distance of two tags of a key of that weight. */
	double blocks = rint((1 << TURN_BITS) / weight);
	int64 stride = (int64) Max(1, Min(blocks, LONGEST_STRIDE)) * NUMBERS;
	TqFair result = TQ_FAIR_TAKEN;
	FairClockEntry *time;
	FairClockEntry *last;

	fair_clock_lock(key, &time_key);
	time = fair_clock_find(&time_key);
	last = fair_clock_find(key);
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
	fair_clock_unlock(key, &time_key);
	return result;
}

/*
 * Returns a tag in place of one that another run has; `tries` is how often that
 * was so before.
 */
int64
tq_fair_take_other(const TqFairKey *key, int64 tag, int tries)
{
	FairClockEntry *last;

	tag += (INT64CONST(2) << Min(tries, 30)) - 1;
	fair_clock_lock(key, key);
	last = fair_clock_find(key);
	if (last != NULL)
		last->at = Max(last->at, tag - TQ_FAIR_FIRST);
	fair_clock_unlock(key, key);
	return tag;
}

/*
 * Notes that a tag is claimed, or the first one there is: the time of a queue
 * and priority does not go back.
 */
void
tq_fair_set_time(const TqFairKey *key, int64 tag)
{
	TqFairKey time_key = fair_clock_time_of(key);
	int64 at = tag - TQ_FAIR_FIRST;
	FairClockEntry *time;

	if (shared == NULL)
		return;
	fair_clock_lock(&time_key, &time_key);
	time = fair_clock_find(&time_key);
	if (time == NULL)
		time = make(&time_key);
	if (at / NUMBERS > time->at / NUMBERS)
		time->begun = 0;
	time->at = Max(time->at, at);
	fair_clock_unlock(&time_key, &time_key);
}

/* Returns the last tag of a key; 0 if it is not known. */
int64
tq_fair_last(const TqFairKey *key)
{
	FairClockEntry *last;
	int64 tag = 0;

	fair_clock_lock(key, key);
	last = fair_clock_find(key);
	if (last != NULL)
		tag = last->at + TQ_FAIR_FIRST;
	fair_clock_unlock(key, key);
	return tag;
}

/* Sets the last tag of a key to that which a row has; 0: none has one. */
void
tq_fair_set_last(const TqFairKey *key, int64 tag, TimestampTz now)
{
	FairClockEntry *last;

	fair_clock_lock(key, key);
	last = fair_clock_find(key);
	if (last == NULL)
		last = make(key);
	last->at = tag == 0 ? 0 : tag - TQ_FAIR_FIRST;
	last->checked = now;
	fair_clock_unlock(key, key);
}
