/*
 * group_rows.c
 *	  What a picture of a task group shows: its tasks, dependencies and runs.
 *
 * Each statement reads a group as a whole, in one pass over the index of the
 * group, and looks up the rest of each task by index.  It reads at most so many
 * rows; the caller asks for one more than it can draw.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "utils/builtins.h"

#include "../rows/rows.h"
#include "../util/util.h"
#include "columns.h"
#include "tasks.h"

/* The tasks of a group, in which its own task has no group_id. */
#define MEMBERS                                                               \
	"(SELECT t.* FROM tq_internal.task t WHERE t.group_id = $1 UNION ALL"     \
	" SELECT t.* FROM tq_internal.task t WHERE t.task_id = $2 AND t.group_"   \
	"id IS NULL) AS m"

#define LAST_RUN                                                              \
	" LEFT JOIN LATERAL (SELECT * FROM tq_internal.run r WHERE r.task = m.id" \
	" ORDER BY r.task DESC, r.run_id DESC LIMIT 1) AS r ON true"

static TqStatement task_rows = TQ_STATEMENT(
	"SELECT m.id, m.task_id, coalesce(m.metadata ->> 'name', q.task_queue_id), q.task_queue_id,"
	" CASE WHEN u.task IS NOT NULL THEN 0 WHEN p.task IS NOT NULL OR d.task IS NOT NULL THEN 1"
	" ELSE r.state END::int2,"
	" CASE WHEN p.task IS NULL AND d.task IS NULL THEN r.reason_resolved ELSE 0 END::int2,"
	" coalesce(p.run_id, d.run_id, r.run_id, -1)::int2, d.task IS NOT NULL,"
	" CASE WHEN p.task IS NULL AND d.task IS NULL THEN r.resolved END, w.worker_group, w.worker_id,"
	" CASE WHEN e.reported IS NOT NULL THEN concat_ws(', ', CASE WHEN e.total > 0"
	" THEN trunc(100.0 * e.done / e.total) || ' %' ELSE e.done || ' done' END, e.message) END"
	" FROM " MEMBERS " JOIN tq_internal.queue q ON q.id = m.queue"
	" LEFT JOIN tq_internal.unscheduled u ON u.task = m.id"
	" LEFT JOIN LATERAL " TQ_PENDING_OF(
		"m.id") " AS p ON true"
				" LEFT JOIN tq_internal.delayed d ON d.task = m.id" LAST_RUN
				" LEFT JOIN tq_internal.worker w ON w.id = r.worker"
				" LEFT JOIN tq_internal.run_detail e ON r.state = 2 AND r.has_detail"
				" AND e.task = r.task AND e.run_id = r.run_id"
				" ORDER BY m.id LIMIT $3",
	INT8OID, TQ_SLUGID, INT4OID);

static TqStatement dependency_rows =
	TQ_STATEMENT("SELECT m.id, t.id FROM " MEMBERS
				 " CROSS JOIN LATERAL unnest(m.dependencies) AS e (required)"
				 " LEFT JOIN tq_internal.task t ON t.task_id = e.required"
				 " LIMIT $3",
				 INT8OID, TQ_SLUGID, INT4OID);

/* Runs that were claimed or resolved, and those that were not yet. */
static TqStatement run_rows = TQ_STATEMENT(
	"SELECT m.id, r.run_id, r.state, r.reason_resolved, coalesce(d.visible_at, r.scheduled),"
	" r.started, r.resolved, w.worker_group, w.worker_id"
	" FROM " MEMBERS " JOIN tq_internal.run r ON r.task = m.id"
	" LEFT JOIN tq_internal.worker w ON w.id = r.worker"
	" LEFT JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id"
	" UNION ALL SELECT m.id, p.run_id, 1::int2, 0::int2, p.scheduled, NULL, NULL, NULL, NULL"
	" FROM " MEMBERS " CROSS JOIN LATERAL " TQ_PENDING_OF("m.id") " AS p"
																  " LIMIT $3",
	INT8OID, TQ_SLUGID, INT4OID);

static TqStatement error_row = TQ_STATEMENT(
	"SELECT left(CASE WHEN jsonb_typeof(d.error) = 'object' AND d.error ? 'message'"
	" THEN concat_ws(chr(10), d.error ->> 'message', nullif((d.error - 'message')::text, '{}'))"
	" ELSE d.error #>> '{}' END, $3)"
	" FROM tq_internal.run_detail d WHERE d.task = $1 AND d.run_id = $2",
	INT8OID, INT2OID, INT4OID);

#define VALUES_OF(group, max)                                                 \
	TQ_VALUES(Int64GetDatum((group)->id),                                     \
			  PointerGetDatum(&(group)->task_group_id), Int32GetDatum(max))

static void
read_task(TupleTableSlot *slot, void *row)
{
	*(TqGroupTask *) row = (TqGroupTask){.id = tq_row_int64(slot, 1),
										 .task_id = tq_row_slug(slot, 2),
										 .name = tq_row_text(slot, 3),
										 .queue_name = tq_row_text(slot, 4),
										 .state = tq_row_int16(slot, 5),
										 .reason = tq_row_int16(slot, 6),
										 .run_id = tq_row_int16(slot, 7),
										 .is_delayed = tq_row_bool(slot, 8),
										 .resolved = tq_row_time(slot, 9),
										 .worker_group = tq_row_text(slot, 10),
										 .worker_id = tq_row_text(slot, 11),
										 .progress = tq_row_text(slot, 12)};
}

static void
read_dependency(TupleTableSlot *slot, void *row)
{
	*(TqGroupDependency *) row =
		(TqGroupDependency){.dependent = tq_row_int64(slot, 1),
							.required = tq_row_int64_or_null(slot, 2)};
}

static void
read_run(TupleTableSlot *slot, void *row)
{
	*(TqGroupRun *) row = (TqGroupRun){.task = tq_row_int64(slot, 1),
									   .run_id = tq_row_int16(slot, 2),
									   .state = tq_row_int16(slot, 3),
									   .reason = tq_row_int16(slot, 4),
									   .claimable = tq_row_time(slot, 5),
									   .started = tq_row_time(slot, 6),
									   .resolved = tq_row_time(slot, 7),
									   .worker_group = tq_row_text(slot, 8),
									   .worker_id = tq_row_text(slot, 9)};
}

/* Returns up to `max` tasks of a group, in order of their ids. */
TqGroupTask *
tq_group_rows_tasks(const TqGroup *group, int max, int *found)
{
	return tq_spi_read_all(&task_rows, VALUES_OF(group, max), read_task,
						   sizeof(TqGroupTask), found);
}

/* Returns up to `max` dependencies of the tasks of a group, in no order. */
TqGroupDependency *
tq_group_rows_dependencies(const TqGroup *group, int max, int *found)
{
	return tq_spi_read_all(&dependency_rows, VALUES_OF(group, max),
						   read_dependency, sizeof(TqGroupDependency), found);
}

/* Returns up to `max` runs of the tasks of a group, in no order. */
TqGroupRun *
tq_group_rows_runs(const TqGroup *group, int max, int *found)
{
	return tq_spi_read_all(&run_rows, VALUES_OF(group, max), read_run,
						   sizeof(TqGroupRun), found);
}

static void
read_error(TupleTableSlot *slot, void *row)
{
	*(char **) row = tq_row_text(slot, 1);
}

/*
 * Returns the first `max` characters of the error that a run has, or NULL; the
 * message comes first, in a line of its own.
 */
char *
tq_group_rows_error(int64 task, int run_id, int max)
{
	char *error = NULL;

	(void) tq_spi_read(&error_row,
					   TQ_VALUES(Int64GetDatum(task), Int16GetDatum(run_id),
								 Int32GetDatum(max)),
					   read_error, &error);
	return error;
}
