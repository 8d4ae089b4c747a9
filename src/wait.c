/*
 * wait.c
 *	  Sessions that wait for a run to become claimable, and who wakes them.
 *
 * Room 1.  Decides who is woken, and sees to it that no call is lost.  What a
 * waiter does when it is woken is for claim_wait.c and api_wait.c; when
 * there is something to wake for, for those who end transactions (cursor.c).
 * Queue 0 stands for all whose name no committed transaction has used yet.
 *
 * A waiter is idle, in a list (WAITING), or it has been called: taken from
 * the list by a waker (CALLED), and on its way (HEARD).
 *
 *	waiter									waker
 *	W1	enter the list						P1	rows visible, cursor lowered
 *	W2	full barrier, try to claim			P2	full barrier
 *	W3	sleep until CALLED, the time is		P3	take the first of the list,
 *		over, or an interrupt				    CALLED, set their latches
 *
 * Either W1 comes before P3, and the waiter is called, or P3 comes before W1,
 * and the try of W2 sees the rows.  So a waker takes no more waiters than
 * there are rows, those who have waited longest, and nobody is woken in vain.
 *
 * A call is for one row.  Who has been called must try (HEARD while it does),
 * or else the row may stay while others sleep.  It tries without being in the
 * list, and with its success the call is used up; when the row was gone, it
 * goes back to its old place.  Whoever was called and does not try any more
 * (an error, a cancel, the end of the session; its time is over; it got rows
 * by a try that had begun before) passes the call on to the next.
 * A row that is only locked when it is tried for is passed over, and no call
 * follows when it is free: so who was called in vain looks again soon.
 *
 * An error ends the transaction or the savepoint in which the wait began, and
 * so the callback of its abort is where a waiter is put in order: it runs
 * when the rows that a failed try had locked are free again.
 *
 * wait_for_work() hands its call over to the claim that the session makes
 * next (OWED): a session that ends before passes it on.  Nobody knows whether
 * a client still lives behind a pooler, so all waiters look again by
 * themselves every LOOK_MS; so does who is alive take over.  Where there is
 * no shared memory, for want of shared_preload_libraries, and within a try of
 * an outer wait, nobody is called: such a waiter only looks, at growing
 * intervals.
 *
 * Shutdown.  In a smart shutdown the postmaster waits for the sessions to
 * end, and tells them nothing.  All it does is to write so to its pid file.
 * While somebody waits, the launcher reads that file every second, and has
 * the waiters end themselves.  The first waiter wakes the launcher; `watching`
 * is up from then until it finds nobody.
 */
#include "wait.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "compat.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/pidfile.h"
#include "utils/wait_event.h"

#define NOBODY PG_UINT32_MAX /* no process */
#define PARTITIONS 64
#define LOOK_MS 10000    /* look by oneself so often … */
#define POLL_MIN_MS 10   /* … and where nobody can call, from this … */
#define POLL_MAX_MS 1000 /* … doubling up to this */
#define WATCH_MS 1000    /* the launcher's look at the postmaster */
#define PM_FILE "postmaster.pid"

/* Of libpq.h, which wants Kerberos's headers; a build need not have them. */
extern bool pq_check_connection(void);

/* What a waiter is.  Only WAITING is changed by others. */
enum
{
	IDLE,
	WAITING, /* in the list; under the lock */
	CALLED,  /* taken from the list by a waker */
	HEARD,   /* it is trying */
	OWED     /* wait_for_work() has returned: the next claim is the try */
};

/*
 * One per process that can have a session, by number of its PGPROC.  Written
 * by that process while it is not WAITING, under its partition's lock while it
 * is.
 */
typedef struct Waiter
{
	dlist_node node; /* in the list of the partition */
	Oid database;
	int32 queue;
	uint64 turn;            /* the list is in this order */
	pg_atomic_uint32 state; /* read by its owner without the lock */
} Waiter;

/* The lock is for the list; `length` is read without. */
typedef struct Partition
{
	LWLock *lock;
	dlist_head waiters;
	pg_atomic_uint32 length;
} Partition;

typedef struct Shared
{
	pg_atomic_uint64 turns;    /* given so far; no lock */
	pg_atomic_uint32 watcher;  /* number of the launcher's PGPROC; no lock */
	pg_atomic_uint32 watching; /* 1: it looks every second; no lock */
	pg_atomic_uint32 stopping; /* 1: the server shuts down; no lock */
	Partition partitions[PARTITIONS];
	Waiter waiters[FLEXIBLE_ARRAY_MEMBER];
} Shared;

static Shared *shared = NULL;

/* This process's own: its place, and the savepoint in which it waits. */
static Waiter *mine = NULL;
static bool waiting = false;
static SubTransactionId waiting_in = InvalidSubTransactionId;
static bool handing_over = false; /* OWED, and not yet committed */
static bool new_queue = false;    /* this transaction makes one known */

static shmem_request_hook_type next_shmem_request_hook = NULL;
static shmem_startup_hook_type next_shmem_startup_hook = NULL;

/*
 * Start of the server.
 */

static Size
shared_size(void)
{
	return add_size(offsetof(Shared, waiters),
					mul_size(MaxBackends, sizeof(Waiter)));
}

static void
request(void)
{
	if (next_shmem_request_hook)
		next_shmem_request_hook();
	RequestAddinShmemSpace(shared_size());
	RequestNamedLWLockTranche("TqWait", PARTITIONS);
}

static void
init_shared(void)
{
	LWLockPadded *locks = GetNamedLWLockTranche("TqWait");

	memset(shared, 0, shared_size());
	pg_atomic_init_u64(&shared->turns, 0);
	pg_atomic_init_u32(&shared->watcher, NOBODY);
	pg_atomic_init_u32(&shared->watching, 0);
	pg_atomic_init_u32(&shared->stopping, 0);
	for (int i = 0; i < PARTITIONS; i++)
	{
		shared->partitions[i].lock = &locks[i].lock;
		dlist_init(&shared->partitions[i].waiters);
		pg_atomic_init_u32(&shared->partitions[i].length, 0);
	}
	for (int i = 0; i < MaxBackends; i++)
		pg_atomic_init_u32(&shared->waiters[i].state, IDLE);
}

static void
startup(void)
{
	bool found;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("tq waiters", shared_size(), &found);
	if (!found)
		init_shared();
	LWLockRelease(AddinShmemInitLock);
}

/* Ask for the shared memory; only under shared_preload_libraries. */
void
tq_wait_init(void)
{
	next_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request;
	next_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup;
}

/*
 * Waking.  A process is found by the number of its PGPROC, which outlives it:
 * the worst a stale number can do is to wake a stranger in vain.
 */

static void
set_latch(uint32 number)
{
	SetLatch(&GetPGProcByNumber(number)->procLatch);
}

static Partition *
find_partition(Oid database, int32 queue)
{
	uint32 hash = hash_combine(murmurhash32(database),
							   murmurhash32((uint32) queue));

	return &shared->partitions[hash % PARTITIONS];
}

static void
remove_from_list(Partition *partition, Waiter *waiter)
{
	dlist_delete(&waiter->node);
	pg_atomic_fetch_sub_u32(&partition->length, 1);
}

static void
call(Partition *partition, Waiter *waiter)
{
	remove_from_list(partition, waiter);
	pg_atomic_write_u32(&waiter->state, CALLED);
	set_latch(waiter - shared->waiters);
}

/* P2 and P3 of the banner. */
static void
wake(Oid database, int32 queue, int n)
{
	Partition *partition = find_partition(database, queue);
	dlist_mutable_iter iter;

	pg_memory_barrier();
	if (n <= 0 || pg_atomic_read_u32(&partition->length) == 0)
		return;
	LWLockAcquire(partition->lock, LW_EXCLUSIVE);
	dlist_foreach_modify(iter, &partition->waiters)
	{
		Waiter *waiter = dlist_container(Waiter, node, iter.cur);

		if (waiter->database != database || waiter->queue != queue)
			continue;
		call(partition, waiter);
		if (--n == 0)
			break;
	}
	LWLockRelease(partition->lock);
}

/*
 * So many runs of a queue of this database have become claimable, and are to
 * be seen by others: wake as many waiters, those who have waited longest.
 */
void
tq_wait_wake(int32 queue, int n)
{
	if (shared != NULL)
		wake(MyDatabaseId, queue, n);
}

/* Wake all waiters of this database: nobody knows what was committed. */
void
tq_wait_wake_all(void)
{
	if (shared == NULL)
		return;
	pg_memory_barrier();
	for (int i = 0; i < PARTITIONS; i++)
	{
		Partition *partition = &shared->partitions[i];
		dlist_mutable_iter iter;

		if (pg_atomic_read_u32(&partition->length) == 0)
			continue;
		LWLockAcquire(partition->lock, LW_EXCLUSIVE);
		dlist_foreach_modify(iter, &partition->waiters)
		{
			Waiter *waiter = dlist_container(Waiter, node, iter.cur);

			if (waiter->database == MyDatabaseId)
				call(partition, waiter);
		}
		LWLockRelease(partition->lock);
	}
}

/*
 * The waiter's place.
 */

static void
insert_in_order(Partition *partition, Waiter *waiter)
{
	dlist_iter iter;

	dlist_reverse_foreach(iter, &partition->waiters)
	{
		if (dlist_container(Waiter, node, iter.cur)->turn < waiter->turn)
		{
			dlist_insert_after(iter.cur, &waiter->node);
			return;
		}
	}
	dlist_push_head(&partition->waiters, &waiter->node);
}

/* The launcher is to look after the postmaster as long as somebody waits. */
static void
have_watched(void)
{
	uint32 watcher;

	if (pg_atomic_read_u32(&shared->watching) != 0 ||
		pg_atomic_exchange_u32(&shared->watching, 1) != 0)
		return;
	watcher = pg_atomic_read_u32(&shared->watcher);
	if (watcher != NOBODY)
		set_latch(watcher);
}

/* W1 of the banner. */
static void
enter_list(uint64 turn, int32 queue)
{
	Partition *partition = find_partition(MyDatabaseId, queue);

	mine->database = MyDatabaseId;
	mine->queue = queue;
	mine->turn = turn;
	LWLockAcquire(partition->lock, LW_EXCLUSIVE);
	insert_in_order(partition, mine);
	pg_atomic_fetch_add_u32(&partition->length, 1);
	pg_atomic_write_u32(&mine->state, WAITING);
	LWLockRelease(partition->lock);
	pg_memory_barrier();
	have_watched();
}

static void
leave_list(void)
{
	Partition *partition = find_partition(mine->database, mine->queue);

	LWLockAcquire(partition->lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u32(&mine->state) == WAITING)
	{
		remove_from_list(partition, mine);
		pg_atomic_write_u32(&mine->state, IDLE);
	}
	LWLockRelease(partition->lock);
}

/* Be idle, whatever it was; what it was called for, another may have. */
static void
withdraw(void)
{
	if (pg_atomic_read_u32(&mine->state) == WAITING)
		leave_list();
	if (pg_atomic_read_u32(&mine->state) == IDLE)
		return;
	pg_atomic_write_u32(&mine->state, IDLE);
	wake(mine->database, mine->queue, 1);
}

/*
 * Ends of transactions and of the session.
 */

static void
wait_fails(void)
{
	waiting = false;
	handing_over = false;
	withdraw();
}

static void
transaction_ends(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			handing_over = false;
			if (new_queue)
				wake(MyDatabaseId, 0, TQ_WAIT_ALL);
			break;
		case XACT_EVENT_ABORT:
			if (waiting || handing_over)
				wait_fails();
			break;
		case XACT_EVENT_PREPARE:
			break;
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			return;
	}
	new_queue = false;
}

static void
savepoint_ends(SubXactEvent event, SubTransactionId sub,
			   SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB && waiting && sub == waiting_in)
		wait_fails();
}

static void
session_ends(int code, Datum arg)
{
	if (mine != NULL)
		withdraw();
}

/* The lists of callbacks keep duplicates for ever: once per process. */
static void
watch_ends(void)
{
	static bool watching = false;

	if (watching)
		return;
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(savepoint_ends, NULL);
	on_shmem_exit(session_ends, (Datum) 0);
	watching = true;
}

/* At its commit this transaction makes the name of a queue known. */
void
tq_wait_note_queue(void)
{
	if (shared == NULL)
		return;
	watch_ends();
	new_queue = true;
}

/*
 * Is the server in a smart shutdown?  The postmaster's pid file says so.
 */
static bool
server_stops(void)
{
	FILE *file = AllocateFile(PM_FILE, "r");
	char line[MAXPGPATH];
	bool stops = false;

	if (file == NULL)
		return false;
	for (int i = 1; fgets(line, sizeof(line), file) != NULL; i++)
	{
		if (i == LOCK_FILE_LINE_PM_STATUS)
			stops = strncmp(line,
							PM_STATUS_STOPPING,
							strlen(PM_STATUS_STOPPING)) == 0;
	}
	FreeFile(file);
	return stops;
}

/*
 * The launcher's side.
 */

static void
watcher_ends(int code, Datum arg)
{
	pg_atomic_write_u32(&shared->watcher, NOBODY);
}

static void
begin_watch(void)
{
	static bool begun = false;

	if (begun)
		return;
	on_shmem_exit(watcher_ends, (Datum) 0);
	pg_atomic_write_u32(&shared->watcher, TqMyProcNumber());
	pg_memory_barrier();
	begun = true;
}

static bool
nobody_waits(void)
{
	for (int i = 0; i < PARTITIONS; i++)
	{
		if (pg_atomic_read_u32(&shared->partitions[i].length) != 0)
			return false;
	}
	return true;
}

/* Have all who wait, in whatever database, see that the server stops. */
static void
send_all_home(void)
{
	pg_atomic_write_u32(&shared->stopping, 1);
	pg_memory_barrier();
	for (int i = 0; i < MaxBackends; i++)
	{
		if (pg_atomic_read_u32(&shared->waiters[i].state) != IDLE)
			set_latch(i);
	}
}

/* When nobody waits any more, the next waiter has to wake the launcher. */
static void
leave_watch(void)
{
	pg_atomic_write_u32(&shared->watching, 0);
	pg_memory_barrier();
	if (!nobody_waits())
		pg_atomic_write_u32(&shared->watching, 1);
}

static int64
ms_since(const instr_time *begun)
{
	instr_time now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, *begun);
	return (int64) INSTR_TIME_GET_MILLISEC(now);
}

/*
 * One look at the postmaster, if somebody waits and the last look is a second
 * ago.  Returns after how many milliseconds the launcher is to come again, or
 * -1 when it need not before it is woken.
 */
long
tq_wait_watch(void)
{
	static bool watched = false; /* since the last look */
	static instr_time last;

	begin_watch();
	if (pg_atomic_read_u32(&shared->watching) == 0)
	{
		watched = false;
		return -1;
	}
	if (watched && ms_since(&last) < WATCH_MS)
		return (long) (WATCH_MS - ms_since(&last));
	if (server_stops())
		send_all_home();
	else if (watched && nobody_waits())
		leave_watch();
	watched = true;
	INSTR_TIME_SET_CURRENT(last);
	return WATCH_MS;
}

/*
 * Waiting.
 */

/*
 * Begin a try to claim that may become a wait, in the transaction or savepoint
 * of the caller, by the end of which with an error all is put in order.  If it
 * has not failed, it is ended by tq_wait_end() or tq_wait_hand_over().
 */
void
tq_wait_begin(TqWait *wait, int64 ms)
{
	memset(wait, 0, sizeof(*wait));
	INSTR_TIME_SET_CURRENT(wait->begun);
	wait->ms = ms;
	wait->callable = shared != NULL && !waiting;
	wait->delay = wait->callable ? LOOK_MS : POLL_MIN_MS;
	if (!wait->callable)
		return;
	watch_ends();
	mine = &shared->waiters[TqMyProcNumber()];
	waiting = true;
	waiting_in = GetCurrentSubTransactionId();
}

/* The first try for this queue: is it what wait_for_work() was called for? */
bool
tq_wait_take_over(TqWait *wait, int32 queue)
{
	if (!wait->callable || pg_atomic_read_u32(&mine->state) != OWED ||
		mine->queue != queue)
		return false;
	mine->turn = wait->turn;
	pg_atomic_write_u32(&mine->state, HEARD);
	return true;
}

/*
 * Be in the list of this queue, at the place of this wait; the caller tries
 * after that, and then sleeps.
 */
void
tq_wait_enter(TqWait *wait, int32 queue)
{
	if (!wait->callable)
		return;
	if (wait->turn == 0)
		wait->turn = pg_atomic_add_fetch_u64(&shared->turns, 1);
	if (pg_atomic_read_u32(&mine->state) != IDLE && mine->turn == wait->turn &&
		mine->queue == queue)
		return; /* it is there, or has been called since */
	withdraw();
	enter_list(wait->turn, queue);
}

/*
 * The try is done: if it was for a call, that is used up.  True if it was, and
 * there is time to go back to the list and try once more.  Then, if the try
 * was in vain, the row may have been locked by somebody who gives it back
 * without a call: look again soon.
 */
bool
tq_wait_tried(TqWait *wait)
{
	if (!wait->callable || pg_atomic_read_u32(&mine->state) != HEARD)
		return false;
	pg_atomic_write_u32(&mine->state, IDLE);
	wait->delay = POLL_MIN_MS;
	return ms_since(&wait->begun) < wait->ms;
}

/* This waiter cannot use what it was called for, nor may it be called. */
void
tq_wait_pass_on(const TqWait *wait)
{
	if (wait->callable)
		withdraw();
}

/* A client that is gone cannot work: its session ends before it claims. */
static void
check_client(void)
{
	if (MyProcPort == NULL || !WaitEventSetCanReportClosed() ||
		pq_check_connection())
		return;
	ClientConnectionLost = true;
	InterruptPending = true;
	CHECK_FOR_INTERRUPTS();
}

static void
refuse_to_wait(void)
{
	ereport(
		FATAL,
		(errcode(ERRCODE_ADMIN_SHUTDOWN),
		 errmsg(
			 "terminating connection that waits for work, as the server shuts down")));
}

static uint32
wait_event(TqWaitPlace place)
{
	static uint32 claim_work = 0;
	static uint32 for_work = 0;

	switch (place)
	{
		case TQ_WAIT_CLAIM_WORK:
			return TqWaitEvent(claim_work, "TqClaimWork");
		case TQ_WAIT_FOR_WORK:
			return TqWaitEvent(for_work, "TqWaitForWork");
	}
	return 0;
}

/* Has it been called?  From here on it is trying. */
static bool
hears_call(const TqWait *wait)
{
	if (!wait->callable || pg_atomic_read_u32(&mine->state) != CALLED)
		return false;
	check_client();
	pg_atomic_write_u32(&mine->state, HEARD);
	return true;
}

/* Nobody called: see what no call would tell. */
static TqWakeup
look_around(void)
{
	if (server_stops())
		refuse_to_wait();
	check_client();
	return TQ_WAKEUP_LOOK;
}

/* How long to sleep without a call, in milliseconds; each time longer. */
static int64
next_look(TqWait *wait)
{
	bool listed = wait->callable && pg_atomic_read_u32(&mine->state) != IDLE;
	int most = listed ? LOOK_MS : POLL_MAX_MS;
	int delay = Min(wait->delay, most);

	wait->delay = Min(delay * 2, most);
	return delay;
}

/*
 * W3 of the banner.  Interrupts are served, as everywhere: a cancel, the end
 * of the session, a timeout.
 */
TqWakeup
tq_wait_sleep(TqWait *wait, TqWaitPlace place)
{
	int64 now = ms_since(&wait->begun);
	int64 look = now + next_look(wait);

	for (;; now = ms_since(&wait->begun))
	{
		CHECK_FOR_INTERRUPTS();
		if (shared != NULL && pg_atomic_read_u32(&shared->stopping) != 0)
			refuse_to_wait();
		if (hears_call(wait))
			return TQ_WAKEUP_CALLED;
		if (now >= wait->ms)
			return TQ_WAKEUP_OVER;
		if (now >= look)
			return look_around();
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) (Min(wait->ms, look) - now),
						 wait_event(place));
		ResetLatch(MyLatch);
	}
}

/* The wait is over, with or without rows. */
void
tq_wait_end(const TqWait *wait)
{
	if (!wait->callable)
		return;
	waiting = false;
	if (pg_atomic_read_u32(&mine->state) != IDLE && mine->turn == wait->turn)
		withdraw();
}

/*
 * The wait is over, and whoever was called is going to claim in another
 * transaction: until then the call stays with this session.
 */
void
tq_wait_hand_over(const TqWait *wait)
{
	if (!wait->callable)
		return;
	waiting = false;
	if (pg_atomic_read_u32(&mine->state) == WAITING)
		leave_list();
	if (pg_atomic_read_u32(&mine->state) == IDLE)
		return;
	pg_atomic_write_u32(&mine->state, OWED);
	handing_over = true;
}
