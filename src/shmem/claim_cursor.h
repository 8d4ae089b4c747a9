/*
 * claim_cursor.h
 *	  The claim cursor: a hint where claims begin in each queue.
 */
#ifndef TQ_CLAIM_CURSOR_H
#define TQ_CLAIM_CURSOR_H

#include "../core/types.h"
#include "../util/xact_end.h"
#include "shmem.h"

#define TQ_CURSOR_BEGIN PG_INT64_MIN /* scan all entries of that priority */
#define TQ_CURSOR_END PG_INT64_MAX   /* scan none of them */

/*
 * What a scanner reads before a pass.  It may skip the index entries of a
 * priority with seq < low.  The other fields are for tq_cursor_raise().
 */
typedef struct TqCursor
{
	Oid pending; /* Oid of the table; differs after DROP EXTENSION */
	int32 queue;
	uint64 identity; /* of the entry in shared memory; 0: there is none */
	uint64 generation[TQ_PRIORITY_HIGHEST + 1];
	int64 low[TQ_PRIORITY_HIGHEST + 1];
} TqCursor;

extern const TqShmemPart tq_cursor_shmem;
extern const TqXactEnd tq_cursor_xact_end;

extern bool tq_cursor_is_strict(void);
extern void tq_cursor_read(Oid pending, int32 queue, TqCursor *cursor);
extern void tq_cursor_raise(const TqCursor *cursor, int priority, int64 low);

extern void tq_cursor_track_insert(Oid pending, int32 queue, int priority,
								   int64 seq);
extern void tq_cursor_track_delete(Oid pending, int32 queue, int priority,
								   int64 seq);
extern void tq_cursor_track_lock(Oid pending, int32 queue, int priority);
extern void tq_cursor_track_all(void);

#endif /* TQ_CLAIM_CURSOR_H */
