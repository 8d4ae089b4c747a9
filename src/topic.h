/*
 * topic.h
 *	  AMQP topic patterns: compile once, match many routing keys.
 *
 * Room 0.  A pattern is compiled into memory that the caller gives, and is
 * given back with it; it must not be moved.  One thread may match with it at a
 * time, as it has its working memory there too.
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
