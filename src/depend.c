/*
 * depend.c
 *	  Dependencies: what a new task waits for, and what an end sets free.
 *
 * Room 4.  Follows spec/taskcluster.md section 4.  An edge is met by the first
 * run of the required task, from the edge's from_run on, that is completed, or
 * under all-resolved finally resolved; nothing is stored when that happens but
 * the dependent's smaller number of unmet edges.
 *
 * Why no end is missed:
 *	- A new task locks, shared, the row in which each unmet required task
 *	  stands, before it counts that task as unmet.  Whoever ends a required
 *	  task holds that row locked for update, and looks for edges afterwards,
 *	  with a new snapshot.  So either the new task waits and then sees the end,
 *	  or the end waits and then sees the new edge.
 *	- The last two required tasks of one dependent: both count down under the
 *	  lock of the dependent's row in unscheduled, so the second sees the first.
 *
 * Order of locks inside one call: rows of pending, delayed and run by task id,
 * then rows of unscheduled by task id.  As ids of dependents are greater than
 * those of what they depend on, this is also the order of the graph.
 */
#include "rules.h"

/* One required task of a new one. */
typedef struct Required
{
	TqSlug slug;
	int64 id; /* 0: there is none */
	TimestampTz expires;
	bool is_new; /* made by the same call */
	bool is_judged;
	bool is_met;
	int from_run;
} Required;

/* ---- a new task ---- */

/* Required tasks of the same call are known; the others are yet to be read. */
static int
collect_siblings(const TqTask *task, HTAB *siblings, Required *required,
				 TqSlug *strangers)
{
	int nstrangers = 0;

	for (int i = 0; i < task->ndependencies; i++)
	{
		TqSibling *sibling =
			hash_search(siblings, &task->dependencies[i], HASH_FIND, NULL);

		memset(&required[i], 0, sizeof(Required));
		required[i].slug = task->dependencies[i];
		if (sibling != NULL)
		{
			required[i].id = sibling->task->id;
			required[i].expires = sibling->task->expires;
			required[i].is_new = sibling->is_new;
		}
		else
			strangers[nstrangers++] = task->dependencies[i];
	}
	return nstrangers;
}

/* Strangers are found in the order in which they were asked for. */
static void
collect_strangers(Required *required, int n, const TqSlug *strangers,
				  int nstrangers)
{
	int found;
	TqTask *tasks = tq_tasks_by_slug(strangers, nstrangers, false, &found);
	int next = 0;

	for (int i = 0; i < n && next < found; i++)
	{
		if (required[i].id == 0 &&
			tq_slug_compare(&required[i].slug, &tasks[next].task_id) == 0)
		{
			required[i].id = tasks[next].id;
			required[i].expires = tasks[next].expires;
			next++;
		}
	}
}

static void
append_slug(StringInfo list, const TqSlug *slug)
{
	if (list->len > 1000)
	{
		if (list->data[list->len - 1] != '.')
			appendStringInfoString(list, ", ...");
		return;
	}
	appendStringInfo(list,
					 "%s%s",
					 list->len > 0 ? ", " : "",
					 tq_slug_text(slug));
}

/* Every required task must exist, and live as long as it may be waited for (4.2). */
static void
check_required(const TqTask *task, const Required *required, int n)
{
	StringInfoData missing;
	StringInfoData expiring;

	initStringInfo(&missing);
	initStringInfo(&expiring);
	for (int i = 0; i < n; i++)
	{
		if (required[i].id == 0)
			append_slug(&missing, &required[i].slug);
		else if (required[i].expires < task->deadline)
			append_slug(&expiring, &required[i].slug);
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
			 missing.data,
			 expiring.data),
		 errhint(
			 "Create the tasks that it depends on first, or in the same call of create_tasks, and let them expire later.")));
}

static int
compare_required(const void *a, const void *b)
{
	int64 x = ((const Required *) a)->id;
	int64 y = ((const Required *) b)->id;

	return x < y ? -1 : x > y;
}

/* What a place says about an edge that is made now. */
static void
judge(Required *required, const TqRun *run, bool all_resolved)
{
	bool is_resolved = tq_state_is_resolved(run->state);

	required->is_judged = true;
	required->is_met = run->state == TQ_STATE_COMPLETED ||
					   (all_resolved && is_resolved);
	required->from_run = Max(run->run_id, 0);
	if (is_resolved && !required->is_met)
		required->from_run++;
}

/*
 * Judge the required tasks, leaving out those that stand in unscheduled if so
 * told, which are for a second pass.  One that is met stays so whatever comes
 * after, and needs no lock.
 */
static void
lock_and_judge(Required *required, int n, bool all_resolved,
			   bool unscheduled_too)
{
	for (int i = 0; i < n; i++)
	{
		TqRun run;

		if (required[i].is_new || required[i].is_judged ||
			!tq_run_peek(required[i].id, &run) ||
			(run.place == TQ_PLACE_UNSCHEDULED && !unscheduled_too))
			continue;
		judge(&required[i], &run, all_resolved);
		if (!required[i].is_met &&
			tq_run_lock(required[i].id, TQ_LOCK_SHARE, &run))
			judge(&required[i], &run, all_resolved);
	}
}

static void
write_edges(const TqTask *task, const Required *required, int n)
{
	int64 *ids = palloc(sizeof(int64) * n);
	int32 *from_runs = palloc(sizeof(int32) * n);

	for (int i = 0; i < n; i++)
	{
		ids[i] = required[i].id;
		from_runs[i] = required[i].from_run;
	}
	tq_edges_insert(task->id, ids, from_runs, n);
}

/*
 * Write the edges of a new task and return how many are not met.  Its siblings
 * have been inserted.  A sibling that existed before is like any other task.
 */
int
tq_depend_track(const TqTask *task, HTAB *siblings)
{
	int n = task->ndependencies;
	Required *required = palloc(sizeof(Required) * n);
	TqSlug *strangers = palloc(sizeof(TqSlug) * n);
	int nstrangers = collect_siblings(task, siblings, required, strangers);
	int unmet = 0;

	if (nstrangers > 0)
		collect_strangers(required, n, strangers, nstrangers);
	check_required(task, required, n);
	qsort(required, n, sizeof(Required), compare_required);
	lock_and_judge(required, n, task->all_resolved, false);
	lock_and_judge(required, n, task->all_resolved, true);
	write_edges(task, required, n);
	for (int i = 0; i < n; i++)
		unmet += !required[i].is_met;
	return unmet;
}

/* ---- the end of a task ---- */

/*
 * Which earlier runs have met edges already: the last completed one, and the
 * last that was final, which is one that a rerun follows.
 */
static void
look_back(TqMet *met, const TqRun *runs, int n, int run_id)
{
	for (int i = 0; i < n; i++)
	{
		if (runs[i].task != met->required || runs[i].run_id > run_id)
			continue;
		if (runs[i].state == TQ_STATE_COMPLETED && runs[i].run_id < run_id)
			met->previous_completed = Max(met->previous_completed,
										  runs[i].run_id);
		if (runs[i].created == TQ_CREATED_RERUN)
			met->previous_final = Max(met->previous_final, runs[i].run_id - 1);
	}
}

static TqMet *
what_is_met(const TqRun *finals, int n)
{
	TqMet *met = palloc(sizeof(TqMet) * n);

	for (int i = 0; i < n; i++)
	{
		met[i] = (TqMet){.required = finals[i].task,
						 .completed = finals[i].state == TQ_STATE_COMPLETED,
						 .previous_completed = -1,
						 .previous_final = -1};
		if (finals[i].run_id > 0)
		{
			int found;
			TqRun *runs = tq_runs_history(&finals[i].task, 1, &found);

			look_back(&met[i], runs, found, finals[i].run_id);
		}
	}
	return met;
}

/* Make tasks pending whose last edge was met, but not past their deadline. */
static void
schedule_free(const int64 *ids, int n, TimestampTz now)
{
	int found;
	TqTask *tasks = tq_tasks_by_id(ids, n, &found);
	TqPending *pending = palloc0(sizeof(TqPending) * Max(found, 1));
	int64 *scheduled = palloc(sizeof(int64) * Max(found, 1));
	int count = 0;

	for (int i = 0; i < found; i++)
	{
		if (tasks[i].deadline < now)
			continue;
		scheduled[count] = tasks[i].id;
		pending[count++] = (TqPending){.task = tasks[i].id,
									   .queue = tasks[i].queue,
									   .priority = tasks[i].priority,
									   .run_id = 0,
									   .retries_left = tasks[i].retries,
									   .created = TQ_CREATED_SCHEDULED,
									   .scheduled = now};
	}
	tq_unscheduled_delete(scheduled, count);
	tq_pending_insert(pending, count);
}

static int
compare_waiting(const void *a, const void *b)
{
	int64 x = ((const TqWaiting *) a)->task;
	int64 y = ((const TqWaiting *) b)->task;

	return x < y ? -1 : x > y;
}

/*
 * These runs were the last of their tasks, and their rows are locked and
 * written: count down what waits for them, each dependent once, and schedule
 * what waits for nothing any more.
 */
void
tq_depend_release(const TqRun *finals, int n, TimestampTz now)
{
	int nmet;
	int nlocked;
	TqWaiting *met;
	TqWaiting *locked;
	int64 *ids;
	int32 *by;
	int64 *free_ids;
	int nfree = 0;

	if (n == 0)
		return;
	met = tq_edges_met(what_is_met(finals, n), n, &nmet);
	if (nmet == 0)
		return;
	ids = palloc(sizeof(int64) * nmet);
	by = palloc(sizeof(int32) * nmet);
	free_ids = palloc(sizeof(int64) * nmet);
	for (int i = 0; i < nmet; i++)
		ids[i] = met[i].task;
	locked = tq_unscheduled_lock(ids, nmet, &nlocked);
	for (int i = 0; i < nlocked; i++)
	{
		TqWaiting *waiting =
			bsearch(&locked[i], met, nmet, sizeof(TqWaiting), compare_waiting);

		ids[i] = locked[i].task;
		by[i] = waiting->unmet;
		if (locked[i].unmet == by[i])
			free_ids[nfree++] = locked[i].task;
	}
	tq_unscheduled_count_down(ids, by, nlocked);
	if (nfree > 0)
		schedule_free(free_ids, nfree, now);
}
