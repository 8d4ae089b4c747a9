/*
 * error.c
 *	  How values of users are shown in errors.
 *
 * Room 1.  An error repeats what was given, but not a megabyte of it.
 */
#include "plumbing.h"

#include "mb/pg_wchar.h"

#define SHOWN_BYTES 100
#define LIST_BYTES 1000

/* The text, or its beginning. */
char *
tq_error_clip(const char *text)
{
	int length = strlen(text);

	if (length <= SHOWN_BYTES)
		return pstrdup(text);
	return psprintf("%.*s...", pg_mbcliplen(text, length, SHOWN_BYTES), text);
}

/* Add a name to a list, which ends in dots once it is long enough. */
void
tq_error_list(StringInfo list, const char *separator, const char *name)
{
	if (list->len > LIST_BYTES)
	{
		if (list->data[list->len - 1] != '.')
			appendStringInfo(list, "%s...", separator);
		return;
	}
	appendStringInfo(list, "%s%s", list->len > 0 ? separator : "", name);
}
