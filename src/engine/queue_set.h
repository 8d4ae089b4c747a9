/*
 * queue_set.h
 *	  The queues from which one call claims, or for which it waits.
 */
#ifndef TQ_QUEUE_SET_H
#define TQ_QUEUE_SET_H

#include "datatype/timestamp.h"

#include "../shmem/wait_queue.h"

#define TQ_QUEUE_SET_MAX 100
#define TQ_QUEUE_NAME_SIZE 80 /* 38 + 1 + 38 and the terminating zero */

/* A queue of the set, and what the last try has found out about it. */
typedef struct TqSetQueue
{
	char name[TQ_QUEUE_NAME_SIZE];
	int32 number;    /* 0: not known yet */
	int element;     /* that it stands for */
	bool by_pattern; /* it is not named itself */
	bool is_barred;  /* the worker is in quarantine */
	bool may_claim;  /* a claim may find something */
	bool is_asked;   /* the try has looked for a run */
	bool is_empty;   /* … and there is no further one */
	int claimed;     /* by this try */
} TqSetQueue;

/* The queues of a call, in its order; those of a pattern by name. */
typedef struct TqQueueSet
{
	char **elements; /* task queues and patterns, each once */
	int nelements;
	bool has_pattern;
	int n;
	TqSetQueue queues[TQ_QUEUE_SET_MAX];
} TqQueueSet;

/* The lists of the wait queue in which a session waits for a set. */
typedef struct TqSetLists
{
	int n;
	int32 numbers[TQ_WAIT_LISTS];
} TqSetLists;

extern void tq_queue_set_init(TqQueueSet *set, char **elements, int n);
extern void tq_queue_set_require(const TqQueueSet *set);
extern void tq_queue_set_require_claim(const TqQueueSet *set,
									   const char *worker_group,
									   const char *worker_id);
extern void tq_queue_set_read(TqQueueSet *set);
extern void tq_queue_set_by_name(TqQueueSet *set, int *order);
extern void tq_queue_set_intern(TqQueueSet *set);
extern bool tq_queue_set_is_claimable(const TqQueueSet *set, TimestampTz now,
									  TimestampTz *again);
extern TqSetLists tq_queue_set_lists(const TqQueueSet *set);
extern bool tq_set_lists_are_equal(const TqSetLists *a, const TqSetLists *b);

/* Returns the earlier one of two times, of which 0 is none. */
static inline TimestampTz
tq_earlier(TimestampTz a, TimestampTz b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

#endif /* TQ_QUEUE_SET_H */
