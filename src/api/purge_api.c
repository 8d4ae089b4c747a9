/*
 * purge_api.c
 *	  SQL function that deletes resolved tasks of a queue.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "../core/names.h"
#include "../core/state.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_purge);

#define PURGE_MAX 1000000

/* Adds the state of that name, which must be one of a resolved task. */
static void
purge_add_state(const char *name, bool *of)
{
	for (int state = 0; state < TQ_STATES; state++)
	{
		if (!tq_state_is_resolved((TqState) state) ||
			strcmp(name, tq_state_name((TqState) state)) != 0)
			continue;
		of[state] = true;
		return;
	}
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("invalid states"),
		 errdetail(
			 "The argument states has \"%s\", and only resolved tasks are purged.",
			 tq_error_clip(name)),
		 errhint(
			 "Give some of completed, failed and exception in \"states\".")));
}

/*
 * purge(task_queue_id text, states text[], older_than interval, max int) ->
 * number of tasks deleted (2.18).  Deletes at most max tasks of the queue, 1 to
 * 1,000,000, that are completed, failed or exception as states says, and were
 * resolved at least older_than ago; the oldest first.  Raises TQ400 for another
 * state or a negative interval.  A queue that does not exist has no tasks.
 */
Datum
tq_purge(PG_FUNCTION_ARGS)
{
	TimestampTz now = tq_clock_now();
	char *queue_name = tq_arg_task_queue_id(fcinfo, 0);
	TqSweepRule rule = {.by_retention = false};
	int max = tq_arg_int(fcinfo, 3, "max", 1, PURGE_MAX);
	int64 deleted = 0;
	int n;
	char **names;
	int64 ms;

	tq_call_begin(false);
	tq_access_require(tq_need("queue:delete-task-in-queue:%s", queue_name));
	names = tq_texts_of_array(tq_arg_array(fcinfo, 1, "states"), &n);
	for (int i = 0; i < n; i++)
	{
		if (names[i] == NULL)
			tq_error_null_element("states", i);
		purge_add_state(names[i], rule.of);
	}
	/* The time until which a task that is purged was resolved. */
	ms = tq_clock_span_ms(tq_arg_interval(fcinfo, 2, "older_than"));
	if (ms < 0)
		ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
						errmsg("older_than must not be negative"),
						errdetail("It is " INT64_FORMAT " milliseconds.", ms),
						errhint("Give 0 to purge all resolved tasks.")));
	rule.until = tq_clock_add_ms(now, -ms);
	rule.queue = tq_queue_find(queue_name);
	if (rule.queue != 0)
		deleted = tq_sweep_all(&rule, max, now);
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_INT64(deleted);
}
