/*
 * fair_position.c
 *	  Places of runs in queues that are fair to their keys (doc/spec/policy.md
 *	  11.4).
 *
 * In such a queue the seq of a run is a tag (fair_clock.c), which its key
 * decides, and not an id.  Tags are below all ids, so that runs which were
 * pending before the queue became fair come after, until maintenance gives them
 * tags too (reorder.c); and those that have tags when it is no longer fair come
 * first.
 *
 * What shared memory does not know, as after a start of the server, is read
 * from the table here: the time of a queue and priority is the lowest tag
 * there, and the last tag of a key the highest among the newest of its tasks,
 * also of transactions in progress.
 */
#include "postgres.h"

#include "utils/snapmgr.h"

#include "columns.h"
#include "registry.h"
#include "tasks.h"

#define TRIES 8 /* until a tag is taken; what is missing is read before each */
#define NO_KEY "" /* in place of the key of a task without one */

/* How many rows are read for the last tag of a key, newest tasks first. */
#define NEWEST 10000
#define NEWEST_PENDING 20 /* of these; retries have higher tags than others */

TQ_NUMBERS(TQ_PENDING_COLUMNS, pending);
TQ_NUMBERS(TQ_TASK_KEY_COLUMNS, task_key);

static TqRelation pending_table = TQ_RELATION("pending");
static TqRelation pending_order = TQ_RELATION("pending_order");
static TqRelation pending_moved = TQ_RELATION("pending_moved");

/* Returns whether any queue may be fair; false costs a comparison. */
bool
tq_fair_is_used(void)
{
	return tq_queue_settings_are_fair() && tq_fair_is_kept();
}

/* Returns whether the runs of a queue get tags. */
bool
tq_fair_applies(int32 queue)
{
	return tq_fair_is_used() && tq_queue_settings(queue)->is_fair;
}

/* ---- keys of tasks ---- */

typedef struct KeyReader
{
	TqScan *scan;
	TqTaskKey kind;
} KeyReader;

/* Begins to look up keys, also those that this transaction has inserted. */
static KeyReader *
begin_keys(TqTaskKey kind)
{
	static TqRelation task_key = TQ_RELATION("task_key");
	static TqRelation by_task = TQ_RELATION("task_key_pkey");
	KeyReader *reader = palloc(sizeof(KeyReader));

	reader->kind = kind;
	reader->scan = tq_scan_open(&task_key, &by_task, 2, SnapshotSelf);
	return reader;
}

/* Returns the key of a task, or NULL. */
static char *
key_of_task(KeyReader *reader, int64 task)
{
	if (!tq_scan_find(reader->scan, Int64GetDatum(task),
					  Int16GetDatum((int16) reader->kind), 0))
		return NULL;
	return tq_row_text(reader->scan->slot, Anum_task_key_key);
}

/* Ends the look-ups. */
static void
end_keys(KeyReader *reader)
{
	tq_scan_close(reader->scan);
}

/* Sets *task to the next one, which is older; returns false if there is none. */
static bool
next_task_of_key(TqScan *scan, int64 *task)
{
	if (!tq_scan_previous(scan))
		return false;
	*task = tq_row_int64(scan->slot, Anum_task_key_task);
	return true;
}

/* ---- what shared memory does not know ---- */

/* Sets the time of a queue and priority, to the first tag there. */
static void
find_time(const TqFairKey *key)
{
	TqTable *table = tq_table_open(&pending_table);
	SnapshotData dirty;
	TqScan *order;
	int64 first = TQ_FAIR_FIRST;
	int64 seq;

	InitDirtySnapshot(dirty);
	order = tq_scan_begin_range(table, &pending_order, 3, &dirty);
	tq_scan_seek_range(order, Int32GetDatum(key->queue),
					   Int16GetDatum(key->priority), TQ_FAIR_FIRST, 0);
	while (first == TQ_FAIR_FIRST && tq_scan_next_entry(order, &seq))
	{
		CHECK_FOR_INTERRUPTS();
		if (tq_scan_fetch(order))
			first = seq;
	}
	tq_scan_end(order);
	tq_table_close(table);
	tq_fair_set_time(key, first);
}

/* Returns the tag of a row, if it is one of this queue and priority; or 0. */
static int64
tag_of(TupleTableSlot *slot, const TqFairKey *key)
{
	int64 seq = tq_row_int64(slot, Anum_pending_seq);

	if (tq_row_int32(slot, Anum_pending_queue) != key->queue ||
		tq_row_int16(slot, Anum_pending_priority) != key->priority)
		return 0;
	return Min(seq, 0);
}

/* Returns the highest of two tags; 0 is none. */
static int64
fair_position_later(int64 a, int64 b)
{
	if (a == 0 || b == 0)
		return Min(a, b);
	return Max(a, b);
}

/*
 * Returns the last tag of the newest tasks of a key, of which this call may
 * have n whose rows are not written yet; 0 if none has one.  If there are too
 * many, it returns the one that is known.
 */
static int64
last_with_key(const TqFairKey *key, const char *text, int n)
{
	SnapshotData dirty;
	TqScan *newest;
	TqScan *moved;
	int looked = 0;
	int found = 0;
	int64 last = 0;
	int64 task;
	static TqRelation task_key = TQ_RELATION("task_key");
	static TqRelation fair = TQ_RELATION("task_key_fair");
	TqScan *scan;

	InitDirtySnapshot(dirty);
	/* Begin a scan of the tasks with a fairness key, newest first. */
	scan = tq_scan_open(&task_key, &fair, 1, &dirty);
	tq_scan_seek(scan, CStringGetTextDatum(text), 0, 0);
	newest = scan;
	moved = tq_scan_open(&pending_table, &pending_moved, 1, &dirty);
	while (looked < NEWEST + n && found < NEWEST_PENDING &&
		   next_task_of_key(newest, &task))
	{
		int64 tag = 0;

		CHECK_FOR_INTERRUPTS();
		looked++;
		if (tq_scan_find(moved, Int64GetDatum(task), 0, 0))
			tag = tag_of(moved->slot, key);
		found += tag != 0;
		last = fair_position_later(last, tag);
	}
	tq_scan_close(moved);
	tq_scan_close(newest);
	return looked == NEWEST + n && last == 0 ? tq_fair_last(key) : last;
}

/*
 * Returns the last tag of the tasks without a key, among the newest runs that
 * have tags; if there are only others, the one that is known.
 */
static int64
last_without_key(const TqFairKey *key, KeyReader *keys)
{
	SnapshotData dirty;
	TqScan *moved;
	int looked = 0;
	int64 last = 0;

	InitDirtySnapshot(dirty);
	moved = tq_scan_open(&pending_table, &pending_moved, 0, &dirty);
	tq_scan_seek(moved, 0, 0, 0);
	while (looked < NEWEST && last == 0 && tq_scan_previous(moved))
	{
		int64 task = tq_row_int64(moved->slot, Anum_pending_task);

		looked++;
		last = tag_of(moved->slot, key);
		if (last != 0 && key_of_task(keys, task) != NULL)
			last = 0;
	}
	tq_scan_close(moved);
	return looked == NEWEST && last == 0 ? tq_fair_last(key) : last;
}

/* ---- positions ---- */

#define RECENT 8

/*
 * A call that places runs.  It has a single time, so that it checks each last
 * tag at most once; and it knows its own tags, of which other sessions that
 * check may not see the rows yet.
 */
typedef struct FairPlaceCall
{
	KeyReader *keys;
	TimestampTz now;
	int n;                    /* runs */
	TqFairKey recent[RECENT]; /* to which it has given tags */
	int64 tags[RECENT];
	int next;
} FairPlaceCall;

static TqFairKey
fair_position_key_of(Oid pending, const TqFairRun *run, const char *text)
{
	return (TqFairKey){.pending = pending,
					   .queue = run->queue,
					   .priority = run->priority,
					   .hash = tq_fair_hash(text)};
}

/* Returns where this call keeps its last tag of a key. */
static int64 *
recent_tag(FairPlaceCall *call, const TqFairKey *key)
{
	for (int i = 0; i < RECENT; i++)
	{
		if (call->recent[i].hash == key->hash &&
			call->recent[i].queue == key->queue &&
			call->recent[i].priority == key->priority)
			return &call->tags[i];
	}
	call->next = (call->next + 1) % RECENT;
	call->recent[call->next] = *key;
	call->tags[call->next] = 0;
	return &call->tags[call->next];
}

/*
 * Returns the next tag of a key; or, if there is none, an id, which comes after
 * all tags.
 */
static int64
next_tag(FairPlaceCall *call, const TqFairKey *key, const char *text)
{
	double weight = tq_queue_settings_weight(key->queue, text);
	int64 *last = recent_tag(call, key);

	for (int i = 0; i < TRIES; i++)
	{
		int64 tag;

		switch (tq_fair_take(key, weight, call->now, *last, &tag))
		{
			case TQ_FAIR_TAKEN:
				return *last = tag;
			case TQ_FAIR_NO_TIME:
				find_time(key);
				break;
			case TQ_FAIR_NO_LAST:
				tag = text[0] == '\0' ? last_without_key(key, call->keys)
									  : last_with_key(key, text, call->n);
				tq_fair_set_last(key, tag, call->now);
				break;
			case TQ_FAIR_NO_ROOM:
				return tq_id_next();
		}
	}
	return tq_id_next();
}

/*
 * Gives runs of queues that are fair their positions, in this order.  The keys
 * of their tasks have been inserted before.
 */
void
tq_fair_position(Oid pending, TqFairRun *runs, int n)
{
	FairPlaceCall call = {.keys = begin_keys(TQ_KEY_FAIRNESS),
						  .now = tq_clock_now(),
						  .n = n};

	for (int i = 0; i < n; i++)
	{
		const char *text = key_of_task(call.keys, runs[i].task);
		TqFairKey key;

		text = text == NULL ? NO_KEY : text;
		key = fair_position_key_of(pending, &runs[i], text);
		runs[i].seq = next_tag(&call, &key, text);
	}
	end_keys(call.keys);
}

/*
 * Gives a run another position, because another one has its own; `tries` is how
 * often that was so before.
 */
void
tq_fair_position_again(Oid pending, TqFairRun *run, int tries)
{
	KeyReader *keys = begin_keys(TQ_KEY_FAIRNESS);
	const char *text = key_of_task(keys, run->task);
	TqFairKey key = fair_position_key_of(pending, run,
										 text == NULL ? NO_KEY : text);

	end_keys(keys);
	run->seq = tq_fair_take_other(&key, run->seq, tries);
}
