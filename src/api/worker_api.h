/*
 * worker_api.h
 *	  What functions for workers have in common, whatever form their answer has.
 */
#ifndef TQ_WORKER_API_H
#define TQ_WORKER_API_H

#include "funcapi.h"

#include "../engine/credentials.h"
#include "../engine/report.h"

extern TqClaim *tq_begin_claim(FunctionCallInfo fcinfo, int *found);
extern TqClaim *tq_begin_claim_of_queues(FunctionCallInfo fcinfo, int *found);
extern void tq_end_claim(FunctionCallInfo fcinfo, const TqClaim *claims,
						 int found);
extern void tq_resolve_runs(FunctionCallInfo fcinfo, int reason_arg,
							TqReport *reports, int n);
extern void tq_put_outcome(ReturnSetInfo *rsinfo, const TqReport *report);

#endif /* TQ_WORKER_API_H */
