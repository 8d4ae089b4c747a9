/*
 * shmem.h
 *	  The background workers' shared memory, and how a commit wakes them.
 */
#ifndef TQ_SHMEM_H
#define TQ_SHMEM_H

#include "datatype/timestamp.h"

#include "../util/xact_end.h"

extern const TqXactEnd tq_request_xact_end;

/*
 * shmem.c: the background workers' shared memory, and how commits wake them.
 */
extern void tq_shmem_init(void);
extern void tq_shmem_note_due(TimestampTz due);
extern void tq_shmem_note_message(void);

/* Prefix of the channels of queues. */
#define TQ_QUEUE_CHANNEL "tq_queue_"

extern uint64 tq_shmem_channel_bit(const char *channel);
extern uint64 tq_shmem_listened(void);

/*
 * How a maintenance worker ended, which decides what the launcher does next.
 */
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

/* What a transaction requests of background processes at its commit. */
typedef enum TqRequest
{
	TQ_REQUEST_WAKE,    /* maintenance worker: look for due work */
	TQ_REQUEST_RESTART, /* maintenance worker: end and be started again */
	TQ_REQUEST_START,   /* launcher: the database has the extension */
	TQ_REQUEST_RESCAN   /* launcher: look for databases; also at abort */
} TqRequest;

extern void tq_shmem_request(TqRequest what, Oid database);

/* The launcher's side. */
extern void tq_shmem_launcher_attach(void);
extern int tq_shmem_take_asked(Oid *databases, int max, bool *rescan);
extern int tq_shmem_slots(void);
extern TqSlotView tq_shmem_slot_view(int slot);
extern int tq_shmem_slot_take(Oid database, uint64 *generation);
extern void tq_shmem_slot_free(int slot);

/* The maintenance worker's side. */
extern bool tq_shmem_worker_attach(int slot, uint64 generation);
extern void tq_shmem_worker_settled(void);
extern bool tq_shmem_worker_must_exit(void);
extern void tq_shmem_worker_ends(TqExit how);
extern TimestampTz tq_shmem_cycle_begin(TimestampTz now);
extern void tq_shmem_count_batch(int step, uint64 tasks, TimestampTz now,
								 int64 late);
extern void tq_shmem_count_failure(int step, TimestampTz now,
								   const char *error);
extern void tq_shmem_step_succeeds(int step);
extern void tq_shmem_worker_state(TqMaintenanceState state);
extern void tq_shmem_publish_begin(void);
extern TimestampTz tq_shmem_cycle_end(TimestampTz due, bool *messages);

/*
 * What a maintenance worker has done since it began, for tq.maintenance_activity().
 */
#define TQ_SHMEM_STEPS 11
#define TQ_SHMEM_ERROR 256 /* bytes kept of an error message */

typedef struct TqActivity
{
	int64 batches;
	int64 tasks;
	TimestampTz last_at; /* DT_NOBEGIN: never */
	int64 last_late;     /* microseconds */
	int64 max_late;
	TimestampTz max_late_at; /* DT_NOBEGIN: nothing was due */
	int64 failures;
	bool failing;          /* the last batch failed */
	TimestampTz failed_at; /* DT_NOBEGIN: never */
	char error[TQ_SHMEM_ERROR];
} TqActivity;

extern TqMaintenanceState tq_shmem_state(void);
extern bool tq_shmem_activity(int step, TqActivity *view);

/* Sessions that LISTEN. */
extern void tq_shmem_listen(const char *channel);

/* Statements that need the maintenance worker to end. */
extern int tq_shmem_stop(Oid database, bool by_force);

#endif /* TQ_SHMEM_H */
