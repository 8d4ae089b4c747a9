/*
 * conductor.c
 *	  Preset for Conductor: its settings as a policy, and the state of a task in
 *	  its terms.
 *
 * Decides what a key of a Conductor TaskDef or WorkflowTask means here
 * (doc/spec/policy.md 7, 9, 10; doc/spec/conductor.md 2, 5, 6).  Other keys are
 * ignored, whether Conductor knows them or not, because its JSON grows with
 * each version.  policy.c carries the policy out.
 */
#include "postgres.h"

#include "utils/jsonb.h"

#include "../core/policy.h"
#include "../core/types.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "engine.h"

/* Defaults (doc/spec/conductor.md 2.1). */
#define DEFAULT_RETRIES 3
#define DEFAULT_DELAY 60
#define DEFAULT_RESPONSE 3600

/* Conductor's timeoutPolicy. */
typedef enum Overdue
{
	OVERDUE_RETRY,
	OVERDUE_TIME_OUT_WF,
	OVERDUE_ALERT_ONLY
} Overdue;

static const char *const overdue_names[] =
	{[OVERDUE_RETRY] = "RETRY",
	 [OVERDUE_TIME_OUT_WF] = "TIME_OUT_WF",
	 [OVERDUE_ALERT_ONLY] = "ALERT_ONLY",
	 NULL};

/* Conductor's retryLogic. */
static const char *const backoff_names[] =
	{[TQ_BACKOFF_FIXED] = "FIXED",
	 [TQ_BACKOFF_LINEAR] = "LINEAR_BACKOFF",
	 [TQ_BACKOFF_EXPONENTIAL] = "EXPONENTIAL_BACKOFF",
	 NULL};

/*
 * Raises an error if the inner time is longer than the outer one, which
 * encloses it unless it is 0.
 */
static void
check_encloses(const TqPreset *source, const char *outer, const char *inner)
{
	const TqPreset *holder = source;
	int64 seconds = tq_preset_number(source, inner, 0, 0);
	int64 limit = tq_preset_number(source, outer, 0, 0);

	if (limit == 0 || seconds <= limit)
		return;
	(void) tq_preset_find(&holder, inner);
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("invalid \"%s\" in %s", inner, holder->name),
					errdetail("\"%s\" is " INT64_FORMAT
							  ", and \"%s\" is " INT64_FORMAT ".",
							  inner, seconds, outer, limit),
					errhint("Give a \"%s\" that is not greater than \"%s\".",
							inner, outer)));
}

static Overdue
get_overdue(const TqPreset *source)
{
	return (Overdue) tq_preset_choice(source, "timeoutPolicy", overdue_names,
									  OVERDUE_TIME_OUT_WF);
}

/*
 * Returns runTimeout, from timeoutSeconds, or 0 for none.  A task that is
 * completed asynchronously and whose timeout only alerts must keep its claim
 * beyond the timeout.  No claim may outlast runTimeout, so such a task has no
 * runTimeout.
 */
static int64
run_timeout(const TqPreset *source)
{
	int64 seconds = tq_preset_number(source, "timeoutSeconds", 0, 0);

	return tq_preset_flag(source, "asyncComplete") &&
				   get_overdue(source) == OVERDUE_ALERT_ONLY
			   ? 0
			   : seconds;
}

/* Returns whether any of the objects has a key, be it with a null. */
static bool
is_given(const TqPreset *source, const char *key)
{
	for (; source != NULL; source = source->behind)
	{
		if (tq_json_get(source->json, key) != NULL)
			return true;
	}
	return false;
}

/*
 * Returns responseTimeoutSeconds as given, or 0 for none.  Conductor refuses
 * 0, so null means none.
 */
static int64
given_response_timeout(const TqPreset *source)
{
	static const char *const key = "responseTimeoutSeconds";
	const TqPreset *holder = source;
	JsonbValue *value = tq_preset_find(&holder, key);

	if (value == NULL)
		return is_given(source, key) ? 0 : DEFAULT_RESPONSE;
	return tq_preset_number_of(holder, key, value, 1, ", or null for none");
}

/*
 * Returns claimTimeout, from responseTimeoutSeconds.  A task that is completed
 * asynchronously has none; only runTimeout, if there is one, ends its claim.
 */
static int64
response_timeout(const TqPreset *source)
{
	int64 limit = run_timeout(source);
	int64 seconds = given_response_timeout(source);

	if (tq_preset_flag(source, "asyncComplete"))
		seconds = TQ_PRESET_SECONDS_MAX;
	return limit > 0 ? Min(seconds, limit) : seconds;
}

/* Adds the time that Conductor calls `theirs`, unless it is 0. */
static void
copy_time(JsonbParseState **state, const char *key, const TqPreset *source,
		  const char *theirs)
{
	tq_preset_add_time(state, key, tq_preset_number(source, theirs, 0, 0));
}

/* Adds the timeouts and the delay of a Conductor task. */
static void
add_times(JsonbParseState **state, const TqPreset *source)
{
	int64 response = response_timeout(source);

	check_encloses(source, "timeoutSeconds", "responseTimeoutSeconds");
	check_encloses(source, "totalTimeoutSeconds", "timeoutSeconds");
	tq_preset_add_time(state, "claimTimeout", response);
	tq_preset_add_time(state, "runTimeout", run_timeout(source));
	copy_time(state, "pendingTimeout", source, "pollTimeoutSeconds");
	copy_time(state, "totalTimeout", source, "totalTimeoutSeconds");
	copy_time(state, "delay", source, "startDelay");
}

/* Adds the backoff of a Conductor task. */
static void
add_backoff(JsonbParseState **state, const TqPreset *source)
{
	TqBackoff kind = (TqBackoff) tq_preset_choice(source, "retryLogic",
												  backoff_names,
												  TQ_BACKOFF_FIXED);
	int64 factor = tq_preset_number(source, "backoffScaleFactor", 1, 1);
	int64 jitter = tq_preset_number(source, "backoffJitterMs", 0, 0);

	tq_json_key(state, "retryBackoff");
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_int(state, "delay",
					tq_preset_number(source, "retryDelaySeconds", 0,
									 DEFAULT_DELAY));
	tq_json_add_text(state, "kind", tq_backoff_name(kind));
	if (kind == TQ_BACKOFF_LINEAR)
		tq_json_add_int(state, "factor", factor);
	copy_time(state, "max", source, "maxRetryDelaySeconds");
	if (jitter > 0)
		tq_json_add_seconds(state, "jitter", jitter);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/*
 * Adds retries and what is retried.  timeoutPolicy applies to all timeouts
 * except the response timeout, which is always retried.
 */
static void
add_retries(JsonbParseState **state, const TqPreset *source)
{
	static const TqResolved reasons[] = {TQ_RESOLVED_FAILED,
										 TQ_RESOLVED_CLAIM_EXPIRED,
										 TQ_RESOLVED_PENDING_TIMEOUT,
										 TQ_RESOLVED_RUN_TIMEOUT};
	Overdue overdue = get_overdue(source);

	tq_json_add_int(state, "retries",
					tq_preset_number(source, "retryCount", 0,
									 DEFAULT_RETRIES));
	tq_preset_add_retry_on(state, reasons, overdue == OVERDUE_RETRY ? 4 : 2);
	if (overdue == OVERDUE_ALERT_ONLY)
		tq_json_add_bool(state, "timeoutAlertOnly", true);
}

/*
 * Returns what an unsuccessful end does to other tasks.  `optional` wins over
 * `permissive` and over TIME_OUT_WF (doc/spec/policy.md 8 C17).
 */
static TqUnsuccessful
effect_of(const TqPreset *source)
{
	bool permissive = tq_preset_flag(source, "permissive");

	if (tq_preset_flag(source, "optional"))
		return TQ_UNSUCCESSFUL_FORGIVE;
	return permissive ? TQ_UNSUCCESSFUL_TOLERATE
					  : TQ_UNSUCCESSFUL_CANCEL_GROUP;
}

/*
 * Returns the policy of a task of a Conductor workflow, from its TaskDef and
 * its WorkflowTask; the keys of the latter win.
 */
Jsonb *
tq_conductor_read(Jsonb *task_def, Jsonb *workflow_task)
{
	TqPreset definition = {.name = "task_def", .json = task_def};
	TqPreset source = {.name = "workflow_task",
					   .json = workflow_task,
					   .behind = &definition};
	JsonbParseState *state;

	tq_preset_check(&definition);
	tq_preset_check(&source);
	state = tq_json_begin();
	add_retries(&state, &source);
	add_backoff(&state, &source);
	add_times(&state, &source);
	tq_json_add_text(&state, "onUnsuccessful",
					 tq_unsuccessful_name(effect_of(&source)));
	return tq_preset_policy(&definition, tq_json_end(&state));
}

/* Returns Conductor's state for a resolved run that is not forgiven. */
static const char *
state_of_reason(TqResolved reason)
{
	switch (reason)
	{
		case TQ_RESOLVED_COMPLETED:
			return "COMPLETED";
		case TQ_RESOLVED_SKIPPED:
			return "SKIPPED";
		case TQ_RESOLVED_FAILED_TERMINAL:
			return "FAILED_WITH_TERMINAL_ERROR";
		case TQ_RESOLVED_DEADLINE_EXCEEDED:
		case TQ_RESOLVED_CLAIM_EXPIRED:
		case TQ_RESOLVED_PENDING_TIMEOUT:
		case TQ_RESOLVED_RUN_TIMEOUT:
			return "TIMED_OUT";
		case TQ_RESOLVED_CANCELED:
		case TQ_RESOLVED_CANCELED_BY_WORKER:
			return "CANCELED";
		case TQ_RESOLVED_NONE:
		case TQ_RESOLVED_FAILED:
		case TQ_RESOLVED_SUPERSEDED:
		case TQ_RESOLVED_WORKER_SHUTDOWN:
		case TQ_RESOLVED_MALFORMED_PAYLOAD:
		case TQ_RESOLVED_RESOURCE_UNAVAILABLE:
		case TQ_RESOLVED_INTERNAL_ERROR:
		case TQ_RESOLVED_INTERMITTENT_TASK:
			return "FAILED";
	}
	return "FAILED";
}

/*
 * Returns the state of a task in Conductor's terms, or NULL for an unscheduled
 * task, which Conductor does not know yet.  A run that is retried is never the
 * last one: its task is SCHEDULED again.
 */
const char *
tq_conductor_state_name(const TqTask *task)
{
	TqRun run = tq_preset_run(task);
	const TqPolicy *policy = tq_policy_get(task->policy);

	switch (run.state)
	{
		case TQ_STATE_UNSCHEDULED:
			return NULL;
		case TQ_STATE_PENDING:
			return "SCHEDULED";
		case TQ_STATE_RUNNING:
			return "IN_PROGRESS";
		case TQ_STATE_COMPLETED:
		case TQ_STATE_FAILED:
		case TQ_STATE_EXCEPTION:
			break;
	}
	if (policy->on_unsuccessful == TQ_UNSUCCESSFUL_FORGIVE &&
		tq_policy_tolerates(policy, run.reason))
		return "COMPLETED_WITH_ERRORS";
	return state_of_reason(run.reason);
}
