/*
 * procedure.c
 *	  Procedures that end transactions.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"

#include "../util/util.h"
#include "api.h"

/*
 * Raises TQ400 if the procedure may not end the transaction: in a transaction
 * block, or within a function.
 */
void
tq_require_commit(FunctionCallInfo fcinfo, const char *procedure,
				  const char *detail, const char *hint)
{
	if (fcinfo->context != NULL && IsA(fcinfo->context, CallContext) &&
		!castNode(CallContext, fcinfo->context)->atomic && !IsSubTransaction())
		return;
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("tq.%s() cannot run inside a transaction block",
						   procedure),
					errdetail("%s", detail), errhint("%s", hint)));
}
