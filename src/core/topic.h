/*
 * topic.h
 *	  AMQP topic matching: does a pattern match a routing key?
 */
#ifndef TQ_TOPIC_H
#define TQ_TOPIC_H

#include <stdbool.h>
#include <stddef.h>

typedef struct TqPattern TqPattern;

extern size_t tq_topic_size(const char *pattern);
extern TqPattern *tq_topic_build(const char *pattern, void *memory);
extern bool tq_topic_match(const TqPattern *pattern, const char *routing_key);

#endif /* TQ_TOPIC_H */
