/*
 * report.h
 *	  Reports of workers, which end runs.
 */
#ifndef TQ_REPORT_H
#define TQ_REPORT_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/types.h"
#include "../storage/run_detail_table.h"
#include "../storage/run_table.h"
#include "../storage/task_table.h"
#include "../util/slugid.h"
#include "count.h"
#include "credentials.h"

typedef enum TqOutcome
{
	TQ_OUTCOME_RESOLVED,
	TQ_OUTCOME_RETRIED,
	TQ_OUTCOME_REPEATED,
	TQ_OUTCOME_CONFLICT,
	TQ_OUTCOME_NOT_FOUND,
	TQ_OUTCOME_FORBIDDEN
} TqOutcome;

typedef struct TqReport
{
	TqSlug task_id;
	int run_id;
	TqResolved reason;
	const TqCredentials *credentials; /* NULL: none */
	bool is_forbidden;                /* by those credentials */
	int32 holder;    /* the worker that must have the run; 0: any */
	bool is_checked; /* the caller must have the scope of the run */
	bool is_found;   /* the task exists */
	int64 id;        /* of the task */
	int32 claimer;   /* worker that this session has claimed it for; 0: none */
	int32 claimed_in; /* the queue of that worker */
	TqCountOwner owner;
	TqTask *task;                 /* NULL: only its id was needed */
	const struct TqReport *first; /* earlier report on the same run, or NULL */
	bool has_row;                 /* the run, in table run */
	TqRun run;                    /* that row */
	TqState state;                /* of the run before the report */
	bool is_ended;                /* the run, by this report */
	bool had_detail;              /* whether the run had a detail before */
	TqRunDetail *detail;          /* of an ended run; NULL: it has none */
	Jsonb *error;                 /* given by the worker; NULL: none */
	Jsonb *result;
	bool has_retry_delay; /* given by the worker for the next attempts */
	int64 retry_delay;    /* ms */
	bool has_retries_left;
	int retries_left;
	TqOutcome outcome;
} TqReport;

extern const char *tq_outcome_name(TqOutcome outcome);
extern void tq_resolve_reports(TqReport *reports, int n, TimestampTz now);

#endif /* TQ_REPORT_H */
