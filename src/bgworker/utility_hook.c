/*
 * utility_hook.c
 *	  Utility statements that concern the background processes.
 *
 * Decides which utility statements concern a maintenance worker or the
 * launcher, and what is requested of them.  How a request reaches them is in
 * database_request.c.  That no maintenance worker is started in the middle of
 * such a statement follows from the locks taken here, which launcher.c checks.
 *
 * Before the statement, if the server will let this role run it:
 *	DROP DATABASE, ALTER DATABASE ... RENAME	stop the worker in that database
 *		or SET TABLESPACE
 *	CREATE DATABASE ... TEMPLATE			stop the worker in the template
 *	ALTER, DROP EXTENSION tq				lock the worker out of the tables, and
 *											end the waits of calls that wait
 *	LISTEN									record the channel for the publisher
 *
 * After the statement has succeeded, by requests that are carried out at the
 * commit, and not if the statement's subtransaction is rolled back:
 *	CREATE, DROP, ALTER DATABASE			have the launcher read pg_database
 *	ALTER DATABASE ... SET tq.*				restart the worker in that database,
 *											which then has the new settings
 *	ALTER EXTENSION tq						restart the worker
 *	ALTER, CREATE EXTENSION tq				undo it if the library does not serve
 *											that version (version.c)
 *	CREATE EXTENSION tq						report if no process is free for one
 *	what may drop the extension				wake the worker of this database
 *	what has dropped the extension			forget its counters and limits, and say
 *											what stays (leaving.sql)
 *	ALTER TABLE tq_internal.pending					reset the claim cursors (claim_cursor.c)
 *	COMMIT PREPARED							wake or start the worker
 *	COMMIT PREPARED, ROLLBACK PREPARED		wake all sessions that wait for work
 *
 * ("The worker" is the maintenance worker.)  For DROP DATABASE and the like
 * the server would wait five seconds for the maintenance worker's session to
 * end, and then raise an error.  So the database is locked here as the server
 * will lock it a moment later, and the maintenance worker is asked to end, and
 * waited for.  A session whose client was killed while it waits for work would
 * see that after ten seconds only, so all that wait there are woken: that one
 * ends.  The lock lasts until the end of the transaction, and as long as
 * it is held no maintenance worker is started.  All of this is done only for a
 * role that passes the checks that the server makes first; for any other role
 * the server rejects the statement, and the maintenance worker is not
 * disturbed.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_shdepend.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/wait_event.h"

#include "bgworker.h"

#define STOP_MS 5000      /* how long to wait for a maintenance worker */
#define STOP_FORCE_MS 200 /* send a signal then */
#define STOP_LOOK_MS 10

static ProcessUtility_hook_type next_process_utility = NULL;

/*
 * Stopping a maintenance worker.
 */

/*
 * Asks the maintenance worker to end, after STOP_FORCE_MS by a signal, and
 * waits until it is no longer counted among the sessions of the database.
 */
static void
stop_worker(Oid database)
{
	static uint32 wait_event = 0;
	int pid = tq_maintenance_slot_stop(database, false);

	for (int ms = 0;
		 pid != 0 && ms < STOP_MS && BackendPidGetProc(pid) != NULL;
		 ms += STOP_LOOK_MS)
	{
		if (ms == STOP_FORCE_MS)
			(void) tq_maintenance_slot_stop(database, true);
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 STOP_LOOK_MS,
						 TqWaitEvent(wait_event, "TqWorkerStop"));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

static bool
is_template(Oid database)
{
	HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
	bool result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_database) GETSTRUCT(tuple))->datistemplate;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Stops the maintenance worker of a database, and keeps it out until the end
 * of this transaction by a lock on the database.  Sessions that wait there and
 * whose client is gone end too (wait_queue.c).
 */
static void
utility_hook_clear_database(Oid database, LOCKMODE lockmode)
{
	LockSharedObject(DatabaseRelationId, database, 0, lockmode);
	tq_request_add(TQ_REQUEST_RESCAN, InvalidOid);
	tq_wait_wake_all(database);
	stop_worker(database);
}

/*
 * Returns the database of that name if this role owns it, otherwise
 * InvalidOid.
 */
static Oid
own_database(const char *name)
{
	Oid database = get_database_oid(name, true);

	return OidIsValid(database) && TqOwnsDatabase(database) ? database
															: InvalidOid;
}

/*
 * Before the statement.
 */

static DefElem *
find_option(List *options, const char *name)
{
	ListCell *cell;

	foreach(cell, options)
	{
		DefElem *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, name) == 0)
			return option;
	}
	return NULL;
}

/*
 * Returns whether the current role may create databases.  The server's own
 * function is exported since 15.19 only.
 */
static bool
may_create_databases(void)
{
	HeapTuple role;
	bool may;

	if (superuser())
		return true;
	role = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
	may = HeapTupleIsValid(role) &&
		  ((Form_pg_authid) GETSTRUCT(role))->rolcreatedb;
	if (HeapTupleIsValid(role))
		ReleaseSysCache(role);
	return may;
}

static void
before_create_database(CreatedbStmt *statement)
{
	DefElem *option = find_option(statement->options, "template");
	const char *name = option != NULL && option->arg != NULL
						   ? defGetString(option)
						   : "template1";
	Oid database = get_database_oid(name, true);

	if (OidIsValid(database) && may_create_databases() &&
		(TqOwnsDatabase(database) || is_template(database)))
		utility_hook_clear_database(database, ShareLock);
}

/*
 * Clears a database that is to be dropped, renamed or moved.  The database of
 * this session is left out, because the server rejects that.
 */
static void
before_change_of_database(const char *name, bool creates)
{
	Oid database = own_database(name);

	if (OidIsValid(database) && database != MyDatabaseId &&
		(!creates || may_create_databases()))
		utility_hook_clear_database(database, AccessExclusiveLock);
}

static bool
is_tq(const char *extension)
{
	return strcmp(extension, "tq") == 0;
}

static bool
drops_tq(const DropStmt *statement)
{
	ListCell *cell;

	foreach(cell, statement->objects)
	{
		if (statement->removeType == OBJECT_EXTENSION &&
			is_tq(strVal(lfirst(cell))))
			return true;
	}
	return false;
}

/*
 * Locks the extension, which the maintenance worker locks while it uses the
 * tables, and wakes the calls that wait: each sees the lock and ends
 * (claim_wait.c).  One that enters the wait queue later looks for the lock
 * before it sleeps.  A DROP then waits for the table that each call
 * locks first: if it locked the tables in an order of its own, it could meet a
 * call that has some of them.
 */
static void
before_change_of_extension(bool drops)
{
	Oid extension = get_extension_oid("tq", true);

	if (!OidIsValid(extension) || !TqOwnsExtension(extension))
		return;
	LockDatabaseObject(ExtensionRelationId, extension, 0, AccessExclusiveLock);
	tq_wait_wake_all(MyDatabaseId);
	if (drops)
		LockRelationOid(tq_catalog_table(), AccessExclusiveLock);
}

/* Makes way for a statement that a maintenance worker would disturb. */
static void
before_statement(Node *statement, bool is_top_level)
{
	if (XactReadOnly)
		return; /* as on a standby: the server will reject it */
	if (IsA(statement, DropdbStmt) && is_top_level)
		before_change_of_database(((DropdbStmt *) statement)->dbname, false);
	else if (IsA(statement, CreatedbStmt) && is_top_level)
		before_create_database((CreatedbStmt *) statement);
	else if (IsA(statement, AlterDatabaseStmt) && is_top_level &&
			 find_option(((AlterDatabaseStmt *) statement)->options,
						 "tablespace") != NULL)
		before_change_of_database(((AlterDatabaseStmt *) statement)->dbname,
								  false);
	else if (IsA(statement, RenameStmt) &&
			 ((RenameStmt *) statement)->renameType == OBJECT_DATABASE)
		before_change_of_database(((RenameStmt *) statement)->subname, true);
	else if ((IsA(statement, AlterExtensionStmt) &&
			  is_tq(((AlterExtensionStmt *) statement)->extname)) ||
			 (IsA(statement, DropStmt) && drops_tq((DropStmt *) statement)))
		before_change_of_extension(IsA(statement, DropStmt));
}

/*
 * After the statement.
 */

/* What to do when the statement has succeeded. */
typedef struct After
{
	bool rescan; /* the launcher reads pg_database */
	Oid restart; /* the maintenance worker of this database, or InvalidOid */
	bool wake;   /* the maintenance worker of the session's database */
	Oid dropped; /* the table that calls lock, if it may be gone then */
	bool start;  /* the same, and start it if there is none */
	bool wake_waiters;  /* sessions that wait for work */
	bool forget_cursor; /* reset all claim cursors */
	bool probe;         /* check that a process is free */
	bool fits; /* check that the library serves the SQL that is there now */
} After;

/*
 * Returns whether this is tq_internal.pending.  A data-only restore may
 * disable the triggers by which the claim cursor learns of rows, and enables
 * them when all rows are there.
 */
static bool
is_pending_table(const RangeVar *name)
{
	Oid schema;
	Oid relation;

	if (strcmp(name->relname, "pending") != 0 ||
		!OidIsValid(get_extension_oid("tq", true)))
		return false;
	schema = get_namespace_oid(TQ_SCHEMA, true);
	relation = RangeVarGetRelid(name, NoLock, true);
	return OidIsValid(relation) &&
		   relation == get_relname_relid("pending", schema);
}

static void
plan_end_of_prepared(const TransactionStmt *statement, After *after)
{
	after->start = statement->kind == TRANS_STMT_COMMIT_PREPARED;
	after->wake_waiters = after->start ||
						  statement->kind == TRANS_STMT_ROLLBACK_PREPARED;
}

static bool
may_drop_extension(const DropStmt *statement)
{
	return statement->removeType == OBJECT_EXTENSION ||
		   statement->removeType == OBJECT_SCHEMA;
}

static Oid
database_to_restart(const AlterDatabaseSetStmt *statement)
{
	/*
	 * A maintenance worker may be affected by this setting.  It has the
	 * settings of the time when it was started.
	 */
	return (statement->setstmt->kind == VAR_RESET_ALL ||
			(statement->setstmt->name != NULL &&
			 pg_strncasecmp(statement->setstmt->name, "tq.", 3) == 0))
			   ? get_database_oid(statement->dbname, true)
			   : InvalidOid;
}

/*
 * Decides what to do after a statement.  Called before it is run, because its
 * tree may be gone afterwards.
 */
static void
plan_after(Node *statement, After *after)
{
	memset(after, 0, sizeof(*after));
	if (IsA(statement, TransactionStmt))
		plan_end_of_prepared((TransactionStmt *) statement, after);
	if (XactReadOnly)
		return; /* as on a standby: the server will reject it */
	if (IsA(statement, DropdbStmt) || IsA(statement, CreatedbStmt) ||
		IsA(statement, AlterDatabaseStmt) ||
		(IsA(statement, RenameStmt) &&
		 ((RenameStmt *) statement)->renameType == OBJECT_DATABASE))
		after->rescan = true;
	else if (IsA(statement, AlterDatabaseSetStmt))
		after->restart = database_to_restart(
			(AlterDatabaseSetStmt *) statement);
	else if (IsA(statement, AlterExtensionStmt) &&
			 is_tq(((AlterExtensionStmt *) statement)->extname))
	{
		after->restart = MyDatabaseId;
		after->fits = true;
	}
	else if (IsA(statement, CreateExtensionStmt) &&
			 is_tq(((CreateExtensionStmt *) statement)->extname) &&
			 !OidIsValid(get_extension_oid("tq", true)))
	{
		after->probe = true;
		after->fits = true;
	}
	else if (IsA(statement, DropStmt))
		after->wake = may_drop_extension((DropStmt *) statement);
	else if (IsA(statement, DropOwnedStmt))
		after->wake = true;
	else if (IsA(statement, AlterTableStmt))
		after->forget_cursor = is_pending_table(
			((AlterTableStmt *) statement)->relation);
	if (after->wake)
		after->dropped = tq_catalog_table();
}

/*
 * The extension that this transaction has dropped, by the table that each call
 * locks, and in which subtransaction.
 */
static Oid dropped = InvalidOid;
static SubTransactionId dropped_in = InvalidSubTransactionId;
static bool has_dropped = false;

static void
note_dropped(Oid table)
{
	dropped = table;
	dropped_in = GetCurrentSubTransactionId();
	has_dropped = true;
}

/*
 * Frees what shared memory has of it.  The drop still has all tables locked, so that
 * no other transaction has anything there.
 */
static void
drop_commits(void)
{
	tq_limits_forget(MyDatabaseId, dropped);
	tq_wait_wake_all(MyDatabaseId);
}

static void
drop_ends(void)
{
	has_dropped = false;
}

static void
drop_aborts(SubTransactionId id)
{
	if (id == dropped_in)
		has_dropped = false;
}

static void
drop_subcommits(SubTransactionId id, SubTransactionId parent)
{
	if (id == dropped_in)
		dropped_in = parent;
}

const TqXactEnd tq_drop_xact_end = {.has_work = &has_dropped,
									.commit = drop_commits,
									.abort = drop_aborts,
									.reset = drop_ends,
									.subcommit = drop_subcommits};

/*
 * Raises an error, and so undoes the statement, if the SQL is now none that the
 * library serves: its package was replaced since the server was started.
 */
static void
require_fit(void)
{
	char *version = tq_version_unserved();

	if (version != NULL)
		tq_version_report(ERROR, version);
}

/* Returns whether another database has objects or grants of a role. */
static bool
is_used_elsewhere(Oid role)
{
	Relation table = table_open(SharedDependRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple tuple;
	bool is_used = false;

	ScanKeyInit(&keys[0], Anum_pg_shdepend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(AuthIdRelationId));
	ScanKeyInit(&keys[1], Anum_pg_shdepend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(role));
	scan = systable_beginscan(table, SharedDependReferenceIndexId, true, NULL,
							  2, keys);
	while (!is_used && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid database = ((Form_pg_shdepend) GETSTRUCT(tuple))->dbid;

		is_used = OidIsValid(database) && database != MyDatabaseId;
	}
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return is_used;
}

/* Lists the roles of tq that no other database uses, as DROP ROLE takes them. */
static char *
roles_left(void)
{
	static const char *const names[] = {"tq_admin", "tq_producer", "tq_worker",
										"tq_reader", "tq_monitor"};
	Oid admin = get_role_oid(names[0], true);
	StringInfoData list;

	initStringInfo(&list);
	/* Each database that has tq has grants to that role. */
	if (OidIsValid(admin) && is_used_elsewhere(admin))
		return list.data;
	for (int i = 0; i < lengthof(names); i++)
	{
		Oid role = get_role_oid(names[i], true);

		if (OidIsValid(role) && !is_used_elsewhere(role))
			appendStringInfo(&list, "%s%s", list.len > 0 ? ", " : "",
							 names[i]);
	}
	return list.data;
}

/*
 * Names what the drop has left in the cluster, with the statements that remove
 * it; the rest is listed by prepare_drop(), before a drop.
 */
static void
report_left(void)
{
	const char *roles = roles_left();
	const char *cron = GetConfigOption("cron.database_name", true, false);

	if (*roles != '\0')
		ereport(
			NOTICE,
			(errmsg("roles of tq stay, and no other database uses them: %s",
					roles),
			 errhint("DROP ROLE %s", roles)));
	if (cron != NULL)
		ereport(
			NOTICE,
			(errmsg("jobs of pg_cron that call tq stay in database \"%s\"",
					cron),
			 errhint(
				 "SELECT cron.unschedule(jobid) FROM cron.job WHERE database = %s AND command ~* '\\mtq(_internal)?[.]'",
				 quote_literal_cstr(get_database_name(MyDatabaseId)))));
}

/*
 * Sends the requests that plan_after() has decided, once the statement has
 * succeeded.
 */
static void
act_after(const After *after)
{
	if (after->fits)
		require_fit();
	if (after->rescan)
		tq_request_add(TQ_REQUEST_RESCAN, InvalidOid);
	if (OidIsValid(after->restart))
		tq_request_add(TQ_REQUEST_RESTART, after->restart);
	if (after->wake)
		tq_request_add(TQ_REQUEST_WAKE, MyDatabaseId);
	if (OidIsValid(after->dropped) && !OidIsValid(tq_catalog_table()))
	{
		note_dropped(after->dropped);
		report_left();
	}
	/*
	 * The transaction may have written due times, or be a CREATE EXTENSION
	 * itself.
	 */
	if (after->start && OidIsValid(get_extension_oid("tq", true)))
		tq_request_add(TQ_REQUEST_START, MyDatabaseId);
	if (after->wake_waiters)
		tq_wait_wake_all(MyDatabaseId);
	if (after->forget_cursor)
		tq_cursor_track_all();
	if (after->probe)
		tq_launcher_probe();
}

/* Hook: runs a utility statement with what it needs before and after it. */
static void
process_utility(PlannedStmt *plan, const char *text, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest,
				QueryCompletion *completion)
{
	After after;

	plan_after(plan->utilityStmt, &after);
	/*
	 * Record the channel before the session listens, so that no message that
	 * it must get is held back.
	 */
	if (IsA(plan->utilityStmt, ListenStmt))
		tq_listener_add(((ListenStmt *) plan->utilityStmt)->conditionname);
	before_statement(plan->utilityStmt, context == PROCESS_UTILITY_TOPLEVEL &&
											!IsTransactionBlock());
	(next_process_utility != NULL
		 ? next_process_utility
		 : standard_ProcessUtility)(plan, text, read_only_tree, context,
									params, environment, dest, completion);
	act_after(&after);
}

/* Installs the hook; only under shared_preload_libraries. */
void
tq_utility_hook_install(void)
{
	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
