/*
 * count_table.c
 *	  Counts of rows, and the counters that spare them.
 *
 * The counters in shared memory (counters.c) say how many rows there are, in a
 * time that does not depend on that.  What time has ended counts no longer,
 * although maintenance has not reached it yet (doc/spec/taskcluster.md 8.1): a
 * pending run past its deadline, and a claim past its end.  These are found by
 * the timers that are due, of which there are few unless maintenance is late.
 * The look-up ends after ENDED_MAX tasks; what is behind them still counts.
 *
 * Without counters, the rows are counted.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "columns.h"
#include "registry.h"
#include "tasks.h"

#define ENDED_MAX 1000

static TqRelation task_table = TQ_RELATION("task");

static TqStatement count_pending = TQ_STATEMENT(
	"SELECT count(*) FROM tq_internal.pending p JOIN tq_internal.task t ON t.id = p.task"
	" WHERE p.queue = $1 AND coalesce(t.effective_deadline, t.deadline) > $2",
	INT4OID, TIMESTAMPTZOID);

static TqStatement count_claimed = TQ_STATEMENT(
	"SELECT count(*) FROM tq_internal.claimed_run r JOIN tq_internal.task t ON t.id = r.task"
	" WHERE r.taken_until > $2 AND t.queue = $1",
	INT4OID, TIMESTAMPTZOID);

/* The publisher inserts these timers, normally long before they are due. */
static TqStatement left_timers = TQ_STATEMENT(
	"SELECT l.task FROM tq_internal.left_timer l WHERE l.due <= $1 AND l.is_claim = $2 LIMIT $3",
	TIMESTAMPTZOID, BOOLOID, INT4OID);

/*
 * Those that have written rows which are counted: they hold a lock on a table,
 * also after a restart.  A transaction of another application stops nothing.
 */
static TqStatement list_prepared = TQ_STATEMENT(
	"SELECT x.transaction::text::bigint FROM pg_catalog.pg_prepared_xacts AS x"
	" WHERE x.database = pg_catalog.current_database() AND EXISTS (SELECT FROM pg_catalog.pg_locks AS l"
	" WHERE l.virtualtransaction = '-1/' || x.transaction::text AND l.mode = 'RowExclusiveLock' AND l.relation = ANY ("
	"'{tq_internal.task,tq_internal.run,tq_internal.pending,tq_internal.delayed,tq_internal.unscheduled}'::regclass[]))");

static TqStatement write_history =
	TQ_STATEMENT("SELECT tq_internal.write_history()", InvalidOid);

static TqStatement write_names =
	TQ_STATEMENT("SELECT tq_internal.write_names()", InvalidOid);

/*
 * Returns a number that changes when the table of tasks is truncated or
 * rewritten.
 */
uint64
tq_count_identity(void)
{
	TqTable *table = tq_table_open(&task_table);
	uint64 identity = TqRelFileNumber(table->rel);

	tq_table_close(table);
	return identity;
}

/* ---- what time has ended ---- */

/* Returns the tasks that timers of a kind, due by now, are about. */
static int64 *
tasks_of_timers(TqTimer kind, TimestampTz now, int *n)
{
	int64 *tasks = tq_timer_peek(kind, now, ENDED_MAX, n);
	Datum values[3] = {TimestampTzGetDatum(now),
					   BoolGetDatum(kind == TQ_TIMER_CLAIM),
					   Int32GetDatum(ENDED_MAX)};
	int64 *left;
	int nleft;

	left = tq_spi_run_ids(&left_timers, values, &nleft);
	tasks = repalloc(tasks, sizeof(int64) * Max(*n + nleft, 1));
	memcpy(tasks + *n, left, sizeof(int64) * nleft);
	*n += nleft;
	qsort(tasks, *n, sizeof(int64), tq_compare_ids);
	return tasks;
}

static void
count_table_add_gauge(TqGauges *list, int *n, int32 queue, int gauge,
					  int64 rows)
{
	int i = 0;

	while (i < *n && list[i].queue != queue)
		i++;
	if (i == *n)
		list[(*n)++] = (TqGauges){.queue = queue};
	list[i].gauges[gauge] += rows;
}

/* Adds the running runs whose claims have expired. */
static void
add_expired(TqGauges *list, int *n, TimestampTz now)
{
	int found;
	int64 *ids = tasks_of_timers(TQ_TIMER_CLAIM, now, &found);
	TqRunReader *reader = tq_run_reader_begin(ids, found);
	TqTaskFinder finder = {NULL, NULL};

	for (int i = 0; i < found; i++)
	{
		TqRun run;
		TqTask task;

		if ((i == 0 || ids[i] != ids[i - 1]) &&
			tq_run_reader_last(reader, ids[i], &run) &&
			run.state == TQ_STATE_RUNNING && run.taken_until <= now &&
			tq_task_find_by_id(&finder, ids[i], &task))
			count_table_add_gauge(list, n, task.queue, TQ_QUEUE_RUNNING, 1);
	}
	tq_task_finder_end(&finder);
	tq_run_reader_end(reader);
}

/*
 * Returns, by queue, how many pending runs are past their deadline, and how
 * many running ones past the end of their claims.
 */
TqGauges *
tq_count_ended(TimestampTz now, int *n)
{
	TqGauges *list = palloc(sizeof(TqGauges) * 4 * ENDED_MAX);
	int found;
	int64 *ids;
	TqTask *tasks;
	Snapshot snapshot;
	TqPendingScan *scan;

	*n = 0;
	/* Add the pending runs past their deadline. */
	ids = tasks_of_timers(TQ_TIMER_DEADLINE, now, &found);
	tasks = tq_tasks_core(ids, found, &found);
	snapshot = RegisterSnapshot(tq_spi_snapshot());
	scan = tq_pending_scan_begin(snapshot);
	for (int i = 0; i < found; i++)
	{
		TqRun run;

		if (tasks[i].deadline <= now &&
			(i == 0 || tasks[i].id != tasks[i - 1].id) &&
			tq_pending_scan_read(scan, tasks[i].id, &run) &&
			run.location == TQ_LOCATION_PENDING)
			count_table_add_gauge(list, n, tasks[i].queue, TQ_QUEUE_PENDING,
								  1);
	}
	tq_pending_scan_end(scan);
	UnregisterSnapshot(snapshot);
	add_expired(list, n, now);
	return list;
}

/* ---- counts of a queue ---- */

/*
 * Returns a gauge of a queue, less what time has ended; counts the rows by a
 * statement if there are no counters.
 */
static int64
read_gauge(int gauge, TqStatement *by_rows, int32 queue, TimestampTz now)
{
	int64 gauges[TQ_QUEUE_GAUGES];
	Datum values[2] = {Int32GetDatum(queue), TimestampTzGetDatum(now)};
	TqGauges *ended;
	int n;

	tq_counts_settle();
	if (tq_counts_read_gauges(tq_locked_table, tq_count_identity(), queue,
							  gauges) != TQ_COUNT_MEMORY)
		return tq_spi_run_int64(by_rows, values, 0);
	ended = gauges[gauge] == 0 ? NULL : tq_count_ended(now, &n);
	for (int i = 0; ended != NULL && i < n; i++)
	{
		if (ended[i].queue == queue)
			gauges[gauge] -= ended[i].gauges[gauge];
	}
	return Max(gauges[gauge], 0);
}

/*
 * Returns the number of pending tasks of a queue that are not past their
 * deadline (doc/spec/taskcluster.md 8.1).
 */
int64
tq_count_pending(int32 queue, TimestampTz now)
{
	return read_gauge(TQ_QUEUE_PENDING, &count_pending, queue, now);
}

/*
 * Returns the number of running tasks of a queue whose claim has not expired
 * (doc/spec/taskcluster.md 8.1).
 */
int64
tq_count_claimed(int32 queue, TimestampTz now)
{
	return read_gauge(TQ_QUEUE_RUNNING, &count_claimed, queue, now);
}

/* ---- counts of all rows ---- */

TQ_NUMBERS(TQ_PENDING_COLUMNS, pending);
TQ_NUMBERS(TQ_DELAYED_COLUMNS, delayed);
TQ_NUMBERS(TQ_RUN_COLUMNS, run);
TQ_NUMBERS(TQ_UNSCHEDULED_COLUMNS, unscheduled);
TQ_NUMBERS(TQ_TASK_GROUP_COLUMNS, task_group);
TQ_NUMBERS(TQ_UNIQUE_KEY_COLUMNS, unique_key);
TQ_NUMBERS(TQ_FOREIGN_DEPENDENCY_COLUMNS, foreign_dependency);

/* A table each row of which counts in a gauge. */
typedef struct Counted
{
	TqRelation table;
	int gauge;
	int queue; /* column; 0: the queue is that of the task */
	int task;  /* column; 0: not needed */
	int state; /* column that must be running; 0: none */
} Counted;

static Counted counted[TQ_QUEUE_GAUGES] =
	{{TQ_RELATION("unscheduled"), TQ_QUEUE_UNSCHEDULED, 0,
	  Anum_unscheduled_task, 0},
	 {TQ_RELATION("delayed"), TQ_QUEUE_DELAYED, Anum_delayed_queue, 0, 0},
	 {TQ_RELATION("pending"), TQ_QUEUE_PENDING, Anum_pending_queue, 0, 0},
	 {TQ_RELATION("run"), TQ_QUEUE_RUNNING, 0, Anum_run_task, Anum_run_state},
	 {TQ_RELATION("task_group"), TQ_QUEUE_GROUPS, Anum_task_group_queue, 0, 0},
	 {TQ_RELATION("unique_key"), TQ_QUEUE_UNIQUE_KEYS, Anum_unique_key_queue,
	  0, 0},
	 {TQ_RELATION("foreign_dependency"), TQ_QUEUE_FOREIGN,
	  Anum_foreign_dependency_queue, 0, 0}};

/* Counts by queue, in a hash table. */
typedef struct Counting
{
	HTAB *queues;
	TqGauges *last; /* of the last row */
	TqTaskFinder finder;
} Counting;

static void
count_row(Counting *counting, int32 queue, int gauge)
{
	bool found;

	if (queue == 0)
		return; /* a key that is unique in the database */
	if (counting->last == NULL || counting->last->queue != queue)
	{
		counting->last = hash_search(counting->queues, &queue, HASH_ENTER,
									 &found);
		if (!found)
			memset(counting->last->gauges, 0, sizeof(int64) * TQ_QUEUE_GAUGES);
	}
	counting->last->gauges[gauge]++;
}

/* Counts the rows of a table; reads all of it, in the order of its pages. */
static void
count_table(Counting *counting, Counted *which)
{
	TqTableScan *scan = tq_table_scan_open(&which->table);

	while (tq_table_scan_next(scan))
	{
		TqTask task;

		CHECK_FOR_INTERRUPTS();
		if (which->state != 0 &&
			tq_row_int16(scan->slot, which->state) != TQ_STATE_RUNNING)
			continue;
		if (which->queue != 0)
			count_row(counting, tq_row_int32(scan->slot, which->queue),
					  which->gauge);
		else if (tq_task_find_by_id(&counting->finder,
									tq_row_int64(scan->slot, which->task),
									&task))
			count_row(counting, task.queue, which->gauge);
	}
	tq_table_scan_close(scan);
}

/* Counts the rows of all queues, with the snapshot of the call. */
TqGauges *
tq_count_rows(int *n)
{
	HASHCTL control = {.keysize = sizeof(int32),
					   .entrysize = sizeof(TqGauges),
					   .hcxt = CurrentMemoryContext};
	Counting counting = {0};
	HASH_SEQ_STATUS scan;
	TqGauges *list;
	const TqGauges *entry;

	counting.queues = hash_create("tq counts of rows", 1024, &control,
								  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (int i = 0; i < TQ_QUEUE_GAUGES; i++)
		count_table(&counting, &counted[i]);
	tq_task_finder_end(&counting.finder);
	list = palloc(sizeof(TqGauges) *
				  Max(hash_get_num_entries(counting.queues), 1));
	*n = 0;
	hash_seq_init(&scan, counting.queues);
	while ((entry = hash_seq_search(&scan)) != NULL)
		list[(*n)++] = *entry;
	hash_destroy(counting.queues);
	return list;
}

/*
 * Sets gauges[] to those of a queue, with what time has ended: from its counters,
 * if the result is TQ_COUNT_MEMORY.  If it is TQ_COUNT_TABLES, they are at most
 * these; by_rows counts them, with those that this call has written.
 */
TqCountSource
tq_count_read_gauges(int32 queue, bool by_rows, int64 *gauges)
{
	int n;
	const TqGauges *rows;

	tq_counts_apply_prepared();
	if (!by_rows)
		return tq_counts_read_gauges(tq_locked_table, tq_count_identity(),
									 queue, gauges);
	CommandCounterIncrement();
	rows = tq_count_rows(&n);
	memset(gauges, 0, sizeof(int64) * TQ_QUEUE_GAUGES);
	for (int i = 0; i < n; i++)
	{
		if (rows[i].queue == queue)
			memcpy(gauges, rows[i].gauges, sizeof(rows[i].gauges));
	}
	return TQ_COUNT_MEMORY;
}

/* Returns the prepared transactions of this database that tq counts. */
static TransactionId *
read_prepared(int *n)
{
	int64 *ids;
	TransactionId *xids;

	*n = 0;
	if (max_prepared_xacts == 0)
		return NULL;
	ids = tq_spi_run_ids(&list_prepared, NULL, n);
	xids = palloc(sizeof(TransactionId) * Max(*n, 1));
	for (int i = 0; i < *n; i++)
		xids[i] = (TransactionId) ids[i];
	return xids;
}

/* ---- claims of the last interval ---- */

/*
 * The claims since $2 of a queue whose claims are limited.  A join was planned
 * as a nested loop where the tables had not been analyzed, which is quadratic.
 */
static TqStatement recent_claims = TQ_STATEMENT(
	"SELECT r.started FROM tq_internal.run r WHERE r.started >= $2"
	" AND (SELECT t.queue FROM tq_internal.task t WHERE t.id = r.task) = $1",
	INT4OID, TIMESTAMPTZOID);

static void
count_read_time(TupleTableSlot *slot, void *into)
{
	*(TimestampTz *) into = tq_row_time(slot, 1);
}

/* Loads the claims of one queue into its rate window. */
static void
load_rate(int32 queue, const TqQueueSettings *settings)
{
	TqRate rate = {.extension = tq_locked_table,
				   .queue = queue,
				   .claims = settings->rate_count,
				   .interval = settings->rate_interval * 1000};
	TimestampTz since = tq_clock_add_ms(tq_clock_now(),
										-settings->rate_interval);
	Datum values[2] = {Int32GetDatum(queue), TimestampTzGetDatum(since)};
	int n;
	TimestampTz *claims = tq_spi_read_all(&recent_claims, values,
										  count_read_time, sizeof(TimestampTz),
										  &n);

	for (int i = 0; i < n; i++)
		tq_rate_load(&rate, claims[i]);
}

/*
 * Counts the claims of the last interval in queues that limit their rate, once
 * after a start of the server.
 */
static void
load_rates(void)
{
	Oid extension = tq_locked_table;
	int n;
	int32 *queues;

	if (tq_rates_are_loaded(extension))
		return;
	tq_rates_begin_load(extension);
	queues = tq_queue_settings_limited(&n);
	for (int i = 0; i < n; i++)
	{
		TqQueueSettings settings = *tq_queue_settings(queues[i]);

		if (settings.rate_count > 0)
			load_rate(queues[i], &settings);
	}
	tq_rates_end_load(extension);
}

/* Makes the counters of all queues with limits, before those of others. */
static void
keep_limited(void)
{
	int n;
	const int32 *queues = tq_queue_settings_limited(&n);

	for (int i = 0; i < n; i++)
		tq_count_build_keep(queues[i]);
}

/*
 * Counts the gauges of this database for shared memory, or of this queue alone if
 * the others are counted; returns false if they are not exact.  Every row is read by the snapshot that says which transactions
 * the count includes, also in a call that writes and otherwise reads what is
 * latest.
 */
bool
tq_count_build_gauges(int32 queue)
{
	int nprepared;
	TransactionId *prepared = read_prepared(&nprepared);
	Snapshot snapshot;
	TqGauges *rows;
	int n;

	if (!tq_count_build_begin(tq_locked_table, tq_count_identity(),
							  TQ_COUNTED_QUEUE, queue, prepared, nprepared,
							  &snapshot))
		return false;
	tq_spi_open_at(snapshot);
	keep_limited();
	rows = tq_count_rows(&n);
	load_rates();
	for (int i = 0; i < n; i++)
	{
		for (int gauge = 0; gauge < TQ_QUEUE_GAUGES; gauge++)
			tq_count_build_set(rows[i].queue, gauge, rows[i].gauges[gauge]);
	}
	tq_spi_close();
	return tq_count_build_end();
}

/* ---- groups ---- */

/* Reads the counters of a group; returns false if it has none. */
bool
tq_count_read_group(int64 id, int64 *counters)
{
	tq_counts_settle();
	return id != 0 && tq_counts_read_group(tq_locked_table,
										   tq_count_identity(), id, counters);
}

/*
 * Begins to count a group for counters of its own; see tq_count_build_begin().
 * The database has gauges, so that it is known which transactions are prepared.
 */
bool
tq_count_group_begin(int64 id, Snapshot *snapshot)
{
	return tq_count_build_begin(tq_locked_table, tq_count_identity(),
								TQ_COUNTED_GROUP, id, NULL, 0, snapshot);
}

/* ---- what workers have reported ---- */

/*
 * What the workers of a group have reported of their running runs.
 *
 * The shares are in the details of the runs, and are added when a group is
 * asked for, if a run of it has ever reported: a counter of the group says so.
 * A counter of the sum would be wrong for good when a run ends while a report
 * is not committed yet, unless its end waited for the worker.
 */

/* To read a running run by its timer takes as long as to read so many tasks. */
#define TASKS_PER_RUNNING 2

/* Without counters, groups of so many tasks are read by their index. */
#define SMALL_GROUP 10000

#define SUM_OF                                                                \
	"SELECT coalesce(sum(least(1, d.done::float8 / d.total)), 0)::float8 FROM "

/* LIMIT makes it a look-up by index for each task, whatever the statistics say. */
#define RUNNING_OF                                                                     \
	" CROSS JOIN LATERAL (SELECT * FROM tq_internal.run q WHERE q.task = t.id"         \
	" ORDER BY q.run_id DESC LIMIT 1) AS r CROSS JOIN LATERAL (SELECT e.done, e.total" \
	" FROM tq_internal.run_detail e WHERE e.task = r.task AND e.run_id = r.run_id"     \
	" LIMIT 1) AS d WHERE r.state = 2 AND r.has_detail AND d.total > 0 AND "

static TqStatement of_own =
	TQ_STATEMENT(SUM_OF "tq_internal.task t" RUNNING_OF
						"t.task_id = $1 AND t.group_id IS NULL",
				 TQ_SLUGID);

static TqStatement of_tasks =
	TQ_STATEMENT(SUM_OF "tq_internal.task t" RUNNING_OF "t.group_id = $1",
				 INT8OID);

/* Running runs are found by their claim timers, which need no index of runs. */
static TqStatement of_running = TQ_STATEMENT(
	SUM_OF
	"tq_internal.claimed_run r JOIN tq_internal.task t ON t.id = r.task"
	" JOIN tq_internal.run_detail d ON r.has_detail AND d.task = r.task AND d.run_id = r.run_id"
	" WHERE d.total > 0 AND t.group_id = $1",
	INT8OID);

static TqStatement is_reported = TQ_STATEMENT(
	"SELECT 1 FROM tq_internal.task t JOIN tq_internal.run_detail d ON d.task = t.id"
	" WHERE t.group_id = $1 AND d.reported IS NOT NULL LIMIT 1",
	INT8OID);

/*
 * Returns whether a run of a group has reported progress, without the task that
 * the group is named after.
 */
bool
tq_progress_is_reported(int64 group)
{
	return tq_spi_exists(&is_reported, TQ_VALUES(Int64GetDatum(group)));
}

static void
read_sum(TupleTableSlot *slot, void *sum)
{
	*(double *) sum = DatumGetFloat8(tq_row_value(slot, 1));
}

/* Returns the share that is done of the task that a group is named after. */
double
tq_progress_of_own(const TqGroup *group)
{
	double sum = 0;

	(void) tq_spi_read(&of_own,
					   TQ_VALUES(PointerGetDatum(&group->task_group_id)),
					   read_sum, &sum);
	return sum;
}

/*
 * Returns the sum of the shares that are done of the other running tasks of a
 * group, each from 0 to 1.  Reads the tasks of the group, of which there are so
 * many, or the running runs of the database, whichever is less.
 */
double
tq_progress_of_group(const TqGroup *group, int64 tasks)
{
	/* About how many runs are running; 0 without counters. */
	int64 running = tq_counts_read_running(tq_locked_table);
	bool by_tasks = running > 0 ? tasks <= TASKS_PER_RUNNING * running
								: tasks <= SMALL_GROUP;
	double sum = 0;

	(void) tq_spi_read(by_tasks ? &of_tasks : &of_running,
					   TQ_VALUES(Int64GetDatum(group->id)), read_sum, &sum);
	return sum;
}

/*
 * Writes the history of queues since the last call, or counts runs by the names
 * of their tasks (src/sql/history.sql); returns how many rows or parts.
 */
int64
tq_history_write(bool by_names)
{
	int n;

	return tq_spi_run_ids(by_names ? &write_names : &write_history, NULL,
						  &n)[0];
}
