/*
 * database.c
 *	  What the processes of a database share: its maintenance worker and facts.
 *
 * Each maintenance worker has a slot, through which the launcher starts it and
 * learns how it has ended, and sessions wake it, stop it, and see its state and
 * what it has done since it began.  What these processes do is in
 * maintenance_worker.c and launcher.c; what a transaction requests of them at
 * its commit, in database_request.c.
 *
 * Every session that writes has to know which exchanges are wanted, which
 * segment of the message log is written to, whether the database is in use
 * (activation.c), whether it is a shard, and whether a queue has settings.  That
 * is in seven small tables, and a session that has just begun would load all of
 * them into its relcache for a few bits, which rarely change.  So the first
 * session that reads the tables stores here what they say: the facts.  The last
 * two facts take a sixth from the instructions of a session's first enqueue().
 * Beside them are the numbers of queues that sessions have read (queue_table.c).
 *
 * A session records a channel before it listens.  The publisher of the database
 * reads the channels after it has taken the snapshot of the messages that it
 * will publish.  A message that a listener must get was committed after its
 * LISTEN was, and so after the channel was recorded.  Channels may share a bit
 * of a set of channels, so a set says that a session may listen, or that none
 * does.
 *
 * Locks
 * -----
 * shared->lock protects the requests to the launcher, and of each slot the
 * fields from `database` to `generation`.  Committers read `database` without
 * it, and the maintenance worker reads its own `must_exit`: a value that is out
 * of date costs a wake-up without need, or one cycle.  The atomic fields of a
 * slot follow the protocol below, without a lock.
 *
 * The spinlock of a slot protects what its maintenance worker has counted.
 * That process alone writes it, and any session reads it.
 *
 * shared->facts_lock protects the stored facts, and shared->change is atomic.
 * A listener has no lock: its process alone writes it.
 *
 * The spinlock of a slot is also taken with shared->lock held.  No other two of
 * these locks are held at once.
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
 *
 * Why no session uses facts that have changed
 * -------------------------------------------
 *	reader								session that changes a table
 *	R1	c = change						C1	commit: its rows are visible
 *	R2	the facts that were stored		C2	change = change + 1
 *		with c, or else					C3	invalidate the caches of sessions
 *	R3	take a snapshot, read the
 *		tables, store the facts with c
 *
 * A reader that finds facts stored with the present number has them from a
 * snapshot that was taken after that number was set, and so after the commit
 * before it.  Facts of an older snapshot have an older number.  A session that
 * has cached the facts itself reads again after C3, that is, after C2.  The
 * transaction that changes a table sees its own change before C1, so that it
 * neither uses nor stores facts.
 *
 * A session that sees rows of C1 may find the facts before C2.  So buckets and
 * settings, which such rows depend on, come from facts only in a session that has
 * not yet noticed a change of their table (shard_table.c,
 * queue_settings_table.c).  The fence of a shard is after C2, so that the
 * transactions after it find the facts of the new set.
 *
 * The number of a queue holds until its row is retired (interned.c), which is a
 * change, too.  A call that finds it between C1 and C2 is as one that has the
 * number in its own cache and has begun before C3.
 *
 * The number is one for all databases, because changes are rare.  A prepared
 * transaction sends the invalidation at its commit before any code of tq runs,
 * so that facts are neither stored nor used where there can be one.  Rows that
 * were written by other statements than those of tq, as by a restore, are
 * noticed when a session that has read the table itself, such as the
 * maintenance worker, processes a relcache invalidation for it
 * (subscription_table.c), and after KEEP_MS in any case.
 */
#include "postgres.h"

#include <signal.h>

#include "access/twophase.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/spin.h"

#include "shmem.h"

#define NO_PROCESS PG_UINT32_MAX
#define ASKED_MAX 32       /* databases kept; more become a rescan */
#define MINUTES 60         /* in which claims that have expired are counted */
#define DATABASES 32       /* whose facts are stored */
#define KEEP_MS 60000      /* facts */
#define QUEUES 32          /* of a database, whose numbers are stored */
#define QUEUE_NAME_SIZE 80 /* bytes, with the terminating zero */
#define OTHER_MS 30000     /* see tq_clock_is_shared() */

/* Claims that expired in a minute, which is counted from 2000. */
typedef struct Minute
{
	int64 minute;
	int64 claims;
} Minute;

/*
 * The slot of a maintenance worker.  Written by the launcher while it is free,
 * and by its owner, the maintenance worker, while that is attached.
 */
typedef struct MaintenanceSlot
{
	/* Under the lock. */
	Oid database; /* InvalidOid: free; read without the lock by committers */
	bool settled;
	bool ended;
	bool must_exit; /* read without the lock by its owner */
	int pid;        /* 0: not attached */
	TqExit how;
	uint64 generation; /* number of the use of this slot */

	/* Without a lock. */
	pg_atomic_uint32 process;  /* number of its PGPROC, or NO_PROCESS */
	pg_atomic_uint64 next_due; /* see the banner; written by its owner */
	pg_atomic_uint64 noted;    /* see the banner */
	pg_atomic_uint32 messages; /* 1: something is to be published */
	pg_atomic_uint32 claims;   /* 1: a session was woken, and is to claim */
	pg_atomic_uint32 state;    /* TqMaintenanceState; written by its owner */
	pg_atomic_uint64 offset;   /* tq.clock_offset; written by its owner */

	/* What its owner has counted, under the spinlock. */
	slock_t mutex;
	TqActivity steps[TQ_STATS_STEPS + 1]; /* by step, or TQ_STATS_CYCLES */
	Minute minutes[MINUTES];              /* by minute modulo MINUTES */
} MaintenanceSlot;

/* The number of a queue. */
typedef struct QueueNumber
{
	int32 id; /* 0: none is stored */
	char name[QUEUE_NAME_SIZE];
} QueueNumber;

/* The facts of a database. */
typedef struct DatabaseEntry
{
	Oid database;
	Oid extension; /* distinguishes it from one that was dropped */
	uint64 change;
	instr_time stored_at;
	TqFacts facts;
	QueueNumber queues[QUEUES]; /* by the hash of the name */
} DatabaseEntry;

/*
 * One per process that can have a session, by the number of its PGPROC.
 * Written by that process before it listens and when it ends.
 */
typedef struct Listener
{
	Oid database;
	pg_atomic_uint64 channels; /* tq_listener_channel_bit() of each */
} Listener;

typedef struct DatabaseShared
{
	LWLock *lock;
	pg_atomic_uint32 launcher; /* number of its PGPROC, or NO_PROCESS */
	uint64 generation;
	bool rescan;
	int asked_count;
	Oid asked[ASKED_MAX];

	/* When a call had another clock last; at first, the start of the server. */
	pg_atomic_uint64 other_clock;

	LWLock *facts_lock; /* protects the entries */
	pg_atomic_uint64 change;
	int next; /* the entry that is replaced next */
	DatabaseEntry entries[DATABASES];

	MaintenanceSlot slots[FLEXIBLE_ARRAY_MEMBER];
} DatabaseShared;

static DatabaseShared *shared = NULL;
static Listener *listeners = NULL; /* behind the slots */
static MaintenanceSlot *my_slot = NULL;

/* This transaction changes a table from which facts are read. */
static bool changes = false;

/* ---- start of the server ---- */

static Size
slots_size(void)
{
	return MAXALIGN(
		add_size(offsetof(DatabaseShared, slots),
				 mul_size(max_worker_processes, sizeof(MaintenanceSlot))));
}

static Size
database_size(void)
{
	return add_size(slots_size(), mul_size(MaxBackends, sizeof(Listener)));
}

static void
database_startup(void *memory, bool is_new, LWLockPadded *locks)
{
	shared = memory;
	listeners = (Listener *) ((char *) memory + slots_size());
	if (!is_new)
		return;
	shared->lock = &locks[0].lock;
	shared->facts_lock = &locks[1].lock;
	pg_atomic_init_u32(&shared->launcher, NO_PROCESS);
	pg_atomic_init_u64(&shared->change, 0);
	pg_atomic_init_u64(&shared->other_clock, (uint64) tq_clock_real_now());
	for (int i = 0; i < max_worker_processes; i++)
	{
		pg_atomic_init_u32(&shared->slots[i].process, NO_PROCESS);
		pg_atomic_init_u64(&shared->slots[i].next_due, (uint64) DT_NOBEGIN);
		pg_atomic_init_u64(&shared->slots[i].noted, (uint64) DT_NOEND);
		pg_atomic_init_u32(&shared->slots[i].messages, 0);
		pg_atomic_init_u32(&shared->slots[i].claims, 0);
		pg_atomic_init_u32(&shared->slots[i].state, TQ_MAINTENANCE_ABSENT);
		pg_atomic_init_u64(&shared->slots[i].offset, 0);
		SpinLockInit(&shared->slots[i].mutex);
	}
	for (int i = 0; i < MaxBackends; i++)
		pg_atomic_init_u64(&listeners[i].channels, 0);
}

const TqShmemPart tq_database_shmem = {.name = "tq databases",
									   .tranche = "TqDatabase",
									   .locks = 2,
									   .size = database_size,
									   .startup = database_startup};

/* ---- slots: the side of sessions ---- */

/*
 * Sets a latch.  It is found by the number of a PGPROC, which outlives the
 * process.  The worst that a stale number can do is to wake another process
 * without need.
 */
static void
database_wake(pg_atomic_uint32 *process)
{
	uint32 number = pg_atomic_read_u32(process);

	if (number != NO_PROCESS)
		SetLatch(&GetPGProcByNumber(number)->procLatch);
}

/*
 * Returns the slot of a database, or NULL.  Without the lock the answer may be
 * out of date.
 */
static MaintenanceSlot *
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
 * Makes the maintenance worker of a database look for what is due then, unless
 * `due` is DT_NOEND, and for messages if there are any.  Raises no error.
 */
void
tq_maintenance_slot_wake(Oid database, TimestampTz due, bool message)
{
	MaintenanceSlot *slot = find_slot(database);

	if (slot == NULL)
		return;
	if (message)
	{
		/*
		 * Note that there is something to be published: C2 and C3 of the banner
		 * with the present as due time, and with the flag instead of `noted`.
		 * If the flag is set already, the backend that set it wakes or has
		 * woken the maintenance worker, which publishes as soon as it may.
		 */
		pg_memory_barrier();
		if (pg_atomic_read_u32(&slot->messages) == 0 &&
			pg_atomic_exchange_u32(&slot->messages, 1) == 0 &&
			(TimestampTz) pg_atomic_read_u64(&slot->next_due) != DT_NOBEGIN)
			database_wake(&slot->process);
	}
	if (due != DT_NOEND)
	{
		uint64 noted;

		/*
		 * Note a due time, and wake the maintenance worker if it would sleep
		 * longer (C2 and C3 of the banner).
		 */
		pg_memory_barrier();
		noted = pg_atomic_read_u64(&slot->noted);
		while (due < (TimestampTz) noted &&
			   !pg_atomic_compare_exchange_u64(&slot->noted, &noted,
											   (uint64) due))
			;
		pg_memory_barrier();
		if (due < (TimestampTz) pg_atomic_read_u64(&slot->next_due))
			database_wake(&slot->process);
	}
}

/*
 * Notes that this process makes a call by another clock than that of the
 * maintenance worker: tq.clock_offset was set in its session, for a test.
 */
void
tq_clock_note_other(void)
{
	MaintenanceSlot *slot = find_slot(MyDatabaseId);

	if (slot != NULL && slot != my_slot &&
		(int64) pg_atomic_read_u64(&slot->offset) != tq_clock_offset)
		pg_atomic_write_u64(&shared->other_clock,
							(uint64) tq_clock_real_now());
}

/*
 * Returns whether this process is the maintenance worker, and all calls have had
 * its clock for a while, so that times which are ahead of it were not meant to be.
 */
bool
tq_clock_is_shared(void)
{
	TimestampTz now = tq_clock_real_now();
	TimestampTz other;

	if (my_slot == NULL)
		return false;
	other = (TimestampTz) pg_atomic_read_u64(&shared->other_clock);
	return now < tq_clock_add_ms(other, -OTHER_MS) ||
		   now > tq_clock_add_ms(other, OTHER_MS);
}

/*
 * Notes for the maintenance worker, before it is woken, that a session has been
 * woken to claim, so that it leaves the processor to that session.
 */
void
tq_maintenance_slot_expect_claim(Oid database)
{
	MaintenanceSlot *slot = find_slot(database);

	if (slot != NULL)
		pg_atomic_write_u32(&slot->claims, 1);
}

/*
 * Asks the launcher whether a database needs a maintenance worker, or to look
 * for databases if it is InvalidOid.  Raises no error.
 */
void
tq_launcher_ask(Oid database)
{
	if (shared == NULL)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (OidIsValid(database) && shared->asked_count < ASKED_MAX)
		shared->asked[shared->asked_count++] = database;
	else
		shared->rescan = true;
	LWLockRelease(shared->lock);
	database_wake(&shared->launcher);
}

/*
 * Asks the maintenance worker of a database to end: after its transaction, or
 * with by_force in the middle of it.  Returns its process id, on which the
 * caller may wait, or 0 if there is none.  Raises no error.
 */
int
tq_maintenance_slot_stop(Oid database, bool by_force)
{
	MaintenanceSlot *slot;
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
		database_wake(&slot->process);
	return pid;
}

/*
 * Returns the slot of the maintenance worker of this database, or -1 if there
 * is none.
 */
int
tq_maintenance_slot_running(void)
{
	MaintenanceSlot *slot = find_slot(MyDatabaseId);

	if (slot == NULL || pg_atomic_read_u32(&slot->process) == NO_PROCESS)
		return -1;
	return slot - shared->slots;
}

/* Returns what the maintenance worker of a slot does, if there is one. */
TqMaintenanceState
tq_maintenance_slot_state(int slot)
{
	if (slot < 0)
		return TQ_MAINTENANCE_ABSENT;
	return (TqMaintenanceState) pg_atomic_read_u32(&shared->slots[slot].state);
}

/* ---- slots: the launcher's side ---- */

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
tq_launcher_attach(void)
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
tq_launcher_asked(Oid *databases, int max, bool *rescan)
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
TqMaintenanceSlotView
tq_maintenance_slot_view(int slot)
{
	MaintenanceSlot *s = &shared->slots[slot];
	TqMaintenanceSlotView view;

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
tq_maintenance_slot_take(Oid database, uint64 *generation)
{
	int slot = 0;
	MaintenanceSlot *s;

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
tq_maintenance_slot_free(int slot)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	shared->slots[slot].database = InvalidOid;
	shared->slots[slot].generation = 0;
	LWLockRelease(shared->lock);
}

/* ---- slots: the maintenance worker's side ---- */

static void
worker_exits(int code, Datum arg)
{
	pg_atomic_write_u32(&my_slot->process, NO_PROCESS);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	my_slot->ended = true;
	my_slot->pid = 0;
	LWLockRelease(shared->lock);
	my_slot = NULL;
	database_wake(&shared->launcher);
}

/* Begins to count for the maintenance worker that attaches to a slot. */
static void
begin_to_count(MaintenanceSlot *slot)
{
	const TqActivity none = {.last_at = DT_NOBEGIN,
							 .max_late_at = DT_NOBEGIN,
							 .failed_at = DT_NOBEGIN};

	SpinLockAcquire(&slot->mutex);
	for (int step = 0; step < lengthof(slot->steps); step++)
		slot->steps[step] = none;
	memset(slot->minutes, 0, sizeof(slot->minutes));
	SpinLockRelease(&slot->mutex);
}

/*
 * Attaches this maintenance worker to its slot; returns false if the slot no
 * longer belongs to it.
 */
bool
tq_maintenance_slot_attach(int slot, uint64 generation)
{
	MaintenanceSlot *s = &shared->slots[slot];
	bool mine;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	mine = s->database != InvalidOid && s->generation == generation;
	if (mine)
	{
		s->pid = MyProcPid;
		pg_atomic_write_u64(&s->next_due, (uint64) DT_NOBEGIN);
		begin_to_count(s);
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
tq_maintenance_slot_settle(void)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	my_slot->settled = true;
	LWLockRelease(shared->lock);
	database_wake(&shared->launcher);
}

/* Returns whether this maintenance worker was asked to end. */
bool
tq_maintenance_slot_must_exit(void)
{
	return my_slot->must_exit;
}

/* Records for the launcher why this maintenance worker is about to exit. */
void
tq_maintenance_slot_end(TqExit how)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	my_slot->how = how;
	LWLockRelease(shared->lock);
}

/* Records what this maintenance worker does, for tq.maintenance_overview. */
void
tq_maintenance_slot_set_state(TqMaintenanceState state)
{
	pg_atomic_write_u32(&my_slot->state, state);
}

/*
 * Begins a cycle (W1 of the banner); the caller has reset its latch.  Returns
 * the earliest due time that was noted since the last cycle began, which the
 * caller must remember from here on.
 */
TimestampTz
tq_maintenance_slot_cycle_begin(void)
{
	TimestampTz noted;

	pg_atomic_write_u64(&my_slot->offset, (uint64) tq_clock_offset);
	pg_atomic_write_u64(&my_slot->next_due, (uint64) DT_NOBEGIN);
	noted = (TimestampTz) pg_atomic_exchange_u64(&my_slot->noted,
												 (uint64) DT_NOEND);
	pg_memory_barrier();
	return noted;
}

/* Returns whether a session was woken to claim since the last call. */
bool
tq_maintenance_slot_take_expected_claim(void)
{
	return pg_atomic_read_u32(&my_slot->claims) != 0 &&
		   pg_atomic_exchange_u32(&my_slot->claims, 0) != 0;
}

/*
 * Resets the flag for messages, so that the maintenance worker learns of all
 * that is committed from here on and that its next snapshot does not see.
 */
void
tq_maintenance_slot_publication_begin(void)
{
	pg_atomic_write_u32(&my_slot->messages, 0);
	pg_memory_barrier();
}

/*
 * Ends a cycle (W3 and W4 of the banner).  Returns until when the maintenance
 * worker may sleep; *messages is set if there is something to be published.
 */
TimestampTz
tq_maintenance_slot_cycle_end(TimestampTz due, bool *messages)
{
	TimestampTz noted;

	pg_atomic_write_u64(&my_slot->next_due, (uint64) due);
	pg_memory_barrier();
	*messages = pg_atomic_read_u32(&my_slot->messages) != 0;
	noted = (TimestampTz) pg_atomic_read_u64(&my_slot->noted);
	return Min(due, noted);
}

/* ---- what a maintenance worker has done since it began ---- */

static void
count_lateness(TqActivity *activity, TimestampTz now, int64 late)
{
	activity->last_late = late;
	if (activity->max_late_at != DT_NOBEGIN && late <= activity->max_late)
		return;
	activity->max_late = late;
	activity->max_late_at = now;
}

/*
 * Counts a committed batch of a step, or a cycle.  `late` is how many
 * microseconds its first task was late, or -1 if that is unknown.
 */
void
tq_stats_count_batch(int step, uint64 tasks, TimestampTz now, int64 late)
{
	TqActivity *activity = &my_slot->steps[step];

	SpinLockAcquire(&my_slot->mutex);
	activity->batches++;
	activity->tasks += tasks;
	activity->last_at = now;
	if (late >= 0)
		count_lateness(activity, now, late);
	SpinLockRelease(&my_slot->mutex);
}

/* Counts a batch of a step that failed and was rolled back. */
void
tq_stats_count_failure(int step, TimestampTz now, const char *error)
{
	TqActivity *activity = &my_slot->steps[step];
	int length = pg_mbcliplen(error, strlen(error), TQ_STATS_ERROR - 1);

	SpinLockAcquire(&my_slot->mutex);
	activity->failures++;
	activity->failed_at = now;
	activity->failing = true;
	memcpy(activity->error, error, length);
	activity->error[length] = '\0';
	SpinLockRelease(&my_slot->mutex);
}

/* Records that a step no longer fails. */
void
tq_stats_step_succeeds(int step)
{
	SpinLockAcquire(&my_slot->mutex);
	my_slot->steps[step].failing = false;
	SpinLockRelease(&my_slot->mutex);
}

/* Copies what the maintenance worker of a slot has counted. */
void
tq_stats_read(int slot, int step, TqActivity *activity)
{
	MaintenanceSlot *s = &shared->slots[slot];

	SpinLockAcquire(&s->mutex);
	*activity = s->steps[step];
	SpinLockRelease(&s->mutex);
}

/* Counts claims that have expired. */
void
tq_stats_count_expired(int64 claims, TimestampTz now)
{
	int64 minute = now / USECS_PER_MINUTE;
	Minute *position = &my_slot->minutes[(uint64) minute % MINUTES];

	SpinLockAcquire(&my_slot->mutex);
	if (position->minute != minute)
		*position = (Minute){.minute = minute};
	position->claims += claims;
	SpinLockRelease(&my_slot->mutex);
}

/*
 * Returns how many claims the maintenance worker of a slot has counted in the
 * last sixty minutes, the present one included.
 */
int64
tq_stats_expired(int slot, TimestampTz now)
{
	MaintenanceSlot *s = &shared->slots[slot];
	int64 minute = now / USECS_PER_MINUTE;
	int64 claims = 0;

	SpinLockAcquire(&s->mutex);
	for (int i = 0; i < MINUTES; i++)
	{
		const Minute *position = &s->minutes[i];

		if (position->minute > minute - MINUTES && position->minute <= minute)
			claims += position->claims;
	}
	SpinLockRelease(&s->mutex);
	return claims;
}

/* ---- facts: what a session needs of its database at first ---- */

static bool
is_usable(void)
{
	return shared != NULL && !changes && max_prepared_xacts == 0;
}

/* Returns the entry of this database, or NULL.  The caller holds the lock. */
static DatabaseEntry *
database_find_entry(void)
{
	for (int i = 0; i < DATABASES; i++)
	{
		if (shared->entries[i].database == MyDatabaseId)
			return &shared->entries[i];
	}
	return NULL;
}

static bool
is_recent(const DatabaseEntry *entry)
{
	instr_time now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, entry->stored_at);
	return INSTR_TIME_GET_MILLISEC(now) < KEEP_MS;
}

/*
 * Returns the entry of this database and extension if it is of that number, and
 * NULL otherwise.  The caller holds the lock.
 */
static DatabaseEntry *
find_current(Oid extension, uint64 change)
{
	DatabaseEntry *entry = database_find_entry();

	return entry != NULL && entry->extension == extension &&
				   entry->change == change && is_recent(entry)
			   ? entry
			   : NULL;
}

/*
 * Returns whether the facts of this database and extension are known.  If not,
 * the caller takes a new snapshot, reads the tables, and stores the facts with
 * *change.
 */
bool
tq_facts_find(Oid extension, TqFacts *facts, uint64 *change)
{
	const DatabaseEntry *entry;

	*change = 0;
	if (!is_usable())
		return false;
	*change = pg_atomic_read_u64(&shared->change);
	pg_memory_barrier();
	LWLockAcquire(shared->facts_lock, LW_SHARED);
	entry = find_current(extension, *change);
	if (entry != NULL)
		*facts = entry->facts;
	LWLockRelease(shared->facts_lock);
	return entry != NULL;
}

/* Stores the facts that the caller has read as tq_facts_find() says. */
void
tq_facts_store(Oid extension, const TqFacts *facts, uint64 change)
{
	DatabaseEntry *entry;

	if (!is_usable())
		return;
	LWLockAcquire(shared->facts_lock, LW_EXCLUSIVE);
	entry = database_find_entry();
	if (entry == NULL)
	{
		entry = &shared->entries[shared->next];
		shared->next = (shared->next + 1) % DATABASES;
	}
	*entry = (DatabaseEntry){.database = MyDatabaseId,
							 .extension = extension,
							 .change = change,
							 .facts = *facts};
	INSTR_TIME_SET_CURRENT(entry->stored_at);
	LWLockRelease(shared->facts_lock);
}

/* Returns where the number of a queue is stored, if it is. */
static QueueNumber *
queue_number(DatabaseEntry *entry, const char *name)
{
	return &entry->queues[hash_bytes((const unsigned char *) name,
									 strlen(name)) %
						  QUEUES];
}

/*
 * Returns the number of a queue if it is stored, and 0 otherwise: then the caller
 * takes a new snapshot, reads the row, and stores its number with *change.
 */
int32
tq_facts_find_queue(Oid extension, const char *name, uint64 *change)
{
	DatabaseEntry *entry;
	int32 id = 0;

	*change = 0;
	if (!is_usable())
		return 0;
	*change = pg_atomic_read_u64(&shared->change);
	pg_memory_barrier();
	LWLockAcquire(shared->facts_lock, LW_SHARED);
	entry = find_current(extension, *change);
	if (entry != NULL && strcmp(queue_number(entry, name)->name, name) == 0)
		id = queue_number(entry, name)->id;
	LWLockRelease(shared->facts_lock);
	return id;
}

/* Stores the number of a queue, read as tq_facts_find_queue() says. */
void
tq_facts_store_queue(Oid extension, const char *name, int32 id, uint64 change)
{
	DatabaseEntry *entry;

	if (!is_usable() || strlen(name) >= QUEUE_NAME_SIZE)
		return;
	LWLockAcquire(shared->facts_lock, LW_EXCLUSIVE);
	entry = find_current(extension, change);
	if (entry != NULL)
	{
		queue_number(entry, name)->id = id;
		strlcpy(queue_number(entry, name)->name, name, QUEUE_NAME_SIZE);
	}
	LWLockRelease(shared->facts_lock);
}

/* Makes what is stored outdated, because a table may have changed. */
void
tq_facts_change(void)
{
	if (shared != NULL)
		(void) pg_atomic_fetch_add_u64(&shared->change, 1);
}

/* Notes that this transaction changes a table. */
void
tq_facts_change_at_commit(void)
{
	changes = true;
}

static void
facts_commit(void)
{
	if (changes)
		tq_facts_change();
}

static void
facts_reset(void)
{
	changes = false;
}

const TqXactEnd tq_facts_xact_end = {.has_work = &changes,
									 .commit = facts_commit,
									 .reset = facts_reset};

/* ---- listeners: which channels sessions listen on ---- */

/*
 * Returns the bit of a channel.  All channels of queues share one bit, and those
 * of workers another, because there are many.
 */
uint64
tq_listener_channel_bit(const char *channel)
{
	if (strncmp(channel, TQ_QUEUE_CHANNEL, strlen(TQ_QUEUE_CHANNEL)) == 0)
		return UINT64CONST(1) << 63;
	if (strncmp(channel, TQ_WORKER_CHANNEL, strlen(TQ_WORKER_CHANNEL)) == 0)
		return UINT64CONST(1) << 62;
	return UINT64CONST(1) << hash_bytes((const unsigned char *) channel,
										strlen(channel)) %
								 62;
}

static void
database_session_ends(int code, Datum arg)
{
	pg_atomic_write_u64(&listeners[TqMyProcNumber()].channels, 0);
}

/*
 * Records that this session is about to LISTEN, and may do so until it ends.
 */
void
tq_listener_add(const char *channel)
{
	static bool attached = false;
	Listener *listener = &listeners[TqMyProcNumber()];

	if (!attached)
		on_shmem_exit(database_session_ends, (Datum) 0);
	attached = true;
	listener->database = MyDatabaseId;
	pg_atomic_fetch_or_u64(&listener->channels,
						   tq_listener_channel_bit(channel));
	pg_memory_barrier();
}

/*
 * Returns the set of channels of this database on which a session may listen;
 * the set of all channels without shared memory.
 */
uint64
tq_listener_channels(void)
{
	uint64 channels = 0;

	if (listeners == NULL)
		return PG_UINT64_MAX;
	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
	{
		if (listeners[i].database == MyDatabaseId)
			channels |= pg_atomic_read_u64(&listeners[i].channels);
	}
	return channels;
}
