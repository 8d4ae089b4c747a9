/*
 * secret_table.c
 *	  Rows of tq_internal.secret: what credentials are signed with.
 *
 * A secret is made by the default of its column, so that no statement has it as
 * text or as a parameter.  The table is read through the access methods; row
 * security, without a policy, keeps its rows even from a role that may read all
 * data.  pg_dump leaves them out: a dump must not be what credentials can be
 * forged with, and the credentials of a database are of no use in another one,
 * which has a secret of its own since CREATE EXTENSION.
 *
 * Each backend caches the secrets until an invalidation message says that the
 * table has changed: when a rotation is committed, or is rolled back in this
 * backend.  They are read with the latest snapshot, whatever the isolation
 * level, because the cache outlives the transaction.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "../rows/rows.h"
#include "columns.h"
#include "registry.h"

static TqRelation secret_table = TQ_RELATION("secret");

TQ_NUMBERS(TQ_SECRET_COLUMNS, secret);

static MemoryContext context = NULL; /* of the next one */
static TqSecret *secrets = NULL;
static int nsecrets = 0;
static Oid kept_of = InvalidOid; /* oid of the table whose rows are cached */

/* Relcache callback: the next call reads the table again. */
static void
forget(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == kept_of)
		kept_of = InvalidOid;
}

/* Forgets the secrets that are cached, and leaves none of them in memory. */
static void
empty_cache(void)
{
	if (context == NULL)
	{
		CacheRegisterRelcacheCallback(forget, (Datum) 0);
		context = AllocSetContextCreate(CacheMemoryContext, "tq secrets",
										ALLOCSET_SMALL_SIZES);
	}
	if (secrets != NULL)
		explicit_bzero(secrets, sizeof(TqSecret) * nsecrets);
	MemoryContextReset(context);
	secrets = NULL;
	nsecrets = 0;
}

/* Returns a row of the cache that is not used yet. */
static TqSecret *
new_row(void)
{
	if (nsecrets == 0)
		secrets = MemoryContextAlloc(context, sizeof(TqSecret));
	else
		secrets = repalloc(secrets, sizeof(TqSecret) * (nsecrets + 1));
	return &secrets[nsecrets++];
}

/* Caches a row, unless it is not what the default of the column has made. */
static void
keep_row(TupleTableSlot *slot)
{
	bytea *bytes = tq_row_varlena(slot, Anum_secret_secret);
	TqSecret *row;

	if (VARSIZE_ANY_EXHDR(bytes) != TQ_SECRET_BYTES)
		return;
	row = new_row();
	TQ_SECRET_TIMES(TQ_GET, secret);
	memcpy(row->bytes, VARDATA_ANY(bytes), TQ_SECRET_BYTES);
	explicit_bzero(VARDATA_ANY(bytes), TQ_SECRET_BYTES);
	pfree(bytes);
}

static void
read_secrets(Relation rel)
{
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
		keep_row(slot);
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
}

/* Orders the secret that signs before all others, then the latest. */
static int
compare(const void *a, const void *b)
{
	const TqSecret *x = a;
	const TqSecret *y = b;

	if ((x->until == 0) != (y->until == 0))
		return x->until == 0 ? -1 : 1;
	return x->since != y->since ? (x->since > y->since ? -1 : 1)
								: memcmp(x->bytes, y->bytes, TQ_SECRET_BYTES);
}

/*
 * Returns the secrets, of which the first signs.  The result is valid until
 * the next call of a function of this file.
 */
const TqSecret *
tq_secrets(int *n)
{
	Oid oid = tq_relation_oid(&secret_table);

	if (kept_of != oid)
	{
		Relation rel = table_open(oid, AccessShareLock);

		empty_cache();
		read_secrets(rel);
		table_close(rel, NoLock);
		qsort(secrets, nsecrets, sizeof(TqSecret), compare);
		kept_of = oid;
	}
	*n = nsecrets;
	return secrets;
}

/* Returns the secret that signs. */
const TqSecret *
tq_secret_current(void)
{
	int n;
	const TqSecret *all = tq_secrets(&n);

	if (n == 0 || all[0].until != 0)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("there is no secret for credentials"),
						errdetail("A row is missing in tq_internal.secret."),
						errhint("Call tq.rotate_secret() as a superuser.")));
	return all;
}

/*
 * Makes all sessions read the secrets again once this transaction has committed,
 * and this one after its next statement that writes.
 */
void
tq_secret_changes(void)
{
	CacheInvalidateRelcacheByRelid(tq_relation_oid(&secret_table));
}
