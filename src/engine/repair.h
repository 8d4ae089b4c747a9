/*
 * repair.h
 *	  Runs tasks again that ended without success, with what depends on them.
 */
#ifndef TQ_REPAIR_H
#define TQ_REPAIR_H

#include "datatype/timestamp.h"
#include "utils/timestamp.h"

#include "../core/types.h"
#include "../storage/task_table.h"
#include "../util/slugid.h"

/* The arguments that rerun_task() and retry_task_group() have in common. */
typedef struct TqRepairHow
{
	Interval *deadline; /* NULL: deadlines stay */
	bool downstream;
} TqRepairHow;

extern void tq_repair_task(const TqTask *task, const TqRepairHow *how,
						   TimestampTz now);
extern int64 tq_repair_group(const TqSlug *slug, const TqRepairHow *how,
							 const TqResolved *reasons, int nreasons,
							 TimestampTz now);

#endif /* TQ_REPAIR_H */
