/*
 * start.c
 *	  The first calls of new sessions, and what an idle session needs.
 *
 *	start tq|bare SESSIONS
 *
 * So many sessions are begun one after the other, twice: each runs SELECT 1, and
 * then creates two tasks, or claims two.  On the bare table that is an INSERT
 * of a row with two index entries, and a DELETE of the first free row.
 *
 * Prints medians: milliseconds that the first and the second create took, the
 * same of claims; milliseconds of the processor that the server process used
 * for the first create and the first claim; and of a session that has created
 * two tasks and claimed one, KiB of its memory contexts and of the private
 * memory that its process has written to.  Where there is no /proc, "?".
 */

#define TOOL "start"
#include "bench.h"

#define PAYLOAD "{\"command\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}"

typedef struct Way
{
	const char *name;
	const char *create;
	const char *claim;
} Way;

static const Way ways[] =
	{{"tq", "SELECT tq.enqueue('bench/start', '" PAYLOAD "')",
	  "SELECT task_id, run_id, payload"
	  " FROM tq.claim_work('bench/start', 'g', 'w')"},
	 {"bare", "INSERT INTO bare (payload) VALUES ('" PAYLOAD "') RETURNING id",
	  "DELETE FROM bare WHERE id = (SELECT id FROM bare"
	  " WHERE taken_until IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)"
	  " RETURNING id, payload"}};

enum
{
	CREATE,
	CREATE_AGAIN,
	CLAIM,
	CLAIM_AGAIN,
	CREATE_CPU,
	CLAIM_CPU,
	CONTEXTS,
	PRIVATE,
	FIGURES
};

static double *figures[FIGURES];
static int nsessions;

/* Runs a statement that returns one row, and returns its first column. */
static double
number_of(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);
	double value;

	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
		die(sql, PQerrorMessage(conn));
	value = atof(PQgetvalue(result, 0, 0));
	PQclear(result);
	return value;
}

static double
time_of(PGconn *conn, const char *sql)
{
	double begun = now();

	number_of(conn, sql);
	return 1000 * (now() - begun);
}

/* Milliseconds of the processor, once the process sleeps. */
static double
cpu_of(PGconn *conn)
{
	struct timespec moment = {0, 1000000};

	nanosleep(&moment, NULL);
	return proc_number(conn, "schedstat", "") / 1e6;
}

/* Runs a statement twice in a new session. */
static PGconn *
run_twice(int i, const char *sql, int first, int cpu)
{
	PGconn *conn = connect_to_server("");
	double before;

	number_of(conn, "SELECT 1");
	before = cpu_of(conn);
	figures[first][i] = time_of(conn, sql);
	figures[cpu][i] = before < 0 ? -1 : cpu_of(conn) - before;
	figures[first + 1][i] = time_of(conn, sql);
	return conn;
}

static void
measure(const Way *way, int i)
{
	PGconn *conn = run_twice(i, way->create, CREATE, CREATE_CPU);

	number_of(conn, way->claim);
	figures[PRIVATE][i] = proc_number(conn, "smaps_rollup", "Private_Dirty:");
	figures[CONTEXTS][i] =
		number_of(conn,
				  "SELECT sum(total_bytes) FROM pg_backend_memory_contexts") /
		1024;
	PQfinish(conn);
	PQfinish(run_twice(i, way->claim, CLAIM, CLAIM_CPU));
	conn = connect_to_server("");
	number_of(conn, way->create); /* as many as were claimed */
	PQfinish(conn);
}

static void
print(double *values, const char *end)
{
	double median;

	qsort(values, nsessions, sizeof(double), compare);
	median = values[(nsessions - 1) / 2];
	if (median < 0)
		printf("?%s", end);
	else
		printf("%.3f%s", median, end);
}

int
main(int argc, char **argv)
{
	const Way *way = NULL;
	int i;

	for (i = 0; argc == 3 && i < 2; i++)
	{
		if (strcmp(argv[1], ways[i].name) == 0)
			way = &ways[i];
	}
	nsessions = argc == 3 ? atoi(argv[2]) : 0;
	if (way == NULL || nsessions < 1)
		die("usage", "start tq|bare SESSIONS");
	for (i = 0; i < FIGURES; i++)
		figures[i] = malloc(nsessions * sizeof(double));
	for (i = 0; i < nsessions; i++)
		measure(way, i);
	for (i = 0; i < FIGURES; i++)
		print(figures[i], i == FIGURES - 1 ? "\n" : " ");
	return 0;
}
