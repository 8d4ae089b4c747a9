/*
 * rules.h
 *	  What may be: the rules by which a call is accepted or refused.
 *
 * Decides what a definition may contain, which scopes a call needs and which
 * roles have them, and which names, ids and credentials are accepted.  Changes
 * nothing.
 */
#ifndef TQ_RULES_H
#define TQ_RULES_H

#include "utils/multirangetypes.h"

#include "../core/scope.h"
#include "../storage/tasks.h"

/* ---- access.c: what the caller may do: scopes of roles ---- */

extern const TqXactEnd tq_access_xact_end;

/* What a call requires, built only for a caller that has not every scope. */
extern TqNeed *tq_need(const char *format, ...) pg_attribute_printf(1, 2);
extern TqNeed *tq_need_list(TqNeedKind kind, int n);
extern void tq_need_add(TqNeed *list, const TqNeed *part);
extern TqNeed *tq_need_all(int n, ...);
extern TqNeed *tq_need_any(int n, ...);

extern bool tq_access_is_unlimited(void);
extern uint64 tq_access_version(void);
extern bool tq_access_meets(const TqNeed *need);
extern void tq_access_check(const TqNeed *need);
pg_noreturn extern void tq_access_error(const TqNeed *need);

/* Raises TQ403 unless the caller has the scopes, for example tq_need(...). */
#define tq_access_require(need)                                               \
	do                                                                        \
	{                                                                         \
		if (!tq_access_is_unlimited())                                        \
			tq_access_check(need);                                            \
	} while (0)

/* Functions that call those above, with the argument of tq_access_as(). */
typedef void TqAccessChecks(const void *arg);

extern void tq_access_as(Oid role, TqAccessChecks *checks, const void *arg);

extern char **tq_access_scopes(int *n);
extern void tq_access_assume(const char *client, char *const *scopes, int n);
extern Oid tq_access_creator(void);
extern const char *tq_access_assumed_client(void);
extern const char *const *tq_access_built_in(Oid role);
extern uint64 tq_access_forget_dropped_roles(void);

/* ---- identifier.c: names of queues, workers, schedulers, artifacts ---- */

/* The rule for an identifier, as errors state it. */
#define TQ_IDENTIFIER_RULE "must be 1 to 38 letters, digits, \"-\" or \"_\""

extern bool tq_is_identifier(const char *value);
extern bool tq_is_task_queue_id(const char *value);
extern bool tq_is_project_id(const char *value);
extern bool tq_is_printable(const char *value);
extern bool tq_is_artifact_name(const char *value);
extern void tq_check_worker_name(const char *what, const char *value);
extern void tq_check_artifact_name(const char *value);
extern char *tq_task_queue_id(const char *what, char *value);
extern char *tq_queue_or_pattern(char *value);

/* ---- task_access.c: tasks that a call names, and scopes required ---- */

extern TqNamedTask *tq_task_get(const TqSlug *task_id);
extern TqTaskDefinition *tq_definition_get(const TqSlug *task_id);
pg_noreturn extern void tq_error_missing_task(const TqSlug *task_id);
pg_noreturn extern void tq_error_past_deadline(const TqTask *task);
pg_noreturn extern void tq_error_missing_run(const TqTask *task, int run_id);

/* Each raises TQ403 unless the caller has the scopes. */
extern void tq_require_create(const TqTaskDefinition *tasks, int n,
							  bool with_project);
extern void tq_require_read(const char *right, const TqSlug *task_id);
extern int tq_keep_read(const char *right, TqSlug *ids, int n);
extern bool tq_may_give_scopes(const TqTaskDefinition *definition);
extern bool tq_may_read(const char *right, const TqSlug *task_id,
						const char *queue);
extern bool tq_may_change(const char *right, const TqNamedTask *named);
extern void tq_require_change(const char *right, const TqNamedTask *named);
extern void tq_require_priority(const TqNamedTask *named);
extern void tq_require_run(const char *right, const TqSlug *task_id,
						   int run_id, int32 queue);
extern bool tq_may_handle_run(const char *right, const TqSlug *task_id,
							  int run_id, int32 queue);
extern bool tq_may_handle_runs(const char *right, int32 queue);
extern bool tq_may_see_run(const char *right, const TqSlug *task_id,
						   int run_id, int32 queue);
extern void tq_require_claim(const char *right, const char *queue,
							 const TqSlug *task_id, const char *worker_group,
							 const char *worker_id);
extern void tq_require_join(const char *scheduler_id, const char *queue,
							bool cancels);
extern bool tq_may_still_cancel(Oid creator, const TqGroup *group);
extern bool tq_may_depend(int32 queue, bool *is_foreign);
extern void tq_require_unique(void);
extern void tq_group_get(const TqSlug *slug, TqGroup *group);
extern void tq_group_get_to(const char *right, const TqSlug *slug,
							TqGroup *group);
extern void tq_require_group(const char *right, const TqGroup *group);
extern void tq_require_group_list(const TqSlug *slug);
extern bool tq_may_change_letters(const char *queue);
extern bool tq_may_see_letter(const TqSlug *task_id, const char *queue);
extern void tq_require_dead_letters(const char *queue);

/* ---- credentials.c: issues and verifies credentials of claims ---- */

/* A claim, as the worker gets it. */
typedef struct TqClaim
{
	TqSlug task_id;
	int run_id;
	const char *worker_group;
	const char *worker_id;
	TimestampTz started; /* the run */
	TimestampTz taken_until;
	Jsonb *payload;     /* NULL: left out */
	ArrayType *scopes;  /* of the task; NULL: none */
	Jsonb *credentials; /* NULL: none */
	Jsonb *definition;  /* NULL: left out, as the status */
	Jsonb *status;
	const char *queue; /* of a claim from several queues; NULL: left out */
} TqClaim;

extern bool tq_credentials_are_wanted(bool has_given, int32 queue);
extern void tq_credentials_issue(TqClaim *claims, int n, TimestampTz now);

/* Credentials as a client gives them: strings that need not end in a zero. */
typedef struct TqCredentials
{
	JsonbValue client_id;
	JsonbValue token;
	JsonbValue certificate;
} TqCredentials;

/* What credentials that are valid give. */
typedef struct TqClaimRights
{
	TqSlug task_id;
	int run_id;
	int32 worker; /* that has, or had, the run */
	char **scopes;
	int nscopes;
} TqClaimRights;

extern bool tq_credentials_read(const JsonbContainer *json,
								TqCredentials *credentials);
extern char *tq_credentials_client(const TqCredentials *given);
extern bool tq_credentials_verify(const TqCredentials *given, TimestampTz now,
								  TqClaimRights *rights);
extern bool tq_claim_rights_are_for(const TqClaimRights *rights,
									const TqSlug *task_id, int run_id);
extern int32 tq_credentials_require(const TqCredentials *given,
									const TqSlug *task_id, int run_id,
									TimestampTz now);
pg_noreturn extern void tq_error_credentials(void);
extern void tq_credentials_open(const TqCredentials *given, TimestampTz now,
								TqClaimRights *rights);
extern TimestampTz tq_last_claim_ends(TimestampTz now);

/* ---- definition.c: the rules for definitions, and their faults ---- */

#define TQ_RETRIES_DEFAULT 5 /* of a definition, and of enqueue() */
#define TQ_RETRIES_MAX 49    /* the same, unless the policy gives them */

/*
 * What is wrong with a definition.  The functions that take it note a fault, and
 * return a value that is safe to go on with, so that one error has them all.
 */
typedef struct TqFaults
{
	const TqSlug *task_id;
	int element;       /* of an array, from 1; 0: there is no array */
	bool of_arguments; /* of enqueue(), and named like them */
	int n;
	int labeled;         /* the element that was named last */
	const char *key;     /* of the last one */
	const char *hint;    /* the same */
	StringInfoData list; /* not valid if there is none */
} TqFaults;

extern void tq_definition_depend_on_self(TqTaskDefinition *definition);

extern void tq_fault(TqFaults *faults, const char *key, const char *rule);
extern void tq_fault_with_hint(TqFaults *faults, const char *key,
							   const char *rule, const char *hint);
extern void tq_faults_add_times(TqFaults *faults,
								TqTaskDefinition *definition);
extern void tq_faults_raise(const TqFaults *faults);

extern int tq_definition_priority(TqFaults *faults, const char *name);
extern bool tq_definition_requires(TqFaults *faults, const char *name);
extern ArrayType *tq_definition_routes(TqFaults *faults, char **routes, int n);
extern ArrayType *tq_definition_scopes(TqFaults *faults, char **scopes, int n);
extern Jsonb *tq_definition_tags(TqFaults *faults, Jsonb *tags);

extern void tq_definition_check_project(TqFaults *faults,
										const TqTaskDefinition *definition);
extern void
tq_definition_check_dependencies(TqFaults *faults,
								 const TqTaskDefinition *definition);
extern void tq_definition_check_sizes(TqFaults *faults,
									  const TqTaskDefinition *definition);
extern void tq_definition_check_whole(TqFaults *faults,
									  const TqTaskDefinition *definition);
extern void tq_definition_renew_times(TqTaskDefinition *definition,
									  TimestampTz now);
extern void tq_definition_set_expires(TqNamedTask *named,
									  const TqPolicy *policy);
extern void tq_definition_apply_policy(TqFaults *faults,
									   TqTaskDefinition *definition,
									   Jsonb *policy);
extern void tq_definition_apply_default(TqTaskDefinition *definition);
extern TqRetention tq_retention_of(const TqPolicy *policy, int32 queue);
extern void tq_definition_shift_times(TqTaskDefinition *definition);
extern void tq_check_times(TqFaults *faults,
						   const TqTaskDefinition *definition,
						   TimestampTz now);

/* ---- definition_json.c: reads a task definition from JSON ---- */

extern void tq_definition_read(TqFaults *faults, const JsonbContainer *json,
							   bool is_stored, TqTaskDefinition *definition);
extern void tq_definition_parse(const TqSlug *task_id,
								const JsonbContainer *json, bool is_stored,
								TqTaskDefinition *definition);

/* ---- enqueue.c: definitions from the arguments of enqueue() ---- */

/* The arguments of enqueue() that are checked like a definition. */
typedef struct TqEnqueue
{
	const char *requires;
	const char *priority;
	int retries; /* TQ_OFF: not given; also the next */
	int retry;   /* retries under the policy that it stands for */
	ArrayType *routes;
	ArrayType *scopes;
	Jsonb *tags;
	Jsonb *extra;
	const char *name;
	Jsonb *policy; /* NULL: none */
	int64 delay_ms;
	TimestampTz run_at; /* 0: none; excludes a delay */
} TqEnqueue;

extern void tq_definition_fill(TqFaults *faults, TqTaskDefinition *definition,
							   const TqEnqueue *arguments);

/* ---- bucket.c: in which buckets ids are made, or refused ---- */

extern void tq_bucket_choose(TqSlug *task_id, const TqSlug *group);
extern void tq_bucket_check(const TqTaskDefinition *tasks, int n);
extern void tq_bucket_check_callback(const TqSlug *group,
									 const TqSlug *task_id);
extern bool tq_bucket_is_foreign(const TqSlug *slug);

#endif
