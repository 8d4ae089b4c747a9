/*
 * upkeep.h
 *	  The steps of maintenance, for api_upkeep.c and worker.c, and what the
 *	  files that implement them share.
 */
#ifndef TQ_UPKEEP_H
#define TQ_UPKEEP_H

#include "store.h"

/*
 * Steps in the order in which a pass takes them.  Their names are stored
 * (tq.postponed); the numbers are not.
 */
typedef enum TqStep
{
	TQ_STEP_PUBLISH,
	TQ_STEP_DEADLINE,
	TQ_STEP_TOTAL_TIMEOUT,
	TQ_STEP_RUN_TIMEOUT,
	TQ_STEP_PENDING_TIMEOUT,
	TQ_STEP_CLAIM_EXPIRED,
	TQ_STEP_DELAYED,
	TQ_STEP_CANCEL,
	TQ_STEP_POSTPONED,
	TQ_STEP_EXPIRE,
	TQ_STEP_RETAIN
} TqStep;

#define TQ_STEPS 11

extern const char *tq_step_name(TqStep step);

/* Result of a batch. */
typedef struct TqBatch
{
	int64
		tasks; /* changed; or messages published, or segments of the log emptied */
	bool more;         /* there may be more that is due at once */
	TimestampTz since; /* when the first of the tasks was due, or DT_NOEND */
} TqBatch;

/*
 * Does one bounded batch of a step in the caller's transaction.  *mark is
 * TQ_MARK_BEGIN or that of the step for the first batch of a pass; each batch
 * moves it on.  With `bisect`, tasks for which the step fails do not fail the
 * batch.
 */
extern void tq_upkeep_step(TqStep step, bool bisect, TqMark *mark,
						   TqBatch *batch);

/*
 * Records whether a pass is part of a transaction block.  There nothing is
 * published and no segment of the log is emptied, because the locks would be
 * held until COMMIT.  upkeep() records it before it begins subtransactions, in
 * which the server no longer makes the difference.
 */
extern void tq_upkeep_begin(bool in_block);
extern bool tq_upkeep_is_in_block(void);

/* The marks that the maintenance worker keeps from cycle to cycle. */
extern void tq_upkeep_marks_begin(TqMarks *marks);
extern TqMark tq_upkeep_mark(TqStep step, const TqMarks *marks);
extern void tq_upkeep_noted(TqMarks *marks, TimestampTz due);

/* Returns when the next row behind the marks is due, or DT_NOEND. */
extern TimestampTz tq_upkeep_next_due(TqMarks *marks);

/* ---- between upkeep.c, bisect.c and timeout.c ---- */

/* Rows of tq.lease or tq.timer that are taken at once. */
#define TQ_TAKE_ROWS 100

/* Tasks for which a step is due. */
typedef struct TqWork
{
	TqStep step;
	const int64 *tasks;
	int n;
	const TqPending
		*rows;       /* the rows of tq.delayed, one for each task; else NULL */
	TimestampTz due; /* of the last timer that was taken */
	TimestampTz now;
	bool *more; /* set when tasks are left to another batch */
	void *arg;  /* argument of other functions that are run like a step */
} TqWork;

/* Does a step for these tasks; returns how many it changed. */
typedef int64 (*TqRunStep)(const TqWork *work);

extern int64 tq_bisect(const TqWork *work, TqRunStep run);
extern int64 tq_bisect_retry(TqRunStep (*run_of)(TqStep step), TimestampTz now,
							 bool *more);

extern int64 tq_timeout_total(const TqWork *work);
extern int64 tq_timeout_runs(const TqWork *work);
extern int64 tq_timeout_pending(const TqWork *work);
extern int64 tq_timeout_inherited(const TqTask *tasks, int n, TimestampTz now);
extern int64 tq_timeout_cancel(const TqWork *work);

#endif /* TQ_UPKEEP_H */
