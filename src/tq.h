/*
 * tq.h
 *	  The types of tq: states, reasons, events, and the pure functions on them.
 *
 * Room 0.  Nothing here depends on the server: state.c, policy.c and this
 * header compile without it, for unit tests and fuzzing.  Tables store the
 * numbers of TqState, TqCreated and TqResolved, so these must never change.
 */
#ifndef TQ_H
#define TQ_H

#include <stdbool.h>
#include <stdint.h>

/* State of a run, and so of its task (doc/spec/taskcluster.md 1.3, 1.4). */
typedef enum TqState
{
	TQ_STATE_UNSCHEDULED = 0,
	TQ_STATE_PENDING = 1,
	TQ_STATE_RUNNING = 2,
	TQ_STATE_COMPLETED = 3,
	TQ_STATE_FAILED = 4,
	TQ_STATE_EXCEPTION = 5
} TqState;

#define TQ_STATES 6

/* Why a run was created: reasonCreated (doc/spec/taskcluster.md 3.3). */
typedef enum TqCreated
{
	TQ_CREATED_NONE = 0,
	TQ_CREATED_SCHEDULED = 1,
	TQ_CREATED_RETRY = 2,
	TQ_CREATED_TASK_RETRY = 3,
	TQ_CREATED_RERUN = 4,
	TQ_CREATED_EXCEPTION = 5,
	TQ_CREATED_SKIP = 6,         /* created resolved, by skip_task() */
	TQ_CREATED_FAILURE_RETRY = 7 /* after a run that failed */
} TqCreated;

/* Why a run was resolved: reasonResolved (doc/spec/taskcluster.md 3.2). */
typedef enum TqResolved
{
	TQ_RESOLVED_NONE = 0,
	TQ_RESOLVED_COMPLETED = 1,
	TQ_RESOLVED_FAILED = 2,
	TQ_RESOLVED_DEADLINE_EXCEEDED = 3,
	TQ_RESOLVED_CANCELED = 4,
	TQ_RESOLVED_SUPERSEDED = 5,
	TQ_RESOLVED_CLAIM_EXPIRED = 6,
	TQ_RESOLVED_WORKER_SHUTDOWN = 7,
	TQ_RESOLVED_MALFORMED_PAYLOAD = 8,
	TQ_RESOLVED_RESOURCE_UNAVAILABLE = 9,
	TQ_RESOLVED_INTERNAL_ERROR = 10,
	TQ_RESOLVED_INTERMITTENT_TASK = 11,
	TQ_RESOLVED_FAILED_TERMINAL = 12,
	TQ_RESOLVED_PENDING_TIMEOUT = 13,
	TQ_RESOLVED_RUN_TIMEOUT = 14,
	TQ_RESOLVED_SKIPPED = 15,
	TQ_RESOLVED_CANCELED_BY_WORKER = 16 /* also named canceled */
} TqResolved;

#define TQ_RESOLVED_LAST TQ_RESOLVED_CANCELED_BY_WORKER

/* What can happen to an existing task (doc/spec/taskcluster.md 3.1). */
typedef enum TqEvent
{
	TQ_EVENT_SCHEDULE,         /* schedule_task */
	TQ_EVENT_DEPENDENCIES_MET, /* the last dependency was satisfied */
	TQ_EVENT_RERUN,            /* rerun_task */
	TQ_EVENT_CANCEL,           /* cancel_task, cancel_task_group */
	TQ_EVENT_DEADLINE,         /* the deadline has passed */
	TQ_EVENT_CLAIM,            /* claim_work, claim_task */
	TQ_EVENT_RECLAIM,          /* reclaim_task */
	TQ_EVENT_CLAIM_EXPIRED,    /* takenUntil has passed */
	TQ_EVENT_REPORT,           /* the worker reports how the run ended */
	TQ_EVENT_SKIP,             /* skip_task */
	TQ_EVENT_DEFER,            /* defer_task */
	TQ_EVENT_PENDING_TIMEOUT,  /* the policy's pendingTimeout has passed */
	TQ_EVENT_RUN_TIMEOUT       /* the policy's runTimeout has passed */
} TqEvent;

#define TQ_EVENTS 13

/* What an event does in a state. */
typedef enum TqVerdict
{
	TQ_VERDICT_APPLY,    /* make the transition */
	TQ_VERDICT_KEEP,     /* nothing to do, and no error */
	TQ_VERDICT_CONFLICT, /* TQ409 */
	TQ_VERDICT_NO_RUN    /* TQ404: there is no run yet */
} TqVerdict;

/*
 * Exchanges (doc/spec/taskcluster.md 6, doc/reference.md); tables store the
 * numbers.
 */
typedef enum TqExchange
{
	TQ_EXCHANGE_NONE =
		0, /* no message, but a notice to the publisher: a task was resolved,
			  or, if the state is pending, runs of a queue became claimable */
	TQ_EXCHANGE_TASK_DEFINED = 1,
	TQ_EXCHANGE_TASK_PENDING = 2,
	TQ_EXCHANGE_TASK_RUNNING = 3,
	TQ_EXCHANGE_ARTIFACT_CREATED = 4,
	TQ_EXCHANGE_TASK_COMPLETED = 5,
	TQ_EXCHANGE_TASK_FAILED = 6,
	TQ_EXCHANGE_TASK_EXCEPTION = 7,
	TQ_EXCHANGE_TASK_GROUP_RESOLVED = 8,
	TQ_EXCHANGE_TASK_GROUP_SEALED = 9,
	TQ_EXCHANGE_TASK_PRIORITY_CHANGED = 10,
	TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED = 11,
	TQ_EXCHANGE_TASK_ALERT = 12
} TqExchange;

#define TQ_EXCHANGE_LAST TQ_EXCHANGE_TASK_ALERT

/*
 * Where the content of an artifact is (doc/spec/taskcluster.md 1.7,
 * doc/reference.md); tables store the numbers.
 */
typedef enum TqStorage
{
	TQ_STORAGE_NONE = 0,
	TQ_STORAGE_BLOB = 1,
	TQ_STORAGE_REFERENCE = 2,
	TQ_STORAGE_ERROR = 3,
	TQ_STORAGE_OBJECT = 4,
	TQ_STORAGE_LINK = 5,
	TQ_STORAGE_INLINE = 6
} TqStorage;

#define TQ_STORAGE_LAST TQ_STORAGE_INLINE

/*
 * Priorities (doc/spec/taskcluster.md 1.2); the greater number is claimed
 * first.
 */
#define TQ_PRIORITY_LOWEST 1
#define TQ_PRIORITY_HIGHEST 7

/* How the delay before a new attempt grows (doc/spec/policy.md 4). */
typedef enum TqBackoff
{
	TQ_BACKOFF_FIXED = 0,
	TQ_BACKOFF_LINEAR = 1,
	TQ_BACKOFF_EXPONENTIAL = 2
} TqBackoff;

/* How the final failure or exception of a task affects other tasks. */
typedef enum TqUnsuccessful
{
	TQ_UNSUCCESSFUL_BLOCK = 0,
	TQ_UNSUCCESSFUL_CANCEL_GROUP = 1,
	TQ_UNSUCCESSFUL_TOLERATE = 2,
	TQ_UNSUCCESSFUL_FORGIVE = 3
} TqUnsuccessful;

/* A duration or a number that is not set. */
#define TQ_OFF (-1)

/* A policy (doc/spec/policy.md 2) without retries, which the task stores. */
typedef struct TqPolicy
{
	uint32_t retry_on;   /* 1 << reason, for each that is retried */
	int lost_retries;    /* TQ_OFF: a lost run uses up a retry */
	TqBackoff backoff;   /* how the delay of a new attempt grows */
	int64_t retry_delay; /* milliseconds, as are all durations that follow */
	int64_t factor;      /* of linear growth; not a duration */
	int64_t max_delay;   /* 0: no cap */
	int64_t jitter;
	int64_t claim_timeout; /* TQ_OFF: the queue's */
	int64_t run_timeout;   /* TQ_OFF: none, also in the next two */
	int64_t pending_timeout;
	int64_t total_timeout;
	bool alert_only; /* run, pending and total timeout only alert */
	TqUnsuccessful on_unsuccessful;
	bool dead_letter;
} TqPolicy;

/* The budgets that a run has left, and which attempt it is. */
typedef struct TqBudget
{
	int run_id;
	int attempt; /* from 0 */
	int retries_left;
	int lost_left;         /* TQ_OFF: no separate budget */
	int64_t visible_at;    /* not claimable before; microseconds */
	int64_t pending_until; /* not pending after; 0: no limit */
} TqBudget;

/* What follows a run that has ended. */
typedef enum TqFollow
{
	TQ_FOLLOW_NONE, /* nothing: it was the task's last run */
	TQ_FOLLOW_LOST, /* another run of the same attempt, at once */
	TQ_FOLLOW_RETRY /* a run of the next attempt */
} TqFollow;

typedef struct TqNext
{
	TqFollow follow;
	TqCreated created; /* reasonCreated of the run that follows */
	TqBudget budget;   /* of that run */
} TqNext;

extern TqVerdict tq_state_verdict(TqState state, TqEvent event);
extern bool tq_state_is_resolved(TqState state);
extern TqState tq_resolved_state(TqResolved reason);
extern TqCreated tq_resolved_retry(TqResolved reason);
extern bool tq_created_is_retry(TqCreated reason);
extern bool tq_resolved_is_reportable(TqResolved reason);
extern int tq_rerun_retries(int retries, int max_runs, int run_id);

/* policy.c */
extern const TqPolicy tq_policy_plain; /* Taskcluster's rules */
extern void tq_policy_first(const TqPolicy *policy, int retries,
							int64_t visible_at, TqBudget *budget);
extern void tq_policy_follow(const TqPolicy *policy, const TqBudget *run,
							 TqResolved reason, int64_t now, int64_t deadline,
							 int max_runs, double random, TqNext *next);
extern int64_t tq_policy_delay(const TqPolicy *policy, int attempt,
							   double random);
extern int64_t tq_policy_after(int64_t time, int64_t ms);
extern bool tq_policy_may_retry(TqResolved reason);
extern bool tq_policy_tolerates(const TqPolicy *policy, TqResolved reason);
extern bool tq_policy_applies(TqResolved reason);
extern const char *tq_policy_fault(const TqPolicy *policy, int retries,
								   int max_runs);
extern const char *tq_backoff_name(TqBackoff backoff);
extern bool tq_backoff_parse(const char *name, TqBackoff *backoff);
extern const char *tq_unsuccessful_name(TqUnsuccessful effect);
extern bool tq_unsuccessful_parse(const char *name, TqUnsuccessful *effect);

extern const char *tq_state_name(TqState state);
extern const char *tq_created_name(TqCreated reason);
extern const char *tq_resolved_name(TqResolved reason);
extern TqResolved tq_resolved_parse(const char *name);
extern TqExchange tq_state_exchange(TqState state);
extern const char *tq_exchange_name(TqExchange exchange);
extern TqExchange tq_exchange_parse(const char *name);
extern const char *tq_storage_name(TqStorage storage);
extern TqStorage tq_storage_parse(const char *name);
extern const char *tq_priority_name(int priority);
extern int tq_priority_parse(const char *name);

#endif /* TQ_H */
