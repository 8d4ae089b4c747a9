/*
 * worker_stats.c
 *	  What a maintenance worker has done since it began.
 *
 * Each slot of a maintenance worker has counters of its cycles and of each
 * step.  Its maintenance worker writes them, and any session reads them.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "shmem.h"

/* The counters of a slot; the lock protects the others. */
typedef struct Stats
{
	slock_t mutex;
	TqActivity steps[TQ_STATS_STEPS + 1]; /* by step, or TQ_STATS_CYCLES */
} Stats;

static Stats *shared = NULL;

/* Those of this maintenance worker. */
static Stats *mine = NULL;

static Size
size(void)
{
	return mul_size(max_worker_processes, sizeof(Stats));
}

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	shared = memory;
	for (int i = 0; is_new && i < max_worker_processes; i++)
		SpinLockInit(&shared[i].mutex);
}

const TqShmemPart tq_stats_shmem = {.name = "tq worker stats",
									.size = size,
									.startup = startup};

/* Begins to count for the maintenance worker that attaches to a slot. */
void
tq_stats_begin(int slot)
{
	const TqActivity none = {.last_at = DT_NOBEGIN,
							 .max_late_at = DT_NOBEGIN,
							 .failed_at = DT_NOBEGIN};

	mine = &shared[slot];
	SpinLockAcquire(&mine->mutex);
	for (int step = 0; step < lengthof(mine->steps); step++)
		mine->steps[step] = none;
	SpinLockRelease(&mine->mutex);
}

static void
count_lateness(TqActivity *activity, TimestampTz now, int64 late)
{
	activity->last_late = late;
	if (activity->max_late_at != DT_NOBEGIN && late <= activity->max_late)
		return;
	activity->max_late = late;
	activity->max_late_at = now;
}

/*
 * Counts a committed batch of a step, or a cycle.  `late` is how many
 * microseconds its first task was late, or -1 if that is unknown.
 */
void
tq_stats_count_batch(int step, uint64 tasks, TimestampTz now, int64 late)
{
	TqActivity *activity = &mine->steps[step];

	SpinLockAcquire(&mine->mutex);
	activity->batches++;
	activity->tasks += tasks;
	activity->last_at = now;
	if (late >= 0)
		count_lateness(activity, now, late);
	SpinLockRelease(&mine->mutex);
}

/* Counts a batch of a step that failed and was rolled back. */
void
tq_stats_count_failure(int step, TimestampTz now, const char *error)
{
	TqActivity *activity = &mine->steps[step];
	int length = pg_mbcliplen(error, strlen(error), TQ_STATS_ERROR - 1);

	SpinLockAcquire(&mine->mutex);
	activity->failures++;
	activity->failed_at = now;
	activity->failing = true;
	memcpy(activity->error, error, length);
	activity->error[length] = '\0';
	SpinLockRelease(&mine->mutex);
}

/* Records that a step no longer fails. */
void
tq_stats_step_succeeds(int step)
{
	SpinLockAcquire(&mine->mutex);
	mine->steps[step].failing = false;
	SpinLockRelease(&mine->mutex);
}

/* Copies what the maintenance worker of a slot has counted. */
void
tq_stats_read(int slot, int step, TqActivity *activity)
{
	Stats *stats = &shared[slot];

	SpinLockAcquire(&stats->mutex);
	*activity = stats->steps[step];
	SpinLockRelease(&stats->mutex);
}
