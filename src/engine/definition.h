/*
 * definition.h
 *	  Task definitions from the arguments of enqueue(), and dependencies of a task
 *	  on itself.
 */
#ifndef TQ_DEFINITION_H
#define TQ_DEFINITION_H

#include "utils/array.h"
#include "utils/jsonb.h"

#include "../storage/task_table.h"

/* The arguments of enqueue() that are checked like a definition. */
typedef struct TqEnqueue
{
	const char *requires;
	const char *priority;
	int retries;
	ArrayType *routes;
	ArrayType *scopes;
	Jsonb *tags;
	Jsonb *extra;
	const char *name;
	Jsonb *policy; /* NULL: none */
	int64 delay_ms;
} TqEnqueue;

extern void tq_definition_check_payload(const TqTask *task);
extern void tq_definition_fill(TqTask *task, const TqEnqueue *arguments);
extern void tq_definition_depend_on_self(TqTask *task);

#endif /* TQ_DEFINITION_H */
