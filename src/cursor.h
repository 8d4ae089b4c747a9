/*
 * cursor.h
 *	  Where a claim begins to look: a hint, in shared memory.
 *
 * Room 1.  For the store of pending runs, and for whoever writes its rows
 * (store_cursor.c).  How it works, and why no run is lost, is in cursor.c.
 */
#ifndef TQ_CURSOR_H
#define TQ_CURSOR_H

#include "plumbing.h"

#define TQ_CURSOR_BEGIN PG_INT64_MIN /* look at all of that priority */
#define TQ_CURSOR_END PG_INT64_MAX   /* look at nothing of it */

/*
 * What a scanner read before its pass.  By priority: index entries with
 * seq < low need not be looked at.  The rest is for tq_cursor_raise().
 */
typedef struct TqCursor
{
	Oid pending; /* the table, which is another after DROP EXTENSION */
	int32 queue;
	uint64 identity; /* of the entry; 0: there is none */
	uint64 generation[TQ_PRIORITY_HIGHEST + 1];
	int64 low[TQ_PRIORITY_HIGHEST + 1];
} TqCursor;

extern void tq_cursor_init(void);

extern bool tq_cursor_is_strict(void);
extern void tq_cursor_read(Oid pending, int32 queue, TqCursor *cursor);
extern void tq_cursor_raise(const TqCursor *cursor, int priority, int64 low);

extern void tq_cursor_note_made(Oid pending, int32 queue, int priority,
								int64 seq);
extern void tq_cursor_note_taken(Oid pending, int32 queue, int priority,
								 int64 seq);
extern void tq_cursor_note_held(Oid pending, int32 queue, int priority);
extern void tq_cursor_note_all(void);

#endif /* TQ_CURSOR_H */
