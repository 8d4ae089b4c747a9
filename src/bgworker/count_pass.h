/*
 * count_pass.h
 *	  Counts rows for the counters in shared memory.
 */
#ifndef TQ_COUNT_PASS_H
#define TQ_COUNT_PASS_H

#include "datatype/timestamp.h"

extern TimestampTz tq_count_pass_due(TimestampTz now);
extern void tq_count_pass(void);

#endif /* TQ_COUNT_PASS_H */
