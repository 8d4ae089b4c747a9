/*
 * cron_payload.c
 *	  Fields in the payload of a recurring task (doc/spec/policy.md 15.4).
 *
 * A string that is a field and nothing else is replaced, at any depth.  Keys
 * stay as they are.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/jsonfuncs.h"

#include "../util/util.h"
#include "engine.h"

/* Returns what a field stands for, or NULL for another text. */
static const char *
value_of(const char *text, const TqCronFields *fields)
{
	if (strcmp(text, "$scheduled") == 0)
		return tq_clock_text(fields->scheduled);
	if (strcmp(text, "$previous") == 0)
		return tq_clock_text(fields->previous);
	if (strcmp(text, "$fired") == 0)
		return tq_clock_text(fields->fired);
	if (strcmp(text, "$name") == 0)
		return fields->name;
	return NULL;
}

/* Replaces a string; one more dollar sign in front of a field is removed. */
static text *
replace(void *arg, char *string, int length)
{
	const TqCronFields *fields = arg;
	char *given = pnstrdup(string, length);
	const char *value = value_of(given, fields);

	if (value == NULL && given[0] == '$' &&
		value_of(given + 1, fields) != NULL)
		value = given + 1;
	return cstring_to_text(value == NULL ? given : value);
}

/* Returns a payload with the values of its fields. */
Jsonb *
tq_cron_payload(const Jsonb *payload, const TqCronFields *fields)
{
	return transform_jsonb_string_values(unconstify(Jsonb *, payload),
										 unconstify(TqCronFields *, fields),
										 replace);
}
