/*
 * hmac.c
 *	  Signs bytes by HMAC-SHA-256, and compares signatures.
 *
 * The server does the arithmetic, by OpenSSL or by itself.  It frees a context
 * that an error leaves behind.
 */
#include "postgres.h"

#include "common/base64.h"

#include "compat.h"
#include "util.h"

StaticAssertDecl(TQ_HMAC_CHARS == (TQ_HMAC_BYTES + 2) / 3 * 4,
				 "the length of a signature in base64");

static void
fail(pg_hmac_ctx *context)
{
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("could not compute a signature"),
			 errdetail("HMAC-SHA-256 failed: %s.", pg_hmac_error(context)),
			 errhint("If the server uses OpenSSL, check its configuration.")));
}

/* Returns a context for signatures, which tq_hmac_end() frees. */
pg_hmac_ctx *
tq_hmac_begin(void)
{
	return pg_hmac_create(PG_SHA256);
}

/* Sets signature[] to TQ_HMAC_CHARS characters of base64. */
void
tq_hmac_sign(pg_hmac_ctx *context, const uint8 *key, size_t nkey,
			 const char *message, size_t len, char *signature)
{
	uint8 bytes[TQ_HMAC_BYTES];

	if (pg_hmac_init(context, key, nkey) < 0 ||
		pg_hmac_update(context, (const uint8 *) message, len) < 0 ||
		pg_hmac_final(context, bytes, sizeof(bytes)) < 0)
		fail(context);
	TqBase64(bytes, sizeof(bytes), signature, TQ_HMAC_CHARS);
}

/* Frees a context. */
void
tq_hmac_end(pg_hmac_ctx *context)
{
	pg_hmac_free(context);
}

/*
 * Returns whether bytes are the same, in a time that does not depend on where
 * they differ.  timingsafe_bcmp() is not in every minor version.
 */
bool
tq_hmac_is_same(const char *a, const char *b, size_t len)
{
	volatile uint8 difference = 0;

	for (size_t i = 0; i < len; i++)
		difference |= (uint8) a[i] ^ (uint8) b[i];
	return difference == 0;
}

/* Fills bytes from the server's strong source of random numbers. */
void
tq_random_bytes(uint8 *bytes, size_t len)
{
	if (!pg_strong_random(bytes, len))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random bytes"),
				 errdetail("The server's source of random numbers failed."),
				 errhint("See the log of the operating system.")));
}
