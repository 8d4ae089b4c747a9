/*
 * claim_wait.h
 *	  A claim that waits when there is nothing to claim.
 */
#ifndef TQ_CLAIM_WAIT_H
#define TQ_CLAIM_WAIT_H

#include "claim.h"

extern TqClaim *tq_claim_wait(const char *queue, const char *worker_group,
							  const char *worker_id, int max, int64 wait_ms,
							  int *found);

#endif /* TQ_CLAIM_WAIT_H */
