/*
 * credentials.c
 *	  Credentials of claims: issues and verifies them
 *	  (doc/spec/taskcluster.md 5.7).
 *
 * Credentials are {clientId, accessToken, certificate}.  The certificate is a
 * JSON text with the keys of Taskcluster's: version, scopes, start, expiry,
 * seed, issuer, and at its end the signature.  The signature is the
 * HMAC-SHA-256, by the secret of the database (access_table.c), of
 *
 *	the database: identifier of the system, Oid; lengths of the next two;
 *	clientId; accessToken; the certificate up to the signature.
 *
 * So nothing of what the client gives is parsed before its signature has been
 * checked, no byte of it can be altered, and no claim needs a row.  The access
 * token is random, and not in the certificate: a certificate that was shown is
 * of no use alone.  Taskcluster computes the token from the seed; that would
 * take a second HMAC.
 *
 * A signature proves that this database, or the server that it is a copy of,
 * has issued the credentials, but not that the transaction of the claim was
 * committed, nor that this server has seen it: a standby that was promoted may
 * lack the last commits of the old primary, which has the same secret.  So
 * credentials are valid only while table run has the run that they are for,
 * with
 *
 *	- the same worker: the clientId must be the one that the row gives;
 *	- the same start of the run: the seed;
 *	- a taken_until that is not earlier than the expiry.
 *
 * The start is the epoch, and a better one than the timeline: the claims of the
 * old primary that a standby has seen must remain valid after its promotion,
 * those that it has not seen must not, and both are of the same timeline.  A
 * claim that the new primary never saw is refused, because either the run was
 * not claimed here, or it was claimed again, at another time; or it was only
 * prolonged on the old primary, and ends earlier here.  Two claims of one run
 * have the same start only after defer_task().  If the second one was lost
 * with the old primary, its credentials become valid once the same worker has
 * claimed the run again, for at least as long: they give that worker nothing
 * that it does not have.
 *
 * Credentials expire when the claim did at the time they were issued.  Neither
 * reclaim_task() nor the end of the run revokes them.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "common/base64.h"
#include "common/hmac.h"
#include "common/sha2.h"
#include "utils/json.h"

#include "../storage/registry.h"
#include "rules.h"

/* ---- signatures ---- */

#define HMAC_BYTES PG_SHA256_DIGEST_LENGTH
#define HMAC_CHARS 44 /* in base64 */

StaticAssertDecl(HMAC_CHARS == (HMAC_BYTES + 2) / 3 * 4,
				 "the length of a signature in base64");

/* Returns a context for signatures, which hmac_end() frees. */
static pg_hmac_ctx *
hmac_begin(void)
{
	return pg_hmac_create(PG_SHA256);
}

/* Sets signature[] to HMAC_CHARS characters of base64. */
static void
hmac_sign(pg_hmac_ctx *context, const uint8 *key, size_t nkey,
		  const char *message, size_t len, char *signature)
{
	uint8 bytes[HMAC_BYTES];

	if (pg_hmac_init(context, key, nkey) < 0 ||
		pg_hmac_update(context, (const uint8 *) message, len) < 0 ||
		pg_hmac_final(context, bytes, sizeof(bytes)) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not compute a signature"),
				 errdetail("HMAC-SHA-256 failed: %s.", pg_hmac_error(context)),
				 errhint(
					 "If the server uses OpenSSL, check its configuration.")));
	TqBase64(bytes, sizeof(bytes), signature, HMAC_CHARS);
}

/* Frees a context. */
static void
hmac_end(pg_hmac_ctx *context)
{
	pg_hmac_free(context);
}

/*
 * Returns whether bytes are the same, in a time that does not depend on where
 * they differ.  timingsafe_bcmp() is not in every minor version.
 */
static bool
same_bytes(const char *a, const char *b, size_t len)
{
	volatile uint8 difference = 0;

	for (size_t i = 0; i < len; i++)
		difference |= (uint8) a[i] ^ (uint8) b[i];
	return difference == 0;
}

/* Fills bytes from the server's strong source of random numbers. */
static void
random_bytes(uint8 *bytes, size_t len)
{
	if (!pg_strong_random(bytes, len))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random bytes"),
				 errdetail("The server's source of random numbers failed."),
				 errhint("See the log of the operating system.")));
}

#define TOKEN_BYTES 33 /* makes base64 without padding */
#define TOKEN_CHARS 44
#define SEED_CHARS 16
#define CERTIFICATE_END "\"}" /* after the signature */

/* ---- text ---- */

static void
credentials_put(StringInfo text, const char *string)
{
	appendBinaryStringInfo(text, string, strlen(string));
}

static void
credentials_put_number(StringInfo text, int64 number)
{
	enlargeStringInfo(text, MAXINT8LEN + 1);
	text->len += pg_lltoa(number, text->data + text->len);
}

/* Appends <taskId>/<runId>. */
static void
credentials_put_run(StringInfo text, const TqClaim *claim)
{
	enlargeStringInfo(text, TQ_SLUG_CHARS + 1);
	tq_slug_print(&claim->task_id, text->data + text->len);
	text->len += TQ_SLUG_CHARS;
	appendStringInfoChar(text, '/');
	credentials_put_number(text, claim->run_id);
}

/* Returns a time in milliseconds since 1970, as JavaScript has it. */
static int64
unix_ms(TimestampTz t)
{
	const int64 days = POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE;

	return t / 1000 + days * SECS_PER_DAY * 1000;
}

static void
put_client_id(StringInfo text, const TqClaim *claim, int64 expiry)
{
	credentials_put(text, "task-client/");
	credentials_put_run(text, claim);
	credentials_put(text, "/on/");
	credentials_put(text, claim->worker_group);
	appendStringInfoChar(text, '/');
	credentials_put(text, claim->worker_id);
	credentials_put(text, "/until/");
	credentials_put_number(text, expiry / 1000);
}

/* Appends the start of a run in hexadecimal digits. */
static void
put_seed(StringInfo text, TimestampTz started)
{
	uint64 bits = (uint64) started;

	for (int shift = 60; shift >= 0; shift -= 4)
		appendStringInfoCharMacro(text,
								  "0123456789abcdef"[bits >> shift & 15]);
}

static void
put_task_scopes(StringInfo text, ArrayType *array)
{
	int n;
	char **scopes = tq_texts_of_array(array, &n);

	for (int i = 0; i < n; i++)
	{
		appendStringInfoChar(text, ',');
		escape_json(text, scopes[i]);
	}
}

/* Appends the certificate of a claim up to its signature. */
static void
put_certificate(StringInfo text, const TqClaim *claim, int64 start,
				int64 expiry)
{
	credentials_put(text, "{\"version\":1,\"scopes\":");
	/* Append the scopes of a claim, and then those of its task. */
	credentials_put(text, "[\"queue:reclaim-task:");
	credentials_put_run(text, claim);
	credentials_put(text, "\",\"queue:resolve-task:");
	credentials_put_run(text, claim);
	credentials_put(text, "\",\"queue:create-artifact:");
	credentials_put_run(text, claim);
	appendStringInfoChar(text, '"');
	if (claim->scopes != NULL)
		put_task_scopes(text, claim->scopes);
	appendStringInfoChar(text, ']');
	credentials_put(text, ",\"start\":");
	credentials_put_number(text, start);
	credentials_put(text, ",\"expiry\":");
	credentials_put_number(text, expiry);
	credentials_put(text, ",\"seed\":\"");
	put_seed(text, claim->started);
	credentials_put(text, "\",\"issuer\":\"tq\",\"signature\":\"");
}

/* ---- what is signed ---- */

/* The first bytes of what is signed; they never leave the server. */
typedef struct CredentialsHeader
{
	uint64 system;
	uint32 database;
	uint32 client_id; /* lengths */
	uint32 token;
	uint32 unused;
} CredentialsHeader;

/* Sets the first bytes of what is signed. */
static void
set_header(StringInfo text, int client_id, int token)
{
	CredentialsHeader header = {.system = GetSystemIdentifier(),
								.database = MyDatabaseId,
								.client_id = client_id,
								.token = token,
								.unused = 0};

	memcpy(text->data, &header, sizeof(header));
}

/* Begins what is signed, without its header. */
static void
begin_text(StringInfo text)
{
	resetStringInfo(text);
	appendStringInfoSpaces(text, sizeof(CredentialsHeader));
}

/* ---- issue ---- */

/* What issues the credentials of one call. */
typedef struct Issuer
{
	pg_hmac_ctx *hmac;
	TqSecret secret;
	int64 start;
	StringInfoData text;
} Issuer;

static JsonbPair
pair(const char *key, const char *value, int len, uint32 order)
{
	return (
		JsonbPair){.key = {.type = jbvString,
						   .val.string = {strlen(key),
										  unconstify(char *, key)}},
				   .value = {.type = jbvString,
							 .val.string = {len, unconstify(char *, value)}},
				   .order = order};
}

/* Returns credentials whose parts follow each other in a text. */
static Jsonb *
json_of(const char *text, int client_id, int certificate)
{
	const char *token = text + client_id;
	JsonbPair pairs[3] = {pair("clientId", text, client_id, 0),
						  pair("accessToken", token, TOKEN_CHARS, 1),
						  pair("certificate", token + TOKEN_CHARS, certificate,
							   2)};
	JsonbValue object = {.type = jbvObject,
						 .val.object = {.nPairs = 3, .pairs = pairs}};

	return JsonbValueToJsonb(&object);
}

/*
 * Returns the credentials of a claim, with TOKEN_BYTES random bytes as their
 * token.
 */
static Jsonb *
issue(Issuer *issuer, const TqClaim *claim, const uint8 *random)
{
	StringInfo text = &issuer->text;
	int64 expiry = unix_ms(claim->taken_until);
	int client_id;
	int before;
	char *token;

	begin_text(text);
	put_client_id(text, claim, expiry);
	client_id = text->len - (int) sizeof(CredentialsHeader);
	/* Append random characters that are safe in a URL. */
	enlargeStringInfo(text, TOKEN_CHARS);
	token = text->data + text->len;
	TqBase64(random, TOKEN_BYTES, token, TOKEN_CHARS);
	for (int i = 0; i < TOKEN_CHARS; i++)
	{
		if (token[i] == '+')
			token[i] = '-';
		else if (token[i] == '/')
			token[i] = '_';
	}
	text->len += TOKEN_CHARS;
	before = text->len;
	put_certificate(text, claim, issuer->start, expiry);
	set_header(text, client_id, TOKEN_CHARS);
	enlargeStringInfo(text, HMAC_CHARS);
	hmac_sign(issuer->hmac, issuer->secret.bytes, TQ_SECRET_BYTES, text->data,
			  text->len, text->data + text->len);
	text->len += HMAC_CHARS;
	credentials_put(text, CERTIFICATE_END);
	return json_of(text->data + sizeof(CredentialsHeader), client_id,
				   text->len - before);
}

/*
 * Returns whether the caller gets credentials for claims of a queue.  A caller
 * that has given some gets new ones when it prolongs the claim.
 */
bool
tq_credentials_are_wanted(bool has_given, int32 queue)
{
	switch ((TqCredentialsSetting) tq_credentials)
	{
		case TQ_CREDENTIALS_ON:
			return true;
		case TQ_CREDENTIALS_AUTO:
			return has_given || !tq_may_handle_runs("resolve-task", queue);
		case TQ_CREDENTIALS_OFF:
			break;
	}
	return false;
}

/*
 * Issues the credentials of claims that start or are prolonged now.  They
 * expire with the claims.
 *
 * Instructions for claim 1 and resolve 1: 214,000 without, 261,000 with
 * credentials; for claim 100 and resolve 100: 4.5 and 7.9 million, of which
 * HMAC is four fifths.  So only those get them who need them.
 */
void
tq_credentials_issue(TqClaim *claims, int n, TimestampTz now)
{
	Issuer issuer = {.start = unix_ms(now)};
	uint8 *random;

	random = palloc(TOKEN_BYTES * n);
	random_bytes(random, TOKEN_BYTES * n);
	issuer.secret = *tq_secret_current();
	issuer.hmac = hmac_begin();
	initStringInfo(&issuer.text);
	for (int i = 0; i < n; i++)
		claims[i].credentials = issue(&issuer, &claims[i],
									  random + TOKEN_BYTES * i);
	hmac_end(issuer.hmac);
	explicit_bzero(&issuer.secret, sizeof(issuer.secret));
	pfree(issuer.text.data);
	pfree(random);
}

/* ---- verify ---- */

static bool
read_string(const JsonbContainer *json, const char *key, JsonbValue *into)
{
	JsonbValue *value = tq_json_member(json, key);

	if (value != NULL)
		*into = *value;
	return value != NULL && value->type == jbvString;
}

/* Reads credentials; returns false if they do not have the three strings. */
bool
tq_credentials_read(const JsonbContainer *json, TqCredentials *credentials)
{
	return JsonContainerIsObject(json) && JsonContainerSize(json) == 3 &&
		   read_string(json, "clientId", &credentials->client_id) &&
		   read_string(json, "accessToken", &credentials->token) &&
		   read_string(json, "certificate", &credentials->certificate);
}

/* Returns the clientId, which says nothing unless they were verified. */
char *
tq_credentials_client(const TqCredentials *given)
{
	return pnstrdup(given->client_id.val.string.val,
					given->client_id.val.string.len);
}

static void
credentials_put_value(StringInfo text, const JsonbValue *value)
{
	appendBinaryStringInfo(text, value->val.string.val, value->val.string.len);
}

/* Returns whether a secret that is still good makes this signature. */
static bool
is_signature(const char *signature, StringInfo text, TimestampTz now)
{
	pg_hmac_ctx *hmac = hmac_begin();
	bool is_good = false;
	int n;
	const TqSecret *secrets = tq_secrets(&n);

	for (int i = 0; i < n; i++)
	{
		char right[HMAC_CHARS];

		if (secrets[i].until != 0 && secrets[i].until <= now)
			continue;
		hmac_sign(hmac, secrets[i].bytes, TQ_SECRET_BYTES, text->data,
				  text->len, right);
		if (same_bytes(signature, right, HMAC_CHARS))
			is_good = true;
	}
	hmac_end(hmac);
	return is_good;
}

/* Returns whether this database has issued credentials as they are. */
static bool
is_signed(const TqCredentials *given, TimestampTz now)
{
	const int end = strlen(CERTIFICATE_END);
	const char *certificate = given->certificate.val.string.val;
	int body = given->certificate.val.string.len - HMAC_CHARS - end;
	StringInfoData text;
	bool is_good;

	if (body <= 0 ||
		memcmp(certificate + body + HMAC_CHARS, CERTIFICATE_END, end) != 0)
		return false;
	/* Make what should be signed of credentials. */
	initStringInfo(&text);
	begin_text(&text);
	credentials_put_value(&text, &given->client_id);
	credentials_put_value(&text, &given->token);
	appendBinaryStringInfo(&text, given->certificate.val.string.val, body);
	set_header(&text, given->client_id.val.string.len,
			   given->token.val.string.len);
	is_good = is_signature(certificate + body, &text, now);
	pfree(text.data);
	return is_good;
}

/* What a certificate says. */
typedef struct Certificate
{
	int64 expiry;
	JsonbValue seed;
} Certificate;

/*
 * Reads a certificate whose signature is right; returns false for one that
 * another version has written in another way.
 */
static bool
read_certificate(const JsonbValue *given, Certificate *certificate,
				 TqClaimRights *rights)
{
	char *text = pnstrdup(given->val.string.val, given->val.string.len);
	Jsonb *json = DatumGetJsonbP(
		DirectFunctionCall1(jsonb_in, CStringGetDatum(text)));
	JsonbValue *expiry = tq_json_get(json, "expiry");
	JsonbValue *seed = tq_json_get(json, "seed");
	JsonbValue *scopes = tq_json_get(json, "scopes");
	TqJsonIterator all;

	if (expiry == NULL || seed == NULL || scopes == NULL ||
		!tq_json_whole_number(expiry, 0, PG_INT64_MAX, &certificate->expiry) ||
		seed->type != jbvString || !tq_json_is_array(scopes))
		return false;
	certificate->seed = *seed;
	/* Read the scopes of a certificate; returns false if one is no string. */
	all = tq_json_iterate(scopes->val.binary.data);
	rights->scopes = palloc(sizeof(char *) * Max(all.n, 1));
	rights->nscopes = 0;
	while (tq_json_next(&all))
	{
		char *scope = tq_json_string_of(&all.value);

		if (scope == NULL)
			return false;
		rights->scopes[rights->nscopes++] = scope;
	}
	return true;
}

/*
 * Reads the task and the run of a clientId whose signature is right; the rest
 * is compared as a whole.
 */
static bool
read_client_id(const TqCredentials *given, TqClaimRights *rights)
{
	static const char prefix[] = "task-client/";
	const int at = sizeof(prefix) - 1;
	char *text = tq_credentials_client(given);

	if (strlen(text) <= at + TQ_SLUG_CHARS + 1 ||
		!tq_slug_parse(text + at, TQ_SLUG_CHARS, &rights->task_id))
		return false;
	rights->run_id = atoi(text + at + TQ_SLUG_CHARS + 1);
	return true;
}

static bool
is_text(const JsonbValue *value, StringInfo text)
{
	return value->val.string.len == text->len &&
		   memcmp(value->val.string.val, text->data, text->len) == 0;
}

/*
 * Returns whether a run is the one of this clientId and this certificate,
 * claimed at the same time by the same worker for at least as long.
 */
static bool
is_of_run(const TqCredentials *given, const Certificate *certificate,
		  TqClaimRights *rights, const TqRun *run)
{
	TqClaim claim = {.task_id = rights->task_id, .run_id = run->run_id};
	char *group;
	char *name;
	StringInfoData client_id;
	StringInfoData seed;

	if (run->worker == 0 || unix_ms(run->taken_until) < certificate->expiry)
		return false;
	rights->worker = run->worker;
	tq_worker_name(run->worker, &group, &name);
	claim.worker_group = group;
	claim.worker_id = name;
	initStringInfo(&client_id);
	put_client_id(&client_id, &claim, certificate->expiry);
	initStringInfo(&seed);
	put_seed(&seed, run->started);
	return is_text(&given->client_id, &client_id) &&
		   is_text(&certificate->seed, &seed);
}

/*
 * Returns whether credentials are valid now, and sets what they give.  Does not
 * say why they are not.
 */
bool
tq_credentials_verify(const TqCredentials *given, TimestampTz now,
					  TqClaimRights *rights)
{
	Certificate certificate;
	TqTask task;
	TqRun run;

	return is_signed(given, now) &&
		   read_certificate(&given->certificate, &certificate, rights) &&
		   certificate.expiry > unix_ms(now) &&
		   read_client_id(given, rights) &&
		   tq_task_find(&rights->task_id, &task) &&
		   tq_run_find(task.id, rights->run_id, &run) &&
		   is_of_run(given, &certificate, rights, &run);
}

/* Returns whether credentials are those of a claim of this run. */
bool
tq_claim_rights_are_for(const TqClaimRights *rights, const TqSlug *task_id,
						int run_id)
{
	return rights->run_id == run_id &&
		   tq_slug_compare(&rights->task_id, task_id) == 0;
}

/* Raises TQ403. */
void
tq_error_credentials(void)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_FORBIDDEN), errmsg("credentials are not valid"),
		 errdetail(
			 "They have expired, were altered, or belong to another claim or another database."),
		 errhint(
			 "Give those that the claim, or reclaim_task() after it, has returned.")));
}

/* Sets what credentials give, or raises TQ403 if they are not valid. */
void
tq_credentials_open(const TqCredentials *given, TimestampTz now,
					TqClaimRights *rights)
{
	if (!tq_credentials_verify(given, now, rights))
		tq_error_credentials();
}

/*
 * Returns the worker that credentials are for, which must have the run still
 * when it is written; 0 if there are none.  Raises TQ403 unless they are valid
 * and those of a claim of this run.
 */
int32
tq_credentials_require(const TqCredentials *given, const TqSlug *task_id,
					   int run_id, TimestampTz now)
{
	TqClaimRights rights;

	if (given == NULL)
		return 0;
	tq_credentials_open(given, now, &rights);
	if (!tq_claim_rights_are_for(&rights, task_id, run_id))
		tq_error_credentials();
	return rights.worker;
}

/* ---- secrets ---- */

/*
 * Returns when the last claim ends that was made until now.  One whose
 * transaction is in progress is not found; it ends no later than a claim of the
 * longest timeout there is would, unless it has asked for a longer time: its
 * worker then gets new credentials with its next reclaim.
 */
TimestampTz
tq_last_claim_ends(TimestampTz now)
{
	int64 longest = Max(tq_policy_longest_claim(), tq_claim_timeout);

	longest = Max(longest, tq_queue_settings_longest_claim());
	return Max(tq_run_last_taken_until(), tq_clock_add_ms(now, longest));
}
