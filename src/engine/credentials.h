/*
 * credentials.h
 *	  Credentials of claims: issues and verifies them.
 */
#ifndef TQ_CREDENTIALS_H
#define TQ_CREDENTIALS_H

#include "datatype/timestamp.h"
#include "utils/array.h"
#include "utils/jsonb.h"

#include "../util/compat.h"
#include "../util/slugid.h"

/* A claim, as the worker gets it. */
typedef struct TqClaim
{
	TqSlug task_id;
	int run_id;
	const char *worker_group;
	const char *worker_id;
	TimestampTz started; /* the run */
	TimestampTz taken_until;
	Jsonb *payload;     /* NULL: left out */
	ArrayType *scopes;  /* of the task; NULL: none */
	Jsonb *credentials; /* NULL: none */
	const char *queue;  /* of a claim from several queues; NULL: left out */
} TqClaim;

extern bool tq_credentials_are_wanted(bool has_given, int32 queue);
extern void tq_credentials_issue(TqClaim *claims, int n, TimestampTz now);

/* Credentials as a client gives them: strings that need not end in a zero. */
typedef struct TqCredentials
{
	JsonbValue client_id;
	JsonbValue token;
	JsonbValue certificate;
} TqCredentials;

/* What credentials that are valid give. */
typedef struct TqClaimRights
{
	TqSlug task_id;
	int run_id;
	int32 worker; /* that has, or had, the run */
	char **scopes;
	int nscopes;
} TqClaimRights;

extern bool tq_credentials_read(const JsonbContainer *json,
								TqCredentials *credentials);
extern char *tq_credentials_client(const TqCredentials *given);
extern bool tq_credentials_verify(const TqCredentials *given, TimestampTz now,
								  TqClaimRights *rights);
extern bool tq_claim_rights_are_for(const TqClaimRights *rights,
									const TqSlug *task_id, int run_id);
extern int32 tq_credentials_require(const TqCredentials *given,
									const TqSlug *task_id, int run_id,
									TimestampTz now);
pg_noreturn extern void tq_error_credentials(void);
extern void tq_credentials_open(const TqCredentials *given, TimestampTz now,
								TqClaimRights *rights);
extern void tq_credentials_rotate(bool revoke, TimestampTz now);

#endif /* TQ_CREDENTIALS_H */
