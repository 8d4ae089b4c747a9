/*
 * gate.h
 *	  Gates: tasks that wait for others with the same key.
 */
#ifndef TQ_GATE_H
#define TQ_GATE_H

#include "datatype/timestamp.h"

#include "../storage/task_table.h"

/* A task of which a run becomes pending, and when the run is visible. */
typedef struct TqEntrant
{
	const TqTask *task;
	TimestampTz visible_at;
} TqEntrant;

extern bool tq_gate_applies(const TqTask *task);
extern bool tq_gate_may_have(const TqTask *task);
extern void tq_gates_enter(const TqEntrant *entrants, int n, TimestampTz now);
extern void tq_gates_leave(const int64 *tasks, int n, TimestampTz now);
extern void tq_gates_priority_changed(const int64 *tasks, int n,
									  TimestampTz now);
extern void tq_gates_settings_changed(int32 queue, TimestampTz now);
extern int64 tq_gates_admit(const int64 *tasks, int n, TimestampTz now);

#endif /* TQ_GATE_H */
