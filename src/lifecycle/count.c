/*
 * count.c
 *	  What the transitions of tasks change in the counters of their queues and
 *	  groups.
 *
 * Each function is called where a row is written or deleted, by the module that
 * does it, so that the gauges of a queue are the numbers of its rows in
 * pending, delayed, unscheduled, and run while it is running.  The changes
 * apply when the transaction commits (shmem/counter_commit.c).
 *
 * The counters of a group leave out the task that the group is named after: its
 * row does not say whether other tasks belong to its group.  Readers look at
 * that one task.
 *
 * Cost: six to thirteen changes for each task, from its creation to its end.
 */
#include "postgres.h"

#include "../core/state.h"
#include "lifecycle.h"

/* Returns where a task is counted. */
TqCountOwner
tq_count_owner(const TqTask *task)
{
	return (TqCountOwner){task->queue, task->group_id};
}

/* The gauges of queues and the sums of groups have the same numbers. */
StaticAssertDecl((int) TQ_QUEUE_UNSCHEDULED == (int) TQ_GROUP_UNSCHEDULED &&
					 (int) TQ_QUEUE_DELAYED == (int) TQ_GROUP_DELAYED &&
					 (int) TQ_QUEUE_PENDING == (int) TQ_GROUP_PENDING &&
					 (int) TQ_QUEUE_RUNNING == (int) TQ_GROUP_RUNNING,
				 "a gauge has one number");

static void
count_add_gauge(int32 queue, int64 group_id, int gauge, int by)
{
	tq_count(TQ_COUNTED_QUEUE, queue, gauge, by);
	tq_count(TQ_COUNTED_GROUP, group_id, gauge, by);
}

/* Counts a new task. */
void
tq_count_created(const TqTask *task)
{
	tq_count(TQ_COUNTED_QUEUE, task->queue, TQ_QUEUE_CREATED, 1);
	tq_count(TQ_COUNTED_GROUP, task->group_id, TQ_GROUP_FIRST_CREATED,
			 task->created);
}

/* Counts a row that was inserted into unscheduled. */
void
tq_count_unscheduled(const TqTask *task)
{
	count_add_gauge(task->queue, task->group_id, TQ_QUEUE_UNSCHEDULED, 1);
}

/* Counts a row that was deleted from unscheduled. */
void
tq_count_scheduled(const TqTask *task)
{
	count_add_gauge(task->queue, task->group_id, TQ_QUEUE_UNSCHEDULED, -1);
}

/* Counts a run that was inserted into pending or delayed. */
void
tq_count_start(const TqTask *task, bool is_delayed)
{
	count_add_gauge(task->queue, task->group_id,
					is_delayed ? TQ_QUEUE_DELAYED : TQ_QUEUE_PENDING, 1);
}

/* Counts a run that was moved from delayed to pending. */
void
tq_count_visible(const TqPending *run)
{
	count_add_gauge(run->queue, run->group_id, TQ_QUEUE_DELAYED, -1);
	count_add_gauge(run->queue, run->group_id, TQ_QUEUE_PENDING, 1);
}

/* Counts a claim, and how long the run has waited since it was claimable. */
void
tq_count_claim(TqCountOwner owner, TimestampTz claimable, TimestampTz now)
{
	count_add_gauge(owner.queue, owner.group_id, TQ_QUEUE_PENDING, -1);
	count_add_gauge(owner.queue, owner.group_id, TQ_QUEUE_RUNNING, 1);
	tq_count(TQ_COUNTED_QUEUE, owner.queue, TQ_QUEUE_CLAIMED, 1);
	tq_count(TQ_COUNTED_QUEUE, owner.queue,
			 TQ_QUEUE_WAITED + tq_histogram_bucket((now - claimable) / 1000),
			 1);
	tq_count(TQ_COUNTED_QUEUE, owner.queue, TQ_QUEUE_WAITED_US,
			 Max(now - claimable, 0));
}

/* Counts a running run that its worker has given back, before it starts again. */
void
tq_count_deferred(const TqTask *task)
{
	count_add_gauge(task->queue, task->group_id, TQ_QUEUE_RUNNING, -1);
}

/* ---- the end of a run ---- */

/* Returns in which gauge a row of such a location is counted. */
static int
gauge_of(TqTaskLocation location)
{
	switch (location)
	{
		case TQ_LOCATION_UNSCHEDULED:
			return TQ_QUEUE_UNSCHEDULED;
		case TQ_LOCATION_DELAYED:
			return TQ_QUEUE_DELAYED;
		case TQ_LOCATION_PENDING:
			return TQ_QUEUE_PENDING;
		case TQ_LOCATION_NONE:
		case TQ_LOCATION_RUN:
			break;
	}
	return TQ_QUEUE_RUNNING;
}

static int
sum_of(TqState state)
{
	switch (state)
	{
		case TQ_STATE_COMPLETED:
			return TQ_GROUP_COMPLETED;
		case TQ_STATE_FAILED:
			return TQ_GROUP_FAILED;
		case TQ_STATE_EXCEPTION:
			return TQ_GROUP_EXCEPTION;
		case TQ_STATE_UNSCHEDULED:
		case TQ_STATE_PENDING:
		case TQ_STATE_RUNNING:
			break;
	}
	return TQ_GROUP_SUMS; /* not reached: the run has ended */
}

/*
 * Adds to a group, or takes away, a task that has ended like this; returns the
 * key of the end if it makes the group unsuccessful, or else 0.
 */
static int64
add_final(int64 group, const TqRun *run, int32 policy, int by)
{
	bool is_bad = run->state != TQ_STATE_COMPLETED;
	const TqPolicy *rules = is_bad ? tq_policy_get(policy) : NULL;
	bool is_forgiven = is_bad &&
					   rules->on_unsuccessful == TQ_UNSUCCESSFUL_FORGIVE &&
					   tq_policy_applies(run->reason);

	tq_count(TQ_COUNTED_GROUP, group, sum_of(run->state), by);
	if (is_bad && tq_policy_tolerates(rules, run->reason))
		tq_count(TQ_COUNTED_GROUP, group, TQ_GROUP_TOLERATED, by);
	if (is_forgiven)
		tq_count(TQ_COUNTED_GROUP, group, TQ_GROUP_FORGIVEN, by);
	return is_bad && !is_forgiven
			   ? tq_group_bad_key(run->resolved, run->reason)
			   : TQ_COUNT_NO_TIME;
}

/* Counts how long a worker had a run, in microseconds. */
static void
count_ran(int32 queue, int64 us)
{
	tq_count(TQ_COUNTED_QUEUE, queue,
			 TQ_QUEUE_RAN + tq_histogram_bucket(us / 1000), 1);
	tq_count(TQ_COUNTED_QUEUE, queue, TQ_QUEUE_RAN_US, Max(us, 0));
}

/* Counts a waiting run no longer that is about to start again. */
void
tq_count_replaced(const TqTask *task, const TqRun *run)
{
	count_add_gauge(task->queue, task->group_id, gauge_of(run->location), -1);
}

/*
 * Counts a run that has ended; its location is the one that it had before.  The
 * policy is not needed for a completed run.
 */
void
tq_count_end(TqCountOwner owner, const TqRun *run, int32 policy,
			 bool is_retried)
{
	int gauge = gauge_of(run->location);
	int64 bad;

	count_add_gauge(owner.queue, owner.group_id, gauge, -1);
	tq_count(TQ_COUNTED_QUEUE, owner.queue, TQ_QUEUE_ENDED + run->reason, 1);
	if (is_retried)
		tq_count(TQ_COUNTED_QUEUE, owner.queue, TQ_QUEUE_RETRIED, 1);
	if (gauge == TQ_QUEUE_RUNNING && run->started != 0)
		count_ran(owner.queue, run->resolved - run->started);
	if (owner.group_id == 0 || is_retried)
		return;
	bad = add_final(owner.group_id, run, policy, 1);
	tq_count(TQ_COUNTED_GROUP, owner.group_id, TQ_GROUP_LAST_RESOLVED,
			 run->resolved);
	if (bad != TQ_COUNT_NO_TIME)
		tq_count(TQ_COUNTED_GROUP, owner.group_id, TQ_GROUP_FIRST_BAD, bad);
}

/* Counts the end of a task, if it has one, no longer: it gets another run. */
void
tq_count_rerun(const TqTask *task, const TqRun *last)
{
	int64 bad;

	if (task->group_id == 0 || !tq_state_is_resolved(last->state))
		return;
	bad = add_final(task->group_id, last, task->policy, -1);
	tq_count(TQ_COUNTED_GROUP, task->group_id, TQ_GROUP_UNDONE_RESOLVED,
			 last->resolved);
	if (bad != TQ_COUNT_NO_TIME)
		tq_count(TQ_COUNTED_GROUP, task->group_id, TQ_GROUP_UNDONE_BAD, bad);
}

/* Counts an unresolved task, whose row is there, in another queue. */
void
tq_count_moved(const TqTask *task, TqTaskLocation location, int32 to)
{
	int gauge = gauge_of(location);

	tq_count(TQ_COUNTED_QUEUE, task->queue, gauge, -1);
	tq_count(TQ_COUNTED_QUEUE, to, gauge, 1);
}

/* Counts a run that has reported progress for the first time. */
void
tq_count_reported(const TqTask *task)
{
	tq_count(TQ_COUNTED_GROUP, task->group_id, TQ_GROUP_REPORTED, 1);
}

/* Counts a task no longer that was deleted; `last` was its current row. */
void
tq_count_deleted(const TqTask *task, const TqRun *last)
{
	tq_count(TQ_COUNTED_GROUP, task->group_id, TQ_GROUP_GONE, 1);
	if (!tq_state_is_resolved(last->state))
		tq_count(TQ_COUNTED_QUEUE, task->queue, gauge_of(last->location), -1);
}
