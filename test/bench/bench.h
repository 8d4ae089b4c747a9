/*
 * bench.h
 *	  What the programs of the benchmark share.  TOOL is the name of the program.
 */
#ifndef BENCH_H
#define BENCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libpq-fe.h>

static inline void
die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", TOOL, what, why);
	exit(1);
}

/* Seconds, of a clock that all processes share. */
static inline double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static inline PGconn *
connect_to_server(const char *options)
{
	PGconn *conn = PQconnectdb(options);

	if (PQstatus(conn) != CONNECTION_OK)
		die("connection", PQerrorMessage(conn));
	return conn;
}

static inline void
check(PGconn *conn, PGresult *result, const char *sql)
{
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		die(sql, PQerrorMessage(conn));
}

static inline void
run(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);

	check(conn, result, sql);
	PQclear(result);
}

static inline void
prepare(PGconn *conn, const char *name, const char *sql)
{
	PGresult *result = PQprepare(conn, name, sql, 0, NULL);

	check(conn, result, sql);
	PQclear(result);
}

/*
 * A number of /proc/PID/FILE of the server process, after this word, or the
 * first of all where the word is empty; -1: not known.
 */
static inline double
proc_number(PGconn *conn, const char *file, const char *word)
{
	char name[64];
	char line[256];
	double number = -1;
	FILE *in;

	snprintf(name, sizeof(name), "/proc/%d/%s", PQbackendPID(conn), file);
	in = fopen(name, "r");
	if (in == NULL)
		return -1;
	while (number < 0 && fgets(line, sizeof(line), in) != NULL)
	{
		if (strncmp(line, word, strlen(word)) == 0)
			number = atof(line + strlen(word));
	}
	fclose(in);
	return number;
}

static inline int
compare(const void *a, const void *b)
{
	double x = *(const double *) a;
	double y = *(const double *) b;

	return x < y ? -1 : x > y;
}

#endif /* BENCH_H */
