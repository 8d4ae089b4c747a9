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
 * TQ_SCAN_BEGIN or that of the step for the first batch of a pass; each batch
 * moves it on.  With `bisect`, tasks for which the step fails do not fail the
 * batch.
 */
extern void tq_maintenance_step(TqStep step, bool bisect,
								TqScanPosition *position, TqBatch *batch);

/* The marks that the maintenance worker keeps from cycle to cycle. */
extern void tq_maintenance_positions_begin(TqScanPositions *positions);
extern TqScanPosition
tq_maintenance_position(TqStep step, const TqScanPositions *positions);
extern void tq_maintenance_timer_added(TqScanPositions *positions,
									   TimestampTz due);

/* Returns when the next row behind the marks is due, or DT_NOEND. */
extern TimestampTz tq_maintenance_count_due(TimestampTz now);
extern TimestampTz tq_maintenance_next_due(TqScanPositions *positions);

#endif /* TQ_MAINTENANCE_H */
