/*
 * taskbroker.h
 *	  Preset for Taskbroker: its settings as a policy, and the state of a task
 *	  in its terms.
 */
#ifndef TQ_TASKBROKER_H
#define TQ_TASKBROKER_H

#include "utils/jsonb.h"

#include "../storage/task_table.h"

extern Jsonb *tq_taskbroker_read(Jsonb *activation);
extern const char *tq_taskbroker_state_name(const TqTask *task);

#endif /* TQ_TASKBROKER_H */
