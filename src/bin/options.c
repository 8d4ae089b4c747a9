/*
 * options.c
 *	  Options of the command line and of a file, and the command's arguments.
 *
 * A file has lines "name = value" with the names of the command line; "command"
 * is what stands after the options there.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker.h"

#define FIELDS_MAX 32
#define JOBS_MAX 1000

typedef enum OptionType
{
	OPTION_TEXT,
	OPTION_COUNT,
	OPTION_BYTES,
	OPTION_TIME,
	OPTION_FLAG,
	OPTION_SPECIAL
} OptionType;

typedef struct Option
{
	const char *name;
	char letter;
	OptionType type;
	size_t place; /* in Options */
} Option;

#define PLACE(member) offsetof(Options, member)

Options options = {
	.group = (char *) "tq-worker",
	.jobs = 1,
	.batch = 1,
	.log_limit = 1024 * 1024,
	.kill_after = 10000,
	.stop_timeout = 25000,
};

static const Option table[] =
	{{"queue", 'q', OPTION_SPECIAL, 0},
	 {"dbname", 'd', OPTION_TEXT, PLACE(dbname)},
	 {"jobs", 'j', OPTION_COUNT, PLACE(jobs)},
	 {"batch", 'b', OPTION_COUNT, PLACE(batch)},
	 {"serve", 's', OPTION_FLAG, PLACE(serve)},
	 {"once", '1', OPTION_FLAG, PLACE(once)},
	 {"drain", 'D', OPTION_FLAG, PLACE(drain)},
	 {"log", 'l', OPTION_FLAG, PLACE(keep_log)},
	 {"log-limit", 0, OPTION_BYTES, PLACE(log_limit)},
	 {"log-format", 0, OPTION_SPECIAL, 0},
	 {"claim-for", 0, OPTION_TEXT, PLACE(claim_for)},
	 {"kill-after", 0, OPTION_TIME, PLACE(kill_after)},
	 {"stop-timeout", 0, OPTION_TIME, PLACE(stop_timeout)},
	 {"group", 'g', OPTION_TEXT, PLACE(group)},
	 {"id", 'i', OPTION_TEXT, PLACE(id)},
	 {"metrics", 'm', OPTION_TEXT, PLACE(metrics)},
	 {"config", 'c', OPTION_SPECIAL, 0},
	 {"verbose", 'v', OPTION_SPECIAL, 0},
	 {"help", 'h', OPTION_SPECIAL, 0},
	 {"version", 'V', OPTION_SPECIAL, 0},
	 {NULL, 0, OPTION_SPECIAL, 0}};

static const char *const help =
	"tq-worker runs a command for each task of a queue of tq.\n"
	"\n"
	"Usage: tq-worker -q QUEUE [OPTION]... [--] COMMAND [ARGUMENT]...\n"
	"\n"
	"  -q, --queue QUEUE        queue, or 'shop/*'; again for others, in order\n"
	"  -d, --dbname CONNINFO    database (default: PGHOST, PGDATABASE, ...)\n"
	"  -j, --jobs N             commands at a time (1)\n"
	"  -b, --batch N            claim N tasks ahead, and report together (1)\n"
	"  -s, --serve              start the command N times; a line for each task\n"
	"  -1, --once               work on one task, and end\n"
	"  -D, --drain              end when the queues are empty\n"
	"  -l, --log                keep the output as artifact \"log\"\n"
	"      --log-limit BYTES    of that artifact; cut in the middle (1MB)\n"
	"      --log-format FORMAT  of the worker's own lines: text or json (text)\n"
	"      --claim-for INTERVAL how long claims last (as the queue says)\n"
	"      --kill-after TIME    from SIGTERM to SIGKILL of a command (10s)\n"
	"      --stop-timeout TIME  that commands have when the worker ends (25s)\n"
	"  -g, --group GROUP        of the worker (tq-worker)\n"
	"  -i, --id ID              of the worker (host name and process)\n"
	"  -m, --metrics FILE       for the textfile collector of node_exporter\n"
	"  -c, --config FILE        of options, as in \"jobs = 4\"\n"
	"  -v, --verbose            say more\n"
	"  -h, --help               print this, and end\n"
	"  -V, --version            print the version, and end\n"
	"\n"
	"The payload is on standard input.  Exit status 0: completed; 65, 69, 70,\n"
	"75: the exceptions of sysexits.h; any other: failed.  {payload.KEY} in an\n"
	"argument is a field of the payload.  More in tq-worker(1).\n";

/* Ends the program because of how it was called. */
static void usage(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

static void
usage(const char *format, ...)
{
	va_list arguments;

	fputs("tq-worker: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs("\nTry \"tq-worker --help\".\n", stderr);
	exit(EXIT_USAGE);
}

/* ---- values ---- */

/* A number and its unit, as "10s" or "1MB". */
static int
read_number_of(const char *name, const char *value, const char *const *units,
			   const double *factors, double lowest, double highest)
{
	char *unit;
	double number = strtod(value, &unit);
	int i = 0;

	while (*unit == ' ')
		unit++;
	while (units[i] != NULL && strcmp(unit, units[i]) != 0)
		i++;
	if (unit == value || units[i] == NULL)
		usage("--%s: \"%s\" is not a number with a known unit", name, value);
	number *= factors[i];
	if (!(number >= lowest && number <= highest))
		usage("--%s: %s is out of range", name, value);
	return (int) number;
}

static int
read_time(const char *name, const char *value)
{
	static const char *const units[] = {"", "s", "ms", "min", "h", NULL};
	static const double factors[] = {1e3, 1e3, 1, 6e4, 36e5};

	return read_number_of(name, value, units, factors, 0, 864e5);
}

static int
read_bytes(const char *name, const char *value)
{
	static const char *const units[] = {"", "B", "kB", "MB", NULL};
	static const double factors[] = {1, 1, 1024, 1024 * 1024};

	return read_number_of(name, value, units, factors, 100, 256e6);
}

static int
read_count(const char *name, const char *value)
{
	char *end;
	long number = strtol(value, &end, 10);

	if (end == value || *end != '\0' || number < 1 || number > JOBS_MAX)
		usage("--%s: \"%s\" is not a number from 1 to %d", name, value,
			  JOBS_MAX);
	return (int) number;
}

static bool
read_flag(const char *name, const char *value)
{
	if (value == NULL || strcmp(value, "on") == 0)
		return true;
	if (strcmp(value, "off") != 0)
		usage("--%s: \"%s\" is neither on nor off", name, value);
	return false;
}

/* Appends to a list that ends with NULL. */
static void
list_add(char ***list, int *n, const char *value)
{
	*list = realloc(*list, (*n + 2) * sizeof(char *));
	if (*list == NULL)
		abort();
	(*list)[(*n)++] = copy_text(value);
	(*list)[*n] = NULL;
}

/* ---- the file ---- */

static void set_option(const Option *option, const char *value);

static const Option *
find_option(const char *name, size_t length)
{
	for (const Option *option = table; option->name != NULL; option++)
		if (strlen(option->name) == length &&
			strncmp(option->name, name, length) == 0)
			return option;
	return NULL;
}

/* Takes a word from a line, which may be in quotes; NULL: there is none. */
static char *
next_word(char **line)
{
	char *from = *line + strspn(*line, " \t");
	char *to = from;
	char *word = from;
	char quote = '\0';

	if (*from == '\0')
		return NULL;
	for (; *from != '\0' && (quote || !isblank((unsigned char) *from)); from++)
	{
		if (quote == '\0' && (*from == '"' || *from == '\''))
			quote = *from;
		else if (*from == quote)
			quote = '\0';
		else
			*to++ = *from;
	}
	*line = *from == '\0' ? from : from + 1;
	*to = '\0';
	return word;
}

static void
read_command_line(char *value)
{
	char *word;

	options.ncommand = 0;
	while ((word = next_word(&value)) != NULL)
		list_add(&options.command, &options.ncommand, word);
}

/* Carries out a line of the file. */
static void
read_line(const char *file, int number, char *line)
{
	char *name = line + strspn(line, " \t");
	size_t length = strcspn(name, " \t=\n");
	char *value = name + length;
	const Option *option = find_option(name, length);

	if (*name == '#' || length == 0)
		return;
	value += strspn(value, " \t");
	if (*value == '=')
		value += 1 + strspn(value + 1, " \t");
	else if (*value != '\0')
		usage("%s, line %d: there is no \"=\"", file, number);
	else
		value = NULL;
	if (length == 7 && strncmp(name, "command", 7) == 0 && value != NULL)
		read_command_line(value);
	else if (option == NULL || strcmp(option->name, "config") == 0)
		usage("%s, line %d: there is no option \"%.*s\"", file, number,
			  (int) length, name);
	else
		set_option(option, value);
}

static void
read_file(const char *file)
{
	FILE *in = fopen(file, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	if (in == NULL)
		usage("--config: %s: %s", file, strerror(errno));
	for (int number = 1; (length = getline(&line, &room, in)) >= 0; number++)
	{
		while (length > 0 && isspace((unsigned char) line[length - 1]))
			line[--length] = '\0';
		read_line(file, number, line);
	}
	free(line);
	fclose(in);
}

/* ---- the command line ---- */

static void
set_special(const Option *option, const char *value)
{
	if (strcmp(option->name, "queue") == 0)
		list_add(&options.queues, &options.nqueues, value);
	else if (strcmp(option->name, "log-format") == 0)
	{
		if (strcmp(value, "json") != 0 && strcmp(value, "text") != 0)
			usage("--log-format: \"%s\" is neither text nor json", value);
		log_use_json(strcmp(value, "json") == 0);
	}
	else if (strcmp(option->name, "config") == 0)
		read_file(value);
	else if (strcmp(option->name, "verbose") == 0)
		log_show_debug();
	else
	{
		fputs(option->letter == 'h' ? help : "tq-worker " TQ_VERSION "\n",
			  stdout);
		exit(0);
	}
}

/* Returns whether an option has a value. */
static bool
takes_value(const Option *option)
{
	return option->type != OPTION_FLAG &&
		   (option->letter == 0 || strchr("vhV", option->letter) == NULL);
}

static void
set_option(const Option *option, const char *value)
{
	void *place = (char *) &options + option->place;

	if (takes_value(option) && (value == NULL || *value == '\0'))
		usage("--%s needs a value", option->name);
	switch (option->type)
	{
		case OPTION_TEXT:
			*(char **) place = copy_text(value);
			break;
		case OPTION_COUNT:
			*(int *) place = read_count(option->name, value);
			break;
		case OPTION_BYTES:
			*(int *) place = read_bytes(option->name, value);
			break;
		case OPTION_TIME:
			*(int *) place = read_time(option->name, value);
			break;
		case OPTION_FLAG:
			*(bool *) place = read_flag(option->name, value);
			break;
		case OPTION_SPECIAL:
			set_special(option, value);
			break;
	}
}

/* Reads "--name", "--name=value" or "--name value"; returns what it took. */
static int
read_long(char **argv, int at)
{
	const char *name = argv[at] + 2;
	size_t length = strcspn(name, "=");
	const Option *option = find_option(name, length);

	if (option == NULL)
		usage("there is no option --%.*s", (int) length, name);
	if (name[length] == '=')
	{
		set_option(option, name + length + 1);
		return 1;
	}
	if (!takes_value(option))
	{
		set_option(option, NULL);
		return 1;
	}
	set_option(option, argv[at + 1]);
	return 2;
}

/* Reads "-x", "-xyz", "-xvalue" or "-x value"; returns how many it took. */
static int
read_letters(char **argv, int at)
{
	for (const char *letter = argv[at] + 1; *letter != '\0'; letter++)
	{
		const Option *option = table;

		while (option->name != NULL && option->letter != *letter)
			option++;
		if (option->name == NULL)
			usage("there is no option -%c", *letter);
		if (takes_value(option))
		{
			bool here = letter[1] != '\0';

			set_option(option, here ? letter + 1 : argv[at + 1]);
			return here ? 1 : 2;
		}
		set_option(option, NULL);
	}
	return 1;
}

/* ---- the command ---- */

/* Returns the file that a command is, or ends the program. */
static char *
find_program(const char *name)
{
	const char *path = getenv("PATH");
	bool found = false;

	if (strchr(name, '/') != NULL)
		path = "";
	while (path != NULL)
	{
		size_t length = strcspn(path, ":");
		char *file = strchr(name, '/') != NULL
						 ? copy_text(name)
						 : format_text("%.*s/%s", (int) length, path, name);
		struct stat status;

		if (stat(file, &status) == 0 && S_ISREG(status.st_mode))
		{
			found = true;
			if (access(file, X_OK) == 0)
				return file;
		}
		free(file);
		path = path[length] == ':' ? path + length + 1 : NULL;
	}
	fprintf(stderr, "tq-worker: %s: %s\n", name,
			found ? "cannot be executed" : "command not found");
	exit(found ? EXIT_NOT_EXECUTABLE : EXIT_NOT_FOUND);
}

/* Returns the length of "{payload.a.b}" there, or 0. */
static size_t
field_length(const char *text)
{
	size_t length;

	if (strncmp(text, "{payload", 8) != 0 ||
		(text[8] != '.' && text[8] != '}'))
		return 0;
	length = strcspn(text, "}");
	return text[length] == '}' ? length + 1 : 0;
}

/* Returns the path of such a field as an array of SQL. */
static char *
field_path(const char *field, size_t length)
{
	Buffer path = {0};
	const char *end = field + length - 1;

	buffer_add(&path, "{", 1);
	for (const char *at = field + 8; at < end;)
	{
		const char *key = ++at;

		while (at < end && *at != '.')
			at++;
		buffer_put(&path, "%s\"", path.length > 1 ? "," : "");
		for (; key < at; key++)
			buffer_put(&path, *key == '"' || *key == '\\' ? "\\%c" : "%c",
					   *key);
		buffer_add(&path, "\"", 1);
	}
	buffer_add(&path, "}", 1);
	return path.data;
}

/* Collects the fields of payloads that the arguments name. */
static void
find_fields(void)
{
	for (int i = 1; i < options.ncommand; i++)
		for (const char *at = strchr(options.command[i], '{'); at != NULL;
			 at = strchr(at + 1, '{'))
		{
			size_t length = field_length(at);

			char *path = length > 0 ? field_path(at, length) : NULL;

			if (path != NULL)
				list_add(&options.fields, &options.nfields, path);
			free(path);
		}
	if (options.nfields > FIELDS_MAX)
		usage("more than %d fields in the arguments", FIELDS_MAX);
	if (options.nfields > 0 && options.serve)
		usage("with --serve, an argument cannot name a field of a payload");
}

/* Returns the command's arguments for a run; they and the list are freed. */
char **
options_arguments(const Job *job)
{
	char **arguments = allocate((options.ncommand + 1) * sizeof(char *));
	int field = 0;

	for (int i = 0; i < options.ncommand; i++)
	{
		Buffer argument = {0};
		const char *at = options.command[i];

		buffer_add(&argument, "", 0);
		while (*at != '\0')
		{
			size_t length = i > 0 && job != NULL ? field_length(at) : 0;

			if (length > 0)
				buffer_put(&argument, "%s", job->values[field++]);
			else
				buffer_add(&argument, at, 1);
			at += length > 0 ? length : 1;
		}
		arguments[i] = argument.data;
	}
	return arguments;
}

/* ---- all of them ---- */

static void
check_options(void)
{
	if (options.nqueues == 0)
		usage("--queue is missing");
	if (options.ncommand == 0)
		usage("the command is missing");
	if (options.once && (options.batch > 1 || options.jobs > 1))
		usage("--once works on one task, without --jobs and --batch");
	options.program = find_program(options.command[0]);
	find_fields();
}

/* Gives the worker an id that no other has. */
static void
set_default_id(void)
{
	char host[200] = "localhost";

	if (options.id != NULL)
		return;
	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	options.id = format_text("%.25s-%d", host, (int) getpid());
}

/* Reads the command line, and the file that it names. */
void
options_read(int argc, char **argv)
{
	int at = 1;

	while (at < argc && argv[at][0] == '-' && argv[at][1] != '\0')
	{
		if (strcmp(argv[at], "--") == 0)
		{
			at++;
			break;
		}
		at += argv[at][1] == '-' ? read_long(argv, at)
								 : read_letters(argv, at);
	}
	if (at < argc)
		options.ncommand = 0;
	while (at < argc)
		list_add(&options.command, &options.ncommand, argv[at++]);
	check_options();
	set_default_id();
}
