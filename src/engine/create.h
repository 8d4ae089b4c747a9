/*
 * create.h
 *	  Creates tasks: one or many, all or none.
 */
#ifndef TQ_CREATE_H
#define TQ_CREATE_H

#include "datatype/timestamp.h"

#include "../storage/task_table.h"

typedef enum TqRepeat
{
	TQ_REPEAT_EXACT, /* an existing task must be equal */
	TQ_REPEAT_LATER  /* equal except for the time of the call */
} TqRepeat;

extern int64 tq_create(TqTaskDefinition *tasks, int n, TqRepeat repeat,
					   TimestampTz now);

#endif /* TQ_CREATE_H */
