/*
 * failure_table.c
 *	  Rows of tq_internal.failure: tasks that ended without success.
 *
 * There is a row for each task whose last run has failed or ended as an
 * exception, so that a reader finds these tasks without reading all runs.  An
 * index on the state of runs would do the same, but then no update of a run
 * would be HOT.  The row is written and deleted under the lock of the task's
 * current row.
 */
#include "postgres.h"

#include "catalog/pg_type.h"

#include "../util/util.h"
#include "columns.h"
#include "rows.h"
#include "tasks.h"

TQ_NUMBERS(TQ_FAILURE_COLUMNS, failure);

static TqRelation failure_table = TQ_RELATION("failure");

static TqStatement delete_failure =
	TQ_STATEMENT("DELETE FROM tq_internal.failure WHERE task = $1", INT8OID);

static void
put_failure(TupleTableSlot *slot, const TqFailure *row)
{
	TQ_FAILURE_COLUMNS(TQ_PUT, failure);
}

/* Records that these tasks have ended without success. */
void
tq_failures_insert(const TqFailure *failures, int n)
{
	TqTable *table;

	if (n == 0)
		return;
	table = tq_table_open(&failure_table);
	for (int i = 0; i < n; i++)
		put_failure(tq_table_new_row(table), &failures[i]);
	tq_table_close(table);
}

/* Deletes the row of a task that becomes pending again. */
void
tq_failure_delete(int64 task)
{
	tq_spi_run(&delete_failure, TQ_VALUES(Int64GetDatum(task)), NULL);
}
