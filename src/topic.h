/*
 * topic.h
 *	  AMQP topic patterns: compile once, match many routing keys.
 *
 * Room 0.  A pattern is compiled into memory that the caller allocates and
 * frees; it must not be moved.  Only one thread may match with a pattern at a
 * time, because the pattern holds its working memory.
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
