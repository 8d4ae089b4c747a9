/*
 * activation.c
 *	  Marks a database as used by a client, which is when maintenance begins.
 *
 * A restore or logical replication fills the tables one after the other, and a
 * maintenance worker that sees a timer but not yet its task would drop the
 * timer.  Maintenance therefore does nothing in a database until a client first
 * calls a function of tq that may write.  A new database has nothing to
 * maintain before that, and a copy stays as it is until a client uses it.
 *
 * The first call inserts a row into tq_internal.activation in its own
 * transaction.  Two concurrent first calls may both insert one, which does no
 * harm, so they need not wait for each other, except in a restored database,
 * where they also move the first tick (tick_table.c).  pg_dump leaves the table
 * out. A backend caches that it has seen a row by the Oid of a table of the
 * extension, which is a different one after DROP and CREATE EXTENSION.  A row
 * that it has inserted itself counts for that transaction only; the next one
 * looks again.  Facts about a database in shared memory are stored only when it
 * is in use.
 */
#include "postgres.h"

#include "access/xact.h"

#include "../rows/rows.h"
#include "log.h"
#include "registry.h"

static TqRelation activations = TQ_RELATION("activation");

static TqStatement insert_activation =
	TQ_STATEMENT("INSERT INTO tq_internal.activation (since) VALUES ($1)",
				 TIMESTAMPTZOID);

/* The extension known to be active, by tq_locked_table. */
static Oid active = InvalidOid;

/* The transaction that inserted the row, if this backend did. */
static TransactionId inserted_by = InvalidTransactionId;

/* Returns whether there is a row. */
static bool
activation_has_row(void)
{
	TqTableScan *scan = tq_table_scan_open(&activations);
	bool found = tq_table_scan_next(scan);

	tq_table_scan_close(scan);
	return found;
}

/*
 * Returns whether this database is in use.  The caller has called
 * tq_call_begin().
 */
bool
tq_activation_is_done(void)
{
	Oid extension = tq_locked_table;
	TqFacts facts;
	uint64 change;

	if (active == extension &&
		(inserted_by == InvalidTransactionId ||
		 TransactionIdIsCurrentTransactionId(inserted_by)))
		return true;
	inserted_by = InvalidTransactionId;
	active = tq_facts_find(extension, &facts, &change) || activation_has_row()
				 ? extension
				 : InvalidOid;
	return active == extension;
}

/*
 * Returns whether this database is in use by a row that another transaction
 * has committed.
 */
bool
tq_activation_is_committed(void)
{
	return active == tq_locked_table && inserted_by == InvalidTransactionId;
}

/* Marks this database as in use.  The caller has called tq_call_begin(). */
static void
activate(void)
{
	tq_spi_run(&insert_activation,
			   TQ_VALUES(TimestampTzGetDatum(tq_clock_now())), NULL);
	tq_tick_begin_ids();
	tq_request_add(TQ_REQUEST_WAKE, MyDatabaseId);
	active = tq_locked_table;
	inserted_by = GetCurrentTransactionId();
}

/* The same, unless it is in use. */
void
tq_activation_do(void)
{
	if (!tq_activation_is_done())
		activate();
}

/*
 * Begins a call of the API: opens SPI, and keeps the extension from being
 * dropped until the end of the transaction.  The first call that may write
 * activates maintenance of the database.  A call that only reads sees one
 * snapshot.
 */
void
tq_call_begin(bool read_only)
{
	tq_spi_open(read_only);
	if (read_only)
		return;
	if (tq_clock_offset != 0)
		tq_clock_note_other();
	if (!tq_activation_is_done())
		activate();
}

/*
 * Begins a call that may write, or do nothing for a caller without rights and
 * raise no error.  Unlike tq_call_begin() it does not activate maintenance; the
 * caller calls tq_activation_do() once it is known that the call writes.
 */
void
tq_call_begin_idle(void)
{
	tq_spi_open(false);
	(void) tq_activation_is_done();
}
