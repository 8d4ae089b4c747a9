/*
 * declared.c
 *	  Whether SQL declares a function as a library has it.
 *
 * A session loads tq_picture and tq_shard when it first calls a function of theirs.
 * So it may have the library of a package that was installed after the server was
 * started, or before ALTER EXTENSION UPDATE.  A value that is read as one of another
 * type crashes the server: each function of these libraries looks at its declaration
 * before it reads an argument.  The signature has everything on which that depends:
 * the result, the arguments, the columns of rows, and that NULL is not passed.
 *
 * Reads the catalogs, and keeps nothing: each library has a copy.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "util.h"

/*
 * Returns the version of an extension of this database; NULL if it is not there.
 * Reads the table, which has few rows, without its index, of which a new session
 * would have to build a description.
 */
char *
tq_extension_version(const char *extension)
{
	Relation table = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	char *version = NULL;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber,
				F_NAMEEQ, CStringGetDatum(extension));
	scan = systable_beginscan(table, InvalidOid, false, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool is_null;
		Datum value = heap_getattr(tuple, Anum_pg_extension_extversion,
								   RelationGetDescr(table), &is_null);

		version = TextDatumGetCString(value);
	}
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return version;
}

static void add_type(StringInfo signature, Oid type);

/* Adds the columns of a row; one that was dropped counts. */
static void
add_columns(StringInfo signature, Oid type)
{
	TupleDesc row = lookup_rowtype_tupdesc(type, -1);

	for (int i = 0; i < row->natts; i++)
	{
		appendStringInfoString(signature, i == 0 ? "(" : ",");
		if (TupleDescAttr(row, i)->attisdropped)
			appendStringInfoChar(signature, '-');
		else
			add_type(signature, TupleDescAttr(row, i)->atttypid);
	}
	appendStringInfoChar(signature, ')');
	ReleaseTupleDesc(row);
}

/* Adds the name of a type, the element of an array, or the columns of a row. */
static void
add_type(StringInfo signature, Oid type)
{
	Oid element = get_element_type(type);
	HeapTuple tuple;

	if (OidIsValid(element))
	{
		add_type(signature, element);
		appendStringInfoString(signature, "[]");
		return;
	}
	if (get_typtype(type) == TYPTYPE_COMPOSITE)
	{
		add_columns(signature, type);
		return;
	}
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type);
	appendStringInfoString(signature,
						   NameStr(
							   ((Form_pg_type) GETSTRUCT(tuple))->typname));
	ReleaseSysCache(tuple);
}

/* Returns how a function is declared. */
static char *
signature_of(Oid function)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	StringInfoData signature;
	Form_pg_proc proc;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	initStringInfo(&signature);
	for (int i = 0; i < proc->pronargs; i++)
	{
		appendStringInfoString(&signature, i == 0 ? "" : ", ");
		add_type(&signature, proc->proargtypes.values[i]);
	}
	appendStringInfoString(&signature,
						   proc->proretset ? " -> setof " : " -> ");
	add_type(&signature, proc->prorettype);
	if (proc->proisstrict)
		appendStringInfoString(&signature, " strict");
	ReleaseSysCache(tuple);
	return signature.data;
}

/*
 * Raises an error unless the function that is called, of an extension, is declared
 * with that signature.
 */
void
tq_check_declared(FunctionCallInfo fcinfo, const char *extension,
				  const char *signature)
{
	char *declared = signature_of(fcinfo->flinfo->fn_oid);
	char *version;

	if (strcmp(declared, signature) == 0)
	{
		pfree(declared);
		return;
	}
	version = tq_extension_version(extension);
	ereport(
		ERROR,
		(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		 errmsg(
			 "function %s() is of version %s, and its library of version %s",
			 get_func_name(fcinfo->flinfo->fn_oid),
			 version == NULL ? "none" : version, TQ_VERSION),
		 errdetail("It is declared as %s, and the library has %s.", declared,
				   signature),
		 errhint(
			 "Restart the server if a package was installed since it was started, and run ALTER EXTENSION %s UPDATE in this database.",
			 extension)));
}
