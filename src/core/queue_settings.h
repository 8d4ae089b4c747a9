/*
 * queue_settings.h
 *	  Settings of a task queue.
 */
#ifndef TQ_QUEUE_SETTINGS_H
#define TQ_QUEUE_SETTINGS_H

#include "policy.h"

/*
 * What doc/spec/policy.md 6 says of a queue, except for the default policy of
 * its tasks.  A limit of 0 is none.
 */
typedef struct TqQueueSettings
{
	bool is_paused;
	int64_t claim_timeout;    /* milliseconds; TQ_OFF: tq.claim_timeout */
	int64_t retain_completed; /* as in a policy */
	int64_t retain_failed;
	int concurrent_limit; /* running tasks */
	int rate_count;       /* claims, in each rate_interval */
	int64_t rate_interval;
	int max_pending; /* tasks; more are not created, as in the next two */
	int max_delayed;
	int max_running;
	int key_concurrent_limit; /* of the tasks with one concurrencyKey */
	int key_rate_count;
	int64_t key_rate_interval;
	bool is_fair;           /* claims go round the fairness keys */
	int64_t aging_interval; /* milliseconds; 0: priorities stay */
} TqQueueSettings;

extern const TqQueueSettings tq_queue_settings_plain;
extern bool tq_queue_settings_limit_keys(const TqQueueSettings *settings);
extern bool tq_queue_settings_count(const TqQueueSettings *settings);
extern TqRetention tq_queue_settings_retention(const TqQueueSettings *settings,
											   TqRetention otherwise);
extern const char *tq_queue_settings_fault(const TqQueueSettings *settings);

#endif /* TQ_QUEUE_SETTINGS_H */
