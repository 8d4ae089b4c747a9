/*
 * bulk_api.c
 *	  Functions that act on many tasks of a queue: cancel, move, purge, redrive.
 *
 * The procedures commit after each batch, so that however many tasks there are, no
 * transaction is long.  What is done is done if the call ends early: the same
 * call goes on from there.
 */
#include "postgres.h"

#include "access/htup_details.h"

#include "../core/names.h"
#include "../core/state.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_cancel_tasks);
PG_FUNCTION_INFO_V1(tq_move_tasks);

#define PROGRESS_MS 5000 /* between messages about the progress */

/* A call of one of the procedures. */
typedef struct BulkCall
{
	FunctionCallInfo fcinfo;
	const char *what; /* "canceled" or "moved" */
	const char *queue;
	TqNeed *(*need)(const struct BulkCall *call);
	bool is_begun; /* a batch has been committed */
	TimestampTz next_progress;
	TqBulk bulk;
} BulkCall;

/* ---- arguments ---- */

/* Adds the state of that name, which must be one of resolved tasks, or of others. */
static void
add_state(const char *name, bool resolved, bool *of)
{
	for (int state = 0; state < TQ_STATES; state++)
	{
		if (tq_state_is_resolved((TqState) state) != resolved ||
			strcmp(name, tq_state_name((TqState) state)) != 0)
			continue;
		of[state] = true;
		return;
	}
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("invalid states"),
		 resolved
			 ? errdetail(
				   "The argument states has \"%s\", and only resolved tasks are purged.",
				   tq_error_clip(name))
			 : errdetail(
				   "The argument states has \"%s\", and only unresolved tasks are canceled.",
				   tq_error_clip(name)),
		 resolved
			 ? errhint(
				   "Give some of completed, failed and exception in \"states\".")
			 : errhint(
				   "Give some of unscheduled, pending and running in \"states\".")));
}

/* Reads the argument "states", of resolved tasks or of others. */
static void
read_states(FunctionCallInfo fcinfo, int argument, bool resolved, bool *of)
{
	int n;
	char **names = tq_texts_of_array(tq_arg_array(fcinfo, argument, "states"),
									 &n);

	for (int i = 0; i < n; i++)
	{
		if (names[i] == NULL)
			tq_error_null_element("states", i);
		add_state(names[i], resolved, of);
	}
}

static Jsonb *
read_tags(FunctionCallInfo fcinfo, int argument)
{
	Jsonb *tags;

	if (PG_ARGISNULL(argument))
		return NULL;
	tags = PG_GETARG_JSONB_P(argument);
	if (!JB_ROOT_IS_OBJECT(tags))
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("tags must be an object"),
				 errdetail("The argument is %s.", tq_json_clip(&tags->root)),
				 errhint("Give the tags that a task must have, or NULL.")));
	return tags;
}

/* ---- batches ---- */

/* Makes a batch; returns whether there may be another. */
static bool
make_batch(void *arg)
{
	BulkCall *call = arg;
	TimestampTz now = tq_clock_now();
	bool more = true;

	tq_call_begin(false);
	tq_access_require(call->need(call));
	if (!call->is_begun)
	{
		/* Begin the operation; returns false if there is nothing to do. */
		call->is_begun = true;
		call->next_progress = tq_clock_add_ms(now, PROGRESS_MS);
		call->bulk.filter.queue = tq_queue_find(call->queue);
		call->bulk.filter.created_by = now;
		tq_audit_operator(call->fcinfo);
		more = call->bulk.filter.queue != 0;
	}
	if (more)
		more = tq_bulk_next(&call->bulk, now);
	tq_call_end();
	return more;
}

/* Says how far the call has come, unless it did so a moment ago. */
static void
show_progress(void *arg)
{
	BulkCall *call = arg;
	TimestampTz now = tq_clock_now();

	if (now < call->next_progress)
		return;
	call->next_progress = tq_clock_add_ms(now, PROGRESS_MS);
	ereport(NOTICE, (errmsg(INT64_FORMAT " tasks of queue \"%s\" were %s",
							call->bulk.done, call->queue, call->what),
					 errdetail("The call goes on.")));
}

/* Says how many tasks were left, and why, if there are any. */
static void
show_left(const BulkCall *call, int64 n, const char *why, const char *hint)
{
	if (n == 0)
		return;
	ereport(NOTICE,
			(errmsg_plural(INT64_FORMAT " task of queue \"%s\" was not %s",
						   INT64_FORMAT " tasks of queue \"%s\" were not %s",
						   (unsigned long) n, n, call->queue, call->what),
			 errdetail_internal("%s", why), errhint("%s", hint)));
}

/* Makes all batches, and says what was left. */
static void
make_batches(BulkCall *call)
{
	tq_bulk_begin(&call->bulk);
	tq_commit_batches(make_batch, show_progress, call);
	show_left(call, call->bulk.skipped,
			  "Another session had it, or a dependent, locked.",
			  "Make the same call again.");
	show_left(call, call->bulk.left,
			  "Its policy has a key, which belongs to the queue.",
			  "Cancel it, and create it in the other queue.");
	show_left(call, call->bulk.forbidden,
			  "It has scopes that the caller has not.",
			  "Call as a role that has the scopes of the tasks.");
}

/* Makes the call; returns the row of the argument "tasks". */
static Datum
bulk_run(BulkCall *call)
{
	TupleDesc desc;
	Datum value;
	bool is_null = false;

	if (get_call_result_type(call->fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	desc = BlessTupleDesc(desc);
	make_batches(call);
	value = Int64GetDatum(call->bulk.done);
	return HeapTupleGetDatum(heap_form_tuple(desc, &value, &is_null));
}

#define DETAIL "It commits after each batch."
#define HINT "Call it outside of a transaction block, and not in a function."

static TqNeed *
need_of_cancel(const BulkCall *call)
{
	return tq_need("queue:cancel-task-in-queue:%s", call->queue);
}

/*
 * CALL cancel_tasks(task_queue_id, name text, tags jsonb, states text[], max
 * bigint 1.., tasks bigint) -> how many tasks it has canceled
 * (doc/spec/policy.md 12).  Cancels the tasks of a queue that were created
 * before it began, are in one of the states unscheduled, pending and running,
 * and have that name and at least these tags; NULL is any.  Raises TQ400 in a
 * transaction block.  A queue that does not exist has no tasks.
 */
Datum
tq_cancel_tasks(PG_FUNCTION_ARGS)
{
	BulkCall call = {.fcinfo = fcinfo,
					 .what = "canceled",
					 .need = need_of_cancel,
					 .queue = tq_arg_task_queue_id(fcinfo, 0),
					 .bulk = {.apply = tq_bulk_cancel}};

	if (!PG_ARGISNULL(1))
		call.bulk.filter.name = tq_arg_text(fcinfo, 1, "name");
	call.bulk.filter.tags = read_tags(fcinfo, 2);
	read_states(fcinfo, 3, false, call.bulk.of);
	call.bulk.max = tq_arg_limit(fcinfo, 4);
	tq_require_commit(fcinfo, "cancel_tasks", DETAIL, HINT);
	PG_RETURN_DATUM(bulk_run(&call));
}

static TqNeed *
need_of_move(const BulkCall *call)
{
	return tq_need_all(2, tq_need("queue:move-tasks:%s", call->queue),
					   tq_need("queue:move-tasks:%s", call->bulk.to_queue));
}

/*
 * CALL move_tasks(task_queue_id, to_task_queue_id, max bigint 1.., tasks
 * bigint) -> how many tasks it has moved (doc/spec/policy.md 12).  Moves the
 * tasks of a queue that were created before it began and are unscheduled,
 * delayed or pending to another queue.  Raises TQ400 in a transaction block, and
 * if the queues are the same.
 */
Datum
tq_move_tasks(PG_FUNCTION_ARGS)
{
	BulkCall call = {.fcinfo = fcinfo,
					 .what = "moved",
					 .need = need_of_move,
					 .queue = tq_arg_task_queue_id(fcinfo, 0),
					 .bulk = {.apply = tq_bulk_move,
							  .of = {[TQ_STATE_UNSCHEDULED] = true,
									 [TQ_STATE_PENDING] = true}}};

	call.bulk.to_queue = tq_arg_named_queue(fcinfo, 1, "to_task_queue_id");
	call.bulk.max = tq_arg_limit(fcinfo, 2);
	if (strcmp(call.queue, call.bulk.to_queue) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("task_queue_id and to_task_queue_id are the same"),
				 errdetail("Both are \"%s\".", call.queue),
				 errhint(
					 "Give the queue that the tasks are to be moved to.")));
	tq_require_commit(fcinfo, "move_tasks", DETAIL, HINT);
	PG_RETURN_DATUM(bulk_run(&call));
}

/* ---- purge: deletes resolved tasks of a queue ---- */

PG_FUNCTION_INFO_V1(tq_purge);

#define PURGE_MAX 1000000

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
	int64 ms;

	tq_call_begin(false);
	tq_access_require(tq_need("queue:delete-task-in-queue:%s", queue_name));
	read_states(fcinfo, 1, true, rule.of);
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

/*
 * ---- dead letters (doc/spec/policy.md 2, 10.13) ----
 *
 * TQ404 for a task that has no dead letter.  A queue that does not exist has none
 * either, which is no error.
 */

PG_FUNCTION_INFO_V1(tq_redrive);
PG_FUNCTION_INFO_V1(tq_redrive_queue);
PG_FUNCTION_INFO_V1(tq_discard_dead_letter);

/* redrive(task_id slugid) -> status of the task that is to run */
Datum
tq_redrive(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	Jsonb *status;

	tq_call_begin(false);
	status = tq_spi_keep(
		tq_status_of(tq_dead_letter_redrive(task_id, tq_clock_now())));
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(status);
}

/* redrive_queue(task_queue_id text, max int) -> how many were redriven */
Datum
tq_redrive_queue(PG_FUNCTION_ARGS)
{
	char *queue_name = tq_arg_task_queue_id(fcinfo, 0);
	int max = tq_arg_max(fcinfo, 1);
	int32 queue;
	int64 n = 0;

	tq_call_begin(false);
	tq_require_dead_letters(queue_name);
	queue = tq_queue_find(queue_name);
	if (queue != 0)
		n = tq_dead_letters_redrive(queue, max, tq_clock_now());
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_INT64(n);
}

/* discard_dead_letter(task_id slugid) */
Datum
tq_discard_dead_letter(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");

	tq_call_begin(false);
	tq_dead_letter_discard(task_id);
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_VOID();
}
