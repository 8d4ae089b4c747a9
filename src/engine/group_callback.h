/*
 * group_callback.h
 *	  Tasks that are created when a group resolves.
 */
#ifndef TQ_GROUP_CALLBACK_H
#define TQ_GROUP_CALLBACK_H

#include "datatype/timestamp.h"

#include "../storage/task_table.h"
#include "../util/slugid.h"

extern void tq_group_callback_check(const Jsonb *payload);
extern void tq_group_callback_add(const TqSlug *group,
								  TqTaskDefinition *definition,
								  TimestampTz now);
extern void tq_group_callback_require(const TqSlug *group,
									  const TqTaskDefinition *definition);
extern bool tq_group_callback_try(int64 id, TimestampTz now);
extern int tq_group_callbacks_cancel(const TqSlug *group,
									 const TqSlug *task_id);

#endif /* TQ_GROUP_CALLBACK_H */
