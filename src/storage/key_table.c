/*
 * key_table.c
 *	  Rows of tq_internal.task_key: the keys that tasks have by their policies;
 *	  and of tq_internal.unique_key: which task has a unique key, or had it last.
 *
 * A policy says which kinds of keys its tasks have (TqPolicy.keys), and the
 * rows here say which key each of them has.  Most tasks have none.  The rows are
 * deleted with the task.
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "columns.h"
#include "tasks.h"

TQ_NUMBERS(TQ_TASK_KEY_COLUMNS, task_key);

static TqStatement insert_keys = TQ_STATEMENT(
	"INSERT INTO tq_internal.task_key (task, kind, key) SELECT * FROM unnest($1, $2, $3)",
	INT8ARRAYOID, INT4ARRAYOID, TEXTARRAYOID);

static TqStatement read_keys = TQ_STATEMENT(
	"SELECT task, kind, key FROM tq_internal.task_key WHERE task = $1",
	INT8OID);

/* Inserts keys of new tasks. */
void
tq_task_keys_insert(const TqKeyOfTask *keys, int n)
{
	int64 *tasks = palloc(sizeof(int64) * Max(n, 1));
	int32 *kinds = palloc(sizeof(int32) * Max(n, 1));
	char **texts = palloc(sizeof(char *) * Max(n, 1));

	if (n == 0)
		return;
	for (int i = 0; i < n; i++)
	{
		tasks[i] = keys[i].task;
		kinds[i] = keys[i].kind;
		texts[i] = keys[i].key;
	}
	tq_spi_run(&insert_keys,
			   TQ_VALUES(tq_array_int64(tasks, n), tq_array_int32(kinds, n),
						 tq_array_text(texts, n)),
			   NULL);
}

TQ_READER(read_key, TqKeyOfTask, TQ_TASK_KEY_COLUMNS, task_key)

/* Sets keys[], which has TQ_KEYS elements, to those of a task; NULL: none. */
void
tq_task_keys_read(int64 task, char **keys)
{
	int n;
	TqKeyOfTask *rows = tq_spi_read_all(&read_keys,
										TQ_VALUES(Int64GetDatum(task)),
										read_key, sizeof(TqKeyOfTask), &n);

	memset(keys, 0, sizeof(char *) * TQ_KEYS);
	for (int i = 0; i < n; i++)
		keys[rows[i].kind] = rows[i].key;
}

/* ---- unique keys ---- */

/*
 * A row of tq_internal.unique_key is written when a task is created or rerun
 * with the key, and not when the task changes its state, which says whether the
 * task holds the key (lifecycle/unique.c).  The row goes when its task is
 * deleted.  If another session has the row locked then, it stays and names a
 * task that does not exist, as if there were none, until a task is created with
 * that key.
 */

TQ_NUMBERS(TQ_UNIQUE_KEY_COLUMNS, unique_key);

static TqRelation unique_keys = TQ_RELATION("unique_key");
static TqRelation unique_keys_by_key = TQ_RELATION("unique_key_pkey");

/*
 * Locks rows in the order of the arrays, and inserts those that there are not.
 * A row is locked although the condition is never met.
 */
static TqStatement lock_unique_keys = TQ_STATEMENT(
	"INSERT INTO tq_internal.unique_key AS u (queue, key, task)"
	" SELECT x.queue, x.key, 0 FROM unnest($1, $2) AS x (queue, key)"
	" ON CONFLICT (queue, key) DO UPDATE SET task = u.task WHERE false RETURNING queue::bigint",
	INT4ARRAYOID, TEXTARRAYOID);

static TqStatement set_unique_keys = TQ_STATEMENT(
	"UPDATE tq_internal.unique_key AS u SET task = x.task"
	" FROM unnest($1, $2, $3) AS x (queue, key, task) WHERE u.queue = x.queue AND u.key = x.key",
	INT4ARRAYOID, TEXTARRAYOID, INT8ARRAYOID);

/* A row that has another task by now does not match when it is locked. */
static TqStatement release_unique_keys = TQ_STATEMENT(
	"DELETE FROM tq_internal.unique_key WHERE ctid = ANY (ARRAY("
	"SELECT u.ctid FROM tq_internal.task_key k JOIN tq_internal.task t ON t.id = k.task"
	" JOIN tq_internal.unique_key u ON u.queue = ANY (ARRAY[0, t.queue]) AND u.key = k.key AND u.task = k.task"
	" WHERE k.task = ANY ($1) AND k.kind = 0 FOR UPDATE OF u SKIP LOCKED)) RETURNING queue::bigint",
	INT8ARRAYOID);

TQ_READER(read_unique_key, TqUniqueKey, TQ_UNIQUE_KEY_COLUMNS, unique_key)

/* Reads the rows of these keys, which are locked. */
static void
read_unique_keys(TqUniqueKey *keys, int n)
{
	TqScan *scan = tq_scan_open(&unique_keys, &unique_keys_by_key, 2, NULL);

	for (int i = 0; i < n; i++)
	{
		if (!tq_scan_find(scan, Int32GetDatum(keys[i].queue),
						  CStringGetTextDatum(keys[i].key), 0))
			elog(ERROR, "a unique key has no row that was just locked");
		read_unique_key(scan->slot, &keys[i]);
	}
	tq_scan_close(scan);
}

/* Returns which task had a key last, by its row, which is not locked; 0: none. */
int64
tq_unique_key_task(const TqUniqueKey *key)
{
	TqScan *scan = tq_scan_open(&unique_keys, &unique_keys_by_key, 2, NULL);
	TqUniqueKey row = {.task = 0};

	if (tq_scan_find(scan, Int32GetDatum(key->queue),
					 CStringGetTextDatum(key->key), 0))
		read_unique_key(scan->slot, &row);
	tq_scan_close(scan);
	return row.task;
}

/* Returns the first two columns of rows as arrays. */
static void
arrays_of(const TqUniqueKey *keys, int n, Datum *values)
{
	TQ_COLUMN(keys, n, int32, tq_array_int32, queue, values[0]);
	TQ_COLUMN(keys, n, char *, tq_array_text, key, values[1]);
}

/*
 * Locks the rows of these keys, which are in order and without duplicates, and
 * sets their tasks.  Inserts the rows that there are not, with a task of 0; the
 * caller sets another one.
 */
void
tq_unique_keys_lock(TqUniqueKey *keys, int n)
{
	Datum values[2];

	arrays_of(keys, n, values);
	(void) tq_count_changed_rows(TQ_QUEUE_UNIQUE_KEYS, 1, &lock_unique_keys,
								 values);
	read_unique_keys(keys, n);
}

/*
 * Returns whether a key has a row that is visible by this snapshot.  Unless
 * is_locked is NULL, tries to lock the row, and sets it.
 */
static bool
key_has_row(const TqUniqueKey *key, Snapshot snapshot, bool *is_locked)
{
	TqTable *table = tq_table_open(&unique_keys);
	TqScan *scan = tq_scan_begin(table, &unique_keys_by_key, 2, snapshot);
	bool exists = tq_scan_find(scan, Int32GetDatum(key->queue),
							   CStringGetTextDatum(key->key), 0);

	if (is_locked != NULL)
		*is_locked = exists &&
					 tq_table_lock_row(table, scan->slot, TQ_LOCK_SKIP);
	tq_scan_end(scan);
	tq_table_close(table);
	return exists;
}

/*
 * Does the same for a single key, except that it returns false if another
 * session has the row locked, or is inserting or deleting it.
 */
bool
tq_unique_key_try_lock(TqUniqueKey *key)
{
	Snapshot snapshot = RegisterSnapshot(tq_spi_snapshot());
	SnapshotData dirty;
	bool is_locked;
	bool exists = key_has_row(key, snapshot, &is_locked);

	UnregisterSnapshot(snapshot);
	InitDirtySnapshot(dirty);
	if (is_locked)
		read_unique_keys(key, 1);
	else if (exists || key_has_row(key, &dirty, NULL))
		return false;
	else
		tq_unique_keys_lock(key, 1);
	return true;
}

/* Sets the tasks of these keys, whose rows are locked. */
void
tq_unique_keys_set(const TqUniqueKey *keys, int n)
{
	Datum values[3];

	if (n == 0)
		return;
	arrays_of(keys, n, values);
	TQ_COLUMN(keys, n, int64, tq_array_int64, task, values[2]);
	tq_spi_run(&set_unique_keys, values, NULL);
}

/*
 * Deletes the rows of tasks that are about to be deleted, except those that
 * another session has locked.  It runs no statement if there was never a row.
 */
void
tq_unique_keys_release(const int64 *tasks, int n)
{
	TqTable *table = tq_table_open(&unique_keys);
	bool is_empty = RelationGetNumberOfBlocks(table->rel) == 0;

	tq_table_close(table);
	if (!is_empty)
		(void) tq_count_changed_rows(TQ_QUEUE_UNIQUE_KEYS, -1,
									 &release_unique_keys,
									 TQ_VALUES(tq_array_int64(tasks, n)));
}

/* ---- what counters count beside tasks ---- */

/*
 * Runs a statement that inserts or deletes rows and returns their queues, and
 * counts each by that much; returns how many they are.
 */
int
tq_count_changed_rows(int gauge, int by, TqStatement *statement,
					  const Datum *values)
{
	int n;
	const int64 *queues = tq_spi_run_ids(statement, values, &n);

	for (int i = 0; i < n; i++)
		tq_count(TQ_COUNTED_QUEUE, queues[i], gauge, by);
	return n;
}
