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
#include "../util/errors.h"
#include "../util/json_reader.h"
#include "../util/json_writer.h"
#include "json_fields.h"
#include "policy_json.h"

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
		return "is block, cancel-group, tolerate or forgive";
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
};

/* Sets the fields that a policy gives, and leaves the others. */
static const char *
read_policy(const JsonbContainer *policy, TqGivenPolicy *given)
{
	return tq_fields_read(policy, fields, lengthof(fields), given);
}

static void
begin_policy(TqGivenPolicy *given)
{
	given->policy = tq_policy_plain;
	given->retries = TQ_OFF;
	given->delay = TQ_OFF;
}

/*
 * Reads a policy.  Returns NULL, or what is wrong with it, as a text that
 * follows "policy" in an error; *given is undefined then.
 */
const char *
tq_policy_parse(const Jsonb *json, TqGivenPolicy *given)
{
	begin_policy(given);
	if (!JB_ROOT_IS_OBJECT(json))
		return "must be an object";
	if (VARSIZE(json) > TQ_POLICY_BYTES)
		return psprintf("must not be larger than %d bytes", TQ_POLICY_BYTES);
	return read_policy(&json->root, given);
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

/*
 * Reads a policy that a task stores.  Returns NULL, or what is wrong with it, as
 * tq_policy_parse() does.
 */
const char *
tq_policy_parse_stored(const Jsonb *json, TqGivenPolicy *given)
{
	const JsonbValue *added = tq_json_get(json, QUEUE_DEFAULT);
	const char *fault;

	if (added == NULL)
		return tq_policy_parse(json, given);
	begin_policy(given);
	if (!tq_json_is_object(added))
		return "must have a \"" QUEUE_DEFAULT "\" that is an object";
	fault = read_policy(added->val.binary.data, given);
	if (fault != NULL)
		return fault;
	return read_policy(&without(unconstify(Jsonb *, json), QUEUE_DEFAULT)
							->root,
					   given);
}
