/*
 * expired_claims.c
 *	  How many claims have expired within the last hour.
 *
 * Each slot of a maintenance worker has a ring of sixty counters, one for each
 * minute.  Its maintenance worker writes them, and any session adds them up, so
 * that tq.health() reads no table of runs.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "shmem.h"

#define MINUTES 60

/* Claims that expired in a minute, which is counted from 2000. */
typedef struct Minute
{
	int64 minute;
	int64 claims;
} Minute;

/* The counters of a slot; the lock protects the others. */
typedef struct Ring
{
	slock_t mutex;
	Minute minutes[MINUTES]; /* by minute modulo MINUTES */
} Ring;

static Ring *shared = NULL;

static Size
size(void)
{
	return mul_size(max_worker_processes, sizeof(Ring));
}

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	shared = memory;
	for (int i = 0; is_new && i < max_worker_processes; i++)
		SpinLockInit(&shared[i].mutex);
}

const TqShmemPart tq_expired_shmem = {.name = "tq expired claims",
									  .size = size,
									  .startup = startup};

/* Begins to count for the maintenance worker that attaches to a slot. */
void
tq_expired_begin(int slot)
{
	Ring *ring = &shared[slot];

	SpinLockAcquire(&ring->mutex);
	memset(ring->minutes, 0, sizeof(ring->minutes));
	SpinLockRelease(&ring->mutex);
}

/* Counts claims that have expired; called by the slot's maintenance worker. */
void
tq_expired_count(int slot, int64 claims, TimestampTz now)
{
	Ring *ring = &shared[slot];
	int64 minute = now / USECS_PER_MINUTE;
	Minute *place = &ring->minutes[(uint64) minute % MINUTES];

	SpinLockAcquire(&ring->mutex);
	if (place->minute != minute)
		*place = (Minute){.minute = minute};
	place->claims += claims;
	SpinLockRelease(&ring->mutex);
}

/*
 * Returns how many claims the maintenance worker of a slot has counted in the
 * last sixty minutes, the present one included.
 */
int64
tq_expired_last_hour(int slot, TimestampTz now)
{
	Ring *ring = &shared[slot];
	int64 minute = now / USECS_PER_MINUTE;
	int64 claims = 0;

	SpinLockAcquire(&ring->mutex);
	for (int i = 0; i < MINUTES; i++)
	{
		const Minute *place = &ring->minutes[i];

		if (place->minute > minute - MINUTES && place->minute <= minute)
			claims += place->claims;
	}
	SpinLockRelease(&ring->mutex);
	return claims;
}
