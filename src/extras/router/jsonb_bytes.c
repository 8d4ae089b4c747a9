/*
 * jsonb_bytes.c
 *	  Reads jsonb values whose bytes a shard has sent (src/util/lines.c).
 *
 * The server has used the same form since 9.4.  But functions of the server trust
 * a value that is stored, so nothing becomes one here before every length, type,
 * string and number in it is known to be what they expect.  That the keys of an
 * object are in order is not: if they are not, an operator may not find one, and
 * does no harm.
 *
 * Both servers must have one byte order, and one encoding; the caller sees to it.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "router.h"

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
tq_router_jsonb_of_hex(const char *hex)
{
	size_t digits = strlen(hex);
	Jsonb *value = palloc(VARHDRSZ + digits / 2);
	uint32 size = hex_decode(hex, digits, VARDATA(value));

	SET_VARSIZE(value, VARHDRSZ + size);
	return check_container(&value->root, size, true) ? value : NULL;
}
