/*
 * outbox.h
 *	  The outbox: records the messages of a transition in its transaction.
 */
#ifndef TQ_OUTBOX_H
#define TQ_OUTBOX_H

#include "../core/types.h"
#include "../storage/outbox_table.h"
#include "../storage/pending_table.h"
#include "../storage/run_table.h"
#include "../storage/task_table.h"

extern bool tq_outbox_is_wanted(TqExchange exchange);
extern TqMessage tq_outbox_message(TqExchange exchange, const TqTask *task,
								   int run_id, const TqRun *last);
extern bool tq_outbox_concerns_group(const TqMessage *message);
extern void tq_outbox_append(const TqMessage *messages, int n);
extern void tq_outbox_append_claimable(const TqPending *rows, int n);
extern bool tq_outbox_is_claimable_note(const TqMessage *message);

#endif /* TQ_OUTBOX_H */
