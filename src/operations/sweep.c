/*
 * sweep.c
 *	  Deletes resolved tasks that are no longer needed: by retention, or by a
 *	  purge (doc/spec/taskcluster.md 8.4).
 *
 * There is no index on the end of tasks, which each resolution would have to
 * write.  A sweep reads tasks in order of their ids, hence nearly of their
 * creation, some thousand index entries at a time, and looks up the last run of
 * those that may go.
 *
 * A task goes only if no unresolved task depends on it, and its group has no
 * unresolved task.  That is checked twice: first without locks, so that a pass
 * writes nothing for nearly all tasks that stay; then for the tasks whose current
 * rows were locked, with a newer snapshot.  The lock excludes a rerun.  It also
 * excludes a new dependent: that locks the required task in share mode, unless
 * it was completed so recently that no retention can be over (dependency.c).  A
 * foreign dependent locks nothing, and keeps no task (foreign_dependency.c).
 * Nothing waits: tasks that another session has locked are left to the next
 * pass.  A task that joins the group in the same moment comes after the sweep.
 * Tasks of the batch itself are no reason to keep a group: they are resolved, or
 * the lock finds that they are to be run again, and the second check sees them.
 *
 * A batch keeps its scans open, and goes once through each index by which tasks
 * are found (tq_scan_next_of()); only groups are looked up one by one.  That, and
 * the deletion without a statement (task_table.c), took a task of bench retention
 * from 223 K to 43 K instructions.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "../core/state.h"
#include "operations.h"

/* Index entries that a batch reads, those of deleted tasks included. */
#define READ_ENTRIES 5000

#define BATCH_DELETES 1000 /* tasks that a purge deletes by a statement */

static int64 *
ids_of(const TqTask *tasks, int n)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));

	for (int i = 0; i < n; i++)
		ids[i] = tasks[i].id;
	return ids;
}

/* ---- which tasks ---- */

/* Returns the rule for the tasks whose retention is over. */
TqSweepRule
tq_sweep_by_retention(TimestampTz now)
{
	TqRetention otherwise = tq_queue_settings_shortest(
		tq_retention_of(&tq_policy_plain, 0));
	int64 shortest = Min(otherwise.completed, otherwise.failed);
	int n;
	int32 *policies = tq_policies_that_retain(&n);

	for (int i = 0; i < n; i++)
	{
		TqRetention kept = tq_policy_retention(tq_policy_get(policies[i]),
											   otherwise);

		shortest = Min(shortest, Min(kept.completed, kept.failed));
	}
	return (TqSweepRule){.by_retention = true,
						 .shortest_ms = shortest,
						 .ended = tq_retention_published_before(now)};
}

/* Returns whether a task is old enough to be deleted by retention. */
static bool
sweep_is_old(const TqSweepRule *rule, const TqTask *task, TimestampTz now)
{
	return tq_clock_add_ms(task->created, rule->shortest_ms) <= now ||
		   task->created > tq_clock_add_ms(now, TQ_AHEAD_MS);
}

/* Returns whether a task may be deleted, whatever its last run is. */
static bool
may_go(const TqSweepRule *rule, const TqTask *task, TimestampTz now)
{
	if (!rule->by_retention)
		return task->queue == rule->queue;
	return !task->expires_given && sweep_is_old(rule, task, now);
}

/*
 * Returns whether a task with this last run is to be deleted.  By retention a
 * failure stays while others wait for a decision about it (serialOnFailure); of
 * two tasks of a key that meet in the same moment, the one that waits may come
 * after the sweep.
 */
static bool
must_go(const TqSweepRule *rule, const TqTask *task, const TqRun *run,
		TimestampTz now)
{
	TqRetention kept;

	if (!tq_state_is_resolved(run->state))
		return false;
	if (!rule->by_retention)
		return rule->of[run->state] && run->resolved <= rule->until;
	kept = tq_retention_of(tq_policy_get(task->policy), task->queue);
	return run->resolved < rule->ended &&
		   tq_clock_add_ms(run->resolved, run->state == TQ_STATE_COMPLETED
											  ? kept.completed
											  : kept.failed) <= now &&
		   !tq_gate_keeps_others(task);
}

/* ---- groups ---- */

/*
 * Groups for which the check took long.  A check reads all tasks of the group
 * until it finds an unresolved one; without these entries, each batch of a
 * large group would read it again.  The result is used for ten times as long as
 * the check took.
 */
typedef struct LargeGroup
{
	int64 id; /* 0: not used */
	bool is_active;
	TimestampTz until;
} LargeGroup;

#define LARGE_GROUPS 16
#define LARGE_US 10000 /* a check that takes longer is kept */
#define KEPT_RATIO 10

/* A group that has so many tasks outside of a batch is read by a statement. */
#define MANY_OTHERS 1000

static LargeGroup large_groups[LARGE_GROUPS];

/* Keeps the result of a check that took so long. */
static void
keep_large(int64 id, bool is_active, int64 us, TimestampTz now)
{
	static int next = 0;

	if (us < LARGE_US)
		return;
	large_groups[next] = (LargeGroup){id, is_active, now + us * KEPT_RATIO};
	next = (next + 1) % LARGE_GROUPS;
}

static const LargeGroup *
find_large(int64 id, TimestampTz now)
{
	for (int i = 0; i < LARGE_GROUPS; i++)
	{
		const LargeGroup *group = &large_groups[i];

		if (group->id == id && now < group->until)
			return group;
	}
	return NULL;
}

/* Tasks that are resolved, in order of id, and what is known of their groups. */
typedef struct Batch
{
	const int64 *ids;
	int n;
	HTAB *groups; /* BatchGroup */
	TimestampTz now;
} Batch;

/* A group of some tasks of a batch. */
typedef struct BatchGroup
{
	int64 id;
	bool is_active;
} BatchGroup;

/* Returns whether a group has an unresolved task. */
static bool
check_group(const Batch *batch, int64 id)
{
	const LargeGroup *kept = find_large(id, batch->now);
	TqGroup group = {.id = id};
	TqMember first = {.id = 0};
	TimestampTz began;
	int64 *others;
	bool is_active;
	int n;

	if (kept != NULL)
		return kept->is_active;
	if (!tq_group_read_slug(id, NULL, &group.task_group_id))
		return false; /* gone since its task was read: nothing else is in it */
	began = tq_clock_now();
	others = tq_group_others(&group, batch->ids, batch->n, MANY_OTHERS, &n);
	is_active = n == MANY_OTHERS ? tq_group_first_unresolved(&group, &first)
								 : n > 0 && !tq_tasks_are_resolved(others, n);
	pfree(others);
	keep_large(id, is_active, tq_clock_now() - began, batch->now);
	return is_active;
}

/* The same, from the batch if known; 0 is no group. */
static bool
is_active(const Batch *batch, int64 id)
{
	BatchGroup *group;
	bool found;

	if (id == 0)
		return false;
	group = hash_search(batch->groups, &id, HASH_ENTER, &found);
	if (!found)
		group->is_active = check_group(batch, id);
	return group->is_active;
}

/* The group that is named after a task, and has a row. */
typedef struct OwnGroup
{
	int64 task;
	int64 id;
} OwnGroup;

/*
 * Returns the groups that are named after those of these tasks which are in
 * them, in the order of the tasks.  The group named after a task has no other
 * task unless it has a row.
 */
static OwnGroup *
own_groups(const TqTask *tasks, int n, int *found)
{
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));
	OwnGroup *own;
	const TqGroup *groups;
	int nslugs = 0;

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].group_id == 0)
			slugs[nslugs++] = tasks[i].task_id;
	}
	groups = tq_groups_by_slug(slugs, nslugs, found);
	own = palloc(sizeof(OwnGroup) * Max(*found, 1));
	for (int i = 0; i < *found; i++, tasks++)
	{
		while (tq_slug_compare(&groups[i].task_group_id, &tasks->task_id) != 0)
			tasks++;
		own[i] = (OwnGroup){tasks->id, groups[i].id};
	}
	return own;
}

/* ---- a batch ---- */

/* Returns the group of a task; 0 if that has no other task. */
static int64
group_of(const TqTask *task, const OwnGroup *own, int nown)
{
	const OwnGroup *group = task->group_id != 0
								? NULL
								: bsearch(&task->id, own, nown,
										  sizeof(OwnGroup), tq_compare_ids);

	return group == NULL ? task->group_id : group->id;
}

/*
 * Removes tasks on which an unresolved task depends, and those in a group that
 * has one; returns how many are left.  All of them are resolved, so that only
 * other tasks of their groups are looked at.
 */
static int
remove_needed(TqTask *tasks, int n, const OwnGroup *own, int nown,
			  TimestampTz now)
{
	HASHCTL control = {.keysize = sizeof(int64),
					   .entrysize = sizeof(BatchGroup),
					   .hcxt = CurrentMemoryContext};
	HTAB *groups = hash_create("tq groups of a sweep", 64, &control,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	Batch batch = {ids_of(tasks, n), n, groups, now};
	int nneeded;
	const int64 *needed = tq_dependencies_needed(batch.ids, n, &nneeded);
	int left = 0;

	for (int i = 0; i < n; i++)
	{
		if (bsearch(&tasks[i].id, needed, nneeded, sizeof(int64),
					tq_compare_ids) == NULL &&
			!is_active(&batch, group_of(&tasks[i], own, nown)))
			tasks[left++] = tasks[i];
	}
	hash_destroy(groups);
	return left;
}

/* Removes tasks that do not go by this rule; returns how many are left. */
static int
keep_those_that_go(const TqSweepRule *rule, TqTask *tasks, int n,
				   TimestampTz now)
{
	TqRunReader *reader = tq_run_reader_begin(ids_of(tasks, n), n);
	int left = 0;

	for (int i = 0; i < n; i++)
	{
		TqRun run;

		if (may_go(rule, &tasks[i], now) &&
			tq_run_reader_last(reader, tasks[i].id, &run) &&
			must_go(rule, &tasks[i], &run, now))
			tasks[left++] = tasks[i];
	}
	tq_run_reader_end(reader);
	return left;
}

/* Messages about a task come no later than this after its last run: artifacts. */
#define MESSAGE_SLACK_MS (30 * 60 * 1000)

/*
 * Deletes these resolved tasks; returns how many.  The last run of each, which
 * this transaction has locked, is one of runs[], which are in the order of the
 * tasks.  With `departs`, what messages that are kept contain of the tasks is
 * kept for them (departed_table.c).
 */
int
tq_sweep_delete_locked(const TqTask *tasks, int n, const TqRun *runs,
					   bool departs, TimestampTz now)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	int64 *departing = palloc(sizeof(int64) * Max(n, 1));
	TimestampTz forgotten;
	int ndeparting = 0;

	if (n == 0)
		return 0;
	forgotten = departs ? tq_retention_forgotten_before(now) : DT_NOEND;
	for (int i = 0; i < n; i++)
	{
		TimestampTz last;

		while (runs->task != tasks[i].id)
			runs++;
		last = Max(Min(tasks[i].deadline, now), runs->resolved);
		tq_count_deleted(&tasks[i], runs);
		ids[i] = tasks[i].id;
		if (tq_clock_add_ms(last, MESSAGE_SLACK_MS) >= forgotten)
			departing[ndeparting++] = ids[i];
	}
	tq_departed_insert(departing, ndeparting, now);
	tq_artifacts_delete_of_tasks(ids, n);
	return tq_tasks_delete(ids, n);
}

/*
 * Locks the current rows of these tasks, except those that another session has
 * locked or that do not go any more; returns how many are left, and their runs.
 */
static int
lock_those_that_go(const TqSweepRule *rule, TqTask *tasks, int n, TqRun *runs,
				   TimestampTz now)
{
	const TqTask *task = tasks;
	int left = 0;

	n = tq_task_lock_resolved(ids_of(tasks, n), n, runs);
	for (int i = 0; i < n; i++)
	{
		while (task->id != runs[i].task)
			task++;
		if (!must_go(rule, task, &runs[i], now))
			continue;
		tasks[left] = *task;
		runs[left++] = runs[i];
	}
	return left;
}

/*
 * Deletes those of these tasks that are not needed; returns how many.  Changes
 * the array.
 */
int
tq_sweep_delete(const TqSweepRule *rule, TqTask *tasks, int n, TimestampTz now)
{
	TqRun *runs = palloc(sizeof(TqRun) * Max(n, 1));
	const OwnGroup *own;
	int nown;

	if (n == 0)
		return 0;
	own = own_groups(tasks, n, &nown);
	n = remove_needed(tasks, n, own, nown, now);
	n = lock_those_that_go(rule, tasks, n, runs, now);
	n = remove_needed(tasks, n, own, nown, now);
	return tq_sweep_delete_locked(tasks, n, runs, rule->departs, now);
}

/* The same for tasks of which only the ids are known. */
int
tq_sweep_delete_ids(const TqSweepRule *rule, const int64 *ids, int n,
					TimestampTz now)
{
	TqTask *tasks = tq_tasks_core(ids, n, &n);

	n = keep_those_that_go(rule, tasks, n, now);
	return tq_sweep_delete(rule, tasks, n, now);
}

/* Returns whether any of these tasks is old enough for a retention. */
static bool
has_old(const TqSweepRule *rule, const TqTask *tasks, int n, TimestampTz now)
{
	for (int i = 0; i < n; i++)
	{
		if (sweep_is_old(rule, &tasks[i], now))
			return true;
	}
	return false;
}

/*
 * Reads tasks behind the id *after, which is moved on, into going[], up to
 * `max` that go by the rule; returns how many.  Stops when there are more than
 * half as many, so that no task is read again for the next batch, and after
 * READ_ENTRIES index entries.  Clears *more at the end: there is no further
 * task, or by retention only young ones.
 */
static int
read_going(const TqSweepRule *rule, TqTask *going, int max, TimestampTz now,
		   int64 *after, bool *more)
{
	int n = 0;
	int entries = 0;
	bool has_read = false;
	bool is_any_old = !rule->by_retention;

	do
	{
		int found;
		TqTask *tasks = tq_tasks_after(after, max - n, &found, more);

		entries += max - n;
		has_read = has_read || found > 0;
		is_any_old = is_any_old || has_old(rule, tasks, found, now);
		found = keep_those_that_go(rule, tasks, found, now);
		memcpy(&going[n], tasks, sizeof(TqTask) * found);
		n += found;
		pfree(tasks);
	} while (*more && n <= max / 2 && entries < READ_ENTRIES);
	if (has_read && !is_any_old)
		*more = false;
	return n;
}

/*
 * Returns up to `max` tasks that go by the rule, if they are not needed, of the
 * next ones behind the id *after, which is moved on.  Clears *more at the end:
 * there is no further task, or by retention only young ones.
 */
TqTask *
tq_sweep_find(const TqSweepRule *rule, int max, TimestampTz now, int64 *after,
			  int *found, bool *more)
{
	int most = Min(max, READ_ENTRIES);
	TqTask *going = palloc(sizeof(TqTask) * most);

	*found = read_going(rule, going, most, now, after, more);
	return going;
}

/*
 * Deletes up to `max` of all tasks that go by the rule, in this transaction;
 * returns how many.
 */
int64
tq_sweep_all(const TqSweepRule *rule, int max, TimestampTz now)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
												  "tq sweep",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(scratch);
	int64 after = 0;
	int64 deleted = 0;
	bool more = true;
	TqTask *tasks;
	int n;

	while (more && deleted < max)
	{
		CHECK_FOR_INTERRUPTS();
		tasks = tq_sweep_find(rule, Min(max - deleted, BATCH_DELETES), now,
							  &after, &n, &more);
		deleted += tq_sweep_delete(rule, tasks, n, now);
		MemoryContextReset(scratch);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(scratch);
	return deleted;
}
