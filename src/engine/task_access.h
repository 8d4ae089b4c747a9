/*
 * task_access.h
 *	  The scopes that calls about tasks, runs and queues require.
 */
#ifndef TQ_TASK_ACCESS_H
#define TQ_TASK_ACCESS_H

#include "../storage/task_table.h"
#include "../util/slugid.h"

/* Each raises TQ403 unless the caller has the scopes. */
extern void tq_require_create(const TqTaskDefinition *tasks, int n,
							  bool with_project);
extern void tq_require_read(const char *right, const TqSlug *task_id);
extern void tq_require_read_all(const char *right, const TqSlug *ids, int n);
extern void tq_require_change(const char *right, const TqNamedTask *named);
extern void tq_require_priority(const TqNamedTask *named);
extern void tq_require_run(const char *right, const TqSlug *task_id,
						   int run_id, int32 queue);
extern bool tq_may_handle_run(const char *right, const TqSlug *task_id,
							  int run_id, int32 queue);
extern bool tq_may_handle_runs(const char *right, int32 queue);
extern void tq_require_claim(const char *right, const char *queue,
							 const char *worker_group, const char *worker_id);
extern void tq_require_join(const char *scheduler_id, const char *queue);
extern void tq_require_group(const char *right, const TqSlug *group_id,
							 const char *scheduler_id);
extern void tq_require_dead_letters(const char *queue);
extern void tq_require_worker(const char *right, const char *queue,
							  const char *worker_group, const char *worker_id);

#endif /* TQ_TASK_ACCESS_H */
