/*
 * gate_table.h
 *	  Rows of tq_internal.gate_member: tasks that wait for others with the same
 *	  key, or that others wait for.
 */
#ifndef TQ_GATE_TABLE_H
#define TQ_GATE_TABLE_H

#include "datatype/timestamp.h"

#include "../core/policy.h"

/* What a member of a gate is; the numbers are stored. */
typedef enum TqGateState
{
	TQ_GATE_ADMITTED = 0,
	TQ_GATE_READY = 1,     /* it waits for nothing but this gate */
	TQ_GATE_NOT_READY = 2, /* it cannot be claimed for another reason */
	TQ_GATE_ENDED = 3,     /* its claims count in an interval */
	/* as READY and NOT_READY, and its claims count in an interval */
	TQ_GATE_READY_AGAIN = 4,
	TQ_GATE_NOT_READY_AGAIN = 5
} TqGateState;

/* The tasks of a queue with one key; TQ_KEY_SERIAL or TQ_KEY_CONCURRENCY. */
typedef struct TqGate
{
	int32 queue;
	TqTaskKey kind;
	char *key;
} TqGate;

typedef struct TqGateMember
{
	int64 task;
	TqGate gate;
	TqGateState state;
} TqGateMember;

/* A task that comes to its gates. */
typedef struct TqGateEntry
{
	int64 task;
	int32 queue;
	int priority;
	uint32 kinds; /* 1 << TqTaskKey */
	TqGateState state;
} TqGateEntry;

extern void tq_gates_insert(const TqGateEntry *entries, int n);
extern int64 *tq_gates_with(const int64 *tasks, int n, int *found);

extern bool tq_gates_lock(void);
extern TqGateMember *tq_gate_members_of(const int64 *tasks, int n, int *found);
extern TqGateMember *tq_gate_members_in(const TqGate *gate, TqGateState state,
										int max, int *found);
extern int64 tq_gate_count(const TqGate *gate, TqGateState state);
extern void tq_gate_set_state(TqGateMember *member, TqGateState state);
extern void tq_gate_take_priority(const TqGateMember *member);
extern void tq_gate_delete(const TqGateMember *member);
extern int64 *tq_gate_parked(const int64 *tasks, int n, int *found);
extern int64 *tq_gate_strays(const int64 *tasks, int n, int *found);
extern int64 *tq_gate_one_of_each(int32 queue, TqTaskKey kind, int *found);
extern TimestampTz *tq_gate_claims(const TqGate *gate, TimestampTz since,
								   int *found);

#endif /* TQ_GATE_TABLE_H */
