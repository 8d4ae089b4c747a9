/*
 * worker_list_api.c
 *	  SQL functions that show and manage workers: read, list, declare,
 *	  quarantine, remove.
 *
 * Implements doc/spec/taskcluster.md 2.16.  Each takes the names of a worker
 * one by one, as Taskcluster's JSON has them.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "../engine/engine.h"
#include "../events/events.h"
#include "../storage/registry.h"
#include "../util/util.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_get_worker);
PG_FUNCTION_INFO_V1(tq_list_workers);
PG_FUNCTION_INFO_V1(tq_declare_worker);
PG_FUNCTION_INFO_V1(tq_quarantine_worker);
PG_FUNCTION_INFO_V1(tq_worker_removed);

/* Reads the first four arguments, the names of a worker. */
static TqWorkerId
arg_worker(FunctionCallInfo fcinfo)
{
	TqWorkerId id;

	id.queue = tq_arg_queue_of_two(fcinfo, 0, 1);
	id.group = tq_arg_worker_name(fcinfo, 2, "worker_group");
	id.name = tq_arg_worker_name(fcinfo, 3, "worker_id");
	return id;
}

/*
 * Returns an argument that is a time; '-infinity', which JSON does not have, is
 * now.  Raises TQ400 for 'infinity': what has no end is shown as others are.
 */
static TimestampTz
arg_time(FunctionCallInfo fcinfo, int n, const char *name)
{
	TimestampTz t;

	if (PG_ARGISNULL(n))
		tq_error_null(name);
	t = tq_clock_truncate(PG_GETARG_TIMESTAMPTZ(n));
	if (TIMESTAMP_IS_NOBEGIN(t))
		return tq_clock_now();
	if (TIMESTAMP_IS_NOEND(t))
		ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
						errmsg("%s must be finite", name),
						errdetail("The argument %s is infinity.", name),
						errhint("Give a time far in the future.")));
	return t;
}

/*
 * get_worker(provisioner_id, worker_type, worker_group, worker_id text) ->
 * worker
 */
Datum
tq_get_worker(PG_FUNCTION_ARGS)
{
	TqWorkerId id = arg_worker(fcinfo);
	TqWorker worker;
	Jsonb *result;

	tq_call_begin(true);
	tq_require_worker("get-worker", id.queue, id.group, id.name);
	tq_worker_get(&id, tq_clock_now(), &worker);
	result = tq_spi_keep(tq_worker_json(id.queue, &worker));
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}

/* ---- the list ---- */

/* The columns of tq.worker_entry. */
enum
{
	COLUMN_WORKER_GROUP,
	COLUMN_WORKER_ID,
	COLUMN_FIRST_CLAIM,
	COLUMN_LAST_DATE_ACTIVE,
	COLUMN_LATEST_TASK_ID,
	COLUMN_LATEST_RUN_ID,
	COLUMN_QUARANTINE_UNTIL,
	COLUMN_PAGE,
	COLUMNS
};

/* Adds a row of tq.worker_entry. */
static void
put_worker(ReturnSetInfo *rsinfo, TqWorker *worker, TimestampTz now)
{
	Datum values[COLUMNS] = {0};
	bool nulls[COLUMNS] = {false};
	TqRecent *latest;
	int n;

	tq_worker_merge(worker);
	latest = tq_worker_recent(worker, 1, &n);
	values[COLUMN_WORKER_GROUP] = CStringGetTextDatum(worker->group);
	values[COLUMN_WORKER_ID] = CStringGetTextDatum(worker->name);
	tq_set_time(values, nulls, COLUMN_FIRST_CLAIM, worker->first_claim);
	tq_set_time(values, nulls, COLUMN_LAST_DATE_ACTIVE,
				worker->last_date_active);
	nulls[COLUMN_LATEST_TASK_ID] = nulls[COLUMN_LATEST_RUN_ID] = n == 0;
	if (n > 0)
	{
		values[COLUMN_LATEST_TASK_ID] = tq_slug_datum(&latest->task_id);
		values[COLUMN_LATEST_RUN_ID] = Int32GetDatum(latest->run_id);
	}
	tq_set_time(values, nulls, COLUMN_QUARANTINE_UNTIL,
				worker->quarantine_until > now ? worker->quarantine_until : 0);
	values[COLUMN_PAGE] = CStringGetTextDatum(
		psprintf("%s/%s", worker->group, worker->name));
	tq_put_row(rsinfo, values, nulls);
}

/*
 * Reads the argument "after", worker_group/worker_id, into a page; NULL is
 * before all workers.
 */
static void
arg_after_worker(FunctionCallInfo fcinfo, int n, TqWorkerPage *page)
{
	char *after = PG_ARGISNULL(n) ? pstrdup("/")
								  : text_to_cstring(PG_GETARG_TEXT_PP(n));
	char *slash = strchr(after, '/');

	if (slash == NULL)
		ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
						errmsg("invalid after \"%s\"", tq_error_clip(after)),
						errdetail("It is not worker_group/worker_id."),
						errhint("Give the page of the last row, or NULL.")));
	*slash = '\0';
	page->after_group = after;
	page->after_name = slash + 1;
}

/*
 * list_workers(provisioner_id, worker_type text, quarantined bool, after text,
 * max int) -> rows of tq.worker_entry, by group and id
 */
Datum
tq_list_workers(PG_FUNCTION_ARGS)
{
	char *queue = tq_arg_queue_of_two(fcinfo, 0, 1);
	TqWorkerPage page = {.by_quarantine = !PG_ARGISNULL(2),
						 .is_quarantined = !PG_ARGISNULL(2) &&
										   PG_GETARG_BOOL(2),
						 .max = tq_arg_max(fcinfo, 4)};
	TimestampTz now = tq_clock_now();
	TqWorker *workers;
	int n;

	arg_after_worker(fcinfo, 3, &page);
	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_access_require(tq_need("queue:list-workers:%s", queue));
	page.queue = tq_queue_find(queue);
	workers = tq_workers_list(&page, now, &n);
	for (int i = 0; i < n; i++)
		put_worker((ReturnSetInfo *) fcinfo->resultinfo, &workers[i], now);
	tq_call_end();
	return (Datum) 0;
}

/* ---- requests ---- */

/*
 * declare_worker(... as get_worker, expires timestamptz) -> worker.  It and its
 * queue are made if necessary; its expiry never moves back.
 */
Datum
tq_declare_worker(PG_FUNCTION_ARGS)
{
	TqWorkerId id = arg_worker(fcinfo);
	TimestampTz expires = arg_time(fcinfo, 4, "expires");
	TqWorker worker;
	Jsonb *result;

	tq_call_begin(false);
	tq_access_require(tq_need("queue:declare-worker:%s/%s/%s#expires",
							  id.queue, id.group, id.name));
	tq_worker_set_expires(&id, expires, tq_clock_now(), &worker);
	result = tq_spi_keep(tq_worker_json(id.queue, &worker));
	tq_audit_client(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}

#define REASON_MAX 4000

/* Returns a text that a person gives, which must not be too long; or NULL. */
static char *
arg_reason(FunctionCallInfo fcinfo, int n, const char *name)
{
	char *reason;
	int length;

	if (PG_ARGISNULL(n))
		return NULL;
	reason = text_to_cstring(PG_GETARG_TEXT_PP(n));
	length = pg_mbstrlen(reason);
	if (length > REASON_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("%s is too long", name),
				 errdetail("It has %d characters, and may have %d.", length,
						   REASON_MAX),
				 errhint("Give a shorter text.")));
	return reason;
}

/*
 * quarantine_worker(... as get_worker, quarantine_until timestamptz,
 * quarantine_info text of at most 4,000 characters) -> worker.  A time in the
 * past ends the quarantine.
 */
Datum
tq_quarantine_worker(PG_FUNCTION_ARGS)
{
	TqWorkerId id = arg_worker(fcinfo);
	char *info = arg_reason(fcinfo, 5, "quarantine_info");
	TimestampTz until = arg_time(fcinfo, 4, "quarantine_until");
	TimestampTz now = tq_clock_now();
	TqWorker worker;
	Jsonb *detail;
	Jsonb *result;

	tq_call_begin(false);
	tq_require_worker("quarantine-worker", id.queue, id.group, id.name);
	detail = tq_quarantine_json(GetUserNameFromId(GetSessionUserId(), false),
								now, until,
								info != NULL ? info : "[unspecified]");
	tq_worker_set_quarantine(&id, until, detail, now, &worker);
	result = tq_spi_keep(tq_worker_json(id.queue, &worker));
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(result);
}

/*
 * worker_removed(... as get_worker, reason text of at most 4,000 characters)
 * -> (task_id, run_id, outcome), for each run that the worker had (3.1, rule
 * 33).  The reason becomes the error of these runs.
 */
Datum
tq_worker_removed(PG_FUNCTION_ARGS)
{
	TqWorkerId id = arg_worker(fcinfo);
	char *reason = arg_reason(fcinfo, 4, "reason");
	TqReport *reports;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(false);
	tq_require_worker("worker-removed", id.queue, id.group, id.name);
	reports = tq_worker_remove(&id, reason, tq_clock_now(), &n);
	for (int i = 0; i < n; i++)
		tq_put_outcome((ReturnSetInfo *) fcinfo->resultinfo, &reports[i]);
	tq_audit_operator(fcinfo);
	tq_call_end();
	return (Datum) 0;
}
