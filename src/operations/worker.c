/*
 * worker.c
 *	  Resolves the runs of a worker that was removed (doc/spec/taskcluster.md 3.1,
 *	  rule 33).
 *
 * What claims note about their worker is in claim.c.
 */
#include "postgres.h"

#include "../core/names.h"
#include "operations.h"

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
 * Resolves the running runs of a worker as worker-shutdown, with that error, so
 * that they are retried as after a report of it.  Returns the reports, with their
 * outcomes.
 */
TqReport *
tq_worker_remove(int32 worker, Jsonb *error, TimestampTz now, int *n)
{
	TqHeldRun *runs = tq_runs_held(worker, n);
	TqReport *reports = palloc0(sizeof(TqReport) * Max(*n, 1));

	for (int i = 0; i < *n; i++)
		reports[i] = (TqReport){.task_id = runs[i].task_id,
								.run_id = runs[i].run_id,
								.reason = TQ_RESOLVED_WORKER_SHUTDOWN,
								.holder = worker,
								.error = error};
	tq_resolve_reports(reports, *n, now);
	note_removed(reports, *n);
	return reports;
}
