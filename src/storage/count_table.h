/*
 * count_table.h
 *	  Counts of rows, and the counters that spare them.
 */
#ifndef TQ_COUNT_TABLE_H
#define TQ_COUNT_TABLE_H

#include "datatype/timestamp.h"
#include "utils/snapshot.h"

#include "../shmem/counts.h"

extern uint64 tq_count_identity(void);

/* The gauges of a queue that were counted, less what time has ended. */
typedef struct TqGauges
{
	int32 queue;
	int64 gauges[TQ_QUEUE_GAUGES];
} TqGauges;

extern int64 tq_count_pending(int32 queue, TimestampTz now);
extern int64 tq_count_claimed(int32 queue, TimestampTz now);
extern TqGauges *tq_count_rows(int *n);
extern TqGauges *tq_count_ended(TimestampTz now, int *n);
extern bool tq_count_build_gauges(void);
extern int64 tq_count_running(void);
extern bool tq_count_read_group(int64 id, int64 *counters);
extern bool tq_count_group_begin(int64 id, Snapshot *snapshot);

#endif /* TQ_COUNT_TABLE_H */
