/*
 * upkeep.h
 *	  What the doors api_upkeep.c and worker.c need of the rule upkeep.c.
 */
#ifndef TQ_UPKEEP_H
#define TQ_UPKEEP_H

#include "plumbing.h"

/* Steps in the order in which a pass takes them. */
typedef enum TqStep
{
	TQ_STEP_PUBLISH,
	TQ_STEP_DEADLINE,
	TQ_STEP_CLAIM_EXPIRED,
	TQ_STEP_DELAYED,
	TQ_STEP_EXPIRE,
	TQ_STEP_RETAIN
} TqStep;

#define TQ_STEPS 6

extern const char *tq_step_name(TqStep step);

/*
 * One bounded batch of a step in the caller's transaction: returns the number
 * of tasks changed, or messages published, or places of the log emptied, and sets *more when there may be more due at once.  The
 * mark is TQ_MARK_BEGIN at first, and passed on within one transaction.
 */
extern int64 tq_upkeep_step(TqStep step, TqMark *mark, bool *more);

/* When the next thing is due, or DT_NOEND. */
extern TimestampTz tq_upkeep_next_due(void);

#endif /* TQ_UPKEEP_H */
