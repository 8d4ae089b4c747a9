/*
 * unique_key.c
 *	  Which task holds a unique key, and the key of a task that is to run again.
 *
 * unique.c says why no two tasks get a key.
 */
#include "postgres.h"

#include "datatype/timestamp.h"

#include "../core/policy.h"
#include "../storage/registry.h"
#include "../storage/rows.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "engine.h"

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
 * Returns whether a task holds its key by this policy, of another task; the
 * caller has locked the row of the key.
 */
bool
tq_unique_is_held_by(int64 holder, const TqPolicy *policy, TimestampTz now)
{
	TqTaskFinder finder = {NULL, NULL};
	TqTask task;
	TqRun run;
	bool exists = holder != 0 && tq_task_find_by_id(&finder, holder, &task);

	tq_task_finder_end(&finder);
	return exists && tq_run_peek(holder, &run) &&
		   tq_policy_is_held(policy, run.state, task.created, now);
}

/* Returns the id of a task as text, also of one that is gone. */
const char *
tq_unique_name_of(int64 task)
{
	int found;
	TqNamedTask *named = tq_tasks_by_id(&task, 1, &found);

	return found == 0 ? "(deleted)" : tq_slug_text(&named->task.task_id);
}

/*
 * Locks the unique key of a task that is to run again, and sets *key to it, with
 * the task that had it last; under TQ_LOCK_SKIP does not wait.  The caller has
 * not locked the task yet, and so does not know whether it will run again: then
 * tq_unique_take() follows.
 */
TqRerunKey
tq_unique_rerun(const TqTask *task, TqLock mode, TimestampTz now,
				TqUniqueKey *key)
{
	const TqPolicy *policy = tq_policy_get(task->policy);
	char *keys[TQ_KEYS];

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
	if (key->task != task->id && tq_unique_is_held_by(key->task, policy, now))
		return TQ_RERUN_HELD;
	return TQ_RERUN_FREE;
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
					   tq_unique_name_of(holder)),
			 errhint("Rerun the task when that one is resolved.")));
}
