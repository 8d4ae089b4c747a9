/*
 * artifact_table.c
 *	  Rows of tq_internal.artifact: metadata of the artifacts of runs, and the
 *	  content of inline artifacts.
 *
 * There is one row per run and name.  The attributes that only some storage
 * types have are in `details`.  It may be large, because it holds the content
 * of an inline artifact, so it is read only on request.
 *
 * Locks: a creator first locks the row of the run FOR SHARE.  Every transition
 * of a run locks that row FOR UPDATE, so the state that the creator saw does
 * not change until it commits, while creators of artifacts of one run do not
 * block each other.  Two sessions that create the same artifact conflict at
 * the primary key.
 *
 * Names are ASCII.  They are compared and ordered byte by byte, independently
 * of the collation of the database.
 */
#include "postgres.h"

#include "columns.h"
#include "tasks.h"

TQ_NUMBERS(TQ_ARTIFACT_COLUMNS, artifact);

static TqStatement lock_run =
	TQ_STATEMENT("SELECT state, worker, resolved FROM tq_internal.run"
				 " WHERE task = $1 AND run_id = $2 FOR SHARE",
				 INT8OID, INT4OID);

static TqStatement insert_artifact = TQ_STATEMENT(
	"INSERT INTO tq_internal.artifact VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
	" ON CONFLICT (task, run_id, name) DO NOTHING",
	INT8OID, TIMESTAMPTZOID, INT8OID, INT2OID, INT2OID, BOOLOID, TEXTOID,
	TEXTOID, JSONBOID);

static TqStatement update_artifact = TQ_STATEMENT(
	"UPDATE tq_internal.artifact SET storage_type = $4, expires = $5, present = $6,"
	" details = $7 WHERE task = $1 AND run_id = $2 AND name = $3",
	INT8OID, INT4OID, TEXTOID, INT2OID, TIMESTAMPTZOID, BOOLOID, JSONBOID);

static TqStatement lock_whole = TQ_STATEMENT(
	"SELECT a.* FROM tq_internal.artifact a"
	" WHERE a.task = $1 AND a.run_id = $2 AND a.name = $3 FOR UPDATE",
	INT8OID, INT4OID, TEXTOID);

static TqStatement delete_expired = TQ_STATEMENT(
	"WITH old AS MATERIALIZED (SELECT a.task, a.run_id, a.name FROM tq_internal.artifact a"
	" WHERE a.expires < $1 ORDER BY a.expires LIMIT $2 FOR UPDATE SKIP LOCKED)"
	" DELETE FROM tq_internal.artifact a USING old"
	" WHERE a.task = old.task AND a.run_id = old.run_id AND a.name = old.name",
	TIMESTAMPTZOID, INT4OID);

static TqRelation artifact_table = TQ_RELATION("artifact");
static TqRelation artifact_by_name = TQ_RELATION("artifact_pkey");

static TqStatement delete_of_tasks =
	TQ_STATEMENT("DELETE FROM tq_internal.artifact WHERE task = ANY ($1)",
				 INT8ARRAYOID);

static void
read_locked_run(TupleTableSlot *slot, void *run)
{
	TqRun *row = run;

	row->state = tq_row_int16(slot, 1);
	row->worker = tq_row_int32(slot, 2);
	row->resolved = tq_row_time(slot, 3);
}

/*
 * Locks a run against transitions until the end of the transaction, and reads
 * its state, worker and resolved.  Returns false if the run has no row.
 */
bool
tq_artifact_lock_run(int64 task, int run_id, TqRun *run)
{
	*run =
		(TqRun){.task = task, .location = TQ_LOCATION_RUN, .run_id = run_id};
	return tq_spi_read(&lock_run,
					   TQ_VALUES(Int64GetDatum(task), Int32GetDatum(run_id)),
					   read_locked_run, run);
}

/*
 * Inserts an artifact.  Returns false if the run has one of that name already;
 * waits for a concurrent inserter of that name to end.
 */
bool
tq_artifact_insert(const TqArtifact *artifact)
{
	Datum v[] = {Int64GetDatum(artifact->task),
				 TimestampTzGetDatum(artifact->expires),
				 Int64GetDatum(artifact->content_length),
				 Int16GetDatum(artifact->run_id),
				 Int16GetDatum(artifact->storage),
				 BoolGetDatum(artifact->present),
				 CStringGetTextDatum(artifact->name),
				 CStringGetTextDatum(artifact->content_type),
				 JsonbPGetDatum(artifact->details)};
	char n[] = "         ";

	if (artifact->content_length < 0)
		n[Anum_artifact_content_length - 1] = 'n';
	return tq_spi_run(&insert_artifact, v, n) == 1;
}

/* Writes the columns that may change of an artifact that is locked. */
void
tq_artifact_update(const TqArtifact *artifact)
{
	Datum v[] = {Int64GetDatum(artifact->task),
				 Int32GetDatum(artifact->run_id),
				 CStringGetTextDatum(artifact->name),
				 Int16GetDatum(artifact->storage),
				 TimestampTzGetDatum(artifact->expires),
				 BoolGetDatum(artifact->present),
				 JsonbPGetDatum(artifact->details)};

	tq_spi_run(&update_artifact, v, NULL);
}

/* Returns a number of bytes, or -1 for NULL. */
static int64
tq_row_length(TupleTableSlot *slot, int column)
{
	bool isnull;
	Datum value = slot_getattr(slot, column, &isnull);

	return isnull ? -1 : DatumGetInt64(value);
}

TQ_READER(read_whole, TqArtifact, TQ_ARTIFACT_COLUMNS, artifact)

/*
 * Locks an artifact and reads it with its details; returns false if there is
 * none, or it was deleted meanwhile.
 */
bool
tq_artifact_lock(int64 task, int run_id, const char *name,
				 TqArtifact *artifact)
{
	return tq_spi_read(&lock_whole,
					   TQ_VALUES(Int64GetDatum(task), Int32GetDatum(run_id),
								 CStringGetTextDatum(name)),
					   read_whole, artifact);
}

/*
 * Deletes up to `max` artifacts that expired before that time, skipping locked
 * rows; returns their number.
 */
int
tq_artifacts_delete_expired(TimestampTz before, int max)
{
	Datum values[2] = {TimestampTzGetDatum(before), Int32GetDatum(max)};

	return (int) tq_spi_run(&delete_expired, values, NULL);
}

/* Deletes the artifacts of tasks that are being deleted, in order of id. */
void
tq_artifacts_delete_of_tasks(const int64 *tasks, int n)
{
	int found;
	int64 *some = tq_scan_those_in(&artifact_table, &artifact_by_name, tasks,
								   n, &found);

	if (found > 0)
		tq_spi_run(&delete_of_tasks, TQ_VALUES(tq_array_int64(some, found)),
				   NULL);
}
