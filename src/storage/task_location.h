/*
 * task_location.h
 *	  The location of a task, and the runs that it has had.
 */
#ifndef TQ_TASK_LOCATION_H
#define TQ_TASK_LOCATION_H

#include "run_detail_table.h"
#include "run_table.h"
#include "table.h"
#include "task_table.h"

/* A run of a task's history. */
typedef struct TqHistoryRun
{
	TqRun run;
	bool is_left; /* the last one, and the task is unscheduled again */
	const TqRunDetail *detail; /* NULL: it has none */
	char *worker_group;        /* NULL: it had no worker, also the next */
	char *worker_id;
} TqHistoryRun;

extern void tq_unscheduled_read(TupleTableSlot *slot, TqRun *run);
extern bool tq_run_may_be_left(const TqRun *run);
extern bool tq_run_peek(int64 task, TqRun *run);
extern bool tq_run_lock(int64 task, TqLock mode, TqRun *run);
extern bool tq_run_lock_row(int64 task, int run_id);
extern TqHistoryRun *tq_runs_of_task(const TqTask *task, int *found);
extern int tq_history_first(const TqHistoryRun *runs, int n, int64 task);
extern TqHistoryRun *tq_runs_history(const int64 *tasks, int n,
									 bool with_errors, int *found);

#endif /* TQ_TASK_LOCATION_H */
