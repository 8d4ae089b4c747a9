/*
 * store_pending.c
 *	  Rows of tq.pending and tq.delayed: runs that wait for a worker.
 *
 * Room 2.  A row of pending can be claimed; a row of delayed becomes one when
 * it is due.  A claim deletes the row and inserts the run and the lease, all
 * in one statement: rows that another session holds are passed over, so that
 * claimants never wait for each other, nor for a cancel.
 */
#include "store.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"

/*
 * A run that follows another, or comes later than its task, has the task's
 * priority of this moment: the caller may have read the task before it locked
 * the row that a change of priority would have to lock.
 */
static TqStatement insert_pending = TQ_STATEMENT(
	"INSERT INTO tq.pending (seq, task, scheduled, queue, priority, run_id, retries_left, reason_created)"
	" SELECT CASE x.seq WHEN 0 THEN nextval('tq.seq') ELSE x.seq END, x.task, x.scheduled,"
	" x.queue, CASE x.seq WHEN 0 THEN (SELECT t.priority FROM tq.task t WHERE t.id = x.task)"
	" ELSE x.priority END, x.run_id, x.retries_left, x.created"
	" FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS x (seq, task, scheduled, queue, priority,"
	" run_id, retries_left, created)",
	INT8ARRAYOID, INT8ARRAYOID, TIMESTAMPTZARRAYOID, INT4ARRAYOID,
	INT4ARRAYOID, INT4ARRAYOID, INT4ARRAYOID, INT4ARRAYOID);

static TqStatement delete_pending =
	TQ_STATEMENT("DELETE FROM tq.pending WHERE task = ANY ($1)", INT8ARRAYOID);

static TqStatement delete_delayed =
	TQ_STATEMENT("DELETE FROM tq.delayed WHERE task = ANY ($1)", INT8ARRAYOID);

static TqStatement set_pending_priority =
	TQ_STATEMENT("UPDATE tq.pending SET priority = $2 WHERE task = ANY ($1)",
				 INT8ARRAYOID, INT2OID);

static TqStatement set_delayed_priority =
	TQ_STATEMENT("UPDATE tq.delayed SET priority = $2 WHERE task = ANY ($1)",
				 INT8ARRAYOID, INT2OID);

/* $1 queue, $2 now, $3 how many, $4 taken until, $5 worker */
static TqStatement claim = TQ_STATEMENT(
	"WITH candidate AS MATERIALIZED ("
	"SELECT p.task FROM tq.pending p JOIN tq.task t ON t.id = p.task"
	" WHERE p.queue = $1 AND t.deadline > $2"
	" ORDER BY p.queue, p.priority DESC, p.seq LIMIT $3 FOR UPDATE OF p SKIP LOCKED),"
	" taken AS (DELETE FROM tq.pending p USING candidate c WHERE p.task = c.task"
	" RETURNING p.*),"
	" started AS (INSERT INTO tq.run (task, run_id, state, reason_created, retries_left,"
	" worker, scheduled, started, taken_until)"
	" SELECT task, run_id, 2, reason_created, retries_left, $5, scheduled, $2, $4 FROM taken),"
	" leased AS (INSERT INTO tq.lease (due, tasks)"
	" SELECT $4, array_agg(task) FROM taken HAVING count(*) > 0)"
	" SELECT t.id, t.task_id, x.run_id, t.payload, x.priority FROM taken x JOIN tq.task t ON t.id = x.task"
	" ORDER BY x.priority DESC, x.seq",
	INT4OID, TIMESTAMPTZOID, INT4OID, TIMESTAMPTZOID, INT4OID);

static TqStatement count_pending = TQ_STATEMENT(
	"SELECT count(*) FROM tq.pending p JOIN tq.task t ON t.id = p.task"
	" WHERE p.queue = $1 AND t.deadline > $2",
	INT4OID, TIMESTAMPTZOID);

/* A running run always has a lease that is not due later than its claim ends. */
static TqStatement count_claimed = TQ_STATEMENT(
	"SELECT count(*) FROM (SELECT DISTINCT u.task FROM tq.lease l, unnest(l.tasks) AS u (task)) AS x"
	" JOIN tq.run r ON r.task = x.task JOIN tq.task t ON t.id = x.task"
	" WHERE r.state = 2 AND r.taken_until > $2 AND t.queue = $1",
	INT4OID, TIMESTAMPTZOID);

static TqStatement release_delayed = TQ_STATEMENT(
	"WITH due AS MATERIALIZED ("
	"SELECT task FROM tq.delayed WHERE visible_at <= $1 ORDER BY visible_at LIMIT $2"
	" FOR UPDATE SKIP LOCKED),"
	" moved AS (DELETE FROM tq.delayed d USING due WHERE d.task = due.task RETURNING d.*)"
	" INSERT INTO tq.pending (seq, task, scheduled, queue, priority, run_id, retries_left, reason_created)"
	" SELECT nextval('tq.seq'), task, scheduled, queue, priority, run_id, retries_left, reason_created"
	" FROM (SELECT * FROM moved ORDER BY visible_at, task) AS x",
	TIMESTAMPTZOID, INT4OID);

/*
 * Make runs claimable.  A seq of 0 means the back of the queue, in this order,
 * and the priority that the task has now.
 */
void
tq_pending_insert(const TqPending *rows, int n)
{
	Datum values[8];
	Datum *v = values;

	if (n == 0)
		return;
	TQ_COLUMN(rows, n, int64, tq_array_int64, seq, *v++);
	TQ_COLUMN(rows, n, int64, tq_array_int64, task, *v++);
	TQ_COLUMN(rows, n, TimestampTz, tq_array_time, scheduled, *v++);
	TQ_COLUMN(rows, n, int32, tq_array_int32, queue, *v++);
	TQ_COLUMN(rows, n, int32, tq_array_int32, priority, *v++);
	TQ_COLUMN(rows, n, int32, tq_array_int32, run_id, *v++);
	TQ_COLUMN(rows, n, int32, tq_array_int32, retries_left, *v++);
	TQ_COLUMN(rows, n, int32, tq_array_int32, created, *v++);
	tq_plan_run(&insert_pending, values, NULL);
}

/* Take pending rows away that the caller has locked. */
void
tq_pending_delete(const int64 *tasks, int n)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	if (n > 0)
		tq_plan_run(&delete_pending, values, NULL);
}

void
tq_delayed_delete(const int64 *tasks, int n)
{
	Datum values[1] = {tq_array_int64(tasks, n)};

	if (n > 0)
		tq_plan_run(&delete_delayed, values, NULL);
}

/* A new priority, and the same place in it, for those that wait; all are locked. */
void
tq_pending_set_priority(const int64 *tasks, int n, int priority)
{
	Datum values[2] = {tq_array_int64(tasks, n), Int16GetDatum(priority)};

	if (n == 0)
		return;
	tq_plan_run(&set_pending_priority, values, NULL);
	tq_plan_run(&set_delayed_priority, values, NULL);
}

/*
 * Claim up to max runs of a queue in their order, leaving out what is past
 * its deadline or held by another session.
 */
TqClaimed *
tq_pending_claim(int32 queue, int32 worker, int max, TimestampTz now,
				 TimestampTz taken_until, int *found)
{
	Datum values[5] = {Int32GetDatum(queue),
					   TimestampTzGetDatum(now),
					   Int32GetDatum(max),
					   TimestampTzGetDatum(taken_until),
					   Int32GetDatum(worker)};
	TqClaimed *claimed;

	*found = (int) tq_plan_run(&claim, values, NULL);
	claimed = palloc(sizeof(TqClaimed) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
	{
		claimed[i].task = tq_plan_int64(i, 1, 0);
		claimed[i].task_id = tq_plan_slug(i, 2);
		claimed[i].run_id = tq_plan_int16(i, 3, 0);
		claimed[i].payload = tq_plan_jsonb(i, 4);
		claimed[i].priority = tq_plan_int16(i, 5, 0);
	}
	tq_plan_free_result();
	if (*found > 0)
		tq_shmem_note_due(taken_until);
	return claimed;
}

static int64
count(TqStatement *statement, int32 queue, TimestampTz now)
{
	Datum values[2] = {Int32GetDatum(queue), TimestampTzGetDatum(now)};

	tq_plan_run(statement, values, NULL);
	return tq_plan_int64(0, 1, 0);
}

/* Pending tasks of a queue that are not past their deadline (8.1). */
int64
tq_pending_count(int32 queue, TimestampTz now)
{
	return count(&count_pending, queue, now);
}

/* Running tasks of a queue whose claim has not expired (8.1). */
int64
tq_claimed_count(int32 queue, TimestampTz now)
{
	return count(&count_claimed, queue, now);
}

/* Make due runs claimable, at the back of their priority; returns how many. */
int
tq_delayed_release(TimestampTz now, int max)
{
	Datum values[2] = {TimestampTzGetDatum(now), Int32GetDatum(max)};

	return (int) tq_plan_run(&release_delayed, values, NULL);
}
