/*
 * group_api.c
 *	  SQL functions on task groups (doc/spec/taskcluster.md 2.6, 2.7, 2.13).
 *
 * Raises TQ404 for a group that does not exist, and TQ409 for one that is not
 * sealed where it must be.
 */
#include "postgres.h"

#include "access/htup_details.h"

#include "../core/names.h"
#include "../core/state.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_get_task_group);
PG_FUNCTION_INFO_V1(tq_list_task_group);
PG_FUNCTION_INFO_V1(tq_seal_task_group);
PG_FUNCTION_INFO_V1(tq_cancel_task_group);
PG_FUNCTION_INFO_V1(tq_retry_task_group);
PG_FUNCTION_INFO_V1(tq_group_progress);
PG_FUNCTION_INFO_V1(tq_group_progress_shown);
PG_FUNCTION_INFO_V1(tq_sql_group_to_list);
PG_FUNCTION_INFO_V1(tq_sql_group_to_name);
PG_FUNCTION_INFO_V1(tq_sql_group_outcome);

/*
 * get_task_group(task_group_id slugid) -> {taskGroupId, schedulerId, expires,
 * sealed?}
 */
Datum
tq_get_task_group(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	TqGroup group;
	Jsonb *result;

	tq_call_begin(true);
	tq_require_group_list(slug);
	tq_group_get(slug, &group);
	result = tq_spi_keep(tq_group_json(&group));
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}

/*
 * list_task_group(task_group_id slugid, after slugid, max int) -> (task_id,
 * status, task)
 */
Datum
tq_list_task_group(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	TqSlug after = tq_arg_after(fcinfo, 1);
	int max = tq_arg_max(fcinfo, 2);
	TqGroup group;
	TqTaskDefinition *tasks;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_require_group_list(slug);
	tq_group_get(slug, &group);
	tasks = tq_definitions_of_group(group.id, slug, &after, max, &n);
	tq_put_entries((ReturnSetInfo *) fcinfo->resultinfo, tasks, n);
	tq_call_end();
	return (Datum) 0;
}

/* seal_task_group(task_group_id slugid) -> as get_task_group */
Datum
tq_seal_task_group(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	TqGroup group;
	Jsonb *result;

	tq_call_begin(false);
	tq_group_seal(slug, &group);
	result = tq_spi_keep(tq_group_json(&group));
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}

/*
 * cancel_task_group(task_group_id slugid) -> {taskGroupId, taskGroupSize,
 * cancelledCount, taskIds}
 */
Datum
tq_cancel_task_group(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	Jsonb *result;

	tq_call_begin(false);
	result = tq_spi_keep(tq_group_cancel(slug, tq_clock_now()));
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}

/* Reasons for which retry_task_group() reruns a task unless it is given others. */
static const TqResolved default_reasons[] = {TQ_RESOLVED_FAILED,
											 TQ_RESOLVED_FAILED_TERMINAL,
											 TQ_RESOLVED_DEADLINE_EXCEEDED,
											 TQ_RESOLVED_CLAIM_EXPIRED,
											 TQ_RESOLVED_WORKER_SHUTDOWN,
											 TQ_RESOLVED_MALFORMED_PAYLOAD,
											 TQ_RESOLVED_RESOURCE_UNAVAILABLE,
											 TQ_RESOLVED_INTERNAL_ERROR,
											 TQ_RESOLVED_INTERMITTENT_TASK,
											 TQ_RESOLVED_PENDING_TIMEOUT,
											 TQ_RESOLVED_RUN_TIMEOUT};

/*
 * Adds the reasons of that name to a list, and returns their number; raises
 * TQ400 if there is none.
 */
static int
add_reasons(const char *name, TqResolved *reasons)
{
	int n = 0;

	for (int i = TQ_RESOLVED_NONE + 1; i <= TQ_RESOLVED_LAST; i++)
	{
		TqResolved reason = (TqResolved) i;

		if (tq_resolved_state(reason) != TQ_STATE_COMPLETED &&
			strcmp(name, tq_resolved_name(reason)) == 0)
			reasons[n++] = reason;
	}
	if (n > 0)
		return n;
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("invalid element of reasons"),
		 errdetail("\"%s\" is not the reason of an unsuccessful end.",
				   tq_error_clip(name)),
		 errhint(
			 "Give values of reasonResolved, such as failed or canceled.")));
}

/* Reads the argument "reasons" of retry_task_group(). */
static const TqResolved *
group_read_reasons(FunctionCallInfo fcinfo, int arg, int *n)
{
	TqResolved *reasons;
	char **names;
	int count;

	*n = lengthof(default_reasons);
	if (PG_ARGISNULL(arg))
		return default_reasons;
	names = tq_texts_of_array(PG_GETARG_ARRAYTYPE_P(arg), &count);
	reasons = palloc(sizeof(TqResolved) * (count + TQ_RESOLVED_LAST + 1) * 2);
	*n = 0;
	for (int i = 0; i < count; i++)
	{
		if (names[i] == NULL)
			tq_error_null_element("reasons", i);
		*n += add_reasons(names[i], reasons + *n);
	}
	return reasons;
}

/*
 * retry_task_group(task_group_id slugid, deadline interval from now, reasons
 * text[], downstream bool) -> number of tasks that run again, or wait again
 * (2.20)
 */
Datum
tq_retry_task_group(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	TqRepairHow how = tq_arg_repair(fcinfo, 1, 3);
	const TqResolved *reasons;
	int nreasons;
	int64 count;

	tq_call_begin(false);
	reasons = group_read_reasons(fcinfo, 2, &nreasons);
	count = tq_repair_group(slug, &how, reasons, nreasons, tq_clock_now());
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_INT64(count);
}

/* The columns of tq.progress. */
enum
{
	COLUMN_TASKS,
	COLUMN_UNSCHEDULED,
	COLUMN_DELAYED,
	COLUMN_PENDING,
	COLUMN_RUNNING,
	COLUMN_COMPLETED,
	COLUMN_FAILED,
	COLUMN_EXCEPTION,
	COLUMN_TOLERATED,
	COLUMN_OUTCOME,
	COLUMN_FIRST_CREATED,
	COLUMN_LAST_RESOLVED,
	COLUMN_DONE,
	COLUMN_BLOCKED,
	COLUMN_BLOCKED_BY,
	COLUMNS
};

/*
 * Returns the share of a group that is done: its resolved tasks, and what the
 * workers of running ones have reported.
 */
static double
share_done(const TqGroup *group, const TqProgress *progress)
{
	double done = 0;
	double tasks = progress->delayed;

	for (int state = 0; state < TQ_STATES; state++)
	{
		tasks += progress->count[state];
		if (tq_state_is_resolved((TqState) state))
			done += progress->count[state];
	}
	if (progress->count[TQ_STATE_RUNNING] > 0)
		done += tq_progress_of_own(group) +
				(progress->reported > 0 ? tq_progress_of_group(group, tasks)
										: 0);
	return tasks > 0 ? Min(done / tasks, 1) : 0;
}

/* Fills in a row of tq.progress. */
static void
fill_progress(const TqProgress *progress, Datum *values, bool *nulls)
{
	const char *outcome = tq_group_outcome(progress);
	int64 tasks = progress->delayed;

	for (int state = 0; state < TQ_STATES; state++)
		tasks += progress->count[state];
	values[COLUMN_TASKS] = Int64GetDatum(tasks);
	values[COLUMN_UNSCHEDULED] = Int64GetDatum(
		progress->count[TQ_STATE_UNSCHEDULED]);
	values[COLUMN_DELAYED] = Int64GetDatum(progress->delayed);
	values[COLUMN_PENDING] = Int64GetDatum(progress->count[TQ_STATE_PENDING]);
	values[COLUMN_RUNNING] = Int64GetDatum(progress->count[TQ_STATE_RUNNING]);
	values[COLUMN_COMPLETED] = Int64GetDatum(
		progress->count[TQ_STATE_COMPLETED]);
	values[COLUMN_FAILED] = Int64GetDatum(progress->count[TQ_STATE_FAILED]);
	values[COLUMN_EXCEPTION] = Int64GetDatum(
		progress->count[TQ_STATE_EXCEPTION]);
	values[COLUMN_TOLERATED] = Int64GetDatum(progress->tolerated);
	nulls[COLUMN_OUTCOME] = outcome == NULL;
	if (outcome != NULL)
		values[COLUMN_OUTCOME] = CStringGetTextDatum(outcome);
	tq_set_time(values, nulls, COLUMN_FIRST_CREATED, progress->first_created);
	tq_set_time(values, nulls, COLUMN_LAST_RESOLVED, progress->last_resolved);
}

/* Fills in whether a group is blocked; what has unresolved tasks that run is not. */
static void
fill_block(const TqGroup *group, const TqProgress *progress, Datum *values,
		   bool *nulls)
{
	TqBlock block = {.is_known = true};

	if (tq_group_only_waits(progress))
		tq_group_block(group, &block);
	nulls[COLUMN_BLOCKED] = !block.is_known;
	values[COLUMN_BLOCKED] = BoolGetDatum(block.blocked);
	nulls[COLUMN_BLOCKED_BY] = block.by == NULL;
	if (block.by != NULL)
		values[COLUMN_BLOCKED_BY] = PointerGetDatum(tq_spi_keep(block.by));
}

static Datum
group_progress(FunctionCallInfo fcinfo, bool is_checked)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	TupleDesc desc;
	TqGroup group;
	TqProgress progress;
	Datum values[COLUMNS] = {0};
	bool nulls[COLUMNS] = {false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	tq_call_begin(true);
	if (is_checked)
		tq_require_group_list(slug);
	tq_group_get(slug, &group);
	tq_group_count(&group, &progress);
	/* A view has many groups. */
	nulls[COLUMN_DONE] = nulls[COLUMN_BLOCKED] = nulls[COLUMN_BLOCKED_BY] =
		!is_checked;
	if (is_checked)
	{
		values[COLUMN_DONE] = Float8GetDatum(share_done(&group, &progress));
		fill_block(&group, &progress, values, nulls);
	}
	tq_call_end();
	fill_progress(&progress, values, nulls);
	PG_RETURN_DATUM(HeapTupleGetDatum(
		heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/* group_progress(task_group_id slugid) -> tq.progress */
Datum
tq_group_progress(PG_FUNCTION_ARGS)
{
	return group_progress(fcinfo, true);
}

/* group_progress() of schema tq_internal, for a view: checks no scope */
Datum
tq_group_progress_shown(PG_FUNCTION_ARGS)
{
	return group_progress(fcinfo, false);
}

/* ---- what bodies call ---- */

/*
 * group_to_list(task_group_id slugid) -> bigint: the number of a group that the
 * caller may list, 0 if it has no row
 */
Datum
tq_sql_group_to_list(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	TqGroup group;

	tq_spi_begin_part();
	tq_require_group_list(slug);
	tq_group_get(slug, &group);
	tq_spi_end_part();
	PG_RETURN_INT64(group.id);
}

/*
 * group_to_name(task_group_id slugid) -> bigint: the number of a group that the
 * caller may seal, and so name; it has a row then
 */
Datum
tq_sql_group_to_name(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, 0, "task_group_id");
	int64 number;

	tq_spi_begin_part();
	number = tq_group_to_name(slug);
	tq_spi_end_part();
	PG_RETURN_INT64(number);
}

/* group_outcome(task_group_id slugid) -> text, NULL while tasks are unresolved */
Datum
tq_sql_group_outcome(PG_FUNCTION_ARGS)
{
	TqGroup group;
	TqProgress progress;
	const char *outcome;

	tq_spi_begin_part();
	tq_group_get(PG_GETARG_TQ_SLUG_P(0), &group);
	tq_group_count(&group, &progress);
	outcome = tq_group_outcome(&progress);
	tq_spi_end_part();
	if (outcome == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(outcome));
}

/* ---- callbacks: a task for the end of a group, and the right to take it back ---- */

PG_FUNCTION_INFO_V1(tq_on_group_resolved);
PG_FUNCTION_INFO_V1(tq_sql_require_cancel);

enum
{
	ARG_GROUP,
	ARG_QUEUE,
	ARG_PAYLOAD,
	ARG_TASK_ID,
	ARG_PRIORITY,
	ARG_RETRY,
	ARG_DEADLINE,
	ARG_TAGS,
	ARG_NAME,
	ARG_POLICY
};

/* Reads what definition.c has to check. */
static TqEnqueue
callback_read_checked(FunctionCallInfo fcinfo, Jsonb *empty)
{
	ArrayType *none = construct_empty_array(TEXTOID);

	return (
		TqEnqueue){.requires = "all-completed",
				   .priority = tq_arg_text(fcinfo, ARG_PRIORITY, "priority"),
				   .retries = TQ_OFF,
				   .retry = PG_ARGISNULL(ARG_RETRY)
								? TQ_OFF
								: tq_arg_int(fcinfo, ARG_RETRY, "retry", 0,
											 TQ_RETRIES_MAX),
				   .routes = none,
				   .scopes = none,
				   .tags = tq_arg_jsonb(fcinfo, ARG_TAGS, "tags"),
				   .extra = empty,
				   .name = PG_ARGISNULL(ARG_NAME)
							   ? NULL
							   : text_to_cstring(PG_GETARG_TEXT_PP(ARG_NAME)),
				   .policy = PG_ARGISNULL(ARG_POLICY)
								 ? NULL
								 : PG_GETARG_JSONB_P(ARG_POLICY)};
}

/*
 * Reads the definition of the task for the end of a group, as if it were
 * created now.  An id that is made for it is in the bucket of that group.
 */
static void
callback_read_definition(FunctionCallInfo fcinfo, const TqSlug *group,
						 TqTaskDefinition *definition, TimestampTz now)
{
	TqTask *task = &definition->named.task;
	Jsonb *empty = DatumGetJsonbP(
		DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));
	TqFaults faults = {.of_arguments = true};
	TqEnqueue checked;

	*definition = (TqTaskDefinition){
		.named = {.queue_name = tq_arg_task_queue_id(fcinfo, ARG_QUEUE),
				  .scheduler_id = pstrdup("-"),
				  .project_id = pstrdup("none")}};
	task->created = now;
	task->deadline = tq_arg_deadline(fcinfo, ARG_DEADLINE, now);
	task->defined_deadline = task->deadline;
	if (PG_ARGISNULL(ARG_TASK_ID))
	{
		tq_slug_new(&task->task_id);
		tq_bucket_choose(&task->task_id, group);
	}
	else
		task->task_id = *PG_GETARG_TQ_SLUG_P(ARG_TASK_ID);
	definition->named.group_slug = task->task_id;
	definition->payload = tq_arg_jsonb(fcinfo, ARG_PAYLOAD, "payload");
	checked = callback_read_checked(fcinfo, empty);
	tq_definition_fill(&faults, definition, &checked);
	tq_definition_check_whole(&faults, definition);
	if (faults.n == 0)
		tq_check_times(&faults, definition, now);
	tq_faults_raise(&faults);
	tq_group_callback_check(definition->payload);
}

/*
 * on_group_resolved(task_group_id slugid, task_queue_id text, payload jsonb,
 * task_id slugid or NULL, ...) -> task_id of the task that is created once no
 * task of the group is unresolved; TQ404 if there is no such group
 * (doc/spec/policy.md 14)
 */
Datum
tq_on_group_resolved(PG_FUNCTION_ARGS)
{
	const TqSlug *slug = tq_arg_slug(fcinfo, ARG_GROUP, "task_group_id");
	TimestampTz now = tq_clock_now();
	TqSlug *result = palloc(sizeof(TqSlug));
	TqTaskDefinition definition;
	TqActRun act = {.run_id = TQ_NO_RUN};
	TqGroup group;

	tq_call_begin(false);
	callback_read_definition(fcinfo, slug, &definition, now);
	tq_group_callback_require(slug, &definition);
	tq_group_get(slug, &group);
	tq_group_callback_add(slug, &definition, now);
	*result = definition.named.task.task_id;
	act.task_id = *result;
	if (tq_audit_wants_clients())
		tq_audit_call_runs(fcinfo, &act, 1);
	tq_call_end();
	PG_RETURN_TQ_SLUG_P(result);
}

/*
 * require_cancel(role regrole, task_id tq.slugid, definition jsonb): the right
 * to take back a callback
 */
Datum
tq_sql_require_cancel(PG_FUNCTION_ARGS)
{
	TqCallback callback = {.role = PG_GETARG_OID(0),
						   .task_id = *PG_GETARG_TQ_SLUG_P(1),
						   .definition = PG_GETARG_JSONB_P(2)};

	tq_spi_begin_part();
	tq_group_callback_require_cancel(&callback);
	tq_spi_end_part();
	PG_RETURN_VOID();
}
