/*
 * group.c
 *	  Task groups: joining, sealing, canceling, resolution
 *	  (doc/spec/taskcluster.md 2.6, 2.7, 4.5; doc/spec/policy.md 2).
 *
 * Decides which tasks may join a group and until when, what a cancellation
 * covers, and when a group is resolved.  group_table.c describes the two races
 * and the locks that close them.
 */
#include "postgres.h"

#include "lifecycle.h"

static void
refuse_scheduler(const TqGroup *group, const char *scheduler_id)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_CONFLICT),
		 errmsg("task group \"%s\" has another schedulerId",
				tq_slug_text(&group->task_group_id)),
		 errdetail("The group has schedulerId \"%s\", the task \"%s\".",
				   group->scheduler_id, scheduler_id),
		 errhint(
			 "Use the schedulerId of the group, or another taskGroupId.")));
}

/* Returns whether the policy of a task may cancel its group. */
bool
tq_group_is_canceled_by(const TqTask *task)
{
	return tq_policy_get(task->policy)->on_unsuccessful ==
		   TQ_UNSUCCESSFUL_CANCEL_GROUP;
}

/*
 * Raises an error unless the task has the schedulerId of the group, the caller
 * may join it, and it is not sealed; `cancels`: the policy of the task, or of
 * another one of the call, may cancel the group.
 */
static void
group_check_member(const TqGroup *group, const TqNamedTask *named,
				   bool cancels)
{
	if (group->queue != named->task.queue)
		tq_require_join(group->scheduler_id, tq_queue_name(group->queue),
						cancels);
	if (strcmp(group->scheduler_id, named->scheduler_id) != 0)
		refuse_scheduler(group, named->scheduler_id);
	if (group->sealed != 0)
		ereport(ERROR, (errcode(ERRCODE_TQ_CONFLICT),
						errmsg("task group \"%s\" is sealed",
							   tq_slug_text(&group->task_group_id)),
						errdetail("It was sealed at %s.",
								  tq_clock_text(group->sealed)),
						errhint("Create the task in another group; "
								"tq.rerun_task(), with a new deadline if "
								"needed, runs one of this group again.")));
}

/*
 * Returns the row of a group in *group, and inserts it if there is none: for
 * the first task that joins, and for a seal.  *new is the group as it is then,
 * if no task is named like it.  Returns whether it has inserted the row.
 */
static bool
materialize(const TqSlug *slug, const TqGroup *new, bool cancels,
			TqGroup *group)
{
	TqGroupFound found = tq_group_find(slug, group);

	if (found == TQ_GROUP_STORED)
		return false;
	if (found == TQ_GROUP_NONE)
	{
		group->scheduler_id = pstrdup(new->scheduler_id);
		group->expires = tq_clock_add_ms(new->expires, TQ_HOUR_MS);
		group->queue = new->queue;
	}
	/*
	 * A session that is creating the task that the group is named after waits
	 * for this row once it is there.  So wait for that session before.  A
	 * deadlock is then possible only in the moment between this wait and the
	 * insertion.
	 */
	(void) tq_task_wait_for_insert(slug);
	if (tq_group_insert(group))
	{
		TqNamedTask *named = tq_task_wait_for_insert(slug)
								 ? tq_task_by_slug(slug)
								 : NULL;

		if (named == NULL || named->task.group_id != 0)
			return true;
		tq_require_join(named->scheduler_id, named->queue_name, cancels);
		if (strcmp(named->scheduler_id, group->scheduler_id) != 0)
			refuse_scheduler(group, named->scheduler_id);
		return true;
	}
	(void) tq_group_find(slug, group);
	return false;
}

/*
 * Makes a task join its group, which is not named after it, and returns the id
 * of the group.  latest_expires is the latest expiry of the tasks of the same
 * call that join the group; `cancels`: the policy of one of them may cancel it.
 *
 * A group that has expired may be being deleted concurrently.  Then prolonging
 * it, which waits for the deletion, finds no row, and the group is inserted
 * again.  The caller holds the advisory lock of the group, or has its row locked
 * here.
 */
int64
tq_group_join(const TqNamedTask *named, TimestampTz latest_expires,
			  bool cancels, bool lock_row)
{
	const TqGroup new = {.scheduler_id = named->scheduler_id,
						 .expires = tq_group_until(named->task.expires,
												   named->task.created),
						 .queue = named->task.queue};
	TqGroup group;

	do
	{
		if (!materialize(&named->group_slug, &new, cancels, &group) &&
			lock_row && tq_group_lock_row(group.id, false))
			(void) tq_group_find(&named->group_slug, &group);
		group_check_member(&group, named, cancels);
	} while (latest_expires > group.expires &&
			 !tq_group_prolong(group.id,
							   tq_clock_add_ms(latest_expires, TQ_HOUR_MS)));
	return group.id;
}

/*
 * Raises an error unless the task that a group is named after is compatible
 * with the row of the group, if it has one; prolongs the group if the task
 * expires later.
 */
static void
check_own(const TqNamedTask *named)
{
	const TqTask *task = &named->task;
	TimestampTz until;
	TqGroup group;

	if (tq_group_find(&task->task_id, &group) != TQ_GROUP_STORED)
		return;
	group_check_member(&group, named, tq_group_is_canceled_by(task));
	until = tq_group_until(task->expires, task->created);
	if (until > group.expires)
		tq_group_prolong(group.id, tq_clock_add_ms(until, TQ_HOUR_MS));
}

/*
 * Checks these tasks, which have been inserted or existed already, against the
 * groups that are named after them.  Waits for sessions that are inserting the
 * rows of these groups.
 */
void
tq_groups_check_own(const TqTaskDefinition *const *tasks, int n)
{
	TqSlug *slugs = palloc(sizeof(TqSlug) * n);
	bool *exist = palloc(sizeof(bool) * n);

	for (int i = 0; i < n; i++)
		slugs[i] = tasks[i]->named.task.task_id;
	tq_groups_wait_for_insert(slugs, n, exist);
	for (int i = 0; i < n; i++)
	{
		if (exist[i])
			check_own(&tasks[i]->named);
	}
}

/*
 * Raises TQ409 if more tasks have joined a group than tq.max_group_tasks
 * allows.  What concurrent transactions add is counted when they have committed.
 */
void
tq_group_check_size(const TqNamedTask *joined)
{
	TqGroup group = {.id = joined->task.group_id};

	if (tq_group_exceeds(&group, tq_max_group_tasks))
		ereport(ERROR, (errcode(ERRCODE_TQ_CONFLICT),
						errmsg("task group \"%s\" has too many tasks",
							   tq_slug_text(&joined->group_slug)),
						errdetail("%d tasks may join it (tq.max_group_tasks).",
								  tq_max_group_tasks),
						errhint("Create the task in another group.")));
}

/* Returns a group that the caller may seal, or raises an error. */
static void
get_to_seal(const TqSlug *slug, TqGroup *group)
{
	tq_group_get_to("seal-task-group", slug, group);
	tq_require_group("seal-task-group", group);
}

/*
 * Seals a group.  The right is checked before anything is locked, so that a
 * caller without it holds up no join.  A sealed group keeps the time at which it
 * was sealed; each call appends the message again (doc/spec/taskcluster.md 2.7).
 * The clock is read under the lock, so no task of the group was created later.
 */
void
tq_group_seal(const TqSlug *slug, TqGroup *group)
{
	TqGroup found;

	get_to_seal(slug, group);
	tq_group_lock(slug, true);
	get_to_seal(slug, group);
	found = *group;
	(void) materialize(slug, &found, false, group);
	if (group->sealed == 0)
	{
		(void) tq_group_lock_row(group->id, true);
		/*
		 * A session that creates the task that the group is named after takes
		 * no lock: its task is admitted, or it sees the seal.
		 */
		(void) tq_task_wait_for_insert(slug);
		tq_group_set_sealed(group->id, tq_clock_now());
		(void) tq_task_wait_for_insert(slug);
	}
	(void) tq_group_find(slug, group);
	tq_outbox_append_detail(TQ_EXCHANGE_TASK_GROUP_SEALED, NULL, -1, NULL,
							tq_group_message_json(group));
}

/*
 * Returns the number of a group that the caller may seal, and so name; its row
 * is inserted if it has none, under the lock of a seal.  Nothing is locked if it
 * has one: a transaction that names the group and then seals it would wait for
 * another one that has locked it shared, and waits for the row.  One that joins
 * the group and prolongs it does wait for a row that is named: the server ends
 * the seal then (40P01), as it may with any transaction of several calls.
 */
int64
tq_group_to_name(const TqSlug *slug)
{
	TqGroup found;
	TqGroup group;

	get_to_seal(slug, &found);
	if (found.id != 0)
		return found.id;
	tq_group_lock(slug, true);
	get_to_seal(slug, &found);
	(void) materialize(slug, &found, false, &group);
	return group.id;
}

/* ---- cancel ---- */

/*
 * Locks those of these tasks that are before their deadline, and the
 * dependents that their end may release.  They are ended, and their messages
 * appended, in the order of locks.
 */
static void
lock_unresolved(int64 *ids, int n, TimestampTz now, TqLockedTasks *locked)
{
	TqTask *tasks = tq_tasks_core(ids, n, &n);
	TqTaskLock *locks;
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].deadline <= now)
			continue;
		ids[count] = tasks[i].id;
		tasks[count++] = tasks[i];
	}
	locks = tq_task_lock_wait(ids, count, TQ_LOCK_UPDATE, NULL, true);
	*locked = (TqLockedTasks){.runs = palloc(sizeof(TqRun) * Max(count, 1)),
							  .tasks = palloc(sizeof(TqTask) * Max(count, 1))};
	for (int i = 0; i < 2 * count; i++)
	{
		const TqTaskLock *lock = &locks[i % count];
		bool is_unscheduled = lock->run.location == TQ_LOCATION_UNSCHEDULED;
		TqTask *task;

		if (!lock->is_locked || is_unscheduled != (i >= count))
			continue;
		task = &locked->tasks[locked->n];
		*task = tasks[i % count];
		(void) tq_task_order(task->id, &task->queue, &task->priority);
		locked->runs[locked->n++] = lock->run;
	}
}

/* Returns the result of cancel_task_group() (doc/spec/taskcluster.md 2.6). */
static Jsonb *
cancel_json(const TqGroup *group, int64 size, const TqTask *tasks, int n)
{
	JsonbParseState *state = tq_json_begin();

	tq_json_add_slug(&state, "taskGroupId", &group->task_group_id);
	tq_json_add_int(&state, "taskGroupSize", size);
	tq_json_add_int(&state, "cancelledCount", n);
	tq_json_key(&state, "taskIds");
	pushJsonbValue(&state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
		tq_json_string(&state, WJB_ELEM, tq_slug_text(&tasks[i].task_id));
	pushJsonbValue(&state, WJB_END_ARRAY, NULL);
	return tq_json_end(&state);
}

/*
 * Cancels every unresolved task of a sealed group (doc/spec/taskcluster.md
 * 2.6).
 */
Jsonb *
tq_group_cancel(const TqSlug *slug, TimestampTz now)
{
	TqLockedTasks locked;
	TqGroup group;
	int n;
	int64 *ids;

	tq_group_get_to("cancel-task-group", slug, &group);
	if (group.sealed == 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task group \"%s\" is not sealed",
					tq_slug_text(&group.task_group_id)),
			 errdetail(
				 "Only a sealed group can be canceled, because new tasks could join it otherwise."),
			 errhint("Call tq.seal_task_group() first.")));
	tq_require_group("cancel-task-group", &group);
	ids = tq_group_unresolved(&group, &n);
	lock_unresolved(ids, n, now, &locked);
	(void) tq_transitions_end(&locked, TQ_EVENT_CANCEL, TQ_TIMER_NONE, now);
	return cancel_json(&group, tq_group_size(&group), locked.tasks, locked.n);
}
