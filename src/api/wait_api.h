/*
 * wait_api.h
 *	  The procedures that wait without a transaction; and the check of the
 *	  argument "wait".
 */
#ifndef TQ_WAIT_API_H
#define TQ_WAIT_API_H

#include "fmgr.h"

extern int64 tq_arg_wait(FunctionCallInfo fcinfo, int n, int64 max);

#endif /* TQ_WAIT_API_H */
