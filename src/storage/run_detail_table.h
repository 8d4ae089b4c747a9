/*
 * run_detail_table.h
 *	  Rows of tq_internal.run_detail: attributes that only some runs have.
 */
#ifndef TQ_RUN_DETAIL_TABLE_H
#define TQ_RUN_DETAIL_TABLE_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../core/policy.h"
#include "index_scan.h"
#include "run_table.h"

/* How far a worker is, as it has reported last (doc/spec/policy.md 13). */
typedef struct TqRunProgress
{
	int64 done;
	int64 total;   /* TQ_OFF: not given */
	char *message; /* NULL: none */
	TimestampTz reported;
} TqRunProgress;

typedef struct TqRunDetail
{
	int64 task;
	TqBudget budget;         /* its retries_left are in the row of the run */
	int worker;              /* 0: none */
	int64 retry_delay;       /* ms, given by a worker; TQ_OFF: none */
	TimestampTz started;     /* 0: never */
	Jsonb *error;            /* NULL: none, or not read */
	Jsonb *result;           /* only to be written; NULL: none */
	TqRunProgress *progress; /* read with the error; NULL: none; not written */
} TqRunDetail;

extern void tq_details_write(const TqRunDetail *details, int n);

/* Reads details; opens the table when it is first needed. */
typedef struct TqDetailReader
{
	TqScan *scan;
	bool with_errors; /* that workers reported, and progress */
} TqDetailReader;

extern TqRunDetail *tq_detail_reader_read(TqDetailReader *reader, TqRun *run);
extern void tq_detail_reader_end(TqDetailReader *reader);
extern bool tq_detail_read(TqRun *run, TqRunDetail *detail);
extern Jsonb *tq_detail_result(const TqRun *run);
extern TqRunProgress *tq_detail_progress(const TqRun *run);
extern bool tq_detail_set_progress(const TqRun *run,
								   const TqRunProgress *progress);

#endif /* TQ_RUN_DETAIL_TABLE_H */
