/*
 * expiry.c
 *	  Deletes what has expired: tasks, groups, artifacts, and the state of
 *	  queues and workers (doc/spec/taskcluster.md 8.4).
 *
 * A task that is resolved gets a timer at its expiry.  Messages are built from
 * the rows of their task, so these outlive the last message that is kept.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "miscadmin.h"

#include "../engine/engine.h"
#include "../events/events.h"
#include "../storage/log.h"
#include "../storage/registry.h"
#include "../storage/rows.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "bgworker.h"

/* Tasks are deleted this long after they have expired. */
#define EXPIRY_SLACK_MS (30 * 60 * 1000)

/* The last message about a task comes no later than this after its deadline. */
#define MESSAGE_SLACK_MS (60 * 1000)

/* Inserts timers that look at these tasks again, delay_ms after they expire. */
static void
set_expiry(const TqTask *tasks, int n, int64 delay_ms)
{
	TqTimerEntry *entries = palloc(sizeof(TqTimerEntry) * Max(n, 1));

	for (int i = 0; i < n; i++)
		entries[i] = (TqTimerEntry){tq_clock_add_ms(tasks[i].expires,
													delay_ms + 1),
									tasks[i].id};
	tq_timers_insert(TQ_TIMER_EXPIRE, entries, n);
}

/* Inserts timers that delete these resolved tasks when they have expired. */
void
tq_expiry_watch(const TqTask *tasks, int n)
{
	set_expiry(tasks, n, EXPIRY_SLACK_MS);
}

/*
 * Inserts a timer that looks at a task again when its last message is no
 * longer kept, if publication is not late; at the latest after
 * tq.message_retention.  `unpublished` is the time from
 * tq_retention_published_before() to the end of the task.
 */
static void
look_again(int64 task, TimestampTz unpublished, TimestampTz now)
{
	int64 ms = Min(unpublished / 1000,
				   INT64CONST(1000) * tq_message_retention);

	tq_timer_insert(TQ_TIMER_EXPIRE, tq_clock_add_ms(now, ms + 1), &task, 1);
}

/*
 * Deletes expired tasks, at most tq.expire_batch of them.  Tasks whose last
 * messages may still be needed, and tasks that another session has locked, are
 * looked at again later; the tasks beyond the batch at once.
 */
static int
delete_expired(const TqTask *tasks, int64 *ids, int n, TimestampTz now,
			   bool *more)
{
	TimestampTz published = tq_retention_published_before(now);
	int batch = Min(n, tq_expire_batch);
	int nheld = 0;
	int nagain = 0;
	int64 *again = palloc(sizeof(int64) * Max(n, 1));

	for (int i = 0; i < batch; i++)
	{
		TqRun run;

		if (tq_run_lock(ids[i], TQ_LOCK_SKIP, &run))
		{
			if (run.resolved < published)
			{
				tq_count_deleted(&tasks[i], &run);
				ids[nheld++] = ids[i];
			}
			else
				look_again(ids[i], run.resolved - published, now);
		}
		else
			again[nagain++] = ids[i];
	}
	tq_timer_insert(TQ_TIMER_EXPIRE, tq_clock_add_ms(now, TQ_AGAIN_MS), again,
					nagain);
	tq_timer_insert(TQ_TIMER_EXPIRE, now, ids + batch, n - batch);
	*more = *more || n > batch;
	if (nheld == 0)
		return 0;
	tq_artifacts_delete_of_tasks(ids, nheld);
	return tq_tasks_delete(ids, nheld);
}

/*
 * Returns the time before which a task must have expired to be deleted.  That
 * is half an hour ago, or earlier: before the oldest messages that are kept,
 * because messages are built from the rows of their task.
 */
static TimestampTz
expired_before(TimestampTz now)
{
	TimestampTz before = tq_clock_add_ms(now, -EXPIRY_SLACK_MS);
	TimestampTz oldest = tq_tick_oldest();

	if (oldest == 0)
		return before;
	oldest = Max(oldest, tq_retention_kept_since(now));
	return Min(before, tq_clock_add_ms(oldest, -MESSAGE_SLACK_MS));
}

/*
 * Deletes those of the tasks that have expired long enough ago.  The others
 * are looked at again when they have.
 */
int64
tq_expiry_tasks(const TqWork *work)
{
	TimestampTz before = expired_before(work->now);
	int64 *expired = palloc(sizeof(int64) * Max(work->n, 1));
	int nexpired = 0;
	int nkept = 0;
	int n;
	TqTask *tasks = tq_tasks_core(work->tasks, work->n, &n);
	TqTask *kept = palloc(sizeof(TqTask) * Max(n, 1));

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].expires >= before)
		{
			kept[nkept++] = tasks[i];
			continue;
		}
		expired[nexpired] = tasks[i].id;
		tasks[nexpired++] = tasks[i];
	}
	set_expiry(kept, nkept, (work->now - before) / 1000);
	return delete_expired(tasks, expired, nexpired, work->now, work->more);
}

/*
 * Deletes expired groups and artifacts, and clears expired queues and workers,
 * which have no timers of their own.  Does so once an hour in each backend.
 */
void
tq_expiry_sweep(TimestampTz now)
{
	static TimestampTz last = 0;
	TimestampTz before = tq_clock_add_ms(now, -EXPIRY_SLACK_MS);

	if (last != 0 && before < tq_clock_add_ms(last, TQ_HOUR_MS) &&
		before >= last)
		return;
	while (tq_groups_delete(before, tq_expire_batch) == tq_expire_batch)
		CHECK_FOR_INTERRUPTS();
	while (tq_artifacts_delete_expired(before, tq_expire_batch) ==
		   tq_expire_batch)
		CHECK_FOR_INTERRUPTS();
	tq_queues_forget(before);
	tq_workers_forget(before);
	tq_interned_sweep(before, now);
	last = before;
}
