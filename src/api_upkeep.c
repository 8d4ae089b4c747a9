/*
 * api_upkeep.c
 *	  SQL functions for upkeep, and the words for stored numbers.
 *
 * Room 5: doors.  upkeep() does in one transaction what the background worker
 * does in many.
 */
#include "api.h"

#include "utils/builtins.h"

#include "shmem.h"
#include "upkeep.h"

PG_FUNCTION_INFO_V1(tq_upkeep);
PG_FUNCTION_INFO_V1(tq_worker_activity);
PG_FUNCTION_INFO_V1(tq_state_name_sql);
PG_FUNCTION_INFO_V1(tq_reason_created_name);
PG_FUNCTION_INFO_V1(tq_reason_resolved_name);
PG_FUNCTION_INFO_V1(tq_priority_name_sql);

/* All batches of one step; what is published is one batch. */
static int64
run_step(TqStep step)
{
	TqMark mark = TQ_MARK_BEGIN;
	TqBatch batch;
	int64 tasks = 0;

	do
	{
		tq_upkeep_step(step, &mark, &batch);
		tasks += batch.tasks;
		CHECK_FOR_INTERRUPTS();
	} while (batch.more && step != TQ_STEP_PUBLISH);
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

static Datum
interval_of(int64 us)
{
	Interval *interval = palloc0(sizeof(Interval));

	interval->time = us;
	return IntervalPGetDatum(interval);
}

static void
put_activity(ReturnSetInfo *result, const char *name,
			 const TqActivity *activity, bool has_tasks)
{
	bool is_timed = activity->max_late_at != DT_NOBEGIN;
	Datum values[7] = {CStringGetTextDatum(name),
					   Int64GetDatum(activity->batches),
					   Int64GetDatum(activity->tasks),
					   TimestampTzGetDatum(activity->last_at),
					   interval_of(activity->last_late),
					   interval_of(activity->max_late),
					   TimestampTzGetDatum(activity->max_late_at)};
	bool nulls[7] = {false,
					 false,
					 !has_tasks,
					 activity->last_at == DT_NOBEGIN,
					 !is_timed,
					 !is_timed,
					 !is_timed};

	tq_put_row(result, values, nulls);
}

/*
 * worker_activity() -> (step text, batches bigint, tasks bigint, last_at
 * timestamptz, last_late interval, max_late interval, max_late_at timestamptz):
 * a row for the turns and one for each step; none where there is no worker.
 */
Datum
tq_worker_activity(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	TqActivity activity;

	InitMaterializedSRF(fcinfo, 0);
	if (tq_shmem_activity(-1, &activity))
		put_activity(result, "turn", &activity, false);
	for (int step = 0; step < TQ_STEPS; step++)
	{
		if (tq_shmem_activity(step, &activity))
			put_activity(result, tq_step_name((TqStep) step), &activity, true);
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
