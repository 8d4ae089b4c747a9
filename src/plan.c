/*
 * plan.c
 *	  SQL statements that are parsed and planned once per backend.
 *
 * Room 1.  How a statement is prepared and run, and how rows and arrays are
 * read and made; what the statements say is for the stores.
 *
 * Snapshots.  A function that changes something runs each statement with the
 * latest snapshot whatever the isolation level is, as the server's foreign
 * keys do: a decision taken under a lock must see what was committed before
 * the lock was had.  Under REPEATABLE READ a row that was changed by another
 * since then still raises a serialization failure.
 *
 * A function that only reads takes one snapshot when it begins, the
 * transaction's, and reads everything with it, so that its answer is of one
 * moment.  Under READ COMMITTED that is a new snapshot: it shows what a call
 * before it in the same statement has done, and what that call has seen, such
 * as the task that another session created while claim_work() waited for one.
 * Under REPEATABLE READ and above it is the transaction's only snapshot with
 * the newest command id, which shows the transaction's own changes and no
 * later commit.  So the answer may change within a statement, and the SQL
 * functions are VOLATILE.  All of that holds on a standby, too.
 *
 * Plans.  Every statement walks indexes in the order in which its text names
 * the tables, however empty or stale the statistics are: a queue grows from
 * nothing to millions within one analyze interval, so the planner is told.
 */
#include "plumbing.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

/* How the present call reads, and how many calls are open in one another. */
static bool reading = false;
static int depth = 0;

/* What a call must leave as it found it, however it ends. */
typedef struct Opening
{
	MemoryContextCallback callback;
	bool was_reading;
} Opening;

static void
leave_call(void *arg)
{
	Opening *opening = (Opening *) arg;

	reading = opening->was_reading;
	depth--;
}

/*
 * A call that writes is refused, before it does anything, in a transaction that
 * is read-only.  On a standby every transaction is.
 */
void
tq_plan_refuse_read_only(void)
{
	if (!XactReadOnly)
		return;
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot write to tq during recovery"),
				 errdetail("This server is a standby, which only reads."),
				 errhint("Connect to the primary.")));
	ereport(
		ERROR,
		(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
		 errmsg("cannot write to tq in a read-only transaction"),
		 errdetail("The transaction is READ ONLY."),
		 errhint(
			 "Use a transaction that is READ WRITE, and connect to the primary.")));
}

/*
 * Begin the SQL of one call; memory taken from here on is gone at the close.
 * Calls may be nested (a trigger of the owner's on one of our tables): the
 * memory of SPI goes at the end of a call and after an error, and with it we
 * learn that the call is over.
 */
void
tq_plan_open(bool read_only)
{
	Opening *opening;

	if (!read_only)
		tq_plan_refuse_read_only();
	tq_catalog_hold();
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	opening = palloc(sizeof(Opening));
	opening->callback.func = leave_call;
	opening->callback.arg = opening;
	opening->was_reading = reading;
	MemoryContextRegisterResetCallback(CurrentMemoryContext,
									   &opening->callback);
	reading = read_only;
	depth++;
	if (read_only)
		PushActiveSnapshot(GetTransactionSnapshot());
	else
		tq_activation_do();
}

void
tq_plan_close(void)
{
	if (reading)
		PopActiveSnapshot();
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
}

/* Does the present call only read?  It may be on a standby. */
bool
tq_plan_is_reading(void)
{
	return reading;
}

/* What the present call sees: its own snapshot, or all that is committed. */
Snapshot
tq_plan_snapshot(void)
{
	return reading ? GetActiveSnapshot() : GetLatestSnapshot();
}

static Oid
real_type(Oid type)
{
	if (type == TQ_SLUGID)
		return tq_catalog_slugid_type();
	if (type == TQ_SLUGIDS)
		return tq_catalog_slugid_array_type();
	return type;
}

static void
set_planner(const char *name, const char *value)
{
	(void) set_config_option(name,
							 value,
							 PGC_USERSET,
							 PGC_S_SESSION,
							 GUC_ACTION_SAVE,
							 true,
							 0,
							 false);
}

/* Counts how often a saved statement has been planned. */
static int
generation(SPIPlanPtr plan)
{
	CachedPlanSource *source = linitial(SPI_plan_get_plan_sources(plan));

	return source->generation;
}

/* Parse and plan; the plan is generic, and kept until it is invalidated. */
static void
prepare(TqStatement *statement)
{
	Oid types[TQ_MAX_ARGS];
	int nargs = 0;
	int nest;
	SPIPlanPtr plan;
	CachedPlan *cached;

	for (; statement->types[nargs] != InvalidOid; nargs++)
		types[nargs] = real_type(statement->types[nargs]);

	nest = NewGUCNestLevel();
	set_planner("search_path", "pg_catalog, pg_temp");
	set_planner("plan_cache_mode", "auto");
	set_planner("enable_indexscan", "on");
	set_planner("enable_indexonlyscan", "on");
	set_planner("enable_nestloop", "on");
	set_planner("enable_sort", "on");
	set_planner("enable_seqscan", "off");
	set_planner("enable_bitmapscan", "off");
	set_planner("enable_hashjoin", "off");
	set_planner("enable_mergejoin", "off");
	set_planner("enable_material", "off");
	set_planner("join_collapse_limit", "1");
	set_planner("from_collapse_limit", "1");
	set_planner("jit", "off");
	plan = SPI_prepare_cursor(statement->sql,
							  nargs,
							  types,
							  CURSOR_OPT_GENERIC_PLAN);
	if (plan == NULL)
		elog(ERROR,
			 "could not prepare: %s",
			 SPI_result_code_string(SPI_result));
	SPI_keepplan(plan);
	cached = SPI_plan_get_cached_plan(plan);
	if (cached != NULL)
		ReleaseCachedPlan(cached, CurrentResourceOwner);
	AtEOXact_GUC(true, nest);
	statement->plan = plan;
	statement->generation = generation(plan);
}

/* Prepare a statement again whose plan is no longer the one that we made. */
static void
prepare_if_stale(TqStatement *statement)
{
	SPIPlanPtr stale = statement->plan;

	if (stale != NULL && (!SPI_plan_is_valid(stale) ||
						  generation(stale) != statement->generation))
	{
		statement->plan = NULL;
		/* An outer call may be in the middle of it: rather lose the memory. */
		if (depth == 1)
			SPI_freeplan(stale);
	}
	if (statement->plan == NULL)
		prepare(statement);
}

/* A session may want custom plans for its own statements; not for ours. */
static int
execute(TqStatement *statement, const Datum *values, const char *nulls)
{
	bool override = plan_cache_mode == PLAN_CACHE_MODE_FORCE_CUSTOM_PLAN;
	int nest = 0;
	int code;

	if (override)
	{
		nest = NewGUCNestLevel();
		set_planner("plan_cache_mode", "auto");
	}
	code = SPI_execute_snapshot(statement->plan,
								unconstify(Datum *, values),
								nulls,
								tq_plan_snapshot(),
								InvalidSnapshot,
								reading,
								true,
								0);
	if (override)
		AtEOXact_GUC(true, nest);
	return code;
}

/*
 * Run a statement and return the number of its rows.  SPI leaves the memory
 * context of the whole call as the current one; a caller that works in memory
 * of its own gets that back.
 */
uint64
tq_plan_run(TqStatement *statement, const Datum *values, const char *nulls)
{
	MemoryContext context = CurrentMemoryContext;
	int code;

	prepare_if_stale(statement);
	code = execute(statement, values, nulls);
	MemoryContextSwitchTo(context);
	if (code < 0)
		elog(ERROR, "could not execute: %s", SPI_result_code_string(code));
	return SPI_processed;
}

/*
 * Opens a statement whose rows are read some at a time.  Other statements may
 * run meanwhile.  It sees what is committed now, whatever they write.
 */
TqRows
tq_plan_rows_open(TqStatement *statement, const Datum *values)
{
	TqRows cursor;

	prepare_if_stale(statement);
	PushActiveSnapshot(tq_plan_snapshot());
	cursor = SPI_cursor_open(NULL,
							 statement->plan,
							 unconstify(Datum *, values),
							 NULL,
							 true);
	PopActiveSnapshot();
	return cursor;
}

/* Reads the next rows, up to so many, as if a statement had given them. */
uint64
tq_plan_rows_fetch(TqRows cursor, int max)
{
	SPI_cursor_fetch(cursor, true, max);
	return SPI_processed;
}

void
tq_plan_rows_close(TqRows cursor)
{
	SPI_cursor_close(cursor);
}

/* Give back the rows of the last statement, where a call runs many. */
void
tq_plan_free_result(void)
{
	if (SPI_tuptable != NULL)
		SPI_freetuptable(SPI_tuptable);
	SPI_tuptable = NULL;
}

/* A copy that outlives tq_plan_close(). */
void *
tq_plan_keep(const void *varlena)
{
	Size size = VARSIZE(varlena);
	void *copy = SPI_palloc(size);

	memcpy(copy, varlena, size);
	return copy;
}

Datum
tq_plan_field(uint64 row, int column, bool *isnull)
{
	return SPI_getbinval(SPI_tuptable->vals[row],
						 SPI_tuptable->tupdesc,
						 column,
						 isnull);
}

int64
tq_plan_int64(uint64 row, int column, int64 if_null)
{
	bool isnull;
	Datum value = tq_plan_field(row, column, &isnull);

	return isnull ? if_null : DatumGetInt64(value);
}

int32
tq_plan_int32(uint64 row, int column, int32 if_null)
{
	bool isnull;
	Datum value = tq_plan_field(row, column, &isnull);

	return isnull ? if_null : DatumGetInt32(value);
}

int16
tq_plan_int16(uint64 row, int column, int16 if_null)
{
	bool isnull;
	Datum value = tq_plan_field(row, column, &isnull);

	return isnull ? if_null : DatumGetInt16(value);
}

bool
tq_plan_bool(uint64 row, int column)
{
	bool isnull;
	Datum value = tq_plan_field(row, column, &isnull);

	return !isnull && DatumGetBool(value);
}

/* A time, or 0 for NULL: the stores hold no time as early as 2000. */
TimestampTz
tq_plan_time(uint64 row, int column)
{
	bool isnull;
	Datum value = tq_plan_field(row, column, &isnull);

	return isnull ? 0 : DatumGetTimestampTz(value);
}

/* A text, or NULL. */
char *
tq_plan_text(uint64 row, int column)
{
	bool isnull;
	Datum value = tq_plan_field(row, column, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

TqSlug
tq_plan_slug(uint64 row, int column)
{
	bool isnull;
	Datum value = tq_plan_field(row, column, &isnull);
	TqSlug slug = {{0}};

	return isnull ? slug : *DatumGetTqSlugP(value);
}

/* A jsonb that lives as long as the call, or NULL. */
Jsonb *
tq_plan_jsonb(uint64 row, int column)
{
	bool isnull;
	Datum value = tq_plan_field(row, column, &isnull);

	return isnull ? NULL : DatumGetJsonbPCopy(value);
}

/* Run a statement whose only column is a bigint, and copy its rows. */
int64 *
tq_plan_run_ids(TqStatement *statement, const Datum *values, int *found)
{
	int64 *ids;

	*found = (int) tq_plan_run(statement, values, NULL);
	ids = palloc(sizeof(int64) * Max(*found, 1));
	for (int i = 0; i < *found; i++)
		ids[i] = tq_plan_int64(i, 1, 0);
	tq_plan_free_result();
	return ids;
}

/*
 * Arrays as parameters.  The macro makes one function per element type.
 */
#define ARRAY_FUNCTION(name, ctype, to_datum, oid, byval, align)              \
	Datum name(const ctype *values, int n)                                    \
	{                                                                         \
		Datum *elements = palloc(sizeof(Datum) * Max(n, 1));                  \
                                                                              \
		for (int i = 0; i < n; i++)                                           \
			elements[i] = to_datum(values[i]);                                \
		return PointerGetDatum(                                               \
			construct_array(elements, n, oid, sizeof(ctype), byval, align));  \
	}

#define SlugGetDatum(slug) PointerGetDatum(&(slug))

ARRAY_FUNCTION(tq_array_int64, int64, Int64GetDatum, INT8OID, FLOAT8PASSBYVAL,
			   TYPALIGN_DOUBLE)
ARRAY_FUNCTION(tq_array_int32, int32, Int32GetDatum, INT4OID, true,
			   TYPALIGN_INT)
ARRAY_FUNCTION(tq_array_bool, bool, BoolGetDatum, BOOLOID, true, TYPALIGN_CHAR)
ARRAY_FUNCTION(tq_array_time, TimestampTz, TimestampTzGetDatum, TIMESTAMPTZOID,
			   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE)
ARRAY_FUNCTION(tq_array_slugid, TqSlug, SlugGetDatum, tq_catalog_slugid_type(),
			   false, TYPALIGN_CHAR)
