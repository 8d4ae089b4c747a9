/*
 * timer_table.c
 *	  Rows of tq_internal.claim_timer and tq_internal.timer: when to check
 *	  which tasks; due rows of tq_internal.delayed; and those of
 *	  tq_internal.postponed: tasks for which a step failed.
 *
 * A row of claim_timer is a claim timer: it says when to check whether the
 * claims of some tasks have expired.  A row of timer does the same for
 * deadlines, timeouts, expiry and group cancels.  A timer says when to check
 * tasks, not that anything has happened: it may be stale, and the session that
 * takes it decides by the tasks themselves.  A missing timer would be a bug, so
 * a session that takes a row handles it in the same transaction or inserts it
 * again.
 *
 * Claims ------ Nearly all claims end long before they expire.  A timer at the
 * end of each would stay for twenty minutes, by default, in millions of
 * rows.  So the timer of a claim is due soon (tq_policy_check_claim()), and the
 * session that takes it inserts the next one if the run is still running: each
 * time the run has become twice as old, and at the end of the claim at the
 * latest.  The table then has about twice as many tasks as are running, and
 * those of the last seconds.
 *
 * Each running run has a timer at every commit, due no later than its claim
 * expires; or else a message from which the publisher will make one
 * (tq_outbox_leave_timer()), or a row of tq_internal.postponed (bisect.c).  The
 * transaction that claims a run inserts the timer, one that takes it inserts
 * the next, and one that prolongs the claim leaves it where it is, which is
 * then early.  So the readers of view tq_internal.watched_task find every
 * running run.
 *
 * Rows
 * ----
 * Each of the three tables has an index on a time and a number; that of timer
 * begins with the kind.  Rows are taken in the order of the index, through the
 * access methods, by deleting them; a row that another session has locked is
 * skipped.  A scan begins after a mark, so that it does not visit index
 * entries of rows that were taken before and are not vacuumed yet.  The banner
 * of maintenance.c says where a mark may be.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "utils/fmgroids.h"

#include "columns.h"
#include "tasks.h"

/* The first two columns of each of the three tables have the same types. */
TQ_NUMBERS(TQ_CLAIM_TIMER_COLUMNS, claim_timer);
TQ_NUMBERS(TQ_TIMER_COLUMNS, timer);

/* A batch takes no more rows once they have this many tasks. */
#define TAKE_TASKS 1000

/* A table from which due rows are taken, and its index by time. */
typedef struct Source
{
	TqRelation table;
	TqRelation by_due;
	TqTimer kind;
	int tasks; /* column that lists the tasks; 0: none */
} Source;

#define TIMER_SOURCE(kind)                                                    \
	{                                                                         \
		TQ_RELATION("timer"), TQ_RELATION("timer_pkey"), kind,                \
			Anum_timer_tasks                                                  \
	}

static Source timers[TQ_TIMERS] =
	{[TQ_TIMER_CLAIM] = {TQ_RELATION("claim_timer"),
						 TQ_RELATION("claim_timer_pkey"), TQ_TIMER_CLAIM,
						 Anum_claim_timer_tasks},
	 [TQ_TIMER_DEADLINE] = TIMER_SOURCE(TQ_TIMER_DEADLINE),
	 [TQ_TIMER_EXPIRE] = TIMER_SOURCE(TQ_TIMER_EXPIRE),
	 [TQ_TIMER_RUN_TIMEOUT] = TIMER_SOURCE(TQ_TIMER_RUN_TIMEOUT),
	 [TQ_TIMER_PENDING_TIMEOUT] = TIMER_SOURCE(TQ_TIMER_PENDING_TIMEOUT),
	 [TQ_TIMER_TOTAL_TIMEOUT] = TIMER_SOURCE(TQ_TIMER_TOTAL_TIMEOUT),
	 [TQ_TIMER_CANCEL] = TIMER_SOURCE(TQ_TIMER_CANCEL),
	 [TQ_TIMER_GATE] = TIMER_SOURCE(TQ_TIMER_GATE),
	 [TQ_TIMER_CALLBACK] = TIMER_SOURCE(TQ_TIMER_CALLBACK),
	 [TQ_TIMER_SETTLE] = TIMER_SOURCE(TQ_TIMER_SETTLE)};
static Source delays = {TQ_RELATION("delayed"), TQ_RELATION("delayed_due"),
						TQ_TIMER_NONE, 0};

/* ---- insert ---- */

static void
put_timer(TqTable *table, TqTimer kind, TimestampTz due, const int64 *tasks,
		  int n)
{
	TupleTableSlot *slot = tq_table_new_row(table);

	tq_put_time(slot, Anum_timer_due, due);
	tq_put_int64(slot, Anum_timer_seq, tq_id_next());
	if (kind != TQ_TIMER_CLAIM)
		tq_put_int16(slot, Anum_timer_kind, kind);
	tq_put(slot, timers[kind].tasks, tq_array_int64(tasks, n));
	tq_request_cycle(due);
}

/* Inserts timers for tasks that are due at the same time, unless that is never. */
void
tq_timer_insert(TqTimer kind, TimestampTz due, const int64 *tasks, int n)
{
	TqTable *table;

	if (n == 0 || TIMESTAMP_IS_NOEND(due))
		return;
	table = tq_table_open(&timers[kind].table);
	for (int done = 0; done < n; done += TQ_TIMER_TASKS)
		put_timer(table, kind, due, tasks + done,
				  Min(n - done, TQ_TIMER_TASKS));
	tq_table_close(table);
}

static int
timer_compare_entries(const void *a, const void *b)
{
	const TqTimerEntry *x = a;
	const TqTimerEntry *y = b;

	if (x->due != y->due)
		return x->due < y->due ? -1 : 1;
	return x->task < y->task ? -1 : x->task > y->task;
}

/*
 * Inserts timers for these tasks, and sorts the entries by time.  A row has
 * tasks that are due at the same time, or at most early_us later than the first
 * of them, which is then when the row is due.  What is never due has no timer.
 */
static void
timer_insert_timers(TqTimer kind, TqTimerEntry *entries, int n, int64 early_us)
{
	TqTable *table;
	int64 ids[TQ_TIMER_TASKS];
	TimestampTz due = 0;
	int nids = 0;

	qsort(entries, n, sizeof(TqTimerEntry), timer_compare_entries);
	while (n > 0 && TIMESTAMP_IS_NOEND(entries[n - 1].due))
		n--;
	if (n == 0)
		return;
	table = tq_table_open(&timers[kind].table);
	for (int i = 0; i < n; i++)
	{
		if (nids == 0)
			due = entries[i].due;
		ids[nids++] = entries[i].task;
		if (nids < TQ_TIMER_TASKS && i + 1 < n &&
			entries[i + 1].due <= due + early_us)
			continue;
		put_timer(table, kind, due, ids, nids);
		nids = 0;
	}
	tq_table_close(table);
}

/*
 * Inserts timers, and sorts the entries by time; tasks that are due at the
 * same time share rows.
 */
void
tq_timers_insert(TqTimer kind, TqTimerEntry *entries, int n)
{
	timer_insert_timers(kind, entries, n, 0);
}

/*
 * The same, but tasks share rows that are due at the earliest time of theirs,
 * as long as that is early by no more than early_ms.
 */
void
tq_timers_insert_early(TqTimer kind, TqTimerEntry *entries, int n,
					   int64 early_ms)
{
	timer_insert_timers(kind, entries, n, early_ms * 1000);
}

/* ---- scans from a mark ---- */

/* A scan of the rows of a source after a mark, by time and number. */
typedef struct TimerWalk
{
	TqScan *scan;
	ScanKeyData after[2];
} TimerWalk;

static void
begin_walk(TimerWalk *walk, Source *source, const TqScanPosition *position)
{
	bool has_kind = source->kind > TQ_TIMER_CLAIM;
	int keys = has_kind ? 2 : 1;
	Datum after = PointerGetDatum(walk->after);
	Datum kind = Int16GetDatum((int16) source->kind);
	ScanKey key;

	walk->scan = tq_scan_open(&source->table, &source->by_due, keys, NULL);
	/*
	 * Make the last key of the scan the row comparison (time, number) > mark,
	 * on this column of the index and the next.
	 */
	key = &walk->scan->keys[keys - 1];
	ScanKeyEntryInitialize(&walk->after[0], SK_ROW_MEMBER, keys,
						   BTGreaterStrategyNumber, InvalidOid, InvalidOid,
						   F_TIMESTAMPTZ_CMP,
						   TimestampTzGetDatum(position->due));
	ScanKeyEntryInitialize(&walk->after[1], SK_ROW_MEMBER | SK_ROW_END,
						   keys + 1, BTGreaterStrategyNumber, InvalidOid,
						   InvalidOid, F_BTINT8CMP,
						   Int64GetDatum(position->seq));
	memset(key, 0, sizeof(*key));
	key->sk_flags = SK_ROW_HEADER;
	key->sk_attno = keys;
	key->sk_strategy = BTGreaterStrategyNumber;
	if (has_kind)
		tq_scan_seek(walk->scan, kind, after, 0);
	else
		tq_scan_seek(walk->scan, after, 0, 0);
}

/*
 * Finds the next due row and moves the mark there; returns false if there is
 * none.
 */
static bool
next_due(TimerWalk *walk, TimestampTz now, TqDue *due)
{
	TimestampTz time = DT_NOEND;

	if (tq_scan_next(walk->scan))
		time = tq_row_int64(walk->scan->slot, Anum_timer_due);
	due->more = time <= now;
	if (due->more)
		due->position = (TqScanPosition){time, tq_row_int64(walk->scan->slot,
															Anum_timer_seq)};
	return due->more;
}

/*
 * Deletes the row that was found; returns false if another session has deleted
 * or locked it.
 */
static bool
delete_found(TqScan *scan)
{
	TM_Result result = tq_table_delete_if_free(scan->table, scan->slot);

	switch (result)
	{
		case TM_Ok:
			return true;
		case TM_BeingModified:
		case TM_WouldBlock:
		case TM_Updated:
		case TM_Deleted:
			return false;
		case TM_Invisible:
		case TM_SelfModified:
			break;
	}
	tq_table_error(scan->table, result);
}

static bool
timer_take_row(TimerWalk *walk, TqDue *due)
{
	if (!delete_found(walk->scan))
		return false;
	due->first = Min(due->first, due->position.due);
	return true;
}

/* ---- take due rows ---- */

/* Adds these to the ids. */
void
tq_ids_add(TqIds *ids, const int64 *more, int n)
{
	if (n == 0)
		return;
	if (ids->n + n > ids->room)
	{
		Size size;

		ids->room = 2 * ids->room + n;
		size = sizeof(int64) * ids->room;
		ids->ids = ids->ids == NULL ? MemoryContextAllocHuge(ids->memory, size)
									: repalloc_huge(ids->ids, size);
	}
	memcpy(ids->ids + ids->n, more, sizeof(int64) * n);
	ids->n += n;
}

static void
add_tasks(TqIds *ids, TupleTableSlot *slot, int column)
{
	bool isnull;
	ArrayType *array = DatumGetArrayTypeP(slot_getattr(slot, column, &isnull));

	tq_ids_add(ids, (int64 *) ARR_DATA_PTR(array),
			   ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)));
}

/* Sorts ids and removes duplicates. */
static void
timer_sort_ids(TqIds *ids)
{
	int n = 0;

	qsort(ids->ids, ids->n, sizeof(int64), tq_compare_ids);
	for (int i = 0; i < ids->n; i++)
	{
		if (i == 0 || ids->ids[i] != ids->ids[i - 1])
			ids->ids[n++] = ids->ids[i];
	}
	ids->n = n;
}

/* Begins to take the due rows after the mark. */
static void
begin_taking(TimerWalk *walk, Source *source, TqDue *due)
{
	due->n = 0;
	due->first = DT_NOEND;
	begin_walk(walk, source, &due->position);
}

/*
 * Takes up to max due rows after the mark and moves the mark; fewer if they
 * have many tasks.
 */
static void
timer_take(Source *source, TimestampTz now, int max, TqDue *due)
{
	TqIds ids = {.ids = palloc(sizeof(int64) * TAKE_TASKS),
				 .room = TAKE_TASKS};
	TimerWalk walk;

	begin_taking(&walk, source, due);
	while (max > 0 && ids.n < TAKE_TASKS && next_due(&walk, now, due))
	{
		if (!timer_take_row(&walk, due))
			continue;
		add_tasks(&ids, walk.scan->slot, source->tasks);
		max--;
	}
	tq_scan_close(walk.scan);
	timer_sort_ids(&ids);
	due->ids = ids.ids;
	due->n = ids.n;
}

/* Takes due timers of a kind, as timer_take() does. */
void
tq_timer_take(TqTimer kind, TimestampTz now, int max, TqDue *due)
{
	timer_take(&timers[kind], now, max, due);
}

/*
 * Returns the tasks of due timers of a kind, sorted, each once.  Leaves the
 * timers, and ends after `max` tasks.
 */
int64 *
tq_timer_peek(TqTimer kind, TimestampTz now, int max, int *n)
{
	TqIds ids = {.ids = palloc(sizeof(int64) * TAKE_TASKS),
				 .room = TAKE_TASKS};
	TqDue due = {.position = TQ_SCAN_BEGIN};
	TimerWalk walk;

	begin_walk(&walk, &timers[kind], &due.position);
	while (ids.n < max && next_due(&walk, now, &due))
		add_tasks(&ids, walk.scan->slot, timers[kind].tasks);
	tq_scan_close(walk.scan);
	timer_sort_ids(&ids);
	*n = ids.n;
	return ids.ids;
}

/*
 * Takes up to max due runs after the mark out of delayed, in order of their
 * times, and gives each a seq at the back of its queue.
 */
TqPending *
tq_delayed_take(TimestampTz now, int max, TqDue *due)
{
	TqPending *rows = palloc(sizeof(TqPending) * max);
	TimerWalk walk;

	begin_taking(&walk, &delays, due);
	while (due->n < max && next_due(&walk, now, due))
	{
		if (!timer_take_row(&walk, due))
			continue;
		tq_delayed_read(walk.scan->slot, &rows[due->n]);
		rows[due->n++].seq = tq_id_next();
	}
	tq_scan_close(walk.scan);
	return rows;
}

/*
 * Takes the run of a task out of delayed, like tq_delayed_take() but whatever
 * its time; returns false if there is none, or another session has locked it.
 */
bool
tq_delayed_take_one(int64 task, TqPending *row)
{
	static TqRelation by_task = TQ_RELATION("delayed_pkey");
	TqScan *scan = tq_scan_open(&delays.table, &by_task, 1, NULL);
	bool taken = tq_scan_find(scan, Int64GetDatum(task), 0, 0) &&
				 delete_found(scan);

	if (taken)
	{
		tq_delayed_read(scan->slot, row);
		row->seq = tq_id_next();
	}
	tq_scan_close(scan);
	return taken;
}

/* ---- next due time ---- */

/*
 * Returns the time of the first row after the mark, or DT_NOEND.  Moves the
 * mark to just before that row, but not past the present.
 */
static TimestampTz
first_behind(Source *source, TimestampTz now, TqScanPosition *position)
{
	TimestampTz due = DT_NOEND;
	TimerWalk walk;

	begin_walk(&walk, source, position);
	if (tq_scan_next(walk.scan))
		due = tq_row_int64(walk.scan->slot, Anum_timer_due);
	if (due <= now)
		*position = (TqScanPosition){due, tq_row_int64(walk.scan->slot,
													   Anum_timer_seq) -
											  1};
	else if (position->due < now)
		*position = (TqScanPosition){now, PG_INT64_MIN};
	tq_scan_close(walk.scan);
	return due;
}

/*
 * Returns the earliest time of a row after the marks, or DT_NOEND.  Moves the
 * marks forward, but not past a row that is visible.
 */
TimestampTz
tq_timer_next_due(TimestampTz now, TqScanPositions *positions)
{
	TimestampTz first = first_behind(&delays, now, &positions->delayed);

	for (int kind = 0; kind < TQ_TIMERS; kind++)
	{
		TimestampTz due = first_behind(&timers[kind], now,
									   &positions->timer[kind]);

		first = Min(first, due);
	}
	return first;
}

/* ---- steps that failed ---- */

/*
 * A row of tq_internal.postponed says that a step of maintenance must be
 * retried for a task, when, and what the error was.  Only maintenance writes and
 * deletes rows.  It skips rows that are locked, so no session waits for these
 * locks.  A row is deleted with its task.
 */

static TqStatement put_row = TQ_STATEMENT(
	"INSERT INTO tq_internal.postponed AS p (task, step, due, origin, failures, since, error)"
	" VALUES ($1, $2, $3, $4, $5, $6, $7)"
	" ON CONFLICT (task, step) DO UPDATE SET due = excluded.due,"
	" failures = excluded.failures, error = excluded.error",
	INT8OID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID,
	TEXTOID);

static TqRelation postponed_table = TQ_RELATION("postponed");
static TqRelation postponed_by_key = TQ_RELATION("postponed_pkey");

TQ_NUMBERS(TQ_POSTPONED_COLUMNS, postponed);

static TqStatement take_due = TQ_STATEMENT(
	"SELECT * FROM tq_internal.postponed"
	" WHERE due <= $1 ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED",
	TIMESTAMPTZOID, INT4OID);

static TqStatement delete_row = TQ_STATEMENT(
	"DELETE FROM tq_internal.postponed WHERE task = $1 AND step = $2", INT8OID,
	TEXTOID);

static TqStatement find_among = TQ_STATEMENT(
	"SELECT task FROM tq_internal.postponed WHERE task = ANY ($1) AND step = $2 ORDER BY task",
	INT8ARRAYOID, TEXTOID);

static TqStatement first_due =
	TQ_STATEMENT("SELECT due FROM tq_internal.postponed ORDER BY due LIMIT 1",
				 InvalidOid);

/* Inserts the row of a task and step, or updates it. */
void
tq_postponed_put(const TqPostponed *row, TimestampTz now)
{
	Datum values[7] = {Int64GetDatum(row->task),
					   CStringGetTextDatum(row->step),
					   TimestampTzGetDatum(row->due),
					   TimestampTzGetDatum(row->origin),
					   Int32GetDatum(row->failures),
					   TimestampTzGetDatum(now),
					   CStringGetTextDatum(row->error)};

	tq_spi_run(&put_row, values, NULL);
	tq_request_cycle(row->due);
}

TQ_READER(read_row, TqPostponed, TQ_POSTPONED_COLUMNS, postponed)

/* Returns how often this step has failed for a task. */
int
tq_postponed_failures(int64 task, const char *step)
{
	TqPostponed row = {.failures = 0};

	(void) tq_scan_read(tq_scan_open(&postponed_table, &postponed_by_key, 2,
									 NULL),
						Int64GetDatum(task), CStringGetTextDatum(step), 0,
						read_row, &row);
	return row.failures;
}

/* Locks and returns up to max rows that are due, skipping locked ones. */
TqPostponed *
tq_postponed_take(TimestampTz now, int max, int *found)
{
	Datum values[2] = {TimestampTzGetDatum(now), Int32GetDatum(max)};

	return tq_spi_read_all(&take_due, values, read_row, sizeof(TqPostponed),
						   found);
}

/*
 * Returns those of these tasks that are postponed for this step, in order of
 * their ids.
 */
int64 *
tq_postponed_among(const int64 *tasks, int n, const char *step, int *found)
{
	int64 *some = tq_scan_those_in(&postponed_table, &postponed_by_key, tasks,
								   n, found);

	if (*found == 0)
		return some;
	return tq_spi_run_ids(&find_among,
						  TQ_VALUES(tq_array_int64(some, *found),
									CStringGetTextDatum(step)),
						  found);
}

/* Deletes the row of a task and step. */
void
tq_postponed_delete(int64 task, const char *step)
{
	Datum values[2] = {Int64GetDatum(task), CStringGetTextDatum(step)};

	tq_spi_run(&delete_row, values, NULL);
}

/* Returns when the first row is due, or DT_NOEND. */
TimestampTz
tq_postponed_next_due(void)
{
	return tq_spi_run_int64(&first_due, NULL, DT_NOEND);
}
