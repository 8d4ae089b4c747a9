/*
 * api.h
 *	  What the files of SQL functions share.
 *
 * The API decides how arguments are read and answers are built, which scopes a
 * call asks for, and what the audit trail shows of it.  Each function reads its
 * arguments, begins the call, calls the layers below, ends the call and
 * answers; decisions about tasks are those of the life-cycle.
 */
#ifndef TQ_API_H
#define TQ_API_H

#include "funcapi.h"

#include "../operations/operations.h"

/* ---- arguments.c: reads and checks the arguments of SQL functions ---- */

extern const TqSlug *tq_arg_slug(FunctionCallInfo fcinfo, int n,
								 const char *name);
extern TqSlug tq_arg_after(FunctionCallInfo fcinfo, int n);
#define TQ_PAGE_MAX 1000 /* rows of a list */
extern int tq_arg_max(FunctionCallInfo fcinfo, int n);
extern int tq_arg_int(FunctionCallInfo fcinfo, int n, const char *name,
					  int min, int max);
extern char *tq_arg_text(FunctionCallInfo fcinfo, int n, const char *name);
extern char *tq_arg_worker_name(FunctionCallInfo fcinfo, int n,
								const char *name);
extern char *tq_arg_named_queue(FunctionCallInfo fcinfo, int n,
								const char *name);

#define tq_arg_run_id(fcinfo, n)                                              \
	tq_arg_int(fcinfo, n, "run_id", 0, PG_INT32_MAX)
#define tq_arg_task_queue_id(fcinfo, n)                                       \
	tq_arg_named_queue(fcinfo, n, "task_queue_id")

extern Jsonb *tq_arg_jsonb(FunctionCallInfo fcinfo, int n, const char *name);
extern int64 tq_arg_wait(FunctionCallInfo fcinfo, int n, int64 max);
extern Interval *tq_arg_interval(FunctionCallInfo fcinfo, int n,
								 const char *name);
extern TimestampTz tq_arg_deadline(FunctionCallInfo fcinfo, int n,
								   TimestampTz now);
extern TqRepairHow tq_arg_repair(FunctionCallInfo fcinfo, int deadline,
								 int downstream);
extern ArrayType *tq_arg_array(FunctionCallInfo fcinfo, int n,
							   const char *name);
extern ArrayType *tq_arg_batch(FunctionCallInfo fcinfo, int n,
							   const char *name);
extern void tq_check_batch(const char *name, int n);
extern char **tq_arg_texts(FunctionCallInfo fcinfo, int n, const char *name,
						   int *found);
extern TqSlug *tq_slugs_of_array(ArrayType *array, const char *name, int *n);
extern TqCredentials *tq_arg_credentials(FunctionCallInfo fcinfo, int n);
extern void tq_arg_credentials_of_runs(FunctionCallInfo fcinfo, int arg,
									   TqCredentials **credentials, int n);
pg_noreturn extern void tq_error_null(const char *name);
pg_noreturn extern void tq_error_null_element(const char *name, int element);

extern void tq_begin_rows(FunctionCallInfo fcinfo);
extern void tq_put_row(ReturnSetInfo *rsinfo, Datum *values, bool *nulls);
extern void tq_set_time(Datum *values, bool *nulls, int column, TimestampTz t);
extern void tq_require_commit(FunctionCallInfo fcinfo, const char *procedure,
							  const char *detail, const char *hint);
extern int64 tq_arg_limit(FunctionCallInfo fcinfo, int n);
extern void tq_commit_batches(bool (*make)(void *call),
							  void (*show)(void *call), void *call);

/* ---- audit_call.c: the audit trail: which role made which call ---- */

#define TQ_NO_RUN (-1)

/* A task, or a run of it, that a call is about. */
typedef struct TqActRun
{
	TqSlug task_id;
	int run_id;         /* TQ_NO_RUN: none in particular */
	const char *client; /* of the credentials that were given; NULL: none */
} TqActRun;

extern void tq_audit_call(FunctionCallInfo fcinfo);
extern void tq_audit_call_runs(FunctionCallInfo fcinfo, const TqActRun *runs,
							   int n);

/*
 * Writes an act of an operator, or a call of a producer or worker, if tq.audit
 * wants it.  A function that the trail shows has one of them before its
 * tq_call_end(), or asks tq_audit_wants_clients() itself.
 */
#define tq_audit_operator(fcinfo)                                             \
	do                                                                        \
	{                                                                         \
		if (tq_audit != TQ_AUDIT_OFF)                                         \
			tq_audit_call(fcinfo);                                            \
	} while (0)

#define tq_audit_wants_clients() (tq_audit == TQ_AUDIT_ALL)

#define tq_audit_client(fcinfo)                                               \
	do                                                                        \
	{                                                                         \
		if (tq_audit_wants_clients())                                         \
			tq_audit_call(fcinfo);                                            \
	} while (0)

/* ---- task_api.c: rows of tasks in answers ---- */

extern void tq_put_entries(ReturnSetInfo *rsinfo,
						   const TqTaskDefinition *tasks, int n);

/* ---- worker_api.c: what functions for workers have in common ---- */

extern void tq_put_outcome(ReturnSetInfo *rsinfo, const TqReport *report);

/* ---- count_api.c: counts of queues ---- */

extern int64 tq_runs_ended(const TqQueueCounts *counts, TqState state);
extern int64 tq_runs_ended_for(const TqQueueCounts *counts, TqResolved reason);

/* ---- report_json.c: reads results, errors and reports of workers ---- */

#define TQ_EXCEPTION_REASONS                                                  \
	"worker-shutdown, malformed-payload, resource-unavailable, internal-error, intermittent-task"
#define TQ_REPORT_REASONS                                                     \
	"completed, failed, failed-terminal, " TQ_EXCEPTION_REASONS ", canceled"

extern TqResolved tq_report_reason(const char *name);
extern TqReport *tq_reports_read(Jsonb *json, int *n);
extern Jsonb *tq_arg_result(FunctionCallInfo fcinfo, int n, const char *name);
extern Jsonb *tq_arg_error(FunctionCallInfo fcinfo, int error_arg,
						   int message_arg);

/* ---- sql_body.c: the languages of functions that are written in SQL ---- */

extern void tq_body_init(void);

#endif /* TQ_API_H */
