/*
 * dead_letter_table.c
 *	  Rows of tq_internal.dead_letter: tasks that failed finally, and how.
 *
 * There is one row per task id.  It holds the whole definition and the runs,
 * because it outlives the task.  The column `task` has the number of the task,
 * which distinguishes it from a later task with the same task id.
 *
 * Dead letters are ordered by `died`, which has a resolution of a millisecond,
 * and within a millisecond by `seq`, the order of writing.
 *
 * Locks: a session that writes or deletes the dead letter of a task that
 * exists holds the lock on the task's current row.  Only after the task was
 * deleted can two sessions compete for the dead letter itself.  So the lock on
 * a task's row comes before the one on its dead letter.
 */
#include "postgres.h"

#include "columns.h"
#include "tasks.h"

TQ_NUMBERS(TQ_DEAD_LETTER_COLUMNS, dead_letter);

static TqStatement insert_letter = TQ_STATEMENT(
	"INSERT INTO tq_internal.dead_letter"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
	" ON CONFLICT (task_id) DO UPDATE SET task = excluded.task,"
	" queue = excluded.queue, failed_at = excluded.failed_at, reason = excluded.reason,"
	" error = excluded.error, definition = excluded.definition, runs = excluded.runs,"
	" seq = excluded.seq",
	TQ_SLUGID, INT8OID, INT4OID, TIMESTAMPTZOID, INT8OID, INT2OID, JSONBOID,
	JSONBOID, JSONBOID);

#define FIND_LETTER                                                           \
	"SELECT l.*"                                                              \
	" FROM tq_internal.dead_letter l"                                         \
	" WHERE l.task_id = $1"

static TqStatement find_letter = TQ_STATEMENT(FIND_LETTER, TQ_SLUGID);

/* Indexed by TqLock. */
static TqStatement lock_letter[] =
	{[TQ_LOCK_SHARE] = TQ_STATEMENT(FIND_LETTER " FOR SHARE", TQ_SLUGID),
	 [TQ_LOCK_UPDATE] = TQ_STATEMENT(FIND_LETTER " FOR UPDATE", TQ_SLUGID),
	 [TQ_LOCK_SKIP] = TQ_STATEMENT(FIND_LETTER " FOR UPDATE SKIP LOCKED",
								   TQ_SLUGID)};

static TqStatement delete_letter =
	TQ_STATEMENT("DELETE FROM tq_internal.dead_letter l WHERE l.task_id = $1",
				 TQ_SLUGID);

/* The index on the time begins with the queue. */
static TqStatement delete_old = TQ_STATEMENT(
	"DELETE FROM tq_internal.dead_letter l USING (SELECT o.task_id FROM tq_internal.queue q,"
	" LATERAL (SELECT d.task_id FROM tq_internal.dead_letter d WHERE d.queue = q.id"
	" AND d.failed_at < $1 ORDER BY d.failed_at, d.seq LIMIT $2 FOR UPDATE SKIP LOCKED) AS o LIMIT $2) AS old"
	" WHERE l.task_id = old.task_id",
	TIMESTAMPTZOID, INT4OID);

static TqStatement by_age = TQ_STATEMENT(
	"SELECT l.task_id, l.failed_at, l.seq FROM tq_internal.dead_letter l"
	" WHERE l.queue = $1 AND l.failed_at >= $2"
	" AND (l.failed_at > $2 OR l.seq > $3)"
	" ORDER BY l.failed_at, l.seq LIMIT $4",
	INT4OID, TIMESTAMPTZOID, INT8OID, INT4OID);

/* Inserts a dead letter, or replaces the one that has the same task id. */
void
tq_dead_letter_insert(const TqDeadLetter *letter)
{
	Datum v[] = {PointerGetDatum(&letter->task_id),
				 Int64GetDatum(letter->task),
				 Int32GetDatum(letter->queue),
				 TimestampTzGetDatum(letter->failed_at),
				 Int64GetDatum(tq_id_next()),
				 Int16GetDatum((int16) letter->reason),
				 JsonbPGetDatum(letter->error),
				 JsonbPGetDatum(letter->definition),
				 JsonbPGetDatum(letter->runs)};
	char n[] = "         ";

	if (letter->error == NULL)
		n[Anum_dead_letter_error - 1] = 'n';
	tq_spi_run(&insert_letter, v, n);
}

TQ_READER(read_letter, TqDeadLetter, TQ_DEAD_LETTER_COLUMNS, dead_letter)

static void
dead_letter_read_age(TupleTableSlot *slot, void *letter)
{
	*(TqDeadLetter *) letter = (TqDeadLetter){.task_id = tq_row_slug(slot, 1),
											  .failed_at = tq_row_time(slot,
																	   2),
											  .seq = tq_row_int64(slot, 3)};
}

/* Reads the dead letter of a task; returns false if there is none. */
bool
tq_dead_letter_get(const TqSlug *task_id, TqDeadLetter *letter)
{
	return tq_spi_read(&find_letter, TQ_VALUES(PointerGetDatum(task_id)),
					   read_letter, letter);
}

/*
 * Locks and reads the dead letter of a task.  Returns false if there is none
 * or, under TQ_LOCK_SKIP, if another session has locked it.
 */
bool
tq_dead_letter_lock(const TqSlug *task_id, TqLock mode, TqDeadLetter *letter)
{
	return tq_spi_read(&lock_letter[mode], TQ_VALUES(PointerGetDatum(task_id)),
					   read_letter, letter);
}

/* Deletes a dead letter; returns false if there is none. */
bool
tq_dead_letter_delete(const TqSlug *task_id)
{
	return tq_spi_run(&delete_letter, TQ_VALUES(PointerGetDatum(task_id)),
					  NULL) > 0;
}

/*
 * Deletes up to `max` dead letters of tasks that failed before a time, skipping
 * locked ones; returns their number.
 */
int
tq_dead_letters_delete(TimestampTz before, int max)
{
	return (int) tq_spi_run(&delete_old,
							TQ_VALUES(TimestampTzGetDatum(before),
									  Int32GetDatum(max)),
							NULL);
}

/*
 * Returns the next dead letters of a queue after the given one, oldest first,
 * without locks.  Reads only task_id, died and seq, which is all that the next
 * call needs.
 */
TqDeadLetter *
tq_dead_letters_by_age(int32 queue, const TqDeadLetter *after, int max,
					   int *found)
{
	Datum values[4] = {Int32GetDatum(queue),
					   TimestampTzGetDatum(after->failed_at),
					   Int64GetDatum(after->seq), Int32GetDatum(max)};

	return tq_spi_read_all(&by_age, values, dead_letter_read_age,
						   sizeof(TqDeadLetter), found);
}

/* ---- tasks that ended without success ---- */

/*
 * Rows of tq_internal.failure: tasks that ended without success.
 *
 * There is a row for each task whose last run has failed or ended as an
 * exception, so that a reader finds these tasks without reading all runs.  An
 * index on the state of runs would do the same, but then no update of a run
 * would be HOT.  The row is written and deleted under the lock of the task's
 * current row.
 */

TQ_NUMBERS(TQ_FAILURE_COLUMNS, failure);

static TqRelation failure_table = TQ_RELATION("failure");

static TqStatement delete_failures =
	TQ_STATEMENT("DELETE FROM tq_internal.failure WHERE task = ANY ($1)",
				 INT8ARRAYOID);

static void
put_failure(TupleTableSlot *slot, const TqFailure *row)
{
	TQ_FAILURE_COLUMNS(TQ_PUT, failure);
}

/* Records that these tasks have ended without success. */
void
tq_failures_insert(const TqFailure *failures, int n)
{
	TqTable *table;

	if (n == 0)
		return;
	table = tq_table_open(&failure_table);
	for (int i = 0; i < n; i++)
		put_failure(tq_table_new_row(table), &failures[i]);
	tq_table_close(table);
}

/* Deletes the rows of tasks that become pending or unscheduled again. */
void
tq_failures_delete(const int64 *tasks, int n)
{
	tq_spi_run(&delete_failures, TQ_VALUES(tq_array_int64(tasks, n)), NULL);
}
