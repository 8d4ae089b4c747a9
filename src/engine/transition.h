/*
 * transition.h
 *	  The ends of runs: what they write, and what follows from them.
 */
#ifndef TQ_TRANSITION_H
#define TQ_TRANSITION_H

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "../events/outbox.h"
#include "../storage/run_table.h"
#include "../storage/task_lock.h"
#include "../storage/task_table.h"
#include "../storage/timer_table.h"
#include "../util/slugid.h"
#include "pending_run.h"

/*
 * The transitions of one call.  Their messages and the groups to cancel are
 * collected until the call finishes; the rest is written in each round.
 */
typedef struct TqTransitions
{
	TimestampTz now;
	TqOutboxBatch outbox;
	TqSlug *groups; /* the work list: groups to cancel */
	int ngroups;

	/* what follows the ends of this round */
	int n;         /* capacity of each array */
	TqRun *finals; /* runs that no run follows */
	int nfinals;
	TqTask
		*tasks; /* tasks of those, where they have a policy; NULL: none has */
	TqStart *starts; /* runs that follow the others; NULL: none */
	int nstarts;
} TqTransitions;

extern void tq_transitions_begin(TqTransitions *transitions, int n,
								 TimestampTz now);
extern void tq_transition_end_run(TqRun *run, TqResolved reason,
								  TimestampTz now);
extern bool tq_transition_follow(TqTransitions *transitions, const TqRun *run,
								 const TqTask *task);
extern void tq_transition_announce_followed(TqTransitions *transitions,
											const TqTask *task,
											const TqRun *run,
											const TqRun *next);
extern void tq_transitions_finish(TqTransitions *transitions);

extern int tq_transitions_end(TqLockedTasks *locked, TqEvent event,
							  TimestampTz now);
extern int tq_transitions_end_free(TqLockedTasks *locked, TqEvent event,
								   TqTimer timer, TimestampTz now);

#endif /* TQ_TRANSITION_H */
