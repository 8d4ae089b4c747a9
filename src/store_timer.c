/*
 * store_timer.c
 *	  Rows of tq.lease and tq.timer: when to look at which tasks again.
 *
 * Room 2.  A row says "look at these tasks then", not "this has happened": it
 * may be stale, and whoever takes it decides by the tasks themselves.  One
 * that is missing would be a bug, so a row that is taken away is either dealt
 * with in the same transaction or written again.
 */
#include "store.h"
#include "row.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"

/* Columns, from 1. */
enum
{
	LEASE_DUE = 1,
	LEASE_SEQ,
	LEASE_TASKS
};

enum
{
	TIMER_DUE = 1,
	TIMER_SEQ,
	TIMER_KIND,
	TIMER_TASKS
};

static TqRelation lease_table = TQ_RELATION("lease");
static TqRelation timer_table = TQ_RELATION("timer");

/* $1 now, $2 how many, $3 and $4 after which row */
static TqStatement take_lease = TQ_STATEMENT(
	"WITH due AS MATERIALIZED ("
	"SELECT due, seq FROM tq.lease WHERE due <= $1 AND (due, seq) > ($3, $4)"
	" ORDER BY due, seq LIMIT $2 FOR UPDATE SKIP LOCKED)"
	" DELETE FROM tq.lease l USING due WHERE l.due = due.due AND l.seq = due.seq"
	" RETURNING l.tasks, l.due, l.seq",
	TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, INT8OID);

/* The same, and $5 which kind */
static TqStatement take_timer = TQ_STATEMENT(
	"WITH due AS MATERIALIZED ("
	"SELECT due, seq FROM tq.timer WHERE due <= $1 AND (due, seq) > ($3, $4) AND kind = $5"
	" ORDER BY due, seq LIMIT $2 FOR UPDATE SKIP LOCKED)"
	" DELETE FROM tq.timer t USING due WHERE t.due = due.due AND t.seq = due.seq"
	" RETURNING t.tasks, t.due, t.seq",
	TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, INT8OID, INT2OID);

static TqStatement next_due = TQ_STATEMENT(
	"SELECT least((SELECT due FROM tq.lease ORDER BY due LIMIT 1),"
	" (SELECT due FROM tq.timer ORDER BY due LIMIT 1),"
	" (SELECT visible_at FROM tq.delayed ORDER BY visible_at LIMIT 1))",
	InvalidOid);

void
tq_lease_insert(TimestampTz due, const int64 *tasks, int n)
{
	TqTable *table;
	TupleTableSlot *slot;

	if (n == 0)
		return;
	table = tq_table_open(&lease_table);
	slot = tq_table_new_row(table);
	tq_put(slot, LEASE_DUE, TimestampTzGetDatum(due));
	tq_put(slot, LEASE_SEQ, Int64GetDatum(tq_seq_next()));
	tq_put(slot, LEASE_TASKS, tq_array_int64(tasks, n));
	tq_table_close(table);
	tq_shmem_note_due(due);
}

void
tq_timer_insert(TqTimer kind, TimestampTz due, const int64 *tasks, int n)
{
	TqTable *table;
	TupleTableSlot *slot;

	if (n == 0)
		return;
	table = tq_table_open(&timer_table);
	slot = tq_table_new_row(table);
	tq_put(slot, TIMER_DUE, TimestampTzGetDatum(due));
	tq_put(slot, TIMER_SEQ, Int64GetDatum(tq_seq_next()));
	tq_put(slot, TIMER_KIND, Int16GetDatum((int16) kind));
	tq_put(slot, TIMER_TASKS, tq_array_int64(tasks, n));
	tq_table_close(table);
	tq_shmem_note_due(due);
}

/* For qsort() and bsearch() of ids. */
int
tq_compare_ids(const void *a, const void *b)
{
	int64 x = *(const int64 *) a;
	int64 y = *(const int64 *) b;

	return x < y ? -1 : x > y;
}

/* The ids in the rows that were taken, in order, each once. */
static int64 *
read_ids(uint64 rows, int *found)
{
	int room = 64;
	int64 *ids = palloc(sizeof(int64) * room);
	int n = 0;

	for (uint64 row = 0; row < rows; row++)
	{
		bool isnull;
		ArrayType *array = DatumGetArrayTypeP(tq_plan_field(row, 1, &isnull));
		int more = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

		while (n + more > room)
			ids = repalloc(ids, sizeof(int64) * (room *= 2));
		memcpy(ids + n, ARR_DATA_PTR(array), sizeof(int64) * more);
		n += more;
	}
	qsort(ids, n, sizeof(int64), tq_compare_ids);
	*found = 0;
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || ids[i] != ids[i - 1])
			ids[(*found)++] = ids[i];
	}
	return ids;
}

/* Move the mark to the last of the rows that were taken. */
static void
move_mark(uint64 rows, TqMark *mark)
{
	for (uint64 row = 0; row < rows; row++)
	{
		TimestampTz due = tq_plan_time(row, 2);
		int64 seq = tq_plan_int64(row, 3, 0);

		if (due < mark->due || (due == mark->due && seq < mark->seq))
			continue;
		mark->due = due;
		mark->seq = seq;
	}
}

/*
 * Take up to max rows that are due and behind the mark, which moves; *more
 * when there may be others.  Within one transaction the mark spares the way
 * over all the rows that it has deleted so far.
 */
static int64 *
take(TqStatement *statement, TimestampTz now, TqMark *mark, TqTimer kind,
	 int max, int *found, bool *more)
{
	Datum values[5] = {TimestampTzGetDatum(now),
					   Int32GetDatum(max),
					   TimestampTzGetDatum(mark->due),
					   Int64GetDatum(mark->seq),
					   Int16GetDatum(kind)};
	uint64 rows = tq_plan_run(statement, values, NULL);
	int64 *ids = read_ids(rows, found);

	move_mark(rows, mark);
	*more = rows == (uint64) max;
	tq_plan_free_result();
	return ids;
}

int64 *
tq_lease_take(TimestampTz now, TqMark *mark, int max, int *found, bool *more)
{
	return take(&take_lease, now, mark, 0, max, found, more);
}

int64 *
tq_timer_take(TqTimer kind, TimestampTz now, TqMark *mark, int max, int *found,
			  bool *more)
{
	return take(&take_timer, now, mark, kind, max, found, more);
}

/* The earliest time at which something is due, or DT_NOEND. */
TimestampTz
tq_timer_next_due(void)
{
	bool isnull;
	Datum due;

	tq_plan_run(&next_due, NULL, NULL);
	due = tq_plan_field(0, 1, &isnull);
	return isnull ? DT_NOEND : DatumGetTimestampTz(due);
}
