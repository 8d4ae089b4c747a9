/*
 * group_cancel.c
 *	  Cancels the tasks of a group.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/types.h"
#include "../events/status_json.h"
#include "../storage/group_table.h"
#include "../storage/run_table.h"
#include "../storage/table.h"
#include "../storage/task_lock.h"
#include "../storage/task_table.h"
#include "../util/errors.h"
#include "../util/slugid.h"
#include "group.h"
#include "group_cancel.h"
#include "transition.h"

/*
 * Locks those of these tasks that are before their deadline, and the
 * dependents that their end may release.  They are ended, and their messages
 * appended, in the order of locks.
 */
static void
lock_unresolved(int64 *ids, int n, TimestampTz now, TqLockedTasks *locked)
{
	TqTask *tasks = tq_tasks_by_id(ids, n, &n);
	TqTaskLock *locks;
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].deadline <= now)
			continue;
		ids[count] = tasks[i].id;
		tasks[count++] = tasks[i];
	}
	locks = tq_task_lock_wait(ids, count, TQ_LOCK_UPDATE, NULL, true);
	*locked = (TqLockedTasks){.runs = palloc(sizeof(TqRun) * Max(count, 1)),
							  .tasks = palloc(sizeof(TqTask) * Max(count, 1))};
	for (int i = 0; i < 2 * count; i++)
	{
		const TqTaskLock *lock = &locks[i % count];
		bool is_unscheduled = lock->run.location == TQ_LOCATION_UNSCHEDULED;

		if (!lock->is_locked || is_unscheduled != (i >= count))
			continue;
		locked->runs[locked->n] = lock->run;
		locked->tasks[locked->n++] = tasks[i % count];
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
	TqLockedTasks locked;
	TqGroup group;
	int n;
	int64 *ids;

	tq_group_get(slug, &group);
	require_sealed(&group);
	ids = tq_group_unresolved(&group, &n);
	lock_unresolved(ids, n, now, &locked);
	(void) tq_transitions_end(&locked, TQ_EVENT_CANCEL, TQ_TIMER_NONE, now);
	return tq_group_cancel_json(&group, tq_group_size(&group), locked.tasks,
								locked.n);
}
