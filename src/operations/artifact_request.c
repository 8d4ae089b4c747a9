/*
 * artifact_request.c
 *	  Requests to create an artifact: keys and values (doc/spec/taskcluster.md
 *	  1.7).
 *
 * Decides which keys a storage type has, and which values they may have.  Needs
 * neither the clock nor the task; artifact.c carries the request out.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "../core/names.h"
#include "operations.h"

#define CONTENT_TYPE_MAX 255
#define MESSAGE_MAX 4096

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
char *
tq_artifact_label(const TqSlug *task_id, int run_id, const char *name)
{
	return psprintf("artifact \"%s\" of run %d of task \"%s\"",
					tq_error_clip(name), run_id, tq_slug_text(task_id));
}

static char *
artifact_request_label_of(const TqJsonReader *request)
{
	const Target *target = request->owner;

	return tq_artifact_label(target->task_id, target->run_id, target->name);
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
 * character that a URI may not have.
 */
static bool
is_uri(const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t length = strspn(text, letters);

	if (length == 0)
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
				artifact_request_refuse(request, "url",
										"must be a URI with a scheme");
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
bool
tq_artifact_is_uploaded(TqStorage storage)
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
	artifact->present = !tq_artifact_is_uploaded(artifact->storage);
	artifact->details = details_of(&request);
	return artifact;
}

/*
 * Raises the error that expires is valid in itself, but not now or not for
 * this task.
 */
void
tq_artifact_error_expires(const TqSlug *task_id, const TqArtifact *artifact,
						  const char *rule)
{
	Target target = {task_id, artifact->run_id, artifact->name};
	TqJsonReader request = {keys, lengthof(keys), artifact_request_refuse,
							&target};

	artifact_request_refuse(&request, "expires", rule);
}
