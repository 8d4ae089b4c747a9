/*
 * definition.c
 *	  Task definitions from the arguments of enqueue(), and dependencies of a task
 *	  on itself.
 *
 * definition_json.c reads JSON definitions; definition_check.c has the rules for
 * both.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "../events/status_json.h"
#include "../storage/task_table.h"
#include "../util/json_reader.h"
#include "../util/slugid.h"
#include "definition.h"
#include "definition_check.h"
#include "identifier.h"

/* Returns the elements of a text array, none of which may be NULL. */
static char **
strings_of_array(const TqSlug *task_id, const char *key, ArrayType *array,
				 int *n)
{
	Datum *elements;
	bool *nulls;
	char **items;

	*n = 0;
	if (array == NULL)
		return NULL;
	deconstruct_array(array,
					  TEXTOID,
					  -1,
					  false,
					  TYPALIGN_INT,
					  &elements,
					  &nulls,
					  n);
	items = palloc(sizeof(char *) * Max(*n, 1));
	for (int i = 0; i < *n; i++)
	{
		if (nulls[i])
			tq_definition_error(task_id, key, "must not have a NULL element");
		items[i] = TextDatumGetCString(elements[i]);
	}
	return items;
}

static Jsonb *
checked_object(const TqSlug *task_id, const char *key, Jsonb *object)
{
	if (!JB_ROOT_IS_OBJECT(object))
		tq_definition_error(task_id, key, "must be an object");
	return object;
}

static Jsonb *
metadata_with_name(const TqTask *task, const char *name)
{
	if (name == NULL)
		return NULL;
	if (pg_mbstrlen(name) > 255)
		tq_definition_error(&task->task_id,
							"name",
							"must have at most 255 characters");
	return tq_metadata_json(name);
}

/* Checks the payload of enqueue(). */
void
tq_definition_check_payload(const TqTask *task)
{
	(void) checked_object(&task->task_id, "payload", task->payload);
	tq_definition_check_whole(task);
}

/*
 * Completes a task of enqueue() from its arguments, except for the payload.
 * Names, dependencies and times are in the task already and are checked here.
 */
void
tq_definition_fill(TqTask *task, const TqEnqueue *arguments)
{
	const TqSlug *task_id = &task->task_id;
	int n;
	char **items;

	if (!tq_is_identifier(task->scheduler_id))
		tq_definition_error(task_id, "schedulerId", TQ_IDENTIFIER_RULE);
	tq_definition_check_project(task);
	tq_definition_check_dependencies(task);
	task->all_resolved = tq_definition_requires(task_id, arguments->requires);
	task->priority = tq_definition_priority(task_id, arguments->priority);
	task->retries = tq_definition_retries(task_id, arguments->retries);
	items = strings_of_array(task_id, "routes", arguments->routes, &n);
	task->routes = tq_definition_routes(task_id, items, n);
	items = strings_of_array(task_id, "scopes", arguments->scopes, &n);
	task->scopes = tq_definition_scopes(task_id, items, n);
	task->tags =
		tq_definition_tags(task_id,
						   checked_object(task_id, "tags", arguments->tags));
	task->extra = tq_json_unless_empty(
		checked_object(task_id, "extra", arguments->extra));
	task->metadata = metadata_with_name(task, arguments->name);
	if (arguments->policy != NULL)
		tq_definition_apply_policy(task,
								   checked_object(task_id,
												  "policy",
												  arguments->policy));
	if (arguments->delay_ms > 0)
		task->delay = arguments->delay_ms;
	tq_definition_check_sizes(task);
}

/*
 * Adds the id of the task itself as the first dependency, unless it is one
 * already, as define_task() does (doc/spec/taskcluster.md 2.2).
 */
void
tq_definition_depend_on_self(TqTask *task)
{
	TqSlug *slugs;

	for (int i = 0; i < task->ndependencies; i++)
	{
		if (tq_slug_compare(&task->dependencies[i], &task->task_id) == 0)
			return;
	}
	slugs = palloc(sizeof(TqSlug) * (task->ndependencies + 1));
	slugs[0] = task->task_id;
	memcpy(slugs + 1,
		   task->dependencies,
		   sizeof(TqSlug) * task->ndependencies);
	task->dependencies = slugs;
	task->ndependencies++;
	tq_definition_check_dependencies(task);
}
