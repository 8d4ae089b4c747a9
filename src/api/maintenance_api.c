/*
 * maintenance_api.c
 *	  SQL functions for maintenance, and those that views call: the names of
 *	  stored numbers, the time, the waiters.
 *
 * upkeep() does in one transaction what the maintenance worker does in many.
 * Each step runs in a subtransaction of its own, so that a step that fails does
 * not undo the others.
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/proc.h"

#include "../bgworker/bgworker.h"
#include "../core/names.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_library_version);
PG_FUNCTION_INFO_V1(tq_upkeep);
PG_FUNCTION_INFO_V1(tq_maintenance_activity);
PG_FUNCTION_INFO_V1(tq_start_maintenance);
PG_FUNCTION_INFO_V1(tq_clock_now_sql);
PG_FUNCTION_INFO_V1(tq_expired_claims);
PG_FUNCTION_INFO_V1(tq_background_workers);
PG_FUNCTION_INFO_V1(tq_waiters);
PG_FUNCTION_INFO_V1(tq_state_name_sql);
PG_FUNCTION_INFO_V1(tq_reason_created_name);
PG_FUNCTION_INFO_V1(tq_reason_resolved_name);
PG_FUNCTION_INFO_V1(tq_priority_name_sql);
PG_FUNCTION_INFO_V1(tq_storage_name_sql);

/* A step of a pass, and how many tasks it changed. */
typedef struct MaintenanceStepWork
{
	TqStep step;
	bool bisect;
	int64 tasks;
} MaintenanceStepWork;

/* Runs all batches of one step; what is published is one batch. */
static void
run_step(void *arg)
{
	MaintenanceStepWork *work = (MaintenanceStepWork *) arg;
	TqScanPosition position = TQ_SCAN_BEGIN;
	TqBatch batch;

	do
	{
		tq_maintenance_step(work->step, work->bisect, &position, &batch);
		work->tasks += batch.tasks;
		CHECK_FOR_INTERRUPTS();
	} while (batch.more && work->step != TQ_STEP_PUBLISH);
}

/*
 * Runs a step in a subtransaction.  Returns NULL, or the error for which that
 * was rolled back.
 */
static ErrorData *
try_step(TqStep step, bool bisect, int64 *tasks)
{
	MaintenanceStepWork work = {.step = step, .bisect = bisect};
	ErrorData *error = tq_attempt_all(run_step, &work);

	/*
	 * An error must end the call instead of the step: a cancel, a shutdown, or
	 * anything worse than ERROR.
	 */
	if (error != NULL && (ERRCODE_TO_CATEGORY(error->sqlerrcode) ==
							  ERRCODE_OPERATOR_INTERVENTION ||
						  error->elevel > ERROR))
		ReThrowError(error);
	*tasks = work.tasks;
	return error;
}

/*
 * Runs a step, and if that fails again without the tasks for which it fails.
 * Returns false, after a warning, if that fails too.
 */
static bool
take_step(TqStep step, int64 *tasks)
{
	ErrorData *error = try_step(step, false, tasks);

	if (error != NULL)
		error = try_step(step, true, tasks);
	if (error == NULL)
		return true;
	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("maintenance step \"%s\" failed: %s", tq_step_name(step),
					error->message),
			 errdetail("The other steps are not affected."),
			 errhint("The next call of tq.upkeep() retries the step.")));
	return false;
}

/*
 * Returns whether the database is in use.  A copy is not maintained before a
 * client uses it (activation.c).
 */
static bool
maintenance_is_in_use(void)
{
	bool result;

	tq_call_begin(true);
	result = tq_activation_is_done();
	tq_call_end();
	return result;
}

/*
 * upkeep() -> (step text, tasks bigint), a row for each step that a session can do.  tasks is what
 * the step has changed: tasks, published messages, or emptied segments of the
 * log; NULL if the step has failed, which is reported as a WARNING.
 */
Datum
tq_upkeep(PG_FUNCTION_ARGS)
{
	bool allowed;

	tq_spi_require_writable();
	/* Check a right that names nothing. */
	tq_call_begin(true);
	tq_access_require(tq_need("%s", "queue:upkeep"));
	tq_call_end();
	/* Maintenance is enabled and the database is in use. */
	if (!tq_maintenance)
		ereport(
			NOTICE,
			(errmsg("tq.maintenance is off: nothing is done"),
			 errhint(
				 "When the copy of the database is complete: ALTER DATABASE ... RESET tq.maintenance.")));
	allowed = tq_maintenance && maintenance_is_in_use();
	InitMaterializedSRF(fcinfo, 0);
	tq_publisher_set_block(IsTransactionBlock());
	if (allowed)
	{
		TimestampTz now = tq_clock_now();

		/*
		 * Count rows for the counters, unless this transaction has changed some.
		 */
		if (tq_maintenance_count_due(now) <= now)
			tq_count_pass();
	}
	for (int step = 0; step < TQ_STEP_HISTORY; step++)
	{
		int64 tasks = 0;
		bool done = !allowed || take_step((TqStep) step, &tasks);
		Datum values[2] = {CStringGetTextDatum(tq_step_name((TqStep) step)),
						   Int64GetDatum(tasks)};
		bool nulls[2] = {false, !done};

		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
	}
	return (Datum) 0;
}

static Datum
maintenance_interval_of(int64 us)
{
	Interval *interval = palloc0(sizeof(Interval));

	interval->time = us;
	return IntervalPGetDatum(interval);
}

/* Columns of maintenance_activity(), from 0. */
enum
{
	COLUMN_STEP,
	COLUMN_STATE,
	COLUMN_BATCHES,
	COLUMN_TASKS,
	COLUMN_LAST_AT,
	COLUMN_LAST_LATE,
	COLUMN_MAX_LATE,
	COLUMN_MAX_LATE_AT,
	COLUMN_FAILURES,
	COLUMN_FAILED_AT,
	COLUMN_ERROR,
	COLUMNS
};

/* Returns the name of the state of a maintenance worker. */
static const char *
state_name(TqMaintenanceState state)
{
	switch (state)
	{
		case TQ_MAINTENANCE_ABSENT:
			return "absent";
		case TQ_MAINTENANCE_RUNNING:
			return "running";
		case TQ_MAINTENANCE_OFF:
			return "off";
		case TQ_MAINTENANCE_UNUSED:
			return "unused";
	}
	return NULL;
}

/* Fills in the columns of maintenance_activity() that may be NULL. */
static void
put_numbers(const TqActivity *activity, bool is_step, Datum *values,
			bool *nulls)
{
	values[COLUMN_BATCHES] = Int64GetDatum(activity->batches);
	nulls[COLUMN_BATCHES] = false;
	values[COLUMN_LAST_AT] = TimestampTzGetDatum(activity->last_at);
	nulls[COLUMN_LAST_AT] = activity->last_at == DT_NOBEGIN;
	if (!is_step)
		return;
	values[COLUMN_TASKS] = Int64GetDatum(activity->tasks);
	values[COLUMN_FAILURES] = Int64GetDatum(activity->failures);
	nulls[COLUMN_TASKS] = nulls[COLUMN_FAILURES] = false;
	values[COLUMN_LAST_LATE] = maintenance_interval_of(activity->last_late);
	values[COLUMN_MAX_LATE] = maintenance_interval_of(activity->max_late);
	values[COLUMN_MAX_LATE_AT] = TimestampTzGetDatum(activity->max_late_at);
	nulls[COLUMN_LAST_LATE] = nulls[COLUMN_MAX_LATE] =
		nulls[COLUMN_MAX_LATE_AT] = activity->max_late_at == DT_NOBEGIN;
	values[COLUMN_FAILED_AT] = TimestampTzGetDatum(activity->failed_at);
	values[COLUMN_ERROR] = CStringGetTextDatum(activity->error);
	nulls[COLUMN_FAILED_AT] = nulls[COLUMN_ERROR] = activity->failed_at ==
													DT_NOBEGIN;
}

/*
 * Adds a row of maintenance_activity(); activity is NULL if there is no
 * maintenance worker.
 */
static void
put_activity(ReturnSetInfo *result, const char *name, const char *state,
			 const TqActivity *activity, bool is_step)
{
	Datum values[COLUMNS];
	bool nulls[COLUMNS];

	memset(nulls, true, sizeof(nulls));
	values[COLUMN_STEP] = CStringGetTextDatum(name);
	values[COLUMN_STATE] = CStringGetTextDatum(state);
	nulls[COLUMN_STEP] = nulls[COLUMN_STATE] = false;
	if (activity != NULL)
		put_numbers(activity, is_step, values, nulls);
	tq_put_row(result, values, nulls);
}

/*
 * maintenance_activity() -> a row for the cycles of the maintenance worker,
 * and one for each step; without a maintenance worker only the first, which
 * says so.
 *
 * state is that of the maintenance worker in the first row (running; off:
 * tq.maintenance is off; unused: no client has used the database yet; absent),
 * and in the others failing if the last attempt has failed, otherwise ok.
 * Numbers count since the maintenance worker was started; error is that of the
 * last failure, at failed_at.  This function is for views, and checks no scope.
 */
Datum
tq_maintenance_activity(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int slot = tq_maintenance_slot_running();
	const char *state = state_name(tq_maintenance_slot_state(slot));
	TqActivity activity;

	InitMaterializedSRF(fcinfo, 0);
	if (slot < 0)
	{
		put_activity(result, "turn", state, NULL, false);
		return (Datum) 0;
	}
	tq_stats_read(slot, TQ_STATS_CYCLES, &activity);
	put_activity(result, "turn", state, &activity, false);
	for (int step = 0; step < TQ_STEPS; step++)
	{
		tq_stats_read(slot, step, &activity);
		put_activity(result, tq_step_name((TqStep) step),
					 activity.failing ? "failing" : "ok", &activity, true);
	}
	return (Datum) 0;
}

/*
 * start_maintenance() -> void: has the launcher start the maintenance worker at
 * commit; called by the extension's script
 */
Datum
tq_start_maintenance(PG_FUNCTION_ARGS)
{
	tq_request_add(TQ_REQUEST_START, MyDatabaseId);
	PG_RETURN_VOID();
}

/* Returns a name, or NULL for an unknown number. */
static Datum
return_name(FunctionCallInfo fcinfo, const char *name)
{
	if (name == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(name));
}

/* clock_now() -> timestamptz: the time by which functions decide */
Datum
tq_clock_now_sql(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(tq_clock_now());
}

/*
 * expired_claims() -> bigint: how many claims have expired within the last hour
 * and since the maintenance worker of this database was started; NULL if there
 * is none
 */
Datum
tq_expired_claims(PG_FUNCTION_ARGS)
{
	int slot = tq_maintenance_slot_running();

	if (slot < 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(tq_stats_expired(slot, tq_clock_now()));
}

/*
 * Returns how many background workers are running, of which the server can have
 * max_worker_processes.  Takes no lock: the number may be out of date anyway.
 * The view pg_stat_activity shows a role only its own processes in full, and
 * none that is not connected to a database.
 */
static int
background_workers(void)
{
	int n = 0;

	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		const PGPROC *proc = &ProcGlobal->allProcs[i];

		if (proc->procgloballist == &ProcGlobal->bgworkerFreeProcs &&
			proc->procLatch.owner_pid != 0)
			n++;
	}
	return n;
}

/* background_workers() -> int: how many background workers are running */
Datum
tq_background_workers(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(background_workers());
}

/*
 * waiters() -> (pid int, queue int): the sessions of this database that wait,
 * for a run of a queue, or for a task; then queue is NULL.  It is 0 for a queue
 * that is not known yet.
 */
Datum
tq_waiters(PG_FUNCTION_ARGS)
{
	TqSleepers sleepers;

	InitMaterializedSRF(fcinfo, 0);
	sleepers = tq_wait_list();
	for (int i = 0; i < sleepers.n; i++)
	{
		const TqSleeper *sleeper = &sleepers.list[i];
		Datum values[2] = {Int32GetDatum(sleeper->pid),
						   Int32GetDatum(sleeper->queue)};
		bool nulls[2] = {false, sleeper->queue < 0};

		tq_put_row((ReturnSetInfo *) fcinfo->resultinfo, values, nulls);
	}
	return (Datum) 0;
}

/* state_name(state int) -> text */
Datum
tq_state_name_sql(PG_FUNCTION_ARGS)
{
	return return_name(fcinfo, tq_state_name((TqState) PG_GETARG_INT32(0)));
}

/* reason_created_name(reason int) -> text */
Datum
tq_reason_created_name(PG_FUNCTION_ARGS)
{
	return return_name(fcinfo,
					   tq_created_name((TqCreated) PG_GETARG_INT32(0)));
}

/* reason_resolved_name(reason int) -> text */
Datum
tq_reason_resolved_name(PG_FUNCTION_ARGS)
{
	return return_name(fcinfo,
					   tq_resolved_name((TqResolved) PG_GETARG_INT32(0)));
}

/* priority_name(priority int) -> text */
Datum
tq_priority_name_sql(PG_FUNCTION_ARGS)
{
	return return_name(fcinfo, tq_priority_name(PG_GETARG_INT32(0)));
}

/* storage_name(storage_type int) -> text */
Datum
tq_storage_name_sql(PG_FUNCTION_ARGS)
{
	return return_name(fcinfo,
					   tq_storage_name((TqStorage) PG_GETARG_INT32(0)));
}

/* tq_internal.library_version() -> text */
Datum
tq_library_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(TQ_VERSION));
}
