/*
 * task_key_table.c
 *	  Rows of tq_internal.task_key: the keys that tasks have by their policies.
 *
 * A policy says which kinds of keys its tasks have (TqPolicy.keys), and the rows
 * here say which key each of them has.  Most tasks have none.  The rows are
 * deleted with the task.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "../core/policy.h"
#include "../util/util.h"
#include "columns.h"
#include "rows.h"
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

struct TqTaskKeyReader
{
	TqScan *scan;
	TqTaskKey kind;
};

/* Begins to look up keys, also those that this transaction has inserted. */
TqTaskKeyReader *
tq_task_key_reader_begin(TqTaskKey kind)
{
	static TqRelation task_key = TQ_RELATION("task_key");
	static TqRelation by_task = TQ_RELATION("task_key_pkey");
	TqTaskKeyReader *reader = palloc(sizeof(TqTaskKeyReader));

	reader->kind = kind;
	reader->scan = tq_scan_open(&task_key, &by_task, 2, SnapshotSelf);
	return reader;
}

/* Returns the key of a task, or NULL. */
char *
tq_task_key_find(TqTaskKeyReader *reader, int64 task)
{
	if (!tq_scan_find(reader->scan, Int64GetDatum(task),
					  Int16GetDatum((int16) reader->kind), 0))
		return NULL;
	return tq_row_text(reader->scan->slot, Anum_task_key_key);
}

/* Ends the look-ups. */
void
tq_task_key_reader_end(TqTaskKeyReader *reader)
{
	tq_scan_close(reader->scan);
}

/* Begins a scan of the tasks with a fairness key, newest first. */
TqScan *
tq_task_key_scan_begin(const char *key, Snapshot snapshot)
{
	static TqRelation task_key = TQ_RELATION("task_key");
	static TqRelation fair = TQ_RELATION("task_key_fair");
	TqScan *scan = tq_scan_open(&task_key, &fair, 1, snapshot);

	tq_scan_seek(scan, CStringGetTextDatum(key), 0, 0);
	return scan;
}

/* Sets *task to the next one, which is older; returns false if there is none. */
bool
tq_task_key_scan_next(TqScan *scan, int64 *task)
{
	if (!tq_scan_previous(scan))
		return false;
	*task = tq_row_int64(scan->slot, Anum_task_key_task);
	return true;
}
