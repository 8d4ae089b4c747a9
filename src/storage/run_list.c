/*
 * run_list.c
 *	  Pages of the pending and of the claimed runs of a queue, for people and
 *	  clients that look at it (doc/spec/taskcluster.md 2.16).
 *
 * No index is kept for these lists alone, because each claim would pay for it.
 * Pending runs are found by pending_order, in which seq is the order of
 * becoming pending within each priority.  Running runs are found by the claim
 * timers, due or not: each running run has one at every commit (timer_table.c).
 * So the time of a look-up grows with the running tasks and the claims of the
 * last seconds, and not with the number of tasks.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "utils/timestamp.h"

#include "../util/util.h"
#include "rows.h"
#include "tasks.h"

/*
 * A page of each priority, and then the first of these.  A run that was
 * delayed has become pending when it became claimable.
 */
static TqStatement list_pending = TQ_STATEMENT(
	"SELECT p.task, p.run_id, greatest(p.scheduled, d.visible_at), p.seq, p.task_id"
	" FROM generate_series(1, 7) AS y (priority) CROSS JOIN LATERAL ("
	"SELECT q.*, t.task_id FROM tq_internal.pending q JOIN tq_internal.task t ON t.id = q.task"
	" WHERE q.queue = $1 AND q.priority = y.priority AND q.seq > $2"
	" AND coalesce(t.effective_deadline, t.deadline) > $3 ORDER BY q.seq LIMIT $4) AS p"
	" LEFT JOIN tq_internal.run_detail d ON p.has_detail AND d.task = p.task AND d.run_id = p.run_id"
	" ORDER BY p.seq LIMIT $4",
	INT4OID, INT8OID, TIMESTAMPTZOID, INT4OID);

static TqStatement list_claimed = TQ_STATEMENT(
	"SELECT r.task, r.run_id, r.started, r.task, t.task_id, w.worker_group, w.worker_id"
	" FROM tq_internal.claimed_run r"
	" JOIN tq_internal.task t ON t.id = r.task JOIN tq_internal.worker w ON w.id = r.worker"
	" WHERE t.queue = $1 AND r.taken_until > $2 AND (r.started, r.task) > ($3, $4)"
	" ORDER BY r.started, r.task LIMIT $5",
	INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, INT4OID);

static TqStatement list_held = TQ_STATEMENT(
	"SELECT r.task, r.run_id, r.started, r.task, t.task_id FROM tq_internal.claimed_run r"
	" JOIN tq_internal.task t ON t.id = r.task WHERE r.worker = $1 ORDER BY r.started, r.task",
	INT4OID);

static void
read_run(TupleTableSlot *slot, void *run)
{
	*(TqListedRun *) run = (TqListedRun){.task = tq_row_int64(slot, 1),
										 .run_id = tq_row_int16(slot, 2),
										 .place = {tq_row_time(slot, 3),
												   tq_row_int64(slot, 4)},
										 .task_id = tq_row_slug(slot, 5)};
}

static void
read_claimed(TupleTableSlot *slot, void *run)
{
	read_run(slot, run);
	((TqListedRun *) run)->worker_group = tq_row_text(slot, 6);
	((TqListedRun *) run)->worker_id = tq_row_text(slot, 7);
}

/*
 * Returns a page of the runs of a queue that can be claimed now, in the order
 * in which they became pending, beginning after the seq `after`.
 */
TqListedRun *
tq_runs_list_pending(int32 queue, int64 after, int max, TimestampTz now,
					 int *found)
{
	Datum values[4] = {Int32GetDatum(queue), Int64GetDatum(after),
					   TimestampTzGetDatum(now), Int32GetDatum(max)};

	return tq_spi_read_all(&list_pending, values, read_run,
						   sizeof(TqListedRun), found);
}

/*
 * Returns a page of the runs of a queue whose claims have not expired, by the
 * time at which they were first claimed, beginning after the place `after`.
 */
TqListedRun *
tq_runs_list_claimed(int32 queue, const TqRunPlace *after, int max,
					 TimestampTz now, int *found)
{
	Datum values[5] = {Int32GetDatum(queue), TimestampTzGetDatum(now),
					   TimestampTzGetDatum(after->since),
					   Int64GetDatum(after->number), Int32GetDatum(max)};

	return tq_spi_read_all(&list_claimed, values, read_claimed,
						   sizeof(TqListedRun), found);
}

/* Returns the running runs of a worker, oldest first. */
TqListedRun *
tq_runs_held(int32 worker, int *found)
{
	return tq_spi_read_all(&list_held, TQ_VALUES(Int32GetDatum(worker)),
						   read_run, sizeof(TqListedRun), found);
}
