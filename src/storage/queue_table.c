/*
 * queue_table.c
 *	  Rows of tq_internal.queue: names of queues that are interned to numbers.
 *
 * An expired queue is no longer listed; its row is deleted when nothing refers
 * to it (interned.c).
 */
#include "postgres.h"

#include "../rows/rows.h"
#include "columns.h"
#include "registry.h"

#define QUEUE_NAME_MAX 80 /* 38 + 1 + 38 and the terminating zero */

typedef struct QueueEntry
{
	char name[QUEUE_NAME_MAX];
	int32 id;
} QueueEntry;

typedef struct QueueName
{
	int32 id;
	TimestampTz expires;
	TimestampTz store_after; /* until then nothing about it is stored */
	char name[QUEUE_NAME_MAX];
} QueueName;

static TqRelation queue_table = TQ_RELATION("queue");
static TqRelation queue_by_id = TQ_RELATION("queue_pkey");
static TqRelation queue_by_name = TQ_RELATION("queue_task_queue_id_key");

TQ_NUMBERS(TQ_QUEUE_COLUMNS, queue);

static TqNameCache queue_cache = {.purpose = "tq queues",
								  .keysize = QUEUE_NAME_MAX,
								  .entrysize = sizeof(QueueEntry),
								  .how = HASH_STRINGS,
								  .watched = {.table = &queue_table,
											  .generation =
												  TQ_FIRST_GENERATION,
											  .note_change = tq_facts_change}};
static TqNameCache queue_names = {.purpose = "tq names of queues",
								  .keysize = sizeof(int32),
								  .entrysize = sizeof(QueueName),
								  .how = HASH_BLOBS,
								  .watched = TQ_WATCHED(queue_table)};

static TqStatement insert_queue = TQ_STATEMENT(
	"INSERT INTO tq_internal.queue (task_queue_id, creator) VALUES ($1, session_user) ON CONFLICT DO NOTHING",
	TEXTOID);

static TqStatement see_queue = TQ_STATEMENT(
	"UPDATE tq_internal.queue SET last_date_active = $2, expires = greatest(expires, $3) WHERE id IN ("
	"SELECT id FROM tq_internal.queue WHERE id = $1 AND (last_date_active IS NULL"
	" OR last_date_active <= $4 OR expires IS NULL OR expires <= $5) FOR UPDATE SKIP LOCKED)",
	INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID);

static TqStatement forget_queues = TQ_STATEMENT(
	"UPDATE tq_internal.queue SET expires = NULL, last_date_active = NULL"
	" WHERE id IN (SELECT id FROM tq_internal.queue WHERE expires < $1 FOR UPDATE SKIP LOCKED)",
	TIMESTAMPTZOID);

/* Uses an index that is in the order of bytes: 0 comes after the slash. */
static TqStatement numbers_of = TQ_STATEMENT(
	"SELECT id, task_queue_id FROM tq_internal.queue"
	" WHERE task_queue_id COLLATE \"C\" > $1 || '/' AND task_queue_id COLLATE \"C\" < $1 || '0'"
	" ORDER BY task_queue_id COLLATE \"C\" LIMIT $2",
	TEXTOID, INT4OID);

static TqStatement first_queues =
	TQ_STATEMENT("SELECT * FROM tq_internal.queue ORDER BY id LIMIT $1",
				 INT4OID);

/* The number of a queue that was found, and whether it is retired. */
typedef struct QueueFound
{
	int32 id; /* 0: none */
	bool is_retired;
} QueueFound;

static void
queue_read_found(TupleTableSlot *slot, void *into)
{
	*(QueueFound *) into =
		(QueueFound){.id = tq_row_int32(slot, Anum_queue_id),
					 .is_retired = !slot_attisnull(slot, Anum_queue_retired)};
}

/* Reads the row of a queue, and shares its number if it may be cached. */
static QueueFound
queue_read(const char *name, uint64 change)
{
	QueueFound found = {.id = 0};
	QueueEntry *entry;

	if (!tq_scan_read(tq_scan_open(&queue_table, &queue_by_name, 1, NULL),
					  CStringGetTextDatum(name), 0, 0, queue_read_found,
					  &found) ||
		found.is_retired || (entry = tq_name_add(&queue_cache, name)) == NULL)
		return found;
	entry->id = found.id;
	if (!tq_spi_is_reading)
		tq_facts_store_queue(tq_locked_table, name, found.id, change);
	return found;
}

/*
 * Finds a queue, and caches its number unless it is retired (interned.c).  A new
 * session has the number from those before it, and need not open the table and
 * its index, which is an eighth of the instructions of its first enqueue().
 */
static QueueFound
queue_lookup(const char *name)
{
	QueueEntry *entry = tq_name_find(&queue_cache, name);
	uint64 change = 0;
	int32 id = 0;

	if (entry != NULL)
		return (QueueFound){.id = entry->id};
	if (!tq_spi_is_reading)
		id = tq_facts_find_queue(tq_locked_table, name, &change);
	if (id == 0)
		return queue_read(name, change);
	entry = tq_name_add(&queue_cache, name);
	if (entry != NULL)
		entry->id = id;
	return (QueueFound){.id = id};
}

/* Returns the number of a queue, or 0. */
int32
tq_queue_find(const char *name)
{
	return queue_lookup(name).id;
}

static void
queue_read_name(TupleTableSlot *slot, void *into)
{
	QueueName *name = into;
	TimestampTz active = tq_row_time(slot, Anum_queue_last_date_active);

	name->expires = tq_row_time(slot, Anum_queue_expires);
	name->store_after = active == 0
							? 0
							: tq_clock_add_ms(active, tq_seen_interval);
	strlcpy(name->name, tq_row_text(slot, Anum_queue_task_queue_id),
			sizeof(name->name));
}

/* Returns the name of a queue that exists. */
char *
tq_queue_name(int32 id)
{
	QueueName *entry = tq_name_find(&queue_names, &id);
	QueueName name = {.id = id};

	if (entry != NULL)
		return pstrdup(entry->name);
	if (!tq_scan_read(tq_scan_open(&queue_table, &queue_by_id, 1, NULL),
					  Int32GetDatum(id), 0, 0, queue_read_name, &name))
		elog(ERROR, "queue %d is not in tq_internal.queue", id);
	entry = tq_name_add(&queue_names, &id);
	if (entry != NULL)
		*entry = name;
	return pstrdup(name.name);
}

/* Finds a queue that is inserted next if there is none. */
static int32
find_or_note(void *name, bool *is_retired)
{
	QueueFound found = queue_lookup(name);

	if (found.id == 0)
		tq_wait_note_queue();
	*is_retired = found.is_retired;
	return found.id;
}

/*
 * Returns the number of a queue, after inserting it, or reviving it, if
 * necessary.
 */
int32
tq_queue_intern(const char *name)
{
	QueueFound found = queue_lookup(name);

	if (found.id != 0 && !found.is_retired)
		return found.id;
	return tq_intern(TQ_INTERNED_QUEUE, &insert_queue,
					 TQ_VALUES(CStringGetTextDatum(name)), find_or_note,
					 unconstify(char *, name));
}

static void
queue_read_number(TupleTableSlot *slot, void *into)
{
	*(TqQueueNumber *) into = (TqQueueNumber){.id = tq_row_int32(slot, 1),
											  .name = tq_row_text(slot, 2)};
}

/*
 * Returns at most max queues of a provisioner, by name.  Those that are retired
 * are among them, because a session that revives one makes no new name known.
 */
TqQueueNumber *
tq_queue_numbers_of(const char *provisioner, int max, int *found)
{
	Datum values[2] = {CStringGetTextDatum(provisioner), Int32GetDatum(max)};

	return tq_spi_read_all(&numbers_of, values, queue_read_number,
						   sizeof(TqQueueNumber), found);
}

/*
 * Records that a worker has asked this queue for work, and that the queue is
 * not to expire earlier than that.  Writes at most once per tq.seen_interval,
 * and skips a locked row, because workers call often and the times are only
 * informative (doc/spec/taskcluster.md 5.6).
 */
void
tq_queue_seen(int32 queue, TimestampTz now, TimestampTz expires)
{
	QueueName *entry = tq_name_find(&queue_names, &queue);
	Datum values[5] = {Int32GetDatum(queue), TimestampTzGetDatum(now),
					   TimestampTzGetDatum(expires),
					   TimestampTzGetDatum(
						   tq_clock_add_ms(now, -tq_seen_interval)),
					   TimestampTzGetDatum(
						   tq_clock_add_ms(expires, -tq_seen_interval))};

	if (entry != NULL && now < entry->store_after &&
		expires <= tq_clock_add_ms(entry->expires, tq_seen_interval))
		return;
	if (tq_spi_run(&see_queue, values, NULL) > 0)
	{
		tq_name_interning();
		tq_name_remove(&queue_names, &queue);
	}
	else if ((entry = tq_name_find(&queue_names, &queue)) != NULL)
	{
		entry->store_after = tq_clock_add_ms(now, 1000);
		entry->expires = Max(entry->expires, expires);
	}
}

/* Makes this session read the row of a queue again. */
void
tq_queue_changed(int32 queue)
{
	tq_name_interning();
	tq_name_remove(&queue_names, &queue);
}

/* ---- expiry ---- */

/*
 * Clears what is recorded about queues that have expired
 * (doc/spec/taskcluster.md 8.4).
 */
void
tq_queues_forget(TimestampTz before)
{
	tq_spi_run(&forget_queues, TQ_VALUES(TimestampTzGetDatum(before)), NULL);
}

static void
read_queue(TupleTableSlot *slot, void *into)
{
	*(TqQueueRow *) into =
		(TqQueueRow){.id = tq_row_int32(slot, Anum_queue_id),
					 .name = tq_row_text(slot, Anum_queue_task_queue_id)};
}

/* Returns the queues with the lowest numbers, in their order. */
TqQueueRow *
tq_queues_first(int max, int *found)
{
	return tq_spi_read_all(&first_queues, TQ_VALUES(Int32GetDatum(max)),
						   read_queue, sizeof(TqQueueRow), found);
}
