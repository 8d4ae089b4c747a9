/*
 * callback_api.c
 *	  SQL function that registers a task for the end of a group, and the right to
 *	  take it back.
 */
#include "postgres.h"

#include "api.h"

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
	task->deadline = tq_clock_add_interval(now, tq_arg_interval(fcinfo,
																ARG_DEADLINE,
																"deadline"));
	task->defined_deadline = task->deadline;
	if (PG_ARGISNULL(ARG_TASK_ID))
	{
		tq_slug_random(&task->task_id);
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
