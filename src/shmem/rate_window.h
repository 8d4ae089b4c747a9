/*
 * rate_window.h
 *	  How many claims of a queue there were within an interval.
 */
#ifndef TQ_RATE_WINDOW_H
#define TQ_RATE_WINDOW_H

#include "datatype/timestamp.h"

#include "shmem.h"

extern const TqShmemPart tq_rate_shmem;

/* The limit of a queue: at most so many claims in each interval. */
typedef struct TqRate
{
	Oid extension;
	int32 queue;
	int claims;
	int64 interval; /* us */
} TqRate;

#define TQ_RATE_NO_ROOM (-1)

extern int tq_rate_take(const TqRate *rate, int max, TimestampTz now,
						TimestampTz *next);
extern int tq_rate_look(const TqRate *rate, TimestampTz now,
						TimestampTz *next);
extern void tq_rate_use(const TqRate *rate, int allowed, TimestampTz then,
						int n, TimestampTz now);

extern bool tq_rates_are_loaded(Oid extension);
extern void tq_rates_begin_load(Oid extension);
extern void tq_rate_load(const TqRate *rate, TimestampTz claimed);
extern void tq_rates_end_load(Oid extension);

#endif /* TQ_RATE_WINDOW_H */
