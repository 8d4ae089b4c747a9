/*
 * json_writer.c
 *	  Builds JSON objects, key by key.
 *
 * Times are written in UTC with milliseconds, and slugids as text.  An absent
 * time (0) is left out; an absent object or array (NULL) is empty.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/array.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "util.h"

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

/* Appends a key and null. */
void
tq_json_add_null(JsonbParseState **state, const char *key)
{
	JsonbValue value = {.type = jbvNull};

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
	if (t != 0)
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
