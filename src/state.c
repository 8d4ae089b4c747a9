/*
 * state.c
 *	  The state machine: which event is legal in which state.
 *
 * Room 0, pure C.  Decides whether an event changes a task in a given state,
 * what state a reason of resolution leads to, and whether that reason may be
 * retried.  It knows neither rows nor time: that the deadline has not passed,
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
 * Rows of the table of 3.1.  A rerun of a pending task keeps it (its message
 * is sent again); a report in a resolved state is a conflict here, and the
 * rule for repeated reports (2.11, 2.12) is resolve.c's.
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
			return TQ_STATE_COMPLETED;
		case TQ_RESOLVED_FAILED:
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
			return TQ_STATE_EXCEPTION;
	}
	return TQ_STATE_EXCEPTION;
}

/* reasonCreated of the run that follows, or NONE for a reason that is final (3.2). */
TqCreated
tq_resolved_retry(TqResolved reason)
{
	switch (reason)
	{
		case TQ_RESOLVED_CLAIM_EXPIRED:
		case TQ_RESOLVED_WORKER_SHUTDOWN:
			return TQ_CREATED_RETRY;
		case TQ_RESOLVED_INTERMITTENT_TASK:
			return TQ_CREATED_TASK_RETRY;
		case TQ_RESOLVED_NONE:
		case TQ_RESOLVED_COMPLETED:
		case TQ_RESOLVED_FAILED:
		case TQ_RESOLVED_DEADLINE_EXCEEDED:
		case TQ_RESOLVED_CANCELED:
		case TQ_RESOLVED_SUPERSEDED:
		case TQ_RESOLVED_MALFORMED_PAYLOAD:
		case TQ_RESOLVED_RESOURCE_UNAVAILABLE:
		case TQ_RESOLVED_INTERNAL_ERROR:
			return TQ_CREATED_NONE;
	}
	return TQ_CREATED_NONE;
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
