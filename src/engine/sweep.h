/*
 * sweep.h
 *	  Deletes resolved tasks that are no longer needed: by retention, or by a
 *	  purge.
 */
#ifndef TQ_SWEEP_H
#define TQ_SWEEP_H

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "../storage/task_table.h"

/* Which resolved tasks a sweep deletes. */
typedef struct TqSweepRule
{
	bool by_retention;  /* those whose retention is over; then: */
	int64 shortest_ms;  /* the shortest retention of any task */
	TimestampTz ended;  /* only those whose messages are not kept any more */
	int32 queue;        /* else: those of this queue, */
	bool of[TQ_STATES]; /* in these states, */
	TimestampTz until;  /* resolved until then */
} TqSweepRule;

extern TqSweepRule tq_sweep_by_retention(TimestampTz now);
extern TqTask *tq_sweep_find(const TqSweepRule *rule, int max, TimestampTz now,
							 int64 *after, int *found, bool *more);
extern int tq_sweep_delete(const TqSweepRule *rule, TqTask *tasks, int n,
						   TimestampTz now);
extern int tq_sweep_delete_ids(const TqSweepRule *rule, const int64 *ids,
							   int n, TimestampTz now);
extern int64 tq_sweep_all(const TqSweepRule *rule, int max, TimestampTz now);

#endif /* TQ_SWEEP_H */
