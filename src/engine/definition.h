/*
 * definition.h
 *	  Task definitions: names, limits, times.
 */
#ifndef TQ_DEFINITION_H
#define TQ_DEFINITION_H

#include "datatype/timestamp.h"
#include "utils/array.h"
#include "utils/jsonb.h"

#include "../storage/task_table.h"
#include "../util/slugid.h"

extern void tq_check_identifier(const char *what, const char *value);
extern void tq_check_task_queue_id(const char *value);
extern void tq_check_times(const TqTask *task, TimestampTz now);
extern TqTask *tq_definition_parse(const TqSlug *task_id, Jsonb *definition);
extern void tq_definition_depend_on_self(TqTask *task);

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

#endif /* TQ_DEFINITION_H */
