/*
 * state.c
 *	  The state machine: which event is legal in which state.
 *
 * Pure C.  Decides whether an event changes a task in a given state, to which
 * state the reason of a resolution leads, and with which reasonCreated a retry
 * is created.  It knows neither rows nor time: the callers check that the
 * deadline has not passed, that the run is the task's last, and that a retry is
 * left.  Follows doc/spec/taskcluster.md 3.1 to 3.4.  Nothing else in tq
 * decides whether a transition is legal.
 */
#include <string.h>

#include "state.h"

#define APPLY TQ_VERDICT_APPLY
#define KEEP TQ_VERDICT_KEEP
#define CONFLICT TQ_VERDICT_CONFLICT
#define NO_RUN TQ_VERDICT_NO_RUN

/*
 * The table of doc/spec/taskcluster.md 3.1, followed by the events of
 * doc/spec/policy.md 5.  A rerun of a pending task keeps its state, and only
 * the message is sent again.  A report in a resolved state is a conflict here;
 * report.c implements the rule for repeated reports
 * (doc/spec/taskcluster.md 2.11, 2.12).  TQ_EVENT_RUN_TIMEOUT applies to a
 * pending run too, because a run that was deferred is pending while its
 * runTimeout goes on.
 */
static const TqVerdict verdicts[TQ_EVENTS][TQ_STATES] = {
	/* unscheduled, pending, running, completed, failed, exception */
	[TQ_EVENT_SCHEDULE] = {APPLY, KEEP, KEEP, KEEP, KEEP, KEEP},
	[TQ_EVENT_DEPENDENCIES_MET] = {APPLY, KEEP, KEEP, KEEP, KEEP, KEEP},
	[TQ_EVENT_RERUN] = {APPLY, KEEP, KEEP, APPLY, APPLY, APPLY},
	[TQ_EVENT_CANCEL] = {APPLY, APPLY, APPLY, KEEP, KEEP, KEEP},
	[TQ_EVENT_DEADLINE] = {APPLY, APPLY, APPLY, KEEP, KEEP, KEEP},
	[TQ_EVENT_CLAIM] = {NO_RUN, APPLY, CONFLICT, CONFLICT, CONFLICT, CONFLICT},
	[TQ_EVENT_RECLAIM] = {NO_RUN, CONFLICT, APPLY, CONFLICT, CONFLICT,
						  CONFLICT},
	[TQ_EVENT_CLAIM_EXPIRED] = {KEEP, KEEP, APPLY, KEEP, KEEP, KEEP},
	[TQ_EVENT_REPORT] = {NO_RUN, CONFLICT, APPLY, CONFLICT, CONFLICT,
						 CONFLICT},
	[TQ_EVENT_SKIP] = {APPLY, APPLY, CONFLICT, CONFLICT, CONFLICT, CONFLICT},
	[TQ_EVENT_DEFER] = {NO_RUN, CONFLICT, APPLY, CONFLICT, CONFLICT, CONFLICT},
	[TQ_EVENT_PENDING_TIMEOUT] = {KEEP, APPLY, KEEP, KEEP, KEEP, KEEP},
	[TQ_EVENT_RUN_TIMEOUT] = {KEEP, APPLY, APPLY, KEEP, KEEP, KEEP},
};

/* Returns what an event does to a task in that state. */
TqVerdict
tq_state_verdict(TqState state, TqEvent event)
{
	return verdicts[event][state];
}

/*
 * Returns the reason for which an event ends a run, or NONE if it ends none or
 * if the worker reports the reason.
 */
TqResolved
tq_event_resolved(TqEvent event)
{
	static const TqResolved reasons[TQ_EVENTS] = {
		[TQ_EVENT_CANCEL] = TQ_RESOLVED_CANCELED,
		[TQ_EVENT_DEADLINE] = TQ_RESOLVED_DEADLINE_EXCEEDED,
		[TQ_EVENT_CLAIM_EXPIRED] = TQ_RESOLVED_CLAIM_EXPIRED,
		[TQ_EVENT_SKIP] = TQ_RESOLVED_SKIPPED,
		[TQ_EVENT_PENDING_TIMEOUT] = TQ_RESOLVED_PENDING_TIMEOUT,
		[TQ_EVENT_RUN_TIMEOUT] = TQ_RESOLVED_RUN_TIMEOUT,
	};

	return reasons[event];
}

/*
 * Returns whether a state is final for its run: a resolved run never changes
 * again.
 */
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

/*
 * Returns the state of a run that was resolved for this reason
 * (doc/spec/taskcluster.md 1.4).
 */
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
 * Returns reasonCreated of a run that follows one resolved for this reason
 * (doc/spec/taskcluster.md 3.2, doc/spec/policy.md 3), or NONE for a reason
 * that no policy can retry.
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

/* Returns whether a run was created as the retry of the run before it. */
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
		case TQ_CREATED_REPAIR:
			return false;
	}
	return false;
}

/* Returns whether a run was created for a task that was resolved before. */
bool
tq_created_is_rerun(TqCreated reason)
{
	switch (reason)
	{
		case TQ_CREATED_RERUN:
		case TQ_CREATED_REPAIR:
			return true;
		case TQ_CREATED_NONE:
		case TQ_CREATED_SCHEDULED:
		case TQ_CREATED_RETRY:
		case TQ_CREATED_TASK_RETRY:
		case TQ_CREATED_FAILURE_RETRY:
		case TQ_CREATED_EXCEPTION:
		case TQ_CREATED_SKIP:
			return false;
	}
	return false;
}

/*
 * Returns whether report_exception() accepts this reason
 * (doc/spec/taskcluster.md 2.12).
 */
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
 * Returns retriesLeft after a rerun that creates run number run_id: the
 * retries of the task, limited so that the task never has more than max_runs
 * runs in all (doc/spec/taskcluster.md 3.4).
 */
int
tq_rerun_retries(int retries, int max_runs, int run_id)
{
	int room = max_runs - (run_id + 1);

	if (room < 0)
		room = 0;
	return retries < room ? retries : room;
}

/*
 * Returns the exchange that announces a run in this state
 * (doc/spec/taskcluster.md 6.1).
 */
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
