/*
 * run_progress.c
 *	  What the workers of a group have reported of their running runs.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/tuptable.h"

#include "../util/slugid.h"
#include "../util/spi.h"
#include "group_table.h"
#include "index_scan.h"
#include "run_progress.h"

/* Running runs are found by their claim timers, which need no index of runs. */
static TqStatement sum_progress = TQ_STATEMENT(
	"SELECT coalesce(sum(least(1, d.done::float8 / d.total)), 0)::float8"
	" FROM tq_internal.claimed_run r JOIN tq_internal.task t ON t.id = r.task"
	" JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id"
	" WHERE d.total > 0 AND (t.group_id = $1 OR (t.group_id IS NULL AND t.task_id = $2))",
	INT8OID, TQ_SLUGID);

static void
read_sum(TupleTableSlot *slot, void *sum)
{
	*(double *) sum = DatumGetFloat8(tq_row_value(slot, 1));
}

/*
 * Returns the sum of the shares that running tasks of a group have done, each
 * from 0 to 1; the time grows with the running tasks of the database.
 */
double
tq_progress_of_group(const TqGroup *group)
{
	Datum values[2] = {Int64GetDatum(group->id),
					   PointerGetDatum(&group->task_group_id)};
	double sum = 0;

	(void) tq_spi_read(&sum_progress, values, read_sum, &sum);
	return sum;
}
