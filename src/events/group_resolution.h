/*
 * group_resolution.h
 *	  How a task group ends, and the message that it has ended.
 */
#ifndef TQ_GROUP_RESOLUTION_H
#define TQ_GROUP_RESOLUTION_H

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "../storage/group_table.h"

typedef struct TqProgress
{
	int64 count[TQ_STATES];
	int64 delayed;
	int64 tolerated;
	int64 forgiven;   /* of the tolerated ones */
	int64 reported;   /* runs that may have reported progress; 0: none has */
	int first_reason; /* of the first unsuccessful task that counts, or 0 */
	TimestampTz first_bad; /* when that ended */
	TimestampTz first_created;
	TimestampTz last_resolved;
} TqProgress;

extern int64 tq_group_bad_key(TimestampTz resolved, TqResolved reason);
extern void tq_group_count(const TqGroup *group, TqProgress *progress);
extern bool tq_group_exceeds(const TqGroup *group, int tasks);
extern void tq_group_count_again(int64 id);
extern const char *tq_group_outcome(const TqProgress *progress);
extern void tq_group_resolution_append(const int64 *tasks, int n);

#endif /* TQ_GROUP_RESOLUTION_H */
