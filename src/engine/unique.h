/*
 * unique.h
 *	  Unique keys: which tasks of a call are not created, because another task
 *	  holds their key.
 */
#ifndef TQ_UNIQUE_H
#define TQ_UNIQUE_H

#include "datatype/timestamp.h"

#include "../storage/task_table.h"

/* The unique keys of the tasks of one call. */
typedef struct TqUnique TqUnique;

extern bool tq_unique_is_used(const TqTaskDefinition *tasks, int n);
extern TqUnique *tq_unique_begin(TqTaskDefinition *tasks, int n,
								 TimestampTz now);
extern int tq_unique_decide(TqUnique *unique, int *left);
extern bool tq_unique_is_met(const TqUnique *unique, int index);
extern int64 *tq_unique_to_replace(const TqUnique *unique, int *n);
extern void tq_unique_set(TqUnique *unique);
extern bool tq_unique_follow(TqUnique *unique);

#endif /* TQ_UNIQUE_H */
