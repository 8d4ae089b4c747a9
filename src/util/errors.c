/*
 * errors.c
 *	  Shortens values of clients for error messages; shows how far a call is.
 *
 * An error message repeats a value that a client gave, but only its first
 * bytes.
 */
#include "postgres.h"

#include "access/xact.h"
#include "mb/pg_wchar.h"
#include "utils/resowner.h"
#include "utils/varlena.h"

#include "util.h"

#define SHOWN_BYTES 100
#define LIST_BYTES 1000
#define SHOWN_TASKS 1024 /* a call of more shows how far it is */
#define SHOWN_STEP 64    /* tasks between two looks at the clock */
#define SHOWN_EVERY_MS 1000

/* Returns a copy of the text, shortened to SHOWN_BYTES. */
char *
tq_error_clip(const char *text)
{
	int length = strlen(text);

	if (length <= SHOWN_BYTES)
		return pstrdup(text);
	return psprintf("%.*s...", pg_mbcliplen(text, length, SHOWN_BYTES), text);
}

/* How many letters a name may have wrong, to be meant for another. */
#define NEAR_LETTERS 3

/* Returns which of the names that are known is nearest; NULL: none is near. */
const char *
tq_error_nearest(const char *given, char *const *known, int n)
{
	int length = strlen(given);
	int nearest = Min(NEAR_LETTERS, length / 2) + 1;
	const char *meant = NULL;

	for (int i = 0; i < n && length <= NAMEDATALEN; i++)
	{
		int distance = varstr_levenshtein_less_equal(given, length, known[i],
													 strlen(known[i]), 1, 1, 1,
													 nearest, true);

		if (distance >= nearest)
			continue;
		nearest = distance;
		meant = known[i];
	}
	return meant;
}

/* Returns the name of a role, which may have been dropped. */
const char *
tq_error_role(Oid role)
{
	const char *name = GetUserNameFromId(role, true);

	return name == NULL ? "?" : name;
}

/*
 * Raises a NOTICE that shows how many of the tasks of a call are done.  The
 * first comes when SHOWN_TASKS are done, and in a session at most one in
 * SHOWN_EVERY_MS by its own clock, whichever calls and steps they are of.
 */
void
tq_show_done(const char *what, int done, int total)
{
	static TimestampTz last = TQ_LONG_AGO;
	TimestampTz now;

	if (done < SHOWN_TASKS || done % SHOWN_STEP != 0)
		return;
	now = tq_clock_now();
	if (now >= last && now < tq_clock_add_ms(last, SHOWN_EVERY_MS))
		return;
	last = now;
	ereport(NOTICE, (errmsg("%d of %d tasks are %s", done, total, what)));
}

/*
 * Appends a name to a list; a list that has become long ends in dots instead.
 */
void
tq_error_list(StringInfo list, const char *separator, const char *name)
{
	if (list->len > LIST_BYTES)
	{
		if (list->data[list->len - 1] != '.')
			appendStringInfo(list, "%s...", separator);
		return;
	}
	appendStringInfo(list, "%s%s", list->len > 0 ? separator : "", name);
}

/*
 * Runs the work in a subtransaction, in the caller's memory context, and rolls
 * that back if the work fails or is not kept.  Returns NULL, or the error.
 */
static ErrorData *
run_in_subtransaction(TqWorkFunction work, void *arg, bool keep)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData *volatile error = NULL;

	tq_spi_become_owner();
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(arg);
		if (keep)
			ReleaseCurrentSubTransaction();
		else
			RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}

/*
 * Runs the work in the caller's memory context.  Returns NULL, or the error
 * with which it failed, whatever the error is.
 */
ErrorData *
tq_attempt_all(TqWorkFunction work, void *arg)
{
	return run_in_subtransaction(work, arg, true);
}

/*
 * Returns whether an error has a cause outside of the data that the work
 * handles: a cancel or a shutdown, a deadlock or a serialization failure, a
 * lock that is not available, a read-only transaction, a full disk.
 */
static bool
is_general(const ErrorData *error)
{
	int category = ERRCODE_TO_CATEGORY(error->sqlerrcode);

	return category == ERRCODE_OPERATOR_INTERVENTION ||
		   category == ERRCODE_TRANSACTION_ROLLBACK ||
		   category == ERRCODE_INVALID_TRANSACTION_STATE ||
		   error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		   error->sqlerrcode == ERRCODE_DISK_FULL || error->elevel > ERROR;
}

/* Runs the work as tq_attempt_all() does, but raises general errors again. */
ErrorData *
tq_attempt(TqWorkFunction work, void *arg)
{
	ErrorData *error = tq_attempt_all(work, arg);

	if (error != NULL && is_general(error))
		ReThrowError(error);
	return error;
}

/*
 * Raises the error that is being handled, without the context that PL/pgSQL
 * and SPI have added; what the call is in adds its own.
 */
void
tq_throw_without_context(MemoryContext context)
{
	ErrorData *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	FlushErrorState();
	error->context = NULL;
	ThrowErrorData(error);
}

/* Some items of a batch. */
typedef struct Part
{
	const TqBatchWork *work;
	int from;
	int n;
} Part;

static void
errors_run_part(void *arg)
{
	const Part *part = (const Part *) arg;

	part->work->run(part->work->arg, part->from, part->n);
}

/*
 * Does these items of a batch in a subtransaction, and if that fails each half
 * of them.  Passes an item that fails alone to work->failed().  The recursion
 * is as deep as the logarithm of the number of items.
 */
void
tq_attempt_halves(const TqBatchWork *work, int from, int n)
{
	Part part = {work, from, n};
	ErrorData *error = n == 0 ? NULL : tq_attempt(errors_run_part, &part);

	CHECK_FOR_INTERRUPTS();
	if (error == NULL)
		return;
	if (n == 1)
	{
		work->failed(work->arg, from, error);
		return;
	}
	tq_attempt_halves(work, from, n / 2);
	tq_attempt_halves(work, from + n / 2, n - n / 2);
}
