/*
 * types.h
 *	  The enumerations of tq: states, reasons, events, exchanges.
 */
#ifndef TQ_TYPES_H
#define TQ_TYPES_H

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
	TQ_CREATED_SKIP = 6,          /* created resolved, by skip_task() */
	TQ_CREATED_FAILURE_RETRY = 7, /* after a run that failed */
	TQ_CREATED_REPAIR = 8 /* a rerun that makes the group active again */
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
		0, /* no message, but a notice to the publisher: a task was resolved;
			  if the state is pending, runs of a queue became claimable; if it is
			  running, a run was taken from its worker */
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
	TQ_EXCHANGE_TASK_ALERT = 12,
	TQ_EXCHANGE_TASK_PROGRESS = 13
} TqExchange;

#define TQ_EXCHANGE_LAST TQ_EXCHANGE_TASK_PROGRESS

/* The last one with a default channel: the progress of runs is sent on request. */
#define TQ_EXCHANGE_LAST_DEFAULT TQ_EXCHANGE_TASK_ALERT

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

/* A duration or a number that is not set. */
#define TQ_OFF (-1)

#endif /* TQ_TYPES_H */
