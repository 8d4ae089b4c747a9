/*
 * scope_api.c
 *	  SQL functions on scopes and credentials (doc/spec/taskcluster.md 7);
 *	  src/sql/scopes.sql has those that grant and revoke.
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

/* ---- credentials ---- */

PG_FUNCTION_INFO_V1(tq_assume);
PG_FUNCTION_INFO_V1(tq_sql_secret_changes);
PG_FUNCTION_INFO_V1(tq_sql_last_claim_ends);

/*
 * assume(credentials jsonb) -> void.  Replaces the scopes of the caller until
 * the transaction ends; raises TQ403 if the credentials are not valid
 * (doc/spec/taskcluster.md 5.7, 7).
 */
Datum
tq_assume(PG_FUNCTION_ARGS)
{
	TqCredentials *credentials = tq_arg_credentials(fcinfo, 0);
	TqClaimRights rights;

	if (credentials == NULL)
		tq_error_null("credentials");
	tq_call_begin(true);
	tq_credentials_open(credentials, tq_clock_now(), &rights);
	tq_access_assume(tq_credentials_client(credentials), rights.scopes,
					 rights.nscopes);
	tq_call_end();
	PG_RETURN_VOID();
}

/* ---- what the body of rotate_secret() calls ---- */

/* secret_changes(): before its rows are written, which others must not write */
Datum
tq_sql_secret_changes(PG_FUNCTION_ARGS)
{
	tq_secret_changes();
	PG_RETURN_VOID();
}

/* last_claim_ends() -> timestamptz */
Datum
tq_sql_last_claim_ends(PG_FUNCTION_ARGS)
{
	TimestampTz end;

	tq_spi_begin_part();
	end = tq_last_claim_ends(tq_clock_now());
	tq_spi_end_part();
	PG_RETURN_TIMESTAMPTZ(end);
}
