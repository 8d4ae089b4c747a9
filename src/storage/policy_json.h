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
	int retries;         /* TQ_OFF: absent */
	int64_t delay;       /* ms; TQ_OFF: absent */
	char *keys[TQ_KEYS]; /* NULL: absent */
} TqGivenPolicy;

#define TQ_POLICY_BYTES 2000 /* as jsonb, and as text */

extern const char *tq_policy_parse(const Jsonb *json, TqGivenPolicy *given);
extern const char *tq_policy_parse_stored(const Jsonb *json,
										  TqGivenPolicy *given);
extern Jsonb *tq_policy_without_keys(Jsonb *policy);
extern Jsonb *tq_policy_with_keys(Jsonb *stored, char *const *keys);
extern Jsonb *tq_policy_of_default(Jsonb *policy);
extern Jsonb *tq_policy_with_default(Jsonb *own, Jsonb *stored_default);
extern bool tq_policy_has_default(const Jsonb *stored);
extern Jsonb *tq_policy_own(Jsonb *stored);

#endif /* TQ_POLICY_JSON_H */
