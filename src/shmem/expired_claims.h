/*
 * expired_claims.h
 *	  How many claims have expired within the last hour.
 */
#ifndef TQ_EXPIRED_CLAIMS_H
#define TQ_EXPIRED_CLAIMS_H

#include "datatype/timestamp.h"

#include "shmem.h"

extern const TqShmemPart tq_expired_shmem;

extern void tq_expired_begin(int slot);
extern void tq_expired_count(int slot, int64 claims, TimestampTz now);
extern int64 tq_expired_last_hour(int slot, TimestampTz now);

#endif /* TQ_EXPIRED_CLAIMS_H */
