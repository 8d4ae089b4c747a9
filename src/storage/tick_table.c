/*
 * tick_table.c
 *	  Rows of tq_internal.tick: the publications.
 *
 * A tick is one publication.  It covers the transactions that are visible in
 * `upto` and not in `since`; their messages, in the order of writing, have the
 * ids from first_id on.  The order of writing comes from a sequence that is
 * read while the locks of the transition are held, so a message that is caused
 * by another one comes after it.
 *
 * A tick has about 4000 messages at most (outbox_table.c), so that publishing
 * and reading it takes bounded memory.  If more became visible, because of a
 * large transaction or because the publisher was not running, they are divided
 * into several ticks by the order of writing.  Each of these parts has the rows
 * between after_seq and upto_seq, and the ids of the transactions that wrote
 * them, so that its rows are found without reading the others.  Only the last
 * part publishes `upto`; in the parts before it, upto equals since, and
 * part_of is the snapshot that is being published.  Dividing by transaction id
 * instead would be wrong: a message could then be published before the one
 * that caused it.
 *
 * Ids after a failover
 * --------------------
 * A standby that is promoted without having received the last ticks continues
 * where it is, while readers of the old primary may have seen the ids of those
 * ticks.  If it gave these ids again, a reader that continues after the last id
 * that it has seen would miss the messages that get them.  So a tick records
 * the timeline of the server, and the first tick on another timeline leaves out
 * EPOCH_IDS ids for each timeline in between: a standby that received nothing
 * from the promoted one either, and is promoted later, is above both.  The ids
 * that are left out lie behind the last tick and not behind the sequence, so
 * that a pass that fails leaves out none of its own.  A crash does not change
 * the timeline, and a promotion and a recovery from an archive always do.
 *
 * A dump that is restored is another server that lacks the end of the log.
 * There the first tick is moved behind the ids of the original before anything
 * is published (tq_tick_begin_ids).
 *
 * 2^40 ids are a million messages per second for 12 days.  JavaScript's numbers
 * are exact for 8191 changes of the timeline, and bigint lasts for 8 million.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "storage/lock.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/xid8.h"

#include "../rows/rows.h"
#include "columns.h"
#include "log.h"

/* A class of advisory locks of tq, as in group_table.c. */
#define TQ_LOCK_CLASS_PUBLISH 7418

#define NEAR 256 /* numbers before the next one */

/* The ids that are left out where the log of another server may have others. */
#define EPOCH_IDS (INT64CONST(1) << 40)

TQ_NUMBERS(TQ_TICK_COLUMNS, tick);

static TqRelation segments[TQ_SEGMENTS] = {TQ_RELATION("tick_0"),
										   TQ_RELATION("tick_1"),
										   TQ_RELATION("tick_2"),
										   TQ_RELATION("tick_3"),
										   TQ_RELATION("tick_4"),
										   TQ_RELATION("tick_5")};

static TqStatement last_tick =
	TQ_STATEMENT("SELECT *"
				 " FROM tq_internal.tick ORDER BY last_id DESC LIMIT 1",
				 InvalidOid);

static TqStatement ticks_after = TQ_STATEMENT(
	"SELECT *"
	" FROM tq_internal.tick WHERE last_id > $1 AND messages > 0 ORDER BY last_id LIMIT $2",
	INT8OID, INT4OID);

static TqStatement first_unsent = TQ_STATEMENT(
	"SELECT *"
	" FROM tq_internal.tick WHERE unsent IS NOT NULL ORDER BY unsent LIMIT 1",
	InvalidOid);

static TqStatement last_whole = TQ_STATEMENT(
	"SELECT published FROM tq_internal.tick WHERE part_of IS NULL ORDER BY last_id DESC LIMIT 1",
	InvalidOid);

static TqStatement newest_of_segment = TQ_STATEMENT(
	"SELECT *"
	" FROM tq_internal.tick WHERE segment = $1 ORDER BY last_id DESC LIMIT 1",
	INT4OID);

static TqStatement shows_segment = TQ_STATEMENT(
	"SELECT 1 FROM tq_internal.tick WHERE published >= $2 AND segments & (1 << $1) <> 0 LIMIT 1",
	INT4OID, TIMESTAMPTZOID);

static TqStatement now_snapshot = TQ_STATEMENT("SELECT pg_current_snapshot()",
											   InvalidOid);

/*
 * Publishers draw one after the other, so that no nextval() is needed, which would
 * write as much WAL again: each setval() makes the sequence log its next value.
 */
static TqStatement draw_ids = TQ_STATEMENT(
	"SELECT setval('tq_internal.message_id_seq', greatest(last_value + is_called::int, $2) + $1 - 1)"
	" FROM tq_internal.message_id_seq",
	INT4OID, INT8OID);

static TqStatement restored_ids = TQ_STATEMENT(
	"SELECT CASE WHEN is_called THEN (last_value / $1 + 1) * $1 ELSE 0 END FROM tq_internal.message_id_seq",
	INT8OID);

static TqStatement last_number =
	TQ_STATEMENT("SELECT last_value FROM tq_internal.id_seq", InvalidOid);

/* What was created in another database has rows of messages, if they are due. */
static TqStatement set_low = TQ_STATEMENT(
	"UPDATE tq_internal.tick SET low = $1 WHERE low IS NULL"
	" AND (EXISTS (SELECT FROM tq_internal.task) OR EXISTS (SELECT FROM tq_internal.departed))"
	" AND NOT EXISTS (SELECT FROM tq_internal.activation OFFSET 1)",
	INT8OID);

static TqStatement move_first = TQ_STATEMENT(
	"UPDATE tq_internal.tick SET first_id = $1, last_id = $1 WHERE last_id = 0"
	" AND NOT EXISTS (SELECT FROM tq_internal.tick WHERE last_id > 0)",
	INT8OID);

static TqStatement set_unsent = TQ_STATEMENT(
	"UPDATE tq_internal.tick SET unsent = nullif($2, 0) WHERE last_id = $1",
	INT8OID, INT8OID);

static LOCKTAG
publisher_lock(void)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, TQ_LOCK_CLASS_PUBLISH);
	return tag;
}

/*
 * Locks out other publishers until the end of the transaction; returns false
 * if one is active.
 */
bool
tq_publisher_try_lock(void)
{
	LOCKTAG tag = publisher_lock();

	return LockAcquire(&tag, ExclusiveLock, false, true) !=
		   LOCKACQUIRE_NOT_AVAIL;
}

/*
 * Undoes the last tq_publisher_try_lock() of this transaction, after which it
 * has not changed the log.  A transaction may go on for long after a call of
 * upkeep(), and may wait for what only another publisher can publish.
 */
void
tq_publisher_unlock(void)
{
	LOCKTAG tag = publisher_lock();

	(void) LockRelease(&tag, ExclusiveLock, false);
}

static void
read_datum(TupleTableSlot *slot, void *datum)
{
	*(Datum *) datum = tq_row_datum(slot, 1);
}

static Datum
read_snapshot(TqStatement *statement)
{
	Datum snapshot;

	(void) tq_spi_read(statement, NULL, read_datum, &snapshot);
	return snapshot;
}

/* Returns a snapshot of the transactions that are visible now. */
Datum
tq_snapshot_now(void)
{
	return read_snapshot(&now_snapshot);
}

/*
 * Returns which creations may be in progress, and must be read before the
 * snapshot of a tick is taken.  Those of the last NEAR numbers are not listed: to
 * read some tasks again costs less than to write a longer row.  But the mark does
 * not fall for them: below that of a restored database are tasks with ids of
 * transactions of another server.
 *
 * Until a session has begun a block the mark stays: the value of the sequence may be
 * of a block that another session has just drawn, above that of one that creates a
 * task.  Only what the value was before a look that finds no session that has
 * prepared to draw one is less than all numbers to come.
 *
 * If the sequence was set back, the numbers since the last tick may be lower than its
 * mark, which is removed from *last, so that the pass reads all.
 */
TqCreations
tq_tick_creations(TqTick *last)
{
	TqOpenNumbers open;
	int64 near;
	int n = 0;

	if (!tq_id_read_open(&open))
	{
		int64 number = tq_spi_run_int64(&last_number, NULL, 0);

		if (!tq_id_read_open(&open))
			return (TqCreations){.low = Max(last->creations.low, number)};
	}
	if (open.next == 0)
		return last->creations;
	if (open.next < last->creations.low)
		last->creations.low = TQ_NO_MARK;
	near = Max(open.from - NEAR, Max(0, Min(last->creations.low, open.from)));
	for (int i = 0; i < open.n; i++)
	{
		if (open.numbers[i] < near)
			open.numbers[n++] = open.numbers[i];
	}
	return (TqCreations){.low = open.n > n ? near : open.from,
						 .open = n == 0 ? (Datum) 0
										: tq_array_int64(open.numbers, n)};
}

TQ_READER(read_tick, TqTick, TQ_TICK_COLUMNS, tick)

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
	if (!tq_spi_read(&last_tick, NULL, read_tick, tick))
		ereport(
			ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("tq_internal.tick is empty"),
			 errdetail("The table always holds at least the newest tick."),
			 errhint(
				 "Restore the rows that were deleted from tq_internal.tick.")));
}

/*
 * Returns the least id that may be given to a message after that tick.
 */
static int64
least_id_after(const TqTick *last)
{
	int64 timelines = (int64) GetWALInsertionTimeLine() - last->timeline;

	/* pg_upgrade begins again with the first timeline. */
	if (timelines != 0)
		timelines = Max(timelines, 1);
	return last->last_id + 1 + timelines * EPOCH_IDS;
}

/*
 * Returns the last id that a reader of a log that has this tick may have seen,
 * here or on a server whose place this one has taken.
 */
static int64
shown_id(const TqTick *last)
{
	return RecoveryInProgress() ? last->last_id : least_id_after(last) - 1;
}

/* Returns the last id that a reader may have seen, before it is durable. */
int64
tq_tick_shown_id(void)
{
	TqTick last;

	tq_tick_last(&last);
	return shown_id(&last);
}

/*
 * Returns the last id that a reader may have seen, after making the newest tick
 * durable, so that the id may be returned to a reader.
 */
int64
tq_tick_last_id(void)
{
	TqTick last;

	tq_tick_last(&last);
	make_durable(&last);
	return shown_id(&last);
}

/*
 * Moves the first tick of a database behind the ids of the database that was
 * restored in it, if one was, and behind the numbers of its tasks.  Nothing has
 * been published here yet.  Tasks whose messages are derived are created when this
 * transaction has been committed, or another that has activated the database, and
 * in that case the numbers stay as they are.
 */
void
tq_tick_begin_ids(void)
{
	int64 id = tq_spi_run_int64(&restored_ids,
								TQ_VALUES(Int64GetDatum(EPOCH_IDS)), 0);

	if (id > 0)
		tq_spi_run(&move_first, TQ_VALUES(Int64GetDatum(id)), NULL);
	tq_spi_run(&set_low, TQ_VALUES(Int64GetDatum(tq_id_next())), NULL);
}

/*
 * Returns when the oldest message of the log was published; 0 if it has none.
 */
TimestampTz
tq_tick_oldest(void)
{
	Datum values[2] = {Int64GetDatum(0), Int32GetDatum(1)};
	TqTick tick = {.published = 0};

	(void) tq_spi_read(&ticks_after, values, read_tick, &tick);
	return tick.published;
}

/*
 * Returns when a tick last completed the publication of a snapshot; 0 if the
 * log does not go back so far.
 */
TimestampTz
tq_tick_last_whole(void)
{
	return tq_spi_run_int64(&last_whole, NULL, 0);
}

/*
 * Reads the oldest tick for which NOTIFY is still to be sent; returns false if
 * there is none.
 */
bool
tq_tick_unsent(TqTick *tick)
{
	return tq_spi_read(&first_unsent, NULL, read_tick, tick);
}

/* Returns whether a tick published since then has messages in this segment. */
bool
tq_tick_shows_segment(int segment, TimestampTz since)
{
	Datum values[2] = {Int32GetDatum(segment), TimestampTzGetDatum(since)};

	return tq_spi_exists(&shows_segment, values);
}

/*
 * Reads the newest tick that is stored in this segment; returns false if there
 * is none.
 */
bool
tq_tick_of_segment(int segment, TqTick *tick)
{
	return tq_spi_read(&newest_of_segment, TQ_VALUES(Int32GetDatum(segment)),
					   read_tick, tick);
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
	TqTick *ticks = tq_spi_read_all(&ticks_after, values, read_tick,
									sizeof(TqTick), found);

	if (shown && *found > 0)
		make_durable(&ticks[*found - 1]);
	return ticks;
}

/*
 * Inserts a tick after the last one and draws its ids.
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
tq_tick_insert(TqTick *row, const TqTick *last, bool notified)
{
	int ids = Max(row->messages, 1);
	TqTable *table = tq_table_open(&segments[row->segment]);
	TupleTableSlot *slot = tq_table_new_row(table);

	row->last_id =
		tq_spi_run_int64(&draw_ids,
						 TQ_VALUES(Int32GetDatum(ids),
								   Int64GetDatum(least_id_after(last))),
						 0);
	row->first_id = row->last_id - ids + 1;
	if (row->unsent != 0)
		row->unsent = row->first_id;
	row->xid = GetTopFullTransactionId();
	row->timeline = (int) GetWALInsertionTimeLine();
	TQ_TICK_COLUMNS(TQ_PUT, tick);
	tq_table_close(table);
	if (notified || MyBackendType != B_BG_WORKER)
		ForceSyncCommit();
	else
		(void) set_config_option("synchronous_commit", "off", PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0,
								 false);
}

/* Records from which id on NOTIFY is still to be sent; 0 if all was sent. */
void
tq_tick_set_unsent(const TqTick *tick, int64 unsent)
{
	Datum values[2] = {Int64GetDatum(tick->last_id), Int64GetDatum(unsent)};

	tq_spi_run(&set_unsent, values, NULL);
}
