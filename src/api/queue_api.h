/*
 * queue_api.h
 *	  CALL tq.wait_for_work(): waits without a transaction; and the check
 *	  of the argument "wait".
 */
#ifndef TQ_QUEUE_API_H
#define TQ_QUEUE_API_H

#include "fmgr.h"

extern int64 tq_arg_wait(FunctionCallInfo fcinfo, int n, int64 max);

#endif /* TQ_QUEUE_API_H */
