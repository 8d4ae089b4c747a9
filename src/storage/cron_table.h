/*
 * cron_table.h
 *	  Rows of tq_internal.cron: recurring tasks.
 */
#ifndef TQ_CRON_TABLE_H
#define TQ_CRON_TABLE_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../util/slugid.h"

/* A recurring task, and what its firings have left. */
typedef struct TqCron
{
	char *name;
	TqSlug id; /* of which the ids of its tasks are made */
	Oid role;  /* that owns it */
	char *schedule;
	char *task_queue_id;
	char *overlap;
	bool is_paused;
	Jsonb *payload;
	Jsonb *options; /* further arguments of enqueue(), by name */
	TimestampTz created;
	TimestampTz last_scheduled; /* 0: never, also the next two */
	TimestampTz last_fired;
	TimestampTz last_skipped;
	bool has_task;
	TqSlug last_task;
} TqCron;

extern bool tq_cron_find(const char *name, TqCron *cron);
extern bool tq_cron_lock(const char *name, TqCron *cron);
extern bool tq_cron_put(const TqCron *cron);
extern void tq_cron_delete(const char *name);
extern void tq_cron_set_paused(const char *name, bool is_paused);
extern void tq_cron_set_fired(const TqCron *cron);

#endif /* TQ_CRON_TABLE_H */
