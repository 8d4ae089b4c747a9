/*
 * retry_policy.c
 *	  The policy that the argument retry of enqueue() stands for
 *	  (doc/spec/policy.md 2.1).
 *
 * The number of retries is not part of it, but of the task, so that tasks with
 * different numbers share one stored policy.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

#include "../util/util.h"
#include "engine.h"

/*
 * The first delay is that of a service that restarts, and the cap lets a task
 * with many retries outlast an outage of hours.  The jitter is as long as the
 * first delay, so that tasks that fail together do not return together.
 */
static const char retry_policy[] =
	"{\"retryOn\": [\"failed\", \"claim-expired\", \"worker-shutdown\", \"intermittent-task\"],"
	" \"retryBackoff\": {\"kind\": \"exponential\", \"delay\": 10, \"max\": 3600, \"jitter\": 10}}";

/* The keys that retry sets, and lostRetries, which would make it untrue. */
static const char *const set_keys[] = {"retries", "retryOn", "retryBackoff",
									   "lostRetries"};

/* Returns the policy alone, which each session parses once. */
static Jsonb *
plain_policy(void)
{
	static Jsonb *plain = NULL;
	MemoryContext outer;

	if (plain != NULL)
		return plain;
	outer = MemoryContextSwitchTo(TopMemoryContext);
	plain = DatumGetJsonbP(
		DirectFunctionCall1(jsonb_in, CStringGetDatum(retry_policy)));
	MemoryContextSwitchTo(outer);
	return plain;
}

static void
refuse_set_keys(const Jsonb *policy)
{
	for (int i = 0; i < lengthof(set_keys); i++)
	{
		const JsonbValue *value = tq_json_get(policy, set_keys[i]);

		if (value != NULL && value->type != jbvNull)
			ereport(
				ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg(
					 "retry and the key \"%s\" of policy exclude each other",
					 set_keys[i]),
				 errdetail(
					 "retry sets the number of retries, what is retried, and the delay."),
				 errhint("Leave retry out, or \"%s\".", set_keys[i])));
	}
}

/*
 * Returns the policy of retry with the keys of another policy, which must be an
 * object, or NULL for none.
 */
Jsonb *
tq_retry_policy(Jsonb *policy)
{
	if (policy == NULL)
		return plain_policy();
	refuse_set_keys(policy);
	return DatumGetJsonbP(DirectFunctionCall2(jsonb_concat,
											  JsonbPGetDatum(policy),
											  JsonbPGetDatum(plain_policy())));
}
