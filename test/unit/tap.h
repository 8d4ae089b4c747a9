/*
 * tap.h
 *	  Assertions of a test without a server, printed as TAP.
 */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stdio.h>

static int tests = 0;
static int failures = 0;

static void
check(bool good, const char *what)
{
	tests++;
	failures += !good;
	printf("%sok %d - %s\n", good ? "" : "not ", tests, what);
}

/* Ends the TAP; the exit code of the test. */
static int
end_of_checks(void)
{
	printf("1..%d\n", tests);
	return failures > 0;
}

#endif /* TAP_H */
