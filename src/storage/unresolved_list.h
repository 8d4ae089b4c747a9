/*
 * unresolved_list.h
 *	  Pages of the unresolved tasks of a queue.
 */
#ifndef TQ_UNRESOLVED_LIST_H
#define TQ_UNRESOLVED_LIST_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "run_table.h"

/* Which tasks of a queue are wanted. */
typedef struct TqUnresolvedFilter
{
	int32 queue;
	TimestampTz created_by; /* tasks that were created later are not wanted */
	const char *name;       /* of the metadata; NULL: any */
	Jsonb *tags;            /* that a task must have; NULL: none */
} TqUnresolvedFilter;

/* A row of one of the tables in which unresolved tasks are. */
typedef struct TqUnresolvedRow
{
	int64 task;
	int64 place; /* in the order of the page */
	bool is_wanted;
} TqUnresolvedRow;

extern TqUnresolvedRow *tq_unresolved_page(const TqUnresolvedFilter *filter,
										   TqTaskLocation location,
										   int priority, int64 after, int max,
										   int *found);

#endif /* TQ_UNRESOLVED_LIST_H */
