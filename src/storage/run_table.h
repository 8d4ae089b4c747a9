/*
 * run_table.h
 *	  Rows of tq_internal.run, and the location of a task.
 */
#ifndef TQ_RUN_TABLE_H
#define TQ_RUN_TABLE_H

#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "utils/jsonb.h"

#include "../core/types.h"
#include "../util/slugid.h"
#include "../util/xact_end.h"
#include "task_table.h"

/* The location of a task: the table that holds its current row. */
typedef enum TqTaskLocation
{
	TQ_LOCATION_NONE, /* no such task, or its row has moved */
	TQ_LOCATION_UNSCHEDULED,
	TQ_LOCATION_PENDING,
	TQ_LOCATION_DELAYED,
	TQ_LOCATION_RUN
} TqTaskLocation;

/* A run, as the table that holds its row has it. */
typedef struct TqRun
{
	int64 task;
	TqTaskLocation location;
	int run_id; /* of an unscheduled task its last run, or -1 */
	TqState state;
	TqCreated created;
	TqResolved reason;
	int retries_left;
	int worker; /* 0: none */
	bool by_claim_task;
	TimestampTz scheduled; /* a time is 0 if there is none */
	TimestampTz started;
	TimestampTz taken_until;
	TimestampTz resolved;
	bool has_detail; /* it has a row in run_detail, too: TqRunDetail */
} TqRun;

extern const TqXactEnd tq_run_xact_end;

extern void tq_runs_insert(const TqRun *runs, int n);
extern void tq_runs_start(const TqClaimed *claimed, int n, int32 worker,
						  int32 queue);
extern void tq_runs_update(const TqRun *runs, int n);
extern bool tq_run_find(int64 task, int run_id, TqRun *run);
extern TimestampTz tq_run_last_taken_until(void);

/* What a session remembers of a task of which it has claimed a run. */
typedef struct TqRecalled
{
	int64 task;
	int64 group_id;
	int32 policy;
	int32 queue;
	int32 worker; /* that had the run */
} TqRecalled;

extern bool tq_runs_recall(const TqSlug *task_id, TqRecalled *recalled);

/*
 * Reads rows of tq_internal.run, and writes each unless it was changed
 * concurrently.
 */
typedef struct TqRunWriter TqRunWriter;

extern TqRunWriter *tq_run_writer_begin(void);
extern void tq_run_writer_renew(TqRunWriter *writer);
extern bool tq_run_writer_read(TqRunWriter *writer, const TqSlug *task_id,
							   int64 task, int run_id, TqRun *run);
extern bool tq_run_writer_write(TqRunWriter *writer, const TqRun *run);
extern bool tq_run_writer_delete(TqRunWriter *writer);
extern void tq_run_writer_end(TqRunWriter *writer);
/* Reads the last row in tq_internal.run of many tasks. */
typedef struct TqScan TqRunReader;

extern TqRunReader *tq_run_reader_begin(void);
extern bool tq_run_reader_last(TqRunReader *reader, int64 task, TqRun *run);
extern void tq_run_reader_end(TqRunReader *reader);

extern void tq_run_read(TupleTableSlot *slot, struct TqRun *run);

#endif /* TQ_RUN_TABLE_H */
