/*
 * create.c
 *	  Creates tasks: one or many, all or none (doc/spec/taskcluster.md 2.1,
 *	  2.2).
 *
 * Decides in which order the tasks of one call get their ids, what an existing
 * task of the same id means, and which rows a new task needs: its definition,
 * its dependencies, a row in unscheduled or a first run, and the timer of its
 * deadline.  definition.c decides what a definition may contain, dependency.c
 * what a task waits for, group.c which group it may join, and transition.c how
 * its first run becomes pending.
 *
 * Two sessions that create the same task meet at the unique index on task_id:
 * the second waits for the first, then finds the task and compares it with its
 * own.
 *
 * One call takes its locks in this order: queues by name, policies, unique keys
 * by queue and key, groups by slug, task_id by slug, then the required tasks.
 * The id of a task is greater than the ids of the tasks that it depends on.
 *
 * A task whose unique key another task holds is left out after the keys were
 * locked, as if it were not given, and gets the id of that other task.
 */
#include "postgres.h"

#include "lib/qunique.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

#include "lifecycle.h"

/*
 * Returns a hash table of the tasks of this call by their task ids, and sets
 * batch[] to their entries.  Raises an error if two tasks have the same id.
 *
 * Only dependencies are looked up in it.  So it is NULL for a single task without
 * any: to make it would be 1 % of the instructions of that call.
 */
static HTAB *
index_by_slug(const TqTaskDefinition *tasks, int n, TqBatchTask **batch)
{
	HASHCTL control = {.keysize = sizeof(TqSlug),
					   .entrysize = sizeof(TqBatchTask),
					   .hcxt = CurrentMemoryContext};
	HTAB *batch_tasks;

	if (n == 1 && tasks[0].ndependencies == 0)
	{
		batch[0] = palloc(sizeof(TqBatchTask));
		*batch[0] = (TqBatchTask){.task_id = tasks[0].named.task.task_id,
								  .task = &tasks[0].named.task};
		return NULL;
	}
	batch_tasks = hash_create("tq siblings", n, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (int i = 0; i < n; i++)
	{
		const TqTask *task = &tasks[i].named.task;
		bool found;
		TqBatchTask *batch_task = hash_search(batch_tasks, &task->task_id,
											  HASH_ENTER, &found);

		if (found)
			ereport(ERROR,
					(errcode(ERRCODE_TQ_BAD_INPUT),
					 errmsg("task \"%s\" is given twice",
							tq_slug_text(&task->task_id)),
					 errdetail("Elements %d and %d have that id.",
							   batch_task->index + 1, i + 1),
					 errhint(
						 "Give every task of one call an id of its own.")));
		batch_task->index = i;
		batch_task->is_new = false;
		batch_task->is_pending = false;
		batch_task->task = task;
		batch[i] = batch_task;
	}
	return batch_tasks;
}

/* ---- order ---- */

/*
 * Returns the task of the same call that a dependency names, or NULL if the
 * dependency is on the task itself or on a task outside of the call.
 */
static TqBatchTask *
batch_task_of(const TqTaskDefinition *definition, int dependency,
			  HTAB *batch_tasks)
{
	const TqSlug *slug = &definition->dependencies[dependency];

	if (tq_slug_compare(slug, &definition->named.task.task_id) == 0)
		return NULL;
	return hash_search(batch_tasks, slug, HASH_FIND, NULL);
}

/*
 * Raises the error that names a cycle among the tasks that are still blocked.
 */
static void
create_refuse_cycle(const TqTaskDefinition *tasks, const int *blocked_by,
					int start, int n, HTAB *batch_tasks)
{
	StringInfoData names;
	bool *seen = palloc0(sizeof(bool) * n);
	int at = start;
	int first;

	/*
	 * Follow blocked dependencies until a task comes up twice: that task is on
	 * a cycle.  The second round starts there, and so lists the cycle only.
	 */
	for (int round = 0; round < 2; round++)
	{
		first = at;
		initStringInfo(&names);
		memset(seen, 0, sizeof(bool) * n);
		while (!seen[at])
		{
			int next = at;

			seen[at] = true;
			tq_error_list(&names, ", which depends on ",
						  tq_slug_text(&tasks[at].named.task.task_id));
			for (int d = 0; d < tasks[at].ndependencies; d++)
			{
				TqBatchTask *batch_task = batch_task_of(&tasks[at], d,
														batch_tasks);

				if (batch_task != NULL && blocked_by[batch_task->index] > 0)
					next = batch_task->index;
			}
			at = next;
		}
	}
	tq_error_list(&names, ", which depends on ",
				  tq_slug_text(&tasks[first].named.task.task_id));
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("tasks depend on each other in a cycle"),
					errdetail("Task %s.", names.data),
					errhint("Take one of these dependencies away.")));
}

/*
 * Returns the indexes of the tasks with each required task before its
 * dependents, otherwise in the given order.  This is Kahn's algorithm, which
 * keeps the dependents of each task in a list.
 */
static int *
sort_by_dependency(const TqTaskDefinition *tasks, int n, HTAB *batch_tasks)
{
	int *order = palloc(sizeof(int) * n);
	int *blocked_by = palloc0(sizeof(int) * n);
	List **dependents = palloc0(sizeof(List *) * n);
	int filled = 0;

	for (int i = 0; i < n; i++)
	{
		for (int d = 0; d < tasks[i].ndependencies; d++)
		{
			TqBatchTask *batch_task = batch_task_of(&tasks[i], d, batch_tasks);

			if (batch_task == NULL)
				continue;
			blocked_by[i]++;
			dependents[batch_task->index] =
				lappend_int(dependents[batch_task->index], i);
		}
		if (blocked_by[i] == 0)
			order[filled++] = i;
	}
	for (int done = 0; done < filled; done++)
	{
		ListCell *cell;

		foreach(cell, dependents[order[done]])
		{
			if (--blocked_by[lfirst_int(cell)] == 0)
				order[filled++] = lfirst_int(cell);
		}
	}
	for (int i = 0; i < n && filled < n; i++)
	{
		if (blocked_by[i] > 0)
			create_refuse_cycle(tasks, blocked_by, i, n, batch_tasks);
	}
	return order;
}

/* ---- repeats ---- */

/* Returns the names of the keys in which two definitions differ. */
static char *
differences(Jsonb *a, Jsonb *b)
{
	StringInfoData names;
	JsonbIterator *it = JsonbIteratorInit(&a->root);
	JsonbIteratorToken token;
	JsonbValue key;

	initStringInfo(&names);
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		JsonbValue *x;
		JsonbValue *y;

		if (token != WJB_KEY)
			continue;
		x = getKeyJsonValueFromContainer(&a->root, key.val.string.val,
										 key.val.string.len, NULL);
		y = getKeyJsonValueFromContainer(&b->root, key.val.string.val,
										 key.val.string.len, NULL);
		if (y == NULL ||
			compareJsonbContainers(&JsonbValueToJsonb(x)->root,
								   &JsonbValueToJsonb(y)->root) != 0)
			appendStringInfo(&names, "%s\"%.*s\"", names.len > 0 ? ", " : "",
							 key.val.string.len, key.val.string.val);
	}
	return names.data;
}

/*
 * Returns whether the payload of a stored task was dropped when it was
 * completed, so that it is not known which it was.
 */
static bool
was_payload_dropped(const TqTaskDefinition *stored)
{
	const TqTask *task = &stored->named.task;
	TqRun run;

	return task->policy != 0 && JB_ROOT_COUNT(stored->payload) == 0 &&
		   tq_policy_get(task->policy)->drop_payload &&
		   tq_run_peek(task->id, &run) && run.state == TQ_STATE_COMPLETED;
}

/*
 * Replaces what the default policy of its queue gave to a task by what it gave
 * to the stored one: it may have changed since.
 */
static void
take_defaults(TqTaskDefinition *given, const TqTask *stored)
{
	if (!tq_policy_has_default(given->given_policy) &&
		!tq_policy_has_default(tq_policy_json(stored->policy)))
		return;
	if (!given->has_own_retries)
		given->named.task.retries = stored->retries;
	if (!given->has_own_delay)
		given->named.task.delay = stored->delay;
}

/*
 * Returns true if the stored task has an equal definition although its row
 * differs, and copies its core to the new task.  Returns false if the task
 * no longer exists.  Raises an error if the definitions differ.
 */
static bool
adopt_equal(TqTaskDefinition *definition, TqRepeat repeat)
{
	TqTask *task = &definition->named.task;
	TqTaskDefinition *existing = tq_definition_by_slug(&task->task_id);
	TqTaskDefinition given = *definition;
	Jsonb *old;
	Jsonb *new;

	if (existing == NULL)
		return false;
	if (repeat == TQ_REPEAT_LATER)
	{
		const TqTask *stored = &existing->named.task;

		given.named.task.created = stored->created;
		given.named.task.defined_deadline = stored->defined_deadline;
		given.named.task.expires = stored->expires;
	}
	else if (existing->named.task.deadline >
				 existing->named.task.defined_deadline &&
			 existing->named.task.expires > given.named.task.expires)
		given.named.task.expires = existing->named.task.expires;
	if (given.run_at != 0)
		given.named.task.delay =
			tq_policy_delay_until(existing->named.task.created, given.run_at);
	take_defaults(&given, &existing->named.task);
	if (was_payload_dropped(existing))
		given.payload = existing->payload;
	old = tq_definition_json(existing);
	new = tq_definition_json(&given);
	if (compareJsonbContainers(&old->root, &new->root) != 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task \"%s\" exists with another definition",
					tq_slug_text(&task->task_id)),
			 tq_may_read("status", &task->task_id, existing->named.queue_name)
				 ? errdetail("These differ: %s.", differences(old, new))
				 : errdetail("The caller has no right to see it."),
			 errhint(
				 "Use a new task id, or send the definition that was sent first.")));
	*task = existing->named.task;
	return true;
}

/*
 * Like adopt_equal(), in a memory context of its own, so that the memory
 * needed does not grow with the number of tasks that exist already.
 */
static bool
adopt_equal_in_scratch(TqTaskDefinition *definition, TqRepeat repeat)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
												  "tq repeated task",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(scratch);
	bool exists = adopt_equal(definition, repeat);

	MemoryContextSwitchTo(outer);
	MemoryContextDelete(scratch);
	return exists;
}

static bool
has_keys(const TqTaskDefinition *definition)
{
	for (int kind = 0; kind < TQ_KEYS; kind++)
	{
		if (definition->keys[kind] != NULL)
			return true;
	}
	return false;
}

/*
 * Replaces the new task by the existing one of the same id, which must be
 * equal.  Returns false if the existing task has been deleted meanwhile; then
 * *stored is NULL, so that the next comparison begins a new scan.
 */
static bool
adopt_existing(TqStored **stored, TqTaskDefinition *definition,
			   TqRepeat repeat)
{
	if (*stored == NULL)
		*stored = tq_stored_begin();
	switch (tq_stored_match(*stored, definition, repeat == TQ_REPEAT_EXACT))
	{
		case TQ_MATCH_SAME:
			/* the rows do not say which keys the tasks have */
			if (!has_keys(definition) ||
				adopt_equal_in_scratch(definition, repeat))
				return true;
			break;
		case TQ_MATCH_DIFFERS:
			if (adopt_equal_in_scratch(definition, repeat))
				return true;
			break;
		case TQ_MATCH_NONE:
			break;
	}
	tq_stored_end(*stored);
	*stored = NULL;
	return false;
}

/* ---- writing ---- */

/* Comparisons of two indexes into an array of tasks, the third argument. */

static const TqTaskDefinition *
task_at(const void *tasks, const void *index)
{
	return (const TqTaskDefinition *) tasks + *(const int *) index;
}

static int
compare_group(const void *a, const void *b, void *tasks)
{
	return tq_slug_compare(&task_at(tasks, a)->named.group_slug,
						   &task_at(tasks, b)->named.group_slug);
}

static int
create_compare_slug(const void *a, const void *b, void *tasks)
{
	return tq_slug_compare(&task_at(tasks, a)->named.task.task_id,
						   &task_at(tasks, b)->named.task.task_id);
}

static int *
positions_sorted(const TqTaskDefinition *tasks, int n,
				 qsort_arg_comparator compare)
{
	int *positions = palloc(sizeof(int) * n);

	for (int i = 0; i < n; i++)
		positions[i] = i;
	qsort_arg(positions, n, sizeof(int), compare,
			  unconstify(TqTaskDefinition *, tasks));
	return positions;
}

static bool
is_in_own_group(const TqNamedTask *named)
{
	return tq_slug_compare(&named->group_slug, &named->task.task_id) == 0;
}

/* The tasks of one group in a call. */
typedef struct Span
{
	/* one that is not named like the group; NULL: none */
	const TqNamedTask *joining;
	TimestampTz latest; /* latest expiry of those */
	bool cancels;       /* may the policy of one cancel the group */
	bool has_own;       /* is the task of that name among them */
} Span;

static void
add_to_span(Span *span, const TqNamedTask *named)
{
	if (is_in_own_group(named))
	{
		span->has_own = true;
		return;
	}
	if (span->joining != NULL &&
		strcmp(span->joining->scheduler_id, named->scheduler_id) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("tasks of one group must have one schedulerId"),
				 errdetail("Group \"%s\" is given \"%s\" and \"%s\".",
						   tq_slug_text(&span->joining->group_slug),
						   span->joining->scheduler_id, named->scheduler_id),
				 errhint("Use one schedulerId, or another taskGroupId.")));
	span->joining = named;
	span->latest = Max(span->latest, tq_group_until(named->task.expires,
													named->task.created));
	span->cancels |= tq_group_is_canceled_by(&named->task);
}

static bool
is_any_joining(const TqTaskDefinition *tasks, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (!is_in_own_group(&tasks[i].named))
			return true;
	}
	return false;
}

/*
 * Returns whether the advisory locks of the groups of these tasks, which are in
 * order of their groups, fit into the lock table (group_table.c).
 *
 * A group whose only new task is the one that it is named after needs a lock
 * only because the call joins other groups: without the lock, two such calls
 * could each wait for the task of the other.
 */
static bool
groups_fit_locks(TqTaskDefinition *tasks, const int *positions, int n)
{
	int groups = 1;

	for (int i = 1; i < n; i++)
		groups += compare_group(&positions[i - 1], &positions[i], tasks) != 0;
	return tq_groups_fit_locks(groups);
}

/*
 * Locks and joins the groups of these tasks, in order of their slugs and each
 * once for all its tasks in this call.
 */
static void
join_groups(TqTaskDefinition *tasks, int n)
{
	int *positions = positions_sorted(tasks, n, compare_group);
	bool locks_fit = groups_fit_locks(tasks, positions, n);
	int end;

	for (int start = 0; start < n; start = end)
	{
		Span span = {0};
		int64 id;

		for (end = start;
			 end < n &&
			 compare_group(&positions[start], &positions[end], tasks) == 0;
			 end++)
			add_to_span(&span, &tasks[positions[end]].named);
		if (locks_fit)
			tq_group_lock(&tasks[positions[start]].named.group_slug,
						  span.has_own);
		if (span.joining == NULL)
			continue;
		id = tq_group_join(span.joining, span.latest, span.cancels,
						   !locks_fit);
		for (int i = start; i < end; i++)
		{
			TqNamedTask *named = &tasks[positions[i]].named;

			if (!is_in_own_group(named))
				named->task.group_id = id;
		}
	}
}

static int
create_compare_queue(const void *a, const void *b, void *tasks)
{
	return strcmp(task_at(tasks, a)->named.queue_name,
				  task_at(tasks, b)->named.queue_name);
}

static int
compare_policy(const void *a, const void *b, void *tasks)
{
	const Jsonb *x = task_at(tasks, a)->given_policy;
	const Jsonb *y = task_at(tasks, b)->given_policy;

	if (x == NULL || y == NULL)
		return (x != NULL) - (y != NULL);
	if (VARSIZE(x) != VARSIZE(y))
		return VARSIZE(x) < VARSIZE(y) ? -1 : 1;
	return memcmp(x, y, VARSIZE(x));
}

/*
 * Looks up or inserts the policies, in an order that is the same in every
 * call, for the same reason.
 */
static void
intern_policies(TqTaskDefinition *tasks, int n)
{
	int *positions = positions_sorted(tasks, n, compare_policy);
	Oid creator = tq_access_creator();

	for (int i = 0; i < n; i++)
	{
		TqTaskDefinition *definition = &tasks[positions[i]];

		if (definition->given_policy != NULL)
			definition->named.task.policy =
				tq_policy_intern(definition->given_policy, creator);
	}
}

/*
 * Inserts the definitions, in order of task_id, so that two calls cannot
 * deadlock, and returns how many were new.  A task that exists already
 * replaces the given one; if it is deleted before it could be read, the given
 * one is inserted after all.
 */
static int64
insert_tasks(TqTaskDefinition *tasks, int n, TqRepeat repeat,
			 TqBatchTask **batch)
{
	int *positions = positions_sorted(tasks, n, create_compare_slug);
	const TqTaskDefinition **sorted = palloc(sizeof(TqTaskDefinition *) * n);
	bool *is_new = palloc(sizeof(bool) * n);
	TqStored *stored = NULL;
	int64 created = 0;
	int own = 0;

	for (int i = 0; i < n; i++)
		sorted[i] = &tasks[positions[i]];
	tq_tasks_insert(sorted, n, is_new);
	for (int i = 0; i < n; i++)
	{
		TqTaskDefinition *definition = &tasks[positions[i]];

		while (!is_new[i] && !adopt_existing(&stored, definition, repeat))
			tq_tasks_insert(&sorted[i], 1, &is_new[i]);
		batch[positions[i]]->is_new = is_new[i];
		definition->is_derived = definition->is_derived && is_new[i];
		/*
		 * No other session can know an id that this call has just generated,
		 * so such a task needs no check of its group.
		 */
		if (is_in_own_group(&definition->named) && !definition->has_own_id)
			sorted[own++] = definition;
		created += is_new[i];
	}
	if (stored != NULL)
		tq_stored_end(stored);
	if (own > 0)
		tq_groups_check_own(sorted, own);
	return created;
}

/* Inserts the keys of the new tasks. */
static void
insert_keys(const TqTaskDefinition *tasks, int n, TqBatchTask *const *batch)
{
	TqKeyOfTask *keys = NULL;
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		for (int kind = 0; kind < TQ_KEYS; kind++)
		{
			if (tasks[i].keys[kind] == NULL || !batch[i]->is_new)
				continue;
			if (keys == NULL)
				keys = palloc(sizeof(TqKeyOfTask) * n * TQ_KEYS);
			keys[count++] = (TqKeyOfTask){.task = tasks[i].named.task.id,
										  .kind = (TqTaskKey) kind,
										  .key = tasks[i].keys[kind]};
		}
	}
	if (count > 0)
		tq_task_keys_insert(keys, count);
}

/*
 * Inserts the timers of the effective deadlines of the new tasks that have one;
 * leaves that of a single task to the publisher.
 */
static void
set_deadlines(const TqTaskDefinition *tasks, int n, TqBatchTask **batch,
			  TqOutboxBatch *outbox, TimestampTz now)
{
	TqTimerEntry *entries = palloc(sizeof(TqTimerEntry) * n);
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		const TqTask *task = &tasks[i].named.task;
		TimestampTz due = tq_clock_add_ms(task->deadline, tq_deadline_delay);

		if (batch[i]->is_new && !TIMESTAMP_IS_NOEND(due))
			entries[count++] = (TqTimerEntry){due, task->id};
	}
	if (n > 1 || count == 0 ||
		!tq_outbox_leave_timer(outbox, TQ_EXCHANGE_TASK_DEFINED,
							   entries[0].due, now))
		tq_timers_insert(TQ_TIMER_DEADLINE, entries, count);
}

/*
 * Marks those existing tasks whose first run is still pending, so that
 * task-pending is appended again for them.
 */
static void
find_pending_runs(TqBatchTask *const *batch, int n)
{
	TqBatchTask **existing = palloc(sizeof(TqBatchTask *) * n);
	int64 *ids = palloc(sizeof(int64) * n);
	bool *are_first = palloc(sizeof(bool) * n);
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		if (batch[i]->is_new)
			continue;
		ids[count] = batch[i]->task->id;
		existing[count++] = batch[i];
	}
	if (!tq_outbox_is_wanted(TQ_EXCHANGE_TASK_PENDING))
		return;
	tq_pending_are_first(ids, count, are_first);
	for (int i = 0; i < count; i++)
		existing[i]->is_pending = are_first[i];
}

/* Raises TQ409 if the new tasks are too many for their queues. */
static void
check_limits(const TqTaskDefinition *tasks, int n, TqBatchTask *const *batch,
			 const TqTransitions *transitions)
{
	const TqTask **created = palloc(sizeof(TqTask *) * n);
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		if (batch[i]->is_new)
			created[count++] = &tasks[i].named.task;
	}
	tq_limits_check_creation(created, count, transitions->starts,
							 transitions->nstarts, transitions->now);
}

/* Tasks of the call that are not created. */
typedef struct LeftOut
{
	TqUnique *unique;
	HTAB *batch_tasks; /* all tasks of the call */
} LeftOut;

/*
 * Raises TQ409 for a new task that depends on a task of the call that is not
 * created.  It does not depend on the other task in its place: then its
 * definition would not be the one that was given.
 */
static void
check_left_out(const TqTaskDefinition *tasks, int n, TqBatchTask *const *batch,
			   const LeftOut *left_out)
{
	for (int i = 0; i < n; i++)
	{
		for (int d = 0; d < tasks[i].ndependencies && batch[i]->is_new; d++)
		{
			const TqSlug *slug = &tasks[i].dependencies[d];
			TqBatchTask *required = hash_search(left_out->batch_tasks, slug,
												HASH_FIND, NULL);

			if (required == NULL ||
				!tq_unique_is_met(left_out->unique, required->index))
				continue;
			ereport(
				ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("task \"%s\" depends on a task that is not created",
						tq_slug_text(&tasks[i].named.task.task_id)),
				 errdetail("Another task holds the unique key of task \"%s\".",
						   tq_slug_text(slug)),
				 errhint(
					 "Create that one first, and depend on the id that tq.enqueue() returns.")));
		}
	}
}

/* Raises 53400 if the new tasks are too many for the role in their queues. */
static void
check_quotas(const TqTaskDefinition *tasks, int n, TqBatchTask *const *batch)
{
	int64 *queues;
	int count = 0;
	int64 made = 0;

	if (n == 1)
	{
		tq_quota_check_queue(tasks->named.task.queue,
							 1 + tasks->ndependencies);
		return;
	}
	queues = palloc(sizeof(int64) * n);
	for (int i = 0; i < n; i++)
	{
		if (!batch[i]->is_new)
			continue;
		queues[count++] = tasks[i].named.task.queue;
		made += 1 + tasks[i].ndependencies;
	}
	qsort(queues, count, sizeof(int64), tq_compare_ids);
	count = (int) qunique(queues, count, sizeof(int64), tq_compare_ids);
	for (int i = 0; i < count; i++)
		tq_quota_check_queue((int32) queues[i], made);
}

/*
 * Writes the dependencies of each new task, its row in unscheduled or its
 * pending run, and the timer of its deadline.  Appends task-defined and, for
 * pending tasks, task-pending. Tasks that existed already get their messages
 * again, because a client that repeats a call may not know the outcome of the
 * first one.
 */
static void
position_tasks(TqTaskDefinition *tasks, const int *order, int n,
			   HTAB *batch_tasks, TqBatchTask **batch, int64 created,
			   const TqUnique *unique, TimestampTz now)
{
	int nreplaced = 0;
	const int64 *replaced = unique != NULL
								? tq_unique_to_replace(unique, &nreplaced)
								: NULL;
	HTAB *externals = tq_dependency_prepare(tasks, n, batch_tasks, replaced,
											nreplaced);
	TqTransitions transitions = {.now = now, .n = n};

	if (created < n)
		find_pending_runs(batch, n);
	for (int i = 0; i < n; i++)
	{
		TqTaskDefinition *definition = &tasks[order[i]];
		TqTask *task = &definition->named.task;
		TqRun first = {.run_id = 0, .state = TQ_STATE_PENDING};

		tq_outbox_add_run(&transitions.outbox, task, NULL, NULL);
		if (batch[order[i]]->is_pending)
			tq_outbox_add_run(&transitions.outbox, task, &first, &first);
		if (!batch[order[i]]->is_new)
			continue;
		definition->location =
			definition->ndependencies > 0 &&
					tq_dependency_track(definition, batch_tasks, externals)
				? TQ_LOCATION_UNSCHEDULED
				: TQ_LOCATION_PENDING;
		if (definition->location == TQ_LOCATION_PENDING)
			tq_transition_start_first(&transitions, task, true);
		else
			tq_count_unscheduled(task);
		tq_count_created(task);
	}
	if (tq_queue_settings_exist())
		check_limits(tasks, n, batch, &transitions);
	set_deadlines(tasks, n, batch, &transitions.outbox, now);
	transitions.outbox.is_derived = n == 1 && tasks->is_derived;
	tq_transitions_finish(&transitions);
	if (created > 0)
		check_quotas(tasks, n, batch);
}

/* Checks the size of each group that new tasks have joined. */
static void
check_groups(const TqTaskDefinition *tasks, int n, TqBatchTask *const *batch)
{
	int *positions = positions_sorted(tasks, n, compare_group);
	int64 checked = 0;

	for (int i = 0; i < n; i++)
	{
		const TqNamedTask *named = &tasks[positions[i]].named;

		if (!batch[positions[i]]->is_new || is_in_own_group(named) ||
			named->task.group_id == checked)
			continue;
		tq_group_check_size(named);
		checked = named->task.group_id;
	}
}

/*
 * Creates tasks whose queues and policies are known, and returns how many are
 * new.
 */
static int64
create_all(TqTaskDefinition *tasks, const int *order, int n, HTAB *batch_tasks,
		   TqBatchTask **batch, const LeftOut *left_out, TqRepeat repeat,
		   TimestampTz now)
{
	int64 created;

	/*
	 * Set the effective deadline of those tasks that are pending from their
	 * creation and have a total timeout, which starts now.  The deadline is
	 * then written with the task.  For tasks that become pending later
	 * pending_run.c updates it.
	 */
	for (int i = 0; i < n; i++)
	{
		TqTask *task = &tasks[i].named.task;
		const TqPolicy *policy;

		if (task->policy == 0)
			continue;
		policy = tq_policy_get(task->policy);
		if (policy->total_timeout != TQ_OFF && !policy->alert_only &&
			tasks[i].ndependencies == 0)
			task->deadline = Min(task->deadline,
								 tq_policy_after(now, policy->total_timeout));
	}
	tq_bucket_check(tasks, n);
	if (is_any_joining(tasks, n))
		join_groups(tasks, n);
	if (n == 1 && tq_outbox_may_derive(tasks, now))
		tasks->named.task.id = tq_id_open(&tasks->is_derived);
	else
	{
		for (int i = 0; i < n; i++)
			tasks[order[i]].named.task.id = tq_id_next();
	}
	created = insert_tasks(tasks, n, repeat, batch);
	if (left_out != NULL)
		check_left_out(tasks, n, batch, left_out);
	insert_keys(tasks, n, batch);
	position_tasks(tasks, order, n, batch_tasks, batch, created,
				   left_out != NULL ? left_out->unique : NULL, now);
	if (tq_max_group_tasks > 0)
		check_groups(tasks, n, batch);
	return created;
}

/* ---- unique keys ---- */

/*
 * Creates those of the tasks of a call that have these indexes, and returns how
 * many are new.
 */
static int64
create_some(TqTaskDefinition *tasks, const int *indexes, int n,
			const LeftOut *left_out, TqRepeat repeat, TimestampTz now)
{
	TqTaskDefinition *some = palloc(sizeof(TqTaskDefinition) * n);
	TqBatchTask **batch = palloc(sizeof(TqBatchTask *) * n);
	HTAB *batch_tasks;
	int64 created;

	for (int i = 0; i < n; i++)
		some[i] = tasks[indexes[i]];
	batch_tasks = index_by_slug(some, n, batch);
	created = create_all(some, sort_by_dependency(some, n, batch_tasks), n,
						 batch_tasks, batch, left_out, repeat, now);
	for (int i = 0; i < n; i++)
		tasks[indexes[i]] = some[i];
	return created;
}

/*
 * Sets and checks the times of new tasks, with the policies of their queues.
 * Raises one error of all that is wrong; tasks of enqueue_tasks() are alike.
 */
static void
complete_times(TqTaskDefinition *tasks, int n, TimestampTz now)
{
	TqFaults faults = {0};
	bool has_settings = tq_queue_settings_exist();

	for (int i = 0; i < n; i++)
	{
		TqTask *task = &tasks[i].named.task;

		tasks[i].has_own_delay = task->delay != 0 || tasks[i].run_at != 0;
		if (has_settings)
			tq_definition_apply_default(&tasks[i]);
		if (task->delay != 0)
			tq_definition_shift_times(&tasks[i]);
		task->defined_deadline = task->deadline;
		faults.task_id = &task->task_id;
		faults.of_arguments = tasks[i].is_of_arguments;
		if (!faults.of_arguments && n > 1)
			faults.element = i + 1;
		tq_check_times(&faults, &tasks[i], now);
		if (faults.of_arguments)
			tq_faults_raise(&faults);
	}
	tq_faults_raise(&faults);
}

/*
 * Creates tasks that have been parsed but not checked against the clock, and
 * returns how many are new.  On return each task has its id and is as stored; a
 * task whose unique key another one holds has the names of that one.
 */
int64
tq_create(TqTaskDefinition *tasks, int n, TqRepeat repeat, TimestampTz now)
{
	TqBatchTask **batch = palloc(sizeof(TqBatchTask *) * n);
	HTAB *batch_tasks = index_by_slug(tasks, n, batch);
	int *order = sort_by_dependency(tasks, n, batch_tasks);
	bool has_policy = false;
	int *positions;

	complete_times(tasks, n, now);
	/*
	 * Look up or insert the queues, in order of their names, because a
	 * session that inserts a queue waits for another that is inserting the
	 * same one.
	 */
	positions = positions_sorted(tasks, n, create_compare_queue);
	for (int i = 0; i < n; i++)
	{
		TqNamedTask *named = &tasks[positions[i]].named;

		if (i > 0 &&
			create_compare_queue(&positions[i - 1], &positions[i], tasks) == 0)
			named->task.queue = tasks[positions[i - 1]].named.task.queue;
		else
			named->task.queue = tq_queue_intern(named->queue_name);
	}
	for (int i = 0; i < n; i++)
		has_policy = has_policy || tasks[i].given_policy != NULL;
	if (has_policy)
		intern_policies(tasks, n);
	if (has_policy && tq_unique_is_used(tasks, n))
	{
		LeftOut left_out = {tq_unique_begin(tasks, n, now), batch_tasks};
		int *left = palloc(sizeof(int) * n);
		int64 created = 0;

		/*
		 * Create tasks of which some have a unique key.  Mostly, one pass is
		 * enough (unique.c).
		 */
		do
		{
			int nleft = tq_unique_decide(left_out.unique, left);

			if (nleft > 0)
				created += create_some(tasks, left, nleft, &left_out, repeat,
									   now);
			tq_unique_set(left_out.unique);
		} while (!tq_unique_follow(left_out.unique));
		return created;
	}
	return create_all(tasks, order, n, batch_tasks, batch, NULL, repeat, now);
}
