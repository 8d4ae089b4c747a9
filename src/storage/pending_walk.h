/*
 * pending_walk.h
 *	  Looks at the pending runs of a queue from the front.
 */
#ifndef TQ_PENDING_WALK_H
#define TQ_PENDING_WALK_H

#include "datatype/timestamp.h"

/* A pending run. */
typedef struct TqWaiting
{
	int64 task;
	int64 seq;
	int priority;
	int own_priority;  /* of its task */
	TimestampTz since; /* when it became claimable */
} TqWaiting;

/* Returns whether to go on. */
typedef bool TqVisit(const TqWaiting *run, void *arg);

extern void tq_pending_walk(int32 queue, int priority, int64 from,
							TqVisit *visit, void *arg);

#endif /* TQ_PENDING_WALK_H */
