/*
 * worker_utility.c
 *	  Statements that need the background workers out of the way, or to know.
 *
 * Room 5.  Decides which utility statements concern a worker, and what they
 * tell it.  How a worker is told is in shmem.c; that it is not started in the
 * middle of such a statement is seen to by the locks taken here, which
 * worker_launcher.c looks at.
 *
 *	DROP DATABASE, ALTER DATABASE … RENAME	stop the worker in that database
 *		or SET TABLESPACE
 *	CREATE DATABASE … TEMPLATE				stop the worker in the template
 *	CREATE EXTENSION tq in a restore		keep the worker from working until
 *											the session has ended (worker.c)
 *	ALTER EXTENSION tq						keep the worker from working, and
 *											let it begin anew at the commit
 *	what may drop the extension				wake the worker of this database
 *	ALTER TABLE tq.pending					forget the claim cursors (cursor.c)
 *	COMMIT PREPARED							wake or start it
 *	COMMIT PREPARED, ROLLBACK PREPARED		wake all who wait for work
 *	LISTEN									let the publisher know
 *
 * The server would wait five seconds for the worker's session to end, and
 * then refuse.  So the database is locked as the server will lock it a moment
 * later, the worker is told to go, and waited for.  The lock lasts until the
 * end of the transaction, and as long as it is held no new worker is started.
 */
#include "worker.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "compat.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/syscache.h"
#include "utils/wait_event.h"

#include "cursor.h"
#include "shmem.h"
#include "wait.h"

#define STOP_MS 5000      /* wait so long for a worker to go */
#define STOP_FORCE_MS 200 /* by then it should have done its transaction */
#define STOP_LOOK_MS 10

static ProcessUtility_hook_type next_process_utility = NULL;

/*
 * Sending a worker away.
 */

/*
 * Tell the worker to go, at last with some emphasis, and wait until it is no
 * longer counted among the sessions of the database.
 */
static void
stop_worker(Oid database)
{
	static uint32 wait_event = 0;
	int pid = tq_shmem_stop(database, false);

	for (int ms = 0;
		 pid != 0 && ms < STOP_MS && BackendPidGetProc(pid) != NULL;
		 ms += STOP_LOOK_MS)
	{
		if (ms == STOP_FORCE_MS)
			(void) tq_shmem_stop(database, true);
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
 * Have no worker in the database of that name until the end of this
 * transaction.  Whoever may not do what follows will be told so by the
 * server, and does not disturb the worker.
 */
static void
clear_database(const char *name, LOCKMODE lockmode)
{
	Oid database = get_database_oid(name, true);

	if (!OidIsValid(database))
		return;
	if (!TqOwnsDatabase(database) &&
		!(lockmode == ShareLock && is_template(database)))
		return;
	LockSharedObject(DatabaseRelationId, database, 0, lockmode);
	tq_shmem_tell(TQ_TELL_RESCAN);
	stop_worker(database);
}

/*
 * The statements.
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

static void
before_create_database(CreatedbStmt *statement)
{
	DefElem *option = find_option(statement->options, "template");

	clear_database(option != NULL && option->arg != NULL ? defGetString(option)
														 : "template1",
				   ShareLock);
	tq_shmem_tell(TQ_TELL_RESCAN);
}

static void
before_alter_database(AlterDatabaseStmt *statement)
{
	if (find_option(statement->options, "tablespace") != NULL)
		clear_database(statement->dbname, AccessExclusiveLock);
	tq_shmem_tell(TQ_TELL_RESCAN);
}

/*
 * As in the output of pg_dump: the rows come after it.  Must be seen here,
 * for within the extension's script check_function_bodies is always off.
 */
static void
before_create_extension(const char *name)
{
	if (strcmp(name, "tq") == 0 && !check_function_bodies)
		tq_shmem_load_begin();
}

static void
before_alter_extension(const char *name)
{
	Oid extension;

	if (strcmp(name, "tq") != 0)
		return;
	extension = get_extension_oid("tq", true);
	if (OidIsValid(extension))
		LockDatabaseObject(ExtensionRelationId,
						   extension,
						   0,
						   AccessExclusiveLock);
	tq_shmem_tell(TQ_TELL_RESTART);
}

static void
before_drop(DropStmt *statement)
{
	if (statement->removeType == OBJECT_EXTENSION ||
		statement->removeType == OBJECT_SCHEMA)
		tq_shmem_tell(TQ_TELL_WAKE);
}

/*
 * A restore of data alone may disable the triggers by which the claim cursor
 * learns of rows, and enables them when all rows are there.
 */
static void
before_alter_table(AlterTableStmt *statement)
{
	if (strcmp(statement->relation->relname, "pending") == 0)
		tq_cursor_note_all();
}

static void
before_statement(Node *statement)
{
	if (XactReadOnly)
		return; /* a standby, too: the server will refuse */
	if (IsA(statement, DropdbStmt))
		clear_database(((DropdbStmt *) statement)->dbname,
					   AccessExclusiveLock);
	else if (IsA(statement, CreatedbStmt))
		before_create_database((CreatedbStmt *) statement);
	else if (IsA(statement, AlterDatabaseStmt))
		before_alter_database((AlterDatabaseStmt *) statement);
	else if (IsA(statement, RenameStmt) &&
			 ((RenameStmt *) statement)->renameType == OBJECT_DATABASE)
		clear_database(((RenameStmt *) statement)->subname,
					   AccessExclusiveLock);
	else if (IsA(statement, CreateExtensionStmt))
		before_create_extension(((CreateExtensionStmt *) statement)->extname);
	else if (IsA(statement, AlterExtensionStmt))
		before_alter_extension(((AlterExtensionStmt *) statement)->extname);
	else if (IsA(statement, DropStmt))
		before_drop((DropStmt *) statement);
	else if (IsA(statement, AlterTableStmt))
		before_alter_table((AlterTableStmt *) statement);
	else if (IsA(statement, DropOwnedStmt))
		tq_shmem_tell(TQ_TELL_WAKE);
}

/* Before it listens, so that nothing is held back that it must have. */
static void
before_listen(Node *statement)
{
	if (IsA(statement, ListenStmt))
		tq_shmem_listen(((ListenStmt *) statement)->conditionname);
}

static bool
is_commit_prepared(Node *statement)
{
	return IsA(statement, TransactionStmt) &&
		   ((TransactionStmt *) statement)->kind == TRANS_STMT_COMMIT_PREPARED;
}

static bool
is_end_of_prepared(Node *statement)
{
	return is_commit_prepared(statement) ||
		   (IsA(statement, TransactionStmt) &&
			((TransactionStmt *) statement)->kind ==
				TRANS_STMT_ROLLBACK_PREPARED);
}

/* What was prepared may hold due times, and CREATE EXTENSION itself. */
static void
after_commit_prepared(void)
{
	if (OidIsValid(get_extension_oid("tq", true)))
		tq_shmem_tell(TQ_TELL_START);
}

static void
process_utility(PlannedStmt *plan, const char *text, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest,
				QueryCompletion *completion)
{
	/* The statement may be gone when it has been run. */
	bool prepared = is_commit_prepared(plan->utilityStmt);
	bool prepared_ends = is_end_of_prepared(plan->utilityStmt);

	before_listen(plan->utilityStmt);
	before_statement(plan->utilityStmt);
	(next_process_utility != NULL ? next_process_utility
								  : standard_ProcessUtility)(plan,
															 text,
															 read_only_tree,
															 context,
															 params,
															 environment,
															 dest,
															 completion);
	if (prepared)
		after_commit_prepared();
	if (prepared_ends)
		tq_wait_wake_all();
}

/* Watch utility statements; only under shared_preload_libraries. */
void
tq_worker_watch_utility(void)
{
	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
