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
#include "utils/numeric.h"

#include "../core/names.h"
#include "../core/policy.h"
#include "../core/types.h"
#include "../util/clock.h"
#include "../util/errors.h"
#include "../util/json_reader.h"
#include "policy_json.h"

#define LONGEST_SECONDS PG_INT32_MAX
#define LONGEST_MS (LONGEST_SECONDS * INT64CONST(1000))
#define DURATION                                                              \
	"from 0 to 2147483647 seconds, as a number or as interval text"

/*
 * Stores a value in its field.  Returns NULL, or what the value has to be, as
 * a text that follows `must have a "key" that`.
 */
typedef const char *Read(const JsonbValue *value, void *place);

typedef struct Field
{
	const char *key;
	Read *read;
	size_t place; /* offset in the struct that is filled */
} Field;

/* ---- numbers ---- */

static const char *
read_retries(const JsonbValue *value, void *place)
{
	int64 number;

	if (!tq_json_whole_number(value, 0, PG_INT32_MAX, &number))
		return "is a whole number from 0 to 2147483647";
	*(int *) place = (int) number;
	return NULL;
}

static const char *
read_factor(const JsonbValue *value, void *place)
{
	int64 number;

	if (!tq_json_whole_number(value, 1, PG_INT32_MAX, &number))
		return "is a whole number from 1 to 2147483647";
	*(int64_t *) place = number;
	return NULL;
}

/* ---- durations ---- */

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

static const char *
read_time(const JsonbValue *value, void *place)
{
	int64 ms;

	if (!read_duration(value, &ms))
		return "is " DURATION;
	*(int64_t *) place = ms;
	return NULL;
}

/* ---- words ---- */

static const char *
read_flag(const JsonbValue *value, void *place)
{
	if (value->type != jbvBool)
		return "is true or false";
	*(bool *) place = value->val.boolean;
	return NULL;
}

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

static char *
must_have(const char *key, const char *rule)
{
	return psprintf("must have %s \"%s\" that %s",
					strchr("aeiou", key[0]) != NULL ? "an" : "a", key, rule);
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
		rule = fields[i].read(value, (char *) base + fields[i].place);
		return rule == NULL ? NULL : must_have(fields[i].key, rule);
	}
	return psprintf("must not have the key \"%s\"",
					tq_error_clip(tq_json_string_of(key)));
}

/*
 * Reads every key of an object; nested values are for the reader of their key.
 */
static const char *
read_object(const JsonbContainer *object, const Field *fields, int n,
			void *base)
{
	TqJsonIterator it = tq_json_iterate(object);

	while (tq_json_next(&it))
	{
		const char *fault = read_field(fields, n, &it.key, &it.value, base);

		if (fault != NULL)
			return fault;
	}
	return NULL;
}

static const Field backoff_fields[] = {
	{"delay", read_time, offsetof(TqPolicy, retry_delay)},
	{"kind", read_kind, offsetof(TqPolicy, backoff)},
	{"factor", read_factor, offsetof(TqPolicy, factor)},
	{"max", read_time, offsetof(TqPolicy, max_delay)},
	{"jitter", read_time, offsetof(TqPolicy, jitter)},
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
	fault = read_object(value->val.binary.data, backoff_fields,
						lengthof(backoff_fields), place);
	return fault == NULL ? NULL : psprintf("is an object, which %s", fault);
}

#define IN_POLICY(field)                                                      \
	(offsetof(TqGivenPolicy, policy) + offsetof(TqPolicy, field))

static const Field fields[] = {
	{"retries", read_retries, offsetof(TqGivenPolicy, retries)},
	{"retryOn", read_reasons, IN_POLICY(retry_on)},
	{"lostRetries", read_retries, IN_POLICY(lost_retries)},
	{"retryBackoff", read_backoff, offsetof(TqGivenPolicy, policy)},
	{"claimTimeout", read_time, IN_POLICY(claim_timeout)},
	{"runTimeout", read_time, IN_POLICY(run_timeout)},
	{"pendingTimeout", read_time, IN_POLICY(pending_timeout)},
	{"totalTimeout", read_time, IN_POLICY(total_timeout)},
	{"timeoutAlertOnly", read_flag, IN_POLICY(alert_only)},
	{"onUnsuccessful", read_effect, IN_POLICY(on_unsuccessful)},
	{"deadLetter", read_flag, IN_POLICY(dead_letter)},
	{"retainCompleted", read_time, IN_POLICY(retain_completed)},
	{"retainFailed", read_time, IN_POLICY(retain_failed)},
	{"dropPayload", read_flag, IN_POLICY(drop_payload)},
	{"delay", read_time, offsetof(TqGivenPolicy, delay)},
};

/*
 * Reads a policy.  Returns NULL, or what is wrong with it, as a text that
 * follows "policy" in an error; *given is undefined then.
 */
const char *
tq_policy_parse(const Jsonb *json, TqGivenPolicy *given)
{
	given->policy = tq_policy_plain;
	given->retries = TQ_OFF;
	given->delay = TQ_OFF;
	if (!JB_ROOT_IS_OBJECT(json))
		return "must be an object";
	if (VARSIZE(json) > TQ_POLICY_BYTES)
		return psprintf("must not be larger than %d bytes", TQ_POLICY_BYTES);
	return read_object(&json->root, fields, lengthof(fields), given);
}
