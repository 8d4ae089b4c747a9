/*
 * slugid.c
 *	  A fuzz target: is each slugid, and nothing else, read as one?
 *
 * An input is read as a text, and its first 16 bytes as a UUID.  What a slugid
 * is, is decided here by the pattern of doc/spec/taskcluster.md 1.1.
 * slugid.c needs of a server only what is stated below.
 */
#include "postgres.h"

#include "../../src/util/util.h"
#include "fuzz.h"

/* ---- in place of the server ---- */

void *
palloc(Size size)
{
	return malloc(size);
}

/* ---- the rule ---- */

static const char any[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

/* Returns whether a text is a slugid: by what each character may be. */
static bool
is_slug(const char *text, size_t size)
{
	if (size != 22)
		return false;
	for (size_t i = 0; i < size; i++)
	{
		const char *allowed = i == 8    ? "QRST"
							  : i == 10 ? "CGKOSWaeimquy26-"
							  : i == 21 ? "AQgw"
										: any;

		if (text[i] == '\0' || strchr(allowed, text[i]) == NULL)
			return false;
	}
	return true;
}

/* ---- the target ---- */

static void
check_text(const char *text, size_t size)
{
	TqSlug slug;
	bool good = tq_slug_parse(text, size, &slug);
	char *printed;

	require(good == is_slug(text, size),
			good ? "what is no slugid is read" : "a slugid is refused");
	if (!good)
		return;
	printed = tq_slug_text(&slug);
	require(strlen(printed) == 22 && memcmp(printed, text, 22) == 0,
			"text, bytes, text");
	free(printed);
}

/* Checks what a slugid begins with, and what begins with it. */
static void
check_lengths(const char *slug)
{
	for (size_t size = 0; size < TQ_SLUG_CHARS + 3; size++)
	{
		char *text = malloc(size + 1) + 1; /* ends at the end of its memory */

		for (size_t i = 0; i < size; i++)
			text[i] = i < TQ_SLUG_CHARS ? slug[i] : 'A';
		check_text(text, size);
		free(text - 1);
	}
}

/* Checks each text that differs in one character from a slugid. */
static void
check_neighbours(const char *text)
{
	char *other = fuzz_string(text, TQ_SLUG_CHARS);
	TqSlug slug;
	TqSlug near;

	(void) tq_slug_parse(text, TQ_SLUG_CHARS, &slug);
	for (int i = 0; i < TQ_SLUG_CHARS; i++)
	{
		for (int c = 0; c < 256; c++)
		{
			other[i] = (char) c;
			check_text(other, TQ_SLUG_CHARS);
			require(other[i] == text[i] ||
						!tq_slug_parse(other, TQ_SLUG_CHARS, &near) ||
						tq_slug_compare(&slug, &near) != 0,
					"two texts are the same slugid");
		}
		other[i] = text[i];
	}
	free(other);
}

/* Checks that the bucket of a slugid is its last ten bits, and nothing else. */
static void
check_bucket(TqSlug slug, int bucket)
{
	TqSlug moved = slug;

	tq_slug_set_bucket(&moved, bucket);
	require(tq_slug_bucket(&moved) == bucket && tq_slug_is_random(&moved),
			"a bucket is set");
	require(memcmp(moved.bytes, slug.bytes, 14) == 0 &&
				(moved.bytes[14] ^ slug.bytes[14]) < 4,
			"a bucket changes other bits");
	tq_slug_set_bucket(&moved, tq_slug_bucket(&slug));
	require(tq_slug_compare(&moved, &slug) == 0, "a bucket is set back");
}

static void
check_bytes(const uint8_t *bytes)
{
	TqSlug slug;
	TqSlug again;
	bool is_uuid = bytes[6] >> 4 == 4 && bytes[8] >> 6 == 2;
	char *text = malloc(TQ_SLUG_CHARS + 1);

	memcpy(slug.bytes, bytes, TQ_SLUG_BYTES);
	require(tq_slug_is_random(&slug) == is_uuid, "version and variant");
	tq_slug_print(&slug, text);
	require(tq_slug_parse(text, strlen(text), &again) == is_uuid,
			"bytes that are no version 4 UUID");
	tq_slug_set_version(&slug);
	require(tq_slug_is_random(&slug) &&
				(!is_uuid || memcmp(slug.bytes, bytes, TQ_SLUG_BYTES) == 0),
			"a version is set");
	check_bucket(slug, (bytes[0] << 8 | bytes[1]) % TQ_SLUG_BUCKETS);
	tq_slug_print(&slug, text);
	check_text(text, strlen(text));
	require(tq_slug_parse(text, strlen(text), &again) &&
				tq_slug_compare(&slug, &again) == 0,
			"bytes, text, bytes");
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size == 0 ? 1 : size); /* ends without a zero */

	memcpy(text, data, size);
	check_text(text, size);
	if (is_slug(text, size))
	{
		check_lengths(text);
		check_neighbours(text);
	}
	if (size >= TQ_SLUG_BYTES)
		check_bytes(data);
	free(text);
	return 0;
}
