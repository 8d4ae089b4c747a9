/*
 * worker.c
 *	  Requests of clients about a worker: read, declare, quarantine, remove
 *	  (doc/spec/taskcluster.md 2.16, 5.5, 5.6).
 *
 * Decides which workers are shown, and what becomes of the runs of one that
 * was removed.  What claims note about their worker is in claim.c.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/names.h"
#include "../core/types.h"
#include "../events/events.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "engine.h"

pg_noreturn static void
refuse_missing(const TqWorkerId *id)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_NOT_FOUND),
		 errmsg("worker \"%s/%s\" of task queue \"%s\" does not exist",
				id->group, id->name, id->queue),
		 errdetail(
			 "It has not called tq.claim_work(), or it or its queue has not been seen for a day."),
		 errhint(
			 "A worker becomes known by its first tq.claim_work(), or by tq.declare_worker().")));
}

/*
 * Adds to a worker what it did since its row was written, which may be later
 * than what is stored there.
 */
void
tq_worker_merge(TqWorker *worker)
{
	TimestampTz seen = worker->activity.seen;

	if (worker->expires == 0 || seen <= worker->last_date_active)
		return;
	worker->last_date_active = seen;
	worker->expires = Max(worker->expires,
						  tq_clock_add_ms(seen, TQ_SEEN_DAY_MS));
}

/*
 * Reads a worker.  Raises TQ404 unless it is known and has not expired or is in
 * quarantine, and its queue has not expired.
 */
void
tq_worker_get(const TqWorkerId *id, TimestampTz now, TqWorker *worker)
{
	TqQueue queue;

	if (!tq_queue_read(id->queue, now, &queue) ||
		!tq_worker_find(tq_queue_find(id->queue), id->group, id->name, worker))
		refuse_missing(id);
	tq_worker_merge(worker);
	if (worker->expires == 0 ||
		(worker->expires <= now && worker->quarantine_until <= now))
		refuse_missing(id);
}

/*
 * Makes a worker known until then at least, after making it and its queue if
 * necessary, and reads it.  The queue does not expire before it.
 */
void
tq_worker_set_expires(const TqWorkerId *id, TimestampTz expires,
					  TimestampTz now, TqWorker *worker)
{
	int32 queue = tq_queue_intern(id->queue);
	TqWorkerSeat seat;

	tq_worker_seat_intern(queue, id->group, id->name, &seat);
	tq_queue_declare(queue,
					 Max(expires, tq_clock_add_ms(now, TQ_SEEN_DAY_MS)));
	tq_worker_declare(seat.id, expires);
	(void) tq_worker_find(queue, id->group, id->name, worker);
	tq_worker_merge(worker);
}

/*
 * Sets the end of a worker's quarantine, and adds the reason to those that it
 * had before.  The worker does not expire within a day.
 */
void
tq_worker_set_quarantine(const TqWorkerId *id, TimestampTz until,
						 Jsonb *detail, TimestampTz now, TqWorker *worker)
{
	tq_worker_get(id, now, worker);
	tq_worker_quarantine(worker->id, until,
						 tq_clock_add_ms(now, TQ_SEEN_DAY_MS), detail);
	tq_worker_get(id, now, worker);
}

/* Returns the error of a run whose worker was removed; NULL: no reason. */
static Jsonb *
error_of(const char *reason)
{
	JsonbParseState *state;

	if (reason == NULL)
		return NULL;
	state = tq_json_begin();
	tq_json_add_text(&state, "message", reason);
	return tq_json_end(&state);
}

/*
 * Notifies a worker of the runs that these reports have ended, because it has
 * not made them itself.
 */
static void
note_removed(const TqReport *reports, int n)
{
	TqOutboxBatch batch = {0};

	if (!tq_worker_channel_is_listened())
		return;
	for (int i = 0; i < n; i++)
	{
		TqRun run = {.run_id = reports[i].run_id, .worker = reports[i].holder};

		if (reports[i].is_ended)
			tq_worker_channel_add(&batch, &reports[i].task_id, &run,
								  tq_resolved_name(reports[i].reason));
	}
	tq_outbox_append(&batch);
}

/*
 * Resolves the runs that a worker has as worker-shutdown, so that they are
 * retried as after a report of it (doc/spec/taskcluster.md 3.1, rule 33).
 * Returns the reports, with their outcomes.
 */
TqReport *
tq_worker_remove(const TqWorkerId *id, const char *reason, TimestampTz now,
				 int *n)
{
	int32 queue = tq_queue_find(id->queue);
	Jsonb *error = error_of(reason);
	TqWorkerSeat seat;
	TqHeldRun *runs;
	TqReport *reports;

	if (queue == 0 || !tq_worker_seat_find(queue, id->group, id->name, &seat))
		refuse_missing(id);
	runs = tq_runs_held(seat.id, n);
	reports = palloc0(sizeof(TqReport) * Max(*n, 1));
	for (int i = 0; i < *n; i++)
		reports[i] = (TqReport){.task_id = runs[i].task_id,
								.run_id = runs[i].run_id,
								.reason = TQ_RESOLVED_WORKER_SHUTDOWN,
								.holder = seat.id,
								.error = error};
	tq_resolve_reports(reports, *n, now);
	note_removed(reports, *n);
	return reports;
}
