/*
 * counter_changes.c
 *	  By how much the current transaction changes counters.
 *
 * A transaction collects its changes here and applies them when it commits
 * (counter_commit.c).  What a subtransaction adds is behind what its parent has
 * added before, so that an abort cuts the list.  A change of a counter that the
 * same subtransaction has changed already is added to that, mostly: an index
 * remembers one change for each hash value, and it does no harm if a counter is
 * in the list twice.
 *
 * After DROP and CREATE EXTENSION in a transaction, the changes are about other
 * tables.  A mark then divides the list, and only what is behind the last mark
 * counts; an abort that removes the mark brings back what is before it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "shmem.h"

#define FIRST_ROOM 64
#define KEPT_ROOM 1024 /* a larger list is freed when the transaction ends */
#define INDEX_SIZE 256 /* a power of two */

static TqCountChange first_changes[FIRST_ROOM];
static TqCountChange *changes = first_changes;
static int nchanges = 0;
static int first = 0; /* behind the last mark */
static int room = FIRST_ROOM;
static Oid changes_of = InvalidOid; /* the extension */

TqCountChanged tq_count_changed = {0};

/* By hash, the last change of that hash; it may be of an earlier transaction. */
static int latest[INDEX_SIZE];

static void
keep_earliest(int64 *value, int64 by)
{
	if (*value == TQ_COUNT_NO_TIME || (by != TQ_COUNT_NO_TIME && by < *value))
		*value = by;
}

/* Changes the value of a counter by another value of it. */
void
tq_count_merge(TqCounted what, int counter, int64 *value, int64 by)
{
	if (what == TQ_COUNTED_QUEUE || counter < TQ_GROUP_SUMS)
		*value += by;
	else if (counter == TQ_GROUP_LAST_RESOLVED ||
			 counter == TQ_GROUP_UNDONE_RESOLVED)
		*value = Max(*value, by);
	else
		keep_earliest(value, by);
}

#define POSITION_OF(what, id, counter)                                        \
	(&latest[((uint32) (id) *31 + (uint32) (counter) *7 + (what)) %           \
			 INDEX_SIZE])

static bool
counter_changes_is_same(const TqCountChange *change, TqCounted what, int64 id,
						int counter, SubTransactionId subid)
{
	return change->id == id && change->counter == counter &&
		   change->what == what && change->subid == subid;
}

/* Doubles the room for changes. */
static void
grow(void)
{
	if (changes == first_changes)
	{
		changes = MemoryContextAlloc(TopMemoryContext,
									 sizeof(TqCountChange) * room * 2);
		memcpy(changes, first_changes, sizeof(first_changes));
	}
	else
		changes = repalloc_huge(changes, sizeof(TqCountChange) * room * 2);
	room *= 2;
}

/* Makes room for another change, so that the next one raises no error. */
void
tq_count_changes_make_room(void)
{
	if (nchanges == room)
		grow();
}

/* Changes a counter when this transaction commits. */
void
tq_count_change(Oid extension, TqCounted what, int64 id, int counter,
				int64 value)
{
	SubTransactionId subid = GetCurrentSubTransactionId();
	int *position = POSITION_OF(what, id, counter);
	int before = *position;

	if (changes_of != extension && nchanges > 0)
	{
		/* Put a mark behind the changes of another extension. */
		tq_count_changes_make_room();
		changes[nchanges++] =
			(TqCountChange){.id = changes_of,
							.value = first,
							.what = TQ_COUNTED_MARK,
							.subid = GetCurrentSubTransactionId(),
							.before = -1};
		first = nchanges;
	}
	changes_of = extension;
	tq_count_changed.any = true;
	if (before >= nchanges || before < first)
		before = -1;
	if (before >= 0 &&
		counter_changes_is_same(&changes[before], what, id, counter, subid))
	{
		tq_count_merge(what, counter, &changes[before].value, value);
		return;
	}
	if (nchanges == room)
		grow();
	if (what == TQ_COUNTED_QUEUE && counter >= TQ_QUEUE_RESERVED)
		tq_count_changed.reserved = true;
	if (what == TQ_COUNTED_GROUP && counter == TQ_GROUP_NEW)
		tq_count_changed.new_groups = true;
	*position = nchanges;
	changes[nchanges++] = (TqCountChange){.id = id,
										  .value = value,
										  .what = what,
										  .counter = counter,
										  .subid = subid,
										  .before = before};
}

/*
 * Changes a counter by that much when this transaction commits, unless the
 * server keeps no counters.
 */
void
tq_count(TqCounted what, int64 id, int counter, int64 by)
{
	if (id != 0 && tq_counted_queues > 0)
		tq_count_change(tq_locked_table, what, id, counter, by);
}

/*
 * Makes the gauges be counted again, because a statement that is not one of tq
 * changes rows.  For triggers, which may run outside of a call.
 */
void
tq_count_doubt(void)
{
	tq_catalog_lock();
	tq_count_change(tq_locked_table, TQ_COUNTED_QUEUE, 0, TQ_QUEUE_DOUBT, 1);
}

/* Returns the changes of this transaction so far, and their extension. */
const TqCountChange *
tq_count_changes(int *n, Oid *extension)
{
	*n = nchanges - first;
	*extension = changes_of;
	return changes + first;
}

/* Returns by how much this transaction changes a counter of a queue. */
int64
tq_count_changes_own(Oid extension, int32 queue, int counter)
{
	int64 sum = 0;

	for (int i = first; i < nchanges && changes_of == extension; i++)
	{
		if (changes[i].what == TQ_COUNTED_QUEUE && changes[i].id == queue &&
			changes[i].counter == counter)
			sum += changes[i].value;
	}
	return sum;
}

/*
 * Removes the changes of a subtransaction that is aborted.  Returns true at a
 * mark: there may be more, of another extension, in the list as it is then.
 */
bool
tq_count_changes_abort(SubTransactionId id)
{
	while (nchanges > 0 && changes[nchanges - 1].subid == id)
	{
		const TqCountChange *last = &changes[--nchanges];

		if (last->what == TQ_COUNTED_MARK)
		{
			changes_of = (Oid) last->id;
			first = (int) last->value;
			return true;
		}
		*POSITION_OF(last->what, last->id, last->counter) = last->before;
	}
	return false;
}

/* Adds the last change to the parent's change of that counter, if possible. */
static bool
merge_last(SubTransactionId parent)
{
	const TqCountChange *last = &changes[nchanges - 1];
	TqCountChange *before;

	if (last->before < 0)
		return false;
	before = &changes[last->before];
	if (!counter_changes_is_same(before, last->what, last->id, last->counter,
								 parent))
		return false;
	tq_count_merge(last->what, last->counter, &before->value, last->value);
	*POSITION_OF(last->what, last->id, last->counter) = last->before;
	nchanges--;
	return true;
}

/*
 * Gives the changes of a subtransaction that is committed to its parent.  A
 * loop of subtransactions that change the same counters leaves one change of
 * each.
 */
void
tq_count_changes_subcommit(SubTransactionId id, SubTransactionId parent)
{
	while (nchanges > 0 && changes[nchanges - 1].subid == id &&
		   merge_last(parent))
		;
	for (int i = nchanges - 1; i >= 0 && changes[i].subid == id; i--)
		changes[i].subid = parent;
}

/* Forgets the changes, when the transaction has ended. */
void
tq_count_changes_reset(void)
{
	nchanges = 0;
	first = 0;
	tq_count_changed = (TqCountChanged){0};
	if (room <= KEPT_ROOM)
		return;
	pfree(changes);
	changes = first_changes;
	room = FIRST_ROOM;
}
