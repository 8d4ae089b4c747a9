/*
 * shmem.c
 *	  The background workers' shared memory, and how a commit wakes them.
 *
 * Decides who may access which shared field, when a committed
 * transaction wakes a maintenance worker, and how its requests reach the
 * launcher.  What these processes do is in maintenance_worker.c and launcher.c;
 * which statements need a maintenance worker to end is in utility_hook.c.
 * Without shared_preload_libraries there is no shared memory, and the
 * functions for transactions do nothing.
 *
 * The sleep of a maintenance worker, and why no wake-up is lost
 * -------------------------------------------------------------
 * The slot of a maintenance worker has two times: `noted`, the earliest due
 * time committed since its cycle began, and `next_due`, the time until which
 * it sleeps (DT_NOBEGIN while it is awake).
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
 *
 * A due time noted in a savepoint that was rolled back may be too early, which
 * costs one cycle without work.  A prepared transaction drops its notes;
 * COMMIT PREPARED wakes the maintenance worker in any case (utility_hook.c).
 */
#include "postgres.h"

#include <signal.h>

#include "access/xact.h"
#include "common/hashfn.h"
#include "datatype/timestamp.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "../util/clock.h"
#include "../util/compat.h"
#include "../util/xact_end.h"
#include "claim_cursor.h"
#include "shmem.h"
#include "wait_queue.h"

#define NOBODY PG_UINT32_MAX /* no process */
#define ASKED_MAX 32         /* requests kept; more become a rescan */

/*
 * What a maintenance worker has done since it began.  Written by the
 * maintenance worker, read by any session, without a lock, so that a reader
 * may see numbers of two moments.
 */
typedef struct Activity
{
	pg_atomic_uint64 batches;
	pg_atomic_uint64 tasks;
	pg_atomic_uint64
		last_at; /* times; the next two are durations in microseconds */
	pg_atomic_uint64 last_late;
	pg_atomic_uint64 max_late;
	pg_atomic_uint64 max_late_at;
	pg_atomic_uint64 failures;
	pg_atomic_uint64 failed_at;
	pg_atomic_uint32 failing;   /* 1: the last batch failed */
	char error[TQ_SHMEM_ERROR]; /* of the last failure; under the lock */
} Activity;

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
	bool told; /* asked to end; read without the lock by its owner */
	int pid;   /* 0: not attached */
	TqExit how;
	uint64 generation;        /* number of the use of this slot */
	pg_atomic_uint32 process; /* number of its PGPROC, or NOBODY; no lock */
	pg_atomic_uint64
		next_due;           /* see the banner; written by its owner; no lock */
	pg_atomic_uint64 noted; /* see the banner; no lock */
	pg_atomic_uint32 messages; /* 1: something is to be published; no lock */
	pg_atomic_uint32
		state; /* TqMaintenanceState; written by its owner; no lock */
	Activity turns;
	Activity steps[TQ_SHMEM_STEPS];
} WorkerSlot;

typedef struct Shared
{
	LWLock *lock;
	pg_atomic_uint32 launcher; /* number of its PGPROC, or NOBODY; no lock */
	uint64 generation;
	bool rescan;
	int asked_count;
	Oid asked[ASKED_MAX];
	int slot_count;
	WorkerSlot slots[FLEXIBLE_ARRAY_MEMBER];
} Shared;

/*
 * One per process that can have a session, by the number of its PGPROC: the
 * channels on which it may LISTEN.  Written by that process before it listens
 * and when it ends.  The publisher of the database reads it after it has taken
 * the snapshot of the messages that it will publish.  A message that a
 * listener must get was committed after its LISTEN was, and so after the bit
 * was set.
 */
typedef struct Listen
{
	Oid database;
	pg_atomic_uint64 channels; /* tq_shmem_channel_bit() of each */
} Listen;

static Shared *shared = NULL;
static Listen *listens = NULL;
static WorkerSlot *my_slot = NULL;

/* What this transaction reports at its commit. */
static TimestampTz noted_due = DT_NOEND;
static bool noted_message = false;

/*
 * A request to background processes.  It belongs to the subtransaction that
 * made it, and is dropped when that is rolled back.
 */
typedef struct Request
{
	TqRequest what;
	Oid database;
	int level; /* nesting level of the transaction */
} Request;

#define REQUESTS_MAX 16

static Request requests[REQUESTS_MAX];
static int nrequests = 0;

static shmem_request_hook_type next_shmem_request_hook = NULL;
static shmem_startup_hook_type next_shmem_startup_hook = NULL;

/*
 * Start of the server.
 */

static Size
shared_size(void)
{
	return add_size(offsetof(Shared, slots),
					mul_size(max_worker_processes, sizeof(WorkerSlot)));
}

static Size
listens_size(void)
{
	return mul_size(MaxBackends, sizeof(Listen));
}

static void
request(void)
{
	if (next_shmem_request_hook)
		next_shmem_request_hook();
	RequestAddinShmemSpace(add_size(shared_size(), listens_size()));
	RequestNamedLWLockTranche("TqWorkers", 1);
}

static void
begin_activity(Activity *activity)
{
	pg_atomic_init_u64(&activity->batches, 0);
	pg_atomic_init_u64(&activity->tasks, 0);
	pg_atomic_init_u64(&activity->last_at, (uint64) DT_NOBEGIN);
	pg_atomic_init_u64(&activity->last_late, 0);
	pg_atomic_init_u64(&activity->max_late, 0);
	pg_atomic_init_u64(&activity->max_late_at, (uint64) DT_NOBEGIN);
	pg_atomic_init_u64(&activity->failures, 0);
	pg_atomic_init_u64(&activity->failed_at, (uint64) DT_NOBEGIN);
	pg_atomic_init_u32(&activity->failing, 0);
	activity->error[0] = '\0';
}

static void
begin_activities(WorkerSlot *slot)
{
	begin_activity(&slot->turns);
	for (int step = 0; step < TQ_SHMEM_STEPS; step++)
		begin_activity(&slot->steps[step]);
}

static void
init_shared(void)
{
	memset(shared, 0, shared_size());
	shared->lock = &(GetNamedLWLockTranche("TqWorkers"))->lock;
	pg_atomic_init_u32(&shared->launcher, NOBODY);
	shared->slot_count = max_worker_processes;
	for (int i = 0; i < shared->slot_count; i++)
	{
		pg_atomic_init_u32(&shared->slots[i].process, NOBODY);
		pg_atomic_init_u64(&shared->slots[i].next_due, (uint64) DT_NOBEGIN);
		pg_atomic_init_u64(&shared->slots[i].noted, (uint64) DT_NOEND);
		pg_atomic_init_u32(&shared->slots[i].messages, 0);
		pg_atomic_init_u32(&shared->slots[i].state, TQ_MAINTENANCE_ABSENT);
		begin_activities(&shared->slots[i]);
	}
}

static void
startup(void)
{
	bool found;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("tq workers", shared_size(), &found);
	if (!found)
		init_shared();
	listens = ShmemInitStruct("tq listens", listens_size(), &found);
	for (int i = 0; !found && i < MaxBackends; i++)
	{
		listens[i].database = InvalidOid;
		pg_atomic_init_u64(&listens[i].channels, 0);
	}
	LWLockRelease(AddinShmemInitLock);
}

/* Requests the shared memory; called only under shared_preload_libraries. */
void
tq_shmem_init(void)
{
	next_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request;
	next_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup;
	tq_cursor_init();
	tq_wait_init();
}

/*
 * Waking.  A latch is found by the number of a PGPROC, which outlives the
 * process.  The worst that a stale number can do is to wake another process
 * without need.
 */

static void
wake(pg_atomic_uint32 *process)
{
	uint32 number = pg_atomic_read_u32(process);

	if (number != NOBODY)
		SetLatch(&GetPGProcByNumber(number)->procLatch);
}

/*
 * Returns the slot of a database, or NULL.  Without the lock the answer may be
 * out of date.
 */
static WorkerSlot *
find_slot(Oid database)
{
	for (int i = 0; i < shared->slot_count; i++)
	{
		if (shared->slots[i].database == database)
			return &shared->slots[i];
	}
	return NULL;
}

/*
 * What a transaction reports.
 */

/*
 * Notes a due time, and wakes the maintenance worker if it would sleep longer
 * (C2 and C3 of the banner).
 */
static void
signal_due(WorkerSlot *slot, TimestampTz due)
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
signal_message(WorkerSlot *slot)
{
	pg_memory_barrier();
	if (pg_atomic_read_u32(&slot->messages) != 0 ||
		pg_atomic_exchange_u32(&slot->messages, 1) != 0)
		return;
	if ((TimestampTz) pg_atomic_read_u64(&slot->next_due) != DT_NOBEGIN)
		wake(&slot->process);
}

/*
 * Requests that the launcher looks whether a database needs a maintenance
 * worker.
 */
static void
ask(Oid database)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (shared->asked_count < ASKED_MAX)
		shared->asked[shared->asked_count++] = database;
	else
		shared->rescan = true;
	LWLockRelease(shared->lock);
	wake(&shared->launcher);
}

static void
ask_rescan(void)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	shared->rescan = true;
	LWLockRelease(shared->lock);
	wake(&shared->launcher);
}

/* Makes the maintenance worker of a database look for all that may be due. */
static void
wake_worker(Oid database)
{
	WorkerSlot *slot = find_slot(database);

	if (slot == NULL)
		return;
	signal_message(slot);
	signal_due(slot, TQ_LONG_AGO);
}

/* Sends the requests to the background processes. */
static void
send_requests(void)
{
	for (int i = 0; i < nrequests; i++)
	{
		switch (requests[i].what)
		{
			case TQ_REQUEST_RESTART:
				(void) tq_shmem_stop(requests[i].database, false);
				break;
			case TQ_REQUEST_START:
				ask(requests[i].database);
				wake_worker(requests[i].database);
				break;
			case TQ_REQUEST_WAKE:
				wake_worker(requests[i].database);
				break;
			case TQ_REQUEST_RESCAN:
				ask_rescan();
				break;
		}
	}
}

/*
 * Reports what this transaction has noted.  Raises no error, because the
 * transaction is committed.
 */
static void
signal_commit(void)
{
	WorkerSlot *slot;

	send_requests();
	if (noted_due == DT_NOEND && !noted_message)
		return;
	slot = find_slot(MyDatabaseId);
	if (slot == NULL)
		return;
	if (noted_message)
		signal_message(slot);
	if (noted_due != DT_NOEND)
		signal_due(slot, noted_due);
}

/*
 * Sends a request to look for databases although the transaction was rolled
 * back.
 */
static void
rescan_after_abort(void)
{
	for (int i = 0; i < nrequests; i++)
	{
		if (requests[i].what == TQ_REQUEST_RESCAN)
		{
			ask_rescan();
			return;
		}
	}
}

/*
 * Drops the requests of a subtransaction that is rolled back.  A request to
 * look for databases stays, because it changes nothing.
 */
static void
drop_requests(int level)
{
	int kept = 0;

	for (int i = 0; i < nrequests; i++)
	{
		if (requests[i].level < level || requests[i].what == TQ_REQUEST_RESCAN)
			requests[kept++] = requests[i];
	}
	nrequests = kept;
}

static void
requests_abort(SubTransactionId id)
{
	if (id == TopSubTransactionId)
		rescan_after_abort();
	else
		drop_requests(GetCurrentTransactionNestLevel());
}

/* Passes the requests of a subtransaction to its parent. */
static void
requests_subcommit(void)
{
	int level = GetCurrentTransactionNestLevel();

	for (int i = 0; i < nrequests; i++)
		requests[i].level = Min(requests[i].level, level - 1);
}

static void
drop_notes(void)
{
	noted_due = DT_NOEND;
	noted_message = false;
	nrequests = 0;
}

const TqXactEnd tq_request_xact_end = {.commit = signal_commit,
									   .abort = requests_abort,
									   .reset = drop_notes,
									   .subcommit = requests_subcommit};

/* Notes that this transaction writes something that is due at that time. */
void
tq_shmem_note_due(TimestampTz due)
{
	if (shared == NULL || due >= noted_due)
		return;
	noted_due = due;
}

/* Notes that this transaction writes something that is to be published. */
void
tq_shmem_note_message(void)
{
	if (shared == NULL)
		return;
	noted_message = true;
}

/*
 * Notes a request for a database, which is sent when this transaction commits.
 */
void
tq_shmem_request(TqRequest what, Oid database)
{
	if (shared == NULL)
		return;
	for (int i = 0; i < nrequests; i++)
	{
		if (requests[i].what == what && requests[i].database == database)
			return;
	}
	/*
	 * So many requests concern many databases: the worst is a restart that is
	 * lost.
	 */
	if (nrequests == REQUESTS_MAX)
		nrequests--;
	requests[nrequests++] =
		(Request){.what = what,
				  .database = database,
				  .level = GetCurrentTransactionNestLevel()};
}

/*
 * The launcher's side.
 */

static void
launcher_exits(int code, Datum arg)
{
	pg_atomic_write_u32(&shared->launcher, NOBODY);
}

/*
 * Attaches the launcher.  Maintenance workers that a former launcher started
 * keep running.  Slots to which no maintenance worker is attached are freed; a
 * maintenance worker that attaches later finds another generation.
 */
void
tq_shmem_launcher_attach(void)
{
	pg_atomic_write_u32(&shared->launcher, TqMyProcNumber());
	on_shmem_exit(launcher_exits, (Datum) 0);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < shared->slot_count; i++)
	{
		if (shared->slots[i].pid == 0)
			shared->slots[i].database = InvalidOid;
	}
	LWLockRelease(shared->lock);
}

/* Takes the requests made since the last call; returns their number. */
int
tq_shmem_take_asked(Oid *databases, int max, bool *rescan)
{
	int n;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	n = Min(shared->asked_count, max);
	memcpy(databases, shared->asked, n * sizeof(Oid));
	shared->asked_count -= n;
	memmove(shared->asked,
			shared->asked + n,
			shared->asked_count * sizeof(Oid));
	*rescan = shared->rescan;
	shared->rescan = false;
	LWLockRelease(shared->lock);
	return n;
}

/* Returns the number of slots. */
int
tq_shmem_slots(void)
{
	return shared->slot_count;
}

/* Returns the state of a slot, as the launcher needs it. */
TqSlotView
tq_shmem_slot_view(int slot)
{
	WorkerSlot *s = &shared->slots[slot];
	TqSlotView view;

	LWLockAcquire(shared->lock, LW_SHARED);
	view.database = s->database;
	view.settled = s->settled;
	view.ended = s->ended;
	view.how = s->how == TQ_EXIT_FAILED && s->told ? TQ_EXIT_REQUESTED
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
tq_shmem_slot_take(Oid database, uint64 *generation)
{
	int slot = 0;
	WorkerSlot *s;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	while (slot < shared->slot_count &&
		   shared->slots[slot].database != InvalidOid)
		slot++;
	if (slot < shared->slot_count)
	{
		s = &shared->slots[slot];
		s->settled = s->ended = s->told = false;
		s->pid = 0;
		s->how = TQ_EXIT_FAILED;
		s->generation = *generation = ++shared->generation;
		s->database = database;
	}
	LWLockRelease(shared->lock);
	return slot < shared->slot_count ? slot : -1;
}

/* Frees a slot. */
void
tq_shmem_slot_free(int slot)
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
	pg_atomic_write_u32(&my_slot->process, NOBODY);
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
tq_shmem_worker_attach(int slot, uint64 generation)
{
	WorkerSlot *s = &shared->slots[slot];
	bool mine;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	mine = s->database != InvalidOid && s->generation == generation;
	if (mine)
	{
		s->pid = MyProcPid;
		pg_atomic_write_u64(&s->next_due, (uint64) DT_NOBEGIN);
		begin_activities(s);
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
tq_shmem_worker_settled(void)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	my_slot->settled = true;
	LWLockRelease(shared->lock);
	wake(&shared->launcher);
}

/* Returns whether this maintenance worker was asked to end. */
bool
tq_shmem_worker_must_exit(void)
{
	return my_slot->told;
}

/* Records for the launcher why this maintenance worker is about to exit. */
void
tq_shmem_worker_ends(TqExit how)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	my_slot->how = how;
	LWLockRelease(shared->lock);
}

static void
count(Activity *activity, uint64 tasks, TimestampTz now)
{
	pg_atomic_write_u64(&activity->batches,
						pg_atomic_read_u64(&activity->batches) + 1);
	pg_atomic_write_u64(&activity->tasks,
						pg_atomic_read_u64(&activity->tasks) + tasks);
	pg_atomic_write_u64(&activity->last_at, (uint64) now);
}

/*
 * Counts a committed batch of a step.  `late` is how many microseconds its
 * first task was late, or -1 if that is unknown.
 */
void
tq_shmem_count_batch(int step, uint64 tasks, TimestampTz now, int64 late)
{
	Activity *activity = &my_slot->steps[step];

	count(activity, tasks, now);
	if (late < 0)
		return;
	pg_atomic_write_u64(&activity->last_late, late);
	if (pg_atomic_read_u64(&activity->max_late_at) != (uint64) DT_NOBEGIN &&
		late <= (int64) pg_atomic_read_u64(&activity->max_late))
		return;
	pg_atomic_write_u64(&activity->max_late, late);
	pg_atomic_write_u64(&activity->max_late_at, (uint64) now);
}

/* Counts a batch of a step that failed and was rolled back. */
void
tq_shmem_count_failure(int step, TimestampTz now, const char *error)
{
	Activity *activity = &my_slot->steps[step];

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	strlcpy(activity->error, error, TQ_SHMEM_ERROR);
	activity->error[pg_mbcliplen(error, strlen(error), TQ_SHMEM_ERROR - 1)] =
		'\0';
	LWLockRelease(shared->lock);
	pg_atomic_write_u64(&activity->failures,
						pg_atomic_read_u64(&activity->failures) + 1);
	pg_atomic_write_u64(&activity->failed_at, (uint64) now);
	pg_atomic_write_u32(&activity->failing, 1);
}

/* Records that a step no longer fails. */
void
tq_shmem_step_succeeds(int step)
{
	pg_atomic_write_u32(&my_slot->steps[step].failing, 0);
}

/* Records what this maintenance worker does, for tq.maintenance_overview. */
void
tq_shmem_worker_state(TqMaintenanceState state)
{
	pg_atomic_write_u32(&my_slot->state, state);
}

/*
 * Begins a cycle (W1 of the banner); the caller has reset its latch.  Returns
 * the earliest due time that was noted since the last cycle began, which the
 * caller must remember from here on.
 */
TimestampTz
tq_shmem_cycle_begin(TimestampTz now)
{
	TimestampTz noted;

	count(&my_slot->turns, 0, now);
	pg_atomic_write_u64(&my_slot->next_due, (uint64) DT_NOBEGIN);
	noted = (TimestampTz) pg_atomic_exchange_u64(&my_slot->noted,
												 (uint64) DT_NOEND);
	pg_memory_barrier();
	return noted;
}

/*
 * Resets the flag for messages, so that the maintenance worker learns of all
 * that is committed from here on and that its next snapshot does not see.
 */
void
tq_shmem_publish_begin(void)
{
	pg_atomic_write_u32(&my_slot->messages, 0);
	pg_memory_barrier();
}

/*
 * Ends a cycle (W3 and W4 of the banner).  Returns until when the maintenance
 * worker may sleep; *messages is set if there is something to be published.
 */
TimestampTz
tq_shmem_cycle_end(TimestampTz due, bool *messages)
{
	TimestampTz noted;

	pg_atomic_write_u64(&my_slot->next_due, (uint64) due);
	pg_memory_barrier();
	*messages = pg_atomic_read_u32(&my_slot->messages) != 0;
	noted = (TimestampTz) pg_atomic_read_u64(&my_slot->noted);
	return Min(due, noted);
}

/* Returns what the maintenance worker of this database does. */
TqMaintenanceState
tq_shmem_state(void)
{
	WorkerSlot *slot = shared == NULL ? NULL : find_slot(MyDatabaseId);

	if (slot == NULL || pg_atomic_read_u32(&slot->process) == NOBODY)
		return TQ_MAINTENANCE_ABSENT;
	return (TqMaintenanceState) pg_atomic_read_u32(&slot->state);
}

/*
 * Copies what the maintenance worker of this database has done in a step, or
 * with step -1 its cycles.  Returns false if there is no maintenance worker.
 */
bool
tq_shmem_activity(int step, TqActivity *view)
{
	WorkerSlot *slot = shared == NULL ? NULL : find_slot(MyDatabaseId);
	Activity *activity;

	if (slot == NULL || pg_atomic_read_u32(&slot->process) == NOBODY)
		return false;
	activity = step < 0 ? &slot->turns : &slot->steps[step];
	view->batches = pg_atomic_read_u64(&activity->batches);
	view->tasks = pg_atomic_read_u64(&activity->tasks);
	view->last_at = (TimestampTz) pg_atomic_read_u64(&activity->last_at);
	view->last_late = pg_atomic_read_u64(&activity->last_late);
	view->max_late = pg_atomic_read_u64(&activity->max_late);
	view->max_late_at = (TimestampTz) pg_atomic_read_u64(
		&activity->max_late_at);
	view->failures = pg_atomic_read_u64(&activity->failures);
	view->failing = pg_atomic_read_u32(&activity->failing) != 0;
	view->failed_at = (TimestampTz) pg_atomic_read_u64(&activity->failed_at);
	LWLockAcquire(shared->lock, LW_SHARED);
	strlcpy(view->error, activity->error, TQ_SHMEM_ERROR);
	LWLockRelease(shared->lock);
	return true;
}

/*
 * Asks the maintenance worker of a database to end: after its transaction, or
 * with by_force in the middle of it.  Returns its process id, on which the
 * caller may wait, or 0 if there is none.  Raises no error.
 */
int
tq_shmem_stop(Oid database, bool by_force)
{
	WorkerSlot *slot;
	int pid = 0;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	slot = find_slot(database);
	if (slot != NULL)
	{
		slot->told = true;
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
 * Listeners.
 */

/*
 * Returns the bit of a channel in a set of channels.  Channels may share a
 * bit, so a set says that a session may listen, or that none does.  All
 * channels of queues share one bit, because there are many.
 */
uint64
tq_shmem_channel_bit(const char *channel)
{
	if (strncmp(channel, TQ_QUEUE_CHANNEL, strlen(TQ_QUEUE_CHANNEL)) == 0)
		return UINT64CONST(1) << 63;
	return UINT64CONST(1) << hash_bytes((const unsigned char *) channel,
										strlen(channel)) %
								 63;
}

static void
listen_ends(int code, Datum arg)
{
	pg_atomic_write_u64(&listens[TqMyProcNumber()].channels, 0);
}

/*
 * Records that this session is about to LISTEN, and may do so until it ends.
 */
void
tq_shmem_listen(const char *channel)
{
	static bool watching = false;
	Listen *listen = &listens[TqMyProcNumber()];

	if (!watching)
		on_shmem_exit(listen_ends, (Datum) 0);
	watching = true;
	listen->database = MyDatabaseId;
	pg_atomic_fetch_or_u64(&listen->channels, tq_shmem_channel_bit(channel));
	pg_memory_barrier();
}

/*
 * Returns the set of channels of this database on which a session may listen;
 * the set of all channels without shared memory.
 */
uint64
tq_shmem_listened(void)
{
	uint64 channels = 0;

	if (shared == NULL)
		return PG_UINT64_MAX;
	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
	{
		if (listens[i].database == MyDatabaseId)
			channels |= pg_atomic_read_u64(&listens[i].channels);
	}
	return channels;
}
