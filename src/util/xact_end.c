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
 * is not called.
 *
 * A parallel worker writes nothing, so that nothing is called at its end.
 */
#include "postgres.h"

#include "access/xact.h"

#include "util.h"

static const TqXactEnd *const *ends;
static int nends;

/* Calls a function of a part that may have none. */
#define CALL(callback, ...)                                                   \
	do                                                                        \
	{                                                                         \
		if ((callback) != NULL)                                               \
			(callback)(__VA_ARGS__);                                          \
	} while (0)

/* Calls each part at the end of a transaction, and before it is prepared. */
static void
xact_end_transaction_ends(XactEvent event, void *arg)
{
	for (int i = 0; i < nends; i++)
	{
		const TqXactEnd *end = ends[i];

		if (!*end->has_work)
			continue;
		switch (event)
		{
			case XACT_EVENT_COMMIT:
				CALL(end->commit);
				CALL(end->reset);
				break;
			case XACT_EVENT_ABORT:
				CALL(end->abort, TopSubTransactionId);
				CALL(end->reset);
				break;
			case XACT_EVENT_PRE_PREPARE:
				CALL(end->before_prepare);
				break;
			case XACT_EVENT_PREPARE:
				CALL(end->prepared);
				CALL(end->reset);
				break;
			case XACT_EVENT_PRE_COMMIT:
				CALL(end->before_commit);
				break;
			case XACT_EVENT_PARALLEL_COMMIT:
			case XACT_EVENT_PARALLEL_ABORT:
			case XACT_EVENT_PARALLEL_PRE_COMMIT:
				break;
		}
	}
}

static void
xact_end_subtransaction_ends(SubXactEvent event, SubTransactionId id,
							 SubTransactionId parent, void *arg)
{
	for (int i = 0; i < nends; i++)
	{
		if (!*ends[i]->has_work)
			continue;
		switch (event)
		{
			case SUBXACT_EVENT_ABORT_SUB:
				CALL(ends[i]->abort, id);
				break;
			case SUBXACT_EVENT_COMMIT_SUB:
				CALL(ends[i]->subcommit, id, parent);
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
	RegisterXactCallback(xact_end_transaction_ends, NULL);
	RegisterSubXactCallback(xact_end_subtransaction_ends, NULL);
}
