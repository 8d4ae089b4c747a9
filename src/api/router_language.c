/*
 * router_language.c
 *	  The language of the functions of the extension tq_shard that run on shards:
 *	  PL/Proxy, with the SQLSTATE of a connection for a shard that does not answer.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "commands/proclang.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

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

static const char *
hint_of(int state)
{
	return state == ERRCODE_CONNECTION_FAILURE
			   ? "The shard may have done what was called.  tq_shard.status() shows which shards answer."
			   : "The shard has done nothing.  tq_shard.status() shows which shards answer; tq_shard.set_connection() says where one is now.";
}

/*
 * Raises the error that PL/Proxy has raised.  If it is about a connection, which
 * PL/Proxy calls an internal error, clients get the SQLSTATE of that and a hint.
 */
static void
raise_again(MemoryContext context)
{
	ErrorData *error;
	int state;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	state = connection_state(error->message);
	if (state != 0)
	{
		error->sqlerrcode = state;
		error->hint = pstrdup(hint_of(state));
	}
	FlushErrorState();
	ReThrowError(error);
}

/*
 * Calls a function of the language tq_shard: PL/Proxy with other SQLSTATEs.
 * Nothing is caught, so there is no subtransaction.
 */
Datum
tq_shard_call(PG_FUNCTION_ARGS)
{
	static PGFunction call = NULL;
	MemoryContext context = CurrentMemoryContext;
	volatile Datum result = (Datum) 0;

	if (call == NULL)
		call = plproxy_function(false);
	PG_TRY();
	{
		result = call(fcinfo);
	}
	PG_CATCH();
	{
		if (geterrcode() == ERRCODE_INTERNAL_ERROR)
			raise_again(context);
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
