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
	bool by_retention;  /* those whose retention is over; then the next: */
	int64 shortest_ms;  /* the shortest retention of any task */
	TimestampTz ended;  /* those whose messages the log has no more */
	int32 queue;        /* else those of this queue, */
	bool of[TQ_STATES]; /* in these states, */
	TimestampTz before; /* resolved before */
} TqSweepRule;

extern TqSweepRule tq_sweep_by_retention(TimestampTz now);
extern int tq_sweep_some(const TqSweepRule *rule, int max, TimestampTz now,
						 int64 *after, bool *more);

#endif /* TQ_SWEEP_H */
