/*
 * store_task.c
 *	  Rows of tq.task: definitions of tasks.
 *
 * Room 2.  Written once; nothing but the priority is ever updated.  A default
 * is stored as NULL and comes back as the default, so that a plain task is a
 * narrow row.
 */
#include "store.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#define BRIEF                                                                             \
	"t.id, t.created, t.deadline, t.expires, t.group_id, t.queue, t.priority, t.retries," \
	" t.all_resolved, t.task_id, g.task_group_id, q.task_queue_id, t.scheduler_id, t.project_id"
#define WHOLE                                                                 \
	BRIEF                                                                     \
	", t.dependencies, t.routes, t.scopes, t.payload, t.metadata, t.tags, t.extra"
#define JOINED                                                                \
	" JOIN tq.queue q ON q.id = t.queue LEFT JOIN tq.task_group g ON g.id = t.group_id"

static TqStatement insert_task = TQ_STATEMENT(
	"INSERT INTO tq.task (id, created, deadline, expires, group_id, queue, priority,"
	" retries, all_resolved, task_id, scheduler_id, project_id, dependencies, routes,"
	" scopes, payload, metadata, tags, extra)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)"
	" ON CONFLICT (task_id) DO NOTHING",
	INT8OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, INT4OID,
	INT2OID, INT2OID, BOOLOID, TQ_SLUGID, TEXTOID, TEXTOID, TQ_SLUGIDS,
	TEXTARRAYOID, TEXTARRAYOID, JSONBOID, JSONBOID, JSONBOID, JSONBOID);

static TqStatement brief_by_slug =
	TQ_STATEMENT("SELECT " BRIEF " FROM tq.task t" JOINED
				 " WHERE t.task_id OPERATOR(tq.=) $1",
				 TQ_SLUGID);

static TqStatement whole_by_slug =
	TQ_STATEMENT("SELECT " WHOLE " FROM tq.task t" JOINED
				 " WHERE t.task_id OPERATOR(tq.=) $1",
				 TQ_SLUGID);

static TqStatement brief_by_slugs =
	TQ_STATEMENT("SELECT " BRIEF
				 " FROM unnest($1) WITH ORDINALITY AS s (slug, place)"
				 " JOIN tq.task t ON t.task_id OPERATOR(tq.=) s.slug" JOINED
				 " ORDER BY s.place",
				 TQ_SLUGIDS);

static TqStatement whole_by_slugs =
	TQ_STATEMENT("SELECT " WHOLE
				 " FROM unnest($1) WITH ORDINALITY AS s (slug, place)"
				 " JOIN tq.task t ON t.task_id OPERATOR(tq.=) s.slug" JOINED
				 " ORDER BY s.place",
				 TQ_SLUGIDS);

static TqStatement brief_by_ids =
	TQ_STATEMENT("SELECT " BRIEF
				 " FROM unnest($1) WITH ORDINALITY AS s (id, place)"
				 " JOIN tq.task t ON t.id = s.id" JOINED " ORDER BY s.place",
				 INT8ARRAYOID);

static TqStatement told_by_ids =
	TQ_STATEMENT("SELECT " BRIEF ", t.routes, t.tags FROM unnest($1) AS s (id)"
				 " JOIN tq.task t ON t.id = s.id" JOINED " ORDER BY t.id",
				 INT8ARRAYOID);

static TqStatement whole_of_group = TQ_STATEMENT(
	"SELECT " WHOLE " FROM ("
	"(SELECT id FROM tq.task WHERE group_id = $1 AND task_id OPERATOR(tq.>) $3 ORDER BY task_id LIMIT $4)"
	" UNION ALL"
	" (SELECT id FROM tq.task WHERE task_id OPERATOR(tq.=) $2 AND group_id IS NULL"
	" AND task_id OPERATOR(tq.>) $3)) AS s"
	" JOIN tq.task t ON t.id = s.id" JOINED " ORDER BY t.task_id LIMIT $4",
	INT8OID, TQ_SLUGID, TQ_SLUGID, INT4OID);

static TqStatement whole_dependent = TQ_STATEMENT(
	"SELECT " WHOLE
	" FROM tq.edge e JOIN tq.task t ON t.id = e.dependent" JOINED
	" WHERE e.required = $1 AND t.expires > $2 AND t.task_id OPERATOR(tq.>) $3"
	" ORDER BY t.task_id LIMIT $4",
	INT8OID, TIMESTAMPTZOID, TQ_SLUGID, INT4OID);

static TqStatement set_priority =
	TQ_STATEMENT("UPDATE tq.task SET priority = $2 WHERE id = ANY ($1)",
				 INT8ARRAYOID, INT2OID);

static TqStatement delete_tasks = TQ_STATEMENT(
	"WITH gone AS (DELETE FROM tq.task WHERE id = ANY ($1) RETURNING id, dependencies),"
	" r AS (DELETE FROM tq.run WHERE task = ANY ($1)),"
	" p AS (DELETE FROM tq.pending WHERE task = ANY ($1)),"
	" d AS (DELETE FROM tq.delayed WHERE task = ANY ($1)),"
	" u AS (DELETE FROM tq.unscheduled WHERE task = ANY ($1)),"
	" e AS (DELETE FROM tq.edge WHERE required = ANY ($1)),"
	" f AS (DELETE FROM tq.edge USING (SELECT t.id AS required, gone.id AS dependent"
	" FROM gone CROSS JOIN LATERAL unnest(gone.dependencies) AS s (slug)"
	" JOIN tq.task t ON t.task_id OPERATOR(tq.=) s.slug WHERE t.id <> ALL ($1)) AS x"
	" WHERE edge.required = x.required AND edge.dependent = x.dependent)"
	" SELECT count(*) FROM gone",
	INT8ARRAYOID);

/* The next inner id, or place in a queue. */
int64
tq_seq_next(void)
{
	return nextval_internal(get_relname_relid("seq",
											  get_namespace_oid("tq", false)),
							false);
}

static Datum
text_or_null(const char *text, const char *unless, char *isnull)
{
	*isnull = strcmp(text, unless) == 0 ? 'n' : ' ';
	return *isnull == 'n' ? (Datum) 0 : CStringGetTextDatum(text);
}

static Datum
pointer_or_null(const void *pointer, char *isnull)
{
	*isnull = pointer == NULL ? 'n' : ' ';
	return PointerGetDatum(pointer);
}

/* Insert; false when there is a task of that slug already. */
bool
tq_task_insert(const TqTask *task)
{
	Datum v[19];
	char n[20] = "                   ";

	v[0] = Int64GetDatum(task->id);
	v[1] = TimestampTzGetDatum(task->created);
	v[2] = TimestampTzGetDatum(task->deadline);
	v[3] = TimestampTzGetDatum(task->expires);
	v[4] = Int64GetDatum(task->group_id);
	n[4] = task->group_id == 0 ? 'n' : ' ';
	v[5] = Int32GetDatum(task->queue);
	v[6] = Int16GetDatum(task->priority);
	v[7] = Int16GetDatum(task->retries);
	v[8] = BoolGetDatum(task->all_resolved);
	v[9] = PointerGetDatum(&task->task_id);
	v[10] = text_or_null(task->scheduler_id, TQ_DEFAULT_SCHEDULER, &n[10]);
	v[11] = text_or_null(task->project_id, TQ_DEFAULT_PROJECT, &n[11]);
	n[12] = task->ndependencies == 0 ? 'n' : ' ';
	v[12] = task->ndependencies == 0
				? (Datum) 0
				: tq_array_slugid(task->dependencies, task->ndependencies);
	v[13] = pointer_or_null(task->routes, &n[13]);
	v[14] = pointer_or_null(task->scopes, &n[14]);
	v[15] = JsonbPGetDatum(task->payload);
	v[16] = pointer_or_null(task->metadata, &n[16]);
	v[17] = pointer_or_null(task->tags, &n[17]);
	v[18] = pointer_or_null(task->extra, &n[18]);
	return tq_plan_run(&insert_task, v, n) == 1;
}

static void
read_brief(uint64 row, TqTask *task)
{
	bool isnull;

	task->id = tq_plan_int64(row, 1, 0);
	task->created = tq_plan_time(row, 2);
	task->deadline = tq_plan_time(row, 3);
	task->expires = tq_plan_time(row, 4);
	task->group_id = tq_plan_int64(row, 5, 0);
	task->queue = tq_plan_int32(row, 6, 0);
	task->priority = tq_plan_int16(row, 7, 0);
	task->retries = tq_plan_int16(row, 8, 0);
	task->all_resolved = tq_plan_bool(row, 9);
	task->task_id = tq_plan_slug(row, 10);
	(void) tq_plan_field(row, 11, &isnull);
	task->group_slug = isnull ? task->task_id : tq_plan_slug(row, 11);
	task->queue_name = tq_plan_text(row, 12);
	task->scheduler_id = tq_plan_text(row, 13);
	if (task->scheduler_id == NULL)
		task->scheduler_id = pstrdup(TQ_DEFAULT_SCHEDULER);
	task->project_id = tq_plan_text(row, 14);
	if (task->project_id == NULL)
		task->project_id = pstrdup(TQ_DEFAULT_PROJECT);
}

static void
read_dependencies(uint64 row, int column, TqTask *task)
{
	bool isnull;
	Datum value = tq_plan_field(row, column, &isnull);
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
	Datum value = tq_plan_field(row, column, &isnull);

	return isnull ? NULL : DatumGetArrayTypePCopy(value);
}

static void
read_rest(uint64 row, TqTask *task)
{
	read_dependencies(row, 15, task);
	task->routes = read_array(row, 16);
	task->scopes = read_array(row, 17);
	task->payload = tq_plan_jsonb(row, 18);
	task->metadata = tq_plan_jsonb(row, 19);
	task->tags = tq_plan_jsonb(row, 20);
	task->extra = tq_plan_jsonb(row, 21);
}

/* Run one of the selects above and read all its rows. */
static TqTask *
read_tasks(TqStatement *statement, const Datum *values, bool whole, int *found)
{
	TqTask *tasks;

	*found = (int) tq_plan_run(statement, values, NULL);
	tasks = palloc0(sizeof(TqTask) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
	{
		read_brief(i, &tasks[i]);
		if (whole)
			read_rest(i, &tasks[i]);
	}
	tq_plan_free_result();
	return tasks;
}

static TqTask *
read_task(TqStatement *statement, const TqSlug *slug, bool whole)
{
	Datum values[1] = {PointerGetDatum(slug)};
	int found;
	TqTask *task = read_tasks(statement, values, whole, &found);

	return found == 0 ? NULL : task;
}

/* The task without its payload and other large parts, or NULL. */
TqTask *
tq_task_by_slug(const TqSlug *slug)
{
	return read_task(&brief_by_slug, slug, false);
}

TqTask *
tq_task_whole_by_slug(const TqSlug *slug)
{
	return read_task(&whole_by_slug, slug, true);
}

/* Those that exist, in the order asked for. */
TqTask *
tq_tasks_by_slug(const TqSlug *slugs, int n, bool whole, int *found)
{
	Datum values[1] = {tq_array_slugid(slugs, n)};

	return read_tasks(whole ? &whole_by_slugs : &brief_by_slugs,
					  values,
					  whole,
					  found);
}

TqTask *
tq_tasks_by_id(const int64 *ids, int n, int *found)
{
	Datum values[1] = {tq_array_int64(ids, n)};

	return read_tasks(&brief_by_ids, values, false, found);
}

/* What messages tell of these tasks, which is routes and tags besides; by id. */
TqTask *
tq_tasks_told(const int64 *ids, int n, int *found)
{
	Datum values[1] = {tq_array_int64(ids, n)};
	TqTask *tasks;

	*found = (int) tq_plan_run(&told_by_ids, values, NULL);
	tasks = palloc0(sizeof(TqTask) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
	{
		read_brief(i, &tasks[i]);
		tasks[i].routes = read_array(i, 15);
		tasks[i].tags = tq_plan_jsonb(i, 16);
	}
	tq_plan_free_result();
	return tasks;
}

/* A page of a group, by task id, after that one. */
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

/* A page of the tasks that depend on one, leaving out those that have expired. */
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

/* The rows in which these tasks stand are locked. */
void
tq_tasks_set_priority(const int64 *ids, int n, int priority)
{
	Datum values[2] = {tq_array_int64(ids, n), Int16GetDatum(priority)};

	if (n > 0)
		tq_plan_run(&set_priority, values, NULL);
}

/* Delete tasks and every row of theirs; returns how many there were. */
int
tq_tasks_delete(const int64 *ids, int n)
{
	Datum values[1] = {tq_array_int64(ids, n)};
	int deleted;

	tq_plan_run(&delete_tasks, values, NULL);
	deleted = (int) tq_plan_int64(0, 1, 0);
	tq_plan_free_result();
	return deleted;
}
