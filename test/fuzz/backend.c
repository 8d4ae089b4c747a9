/*
 * backend.c
 *	  Has libFuzzer run a target inside a backend, on a server with tq.
 *
 * A target on a server is a function fuzz.NAME(input bytea), in NAME.sql.  Here
 * libFuzzer makes its inputs, guided by what they reach in tq.so, which test/fuzz/run
 * builds for that, with sanitizers and with this file.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

#include "../../src/util/compat.h"
#include "../../src/util/util.h"

PG_FUNCTION_INFO_V1(tq_fuzz_run);
PG_FUNCTION_INFO_V1(tq_fuzz_exact);

extern int LLVMFuzzerRunDriver(int *argc, char ***argv,
							   int (*target)(const uint8_t *, size_t));

#define INPUTS_PER_TRANSACTION 500

/* ---- inputs that end at the end of their memory ---- */

static void *copies[64];
static int ncopies = 0;

/*
 * exact(value jsonb) -> jsonb.  Returns a copy in memory of its size, which a
 * sanitizer sees a function read beyond; it lives as long as the input.
 */
Datum
tq_fuzz_exact(PG_FUNCTION_ARGS)
{
	Jsonb *value = PG_GETARG_JSONB_P(0);
	void *copy = malloc(VARSIZE(value));

	memcpy(copy, value, VARSIZE(value));
	if (ncopies < lengthof(copies))
		copies[ncopies++] = copy;
	PG_RETURN_POINTER(copy);
}

/* ---- the target ---- */

static SPIPlanPtr plan;
static MemoryContext context;

static void
execute(const uint8_t *data, size_t size)
{
	bytea *input = MemoryContextAlloc(context, VARHDRSZ + size);
	Datum argument = PointerGetDatum(input);

	SET_VARSIZE(input, VARHDRSZ + size);
	memcpy(VARDATA(input), data, size);
	if (SPI_execute_plan(plan, &argument, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "the target did not run");
	SPI_freetuptable(SPI_tuptable);
}

/* Runs the target; an error of it is what libFuzzer looks for. */
static int
run_one(const uint8_t *data, size_t size)
{
	static int inputs = 0;

	PG_TRY();
	{
		execute(data, size);
		if (++inputs % INPUTS_PER_TRANSACTION == 0)
			SPI_commit();
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		fprintf(stderr, "# broken: %s: %s\n# %s\n",
				unpack_sql_state(error->sqlerrcode), error->message,
				error->detail != NULL ? error->detail : "");
		abort();
	}
	PG_END_TRY();
	while (ncopies > 0)
		free(copies[--ncopies]);
	MemoryContextReset(context);
	CHECK_FOR_INTERRUPTS();
	return 0;
}

/*
 * run(target text, log text, arguments text[]).  Calls libFuzzer with these
 * arguments.  It writes to the log, and ends the process.
 */
Datum
tq_fuzz_run(PG_FUNCTION_ARGS)
{
	Oid types[] = {BYTEAOID};
	int argc;
	char **argv;

	context = AllocSetContextCreate(TopMemoryContext, "fuzz",
									ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(TopMemoryContext);
	argv = tq_texts_of_array(PG_GETARG_ARRAYTYPE_P(2), &argc);
	if (freopen(text_to_cstring(PG_GETARG_TEXT_PP(1)), "w", stderr) == NULL)
		elog(ERROR, "the log cannot be written: %m");
	setvbuf(stderr, NULL, _IOLBF, 0);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	plan =
		SPI_prepare(psprintf("SELECT %s($1)",
							 quote_qualified_identifier("fuzz",
														text_to_cstring(
															PG_GETARG_TEXT_PP(
																0)))),
					1, types);
	if (plan == NULL)
		elog(ERROR, "there is no such target");
	SPI_keepplan(plan);
	LLVMFuzzerRunDriver(&argc, &argv, run_one);
	SPI_finish();
	PG_RETURN_VOID();
}
