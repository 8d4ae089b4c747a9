/*
 * definition.h
 *	  Task definitions: the rules for their values, and definitions from the
 *	  arguments of enqueue().
 */
#ifndef TQ_DEFINITION_H
#define TQ_DEFINITION_H

#include "datatype/timestamp.h"
#include "utils/array.h"
#include "utils/jsonb.h"

#include "../core/policy.h"
#include "../storage/task_table.h"
#include "../util/slugid.h"

#define TQ_RETRIES_DEFAULT 5 /* of a definition, and of enqueue() */
#define TQ_RETRIES_MAX 49    /* the same, unless the policy gives them */

/* The arguments of enqueue() that are checked like a definition. */
typedef struct TqEnqueue
{
	const char *requires;
	const char *priority;
	int retries; /* TQ_OFF: not given; also the next */
	int retry;   /* retries under the policy that it stands for */
	ArrayType *routes;
	ArrayType *scopes;
	Jsonb *tags;
	Jsonb *extra;
	const char *name;
	Jsonb *policy; /* NULL: none */
	int64 delay_ms;
	TimestampTz run_at; /* 0: none; excludes a delay */
} TqEnqueue;

extern void tq_definition_fill(TqTaskDefinition *definition,
							   const TqEnqueue *arguments);
extern void tq_definition_depend_on_self(TqTaskDefinition *definition);

extern void tq_definition_error(const TqSlug *task_id, const char *key,
								const char *rule);

/* These raise an error for a value that breaks a rule, or return it. */
extern int tq_definition_priority(const TqSlug *task_id, const char *name);
extern bool tq_definition_requires(const TqSlug *task_id, const char *name);
extern int tq_definition_retries(const TqSlug *task_id, int64 retries);
extern ArrayType *tq_definition_routes(const TqSlug *task_id, char **routes,
									   int n);
extern ArrayType *tq_definition_scopes(const TqSlug *task_id, char **scopes,
									   int n);
extern Jsonb *tq_definition_tags(const TqSlug *task_id, Jsonb *tags);

extern void tq_definition_check_project(const TqTaskDefinition *definition);
extern void
tq_definition_check_dependencies(const TqTaskDefinition *definition);
extern void tq_definition_check_sizes(const TqTaskDefinition *definition);
extern void tq_definition_check_whole(const TqTaskDefinition *definition);
extern void tq_definition_apply_policy(TqTaskDefinition *definition,
									   Jsonb *policy);
extern void tq_definition_apply_default(TqTaskDefinition *definition);
extern TqRetention tq_retention_of(const TqPolicy *policy, int32 queue);
extern void tq_definition_shift_times(TqTaskDefinition *definition);
extern void tq_check_times(const TqTaskDefinition *definition,
						   TimestampTz now);

#endif /* TQ_DEFINITION_H */
