/*
 * subscription_table.h
 *	  Rows of tq_internal.subscription and tq_internal.subscription_binding:
 *	  durable readers, and how far they have acknowledged.
 */
#ifndef TQ_SUBSCRIPTION_TABLE_H
#define TQ_SUBSCRIPTION_TABLE_H

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "binding_table.h"

/* How far a subscription has acknowledged. */
typedef struct TqSubscriptionPosition
{
	int64 id;
	TimestampTz at; /* last acknowledgement, or creation */
	bool is_own;    /* the row was written by this transaction */
} TqSubscriptionPosition;

/*
 * A subscription that has not acknowledged all messages that will be dropped.
 */
typedef struct TqBehind
{
	char *name;
	int64 acked_id;
} TqBehind;

extern void tq_subscription_insert(const char *name, TqExchange exchange,
								   const char *pattern, const char *creator,
								   TimestampTz now);
extern int64 tq_subscription_count_others(const char *creator,
										  const char *name);
extern int64 tq_subscription_count_bindings(const char *name,
											TqExchange exchange,
											const char *pattern);
extern bool tq_subscription_delete(const char *name);
extern bool tq_subscription_find(const char *name,
								 TqSubscriptionPosition *position);
extern TqBinding *tq_subscription_bindings(const char *name, int *found);
extern bool tq_subscription_ack(const char *name, int64 id, int64 before,
								TimestampTz now);
extern void tq_subscription_skip(const char *name, int64 id, TimestampTz now);
extern TimestampTz tq_subscription_slowest(void);
extern TqBehind *tq_subscriptions_behind(int64 last_id, int *found);
extern bool tq_subscription_lose(const char *name, int64 last_id);

#endif /* TQ_SUBSCRIPTION_TABLE_H */
