/*
 * add_dependencies.h
 *	  Gives an unscheduled task further dependencies.
 */
#ifndef TQ_ADD_DEPENDENCIES_H
#define TQ_ADD_DEPENDENCIES_H

#include "datatype/timestamp.h"

#include "../storage/task_table.h"
#include "../util/slugid.h"

extern void tq_add_dependencies(const TqSlug *task_id, TqSlug *dependencies,
								int n, TimestampTz now);

#endif /* TQ_ADD_DEPENDENCIES_H */
