/*
 * slots.h
 *	  Limits of queues: room for rows that a transaction is about to write.
 */
#ifndef TQ_SLOTS_H
#define TQ_SLOTS_H

#include "count_changes.h"

/* What became of a request for slots. */
typedef enum TqSlots
{
	TQ_SLOTS_TAKEN,
	TQ_SLOTS_FULL,    /* the limit is reached */
	TQ_SLOTS_UNKNOWN, /* the rows are being counted; later it is known */
	TQ_SLOTS_NO_ROOM  /* the queue has no counters; tq.counted_queues */
} TqSlots;

/* Room for rows that count in a gauge of a queue. */
typedef struct TqSlotRequest
{
	Oid extension;
	uint64 identity; /* of the tables */
	int32 queue;
	int gauge;
	int limit;
	int min; /* fewer are of no use */
	int max;
} TqSlotRequest;

extern TqSlots tq_slots_take(const TqSlotRequest *request, int *taken);
extern TqSlots tq_slots_look(const TqSlotRequest *request, int64 *rows);
extern void tq_slots_give_back(const TqSlotRequest *request, int n);

#endif /* TQ_SLOTS_H */
