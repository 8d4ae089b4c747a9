/*
 * resolve.h
 *	  The end of a run: final, or followed by another run.
 */
#ifndef TQ_RESOLVE_H
#define TQ_RESOLVE_H

#include "datatype/timestamp.h"

#include "../core/types.h"
#include "../events/outbox.h"
#include "../storage/run_table.h"
#include "../storage/task_lock.h"
#include "../storage/task_table.h"
#include "pending_run.h"

extern void tq_resolve_drop_overdue(TqLockedTasks *locked, TimestampTz now);
extern void tq_resolve_drop_blocked(TqLockedTasks *locked, TqResolved reason,
									TimestampTz now);
extern void tq_resolve_runs(TqRun *runs, const TqTask *tasks, int n,
							TqResolved reason, TimestampTz now);
extern void tq_group_cancel_rest(const TqTask *tasks, int n, TimestampTz now);
extern int64 tq_group_cancel_held(const int64 *tasks, int n,
								  TimestampTz canceled, TimestampTz now);

/*
 * What follows the ends of one call.  It is collected first, then written
 * together.
 */
typedef struct TqResolution
{
	int n;         /* capacity of each array */
	TqRun *finals; /* runs that no run follows */
	int nfinals;
	TqTask
		*tasks; /* tasks of those, where they have a policy; NULL: none has */
	TqStart *starts; /* runs that follow the others; NULL: none */
	int nstarts;
	TqOutboxBatch outbox;
} TqResolution;

extern void tq_resolution_begin(TqResolution *resolution, int n);
extern void tq_resolution_announce_followed(TqResolution *resolution,
											const TqTask *task,
											const TqRun *run,
											const TqRun *next);
extern void tq_resolution_end_run(TqRun *run, TqResolved reason,
								  TimestampTz now);
extern bool tq_resolution_follow(TqResolution *resolution, const TqRun *run,
								 const TqTask *task, TimestampTz now);
extern void tq_resolution_write(TqResolution *resolution, TimestampTz now);

#endif /* TQ_RESOLVE_H */
