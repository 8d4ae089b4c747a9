/*
 * index_entries.h
 *	  Inserts index entries without the executor.
 */
#ifndef TQ_INDEX_ENTRIES_H
#define TQ_INDEX_ENTRIES_H

#include "executor/tuptable.h"
#include "utils/relcache.h"

#include "../util/xact_end.h"

/* The open indexes of a table. */
typedef struct TqEntries TqEntries;

extern TqEntries *tq_entries_open(Relation table);
extern bool tq_entries_insert(TqEntries *entries, TupleTableSlot *slot,
							  Oid arbiter);
extern void tq_entries_close(TqEntries *entries);

extern const TqXactEnd tq_entries_xact_end;

#endif /* TQ_INDEX_ENTRIES_H */
