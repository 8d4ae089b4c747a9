/*
 * policy.c
 *	  What follows a run that has ended: budgets, delays, effects.
 *
 * Room 0, pure C.  Decides by a task's policy whether another run follows one
 * that was resolved, as which attempt, and when it may begin; how long a delay
 * is; and what the final failure of a task means for others.  That the run is
 * the last one, and where the policy and the budgets are kept, is asked by the
 * rooms above; the same run and the same time always give the same answer.
 * Follows spec/policy.md 2 to 4.  Nothing wraps around: what would be too long
 * is as long as can be, and no time lies before its cause.
 */
#include <string.h>

#include "tq.h"

#define MS_PER_S INT64_C(1000)
#define US_PER_MS UINT64_C(1000)

/* The longest delay before jitter: what fits into the seconds of Conductor. */
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
};

/* ---- times ---- */

/* A time and milliseconds, in microseconds; never before it. */
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

/* Until when a run may wait that is visible then; 0: as long as it likes. */
static int64_t
pending_until(const TqPolicy *policy, int64_t visible_at)
{
	if (policy->pending_timeout < 0)
		return 0;
	return tq_policy_after(visible_at, policy->pending_timeout);
}

/* a * b, but at most LONGEST_DELAY; neither is negative. */
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

/* 2^n, or as much as makes any delay the longest. */
static int64_t
power_of_two(int n)
{
	return n < 62 ? INT64_C(1) << n : INT64_C(1) << 62;
}

/* The delay after an attempt as it grows, without cap and jitter. */
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
			return times(delay, power_of_two(attempt));
	}
	return delay;
}

/* 0 to jitter, each millisecond as likely as any other; random is in [0,1). */
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
 * Milliseconds between the end of an attempt and the beginning of the next
 * (section 4): the cap comes before jitter, which may exceed it.
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
 * The budgets of a first run, or of a rerun, which has them anew.  Its number
 * is the caller's, and so is how many retries there is room for.
 */
void
tq_policy_first(const TqPolicy *policy, int retries, int64_t visible_at,
				TqBudget *budget)
{
	budget->attempt = 0;
	budget->retries_left = retries;
	budget->lost_left = policy->lost_retries;
	budget->visible_at = visible_at;
	budget->pending_until = pending_until(policy, visible_at);
}

/* The same attempt once more, at once; it has waited before. */
static void
follow_lost(TqBudget *budget, int64_t now)
{
	budget->run_id++;
	budget->lost_left--;
	budget->visible_at = now;
}

static void
follow_retry(const TqPolicy *policy, int64_t now, double random,
			 TqBudget *budget)
{
	int64_t delay = tq_policy_delay(policy, budget->attempt, random);

	budget->run_id++;
	if (budget->attempt < INT32_MAX)
		budget->attempt++;
	budget->retries_left--;
	budget->visible_at = tq_policy_after(now, delay);
	budget->pending_until = pending_until(policy, budget->visible_at);
}

static bool
is_retried(const TqPolicy *policy, TqResolved reason)
{
	return tq_policy_may_retry(reason) &&
		   (policy->retry_on & 1u << reason) != 0;
}

/* Which budget pays for another run after a retried reason, if one can. */
static TqFollow
paid_by(const TqPolicy *policy, const TqBudget *run, TqResolved reason)
{
	if (reason == TQ_RESOLVED_CLAIM_EXPIRED && policy->lost_retries != TQ_OFF)
		return run->lost_left > 0 ? TQ_FOLLOW_LOST : TQ_FOLLOW_NONE;
	return run->retries_left > 0 ? TQ_FOLLOW_RETRY : TQ_FOLLOW_NONE;
}

/*
 * What follows a task's last run, which has just been resolved (section 4).
 * Nothing follows at or past the deadline (10.14), nor when the task has as
 * many runs as a task may have; next->budget is then that of the run itself.
 */
void
tq_policy_follow(const TqPolicy *policy, const TqBudget *run,
				 TqResolved reason, int64_t now, int64_t deadline,
				 int max_runs, double random, TqNext *next)
{
	next->follow = TQ_FOLLOW_NONE;
	next->created = TQ_CREATED_NONE;
	next->budget = *run;
	if (!is_retried(policy, reason) || now >= deadline ||
		(int64_t) run->run_id + 1 >= max_runs)
		return;
	next->follow = paid_by(policy, run, reason);
	switch (next->follow)
	{
		case TQ_FOLLOW_NONE:
			return;
		case TQ_FOLLOW_LOST:
			follow_lost(&next->budget, now);
			break;
		case TQ_FOLLOW_RETRY:
			follow_retry(policy, now, random, &next->budget);
			break;
	}
	next->created = tq_resolved_retry(reason);
}

/* May a policy name that reason in retryOn (section 3)? */
bool
tq_policy_may_retry(TqResolved reason)
{
	return tq_resolved_retry(reason) != TQ_CREATED_NONE;
}

/* ---- effects ---- */

/*
 * Does onUnsuccessful apply to a final run that was resolved so (10.6)?  A
 * task that somebody cancelled is not one that failed.
 */
bool
tq_policy_applies(TqResolved reason)
{
	return reason != TQ_RESOLVED_NONE && reason != TQ_RESOLVED_CANCELED &&
		   tq_resolved_state(reason) != TQ_STATE_COMPLETED;
}

/* Do dependents go on as if it had been completed? */
bool
tq_policy_tolerates(const TqPolicy *policy, TqResolved reason)
{
	return tq_policy_applies(reason) &&
		   (policy->on_unsuccessful == TQ_UNSUCCESSFUL_TOLERATE ||
			policy->on_unsuccessful == TQ_UNSUCCESSFUL_FORGIVE);
}

/* ---- what a policy may be ---- */

static bool
is_above(int64_t timeout, int64_t other)
{
	return other != TQ_OFF && timeout > other;
}

/*
 * The rule that a policy breaks whose fields are each in order, to follow
 * "policy" in an error; NULL when there is none.
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

/* ---- names ---- */

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

/* False, and nothing is set, when there is none of that name. */
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
	}
	return NULL;
}

/* False, and nothing is set, when there is none of that name. */
bool
tq_unsuccessful_parse(const char *name, TqUnsuccessful *effect)
{
	for (int i = TQ_UNSUCCESSFUL_BLOCK; i <= TQ_UNSUCCESSFUL_FORGIVE; i++)
	{
		if (strcmp(name, tq_unsuccessful_name((TqUnsuccessful) i)) == 0)
		{
			*effect = (TqUnsuccessful) i;
			return true;
		}
	}
	return false;
}
