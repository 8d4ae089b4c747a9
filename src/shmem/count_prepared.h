/*
 * count_prepared.h
 *	  By how much prepared transactions change counters.
 */
#ifndef TQ_COUNT_PREPARED_H
#define TQ_COUNT_PREPARED_H

#include "count_changes.h"
#include "shmem.h"

/* More changes than that are not kept. */
#define TQ_PREPARED_CHANGES 32

/* A prepared transaction. */
typedef struct TqCountPrepared
{
	Oid database; /* InvalidOid: the entry is free */
	Oid extension;
	TransactionId xid;
	int n; /* -1: the changes are not known */
	TqCountChange changes[TQ_PREPARED_CHANGES];
} TqCountPrepared;

extern const TqShmemPart tq_count_prepared_shmem;

extern bool tq_count_prepared_add(Oid extension, TransactionId xid,
								  const TqCountChange *changes, int n);
extern const TqCountPrepared *tq_count_prepared_next(int *place);
extern bool tq_count_prepared_has(TransactionId xid);
extern bool tq_count_prepared_has_room(void);
extern bool tq_count_prepared_is_unknown(void);
extern void tq_count_prepared_remove(int place);

#endif /* TQ_COUNT_PREPARED_H */
