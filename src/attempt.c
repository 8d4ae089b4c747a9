/*
 * attempt.c
 *	  Runs work in a subtransaction, so that it can fail alone.
 *
 * Room 1.  If the work fails, its writes, notifications and locks are rolled
 * back.  Memory that it allocated in the caller's contexts stays allocated.
 */
#include "plumbing.h"

#include "access/xact.h"
#include "utils/resowner.h"

/*
 * Runs the work in the caller's memory context.  Returns NULL, or the error
 * with which it failed, whatever the error is.
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
