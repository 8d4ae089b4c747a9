/*
 * claim_queues.h
 *	  Claims from several queues in one call.
 */
#ifndef TQ_CLAIM_QUEUES_H
#define TQ_CLAIM_QUEUES_H

#include "claim.h"
#include "queue_set.h"

extern TqClaim *tq_claim_queues(TqQueueSet *set, bool takes_turns,
								const char *worker_group,
								const char *worker_id, int max, int64 wait_ms,
								int *found);

#endif /* TQ_CLAIM_QUEUES_H */
