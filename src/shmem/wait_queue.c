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
 * A waiter is idle (IDLE), in the lists of its queues (WAITING), or it was
 * woken: a waker has taken it (WOKEN), and then it tries to claim (RETRYING).
 *
 *	waiter									waker
 *	W1	WAITING, enter the lists			P1	rows visible, cursor lowered
 *	W2	full barrier, try to claim			P2	full barrier
 *	W3	sleep until WOKEN, the time is		P3	take the first of the list,
 *		over, or an interrupt					WOKEN, set their latches
 *
 * If W1 comes before P3, the waiter is woken.  If P3 comes before W1, the try
 * in W2 sees the rows.  A waker therefore takes those that have waited longest,
 * and no more than the rows are for, and wakes none without need.
 *
 * A waiter says how many rows it takes, which a link has a byte for, and a
 * wake-up is for some number of rows up to that: a waker shares out its rows
 * among waiters until there are none left.  So a commit of 128 tasks wakes 11 of
 * those that ask for 12, not 128 that find nothing for the most part: 250 waiters
 * use 1.2 times the processor time of 16, and did 4 times.  One that may get
 * fewer rows than it asks for, although there are more, as by a limit of the
 * queue, takes one.
 *
 * A waiter that was woken must try to claim (RETRYING while it does), because
 * otherwise the rows might stay pending while other waiters sleep.  During this
 * try it is not in the list.  A try that gets n rows uses up so much of the
 * wake-up, and passes the rest on: others may have taken the rows, but they may
 * be locked as well, or the waiter may have got enough elsewhere.  If it gets
 * none, the wake-up is used up; the waiter returns to its former position in the
 * list.  A waiter that was woken and does not try any more passes the wake-up on
 * to the next ones: after an error or a cancel, at the end of the session, when
 * its time is over, or when a try that had begun before got it rows, which may be
 * others than those of the wake-up.  A try skips a row that is only locked, and
 * no wake-up follows when the lock is released, so a waiter that was woken in
 * vain looks again soon.
 *
 * Why the rest is enough: let D be the rows for which waiters are awake that have
 * not tried yet, less the rows that can be claimed.  As long as a waiter sleeps D
 * is not below 0.  A waker adds as much to both; a claim without a wake-up makes D
 * greater; a try of a wake-up for c rows that gets n takes n from the rows, and
 * max(n, c) - n is passed on.  A try that gets none has seen that there are none, or
 * will look again.  An abort makes rows claimable and wakes for as many.
 *
 * A session may wait for several queues: it has a link in the list of each, and
 * one state.  The lists are in different partitions, and no process holds the
 * locks of two.  Two wakers may meet the waiter at the same time in two lists;
 * the one that changes its state from WAITING to WOKEN, atomically, has woken
 * it, and for the other one it is not there: it takes the next of its list.  So
 * a waiter is woken once, and each row wakes one waiter.  The state also says in
 * which list the waiter was found, because it must be that queue's next waiter
 * to whom the wake-up is passed on.  A try may get enough rows from other queues
 * before it comes to that one; then the waiter passes on what it has not got from
 * that queue.  The links in the other lists are stale from then on.  The waiter removes
 * them before it tries, and a waker that meets one removes it, under the lock
 * of the list.  A waiter sets its state to WAITING before it enters the first
 * list, so that a link whose waiter is not WAITING is stale, and never one that
 * is being entered.
 *
 * The argument above holds for each list by itself: W1 is over when the waiter
 * has entered the last one.  If P3 comes after the waiter has entered the list
 * of that row, then the waiter is WAITING and is woken, or it was woken for
 * another row, and the waker goes on to the next one.  If there is none, the
 * only waiter of the queue is awake.  Before it sleeps again, it enters the
 * lists (W1) and tries all of its queues (W2), and so sees the row.
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
 * and therefore without shared memory, on a standby, and within a try of an
 * outer wait, no waiter can be woken: such a waiter only looks, at growing
 * intervals.
 *
 * A session that waits for a task to be resolved enters a list in the same way,
 * under a number that is made of the id of the task in place of that of a
 * queue.  So does a session that waits while a run of the task goes on.  Every
 * end of a run wakes all of them.  Two tasks may have the same number, so that a
 * waiter looks whether it was its own.  A prepared transaction wakes none; they
 * look by themselves.
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
 *
 * Locks ----- The queues, and tasks, are spread over partitions.  The lock of a
 * partition protects its list and the links in it: in exclusive mode to enter
 * or leave the list and to wake, in share mode to look.  Its length is read
 * without the lock. A backend holds one of these locks at a time.  The fields of
 * a waiter belong to its process while none of its links is listed, and its
 * state is atomic: others change it from WAITING to WOKEN alone, with the lock
 * of the partition held in which they have met it.
 *
 * One more lock lets one session at a time compare the roles of all waiters
 * before it counts for its own (tq.max_waiters).  It is held alone.
 *
 * test/model/wait_queue.pml is the protocol for rows, for spin.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "common/hashfn.h"
#include "lib/ilist.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timeout.h"
#include "utils/wait_event.h"

#include "shmem.h"

#define PARTITIONS 64
#define ALL_QUEUES (-1)
#define ALL_TASKS (-2) /* and less: tasks */
#define NOTED_MAX 64   /* tasks of a transaction; more wake all that wait */
#define WAIT_ALL PG_INT32_MAX
#define LOOK_MS 10000    /* interval of looks without a wake-up … */
#define POLL_MIN_MS 10   /* … if it cannot be woken, from this … */
#define POLL_MAX_MS 1000 /* … doubling up to this */

/*
 * State of a waiter.  Other processes change it only from WAITING to WOKEN.
 * That of a waiter that was woken has the number of the link by which it was
 * found in the bits above, and then for how many rows it was woken.
 */
enum
{
	IDLE,
	WAITING,   /* in the lists */
	WOKEN,     /* taken from a list by a waker */
	RETRYING,  /* trying to claim */
	HANDED_OFF /* wait_for_work() has returned: the next claim is the try */
};

#define STATE_BITS 3
#define STATE_MASK ((1 << STATE_BITS) - 1)
#define ROWS_SHIFT 16
#define LINK_OF(word) (((word) & ((1 << ROWS_SHIFT) - 1)) >> STATE_BITS)
#define ROWS_OF(word) ((int) ((word) >> ROWS_SHIFT))
#define WOKEN_BY(link, rows)                                                  \
	(WOKEN | (link)->number << STATE_BITS | (uint32) (rows) << ROWS_SHIFT)

/* A position in the list of a queue.  Changed under the lock of the partition. */
typedef struct Link
{
	dlist_node node; /* in the list of the partition */
	int32 queue;     /* changed by its owner while it is not listed */
	int16 number;    /* of this link; fixed at startup */
	uint8 want;      /* as `queue`: rows that the waiter takes */
	bool is_listed;
} Link;

/*
 * One per process that can have a session, by the number of its PGPROC.
 * Changed by that process while none of its links is listed, except for the
 * state.
 */
typedef struct Waiter
{
	pg_atomic_uint32 state;
	Oid database;
	uint64 ticket;         /* order of the lists */
	pg_atomic_uint32 role; /* for which it counts; 0: none */
	int n;                 /* links in use */
	Link links[TQ_WAIT_LISTS];
} Waiter;

/* The lock protects the list.  `length` is read without it. */
typedef struct Partition
{
	LWLock *lock;
	dlist_head waiters;
	pg_atomic_uint32 length;
} Partition;

typedef struct WaitQueueShared
{
	pg_atomic_uint64 turns; /* number assigned so far; no lock */
	LWLock *counting;       /* for sessions that compare `role` of all */
	Partition partitions[PARTITIONS];
	Waiter waiters[FLEXIBLE_ARRAY_MEMBER];
} WaitQueueShared;

static WaitQueueShared *shared = NULL;

/* This process: its entry, and the subtransaction in which it waits. */
static Waiter *mine = NULL;
static bool has_work = false; /* any of the following has been set */
static bool waiting = false;
static SubTransactionId waiting_in = InvalidSubTransactionId;
static bool handing_over = false; /* HANDED_OFF, and not yet committed */
static bool new_queue = false;    /* this transaction makes a queue known */
static int32 opened = 0; /* queue that it opens; ALL_QUEUES; 0: none */
static int32 resolved[NOTED_MAX]; /* tasks that it resolves */
static int nresolved = 0;         /* may be greater than NOTED_MAX */

/*
 * Start of the server.
 */

static Size
wait_queue_size(void)
{
	return add_size(offsetof(WaitQueueShared, waiters),
					mul_size(MaxBackends, sizeof(Waiter)));
}

static void
wait_queue_startup(void *memory, bool is_new, LWLockPadded *locks)
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
		shared->waiters[i].n = 0;
		for (int j = 0; j < TQ_WAIT_LISTS; j++)
			shared->waiters[i].links[j] = (Link){.number = j};
	}
}

const TqShmemPart tq_wait_shmem = {.name = "tq waiters",
								   .tranche = "TqWait",
								   .locks = PARTITIONS + 1,
								   .size = wait_queue_size,
								   .startup = wait_queue_startup};

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

static Waiter *
waiter_of(Link *link)
{
	return (Waiter *) ((char *) (link - link->number) -
					   offsetof(Waiter, links));
}

static void
remove_from_list(Partition *partition, Link *link)
{
	dlist_delete(&link->node);
	link->is_listed = false;
	pg_atomic_fetch_sub_u32(&partition->length, 1);
}

/*
 * Wakes a waiter, unless another process has woken it, by another link, and
 * returns for how many of n rows.  Removes the link before that, because its
 * owner may use it for another list at once.
 *
 * Its process is found by the number of a PGPROC, which outlives it.  The worst
 * that a stale number can do is to wake another process without need.
 */
static int
wait_queue_call(Partition *partition, Link *link, int n)
{
	Waiter *waiter = waiter_of(link);
	uint32 expected = WAITING;
	int rows = n == WAIT_ALL ? 1 : Min(n, link->want);

	remove_from_list(partition, link);
	if (!pg_atomic_compare_exchange_u32(&waiter->state, &expected,
										WOKEN_BY(link, rows)))
		return 0;
	tq_request_note_woken();
	SetLatch(&GetPGProcByNumber(waiter - shared->waiters)->procLatch);
	return rows;
}

/* Returns whether a waiter waits for this queue, or for one of these. */
static bool
waits_for(Link *link, Oid database, int32 queue)
{
	if (waiter_of(link)->database != database)
		return false;
	return link->queue == queue || queue == ALL_QUEUES ||
		   (queue == ALL_TASKS && link->queue < ALL_TASKS);
}

/*
 * Wakes the first waiters of a queue, or with ALL_QUEUES or ALL_TASKS of any,
 * that are in this partition and take n rows together; or all of them, each to
 * look for itself (P2 and P3 of the banner).
 */
static void
wait_queue_wake(Partition *partition, Oid database, int32 queue, int n)
{
	dlist_mutable_iter iter;

	pg_memory_barrier();
	if (n <= 0 || pg_atomic_read_u32(&partition->length) == 0)
		return;
	LWLockAcquire(partition->lock, LW_EXCLUSIVE);
	dlist_foreach_modify(iter, &partition->waiters)
	{
		Link *link = dlist_container(Link, node, iter.cur);
		int rows = 0;

		if (waits_for(link, database, queue))
			rows = wait_queue_call(partition, link, n);
		if (n != WAIT_ALL && (n -= rows) == 0)
			break;
	}
	LWLockRelease(partition->lock);
}

/*
 * Wakes waiters of a queue of this database, those that have waited longest, and
 * as many as take n runs together, because n have become claimable and are
 * visible to other sessions.
 */
void
tq_wait_wake(int32 queue, int n)
{
	if (shared != NULL)
		wait_queue_wake(find_partition(queue), MyDatabaseId, queue, n);
}

static void
wake_everywhere(Oid database, int32 queue)
{
	for (int i = 0; shared != NULL && i < PARTITIONS; i++)
		wait_queue_wake(&shared->partitions[i], database, queue, WAIT_ALL);
}

/*
 * Wakes all waiters of a database, for when it is unknown which runs have
 * become claimable, and so that those whose client is gone end.
 */
void
tq_wait_wake_all(Oid database)
{
	wake_everywhere(database, ALL_QUEUES);
}

/*
 * Looking.
 */

/* Returns how many links are in all lists of the server. */
static int
total_length(void)
{
	int total = 0;

	for (int i = 0; shared != NULL && i < PARTITIONS; i++)
		total += pg_atomic_read_u32(&shared->partitions[i].length);
	return total;
}

/*
 * Returns the waiters of this database, each partition in the order in which
 * they are woken.  One that waits for several queues is there for each.  Those
 * that come meanwhile may be left out.
 */
TqSleepers
tq_wait_list(void)
{
	TqSleepers sleepers = {.room = total_length() + MaxBackends};

	sleepers.list = palloc(sizeof(TqSleeper) * sleepers.room);
	for (int i = 0; shared != NULL && i < PARTITIONS; i++)
	{
		dlist_iter iter;

		/* Add the waiters of a partition that wait in this database. */
		LWLockAcquire(shared->partitions[i].lock, LW_SHARED);
		dlist_foreach(iter, &shared->partitions[i].waiters)
		{
			Link *link = dlist_container(Link, node, iter.cur);
			Waiter *waiter = waiter_of(link);
			PGPROC *process = GetPGProcByNumber(waiter - shared->waiters);

			if (waiter->database != MyDatabaseId ||
				pg_atomic_read_u32(&waiter->state) != WAITING ||
				sleepers.n == sleepers.room)
				continue;
			sleepers.list[sleepers.n++] = (TqSleeper){process->pid,
													  link->queue};
		}
		LWLockRelease(shared->partitions[i].lock);
	}
	return sleepers;
}

/*
 * The state of this process.
 */

static uint32
my_state(void)
{
	return pg_atomic_read_u32(&mine->state) & STATE_MASK;
}

/* Changes the state of one that was woken, and keeps the number of the link. */
static void
advance(uint32 state)
{
	uint32 old = pg_atomic_read_u32(&mine->state);

	pg_atomic_write_u32(&mine->state, (old & ~STATE_MASK) | state);
}

/* Returns the queue for which this process was woken. */
static int32
woken_for(void)
{
	return mine->links[LINK_OF(pg_atomic_read_u32(&mine->state))].queue;
}

/* Returns for how many rows. */
static int
rows_woken_for(void)
{
	return ROWS_OF(pg_atomic_read_u32(&mine->state));
}

/*
 * The waiter's positions in the lists.
 */

static void
insert_in_order(Partition *partition, Link *link)
{
	uint64 ticket = waiter_of(link)->ticket;
	dlist_iter iter;

	dlist_reverse_foreach(iter, &partition->waiters)
	{
		if (waiter_of(dlist_container(Link, node, iter.cur))->ticket < ticket)
		{
			dlist_insert_after(iter.cur, &link->node);
			return;
		}
	}
	dlist_push_head(&partition->waiters, &link->node);
}

/*
 * Makes the waiter idle if it has not been woken, and removes it from all
 * lists. The waker has removed the link of a waiter that is in one list only.
 */
static void
leave_lists(void)
{
	uint32 expected = WAITING;
	bool is_idle = pg_atomic_compare_exchange_u32(&mine->state, &expected,
												  IDLE);

	for (int i = 0; i < mine->n && (is_idle || mine->n > 1); i++)
	{
		Partition *partition = find_partition(mine->links[i].queue);

		LWLockAcquire(partition->lock, LW_EXCLUSIVE);
		if (mine->links[i].is_listed)
			remove_from_list(partition, &mine->links[i]);
		LWLockRelease(partition->lock);
	}
}

/*
 * Makes a waiter that was woken idle, and passes its wake-up on to the next
 * waiters of the queue that it is from, without n rows.  A new name has woken all
 * of queue 0.
 */
static void
pass_on_but(int n)
{
	int32 queue = woken_for();
	int rest = rows_woken_for() - n;

	pg_atomic_write_u32(&mine->state, IDLE);
	if (queue != 0)
		tq_wait_wake(queue, rest);
}

/* Makes the waiter idle, and passes a wake-up on that it has not used. */
static void
withdraw(void)
{
	if (my_state() == WAITING || my_state() == WOKEN)
		leave_lists();
	if (my_state() != IDLE)
		pass_on_but(0);
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
		tq_wait_wake_all(MyDatabaseId);
	else if (opened != 0)
		tq_wait_wake(opened, WAIT_ALL);
	if (nresolved > 0)
	{
		/* Wake those that wait for a task that this transaction has resolved. */
		if (nresolved > NOTED_MAX)
			wake_everywhere(MyDatabaseId, ALL_TASKS);
		else
		{
			for (int i = 0; i < nresolved; i++)
				tq_wait_wake(resolved[i], WAIT_ALL);
		}
	}
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
	has_work = waiting || handing_over;
}

const TqXactEnd tq_wait_xact_end = {.has_work = &has_work,
									.commit = wait_commits,
									.abort = wait_aborts,
									.reset = forget_notes};

static void
wait_queue_session_ends(int code, Datum arg)
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
	new_queue = has_work = true;
}

/*
 * Notes that the settings of a queue may let more be claimed once this
 * transaction has committed, so that its commit wakes all waiters of the queue.
 */
void
tq_wait_note_opened(int32 queue)
{
	has_work = true;
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
 * Notes that this transaction ends a run or deletes a task, so that its commit
 * wakes the sessions that wait for that.
 */
void
tq_wait_note_resolved(int64 task)
{
	has_work = true;
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
		on_shmem_exit(wait_queue_session_ends, (Datum) 0);
	mine = &shared->waiters[TqMyProcNumber()];
	waiting = has_work = true;
	waiting_in = GetCurrentSubTransactionId();
}

/*
 * Returns whether an earlier wait of this session was woken and has ended
 * without a claim, so that the wake-up is still to be used or passed on.
 */
bool
tq_wait_has_wakeup(void)
{
	return mine != NULL && my_state() != IDLE;
}

/*
 * Takes over the wake-up of an earlier wait_for_work(), if it is for one of
 * these queues.  Returns whether there was one; the first try is then made for
 * it.
 */
bool
tq_wait_take_over(TqWait *wait, const int32 *queues, int n)
{
	if (!wait->callable || my_state() != HANDED_OFF)
		return false;
	for (int i = 0; i < n; i++)
	{
		if (queues[i] != woken_for())
			continue;
		mine->ticket = wait->ticket;
		advance(RETRYING);
		return true;
	}
	return false;
}

#define WANT(wants, i) ((wants) == NULL ? 1 : Min((wants)[i], PG_UINT8_MAX))

/* Returns whether this process is in these lists, or was woken since. */
static bool
is_in(const TqWait *wait, const int32 *queues, const int *wants, int n)
{
	if (my_state() == IDLE || mine->ticket != wait->ticket || mine->n != n)
		return false;
	for (int i = 0; i < n; i++)
	{
		if (mine->links[i].queue != queues[i] ||
			mine->links[i].want != WANT(wants, i))
			return false;
	}
	return true;
}

/*
 * Enters the lists of these different queues, at the position of this wait;
 * there may be TQ_WAIT_LISTS.  A try takes at least so many rows of each as the
 * waiter wants, if they are there; NULL: one.  The caller tries to claim after
 * that, and then sleeps.
 */
void
tq_wait_enter(TqWait *wait, const int32 *queues, const int *wants, int n)
{
	if (!wait->callable)
		return;
	if (wait->ticket == 0)
		wait->ticket = pg_atomic_add_fetch_u64(&shared->turns, 1);
	if (is_in(wait, queues, wants, n))
		return;
	withdraw();
	if (n > 0)
	{
		/* Enter the lists of these queues (W1 of the banner). */
		mine->database = MyDatabaseId;
		mine->ticket = wait->ticket;
		mine->n = n;
		pg_atomic_write_u32(&mine->state, WAITING);
		for (int i = 0; i < n; i++)
		{
			Partition *partition = find_partition(queues[i]);

			LWLockAcquire(partition->lock, LW_EXCLUSIVE);
			mine->links[i].queue = queues[i];
			mine->links[i].want = WANT(wants, i);
			mine->links[i].is_listed = true;
			insert_in_order(partition, &mine->links[i]);
			pg_atomic_fetch_add_u32(&partition->length, 1);
			LWLockRelease(partition->lock);
		}
		pg_memory_barrier();
	}
}

/*
 * Returns whether the present try is for a wake-up, and for which queue.
 */
bool
tq_wait_is_for(const TqWait *wait, int32 *queue)
{
	if (!wait->callable || my_state() != RETRYING)
		return false;
	*queue = woken_for();
	return true;
}

/*
 * Ends a try that has got rows, n of them of the queue of the wake-up for which
 * it was made, if it was.  Passes on what that was for beyond these.
 */
void
tq_wait_used(const TqWait *wait, int n)
{
	if (wait->callable && my_state() == RETRYING)
		pass_on_but(n);
}

/*
 * Ends a try in vain.  If it was for a wake-up, and there is time to return to
 * the list and try once more, that is used up, and it returns true.  The row may
 * have been locked by a transaction that releases it without a wake-up, so the
 * waiter looks again soon.
 */
bool
tq_wait_tried(TqWait *wait)
{
	if (!wait->callable || my_state() != RETRYING ||
		ms_since(&wait->begun) >= wait->ms)
		return false;
	pg_atomic_write_u32(&mine->state, IDLE);
	wait->delay = POLL_MIN_MS;
	return true;
}

/*
 * Makes the next sleep end after so many milliseconds, although no other
 * session will wake this one then.
 */
void
tq_wait_recheck_in(TqWait *wait, int64 ms)
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
	if (!wait->callable || my_state() != WOKEN)
		return false;
	check_client();
	leave_lists();
	advance(RETRYING);
	return true;
}

/* Returns how many milliseconds to sleep without a wake-up, more each time. */
static int64
next_check(TqWait *wait)
{
	bool listed = wait->callable && my_state() != IDLE;
	int most = listed ? LOOK_MS : POLL_MAX_MS;
	int delay = Min(wait->delay, most);

	wait->delay = Min(delay * 2, most);
	return delay;
}

/*
 * Sleeps until the waiter is woken, is to look by itself, or its time is over
 * (W3 of the banner).  Raises 53400 if too many sessions of its role
 * wait.  Interrupts are processed as everywhere: a cancel, the end of the
 * session, a timeout.
 */
TqWakeup
tq_wait_sleep(TqWait *wait, TqWaitSite site)
{
	int64 now = ms_since(&wait->begun);
	int64 look = now + next_check(wait);

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
		{
			/*
			 * Check for what wakes no waiter, before it looks without a wake-up: a
			 * shutdown of the server, and a client that is gone.
			 */
			check_client();
			return TQ_WAKEUP_POLL;
		}
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
	if (my_state() != IDLE && mine->ticket == wait->ticket)
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
	if (my_state() == WAITING || my_state() == WOKEN)
		leave_lists();
	if (my_state() == IDLE)
		return;
	advance(HANDED_OFF);
	handing_over = has_work = true;
}
