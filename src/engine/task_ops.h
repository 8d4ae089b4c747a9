/*
 * task_ops.h
 *	  Requests of clients about one task: schedule, rerun, reschedule, skip,
 *	  cancel, delete.
 */
#ifndef TQ_TASK_OPS_H
#define TQ_TASK_OPS_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../storage/run_table.h"
#include "../storage/task_table.h"
#include "../util/compat.h"
#include "../util/slugid.h"

extern void tq_task_schedule(TqTask *task, TimestampTz now);
extern void tq_task_rerun(TqTask *task, TimestampTz now);
extern void tq_task_reschedule(TqTask *task, TimestampTz run_at,
							   TimestampTz now);
extern void tq_task_skip(TqTask *task, Jsonb *output, TimestampTz now);
extern void tq_task_cancel(TqTask *task, TimestampTz now);
extern void tq_task_delete(const TqNamedTask *named);

extern TqNamedTask *tq_task_get(const TqSlug *task_id);
extern TqTaskDefinition *tq_definition_get(const TqSlug *task_id);
extern void tq_task_check_payload(const TqTask *task);
extern void tq_task_check_runs(const TqTask *task, const TqRun *last);
pg_noreturn extern void tq_error_missing_task(const TqSlug *task_id);
pg_noreturn extern void tq_error_past_deadline(const TqTask *task);
pg_noreturn extern void tq_error_missing_run(const TqTask *task, int run_id);

#endif /* TQ_TASK_OPS_H */
