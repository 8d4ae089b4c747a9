/*
 * definition.h
 *	  Task definitions: the rules for their values, and definitions from the
 *	  arguments of enqueue().
 */
#ifndef TQ_DEFINITION_H
#define TQ_DEFINITION_H

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
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

/*
 * What is wrong with a definition.  The functions that take it note a fault, and
 * return a value that is safe to go on with, so that one error has them all.
 */
typedef struct TqFaults
{
	const TqSlug *task_id;
	int element;       /* of an array, from 1; 0: there is no array */
	bool of_arguments; /* of enqueue(), and named like them */
	int n;
	int labeled;         /* the element that was named last */
	const char *key;     /* of the last one */
	const char *hint;    /* the same, or NULL */
	StringInfoData list; /* not valid if there is none */
} TqFaults;

extern void tq_definition_fill(TqFaults *faults, TqTaskDefinition *definition,
							   const TqEnqueue *arguments);
extern void tq_definition_depend_on_self(TqTaskDefinition *definition);

extern void tq_fault(TqFaults *faults, const char *key, const char *rule);
extern void tq_fault_with_hint(TqFaults *faults, const char *key,
							   const char *rule, const char *hint);
extern void tq_faults_add_times(TqFaults *faults,
								TqTaskDefinition *definition);
extern void tq_faults_raise(const TqFaults *faults);

extern int tq_definition_priority(TqFaults *faults, const char *name);
extern bool tq_definition_requires(TqFaults *faults, const char *name);
extern int tq_definition_retries(TqFaults *faults, int64 retries);
extern ArrayType *tq_definition_routes(TqFaults *faults, char **routes, int n);
extern ArrayType *tq_definition_scopes(TqFaults *faults, char **scopes, int n);
extern Jsonb *tq_definition_tags(TqFaults *faults, Jsonb *tags);

extern void tq_definition_check_project(TqFaults *faults,
										const TqTaskDefinition *definition);
extern void
tq_definition_check_dependencies(TqFaults *faults,
								 const TqTaskDefinition *definition);
extern void tq_definition_check_sizes(TqFaults *faults,
									  const TqTaskDefinition *definition);
extern void tq_definition_check_whole(TqFaults *faults,
									  const TqTaskDefinition *definition);
extern void tq_definition_apply_policy(TqFaults *faults,
									   TqTaskDefinition *definition,
									   Jsonb *policy);
extern void tq_definition_apply_default(TqTaskDefinition *definition);
extern TqRetention tq_retention_of(const TqPolicy *policy, int32 queue);
extern void tq_definition_shift_times(TqTaskDefinition *definition);
extern void tq_check_times(TqFaults *faults,
						   const TqTaskDefinition *definition,
						   TimestampTz now);

#endif /* TQ_DEFINITION_H */
