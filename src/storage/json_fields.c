/*
 * json_fields.c
 *	  Reads JSON objects into structs, field by field.
 *
 * For policies and for settings of queues.  It raises no error, but returns a
 * text that says what is wrong, because only the caller knows what the object
 * belongs to.  A field that is absent or null keeps the value that the struct
 * had before.
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "../core/types.h"
#include "../util/util.h"
#include "registry.h"

#define LONGEST_SECONDS PG_INT32_MAX
#define LONGEST_MS (LONGEST_SECONDS * INT64CONST(1000))
#define DURATION                                                              \
	"from 0 to 2147483647 seconds, as a number or as interval text"

/* ---- numbers ---- */

/* Reads a number into an int. */
const char *
tq_field_count(const JsonbValue *value, void *place)
{
	int64 number;

	if (!tq_json_whole_number(value, 0, PG_INT32_MAX, &number))
		return "is a whole number from 0 to 2147483647";
	*(int *) place = (int) number;
	return NULL;
}

/* ---- durations ---- */

/* Calls a numeric function of two arguments. */
static Datum
compute(PGFunction function, Numeric number, int64 argument)
{
	return DirectFunctionCall2(function, NumericGetDatum(number),
							   NumericGetDatum(int64_to_numeric(argument)));
}

/*
 * Returns seconds in milliseconds, truncated as all times are; TQ_OFF if out
 * of range, as NaN is, which sorts above all numbers.
 */
static int64
seconds_to_ms(Numeric seconds)
{
	Datum ms;

	if (!DatumGetBool(compute(numeric_ge, seconds, 0)) ||
		!DatumGetBool(compute(numeric_le, seconds, LONGEST_SECONDS)))
		return TQ_OFF;
	ms = compute(numeric_mul, seconds, 1000);
	ms = DirectFunctionCall2(numeric_trunc, ms, Int32GetDatum(0));
	return DatumGetInt64(DirectFunctionCall1(numeric_int8, ms));
}

static bool
read_duration(const JsonbValue *value, int64 *ms)
{
	int64 read = TQ_OFF;

	if (value->type == jbvNumeric)
		read = seconds_to_ms(value->val.numeric);
	else if (value->type != jbvString ||
			 !tq_clock_parse_span(value->val.string.val, value->val.string.len,
								  &read))
		return false;
	if (read < 0 || read > LONGEST_MS)
		return false;
	*ms = read;
	return true;
}

/*
 * Reads a number of seconds, or interval text, as milliseconds.  Returns NULL,
 * or what is wrong with it, as a text that follows its key in an error.
 */
const char *
tq_duration_parse(const JsonbValue *value, int64 *ms)
{
	return read_duration(value, ms) ? NULL : "must be " DURATION;
}

/* Reads a duration into an int64_t, as milliseconds. */
const char *
tq_field_time(const JsonbValue *value, void *place)
{
	int64 ms;

	if (!read_duration(value, &ms))
		return "is " DURATION;
	*(int64_t *) place = ms;
	return NULL;
}

/* ---- words ---- */

/* Reads a bool. */
const char *
tq_field_flag(const JsonbValue *value, void *place)
{
	if (value->type != jbvBool)
		return "is true or false";
	*(bool *) place = value->val.boolean;
	return NULL;
}

/* ---- objects ---- */

/* Returns a fault, with the value unless it is an object or an array. */
static char *
must_have(const char *key, const char *rule, const JsonbValue *value)
{
	return psprintf("must have %s \"%s\" that %s%s%s",
					strchr("aeiou", key[0]) != NULL ? "an" : "a", key, rule,
					value->type == jbvBinary ? "" : ", not ",
					value->type == jbvBinary ? "" : tq_json_shown(value));
}

static const char *
read_field(const TqField *fields, int n, const JsonbValue *key,
		   const JsonbValue *value, void *base)
{
	const char *rule;

	for (int i = 0; i < n; i++)
	{
		if (!tq_json_has_text(key, fields[i].key))
			continue;
		if (value->type == jbvNull)
			return NULL;
		rule = fields[i].read(value, (char *) base + fields[i].place);
		return rule == NULL ? NULL : must_have(fields[i].key, rule, value);
	}
	return psprintf("must not have the key \"%s\"",
					tq_error_clip(tq_json_string_of(key)));
}

/*
 * Reads every key of an object; nested values are for the reader of their key.
 * Returns NULL, or all that is wrong.
 */
const char *
tq_fields_read(const JsonbContainer *object, const TqField *fields, int n,
			   void *base)
{
	TqJsonIterator it = tq_json_iterate(object);
	StringInfoData faults = {0};

	while (tq_json_next(&it))
	{
		const char *fault = read_field(fields, n, &it.key, &it.value, base);

		if (fault == NULL)
			continue;
		if (faults.data == NULL)
			initStringInfo(&faults);
		tq_error_list(&faults, ", and ", fault);
	}
	return faults.data;
}
