/*
 * spi.c
 *	  SQL statements that are parsed and planned once per backend.
 *
 * Prepares and runs statements, reads their rows, and builds arrays as
 * parameters; the stores contain the statements themselves.
 *
 * Snapshots.  A function that writes runs each statement with the latest
 * snapshot, whatever the isolation level is, as the server's foreign keys do:
 * a decision made under a lock must see what was committed before the lock was
 * acquired.  Under REPEATABLE READ, a row that another transaction has changed
 * since then still raises a serialization failure.
 *
 * A function that only reads takes the transaction's snapshot when it begins,
 * and reads everything with it, so that its answer is of one moment.  Under
 * READ COMMITTED that is a new snapshot.  It shows what an earlier call in the
 * same statement has done, and what that call has seen, such as the task that
 * another session created while claim_work() waited for one.  Under REPEATABLE
 * READ and above it is the transaction's only snapshot with the newest command
 * id, which shows the transaction's own changes and no later commit.  The
 * answer may therefore change within a statement, so the SQL functions are
 * VOLATILE.  All of this holds on a standby too.
 *
 * Rights.  The functions of tq are not SECURITY DEFINER, and have no SET clause:
 * both would cost each call what only a call that runs a statement needs.  Such
 * a call assumes the rights of the owner before its first statement.  What it
 * does through the access methods needs no right (rows/table.c), and looks
 * nothing up in the search_path.
 *
 * Bodies.  Some functions are written in SQL and run in a call (api/sql_body.c).
 * Their statements follow the same rules: the body of a function that only
 * reads has the snapshot of the call, and one that writes has the latest
 * snapshot for each statement, which a hook of the executor gives it under
 * REPEATABLE READ.
 *
 * Plans.  Every statement scans indexes in the order in which its text names the
 * tables, however empty or stale the statistics are, because a queue grows from
 * nothing to millions of rows between two ANALYZEs.  A planner hook sets the
 * planner for these statements, and for those of bodies, so that whenever the
 * server finds a plan invalid and plans again, it makes the same plan.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "storage/sinval.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

/* Before 16 a header that this one includes has a pointer without prototype. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include "optimizer/planner.h"

#include "util.h"

#pragma GCC diagnostic pop

bool tq_spi_is_reading = false;
static int depth = 0; /* how many calls are nested */

/* Invalidation messages processed before the snapshot of a reading call. */
static uint64 read_since = 0;

/* The statement that runs, which the server may plan. */
static const TqStatement *running = NULL;

static planner_hook_type next_planner_hook = NULL;
static ExecutorStart_hook_type next_executor_start = NULL;

/* What a call restores when it ends, in whatever way. */
typedef struct Opening
{
	MemoryContextCallback callback;
	struct Opening *outer;
	bool was_reading;
	uint64 was_read_since;
	const TqStatement *was_running;
	Oid caller;    /* effective role when the call began */
	bool is_body;  /* it runs the body of a function in SQL */
	bool is_owner; /* are these of the caller, and to be restored */
	Oid user;
	int security;
	int settings;
} Opening;

static Opening *current = NULL; /* of the innermost call */

static void
leave_call(void *arg)
{
	Opening *opening = (Opening *) arg;

	current = opening->outer;
	tq_spi_is_reading = opening->was_reading;
	read_since = opening->was_read_since;
	running = opening->was_running;
	depth--;
}

/*
 * Raises the error that the transaction is read-only, as every transaction on a
 * standby is.
 */
void
tq_spi_refuse_write(void)
{
	if (RecoveryInProgress())
		ereport(
			ERROR,
			(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
			 errmsg("cannot write to tq during recovery"),
			 errdetail("This server is a standby, which only reads."),
			 errhint(
				 "Connect to the primary; target_session_attrs=read-write in the connection string finds it.")));
	ereport(
		ERROR,
		(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
		 errmsg("cannot write to tq in a read-only transaction"),
		 errdetail("The transaction is READ ONLY."),
		 errhint(
			 "Use a transaction that is READ WRITE, and connect to the primary.")));
}

/*
 * Begins the SQL of a call, or of a part of one.  A reset callback of SPI's
 * memory context, which is freed at the end of the call and after an error,
 * restores the state of the outer call.
 */
static void
open_call(bool read_only)
{
	Opening *opening;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	opening = palloc(sizeof(Opening));
	opening->callback.func = leave_call;
	opening->callback.arg = opening;
	opening->outer = current;
	opening->caller = GetUserId();
	opening->is_body = false;
	opening->is_owner = false;
	opening->was_reading = tq_spi_is_reading;
	opening->was_read_since = read_since;
	opening->was_running = running;
	MemoryContextRegisterResetCallback(CurrentMemoryContext,
									   &opening->callback);
	current = opening;
	tq_spi_is_reading = read_only;
	depth++;
}

/*
 * Begins the SQL of one call, with caches that are up to date; memory allocated
 * from here on is freed by the close.  Calls may be nested, by a trigger of the
 * owner on a table of tq.
 */
void
tq_spi_open(bool read_only)
{
	if (!read_only)
		tq_spi_require_writable();
	AcceptInvalidationMessages();
	tq_catalog_lock();
	open_call(read_only);
	if (!read_only)
		return;
	read_since = IsolationUsesXactSnapshot() ? PG_UINT64_MAX
											 : SharedInvalidMessageCounter;
	PushActiveSnapshot(GetTransactionSnapshot());
}

/*
 * Begins a part of a call that reads by this snapshot, whether the call writes
 * or not; tq_spi_close() ends it.
 */
void
tq_spi_open_at(Snapshot snapshot)
{
	PushActiveSnapshot(snapshot);
	open_call(true);
	read_since = PG_UINT64_MAX; /* what is cached may be newer */
}

static void
set_option(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Assumes the rights of the extension's owner, and a search_path that no
 * object of another role is in, for the rest of the call.  It is called before
 * the first statement, and before a subtransaction, whose end would restore
 * the caller's.
 */
void
tq_spi_become_owner(void)
{
	if (current == NULL || current->is_owner)
		return;
	GetUserIdAndSecContext(&current->user, &current->security);
	SetUserIdAndSecContext(tq_catalog_owner(),
						   current->security | SECURITY_LOCAL_USERID_CHANGE);
	current->settings = NewGUCNestLevel();
	current->is_owner = true;
	set_option("search_path", "pg_catalog, pg_temp");
}

/*
 * Begins the body of a function that is written in SQL: the rest of the call
 * has the rights of the owner, and generic plans, which are made as those of
 * tq.
 */
void
tq_spi_begin_body(void)
{
	tq_spi_become_owner();
	set_option("plan_cache_mode", "force_generic_plan");
	current->is_body = true;
}

/* Ends the body; the rest of the call is in C. */
void
tq_spi_end_body(void)
{
	current->is_body = false;
}

/*
 * Begins a part of a body that is in C and may run statements.  It has a level
 * of SPI of its own, because a statement of the body is running: at the same
 * level, a second one would free the memory of the first.
 */
void
tq_spi_begin_part(void)
{
	Oid caller;

	if (current == NULL || !current->is_body)
		elog(ERROR, "this function is called by bodies only");
	caller = current->caller;
	open_call(tq_spi_is_reading);
	current->caller = caller;
	current->is_owner = true;
}

/* Ends such a part.  Its rights and snapshot are those of the body. */
void
tq_spi_end_part(void)
{
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
}

/*
 * Returns the role that called the function of tq that runs: the session user,
 * or that of SET ROLE or of a SECURITY DEFINER function around the call.
 */
Oid
tq_spi_caller(void)
{
	return current == NULL ? GetUserId() : current->caller;
}

/* Ends the SQL of a call. */
void
tq_spi_close(void)
{
	if (tq_spi_is_reading)
		PopActiveSnapshot();
	if (current->is_owner)
	{
		/* Restore the rights and the settings of the caller. */
		AtEOXact_GUC(true, current->settings);
		SetUserIdAndSecContext(current->user, current->security);
	}
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
}

/*
 * Returns how many invalidation messages this backend had processed before the
 * snapshot of the current call, which only reads; a number that no backend
 * reaches if the snapshot is older than the call.
 */
uint64
tq_spi_read_since(void)
{
	return read_since;
}

/*
 * Returns the snapshot of the current call: its own if it only reads, or else
 * the latest one.
 */
Snapshot
tq_spi_snapshot(void)
{
	return tq_spi_is_reading ? GetActiveSnapshot() : GetLatestSnapshot();
}

/*
 * Plans a statement of tq with the settings that it needs: that which runs, or
 * one of the body that runs.  While a statement runs, the server may plan others,
 * such as those of a trigger: their text differs.
 */
static PlannedStmt *
plan_statement(TQ_PLANNER_PARAMETERS)
{
	planner_hook_type plan = next_planner_hook ? next_planner_hook
											   : standard_planner;
	bool is_of_body = current != NULL && current->is_body;
	PlannedStmt *result;
	int nest;

	if (!is_of_body && (running == NULL || query_string == NULL ||
						strcmp(query_string, running->sql) != 0))
		return TqPlan(plan);
	nest = NewGUCNestLevel();
	set_option("enable_indexscan", "on");
	set_option("enable_indexonlyscan", "on");
	set_option("enable_nestloop", "on");
	set_option("enable_sort", "on");
	set_option("enable_seqscan", "off");
	set_option("enable_bitmapscan", "off");
	set_option("enable_hashjoin", "off");
	set_option("enable_mergejoin", "off");
	set_option("enable_material", "off");
	set_option("join_collapse_limit", "1");
	set_option("from_collapse_limit", "1");
	set_option("jit", "off");
	result = TqPlan(plan);
	AtEOXact_GUC(true, nest);
	return result;
}

/*
 * Begins the execution of a statement.  PL/pgSQL gives each statement of a body
 * that writes the snapshot of the transaction, which under REPEATABLE READ is
 * not the latest one.
 */
static void
start_statement(QueryDesc *query, int flags)
{
	if (current != NULL && current->is_body && !tq_spi_is_reading &&
		IsolationUsesXactSnapshot())
	{
		UnregisterSnapshot(query->snapshot);
		query->snapshot = RegisterSnapshot(GetLatestSnapshot());
	}
	if (next_executor_start != NULL)
		next_executor_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
}

/* Installs the hooks of the planner and of the executor. */
void
tq_spi_init(void)
{
	next_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = start_statement;
	next_planner_hook = planner_hook;
	planner_hook = plan_statement;
}

/* Returns the Oid of the type of a parameter. */
static Oid
type_of(Oid type)
{
	if (type == TQ_SLUGID)
		return tq_catalog_slugid_type();
	if (type == TQ_SLUGIDS)
		return get_array_type(tq_catalog_slugid_type());
	return type;
}

/* Parses a statement; its plan is generic, and kept until it is invalid. */
static void
prepare(TqStatement *statement)
{
	Oid types[TQ_MAX_ARGS];
	int nargs = 0;
	SPIPlanPtr plan;

	for (; statement->types[nargs] != InvalidOid; nargs++)
		types[nargs] = type_of(statement->types[nargs]);

	plan = SPI_prepare_cursor(statement->sql, nargs, types,
							  CURSOR_OPT_GENERIC_PLAN);
	if (plan == NULL)
		elog(ERROR, "could not prepare: %s",
			 SPI_result_code_string(SPI_result));
	SPI_keepplan(plan);
	statement->plan = plan;
}

/*
 * Prepares a statement again that is no longer valid, because the extension may
 * have been created again, and its type then has another Oid.
 */
static void
prepare_if_stale(TqStatement *statement)
{
	SPIPlanPtr stale = statement->plan;

	if (current != NULL && current->is_body)
		elog(ERROR, "a body runs a statement in C outside of a part");
	tq_spi_become_owner();
	if (stale != NULL && !SPI_plan_is_valid(stale))
	{
		statement->plan = NULL;
		/* An outer call may be in the middle of it: rather lose the memory. */
		if (depth == 1)
			SPI_freeplan(stale);
	}
	if (statement->plan == NULL)
		prepare(statement);
}

/*
 * Runs a saved statement.  A session may force custom plans for its own
 * statements, but not for those of tq.  The functions that some call are
 * bodies while that runs.
 */
static int
execute(TqStatement *statement, const Datum *values, const char *nulls)
{
	bool override = statement->calls_body ||
					plan_cache_mode == PLAN_CACHE_MODE_FORCE_CUSTOM_PLAN;
	const TqStatement *outer = running;
	int nest = 0;
	int code;

	if (override)
	{
		nest = NewGUCNestLevel();
		set_option("plan_cache_mode",
				   statement->calls_body ? "force_generic_plan" : "auto");
	}
	running = statement;
	current->is_body = statement->calls_body;
	code = SPI_execute_snapshot(statement->plan, unconstify(Datum *, values),
								nulls, tq_spi_snapshot(), InvalidSnapshot,
								tq_spi_is_reading, true, 0);
	current->is_body = false;
	running = outer;
	if (override)
		AtEOXact_GUC(true, nest);
	return code;
}

/*
 * Runs a statement and returns the number of its rows.  SPI leaves the memory
 * context of the whole call as the current one, so the caller's is restored.
 */
uint64
tq_spi_run(TqStatement *statement, const Datum *values, const char *nulls)
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
 * Runs a query that is made for this call, with the rights of a role, and
 * returns the value that it selects.  The search_path is that of the owner.
 */
Datum
tq_spi_query_as(Oid role, const char *sql, bool *isnull)
{
	MemoryContext context = CurrentMemoryContext;
	Oid user;
	int security;
	int code;

	tq_spi_become_owner();
	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(role, security | SECURITY_LOCAL_USERID_CHANGE);
	code = SPI_execute(sql, false, 0);
	SetUserIdAndSecContext(user, security);
	MemoryContextSwitchTo(context);
	if (code != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "could not execute: %s", SPI_result_code_string(code));
	return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
						 isnull);
}

/*
 * Opens a statement whose rows are read in portions.  Other statements may run
 * meanwhile.  It sees what is committed now, whatever they write.
 */
TqRows
tq_spi_rows_open(TqStatement *statement, const Datum *values)
{
	const TqStatement *outer = running;
	TqRows cursor;

	prepare_if_stale(statement);
	PushActiveSnapshot(tq_spi_snapshot());
	running = statement;
	cursor = SPI_cursor_open(NULL, statement->plan,
							 unconstify(Datum *, values), NULL, true);
	running = outer;
	PopActiveSnapshot();
	return cursor;
}

/*
 * Reads the next rows, up to max, as if they were the result of a statement.
 */
uint64
tq_spi_rows_fetch(TqRows cursor, int max)
{
	MemoryContext context = CurrentMemoryContext;

	SPI_cursor_fetch(cursor, true, max);
	MemoryContextSwitchTo(context);
	return SPI_processed;
}

/* Closes a statement whose rows were read in portions. */
void
tq_spi_rows_close(TqRows cursor)
{
	SPI_cursor_close(cursor);
}

/* Frees the rows of the last statement, for calls that run many. */
void
tq_spi_free_result(void)
{
	if (SPI_tuptable != NULL)
		SPI_freetuptable(SPI_tuptable);
	SPI_tuptable = NULL;
}

/* Returns a copy that outlives tq_spi_close(). */
void *
tq_spi_keep(const void *varlena)
{
	Size size = VARSIZE(varlena);
	void *copy = SPI_palloc(size);

	memcpy(copy, varlena, size);
	return copy;
}

/*
 * Returns an empty slot for the rows of the last statement, which the caller
 * drops before them.
 */
TupleTableSlot *
tq_spi_slot(void)
{
	return MakeSingleTupleTableSlot(SPI_tuptable->tupdesc, &TTSOpsHeapTuple);
}

/* Stores a row of the last statement in a slot. */
void
tq_spi_store(TupleTableSlot *slot, uint64 row)
{
	ExecStoreHeapTuple(SPI_tuptable->vals[row], slot, false);
}

/* Returns the rows that a statement finds, which `read` reads. */
void *
tq_spi_read_all(TqStatement *statement, const Datum *values, TqReader *read,
				Size size, int *found)
{
	int n = (int) tq_spi_run(statement, values, NULL);
	char *rows = palloc0(size * Max(n, 1));
	TupleTableSlot *slot = tq_spi_slot();

	for (int i = 0; i < n; i++)
	{
		tq_spi_store(slot, i);
		read(slot, rows + size * i);
	}
	ExecDropSingleTupleTableSlot(slot);
	tq_spi_free_result();
	*found = n;
	return rows;
}

/* Reads the first row that a statement finds; returns false if none. */
bool
tq_spi_read(TqStatement *statement, const Datum *values, TqReader *read,
			void *row)
{
	bool found = tq_spi_run(statement, values, NULL) > 0;

	if (found)
	{
		TupleTableSlot *slot = tq_spi_slot();

		tq_spi_store(slot, 0);
		read(slot, row);
		ExecDropSingleTupleTableSlot(slot);
	}
	tq_spi_free_result();
	return found;
}

/* Returns whether a statement finds a row. */
bool
tq_spi_exists(TqStatement *statement, const Datum *values)
{
	bool found = tq_spi_run(statement, values, NULL) > 0;

	tq_spi_free_result();
	return found;
}

static void
read_int64(TupleTableSlot *slot, void *row)
{
	bool isnull;
	Datum value = slot_getattr(slot, 1, &isnull);

	if (!isnull)
		*(int64 *) row = DatumGetInt64(value);
}

/*
 * Returns the bigint or time that a statement finds; if_none for none or NULL.
 */
int64
tq_spi_run_int64(TqStatement *statement, const Datum *values, int64 if_none)
{
	int64 value = if_none;

	(void) tq_spi_read(statement, values, read_int64, &value);
	return value;
}

/*
 * Runs a statement whose only column is a bigint, and returns a copy of its
 * rows.
 */
int64 *
tq_spi_run_ids(TqStatement *statement, const Datum *values, int *found)
{
	return tq_spi_read_all(statement, values, read_int64, sizeof(int64),
						   found);
}

/*
 * Arrays as parameters.  The macro defines one function per element type.
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
ARRAY_FUNCTION(tq_array_time, TimestampTz, TimestampTzGetDatum, TIMESTAMPTZOID,
			   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE)
ARRAY_FUNCTION(tq_array_slugid, TqSlug, SlugGetDatum, tq_catalog_slugid_type(),
			   false, TYPALIGN_CHAR)

Datum
tq_array_text(char *const *values, int n)
{
	Datum *elements = palloc(sizeof(Datum) * Max(n, 1));

	for (int i = 0; i < n; i++)
		elements[i] = CStringGetTextDatum(values[i]);
	return PointerGetDatum(
		construct_array(elements, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/* Returns the elements of a text[], or none for NULL.  Any may be NULL. */
char **
tq_texts_of_array(ArrayType *array, int *n)
{
	Datum *elements;
	bool *nulls;
	char **texts;

	*n = 0;
	if (array == NULL)
		return NULL;
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements,
					  &nulls, n);
	texts = palloc(sizeof(char *) * Max(*n, 1));
	for (int i = 0; i < *n; i++)
		texts[i] = nulls[i] ? NULL : TextDatumGetCString(elements[i]);
	return texts;
}

/* Compares ids; for qsort() and bsearch(). */
int
tq_compare_ids(const void *a, const void *b)
{
	int64 x = *(const int64 *) a;
	int64 y = *(const int64 *) b;

	return x < y ? -1 : x > y;
}
