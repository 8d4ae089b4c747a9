/*
 * scope_api.c
 *	  SQL functions that grant scopes to roles, and show them
 *	  (doc/spec/taskcluster.md 7).
 *
 * Only a caller with every scope may grant or revoke any.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "../core/scope.h"
#include "../engine/engine.h"
#include "../storage/registry.h"
#include "../util/util.h"
#include "api.h"

PG_FUNCTION_INFO_V1(tq_grant_scopes);
PG_FUNCTION_INFO_V1(tq_revoke_scopes);
PG_FUNCTION_INFO_V1(tq_grant_queue);
PG_FUNCTION_INFO_V1(tq_revoke_queue);
PG_FUNCTION_INFO_V1(tq_current_scopes);
PG_FUNCTION_INFO_V1(tq_satisfies);

#define SCOPE_MAX 1500  /* bytes: the longest that a call requires fits */
#define SCOPES_MAX 1000 /* of one call */

/* ---- arguments ---- */

static void
refuse_scope(const char *scope, const char *rule)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_BAD_INPUT),
		 errmsg("invalid scope \"%s\"", tq_error_clip(scope)),
		 errdetail("It %s.", rule),
		 errhint(
			 "Give 1 to %d printable ASCII characters; a star at the end stands for any text.",
			 SCOPE_MAX)));
}

static void
check_scope(const char *scope)
{
	size_t length = strlen(scope);

	if (length == 0)
		refuse_scope(scope, "is empty");
	if (length > SCOPE_MAX)
		refuse_scope(scope, psprintf("has %zu bytes", length));
	if (!tq_is_printable(scope))
		refuse_scope(scope, "has a character that is not printable ASCII");
	if (length >= 2 && strcmp(scope + length - 2, "**") == 0)
		refuse_scope(scope, "ends in \"**\"");
}

/* Returns the argument "scopes". */
static char **
arg_scopes(FunctionCallInfo fcinfo, int argument, int *n)
{
	char **scopes = tq_texts_of_array(tq_arg_array(fcinfo, argument, "scopes"),
									  n);

	if (*n > SCOPES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT), errmsg("too many scopes"),
				 errdetail("There are %d, and may be %d in one call.", *n,
						   SCOPES_MAX),
				 errhint("Give fewer, or one that ends in a star.")));
	for (int i = 0; i < *n; i++)
	{
		if (scopes[i] == NULL)
			tq_error_null_element("scopes", i);
		check_scope(scopes[i]);
	}
	return scopes;
}

/* Returns the argument "role", which must exist. */
static Oid
arg_role(FunctionCallInfo fcinfo, int argument)
{
	Oid role;

	if (PG_ARGISNULL(argument))
		tq_error_null("role");
	role = PG_GETARG_OID(argument);
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(role)))
		ereport(ERROR,
				(errcode(ERRCODE_TQ_BAD_INPUT),
				 errmsg("role %u does not exist", role),
				 errdetail("Scopes are granted to roles that exist."),
				 errhint("Give the name of a role, not a number or \"-\".")));
	return role;
}

/* ---- grants ---- */

/* Begins a call that changes grants. */
static void
begin_change(void)
{
	tq_call_begin(false);
	tq_access_require(tq_need("*"));
}

/* Raises TQ409 if a role has one of these scopes for good. */
static void
refuse_built_in(Oid role, char **scopes, int n)
{
	const char *const *own = tq_access_built_in(role);

	for (int i = 0; own != NULL && own[i] != NULL; i++)
	{
		for (int s = 0; s < n; s++)
		{
			if (strcmp(own[i], scopes[s]) == 0)
				ereport(
					ERROR,
					(errcode(ERRCODE_TQ_CONFLICT),
					 errmsg("scope \"%s\" cannot be revoked from role \"%s\"",
							scopes[s], GetUserNameFromId(role, true)),
					 errdetail("The role has it by the extension."),
					 errhint(
						 "Revoke that role from its members, and grant them what they need.")));
		}
	}
}

/* grant_scopes(role regrole, scopes text[]); no error if it has them */
Datum
tq_grant_scopes(PG_FUNCTION_ARGS)
{
	Oid role = arg_role(fcinfo, 0);
	int n;
	char **scopes = arg_scopes(fcinfo, 1, &n);

	begin_change();
	(void) tq_grants_delete_of_dropped_roles();
	tq_grants_insert(role, scopes, n);
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_VOID();
}

/* revoke_scopes(role regrole, scopes text[]); no error if it has them not */
Datum
tq_revoke_scopes(PG_FUNCTION_ARGS)
{
	Oid role = arg_role(fcinfo, 0);
	int n;
	char **scopes = arg_scopes(fcinfo, 1, &n);

	begin_change();
	refuse_built_in(role, scopes, n);
	tq_grants_delete(role, scopes, n);
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_VOID();
}

/* ---- the rights of an application to its queues ---- */

/*
 * The scopes of each kind of access.  A percent sign stands for the task queue
 * id or the pattern, and "%/" at the end for what is below it.
 */
static const char *const produce_scopes[] = {"queue:create-task:highest:%",
											 "queue:create-task:project:*",
											 "queue:scheduler-id:-",
											 "queue:schedule-task-in-queue:%",
											 "queue:schedule-cron-in-queue:%",
											 "queue:status-in-queue:%",
											 "queue:get-task-in-queue:%",
											 "queue:pending-count:%",
											 NULL};

static const char *const work_scopes[] = {"queue:claim-work:%",
										  "queue:claim-task:%",
										  "queue:worker-id:*",
										  "queue:reclaim-task-in-queue:%",
										  "queue:resolve-task-in-queue:%",
										  "queue:create-artifact-in-queue:%",
										  "queue:status-in-queue:%",
										  "queue:get-task-in-queue:%",
										  "queue:pending-count:%",
										  "queue:declare-worker:%/",
										  NULL};

#define READ_SCOPES                                                           \
	"queue:status-in-queue:%", "queue:get-task-in-queue:%",                   \
		"queue:pending-count:%", "queue:claimed-count:%",                     \
		"queue:pending-list:%", "queue:claimed-list:%",                       \
		"queue:get-task-queue:%", "queue:get-worker-type:%",                  \
		"queue:list-workers:%", "queue:get-worker:%/"

static const char *const read_scopes[] = {READ_SCOPES, NULL};

static const char *const manage_scopes[] =
	{READ_SCOPES,
	 "queue:schedule-task-in-queue:%",
	 "queue:rerun-task-in-queue:%",
	 "queue:reschedule-task-in-queue:%",
	 "queue:add-dependencies-in-queue:%",
	 "queue:cancel-task-in-queue:%",
	 "queue:skip-task-in-queue:%",
	 "queue:delete-task-in-queue:%",
	 "queue:change-task-priority-in-queue:%",
	 "queue:move-tasks:%",
	 "queue:dead-letters:%",
	 "queue:quarantine-worker:%/",
	 "queue:worker-removed:%/",
	 "queue:pause-queue:%",
	 "queue:set-queue:%",
	 NULL};

static const char *const join_scopes[] = {"queue:join-in-queue:%", NULL};

static const struct
{
	const char *name;
	const char *const *scopes;
} kinds[] = {{"produce", produce_scopes},
			 {"work", work_scopes},
			 {"read", read_scopes},
			 {"manage", manage_scopes},
			 {"join", join_scopes}};

/* Returns the scopes of the kind of access that an argument names. */
static const char *const *
arg_access(FunctionCallInfo fcinfo, int argument)
{
	char *name = tq_arg_text(fcinfo, argument, "access");

	for (int i = 0; i < lengthof(kinds); i++)
	{
		if (strcmp(name, kinds[i].name) == 0)
			return kinds[i].scopes;
	}
	ereport(ERROR, (errcode(ERRCODE_TQ_BAD_INPUT),
					errmsg("invalid access \"%s\"", tq_error_clip(name)),
					errdetail("There is no access of that name."),
					errhint("Give produce, work, read, manage or join.")));
}

/*
 * Returns the argument "task_queue_id", a task queue id, or the beginning of
 * some and a star.
 */
static char *
arg_queues(FunctionCallInfo fcinfo, int argument)
{
	char *queues = tq_arg_text(fcinfo, argument, "task_queue_id");
	size_t length = strlen(queues);
	char *example = pstrdup(queues);

	if (length == 0 || queues[length - 1] != '*')
		return tq_task_queue_id("task_queue_id", queues);
	/* The star stands for a letter, for a slash and two, or for nothing. */
	example[length - 1] = '\0';
	if (!tq_is_task_queue_id(example) &&
		!tq_is_task_queue_id(psprintf("%sa", example)) &&
		!tq_is_task_queue_id(psprintf("%s/a", example)) &&
		!tq_is_task_queue_id(psprintf("%sa/a", example)))
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("invalid task_queue_id \"%s\"", tq_error_clip(queues)),
			 errdetail("No task queue id begins like that."),
			 errhint(
				 "Give provisionerId/workerType, or provisionerId/* for all of a provisioner.")));
	return queues;
}

/* Returns a scope of a kind of access, for these queues. */
static char *
fill_in(const char *scope, const char *queues)
{
	const char *percent = strchr(scope, '%');
	size_t length = strlen(queues);

	if (percent == NULL)
		return pstrdup(scope);
	if (percent[1] == '/' && queues[length - 1] != '*')
		queues = psprintf("%s/*", queues);
	return psprintf("%.*s%s", (int) (percent - scope), scope, queues);
}

/* Reads the arguments of grant_queue() and revoke_queue() as scopes. */
static char **
read_queue_scopes(FunctionCallInfo fcinfo, int *n)
{
	char *queues = arg_queues(fcinfo, 1);
	const char *const *access = arg_access(fcinfo, 2);
	char **scopes = palloc(sizeof(char *) * (lengthof(manage_scopes)));

	for (*n = 0; access[*n] != NULL; (*n)++)
		scopes[*n] = fill_in(access[*n], queues);
	return scopes;
}

/*
 * grant_queue(role regrole, task_queue_id text, access text): grants the scopes
 * that an application needs on its queues.  task_queue_id may end in a star;
 * access is produce, work, read or manage, which includes read.
 */
Datum
tq_grant_queue(PG_FUNCTION_ARGS)
{
	Oid role = arg_role(fcinfo, 0);
	int n;
	char **scopes = read_queue_scopes(fcinfo, &n);

	begin_change();
	tq_grants_insert(role, scopes, n);
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_VOID();
}

/* revoke_queue(... as grant_queue): revokes these scopes */
Datum
tq_revoke_queue(PG_FUNCTION_ARGS)
{
	Oid role = arg_role(fcinfo, 0);
	int n;
	char **scopes = read_queue_scopes(fcinfo, &n);

	begin_change();
	tq_grants_delete(role, scopes, n);
	tq_audit_operator(fcinfo);
	tq_call_end();
	PG_RETURN_VOID();
}

/* ---- reading ---- */

/* current_scopes() -> text[], without those that others cover */
Datum
tq_current_scopes(PG_FUNCTION_ARGS)
{
	MemoryContext outer = CurrentMemoryContext;
	char **scopes;
	Datum result;
	int n;

	tq_call_begin(true);
	scopes = tq_access_scopes(&n);
	MemoryContextSwitchTo(outer);
	result = tq_array_text(scopes, n);
	tq_call_end();
	PG_RETURN_DATUM(result);
}

/*
 * satisfies(have text[], required text) -> bool: whether one of the scopes
 * satisfies the required one (7.1)
 */
Datum
tq_satisfies(PG_FUNCTION_ARGS)
{
	int n;
	char **have = tq_texts_of_array(tq_arg_array(fcinfo, 0, "have"), &n);
	char *required = tq_arg_text(fcinfo, 1, "required");

	for (int i = 0; i < n; i++)
	{
		if (have[i] == NULL)
			tq_error_null_element("have", i);
		if (tq_scope_satisfies(have[i], required))
			PG_RETURN_BOOL(true);
	}
	PG_RETURN_BOOL(false);
}
