/*
 * task_table.h
 *	  Rows of tq_internal.task: definitions of tasks.
 */
#ifndef TQ_TASK_TABLE_H
#define TQ_TASK_TABLE_H

#include "datatype/timestamp.h"
#include "utils/array.h"
#include "utils/jsonb.h"
#include "utils/snapshot.h"

#include "../core/policy.h"
#include "../core/types.h"
#include "../util/slugid.h"
#include "index_scan.h"

/*
 * A task, as far as decisions depend on it.  The types that follow contain
 * each other, so that the type of a task says what of it was read.
 */
typedef struct TqTask
{
	int64 id;
	TimestampTz created;
	TimestampTz deadline; /* effective: the defined one, or another one */
	TimestampTz defined_deadline;
	TimestampTz expires;
	int64 delay; /* ms from scheduled until claimable; below 0: from created */
	int64 group_id; /* 0: the group has the task's own id */
	int32 queue;
	int32 policy; /* 0: none */
	int16 priority;
	int16 retries;
	bool all_resolved;
	TqSlug task_id;
	bool expires_given; /* false: it may be deleted earlier, by retention */
} TqTask;

/* A task with its names, as its status has them. */
typedef struct TqNamedTask
{
	TqTask task;
	TqSlug group_slug;
	char *queue_name;
	char *scheduler_id;
	char *project_id;
} TqNamedTask;

/* A task with what its messages contain. */
typedef struct TqMessageTask
{
	TqNamedTask named;
	ArrayType *routes; /* NULL: none */
	Jsonb *tags;       /* as stored, perhaps compressed; NULL: {} */
} TqMessageTask;

/* A task with its whole definition, stored or new. */
typedef struct TqTaskDefinition
{
	TqNamedTask named;
	bool has_own_id; /* of a new task: this call generated task_id */
	int ndependencies;
	TqSlug *dependencies;
	ArrayType *routes; /* NULL: none */
	ArrayType *scopes;
	Jsonb *payload;
	Jsonb *metadata; /* NULL: enqueue() without a name */
	Jsonb *tags;     /* NULL: {} */
	Jsonb *extra;
	Jsonb *given_policy; /* of a new task, as it is stored; NULL: none */
	char *keys[TQ_KEYS]; /* of a new task; NULL: none */
	int64 redriven; /* of a new task: the dead one in its place; 0: none */
	bool has_own_retries; /* of a new task: no default policy sets them */
	bool has_own_delay;
	TimestampTz run_at;         /* of a new task: from enqueue(); 0: none */
	bool is_of_arguments;       /* of a new task: given to enqueue() */
	bool is_timed_from_visible; /* of a new task: its times count from then */
	bool may_be_foreign; /* of a new task: in a bucket of another shard */
} TqTaskDefinition;

extern void tq_tasks_insert(const TqTaskDefinition *const *tasks, int n,
							bool *is_new);

/* The result of comparing a task that is created again with the stored one. */
typedef enum TqMatch
{
	TQ_MATCH_NONE, /* no task with that id is stored */
	TQ_MATCH_SAME,
	TQ_MATCH_DIFFERS
} TqMatch;

typedef struct TqStored TqStored;

extern TqStored *tq_stored_begin(void);
extern TqMatch tq_stored_match(TqStored *stored, TqTaskDefinition *definition,
							   bool with_times);
extern void tq_stored_end(TqStored *stored);

extern TqNamedTask *tq_task_by_slug(const TqSlug *slug);
extern bool tq_task_exists(const TqSlug *slug);
extern TqNamedTask *tq_tasks_by_slug(const TqSlug *slugs, int n, int *found);
extern TqNamedTask *tq_tasks_by_id(const int64 *ids, int n, int *found);
extern TqMessageTask *tq_tasks_for_messages(const int64 *ids, int n,
											int *found);
extern TqTaskDefinition *tq_definition_by_slug(const TqSlug *slug);
extern TqTaskDefinition *tq_definitions_by_slug(const TqSlug *slugs, int n,
												int *found);
extern TqTaskDefinition *tq_definitions_by_id(const int64 *ids, int n,
											  int *found);
extern TqTaskDefinition *tq_definitions_of_group(int64 group_id,
												 const TqSlug *group,
												 const TqSlug *after, int max,
												 int *found);
extern TqTaskDefinition *tq_definitions_dependent(int64 required,
												  TimestampTz now,
												  const TqSlug *after, int max,
												  int *found);

/* Finds tasks, by either index; all zeros before the first one. */
typedef struct TqTaskFinder
{
	TqScan *by_slug; /* NULL: not needed yet, also the next */
	TqScan *by_id;
} TqTaskFinder;

extern bool tq_task_find_by_slug(TqTaskFinder *finder, const TqSlug *slug,
								 TqTask *task);
extern bool tq_task_find_by_id(TqTaskFinder *finder, int64 id, TqTask *task);
extern void tq_task_finder_end(TqTaskFinder *finder);
extern bool tq_task_find(const TqSlug *slug, TqTask *task);

extern bool tq_task_order(int64 id, int32 *queue, int16 *priority);
extern TqTask *tq_tasks_core(const int64 *ids, int n, int *found);
extern TqTask *tq_tasks_after(int64 *after, int entries, int *found,
							  bool *more);
extern void tq_task_add_dependencies(int64 id, const TqSlug *dependencies,
									 int n);
extern void tq_tasks_set_due(const int64 *ids, const TimestampTz *due, int n);
extern void tq_tasks_set_expires(const int64 *ids, const TimestampTz *expires,
								 int n);
extern void tq_tasks_set_priority(const int64 *ids, int n, int priority);
extern void tq_tasks_set_queue(const int64 *ids, int n, int32 queue);
extern void tq_tasks_drop_payload(const int64 *ids, int n);
extern void tq_task_replace(int64 id, Jsonb *payload, int64 delay);
extern int tq_tasks_delete(const int64 *ids, int n);

/* A run that a claim has taken from tq_internal.pending, or could take. */
typedef struct TqClaimed
{
	int64 task;
	TqSlug task_id;
	int run_id;
	int priority;
	int retries_left;
	TqCreated created;
	TimestampTz scheduled;
	TimestampTz started; /* first start of a run that was deferred; else 0 */
	TimestampTz taken_until;
	TimestampTz pending_until; /* 0: the one of the policy */
	TimestampTz deadline;      /* of the task */
	int32 policy;              /* of the task */
	int64 group_id;            /* of the task */
	TimestampTz claimable;     /* when the run became claimable */
	bool has_detail;
	Jsonb *payload;
	ArrayType *scopes; /* NULL: none */
} TqClaimed;
extern bool tq_task_core(TqScan *scan, int64 id, struct TqTask *task);
extern TqScan *tq_task_scan_begin(Snapshot snapshot);
extern bool tq_task_for_order(TqScan *scan, int64 id, int32 *queue,
							  int *priority);
extern bool tq_task_for_claim(TqScan *scan, int64 id,
							  struct TqClaimed *claimed);
extern Jsonb *tq_task_payload_for_claim(TqScan *scan);
extern ArrayType *tq_task_scopes_for_claim(TqScan *scan);
extern ArrayType *tq_task_scopes(int64 id);

#endif /* TQ_TASK_TABLE_H */
