/*
 * maintenance_worker.c
 *	  The maintenance worker of one database: does what is due when it is due.
 *
 * Decides when a step of maintenance.c is run, in which transaction, and what
 * happens after an error.  Which database gets a maintenance worker is decided
 * in launcher.c, which statements stop it in utility_hook.c, what a step does
 * in maintenance.c, how it is woken in database.c.
 *
 * A cycle publishes messages and, if anything is due, runs a batch of every
 * other step, each in its own transaction.  An error in a step is logged and
 * shown by tq.maintenance_overview; the step is retried a second later, and
 * then continues without the tasks for which it fails (bisect.c).  The other
 * steps are run all the same.  Then the process sleeps until the next thing is
 * due, or until a commit makes something due earlier.  If there is more than a
 * batch, the next cycle follows at once: however much is due in one step, the
 * other steps wait for one batch only.
 *
 * A transaction begins by taking AccessShareLock on the extension.  DROP and
 * ALTER EXTENSION lock it exclusively as their first action, so a step never
 * runs while the tables change under it.  It never waits for that lock: if it
 * is not available, the cycle ends.  With a table locked by another session a
 * deadlock is still possible; the maintenance worker detects it first, because
 * of its short deadlock_timeout, and rolls back.
 *
 * When the clock is set back, what this process has noted of times is wrong, so
 * it ends, and the launcher starts another one.  No sleep is longer than SLEEP_MS,
 * whatever the clock has done since its end was computed.
 *
 * The maintenance worker does nothing while tq.maintenance is off, and nothing
 * in a database that no client has used since CREATE EXTENSION (activation.c),
 * because a restore or logical replication may be filling its tables.  It logs
 * which of these is the case, and tq.maintenance_overview shows it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_extension.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#include "../storage/registry.h"
#include "bgworker.h"

#define GAP_MS 5        /* between the beginnings of two cycles */
#define CLAIM_MS 2      /* for a session that was woken to claim */
#define SLEEP_MS 60000  /* longest sleep, in case the clock jumps */
#define LOCKED_MS 100   /* DROP or ALTER EXTENSION is under way */
#define RETRY_MS 1000   /* after an error */
#define FULL_MS 100     /* the notification queue is full */
#define GATHER_RATIO 10 /* see gather_ms() */
#define GATHER_MAX 4
#define PASSES_MAX 10       /* of publication before the other steps are run */
#define GAP_MAX_MS 300000   /* longer than any wait between passes */
#define RETAIN_MS 1000      /* between two runs of step "retain" */
#define SKIPPED_FIRST_MS 10 /* what is due is locked; doubled each time ... */
#define SKIPPED_LAST_MS 100 /* ... up to this */
#define HISTORY_MS 10000    /* between two runs of step "history" */
#define MARKS_MS 300000 /* between two resets of the marks of maintenance.c */

/* Result of one transaction. */
typedef enum Outcome
{
	DONE,
	LOCKED, /* the extension is being changed or dropped */
	IDLE,   /* tq.maintenance is off, or the database is not in use */
	FAILED  /* the error has been logged */
} Outcome;

static MemoryContext turn_context = NULL;
static Oid extension = InvalidOid;

/* When to run the steps other than publication. */
static TimestampTz steps_due = TQ_LONG_AGO;

/* Settings have changed, and with them what is due. */
static bool reloaded = false;

/*
 * Exit.
 */

/* Ends the process; the launcher learns why. */
static void
exit_worker(TqExit how)
{
	tq_maintenance_slot_end(how);
	proc_exit(0);
}

/* Processes requests and interrupts, between two transactions. */
static void
process_interrupts(void)
{
	if (tq_maintenance_slot_must_exit())
		exit_worker(TQ_EXIT_REQUESTED);
	if (ProcDiePending)
		exit_worker(TQ_EXIT_FAILED);
	QueryCancelPending = false; /* there is no query to cancel */
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		reloaded = true;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/*
 * What a transaction checks before it does anything.
 */

/*
 * Publishes the state of the maintenance worker, and logs it if it has
 * changed.
 */
static void
enter_state(TqMaintenanceState state)
{
	static TqMaintenanceState last = TQ_MAINTENANCE_RUNNING;
	char *name;

	tq_maintenance_slot_set_state(state);
	if (state == last)
		return;
	last = state;
	name = get_database_name(MyDatabaseId);
	switch (state)
	{
		case TQ_MAINTENANCE_RUNNING:
			ereport(LOG, (errmsg("tq maintains database \"%s\"", name)));
			break;
		case TQ_MAINTENANCE_OFF:
			ereport(LOG, (errmsg("tq does not maintain database \"%s\"", name),
						  errdetail("tq.maintenance is off there.")));
			break;
		case TQ_MAINTENANCE_UNUSED:
			ereport(
				LOG,
				(errmsg("tq does not maintain database \"%s\" yet", name),
				 errdetail(
					 "Maintenance begins when a client calls a function of tq that may change something.")));
			break;
		case TQ_MAINTENANCE_ABSENT:
			break;
	}
}

/* Returns whether maintenance is enabled and the database is in use. */
static bool
maintenance_worker_is_in_use(void)
{
	TqMaintenanceState state = TQ_MAINTENANCE_OFF;

	if (tq_maintenance)
	{
		tq_call_begin(true);
		state = tq_activation_is_done() ? TQ_MAINTENANCE_RUNNING
										: TQ_MAINTENANCE_UNUSED;
		tq_call_end();
	}
	enter_state(state);
	return state == TQ_MAINTENANCE_RUNNING;
}

/*
 * Ends this process if the library does not serve the SQL: an update restarts it
 * (utility_hook.c).
 */
static void
exit_unless_served(void)
{
	char *version = tq_version_unserved();

	if (version == NULL)
		return;
	tq_version_report(LOG, version);
	exit_worker(TQ_EXIT_ABSENT);
}

/*
 * Returns whether this transaction may do anything.  Takes AccessShareLock on
 * the extension without waiting.  If it is another extension than before, all
 * that this process has cached of it is wrong, so the process ends and is
 * started again.
 */
static Outcome
enter_extension(void)
{
	Oid found = get_extension_oid("tq", true);

	if (!OidIsValid(found))
		exit_worker(TQ_EXIT_ABSENT);
	if (OidIsValid(extension) && extension != found)
		exit_worker(TQ_EXIT_REQUESTED);
	if (!OidIsValid(extension))
	{
		exit_unless_served();
		tq_maintenance_slot_settle();
	}
	extension = found;
	if (!ConditionalLockDatabaseObject(ExtensionRelationId, extension, 0,
									   AccessShareLock))
		return LOCKED;
	if (get_extension_oid("tq", true) != extension)
		return LOCKED;
	return maintenance_worker_is_in_use() ? DONE : IDLE;
}

/*
 * One transaction.
 */

typedef void (*Work)(void *arg);

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

/*
 * Runs a function in a transaction of its own, if enter_extension() permits.
 * An error is logged, and rolls the transaction back.
 */
static Outcome
attempt(const char *activity, Work work, void *arg)
{
	volatile Outcome outcome = FAILED;

	process_interrupts();
	PG_TRY();
	{
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		PushActiveSnapshot(GetTransactionSnapshot());
		pgstat_report_activity(STATE_RUNNING, activity);
		outcome = enter_extension();
		if (outcome == DONE)
			work(arg);
		PopActiveSnapshot();
		CommitTransactionCommand();
		pgstat_report_activity(STATE_IDLE, NULL);
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
 * One cycle.
 */

typedef struct MaintenanceWorkerStepWork
{
	TqStep step;
	TqScanPosition mark;
	TqBatch batch;
} MaintenanceWorkerStepWork;

/*
 * Steps that failed the last time, and continue without the tasks that fail.
 */
static bool bisect[TQ_STEPS];

/* Where the scans of the steps begin; see maintenance.c. */
static TqScanPositions positions;

static void
work_step(void *arg)
{
	MaintenanceWorkerStepWork *work = (MaintenanceWorkerStepWork *) arg;

	tq_maintenance_step(work->step, bisect[work->step], &work->mark,
						&work->batch);
}

/* When the next thing is due, and when rows are to be counted. */
typedef struct DueWork
{
	TimestampTz next;
	TimestampTz now;
	TimestampTz count;
} DueWork;

static void
work_next_due(void *arg)
{
	DueWork *due = (DueWork *) arg;

	due->next = tq_maintenance_next_due(&positions);
	due->now = tq_clock_now();
	due->count = tq_maintenance_count_due(due->now);
}

static void
work_count(void *arg)
{
	tq_count_pass();
}

/*
 * Logs how many claims have expired since the last line about that, unless it
 * was written less than tq.log_expired_claims ago.
 */
static void
log_expired(int64 claims, TimestampTz now)
{
	static int64 unlogged = 0;
	static TimestampTz last = TQ_LONG_AGO;

	unlogged += claims;
	if (tq_log_expired_claims < 0 ||
		(now >= last && now < tq_clock_add_ms(last, tq_log_expired_claims)))
		return;
	StartTransactionCommand(); /* for the name */
	ereport(
		LOG,
		(errmsg_plural("%lld claim expired in database \"%s\"",
					   "%lld claims expired in database \"%s\"",
					   (unsigned long) unlogged, (long long) unlogged,
					   get_database_name(MyDatabaseId)),
		 errhint(
			 "Workers have died, or reclaim too late: see reason claim-expired in tq.run_overview.")));
	CommitTransactionCommand();
	MemoryContextSwitchTo(turn_context);
	unlogged = 0;
	last = now;
}

/*
 * Runs one batch of a step, and records the result for
 * tq.maintenance_activity().
 */
static Outcome
take_batch(MaintenanceWorkerStepWork *work)
{
	Outcome outcome;
	TimestampTz now;

	work->mark = work->step == TQ_STEP_SWEEP
					 ? tq_sweep_position()
					 : tq_maintenance_position(work->step, &positions);
	work->batch = (TqBatch){.tasks = 0};
	outcome = attempt(tq_step_name(work->step), work_step, work);
	if (outcome == FAILED)
		tq_stats_count_failure(work->step, tq_clock_now(),
							   last_error->message);
	if (outcome != DONE)
	{
		bisect[work->step] = outcome == FAILED;
		work->batch = (TqBatch){.tasks = 0};
		return outcome;
	}
	tq_stats_step_succeeds(work->step);
	if (!work->batch.more)
		bisect[work->step] = false;
	if (work->batch.tasks > 0)
	{
		now = tq_clock_now();
		tq_stats_count_batch(work->step, work->batch.tasks, now,
							 work->batch.since == DT_NOEND
								 ? -1
								 : now - work->batch.since);
		if (work->step == TQ_STEP_CLAIM_EXPIRED)
		{
			tq_stats_count_expired(work->batch.tasks, now);
			log_expired(work->batch.tasks, now);
		}
	}
	return outcome;
}

StaticAssertDecl(TQ_STEPS == TQ_STATS_STEPS, "a place for each step");

/* Resets the marks every MARKS_MS, in case something was not noted. */
static void
reset_positions(TimestampTz now)
{
	static TimestampTz last = TQ_LONG_AGO;

	if (now >= last && now < tq_clock_add_ms(last, MARKS_MS))
		return;
	tq_maintenance_positions_begin(&positions);
	last = now;
}

/* The earliest time of the next publication, and whether there must be one. */
static TimestampTz publish_earliest = TQ_LONG_AGO;
static bool publish_again = false;

/*
 * Returns how long to let messages accumulate after a publication that began
 * then.  A pass costs much more than a message, so under constant load passes
 * must be rare enough to leave the processor to others.  But no message waits
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

/* Sleeps, whether or not the latch is set. */
static void
pause_ms(long ms)
{
	static uint32 wait_event = 0;

	(void) WaitLatch(MyLatch, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms,
					 TqWaitEvent(wait_event, "TqWorkerMain"));
}

/*
 * Publishes what has been committed, in as many transactions as it takes.
 * Does so only when tq.publish_interval has passed since the last time, and
 * later after an error or while the notification queue is full.
 *
 * The commit that wakes this process may have woken a session that waits for
 * work.  That session is to claim first: a pass takes as long as a claim, and
 * its commit makes the WAL writer flush, for which the commit of the claim
 * would wait.  The message of the claim is then published by the same pass.
 */
static Outcome
maintenance_worker_publish(TimestampTz now)
{
	MaintenanceWorkerStepWork work = {.step = TQ_STEP_PUBLISH};
	Outcome outcome;
	int passes = 0;
	int ms;

	/* If the clock was set back, publication does not wait for it. */
	if (now < publish_earliest &&
		publish_earliest <= tq_clock_add_ms(now, GAP_MAX_MS))
		return DONE;
	if (tq_maintenance_slot_take_expected_claim())
		pause_ms(CLAIM_MS);
	tq_maintenance_slot_publication_begin();
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

/*
 * Returns until when to sleep after a transaction that could not do its work.
 */
static TimestampTz
maintenance_worker_later(Outcome outcome)
{
	int ms = RETRY_MS;

	if (outcome == LOCKED)
		ms = LOCKED_MS;
	else if (outcome == IDLE)
		ms = SLEEP_MS;
	return tq_clock_add_ms(tq_clock_now(), ms);
}

/*
 * Returns until when to sleep, given when the next thing is due.  What was due
 * when the cycle began, and was not done, is locked by another session: it is
 * tried again soon, but not at once.
 */
static TimestampTz
next_wakeup(TimestampTz due, TimestampTz began, bool progress, bool failed)
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

/*
 * Returns whether to run step "retain", which would be a waste in every cycle
 * of a busy queue.
 */
static bool
is_time_to_retain(TimestampTz now)
{
	static TimestampTz last = TQ_LONG_AGO;

	if (now >= last && now < tq_clock_add_ms(last, RETAIN_MS))
		return false;
	last = now;
	return true;
}

/*
 * Returns whether to run a step in this cycle: not within RETRY_MS of its last
 * error, and steps "sweep" and "retain" only now and then.
 */
static bool
may_take(TqStep step, TimestampTz began, const TimestampTz *failed)
{
	if (failed[step] != TQ_LONG_AGO && began >= failed[step] &&
		began < tq_clock_add_ms(failed[step], RETRY_MS))
		return false;
	if (step == TQ_STEP_SWEEP)
		return tq_sweep_is_time(began);
	return step != TQ_STEP_RETAIN || is_time_to_retain(began);
}

/*
 * Runs a batch of every step other than publication if one is due, and finds
 * out when the next one is.
 */
static Outcome
take_steps(TimestampTz began)
{
	static TimestampTz failed[TQ_STEPS]; /* when; TQ_LONG_AGO: it has not */
	DueWork due = {.next = DT_NOEND};
	bool progress = false;
	bool more = false;
	bool has_failed = false;
	Outcome outcome;

	if (steps_due > began)
		return DONE;
	reset_positions(began);
	for (int step = TQ_STEP_PUBLISH + 1; step < TQ_STEP_HISTORY; step++)
	{
		MaintenanceWorkerStepWork work = {.step = (TqStep) step};

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
	outcome = attempt("next due", work_next_due, &due);
	if (outcome != DONE)
		return outcome;
	due.next = Min(due.next, tq_sweep_next_batch());
	steps_due = more ? began
					 : next_wakeup(due.next, began, progress, has_failed);
	if (due.count > due.now)
		steps_due = Min(steps_due, due.count);
	else
	{
		/* There may be more to count. */
		outcome = attempt("count", work_count, NULL);
		steps_due = outcome == DONE ? began
									: maintenance_worker_later(outcome);
	}
	return outcome == FAILED ? DONE : outcome;
}

/* When the next ten seconds end, of which step "history" writes. */
static TimestampTz history_due = TQ_LONG_AGO;

/* Runs steps "history" and "names" if it is time; neither fails the other. */
static Outcome
write_history(TimestampTz began)
{
	MaintenanceWorkerStepWork history = {.step = TQ_STEP_HISTORY};
	MaintenanceWorkerStepWork by_names = {.step = TQ_STEP_NAMES};
	Outcome outcome;

	if (began < history_due &&
		history_due <= tq_clock_add_ms(began, HISTORY_MS))
		return DONE;
	outcome = take_batch(&history);
	if (outcome == DONE || outcome == FAILED)
		outcome = take_batch(&by_names);
	history_due = (began / (HISTORY_MS * INT64CONST(1000)) + 1) * HISTORY_MS *
				  1000;
	return outcome == FAILED ? DONE : outcome;
}

static void
no_work(void *arg)
{
}

/* Runs a cycle, which does all that is due; returns until when to sleep. */
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
	tq_stats_count_batch(TQ_STATS_CYCLES, 0, began, -1);
	due = tq_maintenance_slot_cycle_begin();
	steps_due = Min(steps_due, due);
	tq_maintenance_timer_added(&positions, due);
	/*
	 * While idle, the note of messages stays set, so that further ones do not
	 * wake this process.
	 */
	outcome = idle ? attempt("idle", no_work, NULL) : DONE;
	if (outcome == DONE)
		outcome = maintenance_worker_publish(began);
	if (outcome == DONE)
		outcome = write_history(began);
	if (outcome == DONE)
		outcome = take_steps(began);
	idle = outcome == IDLE;
	if (outcome == IDLE)
	{
		/* When that changes, everything is looked at again. */
		tq_maintenance_positions_begin(&positions);
		steps_due = TQ_LONG_AGO;
		return tq_maintenance_slot_cycle_end(maintenance_worker_later(outcome),
											 &messages);
	}
	if (outcome != DONE)
		return maintenance_worker_later(outcome);
	if (reloaded)
		return began;
	due = tq_maintenance_slot_cycle_end(Min(steps_due, history_due),
										&messages);
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

/*
 * Sleeps until that time or until the latch is set, but until GAP_MS after the
 * beginning of the cycle in any case.
 */
static void
maintenance_worker_sleep_until(TimestampTz due, TimestampTz turn_began)
{
	static uint32 wait_event = 0;
	uint32 event = TqWaitEvent(wait_event, "TqWorkerMain");
	long gap = ms_until(tq_clock_add_ms(turn_began, GAP_MS));
	long ms;

	if (gap > 0)
		pause_ms(Min(gap, GAP_MS));
	ms = Min(ms_until(due), SLEEP_MS);
	pgstat_report_stat(ms >= RETRY_MS);
	if (ms > 0)
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, ms,
						 event);
}

/*
 * The process.
 */

/*
 * Overrides settings of the server or the database that would disturb
 * maintenance.  ALTER DATABASE ... SET role and session_authorization take
 * effect in background workers too.
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
			SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET,
							PGC_S_OVERRIDE);
	}
	/*
	 * Assume the rights of the bootstrap superuser, whatever the database
	 * sets.
	 */
	StartTransactionCommand();
	SetConfigOption("session_authorization",
					GetUserNameFromId(BOOTSTRAP_SUPERUSERID, false), PGC_SUSET,
					PGC_S_OVERRIDE);
	SetConfigOption("role", "none", PGC_SUSET, PGC_S_OVERRIDE);
	CommitTransactionCommand();
}

/* Ends the process if the clock was set back, so that another one is started. */
static void
check_clock(TimestampTz now)
{
	static TimestampTz last = TQ_LONG_AGO;
	TimestampTz before = last;

	if (!tq_clock_went_back(&last, now))
		return;
	ereport(LOG, (errmsg("the clock was set back by %lld s",
						 (long long) ((before - now) / USECS_PER_SEC)),
				  errdetail("The maintenance worker of tq starts again.")));
	exit_worker(TQ_EXIT_REQUESTED);
}

/* Entry point of the maintenance worker. */
void
tq_maintenance_worker_main(Datum arg)
{
	TqMaintenanceOrder order;

	/*
	 * Attach to the slot that the launcher assigned, and connect to the
	 * database.
	 */
	memcpy(&order, MyBgworkerEntry->bgw_extra, sizeof(order));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	if (!tq_maintenance_slot_attach(order.slot, order.generation))
		proc_exit(0);
	process_interrupts();
	BackgroundWorkerInitializeConnectionByOid(order.database, InvalidOid, 0);
	set_settings();
	turn_context = AllocSetContextCreate(TopMemoryContext, "tq worker",
										 ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		TimestampTz began;

		ResetLatch(MyLatch);
		process_interrupts();
		began = tq_clock_now();
		check_clock(began);
		maintenance_worker_sleep_until(take_turn(began), began);
	}
}
