/*
 * maintenance.h
 *	  The steps of maintenance: publication, deadlines, timeouts, expired
 *	  claims, delayed runs, expiry.
 */
#ifndef TQ_MAINTENANCE_H
#define TQ_MAINTENANCE_H

#include "datatype/timestamp.h"

#include "../storage/timer_table.h"
#include "step.h"

/* Result of a batch. */
typedef struct TqBatch
{
	int64
		tasks; /* changed; or messages published, or segments of the log emptied */
	bool more;         /* there may be more that is due at once */
	TimestampTz since; /* when the first of the tasks was due, or DT_NOEND */
} TqBatch;

/*
 * Does one bounded batch of a step in the caller's transaction.  *mark is
 * TQ_MARK_BEGIN or that of the step for the first batch of a pass; each batch
 * moves it on.  With `bisect`, tasks for which the step fails do not fail the
 * batch.
 */
extern void tq_upkeep_step(TqStep step, bool bisect, TqMark *mark,
						   TqBatch *batch);

/* The marks that the maintenance worker keeps from cycle to cycle. */
extern void tq_upkeep_marks_begin(TqMarks *marks);
extern TqMark tq_upkeep_mark(TqStep step, const TqMarks *marks);
extern void tq_upkeep_noted(TqMarks *marks, TimestampTz due);

/* Returns when the next row behind the marks is due, or DT_NOEND. */
extern TimestampTz tq_upkeep_next_due(TqMarks *marks);

#endif /* TQ_MAINTENANCE_H */
