/*
 * compat_api.c
 *	  SQL functions for users of Conductor and Taskbroker, and the predicate
 *	  that view tq.task_overview applies to policies.
 *
 * The first two read nothing but their arguments.  Raises TQ400 for an invalid
 * definition, TQ404 for a task that does not exist.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "../core/policy.h"
#include "../core/types.h"
#include "../engine/engine.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_conductor_policy);
PG_FUNCTION_INFO_V1(tq_taskbroker_policy);
PG_FUNCTION_INFO_V1(tq_conductor_status);
PG_FUNCTION_INFO_V1(tq_taskbroker_status);
PG_FUNCTION_INFO_V1(tq_is_tolerated_sql);

/*
 * conductor_policy(task_def jsonb, workflow_task jsonb) -> policy
 * (doc/spec/policy.md 9)
 */
Datum
tq_conductor_policy(PG_FUNCTION_ARGS)
{
	Jsonb *task_def = tq_arg_jsonb(fcinfo, 0, "task_def");
	Jsonb *workflow_task = tq_arg_jsonb(fcinfo, 1, "workflow_task");

	PG_RETURN_JSONB_P(tq_conductor_read(task_def, workflow_task));
}

/* taskbroker_policy(activation jsonb) -> policy (doc/spec/policy.md 9) */
Datum
tq_taskbroker_policy(PG_FUNCTION_ARGS)
{
	Jsonb *activation = tq_arg_jsonb(fcinfo, 0, "activation");

	PG_RETURN_JSONB_P(tq_taskbroker_read(activation));
}

typedef const char *(*Status)(const TqTask *task);

/* Returns the status of the task in the first argument, or NULL. */
static const char *
read_status(FunctionCallInfo fcinfo, Status status)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	const char *word;

	tq_call_begin(true);
	tq_require_read("status", task_id);
	word = status(&tq_task_get(task_id)->task);
	tq_call_end();
	return word;
}

/*
 * conductor_status(task_id slugid) -> text; NULL: unscheduled
 * (doc/spec/policy.md 7, 10.10)
 */
Datum
tq_conductor_status(PG_FUNCTION_ARGS)
{
	const char *word = read_status(fcinfo, tq_conductor_state_name);

	if (word == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(word));
}

/* taskbroker_status(task_id slugid) -> text (doc/spec/policy.md 7, 10.10) */
Datum
tq_taskbroker_status(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(
		cstring_to_text(read_status(fcinfo, tq_taskbroker_state_name)));
}

/*
 * is_tolerated(policy jsonb, reason int) -> bool; false if one is NULL
 * (doc/spec/policy.md 10.7)
 */
Datum
tq_is_tolerated_sql(PG_FUNCTION_ARGS)
{
	TqGivenPolicy given;
	const char *fault;
	int reason;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_BOOL(false);
	fault = tq_policy_parse_stored(PG_GETARG_JSONB_P(0), &given);
	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("invalid policy"),
				 errdetail("The policy %s.", fault),
				 errhint("Give the policy of a task.")));
	reason = PG_GETARG_INT32(1);
	PG_RETURN_BOOL(reason > TQ_RESOLVED_NONE && reason <= TQ_RESOLVED_LAST &&
				   tq_policy_tolerates(&given.policy, (TqResolved) reason));
}
