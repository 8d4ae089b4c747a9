/*
 * run_list.h
 *	  Pages of the pending and of the claimed runs of a queue.
 */
#ifndef TQ_RUN_LIST_H
#define TQ_RUN_LIST_H

#include "datatype/timestamp.h"

#include "../util/slugid.h"

/* A place in a list: after the run that has it. */
typedef struct TqRunPlace
{
	TimestampTz since; /* of a claimed run: when it was claimed */
	int64 number;      /* its task; of a pending run: its seq */
} TqRunPlace;

typedef struct TqListedRun
{
	int64 task;
	TqSlug task_id;
	int run_id;
	TqRunPlace place; /* `since` of a pending run: when it became pending */
	char *worker_group;
	char *worker_id;
} TqListedRun;

extern TqListedRun *tq_runs_list_pending(int32 queue, int64 after, int max,
										 TimestampTz now, int *found);
extern TqListedRun *tq_runs_list_claimed(int32 queue, const TqRunPlace *after,
										 int max, TimestampTz now, int *found);
extern TqListedRun *tq_runs_held(int32 worker, int *found);

#endif /* TQ_RUN_LIST_H */
