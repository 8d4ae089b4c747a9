/*
 * job.c
 *	  A run, from its claim to the answer of its report.
 *
 * A run that ended is reported until the database has answered.  One whose claim
 * is lost is not reported at all: another worker has it, or it was canceled.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "worker.h"

#define ERRORS_LIMIT 4000 /* bytes of standard error that an error has */
#define PROGRESS_PAUSE 1000
#define DOUBT_PAUSE 1000
#define MARGIN_MAX                                                            \
	1000 /* between the end of a command and that of its claim */
#define MALFORMED_MAX 10 /* lines of a run that are logged */
#define MALFORMED_SHOWN 60
#define ARTIFACT_LIMIT (64 * 1024 * 1024)

/* How a command's end is reported, as sysexits.h has it. */
static const struct
{
	int status;
	const char *reason;
} exceptions[] = {{EX_DATAERR, "malformed-payload"},
				  {EX_UNAVAILABLE, "resource-unavailable"},
				  {EX_SOFTWARE, "internal-error"},
				  {EX_TEMPFAIL, "intermittent-task"}};

static Job *first_job;
static Job *last_job;
static int counts[JOB_STATES];
long jobs_total[TOTALS];

Job *
jobs_first(void)
{
	return first_job;
}

int
jobs_count(JobState state)
{
	return counts[state];
}

/* Puts a job into another state. */
void
job_set_state(Job *job, JobState state)
{
	counts[job->state]--;
	counts[state]++;
	job->state = state;
}

/* Returns a job by its ids, or NULL. */
Job *
jobs_find(const char *task_id, const char *run_id)
{
	for (Job *job = first_job; job != NULL; job = job->next)
		if (strcmp(job->task_id, task_id) == 0 &&
			strcmp(job->run_id, run_id) == 0)
			return job;
	return NULL;
}

/* ---- begin and end ---- */

/* Returns a column of a claim, or NULL. */
static char *
column(const PGresult *result, int row, ClaimColumn number)
{
	if (PQgetisnull(result, row, number))
		return NULL;
	return copy_text(PQgetvalue(result, row, number));
}

/*
 * The claim lasts for so long from this moment on.  If it is not prolonged, the
 * command is asked to end in time, so that it is gone when another worker begins.
 */
static void
claim_lasts(Job *job, Moment from, const char *milliseconds)
{
	Moment lasts = milliseconds == NULL ? 0 : atoll(milliseconds);
	Moment margin = lasts / 20 < MARGIN_MAX ? lasts / 20 : MARGIN_MAX;
	Moment grace = lasts / 8;

	if (grace > options.kill_after)
		grace = options.kill_after;
	job->reclaim_at = from + lasts / 2;
	job->kill_at = from + lasts - margin;
	job->stop_at = job->kill_at - grace;
}

/* Takes the values that the command's arguments name; false: one is missing. */
static bool
take_values(Job *job, const PGresult *result, int row)
{
	bool all = true;

	job->values = allocate((options.nfields + 1) * sizeof(char *));
	for (int i = 0; i < options.nfields; i++)
	{
		bool missing = PQgetisnull(result, row, CLAIM_FIELDS + i);

		job->values[i] = copy_text(
			missing ? "" : PQgetvalue(result, row, CLAIM_FIELDS + i));
		all = all && !missing;
	}
	return all;
}

static void
take_columns(Job *job, const PGresult *result, int row)
{
	job->task_id = column(result, row, CLAIM_TASK_ID);
	job->run_id = column(result, row, CLAIM_RUN_ID);
	job->queue = column(result, row, CLAIM_QUEUE);
	job->payload = column(result, row, CLAIM_PAYLOAD);
	job->credentials = column(result, row, CLAIM_CREDENTIALS);
	job->name = column(result, row, CLAIM_NAME);
	job->attempt = column(result, row, CLAIM_ATTEMPT);
	job->deadline = column(result, row, CLAIM_DEADLINE);
	job->expires = column(result, row, CLAIM_EXPIRES);
	job->taken_until = column(result, row, CLAIM_TAKEN_UNTIL);
	job->traceparent = column(result, row, CLAIM_TRACEPARENT);
	job->retries_left = column(result, row, CLAIM_RETRIES_LEFT);
	if (job->attempt == NULL)
		job->attempt = copy_text(job->run_id);
}

/* Adds a run that was claimed. */
Job *
job_new(const PGresult *result, int row)
{
	Job *job = allocate(sizeof(Job));
	char *lasts = column(result, row, CLAIM_LASTS);

	take_columns(job, result, row);
	claim_lasts(job, now, lasts);
	free(lasts);
	job->claimed = now;
	job->output.head_limit = job->output.tail_limit = options.log_limit / 2;
	job->errors.tail_limit = ERRORS_LIMIT;
	counts[JOB_READY]++;
	if (last_job == NULL)
		first_job = job;
	else
		last_job->next = job;
	last_job = job;
	if (!take_values(job, result, row))
		job_end(job, "malformed-payload",
				"the payload has not all that the command's arguments name");
	log_line(LOG_DEBUG, job, "claimed from %s", job->queue);
	return job;
}

static void
free_texts(Job *job)
{
	char **texts[] = {&job->task_id,     &job->run_id,      &job->queue,
					  &job->payload,     &job->credentials, &job->name,
					  &job->attempt,     &job->deadline,    &job->taken_until,
					  &job->traceparent, &job->expires,     &job->retries_left,
					  &job->reason,      &job->result,      &job->error,
					  &job->details,     &job->defer,       &job->progress,
					  &job->doubt};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		free(*texts[i]);
		*texts[i] = NULL;
	}
	for (int i = 0; i < options.nfields; i++)
		free(job->values[i]);
	free(job->values);
}

/* Forgets a run. */
static void
job_free(Job *job)
{
	Job **place = &first_job;

	while (*place != job)
		place = &(*place)->next;
	*place = job->next;
	if (last_job == job)
	{
		last_job = first_job;
		while (last_job != NULL && last_job->next != NULL)
			last_job = last_job->next;
	}
	counts[job->state]--;
	cut_free(&job->output);
	cut_free(&job->errors);
	free_texts(job);
	free(job);
	calls_look_again();
}

static void
set_text(char **place, const char *text)
{
	free(*place);
	*place = copy_text(text);
}

/* ---- calls about a run ---- */

/* Sends a call again whose answer is lost; returns whether that is so. */
static bool
is_repeated(Call *call, const PGresult *result)
{
	if (result == NULL)
	{
		call_enqueue(call, true);
		return true;
	}
	call->job->calls--;
	return false;
}

static void
say_refused(const Call *call, const PGresult *result, const char *what)
{
	if (!result_is_good(result))
		log_line(LOG_WARNING, call->job, "%s is refused: %s", what,
				 result_error(result));
}

/* Asks something about a run, of which the value is all but its credentials. */
static Call *
ask(Job *job, Statement statement, char *value,
	void (*done)(Call *, PGresult *))
{
	Call *call = call_new(statement, job, done);

	call->parameters[2] = value;
	call->parameters[3] = copy_text(job->credentials);
	job->calls++;
	call_enqueue(call, false);
	return call;
}

/* The database says that a claim is lost; a notification may have said why. */
static void
lose_taken(Job *job, const PGresult *result)
{
	job_lose(job, job->doubt != NULL && *job->doubt != '\0'
					  ? job->doubt
					  : result_error(result));
}

static void
reclaim_done(Call *call, PGresult *result)
{
	Job *job = call->job;

	if (is_repeated(call, result))
		return;
	job->reclaiming = false;
	if (result_is_good(result) && PQntuples(result) == 1)
		claim_lasts(job, call->began, PQgetvalue(result, 0, 0));
	else if (job->state <= JOB_RUNNING && result_is_lost(result))
		lose_taken(job, result);
	else
	{
		say_refused(call, result, "a reclaim");
		job->reclaim_at = now + (job->kill_at - now) / 2 + 1000;
	}
	call_free(call);
}

static void
reclaim(Job *job)
{
	job->reclaiming = true;
	if (job->doubted)
		job->doubted_at = now;
	job->doubted = false;
	ask(job, SQL_RECLAIM, copy_text(options.claim_for), reclaim_done);
}

/* A claim may be lost: the database is asked, once a second at most. */
void
job_doubt(Job *job, const char *why)
{
	job->doubted = true;
	set_text(&job->doubt, why);
}

/* Something may have been taken from the worker, unheard. */
void
jobs_doubt_all(void)
{
	for (Job *job = first_job; job != NULL; job = job->next)
		job_doubt(job, "");
}

/* Returns when a claim is to be prolonged, or asked for. */
static Moment
reclaim_due(const Job *job)
{
	Moment due = job->doubted_at == 0 ? now : job->doubted_at + DOUBT_PAUSE;

	if (!job->doubted || job->state > JOB_RUNNING || due > job->reclaim_at)
		return job->reclaim_at;
	return due;
}

static void
progress_done(Call *call, PGresult *result)
{
	if (is_repeated(call, result))
		return;
	call->job->progressing = false;
	say_refused(call, result, "progress");
	call_free(call);
}

/* Shows the last progress of a command, once a second. */
static void
send_progress(Job *job)
{
	ask(job, SQL_PROGRESS, job->progress, progress_done);
	job->progress = NULL;
	job->progressing = true;
	job->progress_at = now + PROGRESS_PAUSE;
}

/* A command is so far, as {"done": ..., "total": ..., "message": ...}. */
void
job_progress(Job *job, const char *progress)
{
	set_text(&job->progress, progress);
}

static void
artifact_done(Call *call, PGresult *result)
{
	if (is_repeated(call, result))
		return;
	say_refused(call, result, "an artifact");
	call_free(call);
}

/* Creates an artifact, of which the members of an object say what it is. */
static void
create_artifact(Job *job, const char *name, Buffer *members)
{
	Call *call;

	buffer_add(members, "}", 1);
	call = ask(job, SQL_ARTIFACT, members->data, artifact_done);
	call->parameters[4] = copy_text(name);
	call->parameters[5] = copy_text(job->expires);
}

/* Keeps what a command has printed. */
static void
create_log(Job *job)
{
	Buffer members = {0};
	char *text;

	if (!options.keep_log || job->output.head.length == 0)
		return;
	text = cut_text(&job->output);
	buffer_put(&members, "{\"storageType\": \"inline\"");
	json_put_key(&members, "contentType", "text/plain; charset=utf-8");
	json_put_key(&members, "content", text);
	create_artifact(job, "log", &members);
	free(text);
	cut_free(&job->output);
}

static void
defer_done(Call *call, PGresult *result)
{
	Job *job = call->job;

	if (is_repeated(call, result))
		return;
	if (result_is_good(result))
		job_settled(job, "deferred");
	else
		say_refused(call, result, "a delay");
	call_free(call);
}

/* Puts a run back, as its command wants; if that is refused, it is reported. */
static void
send_defer(Job *job)
{
	ask(job, SQL_DEFER, job->defer, defer_done);
	job->defer = NULL;
	job->reclaim_at = NEVER; /* it may be gone with the answer */
}

/* ---- lines of descriptor 3 ---- */

/* Takes a word, which ends with a space, from a line. */
static char *
next_word(char **line)
{
	char *word = *line + strspn(*line, " ");
	size_t length = strcspn(word, " ");

	*line = word + length;
	if (**line != '\0')
		*(*line)++ = '\0';
	return word;
}

static bool
is_number(const char *text)
{
	size_t length = strspn(text, "0123456789");

	return length > 0 && length < 19 && text[length] == '\0';
}

static bool
progress_line(Job *job, char *line)
{
	char *done = next_word(&line);
	char *total = next_word(&line);
	bool known = is_number(total);
	Buffer progress = {0};

	if (!is_number(done) || (!known && strcmp(total, "-") != 0))
		return false;
	buffer_put(&progress, "{\"done\": %s", done);
	if (known)
		buffer_put(&progress, ", \"total\": %s", total);
	json_put_key(&progress, "message", *line == '\0' ? NULL : line);
	buffer_put(&progress, "}");
	job_progress(job, progress.data);
	buffer_free(&progress);
	return true;
}

/* Reads a file, at most a limit; returns NULL and the reason why not. */
static char *
read_artifact(const char *path, size_t *length, const char **reason)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	char *data = NULL;
	ssize_t got = -1;

	*reason = fd < 0 && errno == ENOENT ? "file-missing-on-worker"
										: "file-not-readable-on-worker";
	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
	{
		if (status.st_size > ARTIFACT_LIMIT)
			*reason = "too-large-file-on-worker";
		else
		{
			data = allocate(status.st_size + 1);
			got = read(fd, data, status.st_size);
		}
	}
	if (fd >= 0)
		close(fd);
	if (got < 0)
	{
		free(data);
		return NULL;
	}
	*length = got;
	return data;
}

static void
put_base64(Buffer *buffer, const unsigned char *data, size_t length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t at = 0; at < length; at += 3)
	{
		size_t left = length - at;
		unsigned int bits = (unsigned int) data[at] << 16;
		char out[4];

		bits |= left > 1 ? (unsigned int) data[at + 1] << 8 : 0;
		bits |= left > 2 ? (unsigned int) data[at + 2] : 0;
		for (int i = 0; i < 4; i++)
			out[i] = digits[bits >> (18 - 6 * i) & 63];
		if (left < 3)
			out[3] = '=';
		if (left < 2)
			out[2] = '=';
		buffer_add(buffer, out, 4);
	}
}

/* Puts the content of a file, or why there is none. */
static void
put_file(Buffer *members, const char *type, const char *path)
{
	size_t length = 0;
	const char *reason;
	char *data = read_artifact(path, &length, &reason);

	buffer_put(members, "{\"storageType\": \"%s\"",
			   data == NULL ? "error" : "inline");
	if (data == NULL)
	{
		json_put_key(members, "reason", reason);
		json_put_key(members, "message", path);
		return;
	}
	json_put_key(members, "contentType", type);
	if (text_is_clean(data, length))
		json_put_key(members, "content", data);
	else
	{
		buffer_put(members, ", \"content\": {\"base64\": \"");
		put_base64(members, (unsigned char *) data, length);
		buffer_put(members, "\"}");
	}
	free(data);
}

static bool
artifact_line(Job *job, char *line)
{
	char *name = next_word(&line);
	char *type = next_word(&line);
	Buffer members = {0};

	if (*name == '\0' || *type == '\0' || *line == '\0')
		return false;
	if (strstr(line, "://") != NULL)
	{
		buffer_put(&members, "{\"storageType\": \"reference\"");
		json_put_key(&members, "contentType", type);
		json_put_key(&members, "url", line);
	}
	else
		put_file(&members, type, line);
	create_artifact(job, name, &members);
	return true;
}

static bool
result_line(Job *job, char *line)
{
	if (!json_is_valid(line))
		return false;
	set_text(&job->result, line);
	return true;
}

static bool
error_line(Job *job, char *line)
{
	set_text(&job->error, line);
	return true;
}

static bool
defer_line(Job *job, char *line)
{
	set_text(&job->defer, line);
	return *line != '\0';
}

/* A command says something on descriptor 3. */
void
job_line(Job *job, char *line)
{
	static const struct
	{
		const char *word;
		bool (*read)(Job *, char *);
	} words[] = {{"progress", progress_line},
				 {"result", result_line},
				 {"artifact", artifact_line},
				 {"error", error_line},
				 {"defer", defer_line}};
	char *begin = clean_text(line, strnlen(line, MALFORMED_SHOWN));
	char *rest = line;
	char *word;

	if (text_is_clean(line, strlen(line)))
	{
		word = next_word(&rest);
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (strcmp(word, words[i].word) == 0 && words[i].read(job, rest))
			{
				free(begin);
				return;
			}
	}
	if (job->malformed++ < MALFORMED_MAX)
		log_line(LOG_WARNING, job, "a line on descriptor 3 is malformed: %s",
				 begin);
	free(begin);
}

/* ---- how a run ends ---- */

/* Returns "SIGTERM" for 15. */
static char *
signal_name(int number)
{
	static const struct
	{
		int number;
		const char *name;
	} names[] = {{SIGHUP, "HUP"},   {SIGINT, "INT"},   {SIGQUIT, "QUIT"},
				 {SIGILL, "ILL"},   {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},
				 {SIGFPE, "FPE"},   {SIGKILL, "KILL"}, {SIGSEGV, "SEGV"},
				 {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"}, {SIGTERM, "TERM"},
				 {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGXCPU, "XCPU"},
				 {SIGXFSZ, "XFSZ"}, {SIGSYS, "SYS"},   {SIGTRAP, "TRAP"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == number)
			return format_text("SIG%s", names[i].name);
	return format_text("signal %d", number);
}

/* Returns the last lines of standard error, or NULL. */
static char *
last_errors(const Job *job)
{
	char *text = cut_text(&job->errors);
	size_t length = strlen(text);
	char *from = text;
	char *lines;

	while (length > 0 && strchr(" \r\n\t", text[length - 1]) != NULL)
		text[--length] = '\0';
	if (job->errors.lost > 0 || length >= ERRORS_LIMIT)
		from = strchr(text, '\n') != NULL ? strchr(text, '\n') + 1 : text;
	lines = *from == '\0' ? NULL : copy_text(from);
	free(text);
	return lines;
}

/* A run has ended, with this reason unless its claim is lost. */
void
job_end(Job *job, const char *reason, const char *error)
{
	if (job->state >= JOB_ENDED)
		return;
	if (job->given_back)
		reason = "worker-shutdown";
	set_text(&job->reason, reason);
	if (job->error == NULL && strcmp(reason, "completed") != 0)
		job->error = copy_text(error);
	job->process = NULL;
	job->ended = now;
	job_set_state(job, JOB_ENDED);
	create_log(job);
}

static const char *
reason_of(int status)
{
	if (!WIFEXITED(status))
		return "failed";
	for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++)
		if (exceptions[i].status == WEXITSTATUS(status))
			return exceptions[i].reason;
	return WEXITSTATUS(status) == 0 ? "completed" : "failed";
}

/* A command has ended with a status of wait(). */
void
job_end_status(Job *job, int status)
{
	char *text = last_errors(job);
	char *name;

	if (WIFSIGNALED(status))
	{
		name = signal_name(WTERMSIG(status));
		set_text(&job->details, NULL);
		job->details = format_text("{\"signal\": \"%s\"}", name);
	}
	else
	{
		name = format_text("exit status %d", WEXITSTATUS(status));
		set_text(&job->details, NULL);
		job->details = format_text("{\"exitStatus\": %d}",
								   WEXITSTATUS(status));
	}
	log_line(LOG_DEBUG, job, "ended: %s", name);
	if (status == 0)
		job->given_back = false; /* it was in time */
	job_end(job, reason_of(status), text != NULL ? text : name);
	free(text);
	free(name);
}

/* A run was given to a command that had ended: it waits for another one. */
void
job_return(Job *job)
{
	log_line(LOG_DEBUG, job, "was not begun, and waits for another command");
	job->process = NULL;
	cut_free(&job->errors);
	job_set_state(job, JOB_READY);
}

/* The claim is no longer ours: the command is stopped, and nothing reported. */
void
job_lose(Job *job, const char *why)
{
	if (job->lost || job->state >= JOB_ENDED)
		return;
	log_line(LOG_INFO, job, "is taken from this worker: %s", why);
	job->lost = true;
	if (job->process == NULL)
		job_end(job, "failed", NULL);
	else if (job->kill_at < now + options.kill_after)
		process_stop(job->process, job->kill_at);
	else
		process_stop(job->process, now + options.kill_after);
}

/* ---- reports ---- */

/* Puts the report of a run. */
void
job_put_report(Buffer *buffer, const Job *job)
{
	bool completed = strcmp(job->reason, "completed") == 0;

	buffer_put(buffer, "{\"taskId\": \"%s\", \"runId\": %s", job->task_id,
			   job->run_id);
	json_put_key(buffer, "reason", job->reason);
	if (completed && job->result != NULL)
		buffer_put(buffer, ", \"result\": %s", job->result);
	if (!completed)
		json_put_key(buffer, "errorMessage", job->error);
	if (!completed && job->details != NULL)
		buffer_put(buffer, ", \"error\": %s", job->details);
	if (job->given_back && job->retries_left != NULL && job->refused == 0)
		buffer_put(buffer, ", \"retriesLeft\": %d",
				   atoi(job->retries_left) + 1);
	if (job->credentials != NULL)
		buffer_put(buffer, ", \"credentials\": %s", job->credentials);
	buffer_put(buffer, "}");
}

/* A report is answered. */
void
job_settled(Job *job, const char *outcome)
{
	bool refused = strcmp(outcome, "conflict") == 0 ||
				   strcmp(outcome, "not-found") == 0 ||
				   strcmp(outcome, "forbidden") == 0;
	Total total = refused                                 ? TOTAL_LOST
				  : job->given_back                       ? TOTAL_GIVEN_BACK
				  : strcmp(job->reason, "completed") == 0 ? TOTAL_COMPLETED
				  : strcmp(job->reason, "failed") == 0    ? TOTAL_FAILED
														  : TOTAL_EXCEPTION;

	jobs_total[total]++;
	log_line(refused ? LOG_WARNING : LOG_DEBUG, job, "%s: %s", job->reason,
			 outcome);
	job_free(job);
}

/*
 * A report is refused for what it says: it is repeated as a failure that says so,
 * and then dropped.
 */
void
job_refused(Job *job, const PGresult *result)
{
	const char *error = result_error(result);

	log_line(LOG_WARNING, job, "the report is refused: %s", error);
	if (job->refused++ > 0)
	{
		job_settled(job, "forbidden");
		return;
	}
	if (job->error == NULL || strcmp(job->reason, "completed") == 0)
		set_text(&job->error, error);
	if (!job->given_back)
		set_text(&job->reason, "failed");
	set_text(&job->details, NULL);
}

/* ---- what is due ---- */

/* Gives back what is to be run. */
void
jobs_give_back_ready(const char *why)
{
	for (Job *job = first_job; job != NULL; job = job->next)
		if (job->state == JOB_READY)
		{
			job->given_back = true;
			job_end(job, "worker-shutdown", why);
		}
}

/* Gives back all, because the worker ends: what runs, when its command has. */
void
jobs_give_back(void)
{
	jobs_give_back_ready("the worker ends");
	for (Job *job = first_job; job != NULL; job = job->next)
		if (job->state == JOB_RUNNING)
			job->given_back = true;
}

/*
 * Keeps the claim of a run, also while its log is stored, and ends a command whose
 * claim cannot be kept.
 */
static void
keep_claim(Job *job)
{
	if (job->lost || job->state > JOB_ENDED ||
		(job->state == JOB_ENDED && job->calls == 0))
		return;
	if (now >= job->stop_at)
		job_lose(job, "the claim cannot be prolonged");
	else if (now >= reclaim_due(job) && !job->reclaiming)
		reclaim(job);
	else
		wake_at(job->reclaiming ? job->stop_at : reclaim_due(job));
}

static void
show_progress(Job *job)
{
	if (job->progress == NULL || job->progressing || job->lost)
		return;
	if (now >= job->progress_at || job->state == JOB_ENDED)
		send_progress(job);
	else
		wake_at(job->progress_at);
}

/* Returns the error of a run whose payload makes arguments too long. */
static char *
too_long(const Job *job)
{
	size_t longest = 0;

	for (int i = 0; i < options.nfields; i++)
		if (strlen(job->values[i]) > longest)
			longest = strlen(job->values[i]);
	return format_text(
		"a field of the payload that the command's arguments name has %zu"
		" bytes: the system takes %ld in an argument, and %ld in all",
		longest, 32 * sysconf(_SC_PAGESIZE) - 1, sysconf(_SC_ARG_MAX));
}

/* A run cannot be started; if that is not for what it is, others have to wait. */
static void
start_failed(Job *job, int error)
{
	char *text;

	if (error == E2BIG && options.nfields > 0)
	{
		text = too_long(job);
		job_end(job, "malformed-payload", text);
		free(text);
		return;
	}
	log_line(LOG_ERROR, job, "%s cannot be executed: %s", options.program,
			 strerror(error));
	job->given_back = true;
	job_end(job, "worker-shutdown", "the command cannot be started");
	calls_pause();
}

/* Starts a run, if there is a process for it. */
static void
start(Job *job)
{
	int error;
	Process *process = job->state == JOB_READY && !job->lost && !stopping
						   ? processes_free_one()
						   : NULL;

	if (process == NULL)
		return;
	job->started = now;
	job->process = process;
	job_set_state(job, JOB_RUNNING);
	error = process_start(process, job);
	if (error == 0)
		calls_go_on();
	else
		start_failed(job, error);
}

/* Does what runs have to do at this time. */
void
jobs_work(void)
{
	Job *next;

	for (Job *job = first_job; job != NULL; job = next)
	{
		next = job->next;
		keep_claim(job);
		start(job);
		show_progress(job);
		if (job->state == JOB_ENDED && job->lost && job->calls == 0)
		{
			jobs_total[TOTAL_LOST]++;
			job_free(job);
		}
		else if (job->state == JOB_ENDED && job->defer != NULL &&
				 job->calls == 0 && !job->given_back)
			send_defer(job);
	}
}
