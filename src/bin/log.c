/*
 * log.c
 *	  Lines on standard error, and what commands print.
 *
 * A line is lost rather than waited for: a full disk, or a reader that does not
 * read, keeps no worker from its claims.
 */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

#define PATIENCE 100 /* milliseconds that a line waits for a reader */
#define PIECE 4096   /* bytes that poll() promises to be taken */

static bool as_json;
static bool show_debug;
static Moment stuck_until;

void
log_use_json(bool json)
{
	as_json = json;
}

void
log_show_debug(void)
{
	show_debug = true;
}

/* Writes a line as far as its reader takes it. */
static void
write_line(int fd, const char *data, size_t length)
{
	while (length > 0)
	{
		struct pollfd ready = {.fd = fd, .events = POLLOUT};
		size_t piece = length < PIECE ? length : PIECE;
		ssize_t written;

		if (poll(&ready, 1, now < stuck_until ? 0 : PATIENCE) <= 0)
		{
			stuck_until = now + 1000;
			return;
		}
		written = write(fd, data, piece);
		if (written < 0 && errno != EINTR)
			return;
		if (written > 0)
		{
			data += written;
			length -= written;
		}
	}
}

static const char *
level_name(LogLevel level)
{
	switch (level)
	{
		case LOG_DEBUG:
			return "debug";
		case LOG_INFO:
			return "info";
		case LOG_WARNING:
			return "warning";
		case LOG_ERROR:
			return "error";
	}
	return "";
}

static void
put_time(Buffer *line)
{
	struct timespec time;
	struct tm parts;
	char text[32];

	clock_gettime(CLOCK_REALTIME, &time);
	gmtime_r(&time.tv_sec, &parts);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	buffer_put(line, "%s.%03dZ", text, (int) (time.tv_nsec / 1000000));
}

/* Makes a line of JSON. */
static void
put_json(Buffer *line, const char *level, const Job *job, const char *text)
{
	char *clean = clean_text(text, strlen(text));

	buffer_put(line, "{\"time\": \"");
	put_time(line);
	buffer_put(line, "\"");
	json_put_key(line, "level", level);
	if (job != NULL)
	{
		json_put_key(line, "task", job->task_id);
		buffer_put(line, ", \"run\": %s", job->run_id);
	}
	json_put_key(line, "message", clean);
	buffer_put(line, "}\n");
	free(clean);
}

/* Makes one line of a text, which a terminal takes for no command. */
static void
make_line(char *text)
{
	size_t length = strlen(text);

	while (length > 0 && text[length - 1] == '\n')
		text[--length] = '\0';
	for (; *text != '\0'; text++)
		if (iscntrl((unsigned char) *text))
			*text = ' ';
}

/* Writes a line about the worker, or about a run. */
void
log_line(LogLevel level, const Job *job, const char *format, ...)
{
	Buffer line = {0};
	va_list arguments;
	char *text = NULL;

	if (level == LOG_DEBUG && !show_debug)
		return;
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		abort();
	va_end(arguments);
	make_line(text);
	if (as_json)
		put_json(&line, level_name(level), job, text);
	else if (job != NULL)
		buffer_put(&line, "%s: %s: %s/%s %s\n", program_name,
				   level_name(level), job->task_id, job->run_id, text);
	else
		buffer_put(&line, "%s: %s: %s\n", program_name, level_name(level),
				   text);
	write_line(STDERR_FILENO, line.data, line.length);
	buffer_free(&line);
	free(text);
}

/* Writes a line that a command has printed. */
void
log_output(int fd, const Job *job, const char *line, size_t length)
{
	Buffer all = {0};

	if (as_json)
	{
		char *text = clean_text(line, length);

		put_json(&all, fd == STDOUT_FILENO ? "stdout" : "stderr", job, text);
		free(text);
	}
	else
	{
		if (job != NULL)
			buffer_put(&all, "%s/%s ", job->task_id, job->run_id);
		buffer_add(&all, line, length);
		buffer_add(&all, "\n", 1);
	}
	write_line(fd, all.data, all.length);
	buffer_free(&all);
}
