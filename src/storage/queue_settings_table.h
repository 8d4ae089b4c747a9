/*
 * queue_settings_table.h
 *	  Rows of tq_internal.queue_settings: what queues are set to.
 */
#ifndef TQ_QUEUE_SETTINGS_TABLE_H
#define TQ_QUEUE_SETTINGS_TABLE_H

#include "utils/jsonb.h"

#include "../core/policy.h"
#include "../core/queue_settings.h"

extern void tq_queue_settings_changed(void);
extern void tq_queue_settings_reload(void);
extern const TqQueueSettings *tq_queue_settings(int32 queue);
extern bool tq_queue_settings_exist(void);
extern bool tq_queue_settings_are_fair(void);
extern double tq_queue_settings_weight(int32 queue, const char *key);
extern int32 *tq_queue_settings_with_moves(uint64 *version, int *found);
extern Jsonb *tq_queue_settings_policy(const char *queue);
extern TqRetention tq_queue_settings_shortest(TqRetention kept);
extern int32 *tq_queue_settings_with_rate(int *found);
extern int64 tq_queue_settings_longest_claim(void);
extern Jsonb *tq_queue_settings_read(int32 queue);
extern Jsonb *tq_queue_settings_merge(int32 queue, Jsonb *changes);
extern void tq_queue_settings_delete(int32 queue);

#endif /* TQ_QUEUE_SETTINGS_TABLE_H */
