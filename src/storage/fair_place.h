/*
 * fair_place.h
 *	  Places of runs in queues that are fair to their keys.
 */
#ifndef TQ_FAIR_PLACE_H
#define TQ_FAIR_PLACE_H

#include "pending_table.h"

extern bool tq_fair_is_used(void);
extern bool tq_fair_applies(int32 queue);
extern void tq_fair_place(Oid pending, TqPending *rows, int n);
extern int64 tq_fair_place_again(Oid pending, const TqPending *row, int tries);

#endif /* TQ_FAIR_PLACE_H */
