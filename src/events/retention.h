/*
 * retention.h
 *	  Retention of messages: changing and emptying the segments of the
 *	  log.
 */
#ifndef TQ_RETENTION_H
#define TQ_RETENTION_H

#include "datatype/timestamp.h"

extern int64 tq_retention_pass(TimestampTz now);
extern TimestampTz tq_retention_kept_since(TimestampTz now);
extern TimestampTz tq_retention_published_before(TimestampTz now);

#endif /* TQ_RETENTION_H */
