/*
 * claim_wait.h
 *	  A claim that waits when there is nothing to claim, and a reclaim that
 *	  waits while the run goes on.
 */
#ifndef TQ_CLAIM_WAIT_H
#define TQ_CLAIM_WAIT_H

#include "claim.h"

extern TqClaim *tq_claim_wait(const char *queue, const char *worker_group,
							  const char *worker_id, int max, int64 wait_ms,
							  int *found);
extern void tq_claim_stay(const TqSlug *task_id, int run_id, int32 holder,
						  int64 wait_ms);

#endif /* TQ_CLAIM_WAIT_H */
