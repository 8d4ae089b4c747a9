/*
 * group_rows.h
 *	  What a picture of a task group shows: its tasks, dependencies and runs.
 */
#ifndef TQ_GROUP_ROWS_H
#define TQ_GROUP_ROWS_H

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "../util/slugid.h"
#include "group_table.h"

/* A task of a group; the run is its last one. */
typedef struct TqGroupTask
{
	int64 id;
	TqSlug task_id;
	char *name; /* metadata.name, or the name of the queue */
	char *queue_name;
	TqState state;
	TqResolved reason; /* of the last run; TQ_RESOLVED_NONE: not resolved */
	int run_id;        /* -1: no run */
	bool is_delayed;
	TimestampTz resolved; /* 0: it is not */
	char *worker_group;   /* NULL: no worker has had the last run */
	char *worker_id;
	char *progress; /* of the running run, in words; NULL: not reported */
} TqGroupTask;

/* A task of a group that depends on another task, in this group or not. */
typedef struct TqGroupDependency
{
	int64 dependent;
	int64 required; /* 0: it was deleted */
} TqGroupDependency;

/* A run of a task of a group. */
typedef struct TqGroupRun
{
	int64 task;
	int run_id;
	TqState state;
	TqResolved reason;
	TimestampTz claimable; /* from when on it could be claimed */
	TimestampTz started;   /* 0: it never was */
	TimestampTz resolved;  /* 0: it is not */
	char *worker_group;    /* NULL: none */
	char *worker_id;
} TqGroupRun;

extern TqGroupTask *tq_group_rows_tasks(const TqGroup *group, int max,
										int *found);
extern TqGroupDependency *tq_group_rows_dependencies(const TqGroup *group,
													 int max, int *found);
extern TqGroupRun *tq_group_rows_runs(const TqGroup *group, int max,
									  int *found);
extern char *tq_group_rows_error(int64 task, int run_id, int max);

#endif /* TQ_GROUP_ROWS_H */
