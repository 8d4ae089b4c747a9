/*
 * step.c
 *	  The steps of maintenance, and their names.
 */
#include "postgres.h"

#include "bgworker.h"

static const char *const names[] = {
	[TQ_STEP_PUBLISH] = "publish",
	[TQ_STEP_DEADLINE] = "deadline",
	[TQ_STEP_TOTAL_TIMEOUT] = "total-timeout",
	[TQ_STEP_RUN_TIMEOUT] = "run-timeout",
	[TQ_STEP_PENDING_TIMEOUT] = "pending-timeout",
	[TQ_STEP_CLAIM_EXPIRED] = "claim-expired",
	[TQ_STEP_DELAYED] = "delayed",
	[TQ_STEP_ADMIT] = "admit",
	[TQ_STEP_REORDER] = "reorder",
	[TQ_STEP_CANCEL] = "cancel",
	[TQ_STEP_CALLBACK] = "callback",
	[TQ_STEP_POSTPONED] = "postponed",
	[TQ_STEP_EXPIRE] = "expired",
	[TQ_STEP_SWEEP] = "sweep",
	[TQ_STEP_RETAIN] = "retain",
};

StaticAssertDecl(lengthof(names) == TQ_STEPS, "a name for each step");

/*
 * Returns the name of a step, which upkeep() shows and tq_internal.postponed
 * stores.
 */
const char *
tq_step_name(TqStep step)
{
	return names[step];
}
