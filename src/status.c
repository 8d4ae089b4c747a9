/*
 * status.c
 *	  What is shown of a task: the status structure, its runs, the definition.
 *
 * Room 4.  Decides keys and formats of JSON (spec/taskcluster.md 1.2 to 1.4,
 * 2.7); what is absent is left out, never null.
 */
#include "rules.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

static void
push_key(JsonbParseState **state, const char *key)
{
	JsonbValue value = {.type = jbvString};

	value.val.string.val = unconstify(char *, key);
	value.val.string.len = strlen(key);
	pushJsonbValue(state, WJB_KEY, &value);
}

static void
push_string(JsonbParseState **state, JsonbIteratorToken token,
			const char *text)
{
	JsonbValue value = {.type = jbvString};

	value.val.string.val = unconstify(char *, text);
	value.val.string.len = strlen(text);
	pushJsonbValue(state, token, &value);
}

static void
add_text(JsonbParseState **state, const char *key, const char *text)
{
	push_key(state, key);
	push_string(state, WJB_VALUE, text);
}

static void
add_int(JsonbParseState **state, const char *key, int64 number)
{
	JsonbValue value = {.type = jbvNumeric};

	value.val.numeric = int64_to_numeric(number);
	push_key(state, key);
	pushJsonbValue(state, WJB_VALUE, &value);
}

static void
add_time(JsonbParseState **state, const char *key, TimestampTz t)
{
	if (t != 0)
		add_text(state, key, tq_clock_text(t));
}

static void
add_slug(JsonbParseState **state, const char *key, const TqSlug *slug)
{
	add_text(state, key, tq_slug_text(slug));
}

/* A jsonb object as a value, or {} for NULL. */
static void
add_object(JsonbParseState **state, const char *key, Jsonb *object)
{
	JsonbValue value;

	push_key(state, key);
	if (object == NULL)
	{
		pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
		pushJsonbValue(state, WJB_END_OBJECT, NULL);
		return;
	}
	JsonbToJsonbValue(object, &value);
	pushJsonbValue(state, WJB_VALUE, &value);
}

/* A text[] as a value, or [] for NULL. */
static void
add_array(JsonbParseState **state, const char *key, ArrayType *array)
{
	Datum *elements;
	int n = 0;

	push_key(state, key);
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	if (array != NULL)
		deconstruct_array(array,
						  TEXTOID,
						  -1,
						  false,
						  TYPALIGN_INT,
						  &elements,
						  NULL,
						  &n);
	for (int i = 0; i < n; i++)
		push_string(state, WJB_ELEM, TextDatumGetCString(elements[i]));
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

static void
add_slugs(JsonbParseState **state, const char *key, const TqSlug *slugs, int n)
{
	push_key(state, key);
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
		push_string(state, WJB_ELEM, tq_slug_text(&slugs[i]));
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

/* provisionerId, workerType and taskQueueId are one name. */
static void
add_queue(JsonbParseState **state, const char *name)
{
	const char *slash = strchr(name, '/');

	add_text(state, "taskQueueId", name);
	add_text(state, "provisionerId", pnstrdup(name, slash - name));
	add_text(state, "workerType", slash + 1);
}

/* Keys that the status and the definition share. */
static void
add_common(JsonbParseState **state, const TqTask *task)
{
	add_queue(state, task->queue_name);
	add_text(state, "schedulerId", task->scheduler_id);
	add_text(state, "projectId", task->project_id);
	add_slug(state, "taskGroupId", &task->group_slug);
	add_text(state, "priority", tq_priority_name(task->priority));
	add_time(state, "deadline", task->deadline);
	add_time(state, "expires", task->expires);
}

/* 1.4; the order of the keys is jsonb's. */
static void
push_run(JsonbParseState **state, const TqRun *run)
{
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	add_int(state, "runId", run->run_id);
	add_text(state, "state", tq_state_name(run->state));
	add_text(state, "reasonCreated", tq_created_name(run->created));
	if (run->reason != TQ_RESOLVED_NONE)
		add_text(state, "reasonResolved", tq_resolved_name(run->reason));
	if (run->worker_group != NULL)
	{
		add_text(state, "workerGroup", run->worker_group);
		add_text(state, "workerId", run->worker_id);
	}
	add_time(state, "takenUntil", run->taken_until);
	add_time(state, "scheduled", run->scheduled);
	add_time(state, "started", run->started);
	add_time(state, "resolved", run->resolved);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/* The status structure (1.3) from a task and all its runs. */
Jsonb *
tq_status_json(const TqTask *task, const TqRun *runs, int n)
{
	JsonbParseState *state = NULL;
	const TqRun *last = n > 0 ? &runs[n - 1] : NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	add_slug(&state, "taskId", &task->task_id);
	add_common(&state, task);
	add_int(&state, "retriesLeft", last ? last->retries_left : task->retries);
	add_text(&state,
			 "state",
			 tq_state_name(last ? last->state : TQ_STATE_UNSCHEDULED));
	push_key(&state, "runs");
	pushJsonbValue(&state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
		push_run(&state, &runs[i]);
	pushJsonbValue(&state, WJB_END_ARRAY, NULL);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

/* The same, with the runs as they are now. */
Jsonb *
tq_status_of(const TqTask *task)
{
	int n;
	TqRun *runs = tq_runs_history(&task->id, 1, &n);

	return tq_status_json(task, runs, n);
}

/* Metadata of a task that enqueue() made: all four keys are required. */
Jsonb *
tq_metadata_json(const char *name)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	add_text(&state, "name", name);
	add_text(&state, "description", "");
	add_text(&state, "owner", "tq");
	add_text(&state, "source", "https://localhost/");
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

/* The definition with every default filled in (1.2). */
Jsonb *
tq_definition_json(const TqTask *task)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	add_common(&state, task);
	add_slugs(&state, "dependencies", task->dependencies, task->ndependencies);
	add_text(&state,
			 "requires",
			 task->all_resolved ? "all-resolved" : "all-completed");
	add_array(&state, "routes", task->routes);
	add_int(&state, "retries", task->retries);
	add_time(&state, "created", task->created);
	add_array(&state, "scopes", task->scopes);
	add_object(&state, "payload", task->payload);
	add_object(&state,
			   "metadata",
			   task->metadata != NULL ? task->metadata
									  : tq_metadata_json(task->queue_name));
	add_object(&state, "tags", task->tags);
	add_object(&state, "extra", task->extra);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

/* What get_task_group() answers (2.7). */
Jsonb *
tq_group_json(const TqGroup *group)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	add_slug(&state, "taskGroupId", &group->task_group_id);
	add_text(&state, "schedulerId", group->scheduler_id);
	add_time(&state, "expires", group->expires);
	add_time(&state, "sealed", group->sealed);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

/* What cancel_task_group() answers (2.6). */
Jsonb *
tq_group_cancel_json(const TqGroup *group, int64 size, const TqTask *tasks,
					 int n)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	add_slug(&state, "taskGroupId", &group->task_group_id);
	add_int(&state, "taskGroupSize", size);
	add_int(&state, "cancelledCount", n);
	push_key(&state, "taskIds");
	pushJsonbValue(&state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
		push_string(&state, WJB_ELEM, tq_slug_text(&tasks[i].task_id));
	pushJsonbValue(&state, WJB_END_ARRAY, NULL);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

static void
add_recent(JsonbParseState **state, int32 worker)
{
	int n;
	TqRecent *recent = tq_worker_recent(worker, &n);

	push_key(state, "recentTasks");
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
	{
		pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
		add_slug(state, "taskId", &recent[i].task_id);
		add_int(state, "runId", recent[i].run_id);
		pushJsonbValue(state, WJB_END_OBJECT, NULL);
	}
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

/* A worker as get_worker() and quarantine_worker() show it (2.16). */
Jsonb *
tq_worker_json(const char *queue, const char *group, const char *id,
			   const TqWorker *worker)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	add_queue(&state, queue);
	add_text(&state, "workerGroup", group);
	add_text(&state, "workerId", id);
	add_time(&state, "expires", worker->expires);
	add_time(&state, "firstClaim", worker->first_claim);
	add_time(&state, "lastDateActive", worker->last_date_active);
	add_time(&state, "quarantineUntil", worker->quarantine_until);
	add_recent(&state, worker->id);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

/* What task_queue_counts() answers (2.16). */
Jsonb *
tq_counts_json(const char *queue, int64 pending, int64 claimed)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	add_queue(&state, queue);
	add_int(&state, "pendingTasks", pending);
	add_int(&state, "claimedTasks", claimed);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}

/* One entry of a worker's quarantine_details (2.16). */
Jsonb *
tq_quarantine_json(const char *client, TimestampTz now, TimestampTz until,
				   const char *info)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	add_text(&state, "clientId", client);
	add_time(&state, "updatedAt", now);
	add_time(&state, "quarantineUntil", until);
	add_text(&state, "quarantineInfo", info);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}
