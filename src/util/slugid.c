/*
 * slugid.c
 *	  The type tq.slugid: a version 4 UUID written as a 22-character slug.
 *
 * Decides what is a slugid (doc/spec/taskcluster.md 1.1) and how it is read,
 * written, compared and hashed.  A value is 16 bytes and always a version 4 UUID
 * of the RFC variant: all input is checked here, so that other code need not
 * check it.  How new ones are made is left to new_slugid.c; what an id stands
 * for, and which error a bad id inside a task definition raises, to the layers
 * above.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "libpq/pqformat.h"
#include "utils/uuid.h"

#include "util.h"

StaticAssertDecl(TQ_SLUG_BYTES == UUID_LEN, "a slugid is a UUID");

static const char alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The position of each character in the alphabet, plus one; 0 if it is not there. */
static const uint8 position_of[256] =
	{0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
	 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
	 0,  0,  0,  0,  0,  0,  0,  0,  0,  63, 0,  0,  53, 54, 55, 56, 57, 58,
	 59, 60, 61, 62, 0,  0,  0,  0,  0,  0,  0,  1,  2,  3,  4,  5,  6,  7,
	 8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
	 26, 0,  0,  0,  0,  64, 0,  27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37,
	 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52};

/* The value of a character, 0 to 63, or more if it is not of the alphabet. */
#define SEXTET(c) ((uint32) position_of[(unsigned char) (c)] - 1)

/* Returns whether the bytes are a UUID of version 4 and of the RFC variant. */
bool
tq_slug_is_random(const TqSlug *slug)
{
	return (slug->bytes[6] & 0xF0) == 0x40 && (slug->bytes[8] & 0xC0) == 0x80;
}

/* Makes a version 4 UUID of any 16 bytes. */
void
tq_slug_set_version(TqSlug *slug)
{
	slug->bytes[6] = (slug->bytes[6] & 0x0F) | 0x40;
	slug->bytes[8] = (slug->bytes[8] & 0x3F) | 0x80;
}

/*
 * Returns the bucket of an id, 0 to TQ_SLUG_BUCKETS - 1: its last ten bits
 * (doc/spec/policy.md 16).  These are neither version nor variant, and the last
 * to decide about its position in an index.
 */
int
tq_slug_bucket(const TqSlug *slug)
{
	return (slug->bytes[14] << 8 | slug->bytes[15]) & (TQ_SLUG_BUCKETS - 1);
}

/* Replaces the bucket of an id; its other bits stay. */
void
tq_slug_set_bucket(TqSlug *slug, int bucket)
{
	Assert(bucket >= 0 && bucket < TQ_SLUG_BUCKETS);
	slug->bytes[14] = (slug->bytes[14] & 0xFC) | (uint8) (bucket >> 8);
	slug->bytes[15] = (uint8) bucket;
}

/*
 * Reads a slugid that is len characters long; returns false if it is none, and
 * *slug is then undefined.  The 22 characters carry 132 bits.  The last four
 * must be zero, so that each value has one spelling.
 */
bool
tq_slug_parse(const char *text, size_t len, TqSlug *slug)
{
	uint8 *byte = slug->bytes;
	uint32 all = 0;
	uint32 last;

	if (len != TQ_SLUG_CHARS)
		return false;
	for (int i = 0; i < 20; i += 4)
	{
		uint32 a = SEXTET(text[i]);
		uint32 b = SEXTET(text[i + 1]);
		uint32 c = SEXTET(text[i + 2]);
		uint32 d = SEXTET(text[i + 3]);

		all |= a | b | c | d;
		*byte++ = (uint8) (a << 2 | b >> 4);
		*byte++ = (uint8) (b << 4 | c >> 2);
		*byte++ = (uint8) (c << 6 | d);
	}
	last = SEXTET(text[21]);
	all |= SEXTET(text[20]) | last;
	*byte = (uint8) (SEXTET(text[20]) << 2 | last >> 4);
	return all <= 0x3F && (last & 0x0F) == 0 && tq_slug_is_random(slug);
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

/* Compares two slugids, for qsort(). */
int
tq_compare_slugs(const void *a, const void *b)
{
	return tq_slug_compare((const TqSlug *) a, (const TqSlug *) b);
}
