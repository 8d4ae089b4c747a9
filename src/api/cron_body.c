/*
 * cron_body.c
 *	  What the bodies of functions of recurring tasks call (src/sql/cron.sql).
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/jsonfuncs.h"

#include "../core/state.h"
#include "../lifecycle/lifecycle.h"

PG_FUNCTION_INFO_V1(tq_sql_run_as);
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
	PG_RETURN_INT64((int64) tq_json_size(&PG_GETARG_JSONB_P(0)->root));
}
