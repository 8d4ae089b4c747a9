/*
 * new_slugid.c
 *	  Slugids that the server makes.
 *
 * A new id is random, but that it begins with the time, in milliseconds since
 * 1970 (doc/spec/policy.md 16.1): rows that are created one after the other are
 * then side by side in the indexes of ids, so that a creation changes pages that
 * the ones before have changed, of which the WAL has an image already.  The order
 * is for speed alone: nothing fails if the clock goes back, and nothing takes the
 * time of an id for that of a task.  tq.clock_offset does not shift it, because
 * it would scatter the ids of a test.
 *
 * Beside the time, version and variant 74 bits stay, from the server's source of
 * strong random numbers; ten of them are the bucket.  What must be as hard to
 * guess as it can be takes tq_slug_random(), which has 122.
 */
#include "postgres.h"

#include "port/pg_bswap.h"

#include "util.h"

#define TIME_BYTES 6 /* of an id, the first ones */

static void
draw(TqSlug *slugs, int n)
{
	if (!pg_strong_random(slugs, sizeof(TqSlug) * n))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
						errmsg("could not generate random values")));
	for (int i = 0; i < n; i++)
		tq_slug_set_version(&slugs[i]);
}

/*
 * Makes an id that is random as a whole.  A call of the source costs as much as
 * 8,000 instructions whatever it returns, so each process draws some in advance:
 * a twentieth of a create.  The postmaster draws none, which its children would
 * share.
 */
void
tq_slug_random(TqSlug *slug)
{
	static TqSlug drawn[64];
	static int left = 0;

	if (IsPostmasterEnvironment && !IsUnderPostmaster)
	{
		draw(slug, 1);
		return;
	}
	if (left == 0)
	{
		draw(drawn, lengthof(drawn));
		left = lengthof(drawn);
	}
	*slug = drawn[--left];
}

/* Makes an id as tq.ordered_ids says. */
void
tq_slug_new(TqSlug *slug)
{
	tq_slug_random(slug);
	if (tq_ordered_ids)
	{
		uint64 begin = pg_hton64(tq_clock_unix_ms() << 16);

		memcpy(slug->bytes, &begin, TIME_BYTES);
	}
}

/*
 * Makes n ids as tq.ordered_ids says, of one time, in ascending order, in which
 * inserting them into an index is fastest.
 */
TqSlug *
tq_slugs_new(int n)
{
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));
	TqSlug first;

	draw(slugs, n);
	tq_slug_new(&first);
	for (int i = 0; tq_ordered_ids && i < n; i++)
		memcpy(slugs[i].bytes, first.bytes, TIME_BYTES);
	qsort(slugs, n, sizeof(TqSlug), tq_compare_slugs);
	return slugs;
}
