/*
 * counts.h
 *	  Counters of queues and groups in shared memory.
 */
#ifndef TQ_COUNTS_H
#define TQ_COUNTS_H

#include "datatype/timestamp.h"

#include "../util/xact_end.h"
#include "count_changes.h"
#include "count_entries.h"

/* How what a reader asked for was found. */
typedef enum TqCountSource
{
	TQ_COUNT_MEMORY,     /* the counters are exact */
	TQ_COUNT_REBUILDING, /* the gauges are being counted, or are about to be */
	TQ_COUNT_TABLES      /* there are no counters */
} TqCountSource;

/* The counters of a queue. */
typedef struct TqQueueCounts
{
	int32 queue;
	int64 counters[TQ_QUEUE_COUNTERS];
	int64 last_minute[TQ_RATES];
} TqQueueCounts;

extern const TqXactEnd tq_counts_xact_end;

extern void tq_counts_settle(void);
extern void tq_counts_apply_prepared(void);
extern TqCountSource tq_counts_source(const TqCountDatabase *database,
									  Oid extension, uint64 identity);
extern TqCountSource tq_counts_read_gauges(Oid extension, uint64 identity,
										   int32 queue, int64 *gauges);
extern TqCountSource tq_counts_read_queues(Oid extension, uint64 identity,
										   TqQueueCounts **queues, int *n);
extern int64 tq_counts_read_running(Oid extension);
extern bool tq_counts_read_group(Oid extension, uint64 identity, int64 id,
								 int64 *counters);
extern TimestampTz tq_counts_since(Oid extension);
extern void tq_counts_reset(Oid extension);

#endif /* TQ_COUNTS_H */
