/*
 * audit_table.c
 *	  Rows of tq_internal.audit: which role made which call.
 *
 * Roles are stored by name, because a row outlives its role.  Rows are only
 * inserted, and deleted when they are too old, in the order of the primary key,
 * which begins with the time.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "../util/util.h"
#include "registry.h"

static TqStatement insert_row = TQ_STATEMENT(
	"INSERT INTO tq_internal.audit (at, session_role, role, client_ids, function,"
	" task_ids, run_ids, arguments) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
	TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTARRAYOID, TEXTOID, TQ_SLUGIDS,
	INT4ARRAYOID, JSONBOID);

static TqStatement delete_old = TQ_STATEMENT(
	"DELETE FROM tq_internal.audit a USING (SELECT o.at, o.id FROM tq_internal.audit o"
	" WHERE o.at < $1 ORDER BY o.at, o.id LIMIT $2 FOR UPDATE SKIP LOCKED) AS old"
	" WHERE a.at = old.at AND a.id = old.id",
	TIMESTAMPTZOID, INT4OID);

/* Inserts a row. */
void
tq_audit_insert(const TqAuditRow *row)
{
	Datum values[] = {TimestampTzGetDatum(row->at),
					  CStringGetTextDatum(row->session_role),
					  CStringGetTextDatum(row->role),
					  tq_array_text(row->clients, row->nclients),
					  CStringGetTextDatum(row->function),
					  tq_array_slugid(row->tasks, row->n),
					  tq_array_int32(row->runs,
									 row->runs == NULL ? 0 : row->n),
					  JsonbPGetDatum(row->arguments)};
	char nulls[] = "        ";

	if (row->nclients == 0)
		nulls[3] = 'n';
	if (row->n == 0)
		nulls[5] = 'n';
	if (row->runs == NULL)
		nulls[6] = 'n';
	tq_spi_run(&insert_row, values, nulls);
}

/*
 * Deletes up to `max` rows from before a time, the oldest first, skipping
 * locked ones; returns their number.
 */
int
tq_audit_delete(TimestampTz before, int max)
{
	return (int) tq_spi_run(&delete_old,
							TQ_VALUES(TimestampTzGetDatum(before),
									  Int32GetDatum(max)),
							NULL);
}
