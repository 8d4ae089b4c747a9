/*
 * definition.c
 *	  Task definitions: the rules for their values (doc/spec/taskcluster.md 1.1,
 *	  1.2 and 1.2.1).
 *
 * Notes what is wrong with a TqTaskDefinition, and raises TQ400 for all of it.
 * definition_json.c reads JSON definitions, enqueue.c makes them of the
 * arguments of enqueue().  create.c decides whether the required tasks exist and
 * whether the id of the task is free.
 */
#include "postgres.h"

#include "lib/qunique.h"
#include "mb/pg_wchar.h"

#include "../core/names.h"
#include "../storage/registry.h"
#include "rules.h"

#define ROUTES_MAX 64
#define ROUTE_MAX 249
#define TAG_MAX 4096
#define CREATED_DRIFT_MS (15 * 60 * 1000)

#define FAULTS_SHOWN 20

/* ---- faults ---- */

/* Returns the name of the argument of enqueue() that a key is given by. */
static const char *
argument_of(const TqFaults *faults, const char *key)
{
	if (strcmp(key, "schedulerId") == 0)
		return "scheduler_id";
	if (faults->element > 0 && strcmp(key, "payload") == 0)
		return "payloads";
	return strcmp(key, "projectId") == 0 ? "project_id" : key;
}

/* Says once which task, or which element of an array, the next faults are of. */
static void
add_label(TqFaults *faults)
{
	bool is_first = faults->n == 1;

	if (!is_first && faults->labeled == faults->element)
		return;
	faults->labeled = faults->element;
	if (faults->element > 0)
		appendStringInfo(&faults->list, "%s %d",
						 is_first ? "Element" : "element", faults->element);
	if (!faults->of_arguments)
		appendStringInfo(&faults->list, "%s \"%s\"",
						 faults->element > 0 ? ", task" : "Task",
						 tq_slug_text(faults->task_id));
	if (faults->element > 0 || !faults->of_arguments)
		appendStringInfoString(&faults->list, ": ");
}

/*
 * Notes that the value of a key breaks a rule, and what to do about it.
 */
void
tq_fault_with_hint(TqFaults *faults, const char *key, const char *rule,
				   const char *hint)
{
	faults->key = faults->of_arguments ? argument_of(faults, key) : key;
	faults->hint = hint;
	if (faults->n++ == 0)
		initStringInfo(&faults->list);
	if (faults->n > FAULTS_SHOWN)
		return;
	if (faults->n > 1)
		appendStringInfoString(&faults->list, "; ");
	add_label(faults);
	appendStringInfo(&faults->list,
					 faults->of_arguments ? "%s %s" : "\"%s\" %s", faults->key,
					 rule);
}

/* What a key is that is left out, or NULL for one that must be there. */
static const char *
default_of(const TqFaults *faults, const char *key)
{
	static const struct
	{
		const char *key;
		const char *value;
		bool of_arguments; /* only */
	} defaults[] = {{"priority", "lowest"},
					{"requires", "all-completed"},
					{"retries", "5"},
					{"schedulerId", "\"-\""},
					{"projectId", "\"none\""},
					{"taskGroupId", "a group of its own"},
					{"routes", "none"},
					{"scopes", "none"},
					{"tags", "none"},
					{"extra", "none"},
					{"delay", "none"},
					{"run_at", "the present time", true},
					{"name", "none", true},
					{"deadline", "none", true},
					{"expires", "that of retention", true},
					{"expires", "a year after the deadline"}};

	for (int i = 0; i < lengthof(defaults); i++)
	{
		if (strcmp(defaults[i].key, key) == 0 &&
			(faults->of_arguments || !defaults[i].of_arguments))
			return defaults[i].value;
	}
	return NULL;
}

/* The same with a hint that says which value the key has if it is left out. */
void
tq_fault(TqFaults *faults, const char *key, const char *rule)
{
	const char *value = default_of(faults, key);
	const char *quote = faults->of_arguments ? "" : "\"";
	const char *name = faults->of_arguments ? argument_of(faults, key) : key;

	tq_fault_with_hint(faults, key, rule,
					   psprintf("Correct %s%s%s%s%s%s%s.", quote, name, quote,
								value != NULL ? ", or leave it out for " : "",
								value != NULL ? value : "",
								value != NULL && !faults->of_arguments ? ","
																	   : "",
								faults->of_arguments
									? ""
									: " and send the definition again"));
}

pg_noreturn static void
raise_one(const TqFaults *faults)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg(faults->of_arguments ? "invalid %s"
										 : "invalid \"%s\" in task definition",
					faults->key),
			 errdetail("%s.", faults->list.data),
			 errhint("%s", faults->hint)));
}

/* Raises an error of all faults, if there are any. */
void
tq_faults_raise(const TqFaults *faults)
{
	const char *more = "";

	if (faults->n == 0)
		return;
	if (faults->n == 1)
		raise_one(faults);
	if (faults->n > FAULTS_SHOWN)
		more = psprintf("; and %d more", faults->n - FAULTS_SHOWN);
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg(faults->of_arguments ? "%d faults in arguments"
										 : "%d faults in task definition",
					faults->n),
			 errdetail("%s%s.", faults->list.data, more),
			 errhint("Correct all of them.")));
}

/* Notes that a text breaks a rule, and shows it. */
static void
definition_fault_of(TqFaults *faults, const char *key, const char *rule,
					const char *value)
{
	tq_fault(faults, key,
			 psprintf("%s; it is \"%s\"", rule, tq_error_clip(value)));
}

/* ---- sizes ---- */

/* A size beyond which something is refused, and the setting that says so. */
typedef struct SizeLimit
{
	int bytes;
	const char *setting;
} SizeLimit;

static void
definition_refuse_size(TqFaults *faults, const char *key, Size size,
					   SizeLimit limit)
{
	tq_fault_with_hint(
		faults, key,
		psprintf("has %zu bytes, and may have %d (%s)", size, limit.bytes,
				 limit.setting),
		"Store large data elsewhere, and put its location into the task.");
}

/*
 * Returns the size of a value: as text, as clients and pg_dump read it, or as
 * it is stored, whichever is larger; not exactly, only a size that is not
 * exceeded, unless is_exact.
 */
static Size
json_size(const Jsonb *value, bool is_exact)
{
	Size as_text;

	if (value == NULL)
		return 0;
	as_text = tq_json_size(&value->root, is_exact);
	return Max(VARSIZE(value), as_text);
}

static Size
array_size(const ArrayType *array)
{
	return array == NULL ? 0 : VARSIZE(array);
}

/* Notes if a value of a definition is larger than a setting allows. */
static void
check_size(TqFaults *faults, const char *key, const Jsonb *value,
		   SizeLimit limit)
{
	Size size;

	if (json_size(value, false) <= limit.bytes)
		return;
	size = json_size(value, true);
	if (size > limit.bytes)
		definition_refuse_size(faults, key, size, limit);
}

/*
 * Checks the sizes of the variable parts of a definition, except for the
 * payload.  Without these limits one task could be larger than what other
 * sessions can handle when they claim, publish, keep or dump it.
 */
void
tq_definition_check_sizes(TqFaults *faults, const TqTaskDefinition *definition)
{
	check_size(faults, "tags", definition->tags,
			   (SizeLimit){tq_max_tags, "tq.max_tags"});
	check_size(faults, "extra", definition->extra,
			   (SizeLimit){tq_max_extra, "tq.max_extra"});
}

/* Returns the size of a definition as a whole, like json_size(). */
static Size
whole_size(const TqTaskDefinition *definition, bool is_exact)
{
	return json_size(definition->payload, is_exact) +
		   json_size(definition->tags, is_exact) +
		   json_size(definition->extra, is_exact) +
		   json_size(definition->metadata, is_exact) +
		   json_size(definition->given_policy, is_exact) +
		   array_size(definition->routes) + array_size(definition->scopes) +
		   sizeof(TqSlug) * definition->ndependencies;
}

/* Checks the sizes of the payload and of the definition as a whole. */
void
tq_definition_check_whole(TqFaults *faults, const TqTaskDefinition *definition)
{
	SizeLimit limit = {tq_max_definition, "tq.max_definition"};

	check_size(faults, "payload", definition->payload,
			   (SizeLimit){tq_max_payload, "tq.max_payload"});
	if (whole_size(definition, false) > limit.bytes &&
		whole_size(definition, true) > limit.bytes)
		definition_refuse_size(faults, "task", whole_size(definition, true),
							   limit);
}

/* ---- names and lists ---- */

int
tq_definition_priority(TqFaults *faults, const char *name)
{
	int priority = tq_priority_parse(name);

	if (priority == 0)
		definition_fault_of(
			faults, "priority",
			"must be highest, very-high, high, medium, low, very-low or lowest",
			name);
	return priority;
}

/* Returns whether required tasks need only be resolved. */
bool
tq_definition_requires(TqFaults *faults, const char *name)
{
	if (strcmp(name, "all-resolved") == 0)
		return true;
	if (strcmp(name, "all-completed") != 0)
		definition_fault_of(faults, "requires",
							"must be all-completed or all-resolved", name);
	return false;
}

void
tq_definition_check_project(TqFaults *faults,
							const TqTaskDefinition *definition)
{
	if (!tq_is_project_id(definition->named.project_id))
		definition_fault_of(
			faults, "projectId",
			"must be 1 to 500 letters, digits, \".\", \"_\", \"/\" or \"-\"",
			definition->named.project_id);
}

/* Checks the number of the dependencies, and that none is named twice. */
void
tq_definition_check_dependencies(TqFaults *faults,
								 const TqTaskDefinition *definition)
{
	int n = definition->ndependencies;
	TqSlug *sorted;

	if (n > tq_max_dependencies)
		tq_fault_with_hint(
			faults, "dependencies",
			psprintf("has %d items, and may have %d (tq.max_dependencies)", n,
					 tq_max_dependencies),
			"Let tasks in between depend on some of them each.");
	if (n < 2 || n > tq_max_dependencies)
		return;
	sorted = palloc(sizeof(TqSlug) * n);
	memcpy(sorted, definition->dependencies, sizeof(TqSlug) * n);
	qsort(sorted, n, sizeof(TqSlug), tq_compare_slugs);
	if (qunique(sorted, n, sizeof(TqSlug), tq_compare_slugs) != n)
		tq_fault_with_hint(faults, "dependencies",
						   "must not name a task twice",
						   "Name each task once.");
	pfree(sorted);
}

/*
 * Adds the id of the task itself as the first dependency, unless it is one
 * already, as define_task() does (doc/spec/taskcluster.md 2.2).
 */
void
tq_definition_depend_on_self(TqTaskDefinition *definition)
{
	TqFaults faults = {.task_id = &definition->named.task.task_id};
	TqSlug *slugs;

	for (int i = 0; i < definition->ndependencies; i++)
	{
		if (tq_slug_compare(&definition->dependencies[i],
							&definition->named.task.task_id) == 0)
			return;
	}
	slugs = palloc(sizeof(TqSlug) * (definition->ndependencies + 1));
	slugs[0] = definition->named.task.task_id;
	memcpy(slugs + 1, definition->dependencies,
		   sizeof(TqSlug) * definition->ndependencies);
	definition->dependencies = slugs;
	definition->ndependencies++;
	tq_definition_check_dependencies(&faults, definition);
	tq_faults_raise(&faults);
}

/* Returns these routes as an array, or NULL for none. */
ArrayType *
tq_definition_routes(TqFaults *faults, char **routes, int n)
{
	if (n > ROUTES_MAX)
		tq_fault(faults, "routes",
				 psprintf("has %d items, and may have %d", n, ROUTES_MAX));
	for (int i = 0; i < Min(n, ROUTES_MAX); i++)
	{
		int len = pg_mbstrlen(routes[i]);

		if (len < 1 || len > ROUTE_MAX)
			tq_fault(
				faults, "routes",
				psprintf("must have 1 to %d characters each; item %d has %d",
						 ROUTE_MAX, i + 1, len));
		for (int j = 0; j < i; j++)
		{
			if (strcmp(routes[i], routes[j]) == 0)
				definition_fault_of(faults, "routes",
									"must not name a route twice", routes[i]);
		}
	}
	return n == 0 ? NULL : DatumGetArrayTypeP(tq_array_text(routes, n));
}

/* The same of scopes. */
ArrayType *
tq_definition_scopes(TqFaults *faults, char **scopes, int n)
{
	for (int i = 0; i < n; i++)
	{
		size_t len = strlen(scopes[i]);

		if (!tq_is_printable(scopes[i]))
			definition_fault_of(faults, "scopes",
								"must be of printable ASCII characters",
								scopes[i]);
		if (len >= 2 && strcmp(scopes[i] + len - 2, "**") == 0)
			definition_fault_of(faults, "scopes",
								"must not have a scope that ends in \"**\"",
								scopes[i]);
	}
	return n == 0 ? NULL : DatumGetArrayTypeP(tq_array_text(scopes, n));
}

#define TRACE_TAG "traceparent"

/* Returns whether n characters are lower-case hexadecimal, and not all 0. */
static bool
is_trace_id(const char *text, size_t n)
{
	return strspn(text, "0123456789abcdef") == n && strspn(text, "0") < n;
}

/* Returns whether a text is a traceparent by Trace Context of the W3C. */
static bool
is_traceparent(const char *text)
{
	return strlen(text) == 55 && strncmp(text, "00-", 3) == 0 &&
		   is_trace_id(text + 3, 32) && text[35] == '-' &&
		   is_trace_id(text + 36, 16) && text[52] == '-' &&
		   strspn(text + 53, "0123456789abcdef") == 2;
}

/* Notes that the tag which continues a trace is not a traceparent. */
static void
check_trace_tag(TqFaults *faults, const TqJsonIterator *it)
{
	const char *text;

	if (it->key.val.string.len != strlen(TRACE_TAG) ||
		memcmp(it->key.val.string.val, TRACE_TAG, strlen(TRACE_TAG)) != 0)
		return;
	text = tq_json_string_of(&it->value);
	if (!is_traceparent(text))
		tq_fault(
			faults, "tags",
			psprintf(
				"must have a W3C traceparent in \"%s\", \"00-\", 32 and 16 hexadecimal digits and 2 of flags with hyphens between them; it is \"%s\"",
				TRACE_TAG, tq_error_clip(text)));
}

/*
 * Returns tags, or NULL for none.  All must be strings that are not too long,
 * and traceparent one of the W3C.
 */
Jsonb *
tq_definition_tags(TqFaults *faults, Jsonb *tags)
{
	TqJsonIterator it;

	if (tags != NULL)
		tags = tq_json_unless_empty(tags);
	if (tags == NULL)
		return NULL;
	it = tq_json_iterate(&tags->root);
	while (tq_json_next(&it))
	{
		if (!tq_json_is_string(&it.value, TAG_MAX))
			tq_fault(
				faults, "tags",
				psprintf(
					"must be an object of strings of at most %d characters; that of \"%s\" is %s",
					TAG_MAX, tq_error_clip(tq_json_string_of(&it.key)),
					tq_json_shown(&it.value)));
		else
			check_trace_tag(faults, &it);
	}
	return tags;
}

/* ---- policy ---- */

/* The last valid policy that was parsed. */
typedef struct Parsed
{
	char policy[2 * TQ_POLICY_BYTES];
	Size size; /* 0: none */
	TqGivenPolicy given;
} Parsed;

/*
 * Parses a policy that was given, or one with what the queue adds to it, or
 * notes what is wrong with it and returns false.  The last valid one is cached,
 * because most tasks that are created in a row have the same policy.
 */
static bool
parse_policy(TqFaults *faults, const Jsonb *policy, bool with_default,
			 TqGivenPolicy *given)
{
	static Parsed parsed[2];
	Parsed *last = &parsed[with_default];
	Size size = VARSIZE(policy);
	const char *fault;

	if (size == last->size && memcmp(policy, last->policy, size) == 0)
	{
		*given = last->given;
		return true;
	}
	fault = with_default ? tq_policy_parse_stored(policy, given)
						 : tq_policy_parse(policy, given);
	if (fault != NULL)
	{
		tq_fault_with_hint(faults, "policy", fault,
						   tq_settings_hint(true, fault));
		return false;
	}
	if (size <= sizeof(last->policy) && given->policy.keys == 0)
	{
		memcpy(last->policy, policy, size);
		last->size = size;
		last->given = *given;
	}
	return true;
}

/*
 * Returns how long tasks with this policy are kept after their resolution,
 * unless their expires was given; queue 0 is one without settings.
 */
TqRetention
tq_retention_of(const TqPolicy *policy, int32 queue)
{
	TqRetention kept = {INT64CONST(1000) * tq_retain_completed,
						INT64CONST(1000) * tq_retain_failed};

	kept = tq_queue_settings_retention(tq_queue_settings(queue), kept);
	return tq_policy_retention(policy, kept);
}

/*
 * Sets the time at which a task is deleted at the latest, if it was not given:
 * the end of the longer retention of a task that is resolved at its deadline.
 * A task without a deadline is deleted by retention alone, when it is resolved.
 */
void
tq_definition_set_expires(TqNamedTask *named, const TqPolicy *policy)
{
	TqTask *task = &named->task;
	TqRetention kept = tq_retention_of(policy,
									   tq_queue_settings_exist()
										   ? tq_queue_find(named->queue_name)
										   : 0);
	TimestampTz expires = tq_clock_add_ms(task->deadline,
										  Max(kept.completed, kept.failed));

	if (task->expires_given)
		return;
	task->expires = TIMESTAMP_IS_NOEND(task->deadline)
						? DT_NOEND
						: Min(expires, tq_clock_latest());
}

/*
 * Sets the retries of a task and what depends on the policy.  Retries that a
 * definition may have without a policy it may have beside one, so they are
 * checked only if the policy sets retries or lostRetries.
 */
static void
set_policy(TqFaults *faults, TqTaskDefinition *definition, Jsonb *policy,
		   const TqGivenPolicy *given, int retries)
{
	TqTask *task = &definition->named.task;
	bool counts = given->retries != TQ_OFF ||
				  given->policy.lost_retries != TQ_OFF;
	const char *fault = tq_policy_fault(&given->policy, counts ? retries : 0,
										tq_max_runs);

	if (fault != NULL)
		tq_fault_with_hint(faults, "policy", fault,
						   "Change one of the two keys, or leave it out.");
	task->retries = retries;
	tq_definition_set_expires(&definition->named, &given->policy);
	if (JB_ROOT_COUNT(policy) > 0)
		definition->given_policy = policy;
}

/*
 * Applies the policy of a definition to the task, including its retries, delay
 * and retention.
 */
void
tq_definition_apply_policy(TqFaults *faults, TqTaskDefinition *definition,
						   Jsonb *policy)
{
	TqTask *task = &definition->named.task;
	TqGivenPolicy given;
	bool has_retries;

	if (!parse_policy(faults, policy, false, &given))
		return;
	has_retries = given.retries != TQ_OFF;
	if (given.delay != TQ_OFF)
		task->delay = given.delay;
	if (has_retries)
		definition->has_own_retries = true;
	memcpy(definition->keys, given.keys, sizeof(given.keys));
	if (given.policy.keys != 0)
		policy = tq_policy_without_keys(policy);
	set_policy(faults, definition, policy, &given,
			   has_retries ? given.retries : task->retries);
}

/*
 * Adds what the default policy of its queue says to a new task, where the task
 * does not say otherwise (doc/spec/policy.md 6).
 */
void
tq_definition_apply_default(TqTaskDefinition *definition)
{
	TqTask *task = &definition->named.task;
	Jsonb *policy = tq_queue_settings_policy(definition->named.queue_name);
	TqFaults faults = {.task_id = &task->task_id,
					   .of_arguments = definition->is_of_arguments};
	TqGivenPolicy given;
	bool has_retries;

	if (policy == NULL)
		return;
	if (definition->given_policy != NULL)
		policy = tq_policy_with_default(definition->given_policy, policy);
	if (!parse_policy(&faults, policy, true, &given))
		tq_faults_raise(&faults);
	if (given.delay != TQ_OFF && !definition->has_own_delay)
		task->delay = given.delay;
	has_retries = given.retries != TQ_OFF && !definition->has_own_retries;
	set_policy(&faults, definition, policy, &given,
			   has_retries ? given.retries : task->retries);
	tq_faults_raise(&faults);
}

/* ---- times ---- */

/* Returns a time that is that much later; one of no use stays of no use. */
static TimestampTz
definition_later(TimestampTz t, int64 us)
{
	return t > tq_clock_latest() || TIMESTAMP_IS_NOBEGIN(t) ? t : t + us;
}

/*
 * Moves the times of a stored definition so that its task is created now.
 * tq.max_deadline is no limit of it, because its task has existed.
 */
void
tq_definition_renew_times(TqTaskDefinition *definition, TimestampTz now)
{
	TqTask *task = &definition->named.task;
	TimestampTz shift = now - task->created;

	definition->any_deadline = true;
	task->created = now;
	if (TIMESTAMP_IS_NOEND(task->deadline))
		return;
	task->deadline += shift;
	task->expires = Min(task->expires + shift, tq_clock_latest());
}

/*
 * Moves the times of a new task by its delay, if they count from when it
 * becomes visible.
 */
void
tq_definition_shift_times(TqTaskDefinition *definition)
{
	TqTask *task = &definition->named.task;
	TimestampTz visible;

	if (!definition->is_timed_from_visible || task->delay == 0 ||
		TIMESTAMP_IS_NOEND(task->deadline))
		return;
	visible = tq_policy_visible(task->created, task->delay, task->created);
	if (visible > tq_clock_latest())
		return;
	task->deadline = definition_later(task->deadline, visible - task->created);
	task->expires = definition_later(task->expires, visible - task->created);
	if (!task->expires_given)
		task->expires = Min(task->expires, tq_clock_latest());
}

/* Returns a rule with the value of a time, or, for an argument, of a span. */
static char *
rule_with(const TqFaults *faults, const char *rule, TimestampTz from,
		  TimestampTz t)
{
	if (!faults->of_arguments || t > tq_clock_latest() ||
		TIMESTAMP_IS_NOBEGIN(t))
		return psprintf("%s; it is %s", rule, tq_clock_text(t));
	return psprintf("%s; it is %.15g seconds", rule,
					(double) (t - from) / USECS_PER_SEC);
}

static void
check_created(TqFaults *faults, TimestampTz created, TimestampTz now)
{
	const char *where = NULL;

	if (created < tq_clock_add_ms(now, -CREATED_DRIFT_MS))
		where = "past";
	else if (created > tq_clock_add_ms(now, CREATED_DRIFT_MS))
		where = "future";
	if (where != NULL)
		tq_fault_with_hint(
			faults, "created",
			psprintf(
				"must not be more than 15 minutes in the %s; it is %s, and now it is %s",
				where, tq_clock_text(created), tq_clock_text(now)),
			"Give the present time, by a clock that is right.");
}

/* Notes that a task without a deadline has an expires, which counts from one. */
static void
check_no_deadline(TqFaults *faults, const TqTask *task)
{
	if (task->expires_given)
		tq_fault_with_hint(
			faults, "expires",
			"counts from the deadline, and the task has none",
			"Give \"deadline\", or leave \"expires\" out: then retention deletes the task when it is resolved.");
}

/* Checks a deadline, which counts from that time; returns whether it is good. */
static bool
check_deadline(TqFaults *faults, const TqTaskDefinition *definition,
			   TimestampTz from, TimestampTz now)
{
	const TqTask *task = &definition->named.task;
	TimestampTz deadline = task->deadline;
	int n = faults->n;

	if (task->created > deadline)
		tq_fault(faults, "deadline",
				 faults->of_arguments
					 ? rule_with(faults, "must not be negative", from,
								 deadline)
					 : psprintf("must not be before \"created\", %s; it is %s",
								tq_clock_text(task->created),
								tq_clock_text(deadline)));
	else if (deadline < now)
		tq_fault(faults, "deadline",
				 rule_with(faults, "must not be in the past", from, deadline));
	else if (deadline > tq_clock_latest())
		tq_fault(faults, "deadline",
				 rule_with(faults, "must be in or before the year 9999", from,
						   deadline));
	else if (!definition->any_deadline &&
			 deadline > tq_clock_add_ms(from, (int64) tq_max_deadline * 1000 +
												  CREATED_DRIFT_MS))
		tq_fault_with_hint(
			faults, "deadline",
			rule_with(
				faults,
				psprintf(
					"must not be further in the future than tq.max_deadline, %d seconds",
					tq_max_deadline),
				from, deadline),
			"Give an earlier deadline; an administrator can raise tq.max_deadline.");
	return faults->n == n;
}

/*
 * Notes what is wrong with the times of a definition, by the clock
 * (doc/spec/taskcluster.md 1.2.1).
 */
void
tq_check_times(TqFaults *faults, const TqTaskDefinition *definition,
			   TimestampTz now)
{
	const TqTask *task = &definition->named.task;
	TimestampTz visible = tq_policy_visible(task->created, task->delay,
											task->created);
	TimestampTz from = definition->is_timed_from_visible ? visible : now;
	const char *delay = definition->run_at != 0 ? "run_at" : "delay";
	bool is_good;

	check_created(faults, task->created, now);
	if (visible > tq_clock_latest())
	{
		tq_fault(faults, delay, "must end in or before the year 9999");
		return;
	}
	if (TIMESTAMP_IS_NOEND(task->deadline))
	{
		check_no_deadline(faults, task);
		return;
	}
	is_good = check_deadline(faults, definition, from, now);
	if (task->deadline <= tq_clock_latest() && task->deadline > task->expires)
		tq_fault(
			faults, "expires",
			faults->of_arguments
				? rule_with(faults, "must not be negative", task->deadline,
							task->expires)
				: psprintf("must not be before \"deadline\", %s; it is %s",
						   tq_clock_text(task->deadline),
						   tq_clock_text(task->expires)));
	if (is_good && visible > task->deadline)
		tq_fault_with_hint(
			faults, delay,
			psprintf("must not go past \"deadline\", %s; it ends at %s",
					 tq_clock_text(task->deadline), tq_clock_text(visible)),
			"Give a shorter delay, or a later deadline.");
	if (is_good && task->expires > tq_clock_latest())
		tq_fault(faults, "expires",
				 psprintf("must be in or before the year 9999; it is %s",
						  tq_clock_text(task->expires)));
}

/*
 * Adds what is wrong with the times of a definition that has other faults, so
 * that one error has them all.  A definition without faults is checked when
 * the task is created, with the delay of its queue.
 */
void
tq_faults_add_times(TqFaults *faults, TqTaskDefinition *definition)
{
	const TqTask *task = &definition->named.task;

	if (TIMESTAMP_IS_NOBEGIN(task->created) ||
		TIMESTAMP_IS_NOBEGIN(task->deadline) ||
		TIMESTAMP_IS_NOBEGIN(task->expires))
		return;
	tq_definition_shift_times(definition);
	tq_check_times(faults, definition, tq_clock_now());
}
