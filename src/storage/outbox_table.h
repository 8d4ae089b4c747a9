/*
 * outbox_table.h
 *	  Rows of tq_internal.message, tq_internal.tick and tq_internal.log_segment: the outbox, the message
 *	  log, and the publications.
 */
#ifndef TQ_OUTBOX_TABLE_H
#define TQ_OUTBOX_TABLE_H

#include "access/transam.h"
#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/types.h"
#include "../util/spi.h"

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
	int32 worker;  /* that has the run, or had it when it alerts; 0: none */
	Jsonb *detail; /* further content of the message; NULL: none */
	TimestampTz published;
} TqMessage;

#define TQ_SEGMENTS 6 /* segments of the message log */

/*
 * A tick is one publication: the messages that became visible between two
 * snapshots, or a part of them if they are many.
 */
typedef struct TqTick
{
	int64 first_id;
	int64 last_id;
	TimestampTz published;
	int64 unsent; /* NOTIFY is still to be sent from this id on; 0: none */
	int messages;
	int segments;
	int segment;
	Datum since;
	Datum upto; /* what it sees has been published, up to and with this tick */
	FullTransactionId xid; /* the publishing transaction */
	Datum part_of;         /* 0, or the snapshot that later parts complete */
	int64 after_seq; /* a part has the rows that xids wrote between the two */
	int64 upto_seq;
	Datum xids; /* 0: the tick is not a part */
} TqTick;

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
extern bool tq_publisher_try_lock(void);
extern Datum tq_snapshot_now(void);
extern Datum tq_snapshot_acked(void);
extern TqRows tq_messages_open(Datum since, Datum upto, int64 after_seq);
extern void tq_messages_page(TqRows cursor, TqPage *page);
extern TqMessage *tq_messages_of_tick(const TqTick *tick, int *found,
									  TqMessage **notes, int *nnotes);
extern TqMessage *tq_messages_notes(const TqMessage *messages, int n,
									int *found);
extern int tq_messages_count(const TqMessage *messages, int n);
extern int tq_messages_number(TqMessage *messages, int n, const TqTick *tick);
extern void tq_tick_last(TqTick *tick);
extern int64 tq_tick_last_id(void);
extern TimestampTz tq_tick_oldest(void);
extern TimestampTz tq_tick_last_whole(void);
extern int64 tq_message_last_id(void);
extern bool tq_message_is_unpublished(Datum upto);
extern bool tq_tick_unsent(TqTick *tick);
extern bool tq_tick_of_segment(int segment, TqTick *tick);
extern bool tq_tick_shows_segment(int segment, TimestampTz since);
extern TqTick *tq_ticks_after(int64 id, int max, bool shown, int *found);
extern void tq_tick_insert(TqTick *tick, bool notified);
extern void tq_tick_set_unsent(const TqTick *tick, int64 unsent);
extern int tq_segment_current(TimestampTz *since);
extern void tq_segment_switch(int segment, TimestampTz now);
extern bool tq_segment_is_empty(int segment);
extern bool tq_segment_try_lock(int segment);
extern bool tq_segment_is_unpublished(int segment, Datum upto);
extern void tq_segment_truncate(int segment);

#endif /* TQ_OUTBOX_TABLE_H */
