/*
 * binding_table.h
 *	  Rows of tq_internal.binding, tq_internal.disabled_channel and the subscriptions: which messages
 *	  are published to which channel or subscription.
 */
#ifndef TQ_BINDING_TABLE_H
#define TQ_BINDING_TABLE_H

#include "datatype/timestamp.h"

#include "../core/types.h"

typedef struct TqBinding
{
	char *channel; /* or subscription; NULL: the default channel */
	TqExchange exchange;
	char *pattern;
} TqBinding;

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

extern uint64 tq_bindings_generation(void);
extern void tq_bindings_changed(void);
extern int tq_bindings_wanted(void);
extern TqBinding *tq_bindings_list(int *found);
extern void tq_binding_insert(const char *channel, TqExchange exchange,
							  const char *pattern);
extern void tq_binding_delete(const char *channel, TqExchange exchange,
							  const char *pattern);
extern void tq_binding_set_default(TqExchange exchange, bool bound);
extern void tq_subscription_insert(const char *name, TqExchange exchange,
								   const char *pattern, TimestampTz now);
extern bool tq_subscription_delete(const char *name);
extern bool tq_subscription_find(const char *name,
								 TqSubscriptionPosition *acked_id);
extern TqBinding *tq_subscription_bindings(const char *name, int *found);
extern bool tq_subscription_ack(const char *name, int64 id, int64 before,
								TimestampTz now);
extern void tq_subscription_skip(const char *name, int64 id, TimestampTz now);
extern TimestampTz tq_subscription_slowest(void);
extern TqBehind *tq_subscriptions_behind(int64 last_id, int *found);
extern bool tq_subscription_lose(const char *name, int64 last_id);

#endif /* TQ_BINDING_TABLE_H */
