/*
 * leaf_batch.c
 *	  Many keys of a unique btree index at once, leaf page by leaf page.
 *
 * The rows of a call follow each other in most indexes: their numbers ascend, and
 * so do ids that begin with the time.  index_insert() descends for each, locks
 * the page, and writes a WAL record: 8 K instructions.  Here one descent, one
 * lock and one record do for all keys that a page takes, 1 K for each.  What
 * cannot be done on one page is left to index_insert(): a key that the page has
 * already or that belongs to another page, a page that is full, which it splits,
 * and keys that are scattered.
 *
 * A run of keys is put on a page as _bt_doinsert() does with one key:
 *
 *	- _bt_search() finds the first leaf that may have the first key, locks it
 *	  exclusively, and completes splits that were interrupted.  A key of the run
 *	  is greater than the one before and less than the high key of the page, if
 *	  it has one.  So each belongs to this page, and an equal key would be on it
 *	  and nowhere else.
 *	- Why two sessions cannot both insert a key: the look for an equal key and
 *	  the change are made under one exclusive lock of the only page that may
 *	  have it.  Any equal key, of a dead row too, ends the run before its key, and
 *	  index_insert() finds out what it means.
 *	- Readers under SERIALIZABLE have locked the page (or more), which is checked
 *	  before it is changed.
 *	- A page that is deleted or half dead, or whose split is incomplete, is left.
 *	  Room is checked as for one key, so nothing is split here; the cycle id of a
 *	  vacuum, high keys and posting lists change only when a page is split, or
 *	  when index_insert() makes room.  A vacuum that has read the page already
 *	  need not know of the new keys: their rows are of this transaction.
 *	- The WAL record is a generic one, of the bytes that differ.  Replay changes
 *	  the page under its lock, as that of a btree insertion does, which is what
 *	  scans of a standby need.  It may carry hints that a row near the new ones is
 *	  dead; so do images of pages, and standbys ignore them.
 *	  (wal_consistency_checking of generic records, which is for developers,
 *	  does not know these hints and may find them different.)
 *
 * The lock is held for some ten microseconds.  No other lock is taken meanwhile.
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "access/nbtree.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"

#include "rows.h"

/* Keys that a page must take, or it is left to index_insert(). */
#define RUN_MIN 8

/* Has the scan key be that of a row. */
static void
set_key(TqKeys *keys, int i)
{
	BTScanInsert key = keys->scan_key;

	for (int column = 0; column < keys->ncolumns; column++)
		key->scankeys[column].sk_argument =
			keys->values[i * keys->ncolumns + column];
}

static IndexTuple
form_entry(const TqKeys *keys, int i)
{
	bool isnull[TQ_MAX_KEYS] = {false};
	IndexTuple entry = index_form_tuple(RelationGetDescr(keys->index),
										&keys->values[i * keys->ncolumns],
										isnull);

	if (keys->tids != NULL)
		entry->t_tid = keys->tids[i];
	return entry;
}

/*
 * Returns the leaf page that a key belongs to, locked; InvalidBuffer if it is
 * not fit for keys in addition, or the index is empty.
 */
static Buffer
find_leaf(TqKeys *keys, int i, int access)
{
	Buffer buffer;
	BTPageOpaque opaque;

	if (keys->scan_key == NULL)
	{
		IndexTuple entry = form_entry(keys, i);

		keys->scan_key = _bt_mkscankey(keys->index, entry);
		keys->scan_key->scantid = NULL; /* as for a unique key */
		pfree(entry);
	}
	set_key(keys, i);
	TqBtreeSearch(keys->index, keys->heap, keys->scan_key, &buffer, access);
	if (!BufferIsValid(buffer))
		return buffer;
	opaque = BTPageGetOpaque(BufferGetPage(buffer));
	if (P_ISLEAF(opaque) && !P_IGNORE(opaque) && !P_INCOMPLETE_SPLIT(opaque) &&
		keys->scan_key->heapkeyspace)
		return buffer;
	_bt_relbuf(keys->index, buffer);
	return InvalidBuffer;
}

/* Returns whether a key is less than the high key of a page. */
static bool
is_below_high_key(TqKeys *keys, int i, Page page)
{
	if (P_RIGHTMOST(BTPageGetOpaque(page)))
		return true;
	set_key(keys, i);
	return _bt_compare(keys->index, keys->scan_key, page, P_HIKEY) < 0;
}

/*
 * Returns where on a page a key belongs that is greater than those before `low`;
 * InvalidOffsetNumber if the page has an equal one, or it may belong to another
 * page.  It is looked for at `low` first if is_next.
 */
static OffsetNumber
place_of(TqKeys *keys, int i, Page page, OffsetNumber low, bool is_next)
{
	OffsetNumber high = PageGetMaxOffsetNumber(page) + 1;
	OffsetNumber middle = is_next ? low : low + (high - low) / 2;

	if (!is_below_high_key(keys, i, page))
		return InvalidOffsetNumber;
	set_key(keys, i);
	for (; low < high; middle = low + (high - low) / 2)
	{
		int32 order = _bt_compare(keys->index, keys->scan_key, page, middle);

		if (order == 0)
			return InvalidOffsetNumber;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Adds an entry to a page; returns false if there is no room. */
static bool
add_entry(const TqKeys *keys, int i, Page page, OffsetNumber at)
{
	IndexTuple entry = form_entry(keys, i);
	Size size = IndexTupleSize(entry);
	bool has_room = PageGetFreeSpace(page) >= size;

	if (has_room &&
		PageAddItem(page, (char *) entry, size, at, false, false) != at)
		elog(ERROR, "could not add an entry to index \"%s\"",
			 RelationGetRelationName(keys->index));
	pfree(entry);
	return has_room;
}

/* Puts keys on a page from this one on, and returns how many. */
static int
put_run(TqKeys *keys, int from, Page page)
{
	OffsetNumber at = P_FIRSTDATAKEY(BTPageGetOpaque(page)) - 1;
	int i;

	for (i = from; i < keys->n; i++)
	{
		set_key(keys, i);
		if (i > from &&
			_bt_compare(keys->index, keys->scan_key, page, at) <= 0)
			break; /* it does not follow the one before */
		at = place_of(keys, i, page, at + 1, i > from);
		if (at == InvalidOffsetNumber || !add_entry(keys, i, page, at))
			break;
	}
	return i - from;
}

/* Returns whether a page seems to take some keys from this one on. */
static bool
takes_run(TqKeys *keys, int from, Page page)
{
	IndexTuple entry = form_entry(keys, from);
	Size size = IndexTupleSize(entry) + sizeof(ItemIdData);

	pfree(entry);
	return PageGetFreeSpace(page) >= RUN_MIN * size &&
		   is_below_high_key(keys, from + RUN_MIN - 1, page);
}

/* Inserts keys from this one on into one leaf page; returns how many. */
static int
insert_run(TqKeys *keys, int from)
{
	GenericXLogState *change;
	Buffer buffer;
	int done;

	if (keys->n - from < RUN_MIN)
		return 0;
	buffer = find_leaf(keys, from, BT_WRITE);
	if (!BufferIsValid(buffer))
		return 0;
	if (!takes_run(keys, from, BufferGetPage(buffer)))
	{
		_bt_relbuf(keys->index, buffer);
		return 0;
	}
	CheckForSerializableConflictIn(keys->index, NULL,
								   BufferGetBlockNumber(buffer));
	change = GenericXLogStart(keys->index);
	done = put_run(keys, from, GenericXLogRegisterBuffer(change, buffer, 0));
	if (done > 0)
		(void) GenericXLogFinish(change);
	else
		GenericXLogAbort(change);
	_bt_relbuf(keys->index, buffer);
	return done;
}

/*
 * Inserts keys.  One that another row has raises an error, or, if the check is
 * partial, ends it: returns how many keys before that are inserted; its own is,
 * too, as index_insert() does.
 */
int
tq_keys_insert(TqKeys *keys, IndexUniqueCheck check, IndexInfo *info)
{
	bool isnull[TQ_MAX_KEYS] = {false};
	int next = 0; /* where to try a run again */
	int i = 0;

	while (i < keys->n)
	{
		int some = i < next ? 0 : insert_run(keys, i);

		i += some;
		if (some > 0)
			continue;
		if (i >= next)
			next = i + RUN_MIN;
		if (!index_insert(keys->index, &keys->values[i * keys->ncolumns],
						  isnull, &keys->tids[i], keys->heap, check, false,
						  info) &&
			check == UNIQUE_CHECK_PARTIAL)
			break;
		i++;
	}
	return i;
}

/*
 * Returns how many keys from this one on, which ascend, the index had not when
 * it was read; 0 if that is to be looked up otherwise, as it is for few keys.
 */
int
tq_keys_absent(TqKeys *keys, int from)
{
	Buffer buffer;
	Page page;
	OffsetNumber at;
	int i;

	if (keys->n < RUN_MIN)
		return 0;
	buffer = find_leaf(keys, from, BT_READ);
	if (!BufferIsValid(buffer))
		return 0;
	page = BufferGetPage(buffer);
	at = P_FIRSTDATAKEY(BTPageGetOpaque(page));
	for (i = from; i < keys->n; i++)
	{
		at = place_of(keys, i, page, at, i > from);
		if (at == InvalidOffsetNumber)
			break;
	}
	_bt_relbuf(keys->index, buffer);
	return i - from;
}
