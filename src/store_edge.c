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
#include "executor/spi.h"
#include "utils/snapmgr.h"

static TqStatement insert_edges = TQ_STATEMENT(
	"INSERT INTO tq.edge (required, dependent, from_run)"
	" SELECT x.required, $1, x.from_run FROM unnest($2, $3) AS x (required, from_run)",
	INT8OID, INT8ARRAYOID, INT4ARRAYOID);

/* $1 required, $2 completed now, $3 last earlier completed, $4 last earlier final run */
static TqStatement met_edges = TQ_STATEMENT(
	"SELECT u.task, count(*)::int4"
	" FROM unnest($1, $2, $3, $4) AS m (required, completed, previous_completed, previous_final)"
	" JOIN tq.edge e ON e.required = m.required"
	" JOIN tq.unscheduled u ON u.task = e.dependent"
	" WHERE CASE WHEN u.all_resolved THEN e.from_run > m.previous_final"
	" ELSE m.completed AND e.from_run > m.previous_completed END"
	" GROUP BY u.task ORDER BY u.task",
	INT8ARRAYOID, BOOLARRAYOID, INT4ARRAYOID, INT4ARRAYOID);

static TqStatement dependents = TQ_STATEMENT(
	"SELECT DISTINCT u.task FROM unnest($1) AS x (task) JOIN tq.edge e ON e.required = x.task"
	" JOIN tq.unscheduled u ON u.task = e.dependent ORDER BY 1",
	INT8ARRAYOID);

static TqStatement required_by = TQ_STATEMENT(
	"SELECT DISTINCT e.required FROM unnest($1) AS x (task) JOIN tq.edge e ON e.required = x.task"
	" WHERE e.dependent = ANY ($2) ORDER BY 1",
	INT8ARRAYOID, INT8ARRAYOID);

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

static TqStatement insert_unscheduled = TQ_STATEMENT(
	"INSERT INTO tq.unscheduled (task, unmet, all_resolved) VALUES ($1, $2, $3)",
	INT8OID, INT4OID, BOOLOID);

static TqStatement lock_unscheduled = TQ_STATEMENT(
	"SELECT u.task, u.unmet FROM tq.unscheduled u WHERE u.task = ANY ($1)"
	" ORDER BY u.task FOR UPDATE",
	INT8ARRAYOID);

static TqStatement count_down = TQ_STATEMENT(
	"UPDATE tq.unscheduled u SET unmet = u.unmet - x.by FROM unnest($1, $2) AS x (task, by)"
	" WHERE u.task = x.task",
	INT8ARRAYOID, INT4ARRAYOID);

static TqStatement delete_unscheduled =
	TQ_STATEMENT("DELETE FROM tq.unscheduled WHERE task = ANY ($1)",
				 INT8ARRAYOID);

static TqRelation edge_table = TQ_RELATION("edge");
static TqRelation edge_by_key = TQ_RELATION("edge_pkey");

/* Edges of a new task. */
void
tq_edges_insert(int64 dependent, const int64 *required, const int32 *from_run,
				int n)
{
	Datum values[3] = {Int64GetDatum(dependent),
					   tq_array_int64(required, n),
					   tq_array_int32(from_run, n)};

	if (n > 0)
		tq_plan_run(&insert_edges, values, NULL);
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

/*
 * The unscheduled tasks that these resolutions bring nearer, by id, each with
 * the number of its edges that are met now and were not before.
 */
TqWaiting *
tq_edges_met(const TqMet *met, int n, int *found)
{
	int64 *required = palloc(sizeof(int64) * n);
	bool *completed = palloc(sizeof(bool) * n);
	int32 *previous_completed = palloc(sizeof(int32) * n);
	int32 *previous_final = palloc(sizeof(int32) * n);
	Datum values[4];

	for (int i = 0; i < n; i++)
	{
		required[i] = met[i].required;
		completed[i] = met[i].completed;
		previous_completed[i] = met[i].previous_completed;
		previous_final[i] = met[i].previous_final;
	}
	values[0] = tq_array_int64(required, n);
	values[1] = tq_array_bool(completed, n);
	values[2] = tq_array_int32(previous_completed, n);
	values[3] = tq_array_int32(previous_final, n);
	return read_waiting(&met_edges, values, found);
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
	Datum values[3] = {Int64GetDatum(task),
					   Int32GetDatum(unmet),
					   BoolGetDatum(all_resolved)};

	tq_plan_run(&insert_unscheduled, values, NULL);
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
tq_unscheduled_count_down(const int64 *tasks, const int32 *by, int n)
{
	Datum values[2] = {tq_array_int64(tasks, n), tq_array_int32(by, n)};

	if (n > 0)
		tq_plan_run(&count_down, values, NULL);
}

void
tq_unscheduled_delete(const int64 *tasks, int n)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	if (n > 0)
		tq_plan_run(&delete_unscheduled, values, NULL);
}
