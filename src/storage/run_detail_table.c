/*
 * run_detail_table.c
 *	  Rows of tq_internal.run_detail: attributes that only some runs have.
 *
 * A run has a detail if has_detail is set in its row of pending, delayed or
 * run.  The detail is written under the lock on that row, so it needs no lock
 * of its own.  A run without a detail is visible since it was scheduled,
 * belongs to attempt 0, and has the whole budget of lost runs.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "utils/array.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "../core/types.h"
#include "../util/spi.h"
#include "columns.h"
#include "index_scan.h"
#include "run_detail_table.h"
#include "run_table.h"
#include "table.h"

/*
 * The parameters are the columns in their order.  Keeps the stored error and
 * result where none is given.
 */
static TqStatement write_details = TQ_STATEMENT(
	"INSERT INTO tq_internal.run_detail AS d"
	" SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
	" ON CONFLICT (task, run_id) DO UPDATE SET visible_at = excluded.visible_at,"
	" pending_until = excluded.pending_until, started = excluded.started, worker = excluded.worker,"
	" attempt = excluded.attempt, lost_retries_left = excluded.lost_retries_left, retry_delay = excluded.retry_delay,"
	" error = coalesce(excluded.error, d.error), result = coalesce(excluded.result, d.result)",
	INT8ARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID,
	TIMESTAMPTZARRAYOID, INT4ARRAYOID, INT4ARRAYOID, INT4ARRAYOID,
	INT4ARRAYOID, INT8ARRAYOID, JSONBARRAYOID, JSONBARRAYOID);

static TqRelation detail_table = TQ_RELATION("run_detail");
static TqRelation detail_by_key = TQ_RELATION("run_detail_pkey");

TQ_NUMBERS(TQ_RUN_DETAIL_COLUMNS, run_detail);

/* ---- writing ---- */

/* Builds an array of times; 0 becomes NULL. */
static Datum
array_of_times(const TimestampTz *times, int n)
{
	Datum *values = palloc(sizeof(Datum) * n);
	bool *nulls = palloc(sizeof(bool) * n);
	int lower = 1;

	for (int i = 0; i < n; i++)
	{
		values[i] = TimestampTzGetDatum(times[i]);
		nulls[i] = times[i] == 0;
	}
	return PointerGetDatum(
		construct_md_array(values, nulls, 1, &n, &lower, TIMESTAMPTZOID,
						   sizeof(TimestampTz), true, TYPALIGN_DOUBLE));
}

/* Builds an array of jsonb; a null pointer becomes NULL. */
static Datum
array_of_jsonb(Jsonb *const *objects, int n)
{
	Datum *values = palloc(sizeof(Datum) * n);
	bool *nulls = palloc(sizeof(bool) * n);
	int lower = 1;

	for (int i = 0; i < n; i++)
	{
		values[i] = PointerGetDatum(objects[i]);
		nulls[i] = objects[i] == NULL;
	}
	return PointerGetDatum(construct_md_array(values, nulls, 1, &n, &lower,
											  JSONBOID, -1, false,
											  TYPALIGN_INT));
}

/*
 * Inserts or updates the details of these runs, whose rows are locked.  A
 * worker of 0 means none and is stored as 0, not as NULL.
 */
void
tq_details_write(const TqRun *runs, int n)
{
	Datum values[Natts_run_detail];

	if (n == 0)
		return;
	TQ_COLUMN(runs, n, int64, tq_array_int64, task, values[0]);
	TQ_COLUMN(runs, n, TimestampTz, tq_array_time, visible_at, values[1]);
	TQ_COLUMN(runs, n, TimestampTz, array_of_times, pending_until, values[2]);
	TQ_COLUMN(runs, n, TimestampTz, array_of_times, started, values[3]);
	TQ_COLUMN(runs, n, int32, tq_array_int32, worker, values[4]);
	TQ_COLUMN(runs, n, int32, tq_array_int32, run_id, values[5]);
	TQ_COLUMN(runs, n, int32, tq_array_int32, attempt, values[6]);
	TQ_COLUMN(runs, n, int32, tq_array_int32, lost_retries_left, values[7]);
	TQ_COLUMN(runs, n, int64, tq_array_int64, retry_delay, values[8]);
	TQ_COLUMN(runs, n, Jsonb *, array_of_jsonb, error, values[9]);
	TQ_COLUMN(runs, n, Jsonb *, array_of_jsonb, result, values[10]);
	tq_spi_run(&write_details, values, NULL);
}

/* ---- reading ---- */

/*
 * Reads a detail into a run.  The worker and the start of a run that is
 * running or resolved are in its own row; those of a pending run, which was
 * deferred, are in the detail.  The result is never read here, and the error
 * only on request, because both may be large.
 */
static void
read_row(TupleTableSlot *slot, bool with_error, TqRun *row)
{
	TQ_RUN_DETAIL_TIMES(TQ_GET, run_detail);
	if (row->state == TQ_STATE_PENDING)
	{
		row->started = tq_row_int64(slot, Anum_run_detail_started);
		row->worker = tq_row_int32(slot, Anum_run_detail_worker);
	}
	TQ_RUN_DETAIL_BUDGET(TQ_GET, run_detail);
	if (with_error)
		row->error = tq_row_varlena(slot, Anum_run_detail_error);
}

/* Returns whether a run has a detail that has not been read. */
static bool
is_to_be_read(const TqRun *run)
{
	return run->has_detail && run->visible_at == 0;
}

/* Reads the details of those of these runs that have one. */
static void
read_some(TqRun *runs, int n, bool with_errors)
{
	TqScan *scan = tq_scan_open(&detail_table, &detail_by_key, 2, NULL);

	for (int i = 0; i < n; i++)
	{
		if (!is_to_be_read(&runs[i]))
			continue;
		if (tq_scan_find(scan, Int64GetDatum(runs[i].task),
						 Int16GetDatum(runs[i].run_id), 0))
			read_row(scan->slot, with_errors, &runs[i]);
	}
	tq_scan_close(scan);
}

/* Reads details; opens the table only if there is one to read. */
static void
read_details(TqRun *runs, int n, bool with_errors)
{
	for (int i = 0; i < n; i++)
	{
		if (!is_to_be_read(&runs[i]))
			continue;
		read_some(runs + i, n - i, with_errors);
		return;
	}
}

/*
 * Reads the details of those of these runs that have one that was not read
 * yet.
 */
void
tq_details_read(TqRun *runs, int n)
{
	read_details(runs, n, false);
}

/* Like tq_details_read(), but also reads the errors that workers reported. */
void
tq_details_read_errors(TqRun *runs, int n)
{
	read_details(runs, n, true);
}

/* Returns the result of a run, or NULL if it has none. */
Jsonb *
tq_detail_result(const TqRun *run)
{
	TqScan *scan;
	Jsonb *result = NULL;

	if (!run->has_detail)
		return NULL;
	scan = tq_scan_open(&detail_table, &detail_by_key, 2, NULL);
	if (tq_scan_find(scan, Int64GetDatum(run->task),
					 Int16GetDatum(run->run_id), 0))
		result = tq_row_varlena(scan->slot, Anum_run_detail_result);
	tq_scan_close(scan);
	return result;
}
