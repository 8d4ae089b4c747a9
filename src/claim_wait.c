/*
 * claim_wait.c
 *	  A claim that waits when there is nothing to claim (spec/taskcluster.md
 *	  2.8, 5.2).
 *
 * Room 4.  Decides when a claim is tried again, and who is not to be woken.
 * What a try does is in claim.c, how a waiter sleeps and is woken in wait.c.
 * While it waits it holds no transaction id and no row, so that it is in
 * nobody's way, but its statement's snapshot, which keeps vacuum from what
 * has died since: so the wait is short (api_worker.c).
 */
#include "rules.h"

#include "utils/memutils.h"

#include "wait.h"

/* A claim on its way. */
typedef struct Try
{
	const char *queue;
	const char *group;
	const char *id;
	int max;
	bool waits; /* or was called, having waited */
	TqWait wait;
	TqClaim *claims;
	int found;
	bool barred; /* in quarantine */
} Try;

/*
 * Before a try of somebody who waits.  A worker in quarantine gets nothing,
 * and what it was called for another can do.  A name is not made known before
 * there is something to claim: whoever else uses it for the first time, be it
 * to create the task that is waited for, would wait for our transaction.
 */
static bool
may_find(Try *try)
{
	int32 queue = tq_queue_find(try->queue);
	TimestampTz now = tq_clock_now();
	TqWorker worker;
	bool known = queue != 0 &&
				 tq_worker_find(queue, try->group, try->id, &worker);

	try->barred = known && worker.quarantine_until > now;
	if (try->barred)
		tq_wait_pass_on(&try->wait);
	return known ? !try->barred
				 : queue != 0 && tq_pending_is_claimable(queue, now);
}

/* Try once. */
static bool
claim(Try *try)
{
	try->found = 0;
	if (!try->waits || may_find(try))
		try->claims = tq_claim_best(try->queue,
									try->group,
									try->id,
									try->max,
									tq_clock_now(),
									&try->found);
	return try->found > 0;
}

/* One more try, that leaves nothing in memory if it is in vain. */
static bool
claim_again(Try *try, MemoryContext memory)
{
	MemoryContext outer = MemoryContextSwitchTo(memory);
	bool found;

	MemoryContextReset(memory);
	found = claim(try);
	MemoryContextSwitchTo(outer);
	return found;
}

/*
 * Be where those are looked for who make runs of this queue claimable.  A
 * queue that has no number yet may get one between the look and the try.
 */
static bool
enter_and_claim(Try *try, MemoryContext memory)
{
	int32 queue;

	do
	{
		queue = tq_queue_find(try->queue);
		if (!try->barred)
			tq_wait_enter(&try->wait, queue);
		if (claim_again(try, memory))
			return true;
	} while (queue == 0 && tq_queue_find(try->queue) != 0);
	return false;
}

/* Sleep and try, until there are runs or the time is over. */
static void
claim_in_time(Try *try)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext,
												 "tq claim wait",
												 ALLOCSET_DEFAULT_SIZES);

	while (!enter_and_claim(try, memory))
	{
		/* What it was called for is gone: try once more, in the list again. */
		if (!tq_wait_tried(&try->wait) &&
			tq_wait_sleep(&try->wait, TQ_WAIT_CLAIM_WORK) == TQ_WAKEUP_OVER)
			break;
	}
}

/*
 * 2.8: up to max runs of a queue, best first; if there is none, then as soon
 * as there is, but no later than after wait_ms milliseconds.
 */
TqClaim *
tq_claim_wait(const char *queue, const char *worker_group,
			  const char *worker_id, int max, int64 wait_ms, int *found)
{
	Try try = {.queue = queue,
			   .group = worker_group,
			   .id = worker_id,
			   .max = max};

	tq_wait_begin(&try.wait, wait_ms);
	try.waits = tq_wait_take_over(&try.wait, tq_queue_find(queue)) ||
				wait_ms > 0;
	if (!claim(&try))
	{
		(void) tq_wait_tried(&try.wait);
		if (wait_ms > 0)
			claim_in_time(&try);
	}
	(void) tq_wait_tried(&try.wait);
	tq_wait_end(&try.wait);
	if (try.found == 0)
		tq_claim_note_seen(queue, worker_group, worker_id, tq_clock_now());
	*found = try.found;
	return try.claims;
}
