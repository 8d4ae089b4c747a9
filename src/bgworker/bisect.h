/*
 * bisect.h
 *	  Keeps a step of maintenance going when it fails for some tasks.
 */
#ifndef TQ_BISECT_H
#define TQ_BISECT_H

#include "datatype/timestamp.h"

#include "../storage/pending_table.h"
#include "step.h"

/*
 * Rows of tq_internal.claim_timer or tq_internal.timer that are taken at once.
 */
#define TQ_TAKE_ROWS 100

/* Tasks for which a step is due. */
typedef struct TqWork
{
	TqStep step;
	const int64 *tasks;
	int n;
	const TqPending *
		rows; /* the rows of tq_internal.delayed, one for each task; else NULL */
	TimestampTz due; /* of the last timer that was taken */
	TimestampTz now;
	bool *more; /* set when tasks are left to another batch */
} TqWork;

/* Does a step for these tasks; returns how many it changed. */
typedef int64 (*TqRunStep)(const TqWork *work);

extern void tq_bisect_postpone(const TqWork *work, int task,
							   const ErrorData *error);
extern int64 tq_bisect(const TqWork *work, TqRunStep run);
extern int64 tq_bisect_retry(TqRunStep (*run_of)(TqStep step), TimestampTz now,
							 bool *more);

#endif /* TQ_BISECT_H */
