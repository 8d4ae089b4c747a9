/*
 * task_location.c
 *	  Where a task stands, and the runs that it has had.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/snapshot.h"

#include "../core/types.h"
#include "../util/spi.h"
#include "columns.h"
#include "index_scan.h"
#include "pending_table.h"
#include "run_detail_table.h"
#include "run_table.h"
#include "table.h"
#include "task_location.h"
#include "task_table.h"
#include "worker_table.h"

static TqRelation run_table = TQ_RELATION("run");
static TqRelation run_by_key = TQ_RELATION("run_pkey");

#define RUN_COLUMNS                                                                   \
	"r.task, r.run_id, r.state, r.reason_created, r.reason_resolved, r.retries_left," \
	" r.worker, r.by_claim_task, r.scheduled, r.started, r.taken_until, r.resolved, r.has_detail"

/* A row of pending or delayed with the columns of RUN_COLUMNS. */
#define PENDING_AS_RUN                                                                          \
	"p.task, p.run_id, 1::int2, p.reason_created, 0::int2, p.retries_left,"                     \
	" NULL::int4, false, p.scheduled, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz," \
	" p.has_detail"

/*
 * The first column is the location.  The first row counts, because run keeps
 * the earlier runs of a task: Append returns the branches in this order.
 */
static TqStatement peek = TQ_STATEMENT(
	"SELECT 1, u.task, (-1)::int2, 0::int2, 0::int2, 0::int2, 0::int2, NULL::int4, false,"
	" NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, false"
	" FROM tq_internal.unscheduled u WHERE u.task = $1"
	" UNION ALL SELECT 2, " PENDING_AS_RUN " FROM " TQ_PENDING_OF(
		"$1") " AS p"
			  " UNION ALL SELECT 3, " PENDING_AS_RUN
			  " FROM tq_internal.delayed p WHERE p.task = $1"
			  " UNION ALL (SELECT 4, " RUN_COLUMNS
			  " FROM tq_internal.run r WHERE r.task = $1"
			  " ORDER BY r.task DESC, r.run_id DESC LIMIT 1)",
	INT8OID);

/*
 * Indexed by location and mode; parameters are the task and, for run, its
 * run_id.
 */
#define LOCK_ROW(table)                                                       \
	"SELECT 1 FROM tq_internal." table " WHERE task = $1 FOR "
#define LOCK_RUN                                                              \
	"SELECT 1 FROM tq_internal.run WHERE task = $1 AND run_id = $2 FOR "

static TqStatement lock_row[][3] =
	{[TQ_LOCATION_UNSCHEDULED] =
		 {TQ_STATEMENT(LOCK_ROW("unscheduled") "SHARE", INT8OID),
		  TQ_STATEMENT(LOCK_ROW("unscheduled") "UPDATE", INT8OID),
		  TQ_STATEMENT(LOCK_ROW("unscheduled") "UPDATE SKIP LOCKED", INT8OID)},
	 [TQ_LOCATION_DELAYED] =
		 {TQ_STATEMENT(LOCK_ROW("delayed") "SHARE", INT8OID),
		  TQ_STATEMENT(LOCK_ROW("delayed") "UPDATE", INT8OID),
		  TQ_STATEMENT(LOCK_ROW("delayed") "UPDATE SKIP LOCKED", INT8OID)},
	 [TQ_LOCATION_RUN] = {TQ_STATEMENT(LOCK_RUN "SHARE", INT8OID, INT2OID),
						  TQ_STATEMENT(LOCK_RUN "UPDATE", INT8OID, INT2OID),
						  TQ_STATEMENT(LOCK_RUN "UPDATE SKIP LOCKED", INT8OID,
									   INT2OID)}};

static TqStatement lock_runs = TQ_STATEMENT(
	"SELECT " RUN_COLUMNS " FROM unnest($1, $2) AS x (task, run_id)"
	" JOIN tq_internal.run r ON r.task = x.task AND r.run_id = x.run_id"
	" ORDER BY r.task, r.run_id FOR UPDATE OF r",
	INT8ARRAYOID, INT4ARRAYOID);

static TqStatement history = TQ_STATEMENT(
	"SELECT " RUN_COLUMNS ", w.worker_group, w.worker_id"
	" FROM tq_internal.run r LEFT JOIN tq_internal.worker w ON w.id = r.worker WHERE r.task = ANY ($1)"
	" UNION ALL SELECT " PENDING_AS_RUN
	", NULL, NULL FROM unnest($1) AS a (id) CROSS JOIN LATERAL " TQ_PENDING_OF(
		"a.id") " AS p"
				" UNION ALL SELECT " PENDING_AS_RUN
				", NULL, NULL FROM tq_internal.delayed p WHERE p.task = ANY ($1)"
				" ORDER BY 1, 2",
	INT8ARRAYOID);

/* Reads the columns of RUN_COLUMNS, which begin at the column `first`. */
static void
read_run(uint64 row, int first, TqRun *run)
{
	memset(run, 0, sizeof(*run));
	run->task = tq_spi_int64(row, first, 0);
	run->location = TQ_LOCATION_RUN;
	run->run_id = tq_spi_int16(row, first + 1, -1);
	run->state = (TqState) tq_spi_int16(row, first + 2, 0);
	run->created = (TqCreated) tq_spi_int16(row, first + 3, 0);
	run->reason = (TqResolved) tq_spi_int16(row, first + 4, 0);
	run->retries_left = tq_spi_int16(row, first + 5, 0);
	run->worker = tq_spi_int32(row, first + 6, 0);
	run->by_claim_task = tq_spi_bool(row, first + 7);
	run->scheduled = tq_spi_time(row, first + 8);
	run->started = tq_spi_time(row, first + 9);
	run->taken_until = tq_spi_time(row, first + 10);
	run->resolved = tq_spi_time(row, first + 11);
	run->has_detail = tq_spi_bool(row, first + 12);
	run->lost_retries_left = TQ_OFF;
	run->retry_delay = TQ_OFF;
}

/*
 * Reads the current row of a task, without a lock; returns false if it has
 * none.
 */
bool
tq_run_peek(int64 task, TqRun *run)
{
	Datum values[1] = {Int64GetDatum(task)};
	bool found = tq_spi_run(&peek, values, NULL) > 0;

	if (found)
	{
		read_run(0, 2, run);
		run->location = (TqTaskLocation) tq_spi_int32(0, 1, 0);
	}
	tq_spi_free_result();
	return found;
}

/*
 * Locks the row that was found; returns false if it is gone or, under
 * TQ_LOCK_SKIP, if another session has locked it.
 */
static bool
lock_place(const TqRun *run, TqLock mode)
{
	Datum values[2] = {Int64GetDatum(run->task), Int16GetDatum(run->run_id)};
	bool locked;

	if (run->location == TQ_LOCATION_PENDING)
		return tq_pending_lock(run->task, mode);
	locked = tq_spi_run(&lock_row[run->location][mode], values, NULL) > 0;
	tq_spi_free_result();
	return locked;
}

/*
 * Locks and reads the current row of a task.  Returns false if there is no
 * such task or, under TQ_LOCK_SKIP, if another session has locked or changed
 * it.
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
			run->location == seen.location && run->run_id == seen.run_id)
			return true;
		if (mode == TQ_LOCK_SKIP)
			return false;
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Adds the details to a history, and the worker's names to a deferred run,
 * whose worker is in its detail.
 */
static void
add_details(TqRun *runs, int n, bool with_errors)
{
	if (with_errors)
		tq_details_read_errors(runs, n);
	else
		tq_details_read(runs, n);
	for (int i = 0; i < n; i++)
	{
		if (runs[i].worker != 0 && runs[i].worker_group == NULL)
			tq_worker_name(runs[i].worker,
						   &runs[i].worker_group,
						   &runs[i].worker_id);
	}
}

/*
 * Runs a statement that returns runs; `workers` says that it returns their
 * names as well, and that details are wanted.
 */
static TqRun *
read_runs(TqStatement *statement, const Datum *values, bool workers,
		  bool errors, int *found)
{
	TqRun *runs;

	*found = (int) tq_spi_run(statement, values, NULL);
	runs = palloc(sizeof(TqRun) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
	{
		read_run(i, 1, &runs[i]);
		if (workers)
		{
			runs[i].worker_group = tq_spi_text(i, 14);
			runs[i].worker_id = tq_spi_text(i, 15);
		}
	}
	tq_spi_free_result();
	if (workers)
		add_details(runs, *found, errors);
	return runs;
}

/*
 * Locks and returns those rows of run that exist, in order of task id.  A run
 * that is running is the last of its task, and remains so while it is locked.
 */
TqRun *
tq_runs_lock(const int64 *tasks, const int32 *run_ids, int n, int *found)
{
	Datum values[2] = {tq_array_int64(tasks, n), tq_array_int32(run_ids, n)};

	return read_runs(&lock_runs, values, false, false, found);
}

/*
 * Returns every run of these tasks, by task id and run id, with the names of
 * the workers and, if requested, the errors.
 */
TqRun *
tq_runs_history(const int64 *tasks, int n, bool with_errors, int *found)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	return read_runs(&history, values, true, with_errors, found);
}

/*
 * Returns every run of a task, by run id, with the names of the workers and
 * the errors.
 */
TqRun *
tq_runs_of_task(const TqTask *task, int *found)
{
	TqScan *scan = tq_scan_open(&run_table, &run_by_key, 1, NULL);
	int room = 4;
	TqRun *runs = palloc(sizeof(TqRun) * room);

	*found = 0;
	tq_scan_seek(scan, Int64GetDatum(task->id), 0, 0);
	while (tq_scan_next(scan))
	{
		TqRun *run = &runs[(*found)++];

		tq_run_read(scan->slot, run);
		if (run->worker != 0)
			tq_worker_name(run->worker, &run->worker_group, &run->worker_id);
		if (*found == room) /* room for one more, which may be pending */
			runs = repalloc(runs, sizeof(TqRun) * (room *= 2));
	}
	*found += tq_pending_run(task, scan->registered, &runs[*found]);
	tq_scan_close(scan);
	add_details(runs, *found, true);
	return runs;
}
