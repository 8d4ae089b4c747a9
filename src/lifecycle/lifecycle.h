/*
 * lifecycle.h
 *	  What happens to tasks and runs: creation, claims, reports, transitions.
 *
 * Decides which events occur, what they write and what follows from them, up to
 * dependencies, gates, groups, unique keys and dead letters.
 */
#ifndef TQ_LIFECYCLE_H
#define TQ_LIFECYCLE_H

#include "../events/events.h"
#include "../rules/rules.h"

/* ---- create.c: creates tasks: one or many, all or none ---- */

typedef enum TqRepeat
{
	TQ_REPEAT_EXACT, /* an existing task must be equal */
	TQ_REPEAT_LATER  /* equal except for the time of the call */
} TqRepeat;

extern int64 tq_create(TqTaskDefinition *tasks, int n, TqRepeat repeat,
					   TimestampTz now);

/* ---- run_log.c: lines of the server's log about single runs ---- */

extern void tq_run_log_claimed(int32 queue, const char *group,
							   const char *worker, const TqClaimed *claimed,
							   int n, TimestampTz now);
extern void tq_run_log_failed(int32 queue, const TqSlug *task_id,
							  const TqRun *run, bool is_retried, Jsonb *error);

/* ---- unique.c: which tasks hold a unique key, or meet one ---- */

/* The unique keys of the tasks of one call. */
typedef struct TqUnique TqUnique;

extern bool tq_unique_is_used(const TqTaskDefinition *tasks, int n);
extern TqUnique *tq_unique_begin(TqTaskDefinition *tasks, int n,
								 TimestampTz now);
extern int tq_unique_decide(TqUnique *unique, int *left);
extern bool tq_unique_is_met(const TqUnique *unique, int index);
extern int64 *tq_unique_to_replace(const TqUnique *unique, int *n);
extern void tq_unique_set(TqUnique *unique);
extern bool tq_unique_follow(TqUnique *unique);

extern TqUniqueKey tq_unique_key_of(const TqTask *task, char *key);

/* The unique key of a task that is to run again. */
typedef enum TqRerunKey
{
	TQ_RERUN_FREE,  /* the task may take it, or needs none */
	TQ_RERUN_HELD,  /* another task holds it */
	TQ_RERUN_LOCKED /* another session is about to take it */
} TqRerunKey;

extern TqRerunKey tq_unique_rerun(const TqTask *task, TqLock mode,
								  TimestampTz now, TqUniqueKey *key);
extern bool tq_unique_is_held(const TqTask *task, const TqUniqueKey *key,
							  TimestampTz now);
extern void tq_unique_take(const TqTask *task, TqUniqueKey *key);
extern void tq_unique_error_rerun(const TqTask *task, int64 holder);

/* ---- dependency.c: what a new task waits for, what its end releases ---- */

/* A task of the same call, on which the others may depend. */
typedef struct TqBatchTask
{
	TqSlug task_id;
	int index; /* index in the caller's array */
	bool is_new;
	bool is_pending; /* an existing task whose first run is pending */
	const TqTask *task;
} TqBatchTask;

/* A run that has ended and that no run follows. */
typedef struct TqFinal
{
	const TqRun *run;
	const TqTask *task; /* NULL: not read, because the run is completed */
} TqFinal;

extern HTAB *tq_dependency_prepare(const TqTaskDefinition *tasks, int n,
								   HTAB *batch_tasks, const int64 *others,
								   int nothers);
extern bool tq_dependency_track(const TqTaskDefinition *definition,
								HTAB *batch_tasks, HTAB *externals);
extern void tq_dependency_drop_blocked(TqLockedTasks *held,
									   const bool *is_final);
extern TqTask *tq_dependency_release(const TqFinal *finals, int n,
									 TimestampTz now, int **next_runs,
									 int *released);
extern TqTask *tq_dependency_count_down(const TqUnscheduled *waiting, int n,
										TimestampTz now, int **next_runs,
										int *released);
extern bool tq_dependency_counts(const TqRun *run, int32 policy);

extern void tq_add_dependencies(const TqSlug *task_id, TqSlug *dependencies,
								int n, TimestampTz now);

/* ---- foreign_dependency.c: dependencies on tasks of other applications ---- */

extern int64 tq_foreign_settle(const int64 *tasks, int n, TimestampTz now,
							   bool *more);

/* ---- group.c: joining, sealing, canceling and resolving groups ---- */

extern int64 tq_group_join(const TqNamedTask *named,
						   TimestampTz latest_expires, bool cancels,
						   bool lock_row);
extern bool tq_group_is_canceled_by(const TqTask *task);
extern void tq_groups_check_own(const TqTaskDefinition *const *tasks, int n);
extern void tq_group_check_size(const TqNamedTask *joined);
extern void tq_group_seal(const TqSlug *slug, TqGroup *group);
extern int64 tq_group_to_name(const TqSlug *slug);
extern Jsonb *tq_group_cancel(const TqSlug *slug, TimestampTz now);

/* ---- pending_run.c: makes runs pending: at once or later ---- */

/* A run that is to become pending. */
typedef struct TqStart
{
	TqTask *task;
	TqCreated created;
	TimestampTz scheduled;
	TqRunDetail detail; /* written only if it differs from the policy */
	int64 seq;          /* 0: at the end of the queue */
	bool is_first;      /* the total timeout of the task starts */
	bool has_detail;    /* stored for this run already */
} TqStart;

extern void tq_run_fill(const TqRun *run, const TqPolicy *policy,
						TqRunDetail *detail);
extern void tq_run_detail(TqRun *run, int32 policy, TqRunDetail *detail);
extern void tq_pending_run_move(TqStart *start, const TqRun *run,
								TimestampTz now);
extern void tq_pending_runs_add(const TqStart *starts, int n, TimestampTz now);

/* ---- gate.c: tasks that wait for others with the same key ---- */

/* A task of which a run becomes pending, and when the run is visible. */
typedef struct TqEntrant
{
	const TqTask *task;
	TimestampTz visible_at;
} TqEntrant;

extern bool tq_gate_applies(const TqTask *task);
extern bool tq_gate_may_have(const TqTask *task);
extern bool tq_gate_keeps_others(const TqTask *task);
extern void tq_gates_enter(const TqEntrant *entrants, int n, TimestampTz now);
extern void tq_gates_leave(const int64 *tasks, int n, TimestampTz now);
extern void tq_gates_priority_changed(const int64 *tasks, int n,
									  TimestampTz now);
extern void tq_gates_settings_changed(int32 queue, TimestampTz now);
extern int64 tq_gates_admit(const int64 *tasks, int n, TimestampTz now);

/* ---- limits.c: limits of queues: pause, running tasks, rates ---- */

/* What a claim may take of a queue. */
typedef struct TqAllowance
{
	int32 queue;
	int n;             /* at most so many runs */
	TimestampTz again; /* when there may be more, if no wake-up says so */
	int slots;         /* that were taken, to be used or given back */
	TqRoomRequest request;
	int claims; /* that were counted, the same */
	TqRate rate;
	TimestampTz at; /* when */
} TqAllowance;

extern void tq_quota_check_queue(int32 queue, int64 made);
extern bool tq_limits_take(int32 queue, int max, TimestampTz now,
						   TqAllowance *allowance);
extern void tq_limits_use(const TqAllowance *allowance, int n,
						  TimestampTz now);
extern bool tq_limits_allow(int32 queue, TimestampTz now, TimestampTz *again);
extern int tq_limits_want(int32 queue, int max);
extern TimestampTz tq_limits_rate_until(int32 queue, TimestampTz now);
extern void tq_limits_check_creation(const TqTask *const *tasks, int n,
									 const TqStart *starts, int nstarts,
									 TimestampTz now);
extern void tq_limits_begin(int32 queue);

/* ---- count.c: what transitions change in the counters ---- */

/* Where a task is counted. */
typedef struct TqCountOwner
{
	int32 queue;
	int64 group_id; /* 0: in no group, or in that of its own name */
} TqCountOwner;

extern TqCountOwner tq_count_owner(const TqTask *task);
extern void tq_count_created(const TqTask *task);
extern void tq_count_unscheduled(const TqTask *task);
extern void tq_count_scheduled(const TqTask *task);
extern void tq_count_start(const TqTask *task, bool is_delayed);
extern void tq_count_visible(const TqPending *run);
extern void tq_count_claim(TqCountOwner owner, TimestampTz claimable,
						   TimestampTz now);
extern void tq_count_deferred(const TqTask *task);
extern void tq_count_replaced(const TqTask *task, const TqRun *run);
extern void tq_count_end(TqCountOwner owner, const TqRun *run, int32 policy,
						 bool is_retried);
extern void tq_count_rerun(const TqTask *task, const TqRun *last);
extern void tq_count_moved(const TqTask *task, TqTaskLocation location,
						   int32 to);
extern void tq_count_reported(const TqTask *task);
extern void tq_count_deleted(const TqTask *task, const TqRun *last);

/* ---- claim.c: claims pending runs, prolongs claims, defers runs ---- */

/* A worker, and what it asks for. */
typedef struct TqClaimAsk
{
	const char *worker_group;
	const char *worker_id;
	int max;
	int64 wait_ms;
	int64 claim_for; /* ms; TQ_OFF: by policy, queue and tq.claim_timeout */
} TqClaimAsk;

extern TqClaim *tq_claim_best(const char *queue, const TqClaimAsk *ask,
							  int max, TimestampTz now, int *found,
							  TimestampTz *again);
extern bool tq_claim_is_possible(int32 queue, TimestampTz now,
								 TimestampTz *again);
extern void tq_claim_note_seen(const char *queue, const char *worker_group,
							   const char *worker_id, TimestampTz now);
extern bool tq_claim_one(const TqSlug *task_id, int run_id,
						 const TqClaimAsk *ask, TimestampTz now,
						 TqClaim *claim);
extern bool tq_claim_read(TqRunWriter *writer, const TqTask *task, int run_id,
						  int32 holder, TqEvent event, TimestampTz now,
						  TqRun *run);
extern void tq_claim_prolong(const TqSlug *task_id, int run_id, int32 holder,
							 int64 claim_for, TimestampTz now, TqClaim *claim);
extern void tq_claim_defer(TqTask *task, int run_id, int32 holder,
						   int64 after_ms, TimestampTz now);

/* ---- claim_queues.c: the queues of a call, and claims from them ---- */

#define TQ_QUEUE_SET_MAX 100
#define TQ_QUEUE_NAME_SIZE 80 /* 38 + 1 + 38 and the terminating zero */

/* A queue of the set, and what the last try has found out about it. */
typedef struct TqSetQueue
{
	char name[TQ_QUEUE_NAME_SIZE];
	int32 number;    /* 0: not known yet */
	int element;     /* that it stands for */
	bool by_pattern; /* it is not named itself */
	bool is_barred;  /* the worker is in quarantine */
	bool may_claim;  /* a claim may find something */
	bool is_asked;   /* the try has looked for a run */
	bool is_empty;   /* … and there is no further one */
	int claimed;     /* by this try */
} TqSetQueue;

/* The queues of a call, in its order; those of a pattern by name. */
typedef struct TqQueueSet
{
	char **elements; /* task queues and patterns, each once */
	int nelements;
	bool has_pattern;
	int n;
	TqSetQueue queues[TQ_QUEUE_SET_MAX];
} TqQueueSet;

/* The lists of the wait queue in which a session waits for a set. */
typedef struct TqSetLists
{
	int n;
	int32 numbers[TQ_WAIT_LISTS];
} TqSetLists;

extern void tq_queue_set_init(TqQueueSet *set, char **elements, int n);
extern void tq_queue_set_require(const TqQueueSet *set);
extern void tq_queue_set_require_claim(const TqQueueSet *set,
									   const char *worker_group,
									   const char *worker_id);
extern void tq_queue_set_read(TqQueueSet *set);
extern void tq_queue_set_intern(TqQueueSet *set);
extern bool tq_queue_set_is_claimable(const TqQueueSet *set, TimestampTz now,
									  TimestampTz *again);
extern TqSetLists tq_queue_set_lists(const TqQueueSet *set);
extern bool tq_set_lists_are_equal(const TqSetLists *a, const TqSetLists *b);

extern TqClaim *tq_claim_queues(TqQueueSet *set, bool takes_turns,
								const TqClaimAsk *ask, int *found);

/* ---- claim_wait.c: claims and reclaims that wait ---- */

extern TqClaim *tq_claim_wait(const char *queue, const TqClaimAsk *ask,
							  int *found);
extern void tq_claim_stay(const TqSlug *task_id, int run_id, int32 holder,
						  int64 wait_ms);

/* ---- report.c: reports of workers, which end runs, and progress ---- */

typedef enum TqOutcome
{
	TQ_OUTCOME_RESOLVED,
	TQ_OUTCOME_RETRIED,
	TQ_OUTCOME_REPEATED,
	TQ_OUTCOME_CONFLICT,
	TQ_OUTCOME_NOT_FOUND,
	TQ_OUTCOME_FORBIDDEN
} TqOutcome;

typedef struct TqReport
{
	TqSlug task_id;
	int run_id;
	TqResolved reason;
	const TqCredentials *credentials; /* NULL: none */
	bool is_forbidden;                /* by those credentials */
	int32 holder;    /* the worker that must have the run; 0: any */
	bool is_checked; /* the caller must have the scope of the run */
	bool is_found;   /* the task exists */
	int64 id;        /* of the task */
	int32 claimer;   /* worker that this session has claimed it for; 0: none */
	int32 claimed_in; /* the queue of that worker */
	TqCountOwner owner;
	TqTask *task;       /* NULL: only its id was needed */
	bool is_answered;   /* by a status: the names are needed, too */
	TqNamedTask *named; /* as it is behind the lock; NULL: not read */
	const struct TqReport *first; /* earlier report on the same run, or NULL */
	bool has_row;                 /* the run, in table run */
	TqRun run;                    /* that row */
	TqState state;                /* of the run before the report */
	bool is_ended;                /* the run, by this report */
	bool had_detail;              /* whether the run had a detail before */
	TqRunDetail *detail;          /* of an ended run; NULL: it has none */
	Jsonb *error;                 /* given by the worker; NULL: none */
	Jsonb *result;
	bool has_retry_delay; /* given by the worker for the next attempts */
	int64 retry_delay;    /* ms */
	bool has_retries_left;
	int retries_left;
	TqOutcome outcome;
} TqReport;

extern const char *tq_outcome_name(TqOutcome outcome);
extern void tq_resolve_reports(TqReport *reports, int n, TimestampTz now);

extern void tq_progress_report(const TqSlug *task_id, int run_id, int32 holder,
							   TqRunProgress *progress, TimestampTz now);

/* ---- transition.c: what transitions write, and what follows ---- */

/* A group that the policy of a task cancels, with the rights of this role. */
typedef struct TqGroupCancel
{
	TqSlug slug;
	Oid creator; /* InvalidOid: they were checked once */
} TqGroupCancel;

/*
 * The transitions of one call.  Their messages and the groups to cancel are
 * collected until the call finishes; the rest is written in each round.  A
 * caller sets `now`, and n if it adds transitions itself, and leaves the rest
 * zero.  It keeps the runs and tasks that it adds until the call finishes.
 */
typedef struct TqTransitions
{
	TimestampTz now;
	TqOutboxBatch outbox;
	TqGroupCancel *groups; /* the work list: groups to cancel */
	int ngroups;
	int64 *culprits; /* the same: tasks whose dependents are to be canceled */
	int nculprits;

	/* of this round */
	int n;           /* most runs that end */
	TqFinal *finals; /* runs that have ended and that no run follows */
	int nfinals;
	TqStart *starts; /* runs that become pending */
	int nstarts;
	int room; /* for starts */
} TqTransitions;

extern void tq_transition_end_run(TqRun *run, TqResolved reason,
								  TimestampTz now);
extern bool tq_transition_follow(TqTransitions *transitions, const TqRun *run,
								 const TqRunDetail *detail, TqTask *task);
extern void tq_transition_start_first(TqTransitions *transitions, TqTask *task,
									  bool at_creation);
extern void tq_transition_announce(TqTransitions *transitions,
								   const TqTask *task, const TqRun *run,
								   const TqRun *last);
extern bool tq_transition_repair(TqTransitions *transitions, TqTask *task,
								 const TqRun *last, bool activates);
extern bool tq_transition_never_pending(int64 task, int runs);
extern void tq_transitions_finish(TqTransitions *transitions);

extern bool tq_transition_request(TqTask *task, TqRun *last, TqEvent event,
								  TimestampTz now);
extern void tq_transition_defer(TqTask *task, const TqRun *run,
								const TqRunDetail *detail, TimestampTz now);
extern int tq_transitions_cancel_dependents(const TqTask *tasks, int n,
											TimestampTz now);
extern int tq_transitions_release(const TqUnscheduled *waiting, int n,
								  TimestampTz now);
extern int tq_transitions_cancel_waiting(const int64 *ids, int n,
										 TimestampTz now);
extern int tq_transitions_end(TqLockedTasks *locked, TqEvent event,
							  TqTimer again, TimestampTz now);

/* ---- priority.c: changes the priority of unresolved tasks ---- */

extern int tq_priority_check(const char *name);
extern void tq_priority_set(TqTask *task, const TqRun *last, int priority,
							TimestampTz now);
extern TqNamedTask *tq_priority_change(const TqSlug *task_id, int priority,
									   TimestampTz now);
extern Jsonb *tq_priority_change_group(const TqSlug *slug, int priority,
									   TimestampTz now);

/* ---- task_ops.c: schedules, reruns, skips, cancels, deletes a task ---- */

extern void tq_task_schedule(TqTask *task, TimestampTz now);
extern void tq_task_rerun(TqTask *task, TimestampTz now);
extern void tq_task_reschedule(TqTask *task, TimestampTz run_at,
							   TimestampTz now);
extern void tq_task_skip(TqTask *task, Jsonb *output, TimestampTz now);
extern void tq_task_cancel(TqTask *task, TimestampTz now);
extern void tq_task_delete(const TqNamedTask *named);

extern void tq_task_check_payload(const TqTask *task);
extern void tq_task_check_runs(const TqTask *task, const TqRun *last);

/* ---- group_callback.c: tasks that are created when a group resolves ---- */

extern void tq_group_callback_check(const Jsonb *payload);
extern void tq_group_callback_add(const TqSlug *group,
								  TqTaskDefinition *definition,
								  TimestampTz now);
extern void tq_group_callback_require(const TqSlug *group,
									  const TqTaskDefinition *definition);
extern bool tq_group_callback_try(int64 id, TimestampTz now);
extern void tq_group_callback_require_cancel(const TqCallback *callback);

/* ---- dead_letter.c: keeps finally failed tasks ---- */

extern void tq_dead_letters_write(const int64 *tasks, int n, TimestampTz now);

#endif
