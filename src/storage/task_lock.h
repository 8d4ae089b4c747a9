/*
 * task_lock.h
 *	  Locks the current rows of many tasks, for maintenance.
 */
#ifndef TQ_TASK_LOCK_H
#define TQ_TASK_LOCK_H

#include "datatype/timestamp.h"

#include "run_table.h"
#include "task_table.h"

typedef struct TqHeld
{
	TqRun *runs; /* their current rows, locked, in order of task id */
	TqTask *tasks;
	int n;
	int64 *others; /* tasks that another session has locked or changed */
	int nothers;
	TqTask *resolved; /* tasks that are resolved */
	int nresolved;
} TqHeld;

/* Moves the i-th locked task to the end of those that the caller has kept. */
static inline void
tq_held_keep(TqHeld *held, int i)
{
	held->runs[held->n] = held->runs[i];
	held->tasks[held->n++] = held->tasks[i];
}

extern void tq_hold_unresolved(const int64 *tasks, int n, TqHeld *held);
extern void tq_hold_expired(const int64 *tasks, int n, TimestampTz now,
							TqHeld *held);

#endif /* TQ_TASK_LOCK_H */
