/*
 * publisher.h
 *	  The publisher: gives committed messages their ids, and notifies
 *	  listeners.
 */
#ifndef TQ_PUBLISHER_H
#define TQ_PUBLISHER_H

#include "../storage/pending_table.h"

extern void tq_publisher_notify_claimable(const TqPending *rows, int n);

/*
 * Records whether a pass is part of a transaction block.  There nothing is
 * published and no segment of the log is emptied, because the locks would be
 * held until COMMIT.  upkeep() records it before it begins subtransactions, in
 * which the server no longer makes the difference.
 */
extern void tq_publisher_set_block(bool in_block);
extern bool tq_publisher_is_in_block(void);

extern int64 tq_publisher_pass(bool *more);
extern void tq_publisher_watch_unpublished(void);
extern char *tq_queue_channel_name(const char *task_queue_id);

#endif /* TQ_PUBLISHER_H */
