/*
 * rules.h
 *	  Room 4: the rules.  Each file decides one thing; the API functions and the
 *	  maintenance worker call them.
 *
 * Callers have done tq_plan_open().
 */
#ifndef TQ_RULES_H
#define TQ_RULES_H

#include "publish.h"

#include "utils/hsearch.h"

/* ---- definition.c: task definitions ---- */
extern void tq_check_identifier(const char *what, const char *value);
extern void tq_check_task_queue_id(const char *value);
extern void tq_check_times(const TqTask *task, TimestampTz now);
extern TqTask *tq_definition_parse(const TqSlug *task_id, Jsonb *definition);
extern void tq_definition_depend_on_self(TqTask *task);

/* The arguments of enqueue() that are checked like a definition. */
typedef struct TqEnqueue
{
	const char *requires;
	const char *priority;
	int retries;
	ArrayType *routes;
	ArrayType *scopes;
	Jsonb *tags;
	Jsonb *extra;
	const char *name;
	Jsonb *policy; /* NULL: none */
	int64 delay_ms;
} TqEnqueue;

extern void tq_definition_check_payload(const TqTask *task);
extern void tq_definition_fill(TqTask *task, const TqEnqueue *arguments);

/* ---- status.c: JSON of tasks, groups, workers and queues ---- */
extern void tq_status_push(JsonbParseState **state, const TqTask *task,
						   const TqRun *runs, int n);
extern Jsonb *tq_status_json(const TqTask *task, const TqRun *runs, int n);
extern Jsonb *tq_status_of(const TqTask *task);
extern Jsonb *tq_definition_json(const TqTask *task);
extern Jsonb *tq_metadata_json(const char *name);
extern Jsonb *tq_runs_json(const TqRun *runs, int n);
extern Jsonb *tq_group_json(const TqGroup *group);
extern Jsonb *tq_group_message_json(const TqGroup *group);
extern Jsonb *tq_group_cancel_json(const TqGroup *group, int64 size,
								   const TqTask *tasks, int n);
extern Jsonb *tq_worker_json(const char *queue, const char *group,
							 const char *id, const TqWorker *worker);
extern Jsonb *tq_counts_json(const char *queue, int64 pending, int64 claimed);
extern Jsonb *tq_quarantine_json(const char *client, TimestampTz now,
								 TimestampTz until, const char *info);

/* ---- schedule.c: pending runs ---- */

/* A run that is to become pending. */
typedef struct TqStart
{
	const TqTask *task;
	TqCreated created;
	TqBudget budget;
	int64 seq; /* 0: at the end of the queue */
	TimestampTz scheduled;
	int64 retry_delay;   /* given by a worker; TQ_OFF: none */
	TimestampTz started; /* of a deferred run: when it first started */
	int worker;          /* of a deferred run: which worker had it */
} TqStart;

extern void tq_schedule(const TqStart *starts, int n, TimestampTz now);
extern void tq_schedule_total(TqTask *const *tasks, int n, TimestampTz now);
extern void tq_schedule_first(TqTask *const *tasks, bool at_creation, int n,
							  TimestampTz now);
extern void tq_schedule_at(TqTimer kind, const int64 *tasks,
						   const TimestampTz *due, int n);

/* ---- create.c: new tasks ---- */
typedef enum TqRepeat
{
	TQ_REPEAT_EXACT, /* an existing task must be equal */
	TQ_REPEAT_LATER  /* equal except for the time of the call */
} TqRepeat;

/* A task of the same call, on which the others may depend. */
typedef struct TqSibling
{
	TqSlug task_id;
	int place; /* index in the caller's array */
	bool is_new;
	bool is_pending; /* its first run is pending */
	const TqTask *task;
} TqSibling;

extern int64 tq_create(TqTask *tasks, int n, TqRepeat repeat, TimestampTz now);

/* Delay until a task that another session has locked is tried again. */
#define TQ_AGAIN_MS 100

/* ---- depend.c: dependencies ---- */
extern HTAB *tq_depend_prepare(const TqTask *tasks, int n, HTAB *siblings);
extern bool tq_depend_track(const TqTask *task, HTAB *siblings,
							HTAB *strangers);
extern void tq_depend_drop_blocked(TqHeld *held, const bool *is_final);
extern void tq_depend_release(const TqRun *finals, int n, TimestampTz now);

/* ---- resolve.c: the end of a run ---- */
typedef enum TqOutcome
{
	TQ_OUTCOME_RESOLVED,
	TQ_OUTCOME_RETRIED,
	TQ_OUTCOME_REPEATED,
	TQ_OUTCOME_CONFLICT,
	TQ_OUTCOME_NOT_FOUND
} TqOutcome;

typedef struct TqReport
{
	TqSlug task_id;
	int run_id;
	TqTask *task;                 /* NULL: it does not exist */
	const struct TqReport *first; /* earlier report on the same run, or NULL */
	TqRun run;                    /* the row of the run, if it has one */
	TqState state;                /* of the run before the report */
	bool is_ended;                /* the run, by this report */
	bool had_detail;              /* whether the run had details before */
	Jsonb *error;                 /* given by the worker; NULL: none */
	Jsonb *result;
	bool has_retry_delay; /* given by the worker for the next attempts */
	int64 retry_delay;    /* ms */
	bool has_retries_left;
	int retries_left;
	TqOutcome outcome;
} TqReport;

extern const char *tq_outcome_name(TqOutcome outcome);
extern void tq_resolve_reports(TqReport *reports, int n, TqResolved reason,
							   TimestampTz now);
extern void tq_resolve_drop_overdue(TqHeld *held, TimestampTz now);
extern void tq_resolve_drop_blocked(TqHeld *held, TqResolved reason,
									TimestampTz now);
extern void tq_resolve_runs(TqRun *runs, const TqTask *tasks, int n,
							TqResolved reason, TimestampTz now);

/* ---- lifecycle.c: requests of clients about one task ---- */
extern void tq_lifecycle_schedule(const TqTask *task, TimestampTz now);
extern void tq_lifecycle_rerun(const TqTask *task, TimestampTz now);
extern void tq_lifecycle_skip(const TqTask *task, Jsonb *output,
							  TimestampTz now);
extern void tq_lifecycle_cancel(const TqTask *task, TimestampTz now);
extern void tq_lifecycle_delete(const TqTask *task);

/* ---- dead_letter.c: dead letters ---- */
extern void tq_dead_letters_write(const TqRun *runs, const TqTask *tasks,
								  int n, TimestampTz now);
extern TqTask *tq_dead_letter_redrive(const TqSlug *task_id, TimestampTz now);
extern int64 tq_dead_letters_redrive(int32 queue, int max, TimestampTz now);
extern void tq_dead_letter_discard(const TqSlug *task_id);

/* ---- preset.c: presets for Conductor and Taskbroker ---- */
extern Jsonb *tq_preset_conductor(Jsonb *task_def, Jsonb *workflow_task);
extern Jsonb *tq_preset_taskbroker(Jsonb *activation);
extern const char *tq_preset_conductor_status(const TqTask *task);
extern const char *tq_preset_taskbroker_status(const TqTask *task);

/* ---- deliver.c: the publisher ---- */
extern void tq_deliver_claimable(const TqPending *rows, int n);

/* ---- priority.c: changes of priority ---- */
extern int tq_priority_check(const char *name);
extern TqTask *tq_priority_change(const TqSlug *task_id, int priority,
								  TimestampTz now);
extern Jsonb *tq_priority_change_group(const TqSlug *slug, int priority,
									   TimestampTz now);

/* ---- group.c: task groups ---- */
extern int64 tq_group_join(const TqTask *task, TimestampTz latest_expires);
extern void tq_groups_check_own(const TqTask *const *tasks, int n);
extern void tq_group_get(const TqSlug *slug, TqGroup *group);
extern void tq_group_seal(const TqSlug *slug, TqGroup *group);
extern void tq_group_cancel_rest(const TqTask *tasks, int n, TimestampTz now);
extern int64 tq_group_cancel_held(const int64 *tasks, int n,
								  TimestampTz canceled, TimestampTz now);
extern Jsonb *tq_group_cancel(const TqSlug *slug, TimestampTz now);
extern const char *tq_group_outcome(const TqProgress *progress);
extern void tq_group_tell_resolved(const int64 *tasks, int n);

/* ---- claim.c: claims ---- */
typedef struct TqClaim
{
	TqSlug task_id;
	int run_id;
	const char *worker_group;
	const char *worker_id;
	TimestampTz taken_until;
	Jsonb *payload; /* NULL: left out */
} TqClaim;

extern TqClaim *tq_claim_best(const char *queue, const char *worker_group,
							  const char *worker_id, int max, TimestampTz now,
							  int *found);
extern void tq_claim_note_seen(const char *queue, const char *worker_group,
							   const char *worker_id, TimestampTz now);
extern bool tq_claim_one(const TqSlug *task_id, int run_id,
						 const char *worker_group, const char *worker_id,
						 TimestampTz now, TqClaim *claim);
extern void tq_claim_prolong(const TqSlug *task_id, int run_id,
							 TimestampTz now, TqClaim *claim);
extern void tq_claim_defer(const TqTask *task, int run_id, int64 after_ms,
						   TimestampTz now);
extern void tq_worker_get(const char *queue, const char *group, const char *id,
						  TimestampTz now, TqWorker *worker);

/* ---- claim_wait.c: a claim that waits ---- */
extern TqClaim *tq_claim_wait(const char *queue, const char *worker_group,
							  const char *worker_id, int max, int64 wait_ms,
							  int *found);

/* ---- common errors, in lifecycle.c ---- */
extern TqTask *tq_task_get(const TqSlug *task_id, bool whole);
pg_noreturn extern void tq_refuse_missing_task(const TqSlug *task_id);
pg_noreturn extern void tq_refuse_past_deadline(const TqTask *task);
pg_noreturn extern void tq_refuse_missing_run(const TqTask *task, int run_id);

#endif /* TQ_RULES_H */
