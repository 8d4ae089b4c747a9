/*
 * publish.c
 *	  Saying that something has happened: what is worth a message is written down.
 *
 * Room 3.  Rules say what they have done, in the order in which it is to be
 * told; here is decided whether anybody wants to know, and if so one row is
 * written in the same transaction.  No NOTIFY is sent here, ever: what is
 * committed is told to the listeners by the publisher (deliver.c).  An exchange
 * that nobody is bound to is known by a bit, and costs nothing.
 */
#include "publish.h"

/* Messages that share a row: a row has to fit into memory, whatever a call writes. */
#define ROW_MAX 250

/* What this session knows of the bindings, and by which generation. */
static uint64 known_generation = 0;
static int known_wanted;
static int known_place;

static void
look_up(void)
{
	TimestampTz since;
	uint64 generation;

	/* Should the tables change while they are read, they are read again next time. */
	generation = tq_bindings_generation();
	if (generation == known_generation)
		return;
	known_wanted = tq_bindings_wanted();
	known_place = tq_ring_current(&since);
	known_generation = generation;
}

/* Does anybody want the messages of this exchange? */
bool
tq_publish_is_wanted(TqExchange exchange)
{
	look_up();
	return (known_wanted & (1 << exchange)) != 0;
}

/*
 * A message about a run of a task, or with run_id -1 about none, as things
 * stand: `last` is the task's last run, or NULL when it has none.
 */
TqMessage
tq_publish_make(TqExchange exchange, const TqTask *task, int run_id,
				const TqRun *last)
{
	TqMessage message = {.exchange = exchange,
						 .task = task->id,
						 .run_id = run_id,
						 .last_run = -1,
						 .state = TQ_STATE_UNSCHEDULED,
						 .priority = task->priority};

	if (last == NULL)
		return message;
	message.last_run = last->run_id;
	message.state = last->state;
	if (last->state == TQ_STATE_RUNNING)
	{
		message.taken_until = last->taken_until;
		message.worker = last->worker;
	}
	return message;
}

/* Was a task resolved for good?  Whether its group is, the publisher will see. */
bool
tq_publish_tells_of_group(const TqMessage *message)
{
	switch (message->exchange)
	{
		case TQ_EXCHANGE_NONE:
		case TQ_EXCHANGE_TASK_COMPLETED:
		case TQ_EXCHANGE_TASK_FAILED:
		case TQ_EXCHANGE_TASK_EXCEPTION:
			return message->run_id == message->last_run &&
				   tq_state_is_resolved(message->state);
		case TQ_EXCHANGE_TASK_DEFINED:
		case TQ_EXCHANGE_TASK_PENDING:
		case TQ_EXCHANGE_TASK_RUNNING:
		case TQ_EXCHANGE_ARTIFACT_CREATED:
		case TQ_EXCHANGE_TASK_GROUP_RESOLVED:
		case TQ_EXCHANGE_TASK_GROUP_SEALED:
		case TQ_EXCHANGE_TASK_PRIORITY_CHANGED:
		case TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED:
		case TQ_EXCHANGE_TASK_ALERT:
			return false;
	}
	return false;
}

/*
 * Returns how many of these messages can share a row, which has one end of a
 * claim and one worker.
 */
static int
count_alike(const TqMessage *messages, int n)
{
	const TqMessage *first = NULL;

	n = Min(n, ROW_MAX);
	for (int i = 0; i < n; i++)
	{
		if (messages[i].worker == 0)
			continue;
		if (first == NULL)
			first = &messages[i];
		if (messages[i].taken_until != first->taken_until ||
			messages[i].worker != first->worker)
			return i;
	}
	return n;
}

/*
 * Write these messages, in this order, as far as they are wanted.  One that
 * has a detail is alone.
 */
void
tq_publish(const TqMessage *messages, int n)
{
	TqMessage *wanted;
	int kept = 0;

	look_up();
	if (n == 0 || known_wanted == 0)
		return;
	wanted = palloc(sizeof(TqMessage) * n);
	for (int i = 0; i < n; i++)
	{
		if (known_wanted & (1 << messages[i].exchange))
			wanted[kept++] = messages[i];
		else if (tq_publish_tells_of_group(&messages[i]) &&
				 (known_wanted & (1 << TQ_EXCHANGE_TASK_GROUP_RESOLVED)))
		{
			wanted[kept] = messages[i];
			wanted[kept++].exchange = TQ_EXCHANGE_NONE;
		}
	}
	if (kept == 0)
		return;
	for (int done = 0; done < kept;)
	{
		int alike = count_alike(wanted + done, kept - done);

		tq_messages_insert(known_place, wanted + done, alike);
		done += alike;
	}
	tq_shmem_note_message();
}

/* Runs of one queue that have become claimable: a note to the publisher. */
static TqMessage
claimable_note(int32 queue, int runs)
{
	return (TqMessage){.exchange = TQ_EXCHANGE_NONE,
					   .task = queue,
					   .run_id = runs,
					   .last_run = -1,
					   .state = TQ_STATE_PENDING};
}

static int
compare_queue(const void *a, const void *b)
{
	int32 x = *(const int32 *) a;
	int32 y = *(const int32 *) b;

	return x < y ? -1 : x > y;
}

/*
 * Appends, for each queue of these runs, which were delayed and are claimable
 * now, a note to the outbox: the publisher notifies the queue's channel.  The
 * messages of the runs were appended when they became pending.
 *
 * Where nothing wants the messages of exchange task-pending, there is no note,
 * as queue channels are silent then.  Otherwise it is written whether or not a
 * session listens just now: one that begins to listen before this transaction
 * commits has to be notified.
 */
void
tq_publish_claimable(const TqPending *rows, int n)
{
	int32 *queues;
	TqMessage *notes;
	int kept = 0;

	if (n == 0 || !tq_publish_is_wanted(TQ_EXCHANGE_TASK_PENDING))
		return;
	queues = palloc(sizeof(int32) * n);
	notes = palloc(sizeof(TqMessage) * n);
	for (int i = 0; i < n; i++)
		queues[i] = rows[i].queue;
	qsort(queues, n, sizeof(int32), compare_queue);
	for (int i = 0; i < n; i++)
	{
		if (kept > 0 && notes[kept - 1].task == queues[i] &&
			notes[kept - 1].run_id < PG_INT16_MAX)
			notes[kept - 1].run_id++;
		else
			notes[kept++] = claimable_note(queues[i], 1);
	}
	for (int done = 0; done < kept; done += ROW_MAX)
		tq_messages_insert(known_place,
						   notes + done,
						   Min(kept - done, ROW_MAX));
	tq_shmem_note_message();
}

/* Reports whether this is a note that runs of a queue have become claimable. */
bool
tq_publish_is_claimable_note(const TqMessage *message)
{
	return message->exchange == TQ_EXCHANGE_NONE &&
		   message->state == TQ_STATE_PENDING;
}
