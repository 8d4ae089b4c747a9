/*
 * unique.c
 *	  Unique keys: which task holds one, which tasks of a call are not created,
 *	  because another task holds their key, and the key of a task that is to run
 *	  again (doc/spec/policy.md 11.1).
 *
 * A key has one row, which names the task that was created or rerun with it
 * last.  Only that task can hold the key; its state and the policy of the task
 * that comes say whether it does.  So the end of a task writes nothing here.
 *
 * Why no two tasks get a key:
 *	- A session that creates or reruns a task with a key locks its row first,
 *	  or inserts it: two sessions that insert it meet at the primary key.  The
 *	  lock lasts until the end of the transaction, so the second session decides
 *	  when the first has committed or was rolled back, and reads the row again.
 *	- The state of the task in the row is read after that, with a new snapshot,
 *	  in which the task has exactly one current row.  A transition that has not
 *	  committed by then counts as later than the creation.  That is consistent,
 *	  because no transition but a rerun reads or writes a key: the transaction
 *	  that makes it could as well have begun after this call.
 *	- A task that does not hold its key can hold it again only by a rerun, which
 *	  needs the lock of the row.
 *
 * A task that is to be replaced is different, since it is changed: its current
 * row is locked, and its state read again.  If it was claimed meanwhile, it
 * stays as it is: that is what a call finds that comes after the claim.  If it
 * no longer holds the key, it must not swallow the new task, which is then
 * created after all, by another pass over the tasks that are left.
 *
 * Order of locks: the keys of a call are locked by queue and key, after queues
 * and policies, and before groups and all that follows (create.c).  So a task
 * that is not created joins no group.  Who waits for a key holds no lock that a
 * creation takes later.  Tasks to be replaced are locked in the same pass as
 * required tasks, by id.  A rerun locks the key before the task.  Two exceptions
 * remain, where the server may have to end a deadlock: another pass, which
 * takes locks of groups and task ids after those of tasks, and needs the end of
 * a task within the same milliseconds; and a redrive of many letters, which
 * takes keys in the order of the letters.  It passes over a key that another
 * session has locked, but waits where the row is inserted or updated at the
 * same moment, and for the keys of letters whose tasks are gone.
 */
#include "postgres.h"

#include "lib/qunique.h"

#include "lifecycle.h"

/* ---- holders of keys, and reruns ---- */

/* Returns the key of a task, with the queue that its policy says. */
TqUniqueKey
tq_unique_key_of(const TqTask *task, char *key)
{
	return (
		TqUniqueKey){.queue = tq_policy_get(task->policy)->unique_in_database
								  ? 0
								  : task->queue,
					 .key = key};
}

/*
 * Returns whether a task holds its key by this policy, of another task, and
 * sets *task to it; the caller has locked the row of the key.
 */
static bool
is_held_by(int64 holder, const TqPolicy *policy, TimestampTz now, TqTask *task)
{
	TqTaskFinder finder = {NULL, NULL};
	TqRun run;
	bool exists = holder != 0 && tq_task_find_by_id(&finder, holder, task);

	tq_task_finder_end(&finder);
	return exists && tq_run_peek(holder, &run) &&
		   tq_policy_is_held(policy, run.state, task->created, now);
}

/* Returns the id of a task as text, also of one that is gone. */
static const char *
name_of_task(int64 task)
{
	int found;
	TqNamedTask *named = tq_tasks_by_id(&task, 1, &found);

	return found == 0 ? "(deleted)" : tq_slug_text(&named->task.task_id);
}

/*
 * Locks the unique key of a task that is to run again, and sets *key to it,
 * with the task that had it last; under TQ_LOCK_SKIP does not wait.  The caller
 * has not locked the task yet, and so does not know whether it will run again:
 * then tq_unique_take() follows.
 */
TqRerunKey
tq_unique_rerun(const TqTask *task, TqLock mode, TimestampTz now,
				TqUniqueKey *key)
{
	const TqPolicy *policy = tq_policy_get(task->policy);
	char *keys[TQ_KEYS];
	TqTask holder;

	*key = (TqUniqueKey){.key = NULL};
	if (!tq_policy_has_key(policy, TQ_KEY_UNIQUE))
		return TQ_RERUN_FREE;
	tq_task_keys_read(task->id, keys);
	if (keys[TQ_KEY_UNIQUE] == NULL)
		return TQ_RERUN_FREE; /* it has just been deleted */
	*key = tq_unique_key_of(task, keys[TQ_KEY_UNIQUE]);
	if (mode != TQ_LOCK_SKIP)
		tq_unique_keys_lock(key, 1);
	else if (!tq_unique_key_try_lock(key))
		return TQ_RERUN_LOCKED;
	if (key->task == 0) /* a row that is new must name a task */
		tq_unique_take(task, key);
	if (key->task != task->id && is_held_by(key->task, policy, now, &holder))
		return TQ_RERUN_HELD;
	return TQ_RERUN_FREE;
}

/* Returns whether another task holds the key of a task now; locks nothing. */
bool
tq_unique_is_held(const TqTask *task, const TqUniqueKey *key, TimestampTz now)
{
	int64 last = tq_unique_key_task(key);
	TqTask holder;

	return last != task->id &&
		   is_held_by(last, tq_policy_get(task->policy), now, &holder);
}

/* Gives a locked key to a task that runs again. */
void
tq_unique_take(const TqTask *task, TqUniqueKey *key)
{
	if (key->key == NULL || key->task == task->id)
		return;
	key->task = task->id;
	tq_unique_keys_set(key, 1);
}

/* Raises TQ409 for a task whose key another one holds. */
void
tq_unique_error_rerun(const TqTask *task, int64 holder)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task \"%s\" has a unique key that another task holds",
					tq_slug_text(&task->task_id)),
			 errdetail("Task \"%s\" holds it (uniqueKey).",
					   name_of_task(holder)),
			 errhint("Rerun the task when that one is resolved.")));
}

/* ---- creation ---- */

/* What becomes of a task. */
typedef enum UniqueFate
{
	FATE_OPEN,    /* not decided yet */
	FATE_CREATED, /* or it exists already */
	FATE_MET, /* another task holds its key; nothing is done about it yet */
	FATE_DONE /* that other task is in its place */
} UniqueFate;

/* A task of the call that has a unique key. */
typedef struct UniqueEntry
{
	int index; /* among the tasks of the call */
	int row;   /* its key */
	UniqueFate fate;
	int with;     /* the task of the call that it has met; -1: another one, */
	int64 holder; /* which is this one; */
	bool is_foreign; /* it is of another queue */
} UniqueEntry;

struct TqUnique
{
	TqTaskDefinition *tasks; /* all of the call */
	int n;
	TimestampTz now;
	UniqueEntry *entries; /* by key, and then as given */
	int nentries;
	TqUniqueKey *rows; /* locked; by queue and key */
	int *owner;        /* of each row: the task of the call that has the key */
	bool *is_written; /* of each row: it names its owner, or needs no change */
	int nrows;
	bool *is_met; /* by task of the call */
	bool has_begun;
};

static const TqPolicy *
unique_policy_of(const TqTask *task)
{
	return tq_policy_get(task->policy);
}

/* ---- keys ---- */

/* Returns whether one of these tasks has a unique key. */
bool
tq_unique_is_used(const TqTaskDefinition *tasks, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (tasks[i].keys[TQ_KEY_UNIQUE] != NULL)
			return true;
	}
	return false;
}

static int
unique_compare_keys(const void *a, const void *b)
{
	const TqUniqueKey *x = a;
	const TqUniqueKey *y = b;

	if (x->queue != y->queue)
		return x->queue < y->queue ? -1 : 1;
	return strcmp(x->key, y->key);
}

static int
unique_compare_entries(const void *a, const void *b, void *keys)
{
	const UniqueEntry *x = a;
	const UniqueEntry *y = b;
	int order = unique_compare_keys((TqUniqueKey *) keys + x->row,
									(TqUniqueKey *) keys + y->row);

	return order != 0 ? order : x->index - y->index;
}

/*
 * Collects the tasks that have a unique key, in the order of their keys.  Sets
 * the rows that they need, each once.
 */
static void
unique_collect(TqUnique *unique)
{
	TqUniqueKey *keys = palloc(sizeof(TqUniqueKey) * unique->n);

	for (int i = 0; i < unique->n; i++)
	{
		const TqTaskDefinition *definition = &unique->tasks[i];
		int n = unique->nentries;

		if (definition->keys[TQ_KEY_UNIQUE] == NULL)
			continue;
		keys[n] = tq_unique_key_of(&definition->named.task,
								   definition->keys[TQ_KEY_UNIQUE]);
		if (keys[n].queue == 0 && definition->redriven == 0)
			tq_require_unique();
		unique->entries[unique->nentries++] = (UniqueEntry){.index = i,
															.row = n};
	}
	qsort_arg(unique->entries, unique->nentries, sizeof(UniqueEntry),
			  unique_compare_entries, keys);
	for (int i = 0; i < unique->nentries; i++)
	{
		const TqUniqueKey *key = &keys[unique->entries[i].row];

		if (i == 0 ||
			unique_compare_keys(key, &unique->rows[unique->nrows - 1]) != 0)
			unique->rows[unique->nrows++] = *key;
		unique->entries[i].row = unique->nrows - 1;
	}
}

/*
 * Locks the unique keys of the tasks of a call, whose queues and policies are
 * known.
 */
TqUnique *
tq_unique_begin(TqTaskDefinition *tasks, int n, TimestampTz now)
{
	TqUnique *unique = palloc0(sizeof(TqUnique));

	unique->tasks = tasks;
	unique->n = n;
	unique->now = now;
	unique->entries = palloc(sizeof(UniqueEntry) * n);
	unique->rows = palloc(sizeof(TqUniqueKey) * n);
	unique->owner = palloc(sizeof(int) * n);
	unique->is_written = palloc(sizeof(bool) * n);
	unique->is_met = palloc0(sizeof(bool) * n);
	unique_collect(unique);
	tq_unique_keys_lock(unique->rows, unique->nrows);
	for (int i = 0; i < unique->nrows; i++)
	{
		unique->owner[i] = -1;
		unique->is_written[i] = unique->rows[i].task != 0;
	}
	return unique;
}

/* ---- who holds a key ---- */

static void
unique_refuse(const TqTaskDefinition *definition, const char *holder)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_CONFLICT),
		 errmsg("task \"%s\" has a unique key that another task holds",
				tq_slug_text(&definition->named.task.task_id)),
		 errdetail("Task \"%s\" holds \"%s\" (uniqueKey).", holder,
				   tq_error_clip(definition->keys[TQ_KEY_UNIQUE])),
		 definition->redriven != 0
			 ? errhint(
				   "Redrive it when that task is resolved, or discard its dead letter.")
			 : errhint(
				   "Create it when that task no longer holds the key, or with the onConflict \"return\".")));
}

/* Finds whether another task holds the key of a task. */
static bool
find_holder(TqUnique *unique, UniqueEntry *entry)
{
	const TqTaskDefinition *definition = &unique->tasks[entry->index];
	const TqPolicy *policy = unique_policy_of(&definition->named.task);

	TqTask holder;

	entry->with = unique->owner[entry->row];
	entry->holder = unique->rows[entry->row].task;
	if (entry->with >= 0)
		holder = unique->tasks[entry->with].named.task;
	else if (entry->holder == definition->redriven ||
			 !is_held_by(entry->holder, policy, unique->now, &holder))
		return false;
	entry->is_foreign = holder.queue != definition->named.task.queue;
	if (policy->on_conflict == TQ_CONFLICT_REJECT || definition->redriven != 0)
		unique_refuse(definition,
					  entry->with < 0
						  ? name_of_task(entry->holder)
						  : tq_slug_text(&unique->tasks[entry->with]
											  .named.task.task_id));
	return true;
}

/* Decides what becomes of a task; the finder's snapshot is newer than the lock. */
static void
decide(TqUnique *unique, UniqueEntry *entry, TqTaskFinder *finder)
{
	const TqTaskDefinition *definition = &unique->tasks[entry->index];
	TqTask stored;

	entry->fate = FATE_CREATED;
	if (!definition->has_own_id &&
		tq_task_find_by_slug(finder, &definition->named.task.task_id, &stored))
	{
		/* a repeat; a row that is new must name a task */
		if (unique->rows[entry->row].task == 0)
			unique->rows[entry->row].task = stored.id;
		return;
	}
	if (find_holder(unique, entry))
	{
		entry->fate = FATE_MET;
		return;
	}
	unique->owner[entry->row] = entry->index;
	unique->is_written[entry->row] = false;
}

/*
 * Decides which tasks are created now, and sets left[] to their indexes, as
 * given.  The first time these include all tasks without a key; later, only
 * those that tq_unique_follow() has left.  Returns their number.
 */
int
tq_unique_decide(TqUnique *unique, int *left)
{
	bool *is_left = palloc(sizeof(bool) * unique->n);
	TqTaskFinder finder = {NULL, NULL};
	int n = 0;

	memset(is_left, !unique->has_begun, sizeof(bool) * unique->n);
	unique->has_begun = true;
	for (int i = 0; i < unique->nentries; i++)
	{
		UniqueEntry *entry = &unique->entries[i];

		if (entry->fate != FATE_OPEN)
			continue;
		decide(unique, entry, &finder);
		is_left[entry->index] = entry->fate == FATE_CREATED;
		unique->is_met[entry->index] = entry->fate == FATE_MET;
	}
	tq_task_finder_end(&finder);
	for (int i = 0; i < unique->n; i++)
	{
		if (is_left[i])
			left[n++] = i;
	}
	return n;
}

/* Returns whether a task of the call is not created, by its index. */
bool
tq_unique_is_met(const TqUnique *unique, int index)
{
	return unique->is_met[index];
}

/* Writes which tasks have got their keys. */
void
tq_unique_set(TqUnique *unique)
{
	TqUniqueKey *changed = palloc(sizeof(TqUniqueKey) * unique->nrows);
	int n = 0;

	for (int i = 0; i < unique->nrows; i++)
	{
		if (unique->is_written[i])
			continue;
		if (unique->owner[i] >= 0)
			unique->rows[i].task =
				unique->tasks[unique->owner[i]].named.task.id;
		unique->is_written[i] = true;
		changed[n++] = unique->rows[i];
	}
	tq_unique_keys_set(changed, n);
}

/* ---- the task that is there ---- */

/* Returns whether a task replaces one that is there; it locks no foreign one. */
static bool
replaces(const TqUnique *unique, const UniqueEntry *entry)
{
	return entry->fate == FATE_MET && !entry->is_foreign &&
		   unique_policy_of(&unique->tasks[entry->index].named.task)
				   ->on_conflict == TQ_CONFLICT_REPLACE;
}

/* Returns the tasks of other calls that are to be replaced, in order of id. */
int64 *
tq_unique_to_replace(const TqUnique *unique, int *n)
{
	int64 *ids = palloc(sizeof(int64) * Max(unique->nentries, 1));

	*n = 0;
	for (int i = 0; i < unique->nentries; i++)
	{
		if (unique->entries[i].with < 0 &&
			replaces(unique, &unique->entries[i]))
			ids[(*n)++] = unique->entries[i].holder;
	}
	qsort(ids, *n, sizeof(int64), tq_compare_ids);
	*n = (int) qunique(ids, *n, sizeof(int64), tq_compare_ids);
	return ids;
}

/* Returns whether a task was never claimed, whose current row is this one. */
static bool
was_never_claimed(TqRun *run)
{
	TqRunDetail detail;

	if (run->location == TQ_LOCATION_UNSCHEDULED)
		return run->run_id < 0;
	return run->run_id <= 0 && run->location != TQ_LOCATION_RUN &&
		   (!tq_detail_read(run, &detail) || detail.started == 0);
}

/*
 * Gives a task that was never claimed the payload, priority and delay of
 * another one.  The delay counts from now; one that would go past the deadline
 * of the task leaves its time and its delay as they are.
 *
 * The row of a pending run is written in any case: a claim that has just read
 * the payload then finds that the row has changed, and passes over it.
 */
static void
replace_with(TqTask *task, const TqRun *run, const TqTaskDefinition *given,
			 TimestampTz now)
{
	const TqTask *from = &given->named.task;
	TimestampTz visible_at = tq_policy_visible(from->created, from->delay,
											   now);
	int64 delay = from->delay >= 0
					  ? from->delay
					  : tq_policy_delay_until(task->created, visible_at);
	bool is_late = visible_at >= task->deadline;
	bool stays = run->location == TQ_LOCATION_UNSCHEDULED ||
				 (run->location == TQ_LOCATION_PENDING && visible_at <= now) ||
				 is_late;

	/*
	 * The definition of a task can have a delay: one past the deadline of the
	 * definition could not be created again, by redrive() or by a client that
	 * sends what task() returns.  A repair may have moved the deadline of the
	 * task itself.
	 */
	tq_task_replace(task->id, given->payload,
					!is_late && tq_policy_visible(task->created, delay,
												  task->created) <=
									task->defined_deadline
						? delay
						: task->delay);
	if (task->priority != from->priority)
		tq_priority_set(task, run, from->priority, now);
	else if (stays && run->location == TQ_LOCATION_PENDING)
		tq_pending_set_priority(&task->id, 1, task->priority);
	if (!stays)
	{
		TqStart start = {.task = task,
						 .created = run->created,
						 .scheduled = run->scheduled,
						 .detail = {.task = task->id, .retry_delay = TQ_OFF}};

		/*
		 * Make a waiting run claimable at another time.  It keeps the time at
		 * which it was scheduled.
		 */
		start.detail.budget.run_id = run->run_id;
		tq_policy_first(unique_policy_of(task), run->retries_left, visible_at,
						&start.detail.budget);
		tq_pending_run_move(&start, run, now);
	}
}

/* Says that a payload that was given is not used. */
static void
note_not_replaced(const TqTaskDefinition *given, const TqNamedTask *there)
{
	ereport(
		NOTICE,
		(errmsg("task \"%s\" was not replaced",
				tq_slug_text(&there->task.task_id)),
		 errdetail(
			 "It has the unique key \"%s\", and a worker has claimed it: the payload that was given is not used.",
			 tq_error_clip(given->keys[TQ_KEY_UNIQUE])),
		 errhint(
			 "Create the task again when that one is resolved, or let uniqueStates leave out \"running\".")));
}

/*
 * Replaces the task that is there, unless it was claimed or is of another
 * queue.  Returns false if it no longer holds the key; a task of the call holds
 * it, whatever its state is.
 */
static bool
unique_replace(const TqUnique *unique, const UniqueEntry *entry, int64 holder)
{
	const TqTaskDefinition *given = &unique->tasks[entry->index];
	TqTaskDefinition *there;
	TqRun run;
	int found;
	TqTaskDefinition becomes;

	if (!tq_run_lock(holder, TQ_LOCK_UPDATE, &run))
		return false;
	there = tq_definitions_by_id(&holder, 1, &found);
	if (found == 0 ||
		(entry->with < 0 &&
		 !tq_policy_is_held(unique_policy_of(&given->named.task), run.state,
							there->named.task.created, unique->now)))
		return false;
	if (there->named.task.queue != given->named.task.queue)
		return true;
	if (!was_never_claimed(&run))
	{
		note_not_replaced(given, &there->named);
		return true;
	}
	/* Raise TQ403 unless the caller may create the task as it is to become. */
	becomes = *there;
	becomes.named.task.priority = given->named.task.priority;
	tq_require_create(&becomes, 1, true);
	replace_with(&there->named.task, &run, given, unique->now);
	return true;
}

/*
 * Puts the task that is there in the place of one that is not created.  Returns
 * false if it no longer holds the key.
 */
static bool
adopt_holder(TqUnique *unique, const UniqueEntry *entry)
{
	TqTaskDefinition *given = &unique->tasks[entry->index];
	int64 holder = entry->with < 0 ? entry->holder
								   : unique->tasks[entry->with].named.task.id;
	TqNamedTask *named;
	int found;

	if (replaces(unique, entry) && !unique_replace(unique, entry, holder))
		return false;
	named = tq_tasks_by_id(&holder, 1, &found);
	if (found == 0)
		return false;
	given->named = *named;
	return true;
}

/*
 * Puts the tasks that are there in the place of those that are not created, and
 * replaces them where the policies say so.  Returns whether this is all; tasks
 * whose key is free by now have to be decided again.
 */
bool
tq_unique_follow(TqUnique *unique)
{
	bool is_all = true;
	int n;
	int64 *ids = tq_unique_to_replace(unique, &n);

	if (n > 0)
		(void) tq_task_lock_wait(ids, n, TQ_LOCK_UPDATE, NULL, false);
	for (int i = 0; i < unique->nentries; i++)
	{
		UniqueEntry *entry = &unique->entries[i];

		if (entry->fate != FATE_MET)
			continue;
		entry->fate = adopt_holder(unique, entry) ? FATE_DONE : FATE_OPEN;
		is_all = is_all && entry->fate == FATE_DONE;
	}
	return is_all;
}
