/*
 * shard_table.h
 *	  The row of tq_internal.shard: the buckets of this database.
 */
#ifndef TQ_SHARD_TABLE_H
#define TQ_SHARD_TABLE_H

#include "access/transam.h"
#include "utils/multirangetypes.h"

#include "../util/slugid.h"

/* The buckets of a database that is a shard. */
typedef struct TqOwnBuckets
{
	bool has[TQ_SLUG_BUCKETS];
	int n;
	int16 list[TQ_SLUG_BUCKETS]; /* the n that it has, in order */
} TqOwnBuckets;

/* Tasks whose groups are in one bucket. */
typedef struct TqBucketCount
{
	int32 bucket;
	int64 groups;
	int64 unresolved; /* tasks */
} TqBucketCount;

extern void tq_shard_changed(void);
extern bool tq_shard_parse(MultirangeType *ranges, TqOwnBuckets *own);
extern bool tq_shard_is_set(void);
extern const TqOwnBuckets *tq_shard_buckets(void);
extern MultirangeType *tq_shard_read(void);
extern FullTransactionId tq_shard_write(MultirangeType *ranges);
extern bool tq_shard_is_settled(FullTransactionId change);
extern TqBucketCount *tq_shard_counts(int *found);

#endif /* TQ_SHARD_TABLE_H */
