/*
 * worker_activity.h
 *	  What workers have done since it was last stored in their rows.
 */
#ifndef TQ_WORKER_ACTIVITY_H
#define TQ_WORKER_ACTIVITY_H

#include "datatype/timestamp.h"

#include "shmem.h"

/* How many claims of a worker are shown. */
#define TQ_RECENT_MAX 20

/* A claim, by the internal id of its task. */
typedef struct TqRecentClaim
{
	int64 task;
	int32 run_id;
} TqRecentClaim;

/* The last claims of a worker, oldest first, and when it was last seen. */
typedef struct TqWorkerActivity
{
	TimestampTz seen; /* 0: not known here */
	int n;
	TqRecentClaim claims[TQ_RECENT_MAX];
} TqWorkerActivity;

extern const TqShmemPart tq_activity_shmem;

extern void tq_activity_forget(Oid table, int32 worker);
extern void tq_activity_note(Oid table, int32 worker, TimestampTz seen,
							 const TqRecentClaim *claims, int n);
extern void tq_activity_read(Oid table, int32 worker,
							 TqWorkerActivity *activity);

#endif /* TQ_WORKER_ACTIVITY_H */
