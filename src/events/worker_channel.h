/*
 * worker_channel.h
 *	  Channels of workers: what is taken from a worker.
 */
#ifndef TQ_WORKER_CHANNEL_H
#define TQ_WORKER_CHANNEL_H

#include "../core/types.h"
#include "../storage/outbox_table.h"
#include "../storage/run_table.h"
#include "../util/slugid.h"
#include "outbox.h"

extern char *tq_channel_name(const char *prefix, const char *name);
extern char *tq_worker_channel_name(const char *group, const char *id);
extern bool tq_worker_channel_is_listened(void);
extern void tq_worker_channel_add(TqOutboxBatch *batch, const TqSlug *task_id,
								  const TqRun *run, const char *reason);
extern void tq_worker_channel_notify(const TqMessage *notes, int n);

#endif /* TQ_WORKER_CHANNEL_H */
