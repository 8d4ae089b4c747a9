/*
 * queue_settings_table.c
 *	  Rows of tq_internal.queue_settings: what queues are set to.
 *
 * Each session caches all rows, which are few (watched_table.c).  A call looks
 * for invalidations before it asks for settings, so that a call that begins
 * after the commit of a change follows it.  While no queue has settings, to ask
 * costs a comparison.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "../rows/rows.h"
#include "columns.h"
#include "registry.h"

TQ_NUMBERS(TQ_QUEUE_SETTINGS_COLUMNS, queue_settings);

static TqRelation settings_table = TQ_RELATION("queue_settings");

/* ---- cache ---- */

typedef struct QueueSettingsEntry
{
	int32 queue; /* key */
	TqGivenSettings given;
} QueueSettingsEntry;

static TqWatched watched = TQ_WATCHED(settings_table);
static uint64 loaded = 0; /* the generation that is cached */
static MemoryContext context = NULL;
static HTAB *entries = NULL; /* NULL: no queue has settings */
static bool any_is_fair = false;

/* Makes all sessions read the table again; see tq_watched_changed(). */
void
tq_queue_settings_changed(void)
{
	tq_watched_changed(&watched);
}

/*
 * Makes this session read the table again.  A transaction that changes settings
 * wakes others a moment before the invalidation reaches them: what acts upon a
 * row that was committed with the settings must not use those before.
 */
void
tq_queue_settings_reload(void)
{
	watched.generation++;
}

/* Adds a row to the cache. */
static void
add_entry(TupleTableSlot *slot)
{
	int32 queue = tq_row_int32(slot, Anum_queue_settings_queue);
	Jsonb *json = tq_row_varlena(slot, Anum_queue_settings_settings);
	TqGivenSettings given;
	const char *fault = tq_queue_settings_parse(json, &given);
	QueueSettingsEntry *entry;
	HASHCTL control = {.keysize = sizeof(int32),
					   .entrysize = sizeof(QueueSettingsEntry),
					   .hcxt = context};

	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("settings of queue \"%s\" cannot be read",
						tq_queue_name(queue)),
				 errdetail("They %s.", fault),
				 errhint("Correct the row in tq_internal.queue_settings.")));
	if (entries == NULL)
		entries = hash_create("tq queue settings", 64, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	if (given.policy != NULL)
	{
		MemoryContext outer = MemoryContextSwitchTo(context);

		given.policy = tq_policy_of_default(given.policy);
		MemoryContextSwitchTo(outer);
	}
	if (given.weights != NULL)
	{
		Jsonb *kept = MemoryContextAlloc(context, VARSIZE(given.weights));

		memcpy(kept, given.weights, VARSIZE(given.weights));
		given.weights = kept;
	}
	any_is_fair = any_is_fair || given.settings.is_fair;
	entry = hash_search(entries, &queue, HASH_ENTER, NULL);
	entry->given = given;
}

/*
 * Reads all rows as they are now, whatever the snapshot of the transaction is:
 * later transactions use them too.
 */
static void
queue_settings_load(void)
{
	TqTableScan *scan;
	uint64 current;

	tq_watched_read(&watched);
	if (context == NULL)
		context = AllocSetContextCreate(CacheMemoryContext,
										"tq queue settings",
										ALLOCSET_SMALL_SIZES);
	MemoryContextReset(context);
	entries = NULL;
	any_is_fair = false;
	loaded = 0;
	PushActiveSnapshot(GetLatestSnapshot());
	current = watched.generation;
	scan = tq_table_scan_open(&settings_table);
	while (tq_table_scan_next(scan))
		add_entry(scan->slot);
	tq_table_scan_close(scan);
	PopActiveSnapshot();
	loaded = current;
}

/* Returns what a queue was given, or NULL. */
static const TqGivenSettings *
queue_settings_find(int32 queue)
{
	QueueSettingsEntry *entry;

	while (loaded != watched.generation)
		queue_settings_load();
	if (entries == NULL)
		return NULL;
	entry = hash_search(entries, &queue, HASH_FIND, NULL);
	return entry == NULL ? NULL : &entry->given;
}

/* ---- what follows from settings ---- */

/* Returns whether any queue has settings. */
bool
tq_queue_settings_exist(void)
{
	return queue_settings_find(0) != NULL || entries != NULL;
}

/* Returns whether any queue uses fairness. */
bool
tq_queue_settings_are_fair(void)
{
	return tq_queue_settings_exist() && any_is_fair;
}

/*
 * Returns the weight of a fairness key in its queue; "" is that of the tasks
 * without a key.
 */
double
tq_queue_settings_weight(int32 queue, const char *key)
{
	const TqGivenSettings *given = queue_settings_find(queue);
	const JsonbValue *weight = NULL;

	if (given != NULL && given->weights != NULL)
		weight = tq_json_member(&given->weights->root, key);
	return weight == NULL ? 1 : tq_json_double(weight);
}

/*
 * Returns the queues whose pending runs maintenance moves within their order,
 * and sets *version to a number that differs once that may have changed.
 */
int32 *
tq_queue_settings_with_moves(uint64 *version, int *found)
{
	HASH_SEQ_STATUS scan;
	const QueueSettingsEntry *entry;
	int32 *queues;

	*found = 0;
	(void) queue_settings_find(0);
	*version = watched.generation;
	if (entries == NULL)
		return NULL;
	queues = palloc(sizeof(int32) * hash_get_num_entries(entries));
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (entry->given.settings.is_fair ||
			entry->given.settings.aging_interval > 0)
			queues[(*found)++] = entry->queue;
	}
	return queues;
}

/*
 * Returns the settings of a queue; 0 is a queue without any.  The result is
 * valid until the next call.
 */
const TqQueueSettings *
tq_queue_settings(int32 queue)
{
	const TqGivenSettings *given = queue_settings_find(queue);

	return given == NULL ? &tq_queue_settings_plain : &given->settings;
}

/*
 * Returns the default policy of the tasks of a queue, as tq_policy_of_default()
 * made it; NULL if the queue has none.
 */
Jsonb *
tq_queue_settings_policy(const char *queue)
{
	const TqGivenSettings *given;
	Jsonb *policy;

	if (!tq_queue_settings_exist())
		return NULL;
	given = queue_settings_find(tq_queue_find(queue));
	if (given == NULL || given->policy == NULL)
		return NULL;
	policy = palloc(VARSIZE(given->policy));
	memcpy(policy, given->policy, VARSIZE(given->policy));
	return policy;
}

/* Returns the shortest retentions that a queue has, and these. */
TqRetention
tq_queue_settings_shortest(TqRetention kept)
{
	TqRetention shortest = kept;
	HASH_SEQ_STATUS scan;
	const QueueSettingsEntry *entry;

	if (!tq_queue_settings_exist())
		return shortest;
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		TqRetention own = tq_queue_settings_retention(&entry->given.settings,
													  kept);

		shortest.completed = Min(shortest.completed, own.completed);
		shortest.failed = Min(shortest.failed, own.failed);
	}
	return shortest;
}

/* Returns the longest claim timeout of a queue, in ms; 0 if none has one. */
int64
tq_queue_settings_longest_claim(void)
{
	int64 longest = 0;
	HASH_SEQ_STATUS scan;
	const QueueSettingsEntry *entry;

	if (!tq_queue_settings_exist())
		return 0;
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
		longest = Max(longest, entry->given.settings.claim_timeout);
	return longest;
}

/* Returns the queues whose claims are limited by a rate. */
int32 *
tq_queue_settings_with_rate(int *found)
{
	HASH_SEQ_STATUS scan;
	const QueueSettingsEntry *entry;
	int32 *queues;

	*found = 0;
	if (!tq_queue_settings_exist())
		return NULL;
	queues = palloc(sizeof(int32) * hash_get_num_entries(entries));
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (entry->given.settings.rate_count > 0)
			queues[(*found)++] = entry->queue;
	}
	return queues;
}
