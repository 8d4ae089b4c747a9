/*
 * credentials_api.c
 *	  SQL functions for credentials.
 */
#include "postgres.h"

#include "fmgr.h"

#include "../rules/rules.h"
#include "../storage/registry.h"
#include "../util/util.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_assume);
PG_FUNCTION_INFO_V1(tq_rotate_secret);

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

/*
 * rotate_secret(revoke bool) -> void.  Makes a new secret for credentials; with
 * revoke, those that were issued before are refused from now on.
 */
Datum
tq_rotate_secret(PG_FUNCTION_ARGS)
{
	bool revoke;

	if (PG_ARGISNULL(0))
		tq_error_null("revoke");
	revoke = PG_GETARG_BOOL(0);
	tq_call_begin(false);
	tq_credentials_rotate(revoke, tq_clock_now());
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_VOID();
}
