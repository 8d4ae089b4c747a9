/*
 * queue_list_api.c
 *	  SQL functions that count the tasks of a queue (doc/spec/taskcluster.md
 *	  2.16).
 */
#include "postgres.h"

#include "api.h"

PG_FUNCTION_INFO_V1(tq_task_queue_counts);

/*
 * task_queue_counts(task_queue_id text) -> {..., pendingTasks, claimedTasks}
 */
Datum
tq_task_queue_counts(PG_FUNCTION_ARGS)
{
	char *name = tq_arg_task_queue_id(fcinfo, 0);
	TimestampTz now = tq_clock_now();
	int32 queue;
	Jsonb *result;

	tq_call_begin(true);
	tq_access_require(tq_need_all(2, tq_need("queue:pending-count:%s", name),
								  tq_need("queue:claimed-count:%s", name)));
	queue = tq_queue_find(name);
	result = tq_spi_keep(
		tq_counts_json(name, queue == 0 ? 0 : tq_count_pending(queue, now),
					   queue == 0 ? 0 : tq_count_claimed(queue, now)));
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}
