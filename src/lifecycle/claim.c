/*
 * claim.c
 *	  Claims pending runs for workers, prolongs claims, defers runs
 *	  (doc/spec/taskcluster.md 2.8 to 2.10, section 5; doc/spec/policy.md 2, 5).
 *
 * Decides which worker gets a run and until when.  claim_work() skips every run
 * that another session has locked; it waits only for a transaction in progress
 * that is inserting the same new queue or worker.  claim_task(), reclaim_task()
 * and defer_task() wait for the row of the run that they name.
 *
 * A claim reads the clock again once it has locked the row, and starts at that
 * time.  So no run starts before its predecessor ended or before it was
 * scheduled, however long the call has waited.
 */
#include "postgres.h"

#include "../core/names.h"
#include "../core/state.h"
#include "lifecycle.h"

#define DAY_MS TQ_SEEN_DAY_MS

/* The worker of a call, and its names. */
typedef struct Claimer
{
	int32 queue;
	const char *group;
	const char *name;
	int64 claim_for; /* as in TqClaimAsk */
	TqWorkerSeat seat;
} Claimer;

/*
 * Notes that a worker was seen, unless that is 0, and what it has claimed
 * (doc/spec/taskcluster.md 5.6).
 */
static void
note_claims(const Claimer *claimer, TimestampTz seen, const TqClaimed *claimed,
			int n)
{
	TqRecentClaim recent[TQ_RECENT_MAX];
	int first = Max(n - TQ_RECENT_MAX, 0);

	for (int i = first; i < n; i++)
		recent[i - first] = (TqRecentClaim){claimed[i].task,
											claimed[i].run_id};
	tq_worker_note(claimer->queue, &claimer->seat, seen, recent, n - first);
}

/*
 * Stores that a worker and its queue were seen, and what the worker claimed
 * last.  The caller has found that this was not done within tq.seen_interval.
 */
static void
store_seen(Claimer *claimer, TimestampTz now, bool claims)
{
	(void) tq_worker_store(claimer->queue, claimer->group, claimer->name,
						   &claimer->seat, now, claims);
	tq_queue_seen(claimer->queue, now, tq_clock_add_ms(now, DAY_MS));
}

/*
 * Returns when a claim that starts now expires: by what the worker asked for,
 * else the policy of the task, else the settings of its queue, else
 * tq.claim_timeout.
 */
static TimestampTz
end_of_claim(int64 claim_for, const TqPolicy *policy, int32 queue,
			 TimestampTz now)
{
	int64 timeout = claim_for == TQ_OFF ? policy->claim_timeout : claim_for;

	if (timeout == TQ_OFF)
		timeout = tq_queue_settings(queue)->claim_timeout;
	return tq_clock_add_ms(now,
						   timeout == TQ_OFF ? tq_claim_timeout : timeout);
}

/*
 * Sets when these runs started and when their claims expire, and inserts the
 * timers of run timeouts, except of one that is never reached, or not before
 * the deadline.  A run that was deferred has started before and has that timer
 * already.
 */
static void
set_times(const Claimer *claimer, TqClaimed *claimed, int n, TimestampTz now)
{
	TqTimerEntry *ends = palloc(sizeof(TqTimerEntry) * n);
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		TqClaimed *run = &claimed[i];
		const TqPolicy *policy = tq_policy_get(run->policy);
		int64 timeout = policy->run_timeout;
		TimestampTz end = tq_clock_add_ms(now, timeout);

		run->taken_until = end_of_claim(claimer->claim_for, policy,
										claimer->queue, now);
		if (run->started != 0)
			continue;
		run->started = now;
		if (timeout != TQ_OFF && end < run->deadline)
			ends[count++] = (TqTimerEntry){end, run->task};
	}
	if (count > 0)
		tq_timers_insert(TQ_TIMER_RUN_TIMEOUT, ends, count);
}

/* Inserts the timers of claims that start now. */
static void
insert_claim_timers(const TqClaimed *claimed, int n, TimestampTz now)
{
	TqTimerEntry *timers = palloc(sizeof(TqTimerEntry) * n);

	for (int i = 0; i < n; i++)
		timers[i] =
			(TqTimerEntry){tq_policy_check_claim(now, claimed[i].taken_until,
												 now),
						   claimed[i].task};
	tq_timers_insert(TQ_TIMER_CLAIM, timers, n);
}

/*
 * Starts the runs that have been taken from pending for this worker: writes
 * their rows and claim timers, and appends their messages.  Leaves the timer of
 * a single claim to the publisher.
 */
static void
start_runs(const Claimer *claimer, TqClaimed *claimed, int n, TimestampTz now)
{
	TqOutboxBatch batch = {0};

	set_times(claimer, claimed, n, now);
	tq_runs_start(claimed, n, claimer->seat.id, claimer->queue);
	for (int i = 0; i < n; i++)
	{
		TqMessage message = {.exchange = TQ_EXCHANGE_TASK_RUNNING,
							 .task = claimed[i].task,
							 .run_id = claimed[i].run_id,
							 .last_run = claimed[i].run_id,
							 .state = TQ_STATE_RUNNING,
							 .priority = claimed[i].priority,
							 .taken_until = claimed[i].taken_until,
							 .worker = claimer->seat.id};

		tq_count_claim((TqCountOwner){claimer->queue, claimed[i].group_id},
					   claimed[i].claimable, now);
		tq_outbox_add_message(&batch, &message);
	}
	if (n > 1 || !tq_outbox_leave_timer(&batch, TQ_EXCHANGE_TASK_RUNNING,
										claimed[0].taken_until, now))
		insert_claim_timers(claimed, n, now);
	tq_outbox_append(&batch);
	if (tq_log_min_wait >= 0)
		tq_run_log_claimed(claimer->queue, claimer->group, claimer->name,
						   claimed, n, now);
}

/* Records a worker that asked for work and got none as active. */
void
tq_claim_note_seen(const char *queue_name, const char *worker_group,
				   const char *worker_id, TimestampTz now)
{
	Claimer claimer = {.queue = tq_queue_intern(queue_name),
					   .group = worker_group,
					   .name = worker_id};

	tq_worker_seat_intern(claimer.queue, worker_group, worker_id,
						  &claimer.seat);
	note_claims(&claimer, now, NULL, 0);
	if (now >= claimer.seat.store_after)
		store_seen(&claimer, now, true);
}

/*
 * Returns whether a pending run may be claimed: its task is not past its
 * deadline, and its pending timeout is not over.
 */
static bool
may_claim(const TqClaimed *run, TimestampTz now)
{
	return run->deadline > now &&
		   (run->policy == 0 ||
			!tq_policy_is_overdue(tq_policy_get(run->policy), run->scheduled,
								  run->started, run->pending_until, now));
}

/*
 * Returns whether a run of a queue could be claimed now; sets *again as
 * tq_claim_best() does.
 */
bool
tq_claim_is_possible(int32 queue, TimestampTz now, TimestampTz *again)
{
	return tq_limits_allow(queue, now, again) &&
		   tq_pending_is_claimable(queue, now, may_claim);
}

/*
 * Claims up to max runs of a queue, best first (doc/spec/taskcluster.md 2.8).
 * If there is none, it writes nothing except the names of a new queue and a
 * new worker; the caller then decides whether to record the worker as active.
 * It sets *again to when there may be some without a wake-up, or to 0.
 */
TqClaim *
tq_claim_best(const char *queue_name, const TqClaimAsk *ask, int max,
			  TimestampTz now, int *found, TimestampTz *again)
{
	Claimer claimer = {.queue = tq_queue_intern(queue_name),
					   .group = ask->worker_group,
					   .name = ask->worker_id,
					   .claim_for = ask->claim_for};
	TqAllowance allowance;
	TqClaimed *claimed;
	TqClaim *claims;

	*found = 0;
	*again = 0;
	tq_worker_seat_intern(claimer.queue, claimer.group, claimer.name,
						  &claimer.seat);
	if (claimer.seat.quarantine_until > now)
		return NULL;
	if (!tq_limits_take(claimer.queue, max, now, &allowance))
	{
		*again = allowance.again;
		return NULL;
	}
	claimed = tq_pending_claim(claimer.queue, allowance.n, now, may_claim,
							   found);
	now = tq_clock_now();
	if (allowance.slots > 0 || allowance.claims > 0)
		tq_limits_use(&allowance, *found, now);
	if (*found == 0)
		return NULL;
	start_runs(&claimer, claimed, *found, now);
	note_claims(&claimer, now, claimed, *found);
	if (now >= claimer.seat.store_after)
		store_seen(&claimer, now, true);
	claims = palloc(sizeof(TqClaim) * *found);
	for (int i = 0; i < *found; i++)
		claims[i] = (TqClaim){.task_id = claimed[i].task_id,
							  .run_id = claimed[i].run_id,
							  .worker_group = claimer.group,
							  .worker_id = claimer.name,
							  .started = claimed[i].started,
							  .taken_until = claimed[i].taken_until,
							  .payload = claimed[i].payload,
							  .scopes = claimed[i].scopes};
	if (tq_credentials_are_wanted(false, claimer.queue))
		tq_credentials_issue(claims, *found, now);
	return claims;
}

/* Moves a pending run to table run, as claimed by this worker. */
static void
start_run(const TqTask *task, TqRun *run, const Claimer *claimer,
		  TimestampTz now)
{
	TqClaimed claimed = {.task = task->id,
						 .task_id = task->task_id,
						 .run_id = run->run_id,
						 .claimable = run->scheduled,
						 .started = run->started,
						 .deadline = task->deadline,
						 .policy = task->policy};

	set_times(claimer, &claimed, 1, now);
	insert_claim_timers(&claimed, 1, now);
	run->state = TQ_STATE_RUNNING;
	run->worker = claimer->seat.id;
	run->by_claim_task = true;
	run->started = claimed.started;
	run->taken_until = claimed.taken_until;
	tq_pending_delete(&task->id, 1);
	tq_runs_insert(run, 1);
	tq_count_claim(tq_count_owner(task), run->scheduled, now);
	if (tq_log_min_wait >= 0)
		tq_run_log_claimed(claimer->queue, claimer->group, claimer->name,
						   &claimed, 1, now);
	if (claimer->seat.is_known)
		note_claims(claimer, 0, &claimed, 1);
}

/*
 * Raises the error that a run cannot be claimed in the present state of its
 * task.
 */
static void
refuse_claim(const TqTask *task, int run_id, const TqRun *run)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_CONFLICT),
		 errmsg("run %d of task \"%s\" cannot be claimed", run_id,
				tq_slug_text(&task->task_id)),
		 errdetail("The task is %s, and its last run is %d%s.",
				   tq_state_name(run->state), run->run_id,
				   run->location == TQ_LOCATION_DELAYED
					   ? ", which is not yet claimable"
					   : ""),
		 errhint(
			 "Only the last run can be claimed, while it is pending; tq.claim_work() finds one that can.")));
}

/*
 * Returns whether the run is claimable: it is pending, not delayed, and its
 * pending timeout is not over.
 */
static bool
claim_is_claimable(const TqTask *task, TqRun *run, TimestampTz now)
{
	TqRunDetail detail;
	TimestampTz limit;

	if (run->location != TQ_LOCATION_PENDING ||
		tq_state_verdict(run->state, TQ_EVENT_CLAIM) != TQ_VERDICT_APPLY)
		return false;
	limit = tq_detail_read(run, &detail) ? detail.budget.pending_until : 0;
	return !tq_policy_is_overdue(tq_policy_get(task->policy), run->scheduled,
								 run->started, limit, now);
}

/*
 * Returns whether this worker has the run by claim_task(), so that it may
 * repeat that call (doc/spec/taskcluster.md 3.1, rule 35).
 */
static bool
is_own_claim(const TqRun *run, int32 worker)
{
	return run->state == TQ_STATE_RUNNING && run->by_claim_task &&
		   run->worker == worker;
}

/* Returns whether a locked task is of another queue than when it was read. */
static bool
was_moved(const TqTask *task)
{
	int32 queue = task->queue;
	int16 priority;

	return tq_task_order(task->id, &queue, &priority) && queue != task->queue;
}

/*
 * Claims the named run (doc/spec/taskcluster.md 2.9).  Returns false if the
 * worker is in quarantine, or if the queue hands out nothing.
 */
bool
tq_claim_one(const TqSlug *task_id, int run_id, const TqClaimAsk *ask,
			 TimestampTz now, TqClaim *claim)
{
	const TqTaskDefinition *definition = tq_definition_get(task_id);
	const TqTask *task = &definition->named.task;
	TqOutboxBatch batch = {0};
	TqAllowance allowance;
	Claimer claimer = {.queue = task->queue,
					   .group = ask->worker_group,
					   .name = ask->worker_id,
					   .claim_for = ask->claim_for};
	TqRun run;

	tq_require_claim("claim-task", definition->named.queue_name, task_id,
					 claimer.group, claimer.name);
	if (task->deadline <= now)
		tq_error_past_deadline(task);
	tq_worker_seat_intern(task->queue, claimer.group, claimer.name,
						  &claimer.seat);
	tq_queue_seen(task->queue, now, tq_clock_add_ms(now, 5 * DAY_MS));
	if (claimer.seat.quarantine_until > now)
		return false;
	if (!tq_run_lock(task->id, TQ_LOCK_UPDATE, &run) || run_id > run.run_id)
		tq_error_missing_run(task, run_id);
	if (was_moved(task))
		return tq_claim_one(task_id, run_id, ask, tq_clock_now(), claim);
	if (tq_policy_has_key(tq_policy_get(task->policy), TQ_KEY_UNIQUE))
	{
		/* its payload may have been replaced before it was locked */
		definition = tq_definition_get(task_id);
		task = &definition->named.task;
	}
	now = tq_clock_now();
	if (task->deadline <= now)
		tq_error_past_deadline(task);
	if (run.run_id == run_id && claim_is_claimable(task, &run, now))
	{
		if (!tq_limits_take(task->queue, 1, now, &allowance))
			return false;
		start_run(task, &run, &claimer, now);
		tq_limits_use(&allowance, 1, now);
	}
	else if (run.run_id != run_id || !is_own_claim(&run, claimer.seat.id))
		refuse_claim(task, run_id, &run);
	tq_outbox_add_run(&batch, task, &run, &run);
	tq_outbox_append(&batch);
	*claim = (TqClaim){.task_id = *task_id,
					   .run_id = run_id,
					   .worker_group = claimer.group,
					   .worker_id = claimer.name,
					   .started = run.started,
					   .taken_until = run.taken_until,
					   .payload = definition->payload,
					   .scopes = definition->scopes};
	if (tq_credentials_are_wanted(false, task->queue))
		tq_credentials_issue(claim, 1, now);
	return true;
}

/*
 * Reads the row of a running run for its worker.  Returns false if the row has
 * to be read again.  Errors come in this order: the caller lacks the scope, the
 * run does not exist, the deadline has passed, the run is not running.
 *
 * If holder is not 0, the caller has given the credentials of that worker, and
 * needs no scope.  The run may have been deferred after they were verified, and
 * claimed by another worker.
 */
bool
tq_claim_read(TqRunWriter *writer, const TqTask *task, int run_id,
			  int32 holder, TqEvent event, TimestampTz now, TqRun *run)
{
	bool has_row;

	if (holder == 0)
		tq_require_run(event == TQ_EVENT_RECLAIM ? "reclaim-task"
												 : "resolve-task",
					   &task->task_id, run_id, task->queue);
	has_row = tq_run_writer_read(writer, &task->task_id, task->id, run_id,
								 run);
	if (!has_row && (!tq_run_peek(task->id, run) || run->run_id != run_id))
		tq_error_missing_run(task, run_id);
	if (task->deadline <= now)
		tq_error_past_deadline(task);
	if (tq_state_verdict(run->state, event) != TQ_VERDICT_APPLY)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("run %d of task \"%s\" is not running", run_id,
					tq_slug_text(&task->task_id)),
			 errdetail("The run is %s.", tq_state_name(run->state)),
			 run->state == TQ_STATE_PENDING
				 ? errhint(
					   "Claim it first, with tq.claim_work() or tq.claim_task().")
				 : errhint("The claim is lost: stop working on this run.")));
	if (has_row && holder != 0 && run->worker != holder)
		tq_error_credentials();
	if (!has_row) /* claimed between the two reads */
		tq_run_writer_renew(writer);
	return has_row;
}

/*
 * Prolongs the claim in the row of a run.  Reads the row again until it could
 * be written as it was read.  Returns whether the claim had expired before.
 */
static bool
extend(const TqTask *task, int run_id, int32 holder, int64 claim_for,
	   TimestampTz now, TqRun *run)
{
	TqRunWriter *writer = tq_run_writer_begin();
	TimestampTz taken_until =
		end_of_claim(claim_for, tq_policy_get(task->policy), task->queue, now);
	bool has_expired = false;
	bool is_written = false;

	while (!is_written)
	{
		if (!tq_claim_read(writer, task, run_id, holder, TQ_EVENT_RECLAIM, now,
						   run))
			continue;
		has_expired = run->taken_until <= now;
		run->taken_until = Max(run->taken_until, taken_until);
		is_written = tq_run_writer_write(writer, run);
	}
	tq_run_writer_end(writer);
	return has_expired;
}

/*
 * Makes a running run pending again, claimable after the given delay
 * (doc/spec/policy.md 5).  If holder is not 0, that worker must have the run.
 * The run keeps its number, its retry budgets and the time at which it first
 * started; deferring uses none of them up.
 */
void
tq_claim_defer(TqTask *task, int run_id, int32 holder, int64 after_ms,
			   TimestampTz now)
{
	TqRun run;
	TqRunDetail detail;
	TqRunWriter *writer = tq_run_writer_begin();
	bool is_taken = false;

	/*
	 * Delete the row of a running run, after waiting for a concurrent
	 * transition of it.
	 */
	while (!is_taken)
		is_taken = tq_claim_read(writer, task, run_id, holder, TQ_EVENT_DEFER,
								 now, &run) &&
				   tq_run_writer_delete(writer);
	tq_run_writer_end(writer);
	task->queue = tq_worker_queue(run.worker);
	tq_count_deferred(task);
	tq_run_detail(&run, task->policy, &detail);
	detail.budget.visible_at = tq_policy_after(now, after_ms);
	tq_transition_defer(task, &run, &detail, now);
}

/*
 * Prolongs a claim from now on; it never ends earlier than it did before
 * (doc/spec/taskcluster.md 2.10).  If holder is not 0, that worker must have
 * the run.  The claim keeps its timer.
 */
void
tq_claim_prolong(const TqSlug *task_id, int run_id, int32 holder,
				 int64 claim_for, TimestampTz now, TqClaim *claim)
{
	TqTask task;
	TqRun run;
	Claimer claimer;
	char *group;
	char *name;

	if (!tq_task_find(task_id, &task))
		tq_error_missing_task(task_id);
	if (extend(&task, run_id, holder, claim_for, now, &run))
	{
		TimestampTz due = tq_policy_check_claim(now, run.taken_until, now);

		/*
		 * Insert the timer of a claim that had expired when it was prolonged: its
		 * own may have been taken, and the task postponed (bisect.c).
		 */
		tq_timer_insert(TQ_TIMER_CLAIM, due, &run.task, 1);
	}
	tq_worker_name(run.worker, &group, &name);
	claimer = (Claimer){.queue = tq_worker_queue(run.worker),
						.group = group,
						.name = name};
	tq_worker_seat_intern(claimer.queue, group, name, &claimer.seat);
	note_claims(&claimer, now, NULL, 0);
	if (now >= claimer.seat.store_after)
		store_seen(&claimer, now, false);
	*claim = (TqClaim){.task_id = *task_id,
					   .run_id = run_id,
					   .worker_group = group,
					   .worker_id = name,
					   .started = run.started,
					   .taken_until = run.taken_until,
					   .payload = NULL};
	if (!tq_credentials_are_wanted(holder != 0, task.queue))
		return;
	claim->scopes = tq_task_scopes(task.id);
	tq_credentials_issue(claim, 1, now);
}
