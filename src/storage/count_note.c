/*
 * count_note.c
 *	  Notes what a transaction changes in the counters of queues and groups.
 */
#include "postgres.h"

#include "../shmem/shmem.h"
#include "../util/util.h"
#include "tasks.h"

/*
 * Changes a counter by that much when this transaction commits, unless the
 * server keeps no counters.
 */
void
tq_count(TqCounted what, int64 id, int counter, int64 by)
{
	if (id != 0 && tq_counted_queues > 0)
		tq_count_change(tq_catalog_locked_table(), what, id, counter, by);
}

/*
 * Makes the gauges be counted again, because a statement that is not one of tq
 * changes rows.  For triggers, which may run outside of a call.
 */
void
tq_count_doubt(void)
{
	tq_catalog_lock();
	tq_count_change(tq_catalog_locked_table(), TQ_COUNTED_QUEUE, 0,
					TQ_QUEUE_DOUBT, 1);
}
