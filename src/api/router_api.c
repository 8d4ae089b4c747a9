/*
 * router_api.c
 *	  Functions of the extension tq_shard that its SQL functions call for each
 *	  task or shard (src/shard/router.sql).
 *
 * A router has no table of tasks.  What these functions keep between calls is of
 * one session, and only decides which shard is asked first.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/inval.h"

#include "../util/clock.h"
#include "../util/compat.h"
#include "../util/slugid.h"

PG_FUNCTION_INFO_V1(tq_shard_cluster);
PG_FUNCTION_INFO_V1(tq_shard_one_place);
PG_FUNCTION_INFO_V1(tq_shard_claim_order);
PG_FUNCTION_INFO_V1(tq_shard_note_empty);

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
Datum
tq_shard_cluster(PG_FUNCTION_ARGS)
{
	AcceptInvalidationMessages();
	PG_RETURN_TEXT_P(cstring_to_text("tq_shard"));
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

/*
 * one_place(ids slugid[], owners int[]) -> the partition of the one shard that
 * has all these tasks or groups, by the shard of each bucket.  NULL if there are several, if
 * a bucket has -1 as its shard, because some of it may be on another one, if ids
 * has a NULL, or if owners is not a shard for each bucket.  No id at all is any
 * shard's.
 *
 * Reads the map once for all ids, where an expression for each of 100 costs a
 * third as much as their conversion to text and back.
 */
Datum
tq_shard_one_place(PG_FUNCTION_ARGS)
{
	const ArrayType *ids;
	const TqSlug *slugs;
	const int32 *owners;
	int32 shard;
	int buckets;
	int n;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	ids = PG_GETARG_ARRAYTYPE_P(0);
	owners = integers(PG_GETARG_ARRAYTYPE_P(1), &buckets);
	if (ARR_HASNULL(ids) || buckets != TQ_SLUG_BUCKETS)
		PG_RETURN_NULL();
	n = ArrayGetNItems(ARR_NDIM(ids), ARR_DIMS(ids));
	slugs = (const TqSlug *) ARR_DATA_PTR(ids);
	shard = n == 0 ? owners[0] : owners[tq_slug_bucket(&slugs[0])];
	for (int i = 1; i < n; i++)
		if (owners[tq_slug_bucket(&slugs[i])] != shard)
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
next_turn(int n)
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
Datum
tq_shard_claim_order(PG_FUNCTION_ARGS)
{
	text *queue = PG_GETARG_TEXT_PP(0);
	int n;
	const int32 *shards = integers(PG_GETARG_ARRAYTYPE_P(1), &n);
	TimestampTz now = n > 1 ? tq_clock_real_now() : 0;
	Datum *ordered = palloc(sizeof(Datum) * Max(n, 1));
	int first = n > 1 ? next_turn(n) : 0;
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
Datum
tq_shard_note_empty(PG_FUNCTION_ARGS)
{
	uint64 key;
	KnownEmpty *slot = slot_of(PG_GETARG_TEXT_PP(0), PG_GETARG_INT32(1), &key);

	slot->key = key;
	slot->until = tq_clock_add_ms(tq_clock_real_now(), EMPTY_MS);
	PG_RETURN_BOOL(true);
}
