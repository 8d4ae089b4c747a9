/*
 * counts.h
 *	  Counters of queues and groups in shared memory.
 */
#ifndef TQ_COUNTS_H
#define TQ_COUNTS_H

#include "datatype/timestamp.h"
#include "utils/snapshot.h"

#include "../util/xact_end.h"
#include "count_changes.h"
#include "shmem.h"

/* How what a reader asked for was found. */
typedef enum TqCountSource
{
	TQ_COUNT_MEMORY,     /* the counters are exact */
	TQ_COUNT_REBUILDING, /* the gauges are being counted, or are about to be */
	TQ_COUNT_TABLES      /* there are no counters */
} TqCountSource;

#define TQ_RATES 3 /* of created, claimed, and ended runs */

/* The counters of a queue. */
typedef struct TqQueueCounts
{
	int32 queue;
	int64 counters[TQ_QUEUE_COUNTERS];
	int64 last_minute[TQ_RATES];
} TqQueueCounts;

extern const TqShmemPart tq_counts_shmem;
extern const TqXactEnd tq_counts_xact_end;

extern void tq_counts_settle(void);
extern TqCountSource tq_counts_read_gauges(Oid extension, uint64 identity,
										   int32 queue, int64 *gauges);
extern TqCountSource tq_counts_read_queues(Oid extension, uint64 identity,
										   TqQueueCounts **queues, int *n);
extern bool tq_counts_read_group(Oid extension, uint64 identity, int64 id,
								 int64 *counters);
extern TimestampTz tq_counts_since(Oid extension);
extern void tq_counts_reset(Oid extension);
extern void tq_counts_forget_database(Oid oid);

/* Building the gauges, or the counters of a group. */
extern bool tq_counts_must_build(Oid extension, uint64 identity);
extern int64 tq_counts_group_to_build(Oid extension);
extern bool tq_counts_build_begin(Oid extension, uint64 identity,
								  TqCounted what, int64 id,
								  const TransactionId *prepared, int nprepared,
								  Snapshot *snapshot);
extern void tq_counts_build_set(int64 id, int counter, int64 value);
extern bool tq_counts_build_end(void);

#endif /* TQ_COUNTS_H */
