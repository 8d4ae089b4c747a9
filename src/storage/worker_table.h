/*
 * worker_table.h
 *	  Rows of tq_internal.worker: task workers, interned per queue.
 */
#ifndef TQ_WORKER_TABLE_H
#define TQ_WORKER_TABLE_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../util/slugid.h"

typedef struct TqWorker
{
	int32 id;
	int32 queue;
	TimestampTz expires; /* 0: never seen */
	TimestampTz first_claim;
	TimestampTz last_date_active;
	TimestampTz quarantine_until;
	TimestampTz recent_updated_at; /* when its recent claims were written */
	int recent;                    /* number of recent claims */
	char *group;
	char *name;
} TqWorker;

#define TQ_RECENT_MAX 20

typedef struct TqRecent
{
	TqSlug task_id;
	int run_id;
} TqRecent;

extern void tq_worker_name(int32 worker, char **group, char **name);
extern bool tq_worker_find(int32 queue, const char *group, const char *id,
						   TqWorker *worker);
extern void tq_worker_get_by_number(int32 id, TqWorker *worker);
extern void tq_worker_intern(int32 queue, const char *group, const char *id,
							 TqWorker *worker);
extern void tq_worker_seen(int32 worker, TimestampTz now, TimestampTz expires,
						   bool claims);
extern void tq_worker_record_claims(const TqWorker *worker, const int64 *tasks,
									const int32 *run_ids, int n,
									TimestampTz now);
extern TqRecent *tq_worker_recent(int32 worker, int *found);
extern void tq_worker_quarantine(int32 worker, TimestampTz until,
								 TimestampTz expires, Jsonb *detail);
extern void tq_workers_forget(TimestampTz before);

#endif /* TQ_WORKER_TABLE_H */
