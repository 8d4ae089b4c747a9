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

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "../core/types.h"
#include "../util/spi.h"
#include "artifact_table.h"
#include "run_table.h"

#define BRIEF                                                                 \
	"a.run_id, a.name, a.storage_type, a.content_type, a.content_length,"     \
	" a.expires, a.present"
#define OF_RUN                                                                \
	" FROM tq_internal.artifact a WHERE a.task = $1 AND a.run_id = $2"
#define OF_NAME OF_RUN " AND a.name = $3"

static TqStatement lock_run =
	TQ_STATEMENT("SELECT state, worker, resolved FROM tq_internal.run"
				 " WHERE task = $1 AND run_id = $2 FOR SHARE",
				 INT8OID, INT4OID);

static TqStatement insert_artifact = TQ_STATEMENT(
	"INSERT INTO tq_internal.artifact (task, run_id, name, storage_type, content_type,"
	" content_length, expires, present, details)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
	" ON CONFLICT (task, run_id, name) DO NOTHING",
	INT8OID, INT4OID, TEXTOID, INT2OID, TEXTOID, INT8OID, TIMESTAMPTZOID,
	BOOLOID, JSONBOID);

static TqStatement update_artifact = TQ_STATEMENT(
	"UPDATE tq_internal.artifact SET storage_type = $4, expires = $5, present = $6,"
	" details = $7 WHERE task = $1 AND run_id = $2 AND name = $3",
	INT8OID, INT4OID, TEXTOID, INT2OID, TIMESTAMPTZOID, BOOLOID, JSONBOID);

static TqStatement find_brief = TQ_STATEMENT("SELECT " BRIEF OF_NAME, INT8OID,
											 INT4OID, TEXTOID);

static TqStatement find_whole = TQ_STATEMENT("SELECT " BRIEF
											 ", a.details" OF_NAME,
											 INT8OID, INT4OID, TEXTOID);

static TqStatement lock_whole =
	TQ_STATEMENT("SELECT " BRIEF ", a.details" OF_NAME " FOR UPDATE", INT8OID,
				 INT4OID, TEXTOID);

static TqStatement list_brief = TQ_STATEMENT(
	"SELECT " BRIEF OF_RUN
	" AND a.name COLLATE \"C\" > $3 ORDER BY a.name COLLATE \"C\" LIMIT $4",
	INT8OID, INT4OID, TEXTOID, INT4OID);

static TqStatement delete_expired = TQ_STATEMENT(
	"WITH old AS MATERIALIZED (SELECT a.task, a.run_id, a.name FROM tq_internal.artifact a"
	" WHERE a.expires < $1 ORDER BY a.expires LIMIT $2 FOR UPDATE SKIP LOCKED)"
	" DELETE FROM tq_internal.artifact a USING old"
	" WHERE a.task = old.task AND a.run_id = old.run_id AND a.name = old.name",
	TIMESTAMPTZOID, INT4OID);

static TqStatement delete_of_tasks =
	TQ_STATEMENT("DELETE FROM tq_internal.artifact WHERE task = ANY ($1)",
				 INT8ARRAYOID);

/*
 * Locks a run against transitions until the end of the transaction, and reads
 * its state, worker and resolved.  Returns false if the run has no row.
 */
bool
tq_artifact_lock_run(int64 task, int run_id, TqRun *run)
{
	Datum values[2] = {Int64GetDatum(task), Int32GetDatum(run_id)};
	bool found = tq_spi_run(&lock_run, values, NULL) > 0;

	memset(run, 0, sizeof(*run));
	if (found)
	{
		run->task = task;
		run->location = TQ_LOCATION_RUN;
		run->run_id = run_id;
		run->state = (TqState) tq_spi_int16(0, 1, 0);
		run->worker = tq_spi_int32(0, 2, 0);
		run->resolved = tq_spi_time(0, 3);
	}
	tq_spi_free_result();
	return found;
}

/*
 * Inserts an artifact.  Returns false if the run has one of that name already;
 * waits for a concurrent inserter of that name to end.
 */
bool
tq_artifact_insert(const TqArtifact *artifact)
{
	Datum v[9];
	char n[10] = "         ";

	v[0] = Int64GetDatum(artifact->task);
	v[1] = Int32GetDatum(artifact->run_id);
	v[2] = CStringGetTextDatum(artifact->name);
	v[3] = Int16GetDatum(artifact->storage);
	v[4] = CStringGetTextDatum(artifact->content_type);
	v[5] = Int64GetDatum(artifact->content_length);
	n[5] = artifact->content_length < 0 ? 'n' : ' ';
	v[6] = TimestampTzGetDatum(artifact->expires);
	v[7] = BoolGetDatum(artifact->present);
	v[8] = JsonbPGetDatum(artifact->details);
	return tq_spi_run(&insert_artifact, v, n) == 1;
}

/* Writes the columns that may change of an artifact that is locked. */
void
tq_artifact_update(const TqArtifact *artifact)
{
	Datum v[7];

	v[0] = Int64GetDatum(artifact->task);
	v[1] = Int32GetDatum(artifact->run_id);
	v[2] = CStringGetTextDatum(artifact->name);
	v[3] = Int16GetDatum(artifact->storage);
	v[4] = TimestampTzGetDatum(artifact->expires);
	v[5] = BoolGetDatum(artifact->present);
	v[6] = JsonbPGetDatum(artifact->details);
	tq_spi_run(&update_artifact, v, NULL);
}

static void
read_artifact(uint64 row, int64 task, bool whole, TqArtifact *artifact)
{
	artifact->task = task;
	artifact->run_id = tq_spi_int16(row, 1, 0);
	artifact->name = tq_spi_text(row, 2);
	artifact->storage = (TqStorage) tq_spi_int16(row, 3, 0);
	artifact->content_type = tq_spi_text(row, 4);
	artifact->content_length = tq_spi_int64(row, 5, -1);
	artifact->expires = tq_spi_time(row, 6);
	artifact->present = tq_spi_bool(row, 7);
	artifact->details = whole ? tq_spi_jsonb(row, 8) : NULL;
}

static bool
read_one(TqStatement *statement, int64 task, int run_id, const char *name,
		 bool whole, TqArtifact *artifact)
{
	Datum values[3] = {Int64GetDatum(task), Int32GetDatum(run_id),
					   CStringGetTextDatum(name)};
	bool found = tq_spi_run(statement, values, NULL) > 0;

	if (found)
		read_artifact(0, task, whole, artifact);
	tq_spi_free_result();
	return found;
}

/*
 * Reads an artifact, with its details if `whole`; returns false if there is
 * none.
 */
bool
tq_artifact_find(int64 task, int run_id, const char *name, bool whole,
				 TqArtifact *artifact)
{
	return read_one(whole ? &find_whole : &find_brief, task, run_id, name,
					whole, artifact);
}

/*
 * Locks an artifact and reads it with its details; returns false if there is
 * none, or it was deleted meanwhile.
 */
bool
tq_artifact_lock(int64 task, int run_id, const char *name,
				 TqArtifact *artifact)
{
	return read_one(&lock_whole, task, run_id, name, true, artifact);
}

/*
 * Returns a page of a run's artifacts in order of their names, beginning after
 * the name `after`; '' is before every name.
 */
TqArtifact *
tq_artifacts_of_run(int64 task, int run_id, const char *after, int max,
					int *found)
{
	Datum values[4] = {Int64GetDatum(task), Int32GetDatum(run_id),
					   CStringGetTextDatum(after), Int32GetDatum(max)};
	TqArtifact *artifacts;

	*found = (int) tq_spi_run(&list_brief, values, NULL);
	artifacts = palloc(sizeof(TqArtifact) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
		read_artifact(i, task, false, &artifacts[i]);
	tq_spi_free_result();
	return artifacts;
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

/* Deletes the artifacts of tasks that are being deleted. */
void
tq_artifacts_delete_of_tasks(const int64 *tasks, int n)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	tq_spi_run(&delete_of_tasks, values, NULL);
}
