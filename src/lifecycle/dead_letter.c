/*
 * dead_letter.c
 *	  Dead letters: finally failed tasks, kept and redriven.
 *
 * Follows doc/spec/policy.md 2 and 10.13.  Decides what a dead letter contains,
 * and how a redrive runs the task again: as a rerun before the task's deadline,
 * otherwise as a new task.  transition.c decides which ends write a dead
 * letter; task_ops.c deletes it when the task is rerun.
 *
 * Order of locks: the row with the location of a task, then its dead letter.
 * If the task has expired, or another task of the same id has followed, only
 * the dead letter is locked.  tq_dead_letters_redrive() waits for neither
 * lock, so that several sessions can redrive the letters of one queue.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "lifecycle.h"

/* ---- writing ---- */

/* Definitions may be large, so only this many are in memory at a time. */
#define LETTERS_AT_ONCE 100

/*
 * Returns the definition of a dead task.  One that had to wait for a time,
 * which is over, counts as created then, so that it need not wait as long
 * when it is redriven.
 */
static Jsonb *
definition_of(const TqTaskDefinition *definition)
{
	TqTaskDefinition dead = *definition;
	TqTask *task = &dead.named.task;

	if (task->delay < 0)
	{
		task->created = tq_policy_visible(task->created, task->delay, 0);
		task->delay = 0;
	}
	return tq_definition_json(&dead);
}

/* Writes the dead letter of a task, from its definition and its runs. */
static void
write_letter(const TqTaskDefinition *definition, TimestampTz now)
{
	const TqTask *task = &definition->named.task;
	int n;
	TqHistoryRun *runs = tq_runs_of_task(task, &n);
	const TqHistoryRun *last = &runs[n - 1];
	TqDeadLetter letter = {.task_id = task->task_id,
						   .task = task->id,
						   .queue = task->queue,
						   .failed_at = now,
						   .reason = last->run.reason,
						   .error = last->detail == NULL ? NULL
														 : last->detail->error,
						   .definition = definition_of(definition),
						   .runs = tq_runs_json(runs, n)};

	tq_dead_letter_insert(&letter);
	tq_count(TQ_COUNTED_QUEUE, task->queue, TQ_QUEUE_DEAD_LETTERS, 1);
}

/*
 * Writes a dead letter for each of these tasks, which have just been finally
 * resolved, in place of an earlier letter of the same task.  Their rows are
 * locked and written.
 */
void
tq_dead_letters_write(const int64 *tasks, int n, TimestampTz now)
{
	MemoryContext scratch;
	MemoryContext outer;

	if (n == 0)
		return;
	scratch = AllocSetContextCreate(CurrentMemoryContext, "tq dead letters",
									ALLOCSET_DEFAULT_SIZES);
	outer = MemoryContextSwitchTo(scratch);
	for (int done = 0; done < n; done += LETTERS_AT_ONCE)
	{
		int found;
		TqTaskDefinition *definitions =
			tq_definitions_by_id(&tasks[done], Min(n - done, LETTERS_AT_ONCE),
								 &found);

		for (int i = 0; i < found; i++)
			write_letter(&definitions[i], now);
		MemoryContextReset(scratch);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(scratch);
}
