/*
 * policy_table.h
 *	  Rows of tq_internal.policy: policies, interned as they were given.
 */
#ifndef TQ_POLICY_TABLE_H
#define TQ_POLICY_TABLE_H

#include "utils/jsonb.h"

#include "../core/policy.h"

extern int32 tq_policy_intern(Jsonb *policy);
extern const TqPolicy *tq_policy_get(int32 id);
extern Jsonb *tq_policy_json(int32 id);
extern int32 *tq_policies_that_retain(int *found);
extern int64 tq_policy_longest_claim(void);

#endif /* TQ_POLICY_TABLE_H */
