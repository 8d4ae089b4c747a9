/*
 * shmem.h
 *	  What the background workers share, and what a transaction tells them.
 *
 * Room 1.  For worker.c, worker_launcher.c and worker_utility.c; the rules
 * and stores need only tq_shmem_note_due() of plumbing.h.
 */
#ifndef TQ_SHMEM_H
#define TQ_SHMEM_H

#include "plumbing.h"

/* How a worker ended, which is what the launcher does next. */
typedef enum TqExit
{
	TQ_EXIT_FAILED, /* start it again, a little later */
	TQ_EXIT_TOLD,   /* it was told to go: start it again */
	TQ_EXIT_ABSENT  /* no extension there: wait until asked */
} TqExit;

/* Whether a worker works, for tq.worker_overview. */
typedef enum TqWorkerState
{
	TQ_WORKER_ABSENT,  /* there is none */
	TQ_WORKER_RUNNING, /* it does what is due */
	TQ_WORKER_OFF,     /* tq.maintenance is off */
	TQ_WORKER_UNUSED   /* no client has used the database yet */
} TqWorkerState;

/* What the launcher sees of a worker. */
typedef struct TqSlotView
{
	Oid database; /* InvalidOid: the slot is free */
	bool settled; /* the worker has found the extension */
	bool ended;
	TqExit how; /* once it has ended */
} TqSlotView;

/* What a transaction requests of background workers at its commit. */
typedef enum TqRequest
{
	TQ_REQUEST_WAKE,    /* the worker of a database: look again */
	TQ_REQUEST_RESTART, /* the same: end, and be started again */
	TQ_REQUEST_START,   /* the launcher: the extension is in that database */
	TQ_REQUEST_RESCAN   /* the launcher: look for databases; also at abort */
} TqRequest;

extern void tq_shmem_request(TqRequest what, Oid database);

/* A due time that has passed, and from which one can count: the year 2000. */
#define TQ_LONG_AGO ((TimestampTz) 0)

/* The launcher's side. */
extern void tq_shmem_launcher_attach(void);
extern int tq_shmem_take_asked(Oid *databases, int max, bool *rescan);
extern int tq_shmem_slots(void);
extern TqSlotView tq_shmem_slot_view(int slot);
extern int tq_shmem_slot_take(Oid database, uint64 *generation);
extern void tq_shmem_slot_free(int slot);

/* The worker's side. */
extern bool tq_shmem_worker_attach(int slot, uint64 generation);
extern void tq_shmem_worker_settled(void);
extern bool tq_shmem_worker_is_told(void);
extern void tq_shmem_worker_ends(TqExit how);
extern TimestampTz tq_shmem_turn_begin(TimestampTz now);
extern void tq_shmem_count_batch(int step, uint64 tasks, TimestampTz now,
								 int64 late);
extern void tq_shmem_count_failure(int step, TimestampTz now,
								   const char *error);
extern void tq_shmem_step_succeeds(int step);
extern void tq_shmem_worker_state(TqWorkerState state);
extern void tq_shmem_publish_begin(void);
extern TimestampTz tq_shmem_turn_end(TimestampTz due, bool *messages);

/* What a worker has done since it began, for tq.worker_activity(). */
#define TQ_SHMEM_STEPS 11
#define TQ_SHMEM_ERROR 256 /* bytes that are kept of an error */

typedef struct TqActivity
{
	int64 batches;
	int64 tasks;
	TimestampTz last_at; /* DT_NOBEGIN: never */
	int64 last_late;     /* microseconds */
	int64 max_late;
	TimestampTz max_late_at; /* DT_NOBEGIN: nothing was due */
	int64 failures;
	bool failing;          /* the last attempt has failed */
	TimestampTz failed_at; /* DT_NOBEGIN: never */
	char error[TQ_SHMEM_ERROR];
} TqActivity;

extern TqWorkerState tq_shmem_state(void);
extern bool tq_shmem_activity(int step, TqActivity *view);

/* Who listens. */
extern void tq_shmem_listen(const char *channel);

/* Those who need a worker out of the way. */
extern int tq_shmem_stop(Oid database, bool by_force);

#endif /* TQ_SHMEM_H */
