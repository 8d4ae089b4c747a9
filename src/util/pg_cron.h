/*
 * pg_cron.h
 *	  Calls the extension pg_cron, which keeps the time.
 */
#ifndef TQ_PG_CRON_H
#define TQ_PG_CRON_H

#include "datatype/timestamp.h"

/* A job of pg_cron in this database. */
typedef struct TqJob
{
	const char *name;
	const char *schedule;
	const char *command;
	const char *role; /* as which it runs */
	bool is_active;
} TqJob;

/* A job as pg_cron knows it, and the last entry of its log. */
typedef struct TqJobState
{
	int64 id;
	char *name;
	char *role;
	bool is_active;
	char *status; /* of its last run; NULL: none, also the next */
	char *message;
	TimestampTz started; /* 0: not known */
	TimestampTz finished;
} TqJobState;

extern bool tq_pg_cron_is_here(void);
extern bool tq_pg_cron_is_elsewhere(void);
extern bool tq_pg_cron_has_seconds(void);
extern const char *tq_pg_cron_time_zone(void);
extern void tq_pg_cron_require(void);
extern int64 tq_pg_cron_schedule(const TqJob *job);
extern void tq_pg_cron_unschedule(const char *name, const char *role);
extern bool tq_pg_cron_set_active(const char *name, const char *role,
								  bool is_active);
extern char *tq_pg_cron_schedule_command(const TqJob *job);
extern char *tq_pg_cron_unschedule_command(const char *name, const char *role);
extern void tq_pg_cron_note_elsewhere(const char *command);
extern TqJobState *tq_pg_cron_jobs(const char *name_pattern, int *n);

#endif /* TQ_PG_CRON_H */
