/*
 * queue_table.h
 *	  Rows of tq_internal.queue: names of queues that are interned to numbers.
 */
#ifndef TQ_QUEUE_TABLE_H
#define TQ_QUEUE_TABLE_H

#include "datatype/timestamp.h"

/* A queue that a worker has asked for work, or a provisioner of such queues. */
typedef struct TqQueue
{
	char *name; /* provisionerId/workerType, or provisionerId */
	TimestampTz expires;
	TimestampTz last_date_active; /* 0: declared, but not seen */
} TqQueue;

/* The number of a queue. */
typedef struct TqQueueNumber
{
	int32 id;
	char *name;
} TqQueueNumber;

/* What Taskcluster shows of a queue that was not declared. */
#define TQ_QUEUE_DESCRIPTION ""
#define TQ_QUEUE_STABILITY "experimental"

extern int32 tq_queue_find(const char *name);
extern char *tq_queue_name(int32 queue);
extern int32 tq_queue_intern(const char *name);
extern TqQueueNumber *tq_queue_numbers_of(const char *provisioner, int max,
										  int *found);
extern void tq_queue_seen(int32 queue, TimestampTz now, TimestampTz expires);
extern void tq_queue_declare(int32 queue, TimestampTz expires);
extern bool tq_queue_read(const char *name, TimestampTz now, TqQueue *queue);
extern bool tq_queue_read_provisioner(const char *provisioner, TimestampTz now,
									  TqQueue *queue);
extern TqQueue *tq_queues_list(const char *after, int max, TimestampTz now,
							   int *found);
extern TqQueue *tq_queues_list_of(const char *provisioner, const char *after,
								  int max, TimestampTz now, int *found);
extern TqQueue *tq_queues_list_provisioners(const char *after, int max,
											TimestampTz now, int *found);
extern void tq_queues_forget(TimestampTz before);

#endif /* TQ_QUEUE_TABLE_H */
