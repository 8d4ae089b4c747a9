/*
 * departed_table.c
 *	  Rows of tq_internal.departed and tq_internal.departed_run: what messages
 *	  that are still kept contain of tasks that have expired.
 *
 * A task departs when it expires and the log may have messages about it: what
 * messages contain is copied here, and the task is deleted with all else.  So
 * nothing but messages finds it any more, and its id is free.  The rows have
 * its number, by which messages name it, and go when the log has no message
 * from before the task departed.
 *
 * Locks: the session in which a task departs holds the lock on its current row,
 * as for each deletion, and inserts these rows in the transaction that deletes
 * it.  A reader looks for the task first, and here afterwards, with a snapshot
 * that is not older: so it finds one of the two.
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/rel.h"

#include "columns.h"
#include "registry.h"
#include "tasks.h"

static TqRelation departed_table = TQ_RELATION("departed");

TQ_NUMBERS(TQ_DEPARTED_COLUMNS, departed);

static TqStatement insert_departed = TQ_STATEMENT(
	"WITH r AS (INSERT INTO tq_internal.departed_run SELECT r.task, r.scheduled, r.started, r.taken_until, r.resolved,"
	" r.worker, r.run_id, r.state, r.reason_created, r.reason_resolved, r.retries_left, r.by_claim_task, false"
	" FROM tq_internal.run r WHERE r.task = ANY ($1))"
	" INSERT INTO tq_internal.departed SELECT t.id, $2, t.created, t.deadline, coalesce(t.effective_deadline, t.deadline),"
	" t.expires, t.queue, t.priority, t.retries, t.task_id, coalesce(g.task_group_id, t.task_id), t.scheduler_id,"
	" t.project_id, t.routes, t.tags, t.xid, t.first_priority"
	" FROM tq_internal.task t LEFT JOIN tq_internal.task_group g ON g.id = t.group_id WHERE t.id = ANY ($1)",
	INT8ARRAYOID, TIMESTAMPTZOID);

static TqStatement find_departed =
	TQ_STATEMENT("SELECT * FROM tq_internal.departed WHERE id = ANY ($1)",
				 INT8ARRAYOID);

static TqStatement find_runs = TQ_STATEMENT(
	"SELECT * FROM tq_internal.departed_run WHERE task = ANY ($1)",
	INT8ARRAYOID);

static TqStatement delete_departed = TQ_STATEMENT(
	"WITH old AS (SELECT o.id FROM tq_internal.departed o WHERE o.since < $1 ORDER BY o.since LIMIT $2 FOR UPDATE SKIP LOCKED),"
	" r AS (DELETE FROM tq_internal.departed_run r USING old WHERE r.task = old.id)"
	" DELETE FROM tq_internal.departed d USING old WHERE d.id = old.id",
	TIMESTAMPTZOID, INT4OID);

static void
departed_read(TupleTableSlot *slot, void *into)
{
	TqMessageTask *row = into;
	bool isnull;
	Datum tags = slot_getattr(slot, Anum_departed_tags, &isnull);

	TQ_DEPARTED_TASK(TQ_GET, departed);
	row->named.task.id = tq_row_int64(slot, Anum_departed_id);
	row->routes = tq_row_varlena(slot, Anum_departed_routes);
	row->named.project_id = tq_row_text_or(slot, Anum_departed_project_id,
										   TQ_DEFAULT_PROJECT);
	row->tags = isnull ? NULL
					   : (Jsonb *) DatumGetPointer(datumCopy(tags, false, -1));
}

static void
departed_read_run(TupleTableSlot *slot, void *into)
{
	TqHistoryRun *entry = into;

	*entry = (TqHistoryRun){.is_left = false};
	tq_run_read(slot, &entry->run);
}

/* Returns whether a task has departed since the table was empty. */
static bool
departed_was_used(void)
{
	TqTable *table = tq_table_open(&departed_table);
	bool used = RelationGetNumberOfBlocks(table->rel) > 0;

	tq_table_close(table);
	return used;
}

/* Keeps what messages contain of these tasks, which are about to be deleted. */
void
tq_departed_insert(const int64 *ids, int n, TimestampTz now)
{
	if (n > 0)
		tq_spi_run(&insert_departed,
				   TQ_VALUES(tq_array_int64(ids, n), TimestampTzGetDatum(now)),
				   NULL);
}

/* Returns those of these tasks that have departed, in no order. */
TqMessageTask *
tq_departed_tasks(const int64 *ids, int n, int *found)
{
	TqMessageTask *tasks;

	*found = 0;
	if (n == 0 || !departed_was_used())
		return NULL;
	tasks = tq_spi_read_all(&find_departed, TQ_VALUES(tq_array_int64(ids, n)),
							departed_read, sizeof(TqMessageTask), found);
	for (int i = 0; i < *found; i++)
		tasks[i].named.queue_name = tq_queue_name(tasks[i].named.task.queue);
	return tasks;
}

/* Returns the runs of those of these tasks that have departed, in no order. */
TqHistoryRun *
tq_departed_runs(const int64 *ids, int n, int *found)
{
	TqHistoryRun *runs;

	*found = 0;
	if (n == 0 || !departed_was_used())
		return NULL;
	runs = tq_spi_read_all(&find_runs, TQ_VALUES(tq_array_int64(ids, n)),
						   departed_read_run, sizeof(TqHistoryRun), found);
	for (int i = 0; i < *found; i++)
	{
		if (runs[i].run.worker != 0)
			tq_worker_name(runs[i].run.worker, &runs[i].worker_group,
						   &runs[i].worker_id);
	}
	return runs;
}

/*
 * Deletes what is kept of up to `max` tasks that departed before that time;
 * returns of how many.
 */
int
tq_departed_delete(TimestampTz before, int max)
{
	return (int) tq_spi_run(&delete_departed,
							TQ_VALUES(TimestampTzGetDatum(before),
									  Int32GetDatum(max)),
							NULL);
}
