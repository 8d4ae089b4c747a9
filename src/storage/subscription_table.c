/*
 * subscription_table.c
 *	  Rows of tq_internal.subscription and tq_internal.subscription_binding:
 *	  durable readers, and how far they have acknowledged.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "../core/types.h"
#include "../util/spi.h"
#include "binding_table.h"
#include "subscription_table.h"

static TqStatement insert_subscription = TQ_STATEMENT(
	"INSERT INTO tq_internal.subscription (name, acked_id, created)"
	" SELECT $1, CASE WHEN is_called THEN last_value ELSE 0 END, $2"
	" FROM tq_internal.message_id_seq ON CONFLICT DO NOTHING",
	TEXTOID, TIMESTAMPTZOID);

static TqStatement insert_subscription_binding = TQ_STATEMENT(
	"INSERT INTO tq_internal.subscription_binding (name, exchange, pattern) VALUES ($1, $2, $3)"
	" ON CONFLICT DO NOTHING",
	TEXTOID, INT2OID, TEXTOID);

static TqStatement delete_subscription = TQ_STATEMENT(
	"WITH b AS (DELETE FROM tq_internal.subscription_binding WHERE name = $1)"
	" DELETE FROM tq_internal.subscription WHERE name = $1 RETURNING 1",
	TEXTOID);

static TqStatement find_subscription = TQ_STATEMENT(
	"SELECT acked_id, coalesce(acked_at, created), xmin FROM tq_internal.subscription WHERE name = $1",
	TEXTOID);

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

/* Adds a binding to a subscription, which is created if it does not exist. */
void
tq_subscription_insert(const char *name, TqExchange exchange,
					   const char *pattern, TimestampTz now)
{
	Datum values[2] = {CStringGetTextDatum(name), TimestampTzGetDatum(now)};

	tq_spi_run(&insert_subscription, values, NULL);
	tq_binding_change(&insert_subscription_binding, name, exchange, pattern);
}

/* Deletes a subscription and its bindings; returns false if there is none. */
bool
tq_subscription_delete(const char *name)
{
	Datum values[1] = {CStringGetTextDatum(name)};
	bool found = tq_spi_run(&delete_subscription, values, NULL) > 0;

	tq_bindings_changed();
	return found;
}

/*
 * Reads how far a subscription has acknowledged; returns false if there is
 * none.
 */
bool
tq_subscription_find(const char *name, TqSubscriptionPosition *position)
{
	Datum values[1] = {CStringGetTextDatum(name)};
	bool found = tq_spi_run(&find_subscription, values, NULL) > 0;
	bool isnull;

	if (found)
		*position = (TqSubscriptionPosition){
			.id = tq_spi_int64(0, 1, 0),
			.at = tq_spi_time(0, 2),
			.is_own = TransactionIdIsCurrentTransactionId(
				DatumGetTransactionId(tq_spi_field(0, 3, &isnull)))};
	tq_spi_free_result();
	return found;
}

/* Returns the bindings of a subscription. */
TqBinding *
tq_subscription_bindings(const char *name, int *found)
{
	Datum values[1] = {CStringGetTextDatum(name)};

	return tq_bindings_select(&list_subscription_bindings, values, found);
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

/*
 * Returns the subscriptions that have not acknowledged the messages up to that
 * id.
 */
TqBehind *
tq_subscriptions_behind(int64 last_id, int *found)
{
	Datum values[1] = {Int64GetDatum(last_id)};
	TqBehind *list;

	*found = (int) tq_spi_run(&behind, values, NULL);
	list = palloc(sizeof(TqBehind) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
		list[i] = (TqBehind){.name = tq_spi_text(i, 1),
							 .acked_id = tq_spi_int64(i, 2, 0)};
	tq_spi_free_result();
	return list;
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
