/*
 * task_api.c
 *	  SQL functions on tasks: create, schedule, rerun, skip, cancel, read.
 *
 * Each function checks its arguments, lets the rules decide, and returns the
 * result.  Raises TQ400 for bad input, TQ404 for a task that does not exist,
 * and TQ409 for a conflict with the present state.  Numbers in parentheses are
 * sections of doc/spec/taskcluster.md.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "../core/names.h"
#include "../core/types.h"
#include "../engine/create.h"
#include "../engine/definition.h"
#include "../engine/definition_json.h"
#include "../engine/priority.h"
#include "../engine/task_ops.h"
#include "../events/status_json.h"
#include "../storage/activation.h"
#include "../storage/run_detail_table.h"
#include "../storage/run_table.h"
#include "../storage/task_location.h"
#include "../storage/task_table.h"
#include "../util/clock.h"
#include "../util/errors.h"
#include "../util/json_reader.h"
#include "../util/slugid.h"
#include "../util/spi.h"
#include "arguments.h"
#include "task_api.h"

PG_FUNCTION_INFO_V1(tq_create_task);
PG_FUNCTION_INFO_V1(tq_create_tasks);
PG_FUNCTION_INFO_V1(tq_define_task);
PG_FUNCTION_INFO_V1(tq_enqueue);
PG_FUNCTION_INFO_V1(tq_enqueue_tasks);
PG_FUNCTION_INFO_V1(tq_schedule_task);
PG_FUNCTION_INFO_V1(tq_rerun_task);
PG_FUNCTION_INFO_V1(tq_cancel_task);
PG_FUNCTION_INFO_V1(tq_skip_task);
PG_FUNCTION_INFO_V1(tq_delete_task);
PG_FUNCTION_INFO_V1(tq_result);
PG_FUNCTION_INFO_V1(tq_dependency_results);
PG_FUNCTION_INFO_V1(tq_status);
PG_FUNCTION_INFO_V1(tq_task);
PG_FUNCTION_INFO_V1(tq_statuses);
PG_FUNCTION_INFO_V1(tq_tasks);
PG_FUNCTION_INFO_V1(tq_list_dependent_tasks);

/* ---- create ---- */

/*
 * Creates a task for create_task() or define_task(), and returns its status.
 */
static Jsonb *
create_one(FunctionCallInfo fcinfo, bool define)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	Jsonb *definition = tq_arg_jsonb(fcinfo, 1, "task");
	TqTask *task;
	Jsonb *status;

	tq_call_begin(false);
	task = tq_definition_parse(task_id, definition);
	if (define)
		tq_definition_depend_on_self(task);
	(void) tq_create(task, 1, TQ_REPEAT_EXACT, tq_clock_now());
	status = tq_spi_keep(tq_status_of(task));
	tq_call_end();
	return status;
}

/* create_task(task_id slugid, task jsonb) -> status (2.1) */
Datum
tq_create_task(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(create_one(fcinfo, false));
}

/* define_task(task_id slugid, task jsonb) -> status (2.2) */
Datum
tq_define_task(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(create_one(fcinfo, true));
}

static void
refuse_element(int i, const char *rule)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("invalid element of tasks"),
			 errdetail("Element %d %s.", i + 1, rule),
			 errhint(
				 "Give an array of objects with \"taskId\" and \"task\".")));
}

/* Reads an element of create_tasks(), {"taskId": ..., "task": {...}}. */
static TqTask *
read_element(const JsonbValue *element, int i)
{
	JsonbContainer *object = element->val.binary.data;
	JsonbValue *id;
	JsonbValue *task;
	TqSlug slug;

	if (!tq_json_is_object(element))
		refuse_element(i, "is not an object");
	id = tq_json_member(object, "taskId");
	task = tq_json_member(object, "task");
	if (id == NULL || id->type != jbvString ||
		!tq_slug_parse(id->val.string.val, id->val.string.len, &slug))
		refuse_element(i, "has no \"taskId\" that is a slugid");
	if (task == NULL || !tq_json_is_object(task))
		refuse_element(i, "has no \"task\" that is an object");
	if (JsonContainerSize(object) != 2)
		refuse_element(i, "has keys other than \"taskId\" and \"task\"");
	return tq_definition_parse(&slug, JsonbValueToJsonb(task));
}

/* Reads the elements of create_tasks(). */
static TqTask *
read_elements(Jsonb *array, int *n)
{
	TqTask *tasks = palloc(sizeof(TqTask) * Max(JB_ROOT_COUNT(array), 1));
	TqJsonIterator it = tq_json_iterate(&array->root);

	for (*n = 0; tq_json_next(&it); (*n)++)
		tasks[*n] = *read_element(&it.value, *n);
	return tasks;
}

/* create_tasks(tasks jsonb) -> number of new tasks; all or nothing */
Datum
tq_create_tasks(PG_FUNCTION_ARGS)
{
	Jsonb *array = tq_arg_jsonb(fcinfo, 0, "tasks");
	TqTask *tasks;
	int n;
	int64 created = 0;

	if (!JB_ROOT_IS_ARRAY(array) || JB_ROOT_IS_SCALAR(array))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("tasks must be a JSON array"),
			 errdetail("It is another kind of JSON value."),
			 errhint(
				 "Give an array of objects with \"taskId\" and \"task\".")));
	tq_call_begin(false);
	tasks = read_elements(array, &n);
	if (n > 0)
		created = tq_create(tasks, n, TQ_REPEAT_EXACT, tq_clock_now());
	tq_call_end();
	PG_RETURN_INT64(created);
}

/* ---- enqueue ---- */

/*
 * Arguments of enqueue(), in the order of its declaration.  enqueue_tasks()
 * has payloads and task_ids at the positions of payload and task_id.
 */
enum
{
	ARG_QUEUE,
	ARG_PAYLOAD,
	ARG_TASK_ID,
	ARG_GROUP,
	ARG_DEPENDENCIES,
	ARG_REQUIRES,
	ARG_PRIORITY,
	ARG_RETRIES,
	ARG_DEADLINE,
	ARG_EXPIRES,
	ARG_DELAY,
	ARG_ROUTES,
	ARG_SCOPES,
	ARG_TAGS,
	ARG_EXTRA,
	ARG_NAME,
	ARG_SCHEDULER,
	ARG_PROJECT,
	ARG_POLICY
};

static int64
read_delay(FunctionCallInfo fcinfo)
{
	int64 ms = tq_clock_span_ms(tq_arg_interval(fcinfo, ARG_DELAY, "delay"));

	if (ms < 0)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("delay must not be negative"),
				 errdetail("It is " INT64_FORMAT " milliseconds.", ms),
				 errhint(
					 "Leave delay out to have the task claimable at once.")));
	return ms;
}

/* Reads what the tasks of a call have in common. */
static TqTask
read_common(FunctionCallInfo fcinfo, TimestampTz now)
{
	TqTask task = {.queue_name = tq_arg_task_queue_id(fcinfo, ARG_QUEUE)};

	task.dependencies = tq_slugs_of_array(tq_arg_array(fcinfo,
													   ARG_DEPENDENCIES,
													   "dependencies"),
										  "dependencies", &task.ndependencies);
	task.scheduler_id = tq_arg_text(fcinfo, ARG_SCHEDULER, "scheduler_id");
	task.project_id = tq_arg_text(fcinfo, ARG_PROJECT, "project_id");
	task.created = now;
	task.deadline = tq_clock_add_interval(now,
										  tq_arg_interval(fcinfo, ARG_DEADLINE,
														  "deadline"));
	task.expires = tq_clock_add_interval(task.deadline,
										 tq_arg_interval(fcinfo, ARG_EXPIRES,
														 "expires"));
	return task;
}

/* Reads what definition.c has to check. */
static TqEnqueue
read_checked(FunctionCallInfo fcinfo)
{
	return (
		TqEnqueue){.requires = tq_arg_text(fcinfo, ARG_REQUIRES, "requires"),
				   .priority = tq_arg_text(fcinfo, ARG_PRIORITY, "priority"),
				   .retries = tq_arg_int(fcinfo, ARG_RETRIES, "retries", 0,
										 49),
				   .routes = tq_arg_array(fcinfo, ARG_ROUTES, "routes"),
				   .scopes = tq_arg_array(fcinfo, ARG_SCOPES, "scopes"),
				   .tags = tq_arg_jsonb(fcinfo, ARG_TAGS, "tags"),
				   .extra = tq_arg_jsonb(fcinfo, ARG_EXTRA, "extra"),
				   .name = PG_ARGISNULL(ARG_NAME)
							   ? NULL
							   : text_to_cstring(PG_GETARG_TEXT_PP(ARG_NAME)),
				   .policy = PG_ARGISNULL(ARG_POLICY)
								 ? NULL
								 : PG_GETARG_JSONB_P(ARG_POLICY),
				   .delay_ms = read_delay(fcinfo)};
}

/*
 * Sets the id of a task and that of its group, which is its own if none is
 * given.
 */
static void
set_ids(FunctionCallInfo fcinfo, TqTask *task, const TqSlug *task_id)
{
	task->task_id = *task_id;
	task->group_slug = PG_ARGISNULL(ARG_GROUP)
						   ? task->task_id
						   : *PG_GETARG_TQ_SLUG_P(ARG_GROUP);
}

/*
 * enqueue(task_queue_id text, ...) -> task_id: create_task from SQL arguments
 */
Datum
tq_enqueue(PG_FUNCTION_ARGS)
{
	TimestampTz now = tq_clock_now();
	TqSlug *result = palloc(sizeof(TqSlug));
	TqEnqueue checked;
	TqTask task;

	tq_call_begin(false);
	task = read_common(fcinfo, now);
	task.has_own_id = PG_ARGISNULL(ARG_TASK_ID);
	if (task.has_own_id)
		tq_slug_random(result);
	else
		*result = *PG_GETARG_TQ_SLUG_P(ARG_TASK_ID);
	set_ids(fcinfo, &task, result);
	checked = read_checked(fcinfo);
	task.payload = tq_arg_jsonb(fcinfo, ARG_PAYLOAD, "payload");
	tq_definition_fill(&task, &checked);
	tq_definition_check_payload(&task);
	(void) tq_create(&task, 1, TQ_REPEAT_LATER, now);
	tq_call_end();
	PG_RETURN_TQ_SLUG_P(result);
}

/* Returns the ids that are given, or new ones. */
static TqSlug *
read_task_ids(FunctionCallInfo fcinfo, int npayloads)
{
	TqSlug *given;
	int n;

	if (PG_ARGISNULL(ARG_TASK_ID))
		return tq_slugs_random(npayloads);
	given = tq_slugs_of_array(tq_arg_array(fcinfo, ARG_TASK_ID, "task_ids"),
							  "task_ids", &n);
	if (n != npayloads)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("payloads and task_ids must be of the same length"),
				 errdetail("There are %d payloads and %d task_ids.", npayloads,
						   n),
				 errhint(
					 "Give one task id for each payload, or none at all.")));
	return given;
}

/* Returns a task for each payload; the tasks have all else in common. */
static TqTask *
read_tasks(FunctionCallInfo fcinfo, TimestampTz now, int *n)
{
	TqTask common = read_common(fcinfo, now);
	TqEnqueue checked = read_checked(fcinfo);
	Datum *payloads;
	bool *nulls;
	TqSlug *slugs;
	TqTask *tasks;

	deconstruct_array(tq_arg_array(fcinfo, ARG_PAYLOAD, "payloads"), JSONBOID,
					  -1, false, TYPALIGN_INT, &payloads, &nulls, n);
	slugs = read_task_ids(fcinfo, *n);
	tasks = palloc(sizeof(TqTask) * Max(*n, 1));
	common.has_own_id = PG_ARGISNULL(ARG_TASK_ID);
	if (*n > 0)
		set_ids(fcinfo, &common, &slugs[0]);
	tq_definition_fill(&common, &checked);
	for (int i = 0; i < *n; i++)
	{
		if (nulls[i])
			tq_error_null_element("payloads", i);
		tasks[i] = common;
		set_ids(fcinfo, &tasks[i], &slugs[i]);
		tasks[i].payload = DatumGetJsonbP(payloads[i]);
		tq_definition_check_payload(&tasks[i]);
	}
	return tasks;
}

/*
 * enqueue_tasks(task_queue_id text, payloads jsonb[], task_ids slugid[], ...)
 * -> task ids, in the order of the payloads: enqueue() for many, all or none
 */
Datum
tq_enqueue_tasks(PG_FUNCTION_ARGS)
{
	TimestampTz now = tq_clock_now();
	MemoryContext outer = CurrentMemoryContext;
	TqSlug *slugs;
	TqTask *tasks;
	Datum result;
	int n;

	tq_call_begin(false);
	tasks = read_tasks(fcinfo, now, &n);
	if (n > 0)
		(void) tq_create(tasks, n, TQ_REPEAT_LATER, now);
	slugs = palloc(sizeof(TqSlug) * Max(n, 1));
	for (int i = 0; i < n; i++)
		slugs[i] = tasks[i].task_id;
	MemoryContextSwitchTo(outer);
	result = tq_array_slugid(slugs, n);
	tq_call_end();
	PG_RETURN_DATUM(result);
}

/* ---- change ---- */

/* Applies a transition to a task, and returns its status afterwards. */
static Jsonb *
change_task(FunctionCallInfo fcinfo, void (*change)(TqTask *, TimestampTz))
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	TqTask *task;
	Jsonb *status;

	tq_call_begin(false);
	task = tq_task_get(task_id, false);
	change(task, tq_clock_now());
	if (task->policy != 0) /* its effective deadline may have changed */
		task = tq_task_get(task_id, false);
	status = tq_spi_keep(tq_status_of(task));
	tq_call_end();
	return status;
}

/* schedule_task(task_id slugid) -> status (2.3) */
Datum
tq_schedule_task(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(change_task(fcinfo, tq_task_schedule));
}

/* rerun_task(task_id slugid) -> status (2.4) */
Datum
tq_rerun_task(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(change_task(fcinfo, tq_task_rerun));
}

/* cancel_task(task_id slugid) -> status (2.5) */
Datum
tq_cancel_task(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(change_task(fcinfo, tq_task_cancel));
}

/*
 * delete_task(task_id slugid) -> void: in any state, even past its deadline.
 * A claim of its run is lost: the report of the worker raises TQ404.
 */
Datum
tq_delete_task(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");

	tq_call_begin(false);
	tq_task_delete(tq_task_get(task_id, false));
	tq_call_end();
	PG_RETURN_VOID();
}

/* skip_task(task_id slugid, output jsonb) -> status (doc/spec/policy.md 5) */
Datum
tq_skip_task(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	Jsonb *output = tq_arg_result(fcinfo, 1, "output");
	TqTask *task;
	Jsonb *status;

	tq_call_begin(false);
	task = tq_task_get(task_id, false);
	tq_task_skip(task, output, tq_clock_now());
	status = tq_spi_keep(tq_status_of(task));
	tq_call_end();
	PG_RETURN_JSONB_P(status);
}

/* ---- read (2.13) ---- */

/* status(task_id slugid) -> the status structure (1.3) */
Datum
tq_status(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	Jsonb *status;

	tq_call_begin(true);
	status = tq_spi_keep(tq_status_of(tq_task_get(task_id, false)));
	tq_call_end();
	PG_RETURN_JSONB_P(status);
}

/* task(task_id slugid) -> the definition (1.2) */
Datum
tq_task(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	Jsonb *definition;

	tq_call_begin(true);
	definition = tq_spi_keep(tq_definition_json(tq_task_get(task_id, true)));
	tq_call_end();
	PG_RETURN_JSONB_P(definition);
}

/* result(task_id slugid) -> the result of its last run, or NULL */
Datum
tq_result(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	TqTask *task;
	TqRun *runs;
	Jsonb *result;
	int n;

	tq_call_begin(true);
	task = tq_task_get(task_id, false);
	runs = tq_runs_of_task(task, &n);
	result = n == 0 ? NULL : tq_detail_result(&runs[n - 1]);
	if (result != NULL)
		result = tq_spi_keep(result);
	tq_call_end();
	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(result);
}

/* Adds a row for a required task that has expired or was deleted. */
static void
put_missing_dependency(ReturnSetInfo *rsinfo, const TqSlug *task_id)
{
	Datum values[3] = {tq_slug_datum(task_id), CStringGetTextDatum("missing"),
					   (Datum) 0};
	bool nulls[3] = {false, false, true};

	tq_put_row(rsinfo, values, nulls);
}

/* Adds a row for a required task that exists. */
static void
put_dependency(ReturnSetInfo *rsinfo, const TqTask *task)
{
	int n;
	TqRun *runs = tq_runs_of_task(task, &n);
	TqState state = n == 0 ? TQ_STATE_UNSCHEDULED : runs[n - 1].state;
	Jsonb *result = n == 0 ? NULL : tq_detail_result(&runs[n - 1]);
	Datum values[3] = {tq_slug_datum(&task->task_id),
					   CStringGetTextDatum(tq_state_name(state)),
					   PointerGetDatum(result)};
	bool nulls[3] = {false, false, result == NULL};

	tq_put_row(rsinfo, values, nulls);
}

/*
 * dependency_results(task_id slugid) -> (task_id, state, result), in the order
 * of the definition; the state of a task that has expired or was deleted is
 * "missing".
 */
Datum
tq_dependency_results(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	TqTask *task;
	TqTask *required;
	int found = 0;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	task = tq_task_get(task_id, true);
	required = tq_tasks_by_slug(task->dependencies, task->ndependencies, false,
								&n);
	for (int i = 0; i < task->ndependencies; i++)
	{
		if (found < n && tq_slug_compare(&required[found].task_id,
										 &task->dependencies[i]) == 0)
			put_dependency(rsinfo, &required[found++]);
		else
			put_missing_dependency(rsinfo, &task->dependencies[i]);
	}
	tq_call_end();
	return (Datum) 0;
}

/* The columns of a list. */
typedef enum Columns
{
	COLUMNS_STATUS = 1,
	COLUMNS_TASK = 2,
	COLUMNS_BOTH = 3
} Columns;

/*
 * Returns the runs of one task from a history, which is sorted by the ids of
 * the tasks.
 */
static const TqRun *
runs_of(const TqRun *runs, int nruns, int64 task, int *n)
{
	int low = 0;
	int high = nruns;

	while (low < high)
	{
		int middle = (low + high) / 2;

		if (runs[middle].task < task)
			low = middle + 1;
		else
			high = middle;
	}
	for (*n = 0; low + *n < nruns && runs[low + *n].task == task;)
		(*n)++;
	return &runs[low];
}

/* Adds a row for each task; reads the history of all of them at once. */
static void
put_tasks(ReturnSetInfo *rsinfo, const TqTask *tasks, int n, Columns columns)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	TqRun *runs = NULL;
	int nruns = 0;

	for (int i = 0; i < n; i++)
		ids[i] = tasks[i].id;
	if (columns & COLUMNS_STATUS)
		runs = tq_runs_history(ids, n, true, &nruns);
	for (int i = 0; i < n; i++)
	{
		Datum values[3];
		bool nulls[3] = {false, false, false};
		int column = 0;
		int mine;
		const TqRun *first = runs_of(runs, nruns, tasks[i].id, &mine);

		values[column++] = tq_slug_datum(&tasks[i].task_id);
		if (columns & COLUMNS_STATUS)
			values[column++] = JsonbPGetDatum(
				tq_status_json(&tasks[i], first, mine));
		if (columns & COLUMNS_TASK)
			values[column++] = JsonbPGetDatum(tq_definition_json(&tasks[i]));
		tq_put_row(rsinfo, values, nulls);
	}
}

/* Returns a row for each of the tasks of the argument "task_ids". */
static Datum
list_asked_for(FunctionCallInfo fcinfo, Columns columns)
{
	ArrayType *array = tq_arg_array(fcinfo, 0, "task_ids");
	TqSlug *slugs;
	TqTask *tasks;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	slugs = tq_slugs_of_array(array, "task_ids", &n);
	tasks = tq_tasks_by_slug(slugs, n, (columns & COLUMNS_TASK) != 0, &n);
	put_tasks((ReturnSetInfo *) fcinfo->resultinfo, tasks, n, columns);
	tq_call_end();
	return (Datum) 0;
}

/* statuses(task_ids slugid[]) -> (task_id, status), in the order asked for */
Datum
tq_statuses(PG_FUNCTION_ARGS)
{
	return list_asked_for(fcinfo, COLUMNS_STATUS);
}

/* tasks(task_ids slugid[]) -> (task_id, task), in the order asked for */
Datum
tq_tasks(PG_FUNCTION_ARGS)
{
	return list_asked_for(fcinfo, COLUMNS_TASK);
}

/* Adds rows of (task_id, status, task). */
void
tq_put_entries(ReturnSetInfo *rsinfo, const TqTask *tasks, int n)
{
	put_tasks(rsinfo, tasks, n, COLUMNS_BOTH);
}

/*
 * list_dependent_tasks(task_id slugid, after slugid, max int) -> (task_id,
 * status, task)
 */
Datum
tq_list_dependent_tasks(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	TqSlug after = tq_arg_after(fcinfo, 1);
	int max = tq_arg_max(fcinfo, 2);
	TqTask *required;
	TqTask *tasks;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	required = tq_task_get(task_id, false);
	tasks = tq_tasks_dependent(required->id, tq_clock_now(), &after, max, &n);
	tq_put_entries((ReturnSetInfo *) fcinfo->resultinfo, tasks, n);
	tq_call_end();
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(tq_change_task_priority);
PG_FUNCTION_INFO_V1(tq_change_task_group_priority);

static int
get_priority(FunctionCallInfo fcinfo, int n)
{
	return tq_priority_check(tq_arg_text(fcinfo, n, "priority"));
}

/* change_task_priority(task_id slugid, priority text) -> status */
Datum
tq_change_task_priority(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int priority = get_priority(fcinfo, 1);
	TqTask *task;
	Jsonb *status;

	tq_call_begin(false);
	task = tq_priority_change(task_id, priority, tq_clock_now());
	status = tq_spi_keep(tq_status_of(task));
	tq_call_end();
	PG_RETURN_JSONB_P(status);
}

/*
 * change_task_group_priority(task_group_id slugid, priority text)
 *	 -> {taskGroupId, schedulerId, newPriority, tasksAffected, taskIds}
 */
Datum
tq_change_task_group_priority(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	int priority = get_priority(fcinfo, 1);
	Jsonb *result;

	tq_call_begin(false);
	result = tq_spi_keep(
		tq_priority_change_group(slug, priority, tq_clock_now()));
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}
