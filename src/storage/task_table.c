/*
 * task_table.c
 *	  Rows of tq_internal.task: definitions of tasks.
 *
 * A row is written once.  Only two columns are updated: the priority,
 * and the effective deadline (due), which a policy makes earlier when the task
 * is scheduled.  A default is stored as NULL and read as the default, so that
 * the row of a plain task is narrow.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "datatype/timestamp.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

#include "../core/types.h"
#include "../util/catalog.h"
#include "../util/slugid.h"
#include "../util/spi.h"
#include "columns.h"
#include "group_table.h"
#include "index_scan.h"
#include "queue_table.h"
#include "table.h"
#include "task_table.h"

#define BRIEF                                                                                     \
	"t.id, t.created, t.deadline, t.expires, t.group_id, t.queue, t.priority, t.retries,"         \
	" t.all_resolved, t.task_id, g.task_group_id, q.task_queue_id, t.scheduler_id, t.project_id," \
	" t.effective_deadline, t.delay, t.policy"
#define WHOLE                                                                 \
	BRIEF                                                                     \
	", t.dependencies, t.routes, t.scopes, t.payload, t.metadata, t.tags, t.extra"
#define JOINED                                                                \
	" JOIN tq_internal.queue q ON q.id = t.queue LEFT JOIN tq_internal.task_group g ON g.id = t.group_id"

static TqStatement whole_by_slug =
	TQ_STATEMENT("SELECT " WHOLE " FROM tq_internal.task t" JOINED
				 " WHERE t.task_id = $1",
				 TQ_SLUGID);

static TqStatement brief_by_slugs =
	TQ_STATEMENT("SELECT " BRIEF
				 " FROM unnest($1) WITH ORDINALITY AS s (slug, place)"
				 " JOIN tq_internal.task t ON t.task_id = s.slug" JOINED
				 " ORDER BY s.place",
				 TQ_SLUGIDS);

static TqStatement whole_by_slugs =
	TQ_STATEMENT("SELECT " WHOLE
				 " FROM unnest($1) WITH ORDINALITY AS s (slug, place)"
				 " JOIN tq_internal.task t ON t.task_id = s.slug" JOINED
				 " ORDER BY s.place",
				 TQ_SLUGIDS);

static TqStatement brief_by_ids =
	TQ_STATEMENT("SELECT " BRIEF
				 " FROM unnest($1) WITH ORDINALITY AS s (id, place)"
				 " JOIN tq_internal.task t ON t.id = s.id" JOINED
				 " ORDER BY s.place",
				 INT8ARRAYOID);

static TqStatement for_messages =
	TQ_STATEMENT("SELECT " BRIEF ", t.routes, t.tags FROM unnest($1) AS s (id)"
				 " JOIN tq_internal.task t ON t.id = s.id" JOINED
				 " ORDER BY t.id",
				 INT8ARRAYOID);

static TqStatement whole_of_group = TQ_STATEMENT(
	"SELECT " WHOLE " FROM ("
	"(SELECT id FROM tq_internal.task WHERE group_id = $1 AND task_id > $3 ORDER BY task_id LIMIT $4)"
	" UNION ALL"
	" (SELECT id FROM tq_internal.task WHERE task_id = $2 AND group_id IS NULL"
	" AND task_id > $3)) AS s"
	" JOIN tq_internal.task t ON t.id = s.id" JOINED
	" ORDER BY t.task_id LIMIT $4",
	INT8OID, TQ_SLUGID, TQ_SLUGID, INT4OID);

static TqStatement whole_dependent = TQ_STATEMENT(
	"SELECT " WHOLE
	" FROM tq_internal.dependency e JOIN tq_internal.task t ON t.id = e.dependent" JOINED
	" WHERE e.required = $1 AND t.expires > $2 AND t.task_id > $3"
	" ORDER BY t.task_id LIMIT $4",
	INT8OID, TIMESTAMPTZOID, TQ_SLUGID, INT4OID);

static TqStatement set_due = TQ_STATEMENT(
	"UPDATE tq_internal.task SET effective_deadline = x.due FROM unnest($1, $2) AS x (id, due)"
	" WHERE task.id = x.id",
	INT8ARRAYOID, TIMESTAMPTZARRAYOID);

static TqStatement set_priority = TQ_STATEMENT(
	"UPDATE tq_internal.task SET priority = $2 WHERE id = ANY ($1)",
	INT8ARRAYOID, INT2OID);

static TqStatement delete_tasks = TQ_STATEMENT(
	"WITH gone AS (DELETE FROM tq_internal.task WHERE id = ANY ($1) RETURNING id, dependencies),"
	" r AS (DELETE FROM tq_internal.run WHERE task = ANY ($1)),"
	" b AS (DELETE FROM tq_internal.run_detail WHERE task = ANY ($1)),"
	" d AS (DELETE FROM tq_internal.delayed WHERE task = ANY ($1)),"
	" u AS (DELETE FROM tq_internal.unscheduled WHERE task = ANY ($1)),"
	" m AS (DELETE FROM tq_internal.dependency_counter WHERE task = ANY ($1)),"
	" p AS (DELETE FROM tq_internal.postponed WHERE task = ANY ($1)),"
	" e AS (DELETE FROM tq_internal.dependency WHERE required = ANY ($1)),"
	" f AS (DELETE FROM tq_internal.dependency USING (SELECT t.id AS required, gone.id AS dependent"
	" FROM gone CROSS JOIN LATERAL unnest(gone.dependencies) AS s (slug)"
	" JOIN tq_internal.task t ON t.task_id = s.slug WHERE t.id <> ALL ($1)) AS x"
	" WHERE dependency.required = x.required AND dependency.dependent = x.dependent)"
	" SELECT count(*) FROM gone",
	INT8ARRAYOID);

static TqRelation task_table = TQ_RELATION("task");
static TqRelation task_by_id = TQ_RELATION("task_pkey");
static TqRelation task_by_slug = TQ_RELATION("task_task_id_key");

TQ_NUMBERS(TQ_TASK_COLUMNS, task);

/* ---- through the access methods ---- */

/* Sets a text column, or NULL if the text is the default. */
static void
put_text(TupleTableSlot *slot, int column, const char *text,
		 const char *unless)
{
	if (strcmp(text, unless) == 0)
		tq_put_null(slot, column);
	else
		tq_put(slot, column, CStringGetTextDatum(text));
}

/* Sets all columns of a row of tq_internal.task. */
static void
put_task(TupleTableSlot *slot, const TqTask *row)
{
	TQ_TASK_TIMES(TQ_PUT, task);
	tq_put_unless(slot,
				  Anum_task_effective_deadline,
				  TimestampTzGetDatum(row->deadline),
				  row->deadline == row->defined_deadline);
	TQ_TASK_CORE(TQ_PUT, task);
	put_text(slot,
			 Anum_task_scheduler_id,
			 row->scheduler_id,
			 TQ_DEFAULT_SCHEDULER);
	put_text(slot, Anum_task_project_id, row->project_id, TQ_DEFAULT_PROJECT);
	if (row->ndependencies == 0)
		tq_put_null(slot, Anum_task_dependencies);
	else
		tq_put(slot,
			   Anum_task_dependencies,
			   tq_array_slugid(row->dependencies, row->ndependencies));
	TQ_TASK_LARGE(TQ_PUT, task);
}

/*
 * Inserts these tasks except those whose task_id exists already; waits, in
 * this order, for other sessions that are inserting one of these ids.  Sets
 * is_new[] for those that were inserted.  A task_id that this call generated
 * cannot exist, so it is not looked up.
 */
void
tq_tasks_insert(const TqTask *const *tasks, int n, bool *is_new)
{
	TqTable *table = tq_table_open(&task_table);

	for (int done = 0; done < n; done += TQ_TABLE_BATCH)
	{
		int some = Min(n - done, TQ_TABLE_BATCH);
		bool has_own_id = true;

		for (int i = 0; i < some; i++)
		{
			put_task(tq_table_new_row(table), tasks[done + i]);
			has_own_id = has_own_id && tasks[done + i]->has_own_id;
			is_new[done + i] = true;
		}
		if (has_own_id)
			tq_table_flush(table);
		else
			tq_table_flush_new(table, &task_by_slug, is_new + done);
	}
	tq_table_close(table);
}

/* Returns the effective deadline. */
static TimestampTz
read_deadline(TupleTableSlot *slot)
{
	TimestampTz due = tq_row_int64(slot, Anum_task_effective_deadline);

	return due != 0 ? due : tq_row_int64(slot, Anum_task_deadline);
}

/* Reads the columns on which decisions about a task depend; no names. */
static void
read_core(TupleTableSlot *slot, TqTask *row)
{
	slot_getsomeattrs(slot, Anum_task_task_id);
	TQ_TASK_TIMES(TQ_GET, task);
	row->deadline = read_deadline(slot);
	TQ_TASK_CORE(TQ_GET, task);
}

/*
 * Reads tasks by task_id, in place, without names.  Skips entries that already
 * have an id; entries that are not found keep the id 0.
 */
void
tq_tasks_find(TqTask *tasks, int n)
{
	TqScan *scan = tq_scan_open(&task_table, &task_by_slug, 1, NULL);

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].id != 0)
			continue;
		if (tq_scan_find(scan, PointerGetDatum(&tasks[i].task_id), 0, 0))
			read_core(scan->slot, &tasks[i]);
	}
	tq_scan_close(scan);
}

static char *
read_text(TupleTableSlot *slot, int column, const char *if_null)
{
	bool isnull;
	Datum value = tq_row_field(slot, column, &isnull);

	return isnull ? pstrdup(if_null) : TextDatumGetCString(value);
}

/*
 * Returns a task without payload, metadata and other large columns, or NULL.
 */
TqTask *
tq_task_by_slug(const TqSlug *slug)
{
	TqTask *task = palloc0(sizeof(TqTask));
	TqScan *scan = tq_scan_open(&task_table, &task_by_slug, 1, NULL);

	task->task_id = *slug;
	if (tq_scan_find(scan, PointerGetDatum(slug), 0, 0))
	{
		read_core(scan->slot, task);
		task->scheduler_id = read_text(scan->slot,
									   Anum_task_scheduler_id,
									   TQ_DEFAULT_SCHEDULER);
		task->project_id =
			read_text(scan->slot, Anum_task_project_id, TQ_DEFAULT_PROJECT);
		task->queue_name = tq_queue_name(task->queue);
		task->group_slug = task->group_id == 0
							   ? *slug
							   : tq_group_slug(task->group_id,
											   scan->registered);
	}
	tq_scan_close(scan);
	return task->id == 0 ? NULL : task;
}

/*
 * Reads a task by task_id, ignoring the id that it has; returns false if there
 * is none.
 */
bool
tq_task_find(TqTask *task)
{
	task->id = 0;
	tq_tasks_find(task, 1);
	return task->id != 0;
}

/*
 * Reads, in place, those of these tasks whose id is known; sets the id of
 * those that do not exist to 0.  Returns the number of tasks that were found.
 */
int
tq_tasks_find_by_id(TqTask *tasks, int n)
{
	TqScan *scan = tq_task_scan_begin(NULL);
	int found = 0;

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].id == 0)
			continue;
		tq_scan_seek(scan, Int64GetDatum(tasks[i].id), 0, 0);
		tasks[i].id = 0;
		if (!tq_scan_next(scan))
			continue;
		read_core(scan->slot, &tasks[i]);
		found++;
	}
	tq_scan_close(scan);
	return found;
}

/*
 * Begins a scan for tasks by id with this snapshot; with SnapshotSelf, for
 * their latest versions; with NULL, by the snapshot of the call.
 */
TqScan *
tq_task_scan_begin(Snapshot snapshot)
{
	return tq_scan_open(&task_table, &task_by_id, 1, snapshot);
}

/*
 * Finds a task by id; returns false if there is none.  A concurrent change of
 * the priority may replace the row after the scan has found the index entry of
 * the old version, which is dead when the scan reads it.  So a task that is
 * not found is looked up once more.
 */
static bool
find_by_id(TqScan *scan, int64 id)
{
	for (int tries = 0; tries < 2; tries++)
	{
		if (tq_scan_find(scan, Int64GetDatum(id), 0, 0))
			return true;
	}
	return false;
}

/*
 * Reads a task by id, without names, with a scan that has been begun; returns
 * false if there is none.
 */
bool
tq_task_core(TqScan *scan, int64 id, TqTask *task)
{
	memset(task, 0, sizeof(*task));
	if (!find_by_id(scan, id))
		return false;
	read_core(scan->slot, task);
	return true;
}

/*
 * Returns those of these tasks that exist, in the order of ids[], without
 * names.
 */
TqTask *
tq_tasks_core(const int64 *ids, int n, int *found)
{
	TqTask *tasks = palloc(sizeof(TqTask) * Max(n, 1));
	TqScan *scan = tq_task_scan_begin(SnapshotSelf);

	*found = 0;
	for (int i = 0; i < n; i++)
		*found += tq_task_core(scan, ids[i], &tasks[*found]);
	tq_scan_close(scan);
	return tasks;
}

/* Returns the current priority of a task. */
int
tq_task_priority(int64 id)
{
	TqScan *scan = tq_task_scan_begin(SnapshotSelf);
	int priority = find_by_id(scan, id)
					   ? tq_row_int16(scan->slot, Anum_task_priority)
					   : TQ_PRIORITY_LOWEST;

	tq_scan_close(scan);
	return priority;
}

/*
 * Reads the queue and priority of a task, by which its first run is found in
 * pending; returns false if there is no such task.
 */
bool
tq_task_for_order(TqScan *scan, int64 id, int32 *queue, int *priority)
{
	if (!find_by_id(scan, id))
		return false;
	*queue = tq_row_int32(scan->slot, Anum_task_queue);
	*priority = tq_row_int16(scan->slot, Anum_task_priority);
	return true;
}

/*
 * Reads what a claim needs of a task, except the payload, which may be large;
 * returns false if there is no such task.
 */
bool
tq_task_for_claim(TqScan *scan, int64 id, TqClaimed *claimed)
{
	if (!find_by_id(scan, id))
		return false;
	slot_getsomeattrs(scan->slot, Anum_task_task_id);
	claimed->task = id;
	claimed->deadline = read_deadline(scan->slot);
	claimed->policy = tq_row_int32(scan->slot, Anum_task_policy);
	claimed->task_id = tq_row_slug(scan->slot, Anum_task_task_id);
	return true;
}

/*
 * Returns a copy of the payload of the task that tq_task_for_claim() found
 * last.
 */
Jsonb *
tq_task_payload_for_claim(TqScan *scan)
{
	bool isnull;
	Datum payload = tq_row_field(scan->slot, Anum_task_payload, &isnull);

	return (Jsonb *) PG_DETOAST_DATUM_COPY(payload);
}

/* ---- a task that is created again ---- */

/* State for comparing tasks with the stored definitions. */
struct TqStored
{
	TqScan *scan;
	TupleTableSlot *given; /* the columns of the task that is compared */
	MemoryContext scratch;
};

/* Begins comparisons with the definitions that are committed by now. */
TqStored *
tq_stored_begin(void)
{
	TqStored *stored = palloc(sizeof(TqStored));

	stored->scan = tq_scan_open(&task_table, &task_by_slug, 1, NULL);
	stored->given =
		MakeSingleTupleTableSlot(RelationGetDescr(stored->scan->table->rel),
								 &TTSOpsVirtual);
	stored->scratch = AllocSetContextCreate(CurrentMemoryContext,
											"tq stored definition",
											ALLOCSET_DEFAULT_SIZES);
	return stored;
}

/* Ends comparisons. */
void
tq_stored_end(TqStored *stored)
{
	MemoryContextDelete(stored->scratch);
	ExecDropSingleTupleTableSlot(stored->given);
	tq_scan_close(stored->scan);
	pfree(stored);
}

/*
 * Returns whether a column does not belong to the definition, or is not
 * compared.
 */
static bool
is_left_out(int column, bool with_times)
{
	switch (column)
	{
		case Anum_task_id:
		case Anum_task_effective_deadline:
			return true;
		case Anum_task_created:
		case Anum_task_deadline:
		case Anum_task_expires:
			return !with_times;
		default:
			return false;
	}
}

/*
 * Returns whether the columns of two rows are equal, except those that are
 * left out.
 */
static bool
has_same_columns(TupleTableSlot *stored, TupleTableSlot *given,
				 bool with_times)
{
	slot_getsomeattrs(stored, Natts_task);
	for (int column = Anum_task_id; column <= Natts_task; column++)
	{
		int i = column - 1;
		Form_pg_attribute attribute = TupleDescAttr(given->tts_tupleDescriptor,
													i);

		if (is_left_out(column, with_times))
			continue;
		if (stored->tts_isnull[i] != given->tts_isnull[i])
			return false;
		if (!stored->tts_isnull[i] && !datum_image_eq(stored->tts_values[i],
													  given->tts_values[i],
													  attribute->attbyval,
													  attribute->attlen))
			return false;
	}
	return true;
}

/*
 * Compares a task with the stored one of the same task_id, byte by byte, its
 * times only with with_times.  If they are the same, `task` receives the
 * columns of the stored one.  If they differ, the definitions may still be
 * equivalent.
 */
TqMatch
tq_stored_match(TqStored *stored, TqTask *task, bool with_times)
{
	TupleTableSlot *slot = stored->scan->slot;
	MemoryContext outer;
	bool is_same;

	if (!tq_scan_find(stored->scan, PointerGetDatum(&task->task_id), 0, 0))
		return TQ_MATCH_NONE;
	outer = MemoryContextSwitchTo(stored->scratch);
	ExecStoreAllNullTuple(stored->given);
	put_task(stored->given, task);
	is_same = has_same_columns(slot, stored->given, with_times);
	MemoryContextSwitchTo(outer);
	ExecClearTuple(stored->given);
	MemoryContextReset(stored->scratch);
	if (!is_same)
		return TQ_MATCH_DIFFERS;
	read_core(slot, task);
	return TQ_MATCH_SAME;
}

/* ---- by statements ---- */

/* Reads the columns of BRIEF. */
static void
read_brief(uint64 row, TqTask *task)
{
	bool isnull;

	task->id = tq_spi_int64(row, 1, 0);
	task->created = tq_spi_time(row, 2);
	task->deadline = tq_spi_time(row, 3);
	task->expires = tq_spi_time(row, 4);
	task->group_id = tq_spi_int64(row, 5, 0);
	task->queue = tq_spi_int32(row, 6, 0);
	task->priority = tq_spi_int16(row, 7, 0);
	task->retries = tq_spi_int16(row, 8, 0);
	task->all_resolved = tq_spi_bool(row, 9);
	task->task_id = tq_spi_slug(row, 10);
	(void) tq_spi_field(row, 11, &isnull);
	task->group_slug = isnull ? task->task_id : tq_spi_slug(row, 11);
	task->queue_name = tq_spi_text(row, 12);
	task->scheduler_id = tq_spi_text(row, 13);
	if (task->scheduler_id == NULL)
		task->scheduler_id = pstrdup(TQ_DEFAULT_SCHEDULER);
	task->project_id = tq_spi_text(row, 14);
	if (task->project_id == NULL)
		task->project_id = pstrdup(TQ_DEFAULT_PROJECT);
	task->defined_deadline = task->deadline;
	if (tq_spi_time(row, 15) != 0)
		task->deadline = tq_spi_time(row, 15);
	task->delay = tq_spi_int64(row, 16, 0);
	task->policy = tq_spi_int32(row, 17, 0);
}

/* Reads the array of dependencies into a task; leaves it empty for NULL. */
static void
read_dependencies(uint64 row, int column, TqTask *task)
{
	bool isnull;
	Datum value = tq_spi_field(row, column, &isnull);
	Datum *elements;

	if (isnull)
		return;
	deconstruct_array(DatumGetArrayTypeP(value),
					  tq_catalog_slugid_type(),
					  TQ_SLUG_BYTES,
					  false,
					  TYPALIGN_CHAR,
					  &elements,
					  NULL,
					  &task->ndependencies);
	task->dependencies = palloc(sizeof(TqSlug) * Max(task->ndependencies, 1));
	for (int i = 0; i < task->ndependencies; i++)
		task->dependencies[i] = *DatumGetTqSlugP(elements[i]);
}

static ArrayType *
read_array(uint64 row, int column)
{
	bool isnull;
	Datum value = tq_spi_field(row, column, &isnull);

	return isnull ? NULL : DatumGetArrayTypePCopy(value);
}

/*
 * Returns a jsonb as it is stored, perhaps compressed or out of line; or NULL.
 */
static Jsonb *
read_stored(uint64 row, int column)
{
	bool isnull;
	Datum value = tq_spi_field(row, column, &isnull);

	return isnull ? NULL
				  : (Jsonb *) DatumGetPointer(datumCopy(value, false, -1));
}

/* Reads the columns that WHOLE has in addition to BRIEF. */
static void
read_rest(uint64 row, TqTask *task)
{
	read_dependencies(row, 18, task);
	task->routes = read_array(row, 19);
	task->scopes = read_array(row, 20);
	task->payload = tq_spi_jsonb(row, 21);
	task->metadata = tq_spi_jsonb(row, 22);
	task->tags = tq_spi_jsonb(row, 23);
	task->extra = tq_spi_jsonb(row, 24);
}

/* Runs one of the SELECT statements above and reads all its rows. */
static TqTask *
read_tasks(TqStatement *statement, const Datum *values, bool whole, int *found)
{
	TqTask *tasks;

	*found = (int) tq_spi_run(statement, values, NULL);
	tasks = palloc0(sizeof(TqTask) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
	{
		read_brief(i, &tasks[i]);
		if (whole)
			read_rest(i, &tasks[i]);
	}
	tq_spi_free_result();
	return tasks;
}

/* Returns a task with its whole definition, or NULL. */
TqTask *
tq_task_whole_by_slug(const TqSlug *slug)
{
	Datum values[1] = {PointerGetDatum(slug)};
	int found;
	TqTask *task = read_tasks(&whole_by_slug, values, true, &found);

	return found == 0 ? NULL : task;
}

/* Returns those of these tasks that exist, in the order of slugs[]. */
TqTask *
tq_tasks_by_slug(const TqSlug *slugs, int n, bool whole, int *found)
{
	Datum values[1] = {tq_array_slugid(slugs, n)};

	return read_tasks(whole ? &whole_by_slugs : &brief_by_slugs,
					  values,
					  whole,
					  found);
}

/*
 * Returns those of these tasks that exist, in the order of ids[], with names.
 */
TqTask *
tq_tasks_by_id(const int64 *ids, int n, int *found)
{
	Datum values[1] = {tq_array_int64(ids, n)};

	return read_tasks(&brief_by_ids, values, false, found);
}

/*
 * Returns these tasks by id, with what their messages contain: routes, and
 * tags as they are stored, so that a thousand tasks with large tags fit into
 * memory.
 */
TqTask *
tq_tasks_for_messages(const int64 *ids, int n, int *found)
{
	Datum values[1] = {tq_array_int64(ids, n)};
	TqTask *tasks;

	*found = (int) tq_spi_run(&for_messages, values, NULL);
	tasks = palloc0(sizeof(TqTask) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
	{
		read_brief(i, &tasks[i]);
		tasks[i].routes = read_array(i, 18);
		tasks[i].tags = read_stored(i, 19);
	}
	tq_spi_free_result();
	return tasks;
}

/*
 * Returns a page of the tasks of a group, by task_id, beginning after the id
 * `after`.
 */
TqTask *
tq_tasks_of_group(int64 group_id, const TqSlug *group, const TqSlug *after,
				  int max, int *found)
{
	Datum values[4] = {Int64GetDatum(group_id),
					   PointerGetDatum(group),
					   PointerGetDatum(after),
					   Int32GetDatum(max)};

	return read_tasks(&whole_of_group, values, true, found);
}

/*
 * Returns a page of the dependents of a task that have not expired, by
 * task_id, beginning after the id `after`.
 */
TqTask *
tq_tasks_dependent(int64 required, TimestampTz now, const TqSlug *after,
				   int max, int *found)
{
	Datum values[4] = {Int64GetDatum(required),
					   TimestampTzGetDatum(now),
					   PointerGetDatum(after),
					   Int32GetDatum(max)};

	return read_tasks(&whole_dependent, values, true, found);
}

/* Sets the effective deadlines of tasks, whose current rows are locked. */
void
tq_tasks_set_due(const int64 *ids, const TimestampTz *due, int n)
{
	Datum values[2] = {tq_array_int64(ids, n), tq_array_time(due, n)};

	if (n > 0)
		tq_spi_run(&set_due, values, NULL);
}

/* Sets the priority of tasks, whose current rows are locked. */
void
tq_tasks_set_priority(const int64 *ids, int n, int priority)
{
	Datum values[2] = {tq_array_int64(ids, n), Int16GetDatum(priority)};

	if (n > 0)
		tq_spi_run(&set_priority, values, NULL);
}

/*
 * Deletes tasks and all their rows in other tables; returns how many tasks
 * existed.
 */
int
tq_tasks_delete(const int64 *ids, int n)
{
	Datum values[1] = {tq_array_int64(ids, n)};
	int deleted;

	tq_spi_run(&delete_tasks, values, NULL);
	deleted = (int) tq_spi_int64(0, 1, 0);
	tq_spi_free_result();
	return deleted;
}
