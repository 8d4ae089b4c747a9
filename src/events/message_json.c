/*
 * message_json.c
 *	  What a message contains and how it is addressed.
 *
 * Implements doc/spec/taskcluster.md 6; section numbers below are of that
 * document.  A stored message names a task, a run, and how far the task had
 * come.  Its routing key and JSON are built from that when it is sent or read.
 * The status in it is that of the transition: runs that came later are left
 * out, and the last run shown has the state that it had then.  This can be
 * reconstructed later because a resolved run never changes, and because the
 * message itself stores what changes in an unresolved run, the end of its
 * claim.  Storing the bodies instead would cost bench create.1 twice the WAL and
 * 1.4 times the CPU, and cycle.100 three times and twice.
 *
 * A message may be impossible to build, because its text would be larger than
 * a value of the server can be, or because the row of its task is damaged.
 * Then it has no payload, or, if even its routing key cannot be built, nothing
 * but its id and exchange.  Readers of the log and listeners go on with the
 * next message.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "lib/qunique.h"
#include "utils/json.h"
#include "utils/memutils.h"

#include "../core/names.h"
#include "../core/state.h"
#include "events.h"

/* NOTIFY accepts a payload of less than 8,000 bytes. */
#define PAYLOAD_MAX 7999

/*
 * The text of a jsonb larger than this exceeds PAYLOAD_MAX, whatever it holds.
 */
#define SURELY_LARGE (8 * PAYLOAD_MAX)

/* The text of a jsonb can be six times as large, and must fit into a value. */
#define JSONB_MAX ((Size) (MaxAllocSize / 6))

/* ---- tasks and runs ---- */

static int
compare_task(const void *a, const void *b)
{
	int64 x = ((const TqMessageTask *) a)->named.task.id;
	int64 y = ((const TqMessageTask *) b)->named.task.id;

	return x < y ? -1 : x > y;
}

static int
compare_run(const void *a, const void *b)
{
	const TqRun *x = &((const TqHistoryRun *) a)->run;
	const TqRun *y = &((const TqHistoryRun *) b)->run;

	return x->task != y->task ? (x->task < y->task ? -1 : 1)
							  : x->run_id - y->run_id;
}

/* Sorts ids and removes duplicates; returns how many are left. */
static int
each_once(int64 *ids, int n)
{
	int kept = 0;

	qsort(ids, n, sizeof(int64), tq_compare_ids);
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || ids[i] != ids[i - 1])
			ids[kept++] = ids[i];
	}
	return kept;
}

/*
 * Reads the tasks that these messages are about, and the runs of those of
 * which a message shows one.  A task that departs meanwhile may show its runs
 * twice.
 */
void
tq_message_source(const TqMessage *messages, int n, TqSource *source)
{
	int64 *ids = palloc(sizeof(int64) * Max(n, 1));
	int64 *ran = palloc(sizeof(int64) * Max(n, 1));
	int count = 0;
	int nran = 0;
	TqHistoryRun *departed;

	for (int i = 0; i < n; i++)
	{
		if (messages[i].task != 0)
			ids[count++] = messages[i].task;
		if (messages[i].task != 0 && messages[i].last_run >= 0)
			ran[nran++] = messages[i].task;
	}
	count = each_once(ids, count);
	nran = each_once(ran, nran);
	source->tasks = tq_tasks_for_messages(ids, count, &source->ntasks);
	source->runs = NULL;
	source->nruns = 0;
	if (nran == 0)
		return;
	source->runs = tq_runs_history(ran, nran, false, &source->nruns);
	departed = tq_departed_runs(ran, nran, &count);
	if (count == 0)
		return;
	source->runs = repalloc_huge(source->runs, sizeof(TqHistoryRun) *
												   (source->nruns + count));
	memcpy(&source->runs[source->nruns], departed,
		   sizeof(TqHistoryRun) * count);
	source->nruns += count;
	qsort(source->runs, source->nruns, sizeof(TqHistoryRun), compare_run);
	source->nruns = (int) qunique(source->runs, source->nruns,
								  sizeof(TqHistoryRun), compare_run);
}

static bool
is_run_of(const TqSource *source, const TqHistoryRun *entry, int64 task,
		  int run_id)
{
	return entry < source->runs + source->nruns && entry->run.task == task &&
		   entry->run.run_id == run_id;
}

/* ---- addresses ---- */

static const char *
word(const char *text)
{
	return text != NULL ? text : "_";
}

/*
 * Returns the name of a worker, which may have dots, as one word of a routing
 * key.
 */
static const char *
worker_word(const char *name)
{
	StringInfoData escaped;

	if (name == NULL || strchr(name, '.') == NULL)
		return word(name);
	initStringInfo(&escaped);
	for (; *name != '\0'; name++)
	{
		if (*name == '.')
			appendStringInfoString(&escaped, "%2E");
		else
			appendStringInfoChar(&escaped, *name);
	}
	return escaped.data;
}

/* Returns provisionerId and workerType as two words of a routing key. */
static char *
queue_words(const char *task_queue_id)
{
	char *words = pstrdup(task_queue_id);

	*strchr(words, '/') = '.';
	return words;
}

/*
 * Returns whether the message names a worker, and which.  The exception of a
 * deadline names none (3.5).  A skipped run never had a worker, but
 * task-completed must name one (doc/spec/policy.md 10.9).  An unresolved run
 * may pass to another worker, so its message stores the worker of that time.
 */
static bool
names_worker(const TqAddress *address, const char **group, const char **id)
{
	const TqHistoryRun *entry = address->run;

	if (entry == NULL)
		return false;
	/* The message is about a run that was unresolved at the time. */
	if (address->message->run_id == address->message->last_run &&
		address->message->state != TQ_STATE_UNSCHEDULED &&
		!tq_state_is_resolved(address->message->state))
	{
		*group = address->worker_group;
		*id = address->worker_id;
		return *group != NULL;
	}
	*group = entry->worker_group;
	*id = entry->worker_id;
	if (entry->run.reason == TQ_RESOLVED_SKIPPED)
	{
		*group = "tq";
		*id = "skipped";
	}
	return *group != NULL &&
		   (address->message->exchange != TQ_EXCHANGE_TASK_EXCEPTION ||
			entry->run.reason != TQ_RESOLVED_DEADLINE_EXCEEDED);
}

/*
 * Returns the routing key of a message about a task, which has ten words
 * (6.2).
 */
static char *
task_key(const TqAddress *address)
{
	const TqNamedTask *named = &address->task->named;
	const char *group = NULL;
	const char *id = NULL;

	switch (address->message->exchange)
	{
		case TQ_EXCHANGE_TASK_RUNNING:
		case TQ_EXCHANGE_ARTIFACT_CREATED:
		case TQ_EXCHANGE_TASK_COMPLETED:
		case TQ_EXCHANGE_TASK_FAILED:
		case TQ_EXCHANGE_TASK_EXCEPTION:
		case TQ_EXCHANGE_TASK_ALERT:
		case TQ_EXCHANGE_TASK_PROGRESS:
			if (!names_worker(address, &group, &id))
				group = id = NULL;
			break;
		case TQ_EXCHANGE_NONE:
		case TQ_EXCHANGE_TASK_DEFINED:
		case TQ_EXCHANGE_TASK_PENDING:
		case TQ_EXCHANGE_TASK_GROUP_RESOLVED:
		case TQ_EXCHANGE_TASK_GROUP_SEALED:
		case TQ_EXCHANGE_TASK_PRIORITY_CHANGED:
		case TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED:
			break;
	}
	return psprintf("primary.%s.%s.%s.%s.%s.%s.%s._",
					tq_slug_text(&named->task.task_id),
					address->message->run_id < 0
						? "_"
						: psprintf("%d", address->message->run_id),
					worker_word(group), worker_word(id),
					queue_words(named->queue_name), named->scheduler_id,
					tq_slug_text(&named->group_slug));
}

static char *
group_key(const char *group, const char *scheduler_id)
{
	return psprintf("primary.%s.%s._", group, scheduler_id);
}

/*
 * Sets the task, its runs, the run and the worker of a message.  Returns false
 * if the task or its runs no longer exist.
 */
static bool
address_task(const TqSource *source, TqAddress *address)
{
	const TqMessage *message = address->message;
	TqMessageTask key = {.named.task.id = message->task};
	const TqHistoryRun *run;

	address->task = bsearch(&key, source->tasks, source->ntasks,
							sizeof(TqMessageTask), compare_task);
	if (address->task == NULL)
		return false;
	address->runs = source->runs + tq_history_first(source->runs,
													source->nruns,
													message->task);
	if (message->last_run >= 0 &&
		!is_run_of(source, address->runs + message->last_run, message->task,
				   message->last_run))
		return false;
	run = address->runs + message->run_id;
	address->run = message->run_id < 0 ? NULL : run;
	if (message->worker != 0)
		tq_worker_name(message->worker, &address->worker_group,
					   &address->worker_id);
	return true;
}

static Jsonb *
lone_group_payload(const TqNamedTask *named)
{
	TqGroup group = {.task_group_id = named->group_slug,
					 .scheduler_id = named->scheduler_id,
					 .expires =
						 tq_clock_add_ms(tq_group_until(named->task.expires,
														named->task.created),
										 TQ_HOUR_MS)};

	return tq_group_message_json(&group);
}

/*
 * Sets the routing key and the CC addresses of a message.  Returns false if
 * what the message is about has been deleted since, so that there is nothing
 * to send.
 */
bool
tq_message_address(const TqSource *source, const TqMessage *message,
				   TqAddress *address)
{
	int n;
	char **routes;

	memset(address, 0, offsetof(TqAddress, cc));
	address->message = message;
	switch (message->exchange)
	{
		case TQ_EXCHANGE_TASK_GROUP_RESOLVED:
		case TQ_EXCHANGE_TASK_GROUP_SEALED:
		case TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED:
			if (message->detail == NULL)
			{
				/*
				 * Address a message about a group whose only task has the same id.
				 * Such a group has no row; its task has all that the message
				 * contains.
				 */
				if (!address_task(source, address))
					return false;
				address->routing_key =
					group_key(tq_slug_text(&address->task->named.group_slug),
							  address->task->named.scheduler_id);
				return true;
			}
			address->routing_key =
				group_key(tq_json_get_text(message->detail, "taskGroupId"),
						  tq_json_get_text(message->detail, "schedulerId"));
			return true;
		case TQ_EXCHANGE_TASK_DEFINED:
		case TQ_EXCHANGE_TASK_PENDING:
		case TQ_EXCHANGE_TASK_RUNNING:
		case TQ_EXCHANGE_ARTIFACT_CREATED:
		case TQ_EXCHANGE_TASK_COMPLETED:
		case TQ_EXCHANGE_TASK_FAILED:
		case TQ_EXCHANGE_TASK_EXCEPTION:
		case TQ_EXCHANGE_TASK_PRIORITY_CHANGED:
		case TQ_EXCHANGE_TASK_ALERT:
		case TQ_EXCHANGE_TASK_PROGRESS:
			if (!address_task(source, address))
				return false;
			address->routing_key = task_key(address);
			/* Add a CC address for each route of the task, in order (6.4). */
			routes = tq_texts_of_array(address->task->routes, &n);
			for (int i = 0; i < Min(n, TQ_ROUTES_MAX); i++)
				address->cc[address->ncc++] = psprintf("route.%s", routes[i]);
			return true;
		case TQ_EXCHANGE_NONE:
			break;
	}
	return false;
}

/*
 * Returns whether a message matches this binding, by its routing key or by a
 * route.  A message whose routing key cannot be built matches every binding of
 * its exchange.
 */
bool
tq_filter_matches(const TqFilter *filter, const TqAddress *address)
{
	if (filter->exchange != TQ_EXCHANGE_NONE &&
		filter->exchange != address->message->exchange)
		return false;
	if (address->routing_key == NULL ||
		tq_topic_match(filter->pattern, address->routing_key))
		return true;
	for (int i = 0; i < address->ncc; i++)
	{
		if (tq_topic_match(filter->pattern, address->cc[i]))
			return true;
	}
	return false;
}

/* ---- payloads ---- */

/* Sets a run back to what it was when the message was written. */
static void
turn_back(TqHistoryRun *entry, const TqAddress *address)
{
	const TqMessage *message = address->message;
	TqRun *run = &entry->run;

	run->state = message->state;
	if (tq_state_is_resolved(message->state))
		return;
	run->reason = TQ_RESOLVED_NONE;
	run->resolved = 0;
	run->taken_until = message->taken_until;
	if (message->state == TQ_STATE_RUNNING)
	{
		entry->worker_group = address->worker_group;
		entry->worker_id = address->worker_id;
		return;
	}
	run->started = 0;
	entry->worker_group = entry->worker_id = NULL;
}

/*
 * Adds the status of the task as of the message.  Its deadline is the defined
 * one as long as the total time had not begun.
 */
static void
add_status(JsonbParseState **state, const TqAddress *address)
{
	const TqMessage *message = address->message;
	TqNamedTask named = address->task->named;
	int n = message->last_run + 1;
	TqHistoryRun *runs = palloc(sizeof(TqHistoryRun) * Max(n, 1));

	named.task.priority = message->priority;
	memcpy(runs, address->runs, sizeof(TqHistoryRun) * n);
	/*
	 * Remove what only a policy causes, because Taskcluster's messages have no
	 * keys for it.
	 */
	named.task.policy = 0;
	for (int i = 0; i < n; i++)
	{
		runs[i].detail = NULL;
		runs[i].is_left = false; /* not yet when the message was written */
	}
	/*
	 * The total time of the task had begun, which it does when its first run
	 * becomes pending.
	 */
	if (!(n > 1 || (n == 1 && runs[0].run.created != TQ_CREATED_EXCEPTION &&
					runs[0].run.created != TQ_CREATED_SKIP)))
		named.task.deadline = named.task.defined_deadline;
	if (n > 0 && message->state == TQ_STATE_UNSCHEDULED)
		runs[n - 1].is_left = true;
	else if (n > 0)
		turn_back(&runs[n - 1], address);
	tq_json_key(state, "status");
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	tq_status_push(state, &named, runs, n);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

static void
add_worker(JsonbParseState **state, const TqAddress *address)
{
	const char *group;
	const char *id;

	if (!names_worker(address, &group, &id))
		return;
	tq_json_add_text(state, "workerGroup", group);
	tq_json_add_text(state, "workerId", id);
}

static void
message_json_refuse_size(Size size)
{
	ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					errmsg("payload of a message is too large"),
					errdetail("It has %zu bytes as jsonb; the limit is %zu.",
							  size, JSONB_MAX),
					errhint("Create tasks with less in their tags.")));
}

/* Returns the size of a stored jsonb without detoasting it; 0 for NULL. */
static Size
stored_size(const Jsonb *json)
{
	return json != NULL ? toast_raw_datum_size(PointerGetDatum(json)) : 0;
}

static void
add_tags(JsonbParseState **state, const TqMessageTask *task)
{
	if (stored_size(task->tags) > JSONB_MAX)
		message_json_refuse_size(stored_size(task->tags));
	tq_json_key(state, "task");
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_object(state, "tags",
					   task->tags != NULL
						   ? DatumGetJsonbP(PointerGetDatum(task->tags))
						   : NULL);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/* Adds the keys of the message's detail to the payload. */
static void
message_json_add_detail(JsonbParseState **state, Jsonb *detail)
{
	JsonbIterator *it = JsonbIteratorInit(&detail->root);
	JsonbIteratorToken token;
	JsonbValue value;

	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY || token == WJB_VALUE)
			pushJsonbValue(state, token, &value);
	}
}

/* Adds what the exchange of a message adds to version and status (6.1). */
static void
add_particulars(JsonbParseState **state, const TqAddress *address)
{
	const TqMessage *message = address->message;

	if (message->run_id >= 0)
		tq_json_add_int(state, "runId", message->run_id);
	switch (message->exchange)
	{
		case TQ_EXCHANGE_TASK_RUNNING:
			add_worker(state, address);
			tq_json_add_time(state, "takenUntil", message->taken_until);
			add_tags(state, address->task);
			break;
		case TQ_EXCHANGE_TASK_COMPLETED:
		case TQ_EXCHANGE_TASK_FAILED:
		case TQ_EXCHANGE_TASK_EXCEPTION:
		case TQ_EXCHANGE_TASK_ALERT:
		case TQ_EXCHANGE_TASK_PROGRESS:
			add_worker(state, address);
			add_tags(state, address->task);
			if (message->detail != NULL)
				message_json_add_detail(state, message->detail);
			break;
		case TQ_EXCHANGE_TASK_DEFINED:
		case TQ_EXCHANGE_TASK_PENDING:
			add_tags(state, address->task);
			break;
		case TQ_EXCHANGE_ARTIFACT_CREATED:
			add_worker(state, address);
			tq_json_add_object(state, "artifact", message->detail);
			break;
		case TQ_EXCHANGE_TASK_PRIORITY_CHANGED:
			message_json_add_detail(state, message->detail);
			break;
		case TQ_EXCHANGE_NONE:
		case TQ_EXCHANGE_TASK_GROUP_RESOLVED:
		case TQ_EXCHANGE_TASK_GROUP_SEALED:
		case TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED:
			break;
	}
}

/*
 * Returns the payload of a message, as Taskcluster has it (6.1).  Raises an
 * error if it is too large.
 */
Jsonb *
tq_message_payload(const TqAddress *address)
{
	JsonbParseState *state = NULL;
	Jsonb *payload;

	switch (address->message->exchange)
	{
		case TQ_EXCHANGE_TASK_GROUP_RESOLVED:
		case TQ_EXCHANGE_TASK_GROUP_SEALED:
		case TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED:
			return address->message->detail != NULL
					   ? address->message->detail
					   : lone_group_payload(&address->task->named);
		case TQ_EXCHANGE_NONE:
		case TQ_EXCHANGE_TASK_DEFINED:
		case TQ_EXCHANGE_TASK_PENDING:
		case TQ_EXCHANGE_TASK_RUNNING:
		case TQ_EXCHANGE_ARTIFACT_CREATED:
		case TQ_EXCHANGE_TASK_COMPLETED:
		case TQ_EXCHANGE_TASK_FAILED:
		case TQ_EXCHANGE_TASK_EXCEPTION:
		case TQ_EXCHANGE_TASK_PRIORITY_CHANGED:
		case TQ_EXCHANGE_TASK_ALERT:
		case TQ_EXCHANGE_TASK_PROGRESS:
			break;
	}
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_int(&state, "version", 1);
	add_status(&state, address);
	add_particulars(&state, address);
	payload = tq_json_end(&state);
	if (VARSIZE(payload) > JSONB_MAX)
		message_json_refuse_size(VARSIZE(payload));
	return payload;
}

static void
begin_ids(StringInfo text, const TqAddress *address)
{
	initStringInfo(text);
	appendStringInfo(text, "{\"id\": " INT64_FORMAT, address->message->id);
	appendStringInfoString(text, ", \"exchange\": ");
	escape_json(text, tq_exchange_name(address->message->exchange));
}

static void
begin_envelope(StringInfo text, const TqAddress *address)
{
	begin_ids(text, address);
	if (address->routing_key == NULL)
		return;
	appendStringInfoString(text, ", \"routingKey\": ");
	escape_json(text, address->routing_key);
}

static char *
truncated_envelope(const TqAddress *address)
{
	StringInfoData text;

	begin_envelope(&text, address);
	appendStringInfoString(&text, ", \"truncated\": true}");
	return text.data;
}

/*
 * Returns whether the payload of this message contains the tags of its task.
 */
static bool
has_tags(const TqAddress *address)
{
	switch (address->message->exchange)
	{
		case TQ_EXCHANGE_TASK_DEFINED:
		case TQ_EXCHANGE_TASK_PENDING:
		case TQ_EXCHANGE_TASK_RUNNING:
		case TQ_EXCHANGE_TASK_COMPLETED:
		case TQ_EXCHANGE_TASK_FAILED:
		case TQ_EXCHANGE_TASK_EXCEPTION:
		case TQ_EXCHANGE_TASK_ALERT:
		case TQ_EXCHANGE_TASK_PROGRESS:
			return address->task != NULL;
		case TQ_EXCHANGE_NONE:
		case TQ_EXCHANGE_ARTIFACT_CREATED:
		case TQ_EXCHANGE_TASK_GROUP_RESOLVED:
		case TQ_EXCHANGE_TASK_GROUP_SEALED:
		case TQ_EXCHANGE_TASK_PRIORITY_CHANGED:
		case TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED:
			return false;
	}
	return false;
}

/* Returns whether messages of an exchange are about a group. */
static bool
is_about_group(TqExchange exchange)
{
	switch (exchange)
	{
		case TQ_EXCHANGE_TASK_GROUP_RESOLVED:
		case TQ_EXCHANGE_TASK_GROUP_SEALED:
		case TQ_EXCHANGE_TASK_GROUP_PRIORITY_CHANGED:
			return true;
		case TQ_EXCHANGE_NONE:
		case TQ_EXCHANGE_TASK_DEFINED:
		case TQ_EXCHANGE_TASK_PENDING:
		case TQ_EXCHANGE_TASK_RUNNING:
		case TQ_EXCHANGE_ARTIFACT_CREATED:
		case TQ_EXCHANGE_TASK_COMPLETED:
		case TQ_EXCHANGE_TASK_FAILED:
		case TQ_EXCHANGE_TASK_EXCEPTION:
		case TQ_EXCHANGE_TASK_PRIORITY_CHANGED:
		case TQ_EXCHANGE_TASK_ALERT:
		case TQ_EXCHANGE_TASK_PROGRESS:
			return false;
	}
	return false;
}

/* Returns the id of the group that a message is about. */
static const char *
group_of(const TqAddress *address)
{
	return address->task != NULL
			   ? tq_slug_text(&address->task->named.group_slug)
			   : tq_json_get_text(address->message->detail, "taskGroupId");
}

/*
 * Returns the whole message, or only its id, exchange and routing key if it is
 * too large for NOTIFY or cannot be built.
 */
static char *
full_envelope(const TqAddress *address)
{
	StringInfoData text;
	Jsonb *payload;

	/*
	 * The message is too large for NOTIFY, as far as that can be known without
	 * building it.
	 */
	if (address->is_broken ||
		(stored_size(address->message->detail) > SURELY_LARGE ||
		 (has_tags(address) &&
		  stored_size(address->task->tags) > SURELY_LARGE)))
		return truncated_envelope(address);
	payload = tq_message_payload(address);
	if (tq_json_size_over(&payload->root, PAYLOAD_MAX) > 0)
		return truncated_envelope(address);
	begin_envelope(&text, address);
	appendStringInfoString(&text, ", \"cc\": [");
	for (int i = 0; i < address->ncc; i++)
	{
		if (i > 0)
			appendStringInfoString(&text, ", ");
		escape_json(&text, address->cc[i]);
	}
	appendStringInfoString(&text, "], \"payload\": ");
	(void) JsonbToCString(&text, &payload->root, VARSIZE(payload));
	appendStringInfoChar(&text, '}');
	return text.len <= PAYLOAD_MAX ? text.data : truncated_envelope(address);
}

/* Returns the payload of NOTIFY; `payload` is full where it is auto. */
char *
tq_message_envelope(const TqAddress *address, TqNotifyPayload payload)
{
	StringInfoData text;

	switch (payload)
	{
		case TQ_NOTIFY_AUTO:
		case TQ_NOTIFY_FULL:
			return full_envelope(address);
		case TQ_NOTIFY_IDS:
			/*
			 * Id, exchange, and the task and the run, or the group, that the
			 * message is about.  It has no routing key, which names queues and
			 * workers.
			 */
			begin_ids(&text, address);
			if (is_about_group(address->message->exchange))
			{
				if (address->routing_key != NULL)
					appendStringInfo(&text, ", \"taskGroupId\": \"%s\"",
									 group_of(address));
			}
			else if (address->task != NULL)
				appendStringInfo(&text, ", \"taskId\": \"%s\"",
								 tq_slug_text(
									 &address->task->named.task.task_id));
			if (address->message->run_id >= 0 &&
				!is_about_group(address->message->exchange))
				appendStringInfo(&text, ", \"runId\": %d",
								 address->message->run_id);
			appendStringInfoChar(&text, '}');
			return text.data;
		case TQ_NOTIFY_OFF:
			break;
	}
	return pstrdup("");
}

/* ---- messages that cannot be built ---- */

/* How much of a message to build. */
typedef enum MessageJsonExtent
{
	EXTENT_WHOLE,
	EXTENT_NO_PAYLOAD,
	EXTENT_ID /* and exchange */
} MessageJsonExtent;

/* A message that is given to its receiver by itself. */
typedef struct Alone
{
	const TqMessage *message;
	TqReceiver receive;
	void *arg;
	MessageJsonExtent extent;
	TqAddress address;
} Alone;

/*
 * Builds as much of one message as its extent says, and gives it to its
 * receiver.  A message about something deleted is not given.
 */
static void
receive_alone(void *arg)
{
	Alone *alone = (Alone *) arg;
	TqAddress *address = &alone->address;
	TqSource source;

	memset(address, 0, sizeof(TqAddress));
	address->message = alone->message;
	if (alone->extent != EXTENT_ID)
	{
		tq_message_source(alone->message, 1, &source);
		if (!tq_message_address(&source, alone->message, address))
			return;
	}
	address->is_broken = alone->extent != EXTENT_WHOLE;
	alone->receive(address, alone->arg);
}

/* Logs a warning about a message that cannot be built, once a session. */
static void
warn_broken(const TqMessage *message, const TqMessageTask *task,
			const ErrorData *error)
{
	static int64 warned = 0;

	if (message->id <= warned)
		return;
	warned = message->id;
	ereport(
		WARNING,
		(errcode(error->sqlerrcode),
		 errmsg("message %lld cannot be built", (long long) message->id),
		 errdetail("It is of exchange %s and task %s: %s",
				   tq_exchange_name(message->exchange),
				   task != NULL
					   ? tq_slug_text(&task->named.task.task_id)
					   : psprintf("number " INT64_FORMAT, message->task),
				   error->message),
		 errhint(
			 "Readers get it without its payload; where tq.task() fails, too, "
			 "tq.delete_task() removes the task.")));
}

/*
 * Gives one message to a receiver: whole; if that fails, without its payload;
 * if that fails too, with only its id and exchange.  What a receiver has
 * written in a failed attempt is rolled back.
 */
void
tq_message_alone(const TqMessage *message, TqReceiver receive, void *arg)
{
	Alone alone = {.message = message, .receive = receive, .arg = arg};

	for (MessageJsonExtent extent = EXTENT_WHOLE; extent <= EXTENT_ID;
		 extent++)
	{
		ErrorData *error;

		alone.extent = extent;
		error = tq_attempt(receive_alone, &alone);
		if (error == NULL)
			return;
		/* The receiver fails even without the content of the message. */
		if (extent == EXTENT_ID)
			ReThrowError(error);
		warn_broken(message, alone.address.task, error);
	}
}
