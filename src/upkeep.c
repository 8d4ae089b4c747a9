/*
 * upkeep.c
 *	  What time brings about: deadlines, expired claims, delayed runs, expiry.
 *
 * Room 4.  Each step takes a bounded number of due rows of lease or timer,
 * passes over tasks that others have locked (to be looked at again soon), and
 * is safe to repeat, at any time, by any number of sessions at once: the rows
 * that say "look" are locked by the session that takes them, and whether
 * something is really due is decided by the task's own row under its lock.
 * Follows spec/taskcluster.md 3.5, 3.6, 8.4 and spec/policy.md section 5.
 */
#include "rules.h"

#include "upkeep.h"

/* Rows of lease or timer that one batch takes, and tasks that one row names. */
#define BATCH_ROWS 100
#define TIMER_TASKS 100

/* When to look again at a task that another session holds. */
#define AGAIN_MS 100

#define HOUR_MS INT64CONST(60 * 60 * 1000)
#define EXPIRY_SLACK_MS (30 * 60 * 1000)

const char *
tq_step_name(TqStep step)
{
	switch (step)
	{
		case TQ_STEP_DEADLINE:
			return "deadline";
		case TQ_STEP_CLAIM_EXPIRED:
			return "claim-expired";
		case TQ_STEP_DELAYED:
			return "delayed";
		case TQ_STEP_EXPIRE:
			return "expired";
	}
	return NULL;
}

/* ---- deadlines (3.5) ---- */

static int
compare_expires(const void *a, const void *b)
{
	TimestampTz x = (*(TqTask *const *) a)->expires;
	TimestampTz y = (*(TqTask *const *) b)->expires;

	return x < y ? -1 : x > y;
}

/*
 * Look at these tasks again when they expire.  Those that expire in the same
 * hour share a row, so that the years in which tasks are kept cost little.
 */
static void
set_expiry(TqTask **tasks, int n)
{
	int64 ids[TIMER_TASKS];
	int nids = 0;

	qsort(tasks, n, sizeof(TqTask *), compare_expires);
	for (int i = 0; i < n; i++)
	{
		ids[nids++] = tasks[i]->id;
		if (nids == TIMER_TASKS || i + 1 == n ||
			tasks[i + 1]->expires / (HOUR_MS * 1000) !=
				tasks[i]->expires / (HOUR_MS * 1000))
		{
			tq_timer_insert(TQ_TIMER_EXPIRE,
							tq_clock_add_ms(tasks[i]->expires,
											EXPIRY_SLACK_MS + 1),
							ids,
							nids);
			nids = 0;
		}
	}
}

static int64
pass_deadlines(TimestampTz now, bool *more)
{
	int n;
	int64 *ids = tq_timer_take(TQ_TIMER_DEADLINE, now, BATCH_ROWS, &n, more);
	TqTask *tasks = tq_tasks_by_id(ids, n, &n);
	TqTask *overdue = palloc(sizeof(TqTask) * Max(n, 1));
	TqTask **passed = palloc(sizeof(TqTask *) * Max(n, 1));
	TqRun *runs = palloc(sizeof(TqRun) * Max(n, 1));
	int noverdue = 0;
	int npassed = 0;
	int nagain = 0;

	for (int i = 0; i < n; i++)
	{
		TqRun *run = &runs[noverdue];

		if (!tq_run_lock(tasks[i].id, TQ_LOCK_SKIP, run))
		{
			ids[nagain++] = tasks[i].id;
			continue;
		}
		passed[npassed++] = &tasks[i];
		if (tq_state_verdict(run->state, TQ_EVENT_DEADLINE) ==
			TQ_VERDICT_APPLY)
			overdue[noverdue++] = tasks[i];
	}
	tq_timer_insert(TQ_TIMER_DEADLINE,
					tq_clock_add_ms(now, AGAIN_MS),
					ids,
					nagain);
	set_expiry(passed, npassed);
	tq_resolve_final(runs,
					 overdue,
					 noverdue,
					 TQ_RESOLVED_DEADLINE_EXCEEDED,
					 now);
	return noverdue;
}

/* ---- expired claims (3.6) ---- */

static int
compare_task(const void *a, const void *b)
{
	int64 x = ((const TqRun *) a)->task;
	int64 y = ((const TqRun *) b)->task;

	return x < y ? -1 : x > y;
}

/* Those that have expired too, but are held by others, are looked at again. */
static void
look_again_at_locked(const int64 *ids, int n, TqRun *runs, int nruns,
					 TimestampTz now)
{
	int found;
	int64 *expired = tq_runs_peek_expired(ids, n, now, &found);
	int nagain = 0;

	for (int i = 0; i < found; i++)
	{
		TqRun key = {.task = expired[i]};

		if (bsearch(&key, runs, nruns, sizeof(TqRun), compare_task) == NULL)
			expired[nagain++] = expired[i];
	}
	tq_lease_insert(tq_clock_add_ms(now, AGAIN_MS), expired, nagain);
}

static int64
expire_claims(TimestampTz now, bool *more)
{
	int n;
	int nruns;
	int found;
	int64 *ids = tq_lease_take(now, BATCH_ROWS, &n, more);
	TqRun *runs;

	if (n == 0)
		return 0;
	runs = tq_runs_lock_expired(ids, n, now, &nruns);
	look_again_at_locked(ids, n, runs, nruns, now);
	for (int i = 0; i < nruns; i++)
		ids[i] = runs[i].task;
	tq_resolve_expired(runs, tq_tasks_by_id(ids, nruns, &found), nruns, now);
	return nruns;
}

/* ---- expiry (8.4) ---- */

/* What has no timer of its own is swept once an hour and backend. */
static void
sweep(TimestampTz before)
{
	static TimestampTz last = 0;

	if (last != 0 && before < tq_clock_add_ms(last, HOUR_MS) && before >= last)
		return;
	(void) tq_groups_delete(before, tq_expire_batch);
	tq_workers_forget(before);
	last = before;
}

static int64
expire_tasks(TimestampTz now, bool *more)
{
	TimestampTz before = tq_clock_add_ms(now, -EXPIRY_SLACK_MS);
	int rows = Max(1, tq_expire_batch / TIMER_TASKS);
	int n;
	int nkept = 0;
	int nexpired = 0;
	int64 *ids = tq_timer_take(TQ_TIMER_EXPIRE, now, rows, &n, more);
	TqTask *tasks = tq_tasks_by_id(ids, n, &n);
	TqTask **kept = palloc(sizeof(TqTask *) * Max(n, 1));
	int deleted = 0;

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].expires < before)
			ids[nexpired++] = tasks[i].id;
		else
			kept[nkept++] = &tasks[i];
	}
	set_expiry(kept, nkept);
	if (nexpired > 0)
		deleted = tq_tasks_delete(ids, nexpired);
	sweep(before);
	return deleted;
}

/* ---- a pass ---- */

int64
tq_upkeep_step(TqStep step, bool *more)
{
	TimestampTz now = tq_clock_now();
	int64 tasks = 0;

	*more = false;
	tq_plan_open(false);
	switch (step)
	{
		case TQ_STEP_DEADLINE:
			tasks = pass_deadlines(now, more);
			break;
		case TQ_STEP_CLAIM_EXPIRED:
			tasks = expire_claims(now, more);
			break;
		case TQ_STEP_DELAYED:
			tasks = tq_delayed_release(now, BATCH_ROWS * TIMER_TASKS);
			*more = tasks == BATCH_ROWS * TIMER_TASKS;
			break;
		case TQ_STEP_EXPIRE:
			tasks = expire_tasks(now, more);
			break;
	}
	tq_plan_close();
	return tasks;
}

TimestampTz
tq_upkeep_next_due(void)
{
	TimestampTz due;

	tq_plan_open(false);
	due = tq_timer_next_due();
	tq_plan_close();
	return due;
}
