/*
 * add_dependencies.c
 *	  Gives an unscheduled task further dependencies
 *	  (doc/spec/taskcluster.md 2.22).
 *
 * A new dependency may close a cycle.  All tasks of a cycle are unscheduled,
 * because each waits for another one.  So it is enough to follow what the
 * required tasks wait for through unscheduled tasks: the ancestors.  If the task
 * is one of them, there is a cycle.
 *
 * Locks and their order
 * ---------------------
 * The rows with the locations of the task, of its ancestors, and of the tasks
 * that it requires, in the order of task_lock.c.  The ancestors are looked up
 * before and, when all is locked, again; what is new is locked as well.  Only
 * then the order is not kept, and the server may have to end a deadlock.  An
 * added dependency may be on a task with a greater id than that of the
 * dependent; the order is that of ids then, too, not that of the graph.
 *
 * Why no two sessions miss each other:
 *	- A session that ends a required task holds its row locked, and looks for
 *	  dependents afterwards, with a new snapshot.  So it sees the new dependency,
 *	  or this call sees the end, as in dependency.c.
 *	- A session that schedules or cancels the task, or frees it, holds its row in
 *	  unscheduled locked: this call finds it in another state, or comes first.
 *	- Two calls that would close a cycle together: the cycle leads from the task
 *	  of one over the dependency that it adds to the task of the other, and back.
 *	  So the task of each is an ancestor for the other one, and both lock both
 *	  tasks.  The second looks for ancestors again, with a new snapshot, and finds
 *	  the dependency that the first has added.
 */
#include "postgres.h"

#include "lib/qunique.h"

#include "../core/names.h"
#include "lifecycle.h"

#define CYCLE_SHOWN 20 /* tasks of a cycle that an error names */

/* ---- which ---- */

static int
add_dependencies_compare_slugs(const void *a, const void *b)
{
	return tq_slug_compare(a, b);
}

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
	qsort(old, task->ndependencies, sizeof(TqSlug),
		  add_dependencies_compare_slugs);
	qsort(given, n, sizeof(TqSlug), add_dependencies_compare_slugs);
	n = (int) qunique(given, n, sizeof(TqSlug),
					  add_dependencies_compare_slugs);
	for (int i = 0; i < n; i++)
	{
		if (bsearch(&given[i], old, task->ndependencies, sizeof(TqSlug),
					add_dependencies_compare_slugs) == NULL)
			given[kept++] = given[i];
	}
	return kept;
}

/* Returns the internal ids of those of these tasks that exist. */
static int64 *
find_ids(const TqSlug *slugs, int n, int *found)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	TqTaskFinder finder = {NULL, NULL};
	TqTask task;

	*found = 0;
	for (int i = 0; i < n; i++)
	{
		if (tq_task_find_by_slug(&finder, &slugs[i], &task))
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
 * Locks the task, these required tasks, and their ancestors; returns the
 * required tasks for tq_dependency_add().
 */
static HTAB *
lock_all(const TqTaskDefinition *task, HTAB *batch_tasks,
		 const int64 *required, int n)
{
	int nlocked;
	int64 *locked = tq_dependencies_upstream(required, n, &nlocked);
	HTAB *externals;
	bool is_complete;

	do
	{
		int nseen = nlocked;
		int64 *ids = palloc(sizeof(int64) * (nlocked + 1));

		memcpy(ids, locked, sizeof(int64) * nlocked);
		ids[nlocked] = task->named.task.id;
		externals = tq_dependency_prepare(task, 1, batch_tasks, ids,
										  nlocked + 1);
		locked = tq_dependencies_upstream(required, n, &nlocked);
		if (index_of(locked, nlocked, task->named.task.id) >= 0)
			add_dependencies_refuse_cycle(&task->named.task, locked, nlocked,
										  required, n);
		is_complete = true;
		for (int i = 0; i < nlocked && is_complete; i++)
			is_complete = index_of(ids, nseen, locked[i]) >= 0;
	} while (!is_complete);
	return externals;
}

static void
refuse_state(const TqTask *task, const TqRun *last)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task \"%s\" takes no more dependencies",
					tq_slug_text(&task->task_id)),
			 errdetail("The task is %s.", tq_state_name(last->state)),
			 errhint("Only an unscheduled task can be given dependencies.")));
}

static void
refuse_number(const TqTaskDefinition *task, int n)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT),
		 errmsg("dependencies of task \"%s\" are too many",
				tq_slug_text(&task->named.task.task_id)),
		 errdetail(
			 "It has %d, would get %d more, and may have %d (tq.max_dependencies).",
			 task->ndependencies, n, tq_max_dependencies),
		 errhint("Let a task in between depend on some of them.")));
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
	required = find_ids(dependencies, n, &found);
	if (bsearch(&task->named.task.task_id, dependencies, n, sizeof(TqSlug),
				add_dependencies_compare_slugs) != NULL)
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
		refuse_number(task, added.ndependencies);
	if (added.ndependencies == 0)
		return;
	tq_dependency_add(&added, batch_tasks, externals);
	tq_task_add_dependencies(task->named.task.id, added.dependencies,
							 added.ndependencies);
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
