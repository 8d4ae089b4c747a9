/*
 * slugid.h
 *	  The type tq.slugid: a version 4 UUID written as a 22-character slug.
 */
#ifndef TQ_SLUGID_H
#define TQ_SLUGID_H

#include "fmgr.h"

#define TQ_SLUG_BYTES 16
#define TQ_SLUG_CHARS 22
#define TQ_SLUG_BUCKETS 1024 /* into which the ids of groups are divided */

typedef struct TqSlug
{
	uint8 bytes[TQ_SLUG_BYTES];
} TqSlug;

#define DatumGetTqSlugP(d) ((TqSlug *) DatumGetPointer(d))
#define PG_GETARG_TQ_SLUG_P(n) DatumGetTqSlugP(PG_GETARG_DATUM(n))
#define PG_RETURN_TQ_SLUG_P(p) PG_RETURN_POINTER(p)

extern bool tq_slug_parse(const char *text, size_t len, TqSlug *slug);
extern void tq_slug_print(const TqSlug *slug, char *text);
extern char *tq_slug_text(const TqSlug *slug);
extern void tq_slug_random(TqSlug *slug);
extern TqSlug *tq_slugs_random(int n);
extern int tq_slug_compare(const TqSlug *a, const TqSlug *b);

extern bool tq_slug_is_random(const TqSlug *slug);
extern void tq_slug_set_version(TqSlug *slug);
extern int tq_slug_bucket(const TqSlug *slug);
extern void tq_slug_set_bucket(TqSlug *slug, int bucket);

#endif /* TQ_SLUGID_H */
