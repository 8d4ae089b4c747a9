/*
 * life.c
 *	  Random lives of tasks under random policies: src/core/policy.c and src/core/state.c
 *	  without a server.
 *
 * A task here is what the layers above keep: a state, a budget, some times.
 * Things happen to it in any order, at any time, and what policy.c and state.c
 * answer is held against rules that are stated here once more, in another form
 * than the code has (doc/spec/policy.md 2 to 5):
 *
 *	  - no budget is ever negative, and each pays for one run at a time;
 *	  - nothing but a rerun follows a final run;
 *	  - an attempt begins only when a retry is spent, and never otherwise;
 *	  - nothing is due before its cause, nor when the policy does not say so;
 *	  - a task never has more than max_runs runs, nor more since it was
 *		scheduled or rerun than retries + lostRetries + 1;
 *	  - a run follows exactly when section 4 says so.
 *
 * Compiled as it is, it prints TAP: life [-s SEED] [-n LIVES] [-l LIFE].  A
 * life that breaks a rule is run again and printed; -l prints one.  With
 * -DTQ_FUZZ it is a target of libFuzzer (test/property/fuzz), and a life is
 * what its input says.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/core/names.h"
#include "../../src/core/policy.h"
#include "../../src/core/state.h"
#include "../../src/core/types.h"

#define LIVES 300000
#define EVENTS_MAX 64 /* of one life */
#define S INT64_C(1000)
#define LONGEST (INT64_C(2147483647) * S)

/* ---- chance: a generator, or the input of a fuzzer ---- */

static struct
{
	const uint8_t *data; /* NULL: the generator */
	size_t left;
	uint64_t state;
} chance;

static uint64_t
scramble(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* So many random bytes, as a number; 0 when the input has ended. */
static uint64_t
bytes(size_t n)
{
	uint64_t number = 0;

	if (chance.data == NULL)
		return scramble(chance.state += UINT64_C(0x9e3779b97f4a7c15)) >>
			   (64 - 8 * n);
	for (; n > 0 && chance.left > 0; n--, chance.left--)
		number = number << 8 | *chance.data++;
	return number;
}

static int
below(int n)
{
	return (int) (bytes(n <= 256 ? 1 : 4) % (uint64_t) n);
}

static bool
has_ended(void)
{
	return chance.data != NULL && chance.left == 0;
}

/* In [0,1), and often near its ends. */
static double
fraction(void)
{
	static const double ends[] = {0, 0.5, 1e-300, 0.9999999999999999};
	int choice = below(8);

	return choice < 4 ? ends[choice]
					  : (double) (bytes(4) & 0xffffff) / 0x1000000;
}

/* ---- what is broken ---- */

static bool telling = false;
static int told;         /* events of this life */
static const char *rule; /* which */

#ifndef TQ_FUZZ
static jmp_buf broken; /* where it goes on after a life that broke a rule */
#endif

static void
must(bool kept, const char *what)
{
	if (kept)
		return;
	rule = what;
#ifdef TQ_FUZZ
	fprintf(stderr, "broken: %s\n", what);
	abort();
#else
	if (telling)
		printf("# broken: %s\n", what);
	longjmp(broken, 1);
#endif
}

#define TELL(...)                                                             \
	do                                                                        \
	{                                                                         \
		if (telling)                                                          \
		{                                                                     \
			printf("# " __VA_ARGS__);                                         \
			putchar('\n');                                                    \
		}                                                                     \
	} while (0)

/* ---- what has been seen, so that no rule is kept for want of a case ---- */

static long seen_event[TQ_EVENTS][TQ_STATES];
static long seen_follow[3][TQ_RESOLVED_LAST + 1];

/* ---- policies ---- */

/* A duration as a policy can have it. */
static int64_t
duration(void)
{
	switch (below(8))
	{
		case 0:
			return 0;
		case 1:
			return 1;
		case 2:
			return LONGEST - below(2);
		case 3:
			return (int64_t) (bytes(8) % (uint64_t) LONGEST);
		case 4:
			return (int64_t) (bytes(4) % 86400000);
		default:
			return below(100) * S;
	}
}

static int64_t
duration_or_none(void)
{
	return below(2) == 0 ? TQ_OFF : duration();
}

static uint32_t
reasons(void)
{
	uint32_t set = (uint32_t) bytes(4);

	for (int reason = 0; reason < 32; reason++)
	{
		if (!tq_policy_may_retry((TqResolved) reason))
			set &= ~(1u << reason);
	}
	return set;
}

static TqPolicy
some_policy(void)
{
	TqPolicy policy = tq_policy_plain;

	if (below(8) == 0)
		return policy;
	policy.retry_on = reasons();
	policy.lost_retries = below(2) == 0 ? TQ_OFF : below(6);
	policy.backoff = (TqBackoff) below(3);
	policy.retry_delay = duration();
	policy.factor = below(2) == 0 ? 1 + below(4) : 1 + below(INT32_MAX);
	policy.max_delay = below(2) == 0 ? 0 : duration();
	policy.jitter = below(2) == 0 ? 0 : duration();
	policy.claim_timeout = duration_or_none();
	policy.run_timeout = duration_or_none();
	policy.pending_timeout = duration_or_none();
	policy.total_timeout = duration_or_none();
	policy.alert_only = below(4) == 0;
	policy.on_unsuccessful = (TqUnsuccessful) below(4);
	policy.dead_letter = below(2) == 0;
	return policy;
}

static void
tell_policy(const TqPolicy *policy)
{
	TELL("retry on %#x, lost %d, %s delay %" PRId64 " factor %" PRId64
		 " max %" PRId64 " jitter %" PRId64 ", claim %" PRId64 " run %" PRId64
		 " pending %" PRId64 " total %" PRId64 "%s, %s",
		 (unsigned) policy->retry_on,
		 policy->lost_retries,
		 tq_backoff_name(policy->backoff),
		 policy->retry_delay,
		 policy->factor,
		 policy->max_delay,
		 policy->jitter,
		 policy->claim_timeout,
		 policy->run_timeout,
		 policy->pending_timeout,
		 policy->total_timeout,
		 policy->alert_only ? " alert only" : "",
		 tq_unsuccessful_name(policy->on_unsuccessful));
}

/* ---- rules of times ---- */

/* Is it `time` and so many milliseconds, or as late as can be? */
static void
must_be_after(int64_t later, int64_t time, int64_t ms)
{
	uint64_t passed = (uint64_t) later - (uint64_t) time;
	uint64_t room = (uint64_t) INT64_MAX - (uint64_t) time;

	must(later >= time, "a time lies before its cause");
	if (ms <= 0)
		must(later == time, "no delay, and yet later");
	else if ((uint64_t) ms > room / 1000)
		must(later == INT64_MAX, "a time that is too late is the latest");
	else
		must(passed == (uint64_t) ms * 1000, "a time is its cause and delay");
}

/* Section 4 once more, by doubling and adding up. */
static int64_t
base_delay(const TqPolicy *policy, int attempt)
{
	long double delay = policy->retry_delay > 0 ? policy->retry_delay : 0;

	switch (policy->backoff)
	{
		case TQ_BACKOFF_FIXED:
			break;
		case TQ_BACKOFF_LINEAR:
			delay *= policy->factor > 0 ? policy->factor : 0;
			delay *= attempt > 0 ? (long double) attempt + 1 : 1;
			break;
		case TQ_BACKOFF_EXPONENTIAL:
			for (int i = 0; i < attempt && delay > 0 && delay <= LONGEST; i++)
				delay *= 2;
			break;
	}
	if (delay > LONGEST)
		delay = LONGEST;
	if (policy->max_delay > 0 && delay > policy->max_delay)
		delay = policy->max_delay;
	return (int64_t) delay;
}

static void
check_delay(const TqPolicy *policy, int attempt, double random)
{
	int64_t base = base_delay(policy, attempt);
	int64_t most = policy->jitter > 0 ? policy->jitter : 0;
	int64_t delay = tq_policy_delay(policy, attempt, random);

	most = most > INT64_MAX - base ? INT64_MAX : base + most;
	must(delay >= base && delay <= most,
		 "a delay is its base and some jitter");
	must(tq_policy_delay(policy, attempt, 0) == base, "no chance, no jitter");
	must(tq_policy_delay(policy, attempt, random) == delay,
		 "the same chance, the same delay");
}

/* ---- rules of effects ---- */

static void
check_effects(const TqPolicy *policy, TqResolved reason)
{
	TqState state = tq_resolved_state(reason);
	bool unsuccessful = state == TQ_STATE_FAILED ||
						state == TQ_STATE_EXCEPTION;
	bool applies = unsuccessful && reason != TQ_RESOLVED_NONE &&
				   reason != TQ_RESOLVED_CANCELED;
	bool mild = policy->on_unsuccessful == TQ_UNSUCCESSFUL_TOLERATE ||
				policy->on_unsuccessful == TQ_UNSUCCESSFUL_FORGIVE;

	must(tq_state_is_resolved(state), "a reason leads to a resolved state");
	must(tq_policy_applies(reason) == applies,
		 "onUnsuccessful applies to what is unsuccessful, but canceled");
	must(tq_policy_tolerates(policy, reason) == (applies && mild),
		 "tolerated is what applies, and is tolerate or forgive");
}

/* ---- rules of what follows ---- */

static TqCreated
created_after(TqResolved reason)
{
	if (reason == TQ_RESOLVED_FAILED)
		return TQ_CREATED_FAILURE_RETRY;
	if (reason == TQ_RESOLVED_INTERMITTENT_TASK)
		return TQ_CREATED_TASK_RETRY;
	return TQ_CREATED_RETRY;
}

static TqFollow
should_follow(const TqPolicy *policy, const TqBudget *run, TqResolved reason,
			  int64_t now, int64_t deadline, int max_runs)
{
	static const TqResolved never[] = {TQ_RESOLVED_NONE,
									   TQ_RESOLVED_COMPLETED,
									   TQ_RESOLVED_SKIPPED,
									   TQ_RESOLVED_CANCELED,
									   TQ_RESOLVED_CANCELED_BY_WORKER,
									   TQ_RESOLVED_SUPERSEDED,
									   TQ_RESOLVED_DEADLINE_EXCEEDED,
									   TQ_RESOLVED_FAILED_TERMINAL,
									   TQ_RESOLVED_MALFORMED_PAYLOAD};

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
	{
		if (reason == never[i])
			return TQ_FOLLOW_NONE;
	}
	if ((policy->retry_on >> reason & 1) == 0 || now >= deadline ||
		run->run_id >= (int64_t) max_runs - 1)
		return TQ_FOLLOW_NONE;
	if (reason == TQ_RESOLVED_CLAIM_EXPIRED && policy->lost_retries != TQ_OFF)
		return run->lost_retries_left > 0 ? TQ_FOLLOW_LOST : TQ_FOLLOW_NONE;
	return run->retries_left > 0 ? TQ_FOLLOW_RETRY : TQ_FOLLOW_NONE;
}

static bool
same_budget(const TqBudget *a, const TqBudget *b)
{
	return a->run_id == b->run_id && a->attempt == b->attempt &&
		   a->retries_left == b->retries_left &&
		   a->lost_retries_left == b->lost_retries_left && a->visible_at == b->visible_at &&
		   a->pending_until == b->pending_until;
}

static void
check_pending_until(const TqPolicy *policy, const TqBudget *run)
{
	if (policy->pending_timeout < 0)
		must(run->pending_until == 0, "no pendingTimeout, no limit");
	else
		must_be_after(run->pending_until,
					  run->visible_at,
					  policy->pending_timeout);
}

static void
check_lost(const TqBudget *run, const TqBudget *next, int64_t now)
{
	must(next->lost_retries_left == run->lost_retries_left - 1 && next->lost_retries_left >= 0,
		 "a lost run costs one of lostRetries");
	must(next->retries_left == run->retries_left, "and none of retries");
	must(next->attempt == run->attempt, "and is no new attempt");
	must(next->visible_at == now, "and its replacement is due at once");
	must(next->pending_until == run->pending_until,
		 "and has waited as long as it had");
}

static void
check_retry(const TqPolicy *policy, const TqBudget *run, const TqBudget *next,
			int64_t now, double random)
{
	must(next->retries_left == run->retries_left - 1 &&
			 next->retries_left >= 0,
		 "an attempt costs one of retries");
	must(next->lost_retries_left == run->lost_retries_left, "and none of lostRetries");
	must(next->attempt == run->attempt + 1, "and is the next");
	check_delay(policy, run->attempt, random);
	must_be_after(next->visible_at,
				  now,
				  tq_policy_delay(policy, run->attempt, random));
	check_pending_until(policy, next);
}

static void
check_follow(const TqPolicy *policy, const TqBudget *run, TqResolved reason,
			 int64_t now, int64_t deadline, int max_runs, double random,
			 const TqNext *next)
{
	must(next->follow ==
			 should_follow(policy, run, reason, now, deadline, max_runs),
		 "a run follows when section 4 says so");
	seen_follow[next->follow][reason]++;
	if (next->follow == TQ_FOLLOW_NONE)
	{
		must(next->created == TQ_CREATED_NONE &&
				 same_budget(&next->budget, run),
			 "what is final stays as it is");
		return;
	}
	must(next->created == created_after(reason), "reasonCreated");
	must(tq_created_is_retry(next->created), "what follows is a retry");
	must(next->budget.run_id == run->run_id + 1, "runs are numbered");
	if (next->follow == TQ_FOLLOW_LOST)
		check_lost(run, &next->budget, now);
	else
		check_retry(policy, run, &next->budget, now, random);
}

/* ---- a task ---- */

typedef struct Task
{
	TqPolicy policy;
	int retries;
	int max_runs;
	int64_t delay;
	int64_t now;
	int64_t deadline;
	TqState state;
	bool final;
	int runs;
	TqBudget run;        /* of the last run */
	bool is_started;     /* the last run was claimed once */
	int64_t started;     /* when */
	int64_t taken_until; /* of its claim */
	int first;           /* number of the run that was scheduled or rerun */
	int given;           /* retries that it had */
} Task;

static void
check_task(const Task *task)
{
	const TqBudget *run = &task->run;
	bool has_lost = task->policy.lost_retries != TQ_OFF;
	int lost = has_lost ? task->policy.lost_retries - run->lost_retries_left : 0;

	must(task->runs <= task->max_runs, "never more than max_runs runs");
	must(tq_state_is_resolved(task->state) == task->final,
		 "a task is resolved when its last run is final");
	if (task->runs == 0 || task->given < 0)
		return;
	must(run->run_id == task->runs - 1, "the last run is the last");
	must(run->retries_left >= 0, "retries are never negative");
	must(has_lost ? run->lost_retries_left >= 0 : run->lost_retries_left == TQ_OFF,
		 "lostRetries are never negative");
	must(run->attempt == task->given - run->retries_left,
		 "attempts grow only when a retry is spent");
	must(run->run_id - task->first == run->attempt + lost,
		 "each run since it was scheduled has been paid for");
	must(run->run_id - task->first <=
			 task->given + (has_lost ? task->policy.lost_retries : 0),
		 "no more runs than retries + lostRetries + 1");
}

static void
add_run(Task *task)
{
	task->runs++;
	task->state = TQ_STATE_PENDING;
	task->final = false;
	task->is_started = false;
}

/* A first run, or a rerun. */
static void
start(Task *task, int retries, int64_t delay)
{
	int64_t visible_at = tq_policy_after(task->now, delay);

	must_be_after(visible_at, task->now, delay);
	task->run.run_id = task->runs;
	tq_policy_first(&task->policy, retries, visible_at, &task->run);
	must(task->run.run_id == task->runs,
		 "the number of a run is the caller's");
	must(task->run.attempt == 0 && task->run.retries_left == retries &&
			 task->run.lost_retries_left == task->policy.lost_retries &&
			 task->run.visible_at == visible_at,
		 "a first run has all budgets");
	check_pending_until(&task->policy, &task->run);
	task->first = task->runs;
	task->given = retries;
	add_run(task);
}

static void
schedule(Task *task)
{
	int64_t due = tq_policy_after(task->now, task->policy.total_timeout);

	if (task->policy.total_timeout != TQ_OFF && !task->policy.alert_only &&
		due < task->deadline)
		task->deadline = due;
	start(task, task->retries, task->delay);
}

static void
rerun(Task *task)
{
	int retries = tq_rerun_retries(task->retries, task->max_runs, task->runs);

	must(retries >= 0 && retries <= task->retries &&
			 task->runs + 1 + retries <= (task->max_runs > task->runs
											  ? task->max_runs
											  : task->runs + 1),
		 "a rerun has retries as far as max_runs allows");
	start(task, retries, 0);
}

/* The last run ends. */
static void
end(Task *task, TqResolved reason)
{
	double random = fraction();
	TqBudget before = task->run;
	TqNext next;

	must(!tq_state_is_resolved(task->state),
		 "only what runs or waits can end");
	tq_policy_follow(&task->policy,
					 &task->run,
					 reason,
					 task->now,
					 task->deadline,
					 task->max_runs,
					 random,
					 &next);
	must(same_budget(&before, &task->run), "a run that ended does not change");
	check_follow(&task->policy,
				 &task->run,
				 reason,
				 task->now,
				 task->deadline,
				 task->max_runs,
				 random,
				 &next);
	check_effects(&task->policy, reason);
	task->state = tq_resolved_state(reason);
	task->final = next.follow == TQ_FOLLOW_NONE;
	TELL("  %s, %s",
		 tq_resolved_name(reason),
		 task->final ? "final" : tq_created_name(next.created));
	if (!task->final)
	{
		task->run = next.budget;
		add_run(task);
	}
}

/* A task without a run gets one that is born resolved. */
static void
end_unscheduled(Task *task, TqResolved reason)
{
	task->run = (TqBudget){.run_id = task->runs};
	task->given = TQ_OFF;
	task->runs++;
	task->state = TQ_STATE_PENDING;
	end(task, reason);
	must(task->final, "what was never scheduled is not retried");
}

static void
end_at_once(Task *task, TqResolved reason)
{
	if (task->state == TQ_STATE_UNSCHEDULED)
		end_unscheduled(task, reason);
	else
		end(task, reason);
	must(task->final, "deadline, cancel and skip are final");
}

/* ---- events ---- */

/* Wait for that time, or not: false when it has not come. */
static bool
wait_for(Task *task, int64_t time)
{
	if (task->now < time && below(2) == 0)
		task->now = time;
	return task->now >= time;
}

static bool
may_pend_no_longer(const Task *task)
{
	return task->run.pending_until != 0 && !task->is_started &&
		   task->now >= task->run.pending_until;
}

static void
claim(Task *task)
{
	if (!wait_for(task, task->run.visible_at) ||
		(may_pend_no_longer(task) && !task->policy.alert_only))
		return;
	if (!task->is_started)
		task->started = task->now;
	task->is_started = true;
	task->taken_until = tq_policy_after(task->now,
										task->policy.claim_timeout == TQ_OFF
											? 1200 * S
											: task->policy.claim_timeout);
	task->state = TQ_STATE_RUNNING;
}

static void
defer(Task *task)
{
	int64_t after = duration();

	task->run.visible_at = tq_policy_after(task->now, after);
	must_be_after(task->run.visible_at, task->now, after);
	task->state = TQ_STATE_PENDING;
}

/* Whatever a worker says; what is not a worker's to say changes nothing. */
static void
report(Task *task)
{
	TqResolved reason = (TqResolved) (1 + below(TQ_RESOLVED_LAST));

	if (reason == TQ_RESOLVED_COMPLETED || reason == TQ_RESOLVED_FAILED ||
		reason == TQ_RESOLVED_FAILED_TERMINAL ||
		reason == TQ_RESOLVED_CANCELED_BY_WORKER ||
		tq_resolved_is_reportable(reason))
		end(task, reason);
}

static void
pending_timeout(Task *task)
{
	if (task->is_started || task->run.pending_until == 0 ||
		!wait_for(task, task->run.pending_until) || task->policy.alert_only)
		return;
	end(task, TQ_RESOLVED_PENDING_TIMEOUT);
}

static void
run_timeout(Task *task)
{
	if (!task->is_started || task->policy.run_timeout == TQ_OFF ||
		!wait_for(task,
				  tq_policy_after(task->started, task->policy.run_timeout)) ||
		task->policy.alert_only)
		return;
	end(task, TQ_RESOLVED_RUN_TIMEOUT);
}

static void
apply(Task *task, TqEvent event)
{
	switch (event)
	{
		case TQ_EVENT_SCHEDULE:
		case TQ_EVENT_DEPENDENCIES_MET:
			if (task->now < task->deadline)
				schedule(task);
			break;
		case TQ_EVENT_RERUN:
			if (task->now < task->deadline && task->runs < task->max_runs)
				rerun(task);
			break;
		case TQ_EVENT_CANCEL:
			end_at_once(task, TQ_RESOLVED_CANCELED);
			break;
		case TQ_EVENT_DEADLINE:
			if (wait_for(task, task->deadline))
				end_at_once(task, TQ_RESOLVED_DEADLINE_EXCEEDED);
			break;
		case TQ_EVENT_CLAIM:
			claim(task);
			break;
		case TQ_EVENT_RECLAIM:
			task->taken_until = tq_policy_after(task->now,
												task->policy.claim_timeout);
			must(task->taken_until >= task->now, "a claim is never over");
			break;
		case TQ_EVENT_CLAIM_EXPIRED:
			if (wait_for(task, task->taken_until))
				end(task, TQ_RESOLVED_CLAIM_EXPIRED);
			break;
		case TQ_EVENT_REPORT:
			report(task);
			break;
		case TQ_EVENT_SKIP:
			end_at_once(task, TQ_RESOLVED_SKIPPED);
			break;
		case TQ_EVENT_DEFER:
			defer(task);
			break;
		case TQ_EVENT_PENDING_TIMEOUT:
			pending_timeout(task);
			break;
		case TQ_EVENT_RUN_TIMEOUT:
			run_timeout(task);
			break;
	}
}

/* Half of the time what a task has to expect, and anything else. */
static TqEvent
some_event(const Task *task)
{
	static const TqEvent ends[] = {TQ_EVENT_REPORT,
								   TQ_EVENT_CLAIM_EXPIRED,
								   TQ_EVENT_RUN_TIMEOUT,
								   TQ_EVENT_DEFER};
	int choice = below(32);

	if (choice < TQ_EVENTS)
		return (TqEvent) choice;
	if (task->state == TQ_STATE_UNSCHEDULED)
		return TQ_EVENT_SCHEDULE;
	if (task->state == TQ_STATE_PENDING)
		return choice % 4 == 0 ? TQ_EVENT_PENDING_TIMEOUT : TQ_EVENT_CLAIM;
	if (task->state == TQ_STATE_RUNNING)
		return ends[choice % 4];
	return choice % 4 == 0 ? TQ_EVENT_RERUN : (TqEvent) (choice % TQ_EVENTS);
}

static void
happen(Task *task, TqEvent event)
{
	TqVerdict verdict = tq_state_verdict(task->state, event);
	TqState before = task->state;
	int runs = task->runs;
	bool was_final = task->final;

	seen_event[event][task->state]++;
	TELL("%3d: %s, event %d, verdict %d, now %" PRId64,
		 told++,
		 tq_state_name(task->state),
		 (int) event,
		 (int) verdict,
		 task->now);
	must((verdict == TQ_VERDICT_NO_RUN) <= (task->runs == 0),
		 "there is no run only before the first");
	if (verdict == TQ_VERDICT_APPLY)
		apply(task, event);
	must(verdict == TQ_VERDICT_APPLY || task->state == before,
		 "only what applies changes a task");
	must(!was_final || task->runs == runs || event == TQ_EVENT_RERUN,
		 "no run follows a final one but by a rerun");
	must(!was_final || task->state == before || event == TQ_EVENT_RERUN,
		 "what is final stays so but for a rerun");
	must(task->runs - runs <= 1, "one event, one run");
	check_task(task);
}

/* Times of our days, and some near the limits. */
static int64_t
some_time(void)
{
	static const int64_t limits[] = {0, INT64_MAX / 2, INT64_MAX - 5000000};
	int choice = below(8);

	return choice < 3 ? limits[choice]
					  : INT64_C(800000000000000) + (int64_t) bytes(4);
}

static Task
some_task(void)
{
	Task task = {.state = TQ_STATE_UNSCHEDULED};

	task.policy = some_policy();
	task.max_runs = 1 + below(below(4) == 0 ? 50 : 12);
	task.retries = below(50);
	if (tq_policy_fault(&task.policy, task.retries, task.max_runs) != NULL)
		task.retries = below(task.max_runs);
	task.delay = below(2) == 0 ? 0 : duration();
	task.now = some_time();
	task.deadline = tq_policy_after(task.now, duration());
	return task;
}

/* The rules for policies, once more. */
static void
check_fault(const Task *task)
{
	const TqPolicy *policy = &task->policy;
	int64_t all = task->retries;
	bool good;

	if (policy->lost_retries != TQ_OFF)
		all += policy->lost_retries;
	good = all < task->max_runs &&
		   (policy->run_timeout == TQ_OFF ||
			policy->claim_timeout <= policy->run_timeout) &&
		   (policy->total_timeout == TQ_OFF ||
			policy->run_timeout <= policy->total_timeout);
	must((tq_policy_fault(policy, task->retries, task->max_runs) == NULL) ==
			 good,
		 "a policy is faulty when a rule is broken");
}

static void
live(void)
{
	Task task = some_task();
	int events = 4 + below(EVENTS_MAX - 3);

	tell_policy(&task.policy);
	TELL("retries %d, max_runs %d, delay %" PRId64 ", deadline %" PRId64,
		 task.retries,
		 task.max_runs,
		 task.delay,
		 task.deadline);
	check_fault(&task);
	for (int i = 0; i < events && !has_ended(); i++)
	{
		if (below(4) == 0)
			task.now = tq_policy_after(task.now, duration());
		happen(&task, some_event(&task));
	}
}

/* ---- any numbers at all, which no policy that was read can have ---- */

static int64_t
any_number(void)
{
	static const int64_t limits[] =
		{0, 1, -1, INT64_MAX, INT64_MIN, LONGEST, LONGEST + 1, INT32_MAX};
	int choice = below(16);

	return choice < 8 ? limits[choice] : (int64_t) bytes(8);
}

static int
any_int(void)
{
	static const int limits[] = {0, 1, -1, INT32_MAX, INT32_MIN, 62, 63, 64};
	int choice = below(16);

	return choice < 8 ? limits[choice] : (int) (int32_t) bytes(4);
}

static TqPolicy
any_policy(void)
{
	TqPolicy policy = {.retry_on = (uint32_t) bytes(4),
					   .lost_retries = any_int(),
					   .backoff = (TqBackoff) below(3),
					   .retry_delay = any_number(),
					   .factor = any_number(),
					   .max_delay = any_number(),
					   .jitter = any_number(),
					   .claim_timeout = any_number(),
					   .run_timeout = any_number(),
					   .pending_timeout = any_number(),
					   .total_timeout = any_number(),
					   .alert_only = below(2) == 0,
					   .on_unsuccessful = (TqUnsuccessful) below(4),
					   .dead_letter = below(2) == 0};

	return policy;
}

/* Nothing overflows, and no budget is spent that is not there. */
static void
strain(void)
{
	TqPolicy policy = any_policy();
	TqBudget run = {.run_id = any_int(),
					.attempt = any_int(),
					.retries_left = any_int(),
					.lost_retries_left = any_int(),
					.visible_at = any_number(),
					.pending_until = any_number()};
	TqResolved reason = (TqResolved) below(TQ_RESOLVED_LAST + 1);
	int64_t now = any_number();
	int64_t deadline = any_number();
	int64_t ms = any_number();
	int max_runs = any_int();
	double random = fraction();
	TqNext next;

	tell_policy(&policy);
	must_be_after(tq_policy_after(now, ms), now, ms);
	check_delay(&policy, run.attempt, random);
	check_effects(&policy, reason);
	(void) tq_policy_fault(&policy, run.retries_left, max_runs);
	tq_policy_follow(&policy,
					 &run,
					 reason,
					 now,
					 deadline,
					 max_runs,
					 random,
					 &next);
	must(next.follow ==
			 should_follow(&policy, &run, reason, now, deadline, max_runs),
		 "a run follows when section 4 says so");
	if (next.follow == TQ_FOLLOW_NONE)
		return;
	must(next.budget.visible_at >= now, "a time lies before its cause");
	must(next.budget.run_id < max_runs, "never more than max_runs runs");
	must(next.follow == TQ_FOLLOW_LOST ? next.budget.lost_retries_left >= 0
									   : next.budget.retries_left >= 0,
		 "a budget was spent that was not there");
}

/* A name is read back as what it names; what names nothing, as nothing. */
static void
read_names(void)
{
	char name[24];
	size_t len = (size_t) below(sizeof(name));
	TqBackoff backoff;
	TqUnsuccessful effect;
	TqResolved reason;

	for (size_t i = 0; i < len; i++)
		name[i] = (char) bytes(1);
	name[len] = '\0';
	if (tq_backoff_parse(name, &backoff))
		must(strcmp(tq_backoff_name(backoff), name) == 0, "name of backoff");
	if (tq_unsuccessful_parse(name, &effect))
		must(strcmp(tq_unsuccessful_name(effect), name) == 0,
			 "name of effect");
	reason = tq_resolved_parse(name);
	if (reason != TQ_RESOLVED_NONE)
		must(strcmp(tq_resolved_name(reason), name) == 0, "name of reason");
}

static void
one_life(void)
{
	int choice = below(16);

	told = 0;
	if (choice == 0)
		read_names();
	else if (choice < 4)
		strain();
	else
		live();
}

#ifdef TQ_FUZZ

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	chance.data = data;
	chance.left = size;
	one_life();
	return 0;
}

#else

static uint64_t seed;
static long lives = LIVES;
static long only = -1;

/* Each life has a chance of its own, so that it can be lived again alone. */
static bool
is_good(long life)
{
	chance.state = scramble(seed + scramble((uint64_t) life + 1));
	if (setjmp(broken) != 0)
		return false;
	one_life();
	return true;
}

static void
tell(long life)
{
	telling = true;
	printf("# life %ld of seed %" PRIu64 "\n", life, seed);
	(void) is_good(life);
	telling = false;
}

/* The first life that breaks a rule, or -1. */
static long
find_broken(void)
{
	for (long life = 0; life < lives; life++)
	{
		if (!is_good(life))
			return life;
	}
	return -1;
}

/* Was every event met in every state? */
static bool
saw_events(void)
{
	bool all = true;

	for (int event = 0; event < TQ_EVENTS; event++)
	{
		for (int state = 0; state < TQ_STATES; state++)
		{
			if (seen_event[event][state] > 0)
				continue;
			all = false;
			printf("# never: event %d while %s\n",
				   event,
				   tq_state_name((TqState) state));
		}
	}
	return all;
}

/* Did each reason end tasks, and was each that may be retried? */
static bool
saw_reasons(void)
{
	bool all = seen_follow[TQ_FOLLOW_LOST][TQ_RESOLVED_CLAIM_EXPIRED] > 0;

	for (int reason = 1; reason <= TQ_RESOLVED_LAST; reason++)
	{
		if (reason == TQ_RESOLVED_SUPERSEDED)
			continue; /* which nothing resolves */
		if (seen_follow[TQ_FOLLOW_NONE][reason] > 0 &&
			(!tq_policy_may_retry((TqResolved) reason) ||
			 seen_follow[TQ_FOLLOW_RETRY][reason] > 0))
			continue;
		all = false;
		printf("# never: a retry and an end by %s\n",
			   tq_resolved_name((TqResolved) reason));
	}
	return all;
}

static bool
read_arguments(int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2)
	{
		char *end = "";

		if (i + 1 == argc)
			return false;
		if (strcmp(argv[i], "-s") == 0)
			seed = strtoull(argv[i + 1], &end, 10);
		else if (strcmp(argv[i], "-n") == 0)
			lives = strtol(argv[i + 1], &end, 10);
		else if (strcmp(argv[i], "-l") == 0)
			only = strtol(argv[i + 1], &end, 10);
		else
			return false;
		if (*end != '\0' || *argv[i + 1] == '\0')
			return false;
	}
	return true;
}

int
main(int argc, char **argv)
{
	long bad;
	bool saw;

	seed = (uint64_t) time(NULL);
	if (!read_arguments(argc, argv))
	{
		fprintf(stderr, "usage: %s [-s SEED] [-n LIVES] [-l LIFE]\n", argv[0]);
		return 2;
	}
	if (only >= 0)
	{
		tell(only);
		return rule != NULL;
	}
	bad = find_broken();
	printf("%sok 1 - %ld lives of tasks, seed %" PRIu64 "\n",
		   bad < 0 ? "" : "not ",
		   lives,
		   seed);
	if (bad >= 0)
		tell(bad);
	saw = bad >= 0 || (saw_events() && saw_reasons());
	printf("%sok 2 - with every event in every state, and every end%s\n",
		   saw ? "" : "not ",
		   bad < 0 ? "" : " # skip a rule was broken");
	printf("1..2\n");
	return bad >= 0 || !saw;
}

#endif
