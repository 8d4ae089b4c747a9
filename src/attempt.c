/*
 * attempt.c
 *	  Work that may fail alone: a subtransaction that is rolled back.
 *
 * Room 1.  What the work has written, notified and locked is undone when it
 * fails.  Memory that it has allocated in contexts of the caller stays.
 */
#include "plumbing.h"

#include "access/xact.h"
#include "utils/resowner.h"

/*
 * Does the work, in the caller's memory context.  Returns NULL, or the error
 * with which it failed, whatever that is.
 */
ErrorData *
tq_attempt_all(TqWorkFunction work, void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(arg);
		ReleaseCurrentSubTransaction();
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
 * Is an error not about what the work looks at?  A cancel or a shutdown, a
 * deadlock or a serialization failure, a lock that is not to be had, a
 * transaction that must not write, a full disk.
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

/* The same, but an error that is general is raised again. */
ErrorData *
tq_attempt(TqWorkFunction work, void *arg)
{
	ErrorData *error = tq_attempt_all(work, arg);

	if (error != NULL && is_general(error))
		ReThrowError(error);
	return error;
}
