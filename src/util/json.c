/*
 * json.c
 *	  Reads values out of JSON objects, key by key, and builds objects.
 *
 * Most functions that read return whether a value is of a kind.  Those of a
 * TqJsonReader raise the caller's error if it is not, and treat an absent key
 * as valid.
 *
 * Times are written in UTC with milliseconds, and slugids as text.  An absent
 * time (0) is left out; an absent object or array (NULL) is empty.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/numeric.h"

#include "util.h"

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

/* Returns a number as a double; one that is too large is infinite. */
double
tq_json_double(const JsonbValue *number)
{
	return DatumGetFloat8(
		DirectFunctionCall1(numeric_float8_no_overflow,
							NumericGetDatum(number->val.numeric)));
}

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
		   (value->val.string.len <= max ||
			pg_mbstrlen_with_len(value->val.string.val,
								 value->val.string.len) <= max);
}

bool
tq_json_is_object(const JsonbValue *value)
{
	return value->type == jbvBinary &&
		   JsonContainerIsObject(value->val.binary.data);
}

/* Returns whether this is the scalar null. */
bool
tq_json_is_null(const Jsonb *json)
{
	JsonbValue value;

	return JB_ROOT_IS_SCALAR(json) &&
		   JsonbExtractScalar(unconstify(JsonbContainer *, &json->root),
							  &value) &&
		   value.type == jbvNull;
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
static bool
parse_whole(const char *text, int64 *number)
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
		   parse_whole(numeric_normalize(value->val.numeric), number) &&
		   *number >= min && *number <= max;
}

/* ---- members and elements ---- */

/* Returns an iterator before the first member or element. */
TqJsonIterator
tq_json_iterate(const JsonbContainer *container)
{
	int n = JsonContainerSize(container);
	bool is_object = JsonContainerIsObject(container);
	const JEntry *end = container->children + (is_object ? 2 * n : n);

	return (TqJsonIterator){.container = container,
							.data = (const char *) end,
							.n = n,
							.value_at = is_object
											? getJsonbOffset(container, n)
											: 0};
}

/*
 * Reads a child, which begins at an offset in the data, and moves the offset to
 * the next one.  This is what JsonbIteratorNext() does with a child, which
 * takes four times as long because it can descend into it.
 */
static void
read_child(const TqJsonIterator *iterator, int child, uint32 *offset,
		   JsonbValue *value)
{
	JEntry entry = iterator->container->children[child];
	const char *start = iterator->data + *offset;
	const char *aligned = iterator->data + INTALIGN(*offset);

	JBE_ADVANCE_OFFSET(*offset, entry);
	if (JBE_ISSTRING(entry))
	{
		value->type = jbvString;
		value->val.string.val = unconstify(char *, start);
		value->val.string.len = (int) (iterator->data + *offset - start);
	}
	else if (JBE_ISNUMERIC(entry))
	{
		value->type = jbvNumeric;
		value->val.numeric = (Numeric) unconstify(char *, aligned);
	}
	else if (JBE_ISBOOL(entry))
	{
		value->type = jbvBool;
		value->val.boolean = JBE_ISBOOL_TRUE(entry);
	}
	else if (JBE_ISNULL(entry))
		value->type = jbvNull;
	else
	{
		value->type = jbvBinary;
		value->val.binary.data = (JsonbContainer *) unconstify(char *,
															   aligned);
		value->val.binary.len = (int) (iterator->data + *offset - aligned);
	}
}

/* Moves on to the next member or element; returns false after the last. */
bool
tq_json_next(TqJsonIterator *iterator)
{
	int child = iterator->next;

	if (child == iterator->n)
		return false;
	if (JsonContainerIsObject(iterator->container))
	{
		read_child(iterator, child, &iterator->key_at, &iterator->key);
		child += iterator->n;
	}
	read_child(iterator, child, &iterator->value_at, &iterator->value);
	iterator->next++;
	return true;
}

/* ---- size as text ---- */

/*
 * Returns how many characters a number has as text.  A few stored bytes may be
 * many characters, such as those of 1e131071.  A numeric of jsonb is finite, and
 * has a length word and a header of one or two words of 16 bits before its
 * digits to the base of 10000, as numeric.c describes.
 */
static Size
number_size(const char *data, uint32 length)
{
	const uint16 *words = (const uint16 *) (data + VARHDRSZ);
	bool is_short = (words[0] & 0x8000) != 0;
	int header = is_short ? 1 : 2;
	int ndigits = (int) (length - VARHDRSZ) / 2 - header;
	int scale = is_short ? (words[0] & 0x1F80) >> 7 : words[0] & 0x3FFF;
	int weight = (int16) words[1];
	bool is_negative = (words[0] & (is_short ? 0x2000 : 0x4000)) != 0;
	int leading;

	if (is_short)
		weight = (words[0] & 0x40 ? ~0x3F : 0) | (words[0] & 0x3F);
	if (ndigits == 0 || weight < 0)
		return is_negative + 1 + (scale > 0) + scale;
	leading = words[header];
	return is_negative + 4 * (Size) weight +
		   (leading < 10     ? 1
			: leading < 100  ? 2
			: leading < 1000 ? 3
							 : 4) +
		   (scale > 0) + scale;
}

/* The characters that a byte of a string may become: \u001f. */
#define ESCAPED_MAX 6

/* Returns how many characters a byte of a string becomes. */
static inline Size
escaped_size(unsigned char c)
{
	if (c >= ' ' && c != '"' && c != '\\')
		return 1;
	return c >= ' ' || strchr("\b\f\n\r\t", c) != NULL ? 2 : ESCAPED_MAX;
}

/* Returns how many characters a string has in quotation marks, escaped. */
static Size
string_size(const char *data, uint32 length)
{
	Size size = 2;

	for (uint32 i = 0; i < length; i++)
		size += escaped_size(data[i]);
	return size;
}

/* Arrays and objects within each other: decoders of clients bear fewer than jsonb. */
#define LEVELS_MAX 500

static Size size_at(const JsonbContainer *json, bool is_exact, int level);

/* Returns the size of a child whose bytes are from begin to end. */
static Size
child_size(JEntry entry, const char *data, uint32 begin, uint32 end,
		   bool is_exact, int level)
{
	uint32 aligned = INTALIGN(begin);

	if (JBE_ISSTRING(entry))
		return is_exact ? string_size(data + begin, end - begin)
						: 2 + ESCAPED_MAX * (Size) (end - begin);
	if (JBE_ISNUMERIC(entry))
		return number_size(data + aligned, end - aligned);
	if (JBE_ISNULL(entry) || JBE_ISBOOL_TRUE(entry))
		return 4;
	if (JBE_ISBOOL_FALSE(entry))
		return 5;
	return size_at((const JsonbContainer *) (data + aligned), is_exact,
				   level + 1);
}

/* Returns the size of an array or object with so many others around it. */
static Size
size_at(const JsonbContainer *json, bool is_exact, int level)
{
	uint32 n = JsonContainerSize(json) * (JsonContainerIsObject(json) ? 2 : 1);
	const char *data = (const char *) &json->children[n];
	uint32 begin = 0;
	Size size = JsonContainerIsScalar(json) ? 0 : 2 * Max((Size) n, 1);

	if (level >= LEVELS_MAX)
		ereport(
			ERROR,
			(errcode(ERRCODE_TQ_BAD_INPUT),
			 errmsg("JSON is nested too deeply"),
			 errdetail(
				 "It has more than %d arrays and objects within each other.",
				 LEVELS_MAX),
			 errhint(
				 "Give it as a string, or keep it elsewhere and give its location.")));
	for (uint32 i = 0; i < n; i++)
	{
		uint32 end = begin;

		JBE_ADVANCE_OFFSET(end, json->children[i]);
		size += child_size(json->children[i], data, begin, end, is_exact,
						   level);
		begin = end;
	}
	return size;
}

/*
 * Returns how many bytes JSON has as text, as clients and pg_dump read it:
 * brackets, the children, and their separators of two characters each.  Unless
 * is_exact, returns a size that is not exceeded: it does not read strings, so
 * that it costs little where a limit is far away.  Raises TQ400 if it has more
 * levels than clients can be expected to read.
 */
Size
tq_json_size(const JsonbContainer *json, bool is_exact)
{
	return size_at(json, is_exact, 0);
}

/* Returns the size as text if it is over a limit, else 0. */
Size
tq_json_size_over(const JsonbContainer *json, Size limit)
{
	Size size = tq_json_size(json, false) <= limit ? 0
												   : tq_json_size(json, true);

	return size > limit ? size : 0;
}

/* ---- errors ---- */

/* The largest JSON that is written as text in order to be shortened. */
#define SHOWN_MAX (1024 * 1024)

/* Returns JSON as text for an error, shortened. */
char *
tq_json_clip(const JsonbContainer *json)
{
	if (tq_json_size_over(json, SHOWN_MAX) > 0)
		return psprintf(JsonContainerIsArray(json) ? "an array of %u elements"
												   : "an object of %u keys",
						JsonContainerSize(json));
	return tq_error_clip(
		JsonbToCString(NULL, unconstify(JsonbContainer *, json), 64));
}

#define CUT "... [cut]"

/*
 * Returns a text of which at most so many bytes are to be kept, as a string of
 * JSON without its quotation marks: the whole, or its beginning with a mark.
 * A text that is no longer than the mark stays whole.
 */
char *
tq_json_cut(char *text, Size limit)
{
	Size size = 0;
	int kept = 0;

	limit = Max(limit, strlen(CUT));
	for (int i = 0; text[i] != '\0'; i++)
	{
		size += escaped_size(text[i]);
		if (size > limit)
			return psprintf("%.*s" CUT, pg_mbcliplen(text, i, kept), text);
		if (size + strlen(CUT) <= limit)
			kept = i + 1;
	}
	return text;
}

/* ---- objects of which every value must be valid ---- */

/*
 * Finds the values of the known keys of an object, in one pass over both, which
 * jsonb orders by length, then by bytes.  Returns false if the object has other
 * keys, the first of which is *unknown.
 */
bool
tq_json_open(TqJsonReader *reader, const JsonbContainer *object,
			 JsonbValue *unknown)
{
	TqJsonIterator it = tq_json_iterate(object);
	bool all_known = true;
	int at = 0;

	Assert(reader->nkeys <= TQ_JSON_KEYS_MAX);
	reader->present = 0;
	while (tq_json_next(&it))
	{
		int len = it.key.val.string.len;
		int order = -1;

		for (; at < reader->nkeys; at++)
		{
			order = len - reader->keys[at].len;
			if (order == 0)
				order = memcmp(it.key.val.string.val, reader->keys[at].name,
							   len);
			if (order <= 0)
				break;
		}
		if (order == 0)
		{
			reader->values[at] = it.value;
			reader->present |= 1u << at++;
		}
		else if (all_known)
		{
			*unknown = it.key;
			all_known = false;
		}
	}
	return all_known;
}

/* Returns the value of a key, or NULL if it is absent. */
const JsonbValue *
tq_json_at(const TqJsonReader *reader, int key)
{
	return (reader->present & 1u << key) != 0 ? &reader->values[key] : NULL;
}

/* The same of a value. */
char *
tq_json_shown(const JsonbValue *value)
{
	return tq_json_clip(
		&JsonbValueToJsonb(unconstify(JsonbValue *, value))->root);
}

/* Refuses the value of a key, which is shown. */
static void
json_refuse(const TqJsonReader *reader, int key, const char *rule)
{
	reader->refuse(reader, reader->keys[key].name,
				   psprintf("%s; it is %s", rule,
							tq_json_shown(tq_json_at(reader, key))));
}

/* Returns the value of a key, which must be a string, or NULL. */
static const JsonbValue *
string_at(const TqJsonReader *reader, int key)
{
	const JsonbValue *value = tq_json_at(reader, key);

	if (value == NULL || value->type == jbvString)
		return value;
	json_refuse(reader, key, "must be a string");
	return NULL;
}

/* Returns the string at that key, or NULL if the key is absent. */
char *
tq_json_read_string(const TqJsonReader *reader, int key)
{
	const JsonbValue *value = string_at(reader, key);

	return value == NULL ? NULL : tq_json_string_of(value);
}

/*
 * Returns the strings of the array at that key, or NULL if the key is absent.
 */
char **
tq_json_read_strings(const TqJsonReader *reader, int key, int *n)
{
	static const char *const rule = "must be an array of strings";
	const JsonbValue *value = tq_json_at(reader, key);
	TqJsonIterator it;
	char **items;

	*n = 0;
	if (value == NULL)
		return NULL;
	if (!tq_json_is_array(value))
	{
		json_refuse(reader, key, rule);
		return NULL;
	}
	it = tq_json_iterate(value->val.binary.data);
	items = palloc(sizeof(char *) * (it.n + 1));
	while (tq_json_next(&it))
	{
		items[*n] = tq_json_string_of(&it.value);
		if (items[(*n)++] != NULL)
			continue;
		json_refuse(reader, key, rule);
		*n = 0;
		return NULL;
	}
	return items;
}

/* Reads the date-time at that key; returns false if the key is absent. */
bool
tq_json_read_time(const TqJsonReader *reader, int key, TimestampTz *t)
{
	const JsonbValue *value = string_at(reader, key);

	if (value != NULL &&
		!tq_clock_parse(value->val.string.val, value->val.string.len, t))
	{
		json_refuse(reader, key,
					"must be a date-time such as 2026-01-31T12:00:00.000Z");
		*t = DT_NOBEGIN;
	}
	return value != NULL;
}

/* Reads the slugid at that key; returns false if the key is absent. */
bool
tq_json_read_slug(const TqJsonReader *reader, int key, TqSlug *slug)
{
	const JsonbValue *value = string_at(reader, key);

	if (value != NULL &&
		!tq_slug_parse(value->val.string.val, value->val.string.len, slug))
		json_refuse(reader, key, "must be a slugid");
	return value != NULL;
}

/* Returns the value at that key, or NULL if the key is absent. */
Jsonb *
tq_json_read_any(const TqJsonReader *reader, int key)
{
	const JsonbValue *value = tq_json_at(reader, key);

	return value == NULL ? NULL
						 : JsonbValueToJsonb(unconstify(JsonbValue *, value));
}

/* Returns the object at that key, or NULL if the key is absent. */
Jsonb *
tq_json_read_object(const TqJsonReader *reader, int key)
{
	const JsonbValue *value = tq_json_at(reader, key);

	if (value == NULL)
		return NULL;
	if (!tq_json_is_object(value))
	{
		json_refuse(reader, key, "must be an object");
		return NULL;
	}
	return JsonbValueToJsonb(unconstify(JsonbValue *, value));
}

/* ---- build objects ---- */

/* Begins an object. */
JsonbParseState *
tq_json_begin(void)
{
	JsonbParseState *state = NULL;

	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	return state;
}

/* Appends a key. */
void
tq_json_key(JsonbParseState **state, const char *key)
{
	JsonbValue value = {.type = jbvString};

	value.val.string.val = unconstify(char *, key);
	value.val.string.len = strlen(key);
	pushJsonbValue(state, WJB_KEY, &value);
}

/* Appends a string, as a value or as an element of an array. */
void
tq_json_string(JsonbParseState **state, JsonbIteratorToken token,
			   const char *text)
{
	JsonbValue value = {.type = jbvString};

	value.val.string.val = unconstify(char *, text);
	value.val.string.len = strlen(text);
	pushJsonbValue(state, token, &value);
}

/* Appends a key and a string. */
void
tq_json_add_text(JsonbParseState **state, const char *key, const char *text)
{
	tq_json_key(state, key);
	tq_json_string(state, WJB_VALUE, text);
}

/* Appends a key and true or false. */
void
tq_json_add_bool(JsonbParseState **state, const char *key, bool flag)
{
	JsonbValue value = {.type = jbvBool};

	value.val.boolean = flag;
	tq_json_key(state, key);
	pushJsonbValue(state, WJB_VALUE, &value);
}

/* Appends a key and a whole number. */
void
tq_json_add_int(JsonbParseState **state, const char *key, int64 number)
{
	JsonbValue value = {.type = jbvNumeric};

	value.val.numeric = int64_to_numeric(number);
	tq_json_key(state, key);
	pushJsonbValue(state, WJB_VALUE, &value);
}

/*
 * Appends a key and milliseconds as seconds, with as few decimals as possible.
 */
void
tq_json_add_seconds(JsonbParseState **state, const char *key, int64 ms)
{
	JsonbValue value = {.type = jbvNumeric};
	int decimals = 3;

	while (decimals > 0 && ms % 10 == 0)
	{
		ms /= 10;
		decimals--;
	}
	value.val.numeric = int64_div_fast_to_numeric(ms, decimals);
	tq_json_key(state, key);
	pushJsonbValue(state, WJB_VALUE, &value);
}

/* Appends a key and a time, unless the time is 0. */
void
tq_json_add_time(JsonbParseState **state, const char *key, TimestampTz t)
{
	if (t != 0 && !TIMESTAMP_IS_NOEND(t))
		tq_json_add_text(state, key, tq_clock_text(t));
}

/* Appends a key and a slugid. */
void
tq_json_add_slug(JsonbParseState **state, const char *key, const TqSlug *slug)
{
	tq_json_add_text(state, key, tq_slug_text(slug));
}

/* Appends a key and a jsonb object, or {} for NULL. */
void
tq_json_add_object(JsonbParseState **state, const char *key, Jsonb *object)
{
	JsonbValue value;

	tq_json_key(state, key);
	if (object == NULL)
	{
		pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
		pushJsonbValue(state, WJB_END_OBJECT, NULL);
		return;
	}
	JsonbToJsonbValue(object, &value);
	pushJsonbValue(state, WJB_VALUE, &value);
}

/* Appends a key and a text[] as an array, or [] for NULL. */
void
tq_json_add_texts(JsonbParseState **state, const char *key, ArrayType *array)
{
	int n;
	char **texts = tq_texts_of_array(array, &n);

	tq_json_key(state, key);
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
		tq_json_string(state, WJB_ELEM, texts[i]);
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

/* Appends a key and an array of slugids. */
void
tq_json_add_slugs(JsonbParseState **state, const char *key,
				  const TqSlug *slugs, int n)
{
	tq_json_key(state, key);
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < n; i++)
		tq_json_string(state, WJB_ELEM, tq_slug_text(&slugs[i]));
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

/* Ends the outermost object, and returns it. */
Jsonb *
tq_json_end(JsonbParseState **state)
{
	return JsonbValueToJsonb(pushJsonbValue(state, WJB_END_OBJECT, NULL));
}
