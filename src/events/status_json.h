/*
 * status_json.h
 *	  The JSON of a task: the status structure, its runs, its definition;
 *	  and that of groups, workers and queues.
 */
#ifndef TQ_STATUS_JSON_H
#define TQ_STATUS_JSON_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"

#include "../storage/group_table.h"
#include "../storage/queue_table.h"
#include "../storage/task_location.h"
#include "../storage/task_table.h"
#include "../storage/worker_table.h"

extern void tq_status_push(JsonbParseState **state, const TqNamedTask *named,
						   const TqHistoryRun *runs, int n);
extern Jsonb *tq_status_json(const TqNamedTask *named,
							 const TqHistoryRun *runs, int n);
extern Jsonb *tq_status_of(const TqNamedTask *named);
extern Jsonb *tq_definition_json(const TqTaskDefinition *definition);
extern Jsonb *tq_metadata_json(const char *name);
extern Jsonb *tq_progress_detail_json(const TqRunProgress *progress);
extern Jsonb *tq_runs_json(const TqHistoryRun *runs, int n);
extern Jsonb *tq_group_json(const TqGroup *group);
extern Jsonb *tq_group_message_json(const TqGroup *group);
extern Jsonb *tq_group_cancel_json(const TqGroup *group, int64 size,
								   const TqTask *tasks, int n);
extern Jsonb *tq_worker_json(const char *queue, const TqWorker *worker);
extern Jsonb *tq_queue_json(const TqQueue *queue);
extern Jsonb *tq_counts_json(const char *queue, int64 pending, int64 claimed);
extern Jsonb *tq_quarantine_json(const char *client, TimestampTz now,
								 TimestampTz until, const char *info);

#endif /* TQ_STATUS_JSON_H */
