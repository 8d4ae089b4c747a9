/*
 * api_upkeep.c
 *	  SQL functions for upkeep, and the words for stored numbers.
 *
 * Room 5: doors.  upkeep() does in one transaction what the background worker
 * does in many.
 */
#include "api.h"

#include "utils/builtins.h"

#include "upkeep.h"

PG_FUNCTION_INFO_V1(tq_upkeep);
PG_FUNCTION_INFO_V1(tq_state_name_sql);
PG_FUNCTION_INFO_V1(tq_reason_created_name);
PG_FUNCTION_INFO_V1(tq_reason_resolved_name);
PG_FUNCTION_INFO_V1(tq_priority_name_sql);

/* All batches of one step; what is published is one batch. */
static int64
run_step(TqStep step)
{
	TqMark mark = TQ_MARK_BEGIN;
	int64 tasks = 0;
	bool more;

	do
	{
		tasks += tq_upkeep_step(step, &mark, &more);
		CHECK_FOR_INTERRUPTS();
	} while (more && step != TQ_STEP_PUBLISH);
	return tasks;
}

/* upkeep() -> (step text, tasks bigint), a row for each step */
Datum
tq_upkeep(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	for (int step = 0; step < TQ_STEPS; step++)
	{
		Datum values[2] = {CStringGetTextDatum(tq_step_name((TqStep) step)),
						   Int64GetDatum(run_step((TqStep) step))};
		bool nulls[2] = {false, false};

		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
	}
	return (Datum) 0;
}

/* A name, or NULL for a number that means nothing. */
static Datum
return_name(FunctionCallInfo fcinfo, const char *name)
{
	if (name == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(name));
}

Datum
tq_state_name_sql(PG_FUNCTION_ARGS)
{
	return return_name(fcinfo, tq_state_name((TqState) PG_GETARG_INT32(0)));
}

Datum
tq_reason_created_name(PG_FUNCTION_ARGS)
{
	return return_name(fcinfo,
					   tq_created_name((TqCreated) PG_GETARG_INT32(0)));
}

Datum
tq_reason_resolved_name(PG_FUNCTION_ARGS)
{
	return return_name(fcinfo,
					   tq_resolved_name((TqResolved) PG_GETARG_INT32(0)));
}

Datum
tq_priority_name_sql(PG_FUNCTION_ARGS)
{
	return return_name(fcinfo, tq_priority_name(PG_GETARG_INT32(0)));
}
