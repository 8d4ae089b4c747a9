/*
 * redrive.c
 *	  Runs dead letters again, or discards them.
 */
#include "postgres.h"

#include "../core/names.h"
#include "operations.h"

/* ---- a locked dead letter ---- */

typedef struct LockedLetter
{
	TqDeadLetter letter;
	TqNamedTask *named; /* its task; NULL: it no longer exists */
	TqRun last;         /* of the task */
	TqRerunKey key;     /* of the task, if it can be rerun */
} LockedLetter;

/*
 * Locks a dead task and its letter, and before them, if the task can be rerun
 * at that time, its unique key; 0: it is not to be rerun.  Returns false if
 * there is no letter or, under TQ_LOCK_SKIP, if another session has one of them
 * locked.
 */
static bool
lock_letter(const TqSlug *task_id, TqLock mode, TimestampTz rerun,
			LockedLetter *locked)
{
	TqNamedTask *named = tq_task_by_slug(task_id);
	TqUniqueKey key;

	locked->key = TQ_RERUN_FREE;
	if (named != NULL && rerun != 0 && named->task.deadline > rerun)
		locked->key = tq_unique_rerun(&named->task, mode, rerun, &key);
	if (locked->key == TQ_RERUN_LOCKED)
		return false;
	if (named != NULL && !tq_run_lock(named->task.id, mode, &locked->last))
	{
		if (mode == TQ_LOCK_SKIP)
			return false;
		named = NULL; /* it has just expired */
	}
	if (!tq_dead_letter_lock(task_id, mode, &locked->letter))
		return false;
	locked->named = named != NULL && named->task.id == locked->letter.task
						? named
						: NULL;
	return true;
}

/* Returns whether the caller may see that task or its letter, or neither exists. */
static bool
may_see(const TqSlug *task_id)
{
	const TqNamedTask *named = tq_task_by_slug(task_id);
	TqDeadLetter letter;

	if (named != NULL)
		return tq_may_see_letter(task_id, named->queue_name);
	return !tq_dead_letter_get(task_id, &letter) ||
		   tq_may_see_letter(task_id, tq_queue_name(letter.queue));
}

/*
 * Locks a dead task and its letter, or raises TQ404, and TQ403 unless the
 * caller may handle the dead letters of that queue.  What the caller may not
 * see is not locked, so that the call waits for no session that has it.  It is
 * looked at again below the lock.
 */
static void
lock_letter_or_error(const TqSlug *task_id, TimestampTz rerun,
					 LockedLetter *locked)
{
	if (!may_see(task_id) ||
		!lock_letter(task_id, TQ_LOCK_UPDATE, rerun, locked) ||
		!tq_may_see_letter(task_id, tq_queue_name(locked->letter.queue)))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_NOT_FOUND),
			 errmsg("task \"%s\" has no dead letter", tq_slug_text(task_id)),
			 errdetail(
				 "It did not fail for good under a policy with deadLetter, or its letter was redriven, rerun or discarded."),
			 errhint("tq.list_dead_letters() shows those of a queue.")));
	tq_require_dead_letters(tq_queue_name(locked->letter.queue));
}

/* Deletes a dead letter without running its task again. */
void
tq_dead_letter_discard(const TqSlug *task_id)
{
	LockedLetter locked;

	lock_letter_or_error(task_id, 0, &locked);
	(void) tq_dead_letter_delete(task_id);
}

/* ---- a new task for a dead one ---- */

/*
 * Returns whether a task was never pending: its only run was resolved at its
 * creation.
 */
static bool
never_ran(const Jsonb *runs)
{
	JsonbValue *run;
	JsonbValue *created;

	if (JB_ROOT_COUNT(runs) != 1)
		return false;
	run = getIthJsonbValueFromContainer(unconstify(JsonbContainer *,
												   &runs->root),
										0);
	created = getKeyJsonValueFromContainer(run->val.binary.data,
										   "reasonCreated",
										   strlen("reasonCreated"), NULL);
	return created != NULL && created->type == jbvString &&
		   strcmp(pnstrdup(created->val.string.val, created->val.string.len),
				  tq_created_name(TQ_CREATED_EXCEPTION)) == 0;
}

/* Returns extra with redriveOf, the id of the task that this one repeats. */
static Jsonb *
extra_with_origin(Jsonb *extra, const TqSlug *origin)
{
	JsonbParseState *state = NULL;
	Jsonb *link;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_slug(&state, "redriveOf", origin);
	link = tq_json_end(&state);
	if (extra == NULL)
		return link;
	return DatumGetJsonbP(DirectFunctionCall2(jsonb_concat,
											  JsonbPGetDatum(extra),
											  JsonbPGetDatum(link)));
}

/*
 * Returns the definition of a dead task under a new id, with its times shifted
 * to now.  Delay, retries, policy and group are as defined; the group may be
 * the one named after the dead task.
 *
 * Dependencies are kept only if the dead task never ran: if it ran, they were
 * met, or waived by schedule_task() or rerun_task(), and the required tasks
 * may have expired since.  A dependency is not replaced by the task that a
 * required task was redriven as.  Dependents of the dead task are not changed
 * either: they wait for its id.
 */
static TqTaskDefinition
renewed(const TqDeadLetter *letter, TimestampTz now)
{
	TqSlug task_id;
	TqTaskDefinition new;

	tq_slug_new(&task_id);
	tq_definition_parse(&task_id, &letter->definition->root, true, &new);
	tq_slug_set_bucket(&task_id, tq_slug_bucket(&new.named.group_slug));
	new.named.task.task_id = task_id;
	new.has_own_id = true;
	new.may_be_foreign = true;
	new.redriven = letter->task;
	new.extra = extra_with_origin(new.extra, &letter->task_id);
	tq_definition_renew_times(&new, now);
	if (!never_ran(letter->runs))
		new.ndependencies = 0;
	for (int i = 0; i < new.ndependencies; i++)
	{
		if (tq_slug_compare(&new.dependencies[i], &letter->task_id) == 0)
			new.dependencies[i] = task_id;
	}
	return new;
}

/*
 * Creates a new task for each of these locked letters, and deletes the
 * letters.
 */
static TqTaskDefinition *
redrive_renew(const TqDeadLetter *letters, int n, TimestampTz now)
{
	TqTaskDefinition *tasks = palloc(sizeof(TqTaskDefinition) * n);

	for (int i = 0; i < n; i++)
	{
		tasks[i] = renewed(&letters[i], now);
		(void) tq_dead_letter_delete(&letters[i].task_id);
	}
	(void) tq_create(tasks, n, TQ_REPEAT_EXACT, now);
	return tasks;
}

/* ---- redrive() ---- */

/* Returns whether the dead task still exists and is before its deadline. */
static bool
can_be_rerun(const LockedLetter *locked, TimestampTz now)
{
	return locked->named != NULL && locked->named->task.deadline > now;
}

/* Redrives a dead task; returns the task that is going to run. */
TqNamedTask *
tq_dead_letter_redrive(const TqSlug *task_id, TimestampTz now)
{
	LockedLetter locked;

	lock_letter_or_error(task_id, now, &locked);
	if (!can_be_rerun(&locked, now))
		return &redrive_renew(&locked.letter, 1, now)->named;
	tq_task_rerun(&locked.named->task, now);
	return locked.named;
}

/* ---- redrive_queue() ---- */

/* After this many refusals the rest is left to another call. */
#define REFUSALS_MAX 1000

/* The state of a redrive of many letters. */
typedef struct Redrive
{
	int32 queue;
	TimestampTz now;
	TqDeadLetter last;     /* last letter that was read */
	bool more;             /* there may be others */
	TqDeadLetter *renewed; /* locked letters that become new tasks */
	int nrenewed;
	int done;
	int refused;
	TqSlug first_refused;
	char *why;
} Redrive;

static void
redrive_note_refusal(Redrive *redrive, const TqSlug *task_id, const char *why)
{
	if (redrive->refused++ == 0)
	{
		redrive->first_refused = *task_id;
		redrive->why = pstrdup(why);
	}
}

/*
 * Redrives or collects one letter, unless another session has it locked.  A
 * letter that was written again since it was read has a higher sequence number
 * and comes up again there; it is left out here so that it is not redriven
 * twice.
 */
static void
redrive_take(Redrive *redrive, const TqDeadLetter *seen)
{
	LockedLetter locked;

	if (!lock_letter(&seen->task_id, TQ_LOCK_SKIP, redrive->now, &locked) ||
		locked.letter.seq != seen->seq)
		return;
	if (!can_be_rerun(&locked, redrive->now))
		redrive->renewed[redrive->nrenewed++] = locked.letter;
	else if (locked.last.run_id + 1 >= tq_max_runs)
		redrive_note_refusal(redrive, &seen->task_id,
							 "it has reached the maximum number of runs");
	else if (locked.key == TQ_RERUN_HELD)
		redrive_note_refusal(redrive, &seen->task_id,
							 "another task holds its unique key");
	else
	{
		tq_task_rerun(&locked.named->task, redrive->now);
		redrive->done++;
	}
}

/*
 * Reads letters by age until as many as wanted are found.  Reruns wait for no
 * lock and are done at once; the other letters are collected.
 */
static void
take_some(Redrive *redrive, int wanted)
{
	int done = redrive->done;

	redrive->renewed = palloc(sizeof(TqDeadLetter) * wanted);
	redrive->nrenewed = 0;
	while (redrive->more && redrive->done - done + redrive->nrenewed < wanted)
	{
		int left = wanted - (redrive->done - done + redrive->nrenewed);
		int n;
		TqDeadLetter *letters =
			tq_dead_letters_by_age(redrive->queue, &redrive->last, left, &n);

		for (int i = 0; i < n; i++)
			redrive_take(redrive, &letters[i]);
		redrive->more = n == left;
		if (n > 0)
			redrive->last = letters[n - 1];
	}
}

/* Creates new tasks for some of the letters that were collected. */
static void
renew_some(void *arg, int from, int n)
{
	Redrive *redrive = (Redrive *) arg;

	(void) redrive_renew(redrive->renewed + from, n, redrive->now);
	redrive->done += n;
}

static void
keep_refused(void *arg, int letter, ErrorData *error)
{
	Redrive *redrive = (Redrive *) arg;

	if (!(error->sqlerrcode == ERRCODE_TQ_BAD_INPUT ||
		  error->sqlerrcode == ERRCODE_TQ_NOT_FOUND ||
		  error->sqlerrcode == ERRCODE_TQ_CONFLICT))
		ReThrowError(error);
	redrive_note_refusal(redrive, &redrive->renewed[letter].task_id,
						 error->message);
}

/*
 * Creates new tasks for the letters that were collected, except for those that
 * are refused, for example because the group is sealed or a required task has
 * expired.  All are tried in one call, because tq_create() then takes its locks
 * in order; if that is refused, by halves.  Bench redrive: 1.4 times the rate of
 * one by one; bench refused, where ten of a thousand are refused, 0.8 times.
 */
static void
renew_allowed(Redrive *redrive)
{
	TqBatchWork work = {renew_some, keep_refused, redrive};

	tq_attempt_halves(&work, 0, redrive->nrenewed);
}

/*
 * Redrives up to max letters of a queue, the oldest first, and returns how
 * many.  Locked letters are skipped.  A refused letter is kept and counted in
 * a warning, and does not hold up later ones.
 */
int64
tq_dead_letters_redrive(int32 queue, int max, TimestampTz now)
{
	Redrive redrive = {.queue = queue,
					   .now = now,
					   .last = {.failed_at = DT_NOBEGIN},
					   .more = true};

	while (redrive.more && redrive.done < max &&
		   redrive.refused < REFUSALS_MAX)
	{
		take_some(&redrive, max - redrive.done);
		renew_allowed(&redrive);
	}
	if (redrive.refused > 0)
	{
		/* Warn about the letters that could not be redriven. */
		ereport(
			WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg_plural("%d dead letter could not be redriven",
						   "%d dead letters could not be redriven",
						   redrive.refused, redrive.refused),
			 errdetail("The first is that of task \"%s\": %s.",
					   tq_slug_text(&redrive.first_refused), redrive.why),
			 errhint(
				 "tq.redrive() says why; tq.discard_dead_letter() drops a letter.")));
	}
	return redrive.done;
}
