/*
 * tq_shard.c
 *	  Initialization of the library tq_shard.
 *
 * The library is one of its own, so that a shard, and a database that is none, has
 * nothing of a router.  It uses no function and no variable of the library tq: that
 * would need another order of loading, and each such function to be visible outside
 * of tq, which the server's build does not make it from 16 on.  What both need, how
 * an id and a line are read and written, is in two files of util without state, and
 * each library has its copy (.ci/checks/symbols).  The types and functions of tq
 * that a router runs itself are those of the library tq, which SQL names
 * (src/extras/router/generate).
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_namespace.h"
#include "storage/lock.h"

#include "router.h"

/*
 * ---- the lock of a router's map ----
 *
 * A procedure that changes the map commits several times, and holds this lock
 * from its begin to its end.  The lock of a transaction would be released by the
 * first commit; that of a session would outlive an error.  So this is the lock
 * of a session that an abort releases.  The library has transaction callbacks of
 * its own for this, which do nothing while the lock is not held.
 */

static SubTransactionId held_by = InvalidSubTransactionId;

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
 * tq_router_map_unlock() or an abort; returns false if another session has it.
 */
bool
tq_router_map_lock(bool over_commits)
{
	LOCKTAG tag = map_tag();

	if (LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	if (over_commits && held_by == InvalidSubTransactionId)
	{
		(void) LockAcquire(&tag, ExclusiveLock, true, true);
		held_by = GetCurrentSubTransactionId();
	}
	return true;
}

/* Releases the lock, if this session has it. */
void
tq_router_map_unlock(void)
{
	LOCKTAG tag = map_tag();

	if (held_by == InvalidSubTransactionId)
		return;
	held_by = InvalidSubTransactionId;
	(void) LockRelease(&tag, ExclusiveLock, true);
}

/*
 * Releases the lock if the transaction fails.  It outlives a commit, so that no
 * other session comes in between.
 */
static void
map_lock_transaction_ends(XactEvent event, void *arg)
{
	if (held_by == InvalidSubTransactionId)
		return;
	switch (event)
	{
		case XACT_EVENT_ABORT:
			tq_router_map_unlock();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
			held_by = TopSubTransactionId;
			break;
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
			break;
	}
}

/*
 * Releases the lock if the part of the transaction that has locked fails.  What
 * has been committed is the outer part from then on.
 */
static void
map_lock_subtransaction_ends(SubXactEvent event, SubTransactionId id,
							 SubTransactionId parent, void *arg)
{
	if (held_by != id)
		return;
	switch (event)
	{
		case SUBXACT_EVENT_ABORT_SUB:
			tq_router_map_unlock();
			break;
		case SUBXACT_EVENT_COMMIT_SUB:
			held_by = parent;
			break;
		case SUBXACT_EVENT_START_SUB:
		case SUBXACT_EVENT_PRE_COMMIT_SUB:
			break;
	}
}

/* ---- the library ---- */

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

/* Initializes the library when a session loads it. */
void
_PG_init(void)
{
	/* Have these called at the end of each transaction. */
	RegisterXactCallback(map_lock_transaction_ends, NULL);
	RegisterSubXactCallback(map_lock_subtransaction_ends, NULL);
}
