/*
 * count_snapshot.c
 *	  Which transactions a count of rows includes.
 *
 * Counters begin with a count of rows, which takes a while, and go on with the
 * changes of each transaction, which it applies after its commit.  Each
 * transaction must be in one of the two, and in one only.  So a session that
 * begins to count stores its snapshot here, and a transaction that commits
 * applies its changes if that snapshot does not show it.
 *
 *	counting session					committing transaction
 *	S1	lock the counters				T1	note its xid here
 *	S2	take a snapshot, store it		T2	commit: its rows are visible
 *	S3	unlock							T3	lock the counters, apply what the
 *	S4	count							    stored snapshot does not show
 *	S5	wait for the noted xids that	T4	remove its note
 *		the snapshot shows
 *	S6	lock, remove the snapshot
 *
 * If T3 comes before S1, T2 does too, so that the count includes it, and S2
 * clears what T3 has applied.  If it comes between S3 and S6, the snapshot
 * decides.  If it comes after S6, T2 was not visible at S2, or else S5 would
 * have waited for T4: a transaction that the snapshot shows made its note
 * before.  So its changes are not in the count.
 *
 * A reader waits in the same way for the transactions that have become visible
 * before it began.  Then a change cannot be missing of which the reader has
 * seen a consequence, such as the end of a run whose creation is not applied
 * yet.  A process is in that state for microseconds.  A commit that waits for a
 * synchronous standby is not visible, and is not waited for.
 *
 * The lock of the counters protects the snapshots.  A note is written by its
 * process alone.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

#include "../util/compat.h"
#include "shmem.h"

#define SNAPSHOTS 8
#define WAIT_US 100

typedef struct Stored
{
	bool is_used;
	TransactionId xmin;
	TransactionId xmax;
	int nxip;
	TransactionId *xip; /* in shared memory */
} Stored;

static Stored *stored = NULL;

/* The transaction that a process commits; in a cache line of its own. */
typedef union Note
{
	pg_atomic_uint32 xid; /* 0: none */
	char pad[PG_CACHE_LINE_SIZE];
} Note;

static Note *notes = NULL; /* by number of PGPROC */

/* The transactions that a snapshot can have in progress, and its own. */
static int
xids(void)
{
	return MaxBackends + max_prepared_xacts + 1;
}

static Size
size(void)
{
	Size total = mul_size(SNAPSHOTS, sizeof(Stored));

	total = add_size(total,
					 mul_size(SNAPSHOTS * sizeof(TransactionId), xids()));
	return add_size(total, mul_size(MaxBackends, sizeof(Note)));
}

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	TransactionId *xip = (TransactionId *) ((Stored *) memory + SNAPSHOTS);

	stored = memory;
	notes = (Note *) (xip + SNAPSHOTS * xids());
	for (int i = 0; is_new && i < SNAPSHOTS; i++)
		stored[i].xip = xip + i * xids();
	for (int i = 0; is_new && i < MaxBackends; i++)
		pg_atomic_init_u32(&notes[i].xid, InvalidTransactionId);
}

const TqShmemPart tq_count_snapshot_shmem = {.name = "tq count snapshots",
											 .size = size,
											 .startup = startup};

/* ---- snapshots ---- */

static void
store(Stored *into, Snapshot snapshot)
{
	TransactionId own = GetTopTransactionIdIfAny();

	into->is_used = true;
	into->xmin = snapshot->xmin;
	into->xmax = snapshot->xmax;
	into->nxip = (int) snapshot->xcnt;
	memcpy(into->xip, snapshot->xip, sizeof(TransactionId) * into->nxip);
	if (!TransactionIdIsValid(own))
		return;
	/* A snapshot does not list its own transaction, which goes on. */
	into->xip[into->nxip++] = own;
	if (TransactionIdPrecedes(own, into->xmin))
		into->xmin = own;
}

/*
 * Takes and stores a snapshot, and returns its number, or -1 if there is no
 * room.  The caller holds the lock of the counters, and pushes the snapshot.
 */
int
tq_count_snapshot_take(Snapshot *snapshot)
{
	for (int i = 0; i < SNAPSHOTS; i++)
	{
		if (stored[i].is_used)
			continue;
		*snapshot = GetLatestSnapshot();
		store(&stored[i], *snapshot);
		return i;
	}
	return -1;
}

/* Returns whether a snapshot shows this transaction, which has committed. */
bool
tq_count_snapshot_shows(int number, TransactionId xid)
{
	const Stored *snapshot = &stored[number];

	if (TransactionIdPrecedes(xid, snapshot->xmin))
		return true;
	if (TransactionIdFollowsOrEquals(xid, snapshot->xmax))
		return false;
	for (int i = 0; i < snapshot->nxip; i++)
	{
		if (snapshot->xip[i] == xid)
			return false;
	}
	return true;
}

/* Removes a snapshot.  The caller holds the lock of the counters. */
void
tq_count_snapshot_free(int number)
{
	stored[number].is_used = false;
}

/* ---- notes ---- */

/* Notes that this process commits a transaction that changes counters. */
void
tq_count_commit_begins(TransactionId xid)
{
	if (notes != NULL)
		pg_atomic_write_u32(&notes[TqMyProcNumber()].xid, xid);
}

/* Notes that the changes are applied, or that there are none. */
void
tq_count_commit_ends(void)
{
	if (notes == NULL)
		return;
	pg_memory_barrier();
	pg_atomic_write_u32(&notes[TqMyProcNumber()].xid, InvalidTransactionId);
}

/* Waits until a process has removed its note of a transaction. */
static void
wait_for(int process, TransactionId xid)
{
	while (pg_atomic_read_u32(&notes[process].xid) == xid)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(WAIT_US);
	}
	pg_memory_barrier();
}

/*
 * Waits until the transactions that a snapshot shows have applied their
 * changes.
 */
void
tq_count_snapshot_wait(int number)
{
	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
	{
		TransactionId xid = pg_atomic_read_u32(&notes[i].xid);

		if (TransactionIdIsValid(xid) && tq_count_snapshot_shows(number, xid))
			wait_for(i, xid);
	}
}

/*
 * Waits until the transactions that are visible by now have applied their
 * changes.
 */
void
tq_count_commits_wait(void)
{
	if (notes == NULL)
		return;
	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
	{
		TransactionId xid = pg_atomic_read_u32(&notes[i].xid);

		if (TransactionIdIsValid(xid) &&
			!TransactionIdIsCurrentTransactionId(xid) &&
			!TransactionIdIsInProgress(xid))
			wait_for(i, xid);
	}
}
