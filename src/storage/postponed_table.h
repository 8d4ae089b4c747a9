/*
 * postponed_table.h
 *	  Rows of tq_internal.postponed: tasks for which a step of maintenance
 *	  failed.
 */
#ifndef TQ_POSTPONED_TABLE_H
#define TQ_POSTPONED_TABLE_H

#include "datatype/timestamp.h"

typedef struct TqPostponed
{
	int64 task;
	const char *step;
	TimestampTz due;    /* when the step is retried */
	TimestampTz origin; /* time of the timer that asked for the step */
	TimestampTz since;  /* first failure */
	int failures;
	const char *error;
} TqPostponed;

extern void tq_postponed_put(const TqPostponed *row, TimestampTz now);
extern int tq_postponed_failures(int64 task, const char *step);
extern TqPostponed *tq_postponed_take(TimestampTz now, int max, int *found);
extern int64 *tq_postponed_among(const int64 *tasks, int n, const char *step,
								 int *found);
extern void tq_postponed_delete(int64 task, const char *step);
extern TimestampTz tq_postponed_next_due(void);

#endif /* TQ_POSTPONED_TABLE_H */
