/*
 * presets.c
 *	  Presets for Conductor and Taskbroker: their settings as a policy, and the
 *	  state of a task in their terms.
 *
 * Decides what a key of a Conductor TaskDef or WorkflowTask, or of a
 * Taskbroker activation, means here (doc/spec/policy.md 7, 9, 10;
 * doc/spec/conductor.md 2, 5, 6; doc/spec/taskbroker.md 1, 2, 4).  Other keys
 * are ignored, whether those systems know them or not, because their JSON
 * grows with each version.  policy.c carries the policy out.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "../core/names.h"
#include "../core/policy.h"
#include "../core/types.h"
#include "../storage/policy_json.h"
#include "../storage/policy_table.h"
#include "../storage/run_table.h"
#include "../storage/task_location.h"
#include "../storage/task_table.h"
#include "../util/errors.h"
#include "../util/guc.h"
#include "../util/json_reader.h"
#include "../util/json_writer.h"
#include "presets.h"
#include "task_ops.h"

#define SECONDS_MAX PG_INT32_MAX /* longest time that a policy takes */

/* Conductor's defaults (doc/spec/conductor.md 2.1). */
#define CONDUCTOR_RETRIES 3
#define CONDUCTOR_DELAY 60
#define CONDUCTOR_RESPONSE 3600

/* Taskbroker's defaults (doc/spec/taskbroker.md 1, 3). */
#define TASKBROKER_DURATION 10
#define TASKBROKER_GRACE 3
#define TASKBROKER_LOST 4 /* max_processing_attempts is 5 */

/* A JSON object in which values are looked up. */
typedef struct Source
{
	const char *name;            /* name in errors */
	const Jsonb *json;           /* NULL: empty */
	const struct Source *behind; /* for keys absent here; NULL: none */
	bool numbers_as_text;        /* protobuf writes 64-bit numbers as text */
} Source;

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

/* Taskbroker's OnAttemptsExceeded, by number. */
#define EXCEEDED_PREFIX "ON_ATTEMPTS_EXCEEDED_"
#define EXCEEDED_DEADLETTER 2

static const char *const exceeded_names[] = {"UNSPECIFIED",
											 "DISCARD",
											 "DEADLETTER",
											 NULL};

/* ---- reading ---- */

static char *
text_of(JsonbValue *value)
{
	Jsonb *json = JsonbValueToJsonb(value);

	return tq_error_clip(JsonbToCString(NULL, &json->root, VARSIZE(json)));
}

static void
refuse(const Source *source, const char *key, JsonbValue *value,
	   const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid \"%s\" in %s", key, source->name),
			 errdetail("\"%s\" is %s.", key, text_of(value)),
			 errhint("%s", hint)));
}

static void
check_object(const Source *source)
{
	if (JB_ROOT_IS_OBJECT(source->json))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("%s must be a JSON object", source->name),
			 errdetail("It is another kind of JSON value."),
			 errhint("Give an object, {} for one with defaults only.")));
}

/*
 * Returns the value of a key, and in *source the object that has it, or NULL
 * if no object has it.  A null counts as absent.
 */
static JsonbValue *
find(const Source **source, const char *key)
{
	for (const Source *s = *source; s != NULL; s = s->behind)
	{
		JsonbValue *value = s->json != NULL ? tq_json_get(s->json, key) : NULL;

		if (value == NULL || value->type == jbvNull)
			continue;
		*source = s;
		return value;
	}
	return NULL;
}

static bool
parse_whole(const char *text, int64 *number)
{
	char *end;

	errno = 0;
	*number = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0' && end != text &&
		   strchr("-0123456789", *text) != NULL;
}

/* Reads a value as a whole number; returns false if it is not one. */
static bool
read_whole(const Source *source, const JsonbValue *value, int64 *number)
{
	if (value->type == jbvNumeric)
		return parse_whole(numeric_normalize(value->val.numeric), number);
	return source->numbers_as_text && value->type == jbvString &&
		   parse_whole(pnstrdup(value->val.string.val, value->val.string.len),
					   number);
}

/* Returns the whole number at a key, which must be at least min. */
static int64
get_number(const Source *source, const char *key, int64 min, int64 if_absent)
{
	JsonbValue *value = find(&source, key);
	int64 number;

	if (value == NULL)
		return if_absent;
	if (!read_whole(source, value, &number) || number < min ||
		number > PG_INT32_MAX)
		refuse(source,
			   key,
			   value,
			   psprintf("Give a whole number from " INT64_FORMAT " to %d.",
						min,
						PG_INT32_MAX));
	return number;
}

static bool
get_bool(const Source *source, const char *key)
{
	JsonbValue *value = find(&source, key);

	if (value == NULL)
		return false;
	if (value->type != jbvBool)
		refuse(source, key, value, "Give true or false.");
	return value->val.boolean;
}

/*
 * Returns the index of a name, which may have the prefix, or -1 if it is not
 * in the list.
 */
static int
number_of_name(const char *name, const char *prefix, const char *const *names)
{
	if (strncmp(name, prefix, strlen(prefix)) == 0)
		name += strlen(prefix);
	for (int i = 0; names[i] != NULL; i++)
	{
		if (strcmp(name, names[i]) == 0)
			return i;
	}
	return -1;
}

static void
refuse_choice(const Source *source, const char *key, JsonbValue *value,
			  const char *const *names)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; names[i] != NULL; i++)
		tq_error_list(&list, names[i + 1] != NULL ? ", " : " or ", names[i]);
	refuse(source, key, value, psprintf("Give %s.", list.data));
}

/* Returns the value of a key, which must be one of the names, as an index. */
static int
get_choice(const Source *source, const char *key, const char *const *names,
		   int if_absent)
{
	JsonbValue *value = find(&source, key);
	int choice = -1;

	if (value == NULL)
		return if_absent;
	if (value->type == jbvString)
		choice = number_of_name(pnstrdup(value->val.string.val,
										 value->val.string.len),
								"",
								names);
	if (choice < 0)
		refuse_choice(source, key, value, names);
	return choice;
}

/* ---- building a policy ---- */

static void
add_bool(JsonbParseState **state, const char *key, bool flag)
{
	JsonbValue value = {.type = jbvBool};

	value.val.boolean = flag;
	tq_json_key(state, key);
	pushJsonbValue(state, WJB_VALUE, &value);
}

/* Adds a time unless it is 0, which means none. */
static void
add_unless_off(JsonbParseState **state, const char *key, int64 seconds)
{
	if (seconds > 0)
		tq_json_add_int(state, key, seconds);
}

static void
add_reason(JsonbParseState **state, TqResolved reason)
{
	tq_json_string(state, WJB_ELEM, tq_resolved_name(reason));
}

static void
add_on_unsuccessful(JsonbParseState **state, TqUnsuccessful effect)
{
	tq_json_add_text(state, "onUnsuccessful", tq_unsuccessful_name(effect));
}

/*
 * Returns the policy that was built, or raises an error if no task may have
 * it.
 */
static Jsonb *
check_policy(const Source *source, Jsonb *policy)
{
	TqGivenPolicy given;
	const char *fault = tq_policy_parse(policy, &given);

	if (fault == NULL)
		fault = tq_policy_fault(&given.policy, given.retries, tq_max_runs);
	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("%s gives a policy that no task may have",
						source->name),
				 errdetail("The policy %s.", fault),
				 errhint("Change %s; the policy would be %s.",
						 source->name,
						 JsonbToCString(NULL,
										&policy->root,
										VARSIZE(policy)))));
	return policy;
}

/* ---- Conductor ---- */

/*
 * Raises an error if the inner time is longer than the outer one, which
 * encloses it unless it is 0.
 */
static void
check_encloses(const Source *source, const char *outer, const char *inner)
{
	const Source *holder = source;
	int64 seconds = get_number(source, inner, 0, 0);
	int64 limit = get_number(source, outer, 0, 0);

	if (limit == 0 || seconds <= limit)
		return;
	(void) find(&holder, inner);
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid \"%s\" in %s", inner, holder->name),
			 errdetail("\"%s\" is " INT64_FORMAT
					   ", and \"%s\" is " INT64_FORMAT ".",
					   inner,
					   seconds,
					   outer,
					   limit),
			 errhint("Give a \"%s\" that is not greater than \"%s\".",
					 inner,
					 outer)));
}

static Overdue
get_overdue(const Source *source)
{
	return (Overdue) get_choice(source,
								"timeoutPolicy",
								overdue_names,
								OVERDUE_TIME_OUT_WF);
}

/*
 * Returns runTimeout, from timeoutSeconds, or 0 for none.  A task that is
 * completed asynchronously and whose timeout only alerts must keep its claim
 * beyond the timeout.  No claim may outlast runTimeout, so such a task has no
 * runTimeout.
 */
static int64
run_timeout(const Source *source)
{
	int64 seconds = get_number(source, "timeoutSeconds", 0, 0);

	return get_bool(source, "asyncComplete") &&
				   get_overdue(source) == OVERDUE_ALERT_ONLY
			   ? 0
			   : seconds;
}

/* Returns whether a key is null in any of the objects. */
static bool
is_null_somewhere(const Source *source, const char *key)
{
	for (; source != NULL; source = source->behind)
	{
		JsonbValue *value = source->json != NULL
								? tq_json_get(source->json, key)
								: NULL;

		if (value != NULL && value->type == jbvNull)
			return true;
	}
	return false;
}

/*
 * Returns responseTimeoutSeconds as given, or 0 for none.  Conductor refuses
 * 0, so null means none.
 */
static int64
given_response_timeout(const Source *source)
{
	static const char *const key = "responseTimeoutSeconds";
	const Source *holder = source;
	JsonbValue *value = find(&holder, key);
	int64 seconds;

	if (value == NULL)
		return is_null_somewhere(source, key) ? 0 : CONDUCTOR_RESPONSE;
	if (!read_whole(holder, value, &seconds) || seconds < 1 ||
		seconds > PG_INT32_MAX)
		refuse(holder,
			   key,
			   value,
			   psprintf("Give a whole number from 1 to %d, or null for none.",
						PG_INT32_MAX));
	return seconds;
}

/*
 * Returns claimTimeout, from responseTimeoutSeconds.  A task that is completed
 * asynchronously has none; only runTimeout, if there is one, ends its claim.
 */
static int64
response_timeout(const Source *source)
{
	int64 limit = run_timeout(source);
	int64 seconds = given_response_timeout(source);

	if (get_bool(source, "asyncComplete"))
		seconds = SECONDS_MAX;
	return limit > 0 ? Min(seconds, limit) : seconds;
}

/* Adds the timeouts and the delay of a Conductor task. */
static void
add_conductor_times(JsonbParseState **state, const Source *source)
{
	int64 response = response_timeout(source);

	check_encloses(source, "timeoutSeconds", "responseTimeoutSeconds");
	check_encloses(source, "totalTimeoutSeconds", "timeoutSeconds");
	add_unless_off(state, "claimTimeout", response);
	add_unless_off(state, "runTimeout", run_timeout(source));
	add_unless_off(state,
				   "pendingTimeout",
				   get_number(source, "pollTimeoutSeconds", 0, 0));
	add_unless_off(state,
				   "totalTimeout",
				   get_number(source, "totalTimeoutSeconds", 0, 0));
	add_unless_off(state, "delay", get_number(source, "startDelay", 0, 0));
}

/* Adds the backoff of a Conductor task. */
static void
add_conductor_backoff(JsonbParseState **state, const Source *source)
{
	TqBackoff kind = (TqBackoff)
		get_choice(source, "retryLogic", backoff_names, TQ_BACKOFF_FIXED);
	int64 factor = get_number(source, "backoffScaleFactor", 1, 1);
	int64 jitter = get_number(source, "backoffJitterMs", 0, 0);

	tq_json_key(state, "retryBackoff");
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_int(state,
					"delay",
					get_number(source,
							   "retryDelaySeconds",
							   0,
							   CONDUCTOR_DELAY));
	tq_json_add_text(state, "kind", tq_backoff_name(kind));
	if (kind == TQ_BACKOFF_LINEAR)
		tq_json_add_int(state, "factor", factor);
	add_unless_off(state,
				   "max",
				   get_number(source, "maxRetryDelaySeconds", 0, 0));
	if (jitter > 0)
		tq_json_add_seconds(state, "jitter", jitter);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/*
 * Adds retries and what is retried.  timeoutPolicy applies to all timeouts
 * except the response timeout, which is always retried.
 */
static void
add_conductor_retries(JsonbParseState **state, const Source *source)
{
	Overdue overdue = (Overdue) get_choice(source,
										   "timeoutPolicy",
										   overdue_names,
										   OVERDUE_TIME_OUT_WF);

	tq_json_add_int(state,
					"retries",
					get_number(source, "retryCount", 0, CONDUCTOR_RETRIES));
	tq_json_key(state, "retryOn");
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	add_reason(state, TQ_RESOLVED_FAILED);
	add_reason(state, TQ_RESOLVED_CLAIM_EXPIRED);
	if (overdue == OVERDUE_RETRY)
	{
		add_reason(state, TQ_RESOLVED_PENDING_TIMEOUT);
		add_reason(state, TQ_RESOLVED_RUN_TIMEOUT);
	}
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
	if (overdue == OVERDUE_ALERT_ONLY)
		add_bool(state, "timeoutAlertOnly", true);
}

/*
 * Returns what an unsuccessful end does to other tasks.  `optional` wins over
 * `permissive` and over TIME_OUT_WF (doc/spec/policy.md 8 C17).
 */
static TqUnsuccessful
conductor_effect(const Source *source)
{
	bool permissive = get_bool(source, "permissive");

	if (get_bool(source, "optional"))
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
	Source definition = {.name = "task_def", .json = task_def};
	Source source = {.name = "workflow_task",
					 .json = workflow_task,
					 .behind = &definition};
	JsonbParseState *state = NULL;

	check_object(&definition);
	check_object(&source);
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	add_conductor_retries(&state, &source);
	add_conductor_backoff(&state, &source);
	add_conductor_times(&state, &source);
	add_on_unsuccessful(&state, conductor_effect(&source));
	return check_policy(&definition, tq_json_end(&state));
}

/* Returns Conductor's state for a resolved run that is not forgiven. */
static const char *
conductor_word(TqResolved reason)
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

/* Returns the last run of a task, or the location of an unscheduled one. */
static TqRun
last_run(const TqTask *task)
{
	TqRun run;

	if (!tq_run_peek(task->id, &run))
		tq_error_missing_task(&task->task_id);
	return run;
}

/*
 * Returns the state of a task in Conductor's terms, or NULL for an unscheduled
 * task, which Conductor does not know yet.  A run that is retried is never the
 * last one: its task is SCHEDULED again.
 */
const char *
tq_conductor_state_name(const TqTask *task)
{
	TqRun run = last_run(task);
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
	return conductor_word(run.reason);
}

/* ---- Taskbroker ---- */

/* Returns the retry_state of an activation, empty if it has none. */
static Source
retry_state(const Source *activation)
{
	Source retry = {.name = "retry_state", .numbers_as_text = true};
	JsonbValue *value = find(&activation, "retry_state");

	if (value == NULL)
		return retry;
	if (value->type != jbvBinary ||
		!JsonContainerIsObject(value->val.binary.data))
		refuse(activation, "retry_state", value, "Give an object.");
	retry.json = JsonbValueToJsonb(value);
	return retry;
}

/*
 * Returns whether OnAttemptsExceeded is DEADLETTER; it is given by number or
 * by name, with or without its prefix.
 */
static bool
is_deadletter(const Source *retry)
{
	const char *key = "on_attempts_exceeded";
	JsonbValue *value = find(&retry, key);
	int64 number;

	if (value == NULL)
		return false;
	if (!read_whole(retry, value, &number))
		number = value->type != jbvString
					 ? -1
					 : number_of_name(pnstrdup(value->val.string.val,
											   value->val.string.len),
									  EXCEEDED_PREFIX,
									  exceeded_names);
	if (number < 0 || number > EXCEEDED_DEADLETTER)
		refuse_choice(retry, key, value, exceeded_names);
	return number == EXCEEDED_DEADLETTER;
}

/*
 * Returns the attempts that are left after this one; a worker has to ask for
 * them.
 */
static int64
taskbroker_retries(const Source *retry)
{
	int64 attempts = get_number(retry, "attempts", 0, 0);
	int64 max = get_number(retry, "max_attempts", 0, 0);

	return Max(max - 1 - attempts, 0);
}

/* Adds retries, lost retries and the backoff of an activation. */
static void
add_taskbroker_retries(JsonbParseState **state, const Source *retry)
{
	bool at_most_once = get_bool(retry, "at_most_once");
	int64 delay = get_number(retry, "delay_on_retry", 0, 0);

	tq_json_add_int(state, "retries", taskbroker_retries(retry));
	tq_json_key(state, "retryOn");
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	add_reason(state, TQ_RESOLVED_INTERMITTENT_TASK);
	if (!at_most_once)
		add_reason(state, TQ_RESOLVED_CLAIM_EXPIRED);
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
	if (!at_most_once)
		tq_json_add_int(state, "lostRetries", TASKBROKER_LOST);
	if (delay == 0)
		return;
	tq_json_key(state, "retryBackoff");
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_int(state, "delay", delay);
	tq_json_add_text(state, "kind", tq_backoff_name(TQ_BACKOFF_FIXED));
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/*
 * Adds the timeouts and the delay of an activation.  Both expires and delay
 * count from the time at which the activation is received.
 */
static void
add_taskbroker_times(JsonbParseState **state, const Source *activation)
{
	int64 duration = get_number(activation,
								"processing_deadline_duration",
								0,
								TASKBROKER_DURATION);
	int64 delay = get_number(activation, "delay", 0, 0);
	int64 expires = get_number(activation, "expires", 0, TQ_OFF);

	tq_json_add_int(state,
					"claimTimeout",
					Min(duration + TASKBROKER_GRACE, SECONDS_MAX));
	if (expires != TQ_OFF)
		tq_json_add_int(state, "pendingTimeout", Max(expires - delay, 0));
	add_unless_off(state, "delay", delay);
}

/* Returns the policy of a task, from a TaskActivation. */
Jsonb *
tq_taskbroker_read(Jsonb *activation)
{
	Source source = {.name = "activation",
					 .json = activation,
					 .numbers_as_text = true};
	JsonbParseState *state = NULL;
	Source retry;

	check_object(&source);
	retry = retry_state(&source);
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	add_taskbroker_retries(&state, &retry);
	add_taskbroker_times(&state, &source);
	add_on_unsuccessful(&state, TQ_UNSUCCESSFUL_BLOCK);
	add_bool(&state, "deadLetter", is_deadletter(&retry));
	return check_policy(&source, tq_json_end(&state));
}

/*
 * Returns the state of a task in Taskbroker's terms.  A delayed run is in
 * delay, whether it is the first attempt, a retry or a deferred run, which
 * Taskbroker does not know.  An unscheduled task is pending, the nearest state
 * that Taskbroker has.  The state retry never appears, because a task that is
 * retried is pending again at once.
 */
const char *
tq_taskbroker_state_name(const TqTask *task)
{
	TqRun run = last_run(task);

	switch (run.state)
	{
		case TQ_STATE_UNSCHEDULED:
			return "pending";
		case TQ_STATE_PENDING:
			return run.location == TQ_LOCATION_DELAYED ? "delay" : "pending";
		case TQ_STATE_RUNNING:
			return "processing";
		case TQ_STATE_COMPLETED:
			return "complete";
		case TQ_STATE_FAILED:
		case TQ_STATE_EXCEPTION:
			return "failure";
	}
	return NULL;
}
