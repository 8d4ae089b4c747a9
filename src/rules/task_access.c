/*
 * task_access.c
 *	  Tasks and runs that a call names, which it must find, and the scopes that
 *	  calls about tasks, runs and queues require (doc/spec/taskcluster.md 7.2).
 *
 * A right to a task is held by a scope that names the task, or by one that ends
 * in -in-queue and names its task queue, so that a role can be held to its own
 * queues.  A task whose status the caller may not see is one that does not
 * exist: the error is TQ404 for both, and the same, so that no call shows whether
 * another application has a task or a group of that id.
 */
#include "postgres.h"

#include "../core/names.h"
#include "../storage/columns.h"
#include "../storage/registry.h"
#include "rules.h"

/* ---- tasks and runs ---- */

/* Raises TQ404 for a task that does not exist, or that the caller may not see. */
void
tq_error_missing_task(const TqSlug *task_id)
{
	bool sees_all = tq_access_is_unlimited();

	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_NOT_FOUND),
		 errmsg("task \"%s\" does not exist", tq_slug_text(task_id)),
		 sees_all
			 ? errdetail("It was never created, or it has expired.")
			 : errdetail(
				   "It was never created, it has expired, or the caller has no right to see it."),
		 sees_all
			 ? errhint(
				   "Check the task id, and that its transaction was committed.")
			 : errhint(
				   "Check the task id, that its transaction was committed, and tq.current_scopes().")));
}

/* The same for a task group. */
static void
error_missing_group(const TqSlug *slug)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_NOT_FOUND),
		 errmsg("task group \"%s\" does not exist", tq_slug_text(slug)),
		 tq_access_is_unlimited()
			 ? errdetail("No task of that group exists, or it has expired.")
			 : errdetail(
				   "No task of that group exists, it has expired, or the caller has no right to see it."),
		 errhint(
			 "Check the task group id, and that the transaction of its first task was committed.")));
}

/* Returns the task, or raises TQ404. */
TqNamedTask *
tq_task_get(const TqSlug *task_id)
{
	TqNamedTask *named = tq_task_by_slug(task_id);

	if (named == NULL)
		tq_error_missing_task(task_id);
	return named;
}

/* Returns the task with its whole definition, or raises TQ404. */
TqTaskDefinition *
tq_definition_get(const TqSlug *task_id)
{
	TqTaskDefinition *definition = tq_definition_by_slug(task_id);

	if (definition == NULL)
		tq_error_missing_task(task_id);
	return definition;
}

/* Raises TQ409 for a task that is past its deadline. */
void
tq_error_past_deadline(const TqTask *task)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_CONFLICT),
		 errmsg("task \"%s\" is past its deadline",
				tq_slug_text(&task->task_id)),
		 errdetail("Its deadline was %s.", tq_clock_text(task->deadline)),
		 errhint(
			 "Call tq.rerun_task() with a new deadline, such as deadline => '1 day'.")));
}

/* Raises TQ404 for a run that does not exist. */
void
tq_error_missing_run(const TqTask *task, int run_id)
{
	TqRun last = {.run_id = -1};

	(void) tq_run_peek(task->id, &last);
	ereport(ERROR, (errcode(ERRCODE_TQ_NOT_FOUND),
					errmsg("task \"%s\" has no run %d",
						   tq_slug_text(&task->task_id), run_id),
					errdetail_plural("It has %d run.", "It has %d runs.",
									 last.run_id + 1, last.run_id + 1),
					errhint("tq.status() shows the runs of a task.")));
}

/* ---- scopes ---- */

/* What stands in an error for a queue that the caller may not know. */
#define ITS_QUEUE "<taskQueueId>"

static TqNeed *
in_queue(const char *right, const char *queue)
{
	return tq_need("queue:%s-in-queue:%s", right, queue);
}

/* ---- create ---- */

/* Adds a scope for each element of an array. */
static void
add_each(TqNeed *list, const char *prefix, char **texts, int n)
{
	for (int i = 0; i < n; i++)
		tq_need_add(list, tq_need("%s%s", prefix, texts[i]));
}

static TqNeed *
need_at(int priority, const char *queue)
{
	return tq_need("queue:create-task:%s:%s", tq_priority_name(priority),
				   queue);
}

/*
 * Returns whether the caller may create tasks of this priority or a higher one.
 * Who may create some may mostly create those of the highest.
 */
static bool
may_create_at(const TqNamedTask *named)
{
	for (int priority = TQ_PRIORITY_HIGHEST; priority >= named->task.priority;
		 priority--)
	{
		if (tq_access_meets(need_at(priority, named->queue_name)))
			return true;
	}
	return false;
}

/* Any priority that is not lower than the task's is enough. */
static TqNeed *
need_of_priority(const TqNamedTask *named)
{
	TqNeed *any = tq_need_list(TQ_NEED_ANY, TQ_PRIORITY_HIGHEST);

	for (int priority = TQ_PRIORITY_HIGHEST; priority >= named->task.priority;
		 priority--)
		tq_need_add(any, need_at(priority, named->queue_name));
	return any;
}

/*
 * Returns what the creation of a task requires in addition to the scope of its
 * priority, for which it leaves room.
 */
static TqNeed *
need_of_rest(const TqTaskDefinition *definition, bool with_project)
{
	const TqNamedTask *named = &definition->named;
	int nscopes;
	int nroutes;
	char **scopes = tq_texts_of_array(definition->scopes, &nscopes);
	char **routes = tq_texts_of_array(definition->routes, &nroutes);
	TqNeed *all = tq_need_list(TQ_NEED_ALL, nscopes + nroutes + 3);

	add_each(all, "", scopes, nscopes);
	add_each(all, "queue:route:", routes, nroutes);
	if (with_project)
		tq_need_add(all, tq_need("queue:create-task:project:%s",
								 named->project_id));
	tq_need_add(all, tq_need("queue:scheduler-id:%s", named->scheduler_id));
	return all;
}

/* Checks the creation of one task. */
static void
check_create(const TqTaskDefinition *definition, bool with_project)
{
	TqNeed *all = need_of_rest(definition, with_project);

	if (tq_access_meets(all) && may_create_at(&definition->named))
		return;
	tq_need_add(all, need_of_priority(&definition->named));
	tq_access_error(all);
}

/* Returns whether the caller has the scopes that a task gives to its worker. */
bool
tq_may_give_scopes(const TqTaskDefinition *definition)
{
	int n;
	char **scopes = tq_texts_of_array(definition->scopes, &n);
	TqNeed *all = tq_need_list(TQ_NEED_ALL, n);

	add_each(all, "", scopes, n);
	return tq_access_meets(all);
}

/* Returns whether what two tasks require is certainly the same. */
static bool
is_alike(const TqTaskDefinition *a, const TqTaskDefinition *b)
{
	return a->routes == NULL && b->routes == NULL && a->scopes == NULL &&
		   b->scopes == NULL &&
		   a->named.task.priority == b->named.task.priority &&
		   strcmp(a->named.queue_name, b->named.queue_name) == 0 &&
		   strcmp(a->named.scheduler_id, b->named.scheduler_id) == 0 &&
		   strcmp(a->named.project_id, b->named.project_id) == 0;
}

/* Checks the creation of tasks; define_task() needs no scope of the project. */
void
tq_require_create(const TqTaskDefinition *tasks, int n, bool with_project)
{
	if (tq_access_is_unlimited())
		return;
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || !is_alike(&tasks[i - 1], &tasks[i]))
			check_create(&tasks[i], with_project);
	}
}

/* ---- tasks ---- */

/* Returns whether the caller has a right to read a task, such as "status". */
bool
tq_may_read(const char *right, const TqSlug *task_id, const char *queue)
{
	return tq_access_is_unlimited() ||
		   tq_access_meets(
			   tq_need("queue:%s:%s", right, tq_slug_text(task_id))) ||
		   tq_access_meets(in_queue(right, queue));
}

/*
 * Raises the error for a caller that lacks a right to a task: TQ403, or if it
 * may not see that either, the one for a task that does not exist.
 */
static void
refuse(const TqSlug *task_id, const char *queue, const TqNeed *need)
{
	if (!tq_may_read("status", task_id, queue))
		tq_error_missing_task(task_id);
	tq_access_error(need);
}

/*
 * Returns whether the caller has a right to read a task that may not exist, such
 * as "status"; raises TQ403 if it may see no more than its status.
 */
static bool
has_read(const char *right, const TqSlug *task_id)
{
	TqNeed *need = tq_need("queue:%s:%s", right, tq_slug_text(task_id));
	TqNamedTask *named;

	if (tq_access_meets(need))
		return true;
	named = tq_task_by_slug(task_id);
	if (named == NULL)
		return false;
	if (tq_access_meets(in_queue(right, named->queue_name)))
		return true;
	if (tq_may_read("status", task_id, named->queue_name))
		tq_access_error(
			tq_need_any(2, need, in_queue(right, named->queue_name)));
	return false;
}

/* Checks a right to a task that the call reads. */
void
tq_require_read(const char *right, const TqSlug *task_id)
{
	if (!tq_access_is_unlimited() && !has_read(right, task_id))
		tq_error_missing_task(task_id);
}

/*
 * Removes the tasks that the caller may not see, as if they did not exist;
 * returns how many are left.
 */
int
tq_keep_read(const char *right, TqSlug *ids, int n)
{
	int left = 0;

	if (tq_access_is_unlimited())
		return n;
	for (int i = 0; i < n; i++)
	{
		if (has_read(right, &ids[i]))
			ids[left++] = ids[i];
	}
	return left;
}

/* Returns what a change of a task requires, such as "cancel-task". */
static TqNeed *
need_of_change(const char *right, const TqNamedTask *named)
{
	const char *group = tq_slug_text(&named->group_slug);

	return tq_need_any(4,
					   tq_need("queue:%s:%s/%s/%s", right, named->scheduler_id,
							   group, tq_slug_text(&named->task.task_id)),
					   tq_need("queue:%s-in-project:%s", right,
							   named->project_id),
					   in_queue(right, named->queue_name),
					   tq_need_all(2, tq_need("queue:%s", right),
								   tq_need("assume:scheduler-id:%s/%s",
										   named->scheduler_id, group)));
}

/* Returns whether the caller has a right to change a task. */
bool
tq_may_change(const char *right, const TqNamedTask *named)
{
	return tq_access_is_unlimited() ||
		   tq_access_meets(need_of_change(right, named));
}

/* Checks a right to a task that the call changes, such as "cancel-task". */
void
tq_require_change(const char *right, const TqNamedTask *named)
{
	if (!tq_may_change(right, named))
		refuse(&named->task.task_id, named->queue_name,
			   need_of_change(right, named));
}

/* Checks the right to change the priority of a task. */
void
tq_require_priority(const TqNamedTask *named)
{
	static const char right[] = "change-task-priority";
	TqNeed *need;

	if (tq_may_read(right, &named->task.task_id, named->queue_name))
		return;
	need = tq_need("queue:%s:%s", right, tq_slug_text(&named->task.task_id));
	refuse(&named->task.task_id, named->queue_name,
		   tq_need_any(2, need, in_queue(right, named->queue_name)));
}

/* ---- runs and claims ---- */

static TqNeed *
need_of_run(const char *right, const TqSlug *task_id, int run_id)
{
	return tq_need("queue:%s:%s/%d", right, tq_slug_text(task_id), run_id);
}

/*
 * Returns whether the caller has a right to every run of a queue, by whatever
 * scope a worker has it.  `right` is a literal.  The last answer is kept,
 * because the runs of a call, and of the calls of a worker, are mostly of one
 * queue: a check of each run by its own scope made a cycle of 100 claims and
 * their resolution 5 % slower.
 */
bool
tq_may_handle_runs(const char *right, int32 queue)
{
	static uint64 version = 0; /* of the scopes that the rest is about */
	static const char *asked = NULL;
	static int32 of = 0;
	static bool answer = false;
	uint64 present;

	if (tq_access_is_unlimited())
		return true;
	present = tq_access_version();
	if (present == version && of == queue && asked == right)
		return answer;
	answer = tq_access_meets(tq_need("queue:%s:*", right)) ||
			 tq_access_meets(in_queue(right, tq_queue_name(queue)));
	version = present;
	asked = right;
	of = queue;
	return answer;
}

/*
 * Returns whether the caller has a right to a run of a task of that queue, such
 * as "resolve-task", a literal.
 */
bool
tq_may_handle_run(const char *right, const TqSlug *task_id, int run_id,
				  int32 queue)
{
	return tq_may_handle_runs(right, queue) ||
		   tq_access_meets(need_of_run(right, task_id, run_id));
}

/* Checks a right to a run of a task of that queue. */
void
tq_require_run(const char *right, const TqSlug *task_id, int run_id,
			   int32 queue)
{
	const char *name;

	if (tq_may_handle_run(right, task_id, run_id, queue))
		return;
	name = tq_queue_name(queue);
	refuse(task_id, name,
		   tq_need_any(2, need_of_run(right, task_id, run_id),
					   in_queue(right, name)));
}

/*
 * Returns whether the caller may learn that a task exists that has a run, by the
 * right that it needs for that or by its status.
 */
bool
tq_may_see_run(const char *right, const TqSlug *task_id, int run_id,
			   int32 queue)
{
	return tq_may_handle_run(right, task_id, run_id, queue) ||
		   tq_may_read("status", task_id, tq_queue_name(queue));
}

/*
 * Checks the right of a worker to claim from a queue: any task, or the one with
 * this id, which may be NULL.
 */
void
tq_require_claim(const char *right, const char *queue, const TqSlug *task_id,
				 const char *worker_group, const char *worker_id)
{
	TqNeed *need = tq_need("queue:%s:%s", right, queue);

	if (task_id != NULL && !tq_access_meets(need))
		refuse(task_id, queue, need);
	tq_access_require(tq_need_all(2, need,
								  tq_need("queue:worker-id:%s/%s",
										  worker_group, worker_id)));
}

/* ---- groups, queues, workers ---- */

/* Returns whether the caller may create tasks of any priority in a queue. */
static bool
may_create_in(const char *queue)
{
	for (int priority = TQ_PRIORITY_HIGHEST; priority > 0; priority--)
	{
		if (tq_access_meets(need_at(priority, queue)))
			return true;
	}
	return false;
}

/* Returns what it takes to join a group, and to have a policy cancel it. */
static TqNeed *
need_to_join(const char *queue, bool cancels)
{
	TqNeed *join = in_queue("join", queue);

	return cancels ? tq_need_all(2, join, in_queue("cancel-task-group", queue))
				   : join;
}

/* Does the right to a schedulerId give the groups that have it? */
static bool
may_use_groups_of(const char *scheduler_id)
{
	return strcmp(scheduler_id, TQ_DEFAULT_SCHEDULER) != 0 &&
		   tq_access_meets(tq_need("queue:scheduler-id:%s", scheduler_id));
}

/*
 * Checks the right to join a group that has this schedulerId, and whose first
 * task is in this queue; `cancels`: with a policy that may cancel it.  A
 * schedulerId other than the default one is a right to its groups, as in
 * Taskcluster.  Else its policies could cancel tasks of another application, and
 * the group would wait for it.  The error names neither the queue nor the
 * schedulerId, which the caller may not know.
 */
void
tq_require_join(const char *scheduler_id, const char *queue, bool cancels)
{
	if (!tq_access_is_unlimited() && !may_use_groups_of(scheduler_id) &&
		!tq_access_meets(need_to_join(queue, cancels)) &&
		!may_create_in(queue))
		tq_access_error(
			tq_need_any(2, need_to_join(ITS_QUEUE, cancels),
						tq_need("queue:create-task:lowest:%s", ITS_QUEUE)));
}

/*
 * Returns whether the caller may let a task depend on tasks of this queue: who
 * may create tasks in it, and who has the right to.  Without it a required task
 * is one that does not exist, so that no role learns by a dependency that it is
 * there, or reads its result.  *is_foreign says that it may not create tasks in
 * the queue: such a dependency is left to lifecycle/foreign_dependency.c.
 */
bool
tq_may_depend(int32 queue, bool *is_foreign)
{
	const char *name;

	*is_foreign = false;
	if (tq_access_is_unlimited())
		return true;
	name = tq_queue_name(queue);
	*is_foreign = !may_create_in(name);
	return !*is_foreign || tq_access_meets(in_queue("depend", name));
}

/*
 * Checks the right to a unique key of the database.  Who makes one keeps the
 * creation of others with that key waiting in every queue.
 */
void
tq_require_unique(void)
{
	if (!tq_access_is_unlimited() && !may_create_in("*"))
		tq_access_require(in_queue("unique", "*"));
}

/*
 * Returns whether the caller has a right to a group, such as "seal-task-group".
 * That to the queue of its first task, whose producers may join it, is enough.
 */
static bool
may_change_group(const TqNeed *need, const char *right, const TqGroup *group)
{
	return tq_access_is_unlimited() || tq_access_meets(need) ||
		   tq_access_meets(in_queue(right, tq_queue_name(group->queue)));
}

/* The same for reading it. */
static bool
may_list(const TqGroup *group)
{
	static const char right[] = "list-task-group";

	return may_change_group(tq_need("queue:%s:%s", right,
									tq_slug_text(&group->task_group_id)),
							right, group);
}

static TqNeed *
need_of_group(const char *right, const TqGroup *group)
{
	return tq_need("queue:%s:%s/%s", right, group->scheduler_id,
				   tq_slug_text(&group->task_group_id));
}

/* What tq_may_still_cancel() asks, as another role. */
typedef struct StillCancels
{
	const TqGroup *group;
	bool *may;
} StillCancels;

static void
ask_still_cancels(const void *arg)
{
	static const char right[] = "cancel-task-group";
	const StillCancels *question = arg;
	const TqGroup *group = question->group;

	*question->may = may_change_group(need_of_group(right, group), right,
									  group) ||
					 may_create_in(tq_queue_name(group->queue)) ||
					 may_use_groups_of(group->scheduler_id);
}

/*
 * Returns whether the role that created a task has now what its policy needs to
 * cancel the group; tq_require_join() asked when it was created.  A role that was
 * dropped has nothing.  InvalidOid: that was asked once.
 */
bool
tq_may_still_cancel(Oid creator, const TqGroup *group)
{
	bool may = true;
	StillCancels question = {.group = group, .may = &may};

	if (OidIsValid(creator))
		tq_access_as(creator, ask_still_cancels, &question);
	return may;
}

/* Returns a group, or raises TQ404. */
void
tq_group_get(const TqSlug *slug, TqGroup *group)
{
	if (tq_group_find(slug, group) == TQ_GROUP_NONE)
		error_missing_group(slug);
}

/*
 * Returns a group that the caller wants to change by that right, or raises TQ404;
 * also for one that it may neither change nor read.
 */
void
tq_group_get_to(const char *right, const TqSlug *slug, TqGroup *group)
{
	tq_group_get(slug, group);
	if (!may_change_group(need_of_group(right, group), right, group) &&
		!may_list(group))
		error_missing_group(slug);
}

/* Checks a right to change a group. */
void
tq_require_group(const char *right, const TqGroup *group)
{
	TqNeed *need = need_of_group(right, group);

	if (!may_change_group(need, right, group))
		tq_access_error(
			tq_need_any(2, need,
						in_queue(right, tq_queue_name(group->queue))));
}

/* Checks the right to read a group. */
void
tq_require_group_list(const TqSlug *slug)
{
	TqGroup group;

	if (!tq_access_is_unlimited() &&
		!tq_access_meets(
			tq_need("queue:list-task-group:%s", tq_slug_text(slug))) &&
		(tq_group_find(slug, &group) == TQ_GROUP_NONE || !may_list(&group)))
		error_missing_group(slug);
}

static TqNeed *
need_of_letters(const char *queue)
{
	static const char right[] = "dead-letters";

	return tq_need_any(2, tq_need("queue:%s:%s", right, queue),
					   in_queue(right, queue));
}

/* Checks the right to the dead letters of a queue. */
void
tq_require_dead_letters(const char *queue)
{
	tq_access_require(need_of_letters(queue));
}

/* Returns whether the caller has a right to the dead letters of a queue. */
bool
tq_may_change_letters(const char *queue)
{
	return tq_access_meets(need_of_letters(queue));
}

/* Returns whether the caller may learn that a task has a dead letter. */
bool
tq_may_see_letter(const TqSlug *task_id, const char *queue)
{
	return tq_may_change_letters(queue) ||
		   tq_may_read("status", task_id, queue);
}
