/*
 * router_api.c
 *	  Functions of the extension tq_shard that its SQL functions call for each
 *	  task or shard (router.sql).
 *
 * A router has no table of tasks.  What these functions keep between calls is of
 * one session, and only decides which shard is asked first.
 */
#include "postgres.h"

#include "catalog/pg_authid_d.h"
#include "catalog/pg_type_d.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "storage/lock.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "router.h"

/* PL/Proxy's partitions of the shards by number follow those of the buckets. */
#define SHARDS_MAX 1024
#define PARTITION_OF_SHARD(shard) (SHARDS_MAX + (shard))

/* How long a shard that had no work is asked after those that may have some. */
#define EMPTY_MS 200

/*
 * What this session knows to be empty: a queue on a shard.  Another key of the
 * same slot takes its place, which costs a call to a shard at most.
 */
typedef struct KnownEmpty
{
	uint64 key;
	TimestampTz until;
} KnownEmpty;

static KnownEmpty known_empty[1024];

/*
 * The shard of a task that this session has claimed.  A task never leaves its
 * shard, so this stays true.  The tasks of a batch have positions of their own
 * even if some of their ids fall into the same set.
 */
typedef struct KnownTask
{
	TqSlug id;
	int32 shard;
} KnownTask;

typedef struct KnownSet
{
	KnownTask tasks[4];
	uint32 noted; /* the next one takes the place noted % 4 */
} KnownSet;

#define KNOWN_SETS 1024

static KnownSet *known_sets = NULL; /* made by the first claim */

/* Counts the claims of this session, so that they begin with another shard each. */
static uint32 turn;
static bool turn_is_drawn = false;

/*
 * cluster() -> the name of PL/Proxy's cluster, with the map as it is now: the
 * functions that name a shard have the map as constants, so this session must
 * know of all changes of the catalog before they are called.  That it does so at
 * the next lock of a table is not enough, because a call through the router
 * takes none.
 */
TQ_ROUTER_FUNCTION(tq_shard_cluster, " -> text")
{
	AcceptInvalidationMessages();
	PG_RETURN_TEXT_P(cstring_to_text("tq_shard"));
}

/*
 * lock_map(over_commits bool): locks the map until the end of the transaction,
 * or until unlock_map() or an error; 55006 if another session has locked it
 */
TQ_ROUTER_FUNCTION(tq_shard_lock_map, "bool -> void")
{
	if (!tq_router_map_lock(PG_GETARG_BOOL(0)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("another session changes the map"),
				 errhint("Repeat the call when that session has ended it.")));
	PG_RETURN_VOID();
}

/* unlock_map(): ends lock_map(true) */
TQ_ROUTER_FUNCTION(tq_shard_unlock_map, " -> void")
{
	tq_router_map_unlock();
	PG_RETURN_VOID();
}

/*
 * lock_subscription(name text): locks a subscription of the caller's role until
 * the end of the transaction, so that its sessions number its messages one
 * after the other.  Two names may have one lock.
 *
 * No other role can take it, as it could an advisory lock: the role is part of
 * it, and no statement of SQL locks a role of one database.
 */
TQ_ROUTER_FUNCTION(tq_shard_lock_subscription, "text -> void strict")
{
	text *name = PG_GETARG_TEXT_PP(0);
	uint32 hash = hash_bytes((const unsigned char *) VARDATA_ANY(name),
							 VARSIZE_ANY_EXHDR(name));
	LOCKTAG tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, AuthIdRelationId, GetUserId(),
					   hash & PG_UINT16_MAX);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	PG_RETURN_VOID();
}

/* The integers of an array that has no NULL. */
static const int32 *
integers(const ArrayType *array, int *n)
{
	if (ARR_HASNULL(array) || ARR_NDIM(array) > 1)
		ereport(ERROR, errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				errmsg("array of shards has a wrong form"));
	*n = ARR_NDIM(array) == 0 ? 0 : ARR_DIMS(array)[0];
	return (const int32 *) ARR_DATA_PTR(array);
}

static KnownSet *
set_of_task(const TqSlug *id)
{
	return &known_sets[TQ_SLUG_HASH(id) % KNOWN_SETS];
}

/*
 * Notes that this session has claimed a task on a shard: a report on it need
 * not look it up, even if its bucket was moved.
 */
void
tq_router_note_task(const TqSlug *id, int32 shard)
{
	KnownSet *set;
	KnownTask *task;

	if (known_sets == NULL)
		known_sets = MemoryContextAllocZero(TopMemoryContext,
											sizeof(KnownSet) * KNOWN_SETS);
	set = set_of_task(id);
	task = &set->tasks[set->noted++ % lengthof(set->tasks)];
	task->id = *id;
	task->shard = shard;
}

/*
 * The shard of a task or a group, or -1 if this session does not know it.  A
 * task may have the id of a group that it is not in.
 */
static int32
shard_of(const TqSlug *id, const int32 *owners, bool is_group)
{
	int32 shard = owners[tq_slug_bucket(id)];

	if (shard < 0 && !is_group)
	{
		const KnownSet *set;

		/* The shard where this session has claimed a task, or -1. */
		if (known_sets == NULL)
			return -1;
		set = set_of_task(id);
		for (int i = 1; i <= lengthof(set->tasks); i++)
		{
			/* the latest first: a task may be there twice */
			const KnownTask *task =
				&set->tasks[(set->noted - i) % lengthof(set->tasks)];

			if (tq_slug_compare(&task->id, id) == 0)
				return task->shard;
		}
		return -1;
	}
	return shard;
}

/*
 * one_partition(ids slugid[], are_groups bool, owners int[]) -> the partition of
 * the one shard that has all these tasks or groups, by the shard of each
 * bucket.  A bucket has -1 as its shard if some of it may be on another one;
 * then what this session has claimed is known.  NULL if there are several
 * shards, or an unknown one, if ids has a NULL, or if owners is not a shard for
 * each bucket.  No id at all is any shard's.
 *
 * Reads the map once for all ids, where an expression for each of 100 costs a
 * third as much as their conversion to text and back.
 */
TQ_ROUTER_FUNCTION(tq_shard_one_partition, "slugid[], bool, int4[] -> int4")
{
	const ArrayType *ids;
	const TqSlug *slugs;
	const int32 *owners;
	bool are_groups;
	int32 shard;
	int buckets;
	int n;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	ids = PG_GETARG_ARRAYTYPE_P(0);
	are_groups = PG_GETARG_BOOL(1);
	owners = integers(PG_GETARG_ARRAYTYPE_P(2), &buckets);
	if (ARR_HASNULL(ids) || buckets != TQ_SLUG_BUCKETS)
		PG_RETURN_NULL();
	n = ArrayGetNItems(ARR_NDIM(ids), ARR_DIMS(ids));
	slugs = (const TqSlug *) ARR_DATA_PTR(ids);
	shard = n == 0 ? owners[0] : shard_of(&slugs[0], owners, are_groups);
	for (int i = 1; i < n && shard >= 0; i++)
		if (shard_of(&slugs[i], owners, are_groups) != shard)
			PG_RETURN_NULL();
	if (shard < 0)
		PG_RETURN_NULL();
	PG_RETURN_INT32(PARTITION_OF_SHARD(shard));
}

/* The slot of a queue on a shard, and its key. */
static KnownEmpty *
slot_of(const text *queue, int32 shard, uint64 *key)
{
	*key = hash_bytes_extended((const unsigned char *) VARDATA_ANY(queue),
							   VARSIZE_ANY_EXHDR(queue), (uint64) shard);
	return &known_empty[*key % lengthof(known_empty)];
}

static bool
is_known_empty(const text *queue, int32 shard, TimestampTz now)
{
	uint64 key;
	const KnownEmpty *slot = slot_of(queue, shard, &key);

	return slot->key == key && slot->until > now;
}

/* The first of n shards for the next claim of this session. */
static uint32
router_next_turn(int n)
{
	if (!turn_is_drawn)
		turn = pg_prng_uint32(&pg_global_prng_state);
	turn_is_drawn = true;
	return turn++ % n;
}

/*
 * claim_order(queue text, shards int[]) -> these shards in the order in which a
 * claim asks them: each claim begins with the next one, and those that had no
 * work for this session a moment ago are last.
 */
TQ_ROUTER_FUNCTION(tq_shard_claim_order, "text, int4[] -> int4[] strict")
{
	text *queue = PG_GETARG_TEXT_PP(0);
	int n;
	const int32 *shards = integers(PG_GETARG_ARRAYTYPE_P(1), &n);
	TimestampTz now = n > 1 ? GetCurrentTimestamp() : 0;
	Datum *ordered = palloc(sizeof(Datum) * Max(n, 1));
	int first = n > 1 ? router_next_turn(n) : 0;
	int front = 0;
	int back = n;

	for (int i = 0; i < n; i++)
	{
		int32 shard = shards[(first + i) % n];

		if (n > 1 && is_known_empty(queue, shard, now))
			ordered[--back] = Int32GetDatum(shard);
		else
			ordered[front++] = Int32GetDatum(shard);
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(ordered, n, INT4OID, sizeof(int32),
										  true, TYPALIGN_INT));
}

/* note_empty(queue text, shard int) -> true: a claim there has found no work */
TQ_ROUTER_FUNCTION(tq_shard_note_empty, "text, int4 -> bool strict")
{
	uint64 key;
	KnownEmpty *slot = slot_of(PG_GETARG_TEXT_PP(0), PG_GETARG_INT32(1), &key);

	slot->key = key;
	slot->until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), EMPTY_MS);
	PG_RETURN_BOOL(true);
}
