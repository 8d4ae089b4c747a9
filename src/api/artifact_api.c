/*
 * artifact_api.c
 *	  SQL functions that create artifacts and end uploads
 *	  (doc/spec/taskcluster.md 2.15), and what the bodies of those that read call.
 */
#include "postgres.h"

#include "access/htup_details.h"

#include "api.h"

PG_FUNCTION_INFO_V1(tq_create_artifact);
PG_FUNCTION_INFO_V1(tq_finish_artifact);
PG_FUNCTION_INFO_V1(tq_sql_arg_run_id);
PG_FUNCTION_INFO_V1(tq_sql_arg_artifact_name);
PG_FUNCTION_INFO_V1(tq_sql_run_with_artifacts);
PG_FUNCTION_INFO_V1(tq_sql_link_chain);

static char *
name_argument(FunctionCallInfo fcinfo, int n)
{
	char *name = tq_arg_text(fcinfo, n, "name");

	tq_check_artifact_name(name);
	return name;
}

/*
 * create_artifact(task_id slugid, run_id int, name text, artifact jsonb,
 * credentials jsonb) -> {storageType, ...}
 */
Datum
tq_create_artifact(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int run_id = tq_arg_run_id(fcinfo, 1);
	char *name = name_argument(fcinfo, 2);
	Jsonb *request = tq_arg_jsonb(fcinfo, 3, "artifact");
	TqCredentials *credentials = tq_arg_credentials(fcinfo, 4);
	TimestampTz now = tq_clock_now();
	TqArtifact *artifact;
	TqNamedTask *named;
	Jsonb *result;
	bool is_allowed;

	tq_call_begin(false);
	is_allowed = tq_credentials_require(credentials, task_id, run_id, now) !=
				 0;
	artifact = tq_artifact_parse(task_id, run_id, name, request);
	named = tq_artifact_create(task_id, artifact, is_allowed, now);
	result = tq_spi_keep(tq_artifact_created_json(named, artifact));
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}

/*
 * finish_artifact(task_id slugid, run_id int, name text, upload_id slugid,
 * credentials jsonb) -> void
 */
Datum
tq_finish_artifact(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int run_id = tq_arg_run_id(fcinfo, 1);
	char *name = name_argument(fcinfo, 2);
	const TqSlug *upload_id = tq_arg_slug(fcinfo, 3, "upload_id");
	TqCredentials *credentials = tq_arg_credentials(fcinfo, 4);
	bool is_allowed;

	tq_call_begin(false);
	is_allowed = tq_credentials_require(credentials, task_id, run_id,
										tq_clock_now()) != 0;
	tq_artifact_finish(task_id, run_id, name, upload_id, is_allowed);
	tq_call_end();
	PG_RETURN_VOID();
}

/* ---- what bodies call (src/sql/artifacts.sql) ---- */

/* arg_run_id(run_id int) -> int */
Datum
tq_sql_arg_run_id(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(tq_arg_run_id(fcinfo, 0));
}

/* arg_artifact_name(name text) -> text */
Datum
tq_sql_arg_artifact_name(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(name_argument(fcinfo, 0)));
}

/*
 * run_with_artifacts(task_id tq.slugid, run_id int) -> (task, run): of the last
 * run, if run_id is NULL
 */
Datum
tq_sql_run_with_artifacts(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	const TqTask *task;
	int64 id;
	int run_id;
	TupleDesc desc;
	bool nulls[2] = {false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "run_with_artifacts() returns a row");
	tq_spi_begin_part();
	task = &tq_task_get(task_id)->task;
	run_id = PG_ARGISNULL(1) ? tq_artifact_latest_run(task)
							 : PG_GETARG_INT32(1);
	tq_artifact_check_run(task, run_id);
	id = task->id; /* the end of the part frees the task */
	tq_spi_end_part();
	PG_RETURN_DATUM(HeapTupleGetDatum(
		heap_form_tuple(BlessTupleDesc(desc),
						(Datum[]){Int64GetDatum(id), Int32GetDatum(run_id)},
						nulls)));
}

/* link_chain(names text[]) -> text */
Datum
tq_sql_link_chain(PG_FUNCTION_ARGS)
{
	int n;
	char **names = tq_texts_of_array(PG_GETARG_ARRAYTYPE_P(0), &n);
	StringInfoData chain;

	initStringInfo(&chain);
	for (int i = 0; i < n; i++)
		tq_error_list(&chain, " -> ", tq_error_clip(names[i]));
	PG_RETURN_TEXT_P(cstring_to_text(chain.data));
}
