/*
 * step.c
 *	  The steps of maintenance, and their names.
 */
#include "postgres.h"

#include "step.h"

/*
 * Returns the name of a step, which upkeep() shows and tq_internal.postponed
 * stores.
 */
const char *
tq_step_name(TqStep step)
{
	switch (step)
	{
		case TQ_STEP_PUBLISH:
			return "publish";
		case TQ_STEP_DEADLINE:
			return "deadline";
		case TQ_STEP_TOTAL_TIMEOUT:
			return "total-timeout";
		case TQ_STEP_RUN_TIMEOUT:
			return "run-timeout";
		case TQ_STEP_PENDING_TIMEOUT:
			return "pending-timeout";
		case TQ_STEP_CLAIM_EXPIRED:
			return "claim-expired";
		case TQ_STEP_DELAYED:
			return "delayed";
		case TQ_STEP_CANCEL:
			return "cancel";
		case TQ_STEP_POSTPONED:
			return "postponed";
		case TQ_STEP_RETAIN:
			return "retain";
		case TQ_STEP_EXPIRE:
			return "expired";
	}
	return NULL;
}
