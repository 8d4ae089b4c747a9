/*
 * maintenance_worker.h
 *	  The maintenance worker of one database: does what is due when it is
 *	  due.
 */
#ifndef TQ_MAINTENANCE_WORKER_H
#define TQ_MAINTENANCE_WORKER_H

typedef struct TqWorkerOrder
{
	Oid database;
	int slot;
	uint64 generation;
} TqWorkerOrder;

extern PGDLLEXPORT void tq_worker_main(Datum arg);

#endif /* TQ_MAINTENANCE_WORKER_H */
