/*
 * count_snapshot.h
 *	  Which transactions a count of rows includes.
 */
#ifndef TQ_COUNT_SNAPSHOT_H
#define TQ_COUNT_SNAPSHOT_H

#include "utils/snapshot.h"

#include "shmem.h"

extern const TqShmemPart tq_count_snapshot_shmem;

extern int tq_count_snapshot_take(Snapshot *snapshot);
extern bool tq_count_snapshot_shows(int number, TransactionId xid);
extern void tq_count_snapshot_wait(int number);
extern void tq_count_snapshot_free(int number);

extern void tq_count_commit_begins(TransactionId xid);
extern void tq_count_commit_ends(void);
extern void tq_count_commits_wait(void);

#endif /* TQ_COUNT_SNAPSHOT_H */
