/*
 * cursor.c
 *	  The claim cursor: how far claims have got in each queue, as a hint.
 *
 * Room 1.  Decides when the hint may go up and when it must come down.  What
 * is in the rows, and which index entries a claim may pass over, is for the
 * stores.  Without shared_preload_libraries, and on a standby, there is no
 * hint: every claim looks at all.
 *
 * The protocol, and why no row is lost
 * ------------------------------------
 * Shared memory holds, for a queue of tq.pending, a number for each priority,
 * `low`: index entries with seq < low need not be looked at.  The tables are
 * the truth.  Too low a number costs time; too high a one loses a run, so it
 * must never last.
 *
 *	scanner									writer, transaction T
 *	S1	tq_cursor_read(): low, generation	T1	tq_cursor_note_made(), _taken()
 *	S2	descend the index; look at the		T2	insert or delete the row s
 *		entries from low on					T3	the end of T becomes visible
 *	S3	tq_cursor_raise() up to the first	T4	lower to s: generation + 1,
 *		entry that may not be passed over		low = min(low, s)
 *
 * A scanner may pass over an entry
 *	(a)	that is dead for good: its inserter aborted, or its deleter committed
 *		or is the scanner's own transaction;
 *	(b)	that is running: inserted or deleted, not merely locked, by another
 *		transaction that is in progress at the look.  Not a matter of the
 *		statement's snapshot, which may be older than S1.
 * It stops raising at the first entry that is neither.
 *
 * Who makes a row claimable by the end of its transaction lowers (T4) after
 * that end (T3): at commit for what was inserted, at the abort of T or of a
 * subtransaction for what was deleted.  Rows that T inserts and those that a
 * T which aborts had deleted are the same to a scanner: s is not to be had
 * before T3, and is from T3 on.
 *
 * Let a scanner pass over s because T is in progress, or since s is not in
 * the index yet.  Then its look was before T3, and so S1 was before T4.  S1,
 * S3 and T4 hold the entry's lock.  Either T4 comes before S3: S3 sees that
 * the generation has changed, and raises no higher than to the lowest that
 * was told since S1.  Or T4 comes after S3, and lowers.  Both ways low <= s
 * once T4 is done, until a scanner that began after it, and sees s as T left
 * it, passes over s for a new reason.  Between T3 and T4 a claim may miss s,
 * for as long as the callbacks of a transaction take; whoever waits for work
 * is woken after T4.
 *
 * A claim that goes on from where one pass has ended reads again, for the
 * next.  If `low` is now below what it has passed over, that was told in
 * between, and it raises no more: see tq_cursor_read().
 *
 * T1 comes before T2: else an error between them would abort T with no note
 * of what others have passed over by then.  T's own scanner passes over what
 * T has deleted; the note is there before S3, so T4 follows.  What T has
 * inserted itself may be below `low`: tq_cursor_read() gives T the lesser of
 * the two.
 *
 * How much has been told since S1 is kept in sums (Recent), so that the
 * memory of an entry is short however many commits there are: they go back a
 * little too far, and give a number that is a little too low.
 *
 * The end of a prepared transaction is in another session, perhaps after a
 * crash, and no callback of ours sees it.  So where there can be any, the
 * cursor is strict: (b) does not hold, and T lowers for all that it has noted
 * before it is prepared (its own scanner is the only one that has passed over
 * these rows, as (a); what was not in the index yet is covered as above).
 *
 * A queue may lose its entry to another queue, or to tq_cursor_note_all() of
 * some transaction.  The next entry for it begins at the beginning, under
 * another identity, and a scanner raises only the entry that it has read.  So
 * it goes after a crash or a promotion: shared memory begins empty, and a
 * standby never raises.
 */
#include "cursor.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "wait.h"

#define BUCKET_SIZE 4 /* entries in which a queue may be */
#define LOCKS 64      /* a bucket has one of these */
#define LEVELS 6      /* sums of the last 1, 4, 16, … 1024 lowers */
#define LEVEL_SHIFT 2 /* each of four times as many as the one before */
#define NOTES_MAX 64  /* then a transaction notes everything */

#define PRIORITIES (TQ_PRIORITY_HIGHEST + 1) /* 0 is not used */

/* Lowers by blocks of as many: the lowest of this block, and of the last. */
typedef struct Recent
{
	int64 filling;
	int64 before;
} Recent;

typedef struct Key
{
	Oid database; /* InvalidOid: the entry is free */
	Oid pending;
	int32 queue;
} Key;

/*
 * What is known of one queue.  Fields without a remark: changed under the
 * bucket's lock, exclusive; read under it, shared.
 */
typedef struct Entry
{
	Key key;
	pg_atomic_uint32
		used; /* the bucket's clock, then; under the lock, shared */
	uint64 identity;
	uint64 generation[PRIORITIES]; /* how often it was lowered */
	int64 low[PRIORITIES];
	Recent recent[PRIORITIES][LEVELS];
} Entry;

typedef struct Bucket
{
	pg_atomic_uint32 clock; /* of uses; under the lock, shared */
	Entry entries[BUCKET_SIZE];
} Bucket;

typedef struct Shared
{
	LWLockPadded *locks;         /* fixed at startup */
	int bucket_count;            /* fixed at startup */
	pg_atomic_uint64 identities; /* given out so far; no lock */
	Bucket buckets[FLEXIBLE_ARRAY_MEMBER];
} Shared;

static Shared *shared = NULL;

/* What the present transaction has to say of a queue and priority. */
typedef struct Note
{
	Oid pending;
	int32 queue;
	int priority;
	int64 made; /* lowest seq; TQ_CURSOR_END: none */
	int64 taken;
	int64 made_count;
	int64 taken_count;
	int64 held_count;          /* locked, and not taken since */
	SubTransactionId taken_by; /* the last that took one */
} Note;

#define MADE 0x01
#define TAKEN 0x02

static Note notes[NOTES_MAX];
static int note_count = 0;

/* The last subtransaction that had no room for a note; 0: there was room. */
static SubTransactionId all_noted_by = InvalidSubTransactionId;

static shmem_request_hook_type next_shmem_request_hook = NULL;
static shmem_startup_hook_type next_shmem_startup_hook = NULL;

/*
 * Start of the server.
 */

static int
bucket_count(void)
{
	return Max(tq_queue_slots / BUCKET_SIZE, 1);
}

static Size
shared_size(void)
{
	return add_size(offsetof(Shared, buckets),
					mul_size(bucket_count(), sizeof(Bucket)));
}

static void
request(void)
{
	if (next_shmem_request_hook)
		next_shmem_request_hook();
	RequestAddinShmemSpace(shared_size());
	RequestNamedLWLockTranche("TqCursor", LOCKS);
}

static void
init_shared(void)
{
	memset(shared, 0, shared_size());
	shared->locks = GetNamedLWLockTranche("TqCursor");
	shared->bucket_count = bucket_count();
	pg_atomic_init_u64(&shared->identities, 0);
	for (int i = 0; i < shared->bucket_count; i++)
	{
		pg_atomic_init_u32(&shared->buckets[i].clock, 0);
		for (int j = 0; j < BUCKET_SIZE; j++)
			pg_atomic_init_u32(&shared->buckets[i].entries[j].used, 0);
	}
}

static void
startup(void)
{
	bool found;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("tq cursor", shared_size(), &found);
	if (!found)
		init_shared();
	LWLockRelease(AddinShmemInitLock);
}

/* Ask for the shared memory; from tq_shmem_init() only. */
void
tq_cursor_init(void)
{
	next_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request;
	next_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup;
}

/*
 * Entries.
 */

static Key
key_of(Oid pending, int32 queue)
{
	return (Key){MyDatabaseId, pending, queue};
}

static bool
is_of(const Entry *entry, const Key *key)
{
	return entry->key.queue == key->queue &&
		   entry->key.pending == key->pending &&
		   entry->key.database == key->database;
}

static uint32
bucket_of(const Key *key)
{
	uint32 hash = hash_combine(murmurhash32(key->database),
							   murmurhash32(key->pending));

	return hash_combine(hash, murmurhash32((uint32) key->queue)) %
		   shared->bucket_count;
}

static LWLock *
lock_of(uint32 bucket)
{
	return &shared->locks[bucket % LOCKS].lock;
}

/* The entry of a queue, or NULL; the bucket is locked. */
static Entry *
find_entry(uint32 bucket, const Key *key)
{
	Entry *entries = shared->buckets[bucket].entries;

	for (int i = 0; i < BUCKET_SIZE; i++)
	{
		if (is_of(&entries[i], key))
			return &entries[i];
	}
	return NULL;
}

/* Note a use, unless the last use of this bucket was of this entry. */
static void
touch(Bucket *bucket, Entry *entry)
{
	if (pg_atomic_read_u32(&entry->used) != pg_atomic_read_u32(&bucket->clock))
		pg_atomic_write_u32(&entry->used,
							pg_atomic_add_fetch_u32(&bucket->clock, 1));
}

/* A free entry, or else the one that has not been used for longest. */
static Entry *
choose_entry(Bucket *bucket)
{
	uint32 now = pg_atomic_read_u32(&bucket->clock);
	Entry *oldest = NULL;
	uint32 oldest_age = 0;

	for (int i = 0; i < BUCKET_SIZE; i++)
	{
		Entry *entry = &bucket->entries[i];
		uint32 age = now - pg_atomic_read_u32(&entry->used);

		if (entry->key.database == InvalidOid)
			return entry;
		if (oldest == NULL || age > oldest_age)
		{
			oldest = entry;
			oldest_age = age;
		}
	}
	return oldest;
}

/* An entry for a queue that has none; the bucket is locked exclusively. */
static Entry *
make_entry(Bucket *bucket, const Key *key)
{
	Entry *entry = choose_entry(bucket);

	entry->key = *key;
	entry->identity = pg_atomic_add_fetch_u64(&shared->identities, 1);
	for (int p = 0; p < PRIORITIES; p++)
	{
		entry->generation[p] = 0;
		entry->low[p] = TQ_CURSOR_BEGIN;
		for (int i = 0; i < LEVELS; i++)
			entry->recent[p][i] = (Recent){TQ_CURSOR_END, TQ_CURSOR_END};
	}
	return entry;
}

/* How many lowers a block of this level has. */
static uint64
block_size(int level)
{
	return UINT64CONST(1) << (level * LEVEL_SHIFT);
}

/* One more lower, in the sums of all levels. */
static void
sum_up(Entry *entry, int priority, int64 seq)
{
	uint64 number = entry->generation[priority]++;

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
 * The lowest that was told since that generation, or something lower: the
 * block that is being filled and the one before have the last block_size().
 */
static int64
lowest_since(const Entry *entry, int priority, uint64 generation)
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

/* T4 of the banner.  Where there is no entry, nothing is passed over. */
static void
lower(const Note *note, int64 seq)
{
	Key key = key_of(note->pending, note->queue);
	uint32 bucket = bucket_of(&key);
	Entry *entry;

	LWLockAcquire(lock_of(bucket), LW_EXCLUSIVE);
	entry = find_entry(bucket, &key);
	if (entry != NULL)
	{
		sum_up(entry, note->priority, seq);
		if (seq < entry->low[note->priority])
			entry->low[note->priority] = seq;
	}
	LWLockRelease(lock_of(bucket));
}

/* Lower everything of this database: its entries are free again. */
static void
forget_database(void)
{
	for (int i = 0; i < shared->bucket_count; i++)
	{
		LWLockAcquire(lock_of(i), LW_EXCLUSIVE);
		for (int j = 0; j < BUCKET_SIZE; j++)
		{
			Key *key = &shared->buckets[i].entries[j].key;

			if (key->database == MyDatabaseId)
				key->database = InvalidOid;
		}
		LWLockRelease(lock_of(i));
	}
}

/*
 * The end of a transaction.  Nothing here raises an error or allocates.
 */

/* The lowest of what the note has of `what`, taken by that or later ones. */
static int64
noted_low(const Note *note, int what, SubTransactionId since)
{
	int64 seq = TQ_CURSOR_END;

	if (what & MADE)
		seq = note->made;
	if ((what & TAKEN) && note->taken_by >= since)
		seq = Min(seq, note->taken);
	return seq;
}

static void
lower_noted(int what, SubTransactionId since)
{
	for (int i = 0; i < note_count; i++)
	{
		int64 seq = noted_low(&notes[i], what, since);

		if (seq < TQ_CURSOR_END)
			lower(&notes[i], seq);
	}
	if (all_noted_by >= since)
		forget_database();
}

/*
 * As many waiters as there are rows that can be claimed now; those that were
 * only locked are among them, whichever way the transaction ends.
 */
static void
wake_noted(int what, SubTransactionId since)
{
	if (all_noted_by >= since)
	{
		tq_wait_wake_all();
		return;
	}
	for (int i = 0; i < note_count; i++)
	{
		int64 n = notes[i].held_count;

		if (noted_low(&notes[i], what, since) < TQ_CURSOR_END)
			n += what == MADE ? notes[i].made_count : notes[i].taken_count;
		if (n > 0)
			tq_wait_wake(notes[i].queue, (int) Min(n, PG_INT32_MAX));
	}
}

static void
drop_notes(void)
{
	note_count = 0;
	all_noted_by = InvalidSubTransactionId;
}

static void
transaction_ends(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			lower_noted(MADE, TopSubTransactionId);
			wake_noted(MADE, TopSubTransactionId);
			break;
		case XACT_EVENT_ABORT:
			lower_noted(TAKEN, TopSubTransactionId);
			wake_noted(TAKEN, TopSubTransactionId);
			break;
		case XACT_EVENT_PRE_PREPARE:
			lower_noted(MADE | TAKEN, TopSubTransactionId);
			return;
		case XACT_EVENT_PREPARE:
			break;
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
			return;
	}
	drop_notes();
}

/*
 * The rows that this subtransaction and those within it took are claimable
 * again.  The notes stay, for the whole may abort as well; so do those of
 * rows made, which are dead now: at worst the cursor is lowered in vain.
 */
static void
subtransaction_ends(SubXactEvent event, SubTransactionId id,
					SubTransactionId parent, void *arg)
{
	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	lower_noted(TAKEN, id);
	wake_noted(TAKEN, id);
}

/* The callback lists keep duplicates for ever: once per process. */
static void
watch_transactions(void)
{
	static bool watching = false;

	if (watching)
		return;
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
	watching = true;
}

/*
 * What a transaction notes.
 */

/*
 * From now on until its end this transaction tells all queues of this
 * database, whichever way it ends: there is no room for a note, or rows come
 * and go that are not seen one by one.
 */
void
tq_cursor_note_all(void)
{
	SubTransactionId id = GetCurrentSubTransactionId();

	if (shared == NULL)
		return;
	watch_transactions();
	all_noted_by = Max(all_noted_by, id);
}

static Note *
find_note(Oid pending, int32 queue, int priority)
{
	static int last = 0;

	if (last < note_count && notes[last].queue == queue &&
		notes[last].priority == priority && notes[last].pending == pending)
		return &notes[last];
	for (last = 0; last < note_count; last++)
	{
		if (notes[last].queue == queue && notes[last].priority == priority &&
			notes[last].pending == pending)
			return &notes[last];
	}
	return NULL;
}

/* The note of a queue and priority; NULL when there is nothing to be noted. */
static Note *
get_note(Oid pending, int32 queue, int priority)
{
	Note *note;

	if (shared == NULL || priority < TQ_PRIORITY_LOWEST ||
		priority > TQ_PRIORITY_HIGHEST)
		return NULL;
	note = find_note(pending, queue, priority);
	if (note != NULL)
		return note;
	if (note_count == NOTES_MAX)
	{
		tq_cursor_note_all();
		return NULL;
	}
	watch_transactions();
	note = &notes[note_count++];
	*note = (Note){.pending = pending,
				   .queue = queue,
				   .priority = priority,
				   .made = TQ_CURSOR_END,
				   .taken = TQ_CURSOR_END};
	return note;
}

/* A number that is lower than the end, for the end is above all. */
static int64
below_end(int64 seq)
{
	return Min(seq, TQ_CURSOR_END - 1);
}

/* This transaction inserts a row. */
void
tq_cursor_note_made(Oid pending, int32 queue, int priority, int64 seq)
{
	Note *note = get_note(pending, queue, priority);

	if (note == NULL)
		return;
	note->made = Min(note->made, below_end(seq));
	note->made_count++;
}

/* This transaction is going to delete a row; to be called before it does. */
void
tq_cursor_note_taken(Oid pending, int32 queue, int priority, int64 seq)
{
	Note *note = get_note(pending, queue, priority);

	if (note == NULL)
		return;
	note->taken = Min(note->taken, below_end(seq));
	note->taken_by = Max(note->taken_by, GetCurrentSubTransactionId());
	note->taken_count++;
	note->held_count -= note->held_count > 0;
}

/*
 * This transaction has locked a row.  Claims that meet it pass over it, and do
 * not raise; who waits for work is told when the lock is gone.
 */
void
tq_cursor_note_held(Oid pending, int32 queue, int priority)
{
	Note *note = get_note(pending, queue, priority);

	if (note != NULL)
		note->held_count++;
}

/*
 * The scanner's side.
 */

/* May rows of other transactions in progress not be passed over? */
bool
tq_cursor_is_strict(void)
{
	return max_prepared_xacts > 0;
}

/* What this transaction has inserted itself, it must see. */
static void
see_own(TqCursor *cursor)
{
	for (int i = 0; i < note_count; i++)
	{
		Note *note = &notes[i];

		if (note->pending == cursor->pending && note->queue == cursor->queue &&
			note->made < cursor->low[note->priority])
			cursor->low[note->priority] = note->made;
	}
}

static void
copy_entry(const Entry *entry, TqCursor *cursor)
{
	cursor->identity = entry->identity;
	memcpy(cursor->generation, entry->generation, sizeof(entry->generation));
	memcpy(cursor->low, entry->low, sizeof(entry->low));
}

/* Read the entry of a queue, if there is one. */
static bool
read_entry(uint32 bucket, const Key *key, TqCursor *cursor)
{
	Entry *entry;

	LWLockAcquire(lock_of(bucket), LW_SHARED);
	entry = find_entry(bucket, key);
	if (entry != NULL)
	{
		touch(&shared->buckets[bucket], entry);
		copy_entry(entry, cursor);
	}
	LWLockRelease(lock_of(bucket));
	return entry != NULL;
}

/* The same, but make one if there is none. */
static void
read_new_entry(uint32 bucket, const Key *key, TqCursor *cursor)
{
	Entry *entry;

	LWLockAcquire(lock_of(bucket), LW_EXCLUSIVE);
	entry = find_entry(bucket, key);
	if (entry == NULL)
		entry = make_entry(&shared->buckets[bucket], key);
	touch(&shared->buckets[bucket], entry);
	copy_entry(entry, cursor);
	LWLockRelease(lock_of(bucket));
}

/*
 * S1 of the banner: where to begin in that queue.  To be called before each
 * pass, which must begin with a new descent of the index.  If the pass goes on
 * where another has ended, and `low` is less than what was passed over by
 * then, the caller must not raise after it: this generation is too new for
 * what was seen before.
 */
void
tq_cursor_read(Oid pending, int32 queue, TqCursor *cursor)
{
	Key key = key_of(pending, queue);
	uint32 bucket;

	*cursor = (TqCursor){.pending = pending, .queue = queue};
	for (int p = 0; p < PRIORITIES; p++)
		cursor->low[p] = TQ_CURSOR_BEGIN;
	if (shared == NULL || RecoveryInProgress() || all_noted_by != 0)
		return;
	bucket = bucket_of(&key);
	if (!read_entry(bucket, &key, cursor))
		read_new_entry(bucket, &key, cursor);
	see_own(cursor);
}

/*
 * S3 of the banner: all entries of that priority with seq < low may be passed
 * over, as the pass after this tq_cursor_read() has found.
 */
void
tq_cursor_raise(const TqCursor *cursor, int priority, int64 low)
{
	Key key = key_of(cursor->pending, cursor->queue);
	uint32 bucket;
	Entry *entry;

	if (cursor->identity == 0 || low <= cursor->low[priority])
		return;
	bucket = bucket_of(&key);
	LWLockAcquire(lock_of(bucket), LW_EXCLUSIVE);
	entry = find_entry(bucket, &key);
	if (entry != NULL && entry->identity == cursor->identity)
	{
		low = Min(low,
				  lowest_since(entry, priority, cursor->generation[priority]));
		if (low > entry->low[priority])
			entry->low[priority] = low;
	}
	LWLockRelease(lock_of(bucket));
}
