/*
 * state_test.c
 *	  The state machine of src/core/state.c without a server, printed as TAP.
 *
 * Every cell of the table (state, event) is stated here once more, from
 * doc/spec/taskcluster.md 3.1 and doc/spec/policy.md 3 and 5, in another form than the
 * code has.
 */
#include <stdio.h>
#include <string.h>

#include "../../src/core/names.h"
#include "../../src/core/state.h"
#include "../../src/core/types.h"
#include "tap.h"

/*
 * One letter per state, in the order unscheduled, pending, running, completed,
 * failed, exception: a apply, k keep, c conflict, n no run.
 */
static const struct
{
	TqEvent		event;
	const char *name;
	const char *verdicts;
}			rows[] = {
	{TQ_EVENT_SCHEDULE, "schedule", "akkkkk"},
	{TQ_EVENT_DEPENDENCIES_MET, "dependencies met", "akkkkk"},
	{TQ_EVENT_RERUN, "rerun", "akkaaa"},
	{TQ_EVENT_CANCEL, "cancel", "aaakkk"},
	{TQ_EVENT_DEADLINE, "deadline", "aaakkk"},
	{TQ_EVENT_CLAIM, "claim", "nacccc"},
	{TQ_EVENT_RECLAIM, "reclaim", "ncaccc"},
	{TQ_EVENT_CLAIM_EXPIRED, "claim expired", "kkakkk"},
	{TQ_EVENT_REPORT, "report", "ncaccc"},
	{TQ_EVENT_SKIP, "skip", "aacccc"},
	{TQ_EVENT_DEFER, "defer", "ncaccc"},
	{TQ_EVENT_PENDING_TIMEOUT, "pending timeout", "kakkkk"},
	{TQ_EVENT_RUN_TIMEOUT, "run timeout", "kaakkk"},
};

static void
check_table(void)
{
	static const char letters[] = {
		[TQ_VERDICT_APPLY] = 'a',[TQ_VERDICT_KEEP] = 'k',
		[TQ_VERDICT_CONFLICT] = 'c',[TQ_VERDICT_NO_RUN] = 'n'
	};

	check(sizeof(rows) / sizeof(rows[0]) == TQ_EVENTS, "every event has a row");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		for (int state = 0; state < TQ_STATES; state++)
		{
			char		what[100];

			snprintf(what, sizeof(what), "%s while %s", rows[i].name, tq_state_name((TqState) state));
			check(letters[tq_state_verdict((TqState) state, rows[i].event)] == rows[i].verdicts[state], what);
		}
	}
	check(tq_event_resolved(TQ_EVENT_CANCEL) == TQ_RESOLVED_CANCELED &&
		  tq_event_resolved(TQ_EVENT_DEADLINE) == TQ_RESOLVED_DEADLINE_EXCEEDED &&
		  tq_event_resolved(TQ_EVENT_CLAIM_EXPIRED) == TQ_RESOLVED_CLAIM_EXPIRED &&
		  tq_event_resolved(TQ_EVENT_SKIP) == TQ_RESOLVED_SKIPPED &&
		  tq_event_resolved(TQ_EVENT_PENDING_TIMEOUT) == TQ_RESOLVED_PENDING_TIMEOUT &&
		  tq_event_resolved(TQ_EVENT_RUN_TIMEOUT) == TQ_RESOLVED_RUN_TIMEOUT, "an event that ends a run has a reason");
	check(tq_event_resolved(TQ_EVENT_REPORT) == TQ_RESOLVED_NONE && tq_event_resolved(TQ_EVENT_RERUN) == TQ_RESOLVED_NONE,
		  "no other event has one");
}

/*
 * 3.2: reason, state of the run, reasonCreated of a retry, may report_exception
 * name it; by their numbers, which are stored.
 */
static void
check_reasons(void)
{
	static const struct
	{
		const char *name;
		TqState		state;
		TqCreated	retry;
		bool		reportable;
	}			reasons[] = {
		{"completed", TQ_STATE_COMPLETED, TQ_CREATED_NONE, false},
		{"failed", TQ_STATE_FAILED, TQ_CREATED_FAILURE_RETRY, false},
		{"deadline-exceeded", TQ_STATE_EXCEPTION, TQ_CREATED_NONE, false},
		{"canceled", TQ_STATE_EXCEPTION, TQ_CREATED_NONE, false},
		{"superseded", TQ_STATE_EXCEPTION, TQ_CREATED_NONE, false},
		{"claim-expired", TQ_STATE_EXCEPTION, TQ_CREATED_RETRY, false},
		{"worker-shutdown", TQ_STATE_EXCEPTION, TQ_CREATED_RETRY, true},
		{"malformed-payload", TQ_STATE_EXCEPTION, TQ_CREATED_NONE, true},
		{"resource-unavailable", TQ_STATE_EXCEPTION, TQ_CREATED_RETRY, true},
		{"internal-error", TQ_STATE_EXCEPTION, TQ_CREATED_RETRY, true},
		{"intermittent-task", TQ_STATE_EXCEPTION, TQ_CREATED_TASK_RETRY, true},
		{"failed-terminal", TQ_STATE_FAILED, TQ_CREATED_NONE, false},
		{"pending-timeout", TQ_STATE_EXCEPTION, TQ_CREATED_RETRY, false},
		{"run-timeout", TQ_STATE_EXCEPTION, TQ_CREATED_RETRY, false},
		{"skipped", TQ_STATE_COMPLETED, TQ_CREATED_NONE, false},
		{"canceled", TQ_STATE_EXCEPTION, TQ_CREATED_NONE, false},	/* by its worker */
	};

	check(sizeof(reasons) / sizeof(reasons[0]) == TQ_RESOLVED_LAST, "every reason has a row");
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
	{
		TqResolved	reason = (TqResolved) (i + 1);
		TqResolved	named = reason == TQ_RESOLVED_CANCELED_BY_WORKER ? TQ_RESOLVED_CANCELED : reason;

		check(tq_resolved_parse(reasons[i].name) == named &&
			  strcmp(tq_resolved_name(reason), reasons[i].name) == 0 &&
			  tq_resolved_state(reason) == reasons[i].state &&
			  tq_resolved_retry(reason) == reasons[i].retry &&
			  tq_resolved_is_reportable(reason) == reasons[i].reportable, reasons[i].name);
	}
	check(tq_resolved_parse("done") == TQ_RESOLVED_NONE, "an unknown reason is none");
	check(tq_resolved_name(TQ_RESOLVED_NONE) == NULL && tq_resolved_retry(TQ_RESOLVED_NONE) == TQ_CREATED_NONE &&
		  !tq_resolved_is_reportable(TQ_RESOLVED_NONE), "none has no name, and nothing follows it");
}

/* 3.3: reasonCreated, and whether it is that of a run that another led to. */
static void
check_created(void)
{
	static const struct
	{
		const char *name;
		bool		is_retry;
		bool		is_rerun;
	}			reasons[] = {
		{"scheduled", false, false},
		{"retry", true, false},
		{"task-retry", true, false},
		{"rerun", false, true},
		{"exception", false, false},
		{"skip", false, false},
		{"failure-retry", true, false},
		{"rerun", false, true},
	};

	check(sizeof(reasons) / sizeof(reasons[0]) == TQ_CREATED_REPAIR, "every reasonCreated has a row");
	for (int i = 0; i < TQ_CREATED_REPAIR; i++)
	{
		TqCreated	reason = (TqCreated) (i + 1);

		check(strcmp(tq_created_name(reason), reasons[i].name) == 0 &&
			  tq_created_is_retry(reason) == reasons[i].is_retry &&
			  tq_created_is_rerun(reason) == reasons[i].is_rerun, reasons[i].name);
	}
	check(tq_created_name(TQ_CREATED_NONE) == NULL && !tq_created_is_retry(TQ_CREATED_NONE) &&
		  !tq_created_is_rerun(TQ_CREATED_NONE), "none is no retry");
}

/* 3.4 */
static void
check_reruns(void)
{
	check(tq_rerun_retries(5, 50, 1) == 5, "a rerun gives all retries back");
	check(tq_rerun_retries(5, 50, 48) == 1, "48 runs, then a rerun: 1 retry");
	check(tq_rerun_retries(5, 50, 49) == 0, "49 runs, then a rerun: none");
	check(tq_rerun_retries(49, 50, 0) == 49, "a first run by rerun: 49");
	check(tq_rerun_retries(5, 1, 7) == 0, "never less than none");
}

static void
check_priorities(void)
{
	check(tq_priority_parse("lowest") == 1 && tq_priority_parse("highest") == 7, "priorities are 1 to 7");
	check(tq_priority_parse("normal") == 0, "normal is no priority");
	check(tq_priority_name(0) == NULL && tq_priority_name(8) == NULL, "others have no name");
	for (int priority = 1; priority <= 7; priority++)
		check(tq_priority_parse(tq_priority_name(priority)) == priority, tq_priority_name(priority));
}

static void
check_exchanges(void)
{
	static const struct
	{
		const char *name;
		TqExchange exchange;
	} names[] = {
		/* Those of the seed, as it spells them. */
		{"taskDefined", TQ_EXCHANGE_TASK_DEFINED},
		{"taskPending", TQ_EXCHANGE_TASK_PENDING},
		{"taskRunning", TQ_EXCHANGE_TASK_RUNNING},
		{"artifactCreated", TQ_EXCHANGE_ARTIFACT_CREATED},
		{"taskCompleted", TQ_EXCHANGE_TASK_COMPLETED},
		{"taskFailed", TQ_EXCHANGE_TASK_FAILED},
		{"taskException", TQ_EXCHANGE_TASK_EXCEPTION},
		{"taskGroupResolved", TQ_EXCHANGE_TASK_GROUP_RESOLVED},
		{"exchange/taskcluster-queue/v1/task-defined", TQ_EXCHANGE_TASK_DEFINED},
		{"exchange/taskcluster-queue/v1/task-pending", TQ_EXCHANGE_TASK_PENDING},
		{"exchange/taskcluster-queue/v1/task-running", TQ_EXCHANGE_TASK_RUNNING},
		{"exchange/taskcluster-queue/v1/artifact-created", TQ_EXCHANGE_ARTIFACT_CREATED},
		{"exchange/taskcluster-queue/v1/task-completed", TQ_EXCHANGE_TASK_COMPLETED},
		{"exchange/taskcluster-queue/v1/task-failed", TQ_EXCHANGE_TASK_FAILED},
		{"exchange/taskcluster-queue/v1/task-exception", TQ_EXCHANGE_TASK_EXCEPTION},
		{"exchange/taskcluster-queue/v1/task-group-resolved", TQ_EXCHANGE_TASK_GROUP_RESOLVED},
		/* Others in the same way. */
		{"taskGroupSealed", TQ_EXCHANGE_TASK_GROUP_SEALED},
		{"taskGroupPriorityChanged", TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED},
		{"exchange/taskcluster-queue/v1/task-alert", TQ_EXCHANGE_TASK_ALERT},
		{"taskProgress", TQ_EXCHANGE_TASK_PROGRESS},
		/* And no others. */
		{"", TQ_EXCHANGE_NONE},
		{"exchange/taskcluster-queue/v1/", TQ_EXCHANGE_NONE},
		{"exchange/taskcluster-queue/v1/exchange/taskcluster-queue/v1/task-alert", TQ_EXCHANGE_NONE},
		{"exchange/taskcluster-queue/v1/taskDefined", TQ_EXCHANGE_NONE},
		{"TaskDefined", TQ_EXCHANGE_NONE},
		{"taskdefined", TQ_EXCHANGE_NONE},
		{"task-Defined", TQ_EXCHANGE_NONE},
		{"taskGroup-resolved", TQ_EXCHANGE_NONE},
		{"taskDefine", TQ_EXCHANGE_NONE},
		{"taskDefineds", TQ_EXCHANGE_NONE},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check(tq_exchange_parse(names[i].name) == names[i].exchange, names[i].name);
	for (int exchange = TQ_EXCHANGE_TASK_DEFINED; exchange <= TQ_EXCHANGE_LAST; exchange++)
		check(tq_exchange_parse(tq_exchange_name((TqExchange) exchange)) == (TqExchange) exchange,
			tq_exchange_name((TqExchange) exchange));
}

int
main(void)
{
	check_table();
	check_reasons();
	check_created();
	check_reruns();
	check_priorities();
	check_exchanges();
	return end_of_checks();
}
