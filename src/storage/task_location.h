/*
 * task_location.h
 *	  Where a task stands, and the runs that it has had.
 */
#ifndef TQ_TASK_LOCATION_H
#define TQ_TASK_LOCATION_H

#include "run_table.h"
#include "task_table.h"

extern bool tq_run_peek(int64 task, TqRun *run);
extern bool tq_run_lock(int64 task, TqLock mode, TqRun *run);
extern TqRun *tq_runs_lock(const int64 *tasks, const int32 *run_ids, int n,
						   int *found);
extern TqRun *tq_runs_of_task(const TqTask *task, int *found);
extern TqRun *tq_runs_history(const int64 *tasks, int n, bool with_errors,
							  int *found);

#endif /* TQ_TASK_LOCATION_H */
