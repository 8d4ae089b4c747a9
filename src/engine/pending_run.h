/*
 * pending_run.h
 *	  Makes runs pending: at once or later, with the timers that they
 *	  need.
 */
#ifndef TQ_PENDING_RUN_H
#define TQ_PENDING_RUN_H

#include "datatype/timestamp.h"

#include "../core/policy.h"
#include "../storage/run_detail_table.h"
#include "../storage/run_table.h"
#include "../storage/task_table.h"

/* A run that is to become pending. */
typedef struct TqStart
{
	TqTask *task;
	TqCreated created;
	TimestampTz scheduled;
	TqRunDetail detail; /* written only if it differs from the policy */
	int64 seq;          /* 0: at the end of the queue */
	bool is_first;      /* the total timeout of the task starts */
	bool has_detail;    /* stored for this run already */
} TqStart;

extern void tq_run_fill(const TqRun *run, const TqPolicy *policy,
						TqRunDetail *detail);
extern void tq_run_detail(TqRun *run, int32 policy, TqRunDetail *detail);
extern void tq_pending_run_move(TqStart *start, const TqRun *run,
								TimestampTz now);
extern void tq_pending_runs_add(const TqStart *starts, int n, TimestampTz now);

#endif /* TQ_PENDING_RUN_H */
