/*
 * numbers.c
 *	  Numbers of tq_internal.id_seq that the sessions of a database share.
 *
 * A create takes one number or two, a claim and a report one each, and nextval()
 * takes 2,750 instructions for one: it opens the sequence, and locks its page, for
 * which all sessions wait.  So the sequence advances by a block of numbers
 * (INCREMENT BY), and the sessions of a database take them from here one by one:
 * an enqueue() takes 4 % fewer instructions.  The block is shared, because
 * numbers are also an order: of the runs in a queue, and of messages.  One that
 * is taken later is greater, whichever sessions take them, as nextval() has it.
 *
 * The sequence is the truth
 * -------------------------
 * A block consists of the value of nextval() and those up to the next one.
 * nextval() has written WAL before a number of its block is here, and so before
 * the commit of any transaction that uses it, which is flushed behind it; what is
 * not flushed is lost together.  A crash, a restart or a promotion empties this
 * memory, and the numbers that were left in it are not used: a gap, as nextval()
 * leaves one.  A dump has the first number of the newest block; the restored
 * sequence goes on behind that block.
 *
 * setval(), as by a restore, is not noticed here.  So the first number that a
 * session takes begins a new block, and what others have left of the old one,
 * less than a block, is all that they can take from before.  For the same reason
 * a database that has the oid of one that was dropped gets none of its numbers.
 * A call keeps the extension from being dropped (util/catalog.c); with another
 * one comes a sequence of another oid, which begins a block of its own.
 *
 * Why a number is taken once, and in order
 * ----------------------------------------
 *	taker									beginner, with the lock
 *	T1	n = next							B1	end = 0
 *	T2	e = end; none is left if n >= e		B2	next = first of the new block
 *	T3	if next is n still: next = n + 1	B3	end = end of the new block
 *
 * A taker that reads an `end` of B3 in T2 has n of the new block, or fails in T3,
 * because `next` was changed in B2.  One that has read the old `end` before B1
 * fails in T3 after B2, too, and before it takes a number of the old block, of
 * which none was taken by others.  Between B1 and B3 no number is left.
 *
 * Sessions that find none left draw a block each, and all but one of these are
 * not used.  A beginner has read `end` before it drew, and gives up if that has
 * changed: then its block may be lower than the one that is here.  If it has not
 * changed, nothing was drawn since that is here, so that the new block is higher,
 * or the sequence was set back.  No lock is held while a block is drawn, because
 * nextval() may wait for a transaction that has locked the sequence.
 *
 * Open numbers
 * ------------
 * The publisher derives the messages of most new tasks from their rows
 * (publisher.c), and finds these by their numbers.  So it has to know from which
 * number on there may be tasks that the snapshot of its next pass shows first.
 *
 *	creator									publisher
 *	O1	open = next, a bound				P1	n = next
 *	O2	take a number, which is not less	P2	read what is open
 *	O3	open = that number					P3	take a snapshot
 *	O4	the commit becomes visible
 *	O5	open = 0
 *
 * A task that the snapshot of P3 does not show, and a later one does, has O4 after
 * P3, so O5 as well.  If its O1 was before P2, then P2 has read a number that is
 * not greater than that of the task.  Otherwise O2 is after P1, and the number of
 * the task is not less than n, because numbers ascend.  Where they do not, because
 * a setval() came between O1 and O2, the creator does without.  There is a full
 * barrier between O1 and O2, and between P1 and P2.  test/model/creations.pml is
 * this for spin.
 *
 * A transaction opens one number at most, which stays open until the transaction
 * ends in whatever way.  A bound ends with the subtransaction in which O2 failed,
 * because no task has a number behind it.  A prepared one would end in another session, so where
 * these are possible none is opened.
 *
 * Locks: blocks->lock protects which database an entry is of, its sequence, and
 * B1 to B3.  A session reads the sequence of its own entry without the lock: only
 * a transaction that locks all other calls out can replace the sequence.  Nothing
 * else is taken meanwhile.  What is open, only its own process writes.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/twophase.h"
#include "catalog/pg_sequence.h"
#include "commands/sequence.h"
#include "storage/proc.h"
#include "utils/syscache.h"

#include "shmem.h"

#define DATABASES 128 /* in others each number is drawn from the sequence */

/* The block of a database. */
typedef struct NumberBlock
{
	Oid database; /* InvalidOid: free */
	Oid sequence;
	pg_atomic_uint64 next;
	pg_atomic_uint64 end;
} NumberBlock;

typedef struct NumberBlocks
{
	LWLock *lock;
	NumberBlock all[DATABASES];
} NumberBlocks;

/* What a process has open, in a cache line of its own. */
typedef union OpenNumber
{
	struct
	{
		Oid database;            /* set before the number */
		pg_atomic_uint64 number; /* 0: none; twice a number, and 1 if exact */
	} of;
	char line[PG_CACHE_LINE_SIZE];
} OpenNumber;

static NumberBlocks *blocks = NULL; /* NULL: no shared memory */
static OpenNumber *open_numbers = NULL;

static bool is_open = false;       /* has this transaction opened a number */
static bool has_no_memory = false; /* for a block, at the last draw */

/* That of this database, and the same once this session has begun a block. */
static NumberBlock *entry = NULL;
static NumberBlock *mine = NULL;

static Size
numbers_size(void)
{
	return add_size(MAXALIGN(sizeof(NumberBlocks)),
					mul_size(MaxBackends, sizeof(OpenNumber)));
}

static void
numbers_startup(void *memory, bool is_new, LWLockPadded *locks)
{
	blocks = memory;
	open_numbers = (OpenNumber *) ((char *) memory +
								   MAXALIGN(sizeof(NumberBlocks)));
	if (!is_new)
		return;
	for (int i = 0; i < MaxBackends; i++)
		pg_atomic_init_u64(&open_numbers[i].of.number, 0);
	blocks->lock = &locks[0].lock;
	for (int i = 0; i < DATABASES; i++)
	{
		pg_atomic_init_u64(&blocks->all[i].next, 0);
		pg_atomic_init_u64(&blocks->all[i].end, 0);
	}
}

const TqShmemPart tq_numbers_shmem = {.name = "tq numbers",
									  .tranche = "TqNumbers",
									  .locks = 1,
									  .size = numbers_size,
									  .startup = numbers_startup};

/* Whether this session takes its numbers from a block of a sequence. */
#define HAS_BLOCK(sequence_) (mine != NULL && mine->sequence == (sequence_))

/*
 * Takes the next number of the block of this sequence.  Returns false if none is
 * left, or this session has taken none yet.
 */
static bool
take_number(Oid sequence, int64 *number)
{
	uint64 next;

	if (!HAS_BLOCK(sequence))
		return false;
	next = pg_atomic_read_u64(&mine->next);
	do
	{
		pg_read_barrier();
		if (next >= pg_atomic_read_u64(&mine->end))
			return false;
	} while (!pg_atomic_compare_exchange_u64(&mine->next, &next, next + 1));
	*number = (int64) next;
	return true;
}

/* Returns the entry of a database, or a free one for InvalidOid; or NULL. */
static NumberBlock *
numbers_find(Oid database)
{
	for (int i = 0; i < DATABASES; i++)
	{
		if (blocks->all[i].database == database)
			return &blocks->all[i];
	}
	return NULL;
}

/* Frees the entries of databases that were dropped: no session is in them. */
static void
free_dropped(void)
{
	for (int i = 0; i < DATABASES; i++)
	{
		NumberBlock *block = &blocks->all[i];
		Oid database = block->database;

		if (SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database)))
			continue;
		LWLockAcquire(blocks->lock, LW_EXCLUSIVE);
		if (block->database == database)
			block->database = InvalidOid;
		LWLockRelease(blocks->lock);
	}
}

/* Returns the entry of this database; NULL if all are of others. */
static NumberBlock *
find_or_make(void)
{
	NumberBlock *block;

	LWLockAcquire(blocks->lock, LW_EXCLUSIVE);
	block = numbers_find(MyDatabaseId);
	if (block == NULL)
	{
		block = numbers_find(InvalidOid);
		if (block != NULL)
		{
			block->database = MyDatabaseId;
			block->sequence = InvalidOid;
		}
	}
	LWLockRelease(blocks->lock);
	return block;
}

/*
 * Returns the end of a block of this sequence, by which begin_block() sees
 * that another block was begun; 0: there is none.  The caller holds the lock.
 */
static uint64
end_of(NumberBlock *block, Oid sequence)
{
	return block->sequence == sequence ? pg_atomic_read_u64(&block->end) : 0;
}

/* Prepares to draw a block, and returns what begin_block() is to be given. */
static uint64
prepare_block(Oid sequence)
{
	uint64 end;

	if (entry == NULL && blocks != NULL)
	{
		entry = find_or_make();
		if (entry == NULL)
		{
			free_dropped();
			entry = find_or_make();
		}
	}
	if (entry == NULL)
		return 0;
	LWLockAcquire(blocks->lock, LW_SHARED);
	end = end_of(entry, sequence);
	LWLockRelease(blocks->lock);
	return end;
}

/*
 * Begins a block of n numbers, unless another session has begun one since
 * prepare_block().  Returns false if there is no memory for one.
 */
static bool
begin_block(Oid sequence, uint64 prepared, int64 first, int64 n)
{
	has_no_memory = entry == NULL;
	if (has_no_memory)
		return false;
	LWLockAcquire(blocks->lock, LW_EXCLUSIVE);
	if (end_of(entry, sequence) == prepared)
	{
		pg_atomic_write_u64(&entry->end, 0);
		pg_write_barrier();
		entry->sequence = sequence;
		pg_atomic_write_u64(&entry->next, (uint64) first);
		pg_write_barrier();
		pg_atomic_write_u64(&entry->end, (uint64) (first + n));
		mine = entry;
	}
	LWLockRelease(blocks->lock);
	return true;
}

/* Returns how many numbers there are from a value of a sequence to the next. */
static int64
sequence_step(Oid sequence)
{
	HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
	int64 step;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for sequence %u", sequence);
	step = ((Form_pg_sequence) GETSTRUCT(tuple))->seqincrement;
	ReleaseSysCache(tuple);
	return step;
}

/*
 * Returns the next number of a sequence, of a block that the sessions of this
 * database share.
 */
int64
tq_numbers_next(Oid sequence)
{
	int64 number;

	while (!take_number(sequence, &number))
	{
		uint64 prepared = prepare_block(sequence);
		int64 first = nextval_internal(sequence, false);

		if (!begin_block(sequence, prepared, first, sequence_step(sequence)))
			return first;
	}
	return number;
}

/* ---- open numbers ---- */

/* Closes the number of this transaction, which has ended. */
static void
close_number(void)
{
	is_open = false;
	pg_memory_barrier();
	pg_atomic_write_u64(&open_numbers[TqMyProcNumber()].of.number, 0);
}

/*
 * Closes what is still a bound when a part of the transaction fails: no number was
 * drawn behind it.  The transaction may stay open for long, and the mark of the
 * publisher would stay at the bound.
 */
static void
close_bound(SubTransactionId id)
{
	uint64 open = pg_atomic_read_u64(
		&open_numbers[TqMyProcNumber()].of.number);

	if (open != 0 && (open & 1) == 0)
		close_number();
}

const TqXactEnd tq_numbers_xact_end = {.has_work = &is_open,
									   .abort = close_bound,
									   .reset = close_number};

/*
 * Returns the next number of a sequence, and opens it if that is possible, and
 * this transaction has opened none.
 */
int64
tq_numbers_open(Oid sequence, bool *opened)
{
	OpenNumber *own;
	uint64 bound;
	int64 number;

	*opened = false;
	/* The first one begins a block, if there is memory for it. */
	if (!is_open && max_prepared_xacts == 0 && !HAS_BLOCK(sequence) &&
		!has_no_memory)
		(void) tq_numbers_next(sequence);
	if (is_open || max_prepared_xacts > 0 || !HAS_BLOCK(sequence))
		return tq_numbers_next(sequence);
	own = &open_numbers[TqMyProcNumber()];
	own->of.database = MyDatabaseId;
	pg_write_barrier();
	bound = pg_atomic_read_u64(&mine->next);
	is_open = true;
	pg_atomic_write_u64(&own->of.number, bound << 1);
	pg_memory_barrier();
	number = tq_numbers_next(sequence);
	*opened = (uint64) number >= bound;
	pg_atomic_write_u64(&own->of.number, (uint64) number << 1 | 1);
	return number;
}

/*
 * Reads which numbers of this database are open, before a snapshot is taken: all
 * from `from` on may be, and of the lower ones those in numbers[].  `next` is 0 if no
 * session has begun a block of that sequence since the server started.  Returns false
 * if none is open, and those that are opened later are drawn later: no session has
 * prepared to draw a block, or there is no shared memory for it.
 */
bool
tq_numbers_read_open(Oid sequence, TqOpenNumbers *result)
{
	NumberBlock *block;

	*result = (TqOpenNumbers){.next = 0};
	if (blocks == NULL)
		return false;
	LWLockAcquire(blocks->lock, LW_SHARED);
	block = numbers_find(MyDatabaseId);
	if (block != NULL && block->sequence == sequence)
		result->next = (int64) pg_atomic_read_u64(&block->next);
	LWLockRelease(blocks->lock);
	if (result->next == 0)
		return block != NULL;
	result->from = result->next;
	pg_memory_barrier();
	result->numbers = palloc(sizeof(int64) * MaxBackends);
	for (int i = 0; i < MaxBackends; i++)
	{
		uint64 open = pg_atomic_read_u64(&open_numbers[i].of.number);

		pg_read_barrier();
		if (open == 0 || open_numbers[i].of.database != MyDatabaseId)
			continue;
		if (open & 1)
			result->numbers[result->n++] = (int64) (open >> 1);
		else
			result->from = Min(result->from, (int64) (open >> 1));
	}
	return true;
}
