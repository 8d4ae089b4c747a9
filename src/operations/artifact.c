/*
 * artifact.c
 *	  Artifacts of runs: creation, the end of an upload.
 *
 * Follows doc/spec/taskcluster.md 2.15.  Decides whether a run still accepts
 * artifacts, and when a repeated creation is compatible with the first.
 * artifact_table.c has the rows and their locks, maintenance.c deletes expired artifacts, and
 * src/sql/artifacts.sql reads them.
 *
 * Of the storage types, blob and object name a location to which content is
 * uploaded under an id, and are present once the upload is finished; inline
 * contains its content; reference and link point elsewhere; error says why
 * there is no content.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "nodes/pg_list.h"

#include "../core/names.h"
#include "operations.h"

/*
 * ---- requests: keys and values (doc/spec/taskcluster.md 1.7) ----
 *
 * Which keys a storage type has, and which values they may have.  Needs neither
 * the clock nor the task.
 */

#define CONTENT_TYPE_MAX 255
#define MESSAGE_MAX 4096
#define URL_BYTES 8192

#define DEFAULT_CONTENT_TYPE "application/binary"
#define STORAGE_TYPES "blob, object, reference, link, error or inline"

/* What a request is for; errors name it. */
typedef struct Target
{
	const TqSlug *task_id;
	int run_id;
	const char *name;
} Target;

/* Sets of storage types. */
#define TYPE(storage) (1 << TQ_STORAGE_##storage)
#define UPLOADED (TYPE(BLOB) | TYPE(OBJECT))
#define EVERY                                                                 \
	(UPLOADED | TYPE(REFERENCE) | TYPE(ERROR) | TYPE(LINK) | TYPE(INLINE))

/* The keys of a request, in the order of TqJsonKey. */
#define KEYS(KEY)                                                             \
	KEY(URL, "url")                                                           \
	KEY(REASON, "reason")                                                     \
	KEY(CONTENT, "content")                                                   \
	KEY(EXPIRES, "expires")                                                   \
	KEY(MESSAGE, "message")                                                   \
	KEY(ARTIFACT, "artifact")                                                 \
	KEY(UPLOAD_ID, "uploadId")                                                \
	KEY(CONTENT_TYPE, "contentType")                                          \
	KEY(STORAGE_TYPE, "storageType")                                          \
	KEY(CONTENT_LENGTH, "contentLength")

enum
{
	KEYS(TQ_JSON_KEY_NUMBER)
};

static const TqJsonKey keys[] = {KEYS(TQ_JSON_KEY_NAME)};

/*
 * Every key: which types must have it, which types may have it, and whether it
 * is one of the details, which are stored as given.
 */
static const struct
{
	int key;
	int must;
	int may;
	bool in_details;
} known_keys[] = {{KEY_STORAGE_TYPE, EVERY, 0, false},
				  {KEY_EXPIRES, EVERY, 0, false},
				  {KEY_CONTENT_TYPE, UPLOADED | TYPE(REFERENCE) | TYPE(INLINE),
				   TYPE(LINK), false},
				  {KEY_CONTENT_LENGTH, 0, UPLOADED, false},
				  {KEY_UPLOAD_ID, 0, UPLOADED, true},
				  {KEY_URL, TYPE(REFERENCE), 0, true},
				  {KEY_ARTIFACT, TYPE(LINK), 0, true},
				  {KEY_REASON, TYPE(ERROR), 0, true},
				  {KEY_MESSAGE, TYPE(ERROR), 0, true},
				  {KEY_CONTENT, TYPE(INLINE), 0, true}};

/* The reasons that a worker may give for an artifact without content. */
static const char *const error_reasons[] = {"file-missing-on-worker",
											"invalid-resource-on-worker",
											"too-large-file-on-worker",
											"file-not-readable-on-worker"};

StaticAssertDecl(EVERY == (2 << TQ_STORAGE_LAST) - 2,
				 "EVERY names every type");

/* Returns the text by which errors name an artifact. */
static char *
artifact_label(const TqSlug *task_id, int run_id, const char *name)
{
	return psprintf("artifact \"%s\" of run %d of task \"%s\"",
					tq_error_clip(name), run_id, tq_slug_text(task_id));
}

static char *
artifact_request_label_of(const TqJsonReader *request)
{
	const Target *target = request->owner;

	return artifact_label(target->task_id, target->run_id, target->name);
}

static void
artifact_request_refuse(const TqJsonReader *request, const char *key,
						const char *rule)
{
	ereport(ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid \"%s\" in artifact", key),
			 errdetail("In %s, \"%s\" %s.", artifact_request_label_of(request),
					   key, rule),
			 errhint("Correct \"%s\" and create the artifact again.", key)));
}

/*
 * Returns whether text looks like a URI (RFC 3986): a scheme, a colon, and no
 * character that a URI may not have; it is not longer than servers accept.
 */
static bool
is_uri(const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t length = strspn(text, letters);

	if (length == 0 || strlen(text) > URL_BYTES)
		return false;
	while (text[length] != '\0' &&
		   (strchr(letters, text[length]) != NULL ||
			strchr("0123456789+-.", text[length]) != NULL))
		length++;
	if (text[length] != ':' || text[length + 1] == '\0')
		return false;
	for (const char *c = text + length; *c != '\0'; c++)
	{
		if (*c <= 0x20 || *c > 0x7e || strchr("<>\"\\^`{|}", *c) != NULL)
			return false;
	}
	return true;
}

/*
 * Returns the string at that key, which may have at most max characters, or
 * NULL if the key is absent.
 */
static char *
read_short_string(const TqJsonReader *request, int key, int max)
{
	char *text = tq_json_read_string(request, key);

	if (text != NULL && pg_mbstrlen(text) > max)
		artifact_request_refuse(request, keys[key].name,
								psprintf("must have at most %d characters",
										 max));
	return text;
}

/* Returns the storage type of the request, which is required. */
static TqStorage
get_storage(const TqJsonReader *request)
{
	char *name = tq_json_read_string(request, KEY_STORAGE_TYPE);
	TqStorage storage;

	if (name == NULL)
		artifact_request_refuse(request, "storageType", "is required");
	storage = tq_storage_parse(name);
	if (storage == TQ_STORAGE_NONE)
		ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
						errmsg("invalid \"storageType\" in artifact"),
						errdetail("In %s, \"storageType\" is \"%s\".",
								  artifact_request_label_of(request),
								  tq_error_clip(name)),
						errhint("Use one of %s.", STORAGE_TYPES)));
	return storage;
}

static bool
is_key_of(const JsonbValue *key, TqStorage storage)
{
	for (int i = 0; i < lengthof(known_keys); i++)
	{
		if (tq_json_has_text(key, keys[known_keys[i].key].name))
			return ((known_keys[i].must | known_keys[i].may) &
					(1 << storage)) != 0;
	}
	return false;
}

/*
 * Checks that every key belongs to the type, and that no required key is
 * missing.
 */
static void
artifact_request_check_keys(const TqJsonReader *request, const Jsonb *json,
							TqStorage storage)
{
	TqJsonIterator it = tq_json_iterate(&json->root);

	while (tq_json_next(&it))
	{
		if (!is_key_of(&it.key, storage))
			artifact_request_refuse(request,
									tq_error_clip(tq_json_string_of(&it.key)),
									psprintf("is not a key of storageType %s",
											 tq_storage_name(storage)));
	}
	for (int i = 0; i < lengthof(known_keys); i++)
	{
		if ((known_keys[i].must & (1 << storage)) != 0 &&
			tq_json_at(request, known_keys[i].key) == NULL)
			artifact_request_refuse(request, keys[known_keys[i].key].name,
									psprintf("is required for storageType %s",
											 tq_storage_name(storage)));
	}
}

/* Returns the content length, a whole number from 0, or -1 if it is absent. */
static int64
get_content_length(const TqJsonReader *request)
{
	const JsonbValue *value = tq_json_at(request, KEY_CONTENT_LENGTH);
	int64 length;

	if (value == NULL)
		return -1;
	if (value->type != jbvNumeric)
		artifact_request_refuse(request, "contentLength", "must be a number");
	if (!tq_json_whole_number(value, 0, PG_INT64_MAX, &length))
		artifact_request_refuse(request, "contentLength",
								"must be a whole number from 0");
	return length;
}

/* Checks the reason and the message of an artifact of type error. */
static void
check_error(const TqJsonReader *request)
{
	char *reason = tq_json_read_string(request, KEY_REASON);

	(void) read_short_string(request, KEY_MESSAGE, MESSAGE_MAX);
	for (int i = 0; i < lengthof(error_reasons); i++)
	{
		if (strcmp(reason, error_reasons[i]) == 0)
			return;
	}
	artifact_request_refuse(
		request, "reason",
		"must be file-missing-on-worker, invalid-resource-on-worker, "
		"too-large-file-on-worker or file-not-readable-on-worker");
}

/* Checks the keys that only this type has. */
static void
check_details(const TqJsonReader *request, TqStorage storage)
{
	TqSlug upload_id;
	const JsonbValue *value;
	Jsonb *content;
	Size size;

	switch (storage)
	{
		case TQ_STORAGE_NONE:
			break;
		case TQ_STORAGE_BLOB:
		case TQ_STORAGE_OBJECT:
			(void) tq_json_read_slug(request, KEY_UPLOAD_ID, &upload_id);
			break;
		case TQ_STORAGE_REFERENCE:
			if (!is_uri(tq_json_read_string(request, KEY_URL)))
				artifact_request_refuse(
					request, "url",
					"must be a URI with a scheme, of at most 8192 bytes");
			break;
		case TQ_STORAGE_ERROR:
			check_error(request);
			break;
		case TQ_STORAGE_LINK:
			if (!tq_is_artifact_name(
					tq_json_read_string(request, KEY_ARTIFACT)))
				artifact_request_refuse(
					request, "artifact",
					"must be 1 to 1024 printable ASCII characters");
			break;
		case TQ_STORAGE_INLINE:
			/* Check the size of inline content, which counts as text. */
			value = tq_json_at(request, KEY_CONTENT);
			content = JsonbValueToJsonb(unconstify(JsonbValue *, value));
			size = tq_json_size_over(&content->root, tq_max_inline_artifact);
			if (size > 0)
				artifact_request_refuse(
					request, "content",
					psprintf("has %zu bytes as text, and may have %d "
							 "(tq.max_inline_artifact)",
							 size, tq_max_inline_artifact));
			break;
	}
}

/* Returns the keys of the request that are stored as given. */
static Jsonb *
details_of(const TqJsonReader *request)
{
	JsonbParseState *state = tq_json_begin();

	for (int i = 0; i < lengthof(known_keys); i++)
	{
		int key = known_keys[i].key;
		const JsonbValue *value = known_keys[i].in_details
									  ? tq_json_at(request, key)
									  : NULL;

		if (value == NULL)
			continue;
		tq_json_key(&state, keys[key].name);
		pushJsonbValue(&state, WJB_VALUE, unconstify(JsonbValue *, value));
	}
	return tq_json_end(&state);
}

/*
 * Returns whether the type has its content uploaded, and so is present only
 * when the upload is finished.
 */
static bool
artifact_is_uploaded(TqStorage storage)
{
	return (UPLOADED & (1 << storage)) != 0;
}

/*
 * Parses a request to create an artifact, without the clock or the task.  An
 * upload id that was not given stays absent.
 */
TqArtifact *
tq_artifact_parse(const TqSlug *task_id, int run_id, char *name, Jsonb *json)
{
	Target target = {task_id, run_id, name};
	TqJsonReader request = {keys, lengthof(keys), artifact_request_refuse,
							&target};
	TqArtifact *artifact = palloc0(sizeof(TqArtifact));
	JsonbValue unknown;
	char *type;

	if (!JB_ROOT_IS_OBJECT(json))
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("artifact must be a JSON object"),
				 errdetail("That of %s is %s.",
						   artifact_request_label_of(&request),
						   tq_json_clip(&json->root)),
				 errhint("Send an object with storageType, expires, and what "
						 "the storageType needs.")));
	(void) tq_json_open(&request, &json->root, &unknown);
	artifact->run_id = run_id;
	artifact->name = name;
	artifact->storage = get_storage(&request);
	artifact_request_check_keys(&request, json, artifact->storage);
	(void) tq_json_read_time(&request, KEY_EXPIRES, &artifact->expires);
	type = read_short_string(&request, KEY_CONTENT_TYPE, CONTENT_TYPE_MAX);
	artifact->content_type = type != NULL ? type
										  : pstrdup(DEFAULT_CONTENT_TYPE);
	artifact->content_length = get_content_length(&request);
	check_details(&request, artifact->storage);
	artifact->present = !artifact_is_uploaded(artifact->storage);
	artifact->details = details_of(&request);
	return artifact;
}

/*
 * Raises the error that expires is valid in itself, but not now or not for
 * this task.
 */
static void
artifact_error_expires(const TqSlug *task_id, const TqArtifact *artifact,
					   const char *rule)
{
	Target target = {task_id, artifact->run_id, artifact->name};
	TqJsonReader request = {keys, lengthof(keys), artifact_request_refuse,
							&target};

	artifact_request_refuse(&request, "expires", rule);
}

/* ---- creation and uploads ---- */

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
				artifact_label(&task->task_id, wanted->run_id, wanted->name)),
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
	bool any_upload = artifact_is_uploaded(artifact->storage) &&
					  tq_json_get(artifact->details, "uploadId") == NULL;
	TqNamedTask *named;
	const TqTask *task;
	TqRun run;
	TqArtifact old;

	if (artifact->expires < tq_clock_add_ms(now, -EXPIRES_DRIFT_MS))
		artifact_error_expires(task_id, artifact,
							   "must not be more than 15 minutes in the past");
	named = tq_task_by_slug(task_id);
	if (named == NULL ||
		!(is_allowed || tq_may_see_run("create-artifact", task_id,
									   artifact->run_id, named->task.queue)))
		refuse_run(task_id, artifact, "does not exist",
				   "the task was never created, or it has expired");
	task = &named->task;
	if (!is_allowed)
		tq_require_run("create-artifact", task_id, artifact->run_id,
					   task->queue);
	lock_claimed_run(task, artifact, &run);
	if (artifact->expires > task->expires)
		artifact_error_expires(
			task_id, artifact,
			psprintf("must not be after the task's, which is %s",
					 tq_clock_text(task->expires)));
	check_state(task, artifact, &run, now);
	artifact->task = task->id;
	if (any_upload)
	{
		JsonbParseState *state = NULL;
		TqSlug slug;

		tq_slug_random(&slug);
		pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
		tq_json_add_slug(&state, "uploadId", &slug);
		artifact->details = tq_json_end(&state);
	}
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
						   artifact_label(&task->task_id, artifact->run_id,
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
						artifact_label(&task->task_id, run_id, name)),
				 errdetail("%s", NEVER_CREATED),
				 errhint(
					 "tq.list_artifacts() shows the artifacts of a run.")));
	}
	if (!artifact_is_uploaded(artifact.storage))
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
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_NOT_FOUND),
			 errmsg("task \"%s\" has no run yet",
					tq_slug_text(&task->task_id)),
			 errdetail("The task is %s.", tq_state_name(last.state)),
			 errhint(
				 "Ask again when the task has been scheduled: artifacts belong to runs.")));
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
	if (artifact_is_uploaded(artifact->storage))
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
