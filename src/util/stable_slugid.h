/*
 * stable_slugid.h
 *	  Slugids that are made of names.
 */
#ifndef TQ_STABLE_SLUGID_H
#define TQ_STABLE_SLUGID_H

#include "slugid.h"

extern void tq_slug_of_name(const char *utf8_name, TqSlug *slug);

#endif /* TQ_STABLE_SLUGID_H */
