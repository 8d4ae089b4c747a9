/*
 * slugid.c
 *	  The type tq.slugid: a version 4 UUID written as a 22-character slug.
 *
 * Room 1.  Decides what is a slugid (doc/spec/taskcluster.md 1.1) and how it
 * is read, written, compared, hashed and made.  A value is 16 bytes and always
 * a version 4 UUID of the RFC variant: all input is checked here, so that
 * other code need not check it.  What an id stands for, and which error a bad
 * id inside a task definition raises, is left to the layers above.
 */
#include "postgres.h"

#include "common/cryptohash.h"
#include "common/hashfn.h"
#include "common/sha2.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

#include "compat.h"
#include "plumbing.h"

StaticAssertDecl(TQ_SLUG_BYTES == UUID_LEN, "a slugid is a UUID");

#define UUID_CHARS 36

/* What the names of stable slugids are hashed with. */
#define STABLE_DOMAIN "tq.stable_slugid"

static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/*
 * Returns the value of one character of the URL-safe base64 alphabet, or -1.
 */
static int
sextet(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '-')
		return 62;
	if (c == '_')
		return 63;
	return -1;
}

/* Returns whether the bytes are a UUID of version 4 and of the RFC variant. */
static bool
is_random_uuid(const TqSlug *slug)
{
	return (slug->bytes[6] & 0xF0) == 0x40 && (slug->bytes[8] & 0xC0) == 0x80;
}

/* Makes a version 4 UUID of any 16 bytes. */
static void
set_version(TqSlug *slug)
{
	slug->bytes[6] = (slug->bytes[6] & 0x0F) | 0x40;
	slug->bytes[8] = (slug->bytes[8] & 0x3F) | 0x80;
}

/*
 * Reads a slugid that is len characters long; returns false if it is none, and
 * *slug is then undefined.  The 22 characters carry 132 bits.  The last four
 * must be zero, so that each value has one spelling.
 */
bool
tq_slug_parse(const char *text, size_t len, TqSlug *slug)
{
	uint32 bits = 0;
	int held = 0;
	int n = 0;

	if (len != TQ_SLUG_CHARS)
		return false;
	for (int i = 0; i < TQ_SLUG_CHARS; i++)
	{
		int value = sextet((unsigned char) text[i]);

		if (value < 0)
			return false;
		bits = (bits << 6) | (uint32) value;
		held += 6;
		if (held >= 8)
		{
			held -= 8;
			slug->bytes[n++] = (uint8) (bits >> held);
		}
	}
	return (bits & 0x0F) == 0 && is_random_uuid(slug);
}

/* Returns the value of one hexadecimal digit, or -1. */
static int
hex_digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/*
 * Reads a UUID in its standard form, of 36 characters and any version; returns
 * false when it is none, and then *slug is undefined.  uuid_in() does not
 * serve, because before PostgreSQL 16 it cannot report a soft error.
 */
static bool
parse_uuid(const char *text, TqSlug *slug)
{
	if (strlen(text) != UUID_CHARS)
		return false;
	for (int i = 0; i < TQ_SLUG_BYTES; i++)
	{
		int high;
		int low;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return false;
		high = hex_digit(*text++);
		low = hex_digit(*text++);
		if (high < 0 || low < 0)
			return false;
		slug->bytes[i] = (uint8) (high << 4 | low);
	}
	return true;
}

/* Write the 22 characters and a terminating zero. */
void
tq_slug_print(const TqSlug *slug, char *text)
{
	uint32 bits = 0;
	int held = 0;

	for (int i = 0; i < TQ_SLUG_BYTES; i++)
	{
		bits = (bits << 8) | slug->bytes[i];
		for (held += 8; held >= 6; held -= 6)
			*text++ = alphabet[(bits >> (held - 6)) & 0x3F];
	}
	*text++ = alphabet[(bits << (6 - held)) & 0x3F];
	*text = '\0';
}

/* Returns the slug as a string in the current memory context. */
char *
tq_slug_text(const TqSlug *slug)
{
	char *text = palloc(TQ_SLUG_CHARS + 1);

	tq_slug_print(slug, text);
	return text;
}

/* Generates slugids from the server's source of strong random numbers. */
static void
draw(TqSlug *slugs, int n)
{
	if (!pg_strong_random(slugs, sizeof(TqSlug) * n))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	for (int i = 0; i < n; i++)
		set_version(&slugs[i]);
}

/* Generates one slugid. */
void
tq_slug_random(TqSlug *slug)
{
	draw(slug, 1);
}

static int
compare(const void *a, const void *b)
{
	return tq_slug_compare(a, b);
}

/*
 * Generates n slugids in ascending order, in which inserting them into an
 * index is fastest.
 */
TqSlug *
tq_slugs_random(int n)
{
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));

	draw(slugs, n);
	qsort(slugs, n, sizeof(TqSlug), compare);
	return slugs;
}

/*
 * Compares two slugids by their bytes, which is not the order of their texts.
 */
int
tq_slug_compare(const TqSlug *a, const TqSlug *b)
{
	return memcmp(a->bytes, b->bytes, TQ_SLUG_BYTES);
}

PG_FUNCTION_INFO_V1(tq_slugid_in);
PG_FUNCTION_INFO_V1(tq_slugid_out);
PG_FUNCTION_INFO_V1(tq_slugid_recv);
PG_FUNCTION_INFO_V1(tq_slugid_send);
PG_FUNCTION_INFO_V1(tq_slugid);
PG_FUNCTION_INFO_V1(tq_stable_slugid);
PG_FUNCTION_INFO_V1(tq_slugid_from_uuid);
PG_FUNCTION_INFO_V1(tq_slugid_to_uuid);

/* The parts of an error about text that is no slugid. */
#define BAD_SLUGID(text)                                                      \
	errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),                             \
		errmsg("invalid input syntax for type %s: \"%s\"", "tq.slugid", text)
#define DETAIL_VERSION() errdetail("The UUID is not of version 4.")
#define HINT_STABLE()                                                         \
	errhint("tq.stable_slugid(name) makes a stable version 4 UUID from any "  \
			"text.")
#define HINT_SLUGID()                                                         \
	errhint("Give a version 4 UUID or its 22-character slug; tq.slugid() "    \
			"makes one.")

Datum
tq_slugid_in(PG_FUNCTION_ARGS)
{
	char *text = PG_GETARG_CSTRING(0);
	TqSlug *slug = palloc(sizeof(TqSlug));

	if (tq_slug_parse(text, strlen(text), slug))
		PG_RETURN_TQ_SLUG_P(slug);
	if (!parse_uuid(text, slug))
		ereturn(fcinfo->context, (Datum) 0, (BAD_SLUGID(text), HINT_SLUGID()));
	if (!is_random_uuid(slug))
		ereturn(fcinfo->context,
				(Datum) 0,
				(BAD_SLUGID(text), DETAIL_VERSION(), HINT_STABLE()));
	PG_RETURN_TQ_SLUG_P(slug);
}

Datum
tq_slugid_out(PG_FUNCTION_ARGS)
{
	PG_RETURN_CSTRING(tq_slug_text(PG_GETARG_TQ_SLUG_P(0)));
}

Datum
tq_slugid_recv(PG_FUNCTION_ARGS)
{
	StringInfo buffer = (StringInfo) PG_GETARG_POINTER(0);
	TqSlug *slug = palloc(sizeof(TqSlug));

	memcpy(slug->bytes, pq_getmsgbytes(buffer, TQ_SLUG_BYTES), TQ_SLUG_BYTES);
	if (!is_random_uuid(slug))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid external \"%s\" value: \"%s\"",
						"tq.slugid",
						tq_slug_text(slug)),
				 errdetail("A slugid is a version 4 UUID.")));
	PG_RETURN_TQ_SLUG_P(slug);
}

Datum
tq_slugid_send(PG_FUNCTION_ARGS)
{
	TqSlug *slug = PG_GETARG_TQ_SLUG_P(0);
	StringInfoData buffer;

	pq_begintypsend(&buffer);
	pq_sendbytes(&buffer, (const char *) slug->bytes, TQ_SLUG_BYTES);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

Datum
tq_slugid(PG_FUNCTION_ARGS)
{
	TqSlug *slug = palloc(sizeof(TqSlug));

	tq_slug_random(slug);
	PG_RETURN_TQ_SLUG_P(slug);
}

/* Stores the SHA-256 of a domain and a name. */
static void
hash_name(const char *name, uint8 *digest)
{
	pg_cryptohash_ctx *context = pg_cryptohash_create(PG_SHA256);

	if (pg_cryptohash_init(context) < 0 ||
		pg_cryptohash_update(context,
							 (const uint8 *) STABLE_DOMAIN,
							 strlen(STABLE_DOMAIN)) < 0 ||
		pg_cryptohash_update(context, (const uint8 *) name, strlen(name)) <
			0 ||
		pg_cryptohash_final(context, digest, PG_SHA256_DIGEST_LENGTH) < 0)
		elog(ERROR,
			 "could not compute SHA-256 hash: %s",
			 pg_cryptohash_error(context));
	pg_cryptohash_free(context);
}

/*
 * Returns the slugid of a name: the first 16 bytes of the SHA-256 of the 16
 * bytes "tq.stable_slugid" and the name in UTF-8, with the version and variant
 * of a version 4 UUID.  The encoding of the database does not change it, and
 * clients can compute it.  This must not change, because it identifies tasks
 * that were created long ago.
 */
Datum
tq_stable_slugid(PG_FUNCTION_ARGS)
{
	char *given = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char *name = pg_server_to_any(given, strlen(given), PG_UTF8);
	uint8 digest[PG_SHA256_DIGEST_LENGTH];
	TqSlug *slug = palloc(sizeof(TqSlug));

	hash_name(name, digest);
	memcpy(slug->bytes, digest, TQ_SLUG_BYTES);
	set_version(slug);
	PG_RETURN_TQ_SLUG_P(slug);
}

Datum
tq_slugid_from_uuid(PG_FUNCTION_ARGS)
{
	pg_uuid_t *uuid = PG_GETARG_UUID_P(0);
	TqSlug *slug = palloc(sizeof(TqSlug));

	memcpy(slug->bytes, uuid->data, TQ_SLUG_BYTES);
	if (!is_random_uuid(slug))
		ereport(ERROR,
				(BAD_SLUGID(DatumGetCString(
					 DirectFunctionCall1(uuid_out, UUIDPGetDatum(uuid)))),
				 DETAIL_VERSION(),
				 HINT_STABLE()));
	PG_RETURN_TQ_SLUG_P(slug);
}

Datum
tq_slugid_to_uuid(PG_FUNCTION_ARGS)
{
	pg_uuid_t *uuid = palloc(sizeof(pg_uuid_t));

	memcpy(uuid->data, PG_GETARG_TQ_SLUG_P(0)->bytes, UUID_LEN);
	PG_RETURN_UUID_P(uuid);
}

PG_FUNCTION_INFO_V1(tq_slugid_eq);
PG_FUNCTION_INFO_V1(tq_slugid_ne);
PG_FUNCTION_INFO_V1(tq_slugid_lt);
PG_FUNCTION_INFO_V1(tq_slugid_le);
PG_FUNCTION_INFO_V1(tq_slugid_gt);
PG_FUNCTION_INFO_V1(tq_slugid_ge);
PG_FUNCTION_INFO_V1(tq_slugid_cmp);
PG_FUNCTION_INFO_V1(tq_slugid_hash);
PG_FUNCTION_INFO_V1(tq_slugid_hash_extended);

#define COMPARE_ARGUMENTS()                                                   \
	tq_slug_compare(PG_GETARG_TQ_SLUG_P(0), PG_GETARG_TQ_SLUG_P(1))

Datum
tq_slugid_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(COMPARE_ARGUMENTS() == 0);
}

Datum
tq_slugid_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(COMPARE_ARGUMENTS() != 0);
}

Datum
tq_slugid_lt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(COMPARE_ARGUMENTS() < 0);
}

Datum
tq_slugid_le(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(COMPARE_ARGUMENTS() <= 0);
}

Datum
tq_slugid_gt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(COMPARE_ARGUMENTS() > 0);
}

Datum
tq_slugid_ge(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(COMPARE_ARGUMENTS() >= 0);
}

Datum
tq_slugid_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(COMPARE_ARGUMENTS());
}

Datum
tq_slugid_hash(PG_FUNCTION_ARGS)
{
	return hash_any(PG_GETARG_TQ_SLUG_P(0)->bytes, TQ_SLUG_BYTES);
}

Datum
tq_slugid_hash_extended(PG_FUNCTION_ARGS)
{
	return hash_any_extended(PG_GETARG_TQ_SLUG_P(0)->bytes,
							 TQ_SLUG_BYTES,
							 PG_GETARG_INT64(1));
}
