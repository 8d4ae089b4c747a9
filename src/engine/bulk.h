/*
 * bulk.h
 *	  Operations on many unresolved tasks of a queue, batch by batch.
 */
#ifndef TQ_BULK_H
#define TQ_BULK_H

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "../storage/task_lock.h"
#include "../storage/unresolved_list.h"

/* Places of a queue in each of which the tasks have an order. */
#define TQ_BULK_LISTS (3 + TQ_PRIORITY_HIGHEST)

/*
 * An operation.  The caller sets what comes first, and calls tq_bulk_begin()
 * and then tq_bulk_next() in one transaction each, until that returns false.
 * The lists of tasks that it keeps are in the memory context of that time.
 */
typedef struct TqBulk
{
	TqUnresolvedFilter filter;
	bool of[TQ_STATES]; /* whether tasks in that state are wanted */
	int64 max;          /* tasks at most */

	/* Applies the operation to locked tasks; returns to how many. */
	int (*apply)(struct TqBulk *bulk, TqLockedTasks *locked, TimestampTz now);
	const char *to_queue; /* of a move: the other queue */

	int64 done;    /* tasks */
	int64 skipped; /* tasks that other sessions had locked */
	int64 left;    /* tasks with keys, which are not moved */

	/* the rest is private */
	int list; /* the list that is read */
	int64 after[TQ_BULK_LISTS];
	bool has_found; /* a wanted task, since the first list */
	bool is_again;  /* the tasks that were locked are tried again */
	MemoryContext memory;
	int64 *locked; /* tasks that were locked */
	int64 nlocked;
	int64 room;
	int64 tried; /* of these */
} TqBulk;

extern void tq_bulk_begin(TqBulk *bulk);
extern bool tq_bulk_next(TqBulk *bulk, TimestampTz now);

extern int tq_bulk_cancel(TqBulk *bulk, TqLockedTasks *locked,
						  TimestampTz now);
extern int tq_bulk_move(TqBulk *bulk, TqLockedTasks *locked, TimestampTz now);

#endif /* TQ_BULK_H */
