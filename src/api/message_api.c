/*
 * message_api.c
 *	  SQL functions on exchange messages: channels, the message log, reading of
 *	  subscriptions, and what the bodies of subscriptions.sql call.
 *
 * Which messages a reader gets is decided in subscription.c.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "utils/rel.h"
#include "utils/xid8.h"

#include "../core/names.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_sql_arg_exchange);
PG_FUNCTION_INFO_V1(tq_sql_bindings_changed);
PG_FUNCTION_INFO_V1(tq_sql_lock_bindings_of);
PG_FUNCTION_INFO_V1(tq_sql_lock_subscriptions_of);
PG_FUNCTION_INFO_V1(tq_queue_channel);
PG_FUNCTION_INFO_V1(tq_worker_channel);
PG_FUNCTION_INFO_V1(tq_messages_0_2);
PG_FUNCTION_INFO_V1(tq_message);
PG_FUNCTION_INFO_V1(tq_published_id);
PG_FUNCTION_INFO_V1(tq_fetch);
PG_FUNCTION_INFO_V1(tq_ack);
PG_FUNCTION_INFO_V1(tq_stamp_message);
PG_FUNCTION_INFO_V1(tq_exchange_name_sql);

#define COLUMNS 6
#define PATTERN_MAX 1024 /* more than a routing key has (6.2) */
#define NAME_MAX_CHARS 255

/* ---- arguments ---- */

/* Returns the exchange of that name, or raises TQ400. */
static TqExchange
exchange_of(const char *name)
{
	TqExchange exchange = tq_exchange_parse(name);

	if (exchange == TQ_EXCHANGE_NONE)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("there is no exchange \"%s\"", tq_error_clip(name)),
			 errdetail(
				 "Exchanges have the names of Taskcluster: task-defined, taskDefined and "
				 "exchange/taskcluster-queue/v1/task-defined are the same exchange."),
			 errhint(
				 "Use one of task-defined, task-pending, task-running, artifact-created, "
				 "task-completed, task-failed, task-exception, task-group-resolved, "
				 "task-group-sealed, task-priority-changed, "
				 "task-group-priority-changed, task-alert, task-progress.")));
	return exchange;
}

/* Returns a text argument of min to max bytes. */
static char *
sized_text(FunctionCallInfo fcinfo, int n, const char *name, int min, int max)
{
	char *text = tq_arg_text(fcinfo, n, name);
	size_t length = strlen(text);

	if (length < min || length > max)
		ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
						errmsg("invalid length of %s", name),
						errdetail("It has %d bytes.", (int) length),
						errhint("Give 1 to %d bytes.", max)));
	return text;
}

static char *
name_arg(FunctionCallInfo fcinfo, int n)
{
	return sized_text(fcinfo, n, "name", 1, NAME_MAX_CHARS);
}

static int64
id_arg(FunctionCallInfo fcinfo, int n, const char *name)
{
	if (PG_ARGISNULL(n))
		tq_error_null(name);
	return PG_GETARG_INT64(n);
}

/* ---- what the bodies of subscriptions.sql call ---- */

/* arg_exchange(exchange text) -> int, its number */
Datum
tq_sql_arg_exchange(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(exchange_of(tq_arg_text(fcinfo, 0, "exchange")));
}

/* bindings_changed(): after a change of bindings or subscriptions */
Datum
tq_sql_bindings_changed(PG_FUNCTION_ARGS)
{
	tq_bindings_changed();
	PG_RETURN_VOID();
}

/* lock_bindings_of(name text), a channel or a subscription */
Datum
tq_sql_lock_bindings_of(PG_FUNCTION_ARGS)
{
	tq_binding_lock(text_to_cstring(PG_GETARG_TEXT_PP(0)),
					TQ_LOCK_CLASS_BINDINGS);
	PG_RETURN_VOID();
}

/* lock_subscriptions_of(creator text), a role */
Datum
tq_sql_lock_subscriptions_of(PG_FUNCTION_ARGS)
{
	tq_binding_lock(text_to_cstring(PG_GETARG_TEXT_PP(0)),
					TQ_LOCK_CLASS_SUBSCRIPTIONS);
	PG_RETURN_VOID();
}

/* ---- channels ---- */

static TqNeed *
need_read(TqExchange exchange)
{
	return tq_need("queue:read-messages:%s", exchange == TQ_EXCHANGE_NONE
												 ? "*"
												 : tq_exchange_name(exchange));
}

/* queue_channel(task_queue_id text) -> text, at most 63 bytes */
Datum
tq_queue_channel(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(
		tq_queue_channel_name(tq_arg_task_queue_id(fcinfo, 0))));
}

/*
 * worker_channel(worker_group, worker_id text) -> text, at most 63 bytes; TQ400
 * for what is no name of a worker (2.10)
 */
Datum
tq_worker_channel(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(
		tq_worker_channel_name(tq_arg_worker_name(fcinfo, 0, "worker_group"),
							   tq_arg_worker_name(fcinfo, 1, "worker_id"))));
}

/* ---- the log ---- */

/*
 * Fills in a row of tq.exchange_message, with NULLs if the message cannot be
 * built.
 */
static void
fill_message(const TqAddress *address, Datum *values, bool *nulls)
{
	const TqMessage *message = address->message;

	memset(nulls, 0, sizeof(bool) * COLUMNS);
	values[0] = Int64GetDatum(message->id);
	values[1] = CStringGetTextDatum(tq_exchange_name(message->exchange));
	if (address->routing_key != NULL)
		values[2] = CStringGetTextDatum(address->routing_key);
	nulls[2] = address->routing_key == NULL;
	values[3] = tq_array_text(address->cc, address->ncc);
	if (!address->is_broken)
		values[4] = JsonbPGetDatum(tq_message_payload(address));
	nulls[4] = address->is_broken;
	values[5] = TimestampTzGetDatum(message->published);
}

static void
put_message(const TqAddress *address, void *arg)
{
	Datum values[COLUMNS];
	bool nulls[COLUMNS];

	fill_message(address, values, nulls);
	tq_put_row((ReturnSetInfo *) arg, values, nulls);
}

/*
 * Checks the right to read the messages of an exchange, or of all of them.  A
 * message that does not exist is reported to every caller.
 */
static void
require_read(TqExchange exchange)
{
	tq_access_require(need_read(exchange));
}

/*
 * messages(exchange text, pattern text, after bigint, max int) -> rows of
 * tq.exchange_message.  A negative "after" is counted from the last id.
 */
Datum
tq_messages_0_2(PG_FUNCTION_ARGS)
{
	TqFilter filter = {
		.exchange = PG_ARGISNULL(0)
						? TQ_EXCHANGE_NONE
						: exchange_of(tq_arg_text(fcinfo, 0, "exchange"))};
	char *pattern = sized_text(fcinfo, 1, "pattern", 0, PATTERN_MAX);
	int64 after = id_arg(fcinfo, 2, "after");
	int max = tq_arg_max(fcinfo, 3);
	int64 upto;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	require_read(filter.exchange);
	if (after < 0)
	{
		TqTick last;

		/* Not the id that a promotion leaves out ids for. */
		tq_tick_last(&last);
		after = Max(after + last.last_id, 0);
	}
	filter.pattern = tq_topic_compile(pattern);
	(void) tq_subscribe_read(after, max, PG_INT64_MAX, &filter, 1, put_message,
							 fcinfo->resultinfo, &upto);
	tq_call_end();
	return (Datum) 0;
}

/* A message that is returned as a row. */
typedef struct One
{
	int64 id;
	TupleDesc desc;
	MemoryContext context;
	HeapTuple tuple;
	TqExchange exchange; /* of the message */
} One;

/* Makes a row of the message, if it has the id that was asked for. */
static void
take_one(const TqAddress *address, void *arg)
{
	One *one = (One *) arg;
	Datum values[COLUMNS];
	bool nulls[COLUMNS];
	MemoryContext inner;

	if (address->message->id != one->id)
		return;
	one->exchange = address->message->exchange;
	fill_message(address, values, nulls);
	inner = MemoryContextSwitchTo(one->context);
	one->tuple = heap_form_tuple(one->desc, values, nulls);
	MemoryContextSwitchTo(inner);
}

/*
 * message(id bigint) -> tq.exchange_message; TQ404 when the log does not have
 * it
 */
Datum
tq_message(PG_FUNCTION_ARGS)
{
	TqFilter any = {.exchange = TQ_EXCHANGE_NONE};
	One one = {.id = id_arg(fcinfo, 0, "id"), .context = CurrentMemoryContext};
	int64 upto;

	if (get_call_result_type(fcinfo, NULL, &one.desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	one.desc = BlessTupleDesc(one.desc);
	tq_call_begin(true);
	any.pattern = tq_topic_compile("#");
	if (one.id > 0)
		(void) tq_subscribe_read(one.id - 1, 1, 1, &any, 1, take_one, &one,
								 &upto);
	if (one.tuple == NULL)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_NOT_FOUND),
			 errmsg("message %lld does not exist", (long long) one.id),
			 errdetail(
				 "It has not been published, is no longer kept, or its task has been deleted."),
			 errhint(
				 "tq.messages() lists those that are kept, for tq.message_retention.")));
	require_read(one.exchange);
	tq_call_end();
	PG_RETURN_DATUM(HeapTupleGetDatum(one.tuple));
}

/*
 * published_id() -> bigint: the last id that readers may have seen.  Waits for
 * the synchronous standbys as messages() does.  For views: checks no scope.
 */
Datum
tq_published_id(PG_FUNCTION_ARGS)
{
	int64 id;

	tq_call_begin(true);
	id = tq_tick_last_id();
	tq_call_end();
	PG_RETURN_INT64(id);
}

/* ---- subscriptions ---- */

/*
 * Checks the right to read each exchange that a subscription is bound to.  It
 * was checked when the binding was made, but it may have been revoked since,
 * and another role may have made the binding.
 */
static void
require_exchanges(const TqBinding *bindings, int n)
{
	TqNeed *all;
	int added = 0; /* exchanges, as bits */

	if (tq_access_is_unlimited())
		return;
	all = tq_need_list(TQ_NEED_ALL, n);
	for (int i = 0; i < n; i++)
	{
		if ((added & 1 << bindings[i].exchange) == 0)
			tq_need_add(all, need_read(bindings[i].exchange));
		added |= 1 << bindings[i].exchange;
	}
	tq_access_check(all);
}

/* fetch(name text, max int) -> rows of tq.exchange_message */
Datum
tq_fetch(PG_FUNCTION_ARGS)
{
	char *name = name_arg(fcinfo, 0);
	int max = tq_arg_max(fcinfo, 1);

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(XactReadOnly); /* a standby can only read */
	tq_access_require(tq_need("queue:subscribe:%s", name));
	(void) tq_subscribe_fetch(name, max, require_exchanges, put_message,
							  fcinfo->resultinfo, tq_clock_now());
	tq_call_end();
	return (Datum) 0;
}

/* ack(name text, id bigint) */
Datum
tq_ack(PG_FUNCTION_ARGS)
{
	char *name = name_arg(fcinfo, 0);
	int64 id = id_arg(fcinfo, 1, "id");

	tq_call_begin(false);
	tq_access_require(tq_need("queue:subscribe:%s", name));
	tq_subscribe_ack(name, id, tq_clock_now());
	tq_call_end();
	PG_RETURN_VOID();
}

/* ---- dump and restore ---- */

/*
 * Trigger on tq_internal.message: stamps a row that is loaded with the
 * transaction that loads it, so that it is published in this database.
 * Nothing is published before the database is in use (activation.c), so the
 * sequence of ids, and the tasks, may be loaded later.  A row that was derived
 * gets a place in the order of writing.
 */
Datum
tq_stamp_message(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	HeapTuple row;
	TupleDesc columns;
	int changed[4];
	Datum values[4];
	bool isnull[4];
	int64 seq;

	if (!CALLED_AS_TRIGGER(fcinfo) ||
		!TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
		!TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		ereport(
			ERROR,
			(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
			 errmsg(
				 "tq_internal.stamp_message() must be called by a BEFORE INSERT trigger"),
			 errdetail("It was not called by such a trigger."),
			 errhint("Do not call it, nor use it for other triggers.")));
	row = trigger->tg_trigtuple;
	columns = trigger->tg_relation->rd_att;
	changed[0] = SPI_fnumber(columns, "xid");
	changed[1] = SPI_fnumber(columns, "seq");
	changed[2] = SPI_fnumber(columns, "worker");
	changed[3] = SPI_fnumber(columns, "records");
	for (int i = 0; i < 4; i++)
		values[i] = SPI_getbinval(row, columns, changed[i], &isnull[i]);
	if (!isnull[0] && !isnull[3] &&
		tq_message_was_derived(DatumGetFullTransactionId(values[0]),
							   DatumGetByteaPP(values[3]), &seq))
	{
		values[1] = Int64GetDatum(seq);
		values[2] = Int32GetDatum(0); /* says so to the publisher */
		isnull[1] = isnull[2] = false;
	}
	values[0] = FullTransactionIdGetDatum(GetTopFullTransactionId());
	isnull[0] = false;
	tq_request_publication();
	return PointerGetDatum(
		heap_modify_tuple_by_cols(row, columns, 3, changed, values, isnull));
}

/* exchange_name(exchange int) -> text, NULL for an unknown number */
Datum
tq_exchange_name_sql(PG_FUNCTION_ARGS)
{
	const char *name = tq_exchange_name((TqExchange) PG_GETARG_INT32(0));

	if (name == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(name));
}

PG_FUNCTION_INFO_V1(tq_topic_match_sql);

/*
 * A routing key of AMQP has at most 255 bytes.  This limit is more generous;
 * there is one because a match cannot be interrupted.
 */
#define MAX_LENGTH 65535

/* The pattern of the last call. */
typedef struct Memory
{
	TqPattern *pattern;
	size_t length;
	char text[FLEXIBLE_ARRAY_MEMBER];
} Memory;

static void
check_length(const char *what, const text *value)
{
	if (VARSIZE_ANY_EXHDR(value) > MAX_LENGTH)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("%s is too long", what),
			 errdetail("It has %zu bytes, and may have %d.",
					   (size_t) VARSIZE_ANY_EXHDR(value), MAX_LENGTH),
			 errhint(
				 "Give a shorter one; a routing key rarely has more than 255 bytes.")));
}

/* Compiles a pattern in that memory context. */
static Memory *
memorize(const text *pattern, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	size_t length = VARSIZE_ANY_EXHDR(pattern);
	Memory *memory = palloc(offsetof(Memory, text) + length + 1);

	memcpy(memory->text, VARDATA_ANY(pattern), length);
	memory->text[length] = '\0';
	memory->length = length;
	memory->pattern = tq_topic_compile(memory->text);
	MemoryContextSwitchTo(caller);
	return memory;
}

static void
message_forget(Memory *memory)
{
	if (memory == NULL)
		return;
	pfree(memory->pattern);
	pfree(memory);
}

/*
 * Returns the compiled pattern, from the cache if an earlier call had the
 * same.
 */
static const TqPattern *
recall(FmgrInfo *function, const text *pattern)
{
	Memory *memory = function->fn_extra;

	if (memory == NULL || memory->length != VARSIZE_ANY_EXHDR(pattern) ||
		memcmp(memory->text, VARDATA_ANY(pattern), memory->length) != 0)
	{
		function->fn_extra = NULL;
		message_forget(memory);
		check_length("pattern", pattern);
		memory = memorize(pattern, function->fn_mcxt);
		function->fn_extra = memory;
	}
	return memory->pattern;
}

/* topic_match(pattern text, routing_key text) -> bool */
Datum
tq_topic_match_sql(PG_FUNCTION_ARGS)
{
	const TqPattern *pattern = recall(fcinfo->flinfo, PG_GETARG_TEXT_PP(0));
	text *key = PG_GETARG_TEXT_PP(1);

	check_length("routing key", key);
	PG_RETURN_BOOL(tq_topic_match(pattern, text_to_cstring(key)));
}
