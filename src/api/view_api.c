/*
 * view_api.c
 *	  SQL functions that show rows of a view to callers with the scope: why,
 *	  top; and what views show to callers that may not see all.
 *
 * The views show everything, so only few roles may read them.  These functions
 * read the view with the rights of the owner, after a check of a scope, or the
 * view checks the scopes of the caller for each row.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "executor/spi.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

#include "api.h"

#define MAX_ROWS 1000

PG_FUNCTION_INFO_V1(tq_rate_until);
PG_FUNCTION_INFO_V1(tq_why);
PG_FUNCTION_INFO_V1(tq_may_see_statements);
PG_FUNCTION_INFO_V1(tq_top);
PG_FUNCTION_INFO_V1(tq_visible_rows);

/*
 * Returns the rows of a query with at most one parameter.  The server plans it
 * as it plans queries of users, because the views are too different for one
 * rule, but without JIT, which would cost a second for a screen of lines.
 */
static void
put_rows(FunctionCallInfo fcinfo, const char *query, int nargs, Oid type,
		 Datum value)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int nest;
	int code;

	tq_spi_become_owner();
	nest = NewGUCNestLevel();
	(void) set_config_option("jit", "off", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	code = SPI_execute_with_args(query, nargs, &type, &value, NULL, true, 0);
	if (code != SPI_OK_SELECT)
		elog(ERROR, "could not read a view: %s", SPI_result_code_string(code));
	for (uint64 i = 0; i < SPI_processed; i++)
		tuplestore_puttuple(rsinfo->setResult, SPI_tuptable->vals[i]);
	AtEOXact_GUC(true, nest);
}

/* Returns what a query finds about the task in the first argument. */
static Datum
show_task(FunctionCallInfo fcinfo, const char *query)
{
	const TqSlug *task_id = tq_arg_slug(fcinfo, 0, "task_id");

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	tq_require_read("status", task_id);
	(void) tq_task_get(task_id);
	put_rows(fcinfo, query, 1, tq_catalog_slugid_type(),
			 PointerGetDatum(task_id));
	tq_call_end();
	return (Datum) 0;
}

/* why(task_id slugid) -> (reason, detail, advice) */
Datum
tq_why(PG_FUNCTION_ARGS)
{
	return show_task(fcinfo,
					 "SELECT r.reason, r.detail, r.advice"
					 " FROM tq_internal.task_reason r WHERE r.task_id = $1"
					 " ORDER BY r.rank, r.detail");
}

/*
 * may_see_statements(role oid) -> bool
 *
 * Returns whether the caller may see what sessions of a role run.  The view
 * pg_stat_activity checks the effective role, which is the owner's while why()
 * reads it.
 */
Datum
tq_may_see_statements(PG_FUNCTION_ARGS)
{
	Oid caller = tq_spi_caller();

	PG_RETURN_BOOL(has_privs_of_role(caller, ROLE_PG_READ_ALL_STATS) ||
				   has_privs_of_role(caller, PG_GETARG_OID(0)));
}

/* rate_until(queue int) -> timestamptz; see tq_limits_rate_until() */
Datum
tq_rate_until(PG_FUNCTION_ARGS)
{
	TimestampTz until;

	tq_call_begin(true);
	until = tq_limits_rate_until(PG_GETARG_INT32(0), tq_clock_now());
	tq_call_end();
	if (until == 0)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(until);
}

/* top(max_rows int) -> lines of text; at most so many of each kind */
Datum
tq_top(PG_FUNCTION_ARGS)
{
	int max = tq_arg_int(fcinfo, 0, "max_rows", 1, MAX_ROWS);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	tq_call_begin(true);
	tq_access_require(tq_need("queue:health"));
	put_rows(fcinfo,
			 "SELECT s.line FROM tq_internal.screen s WHERE s.n <= $1"
			 " ORDER BY s.section, s.n",
			 1, INT4OID, Int32GetDatum(max));
	tq_call_end();
	return (Datum) 0;
}

/*
 * visible_x() -> rows of tq.x that the caller may see: those of the view of the
 * same name, which checks scopes for each
 */
Datum
tq_visible_rows(PG_FUNCTION_ARGS)
{
	char *view = get_func_name(fcinfo->flinfo->fn_oid);

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	put_rows(fcinfo, psprintf("SELECT * FROM " TQ_SCHEMA ".%s", view), 0,
			 InvalidOid, (Datum) 0);
	tq_call_end();
	return (Datum) 0;
}
