/*
 * histogram.c
 *	  Distributions of durations, in buckets that grow with the duration.
 *
 * The first bucket has durations of less than a millisecond.  Each doubling of
 * the duration is divided into four buckets, so that a percentile is wrong by a
 * quarter of it at most, and by much less where durations are spread within
 * their bucket.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "histogram.h"

#define PARTS 4 /* buckets in each doubling */

/* Returns the bucket of a duration. */
int
tq_histogram_bucket(int64 ms)
{
	int power;
	int part;

	if (ms < 1)
		return 0;
	power = pg_leftmost_one_pos64((uint64) ms);
	part = (int) (((uint64) ms * PARTS >> power) & (PARTS - 1));
	return Min(1 + power * PARTS + part, TQ_BUCKETS - 1);
}

/* Returns where a bucket begins, in milliseconds. */
static double
bucket_begin(int bucket)
{
	int power = (bucket - 1) / PARTS;
	int part = (bucket - 1) % PARTS;

	if (bucket == 0)
		return 0;
	return (double) (UINT64CONST(1) << power) * (PARTS + part) / PARTS;
}

/* Returns where a bucket ends, in milliseconds. */
double
tq_histogram_end(int bucket)
{
	return bucket_begin(bucket + 1);
}

/* Returns how many durations were counted. */
int64
tq_histogram_total(const int64 *counts)
{
	int64 total = 0;

	for (int i = 0; i < TQ_BUCKETS; i++)
		total += counts[i];
	return total;
}

/*
 * Returns the duration, in milliseconds, that this part of all durations does
 * not exceed; at least one was counted.  Those within a bucket count as spread
 * evenly.
 */
double
tq_histogram_percentile(const int64 *counts, double part)
{
	double rank = part * (double) tq_histogram_total(counts);
	double below = 0;
	int last = 0;

	for (int i = 0; i < TQ_BUCKETS; i++)
	{
		double count = (double) counts[i];

		if (count <= 0)
			continue;
		last = i;
		if (below + count >= rank)
			return bucket_begin(i) + (bucket_begin(i + 1) - bucket_begin(i)) *
										 (rank - below) / count;
		below += count;
	}
	return bucket_begin(last + 1);
}
