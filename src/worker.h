/*
 * worker.h
 *	  The background worker: what init.c starts, and what its files share.
 */
#ifndef TQ_WORKER_H
#define TQ_WORKER_H

#include "plumbing.h"

/* worker.c: how the launcher tells a worker what it is, in bgw_extra. */
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
