/*
 * dependency.h
 *	  Dependencies: what a new task waits for, and what the end of a task
 *	  releases.
 */
#ifndef TQ_DEPENDENCY_H
#define TQ_DEPENDENCY_H

#include "datatype/timestamp.h"
#include "utils/hsearch.h"

#include "../storage/run_table.h"
#include "../storage/task_lock.h"
#include "../storage/task_table.h"
#include "../util/slugid.h"

/* A task of the same call, on which the others may depend. */
typedef struct TqBatchTask
{
	TqSlug task_id;
	int index; /* index in the caller's array */
	bool is_new;
	bool is_pending; /* an existing task whose first run is pending */
	const TqTask *task;
} TqBatchTask;

/* A run that has ended and that no run follows. */
typedef struct TqFinal
{
	const TqRun *run;
	const TqTask *task; /* NULL: not read, because the run is completed */
} TqFinal;

extern HTAB *tq_dependency_prepare(const TqTaskDefinition *tasks, int n,
								   HTAB *batch_tasks, const int64 *others,
								   int nothers);
extern bool tq_dependency_track(const TqTaskDefinition *definition,
								HTAB *batch_tasks, HTAB *externals);
extern void tq_dependency_add(const TqTaskDefinition *definition,
							  HTAB *batch_tasks, HTAB *externals);
extern void tq_dependency_drop_blocked(TqLockedTasks *held,
									   const bool *is_final);
extern TqTask *tq_dependency_release(const TqFinal *finals, int n,
									 TimestampTz now, int **next_runs,
									 int *released);
extern bool tq_dependency_counts(const TqRun *run, int32 policy);

#endif /* TQ_DEPENDENCY_H */
