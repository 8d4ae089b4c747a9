/*
 * queue_list_api.c
 *	  SQL functions that show task queues: counts, lists of their runs, of
 *	  queues, worker types and provisioners.
 *
 * Implements doc/spec/taskcluster.md 2.16 and 8.1.  A list returns a page, each
 * row of which has the place after which the next page begins.  The order does
 * not change while tasks move, so that a task is neither skipped nor returned
 * twice.  A queue that does not exist has empty lists.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "../engine/engine.h"
#include "../events/events.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_pending_tasks);
PG_FUNCTION_INFO_V1(tq_task_queue_counts);
PG_FUNCTION_INFO_V1(tq_list_pending_tasks);
PG_FUNCTION_INFO_V1(tq_list_claimed_tasks);
PG_FUNCTION_INFO_V1(tq_list_task_queues);
PG_FUNCTION_INFO_V1(tq_get_task_queue);
PG_FUNCTION_INFO_V1(tq_list_worker_types);
PG_FUNCTION_INFO_V1(tq_get_worker_type);
PG_FUNCTION_INFO_V1(tq_list_provisioners);
PG_FUNCTION_INFO_V1(tq_get_provisioner);

/* ---- counts ---- */

/* pending_tasks(task_queue_id text) -> bigint; 0 for an unknown queue */
Datum
tq_pending_tasks(PG_FUNCTION_ARGS)
{
	char *name = tq_arg_task_queue_id(fcinfo, 0);
	int32 queue;
	int64 pending;

	tq_call_begin(true);
	tq_access_require(tq_need("queue:pending-count:%s", name));
	queue = tq_queue_find(name);
	pending = queue == 0 ? 0 : tq_count_pending(queue, tq_clock_now());
	tq_call_end();
	PG_RETURN_INT64(pending);
}

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

/* ---- runs ---- */

pg_noreturn static void
refuse_after(const char *after)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("invalid after \"%s\"", tq_error_clip(after)),
					errdetail("No row of this list has it as its page."),
					errhint("Give the page of the last row, or NULL.")));
}

/*
 * Returns the argument "after" of a list of runs, the page of a row: as many
 * numbers as the list has, with a dot between them.  For NULL it is before the
 * first row.
 */
static TqRunPlace
arg_place(FunctionCallInfo fcinfo, int n, bool has_since)
{
	TqRunPlace place = {DT_NOBEGIN, PG_INT64_MIN};
	char *given;
	char *rest;

	if (PG_ARGISNULL(n))
		return place;
	given = text_to_cstring(PG_GETARG_TEXT_PP(n));
	errno = 0;
	place.number = strtoi64(given, &rest, 10);
	if (has_since && rest != given && *rest == '.')
	{
		place.since = place.number;
		place.number = strtoi64(rest + 1, &rest, 10);
	}
	else if (has_since)
		refuse_after(given);
	if (errno != 0 || *given == '\0' || *rest != '\0' || rest[-1] == '.')
		refuse_after(given);
	return place;
}

/* Returns the definitions of the tasks of a page, in its order. */
static TqTaskDefinition *
definitions_of(const TqListedRun *runs, int n, int *found)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));

	for (int i = 0; i < n; i++)
		ids[i] = runs[i].task;
	return tq_definitions_by_id(ids, n, found);
}

/* Adds a row of tq.pending_entry. */
static void
put_pending(ReturnSetInfo *rsinfo, const TqListedRun *run,
			const TqTaskDefinition *task)
{
	Datum values[5] = {tq_slug_datum(&run->task_id),
					   Int32GetDatum(run->run_id),
					   JsonbPGetDatum(tq_definition_json(task)),
					   TimestampTzGetDatum(run->place.since),
					   CStringGetTextDatum(
						   psprintf(INT64_FORMAT, run->place.number))};
	bool nulls[5] = {false};

	tq_put_row(rsinfo, values, nulls);
}

/* Adds a row of tq.claimed_entry. */
static void
put_claimed(ReturnSetInfo *rsinfo, const TqListedRun *run,
			const TqTaskDefinition *task)
{
	Datum values[7] = {tq_slug_datum(&run->task_id),
					   Int32GetDatum(run->run_id),
					   CStringGetTextDatum(run->worker_group),
					   CStringGetTextDatum(run->worker_id),
					   TimestampTzGetDatum(run->place.since),
					   JsonbPGetDatum(tq_definition_json(task)),
					   CStringGetTextDatum(psprintf(INT64_FORMAT
													"." INT64_FORMAT,
													(int64) run->place.since,
													run->place.number))};
	bool nulls[7] = {false};

	tq_put_row(rsinfo, values, nulls);
}

/*
 * list_pending_tasks(task_queue_id text, after text, max int) -> (task_id,
 * run_id, task, inserted, page), in the order of becoming pending
 */
Datum
tq_list_pending_tasks(PG_FUNCTION_ARGS)
{
	char *name = tq_arg_task_queue_id(fcinfo, 0);
	TqRunPlace after = arg_place(fcinfo, 1, false);
	int max = tq_arg_max(fcinfo, 2);
	TqListedRun *runs;
	TqTaskDefinition *tasks;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_access_require(tq_need("queue:pending-list:%s", name));
	runs = tq_runs_list_pending(tq_queue_find(name), after.number, max,
								tq_clock_now(), &n);
	tasks = definitions_of(runs, n, &n);
	for (int i = 0; i < n; i++)
		put_pending((ReturnSetInfo *) fcinfo->resultinfo, &runs[i], &tasks[i]);
	tq_call_end();
	return (Datum) 0;
}

/*
 * list_claimed_tasks(task_queue_id text, after text, max int) -> (task_id,
 * run_id, worker_group, worker_id, claimed, task, page), in the order of
 * claimed
 */
Datum
tq_list_claimed_tasks(PG_FUNCTION_ARGS)
{
	char *name = tq_arg_task_queue_id(fcinfo, 0);
	TqRunPlace after = arg_place(fcinfo, 1, true);
	int max = tq_arg_max(fcinfo, 2);
	TqListedRun *runs;
	TqTaskDefinition *tasks;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_access_require(tq_need("queue:claimed-list:%s", name));
	runs = tq_runs_list_claimed(tq_queue_find(name), &after, max,
								tq_clock_now(), &n);
	tasks = definitions_of(runs, n, &n);
	for (int i = 0; i < n; i++)
		put_claimed((ReturnSetInfo *) fcinfo->resultinfo, &runs[i], &tasks[i]);
	tq_call_end();
	return (Datum) 0;
}

/* ---- queues ---- */

/* Returns the argument "after" of a list by name; NULL is before all names. */
static const char *
arg_after_name(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

/*
 * Adds a row of tq.task_queue_entry.  Its page is the name of the queue, or of
 * the worker type in a list of these.
 */
static void
put_queue(ReturnSetInfo *rsinfo, const TqQueue *queue, bool by_worker_type)
{
	char *slash = strchr(queue->name, '/');
	char *provisioner = pnstrdup(queue->name, slash - queue->name);
	Datum values[8] = {CStringGetTextDatum(queue->name),
					   CStringGetTextDatum(provisioner),
					   CStringGetTextDatum(slash + 1),
					   (Datum) 0,
					   (Datum) 0,
					   CStringGetTextDatum(TQ_QUEUE_DESCRIPTION),
					   CStringGetTextDatum(TQ_QUEUE_STABILITY),
					   CStringGetTextDatum(by_worker_type ? slash + 1
														  : queue->name)};
	bool nulls[8] = {false};

	tq_set_time(values, nulls, 3, queue->expires);
	tq_set_time(values, nulls, 4, queue->last_date_active);
	tq_put_row(rsinfo, values, nulls);
}

/*
 * list_task_queues(after text, max int) -> rows of tq.task_queue_entry, by
 * name
 */
Datum
tq_list_task_queues(PG_FUNCTION_ARGS)
{
	const char *after = arg_after_name(fcinfo, 0);
	int max = tq_arg_max(fcinfo, 1);
	TqQueue *queues;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_access_require(tq_need("queue:list-task-queues"));
	queues = tq_queues_list(after, max, tq_clock_now(), &n);
	for (int i = 0; i < n; i++)
		put_queue((ReturnSetInfo *) fcinfo->resultinfo, &queues[i], false);
	tq_call_end();
	return (Datum) 0;
}

/*
 * list_worker_types(provisioner_id text, after text, max int) -> rows of
 * tq.task_queue_entry, by worker type
 */
Datum
tq_list_worker_types(PG_FUNCTION_ARGS)
{
	char *provisioner = tq_arg_identifier(fcinfo, 0, "provisioner_id");
	const char *after = arg_after_name(fcinfo, 1);
	int max = tq_arg_max(fcinfo, 2);
	TqQueue *queues;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_access_require(tq_need("queue:list-worker-types:%s", provisioner));
	queues = tq_queues_list_of(provisioner, after, max, tq_clock_now(), &n);
	for (int i = 0; i < n; i++)
		put_queue((ReturnSetInfo *) fcinfo->resultinfo, &queues[i], true);
	tq_call_end();
	return (Datum) 0;
}

/* Returns a queue, to which the caller needs that right, or raises TQ404. */
static Jsonb *
get_queue(const char *right, const char *name)
{
	TqQueue queue;
	Jsonb *result;

	tq_call_begin(true);
	tq_access_require(tq_need("queue:%s:%s", right, name));
	if (!tq_queue_read(name, tq_clock_now(), &queue))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_NOT_FOUND),
			 errmsg("task queue \"%s\" does not exist", name),
			 errdetail("No worker has asked it for work, or not for a day."),
			 errhint(
				 "A task queue becomes known by the first tq.claim_work() of a worker.")));
	result = tq_spi_keep(tq_queue_json(&queue));
	tq_call_end();
	return result;
}

/* get_task_queue(task_queue_id text) -> jsonb */
Datum
tq_get_task_queue(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(
		get_queue("get-task-queue", tq_arg_task_queue_id(fcinfo, 0)));
}

/* get_worker_type(provisioner_id, worker_type text) -> as get_task_queue */
Datum
tq_get_worker_type(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(
		get_queue("get-worker-type", tq_arg_queue_of_two(fcinfo, 0, 1)));
}

/* ---- provisioners ---- */

/* Adds a row of tq.provisioner_entry. */
static void
put_provisioner(ReturnSetInfo *rsinfo, const TqQueue *provisioner)
{
	Datum name = CStringGetTextDatum(provisioner->name);
	Datum values[6] = {name,
					   (Datum) 0,
					   (Datum) 0,
					   CStringGetTextDatum(TQ_QUEUE_DESCRIPTION),
					   CStringGetTextDatum(TQ_QUEUE_STABILITY),
					   name};
	bool nulls[6] = {false};

	tq_set_time(values, nulls, 1, provisioner->expires);
	tq_set_time(values, nulls, 2, provisioner->last_date_active);
	tq_put_row(rsinfo, values, nulls);
}

/*
 * list_provisioners(after text, max int) -> rows of tq.provisioner_entry, by
 * name
 */
Datum
tq_list_provisioners(PG_FUNCTION_ARGS)
{
	const char *after = arg_after_name(fcinfo, 0);
	int max = tq_arg_max(fcinfo, 1);
	TqQueue *provisioners;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_access_require(tq_need("queue:list-provisioners"));
	provisioners = tq_queues_list_provisioners(after, max, tq_clock_now(), &n);
	for (int i = 0; i < n; i++)
		put_provisioner((ReturnSetInfo *) fcinfo->resultinfo,
						&provisioners[i]);
	tq_call_end();
	return (Datum) 0;
}

/* get_provisioner(provisioner_id text) -> jsonb */
Datum
tq_get_provisioner(PG_FUNCTION_ARGS)
{
	char *name = tq_arg_identifier(fcinfo, 0, "provisioner_id");
	TqQueue provisioner;
	Jsonb *result;

	tq_call_begin(true);
	tq_access_require(tq_need("queue:get-provisioner:%s", name));
	if (!tq_queue_read_provisioner(name, tq_clock_now(), &provisioner))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_NOT_FOUND),
			 errmsg("provisioner \"%s\" does not exist", name),
			 errdetail(
				 "No worker has asked one of its task queues for work, or not for a day."),
			 errhint(
				 "A provisioner becomes known by the first tq.claim_work() of a worker.")));
	result = tq_spi_keep(tq_queue_json(&provisioner));
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}
