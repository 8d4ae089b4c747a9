/*
 * group_cancel.c
 *	  Cancels the tasks of a group.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/state.h"
#include "../core/types.h"
#include "../events/status_json.h"
#include "../storage/group_table.h"
#include "../storage/run_table.h"
#include "../storage/table.h"
#include "../storage/task_location.h"
#include "../storage/task_lock.h"
#include "../storage/task_table.h"
#include "../util/errors.h"
#include "../util/slugid.h"
#include "group.h"
#include "group_cancel.h"
#include "transition.h"

/*
 * Locks those of the n tasks that can be canceled, and the tasks that their
 * end may release.
 */
static void
lock_unresolved(TqLockedTasks *locked, int n, TimestampTz now)
{
	TqTaskLock *locks = palloc0(sizeof(TqTaskLock) * Max(n, 1));
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		if (locked->tasks[i].deadline <= now)
			continue;
		locks[count].task = locked->tasks[i].id;
		locked->tasks[count++] = locked->tasks[i];
	}
	tq_task_lock_wait(locks, count, TQ_LOCK_UPDATE, NULL, true);
	locked->runs = palloc(sizeof(TqRun) * Max(count, 1));
	for (int i = 0; i < count; i++)
	{
		if (!locks[i].is_locked ||
			tq_state_verdict(locks[i].run.state, TQ_EVENT_CANCEL) !=
				TQ_VERDICT_APPLY)
			continue;
		locked->runs[locked->n] = locks[i].run;
		locked->tasks[locked->n++] = locked->tasks[i];
	}
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
	TqLockedTasks locked = {0};
	TqGroup group;
	int n;
	int64 *ids;

	tq_group_get(slug, &group);
	require_sealed(&group);
	ids = tq_group_unresolved(&group, &n);
	locked.tasks = tq_tasks_by_id(ids, n, &n);
	lock_unresolved(&locked, n, now);
	tq_transitions_end(&locked, TQ_EVENT_CANCEL, now);
	return tq_group_cancel_json(&group,
								tq_group_size(&group),
								locked.tasks,
								locked.n);
}
