/*
 * sweep_pass.h
 *	  Passes over all tasks that delete those whose retention is over, and old
 *	  dead letters.
 */
#ifndef TQ_SWEEP_PASS_H
#define TQ_SWEEP_PASS_H

#include "datatype/timestamp.h"

#include "../storage/timer_table.h"
#include "bisect.h"

extern int64 tq_sweep_batch(bool bisect, TqScanPosition *position,
							TimestampTz now, bool *more);
extern int64 tq_sweep_run(const TqWork *work);

/* Of the maintenance worker, which keeps its position in a pass. */
extern TqScanPosition tq_sweep_position(void);
extern bool tq_sweep_is_time(TimestampTz now);
extern TimestampTz tq_sweep_next_batch(void);

#endif /* TQ_SWEEP_PASS_H */
