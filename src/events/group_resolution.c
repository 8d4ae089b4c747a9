/*
 * group_resolution.c
 *	  How a task group ends, and the message that it has ended.
 */
#include "postgres.h"

#include "lib/qunique.h"
#include "utils/snapmgr.h"

#include "events.h"

/* ---- counts ---- */

/* More than the numbers of reasons. */
#define REASONS 64

/*
 * Returns a number by which the ends of unsuccessful tasks are compared: the
 * lowest is the first.  Of two in the same millisecond a cancellation yields to
 * another reason, because that may have caused it (doc/spec/policy.md 10.6);
 * otherwise the lower number of the reason counts, so that the result does not
 * depend on the plan.
 */
int64
tq_group_bad_key(TimestampTz resolved, TqResolved reason)
{
	return resolved * REASONS +
		   (reason == TQ_RESOLVED_CANCELED ? REASONS - 1 : (int) reason);
}

/* Sets the first unsuccessful end of a group, if this key is that of one. */
static void
set_first_bad(TqProgress *progress, int64 key)
{
	int reason = (int) (key % REASONS);

	if (key == TQ_COUNT_NO_TIME)
		return;
	progress->first_bad = key / REASONS;
	progress->first_reason = reason == REASONS - 1 ? TQ_RESOLVED_CANCELED
												   : reason;
}

static int64
first_bad_key(const TqProgress *progress)
{
	return progress->first_reason == TQ_RESOLVED_NONE
			   ? TQ_COUNT_NO_TIME
			   : tq_group_bad_key(progress->first_bad,
								  (TqResolved) progress->first_reason);
}

static void
keep_earlier(TimestampTz *time, TimestampTz other)
{
	if (*time == 0 || (other != 0 && other < *time))
		*time = other;
}

/* Adds tasks of the same state, reason, delay and effect. */
static void
add_count(const TqGroupCount *count, TqProgress *progress)
{
	TqPolicy effect = {.on_unsuccessful = count->effect};
	int64 key = tq_group_bad_key(count->first_resolved, count->reason);

	if (count->delayed)
		progress->delayed += count->tasks;
	else
		progress->count[count->state] += count->tasks;
	keep_earlier(&progress->first_created, count->first_created);
	progress->last_resolved = Max(progress->last_resolved,
								  count->last_resolved);
	if (count->state != TQ_STATE_FAILED && count->state != TQ_STATE_EXCEPTION)
		return;
	if (tq_policy_tolerates(&effect, count->reason))
		progress->tolerated += count->tasks;
	if (effect.on_unsuccessful == TQ_UNSUCCESSFUL_FORGIVE &&
		tq_policy_applies(count->reason))
		progress->forgiven += count->tasks;
	else if (progress->first_reason == TQ_RESOLVED_NONE ||
			 key < first_bad_key(progress))
		set_first_bad(progress, key);
}

/* Counts the rows of the tasks of a group, and adds them. */
static void
add_rows(const TqGroup *group, TqProgress *progress)
{
	int n;
	TqGroupCount *counts = tq_group_counts(group, &n);

	for (int i = 0; i < n; i++)
		add_count(&counts[i], progress);
}

/* ---- counters ---- */

/* Which counter of a group has its tasks of a state. */
static const int counter_of[TQ_STATES] =
	{[TQ_STATE_UNSCHEDULED] = TQ_GROUP_UNSCHEDULED,
	 [TQ_STATE_PENDING] = TQ_GROUP_PENDING,
	 [TQ_STATE_RUNNING] = TQ_GROUP_RUNNING,
	 [TQ_STATE_COMPLETED] = TQ_GROUP_COMPLETED,
	 [TQ_STATE_FAILED] = TQ_GROUP_FAILED,
	 [TQ_STATE_EXCEPTION] = TQ_GROUP_EXCEPTION};

/*
 * Counts the tasks of a group, except the one that it is named after, for
 * counters; returns false if it cannot have any now.
 */
static bool
build_counters(int64 id, TqProgress *progress)
{
	const TqGroup others = {.id = id}; /* no task has the slug of zeros */
	Snapshot snapshot;

	if (!tq_count_group_begin(id, &snapshot))
		return false;
	tq_spi_open_at(snapshot);
	add_rows(&others, progress);
	progress->reported = tq_progress_is_reported(id);
	tq_spi_close();
	for (int state = 0; state < TQ_STATES; state++)
		tq_count_build_set(id, counter_of[state], progress->count[state]);
	tq_count_build_set(id, TQ_GROUP_DELAYED, progress->delayed);
	tq_count_build_set(id, TQ_GROUP_TOLERATED, progress->tolerated);
	tq_count_build_set(id, TQ_GROUP_FORGIVEN, progress->forgiven);
	tq_count_build_set(id, TQ_GROUP_REPORTED, progress->reported);
	tq_count_build_set(id, TQ_GROUP_FIRST_CREATED, progress->first_created);
	tq_count_build_set(id, TQ_GROUP_LAST_RESOLVED, progress->last_resolved);
	tq_count_build_set(id, TQ_GROUP_FIRST_BAD, first_bad_key(progress));
	(void) tq_count_build_end();
	return true;
}

/* Gives a group counters again that had them before the server was started. */
void
tq_group_count_again(int64 id)
{
	TqProgress progress = {0};

	(void) build_counters(id, &progress);
}

/*
 * Counts the tasks of a group by state and effect: by its counters, or else by
 * its rows.  A large group that has no counters gets them by that.
 */
void
tq_group_count(const TqGroup *group, TqProgress *progress)
{
	TqGroup own = *group;
	int64 counters[TQ_GROUP_COUNTERS];

	memset(progress, 0, sizeof(*progress));
	own.id = 0;
	if (tq_count_read_group(group->id, counters))
	{
		for (int state = 0; state < TQ_STATES; state++)
			progress->count[state] = counters[counter_of[state]];
		progress->delayed = counters[TQ_GROUP_DELAYED];
		progress->tolerated = counters[TQ_GROUP_TOLERATED];
		progress->forgiven = counters[TQ_GROUP_FORGIVEN];
		progress->reported = counters[TQ_GROUP_REPORTED];
		progress->first_created = counters[TQ_GROUP_FIRST_CREATED];
		progress->last_resolved = counters[TQ_GROUP_LAST_RESOLVED];
		set_first_bad(progress, counters[TQ_GROUP_FIRST_BAD]);
	}
	else if (!tq_group_is_large(group, tq_counted_group) ||
			 !build_counters(group->id, progress))
	{
		own.id = group->id;
		progress->reported = 1; /* perhaps */
	}
	add_rows(&own, progress);
}

/*
 * Returns whether a group has more tasks than that, without the one that it is
 * named after: by its counters, or else by so many rows.
 */
bool
tq_group_exceeds(const TqGroup *group, int tasks)
{
	int64 counters[TQ_GROUP_COUNTERS];
	int64 found;

	if (!tq_count_read_group(group->id, counters))
		return tasks < PG_INT32_MAX && tq_group_is_large(group, tasks + 1);
	found = counters[TQ_GROUP_DELAYED];
	for (int state = 0; state < TQ_STATES; state++)
		found += counters[counter_of[state]];
	return found > tasks;
}

/* Returns whether all unresolved tasks of a group are unscheduled. */
bool
tq_group_only_waits(const TqProgress *progress)
{
	return progress->count[TQ_STATE_UNSCHEDULED] > 0 &&
		   progress->count[TQ_STATE_PENDING] +
				   progress->count[TQ_STATE_RUNNING] + progress->delayed ==
			   0;
}

/*
 * Returns how a group ended, by its first unsuccessful task, or NULL while it
 * has unresolved tasks.
 */
const char *
tq_group_outcome(const TqProgress *progress)
{
	if (progress->count[TQ_STATE_UNSCHEDULED] +
			progress->count[TQ_STATE_PENDING] +
			progress->count[TQ_STATE_RUNNING] + progress->delayed >
		0)
		return NULL;
	switch ((TqResolved) progress->first_reason)
	{
		case TQ_RESOLVED_NONE:
			return progress->forgiven > 0 ? "completed-with-errors"
										  : "completed";
		case TQ_RESOLVED_DEADLINE_EXCEEDED:
		case TQ_RESOLVED_CLAIM_EXPIRED:
		case TQ_RESOLVED_PENDING_TIMEOUT:
		case TQ_RESOLVED_RUN_TIMEOUT:
			return "timed-out";
		case TQ_RESOLVED_CANCELED:
		case TQ_RESOLVED_CANCELED_BY_WORKER:
			return "canceled";
		case TQ_RESOLVED_COMPLETED:
		case TQ_RESOLVED_SKIPPED:
		case TQ_RESOLVED_FAILED:
		case TQ_RESOLVED_FAILED_TERMINAL:
		case TQ_RESOLVED_SUPERSEDED:
		case TQ_RESOLVED_WORKER_SHUTDOWN:
		case TQ_RESOLVED_MALFORMED_PAYLOAD:
		case TQ_RESOLVED_RESOURCE_UNAVAILABLE:
		case TQ_RESOLVED_INTERNAL_ERROR:
		case TQ_RESOLVED_INTERMITTENT_TASK:
			return "failed";
	}
	return NULL;
}

/* ---- task-group-resolved ---- */

/*
 * An unresolved task of a group, found by the last check.  The next check
 * starts there, so that it need not walk over a large group from its beginning
 * at every resolution.
 */
typedef struct Witness
{
	TqSlug task_group_id;
	TqSlug active;
} Witness;

#define WITNESSES_MAX 10000

static HTAB *witnesses = NULL;

/*
 * Returns the cached witness of a group, whose task is all zeros if the group
 * is new in the cache.  The cache is dropped when it gets too large.
 */
static Witness *
find_witness(const TqSlug *slug)
{
	HASHCTL control = {.keysize = sizeof(TqSlug),
					   .entrysize = sizeof(Witness)};
	Witness *witness;
	bool found;

	if (witnesses != NULL && hash_get_num_entries(witnesses) > WITNESSES_MAX)
	{
		hash_destroy(witnesses);
		witnesses = NULL;
	}
	if (witnesses == NULL)
		witnesses = hash_create("tq witnesses", 256, &control,
								HASH_ELEM | HASH_BLOBS);
	witness = hash_search(witnesses, slug, HASH_ENTER, &found);
	if (!found)
		memset(&witness->active, 0, sizeof(TqSlug));
	return witness;
}

/*
 * Returns whether every task of the group has been resolved at least once
 * (doc/spec/taskcluster.md 4.5).  Looks from the last witness on, and if there
 * is no unresolved task, again from the beginning, because tasks with lower
 * ids may have been added.
 */
static bool
group_resolution_is_resolved(const TqGroup *group)
{
	static const TqSlug lowest = {{0}};
	Witness *witness = find_witness(&group->task_group_id);
	TqSlug active;

	if (tq_group_first_active(group, &witness->active, &active) ||
		(tq_slug_compare(&witness->active, &lowest) != 0 &&
		 tq_group_first_active(group, &lowest, &active)))
	{
		witness->active = active;
		return false;
	}
	hash_search(witnesses, &group->task_group_id, HASH_REMOVE, NULL);
	return true;
}

/*
 * Adds task-group-resolved for a group: with its row, which may change later,
 * or else with one of its tasks.
 */
static void
add_resolved(TqOutboxBatch *batch, const TqGroup *group, int64 task)
{
	TqMessage message = {.exchange = TQ_EXCHANGE_TASK_GROUP_RESOLVED,
						 .task = group == NULL ? task : 0,
						 .run_id = -1,
						 .last_run = -1};

	if (group != NULL)
		message.detail = tq_group_message_json(group);
	tq_outbox_add_message(batch, &message);
}

static int
compare_member(const void *a, const void *b)
{
	return tq_slug_compare(&((const TqMessageTask *) a)->named.group_slug,
						   &((const TqMessageTask *) b)->named.group_slug);
}

static int
compare_groups(const void *a, const void *b)
{
	return tq_slug_compare(&((const TqGroup *) a)->task_group_id,
						   &((const TqGroup *) b)->task_group_id);
}

/*
 * Appends task-group-resolved for those groups of these tasks in which every
 * task has been resolved.  The transactions that resolved the tasks have
 * committed.  The last two tasks of a group cannot both be missed, because the
 * check for the one that is published later sees both commits.  A task that has
 * departed meanwhile was resolved before.
 */
void
tq_group_resolution_append(const int64 *tasks, int n)
{
	TqMessageTask *members = tq_tasks_for_messages(tasks, n, &n);
	TqSlug *slugs = palloc(sizeof(TqSlug) * Max(n, 1));
	TqSlug *resolved = palloc(sizeof(TqSlug) * Max(n, 1));
	TqOutboxBatch batch = {0};
	TqGroup *groups;
	int ngroups = 0;
	int nresolved = 0;
	int found;
	int64 *callbacks;

	qsort(members, n, sizeof(TqMessageTask), compare_member);
	for (int i = 0; i < n; i++)
	{
		if (i == 0 || compare_member(&members[i - 1], &members[i]) != 0)
			slugs[ngroups++] = members[i].named.group_slug;
	}
	groups = tq_groups_by_slug(slugs, ngroups, &ngroups);
	for (int i = 0; i < n; i++)
	{
		TqGroup key = {.task_group_id = members[i].named.group_slug};
		TqGroup *group;

		if (i > 0 && compare_member(&members[i - 1], &members[i]) == 0)
			continue;
		group = bsearch(&key, groups, ngroups, sizeof(TqGroup),
						compare_groups);
		if (group != NULL && !group_resolution_is_resolved(group))
			continue;
		add_resolved(&batch, group, members[i].named.task.id);
		resolved[nresolved++] = members[i].named.group_slug;
	}
	tq_outbox_append(&batch);
	/*
	 * Insert timers for the callbacks of groups, at which maintenance will
	 * look (group_callback.c).
	 */
	if (nresolved == 0)
		return;
	callbacks = tq_callbacks_of_groups(resolved, nresolved, &found);
	if (found > 0)
		tq_timer_insert(TQ_TIMER_CALLBACK, tq_clock_now(), callbacks, found);
}
