/*
 * bucket.h
 *	  In which buckets ids are made, and which a shard refuses.
 */
#ifndef TQ_BUCKET_H
#define TQ_BUCKET_H

#include "access/transam.h"
#include "utils/multirangetypes.h"

#include "../storage/task_table.h"
#include "../util/slugid.h"

extern void tq_bucket_choose(TqSlug *task_id, const TqSlug *group);
extern void tq_bucket_check(const TqTaskDefinition *tasks, int n);
extern void tq_bucket_check_callback(const TqSlug *group,
									 const TqSlug *task_id);
extern bool tq_bucket_is_foreign(const TqSlug *slug);
extern FullTransactionId tq_bucket_set(MultirangeType *ranges);

#endif /* TQ_BUCKET_H */
