/*
 * claim_cursor.c
 *	  The claim cursor: a hint where claims begin in each queue.
 *
 * Decides when the hint may be raised and when it must be lowered.  The stores
 * know what the rows contain, and which index entries a claim may skip. Without
 * shared_preload_libraries, and on a standby, there is no hint, and every claim
 * scans its queue from the beginning.
 *
 * The protocol, and why no row is lost
 * ------------------------------------
 * For each queue of tq_internal.pending and each priority, shared memory holds
 * a number `low`: scanners need not look at index entries with seq < low.  The
 * tables are the truth.  A number that is too low costs time.  A number that
 * is too high hides a run from all claims, so it must never persist.
 *
 *	scanner									transaction T, writing row s
 *	S1	tq_cursor_read(): low, generation	T1	record s: tq_cursor_track_*()
 *	S2	descend the index; look at the		T2	insert or delete row s
 *		entries from low on					T3	the end of T becomes visible
 *	S3	tq_cursor_raise() up to the first	T4	lower to s:
 *		entry that must not be skipped			lowered = min(lowered, s),
 *												low = min(low, s)
 *
 * A scanner may skip an entry
 *	(a)	that is permanently dead: its inserter aborted, or its deleter
 *		committed or is the scanner's own transaction;
 *	(b)	that another transaction has inserted or deleted, not merely locked,
 *		if that transaction is still in progress when the scanner looks.  The
 *		statement's snapshot does not matter, because it may be older than S1.
 * It raises `low` no further than the first entry that is neither.
 *
 * A transaction that makes a row claimable by its end lowers the cursor (T4)
 * after that end has become visible (T3): at its commit for the rows that it
 * inserted, and at the abort of T or of a subtransaction for the rows that it
 * deleted.  A scanner sees no difference between the two: s is not claimable
 * before T3, and is claimable from T3 on.
 *
 * Suppose that a scanner skips s because T is in progress, or because s is not
 * in the index yet.  Then it looked before T3, and therefore S1 was before T4.
 * S1 and T4 each hold the lock of the queue's entry in share mode, and S3 holds
 * it in exclusive mode.  If T4 comes before S3, then S3 raises no higher than
 * the lowest number to which the entry was lowered since S1.
 * If T4 comes after S3, then T4 lowers.  Either way low <= s once T4 is done.
 * That remains so until a scanner whose S1 is after T4, and which sees s as T
 * left it, skips s for a new reason.  Between T3 and T4, which is as long as
 * the transaction's callbacks take, a claim may miss s.  After T4, T wakes the
 * sessions that wait for work.
 *
 * A claim that continues where one pass has ended does S1 again for the next
 * pass.  If `low` is now below what the claim has already skipped, then it was
 * lowered in between, and the claim raises no more: see tq_cursor_read().  If a
 * T4 that runs beside that S1 has not lowered `low` yet, S3 finds it in `lowered`.
 *
 * For a deletion, T1 comes before T2.  Otherwise an error between them would
 * abort T without a record of the row, which other scanners may have skipped
 * by then.  An insertion may be recorded after T2, as by a trigger, but before
 * T3, because an error between them leaves only a dead row.  T's own scanner
 * skips rows that T has deleted; T has recorded them before S3, so that T4
 * follows if T aborts.  A row that T has inserted itself may be below `low`,
 * so tq_cursor_read() gives T the lower of the two.
 *
 * How far the entry was lowered since S1: time is divided into intervals, which
 * S3 ends.  `lowered` is the minimum of the present one, `generation` the number
 * of those before it, and their minimums are kept over blocks of intervals
 * (Recent), so that an entry has a fixed size however many there are.  S1 notes
 * the generation; S3 ends the interval and takes the minimum of all since that
 * one.  No interval ends while a T4 is under way, because that needs exclusive
 * mode, so every T4 after S1 is in one of these.  So may be some before S1, and
 * then the cursor is raised less than it could be.  Where that would show, as the
 * queue is nearly empty (NEAR), the scanner ends the interval at S1 as well.
 *
 * Sessions that create therefore never wait for one another here, and where
 * numbers rise they write no more than the word of the lock.  As a raise
 * can be left out, a scanner takes exclusive mode only if the lock is free, and waits
 * for it when it has left out RAISES_LEFT_OUT.  With T4 in exclusive mode (0.25 us
 * on one core, and four cache lines), one in four commits of 64 cores that create
 * in one queue would find the lock taken, and sleep, by a simulation (test/bench/cores).
 *
 * A prepared transaction ends in another session, perhaps after a crash, where
 * no callback of tq sees it.  Where prepared transactions are possible, the
 * cursor is therefore strict: (b) does not apply, and T lowers the cursors for
 * all that it has recorded before it is prepared.  At that time only T's own
 * scanner has skipped the rows that T deleted, by (a); a scanner that did not
 * find s in the index yet is covered by the argument above.
 *
 * A queue may lose its entry to another queue, or when a transaction that
 * called tq_cursor_track_all() ends.  Its next entry starts from the beginning
 * under another identity, and a scanner raises only the entry that it has
 * read.  The same holds after a crash or a promotion: shared memory starts
 * empty, and a standby never raises.
 *
 * Locks: those of lru_set.c; `low` and `lowered` are changed in share mode, and
 * everything else in exclusive mode.  The number of identities that were given
 * out is atomic.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "storage/shmem.h"

#include "shmem.h"

#define SET_SIZE 4    /* entries in which a queue can be */
#define LEVELS 6      /* minimums over the last 1, 4, 16, … 1024 intervals */
#define LEVEL_SHIFT 2 /* each over four times as many as the one before */
#define TRACKED_MAX 64 /* beyond that, tq_cursor_track_all() */

#define NEAR 1024         /* a claim may come as far as what was lowered to */
#define RAISES_LEFT_OUT 8 /* one after the other, by a session */

#define PRIORITIES (TQ_PRIORITY_HIGHEST + 1) /* 0 is not used */

/*
 * The lowest seq in a block of intervals: the block that is being filled, and the
 * one before it.
 */
typedef struct Recent
{
	int64 filling;
	int64 before;
} Recent;

/* The cursor of one queue. */
typedef struct ClaimCursorEntry
{
	TqLruEntry head;
	uint64 identity;
	uint64 generation[PRIORITIES];    /* intervals that have ended */
	pg_atomic_uint64 low[PRIORITIES]; /* this and the next: int64 */
	pg_atomic_uint64 lowered[PRIORITIES];
	Recent recent[PRIORITIES][LEVELS];
} ClaimCursorEntry;

/* The number of identities that were given out so far; no lock. */
static pg_atomic_uint64 *identities = NULL; /* NULL: no shared memory */

static TqLruSets cursors = {.nentries = SET_SIZE,
							.entry_size = sizeof(ClaimCursorEntry)};

/* What this transaction has recorded for a queue and priority. */
typedef struct ClaimCursorNote
{
	Oid pending;
	int32 queue;
	int priority;
	int64 made; /* lowest seq; TQ_CURSOR_END: none */
	int64 taken;
	int64 made_count;
	int64 taken_count;
	int64 held_count;          /* locked, and not deleted since */
	SubTransactionId taken_by; /* the last subtransaction that deleted a row */
} ClaimCursorNote;

#define MADE 0x01
#define TAKEN 0x02

static ClaimCursorNote notes[TRACKED_MAX];
static int tracked_count = 0;
static bool has_tracked = false;   /* anything, in either way */
static bool has_claimable = false; /* by a commit, not only by an abort */

/* The last subtransaction that called tq_cursor_track_all(); 0: none. */
static SubTransactionId all_tracked_by = InvalidSubTransactionId;

/*
 * Start of the server.
 */

static Size
claim_cursor_size(void)
{
	cursors.nsets = Max(tq_queue_slots / SET_SIZE, 1);
	return add_size(sizeof(pg_atomic_uint64), tq_lru_size(&cursors));
}

static void
claim_cursor_startup(void *memory, bool is_new, LWLockPadded *locks)
{
	identities = memory;
	if (is_new)
		pg_atomic_init_u64(identities, 0);
	tq_lru_attach(&cursors, identities + 1, locks);
}

const TqShmemPart tq_cursor_shmem = {.name = "tq cursor",
									 .tranche = "TqCursor",
									 .locks = TQ_LRU_LOCKS,
									 .size = claim_cursor_size,
									 .startup = claim_cursor_startup};

/*
 * Entries.
 */

#define KEY_OF(pending, queue) tq_lru_key(&cursors, pending, queue, 0, 0)

/* Makes the entry of a queue that has none, under an exclusive lock. */
static ClaimCursorEntry *
make_entry(const TqLruKey *key)
{
	ClaimCursorEntry *entry = tq_lru_make(&cursors, key);

	entry->identity = pg_atomic_add_fetch_u64(identities, 1);
	for (int p = 0; p < PRIORITIES; p++)
	{
		pg_atomic_init_u64(&entry->low[p], (uint64) TQ_CURSOR_BEGIN);
		pg_atomic_init_u64(&entry->lowered[p], (uint64) TQ_CURSOR_END);
		for (int i = 0; i < LEVELS; i++)
			entry->recent[p][i] = (Recent){TQ_CURSOR_END, TQ_CURSOR_END};
	}
	return entry;
}

#define low_of(entry, priority)                                               \
	((int64) pg_atomic_read_u64(&(entry)->low[priority]))
#define lowered_of(entry, priority)                                           \
	((int64) pg_atomic_read_u64(&(entry)->lowered[priority]))

/* Returns how many intervals make up a block of this level. */
static uint64
block_size(int level)
{
	return UINT64CONST(1) << (level * LEVEL_SHIFT);
}

/*
 * Ends an interval, if anything was lowered in it, and adds it to the minimums of
 * all levels, under an exclusive lock.
 */
static void
end_interval(ClaimCursorEntry *entry, int priority)
{
	int64 seq = lowered_of(entry, priority);
	uint64 number = entry->generation[priority];

	if (seq == TQ_CURSOR_END)
		return;
	entry->generation[priority]++;
	pg_atomic_write_u64(&entry->lowered[priority], (uint64) TQ_CURSOR_END);

	for (int i = 0; i < LEVELS; i++)
	{
		Recent *recent = &entry->recent[priority][i];

		if (number % block_size(i) == 0)
		{
			recent->before = recent->filling;
			recent->filling = TQ_CURSOR_END;
		}
		recent->filling = Min(recent->filling, seq);
	}
}

/*
 * Returns the lowest seq to which the entry was lowered in the intervals from that
 * generation on, which have ended, or a lower number: the block that is being
 * filled and the one before it include the last block_size() intervals.
 */
static int64
lowest_since(const ClaimCursorEntry *entry, int priority, uint64 generation)
{
	uint64 number = entry->generation[priority] - generation;
	int level = 0;

	if (number == 0)
		return TQ_CURSOR_END;
	while (level < LEVELS && number > block_size(level))
		level++;
	if (level == LEVELS)
		return TQ_CURSOR_BEGIN;
	return Min(entry->recent[priority][level].filling,
			   entry->recent[priority][level].before);
}

/* Makes a number at most seq. */
static void
lower_number(pg_atomic_uint64 *number, int64 seq)
{
	uint64 before = pg_atomic_read_u64(number);

	while (seq < (int64) before &&
		   !pg_atomic_compare_exchange_u64(number, &before, (uint64) seq))
		;
}

/*
 * The end of a transaction.  Nothing here raises an error or allocates memory.
 */

/*
 * Returns the lowest seq in a note: of the inserted rows, if `what` has MADE,
 * and of the deleted rows, if it has TAKEN and subtransaction `since` or a
 * later one has deleted any.
 */
static int64
tracked_low(const ClaimCursorNote *note, int what, SubTransactionId since)
{
	int64 seq = TQ_CURSOR_END;

	if (what & MADE)
		seq = note->made;
	if ((what & TAKEN) && note->taken_by >= since)
		seq = Min(seq, note->taken);
	return seq;
}

static void
lower_tracked(int what, SubTransactionId since)
{
	for (int i = 0; i < tracked_count; i++)
	{
		int64 seq = tracked_low(&notes[i], what, since);

		if (seq < TQ_CURSOR_END)
		{
			TqLruKey key = KEY_OF(notes[i].pending, notes[i].queue);
			LWLock *lock = tq_lru_lock(&cursors, &key);
			ClaimCursorEntry *entry;

			/*
			 * Lower the cursor of a queue and priority (T4 of the banner).  If the
			 * queue has no entry, no scanner skips anything, and nothing is to be
			 * done.
			 */
			LWLockAcquire(lock, LW_SHARED);
			entry = tq_lru_find(&cursors, &key);
			if (entry != NULL)
			{
				lower_number(&entry->lowered[notes[i].priority], seq);
				lower_number(&entry->low[notes[i].priority], seq);
			}
			LWLockRelease(lock);
		}
	}
	/* Then all cursors of this database start from the beginning. */
	if (all_tracked_by >= since)
		tq_lru_free_database(&cursors);
}

static void
drop_tracked(void)
{
	tracked_count = 0;
	all_tracked_by = InvalidSubTransactionId;
	has_tracked = has_claimable = false;
}

/*
 * Lowers the cursors for the rows that have become claimable, and then wakes
 * waiters for them, so that a waiter that tries at once sees them.
 */
static void
lower_and_wake(int what, SubTransactionId since)
{
	lower_tracked(what, since);
	/*
	 * Wake waiters for the rows that have become claimable.  Rows
	 * that were only locked are among them whether the transaction commits or
	 * aborts.
	 */
	if (all_tracked_by >= since)
	{
		tq_wait_wake_all(MyDatabaseId);
		return;
	}
	for (int i = 0; i < tracked_count; i++)
	{
		int64 n = notes[i].held_count;

		if (tracked_low(&notes[i], what, since) < TQ_CURSOR_END)
			n += what == MADE ? notes[i].made_count : notes[i].taken_count;
		if (n > 0)
			tq_wait_wake(notes[i].queue, (int) Min(n, PG_INT32_MAX));
	}
}

static void
cursor_commits(void)
{
	if (has_claimable)
		lower_and_wake(MADE, TopSubTransactionId);
}

/*
 * Lowers the cursors for the rows that an aborted subtransaction and those
 * within it have deleted, because these are claimable again.  The notes stay,
 * because the whole transaction may abort too.  Those of inserted rows stay as
 * well, although the rows are dead now: at worst the cursor is lowered without
 * need.
 */
static void
cursor_aborts(SubTransactionId id)
{
	lower_and_wake(TAKEN, id);
}

static void
lower_before_prepare(void)
{
	lower_tracked(MADE | TAKEN, TopSubTransactionId);
}

const TqXactEnd tq_cursor_xact_end = {.has_work = &has_tracked,
									  .commit = cursor_commits,
									  .abort = cursor_aborts,
									  .reset = drop_tracked,
									  .before_prepare = lower_before_prepare};

/*
 * Recording what a transaction writes.
 */

/*
 * Makes this transaction, whether it commits or aborts, reset the cursors of
 * all queues of this database and wake all their waiters.  Used when there is
 * no room for another note, or when rows are written that are not seen one by
 * one.
 */
void
tq_cursor_track_all(void)
{
	SubTransactionId id = GetCurrentSubTransactionId();

	if (identities == NULL)
		return;
	all_tracked_by = Max(all_tracked_by, id);
	has_tracked = has_claimable = true;
}

static bool
claim_cursor_is_about(const ClaimCursorNote *note, Oid pending, int32 queue,
					  int priority)
{
	return note->queue == queue && note->priority == priority &&
		   note->pending == pending;
}

static ClaimCursorNote *
find_tracked(Oid pending, int32 queue, int priority)
{
	static int last = 0;

	if (last < tracked_count &&
		claim_cursor_is_about(&notes[last], pending, queue, priority))
		return &notes[last];
	for (last = 0; last < tracked_count; last++)
	{
		if (claim_cursor_is_about(&notes[last], pending, queue, priority))
			return &notes[last];
	}
	return NULL;
}

/*
 * Returns the note of a queue and priority, and makes it if there is none;
 * NULL if nothing is to be recorded.
 */
static ClaimCursorNote *
get_tracked(Oid pending, int32 queue, int priority)
{
	ClaimCursorNote *note;

	if (identities == NULL || priority < TQ_PRIORITY_LOWEST ||
		priority > TQ_PRIORITY_HIGHEST)
		return NULL;
	note = find_tracked(pending, queue, priority);
	if (note != NULL)
		return note;
	if (tracked_count == TRACKED_MAX)
	{
		tq_cursor_track_all();
		return NULL;
	}
	has_tracked = true;
	note = &notes[tracked_count++];
	*note = (ClaimCursorNote){.pending = pending,
							  .queue = queue,
							  .priority = priority,
							  .made = TQ_CURSOR_END,
							  .taken = TQ_CURSOR_END};
	return note;
}

/* The greatest seq of a note: TQ_CURSOR_END stands for no row. */
#define LAST_SEQ (TQ_CURSOR_END - 1)

/* Records that this transaction inserts a row. */
void
tq_cursor_track_insert(Oid pending, int32 queue, int priority, int64 seq)
{
	ClaimCursorNote *note = get_tracked(pending, queue, priority);

	if (note == NULL)
		return;
	note->made = Min(note->made, Min(seq, LAST_SEQ));
	note->made_count++;
	has_claimable = true;
}

/*
 * Records that this transaction deletes a row; to be called before the
 * deletion.
 */
void
tq_cursor_track_delete(Oid pending, int32 queue, int priority, int64 seq)
{
	ClaimCursorNote *note = get_tracked(pending, queue, priority);

	if (note == NULL)
		return;
	note->taken = Min(note->taken, Min(seq, LAST_SEQ));
	note->taken_by = Max(note->taken_by, GetCurrentSubTransactionId());
	note->taken_count++;
}

/* Records that this transaction deletes a row that it has locked. */
void
tq_cursor_track_delete_locked(Oid pending, int32 queue, int priority,
							  int64 seq)
{
	ClaimCursorNote *note = get_tracked(pending, queue, priority);

	tq_cursor_track_delete(pending, queue, priority, seq);
	if (note != NULL)
		note->held_count -= note->held_count > 0;
}

/*
 * Records that this transaction has locked a row.  A claim that finds the row
 * locked leaves it out and does not raise the cursor past it, so waiters are
 * woken when the lock is released.
 */
void
tq_cursor_track_lock(Oid pending, int32 queue, int priority)
{
	ClaimCursorNote *note = get_tracked(pending, queue, priority);

	if (note == NULL)
		return;
	note->held_count++;
	has_claimable = true;
}

/*
 * The scanner's side.
 */

/* Returns whether scanners must not skip rows of transactions in progress. */
bool
tq_cursor_is_strict(void)
{
	return max_prepared_xacts > 0;
}

/*
 * Lowers a scanner's copy of `low` so that the scanner sees the rows that its
 * own transaction has inserted.
 */
static void
lower_to_own(TqCursor *cursor)
{
	for (int i = 0; i < tracked_count; i++)
	{
		ClaimCursorNote *note = &notes[i];

		if (note->pending == cursor->pending && note->queue == cursor->queue &&
			note->made < cursor->low[note->priority])
			cursor->low[note->priority] = note->made;
	}
}

/*
 * Copies the entry of a queue.  Returns whether what was lowered in the present
 * interval is so near that a claim may come to it, and could not raise past it.
 */
static bool
copy_entry(ClaimCursorEntry *entry, TqCursor *cursor)
{
	bool is_near = false;

	cursor->identity = entry->identity;
	memcpy(cursor->generation, entry->generation, sizeof(entry->generation));
	for (int p = TQ_PRIORITY_LOWEST; p < PRIORITIES; p++)
	{
		uint64 lowered = (uint64) lowered_of(entry, p);

		cursor->low[p] = low_of(entry, p);
		is_near |= lowered != (uint64) TQ_CURSOR_END &&
				   lowered - (uint64) cursor->low[p] < NEAR;
	}
	return is_near;
}

/* Returns whether the entry of a queue is to be read exclusively. */
static bool
read_entry(const TqLruKey *key, TqCursor *cursor)
{
	LWLock *lock = tq_lru_lock(&cursors, key);
	ClaimCursorEntry *entry;
	bool is_wanted;

	LWLockAcquire(lock, LW_SHARED);
	entry = tq_lru_find(&cursors, key);
	is_wanted = entry == NULL || copy_entry(entry, cursor);
	LWLockRelease(lock);
	return is_wanted;
}

/*
 * Reads the entry of a queue, which is made if there is none, and ends its
 * intervals; or leaves that, if it was read and another session has the lock.
 */
static void
read_exclusively(const TqLruKey *key, TqCursor *cursor)
{
	LWLock *lock = tq_lru_lock(&cursors, key);
	ClaimCursorEntry *entry;

	if (cursor->identity == 0)
		LWLockAcquire(lock, LW_EXCLUSIVE);
	else if (!LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
		return;
	entry = tq_lru_find(&cursors, key);
	if (entry == NULL)
		entry = make_entry(key);
	for (int p = TQ_PRIORITY_LOWEST; p < PRIORITIES; p++)
		end_interval(entry, p);
	(void) copy_entry(entry, cursor);
	LWLockRelease(lock);
}

/*
 * Returns where to begin in that queue (S1 of the banner).  Must be called
 * before each pass, and each pass must begin with a new descent of the index.
 * If a pass continues where another has ended, and `low` is now less than what
 * has been skipped until then, the caller must not raise after it:
 * tq_cursor_raise() takes account of what was lowered since the generation
 * read here, but not of what was lowered before that and since the earlier
 * pass.
 */
void
tq_cursor_read(Oid pending, int32 queue, TqCursor *cursor)
{
	TqLruKey key;

	*cursor = (TqCursor){.pending = pending, .queue = queue};
	for (int p = 0; p < PRIORITIES; p++)
		cursor->low[p] = TQ_CURSOR_BEGIN;
	if (identities == NULL || RecoveryInProgress() || all_tracked_by != 0)
		return;
	key = KEY_OF(pending, queue);
	if (read_entry(&key, cursor))
		read_exclusively(&key, cursor);
	if (has_tracked)
		lower_to_own(cursor);
}

/* Returns whether the lock was taken exclusively: not always if it is busy. */
static bool
lock_to_raise(LWLock *lock)
{
	static int left_out = 0;

	if (!LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
	{
		if (left_out++ < RAISES_LEFT_OUT)
			return false;
		LWLockAcquire(lock, LW_EXCLUSIVE);
	}
	left_out = 0;
	return true;
}

/*
 * Raises the cursor to low (S3 of the banner).  The pass that followed this
 * tq_cursor_read() has found that all entries of that priority with seq < low
 * may be skipped.
 */
void
tq_cursor_raise(const TqCursor *cursor, int priority, int64 low)
{
	TqLruKey key;
	LWLock *lock;
	ClaimCursorEntry *entry;

	if (cursor->identity == 0 || low <= cursor->low[priority])
		return;
	key = KEY_OF(cursor->pending, cursor->queue);
	lock = tq_lru_lock(&cursors, &key);
	if (!lock_to_raise(lock))
		return;
	entry = tq_lru_find(&cursors, &key);
	if (entry != NULL && entry->identity == cursor->identity)
	{
		end_interval(entry, priority);
		low = Min(low,
				  lowest_since(entry, priority, cursor->generation[priority]));
		if (low > low_of(entry, priority))
			pg_atomic_write_u64(&entry->low[priority], (uint64) low);
	}
	LWLockRelease(lock);
}
