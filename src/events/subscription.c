/*
 * subscription.c
 *	  Reading of the message log, and of durable subscriptions.
 *
 * Decides which messages a reader gets, in the order of their ids.  A
 * subscription consists of its bindings and a mark, the id up to which it has
 * acknowledged messages.  Reading it changes nothing, so messages that are not
 * acknowledged are returned again.
 *
 * A single reader that processes and acknowledges messages in one transaction
 * processes each message exactly once.  Two readers may get the same messages,
 * because the second reads while the commit of the first is in progress.  An
 * acknowledgement moves the mark from where the reader found it, under the
 * lock of the row of the subscription, so the second reader waits for the
 * first and then finds that the mark has moved.  If the first has committed
 * early enough, the second sees the new mark without a wait; for that case a
 * transaction remembers what it has fetched.  Either way ack() fails for the
 * second reader.  A repeated acknowledgement, in a transaction that has
 * fetched nothing, has no effect.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/xid8.h"

#include "events.h"

#define TICKS 20         /* ticks read at once */
#define SLICE 1000       /* most messages examined at once */
#define SLICE_MIN 20     /* fewest; doubled while few of them match */
#define LOOK_MAX 1000000 /* messages that one fetch examines */

/*
 * A fetch acknowledges messages that its subscription does not match if there
 * are this many ids of them, or if the last acknowledgement is this long ago.
 */
#define SKIP_AFTER 1000
#define SKIP_AFTER_MS 60000

/* ---- subscriptions ---- */

static void
subscription_refuse_missing(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_NOT_FOUND),
			 errmsg("subscription \"%s\" does not exist", tq_error_clip(name)),
			 errdetail("It was never made, or it was ended."),
			 errhint("Call tq.subscribe() first.")));
}

/* What this transaction has fetched from a subscription. */
typedef struct Fetched
{
	char *name;
	int64 acked_id; /* mark of the subscription then */
	int64 first;    /* lowest id that was fetched */
	struct Fetched *next;
} Fetched;

static Fetched *fetched = NULL;

static void
forget_fetched(void *arg)
{
	fetched = NULL;
}

static Fetched *
find_fetched(const char *name)
{
	Fetched *each = fetched;

	while (each != NULL && strcmp(each->name, name) != 0)
		each = each->next;
	return each;
}

/* Remembers what was fetched, until the transaction ends. */
static void
note_fetched(const char *name, int64 acked_id, int64 first)
{
	MemoryContext outer = MemoryContextSwitchTo(TopTransactionContext);
	Fetched *each = find_fetched(name);
	MemoryContextCallback *callback;

	if (fetched == NULL)
	{
		callback = palloc(sizeof(MemoryContextCallback));
		callback->func = forget_fetched;
		MemoryContextRegisterResetCallback(TopTransactionContext, callback);
	}
	if (each == NULL)
	{
		each = palloc(sizeof(Fetched));
		*each = (Fetched){.name = pstrdup(name),
						  .acked_id = acked_id,
						  .first = first,
						  .next = fetched};
		fetched = each;
	}
	each->first = Min(each->first, first);
	MemoryContextSwitchTo(outer);
}

/*
 * Returns whether another transaction has acknowledged messages that this one
 * has fetched, by the mark that was read just now.  A mark that this
 * transaction has moved does not count, because its row has been locked since.
 */
static bool
is_taken(const char *name, const TqSubscriptionPosition *acked_id)
{
	const Fetched *own = find_fetched(name);

	return own != NULL && !acked_id->is_own && acked_id->id != own->acked_id &&
		   acked_id->id >= own->first;
}

static void
refuse_taken(const char *name, int64 before, int64 acked_id)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
		 errmsg(
			 "messages of subscription \"%s\" were acknowledged by another transaction",
			 tq_error_clip(name)),
		 errdetail(
			 "It had acknowledged those up to %lld, and now has those up to %lld.",
			 (long long) before, (long long) acked_id),
		 errhint("Roll this transaction back, and call tq.fetch() again.")));
}

/*
 * Acknowledges the messages up to that id.  If another transaction has moved
 * the mark since it was read, raises an error, unless this transaction has
 * fetched and the mark is still before what it fetched.  Waits for the lock of
 * the row of the subscription.
 */
void
tq_subscribe_ack(const char *name, int64 id, TimestampTz now)
{
	const Fetched *own = find_fetched(name);
	TqSubscriptionPosition acked_id;
	int64 before;
	int64 last_id;

	if (!tq_subscription_find(name, &acked_id))
		subscription_refuse_missing(name);
	last_id = tq_message_last_id();
	/* The id may have been given by a server whose place this one has taken. */
	if (id > last_id)
		last_id = Max(last_id, tq_tick_shown_id());
	if (id > last_id)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("message %lld has not been published", (long long) id),
				 errdetail("The last one is %lld.", (long long) last_id),
				 errhint(
					 "Give the id of the last message that was fetched.")));
	if (is_taken(name, &acked_id))
		refuse_taken(name, own->acked_id, acked_id.id);
	while (id > acked_id.id &&
		   !tq_subscription_ack(name, id, acked_id.id, now))
	{
		before = acked_id.id;
		if (!tq_subscription_find(name, &acked_id))
			subscription_refuse_missing(name);
		if (own == NULL || is_taken(name, &acked_id))
			refuse_taken(name, before, acked_id.id);
	}
}

/* ---- reading ---- */

/* What a reader wants, and how far it has come. */
typedef struct Reading
{
	const TqFilter *filters;
	int nfilters;
	int left; /* messages that it may still get */
	TqReceiver receive;
	void *arg;
	bool shown; /* the messages are shown to a client */
	int64 upto; /* the last id that was examined */
	int64 end;  /* stop when this id has been examined */
	int64 examined;
} Reading;

static bool
may_want(const Reading *reading, const TqMessage *message)
{
	for (int i = 0; i < reading->nfilters; i++)
	{
		if (reading->filters[i].exchange == TQ_EXCHANGE_NONE ||
			reading->filters[i].exchange == message->exchange)
			return true;
	}
	return false;
}

static bool
wants(const Reading *reading, const TqAddress *address)
{
	for (int i = 0; i < reading->nfilters; i++)
	{
		if (tq_filter_matches(&reading->filters[i], address))
			return true;
	}
	return false;
}

/* Messages that are examined together. */
typedef struct SubscriptionSlice
{
	Reading *reading;
	const TqMessage *messages;
	int n;
	int next;
	TqSource source;
	MemoryContext one; /* memory for one message */
} SubscriptionSlice;

static void
subscription_read_source(void *arg)
{
	SubscriptionSlice *slice = (SubscriptionSlice *) arg;

	tq_message_source(slice->messages, slice->n, &slice->source);
}

static void
receive_wanted(const TqAddress *address, void *arg)
{
	Reading *reading = (Reading *) arg;

	if (!wants(reading, address))
		return;
	reading->receive(address, reading->arg);
	reading->left--;
}

/* Gives the reader the messages that it wants, from slice->next on. */
static void
read_range(void *arg)
{
	SubscriptionSlice *slice = (SubscriptionSlice *) arg;
	TqAddress address;
	MemoryContext outer = MemoryContextSwitchTo(slice->one);

	for (; slice->next < slice->n && slice->reading->left > 0; slice->next++)
	{
		MemoryContextReset(slice->one);
		if (tq_message_address(&slice->source, &slice->messages[slice->next],
							   &address))
			receive_wanted(&address, slice->reading);
	}
	MemoryContextSwitchTo(outer);
}

/*
 * Gives the reader those of these messages that it wants.  A message that
 * cannot be built is given by itself, with as much of it as can be built; the
 * reader keeps what it got before.
 */
static void
read_slice(Reading *reading, const TqMessage *messages, int n)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext,
												 "tq slice",
												 ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(memory);
	SubscriptionSlice slice =
		{.reading = reading,
		 .messages = messages,
		 .n = n,
		 .one = AllocSetContextCreate(memory, "tq message",
									  ALLOCSET_DEFAULT_SIZES)};
	bool has_source = tq_attempt(subscription_read_source, &slice) == NULL;

	while (slice.next < n && reading->left > 0 &&
		   (!has_source || tq_attempt(read_range, &slice) != NULL))
		tq_message_alone(&messages[slice.next++], receive_wanted, reading);
	if (slice.next > 0)
		reading->upto = messages[slice.next - 1].id;
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(memory);
}

/*
 * Gives the reader those of these messages that it wants.  They are the
 * messages of some ticks, of which the first may have been read in part.
 */
static void
read_messages(Reading *reading, TqMessage *messages, int n)
{
	int64 last = n > 0 ? messages[n - 1].id : reading->upto;
	int step = Max(SLICE_MIN, reading->left);
	int kept = 0;

	for (int i = 0; i < n; i++)
	{
		if (messages[i].id > reading->upto && may_want(reading, &messages[i]))
			messages[kept++] = messages[i];
	}
	for (int i = 0; i < kept && reading->left > 0; i += step, step *= 2)
	{
		step = Min(step, SLICE);
		read_slice(reading, messages + i, Min(kept - i, step));
	}
	if (reading->left > 0)
		reading->upto = Max(reading->upto, last);
}

/*
 * Reads the messages of a few ticks, so that the tasks of many messages are
 * read at once.  Returns the number of ticks.
 */
static int
subscription_collect(const TqTick *ticks, int nticks, TqMessage **messages,
					 int *n)
{
	int room = SLICE;
	int used = 0;

	*messages = palloc(sizeof(TqMessage) * room);
	*n = 0;
	while (used < nticks && *n < SLICE)
	{
		int more;
		TqMessage *part = tq_messages_of_tick(&ticks[used++], &more, NULL,
											  NULL);

		while (*n + more > room)
			*messages = repalloc_huge(*messages,
									  sizeof(TqMessage) * (room *= 2));
		memcpy(*messages + *n, part, sizeof(TqMessage) * more);
		*n += more;
		pfree(part);
	}
	return used;
}

/*
 * Reads the log until the reader has enough, the log ends, or the id
 * `end` or about max_examined messages have been examined.
 */
static void
read_log(Reading *reading, int64 max_examined)
{
	MemoryContext part = AllocSetContextCreate(CurrentMemoryContext,
											   "tq reading",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(part);
	int nticks;

	do
	{
		TqTick *ticks = tq_ticks_after(reading->upto, TICKS, reading->shown,
									   &nticks);

		for (int i = 0; i < nticks && reading->left > 0;)
		{
			TqMessage *messages;
			int n;

			i += subscription_collect(ticks + i, nticks - i, &messages, &n);
			read_messages(reading, messages, n);
			reading->examined += n;
			pfree(messages);
			if (reading->left > 0)
				reading->upto = Max(reading->upto, ticks[i - 1].last_id);
			CHECK_FOR_INTERRUPTS();
		}
		MemoryContextReset(part);
	} while (nticks > 0 && reading->left > 0 && reading->upto < reading->end &&
			 reading->examined < max_examined);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(part);
}

/*
 * Reads the log after that id: gives `receive` up to max messages that match
 * one of the filters, and examines not many more than max_examined
 * messages.  Returns the number of messages; sets *read_upto to the id up to
 * which it has read.
 */
int
tq_subscribe_read(int64 after, int max, int64 max_examined,
				  const TqFilter *filters, int nfilters, TqReceiver receive,
				  void *arg, int64 *read_upto)
{
	Reading reading = {.filters = filters,
					   .nfilters = nfilters,
					   .left = max,
					   .receive = receive,
					   .arg = arg,
					   .shown = true,
					   .upto = after,
					   .end = PG_INT64_MAX};

	read_log(&reading, max_examined);
	*read_upto = reading.upto;
	return max - reading.left;
}

/* Returns the compiled bindings of a subscription, after `check` if not NULL. */
static TqFilter *
filters_of(const char *name, TqBindingsCheck check, int *n)
{
	TqBinding *bindings = tq_subscription_bindings(name, n);
	TqFilter *filters = palloc(sizeof(TqFilter) * Max(*n, 1));

	if (check != NULL)
		check(bindings, *n);
	for (int i = 0; i < *n; i++)
		filters[i] =
			(TqFilter){.exchange = bindings[i].exchange,
					   .pattern = tq_topic_compile(bindings[i].pattern)};
	return filters;
}

static void
note_id(const TqAddress *address, void *arg)
{
	*(int64 *) arg = address->message->id;
}

/*
 * Returns whether a message after behind->acked, up to last_id, matches this
 * subscription.  Subtracts the number of examined messages from *max_examined.  Moves
 * the mark of the subscription over messages that do not match it, so that they
 * are not examined again.
 */
TqUnread
tq_subscribe_unread(const TqBehind *behind, int64 last_id, int64 *max_examined,
					TimestampTz now)
{
	int n;
	int64 first = 0;
	TqFilter *filters = filters_of(behind->name, NULL, &n);
	Reading reading = {.filters = filters,
					   .nfilters = n,
					   .left = 1,
					   .receive = note_id,
					   .arg = &first,
					   .upto = behind->acked_id,
					   .end = last_id};
	int64 skipped;
	bool is_found;

	read_log(&reading, *max_examined);
	*max_examined -= Min(*max_examined, reading.examined);
	is_found = reading.left == 0;
	if (is_found && first <= last_id)
		return TQ_UNREAD_SOME;
	skipped = is_found ? first - 1 : reading.upto;
	if (skipped > behind->acked_id)
		tq_subscription_skip(behind->name, skipped, now);
	return !is_found && reading.upto < last_id && *max_examined == 0
			   ? TQ_UNREAD_UNKNOWN
			   : TQ_UNREAD_NONE;
}

/* The first message that was received. */
typedef struct First
{
	TqReceiver receive;
	void *arg;
	bool is_set;
	int64 id;
} First;

static void
track_first(const TqAddress *address, void *arg)
{
	First *first = (First *) arg;

	if (!first->is_set)
		first->id = address->message->id;
	first->is_set = true;
	first->receive(address, first->arg);
}

/*
 * Gives `receive` up to max messages that the subscription has not
 * acknowledged; returns their number.  `check` sees the bindings before, and may
 * raise an error.  A read-only transaction examines as many messages as it
 * takes, because it cannot move the mark over those that do not match.
 */
int
tq_subscribe_fetch(const char *name, int max, TqBindingsCheck check,
				   TqReceiver receive, void *arg, TimestampTz now)
{
	First first = {.receive = receive, .arg = arg};
	TqFilter *filters;
	TqSubscriptionPosition acked_id;
	int64 upto;
	int found;
	int n;

	if (!tq_subscription_find(name, &acked_id))
		subscription_refuse_missing(name);
	filters = filters_of(name, check, &n);
	found = tq_subscribe_read(acked_id.id, max,
							  XactReadOnly ? PG_INT64_MAX : LOOK_MAX, filters,
							  n, track_first, &first, &upto);
	if (first.is_set)
	{
		note_fetched(name, acked_id.id, first.id);
		upto = first.id - 1;
	}
	if (!XactReadOnly &&
		(upto - acked_id.id >= SKIP_AFTER ||
		 (upto > acked_id.id &&
		  acked_id.at < tq_clock_add_ms(now, -SKIP_AFTER_MS))))
		tq_subscription_skip(name, upto, now);
	return found;
}
