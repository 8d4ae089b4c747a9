/*
 * fair_place.c
 *	  Places of runs in queues that are fair to their keys (doc/spec/policy.md
 *	  11.4).
 *
 * In such a queue the seq of a run is a tag (fair_clock.c), which its key decides,
 * and not an id.  Tags are below all ids, so that runs which were pending before
 * the queue became fair come after, until maintenance gives them tags too
 * (pending_move.c); and those that have tags when it is no longer fair come
 * first.
 *
 * What shared memory does not know, as after a start of the server, is read from
 * the table here: the time of a queue and priority is the lowest tag there, and
 * the last tag of a key the highest among its newest 1,000 tasks.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "../core/policy.h"
#include "../core/queue_settings.h"
#include "../shmem/fair_clock.h"
#include "../util/clock.h"
#include "../util/spi.h"
#include "fair_place.h"
#include "index_scan.h"
#include "queue_settings_table.h"
#include "task_key_table.h"

#define TRIES 8 /* until a tag is taken; what is missing is read before each */
#define NO_KEY "" /* in place of the key of a task without one */

static TqStatement read_first = TQ_STATEMENT(
	"SELECT seq FROM tq_internal.pending WHERE queue = $1 AND priority = $2 AND seq < 0"
	" ORDER BY queue, priority DESC, seq LIMIT 1",
	INT4OID, INT2OID);

static TqStatement read_last = TQ_STATEMENT(
	"SELECT max(p.seq) FROM (SELECT task FROM tq_internal.task_key WHERE kind = 3 AND key = $3"
	" ORDER BY task DESC LIMIT 1000) AS k JOIN tq_internal.pending p ON p.task = k.task AND p.seq <> p.task"
	" WHERE p.queue = $1 AND p.priority = $2 AND p.seq < 0",
	INT4OID, INT2OID, TEXTOID);

/* Of the tasks without a key; 0: there are others that may have one. */
static TqStatement read_last_without = TQ_STATEMENT(
	"SELECT coalesce(max(p.seq) FILTER (WHERE p.queue = $1 AND p.priority = $2 AND p.seq < 0 AND k.task IS NULL),"
	" CASE WHEN count(*) = 1000 THEN 0 END)"
	" FROM (SELECT * FROM tq_internal.pending WHERE seq <> task ORDER BY task DESC LIMIT 1000) AS p"
	" LEFT JOIN tq_internal.task_key k ON k.task = p.task AND k.kind = 3",
	INT4OID, INT2OID);

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

/* ---- what shared memory does not know ---- */

#define NO_TAG PG_INT64_MIN

static void
read_tag(TupleTableSlot *slot, void *tag)
{
	bool isnull;
	Datum value = slot_getattr(slot, 1, &isnull);

	*(int64 *) tag = isnull ? NO_TAG : DatumGetInt64(value);
}

/* Sets the time of a queue and priority. */
static void
find_time(const TqFairKey *key)
{
	int64 tag = NO_TAG;

	(void) tq_spi_read(&read_first,
					   TQ_VALUES(Int32GetDatum(key->queue),
								 Int16GetDatum(key->priority)),
					   read_tag, &tag);
	tq_fair_set_time(key, tag == NO_TAG ? TQ_FAIR_FIRST : tag);
}

/* Sets the last tag of a key. */
static void
find_last(const TqFairKey *key, const char *text, TimestampTz now)
{
	bool has_key = text[0] != '\0';
	Datum values[3] = {Int32GetDatum(key->queue), Int16GetDatum(key->priority),
					   CStringGetTextDatum(text)};
	int64 tag = NO_TAG;

	(void) tq_spi_read(has_key ? &read_last : &read_last_without, values,
					   read_tag, &tag);
	if (tag == 0)
		tag = tq_fair_last(key);
	tq_fair_set_last(key, tag == NO_TAG ? 0 : tag, now);
}

/* ---- places ---- */

static TqFairKey
key_of(Oid pending, const TqPending *row, const char *text)
{
	return (TqFairKey){.pending = pending,
					   .queue = row->queue,
					   .priority = row->priority,
					   .hash = tq_fair_hash(text)};
}

/*
 * Returns the next tag of a key; or, if there is none, an id, which comes after
 * all tags.
 */
static int64
next_tag(const TqFairKey *key, const char *text)
{
	double weight = tq_queue_settings_weight(key->queue, text);
	TimestampTz now = tq_clock_real_now();

	for (int i = 0; i < TRIES; i++)
	{
		int64 tag;

		switch (tq_fair_take(key, weight, now, &tag))
		{
			case TQ_FAIR_TAKEN:
				return tag;
			case TQ_FAIR_NO_TIME:
				find_time(key);
				break;
			case TQ_FAIR_NO_LAST:
				find_last(key, text, now);
				break;
			case TQ_FAIR_NO_ROOM:
				return tq_id_next();
		}
	}
	return tq_id_next();
}

/*
 * Gives runs of queues that are fair their places, in this order.  The keys of
 * their tasks have been inserted before.
 */
void
tq_fair_place(Oid pending, TqPending *rows, int n)
{
	TqTaskKeyReader *keys = tq_task_key_reader_begin(TQ_KEY_FAIRNESS);

	for (int i = 0; i < n; i++)
	{
		const char *text = tq_task_key_find(keys, rows[i].task);
		TqFairKey key;

		text = text == NULL ? NO_KEY : text;
		key = key_of(pending, &rows[i], text);
		rows[i].seq = next_tag(&key, text);
	}
	tq_task_key_reader_end(keys);
}

/*
 * Returns another place for a run, whose place another one has; `tries` is how
 * often that was so before.
 */
int64
tq_fair_place_again(Oid pending, const TqPending *row, int tries)
{
	TqTaskKeyReader *keys = tq_task_key_reader_begin(TQ_KEY_FAIRNESS);
	const char *text = tq_task_key_find(keys, row->task);
	TqFairKey key = key_of(pending, row, text == NULL ? NO_KEY : text);

	tq_task_key_reader_end(keys);
	return tq_fair_take_other(&key, row->seq, tries);
}
