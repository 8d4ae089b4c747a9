/*
 * reorder.h
 *	  Moves pending runs within the order of their queues.
 */
#ifndef TQ_REORDER_H
#define TQ_REORDER_H

#include "datatype/timestamp.h"

extern int64 tq_reorder_pass(TimestampTz now, bool always, bool *more);
extern TimestampTz tq_reorder_next(TimestampTz now);

#endif /* TQ_REORDER_H */
