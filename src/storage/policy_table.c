/*
 * policy_table.c
 *	  Rows of tq_internal.policy: policies, interned as they were given.
 *
 * A policy that cancels a group acts with the rights of the role that created the
 * task, so that each role has a row of its own for it.
 *
 * Rows are deleted when no task refers to them (interned.c).  Each backend
 * caches the policy of a number, and the number of a policy that is not
 * retired, until an invalidation message says that the table has changed.  It
 * caches a number only after it was found committed, because the current
 * transaction may be rolled back.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/memutils.h"

#include "../rows/rows.h"
#include "columns.h"
#include "registry.h"

#define POLICIES_KEPT 1000

static TqStatement insert_policy = TQ_STATEMENT(
	"INSERT INTO tq_internal.policy (policy, creator)"
	" VALUES ($1, nullif($2, 0::oid)::regrole) ON CONFLICT DO NOTHING",
	JSONBOID, OIDOID);

static TqStatement that_retain = TQ_STATEMENT(
	"SELECT id FROM tq_internal.policy WHERE policy ?| '{retainCompleted,retainFailed}'"
	" OR policy -> 'queueDefault' ?| '{retainCompleted,retainFailed}'",
	InvalidOid);

static TqStatement that_set_claims = TQ_STATEMENT(
	"SELECT id FROM tq_internal.policy WHERE policy ? 'claimTimeout' OR policy -> 'queueDefault' ? 'claimTimeout'",
	InvalidOid);

static TqRelation policy_table = TQ_RELATION("policy");
static TqRelation policy_by_id = TQ_RELATION("policy_pkey");
static TqRelation policy_by_value = TQ_RELATION("policy_value");

TQ_NUMBERS(TQ_POLICY_COLUMNS, policy);

/* Cache entry: the policy of a number. */
typedef struct PolicyByNumber
{
	int32 id;
	Oid creator; /* InvalidOid: none */
	TqPolicy policy;
} PolicyByNumber;

/*
 * Cache entry: the number of a policy that a role gave, by a hash of both; a
 * later one with the same hash replaces it.
 */
typedef struct PolicyAsGiven
{
	uint32 hash;
	Oid role;
	int32 id;
	Jsonb *policy;
} PolicyAsGiven;

static MemoryContext context = NULL; /* of both; reset when either is full */
static HTAB *known = NULL;
static HTAB *given = NULL;
static TqWatched watched = TQ_WATCHED(policy_table);
static uint64 kept = 0; /* the generation that is cached */

static HTAB *
policy_make_table(const char *name, Size entry)
{
	HASHCTL control = {.keysize = sizeof(int32),
					   .entrysize = entry,
					   .hcxt = context};

	return hash_create(name, 64, &control,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Empties the caches if tq_internal.policy is another table or was changed, or
 * if they are full.
 */
static void
look_after_kept(void)
{
	tq_watched_read(&watched);
	if (kept == watched.generation &&
		hash_get_num_entries(known) < POLICIES_KEPT &&
		hash_get_num_entries(given) < POLICIES_KEPT)
		return;
	kept = 0;
	if (context == NULL)
		context = AllocSetContextCreate(CacheMemoryContext, "tq policies",
										ALLOCSET_SMALL_SIZES);
	MemoryContextReset(context);
	known = policy_make_table("tq policies by number", sizeof(PolicyByNumber));
	given = policy_make_table("tq policies as given", sizeof(PolicyAsGiven));
	kept = watched.generation;
}

/* A policy, and the role whose rights it needs; InvalidOid: none. */
typedef struct Policy
{
	Jsonb *policy;
	Oid creator;
} Policy;

/*
 * Caches the number of a policy, unless this transaction has interned anything:
 * it may have inserted the row itself.
 */
static void
keep_given(Jsonb *policy, Oid role, uint32 hash, int32 id)
{
	PolicyAsGiven *entry;
	bool found;

	if (tq_name_is_interning())
		return;
	entry = hash_search(given, &hash, HASH_ENTER, &found);
	if (found)
		pfree(entry->policy);
	entry->policy = MemoryContextAlloc(context, VARSIZE(policy));
	memcpy(entry->policy, policy, VARSIZE(policy));
	entry->role = role;
	entry->id = id;
}

/* Returns the creator of a row of policy; InvalidOid: none. */
static Oid
creator_of(TupleTableSlot *slot)
{
	bool is_null;
	Datum creator = slot_getattr(slot, Anum_policy_creator, &is_null);

	return is_null ? InvalidOid : DatumGetObjectId(creator);
}

/*
 * Finds a row that is not retired.  One of a transaction in progress is not
 * waited for: that may be another application's, and stay open.  Then this
 * session stores a row of its own; a sweep deletes the rows that no task has.
 */
static int32
find_by_value(void *sought, bool *is_retired)
{
	const Policy *value = sought;
	TqScan *scan = tq_scan_open(&policy_table, &policy_by_value, 1, NULL);
	int32 id = 0;

	tq_scan_seek(scan, JsonbPGetDatum(value->policy), 0, 0);
	while (id == 0 && tq_scan_next(scan))
	{
		if (slot_attisnull(scan->slot, Anum_policy_retired) &&
			creator_of(scan->slot) == value->creator)
			id = tq_row_int32(scan->slot, Anum_policy_id);
	}
	tq_scan_close(scan);
	*is_retired = false;
	return id;
}

/* Reads a stored policy; returns its fault, or NULL. */
static const char *
parse(Jsonb *stored, TqPolicy *policy)
{
	TqGivenPolicy read;
	const char *fault = tq_policy_parse_stored(stored, &read);

	*policy = read.policy;
	return fault;
}

/* Returns whether a policy that has been validated cancels a group. */
static bool
cancels_group(Jsonb *policy)
{
	TqPolicy read;

	return parse(policy, &read) == NULL &&
		   read.on_unsuccessful == TQ_UNSUCCESSFUL_CANCEL_GROUP;
}

/*
 * Returns the number of a policy that has been validated, of a task that this
 * role creates; InvalidOid: its rights are not checked again.
 */
int32
tq_policy_intern(Jsonb *policy, Oid role)
{
	uint32 hash = hash_bytes((const unsigned char *) VARDATA(policy),
							 VARSIZE(policy) - VARHDRSZ) ^
				  role;
	Policy value = {.policy = policy};
	PolicyAsGiven *entry;
	int32 id;

	look_after_kept();
	entry = hash_search(given, &hash, HASH_FIND, NULL);
	if (entry != NULL && entry->role == role &&
		VARSIZE(entry->policy) == VARSIZE(policy) &&
		memcmp(entry->policy, policy, VARSIZE(policy)) == 0)
		return entry->id;
	if (cancels_group(policy))
		value.creator = role;
	id = tq_intern(TQ_INTERNED_POLICY, &insert_policy,
				   TQ_VALUES(JsonbPGetDatum(policy),
							 ObjectIdGetDatum(value.creator)),
				   find_by_value, &value);
	keep_given(policy, role, hash, id);
	return id;
}

static void
read_value(TupleTableSlot *slot, void *value)
{
	Policy *read = value;

	read->policy = tq_row_varlena(slot, Anum_policy_policy);
	read->creator = creator_of(slot);
}

/* Reads the row of a policy. */
static Policy
get_row(int32 id)
{
	Policy row;

	if (!tq_scan_read(tq_scan_open(&policy_table, &policy_by_id, 1, NULL),
					  Int32GetDatum(id), 0, 0, read_value, &row))
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("policy %d of a task does not exist", id),
						errdetail("A row is missing in tq_internal.policy."),
						errhint("Restore the row from a backup.")));
	return row;
}

/* Returns a policy as it was given; NULL for the number 0. */
Jsonb *
tq_policy_json(int32 id)
{
	return id == 0 ? NULL : get_row(id).policy;
}

static void
read_id(TupleTableSlot *slot, void *id)
{
	*(int32 *) id = tq_row_int32(slot, 1);
}

/* Returns the entry of a policy, which is valid until the next call. */
static const PolicyByNumber *
known_policy(int32 id)
{
	PolicyByNumber read = {.id = id};
	PolicyByNumber *entry;
	Policy row;
	const char *fault;

	look_after_kept();
	entry = hash_search(known, &id, HASH_FIND, NULL);
	if (entry != NULL)
		return entry;
	row = get_row(id);
	fault = parse(row.policy, &read.policy);
	if (fault != NULL)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("policy %d of a task cannot be read", id),
						errdetail("It %s.", fault),
						errhint("Correct the row in tq_internal.policy.")));
	read.creator = row.creator;
	entry = hash_search(known, &id, HASH_ENTER, NULL);
	*entry = read;
	return entry;
}

/*
 * Returns the policy of a number, or that of Taskcluster for 0.  The result is
 * valid until the next call.
 */
const TqPolicy *
tq_policy_get(int32 id)
{
	return id == 0 ? &tq_policy_plain : &known_policy(id)->policy;
}

/*
 * Returns the role whose rights a policy needs when it cancels a group;
 * InvalidOid: none.
 */
Oid
tq_policy_creator(int32 id)
{
	return id == 0 ? InvalidOid : known_policy(id)->creator;
}

/* Returns the numbers of the policies that say how long tasks are kept. */
int32 *
tq_policies_that_retain(int *found)
{
	return tq_spi_read_all(&that_retain, NULL, read_id, sizeof(int32), found);
}

/* Returns the longest claim timeout of all policies, in ms; 0 if none. */
int64
tq_policy_longest_claim(void)
{
	int64 longest = 0;
	int n;
	int32 *ids = tq_spi_read_all(&that_set_claims, NULL, read_id,
								 sizeof(int32), &n);

	for (int i = 0; i < n; i++)
	{
		int64 timeout = tq_policy_get(ids[i])->claim_timeout;

		if (timeout != TQ_OFF)
			longest = Max(longest, timeout);
	}
	return longest;
}
