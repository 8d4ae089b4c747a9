/*
 * map_lock.c
 *	  The lock of a router's map.
 *
 * A procedure that changes the map commits several times, and holds this lock
 * from its begin to its end.  The lock of a transaction would be released by the
 * first commit; that of a session would outlive an error.  So this is the lock
 * of a session that an abort releases.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "storage/lock.h"

#include "util.h"

static SubTransactionId held_by = InvalidSubTransactionId;
static bool is_held = false; /* held_by is valid */

/* An object that no statement of SQL can lock. */
static LOCKTAG
map_tag(void)
{
	LOCKTAG tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, NamespaceRelationId, InvalidOid, 1);
	return tag;
}

/*
 * Locks the map until the end of the transaction, or over commits until
 * tq_map_unlock() or an abort; returns false if another session has it.
 */
bool
tq_map_lock(bool over_commits)
{
	LOCKTAG tag = map_tag();

	if (LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	if (over_commits && held_by == InvalidSubTransactionId)
	{
		(void) LockAcquire(&tag, ExclusiveLock, true, true);
		held_by = GetCurrentSubTransactionId();
		is_held = true;
	}
	return true;
}

/* Releases the lock, if this session has it. */
void
tq_map_unlock(void)
{
	LOCKTAG tag = map_tag();

	if (held_by == InvalidSubTransactionId)
		return;
	held_by = InvalidSubTransactionId;
	is_held = false;
	(void) LockRelease(&tag, ExclusiveLock, true);
}

/* Releases it if the transaction, or the part of it that has locked, fails. */
static void
release(SubTransactionId id)
{
	if (id == TopSubTransactionId || id == held_by)
		tq_map_unlock();
}

/* What has been committed is the outer part from then on. */
static void
keep(SubTransactionId id, SubTransactionId parent)
{
	if (held_by == id)
		held_by = parent;
}

/* The lock outlives a commit, so that no other session comes in between. */
static void
keep_after_commit(void)
{
	if (held_by != InvalidSubTransactionId)
		held_by = TopSubTransactionId;
}

const TqXactEnd tq_map_lock_xact_end = {.has_work = &is_held,
										.abort = release,
										.reset = keep_after_commit,
										.subcommit = keep};
