/*
 * postponed_table.c
 *	  Rows of tq_internal.postponed: tasks for which a step of maintenance
 *	  failed.
 *
 * A row says that a step must be retried for a task, when, and what the error
 * was.  Only maintenance writes and deletes rows.  It skips rows that are
 * locked, so no session waits for these locks.  A row is deleted with its task.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "../rows/rows.h"
#include "../shmem/shmem.h"
#include "../util/util.h"
#include "columns.h"
#include "tasks.h"

static TqStatement put_row = TQ_STATEMENT(
	"INSERT INTO tq_internal.postponed AS p (task, step, due, origin, failures, since, error)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7)"
	" ON CONFLICT (task, step) DO UPDATE SET due = excluded.due,"
	" failures = excluded.failures, error = excluded.error",
	INT8OID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID,
	TEXTOID);

static TqRelation postponed_table = TQ_RELATION("postponed");
static TqRelation postponed_by_key = TQ_RELATION("postponed_pkey");

TQ_NUMBERS(TQ_POSTPONED_COLUMNS, postponed);

static TqStatement take_due = TQ_STATEMENT(
	"SELECT * FROM tq_internal.postponed"
	" WHERE due <= $1 ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED",
	TIMESTAMPTZOID, INT4OID);

static TqStatement delete_row = TQ_STATEMENT(
	"DELETE FROM tq_internal.postponed WHERE task = $1 AND step = $2", INT8OID,
	TEXTOID);

static TqStatement find_among = TQ_STATEMENT(
	"SELECT task FROM tq_internal.postponed WHERE task = ANY ($1) AND step = $2 ORDER BY task",
	INT8ARRAYOID, TEXTOID);

static TqStatement first_due =
	TQ_STATEMENT("SELECT due FROM tq_internal.postponed ORDER BY due LIMIT 1",
				 InvalidOid);

/* Inserts the row of a task and step, or updates it. */
void
tq_postponed_put(const TqPostponed *row, TimestampTz now)
{
	Datum values[7] = {Int64GetDatum(row->task),
					   CStringGetTextDatum(row->step),
					   TimestampTzGetDatum(row->due),
					   TimestampTzGetDatum(row->origin),
					   Int32GetDatum(row->failures),
					   TimestampTzGetDatum(now),
					   CStringGetTextDatum(row->error)};

	tq_spi_run(&put_row, values, NULL);
	tq_request_cycle(row->due);
}

TQ_READER(read_row, TqPostponed, TQ_POSTPONED_COLUMNS, postponed)

/* Returns how often this step has failed for a task. */
int
tq_postponed_failures(int64 task, const char *step)
{
	TqPostponed row = {.failures = 0};

	(void) tq_scan_read(tq_scan_open(&postponed_table, &postponed_by_key, 2,
									 NULL),
						Int64GetDatum(task), CStringGetTextDatum(step), 0,
						read_row, &row);
	return row.failures;
}

/* Locks and returns up to max rows that are due, skipping locked ones. */
TqPostponed *
tq_postponed_take(TimestampTz now, int max, int *found)
{
	Datum values[2] = {TimestampTzGetDatum(now), Int32GetDatum(max)};

	return tq_spi_read_all(&take_due, values, read_row, sizeof(TqPostponed),
						   found);
}

/*
 * Returns those of these tasks that are postponed for this step, in order of
 * their ids.
 */
int64 *
tq_postponed_among(const int64 *tasks, int n, const char *step, int *found)
{
	Datum values[2] = {tq_array_int64(tasks, n), CStringGetTextDatum(step)};

	return tq_spi_run_ids(&find_among, values, found);
}

/* Deletes the row of a task and step. */
void
tq_postponed_delete(int64 task, const char *step)
{
	Datum values[2] = {Int64GetDatum(task), CStringGetTextDatum(step)};

	tq_spi_run(&delete_row, values, NULL);
}

/* Returns when the first row is due, or DT_NOEND. */
TimestampTz
tq_postponed_next_due(void)
{
	return tq_spi_run_int64(&first_due, NULL, DT_NOEND);
}
