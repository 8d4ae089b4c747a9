/*
 * artifact.c
 *	  Artifacts of runs: creation, the end of an upload.
 *
 * Follows doc/spec/taskcluster.md 2.15.  Decides whether a run still accepts
 * artifacts, and when a repeated creation is compatible with the first.
 * artifact_request.c checks what a request may contain, artifact_table.c has
 * the rows and their locks, maintenance.c deletes expired artifacts, and
 * src/sql/artifacts.sql reads them.
 *
 * Of the storage types, blob and object name a location to which content is
 * uploaded under an id, and are present once the upload is finished; inline
 * contains its content; reference and link point elsewhere; error says why
 * there is no content.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"

#include "../core/names.h"
#include "operations.h"

#define EXPIRES_DRIFT_MS (15 * 60 * 1000)
#define AFTER_EXCEPTION_MS (25 * 60 * 1000)

/* ---- creation (doc/spec/taskcluster.md 2.15) ---- */

/*
 * Raises TQ400 for a task or run that cannot have artifacts.  It is not TQ404,
 * because a worker creates artifacts only for runs that it has claimed, so the
 * request itself is wrong.
 */
static void
refuse_run(const TqSlug *task_id, const TqArtifact *artifact, const char *what,
		   const char *detail)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("run %d of task \"%s\" %s", artifact->run_id,
						   tq_slug_text(task_id), what),
					errdetail("Artifact \"%s\" cannot be created: %s.",
							  tq_error_clip(artifact->name), detail),
					errhint("Give the task id and run id of a claim.")));
}

/*
 * Locks the run that the artifact belongs to, which must have been claimed.  A
 * run without a row is pending, or has been claimed concurrently; so the row
 * is looked up a second time.
 */
static void
lock_claimed_run(const TqTask *task, const TqArtifact *artifact, TqRun *run)
{
	bool found = tq_artifact_lock_run(task->id, artifact->run_id, run);
	TqRun last = {.run_id = -1};

	if (!found)
	{
		(void) tq_run_peek(task->id, &last);
		if (last.run_id == artifact->run_id &&
			last.location != TQ_LOCATION_RUN)
			refuse_run(&task->task_id, artifact, "was never claimed",
					   "the run is pending");
		found = tq_artifact_lock_run(task->id, artifact->run_id, run);
	}
	if (!found)
		refuse_run(&task->task_id, artifact, "does not exist",
				   psprintf("the number of runs is %d", last.run_id + 1));
	if (run->worker == 0)
		refuse_run(&task->task_id, artifact, "was never claimed",
				   psprintf("the run is %s", tq_state_name(run->state)));
}

/*
 * Raises an error unless the run is running or has ended in an exception only
 * recently.
 */
static void
check_state(const TqTask *task, const TqArtifact *artifact, const TqRun *run,
			TimestampTz now)
{
	if (run->state == TQ_STATE_RUNNING ||
		(run->state == TQ_STATE_EXCEPTION &&
		 now < tq_clock_add_ms(run->resolved, AFTER_EXCEPTION_MS)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_TQ_CONFLICT),
			 errmsg("run %d of task \"%s\" no longer accepts artifacts",
					run->run_id, tq_slug_text(&task->task_id)),
			 errdetail("Artifact \"%s\": the run has been %s since %s.",
					   tq_error_clip(artifact->name),
					   tq_state_name(run->state),
					   tq_clock_text(run->resolved)),
			 errhint("Create artifacts while the run is running, or within 25 "
					 "minutes after an exception.")));
}

static Jsonb *
random_upload(void)
{
	JsonbParseState *state = NULL;
	TqSlug slug;

	tq_slug_random(&slug);
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_slug(&state, "uploadId", &slug);
	return tq_json_end(&state);
}

static bool
artifact_is_same(Jsonb *a, Jsonb *b)
{
	return compareJsonbContainers(&a->root, &b->root) == 0;
}

/*
 * Returns what the request has that cannot be applied to the existing
 * artifact, or NULL.
 */
static const char *
find_conflict(const TqArtifact *old, const TqArtifact *wanted)
{
	if (wanted->storage != TQ_STORAGE_LINK &&
		strcmp(wanted->content_type, old->content_type) != 0)
		return "another contentType";
	if (wanted->expires < old->expires)
		return "an earlier expires";
	if (old->storage == TQ_STORAGE_REFERENCE &&
		(wanted->storage == TQ_STORAGE_REFERENCE ||
		 wanted->storage == TQ_STORAGE_LINK))
		return NULL;
	if (wanted->storage != old->storage)
		return "another storageType";
	if (!artifact_is_same(wanted->details, old->details))
		return "other details";
	return NULL;
}

/*
 * Raises an error unless the request is compatible with the existing artifact.
 */
static void
check_compatible(const TqTask *task, const TqArtifact *old,
				 const TqArtifact *wanted)
{
	const char *conflict = find_conflict(old, wanted);

	if (conflict == NULL)
		return;
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_CONFLICT),
		 errmsg("%s exists already",
				tq_artifact_label(&task->task_id, wanted->run_id,
								  wanted->name)),
		 errdetail("It has storageType %s, contentType \"%s\", expires %s; "
				   "the new one has %s.",
				   tq_storage_name(old->storage),
				   tq_error_clip(old->content_type),
				   tq_clock_text(old->expires), conflict),
		 errhint("Repeat the request as it was, or use another name.")));
}

/*
 * Applies a request to an existing artifact, which is locked: takes over what
 * may change, if the request is compatible.  On return the request has what is
 * stored.
 */
static void
artifact_renew(const TqTask *task, const TqArtifact *old, TqArtifact *wanted,
			   bool any_upload)
{
	if (any_upload && wanted->storage == old->storage)
		wanted->details = old->details;
	check_compatible(task, old, wanted);
	wanted->content_type = old->content_type;
	wanted->content_length = old->content_length;
	wanted->present = old->present;
	if (wanted->expires != old->expires || wanted->storage != old->storage ||
		!artifact_is_same(wanted->details, old->details))
		tq_artifact_update(wanted);
}

/* Appends artifact-created, with the task as it is now. */
static void
artifact_announce(const TqTask *task, const TqArtifact *artifact)
{
	JsonbParseState *state = NULL;
	TqRun last;

	if (!tq_outbox_is_wanted(TQ_EXCHANGE_ARTIFACT_CREATED) ||
		!tq_run_peek(task->id, &last))
		return;
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	tq_json_add_text(&state, "storageType",
					 tq_storage_name(artifact->storage));
	tq_json_add_text(&state, "name", artifact->name);
	tq_json_add_time(&state, "expires", artifact->expires);
	tq_json_add_text(&state, "contentType", artifact->content_type);
	tq_outbox_append_detail(TQ_EXCHANGE_ARTIFACT_CREATED, task,
							artifact->run_id, &last, tq_json_end(&state));
}

/*
 * Creates an artifact, or finds that it exists already, and returns the task.
 * The checks are in the order of doc/spec/taskcluster.md 2.15.  Every call
 * appends a message, except for an object, whose message is appended when its
 * upload is finished (D-08 there).  A caller that is allowed to by credentials
 * needs no scope.
 */
TqNamedTask *
tq_artifact_create(const TqSlug *task_id, TqArtifact *artifact,
				   bool is_allowed, TimestampTz now)
{
	bool any_upload = tq_artifact_is_uploaded(artifact->storage) &&
					  tq_json_get(artifact->details, "uploadId") == NULL;
	TqNamedTask *named;
	const TqTask *task;
	TqRun run;
	TqArtifact old;

	if (artifact->expires < tq_clock_add_ms(now, -EXPIRES_DRIFT_MS))
		tq_artifact_error_expires(
			task_id, artifact, "must not be more than 15 minutes in the past");
	named = tq_task_by_slug(task_id);
	if (named == NULL)
		refuse_run(task_id, artifact, "does not exist",
				   "the task was never created, or it has expired");
	task = &named->task;
	lock_claimed_run(task, artifact, &run);
	if (!is_allowed)
		tq_require_run("create-artifact", task_id, artifact->run_id,
					   task->queue);
	if (artifact->expires > task->expires)
		tq_artifact_error_expires(
			task_id, artifact,
			psprintf("must not be after the task's, which is %s",
					 tq_clock_text(task->expires)));
	check_state(task, artifact, &run, now);
	artifact->task = task->id;
	if (any_upload)
		artifact->details = random_upload();
	while (!tq_artifact_insert(artifact))
	{
		if (tq_artifact_lock(task->id, artifact->run_id, artifact->name, &old))
		{
			artifact_renew(task, &old, artifact, any_upload);
			break;
		}
		CHECK_FOR_INTERRUPTS();
	}
	if (artifact->storage != TQ_STORAGE_OBJECT)
		artifact_announce(task, artifact);
	return named;
}

/* ---- the end of an upload ---- */

#define NEVER_CREATED "It was never created, or it has expired."

static void
refuse_finish(const TqTask *task, const TqArtifact *artifact,
			  const char *detail, const char *hint)
{
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("%s cannot be finished",
						   tq_artifact_label(&task->task_id, artifact->run_id,
											 artifact->name)),
					errdetail("%s", detail), errhint("%s", hint)));
}

/*
 * Marks the upload of an artifact as finished.  Once it is finished, each
 * further call appends the message again, whatever upload it names
 * (doc/spec/taskcluster.md 2.15).  A caller that is allowed to by credentials
 * needs no scope.
 */
void
tq_artifact_finish(const TqSlug *task_id, int run_id, const char *name,
				   const TqSlug *upload_id, bool is_allowed)
{
	const TqTask *task = &tq_task_get(task_id)->task;
	TqArtifact artifact;

	if (!is_allowed)
		tq_require_run("create-artifact", task_id, run_id, task->queue);
	if (!tq_artifact_lock(task->id, run_id, name, &artifact))
	{
		tq_artifact_check_run(task, run_id);
		ereport(ERROR,
				(errcode(ERRCODE_TQ_NOT_FOUND),
				 errmsg("%s does not exist",
						tq_artifact_label(&task->task_id, run_id, name)),
				 errdetail("%s", NEVER_CREATED),
				 errhint(
					 "tq.list_artifacts() shows the artifacts of a run.")));
	}
	if (!tq_artifact_is_uploaded(artifact.storage))
		refuse_finish(task, &artifact,
					  psprintf("It has storageType %s.",
							   tq_storage_name(artifact.storage)),
					  "Only a blob or an object is uploaded and finished.");
	if (!artifact.present)
	{
		char *stored = tq_json_get_text(artifact.details, "uploadId");
		char *given = tq_slug_text(upload_id);

		if (stored == NULL || strcmp(stored, given) != 0)
			refuse_finish(
				task, &artifact,
				psprintf("Its uploadId is not \"%s\".", given),
				"Give the uploadId that tq.create_artifact() returned.");
		artifact.present = true;
		tq_artifact_update(&artifact);
	}
	if (artifact.storage == TQ_STORAGE_OBJECT)
		artifact_announce(task, &artifact);
}

/* ---- runs that artifacts are of ---- */

/*
 * Returns the number of the last run in any state, or raises TQ404 if there is
 * none.
 */
int
tq_artifact_latest_run(const TqTask *task)
{
	TqRun last = {.run_id = -1};

	if (!tq_run_peek(task->id, &last) || last.run_id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_NOT_FOUND),
				 errmsg("task \"%s\" has no run yet",
						tq_slug_text(&task->task_id)),
				 errdetail("The task is %s.", tq_state_name(last.state)),
				 errhint("Artifacts belong to runs.")));
	return last.run_id;
}

/* Raises TQ404 unless the task has that run. */
void
tq_artifact_check_run(const TqTask *task, int run_id)
{
	if (run_id > tq_artifact_latest_run(task))
		tq_error_missing_run(task, run_id);
}

/*
 * Returns the result of create_artifact(), with the location to which content
 * has to be uploaded, if any.
 */
Jsonb *
tq_artifact_created_json(const TqNamedTask *named, const TqArtifact *artifact)
{
	JsonbParseState *state = tq_json_begin();
	const char *upload = tq_json_get_text(artifact->details, "uploadId");

	tq_json_add_text(&state, "storageType",
					 tq_storage_name(artifact->storage));
	if (tq_artifact_is_uploaded(artifact->storage))
	{
		tq_json_add_text(&state, "name",
						 psprintf("t/%s/%d/%s",
								  tq_slug_text(&named->task.task_id),
								  artifact->run_id, artifact->name));
		tq_json_add_text(&state, "projectId", named->project_id);
		if (upload != NULL)
			tq_json_add_text(&state, "uploadId", upload);
		tq_json_add_time(&state, "expires", artifact->expires);
	}
	return tq_json_end(&state);
}
