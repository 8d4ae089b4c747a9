/*
 * watched_table.h
 *	  Tables whose rows each session caches.
 */
#ifndef TQ_WATCHED_TABLE_H
#define TQ_WATCHED_TABLE_H

#include "../util/xact_end.h"
#include "index_scan.h"

typedef struct TqWatched
{
	TqRelation *table;
	Oid oid;           /* when it was read last */
	uint64 generation; /* differs once the table may have changed */
	bool is_watched;   /* it is in the list */
	bool changed_here; /* by this transaction */
	struct TqWatched *next;
} TqWatched;

#define TQ_WATCHED(relation)                                                  \
	{                                                                         \
		.table = &(relation), .generation = 1                                 \
	}

extern const TqXactEnd tq_watched_xact_end;

extern void tq_watched_begin(TqWatched *watched);
extern void tq_watched_read(TqWatched *watched);
extern void tq_watched_changed(TqWatched *watched);

#endif /* TQ_WATCHED_TABLE_H */
