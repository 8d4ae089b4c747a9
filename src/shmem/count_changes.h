/*
 * count_changes.h
 *	  By how much the current transaction changes counters.
 */
#ifndef TQ_COUNT_CHANGES_H
#define TQ_COUNT_CHANGES_H

#include "../core/histogram.h"
#include "../core/types.h"

/* What has counters. */
typedef enum TqCounted
{
	TQ_COUNTED_QUEUE,
	TQ_COUNTED_GROUP,
	TQ_COUNTED_MARK /* nothing; divides the list of changes */
} TqCounted;

/*
 * The counters of a queue.  The first are gauges: how many rows there are.  The
 * others are totals: how often something has happened.
 */
enum
{
	TQ_QUEUE_UNSCHEDULED,
	TQ_QUEUE_DELAYED,
	TQ_QUEUE_PENDING,
	TQ_QUEUE_RUNNING,
	TQ_QUEUE_GAUGES,
	TQ_QUEUE_CREATED = TQ_QUEUE_GAUGES,
	TQ_QUEUE_CLAIMED,
	TQ_QUEUE_RETRIED,
	TQ_QUEUE_ENDED, /* runs, by reason */
	TQ_QUEUE_WAITED = TQ_QUEUE_ENDED + TQ_RESOLVED_LAST + 1, /* by bucket */
	TQ_QUEUE_RAN = TQ_QUEUE_WAITED + TQ_BUCKETS,             /* by bucket */
	TQ_QUEUE_COUNTERS = TQ_QUEUE_RAN + TQ_BUCKETS,
	/* Rows were changed by other statements than those of tq; for queue 0. */
	TQ_QUEUE_DOUBT = TQ_QUEUE_COUNTERS,
	TQ_QUEUE_GONE, /* the queue was deleted */
	/*
	 * Plus a gauge: rows for which this transaction has reserved room
	 * (slots.c); the end of the transaction gives it back.
	 */
	TQ_QUEUE_RESERVED
};

/*
 * The counters of a group, without the task of its own name: sums, then times,
 * of which the earliest or the latest is kept.
 */
enum
{
	TQ_GROUP_UNSCHEDULED,
	TQ_GROUP_DELAYED,
	TQ_GROUP_PENDING,
	TQ_GROUP_RUNNING,
	TQ_GROUP_COMPLETED,
	TQ_GROUP_FAILED,
	TQ_GROUP_EXCEPTION,
	TQ_GROUP_TOLERATED,
	TQ_GROUP_FORGIVEN,
	TQ_GROUP_REPORTED, /* runs that have reported progress, if only once */
	TQ_GROUP_SUMS,
	TQ_GROUP_FIRST_CREATED = TQ_GROUP_SUMS, /* earliest */
	TQ_GROUP_LAST_RESOLVED,                 /* latest */
	TQ_GROUP_FIRST_BAD,                     /* earliest */
	TQ_GROUP_COUNTERS,
	/*
	 * The end of a task counts no longer: LAST_RESOLVED (latest) and FIRST_BAD
	 * (earliest) of those.  GONE: tasks were deleted.  NEW: this transaction
	 * has inserted the row of the group, which had no other task.
	 */
	TQ_GROUP_UNDONE_RESOLVED = TQ_GROUP_COUNTERS,
	TQ_GROUP_UNDONE_BAD,
	TQ_GROUP_GONE,
	TQ_GROUP_NEW
};

#define TQ_COUNT_NO_TIME 0 /* in place of a time: there is none */

typedef struct TqCountChange
{
	int64 id; /* of the queue or group */
	int64 value;
	TqCounted what;
	int counter;
	SubTransactionId subid;
	int before; /* the change that had its place in the index, or -1 */
} TqCountChange;

extern void tq_count_merge(TqCounted what, int counter, int64 *value,
						   int64 by);
extern void tq_count_change(Oid extension, TqCounted what, int64 id,
							int counter, int64 value);
extern void tq_count_changes_make_room(void);
extern bool tq_count_changes_have_reserved(void);
extern int64 tq_count_changes_own(Oid extension, int32 queue, int counter);
extern const TqCountChange *tq_count_changes(int *n, Oid *extension);
extern bool tq_count_changes_abort(SubTransactionId id);
extern void tq_count_changes_subcommit(SubTransactionId id,
									   SubTransactionId parent);
extern void tq_count_changes_reset(void);

#endif /* TQ_COUNT_CHANGES_H */
