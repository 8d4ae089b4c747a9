/*
 * presets.h
 *	  Presets for Conductor and Taskbroker: their settings as a policy,
 *	  and the state of a task in their terms.
 */
#ifndef TQ_PRESETS_H
#define TQ_PRESETS_H

#include "utils/jsonb.h"

#include "../storage/task_table.h"

extern Jsonb *tq_preset_conductor(Jsonb *task_def, Jsonb *workflow_task);
extern Jsonb *tq_preset_taskbroker(Jsonb *activation);
extern const char *tq_preset_conductor_status(const TqTask *task);
extern const char *tq_preset_taskbroker_status(const TqTask *task);

#endif /* TQ_PRESETS_H */
