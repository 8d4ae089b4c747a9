/*
 * log.h
 *	  Rows of messages: the outbox, publications, who listens and reads.
 *
 * Decides how messages are stored, found by publication, and dropped with their
 * segment.  What a message contains, when it is published and which reader gets
 * it, the layer of events decides.
 */
#ifndef TQ_LOG_H
#define TQ_LOG_H

#include "../shmem/shmem.h"

/* ---- tick_table.c: publications ---- */

/*
 * Creations of tasks that were perhaps in progress: those with numbers from `low`
 * on, and some others.
 */
typedef struct TqCreations
{
	int64 low;
	Datum open; /* array of their numbers; 0: none */
} TqCreations;

#define TQ_NO_MARK (-1) /* of the last tick, when numbers were set back */

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
	int timeline;          /* of the server, when it published the tick */
	Datum part_of;         /* 0, or the snapshot that later parts complete */
	int64 after_seq; /* a part has the rows that xids wrote between the two */
	int64 upto_seq;
	Datum xids;  /* 0: the tick is not a part */
	int derived; /* messages that were derived from tasks */
	TqCreations creations;
} TqTick;

extern bool tq_publisher_try_lock(void);
extern void tq_publisher_unlock(void);
extern Datum tq_snapshot_now(void);
extern TqCreations tq_tick_creations(TqTick *last);
extern void tq_tick_last(TqTick *tick);
extern int64 tq_tick_last_id(void);
extern int64 tq_tick_shown_id(void);
extern void tq_tick_begin_ids(void);
extern TimestampTz tq_tick_oldest(void);
extern TimestampTz tq_tick_last_whole(void);
extern bool tq_tick_unsent(TqTick *tick);
extern bool tq_tick_of_segment(int segment, TqTick *tick);
extern bool tq_tick_shows_segment(int segment, TimestampTz since);
extern TqTick *tq_ticks_after(int64 id, int max, bool shown, int *found);
extern void tq_tick_insert(TqTick *row, const TqTick *last, bool notified);
extern void tq_tick_set_unsent(const TqTick *tick, int64 unsent);

/* ---- outbox_table.c: messages, which transitions append ---- */

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
	int64 seq;       /* order of writing */
	bool is_derived; /* from a new task; the tick has no row of it yet */
} TqMessage;

/* Most messages of one row: it has to fit into memory, whatever a call writes. */
#define TQ_ROW_MESSAGES 250

#define TQ_DERIVED_MESSAGES 2 /* of a new task */

/* A page of what is to be published, in the order of writing. */
typedef struct TqMessagePage
{
	TqMessage *messages; /* including notes to the publisher */
	int n;
	int derived; /* how many of them are */
	int segments;
	int64 last_seq;
	Datum xids;   /* the transactions that wrote them */
	bool is_last; /* nothing follows */
} TqMessagePage;

extern void tq_messages_insert(int segment, const TqMessage *messages, int n);
extern void tq_messages_insert_derived(const TqTick *tick,
									   const TqMessage *messages, int n);
extern TqRows tq_messages_open_without_timer(const TqTick *last);
extern TqMessage *tq_messages_some(TqRows cursor, int *n);
extern TqRows tq_messages_open(const TqTick *last, Datum upto,
							   int64 after_seq);
extern void tq_messages_page(TqRows cursor, TqMessagePage *page);
extern TqMessage *tq_messages_of_tick(const TqTick *tick, int *found,
									  TqMessage **notes, int *nnotes);
extern TqMessage *tq_messages_notes(const TqMessage *messages, int n,
									int *found);
extern int tq_messages_count(const TqMessage *messages, int n);
extern int tq_messages_number(TqMessage *messages, int n, const TqTick *tick);
extern bool tq_message_was_derived(FullTransactionId xid, const bytea *records,
								   int64 *task);
extern int64 tq_message_last_id(void);
extern bool tq_message_is_unpublished(const TqTick *last);

/* ---- log_segment_table.c: the segments of the log ---- */

#define TQ_SEGMENTS 6 /* segments of the message log */

extern int tq_segment_current(TimestampTz *since);
extern void tq_log_set_back(TimestampTz now);
extern void tq_segment_switch(int segment, TimestampTz now);
extern bool tq_segment_is_empty(int segment);
extern bool tq_segment_try_lock(int segment);
extern bool tq_segment_is_unpublished(int segment, Datum upto);
extern void tq_segment_truncate(int segment);

/* ---- subscription_table.c: channels, and durable readers ---- */

typedef struct TqBinding
{
	char *channel; /* or subscription; NULL: the default channel */
	TqExchange exchange;
	char *pattern;
} TqBinding;

/* Classes of advisory locks; 1 and 2 are those of SQL functions. */
typedef enum TqBindingLockClass
{
	TQ_LOCK_CLASS_BINDINGS = 7420,
	TQ_LOCK_CLASS_SUBSCRIPTIONS = 7421
} TqBindingLockClass;

extern void tq_binding_lock(const char *name, TqBindingLockClass class);
/* Differs once the tables, which are watched, may have changed. */
extern const uint64 *const tq_bindings_generation;

extern void tq_bindings_watch(void);
extern void tq_bindings_changed(void);
extern int tq_bindings_wanted(void);
extern TqBinding *tq_bindings_list(int *found);

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

extern bool tq_subscription_find(const char *name,
								 TqSubscriptionPosition *position);
extern TqBinding *tq_subscription_bindings(const char *name, int *found);
extern bool tq_subscription_ack(const char *name, int64 id, int64 before,
								TimestampTz now);
extern void tq_subscription_skip(const char *name, int64 id, TimestampTz now);
extern TimestampTz tq_subscription_slowest(void);
extern TqBehind *tq_subscriptions_behind(int64 last_id, int *found);
extern bool tq_subscription_lose(const char *name, int64 last_id);

#endif /* TQ_LOG_H */
