/*
 * cron_api.c
 *	  SQL functions of recurring tasks (doc/spec/policy.md 15).
 *
 * A recurring task has the arguments of a call of enqueue(), by name, and each
 * firing makes that call, with the rights of the owner.  So a further argument of
 * enqueue() is one more in the declaration of schedule_cron(), and nothing here.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "../engine/engine.h"
#include "../storage/registry.h"
#include "../util/util.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_schedule_cron);
PG_FUNCTION_INFO_V1(tq_unschedule_cron);
PG_FUNCTION_INFO_V1(tq_pause_cron);
PG_FUNCTION_INFO_V1(tq_resume_cron);
PG_FUNCTION_INFO_V1(tq_run_cron_now);
PG_FUNCTION_INFO_V1(tq_fire_cron);
PG_FUNCTION_INFO_V1(tq_install_cron_upkeep);
PG_FUNCTION_INFO_V1(tq_cron_jobs);
PG_FUNCTION_INFO_V1(tq_cron_time_zone);

/* The first arguments of schedule_cron(); overlap is found by its name. */
enum
{
	ARG_NAME,
	ARG_SCHEDULE,
	ARG_QUEUE,
	ARG_PAYLOAD,
	ARG_OPTIONS
};

/* ---- the call of enqueue() ---- */

/* A task to create: that of a firing, or one to see whether it can be. */
typedef struct Creation
{
	const TqCron *cron;
	Jsonb *payload;
	const TqSlug *task_id; /* NULL: a random one */
	TqSlug created;
} Creation;

static void
add_argument(StringInfo sql, const char *name, const char *value)
{
	appendStringInfo(sql, ", %s => %s", quote_identifier(name),
					 quote_literal_cstr(value));
}

/* Returns an option as the text of an SQL value. */
static char *
option_text(const JsonbValue *value)
{
	if (value->type == jbvString)
		return tq_json_string_of(value);
	return JsonbToCString(NULL, value->val.binary.data, value->val.binary.len);
}

/* Returns the call: enqueue() is not overloaded, so literals have no type. */
static char *
build_call(const Creation *creation)
{
	const TqCron *cron = creation->cron;
	TqJsonIterator it = tq_json_iterate(&cron->options->root);
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT tq.enqueue(task_queue_id => %s",
					 quote_literal_cstr(cron->task_queue_id));
	add_argument(&sql, "payload",
				 JsonbToCString(NULL, &creation->payload->root,
								VARSIZE(creation->payload)));
	add_argument(&sql, "name", cron->name);
	if (creation->task_id != NULL)
		add_argument(&sql, "task_id", tq_slug_text(creation->task_id));
	while (tq_json_next(&it))
		add_argument(&sql, tq_json_string_of(&it.key), option_text(&it.value));
	appendStringInfoChar(&sql, ')');
	return sql.data;
}

/* Creates the task, with the rights of the owner of the recurring task. */
static void
create(void *arg)
{
	Creation *creation = (Creation *) arg;
	bool isnull;
	Datum created = tq_spi_query_as(creation->cron->role, build_call(creation),
									&isnull);

	creation->created = *DatumGetTqSlugP(created);
	tq_spi_free_result();
}

/* ---- definitions ---- */

/* The declaration of the function that is called. */
typedef struct Declaration
{
	char **names; /* of its arguments */
	Oid *types;
} Declaration;

static Declaration
read_declaration(FunctionCallInfo fcinfo)
{
	HeapTuple tuple =
		SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
	Declaration declaration;
	char *modes;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u",
			 fcinfo->flinfo->fn_oid);
	(void) get_func_arg_info(tuple, &declaration.types, &declaration.names,
							 &modes);
	ReleaseSysCache(tuple);
	return declaration;
}

/* Returns the text of an argument, which does not depend on the session. */
static char *
argument_text(Oid type, Datum value)
{
	Oid output;
	bool is_varlena;

	if (type == INTERVALOID)
		return tq_clock_interval_text(DatumGetIntervalP(value));
	getTypeOutputInfo(type, &output, &is_varlena);
	return OidOutputFunctionCall(output, value);
}

/* Reads the arguments that are passed on to enqueue(); NULL: its default. */
static Jsonb *
read_options(FunctionCallInfo fcinfo, const Declaration *declaration)
{
	JsonbParseState *state = tq_json_begin();

	for (int i = ARG_OPTIONS; i < PG_NARGS(); i++)
	{
		const char *name = declaration->names[i];
		Oid type = declaration->types[i];

		if (PG_ARGISNULL(i) || strcmp(name, "overlap") == 0)
			continue;
		if (type == JSONBOID && !JB_ROOT_IS_SCALAR(PG_GETARG_JSONB_P(i)))
			tq_json_add_object(&state, name, PG_GETARG_JSONB_P(i));
		else
			tq_json_add_text(&state, name,
							 argument_text(type, PG_GETARG_DATUM(i)));
	}
	return tq_json_end(&state);
}

/*
 * Raises TQ400 if an argument is too large as text, in which it is passed on to
 * enqueue(), which checks its parts.
 */
static void
check_size(const char *name, const Jsonb *value, int limit,
		   const char *setting)
{
	Size size = tq_json_size_over(&value->root, limit);

	if (size > 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("invalid %s", name),
			 errdetail("%s has %zu bytes, and may have %d (%s).", name, size,
					   limit, setting),
			 errhint(
				 "Store large data elsewhere, and put its location into the task.")));
}

/* Reads a definition; the caller is its owner. */
static TqCron
read_definition(FunctionCallInfo fcinfo, TimestampTz now)
{
	Declaration declaration = read_declaration(fcinfo);
	TqCron cron = {.name = tq_arg_text(fcinfo, ARG_NAME, "name"),
				   .role = tq_spi_caller(),
				   .schedule = tq_arg_text(fcinfo, ARG_SCHEDULE, "schedule"),
				   .task_queue_id = tq_arg_task_queue_id(fcinfo, ARG_QUEUE),
				   .payload = tq_arg_jsonb(fcinfo, ARG_PAYLOAD, "payload"),
				   .options = read_options(fcinfo, &declaration),
				   .created = now};

	for (int i = ARG_OPTIONS; i < PG_NARGS(); i++)
	{
		if (strcmp(declaration.names[i], "overlap") == 0)
			cron.overlap = tq_arg_text(fcinfo, i, "overlap");
	}
	check_size("payload", cron.payload, tq_max_payload, "tq.max_payload");
	check_size("task", cron.options, tq_max_definition, "tq.max_definition");
	tq_slug_random(&cron.id);
	return cron;
}

/* Returns a row of tq.cron_entry. */
static void
put_entry(FunctionCallInfo fcinfo, const TqCron *cron, const TqCronJob *job)
{
	Datum values[] = {CStringGetTextDatum(cron->name),
					  CStringGetTextDatum(cron->schedule),
					  BoolGetDatum(job->is_active),
					  CStringGetTextDatum(tq_error_role(cron->role)),
					  Int64GetDatum(job->id),
					  (Datum) 0};
	bool nulls[] = {false, false,        false,
					false, job->id == 0, job->command == NULL};

	if (job->command != NULL)
		values[5] = CStringGetTextDatum(job->command);
	tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
}

/*
 * schedule_cron(name text, schedule text, task_queue_id text, payload jsonb,
 * ... arguments of enqueue() ..., overlap text) -> a tq.cron_entry.  A task is
 * created and undone, so that what enqueue() refuses is refused now.
 */
Datum
tq_schedule_cron(PG_FUNCTION_ARGS)
{
	TqCron cron;
	TqCronJob job;
	Creation trial;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(false);
	cron = read_definition(fcinfo, tq_clock_now());
	tq_cron_check(&cron);
	tq_pg_cron_require();
	trial = (Creation){.cron = &cron, .payload = tq_cron_first_payload(&cron)};
	tq_rehearse(create, &trial);
	job = tq_cron_schedule(&cron);
	put_entry(fcinfo, &cron, &job);
	tq_audit_operator(fcinfo);
	tq_call_end();
	return (Datum) 0;
}

/* unschedule_cron(name text) -> a tq.cron_entry; its tasks stay */
Datum
tq_unschedule_cron(PG_FUNCTION_ARGS)
{
	char *name = tq_arg_text(fcinfo, 0, "name");
	TqCron cron;
	TqCronJob job;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(false);
	job = tq_cron_unschedule(name, &cron);
	put_entry(fcinfo, &cron, &job);
	tq_audit_operator(fcinfo);
	tq_call_end();
	return (Datum) 0;
}

static Datum
pause_or_resume(FunctionCallInfo fcinfo, bool pause)
{
	char *name = tq_arg_text(fcinfo, 0, "name");
	TqCron cron;
	TqCronJob job;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(false);
	job = tq_cron_pause(name, pause, &cron);
	put_entry(fcinfo, &cron, &job);
	tq_audit_operator(fcinfo);
	tq_call_end();
	return (Datum) 0;
}

/* pause_cron(name text) -> a tq.cron_entry */
Datum
tq_pause_cron(PG_FUNCTION_ARGS)
{
	return pause_or_resume(fcinfo, true);
}

/* resume_cron(name text) -> a tq.cron_entry; makes the job of pg_cron again */
Datum
tq_resume_cron(PG_FUNCTION_ARGS)
{
	return pause_or_resume(fcinfo, false);
}

/* ---- firings ---- */

/* Fires, and returns the task of the firing in *task_id if there is one. */
static bool
fire(const char *name, TqCronCause cause, TimestampTz scheduled,
	 TqSlug *task_id)
{
	TqCronFiring firing = tq_cron_begin_firing(name, cause, scheduled,
											   tq_clock_now());

	if (firing.verdict == TQ_CRON_CREATE)
	{
		Creation creation = {.cron = &firing.cron,
							 .payload = firing.payload,
							 .task_id = &firing.task_id};

		create(&creation);
		tq_cron_end_firing(&firing, &creation.created);
	}
	*task_id = firing.task_id;
	return firing.has_task;
}

/*
 * run_cron_now(name text) -> task_id: apart from the schedule, and even if it is
 * paused; NULL if overlap is skip and the last task is unresolved.
 */
Datum
tq_run_cron_now(PG_FUNCTION_ARGS)
{
	char *name = tq_arg_text(fcinfo, 0, "name");
	TqSlug *task_id = palloc(sizeof(TqSlug));
	bool has_task;

	tq_call_begin(false);
	has_task = fire(name, TQ_CRON_BY_HAND, tq_clock_now(), task_id);
	if (has_task && tq_audit != TQ_AUDIT_OFF)
		tq_audit_call_runs(fcinfo,
						   &(TqActRun){.task_id = *task_id,
									   .run_id = TQ_NO_RUN},
						   1);
	tq_call_end();
	if (!has_task)
		PG_RETURN_NULL();
	PG_RETURN_TQ_SLUG_P(task_id);
}

/*
 * fire_cron(name text, scheduled timestamptz) -> task_id: what pg_cron calls.
 * Creates the task of that minute, or second, once; NULL for scheduled: of now.
 * Returns NULL if there is none.
 */
Datum
tq_fire_cron(PG_FUNCTION_ARGS)
{
	char *name = tq_arg_text(fcinfo, 0, "name");
	bool is_now = PG_ARGISNULL(1);
	TqSlug *task_id = palloc(sizeof(TqSlug));
	bool has_task;

	tq_call_begin(false);
	has_task = fire(name, is_now ? TQ_CRON_CLOCK : TQ_CRON_BACKFILL,
					is_now ? tq_clock_now() : PG_GETARG_TIMESTAMPTZ(1),
					task_id);
	tq_call_end();
	if (!has_task)
		PG_RETURN_NULL();
	PG_RETURN_TQ_SLUG_P(task_id);
}

/* ---- upkeep without a maintenance worker ---- */

/*
 * CALL install_cron_upkeep(schedule text): a job of pg_cron calls upkeep() as
 * the caller; NULL: each second, or each minute before pg_cron 1.5.
 */
Datum
tq_install_cron_upkeep(PG_FUNCTION_ARGS)
{
	TqJob job = {.name = "tq upkeep",
				 .schedule = PG_ARGISNULL(0)
								 ? NULL
								 : tq_arg_text(fcinfo, 0, "schedule"),
				 .command = "SELECT tq.upkeep()",
				 .is_active = true};

	tq_call_begin(false);
	tq_access_require(tq_need("queue:upkeep"));
	tq_pg_cron_require();
	job.role = tq_error_role(tq_spi_caller());
	if (job.schedule == NULL)
		job.schedule = tq_pg_cron_is_here() && tq_pg_cron_has_seconds()
						   ? "1 second"
						   : "* * * * *";
	if (tq_pg_cron_is_here())
		(void) tq_pg_cron_schedule(&job);
	else
		tq_pg_cron_note_elsewhere(tq_pg_cron_schedule_command(&job));
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_VOID();
}

/* ---- for the view ---- */

static Datum
text_or_null(const char *text, bool *isnull)
{
	*isnull = text == NULL;
	return text == NULL ? (Datum) 0 : CStringGetTextDatum(text);
}

/*
 * cron_jobs() -> (name, role, job_id, active, status, message, started,
 * finished): the jobs of recurring tasks, and the end of their logs; none where
 * pg_cron is not in this database.
 */
Datum
tq_cron_jobs(PG_FUNCTION_ARGS)
{
	TqJobState *jobs = NULL;
	int n = 0;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	if (tq_pg_cron_is_here())
		jobs = tq_pg_cron_jobs("tq:%", &n);
	for (int i = 0; i < n; i++)
	{
		bool nulls[8] = {false};
		Datum values[8] = {CStringGetTextDatum(jobs[i].name + strlen("tq:")),
						   CStringGetTextDatum(jobs[i].role),
						   Int64GetDatum(jobs[i].id),
						   BoolGetDatum(jobs[i].is_active),
						   text_or_null(jobs[i].status, &nulls[4]),
						   text_or_null(jobs[i].message, &nulls[5])};

		tq_set_time(values, nulls, 6, jobs[i].started);
		tq_set_time(values, nulls, 7, jobs[i].finished);
		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
	}
	tq_call_end();
	return (Datum) 0;
}

/* cron_time_zone() -> the time zone of schedules; NULL without pg_cron */
Datum
tq_cron_time_zone(PG_FUNCTION_ARGS)
{
	const char *zone = tq_pg_cron_time_zone();

	if (zone == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(zone));
}
