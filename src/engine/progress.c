/*
 * progress.c
 *	  What a worker reports of a run while it is running (doc/spec/policy.md
 *	  13).
 *
 * Progress is kept in the detail of the run, in columns that no index has.  The
 * first report of a run writes the row of the run, too, because that says that
 * there is a detail.  Later reports lock nothing but the detail: no transition
 * of the task waits for a worker whose transaction is open, unless it writes
 * the detail itself.  A report whose transaction is open when the run ends is
 * stored as if it had come before.
 */
#include "postgres.h"

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "../events/events.h"
#include "../storage/tasks.h"
#include "../util/util.h"
#include "engine.h"

/* The least time between two reports that are stored. */
#define INTERVAL_MS 1000

static bool
is_same(const TqRunProgress *a, const TqRunProgress *b)
{
	if (a->done != b->done || a->total != b->total ||
		(a->message == NULL) != (b->message == NULL))
		return false;
	return a->message == NULL || strcmp(a->message, b->message) == 0;
}

/*
 * Returns whether a report is dropped, because one was stored within a second.
 * The last report of a run, by which all is done, is dropped only if it is
 * repeated.
 */
static bool
is_too_soon(const TqRunProgress *stored, const TqRunProgress *progress,
			TimestampTz now)
{
	if (stored == NULL || now < stored->reported ||
		now >= tq_clock_add_ms(stored->reported, INTERVAL_MS))
		return false;
	return progress->done != progress->total || is_same(stored, progress);
}

/*
 * Gives a run that has none a detail, and notes that in its row; returns false
 * if that was changed concurrently.
 */
static bool
add_detail(TqRunWriter *writer, const TqTask *task, TqRun *run)
{
	TqRunDetail detail;

	tq_run_detail(run, task->policy, &detail);
	if (task->policy == 0) /* as views show a run without a detail */
		detail.budget.attempt = run->run_id;
	run->has_detail = true;
	if (!tq_run_writer_write(writer, run))
		return false;
	tq_details_write(&detail, 1);
	return true;
}

/*
 * Stores the progress of a run that this worker has.  Reads the run again until
 * that could be written as it was read, and then once more, because the write
 * may have waited for the end of the run.  Returns false if it is too soon.
 */
static bool
store(const TqTask *task, int run_id, int32 holder,
	  const TqRunProgress *progress, TqRun *run)
{
	TimestampTz now = progress->reported;
	TqRunWriter *writer = tq_run_writer_begin();
	bool is_lost = false; /* the detail that the row says there is */
	bool is_first = true;
	bool is_dropped = false;
	bool is_stored = false;

	for (;;)
	{
		if (!tq_claim_read(writer, task, run_id, holder, TQ_EVENT_RECLAIM, now,
						   run))
			continue;
		if (is_stored) /* it was running after that, too */
			break;
		if (run->has_detail && !is_lost)
		{
			const TqRunProgress *stored = tq_detail_progress(run);

			is_first = stored == NULL;
			is_dropped = is_too_soon(stored, progress, now);
		}
		else if (!add_detail(writer, task, run))
			continue;
		if (is_dropped)
			break;
		is_stored = tq_detail_set_progress(run, progress);
		is_lost = !is_stored; /* with the task, or to a DBA */
		tq_run_writer_renew(writer);
	}
	tq_run_writer_end(writer);
	if (is_stored && is_first)
		tq_count_reported(task);
	return is_stored;
}

/*
 * Stores how far a run is, and appends task-progress if a binding or a
 * subscription wants it.  If holder is not 0, that worker must have the run.
 * Does neither if the last report is less than a second old, unless this one
 * says that all is done.
 */
void
tq_progress_report(const TqSlug *task_id, int run_id, int32 holder,
				   TqRunProgress *progress, TimestampTz now)
{
	TqTask task;
	TqRun run;

	if (!tq_task_find(task_id, &task))
		tq_error_missing_task(task_id);
	progress->reported = now;
	if (store(&task, run_id, holder, progress, &run) &&
		tq_outbox_is_wanted(TQ_EXCHANGE_TASK_PROGRESS))
		tq_outbox_append_detail(TQ_EXCHANGE_TASK_PROGRESS, &task, run_id, &run,
								tq_progress_detail_json(progress));
}
