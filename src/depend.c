/*
 * depend.c
 *	  Dependencies: what a new task waits for, and what an end sets free.
 *
 * Room 4.  Follows spec/taskcluster.md section 4.  An edge is met by the first
 * run of the required task, from the edge's from_run on, that is completed, or
 * under all-resolved finally resolved; nothing is stored when that happens but
 * the dependent's smaller number of unmet edges.  A run that ends without
 * success counts as completed where the policy of its task tolerates or
 * forgives it (spec/policy.md 2, 8 C10).
 *
 * Why no end is missed:
 *	- A new task locks, shared, the row in which each unmet required task
 *	  stands, before it counts that task as unmet.  Whoever ends a required
 *	  task holds that row locked for update, and looks for edges afterwards,
 *	  with a new snapshot.  So either the new task waits and then sees the end,
 *	  or the end waits and then sees the new edge.
 *	- The last two required tasks of one dependent: both write the dependent's
 *	  row in unscheduled, so the second waits for the first and reads again.
 *
 * Order of locks inside one call: rows of pending, delayed and run by task id,
 * then rows of unscheduled by task id.  A dependent's id is greater than those
 * of what it depends on, so this is also the order of the graph; but for a
 * dependent that had its id, and then waited while what it depends on was
 * being created.  There the server may find a deadlock, and end one session.
 */
#include "rules.h"

/* A task that new ones require and that is not made by the same call. */
typedef struct Stranger
{
	TqSlug task_id;
	int64 id; /* 0: there is none */
	TimestampTz expires;
	int32 policy;
	bool is_locked; /* run tells where it stands, and will stand */
	TqRun run;
} Stranger;

/* ---- new tasks ---- */

/* Is this dependency of a new task made by the same call? */
static TqSibling *
new_sibling(const TqSlug *slug, HTAB *siblings)
{
	TqSibling *sibling = hash_search(siblings, slug, HASH_FIND, NULL);

	return sibling != NULL && sibling->is_new ? sibling : NULL;
}

/* Every stranger that these tasks name, each once. */
static HTAB *
collect_strangers(const TqTask *tasks, int n, HTAB *siblings)
{
	HASHCTL control = {.keysize = sizeof(TqSlug),
					   .entrysize = sizeof(Stranger),
					   .hcxt = CurrentMemoryContext};
	HTAB *strangers = hash_create("tq strangers",
								  256,
								  &control,
								  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	for (int i = 0; i < n; i++)
	{
		if (new_sibling(&tasks[i].task_id, siblings) == NULL)
			continue;
		for (int d = 0; d < tasks[i].ndependencies; d++)
		{
			const TqSlug *slug = &tasks[i].dependencies[d];
			bool found;
			Stranger *stranger;

			if (new_sibling(slug, siblings) != NULL)
				continue;
			stranger = hash_search(strangers, slug, HASH_ENTER, &found);
			stranger->id = 0;
			stranger->is_locked = false;
		}
	}
	return strangers;
}

/* Find the strangers; returns those that exist, in order of their ids. */
static Stranger **
find_strangers(HTAB *strangers, int *found)
{
	int n = hash_get_num_entries(strangers);
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));
	Stranger **in_order = palloc(sizeof(Stranger *) * Max(n, 1));
	HASH_SEQ_STATUS scan;
	Stranger *stranger;
	TqTask *tasks;
	int i = 0;

	*found = 0;
	if (n == 0)
		return in_order;
	hash_seq_init(&scan, strangers);
	while ((stranger = hash_seq_search(&scan)) != NULL)
		slugs[i++] = stranger->task_id;
	tasks = tq_tasks_by_slug(slugs, n, false, found);
	for (i = 0; i < *found; i++)
	{
		in_order[i] =
			hash_search(strangers, &tasks[i].task_id, HASH_FIND, NULL);
		in_order[i]->id = tasks[i].id;
		in_order[i]->expires = tasks[i].expires;
		in_order[i]->policy = tasks[i].policy;
	}
	return in_order;
}

static int
compare_strangers(const void *a, const void *b)
{
	int64 x = (*(Stranger *const *) a)->id;
	int64 y = (*(Stranger *const *) b)->id;

	return x < y ? -1 : x > y;
}

/*
 * Lock the strangers where they stand, leaving out those in unscheduled if so
 * told, which are for a second pass.  A completed one needs no lock: whatever
 * comes after, new tasks may count it as met.
 */
static void
lock_strangers(Stranger **strangers, int n, bool unscheduled_too)
{
	for (int i = 0; i < n; i++)
	{
		Stranger *stranger = strangers[i];
		bool is_there;

		if (stranger->is_locked || stranger->id == 0)
			continue;
		is_there = tq_run_peek(stranger->id, &stranger->run);
		if (is_there && stranger->run.place == TQ_PLACE_UNSCHEDULED &&
			!unscheduled_too)
			continue;
		stranger->is_locked =
			is_there &&
			(stranger->run.state == TQ_STATE_COMPLETED ||
			 tq_run_lock(stranger->id, TQ_LOCK_SHARE, &stranger->run));
		/* It has been deleted since it was found. */
		if (!stranger->is_locked)
			stranger->id = 0;
	}
}

/*
 * Find and lock all that these new tasks require, for tq_depend_track(); NULL
 * when that is nothing.  Once
 * for all of them, so that the order of locks is the same in every call.
 */
HTAB *
tq_depend_prepare(const TqTask *tasks, int n, HTAB *siblings)
{
	HTAB *strangers;
	Stranger **in_order;
	int found;
	int ndependencies = 0;

	for (int i = 0; i < n; i++)
		ndependencies += tasks[i].ndependencies;
	if (ndependencies == 0)
		return NULL;
	strangers = collect_strangers(tasks, n, siblings);
	in_order = find_strangers(strangers, &found);
	qsort(in_order, found, sizeof(Stranger *), compare_strangers);
	lock_strangers(in_order, found, false);
	lock_strangers(in_order, found, true);
	return strangers;
}

/* Every required task must exist, and live as long as it may be waited for (4.2). */
static void
check_required(const TqTask *task, HTAB *siblings, HTAB *strangers)
{
	StringInfoData missing;
	StringInfoData expiring;

	initStringInfo(&missing);
	initStringInfo(&expiring);
	for (int i = 0; i < task->ndependencies; i++)
	{
		const TqSlug *slug = &task->dependencies[i];
		TqSibling *sibling = new_sibling(slug, siblings);
		Stranger *stranger = hash_search(strangers, slug, HASH_FIND, NULL);

		if (sibling == NULL && stranger->id == 0)
			tq_error_list(&missing, ", ", tq_slug_text(slug));
		else if ((sibling ? sibling->task->expires : stranger->expires) <
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
			 missing.data,
			 expiring.data),
		 errhint(
			 "Create the tasks that it depends on first, or in the same call of create_tasks, and let them expire later.")));
}

/* Has this run, which is resolved, met those who want its task completed? */
static bool
counts_as_completed(const TqRun *run, int32 policy)
{
	return run->state == TQ_STATE_COMPLETED ||
		   (policy != 0 && tq_state_is_resolved(run->state) &&
			tq_policy_tolerates(tq_policy_get(policy), run->reason));
}

/* What a place says about an edge that is made now: is it met, and if not, by which run. */
static bool
judge(const TqRun *run, int32 policy, bool all_resolved, int32 *from_run)
{
	bool is_resolved = tq_state_is_resolved(run->state);
	bool is_met = counts_as_completed(run, policy) ||
				  (all_resolved && is_resolved);

	*from_run = Max(run->run_id, 0);
	if (is_resolved && !is_met)
		(*from_run)++;
	return is_met;
}

/*
 * Write the edges of a new task, and its row in unscheduled if any is not met;
 * returns whether that is so.  All tasks of the call have been inserted, and
 * their strangers prepared.
 */
bool
tq_depend_track(const TqTask *task, HTAB *siblings, HTAB *strangers)
{
	int n = task->ndependencies;
	int64 *required = palloc(sizeof(int64) * n);
	int64 *unmet = palloc(sizeof(int64) * n);
	int32 *from_run = palloc0(sizeof(int32) * n);
	int nunmet = 0;

	check_required(task, siblings, strangers);
	for (int i = 0; i < n; i++)
	{
		TqSibling *sibling = new_sibling(&task->dependencies[i], siblings);
		Stranger *stranger =
			hash_search(strangers, &task->dependencies[i], HASH_FIND, NULL);

		required[i] = sibling ? sibling->task->id : stranger->id;
		if (sibling != NULL || !stranger->is_locked ||
			!judge(&stranger->run,
				   stranger->policy,
				   task->all_resolved,
				   &from_run[i]))
			unmet[nunmet++] = required[i];
	}
	tq_edges_insert(task->id, required, from_run, n);
	if (nunmet > 0)
		tq_unscheduled_insert(task->id, unmet, nunmet, task->all_resolved);
	return nunmet > 0;
}

/* ---- the end of a task ---- */

/*
 * Without waiting for anybody: lock what the end of these tasks may touch in
 * unscheduled, and take the tasks out of the list for which another session is
 * in the way.  Returns how many are left.
 */
static int
try_lock(int64 *tasks, int n)
{
	int nnear;
	int nlocked;
	int nblocked;
	int nmissing = 0;
	int left = 0;
	int64 *near = tq_edges_dependents(tasks, n, &nnear);
	TqWaiting *locked = tq_unscheduled_try_lock(near, nnear, &nlocked);
	int64 *blocked;

	if (nlocked == nnear)
		return n;
	for (int i = 0; i < nnear; i++)
	{
		TqWaiting key = {.task = near[i], .share = -1};

		if (bsearch(&key,
					locked,
					nlocked,
					sizeof(TqWaiting),
					tq_compare_waiting) == NULL)
			near[nmissing++] = near[i];
	}
	blocked = tq_edges_required(tasks, n, near, nmissing, &nblocked);
	for (int i = 0; i < n; i++)
	{
		if (bsearch(&tasks[i],
					blocked,
					nblocked,
					sizeof(int64),
					tq_compare_ids) == NULL)
			tasks[left++] = tasks[i];
	}
	return left;
}

/*
 * Let those go, of tasks that are held, that are about to end for good while
 * another session holds a dependent: they are others' then.  is_final[] tells
 * which end so; NULL: all.
 */
void
tq_depend_drop_blocked(TqHeld *held, const bool *is_final)
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
	nfinals = try_lock(finals, nfinals);
	held->n = 0;
	for (int i = 0; i < n; i++)
	{
		int64 task = held->runs[i].task;
		bool is_free = next < nfinals && finals[next] == task;

		next += is_free;
		if (is_free || (is_final != NULL && !is_final[i]))
			tq_held_keep(held, i);
		else
			held->others[held->nothers++] = task;
	}
}

/*
 * Which earlier runs have met edges already: the last completed one, and the
 * last that was final, which is one that a rerun follows.
 */
static void
look_back(TqMet *met, const TqRun *runs, int n, const TqRun *final)
{
	for (int i = 1; i < n && runs[i].run_id <= final->run_id; i++)
	{
		if (runs[i].created != TQ_CREATED_RERUN)
			continue;
		met->previous_final = runs[i].run_id - 1;
		if (counts_as_completed(&runs[i - 1], final->policy))
			met->previous_completed = runs[i].run_id - 1;
	}
}

/*
 * The policy of a task: of one that was completed, its run may not say it
 * (resolve.c reads no more of a task than it needs).
 */
static int32
policy_of(int64 task)
{
	int found;
	TqTask *core = tq_tasks_core(&task, 1, &found);

	return found == 0 ? 0 : core->policy;
}

static TqMet *
what_is_met(const TqRun *finals, int n)
{
	TqMet *met = palloc(sizeof(TqMet) * n);

	for (int i = 0; i < n; i++)
	{
		met[i] = (TqMet){.required = finals[i].task,
						 .completed = counts_as_completed(&finals[i],
														  finals[i].policy),
						 .previous_completed = -1,
						 .previous_final = -1};
		if (finals[i].run_id > 0)
		{
			int found;
			TqRun *runs = tq_runs_history(&finals[i].task, 1, false, &found);
			TqRun final = finals[i];

			final.policy = policy_of(final.task);
			look_back(&met[i], runs, found, &final);
		}
	}
	return met;
}

/* Make tasks pending that have just left unscheduled. */
static void
schedule_free(TqTask *tasks, const bool *is_free, int n, TimestampTz now)
{
	TqTask **pending = palloc(sizeof(TqTask *) * n);
	TqMessage *messages = palloc(sizeof(TqMessage) * n);
	TqRun first = {.state = TQ_STATE_PENDING};
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		if (!is_free[i])
			continue;
		messages[count] =
			tq_publish_make(TQ_EXCHANGE_TASK_PENDING, &tasks[i], 0, &first);
		pending[count++] = &tasks[i];
	}
	tq_schedule_first(pending, false, count, now);
	tq_publish(messages, count);
}

/* Those on whose tasks others depend; most have nobody. */
static TqRun *
those_required(const TqRun *finals, int n, int *found)
{
	TqRun *required = palloc(sizeof(TqRun) * Max(n, 1));
	int64 *tasks = palloc(sizeof(int64) * Max(n, 1));
	bool *is_required = palloc(sizeof(bool) * Max(n, 1));

	for (int i = 0; i < n; i++)
		tasks[i] = finals[i].task;
	tq_edges_exist(tasks, n, is_required);
	*found = 0;
	for (int i = 0; i < n; i++)
	{
		if (is_required[i])
			required[(*found)++] = finals[i];
	}
	return required;
}

/*
 * These runs were the last of their tasks, and their rows are locked and
 * written: count down what waits for them, each dependent once, and schedule
 * what waits for nothing any more, but not past its deadline.
 */
void
tq_depend_release(const TqRun *finals, int n, TimestampTz now)
{
	int nmet;
	TqWaiting *met;
	TqTask *tasks;
	bool *may_free;
	bool *is_free;

	finals = those_required(finals, n, &n);
	if (n == 0)
		return;
	met = tq_edges_met(what_is_met(finals, n), n, &nmet);
	if (nmet == 0)
		return;
	tasks = palloc0(sizeof(TqTask) * nmet);
	may_free = palloc(sizeof(bool) * nmet);
	is_free = palloc(sizeof(bool) * nmet);
	for (int i = 0; i < nmet; i++)
		tasks[i].id = met[i].task;
	(void) tq_tasks_find_by_id(tasks, nmet);
	for (int i = 0; i < nmet; i++)
		may_free[i] = tasks[i].deadline >= now;
	tq_unscheduled_count_down(met, nmet, may_free, is_free);
	schedule_free(tasks, is_free, nmet, now);
}
