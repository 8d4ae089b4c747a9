/*
 * access.c
 *	  What the caller of a function may do: scopes of roles
 *	  (doc/spec/taskcluster.md 7).
 *
 * The caller is the effective role when the call began.  Superusers, the owner
 * of the extension, and roles with the privileges of tq_admin have the scope
 * "*".  Another role has the scopes that were granted to it, and to every role
 * whose privileges it has, as PostgreSQL follows membership, INHERIT and SET
 * ROLE.  The roles that CREATE EXTENSION makes have scopes that are listed
 * here: as rows they would be restored twice, by CREATE EXTENSION and from the
 * dump, and one that was revoked would come back.
 *
 * The scopes of each role are compiled at the first call of a session, and
 * again when a grant, a role or a membership has changed: the invalidation
 * messages of PostgreSQL say so, which every call reads when it begins.
 *
 * A role that has assumed credentials has their scopes in place of its own,
 * until the transaction ends, or until the subtransaction that has assumed them
 * is rolled back.  Another role that calls meanwhile has its own: a SECURITY
 * DEFINER function that assumes credentials does not leave them to its caller.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "../storage/registry.h"
#include "rules.h"

/* ---- roles that have scopes from the beginning ---- */

static const char *const producer_scopes[] = {"queue:create-task:*",
											  "queue:scheduler-id:*",
											  "queue:route:*",
											  "queue:schedule-task:*",
											  "queue:seal-task-group:*",
											  "queue:schedule-cron:*",
											  "queue:status:*",
											  "queue:list-task-group:*",
											  "queue:list-dependent-tasks:*",
											  "queue:pending-count:*",
											  NULL};

static const char *const worker_scopes[] = {"queue:claim-work:*",
											"queue:claim-task:*",
											"queue:worker-id:*",
											"queue:reclaim-task:*",
											"queue:resolve-task:*",
											"queue:create-artifact:*",
											"queue:declare-worker:*",
											"queue:status:*",
											"queue:get-task:*",
											"queue:get-artifact:*",
											"queue:list-artifacts:*",
											"queue:pending-count:*",
											NULL};

static const char *const reader_scopes[] =
	{"queue:status:*",          "queue:get-task:*",
	 "queue:list-task-group:*", "queue:list-dependent-tasks:*",
	 "queue:get-artifact:*",    "queue:list-artifacts:*",
	 "queue:read-messages:*",   "queue:pending-count:*",
	 "queue:claimed-count:*",   "queue:pending-list:*",
	 "queue:claimed-list:*",    "queue:list-task-queues",
	 "queue:get-task-queue:*",  "queue:list-provisioners",
	 "queue:get-provisioner:*", "queue:list-worker-types:*",
	 "queue:get-worker-type:*", "queue:list-workers:*",
	 "queue:get-worker:*",      "queue:health",
	 "queue:metrics",           NULL};

/* What shows no payload, result or error. */
static const char *const monitor_scopes[] = {"queue:pending-count:*",
											 "queue:claimed-count:*",
											 "queue:list-task-queues",
											 "queue:get-task-queue:*",
											 "queue:list-provisioners",
											 "queue:get-provisioner:*",
											 "queue:list-worker-types:*",
											 "queue:get-worker-type:*",
											 "queue:list-workers:*",
											 "queue:health",
											 "queue:metrics",
											 NULL};

static const char *const metrics_scopes[] = {"queue:metrics", NULL};

static const struct BuiltIn
{
	const char *role;
	const char *const *scopes;
} built_in[] = {{"tq_producer", producer_scopes},
				{"tq_worker", worker_scopes},
				{"tq_reader", reader_scopes},
				{"tq_monitor", metrics_scopes},
				{"pg_monitor", monitor_scopes}};

/* Returns the scopes that a role has from the beginning; NULL: none. */
const char *const *
tq_access_built_in(Oid role)
{
	for (int i = 0; i < lengthof(built_in); i++)
	{
		if (role == get_role_oid(built_in[i].role, true))
			return built_in[i].scopes;
	}
	return NULL;
}

/* ---- scopes of a role ---- */

/* The scopes of a role, or those that were assumed. */
typedef struct Access
{
	Oid role; /* key; of those that were assumed, the role that did so */
	bool is_unlimited;
	int n;
	TqScope *scopes; /* sorted */
} Access;

static MemoryContext memory = NULL; /* of the cache and all that it has */
static HTAB *cache = NULL;
static uint64 cache_generation = 0; /* of the roles and grants in the cache */
static const Access *last = NULL;   /* entry that was used last */
static uint64 role_generation = 1;
static uint64 version = 1; /* see tq_access_version() */

/* Syscache callback: notes that a role or a membership has changed. */
static void
forget_roles(Datum arg, int cacheid, uint32 hashvalue)
{
	role_generation++;
}

/* Watches roles and grants, before they are read. */
static void
access_watch(void)
{
	static bool watching = false;

	if (!watching)
	{
		CacheRegisterSyscacheCallback(AUTHOID, forget_roles, (Datum) 0);
		CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, forget_roles, (Datum) 0);
	}
	watching = true;
	tq_grants_watch();
}

/* A number that differs once a role or a grant, watched, may have changed. */
#define PRESENT_GENERATION() (role_generation + *tq_grants_generation)

/* Returns whether a role may do everything. */
static bool
has_every_scope(Oid role)
{
	Oid admin = get_role_oid("tq_admin", true);

	return superuser_arg(role) ||
		   has_privs_of_role(role, tq_catalog_owner()) ||
		   (OidIsValid(admin) && has_privs_of_role(role, admin));
}

/* Appends a copy of a scope to a list that has room for `room` of them. */
static void
add_scope(Access *access, int *room, const char *scope)
{
	if (access->n == *room)
	{
		*room *= 2;
		access->scopes = repalloc_huge(access->scopes,
									   sizeof(TqScope) * *room);
	}
	access->scopes[access->n++] = tq_scope_read(pstrdup(scope));
}

/* Sorts the scopes of an access; "*" makes it unlimited. */
static void
finish(Access *access)
{
	qsort(access->scopes, access->n, sizeof(TqScope), tq_scope_compare);
	access->n = tq_scopes_reduce(access->scopes, access->n);
	access->is_unlimited = access->n == 1 && access->scopes[0].is_prefix &&
						   access->scopes[0].length == 0;
}

/*
 * Collects the scopes of a role, its own and those of its roles, in the memory
 * of the cache.
 */
static void
access_collect(Access *access)
{
	int ngrants;
	TqGrant *grants = tq_grants_all(&ngrants);
	MemoryContext outer = MemoryContextSwitchTo(memory);
	int room = 16;
	Oid asked = InvalidOid;
	bool has = false;

	access->scopes = palloc(sizeof(TqScope) * room);
	for (int i = 0; i < ngrants; i++)
	{
		if (grants[i].role != asked)
			has = has_privs_of_role(access->role, grants[i].role);
		asked = grants[i].role;
		if (has)
			add_scope(access, &room, grants[i].scope);
	}
	for (int i = 0; i < lengthof(built_in); i++)
	{
		Oid role = get_role_oid(built_in[i].role, true);

		if (!OidIsValid(role) || !has_privs_of_role(access->role, role))
			continue;
		for (int s = 0; built_in[i].scopes[s] != NULL; s++)
			add_scope(access, &room, built_in[i].scopes[s]);
	}
	MemoryContextSwitchTo(outer);
	finish(access);
}

/* Returns the scopes of a role. */
static Access
access_compile(Oid role)
{
	Access access = {.role = role, .is_unlimited = has_every_scope(role)};

	/* A session goes on when its role is dropped; its grants are still there. */
	if (!access.is_unlimited &&
		SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(role)))
		access_collect(&access);
	return access;
}

/*
 * Returns the scopes of a role from the cache, after compiling them if
 * necessary.  A change that arrives meanwhile is noticed by the next look.
 */
static const Access *
access_lookup(Oid role, uint64 generation)
{
	Access access;
	Access *entry;
	bool found;

	access_watch();
	if (cache == NULL || cache_generation != generation)
	{
		HASHCTL control = {.keysize = sizeof(Oid),
						   .entrysize = sizeof(Access)};

		/* Empty the cache. */
		last = NULL;
		cache = NULL;
		version++;
		if (memory == NULL)
			memory = AllocSetContextCreate(CacheMemoryContext, "tq scopes",
										   ALLOCSET_SMALL_SIZES);
		MemoryContextReset(memory);
		control.hcxt = memory;
		cache = hash_create("tq scopes", 8, &control,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		cache_generation = generation;
	}
	entry = hash_search(cache, &role, HASH_FIND, NULL);
	if (entry == NULL)
	{
		access = access_compile(role);
		entry = hash_search(cache, &role, HASH_ENTER, &found);
		*entry = access;
	}
	return entry;
}

/* ---- assumed scopes ---- */

typedef struct Assumed
{
	Access access;
	char *client;          /* clientId of the credentials */
	SubTransactionId id;   /* in which they were assumed */
	struct Assumed *outer; /* assumed before; NULL: none */
} Assumed;

static Assumed *assumed = NULL;  /* in TopTransactionContext */
static bool has_assumed = false; /* this transaction */

/*
 * Replaces the scopes of the caller by these, of that clientId, until the
 * transaction ends, or the present subtransaction is rolled back.  They need
 * not be sorted.
 */
void
tq_access_assume(const char *client, char *const *scopes, int n)
{
	MemoryContext outer = MemoryContextSwitchTo(TopTransactionContext);
	Assumed *new = palloc0(sizeof(Assumed));
	int room = Max(n, 1);

	new->access.scopes = palloc(sizeof(TqScope) * room);
	for (int i = 0; i < n; i++)
		add_scope(&new->access, &room, scopes[i]);
	finish(&new->access);
	new->access.role = tq_spi_caller();
	new->client = pstrdup(client);
	new->id = GetCurrentSubTransactionId();
	new->outer = assumed;
	assumed = new;
	has_assumed = true;
	version++;
	MemoryContextSwitchTo(outer);
}

/* At a rollback: drops what was assumed in that subtransaction. */
static void
drop_assumed(SubTransactionId id)
{
	while (assumed != NULL && assumed->id == id)
	{
		assumed = assumed->outer;
		version++;
	}
}

/* At the commit of a subtransaction: hands it to the one around it. */
static void
hand_over(SubTransactionId id, SubTransactionId parent)
{
	for (Assumed *one = assumed; one != NULL && one->id == id;
		 one = one->outer)
		one->id = parent;
}

static void
drop_all(void)
{
	if (assumed != NULL)
		version++;
	assumed = NULL;
	has_assumed = false;
}

const TqXactEnd tq_access_xact_end = {.has_work = &has_assumed,
									  .abort = drop_assumed,
									  .reset = drop_all,
									  .subcommit = hand_over};

/* ---- the caller ---- */

/* The role for which tq_access_as() checks; InvalidOid: for the caller. */
static Oid checked_role = InvalidOid;

/* The role whose scopes count, unless scopes were assumed. */
#define ROLE_IN_QUESTION()                                                    \
	(OidIsValid(checked_role) ? checked_role : tq_spi_caller())

/*
 * Returns what the caller has assumed last, which counts in place of the role's
 * scopes, or NULL.
 */
static const Assumed *
assumed_by_caller(void)
{
	const Assumed *one = OidIsValid(checked_role) ? NULL : assumed;

	while (one != NULL && one->access.role != tq_spi_caller())
		one = one->outer;
	return one;
}

/* Returns the scopes of the caller, or those that were assumed. */
static const Access *
of_caller(void)
{
	uint64 generation = PRESENT_GENERATION();
	const Assumed *by_caller = assumed == NULL ? NULL : assumed_by_caller();
	Oid caller;

	if (by_caller != NULL)
		return &by_caller->access;
	caller = ROLE_IN_QUESTION();
	if (last == NULL || last->role != caller || cache_generation != generation)
		last = access_lookup(caller, generation);
	return last;
}

/*
 * Returns a number that is another one whenever the scopes of the caller may be
 * others than they were before.
 */
uint64
tq_access_version(void)
{
	static const Access *seen = NULL;
	const Access *access = of_caller();

	if (access != seen)
		version++;
	seen = access;
	return version;
}

/*
 * Returns the role whose rights the later effects of what is created now need.
 * InvalidOid: the caller has assumed credentials, which end with a claim, so that
 * its rights are checked once.
 */
Oid
tq_access_creator(void)
{
	return assumed_by_caller() == NULL ? ROLE_IN_QUESTION() : InvalidOid;
}

/* Returns the clientId of the credentials that the caller has assumed, or NULL. */
const char *
tq_access_assumed_client(void)
{
	const Assumed *by_caller = assumed_by_caller();

	return by_caller == NULL ? NULL : by_caller->client;
}

/* Returns whether the caller may do everything. */
bool
tq_access_is_unlimited(void)
{
	return of_caller()->is_unlimited;
}

/* Returns whether the caller has the scopes that a call requires. */
bool
tq_access_meets(const TqNeed *need)
{
	const Access *access = of_caller();

	return access->is_unlimited ||
		   tq_need_is_met(need, access->scopes, access->n);
}

/* Returns the scopes of the caller, without those that others cover. */
char **
tq_access_scopes(int *n)
{
	const Access *access = of_caller();
	char **scopes;

	*n = access->is_unlimited ? 1 : access->n;
	scopes = palloc(sizeof(char *) * Max(*n, 1));
	if (access->is_unlimited)
		scopes[0] = pstrdup("*");
	for (int i = 0; i < *n && !access->is_unlimited; i++)
		scopes[i] = pstrdup(access->scopes[i].text);
	return scopes;
}

/*
 * Deletes the grants of roles that were dropped, if a role has changed since
 * this session did so the last time.  Returns how many.
 */
uint64
tq_access_forget_dropped_roles(void)
{
	static uint64 done = 0;
	uint64 generation = PRESENT_GENERATION();
	uint64 deleted;

	access_watch();
	if (done == generation)
		return 0;
	deleted = tq_grants_delete_of_dropped_roles();
	done = generation;
	return deleted;
}

/* ---- what a call requires ---- */

/* Returns the need of a single scope, as sprintf() writes it. */
TqNeed *
tq_need(const char *format, ...)
{
	TqNeed *need = palloc0(sizeof(TqNeed));
	char *scope = NULL;
	size_t room = 128;
	size_t length = room;

	while (length >= room)
	{
		va_list args;

		room = length + 1;
		scope = palloc(room);
		va_start(args, format);
		length = pvsnprintf(scope, room, format, args);
		va_end(args);
	}
	need->kind = TQ_NEED_SCOPE;
	need->scope = scope;
	return need;
}

/* Returns an empty list with room for n parts. */
TqNeed *
tq_need_list(TqNeedKind kind, int n)
{
	TqNeed *list = palloc0(sizeof(TqNeed));

	list->kind = kind;
	list->parts = palloc(sizeof(TqNeed *) * Max(n, 1));
	return list;
}

/* Adds a part to a list that has room for it. */
void
tq_need_add(TqNeed *list, const TqNeed *part)
{
	list->parts[list->n++] = part;
}

static TqNeed *
list_of(TqNeedKind kind, int n, va_list parts)
{
	TqNeed *list = tq_need_list(kind, n);

	for (int i = 0; i < n; i++)
		tq_need_add(list, va_arg(parts, TqNeed *));
	return list;
}

/* Returns the need of all of n parts, each a TqNeed *. */
TqNeed *
tq_need_all(int n, ...)
{
	va_list parts;
	TqNeed *list;

	va_start(parts, n);
	list = list_of(TQ_NEED_ALL, n, parts);
	va_end(parts);
	return list;
}

/* Returns the need of any of n parts, each a TqNeed *. */
TqNeed *
tq_need_any(int n, ...)
{
	va_list parts;
	TqNeed *list;

	va_start(parts, n);
	list = list_of(TQ_NEED_ANY, n, parts);
	va_end(parts);
	return list;
}

/* ---- errors ---- */

/* Appends what is missing of a need, in words. */
static void
describe(StringInfo text, const TqNeed *need)
{
	StringInfoData parts;
	int missing = 0;

	if (need->kind == TQ_NEED_SCOPE)
	{
		appendStringInfoString(text, tq_error_clip(need->scope));
		return;
	}
	initStringInfo(&parts);
	for (int i = 0; i < need->n; i++)
	{
		StringInfoData part;

		if (need->kind == TQ_NEED_ALL && tq_access_meets(need->parts[i]))
			continue;
		initStringInfo(&part);
		describe(&part, need->parts[i]);
		tq_error_list(&parts, ", ", part.data);
		missing++;
	}
	if (missing <= 1)
		appendStringInfoString(text, parts.data);
	else
		appendStringInfo(text, "%s of (%s)",
						 need->kind == TQ_NEED_ALL ? "all" : "one",
						 parts.data);
}

/* Raises TQ403, which names the scopes that are missing. */
void
tq_access_error(const TqNeed *need)
{
	StringInfoData missing;
	bool by_assumed = assumed_by_caller() != NULL;

	initStringInfo(&missing);
	describe(&missing, need);
	ereport(
		ERROR,
		(errcode(ERRCODE_TQ_FORBIDDEN), errmsg("scopes are not sufficient"),
		 errdetail("The call requires %s.", missing.data),
		 by_assumed
			 ? errhint(
				   "The transaction has assumed credentials, and only their scopes count: call it in another transaction.")
			 : errhint("An administrator can grant scopes to role \"%s\": "
					   "tq.grant_scopes(), tq.grant_queue().",
					   tq_error_role(ROLE_IN_QUESTION()))));
}

/* Raises TQ403 unless the caller has the scopes that a call requires. */
void
tq_access_check(const TqNeed *need)
{
	if (!tq_access_meets(need))
		tq_access_error(need);
}

/*
 * Makes checks as if a role were the caller, which registered what is done now
 * by another session.  What the session has assumed does not count.
 */
void
tq_access_as(Oid role, TqAccessChecks *checks, const void *arg)
{
	checked_role = role;
	PG_TRY();
	{
		checks(arg);
	}
	PG_FINALLY();
	{
		checked_role = InvalidOid;
	}
	PG_END_TRY();
}
