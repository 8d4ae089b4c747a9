/*
 * count_note.h
 *	  Notes what a transaction changes in the counters of queues and groups.
 */
#ifndef TQ_COUNT_NOTE_H
#define TQ_COUNT_NOTE_H

#include "../shmem/count_changes.h"

extern void tq_count(TqCounted what, int64 id, int counter, int64 by);
extern void tq_count_doubt(void);

#endif /* TQ_COUNT_NOTE_H */
