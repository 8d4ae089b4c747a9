/*
 * outbox_table.h
 *	  Rows of tq_internal.message, which transitions append.
 */
#ifndef TQ_OUTBOX_TABLE_H
#define TQ_OUTBOX_TABLE_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/types.h"
#include "../util/spi.h"
#include "tick_table.h"

/* A message, or a note to the publisher, as it is stored. */
typedef struct TqMessage
{
	int64 id; /* 0: not published */
	TqExchange exchange;
	int64 task;   /* for task-group-resolved, one task of the group; 0: none */
	int run_id;   /* run that the message is about; -1: none */
	int last_run; /* last run in the status of the message; -1: none */
	TqState state; /* of last_run */
	int priority;
	TimestampTz taken_until; /* of last_run, while it is running */
	TimestampTz due;         /* timer that the publisher inserts; 0: none */
	int32 worker;  /* that has the run, or had it when it alerts; 0: none */
	Jsonb *detail; /* further content of the message; NULL: none */
	TimestampTz published;
} TqMessage;

/* A page of what is to be published, in the order of writing. */
typedef struct TqPage
{
	TqMessage *messages; /* including notes to the publisher */
	int n;
	int segments;
	int64 last_seq;
	Datum xids;   /* the transactions that wrote them */
	bool is_last; /* nothing follows */
} TqPage;

extern void tq_messages_insert(int segment, const TqMessage *messages, int n);
extern TqRows tq_messages_open_without_timer(Datum upto);
extern TqMessage *tq_messages_some(TqRows cursor, int *n);
extern TqRows tq_messages_open(Datum since, Datum upto, int64 after_seq);
extern void tq_messages_page(TqRows cursor, TqPage *page);
extern TqMessage *tq_messages_of_tick(const TqTick *tick, int *found,
									  TqMessage **notes, int *nnotes);
extern TqMessage *tq_messages_notes(const TqMessage *messages, int n,
									int *found);
extern int tq_messages_count(const TqMessage *messages, int n);
extern int tq_messages_number(TqMessage *messages, int n, const TqTick *tick);
extern int64 tq_message_last_id(void);
extern bool tq_message_is_unpublished(Datum upto);

#endif /* TQ_OUTBOX_TABLE_H */
