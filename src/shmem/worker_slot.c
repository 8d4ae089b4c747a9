/*
 * worker_slot.c
 *	  The slots of maintenance workers.
 *
 * Each maintenance worker has a slot, through which the launcher starts it and
 * learns how it has ended, and sessions wake it, stop it and see its state.
 * What these processes do is in maintenance_worker.c and launcher.c; what a
 * transaction requests of them at its commit, in worker_request.c.
 *
 * The sleep of a maintenance worker, and why no wake-up is lost
 * -------------------------------------------------------------
 * The slot has two times: `noted`, the earliest due time committed since the
 * cycle began, and `next_due`, the time until which the maintenance worker
 * sleeps (DT_NOBEGIN while it is awake).
 *
 *	maintenance worker							committing backend
 *	W1	next_due = DT_NOBEGIN, noted = DT_NOEND	C1	its rows become visible
 *	W2	full barrier, then take snapshots,		C2	full barrier,
 *		do what is due, find the next due d			noted = min(noted, due)
 *	W3	next_due = d							C3	full barrier,
 *	W4	full barrier, d = min(d, noted)				if due < next_due:
 *	W5	sleep until d or the latch is set				set the latch
 *
 * XACT_EVENT_COMMIT callbacks run after the transaction has left the proc
 * array, so C1 is before C2.  Suppose that the maintenance worker's last
 * snapshot does not see the row.  Then the snapshot was taken before C1, so W1
 * was before C2, and `noted` is not reset again before the sleep.  Either C3
 * reads what W3 wrote, compares with d, and sets the latch; or C3 came before
 * W3, then C2 came before W4, and the maintenance worker sleeps no longer than
 * until `due`.  The latch is reset before W1, so that a latch set since then
 * ends the sleep at once.  While the maintenance worker is awake no backend
 * sets its latch, so that a busy queue does not make it spin.
 *
 * Messages to be published are due at once.  For them `messages` is set
 * instead of `noted`; it is reset between W1 and the publisher's snapshot, and
 * read at W4.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "../util/compat.h"
#include "shmem.h"

#define NO_PROCESS PG_UINT32_MAX
#define ASKED_MAX 32 /* databases kept; more become a rescan */

/*
 * The slot of a maintenance worker.  Written by the launcher while it is free,
 * and by its owner, the maintenance worker, while that is attached.  Fields
 * without a comment are read and written under the lock.
 */
typedef struct WorkerSlot
{
	Oid database; /* InvalidOid: free; read without the lock by committers */
	bool settled;
	bool ended;
	bool must_exit; /* read without the lock by its owner */
	int pid;        /* 0: not attached */
	TqExit how;
	uint64 generation;         /* number of the use of this slot */
	pg_atomic_uint32 process;  /* number of its PGPROC, or NO_PROCESS */
	pg_atomic_uint64 next_due; /* see the banner; written by its owner */
	pg_atomic_uint64 noted;    /* see the banner */
	pg_atomic_uint32 messages; /* 1: something is to be published */
	pg_atomic_uint32 claims;   /* 1: a session was woken, and is to claim */
	pg_atomic_uint32 state;    /* TqMaintenanceState; written by its owner */
} WorkerSlot;

typedef struct Shared
{
	LWLock *lock;
	pg_atomic_uint32 launcher; /* number of its PGPROC, or NO_PROCESS */
	uint64 generation;
	bool rescan;
	int asked_count;
	Oid asked[ASKED_MAX];
	WorkerSlot slots[FLEXIBLE_ARRAY_MEMBER];
} Shared;

static Shared *shared = NULL;
static WorkerSlot *my_slot = NULL;

/*
 * Start of the server.
 */

static Size
size(void)
{
	return add_size(offsetof(Shared, slots),
					mul_size(max_worker_processes, sizeof(WorkerSlot)));
}

static void
init_slot(WorkerSlot *slot)
{
	pg_atomic_init_u32(&slot->process, NO_PROCESS);
	pg_atomic_init_u64(&slot->next_due, (uint64) DT_NOBEGIN);
	pg_atomic_init_u64(&slot->noted, (uint64) DT_NOEND);
	pg_atomic_init_u32(&slot->messages, 0);
	pg_atomic_init_u32(&slot->claims, 0);
	pg_atomic_init_u32(&slot->state, TQ_MAINTENANCE_ABSENT);
}

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	shared = memory;
	if (!is_new)
		return;
	shared->lock = &locks->lock;
	pg_atomic_init_u32(&shared->launcher, NO_PROCESS);
	for (int i = 0; i < max_worker_processes; i++)
		init_slot(&shared->slots[i]);
}

const TqShmemPart tq_slot_shmem = {.name = "tq workers",
								   .tranche = "TqWorkers",
								   .locks = 1,
								   .size = size,
								   .startup = startup};

/*
 * The side of sessions.
 */

/*
 * Sets a latch.  It is found by the number of a PGPROC, which outlives the
 * process.  The worst that a stale number can do is to wake another process
 * without need.
 */
static void
wake(pg_atomic_uint32 *process)
{
	uint32 number = pg_atomic_read_u32(process);

	if (number != NO_PROCESS)
		SetLatch(&GetPGProcByNumber(number)->procLatch);
}

/*
 * Returns the slot of a database, or NULL.  Without the lock the answer may be
 * out of date.
 */
static WorkerSlot *
find_slot(Oid database)
{
	for (int i = 0; shared != NULL && i < max_worker_processes; i++)
	{
		if (shared->slots[i].database == database)
			return &shared->slots[i];
	}
	return NULL;
}

/*
 * Notes a due time, and wakes the maintenance worker if it would sleep longer
 * (C2 and C3 of the banner).
 */
static void
note_due(WorkerSlot *slot, TimestampTz due)
{
	uint64 noted;

	pg_memory_barrier();
	noted = pg_atomic_read_u64(&slot->noted);
	while (due < (TimestampTz) noted &&
		   !pg_atomic_compare_exchange_u64(&slot->noted, &noted, (uint64) due))
		;
	pg_memory_barrier();
	if (due < (TimestampTz) pg_atomic_read_u64(&slot->next_due))
		wake(&slot->process);
}

/*
 * Notes that there is something to be published: C2 and C3 of the banner with
 * the present as due time, and with the flag instead of `noted`.  If the flag
 * is set already, the backend that set it wakes or has woken the maintenance
 * worker, which publishes as soon as it may.
 */
static void
note_message(WorkerSlot *slot)
{
	pg_memory_barrier();
	if (pg_atomic_read_u32(&slot->messages) != 0 ||
		pg_atomic_exchange_u32(&slot->messages, 1) != 0)
		return;
	if ((TimestampTz) pg_atomic_read_u64(&slot->next_due) != DT_NOBEGIN)
		wake(&slot->process);
}

/*
 * Makes the maintenance worker of a database look for what is due then, unless
 * `due` is DT_NOEND, and for messages if there are any.  Raises no error.
 */
void
tq_slot_wake(Oid database, TimestampTz due, bool message)
{
	WorkerSlot *slot = find_slot(database);

	if (slot == NULL)
		return;
	if (message)
		note_message(slot);
	if (due != DT_NOEND)
		note_due(slot, due);
}

/*
 * Notes for the maintenance worker, before it is woken, that a session has been
 * woken to claim, so that it leaves the processor to that session.
 */
void
tq_slot_expect_claim(Oid database)
{
	WorkerSlot *slot = find_slot(database);

	if (slot != NULL)
		pg_atomic_write_u32(&slot->claims, 1);
}

/*
 * Asks the launcher whether a database needs a maintenance worker, or to look
 * for databases if it is InvalidOid.  Raises no error.
 */
void
tq_slot_ask_launcher(Oid database)
{
	if (shared == NULL)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (OidIsValid(database) && shared->asked_count < ASKED_MAX)
		shared->asked[shared->asked_count++] = database;
	else
		shared->rescan = true;
	LWLockRelease(shared->lock);
	wake(&shared->launcher);
}

/*
 * Asks the maintenance worker of a database to end: after its transaction, or
 * with by_force in the middle of it.  Returns its process id, on which the
 * caller may wait, or 0 if there is none.  Raises no error.
 */
int
tq_slot_stop(Oid database, bool by_force)
{
	WorkerSlot *slot;
	int pid = 0;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	slot = find_slot(database);
	if (slot != NULL)
	{
		slot->must_exit = true;
		pid = slot->pid;
		if (pid != 0 && by_force)
			kill(pid, SIGTERM);
	}
	LWLockRelease(shared->lock);
	if (slot != NULL)
		wake(&slot->process);
	return pid;
}

/*
 * Returns the slot of the maintenance worker of this database, or -1 if there
 * is none.
 */
int
tq_slot_running(void)
{
	WorkerSlot *slot = find_slot(MyDatabaseId);

	if (slot == NULL || pg_atomic_read_u32(&slot->process) == NO_PROCESS)
		return -1;
	return slot - shared->slots;
}

/* Returns what the maintenance worker of a slot does, if there is one. */
TqMaintenanceState
tq_slot_state(int slot)
{
	if (slot < 0)
		return TQ_MAINTENANCE_ABSENT;
	return (TqMaintenanceState) pg_atomic_read_u32(&shared->slots[slot].state);
}

/*
 * The launcher's side.
 */

static void
launcher_exits(int code, Datum arg)
{
	pg_atomic_write_u32(&shared->launcher, NO_PROCESS);
}

/*
 * Attaches the launcher.  Maintenance workers that a former launcher started
 * keep running.  Slots to which no maintenance worker is attached are freed; a
 * maintenance worker that attaches later finds another generation.
 */
void
tq_slot_launcher_attach(void)
{
	pg_atomic_write_u32(&shared->launcher, TqMyProcNumber());
	on_shmem_exit(launcher_exits, (Datum) 0);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < max_worker_processes; i++)
	{
		if (shared->slots[i].pid == 0)
			shared->slots[i].database = InvalidOid;
	}
	LWLockRelease(shared->lock);
}

/* Takes the requests made since the last call; returns their number. */
int
tq_slot_launcher_asked(Oid *databases, int max, bool *rescan)
{
	int n;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	n = Min(shared->asked_count, max);
	memcpy(databases, shared->asked, n * sizeof(Oid));
	shared->asked_count -= n;
	memmove(shared->asked, shared->asked + n,
			shared->asked_count * sizeof(Oid));
	*rescan = shared->rescan;
	shared->rescan = false;
	LWLockRelease(shared->lock);
	return n;
}

/* Returns the state of a slot, as the launcher needs it. */
TqSlotView
tq_slot_view(int slot)
{
	WorkerSlot *s = &shared->slots[slot];
	TqSlotView view;

	LWLockAcquire(shared->lock, LW_SHARED);
	view.database = s->database;
	view.settled = s->settled;
	view.ended = s->ended;
	view.how = s->how == TQ_EXIT_FAILED && s->must_exit ? TQ_EXIT_REQUESTED
														: s->how;
	LWLockRelease(shared->lock);
	return view;
}

/*
 * Takes a free slot for the maintenance worker of a database; returns -1 if
 * there is none.  There are as many slots as the server may have background
 * workers, so a slot is free if a process is.
 */
int
tq_slot_take(Oid database, uint64 *generation)
{
	int slot = 0;
	WorkerSlot *s;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	while (slot < max_worker_processes &&
		   shared->slots[slot].database != InvalidOid)
		slot++;
	if (slot < max_worker_processes)
	{
		s = &shared->slots[slot];
		s->settled = s->ended = s->must_exit = false;
		s->pid = 0;
		s->how = TQ_EXIT_FAILED;
		s->generation = *generation = ++shared->generation;
		s->database = database;
	}
	LWLockRelease(shared->lock);
	return slot < max_worker_processes ? slot : -1;
}

/* Frees a slot. */
void
tq_slot_free(int slot)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	shared->slots[slot].database = InvalidOid;
	shared->slots[slot].generation = 0;
	LWLockRelease(shared->lock);
}

/*
 * The maintenance worker's side.
 */

static void
worker_exits(int code, Datum arg)
{
	pg_atomic_write_u32(&my_slot->process, NO_PROCESS);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	my_slot->ended = true;
	my_slot->pid = 0;
	LWLockRelease(shared->lock);
	my_slot = NULL;
	wake(&shared->launcher);
}

/*
 * Attaches this maintenance worker to its slot; returns false if the slot no
 * longer belongs to it.
 */
bool
tq_slot_attach(int slot, uint64 generation)
{
	WorkerSlot *s = &shared->slots[slot];
	bool mine;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	mine = s->database != InvalidOid && s->generation == generation;
	if (mine)
	{
		s->pid = MyProcPid;
		pg_atomic_write_u64(&s->next_due, (uint64) DT_NOBEGIN);
		tq_stats_begin(slot);
		pg_atomic_write_u32(&s->state, TQ_MAINTENANCE_RUNNING);
		pg_atomic_write_u32(&s->process, TqMyProcNumber());
		my_slot = s;
	}
	LWLockRelease(shared->lock);
	if (!mine)
		return false;
	on_shmem_exit(worker_exits, (Datum) 0);
	return true;
}

/*
 * Reports that this maintenance worker stays, so that the launcher may start
 * the next one.
 */
void
tq_slot_settle(void)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	my_slot->settled = true;
	LWLockRelease(shared->lock);
	wake(&shared->launcher);
}

/* Returns whether this maintenance worker was asked to end. */
bool
tq_slot_must_exit(void)
{
	return my_slot->must_exit;
}

/* Records for the launcher why this maintenance worker is about to exit. */
void
tq_slot_end(TqExit how)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	my_slot->how = how;
	LWLockRelease(shared->lock);
}

/* Records what this maintenance worker does, for tq.maintenance_overview. */
void
tq_slot_set_state(TqMaintenanceState state)
{
	pg_atomic_write_u32(&my_slot->state, state);
}

/*
 * Begins a cycle (W1 of the banner); the caller has reset its latch.  Returns
 * the earliest due time that was noted since the last cycle began, which the
 * caller must remember from here on.
 */
TimestampTz
tq_slot_cycle_begin(void)
{
	TimestampTz noted;

	pg_atomic_write_u64(&my_slot->next_due, (uint64) DT_NOBEGIN);
	noted = (TimestampTz) pg_atomic_exchange_u64(&my_slot->noted,
												 (uint64) DT_NOEND);
	pg_memory_barrier();
	return noted;
}

/* Returns whether a session was woken to claim since the last call. */
bool
tq_slot_take_expected_claim(void)
{
	return pg_atomic_read_u32(&my_slot->claims) != 0 &&
		   pg_atomic_exchange_u32(&my_slot->claims, 0) != 0;
}

/*
 * Resets the flag for messages, so that the maintenance worker learns of all
 * that is committed from here on and that its next snapshot does not see.
 */
void
tq_slot_publication_begin(void)
{
	pg_atomic_write_u32(&my_slot->messages, 0);
	pg_memory_barrier();
}

/*
 * Ends a cycle (W3 and W4 of the banner).  Returns until when the maintenance
 * worker may sleep; *messages is set if there is something to be published.
 */
TimestampTz
tq_slot_cycle_end(TimestampTz due, bool *messages)
{
	TimestampTz noted;

	pg_atomic_write_u64(&my_slot->next_due, (uint64) due);
	pg_memory_barrier();
	*messages = pg_atomic_read_u32(&my_slot->messages) != 0;
	noted = (TimestampTz) pg_atomic_read_u64(&my_slot->noted);
	return Min(due, noted);
}
