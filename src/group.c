/*
 * group.c
 *	  Task groups: joining, sealing, canceling, resolution
 *	  (doc/spec/taskcluster.md 2.6, 2.7, 4.5; doc/spec/policy.md 2).
 *
 * Room 4.  Decides which tasks may join a group and until when, what a
 * cancellation covers, and when a group is resolved.  store_group.c describes
 * the two races and the locks that close them.
 */
#include "rules.h"

#include "lib/qunique.h"
#include "utils/snapmgr.h"

static void
refuse_scheduler(const TqGroup *group, const char *scheduler_id)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_CONFLICT),
		 errmsg("task group \"%s\" has another schedulerId",
				tq_slug_text(&group->task_group_id)),
		 errdetail("The group has schedulerId \"%s\", the task \"%s\".",
				   group->scheduler_id,
				   scheduler_id),
		 errhint(
			 "Use the schedulerId of the group, or another taskGroupId.")));
}

/*
 * Raises an error unless the task has the schedulerId of the group and the
 * group is not sealed.
 */
static void
check_member(const TqGroup *group, const char *scheduler_id)
{
	if (strcmp(group->scheduler_id, scheduler_id) != 0)
		refuse_scheduler(group, scheduler_id);
	if (group->sealed != 0)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("task group \"%s\" is sealed",
						tq_slug_text(&group->task_group_id)),
				 errdetail("It was sealed at %s.",
						   tq_clock_text(group->sealed)),
				 errhint("Create the task in another group.")));
}

/*
 * Returns the row of a group in *group, and inserts it if there is none: for
 * the first task that joins, and for a seal.  The caller holds the lock of the
 * group.
 */
static void
materialize(const TqSlug *slug, const char *scheduler_id, TimestampTz expires,
			TqGroup *group)
{
	if (!tq_group_find(slug, group))
	{
		group->scheduler_id = pstrdup(scheduler_id);
		group->expires = tq_clock_add_ms(expires, TQ_HOUR_MS);
	}
	if (group->id != 0)
		return;
	/*
	 * A session that is creating the task that the group is named after waits
	 * for this row once it is there.  So wait for that session before.  A
	 * deadlock is then possible only in the moment between this wait and the
	 * insertion.
	 */
	(void) tq_task_wait_for_insert(slug);
	group->id = tq_group_insert(group);
	if (group->id != 0)
	{
		TqTask *named = tq_task_wait_for_insert(slug) ? tq_task_by_slug(slug)
													  : NULL;

		if (named != NULL && named->group_id == 0 &&
			strcmp(named->scheduler_id, group->scheduler_id) != 0)
			refuse_scheduler(group, named->scheduler_id);
	}
	else
		(void) tq_group_find(slug, group);
}

/*
 * Makes a task join its group, which is not named after it, and returns the id
 * of the group.  latest_expires is the latest expiry of the tasks of the same
 * call that join the group.
 *
 * A group that has expired may be being deleted concurrently.  Then prolonging
 * it, which waits for the deletion, finds no row, and the group is inserted
 * again.  The caller holds the lock of the group, or of all groups.
 */
int64
tq_group_join(const TqTask *task, TimestampTz latest_expires)
{
	TqGroup group;

	do
	{
		materialize(&task->group_slug,
					task->scheduler_id,
					task->expires,
					&group);
		check_member(&group, task->scheduler_id);
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
check_own(const TqTask *task)
{
	TqGroup group;

	if (!tq_group_find(&task->task_id, &group) || group.id == 0)
		return;
	check_member(&group, task->scheduler_id);
	if (task->expires > group.expires)
		tq_group_prolong(group.id, tq_clock_add_ms(task->expires, TQ_HOUR_MS));
}

/*
 * Checks these tasks, which have been inserted or existed already, against the
 * groups that are named after them.  Waits for sessions that are inserting the
 * rows of these groups.
 */
void
tq_groups_check_own(const TqTask *const *tasks, int n)
{
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));
	bool *exist = palloc(sizeof(bool) * Max(n, 1));

	if (n == 0)
		return;
	for (int i = 0; i < n; i++)
		slugs[i] = tasks[i]->task_id;
	tq_groups_wait_for_insert(slugs, n, exist);
	for (int i = 0; i < n; i++)
	{
		if (exist[i])
			check_own(tasks[i]);
	}
}

/* Returns a group, or raises TQ404. */
void
tq_group_get(const TqSlug *slug, TqGroup *group)
{
	if (!tq_group_find(slug, group))
		ereport(ERROR,
				(errcode(ERRCODE_TQ_NOT_FOUND),
				 errmsg("task group \"%s\" does not exist",
						tq_slug_text(slug)),
				 errdetail("No task of that group exists, or it has expired."),
				 errhint("A task group begins with its first task.")));
}

/*
 * Seals a group.  A sealed group keeps the time at which it was sealed; each
 * call appends the message again (doc/spec/taskcluster.md 2.7).  The clock is
 * read under the lock, so no task of the group was created later.
 */
void
tq_group_seal(const TqSlug *slug, TqGroup *group)
{
	TqMessage message = {.exchange = TQ_EXCHANGE_TASK_GROUP_SEALED,
						 .run_id = -1,
						 .last_run = -1};

	tq_group_lock_to_seal(slug);
	tq_group_get(slug, group);
	materialize(slug, group->scheduler_id, group->expires, group);
	if (group->sealed == 0)
	{
		/*
		 * A session that creates the task that the group is named after takes
		 * no lock: its task is admitted, or it sees the seal.
		 */
		(void) tq_task_wait_for_insert(slug);
		tq_group_set_sealed(group->id, tq_clock_now());
		(void) tq_task_wait_for_insert(slug);
	}
	(void) tq_group_find(slug, group);
	message.detail = tq_group_message_json(group);
	tq_publish(&message, 1);
}

/*
 * The unresolved tasks of a group that is being canceled, and those locked so
 * far.
 */
typedef struct Cancel
{
	TqTask *tasks;
	bool *is_done;
	int n;
	TqRun *runs;
	TqTask *locked;
	int nlocked;
} Cancel;

/*
 * Locks the tasks that can be canceled, in the order of locks that depend.c
 * gives.
 */
static void
lock_unresolved(Cancel *cancel, TimestampTz now, bool unscheduled_too)
{
	for (int i = 0; i < cancel->n; i++)
	{
		TqTask *task = &cancel->tasks[i];
		TqRun run;

		if (cancel->is_done[i] || !tq_run_peek(task->id, &run) ||
			(run.place == TQ_PLACE_UNSCHEDULED && !unscheduled_too))
			continue;
		cancel->is_done[i] = true;
		if (task->deadline <= now ||
			!tq_run_lock(task->id, TQ_LOCK_UPDATE, &run) ||
			tq_state_verdict(run.state, TQ_EVENT_CANCEL) != TQ_VERDICT_APPLY)
			continue;
		cancel->runs[cancel->nlocked] = run;
		cancel->locked[cancel->nlocked++] = *task;
	}
}

/*
 * Locks the rows of unscheduled that the end of these tasks may touch,
 * including their own.
 */
static void
lock_unscheduled_near(const int64 *ids, int n)
{
	int found;
	int64 *near = tq_edges_unscheduled(ids, n, &found);

	(void) tq_unscheduled_lock(near, found, &found);
}

static void
require_sealed(const TqGroup *group)
{
	if (group->sealed == 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task group \"%s\" is not sealed",
					tq_slug_text(&group->task_group_id)),
			 errdetail(
				 "Only a sealed group can be canceled, because new tasks could join it otherwise."),
			 errhint("Call tq.seal_task_group() first.")));
}

/*
 * Cancels every unresolved task of a sealed group (doc/spec/taskcluster.md
 * 2.6).
 */
Jsonb *
tq_group_cancel(const TqSlug *slug, TimestampTz now)
{
	Cancel cancel = {0};
	TqGroup group;
	int n;
	int64 *ids;

	tq_group_get(slug, &group);
	require_sealed(&group);
	ids = tq_group_unresolved(&group, &n);
	cancel.tasks = tq_tasks_by_id(ids, n, &cancel.n);
	cancel.is_done = palloc0(sizeof(bool) * Max(n, 1));
	cancel.runs = palloc(sizeof(TqRun) * Max(n, 1));
	cancel.locked = palloc(sizeof(TqTask) * Max(n, 1));
	lock_unresolved(&cancel, now, false);
	lock_unscheduled_near(ids, n);
	lock_unresolved(&cancel, now, true);
	tq_resolve_runs(cancel.runs,
					cancel.locked,
					cancel.nlocked,
					TQ_RESOLVED_CANCELED,
					now);
	return tq_group_cancel_json(&group,
								tq_group_size(&group),
								cancel.locked,
								cancel.nlocked);
}

/* ---- groups canceled by the failure of a task (doc/spec/policy.md 2) ---- */

/* Leaves out the tasks that were rerun after that time. */
static void
drop_rerun(TqHeld *held, TimestampTz canceled)
{
	int n = held->n;

	held->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (held->runs[i].created != TQ_CREATED_RERUN ||
			held->runs[i].scheduled <= canceled)
			tq_held_keep(held, i);
	}
}

/*
 * Cancels the unresolved ones of these tasks without waiting for any lock.
 * Tasks that another session has locked get a timer, and the maintenance
 * worker tries them again.  So there is no order of locks to keep, and no
 * deadlock, however many tasks there are and however many sessions report on
 * them.  A task that was rerun after the group was canceled is meant to run,
 * and is left alone.
 */
int64
tq_group_cancel_held(const int64 *tasks, int n, TimestampTz canceled,
					 TimestampTz now)
{
	TqHeld held;

	tq_hold_unresolved(tasks, n, &held);
	tq_resolve_drop_overdue(&held, now);
	drop_rerun(&held, canceled);
	tq_depend_drop_blocked(&held, NULL);
	for (int done = 0; done < held.nothers; done += TQ_TIMER_TASKS)
		tq_timer_insert(TQ_TIMER_CANCEL,
						tq_clock_add_ms(now, TQ_AGAIN_MS),
						held.others + done,
						Min(held.nothers - done, TQ_TIMER_TASKS));
	tq_resolve_runs(held.runs, held.tasks, held.n, TQ_RESOLVED_CANCELED, now);
	return held.n;
}

/*
 * Returns the slug of the group of a task that was loaded without its
 * group_slug.
 */
static TqSlug
slug_of_group(const TqTask *task)
{
	Snapshot snapshot;
	TqSlug slug;

	if (task->group_id == 0)
		return task->task_id;
	snapshot = RegisterSnapshot(tq_plan_snapshot());
	slug = tq_group_slug(task->group_id, snapshot);
	UnregisterSnapshot(snapshot);
	return slug;
}

static int
compare_slugs(const void *a, const void *b)
{
	return tq_slug_compare(a, b);
}

/*
 * Cancels the remaining tasks of the groups of these tasks, whether the groups
 * are sealed or not.  It covers the tasks that exist by now.
 */
void
tq_group_cancel_rest(const TqTask *tasks, int n, TimestampTz now)
{
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));

	for (int i = 0; i < n; i++)
		slugs[i] = slug_of_group(&tasks[i]);
	qsort(slugs, n, sizeof(TqSlug), compare_slugs);
	n = (int) qunique(slugs, n, sizeof(TqSlug), compare_slugs);
	for (int i = 0; i < n; i++)
	{
		TqGroup group;
		int64 *ids;
		int found;

		if (!tq_group_find(&slugs[i], &group))
			continue;
		ids = tq_group_unresolved(&group, &found);
		(void) tq_group_cancel_held(ids, found, DT_NOEND, now);
	}
}

/*
 * Returns how a group ended, by its first unsuccessful task, or NULL while it
 * has unresolved tasks.
 */
const char *
tq_group_outcome(const TqProgress *progress)
{
	if (progress->count[TQ_STATE_UNSCHEDULED] +
			progress->count[TQ_STATE_PENDING] +
			progress->count[TQ_STATE_RUNNING] + progress->delayed >
		0)
		return NULL;
	switch ((TqResolved) progress->first_reason)
	{
		case TQ_RESOLVED_NONE:
			return progress->forgiven > 0 ? "completed-with-errors"
										  : "completed";
		case TQ_RESOLVED_DEADLINE_EXCEEDED:
		case TQ_RESOLVED_CLAIM_EXPIRED:
		case TQ_RESOLVED_PENDING_TIMEOUT:
		case TQ_RESOLVED_RUN_TIMEOUT:
			return "timed-out";
		case TQ_RESOLVED_CANCELED:
		case TQ_RESOLVED_CANCELED_BY_WORKER:
			return "canceled";
		case TQ_RESOLVED_COMPLETED:
		case TQ_RESOLVED_SKIPPED:
		case TQ_RESOLVED_FAILED:
		case TQ_RESOLVED_FAILED_TERMINAL:
		case TQ_RESOLVED_SUPERSEDED:
		case TQ_RESOLVED_WORKER_SHUTDOWN:
		case TQ_RESOLVED_MALFORMED_PAYLOAD:
		case TQ_RESOLVED_RESOURCE_UNAVAILABLE:
		case TQ_RESOLVED_INTERNAL_ERROR:
		case TQ_RESOLVED_INTERMITTENT_TASK:
			return "failed";
	}
	return NULL;
}

/* ---- task-group-resolved ---- */

/*
 * An unresolved task of a group, found by the last check.  The next check
 * starts there, so that it need not walk over a large group from its beginning
 * at every resolution.
 */
typedef struct Witness
{
	TqSlug task_group_id;
	TqSlug active;
} Witness;

#define WITNESSES_MAX 10000

static HTAB *witnesses = NULL;

/*
 * Returns the cached witness of a group, whose task is all zeros if the group
 * is new in the cache.  The cache is dropped when it gets too large.
 */
static Witness *
find_witness(const TqSlug *slug)
{
	HASHCTL control = {.keysize = sizeof(TqSlug),
					   .entrysize = sizeof(Witness)};
	Witness *witness;
	bool found;

	if (witnesses != NULL && hash_get_num_entries(witnesses) > WITNESSES_MAX)
	{
		hash_destroy(witnesses);
		witnesses = NULL;
	}
	if (witnesses == NULL)
		witnesses =
			hash_create("tq witnesses", 256, &control, HASH_ELEM | HASH_BLOBS);
	witness = hash_search(witnesses, slug, HASH_ENTER, &found);
	if (!found)
		memset(&witness->active, 0, sizeof(TqSlug));
	return witness;
}

/*
 * Returns whether every task of the group has been resolved at least once
 * (doc/spec/taskcluster.md 4.5).  Looks from the last witness on, and if there
 * is no unresolved task, again from the beginning, because tasks with lower
 * ids may have been added.
 */
static bool
is_resolved(const TqGroup *group)
{
	static const TqSlug lowest = {{0}};
	Witness *witness = find_witness(&group->task_group_id);
	TqSlug active;

	if (tq_group_first_active(group, &witness->active, &active) ||
		(tq_slug_compare(&witness->active, &lowest) != 0 &&
		 tq_group_first_active(group, &lowest, &active)))
	{
		witness->active = active;
		return false;
	}
	hash_search(witnesses, &group->task_group_id, HASH_REMOVE, NULL);
	return true;
}

static TqMessage
resolved_message(int64 task)
{
	return (TqMessage){.exchange = TQ_EXCHANGE_TASK_GROUP_RESOLVED,
					   .task = task,
					   .run_id = -1,
					   .last_run = -1};
}

/*
 * Appends task-group-resolved for a group with a row.  The row may change
 * later, so the message is built now.
 */
static void
tell_stored(const TqGroup *group)
{
	TqMessage message = resolved_message(0);

	message.detail = tq_group_message_json(group);
	tq_publish(&message, 1);
}

static int
compare_member(const void *a, const void *b)
{
	return tq_slug_compare(&((const TqTask *) a)->group_slug,
						   &((const TqTask *) b)->group_slug);
}

static int
compare_groups(const void *a, const void *b)
{
	return tq_slug_compare(&((const TqGroup *) a)->task_group_id,
						   &((const TqGroup *) b)->task_group_id);
}

/*
 * Appends task-group-resolved for those groups of these tasks in which every
 * task has been resolved.  The transactions that resolved the tasks have
 * committed.  The last two tasks of a group cannot both be missed, because the
 * check for the one that is published later sees both commits.
 */
void
tq_group_tell_resolved(const int64 *tasks, int n)
{
	TqTask *members = tq_tasks_by_id(tasks, n, &n);
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));
	TqMessage *messages = palloc(sizeof(TqMessage) * Max(n, 1));
	TqGroup *groups;
	int count = 0;
	int ngroups = 0;

	qsort(members, n, sizeof(TqTask), compare_member);
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || compare_member(&members[i - 1], &members[i]) != 0)
			slugs[ngroups++] = members[i].group_slug;
	}
	groups = tq_groups_by_slug(slugs, ngroups, &ngroups);
	for (int i = 0; i < n; i++)
	{
		TqGroup key = {.task_group_id = members[i].group_slug};
		TqGroup *group;

		if (i > 0 && compare_member(&members[i - 1], &members[i]) == 0)
			continue;
		group =
			bsearch(&key, groups, ngroups, sizeof(TqGroup), compare_groups);
		if (group == NULL)
			messages[count++] = resolved_message(members[i].id);
		else if (is_resolved(group))
			tell_stored(group);
	}
	tq_publish(messages, count);
}
