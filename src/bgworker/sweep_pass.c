/*
 * sweep_pass.c
 *	  Passes over all tasks that delete those whose retention is over, and old
 *	  dead letters (doc/spec/taskcluster.md 8.4).
 *
 * A pass reads tasks from the lowest id up to those that are too young, a batch
 * in each transaction.  A batch that fails is left to the next pass, so that one
 * bad task does not hold up those behind it.  The maintenance worker begins the next pass after a pause, during which
 * the tasks that stayed are not read again: five minutes, or twenty times as
 * long as the pass took.  upkeep() does a whole pass.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "miscadmin.h"

#include "../engine/sweep.h"
#include "../storage/dead_letter_table.h"
#include "../util/clock.h"
#include "../util/guc.h"
#include "sweep_pass.h"

#define PAUSE_MS (5 * 60 * 1000) /* the shortest between two passes */
#define PAUSE_RATIO 20           /* pause / time that the pass took */

/* The pass of this process; it moves on even if its batch is rolled back. */
typedef struct Pass
{
	TqSweepRule rule; /* as of its beginning */
	int64 after;      /* behind the last task that was read */
	int64 spent_us;   /* in its batches */
	bool is_over;
	TimestampTz next; /* begin of the next pass, when it is over */
} Pass;

static Pass pass = {.is_over = true, .next = TQ_LONG_AGO};

/* Returns where the next batch of the maintenance worker begins. */
TqScanPosition
tq_sweep_position(void)
{
	TqScanPosition position = TQ_SCAN_BEGIN;

	if (!pass.is_over)
		position.seq = pass.after;
	return position;
}

/*
 * Returns whether the maintenance worker sweeps now: in a pass, and when it is
 * time for the next one.
 */
bool
tq_sweep_is_time(TimestampTz now)
{
	/* If the clock was set back, a pass does not wait for it. */
	return !pass.is_over || now >= pass.next ||
		   pass.next > tq_clock_add_ms(now, TQ_HOUR_MS);
}

/* Deletes dead letters that are too old, a batch of them. */
static int
delete_letters(TimestampTz now)
{
	TimestampTz before = tq_clock_add_ms(now, INT64CONST(-1000) *
												  tq_retain_dead_letters);

	return tq_dead_letters_delete(before, tq_expire_batch);
}

/* Deletes a batch of tasks, and notes whether it was the last of the pass. */
static int
delete_tasks(TimestampTz now)
{
	bool more = true;
	int deleted = tq_sweep_some(&pass.rule, tq_expire_batch, now, &pass.after,
								&more);
	TimestampTz end = tq_clock_now();
	int64 pause;

	pass.spent_us += end - now;
	pause = Max(PAUSE_MS, pass.spent_us / 1000 * PAUSE_RATIO);
	pass.is_over = !more;
	pass.next = tq_clock_add_ms(end, Min(pause, TQ_HOUR_MS));
	return deleted;
}

/*
 * Does one batch of a pass; returns how many tasks and dead letters were
 * deleted.  Begins a new pass if the position is TQ_SCAN_BEGIN, with dead
 * letters, and reads tasks when there is less than a batch of these.
 */
int64
tq_sweep_batch(TqScanPosition *position, TimestampTz now, bool *more)
{
	int64 deleted = 0;

	if (position->seq == 0)
	{
		deleted = delete_letters(now);
		*more = deleted >= tq_expire_batch;
		if (*more)
			return deleted;
		pass = (Pass){.rule = tq_sweep_by_retention(now)};
	}
	deleted += delete_tasks(now);
	*more = !pass.is_over;
	position->seq = pass.after;
	return deleted;
}
