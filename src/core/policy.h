/*
 * policy.h
 *	  What follows a run that has ended: budgets, delays, effects.
 */
#ifndef TQ_POLICY_H
#define TQ_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "types.h"

/*
 * When the timer of a claim is due for the first time, after the claim.  Nearly
 * all runs are resolved before, so that their timers go then and not at the end
 * of the claim.  At 3,300 claims per second, a list of the running tasks has to
 * check 17,000 tasks, which takes 40 ms; with a minute 200,000, which takes
 * 500 ms; with the twenty minutes of a claim 4,000,000, and 5 s.  A run of
 * twenty minutes is checked nine times for that.
 */
#define TQ_FIRST_CHECK_MS 5000

/* How the delay before a new attempt grows (doc/spec/policy.md 4). */
typedef enum TqBackoff
{
	TQ_BACKOFF_FIXED = 0,
	TQ_BACKOFF_LINEAR = 1,
	TQ_BACKOFF_EXPONENTIAL = 2
} TqBackoff;

/* How the final failure or exception of a task affects other tasks. */
typedef enum TqUnsuccessful
{
	TQ_UNSUCCESSFUL_BLOCK = 0,
	TQ_UNSUCCESSFUL_CANCEL_GROUP = 1,
	TQ_UNSUCCESSFUL_TOLERATE = 2,
	TQ_UNSUCCESSFUL_FORGIVE = 3,
	TQ_UNSUCCESSFUL_CANCEL_DEPENDENTS = 4
} TqUnsuccessful;

#define TQ_UNSUCCESSFUL_LAST TQ_UNSUCCESSFUL_CANCEL_DEPENDENTS

/*
 * Keys that tasks may have by their policies (doc/spec/policy.md 11); a table
 * stores the numbers.
 */
typedef enum TqTaskKey
{
	TQ_KEY_UNIQUE = 0,
	TQ_KEY_SERIAL = 1,
	TQ_KEY_CONCURRENCY = 2,
	TQ_KEY_FAIRNESS = 3
} TqTaskKey;

#define TQ_KEYS 4

/* What the creation of a task does whose unique key another task has. */
typedef enum TqOnConflict
{
	TQ_CONFLICT_RETURN = 0, /* nothing */
	TQ_CONFLICT_REPLACE = 1,
	TQ_CONFLICT_REJECT = 2
} TqOnConflict;

/* A policy (doc/spec/policy.md 2) without retries, which the task stores. */
typedef struct TqPolicy
{
	uint32_t retry_on;   /* 1 << reason, for each that is retried */
	int lost_retries;    /* TQ_OFF: a lost run uses up a retry */
	TqBackoff backoff;   /* how the delay of a new attempt grows */
	int64_t retry_delay; /* milliseconds, as are all durations that follow */
	int64_t factor;      /* of linear growth; not a duration */
	int64_t max_delay;   /* 0: no cap */
	int64_t jitter;
	int64_t claim_timeout; /* TQ_OFF: the queue's */
	int64_t run_timeout;   /* TQ_OFF: none, also in the next two */
	int64_t pending_timeout;
	int64_t total_timeout;
	bool alert_only; /* run, pending and total timeout only alert */
	TqUnsuccessful on_unsuccessful;
	bool dead_letter;
	int64_t retain_completed; /* TQ_OFF: as the settings say, also the next */
	int64_t retain_failed;
	bool drop_payload;       /* payload and result go at the completion */
	uint32_t keys;           /* 1 << TqTaskKey, for each that the task has */
	bool unique_in_database; /* else in the queue */
	uint32_t unique_states;  /* 1 << TqState, in which a task has its key */
	int64_t unique_period;   /* from its creation; TQ_OFF: not by time */
	TqOnConflict on_conflict;
	bool serial_holds; /* the end without success keeps the serial key */
} TqPolicy;

/* How long a resolved task is kept, by its outcome; milliseconds. */
typedef struct TqRetention
{
	int64_t completed;
	int64_t failed; /* or exception */
} TqRetention;

/* The budgets that a run has left, and which attempt it is. */
typedef struct TqBudget
{
	int run_id;
	int attempt; /* from 0 */
	int retries_left;
	int lost_retries_left; /* TQ_OFF: no separate budget */
	int64_t visible_at;    /* not claimable before; microseconds */
	int64_t pending_until; /* not pending after; 0: no limit */
} TqBudget;

/* What follows a run that has ended. */
typedef enum TqFollow
{
	TQ_FOLLOW_NONE, /* nothing: it was the task's last run */
	TQ_FOLLOW_LOST, /* another run of the same attempt, at once */
	TQ_FOLLOW_RETRY /* a run of the next attempt */
} TqFollow;

typedef struct TqNext
{
	TqFollow follow;
	TqCreated created; /* reasonCreated of the run that follows */
	TqBudget budget;   /* of that run */
} TqNext;

extern const TqPolicy tq_policy_plain; /* Taskcluster's rules */
extern void tq_policy_first(const TqPolicy *policy, int retries,
							int64_t visible_at, TqBudget *budget);
extern void tq_policy_follow(const TqPolicy *policy, const TqBudget *run,
							 TqResolved reason, int64_t now, int64_t deadline,
							 int max_runs, double random, TqNext *next);
extern int64_t tq_policy_pending_until(const TqPolicy *policy,
									   int64_t scheduled, int64_t started,
									   int64_t limit);
extern bool tq_policy_is_overdue(const TqPolicy *policy, int64_t scheduled,
								 int64_t started, int64_t limit, int64_t now);
extern int64_t tq_policy_delay(const TqPolicy *policy, int attempt,
							   double random);
extern int64_t tq_policy_after(int64_t time, int64_t ms);
extern int64_t tq_policy_visible(int64_t created, int64_t delay,
								 int64_t scheduled);
extern int64_t tq_policy_delay_until(int64_t created, int64_t run_at);
extern int64_t tq_policy_check_claim(int64_t started, int64_t taken_until,
									 int64_t now);
extern bool tq_policy_may_retry(TqResolved reason);
extern bool tq_policy_tolerates(const TqPolicy *policy, TqResolved reason);
extern bool tq_policy_applies(TqResolved reason);
extern TqRetention tq_policy_retention(const TqPolicy *policy,
									   TqRetention otherwise);
extern const char *tq_policy_fault(const TqPolicy *policy, int retries,
								   int max_runs);
extern bool tq_policy_is_held(const TqPolicy *policy, TqState state,
							  int64_t created, int64_t now);
extern bool tq_policy_has_key(const TqPolicy *policy, TqTaskKey key);
extern const char *tq_key_name(TqTaskKey key);
extern bool tq_on_conflict_parse(const char *name, TqOnConflict *action);
extern const char *tq_backoff_name(TqBackoff backoff);
extern bool tq_backoff_parse(const char *name, TqBackoff *backoff);
extern const char *tq_unsuccessful_name(TqUnsuccessful effect);
extern bool tq_unsuccessful_parse(const char *name, TqUnsuccessful *effect);

#endif /* TQ_POLICY_H */
