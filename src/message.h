/*
 * message.h
 *	  Messages as they are sent and read: what deliver.c and subscribe.c
 *	  share.
 */
#ifndef TQ_MESSAGE_H
#define TQ_MESSAGE_H

#include "rules.h"

/* The tasks and runs that some messages are about. */
typedef struct TqSource
{
	TqTask *tasks; /* by id, each once */
	int ntasks;
	TqRun *runs; /* by task and number */
	int nruns;
} TqSource;

#define TQ_ROUTES_MAX 64

/* A message, its addresses, and what its payload is built from. */
typedef struct TqAddress
{
	const TqMessage *message;
	const TqTask *task; /* NULL: the message is about a group only */
	const TqRun *run;   /* that the message is about; NULL: none */
	const TqRun *runs;  /* of the task, as they are now */
	char *worker_group; /* stored with the message; NULL: none */
	char *worker_id;
	char *routing_key; /* NULL: it cannot be built */
	bool is_broken;    /* its payload cannot be built */
	int ncc;
	char *cc[TQ_ROUTES_MAX];
} TqAddress;

extern void tq_message_source(const TqMessage *messages, int n,
							  TqSource *source);
extern bool tq_message_address(const TqSource *source,
							   const TqMessage *message, TqAddress *address);
extern Jsonb *tq_message_payload(const TqAddress *address);
extern char *tq_message_envelope(const TqAddress *address);

/* Receives one message. */
typedef void (*TqReceiver)(const TqAddress *address, void *arg);

extern void tq_message_alone(const TqMessage *message, TqReceiver receive,
							 void *arg);

/* A binding with its compiled pattern. */
typedef struct TqFilter
{
	const char *channel;
	TqExchange exchange; /* NONE: every exchange */
	const TqPattern *pattern;
} TqFilter;

extern bool tq_filter_matches(const TqFilter *filter,
							  const TqAddress *address);

/* deliver.c */
extern int64 tq_deliver_pass(bool *more);
extern char *tq_queue_channel_name(const char *task_queue_id);

/* retention.c */
extern int64 tq_retention_pass(TimestampTz now);
extern TimestampTz tq_retention_kept_since(TimestampTz now);
extern TimestampTz tq_retention_told_before(TimestampTz now);

/* subscribe.c */
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
extern int tq_subscribe_fetch(const char *name, int max, TqReceiver receive,
							  void *arg, TimestampTz now);

#endif /* TQ_MESSAGE_H */
