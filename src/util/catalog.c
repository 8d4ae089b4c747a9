/*
 * catalog.c
 *	  Finds tq's objects in the system catalogs, and protects them from DROP.
 *
 * The schema is fixed, so names are enough.  Nothing is cached here, because
 * the syscache does that, and notices DROP EXTENSION.
 *
 * DROP EXTENSION, and CREATE EXTENSION after it, may run between the moment at
 * which the server looks up a function of tq and the moment at which it calls
 * it.  Each call therefore begins by locking one table of the extension in
 * ACCESS SHARE mode, until the end of the transaction.  A DROP locks every
 * table before it drops one, so all of them stay from then on.  Taking the
 * lock also processes invalidation messages, so that the session has discarded
 * its cache entries for tables that were dropped before.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "storage/lmgr.h"
#include "storage/sinval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "util.h"

/* The table that is locked: one that most calls lock in any case. */
#define LOCKED_TABLE "task"

Oid tq_locked_table = InvalidOid;

/* Returns the table that calls lock, which is as the extension; or InvalidOid. */
Oid
tq_catalog_table(void)
{
	Oid schema = get_namespace_oid(TQ_SCHEMA, true);

	return OidIsValid(schema) ? get_relname_relid(LOCKED_TABLE, schema)
							  : InvalidOid;
}

static void
refuse_dropped(bool is_there)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("extension tq was dropped"),
		 is_there ? errdetail("It was created again while this call began.")
				  : errdetail("Table \"tq_internal.%s\" does not exist.",
							  LOCKED_TABLE),
		 is_there
			 ? errhint("Try the transaction again.")
			 : errhint(
				   "Run CREATE EXTENSION tq in this database, and try again.")));
}

/*
 * Keeps the extension from being dropped until the end of the transaction.
 * Raises an error if it was dropped after the server looked up the function
 * that runs, even if it was created again since: that function belongs to the
 * extension that was dropped; and if its version is none that the library serves.
 */
void
tq_catalog_lock(void)
{
	uint64 seen = SharedInvalidMessageCounter;
	Oid table = tq_catalog_table();
	Oid now;

	if (!OidIsValid(table))
		refuse_dropped(false);
	LockRelationOid(table, AccessShareLock);
	tq_locked_table = table;
	if (seen != SharedInvalidMessageCounter)
	{
		now = tq_catalog_table();
		if (now != table)
			refuse_dropped(OidIsValid(now));
	}
	if (!tq_version_checked)
		tq_version_check();
}

/*
 * Returns whether a session drops or alters the extension, and so waits for this
 * call to end: utility_hook.c has locked it before it wakes those that wait.
 */
bool
tq_catalog_is_wanted(void)
{
	static Oid table = InvalidOid;
	static Oid extension = InvalidOid;

	if (table != tq_locked_table)
		extension = get_extension_oid("tq", true);
	table = tq_locked_table;
	if (!ConditionalLockDatabaseObject(ExtensionRelationId, extension, 0,
									   AccessShareLock))
		return true;
	UnlockDatabaseObject(ExtensionRelationId, extension, 0, AccessShareLock);
	return false;
}

/* Returns the owner of the table that this call has locked. */
Oid
tq_catalog_owner(void)
{
	HeapTuple tuple = SearchSysCache1(RELOID,
									  ObjectIdGetDatum(tq_locked_table));
	Oid owner;

	if (!HeapTupleIsValid(tuple))
		refuse_dropped(false);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

Oid
tq_catalog_slugid_type(void)
{
	Oid schema = get_namespace_oid("tq", false);
	Oid type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
							   CStringGetDatum("slugid"),
							   ObjectIdGetDatum(schema));

	if (!OidIsValid(type))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("type \"tq.slugid\" does not exist"),
						errhint("Run CREATE EXTENSION tq in this database.")));
	return type;
}
