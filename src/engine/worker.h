/*
 * worker.h
 *	  Requests of clients about a worker: read, declare, quarantine, remove.
 */
#ifndef TQ_WORKER_H
#define TQ_WORKER_H

#include "datatype/timestamp.h"

#include "../storage/worker_table.h"
#include "report.h"

/* The names of a worker. */
typedef struct TqWorkerId
{
	const char *queue;
	const char *group;
	const char *name;
} TqWorkerId;

extern void tq_worker_get(const TqWorkerId *id, TimestampTz now,
						  TqWorker *worker);
extern void tq_worker_merge(TqWorker *worker);
extern void tq_worker_set_expires(const TqWorkerId *id, TimestampTz expires,
								  TimestampTz now, TqWorker *worker);
extern void tq_worker_set_quarantine(const TqWorkerId *id, TimestampTz until,
									 Jsonb *detail, TimestampTz now,
									 TqWorker *worker);
extern TqReport *tq_worker_remove(const TqWorkerId *id, const char *reason,
								  TimestampTz now, int *n);

#endif /* TQ_WORKER_H */
