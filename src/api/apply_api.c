/*
 * apply_api.c
 *	  The procedure that acts on all tasks that a filter finds.
 *
 * The tasks are found in a first transaction, by one snapshot, and kept in the
 * memory of the session.  Then each batch is a transaction (operations/apply.c).
 * What is done is done if the call ends early: the same call goes on from there,
 * because its filter finds what is left.  While it runs, its session shows in
 * pg_stat_activity how far it is.
 */
#include "postgres.h"

#include "utils/backend_status.h"
#include "utils/memutils.h"

#include "api.h"

PG_FUNCTION_INFO_V1(tq_apply);

#define PROGRESS_MS 1000 /* between messages about the progress */

/* The arguments, by number. */
enum
{
	ARG_FILTER,
	ARG_ACTION,
	ARG_ARGUMENTS,
	ARG_DRY_RUN,
	ARG_MAX
};

/* A call. */
typedef struct ApplyCall
{
	FunctionCallInfo fcinfo;
	char *action;
	bool is_dry;
	int64 max;
	bool is_begun; /* the tasks are found */
	int tried;     /* of them, or of those that were locked */
	TimestampTz next_progress;
	TqApply apply;
	Jsonb *counts; /* of a dry run */
} ApplyCall;

/* ---- arguments ---- */

static Jsonb *
apply_object(FunctionCallInfo fcinfo, int n, const char *name)
{
	if (PG_ARGISNULL(n))
		tq_error_null(name);
	return DatumGetJsonbPCopy(PG_GETARG_DATUM(n));
}

static void
read_arguments(ApplyCall *call)
{
	FunctionCallInfo fcinfo = call->fcinfo;

	call->apply.filter = apply_object(fcinfo, ARG_FILTER, "filter");
	call->action = tq_arg_text(fcinfo, ARG_ACTION, "action");
	if (PG_ARGISNULL(ARG_DRY_RUN))
		tq_error_null("dry_run");
	call->is_dry = PG_GETARG_BOOL(ARG_DRY_RUN);
	call->max = tq_arg_limit(fcinfo, ARG_MAX);
}

/* ---- progress ---- */

/* Shows how far the call is: in pg_stat_activity, and at times by a NOTICE. */
static void
show(void *arg)
{
	ApplyCall *call = arg;
	TimestampTz now = tq_clock_now();
	int n = call->apply.found.ids.n;
	int tried = call->apply.is_again ? n : call->tried;

	pgstat_report_activity(
		STATE_RUNNING,
		psprintf("CALL tq.apply: %s, %d of %d tasks tried, " INT64_FORMAT
				 " done",
				 call->action, tried, n, call->apply.done));
	if (now < call->next_progress)
		return;
	call->next_progress = tq_clock_add_ms(now, PROGRESS_MS);
	ereport(NOTICE,
			(errmsg("%d of %d tasks were tried", tried, n),
			 errdetail(INT64_FORMAT " of them are done.", call->apply.done)));
}

/* ---- transactions ---- */

/* Reads the action and the filter, and finds the tasks. */
static void
ask(ApplyCall *call)
{
	Jsonb *arguments = apply_object(call->fcinfo, ARG_ARGUMENTS, "arguments");

	tq_find_action(CStringGetTextDatum(call->action), arguments,
				   &call->apply.how);
	call->apply.action = (TqApplyAction) call->apply.how.number;
	tq_find_all(call->apply.filter, call->max, &call->apply.found);
	if (call->is_dry)
		call->counts = tq_find_counts(&call->apply.found);
}

/* The same, with errors that do not show how they were found. */
static void
ask_without_context(ApplyCall *call)
{
	MemoryContext context = CurrentMemoryContext;
	ErrorContextCallback *outer = error_context_stack;

	PG_TRY();
	{
		error_context_stack = NULL;
		ask(call);
		error_context_stack = outer;
	}
	PG_CATCH();
	{
		tq_throw_without_context(context);
	}
	PG_END_TRY();
}

/* Finds the tasks, and keeps them; of a dry run, how many are where. */
static void
find(ApplyCall *call)
{
	MemoryContextSwitchTo(call->apply.memory);
	tq_call_begin(call->is_dry);
	MemoryContextSwitchTo(call->apply.memory);
	ask_without_context(call);
	if (!call->is_dry)
		tq_audit_operator(call->fcinfo);
	tq_call_end();
	call->is_begun = true;
	call->next_progress = tq_clock_add_ms(tq_clock_now(), PROGRESS_MS);
}

/* Acts on the next of these tasks. */
static void
apply_next(ApplyCall *call, const TqIds *ids)
{
	int n = Min(tq_apply_size(&call->apply), ids->n - call->tried);

	tq_call_begin(false);
	tq_apply_batch(&call->apply, ids->ids + call->tried, n, tq_clock_now());
	tq_call_end();
	call->tried += n;
}

/*
 * Finds the tasks in the first batch, then acts on them, and on those that were
 * locked once more; returns whether there are more.
 */
static bool
make_batch(void *arg)
{
	ApplyCall *call = arg;
	TqApply *apply = &call->apply;

	if (!call->is_begun)
		find(call);
	else
		apply_next(call, apply->is_again ? &apply->locked : &apply->found.ids);
	if (!apply->is_again && call->tried == apply->found.ids.n)
	{
		apply->is_again = true;
		call->tried = 0;
	}
	return !apply->is_again || call->tried < apply->locked.n;
}

/* ---- the answer ---- */

static Jsonb *
refusals(const TqApply *apply)
{
	JsonbParseState *state = tq_json_begin();

	for (int i = 0; i < apply->nrefused; i++)
		tq_json_add_int(&state, apply->refused[i].why, apply->refused[i].n);
	return tq_json_end(&state);
}

static Datum
answer(ApplyCall *call)
{
	TupleDesc desc;
	Datum values[3];
	bool nulls[3] = {false, false, call->counts == NULL};

	if (get_call_result_type(call->fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum(call->is_dry ? call->apply.found.ids.n
										   : call->apply.done);
	values[1] = JsonbPGetDatum(refusals(&call->apply));
	values[2] = PointerGetDatum(call->counts);
	return HeapTupleGetDatum(
		heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

/*
 * CALL apply(filter jsonb, action text, arguments jsonb, dry_run bool, max
 * bigint 1.., tasks bigint, refused jsonb, found jsonb) -> how many tasks were
 * changed, how many were refused for which reason, and of a dry run how many
 * would be tried, by queue and state (doc/spec/policy.md 17.3).  Raises TQ400 in
 * a transaction block, unless it is a dry run.
 */
Datum
tq_apply(PG_FUNCTION_ARGS)
{
	MemoryContext outer = CurrentMemoryContext;
	ApplyCall call = {.fcinfo = fcinfo};
	Datum row;

	call.apply.memory = AllocSetContextCreate(CurrentMemoryContext, "tq apply",
											  ALLOCSET_DEFAULT_SIZES);
	call.apply.found.ids.memory = call.apply.memory;
	call.apply.locked.memory = call.apply.memory;
	read_arguments(&call);
	if (call.is_dry)
		find(&call);
	else
	{
		tq_require_commit(
			fcinfo, "apply", "It commits after each batch.",
			"Call it outside of a transaction block, or with dry_run.");
		tq_commit_batches(make_batch, show, &call);
	}
	MemoryContextSwitchTo(outer);
	row = answer(&call);
	MemoryContextDelete(call.apply.memory);
	PG_RETURN_DATUM(row);
}
