/*
 * arguments.h
 *	  Reads and checks the arguments of SQL functions.
 */
#ifndef TQ_ARGUMENTS_H
#define TQ_ARGUMENTS_H

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/jsonb.h"

#include "../engine/credentials.h"
#include "../engine/repair.h"
#include "../util/compat.h"
#include "../util/slugid.h"

extern const TqSlug *tq_arg_slug(FunctionCallInfo fcinfo, int n,
								 const char *name);
extern TqSlug tq_arg_after(FunctionCallInfo fcinfo, int n);
extern int tq_arg_max(FunctionCallInfo fcinfo, int n);
extern int tq_arg_int(FunctionCallInfo fcinfo, int n, const char *name,
					  int min, int max);
extern int tq_arg_run_id(FunctionCallInfo fcinfo, int n);
extern char *tq_arg_text(FunctionCallInfo fcinfo, int n, const char *name);
extern char *tq_arg_identifier(FunctionCallInfo fcinfo, int n,
							   const char *name);
extern char *tq_arg_worker_name(FunctionCallInfo fcinfo, int n,
								const char *name);
extern char *tq_arg_task_queue_id(FunctionCallInfo fcinfo, int n);
extern char *tq_arg_named_queue(FunctionCallInfo fcinfo, int n,
								const char *name);
extern char *tq_arg_queue_of_two(FunctionCallInfo fcinfo, int provisioner,
								 int worker_type);
extern Jsonb *tq_arg_jsonb(FunctionCallInfo fcinfo, int n, const char *name);
extern Jsonb *tq_arg_result(FunctionCallInfo fcinfo, int n, const char *name);
extern Jsonb *tq_arg_error(FunctionCallInfo fcinfo, int error_arg,
						   int message_arg);
extern Jsonb *tq_error_with_message(Jsonb *error, const char *message);
extern const char *tq_result_fault(const Jsonb *result);
extern const char *tq_error_fault(const Jsonb *error);
extern Interval *tq_arg_interval(FunctionCallInfo fcinfo, int n,
								 const char *name);
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

extern void tq_put_row(ReturnSetInfo *rsinfo, Datum *values, bool *nulls);
extern void tq_set_time(Datum *values, bool *nulls, int column, TimestampTz t);
extern Datum tq_slug_datum(const TqSlug *slug);

#endif /* TQ_ARGUMENTS_H */
