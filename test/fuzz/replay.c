/*
 * replay.c
 *	  Runs a fuzz target on the inputs of a corpus, printed as TAP.
 *
 * replay NAME FILE: each line of the file is an input, in which a byte that is
 * no printable character is a backslash and three octal digits, and a
 * backslash is two: the format "escape" of bytea.
 */
#include <signal.h>
#include <unistd.h>

#include "fuzz.h"

static const char *name;
static int line_number = 0;

extern const char *__asan_default_options(void);
extern const char *__ubsan_default_options(void);

/* What a sanitizer finds is a signal, too. */
const char *
__asan_default_options(void)
{
	return "abort_on_error=1";
}

const char *
__ubsan_default_options(void)
{
	return "abort_on_error=1:print_stacktrace=1";
}

/* Says for which input the program ends. */
static void
fail(int number)
{
	char text[100];
	int length = snprintf(text, sizeof(text),
						  "not ok 1 - %s, line %d of its corpus\n", name,
						  line_number);

	if (write(STDOUT_FILENO, text, length) < 0)
		_exit(2);
	_exit(1);
}

/* Decodes a line in place; returns its length. */
static size_t
decode(char *line)
{
	char *to = line;

	for (const char *at = line; *at != '\0' && *at != '\n'; at++)
	{
		if (*at != '\\')
			*to++ = *at;
		else if (at[1] == '\\')
			*to++ = *++at;
		else
		{
			*to++ = (char) strtol((char[]){at[1], at[2], at[3], '\0'}, NULL,
								  8);
			at += 3;
		}
	}
	return to - line;
}

int
main(int argc, char **argv)
{
	static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	char *line = NULL;
	size_t room = 0;
	FILE *file;

	if (argc != 3 || (file = fopen(argv[2], "r")) == NULL)
	{
		fprintf(stderr, "usage: %s NAME FILE\n", argv[0]);
		return 2;
	}
	name = argv[1];
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], fail);
	while (getline(&line, &room, file) > 0)
	{
		size_t size = decode(line);
		uint8_t *input = malloc(size > 0 ? size : 1);

		line_number++;
		memcpy(input, line, size);
		LLVMFuzzerTestOneInput(input, size);
		free(input);
	}
	free(line);
	fclose(file);
	printf("%sok 1 - %s, %d inputs\n", line_number > 0 ? "" : "not ", name,
		   line_number);
	return line_number == 0;
}
