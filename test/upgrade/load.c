/*
 * load.c
 *	  A producer and worker by libpq, for rehearse, as load.py is one by psycopg.
 *
 * load CONNECTION LEDGER STOP
 *
 * Statements are prepared, and results have all columns.  A statement whose result has
 * other columns than when it was prepared is prepared again, as drivers do.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static FILE *ledger;
static PGconn *db;

/* Writes a line into the ledger: when, what, and of which task and run. */
static void
note(const char *what, const char *task, const char *run)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	fprintf(ledger, "%ld.%06ld %s %s %s\n", (long) now.tv_sec, (long) now.tv_usec, what, task, run);
	fflush(ledger);
}

/* Notes an error in one line. */
static void
note_error(const PGresult *result)
{
	const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
	char *message = strdup(PQerrorMessage(db));

	for (char *c = message; *c; c++)
		if (*c == '\n')
			*c = ' ';
	note("error", state ? state : "08006", message);
	free(message);
	usleep(50000);
}

/* Returns whether the statements could be prepared. */
static int
prepare(void)
{
	static const char *const statements[][2] = {
		{"enqueue", "SELECT tq.enqueue('load/q', '{}')"},
		{"claim", "SELECT * FROM tq.claim_work('load/q', 'load', 'libpq')"},
		{"report", "SELECT tq.report_completed($1, $2)"}};

	for (int i = 0; i < 3; i++)
	{
		PGresult *result = PQprepare(db, statements[i][0], statements[i][1], 0, NULL);
		int is_ok = PQresultStatus(result) == PGRES_COMMAND_OK;

		if (!is_ok)
			note_error(result);
		PQclear(result);
		if (!is_ok)
			return 0;
	}
	return 1;
}

/* Connects if there is no connection; returns whether there is one. */
static int
connected(const char *connection)
{
	if (db && PQstatus(db) == CONNECTION_OK)
		return 1;
	PQfinish(db);
	db = PQconnectdb(connection);
	if (PQstatus(db) != CONNECTION_OK)
	{
		note_error(NULL);
		return 0;
	}
	note("connected", "-", "-");
	return prepare();
}

/* Executes a statement; returns NULL, and has noted the error, if it fails. */
static PGresult *
call(const char *name, int n, const char *const *values)
{
	PGresult *result = PQexecPrepared(db, name, n, values, NULL, NULL, 0);
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		return result;
	note_error(result);
	if (state && strcmp(state, "0A000") == 0)
	{
		PQclear(PQexec(db, "DEALLOCATE ALL"));
		prepare();
	}
	PQclear(result);
	return NULL;
}

static void
turn(void)
{
	PGresult *result = call("enqueue", 0, NULL);

	if (!result)
		return;
	note("enqueued", PQgetvalue(result, 0, 0), "-");
	PQclear(result);
	result = call("claim", 0, NULL);
	if (result && PQntuples(result) == 1)
	{
		const char *run[] = {PQgetvalue(result, 0, 0), PQgetvalue(result, 0, 1)};
		PGresult *status;

		note("claimed", run[0], run[1]);
		status = call("report", 2, run);
		if (status)
			note("completed", run[0], run[1]);
		PQclear(status);
	}
	PQclear(result);
}

int
main(int argc, char **argv)
{
	if (argc != 4 || !(ledger = fopen(argv[2], "a")))
		return 1;
	while (access(argv[3], F_OK) != 0)
	{
		if (connected(argv[1]))
			turn();
		usleep(5000);
	}
	return 0;
}
