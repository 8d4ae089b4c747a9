/*
 * error.c
 *	  Shortens values of clients for error messages.
 *
 * Room 1.  An error message repeats a value that a client gave, but only its
 * first bytes.
 */
#include "plumbing.h"

#include "mb/pg_wchar.h"

#define SHOWN_BYTES 100
#define LIST_BYTES 1000

/* Returns a copy of the text, shortened to SHOWN_BYTES. */
char *
tq_error_clip(const char *text)
{
	int length = strlen(text);

	if (length <= SHOWN_BYTES)
		return pstrdup(text);
	return psprintf("%.*s...", pg_mbcliplen(text, length, SHOWN_BYTES), text);
}

/*
 * Appends a name to a list; a list that has become long ends in dots instead.
 */
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
