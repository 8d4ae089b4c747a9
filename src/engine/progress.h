/*
 * progress.h
 *	  What a worker reports of a run while it is running.
 */
#ifndef TQ_PROGRESS_H
#define TQ_PROGRESS_H

#include "datatype/timestamp.h"

#include "../storage/run_detail_table.h"
#include "../util/slugid.h"

extern void tq_progress_report(const TqSlug *task_id, int run_id, int32 holder,
							   TqRunProgress *progress, TimestampTz now);

#endif /* TQ_PROGRESS_H */
