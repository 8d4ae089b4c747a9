/*
 * claim.c
 *	  Giving pending runs to workers, and prolonging their claims
 *	  (spec/taskcluster.md 2.8 to 2.10, section 5).
 *
 * Room 4.  Decides who gets a run and until when.  claim_work() passes over
 * every run that another session holds; it waits only where a queue or a
 * worker is named for the first time ever by a transaction that has not ended.
 * claim_task() and reclaim_task() wait for the row that they name.
 */
#include "rules.h"

#define DAY_MS INT64CONST(24 * 60 * 60 * 1000)
#define SEEN_MS (30 * 60 * 1000)
#define REMEMBER_MS 1000

/*
 * The worker's number, noting that it was seen; false when it is in
 * quarantine.  What is noted may lag by half an hour (5.6).
 */
static bool
see_worker(int32 queue, const char *group, const char *id, TimestampTz now,
		   TqWorker *worker)
{
	tq_worker_intern(queue, group, id, worker);
	if (worker->first_claim == 0 ||
		worker->last_date_active < tq_clock_add_ms(now, -SEEN_MS))
	{
		tq_worker_seen(worker->id, now, tq_clock_add_ms(now, DAY_MS), true);
		tq_queue_seen(queue, now, tq_clock_add_ms(now, DAY_MS));
	}
	return worker->quarantine_until <= now;
}

/*
 * Keep the last claims of a worker: every one while they are few, then at most
 * once a second.  A worker that claims faster would leave an old version of
 * its row at each claim, and all of them in its own way while a long
 * transaction keeps vacuum from them.
 */
static bool
is_worth_remembering(const TqWorker *worker, TimestampTz now)
{
	return worker->recent < TQ_RECENT_MAX ||
		   worker->remembered < tq_clock_add_ms(now, -REMEMBER_MS);
}

static void
remember(const TqWorker *worker, const TqClaimed *claimed, int n,
		 TimestampTz now)
{
	int64 *tasks = palloc(sizeof(int64) * Max(n, 1));
	int32 *run_ids = palloc(sizeof(int32) * Max(n, 1));

	if (n == 0 || !is_worth_remembering(worker, now))
		return;
	for (int i = 0; i < n; i++)
	{
		tasks[i] = claimed[i].task;
		run_ids[i] = claimed[i].run_id;
	}
	tq_worker_remember(worker->id, tasks, run_ids, n, now);
}

/* Say that these runs have been started. */
static void
announce(const TqClaimed *claimed, int n, TimestampTz taken_until)
{
	TqMessage *messages;

	if (n == 0 || !tq_publish_is_wanted(TQ_EXCHANGE_TASK_RUNNING))
		return;
	messages = palloc0(sizeof(TqMessage) * n);
	for (int i = 0; i < n; i++)
		messages[i] = (TqMessage){.exchange = TQ_EXCHANGE_TASK_RUNNING,
								  .task = claimed[i].task,
								  .run_id = claimed[i].run_id,
								  .last_run = claimed[i].run_id,
								  .state = TQ_STATE_RUNNING,
								  .priority = claimed[i].priority,
								  .taken_until = taken_until};
	tq_publish(messages, n);
}

/* 2.8: up to max runs of a queue, best first. */
TqClaim *
tq_claim_best(const char *queue_name, const char *worker_group,
			  const char *worker_id, int max, TimestampTz now, int *found)
{
	int32 queue = tq_queue_intern(queue_name);
	TimestampTz taken_until = tq_clock_add_ms(now, tq_claim_timeout);
	TqWorker worker;
	TqClaimed *claimed;
	TqClaim *claims;

	*found = 0;
	if (!see_worker(queue, worker_group, worker_id, now, &worker))
		return NULL;
	claimed = tq_pending_claim(queue, worker.id, max, now, taken_until, found);
	announce(claimed, *found, taken_until);
	remember(&worker, claimed, *found, now);
	claims = palloc(sizeof(TqClaim) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
		claims[i] = (TqClaim){.task_id = claimed[i].task_id,
							  .run_id = claimed[i].run_id,
							  .worker_group = worker_group,
							  .worker_id = worker_id,
							  .taken_until = taken_until,
							  .payload = claimed[i].payload};
	return claims;
}

/* Move the pending run to run, as claimed. */
static void
start_run(const TqTask *task, TqRun *run, const TqWorker *worker,
		  TimestampTz now)
{
	run->state = TQ_STATE_RUNNING;
	run->worker = worker->id;
	run->by_claim_task = true;
	run->started = now;
	run->taken_until = tq_clock_add_ms(now, tq_claim_timeout);
	tq_pending_delete(&task->id, 1);
	tq_runs_insert(run, 1);
	tq_lease_insert(run->taken_until, &task->id, 1);
	if (is_worth_remembering(worker, now))
		tq_worker_remember(worker->id, &task->id, &run->run_id, 1, now);
}

static void
refuse_claim(const TqTask *task, int run_id, const TqRun *run)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_CONFLICT),
		 errmsg("run %d of task \"%s\" cannot be claimed",
				run_id,
				tq_slug_text(&task->task_id)),
		 errdetail("The task is %s, and its last run is %d.",
				   tq_state_name(run->state),
				   run->run_id),
		 errhint(
			 "Only the last run can be claimed, while it is pending; tq.claim_work() finds one that can.")));
}

/* A worker may ask again for what claim_task() gave it (3.1, rule 35). */
static bool
is_own_claim(const TqRun *run, int32 worker)
{
	return run->state == TQ_STATE_RUNNING && run->by_claim_task &&
		   run->worker == worker;
}

/* 2.9: this run; false when the worker is in quarantine. */
bool
tq_claim_one(const TqSlug *task_id, int run_id, const char *worker_group,
			 const char *worker_id, TimestampTz now, TqClaim *claim)
{
	TqTask *task = tq_task_get(task_id, true);
	TqWorker worker;
	TqMessage message;
	TqRun run;

	if (task->deadline <= now)
		tq_refuse_past_deadline(task);
	tq_worker_intern(task->queue, worker_group, worker_id, &worker);
	tq_queue_seen(task->queue, now, tq_clock_add_ms(now, 5 * DAY_MS));
	if (worker.quarantine_until > now)
		return false;
	if (!tq_run_lock(task->id, TQ_LOCK_UPDATE, &run) || run_id > run.run_id)
		tq_refuse_missing_run(task, run_id);
	if (run.run_id == run_id && run.place == TQ_PLACE_PENDING &&
		tq_state_verdict(run.state, TQ_EVENT_CLAIM) == TQ_VERDICT_APPLY)
		start_run(task, &run, &worker, now);
	else if (run.run_id != run_id || !is_own_claim(&run, worker.id))
		refuse_claim(task, run_id, &run);
	message = tq_publish_make(TQ_EXCHANGE_TASK_RUNNING, task, run_id, &run);
	tq_publish(&message, 1);
	*claim = (TqClaim){.task_id = *task_id,
					   .run_id = run_id,
					   .worker_group = worker_group,
					   .worker_id = worker_id,
					   .taken_until = run.taken_until,
					   .payload = task->payload};
	return true;
}

static void
refuse_reclaim(const TqTask *task, int run_id, TqState state)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("run %d of task \"%s\" is not running",
					run_id,
					tq_slug_text(&task->task_id)),
			 errdetail("The run is %s.", tq_state_name(state)),
			 errhint("The claim is lost: stop working on this run.")));
}

/*
 * Lock the run that a worker says it works on; it is running on return.  A
 * run that does not exist is said first, then that the deadline has passed.
 */
static TqRun *
lock_running(const TqTask *task, int run_id, TimestampTz now)
{
	int found;
	TqRun *run = tq_runs_lock(&task->id, &run_id, 1, &found);

	while (found == 0)
	{
		run = palloc(sizeof(TqRun));
		if (!tq_run_peek(task->id, run) || run->run_id != run_id)
			tq_refuse_missing_run(task, run_id);
		if (run->place != TQ_PLACE_RUN)
			break;
		/* It has been claimed between the two looks. */
		run = tq_runs_lock(&task->id, &run_id, 1, &found);
	}
	if (task->deadline <= now)
		tq_refuse_past_deadline(task);
	if (tq_state_verdict(run->state, TQ_EVENT_RECLAIM) != TQ_VERDICT_APPLY)
		refuse_reclaim(task, run_id, run->state);
	return run;
}

/* 2.10: the claim lasts from now; it never ends earlier than it did before. */
void
tq_claim_prolong(const TqSlug *task_id, int run_id, TimestampTz now,
				 TqClaim *claim)
{
	TqTask *task = tq_task_get(task_id, false);
	TqRun *run;
	TqRun *history;
	int n;

	run = lock_running(task, run_id, now);
	run->taken_until = Max(run->taken_until,
						   tq_clock_add_ms(now, tq_claim_timeout));
	tq_run_extend(task->id, run_id, run->taken_until);
	tq_lease_insert(run->taken_until, &task->id, 1);
	tq_worker_seen(run->worker, now, tq_clock_add_ms(now, DAY_MS), false);
	tq_queue_seen(task->queue, now, tq_clock_add_ms(now, DAY_MS));
	history = tq_runs_history(&task->id, 1, &n);
	*claim = (TqClaim){.task_id = *task_id,
					   .run_id = run_id,
					   .worker_group = history[run_id].worker_group,
					   .worker_id = history[run_id].worker_id,
					   .taken_until = run->taken_until,
					   .payload = NULL};
}

/* A worker that claim_work() has seen and that has not been forgotten, or TQ404 (2.16). */
void
tq_worker_get(const char *queue_name, const char *group, const char *id,
			  TimestampTz now, TqWorker *worker)
{
	int32 queue = tq_queue_find(queue_name);

	if (queue == 0 || !tq_worker_find(queue, group, id, worker) ||
		worker->expires == 0 ||
		(worker->expires <= now && worker->quarantine_until <= now))
		ereport(ERROR,
				(errcode(ERRCODE_TQ_NOT_FOUND),
				 errmsg("worker \"%s/%s\" of task queue \"%s\" does not exist",
						group,
						id,
						queue_name),
				 errdetail(
					 "It has not called tq.claim_work(), or not for a day."),
				 errhint(
					 "A worker becomes known by its first tq.claim_work().")));
}
