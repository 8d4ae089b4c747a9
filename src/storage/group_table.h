/*
 * group_table.h
 *	  Rows of tq_internal.task_group, and aggregates over the tasks of a group.
 */
#ifndef TQ_GROUP_TABLE_H
#define TQ_GROUP_TABLE_H

#include "datatype/timestamp.h"
#include "utils/snapshot.h"

#include "../core/policy.h"
#include "../core/types.h"
#include "../util/slugid.h"

typedef struct TqGroup
{
	int64 id; /* 0 for a group of its own task only, which has no row */
	TqSlug task_group_id;
	char *scheduler_id;
	TimestampTz expires;
	TimestampTz sealed; /* 0: not sealed */
	int32 queue;        /* of its first task */
} TqGroup;

typedef enum TqGroupFound
{
	TQ_GROUP_NONE,
	TQ_GROUP_LONE,  /* it has no row, but a task of the same id */
	TQ_GROUP_STORED /* it has a row */
} TqGroupFound;

/* A task of a group. */
typedef struct TqMember
{
	TqSlug task_id;
	int64 id;
} TqMember;

extern bool tq_groups_lock_to_join(int joined, int own);
extern void tq_group_lock(const TqSlug *slug, bool exclusive);
extern void tq_group_lock_to_seal(const TqSlug *slug);
extern TqSlug tq_group_slug(int64 id, Snapshot snapshot);
extern bool tq_group_read_slug(int64 id, Snapshot snapshot, TqSlug *slug);
extern int64 tq_group_number_of(const TqSlug *slug, Snapshot snapshot);
extern TqGroupFound tq_group_find(const TqSlug *slug, TqGroup *group);
extern bool tq_group_insert(TqGroup *group);
extern void tq_groups_wait_for_insert(const TqSlug *slugs, int n, bool *exist);
extern bool tq_task_wait_for_insert(const TqSlug *slug);
extern bool tq_group_prolong(int64 id, TimestampTz expires);
extern void tq_group_set_sealed(int64 id, TimestampTz sealed);
extern int64 *tq_group_unresolved(const TqGroup *group, int *found);
extern int64 *tq_group_ended(const TqGroup *group, const TqResolved *reasons,
							 int n, int *found);
extern int64 tq_group_size(const TqGroup *group);
extern bool tq_group_is_large(const TqGroup *group, int tasks);
extern int tq_groups_delete(TimestampTz before, int max);
extern TqGroup *tq_groups_by_slug(const TqSlug *slugs, int n, int *found);
extern bool tq_group_first_unresolved(const TqGroup *group, TqMember *member);
extern bool tq_group_first_active(const TqGroup *group, const TqSlug *from,
								  TqSlug *active);

/* Tasks of a group that have the same state, reason, delay and effect. */
typedef struct TqGroupCount
{
	TqState state;
	TqResolved reason;
	bool delayed;
	TqUnsuccessful effect; /* onUnsuccessful, as far as it counts */
	int64 tasks;
	TimestampTz first_created;
	TimestampTz first_resolved;
	TimestampTz last_resolved;
} TqGroupCount;

extern TqGroupCount *tq_group_counts(const TqGroup *group, int *found);

#endif /* TQ_GROUP_TABLE_H */
