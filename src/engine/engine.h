/*
 * engine.h
 *	  What happens to tasks, and what may happen.
 *
 * Decides which transitions a call makes, in which order rows are locked, what
 * follows from a transition, and what a caller may do.  The table of
 * transitions itself is core/state.c, the arithmetic of policies core/policy.c.
 * The engine never parses arguments, and leaves all columns to storage.
 *
 * First what may be: access and definitions; then the life of a task, in its
 * order; then what concerns many tasks, or others than those of the caller.
 */
#ifndef TQ_ENGINE_H
#define TQ_ENGINE_H

#include "access/transam.h"
#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/hsearch.h"
#include "utils/jsonb.h"
#include "utils/multirangetypes.h"
#include "utils/timestamp.h"

#include "../core/policy.h"
#include "../core/scope.h"
#include "../core/types.h"
#include "../events/events.h"
#include "../shmem/shmem.h"
#include "../storage/registry.h"
#include "../storage/rows.h"
#include "../storage/tasks.h"
#include "../util/compat.h"
#include "../util/util.h"

/* ---- access.c: what the caller may do: scopes of roles ---- */

extern const TqXactEnd tq_access_xact_end;

/* What a call requires, built only for a caller that has not every scope. */
extern TqNeed *tq_need(const char *format, ...) pg_attribute_printf(1, 2);
extern TqNeed *tq_need_list(TqNeedKind kind, int n);
extern void tq_need_add(TqNeed *list, const TqNeed *part);
extern TqNeed *tq_need_all(int n, ...);
extern TqNeed *tq_need_any(int n, ...);

extern bool tq_access_is_unlimited(void);
extern uint64 tq_access_version(void);
extern bool tq_access_meets(const TqNeed *need);
extern void tq_access_check(const TqNeed *need);
pg_noreturn extern void tq_access_error(const TqNeed *need);

/* Raises TQ403 unless the caller has the scopes, for example tq_need(...). */
#define tq_access_require(need)                                               \
	do                                                                        \
	{                                                                         \
		if (!tq_access_is_unlimited())                                        \
			tq_access_check(need);                                            \
	} while (0)

/* Functions that call those above, with the argument of tq_access_as(). */
typedef void TqAccessChecks(const void *arg);

extern void tq_access_as(Oid role, TqAccessChecks *checks, const void *arg);

extern char **tq_access_scopes(int *n);
extern void tq_access_assume(const char *client, char *const *scopes, int n);
extern const char *tq_access_assumed_client(void);
extern const char *const *tq_access_built_in(Oid role);
extern uint64 tq_access_forget_dropped_roles(void);

/* ---- identifier.c: names of queues, workers, schedulers, artifacts ---- */

/* The rule for an identifier, as errors state it. */
#define TQ_IDENTIFIER_RULE "must be 1 to 38 letters, digits, \"-\" or \"_\""

extern bool tq_is_identifier(const char *value);
extern bool tq_is_task_queue_id(const char *value);
extern bool tq_is_project_id(const char *value);
extern bool tq_is_printable(const char *value);
extern bool tq_is_artifact_name(const char *value);
extern void tq_check_identifier(const char *what, const char *value);
extern void tq_check_worker_name(const char *what, const char *value);
extern void tq_check_artifact_name(const char *value);
extern char *tq_task_queue_id(const char *what, char *value);
extern char *tq_queue_or_pattern(char *value);

/* ---- task_access.c: tasks that a call names, and scopes required ---- */

extern TqNamedTask *tq_task_get(const TqSlug *task_id);
extern TqTaskDefinition *tq_definition_get(const TqSlug *task_id);
pg_noreturn extern void tq_error_missing_task(const TqSlug *task_id);
pg_noreturn extern void tq_error_past_deadline(const TqTask *task);
pg_noreturn extern void tq_error_missing_run(const TqTask *task, int run_id);

/* Each raises TQ403 unless the caller has the scopes. */
extern void tq_require_create(const TqTaskDefinition *tasks, int n,
							  bool with_project);
extern void tq_require_read(const char *right, const TqSlug *task_id);
extern void tq_require_read_all(const char *right, const TqSlug *ids, int n);
extern void tq_require_change(const char *right, const TqNamedTask *named);
extern void tq_require_priority(const TqNamedTask *named);
extern void tq_require_run(const char *right, const TqSlug *task_id,
						   int run_id, int32 queue);
extern bool tq_may_handle_run(const char *right, const TqSlug *task_id,
							  int run_id, int32 queue);
extern bool tq_may_handle_runs(const char *right, int32 queue);
extern void tq_require_claim(const char *right, const char *queue,
							 const char *worker_group, const char *worker_id);
extern void tq_require_join(const char *scheduler_id, const char *queue);
extern void tq_require_group(const char *right, const TqSlug *group_id,
							 const char *scheduler_id);
extern void tq_require_dead_letters(const char *queue);

/* ---- credentials.c: issues and verifies credentials of claims ---- */

/* A claim, as the worker gets it. */
typedef struct TqClaim
{
	TqSlug task_id;
	int run_id;
	const char *worker_group;
	const char *worker_id;
	TimestampTz started; /* the run */
	TimestampTz taken_until;
	Jsonb *payload;     /* NULL: left out */
	ArrayType *scopes;  /* of the task; NULL: none */
	Jsonb *credentials; /* NULL: none */
	const char *queue;  /* of a claim from several queues; NULL: left out */
} TqClaim;

extern bool tq_credentials_are_wanted(bool has_given, int32 queue);
extern void tq_credentials_issue(TqClaim *claims, int n, TimestampTz now);

/* Credentials as a client gives them: strings that need not end in a zero. */
typedef struct TqCredentials
{
	JsonbValue client_id;
	JsonbValue token;
	JsonbValue certificate;
} TqCredentials;

/* What credentials that are valid give. */
typedef struct TqClaimRights
{
	TqSlug task_id;
	int run_id;
	int32 worker; /* that has, or had, the run */
	char **scopes;
	int nscopes;
} TqClaimRights;

extern bool tq_credentials_read(const JsonbContainer *json,
								TqCredentials *credentials);
extern char *tq_credentials_client(const TqCredentials *given);
extern bool tq_credentials_verify(const TqCredentials *given, TimestampTz now,
								  TqClaimRights *rights);
extern bool tq_claim_rights_are_for(const TqClaimRights *rights,
									const TqSlug *task_id, int run_id);
extern int32 tq_credentials_require(const TqCredentials *given,
									const TqSlug *task_id, int run_id,
									TimestampTz now);
pg_noreturn extern void tq_error_credentials(void);
extern void tq_credentials_open(const TqCredentials *given, TimestampTz now,
								TqClaimRights *rights);
extern void tq_credentials_rotate(bool revoke, TimestampTz now);

/* ---- definition.c: the rules for definitions, and their faults ---- */

#define TQ_RETRIES_DEFAULT 5 /* of a definition, and of enqueue() */
#define TQ_RETRIES_MAX 49    /* the same, unless the policy gives them */

/*
 * What is wrong with a definition.  The functions that take it note a fault, and
 * return a value that is safe to go on with, so that one error has them all.
 */
typedef struct TqFaults
{
	const TqSlug *task_id;
	int element;       /* of an array, from 1; 0: there is no array */
	bool of_arguments; /* of enqueue(), and named like them */
	int n;
	int labeled;         /* the element that was named last */
	const char *key;     /* of the last one */
	const char *hint;    /* the same, or NULL */
	StringInfoData list; /* not valid if there is none */
} TqFaults;

extern void tq_definition_depend_on_self(TqTaskDefinition *definition);

extern void tq_fault(TqFaults *faults, const char *key, const char *rule);
extern void tq_fault_with_hint(TqFaults *faults, const char *key,
							   const char *rule, const char *hint);
extern void tq_faults_add_times(TqFaults *faults,
								TqTaskDefinition *definition);
extern void tq_faults_raise(const TqFaults *faults);

extern int tq_definition_priority(TqFaults *faults, const char *name);
extern bool tq_definition_requires(TqFaults *faults, const char *name);
extern ArrayType *tq_definition_routes(TqFaults *faults, char **routes, int n);
extern ArrayType *tq_definition_scopes(TqFaults *faults, char **scopes, int n);
extern Jsonb *tq_definition_tags(TqFaults *faults, Jsonb *tags);

extern void tq_definition_check_project(TqFaults *faults,
										const TqTaskDefinition *definition);
extern void
tq_definition_check_dependencies(TqFaults *faults,
								 const TqTaskDefinition *definition);
extern void tq_definition_check_sizes(TqFaults *faults,
									  const TqTaskDefinition *definition);
extern void tq_definition_check_whole(TqFaults *faults,
									  const TqTaskDefinition *definition);
extern void tq_definition_set_expires(TqNamedTask *named,
									  const TqPolicy *policy);
extern void tq_definition_apply_policy(TqFaults *faults,
									   TqTaskDefinition *definition,
									   Jsonb *policy);
extern void tq_definition_apply_default(TqTaskDefinition *definition);
extern TqRetention tq_retention_of(const TqPolicy *policy, int32 queue);
extern void tq_definition_shift_times(TqTaskDefinition *definition);
extern void tq_check_times(TqFaults *faults,
						   const TqTaskDefinition *definition,
						   TimestampTz now);

/* ---- definition_json.c: reads a task definition from JSON ---- */

extern void tq_definition_parse_existing(const TqSlug *task_id,
										 const JsonbContainer *json,
										 TqTaskDefinition *definition);
extern void tq_definition_read(TqFaults *faults, const JsonbContainer *json,
							   bool any_payload, TqTaskDefinition *definition);
extern void tq_definition_parse(const TqSlug *task_id,
								const JsonbContainer *json,
								TqTaskDefinition *definition);

/* ---- enqueue.c: definitions from the arguments of enqueue() ---- */

/* The arguments of enqueue() that are checked like a definition. */
typedef struct TqEnqueue
{
	const char *requires;
	const char *priority;
	int retries; /* TQ_OFF: not given; also the next */
	int retry;   /* retries under the policy that it stands for */
	ArrayType *routes;
	ArrayType *scopes;
	Jsonb *tags;
	Jsonb *extra;
	const char *name;
	Jsonb *policy; /* NULL: none */
	int64 delay_ms;
	TimestampTz run_at; /* 0: none; excludes a delay */
} TqEnqueue;

extern void tq_definition_fill(TqFaults *faults, TqTaskDefinition *definition,
							   const TqEnqueue *arguments);

/* ---- bucket.c: in which buckets ids are made, or refused ---- */

extern void tq_bucket_choose(TqSlug *task_id, const TqSlug *group);
extern void tq_bucket_check(const TqTaskDefinition *tasks, int n);
extern void tq_bucket_check_callback(const TqSlug *group,
									 const TqSlug *task_id);
extern bool tq_bucket_is_foreign(const TqSlug *slug);
extern FullTransactionId tq_bucket_set(MultirangeType *ranges);

/* ---- create.c: creates tasks: one or many, all or none ---- */

typedef enum TqRepeat
{
	TQ_REPEAT_EXACT, /* an existing task must be equal */
	TQ_REPEAT_LATER  /* equal except for the time of the call */
} TqRepeat;

extern int64 tq_create(TqTaskDefinition *tasks, int n, TqRepeat repeat,
					   TimestampTz now);

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
extern void tq_dependency_add(const TqTaskDefinition *definition,
							  HTAB *batch_tasks, HTAB *externals);
extern void tq_dependency_drop_blocked(TqLockedTasks *held,
									   const bool *is_final);
extern TqTask *tq_dependency_release(const TqFinal *finals, int n,
									 TimestampTz now, int **next_runs,
									 int *released);
extern bool tq_dependency_counts(const TqRun *run, int32 policy);

/* ---- add_dependencies.c: further dependencies of an unscheduled task ---- */

extern void tq_add_dependencies(const TqSlug *task_id, TqSlug *dependencies,
								int n, TimestampTz now);

/* ---- group.c: joining, sealing, canceling and resolving groups ---- */

extern int64 tq_group_join(const TqNamedTask *named,
						   TimestampTz latest_expires);
extern void tq_groups_check_own(const TqTaskDefinition *const *tasks, int n);
extern void tq_group_check_size(const TqNamedTask *joined);
extern void tq_group_get(const TqSlug *slug, TqGroup *group);
extern void tq_group_seal(const TqSlug *slug, TqGroup *group);
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
	TqSlotRequest request;
	int claims; /* that were counted, the same */
	TqRate rate;
	TimestampTz at; /* when */
} TqAllowance;

extern bool tq_limits_take(int32 queue, int max, TimestampTz now,
						   TqAllowance *allowance);
extern void tq_limits_use(const TqAllowance *allowance, int n,
						  TimestampTz now);
extern bool tq_limits_allow(int32 queue, TimestampTz now, TimestampTz *again);
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

extern TqClaim *tq_claim_best(const char *queue, const char *worker_group,
							  const char *worker_id, int max, TimestampTz now,
							  int *found, TimestampTz *again);
extern bool tq_claim_is_possible(int32 queue, TimestampTz now,
								 TimestampTz *again);
extern void tq_claim_note_seen(const char *queue, const char *worker_group,
							   const char *worker_id, TimestampTz now);
extern bool tq_claim_one(const TqSlug *task_id, int run_id,
						 const char *worker_group, const char *worker_id,
						 TimestampTz now, TqClaim *claim);
extern bool tq_claim_read(TqRunWriter *writer, const TqTask *task, int run_id,
						  int32 holder, TqEvent event, TimestampTz now,
						  TqRun *run);
extern void tq_claim_prolong(const TqSlug *task_id, int run_id, int32 holder,
							 TimestampTz now, TqClaim *claim);
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
								const char *worker_group,
								const char *worker_id, int max, int64 wait_ms,
								int *found);

/* ---- claim_wait.c: claims and reclaims that wait ---- */

extern TqClaim *tq_claim_wait(const char *queue, const char *worker_group,
							  const char *worker_id, int max, int64 wait_ms,
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
	TqSlug *groups; /* the work list: groups to cancel */
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

/* ---- artifact_request.c: requests to create an artifact ---- */

extern TqArtifact *tq_artifact_parse(const TqSlug *task_id, int run_id,
									 char *name, Jsonb *request);
extern void tq_artifact_error_expires(const TqSlug *task_id,
									  const TqArtifact *artifact,
									  const char *rule);
extern bool tq_artifact_is_uploaded(TqStorage storage);
extern char *tq_artifact_label(const TqSlug *task_id, int run_id,
							   const char *name);

/* ---- artifact.c: creates artifacts, ends uploads, reads ---- */

extern TqNamedTask *tq_artifact_create(const TqSlug *task_id,
									   TqArtifact *artifact, bool is_allowed,
									   TimestampTz now);
extern void tq_artifact_finish(const TqSlug *task_id, int run_id,
							   const char *name, const TqSlug *upload_id,
							   bool is_allowed);
extern int tq_artifact_latest_run(const TqTask *task);
extern void tq_artifact_check_run(const TqTask *task, int run_id);
extern void tq_artifact_get(const TqTask *task, int run_id, const char *name,
							TimestampTz now, TqArtifact *artifact);
extern void tq_artifact_look_up(const TqTask *task, int run_id,
								const char *name, TqArtifact *artifact);
extern Jsonb *tq_artifact_info_json(const TqArtifact *artifact);
extern Jsonb *tq_artifact_created_json(const TqNamedTask *named,
									   const TqArtifact *artifact);
extern Jsonb *tq_artifact_content_json(const TqTask *task,
									   const TqArtifact *artifact);

/* ---- group_callback.c: tasks that are created when a group resolves ---- */

extern void tq_group_callback_check(const Jsonb *payload);
extern void tq_group_callback_add(const TqSlug *group,
								  TqTaskDefinition *definition,
								  TimestampTz now);
extern void tq_group_callback_require(const TqSlug *group,
									  const TqTaskDefinition *definition);
extern bool tq_group_callback_try(int64 id, TimestampTz now);
extern int tq_group_callbacks_cancel(const TqSlug *group,
									 const TqSlug *task_id);

/* ---- dead_letter.c: keeps finally failed tasks ---- */

extern void tq_dead_letters_write(const int64 *tasks, int n, TimestampTz now);

/* ---- redrive.c: runs dead letters again, or discards them ---- */

extern TqNamedTask *tq_dead_letter_redrive(const TqSlug *task_id,
										   TimestampTz now);
extern int64 tq_dead_letters_redrive(int32 queue, int max, TimestampTz now);
extern void tq_dead_letter_discard(const TqSlug *task_id);

/* ---- repair.c: runs unsuccessful tasks again, with dependents ---- */

/* The arguments that rerun_task() and retry_task_group() have in common. */
typedef struct TqRepairHow
{
	Interval *deadline; /* NULL: deadlines stay */
	bool downstream;
} TqRepairHow;

extern void tq_repair_task(const TqTask *task, const TqRepairHow *how,
						   TimestampTz now);
extern int64 tq_repair_group(const TqSlug *slug, const TqRepairHow *how,
							 const TqResolved *reasons, int nreasons,
							 TimestampTz now);

/* ---- bulk.c: operations on many tasks of a queue, by batches ---- */

/* Places of a queue in each of which the tasks have an order. */
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

	int64 done;    /* tasks */
	int64 skipped; /* tasks that other sessions had locked */
	int64 left;    /* tasks with keys, which are not moved */

	/* the rest is private */
	int list; /* the list that is read */
	int64 after[TQ_BULK_LISTS];
	bool has_found; /* a wanted task, since the first list */
	bool is_again;  /* the tasks that were locked are tried again */
	MemoryContext memory;
	int64 *locked; /* tasks that were locked */
	int64 nlocked;
	int64 room;
	int64 tried; /* of these */
} TqBulk;

extern void tq_bulk_begin(TqBulk *bulk);
extern bool tq_bulk_next(TqBulk *bulk, TimestampTz now);

extern int tq_bulk_cancel(TqBulk *bulk, TqLockedTasks *locked,
						  TimestampTz now);
extern int tq_bulk_move(TqBulk *bulk, TqLockedTasks *locked, TimestampTz now);

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
} TqSweepRule;

extern TqSweepRule tq_sweep_by_retention(TimestampTz now);
extern TqTask *tq_sweep_find(const TqSweepRule *rule, int max, TimestampTz now,
							 int64 *after, int *found, bool *more);
extern int tq_sweep_delete(const TqSweepRule *rule, TqTask *tasks, int n,
						   TimestampTz now);
extern int tq_sweep_delete_ids(const TqSweepRule *rule, const int64 *ids,
							   int n, TimestampTz now);
extern int64 tq_sweep_all(const TqSweepRule *rule, int max, TimestampTz now);

/* ---- queue_ops.c: changes the settings of a queue, pauses, resumes ---- */

extern Jsonb *tq_queue_set(const char *queue_name, Jsonb *changes);
extern Jsonb *tq_queue_pause(const char *queue_name, bool pause);
extern Jsonb *tq_queue_get_settings(const char *queue_name);

/* ---- worker.c: resolves the runs of a worker that was removed ---- */

extern TqReport *tq_worker_remove(int32 worker, Jsonb *error, TimestampTz now,
								  int *n);

#endif /* TQ_ENGINE_H */
