/*
 * lines.c
 *	  Writes and reads text of lines whose fields are separated by tabs,
 *	  and bytes of jsonb values in it.
 *
 * Such text goes between a router and its shards (src/api/worker_api.c).  No field
 * has a tab or a newline of its own: JSON escapes both, and names and ids have
 * none.
 *
 * The bytes of a jsonb value go with it as text.  A router has payloads from its
 * shards.  To print one as JSON and to read it again costs several times as much
 * as to copy it.  The router checks the bytes
 * (src/extras/router/router_lines.c).
 */
#include "postgres.h"

#include <ctype.h>

#include "util.h"

/* ---- write ---- */

void
tq_lines_add_slug(StringInfo lines, const TqSlug *slug, char ends)
{
	enlargeStringInfo(lines, TQ_SLUG_CHARS + 1);
	tq_slug_print(slug, lines->data + lines->len);
	lines->len += TQ_SLUG_CHARS;
	appendStringInfoChar(lines, ends);
}

void
tq_lines_add_number(StringInfo lines, int64 number, char ends)
{
	enlargeStringInfo(lines, MAXINT8LEN + 1);
	lines->len += pg_lltoa(number, lines->data + lines->len);
	appendStringInfoChar(lines, ends);
}

/* ---- read ---- */

/* Begins to read a copy of the text, of which fields become parts. */
TqLines
tq_lines_of(const text *given)
{
	char *copy = text_to_cstring(given);

	return (TqLines){.next = copy, .end = copy + strlen(copy)};
}

bool
tq_lines_are_left(const TqLines *lines)
{
	return lines->next < lines->end;
}

/* Returns how many lines are left; a last one without its newline is none. */
int
tq_lines_count(const TqLines *lines)
{
	int n = 0;

	for (const char *at = lines->next;
		 (at = memchr(at, '\n', lines->end - at)) != NULL; at++)
		n++;
	return n;
}

/*
 * Returns the next field, which this character ends, as a string; NULL if none
 * does, or if the line or the field ends before it.
 */
char *
tq_lines_field(TqLines *lines, char ends)
{
	char *field = lines->next;
	char *at = memchr(field, ends, lines->end - field);

	if (at == NULL || memchr(field, ends == '\n' ? '\t' : '\n', at - field))
		return NULL;
	*at = '\0';
	lines->next = at + 1;
	return field;
}

/*
 * The next ones return false if the next field is none, or is none of its type.
 */
bool
tq_lines_slug(TqLines *lines, char ends, TqSlug *slug)
{
	char *field = tq_lines_field(lines, ends);

	return field != NULL && tq_slug_parse(field, strlen(field), slug);
}

bool
tq_lines_int64(TqLines *lines, char ends, int64 *value)
{
	char *field = tq_lines_field(lines, ends);
	char *rest;

	if (field == NULL || (*field != '-' && !isdigit((unsigned char) *field)))
		return false;
	errno = 0;
	*value = strtoll(field, &rest, 10);
	return *rest == '\0' && errno == 0;
}

bool
tq_lines_int32(TqLines *lines, char ends, int32 *value)
{
	int64 number;

	if (!tq_lines_int64(lines, ends, &number) || number != (int32) number)
		return false;
	*value = (int32) number;
	return true;
}

/* ---- bytes of a jsonb value ---- */

/* Appends what is behind the length word of a value. */
void
tq_jsonb_add_hex(StringInfo text, const Jsonb *value)
{
	int size = VARSIZE(value) - VARHDRSZ;

	enlargeStringInfo(text, 2 * size);
	text->len += hex_encode((const char *) &value->root, size,
							text->data + text->len);
	text->data[text->len] = '\0';
}
