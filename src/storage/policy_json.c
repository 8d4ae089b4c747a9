/*
 * policy_json.c
 *	  Reads a policy from JSON, key by key.
 *
 * Reads the object of doc/spec/policy.md 2, with Taskcluster's defaults for
 * what is absent or null.  It raises no error, but returns a text that says
 * what is wrong, because only the caller knows what the policy belongs to.
 * Whether the values are consistent with each other is decided in policy.c.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "../core/names.h"
#include "../core/policy.h"
#include "../core/types.h"
#include "../util/util.h"
#include "registry.h"

/* ---- numbers ---- */

static const char *
read_factor(const JsonbValue *value, void *place)
{
	int64 number;

	if (!tq_json_whole_number(value, 1, PG_INT32_MAX, &number))
		return "is a whole number from 1 to 2147483647";
	*(int64_t *) place = number;
	return NULL;
}

/* ---- words ---- */

static const char *
read_kind(const JsonbValue *value, void *place)
{
	if (value->type != jbvString ||
		!tq_backoff_parse(tq_json_string_of(value), place))
		return "is fixed, linear or exponential";
	return NULL;
}

static const char *
read_effect(const JsonbValue *value, void *place)
{
	if (value->type != jbvString ||
		!tq_unsuccessful_parse(tq_json_string_of(value), place))
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
read_reasons(const JsonbValue *value, void *place)
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
	*(uint32_t *) place = reasons;
	return NULL;
}

/* ---- objects ---- */

static const TqField backoff_fields[] = {
	{"delay", tq_field_time, offsetof(TqPolicy, retry_delay)},
	{"kind", read_kind, offsetof(TqPolicy, backoff)},
	{"factor", read_factor, offsetof(TqPolicy, factor)},
	{"max", tq_field_time, offsetof(TqPolicy, max_delay)},
	{"jitter", tq_field_time, offsetof(TqPolicy, jitter)},
};

/*
 * Reads the object retryBackoff, whose keys are fields of the policy itself.
 */
static const char *
read_backoff(const JsonbValue *value, void *place)
{
	const char *fault;

	if (!tq_json_is_object(value))
		return "is an object";
	fault = tq_fields_read(value->val.binary.data, backoff_fields,
						   lengthof(backoff_fields), place);
	return fault == NULL ? NULL : psprintf("is an object, which %s", fault);
}

/* ---- keys ---- */

#define KEY_MAX 255 /* characters */

/* In place of a key in a stored policy: the task has one. */
static char stored_key[] = "";

/* Reads a key, or true in a stored policy. */
static const char *
read_key(const JsonbValue *value, void *place)
{
	if (value->type == jbvBool && value->val.boolean)
	{
		*(char **) place = stored_key;
		return NULL;
	}
	if (!tq_json_is_string(value, KEY_MAX) || value->val.string.len == 0)
		return "is a string of 1 to 255 characters";
	*(char **) place = tq_json_string_of(value);
	return NULL;
}

static const char *
read_unique_scope(const JsonbValue *value, void *place)
{
	char *name = value->type == jbvString ? tq_json_string_of(value) : NULL;

	if (name == NULL ||
		(strcmp(name, "queue") != 0 && strcmp(name, "database") != 0))
		return "is queue or database";
	*(bool *) place = strcmp(name, "database") == 0;
	return NULL;
}

static const char *
read_on_conflict(const JsonbValue *value, void *place)
{
	if (value->type != jbvString ||
		!tq_on_conflict_parse(tq_json_string_of(value), place))
		return "is return, replace or reject";
	return NULL;
}

static const char *
read_serial_on_failure(const JsonbValue *value, void *place)
{
	char *name = value->type == jbvString ? tq_json_string_of(value) : NULL;

	if (name == NULL ||
		(strcmp(name, "continue") != 0 && strcmp(name, "hold") != 0))
		return "is continue or hold";
	*(bool *) place = strcmp(name, "hold") == 0;
	return NULL;
}

/* Reads an array of states as a set of bits. */
static const char *
read_states(const JsonbValue *value, void *place)
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
	*(uint32_t *) place = states;
	return NULL;
}

#define IN_POLICY(field)                                                      \
	(offsetof(TqGivenPolicy, policy) + offsetof(TqPolicy, field))

/* Not a key that a policy may be given with; see tq_policy_with_default(). */
#define QUEUE_DEFAULT "queueDefault"

static const TqField fields[] = {
	{"retries", tq_field_count, offsetof(TqGivenPolicy, retries)},
	{"retryOn", read_reasons, IN_POLICY(retry_on)},
	{"lostRetries", tq_field_count, IN_POLICY(lost_retries)},
	{"retryBackoff", read_backoff, offsetof(TqGivenPolicy, policy)},
	{"claimTimeout", tq_field_time, IN_POLICY(claim_timeout)},
	{"runTimeout", tq_field_time, IN_POLICY(run_timeout)},
	{"pendingTimeout", tq_field_time, IN_POLICY(pending_timeout)},
	{"totalTimeout", tq_field_time, IN_POLICY(total_timeout)},
	{"timeoutAlertOnly", tq_field_flag, IN_POLICY(alert_only)},
	{"onUnsuccessful", read_effect, IN_POLICY(on_unsuccessful)},
	{"deadLetter", tq_field_flag, IN_POLICY(dead_letter)},
	{"retainCompleted", tq_field_time, IN_POLICY(retain_completed)},
	{"retainFailed", tq_field_time, IN_POLICY(retain_failed)},
	{"dropPayload", tq_field_flag, IN_POLICY(drop_payload)},
	{"delay", tq_field_time, offsetof(TqGivenPolicy, delay)},
	{"uniqueKey", read_key, offsetof(TqGivenPolicy, keys[TQ_KEY_UNIQUE])},
	{"uniqueScope", read_unique_scope, IN_POLICY(unique_in_database)},
	{"uniqueStates", read_states, IN_POLICY(unique_states)},
	{"uniquePeriod", tq_field_time, IN_POLICY(unique_period)},
	{"onConflict", read_on_conflict, IN_POLICY(on_conflict)},
	{"serialKey", read_key, offsetof(TqGivenPolicy, keys[TQ_KEY_SERIAL])},
	{"serialOnFailure", read_serial_on_failure, IN_POLICY(serial_holds)},
	{"concurrencyKey", read_key,
	 offsetof(TqGivenPolicy, keys[TQ_KEY_CONCURRENCY])},
	{"fairnessKey", read_key, offsetof(TqGivenPolicy, keys[TQ_KEY_FAIRNESS])},
};

/* Sets the fields that a policy gives, and leaves the others. */
static const char *
read_policy(const JsonbContainer *policy, TqGivenPolicy *given)
{
	const char *fault = tq_fields_read(policy, fields, lengthof(fields),
									   given);

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
	fault = read_policy(&json->root, given);
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
Jsonb *
tq_policy_of_default(Jsonb *policy)
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
							JsonbPGetDatum(tq_policy_of_default(added))));
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
		return read_policy(&json->root, given);
	if (!tq_json_is_object(added))
		return "must have a \"" QUEUE_DEFAULT "\" that is an object";
	fault = read_policy(added->val.binary.data, given);
	if (fault != NULL)
		return fault;
	json = without(unconstify(Jsonb *, json), QUEUE_DEFAULT);
	return read_policy(&json->root, given);
}
