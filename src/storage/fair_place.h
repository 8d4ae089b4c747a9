/*
 * fair_place.h
 *	  Places of runs in queues that are fair to their keys.
 */
#ifndef TQ_FAIR_PLACE_H
#define TQ_FAIR_PLACE_H

#include "postgres_ext.h"

/* Where a run is to be placed. */
typedef struct TqFairRun
{
	int64 task;
	int32 queue;
	int priority;
	int64 seq; /* its place */
} TqFairRun;

extern bool tq_fair_is_used(void);
extern bool tq_fair_applies(int32 queue);
extern void tq_fair_place(Oid pending, TqFairRun *runs, int n);
extern void tq_fair_place_again(Oid pending, TqFairRun *run, int tries);

#endif /* TQ_FAIR_PLACE_H */
