/*
 * group.h
 *	  Task groups: joining, sealing, canceling, resolution.
 */
#ifndef TQ_GROUP_H
#define TQ_GROUP_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../storage/group_table.h"
#include "../storage/task_table.h"
#include "../util/slugid.h"

extern int64 tq_group_join(const TqNamedTask *named,
						   TimestampTz latest_expires);
extern void tq_groups_check_own(const TqTaskDefinition *const *tasks, int n);
extern void tq_group_check_size(const TqNamedTask *joined);
extern void tq_group_get(const TqSlug *slug, TqGroup *group);
extern void tq_group_seal(const TqSlug *slug, TqGroup *group);
extern Jsonb *tq_group_cancel(const TqSlug *slug, TimestampTz now);

#endif /* TQ_GROUP_H */
