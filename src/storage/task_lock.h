/*
 * task_lock.h
 *	  Locks the current rows of many tasks.
 */
#ifndef TQ_TASK_LOCK_H
#define TQ_TASK_LOCK_H

#include "datatype/timestamp.h"

#include "run_detail_table.h"
#include "run_table.h"
#include "task_table.h"
#include "timer_table.h"

/* A task that was locked after waiting. */
typedef struct TqTaskLock
{
	int64 task;
	bool is_done;
	bool is_locked; /* run is set; false: the task does not exist */
	TqRun run;      /* its last run */
} TqTaskLock;

extern TqTaskLock *tq_task_lock_wait(const int64 *tasks, int n, TqLock mode,
									 bool (*is_settled)(const TqRun *run),
									 bool dependents_too);

typedef struct TqLockedTasks
{
	TqRun *runs; /* their current rows, locked, in order of task id */
	TqTask *tasks;
	TqRunDetail **details; /* NULL: not read; an entry is NULL: it has none */
	int n;
	int64 *others; /* tasks that another session has locked or changed */
	int nothers;
	TqTask *resolved; /* tasks that are resolved */
	int nresolved;
	TqRun *claims; /* running runs whose claims have not expired */
	int nclaims;
} TqLockedTasks;

/* Moves the i-th locked task to the end of those that the caller has kept. */
static inline void
tq_locked_tasks_keep(TqLockedTasks *locked, int i)
{
	locked->runs[locked->n] = locked->runs[i];
	if (locked->details != NULL)
		locked->details[locked->n] = locked->details[i];
	locked->tasks[locked->n++] = locked->tasks[i];
}

extern void tq_locked_tasks_read_details(TqLockedTasks *locked);
extern void tq_task_lock_unresolved(const int64 *tasks, int n,
									TqLockedTasks *locked);
extern void tq_task_lock_expired(const int64 *tasks, int n, TimestampTz now,
								 TqLockedTasks *locked);

#endif /* TQ_TASK_LOCK_H */
