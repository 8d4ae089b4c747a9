/*
 * policy.c
 *	  What follows a run that has ended: budgets, delays, effects.
 *
 * Pure C.  Decides by a task's policy whether another run follows a resolved
 * one, which attempt it is and when it may begin; how long a delay is; and how
 * the final failure of a task affects other tasks.  The layers above know
 * whether the run is the task's last, and keep the policy and the budgets.  The
 * functions are pure: the same run and the same time always give the same
 * answer.  Follows doc/spec/policy.md 2 to 4.  Arithmetic saturates and never
 * wraps around, and no result is earlier than the time it is computed from.
 */
#include <stddef.h>
#include <string.h>

#include "policy.h"
#include "state.h"

#define MS_PER_S INT64_C(1000)
#define US_PER_MS UINT64_C(1000)
#define US_PER_S INT64_C(1000000)

/* The longest delay before jitter: Conductor counts seconds in an int32. */
#define LONGEST_DELAY (INT64_C(2147483647) * MS_PER_S)

const TqPolicy tq_policy_plain = {
	.retry_on = 1u << TQ_RESOLVED_CLAIM_EXPIRED |
				1u << TQ_RESOLVED_WORKER_SHUTDOWN |
				1u << TQ_RESOLVED_INTERMITTENT_TASK,
	.lost_retries = TQ_OFF,
	.backoff = TQ_BACKOFF_FIXED,
	.retry_delay = 0,
	.factor = 1,
	.max_delay = 0,
	.jitter = 0,
	.claim_timeout = TQ_OFF,
	.run_timeout = TQ_OFF,
	.pending_timeout = TQ_OFF,
	.total_timeout = TQ_OFF,
	.alert_only = false,
	.on_unsuccessful = TQ_UNSUCCESSFUL_BLOCK,
	.dead_letter = false,
	.retain_completed = TQ_OFF,
	.retain_failed = TQ_OFF,
	.drop_payload = false,
	.keys = 0,
	.unique_in_database = false,
	.unique_states = 1u << TQ_STATE_UNSCHEDULED | 1u << TQ_STATE_PENDING |
					 1u << TQ_STATE_RUNNING,
	.unique_period = TQ_OFF,
	.on_conflict = TQ_CONFLICT_RETURN,
	.serial_holds = false,
};

/* ---- times ---- */

/*
 * Returns a time in microseconds plus milliseconds; negative ones count as 0.
 */
int64_t
tq_policy_after(int64_t time, int64_t ms)
{
	uint64_t room = (uint64_t) INT64_MAX - (uint64_t) time;

	if (ms <= 0)
		return time;
	if ((uint64_t) ms > room / US_PER_MS)
		return INT64_MAX;
	return (int64_t) ((uint64_t) time + (uint64_t) ms * US_PER_MS);
}

/*
 * Returns when the first run of a task is visible that is scheduled at that
 * time.  A delay of 0 or more counts from then; one below 0 counts, without its
 * sign, from the creation: it is a time that was given, and may be over.
 */
int64_t
tq_policy_visible(int64_t created, int64_t delay, int64_t scheduled)
{
	int64_t run_at;

	if (delay >= 0)
		return tq_policy_after(scheduled, delay);
	run_at = tq_policy_after(created, delay == INT64_MIN ? INT64_MAX : -delay);
	return run_at > scheduled ? run_at : scheduled;
}

/*
 * Returns the delay of a task that is to be visible at a time, never before it;
 * 0 if that is not after its creation.
 */
int64_t
tq_policy_delay_until(int64_t created, int64_t run_at)
{
	uint64_t us = (uint64_t) run_at - (uint64_t) created;

	if (run_at <= created)
		return 0;
	return -(int64_t) ((us - 1) / US_PER_MS + 1);
}

/*
 * Returns when a claim is to be checked next (timer_table.c): for the first time
 * after TQ_FIRST_CHECK_MS, then each time the run has become twice as old, and
 * at the end of the claim.  Before that it is on a second, so that many are
 * checked together.
 */
int64_t
tq_policy_check_claim(int64_t started, int64_t taken_until, int64_t now)
{
	int64_t age = now > started ? (now - started) / (int64_t) US_PER_MS : 0;
	int64_t next = tq_policy_after(now, age > TQ_FIRST_CHECK_MS
											? age
											: TQ_FIRST_CHECK_MS);

	if (next > 0 && next <= INT64_MAX - US_PER_S) /* round it up */
		next = (next + US_PER_S - 1) / US_PER_S * US_PER_S;
	return taken_until < next ? taken_until : next;
}

/*
 * Returns until when a run that is visible at visible_at may be pending; 0
 * means without limit.
 */
static int64_t
pending_until(const TqPolicy *policy, int64_t visible_at)
{
	if (policy->pending_timeout < 0)
		return 0;
	return tq_policy_after(visible_at, policy->pending_timeout);
}

/*
 * Returns when pendingTimeout of a pending run is over, or the end of time.  It
 * never is for a run that was deferred, that is, has been started
 * (doc/spec/policy.md 10.3).  `limit` is the pending_until that the run was
 * given; 0: none.
 */
int64_t
tq_policy_pending_until(const TqPolicy *policy, int64_t scheduled,
						int64_t started, int64_t limit)
{
	if (policy->pending_timeout == TQ_OFF || started != 0)
		return INT64_MAX;
	return limit != 0 ? limit : pending_until(policy, scheduled);
}

/*
 * Returns whether a pending run has exceeded the pendingTimeout of its policy,
 * and the policy does not merely alert.  Such a run is not claimed;
 * maintenance resolves it.
 */
bool
tq_policy_is_overdue(const TqPolicy *policy, int64_t scheduled,
					 int64_t started, int64_t limit, int64_t now)
{
	return !policy->alert_only &&
		   tq_policy_pending_until(policy, scheduled, started, limit) <= now;
}

/* Returns a * b, but at most LONGEST_DELAY.  Neither argument is negative. */
static int64_t
times(int64_t a, int64_t b)
{
	if (b > 0 && a > LONGEST_DELAY / b)
		return LONGEST_DELAY;
	return a * b;
}

static int64_t
not_negative(int64_t number)
{
	return number > 0 ? number : 0;
}

/* Returns the delay after an attempt by its backoff, before cap and jitter. */
static int64_t
grown_delay(const TqPolicy *policy, int attempt)
{
	int64_t delay = times(not_negative(policy->retry_delay), 1);

	attempt = (int) not_negative(attempt);
	switch (policy->backoff)
	{
		case TQ_BACKOFF_FIXED:
			return delay;
		case TQ_BACKOFF_LINEAR:
			return times(times(delay, not_negative(policy->factor)),
						 (int64_t) attempt + 1);
		case TQ_BACKOFF_EXPONENTIAL:
			/* 2^n, limited to a factor that makes every delay the longest. */
			return times(delay, attempt < 62 ? INT64_C(1) << attempt
											 : INT64_C(1) << 62);
	}
	return delay;
}

/* Returns 0 to jitter, each millisecond equally likely; random is in [0,1). */
static int64_t
jittered(int64_t jitter, double random)
{
	double ms;

	if (jitter <= 0 || !(random > 0))
		return 0;
	ms = random * ((double) jitter + 1);
	return ms < (double) jitter ? (int64_t) ms : jitter;
}

/*
 * Returns the milliseconds between the end of an attempt and the beginning of
 * the next one (doc/spec/policy.md 4).  The cap is applied before jitter, so
 * the result may exceed it.
 */
int64_t
tq_policy_delay(const TqPolicy *policy, int attempt, double random)
{
	int64_t delay = grown_delay(policy, attempt);
	int64_t jitter = jittered(policy->jitter, random);

	if (policy->max_delay > 0 && delay > policy->max_delay)
		delay = policy->max_delay;
	return jitter > INT64_MAX - delay ? INT64_MAX : delay + jitter;
}

/* ---- budgets ---- */

/*
 * Sets the budgets of a first run, or of a rerun, which starts with full
 * budgets.  The caller sets the run's number and limits the retries.
 */
void
tq_policy_first(const TqPolicy *policy, int retries, int64_t visible_at,
				TqBudget *budget)
{
	budget->attempt = 0;
	budget->retries_left = retries;
	budget->lost_retries_left = policy->lost_retries;
	budget->visible_at = visible_at;
	budget->pending_until = pending_until(policy, visible_at);
}

/*
 * Returns which budget pays for another run after a reason that the policy
 * retries, or TQ_FOLLOW_NONE if that budget is used up.
 */
static TqFollow
paid_by(const TqPolicy *policy, const TqBudget *run, TqResolved reason)
{
	if (reason == TQ_RESOLVED_CLAIM_EXPIRED && policy->lost_retries != TQ_OFF)
		return run->lost_retries_left > 0 ? TQ_FOLLOW_LOST : TQ_FOLLOW_NONE;
	return run->retries_left > 0 ? TQ_FOLLOW_RETRY : TQ_FOLLOW_NONE;
}

/*
 * Decides what follows a task's last run, which has just been resolved
 * (doc/spec/policy.md 4).  Nothing follows at or past the deadline
 * (doc/spec/policy.md 10.14), nor when the task has as many runs as a task may
 * have; next->budget is then that of the run itself.
 */
void
tq_policy_follow(const TqPolicy *policy, const TqBudget *run,
				 TqResolved reason, int64_t now, int64_t deadline,
				 int max_runs, double random, TqNext *next)
{
	int64_t delay;

	next->follow = TQ_FOLLOW_NONE;
	next->created = TQ_CREATED_NONE;
	next->budget = *run;
	if (!(tq_policy_may_retry(reason) &&
		  (policy->retry_on & 1u << reason) != 0) ||
		now >= deadline || (int64_t) run->run_id + 1 >= max_runs)
		return;
	next->follow = paid_by(policy, run, reason);
	switch (next->follow)
	{
		case TQ_FOLLOW_NONE:
			return;
		case TQ_FOLLOW_LOST:
			/*
			 * Set the budget of a run that repeats the same attempt at once.
			 * It inherits pending_until (doc/spec/policy.md 10.3).
			 */
			next->budget.run_id++;
			next->budget.lost_retries_left--;
			next->budget.visible_at = now;
			break;
		case TQ_FOLLOW_RETRY:
			delay = tq_policy_delay(policy, next->budget.attempt, random);
			next->budget.run_id++;
			if (next->budget.attempt < INT32_MAX)
				next->budget.attempt++;
			next->budget.retries_left--;
			next->budget.visible_at = tq_policy_after(now, delay);
			next->budget.pending_until =
				pending_until(policy, next->budget.visible_at);
			break;
	}
	next->created = tq_resolved_retry(reason);
}

/*
 * Returns whether a policy may name that reason in retryOn
 * (doc/spec/policy.md 3).
 */
bool
tq_policy_may_retry(TqResolved reason)
{
	return tq_resolved_retry(reason) != TQ_CREATED_NONE;
}

/* ---- effects ---- */

/*
 * Returns whether onUnsuccessful applies to a final run that was resolved for
 * this reason (doc/spec/policy.md 10.6).  A task that a client canceled did
 * not fail.
 */
bool
tq_policy_applies(TqResolved reason)
{
	return reason != TQ_RESOLVED_NONE && reason != TQ_RESOLVED_CANCELED &&
		   tq_resolved_state(reason) != TQ_STATE_COMPLETED;
}

/* Returns whether dependents treat the task as completed. */
bool
tq_policy_tolerates(const TqPolicy *policy, TqResolved reason)
{
	return tq_policy_applies(reason) &&
		   (policy->on_unsuccessful == TQ_UNSUCCESSFUL_TOLERATE ||
			policy->on_unsuccessful == TQ_UNSUCCESSFUL_FORGIVE);
}

/* ---- retention ---- */

/*
 * Returns how long a task with this policy is kept after its resolution
 * (doc/spec/taskcluster.md 8.4); `otherwise` is what the settings say.  A task
 * that holds its unique key for a period is not deleted before.
 */
TqRetention
tq_policy_retention(const TqPolicy *policy, TqRetention otherwise)
{
	if (policy->retain_completed != TQ_OFF)
		otherwise.completed = policy->retain_completed;
	if (policy->retain_failed != TQ_OFF)
		otherwise.failed = policy->retain_failed;
	if (tq_policy_has_key(policy, TQ_KEY_UNIQUE) &&
		policy->unique_period != TQ_OFF)
	{
		if (otherwise.completed < policy->unique_period)
			otherwise.completed = policy->unique_period;
		if (otherwise.failed < policy->unique_period)
			otherwise.failed = policy->unique_period;
	}
	return otherwise;
}

/*
 * Returns whether a task that was created then and is in this state holds its
 * unique key, by the policy of another task with that key (doc/spec/policy.md
 * 11.1).
 */
bool
tq_policy_is_held(const TqPolicy *policy, TqState state, int64_t created,
				  int64_t now)
{
	if (policy->unique_period != TQ_OFF &&
		now < tq_policy_after(created, policy->unique_period))
		return true;
	return (policy->unique_states & 1u << state) != 0;
}

/* ---- what a policy may be ---- */

static bool
is_above(int64_t timeout, int64_t other)
{
	return other != TQ_OFF && timeout > other;
}

/*
 * Checks the fields of a policy against each other; each of them is valid by
 * itself.  Returns the rule that the policy breaks, as a text that follows
 * "policy" in an error, or NULL.
 */
const char *
tq_policy_fault(const TqPolicy *policy, int retries, int max_runs)
{
	if ((int64_t) retries + not_negative(policy->lost_retries) >
		(int64_t) max_runs - 1)
		return "must not have retries and lostRetries that are together more "
			   "than tq.max_runs less one";
	if (is_above(policy->claim_timeout, policy->run_timeout))
		return "must not have a claimTimeout above its runTimeout";
	if (is_above(policy->run_timeout, policy->total_timeout))
		return "must not have a runTimeout above its totalTimeout";
	return NULL;
}

/* ---- keys ---- */

/* Returns whether tasks with this policy have a key of that kind. */
bool
tq_policy_has_key(const TqPolicy *policy, TqTaskKey key)
{
	return (policy->keys & 1u << key) != 0;
}

/* Returns the name of a key in a policy. */
const char *
tq_key_name(TqTaskKey key)
{
	switch (key)
	{
		case TQ_KEY_UNIQUE:
			return "uniqueKey";
		case TQ_KEY_SERIAL:
			return "serialKey";
		case TQ_KEY_CONCURRENCY:
			return "concurrencyKey";
		case TQ_KEY_FAIRNESS:
			return "fairnessKey";
	}
	return NULL;
}

/* ---- names ---- */

/* Returns the name of what onConflict does. */
static const char *
on_conflict_name(TqOnConflict action)
{
	switch (action)
	{
		case TQ_CONFLICT_RETURN:
			return "return";
		case TQ_CONFLICT_REPLACE:
			return "replace";
		case TQ_CONFLICT_REJECT:
			return "reject";
	}
	return NULL;
}

/* Sets what onConflict does by its name; returns false if there is none. */
bool
tq_on_conflict_parse(const char *name, TqOnConflict *action)
{
	for (int i = TQ_CONFLICT_RETURN; i <= TQ_CONFLICT_REJECT; i++)
	{
		if (strcmp(name, on_conflict_name((TqOnConflict) i)) == 0)
		{
			*action = (TqOnConflict) i;
			return true;
		}
	}
	return false;
}

/* Returns the name of a kind of backoff. */
const char *
tq_backoff_name(TqBackoff backoff)
{
	switch (backoff)
	{
		case TQ_BACKOFF_FIXED:
			return "fixed";
		case TQ_BACKOFF_LINEAR:
			return "linear";
		case TQ_BACKOFF_EXPONENTIAL:
			return "exponential";
	}
	return NULL;
}

/* Sets the kind of backoff of that name; returns false if there is none. */
bool
tq_backoff_parse(const char *name, TqBackoff *backoff)
{
	for (int i = TQ_BACKOFF_FIXED; i <= TQ_BACKOFF_EXPONENTIAL; i++)
	{
		if (strcmp(name, tq_backoff_name((TqBackoff) i)) == 0)
		{
			*backoff = (TqBackoff) i;
			return true;
		}
	}
	return false;
}

/* Returns the name of an effect of onUnsuccessful. */
const char *
tq_unsuccessful_name(TqUnsuccessful effect)
{
	switch (effect)
	{
		case TQ_UNSUCCESSFUL_BLOCK:
			return "block";
		case TQ_UNSUCCESSFUL_CANCEL_GROUP:
			return "cancel-group";
		case TQ_UNSUCCESSFUL_TOLERATE:
			return "tolerate";
		case TQ_UNSUCCESSFUL_FORGIVE:
			return "forgive";
		case TQ_UNSUCCESSFUL_CANCEL_DEPENDENTS:
			return "cancel-dependents";
	}
	return NULL;
}

/* Sets the effect of that name; returns false if there is none. */
bool
tq_unsuccessful_parse(const char *name, TqUnsuccessful *effect)
{
	for (int i = TQ_UNSUCCESSFUL_BLOCK; i <= TQ_UNSUCCESSFUL_LAST; i++)
	{
		if (strcmp(name, tq_unsuccessful_name((TqUnsuccessful) i)) == 0)
		{
			*effect = (TqUnsuccessful) i;
			return true;
		}
	}
	return false;
}
