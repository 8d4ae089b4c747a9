/*
 * count_build.h
 *	  Counts of rows, with which counters begin.
 */
#ifndef TQ_COUNT_BUILD_H
#define TQ_COUNT_BUILD_H

#include "utils/snapshot.h"

#include "count_changes.h"

extern bool tq_count_must_build(Oid extension, uint64 identity);
extern int64 tq_count_group_to_build(Oid extension);
extern bool tq_count_build_begin(Oid extension, uint64 identity,
								 TqCounted what, int64 id,
								 const TransactionId *prepared, int nprepared,
								 Snapshot *snapshot);
extern void tq_count_build_set(int64 id, int counter, int64 value);
extern bool tq_count_build_end(void);
extern void tq_count_build_abandon(SubTransactionId id);
extern void tq_count_build_move(SubTransactionId id, SubTransactionId parent);

#endif /* TQ_COUNT_BUILD_H */
