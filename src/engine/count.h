/*
 * count.h
 *	  What the transitions of tasks change in the counters of their queues and
 *	  groups.
 */
#ifndef TQ_COUNT_H
#define TQ_COUNT_H

#include "datatype/timestamp.h"

#include "../storage/pending_table.h"
#include "../storage/run_table.h"
#include "../storage/task_table.h"

/* Where a task is counted. */
typedef struct TqCountOwner
{
	int32 queue;
	int64 group_id; /* 0: in no group, or in that of its own name */
} TqCountOwner;

extern TqCountOwner tq_count_owner(const TqTask *task);
extern void tq_count_created(const TqTask *task);
extern void tq_count_unscheduled(const TqTask *task);
extern void tq_count_scheduled(const TqTask *task);
extern void tq_count_start(const TqTask *task, bool is_delayed);
extern void tq_count_visible(const TqPending *run);
extern void tq_count_claim(TqCountOwner owner, TimestampTz claimable,
						   TimestampTz now);
extern void tq_count_deferred(const TqTask *task);
extern void tq_count_replaced(const TqTask *task, const TqRun *run);
extern void tq_count_end(TqCountOwner owner, const TqRun *run, int32 policy,
						 bool is_retried);
extern void tq_count_rerun(const TqTask *task, const TqRun *last);
extern void tq_count_moved(const TqTask *task, TqTaskLocation location,
						   int32 to);
extern void tq_count_reported(const TqTask *task);
extern void tq_count_deleted(const TqTask *task, const TqRun *last);

#endif /* TQ_COUNT_H */
