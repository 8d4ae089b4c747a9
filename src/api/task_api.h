/*
 * task_api.h
 *	  SQL functions that change priorities.
 */
#ifndef TQ_TASK_API_H
#define TQ_TASK_API_H

#include "funcapi.h"

#include "../storage/task_table.h"

extern void tq_put_entries(ReturnSetInfo *rsinfo,
						   const TqTaskDefinition *tasks, int n);

#endif /* TQ_TASK_API_H */
