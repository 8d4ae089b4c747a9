/*
 * worker_slot.h
 *	  The slots of maintenance workers.
 */
#ifndef TQ_WORKER_SLOT_H
#define TQ_WORKER_SLOT_H

#include "datatype/timestamp.h"

#include "shmem.h"

/* How a maintenance worker ended: what the launcher does next. */
typedef enum TqExit
{
	TQ_EXIT_FAILED,    /* start it again, a little later */
	TQ_EXIT_REQUESTED, /* it was asked to end: start it again */
	TQ_EXIT_ABSENT     /* no extension there: start none until requested */
} TqExit;

/* What a maintenance worker does, for tq.maintenance_overview. */
typedef enum TqMaintenanceState
{
	TQ_MAINTENANCE_ABSENT,  /* there is none */
	TQ_MAINTENANCE_RUNNING, /* it does what is due */
	TQ_MAINTENANCE_OFF,     /* tq.maintenance is off */
	TQ_MAINTENANCE_UNUSED   /* no client has used the database yet */
} TqMaintenanceState;

/* What the launcher sees of a slot. */
typedef struct TqSlotView
{
	Oid database; /* InvalidOid: the slot is free */
	bool settled; /* its worker has found the extension */
	bool ended;
	TqExit how; /* once it has ended */
} TqSlotView;

extern const TqShmemPart tq_slot_shmem;

/* The side of sessions. */
extern void tq_slot_wake(Oid database, TimestampTz due, bool message);
extern void tq_slot_expect_claim(Oid database);
extern void tq_slot_ask_launcher(Oid database);
extern int tq_slot_stop(Oid database, bool by_force);
extern int tq_slot_running(void);
extern TqMaintenanceState tq_slot_state(int slot);

/* The launcher's side. */
extern void tq_slot_launcher_attach(void);
extern int tq_slot_launcher_asked(Oid *databases, int max, bool *rescan);
extern TqSlotView tq_slot_view(int slot);
extern int tq_slot_take(Oid database, uint64 *generation);
extern void tq_slot_free(int slot);

/* The maintenance worker's side. */
extern bool tq_slot_attach(int slot, uint64 generation);
extern void tq_slot_settle(void);
extern bool tq_slot_must_exit(void);
extern void tq_slot_end(TqExit how);
extern void tq_slot_set_state(TqMaintenanceState state);
extern TimestampTz tq_slot_cycle_begin(void);
extern bool tq_slot_take_expected_claim(void);
extern void tq_slot_publication_begin(void);
extern TimestampTz tq_slot_cycle_end(TimestampTz due, bool *messages);

#endif /* TQ_WORKER_SLOT_H */
