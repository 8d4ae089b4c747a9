/*
 * priority.h
 *	  Changes the priority of unresolved tasks.
 */
#ifndef TQ_PRIORITY_H
#define TQ_PRIORITY_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../storage/run_table.h"
#include "../storage/task_table.h"
#include "../util/slugid.h"

extern int tq_priority_check(const char *name);
extern void tq_priority_set(TqTask *task, const TqRun *last, int priority,
							TimestampTz now);
extern TqNamedTask *tq_priority_change(const TqSlug *task_id, int priority,
									   TimestampTz now);
extern Jsonb *tq_priority_change_group(const TqSlug *slug, int priority,
									   TimestampTz now);

#endif /* TQ_PRIORITY_H */
