/*
 * timeouts.h
 *	  Timeouts of policies: runs that are running or pending for too long,
 *	  and alerts where a policy only alerts.
 */
#ifndef TQ_TIMEOUTS_H
#define TQ_TIMEOUTS_H

#include "datatype/timestamp.h"

#include "../storage/task_table.h"
#include "bisect.h"

extern int64 tq_timeout_total(const TqWork *work);
extern int64 tq_timeout_end(const TqWork *work);
extern int64 tq_timeout_inherited(const TqTask *tasks, int n, TimestampTz now);
extern int64 tq_timeout_cancel(const TqWork *work);

#endif /* TQ_TIMEOUTS_H */
