/*
 * group_table.c
 *	  Rows of tq_internal.task_group, aggregates over the tasks of a group, and
 *	  callbacks.
 *
 * Most tasks are the only ones of the group named after them.  Such a group has
 * no row, because the task has all its attributes.  A row is written when
 * another task joins the group, or when the group is sealed.
 *
 * Two pairs of operations must exclude each other across sessions:
 *	- joining a group and sealing it: both lock the group before they read its
 *	  row (see below);
 *	- creating the task that a group is named after (its own task), and writing
 *	  or sealing the group's row.  Each session first writes its own row and
 *	  then looks for the other's, with a snapshot that sees uncommitted rows,
 *	  and waits for the transaction that inserted it
 *	  (tq_groups_wait_for_insert, tq_task_wait_for_insert).  Because both write
 *	  before they look, at least one sees the other.  If both do, the server
 *	  detects the deadlock.  The session that writes the group's row also looks
 *	  before it writes, which reduces that window to microseconds.
 *
 * Groups are locked with advisory locks that last until the end of the
 * transaction.  The server's lock table is finite, so a transaction that joins
 * very many groups locks the rows of the groups instead:
 *
 *							advisory lock	row
 *	join					Share			-
 *	create an own task		Exclusive		-
 *	seal					Exclusive		FOR UPDATE
 *	name					-				UPDATE
 *	name, without a row		Exclusive		inserted, UPDATE
 *	join very many			-				FOR KEY SHARE, or inserted
 *
 * The creation of an own task locks the group only in a call that also joins
 * groups, and not very many of them (create.c).
 *
 * Why a join and a seal still exclude each other: the seal holds the group in
 * Exclusive mode, which conflicts with joins that hold it in Share mode, and its
 * row FOR UPDATE, which conflicts with joins that hold that FOR KEY SHARE or have
 * inserted it.  A session of either kind reads the row again when it has the
 * lock.  Joins do not exclude each other, whichever locks they take, nor does a
 * join that prolongs the group.  A transaction locks only groups that it joins
 * or seals, so it holds up no others.
 *
 * Why there is no deadlock: a call locks groups in order of their ids, which is
 * also the order in which it writes and locks their rows.  Transactions of
 * several calls can deadlock with each other, and so can two calls that join
 * very many groups and create own tasks of each other's groups; the server then
 * aborts one of them.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "columns.h"
#include "tasks.h"

/* Classes of advisory locks of tq; 1 and 2 are those of SQL functions. */
#define TQ_LOCK_CLASS_GROUP 7417

/* The maximum number of groups that a joining transaction locks one by one. */
#define GROUPS_LOCKED_MAX 100

static TqRelation group_table = TQ_RELATION("task_group");
static TqRelation group_by_id = TQ_RELATION("task_group_pkey");
static TqRelation group_by_slug = TQ_RELATION("task_group_task_group_id_key");
static TqRelation task_table = TQ_RELATION("task");
static TqRelation task_by_slug = TQ_RELATION("task_task_id_key");
static TqRelation task_by_group = TQ_RELATION("task_group_idx");

TQ_NUMBERS(TQ_TASK_GROUP_COLUMNS, group);
TQ_NUMBERS(TQ_TASK_COLUMNS, task);

static TqStatement insert_group = TQ_STATEMENT(
	"INSERT INTO tq_internal.task_group (id, task_group_id, scheduler_id, expires, queue)"
	" VALUES ($1, $2, nullif($3, '-'), $4, $5) ON CONFLICT (task_group_id) DO NOTHING",
	INT8OID, TQ_SLUGID, TEXTOID, TIMESTAMPTZOID, INT4OID);

static TqStatement prolong = TQ_STATEMENT(
	"UPDATE tq_internal.task_group SET expires = $2 WHERE id = $1 AND expires < $2",
	INT8OID, TIMESTAMPTZOID);

static TqStatement share_row = TQ_STATEMENT(
	"SELECT 1 FROM tq_internal.task_group WHERE id = $1 FOR KEY SHARE",
	INT8OID);

static TqStatement lock_row = TQ_STATEMENT(
	"SELECT 1 FROM tq_internal.task_group WHERE id = $1 FOR UPDATE", INT8OID);

static TqStatement set_sealed = TQ_STATEMENT(
	"UPDATE tq_internal.task_group SET sealed = $2 WHERE id = $1 AND sealed IS NULL",
	INT8OID, TIMESTAMPTZOID);

#define MEMBERS                                                                                        \
	"(SELECT id, created, policy, queue, priority FROM tq_internal.task WHERE group_id = $1 UNION ALL" \
	" SELECT id, created, policy, queue, priority FROM tq_internal.task WHERE task_id = $2 AND group_id IS NULL)"

#define MEMBERS_OF(group)                                                     \
	TQ_VALUES(Int64GetDatum((group)->id),                                     \
			  PointerGetDatum(&(group)->task_group_id))

static TqStatement size = TQ_STATEMENT("SELECT count(*) FROM " MEMBERS " AS m",
									   INT8OID, TQ_SLUGID);

static TqStatement is_large = TQ_STATEMENT(
	"SELECT count(*) FROM (SELECT FROM tq_internal.task WHERE group_id = $1 LIMIT $2) AS x",
	INT8OID, INT4OID);

static TqStatement unresolved = TQ_STATEMENT(
	"SELECT m.id FROM " MEMBERS " AS m"
	" LEFT JOIN tq_internal.unscheduled u ON u.task = m.id"
	" LEFT JOIN LATERAL " TQ_PENDING_OF(
		"m.id") " AS p ON true"
				" LEFT JOIN tq_internal.delayed d ON d.task = m.id"
				" LEFT JOIN tq_internal.run r ON r.task = m.id AND r.state = 2"
				" WHERE u.task IS NOT NULL OR p.task IS NOT NULL OR d.task IS NOT NULL OR r.task IS NOT NULL"
				" ORDER BY m.id",
	INT8OID, TQ_SLUGID);

/*
 * One row per state, reason, delay and onUnsuccessful of the policy
 * (TqUnsuccessful), with the times that count.
 */
static TqStatement progress_rows = TQ_STATEMENT(
	"SELECT s.state, s.reason, s.delayed, count(*), min(s.created), max(s.resolved), min(s.resolved), s.effect"
	" FROM (SELECT m.created, d.task IS NOT NULL AS delayed,"
	" CASE y.policy ->> 'onUnsuccessful' WHEN 'tolerate' THEN 2 WHEN 'forgive' THEN 3 ELSE 0 END::int2 AS effect,"
	" CASE WHEN u.task IS NOT NULL THEN 0 WHEN p.task IS NOT NULL OR d.task IS NOT NULL THEN 1"
	" ELSE r.state END::int2 AS state,"
	" CASE WHEN u.task IS NULL AND p.task IS NULL AND d.task IS NULL THEN r.reason_resolved END AS reason,"
	" CASE WHEN u.task IS NULL AND p.task IS NULL AND d.task IS NULL THEN r.resolved END AS resolved"
	" FROM " MEMBERS " AS m"
	" LEFT JOIN tq_internal.policy y ON y.id = m.policy"
	" LEFT JOIN tq_internal.unscheduled u ON u.task = m.id"
	" LEFT JOIN LATERAL (SELECT z.task FROM tq_internal.pending z"
	" WHERE z.queue = m.queue AND z.priority = m.priority AND z.seq = m.id"
	" UNION ALL SELECT z.task FROM tq_internal.pending z WHERE z.task = m.id AND z.seq <> z.task OFFSET 0) AS p ON true"
	" LEFT JOIN tq_internal.delayed d ON d.task = m.id"
	" LEFT JOIN LATERAL (SELECT * FROM tq_internal.run r WHERE r.task = m.id"
	" ORDER BY r.task DESC, r.run_id DESC LIMIT 1) AS r ON true) AS s"
	" GROUP BY 1, 2, 3, s.effect",
	INT8OID, TQ_SLUGID);

/*
 * An unresolved task.  $1 and $2 are as above.  $3 is the task id to begin at,
 * which does not apply to the group's own task.
 */
#define FIRST_UNRESOLVED                                                               \
	"SELECT m.task_id, m.id FROM ("                                                    \
	"SELECT id, task_id FROM tq_internal.task WHERE task_id = $2 AND group_id IS NULL" \
	" UNION ALL (SELECT id, task_id FROM tq_internal.task WHERE group_id = $1"         \
	" AND task_id >= $3 ORDER BY task_id)) AS m"                                       \
	" LEFT JOIN tq_internal.unscheduled u ON u.task = m.id"                            \
	" LEFT JOIN LATERAL " TQ_PENDING_OF(                                               \
		"m.id") " AS p ON true"                                                        \
				" LEFT JOIN tq_internal.delayed d ON d.task = m.id"                    \
				" LEFT JOIN tq_internal.run r ON r.task = m.id AND r.state = 2"        \
				" WHERE (u.task IS NOT NULL OR p.task IS NOT NULL OR d.task IS NOT NULL OR r.task IS NOT NULL)"

static TqStatement first_unresolved =
	TQ_STATEMENT(FIRST_UNRESOLVED " LIMIT 1", INT8OID, TQ_SLUGID, TQ_SLUGID);

/*
 * One that keeps its group active: it was never resolved, or not since a
 * repair. An unresolved task was resolved before if a run after its first was
 * created by a rerun (4), pending or not; unless it is unscheduled, or a later
 * run was created by a repair (8).
 */
static TqStatement first_active = TQ_STATEMENT(
	FIRST_UNRESOLVED
	" AND (coalesce(p.run_id, d.run_id, 0) = 0 OR coalesce(p.reason_created, d.reason_created) <> 4)"
	" AND (u.task IS NOT NULL OR coalesce(p.reason_created, d.reason_created, 0) = 8"
	" OR NOT EXISTS (SELECT FROM tq_internal.run e WHERE e.task = m.id AND e.run_id > 0"
	" AND e.reason_created = 4 AND NOT EXISTS (SELECT FROM tq_internal.run f"
	" WHERE f.task = e.task AND f.run_id > e.run_id AND f.reason_created = 8)))"
	" LIMIT 1",
	INT8OID, TQ_SLUGID, TQ_SLUGID);

/* Those whose last runs ended without success for one of the reasons $3. */
static TqStatement ended = TQ_STATEMENT(
	"SELECT m.id FROM " MEMBERS
	" AS m JOIN tq_internal.failure f ON f.task = m.id"
	" CROSS JOIN LATERAL (SELECT r.reason_resolved FROM tq_internal.run r WHERE r.task = m.id"
	" ORDER BY r.task DESC, r.run_id DESC LIMIT 1) AS r"
	" WHERE r.reason_resolved::int4 = ANY ($3) ORDER BY m.id",
	INT8OID, TQ_SLUGID, INT4ARRAYOID);

#define DELETE_GROUPS(which)                                                                    \
	"WITH old AS MATERIALIZED (SELECT g.id FROM tq_internal.task_group g WHERE g.expires <= $1" \
	" AND NOT EXISTS (SELECT FROM tq_internal.task t WHERE t.group_id = g.id)" which            \
	" FOR UPDATE SKIP LOCKED)"                                                                  \
	" DELETE FROM tq_internal.task_group g USING old WHERE g.id = old.id RETURNING g.queue::bigint"

static TqStatement delete_groups = TQ_STATEMENT(DELETE_GROUPS(" LIMIT $2"),
												TIMESTAMPTZOID, INT4OID);

static TqStatement delete_these_groups =
	TQ_STATEMENT(DELETE_GROUPS(" AND g.id = ANY ($2)"), TIMESTAMPTZOID,
				 INT8ARRAYOID);

/* ---- locks ---- */

static LOCKTAG
tag_of_group(const TqSlug *slug)
{
	uint64 hash = hash_bytes_extended(slug->bytes, TQ_SLUG_BYTES, 0);
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (hash >> 32),
						 (uint32) hash, TQ_LOCK_CLASS_GROUP);
	return tag;
}

/*
 * Returns the number of groups that this transaction has locked one by one,
 * including `more` that it is about to lock.  Locks that were released by a
 * rollback to a savepoint are still counted.
 */
static int
count_locked(int more)
{
	static TransactionId counted_by = InvalidTransactionId;
	static int locked = 0;
	TransactionId xid = GetTopTransactionId();

	if (!TransactionIdEquals(counted_by, xid))
		locked = 0;
	counted_by = xid;
	locked = Min(locked + more, GROUPS_LOCKED_MAX + 1);
	return locked;
}

/*
 * Returns whether the transaction may take advisory locks of n more groups.  If
 * not, it locks their rows.
 */
bool
tq_groups_fit_locks(int n)
{
	return count_locked(Min(n, GROUPS_LOCKED_MAX + 1)) <= GROUPS_LOCKED_MAX;
}

/* Takes the advisory lock of a group. */
void
tq_group_lock(const TqSlug *slug, bool exclusive)
{
	LOCKTAG tag = tag_of_group(slug);

	(void) LockAcquire(&tag, exclusive ? ExclusiveLock : ShareLock, false,
					   false);
}

/*
 * Locks the row of a group, against seals or, exclusively, against joins.  The
 * caller reads the row again.  Returns false if it has been deleted.
 */
bool
tq_group_lock_row(int64 id, bool exclusive)
{
	return tq_spi_run(exclusive ? &lock_row : &share_row,
					  TQ_VALUES(Int64GetDatum(id)), NULL) > 0;
}

/* ---- rows ---- */

TQ_READER(read_group, TqGroup, TQ_TASK_GROUP_COLUMNS, group)

/*
 * Reads the task_group_id of the group with a number; returns false if it has
 * no row that this snapshot sees.
 */
bool
tq_group_read_slug(int64 id, Snapshot snapshot, TqSlug *slug)
{
	TqScan *scan = tq_scan_open(&group_table, &group_by_id, 1, snapshot);
	bool found = tq_scan_find(scan, Int64GetDatum(id), 0, 0);

	if (found)
		*slug = tq_row_slug(scan->slot, Anum_group_task_group_id);
	tq_scan_close(scan);
	return found;
}

/*
 * Returns the task_group_id of the group of a task that this snapshot sees;
 * the group has a row.
 */
TqSlug
tq_group_slug(int64 id, Snapshot snapshot)
{
	TqSlug slug;

	if (!tq_group_read_slug(id, snapshot, &slug))
		elog(ERROR, "group " INT64_FORMAT " is not in tq_internal.task_group",
			 id);
	return slug;
}

/* Returns the number of a group; 0 if it has no row that this snapshot sees. */
int64
tq_group_number_of(const TqSlug *slug, Snapshot snapshot)
{
	TqScan *scan = tq_scan_open(&group_table, &group_by_slug, 1, snapshot);
	int64 number = 0;

	if (tq_scan_find(scan, PointerGetDatum(slug), 0, 0))
		number = tq_row_int64(scan->slot, Anum_group_id);
	tq_scan_close(scan);
	return number;
}

/*
 * Returns those of these groups that have a row, in the order of slugs[].
 */
TqGroup *
tq_groups_by_slug(const TqSlug *slugs, int n, int *found)
{
	TqGroup *groups = palloc(sizeof(TqGroup) * Max(n, 1));
	TqScan *scan = tq_scan_open(&group_table, &group_by_slug, 1, NULL);

	*found = 0;
	for (int i = 0; i < n; i++)
	{
		if (tq_scan_find(scan, PointerGetDatum(&slugs[i]), 0, 0))
			read_group(scan->slot, &groups[(*found)++]);
	}
	tq_scan_close(scan);
	return groups;
}

/*
 * Returns until when a task keeps its group, but for an hour.  A task that never
 * expires keeps it for the longer retention; a row goes only when no task is in
 * the group any more, so that it is not deleted before the last of them.
 */
TimestampTz
tq_group_until(TimestampTz expires, TimestampTz created)
{
	if (!TIMESTAMP_IS_NOEND(expires))
		return expires;
	return tq_clock_add_ms(created, INT64CONST(1000) * Max(tq_retain_completed,
														   tq_retain_failed));
}

/* Reads a group from the task that it is named after, if that is in it. */
static TqGroupFound
find_own_task(TqGroup *group)
{
	TqScan *scan = tq_scan_open(&task_table, &task_by_slug, 1, NULL);
	bool found = tq_scan_find(scan, PointerGetDatum(&group->task_group_id), 0,
							  0) &&
				 tq_row_int64(scan->slot, Anum_task_group_id) == 0;

	if (found)
	{
		group->scheduler_id = tq_row_scheduler(scan->slot,
											   Anum_task_scheduler_id);
		group->expires =
			tq_clock_add_ms(tq_group_until(tq_row_time(scan->slot,
													   Anum_task_expires),
										   tq_row_time(scan->slot,
													   Anum_task_created)),
							TQ_HOUR_MS);
		group->queue = tq_row_int32(scan->slot, Anum_task_queue);
	}
	tq_scan_close(scan);
	return found ? TQ_GROUP_LONE : TQ_GROUP_NONE;
}

/* Reads a group from its row, or else from its own task. */
TqGroupFound
tq_group_find(const TqSlug *slug, TqGroup *group)
{
	int found;
	TqGroup *row = tq_groups_by_slug(slug, 1, &found);

	if (found > 0)
	{
		*group = *row;
		return TQ_GROUP_STORED;
	}
	*group = (TqGroup){.task_group_id = *slug,
					   .scheduler_id = pstrdup(TQ_DEFAULT_SCHEDULER)};
	return find_own_task(group);
}

/*
 * Inserts the row of a group, with a new id; returns false if another session
 * has inserted one.
 */
bool
tq_group_insert(TqGroup *group)
{
	int64 id = tq_id_next();
	Datum values[5] = {Int64GetDatum(id),
					   PointerGetDatum(&group->task_group_id),
					   CStringGetTextDatum(group->scheduler_id),
					   TimestampTzGetDatum(group->expires),
					   Int32GetDatum(group->queue)};

	group->id = id;
	if (tq_spi_run(&insert_group, values, NULL) == 0)
		return false;
	tq_count(TQ_COUNTED_GROUP, id, TQ_GROUP_NEW, 1);
	tq_count(TQ_COUNTED_QUEUE, group->queue, TQ_QUEUE_GROUPS, 1);
	return true;
}

/*
 * Looks up a key as a unique index does, including uncommitted rows.  Returns
 * whether there is a row; *inserter is the transaction that is inserting or
 * changing it, if that is still in progress.
 */
static bool
find_last_of_key(TqScan *scan, const SnapshotData *dirty, const TqSlug *slug,
				 TransactionId *inserter)
{
	bool found = false;

	*inserter = InvalidTransactionId;
	tq_scan_seek(scan, PointerGetDatum(slug), 0, 0);
	while (!TransactionIdIsValid(*inserter) && tq_scan_next(scan))
	{
		found = true;
		*inserter = TransactionIdIsValid(dirty->xmin) ? dirty->xmin
													  : dirty->xmax;
	}
	return found;
}

/*
 * Looks up these keys in order, from *next on.  Stops at the first that
 * another transaction is inserting, and returns that transaction.  No buffer
 * is pinned on return, so that the caller can wait.
 */
static TransactionId
find_inserter(TqTable *table, TqRelation *index, const TqSlug *slugs, int n,
			  int *next, bool *exist)
{
	SnapshotData dirty;
	TransactionId inserter = InvalidTransactionId;
	TqScan *scan;

	InitDirtySnapshot(dirty);
	scan = tq_scan_begin(table, index, 1, &dirty);
	for (; *next < n; (*next)++)
	{
		exist[*next] = find_last_of_key(scan, &dirty, &slugs[*next],
										&inserter);
		if (TransactionIdIsValid(inserter))
			break;
	}
	tq_scan_end(scan);
	return inserter;
}

/*
 * Waits until no other session is inserting one of these keys; sets exist[]
 * for those that have a row.
 *
 * A table without pages has no rows, so that nothing is looked up as long as no
 * group has a row.  That is as good as looking: a session that is about to
 * insert the first row looks for ours after it.
 */
static void
wait_for_inserts(TqRelation *relation, TqRelation *index, const TqSlug *slugs,
				 int n, bool *exist)
{
	TqTable *table = tq_table_open(relation);
	bool is_empty = RelationGetNumberOfBlocks(table->rel) == 0;
	TransactionId inserter;
	int next = 0;

	memset(exist, 0, sizeof(bool) * n);
	while (!is_empty &&
		   TransactionIdIsValid(
			   inserter = find_inserter(table, index, slugs, n, &next, exist)))
		XactLockTableWait(inserter, NULL, NULL, XLTW_None);
	tq_table_close(table);
}

/* Waits for concurrent inserts of the rows of these groups. */
void
tq_groups_wait_for_insert(const TqSlug *slugs, int n, bool *exist)
{
	wait_for_inserts(&group_table, &group_by_slug, slugs, n, exist);
}

/* Waits for a concurrent insert of a task; returns whether the task exists. */
bool
tq_task_wait_for_insert(const TqSlug *slug)
{
	bool exists;

	wait_for_inserts(&task_table, &task_by_slug, slug, 1, &exists);
	return exists;
}

/*
 * Postpones the expiry of a group, which never moves backwards.  Returns false
 * if the group is gone, or expires later than that anyway.
 */
bool
tq_group_prolong(int64 id, TimestampTz expires)
{
	Datum values[2] = {Int64GetDatum(id), TimestampTzGetDatum(expires)};

	return tq_spi_run(&prolong, values, NULL) > 0;
}

/* Records when a group was sealed, unless it is sealed already. */
void
tq_group_set_sealed(int64 id, TimestampTz sealed)
{
	Datum values[2] = {Int64GetDatum(id), TimestampTzGetDatum(sealed)};

	tq_spi_run(&set_sealed, values, NULL);
}

/* Returns the unresolved tasks of a group, by id. */
int64 *
tq_group_unresolved(const TqGroup *group, int *found)
{
	return tq_spi_run_ids(&unresolved, MEMBERS_OF(group), found);
}

/*
 * Returns the tasks of a group that are failed or exception for one of these
 * reasons, by id.
 */
int64 *
tq_group_ended(const TqGroup *group, const TqResolved *reasons, int n,
			   int *found)
{
	int32 *numbers = palloc(sizeof(int32) * Max(n, 1));
	Datum values[3] = {Int64GetDatum(group->id),
					   PointerGetDatum(&group->task_group_id)};

	for (int i = 0; i < n; i++)
		numbers[i] = reasons[i];
	values[2] = tq_array_int32(numbers, n);
	return tq_spi_run_ids(&ended, values, found);
}

/* Returns the number of tasks in a group. */
int64
tq_group_size(const TqGroup *group)
{
	return tq_spi_run_int64(&size, MEMBERS_OF(group), 0);
}

/* Returns whether a group has so many tasks, without that of its own name. */
bool
tq_group_is_large(const TqGroup *group, int tasks)
{
	Datum values[2] = {Int64GetDatum(group->id), Int32GetDatum(tasks)};

	return group->id != 0 && tq_spi_run_int64(&is_large, values, 0) >= tasks;
}

static void
group_read_count(TupleTableSlot *slot, void *count)
{
	*(TqGroupCount *) count =
		(TqGroupCount){.state = (TqState) tq_row_int16(slot, 1),
					   .reason = (TqResolved) tq_row_int16(slot, 2),
					   .delayed = tq_row_bool(slot, 3),
					   .tasks = tq_row_int64(slot, 4),
					   .first_created = tq_row_time(slot, 5),
					   .last_resolved = tq_row_time(slot, 6),
					   .first_resolved = tq_row_time(slot, 7),
					   .effect = (TqUnsuccessful) tq_row_int16(slot, 8)};
}

/* Counts the tasks of a group by state, reason, delay and effect. */
TqGroupCount *
tq_group_counts(const TqGroup *group, int *found)
{
	return tq_spi_read_all(&progress_rows, MEMBERS_OF(group), group_read_count,
						   sizeof(TqGroupCount), found);
}

static void
read_slug(TupleTableSlot *slot, void *slug)
{
	*(TqSlug *) slug = tq_row_slug(slot, 1);
}

/*
 * Returns whether a group has a task that was never resolved, and which.
 * Checks the group's own task first, then the others in order of their task
 * ids, beginning at `from`.
 */
bool
tq_group_first_active(const TqGroup *group, const TqSlug *from, TqSlug *active)
{
	Datum values[3] = {Int64GetDatum(group->id),
					   PointerGetDatum(&group->task_group_id),
					   PointerGetDatum(from)};

	return tq_spi_read(&first_active, values, read_slug, active);
}

static void
group_read_member(TupleTableSlot *slot, void *member)
{
	TqMember *row = member;

	row->task_id = tq_row_slug(slot, 1);
	row->id = tq_row_int64(slot, 2);
}

/*
 * Reads an unresolved task of a group, and returns whether there is one;
 * checks the tasks in the same order, beginning at member->task_id.
 */
bool
tq_group_first_unresolved(const TqGroup *group, TqMember *member)
{
	TqSlug from = member->task_id;
	Datum values[3] = {Int64GetDatum(group->id),
					   PointerGetDatum(&group->task_group_id),
					   PointerGetDatum(&from)};

	return tq_spi_read(&first_unresolved, values, group_read_member, member);
}

/* Tasks of a group that are looked for. */
typedef struct Others
{
	const int64 *known; /* those that are not, in order */
	int nknown;
	int64 *ids;
	int n;
	int max;
} Others;

/* Adds those which an index has for this value, of tasks with this group. */
static void
add_others(Others *others, TqRelation *index, Datum value, int64 group)
{
	TqScan *scan = tq_scan_open(&task_table, index, 1, NULL);
	int64 id;

	tq_scan_seek(scan, value, 0, 0);
	while (others->n < others->max && tq_scan_next(scan))
	{
		id = tq_row_int64(scan->slot, Anum_task_id);
		if (tq_row_int64(scan->slot, Anum_task_group_id) == group &&
			bsearch(&id, others->known, others->nknown, sizeof(int64),
					tq_compare_ids) == NULL)
			others->ids[others->n++] = id;
	}
	tq_scan_close(scan);
}

/*
 * Returns up to `max` tasks of a group that are none of these; both are in order
 * of id.
 */
int64 *
tq_group_others(const TqGroup *group, const int64 *ids, int n, int max,
				int *found)
{
	Others others = {ids, n, palloc(sizeof(int64) * max), 0, max};

	add_others(&others, &task_by_slug, PointerGetDatum(&group->task_group_id),
			   0);
	add_others(&others, &task_by_group, Int64GetDatum(group->id), group->id);
	qsort(others.ids, others.n, sizeof(int64), tq_compare_ids);
	*found = others.n;
	return others.ids;
}

static TqStatement block_of_group = TQ_STATEMENT(
	"SELECT b.blocked, b.blocked_by FROM tq_internal.block_of_group($1, $2) AS b",
	INT8OID, TQ_SLUGID);

static TqStatement block_of_task = TQ_STATEMENT(
	"SELECT b.blocked, b.blocked_by FROM tq_internal.block_of(ARRAY[$1]) AS b",
	INT8OID);

static void
group_read_block(TupleTableSlot *slot, void *row)
{
	TqBlock *block = row;
	bool isnull;
	Datum blocked = slot_getattr(slot, 1, &isnull);

	block->is_known = !isnull;
	block->blocked = !isnull && DatumGetBool(blocked);
	block->by = tq_row_varlena(slot, 2);
}

/* Finds out whether none of the unscheduled tasks of a group can ever start. */
void
tq_group_block(const TqGroup *group, TqBlock *block)
{
	Datum values[2] = {Int64GetDatum(group->id),
					   PointerGetDatum(&group->task_group_id)};

	(void) tq_spi_read(&block_of_group, values, group_read_block, block);
}

/* The same of an unscheduled task. */
void
tq_task_block(int64 task, TqBlock *block)
{
	(void) tq_spi_read(&block_of_task, TQ_VALUES(Int64GetDatum(task)),
					   group_read_block, block);
}

/*
 * Deletes those of these n groups that have expired by then and have no task
 * left, or n of all if ids is NULL, skipping locked rows; returns their number.
 */
int
tq_groups_delete(TimestampTz before, const int64 *ids, int n)
{
	Datum values[2] = {TimestampTzGetDatum(before),
					   ids == NULL ? Int32GetDatum(n)
								   : tq_array_int64(ids, n)};

	return n == 0 ? 0
				  : tq_count_changed_rows(TQ_QUEUE_GROUPS, -1,
										  ids == NULL ? &delete_groups
													  : &delete_these_groups,
										  values);
}

/* ---- callbacks ---- */

/*
 * A row of tq_internal.group_callback is a task to create when the group
 * resolves.  The session that creates the task locks the row, and deletes it in
 * the same transaction, so that the task is created once.  The ids are of the
 * same sequence as those of tasks, so that timers can name both.
 */

static TqRelation callback_table = TQ_RELATION("group_callback");

TQ_NUMBERS(TQ_GROUP_CALLBACK_COLUMNS, group_callback);

static TqStatement insert_callback = TQ_STATEMENT(
	"INSERT INTO tq_internal.group_callback VALUES ($1, $2, $3, $4, $5, $6, $7)"
	" ON CONFLICT (task_id) DO NOTHING",
	INT8OID, TIMESTAMPTZOID, TQ_SLUGID, TQ_SLUGID, OIDOID, TEXTOID, JSONBOID);

static TqStatement lock_callback = TQ_STATEMENT(
	"SELECT * FROM tq_internal.group_callback WHERE id = $1 FOR UPDATE SKIP LOCKED",
	INT8OID);

static TqStatement delete_callback =
	TQ_STATEMENT("DELETE FROM tq_internal.group_callback WHERE id = $1",
				 INT8OID);

static TqStatement find_callback =
	TQ_STATEMENT("SELECT FROM tq_internal.group_callback WHERE id = $1",
				 INT8OID);

static TqStatement callbacks_of_groups = TQ_STATEMENT(
	"SELECT id FROM tq_internal.group_callback WHERE task_group_id = ANY ($1) ORDER BY id",
	TQ_SLUGIDS);

TQ_READER(read_callback, TqCallback, TQ_GROUP_CALLBACK_COLUMNS, group_callback)

/* Inserts a callback; returns false if there is one with the same task_id. */
bool
tq_callback_insert(const TqCallback *callback)
{
	Datum values[] = {Int64GetDatum(callback->id),
					  TimestampTzGetDatum(callback->registered),
					  PointerGetDatum(&callback->task_group_id),
					  PointerGetDatum(&callback->task_id),
					  ObjectIdGetDatum(callback->role),
					  callback->client == NULL
						  ? (Datum) 0
						  : CStringGetTextDatum(callback->client),
					  JsonbPGetDatum(callback->definition)};
	const char *nulls = callback->client == NULL ? "     n " : NULL;

	return tq_spi_run(&insert_callback, values, nulls) > 0;
}

/*
 * Locks and reads a callback; returns false if it does not exist, or another
 * session has locked it.
 */
bool
tq_callback_lock(int64 id, TqCallback *callback)
{
	return tq_spi_read(&lock_callback, TQ_VALUES(Int64GetDatum(id)),
					   read_callback, callback);
}

/* Returns whether a callback exists. */
bool
tq_callback_exists(int64 id)
{
	return tq_spi_exists(&find_callback, TQ_VALUES(Int64GetDatum(id)));
}

/* Deletes a callback. */
void
tq_callback_delete(int64 id)
{
	tq_spi_run(&delete_callback, TQ_VALUES(Int64GetDatum(id)), NULL);
}

/* Returns whether there is, or was, a callback since the last vacuum. */
static bool
was_used(void)
{
	TqTable *table = tq_table_open(&callback_table);
	bool used = RelationGetNumberOfBlocks(table->rel) > 0;

	tq_table_close(table);
	return used;
}

/*
 * Returns the ids of the callbacks of these groups.  Most databases have none,
 * and most tasks are a group: these are spared the look-ups.
 */
int64 *
tq_callbacks_of_groups(const TqSlug *groups, int n, int *found)
{
	*found = 0;
	if (!was_used())
		return NULL;
	return tq_spi_run_ids(&callbacks_of_groups,
						  TQ_VALUES(tq_array_slugid(groups, n)), found);
}
