/*
 * fair_clock.h
 *	  Virtual time: where a queue that is fair has got to, and each of its keys.
 */
#ifndef TQ_FAIR_CLOCK_H
#define TQ_FAIR_CLOCK_H

#include "datatype/timestamp.h"

#include "shmem.h"

/*
 * Tags are negative, and ids are not.  A turn is the distance of two tags of a
 * key of weight 1.
 */
#define TQ_FAIR_FIRST (PG_INT64_MIN / 2)
#define TQ_FAIR_TURN (INT64CONST(1) << 22)

/* The tasks of a key, in a queue and priority. */
typedef struct TqFairKey
{
	Oid pending; /* Oid of the table; differs after DROP EXTENSION */
	int32 queue;
	int32 priority;
	uint64 hash; /* of the text; see tq_fair_hash() */
} TqFairKey;

/* What became of a request for a tag. */
typedef enum TqFair
{
	TQ_FAIR_TAKEN,
	TQ_FAIR_NO_TIME, /* tq_fair_set_time(), and try again */
	TQ_FAIR_NO_LAST, /* tq_fair_set_last(), and try again */
	TQ_FAIR_NO_ROOM  /* there are no more tags */
} TqFair;

extern const TqShmemPart tq_fair_shmem;

extern bool tq_fair_is_kept(void);
extern uint64 tq_fair_hash(const char *key);
extern TqFair tq_fair_take(const TqFairKey *key, double weight,
						   TimestampTz now, int64 after, int64 *tag);
extern int64 tq_fair_take_other(const TqFairKey *key, int64 tag, int tries);
extern void tq_fair_set_time(const TqFairKey *key, int64 tag);
extern int64 tq_fair_last(const TqFairKey *key);
extern void tq_fair_set_last(const TqFairKey *key, int64 tag, TimestampTz now);

#endif /* TQ_FAIR_CLOCK_H */
