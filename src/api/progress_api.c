/*
 * progress_api.c
 *	  SQL function by which a worker reports how far a running run is.
 */
#include "postgres.h"

#include "api.h"

PG_FUNCTION_INFO_V1(tq_report_progress);

/* A row is written each second and run, and must stay narrow. */
#define MESSAGE_MAX 1000

static int64
read_done(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		tq_error_null("done");
	if (PG_GETARG_INT64(n) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("done is out of range"),
				 errdetail("It is " INT64_FORMAT ", and may be 0 or more.",
						   PG_GETARG_INT64(n)),
				 errhint("Count what is done in any unit.")));
	return PG_GETARG_INT64(n);
}

/* Returns the argument "total", which is at least what is done, or TQ_OFF. */
static int64
read_total(FunctionCallInfo fcinfo, int n, int64 done)
{
	if (PG_ARGISNULL(n))
		return TQ_OFF;
	if (PG_GETARG_INT64(n) < done)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("total is out of range"),
				 errdetail("It is " INT64_FORMAT ", and done is " INT64_FORMAT
						   ".",
						   PG_GETARG_INT64(n), done),
				 errhint("Give all that there is to do, or NULL if it is not "
						 "known.")));
	return PG_GETARG_INT64(n);
}

/* Returns the argument "message", cut if it is too long, or NULL. */
static char *
read_message(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		return NULL;
	return tq_json_cut(text_to_cstring(PG_GETARG_TEXT_PP(n)), MESSAGE_MAX);
}

/*
 * report_progress(task_id slugid, run_id int, done bigint of any unit, total
 * bigint or NULL, message text, which is cut, or NULL, credentials jsonb) -> status; TQ400, TQ404, TQ409 if the run is not running
 * (doc/spec/policy.md 13)
 */
Datum
tq_report_progress(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int run_id = tq_arg_run_id(fcinfo, 1);
	int64 done = read_done(fcinfo, 2);
	TqRunProgress progress = {.done = done,
							  .total = read_total(fcinfo, 3, done),
							  .message = read_message(fcinfo, 4)};
	TqCredentials *credentials = tq_arg_credentials(fcinfo, 5);
	TimestampTz now = tq_clock_now();
	Jsonb *status;
	int32 holder;

	tq_call_begin(false);
	holder = tq_credentials_require(credentials, task_id, run_id, now);
	tq_progress_report(task_id, run_id, holder, &progress, now);
	status = tq_spi_keep(tq_status_of(tq_task_get(task_id)));
	tq_audit_client(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(status);
}
