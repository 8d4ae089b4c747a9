/*
 * bgworker.h
 *	  Background processes: the launcher, maintenance workers and their steps.
 *
 * Decides when a step is due, how many rows a batch takes, and what becomes of
 * a batch that fails.  What a step does to a task, the life-cycle decides;
 * upkeep() runs the same steps in a session.
 */
#ifndef TQ_BGWORKER_H
#define TQ_BGWORKER_H

#include "../storage/tasks.h"

/* ---- launcher.c: starts a maintenance worker in each database ---- */

extern void tq_launcher_register(void);
extern PGDLLEXPORT void tq_launcher_main(Datum arg);
extern PGDLLEXPORT void tq_launcher_probe_main(Datum arg);
extern void tq_launcher_probe(void);

/* ---- utility_hook.c: utility statements that concern the processes ---- */

extern const TqXactEnd tq_drop_xact_end;
extern void tq_utility_hook_install(void);

/* ---- maintenance_worker.c: does what is due when it is due ---- */

typedef struct TqMaintenanceOrder
{
	Oid database;
	int slot;
	uint64 generation;
} TqMaintenanceOrder;

extern PGDLLEXPORT void tq_maintenance_worker_main(Datum arg);

/* ---- bisect.c: the steps, and how one goes on when it fails for a task ---- */

/*
 * Steps in the order in which a pass takes them.  Their names are stored
 * (tq_internal.postponed); the numbers are not.
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
	TQ_STEP_ADMIT,
	TQ_STEP_REORDER,
	TQ_STEP_CANCEL,
	TQ_STEP_SETTLE,
	TQ_STEP_CALLBACK,
	TQ_STEP_POSTPONED,
	TQ_STEP_EXPIRE,
	TQ_STEP_SWEEP,
	TQ_STEP_RETAIN,
	TQ_STEP_HISTORY, /* of the maintenance worker alone */
	TQ_STEP_NAMES    /* the same */
} TqStep;

#define TQ_STEPS 18

extern const char *tq_step_name(TqStep step);

/* Tasks for which a step is due. */
typedef struct TqWork
{
	TqStep step;
	const int64 *tasks;
	int n;
	const TqPending *
		rows; /* the rows of tq_internal.delayed, one for each task; else NULL */
	TimestampTz due; /* of the last timer that was taken */
	TimestampTz now;
	bool *more; /* set when tasks are left to another batch */
} TqWork;

/* Does a step for these tasks; returns how many it changed. */
typedef int64 (*TqRunStep)(const TqWork *work);

extern void tq_bisect_postpone(const TqWork *work, int task,
							   const ErrorData *error);
extern int64 tq_bisect(const TqWork *work, TqRunStep run);
extern int64 tq_bisect_retry(TqRunStep (*run_of)(TqStep step), TimestampTz now,
							 bool *more);

/* ---- maintenance.c: batches of the steps, and when one is due ---- */

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
 * TQ_SCAN_BEGIN or that of the step for the first batch of a pass; each batch
 * moves it on.  With `bisect`, tasks for which the step fails do not fail the
 * batch.
 */
extern void tq_maintenance_step(TqStep step, bool bisect,
								TqScanPosition *position, TqBatch *batch);

/* The marks that the maintenance worker keeps from cycle to cycle. */
extern void tq_maintenance_positions_begin(TqScanPositions *positions);
extern TqScanPosition
tq_maintenance_position(TqStep step, const TqScanPositions *positions);
extern void tq_maintenance_timer_added(TqScanPositions *positions,
									   TimestampTz due);

/* Returns when the next row behind the marks is due, or DT_NOEND. */
extern TimestampTz tq_maintenance_count_due(TimestampTz now);
extern TimestampTz tq_maintenance_next_due(TqScanPositions *positions);

extern void tq_count_pass(void);

/* ---- sweep_pass.c: deletes tasks whose retention is over ---- */

extern int64 tq_sweep_batch(bool bisect, TqScanPosition *position,
							TimestampTz now, bool *more);
extern int64 tq_sweep_run(const TqWork *work);

/* Of the maintenance worker, which keeps its position in a pass. */
extern TqScanPosition tq_sweep_position(void);
extern bool tq_sweep_is_time(TimestampTz now);
extern TimestampTz tq_sweep_next_batch(void);

#endif /* TQ_BGWORKER_H */
