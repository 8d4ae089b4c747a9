/*
 * database_facts.h
 *	  What a session needs to know of its database before its first call.
 */
#ifndef TQ_DATABASE_FACTS_H
#define TQ_DATABASE_FACTS_H

#include "../util/xact_end.h"
#include "shmem.h"

typedef struct TqFacts
{
	int wanted;  /* exchanges of which messages are written, as bits */
	int segment; /* of the message log that is written to */
} TqFacts;

extern const TqShmemPart tq_facts_shmem;
extern const TqXactEnd tq_facts_xact_end;

extern bool tq_facts_find(Oid extension, TqFacts *facts, uint64 *change);
extern void tq_facts_store(Oid extension, const TqFacts *facts, uint64 change);
extern void tq_facts_change_at_commit(void);
extern void tq_facts_change(void);

#endif /* TQ_DATABASE_FACTS_H */
