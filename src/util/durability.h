/*
 * durability.h
 *	  Whether what a session sees is as durable as a commit that has
 *	  returned.
 */
#ifndef TQ_DURABILITY_H
#define TQ_DURABILITY_H

#include "access/transam.h"
#include "access/xlogdefs.h"

extern bool tq_durable_has_standbys(void);
extern void tq_durable_flush(FullTransactionId xid);
extern XLogRecPtr tq_durable_here(void);
extern bool tq_durable_within(XLogRecPtr lsn, int max_ms);

#endif /* TQ_DURABILITY_H */
