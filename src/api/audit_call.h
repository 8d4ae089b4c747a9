/*
 * audit_call.h
 *	  Writes calls of SQL functions to the audit trail.
 */
#ifndef TQ_AUDIT_CALL_H
#define TQ_AUDIT_CALL_H

#include "fmgr.h"

#include "../engine/audit.h"
#include "../util/guc.h"

extern void tq_audit_call(FunctionCallInfo fcinfo);
extern void tq_audit_call_runs(FunctionCallInfo fcinfo, const TqActRun *runs,
							   int n);

/*
 * Writes an act of an operator, or a call of a producer or worker, if tq.audit
 * wants it.  A function that the trail shows has one of them before its
 * tq_call_end(), or asks tq_audit_wants_clients() itself.
 */
#define tq_audit_operator(fcinfo)                                             \
	do                                                                        \
	{                                                                         \
		if (tq_audit != TQ_AUDIT_OFF)                                         \
			tq_audit_call(fcinfo);                                            \
	} while (0)

#define tq_audit_wants_clients() (tq_audit == TQ_AUDIT_ALL)

#define tq_audit_client(fcinfo)                                               \
	do                                                                        \
	{                                                                         \
		if (tq_audit_wants_clients())                                         \
			tq_audit_call(fcinfo);                                            \
	} while (0)

#endif /* TQ_AUDIT_CALL_H */
