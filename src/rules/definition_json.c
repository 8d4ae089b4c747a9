/*
 * definition_json.c
 *	  Reads a task definition from JSON (doc/spec/taskcluster.md 1.2).
 *
 * Fills in every default, or raises TQ400.  create.c decides whether the
 * required tasks exist and whether the id of the task is free.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "../storage/columns.h"
#include "../storage/registry.h"
#include "rules.h"

/* The keys of a definition, in the order of TqJsonKey. */
#define KEYS(KEY)                                                             \
	KEY(TAGS, "tags")                                                         \
	KEY(DELAY, "delay")                                                       \
	KEY(EXTRA, "extra")                                                       \
	KEY(POLICY, "policy")                                                     \
	KEY(ROUTES, "routes")                                                     \
	KEY(SCOPES, "scopes")                                                     \
	KEY(CREATED, "created")                                                   \
	KEY(EXPIRES, "expires")                                                   \
	KEY(PAYLOAD, "payload")                                                   \
	KEY(RETRIES, "retries")                                                   \
	KEY(DEADLINE, "deadline")                                                 \
	KEY(METADATA, "metadata")                                                 \
	KEY(PRIORITY, "priority")                                                 \
	KEY(REQUIRES, "requires")                                                 \
	KEY(PROJECT_ID, "projectId")                                              \
	KEY(WORKER_TYPE, "workerType")                                            \
	KEY(SCHEDULER_ID, "schedulerId")                                          \
	KEY(TASK_GROUP_ID, "taskGroupId")                                         \
	KEY(TASK_QUEUE_ID, "taskQueueId")                                         \
	KEY(DEPENDENCIES, "dependencies")                                         \
	KEY(PROVISIONER_ID, "provisionerId")

enum
{
	KEYS(TQ_JSON_KEY_NUMBER)
};

static const TqJsonKey keys[] = {KEYS(TQ_JSON_KEY_NAME)};

/* The keys of its metadata. */
#define METADATA_KEYS(KEY)                                                    \
	KEY(NAME, "name")                                                         \
	KEY(OWNER, "owner")                                                       \
	KEY(SOURCE, "source")                                                     \
	KEY(DESCRIPTION, "description")

enum
{
	METADATA_KEYS(TQ_JSON_KEY_NUMBER)
};

static const TqJsonKey metadata_keys[] = {METADATA_KEYS(TQ_JSON_KEY_NAME)};

/* The most characters that each may have, in the order of checking: source is last. */
static const struct
{
	int key;
	int max;
} metadata_fields[] = {{KEY_NAME, 255},
					   {KEY_DESCRIPTION, 32768},
					   {KEY_OWNER, 255},
					   {KEY_SOURCE, 4096}};

static void
definition_json_refuse(const TqJsonReader *source, const char *key,
					   const char *rule)
{
	tq_fault(source->owner, key, rule);
}

static void
refuse_missing(const TqJsonReader *source, const char *key, const char *rule)
{
	tq_fault_with_hint(source->owner, key, rule,
					   "Add it, and send the definition again.");
}

static char *
get_identifier(const TqJsonReader *source, int key)
{
	char *value = tq_json_read_string(source, key);

	if (value != NULL && !tq_is_identifier(value))
		definition_json_refuse(source, keys[key].name,
							   psprintf(TQ_IDENTIFIER_RULE "; it is \"%s\"",
										tq_error_clip(value)));
	return value;
}

/*
 * Returns whether the policy gives the number of retries.  Then retries may be
 * above the limit, because task() returns the number that the policy gave.
 */
static bool
has_policy_retries(const TqJsonReader *source)
{
	const JsonbValue *policy = tq_json_at(source, KEY_POLICY);
	JsonbValue *retries;

	if (policy == NULL || !tq_json_is_object(policy))
		return false;
	retries = tq_json_member(policy->val.binary.data, "retries");
	return retries != NULL && retries->type != jbvNull;
}

static int
checked_retries(TqFaults *faults, int64 retries)
{
	if (retries < 0 || retries > TQ_RETRIES_MAX)
		tq_fault(
			faults, "retries",
			psprintf(
				"must be a whole number from 0 to %d; it is " INT64_FORMAT,
				TQ_RETRIES_MAX, retries));
	return (int) retries;
}

static int
get_retries(const TqJsonReader *source)
{
	const JsonbValue *value = tq_json_at(source, KEY_RETRIES);
	int64 retries;

	if (value == NULL)
		return TQ_RETRIES_DEFAULT;
	if (!tq_json_whole_number(value, 0, PG_INT16_MAX, &retries))
	{
		definition_json_refuse(
			source, "retries",
			psprintf("must be a whole number from 0 to %d; it is %s",
					 TQ_RETRIES_MAX, tq_json_shown(value)));
		return 0;
	}
	return has_policy_retries(source)
			   ? (int) retries
			   : checked_retries(source->owner, retries);
}

/*
 * Returns whether a string begins as doc/spec/taskcluster.md 1.2 requires of a
 * source.
 */
static bool
is_source(const JsonbValue *value)
{
	static const char *const starts[] = {"https://", "http://", "ssh://",
										 "git@"};

	for (int i = 0; i < lengthof(starts); i++)
	{
		size_t len = strlen(starts[i]);

		if (value->val.string.len >= len &&
			memcmp(value->val.string.val, starts[i], len) == 0)
			return true;
	}
	return false;
}

/* Returns what a value of the metadata is, when it is not what it must be. */
static const char *
metadata_fault(const JsonbValue *value)
{
	if (value == NULL)
		return "it has none";
	if (value->type != jbvString)
		return psprintf("it is %s", tq_json_shown(value));
	return psprintf("it has %d characters: %s",
					pg_mbstrlen_with_len(value->val.string.val,
										 value->val.string.len),
					tq_json_shown(value));
}

/* Checks a string of the metadata; returns whether it is one. */
static bool
check_field(const TqJsonReader *source, const TqJsonReader *metadata, int key,
			int max)
{
	const JsonbValue *value = tq_json_at(metadata, key);

	if (value != NULL && tq_json_is_string(value, max))
		return true;
	definition_json_refuse(
		source, "metadata",
		psprintf("must have a string \"%s\" of at most %d characters; %s",
				 metadata_keys[key].name, max, metadata_fault(value)));
	return false;
}

/* Checks that the metadata has its four keys, and nothing else. */
static void
check_metadata(const TqJsonReader *source, const Jsonb *metadata)
{
	TqJsonReader reader = {metadata_keys, lengthof(metadata_keys)};
	JsonbValue unknown;
	bool all_known;
	bool has_source = false;

	if (metadata == NULL)
	{
		if (tq_json_at(source, KEY_METADATA) == NULL)
			refuse_missing(source, "metadata", "is required");
		return;
	}
	all_known = tq_json_open(&reader, &metadata->root, &unknown);
	for (int i = 0; i < lengthof(metadata_fields); i++)
		has_source = check_field(source, &reader, metadata_fields[i].key,
								 metadata_fields[i].max);
	if (!all_known)
		definition_json_refuse(
			source, "metadata",
			psprintf(
				"must have name, description, owner and source, and nothing else; it has %s",
				tq_json_shown(&unknown)));
	if (has_source && !is_source(tq_json_at(&reader, KEY_SOURCE)))
		definition_json_refuse(
			source, "metadata",
			psprintf(
				"must have a \"source\" that begins with http://, https://, ssh:// or git@; it is %s",
				tq_json_shown(tq_json_at(&reader, KEY_SOURCE))));
}

/*
 * Reads the task queue: taskQueueId, or provisionerId and workerType, or all
 * three if they agree.
 */
static void
definition_json_read_queue(const TqJsonReader *source, TqNamedTask *named)
{
	const TqFaults *faults = source->owner;
	int known = faults->n;
	char *queue = tq_json_read_string(source, KEY_TASK_QUEUE_ID);
	char *provisioner = get_identifier(source, KEY_PROVISIONER_ID);
	char *worker_type = get_identifier(source, KEY_WORKER_TYPE);
	char *slash;

	named->queue_name = pstrdup(""); /* until it is known to be valid */
	if (faults->n > known)
		return;
	if (queue != NULL && !tq_is_task_queue_id(queue))
	{
		definition_json_refuse(
			source, "taskQueueId",
			psprintf("must be provisionerId/workerType; it is \"%s\"",
					 tq_error_clip(queue)));
		return;
	}
	if (queue == NULL && (provisioner == NULL || worker_type == NULL))
	{
		refuse_missing(source, "taskQueueId",
					   "is required, or provisionerId and workerType");
		return;
	}
	if (queue == NULL)
		queue = psprintf("%s/%s", provisioner, worker_type);
	slash = strchr(queue, '/');
	if ((provisioner != NULL &&
		 strcmp(provisioner, pnstrdup(queue, slash - queue)) != 0) ||
		(worker_type != NULL && strcmp(worker_type, slash + 1) != 0))
		definition_json_refuse(source, "taskQueueId",
							   "must agree with provisionerId and workerType");
	named->queue_name = queue;
}

/* Reads schedulerId, projectId and taskGroupId, or sets their defaults. */
static void
read_names(const TqJsonReader *source, TqTaskDefinition *definition)
{
	TqNamedTask *named = &definition->named;
	bool has_group = tq_json_read_slug(source, KEY_TASK_GROUP_ID,
									   &named->group_slug);
	char *scheduler = get_identifier(source, KEY_SCHEDULER_ID);
	char *project = tq_json_read_string(source, KEY_PROJECT_ID);

	if (!has_group)
		named->group_slug = named->task.task_id;
	named->scheduler_id = scheduler != NULL ? scheduler
											: pstrdup(TQ_DEFAULT_SCHEDULER);
	named->project_id = project != NULL ? project
										: pstrdup(TQ_DEFAULT_PROJECT);
	tq_definition_check_project(source->owner, definition);
}

/* Reads the task ids of the dependencies. */
static void
definition_json_read_dependencies(const TqJsonReader *source,
								  TqTaskDefinition *definition)
{
	int n;
	char **names = tq_json_read_strings(source, KEY_DEPENDENCIES, &n);

	definition->dependencies = palloc(sizeof(TqSlug) * Max(n, 1));
	definition->ndependencies = n;
	for (int i = 0; i < n; i++)
	{
		if (tq_slug_parse(names[i], strlen(names[i]),
						  &definition->dependencies[i]))
			continue;
		definition_json_refuse(
			source, "dependencies",
			psprintf("must be an array of slugids; item %d is \"%s\"", i + 1,
					 tq_error_clip(names[i])));
		return;
	}
	tq_definition_check_dependencies(source->owner, definition);
}

static void
read_objects(const TqJsonReader *source, bool is_stored,
			 TqTaskDefinition *definition)
{
	Jsonb *extra;

	definition->payload = is_stored ? tq_json_read_any(source, KEY_PAYLOAD)
									: tq_json_read_object(source, KEY_PAYLOAD);
	if (tq_json_at(source, KEY_PAYLOAD) == NULL)
		refuse_missing(source, "payload", "is required");
	definition->metadata = tq_json_read_object(source, KEY_METADATA);
	check_metadata(source, definition->metadata);
	definition->tags = tq_definition_tags(source->owner,
										  tq_json_read_object(source,
															  KEY_TAGS));
	extra = tq_json_read_object(source, KEY_EXTRA);
	definition->extra = extra == NULL ? NULL : tq_json_unless_empty(extra);
}

/*
 * Reads the times.  A stored definition without a deadline is that of a task that
 * has none, and never expires.
 */
static void
read_times(const TqJsonReader *source, bool is_stored, TqTask *task)
{
	task->created = task->deadline = DT_NOBEGIN; /* unless they are valid */
	if (!tq_json_read_time(source, KEY_CREATED, &task->created) &&
		tq_json_at(source, KEY_CREATED) == NULL)
		refuse_missing(source, "created", "is required");
	if (is_stored && tq_json_at(source, KEY_DEADLINE) == NULL)
	{
		task->deadline = task->expires = DT_NOEND;
		task->expires_given = false;
		return;
	}
	if (!tq_json_read_time(source, KEY_DEADLINE, &task->deadline) &&
		tq_json_at(source, KEY_DEADLINE) == NULL)
		refuse_missing(source, "deadline", "is required");
	if (!tq_json_read_time(source, KEY_EXPIRES, &task->expires))
		task->expires = TIMESTAMP_IS_NOBEGIN(task->deadline)
							? task->deadline
							: tq_clock_next_year(task->deadline);
}

/*
 * Reads the policy and the delay.  A delay of the definition wins over one of
 * the policy.
 */
static void
definition_json_read_policy(const TqJsonReader *source,
							TqTaskDefinition *definition)
{
	const JsonbValue *policy = tq_json_at(source, KEY_POLICY);
	const JsonbValue *delay = tq_json_at(source, KEY_DELAY);
	const char *fault;
	Jsonb *object = NULL;
	int64 ms;

	if (policy != NULL && policy->type != jbvNull)
		object = tq_json_read_object(source, KEY_POLICY);
	if (object != NULL)
		tq_definition_apply_policy(source->owner, definition, object);
	if (delay == NULL || delay->type == jbvNull)
		return;
	fault = tq_duration_parse(delay, &ms);
	if (fault != NULL)
	{
		definition_json_refuse(source, "delay", fault);
		return;
	}
	definition->named.task.delay = ms;
}

static void
refuse_kind(const TqFaults *faults, const JsonbContainer *json)
{
	const char *task = tq_slug_text(faults->task_id);

	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("task must be a JSON object"),
		 faults->element > 0
			 ? errdetail("That of element %d, task \"%s\", is %s.",
						 faults->element, task, tq_json_clip(json))
			 : errdetail("That of task \"%s\" is %s.", task,
						 tq_json_clip(json)),
		 errhint(
			 "Send an object with taskQueueId, created, deadline, payload and metadata.")));
}

/*
 * Reads a JSON definition into *definition and notes its faults.  Compares its
 * times with the clock only if there are any; see tq_check_times().
 */
void
tq_definition_read(TqFaults *faults, const JsonbContainer *json,
				   bool is_stored, TqTaskDefinition *definition)
{
	TqJsonReader source = {keys, lengthof(keys), definition_json_refuse,
						   faults};
	TqTask *task = &definition->named.task;
	JsonbValue unknown;
	int n;
	char **items;
	char *requires;
	char *priority;

	if (!JsonContainerIsObject(json))
		refuse_kind(faults, json);
	if (!tq_json_open(&source, json, &unknown))
		tq_fault_with_hint(faults, tq_error_clip(tq_json_string_of(&unknown)),
						   "is not a key of a task definition",
						   "Leave it out, or put it into \"extra\".");
	memset(definition, 0, sizeof(TqTaskDefinition));
	task->task_id = *faults->task_id;
	task->expires_given = true;
	definition_json_read_queue(&source, &definition->named);
	read_names(&source, definition);
	definition_json_read_dependencies(&source, definition);
	items = tq_json_read_strings(&source, KEY_ROUTES, &n);
	definition->routes = tq_definition_routes(source.owner, items, n);
	items = tq_json_read_strings(&source, KEY_SCOPES, &n);
	definition->scopes = tq_definition_scopes(source.owner, items, n);
	requires = tq_json_read_string(&source, KEY_REQUIRES);
	task->all_resolved = requires != NULL &&
						 tq_definition_requires(source.owner, requires);
	priority = tq_json_read_string(&source, KEY_PRIORITY);
	task->priority = priority == NULL
						 ? TQ_PRIORITY_LOWEST
						 : tq_definition_priority(source.owner, priority);
	task->retries = get_retries(&source);
	definition->has_own_retries = tq_json_at(&source, KEY_RETRIES) != NULL;
	read_objects(&source, is_stored, definition);
	definition_json_read_policy(&source, definition);
	read_times(&source, is_stored, task);
	tq_definition_check_sizes(faults, definition);
	tq_definition_check_whole(faults, definition);
	if (!is_stored && faults->n > 0)
		tq_faults_add_times(faults, definition);
}

/*
 * Parses a JSON definition into *definition.  Does not compare its times with
 * the clock; see tq_check_times().  A stored one may have any payload and no
 * deadline, because enqueue() may have created its task.
 */
void
tq_definition_parse(const TqSlug *task_id, const JsonbContainer *json,
					bool is_stored, TqTaskDefinition *definition)
{
	TqFaults faults = {.task_id = task_id};

	tq_definition_read(&faults, json, is_stored, definition);
	tq_faults_raise(&faults);
}
