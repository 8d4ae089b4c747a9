/*
 * worker_table.h
 *	  Rows of tq_internal.worker: task workers, interned per queue.
 */
#ifndef TQ_WORKER_TABLE_H
#define TQ_WORKER_TABLE_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../shmem/worker_activity.h"
#include "../util/slugid.h"

/* What a claim needs to know of a worker; cached, and exact. */
typedef struct TqWorkerSeat
{
	int32 id;
	bool is_retired; /* not to be used before it is revived */
	bool is_known;   /* has called claim_work(), or was declared */
	TimestampTz quarantine_until;
	TimestampTz store_after; /* until then nothing about it is stored */
} TqWorkerSeat;

/* A worker as it is shown; a time is 0 if it never happened. */
typedef struct TqWorker
{
	int32 id;
	int32 queue;
	TimestampTz expires; /* 0: not known */
	TimestampTz first_claim;
	TimestampTz last_date_active;
	TimestampTz quarantine_until;
	Jsonb *quarantine_details; /* NULL: never in quarantine */
	char *group;
	char *name;
	TqWorkerActivity activity; /* that is not stored yet */
} TqWorker;

/* A claim, by the id of its task that clients know. */
typedef struct TqRecent
{
	TqSlug task_id;
	int run_id;
} TqRecent;

/* A page of the workers of a queue. */
typedef struct TqWorkerPage
{
	int32 queue;
	const char *after_group;
	const char *after_name;
	int max;
	bool by_quarantine; /* only those that are in quarantine, or are not */
	bool is_quarantined;
} TqWorkerPage;

extern void tq_worker_name(int32 worker, char **group, char **name);
extern int32 tq_worker_queue(int32 worker);
extern bool tq_worker_seat_find(int32 queue, const char *group,
								const char *name, TqWorkerSeat *seat);
extern void tq_worker_seat_intern(int32 queue, const char *group,
								  const char *name, TqWorkerSeat *seat);
extern bool tq_worker_find(int32 queue, const char *group, const char *name,
						   TqWorker *worker);
extern TqWorker *tq_workers_list(const TqWorkerPage *page, TimestampTz now,
								 int *found);
extern TqRecent *tq_worker_recent(const TqWorker *worker, int max, int *found);
extern void tq_worker_note(const TqWorkerSeat *seat, TimestampTz seen,
						   const TqRecentClaim *claims, int n);
extern bool tq_worker_store(int32 queue, const char *group, const char *name,
							TqWorkerSeat *seat, TimestampTz now, bool claims);
extern void tq_worker_declare(int32 worker, TimestampTz expires);
extern void tq_worker_quarantine(int32 worker, TimestampTz until,
								 TimestampTz expires, Jsonb *detail);
extern void tq_workers_forget(TimestampTz before);

#define TQ_SEEN_DAY_MS INT64CONST(24 * 60 * 60 * 1000)

#endif /* TQ_WORKER_TABLE_H */
