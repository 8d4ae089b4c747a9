/*
 * enqueue.c
 *	  Definitions from the arguments of enqueue() (doc/spec/taskcluster.md 1.1 and
 *	  1.2), and the policy that its argument retry stands for
 *	  (doc/spec/policy.md 2.1).
 *
 * definition.c has the rules for the values.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "../events/events.h"
#include "rules.h"

#define NAME_MAX_LENGTH 255

/* ---- retry ---- */

/*
 * The policy of retry.  The number of retries is not part of it, but of the
 * task, so that tasks with different numbers share one stored policy.
 *
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

/*
 * Returns the policy of retry with the keys of another policy, which must be an
 * object, or NULL for none.
 */
static Jsonb *
policy_of_retry(Jsonb *policy)
{
	if (policy == NULL)
		return plain_policy();
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
	return DatumGetJsonbP(DirectFunctionCall2(jsonb_concat,
											  JsonbPGetDatum(policy),
											  JsonbPGetDatum(plain_policy())));
}

/* ---- arguments ---- */

/* Returns the elements of a text array, none of which may be NULL. */
static char **
strings_of_array(TqFaults *faults, const char *key, ArrayType *array, int *n)
{
	char **items = tq_texts_of_array(array, n);

	for (int i = 0; i < *n; i++)
	{
		if (items[i] != NULL)
			continue;
		tq_fault(faults, key,
				 psprintf("must not have a NULL element; item %d is NULL",
						  i + 1));
		*n = 0;
	}
	return items;
}

static Jsonb *
checked_object(TqFaults *faults, const char *key, Jsonb *object)
{
	if (JB_ROOT_IS_OBJECT(object))
		return object;
	tq_fault(faults, key,
			 psprintf("must be an object; it is %s",
					  tq_json_clip(&object->root)));
	return NULL;
}

static Jsonb *
metadata_with_name(TqFaults *faults, const char *name)
{
	if (name == NULL)
		return NULL;
	if (pg_mbstrlen(name) > NAME_MAX_LENGTH)
		tq_fault(faults, "name",
				 psprintf("has %d characters, and may have %d; it is \"%s\"",
						  pg_mbstrlen(name), NAME_MAX_LENGTH,
						  tq_error_clip(name)));
	return tq_metadata_json(name);
}

/* Returns the policy of enqueue(), or NULL for none. */
static Jsonb *
enqueue_policy_of(TqFaults *faults, const TqEnqueue *arguments)
{
	Jsonb *policy = arguments->policy;

	if (policy != NULL)
		policy = checked_object(faults, "policy", policy);
	return arguments->retry == TQ_OFF ? policy : policy_of_retry(policy);
}

/* Sets the retries of a task of enqueue(), by one of two arguments. */
static void
set_retries(TqTaskDefinition *definition, const TqEnqueue *arguments)
{
	definition->has_own_retries = true;
	if (arguments->retry != TQ_OFF)
		definition->named.task.retries = arguments->retry;
	else if (arguments->retries != TQ_OFF)
		definition->named.task.retries = arguments->retries;
	else
	{
		definition->named.task.retries = TQ_RETRIES_DEFAULT;
		definition->has_own_retries = false;
	}
}

/*
 * Completes a task of enqueue() from its arguments, except for the payload.
 * Names, dependencies and times are in the task already and are checked here,
 * the times only if there are other faults.
 */
void
tq_definition_fill(TqFaults *faults, TqTaskDefinition *definition,
				   const TqEnqueue *arguments)
{
	TqTask *task = &definition->named.task;
	Jsonb *policy;
	Jsonb *extra;
	int n;
	char **items;

	definition->is_of_arguments = true;
	if (!tq_is_identifier(definition->named.scheduler_id))
		tq_fault(faults, "schedulerId",
				 psprintf(TQ_IDENTIFIER_RULE "; it is \"%s\"",
						  tq_error_clip(definition->named.scheduler_id)));
	tq_definition_check_project(faults, definition);
	tq_definition_check_dependencies(faults, definition);
	task->all_resolved = tq_definition_requires(faults, arguments->requires);
	task->priority = tq_definition_priority(faults, arguments->priority);
	set_retries(definition, arguments);
	items = strings_of_array(faults, "routes", arguments->routes, &n);
	definition->routes = tq_definition_routes(faults, items, n);
	items = strings_of_array(faults, "scopes", arguments->scopes, &n);
	definition->scopes = tq_definition_scopes(faults, items, n);
	definition->tags = tq_definition_tags(faults,
										  checked_object(faults, "tags",
														 arguments->tags));
	extra = checked_object(faults, "extra", arguments->extra);
	definition->extra = extra == NULL ? NULL : tq_json_unless_empty(extra);
	definition->metadata = metadata_with_name(faults, arguments->name);
	tq_definition_set_expires(&definition->named, &tq_policy_plain);
	policy = enqueue_policy_of(faults, arguments);
	if (policy != NULL)
		tq_definition_apply_policy(faults, definition, policy);
	if (arguments->delay_ms > 0)
		task->delay = arguments->delay_ms;
	definition->run_at = arguments->run_at;
	if (arguments->run_at != 0)
		task->delay = tq_policy_delay_until(task->created, arguments->run_at);
	definition->is_timed_from_visible = definition->any_deadline = true;
	tq_definition_check_sizes(faults, definition);
	if (faults->n > 0)
		tq_faults_add_times(faults, definition);
}
