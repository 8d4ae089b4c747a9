/*
 * policy_test.c
 *	  The policies of src/core/policy.c without a server, printed as TAP.
 *
 * What follows a run, when, and what a failure means, by doc/spec/policy.md 2 to
 * 4, 8 and 10; and the delays of doc/spec/conductor.md 14.D, case by case (CC-…).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../src/core/names.h"
#include "../../src/core/policy.h"
#include "../../src/core/state.h"
#include "../../src/core/types.h"
#include "tap.h"

#define S INT64_C(1000)              /* milliseconds */
#define SECOND INT64_C(1000000)      /* microseconds */
#define NOW INT64_C(800000000000000) /* a day in 2025 */
#define HOUR (3600 * SECOND)
#define LONGEST (INT64_C(2147483647) * S)
#define ALMOST_ONE 0.9999999999999999
#define MAX_RUNS 50
#define REASONS(r) (1u << (r))

static void
check_is(int64_t got, int64_t wanted, const char *what)
{
	check(got == wanted, what);
	if (got != wanted)
		printf("# got %" PRId64 ", wanted %" PRId64 "\n", got, wanted);
}

static void
check_text(const char *got, const char *wanted, const char *what)
{
	bool good = got == wanted ||
				(got != NULL && wanted != NULL && strcmp(got, wanted) == 0);

	check(good, what);
	if (!good)
		printf("# got %s\n", got == NULL ? "none" : got);
}

/* ---- delays ---- */

static TqPolicy
backoff(TqBackoff kind, int64_t delay, int64_t factor, int64_t max_delay,
		int64_t jitter)
{
	TqPolicy policy = tq_policy_plain;

	policy.backoff = kind;
	policy.retry_delay = delay;
	policy.factor = factor;
	policy.max_delay = max_delay;
	policy.jitter = jitter;
	return policy;
}

#define FIXED TQ_BACKOFF_FIXED
#define LINEAR TQ_BACKOFF_LINEAR
#define EXPONENTIAL TQ_BACKOFF_EXPONENTIAL

/* Delays without jitter, in seconds, after attempt 0, 1, and so on. */
static void
check_delays(void)
{
	static const struct
	{
		const char *what;
		TqBackoff kind;
		int delay, factor, max_delay;
		int n;
		int64_t wanted[4];
	} cases[] = {
		{"CC-051 linear 60 x 2", LINEAR, 60, 2, 0, 3, {120, 240, 360}},
		{"CC-053 exponential 60", EXPONENTIAL, 60, 1, 0, 3, {60, 120, 240}},
		{"CC-054 exponential 60, at most 200",
		 EXPONENTIAL,
		 60,
		 1,
		 200,
		 4,
		 {60, 120, 200, 200}},
		{"CC-055 linear 60 x 2, at most 250",
		 LINEAR,
		 60,
		 2,
		 250,
		 4,
		 {120, 240, 250, 250}},
		{"CC-056 fixed 60, at most 10", FIXED, 60, 1, 10, 2, {10, 10}},
		{"CC-057 exponential 10, no cap",
		 EXPONENTIAL,
		 10,
		 1,
		 0,
		 3,
		 {10, 20, 40}},
		{"CC-062 exponential 2, at most 3", EXPONENTIAL, 2, 1, 3, 2, {2, 3}},
		{"CC-062 linear 2 x 2, at most 5", LINEAR, 2, 2, 5, 2, {4, 5}},
		{"CC-063 no delay", EXPONENTIAL, 0, 2, 0, 2, {0, 0}},
		{"fixed does not grow", FIXED, 5, 3, 0, 3, {5, 5, 5}},
		{"the factor is linear's only", EXPONENTIAL, 5, 3, 0, 2, {5, 10}},
		{"a factor of 0 is no delay", LINEAR, 5, 0, 0, 2, {0, 0}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		TqPolicy policy = backoff(cases[i].kind, cases[i].delay * S,
								  cases[i].factor, cases[i].max_delay * S, 0);

		for (int attempt = 0; attempt < cases[i].n; attempt++)
			check_is(tq_policy_delay(&policy, attempt, ALMOST_ONE),
					 cases[i].wanted[attempt] * S, cases[i].what);
	}
}

/* CC-052, CC-053, and what lies further out. */
static void
check_saturation(void)
{
	TqPolicy policy = backoff(LINEAR, 1000000 * S, 1000000, 0, 0);

	check_is(tq_policy_delay(&policy, 0, 0), LONGEST,
			 "CC-052 linear, too long");
	policy = backoff(EXPONENTIAL, 60 * S, 1, 0, 0);
	check_is(tq_policy_delay(&policy, 25, 0), (INT64_C(60) << 25) * S,
			 "CC-053 exponential, the last below the limit");
	check_is(tq_policy_delay(&policy, 26, 0), LONGEST, "CC-053 too long");
	check_is(tq_policy_delay(&policy, 62, 0), LONGEST, "attempt 62");
	check_is(tq_policy_delay(&policy, 63, 0), LONGEST, "attempt 63");
	check_is(tq_policy_delay(&policy, 64, 0), LONGEST, "attempt 64");
	check_is(tq_policy_delay(&policy, INT32_MAX, 0), LONGEST, "attempt 2^31");
	policy = backoff(EXPONENTIAL, 0, 1, 0, 0);
	check_is(tq_policy_delay(&policy, INT32_MAX, 0), 0,
			 "0 times anything is 0");
	policy = backoff(EXPONENTIAL, 1, 1, 0, 0);
	check_is(tq_policy_delay(&policy, 40, 0), INT64_C(1) << 40, "2^40 ms");
	check_is(tq_policy_delay(&policy, 41, 0), LONGEST, "2^41 ms are too long");
	policy = backoff(LINEAR, INT64_MAX, INT64_MAX, 0, 0);
	check_is(tq_policy_delay(&policy, INT32_MAX, 0), LONGEST, "all at once");
	policy = backoff(FIXED, INT64_MAX, 1, 0, 0);
	check_is(tq_policy_delay(&policy, 0, 0), LONGEST, "a fixed one, too");
	policy = backoff(FIXED, LONGEST, 1, 0, LONGEST);
	check_is(tq_policy_delay(&policy, 0, ALMOST_ONE), 2 * LONGEST,
			 "jitter comes on top of the longest");
	policy = backoff(EXPONENTIAL, 60 * S, 1, 90 * S, 0);
	check_is(tq_policy_delay(&policy, 60, 0), 90 * S, "the longest is capped");
	policy = backoff(FIXED, -5, -5, -5, -5);
	check_is(tq_policy_delay(&policy, -5, ALMOST_ONE), 0,
			 "nothing is negative");
}

/* Are the delays those from `least` to `most`, and do both occur? */
static void
check_range(const TqPolicy *policy, int attempt, int64_t least, int64_t most,
			const char *what)
{
	bool good = tq_policy_delay(policy, attempt, 0) == least &&
				tq_policy_delay(policy, attempt, ALMOST_ONE) == most;

	for (int i = 0; i < 1000; i++)
	{
		int64_t ms = tq_policy_delay(policy, attempt, i / 1000.0);

		good = good && ms >= least && ms <= most;
	}
	check(good, what);
}

static void
check_jitter(void)
{
	TqPolicy policy = backoff(FIXED, 60 * S, 1, 0, 5000);
	int counts[5] = {0};

	check_range(&policy, 0, 60000, 65000, "CC-058 jitter of 5 s");
	policy.jitter = 0;
	check_range(&policy, 0, 60000, 60000, "CC-058 no jitter");
	policy = backoff(FIXED, 30 * S, 1, 0, 1);
	check_range(&policy, 0, 30000, 30001, "CC-058 jitter of 1 ms");
	check_is(tq_policy_delay(&policy, 0, 0.499), 30000,
			 "half of the time 0 ms");
	check_is(tq_policy_delay(&policy, 0, 0.5), 30001, "and half of it 1 ms");
	policy = backoff(EXPONENTIAL, 10 * S, 1, 0, 2000);
	check_range(&policy, 0, 10000, 12000, "CC-059 first failure");
	check_range(&policy, 1, 20000, 22000, "CC-059 second failure");
	check_is(tq_policy_delay(&policy, 0, 1), 12000, "no chance gives more");
	check(tq_policy_delay(&policy, 0, 0.1) != tq_policy_delay(&policy, 0, 0.9),
		  "CC-060 samples differ");
	policy = backoff(EXPONENTIAL, 2 * S, 1, 3 * S, 2000);
	check_range(&policy, 1, 3000, 5000, "CC-061 the cap comes before jitter");
	policy = backoff(FIXED, 0, 1, 0, 4);
	for (int i = 0; i < 1000; i++)
		counts[tq_policy_delay(&policy, 0, i / 1000.0)]++;
	check(counts[0] == 200 && counts[1] == 200 && counts[2] == 200 &&
			  counts[3] == 200 && counts[4] == 200,
		  "each millisecond is as likely as the others");
	policy.jitter = INT64_MAX;
	check(tq_policy_delay(&policy, 0, ALMOST_ONE) > INT64_MAX / 2,
		  "any jitter at all");
}

static void
check_after(void)
{
	check_is(tq_policy_after(NOW, 0), NOW, "no time later");
	check_is(tq_policy_after(NOW, 1), NOW + 1000, "1 ms later");
	check_is(tq_policy_after(-5, 1), 995, "from a time before 2000");
	check_is(tq_policy_after(NOW, -1), NOW, "never earlier");
	check_is(tq_policy_after(NOW, LONGEST), NOW + LONGEST * 1000,
			 "68 years later");
	check_is(tq_policy_after(NOW, INT64_MAX), INT64_MAX, "too late");
	check_is(tq_policy_after(INT64_MAX - 999, 1), INT64_MAX, "just too late");
	check_is(tq_policy_after(INT64_MAX - 1000, 1), INT64_MAX,
			 "as late as can be");
	check_is(tq_policy_after(INT64_MAX - 1001, 1), INT64_MAX - 1,
			 "almost as late");
	check_is(tq_policy_after(INT64_MAX, 5), INT64_MAX, "infinity stays");
	check_is(tq_policy_after(INT64_MIN, 1), INT64_MIN + 1000, "and the other");
}

static void
check_visible(void)
{
	check_is(tq_policy_visible(NOW, 0, NOW + 5), NOW + 5, "no delay");
	check_is(tq_policy_visible(NOW, 2, NOW + 5), NOW + 2005,
			 "a delay counts from when the task is scheduled");
	check_is(tq_policy_visible(NOW, -2, NOW + 5), NOW + 2000,
			 "a time counts from the creation");
	check_is(tq_policy_visible(NOW, -2, NOW + 2001), NOW + 2001,
			 "a time that is over");
	check_is(tq_policy_visible(NOW, INT64_MAX, NOW), INT64_MAX, "too late");
	check_is(tq_policy_visible(NOW, INT64_MIN, NOW), INT64_MAX, "any time");
	check_is(tq_policy_delay_until(NOW, NOW), 0, "now");
	check_is(tq_policy_delay_until(NOW, NOW - 1), 0, "a time of the past");
	check_is(tq_policy_delay_until(NOW, NOW + 1), -1, "rounded up");
	check_is(tq_policy_delay_until(NOW, NOW + 1000), -1, "1 ms");
	check_is(tq_policy_delay_until(NOW, NOW + 1001), -2, "rounded up again");
	check_is(tq_policy_delay_until(INT64_MIN, INT64_MAX),
			 -(int64_t) (UINT64_MAX / 1000 + 1), "the longest");
}

/* ---- what follows ---- */

static TqNext
follow(const TqPolicy *policy, const TqBudget *run, TqResolved reason)
{
	TqNext next;

	tq_policy_follow(policy, run, reason, NOW, NOW + 24 * HOUR, MAX_RUNS, 0,
					 &next);
	return next;
}

static TqBudget
first(const TqPolicy *policy, int retries)
{
	TqBudget budget = {.run_id = 0};

	tq_policy_first(policy, retries, NOW - HOUR, &budget);
	return budget;
}

static bool
same(const TqBudget *a, const TqBudget *b)
{
	return a->run_id == b->run_id && a->attempt == b->attempt &&
		   a->retries_left == b->retries_left &&
		   a->lost_retries_left == b->lost_retries_left &&
		   a->visible_at == b->visible_at &&
		   a->pending_until == b->pending_until;
}

static void
check_first(void)
{
	TqPolicy policy = tq_policy_plain;
	TqBudget budget = {.run_id = 7, .attempt = 3, .pending_until = 5};

	tq_policy_first(&policy, 4, NOW, &budget);
	check(same(&budget, &(TqBudget){7, 0, 4, TQ_OFF, NOW, 0}),
		  "a first run by Taskcluster's policy");
	policy.lost_retries = 2;
	policy.pending_timeout = 90 * S;
	tq_policy_first(&policy, 0, NOW, &budget);
	check(same(&budget, &(TqBudget){7, 0, 0, 2, NOW, NOW + 90 * SECOND}),
		  "with lostRetries and pendingTimeout");
	policy.pending_timeout = 0;
	tq_policy_first(&policy, 0, NOW, &budget);
	check_is(budget.pending_until, NOW, "pendingTimeout 0 is over at once");
	policy.pending_timeout = LONGEST;
	tq_policy_first(&policy, 0, INT64_MAX - 5, &budget);
	check_is(budget.pending_until, INT64_MAX, "it cannot be too late");
}

/* The default is Taskcluster's, reason by reason (doc/spec/taskcluster.md 3.2). */
static void
check_plain(void)
{
	static const struct
	{
		TqResolved reason;
		TqFollow follow;
		TqCreated created;
		bool may_retry;
		bool applies;
	} rows[] = {
		{TQ_RESOLVED_COMPLETED, TQ_FOLLOW_NONE, TQ_CREATED_NONE, false, false},
		{TQ_RESOLVED_FAILED, TQ_FOLLOW_NONE, TQ_CREATED_NONE, true, true},
		{TQ_RESOLVED_DEADLINE_EXCEEDED, TQ_FOLLOW_NONE, TQ_CREATED_NONE, false,
		 true},
		{TQ_RESOLVED_CANCELED, TQ_FOLLOW_NONE, TQ_CREATED_NONE, false, false},
		{TQ_RESOLVED_SUPERSEDED, TQ_FOLLOW_NONE, TQ_CREATED_NONE, false, true},
		{TQ_RESOLVED_CLAIM_EXPIRED, TQ_FOLLOW_RETRY, TQ_CREATED_RETRY, true,
		 true},
		{TQ_RESOLVED_WORKER_SHUTDOWN, TQ_FOLLOW_RETRY, TQ_CREATED_RETRY, true,
		 true},
		{TQ_RESOLVED_MALFORMED_PAYLOAD, TQ_FOLLOW_NONE, TQ_CREATED_NONE, false,
		 true},
		{TQ_RESOLVED_RESOURCE_UNAVAILABLE, TQ_FOLLOW_NONE, TQ_CREATED_NONE,
		 true, true},
		{TQ_RESOLVED_INTERNAL_ERROR, TQ_FOLLOW_NONE, TQ_CREATED_NONE, true,
		 true},
		{TQ_RESOLVED_INTERMITTENT_TASK, TQ_FOLLOW_RETRY, TQ_CREATED_TASK_RETRY,
		 true, true},
		{TQ_RESOLVED_FAILED_TERMINAL, TQ_FOLLOW_NONE, TQ_CREATED_NONE, false,
		 true},
		{TQ_RESOLVED_PENDING_TIMEOUT, TQ_FOLLOW_NONE, TQ_CREATED_NONE, true,
		 true},
		{TQ_RESOLVED_RUN_TIMEOUT, TQ_FOLLOW_NONE, TQ_CREATED_NONE, true, true},
		{TQ_RESOLVED_SKIPPED, TQ_FOLLOW_NONE, TQ_CREATED_NONE, false, false},
		{TQ_RESOLVED_CANCELED_BY_WORKER, TQ_FOLLOW_NONE, TQ_CREATED_NONE,
		 false, true},
	};
	TqBudget run = first(&tq_policy_plain, 5);

	check(sizeof(rows) / sizeof(rows[0]) == TQ_RESOLVED_LAST,
		  "every reason has a row");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		TqNext next = follow(&tq_policy_plain, &run, rows[i].reason);
		char what[100];
		bool good;

		snprintf(what, sizeof(what), "%s (%d) by Taskcluster's policy",
				 tq_resolved_name(rows[i].reason), (int) rows[i].reason);
		good = next.follow == rows[i].follow &&
			   next.created == rows[i].created &&
			   tq_policy_may_retry(rows[i].reason) == rows[i].may_retry &&
			   tq_policy_applies(rows[i].reason) == rows[i].applies &&
			   !tq_policy_tolerates(&tq_policy_plain, rows[i].reason);
		if (rows[i].follow == TQ_FOLLOW_NONE)
			good = good && same(&next.budget, &run);
		else
			good = good &&
				   same(&next.budget, &(TqBudget){1, 1, 4, TQ_OFF, NOW, 0});
		check(good, what);
	}
	check(!tq_policy_may_retry(TQ_RESOLVED_NONE) &&
			  !tq_policy_applies(TQ_RESOLVED_NONE),
		  "no reason is no reason to do anything");
}

/* retryOn decides, but not for what can never be retried (3, 8 C1). */
static void
check_retry_on(void)
{
	TqPolicy policy = tq_policy_plain;
	TqBudget run = first(&policy, 5);

	for (int reason = TQ_RESOLVED_COMPLETED; reason <= TQ_RESOLVED_LAST;
		 reason++)
	{
		TqNext all, none;
		char what[100];

		policy.retry_on = UINT32_MAX;
		all = follow(&policy, &run, (TqResolved) reason);
		policy.retry_on = ~REASONS(reason);
		none = follow(&policy, &run, (TqResolved) reason);
		snprintf(what, sizeof(what), "%s (%d) in retryOn, and not",
				 tq_resolved_name((TqResolved) reason), reason);
		check(none.follow == TQ_FOLLOW_NONE &&
				  (all.follow == TQ_FOLLOW_RETRY) ==
					  tq_policy_may_retry((TqResolved) reason),
			  what);
	}
	policy.retry_on = REASONS(TQ_RESOLVED_FAILED);
	check(follow(&policy, &run, TQ_RESOLVED_FAILED).created ==
			  TQ_CREATED_FAILURE_RETRY,
		  "failed is followed by a failure-retry");
}

static void
check_retry(void)
{
	TqPolicy policy = backoff(EXPONENTIAL, 10 * S, 1, 0, 0);
	TqBudget run = {.run_id = 4,
					.attempt = 2,
					.retries_left = 1,
					.lost_retries_left = 3,
					.visible_at = NOW - HOUR,
					.pending_until = NOW - HOUR / 2};
	TqNext next;

	policy.lost_retries = 3;
	policy.pending_timeout = 7 * S;
	next = follow(&policy, &run, TQ_RESOLVED_WORKER_SHUTDOWN);
	check(same(&next.budget,
			   &(TqBudget){5, 3, 0, 3, NOW + 40 * SECOND, NOW + 47 * SECOND}),
		  "the next attempt: delayed, with a pendingTimeout of its own");
	run.retries_left = 0;
	check(follow(&policy, &run, TQ_RESOLVED_WORKER_SHUTDOWN).follow ==
			  TQ_FOLLOW_NONE,
		  "lostRetries do not pay for what is not lost");
	policy.pending_timeout = TQ_OFF;
	run.retries_left = 1;
	next = follow(&policy, &run, TQ_RESOLVED_WORKER_SHUTDOWN);
	check_is(next.budget.pending_until, 0, "no pendingTimeout");
	policy.retry_delay = LONGEST;
	next = follow(&policy, &run, TQ_RESOLVED_WORKER_SHUTDOWN);
	check_is(next.budget.visible_at, NOW + LONGEST * 1000,
			 "as late as a delay can be");
}

/* Section 4: a budget of its own, and the same attempt (8 C2, C3). */
static void
check_lost(void)
{
	TqPolicy policy = backoff(FIXED, 60 * S, 1, 0, 5 * S);
	TqBudget run = {.run_id = 3,
					.attempt = 1,
					.retries_left = 4,
					.lost_retries_left = 1,
					.visible_at = NOW - HOUR,
					.pending_until = NOW - SECOND};
	TqNext next;

	policy.lost_retries = 2;
	policy.pending_timeout = 30 * S;
	next = follow(&policy, &run, TQ_RESOLVED_CLAIM_EXPIRED);
	check(next.follow == TQ_FOLLOW_LOST && next.created == TQ_CREATED_RETRY,
		  "a lost run is replaced");
	check(same(&next.budget, &(TqBudget){4, 1, 4, 0, NOW, NOW - SECOND}),
		  "the same attempt, at once, with the time to wait that was left");
	next = follow(&policy, &next.budget, TQ_RESOLVED_CLAIM_EXPIRED);
	check(next.follow == TQ_FOLLOW_NONE && next.created == TQ_CREATED_NONE &&
			  next.budget.retries_left == 4,
		  "no lostRetries left: final, whatever retries are left");
	policy.lost_retries = 0;
	run.lost_retries_left = 0;
	check(follow(&policy, &run, TQ_RESOLVED_CLAIM_EXPIRED).follow ==
			  TQ_FOLLOW_NONE,
		  "lostRetries 0: a lost run is final");
	check(follow(&policy, &run, TQ_RESOLVED_INTERMITTENT_TASK).follow ==
			  TQ_FOLLOW_RETRY,
		  "and another reason is retried");
	run.lost_retries_left = 2;
	policy.lost_retries = 2;
	policy.retry_on = REASONS(TQ_RESOLVED_INTERMITTENT_TASK);
	check(follow(&policy, &run, TQ_RESOLVED_CLAIM_EXPIRED).follow ==
			  TQ_FOLLOW_NONE,
		  "at most once: claim-expired is not in retryOn");
	policy = tq_policy_plain;
	run.lost_retries_left = TQ_OFF;
	next = follow(&policy, &run, TQ_RESOLVED_CLAIM_EXPIRED);
	check(next.follow == TQ_FOLLOW_RETRY && next.budget.attempt == 2 &&
			  next.budget.retries_left == 3 &&
			  next.budget.lost_retries_left == TQ_OFF,
		  "without lostRetries a lost run uses retries");
}

/* No retry at or past the deadline (10.14), nor beyond max_runs (8 C18). */
static void
check_limits(void)
{
	TqPolicy policy = tq_policy_plain;
	TqBudget run = first(&policy, 5);
	TqNext next;

	policy.lost_retries = 5;
	run.lost_retries_left = 5;
	for (int i = 0; i < 2; i++)
	{
		TqResolved reason = i == 0 ? TQ_RESOLVED_CLAIM_EXPIRED
								   : TQ_RESOLVED_WORKER_SHUTDOWN;

		run.run_id = 0;
		tq_policy_follow(&policy, &run, reason, NOW, NOW + 1, 50, 0, &next);
		check(next.follow != TQ_FOLLOW_NONE, "just before the deadline");
		tq_policy_follow(&policy, &run, reason, NOW, NOW, 50, 0, &next);
		check(next.follow == TQ_FOLLOW_NONE, "at the deadline");
		tq_policy_follow(&policy, &run, reason, NOW, NOW - 1, 50, 0, &next);
		check(next.follow == TQ_FOLLOW_NONE, "past the deadline");
		run.run_id = 48;
		check(follow(&policy, &run, reason).budget.run_id == 49,
			  "the 50th run");
		run.run_id = 49;
		check(follow(&policy, &run, reason).follow == TQ_FOLLOW_NONE,
			  "there is no 51st");
		run.run_id = INT32_MAX;
		tq_policy_follow(&policy, &run, reason, NOW, NOW + 1, INT32_MAX, 0,
						 &next);
		check(next.follow == TQ_FOLLOW_NONE, "nor any without a number");
	}
}

/* A whole life: retries and lostRetries are spent, each for its own. */
static void
check_life(void)
{
	TqPolicy policy = tq_policy_plain;
	TqBudget run;
	int runs = 1;

	policy.lost_retries = 3;
	run = first(&policy, 2);
	for (int i = 0; i < 20; i++)
	{
		TqResolved reason = i % 2 == 0 ? TQ_RESOLVED_CLAIM_EXPIRED
									   : TQ_RESOLVED_INTERMITTENT_TASK;
		TqNext next = follow(&policy, &run, reason);

		if (next.follow == TQ_FOLLOW_NONE)
			break;
		run = next.budget;
		runs++;
	}
	check_is(runs, 6, "lost, retried, lost, retried, lost, and no more");
	check(same(&run, &(TqBudget){5, 2, 0, 0, NOW, 0}),
		  "six runs are three attempts");
}

/* ---- effects ---- */

static void
check_effects(void)
{
	TqPolicy policy = tq_policy_plain;

	for (int effect = TQ_UNSUCCESSFUL_BLOCK; effect <= TQ_UNSUCCESSFUL_FORGIVE;
		 effect++)
	{
		bool mild = effect == TQ_UNSUCCESSFUL_TOLERATE ||
					effect == TQ_UNSUCCESSFUL_FORGIVE;
		char what[100];
		bool good = true;

		policy.on_unsuccessful = (TqUnsuccessful) effect;
		for (int reason = TQ_RESOLVED_NONE; reason <= TQ_RESOLVED_LAST;
			 reason++)
			good = good &&
				   tq_policy_tolerates(&policy, (TqResolved) reason) ==
					   (mild && tq_policy_applies((TqResolved) reason));
		snprintf(what, sizeof(what), "%s: what it tolerates",
				 tq_unsuccessful_name(policy.on_unsuccessful));
		check(good, what);
	}
	check(tq_policy_tolerates(&policy, TQ_RESOLVED_CANCELED_BY_WORKER) &&
			  !tq_policy_tolerates(&policy, TQ_RESOLVED_CANCELED),
		  "forgiven is who gave up, not who was stopped (10.6)");
}

/* ---- unique keys ---- */

static void
check_unique(void)
{
	TqPolicy policy = tq_policy_plain;
	TqRetention kept = {1, 2};

	check(tq_policy_is_held(&policy, TQ_STATE_UNSCHEDULED, NOW, NOW) &&
			  tq_policy_is_held(&policy, TQ_STATE_PENDING, NOW, NOW) &&
			  tq_policy_is_held(&policy, TQ_STATE_RUNNING, NOW, NOW),
		  "an unresolved task holds its key");
	check(!tq_policy_is_held(&policy, TQ_STATE_COMPLETED, NOW, NOW) &&
			  !tq_policy_is_held(&policy, TQ_STATE_FAILED, NOW, NOW) &&
			  !tq_policy_is_held(&policy, TQ_STATE_EXCEPTION, NOW, NOW),
		  "a resolved one does not");
	policy.unique_period = 60 * S;
	check(tq_policy_is_held(&policy, TQ_STATE_FAILED, NOW - 60 * SECOND + 1,
							NOW),
		  "but in its period");
	check(!tq_policy_is_held(&policy, TQ_STATE_FAILED, NOW - 60 * SECOND, NOW),
		  "which ends");
	policy.unique_states = 1u << TQ_STATE_FAILED;
	check(tq_policy_is_held(&policy, TQ_STATE_FAILED, NOW - HOUR, NOW) &&
			  !tq_policy_is_held(&policy, TQ_STATE_PENDING, NOW - HOUR, NOW),
		  "or in other states");
	check_is(tq_policy_retention(&policy, kept).completed, 1,
			 "a period without a key keeps no task");
	policy.keys = 1u << TQ_KEY_UNIQUE;
	policy.retain_failed = 61 * S;
	check_is(tq_policy_retention(&policy, kept).completed, 60 * S,
			 "one with a key does");
	check_is(tq_policy_retention(&policy, kept).failed, 61 * S,
			 "but not shorter than it is kept anyway");
}

/* ---- faults ---- */

#define TOO_MANY                                                              \
	"must not have retries and lostRetries that are together more than "      \
	"tq.max_runs less one"

static void
check_faults(void)
{
	TqPolicy policy = tq_policy_plain;

	check_text(tq_policy_fault(&policy, 49, 50), NULL,
			   "49 retries of 50 runs");
	check_text(tq_policy_fault(&policy, 50, 50), TOO_MANY, "50 are too many");
	check_text(tq_policy_fault(&policy, 0, 1), NULL, "one run, no retries");
	check_text(tq_policy_fault(&policy, 1, 1), TOO_MANY, "one run, one retry");
	policy.lost_retries = 0;
	check_text(tq_policy_fault(&policy, 49, 50), NULL, "49 and 0");
	policy.lost_retries = 5;
	check_text(tq_policy_fault(&policy, 44, 50), NULL, "44 and 5");
	check_text(tq_policy_fault(&policy, 45, 50), TOO_MANY, "45 and 5");
	policy.lost_retries = INT32_MAX;
	check_text(tq_policy_fault(&policy, INT32_MAX, 50), TOO_MANY, "2^32");
	policy = tq_policy_plain;
	policy.claim_timeout = 60 * S;
	check_text(tq_policy_fault(&policy, 0, 50), NULL, "claimTimeout alone");
	policy.run_timeout = 60 * S;
	check_text(tq_policy_fault(&policy, 0, 50), NULL,
			   "and as much runTimeout");
	policy.run_timeout = 60 * S - 1;
	check_text(tq_policy_fault(&policy, 0, 50),
			   "must not have a claimTimeout above its runTimeout",
			   "and 1 ms less");
	policy.claim_timeout = TQ_OFF;
	check_text(tq_policy_fault(&policy, 0, 50), NULL, "runTimeout alone");
	policy.total_timeout = 60 * S - 1;
	check_text(tq_policy_fault(&policy, 0, 50), NULL,
			   "and as much totalTimeout");
	policy.total_timeout--;
	check_text(tq_policy_fault(&policy, 0, 50),
			   "must not have a runTimeout above its totalTimeout",
			   "and 1 ms less");
	policy.run_timeout = TQ_OFF;
	policy.total_timeout = 0;
	check_text(tq_policy_fault(&policy, 0, 50), NULL, "totalTimeout 0 alone");
	policy.claim_timeout = 3600 * S;
	check_text(tq_policy_fault(&policy, 0, 50), NULL,
			   "a claimTimeout above totalTimeout, as Conductor's default");
	policy.run_timeout = 0;
	check_text(tq_policy_fault(&policy, 0, 50),
			   "must not have a claimTimeout above its runTimeout",
			   "runTimeout 0 is none to be above");
}

/* ---- names ---- */

static void
check_names(void)
{
	static const char *const kinds[] = {"fixed", "linear", "exponential"};
	static const char *const effects[] = {"block", "cancel-group", "tolerate",
										  "forgive", "cancel-dependents"};
	TqBackoff kind = LINEAR;
	TqUnsuccessful effect = TQ_UNSUCCESSFUL_TOLERATE;

	for (int i = 0; i < 3; i++)
	{
		check_text(tq_backoff_name((TqBackoff) i), kinds[i], kinds[i]);
		check(tq_backoff_parse(kinds[i], &kind) && kind == (TqBackoff) i,
			  kinds[i]);
	}
	for (int i = 0; i < 5; i++)
	{
		check_text(tq_unsuccessful_name((TqUnsuccessful) i), effects[i],
				   effects[i]);
		check(tq_unsuccessful_parse(effects[i], &effect) &&
				  effect == (TqUnsuccessful) i,
			  effects[i]);
	}
	check(!tq_backoff_parse("FIXED", &kind) && !tq_backoff_parse("", &kind) &&
			  kind == EXPONENTIAL,
		  "an unknown kind changes nothing");
	check(!tq_unsuccessful_parse("cancel", &effect) &&
			  effect == TQ_UNSUCCESSFUL_LAST,
		  "an unknown effect changes nothing");
}

/* ---- claims ---- */

/* When the claim of a run that started at NOW is checked, some time later. */
static int64_t
checked(int64_t later, int64_t taken_until)
{
	return tq_policy_check_claim(NOW, taken_until, NOW + later) - NOW;
}

static void
check_claims(void)
{
	int64_t first = TQ_FIRST_CHECK_MS * 1000;
	int64_t end = NOW + HOUR / 3;
	int looks = 0;

	check_is(checked(0, end), first, "claim: it is checked soon");
	check_is(checked(first, end), 2 * first,
			 "claim: and when it is as old again");
	check_is(checked(first + 1, end), 2 * first + SECOND,
			 "claim: or up to a second later");
	check_is(checked(120 * SECOND, end), 240 * SECOND, "claim: and so on");
	check_is(checked(HOUR / 4, end), HOUR / 3, "claim: no later than its end");
	check_is(checked(0, NOW + SECOND), SECOND, "claim: also at first");
	check_is(checked(-HOUR, end), first - HOUR,
			 "claim: the clock was set back");
	check_is(tq_policy_check_claim(NOW - 1000 * HOUR, end, NOW), end,
			 "claim: a run that was deferred is old");
	check_is(tq_policy_check_claim(0, INT64_MAX, INT64_MAX - 1), INT64_MAX,
			 "claim: time ends");
	for (int64_t at = NOW; at < end; looks++)
		at = tq_policy_check_claim(NOW, end, at);
	check_is(looks, 9, "claim: nine times in twenty minutes");
}

int
main(void)
{
	check_delays();
	check_saturation();
	check_jitter();
	check_after();
	check_visible();
	check_first();
	check_plain();
	check_retry_on();
	check_retry();
	check_lost();
	check_limits();
	check_life();
	check_claims();
	check_effects();
	check_unique();
	check_faults();
	check_names();
	return end_of_checks();
}
