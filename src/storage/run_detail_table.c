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

#include "utils/snapmgr.h"

#include "columns.h"
#include "tasks.h"

/*
 * The parameters are the columns in their order.  Keeps the stored error and
 * result where none is given.
 */
static TqStatement write_details = TQ_STATEMENT(
	"INSERT INTO tq_internal.run_detail AS d (task, visible_at, pending_until, started, worker, run_id,"
	" attempt, lost_retries_left, retry_delay, error, result)"
	" SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
	" ON CONFLICT (task, run_id) DO UPDATE SET visible_at = excluded.visible_at,"
	" pending_until = excluded.pending_until, started = excluded.started, worker = excluded.worker,"
	" attempt = excluded.attempt, lost_retries_left = excluded.lost_retries_left, retry_delay = excluded.retry_delay,"
	" error = coalesce(excluded.error, d.error), result = coalesce(excluded.result, d.result)",
	INT8ARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID,
	TIMESTAMPTZARRAYOID, INT4ARRAYOID, INT4ARRAYOID, INT4ARRAYOID,
	INT4ARRAYOID, INT8ARRAYOID, JSONBARRAYOID, JSONBARRAYOID);

static TqStatement set_progress = TQ_STATEMENT(
	"UPDATE tq_internal.run_detail SET reported = $3, done = $4, total = $5, message = $6"
	" WHERE task = $1 AND run_id = $2",
	INT8OID, INT2OID, TIMESTAMPTZOID, INT8OID, INT8OID, TEXTOID);

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
tq_details_write(const TqRunDetail *details, int n)
{
	Datum values[11];

	if (n == 0)
		return;
	TQ_COLUMN(details, n, int64, tq_array_int64, task, values[0]);
	TQ_COLUMN(details, n, TimestampTz, tq_array_time, budget.visible_at,
			  values[1]);
	TQ_COLUMN(details, n, TimestampTz, array_of_times, budget.pending_until,
			  values[2]);
	TQ_COLUMN(details, n, TimestampTz, array_of_times, started, values[3]);
	TQ_COLUMN(details, n, int32, tq_array_int32, worker, values[4]);
	TQ_COLUMN(details, n, int32, tq_array_int32, budget.run_id, values[5]);
	TQ_COLUMN(details, n, int32, tq_array_int32, budget.attempt, values[6]);
	TQ_COLUMN(details, n, int32, tq_array_int32, budget.lost_retries_left,
			  values[7]);
	TQ_COLUMN(details, n, int64, tq_array_int64, retry_delay, values[8]);
	TQ_COLUMN(details, n, Jsonb *, array_of_jsonb, error, values[9]);
	TQ_COLUMN(details, n, Jsonb *, array_of_jsonb, result, values[10]);
	tq_spi_run(&write_details, values, NULL);
}

/* ---- reading ---- */

/* Reads the progress in a row, or returns NULL if none was reported. */
static TqRunProgress *
read_progress(TupleTableSlot *slot)
{
	TimestampTz reported = tq_row_time(slot, Anum_run_detail_reported);
	TqRunProgress *progress;

	if (reported == 0)
		return NULL;
	progress = palloc(sizeof(TqRunProgress));
	*progress =
		(TqRunProgress){.done = tq_row_int64(slot, Anum_run_detail_done),
						.total = slot_attisnull(slot, Anum_run_detail_total)
									 ? TQ_OFF
									 : tq_row_int64(slot,
													Anum_run_detail_total),
						.message = tq_row_text(slot, Anum_run_detail_message),
						.reported = reported};
	return progress;
}

/* Finds the detail of a run; returns false if it has none. */
static bool
run_detail_find_row(TqDetailReader *reader, const TqRun *run)
{
	if (!run->has_detail)
		return false;
	if (reader->scan == NULL)
		reader->scan = tq_scan_open(&detail_table, &detail_by_key, 2, NULL);
	return tq_scan_find(reader->scan, Int64GetDatum(run->task),
						Int16GetDatum(run->run_id), 0);
}

/*
 * Reads a detail.  The worker and the start of a run that is running or
 * resolved are in its own row; those of a pending run, which was deferred, are
 * in the detail, and are set in the run.  The result is never read here, and
 * the error only on request, because both may be large.
 */
static void
run_detail_read_row(const TqDetailReader *reader, TqRun *run, TqRunDetail *row)
{
	TupleTableSlot *slot = reader->scan->slot;

	if (run->state == TQ_STATE_PENDING)
	{
		run->started = tq_row_int64(slot, Anum_run_detail_started);
		run->worker = tq_row_int32(slot, Anum_run_detail_worker);
	}
	*row = (TqRunDetail){.task = run->task,
						 .budget = {.run_id = run->run_id,
									.retries_left = run->retries_left},
						 .started = run->started,
						 .worker = run->worker};
	TQ_RUN_DETAIL_TIMES(TQ_GET, run_detail);
	TQ_RUN_DETAIL_BUDGET(TQ_GET, run_detail);
	if (!reader->with_errors)
		return;
	row->error = tq_row_varlena(slot, Anum_run_detail_error);
	row->progress = read_progress(slot);
}

/*
 * Returns the detail of a run, or NULL if it has none; sets the start and the
 * worker of a run that was deferred.
 */
TqRunDetail *
tq_detail_reader_read(TqDetailReader *reader, TqRun *run)
{
	TqRunDetail *detail;

	if (!run_detail_find_row(reader, run))
		return NULL;
	detail = palloc(sizeof(TqRunDetail));
	run_detail_read_row(reader, run, detail);
	return detail;
}

/* Ends reading details. */
void
tq_detail_reader_end(TqDetailReader *reader)
{
	if (reader->scan != NULL)
		tq_scan_close(reader->scan);
}

/* The same for a single run; returns false if it has no detail. */
bool
tq_detail_read(TqRun *run, TqRunDetail *detail)
{
	TqDetailReader reader = {NULL, false};
	bool found = run_detail_find_row(&reader, run);

	if (found)
		run_detail_read_row(&reader, run, detail);
	tq_detail_reader_end(&reader);
	return found;
}

/* Returns the result of a run, or NULL if it has none. */
Jsonb *
tq_detail_result(const TqRun *run)
{
	TqDetailReader reader = {NULL, false};
	Jsonb *result = NULL;

	if (run_detail_find_row(&reader, run))
		result = tq_row_varlena(reader.scan->slot, Anum_run_detail_result);
	tq_detail_reader_end(&reader);
	return result;
}

/* ---- progress ---- */

/* Returns the progress of a run, or NULL if none was reported. */
TqRunProgress *
tq_detail_progress(const TqRun *run)
{
	TqDetailReader reader = {NULL, false};
	TqRunProgress *progress = NULL;

	if (run_detail_find_row(&reader, run))
		progress = read_progress(reader.scan->slot);
	tq_detail_reader_end(&reader);
	return progress;
}

/*
 * Stores the progress of a run in its detail; returns false if it has none any
 * more, because the task was deleted.  Takes no lock on the row of the run, so
 * that no other transition waits for the worker.
 */
bool
tq_detail_set_progress(const TqRun *run, const TqRunProgress *progress)
{
	Datum values[6] = {Int64GetDatum(run->task), Int16GetDatum(run->run_id),
					   TimestampTzGetDatum(progress->reported),
					   Int64GetDatum(progress->done),
					   Int64GetDatum(progress->total)};
	char nulls[7] = "      ";

	if (progress->total == TQ_OFF)
		nulls[4] = 'n';
	if (progress->message == NULL)
		nulls[5] = 'n';
	else
		values[5] = CStringGetTextDatum(progress->message);
	return tq_spi_run(&set_progress, values, nulls) > 0;
}
