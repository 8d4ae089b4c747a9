/*
 * durability.c
 *	  Whether what a session sees is as durable as a commit that has returned.
 *
 * A transaction becomes visible to others when its commit has been flushed here
 * and, if its session waits for them, on the synchronous standbys.  Changes
 * that the standbys lack are visible too if the session does not wait, if its
 * wait is canceled, or after a crash: a failover loses them.  Whether the
 * standbys have them is decided here, by the positions that the server itself
 * keeps for waiting commits.
 *
 * SyncRepWaitForLSN() does not serve for that.  It waits at the level of the
 * session's synchronous_commit, which may be off, and when it is canceled it
 * only warns that the transaction "has already committed locally".
 *
 * On a standby nothing waits, because it has what it shows.  Another standby,
 * which may be promoted in its place, may not have it yet.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "utils/wait_event.h"

#include "util.h"

#define POLL_MAX_MS 20

/* Returns whether there are synchronous standbys that commits may wait for. */
bool
tq_durable_has_standbys(void)
{
	return !RecoveryInProgress() && max_wal_senders > 0 &&
		   TqSyncStandbysDefined();
}

/*
 * Flushes the commit of a visible transaction, unless that has been done.  For
 * a commit that was not flushed by its own session, the server keeps up to
 * where to flush, until it writes the transaction's status to disk.
 */
void
tq_durable_flush(FullTransactionId xid)
{
	uint64 age;
	XLogRecPtr lsn = InvalidXLogRecPtr;

	if (RecoveryInProgress() || !FullTransactionIdIsValid(xid))
		return;
	age = U64FromFullTransactionId(ReadNextFullTransactionId()) -
		  U64FromFullTransactionId(xid);
	/* This lock keeps the status of old transactions from being truncated. */
	LWLockAcquire(XactTruncationLock, LW_SHARED);
	if (age < MaxTransactionId / 2 &&
		!TransactionIdPrecedes(XidFromFullTransactionId(xid),
							   TqTransam->oldestClogXid))
		lsn = TransactionIdGetCommitLSN(XidFromFullTransactionId(xid));
	LWLockRelease(XactTruncationLock);
	if (!XLogRecPtrIsInvalid(lsn))
		XLogFlush(lsn);
}

/*
 * Returns the position up to which this server has flushed its log.  What is
 * visible, and has been flushed, lies before it.
 */
XLogRecPtr
tq_durable_here(void)
{
	return GetFlushRecPtr(NULL);
}

/*
 * Returns whether the synchronous standbys have flushed up to that position.
 */
static bool
is_replicated(XLogRecPtr lsn)
{
	bool result;

	if (!tq_durable_has_standbys())
		return true;
	LWLockAcquire(SyncRepLock, LW_SHARED);
	result = lsn <= WalSndCtl->lsn[SYNC_REP_WAIT_FLUSH];
	LWLockRelease(SyncRepLock);
	return result;
}

/*
 * Waits until the synchronous standbys have flushed up to that position, or
 * until there are none any more: max_ms milliseconds, or without limit if that
 * is -1.  Returns false if the time is over.  An interrupt ends the wait with
 * its error.
 */
bool
tq_durable_within(XLogRecPtr lsn, int max_ms)
{
	bool was_set = false;
	bool result;
	int ms = 1;

	while (!(result = is_replicated(lsn)) && max_ms != 0)
	{
		if (max_ms > 0)
			ms = Min(ms, max_ms);
		if (WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					  ms, WAIT_EVENT_SYNC_REP) &
			WL_LATCH_SET)
			was_set = true;
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (max_ms > 0)
			max_ms -= ms;
		ms = Min(ms * 2, POLL_MAX_MS);
	}
	/* The caller's loop handles what the latch was set for. */
	if (was_set)
		SetLatch(MyLatch);
	return result;
}
