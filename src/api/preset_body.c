/*
 * preset_body.c
 *	  What the bodies of functions for users of Conductor and Taskbroker call
 *	  (src/sql/presets.sql), and the predicate that view tq.task_overview applies
 *	  to policies.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "../core/names.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_sql_json_shown);
PG_FUNCTION_INFO_V1(tq_sql_policy_fault);
PG_FUNCTION_INFO_V1(tq_sql_last_run);
PG_FUNCTION_INFO_V1(tq_is_tolerated_sql);

/* json_shown(value jsonb) -> text: as an error shows it */
Datum
tq_sql_json_shown(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(
		cstring_to_text(tq_json_clip(&PG_GETARG_JSONB_P(0)->root)));
}

/* policy_fault(policy jsonb) -> text; NULL: a task may have it */
Datum
tq_sql_policy_fault(PG_FUNCTION_ARGS)
{
	TqGivenPolicy given;
	const char *fault = tq_policy_parse(PG_GETARG_JSONB_P(0), &given);

	if (fault == NULL)
		fault = tq_policy_fault(&given.policy, given.retries, tq_max_runs);
	if (fault == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(fault));
}

/* Returns the last run of a task, or the location of an unscheduled one. */
static TqRun
read_last_run(const TqTask *task)
{
	TqRun run;

	if (!tq_run_peek(task->id, &run))
		tq_error_missing_task(&task->task_id);
	return run;
}

/*
 * last_run(task_id tq.slugid) -> (state, reason, is_delayed, is_forgiven), of a
 * task that the caller may read
 */
Datum
tq_sql_last_run(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	const TqPolicy *policy;
	const TqTask *task;
	TupleDesc desc;
	TqRun run;
	Datum values[4];
	bool nulls[4] = {false};
	MemoryContext outer = CurrentMemoryContext;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "last_run() returns a row");
	tq_spi_begin_part();
	tq_require_read("status", task_id);
	task = &tq_task_get(task_id)->task;
	run = read_last_run(task);
	policy = tq_policy_get(task->policy);
	MemoryContextSwitchTo(outer);
	values[0] = CStringGetTextDatum(tq_state_name(run.state));
	nulls[1] = run.reason == TQ_RESOLVED_NONE;
	values[1] = nulls[1] ? (Datum) 0
						 : CStringGetTextDatum(tq_resolved_name(run.reason));
	values[2] = BoolGetDatum(run.location == TQ_LOCATION_DELAYED);
	values[3] = BoolGetDatum(policy->on_unsuccessful ==
								 TQ_UNSUCCESSFUL_FORGIVE &&
							 tq_policy_tolerates(policy, run.reason));
	tq_spi_end_part();
	PG_RETURN_DATUM(HeapTupleGetDatum(
		heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
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
