/*
 * name_cache.h
 *	  Caches of each backend for names that tables intern to numbers.
 */
#ifndef TQ_NAME_CACHE_H
#define TQ_NAME_CACHE_H

#include "utils/hsearch.h"

#include "table.h"

/*
 * A cache of numbers by name, or of names by number, valid while the table
 * exists; static data.
 */
typedef struct TqNameCache
{
	const char *purpose;
	Size keysize;
	Size entrysize;
	int how; /* flags for comparing its keys */
	TqRelation *table;
	Oid oid;                  /* of the table when the cache was created */
	HTAB *entries;            /* NULL: empty */
	uint64 found_at;          /* invalidation messages processed before */
	struct TqNameCache *next; /* in the list of those that were used */
} TqNameCache;

extern void *tq_name_find(TqNameCache *cache, const void *key);
extern void tq_name_remove(TqNameCache *cache, const void *key);
extern void *tq_name_add(TqNameCache *cache, const void *key);
extern void tq_name_interning(void);

#endif /* TQ_NAME_CACHE_H */
