/*
 * arguments.c
 *	  Reads and checks the arguments of SQL functions.
 *
 * Checks everything that can be decided from an argument alone: NULL, range,
 * form.  Each error is TQ400, and is raised before anything is read or written.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "nodes/parsenodes.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "api.h"

/* Raises TQ400 for an argument that is NULL. */
void
tq_error_null(const char *name)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("%s must not be NULL", name),
		 errdetail("The argument %s is NULL.", name),
		 strcmp(name, "payload") == 0
			 ? errhint(
				   "Leave payload out for {}, or give the JSON value 'null'.")
			 : errhint("Give a value for %s.", name)));
}

/* Raises TQ400 for an element, counted from 0, that is NULL. */
void
tq_error_null_element(const char *name, int element)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("%s must not contain NULL", name),
					errdetail("Element %d is NULL.", element + 1),
					errhint("Leave the element out.")));
}

/* Raises TQ400 if an argument is NULL. */
#define REFUSE_NULL(n, name)                                                  \
	do                                                                        \
	{                                                                         \
		if (PG_ARGISNULL(n))                                                  \
			tq_error_null(name);                                              \
	} while (0)

/* Returns a slugid argument. */
const TqSlug *
tq_arg_slug(FunctionCallInfo fcinfo, int n, const char *name)
{
	REFUSE_NULL(n, name);
	return PG_GETARG_TQ_SLUG_P(n);
}

/*
 * Returns the last id of the previous page.  For NULL it is lower than every
 * id, so that the first page is read.
 */
TqSlug
tq_arg_after(FunctionCallInfo fcinfo, int n)
{
	TqSlug lowest = {{0}};

	return PG_ARGISNULL(n) ? lowest : *PG_GETARG_TQ_SLUG_P(n);
}

/* Returns an int argument, which must be from min to max. */
int
tq_arg_int(FunctionCallInfo fcinfo, int n, const char *name, int min, int max)
{
	int value;

	REFUSE_NULL(n, name);
	value = PG_GETARG_INT32(n);
	if (value < min || value > max)
		ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
						errmsg("%s is out of range", name),
						errdetail("It is %d, and may be from %d to %d.", value,
								  min, max),
						errhint("Give a number from %d to %d.", min, max)));
	return value;
}

/* Returns the argument "max", the size of a page. */
int
tq_arg_max(FunctionCallInfo fcinfo, int n)
{
	return tq_arg_int(fcinfo, n, "max", 1, TQ_PAGE_MAX);
}

/* Returns a text argument. */
char *
tq_arg_text(FunctionCallInfo fcinfo, int n, const char *name)
{
	REFUSE_NULL(n, name);
	return TextDatumGetCString(PG_GETARG_DATUM(n));
}

/* Returns the argument "worker_group" or "worker_id". */
char *
tq_arg_worker_name(FunctionCallInfo fcinfo, int n, const char *name)
{
	char *value = tq_arg_text(fcinfo, n, name);

	tq_check_worker_name(name, value);
	return value;
}

/* Returns a text argument that must be the name of a task queue. */
char *
tq_arg_named_queue(FunctionCallInfo fcinfo, int n, const char *name)
{
	return tq_task_queue_id(name, tq_arg_text(fcinfo, n, name));
}

/* Returns a jsonb argument. */
Jsonb *
tq_arg_jsonb(FunctionCallInfo fcinfo, int n, const char *name)
{
	REFUSE_NULL(n, name);
	return PG_GETARG_JSONB_P(n);
}

/* Returns an interval argument. */
Interval *
tq_arg_interval(FunctionCallInfo fcinfo, int n, const char *name)
{
	REFUSE_NULL(n, name);
	return PG_GETARG_INTERVAL_P(n);
}

/* What the functions of SQL declare as the default of "deadline". */
#define DEFAULT_DEADLINE_MONTHS (-178000000 * MONTHS_PER_YEAR)

/*
 * Returns the deadline of a new task, which counts from now, or DT_NOEND for
 * none: for NULL, and for 'infinity', where the server has it (17).  If the
 * argument was left out, tq.default_deadline decides.
 */
TimestampTz
tq_arg_deadline(FunctionCallInfo fcinfo, int n, TimestampTz now)
{
	Interval *span;
	TimestampTz deadline;

	if (PG_ARGISNULL(n))
		return DT_NOEND;
	span = PG_GETARG_INTERVAL_P(n);
	if (TqIntervalIsForever(span))
		return DT_NOEND;
	if (span->month == DEFAULT_DEADLINE_MONTHS)
		return tq_default_deadline == 0
				   ? DT_NOEND
				   : tq_clock_add_ms(now, tq_default_deadline);
	deadline = tq_clock_add_interval(now, span);
	if (!TIMESTAMP_IS_NOEND(deadline))
		return deadline;
	return tq_clock_span_ms(span) < 0 ? DT_NOBEGIN : DT_NOEND - 1;
}

/* Returns the arguments "deadline", which may be NULL, and "downstream". */
TqRepairHow
tq_arg_repair(FunctionCallInfo fcinfo, int deadline, int downstream)
{
	REFUSE_NULL(downstream, "downstream");
	return (TqRepairHow){.deadline = PG_ARGISNULL(deadline)
										 ? NULL
										 : PG_GETARG_INTERVAL_P(deadline),
						 .downstream = PG_GETARG_BOOL(downstream)};
}

/* Returns an array argument. */
ArrayType *
tq_arg_array(FunctionCallInfo fcinfo, int n, const char *name)
{
	REFUSE_NULL(n, name);
	return PG_GETARG_ARRAYTYPE_P(n);
}

/* Raises TQ400 if a call has more elements than tq.max_batch allows. */
void
tq_check_batch(const char *name, int n)
{
	if (n > tq_max_batch)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("%s is too long", name),
			 errdetail("It has %d elements, and may have %d.", n,
					   tq_max_batch),
			 errhint(
				 "Divide it among several calls; tq.max_batch is the limit.")));
}

/* Returns an array argument of at most tq.max_batch elements. */
ArrayType *
tq_arg_batch(FunctionCallInfo fcinfo, int n, const char *name)
{
	ArrayType *array = tq_arg_array(fcinfo, n, name);

	tq_check_batch(name, ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)));
	return array;
}

/*
 * Returns the elements of a text[] of at most tq.max_batch elements, none of
 * which may be NULL.
 */
char **
tq_arg_texts(FunctionCallInfo fcinfo, int n, const char *name, int *found)
{
	char **texts = tq_texts_of_array(tq_arg_batch(fcinfo, n, name), found);

	for (int i = 0; i < *found; i++)
	{
		if (texts[i] == NULL)
			tq_error_null_element(name, i);
	}
	return texts;
}

/* Returns the elements of a slugid[], none of which may be NULL. */
TqSlug *
tq_slugs_of_array(ArrayType *array, const char *name, int *n)
{
	Datum *elements;
	bool *nulls;
	TqSlug *slugs;

	deconstruct_array(array, ARR_ELEMTYPE(array), TQ_SLUG_BYTES, false,
					  TYPALIGN_CHAR, &elements, &nulls, n);
	slugs = palloc(sizeof(TqSlug) * Max(*n, 1));
	for (int i = 0; i < *n; i++)
	{
		if (nulls[i])
			tq_error_null_element(name, i);
		slugs[i] = *DatumGetTqSlugP(elements[i]);
	}
	return slugs;
}

pg_noreturn static void
refuse_credentials(void)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("invalid credentials"),
		 errdetail(
			 "They are not an object of the strings \"clientId\", \"accessToken\" and \"certificate\"."),
		 errhint("Give the credentials of a claim as they are, or NULL.")));
}

static TqCredentials *
arguments_read_credentials(const JsonbContainer *json)
{
	TqCredentials *credentials = palloc(sizeof(TqCredentials));

	if (!tq_credentials_read(json, credentials))
		refuse_credentials();
	return credentials;
}

/* Returns credentials, which are not verified yet, or NULL. */
TqCredentials *
tq_arg_credentials(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n)
			   ? NULL
			   : arguments_read_credentials(&PG_GETARG_JSONB_P(n)->root);
}

/* Returns credentials of an array, an element of which may be null. */
static TqCredentials *
credentials_of(const JsonbValue *element)
{
	if (element->type == jbvNull)
		return NULL;
	if (element->type != jbvBinary)
		refuse_credentials();
	return arguments_read_credentials(element->val.binary.data);
}

/*
 * Sets credentials[] for each of n runs: an array has them in the same order,
 * an object is for all of the runs.
 */
void
tq_arg_credentials_of_runs(FunctionCallInfo fcinfo, int arg,
						   TqCredentials **credentials, int n)
{
	Jsonb *given = PG_ARGISNULL(arg) ? NULL : PG_GETARG_JSONB_P(arg);
	TqJsonIterator elements;

	if (given == NULL || !JB_ROOT_IS_ARRAY(given) || JB_ROOT_IS_SCALAR(given))
	{
		TqCredentials *all = tq_arg_credentials(fcinfo, arg);

		for (int i = 0; i < n; i++)
			credentials[i] = all;
		return;
	}
	elements = tq_json_iterate(&given->root);
	if (elements.n != n)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("credentials and run_ids must be of the same length"),
				 errdetail("There are %d credentials and %d run_ids.",
						   elements.n, n),
				 errhint("Give an array of one element for each run.")));
	while (tq_json_next(&elements))
		*credentials++ = credentials_of(&elements.value);
}

/*
 * Returns the argument "wait" in milliseconds.  More than max is an error, more
 * than tq.max_wait is shortened to that: a client that waits calls again when
 * the time is over.
 */
int64
tq_arg_wait(FunctionCallInfo fcinfo, int n, int64 max)
{
	Interval *span = tq_arg_interval(fcinfo, n, "wait");
	TimestampTz now;
	TimestampTz until;

	if (span->time == 0 && span->day == 0 && span->month == 0)
		return 0;
	now = tq_clock_now();
	until = tq_clock_add_interval(now, span);
	if (until < now || until > tq_clock_add_ms(now, max))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("wait is out of range"),
			 errdetail("It is %s, and may be from 0 to %d seconds.",
					   tq_clock_interval_text(span), (int) (max / 1000)),
			 errhint(
				 "Give an interval in that range, and call again when it is over.")));
	return Min((until - now) / 1000, tq_max_wait);
}

/* ---- procedures ---- */

/*
 * Raises TQ400 if the procedure may not end the transaction: in a transaction
 * block, or within a function.
 */
void
tq_require_commit(FunctionCallInfo fcinfo, const char *procedure,
				  const char *detail, const char *hint)
{
	if (fcinfo->context != NULL && IsA(fcinfo->context, CallContext) &&
		!castNode(CallContext, fcinfo->context)->atomic && !IsSubTransaction())
		return;
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("tq.%s() cannot run inside a transaction block",
						   procedure),
					errdetail("%s", detail), errhint("%s", hint)));
}

/* Returns the argument "max" of a procedure; NULL is no limit. */
int64
tq_arg_limit(FunctionCallInfo fcinfo, int n)
{
	int64 max;

	if (PG_ARGISNULL(n))
		return PG_INT64_MAX;
	max = PG_GETARG_INT64(n);
	if (max < 1)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("max is out of range"),
				 errdetail("It is " INT64_FORMAT ".", max),
				 errhint("Give at least 1, or NULL for all tasks.")));
	return max;
}

/*
 * Makes the batches of a procedure, each in a transaction of its own, until
 * make() returns false; show() follows the commit of each.  What a batch
 * allocates is freed after it.
 */
void
tq_commit_batches(bool (*make)(void *call), void (*show)(void *call),
				  void *call)
{
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext,
												 "tq batch",
												 ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer;
	bool more = true;

	tq_spi_require_writable();
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	while (more)
	{
		CHECK_FOR_INTERRUPTS();
		outer = MemoryContextSwitchTo(memory);
		PushActiveSnapshot(GetTransactionSnapshot());
		more = make(call);
		PopActiveSnapshot();
		MemoryContextSwitchTo(outer);
		MemoryContextReset(memory);
		SPI_commit();
		show(call);
	}
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	MemoryContextDelete(memory);
}

/* ---- answers ---- */

/*
 * Begins the rows of a set-returning function as InitMaterializedSRF() does, but
 * in the descriptor that the query has: to make another, and to compare the two,
 * would cost a hundredth of a claim.
 */
void
tq_begin_rows(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext outer;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) ||
		(rsinfo->allowedModes & SFRM_Materialize) == 0 ||
		rsinfo->expectedDesc == NULL)
	{
		InitMaterializedSRF(fcinfo, 0); /* which raises an error, or can */
		return;
	}
	outer = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	rsinfo->setResult = tuplestore_begin_heap((rsinfo->allowedModes &
											   SFRM_Materialize_Random) != 0,
											  false, work_mem);
	rsinfo->returnMode = SFRM_Materialize;
	MemoryContextSwitchTo(outer);
}

/* Adds a row to the result of a set-returning function. */
void
tq_put_row(ReturnSetInfo *rsinfo, Datum *values, bool *nulls)
{
	tuplestore_putvalues(rsinfo->setResult,
						 rsinfo->setDesc != NULL ? rsinfo->setDesc
												 : rsinfo->expectedDesc,
						 values, nulls);
}

/* Sets a time of a row; 0 is NULL. */
void
tq_set_time(Datum *values, bool *nulls, int column, TimestampTz t)
{
	values[column] = TimestampTzGetDatum(t);
	nulls[column] = t == 0;
}
