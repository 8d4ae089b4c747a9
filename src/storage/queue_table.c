/*
 * queue_table.c
 *	  Rows of tq_internal.queue: names of queues that are interned to numbers.
 *
 * Rows are never deleted; an expired queue is only no longer listed.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "../shmem/wait_queue.h"
#include "../util/spi.h"
#include "columns.h"
#include "index_scan.h"
#include "name_cache.h"
#include "queue_table.h"
#include "table.h"

#define QUEUE_NAME_MAX 80 /* 38 + 1 + 38 and the terminating zero */

typedef struct QueueEntry
{
	char name[QUEUE_NAME_MAX];
	int32 id;
} QueueEntry;

typedef struct QueueName
{
	int32 id;
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
								  .table = &queue_table};
static TqNameCache queue_names = {.purpose = "tq names of queues",
								  .keysize = sizeof(int32),
								  .entrysize = sizeof(QueueName),
								  .how = HASH_BLOBS,
								  .table = &queue_table};

static TqStatement insert_queue = TQ_STATEMENT(
	"INSERT INTO tq_internal.queue (task_queue_id) VALUES ($1) ON CONFLICT DO NOTHING",
	TEXTOID);

static TqStatement see_queue = TQ_STATEMENT(
	"UPDATE tq_internal.queue SET last_date_active = $2, expires = greatest(expires, $3) WHERE id IN ("
	"SELECT id FROM tq_internal.queue WHERE id = $1 AND (last_date_active IS NULL"
	" OR last_date_active < $2 - interval '30 minutes' OR expires IS NULL) FOR UPDATE SKIP LOCKED)",
	INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID);

static TqStatement forget_queues = TQ_STATEMENT(
	"UPDATE tq_internal.queue SET expires = NULL, last_date_active = NULL"
	" WHERE id IN (SELECT id FROM tq_internal.queue WHERE expires < $1 FOR UPDATE SKIP LOCKED)",
	TIMESTAMPTZOID);

/* Returns the number of a queue, or 0. */
int32
tq_queue_find(const char *name)
{
	QueueEntry *entry = tq_name_find(&queue_cache, name);
	int32 id;

	if (entry != NULL)
		return entry->id;
	id = tq_scan_number(tq_scan_open(&queue_table, &queue_by_name, 1, NULL),
						CStringGetTextDatum(name), 0, 0);
	if (id != 0 && (entry = tq_name_add(&queue_cache, name)) != NULL)
		entry->id = id;
	return id;
}

static void
read_name(TupleTableSlot *slot, void *name)
{
	*(char **) name = tq_row_text(slot, Anum_queue_task_queue_id);
}

/* Returns the name of a queue that exists. */
char *
tq_queue_name(int32 id)
{
	QueueName *entry = tq_name_find(&queue_names, &id);
	char *name;

	if (entry != NULL)
		return pstrdup(entry->name);
	if (!tq_scan_read(tq_scan_open(&queue_table, &queue_by_id, 1, NULL),
					  Int32GetDatum(id), 0, 0, read_name, &name))
		elog(ERROR, "queue %d is not in tq_internal.queue", id);
	entry = tq_name_add(&queue_names, &id);
	if (entry != NULL)
		strlcpy(entry->name, name, sizeof(entry->name));
	return name;
}

/* Returns the number of a queue, after inserting it if necessary. */
int32
tq_queue_intern(const char *name)
{
	int32 id;

	while ((id = tq_queue_find(name)) == 0)
	{
		tq_name_interning();
		tq_wait_note_queue();
		tq_spi_run(&insert_queue, TQ_VALUES(CStringGetTextDatum(name)), NULL);
	}
	return id;
}

/*
 * Records that a worker has asked this queue for work.  Writes at most every
 * 30 minutes and skips a locked row, because workers call often and the times
 * are only informative (doc/spec/taskcluster.md 5.6).
 */
void
tq_queue_seen(int32 queue, TimestampTz now, TimestampTz expires)
{
	Datum values[3] = {Int32GetDatum(queue), TimestampTzGetDatum(now),
					   TimestampTzGetDatum(expires)};

	tq_spi_run(&see_queue, values, NULL);
}

/*
 * Clears what is recorded about queues that have expired
 * (doc/spec/taskcluster.md 8.4).
 */
void
tq_queues_forget(TimestampTz before)
{
	tq_spi_run(&forget_queues, TQ_VALUES(TimestampTzGetDatum(before)), NULL);
}
