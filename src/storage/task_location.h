/*
 * task_location.h
 *	  The location of a task, and the runs that it has had.
 */
#ifndef TQ_TASK_LOCATION_H
#define TQ_TASK_LOCATION_H

#include "run_table.h"
#include "table.h"
#include "task_table.h"

extern bool tq_run_peek(int64 task, TqRun *run);
extern bool tq_run_lock(int64 task, TqLock mode, TqRun *run);
extern bool tq_run_lock_row(int64 task, int run_id);
extern TqRun *tq_runs_of_task(const TqTask *task, int *found);
extern TqRun *tq_runs_history(const int64 *tasks, int n, bool with_errors,
							  int *found);

#endif /* TQ_TASK_LOCATION_H */
