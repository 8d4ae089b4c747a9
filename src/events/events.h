/*
 * events.h
 *	  Messages: from the outbox, by the publisher, to their readers.
 *
 * Decides which messages a transition appends, what they contain, when they are
 * published and how long they are kept.  Which transitions there are, the
 * life-cycle decides.
 */
#ifndef TQ_EVENTS_H
#define TQ_EVENTS_H

#include "../core/topic.h"
#include "../storage/log.h"
#include "../storage/registry.h"
#include "../storage/tasks.h"

/* ---- outbox.c: records messages in the transaction of a transition ---- */

/*
 * The messages of a call, in the order in which readers are to see them.  All
 * zeros is an empty batch.
 */
typedef struct TqOutboxBatch
{
	TqMessage *messages; /* only those that are wanted */
	int n;
	int room;
	bool is_known;   /* the rest is known */
	uint32 wanted;   /* exchanges, a bit for each */
	int segment;     /* of the message log that is written to */
	bool is_derived; /* those that a new task gets are left to the publisher */
} TqOutboxBatch;

extern bool tq_outbox_is_wanted(TqExchange exchange);
extern bool tq_outbox_concerns_group(const TqMessage *message);
extern void tq_outbox_add_run(TqOutboxBatch *batch, const TqTask *task,
							  const TqRun *run, const TqRun *last);
extern void tq_outbox_add_message(TqOutboxBatch *batch,
								  const TqMessage *message);
extern void tq_outbox_add_notice(TqOutboxBatch *batch,
								 const TqMessage *notice);
extern void tq_outbox_add_note(TqOutboxBatch *batch, const TqRun *last);
extern bool tq_outbox_leave_timer(TqOutboxBatch *batch, TqExchange exchange,
								  TimestampTz due, TimestampTz now);
extern bool tq_outbox_may_derive(const TqTaskDefinition *definition,
								 TimestampTz now);
extern void tq_outbox_append(TqOutboxBatch *batch);
extern void tq_outbox_append_detail(TqExchange exchange, const TqTask *task,
									int run_id, const TqRun *last,
									Jsonb *detail);
extern void tq_outbox_append_claimable(const TqPending *rows, int n);
extern bool tq_outbox_is_claimable_note(const TqMessage *message);

/* ---- publisher.c: gives messages their ids, and notifies listeners ---- */

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

/* ---- message_json.c: what a message contains and how it is addressed ---- */

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
extern char *tq_message_envelope(const TqAddress *address,
								 TqNotifyPayload payload);

/* Receives one message. */
typedef void (*TqReceiver)(const TqAddress *address, void *arg);

extern void tq_message_alone(const TqMessage *message, TqReceiver receive,
							 void *arg);

/* A binding with its compiled pattern. */
typedef struct TqFilter
{
	const char *channel;
	bool is_default;     /* the channel was not bound by a role */
	TqExchange exchange; /* NONE: every exchange */
	const TqPattern *pattern;
} TqFilter;

extern bool tq_filter_matches(const TqFilter *filter,
							  const TqAddress *address);

/* ---- status_json.c: the JSON of tasks, groups, workers and queues ---- */

extern void tq_status_push(JsonbParseState **state, const TqNamedTask *named,
						   const TqHistoryRun *runs, int n);
extern Jsonb *tq_status_json(const TqNamedTask *named,
							 const TqHistoryRun *runs, int n);
extern Jsonb *tq_status_from(const TqHistoryRun *runs, int nruns,
							 const TqNamedTask *named);
extern Jsonb *tq_status_of(const TqNamedTask *named);
extern Jsonb *tq_status_of_only(const TqNamedTask *named, const TqRun *run,
								const TqRunDetail *detail);
extern Jsonb *tq_definition_json(const TqTaskDefinition *definition);
extern Jsonb *tq_metadata_json(const char *name);
extern Jsonb *tq_progress_detail_json(const TqRunProgress *progress);
extern Jsonb *tq_runs_json(const TqHistoryRun *runs, int n);
extern Jsonb *tq_group_json(const TqGroup *group);
extern Jsonb *tq_group_message_json(const TqGroup *group);
extern Jsonb *tq_counts_json(const char *queue, int64 pending, int64 claimed);

/* ---- group_resolution.c: how a group ends, and the message of it ---- */

typedef struct TqProgress
{
	int64 count[TQ_STATES];
	int64 delayed;
	int64 tolerated;
	int64 forgiven;   /* of the tolerated ones */
	int64 reported;   /* runs that may have reported progress; 0: none has */
	int first_reason; /* of the first unsuccessful task that counts, or 0 */
	TimestampTz first_bad; /* when that ended */
	TimestampTz first_created;
	TimestampTz last_resolved;
} TqProgress;

extern int64 tq_group_bad_key(TimestampTz resolved, TqResolved reason);
extern void tq_group_count(const TqGroup *group, TqProgress *progress);
extern bool tq_group_only_waits(const TqProgress *progress);
extern bool tq_group_exceeds(const TqGroup *group, int tasks);
extern void tq_group_count_again(int64 id);
extern const char *tq_group_outcome(const TqProgress *progress);
extern void tq_group_resolution_append(const int64 *tasks, int n);

/* ---- worker_channel.c: channels of queues and workers; notes ---- */

extern char *tq_queue_channel_name(const char *task_queue_id);
extern char *tq_worker_channel_name(const char *group, const char *id);
extern bool tq_worker_channel_is_listened(void);
extern void tq_worker_channel_add(TqOutboxBatch *batch, const TqSlug *task_id,
								  const TqRun *run, const char *reason);
extern void tq_worker_channel_notify(const TqMessage *notes, int n);

/* ---- subscription.c: reads the log, for durable readers and others ---- */

extern void tq_subscribe_ack(const char *name, int64 id, TimestampTz now);

/* Whether a subscription has an unread message that matches it. */
typedef enum TqUnread
{
	TQ_UNREAD_NONE,
	TQ_UNREAD_SOME,
	TQ_UNREAD_UNKNOWN /* as many were examined as was allowed */
} TqUnread;

extern TqUnread tq_subscribe_unread(const TqBehind *behind, int64 last_id,
									int64 *max_examined, TimestampTz now);
extern int tq_subscribe_read(int64 after, int max, int64 max_examined,
							 const TqFilter *filters, int nfilters,
							 TqReceiver receive, void *arg, int64 *read_upto);

/* Checks whether the caller may read by these bindings. */
typedef void (*TqBindingsCheck)(const TqBinding *bindings, int n);

extern int tq_subscribe_fetch(const char *name, int max, TqBindingsCheck check,
							  TqReceiver receive, void *arg, TimestampTz now);

/* ---- retention.c: changes and empties the segments of the log ---- */

extern int64 tq_retention_pass(TimestampTz now);
extern TimestampTz tq_retention_published_before(TimestampTz now);
extern TimestampTz tq_retention_forgotten_before(TimestampTz now);

#endif /* TQ_EVENTS_H */
