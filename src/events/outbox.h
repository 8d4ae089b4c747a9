/*
 * outbox.h
 *	  The outbox: records the messages of a transition in its transaction.
 */
#ifndef TQ_OUTBOX_H
#define TQ_OUTBOX_H

#include "utils/jsonb.h"

#include "../core/types.h"
#include "../storage/outbox_table.h"
#include "../storage/pending_table.h"
#include "../storage/run_table.h"
#include "../storage/task_table.h"

/*
 * The messages of a call, in the order in which readers are to see them.  All
 * zeros is an empty batch.
 */
typedef struct TqOutboxBatch
{
	TqMessage *messages; /* only those that are wanted */
	int n;
	int room;
} TqOutboxBatch;

extern bool tq_outbox_is_wanted(TqExchange exchange);
extern bool tq_outbox_concerns_group(const TqMessage *message);
extern void tq_outbox_add_run(TqOutboxBatch *batch, const TqTask *task,
							  const TqRun *run, const TqRun *last);
extern void tq_outbox_add_message(TqOutboxBatch *batch,
								  const TqMessage *message);
extern void tq_outbox_add_notice(TqOutboxBatch *batch,
								 const TqMessage *notice);
extern void tq_outbox_add_note(TqOutboxBatch *batch, const TqRun *last);
extern bool tq_outbox_leave_timer(TqOutboxBatch *batch, TqExchange exchange,
								  TimestampTz due, TimestampTz now);
extern void tq_outbox_append(TqOutboxBatch *batch);
extern void tq_outbox_append_detail(TqExchange exchange, const TqTask *task,
									int run_id, const TqRun *last,
									Jsonb *detail);
extern void tq_outbox_append_claimable(const TqPending *rows, int n);
extern bool tq_outbox_is_claimable_note(const TqMessage *message);

#endif /* TQ_OUTBOX_H */
