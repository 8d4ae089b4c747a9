/*
 * conductor.h
 *	  Preset for Conductor: its settings as a policy, and the state of a task in
 *	  its terms.
 */
#ifndef TQ_CONDUCTOR_H
#define TQ_CONDUCTOR_H

#include "utils/jsonb.h"

#include "../storage/task_table.h"

extern Jsonb *tq_conductor_read(Jsonb *task_def, Jsonb *workflow_task);
extern const char *tq_conductor_state_name(const TqTask *task);

#endif /* TQ_CONDUCTOR_H */
