/*
 * pending_walk.c
 *	  Looks at the pending runs of a queue from the front.
 *
 * Unlike a claim, it takes none of them, and sees what its snapshot shows.  It
 * begins where claims begin.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "../shmem/shmem.h"
#include "../util/util.h"
#include "columns.h"
#include "rows.h"
#include "tasks.h"

TQ_NUMBERS(TQ_PENDING_COLUMNS, pending);

/* Reads a run, of whose task only the priority is read. */
static bool
read_waiting(TupleTableSlot *slot, TqScan *tasks, TqWalkedRun *waiting)
{
	TqRun run;
	TqRunDetail detail;
	int32 queue;

	tq_pending_read(slot, &run);
	*waiting = (TqWalkedRun){.task = run.task,
							 .seq = tq_row_int64(slot, Anum_pending_seq),
							 .priority = tq_row_int16(slot,
													  Anum_pending_priority),
							 .since = run.scheduled};
	if (run.has_detail && tq_detail_read(&run, &detail))
		waiting->since = Max(run.scheduled, detail.budget.visible_at);
	return tq_task_for_order(tasks, run.task, &queue, &waiting->own_priority);
}

/*
 * Visits the runs of a queue and priority in their order, from a seq on, until
 * the visitor ends it.
 */
void
tq_pending_walk(int32 queue, int priority, int64 from, TqVisit *visit,
				void *arg)
{
	static TqRelation pending = TQ_RELATION("pending");
	static TqRelation pending_order = TQ_RELATION("pending_order");
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());
	TqTable *table = tq_table_open(&pending);
	TqScan *order = tq_scan_begin_range(table, &pending_order, 3, snapshot);
	TqScan *tasks = tq_task_scan_begin(snapshot);
	bool more = true;
	TqCursor cursor;
	int64 seq;

	tq_cursor_read(RelationGetRelid(table->rel), queue, &cursor);
	tq_scan_seek_range(order, Int32GetDatum(queue), Int16GetDatum(priority),
					   Max(from, cursor.low[priority]), PG_INT64_MAX);
	while (more && tq_scan_next_entry(order, &seq))
	{
		TqWalkedRun run;

		CHECK_FOR_INTERRUPTS();
		if (tq_scan_fetch(order) && read_waiting(order->slot, tasks, &run))
			more = visit(&run, arg);
	}
	tq_scan_close(tasks);
	tq_scan_end(order);
	tq_table_close(table);
	UnregisterSnapshot(snapshot);
}
