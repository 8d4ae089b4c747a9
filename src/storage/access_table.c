/*
 * access_table.c
 *	  Who may do what, and did: rows of tq_internal.scope_grant, the scopes of
 *	  roles; of tq_internal.secret, what credentials are signed with; and of
 *	  tq_internal.audit, which role made which call; and how much a role may
 *	  make, in several tables.
 *
 * Each session caches what it has compiled from the rows (rules/access.c,
 * watched_table.c).
 *
 * A role that is dropped leaves its rows behind, because PostgreSQL knows
 * nothing of them.  Nothing is done with such rows, pg_dump leaves them out,
 * and maintenance deletes them.
 */
#include "postgres.h"

#include "access/table.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "../rows/rows.h"
#include "columns.h"
#include "registry.h"

TQ_NUMBERS(TQ_SCOPE_GRANT_COLUMNS, scope_grant);

static TqRelation grants = TQ_RELATION("scope_grant");

static TqWatched watched = TQ_WATCHED(grants);

const uint64 *const tq_grants_generation = &watched.generation;

/* Skips rows that another session has locked: maintenance waits for nothing. */
static TqStatement delete_dropped = TQ_STATEMENT(
	"DELETE FROM tq_internal.scope_grant WHERE ctid = ANY (ARRAY("
	"SELECT g.ctid FROM tq_internal.scope_grant AS g"
	" WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.oid = g.role)"
	" FOR UPDATE SKIP LOCKED))");

static TqStatement are_partial =
	TQ_STATEMENT("SELECT 1 WHERE tq_internal.is_shared()", InvalidOid);

/* Watches the table, before it is read. */
void
tq_grants_watch(void)
{
	tq_watched_read(&watched);
}

/* Makes all sessions read the table again; see tq_watched_changed(). */
void
tq_grants_changed(void)
{
	tq_watched_changed(&watched);
}

/*
 * Returns all rows as they are now, whatever the snapshot of the transaction
 * is: what is compiled from them is used by later transactions too.
 */
TqGrant *
tq_grants_all(int *found)
{
	int room = 64;
	TqGrant *rows = palloc(sizeof(TqGrant) * room);
	TqTableScan *scan;

	PushActiveSnapshot(GetLatestSnapshot());
	scan = tq_table_scan_open(&grants);
	for (*found = 0; tq_table_scan_next(scan); (*found)++)
	{
		if (*found == room)
			rows = repalloc_huge(rows, sizeof(TqGrant) * (room *= 2));
		rows[*found] = (TqGrant){tq_row_oid(scan->slot, Anum_scope_grant_role),
								 tq_row_text(scan->slot,
											 Anum_scope_grant_scope)};
	}
	tq_table_scan_close(scan);
	PopActiveSnapshot();
	return rows;
}

/* Returns whether a role has rights to a part of the queues. */
bool
tq_grants_are_partial(void)
{
	return tq_spi_exists(&are_partial, NULL);
}

/* Deletes the rows of roles that no longer exist; returns how many. */
uint64
tq_grants_delete_of_dropped_roles(void)
{
	return tq_spi_run(&delete_dropped, NULL, NULL);
}

/* ---- secrets ---- */

/*
 * A secret is made by the default of its column, so that no statement has it as
 * text or as a parameter.  The table is read through the access methods; row
 * security, without a policy, keeps its rows even from a role that may read all
 * data.  pg_dump leaves them out: a dump must not be what credentials can be
 * forged with, and the credentials of a database are of no use in another one,
 * which has a secret of its own since CREATE EXTENSION.
 *
 * Each backend caches the secrets, too.  They are read with the latest snapshot,
 * whatever the isolation level, because the cache outlives the transaction.
 */

static TqRelation secret_table = TQ_RELATION("secret");

TQ_NUMBERS(TQ_SECRET_COLUMNS, secret);

static MemoryContext context = NULL; /* of the next one */
static TqSecret *secrets = NULL;
static int nsecrets = 0;
static TqWatched watched_secrets = TQ_WATCHED(secret_table);
static uint64 secrets_kept = 0; /* the generation that is cached */

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

/* Orders the secret that signs before all others, then the latest. */
static int
access_compare(const void *a, const void *b)
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
	tq_watched_read(&watched_secrets);
	if (secrets_kept != watched_secrets.generation)
	{
		Relation rel = table_open(watched_secrets.oid, AccessShareLock);
		uint64 current = watched_secrets.generation;
		Snapshot snapshot;
		TupleTableSlot *slot;
		TableScanDesc scan;

		/*
		 * Forget the secrets that are cached, and leave none of them in
		 * memory.
		 */
		if (context == NULL)
			context = AllocSetContextCreate(CacheMemoryContext, "tq secrets",
											ALLOCSET_SMALL_SIZES);
		if (secrets != NULL)
			explicit_bzero(secrets, sizeof(TqSecret) * nsecrets);
		MemoryContextReset(context);
		secrets = NULL;
		nsecrets = 0;
		snapshot = RegisterSnapshot(GetLatestSnapshot());
		slot = table_slot_create(rel, NULL);
		scan = TqTableBeginScan(rel, snapshot);
		while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
			keep_row(slot);
		table_endscan(scan);
		ExecDropSingleTupleTableSlot(slot);
		UnregisterSnapshot(snapshot);
		table_close(rel, NoLock);
		qsort(secrets, nsecrets, sizeof(TqSecret), access_compare);
		secrets_kept = current;
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
 * Makes all sessions read the secrets again once this transaction has
 * committed, and this one at once.
 */
void
tq_secret_changes(void)
{
	tq_watched_changed(&watched_secrets);
}

/* ---- audit ---- */

/*
 * Roles are stored by name, because a row outlives its role.  Rows are only
 * inserted, and deleted when they are too old, in the order of the primary key,
 * which begins with the time.
 */

static TqStatement insert_row = TQ_STATEMENT(
	"INSERT INTO tq_internal.audit (at, session_role, role, client_ids, function,"
	" task_ids, run_ids, arguments) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
	TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTARRAYOID, TEXTOID, TQ_SLUGIDS,
	INT4ARRAYOID, JSONBOID);

static TqStatement delete_old = TQ_STATEMENT(
	"DELETE FROM tq_internal.audit a USING (SELECT o.at, o.id FROM tq_internal.audit o"
	" WHERE o.at < $1 ORDER BY o.at, o.id LIMIT $2 FOR UPDATE SKIP LOCKED) AS old"
	" WHERE a.at = old.at AND a.id = old.id",
	TIMESTAMPTZOID, INT4OID);

/* Inserts a row. */
void
tq_audit_insert(const TqAuditRow *row)
{
	Datum values[] = {TimestampTzGetDatum(row->at),
					  CStringGetTextDatum(row->session_role),
					  CStringGetTextDatum(row->role),
					  tq_array_text(row->clients, row->nclients),
					  CStringGetTextDatum(row->function),
					  tq_array_slugid(row->tasks, row->n),
					  tq_array_int32(row->runs,
									 row->runs == NULL ? 0 : row->n),
					  JsonbPGetDatum(row->arguments)};
	char nulls[] = "        ";

	if (row->nclients == 0)
		nulls[3] = 'n';
	if (row->n == 0)
		nulls[5] = 'n';
	if (row->runs == NULL)
		nulls[6] = 'n';
	tq_spi_run(&insert_row, values, nulls);
}

/*
 * Deletes up to `max` rows from before a time, the oldest first, skipping
 * locked ones; returns their number.
 */
int
tq_audit_delete(TimestampTz before, int max)
{
	return (int) tq_spi_run(&delete_old,
							TQ_VALUES(TimestampTzGetDatum(before),
									  Int32GetDatum(max)),
							NULL);
}

/* ---- quotas ---- */

/*
 * A quota limits how many names a role has made that are still in use.  It is
 * looked at after a row was added, and never for a name that is there.  A name
 * counts for the role that has logged in, as the settings are those of its
 * session; a recurring task and a callback count for the role that owns them.
 *
 * Quotas take no lock, so that no role waits for what another session makes:
 * transactions of one role that are open at the same time do not see each
 * other's rows, and can pass a quota together.
 */

typedef struct Quota
{
	TqQuota quota;
	TqStatement *count; /* $1: who has logged in, $2: who calls, $3: up to */
} Quota;

#define COUNT(rows)                                                           \
	TQ_STATEMENT("SELECT count(*) FROM (SELECT FROM tq_internal." rows        \
				 " LIMIT $3) AS c",                                           \
				 TEXTOID, OIDOID, INT8OID)

static TqStatement count_queues = COUNT(
	"queue WHERE creator = $1 AND retired IS NULL");
static TqStatement count_limited = COUNT(
	"queue_settings WHERE creator = $1 AND tq_internal.needs_counters(settings)");
static TqStatement count_workers = COUNT(
	"worker WHERE creator = $1 AND retired IS NULL");
static TqStatement count_crons = COUNT("cron WHERE role = $2");
static TqStatement count_callbacks = COUNT("group_callback WHERE role = $2");

static const Quota quotas[] = {
	{{"tq.max_queues", &tq_max_queues, "queues",
	  "A queue counts until it has expired and has no tasks."},
	 &count_queues},
	{{"tq.max_limited_queues", &tq_max_limited_queues, "queues with limits",
	  "Remove limits with tq.set_queue()."},
	 &count_limited},
	{{"tq.max_workers", &tq_max_workers, "workers",
	  "A worker counts until it has expired."},
	 &count_workers},
	{{"tq.max_cron_jobs", &tq_max_cron_jobs, "recurring tasks",
	  "End others with tq.unschedule_cron()."},
	 &count_crons},
	{{"tq.max_callbacks", &tq_max_callbacks, "callbacks of groups",
	  "A callback counts until its group is resolved; see tq.cancel_group_callbacks()."},
	 &count_callbacks}};

/*
 * Raises 53400: a role, or for it the queue, if that is not NULL, has more than
 * a quota allows.
 */
void
tq_quota_refuse(const TqQuota *quota, const char *role, const char *queue,
				int64 present)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 queue == NULL
				 ? errmsg("role \"%s\" has too many %s", role, quota->what)
				 : errmsg("queue \"%s\" has too many %s for role \"%s\"",
						  queue, quota->what, role),
			 errdetail("It would have " INT64_FORMAT ", and may have %d (%s).",
					   present, *quota->limit, quota->setting),
			 errhint("%s Or a superuser can raise %s for the role.",
					 quota->way_out, quota->setting)));
}

/*
 * Raises 53400 if a role has more than the setting of that name allows, of
 * which it has just made one; NULL: there is none.  A superuser could change
 * the setting, and has no quota.
 */
void
tq_quota_check(const char *setting)
{
	for (int i = 0; setting != NULL && i < lengthof(quotas); i++)
	{
		const Quota *quota = &quotas[i];
		bool is_owned = quota->count == &count_crons ||
						quota->count == &count_callbacks;
		Oid role = is_owned ? tq_spi_caller() : GetSessionUserId();
		char *name;
		int64 present;

		if (strcmp(setting, quota->quota.setting) != 0 ||
			*quota->quota.limit < 0 || superuser_arg(GetSessionUserId()))
			continue;
		name = GetUserNameFromId(role, false);
		present =
			tq_spi_run_int64(quota->count,
							 TQ_VALUES(CStringGetTextDatum(name),
									   ObjectIdGetDatum(role),
									   Int64GetDatum(
										   (int64) *quota->quota.limit + 1)),
							 0);
		if (present > *quota->quota.limit)
			tq_quota_refuse(&quota->quota, name, NULL, present);
	}
}
