/*
 * operations.h
 *	  Operations on many tasks, or later: bulk changes, repair, artifacts.
 *
 * Decides what is selected, in which batches and order; each task changes by the
 * transitions of the life-cycle.
 */
#ifndef TQ_OPERATIONS_H
#define TQ_OPERATIONS_H

#include "../lifecycle/lifecycle.h"

/* ---- artifact.c: creates artifacts, ends uploads ---- */

extern TqArtifact *tq_artifact_parse(const TqSlug *task_id, int run_id,
									 char *name, Jsonb *request);

extern TqNamedTask *tq_artifact_create(const TqSlug *task_id,
									   TqArtifact *artifact, bool is_allowed,
									   TimestampTz now);
extern void tq_artifact_finish(const TqSlug *task_id, int run_id,
							   const char *name, const TqSlug *upload_id,
							   bool is_allowed);
extern int tq_artifact_latest_run(const TqTask *task);
extern void tq_artifact_check_run(const TqTask *task, int run_id);
extern Jsonb *tq_artifact_created_json(const TqNamedTask *named,
									   const TqArtifact *artifact);

/* ---- redrive.c: runs dead letters again, or discards them ---- */

extern TqNamedTask *tq_dead_letter_redrive(const TqSlug *task_id,
										   TimestampTz now);
extern int64 tq_dead_letters_redrive(int32 queue, int max, TimestampTz now);
extern void tq_dead_letter_discard(const TqSlug *task_id);

/* ---- repair.c: runs tasks again, with dependents ---- */

/* The arguments that rerun_task() and retry_task_group() have in common. */
typedef struct TqRepairHow
{
	Interval *deadline; /* NULL: deadlines stay */
	bool downstream;
} TqRepairHow;

/* What a call of rerun_task() would do with a task. */
typedef struct TqRepairStep
{
	TqSlug task_id;
	TqState state;
	const char *action;
	const char *why; /* NULL: it needs no reason */
} TqRepairStep;

extern TqRepairStep *tq_repair_plan(const TqTask *task, const TqRepairHow *how,
									TimestampTz now, int *n);
extern void tq_repair_task(const TqTask *task, const TqRepairHow *how,
						   TimestampTz now);
extern int64 tq_repair_group(const TqSlug *slug, const TqRepairHow *how,
							 const TqResolved *reasons, int nreasons,
							 TimestampTz now);

/* ---- bulk.c: operations on many tasks of a queue, by batches ---- */

/* Parts of a queue in each of which the tasks have an order. */
#define TQ_BULK_LISTS (3 + TQ_PRIORITY_HIGHEST)

/*
 * An operation.  The caller sets what comes first, and calls tq_bulk_begin()
 * and then tq_bulk_next() in one transaction each, until that returns false.
 * The lists of tasks that it keeps are in the memory context of that time.
 */
typedef struct TqBulk
{
	TqUnresolvedFilter filter;
	bool of[TQ_STATES]; /* whether tasks in that state are wanted */
	int64 max;          /* tasks at most */

	/* Applies the operation to locked tasks; returns to how many. */
	int (*apply)(struct TqBulk *bulk, TqLockedTasks *locked, TimestampTz now);
	const char *to_queue; /* of a move: the other queue */

	int64 done;      /* tasks */
	int64 skipped;   /* tasks that other sessions had locked */
	int64 left;      /* tasks with keys, which are not moved */
	int64 forbidden; /* nor tasks whose scopes the caller has not */

	/* the rest is private */
	int list; /* the list that is read */
	int64 after[TQ_BULK_LISTS];
	bool has_found; /* a wanted task, since the first list */
	bool is_again;  /* the tasks that were locked are tried again */
	TqIds locked;   /* tasks that were locked */
	int tried;      /* of these */
} TqBulk;

extern void tq_bulk_begin(TqBulk *bulk);
extern bool tq_bulk_next(TqBulk *bulk, TimestampTz now);

extern int tq_bulk_cancel(TqBulk *bulk, TqLockedTasks *locked,
						  TimestampTz now);
extern int tq_bulk_move(TqBulk *bulk, TqLockedTasks *locked, TimestampTz now);

extern TqReport *tq_workers_remove(ArrayType *workers, Jsonb *error,
								   TimestampTz now, int *n);

/* ---- apply.c: actions on the tasks that a filter finds ---- */

/* Numbers that tq_internal.apply_number() returns. */
typedef enum TqApplyAction
{
	TQ_APPLY_CANCEL,
	TQ_APPLY_MOVE,
	TQ_APPLY_EXPIRE,
	TQ_APPLY_RERUN,
	TQ_APPLY_SCHEDULE,
	TQ_APPLY_PRIORITY,
	TQ_APPLY_DELAY,
	TQ_APPLY_REDRIVE,
	TQ_APPLY_DISCARD,
	TQ_APPLY_DELETE
} TqApplyAction;

#define TQ_APPLY_REASONS 32

/* Why tasks were refused, and how many. */
typedef struct TqRefusal
{
	char *why;
	int64 n;
} TqRefusal;

/* An operation.  What it keeps is in `memory`. */
typedef struct TqApply
{
	TqApplyAction action;
	TqFoundAction how;
	Jsonb *filter;
	TqFound found;
	MemoryContext memory;
	bool is_again; /* tasks are tried that were locked */
	int64 done;
	TqIds locked; /* tasks to be tried again */
	TqRefusal refused[TQ_APPLY_REASONS];
	int nrefused;
} TqApply;

extern int tq_apply_size(const TqApply *apply);
extern void tq_apply_batch(TqApply *apply, int64 *tasks, int n,
						   TimestampTz now);

/* ---- reorder.c: moves pending runs within the order of their queues ---- */

extern int64 tq_reorder_pass(TimestampTz now, bool always, bool *more);
extern TimestampTz tq_reorder_next(TimestampTz now);

/* ---- sweep.c: deletes resolved tasks that are not needed any more ---- */

/* Which resolved tasks a sweep deletes. */
typedef struct TqSweepRule
{
	bool by_retention;  /* those whose retention is over; then: */
	int64 shortest_ms;  /* the shortest retention of any task */
	TimestampTz ended;  /* only those whose messages are not kept any more */
	int32 queue;        /* else: those of this queue, */
	bool of[TQ_STATES]; /* in these states, */
	TimestampTz until;  /* resolved until then */
	bool departs;       /* they expire: messages about them are read */
} TqSweepRule;

extern TqSweepRule tq_sweep_by_retention(TimestampTz now);
extern TqTask *tq_sweep_find(const TqSweepRule *rule, int max, TimestampTz now,
							 int64 *after, int *found, bool *more);
extern int tq_sweep_delete(const TqSweepRule *rule, TqTask *tasks, int n,
						   TimestampTz now);
extern int tq_sweep_delete_locked(const TqTask *tasks, int n,
								  const TqRun *runs, bool departs,
								  TimestampTz now);
extern int tq_sweep_delete_ids(const TqSweepRule *rule, const int64 *ids,
							   int n, TimestampTz now);
extern int64 tq_sweep_all(const TqSweepRule *rule, int max, TimestampTz now);

#endif
