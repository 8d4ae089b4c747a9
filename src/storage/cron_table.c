/*
 * cron_table.c
 *	  Rows of tq_internal.cron: recurring tasks.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "../util/util.h"
#include "columns.h"
#include "registry.h"
#include "rows.h"

TQ_NUMBERS(TQ_CRON_COLUMNS, cron);

static TqStatement find =
	TQ_STATEMENT("SELECT * FROM tq_internal.cron WHERE name = $1", TEXTOID);

static TqStatement lock =
	TQ_STATEMENT("SELECT * FROM tq_internal.cron WHERE name = $1 FOR UPDATE",
				 TEXTOID);

/* A definition that replaces another one keeps its id, and what has fired. */
static TqStatement put = TQ_STATEMENT(
	"INSERT INTO tq_internal.cron AS c"
	" (name, id, role, schedule, task_queue_id, overlap, payload, options, created)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
	" ON CONFLICT (name) DO UPDATE SET schedule = excluded.schedule,"
	" task_queue_id = excluded.task_queue_id, overlap = excluded.overlap, paused = false,"
	" payload = excluded.payload, options = excluded.options WHERE c.role = excluded.role",
	TEXTOID, TQ_SLUGID, OIDOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, JSONBOID,
	TIMESTAMPTZOID);

static TqStatement delete =
	TQ_STATEMENT("DELETE FROM tq_internal.cron WHERE name = $1", TEXTOID);

static TqStatement set_paused =
	TQ_STATEMENT("UPDATE tq_internal.cron SET paused = $2 WHERE name = $1",
				 TEXTOID, BOOLOID);

static TqStatement set_fired = TQ_STATEMENT(
	"UPDATE tq_internal.cron SET last_scheduled = $2, last_fired = $3,"
	" last_skipped = $4, last_task = $5 WHERE name = $1",
	TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TQ_SLUGID);

static void
read_cron(TupleTableSlot *slot, void *into)
{
	TqCron *row = into;
	Datum last_task;

	TQ_CRON_FIELDS(TQ_GET, cron)
	last_task = tq_row_value(slot, Anum_cron_last_task);
	row->has_task = DatumGetPointer(last_task) != NULL;
	if (row->has_task)
		row->last_task = *DatumGetTqSlugP(last_task);
}

/* Reads the recurring task of that name; returns false if there is none. */
bool
tq_cron_find(const char *name, TqCron *cron)
{
	return tq_spi_read(&find, TQ_VALUES(CStringGetTextDatum(name)), read_cron,
					   cron);
}

/* The same, and locks it until the transaction ends. */
bool
tq_cron_lock(const char *name, TqCron *cron)
{
	return tq_spi_read(&lock, TQ_VALUES(CStringGetTextDatum(name)), read_cron,
					   cron);
}

/*
 * Inserts a recurring task, or replaces the one of that name.  Returns false if
 * that has another owner.
 */
bool
tq_cron_put(const TqCron *cron)
{
	Datum values[] = {CStringGetTextDatum(cron->name),
					  PointerGetDatum(&cron->id),
					  ObjectIdGetDatum(cron->role),
					  CStringGetTextDatum(cron->schedule),
					  CStringGetTextDatum(cron->task_queue_id),
					  CStringGetTextDatum(cron->overlap),
					  JsonbPGetDatum(cron->payload),
					  JsonbPGetDatum(cron->options),
					  TimestampTzGetDatum(cron->created)};

	return tq_spi_run(&put, values, NULL) > 0;
}

/* Deletes the recurring task of that name. */
void
tq_cron_delete(const char *name)
{
	tq_spi_run(&delete, TQ_VALUES(CStringGetTextDatum(name)), NULL);
}

/* Pauses a recurring task, or resumes it. */
void
tq_cron_set_paused(const char *name, bool is_paused)
{
	tq_spi_run(&set_paused,
			   TQ_VALUES(CStringGetTextDatum(name), BoolGetDatum(is_paused)),
			   NULL);
}

/* Writes what the last firing has left. */
void
tq_cron_set_fired(const TqCron *cron)
{
	Datum values[] = {CStringGetTextDatum(cron->name),
					  TimestampTzGetDatum(cron->last_scheduled),
					  TimestampTzGetDatum(cron->last_fired),
					  TimestampTzGetDatum(cron->last_skipped),
					  PointerGetDatum(&cron->last_task)};
	char nulls[] = {' ', cron->last_scheduled == 0 ? 'n' : ' ',
					cron->last_fired == 0 ? 'n' : ' ',
					cron->last_skipped == 0 ? 'n' : ' ',
					cron->has_task ? ' ' : 'n'};

	tq_spi_run(&set_fired, values, nulls);
}
