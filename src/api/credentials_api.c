/*
 * credentials_api.c
 *	  SQL functions for credentials.
 */
#include "postgres.h"

#include "api.h"

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
