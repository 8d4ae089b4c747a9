/*
 * durable.c
 *	  Whether what a session sees is as durable as a commit that has returned.
 *
 * Room 1.  A transaction becomes visible to others when its commit has been
 * flushed here and, if its session waits for them, on the synchronous standbys.
 * A session that does not wait, or whose wait was cancelled, or a crash, makes
 * visible what the standbys do not have: after a failover it never happened.
 * Whether they have it is decided here, by the positions that the server itself
 * keeps for waiting commits.
 *
 * SyncRepWaitForLSN() does not serve for that: it waits at the level of the
 * session's synchronous_commit, which may be off, and when it is cancelled it
 * only warns, that a transaction "has already committed locally".
 *
 * On a standby nothing waits: it has what it shows.  Another standby, which may
 * be promoted in its place, may not have it yet.
 */
#include "postgres.h"

#include "replication/walsender_private.h" /* what compat.h asks for */

#include "plumbing.h"

#include "access/transam.h"
#include "access/xlog.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "utils/wait_event.h"

#include "compat.h"

#define POLL_MAX_MS 20

/* Reports whether there are synchronous standbys that commits may wait for. */
bool
tq_durable_has_standbys(void)
{
	return !RecoveryInProgress() && max_wal_senders > 0 &&
		   TqSyncStandbysDefined();
}

/*
 * Flushes the commit of a transaction that is visible, unless that has been
 * done.  The server keeps where to flush to for commits that did not flush
 * themselves, until it writes the state of the transaction.
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
	/* States of old transactions are truncated, under this lock. */
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

/* Reports whether the synchronous standbys have flushed up to that position. */
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
 * there are none any more; so many milliseconds, or with -1 as long as it
 * takes.  Returns false when the time is over.  An interrupt ends the wait with
 * the error that belongs to it.
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
		if (WaitLatch(MyLatch,
					  WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					  ms,
					  WAIT_EVENT_SYNC_REP) &
			WL_LATCH_SET)
			was_set = true;
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (max_ms > 0)
			max_ms -= ms;
		ms = Min(ms * 2, POLL_MAX_MS);
	}
	/* What the latch was set for is looked at by the caller's loop. */
	if (was_set)
		SetLatch(MyLatch);
	return result;
}
