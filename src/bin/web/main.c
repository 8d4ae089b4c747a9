/*
 * main.c
 *	  Options, signals, and the end of tq-web.
 */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "web.h"

const char *const program_name = "tq-web";
Moment now;

Options options = {
	.conninfo = "",
	.address = "127.0.0.1",
	.port = 8383,
	.workers = 8,
	.connections = 4,
	.clients = 4000,
	.idle = 1800,
};

static const char *const help =
	"tq-web is a web page for the operators of tq.\n"
	"\n"
	"Usage: tq-web [OPTION]... [CONNINFO]\n"
	"\n"
	"  -l, --listen ADDRESS:PORT  where to listen (127.0.0.1:8383)\n"
	"      --host NAME            name under which browsers find the page; again\n"
	"      --cert FILE            certificate, and\n"
	"      --key FILE             its key, for TLS\n"
	"      --trust ADDRESS        a proxy before it, or its network; again\n"
	"      --role-header NAME     header by which such a proxy says which role\n"
	"                             a person is, in place of a login\n"
	"      --as ROLE              no login: all see what this role sees, and\n"
	"                             nothing can be changed\n"
	"      --read-only            nothing can be changed\n"
	"      --metrics-token FILE   a token by which /metrics is read\n"
	"      --metrics-from ADDRESS address that needs no token; again\n"
	"      --idle MINUTES         until a session ends (30)\n"
	"      --workers N            pages that are made at a time (8)\n"
	"      --connections N        of each role to the database, at most (4)\n"
	"      --clients N            connections of browsers, at most (4000)\n"
	"      --log-format FORMAT    text or json (text)\n"
	"  -v, --verbose              say more\n"
	"  -h, --help                 print this, and end\n"
	"  -V, --version              print the version, and end\n"
	"\n"
	"CONNINFO is the database, as in 'host=/run/postgresql dbname=shop'; what is\n"
	"missing is taken from PGHOST, PGDATABASE, ....  People log in as roles of\n"
	"PostgreSQL.  More in tq-web(1).\n";

enum
{
	OPTION_HOST = 256,
	OPTION_CERT,
	OPTION_KEY,
	OPTION_TRUST,
	OPTION_ROLE_HEADER,
	OPTION_AS,
	OPTION_READ_ONLY,
	OPTION_METRICS_TOKEN,
	OPTION_METRICS_FROM,
	OPTION_IDLE,
	OPTION_WORKERS,
	OPTION_CONNECTIONS,
	OPTION_CLIENTS,
	OPTION_LOG_FORMAT
};

static const struct option table[] =
	{{"listen", required_argument, NULL, 'l'},
	 {"host", required_argument, NULL, OPTION_HOST},
	 {"cert", required_argument, NULL, OPTION_CERT},
	 {"key", required_argument, NULL, OPTION_KEY},
	 {"trust", required_argument, NULL, OPTION_TRUST},
	 {"role-header", required_argument, NULL, OPTION_ROLE_HEADER},
	 {"as", required_argument, NULL, OPTION_AS},
	 {"read-only", no_argument, NULL, OPTION_READ_ONLY},
	 {"metrics-token", required_argument, NULL, OPTION_METRICS_TOKEN},
	 {"metrics-from", required_argument, NULL, OPTION_METRICS_FROM},
	 {"idle", required_argument, NULL, OPTION_IDLE},
	 {"workers", required_argument, NULL, OPTION_WORKERS},
	 {"connections", required_argument, NULL, OPTION_CONNECTIONS},
	 {"clients", required_argument, NULL, OPTION_CLIENTS},
	 {"log-format", required_argument, NULL, OPTION_LOG_FORMAT},
	 {"verbose", no_argument, NULL, 'v'},
	 {"help", no_argument, NULL, 'h'},
	 {"version", no_argument, NULL, 'V'},
	 {NULL, 0, NULL, 0}};

/* Milliseconds of a clock that is never set. */
Moment
clock_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (Moment) time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* ---- options ---- */

/* Ends the program because of how it was called. */
static void usage(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

static void
usage(const char *format, ...)
{
	va_list arguments;

	fputs("tq-web: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs("\nTry \"tq-web --help\".\n", stderr);
	exit(EXIT_USAGE);
}

static int
read_count(const char *name, const char *value, int most)
{
	char *end;
	long number = strtol(value, &end, 10);

	if (end == value || *end != '\0' || number < 1 || number > most)
		usage("--%s: \"%s\" is not a number from 1 to %d", name, value, most);
	return (int) number;
}

static void
add(const char *name, const char **list, int *n, const char *value)
{
	if (*n == 16)
		usage("--%s: more than 16", name);
	list[(*n)++] = value;
}

static void
add_address(const char *name, const char **list, int *n, const char *value)
{
	if (!trust_reads_address(value))
		usage("--%s: \"%s\" is neither an address nor a network", name, value);
	add(name, list, n, value);
}

/* Reads "127.0.0.1:8383", "[::1]:8383" or a port alone. */
static void
read_listen(char *value)
{
	char *colon = strrchr(value, ':');
	char *port = colon == NULL ? value : colon + 1;

	options.port = read_count("listen", port, 65535);
	if (colon == NULL)
		return;
	*colon = '\0';
	if (*value == '[' && colon > value && colon[-1] == ']')
	{
		value++;
		colon[-1] = '\0';
	}
	options.address = value;
}

/* Returns the first line of a file. */
static char *
read_token(const char *name)
{
	FILE *file = fopen(name, "r");
	char *line = NULL;
	size_t room = 0;

	if (file == NULL || getline(&line, &room, file) <= 0)
		usage("--metrics-token: %s: %s", name, strerror(errno));
	fclose(file);
	line[strcspn(line, "\r\n")] = '\0';
	if (strlen(line) < 16)
		usage("--metrics-token: the token has less than 16 characters");
	return line;
}

static void
read_format(const char *value)
{
	if (strcmp(value, "json") != 0 && strcmp(value, "text") != 0)
		usage("--log-format: \"%s\" is neither text nor json", value);
	log_use_json(strcmp(value, "json") == 0);
}

static void
set_option(int option, char *value)
{
	switch (option)
	{
		case 'l':
			read_listen(value);
			break;
		case OPTION_HOST:
			add("host", options.hosts, &options.nhosts, value);
			break;
		case OPTION_CERT:
			options.certificate = value;
			break;
		case OPTION_KEY:
			options.key = value;
			break;
		case OPTION_TRUST:
			add_address("trust", options.trusted, &options.ntrusted, value);
			break;
		case OPTION_ROLE_HEADER:
			options.role_header = value;
			break;
		case OPTION_AS:
			options.as = value;
			break;
		case OPTION_READ_ONLY:
			options.read_only = true;
			break;
		case OPTION_METRICS_TOKEN:
			options.metrics_token = read_token(value);
			break;
		case OPTION_METRICS_FROM:
			add_address("metrics-from", options.scrapers, &options.nscrapers,
						value);
			break;
		case OPTION_IDLE:
			options.idle = 60 * read_count("idle", value, 525600);
			break;
		case OPTION_WORKERS:
			options.workers = read_count("workers", value, 64);
			break;
		case OPTION_CONNECTIONS:
			options.connections = read_count("connections", value, 16);
			break;
		case OPTION_CLIENTS:
			options.clients = read_count("clients", value, 60000);
			break;
		case OPTION_LOG_FORMAT:
			read_format(value);
			break;
		case 'v':
			log_show_debug();
			break;
		case 'h':
		case 'V':
			fputs(option == 'h' ? help : "tq-web " TQ_VERSION "\n", stdout);
			exit(0);
		default:
			fputs("Try \"tq-web --help\".\n", stderr);
			exit(EXIT_USAGE);
	}
}

static void
read_options(int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "l:vhV", table, NULL)) != -1)
		set_option(option, optarg);
	if (argc > optind + 1)
		usage("there is one CONNINFO only, in quotes");
	if (argc > optind)
		options.conninfo = argv[optind];
	if ((options.certificate == NULL) != (options.key == NULL))
		usage("--cert and --key belong together");
	if (options.certificate != NULL &&
		MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		usage("--cert: this libmicrohttpd has no TLS: put a proxy before it");
	if (options.role_header != NULL && options.ntrusted == 0)
		usage("--role-header needs --trust: the address of the proxy");
	if (options.as != NULL && strcmp(options.as, "none") == 0)
		usage("--as: none is no role");
	if (options.role_header != NULL && options.as != NULL)
		usage("--role-header and --as exclude one another");
}

/* ---- the loop ---- */

/*
 * Has large answers in maps of their own, which go back to the system at once.
 * By itself malloc() learns from the first of them to keep the next ones in the
 * arenas of the threads that make pages: of 20 MB that a role does not read the
 * program had 38 to 59 MB then, by which threads made them; now it has 31.
 */
static void
bound_memory(void)
{
#ifdef M_MMAP_THRESHOLD /* not in each C library */
	mallopt(M_MMAP_THRESHOLD, 512 * 1024);
#endif
}

/* Has as many descriptors as there may be connections. */
static void
raise_limits(void)
{
	struct rlimit limit;
	rlim_t wanted = (rlim_t) options.clients + 1000;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < wanted)
		options.clients = limit.rlim_cur > 600 ? (int) limit.rlim_cur - 500
											   : 100;
}

/* Waits for a signal that ends us; does what is due meanwhile. */
static void
wait_for_end(const sigset_t *signals)
{
	const char *watchdog = getenv("WATCHDOG_USEC");
	struct timespec second = {.tv_sec = 1};
	int number;

	do
	{
		now = clock_now();
		session_sweep();
		clients_sweep();
		if (watchdog != NULL)
			notify_systemd("WATCHDOG=1");
		number = sigtimedwait(signals, NULL, &second);
	} while (number != SIGTERM && number != SIGINT);
	log_line(LOG_INFO, NULL, "stops");
	notify_systemd("STOPPING=1");
}

int
main(int argc, char **argv)
{
	sigset_t signals;

	read_options(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	now = clock_now();
	bound_memory();
	raise_limits();
	database_start();
	asset_start();
	live_start();
	http_start();
	log_line(LOG_INFO, NULL, "listens on http%s://%s:%d",
			 options.certificate == NULL ? "" : "s", options.address,
			 options.port);
	notify_systemd("READY=1");
	wait_for_end(&signals);
	http_stop();
	return 0;
}
