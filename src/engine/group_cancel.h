/*
 * group_cancel.h
 *	  Cancels the tasks of a group.
 */
#ifndef TQ_GROUP_CANCEL_H
#define TQ_GROUP_CANCEL_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../util/slugid.h"

extern Jsonb *tq_group_cancel(const TqSlug *slug, TimestampTz now);

#endif /* TQ_GROUP_CANCEL_H */
