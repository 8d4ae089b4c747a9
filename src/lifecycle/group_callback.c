/*
 * group_callback.c
 *	  Tasks that are created when a group resolves (doc/spec/policy.md 14).
 *
 * A callback is a row of tq_internal.group_callback with the definition of its
 * task.  Timers say when to look at it: at once, when the publisher finds that
 * the group is resolved, and now and then, because the last task may have been
 * deleted, and because nothing may want the messages from which the publisher
 * learns of resolutions.
 *
 * No resolution is missed for longer than that.  A look locks the row and reads
 * the group with a later snapshot.  If it does not see the end of the last task,
 * that is published after the look, by a publisher that sees the row and adds a
 * timer.
 */
#include "postgres.h"

#include "utils/acl.h"

#include "lifecycle.h"

/* A callback is looked at after as long as it has waited, within these. */
#define LOOK_MIN_MS (30 * 1000)
#define LOOK_MAX_MS (10 * 60 * 1000)

/* The key of the payload that has the outcome. */
#define GROUP_KEY "group"

/*
 * Raises TQ400 unless the outcome can be added to a payload: it is an object
 * that does not have that key.
 */
void
tq_group_callback_check(const Jsonb *payload)
{
	if (!JB_ROOT_IS_OBJECT(payload))
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("payload must be a JSON object"),
				 errdetail(
					 "It is %s, and the outcome of the group is added to it.",
					 tq_json_clip(&payload->root)),
				 errhint("Put the value under a key.")));
	if (getKeyJsonValueFromContainer(unconstify(JsonbContainer *,
												&payload->root),
									 GROUP_KEY, strlen(GROUP_KEY),
									 NULL) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("payload must not have the key \"%s\"", GROUP_KEY),
				 errdetail("The outcome of the group has that key."),
				 errhint("Rename it.")));
}

/* ---- the task ---- */

/* Returns {"group": …}: how a group has ended. */
static Jsonb *
outcome_json(const TqSlug *slug, const TqProgress *progress)
{
	JsonbParseState *group = tq_json_begin();
	JsonbParseState *state = tq_json_begin();
	const char *outcome = tq_group_outcome(progress);
	int64 tasks = 0;

	for (int i = 0; i < TQ_STATES; i++)
		tasks += progress->count[i];
	tq_json_add_slug(&group, "taskGroupId", slug);
	tq_json_add_text(&group, "outcome", outcome);
	tq_json_add_int(&group, "tasks", tasks);
	tq_json_add_int(&group, "completed", progress->count[TQ_STATE_COMPLETED]);
	tq_json_add_int(&group, "failed", progress->count[TQ_STATE_FAILED]);
	tq_json_add_int(&group, "exception", progress->count[TQ_STATE_EXCEPTION]);
	tq_json_add_int(&group, "tolerated", progress->tolerated);
	tq_json_add_time(&group, "firstCreated", progress->first_created);
	tq_json_add_time(&group, "lastResolved", progress->last_resolved);
	tq_json_add_object(&state, GROUP_KEY, tq_json_end(&group));
	return tq_json_end(&state);
}

/* Returns whether no task of a group is unresolved, and counts its tasks. */
static bool
group_callback_is_resolved(const TqSlug *slug, TqProgress *progress)
{
	TqGroup group;

	memset(progress, 0, sizeof(*progress));
	if (tq_group_find(slug, &group) != TQ_GROUP_NONE)
		tq_group_count(&group, progress);
	return tq_group_outcome(progress) != NULL;
}

/* Reads the definition of the task of a callback. */
static void
group_callback_read_definition(const TqCallback *callback,
							   TqTaskDefinition *definition)
{
	tq_definition_parse(&callback->task_id, &callback->definition->root, true,
						definition);
}

/* Creates the task of a callback, with times from now on. */
static void
create(const TqCallback *callback, const TqProgress *progress, TimestampTz now)
{
	TqTaskDefinition new;

	group_callback_read_definition(callback, &new);
	tq_definition_renew_times(&new, now);
	new.named.task.expires_given = false;
	new.may_be_foreign = true;
	new.payload = DatumGetJsonbP(
		DirectFunctionCall2(jsonb_concat, JsonbPGetDatum(new.payload),
							JsonbPGetDatum(
								outcome_json(&callback->task_group_id,
											 progress))));
	(void) tq_create(&new, 1, TQ_REPEAT_LATER, now);
}

/* What is done as the role that registered a callback. */
typedef struct Creation
{
	const TqCallback *callback;
	const TqProgress *progress;
	TimestampTz now;
} Creation;

/* ---- rights ---- */

/*
 * Raises TQ403 unless the caller may create the task of a callback, and see how
 * the group has ended.
 */
void
tq_group_callback_require(const TqSlug *group,
						  const TqTaskDefinition *definition)
{
	tq_require_group_list(group);
	tq_require_create(definition, 1, true);
}

static void
create_as_role(const void *arg)
{
	const Creation *creation = arg;
	TqTaskDefinition definition;

	group_callback_read_definition(creation->callback, &definition);
	tq_group_callback_require(&creation->callback->task_group_id, &definition);
	create(creation->callback, creation->progress, creation->now);
}

/*
 * Creates the task of a callback as the role that registered it; raises an error
 * unless that role may do so now.  The scopes of credentials end with a claim, so
 * they were checked once; but what was registered with credentials that were
 * revoked, or by a role that was dropped, is not done.
 */
static void
create_with_rights(const Creation *creation)
{
	const TqCallback *callback = creation->callback;

	if (callback->client != NULL && callback->client[0] == '\0')
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg(
				 "the credentials by which the task was registered were revoked"),
			 errdetail("tq.rotate_secret() was called to revoke them."),
			 errhint("Call tq.cancel_group_callbacks(), and "
					 "tq.on_group_resolved() again.")));
	if (GetUserNameFromId(callback->role, true) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_CONFLICT),
				 errmsg("the role that registered the task was dropped"),
				 errdetail(
					 "The task is created with the scopes of that role."),
				 errhint("Call tq.cancel_group_callbacks(), and "
						 "tq.on_group_resolved() as another role.")));
	if (callback->client == NULL)
		tq_access_as(callback->role, create_as_role, creation);
	else
		create(callback, creation->progress, creation->now);
}

/* Raises TQ403 unless the caller may take back a callback. */
void
tq_group_callback_require_cancel(const TqCallback *callback)
{
	TqTaskDefinition definition;

	if (tq_access_assumed_client() == NULL &&
		has_privs_of_role(tq_spi_caller(), callback->role))
		return;
	group_callback_read_definition(callback, &definition);
	tq_require_change("cancel-task", &definition.named);
}

/* ---- callbacks ---- */

/*
 * Registers a task that is created when a group resolves, or creates it at once
 * if the group is resolved.  Does nothing if a callback or a task with that id
 * exists: the call is repeated.
 */
void
tq_group_callback_add(const TqSlug *group, TqTaskDefinition *definition,
					  TimestampTz now)
{
	TqCallback callback = {.registered = now,
						   .task_group_id = *group,
						   .task_id = definition->named.task.task_id,
						   .role = tq_spi_caller(),
						   .definition = tq_definition_json(definition)};
	const char *client = tq_access_assumed_client();
	TqProgress progress;

	if (tq_task_by_slug(&callback.task_id) != NULL)
		return;
	callback.client = client == NULL ? NULL : pstrdup(client);
	callback.id = tq_id_next();
	if (!tq_callback_insert(&callback))
		return;
	tq_bucket_check_callback(group, &callback.task_id);
	if (group_callback_is_resolved(group, &progress))
	{
		create(&callback, &progress, now);
		tq_callback_delete(callback.id);
	}
	else
	{
		tq_quota_check("tq.max_callbacks");
		tq_timer_insert(TQ_TIMER_CALLBACK, now, &callback.id, 1);
	}
}

/*
 * Creates the task of a callback if its group is resolved, and deletes the
 * callback; returns whether it did.
 */
bool
tq_group_callback_try(int64 id, TimestampTz now)
{
	TqCallback callback;
	TqProgress progress;

	if (!tq_callback_lock(id, &callback))
	{
		/* Another session looks at it, if its task was not created. */
		if (tq_callback_exists(id))
			tq_timer_insert(TQ_TIMER_CALLBACK,
							tq_clock_add_ms(now, TQ_AGAIN_MS), &id, 1);
		return false;
	}
	if (!group_callback_is_resolved(&callback.task_group_id, &progress))
	{
		int64 waited = (now - callback.registered) / 1000;
		int64 after = Min(Max(waited, LOOK_MIN_MS), LOOK_MAX_MS);

		/* Set the timer of the next look at a callback. */
		tq_timer_insert(TQ_TIMER_CALLBACK, tq_clock_add_ms(now, after),
						&callback.id, 1);
		return false;
	}
	create_with_rights(&(Creation){&callback, &progress, now});
	tq_callback_delete(id);
	return true;
}
