/*
 * group_resolution.h
 *	  How a task group ends, and the message that it has ended.
 */
#ifndef TQ_GROUP_RESOLUTION_H
#define TQ_GROUP_RESOLUTION_H

#include "../storage/group_table.h"

extern const char *tq_group_outcome(const TqProgress *progress);
extern void tq_group_resolution_append(const int64 *tasks, int n);

#endif /* TQ_GROUP_RESOLUTION_H */
