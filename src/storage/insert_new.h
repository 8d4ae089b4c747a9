/*
 * insert_new.h
 *	  Inserts rows except those whose key exists already.
 */
#ifndef TQ_INSERT_NEW_H
#define TQ_INSERT_NEW_H

#include "table.h"

extern void tq_table_flush_new(TqTable *table, TqRelation *arbiter, int column,
							   bool *is_new);

/* Gives a row another key; `tries` is how often it got one before. */
typedef void TqRenumber(TupleTableSlot *slot, int tries);

extern void tq_table_flush_renumbered(TqTable *table, TqRelation *arbiter,
									  TqRenumber *renumber);

#endif /* TQ_INSERT_NEW_H */
