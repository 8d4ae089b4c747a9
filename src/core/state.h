/*
 * state.h
 *	  The state machine: which event is legal in which state.
 */
#ifndef TQ_STATE_H
#define TQ_STATE_H

#include <stdbool.h>

#include "types.h"

extern TqVerdict tq_state_verdict(TqState state, TqEvent event);
extern bool tq_state_is_resolved(TqState state);
extern TqResolved tq_event_resolved(TqEvent event);
extern TqState tq_resolved_state(TqResolved reason);
extern TqCreated tq_resolved_retry(TqResolved reason);
extern bool tq_created_is_retry(TqCreated reason);
extern bool tq_created_is_rerun(TqCreated reason);
extern bool tq_resolved_is_reportable(TqResolved reason);
extern int tq_rerun_retries(int retries, int max_runs, int run_id);
extern TqExchange tq_state_exchange(TqState state);

#endif /* TQ_STATE_H */
