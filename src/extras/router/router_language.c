/*
 * router_language.c
 *	  The language of the functions of the extension tq_shard that run on shards:
 *	  PL/Proxy, with the SQLSTATE of a connection for a shard that does not answer,
 *	  and 55000 for one whose SQL is of another version.
 *
 * PL/Proxy gives the rows of a result one by one and keeps the others with the
 * cluster, where the next call frees them: in a select list, or behind a
 * cursor, rows would be lost.  So the rows of a set are all taken at once.
 *
 * Values are sent as text, which a shard reads by its own settings.  Times and
 * intervals are written in the styles that every session reads alike.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "commands/proclang.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(tq_shard_call);
PG_FUNCTION_INFO_V1(tq_shard_validate);

/* Returns the function in C that calls functions of PL/Proxy, or checks them. */
static PGFunction
plproxy_function(bool is_validator)
{
	HeapTuple tuple = SearchSysCache1(LANGNAME, CStringGetDatum("plproxy"));
	FmgrInfo info;
	Form_pg_language language;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("language \"plproxy\" does not exist")));
	language = (Form_pg_language) GETSTRUCT(tuple);
	fmgr_info(is_validator ? language->lanvalidator : language->lanplcallfoid,
			  &info);
	ReleaseSysCache(tuple);
	return info.fn_addr;
}

/*
 * Returns the SQLSTATE for an error of PL/Proxy about a connection, or 0 for
 * another one.  "[database]" is in the errors of libpq; without an answer of the
 * server there are no fields to print.
 */
static int
connection_state(const char *message)
{
	bool is_own = strncmp(message, "PL/Proxy function ", 18) == 0;

	if (is_own && (strstr(message, "): connect timeout") != NULL ||
				   strstr(message, "] PQconnect") != NULL))
		return ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION;
	if ((is_own && (strstr(message, "): [") != NULL ||
					strstr(message, "): query timeout") != NULL)) ||
		strstr(message, "] REMOTE (null): ") != NULL)
		return ERRCODE_CONNECTION_FAILURE;
	return 0;
}

/*
 * Returns whether an error is that of a shard whose SQL is of another version: it has
 * no such function or view of tq, or the result has other columns.
 */
static bool
is_of_another_version(int state, const char *message)
{
	if (state == ERRCODE_UNDEFINED_FUNCTION ||
		state == ERRCODE_UNDEFINED_TABLE)
	{
		message = strstr(message, "] REMOTE ERROR: ");
		return message != NULL && (strstr(message, "tq.") != NULL ||
								   strstr(message, "tq_internal.") != NULL);
	}
	return state == ERRCODE_INTERNAL_ERROR &&
		   strncmp(message, "PL/Proxy function ", 18) == 0 &&
		   (strstr(message, "fields from remote end") != NULL ||
			strstr(message, "does not exists in result") != NULL ||
			strstr(message, "single field function but got record") != NULL);
}

/* Gives an error of PL/Proxy the SQLSTATE and the hint of what it is about. */
static void
explain(ErrorData *error)
{
	int state = error->sqlerrcode == ERRCODE_INTERNAL_ERROR
					? connection_state(error->message)
					: 0;

	if (is_of_another_version(error->sqlerrcode, error->message))
	{
		error->sqlerrcode = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
		error->hint = pstrdup(
			"The shard has SQL of another version.  Run ALTER EXTENSION tq UPDATE on each shard, and then ALTER EXTENSION tq_shard UPDATE on the router.");
	}
	else if (state != 0)
	{
		error->sqlerrcode = state;
		error->hint = pstrdup(
			state == ERRCODE_CONNECTION_FAILURE
				? "The shard may have done what was called.  tq_shard.status() shows which shards answer."
				: "The shard has done nothing.  tq_shard.status() shows which shards answer; tq_shard.set_connection() says where one is now.");
	}
}

/* ---- values ---- */

/*
 * Has times and intervals written in the styles that every session reads alike;
 * returns the nest level of the settings, or 0 if these are as they should be.
 * After an error, the end of the transaction restores them.
 */
static int
set_styles(void)
{
	int nest;

	if (DateStyle == USE_ISO_DATES && IntervalStyle == INTSTYLE_POSTGRES)
		return 0;
	nest = NewGUCNestLevel();
	(void) set_config_option("datestyle", "ISO", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("intervalstyle", "postgres", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return nest;
}

/* Adds a value of a set to the result. */
static void
router_language_put_value(const ReturnSetInfo *result, bool is_row,
						  Datum value, bool is_null)
{
	HeapTupleHeader header;
	HeapTupleData tuple;

	if (!is_row)
	{
		tuplestore_putvalues(result->setResult, result->setDesc, &value,
							 &is_null);
		return;
	}
	header = DatumGetHeapTupleHeader(value);
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = header;
	tuplestore_puttuple(result->setResult, &tuple);
}

/* Calls a function that returns a set until it has no more rows. */
static void
call_set(PGFunction call, FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	bool is_row = type_is_rowtype(get_func_rettype(fcinfo->flinfo->fn_oid));
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext row = AllocSetContextCreate(outer, "tq_shard row",
											  ALLOCSET_DEFAULT_SIZES);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	MemoryContextSwitchTo(row);
	for (;;)
	{
		Datum value;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(row);
		fcinfo->isnull = false;
		result->isDone = ExprSingleResult;
		value = call(fcinfo);
		if (result->isDone != ExprMultipleResult)
			break;
		router_language_put_value(result, is_row, value, fcinfo->isnull);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(row);
	result->isDone = ExprSingleResult; /* as materialize mode wants it */
	fcinfo->isnull = true;
}

/* Calls a function of PL/Proxy. */
static Datum
call_proxy(FunctionCallInfo fcinfo)
{
	static PGFunction call = NULL;
	int nest = set_styles();
	Datum result = (Datum) 0;

	if (call == NULL)
		call = plproxy_function(false);
	if (fcinfo->flinfo->fn_retset)
		call_set(call, fcinfo);
	else
		result = call(fcinfo);
	if (nest > 0)
		AtEOXact_GUC(true, nest);
	return result;
}

/*
 * Calls a function of the language tq_shard: PL/Proxy with other SQLSTATEs.
 * Nothing is caught, so there is no subtransaction.
 */
Datum
tq_shard_call(PG_FUNCTION_ARGS)
{
	MemoryContext context = CurrentMemoryContext;
	volatile Datum result = (Datum) 0;

	PG_TRY();
	{
		result = call_proxy(fcinfo);
	}
	PG_CATCH();
	{
		int state = geterrcode();

		if (state == ERRCODE_INTERNAL_ERROR ||
			state == ERRCODE_UNDEFINED_FUNCTION ||
			state == ERRCODE_UNDEFINED_TABLE)
		{
			ErrorData *error;

			/* Raise the error that PL/Proxy has raised, with more to it. */
			MemoryContextSwitchTo(context);
			error = CopyErrorData();
			explain(error);
			FlushErrorState();
			ReThrowError(error);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	return result;
}

/* Checks a function of the language tq_shard, as PL/Proxy does. */
Datum
tq_shard_validate(PG_FUNCTION_ARGS)
{
	return plproxy_function(true)(fcinfo);
}
