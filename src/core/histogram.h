/*
 * histogram.h
 *	  Distributions of durations, in buckets that grow with the duration.
 */
#ifndef TQ_HISTOGRAM_H
#define TQ_HISTOGRAM_H

/* From less than a millisecond to 49 days; longer durations count as that. */
#define TQ_BUCKETS 129

extern int tq_histogram_bucket(int64 ms);
extern double tq_histogram_end(int bucket);
extern int64 tq_histogram_total(const int64 *counts);
extern double tq_histogram_percentile(const int64 *counts, double part);

#endif /* TQ_HISTOGRAM_H */
