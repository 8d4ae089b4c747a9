/*
 * publisher.c
 *	  The publisher: gives committed messages their ids, and notifies
 *	  listeners.
 *
 * A pass is one transaction of the maintenance worker, or of upkeep():
 *
 *	  take the publisher's lock, and read the last tick;
 *	  read, in pages, what is visible now and was not in that tick;
 *	  for each page write the tick that gives it ids, and append, for the next
 *	  pass, the messages of the groups that it completes;
 *	  NOTIFY, in the same transaction.
 *
 * So a message has an id as soon as it can be read, and no lower id appears
 * later, not even after a crash (tick_table.c).  NOTIFY is sent if and only
 * if the tick is committed; after a crash at any point the pass is repeated.
 * Messages that a transaction wrote earlier and committed later come with the
 * tick after its commit.
 *
 * A pass publishes at most PASS_PAGES pages, or CALL_PAGES where no other pass
 * is certain to follow, and more only where it took long to sort them.  If
 * there is more, the last tick says where the next pass continues with the
 * same snapshot.  What became visible meanwhile waits until that snapshot is
 * worked off, because it may depend on it.
 *
 * The first messages of most tasks are derived from the tasks (outbox_table.c),
 * which are found by their numbers: below a mark, no creation was in progress when
 * the snapshot of the last tick was taken, except some that are listed
 * (numbers.c, tick_table.c).  The transaction that a task names says, as that of a
 * row of messages, whether the task was published: so it does no harm to read
 * it again, and it is not read too late.
 *
 * Only messages of other transactions are published: a pass in a transaction
 * that has written something would give ids to its messages while it writes
 * more.  Nothing is published inside a transaction block, where the
 * publisher's lock would be held until the client commits, and not only for
 * one statement.
 *
 * NOTIFY is sent here and nowhere else, for channels on which a session may
 * LISTEN (database.c).  When the notification queue of the server fills up,
 * because a listener does not read, or when a tick is large, the tick is
 * marked as unsent and sent by later passes, in order: publication continues,
 * and no other session waits.  The same is done where there are synchronous
 * standbys, because a listener must not know an id before they have it: a pass
 * sends the ticks that were committed before it began and that the standbys
 * have flushed.  It waits for them for at most WAIT_MS, so that the
 * maintenance worker continues with its other steps while they are away.
 *
 * A message that cannot be built, because it is too large or its task cannot
 * be read, is sent without its payload, or with nothing but its id, and does
 * not stop the others (message_json.c).  Each slice of messages is sent in a
 * subtransaction.  If that fails, the messages before the failed one are sent
 * again, and the failed one by itself.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "commands/async.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "../core/names.h"
#include "events.h"

#define SLICE 1000          /* messages that are built together */
#define SEND_MAX 10000      /* messages that one transaction sends */
#define PASS_PAGES 25       /* of one transaction of the maintenance worker */
#define CALL_PAGES 500      /* of one call of upkeep() */
#define READ_AGAIN 3000     /* numbers, before a tick without messages */
#define WAIT_MS 50          /* for synchronous standbys */
#define QUEUE_PAGES 1048576 /* of the notification queue, before 17 */
#define QUEUE_FULL 0.5      /* most of the notification queue that we fill */

/* ---- bindings ---- */

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

/* Reads the bindings again if they have changed. */
static void
refresh_bindings(void)
{
	uint64 generation = *tq_bindings_generation;
	TqBinding *list;
	int n;
	MemoryContext outer;

	if (bindings.generation == generation)
		return;
	tq_bindings_watch();
	bindings.generation = 0;
	if (bindings_context == NULL)
		bindings_context = AllocSetContextCreate(CacheMemoryContext,
												 "tq bindings",
												 ALLOCSET_SMALL_SIZES);
	MemoryContextReset(bindings_context);
	(void) tq_bindings_wanted();
	list = tq_bindings_list(&n);
	/* Replace the compiled bindings of this process. */
	outer = MemoryContextSwitchTo(bindings_context);
	bindings.filters = palloc(sizeof(TqFilter) * Max(n, 1));
	for (int i = 0; i < n; i++)
		bindings.filters[i] =
			(TqFilter){.channel = list[i].channel != NULL
									  ? pstrdup(list[i].channel)
									  : default_channel(list[i].exchange),
					   .is_default = list[i].channel == NULL,
					   .exchange = list[i].exchange,
					   .pattern = tq_topic_compile(list[i].pattern)};
	bindings.n = n;
	MemoryContextSwitchTo(outer);
	bindings.generation = generation;
}

/* ---- what listeners learn ---- */

/*
 * Returns whether applications share this database: whether a role has rights to
 * a part of the queues.  Every role may LISTEN, also those that must not see what
 * the others do.
 */
static bool
is_shared(void)
{
	static uint64 generation = 0; /* of the grants that the answer is about */
	static bool answer = false;
	uint64 present = *tq_grants_generation;

	if (generation == present)
		return answer;
	tq_grants_watch();
	generation = 0;
	answer = tq_grants_are_partial();
	generation = present;
	return answer;
}

/* Returns what a channel carries; one that a role has bound carries all. */
static TqNotifyPayload
payload_on(const TqFilter *filter)
{
	if (tq_notify_payload != TQ_NOTIFY_AUTO)
		return (TqNotifyPayload) tq_notify_payload;
	return filter->is_default && is_shared() ? TQ_NOTIFY_IDS : TQ_NOTIFY_FULL;
}

/* ---- queue channels ---- */

/* How many runs of a queue have become claimable. */
typedef struct Claimable
{
	char name[2 * NAMEDATALEN];
	int64 pending;
} Claimable;

static void
count_some(HTAB *claimable, const char *queue, int64 runs)
{
	bool found;
	Claimable *entry = hash_search(claimable, queue, HASH_ENTER, &found);

	entry->pending = found ? entry->pending + runs : runs;
}

static void
count_notes(HTAB *claimable, const TqMessage *notes, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (tq_outbox_is_claimable_note(&notes[i]))
			count_some(claimable, tq_queue_name((int32) notes[i].task),
					   notes[i].run_id);
	}
}

/*
 * Returns the payload of a queue's channel.  A listener knows the queue, whose
 * name is that of the channel, so that tq.notify_payload = ids hides nothing.
 */
static char *
claimable_payload(const Claimable *entry)
{
	switch ((TqNotifyPayload) tq_notify_payload)
	{
		case TQ_NOTIFY_AUTO:
		case TQ_NOTIFY_FULL:
		case TQ_NOTIFY_IDS:
			return psprintf(
				"{\"taskQueueId\": \"%s\", \"pending\": " INT64_FORMAT "}",
				entry->name, entry->pending);
		case TQ_NOTIFY_OFF:
			break;
	}
	return pstrdup("");
}

static void
notify_claimable(HTAB *claimable)
{
	HASH_SEQ_STATUS scan;
	Claimable *entry;

	hash_seq_init(&scan, claimable);
	while ((entry = hash_seq_search(&scan)) != NULL)
		Async_Notify(tq_queue_channel_name(entry->name),
					 claimable_payload(entry));
}

/* ---- sending ---- */

/* Messages that are sent together. */
typedef struct PublisherSlice
{
	const TqMessage *messages;
	int n;
	int next;    /* the message that is sent now */
	int end;     /* send up to here */
	int counted; /* claimable runs are counted up to here */
	uint64 listened;
	HTAB *claimable; /* NULL: no session listens to a queue */
	TqSource source;
	MemoryContext one; /* memory for one message */
} PublisherSlice;

/* Notifies each channel that a message is bound to, once. */
static void
notify(const TqAddress *address, uint64 listened)
{
	char *envelopes[TQ_NOTIFY_OFF + 1] = {NULL};

	for (int i = 0; i < bindings.n; i++)
	{
		const TqFilter *filter = &bindings.filters[i];
		TqNotifyPayload payload;
		bool must_exit = false;

		if (!(listened & tq_listener_channel_bit(filter->channel)) ||
			!tq_filter_matches(filter, address))
			continue;
		for (int j = 0; j < i && !must_exit; j++)
			must_exit = strcmp(bindings.filters[j].channel, filter->channel) ==
							0 &&
						tq_filter_matches(&bindings.filters[j], address);
		if (must_exit)
			continue;
		payload = payload_on(filter);
		if (envelopes[payload] == NULL)
			envelopes[payload] = tq_message_envelope(address, payload);
		Async_Notify(filter->channel, envelopes[payload]);
	}
}

/* Returns the exchanges to which a session may listen, as bits. */
static int
listened_exchanges(uint64 listened)
{
	int exchanges = 0;

	for (int i = 0; i < bindings.n; i++)
	{
		if (listened & tq_listener_channel_bit(bindings.filters[i].channel))
			exchanges |= 1 << bindings.filters[i].exchange;
	}
	if (listened & tq_listener_channel_bit(TQ_QUEUE_CHANNEL))
		exchanges |= 1 << TQ_EXCHANGE_TASK_PENDING;
	return exchanges;
}

/*
 * Sends the present message of a slice, and counts its run if that is
 * claimable.  A message that is sent again is not counted again.
 */
static void
notify_address(const TqAddress *address, void *arg)
{
	PublisherSlice *slice = (PublisherSlice *) arg;

	notify(address, slice->listened);
	if (slice->claimable != NULL && slice->next >= slice->counted)
	{
		/*
		 * Count the run of a message as claimable.  A delayed run is left out;
		 * when it is due, a note counts it.
		 */
		if (address->task != NULL && address->run != NULL &&
			address->message->exchange == TQ_EXCHANGE_TASK_PENDING &&
			(address->run->detail == NULL ||
			 address->run->detail->budget.visible_at <= tq_clock_now()))
			count_some(slice->claimable, address->task->named.queue_name, 1);
		slice->counted = slice->next + 1;
	}
}

static void
publisher_read_source(void *arg)
{
	PublisherSlice *slice = (PublisherSlice *) arg;

	tq_message_source(slice->messages, slice->n, &slice->source);
}

/*
 * Sends the messages of a slice from `next` to `end`.  Frees the memory of
 * each at once: a thousand of them would take memory that the operating system
 * has to clear each time.
 */
static void
notify_range(void *arg)
{
	PublisherSlice *slice = (PublisherSlice *) arg;
	TqAddress address;
	MemoryContext outer = MemoryContextSwitchTo(slice->one);

	for (; slice->next < slice->end; slice->next++)
	{
		MemoryContextReset(slice->one);
		if (tq_message_address(&slice->source, &slice->messages[slice->next],
							   &address))
			notify_address(&address, slice);
	}
	MemoryContextSwitchTo(outer);
}

/*
 * Sends all messages of a slice.  A failed attempt has sent nothing, so the
 * messages before the failed one are sent again, and then the failed one by
 * itself.
 */
static void
notify_slice(PublisherSlice *slice)
{
	bool has_source = tq_attempt(publisher_read_source, slice) == NULL;
	int done = 0;

	slice->end = slice->n;
	while (done < slice->n)
	{
		slice->next = done;
		if (has_source && tq_attempt(notify_range, slice) == NULL)
		{
			done = slice->end;
			slice->end = slice->n;
		}
		else if (!has_source || slice->next == done)
		{
			MemoryContext outer;

			slice->next = done++;
			/*
			 * Send one message by itself, with as much of it as can be built.
			 */
			outer = MemoryContextSwitchTo(slice->one);
			MemoryContextReset(slice->one);
			tq_message_alone(&slice->messages[slice->next], notify_address,
							 slice);
			slice->next++;
			MemoryContextSwitchTo(outer);
			slice->end = slice->n;
		}
		else
			slice->end = slice->next;
	}
}

/* Sends NOTIFY for these messages and notes when this transaction commits. */
static void
publisher_notify(TqMessage *messages, int n, const TqMessage *notes,
				 int nnotes, uint64 listened)
{
	bool queues = (listened & tq_listener_channel_bit(TQ_QUEUE_CHANNEL)) != 0;
	HASHCTL control = {.keysize = 2 * NAMEDATALEN,
					   .entrysize = sizeof(Claimable),
					   .hcxt = CurrentMemoryContext};
	HTAB *claimable = hash_create("tq claimable", 64, &control,
								  HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext,
												 "tq delivery",
												 ALLOCSET_DEFAULT_SIZES);
	MemoryContext one = AllocSetContextCreate(CurrentMemoryContext,
											  "tq message",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(memory);
	int exchanges;
	int kept = 0;

	refresh_bindings();
	exchanges = listened_exchanges(listened);
	for (int i = 0; i < n; i++)
	{
		if (exchanges & (1 << messages[i].exchange))
			messages[kept++] = messages[i];
	}
	for (int i = 0; i < kept; i += SLICE)
	{
		PublisherSlice slice = {.messages = messages + i,
								.n = Min(kept - i, SLICE),
								.listened = listened,
								.claimable = queues ? claimable : NULL,
								.one = one};

		notify_slice(&slice);
		MemoryContextReset(memory);
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(memory);
	MemoryContextDelete(one);
	if (queues)
		count_notes(claimable, notes, nnotes);
	notify_claimable(claimable);
	if (listened & tq_listener_channel_bit(TQ_WORKER_CHANNEL))
		tq_worker_channel_notify(notes, nnotes);
}

/*
 * Returns how many messages this transaction may send, which is none while the
 * notification queue of the server is half full.  A message may take a page of
 * the queue; half of the pages that may be filled are left to other sessions.
 * Before PostgreSQL 17 the size of the queue is fixed: 8 GB.
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

/* What a pass may still send. */
typedef struct Notification
{
	uint64 listened; /* channels, as bits; 0: no session listens */
	int room;        /* messages that may be sent */
	bool later;      /* mark what is published as unsent */
} Notification;

/*
 * Sends what is left of a tick, as far as there is room, or only unmarks it if
 * no session listens any more.  Returns how many messages that was, at least
 * 1.
 */
static int
notify_unsent(TqTick *tick, Notification *notification)
{
	int n;
	int nnotes;
	TqMessage *notes;
	TqMessage *messages = tq_messages_of_tick(tick, &n, &notes, &nnotes);
	int skip = Min((int) (tick->unsent - tick->first_id), n);

	n -= skip;
	if (notification->listened == 0 || n <= notification->room)
		tq_tick_set_unsent(tick, 0);
	else
	{
		n = notification->room;
		tq_tick_set_unsent(tick, tick->unsent + n);
	}
	if (notification->listened == 0)
		return 1;
	nnotes = skip == 0 ? nnotes : 0;
	publisher_notify(messages + skip, n, notes, nnotes,
					 notification->listened);
	notification->room -= n + nnotes;
	return Max(n, 1);
}

/* The last transaction in which this process has published. */
static FullTransactionId own_xid = {0};

/* Returns a position in the WAL behind the commit of that tick. */
static XLogRecPtr
commit_of(const TqTick *tick)
{
	if (FullTransactionIdIsValid(own_xid) &&
		FullTransactionIdEquals(tick->xid, own_xid))
		return XactLastCommitEnd;
	return tq_durable_here();
}

/*
 * Returns the last id of the ticks that all synchronous standbys have; `last`
 * is the last tick that was committed when this pass began.  Keeps the WAL
 * position to wait for until they have reached it, because a position that is
 * taken again each time would move away from them on a busy server.
 */
static int64
durable_upto(const TqTick *last, int max_ms)
{
	static XLogRecPtr goal = InvalidXLogRecPtr;
	static int64 goal_id = 0;

	if (!tq_durable_has_standbys())
		return last->last_id;
	if (goal == InvalidXLogRecPtr || goal_id > last->last_id)
	{
		goal = commit_of(last);
		goal_id = last->last_id;
	}
	if (!tq_durable_within(goal, max_ms))
		return 0;
	goal = InvalidXLogRecPtr;
	return goal_id;
}

/*
 * Sends what this and earlier passes have left, in order, up to that tick.
 * Returns how much; sets *more if something is left.
 */
static int64
notify_all_unsent(Notification *notification, int64 upto, bool *more)
{
	TqTick tick;
	int64 sent = 0;

	while ((*more = tq_tick_unsent(&tick)) && tick.last_id <= upto &&
		   notification->room > 0)
	{
		sent += notify_unsent(&tick, notification);
		CHECK_FOR_INTERRUPTS();
	}
	return sent;
}

/* ---- a pass ---- */

/*
 * Appends the messages of the groups that these messages complete; the next
 * tick publishes them.
 */
static void
publish_groups(const TqMessage *messages, int n)
{
	int64 tasks[SLICE];
	int count = 0;

	if (!tq_outbox_is_wanted(TQ_EXCHANGE_TASK_GROUP_RESOLVED))
		return;
	for (int i = 0; i < n; i++)
	{
		if (tq_outbox_concerns_group(&messages[i]))
			tasks[count++] = messages[i].task;
		if (count == SLICE || (i + 1 == n && count > 0))
		{
			tq_group_resolution_append(tasks, count);
			count = 0;
		}
	}
}

/*
 * Returns when the timer that a transition has left to the publisher with this
 * message is due: that of a claim long before the claim expires
 * (timer_table.c).
 */
static TimestampTz
timer_due(const TqMessage *message, TimestampTz now)
{
	if (message->exchange != TQ_EXCHANGE_TASK_RUNNING)
		return message->due;
	return tq_policy_check_claim(now, message->due, now);
}

/*
 * Inserts the timers of one kind that transitions have left to the publisher
 * with messages of this exchange.  Timers of a minute share a row, which is due
 * at the first of them: most of the tasks will be resolved by then.
 */
static void
publisher_insert_timers(const TqMessage *messages, int n, TqExchange exchange,
						TqTimer kind, int64 early_ms)
{
	TqTimerEntry *entries = palloc(sizeof(TqTimerEntry) * Max(n, 1));
	TimestampTz now = tq_clock_now();
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		if (messages[i].due != 0 && messages[i].exchange == exchange)
			entries[count++] = (TqTimerEntry){timer_due(&messages[i], now),
											  messages[i].task};
	}
	tq_timers_insert_early(kind, entries, count, early_ms);
}

/*
 * Inserts the timers that belong to these messages.  With tq.deadline_delay,
 * deadlines do not share rows, because any timer ends a task whose deadline has
 * passed.
 */
static void
insert_left_timers(const TqMessage *messages, int n)
{
	publisher_insert_timers(messages, n, TQ_EXCHANGE_TASK_DEFINED,
							TQ_TIMER_DEADLINE,
							tq_deadline_delay > 0 ? 0 : TQ_EARLY_MS);
	publisher_insert_timers(messages, n, TQ_EXCHANGE_TASK_RUNNING,
							TQ_TIMER_CLAIM, TQ_EARLY_MS);
}

/*
 * Inserts the same timers for what is not published, so that a call of
 * upkeep() that cannot publish, such as one in a transaction block, takes them
 * nevertheless.  The publisher will insert them again.
 */
void
tq_publisher_watch_unpublished(void)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext,
												 "tq timers left",
												 ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer;
	TqTick last;
	TqRows cursor;
	int n;

	tq_tick_last(&last);
	cursor = tq_messages_open_without_timer(&last);
	outer = MemoryContextSwitchTo(memory);
	do
	{
		TqMessage *messages = tq_messages_some(cursor, &n);

		insert_left_timers(messages, n);
		MemoryContextReset(memory);
		CHECK_FOR_INTERRUPTS();
	} while (n > 0);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(memory);
	tq_spi_rows_close(cursor);
}

/*
 * Publishes a page with that tick, and sets the remaining fields of the tick;
 * `last` is the last tick that was committed when this pass began.
 */
static void
publish_page(const TqMessagePage *page, const TqTick *last, TqTick *tick,
			 Notification *notification)
{
	int nnotes;
	TqMessage *notes = tq_messages_notes(page->messages, page->n, &nnotes);
	int n;

	tick->published = tq_clock_now();
	tick->segments = page->segments;
	tick->derived = page->derived;
	if (page->derived > 0)
		tick->segments |= 1 << tick->segment;
	publish_groups(page->messages, page->n);
	insert_left_timers(page->messages, page->n);
	tick->messages = tq_messages_count(page->messages, page->n);
	notification->later = notification->later || page->n > notification->room;
	tick->unsent = notification->listened != 0 && notification->later &&
				   page->n > 0;
	tq_tick_insert(tick, last, notification->listened != 0);
	if (page->derived > 0)
		tq_messages_insert_derived(tick, page->messages, page->n);
	own_xid = GetTopFullTransactionId();
	n = tq_messages_number(page->messages, page->n, tick);
	if (notification->listened == 0 || notification->later)
		return;
	publisher_notify(page->messages, n, notes, nnotes, notification->listened);
	notification->room -= page->n;
}

/*
 * Returns the tick of a page.  It covers all that became visible between the
 * last tick and the snapshot `goal`, or a part of that, behind the row
 * after_seq.  After the last part only these creations may be left.
 */
static TqTick
tick_of(const TqMessagePage *page, const TqTick *last, Datum goal,
		const TqCreations *creations, bool is_part, int64 after_seq)
{
	TqTick tick = {.segment = last->segment,
				   .since = last->upto,
				   .upto = page->is_last ? goal : last->upto,
				   .part_of = page->is_last ? (Datum) 0 : goal,
				   .creations = page->is_last ? *creations : last->creations};

	if (!is_part)
		return tick;
	tick.after_seq = after_seq;
	tick.upto_seq = page->n > 0 ? page->last_seq : after_seq;
	tick.xids = page->xids;
	return tick;
}

/*
 * Returns whether a pass has published enough.  Its first page includes the
 * time to sort all that is to be published.  The pass continues for as long as
 * that took, because otherwise most of the work on a large backlog would be
 * sorting.
 */
static bool
is_enough(int pages, TimestampTz began, int64 first_us)
{
	int max = MyBackendType == B_BG_WORKER ? PASS_PAGES : CALL_PAGES;

	return pages >= max && tq_clock_now() - began >= 2 * first_us;
}

/*
 * Publishes what has become visible since the last tick, or continues with the
 * snapshot that the last tick has published a part of.  Returns the number of
 * messages and notes; sets *more if there are others.  Takes a snapshot before
 * this transaction writes anything, so that the messages of groups that it
 * appends belong to the next tick.  Reads which sessions listen after that
 * (database.c).
 */
static int64
publisher_publish(TqTick *last, Notification *notification, bool *more)
{
	bool is_part = last->part_of != (Datum) 0;
	int64 after_seq = is_part ? last->upto_seq : PG_INT64_MIN;
	TqCreations creations = is_part ? last->creations
									: tq_tick_creations(last);
	Datum goal = is_part ? last->part_of : tq_snapshot_now();
	TqRows cursor = tq_messages_open(last, goal, after_seq);
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext,
												 "tq publication",
												 ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(memory);
	TimestampTz segment_since;
	TqMessagePage page = {.is_last = false};
	TimestampTz began = tq_clock_now();
	int64 first_us = 0;
	int64 published = 0;

	notification->listened = tq_listener_channels();
	notification->room = notification->listened != 0 ? send_room() : SEND_MAX;
	last->segment = tq_segment_current(&segment_since);
	for (int i = 0; !page.is_last && !is_enough(i, began, first_us); i++)
	{
		TqTick tick;

		MemoryContextReset(memory);
		tq_messages_page(cursor, &page);
		is_part = is_part || !page.is_last;
		/*
		 * Where nothing is wanted, each pass would read all tasks again; and
		 * where numbers were set back, others read by the mark of the tick.
		 */
		if (page.n == 0 && !is_part && last->creations.low != TQ_NO_MARK &&
			creations.low < last->creations.low + READ_AGAIN)
			break;
		published += Max(page.n, 1);
		tick = tick_of(&page, last, goal, &creations, is_part, after_seq);
		publish_page(&page, last, &tick, notification);
		after_seq = tick.upto_seq;
		if (i == 0)
			first_us = tq_clock_now() - began;
		CHECK_FOR_INTERRUPTS();
	}
	tq_spi_rows_close(cursor);
	*more = !page.is_last;
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(memory);
	return published;
}

/*
 * Does one pass.  Returns how many messages it has published, and sent of
 * those that were left unsent; sets *more if something is left.  If it returns
 * 0 with *more set, the caller should wait a moment before the next pass.
 * Does nothing in a transaction block or in a transaction that has written
 * something, and does not wait for the publisher's lock, which it keeps only if
 * it has published or sent something.
 */
int64
tq_publisher_pass(bool *more)
{
	TqTick last;
	TqTick unsent;
	Notification notification;
	int64 published;
	bool was_unsent;
	bool has_unsent;
	bool has_others;

	if (tq_publisher_is_in_block() ||
		TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return 0;
	if (!tq_publisher_try_lock())
	{
		*more = true;
		return 0;
	}
	tq_tick_last(&last);
	was_unsent = tq_tick_unsent(&unsent);
	notification.later = was_unsent || tq_durable_has_standbys();
	published = publisher_publish(&last, &notification, &has_others);
	has_unsent = published > 0 && notification.listened != 0 &&
				 notification.later;
	if (was_unsent)
		published +=
			notify_all_unsent(&notification,
							  durable_upto(&last, published > 0 ? 0 : WAIT_MS),
							  &has_unsent);
	*more = has_others || has_unsent;
	if (published == 0)
		tq_publisher_unlock();
	return published;
}

/* Whether the present pass is part of a transaction block of the caller. */
static bool is_in_block = false;

/* Records whether the pass that begins is part of a transaction block. */
void
tq_publisher_set_block(bool in_block)
{
	is_in_block = in_block;
}

/* Returns whether the present pass is part of a transaction block. */
bool
tq_publisher_is_in_block(void)
{
	return is_in_block;
}
