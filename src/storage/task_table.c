/*
 * task_table.c
 *	  Rows of tq_internal.task: definitions of tasks.
 *
 * A row is written once.  Only these columns are updated: the priority; the
 * effective deadline, which a policy makes earlier when the task is scheduled,
 * and a repair later; expires, which a repair moves with it; the payload, which
 * a policy drops; payload and delay, which the creation of another task with
 * the same unique key replaces.  A default is stored as NULL and read as the
 * default, so that the row of a plain task is narrow.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/sequence.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"

#include "columns.h"
#include "registry.h"
#include "tasks.h"

/* A page of a group, in which its own task has no group_id. */
static TqStatement ids_of_group = TQ_STATEMENT(
	"SELECT id FROM ("
	"(SELECT id, task_id FROM tq_internal.task WHERE group_id = $1 AND task_id > $3 ORDER BY task_id LIMIT $4)"
	" UNION ALL"
	" (SELECT id, task_id FROM tq_internal.task WHERE task_id = $2 AND group_id IS NULL"
	" AND task_id > $3)) AS s ORDER BY task_id LIMIT $4",
	INT8OID, TQ_SLUGID, TQ_SLUGID, INT4OID);

static TqStatement ids_dependent = TQ_STATEMENT(
	"SELECT t.id FROM (SELECT e.dependent FROM tq_internal.dependency e WHERE e.required = $1"
	" UNION ALL SELECT f.dependent FROM tq_internal.foreign_dependency f WHERE f.required = $1) AS e"
	" JOIN tq_internal.task t ON t.id = e.dependent WHERE t.expires > $2 AND t.task_id > $3"
	" ORDER BY t.task_id LIMIT $4",
	INT8OID, TIMESTAMPTZOID, TQ_SLUGID, INT4OID);

static TqStatement set_due = TQ_STATEMENT(
	"UPDATE tq_internal.task SET effective_deadline = x.due FROM unnest($1, $2) AS x (id, due)"
	" WHERE task.id = x.id",
	INT8ARRAYOID, TIMESTAMPTZARRAYOID);

static TqStatement set_expires = TQ_STATEMENT(
	"UPDATE tq_internal.task SET expires = x.expires FROM unnest($1, $2) AS x (id, expires)"
	" WHERE task.id = x.id",
	INT8ARRAYOID, TIMESTAMPTZARRAYOID);

static TqStatement add_dependencies = TQ_STATEMENT(
	"UPDATE tq_internal.task SET dependencies = dependencies || $2 WHERE id = $1",
	INT8OID, TQ_SLUGIDS);

static TqStatement set_priority = TQ_STATEMENT(
	"UPDATE tq_internal.task SET priority = $2, first_priority = coalesce(first_priority, priority)"
	" WHERE id = ANY ($1)",
	INT8ARRAYOID, INT2OID);

static TqStatement set_queue =
	TQ_STATEMENT("UPDATE tq_internal.task SET queue = $2 WHERE id = ANY ($1)",
				 INT8ARRAYOID, INT4OID);

static TqStatement drop_payload = TQ_STATEMENT(
	"UPDATE tq_internal.task SET payload = '{}' WHERE id = ANY ($1)",
	INT8ARRAYOID);

static TqStatement replace_task = TQ_STATEMENT(
	"UPDATE tq_internal.task SET payload = $2, delay = nullif($3, 0) WHERE id = $1",
	INT8OID, JSONBOID, INT8OID);

static TqStatement delete_tasks = TQ_STATEMENT(
	"WITH gone AS (DELETE FROM tq_internal.task WHERE id = ANY ($1) RETURNING id, dependencies),"
	" r AS (DELETE FROM tq_internal.run WHERE task = ANY ($1)),"
	" b AS (DELETE FROM tq_internal.run_detail WHERE task = ANY ($1)),"
	" d AS (DELETE FROM tq_internal.delayed WHERE task = ANY ($1)),"
	" u AS (DELETE FROM tq_internal.unscheduled WHERE task = ANY ($1)),"
	" m AS (DELETE FROM tq_internal.dependency_counter WHERE task = ANY ($1)),"
	" p AS (DELETE FROM tq_internal.postponed WHERE task = ANY ($1)),"
	" h AS (DELETE FROM tq_internal.failure WHERE task = ANY ($1)),"
	" k AS (DELETE FROM tq_internal.task_key WHERE task = ANY ($1)),"
	" g AS (INSERT INTO tq_internal.timer (due, kind, tasks) SELECT tq_internal.clock_now(), 7, array_agg(task)" /* TQ_TIMER_GATE */
	" FROM tq_internal.gate_member WHERE task = ANY ($1) HAVING count(*) > 0),"
	" s AS (INSERT INTO tq_internal.timer (due, kind, tasks) SELECT tq_internal.clock_now(), 9, array_agg(x.task)" /* TQ_TIMER_SETTLE */
	" FROM unnest($1) AS x (task) WHERE EXISTS (SELECT FROM tq_internal.foreign_dependency f WHERE f.required = x.task)"
	" HAVING count(*) > 0),"
	" e AS (DELETE FROM tq_internal.dependency WHERE required = ANY ($1)),"
	" x AS (SELECT t.id AS required, gone.id AS dependent"
	" FROM gone CROSS JOIN LATERAL unnest(gone.dependencies) AS s (slug)"
	" JOIN tq_internal.task t ON t.task_id = s.slug WHERE t.id <> ALL ($1)),"
	" f AS (DELETE FROM tq_internal.dependency USING x"
	" WHERE dependency.required = x.required AND dependency.dependent = x.dependent)"
	" SELECT count(*) FROM gone",
	INT8ARRAYOID);

static TqStatement watch_groups = TQ_STATEMENT(
	"INSERT INTO tq_internal.timer (due, kind, tasks) SELECT p.expires, 2, array_agg(p.id)" /* TQ_TIMER_EXPIRE */
	" FROM tq_internal.task_group p WHERE p.id = ANY ($1) GROUP BY p.expires",
	INT8ARRAYOID);

static TqStatement delete_foreign = TQ_STATEMENT(
	"DELETE FROM tq_internal.foreign_dependency f USING tq_internal.task t"
	" CROSS JOIN LATERAL unnest(t.dependencies) AS s (slug) JOIN tq_internal.task r ON r.task_id = s.slug"
	" WHERE t.id = ANY ($1) AND f.required = r.id AND f.dependent = t.id RETURNING f.queue::bigint",
	INT8ARRAYOID);

static TqRelation foreign_table = TQ_RELATION("foreign_dependency");
static TqRelation task_table = TQ_RELATION("task");
static TqRelation task_by_id = TQ_RELATION("task_pkey");
static TqRelation task_by_slug = TQ_RELATION("task_task_id_key");
static TqRelation run_table = TQ_RELATION("run");
static TqRelation run_by_key = TQ_RELATION("run_pkey");

/* A table in which few tasks have rows when they are deleted. */
typedef struct FewTable
{
	TqRelation table;
	TqRelation index; /* begins with the task */
} FewTable;

/* Those of delete_tasks. */
static FewTable few_tables[] =
	{{TQ_RELATION("run_detail"), TQ_RELATION("run_detail_pkey")},
	 {TQ_RELATION("delayed"), TQ_RELATION("delayed_pkey")},
	 {TQ_RELATION("unscheduled"), TQ_RELATION("unscheduled_pkey")},
	 {TQ_RELATION("dependency_counter"),
	  TQ_RELATION("dependency_counter_pkey")},
	 {TQ_RELATION("postponed"), TQ_RELATION("postponed_pkey")},
	 {TQ_RELATION("failure"), TQ_RELATION("failure_pkey")},
	 {TQ_RELATION("task_key"), TQ_RELATION("task_key_pkey")},
	 {TQ_RELATION("gate_member"), TQ_RELATION("gate_member_pkey")},
	 {TQ_RELATION("dependency"), TQ_RELATION("dependency_pkey")},
	 {TQ_RELATION("foreign_dependency"),
	  TQ_RELATION("foreign_dependency_pkey")}};

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

/* Sets the columns that read_core() reads. */
static void
put_core(TupleTableSlot *slot, const TqTask *row)
{
	TQ_TASK_TIMES(TQ_PUT, task);
	tq_put_unless(slot, Anum_task_effective_deadline,
				  TimestampTzGetDatum(row->deadline),
				  row->deadline == row->defined_deadline);
	TQ_TASK_CORE(TQ_PUT, task);
}

/* Sets all columns of a row of tq_internal.task. */
static void
put_definition(TupleTableSlot *slot, const TqTaskDefinition *row)
{
	put_core(slot, &row->named.task);
	put_text(slot, Anum_task_scheduler_id, row->named.scheduler_id,
			 TQ_DEFAULT_SCHEDULER);
	put_text(slot, Anum_task_project_id, row->named.project_id,
			 TQ_DEFAULT_PROJECT);
	if (row->ndependencies == 0)
		tq_put_null(slot, Anum_task_dependencies);
	else
		tq_put(slot, Anum_task_dependencies,
			   tq_array_slugid(row->dependencies, row->ndependencies));
	TQ_TASK_LARGE(TQ_PUT, task);
	tq_put_unless(slot, Anum_task_xid,
				  row->is_derived
					  ? FullTransactionIdGetDatum(GetTopFullTransactionId())
					  : (Datum) 0,
				  !row->is_derived);
}

/*
 * Inserts these tasks except those whose task_id exists already; waits, in
 * this order, for other sessions that are inserting one of these ids.  Sets
 * is_new[] for those that were inserted.  A task_id that this call generated
 * cannot exist, so it is not looked up.
 */
void
tq_tasks_insert(const TqTaskDefinition *const *tasks, int n, bool *is_new)
{
	TqTable *table = tq_table_open(&task_table);

	for (int done = 0; done < n; done += TQ_TABLE_BATCH)
	{
		int some = Min(n - done, TQ_TABLE_BATCH);
		bool has_own_id = true;

		for (int i = 0; i < some; i++)
		{
			put_definition(tq_table_new_row(table), tasks[done + i]);
			has_own_id = has_own_id && tasks[done + i]->has_own_id;
			is_new[done + i] = true;
		}
		if (has_own_id)
			tq_table_flush(table);
		else
			tq_table_flush_new(table, &task_by_slug, Anum_task_task_id,
							   is_new + done);
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
	slot_getsomeattrs(slot, Anum_task_expires_given);
	TQ_TASK_TIMES(TQ_GET, task);
	row->deadline = read_deadline(slot);
	TQ_TASK_CORE(TQ_GET, task);
}

/*
 * Returns a value as it is stored, perhaps compressed or out of line; or NULL.
 */
static void *
read_stored(TupleTableSlot *slot, int column)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);

	return isnull ? NULL : DatumGetPointer(datumCopy(value, false, -1));
}

/* Reads the array of dependencies; leaves it empty for NULL. */
static void
task_read_dependencies(TupleTableSlot *slot, TqTaskDefinition *definition)
{
	ArrayType *array = tq_row_varlena(slot, Anum_task_dependencies);
	Datum *elements;

	if (array == NULL)
		return;
	deconstruct_array(array, tq_catalog_slugid_type(), TQ_SLUG_BYTES, false,
					  TYPALIGN_CHAR, &elements, NULL,
					  &definition->ndependencies);
	definition->dependencies = palloc(sizeof(TqSlug) *
									  Max(definition->ndependencies, 1));
	for (int i = 0; i < definition->ndependencies; i++)
		definition->dependencies[i] = *DatumGetTqSlugP(elements[i]);
}

/* A type that begins with a TqNamedTask, and what reads the rest, if any. */
typedef struct TaskExtent
{
	Size size;
	void (*read_rest)(TupleTableSlot *slot, TqNamedTask *named);
} TaskExtent;

static void
read_rest_of_message(TupleTableSlot *slot, TqNamedTask *named)
{
	TqMessageTask *row = (TqMessageTask *) named;

	row->routes = tq_row_varlena(slot, Anum_task_routes);
	row->tags = read_stored(slot, Anum_task_tags);
}

static void
read_rest_of_definition(TupleTableSlot *slot, TqNamedTask *named)
{
	TqTaskDefinition *row = (TqTaskDefinition *) named;

	task_read_dependencies(slot, row);
	TQ_TASK_LARGE(TQ_GET, task);
}

static const TaskExtent extent_named = {sizeof(TqNamedTask), NULL};
static const TaskExtent extent_message = {sizeof(TqMessageTask),
										  read_rest_of_message};
static const TaskExtent extent_definition = {sizeof(TqTaskDefinition),
											 read_rest_of_definition};

/* Returns those of these tasks that exist, in the order of keys[]. */
static void *
task_table_read_tasks(TqRelation *index, const Datum *keys, int n,
					  const TaskExtent *extent, int *found)
{
	char *tasks = palloc0(extent->size * Max(n, 1));
	TqScan *scan = tq_scan_open(&task_table, index, 1, NULL);
	const TqNamedTask *before = NULL;

	*found = 0;
	for (int i = 0; i < n; i++)
	{
		TqNamedTask *named = (TqNamedTask *) (tasks + extent->size * *found);
		const TqTask *task;

		if (!tq_scan_find(scan, keys[i], 0, 0))
			continue;
		/*
		 * Read a task and its names; `before` is the task that was read
		 * before, or NULL.
		 */
		task = &named->task;
		read_core(scan->slot, &named->task);
		named->scheduler_id = tq_row_scheduler(scan->slot,
											   Anum_task_scheduler_id);
		named->project_id = tq_row_text_or(scan->slot, Anum_task_project_id,
										   TQ_DEFAULT_PROJECT);
		named->queue_name = tq_queue_name(task->queue);
		if (task->group_id == 0)
			named->group_slug = task->task_id;
		else if (before != NULL && before->task.group_id == task->group_id)
			named->group_slug = before->group_slug;
		else
			named->group_slug = tq_group_slug(task->group_id,
											  scan->registered);
		if (extent->read_rest != NULL)
			extent->read_rest(scan->slot, named);
		before = named;
		(*found)++;
	}
	tq_scan_close(scan);
	return tasks;
}

static void *
read_by_slug(const TqSlug *slugs, int n, const TaskExtent *extent, int *found)
{
	Datum *keys = palloc(sizeof(Datum) * Max(n, 1));

	for (int i = 0; i < n; i++)
		keys[i] = PointerGetDatum(&slugs[i]);
	return task_table_read_tasks(&task_by_slug, keys, n, extent, found);
}

static void *
read_by_id(const int64 *ids, int n, const TaskExtent *extent, int *found)
{
	Datum *keys = palloc(sizeof(Datum) * Max(n, 1));

	for (int i = 0; i < n; i++)
		keys[i] = Int64GetDatum(ids[i]);
	return task_table_read_tasks(&task_by_id, keys, n, extent, found);
}

/* Returns a task, or NULL. */
TqNamedTask *
tq_task_by_slug(const TqSlug *slug)
{
	int found;
	TqNamedTask *task = tq_tasks_by_slug(slug, 1, &found);

	return found == 0 ? NULL : task;
}

/* Returns whether a task exists. */
bool
tq_task_exists(const TqSlug *slug)
{
	TqScan *scan = tq_scan_open(&task_table, &task_by_slug, 1, NULL);
	bool exists = tq_scan_find(scan, PointerGetDatum(slug), 0, 0);

	tq_scan_close(scan);
	return exists;
}

/* Returns a task with its whole definition, or NULL. */
TqTaskDefinition *
tq_definition_by_slug(const TqSlug *slug)
{
	int found;
	TqTaskDefinition *definition = tq_definitions_by_slug(slug, 1, &found);

	return found == 0 ? NULL : definition;
}

/* Returns those of these tasks that exist, in the order of slugs[]. */
TqNamedTask *
tq_tasks_by_slug(const TqSlug *slugs, int n, int *found)
{
	return read_by_slug(slugs, n, &extent_named, found);
}

/* The same, with their whole definitions. */
TqTaskDefinition *
tq_definitions_by_slug(const TqSlug *slugs, int n, int *found)
{
	return read_by_slug(slugs, n, &extent_definition, found);
}

/* Returns those of these tasks that exist, in the order of ids[]. */
TqNamedTask *
tq_tasks_by_id(const int64 *ids, int n, int *found)
{
	return read_by_id(ids, n, &extent_named, found);
}

/* The same, with their whole definitions. */
TqTaskDefinition *
tq_definitions_by_id(const int64 *ids, int n, int *found)
{
	return read_by_id(ids, n, &extent_definition, found);
}

static int
compare_message_tasks(const void *a, const void *b)
{
	int64 x = ((const TqMessageTask *) a)->named.task.id;
	int64 y = ((const TqMessageTask *) b)->named.task.id;

	return x < y ? -1 : x > y;
}

/*
 * Adds those of the tasks ids[] that are not among these and have departed;
 * there is room for all.
 */
static void
add_departed(TqMessageTask *tasks, const int64 *ids, int n, int *found)
{
	int64 *missing = palloc(sizeof(int64) * Max(n, 1));
	int nmissing = 0;
	int more;
	TqMessageTask *departed;

	for (int i = 0; i < n; i++)
	{
		int at = i - nmissing;

		if (at >= *found || tasks[at].named.task.id != ids[i])
			missing[nmissing++] = ids[i];
	}
	departed = tq_departed_tasks(missing, nmissing, &more);
	if (more > 0)
		memcpy(&tasks[*found], departed, sizeof(TqMessageTask) * more);
	*found += more;
	qsort(tasks, *found, sizeof(TqMessageTask), compare_message_tasks);
}

/*
 * Returns these tasks, which are sorted by id, with what their messages
 * contain, also those that have departed.  Tags are left as they are stored, so
 * that a thousand tasks with large tags fit into memory.
 */
TqMessageTask *
tq_tasks_for_messages(const int64 *ids, int n, int *found)
{
	TqMessageTask *tasks = read_by_id(ids, n, &extent_message, found);

	if (*found < n)
		add_departed(tasks, ids, n, found);
	return tasks;
}

/* Reads a task by task_id; returns false if there is none. */
bool
tq_task_find_by_slug(TqTaskFinder *finder, const TqSlug *slug, TqTask *task)
{
	if (finder->by_slug == NULL)
		finder->by_slug = tq_scan_open(&task_table, &task_by_slug, 1, NULL);
	if (!tq_scan_find(finder->by_slug, PointerGetDatum(slug), 0, 0))
		return false;
	read_core(finder->by_slug->slot, task);
	return true;
}

/* Reads a task by id; returns false if there is none. */
bool
tq_task_find_by_id(TqTaskFinder *finder, int64 id, TqTask *task)
{
	if (finder->by_id == NULL)
		finder->by_id = tq_task_scan_begin(NULL);
	return tq_task_core(finder->by_id, id, task);
}

/* Ends finding tasks. */
void
tq_task_finder_end(TqTaskFinder *finder)
{
	if (finder->by_slug != NULL)
		tq_scan_close(finder->by_slug);
	if (finder->by_id != NULL)
		tq_scan_close(finder->by_id);
}

/* Reads a single task by task_id; returns false if there is none. */
bool
tq_task_find(const TqSlug *slug, TqTask *task)
{
	TqTaskFinder finder = {NULL, NULL};
	bool found = tq_task_find_by_slug(&finder, slug, task);

	tq_task_finder_end(&finder);
	return found;
}

/*
 * Begins a scan for tasks by id with this snapshot; with SnapshotSelf, for
 * their latest versions; with NULL, by the snapshot of the call.
 */
TqScan *
tq_task_scan_begin(Snapshot snapshot)
{
	return tq_scan_begin_range(tq_table_open(&task_table), &task_by_id, 1,
							   snapshot);
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
		if (tq_scan_find_near(scan, id))
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

/*
 * Reads up to `entries` index entries behind the id *after, which becomes that
 * of the last one, and returns the tasks that they show, in order of their ids,
 * without names.  Clears *more if there are no further entries.  All entries of
 * an id are read, as an update leaves another one: the task is behind the last.
 */
TqTask *
tq_tasks_after(int64 *after, int entries, int *found, bool *more)
{
	TqTask *tasks = palloc(sizeof(TqTask) * entries);
	TqScan *scan = tq_task_scan_begin(NULL);
	int64 id;

	*found = 0;
	tq_scan_seek_range(scan, 0, 0, *after + 1, PG_INT64_MAX);
	for (int i = 0; (*more = tq_scan_next_entry(scan, &id)); i++)
	{
		if (i >= entries && id != *after)
			break;
		*after = id;
		if (tq_scan_fetch(scan))
			read_core(scan->slot, &tasks[(*found)++]);
	}
	tq_scan_close(scan);
	return tasks;
}

/*
 * Reads the queue and the priority that a task has now, which does not change
 * while the row with its location is locked; returns false if there is no such
 * task.
 */
bool
tq_task_order(int64 id, int32 *queue, int16 *priority)
{
	TqScan *scan = tq_task_scan_begin(SnapshotSelf);
	bool found = find_by_id(scan, id);

	if (found)
	{
		*queue = tq_row_int32(scan->slot, Anum_task_queue);
		*priority = tq_row_int16(scan->slot, Anum_task_priority);
	}
	tq_scan_close(scan);
	return found;
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
	claimed->priority = tq_row_int16(scan->slot, Anum_task_priority);
	claimed->deadline = read_deadline(scan->slot);
	claimed->policy = tq_row_int32(scan->slot, Anum_task_policy);
	claimed->group_id = tq_row_int64(scan->slot, Anum_task_group_id);
	claimed->task_id = tq_row_slug(scan->slot, Anum_task_task_id);
	return true;
}

/*
 * Reads the payload and the scopes of the task that tq_task_for_claim() found
 * last; NULL if it has no scopes.
 */
void
tq_task_payload_for_claim(TqScan *scan, TqClaimed *claimed)
{
	claimed->payload = tq_row_varlena(scan->slot, Anum_task_payload);
	claimed->scopes = tq_row_varlena(scan->slot, Anum_task_scopes);
}

/* Returns the scopes of a task; NULL if it has none. */
ArrayType *
tq_task_scopes(int64 id)
{
	TqScan *scan = tq_task_scan_begin(SnapshotSelf);
	ArrayType *scopes = find_by_id(scan, id)
							? tq_row_varlena(scan->slot, Anum_task_scopes)
							: NULL;

	tq_scan_close(scan);
	return scopes;
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
		case Anum_task_xid:
		case Anum_task_first_priority:
			return true;
		case Anum_task_created:
		case Anum_task_deadline:
		case Anum_task_expires:
		case Anum_task_expires_given:
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
		if (!stored->tts_isnull[i] &&
			!datum_image_eq(stored->tts_values[i], given->tts_values[i],
							attribute->attbyval, attribute->attlen))
			return false;
	}
	return true;
}

/*
 * Compares a task with the stored one of the same task_id, byte by byte, its
 * times only with with_times.  If they are the same, its core becomes that
 * of the stored one.  If they differ, the definitions may still be
 * equivalent.
 */
TqMatch
tq_stored_match(TqStored *stored, TqTaskDefinition *definition,
				bool with_times)
{
	TupleTableSlot *slot = stored->scan->slot;
	TqTask *task = &definition->named.task;
	MemoryContext outer;
	bool is_same;

	if (!tq_scan_find(stored->scan, PointerGetDatum(&task->task_id), 0, 0))
		return TQ_MATCH_NONE;
	outer = MemoryContextSwitchTo(stored->scratch);
	ExecStoreAllNullTuple(stored->given);
	put_definition(stored->given, definition);
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

/* Returns the whole tasks whose ids a statement returns, in its order. */
static TqTaskDefinition *
task_read_page(TqStatement *statement, const Datum *values, int *found)
{
	int n;
	int64 *ids = tq_spi_run_ids(statement, values, &n);

	return tq_definitions_by_id(ids, n, found);
}

/*
 * Returns a page of the tasks of a group, by task_id, beginning after the id
 * `after`.
 */
TqTaskDefinition *
tq_definitions_of_group(int64 group_id, const TqSlug *group,
						const TqSlug *after, int max, int *found)
{
	Datum values[4] = {Int64GetDatum(group_id), PointerGetDatum(group),
					   PointerGetDatum(after), Int32GetDatum(max)};

	return task_read_page(&ids_of_group, values, found);
}

/*
 * Returns a page of the dependents of a task that have not expired, by
 * task_id, beginning after the id `after`.
 */
TqTaskDefinition *
tq_definitions_dependent(int64 required, TimestampTz now, const TqSlug *after,
						 int max, int *found)
{
	Datum values[4] = {Int64GetDatum(required), TimestampTzGetDatum(now),
					   PointerGetDatum(after), Int32GetDatum(max)};

	return task_read_page(&ids_dependent, values, found);
}

/* Adds dependencies to the definition of a task, whose current row is locked. */
void
tq_task_add_dependencies(int64 id, const TqSlug *dependencies, int n)
{
	tq_spi_run(&add_dependencies,
			   TQ_VALUES(Int64GetDatum(id), tq_array_slugid(dependencies, n)),
			   NULL);
}

/* Sets the effective deadlines of tasks, whose current rows are locked. */
void
tq_tasks_set_due(const int64 *ids, const TimestampTz *due, int n)
{
	Datum values[2] = {tq_array_int64(ids, n), tq_array_time(due, n)};

	if (n > 0)
		tq_spi_run(&set_due, values, NULL);
}

/* Sets when tasks expire, whose current rows are locked. */
void
tq_tasks_set_expires(const int64 *ids, const TimestampTz *expires, int n)
{
	Datum values[2] = {tq_array_int64(ids, n), tq_array_time(expires, n)};

	if (n > 0)
		tq_spi_run(&set_expires, values, NULL);
}

/* Sets the priority of tasks, whose current rows are locked. */
void
tq_tasks_set_priority(const int64 *ids, int n, int priority)
{
	Datum values[2] = {tq_array_int64(ids, n), Int16GetDatum(priority)};

	if (n > 0)
		tq_spi_run(&set_priority, values, NULL);
}

/* Sets the queue of tasks, whose current rows are locked. */
void
tq_tasks_set_queue(const int64 *ids, int n, int32 queue)
{
	Datum values[2] = {tq_array_int64(ids, n), Int32GetDatum(queue)};

	if (n > 0)
		tq_spi_run(&set_queue, values, NULL);
}

/* Empties the payloads of tasks, whose current rows are locked. */
void
tq_tasks_drop_payload(const int64 *ids, int n)
{
	if (n > 0)
		tq_spi_run(&drop_payload, TQ_VALUES(tq_array_int64(ids, n)), NULL);
}

/* Replaces payload and delay of a task, whose current row is locked. */
void
tq_task_replace(int64 id, Jsonb *payload, int64 delay)
{
	tq_spi_run(&replace_task,
			   TQ_VALUES(Int64GetDatum(id), JsonbPGetDatum(payload),
						 Int64GetDatum(delay)),
			   NULL);
}

/* ---- deletion ---- */

/*
 * Most tasks have rows in task and run only.  These rows are deleted through the
 * access methods, and those of the other tasks by a statement, which looks up
 * each task in a dozen tables: it takes 60 K instructions for a task, and this
 * 8 K.
 */
typedef struct Deletion
{
	const int64 *ids; /* in order */
	int n;
	bool *is_other; /* left to the statement */
	TqScan *tasks;
	TqScan *runs;
	ItemPointerData *tids; /* of the rows of task */
	int64 *groups;         /* that a task leaves; some more than once */
	int ngroups;
} Deletion;

static void
begin_deletion(Deletion *deletion, const int64 *ids, int n)
{
	*deletion = (Deletion){.ids = ids,
						   .n = n,
						   .is_other = palloc0(sizeof(bool) * n),
						   .tids = palloc(sizeof(ItemPointerData) * n),
						   .groups = palloc(sizeof(int64) * 2 * n)};
	deletion->tasks = tq_scan_open_ascending(&task_table, &task_by_id, ids, n,
											 NULL);
	deletion->runs = tq_scan_open_ascending(&run_table, &run_by_key, ids, n,
											NULL);
}

static void
end_deletion(Deletion *deletion)
{
	tq_scan_close(deletion->runs);
	tq_scan_close(deletion->tasks);
}

/*
 * Leaves tasks to the statement: those with rows in other tables, and all if a
 * trigger is to be fired.
 */
static void
leave_others(Deletion *deletion)
{
	for (int i = 0; i < lengthof(few_tables); i++)
		tq_scan_mark(&few_tables[i].table, &few_tables[i].index, deletion->ids,
					 deletion->n, deletion->is_other);
	if (tq_table_has_delete_trigger(deletion->tasks->table) ||
		tq_table_has_delete_trigger(deletion->runs->table))
		memset(deletion->is_other, true, sizeof(bool) * deletion->n);
}

/*
 * Reads where the rows of the tasks are, and which groups they leave; leaves
 * those that have dependencies, or no row, to the statement.
 */
static void
read_rows(Deletion *deletion)
{
	TqSlug *slugs = palloc(sizeof(TqSlug) * deletion->n);
	TupleTableSlot *slot = deletion->tasks->slot;
	TqGroup *own;
	int n = 0;
	int found;

	for (int i = 0; i < deletion->n; i++)
	{
		bool exists = tq_scan_next_of(deletion->tasks, deletion->ids[i]);

		if (!exists || !slot_attisnull(slot, Anum_task_dependencies))
			deletion->is_other[i] = true;
		if (!exists)
			continue;
		deletion->tids[i] = slot->tts_tid;
		slugs[n++] = tq_row_slug(slot, Anum_task_task_id);
		if (!slot_attisnull(slot, Anum_task_group_id))
			deletion->groups[deletion->ngroups++] =
				tq_row_int64(slot, Anum_task_group_id);
	}
	/* A group may be named after a task, whatever group that is in. */
	own = tq_groups_by_slug(slugs, n, &found);
	for (int i = 0; i < found; i++)
		deletion->groups[deletion->ngroups++] = own[i].id;
}

/* Deletes a row; returns false if another session has changed it. */
static bool
delete_row(TqTable *table, ItemPointer tid)
{
	TM_Result result = tq_table_delete(table, tid, true);

	if (result != TM_Ok)
		tq_table_changed_under_us(table, result);
	return result == TM_Ok;
}

/* Deletes the rows of a task; returns false if some may be left. */
static bool
delete_rows(Deletion *deletion, int i)
{
	TqScan *runs = deletion->runs;

	while (tq_scan_next_of(runs, deletion->ids[i]))
	{
		if (!delete_row(runs->table, &runs->slot->tts_tid))
			return false;
	}
	return delete_row(deletion->tasks->table, &deletion->tids[i]);
}

/*
 * Deletes the tasks that are left to the statement; returns how many existed.
 */
static int
delete_others(const Deletion *deletion)
{
	int64 *ids = palloc(sizeof(int64) * deletion->n);
	int n = 0;
	Datum values[1];
	TqTable *table;

	for (int i = 0; i < deletion->n; i++)
	{
		if (deletion->is_other[i])
			ids[n++] = deletion->ids[i];
	}
	if (n == 0)
		return 0;
	values[0] = tq_array_int64(ids, n);
	table = tq_table_open(&foreign_table);
	if (RelationGetNumberOfBlocks(table->rel) > 0)
		(void) tq_count_changed_rows(TQ_QUEUE_FOREIGN, -1, &delete_foreign,
									 values);
	tq_table_close(table);
	return (int) tq_spi_run_int64(&delete_tasks, values, 0);
}

/*
 * Deletes tasks, in order of id, and all their rows in other tables; returns how
 * many tasks existed.
 */
int
tq_tasks_delete(const int64 *ids, int n)
{
	Deletion deletion;
	int deleted = 0;

	if (n == 0)
		return 0;
	tq_unique_keys_release(ids, n);
	begin_deletion(&deletion, ids, n);
	leave_others(&deletion);
	read_rows(&deletion);
	if (deletion.ngroups > 0)
		tq_spi_run(&watch_groups,
				   TQ_VALUES(
					   tq_array_int64(deletion.groups, deletion.ngroups)),
				   NULL);
	for (int i = 0; i < n; i++)
	{
		if (deletion.is_other[i])
			continue;
		deletion.is_other[i] = !delete_rows(&deletion, i);
		deleted += !deletion.is_other[i];
	}
	deleted += delete_others(&deletion);
	end_deletion(&deletion);
	return deleted;
}
