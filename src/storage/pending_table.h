/*
 * pending_table.h
 *	  Rows of tq_internal.pending and tq_internal.delayed: runs that wait for a
 *	  worker.
 */
#ifndef TQ_PENDING_TABLE_H
#define TQ_PENDING_TABLE_H

#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "utils/snapshot.h"

#include "../core/types.h"
#include "run_table.h"
#include "task_table.h"

/* visible_at of a run that waits for a gate (engine/gate.c) */
#define TQ_PARKED DT_NOEND

typedef struct TqPending
{
	int64 task;
	int64 seq; /* 0: the back of the queue */
	int32 queue;
	int16 priority;
	int16 run_id;
	int16 retries_left;
	TqCreated created;
	TimestampTz scheduled;
	TimestampTz visible_at; /* in delayed */
	int64 group_id;         /* in delayed; of the task */
	bool has_detail;
} TqPending;

extern void tq_pending_insert(const TqPending *rows, int n);
extern void tq_delayed_insert(const TqPending *rows, int n);

/* A look-up of pending runs, delayed or not, by their tasks. */
typedef struct TqPendingScan TqPendingScan;

extern TqPendingScan *tq_pending_scan_begin(Snapshot snapshot);
extern bool tq_pending_scan_read(TqPendingScan *by, int64 task, TqRun *run);
extern void tq_pending_scan_end(TqPendingScan *by);

extern void tq_pending_are_first(const int64 *tasks, int n, bool *are_first);
extern bool tq_pending_lock(int64 task, TqLock mode);
extern void tq_pending_delete(const int64 *tasks, int n);

/* Decides whether a claim takes a run, whose payload is not read yet. */
typedef bool TqMayClaim(const TqClaimed *run, TimestampTz now);

extern TqClaimed *tq_pending_claim(int32 queue, int max, TimestampTz now,
								   TqMayClaim *may_claim, int *found);
extern bool tq_pending_is_claimable(int32 queue, TimestampTz now,
									TqMayClaim *may_claim);
extern void tq_delayed_delete(const int64 *tasks, int n);
extern bool tq_pending_move(int64 task, int priority);
extern void tq_pending_set_priority(const int64 *tasks, int n, int priority);
extern void tq_pending_set_queue(const int64 *tasks, int n, int32 queue);
extern void tq_delayed_set_queue(const int64 *tasks, int n, int32 queue);
extern void tq_pending_read(TupleTableSlot *slot, TqRun *row);
extern void tq_delayed_read(TupleTableSlot *slot, TqPending *row);

#endif /* TQ_PENDING_TABLE_H */
