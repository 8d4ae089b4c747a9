/*
 * json_reader.c
 *	  Reads values out of JSON objects, key by key.
 *
 * Most functions return whether a value is of a kind.  Those of a TqJsonReader
 * raise the caller's error if it is not, and treat an absent key as valid.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "mb/pg_wchar.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "clock.h"
#include "json_reader.h"
#include "slugid.h"

/* ---- keys ---- */

/* Returns the value of a key of an object, or NULL. */
JsonbValue *
tq_json_member(const JsonbContainer *object, const char *key)
{
	return getKeyJsonValueFromContainer(unconstify(JsonbContainer *, object),
										key, strlen(key), NULL);
}

/* Returns the value of a key of an object, or NULL. */
JsonbValue *
tq_json_get(const Jsonb *object, const char *key)
{
	return tq_json_member(&object->root, key);
}

/* Returns the string value of a key, or NULL. */
char *
tq_json_get_text(const Jsonb *object, const char *key)
{
	JsonbValue *value = tq_json_get(object, key);

	return value == NULL ? NULL : tq_json_string_of(value);
}

/* Returns an object, or NULL for NULL or an object without keys. */
Jsonb *
tq_json_unless_empty(Jsonb *object)
{
	return object != NULL && JB_ROOT_COUNT(object) == 0 ? NULL : object;
}

/* ---- values ---- */

/* Returns a copy of a string, or NULL for another kind of value. */
char *
tq_json_string_of(const JsonbValue *value)
{
	if (value->type != jbvString)
		return NULL;
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/* Returns whether a string, which need not end in a zero byte, is this one. */
bool
tq_json_has_text(const JsonbValue *value, const char *text)
{
	return strlen(text) == (size_t) value->val.string.len &&
		   memcmp(text, value->val.string.val, value->val.string.len) == 0;
}

/* Returns whether a value is a string of at most so many characters. */
bool
tq_json_is_string(const JsonbValue *value, int max)
{
	return value->type == jbvString &&
		   pg_mbstrlen_with_len(value->val.string.val,
								value->val.string.len) <= max;
}

bool
tq_json_is_object(const JsonbValue *value)
{
	return value->type == jbvBinary &&
		   JsonContainerIsObject(value->val.binary.data);
}

bool
tq_json_is_array(const JsonbValue *value)
{
	return value->type == jbvBinary &&
		   JsonContainerIsArray(value->val.binary.data);
}

/*
 * Parses a whole number; returns false for other text, such as that of a
 * number with decimals, and for a number that int64 cannot hold.
 */
bool
tq_json_parse_whole(const char *text, int64 *number)
{
	char *end;

	errno = 0;
	*number = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0' && end != text &&
		   strchr("-0123456789", *text) != NULL;
}

/* Reads a whole number in the range; returns false for any other value. */
bool
tq_json_whole_number(const JsonbValue *value, int64 min, int64 max,
					 int64 *number)
{
	return value->type == jbvNumeric &&
		   tq_json_parse_whole(numeric_normalize(value->val.numeric),
							   number) &&
		   *number >= min && *number <= max;
}

/* ---- members and elements ---- */

/* Returns an iterator before the first member or element. */
TqJsonIterator
tq_json_iterate(const JsonbContainer *container)
{
	return (TqJsonIterator){
		.next = JsonbIteratorInit(unconstify(JsonbContainer *, container))};
}

/* Moves on to the next member or element; returns false after the last. */
bool
tq_json_next(TqJsonIterator *iterator)
{
	JsonbIteratorToken token;

	while ((token = JsonbIteratorNext(&iterator->next, &iterator->value,
									  true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			iterator->key = iterator->value;
		else if (token == WJB_VALUE || token == WJB_ELEM)
			return true;
	}
	return false;
}

/* ---- objects of which every value must be valid ---- */

/* Returns the string at that key, or NULL if the key is absent. */
char *
tq_json_read_string(const TqJsonReader *reader, const char *key)
{
	JsonbValue *value = tq_json_get(reader->json, key);
	char *text = value == NULL ? NULL : tq_json_string_of(value);

	if (value != NULL && text == NULL)
		reader->refuse(reader, key, "must be a string");
	return text;
}

/*
 * Returns the strings of the array at that key, or NULL if the key is absent.
 */
char **
tq_json_read_strings(const TqJsonReader *reader, const char *key, int *n)
{
	static const char *const rule = "must be an array of strings";
	JsonbValue *value = tq_json_get(reader->json, key);
	TqJsonIterator it;
	char **items;

	*n = 0;
	if (value == NULL)
		return NULL;
	if (!tq_json_is_array(value))
		reader->refuse(reader, key, rule);
	it = tq_json_iterate(value->val.binary.data);
	items = palloc(sizeof(char *) *
				   (JsonContainerSize(value->val.binary.data) + 1));
	while (tq_json_next(&it))
	{
		items[*n] = tq_json_string_of(&it.value);
		if (items[(*n)++] == NULL)
			reader->refuse(reader, key, rule);
	}
	return items;
}

/* Reads the date-time at that key; returns false if the key is absent. */
bool
tq_json_read_time(const TqJsonReader *reader, const char *key, TimestampTz *t)
{
	char *text = tq_json_read_string(reader, key);

	if (text != NULL && !tq_clock_parse(text, strlen(text), t))
		reader->refuse(reader, key,
					   "must be a date-time such as 2026-01-31T12:00:00.000Z");
	return text != NULL;
}

/* Reads the slugid at that key; returns false if the key is absent. */
bool
tq_json_read_slug(const TqJsonReader *reader, const char *key, TqSlug *slug)
{
	char *text = tq_json_read_string(reader, key);

	if (text != NULL && !tq_slug_parse(text, strlen(text), slug))
		reader->refuse(reader, key, "must be a slugid");
	return text != NULL;
}

/* Returns the object at that key, or NULL if the key is absent. */
Jsonb *
tq_json_read_object(const TqJsonReader *reader, const char *key)
{
	JsonbValue *value = tq_json_get(reader->json, key);

	if (value == NULL)
		return NULL;
	if (!tq_json_is_object(value))
		reader->refuse(reader, key, "must be an object");
	return JsonbValueToJsonb(value);
}
