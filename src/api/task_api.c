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

#include "../core/names.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_create_task);
PG_FUNCTION_INFO_V1(tq_create_tasks);
PG_FUNCTION_INFO_V1(tq_define_task);
PG_FUNCTION_INFO_V1(tq_enqueue);
PG_FUNCTION_INFO_V1(tq_enqueue_tasks);
PG_FUNCTION_INFO_V1(tq_schedule_task);
PG_FUNCTION_INFO_V1(tq_add_task_dependencies);
PG_FUNCTION_INFO_V1(tq_rerun_plan);
PG_FUNCTION_INFO_V1(tq_rerun_task);
PG_FUNCTION_INFO_V1(tq_reschedule_task);
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
 * Returns the status of a task that this call has created, or found.  What a
 * plain task has become is known; others are read as they are now.
 */
static Jsonb *
status_of_created(const TqTaskDefinition *definition, TimestampTz now)
{
	const TqNamedTask *named = &definition->named;
	TqRun first = {.state = TQ_STATE_PENDING,
				   .created = TQ_CREATED_SCHEDULED,
				   .retries_left = named->task.retries,
				   .scheduled = now};

	if (definition->location == TQ_LOCATION_UNSCHEDULED)
		return tq_status_json(named, NULL, 0);
	if (definition->location == TQ_LOCATION_PENDING &&
		named->task.policy == 0 && named->task.delay == 0)
		return tq_status_of_only(named, &first, NULL);
	return tq_status_of(named);
}

/*
 * Creates a task for create_task() or define_task(), and returns its status.
 * That of another task, which holds the unique key, is not shown to all.
 */
static Jsonb *
create_one(FunctionCallInfo fcinfo, bool define)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	Jsonb *task = tq_arg_jsonb(fcinfo, 1, "task");
	TqTaskDefinition definition;
	TimestampTz now;
	Jsonb *status;

	tq_call_begin(false);
	tq_definition_parse(task_id, &task->root, false, &definition);
	if (define)
		tq_definition_depend_on_self(&definition);
	tq_require_create(&definition, 1, !define);
	now = tq_clock_now();
	(void) tq_create(&definition, 1, TQ_REPEAT_EXACT, now);
	if (tq_slug_compare(task_id, &definition.named.task.task_id) != 0 &&
		!tq_may_read("status", &definition.named.task.task_id,
					 definition.named.queue_name))
		tq_access_error(tq_need("queue:status:%s",
								tq_slug_text(&definition.named.task.task_id)));
	status = tq_spi_keep(status_of_created(&definition, now));
	tq_audit_client(fcinfo);
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

/* The keys of an element of create_tasks(). */
#define ELEMENT_KEYS(KEY)                                                     \
	KEY(TASK, "task")                                                         \
	KEY(TASK_ID, "taskId")

enum
{
	ELEMENT_KEYS(TQ_JSON_KEY_NUMBER)
};

static const TqJsonKey element_keys[] = {ELEMENT_KEYS(TQ_JSON_KEY_NAME)};

/*
 * Reads an element of create_tasks(), {"taskId": ..., "task": {...}}, and notes
 * what is wrong with its definition.
 */
static void
read_element(TqFaults *faults, const JsonbValue *element, int i,
			 TqTaskDefinition *definition)
{
	TqJsonReader reader = {element_keys, lengthof(element_keys)};
	JsonbValue unknown;
	bool all_known;
	const JsonbValue *id;
	const JsonbValue *task;
	TqSlug *slug = palloc(sizeof(TqSlug)); /* faults keeps it */

	if (!tq_json_is_object(element))
		refuse_element(i, "is not an object");
	all_known = tq_json_open(&reader, element->val.binary.data, &unknown);
	id = tq_json_at(&reader, KEY_TASK_ID);
	task = tq_json_at(&reader, KEY_TASK);
	if (id == NULL || id->type != jbvString ||
		!tq_slug_parse(id->val.string.val, id->val.string.len, slug))
		refuse_element(i, "has no \"taskId\" that is a slugid");
	if (task == NULL || !tq_json_is_object(task))
		refuse_element(i, "has no \"task\" that is an object");
	if (!all_known)
		refuse_element(i, "has keys other than \"taskId\" and \"task\"");
	faults->task_id = slug;
	faults->element = i + 1;
	tq_definition_read(faults, task->val.binary.data, false, definition);
}

/* Reads the elements of create_tasks(). */
static TqTaskDefinition *
read_elements(Jsonb *array, int *n)
{
	TqTaskDefinition *tasks = palloc(sizeof(TqTaskDefinition) *
									 Max(JB_ROOT_COUNT(array), 1));
	TqJsonIterator it = tq_json_iterate(&array->root);
	TqFaults faults = {0};

	for (*n = 0; tq_json_next(&it); (*n)++)
		read_element(&faults, &it.value, *n, &tasks[*n]);
	tq_faults_raise(&faults);
	return tasks;
}

/* Writes the creation of tasks to the audit trail. */
static void
audit_tasks(FunctionCallInfo fcinfo, const TqTaskDefinition *tasks, int n)
{
	TqActRun *runs = palloc(sizeof(TqActRun) * Max(n, 1));

	for (int i = 0; i < n; i++)
		runs[i] = (TqActRun){.task_id = tasks[i].named.task.task_id,
							 .run_id = TQ_NO_RUN};
	tq_audit_call_runs(fcinfo, runs, n);
}

/* create_tasks(tasks jsonb) -> number of new tasks; all or nothing */
Datum
tq_create_tasks(PG_FUNCTION_ARGS)
{
	Jsonb *array = tq_arg_jsonb(fcinfo, 0, "tasks");
	TqTaskDefinition *tasks;
	int n;
	int64 created = 0;

	if (!JB_ROOT_IS_ARRAY(array) || JB_ROOT_IS_SCALAR(array))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("tasks must be a JSON array"),
			 errdetail("The argument is %s.", tq_json_clip(&array->root)),
			 errhint(
				 "Give an array of objects with \"taskId\" and \"task\".")));
	tq_check_batch("tasks", JB_ROOT_COUNT(array));
	tq_call_begin_idle();
	tasks = read_elements(array, &n);
	tq_require_create(tasks, n, true);
	if (n > 0)
	{
		tq_activation_do();
		created = tq_create(tasks, n, TQ_REPEAT_EXACT, tq_clock_now());
	}
	if (tq_audit_wants_clients())
		audit_tasks(fcinfo, tasks, n);
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
	ARG_POLICY,
	ARG_RETRY,
	ARG_RUN_AT
};

static int64
read_delay(TqFaults *faults, FunctionCallInfo fcinfo)
{
	int64 ms = tq_clock_span_ms(tq_arg_interval(fcinfo, ARG_DELAY, "delay"));

	if (ms >= 0)
		return ms;
	tq_fault_with_hint(faults, "delay",
					   psprintf("must not be negative; it is " INT64_FORMAT
								" milliseconds",
								ms),
					   "Leave delay out to have the task claimable at once.");
	return 0;
}

/* Reads what the tasks of a call have in common. */
static TqTaskDefinition
read_common(FunctionCallInfo fcinfo, TimestampTz now)
{
	TqTaskDefinition common = {
		.named.queue_name = tq_arg_task_queue_id(fcinfo, ARG_QUEUE)};
	TqTask *task = &common.named.task;

	common.dependencies =
		tq_slugs_of_array(tq_arg_array(fcinfo, ARG_DEPENDENCIES,
									   "dependencies"),
						  "dependencies", &common.ndependencies);
	common.named.scheduler_id = tq_arg_text(fcinfo, ARG_SCHEDULER,
											"scheduler_id");
	common.named.project_id = tq_arg_text(fcinfo, ARG_PROJECT, "project_id");
	task->created = now;
	task->deadline = tq_arg_deadline(fcinfo, ARG_DEADLINE, now);
	task->expires_given = !PG_ARGISNULL(ARG_EXPIRES);
	if (task->expires_given)
		task->expires = tq_clock_add_interval(task->deadline,
											  tq_arg_interval(fcinfo,
															  ARG_EXPIRES,
															  "expires"));
	return common;
}

/* Returns retries or retry, or TQ_OFF if it is not given. */
static int
read_retries(TqFaults *faults, FunctionCallInfo fcinfo, int n,
			 const char *name)
{
	int retries;

	if (PG_ARGISNULL(n))
		return TQ_OFF;
	retries = PG_GETARG_INT32(n);
	if (retries >= 0 && retries <= TQ_RETRIES_MAX)
		return retries;
	tq_fault(faults, name,
			 psprintf("must be a number from 0 to %d; it is %d",
					  TQ_RETRIES_MAX, retries));
	return 0;
}

static void
refuse_both(const char *a, const char *b)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("%s and %s exclude each other", a, b),
			 errdetail("Both are given."), errhint("Leave one of them out.")));
}

/*
 * Returns run_at, or 0 if it is not given; all times of the past are alike, and
 * '-infinity' is one.
 */
static TimestampTz
read_run_at(TqFaults *faults, FunctionCallInfo fcinfo)
{
	TimestampTz run_at;

	if (PG_ARGISNULL(ARG_RUN_AT))
		return 0;
	run_at = PG_GETARG_TIMESTAMPTZ(ARG_RUN_AT);
	if (run_at <= tq_clock_latest())
		return Max(run_at, 1);
	tq_fault(faults, "run_at",
			 psprintf("must be in or before the year 9999; it is %s",
					  tq_clock_text(run_at)));
	return 0;
}

/* Reads what definition.c has to check. */
static TqEnqueue
task_read_checked(TqFaults *faults, FunctionCallInfo fcinfo)
{
	int64 delay_ms = read_delay(faults, fcinfo);

	if (!PG_ARGISNULL(ARG_RETRY) && !PG_ARGISNULL(ARG_RETRIES))
		refuse_both("retry", "retries");
	if (!PG_ARGISNULL(ARG_RUN_AT) && delay_ms > 0)
		refuse_both("run_at", "delay");
	return (
		TqEnqueue){.requires = tq_arg_text(fcinfo, ARG_REQUIRES, "requires"),
				   .priority = tq_arg_text(fcinfo, ARG_PRIORITY, "priority"),
				   .retries = read_retries(faults, fcinfo, ARG_RETRIES,
										   "retries"),
				   .retry = read_retries(faults, fcinfo, ARG_RETRY, "retry"),
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
				   .delay_ms = delay_ms,
				   .run_at = read_run_at(faults, fcinfo)};
}

/* Returns the argument task_group_id, or NULL. */
static const TqSlug *
given_group(FunctionCallInfo fcinfo)
{
	return PG_ARGISNULL(ARG_GROUP) ? NULL : PG_GETARG_TQ_SLUG_P(ARG_GROUP);
}

/*
 * Sets the id of a task and that of its group, which is its own if none is
 * given.
 */
static void
set_ids(FunctionCallInfo fcinfo, TqNamedTask *named, const TqSlug *task_id)
{
	named->task.task_id = *task_id;
	named->group_slug = PG_ARGISNULL(ARG_GROUP) ? *task_id
												: *given_group(fcinfo);
}

/*
 * enqueue(task_queue_id text, ...) -> task_id: create_task from SQL arguments
 */
Datum
tq_enqueue(PG_FUNCTION_ARGS)
{
	TimestampTz now = tq_clock_now();
	TqSlug *result = palloc(sizeof(TqSlug));
	TqFaults faults = {.of_arguments = true};
	TqEnqueue checked;
	TqTaskDefinition definition;

	tq_call_begin(false);
	definition = read_common(fcinfo, now);
	definition.has_own_id = PG_ARGISNULL(ARG_TASK_ID);
	if (definition.has_own_id)
	{
		tq_slug_new(result);
		tq_bucket_choose(result, given_group(fcinfo));
	}
	else
		*result = *PG_GETARG_TQ_SLUG_P(ARG_TASK_ID);
	set_ids(fcinfo, &definition.named, result);
	checked = task_read_checked(&faults, fcinfo);
	definition.payload = tq_arg_jsonb(fcinfo, ARG_PAYLOAD, "payload");
	tq_definition_fill(&faults, &definition, &checked);
	tq_definition_check_whole(&faults, &definition);
	tq_faults_raise(&faults);
	tq_require_create(&definition, 1, true);
	(void) tq_create(&definition, 1, TQ_REPEAT_LATER, now);
	*result = definition.named.task.task_id;
	if (tq_audit_wants_clients())
		audit_tasks(fcinfo, &definition, 1);
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
	{
		TqSlug *slugs = tq_slugs_new(npayloads);
		const TqSlug *group = given_group(fcinfo);

		/*
		 * New ids, in ascending order: their buckets are the last bits, which
		 * decide among equal ones only.
		 */
		for (int i = 0; i < npayloads; i++)
			tq_bucket_choose(&slugs[i], group);
		return slugs;
	}
	given = tq_slugs_of_array(tq_arg_batch(fcinfo, ARG_TASK_ID, "task_ids"),
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
static TqTaskDefinition *
task_read_tasks(FunctionCallInfo fcinfo, TimestampTz now, int *n)
{
	TqTaskDefinition common = read_common(fcinfo, now);
	TqFaults faults = {.of_arguments = true};
	TqEnqueue checked = task_read_checked(&faults, fcinfo);
	Datum *payloads;
	bool *nulls;
	TqSlug *slugs;
	TqTaskDefinition *tasks;

	deconstruct_array(tq_arg_batch(fcinfo, ARG_PAYLOAD, "payloads"), JSONBOID,
					  -1, false, TYPALIGN_INT, &payloads, &nulls, n);
	slugs = read_task_ids(fcinfo, *n);
	tasks = palloc(sizeof(TqTaskDefinition) * Max(*n, 1));
	common.has_own_id = PG_ARGISNULL(ARG_TASK_ID);
	if (*n > 0)
		set_ids(fcinfo, &common.named, &slugs[0]);
	tq_definition_fill(&faults, &common, &checked);
	for (int i = 0; i < *n; i++)
	{
		faults.element = i + 1;
		if (nulls[i])
		{
			tq_fault_with_hint(
				&faults, "payload", "must not be NULL",
				"Leave the element out, or give the JSON value 'null'.");
			continue;
		}
		tasks[i] = common;
		set_ids(fcinfo, &tasks[i].named, &slugs[i]);
		tasks[i].payload = DatumGetJsonbP(payloads[i]);
		tq_definition_check_whole(&faults, &tasks[i]);
	}
	tq_faults_raise(&faults);
	return tasks;
}

/*
 * enqueue_tasks(task_queue_id text, payloads jsonb[], task_ids slugid[], ...)
 * -> task ids as text[], in the order of the payloads: enqueue() for many, all
 * or none
 */
Datum
tq_enqueue_tasks(PG_FUNCTION_ARGS)
{
	TimestampTz now = tq_clock_now();
	MemoryContext outer = CurrentMemoryContext;
	TqTaskDefinition *tasks;
	Datum result;
	int n;
	char **texts;
	char *space;

	tq_call_begin_idle();
	tasks = task_read_tasks(fcinfo, now, &n);
	tq_require_create(tasks, Min(n, 1), true); /* they are alike */
	if (n > 0)
	{
		tq_activation_do();
		(void) tq_create(tasks, n, TQ_REPEAT_LATER, now);
	}
	MemoryContextSwitchTo(outer);
	/*
	 * The ids of tasks as a text[]: a driver reads that as a list, and an
	 * array of a type that it does not know as one string.
	 */
	texts = palloc(sizeof(char *) * Max(n, 1));
	space = palloc((TQ_SLUG_CHARS + 1) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		texts[i] = space + (TQ_SLUG_CHARS + 1) * i;
		tq_slug_print(&tasks[i].named.task.task_id, texts[i]);
	}
	result = tq_array_text(texts, n);
	if (tq_audit_wants_clients())
		audit_tasks(fcinfo, tasks, n);
	tq_call_end();
	PG_RETURN_DATUM(result);
}

/* ---- change ---- */

/*
 * Applies a transition to a task, for which the caller needs that right, and
 * returns its status afterwards.
 */
static Jsonb *
change_task(FunctionCallInfo fcinfo, const char *right,
			void (*change)(TqTask *, TimestampTz))
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	TqNamedTask *named;
	Jsonb *status;

	tq_call_begin(false);
	named = tq_task_get(task_id);
	tq_require_change(right, named);
	change(&named->task, tq_clock_now());
	if (named->task.policy != 0) /* its effective deadline may have changed */
		named = tq_task_get(task_id);
	status = tq_spi_keep(tq_status_of(named));
	tq_audit_operator(fcinfo);
	tq_call_end();
	return status;
}

/* schedule_task(task_id slugid) -> status (2.3) */
Datum
tq_schedule_task(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(change_task(fcinfo, "schedule-task", tq_task_schedule));
}

/* Reruns a task with another deadline, or with what depends on it. */
static Jsonb *
repair_task(FunctionCallInfo fcinfo, const TqRepairHow *how)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	TqNamedTask *named;
	Jsonb *status;

	tq_call_begin(false);
	named = tq_task_get(task_id);
	tq_require_change("rerun-task", named);
	tq_repair_task(&named->task, how, tq_clock_now());
	status = tq_spi_keep(tq_status_of(tq_task_get(task_id)));
	tq_audit_operator(fcinfo);
	tq_call_end();
	return status;
}

/*
 * rerun_task(task_id slugid, deadline interval from now, downstream bool) ->
 * status (2.4)
 */
Datum
tq_rerun_task(PG_FUNCTION_ARGS)
{
	TqRepairHow how = tq_arg_repair(fcinfo, 1, 2);

	if (how.deadline == NULL && !how.downstream)
		PG_RETURN_JSONB_P(change_task(fcinfo, "rerun-task", tq_task_rerun));
	PG_RETURN_JSONB_P(repair_task(fcinfo, &how));
}

/*
 * rerun_plan(task_id slugid, deadline interval from now, downstream bool) ->
 * (task_id, state, action, why): what rerun_task() would do (2.4)
 */
Datum
tq_rerun_plan(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	TqRepairHow how = tq_arg_repair(fcinfo, 1, 2);
	TqNamedTask *named;
	TqRepairStep *steps;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	named = tq_task_get(task_id);
	tq_require_change("rerun-task", named);
	steps = tq_repair_plan(&named->task, &how, tq_clock_now(), &n);
	for (int i = 0; i < n; i++)
	{
		const TqRepairStep *step = &steps[i];
		Datum values[4] = {PointerGetDatum(&step->task_id),
						   CStringGetTextDatum(tq_state_name(step->state)),
						   CStringGetTextDatum(step->action), (Datum) 0};
		bool nulls[4] = {false, false, false, step->why == NULL};

		if (step->why != NULL)
			values[3] = CStringGetTextDatum(step->why);
		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
	}
	tq_call_end();
	return (Datum) 0;
}

/*
 * reschedule_task(task_id slugid, run_at timestamptz; NULL: now) -> status
 * (2.21)
 */
Datum
tq_reschedule_task(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	TimestampTz run_at = PG_ARGISNULL(1)
							 ? DT_NOBEGIN
							 : tq_clock_truncate(PG_GETARG_TIMESTAMPTZ(1));
	TqNamedTask *named;
	Jsonb *status;

	tq_call_begin(false);
	named = tq_task_get(task_id);
	tq_require_change("reschedule-task", named);
	tq_task_reschedule(&named->task, run_at, tq_clock_now());
	status = tq_spi_keep(tq_status_of(named));
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(status);
}

/*
 * add_dependencies(task_id slugid, dependencies slugid[]) -> status (2.22)
 */
Datum
tq_add_task_dependencies(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int n;
	TqSlug *dependencies = tq_slugs_of_array(tq_arg_array(fcinfo, 1,
														  "dependencies"),
											 "dependencies", &n);
	TqNamedTask *named;
	Jsonb *status;

	tq_call_begin(false);
	named = tq_task_get(task_id);
	tq_require_change("add-dependencies", named);
	tq_add_dependencies(task_id, dependencies, n, tq_clock_now());
	status = tq_spi_keep(tq_status_of(named));
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(status);
}

/* cancel_task(task_id slugid) -> status (2.5) */
Datum
tq_cancel_task(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(change_task(fcinfo, "cancel-task", tq_task_cancel));
}

/*
 * delete_task(task_id slugid) -> void: in any state, even past its deadline.
 * A claim of its run is lost: the report of the worker raises TQ404.
 */
Datum
tq_delete_task(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	TqNamedTask *named;

	tq_call_begin(false);
	named = tq_task_get(task_id);
	tq_require_change("delete-task", named);
	tq_task_delete(named);
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_VOID();
}

/* skip_task(task_id slugid, output jsonb) -> status (doc/spec/policy.md 5) */
Datum
tq_skip_task(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	Jsonb *output = tq_arg_result(fcinfo, 1, "output");
	TqNamedTask *named;
	Jsonb *status;

	tq_call_begin(false);
	named = tq_task_get(task_id);
	tq_require_change("skip-task", named);
	tq_task_skip(&named->task, output, tq_clock_now());
	status = tq_spi_keep(tq_status_of(named));
	tq_audit_operator(fcinfo);
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
	tq_require_read("status", task_id);
	status = tq_spi_keep(tq_status_of(tq_task_get(task_id)));
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
	tq_require_read("get-task", task_id);
	definition = tq_spi_keep(tq_definition_json(tq_definition_get(task_id)));
	tq_call_end();
	PG_RETURN_JSONB_P(definition);
}

/* result(task_id slugid) -> the result of its last run, or NULL */
Datum
tq_result(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	TqHistoryRun *runs;
	Jsonb *result;
	int n;

	tq_call_begin(true);
	tq_require_read("status", task_id);
	runs = tq_runs_of_task(&tq_task_get(task_id)->task, &n);
	result = n == 0 ? NULL : tq_detail_result(&runs[n - 1].run);
	if (result != NULL)
		result = tq_spi_keep(result);
	tq_call_end();
	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(result);
}

/* Adds a row for a required task that exists. */
static void
put_dependency(ReturnSetInfo *rsinfo, const TqTask *task)
{
	int n;
	TqHistoryRun *runs = tq_runs_of_task(task, &n);
	TqState state = n == 0 || runs[n - 1].is_left ? TQ_STATE_UNSCHEDULED
												  : runs[n - 1].run.state;
	Jsonb *result = n == 0 ? NULL : tq_detail_result(&runs[n - 1].run);
	Datum values[3] = {PointerGetDatum(&task->task_id),
					   CStringGetTextDatum(tq_state_name(state)),
					   PointerGetDatum(result)};
	bool nulls[3] = {false, false, result == NULL};

	tq_put_row(rsinfo, values, nulls);
}

/*
 * dependency_results(task_id slugid) -> (task_id, state, result), in the order
 * of the definition; the state of a task that has expired or was deleted, or
 * whose status the caller may not see, is "missing".
 */
Datum
tq_dependency_results(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	TqTaskDefinition *definition;
	TqTaskFinder finder = {NULL, NULL};
	TqTask required;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_require_read("status", task_id);
	definition = tq_definition_get(task_id);
	for (int i = 0; i < definition->ndependencies; i++)
	{
		const TqSlug *slug = &definition->dependencies[i];

		if (tq_task_find_by_slug(&finder, slug, &required) &&
			tq_may_read("status", slug, tq_queue_name(required.queue)))
			put_dependency(rsinfo, &required);
		else
		{
			Datum values[3] = {PointerGetDatum(slug),
							   CStringGetTextDatum("missing"), (Datum) 0};
			bool nulls[3] = {false, false, true};

			/* Add a row for a required task that is not there or not to be seen. */
			tq_put_row(rsinfo, values, nulls);
		}
	}
	tq_task_finder_end(&finder);
	tq_call_end();
	return (Datum) 0;
}

/*
 * Adds a row of a task id and, if the rows have that column, two values, the
 * second of which may be NULL.
 */
static void
put_values(ReturnSetInfo *rsinfo, const TqTask *task, Jsonb *value,
		   Jsonb *other)
{
	Datum values[3] = {PointerGetDatum(&task->task_id), JsonbPGetDatum(value),
					   JsonbPGetDatum(other)};
	bool nulls[3] = {false, false, other == NULL};

	tq_put_row(rsinfo, values, nulls);
}

/*
 * Begins a list about the tasks of the argument "task_ids", and returns those
 * to which the caller has that right.
 */
static TqSlug *
begin_list(FunctionCallInfo fcinfo, const char *right, int *n)
{
	ArrayType *array = tq_arg_batch(fcinfo, 0, "task_ids");
	TqSlug *slugs;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	slugs = tq_slugs_of_array(array, "task_ids", n);
	*n = tq_keep_read(right, slugs, *n);
	return slugs;
}

/* statuses(task_ids slugid[]) -> (task_id, status), in the order asked for */
Datum
tq_statuses(PG_FUNCTION_ARGS)
{
	int n;
	TqSlug *slugs = begin_list(fcinfo, "status", &n);
	TqNamedTask *tasks = tq_tasks_by_slug(slugs, n, &n);
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	int nruns;
	TqHistoryRun *runs;

	for (int i = 0; i < n; i++)
		ids[i] = tasks[i].task.id;
	runs = tq_runs_history(ids, n, true, &nruns);
	for (int i = 0; i < n; i++)
		put_values((ReturnSetInfo *) fcinfo->resultinfo, &tasks[i].task,
				   tq_status_from(runs, nruns, &tasks[i]), NULL);
	tq_call_end();
	return (Datum) 0;
}

/* tasks(task_ids slugid[]) -> (task_id, task), in the order asked for */
Datum
tq_tasks(PG_FUNCTION_ARGS)
{
	int n;
	TqSlug *slugs = begin_list(fcinfo, "get-task", &n);
	TqTaskDefinition *tasks = tq_definitions_by_slug(slugs, n, &n);

	for (int i = 0; i < n; i++)
		put_values((ReturnSetInfo *) fcinfo->resultinfo, &tasks[i].named.task,
				   tq_definition_json(&tasks[i]), NULL);
	tq_call_end();
	return (Datum) 0;
}

/*
 * Removes tasks whose status the caller may not see, and those beyond the first
 * `max` of the others; returns how many are left.
 */
static int
keep_seen(TqTaskDefinition *tasks, int n, int max)
{
	int left = 0;

	for (int i = 0; i < n && left < max; i++)
	{
		const TqNamedTask *named = &tasks[i].named;

		if (tq_may_read("status", &named->task.task_id, named->queue_name))
			tasks[left++] = tasks[i];
	}
	return left;
}

/*
 * Adds rows of (task_id, status, task); the definition of a task that the caller
 * may not get is NULL.
 */
void
tq_put_entries(ReturnSetInfo *rsinfo, const TqTaskDefinition *tasks, int n)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	int nruns;
	TqHistoryRun *runs;

	for (int i = 0; i < n; i++)
		ids[i] = tasks[i].named.task.id;
	runs = tq_runs_history(ids, n, true, &nruns);
	for (int i = 0; i < n; i++)
	{
		const TqNamedTask *named = &tasks[i].named;
		bool may_get = tq_may_read("get-task", &named->task.task_id,
								   named->queue_name);

		put_values(rsinfo, &named->task, tq_status_from(runs, nruns, named),
				   may_get ? tq_definition_json(&tasks[i]) : NULL);
	}
}

/*
 * list_dependent_tasks(task_id slugid, after slugid, max int) -> (task_id,
 * status, task); by a right to the queue of the task, only those of its
 * dependents that the caller may see
 */
Datum
tq_list_dependent_tasks(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	TqSlug after = tq_arg_after(fcinfo, 1);
	int max = tq_arg_max(fcinfo, 2);
	TimestampTz now = tq_clock_now();
	MemoryContext scratch;
	MemoryContext outer;
	bool sees_all;
	int page;
	int64 required;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_require_read("list-dependent-tasks", task_id);
	sees_all = tq_access_meets(
		tq_need("queue:list-dependent-tasks:%s", tq_slug_text(task_id)));
	required = tq_task_get(task_id)->task.id;
	page = sees_all ? max : TQ_PAGE_MAX;
	scratch = AllocSetContextCreate(CurrentMemoryContext, "tq dependents",
									ALLOCSET_DEFAULT_SIZES);
	outer = MemoryContextSwitchTo(scratch);
	do
	{
		TqTaskDefinition *tasks = tq_definitions_dependent(required, now,
														   &after, page, &n);
		int left = sees_all ? n : keep_seen(tasks, n, max);

		if (n == page)
			after = tasks[n - 1].named.task.task_id;
		tq_put_entries((ReturnSetInfo *) fcinfo->resultinfo, tasks, left);
		max -= left;
		MemoryContextReset(scratch);
		CHECK_FOR_INTERRUPTS();
	} while (n == page && max > 0);
	MemoryContextSwitchTo(outer);
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
	TqNamedTask *named;
	Jsonb *status;

	tq_call_begin(false);
	named = tq_priority_change(task_id, priority, tq_clock_now());
	status = tq_spi_keep(tq_status_of(named));
	tq_audit_operator(fcinfo);
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
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}
