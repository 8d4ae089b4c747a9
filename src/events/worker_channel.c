/*
 * worker_channel.c
 *	  Channels of queues and of workers, and what is taken from a worker.
 *
 * A transition that takes a running run from its worker appends a note to the
 * publisher in its transaction, which sends it as NOTIFY on the channel of the
 * worker.  The note has all that is sent, because the task may be deleted by
 * then.  It is appended only while a session of this database listens on the
 * channel of some worker.  A session that listens before it claims a run misses
 * nothing of that run: it has recorded the channel before the claim is
 * committed, and what takes the run begins after that.
 */
#include "postgres.h"

#include "commands/async.h"
#include "common/md5.h"

#include "events.h"

#define CHANNEL_MAX (NAMEDATALEN - 1)
#define HASH_CHARS 32 /* of MD5 */

/*
 * Returns a prefix and a name as a channel.  If that is longer than a channel
 * may be, it is truncated and the MD5 of the name appended.
 */
static char *
channel_name(const char *prefix, const char *name)
{
	char *channel = psprintf("%s%s", prefix, name);
	char hash[HASH_CHARS + 1];
	const char *error = NULL;

	if (strlen(channel) <= CHANNEL_MAX)
		return channel;
	if (!pg_md5_hash(name, strlen(name), hash, &error))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not compute %s hash: %s", "MD5", error)));
	return psprintf("%.*s_%s", CHANNEL_MAX - HASH_CHARS - 1, channel, hash);
}

/* Returns the channel of a queue, "tq_queue_" and its name. */
char *
tq_queue_channel_name(const char *task_queue_id)
{
	return channel_name(TQ_QUEUE_CHANNEL, task_queue_id);
}

/*
 * Returns the channel of a worker, "tq_worker_", its group, a slash, which no
 * group has, and its id.
 */
char *
tq_worker_channel_name(const char *group, const char *id)
{
	return channel_name(TQ_WORKER_CHANNEL, psprintf("%s/%s", group, id));
}

/*
 * Returns whether a session of this database may listen on the channel of some
 * worker.
 */
bool
tq_worker_channel_is_listened(void)
{
	return (tq_listener_channels() &
			tq_listener_channel_bit(TQ_WORKER_CHANNEL)) != 0;
}

/*
 * Adds the note that this run is taken from its worker, for a reason of
 * reasonResolved or "deleted".  The state of a note says what it is about:
 * running is this one.
 */
void
tq_worker_channel_add(TqOutboxBatch *batch, const TqSlug *task_id,
					  const TqRun *run, const char *reason)
{
	JsonbParseState *state = tq_json_begin();
	TqMessage note = {.exchange = TQ_EXCHANGE_NONE,
					  .run_id = -1,
					  .last_run = -1,
					  .state = TQ_STATE_RUNNING};
	char *group;
	char *id;

	if (run->worker == 0)
		return;
	tq_worker_name(run->worker, &group, &id);
	tq_json_add_slug(&state, "taskId", task_id);
	tq_json_add_int(&state, "runId", run->run_id);
	tq_json_add_text(&state, "reason", reason);
	tq_json_add_text(&state, "workerGroup", group);
	tq_json_add_text(&state, "workerId", id);
	note.detail = tq_json_end(&state);
	tq_outbox_add_notice(batch, &note);
}

/*
 * Returns the payload of a note.  A listener knows the worker, whose name is
 * that of the channel, so that tq.notify_payload = ids hides nothing.
 */
static char *
payload_of(const Jsonb *detail)
{
	switch ((TqNotifyPayload) tq_notify_payload)
	{
		case TQ_NOTIFY_AUTO:
		case TQ_NOTIFY_FULL:
		case TQ_NOTIFY_IDS:
			return JsonbToCString(NULL,
								  unconstify(JsonbContainer *, &detail->root),
								  VARSIZE(detail));
		case TQ_NOTIFY_OFF:
			break;
	}
	return pstrdup("");
}

/* Notifies the workers that these notes are about. */
void
tq_worker_channel_notify(const TqMessage *notes, int n)
{
	for (int i = 0; i < n; i++)
	{
		Jsonb *detail = notes[i].detail;

		if (notes[i].state == TQ_STATE_RUNNING && detail != NULL)
			Async_Notify(
				tq_worker_channel_name(tq_json_get_text(detail, "workerGroup"),
									   tq_json_get_text(detail, "workerId")),
				payload_of(detail));
	}
}
