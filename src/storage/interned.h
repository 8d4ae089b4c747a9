/*
 * interned.h
 *	  Deletes rows of queues, workers and policies that nothing refers to.
 */
#ifndef TQ_INTERNED_H
#define TQ_INTERNED_H

#include "datatype/timestamp.h"

extern void tq_interned_sweep(TimestampTz before, TimestampTz now);

#endif /* TQ_INTERNED_H */
