/*
 * outbox_table.c
 *	  Rows of tq_internal.message, tq_internal.tick and tq_internal.log_segment: the outbox, the message log,
 *	  and the publications.
 *
 * A transition appends one row to tq_internal.message in its own transaction.
 * It uses the access methods, because the executor would cost more than the
 * row.  The row carries the top-level transaction id, by which a snapshot
 * shows whether it has been published.  If a savepoint was rolled back, the
 * row itself is not visible.
 *
 * A tick is one publication.  It covers the transactions that are visible in
 * `upto` and not in `since`; their messages, in the order of writing, have the
 * ids from first_id on.  The order of writing comes from a sequence that is
 * read while the locks of the transition are held, so a message that is caused
 * by another one comes after it.
 *
 * A tick has about PAGE_MESSAGES messages at most, so that publishing and
 * reading it takes bounded memory.  If more became visible, because of a large
 * transaction or because the publisher was not running, they are divided into
 * several ticks by the order of writing.  Each of these parts has the rows
 * between after_seq and upto_seq, and the ids of the transactions that wrote
 * them, so that its rows are found without reading the others.  Only the last
 * part publishes `upto`; in the parts before it, upto equals since, and
 * part_of is the snapshot that is being published.  Dividing by transaction id
 * instead would be wrong: a message could then be published before the one
 * that caused it.
 *
 * tq_internal.message and tq_internal.tick are divided into TQ_SEGMENTS segments, which are used
 * in turn.  Each session caches the segment that is written to
 * (binding_table.c).  A session with an outdated cache writes to an older
 * segment.  That is harmless: readers read all segments, and a segment is
 * truncated only when, under an exclusive lock, everything in it has been
 * published and is no longer needed (retention.c).
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "port/pg_bswap.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"
#include "utils/xid8.h"

#include "../core/types.h"
#include "../util/compat.h"
#include "../util/durability.h"
#include "../util/catalog.h"
#include "../util/spi.h"
#include "outbox_table.h"
#include "table.h"

/* How a message is stored; numbers are in network byte order. */
typedef struct Record
{
	uint64 task;
	uint16 run_id; /* -1: none */
	uint16 last_run;
	uint8 exchange;
	uint8 state;
	uint8 priority;
	uint8 spare;
} Record;

StaticAssertDecl(sizeof(Record) == 16,
				 "tq_internal.message holds records of 16 bytes");

/* Columns of tq_internal.message, numbered from 0. */
enum
{
	MESSAGE_XID,
	MESSAGE_SEQ,
	MESSAGE_TAKEN_UNTIL,
	MESSAGE_WORKER,
	MESSAGE_SEGMENT,
	MESSAGE_RECORDS,
	MESSAGE_DETAIL,
	MESSAGE_COLUMNS
};

/* A class of advisory locks of tq, as in group_table.c. */
#define TQ_LOCK_CLASS_PUBLISH 7418

#define PAGE_MESSAGES 4000 /* per tick, rounded up to a whole fetch */
#define FETCH_ROWS 20

#define TICK_COLUMNS                                                          \
	"first_id, last_id, published, coalesce(unsent, 0), messages, segments,"  \
	" segment, since, upto, part_of, after_seq, upto_seq, xids, xid"

static TqStatement last_tick =
	TQ_STATEMENT("SELECT " TICK_COLUMNS
				 " FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1",
				 InvalidOid);

static TqStatement ticks_after = TQ_STATEMENT(
	"SELECT " TICK_COLUMNS
	" FROM tq_internal.tick WHERE last_id > $1 AND messages > 0 ORDER BY last_id LIMIT $2",
	INT8OID, INT4OID);

static TqStatement first_unsent = TQ_STATEMENT(
	"SELECT " TICK_COLUMNS
	" FROM tq_internal.tick WHERE unsent IS NOT NULL ORDER BY unsent LIMIT 1",
	InvalidOid);

static TqStatement acked_snapshot = TQ_STATEMENT(
	"SELECT coalesce((SELECT upto FROM tq_internal.tick"
	" WHERE last_id <= (SELECT coalesce(min(acked_id), 9223372036854775807) FROM tq_internal.subscription)"
	" ORDER BY last_id DESC LIMIT 1),"
	" (SELECT since FROM tq_internal.tick ORDER BY last_id LIMIT 1))",
	InvalidOid);

static TqStatement last_whole = TQ_STATEMENT(
	"SELECT published FROM tq_internal.tick WHERE part_of IS NULL ORDER BY last_id DESC LIMIT 1",
	InvalidOid);

static TqStatement newest_of_segment = TQ_STATEMENT(
	"SELECT " TICK_COLUMNS
	" FROM tq_internal.tick WHERE segment = $1 ORDER BY last_id DESC LIMIT 1",
	INT4OID);

static TqStatement shows_segment = TQ_STATEMENT(
	"SELECT 1 FROM tq_internal.tick WHERE published >= $2 AND segments & (1 << $1) <> 0 LIMIT 1",
	INT4OID, TIMESTAMPTZOID);

static TqStatement now_snapshot = TQ_STATEMENT("SELECT pg_current_snapshot()",
											   InvalidOid);

#define MESSAGE_FIELDS                                                        \
	"m.records, m.taken_until, m.detail, m.segment, m.worker, m.seq, m.xid"

/*
 * Rows that became visible after $1, are visible in $2, and were written after
 * $3.
 */
static TqStatement messages_between = TQ_STATEMENT(
	"SELECT " MESSAGE_FIELDS " FROM ("
	"SELECT * FROM tq_internal.message"
	" WHERE xid >= pg_snapshot_xmax($1) AND xid < pg_snapshot_xmax($2)"
	" UNION ALL"
	" SELECT o.* FROM pg_snapshot_xip($1) AS x (xid) JOIN tq_internal.message o ON o.xid = x.xid"
	" WHERE pg_visible_in_snapshot(x.xid, $2)) AS m"
	" WHERE pg_visible_in_snapshot(m.xid, $2) AND m.seq > $3 ORDER BY m.seq",
	PG_SNAPSHOTOID, PG_SNAPSHOTOID, INT8OID);

static TqStatement messages_of_part = TQ_STATEMENT(
	"SELECT " MESSAGE_FIELDS " FROM tq_internal.message m"
	" WHERE m.xid = ANY ($1) AND m.seq > $2 AND m.seq <= $3 ORDER BY m.seq",
	XID8ARRAYOID, INT8OID, INT8OID);

static TqStatement is_unpublished = TQ_STATEMENT(
	"SELECT 1 FROM tq_internal.message WHERE segment = $1 AND xid >= pg_snapshot_xmin($2)"
	" AND NOT pg_visible_in_snapshot(xid, $2) LIMIT 1",
	INT4OID, PG_SNAPSHOTOID);

/* Rows of other transactions; the end of this one wakes the publisher. */
static TqStatement others_unpublished = TQ_STATEMENT(
	"SELECT 1 FROM tq_internal.message WHERE xid >= pg_snapshot_xmin($1)"
	" AND NOT pg_visible_in_snapshot(xid, $1)"
	" AND xid IS DISTINCT FROM pg_current_xact_id_if_assigned() LIMIT 1",
	PG_SNAPSHOTOID);

static TqStatement draw_ids = TQ_STATEMENT(
	"SELECT setval('tq_internal.message_id_seq', nextval('tq_internal.message_id_seq') + $1 - 1)",
	INT4OID);

static TqStatement last_id = TQ_STATEMENT(
	"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM tq_internal.message_id_seq",
	InvalidOid);

static TqStatement insert_tick = TQ_STATEMENT(
	"INSERT INTO tq_internal.tick (first_id, last_id, published, unsent, messages, segments, segment, since, upto,"
	" part_of, after_seq, upto_seq, xids, xid)"
	" VALUES ($1, $2, $3, nullif($4, 0), $5, $6, $7, $8, $9, $10, $11, $12, $13, pg_current_xact_id())",
	INT8OID, INT8OID, TIMESTAMPTZOID, INT8OID, INT4OID, INT4OID, INT2OID,
	PG_SNAPSHOTOID, PG_SNAPSHOTOID, PG_SNAPSHOTOID, INT8OID, INT8OID,
	XID8ARRAYOID);

static TqStatement set_unsent = TQ_STATEMENT(
	"UPDATE tq_internal.tick SET unsent = nullif($2, 0) WHERE last_id = $1",
	INT8OID, INT8OID);

static TqStatement current_segment = TQ_STATEMENT(
	"SELECT segment, since FROM tq_internal.log_segment ORDER BY since DESC, segment LIMIT 1",
	InvalidOid);

static TqStatement switch_to = TQ_STATEMENT(
	"UPDATE tq_internal.log_segment SET since = $2 WHERE segment = $1",
	INT2OID, TIMESTAMPTZOID);

#define TRUNCATE(segment)                                                     \
	TQ_STATEMENT("TRUNCATE tq_internal.message_" segment                      \
				 ", tq_internal.tick_" segment,                               \
				 InvalidOid)

static TqStatement truncate_segment[TQ_SEGMENTS] = {TRUNCATE("0"),
													TRUNCATE("1"),
													TRUNCATE("2"),
													TRUNCATE("3"),
													TRUNCATE("4"),
													TRUNCATE("5")};

/* ---- writing ---- */

static Oid
segment_table(const char *table, int segment)
{
	char name[NAMEDATALEN];

	snprintf(name, sizeof(name), "%s_%d", table, segment);
	return get_relname_relid(name, get_namespace_oid(TQ_SCHEMA, false));
}

/* Returns these messages as an array of records. */
static bytea *
pack(const TqMessage *messages, int n)
{
	Size size = VARHDRSZ + sizeof(Record) * n;
	bytea *packed = palloc(size);
	Record *records = (Record *) VARDATA(packed);

	SET_VARSIZE(packed, size);
	for (int i = 0; i < n; i++)
	{
		Record record = {.task = pg_hton64((uint64) messages[i].task),
						 .run_id = pg_hton16((uint16) messages[i].run_id),
						 .last_run = pg_hton16((uint16) messages[i].last_run),
						 .exchange = (uint8) messages[i].exchange,
						 .state = (uint8) messages[i].state,
						 .priority = (uint8) messages[i].priority};

		memcpy(&records[i], &record, sizeof(Record));
	}
	return packed;
}

/* Returns the taken_until that the messages of one row share, or 0. */
static TimestampTz
taken_until_of(const TqMessage *messages, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (messages[i].taken_until != 0)
			return messages[i].taken_until;
	}
	return 0;
}

/* Returns the worker that the messages of one row share, or 0. */
static int32
worker_of(const TqMessage *messages, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (messages[i].worker != 0)
			return messages[i].worker;
	}
	return 0;
}

/* Fills in a row of tq_internal.message. */
static void
fill_slot(TupleTableSlot *slot, int segment, const TqMessage *messages, int n)
{
	TimestampTz taken_until = taken_until_of(messages, n);
	int32 worker = worker_of(messages, n);

	ExecClearTuple(slot);
	memset(slot->tts_isnull, 0, sizeof(bool) * MESSAGE_COLUMNS);
	slot->tts_values[MESSAGE_XID] = FullTransactionIdGetDatum(
		GetTopFullTransactionId());
	slot->tts_values[MESSAGE_SEQ] = Int64GetDatum(tq_id_next());
	slot->tts_values[MESSAGE_TAKEN_UNTIL] = TimestampTzGetDatum(taken_until);
	slot->tts_isnull[MESSAGE_TAKEN_UNTIL] = taken_until == 0;
	slot->tts_values[MESSAGE_WORKER] = Int32GetDatum(worker);
	slot->tts_isnull[MESSAGE_WORKER] = worker == 0;
	slot->tts_values[MESSAGE_SEGMENT] = Int16GetDatum(segment);
	slot->tts_values[MESSAGE_RECORDS] = PointerGetDatum(pack(messages, n));
	slot->tts_values[MESSAGE_DETAIL] = PointerGetDatum(messages[0].detail);
	slot->tts_isnull[MESSAGE_DETAIL] = messages[0].detail == NULL;
	ExecStoreVirtualTuple(slot);
}

/*
 * Appends these messages to the outbox as one row.  They share detail and, if
 * they are about running runs, taken_until and worker.
 */
void
tq_messages_insert(int segment, const TqMessage *messages, int n)
{
	Relation rel = table_open(segment_table("message", segment),
							  RowExclusiveLock);
	EState *estate = CreateExecutorState();
	ResultRelInfo *result = makeNode(ResultRelInfo);
	TupleTableSlot *slot = table_slot_create(rel, NULL);

	fill_slot(slot, segment, messages, n);
	InitResultRelInfo(result, rel, 0, NULL, 0);
	ExecOpenIndices(result, false);
	table_tuple_insert(rel, slot, GetCurrentCommandId(true), 0, NULL);
	TqInsertEntries(result, slot, estate, NULL, NIL);
	ExecCloseIndices(result);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	table_close(rel, NoLock);
}

/* ---- publication ---- */

/*
 * Locks out other publishers until the end of the transaction; returns false
 * if one is active.
 */
bool
tq_publisher_try_lock(void)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, TQ_LOCK_CLASS_PUBLISH);
	return LockAcquire(&tag, ExclusiveLock, false, true) !=
		   LOCKACQUIRE_NOT_AVAIL;
}

/* Returns a copy of a snapshot or array in the current memory context. */
static Datum
keep_snapshot(uint64 row, int column)
{
	bool isnull;

	return PointerGetDatum(
		PG_DETOAST_DATUM_COPY(tq_spi_field(row, column, &isnull)));
}

/* Like keep_snapshot(), but returns 0 for NULL. */
static Datum
keep_if_set(uint64 row, int column)
{
	bool isnull;

	(void) tq_spi_field(row, column, &isnull);
	return isnull ? (Datum) 0 : keep_snapshot(row, column);
}

static FullTransactionId
read_xid(uint64 row, int column)
{
	bool isnull;
	Datum value = tq_spi_field(row, column, &isnull);

	return isnull ? InvalidFullTransactionId
				  : DatumGetFullTransactionId(value);
}

static Datum
read_snapshot(TqStatement *statement)
{
	Datum snapshot;

	tq_spi_run(statement, NULL, NULL);
	snapshot = keep_snapshot(0, 1);
	tq_spi_free_result();
	return snapshot;
}

static void
read_tick(uint64 row, TqTick *tick)
{
	tick->first_id = tq_spi_int64(row, 1, 0);
	tick->last_id = tq_spi_int64(row, 2, 0);
	tick->published = tq_spi_time(row, 3);
	tick->unsent = tq_spi_int64(row, 4, 0);
	tick->messages = tq_spi_int32(row, 5, 0);
	tick->segments = tq_spi_int32(row, 6, 0);
	tick->segment = tq_spi_int16(row, 7, 0);
	tick->since = keep_snapshot(row, 8);
	tick->upto = keep_snapshot(row, 9);
	tick->part_of = keep_if_set(row, 10);
	tick->after_seq = tq_spi_int64(row, 11, 0);
	tick->upto_seq = tq_spi_int64(row, 12, 0);
	tick->xids = keep_if_set(row, 13);
	tick->xid = read_xid(row, 14);
}

static bool
read_one_tick(TqStatement *statement, const Datum *values, TqTick *tick)
{
	bool found = tq_spi_run(statement, values, NULL) > 0;

	if (found)
		read_tick(0, tick);
	tq_spi_free_result();
	return found;
}

/*
 * The ticks of this table up to that id are known to be durable, also on the
 * synchronous standbys that existed.
 */
static int64 durable_id = 0;
static Oid durable_table = InvalidOid;

/*
 * Makes a tick and all before it as durable as a commit that has returned.
 * One flush is enough, because ticks are committed one after the other.
 */
static void
make_durable(const TqTick *tick)
{
	Oid table;

	if (RecoveryInProgress())
		return;
	table = get_relname_relid("tick", get_namespace_oid(TQ_SCHEMA, false));
	if (table == durable_table && tick->last_id <= durable_id)
		return;
	tq_durable_flush(tick->xid);
	(void) tq_durable_within(tq_durable_here(), -1);
	durable_table = table;
	durable_id = tick->last_id;
}

/* Reads the newest tick; there is always one. */
void
tq_tick_last(TqTick *tick)
{
	if (!read_one_tick(&last_tick, NULL, tick))
		ereport(
			ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("tq_internal.tick is empty"),
			 errdetail("The table always holds at least the newest tick."),
			 errhint(
				 "Restore the rows that were deleted from tq_internal.tick.")));
}

/*
 * Returns the last id of the newest tick, after making it durable, so that the
 * id may be returned to a reader.
 */
int64
tq_tick_last_id(void)
{
	TqTick last;

	tq_tick_last(&last);
	make_durable(&last);
	return last.last_id;
}

/*
 * Returns whether another transaction has written a row that this snapshot
 * does not see.
 */
bool
tq_message_is_unpublished(Datum upto)
{
	Datum values[1] = {upto};
	bool result = tq_spi_run(&others_unpublished, values, NULL) > 0;

	tq_spi_free_result();
	return result;
}

/*
 * Returns the last id that was given to a message.  It comes from the
 * sequence, because after a restore the sequence may be ahead of all ticks.
 */
int64
tq_message_last_id(void)
{
	int64 id;

	tq_spi_run(&last_id, NULL, NULL);
	id = tq_spi_int64(0, 1, 0);
	tq_spi_free_result();
	return id;
}

/*
 * Returns when the oldest message of the log was published; 0 if it has none.
 */
TimestampTz
tq_tick_oldest(void)
{
	Datum values[2] = {Int64GetDatum(0), Int32GetDatum(1)};
	TqTick tick;

	return read_one_tick(&ticks_after, values, &tick) ? tick.published : 0;
}

/*
 * Returns when a tick last completed the publication of a snapshot; 0 if the
 * log does not go back so far.
 */
TimestampTz
tq_tick_last_whole(void)
{
	TimestampTz published = 0;

	if (tq_spi_run(&last_whole, NULL, NULL) > 0)
		published = tq_spi_time(0, 1);
	tq_spi_free_result();
	return published;
}

/*
 * Reads the oldest tick for which NOTIFY is still to be sent; returns false if
 * there is none.
 */
bool
tq_tick_unsent(TqTick *tick)
{
	return read_one_tick(&first_unsent, NULL, tick);
}

/*
 * Returns a snapshot that sees the transactions that were published and that
 * all subscriptions have acknowledged.
 */
Datum
tq_snapshot_acked(void)
{
	return read_snapshot(&acked_snapshot);
}

/* Returns whether a tick published since then has messages in this segment. */
bool
tq_tick_shows_segment(int segment, TimestampTz since)
{
	Datum values[2] = {Int32GetDatum(segment), TimestampTzGetDatum(since)};
	bool result = tq_spi_run(&shows_segment, values, NULL) > 0;

	tq_spi_free_result();
	return result;
}

/*
 * Reads the newest tick that is stored in this segment; returns false if there
 * is none.
 */
bool
tq_tick_of_segment(int segment, TqTick *tick)
{
	Datum values[1] = {Int32GetDatum(segment)};

	return read_one_tick(&newest_of_segment, values, tick);
}

/*
 * Returns the ticks that have messages after that id, in order.  They survive
 * a crash.  If `shown`, because a reader gets their messages, they also
 * survive a failover to a synchronous standby.
 */
TqTick *
tq_ticks_after(int64 id, int max, bool shown, int *found)
{
	Datum values[2] = {Int64GetDatum(id), Int32GetDatum(max)};
	TqTick *ticks;

	*found = (int) tq_spi_run(&ticks_after, values, NULL);
	ticks = palloc(sizeof(TqTick) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
		read_tick(i, &ticks[i]);
	tq_spi_free_result();
	if (shown && *found > 0)
		make_durable(&ticks[*found - 1]);
	return ticks;
}

/* Returns a snapshot of the transactions that are visible now. */
Datum
tq_snapshot_now(void)
{
	return read_snapshot(&now_snapshot);
}

static void
unpack(const Record *record, TqMessage *message)
{
	message->exchange = (TqExchange) record->exchange;
	message->task = (int64) pg_ntoh64(record->task);
	message->run_id = (int16) pg_ntoh16(record->run_id);
	message->last_run = (int16) pg_ntoh16(record->last_run);
	message->state = (TqState) record->state;
	message->priority = record->priority;
}

/*
 * Reads the messages of one row, and returns their number; they share the
 * other columns of the row.
 */
static int
read_row(uint64 row, TqMessage *messages, bool count_only)
{
	bool isnull;
	bytea *packed = DatumGetByteaPP(tq_spi_field(row, 1, &isnull));
	int n = VARSIZE_ANY_EXHDR(packed) / sizeof(Record);
	TimestampTz taken_until;
	Jsonb *detail;
	int32 worker;

	if (count_only)
		return n;
	taken_until = tq_spi_time(row, 2);
	detail = tq_spi_jsonb(row, 3);
	worker = tq_spi_int32(row, 5, 0);
	for (int i = 0; i < n; i++)
	{
		Record record;

		memcpy(&record,
			   VARDATA_ANY(packed) + sizeof(Record) * i,
			   sizeof(Record));
		memset(&messages[i], 0, sizeof(TqMessage));
		unpack(&record, &messages[i]);
		if (messages[i].state == TQ_STATE_RUNNING)
			messages[i].taken_until = taken_until;
		if (messages[i].state == TQ_STATE_RUNNING ||
			messages[i].exchange == TQ_EXCHANGE_TASK_ALERT)
			messages[i].worker = worker;
		messages[i].detail = detail;
	}
	return n;
}

/* Adds the rows of the last statement to an array of messages. */
static TqMessage *
read_rows(uint64 rows, TqMessage *messages, int *n)
{
	Size all = *n;

	for (uint64 row = 0; row < rows; row++)
		all += read_row(row, NULL, true);
	if (messages == NULL)
		messages = palloc_extended(sizeof(TqMessage) * Max(all, 1),
								   MCXT_ALLOC_HUGE);
	else
		messages = repalloc_huge(messages, sizeof(TqMessage) * Max(all, 1));
	for (uint64 row = 0; row < rows; row++)
		*n += read_row(row, &messages[*n], false);
	return messages;
}

/*
 * Opens a cursor on the rows that became visible between two snapshots and
 * have a greater seq than after_seq; tq_messages_page() reads it.
 */
TqRows
tq_messages_open(Datum since, Datum upto, int64 after_seq)
{
	Datum values[3] = {since, upto, Int64GetDatum(after_seq)};

	return tq_spi_rows_open(&messages_between, values);
}

static int
compare_xid(const void *a, const void *b)
{
	uint64 x = U64FromFullTransactionId(*(const FullTransactionId *) a);
	uint64 y = U64FromFullTransactionId(*(const FullTransactionId *) b);

	return x < y ? -1 : x > y;
}

/* Returns the transactions of a page as an array without duplicates. */
static Datum
xid_array(FullTransactionId *xids, int n)
{
	Datum *elements = palloc(sizeof(Datum) * Max(n, 1));
	int kept = 0;

	qsort(xids, n, sizeof(FullTransactionId), compare_xid);
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || !FullTransactionIdEquals(xids[i], xids[i - 1]))
			elements[kept++] = FullTransactionIdGetDatum(xids[i]);
	}
	return PointerGetDatum(construct_array(elements,
										   kept,
										   XID8OID,
										   sizeof(FullTransactionId),
										   FLOAT8PASSBYVAL,
										   TYPALIGN_DOUBLE));
}

/*
 * Reads the next page: PAGE_MESSAGES messages and up to one fetch more, or
 * what is left, which may be nothing.
 */
void
tq_messages_page(TqRows cursor, TqPage *page)
{
	FullTransactionId *xids = palloc(sizeof(FullTransactionId) * FETCH_ROWS);
	int nxids = 0;

	*page = (TqPage){.messages = NULL};
	do
	{
		int rows = (int) tq_spi_rows_fetch(cursor, FETCH_ROWS);

		page->messages = read_rows(rows, page->messages, &page->n);
		page->is_last = rows < FETCH_ROWS;
		xids = repalloc(xids,
						sizeof(FullTransactionId) *
							(nxids + rows + FETCH_ROWS));
		for (int row = 0; row < rows; row++)
		{
			bool isnull;

			page->segments |= 1 << tq_spi_int16(row, 4, 0);
			page->last_seq = tq_spi_int64(row, 6, 0);
			xids[nxids++] = DatumGetFullTransactionId(
				tq_spi_field(row, 7, &isnull));
		}
		tq_spi_free_result();
	} while (!page->is_last && page->n < PAGE_MESSAGES);
	page->xids = xid_array(xids, nxids);
}

/* Reads the messages and notes that a tick has published. */
static TqMessage *
read_tick_messages(const TqTick *tick, int *n)
{
	Datum between[3] = {tick->since, tick->upto, Int64GetDatum(PG_INT64_MIN)};
	Datum part[3] = {tick->xids,
					 Int64GetDatum(tick->after_seq),
					 Int64GetDatum(tick->upto_seq)};
	uint64 rows = tick->xids == (Datum) 0
					  ? tq_spi_run(&messages_between, between, NULL)
					  : tq_spi_run(&messages_of_part, part, NULL);
	TqMessage *messages;

	*n = 0;
	messages = read_rows(rows, NULL, n);
	tq_spi_free_result();
	return messages;
}

/* Copies the notes among these messages. */
TqMessage *
tq_messages_notes(const TqMessage *messages, int n, int *found)
{
	TqMessage *notes = palloc(sizeof(TqMessage) *
							  Max(n - tq_messages_count(messages, n), 1));

	*found = 0;
	for (int i = 0; i < n; i++)
	{
		if (messages[i].exchange == TQ_EXCHANGE_NONE)
			notes[(*found)++] = messages[i];
	}
	return notes;
}

/*
 * Returns the messages of a tick with their ids and, unless `notes` is NULL,
 * the notes that were published with them.  Returns no messages if some of
 * them were dropped with their segment, because the ids of the others cannot
 * be determined then.
 */
TqMessage *
tq_messages_of_tick(const TqTick *tick, int *found, TqMessage **notes,
					int *nnotes)
{
	int n;
	TqMessage *messages = read_tick_messages(tick, &n);

	if (notes != NULL)
		*notes = tq_messages_notes(messages, n, nnotes);
	*found = tq_messages_number(messages, n, tick);
	if (*found != tick->messages)
		*found = 0;
	return messages;
}

/* Returns how many of these are messages, not notes. */
int
tq_messages_count(const TqMessage *messages, int n)
{
	int count = 0;

	for (int i = 0; i < n; i++)
		count += messages[i].exchange != TQ_EXCHANGE_NONE;
	return count;
}

/*
 * Removes the notes, and gives the messages the ids of the tick; returns their
 * number.
 */
int
tq_messages_number(TqMessage *messages, int n, const TqTick *tick)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
	{
		if (messages[i].exchange == TQ_EXCHANGE_NONE)
			continue;
		messages[kept] = messages[i];
		messages[kept].id = tick->first_id + kept;
		messages[kept++].published = tick->published;
	}
	return kept;
}

/*
 * Inserts a tick and draws its ids.
 *
 * Ids that a reader has seen must not be given to other messages after a
 * crash, so a tick that sends NOTIFY is flushed at commit, whatever
 * synchronous_commit says.  A tick of the maintenance worker that sends none
 * is not flushed, because a reader makes it durable (make_durable).  Otherwise
 * the worker would flush every few milliseconds, and other commits would wait
 * for that.
 *
 * A tick without messages also draws an id, so that last_id identifies a tick.
 */
void
tq_tick_insert(TqTick *tick, bool notified)
{
	Datum draw[1] = {Int32GetDatum(Max(tick->messages, 1))};
	Datum values[13];
	char nulls[14] = "             ";

	tq_spi_run(&draw_ids, draw, NULL);
	tick->last_id = tq_spi_int64(0, 1, 0);
	tick->first_id = tick->last_id - Max(tick->messages, 1) + 1;
	tq_spi_free_result();
	if (tick->unsent != 0)
		tick->unsent = tick->first_id;
	values[0] = Int64GetDatum(tick->first_id);
	values[1] = Int64GetDatum(tick->last_id);
	values[2] = TimestampTzGetDatum(tick->published);
	values[3] = Int64GetDatum(tick->unsent);
	values[4] = Int32GetDatum(tick->messages);
	values[5] = Int32GetDatum(tick->segments);
	values[6] = Int16GetDatum(tick->segment);
	values[7] = tick->since;
	values[8] = tick->upto;
	values[9] = tick->part_of;
	values[10] = Int64GetDatum(tick->after_seq);
	values[11] = Int64GetDatum(tick->upto_seq);
	values[12] = tick->xids;
	if (tick->part_of == (Datum) 0)
		nulls[9] = 'n';
	if (tick->xids == (Datum) 0)
		nulls[10] = nulls[11] = nulls[12] = 'n';
	tq_spi_run(&insert_tick, values, nulls);
	if (notified || MyBackendType != B_BG_WORKER)
		ForceSyncCommit();
	else
		(void) set_config_option("synchronous_commit",
								 "off",
								 PGC_USERSET,
								 PGC_S_SESSION,
								 GUC_ACTION_LOCAL,
								 true,
								 0,
								 false);
}

/* Records from which id on NOTIFY is still to be sent; 0 if all was sent. */
void
tq_tick_set_unsent(const TqTick *tick, int64 unsent)
{
	Datum values[2] = {Int64GetDatum(tick->last_id), Int64GetDatum(unsent)};

	tq_spi_run(&set_unsent, values, NULL);
}

/* ---- segments ---- */

/* Returns the segment that is written to; *since is when it became that. */
int
tq_segment_current(TimestampTz *since)
{
	int segment;

	if (tq_spi_run(&current_segment, NULL, NULL) == 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("tq_internal.log_segment is empty"),
			 errdetail(
				 "The table always holds one row for each segment of the message log."),
			 errhint(
				 "Restore the rows that were deleted from tq_internal.log_segment.")));
	segment = tq_spi_int16(0, 1, 0);
	*since = tq_spi_time(0, 2);
	tq_spi_free_result();
	return segment;
}

/* Makes this segment the one that is written to. */
void
tq_segment_switch(int segment, TimestampTz now)
{
	Datum values[2] = {Int16GetDatum(segment), TimestampTzGetDatum(now)};

	tq_spi_run(&switch_to, values, NULL);
}

static bool
has_blocks(Oid table)
{
	Relation rel = table_open(table, AccessShareLock);
	bool result = RelationGetNumberOfBlocks(rel) > 0;

	table_close(rel, AccessShareLock);
	return result;
}

/* Returns whether nothing was written to a segment since it was truncated. */
bool
tq_segment_is_empty(int segment)
{
	return !has_blocks(segment_table("message", segment)) &&
		   !has_blocks(segment_table("tick", segment));
}

/*
 * Locks a segment exclusively, without waiting; returns false if it is in use.
 */
bool
tq_segment_try_lock(int segment)
{
	return ConditionalLockRelationOid(segment_table("message", segment),
									  AccessExclusiveLock) &&
		   ConditionalLockRelationOid(segment_table("tick", segment),
									  AccessExclusiveLock);
}

/* Returns whether a segment has a row that this snapshot does not see. */
bool
tq_segment_is_unpublished(int segment, Datum upto)
{
	Datum values[2] = {Int32GetDatum(segment), upto};
	bool result = tq_spi_run(&is_unpublished, values, NULL) > 0;

	tq_spi_free_result();
	return result;
}

/* Truncates a segment that is locked. */
void
tq_segment_truncate(int segment)
{
	tq_spi_run(&truncate_segment[segment], NULL, NULL);
}
