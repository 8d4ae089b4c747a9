/*
 * serve.c
 *	  Commands that stay: a line of JSON for each run, and a line that answers.
 *
 * {"completed": RESULT}, {"failed": ERROR}, {"exception": "REASON"} and
 * {"defer": "INTERVAL"} end a run, {"progress": {"done": 1, "total": 2}} does not.
 * The database decides what the values mean.  A command that answers anything else
 * is started again: what it says next may still be about that run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "worker.h"

#define PAUSE_FIRST 100
#define PAUSE_LAST 10000
#define PROBATION 1000 /* of a command that has ended twice in vain */
#define ANSWER_MALFORMED "the answer of the command is malformed"

/* What {"exception": REASON} may say. */
static const char *const reasons[] = {"worker-shutdown", "intermittent-task",
									  "malformed-payload",
									  "resource-unavailable",
									  "internal-error"};

/* Writes the line of a run to a command. */
void
serve_give(Process *process, const Job *job)
{
	Buffer *line = &process->input;

	process->given = 0;
	buffer_put(line, "{\"taskId\": \"%s\", \"runId\": %s", job->task_id,
			   job->run_id);
	json_put_key(line, "queue", job->queue);
	json_put_key(line, "name", job->name);
	buffer_put(line, ", \"attempt\": %s", job->attempt);
	json_put_key(line, "deadline", job->deadline);
	json_put_key(line, "takenUntil", job->taken_until);
	json_put_key(line, "traceparent", job->traceparent);
	if (job->credentials != NULL)
		buffer_put(line, ", \"credentials\": %s", job->credentials);
	buffer_put(line, ", \"payload\": ");
	buffer_add(line, job->payload, strlen(job->payload));
	buffer_add(line, "}\n", 2);
	process_feed(process);
}

/* Returns a string of JSON without its quotes, if it has no escapes. */
static char *
plain_text(const char *value)
{
	size_t length = strlen(value);

	if (*value != '"' || strchr(value, '\\') != NULL)
		return NULL;
	return format_text("%.*s", (int) length - 2, value + 1);
}

/* Ends a run as an exception, with one of the reasons that there are for that. */
static void
take_exception(Job *job, const char *reason)
{
	Buffer error = {0};

	buffer_put(&error, "\"%s\" is no reason of an exception; those are",
			   reason);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
	{
		if (strcmp(reasons[i], reason) == 0)
			job_end(job, reason, NULL);
		buffer_put(&error, "%s %s", i == 0 ? "" : ",", reasons[i]);
	}
	job_end(job, "failed", error.data); /* if it has not ended yet */
	buffer_free(&error);
}

/* Takes a member of an answer; returns whether it ends the run, -1: it cannot. */
static int
take_member(Job *job, const char *key, char *value)
{
	char *text = plain_text(value);
	int ends = 1;

	if (strcmp(key, "completed") == 0)
	{
		if (strcmp(value, "null") != 0)
			job->result = copy_text(value);
		job->given_back = false; /* it was in time */
		job_end(job, "completed", NULL);
	}
	else if (strcmp(key, "failed") == 0)
	{
		job->details = copy_text(value);
		job_end(job, "failed", NULL);
	}
	else if (strcmp(key, "exception") == 0 && text != NULL)
		take_exception(job, text);
	else if (strcmp(key, "defer") == 0 && text != NULL)
	{
		job->defer = copy_text(text);
		job_end(job, "failed", "the delay is refused");
	}
	else if (strcmp(key, "progress") == 0 && *value == '{')
	{
		job_progress(job, value);
		ends = 0;
	}
	else
		ends = -1;
	free(text);
	return ends;
}

/* A command has answered a line. */
void
serve_answer(Process *process, const char *line)
{
	Job *job = process->job;
	char *value = NULL;
	char *key;
	int ends;

	if (job == NULL)
	{
		log_line(LOG_WARNING, NULL, "a command answers nothing: %.60s", line);
		return;
	}
	key = json_only_member(line, &value);
	ends = key == NULL ? -1 : take_member(job, key, value);
	free(key);
	free(value);
	if (ends == 0)
		return;
	if (ends < 0)
	{
		log_line(LOG_WARNING, job, ANSWER_MALFORMED ": %.60s", line);
		job_end(job, "failed", ANSWER_MALFORMED);
		process_stop(process, now + options.kill_after);
	}
	process->job = NULL;
	process->pause = 0;
}

/* Returns whether a run can be given to a command. */
bool
serve_takes(const Process *process)
{
	Moment from = process->started +
				  (process->pause > PAUSE_FIRST ? PROBATION : 0);

	if (process->pid == 0 || process->stopping || process->in < 0)
		return false;
	if (now < from)
		wake_at(from);
	return now >= from;
}

/* Returns whether there is any command that takes runs, or will when it has. */
bool
serve_takes_any(void)
{
	for (Process *p = processes; p < processes + options.jobs; p++)
		if (serve_takes(p))
			return true;
	return false;
}

/* No command can be kept: other workers are to have the runs that wait for one. */
static void
give_back(void)
{
	for (Process *p = processes; p < processes + options.jobs; p++)
		if (p->pid != 0)
			return;
	jobs_give_back_ready("no command stays");
}

/*
 * A command has ended, and with it its run, unless it has read nothing of it: that
 * is given to another command.
 */
void
serve_ended(Process *process, int status, bool untouched)
{
	Job *job = process->job;

	if (job != NULL && untouched && !job->lost && !job->given_back)
		job_return(job);
	else if (job != NULL)
	{
		/* It should not have ended, whatever its status says. */
		job_end_status(job, status == 0 ? 1 << 8 : status);
	}
	if (stopping || (job != NULL && job->lost))
		process->pause = 0;
	else
	{
		process->pause = process->pause == 0 ? PAUSE_FIRST
											 : 2 * process->pause;
		if (process->pause > PAUSE_LAST)
			process->pause = PAUSE_LAST;
		log_line(LOG_WARNING, NULL,
				 "a command has ended, and is started again in %d ms",
				 process->pause);
	}
	process->restart_at = now + process->pause;
	if (process->pause > PAUSE_FIRST)
		give_back();
}

/* Starts a command that is to be there, and ends one that reads no more. */
void
serve_keep(Process *process)
{
	int error;

	if (stopping)
		return;
	if (process->pid != 0)
	{
		if (process->job == NULL && process->in < 0)
			process_stop(process, now + options.kill_after);
	}
	else if (now < process->restart_at)
		wake_at(process->restart_at);
	else if ((error = process_spawn(process, NULL)) != 0)
	{
		log_line(LOG_ERROR, NULL, "%s cannot be executed: %s", options.program,
				 strerror(error));
		process->pause = PAUSE_LAST;
		process->restart_at = now + PAUSE_LAST;
		give_back();
	}
}
