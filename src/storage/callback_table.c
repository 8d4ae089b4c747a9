/*
 * callback_table.c
 *	  Rows of tq_internal.group_callback: tasks that are created when a group
 *	  resolves.
 *
 * A row is locked by the session that creates its task, and deleted by the same
 * transaction, so that the task is created once.  The ids are of the same
 * sequence as those of tasks, so that timers can name both.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "../rows/rows.h"
#include "../util/util.h"
#include "columns.h"
#include "tasks.h"

static TqRelation callback_table = TQ_RELATION("group_callback");

TQ_NUMBERS(TQ_GROUP_CALLBACK_COLUMNS, group_callback);

static TqStatement insert_row = TQ_STATEMENT(
	"INSERT INTO tq_internal.group_callback VALUES ($1, $2, $3, $4, $5, $6, $7)"
	" ON CONFLICT (task_id) DO NOTHING",
	INT8OID, TIMESTAMPTZOID, TQ_SLUGID, TQ_SLUGID, OIDOID, TEXTOID, JSONBOID);

static TqStatement lock_row = TQ_STATEMENT(
	"SELECT * FROM tq_internal.group_callback WHERE id = $1 FOR UPDATE SKIP LOCKED",
	INT8OID);

static TqStatement delete_row =
	TQ_STATEMENT("DELETE FROM tq_internal.group_callback WHERE id = $1",
				 INT8OID);

static TqStatement find_row =
	TQ_STATEMENT("SELECT FROM tq_internal.group_callback WHERE id = $1",
				 INT8OID);

static TqStatement find_rows = TQ_STATEMENT(
	"SELECT id FROM tq_internal.group_callback WHERE task_group_id = ANY ($1) ORDER BY id",
	TQ_SLUGIDS);

TQ_READER(read_row, TqCallback, TQ_GROUP_CALLBACK_COLUMNS, group_callback)

/* Inserts a callback; returns false if there is one with the same task_id. */
bool
tq_callback_insert(const TqCallback *callback)
{
	Datum values[] = {Int64GetDatum(callback->id),
					  TimestampTzGetDatum(callback->registered),
					  PointerGetDatum(&callback->task_group_id),
					  PointerGetDatum(&callback->task_id),
					  ObjectIdGetDatum(callback->role),
					  callback->client == NULL
						  ? (Datum) 0
						  : CStringGetTextDatum(callback->client),
					  JsonbPGetDatum(callback->definition)};
	const char *nulls = callback->client == NULL ? "     n " : NULL;

	return tq_spi_run(&insert_row, values, nulls) > 0;
}

/*
 * Locks and reads a callback; returns false if it does not exist, or another
 * session has locked it.
 */
bool
tq_callback_lock(int64 id, TqCallback *callback)
{
	return tq_spi_read(&lock_row, TQ_VALUES(Int64GetDatum(id)), read_row,
					   callback);
}

/* Returns whether a callback exists. */
bool
tq_callback_exists(int64 id)
{
	return tq_spi_exists(&find_row, TQ_VALUES(Int64GetDatum(id)));
}

/* Deletes a callback. */
void
tq_callback_delete(int64 id)
{
	tq_spi_run(&delete_row, TQ_VALUES(Int64GetDatum(id)), NULL);
}

/* Returns whether there is, or was, a callback since the last vacuum. */
static bool
was_used(void)
{
	TqTable *table = tq_table_open(&callback_table);
	bool used = RelationGetNumberOfBlocks(table->rel) > 0;

	tq_table_close(table);
	return used;
}

/*
 * Returns the ids of the callbacks of these groups.  Most databases have none,
 * and most tasks are a group: these are spared the look-ups.
 */
int64 *
tq_callbacks_of_groups(const TqSlug *groups, int n, int *found)
{
	*found = 0;
	if (!was_used())
		return NULL;
	return tq_spi_run_ids(&find_rows, TQ_VALUES(tq_array_slugid(groups, n)),
						  found);
}
