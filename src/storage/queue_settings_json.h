/*
 * queue_settings_json.h
 *	  Reads the settings of a queue from JSON, key by key.
 */
#ifndef TQ_QUEUE_SETTINGS_JSON_H
#define TQ_QUEUE_SETTINGS_JSON_H

#include "utils/jsonb.h"

#include "../core/queue_settings.h"

/* Settings as they were given. */
typedef struct TqGivenSettings
{
	TqQueueSettings settings;
	Jsonb *policy;  /* of tasks that do not say otherwise; NULL: none */
	Jsonb *weights; /* of fairness keys, all above 0; NULL: none */
} TqGivenSettings;

#define TQ_QUEUE_SETTINGS_BYTES 16000 /* as jsonb, and as text */

extern const char *tq_queue_settings_parse(const Jsonb *json,
										   TqGivenSettings *given);

#endif /* TQ_QUEUE_SETTINGS_JSON_H */
