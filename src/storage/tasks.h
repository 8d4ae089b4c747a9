/*
 * tasks.h
 *	  Rows of tasks: definitions, runs, what waits for what, and when.
 *
 * Decides how the rows of a task are read, locked and written, in batches and
 * in which order of locks.  It never decides what becomes of a task: the
 * life-cycle does, and calls these functions with the result.
 */
#ifndef TQ_TASKS_H
#define TQ_TASKS_H

#include "../core/policy.h"
#include "../rows/rows.h"

/* ---- task_table.c: tq_internal.task: definitions of tasks ---- */

/*
 * A task, as far as decisions depend on it.  The types that follow contain
 * each other, so that the type of a task says what of it was read.
 */
typedef struct TqTask
{
	int64 id;
	TimestampTz created;
	TimestampTz deadline; /* effective: the defined one, or another one */
	TimestampTz defined_deadline;
	TimestampTz expires;
	int64 delay; /* ms from scheduled until claimable; below 0: from created */
	int64 group_id; /* 0: the group has the task's own id */
	int32 queue;
	int32 policy; /* 0: none */
	int16 priority;
	int16 retries;
	bool all_resolved;
	TqSlug task_id;
	bool expires_given; /* false: it may be deleted earlier, by retention */
} TqTask;

/* A task with its names, as its status has them. */
typedef struct TqNamedTask
{
	TqTask task;
	TqSlug group_slug;
	char *queue_name;
	char *scheduler_id;
	char *project_id;
} TqNamedTask;

/* A task with what its messages contain. */
typedef struct TqMessageTask
{
	TqNamedTask named;
	ArrayType *routes; /* NULL: none */
	Jsonb *tags;       /* as stored, perhaps compressed; NULL: {} */
} TqMessageTask;

/* The location of a task: the table that holds its current row. */
typedef enum TqTaskLocation
{
	TQ_LOCATION_NONE, /* no such task, or its row has moved */
	TQ_LOCATION_UNSCHEDULED,
	TQ_LOCATION_PENDING,
	TQ_LOCATION_DELAYED,
	TQ_LOCATION_RUN
} TqTaskLocation;

/* A task with its whole definition, stored or new. */
typedef struct TqTaskDefinition
{
	TqNamedTask named;
	bool has_own_id; /* of a new task: this call generated task_id */
	int ndependencies;
	TqSlug *dependencies;
	ArrayType *routes; /* NULL: none */
	ArrayType *scopes;
	Jsonb *payload;
	Jsonb *metadata; /* NULL: enqueue() without a name */
	Jsonb *tags;     /* NULL: {} */
	Jsonb *extra;
	Jsonb *given_policy; /* of a new task, as it is stored; NULL: none */
	char *keys[TQ_KEYS]; /* of a new task; NULL: none */
	int64 redriven; /* of a new task: the dead one in its place; 0: none */
	bool has_own_retries; /* of a new task: no default policy sets them */
	bool has_own_delay;
	TimestampTz run_at;         /* of a new task: from enqueue(); 0: none */
	bool is_of_arguments;       /* of a new task: given to enqueue() */
	bool is_timed_from_visible; /* of a new task: its times count from then */
	bool any_deadline;   /* of a new task: tq.max_deadline is no limit */
	bool may_be_foreign; /* of a new task: in a bucket of another shard */
	bool is_derived; /* of a new task: the publisher derives its messages */
	TqTaskLocation location; /* where this call has put it; NONE: it existed */
} TqTaskDefinition;

extern void tq_tasks_insert(const TqTaskDefinition *const *tasks, int n,
							bool *is_new);

/* The result of comparing a task that is created again with the stored one. */
typedef enum TqMatch
{
	TQ_MATCH_NONE, /* no task with that id is stored */
	TQ_MATCH_SAME,
	TQ_MATCH_DIFFERS
} TqMatch;

typedef struct TqStored TqStored;

extern TqStored *tq_stored_begin(void);
extern TqMatch tq_stored_match(TqStored *stored, TqTaskDefinition *definition,
							   bool with_times);
extern void tq_stored_end(TqStored *stored);

extern TqNamedTask *tq_task_by_slug(const TqSlug *slug);
extern bool tq_task_exists(const TqSlug *slug);
extern TqNamedTask *tq_tasks_by_slug(const TqSlug *slugs, int n, int *found);
extern TqNamedTask *tq_tasks_by_id(const int64 *ids, int n, int *found);
extern TqMessageTask *tq_tasks_for_messages(const int64 *ids, int n,
											int *found);
extern TqTaskDefinition *tq_definition_by_slug(const TqSlug *slug);
extern TqTaskDefinition *tq_definitions_by_slug(const TqSlug *slugs, int n,
												int *found);
extern TqTaskDefinition *tq_definitions_by_id(const int64 *ids, int n,
											  int *found);
extern TqTaskDefinition *tq_definitions_of_group(int64 group_id,
												 const TqSlug *group,
												 const TqSlug *after, int max,
												 int *found);
extern TqTaskDefinition *tq_definitions_dependent(int64 required,
												  TimestampTz now,
												  const TqSlug *after, int max,
												  int *found);

/* Finds tasks, by either index; all zeros before the first one. */
typedef struct TqTaskFinder
{
	TqScan *by_slug; /* NULL: not needed yet, also the next */
	TqScan *by_id;
} TqTaskFinder;

extern bool tq_task_find_by_slug(TqTaskFinder *finder, const TqSlug *slug,
								 TqTask *task);
extern bool tq_task_find_by_id(TqTaskFinder *finder, int64 id, TqTask *task);
extern void tq_task_finder_end(TqTaskFinder *finder);
extern bool tq_task_find(const TqSlug *slug, TqTask *task);

extern bool tq_task_order(int64 id, int32 *queue, int16 *priority);
extern TqTask *tq_tasks_core(const int64 *ids, int n, int *found);
extern TqTask *tq_tasks_after(int64 *after, int entries, int *found,
							  bool *more);
extern void tq_task_add_dependencies(int64 id, const TqSlug *dependencies,
									 int n);
extern void tq_tasks_set_due(const int64 *ids, const TimestampTz *due, int n);
extern void tq_tasks_set_expires(const int64 *ids, const TimestampTz *expires,
								 int n);
extern void tq_tasks_set_priority(const int64 *ids, int n, int priority);
extern void tq_tasks_set_queue(const int64 *ids, int n, int32 queue);
extern void tq_tasks_drop_payload(const int64 *ids, int n);
extern void tq_task_replace(int64 id, Jsonb *payload, int64 delay);
extern int tq_tasks_delete(const int64 *ids, int n);

/* A run that a claim has taken from tq_internal.pending, or could take. */
typedef struct TqClaimed
{
	int64 task;
	TqSlug task_id;
	int run_id;
	int priority; /* of the task; that of the run may have risen by its age */
	int retries_left;
	TqCreated created;
	TimestampTz scheduled;
	TimestampTz started; /* first start of a run that was deferred; else 0 */
	TimestampTz taken_until;
	TimestampTz pending_until; /* 0: the one of the policy */
	TimestampTz deadline;      /* of the task */
	int32 policy;              /* of the task */
	int64 group_id;            /* of the task */
	TimestampTz claimable;     /* when the run became claimable */
	bool has_detail;
	Jsonb *payload;
	ArrayType *scopes; /* NULL: none */
} TqClaimed;
extern bool tq_task_core(TqScan *scan, int64 id, struct TqTask *task);
extern TqScan *tq_task_scan_begin(Snapshot snapshot);
extern bool tq_task_for_order(TqScan *scan, int64 id, int32 *queue,
							  int *priority);
extern bool tq_task_for_claim(TqScan *scan, int64 id,
							  struct TqClaimed *claimed);
extern void tq_task_payload_for_claim(TqScan *scan, TqClaimed *claimed);
extern ArrayType *tq_task_scopes(int64 id);

/* ---- run_table.c: tq_internal.run, and the location of a task ---- */

/* A run, as the table that holds its row has it. */
typedef struct TqRun
{
	int64 task;
	TqTaskLocation location;
	int run_id; /* of an unscheduled task its last run, or -1 */
	TqState state;
	TqCreated created;
	TqResolved reason;
	int retries_left;
	int worker; /* 0: none */
	bool by_claim_task;
	TimestampTz scheduled; /* a time is 0 if there is none */
	TimestampTz started;
	TimestampTz taken_until;
	TimestampTz resolved;
	bool has_detail; /* it has a row in run_detail, too: TqRunDetail */
} TqRun;

extern const TqXactEnd tq_run_xact_end;

extern void tq_runs_insert(const TqRun *runs, int n);
extern void tq_runs_start(const TqClaimed *claimed, int n, int32 worker,
						  int32 queue);
extern void tq_runs_update(const TqRun *runs, int n);
extern bool tq_run_find(int64 task, int run_id, TqRun *run);
extern TimestampTz tq_run_last_taken_until(void);

/* A running run of a worker. */
typedef struct TqHeldRun
{
	TqSlug task_id;
	int run_id;
	int32 worker;
} TqHeldRun;

extern TqHeldRun *tq_runs_held(ArrayType *workers, int *found);

/* What a session remembers of a task of which it has claimed a run. */
typedef struct TqRecalled
{
	int64 task;
	int64 group_id;
	int32 policy;
	int32 queue;
	int32 worker; /* that had the run */
} TqRecalled;

extern bool tq_runs_recall(const TqSlug *task_id, int run_id,
						   TqRecalled *recalled);

/*
 * Reads rows of tq_internal.run, and writes each unless it was changed
 * concurrently.
 */
typedef struct TqRunWriter TqRunWriter;

extern TqRunWriter *tq_run_writer_begin(void);
extern void tq_run_writer_renew(TqRunWriter *writer);
extern bool tq_run_writer_read(TqRunWriter *writer, const TqSlug *task_id,
							   int64 task, int run_id, TqRun *run);
extern bool tq_run_writer_write(TqRunWriter *writer, const TqRun *run);
extern bool tq_run_writer_delete(TqRunWriter *writer);
extern void tq_run_writer_end(TqRunWriter *writer);
/* Reads the last row in tq_internal.run of many tasks. */
typedef struct TqScan TqRunReader;

extern TqRunReader *tq_run_reader_begin(const int64 *tasks, int n);
extern bool tq_run_reader_last(TqRunReader *reader, int64 task, TqRun *run);
extern void tq_run_reader_end(TqRunReader *reader);

extern void tq_run_read(TupleTableSlot *slot, struct TqRun *run);

/* ---- run_detail_table.c: attributes that only some runs have ---- */

/* How far a worker is, as it has reported last (doc/spec/policy.md 13). */
typedef struct TqRunProgress
{
	int64 done;
	int64 total;   /* TQ_OFF: not given */
	char *message; /* NULL: none */
	TimestampTz reported;
} TqRunProgress;

typedef struct TqRunDetail
{
	int64 task;
	TqBudget budget;         /* its retries_left are in the row of the run */
	int worker;              /* 0: none */
	int64 retry_delay;       /* ms, given by a worker; TQ_OFF: none */
	TimestampTz started;     /* 0: never */
	Jsonb *error;            /* NULL: none, or not read */
	Jsonb *result;           /* only to be written; NULL: none */
	TqRunProgress *progress; /* read with the error; NULL: none; not written */
} TqRunDetail;

extern void tq_details_write(const TqRunDetail *details, int n);

/* Reads details; opens the table when it is first needed. */
typedef struct TqDetailReader
{
	TqScan *scan;
	bool with_errors; /* that workers reported, and progress */
} TqDetailReader;

extern TqRunDetail *tq_detail_reader_read(TqDetailReader *reader, TqRun *run);
extern void tq_detail_reader_end(TqDetailReader *reader);
extern bool tq_detail_read(TqRun *run, TqRunDetail *detail);
extern Jsonb *tq_detail_result(const TqRun *run);
extern TqRunProgress *tq_detail_progress(const TqRun *run);
extern bool tq_detail_set_progress(const TqRun *run,
								   const TqRunProgress *progress);

/* ---- task_location.c: where tasks are, and their earlier runs ---- */

/* A run of a task's history. */
typedef struct TqHistoryRun
{
	TqRun run;
	bool is_left; /* the last one, and the task is unscheduled again */
	const TqRunDetail *detail; /* NULL: it has none */
	char *worker_group;        /* NULL: it had no worker, also the next */
	char *worker_id;
} TqHistoryRun;

extern bool tq_run_peek(int64 task, TqRun *run);
extern void tq_runs_peek(const int64 *tasks, int n, TqRun *runs, bool *found);
extern bool tq_run_lock(int64 task, TqLock mode, TqRun *run);
extern bool tq_run_lock_row(int64 task, int run_id);
extern TqHistoryRun *tq_runs_of_task(const TqTask *task, int *found);
extern int tq_history_first(const TqHistoryRun *runs, int n, int64 task);
extern TqHistoryRun *tq_runs_history(const int64 *tasks, int n,
									 bool with_errors, int *found);

/* Which tasks of a queue are wanted. */
typedef struct TqUnresolvedFilter
{
	int32 queue;
	TimestampTz created_by; /* tasks that were created later are not wanted */
	const char *name;       /* of the metadata; NULL: any */
	Jsonb *tags;            /* that a task must have; NULL: none */
} TqUnresolvedFilter;

/* A row of one of the tables in which unresolved tasks are. */
typedef struct TqUnresolvedRow
{
	int64 task;
	int64 position; /* in the order of the page */
	bool is_wanted;
} TqUnresolvedRow;

extern TqUnresolvedRow *tq_unresolved_page(const TqUnresolvedFilter *filter,
										   TqTaskLocation location,
										   int priority, int64 after, int max,
										   int *found);

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
extern int tq_task_lock_resolved(const int64 *tasks, int n, TqRun *runs);
extern bool tq_tasks_are_resolved(const int64 *tasks, int n);
extern void tq_task_lock_expired(const int64 *tasks, int n, TimestampTz now,
								 TqLockedTasks *locked);

/* ---- departed_table.c: what messages contain of tasks that have expired ---- */

extern void tq_departed_insert(const int64 *ids, int n, TimestampTz now);
extern TqMessageTask *tq_departed_tasks(const int64 *ids, int n, int *found);
extern TqHistoryRun *tq_departed_runs(const int64 *ids, int n, int *found);
extern int tq_departed_delete(TimestampTz before, int max);

/* ---- pending_table.c: pending and delayed runs ---- */

/* visible_at of a run that waits for a gate (lifecycle/gate.c) */
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
extern bool tq_pending_scan_lock(TqPendingScan *by, int64 task, TqLock mode);
extern void tq_pending_scan_renew(TqPendingScan *by, Snapshot snapshot);
extern void tq_pending_scan_end(TqPendingScan *by);

extern void tq_pending_are_first(const int64 *tasks, int n, bool *are_first);
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

/* A pending run. */
typedef struct TqWalkedRun
{
	int64 task;
	int64 seq;
	int priority;
	int own_priority;  /* of its task */
	TimestampTz since; /* when it became claimable */
} TqWalkedRun;

/* Returns whether to go on. */
typedef bool TqVisit(const TqWalkedRun *run, void *arg);

extern void tq_pending_walk(int32 queue, int priority, int64 from,
							TqVisit *visit, void *arg);
extern void tq_pending_oldest(const int32 *queues, int n, TimestampTz *oldest);

/* ---- fair_position.c: positions of runs in queues that are fair ---- */

/* Where a run is to be placed. */
typedef struct TqFairRun
{
	int64 task;
	int32 queue;
	int priority;
	int64 seq; /* its position */
} TqFairRun;

extern bool tq_fair_is_used(void);
extern bool tq_fair_applies(int32 queue);
extern void tq_fair_position(Oid pending, TqFairRun *runs, int n);
extern void tq_fair_position_again(Oid pending, TqFairRun *run, int tries);

/* ---- timer_table.c: when to check which tasks, and what failed ---- */

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

#define TQ_TIMERS 10 /* kinds of timers */

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
	TQ_TIMER_GATE = 7,          /* the gates of the task; lifecycle/gate.c */
	TQ_TIMER_CALLBACK = 8,      /* of groups; names callbacks, not tasks */
	TQ_TIMER_SETTLE = 9         /* foreign dependents of the task */
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

/* A growing list of ids, in this memory. */
typedef struct TqIds
{
	MemoryContext memory;
	int64 *ids; /* NULL: none yet */
	int n;
	int room;
} TqIds;

extern void tq_ids_add(TqIds *ids, const int64 *more, int n);

extern bool tq_delayed_take_one(int64 task, TqPending *row);

typedef struct TqPostponed
{
	int64 task;
	const char *step;
	TimestampTz due;    /* when the step is retried */
	TimestampTz origin; /* time of the timer that asked for the step */
	TimestampTz since;  /* first failure */
	int failures;
	const char *error;
} TqPostponed;

extern void tq_postponed_put(const TqPostponed *row, TimestampTz now);
extern int tq_postponed_failures(int64 task, const char *step);
extern TqPostponed *tq_postponed_take(TimestampTz now, int max, int *found);
extern int64 *tq_postponed_among(const int64 *tasks, int n, const char *step,
								 int *found);
extern void tq_postponed_delete(int64 task, const char *step);
extern TimestampTz tq_postponed_next_due(void);

/* ---- dependency_table.c: dependencies and unscheduled tasks ---- */

/* The end of a required task, and what its earlier runs have met already. */
typedef struct TqMet
{
	int64 required;
	bool completed;         /* the run that ends now counts as completed */
	bool is_marked;         /* set if the task has foreign dependents */
	int previous_completed; /* last earlier run that did, or -1 */
	int previous_final;     /* last earlier run that was final, or -1 */
} TqMet;

/* An unscheduled task, or one stripe of its dependency counter. */
typedef struct TqUnscheduled
{
	int64 task;
	int stripe; /* stripe of the counter; -1: the whole counter */
	int unmet;
} TqUnscheduled;

/* A dependency: the run of the required task from which on it can be met. */
typedef struct TqDependency
{
	int64 required;
	int64 dependent;
	int from_run;
	bool is_foreign; /* in foreign_dependency */
	bool is_settled; /* of a foreign one */
} TqDependency;

/* Which foreign dependencies on a task its runs have met. */
typedef struct TqForeignMet
{
	int64 required;
	int completed; /* last final run that counts as completed, or -1 */
	int final;     /* last final run, or -1 */
} TqForeignMet;

extern void tq_dependencies_insert(int64 dependent, const int64 *required,
								   const int32 *from_run, int n);
extern void tq_dependencies_exist(const int64 *tasks, int n, bool *exist);
extern TqUnscheduled *tq_dependencies_met(TqMet *met, int n, int *found);
extern int64 *tq_dependencies_unscheduled(const int64 *tasks, int n,
										  int *found);
extern int64 *tq_dependencies_dependents(const int64 *tasks, int n,
										 int *found);
extern int64 *tq_dependencies_required(const int64 *tasks, int n,
									   const int64 *by, int nby, int *found);
extern int64 *tq_dependencies_needed(const int64 *required, int n, int *found);
extern int64 *tq_dependencies_downstream(const int64 *tasks, int n,
										 bool completed_too, int *found);
extern int64 *tq_dependencies_upstream(const int64 *tasks, int n, int *found);
extern int64 *tq_dependencies_doomed(const int64 *tasks, int n,
									 const int64 *except, int nexcept,
									 int *found);
extern TqDependency *tq_dependencies_of(const int64 *tasks, int n, int *found);
extern void tq_dependencies_set_from_run(const TqDependency *edges, int n);
extern void tq_foreign_insert(const TqTask *task, const TqDependency *edges,
							  int n);
extern void tq_foreign_lock(const TqDependency *edges, int n);
extern int tq_foreign_marked(int64 required);
extern void tq_foreign_mark(int64 required);
extern void tq_foreign_doom(const TqRun *runs, int n);
extern TqUnscheduled *tq_foreign_take(const TqForeignMet *met, int max,
									  int *taken, int *found);
extern int tq_foreign_take_idle(const TqForeignMet *met, int max);
extern int64 *tq_foreign_take_doomed(const TqForeignMet *met, int max,
									 int *found);
extern bool tq_foreign_is_met(const TqForeignMet *met);
extern int64 tq_foreign_delete(int64 required, int max);
extern void tq_unscheduled_insert(int64 task, const int64 *unmet, int n,
								  bool all_resolved, int next_run);
extern void tq_unscheduled_count_up(int64 task, const int64 *unmet, int n);
extern void tq_unscheduled_clear(const int64 *tasks, int n);
extern int tq_compare_unscheduled(const void *a, const void *b);
extern TqUnscheduled *tq_unscheduled_lock(const int64 *tasks, int n,
										  int *found);
extern TqUnscheduled *tq_unscheduled_try_lock(const int64 *tasks, int n,
											  int *found);
extern void tq_unscheduled_count_down(const TqUnscheduled *waiting, int n,
									  const bool *may_free, bool *is_free,
									  int *next_run);
extern void tq_unscheduled_touch(const int64 *tasks, int n);
extern void tq_unscheduled_delete(const int64 *tasks, int n);

/* ---- group_table.c: groups, their sums, and callbacks ---- */

typedef struct TqGroup
{
	int64 id; /* 0 for a group of its own task only, which has no row */
	TqSlug task_group_id;
	char *scheduler_id;
	TimestampTz expires;
	TimestampTz sealed; /* 0: not sealed */
	int32 queue;        /* of its first task */
	char *name;         /* NULL: none was given */
} TqGroup;

typedef enum TqGroupFound
{
	TQ_GROUP_NONE,
	TQ_GROUP_LONE,  /* it has no row, but a task of the same id */
	TQ_GROUP_STORED /* it has a row */
} TqGroupFound;

/* A task of a group. */
typedef struct TqMember
{
	TqSlug task_id;
	int64 id;
} TqMember;

extern bool tq_groups_fit_locks(int n);
extern void tq_group_lock(const TqSlug *slug, bool exclusive);
extern bool tq_group_lock_row(int64 id, bool exclusive);
extern TqSlug tq_group_slug(int64 id, Snapshot snapshot);
extern bool tq_group_read_slug(int64 id, Snapshot snapshot, TqSlug *slug);
extern int64 tq_group_number_of(const TqSlug *slug, Snapshot snapshot);
extern TqGroupFound tq_group_find(const TqSlug *slug, TqGroup *group);
extern bool tq_group_insert(TqGroup *group);
extern void tq_groups_wait_for_insert(const TqSlug *slugs, int n, bool *exist);
extern bool tq_task_wait_for_insert(const TqSlug *slug);
extern bool tq_group_prolong(int64 id, TimestampTz expires);
extern TimestampTz tq_group_until(TimestampTz expires, TimestampTz created);

/* Whether unscheduled tasks can never start; views.sql decides. */
typedef struct TqBlock
{
	bool is_known; /* false: they wait for too many tasks */
	bool blocked;
	ArrayType *by; /* ids of tasks that block them; NULL: not blocked */
} TqBlock;

extern void tq_group_block(const TqGroup *group, TqBlock *block);
extern void tq_task_block(int64 task, TqBlock *block);
extern void tq_group_set_sealed(int64 id, TimestampTz sealed);
extern int64 *tq_group_unresolved(const TqGroup *group, int *found);
extern int64 *tq_group_ended(const TqGroup *group, const TqResolved *reasons,
							 int n, int *found);
extern int64 tq_group_size(const TqGroup *group);
extern bool tq_group_is_large(const TqGroup *group, int tasks);
extern int tq_groups_delete(TimestampTz before, const int64 *ids, int n);
extern TqGroup *tq_groups_by_slug(const TqSlug *slugs, int n, int *found);
extern bool tq_group_first_unresolved(const TqGroup *group, TqMember *member);
extern int64 *tq_group_others(const TqGroup *group, const int64 *ids, int n,
							  int max, int *found);
extern bool tq_group_first_active(const TqGroup *group, const TqSlug *from,
								  TqSlug *active);

/* Tasks of a group that have the same state, reason, delay and effect. */
typedef struct TqGroupCount
{
	TqState state;
	TqResolved reason;
	bool delayed;
	TqUnsuccessful effect; /* onUnsuccessful, as far as it counts */
	int64 tasks;
	TimestampTz first_created;
	TimestampTz first_resolved;
	TimestampTz last_resolved;
} TqGroupCount;

extern TqGroupCount *tq_group_counts(const TqGroup *group, int *found);

typedef struct TqCallback
{
	int64 id;
	TimestampTz registered;
	TqSlug task_group_id;
	TqSlug task_id; /* of the task that is created */
	Oid role;       /* that has registered it */
	char *client;   /* of the credentials that it had assumed; NULL: none */
	Jsonb *definition;
} TqCallback;

extern bool tq_callback_insert(const TqCallback *callback);
extern bool tq_callback_lock(int64 id, TqCallback *callback);
extern bool tq_callback_exists(int64 id);
extern void tq_callback_delete(int64 id);
extern int64 *tq_callbacks_of_groups(const TqSlug *groups, int n, int *found);

/* ---- gate_table.c: tasks that wait for others with the same key ---- */

/* What a member of a gate is; the numbers are stored. */
typedef enum TqGateState
{
	TQ_GATE_ADMITTED = 0,
	TQ_GATE_READY = 1,     /* it waits for nothing but this gate */
	TQ_GATE_NOT_READY = 2, /* it cannot be claimed for another reason */
	TQ_GATE_ENDED = 3,     /* its claims count in an interval */
	/* as READY and NOT_READY, and its claims count in an interval */
	TQ_GATE_READY_AGAIN = 4,
	TQ_GATE_NOT_READY_AGAIN = 5
} TqGateState;

/* The tasks of a queue with one key; TQ_KEY_SERIAL or TQ_KEY_CONCURRENCY. */
typedef struct TqGate
{
	int32 queue;
	TqTaskKey kind;
	char *key;
} TqGate;

typedef struct TqGateMember
{
	int64 task;
	TqGate gate;
	TqGateState state;
} TqGateMember;

/* A task that comes to its gates. */
typedef struct TqGateEntry
{
	int64 task;
	int32 queue;
	int priority;
	uint32 kinds; /* 1 << TqTaskKey */
	TqGateState state;
} TqGateEntry;

extern void tq_gates_insert(const TqGateEntry *entries, int n);
extern int64 *tq_gates_with(const int64 *tasks, int n, int *found);

extern bool tq_gates_lock(void);
extern TqGateMember *tq_gate_members_of(const int64 *tasks, int n, int *found);
extern TqGateMember *tq_gate_members_in(const TqGate *gate, TqGateState state,
										int max, int *found);
extern int64 tq_gate_count(const TqGate *gate, TqGateState state);
extern void tq_gate_set_state(TqGateMember *member, TqGateState state);
extern void tq_gate_take_priority(const TqGateMember *member);
extern void tq_gate_delete(const TqGateMember *member);
extern int64 *tq_gate_parked(const int64 *tasks, int n, int *found);
extern int64 *tq_gate_ungated(const int64 *tasks, int n, int *found);
extern int64 *tq_gate_one_of_each(int32 queue, TqTaskKey kind, int *found);
extern TimestampTz *tq_gate_claims(const TqGate *gate, TimestampTz since,
								   int *found);

/* ---- key_table.c: the keys that tasks have by their policies ---- */

/* A key of a task. */
typedef struct TqKeyOfTask
{
	int64 task;
	TqTaskKey kind;
	char *key;
} TqKeyOfTask;

extern int tq_count_changed_rows(int gauge, int by, TqStatement *statement,
								 const Datum *values);
extern void tq_task_keys_insert(const TqKeyOfTask *keys, int n);
extern void tq_task_keys_read(int64 task, char **keys);

/* A unique key, and the task that was created or rerun with it last. */
typedef struct TqUniqueKey
{
	int32 queue; /* 0: the key is unique in the database */
	char *key;
	int64 task; /* 0: none, because the row is new */
} TqUniqueKey;

extern int64 tq_unique_key_task(const TqUniqueKey *key);
extern void tq_unique_keys_lock(TqUniqueKey *keys, int n);
extern bool tq_unique_key_try_lock(TqUniqueKey *key);
extern void tq_unique_keys_set(const TqUniqueKey *keys, int n);
extern void tq_unique_keys_release(const int64 *tasks, int n);

/* ---- find_table.c: what a filter of tq.apply() finds ---- */

typedef struct TqFound
{
	TqIds ids;          /* in their order; the queues are in their memory */
	bool of[TQ_STATES]; /* whether the filter finds tasks in that state */
	int32 *queues;      /* that it has, in their order; NULL: all */
	int nqueues;
	bool is_fixed; /* it asks about nothing else that changes */
} TqFound;

/* An action of tq.apply(), as src/sql/find.sql reads it. */
typedef struct TqFoundAction
{
	int number; /* TqApplyAction of operations.h */
	bool downstream;
	Interval *deadline; /* NULL: none is given */
	int priority;
	char *queue;
	TimestampTz until;
} TqFoundAction;

extern void tq_find_all(Jsonb *filter, int64 max, TqFound *found);
extern Jsonb *tq_find_counts(const TqFound *found);
extern bool tq_found_is_still(const TqFound *found, const TqTask *task,
							  const TqRun *run);
extern int64 *tq_find_still(Jsonb *filter, const int64 *ids, int n,
							int *found);
extern void tq_find_action(Datum action, Jsonb *arguments,
						   TqFoundAction *read);

/* ---- dead_letter_table.c: tasks that failed, and those finally so ---- */

typedef struct TqDeadLetter
{
	TqSlug task_id;
	int64 task;
	int32 queue;
	TimestampTz failed_at;
	int64 seq; /* order of writing; tq_dead_letter_insert() sets it */
	TqResolved reason;
	Jsonb *error; /* NULL: none */
	Jsonb *definition;
	Jsonb *runs;
} TqDeadLetter;

extern void tq_dead_letter_insert(const TqDeadLetter *letter);
extern bool tq_dead_letter_get(const TqSlug *task_id, TqDeadLetter *letter);
extern bool tq_dead_letter_lock(const TqSlug *task_id, TqLock mode,
								TqDeadLetter *letter);
extern int tq_dead_letters_delete(TimestampTz before, int max);
extern bool tq_dead_letter_delete(const TqSlug *task_id);
extern TqDeadLetter *tq_dead_letters_by_age(int32 queue,
											const TqDeadLetter *after, int max,
											int *found);

typedef struct TqFailure
{
	int64 task;
	int32 queue;
	TimestampTz resolved;
	TqState state; /* failed or exception */
	int run_id;    /* the last */
} TqFailure;

extern void tq_failures_insert(const TqFailure *failures, int n);
extern void tq_failures_delete(const int64 *tasks, int n);

/* ---- artifact_table.c: metadata and content of artifacts ---- */

typedef struct TqArtifact
{
	int64 task;
	int run_id;
	char *name;
	TqStorage storage;
	char *content_type;
	int64 content_length; /* -1: not known */
	TimestampTz expires;
	bool present;   /* its content is available */
	Jsonb *details; /* by storage type */
} TqArtifact;

extern bool tq_artifact_lock_run(int64 task, int run_id, TqRun *run);
extern bool tq_artifact_insert(const TqArtifact *artifact);
extern void tq_artifact_update(const TqArtifact *artifact);
extern bool tq_artifact_lock(int64 task, int run_id, const char *name,
							 TqArtifact *artifact);
extern int tq_artifacts_delete_expired(TimestampTz before, int max);
extern void tq_artifacts_delete_of_tasks(const int64 *tasks, int n);

/* ---- count_table.c: counts of rows, and sums of what is reported ---- */

extern uint64 tq_count_identity(void);

/* The gauges of a queue that were counted, less what time has ended. */
typedef struct TqGauges
{
	int32 queue;
	int64 gauges[TQ_QUEUE_GAUGES];
} TqGauges;

extern int64 tq_count_pending(int32 queue, TimestampTz now);
extern int64 tq_count_claimed(int32 queue, TimestampTz now);
extern TqGauges *tq_count_rows(int *n);
extern TqCountSource tq_count_read_gauges(int32 queue, bool by_rows,
										  int64 *gauges);
extern TqGauges *tq_count_ended(TimestampTz now, int *n);
extern bool tq_count_build_gauges(int32 queue);
extern bool tq_count_read_group(int64 id, int64 *counters);
extern bool tq_count_group_begin(int64 id, Snapshot *snapshot);
extern int64 tq_history_write(bool by_names);

extern bool tq_progress_is_reported(int64 group);
extern double tq_progress_of_own(const TqGroup *group);
extern double tq_progress_of_group(const TqGroup *group, int64 tasks);

#endif /* TQ_TASKS_H */
