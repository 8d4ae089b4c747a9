/*
 * transition.h
 *	  The transitions of runs: what they write, and what follows from them.
 */
#ifndef TQ_TRANSITION_H
#define TQ_TRANSITION_H

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "../events/outbox.h"
#include "../storage/run_detail_table.h"
#include "../storage/run_table.h"
#include "../storage/task_lock.h"
#include "../storage/task_table.h"
#include "../storage/timer_table.h"
#include "../util/slugid.h"
#include "dependency.h"
#include "pending_run.h"

/*
 * The transitions of one call.  Their messages and the groups to cancel are
 * collected until the call finishes; the rest is written in each round.  A
 * caller sets `now`, and n if it adds transitions itself, and leaves the rest
 * zero.  It keeps the runs and tasks that it adds until the call finishes.
 */
typedef struct TqTransitions
{
	TimestampTz now;
	TqOutboxBatch outbox;
	TqSlug *groups; /* the work list: groups to cancel */
	int ngroups;
	int64 *culprits; /* the same: tasks whose dependents are to be canceled */
	int nculprits;

	/* of this round */
	int n;           /* most runs that end */
	TqFinal *finals; /* runs that have ended and that no run follows */
	int nfinals;
	TqStart *starts; /* runs that become pending */
	int nstarts;
	int room; /* for starts */
} TqTransitions;

extern void tq_transition_end_run(TqRun *run, TqResolved reason,
								  TimestampTz now);
extern bool tq_transition_follow(TqTransitions *transitions, const TqRun *run,
								 const TqRunDetail *detail, TqTask *task);
extern void tq_transition_start_first(TqTransitions *transitions, TqTask *task,
									  bool at_creation);
extern void tq_transition_announce(TqTransitions *transitions,
								   const TqTask *task, const TqRun *run,
								   const TqRun *last);
extern bool tq_transition_repair(TqTransitions *transitions, TqTask *task,
								 const TqRun *last, bool activates);
extern bool tq_transition_never_pending(int64 task, int runs);
extern void tq_transitions_finish(TqTransitions *transitions);

extern bool tq_transition_request(TqTask *task, TqRun *last, TqEvent event,
								  TimestampTz now);
extern void tq_transition_defer(TqTask *task, const TqRun *run,
								const TqRunDetail *detail, TimestampTz now);
extern int tq_transitions_cancel_dependents(const TqTask *tasks, int n,
											TimestampTz now);
extern int tq_transitions_end(TqLockedTasks *locked, TqEvent event,
							  TqTimer again, TimestampTz now);

#endif /* TQ_TRANSITION_H */
