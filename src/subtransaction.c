/*
 * subtransaction.c
 *	  Work that may fail without failing the transaction.
 *
 * Room 1.  What an error is good for is decided by the caller; here it is
 * caught as PL/pgSQL's EXCEPTION does it.
 */
#include "plumbing.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

/*
 * Runs work in a subtransaction.  Returns NULL, or the error for which the
 * subtransaction was rolled back, in the caller's memory context.  The caller
 * is connected to SPI or not, before and after alike.
 */
ErrorData *
tq_subtransaction(TqWorkFunction work, void *arg)
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
