/*
 * procedure.h
 *	  Procedures that end transactions.
 */
#ifndef TQ_PROCEDURE_H
#define TQ_PROCEDURE_H

#include "fmgr.h"

extern void tq_require_commit(FunctionCallInfo fcinfo, const char *procedure,
							  const char *detail, const char *hint);

#endif /* TQ_PROCEDURE_H */
