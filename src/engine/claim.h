/*
 * claim.h
 *	  Claims pending runs for workers, prolongs claims, defers runs.
 */
#ifndef TQ_CLAIM_H
#define TQ_CLAIM_H

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "../storage/run_table.h"
#include "../storage/task_table.h"
#include "../util/slugid.h"
#include "credentials.h"

extern TqClaim *tq_claim_best(const char *queue, const char *worker_group,
							  const char *worker_id, int max, TimestampTz now,
							  int *found, TimestampTz *again);
extern bool tq_claim_is_possible(int32 queue, TimestampTz now,
								 TimestampTz *again);
extern void tq_claim_note_seen(const char *queue, const char *worker_group,
							   const char *worker_id, TimestampTz now);
extern bool tq_claim_one(const TqSlug *task_id, int run_id,
						 const char *worker_group, const char *worker_id,
						 TimestampTz now, TqClaim *claim);
extern bool tq_claim_read(TqRunWriter *writer, const TqTask *task, int run_id,
						  int32 holder, TqEvent event, TimestampTz now,
						  TqRun *run);
extern void tq_claim_prolong(const TqSlug *task_id, int run_id, int32 holder,
							 TimestampTz now, TqClaim *claim);
extern void tq_claim_defer(TqTask *task, int run_id, int32 holder,
						   int64 after_ms, TimestampTz now);

#endif /* TQ_CLAIM_H */
