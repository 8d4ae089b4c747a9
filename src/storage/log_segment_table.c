/*
 * log_segment_table.c
 *	  Rows of tq_internal.log_segment, and the segments themselves.
 *
 * tq_internal.message and tq_internal.tick are divided into TQ_SEGMENTS
 * segments, which are used in turn.  Each session caches the segment that is
 * written to (subscription_table.c).  A session with an outdated cache writes to an
 * older segment.  That is harmless: readers read all segments, and a segment is
 * truncated only when, under an exclusive lock, everything in it has been
 * published and is no longer needed (retention.c).
 *
 * DELETE and VACUUM in place of TRUNCATE would add a fifth to the WAL of creating
 * tasks one by one.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "../rows/rows.h"
#include "log.h"

static TqRelation segments = TQ_RELATION("log_segment");

/* The columns of tq_internal.log_segment, numbered from 1. */
#define COLUMN_SEGMENT 1
#define COLUMN_SINCE 2

static TqStatement switch_to = TQ_STATEMENT(
	"UPDATE tq_internal.log_segment SET since = $2 WHERE segment = $1",
	INT2OID, TIMESTAMPTZOID);

static TqStatement set_ticks_back = TQ_STATEMENT(
	"UPDATE tq_internal.tick SET published = $1 WHERE published > $1",
	TIMESTAMPTZOID);

/* The order in which segments were switched to stays. */
static TqStatement set_back = TQ_STATEMENT(
	"UPDATE tq_internal.log_segment AS s SET since = $1 - x.n * interval '1 us'"
	" FROM (SELECT segment, row_number() OVER (ORDER BY since DESC, segment) - 1 AS n"
	" FROM tq_internal.log_segment WHERE since > $1) AS x WHERE s.segment = x.segment",
	TIMESTAMPTZOID);

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

static TqStatement is_unpublished = TQ_STATEMENT(
	"SELECT 1 FROM tq_internal.message WHERE segment = $1 AND xid >= pg_snapshot_xmin($2)"
	" AND NOT pg_visible_in_snapshot(xid, $2) LIMIT 1",
	INT4OID, PG_SNAPSHOTOID);

/* Returns the oid of a segment of a table. */
static Oid
oid_of_segment(const char *table, int segment)
{
	char name[NAMEDATALEN];

	snprintf(name, sizeof(name), "%s_%d", table, segment);
	return get_relname_relid(name, get_namespace_oid(TQ_SCHEMA, false));
}

/*
 * Returns the segment that is written to, which is the newest, and of several
 * the first; *since is when it became that.
 */
int
tq_segment_current(TimestampTz *since)
{
	TqTableScan *scan = tq_table_scan_open(&segments);
	int current = -1;

	while (tq_table_scan_next(scan))
	{
		int segment = tq_row_int16(scan->slot, COLUMN_SEGMENT);
		TimestampTz begun = tq_row_time(scan->slot, COLUMN_SINCE);

		if (current >= 0 &&
			(begun < *since || (begun == *since && segment > current)))
			continue;
		current = segment;
		*since = begun;
	}
	tq_table_scan_close(scan);
	if (current < 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("tq_internal.log_segment is empty"),
			 errdetail(
				 "The table always holds one row for each segment of the message log."),
			 errhint(
				 "Restore the rows that were deleted from tq_internal.log_segment.")));
	return current;
}

/* Makes this segment the one that is written to. */
void
tq_segment_switch(int segment, TimestampTz now)
{
	Datum values[2] = {Int16GetDatum(segment), TimestampTzGetDatum(now)};

	tq_spi_run(&switch_to, values, NULL);
}

/*
 * Sets back to now the times of publications, and from which segments were
 * written to, that are later, as a clock left them that was ahead.
 */
void
tq_log_set_back(TimestampTz now)
{
	tq_spi_run(&set_ticks_back, TQ_VALUES(TimestampTzGetDatum(now)), NULL);
	tq_spi_run(&set_back, TQ_VALUES(TimestampTzGetDatum(now)), NULL);
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
	return !has_blocks(oid_of_segment("message", segment)) &&
		   !has_blocks(oid_of_segment("tick", segment));
}

/*
 * Locks a segment exclusively, without waiting; returns false if it is in use.
 */
bool
tq_segment_try_lock(int segment)
{
	return ConditionalLockRelationOid(oid_of_segment("message", segment),
									  AccessExclusiveLock) &&
		   ConditionalLockRelationOid(oid_of_segment("tick", segment),
									  AccessExclusiveLock);
}

/* Returns whether a segment has a row that this snapshot does not see. */
bool
tq_segment_is_unpublished(int segment, Datum upto)
{
	return tq_spi_exists(&is_unpublished,
						 TQ_VALUES(Int32GetDatum(segment), upto));
}

/* Truncates a segment that is locked. */
void
tq_segment_truncate(int segment)
{
	tq_spi_run(&truncate_segment[segment], NULL, NULL);
}
