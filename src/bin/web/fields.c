/*
 * fields.c
 *	  What a form or a query says: application/x-www-form-urlencoded.
 *
 * A value that the database would not take, because it is not UTF-8 or has a NUL, makes
 * the whole one bad.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web.h"

#define FIELDS_MAX                                                            \
	1200 /* 1,000 ticked rows, and what a form has beside them */

static int
hexadecimal(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit |= 0x20;
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Decodes a text in its place; returns whether the database would take it. */
static bool
decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from != '\0'; from++)
	{
		if (*from == '%')
		{
			int high = hexadecimal(from[1]);
			int low = high < 0 ? -1 : hexadecimal(from[2]);

			if (low < 0 || (high == 0 && low == 0))
				return false;
			*to++ = (char) (high * 16 + low);
			from += 2;
		}
		else
			*to++ = *from == '+' ? ' ' : *from;
	}
	*to = '\0';
	return text_is_clean(text, to - text);
}

/* Frees it; a password may have been in it. */
void
fields_free(Fields *fields)
{
	if (fields->text != NULL)
		explicit_bzero(fields->text, fields->length);
	free(fields->text);
	free(fields->all);
	memset(fields, 0, sizeof(*fields));
}

/* Reads the parts between each "&"; returns whether all are well-formed. */
static bool
read_parts(Fields *fields)
{
	char *at = fields->text;

	for (int i = 0; i < fields->n; i++)
	{
		Field *field = &fields->all[i];
		char *part = strsep(&at, "&");

		field->name = strsep(&part, "=");
		field->value = part == NULL ? field->name + strlen(field->name) : part;
		if (!decode(field->name) || !decode(field->value))
			return false;
	}
	return true;
}

/* Reads "a=b&c=d"; returns whether it is well-formed.  If not, there are no fields. */
bool
fields_read(Fields *fields, const char *text, size_t length)
{
	memset(fields, 0, sizeof(*fields));
	if (length == 0)
		return true;
	if (memchr(text, '\0', length) != NULL)
		return false;
	fields->text = allocate(length + 1);
	fields->length = length;
	memcpy(fields->text, text, length);
	fields->n = 1;
	for (const char *at = text; at < text + length; at++)
		fields->n += *at == '&';
	if (fields->n <= FIELDS_MAX)
	{
		fields->all = allocate(fields->n * sizeof(Field));
		if (read_parts(fields))
			return true;
	}
	fields_free(fields);
	return false;
}

/* Returns the first value of that name, or NULL. */
const char *
fields_get(const Fields *fields, const char *name)
{
	if (fields->all == NULL)
		return NULL;
	for (int i = 0; i < fields->n; i++)
		if (strcmp(fields->all[i].name, name) == 0)
			return fields->all[i].value;
	return NULL;
}

/* Appends a text as a part of a URL. */
void
url_add(Buffer *url, const char *text)
{
	for (; *text != '\0'; text++)
	{
		unsigned char byte = (unsigned char) *text;

		if ((byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
			(byte >= 'a' && byte <= 'z') || strchr("-_.~/*:", byte) != NULL)
			buffer_add(url, text, 1);
		else
			buffer_put(url, "%%%02X", byte);
	}
}

/* Returns a path with names and values, of which a NULL is left out. */
char *
url_of(const char *path, ...)
{
	Buffer url = {0};
	const char *name;
	char mark = strchr(path, '?') == NULL ? '?' : '&';
	va_list arguments;

	buffer_put(&url, "%s", path);
	va_start(arguments, path);
	while ((name = va_arg(arguments, const char *)) != NULL)
	{
		const char *value = va_arg(arguments, const char *);

		if (value == NULL)
			continue;
		buffer_put(&url, "%c%s=", mark, name);
		url_add(&url, value);
		mark = '&';
	}
	va_end(arguments);
	return url.data;
}
