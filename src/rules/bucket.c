/*
 * bucket.c
 *	  In which buckets ids are made, and which a shard refuses
 *	  (doc/spec/policy.md 16).
 *
 * An id that the server makes is in the bucket of its group, whether the database
 * is a shard or not, so that a database can become one later.  A group that
 * begins with such an id is in one of the shard's own buckets.
 *
 * Which groups and tasks exist is looked up only for those that would be
 * refused otherwise, so that other creations pay for comparisons.
 */
#include "postgres.h"

#include "../storage/registry.h"
#include "rules.h"

/* ---- ids ---- */

/*
 * Moves an id into one of the buckets of this shard, unless it is in one.  The
 * same id is moved to the same bucket as long as the set does not change.
 */
static void
move_to_own(TqSlug *slug)
{
	const TqOwnBuckets *own = tq_shard_buckets();

	if (own == NULL || own->has[tq_slug_bucket(slug)])
		return;
	if (own->n == 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT), errmsg("this shard has no buckets"),
			 errdetail("It accepts tasks of groups that exist only."),
			 errhint(
				 "Get the present map of buckets, for example by tq_shard.map() of the router, and call another shard.  Through a router, repeat the call.")));
	tq_slug_set_bucket(slug,
					   own->list[(slug->bytes[12] << 8 | slug->bytes[13]) %
								 own->n]);
}

/*
 * Puts an id that was made for a task into the bucket of its group; NULL: the
 * group is named after it.
 */
void
tq_bucket_choose(TqSlug *task_id, const TqSlug *group)
{
	if (group != NULL)
		tq_slug_set_bucket(task_id, tq_slug_bucket(group));
	else if (tq_shard_is_set())
		move_to_own(task_id);
}

/* ---- refusals ---- */

static void
refuse_id(const TqSlug *task_id, const TqSlug *group)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT),
		 errmsg("task \"%s\" is not in the bucket of its task group",
				tq_slug_text(task_id)),
		 errdetail("It is in bucket %d, and task group \"%s\" in bucket %d.",
				   tq_slug_bucket(task_id), tq_slug_text(group),
				   tq_slug_bucket(group)),
		 errhint(
			 "Make ids by tq_internal.slugid_in_bucket(tq_internal.bucket(task_group_id)), or give none.")));
}

/* Returns whether task groups in the bucket of this id begin on other shards. */
bool
tq_bucket_is_foreign(const TqSlug *slug)
{
	const TqOwnBuckets *own = tq_shard_buckets();

	return own != NULL && !own->has[tq_slug_bucket(slug)];
}

/* Checks a task that is not in a bucket of this shard, or not in its group's. */
static void
check_foreign(const TqTaskDefinition *definition, const TqOwnBuckets *own)
{
	const TqNamedTask *named = &definition->named;
	const TqSlug *group = &named->group_slug;
	TqGroup found;

	if (definition->may_be_foreign || tq_task_exists(&named->task.task_id))
		return;
	if (tq_slug_bucket(&named->task.task_id) != tq_slug_bucket(group))
		refuse_id(&named->task.task_id, group);
	if (!own->has[tq_slug_bucket(group)] &&
		tq_group_find(group, &found) == TQ_GROUP_NONE)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("task group \"%s\" belongs to another shard",
					tq_slug_text(group)),
			 errdetail(
				 "It would be new, and bucket %d is not one of this shard.",
				 tq_slug_bucket(group)),
			 errhint(
				 "The bucket was moved to another shard, or is being moved, which lasts until older transactions of its shard have ended: repeat the call until then.  A client that calls shards itself gets the map again each time, for example by tq_shard.map() of the router.")));
}

/*
 * Checks the ids of tasks that are to be created: if the database is a shard,
 * raises TQ409 for a new group in a bucket of another one, and TQ400 for a new
 * task that is not in the bucket of its group.
 */
void
tq_bucket_check(const TqTaskDefinition *tasks, int n)
{
	const TqOwnBuckets *own = tq_shard_buckets();

	for (int i = 0; own != NULL && i < n; i++)
	{
		int bucket = tq_slug_bucket(&tasks[i].named.group_slug);

		if (!own->has[bucket] ||
			tq_slug_bucket(&tasks[i].named.task.task_id) != bucket)
			check_foreign(&tasks[i], own);
	}
}

/*
 * Raises TQ400 if the database is a shard and the task for the end of a group is
 * in another bucket than the group.
 */
void
tq_bucket_check_callback(const TqSlug *group, const TqSlug *task_id)
{
	if (tq_slug_bucket(task_id) != tq_slug_bucket(group) &&
		tq_shard_buckets() != NULL)
		refuse_id(task_id, group);
}
