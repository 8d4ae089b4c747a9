/*
 * status_json.c
 *	  The JSON of a task: the status structure, its runs, its definition; and
 *	  that of groups, workers and queues.
 *
 * Decides keys and formats of JSON (doc/spec/taskcluster.md 1.2 to
 * 1.4, 2.7).  What is absent is left out, never null.
 */
#include "postgres.h"

#include "../core/names.h"
#include "../core/state.h"
#include "events.h"

/* Appends taskQueueId and its two parts, provisionerId and workerType. */
static void
status_json_add_queue(JsonbParseState **state, const char *name)
{
	const char *slash = strchr(name, '/');

	tq_json_add_text(state, "taskQueueId", name);
	tq_json_add_text(state, "provisionerId", pnstrdup(name, slash - name));
	tq_json_add_text(state, "workerType", slash + 1);
}

/* Returns the progress of a run, with what is known of it. */
static Jsonb *
progress_json(const TqRunProgress *progress)
{
	JsonbParseState *state = tq_json_begin();

	tq_json_add_int(&state, "done", progress->done);
	if (progress->total != TQ_OFF)
		tq_json_add_int(&state, "total", progress->total);
	if (progress->message != NULL)
		tq_json_add_text(&state, "message", progress->message);
	tq_json_add_time(&state, "reported", progress->reported);
	return tq_json_end(&state);
}

/* Returns what task-progress adds to a message about a task. */
Jsonb *
tq_progress_detail_json(const TqRunProgress *progress)
{
	JsonbParseState *state = tq_json_begin();

	tq_json_add_object(&state, "progress", progress_json(progress));
	return tq_json_end(&state);
}

/*
 * Appends the keys of a run, which are Taskcluster's (doc/spec/taskcluster.md
 * 1.4), in the order of jsonb, so that nothing has to be sorted.
 */
static void
add_run(JsonbParseState **state, const TqHistoryRun *entry)
{
	const TqRun *run = &entry->run;

	tq_json_add_int(state, "runId", run->run_id);
	tq_json_add_text(state, "state", tq_state_name(run->state));
	tq_json_add_time(state, "started", run->started);
	tq_json_add_time(state, "resolved", run->resolved);
	if (entry->worker_group != NULL)
		tq_json_add_text(state, "workerId", entry->worker_id);
	tq_json_add_time(state, "scheduled", run->scheduled);
	tq_json_add_time(state, "takenUntil", run->taken_until);
	if (entry->worker_group != NULL)
		tq_json_add_text(state, "workerGroup", entry->worker_group);
	tq_json_add_text(state, "reasonCreated", tq_created_name(run->created));
	if (run->reason != TQ_RESOLVED_NONE)
		tq_json_add_text(state, "reasonResolved",
						 tq_resolved_name(run->reason));
}

/*
 * Returns whether a run has a key that Taskcluster's runs have not.  The
 * attempt of the first run is 0, and is not shown.
 */
static bool
has_details(const TqHistoryRun *entry, bool has_policy)
{
	const TqRunDetail *detail = entry->detail;

	return (has_policy && entry->run.run_id > 0) ||
		   (detail != NULL &&
			(detail->error != NULL || detail->progress != NULL ||
			 detail->budget.visible_at > entry->run.scheduled));
}

/* Appends those keys (doc/spec/taskcluster.md 1.4), but runId. */
static void
add_details(JsonbParseState **state, const TqHistoryRun *entry,
			bool has_policy)
{
	const TqRunDetail *detail = entry->detail;

	if (detail != NULL && detail->error != NULL)
		tq_json_add_object(state, "error", detail->error);
	if (has_policy && entry->run.run_id > 0)
		tq_json_add_int(state, "attempt",
						detail != NULL ? detail->budget.attempt : 0);
	if (detail != NULL && detail->progress != NULL)
		tq_json_add_object(state, "progress", progress_json(detail->progress));
	if (detail != NULL && detail->budget.visible_at > entry->run.scheduled)
		tq_json_add_time(state, "visibleAt", detail->budget.visible_at);
}

/* Appends runDetails: the runs that have details, if any has. */
static void
push_details(JsonbParseState **state, const TqHistoryRun *runs, int n,
			 bool has_policy)
{
	int i = 0;

	while (i < n && !has_details(&runs[i], has_policy))
		i++;
	if (i == n)
		return;
	tq_json_key(state, "runDetails");
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (; i < n; i++)
	{
		if (!has_details(&runs[i], has_policy))
			continue;
		pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
		tq_json_add_int(state, "runId", runs[i].run.run_id);
		add_details(state, &runs[i], has_policy);
		pushJsonbValue(state, WJB_END_OBJECT, NULL);
	}
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

/*
 * Returns the retries that a task has left.  One that is unscheduled again has
 * those of its next run.
 */
static int
retries_left(const TqTask *task, const TqHistoryRun *last)
{
	if (last == NULL)
		return task->retries;
	return last->is_left ? tq_rerun_retries(task->retries, tq_max_runs,
											last->run.run_id + 1)
						 : last->run.retries_left;
}

/*
 * Appends the keys of the status structure (doc/spec/taskcluster.md 1.3), from
 * a task and all its runs, in the order of jsonb.
 */
void
tq_status_push(JsonbParseState **state, const TqNamedTask *named,
			   const TqHistoryRun *runs, int n)
{
	const TqTask *task = &named->task;
	const TqRun *last = n > 0 ? &runs[n - 1].run : NULL;
	TqState state_now = last == NULL || runs[n - 1].is_left
							? TQ_STATE_UNSCHEDULED
							: last->state;
	const char *slash = strchr(named->queue_name, '/');

	tq_json_key(state, "runs");
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
	{
		pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
		add_run(state, &runs[i]);
		pushJsonbValue(state, WJB_END_OBJECT, NULL);
	}
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
	tq_json_add_text(state, "state", tq_state_name(state_now));
	tq_json_add_slug(state, "taskId", &task->task_id);
	tq_json_add_time(state, "expires", task->expires);
	tq_json_add_time(state, "deadline", task->deadline);
	tq_json_add_text(state, "priority", tq_priority_name(task->priority));
	tq_json_add_text(state, "projectId", named->project_id);
	push_details(state, runs, n, task->policy != 0);
	tq_json_add_text(state, "workerType", slash + 1);
	tq_json_add_int(state, "retriesLeft",
					retries_left(task, n > 0 ? &runs[n - 1] : NULL));
	tq_json_add_text(state, "schedulerId", named->scheduler_id);
	tq_json_add_slug(state, "taskGroupId", &named->group_slug);
	tq_json_add_text(state, "taskQueueId", named->queue_name);
	tq_json_add_text(state, "provisionerId",
					 pnstrdup(named->queue_name, slash - named->queue_name));
}

/*
 * Returns the runs of a task with a policy as an array, each with its details:
 * a dead letter has no other place for them.
 */
Jsonb *
tq_runs_json(const TqHistoryRun *runs, int n)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
	{
		pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
		add_run(&state, &runs[i]);
		add_details(&state, &runs[i], true);
		pushJsonbValue(&state, WJB_END_OBJECT, NULL);
	}
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_ARRAY, NULL));
}

/* Returns the status structure. */
Jsonb *
tq_status_json(const TqNamedTask *named, const TqHistoryRun *runs, int n)
{
	JsonbParseState *state = tq_json_begin();

	tq_status_push(&state, named, runs, n);
	return tq_json_end(&state);
}

/* The same with the runs of the task in a history of several tasks. */
Jsonb *
tq_status_from(const TqHistoryRun *runs, int nruns, const TqNamedTask *named)
{
	int first = tq_history_first(runs, nruns, named->task.id);
	int end = first;

	while (end < nruns && runs[end].run.task == named->task.id)
		end++;
	return tq_status_json(named, runs + first, end - first);
}

/* Returns the status structure with the runs as they are now. */
Jsonb *
tq_status_of(const TqNamedTask *named)
{
	int n;
	TqHistoryRun *runs = tq_runs_of_task(&named->task, &n);

	return tq_status_json(named, runs, n);
}

/*
 * The same of a task that has this run only, as the call that has written it
 * knows it; detail is NULL if none is stored.  To read it again would cost
 * create_task() a fifth and report_completed() a seventh of their time.
 */
Jsonb *
tq_status_of_only(const TqNamedTask *named, const TqRun *run,
				  const TqRunDetail *detail)
{
	TqHistoryRun only = {.run = *run, .detail = detail};

	if (run->worker != 0)
		tq_worker_name(run->worker, &only.worker_group, &only.worker_id);
	return tq_status_json(named, &only, 1);
}

/*
 * Returns the metadata of a task that enqueue() created: all four keys are
 * required.
 */
Jsonb *
tq_metadata_json(const char *name)
{
	JsonbParseState *state = tq_json_begin();

	tq_json_add_text(&state, "name", name);
	tq_json_add_text(&state, "owner", "tq");
	tq_json_add_text(&state, "source", "https://localhost/");
	tq_json_add_text(&state, "description", "");
	return tq_json_end(&state);
}

/*
 * Returns whether this policy delays a task whose definition gives no delay.
 */
static bool
has_delay(const Jsonb *policy)
{
	TqGivenPolicy given;

	return policy != NULL && tq_policy_parse_stored(policy, &given) == NULL &&
		   given.delay > 0;
}

/* Returns a policy with the keys of its task. */
static Jsonb *
with_keys(Jsonb *policy, const TqTaskDefinition *definition)
{
	char *keys[TQ_KEYS];
	TqGivenPolicy given;

	if (tq_policy_parse_stored(policy, &given) != NULL ||
		given.policy.keys == 0)
		return policy;
	memcpy(keys, definition->keys, sizeof(keys));
	if (definition->given_policy == NULL) /* a stored task */
		tq_task_keys_read(definition->named.task.id, keys);
	return tq_policy_with_keys(policy, keys);
}

/*
 * Returns the definition with every default filled in (doc/spec/taskcluster.md
 * 1.2), in the order of jsonb; the policy is as it was given.
 */
Jsonb *
tq_definition_json(const TqTaskDefinition *definition)
{
	const TqNamedTask *named = &definition->named;
	const TqTask *task = &named->task;
	Jsonb *policy = tq_policy_own(definition->given_policy != NULL
									  ? definition->given_policy
									  : tq_policy_json(task->policy));
	const char *slash = strchr(named->queue_name, '/');
	JsonbParseState *state = tq_json_begin();

	tq_json_add_object(&state, "tags", definition->tags);
	if (task->delay != 0 || has_delay(policy))
		tq_json_add_seconds(&state, "delay",
							task->delay < 0 ? -task->delay : task->delay);
	tq_json_add_object(&state, "extra", definition->extra);
	if (policy != NULL)
		tq_json_add_object(&state, "policy", with_keys(policy, definition));
	tq_json_add_texts(&state, "routes", definition->routes);
	tq_json_add_texts(&state, "scopes", definition->scopes);
	tq_json_add_time(&state, "created", task->created);
	tq_json_add_time(&state, "expires", task->expires);
	tq_json_add_object(&state, "payload", definition->payload);
	tq_json_add_int(&state, "retries", task->retries);
	tq_json_add_time(&state, "deadline", task->defined_deadline);
	tq_json_add_object(&state, "metadata",
					   definition->metadata != NULL
						   ? definition->metadata
						   : tq_metadata_json(named->queue_name));
	tq_json_add_text(&state, "priority", tq_priority_name(task->priority));
	tq_json_add_text(&state, "requires",
					 task->all_resolved ? "all-resolved" : "all-completed");
	tq_json_add_text(&state, "projectId", named->project_id);
	tq_json_add_text(&state, "workerType", slash + 1);
	tq_json_add_text(&state, "schedulerId", named->scheduler_id);
	tq_json_add_slug(&state, "taskGroupId", &named->group_slug);
	tq_json_add_text(&state, "taskQueueId", named->queue_name);
	tq_json_add_slugs(&state, "dependencies", definition->dependencies,
					  definition->ndependencies);
	tq_json_add_text(&state, "provisionerId",
					 pnstrdup(named->queue_name, slash - named->queue_name));
	return tq_json_end(&state);
}

/* Returns the result of get_task_group() (doc/spec/taskcluster.md 2.7). */
Jsonb *
tq_group_json(const TqGroup *group)
{
	JsonbParseState *state = tq_json_begin();

	tq_json_add_slug(&state, "taskGroupId", &group->task_group_id);
	tq_json_add_text(&state, "schedulerId", group->scheduler_id);
	tq_json_add_time(&state, "expires", group->expires);
	tq_json_add_time(&state, "sealed", group->sealed);
	return tq_json_end(&state);
}

/*
 * Returns the body of task-group-resolved and task-group-sealed
 * (doc/spec/taskcluster.md 6.3).
 */
Jsonb *
tq_group_message_json(const TqGroup *group)
{
	JsonbParseState *state = tq_json_begin();

	tq_json_add_int(&state, "version", 1);
	tq_json_add_slug(&state, "taskGroupId", &group->task_group_id);
	tq_json_add_text(&state, "schedulerId", group->scheduler_id);
	tq_json_add_time(&state, "expires", group->expires);
	tq_json_add_time(&state, "sealed", group->sealed);
	return tq_json_end(&state);
}

/* Returns the result of task_queue_counts() (doc/spec/taskcluster.md 2.16). */
Jsonb *
tq_counts_json(const char *queue, int64 pending, int64 claimed)
{
	JsonbParseState *state = tq_json_begin();

	status_json_add_queue(&state, queue);
	tq_json_add_int(&state, "pendingTasks", pending);
	tq_json_add_int(&state, "claimedTasks", claimed);
	return tq_json_end(&state);
}
