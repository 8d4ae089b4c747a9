/*
 * definition.c
 *	  Task definitions: names, limits, times.
 *
 * Turns a JSON definition, or the arguments of enqueue(), into a
 * TqTask with every default filled in, or raises TQ400.  Follows
 * doc/spec/taskcluster.md 1.1, 1.2 and 1.2.1.  create.c decides whether the
 * required tasks exist and whether the id of the task is free.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "lib/qunique.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "../core/names.h"
#include "../core/policy.h"
#include "../core/types.h"
#include "../events/status_json.h"
#include "../storage/columns.h"
#include "../storage/policy_json.h"
#include "../storage/task_table.h"
#include "../util/clock.h"
#include "../util/errors.h"
#include "../util/guc.h"
#include "../util/slugid.h"
#include "definition.h"

#define IDENTIFIER_MAX 38
#define PROJECT_MAX 500
#define ROUTES_MAX 64
#define ROUTE_MAX 249
#define RETRIES_MAX 49
#define CREATED_DRIFT_MS (15 * 60 * 1000)

/* The definition that is being read; errors name its task. */
typedef struct Source
{
	const TqSlug *task_id;
	Jsonb *json;
} Source;

static void
refuse(const TqSlug *task_id, const char *key, const char *rule)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid \"%s\" in task definition", key),
			 errdetail("Task \"%s\": \"%s\" %s.",
					   tq_slug_text(task_id),
					   key,
					   rule),
			 errhint("Correct \"%s\" and send the definition again.", key)));
}

/* ---- sizes ---- */

/*
 * Raises an error if a value of a definition is larger than a setting allows.
 */
static void
check_size(const TqSlug *task_id, const char *key, Size size, int limit,
		   const char *setting)
{
	if (size <= limit)
		return;
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT),
		 errmsg("\"%s\" of task definition is too large", key),
		 errdetail("Task \"%s\": it has %zu bytes, and may have %d (%s).",
				   tq_slug_text(task_id),
				   size,
				   limit,
				   setting),
		 errhint(
			 "Store large data elsewhere, and put its location into the task.")));
}

static Size
size_of(const void *value)
{
	return value == NULL ? 0 : VARSIZE_ANY(value);
}

/*
 * Checks the sizes of the variable parts of a definition, except for the
 * payload.  Without these limits one task could be larger than what other
 * sessions can handle when they claim, publish or keep it.
 */
static void
check_sizes(const TqTask *task)
{
	const TqSlug *task_id = &task->task_id;

	check_size(task_id,
			   "tags",
			   size_of(task->tags),
			   tq_max_tags,
			   "tq.max_tags");
	check_size(task_id,
			   "extra",
			   size_of(task->extra),
			   tq_max_extra,
			   "tq.max_extra");
}

/* Checks the sizes of the payload and of the definition as a whole. */
static void
check_payload_size(const TqTask *task)
{
	Size payload = size_of(task->payload);
	Size whole = payload + size_of(task->tags) + size_of(task->extra) +
				 size_of(task->metadata) + size_of(task->routes) +
				 size_of(task->scopes) + size_of(task->given_policy) +
				 sizeof(TqSlug) * task->ndependencies;

	check_size(&task->task_id,
			   "payload",
			   payload,
			   tq_max_payload,
			   "tq.max_payload");
	check_size(&task->task_id,
			   "task",
			   whole,
			   tq_max_definition,
			   "tq.max_definition");
}

/* ---- values ---- */

static bool
is_name(const char *value, size_t len, const char *further)
{
	for (size_t i = 0; i < len; i++)
	{
		char c = value[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			  (c >= '0' && c <= '9') || strchr(further, c) != NULL) ||
			c == '\0')
			return false;
	}
	return len > 0;
}

static bool
is_identifier(const char *value, size_t len)
{
	return len <= IDENTIFIER_MAX && is_name(value, len, "-_");
}

static bool
is_task_queue_id(const char *value)
{
	const char *slash = strchr(value, '/');

	return slash != NULL && is_identifier(value, slash - value) &&
		   is_identifier(slash + 1, strlen(slash + 1));
}

/*
 * Checks an identifier that is an argument, such as worker_group or worker_id
 * (doc/spec/taskcluster.md 1.1).
 */
void
tq_check_identifier(const char *what, const char *value)
{
	if (!is_identifier(value, strlen(value)))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid %s \"%s\"", what, tq_error_clip(value)),
			 errdetail("It has %d bytes, or a character that is not allowed.",
					   (int) strlen(value)),
			 errhint("Use 1 to %d letters, digits, \"-\" or \"_\".",
					 IDENTIFIER_MAX)));
}

/* Checks that a task queue is named provisionerId/workerType. */
void
tq_check_task_queue_id(const char *value)
{
	if (!is_task_queue_id(value))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid task_queue_id \"%s\"", tq_error_clip(value)),
			 errdetail("It is not two names with a slash between them."),
			 errhint(
				 "A task queue is named provisionerId/workerType, each of 1 to %d letters, digits, \"-\" or \"_\".",
				 IDENTIFIER_MAX)));
}

static bool
is_printable_ascii(const char *value)
{
	for (; *value != '\0'; value++)
	{
		if (*value < 0x20 || *value > 0x7e)
			return false;
	}
	return true;
}

static void
check_scope(const TqSlug *task_id, const char *scope)
{
	size_t len = strlen(scope);

	if (!is_printable_ascii(scope))
		refuse(task_id, "scopes", "must be of printable ASCII characters");
	if (len >= 2 && strcmp(scope + len - 2, "**") == 0)
		refuse(task_id, "scopes", "must not have a scope that ends in \"**\"");
}

static void
check_route(const TqSlug *task_id, char *const *routes, int i)
{
	int len = pg_mbstrlen(routes[i]);

	if (len < 1 || len > ROUTE_MAX)
		refuse(task_id, "routes", "must have 1 to 249 characters each");
	for (int j = 0; j < i; j++)
	{
		if (strcmp(routes[i], routes[j]) == 0)
			refuse(task_id, "routes", "must not name a route twice");
	}
}

static int
compare_slugs(const void *a, const void *b)
{
	return tq_slug_compare(a, b);
}

/* Checks the number of the dependencies, and that none is named twice. */
static void
check_dependencies(const TqSlug *task_id, const TqSlug *slugs, int n)
{
	TqSlug *sorted;

	if (n > tq_max_dependencies)
		refuse(task_id,
			   "dependencies",
			   psprintf("has %d items, and may have %d (tq.max_dependencies)",
						n,
						tq_max_dependencies));
	sorted = palloc(sizeof(TqSlug) * Max(n, 1));
	memcpy(sorted, slugs, sizeof(TqSlug) * n);
	qsort(sorted, n, sizeof(TqSlug), compare_slugs);
	if (qunique(sorted, n, sizeof(TqSlug), compare_slugs) != n)
		refuse(task_id, "dependencies", "must not name a task twice");
	pfree(sorted);
}

static int
parse_priority(const TqSlug *task_id, const char *name)
{
	int priority = tq_priority_parse(name);

	if (priority == 0)
		refuse(
			task_id,
			"priority",
			"must be highest, very-high, high, medium, low, very-low or lowest");
	return priority;
}

static bool
parse_requires(const TqSlug *task_id, const char *name)
{
	if (strcmp(name, "all-resolved") == 0)
		return true;
	if (strcmp(name, "all-completed") != 0)
		refuse(task_id, "requires", "must be all-completed or all-resolved");
	return false;
}

static void
check_project(const TqSlug *task_id, const char *value)
{
	if (strlen(value) > PROJECT_MAX || !is_name(value, strlen(value), "._/-"))
		refuse(
			task_id,
			"projectId",
			"must be 1 to 500 letters, digits, \".\", \"_\", \"/\" or \"-\"");
}

static void
check_retries(const TqSlug *task_id, int64 retries)
{
	if (retries < 0 || retries > RETRIES_MAX)
		refuse(task_id, "retries", "must be a whole number from 0 to 49");
}

static ArrayType *
text_array(char *const *items, int n)
{
	Datum *elements = palloc(sizeof(Datum) * Max(n, 1));

	if (n == 0)
		return NULL;
	for (int i = 0; i < n; i++)
		elements[i] = CStringGetTextDatum(items[i]);
	return construct_array(elements, n, TEXTOID, -1, false, TYPALIGN_INT);
}

static ArrayType *
checked_routes(const TqSlug *task_id, char **routes, int n)
{
	if (n > ROUTES_MAX)
		refuse(task_id, "routes", "must not have more than 64 items");
	for (int i = 0; i < n; i++)
		check_route(task_id, routes, i);
	return text_array(routes, n);
}

static ArrayType *
checked_scopes(const TqSlug *task_id, char **scopes, int n)
{
	for (int i = 0; i < n; i++)
		check_scope(task_id, scopes[i]);
	return text_array(scopes, n);
}

/*
 * Parses a policy.  The last valid one is cached, because most tasks that are
 * created in a row have the same policy.
 */
static TqGivenPolicy
parse_policy(const TqSlug *task_id, const Jsonb *policy)
{
	static char last[TQ_POLICY_BYTES];
	static Size last_size = 0;
	static TqGivenPolicy last_given;
	Size size = VARSIZE(policy);
	TqGivenPolicy given;
	const char *fault;

	if (size == last_size && memcmp(policy, last, size) == 0)
		return last_given;
	fault = tq_policy_parse(policy, &given);
	if (fault != NULL)
		refuse(task_id, "policy", fault);
	if (size <= sizeof(last))
	{
		memcpy(last, policy, size);
		last_size = size;
		last_given = given;
	}
	return given;
}

/*
 * Applies the policy of a definition to the task, including its retries and
 * delay.
 */
static void
take_policy(TqTask *task, Jsonb *policy)
{
	TqGivenPolicy given = parse_policy(&task->task_id, policy);
	const char *fault;
	int retries = task->retries;

	if (given.retries != TQ_OFF)
		retries = given.retries;
	if (given.delay != TQ_OFF)
		task->delay = given.delay;
	/*
	 * Retries that a definition may have without a policy it may have beside
	 * one, so they are checked only if the policy sets retries or lostRetries.
	 */
	fault = tq_policy_fault(&given.policy,
							given.retries == TQ_OFF &&
									given.policy.lost_retries == TQ_OFF
								? 0
								: retries,
							tq_max_runs);
	if (fault != NULL)
		refuse(&task->task_id, "policy", fault);
	task->retries = retries;
	if (JB_ROOT_COUNT(policy) > 0)
		task->given_policy = policy;
}

/* ---- JSON ---- */

static JsonbValue *
get(const Source *source, const char *key)
{
	return getKeyJsonValueFromContainer(&source->json->root,
										key,
										strlen(key),
										NULL);
}

static char *
string_of(const JsonbValue *value)
{
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/* Returns whether the key has the value null. */
static bool
is_null(const Source *source, const char *key)
{
	JsonbValue *value = get(source, key);

	return value != NULL && value->type == jbvNull;
}

/* Returns the string at that key, or NULL if the key is absent. */
static char *
get_string(const Source *source, const char *key)
{
	JsonbValue *value = get(source, key);

	if (value == NULL)
		return NULL;
	if (value->type != jbvString)
		refuse(source->task_id, key, "must be a string");
	return string_of(value);
}

static char *
get_identifier(const Source *source, const char *key)
{
	char *value = get_string(source, key);

	if (value != NULL && !is_identifier(value, strlen(value)))
		refuse(source->task_id,
			   key,
			   "must be 1 to 38 letters, digits, \"-\" or \"_\"");
	return value;
}

/* Reads the date-time at that key; returns false if the key is absent. */
static bool
get_time(const Source *source, const char *key, TimestampTz *t)
{
	char *value = get_string(source, key);

	if (value == NULL)
		return false;
	if (!tq_clock_parse(value, strlen(value), t))
		refuse(source->task_id,
			   key,
			   "must be a date-time such as 2026-01-31T12:00:00.000Z");
	return true;
}

/* Returns a number as an integer, or -1 if it is not a whole number. */
static int64
whole_number(Numeric number)
{
	char *text = numeric_normalize(number);
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	return errno != 0 || *end != '\0' || end == text ? -1 : value;
}

/*
 * Returns whether the policy gives the number of retries.  Then retries may be
 * above the limit, because task() returns the number that the policy gave.
 */
static bool
has_policy_retries(const Source *source)
{
	JsonbValue *policy = get(source, "policy");
	JsonbValue *retries;

	if (policy == NULL || policy->type != jbvBinary ||
		!JsonContainerIsObject(policy->val.binary.data))
		return false;
	retries = getKeyJsonValueFromContainer(policy->val.binary.data,
										   "retries",
										   strlen("retries"),
										   NULL);
	return retries != NULL && retries->type != jbvNull;
}

static int
get_retries(const Source *source)
{
	JsonbValue *value = get(source, "retries");
	int64 retries;

	if (value == NULL)
		return 5;
	retries = value->type == jbvNumeric ? whole_number(value->val.numeric)
										: -1;
	if (!has_policy_retries(source) || retries < 0 || retries > PG_INT16_MAX)
		check_retries(source->task_id, retries);
	return (int) retries;
}

/*
 * Returns the strings of the array at that key, or NULL if the key is absent.
 */
static char **
get_strings(const Source *source, const char *key, int *n)
{
	JsonbValue *value = get(source, key);
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue element;
	char **items;

	*n = 0;
	if (value == NULL)
		return NULL;
	if (value->type != jbvBinary ||
		!JsonContainerIsArray(value->val.binary.data))
		refuse(source->task_id, key, "must be an array of strings");
	items = palloc(sizeof(char *) *
				   (JsonContainerSize(value->val.binary.data) + 1));
	it = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&it, &element, true)) != WJB_DONE)
	{
		if (token == WJB_ELEM && element.type != jbvString)
			refuse(source->task_id, key, "must be an array of strings");
		if (token == WJB_ELEM)
			items[(*n)++] = string_of(&element);
	}
	return items;
}

/* Returns the object at that key, or NULL if the key is absent. */
static Jsonb *
get_object(const Source *source, const char *key)
{
	JsonbValue *value = get(source, key);

	if (value == NULL)
		return NULL;
	if (value->type != jbvBinary ||
		!JsonContainerIsObject(value->val.binary.data))
		refuse(source->task_id, key, "must be an object");
	return JsonbValueToJsonb(value);
}

static Jsonb *
null_if_empty(Jsonb *object)
{
	return object != NULL && JB_ROOT_COUNT(object) == 0 ? NULL : object;
}

/* Checks that all tags are strings that are not too long. */
static void
check_tags(const TqSlug *task_id, Jsonb *tags)
{
	JsonbIterator *it = JsonbIteratorInit(&tags->root);
	JsonbIteratorToken token;
	JsonbValue value;

	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token == WJB_VALUE &&
			(value.type != jbvString ||
			 pg_mbstrlen_with_len(value.val.string.val, value.val.string.len) >
				 4096))
			refuse(task_id,
				   "tags",
				   "must be an object of strings of at most 4096 characters");
	}
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
check_metadata(const Source *source, Jsonb *metadata)
{
	static const struct
	{
		const char *key;
		int max;
	} fields[] = {{"name", 255},
				  {"description", 32768},
				  {"owner", 255},
				  {"source", 4096}};
	Source inner = {source->task_id, metadata};

	if (metadata == NULL)
		refuse(source->task_id, "metadata", "is required");
	for (int i = 0; i < lengthof(fields); i++)
	{
		JsonbValue *value = get(&inner, fields[i].key);

		if (value == NULL || value->type != jbvString ||
			pg_mbstrlen_with_len(value->val.string.val,
								 value->val.string.len) > fields[i].max)
			refuse(
				source->task_id,
				"metadata",
				psprintf("must have a string \"%s\" of at most %d characters",
						 fields[i].key,
						 fields[i].max));
	}
	if (JB_ROOT_COUNT(metadata) != lengthof(fields))
		refuse(
			source->task_id,
			"metadata",
			"must have name, description, owner and source, and nothing else");
	if (!is_source(get_string(&inner, "source")))
		refuse(
			source->task_id,
			"metadata",
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
is_known(const char *key)
{
	for (int i = 0; i < lengthof(known_keys); i++)
	{
		if (strcmp(key, known_keys[i]) == 0)
			return true;
	}
	return false;
}

/* Checks that every key is a key of a task definition. */
static void
check_keys(const Source *source)
{
	JsonbIterator *it = JsonbIteratorInit(&source->json->root);
	JsonbIteratorToken token;
	JsonbValue value;

	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		char *key;

		if (token != WJB_KEY)
			continue;
		key = string_of(&value);
		if (!is_known(key))
			refuse(source->task_id,
				   tq_error_clip(key),
				   "is not a key of a task definition");
	}
}

/*
 * Reads the task queue: taskQueueId, or provisionerId and workerType, or all
 * three if they agree.
 */
static void
read_queue(const Source *source, TqTask *task)
{
	char *queue = get_string(source, "taskQueueId");
	char *provisioner = get_identifier(source, "provisionerId");
	char *worker_type = get_identifier(source, "workerType");
	char *joined = NULL;

	if (queue != NULL && !is_task_queue_id(queue))
		refuse(source->task_id,
			   "taskQueueId",
			   "must be provisionerId/workerType");
	if (provisioner != NULL && worker_type != NULL)
		joined = psprintf("%s/%s", provisioner, worker_type);
	if (queue == NULL && joined == NULL)
		refuse(source->task_id,
			   "taskQueueId",
			   "is required, or provisionerId and workerType");
	if (joined != NULL && queue != NULL && strcmp(joined, queue) != 0)
		refuse(source->task_id,
			   "taskQueueId",
			   "must agree with provisionerId and workerType");
	if (joined == NULL && (provisioner != NULL || worker_type != NULL) &&
		strcmp(provisioner != NULL ? provisioner : worker_type,
			   provisioner != NULL
				   ? pnstrdup(queue, strchr(queue, '/') - queue)
				   : strchr(queue, '/') + 1) != 0)
		refuse(source->task_id,
			   "taskQueueId",
			   "must agree with provisionerId and workerType");
	task->queue_name = queue != NULL ? queue : joined;
}

/* Reads schedulerId, projectId and taskGroupId, or sets their defaults. */
static void
read_names(const Source *source, TqTask *task)
{
	char *group = get_string(source, "taskGroupId");
	char *scheduler = get_identifier(source, "schedulerId");
	char *project = get_string(source, "projectId");

	task->scheduler_id = scheduler != NULL ? scheduler
										   : pstrdup(TQ_DEFAULT_SCHEDULER);
	task->project_id = project != NULL ? project : pstrdup(TQ_DEFAULT_PROJECT);
	check_project(source->task_id, task->project_id);
	task->group_slug = task->task_id;
	if (group != NULL &&
		!tq_slug_parse(group, strlen(group), &task->group_slug))
		refuse(source->task_id, "taskGroupId", "must be a slugid");
}

/* Reads the task ids of the dependencies. */
static void
read_dependencies(const Source *source, TqTask *task)
{
	int n;
	char **names = get_strings(source, "dependencies", &n);

	task->dependencies = palloc(sizeof(TqSlug) * Max(n, 1));
	task->ndependencies = n;
	for (int i = 0; i < n; i++)
	{
		if (!tq_slug_parse(names[i], strlen(names[i]), &task->dependencies[i]))
			refuse(source->task_id,
				   "dependencies",
				   "must be an array of slugids");
	}
	check_dependencies(source->task_id, task->dependencies, n);
}

static void
read_lists(const Source *source, TqTask *task)
{
	int n;
	char **items;

	read_dependencies(source, task);
	items = get_strings(source, "routes", &n);
	task->routes = checked_routes(source->task_id, items, n);
	items = get_strings(source, "scopes", &n);
	task->scopes = checked_scopes(source->task_id, items, n);
}

static void
read_objects(const Source *source, TqTask *task)
{
	task->payload = get_object(source, "payload");
	if (task->payload == NULL)
		refuse(source->task_id, "payload", "is required");
	task->metadata = get_object(source, "metadata");
	check_metadata(source, task->metadata);
	task->tags = null_if_empty(get_object(source, "tags"));
	if (task->tags != NULL)
		check_tags(source->task_id, task->tags);
	task->extra = null_if_empty(get_object(source, "extra"));
}

static void
read_times(const Source *source, TqTask *task)
{
	if (!get_time(source, "created", &task->created))
		refuse(source->task_id, "created", "is required");
	if (!get_time(source, "deadline", &task->deadline))
		refuse(source->task_id, "deadline", "is required");
	if (!get_time(source, "expires", &task->expires))
		task->expires = tq_clock_next_year(task->deadline);
}

/*
 * Reads the policy and the delay.  A delay of the definition wins over one of
 * the policy.
 */
static void
read_policy(const Source *source, TqTask *task)
{
	JsonbValue *delay = get(source, "delay");
	Jsonb *policy = is_null(source, "policy") ? NULL
											  : get_object(source, "policy");
	const char *fault;
	int64 ms;

	if (policy != NULL)
		take_policy(task, policy);
	if (delay == NULL || delay->type == jbvNull)
		return;
	fault = tq_duration_parse(delay, &ms);
	if (fault != NULL)
		refuse(source->task_id, "delay", fault);
	task->delay = ms;
}

/*
 * Parses a JSON definition.  Does not compare its times with the clock; see
 * tq_check_times().
 */
TqTask *
tq_definition_parse(const TqSlug *task_id, Jsonb *definition)
{
	Source source = {task_id, definition};
	TqTask *task = palloc0(sizeof(TqTask));
	char *text;

	if (!JB_ROOT_IS_OBJECT(definition))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("task definition must be a JSON object"),
			 errdetail("Task \"%s\".", tq_slug_text(task_id)),
			 errhint(
				 "Send an object with taskQueueId, created, deadline, payload and metadata.")));
	task->task_id = *task_id;
	check_keys(&source);
	read_queue(&source, task);
	read_names(&source, task);
	read_lists(&source, task);
	text = get_string(&source, "requires");
	task->all_resolved = text != NULL && parse_requires(task_id, text);
	text = get_string(&source, "priority");
	task->priority = text == NULL ? TQ_PRIORITY_LOWEST
								  : parse_priority(task_id, text);
	task->retries = get_retries(&source);
	read_objects(&source, task);
	read_policy(&source, task);
	read_times(&source, task);
	check_sizes(task);
	check_payload_size(task);
	return task;
}

/* ---- enqueue() ---- */

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
			refuse(task_id, key, "must not have a NULL element");
		items[i] = TextDatumGetCString(elements[i]);
	}
	return items;
}

static Jsonb *
checked_object(const TqSlug *task_id, const char *key, Jsonb *object)
{
	if (!JB_ROOT_IS_OBJECT(object))
		refuse(task_id, key, "must be an object");
	return object;
}

static Jsonb *
metadata_with_name(const TqTask *task, const char *name)
{
	if (name == NULL)
		return NULL;
	if (pg_mbstrlen(name) > 255)
		refuse(&task->task_id, "name", "must have at most 255 characters");
	return tq_metadata_json(name);
}

/* Checks the payload of enqueue(). */
void
tq_definition_check_payload(const TqTask *task)
{
	(void) checked_object(&task->task_id, "payload", task->payload);
	check_payload_size(task);
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

	if (!is_identifier(task->scheduler_id, strlen(task->scheduler_id)))
		refuse(task_id,
			   "schedulerId",
			   "must be 1 to 38 letters, digits, \"-\" or \"_\"");
	check_project(task_id, task->project_id);
	check_dependencies(task_id, task->dependencies, task->ndependencies);
	task->all_resolved = parse_requires(task_id, arguments->requires);
	task->priority = parse_priority(task_id, arguments->priority);
	check_retries(task_id, arguments->retries);
	task->retries = arguments->retries;
	items = strings_of_array(task_id, "routes", arguments->routes, &n);
	task->routes = checked_routes(task_id, items, n);
	items = strings_of_array(task_id, "scopes", arguments->scopes, &n);
	task->scopes = checked_scopes(task_id, items, n);
	task->tags = null_if_empty(
		checked_object(task_id, "tags", arguments->tags));
	if (task->tags != NULL)
		check_tags(task_id, task->tags);
	task->extra = null_if_empty(
		checked_object(task_id, "extra", arguments->extra));
	task->metadata = metadata_with_name(task, arguments->name);
	if (arguments->policy != NULL)
		take_policy(task,
					checked_object(task_id, "policy", arguments->policy));
	if (arguments->delay_ms > 0)
		task->delay = arguments->delay_ms;
	check_sizes(task);
}

/* ---- for both ---- */

/*
 * Checks the times of a definition against the clock, in the order of
 * doc/spec/taskcluster.md 1.2.1.
 */
void
tq_check_times(const TqTask *task, TimestampTz now)
{
	const TqSlug *task_id = &task->task_id;

	if (task->created < tq_clock_add_ms(now, -CREATED_DRIFT_MS))
		refuse(task_id,
			   "created",
			   "must not be more than 15 minutes in the past");
	if (task->created > tq_clock_add_ms(now, CREATED_DRIFT_MS))
		refuse(task_id,
			   "created",
			   "must not be more than 15 minutes in the future");
	if (task->created > task->deadline)
		refuse(task_id, "deadline", "must not be before \"created\"");
	if (task->deadline < now)
		refuse(task_id, "deadline", "must not be in the past");
	if (task->deadline >
		tq_clock_add_ms(now,
						(int64) tq_max_deadline * 1000 + CREATED_DRIFT_MS))
		refuse(task_id,
			   "deadline",
			   "must not be further in the future than tq.max_deadline");
	if (task->deadline > task->expires)
		refuse(task_id, "expires", "must not be before \"deadline\"");
	if (task->delay > 0 &&
		tq_policy_after(task->created, task->delay) > task->deadline)
		refuse(task_id, "delay", "must not go past \"deadline\"");
	if (task->expires > tq_clock_latest())
		refuse(task_id, "expires", "must be in or before the year 9999");
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
	check_dependencies(&task->task_id,
					   task->dependencies,
					   task->ndependencies);
}
