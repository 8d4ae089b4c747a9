/*
 * text.c
 *	  Memory, buffers, and as much of JSON as a worker needs.
 *
 * The database reads JSON.  A line of a command is checked here before, so that
 * one that is malformed spoils no call that carries others as well.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "program.h"

#define DEPTH_MAX 1000
#define CUT_MARK "\n... [%zu bytes cut]\n"

/* Returns memory of zeros, or ends the program. */
void *
allocate(size_t size)
{
	void *memory = calloc(1, size > 0 ? size : 1);

	if (memory == NULL)
	{
		fprintf(stderr, "%s: out of memory\n", program_name);
		exit(EX_OSERR);
	}
	return memory;
}

/* Returns a copy of a text; of NULL, NULL. */
char *
copy_text(const char *text)
{
	char *copy = text == NULL ? NULL : strdup(text);

	if (text != NULL && copy == NULL)
		abort();
	return copy;
}

/* Returns a text as printf() makes it. */
char *
format_text(const char *format, ...)
{
	va_list arguments;
	char *text = NULL;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		abort();
	va_end(arguments);
	return text;
}

/* Makes room for so many bytes more and a NUL. */
static void
buffer_reserve(Buffer *buffer, size_t length)
{
	size_t wanted = buffer->length + length + 1;

	if (wanted <= buffer->room)
		return;
	if (wanted < 2 * buffer->room)
		wanted = 2 * buffer->room;
	buffer->data = realloc(buffer->data, wanted);
	if (buffer->data == NULL)
		abort();
	buffer->room = wanted;
}

/* Appends bytes. */
void
buffer_add(Buffer *buffer, const char *data, size_t length)
{
	buffer_reserve(buffer, length);
	memcpy(buffer->data + buffer->length, data, length);
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
}

/* Appends a text as printf() makes it. */
void
buffer_put(Buffer *buffer, const char *format, ...)
{
	va_list arguments;
	int length = 0;

	do
	{
		buffer_reserve(buffer, length);
		va_start(arguments, format);
		length = vsnprintf(buffer->data + buffer->length,
						   buffer->room - buffer->length, format, arguments);
		va_end(arguments);
		if (length < 0)
			abort();
	} while (buffer->length + length >= buffer->room);
	buffer->length += length;
}

/* Frees what a buffer has; it is empty then. */
void
buffer_free(Buffer *buffer)
{
	free(buffer->data);
	memset(buffer, 0, sizeof(*buffer));
}

/* Appends to a text of which the beginning and the end are kept. */
void
cut_add(Cut *cut, const char *data, size_t length)
{
	size_t head = cut->head_limit - cut->head.length;

	if (head > length)
		head = length;
	if (head > 0)
		buffer_add(&cut->head, data, head);
	if (length == head)
		return;
	buffer_add(&cut->tail, data + head, length - head);
	if (cut->tail.length > 2 * cut->tail_limit)
	{
		size_t over = cut->tail.length - cut->tail_limit;

		memmove(cut->tail.data, cut->tail.data + over, cut->tail_limit + 1);
		cut->tail.length = cut->tail_limit;
		cut->lost += over;
	}
}

/* Returns it as a text that the server takes, and says where it was cut. */
char *
cut_text(const Cut *cut)
{
	size_t over = cut->tail.length > cut->tail_limit
					  ? cut->tail.length - cut->tail_limit
					  : 0;
	size_t lost = cut->lost + over;
	Buffer all = {0};
	char *text;

	if (cut->head.length > 0)
		buffer_add(&all, cut->head.data, cut->head.length);
	if (lost > 0 && cut->head_limit > 0)
		buffer_put(&all, CUT_MARK, lost);
	if (cut->tail.length > over)
		buffer_add(&all, cut->tail.data + over, cut->tail.length - over);
	text = clean_text(all.data != NULL ? all.data : "", all.length);
	buffer_free(&all);
	return text;
}

/* Frees what it has. */
void
cut_free(Cut *cut)
{
	buffer_free(&cut->head);
	buffer_free(&cut->tail);
	cut->lost = 0;
}

/* Returns the length of the UTF-8 character there, or 0 if it is none. */
static int
character_length(const unsigned char *text, size_t left)
{
	int length = text[0] < 0x80   ? 1
				 : text[0] < 0xC2 ? 0
				 : text[0] < 0xE0 ? 2
				 : text[0] < 0xF0 ? 3
				 : text[0] < 0xF5 ? 4
								  : 0;

	if (length == 0 || length > left || text[0] == 0)
		return 0;
	for (int i = 1; i < length; i++)
		if ((text[i] & 0xC0) != 0x80)
			return 0;
	if ((text[0] == 0xE0 && text[1] < 0xA0) ||
		(text[0] == 0xED && text[1] > 0x9F) ||
		(text[0] == 0xF0 && text[1] < 0x90) ||
		(text[0] == 0xF4 && text[1] > 0x8F))
		return 0;
	return length;
}

/* Returns whether the server takes these bytes as a text in UTF-8. */
bool
text_is_clean(const char *text, size_t length)
{
	for (size_t at = 0; at < length;)
	{
		int size = character_length((const unsigned char *) text + at,
									length - at);

		if (size == 0)
			return false;
		at += size;
	}
	return true;
}

/* Returns a text with "?" in place of each byte that is no UTF-8. */
char *
clean_text(const char *text, size_t length)
{
	char *clean = allocate(length + 1);

	for (size_t at = 0; at < length;)
	{
		int size = character_length((const unsigned char *) text + at,
									length - at);

		if (size == 0)
			clean[at++] = '?';
		else
		{
			memcpy(clean + at, text + at, size);
			at += size;
		}
	}
	return clean;
}

/* Appends a text as a string of JSON. */
void
json_put_text(Buffer *buffer, const char *text)
{
	const char *rest = text;

	buffer_add(buffer, "\"", 1);
	while (*rest != '\0')
	{
		size_t plain = 0;

		while ((unsigned char) rest[plain] >= ' ' && rest[plain] != '"' &&
			   rest[plain] != '\\')
			plain++;
		buffer_add(buffer, rest, plain);
		rest += plain;
		if (*rest != '\0')
			buffer_put(buffer, "\\u%04x", (unsigned char) *rest++);
	}
	buffer_add(buffer, "\"", 1);
}

/* Appends a member of an object, with a comma before it, unless it is NULL. */
void
json_put_key(Buffer *buffer, const char *key, const char *text)
{
	if (text == NULL)
		return;
	buffer_put(buffer, ", \"%s\": ", key);
	json_put_text(buffer, text);
}

/* ---- syntax: each returns where what it reads ends, or NULL ---- */

static const char *read_value(const char *at, int depth);

static const char *
skip_space(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* Reads the four digits of \u: jsonb has no NUL, and no half of a character. */
static const char *
read_unicode(const char *at)
{
	unsigned int code;
	unsigned int low;

	if (strspn(at, "0123456789abcdefABCDEF") < 4 ||
		sscanf(at, "%4x", &code) != 1 || code == 0)
		return NULL;
	at += 4;
	if (code < 0xD800 || code > 0xDFFF)
		return at;
	if (code > 0xDBFF || at[0] != '\\' || at[1] != 'u' ||
		strspn(at + 2, "0123456789abcdefABCDEF") < 4 ||
		sscanf(at + 2, "%4x", &low) != 1 || low < 0xDC00 || low > 0xDFFF)
		return NULL;
	return at + 6;
}

static const char *
read_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	while (at != NULL && *at != '"')
	{
		if ((unsigned char) *at < ' ')
			return NULL;
		if (*at++ != '\\')
			continue;
		if (*at == 'u')
			at = read_unicode(at + 1);
		else if (*at == '\0' || strchr("\"\\/bfnrt", *at) == NULL)
			return NULL;
		else
			at++;
	}
	return at == NULL ? NULL : at + 1;
}

static const char *
read_digits(const char *at)
{
	size_t n = strspn(at, "0123456789");

	return n == 0 ? NULL : at + n;
}

static const char *
read_number(const char *at)
{
	if (*at == '-')
		at++;
	at = *at == '0' ? at + 1 : read_digits(at);
	if (at != NULL && *at == '.')
		at = read_digits(at + 1);
	if (at != NULL && (*at == 'e' || *at == 'E'))
		at = read_digits(at + 1 + (at[1] == '+' || at[1] == '-'));
	return at;
}

/* Reads a key and its colon. */
static const char *
read_key(const char *at)
{
	at = read_string(skip_space(at));
	if (at == NULL)
		return NULL;
	at = skip_space(at);
	return *at == ':' ? at + 1 : NULL;
}

/* Reads the elements of an array, or the members of an object. */
static const char *
read_many(const char *at, char end, int depth)
{
	at = skip_space(at + 1);
	if (*at == end)
		return at + 1;
	for (;;)
	{
		if (end == '}')
			at = read_key(at);
		if (at != NULL)
			at = read_value(at, depth + 1);
		if (at == NULL)
			return NULL;
		at = skip_space(at);
		if (*at == end)
			return at + 1;
		if (*at++ != ',')
			return NULL;
	}
}

static const char *
read_value(const char *at, int depth)
{
	at = skip_space(at);
	if (depth > DEPTH_MAX)
		return NULL;
	if (*at == '{' || *at == '[')
		return read_many(at, *at == '{' ? '}' : ']', depth);
	if (*at == '"')
		return read_string(at);
	if (strncmp(at, "true", 4) == 0 || strncmp(at, "null", 4) == 0)
		return at + 4;
	if (strncmp(at, "false", 5) == 0)
		return at + 5;
	return read_number(at);
}

/* Returns where the value that a text begins with ends, or NULL. */
const char *
json_value_end(const char *text)
{
	return text_is_clean(text, strlen(text)) ? read_value(text, 0) : NULL;
}

/* Returns whether a text is one value of JSON that jsonb takes. */
bool
json_is_valid(const char *text)
{
	const char *end = json_value_end(text);

	return end != NULL && *skip_space(end) == '\0';
}

/*
 * Returns the key of an object with one member, and its value as JSON; NULL for
 * anything else.
 */
char *
json_only_member(const char *text, char **value)
{
	const char *key = skip_space(text);
	const char *at;
	const char *end;

	if (*key != '{' || !json_is_valid(text))
		return NULL;
	key = skip_space(key + 1);
	at = read_key(key);
	end = at == NULL ? NULL : read_value(at, 1);
	if (end == NULL || *skip_space(end) != '}')
		return NULL;
	at = skip_space(at);
	*value = format_text("%.*s", (int) (end - at), at);
	return format_text("%.*s", (int) (strchr(key + 1, '"') - key - 1),
					   key + 1);
}
