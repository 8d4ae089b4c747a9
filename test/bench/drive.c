/*
 * drive.c
 *	  Runs a script of statements again and again, as pgbench does, for scripts
 *	  whose parameters pgbench cannot make: definitions of tasks with new ids.
 *
 *	drive -c CLIENTS -T SECONDS | -t TIMES [-w TIMES] [-n ROWS] [-R RATE]
 *		[-l FILE] [-p NAME=FILE]... SCRIPT
 *
 * Each line of the script that is no comment is a statement, prepared once and
 * run in a transaction of its own.  :name in it is a parameter:
 *	- of -p: what the file holds, with a new id in place of each 22 @s;
 *	- a column of an earlier statement: an array of all its values, so that
 *	  what was claimed can be completed;
 *	- :client, the number of the client.
 * All rows come to the client.  Prints how often the script was run, how often
 * per second, how many rows its last statement gave, and the seconds that all
 * took, with -n until the last of the rows: "RUNS RATE ROWS SECONDS".  An error ends it, with exit code 1.
 *
 * A client is a process with a connection; all begin when all are ready.  With -w,
 * each runs the script so many times before that, so that the caches of its
 * sessions are full.  With -R, so many runs a second in all; one that is late is not made up for.  With
 * -n, the script is that of workers: where its first statement gives no row, the
 * others are left out; and it is over as soon as the last statement has given
 * so many rows to all of them together.  With -l, each client writes to FILE.NUMBER
 * when each second statement of the script has ended, in seconds since 1970, and
 * how many milliseconds it has taken.
 */
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOOL "drive"
#include "bench.h"

#define STATEMENTS 16
#define PARAMETERS 8
#define NAMES 32
#define ID_LENGTH 22
#define CLIENTS 1024

/* What a name stands for: a text, in which the ids at these places are new. */
typedef struct Value
{
	char name[64];
	char *text;
	size_t size;
	size_t *ids;
	int nids;
} Value;

typedef struct Statement
{
	char *sql;
	char name[16];
	int values[PARAMETERS];
	int nvalues;
} Statement;

typedef struct Shared
{
	int ready;
	int go;
	long rows;
	double begin;
	double end; /* when the last of the rows were there */
	struct
	{
		long runs;
		double seconds;
	} client[CLIENTS];
} Shared;

static Value values[NAMES];
static int nvalues;
static Statement statements[STATEMENTS];
static int nstatements;
static int clients = 1;
static double seconds;
static long times;
static long warm_up;
static double rate;
static long target;
static const char *log_name;
static FILE *log_file;
static uint64_t random_state[2];

/* Writes to the log what a statement has taken that has begun then. */
static void
log_statement(double begin)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	fprintf(log_file, "%.3f %.3f\n", t.tv_sec + t.tv_nsec / 1e9,
			1000 * (now() - begin));
}

static void
open_log(int number)
{
	char name[1024];

	snprintf(name, sizeof(name), "%s.%d", log_name, number);
	log_file = fopen(name, "w");
	if (log_file == NULL)
		die(name, strerror(errno));
}

static void
sleep_until(double then)
{
	double left = then - now();
	struct timespec t;

	if (left <= 0)
		return;
	t.tv_sec = (time_t) left;
	t.tv_nsec = (long) ((left - t.tv_sec) * 1e9);
	nanosleep(&t, NULL);
}

/* xorshift128+: the ids need be different, not secret */
static uint64_t
random64(void)
{
	uint64_t a = random_state[0];
	uint64_t b = random_state[1];

	random_state[0] = b;
	a ^= a << 23;
	random_state[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
	return random_state[1] + b;
}

/* Writes a random slugid: 16 bytes of a version 4 UUID as URL-safe base64. */
static void
new_id(char *place)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char bytes[18] = {0};
	uint64_t parts[2];
	int i;

	parts[0] = random64();
	parts[1] = random64();
	memcpy(bytes, parts, 16);
	bytes[6] = (bytes[6] & 0x0f) | 0x40;
	bytes[8] = (bytes[8] & 0x3f) | 0x80;
	for (i = 0; i < ID_LENGTH; i++)
	{
		int bit = i * 6;
		int pair = bytes[bit / 8] << 8 | bytes[bit / 8 + 1];

		place[i] = digits[pair >> (10 - bit % 8) & 63];
	}
}

/* ---- the script ---- */

/* The number of a name; it is made if there is none. */
static int
find_value(const char *name, size_t length)
{
	int i;

	for (i = 0; i < nvalues; i++)
	{
		if (strlen(values[i].name) == length &&
			strncmp(values[i].name, name, length) == 0)
			return i;
	}
	if (nvalues == NAMES || length >= sizeof(values[0].name))
		die(name, "too many names, or too long");
	memcpy(values[nvalues].name, name, length);
	return nvalues++;
}

static char *
read_file(const char *name)
{
	FILE *file = fopen(name, "r");
	char *text = NULL;
	size_t size = 0;

	if (file == NULL || getdelim(&text, &size, '\0', file) < 0)
		die(name, strerror(errno));
	fclose(file);
	return text;
}

/* -p NAME=FILE */
static void
read_value(char *argument)
{
	char *file = strchr(argument, '=');
	char *at;
	Value *value;

	if (file == NULL)
		die(argument, "not NAME=FILE");
	value = &values[find_value(argument, file - argument)];
	value->text = read_file(file + 1);
	for (at = value->text; (at = strstr(at, "@@@@@@@@@@@@@@@@@@@@@@")) != NULL;
		 at += ID_LENGTH)
	{
		value->ids = realloc(value->ids, (value->nids + 1) * sizeof(size_t));
		value->ids[value->nids++] = at - value->text;
	}
}

/* Replaces each :name of a line by $1, $2 and so on. */
static void
read_statement(const char *line)
{
	Statement *s = &statements[nstatements];
	const char *at = line;
	char *to;

	if (nstatements == STATEMENTS)
		die(line, "too many statements");
	snprintf(s->name, sizeof(s->name), "s%d", nstatements++);
	s->sql = to = malloc(strlen(line) * 2 + 1);
	while (*at != '\0')
	{
		if (*at == ':' && at[1] == ':')
		{
			*to++ = *at++;
			*to++ = *at++;
		}
		else if (*at == ':' && isalpha((unsigned char) at[1]))
		{
			size_t length = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_");

			if (s->nvalues == PARAMETERS)
				die(line, "too many parameters");
			s->values[s->nvalues++] = find_value(at + 1, length);
			to += sprintf(to, "$%d", s->nvalues);
			at += length + 1;
		}
		else
			*to++ = *at++;
	}
	*to = '\0';
}

static void
read_script(const char *name)
{
	char *text = read_file(name);
	char *line;

	for (line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
	{
		if (*line != '\0' && strncmp(line, "--", 2) != 0)
			read_statement(line);
	}
	if (nstatements == 0)
		die(name, "no statements");
}

/* ---- a client ---- */

/* Does a statement want this column? */
static Value *
wanted_column(const char *name)
{
	int i;

	for (i = 0; i < nvalues; i++)
	{
		if (strcmp(values[i].name, name) == 0)
			return &values[i];
	}
	return NULL;
}

/* Keeps a column as the text of an array; its values are ids and numbers. */
static void
keep_column(Value *value, PGresult *result, int column)
{
	int rows = PQntuples(result);
	size_t size = 3;
	char *to;
	int i;

	for (i = 0; i < rows; i++)
		size += PQgetlength(result, i, column) + 1;
	if (size > value->size)
		value->text = realloc(value->text, value->size = size * 2);
	to = value->text;
	*to++ = '{';
	for (i = 0; i < rows; i++)
	{
		if (i > 0)
			*to++ = ',';
		memcpy(to, PQgetvalue(result, i, column),
			   PQgetlength(result, i, column));
		to += PQgetlength(result, i, column);
	}
	strcpy(to, "}");
}

/* Returns the number of rows. */
static int
run_statement(PGconn *conn, const Statement *s)
{
	const char *parameters[PARAMETERS];
	PGresult *result;
	int rows;
	int i;

	for (i = 0; i < s->nvalues; i++)
	{
		Value *value = &values[s->values[i]];
		int id;

		for (id = 0; id < value->nids; id++)
			new_id(value->text + value->ids[id]);
		parameters[i] = value->text;
	}
	result = PQexecPrepared(conn, s->name, s->nvalues, parameters, NULL, NULL,
							0);
	check(conn, result, s->sql);
	rows = PQntuples(result);
	for (i = 0; i < PQnfields(result); i++)
	{
		Value *value = wanted_column(PQfname(result, i));

		if (value != NULL)
			keep_column(value, result, i);
	}
	PQclear(result);
	return rows;
}

static PGconn *
connect_and_prepare(int number)
{
	PGconn *conn = connect_to_server("application_name=pgbench");
	char text[16];
	int i;

	snprintf(text, sizeof(text), "%d", number);
	values[find_value("client", strlen("client"))].text = strdup(text);
	for (i = 0; i < nstatements; i++)
		prepare(conn, statements[i].name, statements[i].sql);
	return conn;
}

/* A generator of its own for each client, each time. */
static void
seed(void)
{
	int file = open("/dev/urandom", O_RDONLY);

	if (file < 0 ||
		read(file, random_state, sizeof(random_state)) != sizeof(random_state))
		die("/dev/urandom", strerror(errno));
	close(file);
}

/* Returns the number of rows of the last statement. */
static int
run_script(PGconn *conn)
{
	int rows = 0;
	int i;

	for (i = 0; i < nstatements; i++)
	{
		double begin = now();

		rows = run_statement(conn, &statements[i]);
		if (i == 1 && log_file != NULL)
			log_statement(begin);
		if (target > 0 && rows == 0)
			break;
	}
	return rows;
}

static void
count_rows(volatile Shared *shared, int rows)
{
	long all = __sync_add_and_fetch(&shared->rows, rows);

	if (target > 0 && all >= target && all - rows < target)
		shared->end = now();
}

static int
is_over(volatile Shared *shared, long runs, double begin)
{
	if (target > 0 && shared->rows >= target)
		return 1;
	if (times > 0)
		return runs >= times;
	return seconds > 0 && now() >= begin + seconds;
}

static void
run_client(volatile Shared *shared, int number)
{
	PGconn *conn;
	double begin;
	double due;
	long runs = 0;
	int rows;

	seed();
	if (log_name != NULL)
		open_log(number);
	conn = connect_and_prepare(number);
	for (runs = 0; runs < warm_up; runs++)
		run_script(conn);
	runs = 0;
	__sync_fetch_and_add(&shared->ready, 1);
	while (!shared->go)
		sleep_until(now() + 0.001);
	begin = due = now();
	while (!is_over(shared, runs, begin))
	{
		if (rate > 0)
		{
			due += clients / rate;
			sleep_until(due);
			if (due < now() - 1)
				due = now();
		}
		rows = run_script(conn);
		if (rows > 0)
			count_rows(shared, rows);
		runs++;
	}
	shared->client[number].seconds = now() - begin;
	shared->client[number].runs = runs;
	PQfinish(conn);
	if (log_file != NULL && fclose(log_file) != 0)
		die("log", strerror(errno));
}

/* ---- all of them ---- */

static void
read_arguments(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "c:T:t:w:n:R:p:l:")) != -1)
	{
		switch (option)
		{
			case 'c':
				clients = atoi(optarg);
				break;
			case 'T':
				seconds = atof(optarg);
				break;
			case 't':
				times = atol(optarg);
				break;
			case 'w':
				warm_up = atol(optarg);
				break;
			case 'n':
				target = atol(optarg);
				break;
			case 'R':
				rate = atof(optarg);
				break;
			case 'l':
				log_name = optarg;
				break;
			case 'p':
				read_value(optarg);
				break;
			default:
				exit(2);
		}
	}
	if (optind + 1 != argc || clients < 1 || clients > CLIENTS ||
		(seconds <= 0 && times <= 0))
		die("usage",
			"drive -c CLIENTS -T SECONDS | -t TIMES [-w TIMES] [-n ROWS]"
			" [-R RATE] [-l FILE] [-p NAME=FILE]... SCRIPT");
	read_script(argv[optind]);
}

/* Starts the clients, lets them go when all are ready, and waits for them. */
static int
run_clients(volatile Shared *shared)
{
	pid_t pids[CLIENTS];
	int status;
	int failed = 0;
	int i;

	for (i = 0; i < clients; i++)
	{
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork", strerror(errno));
		if (pids[i] == 0)
		{
			run_client(shared, i);
			exit(0);
		}
	}
	while (shared->ready < clients && !failed)
	{
		failed = waitpid(-1, &status, WNOHANG) > 0;
		sleep_until(now() + 0.001);
	}
	for (i = 0; failed && i < clients; i++)
		kill(pids[i], SIGTERM);
	shared->begin = now();
	shared->go = 1;
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}

int
main(int argc, char **argv)
{
	Shared *shared;
	long runs = 0;
	double sum = 0;
	double longest = 0;
	int failed;
	int i;

	read_arguments(argc, argv);
	shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap", strerror(errno));
	failed = run_clients(shared);
	for (i = 0; i < clients; i++)
	{
		runs += shared->client[i].runs;
		if (shared->client[i].seconds > 0)
			sum += shared->client[i].runs / shared->client[i].seconds;
		if (shared->client[i].seconds > longest)
			longest = shared->client[i].seconds;
	}
	if (shared->end > 0)
		longest = shared->end - shared->begin;
	if (!failed)
		printf("%ld %.2f %ld %.3f\n", runs, sum, shared->rows, longest);
	return failed;
}
