/*
 * timer_table.h
 *	  Rows of tq_internal.claim_timer and tq_internal.timer: when to check
 *	  which tasks; and due rows of tq_internal.delayed.
 */
#ifndef TQ_TIMER_TABLE_H
#define TQ_TIMER_TABLE_H

#include "datatype/timestamp.h"

#include "pending_table.h"

/*
 * A position in the claim timers or timers: rows up to it have been processed.
 */
typedef struct TqScanPosition
{
	TimestampTz due;
	int64 seq;
} TqScanPosition;

#define TQ_SCAN_BEGIN                                                         \
	{                                                                         \
		DT_NOBEGIN, 0                                                         \
	}

#define TQ_TIMERS 9 /* kinds of timers */

/* Positions up to which nothing is left to be processed (maintenance.c). */
typedef struct TqScanPositions
{
	TqScanPosition delayed;
	TqScanPosition timer[TQ_TIMERS]; /* by kind */
} TqScanPositions;

/* Delay until a task that another session has locked is tried again. */
#define TQ_AGAIN_MS 100

/* A row that tasks share may be due so much earlier than their times. */
#define TQ_EARLY_MS (60 * 1000)

/* The maximum number of tasks in one row, so that a step stays small. */
#define TQ_TIMER_TASKS 100

typedef enum TqTimer
{
	TQ_TIMER_NONE = -1,
	TQ_TIMER_CLAIM = 0, /* in tq_internal.claim_timer */
	TQ_TIMER_DEADLINE = 1,
	TQ_TIMER_EXPIRE = 2,
	TQ_TIMER_RUN_TIMEOUT = 3,
	TQ_TIMER_PENDING_TIMEOUT = 4,
	TQ_TIMER_TOTAL_TIMEOUT = 5, /* only sends an alert */
	TQ_TIMER_CANCEL = 6,        /* of a group that is being canceled; of a
								 * resolved task: of its dependents */
	TQ_TIMER_GATE = 7,          /* the gates of the task; engine/gate.c */
	TQ_TIMER_CALLBACK = 8       /* of groups; names callbacks, not tasks */
} TqTimer;

/* When to check which task. */
typedef struct TqTimerEntry
{
	TimestampTz due;
	int64 task;
} TqTimerEntry;

extern void tq_timers_insert(TqTimer kind, TqTimerEntry *entries, int n);
extern void tq_timers_insert_early(TqTimer kind, TqTimerEntry *entries, int n,
								   int64 early_ms);
extern void tq_timer_insert(TqTimer kind, TimestampTz due, const int64 *tasks,
							int n);

/* Tasks that are due, from the timer rows that were taken. */
typedef struct TqDue
{
	TqScanPosition
		position; /* where to begin; then the last row that was visited */
	int64 *ids; /* sorted, without duplicates; NULL if the rows are returned */
	int n;
	TimestampTz first; /* time of the earliest row */
	bool more;         /* more rows may be due */
} TqDue;

extern void tq_timer_take(TqTimer kind, TimestampTz now, int max, TqDue *due);
extern int64 *tq_timer_peek(TqTimer kind, TimestampTz now, int max, int *n);
extern TqPending *tq_delayed_take(TimestampTz now, int max, TqDue *due);
extern TimestampTz tq_timer_next_due(TimestampTz now,
									 TqScanPositions *positions);
extern int tq_compare_ids(const void *a, const void *b);

extern bool tq_delayed_take_one(int64 task, TqPending *row);

#endif /* TQ_TIMER_TABLE_H */
