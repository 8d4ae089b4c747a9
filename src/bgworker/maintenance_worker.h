/*
 * maintenance_worker.h
 *	  The maintenance worker of one database: does what is due when it is
 *	  due.
 */
#ifndef TQ_MAINTENANCE_WORKER_H
#define TQ_MAINTENANCE_WORKER_H

typedef struct TqMaintenanceOrder
{
	Oid database;
	int slot;
	uint64 generation;
} TqMaintenanceOrder;

extern PGDLLEXPORT void tq_maintenance_worker_main(Datum arg);

#endif /* TQ_MAINTENANCE_WORKER_H */
