/*
 * process.c
 *	  Commands: how they start, what goes in and comes out, how they end.
 *
 * Each has a process group of its own, and is killed when the worker is.  Nothing
 * here waits: pipes are read and written as poll() says.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#include <sys/prctl.h>
#endif
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker.h"

#define CHUNK 65536
#define ROUNDS 32                        /* chunks that are read at a time */
#define LOG_LINE_MAX 8192                /* bytes of a line that is printed */
#define LINE_MAX_SIZE (64 * 1024 * 1024) /* of one that is read */
#define CALLS_MAX 100                    /* before descriptor 3 has to wait */
#define IDLE_END 1000                    /* between end of input and SIGTERM */

extern char **environ;

Process *processes;
static volatile int spawn_error;
static struct rlimit descriptors; /* that commands may have */

/* Makes room for the descriptors of all commands. */
static void
raise_descriptors(void)
{
	struct rlimit more;

	getrlimit(RLIMIT_NOFILE, &descriptors);
	more = descriptors;
	more.rlim_cur = DESCRIPTORS;
	if (more.rlim_cur > more.rlim_max)
		more.rlim_cur = more.rlim_max;
	if (more.rlim_cur > descriptors.rlim_cur)
		setrlimit(RLIMIT_NOFILE, &more);
}

void
processes_init(void)
{
	raise_descriptors();
	processes = allocate(options.jobs * sizeof(Process));
	for (int i = 0; i < options.jobs; i++)
		processes[i].kill_at = NEVER;
}

/* Returns a place for a run to be started in, or NULL. */
Process *
processes_free_one(void)
{
	for (Process *p = processes; p < processes + options.jobs; p++)
		if (p->job == NULL && (options.serve ? serve_takes(p) : p->pid == 0))
			return p;
	return NULL;
}

bool
processes_are_gone(void)
{
	for (Process *p = processes; p < processes + options.jobs; p++)
		if (p->pid != 0)
			return false;
	return true;
}

/* ---- environment ---- */

/* Returns whether a variable is one of the worker alone. */
static bool
is_own(const char *variable)
{
	static const char *const own[] = {"TQ_", "NOTIFY_SOCKET=", "WATCHDOG_",
									  NULL};

	for (int i = 0; own[i] != NULL; i++)
		if (strncmp(variable, own[i], strlen(own[i])) == 0)
			return true;
	return false;
}

static void
add_variable(char **environment, int *n, const char *name, const char *value)
{
	if (value != NULL)
		environment[(*n)++] = format_text("%s=%s", name, value);
}

/* Returns the environment of a command; its texts and it are freed. */
static char **
make_environment(const Process *process, const Job *job)
{
	int n = 0;
	char **environment;

	while (environ[n] != NULL)
		n++;
	environment = allocate((n + 12) * sizeof(char *));
	n = 0;
	for (char **variable = environ; *variable != NULL; variable++)
		if (!is_own(*variable))
			environment[n++] = copy_text(*variable);
	if (job == NULL)
		return environment;
	add_variable(environment, &n, "TQ_TASK_ID", job->task_id);
	add_variable(environment, &n, "TQ_RUN_ID", job->run_id);
	add_variable(environment, &n, "TQ_QUEUE", job->queue);
	add_variable(environment, &n, "TQ_NAME", job->name);
	add_variable(environment, &n, "TQ_ATTEMPT", job->attempt);
	add_variable(environment, &n, "TQ_DEADLINE", job->deadline);
	add_variable(environment, &n, "TQ_TAKEN_UNTIL", job->taken_until);
	add_variable(environment, &n, "TQ_TRACEPARENT", job->traceparent);
	add_variable(environment, &n, "TQ_CREDENTIALS_FILE",
				 process->credentials_file);
	return environment;
}

static void
free_list(char **list)
{
	for (char **text = list; *text != NULL; text++)
		free(*text);
	free(list);
}

/*
 * Makes a file that only this user can read.  On Linux it is in memory, and goes
 * with the worker; in a /proc of other processes its name would be another file.
 */
static bool
open_credentials(Process *process)
{
#ifdef __linux__
	struct stat named;
	struct stat opened;
	int fd = memfd_create("tq-credentials", MFD_CLOEXEC);

	process->credentials = fd;
	process->credentials_file = format_text("/proc/%d/fd/%d", (int) getpid(),
											fd);
	if (fd < 0 || fchmod(fd, S_IRUSR | S_IWUSR) != 0 ||
		fstat(fd, &opened) != 0 ||
		stat(process->credentials_file, &named) != 0)
		return false;
	errno = ENOENT;
	return named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
#else
	process->credentials_file = copy_text("/tmp/tq-worker-XXXXXX");
	process->credentials = mkostemp(process->credentials_file, O_CLOEXEC);
	return process->credentials >= 0;
#endif
}

/* Writes the credentials of a run into it; returns 0 or an error of the system. */
static int
write_credentials(Process *process, const Job *job)
{
	size_t length = strlen(job->credentials);

	errno = 0;
	if (open_credentials(process) &&
		write(process->credentials, job->credentials, length) ==
			(ssize_t) length)
		return 0;
	return errno != 0 ? errno : ENOSPC;
}

static void
remove_credentials(Process *process)
{
	if (process->credentials_file == NULL)
		return;
#ifndef __linux__
	unlink(process->credentials_file);
#endif
	if (process->credentials >= 0)
		close(process->credentials);
	free(process->credentials_file);
	process->credentials_file = NULL;
}

/* ---- start ---- */

typedef struct Ends
{
	int command[4]; /* 0 to 3 of the command */
	int worker[4];
} Ends;

static void
close_ends(int *ends)
{
	for (int i = 0; i < 4; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

/* Opens the pipes. */
static bool
open_pipes(Ends *ends)
{
	memset(ends, -1, sizeof(*ends));
	for (int i = 0; i < (options.serve ? 3 : 4); i++)
	{
		int both[2];

		if (pipe2(both, O_CLOEXEC) != 0)
		{
			close_ends(ends->command);
			close_ends(ends->worker);
			return false;
		}
		ends->command[i] = both[i != 0];
		ends->worker[i] = both[i == 0];
		fcntl(ends->worker[i], F_SETFL, O_NONBLOCK);
	}
	return true;
}

/* Lets no signal in, which a child would take for the worker's own. */
void
block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, before);
}

/* Has signals do in a child what they do in any program. */
void
reset_signals(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Becomes the command.  The memory is that of the worker, which stands still. */
static void become(const Ends *ends, char **arguments, char **environment,
				   pid_t worker) __attribute__((noreturn));

static void
become(const Ends *ends, char **arguments, char **environment, pid_t worker)
{
	setpgid(0, 0);
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	if (getppid() != worker)
		_exit(EXIT_NOT_FOUND);
	for (int i = 0; i < 4; i++)
		if (ends->command[i] >= 0)
			dup2(ends->command[i], i);
	reset_signals();
	setrlimit(RLIMIT_NOFILE, &descriptors);
	execve(options.program, arguments, environment);
	spawn_error = errno;
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* Starts the command; returns its process, or -1 with errno. */
static pid_t
spawn(const Ends *ends, char **arguments, char **environment)
{
	pid_t worker = getpid();
	sigset_t before;
	pid_t pid;
	int error;

	block_signals(&before);
	spawn_error = 0;
	pid = vfork();
	if (pid == 0)
		become(ends, arguments, environment, worker);
	error = pid < 0 ? errno : spawn_error;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid > 0 && error != 0)
		waitpid(pid, NULL, 0);
	errno = error;
	return error == 0 ? pid : -1;
}

/* Starts the command for a run, or to stay; returns 0 or an error of the system. */
int
process_spawn(Process *process, const Job *job)
{
	char **arguments;
	char **environment;
	Ends ends;
	pid_t pid;
	int error;

	if (!open_pipes(&ends))
		return errno;
	arguments = options_arguments(job);
	environment = make_environment(process, job);
	pid = spawn(&ends, arguments, environment);
	error = errno;
	free_list(arguments);
	free_list(environment);
	close_ends(ends.command);
	if (pid < 0)
	{
		close_ends(ends.worker);
		return error;
	}
	process->pid = pid;
	process->in = ends.worker[0];
	memcpy(process->streams, ends.worker + 1, sizeof(process->streams));
	process->started = now;
	process->kill_at = NEVER;
	process->stopping = false;
	return 0;
}

/* Gives a run to a process that was free; returns 0 or an error of the system. */
int
process_start(Process *process, Job *job)
{
	int error;

	if (options.serve)
	{
		process->job = job;
		serve_give(process, job);
		return 0;
	}
	error = job->credentials != NULL ? write_credentials(process, job) : 0;
	if (error == 0)
		error = process_spawn(process, job);
	if (error != 0)
	{
		remove_credentials(process);
		return error;
	}
	process->job = job;
	buffer_add(&process->input, job->payload, strlen(job->payload));
	free(job->payload);
	job->payload = NULL;
	process_feed(process);
	return 0;
}

/* ---- standard input ---- */

/* Closes the standard input of a command, which finds its end there. */
void
process_close_input(Process *process)
{
	if (process->in >= 0)
		close(process->in);
	process->in = -1;
	buffer_free(&process->input);
	process->written = 0;
}

/*
 * Returns whether a command that stays has read nothing of the line of its run:
 * all that was written is in the pipe still.
 */
static bool
is_untouched(const Process *process)
{
	int unread = 0;

	return process->given == 0 ||
		   (process->in >= 0 && ioctl(process->in, FIONREAD, &unread) == 0 &&
			(size_t) unread >= process->given);
}

/* A command reads no more, which ends one that stays, unless it has its line. */
static void
stop_feeding(Process *process)
{
	if (!options.serve || (process->job != NULL && !is_untouched(process)))
	{
		process_close_input(process);
		return;
	}
	buffer_free(&process->input);
	process->written = 0;
	process_stop(process, now + options.kill_after);
}

/* Writes what the command takes now. */
void
process_feed(Process *process)
{
	while (process->written < process->input.length)
	{
		ssize_t n = write(process->in, process->input.data + process->written,
						  process->input.length - process->written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
		{
			stop_feeding(process);
			return;
		}
		process->written += n;
		process->given += n;
	}
	if (!options.serve)
		process_close_input(process);
	else if (process->input.room > CHUNK)
		buffer_free(&process->input);
	process->input.length = process->written = 0;
}

/* ---- what comes out ---- */

/* A line is complete. */
static void
take_line(Process *process, Stream stream, char *line, size_t length)
{
	Job *job = process->job;

	if (stream == STREAM_CONTROL && job != NULL)
		job_line(job, line);
	else if (stream == STREAM_OUT && options.serve)
		serve_answer(process, strlen(line) == length ? line : "a NUL");
	else if (stream != STREAM_CONTROL)
		log_output(stream == STREAM_OUT ? STDOUT_FILENO : STDERR_FILENO, job,
				   line, length);
}

/* Takes the line that is collected, and begins the next. */
static void
end_line(Process *process, Stream stream)
{
	Buffer line = process->lines[stream];

	memset(&process->lines[stream], 0, sizeof(Buffer));
	if (line.data == NULL)
		buffer_add(&line, "", 0);
	if (!process->skipping[stream])
		take_line(process, stream, line.data, line.length);
	else if (stream == STREAM_OUT && options.serve)
		serve_answer(process, "a line that is too long");
	process->skipping[stream] = false;
	buffer_free(&line);
}

/* Collects lines.  What is longer than a line may be is skipped, or printed. */
static void
split_lines(Process *process, Stream stream, const char *data, size_t length)
{
	Buffer *line = &process->lines[stream];
	bool printed = stream == STREAM_ERR ||
				   (stream == STREAM_OUT && !options.serve);
	size_t limit = printed ? LOG_LINE_MAX : LINE_MAX_SIZE;

	while (length > 0)
	{
		const char *end = memchr(data, '\n', length);
		size_t piece = end == NULL ? length : (size_t) (end - data);
		size_t left = limit - line->length;

		if (!process->skipping[stream])
			buffer_add(line, data, piece < left ? piece : left);
		if (piece > left && printed)
			piece = left;
		if (line->length == limit && !printed)
		{
			log_line(LOG_WARNING, process->job, "a line is too long");
			buffer_free(line);
			process->skipping[stream] = true;
		}
		if (data + piece == end || line->length == limit)
			end_line(process, stream);
		piece += data + piece == end;
		data += piece;
		length -= piece;
	}
}

/* Takes what a command has printed. */
static void
take_output(Process *process, Stream stream, const char *data, size_t length)
{
	Job *job = process->job;

	if (stream == STREAM_ERR && job != NULL)
		cut_add(&job->errors, data, length);
	if (options.keep_log && job != NULL &&
		(stream == STREAM_ERR || (stream == STREAM_OUT && !options.serve)))
		cut_add(&job->output, data, length);
	else
		split_lines(process, stream, data, length);
}

/* Reads what there is of a stream, and closes it at its end. */
static void
read_stream(Process *process, Stream stream)
{
	static char chunk[CHUNK];

	for (int i = 0; i < ROUNDS && process->streams[stream] >= 0; i++)
	{
		ssize_t n = read(process->streams[stream], chunk, CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n > 0)
		{
			take_output(process, stream, chunk, n);
			if (n < CHUNK)
				return;
			continue;
		}
		close(process->streams[stream]);
		process->streams[stream] = -1;
		if (process->lines[stream].length > 0)
			end_line(process, stream);
		if (stream == STREAM_OUT && options.serve)
			process_stop(process, now + options.kill_after);
	}
}

static void
input_is_ready(void *subject, short events)
{
	Process *process = subject;

	if (process->in >= 0 && (events & (POLLERR | POLLHUP)) != 0)
		stop_feeding(process);
	else if (process->in >= 0)
		process_feed(process);
}

static void
out_is_ready(void *subject, short events)
{
	read_stream(subject, STREAM_OUT);
}

static void
err_is_ready(void *subject, short events)
{
	read_stream(subject, STREAM_ERR);
}

static void
control_is_ready(void *subject, short events)
{
	read_stream(subject, STREAM_CONTROL);
}

/* Has the loop wait for what commands take and give. */
void
processes_watch(void)
{
	static void (*const ready[])(void *, short) = {out_is_ready, err_is_ready,
												   control_is_ready};

	for (Process *p = processes; p < processes + options.jobs; p++)
	{
		if (p->pid == 0)
			continue;
		if (p->in >= 0 && p->written < p->input.length)
			watch(p->in, POLLOUT, input_is_ready, p);
		else if (p->in >= 0 && options.serve && !p->stopping)
			watch(p->in, 0, input_is_ready, p); /* does it read still? */
		for (int i = 0; i < STREAMS; i++)
			if (p->streams[i] >= 0 && (i != STREAM_CONTROL || p->job == NULL ||
									   p->job->calls < CALLS_MAX))
				watch(p->streams[i], POLLIN, ready[i], p);
	}
}

/* ---- end ---- */

/* Sends a signal to a command's group, or to it alone if it has left that. */
static void
send_signal(const Process *process, int number)
{
	if (kill(-process->pid, number) != 0)
		kill(process->pid, number);
}

/* Asks a command to end, which is killed at this moment at the latest. */
void
process_stop(Process *process, Moment kill_at)
{
	if (process->pid == 0)
		return;
	if (!process->stopping || kill_at < process->kill_at)
		process->kill_at = kill_at;
	if (!process->stopping)
	{
		send_signal(process, SIGTERM);
		send_signal(process, SIGCONT);
	}
	process->stopping = true;
	wake_at(process->kill_at);
}

/* A command has ended: takes what it has still said, and what its end means. */
static void
finish(Process *process, int status)
{
	Job *job = process->job;
	bool untouched = options.serve && is_untouched(process);

	process->pid = 0;
	for (int i = 0; i < STREAMS; i++)
	{
		read_stream(process, i);
		if (process->lines[i].length > 0)
			end_line(process, i);
		if (process->streams[i] >= 0)
			close(process->streams[i]);
		process->streams[i] = -1;
	}
	process_close_input(process);
	remove_credentials(process);
	process->kill_at = NEVER;
	if (options.serve)
		serve_ended(process, status, untouched);
	else if (job != NULL)
		job_end_status(job, status);
	process->job = NULL;
	process->stopping = false;
}

static Process *
find_process(pid_t pid)
{
	for (Process *p = processes; p < processes + options.jobs; p++)
		if (p->pid == pid)
			return p;
	return NULL;
}

/*
 * Takes the end of all that have ended, also of those that are no command, which
 * the first process of a container inherits.  What is left of the group of a
 * command that had to stop is killed while the number is still its own.
 */
void
processes_reap(void)
{
	siginfo_t info;

	for (;;)
	{
		Process *process;
		int status;

		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
			info.si_pid == 0)
			return;
		process = find_process(info.si_pid);
		if (process != NULL && process->stopping)
			kill(-process->pid, SIGKILL);
		if (waitpid(info.si_pid, &status, 0) > 0 && process != NULL)
			finish(process, status);
	}
}

/* Does what is due for a command at this time. */
static void
work(Process *process)
{
	if (options.serve)
		serve_keep(process);
	if (options.serve && stopping && process->pid != 0 &&
		process->job == NULL && process->kill_at == NEVER)
	{
		process_close_input(process);
		process->kill_at = now + IDLE_END;
	}
	if (now >= process->kill_at && process->stopping)
	{
		send_signal(process, SIGKILL);
		process->kill_at = NEVER;
	}
	else if (now >= process->kill_at)
		process_stop(process, now + options.kill_after);
	wake_at(process->kill_at);
}

void
processes_work(void)
{
	for (Process *p = processes; p < processes + options.jobs; p++)
		work(p);
}
