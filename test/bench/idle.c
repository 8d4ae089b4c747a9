/*
 * idle.c
 *	  From the producer's commit to the claimed row in the worker's hand, while
 *	  nothing else happens.
 *
 *	idle tq|bare N MILLISECONDS
 *
 * A producer creates N tasks, one after the other, each when so much time has
 * gone since the last and the worker has completed that.  The worker, another
 * process, waits: in tq for claim_work(... wait), on the bare table for a
 * notification, upon which it claims.  Both read the same clock.
 *
 * Prints, in milliseconds, the median, the 99th percentile and the longest time
 * from when the producer had the answer to its commit, which the worker may
 * have the row before, and then the same from when it sent the statement.
 */
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOOL "idle"
#include "bench.h"

#define PAYLOAD                                                               \
	"{\"command\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"           \
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"  \
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}"

typedef struct Sample
{
	double sent;
	double committed;
	double claimed;
} Sample;

typedef struct Shared
{
	int ready; /* the worker waits */
	int done;  /* so many are completed */
	Sample sample[];
} Shared;

typedef struct Way
{
	const char *name;
	const char *create;
	const char *listen; /* NULL: claim waits by itself */
	const char *claim;
	const char *complete;
} Way;

static const Way ways[] =
	{{"tq", "SELECT tq.enqueue('bench/idle', '" PAYLOAD "')", NULL,
	  "SELECT task_id, run_id, payload"
	  " FROM tq.claim_work('bench/idle', 'g', 'w', 1, '60 s')",
	  "SELECT outcome FROM tq.resolve(ARRAY[$1::tq.slugid], ARRAY[$2::int])"},
	 {"bare",
	  "WITH added AS (INSERT INTO bare (payload) VALUES ('" PAYLOAD "')"
	  " RETURNING id) SELECT pg_notify('bare', '') FROM added",
	  "LISTEN bare",
	  "UPDATE bare SET taken_until = now() + interval '20 min', worker = 'w'"
	  " WHERE id = ANY (ARRAY(SELECT id FROM bare WHERE taken_until IS NULL"
	  " ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED))"
	  " RETURNING id, 0, payload",
	  "DELETE FROM bare WHERE id = $1::bigint AND $2::int = 0"}};

static void
sleep_for(double seconds)
{
	struct timespec t = {(time_t) seconds,
						 (long) ((seconds - (time_t) seconds) * 1e9)};

	if (seconds > 0)
		nanosleep(&t, NULL);
}

/* Sleeps until the server has sent a notification. */
static void
wait_for_notification(PGconn *conn)
{
	PGnotify *notify;
	int seen = 0;

	while (!seen)
	{
		struct pollfd socket = {PQsocket(conn), POLLIN, 0};

		while ((notify = PQnotifies(conn)) != NULL)
		{
			PQfreemem(notify);
			seen = 1;
		}
		if (!seen && poll(&socket, 1, -1) > 0 && !PQconsumeInput(conn))
			die("connection", PQerrorMessage(conn));
	}
}

/* Claims until there is a row. */
static PGresult *
claim(PGconn *conn, const Way *way)
{
	PGresult *result;

	for (;;)
	{
		result = PQexecPrepared(conn, "claim", 0, NULL, NULL, NULL, 0);
		check(conn, result, way->claim);
		if (PQntuples(result) > 0)
			return result;
		PQclear(result);
		if (way->listen != NULL)
			wait_for_notification(conn);
	}
}

static void
work(const Way *way, volatile Shared *shared, int n)
{
	PGconn *conn = connect_to_server("");
	int i;

	prepare(conn, "claim", way->claim);
	prepare(conn, "complete", way->complete);
	if (way->listen != NULL)
		run(conn, way->listen);
	shared->ready = 1;
	for (i = 0; i < n; i++)
	{
		PGresult *row = claim(conn, way);
		const char *parameters[2];
		PGresult *result;

		shared->sample[i].claimed = now();
		parameters[0] = PQgetvalue(row, 0, 0);
		parameters[1] = PQgetvalue(row, 0, 1);
		result = PQexecPrepared(conn, "complete", 2, parameters, NULL, NULL,
								0);
		check(conn, result, way->complete);
		PQclear(result);
		PQclear(row);
		shared->done = i + 1;
	}
	PQfinish(conn);
}

static void
produce(const Way *way, volatile Shared *shared, int n, double period)
{
	PGconn *conn = connect_to_server("");
	int i;

	prepare(conn, "create", way->create);
	while (!shared->ready)
		sleep_for(0.001);
	sleep_for(0.1); /* and now it waits */
	for (i = 0; i < n; i++)
	{
		PGresult *result;

		shared->sample[i].sent = now();
		result = PQexecPrepared(conn, "create", 0, NULL, NULL, NULL, 0);
		shared->sample[i].committed = now();
		check(conn, result, way->create);
		PQclear(result);
		sleep_for(period);
		while (shared->done <= i)
		{
			if (now() > shared->sample[i].sent + 30)
				die(way->name, "the worker has not got the task");
			sleep_for(0.001);
		}
	}
	PQfinish(conn);
}

static void
print(double *times, int n, const char *end)
{
	qsort(times, n, sizeof(double), compare);
	printf("%.3f %.3f %.3f%s", 1000 * times[(n - 1) / 2],
		   1000 * times[(int) ((n - 1) * 0.99)], 1000 * times[n - 1], end);
}

int
main(int argc, char **argv)
{
	int n = argc == 4 ? atoi(argv[2]) : 0;
	const Way *way = NULL;
	Shared *shared;
	double *after_commit;
	double *after_send;
	pid_t worker;
	int i;

	for (i = 0; argc > 1 && i < 2; i++)
	{
		if (strcmp(argv[1], ways[i].name) == 0)
			way = &ways[i];
	}
	if (way == NULL || n < 1)
		die("usage", "idle tq|bare N MILLISECONDS");
	shared = mmap(NULL, sizeof(Shared) + n * sizeof(Sample),
				  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	after_commit = malloc(n * sizeof(double));
	after_send = malloc(n * sizeof(double));
	if (shared == MAP_FAILED || after_commit == NULL || after_send == NULL)
		die("memory", strerror(errno));
	signal(SIGCHLD, SIG_DFL);
	worker = fork();
	if (worker == 0)
	{
		work(way, shared, n);
		exit(0);
	}
	produce(way, shared, n, atof(argv[3]) / 1000);
	waitpid(worker, NULL, 0);
	for (i = 0; i < n; i++)
	{
		after_commit[i] = shared->sample[i].claimed -
						  shared->sample[i].committed;
		after_send[i] = shared->sample[i].claimed - shared->sample[i].sent;
	}
	print(after_commit, n, " ");
	print(after_send, n, "\n");
	return 0;
}
