/*
 * json_mutator.c
 *	  Makes inputs of libFuzzer out of JSON texts: changes whole values.
 *
 * Bytes that are changed at random seldom leave JSON behind, so half of the
 * changes are of values: one is replaced, taken out, put in or repeated.  What
 * precedes the first bracket of an input stays as it is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
extern size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
									  unsigned seed);

#define VALUES_MAX 500

/* A value, or a key, in a text. */
typedef struct Span
{
	size_t from;
	size_t to;
} Span;

static Span spans[VALUES_MAX];
static int nspans;

static const char *const words[] = {"null",
									"true",
									"false",
									"[]",
									"{}",
									"[null]",
									"[[]]",
									"[{}]",
									"0",
									"-1",
									"1",
									"1.5",
									"49",
									"50",
									"1e9",
									"1e-9",
									"1E400",
									"0.0001",
									"-0",
									"9223372036854775808",
									"2147483647",
									"2147483648",
									"2147483647.001",
									"32767",
									"32768",
									"\"\"",
									"\"*\"",
									"\"a*\"",
									"\"a**\"",
									"\"\\u0001\"",
									"\"\xc3\xa4\"",
									"\"\\ud83d\\ude00\"",
									"\"x/y\"",
									"\"a-_9/Z\"",
									"\"fuzz____QAGAAAAAAAAAAA\"",
									"\"one_____QAGAAAAAAAAAAA\"",
									"\"group___QAGAAAAAAAAAAA\"",
									"\"AAAAAAAAQACAAAAAAAAAAA\"",
									"\"2030-01-01T00:00:00Z\"",
									"\"2030-01-01t23:59:60.9999+23:59\"",
									"\"2030-01-05 00:00:00.1-00:00\"",
									"\"9999-12-31T00:00:00Z\"",
									"\"2029-12-31T23:50:00Z\"",
									"\"2028-02-29T12:00:00Z\"",
									"\"2030-02-29T12:00:00Z\"",
									"\"1 day\"",
									"\"PT1H\"",
									"\"-1 s\"",
									"\"infinity\"",
									"\"1 mon\"",
									"\"00:00:01.5\"",
									"\"9999 years\"",
									"\"all-resolved\"",
									"\"all-completed\"",
									"\"highest\"",
									"\"very-low\"",
									"\"fixed\"",
									"\"linear\"",
									"\"exponential\"",
									"\"block\"",
									"\"forgive\"",
									"\"tolerate\"",
									"\"cancel-group\"",
									"\"cancel-dependents\"",
									"\"failed\"",
									"\"claim-expired\"",
									"\"worker-shutdown\"",
									"\"deadline-exceeded\"",
									"\"https://\"",
									"\"git@\"",
									"\"ssh://x\"",
									"\"<C>\"",
									"\"<T>\"",
									"\"<Z>\"",
									"<E>",
									"<U>",
									"\"<S>\"",
									"\"x<C>\""};

static const char *const keys[] = {"tags",
								   "delay",
								   "extra",
								   "policy",
								   "routes",
								   "scopes",
								   "created",
								   "expires",
								   "payload",
								   "retries",
								   "deadline",
								   "metadata",
								   "priority",
								   "requires",
								   "projectId",
								   "workerType",
								   "schedulerId",
								   "taskGroupId",
								   "taskQueueId",
								   "dependencies",
								   "provisionerId",
								   "name",
								   "owner",
								   "source",
								   "description",
								   "retryOn",
								   "lostRetries",
								   "retryBackoff",
								   "claimTimeout",
								   "runTimeout",
								   "pendingTimeout",
								   "totalTimeout",
								   "timeoutAlertOnly",
								   "onUnsuccessful",
								   "deadLetter",
								   "retainCompleted",
								   "retainFailed",
								   "dropPayload",
								   "kind",
								   "factor",
								   "max",
								   "jitter",
								   "clientId",
								   "accessToken",
								   "certificate",
								   "version",
								   "start",
								   "expiry",
								   "seed",
								   "issuer",
								   "signature",
								   "a",
								   ""};

#define ANY(array) array[rand() % (int) (sizeof(array) / sizeof(array[0]))]

/* Returns where a string, number or word ends. */
static size_t
end_of_scalar(const char *text, size_t at, size_t size)
{
	if (text[at] != '"')
	{
		while (at < size && strchr(",:[]{}\" \n", text[at]) == NULL)
			at++;
		return at;
	}
	for (at++; at < size && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at < size ? at + 1 : size;
}

/* Finds all values and keys of a text. */
static void
find_spans(const char *text, size_t at, size_t size)
{
	int open[64];
	int depth = 0;

	nspans = 0;
	while (at < size && nspans < VALUES_MAX)
	{
		size_t end = at + 1;

		if (text[at] == '{' || text[at] == '[')
		{
			if (depth < 64)
				open[depth++] = nspans;
			spans[nspans++] = (Span){at, size};
		}
		else if (text[at] == '}' || text[at] == ']')
		{
			if (depth > 0)
				spans[open[--depth]].to = end;
		}
		else if (strchr(",: \n", text[at]) == NULL)
		{
			end = end_of_scalar(text, at, size);
			if (end == at)
				end++;
			spans[nspans++] = (Span){at, end};
		}
		at = end;
	}
}

/* Replaces bytes of a text; returns the new size, or 0 if it has no room. */
static size_t
replace(char *text, size_t size, size_t max, Span span, const char *by,
		size_t length)
{
	char *copy;

	if (size - (span.to - span.from) + length > max)
		return 0;
	copy = malloc(length + 1);
	memcpy(copy, by, length);
	memmove(text + span.from + length, text + span.to, size - span.to);
	memcpy(text + span.from, copy, length);
	free(copy);
	return size - (span.to - span.from) + length;
}

/* Takes a value out, and its key, and a comma. */
static size_t
take_out(char *text, size_t size, size_t max, Span span)
{
	size_t key = span.from;

	if (key > 1 && text[key - 1] == ':' && text[key - 2] == '"')
	{
		for (key -= 2; key > 0 && text[key - 1] != '"'; key--)
			;
		span.from = key > 0 ? key - 1 : 0;
	}
	if (span.to < size && text[span.to] == ',')
		span.to++;
	else if (span.from > 0 && text[span.from - 1] == ',')
		span.from--;
	return replace(text, size, max, span, "", 0);
}

/* Puts a value, or a member, in at the beginning of a list or an object. */
static size_t
put_in(char *text, size_t size, size_t max, Span span)
{
	char member[256] = "";
	bool is_object = text[span.from] == '{';

	if (!is_object && text[span.from] != '[')
		return 0;
	if (is_object)
	{
		strcat(strcat(strcat(member, "\""), ANY(keys)), "\":");
	}
	strcat(member, ANY(words));
	if (span.from + 1 < size && strchr("]}", text[span.from + 1]) == NULL)
		strcat(member, ",");
	span.to = ++span.from;
	return replace(text, size, max, span, member, strlen(member));
}

/* Has libFuzzer change the bytes of a value, for a string those within. */
static size_t
change(char *text, size_t size, size_t max, Span span)
{
	uint8_t bytes[4096];
	size_t length;

	if (text[span.from] == '"' && span.to - span.from >= 2)
	{
		span.from++;
		span.to--;
	}
	length = span.to - span.from;
	if (length > sizeof(bytes) / 2)
		return 0;
	memcpy(bytes, text + span.from, length);
	length = LLVMFuzzerMutate(bytes, length, sizeof(bytes) / 2);
	return replace(text, size, max, span, (char *) bytes, length);
}

static size_t
mutate(char *text, size_t size, size_t max)
{
	Span span = spans[rand() % nspans];
	Span other = spans[rand() % nspans];
	const char *word;

	switch (rand() % 6)
	{
		case 0:
			word = ANY(words);
			return replace(text, size, max, span, word, strlen(word));
		case 1:
			return replace(text, size, max, span, text + other.from,
						   other.to - other.from);
		case 2:
			return take_out(text, size, max, span);
		case 3:
		case 4:
			return put_in(text, size, max, span);
		default:
			return change(text, size, max, span);
	}
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	char *text = (char *) data;
	size_t at = 0;
	size_t result = 0;

	srand(seed);
	while (at < size && text[at] != '{' && text[at] != '[')
		at++;
	if (at < size && rand() % 4 != 0)
	{
		find_spans(text, at, size);
		for (int more = 1; more > 0 && nspans > 0; more = rand() % 2)
		{
			size_t new_size = mutate(text, size, max);

			if (new_size == 0)
				break;
			size = result = new_size;
			find_spans(text, at < size ? at : 0, size);
		}
	}
	return result > 0 ? result : LLVMFuzzerMutate(data, size, max);
}
