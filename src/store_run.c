/*
 * store_run.c
 *	  Rows of tq.run, and where a task stands.
 *
 * Room 2.  A task's present state is the table in which it has a row:
 * unscheduled, pending, delayed, or else its last row in run.  Every
 * transition first locks that row, so two transitions of one task exclude
 * each other.  tq_run_lock() is the one way to do so for a single task:
 *
 *	  peek at the place; lock the row found there; peek again.
 *
 * A row of the first three tables that could be locked is still there, for
 * leaving the place means deleting it.  A row of run stays when a later run
 * is added, which is why the place is looked at again, with a snapshot taken
 * after the lock was had: whoever adds a run holds the lock of the one before.
 *
 * Order of locks inside one call: first rows of pending, delayed and run, by
 * task id; then rows of unscheduled, by task id (depend.c).
 */
#include "store.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"

#define RUN_COLUMNS                                                                   \
	"r.task, r.run_id, r.state, r.reason_created, r.reason_resolved, r.retries_left," \
	" r.worker, r.by_claim_task, r.scheduled, r.started, r.taken_until, r.resolved"

/* A row of pending or delayed in the shape of the above. */
#define PENDING_AS_RUN                                                        \
	"p.task, p.run_id, 1::int2, p.reason_created, 0::int2, p.retries_left,"   \
	" NULL::int4, false, p.scheduled, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz"

/* The place is the first column; Append returns the branches in this order. */
static TqStatement peek = TQ_STATEMENT(
	"SELECT 1, u.task, (-1)::int2, 0::int2, 0::int2, 0::int2, 0::int2, NULL::int4, false,"
	" NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz"
	" FROM tq.unscheduled u WHERE u.task = $1"
	" UNION ALL SELECT 2, " PENDING_AS_RUN
	" FROM tq.pending p WHERE p.task = $1"
	" UNION ALL SELECT 3, " PENDING_AS_RUN
	" FROM tq.delayed p WHERE p.task = $1"
	" UNION ALL (SELECT 4, " RUN_COLUMNS " FROM tq.run r WHERE r.task = $1"
	" ORDER BY r.task DESC, r.run_id DESC LIMIT 1)",
	INT8OID);

/* [place][mode]; parameters are the task and, for run, its run_id. */
#define LOCK_ROW(table) "SELECT 1 FROM tq." table " WHERE task = $1 FOR "
#define LOCK_RUN "SELECT 1 FROM tq.run WHERE task = $1 AND run_id = $2 FOR "

static TqStatement lock_row[][3] =
	{[TQ_PLACE_UNSCHEDULED] =
		 {TQ_STATEMENT(LOCK_ROW("unscheduled") "SHARE", INT8OID),
		  TQ_STATEMENT(LOCK_ROW("unscheduled") "UPDATE", INT8OID),
		  TQ_STATEMENT(LOCK_ROW("unscheduled") "UPDATE SKIP LOCKED", INT8OID)},
	 [TQ_PLACE_PENDING] =
		 {TQ_STATEMENT(LOCK_ROW("pending") "SHARE", INT8OID),
		  TQ_STATEMENT(LOCK_ROW("pending") "UPDATE", INT8OID),
		  TQ_STATEMENT(LOCK_ROW("pending") "UPDATE SKIP LOCKED", INT8OID)},
	 [TQ_PLACE_DELAYED] =
		 {TQ_STATEMENT(LOCK_ROW("delayed") "SHARE", INT8OID),
		  TQ_STATEMENT(LOCK_ROW("delayed") "UPDATE", INT8OID),
		  TQ_STATEMENT(LOCK_ROW("delayed") "UPDATE SKIP LOCKED", INT8OID)},
	 [TQ_PLACE_RUN] = {TQ_STATEMENT(LOCK_RUN "SHARE", INT8OID, INT2OID),
					   TQ_STATEMENT(LOCK_RUN "UPDATE", INT8OID, INT2OID),
					   TQ_STATEMENT(LOCK_RUN "UPDATE SKIP LOCKED", INT8OID,
									INT2OID)}};

static TqStatement lock_runs =
	TQ_STATEMENT("SELECT " RUN_COLUMNS
				 " FROM unnest($1, $2) AS x (task, run_id)"
				 " JOIN tq.run r ON r.task = x.task AND r.run_id = x.run_id"
				 " ORDER BY r.task, r.run_id FOR UPDATE OF r",
				 INT8ARRAYOID, INT4ARRAYOID);

static TqStatement lock_expired = TQ_STATEMENT(
	"SELECT " RUN_COLUMNS " FROM unnest($1) AS x (task)"
	" JOIN tq.task t ON t.id = x.task"
	" JOIN tq.run r ON r.task = x.task"
	" WHERE r.state = 2 AND r.taken_until <= $2 AND t.deadline > $2"
	" ORDER BY r.task FOR UPDATE OF r SKIP LOCKED",
	INT8ARRAYOID, TIMESTAMPTZOID);

static TqStatement peek_unresolved = TQ_STATEMENT(
	"SELECT x.task FROM unnest($1) AS x (task)"
	" LEFT JOIN tq.unscheduled u ON u.task = x.task"
	" LEFT JOIN tq.pending p ON p.task = x.task"
	" LEFT JOIN tq.delayed d ON d.task = x.task"
	" LEFT JOIN tq.run r ON r.task = x.task AND r.state = 2"
	" WHERE u.task IS NOT NULL OR p.task IS NOT NULL OR d.task IS NOT NULL OR r.task IS NOT NULL"
	" ORDER BY 1",
	INT8ARRAYOID);

/* Those that lock_expired could not have because of another's lock, and more. */
static TqStatement peek_expired = TQ_STATEMENT(
	"SELECT r.task FROM unnest($1) AS x (task)"
	" JOIN tq.task t ON t.id = x.task"
	" JOIN tq.run r ON r.task = x.task"
	" WHERE r.state = 2 AND r.taken_until <= $2 AND t.deadline > $2"
	" ORDER BY r.task",
	INT8ARRAYOID, TIMESTAMPTZOID);

static TqStatement history = TQ_STATEMENT(
	"SELECT " RUN_COLUMNS ", w.worker_group, w.worker_id"
	" FROM tq.run r LEFT JOIN tq.worker w ON w.id = r.worker WHERE r.task = ANY ($1)"
	" UNION ALL SELECT " PENDING_AS_RUN
	", NULL, NULL FROM tq.pending p WHERE p.task = ANY ($1)"
	" UNION ALL SELECT " PENDING_AS_RUN
	", NULL, NULL FROM tq.delayed p WHERE p.task = ANY ($1)"
	" ORDER BY 1, 2",
	INT8ARRAYOID);

static TqStatement insert_runs = TQ_STATEMENT(
	"INSERT INTO tq.run (task, run_id, state, reason_created, reason_resolved, retries_left,"
	" worker, by_claim_task, scheduled, started, taken_until, resolved)"
	" SELECT task, run_id, state, created, reason, retries_left, nullif(worker, 0), by_claim_task,"
	" scheduled, nullif(started, 'epoch'), nullif(taken_until, 'epoch'), nullif(resolved, 'epoch')"
	" FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS x (task, run_id, state,"
	" created, reason, retries_left, worker, by_claim_task, scheduled, started, taken_until, resolved)",
	INT8ARRAYOID, INT4ARRAYOID, INT4ARRAYOID, INT4ARRAYOID, INT4ARRAYOID,
	INT4ARRAYOID, INT4ARRAYOID, BOOLARRAYOID, TIMESTAMPTZARRAYOID,
	TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZARRAYOID);

static TqStatement update_runs = TQ_STATEMENT(
	"UPDATE tq.run r SET state = x.state, reason_resolved = x.reason,"
	" retries_left = x.retries_left, resolved = x.resolved"
	" FROM unnest($1, $2, $3, $4, $5, $6) AS x (task, run_id, state, reason, retries_left, resolved)"
	" WHERE r.task = x.task AND r.run_id = x.run_id",
	INT8ARRAYOID, INT4ARRAYOID, INT4ARRAYOID, INT4ARRAYOID, INT4ARRAYOID,
	TIMESTAMPTZARRAYOID);

static TqStatement extend = TQ_STATEMENT(
	"UPDATE tq.run SET taken_until = $3 WHERE task = $1 AND run_id = $2",
	INT8OID, INT2OID, TIMESTAMPTZOID);

/* Read the columns of RUN_COLUMNS that begin at `first`. */
static void
read_run(uint64 row, int first, TqRun *run)
{
	memset(run, 0, sizeof(*run));
	run->task = tq_plan_int64(row, first, 0);
	run->place = TQ_PLACE_RUN;
	run->run_id = tq_plan_int16(row, first + 1, -1);
	run->state = (TqState) tq_plan_int16(row, first + 2, 0);
	run->created = (TqCreated) tq_plan_int16(row, first + 3, 0);
	run->reason = (TqResolved) tq_plan_int16(row, first + 4, 0);
	run->retries_left = tq_plan_int16(row, first + 5, 0);
	run->worker = tq_plan_int32(row, first + 6, 0);
	run->by_claim_task = tq_plan_bool(row, first + 7);
	run->scheduled = tq_plan_time(row, first + 8);
	run->started = tq_plan_time(row, first + 9);
	run->taken_until = tq_plan_time(row, first + 10);
	run->resolved = tq_plan_time(row, first + 11);
}

/* Where a task stands, without a lock; false when it is nowhere. */
bool
tq_run_peek(int64 task, TqRun *run)
{
	Datum values[1] = {Int64GetDatum(task)};
	bool found = tq_plan_run(&peek, values, NULL) > 0;

	if (found)
	{
		read_run(0, 2, run);
		run->place = (TqPlace) tq_plan_int32(0, 1, 0);
	}
	tq_plan_free_result();
	return found;
}

/* Lock the row that was seen; false when it is gone, or another's under SKIP. */
static bool
lock_place(const TqRun *run, TqLock mode)
{
	Datum values[2] = {Int64GetDatum(run->task), Int16GetDatum(run->run_id)};
	bool locked = tq_plan_run(&lock_row[run->place][mode], values, NULL) > 0;

	tq_plan_free_result();
	return locked;
}

/*
 * Lock a task where it stands; false when there is no such task or, under
 * TQ_LOCK_SKIP, when another holds it.
 */
bool
tq_run_lock(int64 task, TqLock mode, TqRun *run)
{
	TqRun seen;

	for (;;)
	{
		if (!tq_run_peek(task, &seen))
			return false;
		if (lock_place(&seen, mode) && tq_run_peek(task, run) &&
			run->place == seen.place && run->run_id == seen.run_id)
			return true;
		if (mode == TQ_LOCK_SKIP)
			return false;
		CHECK_FOR_INTERRUPTS();
	}
}

static TqRun *
read_runs(TqStatement *statement, const Datum *values, bool workers,
		  int *found)
{
	TqRun *runs;

	*found = (int) tq_plan_run(statement, values, NULL);
	runs = palloc(sizeof(TqRun) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
	{
		read_run(i, 1, &runs[i]);
		if (workers)
		{
			runs[i].worker_group = tq_plan_text(i, 13);
			runs[i].worker_id = tq_plan_text(i, 14);
		}
	}
	tq_plan_free_result();
	return runs;
}

/*
 * Lock those rows of run that exist, in order of task id.  One that is
 * running is its task's last, and stays so while we hold it.
 */
TqRun *
tq_runs_lock(const int64 *tasks, const int32 *run_ids, int n, int *found)
{
	Datum values[2] = {tq_array_int64(tasks, n), tq_array_int32(run_ids, n)};

	return read_runs(&lock_runs, values, false, found);
}

/* Lock the runs of these tasks whose claim has expired, passing over others' locks. */
TqRun *
tq_runs_lock_expired(const int64 *tasks, int n, TimestampTz now, int *found)
{
	Datum values[2] = {tq_array_int64(tasks, n), TimestampTzGetDatum(now)};

	return read_runs(&lock_expired, values, false, found);
}

/* The tasks whose claim has expired, locked or not, by id. */
int64 *
tq_runs_peek_expired(const int64 *tasks, int n, TimestampTz now, int *found)
{
	Datum values[2] = {tq_array_int64(tasks, n), TimestampTzGetDatum(now)};

	return tq_plan_run_ids(&peek_expired, values, found);
}

/* The tasks that are not resolved, locked or not, by id. */
int64 *
tq_runs_peek_unresolved(const int64 *tasks, int n, int *found)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	return tq_plan_run_ids(&peek_unresolved, values, found);
}

/* Every run of these tasks, by task id and run id, with the workers' names. */
TqRun *
tq_runs_history(const int64 *tasks, int n, int *found)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	return read_runs(&history, values, true, found);
}

/* nullif() in the statement turns this back into NULL. */
#define EPOCH                                                                 \
	((TimestampTz) (UNIX_EPOCH_JDATE - POSTGRES_EPOCH_JDATE) * USECS_PER_DAY)

#define TIME_COLUMN(field)                                                    \
	{                                                                         \
		TimestampTz *column = palloc(sizeof(TimestampTz) * n);                \
		for (int i = 0; i < n; i++)                                           \
			column[i] = runs[i].field == 0 ? EPOCH : runs[i].field;           \
		*v++ = tq_array_time(column, n);                                      \
	}

/* Insert runs that were not in the table before. */
void
tq_runs_insert(const TqRun *runs, int n)
{
	Datum values[12];
	Datum *v = values;

	if (n == 0)
		return;
	TQ_COLUMN(runs, n, int64, tq_array_int64, task, *v++);
	TQ_COLUMN(runs, n, int32, tq_array_int32, run_id, *v++);
	TQ_COLUMN(runs, n, int32, tq_array_int32, state, *v++);
	TQ_COLUMN(runs, n, int32, tq_array_int32, created, *v++);
	TQ_COLUMN(runs, n, int32, tq_array_int32, reason, *v++);
	TQ_COLUMN(runs, n, int32, tq_array_int32, retries_left, *v++);
	TQ_COLUMN(runs, n, int32, tq_array_int32, worker, *v++);
	TQ_COLUMN(runs, n, bool, tq_array_bool, by_claim_task, *v++);
	TIME_COLUMN(scheduled);
	TIME_COLUMN(started);
	TIME_COLUMN(taken_until);
	TIME_COLUMN(resolved);
	tq_plan_run(&insert_runs, values, NULL);
}

/* Write the resolution of runs that are in the table, and locked. */
void
tq_runs_update(const TqRun *runs, int n)
{
	Datum values[6];
	Datum *v = values;

	if (n == 0)
		return;
	TQ_COLUMN(runs, n, int64, tq_array_int64, task, *v++);
	TQ_COLUMN(runs, n, int32, tq_array_int32, run_id, *v++);
	TQ_COLUMN(runs, n, int32, tq_array_int32, state, *v++);
	TQ_COLUMN(runs, n, int32, tq_array_int32, reason, *v++);
	TQ_COLUMN(runs, n, int32, tq_array_int32, retries_left, *v++);
	TIME_COLUMN(resolved);
	tq_plan_run(&update_runs, values, NULL);
}

/* A new end of the claim on a run that is locked. */
void
tq_run_extend(int64 task, int run_id, TimestampTz taken_until)
{
	Datum values[3] = {Int64GetDatum(task),
					   Int16GetDatum(run_id),
					   TimestampTzGetDatum(taken_until)};

	tq_plan_run(&extend, values, NULL);
}
