/*
 * wait_queue.c
 *	  The wait queue: sessions that wait for a run to become claimable, or
 *	  for a task to be resolved.
 *
 * Decides which waiter is woken, and ensures that no wake-up is lost.  What a
 * waiter does when it is woken is decided in claim_wait.c and wait_api.c; when
 * there is something to wake for, by the code that ends transactions
 * (claim_cursor.c).  Queue 0 stands for all queues whose name no committed
 * transaction has used yet.
 *
 * A waiter is idle (IDLE), in a list (WAITING), or it was woken: a waker has
 * taken it from the list (WOKEN), and then it tries to claim (RETRYING).
 *
 *	waiter									waker
 *	W1	enter the list						P1	rows visible, cursor lowered
 *	W2	full barrier, try to claim			P2	full barrier
 *	W3	sleep until WOKEN, the time is		P3	take the first of the list,
 *		over, or an interrupt					WOKEN, set their latches
 *
 * If W1 comes before P3, the waiter is woken.  If P3 comes before W1, the try
 * in W2 sees the rows.  A waker therefore takes no more waiters than there are
 * rows, those that have waited longest, and wakes none without need.
 *
 * A wake-up is for one row.  A waiter that was woken must try to claim
 * (RETRYING while it does), because otherwise the row might stay pending while
 * other waiters sleep.  During this try it is not in the list.  If the try
 * succeeds, the wake-up is used up; if the row is gone, the waiter returns to
 * its former place in the list.  A waiter that was woken and does not try any
 * more passes the wake-up on to the next one: after an error or a cancel, at
 * the end of the session, when its time is over, or when a try that had begun
 * before got it rows.  A try skips a row that is only locked, and no wake-up
 * follows when the lock is released, so a waiter that was woken in vain looks
 * again soon.
 *
 * An error ends the transaction or the savepoint in which the wait began.  The
 * waiter is therefore reset in the callback of that abort, which runs when the
 * rows that a failed try had locked are free again.
 *
 * wait_for_work() hands its wake-up over to the next claim of the session
 * (HANDED_OFF); if the session ends before that, it passes the wake-up on.  The
 * server cannot know whether a client behind a connection pooler is still
 * alive, so all waiters look again by themselves every LOOK_MS, so that a
 * waiter whose client is alive takes over.  Without shared_preload_libraries,
 * and therefore without shared memory, on a standby, and within a try of an outer
 * wait, no waiter can be woken: such a waiter only looks, at growing intervals.
 *
 * A session that waits for a task to be resolved enters a list in the same way,
 * under a number that is made of the id of the task in place of that of a
 * queue.  Every end of a task wakes all of them.  Two tasks may have the same
 * number, so that a waiter looks whether it was its own.  A prepared transaction
 * wakes none; they look by themselves.
 *
 * tq.max_waiters.  A session is counted for the role that has logged in, which
 * is the one whose settings it has and that SET ROLE does not change, from its
 * first sleep until its wait is over.  Where there is a limit, sessions look for
 * others of their role under a lock, so that no more than that ever sleep.
 *
 * Shutdown.  A fast shutdown ends a wait, because it terminates the sessions.
 * A smart shutdown waits for the sessions, and signals no process while there
 * is one, not even a background worker, so that a waiter ends when its time is
 * over.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "common/hashfn.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timeout.h"
#include "utils/wait_event.h"

#include "../util/compat.h"
#include "../util/errors.h"
#include "../util/guc.h"
#include "../util/xact_end.h"
#include "shmem.h"
#include "wait_queue.h"

#define PARTITIONS 64
#define ALL_QUEUES (-1)
#define ALL_TASKS (-2) /* and less: tasks */
#define NOTED_MAX 64   /* tasks of a transaction; more wake all that wait */
#define WAIT_ALL PG_INT32_MAX
#define LOOK_MS 10000    /* interval of looks without a wake-up … */
#define POLL_MIN_MS 10   /* … if it cannot be woken, from this … */
#define POLL_MAX_MS 1000 /* … doubling up to this */

/* State of a waiter.  Other processes change it only if it is WAITING. */
enum
{
	IDLE,
	WAITING,   /* in the list; changed under the lock */
	WOKEN,     /* taken from the list by a waker */
	RETRYING,  /* trying to claim */
	HANDED_OFF /* wait_for_work() has returned: the next claim is the try */
};

/*
 * One per process that can have a session, by the number of its PGPROC.
 * Changed by that process while it is not WAITING, and under its partition's
 * lock while it is.
 */
typedef struct Waiter
{
	dlist_node node; /* in the list of the partition */
	Oid database;
	int32 queue;
	uint64 ticket;          /* order of the list */
	pg_atomic_uint32 state; /* read by its owner without the lock */
	pg_atomic_uint32 role;  /* for which it counts; 0: none */
} Waiter;

/* The lock protects the list.  `length` is read without it. */
typedef struct Partition
{
	LWLock *lock;
	dlist_head waiters;
	pg_atomic_uint32 length;
} Partition;

typedef struct Shared
{
	pg_atomic_uint64 turns; /* number assigned so far; no lock */
	LWLock *counting;       /* for sessions that compare `role` of all */
	Partition partitions[PARTITIONS];
	Waiter waiters[FLEXIBLE_ARRAY_MEMBER];
} Shared;

static Shared *shared = NULL;

/* This process: its entry, and the subtransaction in which it waits. */
static Waiter *mine = NULL;
static bool waiting = false;
static SubTransactionId waiting_in = InvalidSubTransactionId;
static bool handing_over = false; /* HANDED_OFF, and not yet committed */
static bool new_queue = false;    /* this transaction makes a queue known */
static int32 opened = 0; /* queue that it opens; ALL_QUEUES; 0: none */
static int32 resolved[NOTED_MAX]; /* tasks that it resolves */
static int nresolved = 0;         /* may be greater than NOTED_MAX */
static bool has_woken = false;    /* since tq_wait_take_woken() */

/*
 * Start of the server.
 */

static Size
size(void)
{
	return add_size(offsetof(Shared, waiters),
					mul_size(MaxBackends, sizeof(Waiter)));
}

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	shared = memory;
	if (!is_new)
		return;
	pg_atomic_init_u64(&shared->turns, 0);
	shared->counting = &locks[PARTITIONS].lock;
	for (int i = 0; i < PARTITIONS; i++)
	{
		shared->partitions[i].lock = &locks[i].lock;
		dlist_init(&shared->partitions[i].waiters);
		pg_atomic_init_u32(&shared->partitions[i].length, 0);
	}
	for (int i = 0; i < MaxBackends; i++)
	{
		pg_atomic_init_u32(&shared->waiters[i].state, IDLE);
		pg_atomic_init_u32(&shared->waiters[i].role, InvalidOid);
	}
}

const TqShmemPart tq_wait_shmem = {.name = "tq waiters",
								   .tranche = "TqWait",
								   .locks = PARTITIONS + 1,
								   .size = size,
								   .startup = startup};

/*
 * Waking.
 */

static Partition *
find_partition(int32 queue)
{
	uint32 hash = hash_combine(murmurhash32(MyDatabaseId),
							   murmurhash32((uint32) queue));

	return &shared->partitions[hash % PARTITIONS];
}

static void
remove_from_list(Partition *partition, Waiter *waiter)
{
	dlist_delete(&waiter->node);
	pg_atomic_fetch_sub_u32(&partition->length, 1);
}

/*
 * Wakes a waiter.  Its process is found by the number of a PGPROC, which
 * outlives it.  The worst that a stale number can do is to wake another
 * process without need.
 */
static void
call(Partition *partition, Waiter *waiter)
{
	remove_from_list(partition, waiter);
	has_woken = true;
	pg_atomic_write_u32(&waiter->state, WOKEN);
	SetLatch(&GetPGProcByNumber(waiter - shared->waiters)->procLatch);
}

/* Returns whether a waiter waits for this queue, or for one of these. */
static bool
waits_for(const Waiter *waiter, int32 queue)
{
	if (waiter->database != MyDatabaseId)
		return false;
	return waiter->queue == queue || queue == ALL_QUEUES ||
		   (queue == ALL_TASKS && waiter->queue < ALL_TASKS);
}

/*
 * Wakes the first n waiters of a queue, or with ALL_QUEUES or ALL_TASKS of any,
 * that are in this partition (P2 and P3 of the banner).
 */
static void
wake(Partition *partition, int32 queue, int n)
{
	dlist_mutable_iter iter;

	pg_memory_barrier();
	if (n <= 0 || pg_atomic_read_u32(&partition->length) == 0)
		return;
	LWLockAcquire(partition->lock, LW_EXCLUSIVE);
	dlist_foreach_modify(iter, &partition->waiters)
	{
		Waiter *waiter = dlist_container(Waiter, node, iter.cur);

		if (!waits_for(waiter, queue))
			continue;
		call(partition, waiter);
		if (--n == 0)
			break;
	}
	LWLockRelease(partition->lock);
}

/*
 * Wakes n waiters of a queue of this database, those that have waited longest,
 * because n runs have become claimable and are visible to other sessions.
 */
void
tq_wait_wake(int32 queue, int n)
{
	if (shared != NULL)
		wake(find_partition(queue), queue, n);
}

static void
wake_everywhere(int32 queue)
{
	for (int i = 0; shared != NULL && i < PARTITIONS; i++)
		wake(&shared->partitions[i], queue, WAIT_ALL);
}

/*
 * Wakes all waiters of this database, for when it is unknown which runs have
 * become claimable.
 */
void
tq_wait_wake_all(void)
{
	wake_everywhere(ALL_QUEUES);
}

/* Wakes those that wait for a task that this transaction has resolved. */
static void
wake_for_tasks(void)
{
	if (nresolved > NOTED_MAX)
		wake_everywhere(ALL_TASKS);
	else
	{
		for (int i = 0; i < nresolved; i++)
			tq_wait_wake(resolved[i], WAIT_ALL);
	}
}

/*
 * Looking.
 */

/*
 * Returns the waiters of this database, each partition in the order in which
 * they are woken.
 */
TqSleeper *
tq_wait_list(int *found)
{
	TqSleeper *list = palloc(sizeof(TqSleeper) * MaxBackends);

	*found = 0;
	for (int i = 0; shared != NULL && i < PARTITIONS; i++)
	{
		Partition *partition = &shared->partitions[i];
		dlist_iter iter;

		LWLockAcquire(partition->lock, LW_SHARED);
		dlist_foreach(iter, &partition->waiters)
		{
			const Waiter *waiter = dlist_container(Waiter, node, iter.cur);
			int number = waiter - shared->waiters;

			if (waiter->database == MyDatabaseId)
				list[(*found)++] = (TqSleeper){GetPGProcByNumber(number)->pid,
											   waiter->queue};
		}
		LWLockRelease(partition->lock);
	}
	return list;
}

/* Returns whether this process has woken a waiter since the last call. */
bool
tq_wait_take_woken(void)
{
	bool result = has_woken;

	has_woken = false;
	return result;
}

/*
 * The waiter's place in its list.
 */

static void
insert_in_order(Partition *partition, Waiter *waiter)
{
	dlist_iter iter;

	dlist_reverse_foreach(iter, &partition->waiters)
	{
		if (dlist_container(Waiter, node, iter.cur)->ticket < waiter->ticket)
		{
			dlist_insert_after(iter.cur, &waiter->node);
			return;
		}
	}
	dlist_push_head(&partition->waiters, &waiter->node);
}

/* Enters the list of a queue (W1 of the banner). */
static void
enter_list(uint64 ticket, int32 queue)
{
	Partition *partition = find_partition(queue);

	mine->database = MyDatabaseId;
	mine->queue = queue;
	mine->ticket = ticket;
	LWLockAcquire(partition->lock, LW_EXCLUSIVE);
	insert_in_order(partition, mine);
	pg_atomic_fetch_add_u32(&partition->length, 1);
	pg_atomic_write_u32(&mine->state, WAITING);
	LWLockRelease(partition->lock);
	pg_memory_barrier();
}

static void
leave_list(void)
{
	Partition *partition = find_partition(mine->queue);

	LWLockAcquire(partition->lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u32(&mine->state) == WAITING)
	{
		remove_from_list(partition, mine);
		pg_atomic_write_u32(&mine->state, IDLE);
	}
	LWLockRelease(partition->lock);
}

/*
 * Makes the waiter idle, and passes a wake-up that it has not used on to the
 * next waiter.
 */
static void
withdraw(void)
{
	if (pg_atomic_read_u32(&mine->state) == WAITING)
		leave_list();
	if (pg_atomic_read_u32(&mine->state) == IDLE)
		return;
	pg_atomic_write_u32(&mine->state, IDLE);
	tq_wait_wake(mine->queue, 1);
}

/* Ends the wait that has begun. */
static void
stop_waiting(void)
{
	waiting = false;
	pg_atomic_write_u32(&mine->role, InvalidOid);
}

/*
 * Ends of transactions and of the session.
 */

/*
 * Wakes the waiters of queue 0 if this transaction made a queue known, those of
 * a queue that it has opened, and those of the tasks that it has resolved.
 */
static void
wait_commits(void)
{
	handing_over = false;
	if (new_queue)
		tq_wait_wake(0, WAIT_ALL);
	if (opened == ALL_QUEUES)
		tq_wait_wake_all();
	else if (opened != 0)
		tq_wait_wake(opened, WAIT_ALL);
	if (nresolved > 0)
		wake_for_tasks();
}

/* Resets the waiter if its wait has begun or been handed off there. */
static void
wait_aborts(SubTransactionId id)
{
	bool is_top = id == TopSubTransactionId;

	if (!(waiting && (is_top || id == waiting_in)) &&
		!(handing_over && is_top))
		return;
	handing_over = false;
	stop_waiting();
	withdraw();
}

static void
forget_notes(void)
{
	new_queue = false;
	opened = 0;
	nresolved = 0;
}

const TqXactEnd tq_wait_xact_end = {.commit = wait_commits,
									.abort = wait_aborts,
									.reset = forget_notes};

static void
session_ends(int code, Datum arg)
{
	stop_waiting();
	withdraw();
}

/*
 * Notes that this transaction makes the name of a queue known, so that its
 * commit wakes the waiters of queue 0.
 */
void
tq_wait_note_queue(void)
{
	new_queue = true;
}

/*
 * Notes that the settings of a queue may let more be claimed once this
 * transaction has committed, so that its commit wakes all waiters of the queue.
 */
void
tq_wait_note_opened(int32 queue)
{
	opened = opened == 0 || opened == queue ? queue : ALL_QUEUES;
}

/* Returns the number under which sessions wait for a task. */
int32
tq_wait_number_of_task(int64 task)
{
	return ALL_TASKS - 1 -
		   (int32) (hash_bytes((const unsigned char *) &task, sizeof(task)) >>
					2);
}

/*
 * Notes that this transaction resolves or deletes a task, so that its commit
 * wakes the sessions that wait for that.
 */
void
tq_wait_note_resolved(int64 task)
{
	if (nresolved < NOTED_MAX)
		resolved[nresolved] = tq_wait_number_of_task(task);
	nresolved = Min(nresolved + 1, NOTED_MAX + 1);
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
 * Waiting.
 */

/*
 * Begins a try to claim that may become a wait, in the transaction or
 * savepoint of the caller.  If that is aborted by an error, its callback
 * resets the waiter.  Otherwise the caller ends the wait by tq_wait_end() or
 * tq_wait_hand_off().
 */
void
tq_wait_begin(TqWait *wait, int64 ms)
{
	memset(wait, 0, sizeof(*wait));
	INSTR_TIME_SET_CURRENT(wait->begun);
	wait->ms = ms;
	wait->callable = shared != NULL && !waiting && !RecoveryInProgress();
	wait->delay = wait->callable ? LOOK_MS : POLL_MIN_MS;
	if (!wait->callable)
		return;
	if (mine == NULL)
		on_shmem_exit(session_ends, (Datum) 0);
	mine = &shared->waiters[TqMyProcNumber()];
	waiting = true;
	waiting_in = GetCurrentSubTransactionId();
}

/*
 * Takes over the wake-up of an earlier wait_for_work() for this queue.
 * Returns whether there was one; the first try is then made for it.
 */
bool
tq_wait_take_over(TqWait *wait, int32 queue)
{
	if (!wait->callable || pg_atomic_read_u32(&mine->state) != HANDED_OFF ||
		mine->queue != queue)
		return false;
	mine->ticket = wait->ticket;
	pg_atomic_write_u32(&mine->state, RETRYING);
	return true;
}

/*
 * Enters the list of this queue, at the place of this wait.  The caller tries
 * to claim after that, and then sleeps.
 */
void
tq_wait_enter(TqWait *wait, int32 queue)
{
	if (!wait->callable)
		return;
	if (wait->ticket == 0)
		wait->ticket = pg_atomic_add_fetch_u64(&shared->turns, 1);
	if (pg_atomic_read_u32(&mine->state) != IDLE &&
		mine->ticket == wait->ticket && mine->queue == queue)
		return; /* in the list, or woken since */
	withdraw();
	enter_list(wait->ticket, queue);
}

/*
 * Ends a try.  If it was for a wake-up, that is used up.  Returns true if it
 * was, and there is time to return to the list and try once more.  If the try
 * was in vain, the row may have been locked by a transaction that releases it
 * without a wake-up, so the waiter looks again soon.
 */
bool
tq_wait_tried(TqWait *wait)
{
	if (!wait->callable || pg_atomic_read_u32(&mine->state) != RETRYING)
		return false;
	pg_atomic_write_u32(&mine->state, IDLE);
	wait->delay = POLL_MIN_MS;
	return ms_since(&wait->begun) < wait->ms;
}

/*
 * Makes the next sleep end after so many milliseconds, although no other session
 * will wake this one then.
 */
void
tq_wait_look_in(TqWait *wait, int64 ms)
{
	wait->delay = (int) Min(wait->delay, Max(ms, 1));
}

/*
 * Passes a wake-up on to the next waiter, and leaves the list, because this
 * waiter may not claim.
 */
void
tq_wait_requeue_wakeup(const TqWait *wait)
{
	if (wait->callable)
		withdraw();
}

/*
 * Ends the session if its client is gone, before it claims for that client.
 * The server checks the connection, as it does at every
 * client_connection_check_interval; if that is not set, it does so this once.
 */
static void
check_client(void)
{
	bool is_set = client_connection_check_interval > 0;
	int nest;

	if (MyProcPort == NULL || !WaitEventSetCanReportClosed())
		return;
	nest = NewGUCNestLevel();
	if (!is_set)
		(void) set_config_option("client_connection_check_interval", "1min",
								 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
								 true, 0, false);
	CheckClientConnectionPending = true;
	InterruptPending = true;
	CHECK_FOR_INTERRUPTS();
	AtEOXact_GUC(true, nest);
	if (!is_set)
		disable_timeout(CLIENT_CONNECTION_CHECK_TIMEOUT, false);
}

pg_noreturn static void
refuse_waiter(int found)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
		 errmsg("too many sessions of role \"%s\" wait",
				tq_error_role(GetSessionUserId())),
		 errdetail("%d wait, and %d may (tq.max_waiters).", found,
				   tq_max_waiters),
		 errhint(
			 "Let fewer sessions wait, or have one claim more tasks at once.")));
}

/* Returns how many sessions wait that count for a role. */
static int
count_waiters(Oid role)
{
	int found = 0;

	for (int i = 0; i < MaxBackends; i++)
		found += pg_atomic_read_u32(&shared->waiters[i].role) == role;
	return found;
}

/* Counts this session for its role, or raises an error if that has too many. */
static void
admit_waiter(void)
{
	Oid role = GetSessionUserId();
	int found = 0;

	if (pg_atomic_read_u32(&mine->role) != InvalidOid)
		return;
	if (tq_max_waiters > 0)
	{
		LWLockAcquire(shared->counting, LW_EXCLUSIVE);
		found = count_waiters(role);
	}
	if (tq_max_waiters == 0 || found < tq_max_waiters)
		pg_atomic_write_u32(&mine->role, role);
	if (tq_max_waiters > 0)
		LWLockRelease(shared->counting);
	if (tq_max_waiters > 0 && found >= tq_max_waiters)
		refuse_waiter(found);
}

static uint32
wait_event(TqWaitSite site)
{
	static uint32 claim_work = 0;
	static uint32 for_work = 0;
	static uint32 for_task = 0;

	switch (site)
	{
		case TQ_WAIT_CLAIM_WORK:
			return TqWaitEvent(claim_work, "TqClaimWork");
		case TQ_WAIT_FOR_WORK:
			return TqWaitEvent(for_work, "TqWaitForWork");
		case TQ_WAIT_FOR_TASK:
			return TqWaitEvent(for_task, "TqWaitForTask");
	}
	return 0;
}

/* Returns whether this waiter was woken.  If so, it is trying from here on. */
static bool
is_woken(const TqWait *wait)
{
	if (!wait->callable || pg_atomic_read_u32(&mine->state) != WOKEN)
		return false;
	check_client();
	pg_atomic_write_u32(&mine->state, RETRYING);
	return true;
}

/*
 * Checks for what wakes no waiter, before it looks without a wake-up: a
 * shutdown of the server, and a client that is gone.
 */
static TqWakeup
look_around(void)
{
	check_client();
	return TQ_WAKEUP_POLL;
}

/* Returns how many milliseconds to sleep without a wake-up, more each time. */
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
 * Sleeps until the waiter is woken, is to look by itself, or its time is over
 * (W3 of the banner).  Raises 53400 if too many sessions of its role wait.  Interrupts are processed as everywhere: a cancel, the
 * end of the session, a timeout.
 */
TqWakeup
tq_wait_sleep(TqWait *wait, TqWaitSite site)
{
	int64 now = ms_since(&wait->begun);
	int64 look = now + next_look(wait);

	if (wait->callable && now < wait->ms)
		admit_waiter();
	for (;; now = ms_since(&wait->begun))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_woken(wait))
			return TQ_WAKEUP_WOKEN;
		if (now >= wait->ms)
			return TQ_WAKEUP_OVER;
		if (now >= look)
			return look_around();
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) (Min(wait->ms, look) - now), wait_event(site));
		ResetLatch(MyLatch);
	}
}

/* Ends the wait, with or without rows. */
void
tq_wait_end(const TqWait *wait)
{
	if (!wait->callable)
		return;
	stop_waiting();
	if (pg_atomic_read_u32(&mine->state) != IDLE &&
		mine->ticket == wait->ticket)
		withdraw();
}

/*
 * Ends the wait of a session that will claim in another transaction.  If it
 * was woken, the wake-up stays with this session until then.
 */
void
tq_wait_hand_off(const TqWait *wait)
{
	if (!wait->callable)
		return;
	stop_waiting();
	if (pg_atomic_read_u32(&mine->state) == WAITING)
		leave_list();
	if (pg_atomic_read_u32(&mine->state) == IDLE)
		return;
	pg_atomic_write_u32(&mine->state, HANDED_OFF);
	handing_over = true;
}
