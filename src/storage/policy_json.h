/*
 * policy_json.h
 *	  Reads a policy from JSON, key by key.
 */
#ifndef TQ_POLICY_JSON_H
#define TQ_POLICY_JSON_H

#include "utils/jsonb.h"

#include "../core/policy.h"

typedef struct TqGivenPolicy
{
	TqPolicy policy;
	int retries;   /* TQ_OFF: absent */
	int64_t delay; /* ms; TQ_OFF: absent */
} TqGivenPolicy;

#define TQ_POLICY_BYTES 2000 /* as jsonb */

extern const char *tq_policy_parse(const Jsonb *json, TqGivenPolicy *given);
extern const char *tq_duration_parse(const JsonbValue *value, int64 *ms);

#endif /* TQ_POLICY_JSON_H */
