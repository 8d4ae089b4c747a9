/*
 * sql_body.c
 *	  The languages of the functions of tq that are written in SQL: PL/pgSQL, in
 *	  a call of tq.
 *
 * A function that no hot path calls is written in one of
 *
 *	tq_read		it reads by one snapshot, also on a standby, and cannot write
 *	tq_call		it may write
 *	tq_client	it may write, and the audit trail shows it as a call of a client
 *	tq_operate	it may write, and the audit trail shows it as an act of an operator
 *
 * Like a function in C it keeps the extension from being dropped, has the
 * rights of the owner and a search_path that no object of another role is in
 * (util/spi.c), and its errors have no context of their own.  It is not SECURITY
 * DEFINER, because the scopes that count are those of the caller.
 *
 * The languages are not trusted, so that only a superuser creates a function in
 * one of them.  PL/pgSQL is required by the extension, and cannot be dropped
 * before it.
 *
 * Also the functions that bodies call: checks of arguments and scopes, and what
 * SQL cannot say.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "plpgsql.h"
#include "utils/elog.h"
#include "utils/memutils.h"

#include "api.h"

PG_FUNCTION_INFO_V1(tq_body_read);
PG_FUNCTION_INFO_V1(tq_body_call);
PG_FUNCTION_INFO_V1(tq_body_client);
PG_FUNCTION_INFO_V1(tq_body_operate);
PG_FUNCTION_INFO_V1(tq_body_validate);
PG_FUNCTION_INFO_V1(tq_sql_require);
PG_FUNCTION_INFO_V1(tq_sql_require_any);
PG_FUNCTION_INFO_V1(tq_sql_require_all);
PG_FUNCTION_INFO_V1(tq_sql_has_scope);
PG_FUNCTION_INFO_V1(tq_sql_caller);
PG_FUNCTION_INFO_V1(tq_sql_audit_task);
PG_FUNCTION_INFO_V1(tq_sql_not_null);
PG_FUNCTION_INFO_V1(tq_sql_element_not_null);
PG_FUNCTION_INFO_V1(tq_sql_arg_int);
PG_FUNCTION_INFO_V1(tq_sql_arg_max);
PG_FUNCTION_INFO_V1(tq_sql_arg_after);
PG_FUNCTION_INFO_V1(tq_sql_arg_queue);
PG_FUNCTION_INFO_V1(tq_sql_arg_worker_name);
PG_FUNCTION_INFO_V1(tq_sql_clip);
PG_FUNCTION_INFO_V1(tq_sql_nearest);
PG_FUNCTION_INFO_V1(tq_sql_microseconds);
PG_FUNCTION_INFO_V1(tq_sql_json_time);
PG_FUNCTION_INFO_V1(tq_sql_definitions);

/* ---- the languages ---- */

/* Functions of PL/pgSQL; NULL: not found yet. */
static struct
{
	PGFunction call;     /* calls a function */
	PGFunction validate; /* checks a function that is created */
	PLpgSQL_function *(*compile)(FunctionCallInfo fcinfo, bool for_validator);
} plpgsql;

/*
 * Finds the functions of PL/pgSQL, which loads it.  The postmaster does that
 * once for all sessions, the first call of each of which would take longer.
 */
void
tq_body_init(void)
{
	static const char library[] = "$libdir/plpgsql";

	plpgsql.compile = load_external_function(library, "plpgsql_compile", true,
											 NULL);
	plpgsql.validate = load_external_function(library, "plpgsql_validator",
											  true, NULL);
	plpgsql.call = load_external_function(library, "plpgsql_call_handler",
										  true, NULL);
}

/* What a body has noted for the audit trail, by audit_task(). */
typedef struct BodyNotes
{
	bool is_set;
	int n; /* tasks: 0 or 1 */
	TqActRun run;
} BodyNotes;

static BodyNotes *noted = NULL; /* of the body that runs */

/*
 * Runs a body.  That of a function which only reads is marked as read-only, as
 * PL/pgSQL marks functions that are not VOLATILE: its statements take no
 * snapshots, and none may write.  *own is what it notes for the audit trail.
 */
static Datum
sql_body_run(FunctionCallInfo fcinfo, bool read_only, BodyNotes *own)
{
	MemoryContext context = CurrentMemoryContext;
	BodyNotes *outer = noted;
	volatile Datum result = (Datum) 0;

	PG_TRY();
	{
		error_context_stack = NULL;
		noted = own;
		if (read_only)
			plpgsql.compile(fcinfo, false)->fn_readonly = true;
		result = plpgsql.call(fcinfo);
	}
	PG_CATCH();
	{
		noted = outer;
		tq_throw_without_context(context);
	}
	PG_END_TRY();
	noted = outer;
	return result;
}

/*
 * Calls a function, which is audited if tq.audit has that value or a later one;
 * TQ_AUDIT_OFF: never.  The result is in the memory of the caller.
 */
static Datum
sql_body_call(FunctionCallInfo fcinfo, bool read_only, TqAuditSetting audit)
{
	MemoryContext outer = CurrentMemoryContext;
	BodyNotes own = {0};
	Datum result;

	if (plpgsql.call == NULL)
		tq_body_init();
	tq_call_begin(read_only);
	tq_spi_begin_body();
	MemoryContextSwitchTo(outer);
	result = sql_body_run(fcinfo, read_only, &own);
	tq_spi_end_body();
	if (audit != TQ_AUDIT_OFF && tq_audit >= audit)
	{
		if (own.is_set)
			tq_audit_call_runs(fcinfo, &own.run, own.n);
		else
			tq_audit_call(fcinfo);
	}
	tq_call_end();
	return result;
}

/* Calls a function of the language tq_read. */
Datum
tq_body_read(PG_FUNCTION_ARGS)
{
	return sql_body_call(fcinfo, true, TQ_AUDIT_OFF);
}

/* Calls a function of the language tq_call. */
Datum
tq_body_call(PG_FUNCTION_ARGS)
{
	return sql_body_call(fcinfo, false, TQ_AUDIT_OFF);
}

/* Calls a function of the language tq_client. */
Datum
tq_body_client(PG_FUNCTION_ARGS)
{
	return sql_body_call(fcinfo, false, TQ_AUDIT_ALL);
}

/* Calls a function of the language tq_operate. */
Datum
tq_body_operate(PG_FUNCTION_ARGS)
{
	return sql_body_call(fcinfo, false, TQ_AUDIT_OPERATORS);
}

/* Checks a function of any of these languages, as PL/pgSQL does. */
Datum
tq_body_validate(PG_FUNCTION_ARGS)
{
	if (plpgsql.validate == NULL)
		tq_body_init();
	return plpgsql.validate(fcinfo);
}

/* ---- scopes and arguments ---- */

/* Returns a text that a body gives, which is never NULL. */
static char *
given(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		elog(ERROR, "a body gives no argument %d", n + 1);
	return text_to_cstring(PG_GETARG_TEXT_PP(n));
}

/* require(scope text): raises TQ403 unless the caller has that scope */
Datum
tq_sql_require(PG_FUNCTION_ARGS)
{
	char *scope = given(fcinfo, 0);

	tq_access_require(tq_need("%s", scope));
	PG_RETURN_VOID();
}

/* Returns the need of the scopes that an argument lists. */
static TqNeed *
need_of(FunctionCallInfo fcinfo, TqNeedKind kind)
{
	TqNeed *need;
	char **scopes;
	int n;

	if (PG_ARGISNULL(0) || array_contains_nulls(PG_GETARG_ARRAYTYPE_P(0)))
		elog(ERROR, "a body requires no scope");
	scopes = tq_texts_of_array(PG_GETARG_ARRAYTYPE_P(0), &n);
	need = tq_need_list(kind, n);
	for (int i = 0; i < n; i++)
		tq_need_add(need, tq_need("%s", scopes[i]));
	return need;
}

/* require_any(VARIADIC scopes text[]): raises TQ403 unless it has one of them */
Datum
tq_sql_require_any(PG_FUNCTION_ARGS)
{
	tq_access_require(need_of(fcinfo, TQ_NEED_ANY));
	PG_RETURN_VOID();
}

/* require_all(VARIADIC scopes text[]): raises TQ403 unless it has all of them */
Datum
tq_sql_require_all(PG_FUNCTION_ARGS)
{
	tq_access_require(need_of(fcinfo, TQ_NEED_ALL));
	PG_RETURN_VOID();
}

/* has_scope(scope text) -> bool */
Datum
tq_sql_has_scope(PG_FUNCTION_ARGS)
{
	char *scope = given(fcinfo, 0);

	PG_RETURN_BOOL(tq_access_meets(tq_need("%s", scope)));
}

/* caller() -> regrole, whose scopes count unless others were assumed */
Datum
tq_sql_caller(PG_FUNCTION_ARGS)
{
	PG_RETURN_OID(tq_spi_caller());
}

/*
 * audit_task(task_id tq.slugid): the audit trail shows the call with this task;
 * NULL: not at all
 */
Datum
tq_sql_audit_task(PG_FUNCTION_ARGS)
{
	if (noted == NULL)
		elog(ERROR, "this function is called by bodies only");
	noted->is_set = true;
	noted->n = PG_ARGISNULL(0) ? 0 : 1;
	noted->run.run_id = TQ_NO_RUN;
	if (noted->n > 0)
		noted->run.task_id = *PG_GETARG_TQ_SLUG_P(0);
	PG_RETURN_VOID();
}

/* not_null(value "any", name text): raises TQ400 for an argument that is NULL */
Datum
tq_sql_not_null(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		tq_error_null(given(fcinfo, 1));
	PG_RETURN_VOID();
}

/*
 * element_not_null(value "any", name text, n int): the same for an element of
 * an array, the first of which is 1
 */
Datum
tq_sql_element_not_null(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		tq_error_null_element(given(fcinfo, 1), PG_GETARG_INT32(2) - 1);
	PG_RETURN_VOID();
}

/*
 * arg_int(value int, name text, min int, max int) -> int: an argument that is
 * within these limits
 */
Datum
tq_sql_arg_int(PG_FUNCTION_ARGS)
{
	char *name = given(fcinfo, 1);

	PG_RETURN_INT32(
		tq_arg_int(fcinfo, 0, name, PG_GETARG_INT32(2), PG_GETARG_INT32(3)));
}

/* arg_max(max int) -> int: the size of a page */
Datum
tq_sql_arg_max(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(tq_arg_max(fcinfo, 0));
}

/* arg_after(after tq.slugid) -> tq.slugid, after which a page begins */
Datum
tq_sql_arg_after(PG_FUNCTION_ARGS)
{
	TqSlug *after = palloc(sizeof(TqSlug));

	*after = tq_arg_after(fcinfo, 0);
	PG_RETURN_TQ_SLUG_P(after);
}

/* arg_queue(task_queue_id text) -> text: the name of a task queue */
Datum
tq_sql_arg_queue(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(tq_arg_task_queue_id(fcinfo, 0)));
}

/* arg_worker_name(value text, name text) -> text: of a worker, or its group */
Datum
tq_sql_arg_worker_name(PG_FUNCTION_ARGS)
{
	char *value = tq_arg_worker_name(fcinfo, 0, given(fcinfo, 1));

	PG_RETURN_TEXT_P(cstring_to_text(value));
}

/* ---- values ---- */

/* clip(value text) -> text: as an error repeats it */
Datum
tq_sql_clip(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(
		cstring_to_text(tq_error_clip(text_to_cstring(PG_GETARG_TEXT_PP(0)))));
}

/* nearest(given text, known text[]) -> text: the known one that is meant */
Datum
tq_sql_nearest(PG_FUNCTION_ARGS)
{
	int n;
	char **known = tq_texts_of_array(PG_GETARG_ARRAYTYPE_P(1), &n);
	const char *meant = tq_error_nearest(text_to_cstring(PG_GETARG_TEXT_PP(0)),
										 known, n);

	if (meant == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(meant));
}

/* microseconds(t timestamptz) -> bigint: since 2000, as pages have them */
Datum
tq_sql_microseconds(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(PG_GETARG_TIMESTAMPTZ(0));
}

/* json_time(t timestamptz) -> text: as JSON has it */
Datum
tq_sql_json_time(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(tq_clock_text(PG_GETARG_TIMESTAMPTZ(0))));
}

/* ---- tasks ---- */

/*
 * definitions(tasks bigint[]) -> jsonb of each of them, in their order.  What is
 * built for a row is freed before the next one, so that a page needs little
 * memory.
 */
Datum
tq_sql_definitions(PG_FUNCTION_ARGS)
{
	ArrayType *ids = PG_GETARG_ARRAYTYPE_P(0);
	MemoryContext outer;
	MemoryContext row;
	TqTaskDefinition *tasks;
	int n;

	if (array_contains_nulls(ids))
		elog(ERROR, "a body gives a task that is NULL");
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	tq_spi_begin_part();
	outer = CurrentMemoryContext;
	row = AllocSetContextCreate(outer, "tq definition",
								ALLOCSET_DEFAULT_SIZES);
	tasks = tq_definitions_by_id((int64 *) ARR_DATA_PTR(ids),
								 ArrayGetNItems(ARR_NDIM(ids), ARR_DIMS(ids)),
								 &n);
	for (int i = 0; i < n; i++)
	{
		MemoryContextSwitchTo(row);
		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo,
				   (Datum[]){JsonbPGetDatum(tq_definition_json(&tasks[i]))},
				   (bool[]){false});
		MemoryContextReset(row);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(row);
	tq_spi_end_part();
	return (Datum) 0;
}
