/*
 * attempt.c
 *	  Work that may fail alone: a subtransaction that is rolled back.
 *
 * Room 1.  What the work has written, notified and locked is undone when it
 * fails; memory that it has taken in contexts of the caller stays.  Errors that
 * are not about what the work looks at are passed on: a cancel or a shutdown,
 * a deadlock or a serialization failure, a lock that is not to be had.
 */
#include "plumbing.h"

#include "access/xact.h"
#include "utils/resowner.h"

static bool
is_passed_on(int sqlerrcode)
{
	int category = ERRCODE_TO_CATEGORY(sqlerrcode);

	return category == ERRCODE_OPERATOR_INTERVENTION ||
		   category == ERRCODE_TRANSACTION_ROLLBACK ||
		   category == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
}

/*
 * Does the work, in the caller's memory context.  Returns NULL, or the error
 * with which it failed.
 */
ErrorData *
tq_attempt(void (*work)(void *arg), void *arg)
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
	if (error != NULL && is_passed_on(error->sqlerrcode))
		ReThrowError(error);
	return error;
}
