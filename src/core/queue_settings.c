/*
 * queue_settings.c
 *	  Settings of a task queue.
 *
 * Pure C.  Says what the settings of a queue mean together; the layers above
 * read and keep them.  Follows doc/spec/policy.md 6.
 */
#include <stddef.h>

#include "queue_settings.h"

const TqQueueSettings tq_queue_settings_plain = {
	.is_paused = false,
	.claim_timeout = TQ_OFF,
	.retain_completed = TQ_OFF,
	.retain_failed = TQ_OFF,
	.concurrent_limit = 0,
	.rate_count = 0,
	.rate_interval = 0,
	.max_pending = 0,
	.max_delayed = 0,
	.max_running = 0,
	.key_concurrent_limit = 0,
	.key_rate_count = 0,
	.key_rate_interval = 0,
	.is_fair = false,
	.aging_interval = 0,
};

/* Returns whether the tasks with one concurrencyKey are limited. */
bool
tq_queue_settings_limit_keys(const TqQueueSettings *settings)
{
	return settings->key_concurrent_limit > 0 || settings->key_rate_count > 0;
}

/* Returns whether the settings need the counters of the queue. */
bool
tq_queue_settings_count(const TqQueueSettings *settings)
{
	/* Claims have to take slots. */
	return (settings->concurrent_limit > 0 || settings->rate_count > 0) ||
		   settings->max_pending > 0 || settings->max_delayed > 0 ||
		   settings->max_running > 0;
}

/*
 * Returns how long a task of the queue is kept after its resolution, unless its
 * policy says so; `otherwise` is what the settings of the server say.
 */
TqRetention
tq_queue_settings_retention(const TqQueueSettings *settings,
							TqRetention otherwise)
{
	if (settings->retain_completed != TQ_OFF)
		otherwise.completed = settings->retain_completed;
	if (settings->retain_failed != TQ_OFF)
		otherwise.failed = settings->retain_failed;
	return otherwise;
}

/*
 * Checks the fields against each other; each of them is valid by itself.
 * Returns the rule that they break, as a text that follows the word "settings"
 * in an error, or NULL.
 */
const char *
tq_queue_settings_fault(const TqQueueSettings *settings)
{
	if (settings->rate_count > 0 && settings->rate_interval <= 0)
		return "must have a \"rateInterval\" above 0 beside \"rateCount\"";
	if (settings->key_rate_count > 0 && settings->key_rate_interval <= 0)
		return "must have a \"keyRateInterval\" above 0 beside "
			   "\"keyRateCount\"";
	return NULL;
}
