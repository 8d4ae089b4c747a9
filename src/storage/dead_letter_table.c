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

#include "catalog/pg_type.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "../core/types.h"
#include "../util/slugid.h"
#include "../util/spi.h"
#include "dead_letter_table.h"
#include "table.h"

#define LETTER                                                                \
	"l.task_id, l.task, l.queue, l.failed_at, l.reason, l.error, l.definition, l.runs, l.seq"

static TqStatement insert_letter = TQ_STATEMENT(
	"INSERT INTO tq_internal.dead_letter"
	" (task_id, task, queue, failed_at, reason, error, definition, runs, seq)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
	" ON CONFLICT (task_id) DO UPDATE SET task = excluded.task,"
	" queue = excluded.queue, failed_at = excluded.failed_at, reason = excluded.reason,"
	" error = excluded.error, definition = excluded.definition, runs = excluded.runs,"
	" seq = excluded.seq",
	TQ_SLUGID, INT8OID, INT4OID, TIMESTAMPTZOID, INT2OID, JSONBOID, JSONBOID,
	JSONBOID, INT8OID);

#define FIND_LETTER                                                           \
	"SELECT " LETTER " FROM tq_internal.dead_letter l"                        \
	" WHERE l.task_id = $1 FOR "

/* Indexed by TqLock. */
static TqStatement lock_letter[] =
	{[TQ_LOCK_SHARE] = TQ_STATEMENT(FIND_LETTER "SHARE", TQ_SLUGID),
	 [TQ_LOCK_UPDATE] = TQ_STATEMENT(FIND_LETTER "UPDATE", TQ_SLUGID),
	 [TQ_LOCK_SKIP] = TQ_STATEMENT(FIND_LETTER "UPDATE SKIP LOCKED",
								   TQ_SLUGID)};

static TqStatement delete_letter =
	TQ_STATEMENT("DELETE FROM tq_internal.dead_letter l WHERE l.task_id = $1",
				 TQ_SLUGID);

static TqStatement by_age = TQ_STATEMENT(
	"SELECT l.task_id, l.failed_at, l.seq FROM tq_internal.dead_letter l"
	" WHERE l.queue = $1 AND l.failed_at >= $2"
	" AND (l.failed_at > $2 OR l.seq > $3)"
	" ORDER BY l.failed_at, l.seq LIMIT $4",
	INT4OID, TIMESTAMPTZOID, INT8OID, INT4OID);

static TqStatement list = TQ_STATEMENT("SELECT " LETTER
									   " FROM tq_internal.dead_letter l"
									   " WHERE l.queue = $1 AND l.task_id > $2"
									   " ORDER BY l.task_id LIMIT $3",
									   INT4OID, TQ_SLUGID, INT4OID);

/* Inserts a dead letter, or replaces the one that has the same task id. */
void
tq_dead_letter_insert(const TqDeadLetter *letter)
{
	Datum v[9];
	char n[10] = "         ";

	v[0] = PointerGetDatum(&letter->task_id);
	v[1] = Int64GetDatum(letter->task);
	v[2] = Int32GetDatum(letter->queue);
	v[3] = TimestampTzGetDatum(letter->failed_at);
	v[4] = Int16GetDatum((int16) letter->reason);
	v[5] = JsonbPGetDatum(letter->error);
	n[5] = letter->error == NULL ? 'n' : ' ';
	v[6] = JsonbPGetDatum(letter->definition);
	v[7] = JsonbPGetDatum(letter->runs);
	v[8] = Int64GetDatum(tq_id_next());
	tq_spi_run(&insert_letter, v, n);
}

/* Reads a row that has the columns of LETTER. */
static void
read_letter(uint64 row, TqDeadLetter *letter)
{
	letter->task_id = tq_spi_slug(row, 1);
	letter->task = tq_spi_int64(row, 2, 0);
	letter->queue = tq_spi_int32(row, 3, 0);
	letter->failed_at = tq_spi_time(row, 4);
	letter->reason = (TqResolved) tq_spi_int16(row, 5, 0);
	letter->error = tq_spi_jsonb(row, 6);
	letter->definition = tq_spi_jsonb(row, 7);
	letter->runs = tq_spi_jsonb(row, 8);
	letter->seq = tq_spi_int64(row, 9, 0);
}

/*
 * Locks and reads the dead letter of a task.  Returns false if there is none
 * or, under TQ_LOCK_SKIP, if another session has locked it.
 */
bool
tq_dead_letter_lock(const TqSlug *task_id, TqLock mode, TqDeadLetter *letter)
{
	Datum values[1] = {PointerGetDatum(task_id)};
	bool found = tq_spi_run(&lock_letter[mode], values, NULL) > 0;

	if (found)
		read_letter(0, letter);
	tq_spi_free_result();
	return found;
}

/* Deletes a dead letter; returns false if there is none. */
bool
tq_dead_letter_delete(const TqSlug *task_id)
{
	Datum values[1] = {PointerGetDatum(task_id)};

	return tq_spi_run(&delete_letter, values, NULL) > 0;
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
	TqDeadLetter *letters;

	*found = (int) tq_spi_run(&by_age, values, NULL);
	letters = palloc0(sizeof(TqDeadLetter) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
	{
		letters[i].task_id = tq_spi_slug(i, 1);
		letters[i].failed_at = tq_spi_time(i, 2);
		letters[i].seq = tq_spi_int64(i, 3, 0);
	}
	tq_spi_free_result();
	return letters;
}

/*
 * Returns a page of the dead letters of a queue, by task id, beginning after
 * the id `after`.
 */
TqDeadLetter *
tq_dead_letters_list(int32 queue, const TqSlug *after, int max, int *found)
{
	Datum values[3] = {Int32GetDatum(queue), PointerGetDatum(after),
					   Int32GetDatum(max)};
	TqDeadLetter *letters;

	*found = (int) tq_spi_run(&list, values, NULL);
	letters = palloc(sizeof(TqDeadLetter) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
		read_letter(i, &letters[i]);
	tq_spi_free_result();
	return letters;
}
