/*
 * catalog.c
 *	  Where tq's own objects are in the system catalogs, and that they stay.
 *
 * Room 1.  The schema is fixed, so names are enough.  Nothing is cached: the
 * syscache already does that, and survives DROP EXTENSION.
 *
 * DROP EXTENSION, and CREATE EXTENSION after it, may come between the moment at
 * which the server finds a function of tq and the moment at which that runs.
 * So each call begins with a lock on one table of the extension, in the weakest
 * mode, which the transaction keeps.  A DROP locks every table before it drops
 * one, so from there on all of them stay; and by then the session has learned of
 * every DROP before, and has forgotten what it knew of the tables that are gone.
 */
#include "plumbing.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "storage/sinval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* The table that is locked: one that most calls lock anyway. */
#define HELD_TABLE "task"

/* The one that the last call has locked. */
static Oid held_table = InvalidOid;

static Oid
find_held_table(void)
{
	Oid schema = get_namespace_oid("tq", true);

	return OidIsValid(schema) ? get_relname_relid(HELD_TABLE, schema)
							  : InvalidOid;
}

static void
refuse_dropped(bool is_there)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_UNDEFINED_OBJECT),
		 errmsg("extension tq was dropped"),
		 is_there ? errdetail("It was created again while this call began.")
				  : errdetail("Table \"tq.%s\" does not exist.", HELD_TABLE),
		 is_there
			 ? errhint("Try the transaction again.")
			 : errhint(
				   "Run CREATE EXTENSION tq in this database, and try again.")));
}

/*
 * Keep the extension from being dropped until the end of the transaction.  If
 * it was dropped since the server found the function that runs, that function
 * is one of the dropped extension, and goes no further, even if the extension
 * is there again.
 */
void
tq_catalog_hold(void)
{
	uint64 seen = SharedInvalidMessageCounter;
	Oid table = find_held_table();
	Oid now;

	if (!OidIsValid(table))
		refuse_dropped(false);
	LockRelationOid(table, AccessShareLock);
	held_table = table;
	if (seen == SharedInvalidMessageCounter)
		return;
	now = find_held_table();
	if (now != table)
		refuse_dropped(OidIsValid(now));
}

/*
 * The Oid that distinguishes the extension that a call holds from an earlier one
 * that was dropped.
 */
Oid
tq_catalog_held(void)
{
	return held_table;
}

Oid
tq_catalog_slugid_type(void)
{
	Oid schema = get_namespace_oid("tq", false);
	Oid type = GetSysCacheOid2(TYPENAMENSP,
							   Anum_pg_type_oid,
							   CStringGetDatum("slugid"),
							   ObjectIdGetDatum(schema));

	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("type \"tq.slugid\" does not exist"),
				 errhint("Run CREATE EXTENSION tq in this database.")));
	return type;
}

Oid
tq_catalog_slugid_array_type(void)
{
	return get_array_type(tq_catalog_slugid_type());
}
