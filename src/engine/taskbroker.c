/*
 * taskbroker.c
 *	  Preset for Taskbroker: its settings as a policy, and the state of a task
 *	  in its terms.
 *
 * Decides what a key of a Taskbroker activation means here (doc/spec/policy.md
 * 7, 9, 10; doc/spec/taskbroker.md 1, 2, 4).  Other keys are ignored, as in
 * conductor.c.
 */
#include "postgres.h"

#include "utils/jsonb.h"

#include "../core/policy.h"
#include "../core/types.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "engine.h"

/* Defaults (doc/spec/taskbroker.md 1, 3). */
#define DEFAULT_DURATION 10
#define DEFAULT_GRACE 3
#define DEFAULT_LOST 4 /* max_processing_attempts is 5 */

/* Taskbroker's OnAttemptsExceeded, by number. */
#define EXCEEDED_PREFIX "ON_ATTEMPTS_EXCEEDED_"
#define EXCEEDED_DEADLETTER 2

static const char *const exceeded_names[] = {"UNSPECIFIED", "DISCARD",
											 "DEADLETTER", NULL};

/* Returns the retry_state of an activation, empty if it has none. */
static TqPreset
retry_state(const TqPreset *activation)
{
	TqPreset retry = {.name = "retry_state", .numbers_as_text = true};
	JsonbValue *value = tq_preset_find(&activation, "retry_state");

	if (value == NULL)
		return retry;
	if (!tq_json_is_object(value))
		tq_preset_error(activation, "retry_state", value, "Give an object.");
	retry.json = JsonbValueToJsonb(value);
	return retry;
}

/*
 * Returns whether OnAttemptsExceeded is DEADLETTER; it is given by number or
 * by name, with or without its prefix.
 */
static bool
is_deadletter(const TqPreset *retry)
{
	const char *key = "on_attempts_exceeded";
	JsonbValue *value = tq_preset_find(&retry, key);
	int64 number;

	if (value == NULL)
		return false;
	if (!tq_preset_whole(retry, value, &number))
		number = tq_preset_index(value, EXCEEDED_PREFIX, exceeded_names);
	if (number < 0 || number > EXCEEDED_DEADLETTER)
		tq_preset_error_choice(retry, key, value, exceeded_names);
	return number == EXCEEDED_DEADLETTER;
}

/*
 * Returns the attempts that are left after this one; a worker has to ask for
 * them.
 */
static int64
retries_left(const TqPreset *retry)
{
	int64 attempts = tq_preset_number(retry, "attempts", 0, 0);
	int64 max = tq_preset_number(retry, "max_attempts", 0, 0);

	return Max(max - 1 - attempts, 0);
}

/* Adds retries, lost retries and the backoff of an activation. */
static void
add_retries(JsonbParseState **state, const TqPreset *retry)
{
	static const TqResolved reasons[] = {TQ_RESOLVED_INTERMITTENT_TASK,
										 TQ_RESOLVED_CLAIM_EXPIRED};
	bool at_most_once = tq_preset_flag(retry, "at_most_once");
	int64 delay = tq_preset_number(retry, "delay_on_retry", 0, 0);

	tq_json_add_int(state, "retries", retries_left(retry));
	tq_preset_add_retry_on(state, reasons, at_most_once ? 1 : 2);
	if (!at_most_once)
		tq_json_add_int(state, "lostRetries", DEFAULT_LOST);
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
add_times(JsonbParseState **state, const TqPreset *activation)
{
	int64 duration = tq_preset_number(activation,
									  "processing_deadline_duration", 0,
									  DEFAULT_DURATION);
	int64 delay = tq_preset_number(activation, "delay", 0, 0);
	int64 expires = tq_preset_number(activation, "expires", 0, TQ_OFF);

	tq_json_add_int(state, "claimTimeout",
					Min(duration + DEFAULT_GRACE, TQ_PRESET_SECONDS_MAX));
	if (expires != TQ_OFF)
		tq_json_add_int(state, "pendingTimeout", Max(expires - delay, 0));
	tq_preset_add_time(state, "delay", delay);
}

/* Returns the policy of a task, from a TaskActivation. */
Jsonb *
tq_taskbroker_read(Jsonb *activation)
{
	TqPreset source = {.name = "activation",
					   .json = activation,
					   .numbers_as_text = true};
	JsonbParseState *state;
	TqPreset retry;

	tq_preset_check(&source);
	retry = retry_state(&source);
	state = tq_json_begin();
	add_retries(&state, &retry);
	add_times(&state, &source);
	tq_json_add_text(&state, "onUnsuccessful",
					 tq_unsuccessful_name(TQ_UNSUCCESSFUL_BLOCK));
	tq_json_add_bool(&state, "deadLetter", is_deadletter(&retry));
	return tq_preset_policy(&source, tq_json_end(&state));
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
	TqRun run = tq_preset_run(task);

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
