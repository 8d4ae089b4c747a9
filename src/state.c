/*
 * state.c
 *	  The state machine: which event is legal in which state.
 *
 * Room 0, pure C.  Decides whether an event changes a task in a given state,
 * what state a reason of resolution leads to, and as what a run is created
 * that follows it.  It knows neither rows nor time: that the deadline has not passed,
 * that a run is the last one, or that a budget is left is asked by the rules.
 * Follows spec/taskcluster.md 3.1 to 3.4; nothing else in tq decides whether
 * a transition is legal.
 */
#include <string.h>

#include "tq.h"

#define APPLY TQ_VERDICT_APPLY
#define KEEP TQ_VERDICT_KEEP
#define CONFLICT TQ_VERDICT_CONFLICT
#define NO_RUN TQ_VERDICT_NO_RUN

/*
 * Rows of the table of 3.1, then those of spec/policy.md 5.  A rerun of a
 * pending task keeps it (its message is sent again); a report in a resolved
 * state is a conflict here, and the rule for repeated reports (2.11, 2.12) is
 * resolve.c's.  A pending run whose time to run is over is one that was
 * deferred.
 */
static const TqVerdict verdicts[TQ_EVENTS][TQ_STATES] = {
	/* unscheduled, pending, running, completed, failed, exception */
	[TQ_EVENT_SCHEDULE] = {APPLY, KEEP, KEEP, KEEP, KEEP, KEEP},
	[TQ_EVENT_DEPENDENCIES_MET] = {APPLY, KEEP, KEEP, KEEP, KEEP, KEEP},
	[TQ_EVENT_RERUN] = {APPLY, KEEP, KEEP, APPLY, APPLY, APPLY},
	[TQ_EVENT_CANCEL] = {APPLY, APPLY, APPLY, KEEP, KEEP, KEEP},
	[TQ_EVENT_DEADLINE] = {APPLY, APPLY, APPLY, KEEP, KEEP, KEEP},
	[TQ_EVENT_CLAIM] = {NO_RUN, APPLY, CONFLICT, CONFLICT, CONFLICT, CONFLICT},
	[TQ_EVENT_RECLAIM] =
		{NO_RUN, CONFLICT, APPLY, CONFLICT, CONFLICT, CONFLICT},
	[TQ_EVENT_CLAIM_EXPIRED] = {KEEP, KEEP, APPLY, KEEP, KEEP, KEEP},
	[TQ_EVENT_REPORT] =
		{NO_RUN, CONFLICT, APPLY, CONFLICT, CONFLICT, CONFLICT},
	[TQ_EVENT_SKIP] = {APPLY, APPLY, CONFLICT, CONFLICT, CONFLICT, CONFLICT},
	[TQ_EVENT_DEFER] = {NO_RUN, CONFLICT, APPLY, CONFLICT, CONFLICT, CONFLICT},
	[TQ_EVENT_PENDING_TIMEOUT] = {KEEP, APPLY, KEEP, KEEP, KEEP, KEEP},
	[TQ_EVENT_RUN_TIMEOUT] = {KEEP, APPLY, APPLY, KEEP, KEEP, KEEP},
};

/* What an event does to a task in that state. */
TqVerdict
tq_state_verdict(TqState state, TqEvent event)
{
	return verdicts[event][state];
}

/* A resolved run never changes again. */
bool
tq_state_is_resolved(TqState state)
{
	switch (state)
	{
		case TQ_STATE_UNSCHEDULED:
		case TQ_STATE_PENDING:
		case TQ_STATE_RUNNING:
			return false;
		case TQ_STATE_COMPLETED:
		case TQ_STATE_FAILED:
		case TQ_STATE_EXCEPTION:
			return true;
	}
	return false;
}

/* The state of a run that was resolved for this reason (1.4). */
TqState
tq_resolved_state(TqResolved reason)
{
	switch (reason)
	{
		case TQ_RESOLVED_COMPLETED:
		case TQ_RESOLVED_SKIPPED:
			return TQ_STATE_COMPLETED;
		case TQ_RESOLVED_FAILED:
		case TQ_RESOLVED_FAILED_TERMINAL:
			return TQ_STATE_FAILED;
		case TQ_RESOLVED_NONE:
		case TQ_RESOLVED_DEADLINE_EXCEEDED:
		case TQ_RESOLVED_CANCELED:
		case TQ_RESOLVED_SUPERSEDED:
		case TQ_RESOLVED_CLAIM_EXPIRED:
		case TQ_RESOLVED_WORKER_SHUTDOWN:
		case TQ_RESOLVED_MALFORMED_PAYLOAD:
		case TQ_RESOLVED_RESOURCE_UNAVAILABLE:
		case TQ_RESOLVED_INTERNAL_ERROR:
		case TQ_RESOLVED_INTERMITTENT_TASK:
		case TQ_RESOLVED_PENDING_TIMEOUT:
		case TQ_RESOLVED_RUN_TIMEOUT:
		case TQ_RESOLVED_CANCELED_BY_WORKER:
			return TQ_STATE_EXCEPTION;
	}
	return TQ_STATE_EXCEPTION;
}

/*
 * reasonCreated of a run that follows one that was resolved so (3.2;
 * spec/policy.md 3), or NONE for a reason that no policy can retry.
 */
TqCreated
tq_resolved_retry(TqResolved reason)
{
	switch (reason)
	{
		case TQ_RESOLVED_CLAIM_EXPIRED:
		case TQ_RESOLVED_WORKER_SHUTDOWN:
		case TQ_RESOLVED_PENDING_TIMEOUT:
		case TQ_RESOLVED_RUN_TIMEOUT:
		case TQ_RESOLVED_RESOURCE_UNAVAILABLE:
		case TQ_RESOLVED_INTERNAL_ERROR:
			return TQ_CREATED_RETRY;
		case TQ_RESOLVED_INTERMITTENT_TASK:
			return TQ_CREATED_TASK_RETRY;
		case TQ_RESOLVED_FAILED:
			return TQ_CREATED_FAILURE_RETRY;
		case TQ_RESOLVED_NONE:
		case TQ_RESOLVED_COMPLETED:
		case TQ_RESOLVED_DEADLINE_EXCEEDED:
		case TQ_RESOLVED_CANCELED:
		case TQ_RESOLVED_SUPERSEDED:
		case TQ_RESOLVED_MALFORMED_PAYLOAD:
		case TQ_RESOLVED_FAILED_TERMINAL:
		case TQ_RESOLVED_SKIPPED:
		case TQ_RESOLVED_CANCELED_BY_WORKER:
			return TQ_CREATED_NONE;
	}
	return TQ_CREATED_NONE;
}

/* Was a run created because the one before it was resolved and may be retried? */
bool
tq_created_is_retry(TqCreated reason)
{
	switch (reason)
	{
		case TQ_CREATED_RETRY:
		case TQ_CREATED_TASK_RETRY:
		case TQ_CREATED_FAILURE_RETRY:
			return true;
		case TQ_CREATED_NONE:
		case TQ_CREATED_SCHEDULED:
		case TQ_CREATED_RERUN:
		case TQ_CREATED_EXCEPTION:
		case TQ_CREATED_SKIP:
			return false;
	}
	return false;
}

/* Reasons that report_exception takes (2.12). */
bool
tq_resolved_is_reportable(TqResolved reason)
{
	switch (reason)
	{
		case TQ_RESOLVED_WORKER_SHUTDOWN:
		case TQ_RESOLVED_MALFORMED_PAYLOAD:
		case TQ_RESOLVED_RESOURCE_UNAVAILABLE:
		case TQ_RESOLVED_INTERNAL_ERROR:
		case TQ_RESOLVED_INTERMITTENT_TASK:
			return true;
		case TQ_RESOLVED_NONE:
		case TQ_RESOLVED_COMPLETED:
		case TQ_RESOLVED_FAILED:
		case TQ_RESOLVED_DEADLINE_EXCEEDED:
		case TQ_RESOLVED_CANCELED:
		case TQ_RESOLVED_SUPERSEDED:
		case TQ_RESOLVED_CLAIM_EXPIRED:
		case TQ_RESOLVED_FAILED_TERMINAL:
		case TQ_RESOLVED_PENDING_TIMEOUT:
		case TQ_RESOLVED_RUN_TIMEOUT:
		case TQ_RESOLVED_SKIPPED:
		case TQ_RESOLVED_CANCELED_BY_WORKER:
			return false;
	}
	return false;
}

/*
 * retriesLeft after a rerun that creates run number run_id: what the task was
 * given, but never more runs in all than max_runs (3.4).
 */
int
tq_rerun_retries(int retries, int max_runs, int run_id)
{
	int room = max_runs - (run_id + 1);

	if (room < 0)
		room = 0;
	return retries < room ? retries : room;
}

const char *
tq_state_name(TqState state)
{
	switch (state)
	{
		case TQ_STATE_UNSCHEDULED:
			return "unscheduled";
		case TQ_STATE_PENDING:
			return "pending";
		case TQ_STATE_RUNNING:
			return "running";
		case TQ_STATE_COMPLETED:
			return "completed";
		case TQ_STATE_FAILED:
			return "failed";
		case TQ_STATE_EXCEPTION:
			return "exception";
	}
	return NULL;
}

const char *
tq_created_name(TqCreated reason)
{
	switch (reason)
	{
		case TQ_CREATED_NONE:
			return NULL;
		case TQ_CREATED_SCHEDULED:
			return "scheduled";
		case TQ_CREATED_RETRY:
			return "retry";
		case TQ_CREATED_TASK_RETRY:
			return "task-retry";
		case TQ_CREATED_RERUN:
			return "rerun";
		case TQ_CREATED_EXCEPTION:
			return "exception";
		case TQ_CREATED_SKIP:
			return "skip";
		case TQ_CREATED_FAILURE_RETRY:
			return "failure-retry";
	}
	return NULL;
}

const char *
tq_resolved_name(TqResolved reason)
{
	switch (reason)
	{
		case TQ_RESOLVED_NONE:
			return NULL;
		case TQ_RESOLVED_COMPLETED:
			return "completed";
		case TQ_RESOLVED_FAILED:
			return "failed";
		case TQ_RESOLVED_DEADLINE_EXCEEDED:
			return "deadline-exceeded";
		case TQ_RESOLVED_CANCELED:
		case TQ_RESOLVED_CANCELED_BY_WORKER:
			return "canceled";
		case TQ_RESOLVED_SUPERSEDED:
			return "superseded";
		case TQ_RESOLVED_CLAIM_EXPIRED:
			return "claim-expired";
		case TQ_RESOLVED_WORKER_SHUTDOWN:
			return "worker-shutdown";
		case TQ_RESOLVED_MALFORMED_PAYLOAD:
			return "malformed-payload";
		case TQ_RESOLVED_RESOURCE_UNAVAILABLE:
			return "resource-unavailable";
		case TQ_RESOLVED_INTERNAL_ERROR:
			return "internal-error";
		case TQ_RESOLVED_INTERMITTENT_TASK:
			return "intermittent-task";
		case TQ_RESOLVED_FAILED_TERMINAL:
			return "failed-terminal";
		case TQ_RESOLVED_PENDING_TIMEOUT:
			return "pending-timeout";
		case TQ_RESOLVED_RUN_TIMEOUT:
			return "run-timeout";
		case TQ_RESOLVED_SKIPPED:
			return "skipped";
	}
	return NULL;
}

/* The reason of that name, or NONE. */
TqResolved
tq_resolved_parse(const char *name)
{
	for (int reason = TQ_RESOLVED_COMPLETED; reason <= TQ_RESOLVED_LAST;
		 reason++)
	{
		if (strcmp(name, tq_resolved_name((TqResolved) reason)) == 0)
			return (TqResolved) reason;
	}
	return TQ_RESOLVED_NONE;
}

/* The exchange on which it is said that a run has come into this state (6.1). */
TqExchange
tq_state_exchange(TqState state)
{
	switch (state)
	{
		case TQ_STATE_UNSCHEDULED:
			return TQ_EXCHANGE_TASK_DEFINED;
		case TQ_STATE_PENDING:
			return TQ_EXCHANGE_TASK_PENDING;
		case TQ_STATE_RUNNING:
			return TQ_EXCHANGE_TASK_RUNNING;
		case TQ_STATE_COMPLETED:
			return TQ_EXCHANGE_TASK_COMPLETED;
		case TQ_STATE_FAILED:
			return TQ_EXCHANGE_TASK_FAILED;
		case TQ_STATE_EXCEPTION:
			return TQ_EXCHANGE_TASK_EXCEPTION;
	}
	return TQ_EXCHANGE_NONE;
}

const char *
tq_exchange_name(TqExchange exchange)
{
	switch (exchange)
	{
		case TQ_EXCHANGE_NONE:
			return NULL;
		case TQ_EXCHANGE_TASK_DEFINED:
			return "task-defined";
		case TQ_EXCHANGE_TASK_PENDING:
			return "task-pending";
		case TQ_EXCHANGE_TASK_RUNNING:
			return "task-running";
		case TQ_EXCHANGE_ARTIFACT_CREATED:
			return "artifact-created";
		case TQ_EXCHANGE_TASK_COMPLETED:
			return "task-completed";
		case TQ_EXCHANGE_TASK_FAILED:
			return "task-failed";
		case TQ_EXCHANGE_TASK_EXCEPTION:
			return "task-exception";
		case TQ_EXCHANGE_TASK_GROUP_RESOLVED:
			return "task-group-resolved";
		case TQ_EXCHANGE_TASK_GROUP_SEALED:
			return "task-group-sealed";
		case TQ_EXCHANGE_TASK_PRIORITY_CHANGED:
			return "task-priority-changed";
		case TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED:
			return "task-group-priority-changed";
		case TQ_EXCHANGE_TASK_ALERT:
			return "task-alert";
	}
	return NULL;
}

/* The name of an exchange of the queue service, as AMQP has it (6.1). */
#define EXCHANGE_PREFIX "exchange/taskcluster-queue/v1/"

static char
upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char) (c - 'a' + 'A') : c;
}

/* Is this the name with its words joined: taskDefined for task-defined? */
static bool
is_joined(const char *given, const char *name)
{
	for (; *name != '\0'; name++, given++)
	{
		if (*name == '-' ? *given != upper(*++name) : *given != *name)
			return false;
	}
	return *given == '\0';
}

/*
 * Returns the exchange of that name, or NONE: task-defined, which Taskcluster's
 * reference calls taskDefined and AMQP exchange/taskcluster-queue/v1/task-defined.
 */
TqExchange
tq_exchange_parse(const char *name)
{
	bool is_whole = strncmp(name, EXCHANGE_PREFIX, strlen(EXCHANGE_PREFIX)) ==
					0;

	if (is_whole)
		name += strlen(EXCHANGE_PREFIX);
	for (int exchange = TQ_EXCHANGE_TASK_DEFINED; exchange <= TQ_EXCHANGE_LAST;
		 exchange++)
	{
		const char *own = tq_exchange_name((TqExchange) exchange);

		if (strcmp(name, own) == 0 || (!is_whole && is_joined(name, own)))
			return (TqExchange) exchange;
	}
	return TQ_EXCHANGE_NONE;
}

const char *
tq_storage_name(TqStorage storage)
{
	switch (storage)
	{
		case TQ_STORAGE_NONE:
			return NULL;
		case TQ_STORAGE_BLOB:
			return "blob";
		case TQ_STORAGE_REFERENCE:
			return "reference";
		case TQ_STORAGE_ERROR:
			return "error";
		case TQ_STORAGE_OBJECT:
			return "object";
		case TQ_STORAGE_LINK:
			return "link";
		case TQ_STORAGE_INLINE:
			return "inline";
	}
	return NULL;
}

/* The storage type of that name, or NONE. */
TqStorage
tq_storage_parse(const char *name)
{
	for (int storage = TQ_STORAGE_BLOB; storage <= TQ_STORAGE_LAST; storage++)
	{
		if (strcmp(name, tq_storage_name((TqStorage) storage)) == 0)
			return (TqStorage) storage;
	}
	return TQ_STORAGE_NONE;
}

static const char *const priorities[] =
	{"lowest", "very-low", "low", "medium", "high", "very-high", "highest"};

const char *
tq_priority_name(int priority)
{
	if (priority < TQ_PRIORITY_LOWEST || priority > TQ_PRIORITY_HIGHEST)
		return NULL;
	return priorities[priority - TQ_PRIORITY_LOWEST];
}

/* The number of that priority, 1 to 7, or 0 when there is none of that name. */
int
tq_priority_parse(const char *name)
{
	for (int priority = TQ_PRIORITY_LOWEST; priority <= TQ_PRIORITY_HIGHEST;
		 priority++)
	{
		if (strcmp(name, tq_priority_name(priority)) == 0)
			return priority;
	}
	return 0;
}
