/*
 * slugid_api.c
 *	  SQL functions of the type tq.slugid.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "utils/uuid.h"

#include "api.h"

#define UUID_CHARS 36

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

PG_FUNCTION_INFO_V1(tq_slugid_in);
PG_FUNCTION_INFO_V1(tq_slugid_out);
PG_FUNCTION_INFO_V1(tq_slugid_recv);
PG_FUNCTION_INFO_V1(tq_slugid_send);
PG_FUNCTION_INFO_V1(tq_slugid);
PG_FUNCTION_INFO_V1(tq_slugid_in_bucket);
PG_FUNCTION_INFO_V1(tq_bucket);
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
	if (!tq_slug_is_random(slug))
		ereturn(fcinfo->context, (Datum) 0,
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
	if (!tq_slug_is_random(slug))
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
						errmsg("invalid external \"%s\" value: \"%s\"",
							   "tq.slugid", tq_slug_text(slug)),
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

/*
 * slugid() -> a new slugid, which begins with the time unless tq.ordered_ids is off
 *
 * slugid(ordered bool) -> the same; false: one that is random as a whole
 */
Datum
tq_slugid(PG_FUNCTION_ARGS)
{
	TqSlug *slug = palloc(sizeof(TqSlug));

	if (PG_NARGS() == 0 || PG_GETARG_BOOL(0))
		tq_slug_new(slug);
	else
		tq_slug_random(slug);
	PG_RETURN_TQ_SLUG_P(slug);
}

/*
 * slugid_in_bucket(bucket int) -> a new slugid in a bucket, 0 to 1023
 * (doc/spec/policy.md 16.1); TQ400 for another number
 */
Datum
tq_slugid_in_bucket(PG_FUNCTION_ARGS)
{
	int bucket = tq_arg_int(fcinfo, 0, "bucket", 0, TQ_SLUG_BUCKETS - 1);
	TqSlug *slug = palloc(sizeof(TqSlug));

	tq_slug_new(slug);
	tq_slug_set_bucket(slug, bucket);
	PG_RETURN_TQ_SLUG_P(slug);
}

/* bucket(id slugid) -> its bucket, 0 to 1023 (doc/spec/policy.md 16.1) */
Datum
tq_bucket(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(tq_slug_bucket(PG_GETARG_TQ_SLUG_P(0)));
}

/* stable_slugid(name text) -> the slugid of a name */
Datum
tq_stable_slugid(PG_FUNCTION_ARGS)
{
	char *given = text_to_cstring(PG_GETARG_TEXT_PP(0));
	TqSlug *slug = palloc(sizeof(TqSlug));

	tq_slug_of_name(pg_server_to_any(given, strlen(given), PG_UTF8), slug);
	PG_RETURN_TQ_SLUG_P(slug);
}

Datum
tq_slugid_from_uuid(PG_FUNCTION_ARGS)
{
	pg_uuid_t *uuid = PG_GETARG_UUID_P(0);
	TqSlug *slug = palloc(sizeof(TqSlug));

	memcpy(slug->bytes, uuid->data, TQ_SLUG_BYTES);
	if (!tq_slug_is_random(slug))
		ereport(ERROR,
				(BAD_SLUGID(DatumGetCString(
					 DirectFunctionCall1(uuid_out, UUIDPGetDatum(uuid)))),
				 DETAIL_VERSION(),
				 errhint(
					 "tq.stable_slugid(name) makes a stable version 4 UUID "
					 "from any text; to compare an id with any UUID, cast "
					 "the id to uuid.")));
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
	return hash_any_extended(PG_GETARG_TQ_SLUG_P(0)->bytes, TQ_SLUG_BYTES,
							 PG_GETARG_INT64(1));
}
