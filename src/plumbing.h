/*
 * plumbing.h
 *	  The services that every layer above uses.
 *
 * Room 1.  Slugids, the clock, settings, saved statements, shared memory, and
 * how tq reports errors.  Nothing here depends on tasks.
 */
#ifndef TQ_PLUMBING_H
#define TQ_PLUMBING_H

#include "postgres.h"

#include "access/transam.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/jsonb.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "topic.h"
#include "tq.h"

/* The SQLSTATEs of tq; doc/reference.md lists them. */
#define ERRCODE_TQ_BAD_INPUT MAKE_SQLSTATE('T', 'Q', '4', '0', '0')
#define ERRCODE_TQ_NOT_FOUND MAKE_SQLSTATE('T', 'Q', '4', '0', '4')
#define ERRCODE_TQ_CONFLICT MAKE_SQLSTATE('T', 'Q', '4', '0', '9')
#define ERRCODE_TQ_EXPIRED MAKE_SQLSTATE('T', 'Q', '4', '1', '0')
#define ERRCODE_TQ_ERROR_ARTIFACT MAKE_SQLSTATE('T', 'Q', '4', '2', '4')

/* slugid.c */
#define TQ_SLUG_BYTES 16
#define TQ_SLUG_CHARS 22

typedef struct TqSlug
{
	uint8 bytes[TQ_SLUG_BYTES];
} TqSlug;

#define DatumGetTqSlugP(d) ((TqSlug *) DatumGetPointer(d))
#define PG_GETARG_TQ_SLUG_P(n) DatumGetTqSlugP(PG_GETARG_DATUM(n))
#define PG_RETURN_TQ_SLUG_P(p) PG_RETURN_POINTER(p)

extern bool tq_slug_parse(const char *text, size_t len, TqSlug *slug);
extern void tq_slug_print(const TqSlug *slug, char *text);
extern char *tq_slug_text(const TqSlug *slug);
extern void tq_slug_random(TqSlug *slug);
extern TqSlug *tq_slugs_random(int n);
extern int tq_slug_compare(const TqSlug *a, const TqSlug *b);

/* error.c */
extern char *tq_error_clip(const char *text);
extern void tq_error_list(StringInfo list, const char *separator,
						  const char *name);

/* topic.c, which allocates no memory itself */
static inline TqPattern *
tq_topic_compile(const char *pattern)
{
	return tq_topic_build(pattern, palloc(tq_topic_size(pattern)));
}

/* clock.c */
extern TimestampTz tq_clock_now(void);
extern TimestampTz tq_clock_truncate(TimestampTz t);
extern TimestampTz tq_clock_add_ms(TimestampTz t, int64 ms);
extern TimestampTz tq_clock_latest(void);
extern TimestampTz tq_clock_next_year(TimestampTz t);
extern TimestampTz tq_clock_add_interval(TimestampTz t, Interval *span);
extern int64 tq_clock_span_ms(const Interval *span);
extern bool tq_clock_parse_span(const char *text, size_t len, int64 *ms);
extern bool tq_clock_parse(const char *text, size_t len, TimestampTz *t);
extern char *tq_clock_text(TimestampTz t);

/* policy_json.c */
typedef struct TqGivenPolicy
{
	TqPolicy policy;
	int retries;   /* TQ_OFF: absent */
	int64_t delay; /* ms; TQ_OFF: absent */
} TqGivenPolicy;

#define TQ_POLICY_BYTES 2000 /* as jsonb */

extern const char *tq_policy_parse(const Jsonb *json, TqGivenPolicy *given);
extern const char *tq_duration_parse(const JsonbValue *value, int64 *ms);

/* guc.c */
extern int tq_claim_timeout;  /* ms */
extern int tq_max_deadline;   /* s */
extern int tq_deadline_delay; /* ms */
extern int tq_max_runs;
extern int tq_max_dependencies;
extern int tq_expire_batch;
extern int tq_max_inline_artifact;    /* bytes */
extern int tq_message_retention;      /* s */
extern int tq_subscription_retention; /* s */
extern int tq_publish_interval;       /* ms */
extern int tq_queue_slots;            /* entries of the claim cursor */
extern int tq_max_payload;            /* bytes, as the next three */
extern int tq_max_definition;
extern int tq_max_tags;
extern int tq_max_extra;
extern bool tq_maintenance;
extern bool tq_publish_retried_exceptions;
extern int64 tq_clock_offset; /* us */

extern void tq_guc_define(void);

/*
 * plan.c: SQL statements saved once per backend.
 *
 * A TqStatement is static data.  The array `types` ends at the first 0.
 * TQ_SLUGID and TQ_SLUGIDS stand for tq.slugid and its array type, whose Oids
 * are looked up when the statement is prepared.
 */
#define TQ_SLUGID ((Oid) 1)
#define TQ_SLUGIDS ((Oid) 2)
#define TQ_MAX_ARGS 24

typedef struct TqStatement
{
	const char *sql;
	Oid types[TQ_MAX_ARGS + 1];
	struct _SPI_plan *plan;
} TqStatement;

#define TQ_STATEMENT(sql_, ...)                                               \
	{                                                                         \
		.sql = (sql_), .types = { __VA_ARGS__ }                               \
	}

extern void tq_plan_init(void);
extern void tq_plan_refuse_read_only(void);
extern void tq_plan_open(bool read_only);
extern void tq_plan_close(void);
extern bool tq_plan_is_reading(void);
extern Snapshot tq_plan_snapshot(void);
extern uint64 tq_plan_run(TqStatement *statement, const Datum *values,
						  const char *nulls);
extern int64 *tq_plan_run_ids(TqStatement *statement, const Datum *values,
							  int *found);
typedef struct PortalData *TqRows;

extern TqRows tq_plan_rows_open(TqStatement *statement, const Datum *values);
extern uint64 tq_plan_rows_fetch(TqRows cursor, int max);
extern void tq_plan_rows_close(TqRows cursor);
extern void tq_plan_free_result(void);
extern void *tq_plan_keep(const void *varlena);

/* Fields of a row of the last statement's result; columns count from 1. */
extern Datum tq_plan_field(uint64 row, int column, bool *isnull);
extern int64 tq_plan_int64(uint64 row, int column, int64 if_null);
extern int32 tq_plan_int32(uint64 row, int column, int32 if_null);
extern int16 tq_plan_int16(uint64 row, int column, int16 if_null);
extern bool tq_plan_bool(uint64 row, int column);
extern TimestampTz tq_plan_time(uint64 row, int column);
extern char *tq_plan_text(uint64 row, int column);
extern TqSlug tq_plan_slug(uint64 row, int column);
extern Jsonb *tq_plan_jsonb(uint64 row, int column);

/* Array parameters. */
extern Datum tq_array_int64(const int64 *values, int n);
extern Datum tq_array_int32(const int32 *values, int n);
extern Datum tq_array_bool(const bool *values, int n);
extern Datum tq_array_time(const TimestampTz *values, int n);
extern Datum tq_array_slugid(const TqSlug *values, int n);

/*
 * A position in the claim timers or timers: rows up to it have been processed.
 */
typedef struct TqMark
{
	TimestampTz due;
	int64 seq;
} TqMark;

#define TQ_MARK_BEGIN                                                         \
	{                                                                         \
		DT_NOBEGIN, 0                                                         \
	}

#define TQ_TIMERS 7 /* kinds of timers, from 1 */

/* Positions up to which nothing is left to be processed (upkeep.c). */
typedef struct TqMarks
{
	TqMark lease;
	TqMark delayed;
	TqMark timer[TQ_TIMERS]; /* by kind */
} TqMarks;

#define TQ_HOUR_MS INT64CONST(3600000)

/* activation.c: maintenance begins when a client first uses a database. */
extern bool tq_activation_is_done(void);
extern void tq_activation_do(void);

/* catalog.c */
extern void tq_catalog_hold(void);
extern Oid tq_catalog_held(void);
extern Oid tq_catalog_slugid_type(void);
extern Oid tq_catalog_slugid_array_type(void);

/* attempt.c: work in a subtransaction */
typedef void (*TqWorkFunction)(void *arg);

extern ErrorData *tq_attempt(TqWorkFunction work, void *arg);
extern ErrorData *tq_attempt_all(TqWorkFunction work, void *arg);

/* durable.c */
extern bool tq_durable_has_standbys(void);
extern void tq_durable_flush(FullTransactionId xid);
extern XLogRecPtr tq_durable_here(void);
extern bool tq_durable_within(XLogRecPtr lsn, int max_ms);

/*
 * shmem.c: the background workers' shared memory, and how commits wake them.
 */
extern void tq_shmem_init(void);
extern void tq_shmem_note_due(TimestampTz due);
extern void tq_shmem_note_message(void);

/* Prefix of the channels of queues. */
#define TQ_QUEUE_CHANNEL "tq_queue_"

extern uint64 tq_shmem_channel_bit(const char *channel);
extern uint64 tq_shmem_listened(void);

#endif /* TQ_PLUMBING_H */
