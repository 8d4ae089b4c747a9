/*
 * history_api.c
 *	  SQL functions for the history of queues (src/sql/history.sql): what the
 *	  counters have gained since the last step, and distributions of durations
 *	  that are stored.
 *
 * The table has what happened in each step, so its writer needs what the
 * counters were at the end of the step before.  The process that writes keeps
 * that: the maintenance worker, which is the only one of its database.  It adopts
 * what it has read only when the (sub)transaction that has read it has committed,
 * so that a step that fails is not missing, but part of the next one.
 *
 * Counters that are less than before were reset, and those of a queue that has
 * lost its entry and got another one began with that; they count from zero then.  The first call
 * of a process, and one that comes more than GAP_MS after the last, only looks:
 * nothing says when what it finds has happened.
 *
 * What has become visible before a step, also by COMMIT PREPARED, is part of it.
 *
 * Locks: that of the counters, in share mode, while they are copied, and for what
 * a prepared transaction has changed in exclusive mode.
 *
 * A distribution is stored as the buckets that are not empty: how many are
 * skipped, and the count, each as a number of seven bits a byte, the lowest
 * first.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "../core/state.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_history_changes);
PG_FUNCTION_INFO_V1(tq_exact_gauges);
PG_FUNCTION_INFO_V1(tq_histogram_add);
PG_FUNCTION_INFO_V1(tq_histogram_bytes);
PG_FUNCTION_INFO_V1(tq_histogram_of);
PG_FUNCTION_INFO_V1(tq_histogram_part);

#define GAP_MS 60000

/* The columns of tq_internal.history_changes(). */
enum
{
	COLUMN_QUEUE,
	COLUMN_CREATED,
	COLUMN_CLAIMED,
	COLUMN_RETRIED,
	COLUMN_COMPLETED,
	COLUMN_FAILED,
	COLUMN_EXCEPTION,
	COLUMN_EXPIRED_CLAIMS,
	COLUMN_UNSCHEDULED, /* and the other gauges, in their order */
	COLUMN_WAITED = COLUMN_UNSCHEDULED + TQ_QUEUE_STATES,
	COLUMN_RAN,
	COLUMNS
};

/* ---- stored distributions ---- */

static void
put_number(StringInfo bytes, uint64 value)
{
	for (; value >= 0x80; value >>= 7)
		appendStringInfoChar(bytes, (char) (value | 0x80));
	appendStringInfoChar(bytes, (char) value);
}

/* Returns a number, and sets *next to what follows it. */
static uint64
get_number(const unsigned char **next, const unsigned char *end)
{
	uint64 value = 0;

	for (int shift = 0; *next < end && shift < 63; shift += 7)
	{
		unsigned char byte = *(*next)++;

		value |= (uint64) (byte & 0x7f) << shift;
		if (byte < 0x80)
			break;
	}
	return value;
}

/* Returns a distribution as it is stored; NULL if it is empty. */
static bytea *
history_encode(const int64 *counts)
{
	StringInfoData bytes;
	int next = 0;

	initStringInfo(&bytes);
	appendStringInfoSpaces(&bytes, VARHDRSZ);
	for (int i = 0; i < TQ_BUCKETS; i++)
	{
		if (counts[i] <= 0)
			continue;
		put_number(&bytes, i - next);
		put_number(&bytes, counts[i]);
		next = i + 1;
	}
	SET_VARSIZE(bytes.data, bytes.len);
	return next == 0 ? NULL : (bytea *) bytes.data;
}

/* Adds a stored distribution. */
static void
history_add(int64 *counts, bytea *stored)
{
	const unsigned char *next = (unsigned char *) VARDATA_ANY(stored);
	const unsigned char *end = next + VARSIZE_ANY_EXHDR(stored);
	uint64 bucket = 0;

	while (next < end)
	{
		bucket += get_number(&next, end);
		if (bucket >= TQ_BUCKETS)
			elog(ERROR, "a stored distribution has no bucket " UINT64_FORMAT,
				 bucket);
		counts[bucket++] += (int64) get_number(&next, end);
	}
}

/* histogram_add(internal, bytea) -> internal: of the sum of distributions */
Datum
tq_histogram_add(PG_FUNCTION_ARGS)
{
	MemoryContext context;
	int64 *counts;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "this function is part of an aggregate");
	counts = PG_ARGISNULL(0)
				 ? MemoryContextAllocZero(context, sizeof(int64) * TQ_BUCKETS)
				 : (int64 *) PG_GETARG_POINTER(0);
	if (!PG_ARGISNULL(1))
		history_add(counts, PG_GETARG_BYTEA_PP(1));
	PG_RETURN_POINTER(counts);
}

/* histogram_bytes(internal) -> bytea: a sum as it is stored; NULL: empty */
Datum
tq_histogram_bytes(PG_FUNCTION_ARGS)
{
	bytea *stored = PG_ARGISNULL(0)
						? NULL
						: history_encode((int64 *) PG_GETARG_POINTER(0));

	if (stored == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(stored);
}

/* histogram_of(duration interval) -> bytea: the distribution of one duration */
Datum
tq_histogram_of(PG_FUNCTION_ARGS)
{
	const Interval *span = PG_GETARG_INTERVAL_P(0);
	int64 us = span->time + span->day * USECS_PER_DAY;
	StringInfoData bytes;

	initStringInfo(&bytes);
	appendStringInfoSpaces(&bytes, VARHDRSZ);
	put_number(&bytes, tq_histogram_bucket(us / 1000));
	put_number(&bytes, 1);
	SET_VARSIZE(bytes.data, bytes.len);
	PG_RETURN_BYTEA_P(bytes.data);
}

/* histogram_part(histogram bytea, part float8) -> interval: a percentile */
Datum
tq_histogram_part(PG_FUNCTION_ARGS)
{
	Interval *span = palloc0(sizeof(Interval));
	int64 counts[TQ_BUCKETS] = {0};

	history_add(counts, PG_GETARG_BYTEA_PP(0));
	if (tq_histogram_total(counts) <= 0)
		PG_RETURN_NULL();
	span->time =
		(int64) (tq_histogram_percentile(counts, PG_GETARG_FLOAT8(1)) * 1000);
	PG_RETURN_INTERVAL_P(span);
}

/* ---- what the counters have gained ---- */

/* A queue, what its counters were, and what they were when they were read. */
typedef struct Seen
{
	int32 queue;
	uint32 entry;    /* the one that was read last */
	bool has_gauges; /* they were exact */
	bool is_owed;    /* a row was written without them */
	bool is_there;   /* when the counters were read last */
	int64 before[TQ_QUEUE_COUNTERS];
	int64 read[TQ_QUEUE_COUNTERS];
} Seen;

static struct
{
	HTAB *queues;
	Oid extension;
	TimestampTz since; /* when the counters were reset; 0: not counted yet */
	TimestampTz at;    /* of the last look, by the machine's clock */
	bool is_exact;     /* the gauges that it read */
	TransactionId writer; /* has got what was read, and not ended yet */
} seen = {.queues = NULL};

/* Forgets all queues, if there are any. */
static void
forget_all(Oid extension)
{
	HASHCTL control = {.keysize = sizeof(int32), .entrysize = sizeof(Seen)};

	if (seen.queues != NULL)
		hash_destroy(seen.queues);
	seen.queues = hash_create("tq history", 64, &control,
							  HASH_ELEM | HASH_BLOBS);
	seen.extension = extension;
	seen.writer = InvalidTransactionId;
}

/*
 * Adopts what was read last, if it was written, and forgets queues that had no
 * counters then.  Gauges that were not exact are none.
 */
static void
adopt(void)
{
	bool is_written = !TransactionIdIsValid(seen.writer) ||
					  TransactionIdIsCurrentTransactionId(seen.writer) ||
					  TransactionIdDidCommit(seen.writer);
	int first = seen.is_exact ? 0 : TQ_QUEUE_GAUGES;
	HASH_SEQ_STATUS scan;
	Seen *queue;

	seen.writer = InvalidTransactionId;
	hash_seq_init(&scan, seen.queues);
	while ((queue = hash_seq_search(&scan)) != NULL)
	{
		if (!queue->is_there)
			(void) hash_search(seen.queues, &queue->queue, HASH_REMOVE, NULL);
		else if (is_written)
		{
			memcpy(queue->before + first, queue->read + first,
				   sizeof(int64) * (TQ_QUEUE_COUNTERS - first));
			queue->is_owed &= !seen.is_exact;
		}
		queue->is_there = false;
	}
}

/* Returns whether what this process has seen says nothing of what comes now. */
static bool
is_first_look(Oid extension, TimestampTz now)
{
	return seen.queues == NULL || seen.extension != extension ||
		   now < seen.at || now > tq_clock_add_ms(seen.at, GAP_MS);
}

/*
 * Makes ready for another look; returns whether it is the first one of a
 * process, or comes too late, so that it is only a beginning.
 */
static bool
begin_look(Oid extension)
{
	TimestampTz now = tq_clock_real_now();
	bool is_first = is_first_look(extension, now);

	if (is_first)
		forget_all(extension);
	else
		adopt();
	seen.at = now;
	return is_first;
}

/* Returns what is known of a queue, whose counters are these. */
static Seen *
see(const TqQueueCounts *counts, bool is_first, bool is_exact, bool is_reset)
{
	bool found;
	Seen *queue = hash_search(seen.queues, &counts->queue, HASH_ENTER, &found);
	int64 *before = queue->before;

	if (!found)
	{
		memset(before, 0, sizeof(queue->before));
		queue->has_gauges = is_exact;
		queue->is_owed = false;
		queue->entry = counts->entry;
	}
	is_reset |= queue->entry != counts->entry;
	queue->entry = counts->entry;
	if (is_first)
		memcpy(before, counts->counters, sizeof(queue->before));
	else if (is_exact && !queue->has_gauges)
		memcpy(before, counts->counters, sizeof(int64) * TQ_QUEUE_GAUGES);
	queue->has_gauges |= is_exact;
	for (int i = TQ_QUEUE_GAUGES; i < TQ_QUEUE_COUNTERS && !is_reset; i++)
		is_reset = counts->counters[i] < before[i];
	if (is_reset)
		memset(before + TQ_QUEUE_GAUGES, 0,
			   sizeof(int64) * (TQ_QUEUE_COUNTERS - TQ_QUEUE_GAUGES));
	memcpy(queue->read, counts->counters, sizeof(queue->read));
	queue->is_there = true;
	return queue;
}

/*
 * Returns whether something has happened in a queue, or its gauges differ, or are
 * exact for the first time since a row was written without them: no other row
 * would have them before something happens again.
 */
static bool
has_changed(const Seen *queue, bool is_exact)
{
	return memcmp(queue->read + TQ_QUEUE_GAUGES,
				  queue->before + TQ_QUEUE_GAUGES,
				  sizeof(int64) * (TQ_QUEUE_COUNTERS - TQ_QUEUE_GAUGES)) !=
			   0 ||
		   (is_exact &&
			(queue->is_owed || memcmp(queue->read, queue->before,
									  sizeof(int64) * TQ_QUEUE_STATES) != 0));
}

static Datum
history_int(int64 value)
{
	return Int32GetDatum((int32) Max(0, Min(value, PG_INT32_MAX)));
}

/* Fills in a distribution: those of the counters from `first` on. */
static void
put_distribution(const int64 *gained, int column, Datum *values, bool *nulls)
{
	bytea *stored = history_encode(gained);

	nulls[column] = stored == NULL;
	if (stored != NULL)
		values[column] = PointerGetDatum(stored);
}

/* Adds the row of a queue: what its counters have gained, and its gauges. */
static void
put_changes(ReturnSetInfo *rsinfo, const Seen *queue, bool is_exact)
{
	Datum values[COLUMNS] = {0};
	bool nulls[COLUMNS] = {false};
	int64 gained[TQ_QUEUE_COUNTERS];
	int64 ended[TQ_STATE_EXCEPTION + 1] = {0};

	for (int i = 0; i < TQ_QUEUE_COUNTERS; i++)
		gained[i] = queue->read[i] - queue->before[i];
	for (int reason = 1; reason <= TQ_RESOLVED_LAST; reason++)
		ended[tq_resolved_state((TqResolved) reason)] +=
			gained[TQ_QUEUE_ENDED + reason];
	values[COLUMN_QUEUE] = Int32GetDatum(queue->queue);
	values[COLUMN_CREATED] = history_int(gained[TQ_QUEUE_CREATED]);
	values[COLUMN_CLAIMED] = history_int(gained[TQ_QUEUE_CLAIMED]);
	values[COLUMN_RETRIED] = history_int(gained[TQ_QUEUE_RETRIED]);
	values[COLUMN_COMPLETED] = history_int(ended[TQ_STATE_COMPLETED]);
	values[COLUMN_FAILED] = history_int(ended[TQ_STATE_FAILED]);
	values[COLUMN_EXCEPTION] = history_int(ended[TQ_STATE_EXCEPTION]);
	values[COLUMN_EXPIRED_CLAIMS] = history_int(
		gained[TQ_QUEUE_ENDED + TQ_RESOLVED_CLAIM_EXPIRED]);
	for (int gauge = 0; gauge < TQ_QUEUE_STATES; gauge++)
	{
		values[COLUMN_UNSCHEDULED + gauge] = history_int(queue->read[gauge]);
		nulls[COLUMN_UNSCHEDULED + gauge] = !is_exact;
	}
	put_distribution(gained + TQ_QUEUE_WAITED, COLUMN_WAITED, values, nulls);
	put_distribution(gained + TQ_QUEUE_RAN, COLUMN_RAN, values, nulls);
	tq_put_row(rsinfo, values, nulls);
}

/*
 * history_changes(only_begin bool) -> a row for each queue whose counters have
 * changed since the last call of this process whose transaction has committed.
 * The transaction gets an id then: its caller writes the rows.  With only_begin
 * a process that has seen the counters does nothing.
 */
Datum
tq_history_changes(PG_FUNCTION_ARGS)
{
	TqQueueCounts *counts = NULL;
	TimestampTz since;
	bool is_first;
	bool is_exact;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	if (PG_GETARG_BOOL(0) &&
		!is_first_look(tq_locked_table, tq_clock_real_now()))
	{
		tq_call_end();
		return (Datum) 0;
	}
	tq_counts_settle();
	is_first = begin_look(tq_locked_table);
	is_exact = tq_counts_read_queues(tq_locked_table, tq_count_identity(),
									 &counts, &n) == TQ_COUNT_MEMORY;
	since = tq_counts_since(tq_locked_table);
	for (int i = 0; i < n; i++)
	{
		Seen *queue = see(&counts[i], is_first, is_exact,
						  !is_first && seen.since != 0 && since != seen.since);

		if (!has_changed(queue, is_exact))
			continue;
		put_changes((ReturnSetInfo *) fcinfo->resultinfo, queue, is_exact);
		queue->is_owed |= !is_exact;
		seen.writer = GetCurrentTransactionId();
	}
	seen.since = since;
	seen.is_exact = is_exact;
	tq_call_end();
	return (Datum) 0;
}

/*
 * exact_gauges(queue int) -> int[]: its unscheduled, delayed, pending and
 * running tasks, by the counters; NULL if these have none
 */
Datum
tq_exact_gauges(PG_FUNCTION_ARGS)
{
	int64 gauges[TQ_QUEUE_GAUGES];
	Datum values[TQ_QUEUE_STATES];
	TqCountSource source;

	tq_call_begin(true);
	source = tq_counts_read_gauges(tq_locked_table, tq_count_identity(),
								   PG_GETARG_INT32(0), gauges);
	tq_call_end();
	if (source != TQ_COUNT_MEMORY)
		PG_RETURN_NULL();
	for (int i = 0; i < TQ_QUEUE_STATES; i++)
		values[i] = history_int(gauges[i]);
	PG_RETURN_ARRAYTYPE_P(construct_array(values, TQ_QUEUE_STATES, INT4OID,
										  sizeof(int32), true, TYPALIGN_INT));
}
