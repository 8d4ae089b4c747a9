/*
 * lines.c
 *	  Writes and reads text of lines whose fields are separated by tabs,
 *	  and bytes of jsonb values in it.
 *
 * Such text goes between a router and its shards (src/api/lines_api.c).  No field
 * has a tab or a newline of its own: JSON escapes both, and names and ids have
 * none.
 *
 * The bytes of a jsonb value go with it as text.  A router has payloads from its
 * shards.  To print one as JSON and to read it again costs several times as much
 * as to copy it, and the server has used the same form since 9.4.  But functions
 * of the server trust a value that is stored, so nothing becomes one here before
 * every length, type, string and number in it is known to be what they expect.
 * That the keys of an object are in order is not: if they are not, an operator
 * may not find one, and does no harm.
 *
 * Both servers must have one byte order, and one encoding; the caller sees to it.
 */
#include "postgres.h"

#include <ctype.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"

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

/* ---- check ---- */

static bool check_container(const JsonbContainer *container, uint32 size,
							bool is_root);

/*
 * A number is a finite numeric: a length word, a header of one word of 16 bits or
 * of two, and digits to the base of 10000, of which neither the first nor the last
 * is 0.
 */
static bool
check_number(const char *data, uint32 size)
{
	const uint16 *words = (const uint16 *) (data + VARHDRSZ);
	uint32 n;
	uint32 header;

	if (size < VARHDRSZ + sizeof(uint16) || size % sizeof(uint16) != 0 ||
		!VARATT_IS_4B_U(data) || VARSIZE(data) != size)
		return false;
	n = (size - VARHDRSZ) / sizeof(uint16);
	if ((words[0] & 0xC000) == 0xC000) /* not a number, or infinite */
		return false;
	header = (words[0] & 0xC000) == 0x8000 ? 1 : 2;
	if (n < header)
		return false;
	for (uint32 i = header; i < n; i++)
		if (words[i] > 9999)
			return false;
	return n == header || (words[header] != 0 && words[n - 1] != 0);
}

/* Checks what is from begin to end; numbers and containers are aligned. */
static bool
check_entry(JEntry entry, const char *data, uint32 begin, uint32 end)
{
	uint32 aligned = INTALIGN(begin);

	if (JBE_ISSTRING(entry))
		return pg_verify_mbstr(GetDatabaseEncoding(), data + begin,
							   end - begin, true);
	if (JBE_ISBOOL(entry) || JBE_ISNULL(entry))
		return begin == end;
	if (aligned > end)
		return false;
	if (JBE_ISNUMERIC(entry))
		return check_number(data + aligned, end - aligned);
	return JBE_ISCONTAINER(entry) &&
		   check_container((const JsonbContainer *) (data + aligned),
						   end - aligned, false);
}

/* Returns whether the header of a container of that many bytes is one. */
static bool
check_header(uint32 header, uint32 size, bool is_root)
{
	uint32 kind = header & ~JB_CMASK;
	uint32 n = header & JB_CMASK;

	if (kind == (JB_FARRAY | JB_FSCALAR))
		return is_root && n == 1 && size >= sizeof(JEntry);
	if (kind == JB_FOBJECT)
		n *= 2;
	else if (kind != JB_FARRAY)
		return false;
	return n <= size / sizeof(JEntry);
}

/*
 * Returns whether these bytes are an array, an object or, as the root, a scalar,
 * and nothing more.  An entry has its length, or where it ends.
 */
static bool
check_container(const JsonbContainer *container, uint32 size, bool is_root)
{
	uint32 n;
	uint32 keys;
	uint32 begin = 0;
	const char *data;

	check_stack_depth();
	if (size < sizeof(uint32) ||
		!check_header(container->header, size - sizeof(uint32), is_root))
		return false;
	keys = JsonContainerIsObject(container) ? JsonContainerSize(container) : 0;
	n = keys + JsonContainerSize(container);
	data = (const char *) &container->children[n];
	size -= data - (const char *) container;
	for (uint32 i = 0; i < n; i++)
	{
		JEntry entry = container->children[i];
		uint32 end = JBE_OFFLENFLD(entry);

		if (!JBE_HAS_OFF(entry))
			end += begin;
		if (end < begin || end > size || (i < keys && !JBE_ISSTRING(entry)) ||
			(JsonContainerIsScalar(container) && JBE_ISCONTAINER(entry)) ||
			!check_entry(entry, data, begin, end))
			return false;
		begin = end;
	}
	return begin == size;
}

/* Returns the value of these bytes; NULL if they are none. */
Jsonb *
tq_jsonb_of_hex(const char *hex)
{
	size_t digits = strlen(hex);
	Jsonb *value = palloc(VARHDRSZ + digits / 2);
	uint32 size = hex_decode(hex, digits, VARDATA(value));

	SET_VARSIZE(value, VARHDRSZ + size);
	return check_container(&value->root, size, true) ? value : NULL;
}
