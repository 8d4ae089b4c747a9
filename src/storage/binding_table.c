/*
 * binding_table.c
 *	  Rows of tq_internal.binding and tq_internal.disabled_channel: which
 *	  messages are sent to which channel.
 *
 * Every transition needs to know which exchanges have a binding and which
 * segment of the message log is written to, so each session caches that, and
 * a new session finds it in shared memory (database_facts.c).  A session that
 * changes one of the tables sends a relcache invalidation of
 * tq_internal.binding, so that every transaction that begins after the commit
 * reads them again.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/inval.h"

#include "../core/types.h"
#include "../rows/rows.h"
#include "../shmem/shmem.h"
#include "../util/util.h"
#include "log.h"

static Oid watched = InvalidOid; /* tq_internal.binding */
static uint64 generation = 1;

static TqRelation bindings = TQ_RELATION("binding");
static TqRelation subscription_bindings = TQ_RELATION("subscription_binding");
static TqRelation disabled_channels = TQ_RELATION("disabled_channel");

/* The column `exchange` of these tables, numbered from 1. */
#define BINDING_EXCHANGE 2
#define DISABLED_EXCHANGE 1

static TqStatement list_bindings = TQ_STATEMENT(
	"SELECT channel, exchange, pattern FROM tq_internal.binding"
	" UNION ALL SELECT NULL, e, '#' FROM generate_series(1, $1) AS e"
	" WHERE NOT EXISTS (SELECT FROM tq_internal.disabled_channel u WHERE u.exchange = e)",
	INT4OID);

/* ---- the cache of each session ---- */

/* Relcache callback: notes that tq_internal.binding may have changed. */
static void
forget(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == watched || watched == InvalidOid)
		generation++;
	if (relid == InvalidOid || relid == watched)
		tq_facts_change();
}

/* Returns a number that changes whenever the tables may have changed. */
uint64
tq_bindings_generation(void)
{
	static bool watching = false;

	if (!watching)
		CacheRegisterRelcacheCallback(forget, (Datum) 0);
	watching = true;
	return generation;
}

/*
 * Makes all sessions read the tables again once this transaction has
 * committed.
 */
void
tq_bindings_changed(void)
{
	CacheInvalidateRelcacheByRelid(tq_relation_oid(&bindings));
	tq_facts_change_at_commit();
}

/* Returns the exchanges in this column of a table, as bits. */
static int
exchanges_in(TqRelation *table, int column)
{
	TqTableScan *scan = tq_table_scan_open(table);
	int found = 0;

	while (tq_table_scan_next(scan))
	{
		int exchange = tq_row_int16(scan->slot, column);

		if (exchange > TQ_EXCHANGE_NONE && exchange <= TQ_EXCHANGE_LAST)
			found |= 1 << exchange;
	}
	tq_table_scan_close(scan);
	return found;
}

/*
 * Returns the exchanges that have a binding, a subscription or an enabled
 * default channel, as bits.
 */
int
tq_bindings_wanted(void)
{
	int defaults = (2 << TQ_EXCHANGE_LAST_DEFAULT) - (2 << TQ_EXCHANGE_NONE);

	watched = tq_relation_oid(&bindings);
	defaults &= ~exchanges_in(&disabled_channels, DISABLED_EXCHANGE);
	return defaults | exchanges_in(&bindings, BINDING_EXCHANGE) |
		   exchanges_in(&subscription_bindings, BINDING_EXCHANGE);
}

static void
read_binding(TupleTableSlot *slot, void *binding)
{
	*(TqBinding *) binding =
		(TqBinding){.channel = tq_row_text(slot, 1),
					.exchange = (TqExchange) tq_row_int32(slot, 2),
					.pattern = tq_row_text(slot, 3)};
}

/* Returns the bindings that a statement finds. */
TqBinding *
tq_bindings_select(TqStatement *statement, const Datum *values, int *found)
{
	return tq_spi_read_all(statement, values, read_binding, sizeof(TqBinding),
						   found);
}

/*
 * Returns the bindings of all channels; the channel of a default binding is
 * NULL.
 */
TqBinding *
tq_bindings_list(int *found)
{
	Datum values[1] = {Int32GetDatum(TQ_EXCHANGE_LAST_DEFAULT)};

	return tq_bindings_select(&list_bindings, values, found);
}

/* ---- changes ---- */

/*
 * Takes a lock until the end of the transaction, so that what is counted does
 * not grow meanwhile.  Another name may have the same lock.
 */
void
tq_binding_lock(const char *name, TqBindingLockClass class)
{
	uint32 hash = hash_bytes((const unsigned char *) name, strlen(name));
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, hash, class);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}
