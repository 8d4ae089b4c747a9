/*
 * catalog.c
 *	  Where tq's own types are in the system catalogs.
 *
 * Room 1.  The schema is fixed, so names are enough.  Nothing is cached: the
 * syscache already does that, and survives DROP EXTENSION.
 */
#include "plumbing.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

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
