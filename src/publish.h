/*
 * publish.h
 *	  The outbox: how the rules record what has happened.
 */
#ifndef TQ_PUBLISH_H
#define TQ_PUBLISH_H

#include "store.h"

extern bool tq_publish_is_wanted(TqExchange exchange);
extern TqMessage tq_publish_make(TqExchange exchange, const TqTask *task,
								 int run_id, const TqRun *last);
extern bool tq_publish_tells_of_group(const TqMessage *message);
extern void tq_publish(const TqMessage *messages, int n);
extern void tq_publish_claimable(const TqPending *rows, int n);
extern bool tq_publish_is_claimable_note(const TqMessage *message);

#endif /* TQ_PUBLISH_H */
