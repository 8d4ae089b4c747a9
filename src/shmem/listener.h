/*
 * listener.h
 *	  Which channels sessions listen on.
 */
#ifndef TQ_LISTENER_H
#define TQ_LISTENER_H

#include "shmem.h"

#define TQ_QUEUE_CHANNEL "tq_queue_"   /* prefix of the channels of queues */
#define TQ_WORKER_CHANNEL "tq_worker_" /* and of workers */

extern const TqShmemPart tq_listener_shmem;

extern uint64 tq_listener_channel_bit(const char *channel);
extern void tq_listener_add(const char *channel);
extern uint64 tq_listener_channels(void);

#endif /* TQ_LISTENER_H */
