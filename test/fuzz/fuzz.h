/*
 * fuzz.h
 *	  What the targets of test/fuzz share: how a broken rule ends the program.
 *
 * A target is a file with LLVMFuzzerTestOneInput(), which libFuzzer calls with
 * inputs that it makes (test/fuzz/run), and replay.c with those of the corpus
 * (test/check fuzz).
 */
#ifndef TQ_FUZZ_H
#define TQ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program if a rule does not hold for the input. */
#define require(rule, what)                                                   \
	do                                                                        \
	{                                                                         \
		if (!(rule))                                                          \
		{                                                                     \
			fputs("# broken: ", stderr);                                      \
			fputs(what, stderr);                                              \
			fputs("\n", stderr);                                              \
			abort();                                                          \
		}                                                                     \
	} while (0)

/* Returns bytes as a string, in memory of just its size. */
static inline char *
fuzz_string(const void *bytes, size_t size)
{
	char *string = malloc(size + 1);

	if (size > 0)
		memcpy(string, bytes, size);
	string[size] = '\0';
	return string;
}

/*
 * Returns the next line of a text of an input as a string, or NULL after the
 * last.  It ends at a zero byte as well, as every string does.
 */
static inline char *
fuzz_line(const uint8_t **data, size_t *size)
{
	size_t length = 0;
	char *line;

	if (*data == NULL)
		return NULL;
	while (length < *size && (*data)[length] != '\n')
		length++;
	line = fuzz_string(*data, length);
	if (length == *size)
		*data = NULL;
	else
	{
		*data += length + 1;
		*size -= length + 1;
	}
	return line;
}

#endif /* TQ_FUZZ_H */
