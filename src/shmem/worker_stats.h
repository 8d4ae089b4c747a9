/*
 * worker_stats.h
 *	  What a maintenance worker has done since it began.
 */
#ifndef TQ_WORKER_STATS_H
#define TQ_WORKER_STATS_H

#include "datatype/timestamp.h"

#include "shmem.h"

#define TQ_STATS_STEPS 15
#define TQ_STATS_CYCLES TQ_STATS_STEPS /* in place of a step */
#define TQ_STATS_ERROR 256             /* bytes kept of an error message */

/* A step, or the cycles; for tq.maintenance_activity(). */
typedef struct TqActivity
{
	int64 batches;
	int64 tasks;
	TimestampTz last_at; /* DT_NOBEGIN: never */
	int64 last_late;     /* microseconds */
	int64 max_late;
	TimestampTz max_late_at; /* DT_NOBEGIN: nothing was due */
	int64 failures;
	bool failing;          /* the last batch failed */
	TimestampTz failed_at; /* DT_NOBEGIN: never */
	char error[TQ_STATS_ERROR];
} TqActivity;

extern const TqShmemPart tq_stats_shmem;

extern void tq_stats_begin(int slot);
extern void tq_stats_count_batch(int step, uint64 tasks, TimestampTz now,
								 int64 late);
extern void tq_stats_count_failure(int step, TimestampTz now,
								   const char *error);
extern void tq_stats_step_succeeds(int step);
extern void tq_stats_read(int slot, int step, TqActivity *activity);

#endif /* TQ_WORKER_STATS_H */
