/*
 * util.h
 *	  Helpers for the server that know no task.
 *
 * Decides how tq reads the time, writes ids and JSON, prepares statements,
 * raises and catches errors, and what follows the end of a transaction.  What
 * a task, a queue or a table is, the layers above decide.
 */
#ifndef TQ_UTIL_H
#define TQ_UTIL_H

#include "access/transam.h"
#include "access/xlogdefs.h"
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

#include "compat.h"

/* ---- guc.c: settings of tq, and which a connection may give ---- */

extern int tq_claim_timeout;      /* ms */
extern int tq_max_deadline;       /* s */
extern int64 tq_default_deadline; /* ms; 0: none */
extern int tq_deadline_delay;     /* ms */
extern int tq_max_runs;
extern int tq_max_dependencies;
extern int tq_expire_batch;
extern int tq_max_inline_artifact;    /* bytes */
extern int tq_message_retention;      /* s */
extern int tq_subscription_retention; /* s */
extern int tq_retain_completed;       /* s, as the next two */
extern int tq_retain_failed;
extern int tq_retain_dead_letters;
extern int tq_publish_interval;   /* ms */
extern int tq_seen_interval;      /* ms */
extern int tq_log_expired_claims; /* ms; -1: not */
extern int tq_log_failures;       /* the same */
extern int tq_log_min_wait;       /* the same */
extern int tq_metrics_queues;
extern int tq_queue_slots;
extern int tq_counted_queues;
extern int tq_counted_group; /* entries of the claim cursor */
extern int tq_max_payload;   /* bytes, as the next three */
extern int tq_max_definition;
extern int tq_max_tags;
extern int tq_max_extra;
extern int tq_max_batch;
extern int tq_max_wait;    /* ms */
extern int tq_max_waiters; /* 0: no limit, as the next three */
extern int tq_max_subscriptions;
extern int tq_max_bindings;
extern int tq_max_group_tasks;
extern int tq_max_queues; /* -1: no limit, as the next eight */
extern int tq_max_limited_queues;
extern int tq_max_workers;
extern int tq_max_cron_jobs;
extern int tq_max_callbacks;
extern int tq_max_unresolved_tasks; /* of a queue, as the next three */
extern int tq_max_groups;
extern int tq_max_unique_keys;
extern int tq_max_foreign_dependencies;
extern int tq_quotas_left; /* how many to make before the next look at them */

/* Values of tq.credentials. */
typedef enum TqCredentialsSetting
{
	TQ_CREDENTIALS_AUTO,
	TQ_CREDENTIALS_ON,
	TQ_CREDENTIALS_OFF
} TqCredentialsSetting;

extern int tq_credentials; /* a TqCredentialsSetting */
extern bool tq_maintenance;
extern bool tq_ordered_ids;
extern bool tq_publish_retried_exceptions;

/* What NOTIFY carries: values of tq.notify_payload. */
typedef enum TqNotifyPayload
{
	TQ_NOTIFY_AUTO, /* full, or ids where applications share the database */
	TQ_NOTIFY_FULL,
	TQ_NOTIFY_IDS,
	TQ_NOTIFY_OFF
} TqNotifyPayload;

extern int tq_notify_payload; /* a TqNotifyPayload */

/* Which calls the audit trail shows: values of tq.audit. */
typedef enum TqAuditSetting
{
	TQ_AUDIT_OFF,
	TQ_AUDIT_OPERATORS,
	TQ_AUDIT_ALL
} TqAuditSetting;

extern int tq_audit;           /* a TqAuditSetting */
extern int tq_audit_retention; /* s */

extern void tq_guc_define(void);

extern void tq_connection_check(void);

/* ---- declared.c: whether SQL declares a function as a library has it ---- */

extern char *tq_extension_version(const char *extension);
extern void tq_check_declared(FunctionCallInfo fcinfo, const char *extension,
							  const char *signature);

/* ---- version.c: versions of the library and of the SQL ---- */

extern bool tq_version_checked; /* the library serves the SQL */

extern char *tq_version_unserved(void);
extern void tq_version_report(int level, const char *version);
extern void tq_version_check(void);

/* ---- clock.c: the time, and its text; no other file reads it ---- */

extern int64 tq_clock_offset; /* us, which guc.c sets */

extern TimestampTz tq_clock_now(void);
extern TimestampTz tq_clock_real_now(void);
extern int64 tq_clock_real_seconds(void);
extern uint64 tq_clock_unix_ms(void);
extern bool tq_clock_went_back(TimestampTz *last, TimestampTz now);
extern TimestampTz tq_clock_truncate(TimestampTz t);
extern int64 tq_clock_ms_until(TimestampTz t);
extern TimestampTz tq_clock_latest(void);
extern TimestampTz tq_clock_next_year(TimestampTz t);
extern TimestampTz tq_clock_add_interval(TimestampTz t, Interval *span);
extern int64 tq_clock_span_ms(const Interval *span);
extern bool tq_clock_parse_span(const char *text, size_t len, int64 *ms);
extern char *tq_clock_interval_text(Interval *span);
extern bool tq_clock_parse(const char *text, size_t len, TimestampTz *t);
extern char *tq_clock_text(TimestampTz t);

/* A time that is so many milliseconds later. */
/* Returns t and so many milliseconds; what never is stays never. */
static inline TimestampTz
tq_clock_add_ms(TimestampTz t, int64 ms)
{
	return TIMESTAMP_NOT_FINITE(t) ? t : t + INT64CONST(1000) * ms;
}

#define TQ_HOUR_MS INT64CONST(3600000)

/* A due time in the past on which arithmetic works: the year 2000. */
/* A time that is later than now by more was read from a clock that was ahead. */
#define TQ_AHEAD_MS 1000

#define TQ_LONG_AGO ((TimestampTz) 0)

/* ---- errors.c: SQLSTATEs, notices, and work that may fail alone ---- */

/* The SQLSTATEs of tq; doc/reference.md lists them. */
#define ERRCODE_TQ_BAD_INPUT MAKE_SQLSTATE('T', 'Q', '4', '0', '0')
#define ERRCODE_TQ_FORBIDDEN MAKE_SQLSTATE('T', 'Q', '4', '0', '3')
#define ERRCODE_TQ_NOT_FOUND MAKE_SQLSTATE('T', 'Q', '4', '0', '4')
#define ERRCODE_TQ_CONFLICT MAKE_SQLSTATE('T', 'Q', '4', '0', '9')
#define ERRCODE_TQ_EXPIRED MAKE_SQLSTATE('T', 'Q', '4', '1', '0')
#define ERRCODE_TQ_ERROR_ARTIFACT MAKE_SQLSTATE('T', 'Q', '4', '2', '4')

/* Whether tq has refused what it was asked for; other errors are of the server. */
#define TQ_IS_REFUSAL(sqlerrcode)                                             \
	(ERRCODE_TO_CATEGORY(sqlerrcode) ==                                       \
	 ERRCODE_TO_CATEGORY(ERRCODE_TQ_BAD_INPUT))

extern void tq_show_done(const char *what, int done, int total);
extern void tq_throw_without_context(MemoryContext context);
extern char *tq_error_clip(const char *text);
extern const char *tq_error_nearest(const char *given, char *const *known,
									int n);
extern const char *tq_error_role(Oid role);
extern void tq_error_list(StringInfo list, const char *separator,
						  const char *name);

typedef void (*TqWorkFunction)(void *arg);

extern ErrorData *tq_attempt(TqWorkFunction work, void *arg);
extern ErrorData *tq_attempt_all(TqWorkFunction work, void *arg);

/* Work on a batch of items, some of which may fail. */
typedef struct TqBatchWork
{
	void (*run)(void *arg, int from, int n); /* does n items, in order */
	void (*failed)(void *arg, int item, ErrorData *error);
	void *arg;
} TqBatchWork;

extern void tq_attempt_halves(const TqBatchWork *work, int from, int n);

/* ---- slugid.c: the type tq.slugid: a UUID as a slug of 22 characters ---- */

#define TQ_SLUG_BYTES 16
#define TQ_SLUG_CHARS 22
#define TQ_SLUG_BUCKETS 1024 /* into which the ids of groups are divided */

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

/* Compares two slugids by their bytes, which is not the order of their texts. */
#define tq_slug_compare(a, b) memcmp((a)->bytes, (b)->bytes, TQ_SLUG_BYTES)

extern int tq_compare_slugs(const void *a, const void *b);

extern bool tq_slug_is_random(const TqSlug *slug);
extern void tq_slug_set_version(TqSlug *slug);
extern int tq_slug_bucket(const TqSlug *slug);
extern void tq_slug_set_bucket(TqSlug *slug, int bucket);

/*
 * A hash of an id for a table that a session keeps.  Of a new id two of these
 * bytes are random: neither of its time, nor of the bucket, which is that of its
 * group; the others tell the ids of clients apart.
 */
#define TQ_SLUG_HASH(slug)                                                    \
	((((slug)->bytes[0] ^ (slug)->bytes[12]) << 8) |                          \
	 ((slug)->bytes[1] ^ (slug)->bytes[13]))

/* ---- new_slugid.c: slugids that the server makes ---- */

extern void tq_slug_random(TqSlug *slug);
extern void tq_slug_new(TqSlug *slug);
extern TqSlug *tq_slugs_new(int n);

/* ---- stable_slugid.c: slugids that are made of names ---- */

extern void tq_slug_of_name(const char *utf8_name, TqSlug *slug);

/* ---- json.c: reads JSON values and objects, and builds them ---- */

extern JsonbValue *tq_json_member(const JsonbContainer *object,
								  const char *key);
extern JsonbValue *tq_json_get(const Jsonb *object, const char *key);
extern char *tq_json_get_text(const Jsonb *object, const char *key);
extern Jsonb *tq_json_unless_empty(Jsonb *object);

extern double tq_json_double(const JsonbValue *number);
extern char *tq_json_string_of(const JsonbValue *value);
extern bool tq_json_has_text(const JsonbValue *value, const char *text);
extern bool tq_json_is_string(const JsonbValue *value, int max);
extern bool tq_json_is_object(const JsonbValue *value);
extern Size tq_json_size(const JsonbContainer *json, bool is_exact);
extern Size tq_json_size_over(const JsonbContainer *json, Size limit);
extern char *tq_json_clip(const JsonbContainer *json);
extern char *tq_json_cut(char *text, Size limit);
extern char *tq_json_shown(const JsonbValue *value);
extern bool tq_json_is_null(const Jsonb *json);
extern bool tq_json_is_array(const JsonbValue *value);
extern bool tq_json_whole_number(const JsonbValue *value, int64 min, int64 max,
								 int64 *number);

/* The members of an object, or the elements of an array, one by one. */
typedef struct TqJsonIterator
{
	const JsonbContainer *container;
	const char *data; /* of the children */
	int n;
	int next;
	uint32 key_at; /* where the next key is in the data */
	uint32 value_at;
	JsonbValue key; /* of a member */
	JsonbValue value;
} TqJsonIterator;

extern TqJsonIterator tq_json_iterate(const JsonbContainer *container);
extern bool tq_json_next(TqJsonIterator *iterator);

/*
 * The keys that an object may have, in the order that jsonb gives them: by
 * length, then by bytes.  The macros make an enum and an array of TqJsonKey of
 * one list of their names.
 */
typedef struct TqJsonKey
{
	const char *name;
	int len;
} TqJsonKey;

#define TQ_JSON_KEY_NUMBER(key, name) KEY_##key,
#define TQ_JSON_KEY_NAME(key, name) {name, sizeof(name) - 1},

#define TQ_JSON_KEYS_MAX 24

/*
 * An object of which every value must be valid.  `refuse` raises the error that
 * the value of a key breaks a rule, or notes it and returns; then the value
 * counts as absent.
 */
typedef struct TqJsonReader
{
	const TqJsonKey *keys;
	int nkeys;
	void (*refuse)(const struct TqJsonReader *reader, const char *key,
				   const char *rule);
	void *owner;    /* for refuse(): what the object describes */
	uint32 present; /* keys that the object has, as a set of bits */
	JsonbValue values[TQ_JSON_KEYS_MAX];
} TqJsonReader;

extern bool tq_json_open(TqJsonReader *reader, const JsonbContainer *object,
						 JsonbValue *unknown);
extern const JsonbValue *tq_json_at(const TqJsonReader *reader, int key);
extern char *tq_json_read_string(const TqJsonReader *reader, int key);
extern char **tq_json_read_strings(const TqJsonReader *reader, int key,
								   int *n);
extern bool tq_json_read_time(const TqJsonReader *reader, int key,
							  TimestampTz *t);
extern bool tq_json_read_slug(const TqJsonReader *reader, int key,
							  TqSlug *slug);
extern Jsonb *tq_json_read_any(const TqJsonReader *reader, int key);
extern Jsonb *tq_json_read_object(const TqJsonReader *reader, int key);

extern JsonbParseState *tq_json_begin(void);
extern void tq_json_key(JsonbParseState **state, const char *key);
extern void tq_json_string(JsonbParseState **state, JsonbIteratorToken token,
						   const char *text);
extern void tq_json_add_text(JsonbParseState **state, const char *key,
							 const char *text);
extern void tq_json_add_bool(JsonbParseState **state, const char *key,
							 bool flag);
extern void tq_json_add_int(JsonbParseState **state, const char *key,
							int64 number);
extern void tq_json_add_seconds(JsonbParseState **state, const char *key,
								int64 ms);
extern void tq_json_add_time(JsonbParseState **state, const char *key,
							 TimestampTz t);
extern void tq_json_add_slug(JsonbParseState **state, const char *key,
							 const TqSlug *slug);
extern void tq_json_add_object(JsonbParseState **state, const char *key,
							   Jsonb *object);
extern void tq_json_add_texts(JsonbParseState **state, const char *key,
							  ArrayType *array);
extern void tq_json_add_slugs(JsonbParseState **state, const char *key,
							  const TqSlug *slugs, int n);
extern Jsonb *tq_json_end(JsonbParseState **state);

/* ---- lines.c: lines of fields, and bytes of jsonb values in them ---- */

/* Where the next field is. */
typedef struct TqLines
{
	char *next;
	char *end;
} TqLines;

extern void tq_lines_add_slug(StringInfo lines, const TqSlug *slug, char ends);
extern void tq_lines_add_number(StringInfo lines, int64 number, char ends);

extern TqLines tq_lines_of(const text *given);
extern bool tq_lines_are_left(const TqLines *lines);
extern int tq_lines_count(const TqLines *lines);
extern char *tq_lines_field(TqLines *lines, char ends);
extern bool tq_lines_slug(TqLines *lines, char ends, TqSlug *slug);
extern bool tq_lines_int64(TqLines *lines, char ends, int64 *value);
extern bool tq_lines_int32(TqLines *lines, char ends, int32 *value);

extern void tq_jsonb_add_hex(StringInfo text, const Jsonb *value);

/* ---- spi.c: statements that are planned once per backend ---- */

/*
 * A statement, as static data.  The array `types` ends at the first 0.
 * TQ_SLUGID stands for tq.slugid, and TQ_SLUGIDS for an array of it, whose Oids
 * are looked up when the statement is prepared.
 */
#define TQ_SLUGID ((Oid) 1)
#define TQ_SLUGIDS ((Oid) 2)
#define TQ_MAX_ARGS 24

typedef struct TqStatement
{
	const char *sql;
	Oid types[TQ_MAX_ARGS + 1];
	bool
		calls_body; /* a function whose statements are planned as bodies are */
	struct _SPI_plan *plan;
} TqStatement;

#define TQ_STATEMENT(sql_, ...)                                               \
	{                                                                         \
		.sql = (sql_), .types = { __VA_ARGS__ }                               \
	}

#define TQ_BODY_STATEMENT(sql_, ...)                                          \
	{                                                                         \
		.sql = (sql_), .types = {__VA_ARGS__}, .calls_body = true             \
	}

extern void tq_spi_init(void);
extern void tq_spi_refuse_write(void);

/*
 * Raises an error if the transaction is read-only.  A call that writes begins with
 * this.
 */
#define tq_spi_require_writable()                                             \
	do                                                                        \
	{                                                                         \
		if (XactReadOnly)                                                     \
			tq_spi_refuse_write();                                            \
	} while (0)

extern void tq_spi_open(bool read_only);
extern void tq_spi_open_at(Snapshot snapshot);
extern void tq_spi_close(void);
extern void tq_spi_become_owner(void);
extern void tq_spi_begin_body(void);
extern void tq_spi_end_body(void);
extern void tq_spi_begin_part(void);
extern void tq_spi_end_part(void);
extern Oid tq_spi_caller(void);
extern bool tq_spi_is_reading; /* the current call; it may be on a standby */
extern uint64 tq_spi_read_since(void);
extern Snapshot tq_spi_snapshot(void);
extern uint64 tq_spi_run(TqStatement *statement, const Datum *values,
						 const char *nulls);
extern Datum tq_spi_query_as(Oid role, const char *sql, bool *isnull);
extern bool tq_spi_exists(TqStatement *statement, const Datum *values);
extern int64 tq_spi_run_int64(TqStatement *statement, const Datum *values,
							  int64 if_none);
extern int64 *tq_spi_run_ids(TqStatement *statement, const Datum *values,
							 int *found);

/* Reads a row into a struct. */
typedef void TqReader(TupleTableSlot *slot, void *row);

extern bool tq_spi_read(TqStatement *statement, const Datum *values,
						TqReader *read, void *row);
extern void *tq_spi_read_all(TqStatement *statement, const Datum *values,
							 TqReader *read, Size size, int *found);

typedef struct PortalData *TqRows;

extern TqRows tq_spi_rows_open(TqStatement *statement, const Datum *values);
extern uint64 tq_spi_rows_fetch(TqRows cursor, int max);
extern void tq_spi_rows_close(TqRows cursor);
extern TupleTableSlot *tq_spi_slot(void);
extern void tq_spi_store(TupleTableSlot *slot, uint64 row);
extern void tq_spi_free_result(void);
extern void *tq_spi_keep(const void *varlena);

/* The parameters of a statement, as an array. */
#define TQ_VALUES(...) ((const Datum[]){__VA_ARGS__})

/* Array parameters. */
extern Datum tq_array_int64(const int64 *values, int n);
extern int tq_compare_ids(const void *a, const void *b);
extern Datum tq_array_int32(const int32 *values, int n);
extern Datum tq_array_time(const TimestampTz *values, int n);
extern Datum tq_array_slugid(const TqSlug *values, int n);
extern Datum tq_array_text(char *const *values, int n);
extern char **tq_texts_of_array(ArrayType *array, int *n);

/* Builds an array parameter from one field of an array of structs. */
#define TQ_COLUMN(rows, n, type, function, field, into)                       \
	do                                                                        \
	{                                                                         \
		type *column = palloc(sizeof(type) * (n));                            \
		for (int i = 0; i < (n); i++)                                         \
			column[i] = (type) (rows)[i].field;                               \
		into = function(column, n);                                           \
	} while (0)

/* ---- catalog.c: finds tq's objects, and protects them from DROP ---- */

/* The schema of the tables, and of functions that users do not call. */
#define TQ_SCHEMA "tq_internal"

extern void tq_catalog_lock(void);
/*
 * The table that the last call locked: distinguishes the extension from one that
 * was dropped earlier.
 */
extern Oid tq_locked_table;
extern Oid tq_catalog_table(void);
extern bool tq_catalog_is_wanted(void);
extern Oid tq_catalog_owner(void);
extern Oid tq_catalog_slugid_type(void);

/* ---- xact_end.c: what follows the end of a transaction, in one order ---- */

/*
 * The part of a module; NULL: nothing to do.  The part is left out while
 * *has_work is false.  None of these functions raises an error or allocates
 * memory.  A prepared transaction has neither commit nor abort, because it
 * ends in another session, where none of them is called.
 */
typedef struct TqXactEnd
{
	const bool *has_work;
	void (*before_commit)(void);
	void (*commit)(void); /* its rows are visible */
	/*
	 * Aborted: the transaction, if id is TopSubTransactionId, or that
	 * subtransaction, after those within it.  Its row locks are free.
	 */
	void (*abort)(SubTransactionId id);
	void (*reset)(void); /* after commit or abort, or when it is prepared */
	void (*before_prepare)(void); /* may raise an error */
	void (*prepared)(void);
	void (*subcommit)(SubTransactionId id, SubTransactionId parent);
} TqXactEnd;

extern void tq_xact_end_init(const TqXactEnd *const *parts, int n);

/* ---- durability.c: whether what is visible is as durable as a commit ---- */

extern bool tq_durable_has_standbys(void);
extern void tq_durable_flush(FullTransactionId xid);
extern XLogRecPtr tq_durable_here(void);
extern bool tq_durable_within(XLogRecPtr lsn, int max_ms);

#endif /* TQ_UTIL_H */
