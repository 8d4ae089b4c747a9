/*
 * worker.c
 *	  The background worker of one database: does what is due when it is due.
 *
 * Room 5.  Decides when a step of upkeep.c is taken, in which transaction,
 * and what becomes of an error.  Which database gets a worker is decided in
 * worker_launcher.c, which statements send it away in worker_utility.c, what
 * a step does in upkeep.c, how it is woken in shmem.c.
 *
 * A turn publishes messages, and, if anything is due, takes a batch of every
 * other step, each in its own transaction.  An error in a step is logged and
 * shown by tq.worker_overview; the step is tried again a second later, and
 * then goes on without the tasks for which it fails (bisect.c).  The other
 * steps are taken all the same.  Then the worker sleeps until the next thing
 * is due, or until a commit makes something due earlier.  When there is more
 * than a batch, the next turn follows at once: however much is due in one
 * step, what is due in another waits for a batch only.
 *
 * A transaction begins by taking AccessShareLock on the extension.  DROP and
 * ALTER EXTENSION hold it exclusively from their first moment, so a step never
 * runs while the tables change under it, and never waits for that either: if
 * the lock is not to be had, the turn is over.  With a table locked by another
 * session a deadlock is still possible; then it is the worker that notices
 * first, and gives way.
 *
 * The worker does nothing while tq.maintenance is off, and nothing in a
 * database that no client has used since CREATE EXTENSION (activation.c), as
 * a restore or logical replication may be filling its tables.  Which of these
 * it is, the worker logs, and tq.worker_overview shows.
 */
#include "worker.h"

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_extension.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "compat.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "shmem.h"
#include "upkeep.h"

#define GAP_MS 5        /* between the beginnings of two turns */
#define SLEEP_MS 60000  /* safety net, should the system's clock jump */
#define LOCKED_MS 100   /* DROP or ALTER EXTENSION is under way */
#define RETRY_MS 1000   /* after an error */
#define FULL_MS 100     /* the queue of notifications is full */
#define GATHER_RATIO 10 /* see gather_ms() */
#define GATHER_MAX 4
#define PASSES_MAX 10 /* that publish before the other steps are looked at */
#define GAP_MAX_MS 300000 /* longer than any wait between passes */
#define RETAIN_MS 1000    /* between two looks at what is too old to be kept */
#define SKIPPED_FIRST_MS 10 /* what is due is locked: doubled each time … */
#define SKIPPED_LAST_MS 100 /* … up to this */
#define MARKS_MS 300000     /* so long the marks of upkeep.c are kept */

/* What became of one transaction. */
typedef enum Outcome
{
	DONE,
	LOCKED, /* the extension is being changed or dropped */
	IDLE,   /* tq.maintenance is off, or the database is not in use */
	FAILED  /* the error has been logged */
} Outcome;

static MemoryContext turn_context = NULL;
static Oid extension = InvalidOid;

/* When to take the steps besides publishing. */
static TimestampTz steps_due = TQ_LONG_AGO;

/* Settings have changed, on which it depends what is due. */
static bool reloaded = false;

/*
 * Leaving.
 */

/* End the process; the launcher learns why. */
static void
leave(TqExit how)
{
	tq_shmem_worker_ends(how);
	proc_exit(0);
}

/* Do what others want, between two transactions. */
static void
heed(void)
{
	if (tq_shmem_worker_is_told())
		leave(TQ_EXIT_TOLD);
	if (ProcDiePending)
		leave(TQ_EXIT_FAILED);
	QueryCancelPending = false; /* nothing is under way */
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		reloaded = true;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/*
 * What a transaction must know before it does anything.
 */

/* Shows and logs whether the worker works, when that has changed. */
static void
enter_state(TqWorkerState state)
{
	static TqWorkerState last = TQ_WORKER_RUNNING;
	char *name;

	tq_shmem_worker_state(state);
	if (state == last)
		return;
	last = state;
	name = get_database_name(MyDatabaseId);
	switch (state)
	{
		case TQ_WORKER_RUNNING:
			ereport(LOG, (errmsg("tq maintains database \"%s\"", name)));
			break;
		case TQ_WORKER_OFF:
			ereport(LOG,
					(errmsg("tq does not maintain database \"%s\"", name),
					 errdetail("tq.maintenance is off there.")));
			break;
		case TQ_WORKER_UNUSED:
			ereport(
				LOG,
				(errmsg("tq does not maintain database \"%s\" yet", name),
				 errdetail(
					 "Maintenance begins when a client calls a function of tq that may change something.")));
			break;
		case TQ_WORKER_ABSENT:
			break;
	}
}

/* Is there anything to be maintained, and is that wanted? */
static bool
is_in_use(void)
{
	TqWorkerState state = TQ_WORKER_OFF;

	if (tq_maintenance)
	{
		tq_plan_open(true);
		state = tq_activation_is_done() ? TQ_WORKER_RUNNING : TQ_WORKER_UNUSED;
		tq_plan_close();
	}
	enter_state(state);
	return state == TQ_WORKER_RUNNING;
}

/*
 * May this transaction do anything?  Takes AccessShareLock on the extension.
 * Another extension than before means that everything this process knows of
 * it is wrong: begin anew.
 */
static Outcome
enter_extension(void)
{
	Oid found = get_extension_oid("tq", true);

	if (!OidIsValid(found))
		leave(TQ_EXIT_ABSENT);
	if (OidIsValid(extension) && extension != found)
		leave(TQ_EXIT_TOLD);
	if (!OidIsValid(extension))
		tq_shmem_worker_settled();
	extension = found;
	if (!ConditionalLockDatabaseObject(ExtensionRelationId,
									   extension,
									   0,
									   AccessShareLock))
		return LOCKED;
	if (get_extension_oid("tq", true) != extension)
		return LOCKED;
	return is_in_use() ? DONE : IDLE;
}

/*
 * One transaction.
 */

typedef void (*Work)(void *arg);

static void
begin_transaction(const char *activity)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, activity);
}

static void
end_transaction(void)
{
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* The last error, in turn_context. */
static ErrorData *last_error = NULL;

/* Logs the error that was raised, and rolls the transaction back. */
static void
recover(void)
{
	HOLD_INTERRUPTS();
	MemoryContextSwitchTo(turn_context);
	last_error = CopyErrorData();
	EmitErrorReport();
	AbortOutOfAnyTransaction();
	FlushErrorState();
	pgstat_report_activity(STATE_IDLE, NULL);
	RESUME_INTERRUPTS();
}

static Outcome
attempt(const char *activity, Work work, void *arg)
{
	volatile Outcome outcome = FAILED;

	heed();
	PG_TRY();
	{
		begin_transaction(activity);
		outcome = enter_extension();
		if (outcome == DONE)
			work(arg);
		end_transaction();
	}
	PG_CATCH();
	{
		recover();
		outcome = FAILED;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(turn_context);
	return outcome;
}

/*
 * One turn.
 */

typedef struct StepWork
{
	TqStep step;
	TqMark mark;
	TqBatch batch;
} StepWork;

/* Steps that failed the last time: they go on without the tasks that fail. */
static bool bisect[TQ_STEPS];

/* Before these places there is nothing that is due and has not been noted. */
static TqMarks marks;

static void
work_step(void *arg)
{
	StepWork *work = (StepWork *) arg;

	tq_upkeep_step(work->step, bisect[work->step], &work->mark, &work->batch);
}

static void
work_next_due(void *arg)
{
	*(TimestampTz *) arg = tq_upkeep_next_due(&marks);
}

/* Take one batch of a step; how it went is kept for tq.worker_activity(). */
static Outcome
take_batch(StepWork *work)
{
	Outcome outcome;
	TimestampTz now;

	work->mark = tq_upkeep_mark(work->step, &marks);
	work->batch = (TqBatch){.tasks = 0};
	outcome = attempt(tq_step_name(work->step), work_step, work);
	if (outcome == FAILED)
		tq_shmem_count_failure(work->step,
							   tq_clock_now(),
							   last_error->message);
	if (outcome != DONE)
	{
		bisect[work->step] = outcome == FAILED;
		work->batch = (TqBatch){.tasks = 0};
		return outcome;
	}
	tq_shmem_step_succeeds(work->step);
	if (!work->batch.more)
		bisect[work->step] = false;
	if (work->batch.tasks > 0)
	{
		now = tq_clock_now();
		tq_shmem_count_batch(work->step,
							 work->batch.tasks,
							 now,
							 work->batch.since == DT_NOEND
								 ? -1
								 : now - work->batch.since);
	}
	return outcome;
}

StaticAssertDecl(TQ_STEPS == TQ_SHMEM_STEPS, "a place for each step");

/* Forget the marks now and then, should something not have been noted. */
static void
forget_marks(TimestampTz now)
{
	static TimestampTz last = TQ_LONG_AGO;

	if (now >= last && now < tq_clock_add_ms(last, MARKS_MS))
		return;
	tq_upkeep_marks_begin(&marks);
	last = now;
}

/* When to publish next at the earliest, and whether that has to be. */
static TimestampTz publish_earliest = TQ_LONG_AGO;
static bool publish_again = false;

/*
 * How long to let messages gather after publishing took so long.  A pass costs
 * much more than a message: when there is always something to publish, passes
 * shall be rare enough to leave the processor to others, but nobody shall wait
 * longer than four times tq.publish_interval.
 */
static int
gather_ms(TimestampTz began)
{
	int64 spent_us = tq_clock_now() - began;
	int64 gather = spent_us * GATHER_RATIO / 1000;

	return (int) Max(tq_publish_interval,
					 Min(gather, tq_publish_interval * GATHER_MAX));
}

/*
 * Publish what has been committed, in as many transactions as it takes, but
 * not before tq.publish_interval has passed since the last time; later after
 * an error, or while the server's queue of notifications is full.
 */
static Outcome
publish(TimestampTz now)
{
	StepWork work = {.step = TQ_STEP_PUBLISH};
	Outcome outcome;
	int passes = 0;
	int ms;

	/* Should the clock have been set back, nobody waits for it. */
	if (now < publish_earliest &&
		publish_earliest <= tq_clock_add_ms(now, GAP_MAX_MS))
		return DONE;
	tq_shmem_publish_begin();
	do
	{
		outcome = take_batch(&work);
	} while (outcome == DONE && work.batch.more && work.batch.tasks > 0 &&
			 ++passes < PASSES_MAX);
	publish_again = outcome != DONE || work.batch.more;
	ms = gather_ms(now);
	if (publish_again && work.batch.tasks == 0)
		ms = outcome == FAILED ? RETRY_MS : FULL_MS;
	publish_earliest = tq_clock_add_ms(tq_clock_now(), ms);
	return outcome == FAILED ? DONE : outcome;
}

/* Until when to sleep after a transaction that could not do its work. */
static TimestampTz
later(Outcome outcome)
{
	int ms = RETRY_MS;

	if (outcome == LOCKED)
		ms = LOCKED_MS;
	else if (outcome == IDLE)
		ms = SLEEP_MS;
	return tq_clock_add_ms(tq_clock_now(), ms);
}

/*
 * Until when to sleep when the next thing is due then.  What was due when the
 * turn began, and was not done, is locked by somebody: look again soon, but
 * not at once.
 */
static TimestampTz
bedtime(TimestampTz due, TimestampTz began, bool progress, bool failed)
{
	static int skipped_ms = SKIPPED_FIRST_MS;
	TimestampTz now = tq_clock_now();
	TimestampTz latest = tq_clock_add_ms(now, failed ? RETRY_MS : SLEEP_MS);

	if (failed && due <= now)
		return latest;
	if (due > began || progress)
	{
		skipped_ms = SKIPPED_FIRST_MS;
		return Min(due, latest);
	}
	due = tq_clock_add_ms(now, skipped_ms);
	skipped_ms = Min(skipped_ms * 2, SKIPPED_LAST_MS);
	return due;
}

/* The log is not looked at in every turn of a busy queue. */
static bool
is_time_to_retain(TimestampTz now)
{
	static TimestampTz last = TQ_LONG_AGO;

	if (now >= last && now < tq_clock_add_ms(last, RETAIN_MS))
		return false;
	last = now;
	return true;
}

/* After an error a step is not taken for a while. */
static bool
may_take(TqStep step, TimestampTz began, const TimestampTz *failed)
{
	if (failed[step] != TQ_LONG_AGO && began >= failed[step] &&
		began < tq_clock_add_ms(failed[step], RETRY_MS))
		return false;
	return step != TQ_STEP_RETAIN || is_time_to_retain(began);
}

/*
 * Take a batch of every step besides publishing if one is due, and find out
 * when the next one is.
 */
static Outcome
take_steps(TimestampTz began)
{
	static TimestampTz failed[TQ_STEPS]; /* when; TQ_LONG_AGO: it is well */
	TimestampTz next = DT_NOEND;
	bool progress = false;
	bool more = false;
	bool has_failed = false;
	Outcome outcome;

	if (steps_due > began)
		return DONE;
	forget_marks(began);
	for (int step = TQ_STEP_PUBLISH + 1; step < TQ_STEPS; step++)
	{
		StepWork work = {.step = (TqStep) step};

		if (may_take(work.step, began, failed))
		{
			outcome = take_batch(&work);
			if (outcome == LOCKED || outcome == IDLE)
				return outcome;
			failed[step] = outcome == FAILED ? began : TQ_LONG_AGO;
		}
		has_failed = has_failed || failed[step] != TQ_LONG_AGO;
		more = more || work.batch.more;
		progress = progress || more || work.batch.tasks > 0;
	}
	outcome = attempt("next due", work_next_due, &next);
	if (outcome == DONE)
		steps_due = more ? began : bedtime(next, began, progress, has_failed);
	return outcome;
}

static void
no_work(void *arg)
{
}

/* Do all that is due; returns until when to sleep. */
static TimestampTz
take_turn(TimestampTz began)
{
	static bool idle = false;
	TimestampTz due;
	bool messages;
	Outcome outcome;

	MemoryContextReset(turn_context);
	if (reloaded)
		steps_due = TQ_LONG_AGO;
	reloaded = false;
	due = tq_shmem_turn_begin(began);
	steps_due = Min(steps_due, due);
	tq_upkeep_noted(&marks, due);
	/* While idle, messages are left noted, so that no other one wakes us. */
	outcome = idle ? attempt("idle", no_work, NULL) : DONE;
	if (outcome == DONE)
		outcome = publish(began);
	if (outcome == DONE)
		outcome = take_steps(began);
	idle = outcome == IDLE;
	if (outcome == IDLE)
	{
		/* Everything is looked at again when that changes. */
		tq_upkeep_marks_begin(&marks);
		steps_due = TQ_LONG_AGO;
		return tq_shmem_turn_end(later(outcome), &messages);
	}
	if (outcome != DONE)
		return later(outcome);
	if (reloaded)
		return began;
	due = tq_shmem_turn_end(steps_due, &messages);
	return messages || publish_again ? Min(due, publish_earliest) : due;
}

/*
 * Sleeping.
 */

static long
ms_until(TimestampTz t)
{
	TimestampTz now = tq_clock_now();

	return t <= now ? 0 : TimestampDifferenceMilliseconds(now, t);
}

static void
sleep_until(TimestampTz due, TimestampTz turn_began)
{
	static uint32 wait_event = 0;
	uint32 event = TqWaitEvent(wait_event, "TqWorkerMain");
	long gap = ms_until(tq_clock_add_ms(turn_began, GAP_MS));
	long ms;

	if (gap > 0)
		(void)
			WaitLatch(MyLatch, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, gap, event);
	ms = ms_until(due);
	pgstat_report_stat(ms >= RETRY_MS);
	if (ms > 0)
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 ms,
						 event);
}

/*
 * The process.
 */

/* The worker has the rights of the bootstrap superuser, whatever is set. */
static void
set_role(void)
{
	StartTransactionCommand();
	SetConfigOption("session_authorization",
					GetUserNameFromId(BOOTSTRAP_SUPERUSERID, false),
					PGC_SUSET,
					PGC_S_OVERRIDE);
	SetConfigOption("role", "none", PGC_SUSET, PGC_S_OVERRIDE);
	CommitTransactionCommand();
}

/*
 * What a database or the server may have set, and the worker must not have.
 * ALTER DATABASE ... SET role and session_authorization take effect for
 * background workers, too.
 */
static void
set_settings(void)
{
	static const char *const settings[][2] = {
		{"search_path", "pg_catalog, pg_temp"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"default_transaction_deferrable", "off"},
		{"statement_timeout", "0"},
		{"lock_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"transaction_timeout", "0"}, /* since 17 */
		{"deadlock_timeout", "100ms"},
		{"session_replication_role", "origin"},
		{"temp_file_limit", "-1"},
		{"application_name", "tq worker"},
	};

	for (int i = 0; i < lengthof(settings); i++)
	{
		if (GetConfigOption(settings[i][0], true, false) != NULL)
			SetConfigOption(settings[i][0],
							settings[i][1],
							PGC_SUSET,
							PGC_S_OVERRIDE);
	}
	set_role();
}

static void
begin(void)
{
	TqWorkerOrder order;

	memcpy(&order, MyBgworkerEntry->bgw_extra, sizeof(order));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	if (!tq_shmem_worker_attach(order.slot, order.generation))
		proc_exit(0);
	heed();
	BackgroundWorkerInitializeConnectionByOid(order.database, InvalidOid, 0);
	set_settings();
	turn_context = AllocSetContextCreate(TopMemoryContext,
										 "tq worker",
										 ALLOCSET_DEFAULT_SIZES);
}

void
tq_worker_main(Datum arg)
{
	begin();
	for (;;)
	{
		TimestampTz began = tq_clock_now();

		ResetLatch(MyLatch);
		heed();
		sleep_until(take_turn(began), began);
	}
}

/*
 * tq.start_worker(): the extension's script asks for the worker.
 */
PG_FUNCTION_INFO_V1(tq_start_worker);

Datum
tq_start_worker(PG_FUNCTION_ARGS)
{
	tq_shmem_request(TQ_REQUEST_START, MyDatabaseId);
	PG_RETURN_VOID();
}
