/*
 * queue_table.h
 *	  Rows of tq_internal.queue: names of queues that are interned to numbers.
 */
#ifndef TQ_QUEUE_TABLE_H
#define TQ_QUEUE_TABLE_H

#include "datatype/timestamp.h"

extern int32 tq_queue_find(const char *name);
extern char *tq_queue_name(int32 queue);
extern int32 tq_queue_intern(const char *name);
extern void tq_queue_seen(int32 queue, TimestampTz now, TimestampTz expires);
extern void tq_queues_forget(TimestampTz before);

#endif /* TQ_QUEUE_TABLE_H */
