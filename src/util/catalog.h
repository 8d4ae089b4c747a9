/*
 * catalog.h
 *	  Finds tq's objects in the system catalogs, and protects them from
 *	  DROP.
 */
#ifndef TQ_CATALOG_H
#define TQ_CATALOG_H

extern void tq_catalog_hold(void);
extern Oid tq_catalog_held(void);
extern Oid tq_catalog_slugid_type(void);
extern Oid tq_catalog_slugid_array_type(void);

#endif /* TQ_CATALOG_H */
