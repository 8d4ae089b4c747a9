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
#include "tasks.h"

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
		scan = table_beginscan(rel, snapshot, 0, NULL);
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
	const char *setting;
	const int *limit;
	const char *what;
	const char *way_out; /* how a role makes room */
	TqStatement *count;  /* $1: who has logged in, $2: who calls, $3: up to */
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
	{"tq.max_queues", &tq_max_queues, "queues",
	 "A queue counts until it has expired and has no tasks.", &count_queues},
	{"tq.max_limited_queues", &tq_max_limited_queues, "queues with limits",
	 "Remove limits with tq.set_queue().", &count_limited},
	{"tq.max_workers", &tq_max_workers, "workers",
	 "A worker counts until it has expired.", &count_workers},
	{"tq.max_cron_jobs", &tq_max_cron_jobs, "recurring tasks",
	 "End others with tq.unschedule_cron().", &count_crons},
	{"tq.max_callbacks", &tq_max_callbacks, "callbacks of groups",
	 "A callback counts until its group is resolved; see tq.cancel_group_callbacks().",
	 &count_callbacks}};

static void
refuse_more(const Quota *quota, const char *role, const char *queue,
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

		if (strcmp(setting, quota->setting) != 0 || *quota->limit < 0 ||
			superuser_arg(GetSessionUserId()))
			continue;
		name = GetUserNameFromId(role, false);
		present = tq_spi_run_int64(quota->count,
								   TQ_VALUES(CStringGetTextDatum(name),
											 ObjectIdGetDatum(role),
											 Int64GetDatum(
												 (int64) *quota->limit + 1)),
								   0);
		if (present > *quota->limit)
			refuse_more(quota, name, NULL, present);
	}
}

/* ---- quotas of what a queue has ---- */

/*
 * What each task adds to is limited by queue, because the counters say how much
 * a queue has (shmem/counters.c): a look at them counts nothing, and takes no
 * lock but theirs.  They are of committed transactions and of this one, so that
 * what is rolled back counts no longer, and transactions that are open at the
 * same time do not see each other.
 *
 * A session does not look for each task.  Of what a look finds to be left it
 * makes a thousandth without another look: so much can each session of a role
 * pass a quota by, beside what was not committed yet.  It is a sixteenth where
 * the queue has no counters, and all such queues of the database have more than
 * the quota together, so that the rows of the database are counted.  No quota is
 * looked at while they are counted after a start of the server.
 */
#define LEFT_BY_COUNTERS 1000
#define LEFT_BY_ROWS 16

typedef struct QueueQuota
{
	Quota quota;
	int first; /* gauges that are added up */
	int last;
} QueueQuota;

static const QueueQuota queue_quotas[] =
	{{{"tq.max_unresolved_tasks", &tq_max_unresolved_tasks, "unresolved tasks",
	   "Create tasks when others are resolved, or cancel some.", NULL},
	  TQ_QUEUE_UNSCHEDULED,
	  TQ_QUEUE_RUNNING},
	 {{"tq.max_groups", &tq_max_groups, "task groups",
	   "A group counts until it has expired and has no tasks.", NULL},
	  TQ_QUEUE_GROUPS,
	  TQ_QUEUE_GROUPS},
	 {{"tq.max_unique_keys", &tq_max_unique_keys, "unique keys",
	   "A key counts until the task that had it last is deleted.", NULL},
	  TQ_QUEUE_UNIQUE_KEYS,
	  TQ_QUEUE_UNIQUE_KEYS},
	 {{"tq.max_foreign_dependencies", &tq_max_foreign_dependencies,
	   "dependencies on tasks of others",
	   "A dependency counts until one of its tasks is deleted.", NULL},
	  TQ_QUEUE_FOREIGN,
	  TQ_QUEUE_FOREIGN}};

/* Where tq_quotas_left may be used up. */
static Oid left_to = InvalidOid;
static int32 left_in = 0;

static int64
sum_of_gauges(const QueueQuota *quota, const int64 *gauges)
{
	int64 sum = 0;

	for (int i = quota->first; i <= quota->last; i++)
		sum += gauges[i];
	return sum;
}

/* Returns whether this transaction has added to what a quota limits. */
static bool
has_added(const QueueQuota *quota, int32 queue)
{
	int64 added = 0;

	for (int i = quota->first; i <= quota->last; i++)
		added += tq_count_changes_own(tq_locked_table, queue, i);
	return added > 0;
}

/*
 * Returns how much of the quotas of a queue is left; below 0 if one is passed
 * that this transaction has added to, which *passed is then.
 */
static int64
left_of(int32 queue, const int64 *gauges, const QueueQuota **passed)
{
	int64 least = PG_INT32_MAX;

	for (int i = 0; i < lengthof(queue_quotas); i++)
	{
		const QueueQuota *quota = &queue_quotas[i];
		int64 left = *quota->quota.limit - sum_of_gauges(quota, gauges);

		if (*quota->quota.limit < 0)
			continue;
		if (left < 0 && !has_added(quota, queue))
			left = 0;
		if (left < least)
			*passed = quota;
		least = Min(least, left);
	}
	return least;
}

/* Looks at the quotas of a queue; returns how much the session may make then. */
static int
look(int32 queue)
{
	const QueueQuota *quota = NULL;
	int64 gauges[TQ_QUEUE_GAUGES];
	int share = LEFT_BY_COUNTERS;
	TqCountSource source;
	int64 left;

	if (superuser_arg(GetSessionUserId()))
		return PG_INT32_MAX;
	source = tq_count_read_gauges(queue, false, gauges);
	if (source == TQ_COUNT_REBUILDING)
	{
		tq_request_cycle(tq_clock_now());
		return 0;
	}
	left = left_of(queue, gauges, &quota);
	if (left < 0 && source == TQ_COUNT_TABLES)
	{
		share = LEFT_BY_ROWS;
		(void) tq_count_read_gauges(queue, true, gauges);
		left = left_of(queue, gauges, &quota);
	}
	if (left < 0)
		refuse_more(&quota->quota,
					GetUserNameFromId(GetSessionUserId(), false),
					tq_queue_name(queue), sum_of_gauges(quota, gauges));
	return (int) (left / share);
}

/*
 * Raises 53400 if a queue, in which this call has created tasks, has more than
 * the settings allow of what they have added: that many tasks and dependencies
 * at most.
 */
void
tq_quota_check_queue(int32 queue, int64 made)
{
	if (queue == left_in && GetSessionUserId() == left_to &&
		made <= tq_quotas_left)
	{
		tq_quotas_left -= (int) made;
		return;
	}
	tq_quotas_left = look(queue);
	left_in = queue;
	left_to = GetSessionUserId();
}
