/*
 * definition_json.c
 *	  Reads a task definition from JSON (doc/spec/taskcluster.md 1.2).
 *
 * Fills in every default, or raises TQ400.  create.c decides whether the
 * required tasks exist and whether the id of the task is free.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/types.h"
#include "../storage/columns.h"
#include "../storage/policy_json.h"
#include "../storage/task_table.h"
#include "../util/clock.h"
#include "../util/errors.h"
#include "../util/json_reader.h"
#include "../util/slugid.h"
#include "definition.h"
#include "definition_json.h"
#include "identifier.h"

#define RETRIES_DEFAULT 5

static void
refuse(const TqJsonReader *source, const char *key, const char *rule)
{
	tq_definition_error(source->owner, key, rule);
}

static char *
get_identifier(const TqJsonReader *source, const char *key)
{
	char *value = tq_json_read_string(source, key);

	if (value != NULL && !tq_is_identifier(value))
		refuse(source, key, TQ_IDENTIFIER_RULE);
	return value;
}

/*
 * Returns whether the policy gives the number of retries.  Then retries may be
 * above the limit, because task() returns the number that the policy gave.
 */
static bool
has_policy_retries(const TqJsonReader *source)
{
	JsonbValue *policy = tq_json_get(source->json, "policy");
	JsonbValue *retries;

	if (policy == NULL || !tq_json_is_object(policy))
		return false;
	retries = tq_json_member(policy->val.binary.data, "retries");
	return retries != NULL && retries->type != jbvNull;
}

static int
get_retries(const TqJsonReader *source)
{
	JsonbValue *value = tq_json_get(source->json, "retries");
	int64 retries;

	if (value == NULL)
		return RETRIES_DEFAULT;
	if (!tq_json_whole_number(value, 0, PG_INT16_MAX, &retries))
		retries = -1;
	return retries >= 0 && has_policy_retries(source)
			   ? (int) retries
			   : tq_definition_retries(source->owner, retries);
}

/*
 * Returns whether text begins as doc/spec/taskcluster.md 1.2 requires of a
 * source.
 */
static bool
is_source(const char *text)
{
	return strncmp(text, "https://", 8) == 0 ||
		   strncmp(text, "http://", 7) == 0 ||
		   strncmp(text, "ssh://", 6) == 0 || strncmp(text, "git@", 4) == 0;
}

/* Checks that the metadata has its four keys, and nothing else. */
static void
check_metadata(const TqJsonReader *source, const Jsonb *metadata)
{
	static const struct
	{
		const char *key;
		int max;
	} fields[] = {{"name", 255},
				  {"description", 32768},
				  {"owner", 255},
				  {"source", 4096}};

	if (metadata == NULL)
		refuse(source, "metadata", "is required");
	for (int i = 0; i < lengthof(fields); i++)
	{
		JsonbValue *value = tq_json_get(metadata, fields[i].key);

		if (value == NULL || !tq_json_is_string(value, fields[i].max))
			refuse(
				source, "metadata",
				psprintf("must have a string \"%s\" of at most %d characters",
						 fields[i].key, fields[i].max));
	}
	if (JB_ROOT_COUNT(metadata) != lengthof(fields))
		refuse(
			source, "metadata",
			"must have name, description, owner and source, and nothing else");
	if (!is_source(tq_json_get_text(metadata, "source")))
		refuse(
			source, "metadata",
			"must have a \"source\" that begins with http://, https://, ssh:// or git@");
}

static const char *const known_keys[] =
	{"provisionerId", "workerType",  "taskQueueId",  "schedulerId",
	 "projectId",     "taskGroupId", "dependencies", "requires",
	 "routes",        "priority",    "retries",      "created",
	 "deadline",      "expires",     "scopes",       "payload",
	 "metadata",      "tags",        "extra",        "policy",
	 "delay"};

static bool
is_known(const JsonbValue *key)
{
	for (int i = 0; i < lengthof(known_keys); i++)
	{
		if (tq_json_has_text(key, known_keys[i]))
			return true;
	}
	return false;
}

/* Checks that every key is a key of a task definition. */
static void
check_keys(const TqJsonReader *source)
{
	TqJsonIterator it = tq_json_iterate(&source->json->root);

	while (tq_json_next(&it))
	{
		if (!is_known(&it.key))
			refuse(source, tq_error_clip(tq_json_string_of(&it.key)),
				   "is not a key of a task definition");
	}
}

/*
 * Reads the task queue: taskQueueId, or provisionerId and workerType, or all
 * three if they agree.
 */
static void
read_queue(const TqJsonReader *source, TqNamedTask *named)
{
	char *queue = tq_json_read_string(source, "taskQueueId");
	char *provisioner = get_identifier(source, "provisionerId");
	char *worker_type = get_identifier(source, "workerType");
	char *slash;

	if (queue != NULL && !tq_is_task_queue_id(queue))
		refuse(source, "taskQueueId", "must be provisionerId/workerType");
	if (queue == NULL && (provisioner == NULL || worker_type == NULL))
		refuse(source, "taskQueueId",
			   "is required, or provisionerId and workerType");
	if (queue == NULL)
		queue = psprintf("%s/%s", provisioner, worker_type);
	slash = strchr(queue, '/');
	if ((provisioner != NULL &&
		 strcmp(provisioner, pnstrdup(queue, slash - queue)) != 0) ||
		(worker_type != NULL && strcmp(worker_type, slash + 1) != 0))
		refuse(source, "taskQueueId",
			   "must agree with provisionerId and workerType");
	named->queue_name = queue;
}

/* Reads schedulerId, projectId and taskGroupId, or sets their defaults. */
static void
read_names(const TqJsonReader *source, TqTaskDefinition *definition)
{
	TqNamedTask *named = &definition->named;
	bool has_group = tq_json_read_slug(source, "taskGroupId",
									   &named->group_slug);
	char *scheduler = get_identifier(source, "schedulerId");
	char *project = tq_json_read_string(source, "projectId");

	if (!has_group)
		named->group_slug = named->task.task_id;
	named->scheduler_id = scheduler != NULL ? scheduler
											: pstrdup(TQ_DEFAULT_SCHEDULER);
	named->project_id = project != NULL ? project
										: pstrdup(TQ_DEFAULT_PROJECT);
	tq_definition_check_project(definition);
}

/* Reads the task ids of the dependencies. */
static void
read_dependencies(const TqJsonReader *source, TqTaskDefinition *definition)
{
	int n;
	char **names = tq_json_read_strings(source, "dependencies", &n);

	definition->dependencies = palloc(sizeof(TqSlug) * Max(n, 1));
	definition->ndependencies = n;
	for (int i = 0; i < n; i++)
	{
		if (!tq_slug_parse(names[i], strlen(names[i]),
						   &definition->dependencies[i]))
			refuse(source, "dependencies", "must be an array of slugids");
	}
	tq_definition_check_dependencies(definition);
}

static void
read_lists(const TqJsonReader *source, TqTaskDefinition *definition)
{
	int n;
	char **items;

	read_dependencies(source, definition);
	items = tq_json_read_strings(source, "routes", &n);
	definition->routes = tq_definition_routes(source->owner, items, n);
	items = tq_json_read_strings(source, "scopes", &n);
	definition->scopes = tq_definition_scopes(source->owner, items, n);
}

static void
read_words(const TqJsonReader *source, TqTask *task)
{
	char *requires = tq_json_read_string(source, "requires");
	char *priority;

	task->all_resolved = requires != NULL &&
						 tq_definition_requires(source->owner, requires);
	priority = tq_json_read_string(source, "priority");
	task->priority = priority == NULL
						 ? TQ_PRIORITY_LOWEST
						 : tq_definition_priority(source->owner, priority);
}

static void
read_objects(const TqJsonReader *source, TqTaskDefinition *definition)
{
	definition->payload = tq_json_read_object(source, "payload");
	if (definition->payload == NULL)
		refuse(source, "payload", "is required");
	definition->metadata = tq_json_read_object(source, "metadata");
	check_metadata(source, definition->metadata);
	definition->tags = tq_definition_tags(source->owner,
										  tq_json_read_object(source, "tags"));
	definition->extra = tq_json_unless_empty(
		tq_json_read_object(source, "extra"));
}

static void
read_times(const TqJsonReader *source, TqTask *task)
{
	if (!tq_json_read_time(source, "created", &task->created))
		refuse(source, "created", "is required");
	if (!tq_json_read_time(source, "deadline", &task->deadline))
		refuse(source, "deadline", "is required");
	if (!tq_json_read_time(source, "expires", &task->expires))
		task->expires = tq_clock_next_year(task->deadline);
}

/*
 * Reads the policy and the delay.  A delay of the definition wins over one of
 * the policy.
 */
static void
read_policy(const TqJsonReader *source, TqTaskDefinition *definition)
{
	JsonbValue *policy = tq_json_get(source->json, "policy");
	JsonbValue *delay = tq_json_get(source->json, "delay");
	const char *fault;
	int64 ms;

	if (policy != NULL && policy->type != jbvNull)
		tq_definition_apply_policy(definition,
								   tq_json_read_object(source, "policy"));
	if (delay == NULL || delay->type == jbvNull)
		return;
	fault = tq_duration_parse(delay, &ms);
	if (fault != NULL)
		refuse(source, "delay", fault);
	definition->named.task.delay = ms;
}

/*
 * Parses a JSON definition.  Does not compare its times with the clock; see
 * tq_check_times().
 */
TqTaskDefinition *
tq_definition_parse(const TqSlug *task_id, Jsonb *json)
{
	TqJsonReader source = {json, refuse, task_id};
	TqTaskDefinition *definition = palloc0(sizeof(TqTaskDefinition));
	TqTask *task = &definition->named.task;

	if (!JB_ROOT_IS_OBJECT(json))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("task definition must be a JSON object"),
			 errdetail("Task \"%s\".", tq_slug_text(task_id)),
			 errhint(
				 "Send an object with taskQueueId, created, deadline, payload and metadata.")));
	task->task_id = *task_id;
	check_keys(&source);
	read_queue(&source, &definition->named);
	read_names(&source, definition);
	read_lists(&source, definition);
	read_words(&source, task);
	task->retries = get_retries(&source);
	read_objects(&source, definition);
	read_policy(&source, definition);
	read_times(&source, task);
	tq_definition_check_sizes(definition);
	tq_definition_check_whole(definition);
	return definition;
}
