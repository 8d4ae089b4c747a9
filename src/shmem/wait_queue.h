/*
 * wait_queue.h
 *	  The wait queue: sessions that wait for a run to become claimable, or
 *	  for a task to be resolved.
 */
#ifndef TQ_WAIT_QUEUE_H
#define TQ_WAIT_QUEUE_H

#include "portability/instr_time.h"

#include "../util/xact_end.h"
#include "shmem.h"

extern const TqShmemPart tq_wait_shmem;
extern const TqXactEnd tq_wait_xact_end;

extern void tq_wait_wake(int32 queue, int n);
extern void tq_wait_wake_all(void);
extern bool tq_wait_take_woken(void);
extern void tq_wait_note_queue(void);
extern void tq_wait_note_opened(int32 queue);
extern int32 tq_wait_number_of_task(int64 task);
extern void tq_wait_note_resolved(int64 task);

/* One wait, or one try to claim.  Allocated on the stack of the waiter. */
typedef struct TqWait
{
	instr_time begun;
	int64 ms;      /* longest duration */
	int delay;     /* ms until the next look without a wake-up */
	bool callable; /* false: no process can wake it */
	uint64 ticket; /* order among all waits; 0: it has none yet */
} TqWait;

/* Why a sleep has ended. */
typedef enum TqWakeup
{
	TQ_WAKEUP_WOKEN, /* a run may have become claimable for this waiter */
	TQ_WAKEUP_POLL,  /* not woken: look nevertheless */
	TQ_WAKEUP_OVER   /* the time is over */
} TqWakeup;

/* Where the waiter sleeps, as pg_stat_activity shows it. */
typedef enum TqWaitSite
{
	TQ_WAIT_CLAIM_WORK,
	TQ_WAIT_FOR_WORK,
	TQ_WAIT_FOR_TASK
} TqWaitSite;

/* A session that is in the wait queue. */
typedef struct TqSleeper
{
	int pid;
	int32 queue; /* 0: a queue that is not known yet; less: a task */
} TqSleeper;

typedef struct TqSleepers
{
	TqSleeper *list;
	int n;
	int room;
} TqSleepers;

/* The lists in which a session can wait: 100 queues, and queue 0. */
#define TQ_WAIT_LISTS 101

extern TqSleepers tq_wait_list(void);
extern void tq_wait_begin(TqWait *wait, int64 ms);
extern bool tq_wait_take_over(TqWait *wait, const int32 *queues, int n);
extern void tq_wait_enter(TqWait *wait, const int32 *queues, int n);
extern bool tq_wait_is_for(const TqWait *wait, int32 *queue);
extern TqWakeup tq_wait_sleep(TqWait *wait, TqWaitSite site);
extern bool tq_wait_tried(TqWait *wait);
extern void tq_wait_look_in(TqWait *wait, int64 ms);
extern void tq_wait_requeue_wakeup(const TqWait *wait);
extern void tq_wait_end(const TqWait *wait);
extern void tq_wait_hand_off(const TqWait *wait);

#endif /* TQ_WAIT_QUEUE_H */
