/*
 * wait_api.c
 *	  The procedures that wait without a transaction; and the check of the
 *	  argument "wait".
 *
 * tq.wait_for_work() waits for something to claim, tq.wait_for_task() for a
 * task and tq.wait_for_task_group() for a group to be resolved.  They end their
 * transaction before they sleep, so that they do not hold back vacuum however
 * long they wait.
 *
 * A session that waits for a group waits for one of its unresolved tasks.  When
 * that task is resolved, it looks for the next one in the order of task ids, so
 * that it is woken a few times only, however many tasks there are, and looks at
 * each of them about once.
 *
 * No commit wakes a session because what it waits for has become blocked: that a
 * failure elsewhere lets an unscheduled task never start.  So the session looks
 * each second while there is an unscheduled task, and less often if to look
 * takes long.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "executor/spi.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "../core/names.h"
#include "../core/state.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_wait_for_work);
PG_FUNCTION_INFO_V1(tq_wait_for_work_of_queues);
PG_FUNCTION_INFO_V1(tq_wait_for_task_0_2);
PG_FUNCTION_INFO_V1(tq_wait_for_task_group_0_2);

#define WAIT_MAX_MS (3600 * 1000)
#define BLOCK_MS 1000  /* between two looks whether it is blocked, at least */
#define BLOCK_SHARE 10 /* of the time goes into these looks, at most: 1/10 */

/* ---- what is waited for ---- */

/*
 * What a session waits for.  find() returns whether it is there, and otherwise
 * sets the lists of the wait queue; is_over() returns whether the wait in them
 * is over.  Each is called with a snapshot of its own.
 */
typedef struct Awaited
{
	const char *procedure;
	const char *hint; /* what to do inside a transaction block */
	TqWaitSite site;
	void (*require)(const struct Awaited *awaited); /* checks the scopes */
	bool (*find)(struct Awaited *awaited);
	bool (*is_over)(struct Awaited *awaited);
	bool is_for_work;
	const char *queue;  /* NULL: several queues, or a task or group */
	TqQueueSet *set;    /* NULL: one queue, or a task or group */
	TqSlug id;          /* of the task or group */
	TqMember member;    /* the task, or an unresolved task of the group */
	TqSetLists lists;   /* of the wait queue */
	int64 recheck_ms;   /* when to look without a wake-up; 0: seldom */
	const char *result; /* how the wait for a task or group has ended */
} Awaited;

static void
require_work(const Awaited *awaited)
{
	tq_access_require(tq_need("queue:claim-work:%s", awaited->queue));
}

static void
require_set(const Awaited *awaited)
{
	tq_queue_set_require(awaited->set);
}

static void
require_task(const Awaited *awaited)
{
	tq_require_read("status", &awaited->id);
}

static void
require_group(const Awaited *awaited)
{
	tq_require_group_list(&awaited->id);
}

/* Waits in this list of the wait queue. */
static void
set_list(Awaited *awaited, int32 number)
{
	awaited->lists.n = 1;
	awaited->lists.numbers[0] = number;
}

/* Notes when to look without a wake-up. */
static void
wait_look_at(Awaited *awaited, TimestampTz again)
{
	awaited->recheck_ms = again == 0 ? 0 : tq_clock_ms_until(again);
}

static bool
wait_is_claimable(Awaited *awaited)
{
	TimestampTz again;
	bool result = tq_claim_is_possible(awaited->lists.numbers[0],
									   tq_clock_now(), &again);

	wait_look_at(awaited, again);
	return result;
}

/* Interns the name of the task queue if it is new. */
static bool
find_work(Awaited *awaited)
{
	set_list(awaited, tq_queue_intern(awaited->queue));
	return wait_is_claimable(awaited);
}

static bool
is_set_claimable(Awaited *awaited)
{
	TimestampTz again;
	bool result = tq_queue_set_is_claimable(awaited->set, tq_clock_now(),
											&again);

	wait_look_at(awaited, again);
	return result;
}

/* Interns the names of the queues that are new. */
static bool
find_work_of_set(Awaited *awaited)
{
	tq_queue_set_intern(awaited->set);
	awaited->lists = tq_queue_set_lists(awaited->set);
	return is_set_claimable(awaited);
}

/* Returns whether there is work, or there are other queues. */
static bool
is_set_over(Awaited *awaited)
{
	TqSetLists lists;

	tq_queue_set_read(awaited->set);
	lists = tq_queue_set_lists(awaited->set);
	return !tq_set_lists_are_equal(&lists, &awaited->lists) ||
		   is_set_claimable(awaited);
}

/*
 * Returns whether what is waited for can never start; otherwise has the session
 * look again.  group is NULL for a task.
 */
static bool
wait_is_blocked(Awaited *awaited, const TqGroup *group)
{
	TimestampTz began = tq_clock_real_now();
	TqBlock block = {0};

	if (group != NULL)
		tq_group_block(group, &block);
	else
		tq_task_block(awaited->member.id, &block);
	awaited->recheck_ms = Max(BLOCK_MS, (tq_clock_real_now() - began) / 1000 *
											BLOCK_SHARE);
	if (block.blocked)
		awaited->result = "blocked";
	return block.blocked;
}

/* Returns whether the task is resolved, or has been deleted meanwhile. */
static bool
wait_is_resolved(Awaited *awaited)
{
	TqRun last;

	return !tq_run_peek(awaited->member.id, &last) ||
		   tq_state_is_resolved(last.state);
}

static bool
wait_find_task(Awaited *awaited)
{
	TqTask task;
	TqRun last;

	if (!tq_task_find(&awaited->id, &task) || !tq_run_peek(task.id, &last))
		tq_error_missing_task(&awaited->id);
	awaited->member.id = task.id;
	awaited->recheck_ms = 0;
	set_list(awaited, tq_wait_number_of_task(task.id));
	if (last.state == TQ_STATE_UNSCHEDULED)
		return wait_is_blocked(awaited, NULL);
	if (!tq_state_is_resolved(last.state))
		return false;
	awaited->result = tq_state_name(last.state);
	return true;
}

/* Looks from the present member on, and then from the first. */
static bool
wait_find_unresolved(Awaited *awaited)
{
	static const TqSlug lowest = {{0}};
	TqProgress progress;
	TqGroup group;

	tq_group_get(&awaited->id, &group);
	if (!tq_group_first_unresolved(&group, &awaited->member))
	{
		awaited->member.task_id = lowest;
		if (!tq_group_first_unresolved(&group, &awaited->member))
		{
			tq_group_count(&group, &progress);
			awaited->result = tq_group_outcome(&progress);
			return true;
		}
	}
	tq_group_count(&group, &progress);
	set_list(awaited, tq_wait_number_of_task(awaited->member.id));
	awaited->recheck_ms = progress.count[TQ_STATE_UNSCHEDULED] > 0 ? BLOCK_MS
																   : 0;
	return tq_group_only_waits(&progress) && wait_is_blocked(awaited, &group);
}

/* ---- the procedures ---- */

static bool
in_call(bool (*function)(Awaited *awaited), Awaited *awaited)
{
	bool result;

	PushActiveSnapshot(GetTransactionSnapshot());
	tq_call_begin(!awaited->is_for_work);
	awaited->require(awaited);
	result = function(awaited);
	tq_call_end();
	PopActiveSnapshot();
	return result;
}

/*
 * Returns whether what is waited for is there, and otherwise enters the wait
 * queue.  Because it may come before the session has entered, it looks once
 * more after that, with a newer snapshot.
 */
static bool
wait_look(TqWait *wait, Awaited *awaited)
{
	do
	{
		if (in_call(awaited->find, awaited))
			return true;
		tq_wait_enter(wait, awaited->lists.numbers, NULL, awaited->lists.n);
	} while (in_call(awaited->is_over, awaited));
	return false;
}

/*
 * Looks, commits and sleeps, until what is waited for is there or the time is
 * over.  After a wake-up the session looks from outside of the wait queue.  If
 * it finds nothing, it looks again from within the wait queue before it sleeps,
 * so that no other wake-up is lost.
 */
static void
wait_until(TqWait *wait, Awaited *awaited)
{
	TqWakeup wakeup = TQ_WAKEUP_POLL;

	while (wakeup != TQ_WAKEUP_OVER && !wait_look(wait, awaited))
	{
		bool called = tq_wait_tried(wait);

		SPI_commit();
		if (awaited->recheck_ms > 0)
			tq_wait_recheck_in(wait, awaited->recheck_ms);
		if (!called)
			wakeup = tq_wait_sleep(wait, awaited->site);
	}
}

/* Waits for so many milliseconds at most. */
static void
wait_api_for(FunctionCallInfo fcinfo, Awaited *awaited, int64 ms)
{
	TqWait wait;

	tq_require_commit(fcinfo, awaited->procedure,
					  "It ends the transaction before it sleeps.",
					  awaited->hint);
	if (awaited->is_for_work)
		tq_spi_require_writable();
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	tq_wait_begin(&wait, ms);
	wait_until(&wait, awaited);
	if (awaited->is_for_work)
		tq_wait_hand_off(&wait);
	else
		tq_wait_end(&wait);
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
}

/* Waits for a task or a group; returns the row of the argument "result". */
static Datum
wait_api_end(FunctionCallInfo fcinfo, Awaited *awaited)
{
	TupleDesc desc;
	Datum result;
	bool isnull = false;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	desc = BlessTupleDesc(desc);
	wait_api_for(fcinfo, awaited, tq_arg_wait(fcinfo, 1, WAIT_MAX_MS));
	result = CStringGetTextDatum(awaited->result != NULL ? awaited->result
														 : "unresolved");
	return HeapTupleGetDatum(heap_form_tuple(desc, &result, &isnull));
}

#define WORK_HINT                                                             \
	"Call it outside of a transaction block, or use tq.claim_work() with wait."

/*
 * CALL wait_for_work(task_queue_id text, wait interval 0..1 hour): returns when
 * a task of the queue can be claimed, or the time is over.
 */
Datum
tq_wait_for_work(PG_FUNCTION_ARGS)
{
	Awaited awaited = {.procedure = "wait_for_work",
					   .hint = WORK_HINT,
					   .site = TQ_WAIT_FOR_WORK,
					   .require = require_work,
					   .find = find_work,
					   .is_over = wait_is_claimable,
					   .is_for_work = true,
					   .queue = tq_arg_task_queue_id(fcinfo, 0)};

	wait_api_for(fcinfo, &awaited, tq_arg_wait(fcinfo, 1, WAIT_MAX_MS));
	return (Datum) 0;
}

/*
 * CALL wait_for_work(task_queue_ids text[] 1..100, wait interval 0..1 hour):
 * returns when a task of one of the queues can be claimed, or the time is over.
 * Raises TQ409 if patterns stand for too many queues.
 */
Datum
tq_wait_for_work_of_queues(PG_FUNCTION_ARGS)
{
	int n;
	char **elements = tq_arg_texts(fcinfo, 0, "task_queue_ids", &n);
	TqQueueSet set;
	Awaited awaited = {.procedure = "wait_for_work",
					   .hint = WORK_HINT,
					   .site = TQ_WAIT_FOR_WORK,
					   .require = require_set,
					   .find = find_work_of_set,
					   .is_over = is_set_over,
					   .is_for_work = true,
					   .set = &set};

	tq_queue_set_init(&set, elements, n);
	wait_api_for(fcinfo, &awaited, tq_arg_wait(fcinfo, 1, WAIT_MAX_MS));
	return (Datum) 0;
}

/*
 * CALL wait_for_task(task_id slugid, wait interval 0..1 hour, result text):
 * returns when the task is resolved, or can never start, or the time is over;
 * result is its state, "blocked" or "unresolved".  Raises TQ404 if there is no
 * such task, or no longer.
 */
Datum
tq_wait_for_task_0_2(PG_FUNCTION_ARGS)
{
	Awaited awaited = {
		.procedure = "wait_for_task",
		.hint =
			"Call it outside of a transaction block, after the commit that creates the task.",
		.site = TQ_WAIT_FOR_TASK,
		.require = require_task,
		.find = wait_find_task,
		.is_over = wait_is_resolved,
		.id = *tq_arg_slug(fcinfo, 0, "task_id")};

	return wait_api_end(fcinfo, &awaited);
}

/*
 * CALL wait_for_task_group(task_group_id slugid, wait interval 0..1 hour, result
 * text): returns when no task of the group is unresolved, or what is can never
 * start, or the time is over; result is its outcome, "blocked" or "unresolved".
 * Raises TQ404 if there is no such group.
 */
Datum
tq_wait_for_task_group_0_2(PG_FUNCTION_ARGS)
{
	Awaited awaited = {
		.procedure = "wait_for_task_group",
		.hint =
			"Call it outside of a transaction block, after the commit that creates the tasks.",
		.site = TQ_WAIT_FOR_TASK,
		.require = require_group,
		.find = wait_find_unresolved,
		.is_over = wait_is_resolved,
		.id = *tq_arg_slug(fcinfo, 0, "task_group_id")};

	return wait_api_end(fcinfo, &awaited);
}
