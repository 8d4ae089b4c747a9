/*
 * repair.c
 *	  Runs tasks again, with what depends on them (doc/spec/taskcluster.md 2.4,
 *	  2.20).
 *
 * A repair begins at tasks that get another run: the one of rerun_task(), or
 * those of a group that ended without success.  With `downstream`, what depends
 * on them and is resolved becomes unscheduled again, and what depends on that
 * in turn; in a repair of a group, completed tasks stay.  Such a task keeps its
 * runs: its row in unscheduled has the number of the next one, and counts
 * dependencies on tasks of the repair, and those that were never met.  from_run
 * of the former is raised, so that earlier runs do not meet them.  A dependent
 * that is unscheduled already counts those again that had been met.
 *
 * Order of locks -------------- Unique keys, by queue and key; then, in the
 * order of task_location.c, the rows with the locations of the tasks of the repair,
 * and of the unresolved or unsuccessful tasks that they require.  All of these
 * are looked up before; when they are locked, they are looked up again, and
 * what is new is locked as well. Only there the order is not kept, and the
 * server may have to end a deadlock: a dependent must have ended, or another
 * repair have been committed, within the milliseconds between.
 *
 * Why no two sessions miss each other:
 *	- A dependency that is counted as unmet is that on a task whose row this call
 *	  has locked.  A session that ends that task holds the same lock, and looks
 *	  for dependents afterwards, with a new snapshot.  So it sees the row in
 *	  unscheduled, or this call sees the end.
 *	- A dependent that is pending or running is not locked, and left alone.  One
 *	  that ends while this call waits is found when it looks again, locked, and
 *	  waits again; one that ends later has ended after the repair.
 *	- A session that creates a dependent of a task of the repair locks the row of
 *	  that task, shared.  Either it waits, and finds the task unscheduled or
 *	  pending; or it has counted the dependency as unmet from the next run on,
 *	  which is the run that the repair adds.  A task that was completed just now
 *	  it does not lock, and counts as met: that dependent was created before the
 *	  repair.
 *	- What a member of the repair requires by a foreign dependency is not locked
 *	  (lifecycle/foreign_dependency.c).  The row of the dependency is, and says
 *	  whether it is settled; if not, it is counted as unmet, and a timer leaves
 *	  the rest to maintenance.
 *	- Two repairs with a task in common meet at its lock.  The second finds it
 *	  unscheduled or pending.  It leaves a pending one alone, and has an
 *	  unscheduled one wait for its own tasks, too.
 *	- A claim takes only rows of pending; a run that the repair has added is
 *	  there when the repair commits, and not before.
 */
#include "postgres.h"

#include "lib/qunique.h"

#include "../core/state.h"
#include "operations.h"

/* What a repair does with a task. */
typedef enum RepairFate
{
	FATE_NONE,  /* nothing */
	FATE_RERUN, /* it gets another run */
	FATE_WAIT,  /* it becomes unscheduled again */
	FATE_STAYS  /* it is unresolved; its dependents wait for it */
} RepairFate;

/* A task that the repair may change. */
typedef struct Member
{
	int64 id;
	bool is_start;
	bool is_foreign; /* the caller may not rerun it */
	RepairFate fate;
	TqTask task;
	TqRun last;
	int64 *unmet; /* of one that waits: the tasks that it requires */
	int nunmet;
	const char *why_no_key; /* in a plan: NULL if it gets its unique key */
} Member;

/* The unique key of a member. */
typedef struct RepairKey
{
	TqUniqueKey key;
	int64 member;
	bool is_held; /* another task holds it */
} RepairKey;

typedef struct Repair
{
	const TqRepairHow *how;
	TimestampTz now;
	TimestampTz deadline; /* 0: deadlines stay */
	bool is_group;        /* retry_task_group(), not rerun_task() */
	TqSlug group;         /* of retry_task_group(), also the next */
	int64 group_id;
	const TqResolved *reasons;
	int nreasons;
	int64 *starts; /* by id */
	int nstarts;
	Member *members; /* by id */
	int n;
	TqDependency *edges; /* by dependent and required task */
	int nedges;
	int64 *locked; /* by id */
	int nlocked;
	RepairKey *keys; /* locked; by queue and key */
	int nkeys;
	TqDependency *raised; /* dependencies that are unmet again */
	int nraised;
} Repair;

static bool
repair_is_unsuccessful(const TqRun *run)
{
	return run->state == TQ_STATE_FAILED || run->state == TQ_STATE_EXCEPTION;
}

static bool
has_id(const int64 *ids, int n, int64 id)
{
	return bsearch(&id, ids, n, sizeof(int64), tq_compare_ids) != NULL;
}

static int
repair_sort_ids(int64 *ids, int n)
{
	qsort(ids, n, sizeof(int64), tq_compare_ids);
	return (int) qunique(ids, n, sizeof(int64), tq_compare_ids);
}

static int
compare_members(const void *a, const void *b)
{
	return tq_compare_ids(&((const Member *) a)->id,
						  &((const Member *) b)->id);
}

static Member *
find_member(const Repair *repair, int64 id)
{
	Member key = {.id = id};

	return bsearch(&key, repair->members, repair->n, sizeof(Member),
				   compare_members);
}

/* ---- collect and lock ---- */

/* Returns whether a task is in the group that is repaired. */
static bool
is_in_group(const Repair *repair, const TqTask *task)
{
	if (!repair->is_group)
		return false;
	return task->group_id == 0
			   ? tq_slug_compare(&task->task_id, &repair->group) == 0
			   : task->group_id == repair->group_id;
}

/*
 * Finds the members that the repair leaves alone because the caller may not
 * rerun them.  Those at which it begins, and those of its group, it may.
 */
static void
find_foreign(const Repair *repair)
{
	int64 *ids = palloc(sizeof(int64) * Max(repair->n, 1));
	TqNamedTask *named;
	int n = 0;

	for (int i = 0; i < repair->n; i++)
	{
		const Member *member = &repair->members[i];

		if (!member->is_start && !is_in_group(repair, &member->task))
			ids[n++] = member->id;
	}
	named = tq_tasks_by_id(ids, n, &n);
	for (int i = 0; i < n; i++)
		find_member(repair, named[i].task.id)->is_foreign =
			!tq_may_change("rerun-task", &named[i]);
}

/* Reads these tasks, as they are now, as members of the repair. */
static void
read_members(Repair *repair, const int64 *ids, int n)
{
	TqTask *tasks = tq_tasks_core(ids, n, &n);
	int64 *found = palloc_extended(sizeof(int64) * Max(n, 1), MCXT_ALLOC_HUGE);
	TqRun *runs = palloc_extended(sizeof(TqRun) * Max(n, 1), MCXT_ALLOC_HUGE);
	bool *has_run = palloc(sizeof(bool) * Max(n, 1));

	repair->members = palloc_extended(sizeof(Member) * Max(n, 1),
									  MCXT_ALLOC_HUGE);
	repair->n = 0;
	for (int i = 0; i < n; i++)
		found[i] = tasks[i].id;
	tq_runs_peek(found, n, runs, has_run);
	for (int i = 0; i < n; i++)
	{
		bool is_start = has_id(repair->starts, repair->nstarts, found[i]);

		if (has_run[i])
			repair->members[repair->n++] = (Member){.id = found[i],
													.task = tasks[i],
													.last = runs[i],
													.is_start = is_start};
	}
}

/*
 * Looks up the tasks of the repair, as they are now, and their dependencies, as
 * far as they matter.
 */
static void
repair_collect(Repair *repair)
{
	int n = repair->nstarts;
	int64 *ids = repair->starts;

	if (repair->how->downstream)
		ids = tq_dependencies_downstream(repair->starts, n, !repair->is_group,
										 &n);
	read_members(repair, ids, n);
	if (!tq_access_is_unlimited())
		find_foreign(repair);
	repair->edges = NULL;
	repair->nedges = 0;
	if (repair->how->downstream || repair->is_group)
		repair->edges = tq_dependencies_of(ids, n, &repair->nedges);
}

/* Returns whether a member is pending or running. */
static bool
is_under_way(const Member *member)
{
	return member->last.state == TQ_STATE_PENDING ||
		   member->last.state == TQ_STATE_RUNNING;
}

/* Returns whether the repair leaves a member alone, whatever it depends on. */
static bool
is_left(const Member *member)
{
	return member->is_foreign || (is_under_way(member) && !member->is_start);
}

/*
 * Returns the tasks to be locked, by id: those of the repair, and those that
 * they require, unless completed.  A task that is left alone is locked only if
 * one that is not requires it, and not by a foreign dependency.
 */
static int64 *
find_locks(const Repair *repair, int *n)
{
	int64 *ids = palloc_extended(sizeof(int64) *
									 (repair->n + repair->nedges + 1),
								 MCXT_ALLOC_HUGE);

	*n = 0;
	for (int i = 0; i < repair->n; i++)
	{
		if (!is_left(&repair->members[i]))
			ids[(*n)++] = repair->members[i].id;
	}
	for (int i = 0; i < repair->nedges; i++)
	{
		const TqDependency *edge = &repair->edges[i];
		const Member *dependent = find_member(repair, edge->dependent);

		if (!edge->is_foreign && dependent != NULL && !is_left(dependent))
			ids[(*n)++] = edge->required;
	}
	*n = repair_sort_ids(ids, *n);
	return ids;
}

/* Locks those of these tasks that are not locked yet. */
static void
lock_more(Repair *repair, const int64 *ids, int n)
{
	int64 *members = palloc(sizeof(int64) * n);
	int64 *others = palloc(sizeof(int64) * n);
	int nmembers = 0;
	int nothers = 0;

	for (int i = 0; i < n; i++)
	{
		Member *member = find_member(repair, ids[i]);
		TqRun run;

		if (has_id(repair->locked, repair->nlocked, ids[i]))
			continue;
		if (member == NULL && tq_run_peek(ids[i], &run) &&
			(run.state == TQ_STATE_COMPLETED))
			others[nothers++] = ids[i];
		else
			members[nmembers++] = ids[i];
	}
	(void) tq_task_lock_wait(members, nmembers, TQ_LOCK_UPDATE, NULL, false);
	repair->locked = repair->locked == NULL
						 ? palloc(sizeof(int64) * (n + 1))
						 : repalloc_huge(repair->locked,
										 sizeof(int64) *
											 (repair->nlocked + n + 1));
	memcpy(repair->locked + repair->nlocked, members,
		   sizeof(int64) * nmembers);
	repair->nlocked += nmembers;
	memcpy(repair->locked + repair->nlocked, others, sizeof(int64) * nothers);
	repair->nlocked = repair_sort_ids(repair->locked,
									  repair->nlocked + nothers);
}

/* Returns whether all of these tasks are locked. */
static bool
are_locked(const Repair *repair, const int64 *ids, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (!has_id(repair->locked, repair->nlocked, ids[i]))
			return false;
	}
	return true;
}

/*
 * Locks the foreign dependencies, and reads all again.  What a foreign member
 * requires is not locked.
 */
static void
lock_foreign(Repair *repair)
{
	TqDependency *edges = palloc(sizeof(TqDependency) *
								 Max(repair->nedges, 1));
	int n = 0;

	for (int i = 0; i < repair->nedges; i++)
	{
		const Member *dependent = find_member(repair,
											  repair->edges[i].dependent);

		if (repair->edges[i].is_foreign && dependent != NULL &&
			!is_left(dependent))
			edges[n++] = repair->edges[i];
	}
	if (n == 0)
		return;
	tq_foreign_lock(edges, n);
	repair_collect(repair);
}

/* ---- unique keys ---- */

static int
repair_compare_keys(const void *a, const void *b)
{
	const RepairKey *x = a;
	const RepairKey *y = b;
	int order;

	if (x->key.queue != y->key.queue)
		return x->key.queue < y->key.queue ? -1 : 1;
	order = strcmp(x->key.key, y->key.key);
	return order != 0 ? order : tq_compare_ids(&x->member, &y->member);
}

/*
 * Returns whether the repair may make a member that it has not locked yet
 * pending or unscheduled again.
 */
static bool
may_run_again(const Repair *repair, const Member *member)
{
	if (member->is_foreign)
		return false;
	if (member->last.state == TQ_STATE_UNSCHEDULED)
		return member->is_start && !repair->is_group;
	return tq_state_is_resolved(member->last.state);
}

/* Finds the unique keys of the members that may run again. */
static void
find_keys(Repair *repair)
{
	repair->keys = palloc(sizeof(RepairKey) * Max(repair->n, 1));
	repair->nkeys = 0;
	for (int i = 0; i < repair->n; i++)
	{
		const Member *member = &repair->members[i];
		char *texts[TQ_KEYS];

		if (!may_run_again(repair, member) ||
			!tq_policy_has_key(tq_policy_get(member->task.policy),
							   TQ_KEY_UNIQUE))
			continue;
		tq_task_keys_read(member->id, texts);
		if (texts[TQ_KEY_UNIQUE] != NULL)
			repair->keys[repair->nkeys++] =
				(RepairKey){.key = tq_unique_key_of(&member->task,
													texts[TQ_KEY_UNIQUE]),
							.member = member->id};
	}
	qsort(repair->keys, repair->nkeys, sizeof(RepairKey), repair_compare_keys);
}

/* Locks these keys, before their members. */
static void
lock_keys(Repair *repair)
{
	find_keys(repair);
	for (int i = 0; i < repair->nkeys; i++)
	{
		RepairKey *key = &repair->keys[i];
		const Member *member = find_member(repair, key->member);

		key->is_held = tq_unique_rerun(&member->task, TQ_LOCK_UPDATE,
									   repair->now,
									   &key->key) == TQ_RERUN_HELD;
	}
}

/* Returns the member with a key, if it is changed, so that it takes the key. */
static Member *
member_to_take(const Repair *repair, const RepairKey *key)
{
	Member *member = find_member(repair, key->member);

	return member != NULL &&
				   (member->fate == FATE_RERUN || member->fate == FATE_WAIT)
			   ? member
			   : NULL;
}

/* Returns whether two entries have the same key, which may be gone. */
static bool
is_same_key(const RepairKey *before, const RepairKey *key)
{
	return before != NULL && before->key.key != NULL && key->key.key != NULL &&
		   before->key.queue == key->key.queue &&
		   strcmp(before->key.key, key->key.key) == 0;
}

/*
 * Gives the members that are changed their unique keys; raises TQ409 if another
 * task holds one, or two of them have the same.
 */
static void
take_keys(const Repair *repair)
{
	const RepairKey *before = NULL;

	for (int i = 0; i < repair->nkeys; i++)
	{
		RepairKey *key = &repair->keys[i];
		const Member *member = member_to_take(repair, key);

		if (member == NULL)
			continue;
		if (is_same_key(before, key))
			tq_unique_error_rerun(&member->task, before->member);
		if (key->is_held)
			tq_unique_error_rerun(&member->task, key->key.task);
		tq_unique_take(&member->task, &key->key);
		before = key;
	}
}

/* Notes for which members take_keys() would raise an error; locks nothing. */
static void
look_at_keys(Repair *repair)
{
	const RepairKey *before = NULL;

	find_keys(repair);
	for (int i = 0; i < repair->nkeys; i++)
	{
		const RepairKey *key = &repair->keys[i];
		Member *member = member_to_take(repair, key);

		if (member == NULL)
			continue;
		if (is_same_key(before, key))
			member->why_no_key = "another task of the call has its unique key";
		else if (tq_unique_is_held(&member->task, &key->key, repair->now))
			member->why_no_key = "another task holds its unique key";
		before = key;
	}
}

/* ---- decide ---- */

/* Returns whether a task of a group ended for one of the reasons. */
static bool
repair_is_wanted(const Repair *repair, const Member *member)
{
	if (!repair->is_group)
		return true;
	if (!repair_is_unsuccessful(&member->last))
		return false;
	for (int i = 0; i < repair->nreasons; i++)
	{
		if (member->last.reason == repair->reasons[i])
			return true;
	}
	return false;
}

/*
 * Returns whether the runs that a required task has had meet a dependency,
 * which then stays met.
 */
static bool
was_met(const TqDependency *edge, bool all_resolved)
{
	int n;
	int found;
	TqTask *required = tq_tasks_core(&edge->required, 1, &found);
	TqHistoryRun *runs;

	if (found == 0)
		return true;
	runs = tq_runs_history(&edge->required, 1, false, &n);
	for (int i = 0; i < n; i++)
	{
		const TqRun *run = &runs[i].run;
		bool is_final = tq_state_is_resolved(run->state) &&
						(i + 1 == n ||
						 !tq_created_is_retry(runs[i + 1].run.created));

		if (is_final && run->run_id >= edge->from_run &&
			(all_resolved || tq_dependency_counts(run, required->policy)))
			return true;
	}
	return false;
}

/* Returns whether a member waits for another task of the repair. */
static bool
is_reached(const Repair *repair, const TqDependency *edges, int n)
{
	for (int i = 0; i < n; i++)
	{
		const Member *required = find_member(repair, edges[i].required);

		if (required != NULL && required->id != edges[i].dependent &&
			required->fate != FATE_NONE)
			return true;
	}
	return false;
}

/* Returns the first dependency of a member, and how many it has. */
static TqDependency *
edges_of(const Repair *repair, int64 id, int *n)
{
	int low = 0;
	int high = repair->nedges;

	while (low < high)
	{
		int middle = (low + high) / 2;

		if (repair->edges[middle].dependent < id)
			low = middle + 1;
		else
			high = middle;
	}
	*n = 0;
	while (low + *n < repair->nedges &&
		   repair->edges[low + *n].dependent == id)
		(*n)++;
	return repair->edges + low;
}

/* Returns what becomes of a task that depends on one of the repair. */
static RepairFate
fate_of_dependent(const Repair *repair, const Member *member)
{
	switch (member->last.state)
	{
		case TQ_STATE_UNSCHEDULED:
			return FATE_STAYS;
		case TQ_STATE_PENDING:
		case TQ_STATE_RUNNING:
			return FATE_NONE;
		case TQ_STATE_COMPLETED:
			return repair->is_group ? FATE_NONE : FATE_WAIT;
		case TQ_STATE_FAILED:
		case TQ_STATE_EXCEPTION:
			break;
	}
	return FATE_WAIT;
}

static int
compare_required(const void *a, const void *b)
{
	return tq_compare_ids(&((const TqDependency *) a)->required,
						  &((const TqDependency *) b)->required);
}

/* Returns the first of these dependencies, by required task, on that task. */
static const TqDependency *
first_on(const TqDependency *edges, int n, int64 required)
{
	int low = 0;

	while (low < n)
	{
		int middle = (low + n) / 2;

		if (edges[middle].required < required)
			low = middle + 1;
		else
			n = middle;
	}
	return edges + low;
}

/*
 * Marks what depends on the members that are marked: each is looked at once,
 * whether its dependents were created before it or after it.
 */
static void
mark_dependents(const Repair *repair, Member **marked, int n)
{
	size_t size = sizeof(TqDependency) * Max(repair->nedges, 1);
	TqDependency *edges = palloc_extended(size, MCXT_ALLOC_HUGE);
	const TqDependency *end = edges + repair->nedges;

	memcpy(edges, repair->edges, sizeof(TqDependency) * repair->nedges);
	qsort(edges, repair->nedges, sizeof(TqDependency), compare_required);
	for (int i = 0; i < n; i++)
	{
		int64 id = marked[i]->id;

		for (const TqDependency *edge = first_on(edges, repair->nedges, id);
			 edge < end && edge->required == id; edge++)
		{
			Member *member = find_member(repair, edge->dependent);

			if (member == NULL || member->is_foreign ||
				member->fate != FATE_NONE)
				continue;
			member->fate = fate_of_dependent(repair, member);
			if (member->fate != FATE_NONE)
				marked[n++] = member;
		}
	}
	pfree(edges);
}

/*
 * Finds the tasks of the repair: those at which it begins, and with
 * `downstream` what depends on a task of the repair.
 */
static void
mark(const Repair *repair)
{
	Member **marked = palloc(sizeof(Member *) * Max(repair->n, 1));
	int n = 0;

	for (int i = 0; i < repair->n; i++)
	{
		Member *member = &repair->members[i];

		if (!member->is_start || !repair_is_wanted(repair, member))
			continue;
		member->fate = tq_state_verdict(member->last.state, TQ_EVENT_RERUN) ==
							   TQ_VERDICT_APPLY
						   ? FATE_RERUN
						   : FATE_STAYS;
		marked[n++] = member;
	}
	if (repair->how->downstream)
		mark_dependents(repair, marked, n);
}

/* Returns whether a member depends on a task of the repair, and is left alone. */
static bool
is_left_dependent(const Repair *repair, const Member *member)
{
	int n;
	const TqDependency *edges = edges_of(repair, member->id, &n);

	return member->fate == FATE_NONE && is_reached(repair, edges, n);
}

static void
report_count(int count, const char *detail)
{
	if (count > 0)
		ereport(NOTICE,
				(errmsg_plural("%d dependent task was left as it is",
							   "%d dependent tasks were left as they are",
							   count, count),
				 errdetail("%s", detail)));
}

/*
 * Reports how many dependents were left as they are, because the caller may not
 * rerun them, or they run already.  A task on which another application lets
 * its own depend can be repaired as if there were none.
 */
static void
report_left(const Repair *repair)
{
	int foreign = 0;
	int under_way = 0;

	for (int i = 0; i < repair->n; i++)
	{
		const Member *member = &repair->members[i];

		if (!is_left_dependent(repair, member))
			continue;
		if (!member->is_foreign)
			under_way += is_under_way(member) && !repair->is_group;
		else
			foreign += fate_of_dependent(repair, member) == FATE_WAIT;
	}
	report_count(foreign,
				 foreign == 1
					 ? "The caller may not rerun it (queue:rerun-task)."
					 : "The caller may not rerun them (queue:rerun-task).");
	report_count(under_way, under_way == 1
								? "It is pending or running already."
								: "They are pending or running already.");
}

/* Has a dependency wait for the next run of a task of the repair, if there is one. */
static void
raise_edge(Repair *repair, const TqDependency *edge, const Member *required)
{
	TqDependency *raised = &repair->raised[repair->nraised++];

	*raised = *edge;
	raised->from_run = is_under_way(required) ? required->last.run_id
											  : required->last.run_id + 1;
}

/*
 * Finds the dependencies of an unscheduled dependent on tasks of the repair that
 * had been met, and are unmet again.
 */
static void
find_met(Repair *repair, Member *member)
{
	int n;
	const TqDependency *edges = edges_of(repair, member->id, &n);

	member->unmet = palloc(sizeof(int64) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		const TqDependency *edge = &edges[i];
		const Member *required = find_member(repair, edge->required);

		if (required == NULL || required == member ||
			required->fate == FATE_NONE ||
			required->last.run_id < edge->from_run ||
			!(edge->is_foreign ? edge->is_settled
							   : was_met(edge, member->task.all_resolved)))
			continue;
		member->unmet[member->nunmet++] = edge->required;
		raise_edge(repair, edge, required);
	}
}

/*
 * Finds the dependencies that a member waits for: those on tasks of the repair,
 * which are unmet again, and those that no run has met.  A dependency on the
 * task itself is waived if the task has been pending.
 */
static void
find_unmet(Repair *repair, Member *member)
{
	int n;
	TqDependency *edges = edges_of(repair, member->id, &n);

	member->unmet = palloc(sizeof(int64) * Max(n, 1));
	member->nunmet = 0;
	for (int i = 0; i < n; i++)
	{
		const Member *required = find_member(repair, edges[i].required);
		bool is_own = edges[i].required == member->id;
		bool is_again = !is_own && required != NULL &&
						required->fate != FATE_NONE;

		if (is_own &&
			!tq_transition_never_pending(member->id, member->last.run_id + 1))
			continue;
		if (!is_again && !is_own &&
			(edges[i].is_foreign
				 ? edges[i].is_settled
				 : was_met(&edges[i], member->task.all_resolved)))
			continue;
		member->unmet[member->nunmet++] = edges[i].required;
		if (is_again)
			raise_edge(repair, &edges[i], required);
	}
}

/*
 * Decides which members wait.  Of a group, also those that were to be rerun but
 * have unmet dependencies; without `downstream` they are left out.
 */
static void
decide_waits(Repair *repair)
{
	repair->raised = palloc(sizeof(TqDependency) * Max(repair->nedges, 1));
	for (int i = 0; i < repair->n; i++)
	{
		Member *member = &repair->members[i];
		int nraised = repair->nraised;

		CHECK_FOR_INTERRUPTS();
		tq_show_done("looked at", i, repair->n);
		if (member->fate == FATE_STAYS && !member->is_start)
			find_met(repair, member);
		if (member->fate != FATE_WAIT &&
			!(member->fate == FATE_RERUN && repair->is_group))
			continue;
		find_unmet(repair, member);
		member->fate = member->nunmet > 0 ? FATE_WAIT : FATE_RERUN;
		if (member->fate != FATE_WAIT || repair->how->downstream)
			continue;
		member->fate = FATE_NONE;
		repair->nraised = nraised;
	}
}

/* ---- check ---- */

/* Raises an error if a member that is to be changed cannot be. */
static void
repair_check_member(const Repair *repair, const Member *member)
{
	bool is_late = repair->deadline == 0 &&
				   member->task.deadline < repair->now;

	if (is_late && !repair->is_group)
		tq_error_past_deadline(&member->task);
	if (is_late)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("task \"%s\" is past its deadline",
						tq_slug_text(&member->task.task_id)),
				 errdetail("Its deadline was %s.",
						   tq_clock_text(member->task.deadline)),
				 errhint(
					 "Give a new deadline, such as deadline => '1 day'.")));
	if (member->fate == FATE_STAYS)
		return;
	if (member->last.state == TQ_STATE_COMPLETED)
		tq_task_check_payload(&member->task);
	tq_task_check_runs(&member->task, &member->last);
}

/*
 * Returns whether a member gets the new deadline.  That of one that only waits
 * as before is never moved back.
 */
static bool
gets_deadline(const Repair *repair, const Member *member)
{
	return member->fate != FATE_NONE &&
		   (member->is_start || member->fate != FATE_STAYS ||
			member->task.deadline < repair->deadline);
}

/* ---- write ---- */

/*
 * Returns when a task expires with another deadline: as before, unless that is
 * before the deadline; then as long after it as it was after the former one,
 * which a total timeout does not count for.
 */
static TimestampTz
expires_with(const TqTask *task, TimestampTz deadline)
{
	if (task->expires >= deadline)
		return task->expires;
	return Min(deadline + (task->expires -
						   Max(task->deadline, task->defined_deadline)),
			   tq_clock_latest());
}

/*
 * Inserts the timers of the timeouts of a run that goes on with a later
 * deadline: those that are not before the former deadline have none, because
 * that would have resolved the task anyway.
 */
static void
watch_again(Member *member, TimestampTz deadline)
{
	const TqPolicy *policy = tq_policy_get(member->task.policy);
	TqRun *run = &member->last;
	TqRunDetail detail = {0};
	TimestampTz pending_end;
	TimestampTz run_end;

	if (member->fate != FATE_STAYS ||
		(run->state != TQ_STATE_PENDING && run->state != TQ_STATE_RUNNING))
		return;
	(void) tq_detail_read(run, &detail);
	pending_end = run->state == TQ_STATE_PENDING
					  ? tq_policy_pending_until(policy, run->scheduled,
												run->started,
												detail.budget.pending_until)
					  : DT_NOEND;
	run_end = policy->run_timeout != TQ_OFF && run->started != 0
				  ? tq_policy_after(run->started, policy->run_timeout)
				  : DT_NOEND;
	if (pending_end >= member->task.deadline && pending_end < deadline)
		tq_timer_insert(TQ_TIMER_PENDING_TIMEOUT, pending_end,
						&member->task.id, 1);
	if (run_end >= member->task.deadline && run_end < deadline)
		tq_timer_insert(TQ_TIMER_RUN_TIMEOUT, run_end, &member->task.id, 1);
}

/* Writes the new deadline, what follows for expiry, and the timers. */
static void
write_deadlines(Repair *repair)
{
	int64 *ids = palloc(sizeof(int64) * Max(repair->n, 1));
	int64 *late = palloc(sizeof(int64) * Max(repair->n, 1));
	TimestampTz *due = palloc(sizeof(TimestampTz) * Max(repair->n, 1));
	TimestampTz *expires = palloc(sizeof(TimestampTz) * Max(repair->n, 1));
	int n = 0;
	int nlate = 0;

	if (repair->deadline == 0)
		return;
	for (int i = 0; i < repair->n; i++)
	{
		Member *member = &repair->members[i];
		TqTask *task = &member->task;

		if (!gets_deadline(repair, member))
			continue;
		watch_again(member, repair->deadline);
		ids[n] = task->id;
		due[n++] = repair->deadline;
		if (task->expires >= repair->deadline)
		{
			task->deadline = repair->deadline;
			continue;
		}
		task->expires = expires_with(task, repair->deadline);
		task->deadline = repair->deadline;
		late[nlate] = task->id;
		expires[nlate++] = task->expires;
		if (task->group_id != 0)
			(void) tq_group_prolong(task->group_id,
									tq_clock_add_ms(task->expires,
													TQ_HOUR_MS));
	}
	tq_tasks_set_due(ids, due, n);
	tq_tasks_set_expires(late, expires, nlate);
	tq_timer_insert(TQ_TIMER_DEADLINE,
					tq_clock_add_ms(repair->deadline, tq_deadline_delay), ids,
					n);
}

/* Leaves the unmet foreign dependencies of a member to maintenance. */
static void
watch_foreign(Repair *repair, const Member *member)
{
	int n;
	const TqDependency *edges = edges_of(repair, member->id, &n);

	for (int i = 0; i < n; i++)
	{
		if (edges[i].is_foreign)
			tq_timer_insert(TQ_TIMER_SETTLE, repair->now, &edges[i].required,
							1);
	}
}

/* Deletes what is left of the members that wait from their last ends. */
static void
clear_waits(const Repair *repair)
{
	int64 *ids = palloc_extended(sizeof(int64) * Max(repair->n, 1),
								 MCXT_ALLOC_HUGE);
	int n = 0;

	for (int i = 0; i < repair->n; i++)
	{
		if (repair->members[i].fate == FATE_WAIT)
			ids[n++] = repair->members[i].id;
	}
	if (n == 0)
		return;
	tq_failures_delete(ids, n);
	tq_unscheduled_clear(ids, n);
}

/* Makes a member unscheduled again. */
static void
write_wait(Repair *repair, Member *member)
{
	TimestampTz now = repair->now;
	TqTask *task = &member->task;

	tq_count_rerun(task, &member->last);
	tq_unscheduled_insert(task->id, member->unmet, member->nunmet,
						  task->all_resolved, member->last.run_id + 1);
	watch_foreign(repair, member);
	tq_count_unscheduled(task);
	tq_timer_insert(TQ_TIMER_DEADLINE,
					tq_clock_add_ms(task->deadline, tq_deadline_delay),
					&task->id, 1);
	if (tq_gate_may_have(task))
		tq_gates_leave(&task->id, 1, now);
	if (tq_policy_get(task->policy)->dead_letter)
		(void) tq_dead_letter_delete(&task->task_id);
}

/* Has an unscheduled dependent wait for what is unmet again. */
static void
write_more(Repair *repair, const Member *member)
{
	if (member->fate != FATE_STAYS || member->nunmet == 0)
		return;
	tq_unscheduled_count_up(member->id, member->unmet, member->nunmet);
	watch_foreign(repair, member);
}

/* Writes the repair; returns how many tasks run again, or wait again. */
static int64
write_repair(Repair *repair)
{
	TqTransitions transitions = {.now = repair->now, .n = repair->n};
	int64 count = 0;

	write_deadlines(repair);
	tq_dependencies_set_from_run(repair->raised, repair->nraised);
	clear_waits(repair);
	for (int i = 0; i < repair->n; i++)
	{
		Member *member = &repair->members[i];

		tq_show_done("written", i, repair->n);
		if (member->fate == FATE_WAIT)
			write_wait(repair, member);
		else if (member->fate == FATE_RERUN ||
				 (member->is_start && member->fate == FATE_STAYS))
		{
			if (!tq_transition_repair(&transitions, &member->task,
									  &member->last,
									  repair->is_group ||
										  repair->how->downstream))
				continue;
			if (tq_policy_get(member->task.policy)->dead_letter)
				(void) tq_dead_letter_delete(&member->task.task_id);
		}
		else
		{
			write_more(repair, member);
			continue;
		}
		count++;
		CHECK_FOR_INTERRUPTS();
	}
	tq_transitions_finish(&transitions);
	return count;
}

/* ---- calls ---- */

/* Returns the deadline that a call gives, 0 if none. */
static TimestampTz
deadline_of(const TqRepairHow *how, TimestampTz now)
{
	TimestampTz deadline;

	if (how->deadline == NULL)
		return 0;
	deadline = tq_clock_add_interval(now, how->deadline);
	if (deadline <= now ||
		deadline > tq_clock_add_ms(now, (int64) tq_max_deadline * 1000))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("deadline is out of range"),
			 errdetail(
				 "It is %s, and may be above 0 and at most %d seconds (tq.max_deadline).",
				 tq_clock_interval_text(how->deadline), tq_max_deadline),
			 errhint("Give an interval from now.")));
	return deadline;
}

/* Returns why a call would be refused because of a member, NULL if not. */
static const char *
why_refused(const Repair *repair, const Member *member)
{
	if (repair->deadline == 0 && member->task.deadline < repair->now)
		return "it is past its deadline, and needs a new one";
	if (member->fate == FATE_STAYS)
		return NULL;
	if (member->last.state == TQ_STATE_COMPLETED &&
		tq_policy_get(member->task.policy)->drop_payload)
		return "its payload was dropped";
	if (member->last.run_id + 1 >= tq_max_runs)
		return "it has as many runs as it may have";
	return member->why_no_key;
}

/* Fills in the step of a member; returns false if it has none. */
static bool
fill_step(const Repair *repair, const Member *member, TqRepairStep *step)
{
	bool is_changed = member->fate != FATE_NONE &&
					  (member->is_start || member->fate != FATE_STAYS);

	*step = (TqRepairStep){.task_id = member->task.task_id,
						   .state = member->last.state,
						   .action = "left"};
	if (is_changed)
		step->why = why_refused(repair, member);
	if (step->why != NULL)
		step->action = "refused";
	else if (is_under_way(member))
		step->why = "it has a run already";
	else if (member->fate == FATE_RERUN)
		step->action = "rerun";
	else
		step->action = member->fate == FATE_WAIT ? "wait" : "waits";
	return member->fate != FATE_NONE ||
		   (is_left(member) && !member->is_foreign &&
			is_left_dependent(repair, member));
}

/*
 * Returns what a call of rerun_task() would do with a task and what depends on
 * it, by id; changes and locks nothing.
 */
TqRepairStep *
tq_repair_plan(const TqTask *task, const TqRepairHow *how, TimestampTz now,
			   int *n)
{
	int64 start = task->id;
	Repair repair = {.how = how, .now = now, .starts = &start, .nstarts = 1};
	TqRepairStep *steps;

	*n = 0;
	repair.deadline = deadline_of(how, now);
	repair_collect(&repair);
	mark(&repair);
	decide_waits(&repair);
	report_left(&repair);
	look_at_keys(&repair);
	steps = palloc_extended(sizeof(TqRepairStep) * Max(repair.n, 1),
							MCXT_ALLOC_HUGE);
	for (int i = 0; i < repair.n; i++)
		*n += fill_step(&repair, &repair.members[i], &steps[*n]);
	return steps;
}

/* Makes a repair whose starts are known. */
static int64
repair_run(Repair *repair)
{
	int n;
	const int64 *ids;

	repair->deadline = deadline_of(repair->how, repair->now);
	repair_collect(repair);
	lock_keys(repair);
	while (ids = find_locks(repair, &n), !are_locked(repair, ids, n))
	{
		lock_more(repair, ids, n);
		repair_collect(repair);
		lock_foreign(repair);
		lock_keys(repair); /* of what is new */
	}
	mark(repair);
	decide_waits(repair);
	report_left(repair);
	for (int i = 0; i < repair->n; i++)
	{
		const Member *member = &repair->members[i];

		if (member->fate == FATE_RERUN || member->fate == FATE_WAIT ||
			(member->is_start && member->fate == FATE_STAYS))
			repair_check_member(repair, member);
	}
	take_keys(repair);
	return write_repair(repair);
}

/* Reruns a task with another deadline, or with what depends on it. */
void
tq_repair_task(const TqTask *task, const TqRepairHow *how, TimestampTz now)
{
	int64 start = task->id;
	Repair repair = {.how = how, .now = now, .starts = &start, .nstarts = 1};

	(void) repair_run(&repair);
	if (repair.n == 0)
		tq_error_missing_task(&task->task_id);
}

/*
 * Reruns the tasks of a group that ended for these reasons, and returns how
 * many run again, or wait again.
 */
int64
tq_repair_group(const TqSlug *slug, const TqRepairHow *how,
				const TqResolved *reasons, int nreasons, TimestampTz now)
{
	TqGroup group;
	Repair repair = {.how = how,
					 .now = now,
					 .is_group = true,
					 .reasons = reasons,
					 .nreasons = nreasons};

	tq_group_get_to("retry-task-group", slug, &group);
	tq_require_group("retry-task-group", &group);
	repair.group = *slug;
	repair.group_id = group.id;
	repair.starts = tq_group_ended(&group, reasons, nreasons, &repair.nstarts);
	return repair_run(&repair);
}
