/*
 * apply.c
 *	  Actions on the tasks that a filter finds (doc/spec/policy.md 17.3).
 *
 * The tasks were found before, by one snapshot.  A batch is a transaction: it leaves
 * what the caller may not change, so that it holds up no session there, and locks
 * the rows with the locations of its tasks, in the order of their ids, and waits
 * for none that another session has; those are tried again, once, at the end.  Then
 * it asks again which of them the filter finds, and leaves the others: no session
 * changes the state of a locked task, so what is found then is what the action
 * meets.  A task that another session changes before the lock is not found, and
 * one that it changes later, it finds changed by this session.
 *
 * A cancel and a move act on all tasks of a batch at once (bulk.c), the others one
 * by one, each in a subtransaction, as the function for one task does, so that
 * its refusal is counted.  What they lock beside the task, such as dependents,
 * has no order among the tasks of a batch, so they wait for it for a short time
 * only.
 */
#include "postgres.h"

#include "utils/guc.h"

#include "../core/state.h"
#include "operations.h"

#define EACH_BATCH 100 /* tasks that are changed one by one */
#define LOCK_TIMEOUT "200ms"

/* The right to a task that an action requires; NULL: it is checked elsewhere. */
static const char *
right_of(TqApplyAction action)
{
	switch (action)
	{
		case TQ_APPLY_CANCEL:
			return "cancel-task";
		case TQ_APPLY_RERUN:
			return "rerun-task";
		case TQ_APPLY_SCHEDULE:
			return "schedule-task";
		case TQ_APPLY_DELAY:
			return "reschedule-task";
		case TQ_APPLY_EXPIRE:
		case TQ_APPLY_DELETE:
			return "delete-task";
		case TQ_APPLY_MOVE:
		case TQ_APPLY_PRIORITY:
		case TQ_APPLY_REDRIVE:
		case TQ_APPLY_DISCARD:
			return NULL;
	}
	pg_unreachable();
}

static bool
acts_on_all(const TqApply *apply)
{
	return apply->action == TQ_APPLY_CANCEL || apply->action == TQ_APPLY_MOVE;
}

/* Returns how many tasks a batch may have. */
int
tq_apply_size(const TqApply *apply)
{
	return acts_on_all(apply) ? tq_expire_batch
							  : Min(tq_expire_batch, EACH_BATCH);
}

/* ---- refusals ---- */

/* Counts refused tasks; the last reason stands for all that have no place. */
static void
refuse(TqApply *apply, const char *why, int64 n)
{
	int i = 0;

	if (n == 0)
		return;
	while (i < apply->nrefused && strcmp(apply->refused[i].why, why) != 0)
		i++;
	if (i == TQ_APPLY_REASONS)
		i--;
	else if (i == apply->nrefused)
	{
		apply->refused[i].why = MemoryContextStrdup(apply->memory,
													i == TQ_APPLY_REASONS - 1
														? "another reason"
														: why);
		apply->nrefused++;
	}
	apply->refused[i].n += n;
}

/* Keeps tasks that another session has locked, to be tried again. */
static void
try_again(TqApply *apply, const int64 *tasks, int n)
{
	if (apply->is_again)
		refuse(apply, "another session has it, or a dependent, locked", n);
	else
		tq_ids_add(&apply->locked, tasks, n);
}

/* Returns a message with <id> in the place of the id of the task. */
static char *
without_id(const char *message, const TqSlug *task_id)
{
	const char *id = tq_slug_text(task_id);
	const char *at = strstr(message, id);

	return at == NULL ? pstrdup(message)
					  : psprintf("%.*s<id>%s", (int) (at - message), message,
								 at + strlen(id));
}

/* ---- what is found still ---- */

/*
 * Returns the ids of the locked tasks that the filter finds.  A filter that asks
 * about nothing that changes, but for the queue and the state, is not asked
 * again: a row that was read with the lock has both.
 */
static int64 *
find_still(const TqApply *apply, const TqLockedTasks *locked, int *n)
{
	int64 *ids = palloc(sizeof(int64) * Max(locked->n, 1));

	*n = 0;
	for (int i = 0; i < locked->n; i++)
	{
		if (!apply->found.is_fixed ||
			tq_found_is_still(&apply->found, &locked->tasks[i],
							  &locked->runs[i]))
			ids[(*n)++] = locked->tasks[i].id;
	}
	return apply->found.is_fixed ? ids
								 : tq_find_still(apply->filter, ids, *n, n);
}

/* Keeps the locked tasks that the filter finds still. */
static void
keep_found(TqApply *apply, TqLockedTasks *locked)
{
	int n = locked->n;
	int nstill;
	int64 *still = find_still(apply, locked, &nstill);
	int next = 0;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		if (next == nstill || still[next] != locked->tasks[i].id)
			continue;
		next++;
		tq_locked_tasks_keep(locked, i);
	}
	refuse(apply, "it has changed since it was found", n - locked->n);
}

/* ---- rights ---- */

/* Returns whether the caller may do that to a task. */
static bool
may_act(const TqApply *apply, const TqNamedTask *named)
{
	const char *right = right_of(apply->action);

	if (right != NULL)
		return tq_may_change(right, named);
	if (apply->action == TQ_APPLY_PRIORITY)
		return tq_may_read("change-task-priority", &named->task.task_id,
						   named->queue_name);
	return tq_may_change_letters(named->queue_name);
}

static bool
is_allowed(const TqApply *apply, const TqTask *task)
{
	const char *queue = tq_queue_name(task->queue);
	const char *right = right_of(apply->action);
	TqNamedTask *named;
	int n;

	if (apply->action == TQ_APPLY_MOVE)
		return tq_access_meets(
			tq_need_all(2, tq_need("queue:move-tasks:%s", queue),
						tq_need("queue:move-tasks:%s", apply->how.queue)));
	if (right != NULL &&
		tq_access_meets(tq_need("queue:%s-in-queue:%s", right, queue)))
		return true;
	named = tq_tasks_by_id(&task->id, 1, &n);
	return n == 1 && may_act(apply, named);
}

/*
 * Removes the tasks that the caller may see, but not change, so that they are not
 * locked, and those that are deleted; returns how many are left.  The right is
 * checked again with the lock, because a task may have been moved.
 */
static int
keep_allowed(TqApply *apply, int64 *tasks, int n)
{
	int ncore;
	TqTask *core;
	int left = 0;

	if (tq_access_is_unlimited())
		return n;
	core = tq_tasks_core(tasks, n, &ncore);
	for (int i = 0; i < ncore; i++)
	{
		if (is_allowed(apply, &core[i]))
			tasks[left++] = core[i].id;
	}
	refuse(apply, "it is resolved or deleted", n - ncore);
	refuse(apply, "the caller has no right to it", ncore - left);
	qsort(tasks, left, sizeof(int64), tq_compare_ids);
	return left;
}

/* ---- cancel, move ---- */

/* Returns why a locked task is not cancelled, or moved; NULL: it is. */
static const char *
fault_of(const TqApply *apply, const TqTask *task, const TqRun *run,
		 TimestampTz now)
{
	if (task->deadline <= now)
		return "it is past its deadline";
	if (apply->action == TQ_APPLY_MOVE && run->state == TQ_STATE_RUNNING)
		return "it is running";
	if (apply->action == TQ_APPLY_MOVE &&
		strcmp(tq_queue_name(task->queue), apply->how.queue) == 0)
		return "it is in that queue";
	if (!tq_access_is_unlimited() && !is_allowed(apply, task))
		return "the caller has no right to it";
	return NULL;
}

static void
keep_faultless(TqApply *apply, TqLockedTasks *locked, TimestampTz now)
{
	int n = locked->n;

	locked->n = 0;
	for (int i = 0; i < n; i++)
	{
		const char *fault = fault_of(apply, &locked->tasks[i],
									 &locked->runs[i], now);

		if (fault == NULL)
			tq_locked_tasks_keep(locked, i);
		else
			refuse(apply, fault, 1);
	}
}

/* Cancels, or moves, all of these tasks that it may. */
static void
apply_to_all(TqApply *apply, int64 *tasks, int n, TimestampTz now)
{
	TqBulk bulk = {.to_queue = apply->how.queue};
	TqLockedTasks locked;

	tq_task_lock_unresolved(tasks, n, &locked);
	refuse(apply, "it is resolved or deleted", n - locked.n - locked.nothers);
	keep_found(apply, &locked);
	keep_faultless(apply, &locked, now);
	apply->done += apply->action == TQ_APPLY_CANCEL
					   ? tq_bulk_cancel(&bulk, &locked, now)
					   : tq_bulk_move(&bulk, &locked, now);
	try_again(apply, locked.others, locked.nothers);
	refuse(apply, "its policy has a key, which belongs to its queue",
		   bulk.left);
	refuse(apply, "it has scopes that the caller has not", bulk.forbidden);
}

/* ---- one by one ---- */

/* One task of an operation. */
typedef struct One
{
	const TqApply *apply;
	int64 id;
	TqSlug task_id;
	TimestampTz now;
} One;

/* Deletes a resolved task that nothing needs, as its expiry does. */
static void
expire(const TqNamedTask *named, TimestampTz now)
{
	TqSweepRule rule = {.queue = named->task.queue,
						.until = now,
						.departs = true};
	TqTask task = named->task;

	for (int state = 0; state < TQ_STATES; state++)
		rule.of[state] = tq_state_is_resolved((TqState) state);
	if (tq_sweep_delete(&rule, &task, 1, now) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("task \"%s\" does not expire now",
						tq_slug_text(&named->task.task_id)),
				 errdetail("It is unresolved, or an unresolved task depends "
						   "on it or is in its group."),
				 errhint("tq.delete_task() deletes a task in any state.")));
}

static void
rerun(const TqApply *apply, TqTask *task, TimestampTz now)
{
	TqRepairHow how = {apply->how.deadline, apply->how.downstream};

	if (how.deadline == NULL && !how.downstream)
		tq_task_rerun(task, now);
	else
		tq_repair_task(task, &how, now);
}

/* Does what the function for one task does. */
static void
act(const One *one, TqNamedTask *named)
{
	const TqApply *apply = one->apply;

	switch (apply->action)
	{
		case TQ_APPLY_EXPIRE:
			expire(named, one->now);
			break;
		case TQ_APPLY_RERUN:
			rerun(apply, &named->task, one->now);
			break;
		case TQ_APPLY_SCHEDULE:
			tq_task_schedule(&named->task, one->now);
			break;
		case TQ_APPLY_PRIORITY:
			(void) tq_priority_change(&one->task_id, apply->how.priority,
									  one->now);
			break;
		case TQ_APPLY_DELAY:
			tq_task_reschedule(&named->task, apply->how.until, one->now);
			break;
		case TQ_APPLY_REDRIVE:
			(void) tq_dead_letter_redrive(&one->task_id, one->now);
			break;
		case TQ_APPLY_DISCARD:
			tq_dead_letter_discard(&one->task_id);
			break;
		case TQ_APPLY_DELETE:
			tq_task_delete(named);
			break;
		case TQ_APPLY_CANCEL:
		case TQ_APPLY_MOVE:
			pg_unreachable();
	}
}

static void
apply_to_one(void *arg)
{
	const One *one = arg;
	const char *right = right_of(one->apply->action);
	TqNamedTask *named = tq_task_get(&one->task_id);

	if (right != NULL)
		tq_require_change(right, named);
	act(one, named);
}

/* Counts a refusal; another error ends the call. */
static void
note_error(TqApply *apply, const One *one, ErrorData *error)
{
	if (error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED)
		try_again(apply, &one->id, 1);
	else if (TQ_IS_REFUSAL(error->sqlerrcode))
		refuse(apply, without_id(error->message, &one->task_id), 1);
	else
		ReThrowError(error);
}

/* Locks the tasks that no other session has; returns how many. */
static int
lock_each(TqApply *apply, int64 *tasks, int n)
{
	int left = 0;
	TqRun run;

	for (int i = 0; i < n; i++)
	{
		if (tq_run_lock(tasks[i], TQ_LOCK_SKIP, &run))
			tasks[left++] = tasks[i];
		else if (tq_run_peek(tasks[i], &run))
			try_again(apply, &tasks[i], 1);
		else
			refuse(apply, "it is resolved or deleted", 1);
	}
	return left;
}

/* Has notices and waits of the functions for one task left out, in this call. */
static void
be_brief(void)
{
	if (client_min_messages < WARNING)
		(void) set_config_option("client_min_messages", "warning", PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
								 false);
	(void) set_config_option("lock_timeout", LOCK_TIMEOUT, PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

static void
apply_to_each(TqApply *apply, int64 *tasks, int n, TimestampTz now)
{
	int64 *still;
	int nstill;
	TqTask *core;
	int ncore;

	be_brief();
	n = lock_each(apply, tasks, n);
	still = tq_find_still(apply->filter, tasks, n, &nstill);
	refuse(apply, "it has changed since it was found", n - nstill);
	core = tq_tasks_core(still, nstill, &ncore);
	for (int i = 0; i < ncore; i++)
	{
		One one = {apply, core[i].id, core[i].task_id, now};
		ErrorData *error;

		CHECK_FOR_INTERRUPTS();
		error = tq_attempt_all(apply_to_one, &one);
		if (error == NULL)
			apply->done++;
		else
			note_error(apply, &one, error);
	}
}

/*
 * Applies the action to a batch of tasks, whose ids are changed.  A batch is
 * the whole of a transaction.
 */
void
tq_apply_batch(TqApply *apply, int64 *tasks, int n, TimestampTz now)
{
	qsort(tasks, n, sizeof(int64), tq_compare_ids);
	n = keep_allowed(apply, tasks, n);
	if (n == 0)
		return;
	if (acts_on_all(apply))
		apply_to_all(apply, tasks, n, now);
	else
		apply_to_each(apply, tasks, n, now);
}
