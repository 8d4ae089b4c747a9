/*
 * deliver.c
 *	  The publisher: gives messages their ids, and tells those who LISTEN.
 *
 * Room 4.  A pass is a transaction of the background worker, or upkeep():
 *
 *	  under the publisher's lock, read the last tick;
 *	  take what is visible now and was not in that tick;
 *	  write the tick that gives it ids, and, for the next one, of which groups
 *	  it was the end;
 *	  NOTIFY, in the same transaction.
 *
 * So a message has an id as soon as it can be read, and no lower id appears
 * later, not even after a crash (store_message.c); NOTIFY is sent if and only if the tick is committed, and after a
 * crash at any point the pass is taken again.  What another transaction wrote
 * earlier and committed later comes with the tick after its commit.
 *
 * Only what others have committed is published: a pass in a transaction that
 * has written something would give ids to messages while more are written.
 * Nor is anything published within BEGIN and COMMIT, where the publisher's
 * lock would be held for as long as somebody likes, and not only for a
 * statement.
 *
 * NOTIFY is sent for channels on which somebody may LISTEN (shmem.c).  When
 * the server's queue of notifications fills up, because a listener does not
 * read, or when a tick is large, it is marked as unsent, and sent by later
 * passes, in order: publication goes on, and nobody else waits.
 */
#include "message.h"

#include "access/xact.h"
#include "commands/async.h"
#include "common/md5.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "compat.h"
#include "upkeep.h"

#define SLICE 1000     /* messages that are made at once */
#define SEND_MAX 10000 /* messages that one transaction sends */
#define QUEUE_PAGES 1048576
#define QUEUE_FULL 0.5 /* share of the server's queue that we fill at most */
#define CHANNEL_MAX (NAMEDATALEN - 1)
#define HASH_CHARS 32 /* of MD5 */

/* ---- who is bound ---- */

/* Bindings of this database, compiled, as of a generation. */
typedef struct Bindings
{
	uint64 generation;
	TqFilter *filters;
	int n;
} Bindings;

static MemoryContext bindings_context = NULL;
static Bindings bindings = {0};

static const char *
default_channel(TqExchange exchange)
{
	char *channel = psprintf("tq_%s", tq_exchange_name(exchange));

	for (char *c = channel; *c != '\0'; c++)
	{
		if (*c == '-')
			*c = '_';
	}
	return channel;
}

static void
compile(const TqBinding *list, int n)
{
	MemoryContext outer = MemoryContextSwitchTo(bindings_context);

	bindings.filters = palloc(sizeof(TqFilter) * Max(n, 1));
	for (int i = 0; i < n; i++)
		bindings.filters[i] =
			(TqFilter){.channel = list[i].channel != NULL
									  ? pstrdup(list[i].channel)
									  : default_channel(list[i].exchange),
					   .exchange = list[i].exchange,
					   .pattern = tq_topic_compile(list[i].pattern)};
	bindings.n = n;
	MemoryContextSwitchTo(outer);
}

/* Look again at the bindings if they have changed. */
static void
look_up_bindings(void)
{
	uint64 generation = tq_bindings_generation();
	TqBinding *list;
	int n;

	if (bindings.generation == generation)
		return;
	bindings.generation = 0;
	if (bindings_context == NULL)
		bindings_context = AllocSetContextCreate(CacheMemoryContext,
												 "tq bindings",
												 ALLOCSET_SMALL_SIZES);
	MemoryContextReset(bindings_context);
	(void) tq_bindings_wanted();
	list = tq_bindings_list(&n);
	compile(list, n);
	bindings.generation = generation;
}

/* ---- queue channels ---- */

/*
 * The channel of a queue is "tq_queue_" and its name.  A name that would make
 * it longer than a channel may be is cut, and its MD5 added.
 */
char *
tq_queue_channel_name(const char *task_queue_id)
{
	char *channel = psprintf(TQ_QUEUE_CHANNEL "%s", task_queue_id);
	char hash[HASH_CHARS + 1];
	const char *error = NULL;

	if (strlen(channel) <= CHANNEL_MAX)
		return channel;
	if (!pg_md5_hash(task_queue_id, strlen(task_queue_id), hash, &error))
		elog(ERROR, "could not compute MD5: %s", error);
	return psprintf("%.*s_%s", CHANNEL_MAX - HASH_CHARS - 1, channel, hash);
}

/* How many runs of a queue have become claimable. */
typedef struct Claimable
{
	char name[2 * NAMEDATALEN];
	int64 pending;
} Claimable;

static HTAB *
begin_claimable(void)
{
	HASHCTL control = {.keysize = 2 * NAMEDATALEN,
					   .entrysize = sizeof(Claimable),
					   .hcxt = CurrentMemoryContext};

	return hash_create("tq claimable",
					   64,
					   &control,
					   HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
}

static void
count_one(HTAB *claimable, const char *queue)
{
	bool found;
	Claimable *entry = hash_search(claimable, queue, HASH_ENTER, &found);

	entry->pending = found ? entry->pending + 1 : 1;
}

/* A run that is delayed is counted when it is due. */
static void
count_claimable(HTAB *claimable, const TqAddress *address)
{
	if (address->message->exchange == TQ_EXCHANGE_TASK_PENDING &&
		address->run->visible_at <= tq_clock_now())
		count_one(claimable, address->task->queue_name);
}

static void
notify_claimable(HTAB *claimable)
{
	HASH_SEQ_STATUS scan;
	Claimable *entry;

	hash_seq_init(&scan, claimable);
	while ((entry = hash_seq_search(&scan)) != NULL)
		Async_Notify(
			tq_queue_channel_name(entry->name),
			psprintf("{\"taskQueueId\": \"%s\", \"pending\": " INT64_FORMAT
					 "}",
					 entry->name,
					 entry->pending));
}

/*
 * These runs were delayed and are claimable now: tell those who listen to their
 * queues.  Their messages were told when they became pending.
 */
void
tq_deliver_claimable(const TqPending *rows, int n)
{
	HTAB *claimable;

	if (n == 0 ||
		(tq_shmem_listened() & tq_shmem_channel_bit(TQ_QUEUE_CHANNEL)) == 0)
		return;
	claimable = begin_claimable();
	for (int i = 0; i < n; i++)
		count_one(claimable, tq_queue_name(rows[i].queue));
	notify_claimable(claimable);
}

/* ---- telling ---- */

/* Tell one message on every channel that it goes to, each once. */
static void
notify(const TqAddress *address, uint64 listened)
{
	char *envelope = NULL;

	for (int i = 0; i < bindings.n; i++)
	{
		const TqFilter *filter = &bindings.filters[i];
		bool is_told = false;

		if (!(listened & tq_shmem_channel_bit(filter->channel)) ||
			!tq_filter_matches(filter, address))
			continue;
		for (int j = 0; j < i && !is_told; j++)
			is_told = strcmp(bindings.filters[j].channel, filter->channel) ==
						  0 &&
					  tq_filter_matches(&bindings.filters[j], address);
		if (is_told)
			continue;
		if (envelope == NULL)
			envelope = tq_message_envelope(address);
		Async_Notify(filter->channel, envelope);
	}
}

/* The exchanges that somebody may listen to, as bits. */
static int
listened_exchanges(uint64 listened)
{
	int exchanges = 0;

	for (int i = 0; i < bindings.n; i++)
	{
		if (listened & tq_shmem_channel_bit(bindings.filters[i].channel))
			exchanges |= 1 << bindings.filters[i].exchange;
	}
	if (listened & tq_shmem_channel_bit(TQ_QUEUE_CHANNEL))
		exchanges |= 1 << TQ_EXCHANGE_TASK_PENDING;
	return exchanges;
}

/*
 * What is made for one message is freed at once: a thousand of them would take
 * memory that the system has to clear each time.
 */
static void
tell_slice(const TqMessage *messages, int n, uint64 listened, HTAB *claimable)
{
	bool queues = (listened & tq_shmem_channel_bit(TQ_QUEUE_CHANNEL)) != 0;
	TqSource source;
	TqAddress address;
	MemoryContext one = AllocSetContextCreate(CurrentMemoryContext,
											  "tq message",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer;

	tq_message_source(messages, n, &source);
	outer = MemoryContextSwitchTo(one);
	for (int i = 0; i < n; i++)
	{
		MemoryContextReset(one);
		if (!tq_message_address(&source, &messages[i], &address))
			continue;
		notify(&address, listened);
		if (queues)
			count_claimable(claimable, &address);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(one);
}

/* NOTIFY for these messages, at the commit of this transaction. */
static void
tell(TqMessage *messages, int n, uint64 listened)
{
	HTAB *claimable = begin_claimable();
	MemoryContext slice = AllocSetContextCreate(CurrentMemoryContext,
												"tq delivery",
												ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(slice);
	int exchanges;
	int kept = 0;

	look_up_bindings();
	exchanges = listened_exchanges(listened);
	for (int i = 0; i < n; i++)
	{
		if (exchanges & (1 << messages[i].exchange))
			messages[kept++] = messages[i];
	}
	for (int i = 0; i < kept; i += SLICE)
	{
		tell_slice(messages + i, Min(kept - i, SLICE), listened, claimable);
		MemoryContextReset(slice);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(slice);
	notify_claimable(claimable);
}

/*
 * How many messages this transaction may send, which is none while the
 * server's queue of notifications is half full.  Each may take a page of it,
 * and as much is left to others; until 17 the queue had always 8 GB.
 */
static int
send_room(void)
{
	const char *pages = GetConfigOption("max_notify_queue_pages", true, false);
	double all = pages != NULL ? atoi(pages) : QUEUE_PAGES;
	double used = DatumGetFloat8(
		DirectFunctionCall1(pg_notification_queue_usage, (Datum) 0));
	double room = (QUEUE_FULL - used) * all / 2;

	return room < 1 ? 0 : (int) Min(room, SEND_MAX);
}

/*
 * Send what is left of a tick, up to max messages, or nothing if nobody
 * listens any more.  Returns how many messages that was.
 */
static int
tell_unsent(TqTick *tick, int max)
{
	uint64 listened = tq_shmem_listened();
	int n;
	TqMessage *messages = tq_messages_of_tick(tick, &n);
	int skip = Min((int) (tick->unsent - tick->first_id), n);

	n -= skip;
	if (listened == 0 || n <= max)
		tq_tick_set_unsent(tick, 0);
	else
	{
		n = max;
		tq_tick_set_unsent(tick, tick->unsent + n);
	}
	if (listened != 0)
		tell(messages + skip, n, listened);
	return n;
}

/*
 * Send what this and earlier passes have left, in order, as much as one
 * transaction may.  Returns how many messages; *more when there are others.
 */
static int64
tell_all_unsent(bool *more)
{
	int room = send_room();
	TqTick tick;
	int sent = 0;

	while ((*more = tq_tick_unsent(&tick)) && sent < room)
	{
		sent += tell_unsent(&tick, room - sent);
		CHECK_FOR_INTERRUPTS();
	}
	return sent;
}

/* ---- a pass ---- */

/* Tell of the groups of which these were the last tasks, with the next tick. */
static void
tell_groups(const TqMessage *messages, int n)
{
	int64 tasks[SLICE];
	int count = 0;

	if (!tq_publish_is_wanted(TQ_EXCHANGE_TASK_GROUP_RESOLVED))
		return;
	for (int i = 0; i < n; i++)
	{
		if (tq_publish_tells_of_group(&messages[i]))
			tasks[count++] = messages[i].task;
		if (count == SLICE || (i + 1 == n && count > 0))
		{
			tq_group_tell_resolved(tasks, count);
			count = 0;
		}
	}
}

/*
 * Publish what has become visible since the last tick; returns how many
 * messages.  The snapshot is taken before this transaction writes anything, so
 * that what it says itself, of groups, comes after it; who listens is asked
 * after that (shmem.c).
 */
static int64
publish(const TqTick *last, bool unsent)
{
	uint64 listened;
	TimestampTz ring_since;
	TqTick tick = {.place = tq_ring_current(&ring_since),
				   .since = last->upto,
				   .upto = tq_snapshot_now()};
	int n;
	TqMessage *messages =
		tq_messages_between(tick.since, tick.upto, &n, &tick.places);

	if (n == 0)
		return 0;
	listened = tq_shmem_listened();
	tick.published = tq_clock_now();
	tell_groups(messages, n);
	tick.messages = tq_messages_count(messages, n);
	tick.unsent = listened != 0 && (unsent || tick.messages > send_room());
	tq_tick_insert(&tick, listened != 0);
	n = tq_messages_number(messages, n, &tick);
	if (listened != 0 && tick.unsent == 0)
		tell(messages, n, listened);
	return n;
}

/*
 * One pass; returns how many messages it published, or sent of those that
 * were left unsent.  *more when something is left to be sent, which has to
 * wait a moment when nothing was.
 */
int64
tq_deliver_pass(bool *more)
{
	TqTick last;
	TqTick unsent;
	int64 published;

	if (tq_upkeep_is_in_block() ||
		TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return 0;
	if (!tq_publisher_try_lock())
	{
		*more = true;
		return 0;
	}
	tq_tick_last(&last);
	*more = tq_tick_unsent(&unsent);
	published = publish(&last, *more);
	if (*more)
		published = tell_all_unsent(more);
	return published;
}
