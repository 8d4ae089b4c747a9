/*
 * waiters.c
 *	  What many waiters cost, and which of them are woken.
 *
 *	waiters tq|bare WAITERS SECONDS [TASKS [CLAIM]]
 *
 * So many connections wait for tasks: in tq each in claim_work(... wait), on
 * the bare table each for a notification, upon which it claims; each for up to
 * CLAIM (1).  TASKS (1) are created in a transaction each second.  Half a second
 * later it is counted whose server
 * processes have given up the processor of their own accord since before it
 * (voluntary_ctxt_switches of /proc): these were woken.  A waiter that has tasks
 * completes them and waits again, after it was counted.
 *
 * Prints how many were woken for a commit, the median and the most, and the
 * processor time of all of these processes as a share of a core, in percent.
 * Where there is no /proc, it prints "? ? ?".
 */
#include <poll.h>

#define TOOL "waiters"
#include "bench.h"

typedef struct Waiter
{
	PGconn *conn;
	enum
	{
		IDLE,
		CLAIMING, /* a claim was sent */
		ANSWERED  /* and its answer is there */
	} state;
	long switches;
} Waiter;

static Waiter *waiters;
static int nwaiters;
static int in_tq;
static char claim[400];
static char create[400];

static const char *const tq_claim =
	"SELECT count(*), array_agg(task_id)::text, array_agg(run_id)::text"
	" FROM tq.claim_work('bench/wait', 'g', 'w', %d, '60 s')";
static const char *const tq_complete =
	"SELECT outcome FROM tq.resolve($1::tq.slugid[], $2::int[])";
static const char *const tq_create =
	"SELECT tq.enqueue_tasks('bench/wait', array_fill('{}'::jsonb, ARRAY[%d]))";
static const char *const bare_claim =
	"WITH claimed AS (UPDATE bare SET taken_until = now() + interval '20 min', worker = 'w'"
	" WHERE id = ANY (ARRAY(SELECT id FROM bare WHERE taken_until IS NULL"
	" ORDER BY id LIMIT %d FOR UPDATE SKIP LOCKED)) RETURNING id)"
	" SELECT count(*), array_agg(id)::text, '{}' FROM claimed";
static const char *const bare_complete =
	"DELETE FROM bare WHERE id = ANY ($1::bigint[]) AND $2::int[] = '{}'";
static const char *const bare_create =
	"WITH added AS (INSERT INTO bare (payload) SELECT '{}' FROM generate_series(1, %d) RETURNING id)"
	" SELECT pg_notify('bare', '') FROM added LIMIT 1";

/* ---- what the processes have done ---- */

/* How many have been woken since the last call. */
static int
count_woken(void)
{
	int woken = 0;
	int i;

	for (i = 0; i < nwaiters; i++)
	{
		long switches = proc_number(waiters[i].conn, "status",
									"voluntary_ctxt_switches:");

		if (switches != waiters[i].switches)
			woken++;
		waiters[i].switches = switches;
	}
	return woken;
}

/* Nanoseconds on a processor, of all. */
static double
cpu_of_all(void)
{
	double sum = 0;
	int i;

	for (i = 0; i < nwaiters; i++)
		sum += proc_number(waiters[i].conn, "schedstat", "");
	return sum;
}

/* ---- the waiters ---- */

static void
send_claim(Waiter *w)
{
	if (!PQsendQueryPrepared(w->conn, "claim", 0, NULL, NULL, NULL, 0))
		die("claim", PQerrorMessage(w->conn));
	w->state = CLAIMING;
}

static void
begin_to_wait(Waiter *w)
{
	PGresult *result;

	w->conn = connect_to_server("");
	result = PQprepare(w->conn, "claim", claim, 0, NULL);
	check(w->conn, result, "statement");
	PQclear(result);
	if (in_tq)
		send_claim(w);
	else
		run(w->conn, "LISTEN bare");
}

/* Reads what the server has sent; a waiter that is notified claims. */
static void
read_input(Waiter *w)
{
	PGnotify *notify;

	if (!PQconsumeInput(w->conn))
		die("connection", PQerrorMessage(w->conn));
	while ((notify = PQnotifies(w->conn)) != NULL)
	{
		PQfreemem(notify);
		if (w->state == IDLE)
			send_claim(w);
	}
	if (w->state == CLAIMING && !PQisBusy(w->conn))
		w->state = ANSWERED;
}

/* Follows all until then; answers are left until they have been counted. */
static void
follow(double then)
{
	struct pollfd *sockets = malloc(nwaiters * sizeof(struct pollfd));
	int i;

	while (now() < then)
	{
		for (i = 0; i < nwaiters; i++)
		{
			sockets[i].fd = waiters[i].state == ANSWERED
								? -1
								: PQsocket(waiters[i].conn);
			sockets[i].events = POLLIN;
			sockets[i].revents = 0;
		}
		poll(sockets, nwaiters, (int) ((then - now()) * 1000) + 1);
		for (i = 0; i < nwaiters; i++)
		{
			if (sockets[i].revents != 0)
				read_input(&waiters[i]);
		}
	}
	free(sockets);
}

/* Waits until all wait: no server process has run for half a second. */
static void
settle(void)
{
	double begin = now();

	count_woken();
	do
	{
		if (now() > begin + 120)
			die("waiters", "they do not come to rest");
		follow(now() + 0.5);
	} while (count_woken() > 0);
}

/* Reads the answer to a claim; completes its tasks, and returns how many. */
static int
complete(Waiter *w)
{
	PGresult *claimed = PQgetResult(w->conn);
	PGresult *result;
	int found;

	check(w->conn, claimed, "statement");
	while ((result = PQgetResult(w->conn)) != NULL)
		PQclear(result);
	found = atoi(PQgetvalue(claimed, 0, 0));
	if (found > 0)
	{
		const char *parameters[2];

		parameters[0] = PQgetvalue(claimed, 0, 1);
		parameters[1] = PQgetvalue(claimed, 0, 2);
		result = PQexecParams(w->conn, in_tq ? tq_complete : bare_complete, 2,
							  NULL, parameters, NULL, NULL, 0);
		check(w->conn, result, "statement");
		PQclear(result);
	}
	PQclear(claimed);
	w->state = IDLE;
	return found;
}

/* Lets all go on that have an answer; returns how many tasks they had. */
static int
complete_all(void)
{
	int tasks = 0;
	int i;

	for (i = 0; i < nwaiters; i++)
	{
		if (waiters[i].state != ANSWERED)
			continue;
		tasks += complete(&waiters[i]);
		if (in_tq)
			send_claim(&waiters[i]);
	}
	return tasks;
}

/* Cancels those that still wait: the server would not notice that we have gone. */
static void
finish(Waiter *w)
{
	PGcancel *cancel = w->state == IDLE ? NULL : PQgetCancel(w->conn);
	char error[256];

	if (cancel != NULL)
		PQcancel(cancel, error, sizeof(error));
	PQfreeCancel(cancel);
	PQfinish(w->conn);
}

/*
 * Has each waiter claim once before it is measured: the first claim of a session
 * takes many times as long as the next ones.
 */
static void
warm_up(PGconn *producer, int each, int limit)
{
	int left = (nwaiters * limit + each - 1) / each;
	int tasks = left * each;
	double begin = now();

	for (; left > 0; left--)
		run(producer, create);
	while (tasks > 0)
	{
		if (now() > begin + 120)
			die("waiters", "they do not claim all");
		follow(now() + 0.5);
		tasks -= complete_all();
	}
	settle();
}

int
main(int argc, char **argv)
{
	PGconn *producer;
	int seconds;
	double *woken;
	int each;
	int limit;
	int tasks = 0;
	double cpu;
	double begin;
	int i;

	if (argc < 4 || argc > 6)
		die("usage", "waiters tq|bare WAITERS SECONDS [TASKS [CLAIM]]");
	in_tq = strcmp(argv[1], "tq") == 0;
	nwaiters = atoi(argv[2]);
	seconds = atoi(argv[3]);
	each = argc > 4 ? atoi(argv[4]) : 1;
	limit = argc > 5 ? atoi(argv[5]) : 1;
	snprintf(claim, sizeof(claim), in_tq ? tq_claim : bare_claim, limit);
	snprintf(create, sizeof(create), in_tq ? tq_create : bare_create, each);
	waiters = calloc(nwaiters, sizeof(Waiter));
	woken = calloc(seconds, sizeof(double));
	for (i = 0; i < nwaiters; i++)
		begin_to_wait(&waiters[i]);
	producer = connect_to_server("");
	settle();
	warm_up(producer, each, limit);
	begin = now();
	cpu = cpu_of_all();
	for (i = 0; i < seconds; i++)
	{
		count_woken();
		run(producer, create);
		follow(now() + 0.5);
		woken[i] = count_woken();
		tasks += complete_all();
		follow(begin + i + 1);
	}
	cpu = (cpu_of_all() - cpu) / (now() - begin);
	if (tasks != seconds * each)
		die("tasks", "some were not claimed within half a second");
	if (proc_number(waiters[0].conn, "schedstat", "") < 0)
		printf("? ? ?\n");
	else
	{
		qsort(woken, seconds, sizeof(double), compare);
		printf("%.0f %.0f %.3f\n", woken[(seconds - 1) / 2],
			   woken[seconds - 1], 100 * cpu / 1e9);
	}
	for (i = 0; i < nwaiters; i++)
		finish(&waiters[i]);
	return 0;
}
