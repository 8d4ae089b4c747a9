/*
 * subscription.h
 *	  Bindings of channels, durable subscriptions, and reading the message
 *	  log.
 */
#ifndef TQ_SUBSCRIPTION_H
#define TQ_SUBSCRIPTION_H

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "../storage/subscription_table.h"
#include "message_json.h"

extern void tq_subscribe_bind(const char *channel, TqExchange exchange,
							  const char *pattern);
extern void tq_subscribe_unbind(const char *channel, TqExchange exchange,
								const char *pattern);
extern void tq_subscribe_begin(const char *name, TqExchange exchange,
							   const char *pattern, TimestampTz now);
extern void tq_subscribe_end(const char *name);
extern void tq_subscribe_ack(const char *name, int64 id, TimestampTz now);
extern bool tq_subscribe_is_awaited(Datum xid);

/* Whether a subscription has an unread message that matches it. */
typedef enum TqUnread
{
	TQ_UNREAD_NONE,
	TQ_UNREAD_SOME,
	TQ_UNREAD_UNKNOWN /* as many were examined as was allowed */
} TqUnread;

extern TqUnread tq_subscribe_unread(const TqBehind *behind, int64 last_id,
									int64 *look_max, TimestampTz now);
extern int tq_subscribe_read(int64 after, int max, int64 look_max,
							 const TqFilter *filters, int nfilters,
							 TqReceiver receive, void *arg, int64 *read_upto);

/* Checks whether the caller may read by these bindings. */
typedef void (*TqBindingsCheck)(const TqBinding *bindings, int n);

extern int tq_subscribe_fetch(const char *name, int max, TqBindingsCheck check,
							  TqReceiver receive, void *arg, TimestampTz now);

#endif /* TQ_SUBSCRIPTION_H */
