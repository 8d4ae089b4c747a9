/*
 * step.h
 *	  The steps of maintenance, and their names.
 */
#ifndef TQ_STEP_H
#define TQ_STEP_H

/*
 * Steps in the order in which a pass takes them.  Their names are stored
 * (tq_internal.postponed); the numbers are not.
 */
typedef enum TqStep
{
	TQ_STEP_PUBLISH,
	TQ_STEP_DEADLINE,
	TQ_STEP_TOTAL_TIMEOUT,
	TQ_STEP_RUN_TIMEOUT,
	TQ_STEP_PENDING_TIMEOUT,
	TQ_STEP_CLAIM_EXPIRED,
	TQ_STEP_DELAYED,
	TQ_STEP_ADMIT,
	TQ_STEP_REORDER,
	TQ_STEP_CANCEL,
	TQ_STEP_CALLBACK,
	TQ_STEP_POSTPONED,
	TQ_STEP_EXPIRE,
	TQ_STEP_SWEEP,
	TQ_STEP_RETAIN
} TqStep;

#define TQ_STEPS 15

extern const char *tq_step_name(TqStep step);

#endif /* TQ_STEP_H */
