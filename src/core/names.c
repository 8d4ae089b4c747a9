/*
 * names.c
 *	  Names of the enumerations, and their parsing.
 */
#include <stddef.h>
#include <string.h>

#include "names.h"

/* Returns the name of a state. */
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

/* Sets the state of that name; returns false if there is none. */
bool
tq_state_parse(const char *name, TqState *state)
{
	for (int i = 0; i < TQ_STATES; i++)
	{
		if (strcmp(name, tq_state_name((TqState) i)) == 0)
		{
			*state = (TqState) i;
			return true;
		}
	}
	return false;
}

/* Returns the name of a reasonCreated, or NULL for NONE. */
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
		case TQ_CREATED_REPAIR:
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

/* Returns the name of a reasonResolved, or NULL for NONE. */
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

/* Returns the reasonResolved of that name, or NONE. */
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

/* Returns the short name of an exchange, or NULL for NONE. */
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
		case TQ_EXCHANGE_TASK_PROGRESS:
			return "task-progress";
	}
	return NULL;
}

/*
 * AMQP's prefix of the queue service's exchanges
 * (doc/spec/taskcluster.md 6.1).
 */
#define EXCHANGE_PREFIX "exchange/taskcluster-queue/v1/"

static char
upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char) (c - 'a' + 'A') : c;
}

/*
 * Returns whether the given text is the name in camel case: taskDefined for
 * task-defined.
 */
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
 * Returns the exchange of that name, or NONE.  It accepts task-defined,
 * taskDefined as in Taskcluster's reference, and
 * exchange/taskcluster-queue/v1/task-defined as in AMQP.
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

/* Returns the name of a storage type, or NULL for NONE. */
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

/* Returns the storage type of that name, or NONE. */
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

static const char *const priorities[] = {"lowest", "very-low", "low",
										 "medium", "high",     "very-high",
										 "highest"};

/* Returns the name of a priority, or NULL if the number is out of range. */
const char *
tq_priority_name(int priority)
{
	if (priority < TQ_PRIORITY_LOWEST || priority > TQ_PRIORITY_HIGHEST)
		return NULL;
	return priorities[priority - TQ_PRIORITY_LOWEST];
}

/*
 * Returns the number of the priority of that name, 1 to 7, or 0 if there is
 * none.
 */
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
