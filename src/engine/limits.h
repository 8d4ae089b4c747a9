/*
 * limits.h
 *	  Limits of queues: pause, running tasks, claims per interval, tasks that
 *	  wait.
 */
#ifndef TQ_LIMITS_H
#define TQ_LIMITS_H

#include "datatype/timestamp.h"

#include "../shmem/rate_window.h"
#include "../shmem/slots.h"
#include "../storage/task_table.h"
#include "pending_run.h"

/* What a claim may take of a queue. */
typedef struct TqAllowance
{
	int32 queue;
	int n;             /* at most so many runs */
	TimestampTz again; /* when there may be more, if no wake-up says so */
	int slots;         /* that were taken, to be used or given back */
	TqSlotRequest request;
	int claims; /* that were counted, the same */
	TqRate rate;
	TimestampTz at; /* when */
} TqAllowance;

extern bool tq_limits_take(int32 queue, int max, TimestampTz now,
						   TqAllowance *allowance);
extern void tq_limits_use(const TqAllowance *allowance, int n,
						  TimestampTz now);
extern bool tq_limits_allow(int32 queue, TimestampTz now, TimestampTz *again);
extern TimestampTz tq_limits_rate_until(int32 queue, TimestampTz now);
extern void tq_limits_check_creation(const TqTask *const *tasks, int n,
									 const TqStart *starts, int nstarts,
									 TimestampTz now);
extern void tq_limits_begin(int32 queue);

#endif /* TQ_LIMITS_H */
