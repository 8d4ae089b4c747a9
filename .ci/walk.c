/*
 * walk.c
 *	  Which functions of tq one call enters, in order.
 *
 * Loaded into a backend beside a tq.so that was built with -finstrument-functions,
 * which calls the two functions here when a function begins and ends.  Records
 * from the TQ_WALK_NTH time that the function TQ_WALK_FUNCTION begins until it
 * begins again, so that the end of the transaction is part of it, and then writes
 * the addresses, relative to the library, to the file TQ_WALK_OUT.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO __attribute__((no_instrument_function))
#define MAX 1000000

static char *entered[MAX];
static int n;
static long nth;
static int is_recording;

static NO int
is_first(void *function, char **base)
{
	static void *known;
	static char *library;
	static void *other[4096];
	Dl_info info;
	unsigned slot = (unsigned) ((unsigned long) function >> 4) % 4096;
	const char *name = getenv("TQ_WALK_FUNCTION");

	*base = library;
	if (known != NULL)
		return function == known;
	if (name == NULL || other[slot] == function)
		return 0;
	other[slot] = function;
	if (!dladdr(function, &info) || info.dli_sname == NULL || info.dli_saddr != function || strcmp(info.dli_sname, name) != 0)
		return 0;
	known = function;
	*base = library = info.dli_fbase;
	return 1;
}

static NO void
write_out(char *base)
{
	FILE *file = fopen(getenv("TQ_WALK_OUT"), "w");

	for (int i = 0; i < n; i++)
		fprintf(file, "0x%lx\n", (unsigned long) (entered[i] - base));
	fclose(file);
}

NO void
__cyg_profile_func_enter(void *function, void *caller)
{
	char *base;

	if (is_first(function, &base))
	{
		nth++;
		if (is_recording)
		{
			is_recording = 0;
			write_out(base);
		}
		else if (nth == atol(getenv("TQ_WALK_NTH")))
			is_recording = 1;
	}
	if (is_recording && n < MAX)
		entered[n++] = function;
}

NO void
__cyg_profile_func_exit(void *function, void *caller)
{
}
