/*
 * count_api.c
 *	  SQL functions that show the counters of queues.
 *
 * Implements what the view tq.queue_stats shows (doc/spec/taskcluster.md 8.1),
 * and the totals from which its history is made (8.2).
 */
#include "postgres.h"

#include "access/xact.h"

#include "../core/names.h"
#include "../core/state.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_queue_counters);
PG_FUNCTION_INFO_V1(tq_queue_totals);
PG_FUNCTION_INFO_V1(tq_count_state);
PG_FUNCTION_INFO_V1(tq_reset_queue_stats);

/* The columns of tq_internal.queue_counters(). */
enum
{
	COLUMN_QUEUE,
	COLUMN_UNSCHEDULED,
	COLUMN_DELAYED,
	COLUMN_PENDING,
	COLUMN_RUNNING,
	COLUMN_GROUPS,
	COLUMN_UNIQUE_KEYS,
	COLUMN_FOREIGN_DEPENDENCIES,
	COLUMN_CREATED,
	COLUMN_CLAIMED,
	COLUMN_COMPLETED,
	COLUMN_FAILED,
	COLUMN_EXCEPTION,
	COLUMN_REASONS,
	COLUMN_RETRIED,
	COLUMN_EXPIRED_CLAIMS,
	COLUMN_CREATED_PER_S,
	COLUMN_CLAIMED_PER_S,
	COLUMN_ENDED_PER_S,
	COLUMN_WAITED, /* 50, 95, 99 percent, histogram */
	COLUMN_RAN = COLUMN_WAITED + 4,
	COLUMNS = COLUMN_RAN + 4
};

/* ---- gauges ---- */

/* Returns the position of a queue in a list, or the end of it. */
static int
find_gauges(const TqGauges *list, int n, int32 queue)
{
	int i = 0;

	while (i < n && list[i].queue != queue)
		i++;
	return i;
}

/* Takes the gauges from counts of the rows. */
static TqQueueCounts *
count_api_rows(TqQueueCounts *counts, int *n)
{
	int nrows;
	TqGauges *rows = tq_count_rows(&nrows);
	Size size = sizeof(TqQueueCounts) * (*n + nrows + 1);

	counts = counts == NULL ? palloc(size) : repalloc_huge(counts, size);
	for (int i = 0; i < *n; i++)
		memset(counts[i].counters, 0, sizeof(int64) * TQ_QUEUE_GAUGES);
	for (int row = 0; row < nrows; row++)
	{
		int i = 0;

		while (i < *n && counts[i].queue != rows[row].queue)
			i++;
		if (i == *n)
		{
			memset(&counts[i], 0, sizeof(TqQueueCounts));
			counts[i].queue = rows[row].queue;
			(*n)++;
		}
		memcpy(counts[i].counters, rows[row].gauges, sizeof(rows[row].gauges));
	}
	return counts;
}

static TqQueueCounts *
read_counts(int *n)
{
	TqQueueCounts *counts = NULL;
	TqCountSource source;
	int nended;
	TqGauges *ended;

	tq_counts_settle();
	source = tq_counts_read_queues(tq_locked_table, tq_count_identity(),
								   &counts, n);
	/* Wake the maintenance worker, which counts. */
	if (source == TQ_COUNT_REBUILDING)
		tq_request_cycle(tq_clock_now());
	if (source != TQ_COUNT_MEMORY)
		counts = count_api_rows(counts, n);
	/* Leave out what time has ended (doc/spec/taskcluster.md 8.1). */
	ended = tq_count_ended(tq_clock_now(), &nended);
	for (int i = 0; i < *n && nended > 0; i++)
	{
		int at = find_gauges(ended, nended, counts[i].queue);

		for (int gauge = 0; gauge < TQ_QUEUE_GAUGES && at < nended; gauge++)
			counts[i].counters[gauge] -= ended[at].gauges[gauge];
	}
	return counts;
}

/* ---- rows ---- */

static Datum
count_interval_of(double ms)
{
	Interval *span = palloc0(sizeof(Interval));

	span->time = (int64) (ms * 1000);
	return IntervalPGetDatum(span);
}

/* Returns a histogram as an object: below so many milliseconds, so often. */
static Jsonb *
histogram_json(const int64 *counts)
{
	JsonbParseState *state = tq_json_begin();

	for (int i = 0; i < TQ_BUCKETS; i++)
	{
		if (counts[i] != 0)
			tq_json_add_int(&state, psprintf("%.9g", tq_histogram_end(i)),
							counts[i]);
	}
	return tq_json_end(&state);
}

/* Fills in the four columns of a distribution. */
static void
put_histogram(const int64 *counts, int column, Datum *values, bool *nulls)
{
	static const double parts[3] = {0.5, 0.95, 0.99};
	bool is_empty = tq_histogram_total(counts) <= 0;

	for (int i = 0; i < 3; i++)
	{
		nulls[column + i] = is_empty;
		if (!is_empty)
			values[column + i] = count_interval_of(
				tq_histogram_percentile(counts, parts[i]));
	}
	values[column + 3] = JsonbPGetDatum(histogram_json(counts));
}

/* Returns how many runs have ended in a state. */
int64
tq_runs_ended(const TqQueueCounts *counts, TqState state)
{
	int64 runs = 0;

	for (int reason = 1; reason <= TQ_RESOLVED_LAST; reason++)
	{
		if (tq_resolved_state((TqResolved) reason) == state)
			runs += counts->counters[TQ_QUEUE_ENDED + reason];
	}
	return runs;
}

/*
 * Returns how many runs of a queue have ended for a reason.  Two reasons have one
 * name: their runs are those of the first, and the second has none.
 */
int64
tq_runs_ended_for(const TqQueueCounts *counts, TqResolved reason)
{
	const int64 *ended = counts->counters + TQ_QUEUE_ENDED;

	if (reason == TQ_RESOLVED_CANCELED_BY_WORKER)
		return 0;
	return ended[reason] + (reason == TQ_RESOLVED_CANCELED
								? ended[TQ_RESOLVED_CANCELED_BY_WORKER]
								: 0);
}

/* Returns how many runs have ended without success, by reason. */
static Jsonb *
reasons_json(const TqQueueCounts *counts)
{
	JsonbParseState *state = tq_json_begin();

	for (int reason = 1; reason <= TQ_RESOLVED_LAST; reason++)
	{
		int64 runs = tq_runs_ended_for(counts, (TqResolved) reason);

		if (runs > 0 &&
			tq_resolved_state((TqResolved) reason) != TQ_STATE_COMPLETED)
			tq_json_add_int(&state, tq_resolved_name((TqResolved) reason),
							runs);
	}
	return tq_json_end(&state);
}

static void
put_counts(ReturnSetInfo *rsinfo, const TqQueueCounts *counts)
{
	Datum values[COLUMNS] = {0};
	bool nulls[COLUMNS] = {false};
	const int64 *counters = counts->counters;

	values[COLUMN_QUEUE] = Int32GetDatum(counts->queue);
	for (int gauge = 0; gauge < TQ_QUEUE_GAUGES; gauge++)
		values[COLUMN_UNSCHEDULED + gauge] = Int64GetDatum(
			Max(counters[gauge], 0));
	values[COLUMN_CREATED] = Int64GetDatum(counters[TQ_QUEUE_CREATED]);
	values[COLUMN_CLAIMED] = Int64GetDatum(counters[TQ_QUEUE_CLAIMED]);
	values[COLUMN_COMPLETED] = Int64GetDatum(
		tq_runs_ended(counts, TQ_STATE_COMPLETED));
	values[COLUMN_FAILED] = Int64GetDatum(
		tq_runs_ended(counts, TQ_STATE_FAILED));
	values[COLUMN_EXCEPTION] = Int64GetDatum(
		tq_runs_ended(counts, TQ_STATE_EXCEPTION));
	values[COLUMN_REASONS] = JsonbPGetDatum(reasons_json(counts));
	values[COLUMN_RETRIED] = Int64GetDatum(counters[TQ_QUEUE_RETRIED]);
	values[COLUMN_EXPIRED_CLAIMS] = Int64GetDatum(
		counters[TQ_QUEUE_ENDED + TQ_RESOLVED_CLAIM_EXPIRED]);
	for (int rate = 0; rate < TQ_RATES; rate++)
		values[COLUMN_CREATED_PER_S + rate] = Float8GetDatum(
			(double) counts->last_minute[rate] / 60);
	put_histogram(counters + TQ_QUEUE_WAITED, COLUMN_WAITED, values, nulls);
	put_histogram(counters + TQ_QUEUE_RAN, COLUMN_RAN, values, nulls);
	tq_put_row(rsinfo, values, nulls);
}

/*
 * queue_counters() -> a row for each queue that has counters, or rows; the
 * columns of tq.queue_stats.  Not in the table: a queue that was deleted.
 */
Datum
tq_queue_counters(PG_FUNCTION_ARGS)
{
	TqQueueCounts *counts;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	counts = read_counts(&n);
	for (int i = 0; i < n; i++)
		put_counts((ReturnSetInfo *) fcinfo->resultinfo, &counts[i]);
	tq_call_end();
	return (Datum) 0;
}

/* ---- totals ---- */

/* The columns of tq_internal.queue_totals(). */
enum
{
	TOTALS_QUEUE,
	TOTALS_GAUGES, /* by state */
	TOTALS_CREATED = TOTALS_GAUGES + TQ_QUEUE_STATES,
	TOTALS_CLAIMED,
	TOTALS_RETRIED,
	TOTALS_DEAD_LETTERS,
	TOTALS_ENDED,
	TOTALS_WAITED_US,
	TOTALS_WAITED,
	TOTALS_RAN_US,
	TOTALS_RAN,
	TOTALS_COLUMNS
};

/* Returns the counts of a histogram as an array, without the last zeros. */
static Datum
histogram_array(const int64 *counts)
{
	int n = TQ_BUCKETS;

	while (n > 0 && counts[n - 1] == 0)
		n--;
	return tq_array_int64(counts, n);
}

static void
put_totals(ReturnSetInfo *rsinfo, const TqQueueCounts *counts)
{
	Datum values[TOTALS_COLUMNS] = {0};
	bool nulls[TOTALS_COLUMNS] = {false};
	const int64 *counters = counts->counters;

	values[TOTALS_QUEUE] = Int32GetDatum(counts->queue);
	for (int state = 0; state < TQ_QUEUE_STATES; state++)
	{
		values[TOTALS_GAUGES + state] = Int64GetDatum(Max(counters[state], 0));
		nulls[TOTALS_GAUGES + state] = !counts->has_gauges;
	}
	for (int total = TQ_QUEUE_CREATED; total <= TQ_QUEUE_DEAD_LETTERS; total++)
		values[TOTALS_CREATED + total - TQ_QUEUE_CREATED] = Int64GetDatum(
			counters[total]);
	values[TOTALS_ENDED] = tq_array_int64(counters + TQ_QUEUE_ENDED + 1,
										  TQ_RESOLVED_LAST);
	values[TOTALS_WAITED_US] = Int64GetDatum(counters[TQ_QUEUE_WAITED_US]);
	values[TOTALS_WAITED] = histogram_array(counters + TQ_QUEUE_WAITED);
	values[TOTALS_RAN_US] = Int64GetDatum(counters[TQ_QUEUE_RAN_US]);
	values[TOTALS_RAN] = histogram_array(counters + TQ_QUEUE_RAN);
	tq_put_row(rsinfo, values, nulls);
}

/*
 * queue_totals() -> a row for each queue that has counters: what they are now,
 * without a count of rows, and without waiting for what commits.
 */
Datum
tq_queue_totals(PG_FUNCTION_ARGS)
{
	TqQueueCounts others;
	TqQueueCounts *counts;
	int n;

	InitMaterializedSRF(fcinfo, 0);
	tq_call_begin(true);
	counts = tq_counts_read_totals(tq_locked_table, tq_count_identity(), &n,
								   &others);
	for (int i = 0; i < n; i++)
		put_totals((ReturnSetInfo *) fcinfo->resultinfo, &counts[i]);
	tq_call_end();
	return (Datum) 0;
}

static const char *
source_name(TqCountSource source)
{
	switch (source)
	{
		case TQ_COUNT_MEMORY:
			return "memory";
		case TQ_COUNT_REBUILDING:
			return "rebuilding";
		case TQ_COUNT_TABLES:
			return "tables";
	}
	return NULL;
}

/*
 * count_state(OUT source text, OUT since timestamptz): where the gauges are
 * from, and since when the totals are counted.
 */
Datum
tq_count_state(PG_FUNCTION_ARGS)
{
	TupleDesc desc;
	Datum values[2];
	bool nulls[2] = {false};
	int64 gauges[TQ_QUEUE_GAUGES];
	TqCountSource source;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	tq_call_begin(true);
	tq_counts_settle();
	source = tq_counts_read_gauges(tq_locked_table, tq_count_identity(), 0,
								   gauges);
	tq_set_time(values, nulls, 1, tq_counts_since(tq_locked_table));
	tq_call_end();
	values[0] = CStringGetTextDatum(source_name(source));
	PG_RETURN_DATUM(HeapTupleGetDatum(
		heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * reset_queue_stats() -> void: sets the totals, histograms and rates of all
 * queues to zero, and has the gauges counted again.  Takes effect at once.
 */
Datum
tq_reset_queue_stats(PG_FUNCTION_ARGS)
{
	tq_call_begin(false);
	tq_access_require(tq_need("queue:upkeep"));
	tq_counts_reset(tq_locked_table);
	tq_request_cycle(tq_clock_now());
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_VOID();
}
