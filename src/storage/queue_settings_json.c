/*
 * queue_settings_json.c
 *	  Reads the settings of a queue from JSON, key by key.
 *
 * Reads the object of doc/spec/policy.md 6, with the defaults for what is
 * absent or null.  Like policy_json.c, it returns a text that says what is
 * wrong.
 */
#include "postgres.h"

#include "utils/jsonb.h"

#include "../core/queue_settings.h"
#include "../util/util.h"
#include "registry.h"

#define SETTINGS_BYTES 16000 /* as jsonb, and as text */

/* Keeps the default policy, after checking that it is one. */
static const char *
read_policy(const JsonbValue *value, void *place)
{
	TqGivenPolicy given;
	const char *fault;

	if (!tq_json_is_object(value))
		return "is an object";
	*(Jsonb **) place = JsonbValueToJsonb(unconstify(JsonbValue *, value));
	fault = tq_policy_parse(*(Jsonb **) place, &given);
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
read_weights(const JsonbValue *value, void *place)
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
	*(Jsonb **) place = weights;
	return NULL;
}

#define IN_SETTINGS(field)                                                    \
	(offsetof(TqGivenSettings, settings) + offsetof(TqQueueSettings, field))

static const TqField fields[] = {
	{"paused", tq_field_flag, IN_SETTINGS(is_paused)},
	{"claimTimeout", tq_field_time, IN_SETTINGS(claim_timeout)},
	{"retainCompleted", tq_field_time, IN_SETTINGS(retain_completed)},
	{"retainFailed", tq_field_time, IN_SETTINGS(retain_failed)},
	{"concurrentLimit", tq_field_count, IN_SETTINGS(concurrent_limit)},
	{"rateCount", tq_field_count, IN_SETTINGS(rate_count)},
	{"rateInterval", tq_field_time, IN_SETTINGS(rate_interval)},
	{"maxPending", tq_field_count, IN_SETTINGS(max_pending)},
	{"maxDelayed", tq_field_count, IN_SETTINGS(max_delayed)},
	{"maxRunning", tq_field_count, IN_SETTINGS(max_running)},
	{"keyConcurrentLimit", tq_field_count, IN_SETTINGS(key_concurrent_limit)},
	{"keyRateCount", tq_field_count, IN_SETTINGS(key_rate_count)},
	{"keyRateInterval", tq_field_time, IN_SETTINGS(key_rate_interval)},
	{"fairness", tq_field_flag, IN_SETTINGS(is_fair)},
	{"fairnessWeights", read_weights, offsetof(TqGivenSettings, weights)},
	{"agingInterval", tq_field_time, IN_SETTINGS(aging_interval)},
	{"policy", read_policy, offsetof(TqGivenSettings, policy)},
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
	fault = tq_fields_read(&json->root, fields, lengthof(fields), given);
	given->settings.is_fair |= given->weights != NULL;
	return fault != NULL ? fault : tq_queue_settings_fault(&given->settings);
}
