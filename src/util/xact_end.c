/*
 * xact_end.c
 *	  What the modules do when a transaction ends, in one order.
 *
 * The server calls transaction callbacks in the reverse order of their
 * registration, so callbacks that modules register at their first use would run
 * in an order that differs between backends.  Therefore the library has one
 * callback, which calls the modules in the order of a table (tq.c).  It is
 * registered when the library is loaded, which may be in the postmaster, and
 * runs at the end of every transaction, so that a module with nothing to do
 * must return at once.
 *
 * A parallel worker writes nothing, so that nothing is called at its end.
 */
#include "postgres.h"

#include "access/xact.h"

#include "util.h"

static const TqXactEnd *const *ends;
static int nends;

static void
call_if(void (*callback)(void))
{
	if (callback != NULL)
		callback();
}

/* Calls each part at the end of a transaction, and before it is prepared. */
static void
transaction_ends(XactEvent event, void *arg)
{
	for (int i = 0; i < nends; i++)
	{
		switch (event)
		{
			case XACT_EVENT_COMMIT:
				call_if(ends[i]->commit);
				call_if(ends[i]->reset);
				break;
			case XACT_EVENT_ABORT:
				if (ends[i]->abort != NULL)
					ends[i]->abort(TopSubTransactionId);
				call_if(ends[i]->reset);
				break;
			case XACT_EVENT_PRE_PREPARE:
				call_if(ends[i]->before_prepare);
				break;
			case XACT_EVENT_PREPARE:
				call_if(ends[i]->prepared);
				call_if(ends[i]->reset);
				break;
			case XACT_EVENT_PRE_COMMIT:
				call_if(ends[i]->before_commit);
				break;
			case XACT_EVENT_PARALLEL_COMMIT:
			case XACT_EVENT_PARALLEL_ABORT:
			case XACT_EVENT_PARALLEL_PRE_COMMIT:
				break;
		}
	}
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId id,
					SubTransactionId parent, void *arg)
{
	for (int i = 0; i < nends; i++)
	{
		switch (event)
		{
			case SUBXACT_EVENT_ABORT_SUB:
				if (ends[i]->abort != NULL)
					ends[i]->abort(id);
				break;
			case SUBXACT_EVENT_COMMIT_SUB:
				if (ends[i]->subcommit != NULL)
					ends[i]->subcommit(id, parent);
				break;
			case SUBXACT_EVENT_START_SUB:
			case SUBXACT_EVENT_PRE_COMMIT_SUB:
				break;
		}
	}
}

/* Has these parts called, in this order, at the end of each transaction. */
void
tq_xact_end_init(const TqXactEnd *const *parts, int n)
{
	ends = parts;
	nends = n;
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
}
