/*
 * queue_settings_table.c
 *	  Rows of tq_internal.queue_settings: what queues are set to.
 *
 * Each session caches all rows, which are few (watched_table.c).  A call looks
 * for invalidations before it asks for settings, so that a call that begins
 * after the commit of a change follows it.  While no queue has settings, to ask
 * costs a comparison.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/snapmgr.h"

#include "../core/names.h"
#include "../rows/rows.h"
#include "columns.h"
#include "registry.h"

/*
 * ---- JSON of policies and settings, key by key ----
 *
 * Reads the objects of doc/spec/policy.md 2 and 6, with Taskcluster's defaults
 * for what is absent or null.  It raises no error, but returns a text that says
 * what is wrong, because only the caller knows what the object belongs to.
 * Whether the values are consistent with each other is decided in core
 * (policy.c, queue_settings.c).
 */

/* ---- fields of objects ---- */

/*
 * Stores a value in its field.  Returns NULL, or what the value has to be, as
 * a text that follows `must have a "key" that`.
 */
typedef const char *ReadField(const JsonbValue *value, void *position);

typedef struct Field
{
	const char *key;
	ReadField *read;
	size_t position; /* offset in the struct that is filled */
} Field;

#define LONGEST_SECONDS PG_INT32_MAX
#define LONGEST_MS (LONGEST_SECONDS * INT64CONST(1000))
#define DURATION                                                              \
	"from 0 to 2147483647 seconds, as a number or as interval text"

/* Reads a number into an int. */
static const char *
settings_json_read_count(const JsonbValue *value, void *position)
{
	int64 number;

	if (!tq_json_whole_number(value, 0, PG_INT32_MAX, &number))
		return "is a whole number from 0 to 2147483647";
	*(int *) position = (int) number;
	return NULL;
}

/* Calls a numeric function of two arguments. */
static Datum
compute(PGFunction function, Numeric number, int64 argument)
{
	return DirectFunctionCall2(function, NumericGetDatum(number),
							   NumericGetDatum(int64_to_numeric(argument)));
}

/*
 * Returns seconds in milliseconds, truncated as all times are; TQ_OFF if out
 * of range, as NaN is, which sorts above all numbers.
 */
static int64
seconds_to_ms(Numeric seconds)
{
	Datum ms;

	if (!DatumGetBool(compute(numeric_ge, seconds, 0)) ||
		!DatumGetBool(compute(numeric_le, seconds, LONGEST_SECONDS)))
		return TQ_OFF;
	ms = compute(numeric_mul, seconds, 1000);
	ms = DirectFunctionCall2(numeric_trunc, ms, Int32GetDatum(0));
	return DatumGetInt64(DirectFunctionCall1(numeric_int8, ms));
}

static bool
read_duration(const JsonbValue *value, int64 *ms)
{
	int64 read = TQ_OFF;

	if (value->type == jbvNumeric)
		read = seconds_to_ms(value->val.numeric);
	else if (value->type != jbvString ||
			 !tq_clock_parse_span(value->val.string.val, value->val.string.len,
								  &read))
		return false;
	if (read < 0 || read > LONGEST_MS)
		return false;
	*ms = read;
	return true;
}

/*
 * Reads a number of seconds, or interval text, as milliseconds.  Returns NULL,
 * or what is wrong with it, as a text that follows its key in an error.
 */
const char *
tq_duration_parse(const JsonbValue *value, int64 *ms)
{
	return read_duration(value, ms) ? NULL : "must be " DURATION;
}

/* Reads a duration into an int64_t, as milliseconds. */
static const char *
settings_json_read_time(const JsonbValue *value, void *position)
{
	int64 ms;

	if (!read_duration(value, &ms))
		return "is " DURATION;
	*(int64_t *) position = ms;
	return NULL;
}

/*
 * Reads how long a claim holds: not 0, by which each claim would expire at once
 * and its run be retried, again and again.
 */
static const char *
read_claim_timeout(const JsonbValue *value, void *position)
{
	int64 ms;

	if (!read_duration(value, &ms) || ms == 0)
		return "is from 0.001 to 2147483647 seconds, as a number or as interval "
			   "text";
	*(int64_t *) position = ms;
	return NULL;
}

/* Reads a bool. */
static const char *
read_flag(const JsonbValue *value, void *position)
{
	if (value->type != jbvBool)
		return "is true or false";
	*(bool *) position = value->val.boolean;
	return NULL;
}

/*
 * Returns what is wrong with a key that is not known, with the known key that
 * is nearest, if one is near.
 */
static const char *
unknown_key(const Field *fields, int n, const JsonbValue *key)
{
	const char *given = tq_json_string_of(key);
	/* What is retry beside a policy is retries within it. */
	const char *wanted = strcmp(given, "retry") == 0 ? "retries" : given;
	char **known = palloc(sizeof(char *) * n);
	const char *meant;

	for (int i = 0; i < n; i++)
		known[i] = unconstify(char *, fields[i].key);
	meant = tq_error_nearest(wanted, known, n);
	return psprintf(meant == NULL ? "must not have the key \"%s\""
								  : "must not have the key \"%s\", but may "
									"have \"%s\"",
					tq_error_clip(given), meant);
}

static const char *
read_field(const Field *fields, int n, const JsonbValue *key,
		   const JsonbValue *value, void *base)
{
	const char *rule;

	for (int i = 0; i < n; i++)
	{
		if (!tq_json_has_text(key, fields[i].key))
			continue;
		if (value->type == jbvNull)
			return NULL;
		rule = fields[i].read(value, (char *) base + fields[i].position);
		/* A fault, with the value unless it is an object or an array. */
		return rule == NULL
				   ? NULL
				   : psprintf("must have %s \"%s\" that %s%s%s",
							  strchr("aeiou", fields[i].key[0]) != NULL ? "an"
																		: "a",
							  fields[i].key, rule,
							  value->type == jbvBinary ? "" : ", not ",
							  value->type == jbvBinary ? ""
													   : tq_json_shown(value));
	}
	return unknown_key(fields, n, key);
}

/*
 * Reads every key of an object; nested values are for the reader of their key.
 * Returns NULL, or all that is wrong.
 */
static const char *
read_object(const JsonbContainer *object, const Field *fields, int n,
			void *base)
{
	TqJsonIterator it = tq_json_iterate(object);
	StringInfoData faults = {0};

	while (tq_json_next(&it))
	{
		const char *fault = read_field(fields, n, &it.key, &it.value, base);

		if (fault == NULL)
			continue;
		if (faults.data == NULL)
			initStringInfo(&faults);
		tq_error_list(&faults, ", and ", fault);
	}
	return faults.data;
}

/* ---- values of policies ---- */

static const char *
read_factor(const JsonbValue *value, void *position)
{
	int64 number;

	if (!tq_json_whole_number(value, 1, PG_INT32_MAX, &number))
		return "is a whole number from 1 to 2147483647";
	*(int64_t *) position = number;
	return NULL;
}

static const char *
read_kind(const JsonbValue *value, void *position)
{
	if (value->type != jbvString ||
		!tq_backoff_parse(tq_json_string_of(value), position))
		return "is fixed, linear or exponential";
	return NULL;
}

static const char *
read_effect(const JsonbValue *value, void *position)
{
	if (value->type != jbvString ||
		!tq_unsuccessful_parse(tq_json_string_of(value), position))
		return "is block, cancel-group, cancel-dependents, tolerate or forgive";
	return NULL;
}

static const char *
add_reason(const char *name, uint32_t *reasons)
{
	TqResolved reason = tq_resolved_parse(name);

	if (reason == TQ_RESOLVED_NONE)
		return psprintf("names reasons, which \"%s\" is not",
						tq_error_clip(name));
	if (!tq_policy_may_retry(reason))
		return psprintf(
			"names reasons that can be retried, which \"%s\" cannot", name);
	if ((*reasons & 1u << reason) != 0)
		return psprintf("names \"%s\" only once", name);
	*reasons |= 1u << reason;
	return NULL;
}

/* Reads an array of reasons as a set of bits. */
static const char *
settings_json_read_reasons(const JsonbValue *value, void *position)
{
	static const char *const rule = "is an array of reasons";
	uint32_t reasons = 0;
	TqJsonIterator it;

	if (!tq_json_is_array(value))
		return rule;
	it = tq_json_iterate(value->val.binary.data);
	while (tq_json_next(&it))
	{
		const char *fault;

		if (it.value.type != jbvString)
			return rule;
		fault = add_reason(tq_json_string_of(&it.value), &reasons);
		if (fault != NULL)
			return fault;
	}
	*(uint32_t *) position = reasons;
	return NULL;
}

static const Field backoff_fields[] = {
	{"delay", settings_json_read_time, offsetof(TqPolicy, retry_delay)},
	{"kind", read_kind, offsetof(TqPolicy, backoff)},
	{"factor", read_factor, offsetof(TqPolicy, factor)},
	{"max", settings_json_read_time, offsetof(TqPolicy, max_delay)},
	{"jitter", settings_json_read_time, offsetof(TqPolicy, jitter)},
};

/*
 * Reads the object retryBackoff, whose keys are fields of the policy itself.
 */
static const char *
read_backoff(const JsonbValue *value, void *position)
{
	const char *fault;

	if (!tq_json_is_object(value))
		return "is an object";
	fault = read_object(value->val.binary.data, backoff_fields,
						lengthof(backoff_fields), position);
	return fault == NULL ? NULL : psprintf("is an object, which %s", fault);
}

/* ---- keys ---- */

#define KEY_MAX 255 /* characters */

/* In position of a key in a stored policy: the task has one. */
static char stored_key[] = "";

/* Reads a key, or true in a stored policy. */
static const char *
read_key(const JsonbValue *value, void *position)
{
	if (value->type == jbvBool && value->val.boolean)
	{
		*(char **) position = stored_key;
		return NULL;
	}
	if (!tq_json_is_string(value, KEY_MAX) || value->val.string.len == 0)
		return "is a string of 1 to 255 characters";
	*(char **) position = tq_json_string_of(value);
	return NULL;
}

static const char *
read_unique_scope(const JsonbValue *value, void *position)
{
	char *name = value->type == jbvString ? tq_json_string_of(value) : NULL;

	if (name == NULL ||
		(strcmp(name, "queue") != 0 && strcmp(name, "database") != 0))
		return "is queue or database";
	*(bool *) position = strcmp(name, "database") == 0;
	return NULL;
}

static const char *
read_on_conflict(const JsonbValue *value, void *position)
{
	if (value->type != jbvString ||
		!tq_on_conflict_parse(tq_json_string_of(value), position))
		return "is return, replace or reject";
	return NULL;
}

static const char *
read_serial_on_failure(const JsonbValue *value, void *position)
{
	char *name = value->type == jbvString ? tq_json_string_of(value) : NULL;

	if (name == NULL ||
		(strcmp(name, "continue") != 0 && strcmp(name, "hold") != 0))
		return "is continue or hold";
	*(bool *) position = strcmp(name, "hold") == 0;
	return NULL;
}

/* Reads an array of states as a set of bits. */
static const char *
settings_json_read_states(const JsonbValue *value, void *position)
{
	static const char *const rule = "is an array of states, and not empty";
	uint32_t states = 0;
	TqJsonIterator it;

	if (!tq_json_is_array(value))
		return rule;
	it = tq_json_iterate(value->val.binary.data);
	while (tq_json_next(&it))
	{
		TqState state;

		if (it.value.type != jbvString ||
			!tq_state_parse(tq_json_string_of(&it.value), &state))
			return rule;
		states |= 1u << state;
	}
	if (states == 0)
		return rule;
	*(uint32_t *) position = states;
	return NULL;
}

#define IN_POLICY(field)                                                      \
	(offsetof(TqGivenPolicy, policy) + offsetof(TqPolicy, field))

/* Not a key that a policy may be given with; see tq_policy_with_default(). */
#define QUEUE_DEFAULT "queueDefault"

static const Field policy_fields[] = {
	{"retries", settings_json_read_count, offsetof(TqGivenPolicy, retries)},
	{"retryOn", settings_json_read_reasons, IN_POLICY(retry_on)},
	{"lostRetries", settings_json_read_count, IN_POLICY(lost_retries)},
	{"retryBackoff", read_backoff, offsetof(TqGivenPolicy, policy)},
	{"claimTimeout", read_claim_timeout, IN_POLICY(claim_timeout)},
	{"runTimeout", settings_json_read_time, IN_POLICY(run_timeout)},
	{"pendingTimeout", settings_json_read_time, IN_POLICY(pending_timeout)},
	{"totalTimeout", settings_json_read_time, IN_POLICY(total_timeout)},
	{"timeoutAlertOnly", read_flag, IN_POLICY(alert_only)},
	{"onUnsuccessful", read_effect, IN_POLICY(on_unsuccessful)},
	{"deadLetter", read_flag, IN_POLICY(dead_letter)},
	{"retainCompleted", settings_json_read_time, IN_POLICY(retain_completed)},
	{"retainFailed", settings_json_read_time, IN_POLICY(retain_failed)},
	{"dropPayload", read_flag, IN_POLICY(drop_payload)},
	{"delay", settings_json_read_time, offsetof(TqGivenPolicy, delay)},
	{"uniqueKey", read_key, offsetof(TqGivenPolicy, keys[TQ_KEY_UNIQUE])},
	{"uniqueScope", read_unique_scope, IN_POLICY(unique_in_database)},
	{"uniqueStates", settings_json_read_states, IN_POLICY(unique_states)},
	{"uniquePeriod", settings_json_read_time, IN_POLICY(unique_period)},
	{"onConflict", read_on_conflict, IN_POLICY(on_conflict)},
	{"serialKey", read_key, offsetof(TqGivenPolicy, keys[TQ_KEY_SERIAL])},
	{"serialOnFailure", read_serial_on_failure, IN_POLICY(serial_holds)},
	{"concurrencyKey", read_key,
	 offsetof(TqGivenPolicy, keys[TQ_KEY_CONCURRENCY])},
	{"fairnessKey", read_key, offsetof(TqGivenPolicy, keys[TQ_KEY_FAIRNESS])},
};

/* Sets the fields that a policy gives, and leaves the others. */
static const char *
settings_json_read_policy(const JsonbContainer *policy, TqGivenPolicy *given)
{
	const char *fault = read_object(policy, policy_fields,
									lengthof(policy_fields), given);

	for (int i = 0; i < TQ_KEYS; i++)
	{
		if (given->keys[i] != NULL)
			given->policy.keys |= 1u << i;
	}
	return fault;
}

static void
begin_policy(TqGivenPolicy *given)
{
	given->policy = tq_policy_plain;
	given->retries = TQ_OFF;
	given->delay = TQ_OFF;
	memset(given->keys, 0, sizeof(given->keys));
}

static const char *
must_be_key(TqTaskKey key)
{
	return psprintf(
		"must have a \"%s\" that is a string of 1 to %d characters",
		tq_key_name(key), KEY_MAX);
}

/*
 * Reads a policy.  Returns NULL, or what is wrong with it, as a text that
 * follows "policy" in an error; *given is undefined then.
 */
const char *
tq_policy_parse(const Jsonb *json, TqGivenPolicy *given)
{
	const char *fault;

	begin_policy(given);
	if (!JB_ROOT_IS_OBJECT(json))
		return psprintf("must be an object, not %s",
						tq_json_clip(&json->root));
	if (VARSIZE(json) > TQ_POLICY_BYTES ||
		tq_json_size_over(&json->root, TQ_POLICY_BYTES) > 0)
		return psprintf("must not be larger than %d bytes", TQ_POLICY_BYTES);
	fault = settings_json_read_policy(&json->root, given);
	for (int i = 0; i < TQ_KEYS && fault == NULL; i++)
	{
		if (given->keys[i] == stored_key)
			fault = must_be_key((TqTaskKey) i);
	}
	return fault;
}

/* ---- default policies of queues ---- */

static Jsonb *
without(Jsonb *object, const char *key)
{
	return DatumGetJsonbP(DirectFunctionCall2(jsonb_delete,
											  JsonbPGetDatum(object),
											  CStringGetTextDatum(key)));
}

/* Returns a default policy as a task stores it that has none of its own. */
static Jsonb *
policy_of_default(Jsonb *policy)
{
	JsonbParseState *state = tq_json_begin();

	tq_json_add_object(&state, QUEUE_DEFAULT, policy);
	return tq_json_end(&state);
}

/*
 * Returns the policy that a task stores: its own, and what the default policy
 * adds to it, apart, so that task() returns what was given.  A key that the
 * task gives wins, unless it is null.
 */
Jsonb *
tq_policy_with_default(Jsonb *own, Jsonb *stored_default)
{
	Jsonb *added = JsonbValueToJsonb(
		tq_json_get(stored_default, QUEUE_DEFAULT));
	TqJsonIterator it = tq_json_iterate(&own->root);

	while (tq_json_next(&it))
	{
		if (it.value.type != jbvNull)
			added = without(added, tq_json_string_of(&it.key));
	}
	if (JB_ROOT_COUNT(added) == 0)
		return own;
	return DatumGetJsonbP(
		DirectFunctionCall2(jsonb_concat, JsonbPGetDatum(own),
							JsonbPGetDatum(policy_of_default(added))));
}

/* Returns whether a default policy has added something to a stored one. */
bool
tq_policy_has_default(const Jsonb *stored)
{
	return stored != NULL && tq_json_get(stored, QUEUE_DEFAULT) != NULL;
}

/* Returns the part of a stored policy that was given with the task, or NULL. */
Jsonb *
tq_policy_own(Jsonb *stored)
{
	if (!tq_policy_has_default(stored))
		return stored;
	stored = without(stored, QUEUE_DEFAULT);
	return JB_ROOT_COUNT(stored) == 0 ? NULL : stored;
}

/* ---- policies with keys ---- */

/* Replaces those keys of a policy that differ from task to task. */
static Jsonb *
replace_keys(Jsonb *policy, char *const *keys)
{
	JsonbParseState *state = tq_json_begin();

	for (int i = 0; i < TQ_KEYS; i++)
	{
		const char *name = tq_key_name((TqTaskKey) i);
		const JsonbValue *value = tq_json_get(policy, name);

		if (value == NULL || value->type == jbvNull)
			continue;
		if (keys == NULL)
			tq_json_add_bool(&state, name, true);
		else if (keys[i] != NULL)
			tq_json_add_text(&state, name, keys[i]);
	}
	return DatumGetJsonbP(
		DirectFunctionCall2(jsonb_concat, JsonbPGetDatum(policy),
							JsonbPGetDatum(tq_json_end(&state))));
}

/*
 * Returns a policy as it is stored: it says that a task has a key, but not
 * which.  So the number of policies does not grow with that of keys.
 */
Jsonb *
tq_policy_without_keys(Jsonb *policy)
{
	return replace_keys(policy, NULL);
}

/* Returns the policy of a task with its keys; those that it has not are NULL. */
Jsonb *
tq_policy_with_keys(Jsonb *stored, char *const *keys)
{
	return replace_keys(stored, keys);
}

/*
 * Reads a policy that a task stores.  Returns NULL, or what is wrong with it, as
 * tq_policy_parse() does.
 */
const char *
tq_policy_parse_stored(const Jsonb *json, TqGivenPolicy *given)
{
	const JsonbValue *added;
	const char *fault;

	begin_policy(given);
	if (!JB_ROOT_IS_OBJECT(json))
		return "must be an object";
	added = tq_json_get(json, QUEUE_DEFAULT);
	if (added == NULL)
		return settings_json_read_policy(&json->root, given);
	if (!tq_json_is_object(added))
		return "must have a \"" QUEUE_DEFAULT "\" that is an object";
	fault = settings_json_read_policy(added->val.binary.data, given);
	if (fault != NULL)
		return fault;
	json = without(unconstify(Jsonb *, json), QUEUE_DEFAULT);
	return settings_json_read_policy(&json->root, given);
}

/* ---- settings of queues ---- */

#define SETTINGS_BYTES 16000 /* as jsonb, and as text */

/* Keeps the default policy, after checking that it is one. */
static const char *
read_default_policy(const JsonbValue *value, void *position)
{
	TqGivenPolicy given;
	const char *fault;

	if (!tq_json_is_object(value))
		return "is an object";
	*(Jsonb **) position = JsonbValueToJsonb(unconstify(JsonbValue *, value));
	fault = tq_policy_parse(*(Jsonb **) position, &given);
	if (fault == NULL && given.policy.keys != 0)
		fault = "must not have a key, which each task has for itself";
	return fault == NULL ? NULL : psprintf("is a policy, which %s", fault);
}

#define WEIGHTS                                                               \
	"is an object of numbers from 0.001 to 1000, by fairnessKey; \"\" stands for the tasks without one"

/* Returns whether a weight is a number from 0.001 to 1000. */
static bool
is_weight(const JsonbValue *value)
{
	double weight;

	if (value->type != jbvNumeric)
		return false;
	weight = tq_json_double(value);
	return weight >= 0.001 && weight <= 1000;
}

/* Keeps the weights of fairness keys, after checking them. */
static const char *
read_weights(const JsonbValue *value, void *position)
{
	TqJsonIterator it;
	Jsonb *weights;

	if (!tq_json_is_object(value))
		return WEIGHTS;
	weights = JsonbValueToJsonb(unconstify(JsonbValue *, value));
	it = tq_json_iterate(&weights->root);
	while (tq_json_next(&it))
	{
		if (!is_weight(&it.value))
			return WEIGHTS;
	}
	*(Jsonb **) position = weights;
	return NULL;
}

#define IN_SETTINGS(field)                                                    \
	(offsetof(TqGivenSettings, settings) + offsetof(TqQueueSettings, field))

static const Field settings_fields[] = {
	{"paused", read_flag, IN_SETTINGS(is_paused)},
	{"claimTimeout", read_claim_timeout, IN_SETTINGS(claim_timeout)},
	{"retainCompleted", settings_json_read_time,
	 IN_SETTINGS(retain_completed)},
	{"retainFailed", settings_json_read_time, IN_SETTINGS(retain_failed)},
	{"concurrentLimit", settings_json_read_count,
	 IN_SETTINGS(concurrent_limit)},
	{"rateCount", settings_json_read_count, IN_SETTINGS(rate_count)},
	{"rateInterval", settings_json_read_time, IN_SETTINGS(rate_interval)},
	{"maxPending", settings_json_read_count, IN_SETTINGS(max_pending)},
	{"maxDelayed", settings_json_read_count, IN_SETTINGS(max_delayed)},
	{"maxRunning", settings_json_read_count, IN_SETTINGS(max_running)},
	{"keyConcurrentLimit", settings_json_read_count,
	 IN_SETTINGS(key_concurrent_limit)},
	{"keyRateCount", settings_json_read_count, IN_SETTINGS(key_rate_count)},
	{"keyRateInterval", settings_json_read_time,
	 IN_SETTINGS(key_rate_interval)},
	{"fairness", read_flag, IN_SETTINGS(is_fair)},
	{"fairnessWeights", read_weights, offsetof(TqGivenSettings, weights)},
	{"agingInterval", settings_json_read_time, IN_SETTINGS(aging_interval)},
	{"policy", read_default_policy, offsetof(TqGivenSettings, policy)},
};

/*
 * Reads settings.  Returns NULL, or what is wrong with them, as a text that
 * follows "settings" in an error; *given is undefined then.
 */
const char *
tq_queue_settings_parse(const Jsonb *json, TqGivenSettings *given)
{
	const char *fault;

	given->settings = tq_queue_settings_plain;
	given->policy = NULL;
	given->weights = NULL;
	if (!JB_ROOT_IS_OBJECT(json))
		return psprintf("must be an object, not %s",
						tq_json_clip(&json->root));
	if (VARSIZE(json) > SETTINGS_BYTES ||
		tq_json_size_over(&json->root, SETTINGS_BYTES) > 0)
		return psprintf("must not be larger than %d bytes", SETTINGS_BYTES);
	fault = read_object(&json->root, settings_fields,
						lengthof(settings_fields), given);
	given->settings.is_fair |= given->weights != NULL;
	return fault != NULL ? fault : tq_queue_settings_fault(&given->settings);
}

/* ---- hints ---- */

static void
append_keys(StringInfo hint, const char *of, const Field *fields, int n)
{
	appendStringInfo(hint, "The keys of %s are ", of);
	for (int i = 0; i < n; i++)
		appendStringInfo(hint, "%s%s", i == 0 ? "" : ", ", fields[i].key);
}

/*
 * Returns what to do about a fault of a policy, or of settings, which may have
 * a policy: of a key that is not known, the keys that they may have.
 */
const char *
tq_settings_hint(bool of_policy, const char *fault)
{
	StringInfoData hint;

	if (strstr(fault, "must not have the key \"") == NULL)
		return "Give the key such a value, or leave it out for its default.";
	initStringInfo(&hint);
	if (!of_policy)
	{
		append_keys(&hint, "settings", settings_fields,
					lengthof(settings_fields));
		appendStringInfoString(&hint, "; one that is null is removed. ");
	}
	append_keys(&hint, "a policy", policy_fields, lengthof(policy_fields));
	appendStringInfoString(
		&hint, of_policy
				   ? "; retry is an argument of tq.enqueue(): retry => 5."
				   : ".");
	return hint.data;
}

/* ---- rows ---- */

TQ_NUMBERS(TQ_QUEUE_SETTINGS_COLUMNS, queue_settings);

static TqRelation settings_table = TQ_RELATION("queue_settings");

/* ---- cache ---- */

typedef struct QueueSettingsEntry
{
	int32 queue; /* key */
	TqGivenSettings given;
} QueueSettingsEntry;

static TqWatched watched = {.table = &settings_table,
							.generation = TQ_FIRST_GENERATION,
							.note_change = tq_facts_change};
static uint64 loaded = 0; /* the generation that is cached */
static MemoryContext context = NULL;
static HTAB *entries = NULL; /* NULL: no queue has settings */
static bool any_is_fair = false;

/* Makes all sessions read the table again; see tq_watched_changed(). */
void
tq_queue_settings_changed(void)
{
	tq_watched_changed(&watched);
	tq_facts_change_at_commit();
}

/*
 * Makes this session read the table again.  A transaction that changes settings
 * wakes others a moment before the invalidation reaches them: what acts upon a
 * row that was committed with the settings must not use those before.
 */
void
tq_queue_settings_reload(void)
{
	watched.generation++;
}

/* Adds a row to the cache. */
static void
add_entry(TupleTableSlot *slot)
{
	int32 queue = tq_row_int32(slot, Anum_queue_settings_queue);
	Jsonb *json = tq_row_varlena(slot, Anum_queue_settings_settings);
	TqGivenSettings given;
	const char *fault = tq_queue_settings_parse(json, &given);
	QueueSettingsEntry *entry;
	HASHCTL control = {.keysize = sizeof(int32),
					   .entrysize = sizeof(QueueSettingsEntry),
					   .hcxt = context};

	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("settings of queue \"%s\" cannot be read",
						tq_queue_name(queue)),
				 errdetail("They %s.", fault),
				 errhint("Correct the row in tq_internal.queue_settings.")));
	if (entries == NULL)
		entries = hash_create("tq queue settings", 64, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	if (given.policy != NULL)
	{
		MemoryContext outer = MemoryContextSwitchTo(context);

		given.policy = policy_of_default(given.policy);
		MemoryContextSwitchTo(outer);
	}
	if (given.weights != NULL)
	{
		Jsonb *kept = MemoryContextAlloc(context, VARSIZE(given.weights));

		memcpy(kept, given.weights, VARSIZE(given.weights));
		given.weights = kept;
	}
	any_is_fair = any_is_fair || given.settings.is_fair;
	entry = hash_search(entries, &queue, HASH_ENTER, NULL);
	entry->given = given;
}

/*
 * Reads all rows as they are now, whatever the snapshot of the transaction is:
 * later transactions use them too.  A new session reads none if the facts say
 * that there are none (database.c).
 */
static void
queue_settings_load(void)
{
	TqTableScan *scan;
	uint64 current;
	TqFacts facts;

	tq_watched_read(&watched);
	if (context == NULL)
		context = AllocSetContextCreate(CacheMemoryContext,
										"tq queue settings",
										ALLOCSET_SMALL_SIZES);
	MemoryContextReset(context);
	entries = NULL;
	any_is_fair = false;
	loaded = 0;
	if (watched.generation == TQ_FIRST_GENERATION &&
		tq_facts_find(tq_locked_table, &facts, &current) &&
		!facts.has_settings)
	{
		loaded = TQ_FIRST_GENERATION;
		return;
	}
	PushActiveSnapshot(GetLatestSnapshot());
	current = watched.generation;
	scan = tq_table_scan_open(&settings_table);
	while (tq_table_scan_next(scan))
		add_entry(scan->slot);
	tq_table_scan_close(scan);
	PopActiveSnapshot();
	loaded = current;
}

/* Returns what a queue was given, or NULL. */
static const TqGivenSettings *
queue_settings_find(int32 queue)
{
	QueueSettingsEntry *entry;

	while (loaded != watched.generation)
		queue_settings_load();
	if (entries == NULL)
		return NULL;
	entry = hash_search(entries, &queue, HASH_FIND, NULL);
	return entry == NULL ? NULL : &entry->given;
}

/* ---- what follows from settings ---- */

/* Returns whether any queue has settings. */
bool
tq_queue_settings_exist(void)
{
	while (loaded != watched.generation)
		queue_settings_load();
	return entries != NULL;
}

/* Returns whether any queue uses fairness. */
bool
tq_queue_settings_are_fair(void)
{
	return tq_queue_settings_exist() && any_is_fair;
}

/*
 * Returns the weight of a fairness key in its queue; "" is that of the tasks
 * without a key.
 */
double
tq_queue_settings_weight(int32 queue, const char *key)
{
	const TqGivenSettings *given = queue_settings_find(queue);
	const JsonbValue *weight = NULL;

	if (given != NULL && given->weights != NULL)
		weight = tq_json_member(&given->weights->root, key);
	return weight == NULL ? 1 : tq_json_double(weight);
}

/*
 * Returns the queues whose pending runs maintenance moves within their order,
 * and sets *version to a number that differs once that may have changed.
 */
int32 *
tq_queue_settings_with_moves(uint64 *version, int *found)
{
	HASH_SEQ_STATUS scan;
	const QueueSettingsEntry *entry;
	int32 *queues;

	*found = 0;
	(void) queue_settings_find(0);
	*version = watched.generation;
	if (entries == NULL)
		return NULL;
	queues = palloc(sizeof(int32) * hash_get_num_entries(entries));
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (entry->given.settings.is_fair ||
			entry->given.settings.aging_interval > 0)
			queues[(*found)++] = entry->queue;
	}
	return queues;
}

/*
 * Returns the settings of a queue; 0 is a queue without any.  The result is
 * valid until the next call.
 */
const TqQueueSettings *
tq_queue_settings(int32 queue)
{
	const TqGivenSettings *given = queue_settings_find(queue);

	return given == NULL ? &tq_queue_settings_plain : &given->settings;
}

/*
 * Returns the default policy of the tasks of a queue, as policy_of_default()
 * made it; NULL if the queue has none.
 */
Jsonb *
tq_queue_settings_policy(const char *queue)
{
	const TqGivenSettings *given;
	Jsonb *policy;

	if (!tq_queue_settings_exist())
		return NULL;
	given = queue_settings_find(tq_queue_find(queue));
	if (given == NULL || given->policy == NULL)
		return NULL;
	policy = palloc(VARSIZE(given->policy));
	memcpy(policy, given->policy, VARSIZE(given->policy));
	return policy;
}

/* Returns the shortest retentions that a queue has, and these. */
TqRetention
tq_queue_settings_shortest(TqRetention kept)
{
	TqRetention shortest = kept;
	HASH_SEQ_STATUS scan;
	const QueueSettingsEntry *entry;

	if (!tq_queue_settings_exist())
		return shortest;
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		TqRetention own = tq_queue_settings_retention(&entry->given.settings,
													  kept);

		shortest.completed = Min(shortest.completed, own.completed);
		shortest.failed = Min(shortest.failed, own.failed);
	}
	return shortest;
}

/* Returns the longest claim timeout of a queue, in ms; 0 if none has one. */
int64
tq_queue_settings_longest_claim(void)
{
	int64 longest = 0;
	HASH_SEQ_STATUS scan;
	const QueueSettingsEntry *entry;

	if (!tq_queue_settings_exist())
		return 0;
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
		longest = Max(longest, entry->given.settings.claim_timeout);
	return longest;
}

/* Returns the queues with limits that need counters. */
int32 *
tq_queue_settings_limited(int *found)
{
	HASH_SEQ_STATUS scan;
	const QueueSettingsEntry *entry;
	int32 *queues;

	*found = 0;
	if (!tq_queue_settings_exist())
		return NULL;
	queues = palloc(sizeof(int32) * hash_get_num_entries(entries));
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (tq_queue_settings_count(&entry->given.settings))
			queues[(*found)++] = entry->queue;
	}
	return queues;
}
