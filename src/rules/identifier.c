/*
 * identifier.c
 *	  Names of queues, workers, schedulers, projects and artifacts: which
 *	  characters they may have, and how many (doc/spec/taskcluster.md 1.1).
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "rules.h"

#define IDENTIFIER_MAX 38
#define WORKER_NAME_MAX 128
#define PROJECT_MAX 500
#define ARTIFACT_NAME_MAX 1024

/*
 * Returns whether these bytes are at least one letter, digit or further
 * character, and at most max.
 */
static bool
is_name(const char *value, size_t len, size_t max, const char *further)
{
	if (len > max)
		return false;
	for (size_t i = 0; i < len; i++)
	{
		char c = value[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			  (c >= '0' && c <= '9') || strchr(further, c) != NULL) ||
			c == '\0')
			return false;
	}
	return len > 0;
}

#define IS_IDENTIFIER(value, len) is_name(value, len, IDENTIFIER_MAX, "-_")

bool
tq_is_identifier(const char *value)
{
	return IS_IDENTIFIER(value, strlen(value));
}

/* Returns whether a text is provisionerId/workerType. */
bool
tq_is_task_queue_id(const char *value)
{
	const char *slash = strchr(value, '/');

	return slash != NULL && IS_IDENTIFIER(value, slash - value) &&
		   IS_IDENTIFIER(slash + 1, strlen(slash + 1));
}

/* Returns whether a text is a provisionerId, a slash and a star. */
static bool
is_queue_pattern(const char *value)
{
	const char *slash = strchr(value, '/');

	return slash != NULL && IS_IDENTIFIER(value, slash - value) &&
		   strcmp(slash + 1, "*") == 0;
}

bool
tq_is_project_id(const char *value)
{
	return is_name(value, strlen(value), PROJECT_MAX, "._/-");
}

/* Returns whether a text has printable ASCII characters only. */
bool
tq_is_printable(const char *value)
{
	for (; *value != '\0'; value++)
	{
		if (*value < 0x20 || *value > 0x7e)
			return false;
	}
	return true;
}

bool
tq_is_artifact_name(const char *value)
{
	size_t len = strlen(value);

	return len >= 1 && len <= ARTIFACT_NAME_MAX && tq_is_printable(value);
}

/*
 * Returns what is wrong with a name that may have letters, digits and further
 * characters: the first other one, or the length.
 */
static char *
name_fault(const char *value, const char *further)
{
	const char *c = value;

	while (*c != '\0' && is_name(c, 1, 1, further))
		c++;
	if (*c == '\0')
		return psprintf("has %zu characters", strlen(value));
	return psprintf("has the character \"%.*s\", which is not allowed",
					pg_mblen(c), c);
}

/*
 * Checks a worker_group or worker_id.  It may be the name of a pod or of a
 * host.
 */
void
tq_check_worker_name(const char *what, const char *value)
{
	if (!is_name(value, strlen(value), WORKER_NAME_MAX, "-_."))
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("invalid %s \"%s\"", what, tq_error_clip(value)),
				 errdetail("It %s.", name_fault(value, "-_.")),
				 errhint(
					 "Use 1 to 128 letters, digits, \"-\", \"_\" or \".\".")));
}

/* Checks the name of an artifact that is an argument. */
void
tq_check_artifact_name(const char *value)
{
	if (!tq_is_artifact_name(value))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid artifact name \"%s\"", tq_error_clip(value)),
			 errdetail(
				 "It has %zu bytes, or a character that is not printable ASCII.",
				 strlen(value)),
			 errhint("Use 1 to 1024 printable ASCII characters.")));
}

/* Returns what is wrong with a text that is not a task queue id. */
static char *
queue_fault(const char *value)
{
	const char *slash = strchr(value, '/');

	if (!is_name(value, strlen(value), SIZE_MAX, "-_/") && value[0] != '\0')
		return psprintf("It %s.", name_fault(value, "-_/"));
	if (strlen(value) > IDENTIFIER_MAX && slash == NULL)
		return psprintf("It %s.", name_fault(value, "-_"));
	return pstrdup(
		"It is neither a name nor two names with a slash between them.");
}

/*
 * Returns the task queue id that an argument of this name stands for: a name
 * without a slash is a workerType of the provisionerId "-".
 */
char *
tq_task_queue_id(const char *what, char *value)
{
	if (tq_is_task_queue_id(value))
		return value;
	if (!tq_is_identifier(value))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid %s \"%s\"", what, tq_error_clip(value)),
			 errdetail("%s", queue_fault(value)),
			 value[0] == '{'
				 ? errhint(
					   "A list of queues is an array only with its type, for example $1::text[].")
				 : errhint(
					   "A task queue is named provisionerId/workerType, or name for -/name, each of 1 to %d letters, digits, \"-\" or \"_\".",
					   IDENTIFIER_MAX)));
	return psprintf("-/%s", value);
}

/*
 * Returns an element of task_queue_ids: a task queue id as tq_task_queue_id()
 * does, or a provisionerId, a slash and a star for all of its queues.
 */
char *
tq_queue_or_pattern(char *value)
{
	if (is_queue_pattern(value) || tq_is_task_queue_id(value))
		return value;
	if (!tq_is_identifier(value))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid element \"%s\" of task_queue_ids",
					tq_error_clip(value)),
			 errdetail("%s",
					   strchr(value, '*') != NULL
						   ? "A star must follow a provisionerId and a slash."
						   : queue_fault(value)),
			 errhint(
				 "Give provisionerId/workerType, or provisionerId/* for all queues of a provisioner, or name for -/name.")));
	return psprintf("-/%s", value);
}
