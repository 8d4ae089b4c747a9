/*
 * store.h
 *	  The storage layer: the only layer that knows columns and SQL.
 *
 * These functions read, lock and write what the caller asks for.  Whether that
 * is right is decided by the engine.  Functions that return arrays allocate
 * them in the caller's memory context.  The caller has called tq_plan_open().
 */
#ifndef TQ_STORE_H
#define TQ_STORE_H

#include "plumbing.h"

#include "utils/array.h"

/* Builds an array parameter from one field of an array of structs. */
#define TQ_COLUMN(rows, n, type, function, field, into)                       \
	do                                                                        \
	{                                                                         \
		type *column = palloc(sizeof(type) * (n));                            \
		for (int i = 0; i < (n); i++)                                         \
			column[i] = (type) (rows)[i].field;                               \
		into = function(column, n);                                           \
	} while (0)

/* ---- store_policy.c: policies, interned ---- */

extern int32 tq_policy_intern(Jsonb *policy);
extern const TqPolicy *tq_policy_get(int32 id);
extern Jsonb *tq_policy_json(int32 id);

/* ---- store_task.c: definitions ---- */

typedef struct TqTask
{
	int64 id;
	TimestampTz created;
	TimestampTz deadline; /* effective: the defined one, or an earlier one */
	TimestampTz defined_deadline;
	TimestampTz expires;
	int64 delay;    /* ms from scheduled until claimable */
	int64 group_id; /* 0: the group has the task's own id */
	int32 queue;
	int32 policy; /* 0: none */
	int16 priority;
	int16 retries;
	bool all_resolved;
	bool has_own_id; /* this call generated task_id */
	TqSlug task_id;
	TqSlug group_slug;
	char *queue_name;
	char *scheduler_id; /* never NULL in memory */
	char *project_id;
	/* the rest is read only with the whole definition */
	int ndependencies;
	TqSlug *dependencies;
	ArrayType *routes; /* NULL: none */
	ArrayType *scopes;
	Jsonb *payload;
	Jsonb *metadata; /* NULL: enqueue() without a name */
	Jsonb *tags;     /* NULL: {} */
	Jsonb *extra;
	Jsonb *given_policy; /* of a new task; NULL: none */
} TqTask;

#define TQ_DEFAULT_SCHEDULER "-"
#define TQ_DEFAULT_PROJECT "none"

extern int64 tq_seq_next(void);
extern void tq_tasks_insert(const TqTask *const *tasks, int n, bool *is_new);

/* The result of comparing a task that is created again with the stored one. */
typedef enum TqMatch
{
	TQ_MATCH_NONE, /* no task with that id is stored */
	TQ_MATCH_SAME,
	TQ_MATCH_DIFFERS
} TqMatch;

typedef struct TqStored TqStored;

extern TqStored *tq_stored_begin(void);
extern TqMatch tq_stored_match(TqStored *stored, TqTask *task,
							   bool with_times);
extern void tq_stored_end(TqStored *stored);

extern TqTask *tq_task_by_slug(const TqSlug *slug);
extern TqTask *tq_task_whole_by_slug(const TqSlug *slug);
extern TqTask *tq_tasks_by_slug(const TqSlug *slugs, int n, bool whole,
								int *found);
extern void tq_tasks_find(TqTask *tasks, int n);
extern bool tq_task_find(TqTask *task);
extern int tq_tasks_find_by_id(TqTask *tasks, int n);
extern int tq_task_priority(int64 id);
extern TqTask *tq_tasks_core(const int64 *ids, int n, int *found);
extern TqTask *tq_tasks_by_id(const int64 *ids, int n, int *found);
extern TqTask *tq_tasks_told(const int64 *ids, int n, int *found);
extern TqTask *tq_tasks_of_group(int64 group_id, const TqSlug *group,
								 const TqSlug *after, int max, int *found);
extern TqTask *tq_tasks_dependent(int64 required, TimestampTz now,
								  const TqSlug *after, int max, int *found);
extern void tq_tasks_set_due(const int64 *ids, const TimestampTz *due, int n);
extern void tq_tasks_set_priority(const int64 *ids, int n, int priority);
extern int tq_tasks_delete(const int64 *ids, int n);

/* ---- store_run.c: runs, and the location of tasks ---- */

/* The location of a task: the table that holds its current row. */
typedef enum TqPlace
{
	TQ_PLACE_NONE, /* no such task, or its row has moved */
	TQ_PLACE_UNSCHEDULED,
	TQ_PLACE_PENDING,
	TQ_PLACE_DELAYED,
	TQ_PLACE_RUN
} TqPlace;

typedef struct TqRun
{
	int64 task;
	TqPlace place;
	int run_id; /* -1 while unscheduled */
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
	char *worker_group; /* only in a history */
	char *worker_id;
	/* the rest is set by tq_details_read() and in a history */
	bool has_detail;
	int attempt;
	int lost_left;             /* TQ_OFF: a lost run counts against retries */
	int64 retry_delay;         /* ms, given by a worker; TQ_OFF: none */
	TimestampTz visible_at;    /* 0: the same as scheduled */
	TimestampTz pending_until; /* 0: no limit, or the one of the policy */
	Jsonb *error;  /* only in a history with errors, or to be written */
	Jsonb *result; /* only to be written */
	int32 policy;  /* of the task; only for a run that has just ended */
} TqRun;

typedef enum TqLock
{
	TQ_LOCK_SHARE,  /* the row must not change meanwhile */
	TQ_LOCK_UPDATE, /* the caller is about to change the row */
	TQ_LOCK_SKIP    /* like UPDATE, but skips a locked row */
} TqLock;

/* A run that a claim has taken from tq.pending, or could take. */
typedef struct TqClaimed
{
	int64 task;
	TqSlug task_id;
	int run_id;
	int priority;
	int retries_left;
	TqCreated created;
	TimestampTz scheduled;
	TimestampTz started; /* first start of a run that was deferred; else 0 */
	TimestampTz taken_until;
	TimestampTz deadline; /* of the task */
	int32 policy;         /* of the task */
	bool has_detail;
	Jsonb *payload;
} TqClaimed;

extern bool tq_run_peek(int64 task, TqRun *run);
extern bool tq_run_lock(int64 task, TqLock mode, TqRun *run);
extern TqRun *tq_runs_lock(const int64 *tasks, const int32 *run_ids, int n,
						   int *found);
extern TqRun *tq_runs_of_task(const TqTask *task, int *found);
extern TqRun *tq_runs_history(const int64 *tasks, int n, bool with_errors,
							  int *found);
extern void tq_runs_insert(const TqRun *runs, int n);
extern void tq_runs_start(const TqClaimed *claimed, int n, int32 worker);
extern void tq_runs_update(const TqRun *runs, int n);

extern int64 tq_runs_recall(const TqSlug *task_id);

/* Reads rows of tq.run, and writes each unless it was changed concurrently. */
typedef struct TqRunWriter TqRunWriter;

extern TqRunWriter *tq_run_writer_begin(void);
extern void tq_run_writer_renew(TqRunWriter *writer);
extern bool tq_run_writer_read(TqRunWriter *writer, const TqSlug *task_id,
							   int64 task, int run_id, TqRun *run);
extern bool tq_run_writer_write(TqRunWriter *writer, const TqRun *run);
extern bool tq_run_writer_delete(TqRunWriter *writer);
extern void tq_run_writer_end(TqRunWriter *writer);

/* ---- store_detail.c: attributes that only some runs have ---- */

extern void tq_run_fill(TqRun *run, const TqPolicy *policy);
extern TimestampTz tq_run_pending_until(const TqRun *run,
										const TqPolicy *policy);
extern bool tq_run_is_overdue(const TqRun *run, const TqPolicy *policy,
							  TimestampTz now);
extern void tq_details_write(const TqRun *runs, int n);
extern void tq_details_read(TqRun *runs, int n);
extern void tq_details_read_errors(TqRun *runs, int n);
extern Jsonb *tq_detail_result(const TqRun *run);

/* ---- store_pending.c: runs that are claimable, now or later ---- */

/*
 * SQL for the row of tq.pending that belongs to a task.  A first run that
 * became pending when its task was created has the task's id as seq, so that
 * the index on (queue, priority, seq) finds it.  The index on task has entries
 * only for the other rows.
 */
#define TQ_PENDING_OF(task)                                                   \
	"(SELECT py.* FROM tq.task px JOIN tq.pending py ON py.queue = px.queue"  \
	" AND py.priority = px.priority AND py.seq = px.id WHERE px.id = " task   \
	" UNION ALL SELECT py.* FROM tq.pending py WHERE py.task = " task         \
	" AND py.seq <> py.task)"

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
	bool has_detail;
} TqPending;

extern void tq_pending_insert(const TqPending *rows, int n);
extern void tq_delayed_insert(const TqPending *rows, int n);
extern bool tq_pending_run(const TqTask *task, Snapshot snapshot, TqRun *run);
extern void tq_pending_are_first(const int64 *tasks, int n, bool *are_first);
extern bool tq_pending_lock(int64 task, TqLock mode);
extern void tq_pending_delete(const int64 *tasks, int n);
extern TqClaimed *tq_pending_claim(int32 queue, int max, TimestampTz now,
								   int *found);
extern bool tq_pending_is_claimable(int32 queue, TimestampTz now);
extern int64 tq_pending_count(int32 queue, TimestampTz now);
extern int64 tq_claimed_count(int32 queue, TimestampTz now);
extern void tq_delayed_delete(const int64 *tasks, int n);
extern void tq_pending_set_priority(const int64 *tasks, int n, int priority);

/* ---- store_hold.c: locks on many tasks, for maintenance ---- */

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

/* ---- store_edge.c: dependencies and unscheduled tasks ---- */

/* The end of a required task, and what its earlier runs have met already. */
typedef struct TqMet
{
	int64 required;
	bool completed;         /* the run that ends now counts as completed */
	int previous_completed; /* last earlier run that did, or -1 */
	int previous_final;     /* last earlier run that was final, or -1 */
} TqMet;

/* An unscheduled task, or one stripe of its dependency counter. */
typedef struct TqWaiting
{
	int64 task;
	int share; /* stripe of the counter; -1: the whole counter */
	int unmet;
} TqWaiting;

extern void tq_edges_insert(int64 dependent, const int64 *required,
							const int32 *from_run, int n);
extern void tq_edges_exist(const int64 *tasks, int n, bool *exist);
extern TqWaiting *tq_edges_met(const TqMet *met, int n, int *found);
extern int64 *tq_edges_unscheduled(const int64 *tasks, int n, int *found);
extern int64 *tq_edges_dependents(const int64 *tasks, int n, int *found);
extern int64 *tq_edges_required(const int64 *tasks, int n, const int64 *by,
								int nby, int *found);
extern void tq_unscheduled_insert(int64 task, const int64 *unmet, int n,
								  bool all_resolved);
extern int tq_compare_waiting(const void *a, const void *b);
extern TqWaiting *tq_unscheduled_lock(const int64 *tasks, int n, int *found);
extern TqWaiting *tq_unscheduled_try_lock(const int64 *tasks, int n,
										  int *found);
extern void tq_unscheduled_count_down(const TqWaiting *waiting, int n,
									  const bool *may_free, bool *is_free);
extern void tq_unscheduled_delete(const int64 *tasks, int n);

/* ---- store_timer.c: timers, claim timers and delayed runs ---- */

/* The maximum number of tasks in one row, so that a step stays small. */
#define TQ_TIMER_TASKS 100

typedef enum TqTimer
{
	TQ_TIMER_DEADLINE = 1,
	TQ_TIMER_EXPIRE = 2,
	TQ_TIMER_RUN_TIMEOUT = 3,
	TQ_TIMER_PENDING_TIMEOUT = 4,
	TQ_TIMER_TOTAL_TIMEOUT = 5, /* only sends an alert */
	TQ_TIMER_CANCEL = 6         /* of a group that is being canceled */
} TqTimer;

/* When to check which task. */
typedef struct TqLook
{
	TimestampTz due;
	int64 task;
} TqLook;

extern void tq_lease_insert(TimestampTz due, const int64 *tasks, int n);
extern void tq_timers_insert(TqTimer kind, const TqLook *looks, int n);
extern void tq_timer_insert(TqTimer kind, TimestampTz due, const int64 *tasks,
							int n);

/* Tasks that are due, from the timer rows that were taken. */
typedef struct TqDue
{
	TqMark mark; /* where to begin; then the last row that was visited */
	int64 *ids; /* sorted, without duplicates; NULL if the rows are returned */
	int n;
	TimestampTz first; /* time of the earliest row */
	bool more;         /* more rows may be due */
} TqDue;

extern void tq_lease_take(TimestampTz now, int max, TqDue *due);
extern void tq_timer_take(TqTimer kind, TimestampTz now, int max, TqDue *due);
extern TqPending *tq_delayed_take(TimestampTz now, int max, TqDue *due);
extern TimestampTz tq_timer_next_due(TimestampTz now, TqMarks *marks);
extern int tq_compare_ids(const void *a, const void *b);

extern bool tq_delayed_take_one(int64 task, TqPending *row);

/* ---- store_postponed.c: tasks for which maintenance failed ---- */

typedef struct TqPostponed
{
	int64 task;
	const char *step;
	TimestampTz due;    /* when the step is retried */
	TimestampTz origin; /* time of the timer that asked for the step */
	int failures;
	const char *error;
} TqPostponed;

extern void tq_postponed_put(const TqPostponed *row, TimestampTz now);
extern int tq_postponed_failures(int64 task, const char *step);
extern TqPostponed *tq_postponed_take(TimestampTz now, int max, int *found);
extern void tq_postponed_delete(int64 task, const char *step);
extern TimestampTz tq_postponed_next_due(void);

/* ---- store_group.c: task groups ---- */

typedef struct TqGroup
{
	int64 id; /* 0: there is no row, only a task with the same id */
	TqSlug task_group_id;
	char *scheduler_id;
	TimestampTz expires;
	TimestampTz sealed; /* 0: not sealed */
} TqGroup;

extern bool tq_groups_lock_to_join(int joined, int own);
extern void tq_group_lock(const TqSlug *slug, bool exclusive);
extern void tq_group_lock_to_seal(const TqSlug *slug);
extern TqSlug tq_group_slug(int64 id, Snapshot snapshot);
extern bool tq_group_find(const TqSlug *slug, TqGroup *group);
extern int64 tq_group_insert(const TqGroup *group);
extern void tq_groups_wait_for_insert(const TqSlug *slugs, int n, bool *exist);
extern bool tq_task_wait_for_insert(const TqSlug *slug);
extern bool tq_group_prolong(int64 id, TimestampTz expires);
extern void tq_group_set_sealed(int64 id, TimestampTz sealed);
extern int64 *tq_group_unresolved(const TqGroup *group, int *found);
extern int64 tq_group_size(const TqGroup *group);
extern int tq_groups_delete(TimestampTz before, int max);
extern TqGroup *tq_groups_by_slug(const TqSlug *slugs, int n, int *found);
extern bool tq_group_first_active(const TqGroup *group, const TqSlug *from,
								  TqSlug *active);

typedef struct TqProgress
{
	int64 count[TQ_STATES];
	int64 delayed;
	int64 tolerated;
	int64 forgiven;   /* of the tolerated ones */
	int first_reason; /* of the first unsuccessful task that counts, or 0 */
	TimestampTz first_created;
	TimestampTz last_resolved;
} TqProgress;

extern void tq_group_count(const TqGroup *group, TqProgress *progress);

/* ---- store_queue.c: task queues and workers, interned ---- */

typedef struct TqWorker
{
	int32 id;
	TimestampTz expires; /* 0: never seen */
	TimestampTz first_claim;
	TimestampTz last_date_active;
	TimestampTz quarantine_until;
	TimestampTz remembered; /* when its recent claims were written */
	int recent;             /* number of recent claims */
	char *group;
	char *name;
} TqWorker;

#define TQ_RECENT_MAX 20

typedef struct TqRecent
{
	TqSlug task_id;
	int run_id;
} TqRecent;

extern int32 tq_queue_find(const char *name);
extern char *tq_queue_name(int32 queue);
extern void tq_worker_name(int32 worker, char **group, char **name);
extern int32 tq_queue_intern(const char *name);
extern void tq_queue_seen(int32 queue, TimestampTz now, TimestampTz expires);
extern bool tq_worker_find(int32 queue, const char *group, const char *id,
						   TqWorker *worker);
extern void tq_worker_get_by_number(int32 id, TqWorker *worker);
extern void tq_worker_intern(int32 queue, const char *group, const char *id,
							 TqWorker *worker);
extern void tq_worker_seen(int32 worker, TimestampTz now, TimestampTz expires,
						   bool claims);
extern void tq_worker_remember(int32 worker, const int64 *tasks,
							   const int32 *run_ids, int n, TimestampTz now);
extern TqRecent *tq_worker_recent(int32 worker, int *found);
extern void tq_worker_quarantine(int32 worker, TimestampTz until,
								 TimestampTz expires, Jsonb *detail);
extern void tq_workers_forget(TimestampTz before);

/* ---- store_message.c: outbox, message log and ticks ---- */

/* A message, or a note to the publisher, as it is stored. */
typedef struct TqMessage
{
	int64 id; /* 0: not published */
	TqExchange exchange;
	int64 task;   /* for task-group-resolved, one task of the group; 0: none */
	int run_id;   /* run that the message is about; -1: none */
	int last_run; /* last run in the status of the message; -1: none */
	TqState state; /* of last_run */
	int priority;
	TimestampTz taken_until; /* of last_run, while it is running */
	int32 worker;  /* that has the run, or had it when it alerts; 0: none */
	Jsonb *detail; /* further content of the message; NULL: none */
	TimestampTz published;
} TqMessage;

#define TQ_PLACES 6 /* segments of the message log */

/*
 * A tick is one publication: the messages that became visible between two
 * snapshots, or a part of them if they are many.
 */
typedef struct TqTick
{
	int64 first_id;
	int64 last_id;
	TimestampTz published;
	int64 unsent; /* NOTIFY is still to be sent from this id on; 0: none */
	int messages;
	int places;
	int place;
	Datum since;
	Datum upto; /* what it sees has been published, up to and with this tick */
	FullTransactionId xid; /* the publishing transaction */
	Datum part_of;         /* 0, or the snapshot that later parts complete */
	int64 after_seq; /* a part has the rows that xids wrote between the two */
	int64 upto_seq;
	Datum xids; /* 0: the tick is not a part */
} TqTick;

/* A page of what is to be published, in the order of writing. */
typedef struct TqPage
{
	TqMessage *messages; /* including notes to the publisher */
	int n;
	int places;
	int64 last_seq;
	Datum xids;   /* the transactions that wrote them */
	bool is_last; /* nothing follows */
} TqPage;

extern void tq_messages_insert(int place, const TqMessage *messages, int n);
extern bool tq_publisher_try_lock(void);
extern Datum tq_snapshot_now(void);
extern Datum tq_snapshot_acked(void);
extern TqRows tq_messages_open(Datum since, Datum upto, int64 after_seq);
extern void tq_messages_page(TqRows cursor, TqPage *page);
extern TqMessage *tq_messages_of_tick(const TqTick *tick, int *found,
									  TqMessage **notes, int *nnotes);
extern TqMessage *tq_messages_notes(const TqMessage *messages, int n,
									int *found);
extern int tq_messages_count(const TqMessage *messages, int n);
extern int tq_messages_number(TqMessage *messages, int n, const TqTick *tick);
extern void tq_tick_last(TqTick *tick);
extern int64 tq_tick_last_id(void);
extern TimestampTz tq_tick_oldest(void);
extern TimestampTz tq_tick_last_whole(void);
extern int64 tq_message_last_id(void);
extern bool tq_message_is_unpublished(Datum upto);
extern bool tq_tick_unsent(TqTick *tick);
extern bool tq_tick_of_place(int place, TqTick *tick);
extern bool tq_tick_shows_place(int place, TimestampTz since);
extern TqTick *tq_ticks_after(int64 id, int max, bool shown, int *found);
extern void tq_tick_insert(TqTick *tick, bool notified);
extern void tq_tick_set_unsent(const TqTick *tick, int64 unsent);
extern int tq_ring_current(TimestampTz *since);
extern void tq_ring_turn(int place, TimestampTz now);
extern bool tq_ring_is_empty(int place);
extern bool tq_ring_try_lock(int place);
extern bool tq_ring_is_unpublished(int place, Datum upto);
extern void tq_ring_truncate(int place);

/* ---- store_binding.c: bindings and subscriptions ---- */

typedef struct TqBinding
{
	char *channel; /* or subscription; NULL: the default channel */
	TqExchange exchange;
	char *pattern;
} TqBinding;

/* How far a subscription has acknowledged. */
typedef struct TqAcked
{
	int64 id;
	TimestampTz at; /* last acknowledgement, or creation */
	bool is_own;    /* the row was written by this transaction */
} TqAcked;

/*
 * A subscription that has not acknowledged all messages that will be dropped.
 */
typedef struct TqBehind
{
	char *name;
	int64 acked;
} TqBehind;

extern uint64 tq_bindings_generation(void);
extern void tq_bindings_changed(void);
extern int tq_bindings_wanted(void);
extern TqBinding *tq_bindings_list(int *found);
extern void tq_binding_insert(const char *channel, TqExchange exchange,
							  const char *pattern);
extern void tq_binding_delete(const char *channel, TqExchange exchange,
							  const char *pattern);
extern void tq_binding_set_default(TqExchange exchange, bool bound);
extern void tq_subscription_insert(const char *name, TqExchange exchange,
								   const char *pattern, TimestampTz now);
extern bool tq_subscription_delete(const char *name);
extern bool tq_subscription_find(const char *name, TqAcked *acked);
extern TqBinding *tq_subscription_bindings(const char *name, int *found);
extern bool tq_subscription_ack(const char *name, int64 id, int64 before,
								TimestampTz now);
extern void tq_subscription_skip(const char *name, int64 id, TimestampTz now);
extern TimestampTz tq_subscription_slowest(void);
extern TqBehind *tq_subscriptions_behind(int64 last_id, int *found);
extern bool tq_subscription_lose(const char *name, int64 last_id);

/* ---- store_dead_letter.c: dead letters ---- */

typedef struct TqDeadLetter
{
	TqSlug task_id;
	int64 task;
	int32 queue;
	TimestampTz died;
	int64 seq; /* order of writing; tq_dead_letter_insert() sets it */
	TqResolved reason;
	Jsonb *error; /* NULL: none */
	Jsonb *definition;
	Jsonb *runs;
} TqDeadLetter;

extern void tq_dead_letter_insert(const TqDeadLetter *letter);
extern bool tq_dead_letter_lock(const TqSlug *task_id, TqLock mode,
								TqDeadLetter *letter);
extern bool tq_dead_letter_delete(const TqSlug *task_id);
extern TqDeadLetter *tq_dead_letters_by_age(int32 queue,
											const TqDeadLetter *after, int max,
											int *found);
extern TqDeadLetter *tq_dead_letters_list(int32 queue, const TqSlug *after,
										  int max, int *found);

/* ---- store_artifact.c: artifacts ---- */

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
	Jsonb *details; /* by storage type; NULL: not read */
} TqArtifact;

extern bool tq_artifact_lock_run(int64 task, int run_id, TqRun *run);
extern bool tq_artifact_insert(const TqArtifact *artifact);
extern void tq_artifact_update(const TqArtifact *artifact);
extern bool tq_artifact_find(int64 task, int run_id, const char *name,
							 bool whole, TqArtifact *artifact);
extern bool tq_artifact_lock(int64 task, int run_id, const char *name,
							 TqArtifact *artifact);
extern TqArtifact *tq_artifacts_of_run(int64 task, int run_id,
									   const char *after, int max, int *found);
extern int tq_artifacts_delete_expired(TimestampTz before, int max);
extern void tq_artifacts_delete_of_tasks(const int64 *tasks, int n);

#endif /* TQ_STORE_H */
