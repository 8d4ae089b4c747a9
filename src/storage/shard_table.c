/*
 * shard_table.c
 *	  The row of tq_internal.shard: the buckets of this database.
 *
 * A database that shares the work of one user with others is a shard: it begins
 * task groups only in its own buckets (doc/spec/policy.md 16).  Each session
 * caches these (watched_table.c), so that a call which creates tasks pays for a
 * comparison.
 *
 * The fence.  A bucket may be given to another database only when no transaction
 * is left here that may still commit a group which was begun under the earlier
 * set.  There is no lock for that, because each creation would take it. Instead,
 * a transaction decides by the set that it has read after it has got its
 * transaction id, and keeps to that set until its end; and
 * tq_shard_is_settled() asks for a fence:
 *
 *	- The change holds the lock of the table.  It is released at the end of its
 *	  transaction, prepared or not, after the commit is visible and after the
 *	  invalidation messages are sent.
 *	- The fence is the next transaction id, read under that lock, hence later
 *	  than both.
 *	- A transaction whose id is not before the fence has got it afterwards.  It
 *	  then accepts the messages, reads the row again, and finds the new set.
 *	- The change is settled when no transaction before the fence is running.  A
 *	  prepared transaction is running.  What such a transaction has committed is
 *	  visible by then.
 *
 * The id of the change itself cannot be the fence: a transaction with a later
 * id may have read the row before the change was committed.
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/rangetypes.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"
#include "utils/xid8.h"

#include "../rows/rows.h"
#include "columns.h"
#include "registry.h"

TQ_NUMBERS(TQ_SHARD_COLUMNS, shard);

static TqRelation shard_table = TQ_RELATION("shard");

static TqStatement write_fence =
	TQ_STATEMENT("UPDATE tq_internal.shard SET fence = $1", XID8OID);

/* ---- sets of buckets ---- */

static void
add_buckets(TqOwnBuckets *own, int from, int below)
{
	for (int bucket = from; bucket < below; bucket++)
	{
		own->has[bucket] = true;
		own->list[own->n++] = (int16) bucket;
	}
}

/*
 * Reads a set of buckets; returns false if it has others than 0 to
 * TQ_SLUG_BUCKETS - 1.
 */
static bool
shard_parse(MultirangeType *ranges, TqOwnBuckets *own)
{
	TypeCacheEntry *type = lookup_type_cache(MultirangeTypeGetOid(ranges),
											 TYPECACHE_MULTIRANGE_INFO)
							   ->rngtype;
	RangeType **parts;
	int count;

	memset(own, 0, sizeof(*own));
	multirange_deserialize(type, ranges, &count, &parts);
	for (int i = 0; i < count; i++)
	{
		RangeBound lower;
		RangeBound upper;
		bool is_empty;

		range_deserialize(type, parts[i], &lower, &upper, &is_empty);
		if (lower.infinite || upper.infinite || DatumGetInt32(lower.val) < 0 ||
			DatumGetInt32(upper.val) > TQ_SLUG_BUCKETS)
			return false;
		add_buckets(own, DatumGetInt32(lower.val), DatumGetInt32(upper.val));
	}
	return true;
}

/* ---- cache ---- */

static TqWatched watched = {.table = &shard_table,
							.generation = TQ_FIRST_GENERATION,
							.note_change = tq_facts_change};
static uint64 loaded = 0;     /* the generation that is cached */
static bool is_shard = false; /* of the cached row */
static TqOwnBuckets cached;   /* if it is */
static TransactionId kept_by = InvalidTransactionId;
static bool kept_is_shard = false; /* what that transaction has read first */
static TqOwnBuckets kept;

/* Makes all sessions read the row again; see tq_watched_changed(). */
void
tq_shard_changed(void)
{
	tq_watched_changed(&watched);
	tq_facts_change_at_commit();
}

/* Makes this session read the row again. */
void
tq_shard_reload(void)
{
	watched.generation++;
}

/*
 * Caches the set of a row.  A database that has all buckets is no shard; nor is
 * one whose row is NULL.
 */
static void
shard_take_row(TupleTableSlot *slot)
{
	MultirangeType *ranges = tq_row_varlena(slot, Anum_shard_buckets);

	if (ranges == NULL)
		return;
	if (!shard_parse(ranges, &cached))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("the buckets of this database cannot be read"),
				 errdetail("Some are not from 0 to %d.", TQ_SLUG_BUCKETS - 1),
				 errhint("Call tq_internal.set_buckets().")));
	is_shard = cached.n < TQ_SLUG_BUCKETS;
}

/*
 * Returns whether this database is a shard, as far as this session knows.  What
 * it decides to write by it, it decides by tq_shard_buckets().  A new session
 * reads no row if the facts say that there is no set (database.c).
 */
bool
tq_shard_is_set(void)
{
	while (loaded != watched.generation)
	{
		TqTableScan *scan;
		uint64 current;
		TqFacts facts;

		/*
		 * Read the row as it is now, whatever the snapshot of the transaction is.
		 */
		tq_watched_read(&watched);
		loaded = 0;
		is_shard = false;
		if (watched.generation == TQ_FIRST_GENERATION &&
			tq_facts_find(tq_locked_table, &facts, &current) &&
			!facts.is_shard)
		{
			loaded = TQ_FIRST_GENERATION;
			break;
		}
		PushActiveSnapshot(GetLatestSnapshot());
		current = watched.generation;
		scan = tq_table_scan_open(&shard_table);
		while (tq_table_scan_next(scan))
			shard_take_row(scan->slot);
		tq_table_scan_close(scan);
		PopActiveSnapshot();
		loaded = current;
	}
	return is_shard;
}

/*
 * Returns the buckets in which this transaction may begin task groups, or NULL
 * if it may in all: the same until its end, unless it changes them itself.
 */
const TqOwnBuckets *
tq_shard_buckets(void)
{
	TransactionId xid = GetTopTransactionId();

	if (!TransactionIdEquals(kept_by, xid) || watched.changed_here)
	{
		kept_by = InvalidTransactionId;
		AcceptInvalidationMessages();
		kept_is_shard = tq_shard_is_set();
		if (kept_is_shard)
			kept = cached;
		kept_by = xid;
	}
	return kept_is_shard ? &kept : NULL;
}

/* ---- the fence ---- */

/* What the row says about the last change. */
typedef struct Change
{
	FullTransactionId xid; /* invalid: there was none */
	FullTransactionId fence;
} Change;

static Change
read_change(void)
{
	Change change = {InvalidFullTransactionId, InvalidFullTransactionId};
	TqTableScan *scan = tq_table_scan_open(&shard_table);

	while (tq_table_scan_next(scan))
	{
		change.xid = tq_row_xid8(scan->slot, Anum_shard_changed);
		change.fence = tq_row_xid8(scan->slot, Anum_shard_fence);
	}
	tq_table_scan_close(scan);
	return change;
}

/* Returns the oldest transaction id that is running, or else the next one. */
static FullTransactionId
oldest_running(FullTransactionId next)
{
	TransactionId oldest = GetLatestSnapshot()->xmin;

	return FullTransactionIdFromU64(
		U64FromFullTransactionId(next) +
		(int32) (oldest - XidFromFullTransactionId(next)));
}

/*
 * Returns whether all transactions have ended that may have decided by the set
 * before this change.  The first call after the change sets the fence.
 */
bool
tq_shard_is_settled(FullTransactionId given)
{
	FullTransactionId next;
	Change change;

	if (!ConditionalLockRelationOid(tq_relation_oid(&shard_table),
									ShareRowExclusiveLock))
		return false; /* the change, or another call of this function */
	change = read_change();
	if (FullTransactionIdPrecedes(change.xid, given))
	{
		/*
		 * Raise TQ409 for a transaction that is not known to have changed the set.
		 */
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("transaction " UINT64_FORMAT
					" has not changed the buckets",
					U64FromFullTransactionId(given)),
			 errdetail("It was rolled back, or is not one of this server."),
			 errhint(
				 "Call tq_internal.set_buckets() again, and give what it returns.")));
	}
	if (TransactionIdIsCurrentTransactionId(
			XidFromFullTransactionId(change.xid)))
		return false;
	next = ReadNextFullTransactionId();
	if (FullTransactionIdIsValid(change.fence))
		return !FullTransactionIdPrecedes(oldest_running(next), change.fence);
	if (!FullTransactionIdPrecedes(oldest_running(next), next))
		return true;
	tq_spi_run(&write_fence, TQ_VALUES(FullTransactionIdGetDatum(next)), NULL);
	return false;
}
