/*
 * cron.h
 *	  Recurring tasks: definitions, and what a firing does.
 */
#ifndef TQ_CRON_H
#define TQ_CRON_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../storage/cron_table.h"
#include "../util/slugid.h"

/* What makes a recurring task fire. */
typedef enum TqCronCause
{
	TQ_CRON_CLOCK,    /* pg_cron, now */
	TQ_CRON_BACKFILL, /* a client, for a time that is past */
	TQ_CRON_BY_HAND   /* a client, apart from the schedule */
} TqCronCause;

/* What a firing is to do. */
typedef enum TqCronVerdict
{
	TQ_CRON_CREATE,
	TQ_CRON_REPEATED, /* it has fired for this time before */
	TQ_CRON_PAUSED,
	TQ_CRON_SKIPPED /* its last task is unresolved */
} TqCronVerdict;

typedef struct TqCronFiring
{
	TqCron cron;
	TqCronCause cause;
	TqCronVerdict verdict;
	TimestampTz scheduled; /* the minute or second for which it fires */
	TimestampTz now;
	Jsonb *payload; /* of the task to create */
	bool has_task;
	TqSlug task_id; /* to create; or of the task that there is */
} TqCronFiring;

/* A recurring task in pg_cron. */
typedef struct TqCronJob
{
	bool is_active;
	int64 id;      /* 0: pg_cron is in another database */
	char *command; /* to run there; NULL: none */
} TqCronJob;

extern void tq_cron_check(const TqCron *cron);
extern Jsonb *tq_cron_first_payload(const TqCron *cron);
extern TqCronJob tq_cron_schedule(const TqCron *cron);
extern TqCronJob tq_cron_unschedule(const char *name, TqCron *cron);
extern TqCronJob tq_cron_pause(const char *name, bool pause, TqCron *cron);
extern TqCronFiring tq_cron_begin_firing(const char *name, TqCronCause cause,
										 TimestampTz scheduled,
										 TimestampTz now);
extern void tq_cron_end_firing(TqCronFiring *firing, const TqSlug *task_id);

#endif /* TQ_CRON_H */
