/*
 * insert_new.h
 *	  Inserts rows except those whose key exists already.
 */
#ifndef TQ_INSERT_NEW_H
#define TQ_INSERT_NEW_H

#include "table.h"

extern void tq_table_flush_new(TqTable *table, TqRelation *arbiter, int column,
							   bool *is_new);

#endif /* TQ_INSERT_NEW_H */
