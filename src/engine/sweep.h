/*
 * sweep.h
 *	  Deletes resolved tasks that are no longer needed: by retention, or by a
 *	  purge.
 */
#ifndef TQ_SWEEP_H
#define TQ_SWEEP_H

#include "datatype/timestamp.h"

#include "../core/types.h"

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
extern int tq_sweep_some(const TqSweepRule *rule, int max, TimestampTz now,
						 int64 *after, bool *more);
extern int64 tq_sweep_all(const TqSweepRule *rule, int max, TimestampTz now);

#endif /* TQ_SWEEP_H */
