/*
 * subscription_table.c
 *	  Who gets which messages: rows of tq_internal.binding,
 *	  tq_internal.disabled_channel, tq_internal.subscription_binding, and
 *	  tq_internal.subscription: how far durable readers have acknowledged.
 *
 * Every transition needs to know which exchanges have a binding and which
 * segment of the message log is written to, so each session caches that
 * (watched_table.c), and a new session finds it in shared memory
 * (database.c).  tq_internal.binding is watched for all these tables: a
 * session that changes one of them says that it has changed that one.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "storage/lock.h"
#include "utils/inval.h"

#include "../rows/rows.h"
#include "columns.h"
#include "log.h"

/* ---- bindings ---- */

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

static TqWatched watched = {.table = &bindings,
							.generation = 1,
							.note_change = tq_facts_change};

const uint64 *const tq_bindings_generation = &watched.generation;

/* Watches the tables, before they are read. */
void
tq_bindings_watch(void)
{
	tq_watched_begin(&watched);
}

/*
 * Makes all sessions read the tables again once this transaction has committed,
 * and this one at once.
 */
void
tq_bindings_changed(void)
{
	tq_watched_changed(&watched);
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

	tq_watched_read(&watched);
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
static TqBinding *
bindings_select(TqStatement *statement, const Datum *values, int *found)
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

	return bindings_select(&list_bindings, values, found);
}

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

static TqRelation subscription_table = TQ_RELATION("subscription");
static TqRelation subscription_by_name = TQ_RELATION("subscription_pkey");

TQ_NUMBERS(TQ_SUBSCRIPTION_COLUMNS, subscription);

static TqStatement list_subscription_bindings = TQ_STATEMENT(
	"SELECT name, exchange, pattern FROM tq_internal.subscription_binding WHERE name = $1",
	TEXTOID);

/*
 * No row matches if another transaction, for which this one may have waited,
 * has moved the mark.
 */
static TqStatement ack = TQ_STATEMENT(
	"UPDATE tq_internal.subscription SET acked_id = $2, acked_at = $3 WHERE name = $1 AND acked_id = $4",
	TEXTOID, INT8OID, TIMESTAMPTZOID, INT8OID);

/* Skips the row if another session is changing it. */
static TqStatement skip = TQ_STATEMENT(
	"UPDATE tq_internal.subscription SET acked_id = $2, acked_at = $3 WHERE name IN ("
	"SELECT name FROM tq_internal.subscription WHERE name = $1 AND acked_id < $2 FOR UPDATE SKIP LOCKED)",
	TEXTOID, INT8OID, TIMESTAMPTZOID);

static TqStatement slowest = TQ_STATEMENT(
	"SELECT min(t.published) FROM (SELECT min(acked_id) AS acked_id FROM tq_internal.subscription) AS s"
	" CROSS JOIN LATERAL (SELECT published FROM tq_internal.tick WHERE last_id > s.acked_id AND messages > 0"
	" ORDER BY last_id LIMIT 1) AS t",
	InvalidOid);

static TqStatement behind = TQ_STATEMENT(
	"SELECT name, acked_id FROM tq_internal.subscription WHERE acked_id < $1"
	" AND (lost_before IS NULL OR lost_before <= $1)",
	INT8OID);

/*
 * Skips the row if another session is changing it.  No row matches once the
 * subscription has acknowledged the messages.
 */
static TqStatement lose = TQ_STATEMENT(
	"UPDATE tq_internal.subscription SET lost_before = $2 + 1 WHERE name IN ("
	"SELECT name FROM tq_internal.subscription WHERE name = $1 AND acked_id < $2 FOR UPDATE SKIP LOCKED)",
	TEXTOID, INT8OID);

static void
read_position(TupleTableSlot *slot, void *position)
{
	TimestampTz acked_at = tq_row_time(slot, Anum_subscription_acked_at);
	bool isnull;

	*(TqSubscriptionPosition *) position = (TqSubscriptionPosition){
		.id = tq_row_int64(slot, Anum_subscription_acked_id),
		.at = acked_at != 0 ? acked_at
							: tq_row_time(slot, Anum_subscription_created),
		.is_own = TransactionIdIsCurrentTransactionId(DatumGetTransactionId(
			slot_getsysattr(slot, MinTransactionIdAttributeNumber, &isnull)))};
}

/*
 * Reads how far a subscription has acknowledged; returns false if there is
 * none.
 */
bool
tq_subscription_find(const char *name, TqSubscriptionPosition *position)
{
	return tq_scan_read(tq_scan_open(&subscription_table,
									 &subscription_by_name, 1, NULL),
						CStringGetTextDatum(name), 0, 0, read_position,
						position);
}

/* Returns the bindings of a subscription. */
TqBinding *
tq_subscription_bindings(const char *name, int *found)
{
	return bindings_select(&list_subscription_bindings,
						   TQ_VALUES(CStringGetTextDatum(name)), found);
}

/*
 * Acknowledges the messages up to that id.  Returns false if the subscription
 * is gone, or another transaction has moved its mark from `before`.
 */
bool
tq_subscription_ack(const char *name, int64 id, int64 before, TimestampTz now)
{
	Datum values[4] = {CStringGetTextDatum(name), Int64GetDatum(id),
					   TimestampTzGetDatum(now), Int64GetDatum(before)};

	return tq_spi_run(&ack, values, NULL) > 0;
}

/*
 * Advances a subscription past messages none of which matches it, without
 * waiting for a concurrent acknowledgement.
 */
void
tq_subscription_skip(const char *name, int64 id, TimestampTz now)
{
	Datum values[3] = {CStringGetTextDatum(name), Int64GetDatum(id),
					   TimestampTzGetDatum(now)};

	tq_spi_run(&skip, values, NULL);
}

/*
 * Returns when the oldest tick was published that some subscription has not
 * acknowledged; 0 if there is none.
 */
TimestampTz
tq_subscription_slowest(void)
{
	return tq_spi_run_int64(&slowest, NULL, 0);
}

static void
read_behind(TupleTableSlot *slot, void *behind)
{
	*(TqBehind *) behind = (TqBehind){.name = tq_row_text(slot, 1),
									  .acked_id = tq_row_int64(slot, 2)};
}

/*
 * Returns the subscriptions that have not acknowledged the messages up to that
 * id.
 */
TqBehind *
tq_subscriptions_behind(int64 last_id, int *found)
{
	return tq_spi_read_all(&behind, TQ_VALUES(Int64GetDatum(last_id)),
						   read_behind, sizeof(TqBehind), found);
}

/*
 * Records that messages up to that id are dropped before a subscription has
 * acknowledged them.  Returns false if another session is changing the
 * subscription, or has acknowledged them.
 */
bool
tq_subscription_lose(const char *name, int64 last_id)
{
	Datum values[2] = {CStringGetTextDatum(name), Int64GetDatum(last_id)};

	return tq_spi_run(&lose, values, NULL) > 0;
}
