/*
 * launcher.c
 *	  The launcher: starts a maintenance worker in every database that has tq.
 *
 * Decides for which databases a maintenance worker is started, when, and when
 * again.  What it does is in maintenance_worker.c, which statements need it out
 * of the way in utility_hook.c.
 *
 * The launcher is connected to no database, so it cannot see where the
 * extension is.  It starts a maintenance worker in each database once; one that
 * finds no extension exits, and its database is left alone until a session
 * requests a maintenance worker, as the extension's script does by
 * tq_internal.start_maintenance().  They are started one after the other, so
 * that a server with many databases does not need as many background worker
 * processes at once.
 *
 * The launcher starts when recovery is over: on a standby nothing happens
 * until it is promoted.  After a crash of the server the postmaster starts it
 * again, and it has no state from before.  It sleeps until something happens.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "bgworker.h"

#define RETRY_MS 1000      /* after a failure, doubled each time ... */
#define RETRY_MAX_MS 60000 /* ... up to this */
#define LOCKED_MS 100      /* a statement has locked the database */
#define STARTING_MS 1000   /* how long one start may delay the next */
#define ASKED_BATCH 32
#define COMPLAIN_MS 5000        /* until a warning is repeated, doubled ... */
#define COMPLAIN_MAX_MS 3600000 /* ... up to this */

/* What the launcher knows about a database. */
typedef struct Database
{
	Oid oid;       /* the key */
	NameData name; /* for the log */
	int listed_in; /* the last scan that found it accepting connections */
	bool wanted;   /* start a maintenance worker, or start it again */
	int slot;      /* of its maintenance worker, or -1 */
	BackgroundWorkerHandle *handle; /* NULL: started by an earlier launcher */
	TimestampTz not_before;
	TimestampTz started;
	int failures; /* in a row, without having settled */
} Database;

static HTAB *databases = NULL;
static int scans = 0; /* of pg_database so far */

/*
 * No process was free: when to log that again, and how long after the last
 * time.
 */
static TimestampTz complain_at = DT_NOBEGIN;
static int complain_ms = 0;

/*
 * Which databases there are.
 */

/* Returns the entry of a database, which is made if there is none. */
static Database *
enter(Oid oid)
{
	bool found;
	Database *database = hash_search(databases, &oid, HASH_ENTER, &found);

	if (!found)
	{
		memset(database, 0, sizeof(Database));
		database->oid = oid;
		database->listed_in = -1;
		database->slot = -1;
		database->not_before = DT_NOBEGIN;
	}
	return database;
}

static void
forget_unlisted(void)
{
	HASH_SEQ_STATUS scan;
	Database *database;

	hash_seq_init(&scan, databases);
	while ((database = hash_seq_search(&scan)) != NULL)
	{
		if (database->listed_in == scans || database->slot >= 0)
			continue;
		tq_limits_forget(database->oid, InvalidOid);
		hash_search(databases, &database->oid, HASH_REMOVE, NULL);
	}
}

/*
 * Reads pg_database.  A database that the last scan did not find gets a
 * maintenance worker.
 */
static void
list_databases(void)
{
	Relation rel;
	TableScanDesc scan;
	HeapTuple tuple;

	StartTransactionCommand();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	scans++;
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database row = (Form_pg_database) GETSTRUCT(tuple);
		Database *database;

		if (!(row->datallowconn &&
			  row->datconnlimit != DATCONNLIMIT_INVALID_DB &&
			  strcmp(NameStr(row->datname), "template0") != 0))
			continue;
		database = enter(row->oid);
		if (database->listed_in != scans - 1)
			database->wanted = true;
		database->listed_in = scans;
		database->name = row->datname;
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	forget_unlisted();
}

/*
 * Takes the requests of sessions: to start a maintenance worker, or to read
 * pg_database again.
 */
static void
take_requests(void)
{
	Oid asked[ASKED_BATCH];
	bool rescan;
	int n = tq_launcher_asked(asked, ASKED_BATCH, &rescan);

	for (int i = 0; i < n; i++)
	{
		Database *database = enter(asked[i]);

		database->wanted = true;
		database->not_before = DT_NOBEGIN;
		database->failures = 0;
		rescan = rescan || database->listed_in != scans;
	}
	if (rescan)
		list_databases();
}

/*
 * Maintenance workers that have ended.
 */

/*
 * Frees the slot of a maintenance worker that has ended.  Where there is a
 * handle, the postmaster says whether it has: only then is the process free
 * for another.
 */
static void
reap(Database *database)
{
	pid_t pid;
	bool gone = database->handle != NULL &&
				GetBackgroundWorkerPid(database->handle, &pid) == BGWH_STOPPED;
	TqMaintenanceSlotView view = tq_maintenance_slot_view(database->slot);
	int64 delay;

	if (!gone && (database->handle != NULL || !view.ended))
		return;
	tq_maintenance_slot_free(database->slot);
	database->slot = -1;
	if (database->handle != NULL)
		pfree(database->handle);
	database->handle = NULL;
	/* Decide when to start a maintenance worker again, by how it has ended. */
	delay = 0;
	switch (view.how)
	{
		case TQ_EXIT_ABSENT:
			return;
		case TQ_EXIT_REQUESTED:
			break;
		case TQ_EXIT_FAILED:
			database->failures = view.settled ? 0 : database->failures + 1;
			delay = Min(RETRY_MS << Min(database->failures, 6), RETRY_MAX_MS);
			break;
	}
	database->wanted = true;
	database->not_before = tq_clock_add_ms(tq_clock_now(), delay);
}

/*
 * Starting.
 */

/*
 * Returns false while a statement has locked the database (utility_hook.c):
 * a maintenance worker would only wait for it, or be in its way.
 */
static bool
is_free(Oid database)
{
	LOCKTAG tag;
	bool locked;

	StartTransactionCommand();
	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
	locked = LockAcquire(&tag, RowExclusiveLock, false, true) !=
			 LOCKACQUIRE_NOT_AVAIL;
	CommitTransactionCommand();
	return locked;
}

/*
 * Describes a process that is started once, and of whose end this process is
 * notified.
 */
static void
describe_process(BackgroundWorker *worker, const char *type,
				 const char *function, int flags)
{
	memset(worker, 0, sizeof(*worker));
	snprintf(worker->bgw_name, BGW_MAXLEN, "%s", type);
	snprintf(worker->bgw_type, BGW_MAXLEN, "%s", type);
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | flags;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker->bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(worker->bgw_library_name, BGW_MAXLEN, "tq");
	snprintf(worker->bgw_function_name, BGW_MAXLEN, "%s", function);
	worker->bgw_notify_pid = MyProcPid;
}

/*
 * Requests the process of a maintenance worker, whose slot is taken.  Returns
 * false if no process is free.
 */
static bool
register_worker(Database *database, uint64 generation)
{
	BackgroundWorker worker;
	TqMaintenanceOrder order;
	MemoryContext old;
	bool registered;

	describe_process(&worker, "tq worker", "tq_maintenance_worker_main",
					 BGWORKER_BACKEND_DATABASE_CONNECTION);
	snprintf(worker.bgw_name, BGW_MAXLEN, "tq worker for database %u",
			 database->oid);
	memset(&order, 0, sizeof(order));
	order.database = database->oid;
	order.slot = database->slot;
	order.generation = generation;
	memcpy(worker.bgw_extra, &order, sizeof(order));
	old = MemoryContextSwitchTo(TopMemoryContext);
	registered = RegisterDynamicBackgroundWorker(&worker, &database->handle);
	MemoryContextSwitchTo(old);
	return registered;
}

/* Returns the names of the databases that lack a maintenance worker. */
static char *
lacking(int *n)
{
	StringInfoData names;
	HASH_SEQ_STATUS scan;
	Database *database;

	*n = 0;
	initStringInfo(&names);
	hash_seq_init(&scan, databases);
	while ((database = hash_seq_search(&scan)) != NULL)
	{
		/* A database lacks a maintenance worker that it should have. */
		if (!(database->wanted && database->listed_in == scans &&
			  database->slot < 0))
			continue;
		tq_error_list(&names, ", ", quote_identifier(NameStr(database->name)));
		(*n)++;
	}
	return names.data;
}

/*
 * Logs that no process is free, at first and at growing intervals while it
 * lasts.
 */
static void
complain(void)
{
	TimestampTz now = tq_clock_now();
	char *names;
	int n;

	if (now < complain_at)
		return;
	names = lacking(&n);
	complain_ms = complain_ms == 0 ? COMPLAIN_MS
								   : Min(complain_ms * 2, COMPLAIN_MAX_MS);
	complain_at = tq_clock_add_ms(now, complain_ms);
	ereport(
		WARNING,
		(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
		 errmsg_plural(
			 "no background worker process is free for tq in %d database: %s",
			 "no background worker process is free for tq in %d databases: %s",
			 n, n, names),
		 errdetail(
			 "Where tq is installed there, deadlines, expired claims, delayed tasks and messages wait.  The launcher retries every second."),
		 errhint("You may need to increase max_worker_processes.")));
	pfree(names);
}

/*
 * Starts the maintenance worker of a database.  Returns false if no process is
 * free.
 */
static bool
start_worker(Database *database)
{
	uint64 generation;

	database->slot = tq_maintenance_slot_take(database->oid, &generation);
	if (database->slot >= 0 && register_worker(database, generation))
	{
		database->wanted = false;
		database->started = tq_clock_now();
		return true;
	}
	if (database->slot >= 0)
		tq_maintenance_slot_free(database->slot);
	database->slot = -1;
	database->handle = NULL;
	database->not_before = tq_clock_add_ms(tq_clock_now(), RETRY_MS);
	complain();
	return false;
}

/*
 * Returns until when the start of this maintenance worker delays others: until
 * it has settled or its process is gone, but at most STARTING_MS.
 */
static TimestampTz
starting_until(Database *database)
{
	if (database->slot < 0 || tq_maintenance_slot_view(database->slot).settled)
		return DT_NOBEGIN;
	return tq_clock_add_ms(database->started, STARTING_MS);
}

/*
 * Returns a database in which to start a maintenance worker now, or NULL; sets
 * *again to when to look again.
 */
static Database *
next_to_start(TimestampTz now, TimestampTz *again)
{
	HASH_SEQ_STATUS scan;
	Database *database;
	Database *choice = NULL;
	TimestampTz held_up = DT_NOBEGIN;

	*again = DT_NOEND;
	hash_seq_init(&scan, databases);
	while ((database = hash_seq_search(&scan)) != NULL)
	{
		held_up = Max(held_up, starting_until(database));
		if (!database->wanted || database->listed_in != scans ||
			database->slot >= 0)
			continue;
		if (database->not_before > now)
			*again = Min(*again, database->not_before);
		else if (choice == NULL || database->not_before < choice->not_before)
			choice = database;
	}
	if (choice == NULL || held_up <= now)
		return choice;
	*again = Min(*again, held_up);
	return NULL;
}

/* Starts what can be started; returns when to try again. */
static TimestampTz
start_workers(void)
{
	TimestampTz again;
	TimestampTz now = tq_clock_now();
	Database *database;

	while ((database = next_to_start(now, &again)) != NULL)
	{
		if (!is_free(database->oid))
			database->not_before = tq_clock_add_ms(now, LOCKED_MS);
		else if (!start_worker(database))
			return database->not_before;
	}
	if (again == DT_NOEND)
	{
		/* End the warnings: no database lacks a maintenance worker. */
		complain_at = DT_NOBEGIN;
		complain_ms = 0;
	}
	return again;
}

/*
 * For a session: whether a maintenance worker would find a process.
 */

/* Entry point of the process that tries it, which ends at once. */
void
tq_launcher_probe_main(Datum arg)
{
	BackgroundWorkerUnblockSignals();
}

/*
 * Raises a NOTICE if no background worker process is free for this database.
 * Only the postmaster knows that, so a process is started that does nothing.
 * It has ended when this returns, so that it does not take the process of the
 * maintenance worker.
 */
void
tq_launcher_probe(void)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;

	describe_process(&worker, "tq probe", "tq_launcher_probe_main", 0);
	if (RegisterDynamicBackgroundWorker(&worker, &handle))
	{
		(void) WaitForBackgroundWorkerShutdown(handle);
		return;
	}
	ereport(
		NOTICE,
		(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
		 errmsg(
			 "no background worker process is free for tq in database \"%s\"",
			 get_database_name(MyDatabaseId)),
		 errdetail(
			 "Deadlines, expired claims, delayed tasks and messages wait until one is."),
		 errhint(
			 "You may need to increase max_worker_processes; until then call tq.upkeep().")));
}

/*
 * The process.
 */

/*
 * Sleeps until that time or until the latch is set; while sessions wait for
 * work, until the next check for a shutdown at most.
 */
static void
launcher_sleep_until(TimestampTz due)
{
	static uint32 wait_event = 0;
	int events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;
	long ms = -1;

	if (due != DT_NOEND)
	{
		ms = TimestampDifferenceMilliseconds(tq_clock_now(), due);
		ms = Min(ms, RETRY_MAX_MS);
		events |= WL_TIMEOUT;
	}
	(void) WaitLatch(MyLatch, events, ms,
					 TqWaitEvent(wait_event, "TqLauncherMain"));
}

/* Forgets until when to wait, if the clock was set back. */
static void
check_clock(void)
{
	static TimestampTz last = TQ_LONG_AGO;
	HASH_SEQ_STATUS scan;
	Database *database;

	if (!tq_clock_went_back(&last, tq_clock_now()))
		return;
	complain_at = DT_NOBEGIN;
	hash_seq_init(&scan, databases);
	while ((database = hash_seq_search(&scan)) != NULL)
		database->not_before = database->started = TQ_LONG_AGO;
}

static void
launcher_begin(void)
{
	HASHCTL info = {.keysize = sizeof(Oid), .entrysize = sizeof(Database)};

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	pgstat_report_appname("tq launcher");
	databases = hash_create("tq databases", 64, &info, HASH_ELEM | HASH_BLOBS);
	tq_launcher_attach();
	/*
	 * Take over the maintenance workers that an earlier launcher has started.
	 */
	for (int slot = 0; slot < max_worker_processes; slot++)
	{
		TqMaintenanceSlotView view = tq_maintenance_slot_view(slot);

		if (view.database != InvalidOid)
			enter(view.database)->slot = slot;
	}
	list_databases();
}

/* Entry point of the launcher. */
void
tq_launcher_main(Datum arg)
{
	launcher_begin();
	for (;;)
	{
		HASH_SEQ_STATUS scan;
		Database *database;

		ResetLatch(MyLatch);
		if (ProcDiePending)
			proc_exit(1); /* quietly: it has nothing to roll back */
		QueryCancelPending = false;
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		check_clock();
		/* Notice maintenance workers that have ended, and take requests. */
		hash_seq_init(&scan, databases);
		while ((database = hash_seq_search(&scan)) != NULL)
		{
			if (database->slot >= 0)
				reap(database);
		}
		take_requests();
		launcher_sleep_until(start_workers());
	}
}

/* Registers the launcher; only under shared_preload_libraries. */
void
tq_launcher_register(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	snprintf(worker.bgw_name, BGW_MAXLEN, "tq launcher");
	snprintf(worker.bgw_type, BGW_MAXLEN, "tq launcher");
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
					   BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 1;
	snprintf(worker.bgw_library_name, BGW_MAXLEN, "tq");
	snprintf(worker.bgw_function_name, BGW_MAXLEN, "tq_launcher_main");
	RegisterBackgroundWorker(&worker);
}
