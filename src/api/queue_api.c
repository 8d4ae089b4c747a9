/*
 * queue_api.c
 *	  CALL tq.wait_for_work(): waits without a transaction; and the check of
 *	  the argument "wait".
 *
 * The procedure ends its transaction before it sleeps, so that it does not hold
 * back vacuum however long it waits.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "datatype/timestamp.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "../engine/claim.h"
#include "../shmem/wait_queue.h"
#include "../storage/activation.h"
#include "../storage/queue_table.h"
#include "../util/clock.h"
#include "../util/errors.h"
#include "../util/spi.h"
#include "arguments.h"
#include "queue_api.h"

PG_FUNCTION_INFO_V1(tq_wait_for_work);

#define WAIT_MAX_MS (3600 * 1000)

static void
refuse_wait(Interval *span, int64 max)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("wait is out of range"),
			 errdetail("It is %s.",
					   DatumGetCString(
						   DirectFunctionCall1(interval_out,
											   IntervalPGetDatum(span)))),
			 errhint("Give an interval from 0 to %d seconds.",
					 (int) (max / 1000))));
}

/* Returns the argument "wait", at most max, in milliseconds. */
int64
tq_arg_wait(FunctionCallInfo fcinfo, int n, int64 max)
{
	Interval *span = tq_arg_interval(fcinfo, n, "wait");
	TimestampTz now = tq_clock_now();
	TimestampTz until = tq_clock_add_interval(now, span);

	if (until < now || until > tq_clock_add_ms(now, max))
		refuse_wait(span, max);
	return (until - now) / 1000;
}

/*
 * Enters the wait queue of that task queue, and returns whether there is
 * something to claim.  Interns the name of the task queue if it is new.
 */
static bool
look(TqWait *wait, const char *name)
{
	int32 queue;
	bool result;

	PushActiveSnapshot(GetTransactionSnapshot());
	tq_call_begin(false);
	queue = tq_queue_intern(name);
	tq_wait_enter(wait, queue);
	result = tq_claim_is_possible(queue, tq_clock_now());
	tq_call_end();
	PopActiveSnapshot();
	return result;
}

/* ---- the procedure ---- */

static void
refuse_to_commit(void)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT),
		 errmsg("tq.wait_for_work() cannot run inside a transaction block"),
		 errdetail("It ends the transaction before it sleeps."),
		 errhint(
			 "Call it outside of a transaction block, or use tq.claim_work() with wait.")));
}

/*
 * Returns whether the procedure may end the transaction, which it may not in a
 * transaction block or within a function.
 */
static bool
may_commit(FunctionCallInfo fcinfo)
{
	return fcinfo->context != NULL && IsA(fcinfo->context, CallContext) &&
		   !castNode(CallContext, fcinfo->context)->atomic &&
		   !IsSubTransaction();
}

/*
 * Looks for a claimable run, commits and sleeps, until there is one or the
 * time is over.  After a wake-up the session looks from outside of the wait
 * queue.  If it finds nothing, it looks again from within the wait queue
 * before it sleeps, so that no other wake-up is lost.
 */
static void
wait_for_work(TqWait *wait, const char *name)
{
	TqWakeup wakeup = TQ_WAKEUP_POLL;

	while (wakeup != TQ_WAKEUP_OVER && !look(wait, name))
	{
		bool called = tq_wait_tried(wait);

		SPI_commit();
		if (!called)
			wakeup = tq_wait_sleep(wait, TQ_WAIT_FOR_WORK);
	}
}

/*
 * CALL wait_for_work(task_queue_id text, wait interval 0..1 hour): returns when
 * a task of the queue can be claimed, or the time is over.
 */
Datum
tq_wait_for_work(PG_FUNCTION_ARGS)
{
	char *name = tq_arg_task_queue_id(fcinfo, 0);
	int64 ms = tq_arg_wait(fcinfo, 1, WAIT_MAX_MS);
	TqWait wait;

	if (!may_commit(fcinfo))
		refuse_to_commit();
	tq_spi_require_writable();
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	tq_wait_begin(&wait, ms);
	wait_for_work(&wait, name);
	tq_wait_hand_off(&wait);
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	return (Datum) 0;
}
