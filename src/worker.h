/*
 * worker.h
 *	  The launcher and the maintenance worker: what init.c starts, and what
 *	  their files share.
 */
#ifndef TQ_WORKER_H
#define TQ_WORKER_H

#include "plumbing.h"

/* worker.c: what the launcher passes to a maintenance worker, in bgw_extra. */
typedef struct TqWorkerOrder
{
	Oid database;
	int slot;
	uint64 generation;
} TqWorkerOrder;

extern PGDLLEXPORT void tq_worker_main(Datum arg);

/* worker_launcher.c */
extern void tq_worker_register(void);
extern PGDLLEXPORT void tq_worker_launcher_main(Datum arg);
extern PGDLLEXPORT void tq_worker_probe_main(Datum arg);
extern void tq_worker_probe(void);

/* worker_utility.c */
extern void tq_worker_watch_utility(void);

#endif /* TQ_WORKER_H */
