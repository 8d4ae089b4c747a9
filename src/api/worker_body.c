/*
 * worker_body.c
 *	  What the bodies of functions about workers call (src/sql/workers.sql).
 *
 * Numbers of queues and workers are interned, and cached by each session; what a
 * worker did since its row was written is in shared memory.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "api.h"

PG_FUNCTION_INFO_V1(tq_sql_worker_activity);
PG_FUNCTION_INFO_V1(tq_sql_intern_queue);
PG_FUNCTION_INFO_V1(tq_sql_intern_worker);
PG_FUNCTION_INFO_V1(tq_sql_queue_changed);
PG_FUNCTION_INFO_V1(tq_sql_workers_changed);
PG_FUNCTION_INFO_V1(tq_sql_remove_worker);

/* worker_activity(worker int) -> (seen, tasks, runs) */
Datum
tq_sql_worker_activity(PG_FUNCTION_ARGS)
{
	TqWorkerActivity activity;
	TupleDesc desc;
	Datum values[3];
	bool nulls[3] = {false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "worker_activity() returns a row");
	tq_worker_activity(PG_GETARG_INT32(0), &activity);
	tq_set_time(values, nulls, 0, activity.seen);
	tq_worker_claims(&activity, &values[1], &values[2]);
	PG_RETURN_DATUM(HeapTupleGetDatum(
		heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/* intern_queue(task_queue_id text) -> int */
Datum
tq_sql_intern_queue(PG_FUNCTION_ARGS)
{
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int32 queue;

	tq_spi_begin_part();
	queue = tq_queue_intern(name);
	tq_spi_end_part();
	PG_RETURN_INT32(queue);
}

/* intern_worker(queue int, worker_group text, worker_id text) -> int */
Datum
tq_sql_intern_worker(PG_FUNCTION_ARGS)
{
	char *group = text_to_cstring(PG_GETARG_TEXT_PP(1));
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(2));
	TqWorkerSeat seat;

	tq_spi_begin_part();
	tq_worker_seat_intern(PG_GETARG_INT32(0), group, name, &seat);
	tq_spi_end_part();
	PG_RETURN_INT32(seat.id);
}

/* queue_changed(queue int): after an update of its row */
Datum
tq_sql_queue_changed(PG_FUNCTION_ARGS)
{
	tq_queue_changed(PG_GETARG_INT32(0));
	PG_RETURN_VOID();
}

/* workers_changed(): after an update of rows of workers */
Datum
tq_sql_workers_changed(PG_FUNCTION_ARGS)
{
	tq_workers_changed();
	PG_RETURN_VOID();
}

/* remove_worker(worker int, error jsonb) -> (task_id, run_id, outcome) */
Datum
tq_sql_remove_worker(PG_FUNCTION_ARGS)
{
	Jsonb *error = PG_ARGISNULL(1) ? NULL : PG_GETARG_JSONB_P(1);
	TqReport *reports;
	int n;

	if (PG_ARGISNULL(0))
		elog(ERROR, "a body gives no worker");
	InitMaterializedSRF(fcinfo, 0);
	tq_spi_begin_part();
	reports = tq_worker_remove(PG_GETARG_INT32(0), error, tq_clock_now(), &n);
	for (int i = 0; i < n; i++)
		tq_put_outcome((ReturnSetInfo *) fcinfo->resultinfo, &reports[i]);
	tq_spi_end_part();
	return (Datum) 0;
}
