/*
 * lines.h
 *	  Text of lines whose fields are separated by tabs.
 */
#ifndef TQ_LINES_H
#define TQ_LINES_H

#include "fmgr.h"
#include "lib/stringinfo.h"

#include "slugid.h"

/* Where the next field is. */
typedef struct TqLines
{
	char *next;
	char *end;
} TqLines;

extern void tq_lines_add_slug(StringInfo lines, const TqSlug *slug, char ends);
extern void tq_lines_add_number(StringInfo lines, int64 number, char ends);

extern TqLines tq_lines_of(const text *given);
extern bool tq_lines_are_left(const TqLines *lines);
extern int tq_lines_count(const TqLines *lines);
extern char *tq_lines_field(TqLines *lines, char ends);
extern bool tq_lines_slug(TqLines *lines, char ends, TqSlug *slug);
extern bool tq_lines_int64(TqLines *lines, char ends, int64 *value);
extern bool tq_lines_int32(TqLines *lines, char ends, int32 *value);

#endif /* TQ_LINES_H */
