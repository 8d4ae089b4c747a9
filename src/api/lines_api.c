/*
 * lines_api.c
 *	  claim_lines() and resolve_lines(): claim_work() and resolve() with their
 *	  claims, runs and outcomes as text, for routers.
 *
 * PL/Proxy has each value of a row as text, and parses the query for each call.
 * A line for each claim, in few values, and a line for each run, in one, cost
 * both sides less: a field is found by its tab, and no executor handles a row
 * for each task.  src/extras/router/router_lines.c is the other end.
 *
 *	a claim		task id, run id, microseconds since 2000 in UTC when it ends, payload,
 *				credentials, and the queue if it is from several
 *	a run		task id, run id
 *	an outcome	its name
 *
 * Fields are separated by tabs, and an empty one is NULL.  Every line ends in a
 * newline.  JSON is as it is, or x and the bytes of a jsonb value in hexadecimal.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "api.h"

PG_FUNCTION_INFO_V1(tq_claim_lines);
PG_FUNCTION_INFO_V1(tq_claim_lines_of_queues);
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
 * wait interval 0..60 s) -> setof text: what claim_work() returns, as lines
 */
Datum
tq_claim_lines(PG_FUNCTION_ARGS)
{
	TqClaim *claims;
	int found;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	claims = tq_begin_claim(fcinfo, &found);
	put_claims(fcinfo, claims, found);
	tq_end_claim(fcinfo, claims, found);
	return (Datum) 0;
}

/*
 * claim_lines(task_queue_ids text[] 1..100, worker_group, worker_id text, tasks
 * int 1..1000, wait interval 0..60 s, mode text strict or round-robin) -> setof
 * text: what that claim_work() returns, as lines
 */
Datum
tq_claim_lines_of_queues(PG_FUNCTION_ARGS)
{
	TqClaim *claims;
	int found;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	claims = tq_begin_claim_of_queues(fcinfo, &found);
	put_claims(fcinfo, claims, found);
	tq_end_claim(fcinfo, claims, found);
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
	tq_resolve_runs(fcinfo, 1, reports, n);
	outcomes = outcome_lines(outer, reports, n);
	tq_call_end();
	PG_RETURN_TEXT_P(outcomes);
}
