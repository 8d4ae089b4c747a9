/*
 * stable_slugid.c
 *	  Slugids that are made of names.
 */
#include "postgres.h"

#include "common/cryptohash.h"
#include "common/sha2.h"

#include "util.h"

/* What the names of stable slugids are hashed with. */
#define STABLE_DOMAIN "tq.stable_slugid"

/*
 * Makes the slugid of a name: the first 16 bytes of the SHA-256 of the 16
 * bytes "tq.stable_slugid" and the name in UTF-8, with the version and variant
 * of a version 4 UUID.  The encoding of the database does not change it, and
 * clients can compute it.  This must not change, because it identifies tasks
 * that were created long ago.
 */
void
tq_slug_of_name(const char *utf8_name, TqSlug *slug)
{
	uint8 digest[PG_SHA256_DIGEST_LENGTH];
	pg_cryptohash_ctx *context = pg_cryptohash_create(PG_SHA256);

	/* Store the SHA-256 of a domain and a name. */
	if (pg_cryptohash_init(context) < 0 ||
		pg_cryptohash_update(context, (const uint8 *) STABLE_DOMAIN,
							 strlen(STABLE_DOMAIN)) < 0 ||
		pg_cryptohash_update(context, (const uint8 *) utf8_name,
							 strlen(utf8_name)) < 0 ||
		pg_cryptohash_final(context, digest, PG_SHA256_DIGEST_LENGTH) < 0)
		elog(ERROR, "could not compute SHA-256 hash: %s",
			 pg_cryptohash_error(context));
	pg_cryptohash_free(context);
	memcpy(slug->bytes, digest, TQ_SLUG_BYTES);
	tq_slug_set_version(slug);
}
