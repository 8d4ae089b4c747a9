/*
 * pending_run.h
 *	  Makes runs pending: at once or later, with the timers that they
 *	  need.
 */
#ifndef TQ_PENDING_RUN_H
#define TQ_PENDING_RUN_H

#include "datatype/timestamp.h"

#include "../core/policy.h"
#include "../core/types.h"
#include "../storage/run_table.h"
#include "../storage/task_table.h"

/* A run that is to become pending. */
typedef struct TqStart
{
	const TqTask *task;
	TqCreated created;
	TqBudget budget;
	int64 seq; /* 0: at the end of the queue */
	TimestampTz scheduled;
	int64 retry_delay;   /* given by a worker; TQ_OFF: none */
	TimestampTz started; /* of a deferred run: when it first started */
	int worker;          /* of a deferred run: which worker had it */
} TqStart;

extern void tq_run_fill(TqRun *run, const TqPolicy *policy);
extern void tq_pending_runs_add(const TqStart *starts, int n, TimestampTz now);
extern void tq_pending_runs_add_total_timeout(TqTask *const *tasks, int n,
											  TimestampTz now);
extern void tq_pending_runs_add_first(TqTask *const *tasks, bool at_creation,
									  int n, TimestampTz now);

#endif /* TQ_PENDING_RUN_H */
