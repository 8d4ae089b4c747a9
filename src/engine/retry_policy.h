/*
 * retry_policy.h
 *	  The policy that the argument retry of enqueue() stands for.
 */
#ifndef TQ_RETRY_POLICY_H
#define TQ_RETRY_POLICY_H

#include "utils/jsonb.h"

extern Jsonb *tq_retry_policy(Jsonb *policy);

#endif /* TQ_RETRY_POLICY_H */
