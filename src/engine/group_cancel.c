/*
 * group_cancel.c
 *	  Cancels the tasks of a group.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "lib/qunique.h"
#include "utils/jsonb.h"
#include "utils/snapmgr.h"

#include "../core/state.h"
#include "../core/types.h"
#include "../events/status_json.h"
#include "../storage/dependency_table.h"
#include "../storage/group_table.h"
#include "../storage/run_table.h"
#include "../storage/table.h"
#include "../storage/task_location.h"
#include "../storage/task_table.h"
#include "../util/errors.h"
#include "../util/slugid.h"
#include "group.h"
#include "group_cancel.h"
#include "transition.h"

/*
 * The unresolved tasks of a group that is being canceled, and those locked so
 * far.
 */
typedef struct Cancel
{
	TqTask *tasks;
	bool *is_done;
	int n;
	TqLockedTasks locked;
} Cancel;

/*
 * Locks the tasks that can be canceled, in the order of locks that dependency.c
 * gives.
 */
static void
lock_unresolved(Cancel *cancel, TimestampTz now, bool unscheduled_too)
{
	TqLockedTasks *locked = &cancel->locked;

	for (int i = 0; i < cancel->n; i++)
	{
		TqTask *task = &cancel->tasks[i];
		TqRun run;

		if (cancel->is_done[i] || !tq_run_peek(task->id, &run) ||
			(run.location == TQ_LOCATION_UNSCHEDULED && !unscheduled_too))
			continue;
		cancel->is_done[i] = true;
		if (task->deadline <= now ||
			!tq_run_lock(task->id, TQ_LOCK_UPDATE, &run) ||
			tq_state_verdict(run.state, TQ_EVENT_CANCEL) != TQ_VERDICT_APPLY)
			continue;
		locked->runs[locked->n] = run;
		locked->tasks[locked->n++] = *task;
	}
}

/*
 * Locks the rows of unscheduled that the end of these tasks may touch,
 * including their own.
 */
static void
lock_unscheduled_near(const int64 *ids, int n)
{
	int found;
	int64 *near = tq_dependencies_unscheduled(ids, n, &found);

	(void) tq_unscheduled_lock(near, found, &found);
}

static void
require_sealed(const TqGroup *group)
{
	if (group->sealed == 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task group \"%s\" is not sealed",
					tq_slug_text(&group->task_group_id)),
			 errdetail(
				 "Only a sealed group can be canceled, because new tasks could join it otherwise."),
			 errhint("Call tq.seal_task_group() first.")));
}

/*
 * Cancels every unresolved task of a sealed group (doc/spec/taskcluster.md
 * 2.6).
 */
Jsonb *
tq_group_cancel(const TqSlug *slug, TimestampTz now)
{
	Cancel cancel = {0};
	TqGroup group;
	int n;
	int64 *ids;

	tq_group_get(slug, &group);
	require_sealed(&group);
	ids = tq_group_unresolved(&group, &n);
	cancel.tasks = tq_tasks_by_id(ids, n, &cancel.n);
	cancel.is_done = palloc0(sizeof(bool) * Max(n, 1));
	cancel.locked.runs = palloc(sizeof(TqRun) * Max(n, 1));
	cancel.locked.tasks = palloc(sizeof(TqTask) * Max(n, 1));
	lock_unresolved(&cancel, now, false);
	lock_unscheduled_near(ids, n);
	lock_unresolved(&cancel, now, true);
	tq_transitions_end(&cancel.locked, TQ_EVENT_CANCEL, now);
	return tq_group_cancel_json(&group,
								tq_group_size(&group),
								cancel.locked.tasks,
								cancel.locked.n);
}
