/*
 * retention.c
 *	  Retention of messages: changing and emptying the segments of the log.
 *
 * Messages are kept for tq.message_retention, and longer, up to
 * tq.subscription_retention, for a subscription that has not acknowledged them.
 * After a fourth of that time, sessions write to the next empty segment; if
 * there is none, they continue in the current one.
 *
 * A segment is emptied if it is not the current one, does not have the newest
 * tick, has no unpublished message, and its newest tick is too old.  This is
 * checked under an exclusive lock, which is taken only if it is free: every
 * session that has written to the segment before has then committed.  The lock
 * is held until the end of the transaction, so nothing is emptied within BEGIN
 * and COMMIT.
 *
 * A clock that was ahead leaves times in the log that are ahead of it when it is
 * right again.  With them no segment would grow old until it has caught up, so
 * the next pass sets them back.
 */
#include "postgres.h"

#include "events.h"

/* Number of the TQ_SEGMENTS segments that hold messages to be kept. */
#define TURNS (TQ_SEGMENTS - 2)

/*
 * Messages that a pass reads before it empties a segment: some hundred
 * milliseconds of the maintenance worker, which starts the next pass a second
 * later.
 */
#define LOOK_MAX 100000
#define CALL_LOOK_MAX 1000000 /* of upkeep() */

static TimestampTz
minus_seconds(TimestampTz t, int seconds)
{
	return tq_clock_add_ms(t, -INT64CONST(1000) * seconds);
}

/* Returns the time from which on messages must be kept. */
static TimestampTz
retention_kept_since(TimestampTz now)
{
	TimestampTz since = minus_seconds(now, tq_message_retention);
	TimestampTz slowest = tq_subscription_slowest();

	if (slowest == 0 || slowest >= since)
		return since;
	return Min(since,
			   Max(slowest, minus_seconds(now, tq_subscription_retention)));
}

/*
 * Returns a time before which every message is published and no longer kept,
 * so that the rows from which messages are built may be deleted.  Within BEGIN
 * and COMMIT publication cannot be waited for, so there the messages about
 * deleted tasks may be lost.
 */
TimestampTz
tq_retention_published_before(TimestampTz now)
{
	TimestampTz since = retention_kept_since(now);
	TqTick last;

	if (tq_publisher_is_in_block())
		return DT_NOEND;
	tq_tick_last(&last);
	if (tq_message_is_unpublished(&last))
		since = Min(since, tq_tick_last_whole());
	return since;
}

/* Messages about a task are published within this time, if that is not late. */
#define PUBLISH_SLACK_MS (60 * 1000)

/*
 * Returns a time before which no message was written that is kept, so that
 * nothing is needed of a task that was deleted or departed before.
 */
TimestampTz
tq_retention_forgotten_before(TimestampTz now)
{
	TimestampTz published = tq_retention_published_before(now);
	TimestampTz oldest = tq_tick_oldest();
	TqTick last;

	tq_tick_last(&last);
	if (oldest == 0)
		return tq_message_is_unpublished(&last) ? published : DT_NOEND;
	oldest = Max(oldest, retention_kept_since(now));
	return Min(published, tq_clock_add_ms(oldest, -PUBLISH_SLACK_MS));
}

/*
 * Warns about the subscriptions that lose unacknowledged messages with ids up
 * to last_id.  Returns false if it is too early to drop them: a subscription
 * is being changed concurrently, or so many messages have to be read, none of
 * which is for a subscription, that it takes several passes.
 */
static bool
warn_losers(int64 last_id, TimestampTz now)
{
	int64 max_examined = MyBackendType == B_BG_WORKER ? LOOK_MAX
													  : CALL_LOOK_MAX;
	int n;
	int nlosers = 0;
	bool all = true;
	TqBehind *behind = tq_subscriptions_behind(last_id, &n);

	for (int i = 0; i < n; i++)
	{
		switch (tq_subscribe_unread(&behind[i], last_id, &max_examined, now))
		{
			case TQ_UNREAD_NONE:
				break;
			case TQ_UNREAD_SOME:
				behind[nlosers++] = behind[i];
				break;
			case TQ_UNREAD_UNKNOWN:
				return false;
		}
	}
	for (int i = 0; i < nlosers; i++)
	{
		if (tq_subscription_lose(behind[i].name, last_id))
			ereport(
				WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg(
					 "messages that subscription \"%s\" had not read were dropped",
					 behind[i].name),
				 errdetail(
					 "Those up to %lld were not acknowledged within tq.subscription_retention.",
					 (long long) last_id),
				 errhint(
					 "Call tq.fetch() and tq.ack() regularly, or end the subscription with tq.unsubscribe().")));
		else
			all = false;
	}
	return all;
}

/* Returns whether nothing in a segment is needed any more. */
static bool
retention_is_old(int segment, const TqTick *last, TimestampTz kept_since,
				 TqTick *newest)
{
	if (tq_segment_is_unpublished(segment, last->upto))
		return false;
	if (tq_tick_of_segment(segment, newest) &&
		(newest->published >= kept_since || newest->last_id == last->last_id))
		return false;
	return !tq_tick_shows_segment(segment, kept_since);
}

/*
 * Empties a segment unless something in it is still needed; returns whether it
 * did.  Checks that first without the lock, which blocks readers; sets *locked
 * if it has asked for that.
 */
static bool
empty_segment(int segment, const TqTick *last, TimestampTz kept_since,
			  TimestampTz now, bool *locked)
{
	TqTick newest = {.last_id = 0};

	if (tq_segment_is_empty(segment) ||
		!retention_is_old(segment, last, kept_since, &newest))
		return false;
	*locked = true;
	if (!tq_segment_try_lock(segment) ||
		!retention_is_old(segment, last, kept_since, &newest) ||
		!warn_losers(newest.last_id, now))
		return false;
	tq_segment_truncate(segment);
	return true;
}

/*
 * Makes the next empty segment the current one.  Writes a tick without
 * messages there at once, so that the newest tick is not in the previous
 * segment.  Returns false if there is no empty segment.
 */
static bool
switch_segment(int current, const TqTick *last, TimestampTz now)
{
	for (int i = 1; i < TQ_SEGMENTS; i++)
	{
		int segment = (current + i) % TQ_SEGMENTS;
		TqTick tick = {.published = now,
					   .segment = segment,
					   .since = last->upto,
					   .upto = last->upto,
					   .creations = last->creations};

		if (!tq_segment_is_empty(segment))
			continue;
		tq_segment_switch(segment, now);
		tq_tick_insert(&tick, last, true);
		tq_bindings_changed();
		return true;
	}
	return false;
}

/*
 * Sets times back that are ahead of the clock; returns whether there were any.
 * Only the maintenance worker does: the clock of a session that calls upkeep()
 * may be set for a test.
 */
static bool
set_back(const TqTick *last, TimestampTz since, TimestampTz now)
{
	if (MyBackendType != B_BG_WORKER ||
		Max(last->published, since) <= tq_clock_add_ms(now, TQ_AHEAD_MS))
		return false;
	tq_log_set_back(now);
	return true;
}

/*
 * Empties old segments, then changes the current segment if it is time;
 * returns the number of segments emptied.  Keeps the publisher's lock only if
 * it has done one of them, or has a segment locked.
 */
int64
tq_retention_pass(TimestampTz now)
{
	TimestampTz kept_since;
	TimestampTz since;
	TqTick last;
	int current;
	int64 emptied = 0;
	bool locked = false;

	if (tq_publisher_is_in_block() || !tq_publisher_try_lock())
		return 0;
	current = tq_segment_current(&since);
	tq_tick_last(&last);
	if (set_back(&last, since, now))
	{
		locked = true;
		current = tq_segment_current(&since);
	}
	kept_since = retention_kept_since(now);
	for (int segment = 0; segment < TQ_SEGMENTS; segment++)
	{
		if (segment != current)
			emptied += empty_segment(segment, &last, kept_since, now, &locked);
	}
	/* Not during a publication: its next part starts from the newest tick. */
	if (since <= now - (now - kept_since) / TURNS &&
		last.part_of == (Datum) 0 && !tq_segment_is_empty(current) &&
		switch_segment(current, &last, now))
		locked = true;
	if (!locked)
		tq_publisher_unlock();
	return emptied;
}
