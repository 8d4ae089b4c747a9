/*
 * dependency_table.c
 *	  Rows of tq_internal.dependency, tq_internal.foreign_dependency,
 *	  tq_internal.unscheduled and tq_internal.dependency_counter: dependencies
 *	  and unscheduled tasks.
 *
 * A row of dependency is met by the first run of the required task, counted
 * from from_run, that ends as the dependent requires.  It is written once,
 * except that a repair (operations/repair.c) raises from_run, so that the
 * dependency is unmet again.  unscheduled.unmet is the dependency counter of a
 * task: it counts the dependencies that are not met yet.  If they are many, the
 * counter is divided into stripes: each row of dependency_counter counts the
 * dependencies of one stripe, and unscheduled.unmet counts the stripes that are
 * not empty. Stripes that are left when a task is scheduled or resolved in
 * another way are meaningless and are deleted with the task.
 *
 * A row of foreign_dependency says itself whether it is met: settled is set by
 * the transaction that counts it down.  The row of dependency with dependent 0
 * marks a required task that has such rows (lifecycle/foreign_dependency.c).  Its
 * from_run is 0, or the number after that of a run that was canceled because what
 * the task waited for had failed, so that its foreign dependents are, too.
 *
 * Locks: the stripes of a task before its row of unscheduled; tasks in order
 * of their ids.  Who settles foreign dependencies waits for none of these, and
 * locks the rows of foreign_dependency before.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "utils/snapmgr.h"

#include "columns.h"
#include "tasks.h"

/*
 * The dependencies of many tasks are looked up task by task: OFFSET prevents a
 * plan that scans all tasks for each dependency, which is slow where few of
 * the tasks have most of the dependencies.
 */
#define DEPENDENCIES_OF_X                                                     \
	" FROM unnest($1) AS x (task), LATERAL (SELECT e.required, e.dependent"   \
	" FROM tq_internal.dependency e WHERE e.required = x.task OFFSET 0) AS e"

static TqStatement dependents = TQ_STATEMENT(
	"SELECT DISTINCT u.task" DEPENDENCIES_OF_X
	" JOIN tq_internal.unscheduled u ON u.task = e.dependent ORDER BY 1",
	INT8ARRAYOID);

static TqStatement required_by =
	TQ_STATEMENT("SELECT DISTINCT e.required" DEPENDENCIES_OF_X
				 " WHERE e.dependent = ANY ($2) ORDER BY 1",
				 INT8ARRAYOID, INT8ARRAYOID);

static TqStatement needed = TQ_STATEMENT(
	"SELECT DISTINCT e.required" DEPENDENCIES_OF_X
	" WHERE EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = e.dependent)"
	" OR EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = e.dependent)"
	" OR EXISTS (SELECT FROM " TQ_PENDING_OF(
		"e.dependent") " AS p)"
					   " OR EXISTS (SELECT FROM tq_internal.run r WHERE r.task = e.dependent AND r.state = 2)"
					   " UNION SELECT x.task FROM unnest($1) AS x (task), LATERAL (SELECT max(r.run_id) AS completed"
					   " FROM tq_internal.run r WHERE r.task = x.task AND r.state = 3 OFFSET 0) AS r"
					   " WHERE EXISTS (SELECT FROM tq_internal.foreign_dependency f WHERE f.required = x.task"
					   " AND NOT f.settled AND (f.all_resolved OR f.from_run <= r.completed))"
					   " ORDER BY 1",
	INT8ARRAYOID);

/*
 * Those of $1, and what depends on them, that is unscheduled or unsuccessful.
 * With $2 also what is completed, and pending or running dependents of all
 * these, but nothing behind those.
 */
static TqStatement downstream = TQ_STATEMENT(
	"WITH RECURSIVE s (task, goes_on) AS (SELECT unnest($1), true UNION SELECT e.dependent, x.goes_on FROM s"
	" CROSS JOIN LATERAL (SELECT d.dependent FROM tq_internal.dependency d WHERE d.required = s.task AND d.dependent > 0"
	" UNION ALL SELECT f.dependent FROM tq_internal.foreign_dependency f WHERE f.required = s.task OFFSET 0) AS e"
	" CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM tq_internal.failure f WHERE f.task = e.dependent)"
	" OR EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = e.dependent) OR ($2"
	" AND NOT EXISTS (SELECT FROM tq_internal.run r WHERE r.task = e.dependent AND r.state = 2)"
	" AND NOT EXISTS (SELECT FROM tq_internal.delayed d WHERE d.task = e.dependent)"
	" AND NOT EXISTS (SELECT FROM " TQ_PENDING_OF(
		"e.dependent") " AS p)) AS goes_on OFFSET 0) AS x"
					   " WHERE s.goes_on AND (x.goes_on OR $2))"
					   " SELECT DISTINCT task FROM s ORDER BY 1",
	INT8ARRAYOID, BOOLOID);

/* Those of $1 that are unscheduled, and the unscheduled tasks that they wait for. */
static TqStatement upstream = TQ_STATEMENT(
	"WITH RECURSIVE s (task) AS (SELECT unnest($1) UNION SELECT r.id FROM s"
	" CROSS JOIN LATERAL (SELECT t.dependencies FROM tq_internal.task t WHERE t.id = s.task"
	" AND EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = s.task) OFFSET 0) AS t"
	" CROSS JOIN LATERAL unnest(t.dependencies) AS d (slug)"
	" CROSS JOIN LATERAL (SELECT r.id FROM tq_internal.task r WHERE r.task_id = d.slug OFFSET 0) AS r)"
	" SELECT task FROM s WHERE EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = s.task) ORDER BY 1",
	INT8ARRAYOID);

/*
 * What waits for the completion of one of $1, and what waits for that in turn;
 * not what has that dependency met by an earlier run, not $2, and not what
 * waits only for one of $2.
 */
static TqStatement doomed = TQ_STATEMENT(
	"WITH RECURSIVE s (task) AS (SELECT unnest($1) UNION SELECT u.task FROM s"
	" CROSS JOIN LATERAL (SELECT d.dependent, d.from_run FROM tq_internal.dependency d WHERE d.required = s.task OFFSET 0) AS e"
	" JOIN tq_internal.unscheduled u ON u.task = e.dependent AND NOT u.all_resolved"
	" WHERE u.task <> ALL ($2) AND NOT EXISTS (SELECT FROM tq_internal.run r WHERE r.task = s.task AND r.run_id >= e.from_run AND r.state = 3))"
	" SELECT task FROM s WHERE task <> ALL ($1) ORDER BY 1",
	INT8ARRAYOID, INT8ARRAYOID);

static TqStatement edges_to = TQ_STATEMENT(
	"SELECT e.required, e.dependent, e.from_run, e.is_foreign, e.settled FROM unnest($1) AS x (task)"
	" CROSS JOIN LATERAL (SELECT t.dependencies FROM tq_internal.task t WHERE t.id = x.task OFFSET 0) AS t"
	" CROSS JOIN LATERAL unnest(t.dependencies) AS d (slug)"
	" CROSS JOIN LATERAL (SELECT r.id FROM tq_internal.task r WHERE r.task_id = d.slug OFFSET 0) AS r"
	" CROSS JOIN LATERAL (SELECT d.*, false AS is_foreign, false AS settled FROM tq_internal.dependency d"
	" WHERE d.required = r.id AND d.dependent = x.task"
	" UNION ALL SELECT f.required, f.dependent, f.from_run, true, f.settled FROM tq_internal.foreign_dependency f"
	" WHERE f.required = r.id AND f.dependent = x.task OFFSET 0) AS e"
	" ORDER BY e.dependent, e.required",
	INT8ARRAYOID);

static TqStatement set_from_run = TQ_STATEMENT(
	"WITH f AS (UPDATE tq_internal.foreign_dependency f SET from_run = x.from_run, settled = false"
	" FROM unnest($1, $2, $3) AS x (required, dependent, from_run)"
	" WHERE f.required = x.required AND f.dependent = x.dependent)"
	" UPDATE tq_internal.dependency e SET from_run = x.from_run FROM unnest($1, $2, $3) AS x (required, dependent, from_run)"
	" WHERE e.required = x.required AND e.dependent = x.dependent AND e.from_run <> x.from_run",
	INT8ARRAYOID, INT8ARRAYOID, INT4ARRAYOID);

/* Raises the counter of $1, or its stripes, by the required tasks $2. */
static TqStatement count_up = TQ_STATEMENT(
	"WITH c AS (INSERT INTO tq_internal.dependency_counter AS c (task, stripe, unmet)"
	" SELECT u.task, x.required % u.stripes, count(*) FROM tq_internal.unscheduled u CROSS JOIN unnest($2) AS x (required)"
	" WHERE u.task = $1 AND u.stripes > 0 GROUP BY 1, 2"
	" ON CONFLICT (task, stripe) DO UPDATE SET unmet = c.unmet + excluded.unmet RETURNING (xmax = 0) AS is_new)"
	" UPDATE tq_internal.unscheduled u SET unmet = u.unmet"
	" + CASE WHEN u.stripes = 0 THEN cardinality($2) ELSE (SELECT count(*) FROM c WHERE c.is_new) END WHERE u.task = $1",
	INT8OID, INT8ARRAYOID);

static TqStatement delete_stripes = TQ_STATEMENT(
	"DELETE FROM tq_internal.dependency_counter WHERE task = ANY ($1)",
	INT8ARRAYOID);

static TqStatement lock_unscheduled = TQ_STATEMENT(
	"WITH s AS MATERIALIZED (SELECT m.task FROM tq_internal.dependency_counter m WHERE m.task = ANY ($1)"
	" ORDER BY m.task, m.stripe FOR UPDATE)"
	" SELECT u.task, u.unmet FROM tq_internal.unscheduled u WHERE u.task = ANY ($1)"
	" AND (SELECT count(*) FROM s) >= 0 ORDER BY u.task FOR UPDATE OF u",
	INT8ARRAYOID);

/*
 * Locks only tasks all of whose stripes could be locked; the stripes are
 * locked first, as in count_down().
 */
static TqStatement try_lock_unscheduled = TQ_STATEMENT(
	"WITH s AS MATERIALIZED (SELECT m.task FROM tq_internal.dependency_counter m WHERE m.task = ANY ($1)"
	" ORDER BY m.task, m.stripe FOR UPDATE SKIP LOCKED)"
	" SELECT u.task, u.unmet FROM tq_internal.unscheduled u WHERE u.task = ANY ($1)"
	" AND (SELECT count(*) FROM s WHERE s.task = u.task)"
	" = (SELECT count(*) FROM tq_internal.dependency_counter m WHERE m.task = u.task)"
	" ORDER BY u.task FOR UPDATE OF u SKIP LOCKED",
	INT8ARRAYOID);

static TqStatement unscheduled_near = TQ_STATEMENT(
	"SELECT u.task FROM unnest($1) AS x (task) JOIN tq_internal.unscheduled u ON u.task = x.task"
	" UNION SELECT u.task" DEPENDENCIES_OF_X
	" JOIN tq_internal.unscheduled u ON u.task = e.dependent"
	" ORDER BY 1",
	INT8ARRAYOID);

static TqStatement touch_unscheduled = TQ_STATEMENT(
	"UPDATE tq_internal.unscheduled SET unmet = unmet WHERE task = ANY ($1)",
	INT8ARRAYOID);
static TqStatement delete_unscheduled =
	TQ_STATEMENT("DELETE FROM tq_internal.unscheduled WHERE task = ANY ($1)",
				 INT8ARRAYOID);

static TqStatement foreign_insert = TQ_STATEMENT(
	"INSERT INTO tq_internal.foreign_dependency (required, dependent, queue, from_run, all_resolved, settled)"
	" SELECT x.required, x.dependent, $6, x.from_run, $5, x.settled <> 0"
	" FROM unnest($1, $2, $3, $4) AS x (required, dependent, from_run, settled)",
	INT8ARRAYOID, INT8ARRAYOID, INT4ARRAYOID, INT4ARRAYOID, BOOLOID, INT4OID);

static TqStatement foreign_lock = TQ_STATEMENT(
	"SELECT FROM tq_internal.foreign_dependency f JOIN unnest($1, $2) AS x (required, dependent)"
	" ON f.required = x.required AND f.dependent = x.dependent"
	" ORDER BY f.dependent, f.required FOR UPDATE OF f",
	INT8ARRAYOID, INT8ARRAYOID);

static TqStatement foreign_marked = TQ_STATEMENT(
	"SELECT from_run::bigint FROM tq_internal.dependency WHERE required = $1 AND dependent = 0",
	INT8OID);

static TqStatement foreign_mark = TQ_STATEMENT(
	"INSERT INTO tq_internal.dependency (required, dependent, from_run) VALUES ($1, 0, 0)"
	" ON CONFLICT DO NOTHING",
	INT8OID);

static TqStatement foreign_doom = TQ_STATEMENT(
	"UPDATE tq_internal.dependency e SET from_run = x.run_id + 1 FROM unnest($1, $2) AS x (task, run_id)"
	" WHERE e.required = x.task AND e.dependent = 0",
	INT8ARRAYOID, INT4ARRAYOID);

/*
 * The dependencies on $1 that are not settled and that its runs have met: $2 is
 * the last that counts as completed, $3 the last final one.
 */
#define FOREIGN_MET(joined)                                                       \
	" FROM (VALUES (true, $3), (false, $2)) AS m (all_resolved, upto)"            \
	" JOIN tq_internal.foreign_dependency f ON f.required = $1 AND NOT f.settled" \
	" AND f.all_resolved = m.all_resolved AND f.from_run <= m.upto" joined

#define WAITING " JOIN tq_internal.unscheduled u ON u.task = f.dependent"
#define IDLE                                                                  \
	" NOT EXISTS (SELECT FROM tq_internal.unscheduled u WHERE u.task = f.dependent)"
#define OF_MET INT8OID, INT4OID, INT4OID

static TqStatement foreign_waiting =
	TQ_STATEMENT("SELECT f.dependent" FOREIGN_MET(
					 WAITING) " LIMIT $4 FOR UPDATE OF f, u SKIP LOCKED",
				 OF_MET, INT4OID);

static TqStatement foreign_idle =
	TQ_STATEMENT("SELECT f.dependent" FOREIGN_MET(
					 " WHERE" IDLE) " LIMIT $4 FOR UPDATE OF f SKIP LOCKED",
				 OF_MET, INT4OID);

static TqStatement foreign_is_met =
	TQ_STATEMENT("SELECT" FOREIGN_MET("") " LIMIT 1", OF_MET);

static TqStatement foreign_doomed = TQ_STATEMENT(
	"SELECT f.dependent FROM tq_internal.foreign_dependency f" WAITING
	" WHERE f.required = $1 AND NOT f.settled AND NOT f.all_resolved AND f.from_run > $2 AND f.from_run <= $3"
	" LIMIT $4 FOR UPDATE SKIP LOCKED",
	OF_MET, INT4OID);

static TqStatement foreign_settle =
	TQ_STATEMENT("UPDATE tq_internal.foreign_dependency f SET settled = true"
				 " WHERE f.required = $1 AND f.dependent = ANY ($2)",
				 INT8OID, INT8ARRAYOID);

static TqStatement foreign_settle_idle =
	TQ_STATEMENT("UPDATE tq_internal.foreign_dependency f SET settled = true"
				 " WHERE f.required = $1 AND f.dependent = ANY ($2) AND" IDLE,
				 INT8OID, INT8ARRAYOID);

static TqStatement foreign_stripes = TQ_STATEMENT(
	"SELECT u.task, CASE WHEN u.stripes = 0 THEN -1 ELSE $1 % u.stripes END::int"
	" FROM tq_internal.unscheduled u WHERE u.task = ANY ($2) ORDER BY u.task",
	INT8OID, INT8ARRAYOID);

static TqStatement foreign_delete = TQ_STATEMENT(
	"DELETE FROM tq_internal.foreign_dependency f USING (SELECT d.dependent FROM tq_internal.foreign_dependency d"
	" WHERE d.required = $1 LIMIT $2) AS x WHERE f.required = $1 AND f.dependent = x.dependent"
	" RETURNING f.queue::bigint",
	INT8OID, INT4OID);

static TqRelation dependency_table = TQ_RELATION("dependency");
static TqRelation dependency_by_key = TQ_RELATION("dependency_pkey");
static TqRelation foreign_table = TQ_RELATION("foreign_dependency");
static TqRelation foreign_by_key = TQ_RELATION("foreign_dependency_pkey");
static TqRelation unmet_table = TQ_RELATION("dependency_counter");
static TqRelation unmet_by_stripe = TQ_RELATION("dependency_counter_pkey");
static TqRelation unscheduled_table = TQ_RELATION("unscheduled");
static TqRelation unscheduled_by_task = TQ_RELATION("unscheduled_pkey");

TQ_NUMBERS(TQ_DEPENDENCY_COLUMNS, dependency);
TQ_NUMBERS(TQ_UNSCHEDULED_COLUMNS, unscheduled);
TQ_NUMBERS(TQ_DEPENDENCY_COUNTER_COLUMNS, counter);

/*
 * A task with at least STRIPED_FROM unmet dependencies has its counter divided
 * into STRIPES stripes.  A transaction that meets a dependency holds the row
 * lock of one stripe until it ends, and only the one that empties a stripe
 * also locks the row of the task.  Bench fan-in, 3,000 required tasks and 16
 * workers: 3.7 times the rate that a single counter allows.
 */
#define STRIPED_FROM 256
#define STRIPES 64

/* Returns the stripe that counts a dependency; -1 if the counter has none. */
static int
stripe_of(int64 required, int stripes)
{
	return stripes == 0 ? -1 : (int) (required % stripes);
}

/* Inserts the dependencies of a new task. */
void
tq_dependencies_insert(int64 dependent, const int64 *required,
					   const int32 *from_run, int n)
{
	TqTable *table;

	if (n == 0)
		return;
	table = tq_table_open(&dependency_table);
	for (int i = 0; i < n; i++)
	{
		TupleTableSlot *slot = tq_table_new_row(table);

		tq_put_int64(slot, Anum_dependency_required, required[i]);
		tq_put_int64(slot, Anum_dependency_dependent, dependent);
		tq_put_int16(slot, Anum_dependency_from_run, from_run[i]);
	}
	tq_table_close(table);
}

/* Sets exist[] for tasks that have dependents, by the latest snapshot. */
void
tq_dependencies_exist(const int64 *tasks, int n, bool *exist)
{
	TqScan *scan;

	if (n == 0)
		return;
	scan = tq_scan_open(&dependency_table, &dependency_by_key, 1, NULL);
	for (int i = 0; i < n; i++)
	{
		exist[i] = tq_scan_find(scan, Int64GetDatum(tasks[i]), 0, 0);
	}
	tq_scan_close(scan);
}

static void
dependency_read_waiting(TupleTableSlot *slot, void *waiting)
{
	*(TqUnscheduled *) waiting = (TqUnscheduled){.task = tq_row_int64(slot, 1),
												 .stripe = -1,
												 .unmet = tq_row_int32(slot,
																	   2)};
}

/* ---- dependencies that a resolution meets ---- */

/* A search for the unscheduled dependents of resolved tasks. */
typedef struct Lookup
{
	TqScan *dependencies;
	TqScan *unscheduled;
	TqUnscheduled *waiting;
	int n;
	int room; /* for which waiting has space */
} Lookup;

static void
add_waiting(Lookup *lookup, int64 task, int stripe)
{
	if (lookup->n == lookup->room)
	{
		lookup->room = Max(16, lookup->room * 2);
		lookup->waiting = lookup->waiting == NULL
							  ? palloc(sizeof(TqUnscheduled) * lookup->room)
							  : repalloc(lookup->waiting,
										 sizeof(TqUnscheduled) * lookup->room);
	}
	lookup->waiting[lookup->n++] =
		(TqUnscheduled){.task = task, .stripe = stripe, .unmet = 1};
}

/*
 * Returns whether a dependency is met by this resolution, and was not before.
 */
static bool
is_met_now(const TqMet *met, bool all_resolved, int from_run)
{
	if (all_resolved)
		return from_run > met->previous_final;
	return met->completed && from_run > met->previous_completed;
}

/* Compares by task, then stripe; for qsort() and bsearch(). */
int
tq_compare_unscheduled(const void *a, const void *b)
{
	const TqUnscheduled *x = a;
	const TqUnscheduled *y = b;

	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return x->stripe - y->stripe;
}

/*
 * Returns the unscheduled tasks that have a dependency met by these
 * resolutions, in order of id and stripe, each with the number of dependencies
 * that are met now and were not before.  Sets is_marked of the resolutions.
 */
TqUnscheduled *
tq_dependencies_met(TqMet *met, int n, int *found)
{
	Lookup lookup = {.dependencies = tq_scan_open(&dependency_table,
												  &dependency_by_key, 1,
												  NULL)};
	int merged;

	lookup.unscheduled = tq_scan_open(&unscheduled_table, &unscheduled_by_task,
									  1, lookup.dependencies->registered);
	for (int i = 0; i < n; i++)
	{
		TupleTableSlot *dependency = lookup.dependencies->slot;
		TupleTableSlot *row = lookup.unscheduled->slot;

		/*
		 * Add the dependents of a resolved task that have a dependency met
		 * now.
		 */
		tq_scan_seek(lookup.dependencies, Int64GetDatum(met[i].required), 0,
					 0);
		while (tq_scan_next(lookup.dependencies))
		{
			int64 dependent = tq_row_int64(dependency,
										   Anum_dependency_dependent);

			if (dependent == 0)
				met[i].is_marked = true;
			else if (tq_scan_find(lookup.unscheduled, Int64GetDatum(dependent),
								  0, 0) &&
					 is_met_now(&met[i],
								tq_row_bool(row,
											Anum_unscheduled_all_resolved),
								tq_row_int16(dependency,
											 Anum_dependency_from_run)))
				add_waiting(&lookup, dependent,
							stripe_of(met[i].required,
									  tq_row_int16(row,
												   Anum_unscheduled_stripes)));
		}
		CHECK_FOR_INTERRUPTS();
	}
	tq_scan_close(lookup.unscheduled);
	tq_scan_close(lookup.dependencies);
	/*
	 * Sort the entries and merge those of the same task and stripe, adding up
	 * what they count; returns their number.
	 */
	merged = 0;
	if (lookup.n > 1)
		qsort(lookup.waiting, lookup.n, sizeof(TqUnscheduled),
			  tq_compare_unscheduled);
	for (int i = 0; i < lookup.n; i++)
	{
		if (merged > 0 && tq_compare_unscheduled(&lookup.waiting[merged - 1],
												 &lookup.waiting[i]) == 0)
			lookup.waiting[merged - 1].unmet++;
		else
			lookup.waiting[merged++] = lookup.waiting[i];
	}
	*found = merged;
	return lookup.waiting;
}

/* The table and column of a counter: of unscheduled, or of unmet. */
typedef struct Counter
{
	TqTable *table;
	TqRelation *index;
	int nkeys;
	int column;
} Counter;

static Counter
open_counter(TqRelation *table, TqRelation *index, int nkeys, int column)
{
	return (Counter){.table = tq_table_open(table),
					 .index = index,
					 .nkeys = nkeys,
					 .column = column};
}

/* Writes a counter, or deletes its row; waits for a concurrent writer. */
static TM_Result
write_count(const Counter *counter, TupleTableSlot *slot, int unmet,
			bool deletes)
{
	TupleTableSlot *row;
	TM_Result result;

	if (deletes)
		return tq_table_delete(counter->table, &slot->tts_tid, true);
	row = tq_table_copy_row(counter->table, slot);
	tq_put(row, counter->column, Int32GetDatum(unmet));
	result = tq_table_update(counter->table, &slot->tts_tid, row);
	ExecDropSingleTupleTableSlot(row);
	return result;
}

/*
 * Makes one attempt to decrement a counter.  Sets *left to its new value, or to
 * -1 if there is no row.  Sets *next_run, unless NULL, if the row is that of a
 * task.
 */
static TM_Result
try_count_down(const Counter *counter, const TqUnscheduled *waiting,
			   bool may_delete, int *left, int *next_run)
{
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());
	TqScan *scan = tq_scan_begin(counter->table, counter->index,
								 counter->nkeys, snapshot);
	TM_Result result = TM_Ok;

	*left = -1;
	if (tq_scan_find(scan, Int64GetDatum(waiting->task),
					 Int16GetDatum(waiting->stripe), 0))
	{
		*left = tq_row_int32(scan->slot, counter->column) - waiting->unmet;
		if (next_run != NULL)
			*next_run = tq_row_int16(scan->slot, Anum_unscheduled_next_run);
		result = write_count(counter, scan->slot, *left,
							 *left == 0 && may_delete);
	}
	tq_scan_end(scan);
	UnregisterSnapshot(snapshot);
	return result;
}

/*
 * Decrements a counter.  Returns whether it has reached zero; its row is then
 * deleted if may_delete.  The write waits for a concurrent transaction that
 * has written the row; if that has changed it, the row is read again.
 */
static bool
count_down(const Counter *counter, const TqUnscheduled *waiting,
		   bool may_delete, int *next_run)
{
	TM_Result result;
	int left;

	while ((result = try_count_down(counter, waiting, may_delete, &left,
									next_run)) != TM_Ok)
	{
		tq_table_changed_under_us(counter->table, result);
		CHECK_FOR_INTERRUPTS();
	}
	return left == 0;
}

/*
 * Decrements the dependency counters of these tasks, in order of their ids,
 * the stripes of each first.  A task that has no unmet dependency any more is
 * deleted from unscheduled if may_free[] allows it; is_free[] says which were,
 * and next_run[] what run each gets.
 */
void
tq_unscheduled_count_down(const TqUnscheduled *waiting, int n,
						  const bool *may_free, bool *is_free, int *next_run)
{
	Counter tasks = open_counter(&unscheduled_table, &unscheduled_by_task, 1,
								 Anum_unscheduled_unmet);
	Counter stripes = open_counter(&unmet_table, &unmet_by_stripe, 2,
								   Anum_counter_unmet);
	int stripes_met = 0;

	for (int i = 0; i < n; i++)
	{
		TqUnscheduled whole = waiting[i];

		is_free[i] = false;
		if (waiting[i].stripe >= 0)
		{
			stripes_met += count_down(&stripes, &waiting[i], true, NULL);
			if (i + 1 < n && waiting[i + 1].task == waiting[i].task)
				continue;
			whole.unmet = stripes_met;
			stripes_met = 0;
		}
		if (whole.unmet > 0)
			is_free[i] = count_down(&tasks, &whole, may_free[i],
									&next_run[i]) &&
						 may_free[i];
	}
	tq_table_close(stripes.table);
	tq_table_close(tasks.table);
}

/*
 * Returns those of these tasks and of their dependents that are unscheduled,
 * by id.
 */
int64 *
tq_dependencies_unscheduled(const int64 *tasks, int n, int *found)
{
	return tq_spi_run_ids(&unscheduled_near,
						  TQ_VALUES(tq_array_int64(tasks, n)), found);
}

/*
 * Returns these tasks and their transitive dependents, by id, as far as they
 * are reached through tasks that are unscheduled, failed or exception; with
 * completed_too through completed ones as well, and those that are pending or
 * running behind all of these.
 */
int64 *
tq_dependencies_downstream(const int64 *tasks, int n, bool completed_too,
						   int *found)
{
	Datum values[2] = {tq_array_int64(tasks, n), BoolGetDatum(completed_too)};

	return tq_spi_run_ids(&downstream, values, found);
}

/*
 * Returns those of these tasks that are unscheduled, and the unscheduled tasks
 * that they wait for, by id.
 */
int64 *
tq_dependencies_upstream(const int64 *tasks, int n, int *found)
{
	return tq_spi_run_ids(&upstream, TQ_VALUES(tq_array_int64(tasks, n)),
						  found);
}

/*
 * Returns the unscheduled tasks that cannot go on as long as these are not
 * completed, by id; except those given, and what waits only for those.
 */
int64 *
tq_dependencies_doomed(const int64 *tasks, int n, const int64 *except,
					   int nexcept, int *found)
{
	return tq_spi_run_ids(&doomed,
						  TQ_VALUES(tq_array_int64(tasks, n),
									tq_array_int64(except, nexcept)),
						  found);
}

static void
read_edge(TupleTableSlot *slot, void *edge)
{
	*(TqDependency *) edge = (TqDependency){.required = tq_row_int64(slot, 1),
											.dependent = tq_row_int64(slot, 2),
											.from_run = tq_row_int16(slot, 3),
											.is_foreign = tq_row_bool(slot, 4),
											.is_settled = tq_row_bool(slot,
																	  5)};
}

/* Returns the dependencies of these tasks, by dependent and required task. */
TqDependency *
tq_dependencies_of(const int64 *tasks, int n, int *found)
{
	return tq_spi_read_all(&edges_to, TQ_VALUES(tq_array_int64(tasks, n)),
						   read_edge, sizeof(TqDependency), found);
}

/* Writes from_run of these dependencies. */
void
tq_dependencies_set_from_run(const TqDependency *edges, int n)
{
	Datum values[3];

	if (n == 0)
		return;
	TQ_COLUMN(edges, n, int64, tq_array_int64, required, values[0]);
	TQ_COLUMN(edges, n, int64, tq_array_int64, dependent, values[1]);
	TQ_COLUMN(edges, n, int32, tq_array_int32, from_run, values[2]);
	tq_spi_run(&set_from_run, values, NULL);
}

/* Returns the unscheduled dependents of these tasks, by id. */
int64 *
tq_dependencies_dependents(const int64 *tasks, int n, int *found)
{
	return tq_spi_run_ids(&dependents, TQ_VALUES(tq_array_int64(tasks, n)),
						  found);
}

/* Returns those of `tasks` that are required by one of `by`, by id. */
int64 *
tq_dependencies_required(const int64 *tasks, int n, const int64 *by, int nby,
						 int *found)
{
	Datum values[2] = {tq_array_int64(tasks, n), tq_array_int64(by, nby)};

	return tq_spi_run_ids(&required_by, values, found);
}

/*
 * Inserts the stripes that count at least one dependency; returns their
 * number.
 */
static int
insert_stripes(int64 task, const int64 *unmet, int n)
{
	TqTable *table = tq_table_open(&unmet_table);
	int counts[STRIPES] = {0};
	int used = 0;

	for (int i = 0; i < n; i++)
		counts[stripe_of(unmet[i], STRIPES)]++;
	for (int stripe = 0; stripe < STRIPES; stripe++)
	{
		TupleTableSlot *slot;

		if (counts[stripe] == 0)
			continue;
		slot = tq_table_new_row(table);
		tq_put_int64(slot, Anum_counter_task, task);
		tq_put_int16(slot, Anum_counter_stripe, stripe);
		tq_put_int32(slot, Anum_counter_unmet, counts[stripe]);
		used++;
	}
	tq_table_close(table);
	return used;
}

/*
 * Inserts a task into unscheduled, with the ids of the required tasks whose
 * dependencies are unmet, and the number of the run that it gets then.
 */
void
tq_unscheduled_insert(int64 task, const int64 *unmet, int n, bool all_resolved,
					  int next_run)
{
	bool is_striped = n >= STRIPED_FROM;
	int count = is_striped ? insert_stripes(task, unmet, n) : n;
	TqTable *table = tq_table_open(&unscheduled_table);
	TupleTableSlot *slot = tq_table_new_row(table);

	tq_put_int64(slot, Anum_unscheduled_task, task);
	tq_put_int32(slot, Anum_unscheduled_unmet, count);
	tq_put_int16(slot, Anum_unscheduled_stripes, is_striped ? STRIPES : 0);
	tq_put_bool(slot, Anum_unscheduled_all_resolved, all_resolved);
	tq_put_unless(slot, Anum_unscheduled_next_run, Int16GetDatum(next_run),
				  next_run == 0);
	tq_table_close(table);
}

/*
 * Counts further unmet dependencies of a task, on these tasks.  The caller has
 * locked its row in unscheduled; a stripe may be counted down meanwhile.
 */
void
tq_unscheduled_count_up(int64 task, const int64 *unmet, int n)
{
	if (n > 0)
		tq_spi_run(&count_up,
				   TQ_VALUES(Int64GetDatum(task), tq_array_int64(unmet, n)),
				   NULL);
}

/* Deletes the stripes that are left of tasks that are not unscheduled. */
void
tq_unscheduled_clear(const int64 *tasks, int n)
{
	tq_spi_run(&delete_stripes, TQ_VALUES(tq_array_int64(tasks, n)), NULL);
}

/*
 * Locks those of these tasks that are still unscheduled, in order of their
 * ids, with their stripes.
 */
TqUnscheduled *
tq_unscheduled_lock(const int64 *tasks, int n, int *found)
{
	return tq_spi_read_all(&lock_unscheduled,
						   TQ_VALUES(tq_array_int64(tasks, n)),
						   dependency_read_waiting, sizeof(TqUnscheduled),
						   found);
}

/*
 * Like tq_unscheduled_lock(), but skips tasks that another session has locked,
 * wholly or in part.
 */
TqUnscheduled *
tq_unscheduled_try_lock(const int64 *tasks, int n, int *found)
{
	return tq_spi_read_all(&try_lock_unscheduled,
						   TQ_VALUES(tq_array_int64(tasks, n)),
						   dependency_read_waiting, sizeof(TqUnscheduled),
						   found);
}

/*
 * Writes the rows of these tasks again, so that a session that has read one of
 * the tasks before cannot lock its row as it was.
 */
void
tq_unscheduled_touch(const int64 *tasks, int n)
{
	if (n > 0)
		tq_spi_run(&touch_unscheduled, TQ_VALUES(tq_array_int64(tasks, n)),
				   NULL);
}

/* Deletes the rows of these tasks from unscheduled. */
void
tq_unscheduled_delete(const int64 *tasks, int n)
{
	if (n > 0)
		tq_spi_run(&delete_unscheduled, TQ_VALUES(tq_array_int64(tasks, n)),
				   NULL);
}

/*
 * Returns those of these tasks, in order of id, on which an unresolved task
 * depends, by id.  A task without a row here, as most are, costs no look-up.
 */
int64 *
tq_dependencies_needed(const int64 *required, int n, int *found)
{
	bool *marked = palloc0(sizeof(bool) * Max(n, 1));
	int64 *some = palloc(sizeof(int64) * Max(n, 1));
	int nsome = 0;

	tq_scan_mark(&dependency_table, &dependency_by_key, required, n, marked);
	tq_scan_mark(&foreign_table, &foreign_by_key, required, n, marked);
	for (int i = 0; i < n; i++)
	{
		if (marked[i])
			some[nsome++] = required[i];
	}
	*found = 0;
	if (nsome == 0)
		return some;
	return tq_spi_run_ids(&needed, TQ_VALUES(tq_array_int64(some, nsome)),
						  found);
}

/*
 * ---- foreign dependencies: who calls, lifecycle/foreign_dependency.c says ----
 */

/* Inserts foreign dependencies of a new task. */
void
tq_foreign_insert(const TqTask *task, const TqDependency *edges, int n)
{
	Datum values[6];

	if (n == 0)
		return;
	TQ_COLUMN(edges, n, int64, tq_array_int64, required, values[0]);
	TQ_COLUMN(edges, n, int64, tq_array_int64, dependent, values[1]);
	TQ_COLUMN(edges, n, int32, tq_array_int32, from_run, values[2]);
	TQ_COLUMN(edges, n, int32, tq_array_int32, is_settled, values[3]);
	values[4] = BoolGetDatum(task->all_resolved);
	values[5] = Int32GetDatum(task->queue);
	tq_spi_run(&foreign_insert, values, NULL);
	tq_count(TQ_COUNTED_QUEUE, task->queue, TQ_QUEUE_FOREIGN, n);
}

/* Locks the foreign ones of these dependencies; waits for other sessions. */
void
tq_foreign_lock(const TqDependency *edges, int n)
{
	Datum values[2];

	TQ_COLUMN(edges, n, int64, tq_array_int64, required, values[0]);
	TQ_COLUMN(edges, n, int64, tq_array_int64, dependent, values[1]);
	tq_spi_run(&foreign_lock, values, NULL);
	tq_spi_free_result();
}

/* Returns from_run of the mark of a required task; -1 if it has none. */
int
tq_foreign_marked(int64 required)
{
	return (int) tq_spi_run_int64(&foreign_marked,
								  TQ_VALUES(Int64GetDatum(required)), -1);
}

/* Marks a required task, which the caller has locked. */
void
tq_foreign_mark(int64 required)
{
	tq_spi_run(&foreign_mark, TQ_VALUES(Int64GetDatum(required)), NULL);
}

/*
 * Notes in the marks of the tasks of these runs that what they waited for has
 * failed, so that their foreign dependents are canceled, too.
 */
void
tq_foreign_doom(const TqRun *runs, int n)
{
	Datum values[2];

	if (n == 0)
		return;
	TQ_COLUMN(runs, n, int64, tq_array_int64, task, values[0]);
	TQ_COLUMN(runs, n, int32, tq_array_int32, run_id, values[1]);
	tq_spi_run(&foreign_doom, values, NULL);
}

static void
read_stripe(TupleTableSlot *slot, void *waiting)
{
	*(TqUnscheduled *) waiting = (TqUnscheduled){.task = tq_row_int64(slot, 1),
												 .stripe = tq_row_int32(slot,
																		2),
												 .unmet = 1};
}

#define MET_VALUES(met)                                                       \
	Int64GetDatum((met)->required), Int32GetDatum((met)->completed),          \
		Int32GetDatum((met)->final)

/*
 * Settles up to max dependencies that are met and whose dependents are
 * unscheduled, and returns those, locked, to be counted down by the caller.
 * Skips what another session has locked; *taken is how many were looked at.
 */
TqUnscheduled *
tq_foreign_take(const TqForeignMet *met, int max, int *taken, int *found)
{
	int64 *ids = tq_spi_run_ids(&foreign_waiting,
								TQ_VALUES(MET_VALUES(met), Int32GetDatum(max)),
								taken);
	TqUnscheduled *locked;
	Datum values[2] = {Int64GetDatum(met->required)};
	int n;

	*found = 0;
	if (*taken == 0)
		return NULL;
	locked = tq_unscheduled_try_lock(ids, *taken, &n);
	for (int i = 0; i < n; i++)
		ids[i] = locked[i].task;
	values[1] = tq_array_int64(ids, n);
	tq_spi_run(&foreign_settle, values, NULL);
	return tq_spi_read_all(&foreign_stripes, values, read_stripe,
						   sizeof(TqUnscheduled), found);
}

/*
 * Settles up to max dependencies that are met and whose dependents are not
 * unscheduled; returns how many were looked at.  A repair that makes a dependent
 * unscheduled again has its dependencies locked: the second statement sees it.
 */
int
tq_foreign_take_idle(const TqForeignMet *met, int max)
{
	int n;
	int64 *ids = tq_spi_run_ids(&foreign_idle,
								TQ_VALUES(MET_VALUES(met), Int32GetDatum(max)),
								&n);

	if (n > 0)
		tq_spi_run(&foreign_settle_idle,
				   TQ_VALUES(Int64GetDatum(met->required),
							 tq_array_int64(ids, n)),
				   NULL);
	return n;
}

/*
 * Locks and returns up to max unscheduled dependents that wait for the completion
 * of a task whose last run has failed; skips what another session has locked.
 */
int64 *
tq_foreign_take_doomed(const TqForeignMet *met, int max, int *found)
{
	return tq_spi_run_ids(&foreign_doomed,
						  TQ_VALUES(MET_VALUES(met), Int32GetDatum(max)),
						  found);
}

/* Returns whether a dependency is met that is not settled. */
bool
tq_foreign_is_met(const TqForeignMet *met)
{
	return tq_spi_exists(&foreign_is_met, TQ_VALUES(MET_VALUES(met)));
}

/* Deletes up to max dependencies on a task that is gone; returns how many. */
int64
tq_foreign_delete(int64 required, int max)
{
	return tq_count_changed_rows(TQ_QUEUE_FOREIGN, -1, &foreign_delete,
								 TQ_VALUES(Int64GetDatum(required),
										   Int32GetDatum(max)));
}
