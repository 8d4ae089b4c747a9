/*
 * store_edge.c
 *	  Rows of tq.edge and tq.unscheduled: who waits for whom.
 *
 * Room 2.  An edge is written once and never updated: it is met by the first
 * run of the required task, counted from from_run, that ends as the dependent
 * requires.  unscheduled.unmet counts a task's edges that are not met yet, and
 * is changed only under the lock of that row.
 */
#include "store.h"
#include "row.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

static TqStatement dependents = TQ_STATEMENT(
	"SELECT DISTINCT u.task FROM unnest($1) AS x (task) JOIN tq.edge e ON e.required = x.task"
	" JOIN tq.unscheduled u ON u.task = e.dependent ORDER BY 1",
	INT8ARRAYOID);

static TqStatement required_by = TQ_STATEMENT(
	"SELECT DISTINCT e.required FROM unnest($1) AS x (task) JOIN tq.edge e ON e.required = x.task"
	" WHERE e.dependent = ANY ($2) ORDER BY 1",
	INT8ARRAYOID, INT8ARRAYOID);

static TqStatement lock_unscheduled = TQ_STATEMENT(
	"SELECT u.task, u.unmet FROM tq.unscheduled u WHERE u.task = ANY ($1)"
	" ORDER BY u.task FOR UPDATE",
	INT8ARRAYOID);

static TqStatement try_lock_unscheduled = TQ_STATEMENT(
	"SELECT u.task, u.unmet FROM tq.unscheduled u WHERE u.task = ANY ($1)"
	" ORDER BY u.task FOR UPDATE SKIP LOCKED",
	INT8ARRAYOID);

static TqStatement unscheduled_near = TQ_STATEMENT(
	"SELECT u.task FROM unnest($1) AS x (task) JOIN tq.unscheduled u ON u.task = x.task"
	" UNION SELECT u.task FROM unnest($1) AS x (task) JOIN tq.edge e ON e.required = x.task"
	" JOIN tq.unscheduled u ON u.task = e.dependent"
	" ORDER BY 1",
	INT8ARRAYOID);

static TqStatement delete_unscheduled =
	TQ_STATEMENT("DELETE FROM tq.unscheduled WHERE task = ANY ($1)",
				 INT8ARRAYOID);

static TqRelation edge_table = TQ_RELATION("edge");
static TqRelation edge_by_key = TQ_RELATION("edge_pkey");
static TqRelation unscheduled_table = TQ_RELATION("unscheduled");
static TqRelation unscheduled_by_task = TQ_RELATION("unscheduled_pkey");

/* Columns, from 1. */
enum
{
	EDGE_REQUIRED = 1,
	EDGE_DEPENDENT,
	EDGE_FROM_RUN
};

enum
{
	UNSCHEDULED_TASK = 1,
	UNSCHEDULED_UNMET,
	UNSCHEDULED_ALL_RESOLVED
};

/* Edges of a new task. */
void
tq_edges_insert(int64 dependent, const int64 *required, const int32 *from_run,
				int n)
{
	TqTable *table;

	if (n == 0)
		return;
	table = tq_table_open(&edge_table);
	for (int i = 0; i < n; i++)
	{
		TupleTableSlot *slot = tq_table_new_row(table);

		tq_put(slot, EDGE_REQUIRED, Int64GetDatum(required[i]));
		tq_put(slot, EDGE_DEPENDENT, Int64GetDatum(dependent));
		tq_put(slot, EDGE_FROM_RUN, Int16GetDatum(from_run[i]));
	}
	tq_table_close(table);
}

/* Which of these tasks others depend on, as of now. */
void
tq_edges_exist(const int64 *tasks, int n, bool *exist)
{
	TqTable *table;
	Snapshot snapshot;
	TqScan *scan;

	if (n == 0)
		return;
	table = tq_table_open(&edge_table);
	snapshot = RegisterSnapshot(tq_plan_snapshot());
	scan = tq_scan_begin(table, &edge_by_key, 1, snapshot);
	for (int i = 0; i < n; i++)
	{
		tq_scan_seek(scan, Int64GetDatum(tasks[i]), 0, 0);
		exist[i] = tq_scan_next(scan);
	}
	tq_scan_end(scan);
	UnregisterSnapshot(snapshot);
	tq_table_close(table);
}

static TqWaiting *
read_waiting(TqStatement *statement, const Datum *values, int *found)
{
	TqWaiting *waiting;

	*found = (int) tq_plan_run(statement, values, NULL);
	waiting = palloc(sizeof(TqWaiting) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
	{
		waiting[i].task = tq_plan_int64(i, 1, 0);
		waiting[i].unmet = tq_plan_int32(i, 2, 0);
	}
	tq_plan_free_result();
	return waiting;
}

/* ---- what an end meets ---- */

/* A look at the edges of what has ended, and at those who wait. */
typedef struct Look
{
	TqScan *edges;
	TqScan *unscheduled;
	TqWaiting *waiting;
	int n;
	int room;
} Look;

static void
add_waiting(Look *look, int64 task)
{
	if (look->n == look->room)
	{
		look->room = Max(16, look->room * 2);
		look->waiting = look->waiting == NULL
							? palloc(sizeof(TqWaiting) * look->room)
							: repalloc(look->waiting,
									   sizeof(TqWaiting) * look->room);
	}
	look->waiting[look->n++] = (TqWaiting){.task = task, .unmet = 1};
}

/* Is an edge met by this end, and was not before? */
static bool
is_met_now(const TqMet *met, bool all_resolved, int from_run)
{
	if (all_resolved)
		return from_run > met->previous_final;
	return met->completed && from_run > met->previous_completed;
}

static void
look_at_dependents(Look *look, const TqMet *met)
{
	TupleTableSlot *edge = look->edges->slot;
	TupleTableSlot *row = look->unscheduled->slot;

	tq_scan_seek(look->edges, Int64GetDatum(met->required), 0, 0);
	while (tq_scan_next(look->edges))
	{
		int64 dependent = tq_row_int64(edge, EDGE_DEPENDENT);

		tq_scan_seek(look->unscheduled, Int64GetDatum(dependent), 0, 0);
		if (tq_scan_next(look->unscheduled) &&
			is_met_now(met,
					   tq_row_bool(row, UNSCHEDULED_ALL_RESOLVED),
					   tq_row_int16(edge, EDGE_FROM_RUN)))
			add_waiting(look, dependent);
	}
}

/* For qsort() and bsearch(), by task. */
int
tq_compare_waiting(const void *a, const void *b)
{
	int64 x = ((const TqWaiting *) a)->task;
	int64 y = ((const TqWaiting *) b)->task;

	return x < y ? -1 : x > y;
}

/* By id, each task once. */
static int
merge_waiting(TqWaiting *waiting, int n)
{
	int merged = 0;

	if (n > 1)
		qsort(waiting, n, sizeof(TqWaiting), tq_compare_waiting);
	for (int i = 0; i < n; i++)
	{
		if (merged > 0 && waiting[merged - 1].task == waiting[i].task)
			waiting[merged - 1].unmet++;
		else
			waiting[merged++] = waiting[i];
	}
	return merged;
}

/*
 * The unscheduled tasks that these resolutions bring nearer, by id, each with
 * the number of its edges that are met now and were not before.
 */
TqWaiting *
tq_edges_met(const TqMet *met, int n, int *found)
{
	TqTable *edges = tq_table_open(&edge_table);
	TqTable *unscheduled = tq_table_open(&unscheduled_table);
	Snapshot snapshot = RegisterSnapshot(tq_plan_snapshot());
	Look look = {.edges = tq_scan_begin(edges, &edge_by_key, 1, snapshot),
				 .unscheduled = tq_scan_begin(unscheduled,
											  &unscheduled_by_task,
											  1,
											  snapshot)};

	for (int i = 0; i < n; i++)
	{
		look_at_dependents(&look, &met[i]);
		CHECK_FOR_INTERRUPTS();
	}
	tq_scan_end(look.unscheduled);
	tq_scan_end(look.edges);
	UnregisterSnapshot(snapshot);
	tq_table_close(unscheduled);
	tq_table_close(edges);
	*found = merge_waiting(look.waiting, look.n);
	return look.waiting;
}

/*
 * Count one task down; true when it has no unmet edge left, and then its row
 * is deleted if it may be.  The write waits for whoever else is at the row;
 * when that one has changed it, it is read again.
 */
static bool
count_down(TqTable *table, const TqWaiting *waiting, bool may_free)
{
	for (;;)
	{
		Snapshot snapshot = RegisterSnapshot(tq_plan_snapshot());
		TqScan *scan = tq_scan_begin(table, &unscheduled_by_task, 1, snapshot);
		bool found;
		bool is_free = false;
		TM_Result result = TM_Ok;

		tq_scan_seek(scan, Int64GetDatum(waiting->task), 0, 0);
		found = tq_scan_next(scan);
		if (found)
		{
			int unmet = tq_row_int32(scan->slot, UNSCHEDULED_UNMET) -
						waiting->unmet;

			is_free = unmet == 0 && may_free;
			if (is_free)
				result = tq_table_delete(table, &scan->slot->tts_tid, true);
			else
			{
				TupleTableSlot *row = tq_table_copy_row(table, scan->slot);

				tq_put(row, UNSCHEDULED_UNMET, Int32GetDatum(unmet));
				result = tq_table_update(table, &scan->slot->tts_tid, row);
				ExecDropSingleTupleTableSlot(row);
			}
		}
		tq_scan_end(scan);
		UnregisterSnapshot(snapshot);
		if (result == TM_Ok)
			return is_free;
		tq_table_changed_under_us(table, result);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Count these tasks down, in order of their ids.  Those that wait for nothing
 * any more are taken out of unscheduled, if they may be: is_free[] tells.
 */
void
tq_unscheduled_count_down(const TqWaiting *waiting, int n,
						  const bool *may_free, bool *is_free)
{
	TqTable *table = tq_table_open(&unscheduled_table);

	for (int i = 0; i < n; i++)
		is_free[i] = count_down(table, &waiting[i], may_free[i]);
	tq_table_close(table);
}

/* Those of these tasks and of their dependents that are unscheduled; by id. */
int64 *
tq_edges_unscheduled(const int64 *tasks, int n, int *found)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	return tq_plan_run_ids(&unscheduled_near, values, found);
}

/* The unscheduled dependents of these tasks, by id. */
int64 *
tq_edges_dependents(const int64 *tasks, int n, int *found)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	return tq_plan_run_ids(&dependents, values, found);
}

/* Those of the first tasks on which one of the second depends, by id. */
int64 *
tq_edges_required(const int64 *tasks, int n, const int64 *by, int nby,
				  int *found)
{
	Datum values[2] = {tq_array_int64(tasks, n), tq_array_int64(by, nby)};

	return tq_plan_run_ids(&required_by, values, found);
}

void
tq_unscheduled_insert(int64 task, int unmet, bool all_resolved)
{
	TqTable *table = tq_table_open(&unscheduled_table);
	TupleTableSlot *slot = tq_table_new_row(table);

	tq_put(slot, UNSCHEDULED_TASK, Int64GetDatum(task));
	tq_put(slot, UNSCHEDULED_UNMET, Int32GetDatum(unmet));
	tq_put(slot, UNSCHEDULED_ALL_RESOLVED, BoolGetDatum(all_resolved));
	tq_table_close(table);
}

/* Lock those of these tasks that are still unscheduled, in order of their ids. */
TqWaiting *
tq_unscheduled_lock(const int64 *tasks, int n, int *found)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	return read_waiting(&lock_unscheduled, values, found);
}

/* The same, passing over those that another session holds. */
TqWaiting *
tq_unscheduled_try_lock(const int64 *tasks, int n, int *found)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	return read_waiting(&try_lock_unscheduled, values, found);
}

void
tq_unscheduled_delete(const int64 *tasks, int n)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	if (n > 0)
		tq_plan_run(&delete_unscheduled, values, NULL);
}
