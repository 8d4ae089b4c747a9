/*
 * audit_call.c
 *	  The audit trail: which role made which call (doc/spec/taskcluster.md 8.6).
 *
 * A call writes its row at its end, in the transaction of the caller.  So a row
 * shows what has happened: a call that is refused, and one that is rolled back,
 * leave none.
 *
 * The catalog says what the function and its arguments are called, so that a
 * call site says only that its call is written.  An argument is written if
 * src/sql/functions names it among those that identify something; others, such
 * as a payload, a result, an error or credentials, are never written.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "api.h"

/* ---- rows ---- */

/* A call that succeeds. */
typedef struct Act
{
	const char *function;
	Jsonb *arguments; /* those that identify what the call is about */
	const TqActRun *runs;
	int n;
} Act;

#define RUNS_MAX                                                              \
	1000 /* tasks of a row; a call about more leaves several rows */

static const char *
role_name(Oid role)
{
	const char *name = GetUserNameFromId(role, true);

	return name == NULL ? psprintf("%u", role) : name;
}

/* Adds the clientId of credentials, unless the one before is the same. */
static void
add_client(TqAuditRow *row, const char *client)
{
	if (client == NULL ||
		(row->nclients > 0 &&
		 strcmp(row->clients[row->nclients - 1], client) == 0))
		return;
	row->clients[row->nclients++] = unconstify(char *, client);
}

/* Adds some of the runs of a call, or of the tasks. */
static void
audit_call_add_runs(TqAuditRow *row, const TqActRun *runs, int n,
					const char *assumed)
{
	row->clients = palloc(sizeof(char *) * Max(n, 1));
	row->tasks = palloc(sizeof(TqSlug) * Max(n, 1));
	if (n > 0 && runs[0].run_id != TQ_NO_RUN)
		row->runs = palloc(sizeof(int32) * n);
	for (row->n = 0; row->n < n; row->n++)
	{
		const TqActRun *run = &runs[row->n];

		row->tasks[row->n] = run->task_id;
		if (row->runs != NULL)
			row->runs[row->n] = run->run_id;
		add_client(row, run->client == NULL ? assumed : run->client);
	}
	if (n == 0)
		add_client(row, assumed);
}

/*
 * Writes a call to the audit trail: a row, or one for each RUNS_MAX of its
 * tasks.  Its credentials have been verified.
 */
static void
write_act(const Act *act)
{
	const TqAuditRow common = {.at = tq_clock_now(),
							   .session_role = role_name(GetSessionUserId()),
							   .role = role_name(tq_spi_caller()),
							   .function = act->function,
							   .arguments = act->arguments};
	int done = 0;

	do
	{
		TqAuditRow row = common;

		audit_call_add_runs(&row, act->runs + done,
							Min(act->n - done, RUNS_MAX),
							tq_access_assumed_client());
		tq_audit_insert(&row);
		done += row.n;
	} while (done < act->n);
}

/* ---- calls ---- */

/* Of each function that the trail has, the arguments that are written. */
static const struct
{
	const char *function;
	const char *const *arguments;
} audited[] = {
#include "audited.inc"
};

/* The declaration of the function that is called. */
typedef struct Called
{
	char *function;
	char **names; /* of its arguments */
	Oid *types;
	int n;
} Called;

static Called
read_called(FunctionCallInfo fcinfo)
{
	Called called = {.n = PG_NARGS()};
	HeapTuple tuple =
		SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
	char *modes;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u",
			 fcinfo->flinfo->fn_oid);
	called.function = pstrdup(
		NameStr(((Form_pg_proc) GETSTRUCT(tuple))->proname));
	(void) get_func_arg_info(tuple, &called.types, &called.names, &modes);
	if (called.names == NULL)
		called.n = 0;
	ReleaseSysCache(tuple);
	return called;
}

/* Returns the number of the argument of that name, or -1. */
static int
find_argument(const Called *called, const char *name)
{
	for (int i = 0; i < called->n; i++)
	{
		if (strcmp(called->names[i], name) == 0)
			return i;
	}
	return -1;
}

/* ---- arguments ---- */

static void
add_slugs(JsonbParseState **state, const char *key, ArrayType *array)
{
	int n;
	TqSlug *slugs = tq_slugs_of_array(array, key, &n);

	tq_json_add_slugs(state, key, slugs, n);
}

/* Appends an argument; times in UTC, intervals in seconds. */
static void
add_value(JsonbParseState **state, const char *key, Oid type, Datum value)
{
	switch (type)
	{
		case TEXTOID:
			tq_json_add_text(state, key, TextDatumGetCString(value));
			break;
		case TEXTARRAYOID:
			tq_json_add_texts(state, key, DatumGetArrayTypeP(value));
			break;
		case INT4OID:
			tq_json_add_int(state, key, DatumGetInt32(value));
			break;
		case INT8OID:
			tq_json_add_int(state, key, DatumGetInt64(value));
			break;
		case BOOLOID:
			tq_json_add_bool(state, key, DatumGetBool(value));
			break;
		case TIMESTAMPTZOID:
			tq_json_add_text(state, key,
							 tq_clock_text(DatumGetTimestampTz(value)));
			break;
		case INTERVALOID:
			tq_json_add_seconds(state, key,
								tq_clock_span_ms(DatumGetIntervalP(value)));
			break;
		case JSONBOID:
			tq_json_add_object(state, key, DatumGetJsonbP(value));
			break;
		case INT4MULTIRANGEOID:
			tq_json_add_text(state, key,
							 OidOutputFunctionCall(F_MULTIRANGE_OUT, value));
			break;
		case REGROLEOID:
			tq_json_add_text(state, key,
							 GetUserNameFromId(DatumGetObjectId(value),
											   false));
			break;
		default:
			if (type == get_array_type(tq_catalog_slugid_type()))
			{
				add_slugs(state, key, DatumGetArrayTypeP(value));
				break;
			}
			if (type != tq_catalog_slugid_type())
				elog(ERROR, "argument %s has type %u", key, type);
			tq_json_add_slug(state, key, DatumGetTqSlugP(value));
	}
}

/* Returns the names of the arguments of a function that are written. */
static const char *const *
find_audited(const char *function)
{
	for (int i = 0; i < lengthof(audited); i++)
	{
		if (strcmp(function, audited[i].function) == 0)
			return audited[i].arguments;
	}
	elog(ERROR, "src/sql/functions does not name %s() as audited", function);
}

static Jsonb *
read_arguments(FunctionCallInfo fcinfo, const Called *called)
{
	JsonbParseState *state = tq_json_begin();
	const char *const *name;

	for (name = find_audited(called->function); *name != NULL; name++)
	{
		int i = find_argument(called, *name);

		if (i >= 0 && !PG_ARGISNULL(i))
			add_value(&state, *name, called->types[i], PG_GETARG_DATUM(i));
	}
	return tq_json_end(&state);
}

/* ---- tasks ---- */

/* Returns the clientId of the argument "credentials", or NULL. */
static const char *
read_client(FunctionCallInfo fcinfo, const Called *called)
{
	int i = find_argument(called, "credentials");
	TqCredentials credentials;

	if (i < 0 || PG_ARGISNULL(i) ||
		!tq_credentials_read(&PG_GETARG_JSONB_P(i)->root, &credentials))
		return NULL;
	return tq_credentials_client(&credentials);
}

/* Reads the arguments "task_id" and "run_id"; returns whether there is a task. */
static bool
audit_call_read_run(FunctionCallInfo fcinfo, const Called *called,
					TqActRun *run)
{
	int task = find_argument(called, "task_id");
	int number = find_argument(called, "run_id");

	if (task < 0 || PG_ARGISNULL(task))
		return false;
	run->task_id = *PG_GETARG_TQ_SLUG_P(task);
	run->run_id = number < 0 ? TQ_NO_RUN : PG_GETARG_INT32(number);
	run->client = read_client(fcinfo, called);
	return true;
}

/* Writes the present call, with the task that its arguments name. */
void
tq_audit_call(FunctionCallInfo fcinfo)
{
	Called called = read_called(fcinfo);
	TqActRun run;
	Act act = {.function = called.function,
			   .arguments = read_arguments(fcinfo, &called),
			   .runs = &run,
			   .n = audit_call_read_run(fcinfo, &called, &run) ? 1 : 0};

	write_act(&act);
}

/*
 * Writes the present call with these tasks or runs.  A call about none, such as
 * one that has claimed nothing, is not written.
 */
void
tq_audit_call_runs(FunctionCallInfo fcinfo, const TqActRun *runs, int n)
{
	Called called;
	Act act = {.runs = runs, .n = n};

	if (n == 0)
		return;
	called = read_called(fcinfo);
	act.function = called.function;
	act.arguments = read_arguments(fcinfo, &called);
	write_act(&act);
}
