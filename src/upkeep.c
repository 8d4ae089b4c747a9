/*
 * upkeep.c
 *	  What time brings about: publication, deadlines, expired claims, delayed
 *	  runs, expiry.
 *
 * Room 4.  Each step takes a bounded number of due rows of lease or timer,
 * passes over tasks that others have locked (to be looked at again soon), and
 * is safe to repeat, at any time, by any number of sessions at once: the rows
 * that say "look" are locked by the session that takes them, and whether
 * something is really due is decided by the task's own row under its lock.
 * Follows spec/taskcluster.md 3.5, 3.6, 8.4 and spec/policy.md section 5.
 */
#include "message.h"

#include "upkeep.h"

/* Rows of lease or timer that one batch takes. */
#define BATCH_ROWS 100

/* When to look again at a task that another session holds. */
#define AGAIN_MS 100

#define EXPIRY_SLACK_MS (30 * 60 * 1000)

/* The last message about a task comes no later than this after its deadline. */
#define MESSAGE_SLACK_MS (60 * 1000)

const char *
tq_step_name(TqStep step)
{
	switch (step)
	{
		case TQ_STEP_PUBLISH:
			return "publish";
		case TQ_STEP_DEADLINE:
			return "deadline";
		case TQ_STEP_CLAIM_EXPIRED:
			return "claim-expired";
		case TQ_STEP_DELAYED:
			return "delayed";
		case TQ_STEP_RETAIN:
			return "retain";
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
 * Look at these tasks again so long after they expire.  Those that expire in the same
 * hour share a row, so that the years in which tasks are kept cost little.
 */
static void
set_expiry(TqTask **tasks, int n, int64 delay_ms)
{
	int64 ids[TQ_TIMER_TASKS];
	int nids = 0;

	qsort(tasks, n, sizeof(TqTask *), compare_expires);
	for (int i = 0; i < n; i++)
	{
		ids[nids++] = tasks[i]->id;
		if (nids == TQ_TIMER_TASKS || i + 1 == n ||
			tasks[i + 1]->expires / (TQ_HOUR_MS * 1000) !=
				tasks[i]->expires / (TQ_HOUR_MS * 1000))
		{
			tq_timer_insert(TQ_TIMER_EXPIRE,
							tq_clock_add_ms(tasks[i]->expires, delay_ms + 1),
							ids,
							nids);
			nids = 0;
		}
	}
}

/* Tasks that a step has locked, with where they stand. */
typedef struct Held
{
	TqRun *runs;
	TqTask *tasks;
	int n;
} Held;

static void
begin_held(Held *held, int n)
{
	held->runs = palloc(sizeof(TqRun) * Max(n, 1));
	held->tasks = palloc(sizeof(TqTask) * Max(n, 1));
	held->n = 0;
}

/* Lock those of these unresolved tasks that nobody else holds. */
static void
hold_overdue(const int64 *ids, int n, Held *held)
{
	TqTask *tasks = tq_tasks_by_id(ids, n, &n);

	begin_held(held, n);
	for (int i = 0; i < n; i++)
	{
		TqRun *run = &held->runs[held->n];

		if (tq_run_lock(tasks[i].id, TQ_LOCK_SKIP, run) &&
			tq_state_verdict(run->state, TQ_EVENT_DEADLINE) ==
				TQ_VERDICT_APPLY)
			held->tasks[held->n++] = tasks[i];
	}
}

/* Let those go that end for good while another session holds a dependent. */
static void
drop_blocked(Held *held)
{
	int64 *ids = palloc(sizeof(int64) * Max(held->n, 1));
	int n = held->n;
	int kept = 0;

	for (int i = 0; i < n; i++)
		ids[i] = held->tasks[i].id;
	held->n = tq_depend_try_lock(ids, n);
	for (int i = 0; i < n && kept < held->n; i++)
	{
		if (held->tasks[i].id != ids[kept])
			continue;
		held->runs[kept] = held->runs[i];
		held->tasks[kept++] = held->tasks[i];
	}
}

static int
compare_task(const void *a, const void *b)
{
	int64 x = ((const TqTask *) a)->id;
	int64 y = ((const TqTask *) b)->id;

	return x < y ? -1 : x > y;
}

/* Take the ids that are held out of the list; returns how many are left. */
static int
remove_held(int64 *ids, int n, const Held *held)
{
	int left = 0;

	for (int i = 0; i < n; i++)
	{
		TqTask key = {.id = ids[i]};

		if (bsearch(&key,
					held->tasks,
					held->n,
					sizeof(TqTask),
					compare_task) == NULL)
			ids[left++] = ids[i];
	}
	return left;
}

/* Tasks that are past their deadline, and do not wait for an end any more. */
static void
set_expiry_of_passed(const int64 *ids, int n, const int64 *again, int nagain)
{
	TqTask *tasks = tq_tasks_by_id(ids, n, &n);
	TqTask **passed = palloc(sizeof(TqTask *) * Max(n, 1));
	int npassed = 0;
	int next = 0;

	for (int i = 0; i < n; i++)
	{
		while (next < nagain && again[next] < tasks[i].id)
			next++;
		if (next == nagain || again[next] != tasks[i].id)
			passed[npassed++] = &tasks[i];
	}
	set_expiry(passed, npassed, EXPIRY_SLACK_MS);
}

static int64
pass_deadlines(TimestampTz now, TqMark *mark, bool *more)
{
	int n;
	int nopen;
	int64 *ids =
		tq_timer_take(TQ_TIMER_DEADLINE, now, mark, BATCH_ROWS, &n, more);
	int64 *open;
	Held held;

	if (n == 0)
		return 0;
	open = tq_runs_peek_unresolved(ids, n, &nopen);
	hold_overdue(open, nopen, &held);
	drop_blocked(&held);
	nopen = remove_held(open, nopen, &held);
	tq_timer_insert(TQ_TIMER_DEADLINE,
					tq_clock_add_ms(now, AGAIN_MS),
					open,
					nopen);
	set_expiry_of_passed(ids, n, open, nopen);
	tq_resolve_final(held.runs,
					 held.tasks,
					 held.n,
					 TQ_RESOLVED_DEADLINE_EXCEEDED,
					 now);
	return held.n;
}

/* ---- expired claims (3.6) ---- */

/*
 * Lock the runs of these tasks whose claim has expired and whom nobody holds;
 * of those that no retry can follow, only if no dependent is held either.
 */
static void
hold_expired(const int64 *ids, int n, TimestampTz now, Held *held)
{
	int nruns;
	int found;
	TqRun *runs = tq_runs_lock_expired(ids, n, now, &nruns);
	int64 *locked = palloc(sizeof(int64) * Max(nruns, 1));
	TqTask *tasks;
	Held finals;
	int kept = 0;

	for (int i = 0; i < nruns; i++)
		locked[i] = runs[i].task;
	tasks = tq_tasks_by_id(locked, nruns, &found);
	begin_held(&finals, nruns);
	begin_held(held, nruns);
	for (int i = 0; i < nruns; i++)
	{
		if (runs[i].retries_left > 0)
			continue;
		finals.runs[finals.n] = runs[i];
		finals.tasks[finals.n++] = tasks[i];
	}
	drop_blocked(&finals);
	for (int i = 0; i < nruns; i++)
	{
		if (runs[i].retries_left <= 0 &&
			(kept == finals.n || finals.runs[kept].task != runs[i].task))
			continue;
		kept += runs[i].retries_left <= 0;
		held->runs[held->n] = runs[i];
		held->tasks[held->n++] = tasks[i];
	}
}

static int64
expire_claims(TimestampTz now, TqMark *mark, bool *more)
{
	int n;
	int nexpired;
	int64 *ids = tq_lease_take(now, mark, BATCH_ROWS, &n, more);
	int64 *expired;
	Held held;

	if (n == 0)
		return 0;
	hold_expired(ids, n, now, &held);
	expired = tq_runs_peek_expired(ids, n, now, &nexpired);
	nexpired = remove_held(expired, nexpired, &held);
	tq_lease_insert(tq_clock_add_ms(now, AGAIN_MS), expired, nexpired);
	tq_resolve_expired(held.runs, held.tasks, held.n, now);
	return held.n;
}

/* ---- expiry (8.4) ---- */

/* What has no timer of its own is swept once an hour and backend. */
static void
sweep(TimestampTz before)
{
	static TimestampTz last = 0;

	if (last != 0 && before < tq_clock_add_ms(last, TQ_HOUR_MS) &&
		before >= last)
		return;
	while (tq_groups_delete(before, tq_expire_batch) == tq_expire_batch)
		CHECK_FOR_INTERRUPTS();
	while (tq_artifacts_delete_expired(before, tq_expire_batch) ==
		   tq_expire_batch)
		CHECK_FOR_INTERRUPTS();
	tq_workers_forget(before);
	last = before;
}

/*
 * Look at a task again when its end, after what has been told and is no longer
 * kept, will be so too; should that be told of late, look more often.
 */
static void
look_again(int64 task, TimestampTz after_told, TimestampTz now)
{
	int64 ms = Min(after_told / 1000, INT64CONST(1000) * tq_message_retention);

	tq_timer_insert(TQ_TIMER_EXPIRE, tq_clock_add_ms(now, ms + 1), &task, 1);
}

/*
 * Delete expired tasks, as many as one batch may, but for those of whose end
 * somebody may still have to be told; those that another session
 * holds are looked at again soon.
 */
static int
delete_expired(int64 *ids, int n, TimestampTz now, bool *more)
{
	TimestampTz told = tq_retention_told_before(now);
	int batch = Min(n, tq_expire_batch);
	int nheld = 0;
	int nagain = 0;
	int64 *again = palloc(sizeof(int64) * Max(n, 1));

	for (int i = 0; i < batch; i++)
	{
		TqRun run;

		if (tq_run_lock(ids[i], TQ_LOCK_SKIP, &run))
		{
			if (run.resolved < told)
				ids[nheld++] = ids[i];
			else
				look_again(ids[i], run.resolved - told, now);
		}
		else
			again[nagain++] = ids[i];
	}
	tq_timer_insert(TQ_TIMER_EXPIRE,
					tq_clock_add_ms(now, AGAIN_MS),
					again,
					nagain);
	tq_timer_insert(TQ_TIMER_EXPIRE, now, ids + batch, n - batch);
	*more = *more || n > batch;
	if (nheld == 0)
		return 0;
	tq_artifacts_delete_of_tasks(ids, nheld);
	return tq_tasks_delete(ids, nheld);
}

/*
 * Tasks are deleted half an hour after they have expired, but not while the
 * log may have messages about them: those are told from the task.
 */
static TimestampTz
expired_before(TimestampTz now)
{
	TimestampTz before = tq_clock_add_ms(now, -EXPIRY_SLACK_MS);
	TimestampTz oldest = tq_tick_oldest();

	if (oldest == 0)
		return before;
	oldest = Max(oldest, tq_retention_kept_since(now));
	return Min(before, tq_clock_add_ms(oldest, -MESSAGE_SLACK_MS));
}

static int64
expire_tasks(TimestampTz now, TqMark *mark, bool *more)
{
	TimestampTz before = expired_before(now);
	int rows = Max(1, tq_expire_batch / TQ_TIMER_TASKS);
	int n;
	int nkept = 0;
	int nexpired = 0;
	int64 *ids = tq_timer_take(TQ_TIMER_EXPIRE, now, mark, rows, &n, more);
	TqTask *tasks = tq_tasks_by_id(ids, n, &n);
	TqTask **kept = palloc(sizeof(TqTask *) * Max(n, 1));
	int deleted;

	for (int i = 0; i < n; i++)
	{
		if (tasks[i].expires < before)
			ids[nexpired++] = tasks[i].id;
		else
			kept[nkept++] = &tasks[i];
	}
	set_expiry(kept, nkept, (now - before) / 1000);
	deleted = delete_expired(ids, nexpired, now, more);
	sweep(tq_clock_add_ms(now, -EXPIRY_SLACK_MS));
	return deleted;
}

/* ---- a pass ---- */

int64
tq_upkeep_step(TqStep step, TqMark *mark, bool *more)
{
	TimestampTz now = tq_clock_now();
	int64 tasks = 0;

	*more = false;
	tq_plan_open(false);
	switch (step)
	{
		case TQ_STEP_PUBLISH:
			tasks = tq_deliver_pass(more);
			break;
		case TQ_STEP_DEADLINE:
			tasks = pass_deadlines(now, mark, more);
			break;
		case TQ_STEP_CLAIM_EXPIRED:
			tasks = expire_claims(now, mark, more);
			break;
		case TQ_STEP_DELAYED:
			tasks = tq_delayed_release(now, BATCH_ROWS * TQ_TIMER_TASKS);
			*more = tasks == BATCH_ROWS * TQ_TIMER_TASKS;
			break;
		case TQ_STEP_RETAIN:
			tasks = tq_retention_pass(now);
			break;
		case TQ_STEP_EXPIRE:
			tasks = expire_tasks(now, mark, more);
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
