/*
 * dependency.c
 *	  Dependencies: what a new task waits for, and what the end of a task
 *	  releases.
 *
 * Follows doc/spec/taskcluster.md section 4.  A dependency is met by the first
 * run of the required task, from the dependency's from_run on, that is
 * completed, or under all-resolved finally resolved.  Nothing is stored when a
 * dependency is met, except that the dependency counter of the dependent
 * decreases.  A run that ends without success counts as completed if the policy
 * of its task tolerates or forgives it (doc/spec/policy.md 2, 8 C10).
 *
 * Why no end of a required task is missed:
 *	- Before a session counts a required task as unmet, it locks the row that
 *	  holds the location of that task, in share mode.  A session that ends a
 *	  required task holds that row locked for update, and looks for dependents
 *	  afterwards, with a new snapshot.  So either the creating session waits and
 *	  then sees the end, or the ending session waits and then sees the new
 *	  dependency.
 *	- When the last two required tasks of one dependent end concurrently, both
 *	  sessions write the dependent's row in unscheduled, so the second waits for
 *	  the first and reads the row again.
 *
 * task_location.c gives the order of locks.
 */
#include "postgres.h"

#include "lib/qunique.h"

#include "../core/names.h"
#include "../core/state.h"
#include "lifecycle.h"

/* A required task that is not created by the same call. */
typedef struct ExternalDependency
{
	TqSlug task_id;
	bool is_found;   /* it exists, and its run is locked or peeked at */
	bool is_foreign; /* foreign_dependency.c */
	int64 id;
	TimestampTz expires;
	int32 policy;
	TqRun run; /* its last run, locked unless completed or foreign */
} ExternalDependency;

/* ---- new tasks ---- */

/* Returns the task if it is created by the same call, else NULL. */
static TqBatchTask *
new_batch_task(const TqSlug *slug, HTAB *batch_tasks)
{
	TqBatchTask *batch_task = hash_search(batch_tasks, slug, HASH_FIND, NULL);

	return batch_task != NULL && batch_task->is_new ? batch_task : NULL;
}

/*
 * Collects the required tasks that are not created by the same call, each
 * once.
 */
static HTAB *
collect_externals(const TqTaskDefinition *tasks, int n, HTAB *batch_tasks)
{
	HASHCTL control = {.keysize = sizeof(TqSlug),
					   .entrysize = sizeof(ExternalDependency),
					   .hcxt = CurrentMemoryContext};
	HTAB *externals = hash_create("tq strangers", 256, &control,
								  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].ndependencies == 0 ||
			new_batch_task(&tasks[i].named.task.task_id, batch_tasks) == NULL)
			continue;
		for (int d = 0; d < tasks[i].ndependencies; d++)
		{
			const TqSlug *slug = &tasks[i].dependencies[d];
			bool found;
			ExternalDependency *external;

			if (new_batch_task(slug, batch_tasks) != NULL)
				continue;
			external = hash_search(externals, slug, HASH_ENTER, &found);
			external->is_found = false;
		}
	}
	return externals;
}

/*
 * Returns whether a task may require another one whatever the caller's rights:
 * both are in one queue, or in one group.
 */
static bool
is_related(const TqNamedTask *dependent, const TqTask *required)
{
	return required->queue == dependent->task.queue ||
		   (required->group_id == 0
				? tq_slug_compare(&required->task_id,
								  &dependent->group_slug) == 0
				: required->group_id == dependent->task.group_id);
}

/*
 * Returns whether the caller may let one of these tasks require this one.
 * *is_foreign says whether that is of a queue in which it may create none.
 */
static bool
may_require(const TqTask *required, const TqTaskDefinition *tasks, int n,
			bool *is_foreign)
{
	bool may = tq_may_depend(required->queue, is_foreign);

	for (int i = 0; i < n && *is_foreign; i++)
	{
		may = may || is_related(&tasks[i].named, required);
		*is_foreign = required->queue != tasks[i].named.task.queue;
	}
	return may;
}

/*
 * Looks up the tasks that these require, and returns those that exist and may
 * be required.
 */
static ExternalDependency **
find_externals(HTAB *externals, const TqTaskDefinition *tasks, int n,
			   int *found)
{
	ExternalDependency **in_order = palloc(
		sizeof(ExternalDependency *) *
		Max(hash_get_num_entries(externals), 1));
	TqTaskFinder finder = {NULL, NULL};
	HASH_SEQ_STATUS scan;
	ExternalDependency *external;
	TqTask task;

	*found = 0;
	hash_seq_init(&scan, externals);
	while ((external = hash_seq_search(&scan)) != NULL)
	{
		if (!tq_task_find_by_slug(&finder, &external->task_id, &task) ||
			!may_require(&task, tasks, n, &external->is_foreign))
			continue;
		external->id = task.id;
		external->expires = task.expires;
		external->policy = task.policy;
		in_order[(*found)++] = external;
	}
	tq_task_finder_end(&finder);
	return in_order;
}

static int
compare_externals(const void *a, const void *b)
{
	int64 x = (*(ExternalDependency *const *) a)->id;
	int64 y = (*(ExternalDependency *const *) b)->id;

	return x < y ? -1 : x > y;
}

/* Longest time, in ms, that a transaction which creates tasks should take. */
#define CREATE_MS (INT64CONST(500) * tq_message_retention)

/*
 * Returns whether a task was completed so recently that retention does not
 * delete it before this transaction ends: it keeps tasks for at least
 * tq.message_retention.
 */
static bool
is_just_completed(const TqRun *run)
{
	return run->state == TQ_STATE_COMPLETED &&
		   run->resolved > tq_clock_add_ms(tq_clock_now(), -CREATE_MS);
}

/* Returns whether a task may expire before this transaction ends. */
static bool
expires_soon(TimestampTz expires)
{
	return !TIMESTAMP_IS_NOEND(expires) &&
		   expires <= tq_clock_add_ms(tq_clock_now(), CREATE_MS);
}

/*
 * Locks required tasks together with others, which the call is about to change,
 * so that the locks of both are taken in one order.
 */
static void
lock_with_others(ExternalDependency **externals, int n, const int64 *others,
				 int nothers)
{
	int64 *ids = palloc(sizeof(int64) * (n + nothers));

	for (int i = 0; i < n; i++)
		ids[i] = externals[i]->id;
	memcpy(ids + n, others, sizeof(int64) * nothers);
	n += nothers;
	qsort(ids, n, sizeof(int64), tq_compare_ids);
	n = (int) qunique(ids, n, sizeof(int64), tq_compare_ids);
	(void) tq_task_lock_wait(ids, n, TQ_LOCK_UPDATE, NULL, false);
}

/*
 * Peeks at the foreign ones of these required tasks, which are not locked, and
 * leaves timers for those that may be unmet; returns how many others are left.
 */
static int
leave_foreign(ExternalDependency **externals, int n)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	int nforeign = 0;
	int left = 0;

	for (int i = 0; i < n; i++)
	{
		ExternalDependency *external = externals[i];

		if (!external->is_foreign)
		{
			externals[left++] = external;
			continue;
		}
		external->is_found = tq_run_peek(external->id, &external->run);
		if (external->is_found && external->run.state != TQ_STATE_COMPLETED)
			ids[nforeign++] = external->id;
	}
	if (nforeign > 0)
		tq_timer_insert(TQ_TIMER_SETTLE, tq_clock_now(), ids, nforeign);
	return left;
}

/*
 * Finds and locks all tasks that these new tasks require, for
 * tq_dependency_track(), and these others; returns NULL if there is none.  One
 * call does it for all new tasks, so that the order of locks is always the
 * same.
 */
HTAB *
tq_dependency_prepare(const TqTaskDefinition *tasks, int n, HTAB *batch_tasks,
					  const int64 *others, int nothers)
{
	HTAB *externals;
	ExternalDependency **in_order;
	int found;
	int ndependencies = 0;
	int64 *ids;
	TqTaskLock *locks;
	bool is_kept = true;

	for (int i = 0; i < n; i++)
		ndependencies += tasks[i].ndependencies;
	if (ndependencies == 0 && nothers == 0)
		return NULL;
	externals = collect_externals(tasks, n, batch_tasks);
	in_order = find_externals(externals, tasks, n, &found);
	qsort(in_order, found, sizeof(ExternalDependency *), compare_externals);
	found = leave_foreign(in_order, found);
	if (nothers > 0)
		lock_with_others(in_order, found, others, nothers);
	/*
	 * Lock each required task in the row that holds its location.  A task
	 * that has just been completed, and does not expire soon, needs no lock: a
	 * new task may count it as met whatever happens to it afterwards.  The
	 * lock on others makes a sweep skip them (sweep.c), and a rerun wait.
	 */
	ids = palloc(sizeof(int64) * Max(found, 1));
	for (int i = 0; i < found; i++)
	{
		ids[i] = in_order[i]->id;
		is_kept = is_kept && !expires_soon(in_order[i]->expires);
	}
	locks = tq_task_lock_wait(ids, found, TQ_LOCK_SHARE,
							  is_kept ? is_just_completed : NULL, false);
	for (int i = 0; i < found; i++)
	{
		in_order[i]->run = locks[i].run;
		/* false: the task has been deleted since it was found */
		in_order[i]->is_found = locks[i].is_locked;
	}
	return externals;
}

/*
 * Gives the hint for required tasks that are missing or expire; foreign is the
 * first one that is missing and may be on another shard, or NULL.
 */
static int
hint_required(const TqSlug *foreign)
{
	if (foreign == NULL)
		return errhint(
			"Create the tasks that it depends on first, or in the same call of create_tasks, and let them expire later%s.",
			tq_access_is_unlimited()
				? ""
				: "; those of a queue in which the role may not create tasks need the right to depend on them");
	return errhint(
		"Bucket %d of task \"%s\" belongs to another shard, and a task depends on tasks of its own shard only: create it in the task group of those that it depends on.",
		tq_slug_bucket(foreign), tq_slug_text(foreign));
}

/*
 * Raises an error unless every required task exists and does not expire before
 * the deadline of the new task, if it has one (doc/spec/taskcluster.md 4.2).
 */
static void
check_required(const TqTaskDefinition *definition, HTAB *batch_tasks,
			   HTAB *externals)
{
	const TqTask *task = &definition->named.task;
	StringInfoData missing;
	StringInfoData expiring;
	const TqSlug *foreign = NULL;

	initStringInfo(&missing);
	initStringInfo(&expiring);
	for (int i = 0; i < definition->ndependencies; i++)
	{
		const TqSlug *slug = &definition->dependencies[i];
		TqBatchTask *batch_task = new_batch_task(slug, batch_tasks);
		ExternalDependency *external = hash_search(externals, slug, HASH_FIND,
												   NULL);

		if (batch_task == NULL && !external->is_found)
		{
			tq_error_list(&missing, ", ", tq_slug_text(slug));
			if (foreign == NULL && tq_bucket_is_foreign(slug))
				foreign = slug;
		}
		else if (!TIMESTAMP_IS_NOEND(task->deadline) &&
				 (batch_task ? batch_task->task->expires : external->expires) <
					 task->deadline)
			tq_error_list(&expiring, ", ", tq_slug_text(slug));
	}
	if (missing.len == 0 && expiring.len == 0)
		return;
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT),
		 errmsg(
			 "task \"%s\" depends on tasks that do not exist or expire before its deadline",
			 tq_slug_text(&task->task_id)),
		 errdetail(
			 "missingTaskDependencies: [%s]; expiringTaskDependencies: [%s].",
			 missing.data, expiring.data),
		 hint_required(foreign)));
}

/*
 * Returns whether this run counts as completed for the dependents of its task.
 */
bool
tq_dependency_counts(const TqRun *run, int32 policy)
{
	return run->state == TQ_STATE_COMPLETED ||
		   (policy != 0 && tq_state_is_resolved(run->state) &&
			tq_policy_tolerates(tq_policy_get(policy), run->reason));
}

/*
 * Returns whether a new dependency is met already by the last run of the
 * required task.  Sets *from_run to the first run that counts for the
 * dependency.
 */
static bool
evaluate_dependency(const TqRun *run, int32 policy, bool all_resolved,
					int32 *from_run)
{
	bool is_resolved = tq_state_is_resolved(run->state);
	bool is_met = tq_dependency_counts(run, policy) ||
				  (all_resolved && is_resolved);

	*from_run = Max(run->run_id, 0);
	if ((is_resolved && !is_met) ||
		(run->state == TQ_STATE_UNSCHEDULED && run->run_id >= 0))
		(*from_run)++;
	return is_met;
}

/*
 * Writes these dependencies of a task; returns the ids of the required tasks of
 * those that are unmet.
 */
static int64 *
write_edges(const TqTaskDefinition *definition, HTAB *batch_tasks,
			HTAB *externals, int *unmet_count)
{
	const TqTask *task = &definition->named.task;
	int n = definition->ndependencies;
	int64 *required = palloc(sizeof(int64) * n);
	int64 *unmet = palloc(sizeof(int64) * n);
	int32 *from_run = palloc(sizeof(int32) * n);
	TqDependency *foreign = palloc(sizeof(TqDependency) * n);
	int nunmet = 0;
	int nforeign = 0;
	int nown = 0;

	check_required(definition, batch_tasks, externals);
	for (int i = 0; i < n; i++)
	{
		const TqSlug *slug = &definition->dependencies[i];
		TqBatchTask *batch_task = new_batch_task(slug, batch_tasks);
		ExternalDependency *external = hash_search(externals, slug, HASH_FIND,
												   NULL);

		int64 id = batch_task ? batch_task->task->id : external->id;
		int32 from = 0;
		bool is_met = batch_task == NULL &&
					  evaluate_dependency(&external->run, external->policy,
										  task->all_resolved, &from);

		if (!is_met)
			unmet[nunmet++] = id;
		if (batch_task == NULL && external->is_foreign)
		{
			foreign[nforeign++] = (TqDependency){.required = id,
												 .dependent = task->id,
												 .from_run = from,
												 .is_settled = is_met};
			continue;
		}
		required[nown] = id;
		from_run[nown++] = from;
	}
	tq_dependencies_insert(task->id, required, from_run, nown);
	tq_foreign_insert(task, foreign, nforeign);
	*unmet_count = nunmet;
	return unmet;
}

/*
 * Writes the dependencies of a new task and, if any is unmet, its row in
 * unscheduled; returns whether any is unmet.  The caller has inserted all
 * tasks of the call, and has called tq_dependency_prepare().
 */
bool
tq_dependency_track(const TqTaskDefinition *definition, HTAB *batch_tasks,
					HTAB *externals)
{
	const TqTask *task = &definition->named.task;
	int n;
	int64 *unmet = write_edges(definition, batch_tasks, externals, &n);

	if (n > 0)
		tq_unscheduled_insert(task->id, unmet, n, task->all_resolved, 0);
	return n > 0;
}

/*
 * Writes further dependencies of an unscheduled task, whose row the caller has
 * locked.  The caller has called tq_dependency_prepare().
 */
static void
dependency_add(const TqTaskDefinition *definition, HTAB *batch_tasks,
			   HTAB *externals)
{
	int n;
	int64 *unmet = write_edges(definition, batch_tasks, externals, &n);

	tq_unscheduled_count_up(definition->named.task.id, unmet, n);
}

/* ---- the end of a task ---- */

/*
 * Locks, without waiting, the rows of unscheduled that the end of these tasks
 * may touch.  Removes from the list each task of which another session has a
 * dependent locked, and returns how many tasks are left.
 */
static int
dependency_try_lock(int64 *tasks, int n)
{
	int nnear;
	int nlocked;
	int nblocked;
	int nmissing = 0;
	int left = 0;
	int64 *near = tq_dependencies_dependents(tasks, n, &nnear);
	TqUnscheduled *locked = tq_unscheduled_try_lock(near, nnear, &nlocked);
	int64 *blocked;

	if (nlocked == nnear)
		return n;
	for (int i = 0; i < nnear; i++)
	{
		TqUnscheduled key = {.task = near[i], .stripe = -1};

		if (bsearch(&key, locked, nlocked, sizeof(TqUnscheduled),
					tq_compare_unscheduled) == NULL)
			near[nmissing++] = near[i];
	}
	blocked = tq_dependencies_required(tasks, n, near, nmissing, &nblocked);
	for (int i = 0; i < n; i++)
	{
		if (bsearch(&tasks[i], blocked, nblocked, sizeof(int64),
					tq_compare_ids) == NULL)
			tasks[left++] = tasks[i];
	}
	return left;
}

/*
 * Moves to held->others, from the locked tasks, those that are about to be
 * finally resolved while another session has one of their dependents locked.
 * is_final[] says which tasks are about to be finally resolved; NULL means
 * all.
 */
void
tq_dependency_drop_blocked(TqLockedTasks *held, const bool *is_final)
{
	int n = held->n;
	int64 *finals = palloc(sizeof(int64) * Max(n, 1));
	int nfinals = 0;
	int next = 0;

	for (int i = 0; i < n; i++)
	{
		if (is_final == NULL || is_final[i])
			finals[nfinals++] = held->runs[i].task;
	}
	if (nfinals == 0)
		return;
	nfinals = dependency_try_lock(finals, nfinals);
	held->n = 0;
	for (int i = 0; i < n; i++)
	{
		int64 task = held->runs[i].task;
		bool is_free = next < nfinals && finals[next] == task;

		next += is_free;
		if (is_free || (is_final != NULL && !is_final[i]))
			tq_locked_tasks_keep(held, i);
		else
			held->others[held->nothers++] = task;
	}
}

/*
 * Finds which runs before that one have met dependencies already: the last
 * completed one and the last final one.  A run is final if it was followed by
 * one that is no retry.
 */
static void
look_back(TqMet *met, const TqHistoryRun *runs, int n, int run_id,
		  int32 policy)
{
	for (int i = 1; i < n && runs[i].run.run_id <= run_id; i++)
	{
		if (tq_created_is_retry(runs[i].run.created))
			continue;
		met->previous_final = runs[i].run.run_id - 1;
		if (tq_dependency_counts(&runs[i - 1].run, policy))
			met->previous_completed = runs[i].run.run_id - 1;
	}
}

/*
 * Returns the policy of the task of a run.  The task of a completed run may
 * not be read yet, because report.c reads no more of a task than it needs.
 */
static int32
dependency_policy_of(const TqFinal *final)
{
	int found = 1;
	const TqTask *task = final->task != NULL
							 ? final->task
							 : tq_tasks_core(&final->run->task, 1, &found);

	return found == 0 ? 0 : task->policy;
}

/*
 * Returns, for each of these runs, which dependencies it meets and which were
 * met by earlier runs of the task.
 */
static TqMet *
what_is_met(const TqFinal *finals, int n)
{
	TqMet *met = palloc(sizeof(TqMet) * n);

	for (int i = 0; i < n; i++)
	{
		const TqRun *run = finals[i].run;
		const TqTask *task = finals[i].task;

		met[i] = (TqMet){.required = run->task,
						 .completed = task == NULL ||
									  tq_dependency_counts(run, task->policy),
						 .previous_completed = -1,
						 .previous_final = -1};
		if (run->run_id > 0)
		{
			int found;
			TqHistoryRun *runs = tq_runs_history(&run->task, 1, false, &found);

			look_back(&met[i], runs, found, run->run_id,
					  dependency_policy_of(&finals[i]));
		}
	}
	return met;
}

/* Returns the runs of those tasks that have dependents; most have none. */
static TqFinal *
those_required(const TqFinal *finals, int n, int *found)
{
	TqFinal *required = palloc(sizeof(TqFinal) * n);
	int64 *tasks = palloc(sizeof(int64) * n);
	bool *is_required = palloc(sizeof(bool) * n);

	for (int i = 0; i < n; i++)
		tasks[i] = finals[i].run->task;
	tq_dependencies_exist(tasks, n, is_required);
	*found = 0;
	for (int i = 0; i < n; i++)
	{
		if (is_required[i])
			required[(*found)++] = finals[i];
	}
	return required;
}

/*
 * Counts down the dependencies of these unscheduled tasks, each task once.
 * Returns those that wait for nothing more, unless their deadline has passed;
 * they have left unscheduled, and next_runs[] are the runs that they get.
 */
TqTask *
tq_dependency_count_down(const TqUnscheduled *waiting, int n, TimestampTz now,
						 int **next_runs, int *released)
{
	TqTask *tasks;
	TqTaskFinder finder = {NULL, NULL};
	bool *may_free;
	bool *is_free;

	*released = 0;
	if (n == 0)
		return NULL;
	tasks = palloc(sizeof(TqTask) * n);
	may_free = palloc(sizeof(bool) * n);
	is_free = palloc(sizeof(bool) * n);
	*next_runs = palloc0(sizeof(int) * n);
	for (int i = 0; i < n; i++)
		may_free[i] = tq_task_find_by_id(&finder, waiting[i].task,
										 &tasks[i]) &&
					  tasks[i].deadline >= now;
	tq_task_finder_end(&finder);
	tq_unscheduled_count_down(waiting, n, may_free, is_free, *next_runs);
	for (int i = 0; i < n; i++)
	{
		if (!is_free[i])
			continue;
		(*next_runs)[*released] = (*next_runs)[i];
		tasks[(*released)++] = tasks[i];
	}
	return tasks;
}

/* Leaves timers for those of these tasks that have foreign dependents. */
static void
leave_to_settle(const TqMet *met, int n, TimestampTz now)
{
	for (int i = 0; i < n; i++)
	{
		if (met[i].is_marked)
			tq_timer_insert(TQ_TIMER_SETTLE, now, &met[i].required, 1);
	}
}

/*
 * Counts down the dependencies that these final runs meet, and returns what is
 * released, as above.  The caller has locked and written the rows of the runs.
 */
TqTask *
tq_dependency_release(const TqFinal *finals, int n, TimestampTz now,
					  int **next_runs, int *released)
{
	int nmet;
	TqMet *met;
	TqUnscheduled *waiting;

	*released = 0;
	if (n > 0)
		finals = those_required(finals, n, &n);
	if (n == 0)
		return NULL;
	met = what_is_met(finals, n);
	waiting = tq_dependencies_met(met, n, &nmet);
	leave_to_settle(met, n, now);
	return tq_dependency_count_down(waiting, nmet, now, next_runs, released);
}

/*
 * ---- dependencies that an unscheduled task gets (doc/spec/taskcluster.md 2.22)
 *
 * A new dependency may close a cycle.  All tasks of a cycle are unscheduled,
 * because each waits for another one.  So it is enough to follow what the
 * required tasks wait for through unscheduled tasks: the ancestors.  If the task
 * is one of them, there is a cycle.
 *
 * Locks and their order
 * ---------------------
 * The rows with the locations of the task, of its ancestors, and of the tasks
 * that it requires, in the order of task_location.c.  The ancestors are looked up
 * before and, when all is locked, again; what is new is locked as well.  Only
 * then the order is not kept, and the server may have to end a deadlock.  An
 * added dependency may be on a task with a greater id than that of the
 * dependent; the order is that of ids then, too, not that of the graph.
 *
 * No foreign task is locked (foreign_dependency.c), so what follows holds for the
 * others only.
 *
 * Why no two sessions miss each other:
 *  *	- A session that ends a required task holds its row locked, and looks for
 * dependents afterwards, with a new snapshot.  So it sees the new dependency,
 * or this call sees the end, as above.
 *  *	- A session that schedules or cancels the task, or frees it, holds its row in
 * unscheduled locked: this call finds it in another state, or comes first.
 *  *	- Two calls that would close a cycle together: the cycle leads from the task
 * of one over the dependency that it adds to the task of the other, and back.
 * So the task of each is an ancestor for the other one, and both lock both
 * tasks.  The second looks for ancestors again, with a new snapshot, and finds
 * the dependency that the first has added.
 */

#define CYCLE_SHOWN 20 /* tasks of a cycle that an error names */

/* ---- which ---- */

/*
 * Leaves those of these dependencies, in order and each once, that the task
 * does not have; returns how many.
 */
static int
keep_new(const TqTaskDefinition *task, TqSlug *given, int n)
{
	TqSlug *old = palloc(sizeof(TqSlug) * Max(task->ndependencies, 1));
	int kept = 0;

	memcpy(old, task->dependencies, sizeof(TqSlug) * task->ndependencies);
	qsort(old, task->ndependencies, sizeof(TqSlug), tq_compare_slugs);
	qsort(given, n, sizeof(TqSlug), tq_compare_slugs);
	n = (int) qunique(given, n, sizeof(TqSlug), tq_compare_slugs);
	for (int i = 0; i < n; i++)
	{
		if (bsearch(&given[i], old, task->ndependencies, sizeof(TqSlug),
					tq_compare_slugs) == NULL)
			given[kept++] = given[i];
	}
	return kept;
}

/*
 * Returns the internal ids of those of these tasks that exist and may be
 * required by this one.
 */
static int64 *
find_ids(const TqTaskDefinition *dependent, const TqSlug *slugs, int n,
		 int *found)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	TqTaskFinder finder = {NULL, NULL};
	TqTask task;
	bool is_foreign;

	*found = 0;
	for (int i = 0; i < n; i++)
	{
		if (tq_task_find_by_slug(&finder, &slugs[i], &task) &&
			may_require(&task, dependent, 1, &is_foreign))
			ids[(*found)++] = task.id;
	}
	tq_task_finder_end(&finder);
	return ids;
}

/* ---- cycles ---- */

/* Returns the index of an ancestor, or -1. */
static int
index_of(const int64 *ancestors, int n, int64 id)
{
	const int64 *found = bsearch(&id, ancestors, n, sizeof(int64),
								 tq_compare_ids);

	return found == NULL ? -1 : (int) (found - ancestors);
}

/* Returns the first edge of a dependent; edges are in order of dependents. */
static int
first_edge(const TqDependency *edges, int n, int64 dependent)
{
	int low = 0;
	int high = n;

	while (low < high)
	{
		int middle = (low + high) / 2;

		if (edges[middle].dependent < dependent)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Finds for each ancestor the one that depends on it and is nearest to the
 * required tasks, which have themselves; -1 where there is none.
 */
static int *
find_ways(const int64 *ancestors, int n, const int64 *required, int nrequired)
{
	int nedges;
	TqDependency *edges = tq_dependencies_of(ancestors, n, &nedges);
	int *way = palloc(sizeof(int) * Max(n, 1));
	int *reached = palloc(sizeof(int) * Max(n, 1));
	int nreached = 0;

	for (int i = 0; i < n; i++)
		way[i] = -1;
	for (int i = 0; i < nrequired; i++)
	{
		int at = index_of(ancestors, n, required[i]);

		if (at < 0)
			continue;
		way[at] = at;
		reached[nreached++] = at;
	}
	for (int i = 0; i < nreached; i++)
	{
		int64 dependent = ancestors[reached[i]];

		for (int e = first_edge(edges, nedges, dependent);
			 e < nedges && edges[e].dependent == dependent; e++)
		{
			int at = index_of(ancestors, n, edges[e].required);

			if (at < 0 || way[at] >= 0)
				continue;
			way[at] = reached[i];
			reached[nreached++] = at;
		}
	}
	return way;
}

/*
 * Raises the error that names the cycle that a dependency on one of these
 * required tasks would close.
 */
static void
add_dependencies_refuse_cycle(const TqTask *task, const int64 *ancestors,
							  int n, const int64 *required, int nrequired)
{
	int *way = find_ways(ancestors, n, required, nrequired);
	int at = index_of(ancestors, n, task->id);
	int length = 0;
	StringInfoData names;

	initStringInfo(&names);
	for (; way[at] != at; at = way[at])
	{
		int found;
		TqTask *dependent;

		if (++length > CYCLE_SHOWN)
			continue;
		dependent = tq_tasks_core(&ancestors[way[at]], 1, &found);
		appendStringInfo(&names, " on which depends %s,",
						 tq_slug_text(&dependent->task_id));
	}
	if (length > CYCLE_SHOWN)
		appendStringInfo(&names, " and %d more,", length - CYCLE_SHOWN);
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT),
		 errmsg("dependencies of task \"%s\" would close a cycle",
				tq_slug_text(&task->task_id)),
		 errdetail(
			 "It would depend on itself: task %s,%s on which it would depend.",
			 tq_slug_text(&task->task_id), names.data),
		 errhint("Leave the dependencies out that lead back to the task.")));
}

/* ---- lock and check ---- */

/*
 * Removes the tasks that are foreign to the caller, of which nothing is locked;
 * returns how many are left.
 */
static int
leave_out_foreign(const TqTask *dependent, int64 *ids, int n)
{
	TqTask *tasks;
	bool is_foreign;
	int left = 0;

	if (tq_access_is_unlimited())
		return n;
	tasks = tq_tasks_core(ids, n, &n);
	for (int i = 0; i < n; i++)
	{
		(void) tq_may_depend(tasks[i].queue, &is_foreign);
		if (!is_foreign || tasks[i].queue == dependent->queue)
			ids[left++] = tasks[i].id;
	}
	return left;
}

/*
 * Locks the task, these required tasks, and their ancestors, but no foreign
 * ones; returns the required tasks for dependency_add().
 */
static HTAB *
lock_all(const TqTaskDefinition *task, HTAB *batch_tasks,
		 const int64 *required, int n)
{
	const TqTask *dependent = &task->named.task;
	int nlocked;
	int64 *locked = tq_dependencies_upstream(required, n, &nlocked);
	HTAB *externals;
	bool is_complete;

	nlocked = leave_out_foreign(dependent, locked, nlocked);
	do
	{
		int nseen = nlocked;
		int64 *ids = palloc(sizeof(int64) * (nlocked + 1));

		memcpy(ids, locked, sizeof(int64) * nlocked);
		ids[nlocked] = dependent->id;
		externals = tq_dependency_prepare(task, 1, batch_tasks, ids,
										  nlocked + 1);
		locked = tq_dependencies_upstream(required, n, &nlocked);
		if (index_of(locked, nlocked, dependent->id) >= 0)
			add_dependencies_refuse_cycle(dependent, locked, nlocked, required,
										  n);
		nlocked = leave_out_foreign(dependent, locked, nlocked);
		is_complete = true;
		for (int i = 0; i < nlocked && is_complete; i++)
			is_complete = index_of(ids, nseen, locked[i]) >= 0;
	} while (!is_complete);
	return externals;
}

static void
refuse_state(const TqTask *task, const TqRun *last)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_CONFLICT),
		 errmsg("task \"%s\" takes no more dependencies",
				tq_slug_text(&task->task_id)),
		 errdetail("The task is %s.", tq_state_name(last->state)),
		 errhint(
			 "Only an unscheduled task can be given dependencies; create another task with them.")));
}

/* Returns a set with this task alone, for which dependencies are written. */
static HTAB *
batch_of(const TqTask *task)
{
	HASHCTL control = {.keysize = sizeof(TqSlug),
					   .entrysize = sizeof(TqBatchTask),
					   .hcxt = CurrentMemoryContext};
	HTAB *batch = hash_create("tq dependent", 1, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	bool found;
	TqBatchTask *entry = hash_search(batch, &task->task_id, HASH_ENTER,
									 &found);

	*entry =
		(TqBatchTask){.task_id = task->task_id, .is_new = true, .task = task};
	return batch;
}

/* Adds to a task these dependencies that it does not have. */
static void
add_dependencies_add(TqTaskDefinition *task, TqSlug *dependencies, int n,
					 TimestampTz now)
{
	TqTaskDefinition added = *task;
	HTAB *batch_tasks = batch_of(&task->named.task);
	int64 *required;
	int found;
	HTAB *externals;
	TqRun last;

	if (task->named.task.deadline < now)
		tq_error_past_deadline(&task->named.task);
	/* Before what is wrong with the dependencies; it may change until the lock. */
	if (tq_run_peek(task->named.task.id, &last) &&
		last.state != TQ_STATE_UNSCHEDULED)
		refuse_state(&task->named.task, &last);
	required = find_ids(task, dependencies, n, &found);
	if (bsearch(&task->named.task.task_id, dependencies, n, sizeof(TqSlug),
				tq_compare_slugs) != NULL)
		add_dependencies_refuse_cycle(&task->named.task, &task->named.task.id,
									  1, &task->named.task.id, 1);
	added.dependencies = dependencies;
	added.ndependencies = n;
	externals = lock_all(&added, batch_tasks, required, found);
	if (!tq_run_lock(task->named.task.id, TQ_LOCK_UPDATE, &last))
		tq_error_missing_task(&task->named.task.task_id);
	if (last.state != TQ_STATE_UNSCHEDULED)
		refuse_state(&task->named.task, &last);
	task = tq_definition_get(&task->named.task.task_id);
	added.ndependencies = keep_new(task, dependencies, n);
	if (task->ndependencies + added.ndependencies > tq_max_dependencies)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("dependencies of task \"%s\" are too many",
					tq_slug_text(&task->named.task.task_id)),
			 errdetail(
				 "It has %d, would get %d more, and may have %d (tq.max_dependencies).",
				 task->ndependencies, added.ndependencies,
				 tq_max_dependencies),
			 errhint("Let a task in between depend on some of them.")));
	if (added.ndependencies == 0)
		return;
	dependency_add(&added, batch_tasks, externals);
	tq_task_add_dependencies(task->named.task.id, added.dependencies,
							 added.ndependencies);
	tq_quota_check_queue(task->named.task.queue, added.ndependencies);
}

/*
 * Adds dependencies to an unscheduled task.  Those that it has already change
 * nothing, whatever its state.
 */
void
tq_add_dependencies(const TqSlug *task_id, TqSlug *dependencies, int n,
					TimestampTz now)
{
	TqTaskDefinition *task = tq_definition_get(task_id);

	n = keep_new(task, dependencies, n);
	if (n > 0)
		add_dependencies_add(task, dependencies, n, now);
}
