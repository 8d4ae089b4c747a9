/*
 * claim_wait.c
 *	  A claim that waits when there is nothing to claim, and a reclaim that
 *	  waits while the run goes on (doc/spec/taskcluster.md 2.8, 2.10, 5.2).
 *
 * Decides when a claim is tried again, and when a wake-up is handed on to
 * another session.  claim.c does the claim itself; wait_queue.c lets a session
 * sleep and wakes it.
 *
 * A reclaim waits before it prolongs the claim, and not after that, because the
 * row of the run would stay locked until the commit, and a session that cancels
 * the task would wait for it.  The claim must not expire meanwhile, so the wait
 * takes at most half of what is left of it.
 *
 * While a session waits it holds no transaction id and no row lock, so it
 * blocks no other session.  But it holds the snapshot of its statement, which
 * keeps vacuum from removing newer dead tuples, so the wait is short
 * (worker_api.c).  DROP and ALTER EXTENSION wait for the lock that each call has
 * on a table; they end the wait, as if its time were over.
 */
#include "postgres.h"

#include "utils/inval.h"
#include "utils/memutils.h"

#include "lifecycle.h"

/* A claim in progress. */
typedef struct ClaimWaitTry
{
	const char *queue;
	const TqClaimAsk *ask;
	bool waits; /* or was woken after an earlier wait */
	TqWait wait;
	TqClaim *claims;
	int found;
	TimestampTz again; /* when there may be some without a wake-up; 0: not */
	bool barred;       /* in quarantine */
} ClaimWaitTry;

/*
 * Returns whether the worker is known, and notes whether it is in quarantine.
 * Then it cannot claim, so its wake-up is handed on to another session.
 */
static bool
look_for_worker(ClaimWaitTry *try, int32 queue)
{
	TqWorkerSeat seat;
	bool known = queue != 0 &&
				 tq_worker_seat_find(queue, try->ask->worker_group,
									 try->ask->worker_id, &seat);

	try->barred = known && seat.quarantine_until > tq_clock_now();
	if (try->barred)
		tq_wait_requeue_wakeup(&try->wait);
	return known;
}

/*
 * Returns whether a try of a waiting session can find anything.  A
 * new queue or worker is not inserted before there is something to claim:
 * another session that uses the same name for the first time, perhaps to
 * create the very task that is waited for, would wait for this transaction.
 */
static bool
may_find(ClaimWaitTry *try)
{
	int32 queue = tq_queue_find(try->queue);

	if (look_for_worker(try, queue))
		return !try->barred;
	return queue != 0 &&
		   tq_claim_is_possible(queue, tq_clock_now(), &try->again);
}

/*
 * Tries once.  If it finds nothing, the worker may have come into quarantine
 * since may_find().
 */
static bool
claim_wait_claim(ClaimWaitTry *try)
{
	try->found = 0;
	try->again = 0;
	if (!try->waits || may_find(try))
	{
		try->claims = tq_claim_best(try->queue, try->ask, try->ask->max,
									tq_clock_now(), &try->found, &try->again);
		if (try->found > 0)
			tq_wait_used(&try->wait, try->found);
		else if (try->waits)
			(void) look_for_worker(try, tq_queue_find(try->queue));
	}
	if (try->again != 0)
		tq_wait_recheck_in(&try->wait, tq_clock_ms_until(try->again));
	return try->found > 0;
}

/*
 * Tries once more.  Resets the memory of the previous try, so that a long wait
 * needs no more memory than one try.
 */
static bool
claim_wait_claim_again(ClaimWaitTry *try, MemoryContext memory)
{
	MemoryContext outer = MemoryContextSwitchTo(memory);
	bool found;

	MemoryContextReset(memory);
	/*
	 * Check the rights of the caller again, by what has been committed
	 * meanwhile: the statement may have begun long ago.
	 */
	AcceptInvalidationMessages();
	tq_require_claim("claim-work", try->queue, NULL, try->ask->worker_group,
					 try->ask->worker_id);
	found = claim_wait_claim(try);
	MemoryContextSwitchTo(outer);
	return found;
}

/*
 * Enters the wait queue of this queue, then tries to claim.  A queue that does
 * not exist yet may be created between the lookup and the try; then it does
 * both again.
 */
static bool
claim_wait_enter_and_claim(ClaimWaitTry *try, MemoryContext memory)
{
	int32 queue;

	do
	{
		int want;

		queue = tq_queue_find(try->queue);
		want = tq_limits_want(queue, try->ask->max);
		if (!try->barred)
			tq_wait_enter(&try->wait, &queue, &want, 1);
		if (claim_wait_claim_again(try, memory))
			return true;
	} while (queue == 0 && tq_queue_find(try->queue) != 0);
	return false;
}

/*
 * Sleeps, and returns whether the wait is over.  It is when the extension is
 * dropped or altered, because that waits for this call.
 */
static bool
claim_wait_is_over(TqWait *wait, TqWaitSite site)
{
	return tq_catalog_is_wanted() ||
		   tq_wait_sleep(wait, site) == TQ_WAKEUP_OVER ||
		   tq_catalog_is_wanted();
}

/*
 * Makes a claim that waits, or that takes over the wake-up of an earlier wait of
 * the session.
 */
static void
claim_or_wait(ClaimWaitTry *try)
{
	int32 number = tq_queue_find(try->queue);
	int64 wait_ms = try->ask->wait_ms;

	tq_wait_begin(&try->wait, wait_ms);
	try->waits = tq_wait_take_over(&try->wait, &number, 1) || wait_ms > 0;
	if (!claim_wait_claim(try))
	{
		(void) tq_wait_tried(&try->wait);
		if (wait_ms > 0)
		{
			MemoryContext memory =
				AllocSetContextCreate(CurrentMemoryContext, "tq claim wait",
									  ALLOCSET_DEFAULT_SIZES);

			/* Sleep and try until there are runs or the time is over. */
			while (!claim_wait_enter_and_claim(try, memory))
			{
				/*
				 * If the session was woken and the run is gone, it enters the wait
				 * queue and tries once more before it sleeps.
				 */
				if (!tq_wait_tried(&try->wait) &&
					claim_wait_is_over(&try->wait, TQ_WAIT_CLAIM_WORK))
					break;
			}
		}
	}
	tq_wait_end(&try->wait);
}

/*
 * Claims runs of a queue, best first.  If there is none, waits until there is
 * one, for as long as the worker asks (doc/spec/taskcluster.md 2.8).  A session that does not wait and has no wake-up to take over never
 * enters the wait queue.  The caller has checked the rights; after a wait they are
 * checked again.
 */
TqClaim *
tq_claim_wait(const char *queue, const TqClaimAsk *ask, int *found)
{
	ClaimWaitTry try = {.queue = queue, .ask = ask};

	if (ask->wait_ms > 0 || tq_wait_has_wakeup())
		claim_or_wait(&try);
	else
		try.claims = tq_claim_best(queue, ask, ask->max, tq_clock_now(),
								   &try.found, &try.again);
	if (try.found == 0)
		tq_claim_note_seen(queue, ask->worker_group, ask->worker_id,
						   tq_clock_now());
	*found = try.found;
	return try.claims;
}

/* ---- a reclaim ---- */

/* The run of a reclaim that waits. */
typedef struct HeldRun
{
	TqTask task;
	int run_id;
	int32 holder; /* of the credentials; 0: none were given */
	int32 worker; /* at the first look */
} HeldRun;

/*
 * Reads the run without a lock, and raises the error of a reclaim if that is
 * refused.
 */
static void
read_held_run(const HeldRun *held, TqRun *run)
{
	TqRunWriter *writer = tq_run_writer_begin();

	while (!tq_claim_read(writer, &held->task, held->run_id, held->holder,
						  TQ_EVENT_RECLAIM, tq_clock_now(), run))
		CHECK_FOR_INTERRUPTS();
	tq_run_writer_end(writer);
}

/* Looks once more.  Resets the memory of the previous look. */
static void
claim_wait_recheck(const HeldRun *held, MemoryContext memory)
{
	MemoryContext outer = MemoryContextSwitchTo(memory);
	TqTask task;
	TqRun run;

	MemoryContextReset(memory);
	AcceptInvalidationMessages();
	if (!tq_task_find(&held->task.task_id, &task))
		tq_error_missing_task(&held->task.task_id);
	read_held_run(held, &run);
	if (run.worker != held->worker)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("run %d of task \"%s\" has another worker",
						held->run_id, tq_slug_text(&held->task.task_id)),
				 errdetail("It was deferred and claimed again."),
				 errhint("The claim is lost: stop working on this run.")));
	MemoryContextSwitchTo(outer);
}

/* Returns how long the claim may wait before it is prolonged. */
static int64
longest_stay(const TqTask *task, const TqRun *run, int64 wait_ms)
{
	int64 left = tq_clock_ms_until(run->taken_until) / 2;

	left = Min(left, tq_clock_ms_until(task->deadline));
	return Max(Min(left, wait_ms), 0);
}

/*
 * Waits while the run is running by its worker, for at most wait_ms
 * milliseconds and half of what is left of the claim.  Raises the error of a
 * reclaim as soon as the run is not.  Locks and writes nothing.
 */
void
tq_claim_stay(const TqSlug *task_id, int run_id, int32 holder, int64 wait_ms)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext,
												 "tq reclaim wait",
												 ALLOCSET_DEFAULT_SIZES);
	HeldRun held = {.run_id = run_id, .holder = holder};
	TqWait wait;
	TqRun run;
	int32 number;

	if (!tq_task_find(task_id, &held.task))
		tq_error_missing_task(task_id);
	read_held_run(&held, &run);
	held.worker = run.worker;
	number = tq_wait_number_of_task(held.task.id);
	tq_wait_begin(&wait, longest_stay(&held.task, &run, wait_ms));
	do
	{
		tq_wait_enter(&wait, &number, NULL, 1);
		claim_wait_recheck(&held, memory);
	} while (tq_wait_tried(&wait) ||
			 !claim_wait_is_over(&wait, TQ_WAIT_FOR_TASK));
	tq_wait_end(&wait);
	MemoryContextDelete(memory);
}
