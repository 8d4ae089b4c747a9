/*
 * slot_release.h
 *	  Gives back the slots of queues when a transaction ends.
 */
#ifndef TQ_SLOT_RELEASE_H
#define TQ_SLOT_RELEASE_H

#include "count_changes.h"
#include "count_entries.h"

/* A reserved number of rows in the lower half, its version in the upper one. */
#define TQ_SLOTS_ROWS(word) ((int64) ((word) &PG_UINT32_MAX))
#define TQ_SLOTS_NEXT(word, rows)                                             \
	((((word) >> 32) + 1) << 32 | (uint64) (uint32) (rows))

extern void tq_slots_change(TqCountQueue *queue, int gauge, int64 by);
extern void tq_slots_release(Oid extension, const TqCountChange *changes,
							 int n, bool is_aborted);
extern void tq_slots_release_locked(Oid extension,
									const TqCountChange *changes, int n);
extern void tq_slots_wake(Oid extension, const TqCountChange *changes, int n);

#endif /* TQ_SLOT_RELEASE_H */
