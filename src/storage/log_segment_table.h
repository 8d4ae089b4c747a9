/*
 * log_segment_table.h
 *	  Rows of tq_internal.log_segment, and the segments themselves.
 */
#ifndef TQ_LOG_SEGMENT_TABLE_H
#define TQ_LOG_SEGMENT_TABLE_H

#include "datatype/timestamp.h"

#define TQ_SEGMENTS 6 /* segments of the message log */

extern Oid tq_segment_relation(const char *table, int segment);
extern int tq_segment_current(TimestampTz *since);
extern void tq_segment_switch(int segment, TimestampTz now);
extern bool tq_segment_is_empty(int segment);
extern bool tq_segment_try_lock(int segment);
extern bool tq_segment_is_unpublished(int segment, Datum upto);
extern void tq_segment_truncate(int segment);

#endif /* TQ_LOG_SEGMENT_TABLE_H */
