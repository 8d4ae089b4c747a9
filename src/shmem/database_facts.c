/*
 * database_facts.c
 *	  What a session needs to know of its database before its first call.
 *
 * Every session that writes has to know which exchanges are wanted, which
 * segment of the message log is written to, and whether the database is in use
 * (activation.c).  That is in five small tables, and a session that has just
 * begun would load all of them into its relcache for a few bits, which rarely
 * change.  So the first session that reads the tables stores here what they
 * say.
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
 * The number is one for all databases, because changes are rare.  A prepared
 * transaction sends the invalidation at its commit before any code of tq runs,
 * so that facts are neither stored nor used where there can be one.  Rows that
 * were written by other statements than those of tq, as by a restore, are
 * noticed when a session that has read the table itself, such as the
 * maintenance worker, processes a relcache invalidation for it
 * (subscription_table.c), and after KEEP_MS in any case.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "portability/instr_time.h"
#include "storage/lwlock.h"

#include "../util/util.h"
#include "shmem.h"

#define DATABASES 32
#define KEEP_MS 60000

typedef struct Entry
{
	Oid database;
	Oid extension; /* distinguishes it from one that was dropped */
	uint64 change;
	instr_time stored_at;
	TqFacts facts;
} Entry;

typedef struct Shared
{
	LWLock *lock; /* protects the entries */
	pg_atomic_uint64 change;
	int next; /* the entry that is replaced next */
	Entry entries[DATABASES];
} Shared;

static Shared *shared = NULL;

/* This transaction changes a table. */
static bool changes = false;

static Size
size(void)
{
	return sizeof(Shared);
}

static void
startup(void *memory, bool is_new, LWLockPadded *locks)
{
	shared = memory;
	if (!is_new)
		return;
	shared->lock = &locks->lock;
	pg_atomic_init_u64(&shared->change, 0);
}

const TqShmemPart tq_facts_shmem = {.name = "tq database facts",
									.tranche = "TqFacts",
									.locks = 1,
									.size = size,
									.startup = startup};

static bool
is_usable(void)
{
	return shared != NULL && !changes && max_prepared_xacts == 0;
}

/* Returns the entry of this database, or NULL.  The caller holds the lock. */
static Entry *
find_entry(void)
{
	for (int i = 0; i < DATABASES; i++)
	{
		if (shared->entries[i].database == MyDatabaseId)
			return &shared->entries[i];
	}
	return NULL;
}

static bool
is_recent(const Entry *entry)
{
	instr_time now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, entry->stored_at);
	return INSTR_TIME_GET_MILLISEC(now) < KEEP_MS;
}

/*
 * Returns whether the facts of this database and extension are known.  If not,
 * the caller takes a new snapshot, reads the tables, and stores the facts with
 * *change.
 */
bool
tq_facts_find(Oid extension, TqFacts *facts, uint64 *change)
{
	const Entry *entry;
	bool found;

	*change = 0;
	if (!is_usable())
		return false;
	*change = pg_atomic_read_u64(&shared->change);
	pg_memory_barrier();
	LWLockAcquire(shared->lock, LW_SHARED);
	entry = find_entry();
	found = entry != NULL && entry->extension == extension &&
			entry->change == *change && is_recent(entry);
	if (found)
		*facts = entry->facts;
	LWLockRelease(shared->lock);
	return found;
}

/* Stores the facts that the caller has read as tq_facts_find() says. */
void
tq_facts_store(Oid extension, const TqFacts *facts, uint64 change)
{
	Entry *entry;

	if (!is_usable())
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	entry = find_entry();
	if (entry == NULL)
	{
		entry = &shared->entries[shared->next];
		shared->next = (shared->next + 1) % DATABASES;
	}
	*entry = (Entry){.database = MyDatabaseId,
					 .extension = extension,
					 .change = change,
					 .facts = *facts};
	INSTR_TIME_SET_CURRENT(entry->stored_at);
	LWLockRelease(shared->lock);
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
