/*
 * run_progress.c
 *	  What the workers of a group have reported of their running runs.
 *
 * The shares are in the details of the runs, and are added when a group is
 * asked for, if a run of it has ever reported: a counter of the group says so.
 * A counter of the sum would be wrong for good when a run ends while a report
 * is not committed yet, unless its end waited for the worker.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/tuptable.h"

#include "../util/util.h"
#include "rows.h"
#include "tasks.h"

/* To read a running run by its timer takes as long as to read so many tasks. */
#define TASKS_PER_RUNNING 2

/* Without counters, groups of so many tasks are read by their index. */
#define SMALL_GROUP 10000

#define SUM_OF                                                                \
	"SELECT coalesce(sum(least(1, d.done::float8 / d.total)), 0)::float8 FROM "

/* LIMIT makes it a look-up by index for each task, whatever the statistics say. */
#define RUNNING_OF                                                                     \
	" CROSS JOIN LATERAL (SELECT * FROM tq_internal.run q WHERE q.task = t.id"         \
	" ORDER BY q.run_id DESC LIMIT 1) AS r CROSS JOIN LATERAL (SELECT e.done, e.total" \
	" FROM tq_internal.run_detail e WHERE e.task = r.task AND e.run_id = r.run_id"     \
	" LIMIT 1) AS d WHERE r.state = 2 AND r.has_detail AND d.total > 0 AND "

static TqStatement of_own =
	TQ_STATEMENT(SUM_OF "tq_internal.task t" RUNNING_OF
						"t.task_id = $1 AND t.group_id IS NULL",
				 TQ_SLUGID);

static TqStatement of_tasks =
	TQ_STATEMENT(SUM_OF "tq_internal.task t" RUNNING_OF "t.group_id = $1",
				 INT8OID);

/* Running runs are found by their claim timers, which need no index of runs. */
static TqStatement of_running = TQ_STATEMENT(
	SUM_OF
	"tq_internal.claimed_run r JOIN tq_internal.task t ON t.id = r.task"
	" JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id"
	" WHERE d.total > 0 AND t.group_id = $1",
	INT8OID);

static TqStatement is_reported = TQ_STATEMENT(
	"SELECT 1 FROM tq_internal.task t JOIN tq_internal.run_detail d ON d.task = t.id"
	" WHERE t.group_id = $1 AND d.reported IS NOT NULL LIMIT 1",
	INT8OID);

/*
 * Returns whether a run of a group has reported progress, without the task that
 * the group is named after.
 */
bool
tq_progress_is_reported(int64 group)
{
	return tq_spi_exists(&is_reported, TQ_VALUES(Int64GetDatum(group)));
}

static void
read_sum(TupleTableSlot *slot, void *sum)
{
	*(double *) sum = DatumGetFloat8(tq_row_value(slot, 1));
}

/* Returns the share that is done of the task that a group is named after. */
double
tq_progress_of_own(const TqGroup *group)
{
	double sum = 0;

	(void) tq_spi_read(&of_own,
					   TQ_VALUES(PointerGetDatum(&group->task_group_id)),
					   read_sum, &sum);
	return sum;
}

/*
 * Returns the sum of the shares that are done of the other running tasks of a
 * group, each from 0 to 1.  Reads the tasks of the group, of which there are so
 * many, or the running runs of the database, whichever is less.
 */
double
tq_progress_of_group(const TqGroup *group, int64 tasks)
{
	int64 running = tq_count_running();
	bool by_tasks = running > 0 ? tasks <= TASKS_PER_RUNNING * running
								: tasks <= SMALL_GROUP;
	double sum = 0;

	(void) tq_spi_read(by_tasks ? &of_tasks : &of_running,
					   TQ_VALUES(Int64GetDatum(group->id)), read_sum, &sum);
	return sum;
}
