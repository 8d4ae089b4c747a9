/*
 * failure_table.h
 *	  Rows of tq_internal.failure: tasks that ended without success.
 */
#ifndef TQ_FAILURE_TABLE_H
#define TQ_FAILURE_TABLE_H

#include "datatype/timestamp.h"

#include "../core/types.h"

typedef struct TqFailure
{
	int64 task;
	int32 queue;
	TimestampTz resolved;
	TqState state; /* failed or exception */
} TqFailure;

extern void tq_failures_insert(const TqFailure *failures, int n);
extern void tq_failure_delete(int64 task);

#endif /* TQ_FAILURE_TABLE_H */
