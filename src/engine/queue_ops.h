/*
 * queue_ops.h
 *	  Requests of clients about a queue: change its settings, pause, resume.
 */
#ifndef TQ_QUEUE_OPS_H
#define TQ_QUEUE_OPS_H

#include "utils/jsonb.h"

extern Jsonb *tq_queue_set(const char *queue_name, Jsonb *changes);
extern Jsonb *tq_queue_pause(const char *queue_name, bool pause);
extern Jsonb *tq_queue_get_settings(const char *queue_name);

#endif /* TQ_QUEUE_OPS_H */
