/*
 * message_json.h
 *	  What a message contains and how it is addressed.
 */
#ifndef TQ_MESSAGE_JSON_H
#define TQ_MESSAGE_JSON_H

#include "utils/jsonb.h"

#include "../core/topic.h"
#include "../core/types.h"
#include "../storage/outbox_table.h"
#include "../storage/task_location.h"
#include "../storage/task_table.h"

static inline TqPattern *
tq_topic_compile(const char *pattern)
{
	return tq_topic_build(pattern, palloc(tq_topic_size(pattern)));
}

/* The tasks and runs that some messages are about. */
typedef struct TqSource
{
	TqMessageTask *tasks; /* by id, each once */
	int ntasks;
	TqHistoryRun *runs; /* by task and number */
	int nruns;
} TqSource;

#define TQ_ROUTES_MAX 64

/* A message, its addresses, and what its payload is built from. */
typedef struct TqAddress
{
	const TqMessage *message;
	const TqMessageTask *task; /* NULL: the message is about a group only */
	const TqHistoryRun *run;   /* that the message is about; NULL: none */
	const TqHistoryRun *runs;  /* of the task, as they are now */
	char *worker_group;        /* stored with the message; NULL: none */
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

#endif /* TQ_MESSAGE_JSON_H */
