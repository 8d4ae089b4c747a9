/*
 * expiry.h
 *	  Deletes what has expired: tasks, groups, artifacts, and the state of
 *	  queues and workers.
 */
#ifndef TQ_EXPIRY_H
#define TQ_EXPIRY_H

#include "datatype/timestamp.h"

#include "../storage/task_table.h"
#include "bisect.h"

extern void tq_expiry_watch(const TqTask *tasks, int n);
extern int64 tq_expiry_tasks(const TqWork *work);
extern void tq_expiry_sweep(TimestampTz now);

#endif /* TQ_EXPIRY_H */
