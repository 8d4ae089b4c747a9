/*
 * catalog.h
 *	  Finds tq's objects in the system catalogs, and protects them from
 *	  DROP.
 */
#ifndef TQ_CATALOG_H
#define TQ_CATALOG_H

/* The schema of the tables, and of functions that users do not call. */
#define TQ_SCHEMA "tq_internal"

extern void tq_catalog_lock(void);
extern Oid tq_catalog_locked_table(void);
extern Oid tq_catalog_owner(void);
extern Oid tq_catalog_slugid_type(void);

#endif /* TQ_CATALOG_H */
