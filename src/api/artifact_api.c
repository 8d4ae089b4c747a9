/*
 * artifact_api.c
 *	  SQL functions on artifacts (doc/spec/taskcluster.md 2.15).
 *
 * Raises TQ404 for what does not exist, TQ410 for what has expired, and TQ424
 * for an artifact that is an error.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "../core/names.h"
#include "../operations/operations.h"
#include "../rules/rules.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_create_artifact);
PG_FUNCTION_INFO_V1(tq_finish_artifact);
PG_FUNCTION_INFO_V1(tq_get_artifact);
PG_FUNCTION_INFO_V1(tq_get_latest_artifact);
PG_FUNCTION_INFO_V1(tq_artifact_info);
PG_FUNCTION_INFO_V1(tq_latest_artifact_info);
PG_FUNCTION_INFO_V1(tq_list_artifacts);
PG_FUNCTION_INFO_V1(tq_list_latest_artifacts);

/* The columns of tq.artifact_entry. */
enum
{
	COLUMN_RUN_ID,
	COLUMN_NAME,
	COLUMN_STORAGE_TYPE,
	COLUMN_CONTENT_TYPE,
	COLUMN_CONTENT_LENGTH,
	COLUMN_EXPIRES,
	COLUMN_PRESENT,
	COLUMNS
};

/* In place of a run id: the last run of the task. */
#define LATEST (-1)

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

/* Returns the task; replaces LATEST in *run_id by its last run. */
static TqTask *
find_run(const TqSlug *task_id, int *run_id)
{
	TqTask *task = &tq_task_get(task_id)->task;

	if (*run_id == LATEST)
		*run_id = tq_artifact_latest_run(task);
	return task;
}

static Jsonb *
get(const TqSlug *task_id, int run_id, const char *name)
{
	TqArtifact artifact;
	TqTask *task;
	Jsonb *result;

	tq_call_begin(true);
	tq_access_require(tq_need("queue:get-artifact:%s", name));
	task = find_run(task_id, &run_id);
	tq_artifact_get(task, run_id, name, tq_clock_now(), &artifact);
	result = tq_spi_keep(tq_artifact_content_json(task, &artifact));
	tq_call_end();
	return result;
}

/*
 * get_artifact(task_id slugid, run_id int, name text) -> {storageType, url |
 * name, uploadId | contentType, content}
 */
Datum
tq_get_artifact(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int run_id = tq_arg_run_id(fcinfo, 1);

	PG_RETURN_JSONB_P(get(task_id, run_id, name_argument(fcinfo, 2)));
}

/* get_latest_artifact(task_id slugid, name text) -> as get_artifact */
Datum
tq_get_latest_artifact(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");

	PG_RETURN_JSONB_P(get(task_id, LATEST, name_argument(fcinfo, 1)));
}

static void
fill_entry(const TqArtifact *artifact, Datum *values, bool *nulls)
{
	memset(nulls, false, sizeof(bool) * COLUMNS);
	values[COLUMN_RUN_ID] = Int32GetDatum(artifact->run_id);
	values[COLUMN_NAME] = CStringGetTextDatum(artifact->name);
	values[COLUMN_STORAGE_TYPE] = CStringGetTextDatum(
		tq_storage_name(artifact->storage));
	values[COLUMN_CONTENT_TYPE] = CStringGetTextDatum(artifact->content_type);
	values[COLUMN_CONTENT_LENGTH] = Int64GetDatum(artifact->content_length);
	nulls[COLUMN_CONTENT_LENGTH] = artifact->content_length < 0;
	values[COLUMN_EXPIRES] = TimestampTzGetDatum(artifact->expires);
	values[COLUMN_PRESENT] = BoolGetDatum(artifact->present);
}

/* Checks the right to see which artifacts a run has, or the last one. */
static void
require_list(const TqSlug *task_id, int run_id)
{
	static const char right[] = "queue:list-artifacts";

	tq_access_require(
		run_id == LATEST
			? tq_need("%s:%s", right, tq_slug_text(task_id))
			: tq_need("%s:%s:%d", right, tq_slug_text(task_id), run_id));
}

static Jsonb *
info(const TqSlug *task_id, int run_id, const char *name)
{
	TqArtifact artifact;
	TqTask *task;
	Jsonb *result;

	tq_call_begin(true);
	require_list(task_id, run_id);
	task = find_run(task_id, &run_id);
	tq_artifact_look_up(task, run_id, name, &artifact);
	result = tq_spi_keep(tq_artifact_info_json(&artifact));
	tq_call_end();
	return result;
}

/*
 * artifact_info(task_id slugid, run_id int, name text) -> {storageType, name,
 * expires, contentType, contentLength?}
 */
Datum
tq_artifact_info(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int run_id = tq_arg_run_id(fcinfo, 1);

	PG_RETURN_JSONB_P(info(task_id, run_id, name_argument(fcinfo, 2)));
}

/* latest_artifact_info(task_id slugid, name text) -> as artifact_info */
Datum
tq_latest_artifact_info(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");

	PG_RETURN_JSONB_P(info(task_id, LATEST, name_argument(fcinfo, 1)));
}

/*
 * Returns a page of the artifacts of a run.  The argument `first` is the name
 * after which the page begins, the next one its size.
 */
static Datum
list(FunctionCallInfo fcinfo, const TqSlug *task_id, int run_id, int first)
{
	const char *after = PG_ARGISNULL(first)
							? ""
							: text_to_cstring(PG_GETARG_TEXT_PP(first));
	int max = tq_arg_max(fcinfo, first + 1);
	TqTask *task;
	TqArtifact *artifacts;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	require_list(task_id, run_id);
	task = find_run(task_id, &run_id);
	tq_artifact_check_run(task, run_id);
	artifacts = tq_artifacts_of_run(task->id, run_id, after, max, &n);
	for (int i = 0; i < n; i++)
	{
		Datum values[COLUMNS];
		bool nulls[COLUMNS];

		fill_entry(&artifacts[i], values, nulls);
		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
	}
	tq_call_end();
	return (Datum) 0;
}

/*
 * list_artifacts(task_id slugid, run_id int, after text, max int) ->
 * tq.artifact_entry rows
 */
Datum
tq_list_artifacts(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int run_id = tq_arg_run_id(fcinfo, 1);

	return list(fcinfo, task_id, run_id, 2);
}

/*
 * list_latest_artifacts(task_id slugid, after text, max int) ->
 * tq.artifact_entry rows
 */
Datum
tq_list_latest_artifacts(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");

	return list(fcinfo, task_id, LATEST, 1);
}
