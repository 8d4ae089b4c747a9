/*
 * retention.c
 *	  How long messages are kept: turning and emptying the rings.
 *
 * Room 4.  Messages are kept for tq.message_retention, and longer, up to
 * tq.subscription_retention, for a subscription that has not acknowledged
 * them.  The place that is written to changes after a fourth of that time, to
 * an empty one; if there is none, it goes on in the present one.  A place is emptied
 * when it is not the present one, does not have the newest tick, holds nothing
 * that is unpublished, and its newest tick is too old.  That is looked at
 * under an exclusive lock, for which nobody is waited: whoever writes into it
 * until then has committed.  It is held until the end of the transaction, so
 * within BEGIN and COMMIT nothing is emptied.
 */
#include "message.h"

#include "access/xact.h"

/* Turns for which messages are kept, of the TQ_PLACES. */
#define TURNS (TQ_PLACES - 2)

static TimestampTz
minus_seconds(TimestampTz t, int seconds)
{
	return tq_clock_add_ms(t, -INT64CONST(1000) * seconds);
}

/* Since when messages must be kept. */
TimestampTz
tq_retention_kept_since(TimestampTz now)
{
	TimestampTz since = minus_seconds(now, tq_message_retention);
	TimestampTz slowest = tq_subscription_slowest();

	if (slowest == 0 || slowest >= since)
		return since;
	return Min(since,
			   Max(slowest, minus_seconds(now, tq_subscription_retention)));
}

/* Say that these messages are gone that somebody has not acknowledged. */
static void
warn_of_loss(int64 last_id)
{
	int n;
	char **names = tq_subscription_lose(last_id, &n);

	for (int i = 0; i < n; i++)
		ereport(
			WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg(
				 "messages that subscription \"%s\" had not read were dropped",
				 names[i]),
			 errdetail(
				 "Those up to %lld were not acknowledged within tq.subscription_retention.",
				 (long long) last_id),
			 errhint(
				 "Let somebody call tq.fetch() and tq.ack(), or end it by tq.unsubscribe().")));
}

/* Empty a place, unless there is something in it that is still needed. */
static bool
empty_place(int place, const TqTick *last, TimestampTz kept_since)
{
	TqTick newest;
	bool has_ticks;

	if (tq_ring_is_empty(place) || !tq_ring_try_lock(place) ||
		tq_ring_is_unpublished(place, last->upto))
		return false;
	has_ticks = tq_tick_of_place(place, &newest);
	if (has_ticks &&
		(newest.published >= kept_since || newest.last_id == last->last_id))
		return false;
	tq_ring_truncate(place);
	if (has_ticks)
		warn_of_loss(newest.last_id);
	return true;
}

/*
 * Write to the next empty place from now on.  A tick without messages goes
 * there at once, so that the place before does not keep the newest.
 */
static void
turn(int current, const TqTick *last, TimestampTz now)
{
	for (int i = 1; i < TQ_PLACES; i++)
	{
		int place = (current + i) % TQ_PLACES;
		TqTick tick = {.published = now,
					   .place = place,
					   .since = last->upto,
					   .upto = last->upto};

		if (!tq_ring_is_empty(place))
			continue;
		tq_ring_turn(place, now);
		tq_tick_insert(&tick);
		tq_bindings_changed();
		return;
	}
}

/* Turn the ring and empty what is old; returns the number of places emptied. */
int64
tq_retention_pass(TimestampTz now)
{
	TimestampTz kept_since;
	TimestampTz since;
	TqTick last;
	int current;
	int64 emptied = 0;

	if (IsTransactionBlock() || !tq_publisher_try_lock())
		return 0;
	kept_since = tq_retention_kept_since(now);
	current = tq_ring_current(&since);
	tq_tick_last(&last);
	for (int place = 0; place < TQ_PLACES; place++)
	{
		if (place != current)
			emptied += empty_place(place, &last, kept_since);
	}
	if (since <= now - (now - kept_since) / TURNS &&
		!tq_ring_is_empty(current))
		turn(current, &last, now);
	return emptied;
}
