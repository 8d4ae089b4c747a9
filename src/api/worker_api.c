/*
 * worker_api.c
 *	  SQL functions for workers: claim, reclaim, defer, report.
 *
 * Implements doc/spec/taskcluster.md 2.8 to 2.12, to whose
 * sections the numbers in parentheses refer.  Each function is an ordinary
 * statement of the transaction of its caller, so a worker may complete a task
 * together with its own writes.
 */
#include "postgres.h"

#include <ctype.h>

#include "access/htup_details.h"
#include "access/xact.h"
#include "mb/pg_wchar.h"
#include "storage/proc.h"
#include "utils/guc.h"

#include "../core/names.h"
#include "../core/state.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_session_worker);
PG_FUNCTION_INFO_V1(tq_claim_work_0_2);
PG_FUNCTION_INFO_V1(tq_claim_work_of_queues_0_2);
PG_FUNCTION_INFO_V1(tq_claim_task_0_2);
PG_FUNCTION_INFO_V1(tq_reclaim_task_0_2);
PG_FUNCTION_INFO_V1(tq_report_completed);
PG_FUNCTION_INFO_V1(tq_report_failed_0_2);
PG_FUNCTION_INFO_V1(tq_report_exception_0_2);
PG_FUNCTION_INFO_V1(tq_defer_task);
PG_FUNCTION_INFO_V1(tq_resolve);
PG_FUNCTION_INFO_V1(tq_resolve_each);
PG_FUNCTION_INFO_V1(tq_resolve_and_claim_0_2);

#define CLAIM_MAX 1000
#define SESSION_NAME_MAX 128
#define SPAN_MAX_MS INT64CONST(2147483647000) /* as in policies */
#define CLAIMABLE_AT_ONCE "Give 0 to have the task claimable at once."
#define CLAIM_WAIT_MAX_MS (60 * 1000)

/* ---- the worker that a session is, if its calls name none ---- */

/* Puts a "-" in the place of each character that a worker may not have. */
static char *
as_worker_name(char *name)
{
	for (char *c = name; *c != '\0'; c++)
	{
		if (!isalnum((unsigned char) *c) && strchr("-_.", *c) == NULL)
			*c = '-';
	}
	if (strlen(name) > SESSION_NAME_MAX)
		name[SESSION_NAME_MAX] = '\0';
	return name;
}

/* Its group is the application_name, or else the role that has logged in. */
static char *
session_group(void)
{
	if (application_name != NULL && application_name[0] != '\0')
		return as_worker_name(pstrdup(application_name));
	return as_worker_name(GetUserNameFromId(GetSessionUserId(), false));
}

/*
 * Its id is the host of the client and the number of the server process, such as
 * local-12 or 10.0.0.7-12, which no other session has at the same time.  A process
 * id would be another one for each connection: a program that connects for each
 * task would be known as thousands of workers.
 */
static char *
session_id(void)
{
	LOCAL_FCINFO(none, 0);
	Datum address;
	const char *host = "local";

	InitFunctionCallInfoData(*none, NULL, 0, InvalidOid, NULL, NULL);
	address = inet_client_addr(none);
	if (!none->isnull)
		host = TextDatumGetCString(DirectFunctionCall1(network_host, address));
	return as_worker_name(psprintf("%.100s-%u", host, TqMyProcNumber()));
}

/* Returns the argument "worker_group"; NULL: that of the session. */
static char *
arg_worker_group(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? session_group()
						   : tq_arg_worker_name(fcinfo, n, "worker_group");
}

/* Returns the argument "worker_id"; NULL: that of the session. */
static char *
arg_worker_id(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? session_id()
						   : tq_arg_worker_name(fcinfo, n, "worker_id");
}

/* session_worker() -> text[]: worker_group and worker_id of this session */
Datum
tq_session_worker(PG_FUNCTION_ARGS)
{
	Datum names[2] = {CStringGetTextDatum(session_group()),
					  CStringGetTextDatum(session_id())};

	PG_RETURN_ARRAYTYPE_P(
		construct_array(names, 2, TEXTOID, -1, false, TYPALIGN_INT));
}

/* ---- audit ---- */

/* Returns whether a report was accepted. */
static bool
is_accepted(TqOutcome outcome)
{
	switch (outcome)
	{
		case TQ_OUTCOME_RESOLVED:
		case TQ_OUTCOME_RETRIED:
		case TQ_OUTCOME_REPEATED:
			return true;
		case TQ_OUTCOME_CONFLICT:
		case TQ_OUTCOME_NOT_FOUND:
		case TQ_OUTCOME_FORBIDDEN:
			break;
	}
	return false;
}

/*
 * Writes a call to the audit trail, with the runs of the reports that were
 * accepted, and those that were claimed.
 */
static void
audit_runs(FunctionCallInfo fcinfo, const TqReport *reports, int nreports,
		   const TqClaim *claims, int nclaims)
{
	TqActRun *runs = palloc(sizeof(TqActRun) * Max(nreports + nclaims, 1));
	int n = 0;

	for (int i = 0; i < nreports; i++)
	{
		const TqReport *report = &reports[i];

		if (is_accepted(report->outcome))
			runs[n++] =
				(TqActRun){report->task_id, report->run_id,
						   report->credentials == NULL
							   ? NULL
							   : tq_credentials_client(report->credentials)};
	}
	for (int i = 0; i < nclaims; i++)
		runs[n++] = (TqActRun){.task_id = claims[i].task_id,
							   .run_id = claims[i].run_id};
	tq_audit_call_runs(fcinfo, runs, n);
}

/* ---- claims ---- */

/* Returns the argument "tasks", which tq.max_batch may limit further. */
static int
read_claims(FunctionCallInfo fcinfo, int n)
{
	int max = tq_arg_int(fcinfo, n, "tasks", 1, CLAIM_MAX);

	if (max > tq_max_batch)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("tasks is out of range"),
				 errdetail("It is %d, and may be %d.", max, tq_max_batch),
				 errhint("Claim fewer; tq.max_batch is the limit.")));
	return max;
}

/*
 * Returns an interval in milliseconds, from least to the longest time of a
 * policy.
 */
static int64
read_span(FunctionCallInfo fcinfo, int n, const char *name, int64 least,
		  const char *hint)
{
	int64 ms = tq_clock_span_ms(tq_arg_interval(fcinfo, n, name));

	if (ms < least || ms > SPAN_MAX_MS)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("%s is out of range", name),
				 errdetail("It is " INT64_FORMAT
						   " milliseconds, and may be from " INT64_FORMAT
						   " to " INT64_FORMAT ".",
						   ms, least, SPAN_MAX_MS),
				 errhint("%s", hint)));
	return ms;
}

/*
 * Returns the argument "claim_for" in milliseconds, or TQ_OFF.  It is not 0, as
 * no claimTimeout is.
 */
static int64
arg_claim_for(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n)
			   ? TQ_OFF
			   : read_span(
					 fcinfo, n, "claim_for", 1,
					 "Give how long the claim is to last, such as '10 min', or NULL for the time that the policy, the queue or tq.claim_timeout sets.");
}

/* Returns the argument "definition", whether claims have their definitions. */
static bool
arg_definition(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		tq_error_null("definition");
	return PG_GETARG_BOOL(n);
}

/*
 * Columns of tq.claim before the definition and the status, which are the last
 * ones; tq.queue_claim and tq.worker_run have one more.
 */
#define CLAIM_COLUMNS 7
#define CLAIM_COLUMNS_ALL (CLAIM_COLUMNS + 2)

/* Fills in the columns of tq.claim before the definition. */
static void
fill_claim(const TqClaim *claim, Datum *values, bool *nulls)
{
	memset(nulls, 0, sizeof(bool) * CLAIM_COLUMNS);
	values[0] = PointerGetDatum(&claim->task_id);
	values[1] = Int32GetDatum(claim->run_id);
	values[2] = CStringGetTextDatum(claim->worker_group);
	values[3] = CStringGetTextDatum(claim->worker_id);
	values[4] = TimestampTzGetDatum(claim->taken_until);
	values[5] = PointerGetDatum(claim->payload);
	nulls[5] = claim->payload == NULL;
	values[6] = PointerGetDatum(claim->credentials);
	nulls[6] = claim->credentials == NULL;
}

/* Fills in the last two columns. */
static void
fill_definition(const TqClaim *claim, Datum *values, bool *nulls)
{
	values[0] = PointerGetDatum(claim->definition);
	nulls[0] = claim->definition == NULL;
	values[1] = PointerGetDatum(claim->status);
	nulls[1] = claim->status == NULL;
}

/*
 * Raises TQ400 for a wait in a transaction that has a single snapshot, because
 * no change would become visible to it.
 */
static void
check_isolation(void)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("cannot wait under this isolation level"),
				 errdetail(
					 "The transaction is REPEATABLE READ or SERIALIZABLE."),
				 errhint("Use READ COMMITTED, or do not wait.")));
}

/* Returns a copy in the memory of the caller. */
static Jsonb *
copy_json(const Jsonb *json)
{
	Size size = VARSIZE(json);

	return memcpy(palloc(size), json, size);
}

/*
 * Gives claims that this call has made their definitions and statuses, with one
 * read of all tasks and one of all runs.  The right to the claim is the right to
 * both.  What is built for a claim is freed before the next one: the pages that
 * it needs would cost a call of 100 a quarter of its time.
 */
static void
define_claims(TqClaim *claims, int n)
{
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext row = AllocSetContextCreate(outer, "tq definition",
											  ALLOCSET_DEFAULT_SIZES);
	TqTaskDefinition *tasks;
	TqHistoryRun *runs;
	int ntasks;
	int nruns;

	for (int i = 0; i < n; i++)
		slugs[i] = claims[i].task_id;
	tasks = tq_definitions_by_slug(slugs, n, &ntasks);
	if (ntasks != n)
		elog(ERROR, "%d of %d claimed tasks are missing", n - ntasks, n);
	for (int i = 0; i < n; i++)
		ids[i] = tasks[i].named.task.id;
	runs = tq_runs_history(ids, n, true, &nruns);
	for (int i = 0; i < n; i++)
	{
		Jsonb *definition;
		Jsonb *status;

		MemoryContextSwitchTo(row);
		definition = tq_definition_json(&tasks[i]);
		status = tq_status_from(runs, nruns, &tasks[i].named);
		MemoryContextSwitchTo(outer);
		claims[i].definition = copy_json(definition);
		claims[i].status = copy_json(status);
		MemoryContextReset(row);
	}
	MemoryContextDelete(row);
}

/*
 * Claims what claim_work(task_queue_id, worker_group, worker_id, tasks, wait,
 * claim_for, definition) is asked for.  The claims are in the memory of the
 * call, which end_claim() ends.
 */
static TqClaim *
begin_claim(FunctionCallInfo fcinfo, int *found)
{
	char *queue = tq_arg_task_queue_id(fcinfo, 0);
	TqClaimAsk ask = {.worker_group = arg_worker_group(fcinfo, 1),
					  .worker_id = arg_worker_id(fcinfo, 2),
					  .max = read_claims(fcinfo, 3),
					  .wait_ms = tq_arg_wait(fcinfo, 4, CLAIM_WAIT_MAX_MS),
					  .claim_for = arg_claim_for(fcinfo, 5)};
	bool definition = arg_definition(fcinfo, 6);
	TqClaim *claims;

	if (ask.wait_ms > 0)
		check_isolation();
	tq_call_begin(false);
	tq_require_claim("claim-work", queue, NULL, ask.worker_group,
					 ask.worker_id);
	claims = tq_claim_wait(queue, &ask, found);
	if (definition)
		define_claims(claims, *found);
	return claims;
}

/* Ends a call that has claimed these. */
static void
end_claim(FunctionCallInfo fcinfo, const TqClaim *claims, int found)
{
	if (tq_audit_wants_clients())
		audit_runs(fcinfo, NULL, 0, claims, found);
	tq_call_end();
}

/*
 * claim_work(task_queue_id, worker_group, worker_id text, tasks int 1..1000,
 * wait interval 0..60 s, claim_for interval, definition bool) -> rows of tq.claim
 * (2.8)
 */
Datum
tq_claim_work_0_2(PG_FUNCTION_ARGS)
{
	TqClaim *claims;
	int found;

	tq_begin_rows(fcinfo);
	claims = begin_claim(fcinfo, &found);
	for (int i = 0; i < found; i++)
	{
		Datum values[CLAIM_COLUMNS_ALL];
		bool nulls[CLAIM_COLUMNS_ALL];

		fill_claim(&claims[i], values, nulls);
		fill_definition(&claims[i], values + CLAIM_COLUMNS,
						nulls + CLAIM_COLUMNS);
		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
	}
	end_claim(fcinfo, claims, found);
	return (Datum) 0;
}

/* Returns whether the argument "mode" is round-robin. */
static bool
arg_takes_turns(FunctionCallInfo fcinfo, int n)
{
	char *mode = tq_arg_text(fcinfo, n, "mode");

	if (strcmp(mode, "strict") != 0 && strcmp(mode, "round-robin") != 0)
		ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
						errmsg("invalid mode \"%s\"", tq_error_clip(mode)),
						errdetail("It is not an order of queues."),
						errhint("Use strict or round-robin.")));
	return mode[0] == 'r';
}

/* The same as begin_claim() for several queues, in a mode. */
static TqClaim *
begin_claim_of_queues(FunctionCallInfo fcinfo, int *found)
{
	int n;
	char **elements = tq_arg_texts(fcinfo, 0, "task_queue_ids", &n);
	TqClaimAsk ask = {.worker_group = arg_worker_group(fcinfo, 1),
					  .worker_id = arg_worker_id(fcinfo, 2),
					  .max = tq_arg_int(fcinfo, 3, "tasks", 1, CLAIM_MAX),
					  .wait_ms = tq_arg_wait(fcinfo, 4, CLAIM_WAIT_MAX_MS),
					  .claim_for = arg_claim_for(fcinfo, 5)};
	bool definition = arg_definition(fcinfo, 6);
	bool takes_turns = arg_takes_turns(fcinfo, 7);
	TqQueueSet set;
	TqClaim *claims;

	tq_queue_set_init(&set, elements, n);
	if (ask.wait_ms > 0)
		check_isolation();
	tq_call_begin(false);
	tq_queue_set_require_claim(&set, ask.worker_group, ask.worker_id);
	claims = tq_claim_queues(&set, takes_turns, &ask, found);
	if (definition)
		define_claims(claims, *found);
	return claims;
}

/*
 * claim_work(task_queue_ids text[] 1..100, worker_group, worker_id text, tasks
 * int 1..1000, wait interval 0..60 s, claim_for interval, definition bool, mode
 * text strict or round-robin) -> rows of tq.queue_claim (2.8).  Raises TQ409 if
 * patterns stand for too many queues.
 */
Datum
tq_claim_work_of_queues_0_2(PG_FUNCTION_ARGS)
{
	TqClaim *claims;
	int found;

	tq_begin_rows(fcinfo);
	claims = begin_claim_of_queues(fcinfo, &found);
	for (int i = 0; i < found; i++)
	{
		Datum values[CLAIM_COLUMNS_ALL + 1];
		bool nulls[CLAIM_COLUMNS_ALL + 1];

		fill_claim(&claims[i], values, nulls);
		values[CLAIM_COLUMNS] = CStringGetTextDatum(claims[i].queue);
		nulls[CLAIM_COLUMNS] = false;
		fill_definition(&claims[i], values + CLAIM_COLUMNS + 1,
						nulls + CLAIM_COLUMNS + 1);
		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
	}
	end_claim(fcinfo, claims, found);
	return (Datum) 0;
}

/*
 * claim_task(task_id slugid, run_id int, worker_group, worker_id text, claim_for
 * interval, definition bool) -> one tq.claim, or none
 */
Datum
tq_claim_task_0_2(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int run_id = tq_arg_run_id(fcinfo, 1);
	TqClaimAsk ask = {.worker_group = arg_worker_group(fcinfo, 2),
					  .worker_id = arg_worker_id(fcinfo, 3),
					  .claim_for = arg_claim_for(fcinfo, 4)};
	bool definition = arg_definition(fcinfo, 5);
	TqClaim claim;
	Datum values[CLAIM_COLUMNS_ALL];
	bool nulls[CLAIM_COLUMNS_ALL];

	tq_begin_rows(fcinfo);
	tq_call_begin(false);
	if (tq_claim_one(task_id, run_id, &ask, tq_clock_now(), &claim))
	{
		if (definition)
			define_claims(&claim, 1);
		fill_claim(&claim, values, nulls);
		fill_definition(&claim, values + CLAIM_COLUMNS, nulls + CLAIM_COLUMNS);
		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
		tq_audit_client(fcinfo);
	}
	tq_call_end();
	return (Datum) 0;
}

/*
 * reclaim_task(task_id slugid, run_id int, wait interval 0..60 s, claim_for
 * interval, credentials jsonb) -> tq.claim without payload (2.10).  Raises TQ409
 * as soon as the run is not running any more.
 */
Datum
tq_reclaim_task_0_2(PG_FUNCTION_ARGS)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");
	int run_id = tq_arg_run_id(fcinfo, 1);
	int64 wait_ms = tq_arg_wait(fcinfo, 2, CLAIM_WAIT_MAX_MS);
	TqCredentials *credentials = tq_arg_credentials(fcinfo, 4);
	int64 claim_for = arg_claim_for(fcinfo, 3);
	MemoryContext outer = CurrentMemoryContext;
	TupleDesc desc;
	TqClaim claim;
	int32 holder;
	Datum values[CLAIM_COLUMNS_ALL];
	bool nulls[CLAIM_COLUMNS_ALL];
	HeapTuple tuple;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	desc = BlessTupleDesc(desc);
	if (wait_ms > 0)
		check_isolation();
	tq_call_begin(false);
	holder = tq_credentials_require(credentials, task_id, run_id,
									tq_clock_now());
	if (wait_ms > 0)
		tq_claim_stay(task_id, run_id, holder, wait_ms);
	tq_claim_prolong(task_id, run_id, holder, claim_for, tq_clock_now(),
					 &claim);
	fill_claim(&claim, values, nulls);
	fill_definition(&claim, values + CLAIM_COLUMNS, nulls + CLAIM_COLUMNS);
	tq_audit_client(fcinfo);
	MemoryContextSwitchTo(outer);
	tuple = heap_form_tuple(desc, values, nulls);
	tq_call_end();
	PG_RETURN_DATUM(HeapTupleGetDatum(tuple));
}

/* ---- reports ---- */

/*
 * Returns the status of a task after an accepted report.  If that has ended the
 * first run, and no other follows, it is known; others are read, and those with
 * a detail, which may have the progress of the run.
 */
static Jsonb *
status_of_reported(const TqReport *report)
{
	const TqNamedTask *named = report->named != NULL
								   ? report->named
								   : tq_task_get(&report->task_id);
	const TqRun *run = &report->run;

	if (report->outcome == TQ_OUTCOME_RESOLVED && run->run_id == 0 &&
		!report->had_detail && !report->has_retries_left)
		return tq_status_of_only(named, run,
								 run->has_detail ? report->detail : NULL);
	return tq_status_of(named);
}

/* Resolves one run, or raises its error, and returns the status afterwards. */
static Jsonb *
report_one(FunctionCallInfo fcinfo, TqReport report)
{
	Jsonb *status;

	tq_call_begin(false);
	report.is_answered = true;
	tq_resolve_reports(&report, 1, tq_clock_now());
	switch (report.outcome)
	{
		case TQ_OUTCOME_RESOLVED:
		case TQ_OUTCOME_RETRIED:
		case TQ_OUTCOME_REPEATED:
			break;
		case TQ_OUTCOME_CONFLICT:
			ereport(
				ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("run %d of task \"%s\" cannot be resolved",
						report.run_id, tq_slug_text(&report.task_id)),
				 errdetail("The run is %s.", tq_state_name(report.state)),
				 report.state == TQ_STATE_PENDING
					 ? errhint(
						   "Claim it first, with tq.claim_work() or tq.claim_task().")
					 : errhint(
						   "Only a running run can be resolved, or the same resolution repeated; tq.status() shows how it ended.")));
			break;
		case TQ_OUTCOME_NOT_FOUND:
			if (!report.is_found)
				tq_error_missing_task(&report.task_id);
			tq_error_missing_run(report.task, report.run_id);
			break;
		case TQ_OUTCOME_FORBIDDEN:
			if (report.is_forbidden)
				tq_error_credentials();
			tq_require_run("resolve-task", &report.task_id, report.run_id,
						   report.owner.queue);
	}
	status = tq_spi_keep(status_of_reported(&report));
	tq_audit_client(fcinfo);
	tq_call_end();
	return status;
}

/* Reads the run that is reported on from the first two arguments. */
static TqReport
worker_read_report(FunctionCallInfo fcinfo, TqResolved reason, int credentials)
{
	return (TqReport){.is_checked = true,
					  .reason = reason,
					  .task_id = *tq_arg_slug(fcinfo, 0, "task_id"),
					  .run_id = tq_arg_run_id(fcinfo, 1),
					  .credentials = tq_arg_credentials(fcinfo, credentials)};
}

/*
 * Reads retry_delay and retries_left, by which a worker overrides the policy
 * for the next attempts.
 */
static void
worker_read_retry(FunctionCallInfo fcinfo, int n, TqReport *report)
{
	report->has_retry_delay = !PG_ARGISNULL(n);
	if (report->has_retry_delay)
		report->retry_delay = read_span(fcinfo, n, "retry_delay", 0,
										CLAIMABLE_AT_ONCE);
	report->has_retries_left = !PG_ARGISNULL(n + 1);
	if (report->has_retries_left)
		report->retries_left = tq_arg_int(fcinfo, n + 1, "retries_left", 0,
										  tq_max_runs - 1);
}

/*
 * report_completed(task_id slugid, run_id int, result jsonb, credentials) ->
 * status (2.11)
 */
Datum
tq_report_completed(PG_FUNCTION_ARGS)
{
	TqReport report = worker_read_report(fcinfo, TQ_RESOLVED_COMPLETED, 3);

	report.result = tq_arg_result(fcinfo, 2, "result");
	PG_RETURN_JSONB_P(report_one(fcinfo, report));
}

/*
 * report_failed(task_id slugid, run_id int, error jsonb, retry_delay interval,
 * retries_left int, error_message text, credentials) -> status (2.11;
 * doc/spec/policy.md 4, 7)
 */
Datum
tq_report_failed_0_2(PG_FUNCTION_ARGS)
{
	TqReport report = worker_read_report(fcinfo, TQ_RESOLVED_FAILED, 6);

	report.error = tq_arg_error(fcinfo, 2, 5);
	worker_read_retry(fcinfo, 3, &report);
	PG_RETURN_JSONB_P(report_one(fcinfo, report));
}

static void
refuse_reason(const char *reason, const char *choices)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("invalid reason \"%s\"", tq_error_clip(reason)),
					errdetail("It is not one that a worker may give here."),
					errhint("Use one of %s.", choices)));
}

/*
 * report_exception(task_id slugid, run_id int, reason text, error jsonb,
 * retry_delay interval, retries_left int, error_message text, credentials) ->
 * status (2.12; doc/spec/policy.md 4, 7)
 */
Datum
tq_report_exception_0_2(PG_FUNCTION_ARGS)
{
	TqReport report = worker_read_report(fcinfo, TQ_RESOLVED_NONE, 7);
	char *name = tq_arg_text(fcinfo, 2, "reason");

	report.reason = tq_resolved_parse(name);
	if (!tq_resolved_is_reportable(report.reason))
		refuse_reason(name, TQ_EXCEPTION_REASONS);
	report.error = tq_arg_error(fcinfo, 3, 6);
	worker_read_retry(fcinfo, 4, &report);
	PG_RETURN_JSONB_P(report_one(fcinfo, report));
}

/*
 * defer_task(task_id slugid, run_id int, after interval, credentials jsonb) ->
 * status (doc/spec/policy.md 5)
 */
Datum
tq_defer_task(PG_FUNCTION_ARGS)
{
	TqReport report = worker_read_report(fcinfo, TQ_RESOLVED_NONE, 3);
	int64 after = read_span(fcinfo, 2, "after", 0, CLAIMABLE_AT_ONCE);
	TimestampTz now = tq_clock_now();
	TqNamedTask *named;
	Jsonb *status;
	int32 holder;

	tq_call_begin(false);
	holder = tq_credentials_require(report.credentials, &report.task_id,
									report.run_id, now);
	named = tq_task_get(&report.task_id);
	tq_claim_defer(&named->task, report.run_id, holder, after, now);
	status = tq_spi_keep(tq_status_of(named));
	tq_audit_client(fcinfo);
	tq_call_end();
	PG_RETURN_JSONB_P(status);
}

/* Returns the reason of resolve(). */
static TqResolved
batch_reason(const char *name)
{
	TqResolved reason = tq_report_reason(name);

	if (reason == TQ_RESOLVED_NONE)
		refuse_reason(name, TQ_REPORT_REASONS);
	return reason;
}

/* Returns the two arrays of resolve() as reports. */
static TqReport *
read_reports(FunctionCallInfo fcinfo, int *n)
{
	int nruns;
	TqSlug *slugs = tq_slugs_of_array(tq_arg_batch(fcinfo, 0, "task_ids"),
									  "task_ids", n);
	Datum *runs;
	bool *nulls;
	TqReport *reports = palloc0(sizeof(TqReport) * Max(*n, 1));

	deconstruct_array(tq_arg_batch(fcinfo, 1, "run_ids"), INT4OID,
					  sizeof(int32), true, TYPALIGN_INT, &runs, &nulls,
					  &nruns);
	if (*n != nruns)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("task_ids and run_ids must be of the same length"),
				 errdetail("There are %d task_ids and %d run_ids.", *n, nruns),
				 errhint("Give one run_id for each task_id.")));
	for (int i = 0; i < *n; i++)
	{
		if (nulls[i])
			tq_error_null_element("run_ids", i);
		reports[i].task_id = slugs[i];
		reports[i].run_id = DatumGetInt32(runs[i]);
	}
	return reports;
}

/* Reads the credentials of resolve(), which are argument arg. */
static void
worker_read_credentials(FunctionCallInfo fcinfo, int arg, TqReport *reports,
						int n)
{
	TqCredentials **credentials;

	if (PG_ARGISNULL(arg))
		return;
	credentials = palloc(sizeof(TqCredentials *) * Max(n, 1));
	tq_arg_credentials_of_runs(fcinfo, arg, credentials, n);
	for (int i = 0; i < n; i++)
		reports[i].credentials = credentials[i];
}

/* Adds a row of tq.resolution. */
void
tq_put_outcome(ReturnSetInfo *rsinfo, const TqReport *report)
{
	Datum values[3] = {PointerGetDatum(&report->task_id),
					   Int32GetDatum(report->run_id),
					   CStringGetTextDatum(tq_outcome_name(report->outcome))};
	bool nulls[3] = {false, false, false};

	tq_put_row(rsinfo, values, nulls);
}

/* Returns whether a report has written something. */
static bool
is_any_accepted(const TqReport *reports, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (is_accepted(reports[i].outcome))
			return true;
	}
	return false;
}

/* Makes the reports of a call that has begun as idle. */
static void
resolve_all(FunctionCallInfo fcinfo, TqReport *reports, int n)
{
	tq_resolve_reports(reports, n, tq_clock_now());
	if (is_any_accepted(reports, n))
		tq_activation_do();
	if (tq_audit_wants_clients())
		audit_runs(fcinfo, reports, n, NULL, 0);
}

static void
put_outcomes(FunctionCallInfo fcinfo, const TqReport *reports, int n)
{
	for (int i = 0; i < n; i++)
		tq_put_outcome((ReturnSetInfo *) fcinfo->resultinfo, &reports[i]);
}

/*
 * Makes reports that name their runs alone, and have their reason and their
 * credentials from the arguments reason_arg and the next one, as in resolve().
 */
static void
resolve_runs(FunctionCallInfo fcinfo, int reason_arg, TqReport *reports, int n)
{
	TqResolved reason = batch_reason(
		tq_arg_text(fcinfo, reason_arg, "reason"));

	for (int i = 0; i < n; i++)
	{
		reports[i].reason = reason;
		reports[i].is_checked = true;
	}
	worker_read_credentials(fcinfo, reason_arg + 1, reports, n);
	resolve_all(fcinfo, reports, n);
}

/*
 * resolve(task_ids slugid[], run_ids int[], reason text, credentials jsonb) ->
 * (task_id, run_id, outcome)
 */
Datum
tq_resolve(PG_FUNCTION_ARGS)
{
	TqReport *reports;
	int n;

	tq_begin_rows(fcinfo);
	tq_call_begin_idle();
	reports = read_reports(fcinfo, &n);
	resolve_runs(fcinfo, 2, reports, n);
	put_outcomes(fcinfo, reports, n);
	tq_call_end();
	return (Datum) 0;
}

/*
 * resolve(reports jsonb) -> (task_id, run_id, outcome), in the order of the
 * reports.  An array of objects of taskId, runId, reason (default completed),
 * result, error, errorMessage, retryDelay, retriesLeft and credentials, which
 * are the arguments of the functions for one run (2.12).  Raises TQ400 for a
 * report that is not valid, and for two on the same run.
 */
Datum
tq_resolve_each(PG_FUNCTION_ARGS)
{
	int n;
	TqReport *reports = tq_reports_read(tq_arg_jsonb(fcinfo, 0, "reports"),
										&n);

	tq_begin_rows(fcinfo);
	tq_call_begin_idle();
	resolve_all(fcinfo, reports, n);
	put_outcomes(fcinfo, reports, n);
	tq_call_end();
	return (Datum) 0;
}

/* ---- reports and claims ---- */

/*
 * Adds a row of tq.worker_run: a run that was claimed.  It has the columns of
 * tq.claim, with the outcome as the third.
 */
static void
put_claimed(FunctionCallInfo fcinfo, const TqClaim *claim)
{
	Datum of_claim[CLAIM_COLUMNS];
	bool nulls_of_claim[CLAIM_COLUMNS];
	Datum values[CLAIM_COLUMNS_ALL + 1];
	bool nulls[CLAIM_COLUMNS_ALL + 1];

	fill_claim(claim, of_claim, nulls_of_claim);
	memcpy(values, of_claim, 2 * sizeof(Datum));
	memcpy(nulls, nulls_of_claim, 2 * sizeof(bool));
	values[2] = CStringGetTextDatum("claimed");
	nulls[2] = false;
	memcpy(&values[3], &of_claim[2], (CLAIM_COLUMNS - 2) * sizeof(Datum));
	memcpy(&nulls[3], &nulls_of_claim[2], (CLAIM_COLUMNS - 2) * sizeof(bool));
	fill_definition(claim, values + CLAIM_COLUMNS + 1,
					nulls + CLAIM_COLUMNS + 1);
	tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
}

/*
 * resolve_and_claim(reports jsonb as resolve, task_queue_id, worker_group,
 * worker_id text, tasks int 1..1000, claim_for interval, definition bool) ->
 * rows of tq.worker_run: one for each report, in their order, then one for each
 * run that was claimed (2.12).
 *
 * Reports first, so that the claim may take a slot that a report has freed, and
 * the retry of a run.  It has no wait: until the transaction ends, the runs
 * that it has resolved stay locked, and other sessions do not see their ends.
 */
Datum
tq_resolve_and_claim_0_2(PG_FUNCTION_ARGS)
{
	int n;
	TqReport *reports = tq_reports_read(tq_arg_jsonb(fcinfo, 0, "reports"),
										&n);
	char *queue = tq_arg_task_queue_id(fcinfo, 1);
	TqClaimAsk ask = {.worker_group = arg_worker_group(fcinfo, 2),
					  .worker_id = arg_worker_id(fcinfo, 3),
					  .max = read_claims(fcinfo, 4),
					  .claim_for = arg_claim_for(fcinfo, 5)};
	bool definition = arg_definition(fcinfo, 6);
	TqClaim *claims;
	int found;

	tq_begin_rows(fcinfo);
	tq_call_begin(false);
	tq_require_claim("claim-work", queue, NULL, ask.worker_group,
					 ask.worker_id);
	tq_resolve_reports(reports, n, tq_clock_now());
	claims = tq_claim_wait(queue, &ask, &found);
	if (definition)
		define_claims(claims, found);
	for (int i = 0; i < n; i++)
	{
		Datum values[CLAIM_COLUMNS_ALL + 1] =
			{PointerGetDatum(&reports[i].task_id),
			 Int32GetDatum(reports[i].run_id),
			 CStringGetTextDatum(tq_outcome_name(reports[i].outcome))};
		bool nulls[CLAIM_COLUMNS_ALL + 1];

		/* Add a row of tq.worker_run: a run that was reported on. */
		for (int column = 0; column <= CLAIM_COLUMNS_ALL; column++)
			nulls[column] = column > 2;
		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
	}
	for (int i = 0; i < found; i++)
		put_claimed(fcinfo, &claims[i]);
	if (tq_audit_wants_clients())
		audit_runs(fcinfo, reports, n, claims, found);
	tq_call_end();
	return (Datum) 0;
}

/*
 * ---- lines ----
 *
 * claim_lines() and resolve_lines(): claim_work() and resolve() with their
 * claims, runs and outcomes as text, for routers.
 *
 * PL/Proxy has each value of a row as text, and parses the query for each call.
 * A line for each claim, in few values, and a line for each run, in one, cost
 * both sides less: a field is found by its tab, and no executor handles a row
 * for each task.  src/extras/router/router_lines.c is the other end.
 *
 *	a claim		task id, run id, microseconds since 2000 in UTC when it ends, payload,
 *				credentials, definition, status, and the queue if it is from several
 *	a run		task id, run id
 *	an outcome	its name
 *
 * Fields are separated by tabs, and an empty one is NULL.  Every line ends in a
 * newline.  JSON is as it is, or x and the bytes of a jsonb value in hexadecimal.
 */

PG_FUNCTION_INFO_V1(tq_claim_lines_0_2);
PG_FUNCTION_INFO_V1(tq_claim_lines_of_queues_0_2);
PG_FUNCTION_INFO_V1(tq_resolve_lines);

/* A value with as many bytes is returned, and the next claim begins another. */
#define VALUE_BYTES (1024 * 1024)

/* ---- claims ---- */

/*
 * Adds JSON, as the bytes of the value if the client has the encoding of the
 * database: that saves the router a parser.
 */
static void
add_json(StringInfo lines, Jsonb *json)
{
	if (json == NULL)
		return;
	if (pg_get_client_encoding() == GetDatabaseEncoding())
	{
		appendStringInfoChar(lines, 'x');
		tq_jsonb_add_hex(lines, json);
	}
	else
		(void) JsonbToCString(lines, &json->root, VARSIZE(json));
}

static void
add_claim(StringInfo lines, const TqClaim *claim)
{
	tq_lines_add_slug(lines, &claim->task_id, '\t');
	tq_lines_add_number(lines, claim->run_id, '\t');
	tq_lines_add_number(lines, claim->taken_until, '\t');
	add_json(lines, claim->payload);
	appendStringInfoChar(lines, '\t');
	add_json(lines, claim->credentials);
	appendStringInfoChar(lines, '\t');
	add_json(lines, claim->definition);
	appendStringInfoChar(lines, '\t');
	add_json(lines, claim->status);
	if (claim->queue != NULL)
	{
		appendStringInfoChar(lines, '\t');
		appendStringInfoString(lines, claim->queue);
	}
	appendStringInfoChar(lines, '\n');
}

/* Adds the lines as a row, and begins again. */
static void
put_lines(FunctionCallInfo fcinfo, StringInfo lines)
{
	if (lines->len == 0)
		return;
	tq_put_row((ReturnSetInfo *) fcinfo->resultinfo,
			   (Datum[]){PointerGetDatum(
				   cstring_to_text_with_len(lines->data, lines->len))},
			   (bool[]){false});
	resetStringInfo(lines);
}

static void
put_claims(FunctionCallInfo fcinfo, const TqClaim *claims, int n)
{
	StringInfoData lines;

	initStringInfo(&lines);
	for (int i = 0; i < n; i++)
	{
		add_claim(&lines, &claims[i]);
		if (lines.len >= VALUE_BYTES)
			put_lines(fcinfo, &lines);
	}
	put_lines(fcinfo, &lines);
}

/*
 * claim_lines(task_queue_id, worker_group, worker_id text, tasks int 1..1000,
 * wait interval 0..60 s, claim_for interval, definition bool) -> setof text: what
 * claim_work() returns, as lines
 */
Datum
tq_claim_lines_0_2(PG_FUNCTION_ARGS)
{
	TqClaim *claims;
	int found;

	tq_begin_rows(fcinfo);
	claims = begin_claim(fcinfo, &found);
	put_claims(fcinfo, claims, found);
	end_claim(fcinfo, claims, found);
	return (Datum) 0;
}

/*
 * claim_lines(task_queue_ids text[] 1..100, worker_group, worker_id text, tasks
 * int 1..1000, wait interval 0..60 s, claim_for interval, definition bool, mode
 * text strict or round-robin) -> setof text: what that claim_work() returns, as
 * lines
 */
Datum
tq_claim_lines_of_queues_0_2(PG_FUNCTION_ARGS)
{
	TqClaim *claims;
	int found;

	tq_begin_rows(fcinfo);
	claims = begin_claim_of_queues(fcinfo, &found);
	put_claims(fcinfo, claims, found);
	end_claim(fcinfo, claims, found);
	return (Datum) 0;
}

/* ---- reports ---- */

/* Raises an error that shows a line, counted from 1. */
pg_noreturn static void
refuse_line(const text *runs, int number)
{
	char *line = text_to_cstring(runs);

	for (int i = 1; i < number; i++)
		line = strchr(line, '\n') + 1;
	line[strcspn(line, "\n")] = '\0';
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("invalid runs"),
		 errdetail(
			 "Each line of runs must be a task id, a tab, a run id and a newline; line %d is \"%s\".",
			 number, tq_error_clip(line)),
		 errhint("Use tq.resolve(), which has arrays.")));
}

/* Reads runs as reports that have neither a reason nor credentials yet. */
static TqReport *
read_runs(FunctionCallInfo fcinfo, int n, int *found)
{
	text *runs;
	TqLines lines;
	TqReport *reports;

	if (PG_ARGISNULL(n))
		tq_error_null("runs");
	runs = PG_GETARG_TEXT_PP(n);
	lines = tq_lines_of(runs);
	*found = tq_lines_count(&lines);
	tq_check_batch("task_ids", *found);
	reports = palloc0(sizeof(TqReport) * Max(*found, 1));
	for (int i = 0; tq_lines_are_left(&lines); i++)
	{
		if (i >= *found || !tq_lines_slug(&lines, '\t', &reports[i].task_id) ||
			!tq_lines_int32(&lines, '\n', &reports[i].run_id))
			refuse_line(runs, i + 1);
	}
	return reports;
}

/* Returns the outcomes in a memory context. */
static text *
outcome_lines(MemoryContext context, const TqReport *reports, int n)
{
	MemoryContext outer = MemoryContextSwitchTo(context);
	StringInfoData lines;
	text *all;

	initStringInfo(&lines);
	for (int i = 0; i < n; i++)
	{
		appendStringInfoString(&lines, tq_outcome_name(reports[i].outcome));
		appendStringInfoChar(&lines, '\n');
	}
	all = cstring_to_text_with_len(lines.data, lines.len);
	MemoryContextSwitchTo(outer);
	return all;
}

/*
 * resolve_lines(runs text, reason text, credentials jsonb) -> text: what resolve()
 * does and returns, as lines.  Raises TQ400 if a line is not a task id, a tab and
 * a run id.
 */
Datum
tq_resolve_lines(PG_FUNCTION_ARGS)
{
	MemoryContext outer = CurrentMemoryContext;
	TqReport *reports;
	text *outcomes;
	int n;

	tq_call_begin_idle();
	reports = read_runs(fcinfo, 0, &n);
	resolve_runs(fcinfo, 1, reports, n);
	outcomes = outcome_lines(outer, reports, n);
	tq_call_end();
	PG_RETURN_TEXT_P(outcomes);
}
