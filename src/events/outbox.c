/*
 * outbox.c
 *	  The outbox: records the messages of a transition in its transaction.
 *
 * A call collects the messages of its transitions in a batch, in the order in
 * which readers are to see them.  This module decides whether a binding or a
 * subscription wants a message and, if so, writes it to tq_internal.message in
 * the same transaction, unless the publisher derives it from the task
 * (outbox_table.c).  It never sends NOTIFY: the publisher (publisher.c) does
 * that, for messages that have been committed.  An exchange that nothing
 * is bound to costs one test of a bit.
 */
#include "postgres.h"

#include "../core/state.h"
#include "events.h"

/* Timers for what comes later than this are left to the publisher. */
#define FAR_MS (10 * 60 * 1000)

/* What this session has cached of the bindings, and of which generation. */
static uint64 known_generation = 0;
static TqFacts known;

/* Refreshes the cached bindings, which have changed. */
static void
refresh(void)
{
	Oid extension = tq_locked_table;
	uint64 generation;
	uint64 change;

	/*
	 * The generation is read first, so that a change of the tables during the
	 * read causes another read next time.
	 */
	tq_bindings_watch();
	generation = *tq_bindings_generation;
	if (!tq_facts_find(extension, &known, &change))
	{
		TimestampTz since;

		/*
		 * Read the tables, and store the result for other sessions, unless it was
		 * read by an old snapshot, or before the database is known to be in use.
		 */
		known.wanted = tq_bindings_wanted();
		known.segment = tq_segment_current(&since);
		if (!tq_spi_is_reading && tq_activation_is_committed())
		{
			/* What this session has cached may be older than the number. */
			tq_shard_reload();
			known.is_shard = tq_shard_is_set();
			tq_queue_settings_reload();
			known.has_settings = tq_queue_settings_exist();
			tq_facts_store(extension, &known, change);
		}
	}
	known_generation = generation;
}

/*
 * Finds out which exchanges are wanted, a bit for each, and where messages are
 * written: one look for a batch.
 */
static uint32
look_up(TqOutboxBatch *batch)
{
	if (batch->is_known)
		return batch->wanted;
	if (*tq_bindings_generation != known_generation)
		refresh();
	batch->wanted = known.wanted;
	batch->segment = known.segment;
	batch->is_known = true;
	return batch->wanted;
}

/*
 * Returns whether a binding or a subscription wants messages of this exchange.
 */
bool
tq_outbox_is_wanted(TqExchange exchange)
{
	TqOutboxBatch batch = {0};

	return (look_up(&batch) & (1 << exchange)) != 0;
}

/*
 * Returns a message about a run of a task, or about no run if run_id is -1,
 * with the present state of the task: `last` is its last run, or NULL if it
 * has none.  An alert names the worker of a deferred run, too.
 */
static TqMessage
message_about(TqExchange exchange, const TqTask *task, int run_id,
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
		message.taken_until = last->taken_until;
	if (last->state == TQ_STATE_RUNNING || exchange == TQ_EXCHANGE_TASK_ALERT)
		message.worker = last->worker;
	return message;
}

/*
 * Returns whether the message reports that a task was resolved for good.
 * Whether that was the last task of its group is for the publisher to find
 * out.
 */
bool
tq_outbox_concerns_group(const TqMessage *message)
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
		case TQ_EXCHANGE_TASK_PROGRESS:
			return false;
	}
	return false;
}

/*
 * Returns how many of these messages can share a row, which stores only one
 * taken_until, one worker and one detail.
 */
static int
count_alike(const TqMessage *messages, int n)
{
	const TqMessage *first = NULL;

	n = messages[0].detail != NULL ? 1 : Min(n, TQ_ROW_MESSAGES);
	for (int i = 0; i < n; i++)
	{
		if (i > 0 && messages[i].detail != NULL)
			return i;
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

/* Adds a message or note to a batch, wanted or not. */
static TqMessage *
outbox_put(TqOutboxBatch *batch, const TqMessage *message)
{
	if (batch->n == batch->room)
	{
		batch->room = Max(16, 2 * batch->room);
		batch->messages = batch->n == 0
							  ? palloc(sizeof(TqMessage) * batch->room)
							  : repalloc(batch->messages,
										 sizeof(TqMessage) * batch->room);
	}
	batch->messages[batch->n] = *message;
	return &batch->messages[batch->n++];
}

/*
 * Adds the message of the state of a run to a batch if it is wanted, or
 * task-defined if run is NULL.  `last` is the last run of the task.
 */
void
tq_outbox_add_run(TqOutboxBatch *batch, const TqTask *task, const TqRun *run,
				  const TqRun *last)
{
	TqExchange exchange = run == NULL ? TQ_EXCHANGE_TASK_DEFINED
									  : tq_state_exchange(run->state);
	TqMessage message;

	if (look_up(batch) == 0)
		return;
	message = message_about(exchange, task, run == NULL ? -1 : run->run_id,
							last);
	tq_outbox_add_message(batch, &message);
}

/*
 * Adds a message to a batch if it is wanted.  A resolved task whose message is
 * not wanted leaves a note if task-group-resolved is, because the publisher
 * derives that message from it.
 */
void
tq_outbox_add_message(TqOutboxBatch *batch, const TqMessage *message)
{
	uint32 wanted = look_up(batch);

	if (wanted & (1 << message->exchange))
		outbox_put(batch, message);
	else if (tq_outbox_concerns_group(message) &&
			 (wanted & (1 << TQ_EXCHANGE_TASK_GROUP_RESOLVED)))
		outbox_put(batch, message)->exchange = TQ_EXCHANGE_NONE;
}

/*
 * Adds a note to the publisher, whether or not an exchange is wanted.
 */
void
tq_outbox_add_notice(TqOutboxBatch *batch, const TqMessage *notice)
{
	(void) outbox_put(batch, notice);
}

/*
 * Adds a note that a task was resolved by this run, its last one, if
 * task-group-resolved is wanted: the publisher derives that message from it.
 */
void
tq_outbox_add_note(TqOutboxBatch *batch, const TqRun *last)
{
	TqMessage note = {.exchange = TQ_EXCHANGE_NONE,
					  .task = last->task,
					  .run_id = last->run_id,
					  .last_run = last->run_id,
					  .state = last->state};

	tq_outbox_add_message(batch, &note);
}

/*
 * Leaves it to the publisher to insert the timer that belongs to the message of
 * this exchange in the batch: of a deadline to task-defined, of a claim to
 * task-running.  A timer of its own is an eighth of what it costs to create or
 * to claim a single task, and in most cases the task is resolved before.  The
 * publisher inserts those of many tasks in a row.
 *
 * `due` is the deadline or the end of the claim, before which the task must
 * have a timer.  Returns false if it cannot be left: the message is not wanted,
 * or that is so soon that the publisher might be late.
 */
bool
tq_outbox_leave_timer(TqOutboxBatch *batch, TqExchange exchange,
					  TimestampTz due, TimestampTz now)
{
	if (due <= tq_clock_add_ms(now, FAR_MS))
		return false;
	for (int i = 0; i < batch->n; i++)
	{
		if (batch->messages[i].exchange == exchange)
		{
			batch->messages[i].due = due;
			return true;
		}
	}
	return false;
}

/*
 * Returns whether the publisher can derive the messages of a new task, that it
 * was created and is pending, and insert the timer of its deadline: then they need
 * not be written (publisher.c).  These are the messages of a task that waits for
 * nothing, if both are wanted.  Others than a task without a policy are not worth
 * the tests that they would need.
 */
bool
tq_outbox_may_derive(const TqTaskDefinition *definition, TimestampTz now)
{
	const uint32 both = 1 << TQ_EXCHANGE_TASK_DEFINED |
						1 << TQ_EXCHANGE_TASK_PENDING;
	const TqTask *task = &definition->named.task;
	TqOutboxBatch batch = {0};

	return definition->ndependencies == 0 && task->policy == 0 &&
		   task->delay == 0 && (look_up(&batch) & both) == both &&
		   tq_activation_is_committed() && tq_deadline_delay == 0 &&
		   task->deadline > tq_clock_add_ms(now, FAR_MS);
}

/*
 * Appends the messages of a batch to the outbox, and empties the batch.  Those
 * that are derived are the first.
 */
void
tq_outbox_append(TqOutboxBatch *batch)
{
	if (batch->n == 0)
		return;
	(void) look_up(batch); /* a notice is added without a look */
	for (int done = batch->is_derived ? TQ_DERIVED_MESSAGES : 0;
		 done < batch->n;)
	{
		int alike = count_alike(batch->messages + done, batch->n - done);

		tq_messages_insert(batch->segment, batch->messages + done, alike);
		done += alike;
	}
	tq_request_publication();
	pfree(batch->messages);
	*batch = (TqOutboxBatch){0};
}

/*
 * Appends a message with a detail, if it is wanted: about a run or a task, or
 * about a group if task is NULL.
 */
void
tq_outbox_append_detail(TqExchange exchange, const TqTask *task, int run_id,
						const TqRun *last, Jsonb *detail)
{
	static const TqTask none = {0};
	TqOutboxBatch batch = {0};
	TqMessage message = message_about(exchange, task == NULL ? &none : task,
									  run_id, last);

	message.detail = detail;
	tq_outbox_add_message(&batch, &message);
	tq_outbox_append(&batch);
}

static int
outbox_compare_queue(const void *a, const void *b)
{
	int32 x = *(const int32 *) a;
	int32 y = *(const int32 *) b;

	return x < y ? -1 : x > y;
}

/*
 * Appends a note to the outbox for each queue of these runs, which were
 * delayed and are claimable now, so that the publisher notifies the channel of
 * the queue.  The messages of the runs were appended when they became pending.
 *
 * Appends nothing if nothing wants the messages of exchange task-pending,
 * because queue channels are silent then.  Otherwise it does so even if no
 * session listens now: a session that starts to listen before this transaction
 * commits has to be notified.
 */
void
tq_outbox_append_claimable(const TqPending *rows, int n)
{
	TqOutboxBatch batch = {0};
	TqMessage *note = NULL;
	int32 *queues;

	if (n == 0 || !tq_outbox_is_wanted(TQ_EXCHANGE_TASK_PENDING))
		return;
	queues = palloc(sizeof(int32) * n);
	for (int i = 0; i < n; i++)
		queues[i] = rows[i].queue;
	qsort(queues, n, sizeof(int32), outbox_compare_queue);
	for (int i = 0; i < n; i++)
	{
		if (note != NULL && note->task == queues[i] &&
			note->run_id < PG_INT16_MAX)
			note->run_id++;
		else
		{
			/*
			 * A note to the publisher that runs of a queue have become
			 * claimable.
			 */
			TqMessage first = (TqMessage){.exchange = TQ_EXCHANGE_NONE,
										  .task = queues[i],
										  .run_id = 1,
										  .last_run = -1,
										  .state = TQ_STATE_PENDING};

			note = outbox_put(&batch, &first);
		}
	}
	tq_outbox_append(&batch);
}

/*
 * Returns whether this is a note that runs of a queue have become claimable.
 */
bool
tq_outbox_is_claimable_note(const TqMessage *message)
{
	return message->exchange == TQ_EXCHANGE_NONE &&
		   message->state == TQ_STATE_PENDING;
}
