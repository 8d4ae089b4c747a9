/*
 * body_api.c
 *	  What the bodies of functions in src/sql call.
 */
#include "postgres.h"

#include "utils/jsonfuncs.h"

#include "../core/names.h"
#include "../core/state.h"
#include "api.h"

/* ---- recurring tasks (src/sql/cron.sql) ---- */

PG_FUNCTION_INFO_V1(tq_sql_run_as);
PG_FUNCTION_INFO_V1(tq_sql_role_has_scope);
PG_FUNCTION_INFO_V1(tq_sql_fill_fields);
PG_FUNCTION_INFO_V1(tq_sql_in_bucket);
PG_FUNCTION_INFO_V1(tq_sql_is_unresolved);
PG_FUNCTION_INFO_V1(tq_sql_cancel_unresolved);
PG_FUNCTION_INFO_V1(tq_sql_interval_text);
PG_FUNCTION_INFO_V1(tq_sql_json_size);

/* run_as(role oid, statement text) -> tq.slugid, which the statement selects */
Datum
tq_sql_run_as(PG_FUNCTION_ARGS)
{
	char *statement = text_to_cstring(PG_GETARG_TEXT_PP(1));
	TqSlug *result = palloc(sizeof(TqSlug));
	bool isnull;
	Datum value;

	tq_spi_begin_part();
	value = tq_spi_query_as(PG_GETARG_OID(0), statement, &isnull);
	if (!isnull)
		*result = *DatumGetTqSlugP(value);
	tq_spi_end_part();
	if (isnull)
		PG_RETURN_NULL();
	PG_RETURN_TQ_SLUG_P(result);
}

typedef struct ScopeQuestion
{
	const char *scope;
	bool *answer;
} ScopeQuestion;

static void
answer_scope(const void *arg)
{
	const ScopeQuestion *question = arg;

	*question->answer = tq_access_meets(tq_need("%s", question->scope));
}

/* role_has_scope(role oid, scope text) -> bool; the role exists */
Datum
tq_sql_role_has_scope(PG_FUNCTION_ARGS)
{
	bool answer = false;
	ScopeQuestion question = {text_to_cstring(PG_GETARG_TEXT_PP(1)), &answer};

	tq_access_as(PG_GETARG_OID(0), answer_scope, &question);
	PG_RETURN_BOOL(answer);
}

/* ---- payloads (doc/spec/policy.md 15.4) ---- */

/* What the fields of one firing stand for. */
typedef struct Fields
{
	const char *name;
	TimestampTz scheduled;
	TimestampTz previous;
	TimestampTz fired;
} Fields;

/* Returns what a field stands for, or NULL for another text. */
static const char *
value_of(const char *text, const Fields *fields)
{
	if (strcmp(text, "$scheduled") == 0)
		return tq_clock_text(fields->scheduled);
	if (strcmp(text, "$previous") == 0)
		return tq_clock_text(fields->previous);
	if (strcmp(text, "$fired") == 0)
		return tq_clock_text(fields->fired);
	if (strcmp(text, "$name") == 0)
		return fields->name;
	return NULL;
}

/* Replaces a string; one more dollar sign in front of a field is removed. */
static text *
cron_body_replace(void *arg, char *string, int length)
{
	const Fields *fields = arg;
	char *given = pnstrdup(string, length);
	const char *value = value_of(given, fields);

	if (value == NULL && given[0] == '$' &&
		value_of(given + 1, fields) != NULL)
		value = given + 1;
	return cstring_to_text(value == NULL ? given : value);
}

/*
 * fill_fields(payload jsonb, name text, scheduled, previous, fired timestamptz)
 * -> jsonb.  A string that is a field and nothing else is replaced, at any
 * depth; keys stay as they are.
 */
Datum
tq_sql_fill_fields(PG_FUNCTION_ARGS)
{
	Fields fields = {.name = text_to_cstring(PG_GETARG_TEXT_PP(1)),
					 .scheduled = PG_GETARG_TIMESTAMPTZ(2),
					 .previous = PG_GETARG_TIMESTAMPTZ(3),
					 .fired = PG_GETARG_TIMESTAMPTZ(4)};

	PG_RETURN_JSONB_P(transform_jsonb_string_values(PG_GETARG_JSONB_P(0),
													&fields,
													cron_body_replace));
}

/* ---- tasks ---- */

/*
 * in_bucket(task_id tq.slugid, task_group_id text) -> tq.slugid: in the bucket
 * of its group; NULL, or no id of a group: in a bucket of this database
 */
Datum
tq_sql_in_bucket(PG_FUNCTION_ARGS)
{
	TqSlug *id = palloc(sizeof(TqSlug));
	char *given = PG_ARGISNULL(1) ? NULL
								  : text_to_cstring(PG_GETARG_TEXT_PP(1));
	TqSlug group;

	if (PG_ARGISNULL(0))
		elog(ERROR, "a body gives no task");
	*id = *PG_GETARG_TQ_SLUG_P(0);
	tq_spi_begin_part();
	if (given != NULL && tq_slug_parse(given, strlen(given), &group))
		tq_bucket_choose(id, &group);
	else
		tq_bucket_choose(id, NULL);
	tq_spi_end_part();
	PG_RETURN_TQ_SLUG_P(id);
}

/* Returns a task that is not past its deadline; NULL: there is none. */
static TqNamedTask *
present_task(FunctionCallInfo fcinfo, TimestampTz now)
{
	TqNamedTask *named = PG_ARGISNULL(0)
							 ? NULL
							 : tq_task_by_slug(PG_GETARG_TQ_SLUG_P(0));

	return named == NULL || named->task.deadline < now ? NULL : named;
}

/* is_unresolved(task_id tq.slugid) -> bool */
Datum
tq_sql_is_unresolved(PG_FUNCTION_ARGS)
{
	TqNamedTask *named;
	TqRun run;
	bool result;

	tq_spi_begin_part();
	named = present_task(fcinfo, tq_clock_now());
	result = named != NULL && tq_run_peek(named->task.id, &run) &&
			 !tq_state_is_resolved(run.state);
	tq_spi_end_part();
	PG_RETURN_BOOL(result);
}

/* cancel_unresolved(task_id tq.slugid) */
Datum
tq_sql_cancel_unresolved(PG_FUNCTION_ARGS)
{
	TimestampTz now = tq_clock_now();
	TqNamedTask *named;
	TqRun run;

	tq_spi_begin_part();
	named = present_task(fcinfo, now);
	if (named != NULL && tq_run_lock(named->task.id, TQ_LOCK_UPDATE, &run) &&
		!tq_state_is_resolved(run.state))
		tq_task_cancel(&named->task, now);
	tq_spi_end_part();
	PG_RETURN_VOID();
}

/* interval_text(i interval) -> text, whatever the session sets */
Datum
tq_sql_interval_text(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(
		cstring_to_text(tq_clock_interval_text(PG_GETARG_INTERVAL_P(0))));
}

/* json_size(value jsonb) -> bigint */
Datum
tq_sql_json_size(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) tq_json_size(&PG_GETARG_JSONB_P(0)->root, true));
}

/*
 * ---- workers (src/sql/workers.sql) ----
 *
 * Numbers of queues and workers are interned, and cached by each session; what a
 * worker did since its row was written is in shared memory.
 */

PG_FUNCTION_INFO_V1(tq_sql_worker_activity);
PG_FUNCTION_INFO_V1(tq_sql_intern_queue);
PG_FUNCTION_INFO_V1(tq_sql_intern_worker);
PG_FUNCTION_INFO_V1(tq_sql_check_quota);
PG_FUNCTION_INFO_V1(tq_sql_queue_changed);
PG_FUNCTION_INFO_V1(tq_sql_workers_changed);
PG_FUNCTION_INFO_V1(tq_sql_remove_workers);

/* worker_activity(worker int) -> (seen, tasks, runs) */
Datum
tq_sql_worker_activity(PG_FUNCTION_ARGS)
{
	TqWorkerActivity activity;
	TupleDesc desc;
	Datum values[3];
	bool nulls[3] = {false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "worker_activity() returns a row");
	tq_worker_activity(PG_GETARG_INT32(0), &activity);
	tq_set_time(values, nulls, 0, activity.seen);
	tq_worker_claims(&activity, &values[1], &values[2]);
	PG_RETURN_DATUM(HeapTupleGetDatum(
		heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/* intern_queue(task_queue_id text) -> int */
Datum
tq_sql_intern_queue(PG_FUNCTION_ARGS)
{
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int32 queue;

	tq_spi_begin_part();
	queue = tq_queue_intern(name);
	tq_spi_end_part();
	PG_RETURN_INT32(queue);
}

/* intern_worker(queue int, worker_group text, worker_id text) -> int */
Datum
tq_sql_intern_worker(PG_FUNCTION_ARGS)
{
	char *group = text_to_cstring(PG_GETARG_TEXT_PP(1));
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(2));
	TqWorkerSeat seat;

	tq_spi_begin_part();
	tq_worker_seat_intern(PG_GETARG_INT32(0), group, name, &seat);
	tq_spi_end_part();
	PG_RETURN_INT32(seat.id);
}

/* check_quota(setting text): after a row was added */
Datum
tq_sql_check_quota(PG_FUNCTION_ARGS)
{
	char *setting = text_to_cstring(PG_GETARG_TEXT_PP(0));

	tq_spi_begin_part();
	tq_quota_check(setting);
	tq_spi_end_part();
	PG_RETURN_VOID();
}

/* queue_changed(queue int): after an update of its row */
Datum
tq_sql_queue_changed(PG_FUNCTION_ARGS)
{
	tq_queue_changed(PG_GETARG_INT32(0));
	PG_RETURN_VOID();
}

/* workers_changed(): after an update of rows of workers */
Datum
tq_sql_workers_changed(PG_FUNCTION_ARGS)
{
	tq_workers_changed();
	PG_RETURN_VOID();
}

/* remove_workers(workers int[], error jsonb) -> (task_id, run_id, outcome) */
Datum
tq_sql_remove_workers(PG_FUNCTION_ARGS)
{
	Jsonb *error = PG_ARGISNULL(1) ? NULL : PG_GETARG_JSONB_P(1);
	TqReport *reports;
	int n;

	if (PG_ARGISNULL(0))
		elog(ERROR, "a body gives no workers");
	InitMaterializedSRF(fcinfo, 0);
	tq_spi_begin_part();
	reports = tq_workers_remove(PG_GETARG_ARRAYTYPE_P(0), error,
								tq_clock_now(), &n);
	for (int i = 0; i < n; i++)
		tq_put_outcome((ReturnSetInfo *) fcinfo->resultinfo, &reports[i]);
	tq_spi_end_part();
	return (Datum) 0;
}

/* ---- presets (src/sql/presets.sql), and a predicate of task_overview ---- */

PG_FUNCTION_INFO_V1(tq_sql_json_shown);
PG_FUNCTION_INFO_V1(tq_sql_policy_fault);
PG_FUNCTION_INFO_V1(tq_sql_last_run);
PG_FUNCTION_INFO_V1(tq_is_tolerated_sql);

/* json_shown(value jsonb) -> text: as an error shows it */
Datum
tq_sql_json_shown(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(
		cstring_to_text(tq_json_clip(&PG_GETARG_JSONB_P(0)->root)));
}

/* policy_fault(policy jsonb) -> text; NULL: a task may have it */
Datum
tq_sql_policy_fault(PG_FUNCTION_ARGS)
{
	TqGivenPolicy given;
	const char *fault = tq_policy_parse(PG_GETARG_JSONB_P(0), &given);

	if (fault == NULL)
		fault = tq_policy_fault(&given.policy, given.retries, tq_max_runs);
	if (fault == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(fault));
}

/* Returns the last run of a task, or the location of an unscheduled one. */
static TqRun
read_last_run(const TqTask *task)
{
	TqRun run;

	if (!tq_run_peek(task->id, &run))
		tq_error_missing_task(&task->task_id);
	return run;
}

/*
 * last_run(task_id tq.slugid) -> (state, reason, is_delayed, is_forgiven), of a
 * task that the caller may read
 */
Datum
tq_sql_last_run(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	const TqPolicy *policy;
	const TqTask *task;
	TupleDesc desc;
	TqRun run;
	Datum values[4];
	bool nulls[4] = {false};
	MemoryContext outer = CurrentMemoryContext;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "last_run() returns a row");
	tq_spi_begin_part();
	tq_require_read("status", task_id);
	task = &tq_task_get(task_id)->task;
	run = read_last_run(task);
	policy = tq_policy_get(task->policy);
	MemoryContextSwitchTo(outer);
	values[0] = CStringGetTextDatum(tq_state_name(run.state));
	nulls[1] = run.reason == TQ_RESOLVED_NONE;
	values[1] = nulls[1] ? (Datum) 0
						 : CStringGetTextDatum(tq_resolved_name(run.reason));
	values[2] = BoolGetDatum(run.location == TQ_LOCATION_DELAYED);
	values[3] = BoolGetDatum(policy->on_unsuccessful ==
								 TQ_UNSUCCESSFUL_FORGIVE &&
							 tq_policy_tolerates(policy, run.reason));
	tq_spi_end_part();
	PG_RETURN_DATUM(HeapTupleGetDatum(
		heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * is_tolerated(policy jsonb, reason int) -> bool; false if one is NULL
 * (doc/spec/policy.md 10.7)
 */
Datum
tq_is_tolerated_sql(PG_FUNCTION_ARGS)
{
	TqGivenPolicy given;
	const char *fault;
	int reason;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_BOOL(false);
	fault = tq_policy_parse_stored(PG_GETARG_JSONB_P(0), &given);
	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("invalid policy"),
				 errdetail("The policy %s.", fault),
				 errhint("Give the policy of a task.")));
	reason = PG_GETARG_INT32(1);
	PG_RETURN_BOOL(reason > TQ_RESOLVED_NONE && reason <= TQ_RESOLVED_LAST &&
				   tq_policy_tolerates(&given.policy, (TqResolved) reason));
}
