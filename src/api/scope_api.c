/*
 * scope_api.c
 *	  SQL functions that show scopes (doc/spec/taskcluster.md 7); scopes.sql has
 *	  those that grant and revoke them.
 */
#include "postgres.h"

#include "api.h"

PG_FUNCTION_INFO_V1(tq_sql_built_in_scopes);
PG_FUNCTION_INFO_V1(tq_current_scopes);
PG_FUNCTION_INFO_V1(tq_satisfies);

/*
 * built_in_scopes(role oid) -> text[]: what a role has by the extension; NULL: it
 * is none of the roles that have some
 */
Datum
tq_sql_built_in_scopes(PG_FUNCTION_ARGS)
{
	const char *const *scopes = tq_access_built_in(PG_GETARG_OID(0));
	int n = 0;

	if (scopes == NULL)
		PG_RETURN_NULL();
	while (scopes[n] != NULL)
		n++;
	PG_RETURN_DATUM(tq_array_text((char *const *) scopes, n));
}

/* current_scopes() -> text[], without those that others cover */
Datum
tq_current_scopes(PG_FUNCTION_ARGS)
{
	MemoryContext outer = CurrentMemoryContext;
	char **scopes;
	Datum result;
	int n;

	tq_call_begin(true);
	scopes = tq_access_scopes(&n);
	MemoryContextSwitchTo(outer);
	result = tq_array_text(scopes, n);
	tq_call_end();
	PG_RETURN_DATUM(result);
}

/*
 * satisfies(have text[], required text) -> bool: whether one of the scopes
 * satisfies the required one (7.1)
 */
Datum
tq_satisfies(PG_FUNCTION_ARGS)
{
	int n;
	char **have = tq_texts_of_array(tq_arg_array(fcinfo, 0, "have"), &n);
	char *required = tq_arg_text(fcinfo, 1, "required");

	for (int i = 0; i < n; i++)
	{
		if (have[i] == NULL)
			tq_error_null_element("have", i);
		if (tq_scope_satisfies(have[i], required))
			PG_RETURN_BOOL(true);
	}
	PG_RETURN_BOOL(false);
}
