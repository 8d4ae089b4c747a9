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

/* What the launcher sees of a worker. */
typedef struct TqSlotView
{
	Oid database; /* InvalidOid: the slot is free */
	bool settled; /* the worker has found the extension */
	bool ended;
	TqExit how; /* once it has ended */
} TqSlotView;

/* Whether rows of this database are being loaded by a restore. */
typedef enum TqLoading
{
	TQ_LOADING_NOT,
	TQ_LOADING_RUNNING, /* the session that began it is there */
	TQ_LOADING_ENDED    /* that session has ended */
} TqLoading;

/* What a transaction tells the background workers at its end, or'ed. */
#define TQ_TELL_WAKE 0x01    /* this database's worker: look again */
#define TQ_TELL_RESTART 0x02 /* this database's worker: begin anew */
#define TQ_TELL_START 0x04   /* the launcher: the extension is here */
#define TQ_TELL_RESCAN                                                        \
	0x08 /* the launcher: look for databases; also told at abort */

extern void tq_shmem_tell(int what);

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
extern void tq_shmem_publish_begin(void);
extern TimestampTz tq_shmem_turn_end(TimestampTz due, bool *messages);

/* What a worker has done since it began, for tq.worker_activity(). */
#define TQ_SHMEM_STEPS 10

typedef struct TqActivity
{
	int64 batches;
	int64 tasks;
	TimestampTz last_at; /* DT_NOBEGIN: never */
	int64 last_late;     /* microseconds */
	int64 max_late;
	TimestampTz max_late_at; /* DT_NOBEGIN: nothing was due */
} TqActivity;

extern bool tq_shmem_activity(int step, TqActivity *view);

/* Who listens. */
extern void tq_shmem_listen(const char *channel);

/* Those who need a worker out of the way. */
extern int tq_shmem_stop(Oid database, bool by_force);

/* Restores. */
extern void tq_shmem_load_begin(void);
extern TqLoading tq_shmem_loading(void);
extern void tq_shmem_load_forget(void);

#endif /* TQ_SHMEM_H */
