/*
 * presets.h
 *	  Presets for Conductor and Taskbroker: their settings as a policy,
 *	  and the state of a task in their terms.
 */
#ifndef TQ_PRESETS_H
#define TQ_PRESETS_H

#include "utils/jsonb.h"

#include "../storage/task_table.h"

extern Jsonb *tq_conductor_read(Jsonb *task_def, Jsonb *workflow_task);
extern Jsonb *tq_taskbroker_read(Jsonb *activation);
extern const char *tq_conductor_state_name(const TqTask *task);
extern const char *tq_taskbroker_state_name(const TqTask *task);

#endif /* TQ_PRESETS_H */
